"""The one-class support vector machine."""

from typing import Any

import numpy as np

from softmargin.core.stopping import Stop
from softmargin.estimators import validation
from softmargin.estimators.kernel_targets import Inliers
from softmargin.estimators.machines.kernel_score_base import KernelScoreMachine
from softmargin.estimators.machines.novelty import Novelty
from softmargin.prediction.labels import inside_or_outside


class OneClassSVM(Novelty, KernelScoreMachine):
    """What `softmargin.OneClassSVM` learns with; its parameters and attributes are told there."""

    linear_twin = "LinearOneClassSVM"
    C = 1.0  # it has no such parameter: the weights alone bound the dual variables

    def __init__(
        self,
        nu: float = 0.5,
        *,
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
        self.nu = nu
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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Train on X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or a kernel matrix if it is "precomputed"
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array-like of shape (n_rows,), default=None
            2 is the same as repeating the row, 0 as leaving it out.

        Returns
        -------
        self
            After Ctrl-C the model is fitted with the best solution so far, and the interrupt is raised again.
        """
        return self._fit(X, y, sample_weight, solver=self.solver)

    def _limits(self) -> tuple[float, Stop, int, float | None]:
        validation.share(self.nu, "nu")
        return super()._limits()

    def _checked(self, X: Any, y: Any, **options: Any) -> tuple[Any, Any]:
        return self._validated(X, **options), y

    def _target(self, y: Any, index: np.ndarray, weights: np.ndarray) -> Inliers:
        return Inliers(index, weights, float(self.nu))

    @property
    def offset_(self) -> np.ndarray:
        """Scores below it are those of outliers."""
        return -self.intercept_

    def decision_function(self, X: Any) -> np.ndarray:
        """``score_samples(X) - offset_``: negative for outliers."""
        return self._scores(X)

    def score_samples(self, X: Any) -> np.ndarray:
        """The score of each row: the larger, the more it is like the training rows."""
        return self._scores(X) + self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """1 for rows that are like the training rows, -1 for outliers."""
        return inside_or_outside(self.decision_function(X))
