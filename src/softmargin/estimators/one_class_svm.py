"""The one-class support vector machine."""

from typing import Any

import numpy as np

from softmargin.core.stopping import Stop
from softmargin.estimators import validation
from softmargin.estimators.callbacks import with_callbacks
from softmargin.estimators.kernel_score_base import KernelScore
from softmargin.estimators.kernel_targets import Inliers
from softmargin.estimators.novelty import NoveltyMixin
from softmargin.prediction.labels import inside_or_outside


class OneClassSVM(NoveltyMixin, KernelScore):
    """Novelty detection with a kernel, exact and with a certificate.

    Minimises ``1/2 |w|^2 + sum_i s_i max(0, offset - w.phi(x_i)) - offset * nu * sum_i s_i`` over w and the offset
    through its dual, where phi is the feature map of the kernel (Schölkopf et al., 2001, scaled as in LIBSVM).

    Parameters
    ----------
    nu : float, default=0.5
        About the share of the training rows that become outliers: an upper bound of it, and a lower bound of the share
        of support vectors. Above 0, at most 1.
    kernel, gamma, degree, coef0, solver, working_set, shrinking, cache_bytes, cache_size, tol, stopping, max_iter, \
max_seconds, n_jobs, warm_start, verbose : as of `SVR`

    Attributes
    ----------
    offset_ : ndarray of shape (1,)
        Scores below it are those of outliers.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_ (linear kernel), fit_status_, shape_fit_, \
n_iter_, n_features_in_, feature_names_in_ : as in scikit-learn's OneClassSVM
    gamma_, n_free_, n_bounded_, certificate_, certificates_, status_, trace_, counts_, seconds_ : as of `SVR`
        The optimum of this problem is at most zero, and so is the dual bound.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from softmargin import OneClassSVM
    >>> X, _ = load_wine(return_X_y=True)
    >>> model = OneClassSVM(nu=0.1).fit(X)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

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

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "OneClassSVM":
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
