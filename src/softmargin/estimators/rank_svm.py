"""The ranking support vector machine."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.kinds import PLANES
from softmargin.core.result import PlaneSolution, Solution
from softmargin.core.threads import Workers
from softmargin.data.rows import Products
from softmargin.estimators import validation
from softmargin.estimators.callbacks import with_callbacks
from softmargin.estimators.linear_base import LinearEstimator, Posed
from softmargin.estimators.linear_work import linear_solver
from softmargin.estimators.scoring import finite_scores, linear_scores
from softmargin.estimators.settings import RankSetting, RankTarget
from softmargin.linalg.counting import Pairs
from softmargin.metrics.queries import queries_of
from softmargin.metrics.ranking import swapped_pairs
from softmargin.problems.ranking import PlaneScores
from softmargin.solvers.base import Solver
from softmargin.solvers.cutting_plane.state import PlaneState


class RankSVM(LinearEstimator):
    """A linear score that puts rows in the order of their targets, exact and with a certificate.

    Minimises ``1/2 |w|^2 + C * mean over pairs of max(0, 1 - (w.x_i - w.x_j))`` over the pairs of rows of one query
    with y_i > y_j. Pairs are counted, never formed: an iteration takes O(n log n) for any number of distinct targets.
    With two distinct targets and one query it is the SVM for the area under the ROC curve.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the mean (or sum) of the pairs' hinge losses; larger means less regularisation.
    pairs : {"mean", "sum"}, default="mean"
        What C multiplies.
    query_weight : {"pairs", "equal"}, default="pairs"
        "pairs": a query counts by its pairs. "equal": every query counts the same, whatever the number of its pairs;
        with ``pairs="mean"`` this is the objective of SVM-rank with ``-l 2``.
    solver : {"auto", "ocas", "cpa"} or solver object, default="auto"
        The algorithm; "auto" is "ocas". An object such as ``softmargin.OCAS(mixing=0.2)`` carries its own settings.
    tol : float, default=1e-3
        Stop when the relative duality gap (primal - dual) / primal is at most this, confirmed by the judge.
    max_iter : int or None, default=None
        Limit on the iterations; None is no limit.
    max_seconds : float or None, default=None
        Limit on the time of solving; compilation, validation and the judge are not counted. None is no limit.
    n_jobs : int or None, default=None
        Threads: None is one, -1 all. The result is the same, bit for bit, whatever the number.
    warm_start : bool, default=False
        Continue from the last fit: exactly, if data, queries and weights are the same; with its planes, if only C or
        tol changed; else from its weights.
    verbose : int, default=0
        1 shows a progress line.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    n_pairs_ : float
        The weight of all pairs: their number, if there are no sample weights.
    certificate_ : Certificate
        `primal`, `dual`, `gap`, `relative_gap`, `kkt_violation`, as the judge found them from the data.
    certificates_ : list of Certificate
        The same as a list of one.
    status_ : Status
        How the fit ended.
    trace_ : Trace
        Primal, bound, planes and passes over iterations and seconds.
    n_iter_ : int
        Iterations, earlier ones included where a fit was continued.
    seconds_ : dict
        Seconds on the wall in all ("total"), judging ("judge") and compiling ("compile").
    n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    A fit that stopped early, or with ``warm_start=True``, keeps its planes, so that another fit can continue.

    To search parameters over whole queries, route qid to `fit` and `score`, and split by it::

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

    def __init__(
        self,
        C: float = 1.0,
        *,
        pairs: str = "mean",
        query_weight: str = "pairs",
        solver: Any = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.pairs = pairs
        self.query_weight = query_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"  # no regressor: a score has the order of the target, but not its scale
        tags.target_tags.required = True
        return tags

    @with_callbacks
    def fit(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> "RankSVM":
        """Train on the pairs of rows with different y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            float32, float64, integers and bool are used in place, dense in either order or CSR. A data frame with a
            column named "qid" is refused, because queries are no feature: give that column as `qid`.
        y : array-like of shape (n_rows,)
            Grades or real numbers; only their order within a query counts, larger belonging further up.
        qid : array-like of shape (n_rows,), default=None
            The query of each row, in any order and of any hashable kind: rows of different queries are not compared.
            None is one query.
        sample_weight : array-like of shape (n_rows,), default=None
            A pair counts s_i s_j: 2 is the same as repeating the row, 0 as leaving it out.

        Returns
        -------
        self
            After Ctrl-C the model is fitted with the best solution so far, and the interrupt is raised again (while X
            and y are still being checked there is nothing to keep yet).
        """
        return self._fit(X, y, {"qid": qid, "sample_weight": sample_weight})

    def _solver(self) -> Solver:
        return linear_solver(self.solver, (PLANES,))

    def _setting(self) -> RankSetting:
        return RankSetting(
            C=validation.positive_number(self.C, "C"),
            average=validation.one_of(self.pairs, "pairs", ("mean", "sum")) == "mean",
            equal_queries=validation.one_of(self.query_weight, "query_weight", ("pairs", "equal")) == "equal",
        )

    def _posed(self, setting: RankSetting, X: Any, y: np.ndarray, qid: Any = None, sample_weight: Any = None) -> Posed:
        _refuse_query_column(getattr(self, "feature_names_in_", ()))
        target = rank_target(setting, y, qid, sample_weight)
        return Posed(
            setting,
            [target],
            titles=["RankSVM"],
            known={"n_pairs_": _weight_of_pairs(target, setting)},
            found=lambda rows, solutions: {"coef_": solutions[0].w},
            stored=lambda rows: [stored_ranking(self, setting, target, rows)],
        )

    def predict(self, X: Any) -> np.ndarray:
        """The score of each row, larger meaning further up."""
        return self.decision_function(X)

    def decision_function(self, X: Any) -> np.ndarray:
        """The same as `predict`, under the name that scorers such as ``scoring="roc_auc"`` ask for.

        Before version 1.9 scikit-learn lets only classifiers use such scorers; `score` is the same for two grades.
        """
        X = self._to_predict(X)
        return finite_scores(linear_scores(X, self.coef_[None, :]))

    def score(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> float:
        """The share of the pairs that the scores put in the right order, ties counting half.

        Parameters
        ----------
        X, y, qid, sample_weight : as for `fit`
        """
        return 1.0 - swapped_pairs(y, self.predict(X), qid, sample_weight)


def _refuse_query_column(names: Iterable[str]) -> None:
    """A column of query ids among the features would be learned from as if it were a measurement."""
    found = [name for name in names if name.lower() == "qid"]
    if found:
        raise SoftmarginError(
            f"X has a column {found[0]!r}, which would become a feature: give it as the queries instead, "
            f"fit(X.drop(columns={found[0]!r}), y, qid=X[{found[0]!r}]). If it is a feature, rename it."
        )


def rank_target(setting: RankSetting, y: np.ndarray, qid: Any, sample_weight: Any) -> RankTarget:
    """The pairs that there are to learn from, at least one."""
    y = validation.ranking_targets(y)
    weights = validation.row_weights(sample_weight, y.size)
    target = setting.target(y, queries_of(qid, y.size).codes, weights)
    validation.finite_scale(1.0 if setting.average else setting.C, [np.array([target.pairs.n_pairs])])
    if not target.pairs.n_pairs > 0.0:
        if y.size == 1:
            raise SoftmarginError("there is one sample only: a ranking is learned from pairs of rows with different y.")
        if y.min() == y.max():
            raise SoftmarginError(f"all y are {y[0]:g}: there is no pair to put in order. Check the targets.")
        raise SoftmarginError(
            "there is no pair of rows with different y in any query, both of weight above 0: check that qid groups the "
            "rows that are to be compared."
        )
    return target


def stored_ranking(model: Any, setting: RankSetting, target: RankTarget, rows: Products) -> Solution:
    """The weights of the model, with the planes that it keeps to continue from, if there are any."""
    state = model._state[1][0] if hasattr(model, "_state") else None
    if not isinstance(state, PlaneState) or not isinstance(state.planes.witnesses[0], PlaneScores):
        return PlaneSolution(model.coef_, 0.0, np.empty(0), ())
    problem = setting.problem(rows, target, Workers(1))
    return problem.solution(model.coef_, state.best.f, state.planes.witnesses, state.gamma)


def _weight_of_pairs(target: RankTarget, setting: RankSetting) -> float:
    """Without the factors that make queries equal."""
    pairs = target.pairs
    return (Pairs(target.y, target.queries, target.weights) if setting.equal_queries else pairs).n_pairs
