"""The linear one-class support vector machine."""

from sklearn.base import OutlierMixin

from softmargin.estimators.callbacks import with_callbacks
from softmargin.estimators.machines import linear_one_class_svm as machine
from softmargin.estimators.surface import Estimator


class LinearOneClassSVM(OutlierMixin, Estimator, machine.LinearOneClassSVM):
    """Novelty detection by a plane between the rows and the origin, exact and with a certificate.

    Minimises ``1/2 |w|^2 + sum_i s_i max(0, offset - w.x_i) - offset * nu * sum_i s_i`` over w and the offset: the
    one-class support vector machine of Schölkopf et al. (2001) with a linear kernel. Rows whose score w.x is below the
    offset are outliers. A plane tells little about rows around the origin: use `OneClassSVM` with its RBF kernel for a
    region of any shape, or map the rows first, for example with scikit-learn's `Nystroem`.

    Parameters
    ----------
    nu : float, default=0.5
        About the share of the training rows that become outliers: an upper bound of it, and a lower bound of the share
        of support vectors. Above 0, at most 1.
    solver : {"auto", "ocas", "coordinate", "cpa"} or solver object, default="auto"
        The algorithm; "auto" is "coordinate" (dual coordinate descent) where features are many or data are few, and
        "ocas" (cutting planes) where features are few and data many, or where coordinate descent does not get on;
        `solver_` says which. An object such as ``softmargin.OCAS(mixing=0.2)`` carries its own settings.
    tol : float, default=1e-3
        Stop when the relative duality gap is at most this, confirmed by the judge.
    max_iter : int or None, default=None
        Limit on the iterations; None or -1 is no limit.
    max_seconds : float or None, default=None
        Limit on the time of solving; compilation, validation and the judge are not counted. None is no limit.
    n_jobs : int or None, default=None
        Threads: None is one, -1 all. The result is the same, bit for bit, whatever the number.
    warm_start : bool, default=False
        Continue from the last fit: exactly, if data, weights and nu are the same; else from its weights.
    random_state : int, RandomState instance or None, default=None
        Seed of "coordinate", which visits rows in random order. None is a fixed one, so that results repeat. "ocas" and
        "cpa" do not use it.
    verbose : int, default=0
        1 shows a progress line.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
    offset_ : ndarray of shape (1,)
        Scores below it are those of outliers.
    intercept_ : ndarray of shape (1,)
        ``-offset_``
    certificate_ : Certificate
        `primal`, `dual`, `gap`, `relative_gap`, `kkt_violation`, as the judge found them from the data. The optimum of
        this problem is at most zero.
    certificates_ : list of Certificate
        The same as a list of one.
    dual_ : ndarray of shape (n_rows,)
        The dual variables behind the bound.
    status_, trace_, n_iter_, seconds_ : as of `LinearSVR`
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from softmargin import LinearOneClassSVM
    >>> X, _ = load_wine(return_X_y=True)
    >>> model = LinearOneClassSVM(nu=0.1).fit(X)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    >>> bool((model.predict(X) == -1).mean() <= 0.11)
    True
    """

    fit = with_callbacks(machine.LinearOneClassSVM.fit)
