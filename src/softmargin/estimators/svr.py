"""Kernel support vector regression."""

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if

from softmargin.core.errors import SoftmarginError
from softmargin.core.stopping import Stop
from softmargin.estimators import validation
from softmargin.estimators.callbacks import with_callbacks
from softmargin.estimators.incremental import IncrementalMixin, can_learn
from softmargin.estimators.kernel_score_base import KernelScore
from softmargin.estimators.kernel_targets import Numbers
from softmargin.estimators.training_rows import TrainingRows


class SVR(IncrementalMixin, RegressorMixin, KernelScore):
    """Support vector regression with a kernel, exact and with a certificate.

    Minimises ``1/2 |w|^2 + C * sum_i s_i max(0, |y_i - w.phi(x_i) - b| - epsilon)`` through its dual, where phi is the
    feature map of the kernel.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum of losses; larger means less regularisation.
    epsilon : float, default=0.1
        Deviations from y up to this cost nothing. It is in the units of y.
    kernel : {"rbf", "linear", "poly", "sigmoid", "laplacian", "precomputed"} or callable, default="rbf"
    gamma : {"scale", "auto"} or float, default="scale"
    degree : int, default=3
    coef0 : float, default=0.0
        As of `SVC`.
    solver : {"auto", "block", "smo", "active_set", "ipm"} or solver object, default="auto"
    working_set : str, default="auto"
        The rule by which "smo" chooses its pair, as of `SVC`.
    shrinking : bool, default=True
    cache_bytes : float or None, default=None
    cache_size : float or None, default=None
        Memory for kernel values, in bytes or in MB, as of `SVC`.
    tol : float, default=1e-3
        Stop when the relative duality gap, or the KKT violation, is at most this, confirmed by the judge.
    stopping : {"gap", "kkt"}, default="gap"
        What `tol` is for. "kkt" is LIBSVM's rule.
    max_iter : int or None, default=None
        Limit on the iterations; None or -1 is no limit.
    max_seconds : float or None, default=None
        Limit on the time of solving; None is no limit.
    n_jobs : int or None, default=None
        Threads: None is one, -1 all. The result is the same, bit for bit, whatever the number.
    warm_start : bool, default=False
        Continue from the last fit: exactly, if data, targets, weights and kernel are the same; else from its dual
        variables, if the number of rows is.
    verbose : int, default=0
        1 shows a progress line.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_ (linear kernel), fit_status_, shape_fit_, \
n_iter_, n_features_in_, feature_names_in_ : as in scikit-learn's SVR
    gamma_ : float
        The value of gamma that was used.
    n_free_, n_bounded_ : array of shape (1,)
        Support vectors on the edge of the tube, and those outside of it, whose coefficients are C times their weights.
    row_ids_ : array of shape (n_rows,)
        Of the training rows, for `forget`: there if the model keeps them, that is with ``solver="active_set"``,
        ``warm_start=True`` or after `partial_fit`.
    certificate_, certificates_, status_, trace_, counts_, seconds_ : as of `SVC`

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from softmargin import SVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SVR(C=100, epsilon=5).fit(X, y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

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

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SVR":
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

    @available_if(can_learn)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SVR":
        """Learn more rows: the model is then that of a fit on all rows so far, at a fraction of its cost.

        The optimum is restored by pivots of the active set, whatever `solver` is, and judged as after `fit`. `gamma_`,
        which ``gamma="scale"`` takes from the data, is that of the first call.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), default=None

        Returns
        -------
        self
            The new rows have ids of their own at the end of `row_ids_`. After Ctrl-C the model knows the new rows, with
            the best solution so far, and the interrupt is raised again; the next call goes on from there.
        """
        if not hasattr(self, "dual_coef_"):
            return self._fit(X, y, sample_weight, solver=self._active_set(), copy=True)
        training = self._known_training()
        X, y = self._checked(X, y, reset=False)
        return self._change(self._adding(X, y, sample_weight), training)

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
