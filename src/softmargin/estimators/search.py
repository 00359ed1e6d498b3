"""Choosing C, and for kernels gamma, by cross-validation: what `LinearSVCCV` and `SVCCV` have in common.

    for each fold and each gamma:  solve for all C from the smallest to the largest, each from the state of the last
    score the held-out rows of every solution; the best mean score wins
    fit a plain estimator with it on all rows

There is one copy of X. A fold is a vector of weights: its held-out rows have the weight 0, which is the same as leaving
them out. Every solution is judged as after a fit, and the gap that is proven for it is kept.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import check_is_fitted

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Certificate
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.estimators import validation
from softmargin.estimators.machines.cells import Budget, Cell, Cells, Fold, Task, checked_grid
from softmargin.estimators.reporting import ReportMixin
from softmargin.estimators.warnings import ConvergenceWarning
from softmargin.prediction.labels import labels_from_scores

# An integer number of values of C stands for a grid between these powers of ten, as in LogisticRegressionCV.
POWERS_OF_C = (-4.0, 4.0)


class HeldOut(ClassifierMixin, BaseEstimator):
    """What a scorer is given in place of a model: it knows the decision values of the held-out rows, and no others."""

    def __init__(self, classes: np.ndarray, decisions: np.ndarray) -> None:
        self.classes, self.decisions = classes, decisions
        self.classes_ = classes

    def fit(self, X: Any, y: Any) -> "HeldOut":
        """Only there because scorers expect it."""
        raise SoftmarginError("a scorer is given a model that is trained already: it must not call fit.")

    def decision_function(self, X: Any) -> np.ndarray:
        """The decision values of the held-out rows."""
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if n_rows != len(self.decisions):
            raise SoftmarginError(
                f"the scorer asked for {n_rows} rows, but during the search only the {len(self.decisions)} held-out "
                "rows of the fold are known: a scorer may not ask for others."
            )
        return self.decisions

    def predict(self, X: Any) -> np.ndarray:
        """The class of each held-out row."""
        return labels_from_scores(self.decision_function(X), self.classes_)


class SearchCV(ReportMixin, ClassifierMixin, BaseEstimator):
    """A classifier that chooses its parameters by cross-validation. Derived classes say which, and solve.

    _plain_type : the estimator that is fitted in the end
    _cells(task, plain) : the solutions of all folds, and the values of gamma
    _keep(tables, gammas) : what the search leaves behind
    """

    Cs: Any
    cv: Any
    scoring: Any
    refit: bool
    one_standard_error: bool
    max_seconds: float | None
    _plain_type: Any
    _own = ("Cs", "gammas", "cv", "scoring", "refit", "one_standard_error")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._plain()).input_tags
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "scores_")

    def _plain(self, **chosen: Any) -> Any:
        """The estimator itself, with the parameters that it shares with this one, and those chosen."""
        shared = {name: value for name, value in self.get_params(deep=False).items() if name not in self._own}
        return self._plain_type(**shared, **chosen)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Search, and fit the best model on all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or a kernel matrix if it is "precomputed"
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), default=None
            2 is the same as repeating the row, 0 as leaving it out; in training and in the scores.

        Returns
        -------
        self
            A search that does not come to its end, because of Ctrl-C or an error, leaves the estimator as it was
            before: there are no attributes of half a search. Ctrl-C is raised again.
        """
        before = dict(vars(self))
        try:
            self._search(X, y, sample_weight)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _search(self, X: Any, y: Any, sample_weight: Any) -> None:
        plain = self._plain()
        grid = checked_grid(self.Cs, "Cs", POWERS_OF_C)
        order = np.argsort(grid, kind="stable")
        _, stop, *_ = plain._limits()
        checked_X, checked_y = plain._validated(X, y=y)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(plain, name):
                setattr(self, name, getattr(plain, name))
        classes, codes = validation.class_labels(checked_y)
        weights = validation.row_weights(sample_weight, codes.size)
        folds = _folds(self.cv, checked_y, codes, weights)
        score = self._scorer(checked_X, checked_y, None if sample_weight is None else weights, classes)
        n_solves = len(folds) * grid.size * self._n_problems(classes.size)
        budget = Budget(stop, n_solves + int(bool(self.refit)))

        cells, gammas = self._cells(Task(checked_X, classes, codes, weights, folds, grid[order], budget), plain)

        def table(value: Callable[[Cell], float]) -> np.ndarray:
            """Shape (n_folds, n_gammas, n_Cs), with C in the order of the user."""
            found = np.empty((len(folds), len(gammas), grid.size))
            for j, lines in enumerate(cells):
                for g, line in enumerate(lines):
                    found[j, g, order] = [value(cell) for cell in line]
            return found

        scores = np.empty((len(folds), len(gammas), grid.size))
        for j, (fold, lines) in enumerate(zip(folds, cells, strict=True)):
            of_fold = score(fold)
            for g, line in enumerate(lines):
                scores[j, g, order] = [of_fold(cell.decisions) for cell in line]
        mean = scores.mean(axis=0)
        # Of several values that are equally good the smallest gamma and then the smallest C: the smoothest model.
        least = mean.max()
        if self.one_standard_error and len(folds) > 1:
            of_best = scores.reshape(len(folds), -1)[:, mean.argmax()]
            least -= of_best.std(ddof=1) / np.sqrt(len(folds))
        g, c = min(zip(*np.nonzero(mean >= least), strict=True), key=lambda at: (_key(gammas[at[0]]), grid[at[1]]))
        tables = {
            "scores_": scores,
            "objectives_": table(lambda cell: float(sum(part.primal for part in cell.certificates))),
            "relative_gaps_": table(lambda cell: max(part.relative_gap for part in cell.certificates)),
            "n_support_vectors_": table(lambda cell: cell.n_support).astype(np.int64),
        }
        chosen: dict[str, Any] = {"C": float(grid[c])} | self._chosen(gammas, int(g))
        best_estimator = None
        if self.refit:
            best_estimator = self._refitted(chosen, X, y, sample_weight, budget)
        self.classes_, self.Cs_, self.C_, self.best_score_ = classes, grid, chosen["C"], float(mean[g, c])
        self._keep(tables, gammas)
        self.__dict__.pop("best_estimator_", None)
        if best_estimator is not None:
            self.best_estimator_ = best_estimator
        self._warn_of_gaps([cell for lines in cells for line in lines for cell in line], tables["relative_gaps_"], stop)

    def _refitted(self, chosen: dict[str, Any], X: Any, y: Any, sample_weight: Any, budget: Budget) -> Any:
        left = budget.seconds_left
        limit = {} if left is None else {"max_seconds": max(left, 1e-3)}
        model = self._plain(**chosen).set_params(**limit).fit(X, y, sample_weight=sample_weight)
        return model.set_params(max_seconds=self.max_seconds)

    def _keep(self, tables: dict[str, np.ndarray], gammas: Sequence[Any]) -> None:
        """Store tables of shape (n_folds, n_gammas, n_Cs)."""
        raise NotImplementedError

    def _n_problems(self, n_classes: int) -> int:
        """How many problems there are to solve for each fold and each C."""
        raise NotImplementedError

    def _chosen(self, gammas: Sequence[Any], g: int) -> dict[str, Any]:
        """What was chosen beside C, as parameters of the plain estimator."""
        return {}

    def _cells(self, task: Task, plain: Any) -> tuple[Cells, Sequence[Any]]:
        raise NotImplementedError

    def _scorer(
        self, X: Any, y: np.ndarray, weights: np.ndarray | None, classes: np.ndarray
    ) -> Callable[[Fold], Callable[[np.ndarray], float]]:
        """From a fold to what scores decision values of its held-out rows."""
        scoring = self.scoring
        is_accuracy = scoring is None or (isinstance(scoring, str) and scoring == "accuracy")
        scorer = None if is_accuracy else check_scoring(HeldOut(classes, np.empty(0)), scoring=scoring)

        def of(fold: Fold) -> Callable[[np.ndarray], float]:
            at = fold.held_out
            counts = None if weights is None else weights[at]
            if counts is not None and not counts.any():
                raise SoftmarginError("the held-out rows of a fold all have the sample weight 0: choose other folds.")
            if scorer is None:
                truth = y[at]
                return lambda decisions: float(
                    np.average(labels_from_scores(decisions, classes) == truth, weights=counts)
                )
            part, truth = _safe_indexing(X, at), y[at]
            more = {} if counts is None else {"sample_weight": counts}
            return lambda decisions: float(scorer(HeldOut(classes, decisions), part, truth, **more))

        return of

    def _warn_of_gaps(self, cells: Sequence[Cell], gaps: np.ndarray, stop: Stop) -> None:
        """Once, if solutions of the search did not reach the tolerance; the frames are those down from `fit`."""
        open_ones = [cell for cell in cells if not cell.reached_goal]
        if not open_ones:
            return
        worst = Status.worst(status for cell in open_ones for status in cell.statuses)
        warnings.warn(
            f"{len(open_ones)} of the {len(cells)} solutions of the search ended before tol={stop.tol:g}. {worst} The "
            f"largest relative duality gap is {np.nanmax(gaps):.2g}; relative_gaps_ has all of them. The scores are "
            "those of what was reached: raise max_seconds or max_iter, scale the features, or leave out the largest C.",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _best(self) -> Any:
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(
                f"this {type(self).__name__} was fitted with refit=False and holds no model: fit a "
                f"{self._plain_type.__name__} with C={self.C_:g}, or use refit=True."
            )
        return self.best_estimator_

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row, by `best_estimator_`."""
        return self._best().predict(X)

    def decision_function(self, X: Any) -> np.ndarray:
        """The decision values of `best_estimator_`."""
        return self._best().decision_function(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of `best_estimator_` on these rows by `scoring`; accuracy if that is None."""
        more = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(check_scoring(self._best(), scoring=self.scoring)(self._best(), X, y, **more))

    @property
    def coef_(self) -> np.ndarray:
        """`coef_` of `best_estimator_`."""
        return self._best().coef_

    @property
    def intercept_(self) -> np.ndarray:
        """`intercept_` of `best_estimator_`."""
        return self._best().intercept_

    @property
    def certificate_(self) -> Certificate:
        """`certificate_` of `best_estimator_`."""
        return self._best().certificate_

    @property
    def n_iter_(self) -> Any:
        """`n_iter_` of `best_estimator_`."""
        return self._best().n_iter_


def _folds(cv: Any, y: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> list[Fold]:
    """The splits of scikit-learn's `cv`; a row that a split names twice in training counts twice."""
    folds: list[Fold] = []
    for train, test in check_cv(cv, y, classifier=True).split(np.zeros((y.size, 1)), y):
        train, test = (np.flatnonzero(part) if part.dtype == bool else part for part in map(np.asarray, (train, test)))
        of_fold = weights * np.bincount(train, minlength=y.size)
        if np.count_nonzero(np.bincount(codes, of_fold)) < 2:
            raise SoftmarginError(
                f"the training rows of fold {len(folds)} have one class only: use fewer folds, or stratified ones."
            )
        if test.size == 0:
            raise SoftmarginError(f"fold {len(folds)} holds out no rows, so that there is nothing to score.")
        folds.append(Fold(of_fold, test))
    if not folds:
        raise SoftmarginError(f"cv={cv!r} gives no splits.")
    return folds


def _key(gamma: Any) -> float:
    return gamma if isinstance(gamma, float) else 0.0
