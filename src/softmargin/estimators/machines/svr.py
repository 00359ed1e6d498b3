"""Kernel support vector regression."""

from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.stopping import Stop
from softmargin.estimators import validation
from softmargin.estimators.kernel_targets import Numbers
from softmargin.estimators.machines.keeping import KeepsTraining
from softmargin.estimators.machines.kernel_score_base import KernelScoreMachine
from softmargin.estimators.training_rows import TrainingRows


class SVR(KeepsTraining, KernelScoreMachine):
    """What `softmargin.SVR` learns with; its parameters and attributes are told there."""

    linear_twin = "LinearSVR"

    def __init__(
        self,
        C: float = 1.0,
        *,
        epsilon: float = 0.1,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        solver: Any = "auto",
        working_set: str = "auto",
        shrinking: bool = True,
        cache_bytes: float | None = None,
        cache_size: float | None = None,
        tol: float = 1e-3,
        stopping: str = "gap",
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.solver = solver
        self.working_set = working_set
        self.shrinking = shrinking
        self.cache_bytes = cache_bytes
        self.cache_size = cache_size
        self.tol = tol
        self.stopping = stopping
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train on X and y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or a kernel matrix if it is "precomputed"
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), default=None
            2 is the same as repeating the row, 0 as leaving it out.

        Returns
        -------
        self
            After Ctrl-C the model is fitted with the best solution so far, and the interrupt is raised again.
        """
        return self._fit(X, y, sample_weight, solver=self.solver)

    def _limits(self) -> tuple[float, Stop, int, float | None]:
        self._width()
        return super()._limits()

    def _width(self) -> float:
        """epsilon, checked."""
        return validation.not_negative(self.epsilon, "epsilon")

    def _checked(self, X: Any, y: Any, *, copy: bool = False, **options: Any) -> tuple[Any, np.ndarray]:
        X, y = self._validated(X, y=y, copy=copy, **options)
        y = validation.regression_targets(y, self._width())
        return X, y.copy() if copy else y  # scikit-learn copies X only

    def _told_apart_by(self, y: np.ndarray) -> np.ndarray:
        return y

    def _target(self, y: np.ndarray, index: np.ndarray, weights: np.ndarray) -> Numbers:
        epsilon = self._width()
        return Numbers(index, validation.regression_targets(y[index], epsilon), weights, epsilon)

    def _loss_parameters(self) -> tuple:
        return (self._width(),)

    def _check_rows_left(self, training: TrainingRows, left: np.ndarray) -> None:
        if not training.weights[left].any():
            raise SoftmarginError("no row with a weight would be left to learn from: keep one, or fit a new model.")

    def _check_left_out(self, training: TrainingRows) -> None:
        if np.count_nonzero(training.weights) < 2:
            raise SoftmarginError("leave_one_out needs at least two rows with a weight: learn more rows first.")

    def predict(self, X: Any) -> np.ndarray:
        """A number for each row."""
        return self._scores(X)
