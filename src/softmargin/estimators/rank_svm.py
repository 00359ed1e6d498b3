"""RankSVM, the ranking support vector machine."""

from typing import Any

from softmargin.estimators.callbacks import with_callbacks
from softmargin.estimators.machines import rank_svm as machine
from softmargin.estimators.surface import Estimator


class RankSVM(Estimator, machine.RankSVM):
    """The ranking SVM: a linear score that puts rows in the order of their targets, exact and with a certificate.

    It minimises ``1/2 |w|^2 + C * mean over pairs of max(0, 1 - (w.x_i - w.x_j))``. The pairs are those of two rows of
    the same query with y_i > y_j. There can be very many of them, so they are counted and never formed: an iteration
    takes O(n log n) time, however many distinct targets there are. With two distinct targets and one query this is the
    SVM for the area under the ROC curve.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the hinge losses of the pairs; a larger C means less regularisation.
    pairs : {"mean", "sum"}, default="mean"
        Whether C multiplies the mean or the sum of the losses of all pairs.
    query_weight : {"pairs", "equal"}, default="pairs"
        How much a query counts. With "pairs" all pairs count the same, so that a query with more pairs counts more.
        With "equal" every query counts the same, however many pairs it has; together with ``pairs="mean"`` this is the
        objective of SVM-rank with ``-l 2``.
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
        Whether a fit continues from the last one. With the same data, queries, weights and parameters it goes on
        exactly where the last fit ended. If only C or tol has changed, it starts with the planes of the last fit.
        Otherwise it starts from its coefficients.
    verbose : int, default=0
        With 1, a line on the screen shows the progress of the fit.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The vector w of the score w.x.
    n_pairs_ : float
        The sum of the weights of all pairs. Without sample weights it is the number of pairs.
    certificate_ : Certificate
        `primal`, `dual`, `gap`, `relative_gap` and `kkt_violation`. The judge computes them from the data.
    certificates_ : list of Certificate
        The same certificate, as a list of one: estimators with several sub-problems have one for each.
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

    A search for parameters should keep the rows of a query together. For that, route qid to `fit` and `score`, and
    split the data by it::

        sklearn.set_config(enable_metadata_routing=True)
        ranker = RankSVM().set_fit_request(qid=True).set_score_request(qid=True)
        GridSearchCV(ranker, {"C": [1, 10, 100]}, cv=GroupKFold(5)).fit(X, y, qid=qid, groups=qid)

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from softmargin import RankSVM
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RankSVM(C=1000).fit(X, y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    >>> round(model.score(X, y), 2)
    0.75
    """

    fit = with_callbacks(machine.RankSVM.fit)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # A ranker is not a regressor: its scores have the order of the targets, but not their scale.
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        return tags
