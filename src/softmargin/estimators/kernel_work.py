"""Where kernel, data, dual problem, judge and solver meet: from pairs of classes to results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.kinds import BOX
from softmargin.core.memory import LITTLE_BYTES, free_bytes
from softmargin.core.result import DualStart, Result
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.core.threads import Cancel, Workers
from softmargin.core.trace import Clock, Trace
from softmargin.data.columns import Occupied
from softmargin.data.convert import thinned
from softmargin.data.rows import Rows
from softmargin.estimators.kernel_targets import KernelTarget, Pair
from softmargin.estimators.machines.base import Observers, fingerprint
from softmargin.estimators.solver_choice import check_kind
from softmargin.estimators.validation import one_of
from softmargin.kernels.cached import CachedRows, RowStore, WholeMatrix
from softmargin.kernels.functions import Custom, Kernel
from softmargin.kernels.matrix import DirectRows, KernelRows, largest_exponent
from softmargin.kernels.precomputed import PrecomputedRows
from softmargin.kernels.segments import PairMatrix, PairRows, Segments, SmallSegments
from softmargin.problems.box_qp import BoxQP
from softmargin.problems.kernel_certificate import KernelJudge
from softmargin.solvers.active_set.active_set import ActiveSet
from softmargin.solvers.base import MAX_DISPUTES, Solver, run
from softmargin.solvers.dual_state import DualState
from softmargin.solvers.interior.ipm import IPM, low_rank_start
from softmargin.solvers.smo.block import BlockSMO
from softmargin.solvers.smo.smo import RULES, SMO
from softmargin.solvers.staged import Staged
from softmargin.tasks.solvers import words_for

KERNEL_SOLVERS = words_for((BOX,))
# Kernel rows in float32 take half the memory and have seven digits. That is enough for a `tol` of at least SINGLE_TOL,
# if all kernel values lie in _SINGLE_RANGE.
SINGLE_TOL = 1e-4
_SINGLE_RANGE = (1e-30, 1e30)
# Up to this many rows float32 would save nothing that can be felt.
_SMALL = 1024
# The kernel matrix of up to this many rows of all classes is computed whole: at most 32 MiB.
_SMALL_WHOLE = 2048
# If the judge disagrees more often than this with a solver that works on float32 rows, the fit goes on with float64
# rows.
_SINGLE_DISPUTES = 2
# A block needs its kernel rows in the cache. If the cache holds fewer rows than this, pairs of variables that use the
# rows of the last pair again (HMG) need fewer kernel evaluations.
_ROWS_FOR_BLOCKS = 128
# The second-order rule needs fewer steps, HMG fewer new kernel rows a step. The first is better if the cache holds at
# least this share of the matrix.
_SHARE_FOR_SECOND_ORDER = 0.1
# Two dual variables that differ by at most this share of their weights were at the same bound.
_SAME_BOUND = 1e-12
# Whether a kernel is indefinite on the data is judged from the kernel matrix of this many rows.
_CONVEXITY_ROWS = 400


# Makes the kernel rows of the problem of a target.
Stores = Callable[[Any], RowStore]


@dataclass(frozen=True)
class KernelSetting:
    """What makes kernel problems out of rows and targets. Without a kernel the rows are the kernel matrix itself.

    `needs_double` says that the solver wants kernel values in double precision, whatever the tolerance.
    """

    C: float
    kernel: Kernel | None
    cache_bytes: float | None = None
    needs_double: bool = False

    def cache(self, n_rows: int, itemsize: int) -> float:
        """Bytes for kernel rows: as asked for, or a quarter of what is free; never more than the whole matrix."""
        whole = float(n_rows) * n_rows * itemsize
        if self.cache_bytes is not None:
            return self.cache_bytes
        if whole <= LITTLE_BYTES:
            return whole
        return max(min(whole, free_bytes() / 4), 2.0 * n_rows * itemsize)

    def stores(self, rows: Rows, targets: Sequence[KernelTarget], dtype: Any, workers: Workers) -> Stores:
        """From a target to its kernel matrix; several targets share what they have in common."""
        itemsize = np.dtype(dtype).itemsize
        if self.kernel is None:
            matrix = rows.native()
            bytes_for_rows = self.cache(rows.n_rows, matrix.dtype.itemsize)

            def looked_up(target: KernelTarget) -> RowStore:
                if target.index.size == rows.n_rows and len(targets) == 1:
                    return WholeMatrix(matrix, bytes_for_rows, workers)
                return CachedRows(PrecomputedRows(matrix, target.index), bytes_for_rows, workers)

            return looked_up
        if len(targets) == 1:
            [target] = targets
            used = rows if target.index.size == rows.n_rows else rows.take(target.index)
            source = DirectRows(used, self.kernel, dtype, workers)
            store = CachedRows(source, self.cache(used.n_rows, itemsize), workers)
            return lambda target: store
        order, bounds = _by_class(targets)
        share = 1.0 if self.cache_bytes is None else 0.5  # of a given budget: for the segments, and for the pair
        shared = share * self.cache(order.size, itemsize)
        if shared >= itemsize * order.size**2 and order.size <= _SMALL_WHOLE:
            whole = SmallSegments(rows.take(order), self.kernel, dtype, bounds, workers)
            return lambda pair: PairMatrix(whole, pair.first, pair.second, workers)
        segments = Segments(rows.take(order), self.kernel, dtype, bounds, shared, workers)

        def put_together(pair: Pair) -> RowStore:
            source = PairRows(segments, pair.first, pair.second)
            given = self.cache(source.n, itemsize)
            return CachedRows(source, max(share * given, min(given, 2.0 * source.n * itemsize)), workers)

        return put_together

    def used(self, rows: Rows, workers: Workers) -> Rows:
        """The rows that kernel values are computed from: without empty columns, and sparse if that is faster."""
        if self.kernel is None or isinstance(self.kernel, Custom):
            return rows
        return Occupied.of(thinned(rows, workers)).rows

    def fits_single(self, rows: Rows) -> bool:
        """Whether kernel values stay in the range of float32."""
        if self.kernel is None or isinstance(self.kernel, Custom):
            return False
        largest = float(np.abs(self.kernel.diagonal(rows)).max(initial=0.0))
        is_normal = _SINGLE_RANGE[0] < largest < _SINGLE_RANGE[1]
        return is_normal and largest_exponent(self.kernel, rows) < _SINGLE_RANGE[1]

    def dtypes(self, rows: Rows, targets: Sequence[KernelTarget], tol: float) -> list[Any]:
        """What kernel values are kept in, and what instead where that turns out to be too coarse."""
        small = max(target.index.size for target in targets) <= _SMALL
        single = not self.needs_double and tol >= SINGLE_TOL and not small and self.fits_single(rows)
        return [np.float32, np.float64] if single else [np.float64]

    def looks_convex(self, rows: Rows) -> bool:
        """Whether the kernel is positive semi-definite, by theory or as far as some rows show."""
        if self.kernel is not None and self.kernel.is_convex:
            return True
        index = np.unique(np.linspace(0, rows.n_rows - 1, min(rows.n_rows, _CONVEXITY_ROWS)).astype(np.int64))
        source: KernelRows
        if self.kernel is None:
            source = PrecomputedRows(rows.native())
        else:
            source = DirectRows(rows.take(index), self.kernel, np.float64)
            index = np.arange(index.size)
        part = source.rows(index, index)
        coarse = isinstance(self.kernel, Custom) or part.dtype == np.float32  # a function may compute in float32
        precision = 1e-5 if coarse else 1e-10
        eigenvalues = np.linalg.eigvalsh(0.5 * (part + part.T).astype(np.float64))
        return bool(eigenvalues[0] >= -precision * max(abs(float(eigenvalues[-1])), abs(float(eigenvalues[0]))))


def _by_class(pairs: Sequence[Any]) -> tuple[np.ndarray, list[int]]:
    """All rows sorted by class, and where each class begins."""
    n_classes = pairs[-1].second + 1
    parts: list[np.ndarray] = [np.empty(0, np.int64)] * n_classes
    for pair in pairs:
        n_first = int(np.count_nonzero(pair.signed_weights > 0))
        parts[pair.first], parts[pair.second] = pair.index[:n_first], pair.index[n_first:]
    return np.concatenate(parts), [0, *accumulate(part.size for part in parts)]


def kernel_solver(solver: Any, working_set: str, shrinking: bool, stop: Stop) -> Callable[[RowStore], Solver]:
    """From a kernel matrix to the solver for it: "auto" looks at its size and at how much of it the cache holds."""
    one_of(working_set, "working_set", ("auto", *RULES))
    if stop.rule == "gain" and not (isinstance(solver, SMO) or solver in ("auto", "smo")):
        raise SoftmarginError(
            f"stopping='gain' is a rule for pair steps, but solver={solver!r} makes none: use solver='smo', or "
            "stopping='kkt'."
        )
    if hasattr(solver, "needs"):
        check_kind(solver, (BOX,))
    if needs_convex(solver):
        if working_set != "auto":
            raise SoftmarginError(
                f"working_set={working_set!r} is a rule for pairs, but solver={solver!r} has none: use solver='smo'."
            )
        chosen = {"active_set": ActiveSet, "ipm": IPM}[solver]() if isinstance(solver, str) else solver
        chosen = replace(chosen, stopping=stop.rule)
        if isinstance(chosen, IPM):
            return lambda store: chosen
        return lambda store: staged(chosen, stop)
    if not isinstance(solver, str):
        if isinstance(solver, SMO):
            return lambda store: replace(solver, stopping=stop.rule, tol=stop.tol)
        if isinstance(solver, BlockSMO):
            return lambda store: replace(solver, stopping=stop.rule)
        raise SoftmarginError(
            f"solver={solver!r} is neither a name ({', '.join(map(repr, KERNEL_SOLVERS))}) nor a solver object such as "
            "softmargin.SMO(), BlockSMO(), ActiveSet() or IPM()."
        )
    one_of(solver, "solver", KERNEL_SOLVERS)
    if solver == "block" and working_set != "auto":
        raise SoftmarginError(
            f"working_set={working_set!r} is a rule for pairs, but solver='block' works on blocks: use solver='smo'."
        )

    def choose(store: RowStore) -> Solver:
        by_pairs = solver == "smo" or working_set != "auto" or stop.rule == "gain"
        if solver == "auto" and store.capacity < min(_ROWS_FOR_BLOCKS, store.n):
            by_pairs = True
        if not by_pairs:
            return BlockSMO(stopping=stop.rule)
        pair_rule = working_set
        if pair_rule == "auto":
            large = store.capacity >= _SHARE_FOR_SECOND_ORDER * store.n
            pair_rule = "second_order" if large else "hybrid_maximum_gain"
        return SMO(rule=pair_rule, shrinking=shrinking, tol=stop.tol, stopping=stop.rule)

    return choose


def needs_convex(solver: Any) -> bool:
    """Whether this value of `solver` needs a positive semi-definite kernel, in double precision."""
    return isinstance(solver, ActiveSet | IPM) or (isinstance(solver, str) and solver in ("active_set", "ipm"))


def staged(active: ActiveSet, stop: Stop) -> Staged:
    """The active set with its start, and blocks for the rest if its matrix gets too large."""
    first = {"smo": "begin", "ipm": "low rank", "cold": "active"}[active.start]
    return Staged(active, BlockSMO(stopping=stop.rule), first, lambda problem: low_rank_start(problem, active.rank))


def handed_over(results: Sequence[Result]) -> list[str]:
    """What to tell the user where the active set has left the rest to blocks."""
    found = dict.fromkeys(result.state.handed_over for result in results if result.state is not None)
    return [
        f"{reason}: BlockSMO goes on from here. For the exact sets raise it, or lower C or gamma."
        for reason in found
        if reason
    ]


@dataclass(frozen=True)
class KernelWork:
    """A kernel problem for each of `targets`, one after the other, because they share a cache. See `base.Work`.

    `choose` gives the solver for a kernel matrix. Where float32 rows are too coarse for the tolerance, the solve goes
    on with float64 from where it stands. `stores`, from a type to kernel rows of that type, is for those who solve
    many problems over the same kernel values; without it every solve has its own.
    """

    choose: Callable[[RowStore], Solver]
    setting: KernelSetting
    rows: Rows
    targets: Sequence[KernelTarget]
    stop: Stop
    workers: Workers
    is_convex: bool = True
    notes: Sequence[str] = ()
    stores: Callable[[Any], Stores] | None = None
    state_type: ClassVar[type] = DualState

    @property
    def known(self) -> dict[str, Any]:
        return {"gamma_": getattr(self.setting.kernel, "gamma", 0.0)}

    def fingerprint(self) -> str:
        """Also of the kernel and of the precision of its values."""
        precision = np.dtype(self.setting.dtypes(self.rows, self.targets, self.stop.tol)[0])
        targets = (target.parts for target in self.targets)
        return fingerprint(self.rows, f"{self.setting.kernel!r} {precision}", targets)

    def resumed(self, states: Sequence[Any]) -> list[Any] | None:
        if [len(state.beta) if state else 0 for state in states] != [target.index.size for target in self.targets]:
            return None
        return self.at_bounds(states)

    def at_bounds(self, starts: Sequence[Any]) -> list[Any]:
        """States or starts of another C, with the same variables at their bounds."""
        return [
            _at_bounds_of(self.setting.C, start, target) for start, target in zip(starts, self.targets, strict=True)
        ]

    def solve(
        self,
        starts: Sequence[Any] | None = None,
        cancel: Cancel | None = None,
        observers: Observers = lambda k, candidate: (),
    ) -> list[Result]:
        """Threads go to rows. `stop.max_seconds` is for all targets together."""
        setting, rows, stop, workers = self.setting, self.rows, self.stop, self.workers
        cancel = cancel or Cancel()
        clock = Clock()
        if self.stores is None:
            rows = setting.used(rows, workers)
        dtypes = setting.dtypes(rows, self.targets, stop.tol)
        stores = self.stores or cache(lambda dtype: setting.stores(rows, self.targets, dtype, workers))
        results = []
        for k, target in enumerate(self.targets):
            if (answer := target.answer()) is not None:
                results.append(answer)
                continue
            limit = stop
            if stop.max_seconds is not None:
                left = max(0.0, stop.max_seconds - clock.seconds)
                limit = replace(stop, max_seconds=left / (len(self.targets) - k))
            start = None if starts is None else starts[k]
            result = None
            for dtype in dtypes:
                part = self._solve_one(k, stores(dtype)(target), limit, start, cancel, observers, dtype == dtypes[-1])
                result = part if result is None else _continued(result, part)
                if result.status not in (Status.STALLED, Status.UNCONFIRMED):
                    break
                start = DualStart(target.loss(setting.C).signed(part.solution.alpha))
            assert result is not None
            results.append(result)
            if result.status is Status.INTERRUPTED:
                cancel.set()
        return results

    def remarks(self, results: Sequence[Result]) -> list[str]:
        return handed_over(results)

    def _solve_one(
        self, k: int, store: RowStore, limit: Stop, start: Any, cancel: Cancel, observers: Observers, is_last: bool
    ) -> Result:
        """Pair k with the kernel values of this store; with coarse ones it gives up sooner."""
        problem = BoxQP(store, self.targets[k].loss(self.setting.C), self.workers, self.is_convex)
        return run(
            self.choose(store),
            problem,
            limit,
            KernelJudge.of(problem, self.stop.tol),
            start=start,
            observers=observers(k, lambda state: problem.solution(state.beta, state.f)),
            workers=self.workers,
            cancel=cancel,
            max_disputes=MAX_DISPUTES if is_last else _SINGLE_DISPUTES,
        )


def _at_bounds_of(C: float, start: Any, target: KernelTarget) -> Any:
    """A start, or the state of a solve, for another C: where some variables were at the upper bound, all of them grow
    or shrink with it, so that the same ones are at their bounds.
    """
    if start is None:
        return None
    upper = target.weights
    shares = np.divide(np.abs(start.beta), upper, out=np.zeros(upper.size), where=upper > 0.0)
    largest = float(shares.max(initial=0.0))
    bounded = shares >= (1.0 - _SAME_BOUND) * largest
    if largest == 0.0 or abs(largest - C) <= _SAME_BOUND * C or np.count_nonzero(bounded) < 2:
        return start
    factor = C / largest
    beta = np.where(bounded, np.sign(start.beta) * (C * upper), factor * start.beta)
    return DualState(beta, factor * start.f) if isinstance(start, DualState) else DualStart(beta)


def _continued(first: Result, second: Result) -> Result:
    """Two parts of one solve as one."""
    before, offset = first.trace[-1], first.seconds["total"]
    records = [
        replace(
            record,
            iteration=record.iteration + before.iteration,
            seconds=record.seconds + offset,
            kernel_evaluations=record.kernel_evaluations + before.kernel_evaluations,
        )
        for record in second.trace
    ]
    counts = {name: first.counts[name] + second.counts[name] for name in second.counts}
    seconds = {name: first.seconds[name] + second.seconds[name] for name in second.seconds}
    return replace(second, counts=counts, seconds=seconds, trace=Trace([*first.trace, *records]))
