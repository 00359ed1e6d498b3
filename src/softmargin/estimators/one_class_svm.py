"""The one-class support vector machine."""

from sklearn.base import OutlierMixin

from softmargin.estimators.callbacks import with_callbacks
from softmargin.estimators.machines import one_class_svm as machine
from softmargin.estimators.surface import KernelEstimator


class OneClassSVM(OutlierMixin, KernelEstimator, machine.OneClassSVM):
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

    fit = with_callbacks(machine.OneClassSVM.fit)
