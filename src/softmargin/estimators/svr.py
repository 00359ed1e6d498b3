"""Kernel support vector regression."""

from typing import Any

from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if

from softmargin.estimators.callbacks import with_callbacks
from softmargin.estimators.incremental import IncrementalMixin, can_learn
from softmargin.estimators.machines import svr as machine
from softmargin.estimators.surface import KernelEstimator


class SVR(IncrementalMixin, RegressorMixin, KernelEstimator, machine.SVR):
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
    stopping : {"gap", "kkt", "gain"}, default="gap"
        What `tol` is for, as of `SVC`. "kkt" is LIBSVM's rule, "gain" the HMG paper's.
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

    fit = with_callbacks(machine.SVR.fit)

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
