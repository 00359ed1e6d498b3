"""The linear classifier for ordered classes."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import column_or_1d

from softmargin.core.kinds import PLANES
from softmargin.core.result import Certificate, Solution
from softmargin.data.rows import Products
from softmargin.estimators import validation
from softmargin.estimators.callbacks import with_callbacks
from softmargin.estimators.linear_base import LinearEstimator, Posed
from softmargin.estimators.linear_work import linear_solver
from softmargin.estimators.rank_svm import stored_ranking
from softmargin.estimators.scoring import finite_scores, linear_scores
from softmargin.estimators.settings import OrdinalSetting, OrdinalTarget, RankSetting, RankTarget
from softmargin.linalg.thresholds import COSTS, assign_ranks, depths, fit_thresholds
from softmargin.problems.ordinal import OrdinalSolution
from softmargin.solvers.base import Solver

THRESHOLDS = ("fitted", "immediate", "all")


class OrdinalSVC(ClassifierMixin, LinearEstimator):
    """Ordinal regression: one linear score and ascending thresholds that cut it into ordered classes.

    ``thresholds="fitted"`` learns the score from the order alone, as `RankSVM` does: ``1/2 |w|^2 + C * mean over pairs
    of max(0, 1 - (w.x_i - w.x_j))``, where row i has the higher class; then it places the thresholds with the least
    training error, exactly. "all" and "immediate" learn both at once, by minimising ``1/2 |w|^2 + C * sum_i s_i sum_k
    max(0, 1 -+ (w.x_i - theta_k))`` over all thresholds, or the two next to the row's class.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses; larger means less regularisation. It multiplies a mean over pairs for "fitted", a sum
        over rows for the others.
    thresholds : {"fitted", "immediate", "all"}, default="fitted"
        How thresholds are found; see above. With two classes "immediate" and "all" are `LinearSVC`.
    cost : {"absolute", "zero_one"}, default="absolute"
        The training error that "fitted" thresholds minimise: by how many classes a row is off, or whether it is.
    classes : list of labels or None, default=None
        All classes in ascending order. None is for labels that bring their order: numbers, fractions such as half stars
        among them, and an ordered pandas Categorical. Classes without rows are never predicted.
    class_weight : dict, "balanced" or None, default=None
        Factor on the weights of each class's rows.
    solver : {"auto", "ocas", "cpa"} or solver object, default="auto"
        The algorithm; "auto" is "ocas". An object such as ``softmargin.OCAS(mixing=0.2)`` carries its own settings.
    tol : float, default=1e-3
        Stop when the relative duality gap (primal - dual) / primal is at most this, confirmed by the judge.
    max_iter : int or None, default=None
        Limit on the iterations; None is no limit.
    max_seconds : float or None, default=None
        Limit on the time of solving; compilation, validation and the judge are not counted. None is no limit.
    n_jobs : int or None, default=None
        Threads: None is one, -1 all. The result is the same, bit for bit, whatever the number.
    warm_start : bool, default=False
        Continue from the last fit: exactly, if data and weights are the same; with its planes, if only C or tol
        changed; else from its weights.
    verbose : int, default=0
        1 shows a progress line.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    thresholds_ : ndarray of shape (n_classes - 1,)
        Ascending; a class lies above the threshold before it, and up to the one after it.
    classes_ : ndarray of shape (n_classes,)
        In ascending order.
    certificate_ : Certificate
        `primal`, `dual`, `gap`, `relative_gap`, `kkt_violation` of the problem that was minimised, as the judge found
        them from the data.
    certificates_ : list of Certificate
        The same as a list of one.
    dual_ : ndarray of shape (n_rows, n_thresholds) or None
        The dual vector alpha behind the bound, a column for each threshold between classes that have rows; None for
        "fitted".
    status_ : Status
        How the fit ended.
    trace_ : Trace
        Primal, bound, planes and passes over iterations and seconds.
    n_iter_ : int
        Iterations, earlier ones included where a fit was continued.
    seconds_ : dict
        Seconds on the wall in all ("total"), judging ("judge") and compiling ("compile").
    n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    A fit that stopped early, or with ``warm_start=True``, keeps its planes, so that another fit can continue.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from softmargin import OrdinalSVC
    >>> X, y = load_wine(return_X_y=True)
    >>> model = OrdinalSVC(thresholds="all").fit(scale(X), y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    >>> model.thresholds_.shape
    (2,)
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        thresholds: str = "fitted",
        cost: str = "absolute",
        classes: Any = None,
        class_weight: Any = None,
        solver: Any = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.thresholds = thresholds
        self.cost = cost
        self.classes = classes
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn's checks expect good scores on classes without an order, which one score cannot tell apart.
        tags.classifier_tags.poor_score = True
        return tags

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "OrdinalSVC":
        """Train on X and y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            float32, float64, integers and bool are used in place, dense in either order or CSR.
        y : array-like of shape (n_rows,)
            Numbers, an ordered pandas Categorical, or labels whose order `classes` tells.
        sample_weight : array-like of shape (n_rows,), default=None
            2 is the same as repeating the row, 0 as leaving it out.

        Returns
        -------
        self
            After Ctrl-C the model is fitted with the best solution so far, and the interrupt is raised again (while X
            and y are still being checked there is nothing to keep yet).
        """
        order = validation.order_of(y) if self.classes is None else self.classes
        return self._fit(X, y, {"sample_weight": sample_weight}, order=order)

    def _solver(self) -> Solver:
        return linear_solver(self.solver, (PLANES,))

    def _setting(self) -> OrdinalSetting | RankSetting:
        """Thresholds that are fitted afterwards need a ranking only, of all rows as one query."""
        C = validation.positive_number(self.C, "C")
        validation.one_of(self.cost, "cost", COSTS)
        kind = validation.one_of(self.thresholds, "thresholds", THRESHOLDS)
        return RankSetting(C) if kind == "fitted" else OrdinalSetting(C, kind)

    def _posed(self, setting: Any, X: Any, y: np.ndarray, sample_weight: Any = None, order: Any = None) -> Posed:
        classes, ranks = validation.ordered_classes(y, order)
        weights = ordinal_weights(self, classes, ranks, sample_weight)
        target, present = ordinal_target(setting, ranks, weights)

        def attributes(rows: Products, solutions: list[Solution]) -> dict[str, Any]:
            [solution] = solutions
            if isinstance(target, OrdinalTarget):
                between, dual = np.asarray(solution.b), solution.alpha
            else:
                scores = linear_scores(X, solution.w[None, :])
                places = np.searchsorted(present, ranks)
                between, dual = _finite_thresholds(scores, places, weights, present.size, self.cost), None
            return {
                "coef_": solution.w,
                "thresholds_": _spread(between, present, classes.size),
                "dual_": dual,
            }

        def stored(rows: Products) -> list[Solution]:
            if isinstance(target, RankTarget):
                return [stored_ranking(self, setting, target, rows)]
            thresholds = self.thresholds_[present[:-1]]
            dual = getattr(self, "dual_", None)
            alpha = np.zeros((rows.n_rows, thresholds.size)) if dual is None else dual
            return [OrdinalSolution(self.coef_, thresholds, alpha)]

        return Posed(setting, [target], ["OrdinalSVC"], {"classes_": classes}, attributes, stored)

    def _certified(self, X: Any, y: Any, **more: Any) -> Certificate:
        return super()._certified(X, y, order=getattr(self, "classes_", None), **more)

    def predict_score(self, X: Any) -> np.ndarray:
        """The score w.x of each row, which `thresholds_` cut into classes: larger means a higher class."""
        X = self._to_predict(X)
        return finite_scores(linear_scores(X, self.coef_[None, :]))

    def decision_function(self, X: Any) -> np.ndarray:
        """How far the score of each row lies inside each class: shape (n_rows, n_classes), negative outside.

        Column k is ``min(score - thresholds_[k - 1], thresholds_[k] - score)``, so that the largest is that of the
        predicted class. A class without rows in training has the least finite number. With two classes it is ``score -
        thresholds_[0]``, of shape (n_rows,) and positive for the second class.
        """
        scores = self.predict_score(X)
        return scores - self.thresholds_[0] if self.classes_.size == 2 else depths(scores, self.thresholds_)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row."""
        scores = self.predict_score(X)
        return self.classes_[assign_ranks(scores, self.thresholds_)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the rows whose class is predicted; labels may be any that `fit` takes, half stars too."""
        predicted = self.predict(X)
        return float(np.average(predicted == column_or_1d(y), weights=sample_weight))


def ordinal_weights(estimator: Any, classes: np.ndarray, ranks: np.ndarray, sample_weight: Any) -> np.ndarray:
    """Sample weight times class weight, of at least two classes above 0."""
    base = validation.row_weights(sample_weight, ranks.size)
    weights = base * validation.class_weights(estimator.class_weight, classes, ranks, base)[ranks]
    validation.two_classes_left(ranks, weights)
    return weights


def ordinal_target(
    setting: OrdinalSetting | RankSetting, ranks: np.ndarray, weights: np.ndarray
) -> tuple[OrdinalTarget | RankTarget, np.ndarray]:
    """What is to be learned, and the ranks that have rows."""
    present = np.flatnonzero(np.bincount(ranks, weights))
    if isinstance(setting, RankSetting):
        target = setting.target(ranks.astype(np.float64), np.zeros(ranks.size, dtype=np.int64), weights)
        validation.finite_scale(1.0, [np.array([target.pairs.n_pairs])])
        return target, present
    validation.finite_scale(setting.C * present.size, [weights])
    # Rows without weight may have a rank that no other has: any place will do.
    places = np.minimum(np.searchsorted(present, ranks), present.size - 1)
    return OrdinalTarget(places, weights), present


def _finite_thresholds(
    scores: np.ndarray, ranks: np.ndarray, weights: np.ndarray, n_ranks: int, cost: str
) -> np.ndarray:
    """The best thresholds; where all rows lie on one side of one, it keeps a margin of 1 from them."""
    found, _ = fit_thresholds(scores, ranks, weights, n_ranks, cost)
    return np.clip(found, scores.min() - 1.0, scores.max() + 1.0)


def _spread(between: np.ndarray, present: np.ndarray, n_ranks: int) -> np.ndarray:
    """Thresholds between the ranks that have rows as thresholds between all ranks; those of the others coincide."""
    thresholds = np.full(n_ranks - 1, np.inf)
    thresholds[: present[0]] = -np.inf
    thresholds[present[0] : present[-1]] = np.repeat(between, np.diff(present))
    return thresholds
