"""RankSVM, the ranking support vector machine."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.kinds import PLANES
from softmargin.core.result import PlaneSolution, Solution
from softmargin.core.threads import Workers
from softmargin.data.rows import Products
from softmargin.estimators import validation
from softmargin.estimators.linear_work import linear_solver
from softmargin.estimators.machines.linear_base import LinearMachine, Posed
from softmargin.estimators.problem_settings import RankSetting, RankTarget
from softmargin.estimators.scoring import linear_scores
from softmargin.linalg.counting import Pairs
from softmargin.metrics.queries import queries_of
from softmargin.metrics.ranking import swapped_pairs
from softmargin.prediction.labels import finite_scores
from softmargin.problems.ranking import PlaneScores
from softmargin.solvers.base import Solver
from softmargin.solvers.cutting_plane.state import PlaneState


class RankSVM(LinearMachine):
    """What `softmargin.RankSVM` learns with; its parameters and attributes are told there."""

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

    def fit(self, X: Any, y: Any = None, qid: Any = None, sample_weight: Any = None) -> Any:
        """Train on the pairs of rows of the same query that have different y.

        Parameters
        ----------
        X : array-like, sparse matrix or Store of shape (n_rows, n_features)
            The training rows. A `Store` stays on disk. Dense arrays, in C or Fortran order, and CSR matrices of
            float32, float64, integers or bool are used in place, without a copy. A data frame with a column named "qid"
            is refused, because the number of a query is not a feature: give that column as `qid` instead.
        y : array-like of shape (n_rows,)
            The targets: grades or real numbers. A row with a larger target belongs further up. Only the order of the
            targets within a query matters. Leave it out if X is a `Store` that holds the targets, and likewise qid and
            sample_weight.
        qid : array-like of shape (n_rows,), default=None
            The query of each row, as any hashable value. Rows of different queries are not compared, and the rows of a
            query need not be next to each other. None means that all rows belong to one query.
        sample_weight : array-like of shape (n_rows,), default=None
            The weight of each row. A pair of rows with the weights s_i and s_j has the weight s_i s_j, so a weight of 2
            has the same effect as repeating the row, and a weight of 0 the same as leaving it out.

        Returns
        -------
        self
            The fitted model. If Ctrl-C interrupts the fit, the model is fitted with the best solution found so far, and
            then KeyboardInterrupt is raised again. While X and y are still being checked, there is no solution to keep.
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
        refuse_query_column(getattr(self, "feature_names_in_", ()))
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
        """The score w.x of each row. A row with a larger score belongs further up."""
        return self.decision_function(X)

    def decision_function(self, X: Any) -> np.ndarray:
        """The same as `predict`. Scorers such as ``scoring="roc_auc"`` look for this name.

        Before version 1.9 scikit-learn lets only classifiers use such scorers. For two grades and one query `score` is
        the same number, so it can be used instead.
        """
        X = self._to_predict(X)
        return finite_scores(linear_scores(X, self.coef_[None, :]))

    def score(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> float:
        """The share of the pairs that the scores put in the right order; a pair with equal scores counts half.

        Parameters
        ----------
        X, y, qid, sample_weight : as for `fit`
        """
        return 1.0 - swapped_pairs(y, self.predict(X), qid, sample_weight)


def refuse_query_column(names: Iterable[str]) -> None:
    """Refuse a column named qid among the features: the model would learn from it as if it were a measurement."""
    found = [name for name in names if name.lower() == "qid"]
    if found:
        raise SoftmarginError(
            f"X has a column {found[0]!r}, which would become a feature: give it as the queries instead, "
            f"fit(X.drop(columns={found[0]!r}), y, qid=X[{found[0]!r}]). If it really is a feature, rename the column."
        )


def rank_target(setting: RankSetting, y: np.ndarray, qid: Any, sample_weight: Any) -> RankTarget:
    """The targets with the pairs that there are to learn from. Data without any pair are refused."""
    y = validation.ranking_targets(y)
    weights = validation.row_weights(sample_weight, y.size)
    target = setting.target(y, queries_of(qid, y.size).codes, weights)
    validation.finite_scale(1.0 if setting.average else setting.C, [np.array([target.pairs.n_pairs])])
    if not target.pairs.n_pairs > 0.0:
        if y.size == 1:
            raise SoftmarginError(
                "there is one sample only, but a ranking is learned from pairs of rows with different y: give more."
            )
        if y.min() == y.max():
            raise SoftmarginError(
                f"all y are {y[0]:g}: there is no pair of rows to put in order. Check that y holds the targets."
            )
        raise SoftmarginError(
            "there is no pair of rows with different y in any query, both of weight above 0: check that qid is the "
            "same for all rows that are to be compared with each other."
        )
    return target


def stored_ranking(model: Any, setting: RankSetting, target: RankTarget, rows: Products) -> Solution:
    """A fitted model as a solution for the judge.

    The dual bound of a ranking needs planes. A model has them only if it keeps the state of its fit to continue from;
    otherwise the solution has no planes.
    """
    state = model._state[1][0] if hasattr(model, "_state") else None
    if not isinstance(state, PlaneState) or not isinstance(state.planes.witnesses[0], PlaneScores):
        return PlaneSolution(model.coef_, 0.0, np.empty(0), ())
    problem = setting.problem(rows, target, Workers(1))
    return problem.solution(model.coef_, state.best.f, state.planes.witnesses, state.gamma)


def _weight_of_pairs(target: RankTarget, setting: RankSetting) -> float:
    """The sum of the weights of all pairs, without the factors that make all queries count the same."""
    pairs = target.pairs
    return (Pairs(target.y, target.queries, target.weights) if setting.equal_queries else pairs).n_pairs
