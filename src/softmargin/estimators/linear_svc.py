"""The linear support vector classifier."""

from sklearn.base import ClassifierMixin

from softmargin.estimators.callbacks import with_callbacks
from softmargin.estimators.machines import linear_svc as machine
from softmargin.estimators.surface import Estimator


class LinearSVC(ClassifierMixin, Estimator, machine.LinearSVC):
    """Linear support vector classification, exact and with a certificate.

    Minimises ``1/2 |w|^2 + C * sum_i s_i max(0, 1 - y_i (w.x_i + b))``, or with the square of that maximum. More than
    two classes are trained one against the rest, in parallel over one copy of X, or all together with
    ``multi_class="crammer_singer"``, which minimises
    ``1/2 sum_k |w_k|^2 + C * sum_i s_i max_k (1[k != y_i] + w_k.x_i - w_{y_i}.x_i)``.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum of hinge losses; larger means less regularisation.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The loss of a row: the hinge above, as in `SVC`, or its square, which is scikit-learn's default. Where the
        square is minimised, `solver` can only be "auto", "coordinate" or "newton".
    solver : {"auto", "ocas", "coordinate", "newton", "cpa", "pegasos", "sgd"} or solver object, default="auto"
        The algorithm; "auto" is "coordinate" (dual coordinate descent) where features are many or data are few, and
        "ocas" (cutting planes) where features are few and data many, or where coordinate descent does not get on;
        `solver_` says which. If the loss is squared, "auto" is "newton" (Newton's
        method) for few features, and "coordinate" for many. An object such as
        ``softmargin.OCAS(mixing=0.2)`` carries its own settings.
        "pegasos" and "sgd" are approximate: they end after a fixed number of steps, mostly before `tol`, and warn with
        the gap they reached.
    tol : float, default=1e-3
        Stop when the relative duality gap (primal - dual) / primal is at most this, confirmed by the judge.
    fit_intercept : bool, default=True
        Whether there is an intercept b.
    intercept : {"free", "penalised"}, default="free"
        "free": b is not penalised. "penalised": a constant feature, as in the papers and in LIBLINEAR.
    intercept_scaling : float, default=1.0
        The value of the constant feature of a penalised intercept: the larger it is, the less b is penalised.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        "ovr": a machine for each class against the rest. "crammer_singer": the joint problem of all classes, in which
        every row has one loss, against the strongest of the other classes. It has no free intercept: give
        ``intercept="penalised"`` or ``fit_intercept=False`` with it. Two classes are a joint problem as well.
    class_weight : dict, "balanced" or None, default=None
        Factor on the weights of each class's rows.
    max_iter : int or None, default=None
        Limit on the iterations of each sub-problem (for "pegasos" and "sgd": passes over the data); None or -1
        is no limit.
    max_seconds : float or None, default=None
        Limit on the time of solving, all classes together; compilation, validation and the judge are not counted. None
        is no limit.
    n_jobs : int or None, default=None
        Threads: None is one, -1 all. The result is the same, bit for bit, whatever the number.
    warm_start : bool, default=False
        Continue from the last fit: exactly, if data and weights are the same; with its planes or dual variables, if
        only C or tol changed; else from its weights.
    random_state : int, RandomState instance or None, default=None
        Seed of "pegasos", "sgd" and "coordinate", which visit rows in random order. None is a new one in each fit, but
        for "coordinate" a fixed one, so that results repeat. "ocas" and "cpa" do not use it.
    verbose : int, default=0
        1 shows a progress line.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    certificate_ : Certificate
        `primal`, `dual`, `gap`, `relative_gap`, `kkt_violation`, as the judge found them from the data; for several
        sub-problems the sums, and the worst relative gap. "crammer_singer" is one problem.
    certificates_ : list of Certificate
        One for each sub-problem.
    dual_ : ndarray of shape (n_rows,) or (n_rows, n_classes)
        The dual vector alpha behind the bound. With "crammer_singer" its shape is (n_rows, n_classes) for two classes
        too: alpha_ik is the share of row i that counts against class k, and zero for the row's own class.
    solver_ : str
        Which solver it was, and why.
    status_ : Status
        How the fit ended (for several sub-problems: the worst of their endings).
    trace_ : Trace or list of Trace
        Primal, bound, planes and passes over iterations and seconds.
    n_iter_ : int
        Iterations (the most of any sub-problem), earlier ones included where a fit was continued.
    seconds_ : dict
        Seconds on the wall in all ("total") and compiling ("compile"), and those of judging ("judge"), added up over
        the sub-problems.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    A fit that stopped early, or with ``warm_start=True``, keeps its planes or dual variables, so that another fit can
    continue.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from softmargin import LinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearSVC(C=1.0, tol=1e-4).fit(X, y)
    >>> model.certificate_.relative_gap <= 1e-4
    True
    """

    fit = with_callbacks(machine.LinearSVC.fit)
