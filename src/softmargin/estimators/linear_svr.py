"""Linear support vector regression."""

from sklearn.base import RegressorMixin

from softmargin.estimators.callbacks import with_callbacks
from softmargin.estimators.machines import linear_svr as machine
from softmargin.estimators.surface import Estimator


class LinearSVR(RegressorMixin, Estimator, machine.LinearSVR):
    """Linear support vector regression, exact and with a certificate.

    Minimises ``1/2 |w|^2 + C * sum_i s_i max(0, |y_i - w.x_i - b| - epsilon)``, or with the square of that maximum.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum of losses; larger means less regularisation.
    epsilon : float, default=0.0
        Deviations from y up to this cost nothing. It is in the units of y.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        The loss above, or its square. Where the square is minimised, `solver` can only be "auto",
        "coordinate" or "newton".
    solver : {"auto", "ocas", "coordinate", "newton", "cpa"} or solver object, default="auto"
        The algorithm; "auto" is "coordinate" (dual coordinate descent) where features are many or data are few, and
        "ocas" (cutting planes) where features are few and data many, or where coordinate descent does not get on;
        `solver_` says which. If the loss is squared, "auto" is "newton" (Newton's
        method) for few features, and "coordinate" for many. An object such as
        ``softmargin.OCAS(mixing=0.2)`` carries its own settings.
    tol : float, default=1e-3
        Stop when the relative duality gap (primal - dual) / primal is at most this, confirmed by the judge.
    fit_intercept : bool, default=True
        Whether there is an intercept b.
    intercept : {"free", "penalised"}, default="free"
        "free": b is not penalised. "penalised": a constant feature, as in LIBLINEAR.
    intercept_scaling : float, default=1.0
        The value of the constant feature of a penalised intercept: the larger it is, the less b is penalised.
    max_iter : int or None, default=None
        Limit on the iterations; None or -1 is no limit.
    max_seconds : float or None, default=None
        Limit on the time of solving; compilation, validation and the judge are not counted. None is no limit.
    n_jobs : int or None, default=None
        Threads: None is one, -1 all. The result is the same, bit for bit, whatever the number.
    warm_start : bool, default=False
        Continue from the last fit: exactly, if data and weights are the same; with its planes, if only C or tol
        changed; else from its weights.
    random_state : int, RandomState instance or None, default=None
        Seed of "coordinate", which visits rows in random order. None is a fixed one, so that results repeat. "ocas" and
        "cpa" do not use it.
    verbose : int, default=0
        1 shows a progress line.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : ndarray of shape (1,)
    certificate_ : Certificate
        `primal`, `dual`, `gap`, `relative_gap`, `kkt_violation`, as the judge found them from the data.
    certificates_ : list of Certificate
        The same as a list of one.
    dual_ : ndarray of shape (n_rows,)
        The dual variables behind the bound: positive where the prediction is too low, negative where it is too high.
    solver_ : str
        Which solver it was, and why.
    status_ : Status
        How the fit ended.
    trace_ : Trace
        Primal, bound, planes and passes over iterations and seconds.
    n_iter_ : int
        Iterations, earlier ones included where a fit was continued.
    seconds_ : dict
        Seconds spent in all ("total"), judging ("judge") and compiling ("compile").
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from softmargin import LinearSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LinearSVR(C=10, epsilon=5).fit(X, y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    fit = with_callbacks(machine.LinearSVR.fit)
