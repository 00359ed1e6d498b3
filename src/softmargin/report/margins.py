"""Margins of a fitted classifier as a picture."""

from collections.abc import Mapping
from copy import copy
from itertools import combinations
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.stopping import is_at_bound
from softmargin.report.drawing import axes, whole_numbers

# The objective may differ from that of the certificate by this share, or by `tol` if that is more: the certificate is
# computed in another order and includes a charge for rounding.
SLACK = 1e-5
# The kinds of rows from the bottom of the pile to its top. Their colours differ in lightness too, for print.
COLORS = {"bounded support vectors": "C3", "free support vectors": "C1", "not support vectors": "0.78"}


class MarginDisplay:
    """Histogram of the margins y_i f(x_i) of the training rows, piled up by what the rows are to the model.

    A support vector has a dual variable above zero; it is bounded if that is within 1e-9 of its upper bound, C times
    the weight of the row, and free if not. At the optimum rows with margins above 1 are not support vectors, those
    below 1 are bounded, and free ones have the margin 1; below 0 rows are misclassified.

    Create it with `from_estimator`, or from arrays with one entry a row. After `plot` `ax_` holds the axes, `figure_`
    the figure, and `counts_` the number of rows of each kind.

    Parameters
    ----------
    margins : array of y_i f(x_i)
    alpha : array of dual variables
    upper : array or number, their upper bounds
    """

    def __init__(self, *, margins: Any, alpha: Any, upper: Any) -> None:
        self.margins = np.asarray(margins, dtype=np.float64)
        self.alpha = np.asarray(alpha, dtype=np.float64)
        if self.margins.ndim != 1 or self.alpha.shape != self.margins.shape:
            raise SoftmarginError(
                f"margins and alpha must be vectors with one entry a row, but have the shapes {self.margins.shape} and "
                f"{self.alpha.shape}."
            )
        self.upper = np.broadcast_to(np.asarray(upper, dtype=np.float64), self.margins.shape)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        pair: tuple[Any, Any] | None = None,
        bins: Any = 50,
        ax: Any = None,
    ) -> "MarginDisplay":
        """Plot the margins of a fitted `SVC` (also scikit-learn's) or `LinearSVC` on its training data.

        Parameters
        ----------
        estimator : a fitted classifier
        X, y : what it was trained on, rows in the same order
        sample_weight : the weights it was trained with, if any: without them bounded rows cannot be told from free ones
        pair : two labels, needed for an SVC of more than two classes: whose problem is shown
        bins : number of bins, their edges, or the name of a rule of NumPy's, such as "auto"
        ax : matplotlib axes, default: a new figure
        """
        display = cls.of_training_rows(estimator, X, y, sample_weight=sample_weight, pair=pair)
        return display.plot(bins=bins, ax=ax)

    @classmethod
    def of_training_rows(
        cls, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None, pair: tuple[Any, Any] | None = None
    ) -> "MarginDisplay":
        """The same, not drawn yet."""
        if not hasattr(estimator, "classes_"):
            raise SoftmarginError(
                f"{type(estimator).__name__} has no classes_: margins are those of a fitted classifier. For numbers "
                "there is ResidualDisplay, for one class NoveltyDisplay."
            )
        codes = _codes(y, estimator.classes_)
        weights = np.ones(codes.size) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weights.shape != codes.shape:
            raise SoftmarginError(f"sample_weight has shape {weights.shape}, but y has {codes.size} rows.")
        first, second = _pair(estimator, pair)
        alpha = _dual_variables(estimator, codes, first, second)
        upper = estimator.C * weights * _class_weights(estimator, codes, weights)[codes]
        scores = _scores(estimator, X, first, second)
        if scores.shape != codes.shape:
            raise SoftmarginError(f"X has {len(scores)} rows, but y has {codes.size}.")
        shown = (codes == first) | (codes == second)
        margins = np.where(codes == second, scores, -scores)
        display = cls(margins=margins[shown], alpha=alpha[shown], upper=upper[shown])
        signs = np.where(codes == second, 1.0, -1.0)[shown]
        _check_training_rows(estimator, display, signs, _place(estimator, first, second))
        return display

    def plot(self, *, bins: Any = 50, ax: Any = None) -> "MarginDisplay":
        """Draw; see `from_estimator`."""
        ax, figure = axes(ax)
        kinds = self.kinds()
        self.counts_ = {name: int(np.count_nonzero(kind)) for name, kind in zip(COLORS, kinds, strict=True)}
        ax.hist(
            [self.margins[kind] for kind in kinds],
            bins=bins if isinstance(bins, str) or np.ndim(bins) else self._edges(bins),
            stacked=True,
            color=list(COLORS.values()),
            label=[f"{name}: {count:,}" for name, count in self.counts_.items()],
        )
        for margin, style in ((0.0, ":"), (1.0, "--")):
            ax.axvline(margin, color="0.15", linestyle=style, linewidth=1.0)
        ax.set_xlabel("margin $y_i f(x_i)$")
        ax.set_ylabel("rows")
        whole_numbers(ax.yaxis)
        ax.grid(True, axis="y", alpha=0.3)
        ax.set_axisbelow(True)
        # "best" is matplotlib's default, but it warns if that was not asked for and takes more than a second.
        ax.legend(loc="best", frameon=False, reverse=True)  # as they lie: the top first
        self.figure_, self.ax_ = figure, ax
        return self

    def kinds(self) -> list[np.ndarray]:
        """Which rows are bounded support vectors, free ones, and none, in the order of COLORS."""
        is_support = self.alpha > 0
        is_bounded = is_support & is_at_bound(self.alpha, self.upper)
        return [is_bounded, is_support & ~is_bounded, ~is_support]

    def _edges(self, bins: Any) -> np.ndarray:
        """Edges of equal bins over all margins, 1 in the middle of one: there free support vectors are."""
        if int(bins) != bins or bins < 1:
            raise SoftmarginError(f"bins={bins!r} must be a positive integer, or the edges of the bins.")
        lowest, highest = float(np.min(self.margins, initial=1.0)), float(np.max(self.margins, initial=1.0))
        width = (highest - lowest) / int(bins) or 1.0 / int(bins)
        below, above = np.ceil((1.0 - lowest) / width - 0.5), np.ceil((highest - 1.0) / width - 0.5)
        return 1.0 + width * (np.arange(-below, above + 2) - 0.5)


def _codes(y: Any, classes: np.ndarray) -> np.ndarray:
    """The place of each label among the classes."""
    y = np.ravel(y)
    codes = np.minimum(np.searchsorted(classes, y), classes.size - 1)
    strangers = np.unique(y[classes[codes] != y])
    if strangers.size:
        raise SoftmarginError(
            f"y holds {strangers.tolist()[:5]}, which the model does not know (its classes: {classes.tolist()}): give "
            "the data it was trained on."
        )
    return codes


def _pair(estimator: Any, pair: Any) -> tuple[int, int]:
    """The codes of the two classes whose problem is shown, in rising order."""
    classes = estimator.classes_
    if pair is None and classes.size == 2:
        return 0, 1
    if classes.size > 2 and hasattr(estimator, "dual_"):
        raise SoftmarginError(
            f"this {type(estimator).__name__} was trained on {classes.size} classes, one against the rest: margins are "
            "shown of a model of two classes. Fit one on y == label."
        )
    if pair is None:
        raise SoftmarginError(
            f"the model has {classes.size} classes: choose the two whose problem is shown, for example "
            f"pair={tuple(classes[:2].tolist())!r}."
        )
    known = {label: code for code, label in enumerate(classes.tolist())}
    found = sorted({known[label] for label in pair if label in known})
    if len(pair) != 2 or len(found) != 2:
        raise SoftmarginError(f"pair={pair!r} must be two different labels of {classes.tolist()}.")
    return found[0], found[1]


def _dual_variables(estimator: Any, codes: np.ndarray, first: int, second: int) -> np.ndarray:
    """The dual variable of each row in the problem of two classes; zero for rows of others."""
    if hasattr(estimator, "dual_"):
        _same_rows(codes.size, estimator.dual_.shape[0])
        return estimator.dual_
    if not hasattr(estimator, "dual_coef_"):
        raise SoftmarginError(
            f"{type(estimator).__name__} has neither dual_ nor dual_coef_: margins are shown of softmargin.SVC, "
            "softmargin.LinearSVC and scikit-learn's SVC."
        )
    _same_rows(codes.size, estimator.shape_fit_[0])
    if len(estimator.support_) != estimator.dual_coef_.shape[1]:
        raise SoftmarginError("the model does not know which rows its support vectors were (support_ is empty).")
    coefficients = np.asarray(estimator.dual_coef_)
    own = codes[estimator.support_]
    # Row k of the coefficients of a support vector of class c belongs to the problem with class k if k < c, and with
    # class k + 1 otherwise: there is no problem of a class with itself.
    of_pair = np.where(own == first, coefficients[second - 1], np.where(own == second, coefficients[first], 0.0))
    alpha = np.zeros(codes.size)
    alpha[estimator.support_] = np.abs(of_pair)
    return alpha


def _same_rows(given: int, trained: int) -> None:
    if given != trained:
        raise SoftmarginError(f"the model was trained on {trained} rows, but y has {given}: give its training data.")


def _class_weights(estimator: Any, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """One factor a class: as the model says, or as its parameter means."""
    classes, wanted = estimator.classes_, estimator.class_weight
    if hasattr(estimator, "class_weight_"):
        return np.asarray(estimator.class_weight_)
    if isinstance(wanted, Mapping):
        return np.array([float(wanted.get(label, 1.0)) for label in classes.tolist()])
    if wanted is None:
        return np.ones(classes.size)
    return weights.sum() / (classes.size * np.bincount(codes, weights, minlength=classes.size))  # "balanced"


def _scores(estimator: Any, X: Any, first: int, second: int) -> np.ndarray:
    """The decision function of the problem of two classes, positive for the second."""
    if estimator.classes_.size == 2:
        return estimator.decision_function(X)
    by_pair = copy(estimator).set_params(decision_function_shape="ovo").decision_function(X)
    return -by_pair[:, _place(estimator, first, second)]


def _place(estimator: Any, first: int, second: int) -> int:
    """The number of the problem of two classes among all pairs."""
    return list(combinations(range(estimator.classes_.size), 2)).index((first, second))


def _check_training_rows(estimator: Any, display: MarginDisplay, signs: np.ndarray, place: int) -> None:
    """Refuse rows that the model was not trained on.

    On the training rows dual variables lie within their bounds, the objective is that of the certificate, and what the
    dual variables and the losses disagree about, sum_i (u_i max(0, 1 - m_i) - alpha_i (1 - m_i)), is at most the gap
    (weak duality). Every term is at least zero, and rows in another order or with other labels or weights make many of
    them large. A model without a certificate (scikit-learn's) promises that each term is at most `tol` times u_i.
    """
    margins, alpha, upper = display.margins, display.alpha, display.upper
    losses = upper * np.maximum(0.0, 1.0 - margins)
    disagreement = float(np.sum(losses - alpha * (1.0 - margins)))
    slack = max(float(estimator.tol), SLACK)
    fits = bool((alpha <= (1.0 + SLACK) * upper).all())
    if hasattr(estimator, "certificates_"):
        certificate = estimator.certificates_[place]
        primal = 0.5 * _sq_norm(estimator, display, signs, place) + float(losses.sum())
        room = slack * abs(certificate.primal)
        fits &= abs(primal - certificate.primal) <= room
        fits &= not disagreement > 2.0 * abs(certificate.gap) + room  # an indefinite kernel has no gap
    else:
        fits &= disagreement <= 2.0 * slack * float(upper.sum())
    if not fits:
        raise SoftmarginError(
            "these are not the rows that the model was trained on, or they have another order, other labels or other "
            "weights: give X, y and sample_weight as they were in fit."
        )


def _sq_norm(estimator: Any, display: MarginDisplay, signs: np.ndarray, place: int) -> float:
    """|w|^2, half of which is part of the objective; a penalised intercept is one of the weights."""
    b = float(np.ravel(estimator.intercept_)[place])
    if hasattr(estimator, "dual_"):
        is_penalised = estimator.intercept == "penalised"
        weight = b / getattr(estimator, "intercept_scaling", 1.0) if is_penalised else 0.0
        return float(np.sum(np.square(estimator.coef_))) + weight * weight
    # For a kernel it is sum_i alpha_i y_i (f(x_i) - b). If there are more than two classes, the intercept of a pair is
    # that of a score for its first class.
    b = b if estimator.classes_.size == 2 else -b
    return float(display.alpha @ display.margins - b * (display.alpha @ signs))
