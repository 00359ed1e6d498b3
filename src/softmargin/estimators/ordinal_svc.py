"""OrdinalSVC, the linear classifier for classes that have an order."""

from typing import Any

from sklearn.base import ClassifierMixin

from softmargin.estimators.callbacks import with_callbacks
from softmargin.estimators.machines import ordinal_svc as machine
from softmargin.estimators.surface import Estimator


class OrdinalSVC(ClassifierMixin, Estimator, machine.OrdinalSVC):
    """Ordinal regression: a linear score, and ascending thresholds that cut the scores into ordered classes.

    There are two ways to learn the thresholds. With ``thresholds="fitted"`` the score is learned first, from the order
    of the rows alone, as `RankSVM` does. It minimises ``1/2 |w|^2 + C * mean over pairs of max(0, 1 - (w.x_i -
    w.x_j))``, over all pairs in which row i has a higher class than row j. Then the thresholds are placed where the
    training error is least; this minimum is exact.

    With ``thresholds="all"`` or ``"immediate"`` the score and the thresholds theta_k are learned together. They
    minimise ``1/2 |w|^2 + C * sum_i s_i sum_k max(0, 1 -+ (w.x_i - theta_k))``, where s_i is the weight of row i. The
    sum over k runs over all thresholds, or over the two that are next to the class of row i.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses; a larger C means less regularisation. C multiplies a mean over pairs if the thresholds
        are "fitted", and a sum over rows otherwise.
    thresholds : {"fitted", "immediate", "all"}, default="fitted"
        How the thresholds are learned; see above. For two classes "immediate" and "all" are the problem of `LinearSVC`.
    cost : {"absolute", "zero_one"}, default="absolute"
        The training error that "fitted" thresholds minimise. "absolute" counts by how many classes the prediction of a
        row is wrong, "zero_one" counts the rows whose prediction is wrong.
    classes : list of labels or None, default=None
        All classes in ascending order. It can be None if the labels have an order of their own. That is true of
        numbers, also of fractions such as half stars, and of an ordered pandas Categorical. A class without training
        rows is never predicted.
    class_weight : dict, "balanced" or None, default=None
        A factor for each class, by which the weights of its rows are multiplied. None means 1 for every class.
        "balanced" gives all classes the same weight in total.
    solver : {"auto", "ocas", "cpa"} or solver object, default="auto"
        The algorithm; "auto" is the same as "ocas". Give a solver object, such as ``softmargin.OCAS(mixing=0.2)``, to
        change the settings of the algorithm.
    tol : float, default=1e-3
        The fit stops when the relative duality gap, (primal - dual) / primal, is at most `tol`, and the judge confirms
        it.
    max_iter : int or None, default=None
        The largest number of iterations; None means that there is no limit.
    max_seconds : float or None, default=None
        The longest time in seconds that solving may take; None means that there is no limit. The time for compiling,
        checking the input and judging is not counted.
    n_jobs : int or None, default=None
        The number of threads: None means one, -1 all that are available. The result is the same, bit for bit, for
        every number of threads.
    warm_start : bool, default=False
        Whether a fit continues from the last one. With the same data, weights and parameters it goes on exactly where
        the last fit ended. If only C or tol has changed, it starts with the planes of the last fit. Otherwise it starts
        from its coefficients.
    verbose : int, default=0
        With 1, a line on the screen shows the progress of the fit.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The vector w of the score w.x.
    thresholds_ : ndarray of shape (n_classes - 1,)
        The thresholds, in ascending order. A row has class k if its score is above threshold k - 1 and not above
        threshold k.
    classes_ : ndarray of shape (n_classes,)
        The classes, in ascending order.
    certificate_ : Certificate
        `primal`, `dual`, `gap`, `relative_gap` and `kkt_violation` of the problem that was minimised. The judge
        computes them from the data.
    certificates_ : list of Certificate
        The same certificate, as a list of one: estimators with several sub-problems have one for each.
    dual_ : ndarray of shape (n_rows, n_thresholds) or None
        The dual vector alpha that proves the dual bound. It has a column for each threshold between classes that have
        rows. It is None if the thresholds are "fitted".
    status_ : Status
        How the fit ended.
    trace_ : Trace
        The course of the fit: primal value, dual bound, number of planes and passes over the data, by iterations and
        seconds.
    n_iter_ : int
        The number of iterations. If the fit continued an earlier one, the iterations of that are included.
    seconds_ : dict
        Seconds of wall-clock time: of the whole fit ("total"), of judging ("judge") and of compiling ("compile").
    n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    A model keeps the cutting planes of its fit if the fit stopped early, or if ``warm_start=True``. Another fit can
    then continue where this one ended.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from softmargin import OrdinalSVC
    >>> X, y = load_wine(return_X_y=True)
    >>> model = OrdinalSVC(thresholds="all").fit(scale(X), y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    >>> model.thresholds_.shape
    (2,)
    """

    fit = with_callbacks(machine.OrdinalSVC.fit)
    score = machine.OrdinalSVC.score  # not the mixin's, which refuses fractions

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn's checks expect good scores on classes that have no order. One linear score cannot separate such
        # classes, so this tag tells the checks not to expect it.
        tags.classifier_tags.poor_score = True
        return tags
