"""Linear support vector regression."""

from typing import Any

import numpy as np

from softmargin.core.kinds import COORDINATES, PLANES
from softmargin.core.result import Solution, WeightStart
from softmargin.data.rows import Products
from softmargin.estimators import validation
from softmargin.estimators.linear_work import linear_solver, solver_of_squares
from softmargin.estimators.machines.base import Job, Work
from softmargin.estimators.machines.linear_base import LinearMachine, Posed, chosen_intercept
from softmargin.estimators.problem_settings import LinearSetting, SquaredSetting
from softmargin.estimators.scoring import linear_scores
from softmargin.prediction.labels import finite_scores
from softmargin.problems.hinge_targets import Tube
from softmargin.problems.squared_targets import SquaredTube
from softmargin.solvers.base import Solver


class LinearSVR(LinearMachine):
    """What `softmargin.LinearSVR` learns with; its parameters and attributes are told there."""

    def __init__(
        self,
        C: float = 1.0,
        *,
        epsilon: float = 0.0,
        loss: str = "epsilon_insensitive",
        solver: Any = "auto",
        tol: float = 1e-3,
        fit_intercept: bool = True,
        intercept: str = "free",
        intercept_scaling: float = 1.0,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept = intercept
        self.intercept_scaling = intercept_scaling
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Train on X and y.

        Parameters
        ----------
        X : array-like, sparse matrix or Store of shape (n_rows, n_features)
            float32, float64, integers and bool are used in place, dense in either order or CSR. A `Store` stays on
            disk.
        y : array-like of shape (n_rows,)
            Left out if X is a `Store` that holds it, and so are weights.
        sample_weight : array-like of shape (n_rows,), default=None
            2 is the same as repeating the row, 0 as leaving it out.

        Returns
        -------
        self
            After Ctrl-C the model is fitted with the best solution so far, and the interrupt is raised again (while X
            and y are still being checked there is nothing to keep yet).
        """
        return self._fit(X, y, {"sample_weight": sample_weight})

    @property
    def _is_squared(self) -> bool:
        plain, squared = "epsilon_insensitive", "squared_epsilon_insensitive"
        return validation.one_of(self.loss, "loss", (plain, squared)) == squared

    def _solver(self) -> Solver:
        if self._is_squared:
            return solver_of_squares(self.solver, self.loss, self.random_state)
        return linear_solver(self.solver, (PLANES, COORDINATES), self.random_state)

    def _setting(self) -> LinearSetting:
        validation.not_negative(self.epsilon, "epsilon")
        setting = SquaredSetting if self._is_squared else LinearSetting
        return setting(validation.positive_number(self.C, "C"), chosen_intercept(self))

    def _posed(self, setting: LinearSetting, X: Any, y: np.ndarray, sample_weight: Any = None) -> Posed:
        y = validation.regression_targets(y, float(self.epsilon))
        weights = validation.row_weights(sample_weight, y.size)
        with np.errstate(over="ignore"):
            sizes = weights * np.abs(y) * (np.abs(y) if self._is_squared else 1.0)
        validation.finite_scale(setting.C, [weights, sizes])
        target = SquaredTube if self._is_squared else Tube
        return Posed(
            setting,
            [target(y, weights, float(self.epsilon))],
            titles=["LinearSVR"],
            known={},
            found=attributes,
            stored=lambda rows: [_solution(self, rows)],
        )

    def predict(self, X: Any) -> np.ndarray:
        """A number for each row."""
        X = self._to_predict(X)
        return finite_scores(linear_scores(X, self.coef_[None, :], self.intercept_))

    def _model_starts(self, job: Job, work: Work, rows: Products) -> list[WeightStart] | None:
        if self.coef_.shape != (rows.n_cols,):
            return None
        return [self._setting().start_from(self.coef_, float(self.intercept_[0]))]


def attributes(rows: Products, solutions: list[Solution]) -> dict[str, np.ndarray]:
    [solution] = solutions
    return {"coef_": solution.w, "intercept_": np.array([solution.b]), "dual_": solution.alpha}


def _solution(model: LinearSVR, rows: Products) -> Solution:
    """The inverse of `attributes`; models of other libraries have no dual vectors."""
    dual = getattr(model, "dual_", None)
    alpha = np.zeros(rows.n_rows) if dual is None else dual
    return Solution(np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]), alpha)
