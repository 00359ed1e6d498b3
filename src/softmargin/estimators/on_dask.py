"""Linear estimators that are trained on a Dask cluster: from collections of Dask to an ordinary fitted model.

The parameters, the certificate and the fitted attributes are those of the estimators of the same name in `softmargin`.
What differs is where the rows are: see `problems.partitioned`.
"""

import copy
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import fsum
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from softmargin.core.errors import SoftmarginError
from softmargin.core.kinds import PLANES
from softmargin.core.result import PlaneSolution, Result, Solution
from softmargin.core.stopping import Stop
from softmargin.core.threads import Cancel, Workers
from softmargin.core.trace import Clock
from softmargin.data.convert import is_storage
from softmargin.data.groups import Group
from softmargin.data.partitioned import (
    Lost,
    Partitions,
    Source,
    current_client,
    is_dask,
    mapped,
    source_from,
    source_of,
)
from softmargin.estimators import linear_svc, linear_svr, rank_svm, validation
from softmargin.estimators.callbacks import with_callbacks
from softmargin.estimators.linear_work import aimed
from softmargin.estimators.machines import linear_svc as linear_machine
from softmargin.estimators.machines import linear_svr as number_machine
from softmargin.estimators.machines.base import Job, Observers
from softmargin.estimators.machines.linear_base import told
from softmargin.estimators.machines.rank_svm import refuse_query_column
from softmargin.io.store import Store, StorePart
from softmargin.problems.on_groups import Learned, Numbers, OneAgainstRest, Posed
from softmargin.problems.partitioned import PartitionedHinge
from softmargin.problems.partitioned_certificate import PartitionedJudge
from softmargin.problems.partitioned_ranking import (
    PairWeights,
    PartitionedRanking,
    PartitionedRankingJudge,
    RankPosed,
    pair_sums,
)
from softmargin.solvers.automatic import Automatic
from softmargin.solvers.base import Solver, check_kind, run
from softmargin.solvers.cutting_plane.ocas import OCAS

MOST_LABELS = 100_000  # a group with more labels than this holds measurements, not classes


@dataclass(frozen=True)
class SubProblem:
    """A problem on the cluster: `pose(workers, tol)` makes it and its judge. `key` is what workers know it by."""

    key: str
    pose: Callable[[Workers, float], tuple[Any, Any]]


@dataclass(frozen=True)
class ClusterTask:
    """What is to be learned on the cluster; see `base.Job` for titles and known attributes."""

    problems: Sequence[SubProblem]
    titles: Sequence[str]
    known: dict[str, Any]


@dataclass(frozen=True)
class ClusterWork:
    """The sub-problems one after the other, each on all workers. See `base.Work`."""

    solver: Solver
    partitions: Partitions
    task: ClusterTask
    stop: Stop
    known: ClassVar[dict[str, Any]] = {}
    notes: ClassVar[tuple[str, ...]] = ()

    @property
    def state_type(self) -> type:
        return type(None)  # states are not kept: they are of vectors on workers

    def fingerprint(self) -> str:
        return ""

    def resumed(self, states: Sequence[Any]) -> None:
        return None

    def remarks(self, results: Sequence[Result]) -> Sequence[str]:
        return ()

    def solve(
        self,
        starts: Sequence[Any] | None = None,
        cancel: Cancel | None = None,
        observers: Observers = lambda k, candidate: (),
    ) -> list[Result]:
        cancel, clock = cancel or Cancel(), Clock()
        n_tasks = len(self.task.problems)
        results = []
        for k in range(n_tasks):
            limit = self.stop
            if limit.max_seconds is not None:
                left = max(0.0, limit.max_seconds - clock.seconds)
                limit = replace(limit, max_seconds=left / (n_tasks - k))
            results.append(self._solved(k, limit, None if starts is None else starts[k], cancel, observers))
        return results

    def _solved(self, k: int, limit: Stop, start: Any, cancel: Cancel, observers: Observers) -> Result:
        partitions, workers = self.partitions, Workers(1)
        problem, judge = self.task.problems[k].pose(workers, limit.tol)
        partitions.check = workers.check

        def whole(solution: Any) -> Solution:
            """The dual vector is brought here, once. That of a ranking is made of planes, which stay where they are."""
            if isinstance(solution, PlaneSolution):
                return Solution(solution.w, solution.b, solution.alpha)
            return replace(solution, alpha=problem.fetched(solution.alpha))

        try:
            solver = aimed(self.solver, limit.tol)
            result = run(
                solver,
                problem,
                limit,
                judge,
                start=start,
                observers=observers(k, lambda state: whole(solver.solution(problem, state))),
                workers=workers,
                cancel=cancel,
            )
            if result.status.name == "INTERRUPTED":
                cancel.set()
            return replace(result, solution=whole(result.solution), state=None)
        finally:
            partitions.forget(("problem", self.task.problems[k].key))


class OnCluster:
    """What the estimators on a cluster have in common. Their parameters are those of the local estimator."""

    _local: ClassVar[type]
    _posed_on: Callable[[Partitions], ClusterTask]
    _found: Callable[[Any, list[Any]], dict[str, Any]]

    def _fit_on(self, X: Any, columns: dict[str, Any], client: Any) -> Any:
        estimator: Any = self
        if getattr(estimator, "_is_squared", False) or getattr(estimator, "_is_joint", False):
            raise SoftmarginError(
                "on a cluster only the plain hinge losses are minimised, one class against the rest: set "
                "loss='hinge' (for regression 'epsilon_insensitive') and multi_class='ovr'."
            )
        estimator._setting()  # checks C and the like
        solver, stop, _ = estimator._limits()
        if isinstance(solver, Automatic):
            solver = OCAS()
        check_kind(solver, (PLANES,), "a fit on a cluster")
        source = source_of(X, columns) if is_dask(X) else self._stored(X, columns)
        n_jobs = estimator.n_jobs
        n_threads = n_jobs if n_jobs is not None and n_jobs > 0 else None  # as many as each worker has
        partitions = Partitions(current_client(client), source, n_threads)
        try:
            estimator.n_features_in_ = partitions.n_cols
            estimator.__dict__.pop("feature_names_in_", None)
            if source.feature_names is not None:
                estimator.feature_names_in_ = np.array(source.feature_names, dtype=object)
            task = self._posed_on(partitions)
            job = Job(
                stop,
                1,
                task.titles,
                task.known,
                work=lambda rows, workers: ClusterWork(solver, rows, task, stop),
                found=type(self)._found,
                keep=lambda results: setattr(self, "solver_", told(estimator.solver, solver, results)),
            )
            estimator._run(job, partitions, None, {})
        finally:
            partitions.close()
        return self

    def _hinge(self, partitions: Partitions, learned: Learned, scale: float) -> SubProblem:
        setting = self._setting()  # type: ignore[attr-defined]
        posed = Posed(learned, setting.C, setting.intercept)
        shape = partitions.n_rows, partitions.n_cols

        def pose(workers: Workers, tol: float) -> tuple[PartitionedHinge, PartitionedJudge]:
            problem = PartitionedHinge(partitions, Lost, posed, *shape, scale, workers)
            return problem, PartitionedJudge(partitions, Lost, posed, scale, tol)

        return SubProblem(learned.key, pose)

    def _stored(self, X: Any, columns: dict[str, Any]) -> Source:
        """The chunks of a store in a folder that all workers see."""
        path = X.path if is_storage(X) and hasattr(X, "path") else X
        if not isinstance(path, (str, Path)):
            raise SoftmarginError(
                f"X is of the type {type(X).__name__}, no Dask array or frame, and no path of a Store: for data in "
                f"memory use softmargin.{self._local.__name__}."
            )
        if given := [name for name, column in columns.items() if column is not None]:
            raise SoftmarginError(
                f"a store brings {given[0]} with it: leave {given[0]} out, or write it into the store."
            )
        store = Store(path)
        names = tuple(name for name in columns if store.targets()[name] is not None)
        n_chunks = store.n_chunks
        return source_from(partial(_store_group, store.path.absolute(), names), n_chunks, store.feature_names)

    def _rows(self, X: Any, workers: Workers) -> Any:
        return X

    def _keep_state(self, results: Sequence[Result], fingerprint: Callable[[], str]) -> None:
        """Nothing: planes of rows on workers are not kept. With `warm_start` a fit begins from the weights."""
        self.__dict__.pop("_state", None)

    def to_local(self) -> Any:
        """The same fitted model as an estimator of `softmargin` itself, for any machine without a cluster."""
        params = copy.deepcopy(self.get_params(deep=False))  # type: ignore[attr-defined]
        model = self._local(**params)
        fitted = {name: value for name, value in self.__dict__.items() if name not in params}
        model.__dict__.update(fitted)
        return model

    def save(self, path: Any, **options: Any) -> None:
        """Write the fitted model to a file, which `softmargin.load` reads as the local estimator."""
        self.to_local().save(path, **options)

    def _mapped(self, method: str, X: Any, like: np.ndarray) -> Any:
        """What a method of the local model returns for each partition of X."""
        model = self.to_local()
        for name in ("dual_", "trace_"):  # of no use to the workers
            model.__dict__.pop(name, None)
        return mapped(X, getattr(model, method), self.n_features_in_, like)  # type: ignore[attr-defined]


class LinearSVC(OnCluster, linear_svc.LinearSVC):
    """`softmargin.LinearSVC` for Dask arrays and frames: the same problem, the same certificate, rows on the workers.

    Parameters and attributes are those of `softmargin.LinearSVC`, with these differences: the loss is the hinge,
    classes are trained one against the rest, `solver` is "auto" (which is "ocas"), "ocas" or "cpa", `n_jobs` is the
    number of threads in each worker (None or -1: as many as the worker has), and `warm_start` begins from the weights
    of the last fit.

    Examples
    --------
    >>> from softmargin.dask import LinearSVC
    >>> model = LinearSVC(C=0.1).fit(X, y)          # doctest: +SKIP
    >>> model.predict(X_new)                        # doctest: +SKIP
    """

    _local = linear_svc.LinearSVC
    _found = staticmethod(linear_machine.attributes)

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, client: Any = None) -> "LinearSVC":
        """Train on a Dask array or frame, or on a store that all workers see.

        Parameters
        ----------
        X : Dask array or frame of shape (n_rows, n_features), or the path of a `Store`
            Blocks are dense arrays or scipy CSR matrices. They need not have known sizes. Of a store in a folder that
            all workers see, each reads its own chunks.
        y, sample_weight : Dask array or series with the same partitions as X
            Left out for a store, which holds them.
        client : distributed.Client or None, default=None
            None is the current client.

        Returns
        -------
        self
            An ordinary fitted model: everything it holds is on this machine.
        """
        return self._fit_on(X, {"y": y, "sample_weight": sample_weight}, client)

    def _posed_on(self, partitions: Partitions) -> ClusterTask:
        found = partitions.each(_labels)
        labels = np.concatenate([part[0] for part in found])
        check_classification_targets(labels)
        classes = np.unique(labels)
        if classes.size < 2:
            raise SoftmarginError(
                f"y holds one class only, {classes.tolist()[0]!r}, in all partitions: give at least two classes."
            )
        mass = np.zeros(classes.size)
        for own, weights in found:
            mass[np.searchsorted(classes, own)] += weights
        numbers = np.arange(classes.size)
        factors = validation.class_weights(self.class_weight, classes, numbers, mass)
        validation.two_classes_left(numbers, mass * factors)
        validation.finite_scale(self.C, [mass * factors])
        scale = self.C * float((mass * factors).sum())
        positives = [1] if classes.size == 2 else range(classes.size)
        return ClusterTask(
            [self._hinge(partitions, OneAgainstRest(uuid.uuid4().hex, classes, k, factors), scale) for k in positives],
            ["LinearSVC"] if len(positives) == 1 else [f"LinearSVC class {label}" for label in classes],
            {"classes_": classes},
        )

    def decision_function(self, X: Any) -> Any:
        """As in `softmargin.LinearSVC`, lazily for a Dask collection."""
        if not is_dask(X):
            return super().decision_function(X)
        return self._mapped("decision_function", X, np.empty((1, len(self.coef_))[: 1 + (len(self.coef_) > 1)]))

    def predict(self, X: Any) -> Any:
        """The class of each row, lazily for a Dask collection."""
        return self._mapped("predict", X, self.classes_) if is_dask(X) else super().predict(X)


class LinearSVR(OnCluster, linear_svr.LinearSVR):
    """`softmargin.LinearSVR` for Dask arrays and frames: the same problem, the same certificate, rows on the workers.

    Parameters and attributes are those of `softmargin.LinearSVR`; what differs is said at `softmargin.dask.LinearSVC`.
    """

    _local = linear_svr.LinearSVR
    _found = staticmethod(number_machine.attributes)

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, client: Any = None) -> "LinearSVR":
        """Train on a Dask array or frame; see `softmargin.dask.LinearSVC.fit`."""
        return self._fit_on(X, {"y": y, "sample_weight": sample_weight}, client)

    def _posed_on(self, partitions: Partitions) -> ClusterTask:
        epsilon = float(self.epsilon)
        found = partitions.each(_numbers, epsilon)
        sample = [np.concatenate([part[k] for part in found]) for k in range(2)]
        middle = weighted_median(*sample) if self._setting().intercept.is_free else 0.0
        sizes = partitions.each(_distances, middle, epsilon)
        distance, size, weight = (float(sum(part[k] for part in sizes)) for k in range(3))
        validation.finite_scale(self.C, [np.array([weight]), np.array([size])])
        scale = self.C * (distance or size or weight)
        learned = Numbers(uuid.uuid4().hex, epsilon)
        return ClusterTask([self._hinge(partitions, learned, scale)], ["LinearSVR"], {})

    def predict(self, X: Any) -> Any:
        """A number for each row, lazily for a Dask collection."""
        return self._mapped("predict", X, np.empty(1)) if is_dask(X) else super().predict(X)


class RankSVM(OnCluster, rank_svm.RankSVM):
    """`softmargin.RankSVM` for Dask arrays and frames: the same problem, the same certificate, rows on the workers.

    All rows of a query must lie in one partition. Parameters and attributes are those of `softmargin.RankSVM`; `n_jobs`
    and `warm_start` are as in `softmargin.dask.LinearSVC`.
    """

    _local = rank_svm.RankSVM
    _found = staticmethod(lambda rows, solutions: {"coef_": solutions[0].w})

    @with_callbacks
    def fit(
        self, X: Any, y: Any = None, qid: Any = None, sample_weight: Any = None, *, client: Any = None
    ) -> "RankSVM":
        """Train on a Dask array or frame, or on the path of a store that all workers see.

        Parameters
        ----------
        X, y, sample_weight, client : as for `softmargin.dask.LinearSVC.fit`
        qid : Dask array or series with the same partitions as X
            The query of each row.
        """
        return self._fit_on(X, {"y": y, "qid": qid, "sample_weight": sample_weight}, client)

    def _posed_on(self, partitions: Partitions) -> ClusterTask:
        refuse_query_column(getattr(self, "feature_names_in_", ()))
        _check_whole(partitions.each(_queries))
        setting = self._setting()
        posed = RankPosed(uuid.uuid4().hex, setting.C, setting.equal_queries)
        sums = partitions.each(pair_sums, posed)
        n_slots, has_weights = sum(part[0] for part in sums), any(part[3] for part in sums)
        pairs = PairWeights(n_slots, fsum(part[1] for part in sums), has_weights, setting.average)
        validation.finite_scale(1.0 if setting.average else setting.C, [np.array([pairs.n_pairs])])
        if not pairs.n_pairs > 0.0:
            raise SoftmarginError(
                "there is no pair of rows with different y in any query, both of weight above 0: check that qid is the "
                "same for all rows that are to be compared with each other."
            )
        scale, shape = setting.C * pairs.unit * pairs.n_pairs, (partitions.n_rows, partitions.n_cols)

        def pose(workers: Workers, tol: float) -> tuple[PartitionedRanking, PartitionedRankingJudge]:
            problem = PartitionedRanking(partitions, Lost, posed, *shape, scale, workers, pairs)
            return problem, PartitionedRankingJudge(partitions, Lost, posed, pairs, scale, tol)

        known = {"n_pairs_": fsum(part[2] for part in sums)}
        return ClusterTask([SubProblem(posed.key, pose)], ["RankSVM"], known)

    def decision_function(self, X: Any) -> Any:
        """The score of each row, lazily for a Dask collection."""
        return self._mapped("predict", X, np.empty(1)) if is_dask(X) else super().decision_function(X)


def _check_whole(found: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
    """Refuse a query whose rows lie in two partitions."""
    queries, numbers = (np.concatenate([part[k] for part in found]) for k in range(2))
    order = np.argsort(queries, kind="stable")
    queries, numbers = queries[order], numbers[order]
    is_torn = queries[1:] == queries[:-1]
    if is_torn.any():
        k = int(np.argmax(is_torn))
        raise SoftmarginError(
            f"the query {queries[k]!s} has rows in the partitions {numbers[k]} and {numbers[k + 1]}: all rows of a "
            "query must lie in one partition. Sort by query, and divide there: for frames, set_index('qid') does both."
        )


# What the workers do, with one group at a time.


def _queries(group: Group, workers: Workers) -> tuple[np.ndarray, np.ndarray]:
    """The queries of each partition, and the numbers of the partitions, after all columns were checked."""
    try:
        validation.ranking_targets(_targets(group))
    except SoftmarginError as error:
        raise SoftmarginError(f"{_place(group)}: {error}") from None
    _checked_weights(group)
    if "qid" not in group.columns:
        raise SoftmarginError("qid is missing: give the query of each row, with the same partitions as X.")
    starts = np.cumsum([size.n_rows for size in group.chunks.sizes])[:-1]
    found = [np.unique(part) for part in np.split(group.columns["qid"], starts)]
    return np.concatenate(found), np.repeat(group.numbers, [part.size for part in found])


def _store_group(path: Path, names: tuple[str, ...], chunks: range) -> Group:
    """The group of these chunks of a store, with these of its columns."""
    part = StorePart(path, chunks)
    columns = part.targets()
    return Group(chunks, part, {name: columns[name] for name in names}, list(chunks))


def _checked_weights(group: Group) -> np.ndarray:
    weights = group.columns.get("sample_weight")
    if weights is None:
        return np.ones(group.n_rows)
    try:
        found = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SoftmarginError(f"{_place(group)}: sample_weight must hold one number a row: {error}.") from None
    if not np.isfinite(found).all() or (found < 0.0).any():
        raise SoftmarginError(
            f"{_place(group)}: sample_weight holds negative values, NaN or infinity: every weight must be a finite "
            "number of at least 0."
        )
    return found


def _place(group: Group) -> str:
    own = group.partitions
    return f"partition {own[0]}" if len(own) == 1 else f"partitions {own[0]} to {own[-1]}"


def _targets(group: Group) -> np.ndarray:
    if "y" not in group.columns:
        raise SoftmarginError("y is missing: give it as a Dask array or series with the same partitions as X.")
    y = group.columns["y"]
    is_bad = ~np.isfinite(y) if y.dtype.kind == "f" else np.array([value != value for value in y.tolist()])
    if is_bad.any():
        raise SoftmarginError(f"{_place(group)}: y holds NaN or infinity: every row needs its target.")
    return y


def _labels(group: Group, workers: Workers) -> tuple[np.ndarray, np.ndarray]:
    """The labels of a group, and the weight of the rows of each."""
    y, weights = _targets(group), _checked_weights(group)
    labels, codes = np.unique(y, return_inverse=True)
    if labels.size > MOST_LABELS:
        raise SoftmarginError(f"{_place(group)}: y holds {labels.size} different labels: these are no classes.")
    return labels, np.bincount(codes, weights, minlength=labels.size)


def _numbers(group: Group, workers: Workers, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and weights of some rows, after all were checked."""
    try:
        y = validation.regression_targets(_targets(group), epsilon)
    except SoftmarginError as error:
        raise SoftmarginError(f"{_place(group)}: {error}") from None
    weights = _checked_weights(group)
    some = slice(None, None, 1 + y.size // 4096)
    return y[some], weights[some]


def _distances(group: Group, workers: Workers, middle: float, epsilon: float) -> tuple[float, float, float]:
    """Sums of weighted distances from the middle, of weighted sizes, and of weights."""
    y, weights = group.columns["y"].astype(np.float64), group.weights
    far = np.maximum(np.abs(y - middle), epsilon)
    return float(weights @ far), float(weights @ np.abs(y)), float(weights.sum())


def weighted_median(y: np.ndarray, weights: np.ndarray) -> float:
    """As `hinge_targets` has it, here of some of the rows: the scale of a problem need not be exact."""
    order = np.argsort(y, kind="stable")
    sums = np.cumsum(weights[order])
    return float(y[order[np.searchsorted(sums, 0.5 * sums[-1])]])
