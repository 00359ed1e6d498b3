"""A trained kernel machine that is kept ready to learn and unlearn rows: data, kernel rows, working sets and factors.

What is learned from the rows is one problem (two classes, or numbers) or several (each two of many classes), all of
them over the same data. A problem is told by its `ChangingTarget`, in which rows are known by their ids.

An operation that fails leaves this object unusable, and the caller drops it: all of it can be made anew from the
training rows and the dual variables.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Result
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.core.threads import Cancel, Workers
from softmargin.core.trace import Clock
from softmargin.data.convert import as_rows, thinned
from softmargin.data.growing import GrowingRows
from softmargin.data.rows import Rows
from softmargin.estimators import validation
from softmargin.estimators.kernel_targets import ChangingTarget
from softmargin.estimators.kernel_work import KernelSetting
from softmargin.estimators.training_rows import TrainingRows
from softmargin.kernels.cached import RowStore
from softmargin.kernels.functions import Custom
from softmargin.kernels.growing import GrowingMatrix, GrowingStore, PartRows, order_without
from softmargin.problems.box_qp import BoxQP
from softmargin.problems.growing_judge import GrowingJudge
from softmargin.problems.kernel_certificate import KernelJudge
from softmargin.solvers.active_set import changing_rows
from softmargin.solvers.active_set.active_set import ActiveSet, Settling
from softmargin.solvers.active_set.working import Working
from softmargin.solvers.base import run
from softmargin.solvers.dual_state import DualState, repaired
from softmargin.solvers.smo.block import BlockSMO
from softmargin.solvers.staged import Continued, Stage

# Where few rows are new, the working set gets _CANDIDATES_A_ROW variables for each of them beside the free ones, and at
# least _FEW_CANDIDATES: more would cost kernel values and hardly ever enter.
_CANDIDATES_A_ROW, _FEW_CANDIDATES = 4, 16

# From what is learned from some rows, and their sample weights, to the problems; rows are known by their positions.
Targets = Callable[[np.ndarray, np.ndarray], Sequence[ChangingTarget]]


class IncrementalProblem:
    """One problem: what is learned from which rows, their kernel values, and the solution so far.

    `work`, the working set of the active set method, is there after a solve in which it was not given up.
    """

    def __init__(self, target: ChangingTarget, store: RowStore, beta: np.ndarray, result: Result) -> None:
        self.target, self.store = target, store
        self.beta, self.f = beta, np.empty(0)
        self.work: Working | None = None
        self.judge = GrowingJudge()
        self.result = result
        self.has_only_grown = False  # since the last solve

    @property
    def ids(self) -> np.ndarray:
        return self.target.index

    @property
    def is_trivial(self) -> bool:
        """Whether the answer is known without solving: only one of two classes has rows."""
        return self.target.answer() is not None

    def problem(self, C: float, target: ChangingTarget | None = None) -> BoxQP:
        """The problem of this target, or of another one over the same rows."""
        return BoxQP(self.store, (target or self.target).loss(C), self.store.workers)

    def prepare(self, C: float) -> None:
        """Make the dual variables feasible, and f from them; what is counted begins here."""
        if isinstance(self.store, GrowingStore):
            self.store.restart_counts()
        if self.f.size == self.beta.size:
            return
        self.beta = repaired(self.beta, self.problem(C))
        self.f = self.store.product(self.beta, keep=True)

    def add(self, more: ChangingTarget, C: float, candidates: int) -> None:
        """New rows, whose dual variables are zero; the store's source has them already."""
        assert isinstance(self.store, GrowingStore)
        self.store.extend()
        self.has_only_grown = True
        n_new = more.index.size
        fresh = np.arange(self.beta.size, self.beta.size + n_new)
        beta = np.append(self.beta, np.zeros(n_new))
        self.target = self.target.followed_by(more)
        validation.finite_scale(C, [self.target.weights])
        self.beta, self.f = beta, np.append(self.f, self.store.outputs(beta, fresh))
        if self.work is not None:
            changing_rows.extend(self.work, self.problem(C), self.beta, self.f)
            self.work.candidates = min(candidates, max(_FEW_CANDIDATES, _CANDIDATES_A_ROW * n_new))

    def retire(self, places: np.ndarray, C: float) -> None:
        """Drive the dual variables of these places to zero."""
        self.has_only_grown = False
        if self.is_trivial:
            return
        problem = self.problem(C, self.target.without_weight(places))
        if self.work is None:
            self.beta = repaired(self.beta, problem)
            self.f = self.store.product(self.beta)
            return
        self.work.begin(problem, self.beta, self.f)
        changing_rows.retire(self.work, problem, places)
        self.beta, self.f = self.work.beta, self.work.f

    def reorder(self, order: np.ndarray, C: float) -> None:
        """Keep the places of `order`, in this order; the others are retired."""
        assert isinstance(self.store, GrowingStore)
        self.store.reorder(order)
        self.target = self.target.take(order)
        self.beta, self.f = self.beta[order], self.f[order]
        self.judge.forget()
        if self.work is not None:
            changing_rows.reorder(self.work, self.problem(C), order, self.beta, self.f)

    def solve(self, active: ActiveSet, C: float, stop: Stop, workers: Workers, cancel: Cancel) -> None:
        """Restore the optimum."""
        if (answer := self.target.answer()) is not None:
            self.result = answer
            return
        problem = self.problem(C)
        judge = KernelJudge.of(problem, stop.tol)
        was_solved = self.has_only_grown and self.work is not None and self.result.status.reached_goal
        is_solved = was_solved and problem.measure(self.beta, self.f).kkt <= active.tol * problem.unit
        state = changing_rows.with_working(DualState(self.beta, self.f).counted(problem), self.work, settled=is_solved)
        self.work, self.has_only_grown = None, False
        self.result = run(
            Continued(active, BlockSMO(stopping=stop.rule)),
            problem,
            stop,
            lambda solution: self.judge(judge, solution),
            start=state,
            workers=workers,
            cancel=cancel,
        )
        state = self.result.state
        self.beta, self.f = state.beta, state.f
        scratch = state.scratch.scratch if isinstance(state.scratch, Stage) else None
        if isinstance(scratch, Settling) and scratch.work is not None and scratch.work.matches is state.beta:
            self.work = scratch.work

    def left_out(self, active: ActiveSet, C: float, workers: Workers) -> np.ndarray:
        """Of each row the decision value of the machine that is trained on the others."""
        out = self.f + self.result.solution.b
        if self.is_trivial:
            return out
        if self.work is None:
            raise SoftmarginError(
                "the free variables of this model are too many for the active set, which leaving out needs: raise "
                "max_bytes of softmargin.ActiveSet, or lower C or gamma."
            )
        saved = changing_rows.Saved(self.work)
        changes = (self.beta != 0.0) | self._sets_intercept(self.problem(C))
        for k in changes.nonzero()[0].tolist():
            workers.check()
            others = self.target.without_weight(np.array([k]))
            if (answer := others.answer()) is not None:
                out[k] = answer.solution.b
                continue
            out[k] = self._without(k, active, self.problem(C, others))
            saved.restore()
        saved.close()
        return out

    def _sets_intercept(self, problem: BoxQP) -> np.ndarray:
        """Which rows are at an end of the interval whose middle the intercept is, where no variable is free."""
        rise, fall = problem.wishes(self.beta, self.f)
        rise = np.where(self.beta < problem.hi, rise, -np.inf)
        fall = np.where(self.beta > problem.lo, fall, np.inf)
        highest, lowest = rise.max(), fall.min()
        return ((rise == highest) | (fall == lowest)) & bool(highest < lowest)

    def _without(self, k: int, active: ActiveSet, problem: BoxQP) -> float:
        assert self.work is not None
        self.work.begin(problem, self.beta, self.f)
        changing_rows.retire(self.work, problem, np.array([k]))
        state = changing_rows.with_working(DualState(self.work.beta, self.work.f), self.work)
        while not state.scratch.settled and not state.is_stalled:
            state = active.step(problem, state)
        return float(state.f[k]) + problem.solution(state.beta, state.f).b


class IncrementalFit:
    """All problems, over one growing matrix of kernel values."""

    def __init__(
        self,
        training: TrainingRows,
        targets: Targets,
        setting: KernelSetting,
        active: ActiveSet,
        n_threads: int,
        solved: Callable[[Sequence[ChangingTarget]], Sequence[tuple[np.ndarray, Result]]],
    ) -> None:
        """`solved` tells of each problem the dual variables and the last result."""
        self.training, self.setting, self.active = training, setting, active
        self._targets = targets
        self.workers = Workers(n_threads)
        self.unsolved: list[IncrementalProblem] = []
        rows = as_rows(training.matrix, self.workers)
        parts = targets(training.y, training.weights)
        validation.finite_scale(setting.C, [target.weights for target in parts])
        self._rows = GrowingRows(rows)
        used = _rows_of(parts)
        self._ids = training.ids[used]  # of the rows of the matrix, which leaves out those without weight
        self._matrix: GrowingMatrix | None = None
        if setting.kernel is None:
            stores = setting.stores(rows, parts, np.float64, self.workers)
        else:
            data = rows if used.size == rows.n_rows else rows.take(used)
            data = data if isinstance(setting.kernel, Custom) else thinned(data)
            self._matrix = GrowingMatrix(data, setting.kernel, self.workers)
            stores = self._stores(self._matrix, used, len(parts))
        self.problems = [
            IncrementalProblem(target.numbered(training.ids[target.index]), stores(target), beta, result)
            for target, (beta, result) in zip(parts, solved(parts), strict=True)
        ]

    def _stores(self, matrix: GrowingMatrix, used: np.ndarray, n_problems: int) -> Callable[[ChangingTarget], RowStore]:
        def budget(n: int) -> float:
            share = self.setting.cache(n if n_problems == 1 else self._ids.size, 8) / n_problems
            return min(8.0 * n * n, max(share, 16.0 * n))

        if n_problems == 1:
            return lambda target: GrowingStore(matrix, budget, self.workers)
        return lambda target: GrowingStore(PartRows(matrix, np.searchsorted(used, target.index)), budget, self.workers)

    def prepare(self) -> None:
        """Get every problem ready that is not; those will be solved next."""
        for part in self.problems:
            part.prepare(self.setting.C)
            if not part.is_trivial and (part.work is None or not part.result.status.reached_goal):
                self._will_be_solved(part)

    def _will_be_solved(self, part: IncrementalProblem) -> None:
        if part not in self.unsolved:
            self.unsolved.append(part)

    def add_rows(self, rows: Rows, y: np.ndarray, weights: np.ndarray) -> None:
        """New rows, what is learned from them, and their sample weights."""
        self._rows.append(rows)
        first_id = self.training.next_id
        self.training = self.training.appended(self._rows.rows.native(), y, weights)
        parts = self._targets(y, weights)
        used = _rows_of(parts)
        if used.size == 0:
            return
        assert self._matrix is not None
        n_before = self._ids.size
        self._matrix.side.append(rows if used.size == y.size else rows.take(used))
        self._ids = np.append(self._ids, first_id + used)
        for part, more in zip(self.problems, parts, strict=True):
            if more.index.size == 0:
                continue
            if isinstance(part.store.source, PartRows):
                more = more.take(np.argsort(more.index))  # as they came
                places = n_before + np.searchsorted(used, more.index)
                part.store.source.index = np.append(part.store.source.index, places)
            part.add(more.numbered(first_id + more.index), self.setting.C, self.active.candidates)
            self._will_be_solved(part)

    def remove_rows(self, positions: np.ndarray) -> None:
        """Give up rows: their dual variables go to zero, then everything that belongs to them goes."""
        ids, C = self.training.ids[positions], self.setting.C
        touched = [(part, np.isin(part.ids, ids).nonzero()[0]) for part in self.problems]
        for part, places in touched:
            if places.size:
                part.retire(places, C)
        self._drop_from_matrix(ids)
        for part, places in touched:
            if places.size:
                part.reorder(order_without(part.ids.size, places), C)
                self._will_be_solved(part)
        keep = np.delete(np.arange(self.training.ids.size), positions)
        self._rows = self._rows.take(keep)
        self.training = self.training.without(self._rows.rows.native(), positions)

    def _drop_from_matrix(self, ids: np.ndarray) -> None:
        """Take rows out of the matrix; the parts that problems see are renumbered, and cut where they lose rows."""
        assert self._matrix is not None
        order = order_without(self._ids.size, np.isin(self._ids, ids).nonzero()[0])
        number = np.full(self._ids.size, -1)
        number[order] = np.arange(order.size)
        self._matrix.side.reorder(order)
        self._ids = self._ids[order]
        for part in self.problems:
            source = part.store.source
            if isinstance(source, PartRows):
                gone = np.isin(part.ids, ids).nonzero()[0]
                source.index = number[source.index[order_without(part.ids.size, gone)]]

    def solve(self, stop: Stop, cancel: Cancel) -> None:
        """Restore the optimum of all problems that are not solved."""
        clock = Clock()
        quiet = dict.fromkeys(DualState(np.empty(0), np.empty(0)).counts(), 0)
        for part in self.problems:
            seconds = dict.fromkeys(part.result.seconds, 0.0)
            part.result = replace(part.result, counts=quiet, seconds=seconds)
        active = replace(self.active, stopping=stop.rule)
        while self.unsolved:
            limit = stop
            if stop.max_seconds is not None:
                left = max(0.0, stop.max_seconds - clock.seconds)
                limit = replace(stop, max_seconds=left / len(self.unsolved))
            part = self.unsolved.pop(0)
            part.solve(active, self.setting.C, limit, self.workers, cancel)
            if part.result.status is Status.INTERRUPTED:
                cancel.set()

    def left_out(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Of each problem: the positions of its rows, and their decision values when they are left out."""
        values = [part.left_out(self.active, self.setting.C, self.workers) for part in self.problems]
        return [(self._positions(part), found) for part, found in zip(self.problems, values, strict=True)]

    def _positions(self, part: IncrementalProblem) -> np.ndarray:
        return np.searchsorted(self.training.ids, part.ids)

    @property
    def rows(self) -> Rows:
        return self._rows.rows

    def targets(self) -> list[ChangingTarget]:
        """What is learned, with rows as positions in the training data."""
        return [part.target.numbered(self._positions(part)) for part in self.problems]

    def results(self) -> list[Result]:
        return [part.result for part in self.problems]


def _rows_of(targets: Sequence[ChangingTarget]) -> np.ndarray:
    """The rows that take part in any of the problems."""
    return targets[0].index if len(targets) == 1 else np.unique(np.concatenate([target.index for target in targets]))
