"""Features whose inner products are nearly those of a kernel, for linear machines on many rows.

    K ~ V V',  V has n_components columns:  fit finds V by pivots       linalg/pivoted_cholesky.py
    a row x becomes L^-1 k(x),  k(x) = its kernel values with the pivots, L = V at the pivots (lower triangular)

L^-1 k(x) are the coordinates of phi(x), projected onto the span U of the pivots' phi. So a linear machine on these
features solves the kernel machine's problem over w in U, and what it finds is a model of that problem with the same
objective; docs/maths/low_rank.md has the bound on what the rest of the space would gain.

Reference: S. Fine, K. Scheinberg, Efficient SVM Training Using Low-Rank Kernel Representations, JMLR 2, 2001, Figure 2;
T. Joachims, Training Linear SVMs in Linear Time, KDD 2006, Section 6, which proposes kernels by sampling.
"""

from numbers import Integral
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from softmargin.core.errors import SoftmarginError
from softmargin.core.threads import Workers, one_blas_thread, thread_count
from softmargin.data.convert import as_rows
from softmargin.estimators import validation
from softmargin.estimators.kernel_choice import checked_kernel, kernel_of
from softmargin.estimators.kernel_scoring import kernel_scores
from softmargin.kernels.matrix import DirectRows, KernelRows
from softmargin.kernels.precomputed import PrecomputedRows
from softmargin.linalg.pivoted_cholesky import LowRank, pivoted_cholesky


class LowRankMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Features for a kernel, from an incomplete Cholesky factor of its matrix.

    Rows of the kernel matrix are chosen one by one, each time that of the largest remaining diagonal entry. Nothing is
    drawn at random. A linear machine on the features solves the problem of the kernel over models that are sums over
    the chosen rows, with a certificate; `bound` says how much better models of the whole kernel can be.

    Parameters
    ----------
    n_components : int, default=100
        Features at most, which is the number of kernel rows that are chosen.
    kernel : {"rbf", "linear", "poly", "laplacian", "sigmoid", "precomputed"} or callable, default="rbf"
    gamma : {"scale", "auto"} or float, default="scale"
    degree : int, default=3
    coef0 : float, default=0.0
        As of `SVC`. The kernel must be positive semi-definite.
    tol : float, default=1e-10
        End with fewer features where the trace that is left is at most this share of the whole.
    n_jobs : int or None, default=None
        Threads: None is one, -1 all. The result is the same, bit for bit.

    Attributes
    ----------
    components_ : array or CSR matrix of shape ``(n_components_, n_features)``
        The chosen rows; empty for a precomputed kernel.
    component_indices_ : array of shape ``(n_components_,)``
        Their positions in X, in the order of their choice.
    factor_ : array of shape ``(n_components_, n_components_)``
        L, lower triangular: L L' is the kernel matrix of the chosen rows.
    trace_, trace_error_ : float
        Trace of the kernel matrix K of the training rows, and of what the features leave out of it, K - V V'. No entry
        of that is larger.
    residuals_ : array of shape (n_rows,)
        The diagonal of K - V V'.
    n_components_, gamma_, n_features_in_, feature_names_in_ : int, float, int, ndarray
        How many features there are, the gamma that was used, and what scikit-learn asks for.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from softmargin import LinearSVC, LowRankMap
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(LowRankMap(30, gamma=0.5), LinearSVC()).fit(X, y)
    >>> model[-1].certificate_.relative_gap <= 1e-3
    True
    """

    components_: Any
    component_indices_: np.ndarray
    factor_: np.ndarray
    residuals_: np.ndarray
    n_components_: int
    gamma_: float

    def __init__(
        self,
        n_components: int = 100,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-10,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_precomputed
        tags.input_tags.pairwise = self._is_precomputed
        tags.transformer_tags.preserves_dtype = []
        return tags

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def fit(self, X: Any, y: Any = None) -> "LowRankMap":
        """Choose the rows; y is ignored."""
        self._factor(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """The same, and the features of X: those of `transform`, but for rounding, without computing them again."""
        return self._factor(X)

    def _factor(self, X: Any) -> np.ndarray:
        """Fit; V is returned and not kept."""
        n_components, n_threads = self.n_components, thread_count(self.n_jobs)
        if not isinstance(n_components, Integral) or isinstance(n_components, bool) or n_components < 1:
            raise SoftmarginError(f"n_components={n_components!r} must be an integer of at least 1, such as 100.")
        tol = validation.not_negative(self.tol, "tol")
        X = self._validated(X)
        with one_blas_thread():
            workers = Workers(n_threads)
            try:
                rows = as_rows(X, workers)
                kernel = checked_kernel(self, rows, np.ones(rows.n_rows))
                source: KernelRows
                if kernel is None:
                    validation.kernel_matrix(rows.native())
                    source = PrecomputedRows(rows.native())
                else:
                    source = DirectRows(rows, kernel, np.float64, workers)
                found = self._checked(source, int(n_components), tol, workers)
            finally:
                workers.close()
        self.gamma_ = float(getattr(kernel, "gamma", 0.0))
        self.component_indices_ = found.pivots
        self.components_ = np.empty((0, 0)) if kernel is None else rows.take(found.pivots).native()
        self.n_components_ = found.pivots.size
        self.factor_ = np.tril(found.V[found.pivots])
        self.residuals_ = np.maximum(found.rest, 0.0)
        self.trace_, self.trace_error_ = found.trace, found.residual
        return found.V

    def _checked(self, source: KernelRows, n_components: int, tol: float, workers: Workers) -> LowRank:
        diagonal = source.diag()
        if diagonal.min() >= 0.0:
            row = lambda i: source.rows(np.array([i]))[0]  # noqa: E731
            found = pivoted_cholesky(row, diagonal, n_components, tol, workers)
            if not found.pivots.size:
                raise SoftmarginError(
                    f"the kernel {self.kernel!r} is zero on all of these rows, so that there are no features: check X."
                )
            if not found.is_indefinite:
                return found
        raise SoftmarginError(
            f"the kernel {self.kernel!r} is not positive semi-definite on these rows, so that it has no features: use "
            "a kernel such as 'rbf', or SVC(solver='smo') with this one."
        )

    def transform(self, X: Any) -> np.ndarray:
        """The features of X, in float64: shape ``(n_rows, n_components_)``.

        With a precomputed kernel X holds kernel values of new rows and all training rows.
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        inverse = solve_triangular(self.factor_, np.eye(self.n_components_), lower=True)
        nothing = np.zeros(self.n_components_)
        where = (kernel_of(self), self.component_indices_, self.components_)
        found = kernel_scores(X, *where, inverse.T, nothing, thread_count(self.n_jobs))
        if not np.isfinite(found).all():
            raise SoftmarginError("values of the kernel overflow on these rows: scale the features, as in training.")
        return found

    def bound(self, dual: Any, X: Any = None) -> Any:
        """By how much the optimum with the whole kernel may be below that of these features, at most.

        `dual` are the variables beta of a machine that was trained on the features of the training rows: with its
        `certificate_` the optimum with the whole kernel lies between its `dual` less this bound and its `primal`, which
        is also the objective of the model itself with the whole kernel.

        Parameters
        ----------
        dual : array of shape (n_rows,) or (n_rows, n_problems), such as `dual_` of `LinearSVC`
        X : the training rows, default=None
            Without them the bound is ``1/2 (sum_i |beta_i| sqrt(residual_i))^2``, which costs nothing. With them it is
            1/2 beta'(K - V V')beta, which is smaller, and takes the kernel values of all training rows with those whose
            variable is not zero; signs count then, so that `dual_` of `LinearSVC` must be multiplied with y = -1, 1.

        Returns
        -------
        float, or an array of shape (n_problems,)
            Computed in floating point, without a bound of its own rounding.
        """
        check_is_fitted(self)
        beta = np.asarray(dual, dtype=np.float64)
        if beta.ndim not in (1, 2) or beta.shape[0] != self.residuals_.size:
            raise SoftmarginError(
                f"the dual variables have the shape {beta.shape} for {self.residuals_.size} training rows: hand in "
                "dual_ of a model that was fitted to the features of all of them."
            )
        if X is None:
            found = 0.5 * np.square(np.sqrt(self.residuals_) @ np.abs(beta))
        else:
            columns = beta.reshape(len(beta), -1)
            features = self.transform(X)
            X = self._validated(X, reset=False)
            support = np.flatnonzero(columns.any(axis=1))
            vectors = np.empty((0, 0)) if self._is_precomputed else X[support]
            nothing, n_threads = np.zeros(columns.shape[1]), thread_count(self.n_jobs)
            outputs = kernel_scores(X, kernel_of(self), support, vectors, columns[support], nothing, n_threads)
            squares = (columns * outputs).sum(axis=0) - np.square(features.T @ columns).sum(axis=0)
            found = 0.5 * np.maximum(squares, 0.0).reshape(beta.shape[1:])
        return float(found) if beta.ndim == 1 else found

    def _validated(self, X: Any, **options: Any) -> Any:
        accept_sparse = False if self._is_precomputed else "csr"
        return validate_data(self, X, accept_sparse=accept_sparse, accept_large_sparse=True, dtype="numeric", **options)
