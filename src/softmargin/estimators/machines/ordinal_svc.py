"""OrdinalSVC, the linear classifier for classes that have an order."""

from typing import Any

import numpy as np

from softmargin.core.kinds import PLANES
from softmargin.core.result import Certificate, Solution
from softmargin.data.rows import Products
from softmargin.estimators import validation
from softmargin.estimators.linear_work import linear_solver
from softmargin.estimators.machines.linear_base import LinearMachine, Posed
from softmargin.estimators.machines.rank_svm import stored_ranking
from softmargin.estimators.problem_settings import OrdinalSetting, OrdinalTarget, RankSetting, RankTarget
from softmargin.estimators.scoring import linear_scores
from softmargin.linalg.thresholds import COSTS, assign_ranks, depths, fit_thresholds
from softmargin.prediction.labels import finite_scores
from softmargin.problems.ordinal import OrdinalSolution
from softmargin.solvers.base import Solver

THRESHOLDS = ("fitted", "immediate", "all")


class OrdinalSVC(LinearMachine):
    """What `softmargin.OrdinalSVC` learns with; its parameters and attributes are told there."""

    classes_: np.ndarray
    thresholds_: np.ndarray

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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Train on X and y.

        Parameters
        ----------
        X : array-like, sparse matrix or Store of shape (n_rows, n_features)
            The training rows. A `Store` stays on disk. Dense arrays, in C or Fortran order, and CSR matrices of
            float32, float64, integers or bool are used in place, without a copy.
        y : array-like of shape (n_rows,)
            The class of each row: numbers, an ordered pandas Categorical, or labels whose order is given by the
            parameter `classes`. Leave it out if X is a `Store` that holds the classes, and likewise sample_weight.
        sample_weight : array-like of shape (n_rows,), default=None
            The weight of each row. A weight of 2 has the same effect as repeating the row, a weight of 0 the same as
            leaving it out. None means 1 for every row.

        Returns
        -------
        self
            The fitted model. If Ctrl-C interrupts the fit, the model is fitted with the best solution found so far, and
            then KeyboardInterrupt is raised again. While X and y are still being checked, there is no solution to keep.
        """
        order = validation.order_of(y) if self.classes is None else self.classes
        return self._fit(X, y, {"sample_weight": sample_weight}, order=order)

    def _solver(self) -> Solver:
        return linear_solver(self.solver, (PLANES,))

    def _setting(self) -> OrdinalSetting | RankSetting:
        """The problem to be minimised. "fitted" thresholds are placed afterwards, so the problem is only a ranking.

        In that ranking all rows belong to one query, because every two rows can be compared.
        """
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
        """The score w.x of each row. A larger score means a higher class; `thresholds_` are where classes change."""
        X = self._to_predict(X)
        return finite_scores(linear_scores(X, self.coef_[None, :]))

    def decision_function(self, X: Any) -> np.ndarray:
        """How far the score of each row lies inside each class: positive inside, negative outside.

        The result has the shape (n_rows, n_classes). Column k is ``min(score - thresholds_[k - 1], thresholds_[k] -
        score)``, so that in each row the predicted class has the largest entry. A class beyond an infinite threshold,
        which is never predicted, has the lowest finite number. For two classes the result is ``score -
        thresholds_[0]``, of shape (n_rows,); it is positive for the second class.
        """
        scores = self.predict_score(X)
        return scores - self.thresholds_[0] if self.classes_.size == 2 else depths(scores, self.thresholds_)

    def predict(self, X: Any) -> np.ndarray:
        """The predicted class of each row."""
        scores = self.predict_score(X)
        return self.classes_[assign_ranks(scores, self.thresholds_)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the rows whose class is predicted correctly.

        y may hold all labels that `fit` takes, also fractions such as half stars, which scikit-learn's own accuracy
        refuses.
        """
        predicted = self.predict(X)
        return float(np.average(predicted == self._checked_targets(y, len(predicted)), weights=sample_weight))


def ordinal_weights(estimator: Any, classes: np.ndarray, ranks: np.ndarray, sample_weight: Any) -> np.ndarray:
    """The weight of each row: its sample weight times the weight of its class.

    Weights that leave rows of one class only are refused, because then there is nothing to tell apart.
    """
    base = validation.row_weights(sample_weight, ranks.size)
    weights = base * validation.class_weights(estimator.class_weight, classes, ranks, base)[ranks]
    validation.two_classes_left(ranks, weights)
    return weights


def ordinal_target(
    setting: OrdinalSetting | RankSetting, ranks: np.ndarray, weights: np.ndarray
) -> tuple[OrdinalTarget | RankTarget, np.ndarray]:
    """What is to be learned, and the ranks of the classes that have rows with weight."""
    present = np.flatnonzero(np.bincount(ranks, weights))
    if isinstance(setting, RankSetting):
        target = setting.target(ranks.astype(np.float64), np.zeros(ranks.size, dtype=np.int64), weights)
        validation.finite_scale(1.0, [np.array([target.pairs.n_pairs])])
        return target, present
    validation.finite_scale(setting.C * present.size, [weights])
    # The problem numbers only the ranks that have weight. A row without weight may have a rank that is not among them;
    # it takes no part, so it may have any of their numbers.
    places = np.minimum(np.searchsorted(present, ranks), present.size - 1)
    return OrdinalTarget(places, weights), present


def _finite_thresholds(
    scores: np.ndarray, ranks: np.ndarray, weights: np.ndarray, n_ranks: int, cost: str
) -> np.ndarray:
    """The thresholds with the least training error, made finite.

    A threshold is infinite if it is best to have all rows on one side of it. Then it is placed at a distance of 1, the
    margin, from the nearest score.
    """
    found, _ = fit_thresholds(scores, ranks, weights, n_ranks, cost)
    return np.clip(found, scores.min() - 1.0, scores.max() + 1.0)


def _spread(between: np.ndarray, present: np.ndarray, n_ranks: int) -> np.ndarray:
    """Thresholds between all ranks, from the thresholds between the ranks that have rows.

    A rank without rows lies between two equal thresholds, or beyond an infinite one, so that no score belongs to it.
    """
    thresholds = np.full(n_ranks - 1, np.inf)
    thresholds[: present[0]] = -np.inf
    thresholds[present[0] : present[-1]] = np.repeat(between, np.diff(present))
    return thresholds
