"""The linear one-class support vector machine."""

from typing import Any

import numpy as np

from softmargin.core.kinds import COORDINATES, PLANES
from softmargin.core.result import Solution, WeightStart
from softmargin.data.convert import as_products, is_storage
from softmargin.data.rows import Products
from softmargin.estimators import validation
from softmargin.estimators.linear_work import linear_solver
from softmargin.estimators.machines.base import Job, Work
from softmargin.estimators.machines.linear_base import LinearMachine, Posed
from softmargin.estimators.machines.novelty import Novelty
from softmargin.estimators.problem_settings import LinearSetting
from softmargin.estimators.scoring import linear_scores
from softmargin.prediction.labels import finite_scores, inside_or_outside
from softmargin.problems.hinge_targets import OneClass
from softmargin.problems.intercepts import Free
from softmargin.solvers.base import Solver


class LinearOneClassSVM(Novelty, LinearMachine):
    """What `softmargin.LinearOneClassSVM` learns with; its parameters and attributes are told there."""

    def __init__(
        self,
        nu: float = 0.5,
        *,
        solver: Any = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.nu = nu
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Train on X.

        Parameters
        ----------
        X : array-like, sparse matrix or Store of shape (n_rows, n_features)
            float32, float64, integers and bool are used in place, dense in either order or CSR. A `Store` stays on
            disk.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array-like of shape (n_rows,), default=None
            2 is the same as repeating the row, 0 as leaving it out.

        Returns
        -------
        self
            After Ctrl-C the model is fitted with the best solution so far, and the interrupt is raised again (while X
            is still being checked there is nothing to keep yet).
        """
        return self._fit(X, y, {"sample_weight": sample_weight})

    def _solver(self) -> Solver:
        return linear_solver(self.solver, (PLANES, COORDINATES), self.random_state)

    def _setting(self) -> LinearSetting:
        validation.share(self.nu, "nu")
        return LinearSetting(1.0, Free())

    def _validated(self, X: Any, y: Any, **options: Any) -> Any:
        """Targets are none of its business."""
        if is_storage(X):
            return X, self._checked_beside(X, np.zeros(X.n_rows), **options)
        return self._matrix(X, **options), y

    def _posed(self, setting: LinearSetting, X: Any, y: Any, sample_weight: Any = None) -> Posed:
        weights = validation.row_weights(sample_weight, as_products(X).n_rows)
        validation.finite_scale(1.0, [weights])
        return Posed(
            setting,
            [OneClass(weights, float(self.nu))],
            titles=["LinearOneClassSVM"],
            known={},
            found=_attributes,
            stored=lambda rows: [_solution(self, rows)],
        )

    @property
    def offset_(self) -> np.ndarray:
        """Scores below it are those of outliers."""
        return -self.intercept_

    def score_samples(self, X: Any) -> np.ndarray:
        """The score w.x of each row: the larger, the more it is like the training rows."""
        X = self._to_predict(X)
        return finite_scores(linear_scores(X, self.coef_))

    def decision_function(self, X: Any) -> np.ndarray:
        """``score_samples(X) - offset_``: negative for outliers."""
        X = self._to_predict(X)
        return finite_scores(linear_scores(X, self.coef_, self.intercept_))

    def predict(self, X: Any) -> np.ndarray:
        """1 for rows that are like the training rows, -1 for outliers."""
        return inside_or_outside(self.decision_function(X))

    def _model_starts(self, job: Job, work: Work, rows: Products) -> list[WeightStart] | None:
        return [WeightStart(self.coef_[0])] if self.coef_.shape == (1, rows.n_cols) else None


def _attributes(rows: Products, solutions: list[Solution]) -> dict[str, np.ndarray]:
    [solution] = solutions
    return {"coef_": solution.w[None, :], "intercept_": np.array([solution.b]), "dual_": solution.alpha}


def _solution(model: LinearOneClassSVM, rows: Products) -> Solution:
    """The inverse of `_attributes`; models of other programs have no dual vectors."""
    return Solution(model.coef_[0], float(model.intercept_[0]), getattr(model, "dual_", np.zeros(rows.n_rows)))
