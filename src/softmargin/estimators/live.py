"""A trained kernel machine that is kept ready to learn and unlearn rows: data, kernel rows, working sets and factors.

Rows are known by their ids. Each pair of classes is a problem of its own, over the same data. An operation that fails
leaves this object unusable, and the caller drops it: all of it can be made anew from the training data and the dual
variables.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Certificate, Result, Solution
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.core.threads import Cancel, Workers
from softmargin.core.trace import Clock
from softmargin.data.convert import as_rows, thinned
from softmargin.data.growing import GrowingRows
from softmargin.data.rows import Rows
from softmargin.estimators.kernel_targets import Pair, pairs_of
from softmargin.estimators.kernel_work import KernelSetting
from softmargin.estimators.training_rows import Training
from softmargin.kernels.cached import RowStore
from softmargin.kernels.functions import Custom
from softmargin.kernels.growing import GrowingMatrix, GrowingStore, PartRows, order_without
from softmargin.problems.box_qp import BoxQP
from softmargin.problems.growing_judge import GrowingJudge
from softmargin.problems.kernel_certificate import KernelJudge
from softmargin.problems.row_loss import RowLoss
from softmargin.solvers.active_set import changing_rows
from softmargin.solvers.active_set.active_set import ActiveSet, Settling
from softmargin.solvers.active_set.working import Working
from softmargin.solvers.base import run
from softmargin.solvers.dual_state import DualState, repaired
from softmargin.solvers.smo.block import BlockSMO
from softmargin.solvers.staged import Continued, Stage

# When few rows are new, the active set looks at _CANDIDATES_A_ROW variables for each of them, and at _FEW_CANDIDATES at
# least, beside the free variables.
_CANDIDATES_A_ROW, _FEW_CANDIDATES = 4, 16


class LivePair:
    """The problem of two classes: its rows, their kernel values, and where it stands."""

    def __init__(self, pair: Pair, ids: np.ndarray, store: RowStore, beta: np.ndarray, result: Result) -> None:
        self.first, self.second = pair.first, pair.second
        self.ids, self.signed_weights, self.store = ids, pair.signed_weights, store
        self.beta, self.f = beta, np.empty(0)
        self.work: Working | None = None
        self.judge = GrowingJudge()
        self.result = result
        self.has_grown = False  # and nothing else, since the last solve

    @property
    def has_opponents(self) -> bool:
        return bool((self.signed_weights > 0).any() and (self.signed_weights < 0).any())

    def problem(self, C: float, signed_weights: np.ndarray | None = None) -> BoxQP:
        weights = self.signed_weights if signed_weights is None else signed_weights
        return BoxQP(self.store, RowLoss.classification(weights, C), self.store.workers)

    def wake(self, C: float) -> None:
        """Make the dual variables feasible, and f from them; what is counted begins here."""
        if isinstance(self.store, GrowingStore):
            self.store.restart_counts()
        if self.f.size == self.beta.size:
            return
        self.beta = repaired(self.beta, self.problem(C))
        self.f = self.store.product(self.beta, keep=True)

    def add(self, ids: np.ndarray, signed_weights: np.ndarray, C: float, candidates: int) -> None:
        """New rows, which the store's source has already."""
        assert isinstance(self.store, GrowingStore)
        self.store.extend()
        self.has_grown = True
        fresh = np.arange(self.beta.size, self.beta.size + ids.size)
        beta = np.append(self.beta, np.zeros(ids.size))
        self.ids = np.append(self.ids, ids)
        self.signed_weights = np.append(self.signed_weights, signed_weights)
        self.beta, self.f = beta, np.append(self.f, self.store.outputs(beta, fresh))
        if self.work is not None:
            changing_rows.extend(self.work, self.problem(C), self.beta, self.f)
            self.work.candidates = min(candidates, max(_FEW_CANDIDATES, _CANDIDATES_A_ROW * ids.size))

    def retire(self, places: np.ndarray, C: float) -> None:
        """Drive the dual variables of these places to zero."""
        self.has_grown = False
        if not self.has_opponents:
            return
        weights = self.signed_weights.copy()
        weights[places] = 0.0
        problem = self.problem(C, weights)
        if self.work is None:
            self.beta = repaired(self.beta, problem)
            self.f = self.store.product(self.beta)
            return
        self.work.begin(problem, self.beta, self.f)
        changing_rows.retire(self.work, problem, places)
        self.beta, self.f = self.work.beta, self.work.f

    def reorder(self, order: np.ndarray, C: float) -> None:
        """Keep the places of `order`, in this order."""
        assert isinstance(self.store, GrowingStore)
        self.store.reorder(order)
        self.ids, self.signed_weights = self.ids[order], self.signed_weights[order]
        self.beta, self.f = self.beta[order], self.f[order]
        self.judge.forget()
        if self.work is not None:
            changing_rows.reorder(self.work, self.problem(C), order, self.beta, self.f)

    def solve(self, active: ActiveSet, C: float, stop: Stop, workers: Workers, cancel: Cancel) -> None:
        """Restore the optimum."""
        pair = Pair(self.first, self.second, self.ids, self.signed_weights)
        if (answer := pair.answer()) is not None:
            self.result = answer
            return
        problem = self.problem(C)
        judge = KernelJudge.of(problem, stop.tol)
        was_solved = self.has_grown and self.work is not None and self.result.status.reached_goal
        is_solved = was_solved and problem.measure(self.beta, self.f).kkt <= active.tol * problem.unit
        state = changing_rows.with_working(DualState(self.beta, self.f).counted(problem), self.work, settled=is_solved)
        self.work, self.has_grown = None, False
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
        if not self.has_opponents:
            return out
        if self.work is None:
            raise SoftmarginError(
                "the free variables of this model are too many for the active set, which leaving out needs: raise "
                "max_bytes of softmargin.ActiveSet, or lower C or gamma."
            )
        n_positive = int(np.count_nonzero(self.signed_weights > 0))
        saved = changing_rows.Saved(self.work)
        for k in self.beta.nonzero()[0].tolist():
            workers.check()
            weights = self.signed_weights.copy()
            sign, weights[k] = np.sign(weights[k]), 0.0
            if (n_positive if sign > 0 else self.ids.size - n_positive) == 1:
                out[k] = -sign
                continue
            out[k] = self._without(k, active, self.problem(C, weights))
            saved.restore()
        saved.close()
        return out

    def _without(self, k: int, active: ActiveSet, problem: BoxQP) -> float:
        assert self.work is not None
        self.work.begin(problem, self.beta, self.f)
        changing_rows.retire(self.work, problem, np.array([k]))
        state = changing_rows.with_working(DualState(self.work.beta, self.work.f), self.work)
        while not state.scratch.settled and not state.is_stalled:
            state = active.step(problem, state)
        return float(state.f[k]) + problem.solution(state.beta, state.f).b


class Live:
    """All pairs, over one growing matrix of kernel values."""

    def __init__(
        self,
        training: Training,
        factors: np.ndarray,
        setting: KernelSetting,
        active: ActiveSet,
        n_threads: int,
        known: Callable[[list[Pair]], Sequence[tuple[np.ndarray, Result]]],
    ) -> None:
        """`factors` are the class weights; `known` tells of each pair the dual variables and the last result."""
        self.training, self.factors, self.setting, self.active = training, factors, setting, active
        self.workers = Workers(n_threads)
        self.pending: list[LivePair] = []
        weights = training.weights * factors[training.codes]
        rows = as_rows(training.matrix, self.workers)
        pairs = pairs_of(training.codes, factors.size, weights)
        self._rows = GrowingRows(rows)
        used = (weights > 0).nonzero()[0]
        self._ids = training.ids[used]  # of the rows of the matrix, which leaves out those without weight
        self._matrix: GrowingMatrix | None = None
        if setting.kernel is None:
            stores = setting.stores(rows, pairs, np.float64, self.workers)
        else:
            data = rows if used.size == rows.n_rows else rows.take(used)
            data = data if isinstance(setting.kernel, Custom) else thinned(data)
            self._matrix = GrowingMatrix(data, setting.kernel, self.workers)
            stores = self._stores(self._matrix, used, len(pairs))
        self.pairs = [
            LivePair(pair, training.ids[pair.index], stores(pair), beta, result)
            for pair, (beta, result) in zip(pairs, known(pairs), strict=True)
        ]

    def _stores(self, matrix: GrowingMatrix, used: np.ndarray, n_pairs: int) -> Callable[[Pair], RowStore]:
        def budget(n: int) -> float:
            share = self.setting.cache(n if n_pairs == 1 else self._ids.size, 8) / n_pairs
            return min(8.0 * n * n, max(share, 16.0 * n))

        if n_pairs == 1:
            return lambda pair: GrowingStore(matrix, budget, self.workers)
        return lambda pair: GrowingStore(PartRows(matrix, np.searchsorted(used, pair.index)), budget, self.workers)

    def wake(self) -> None:
        """Get every pair ready that is not; those will be solved next."""
        for pair in self.pairs:
            pair.wake(self.setting.C)
            if pair.has_opponents and (pair.work is None or not pair.result.status.reached_goal):
                self._await(pair)

    def _await(self, pair: LivePair) -> None:
        if pair not in self.pending:
            self.pending.append(pair)

    def add(self, rows: Rows, codes: np.ndarray, weights: np.ndarray) -> None:
        """New rows, with alpha = 0."""
        C = self.setting.C
        self._rows.append(rows)
        before = self.training.next_id
        self.training = self.training.appended(self._rows.rows.native(), codes, weights)
        weights = weights * self.factors[codes]
        used = (weights > 0).nonzero()[0]
        if used.size == 0:
            return
        assert self._matrix is not None
        n_before = self._ids.size
        self._matrix.side.append(rows if used.size == codes.size else rows.take(used))
        self._ids = np.append(self._ids, before + used)
        codes, weights = codes[used], weights[used]
        for pair in self.pairs:
            chosen = ((codes == pair.first) | (codes == pair.second)).nonzero()[0]
            if chosen.size == 0:
                continue
            positive = pair.second if self.factors.size == 2 else pair.first
            signs = np.where(codes[chosen] == positive, 1.0, -1.0)
            if isinstance(pair.store.source, PartRows):
                pair.store.source.index = np.append(pair.store.source.index, n_before + chosen)
            pair.add(before + used[chosen], signs * weights[chosen], C, self.active.candidates)
            self._await(pair)

    def remove(self, positions: np.ndarray) -> None:
        """Give up rows: their dual variables go to zero, then everything that belongs to them goes."""
        ids, C = self.training.ids[positions], self.setting.C
        touched = [(pair, np.isin(pair.ids, ids).nonzero()[0]) for pair in self.pairs]
        for pair, places in touched:
            if places.size:
                pair.retire(places, C)
        self._drop(ids)
        for pair, places in touched:
            if places.size:
                pair.reorder(order_without(pair.ids.size, places), C)
                self._await(pair)
        keep = np.delete(np.arange(self.training.ids.size), positions)
        self._rows = self._rows.take(keep)
        self.training = self.training.without(self._rows.rows.native(), positions)

    def _drop(self, ids: np.ndarray) -> None:
        """Take rows out of the matrix; the parts that pairs see are renumbered, and cut where they lose rows."""
        assert self._matrix is not None
        order = order_without(self._ids.size, np.isin(self._ids, ids).nonzero()[0])
        number = np.full(self._ids.size, -1)
        number[order] = np.arange(order.size)
        self._matrix.side.reorder(order)
        self._ids = self._ids[order]
        for pair in self.pairs:
            source = pair.store.source
            if isinstance(source, PartRows):
                gone = np.isin(pair.ids, ids).nonzero()[0]
                source.index = number[source.index[order_without(pair.ids.size, gone)]]

    def solve(self, stop: Stop, cancel: Cancel) -> None:
        """Restore the optimum of all pairs that are pending."""
        clock = Clock()
        quiet = dict.fromkeys(DualState(np.empty(0), np.empty(0)).counts(), 0)
        for pair in self.pairs:
            seconds = dict.fromkeys(pair.result.seconds, 0.0)
            pair.result = replace(pair.result, counts=quiet, seconds=seconds)
        active = replace(self.active, stopping=stop.rule)
        while self.pending:
            limit = stop
            if stop.max_seconds is not None:
                left = max(0.0, stop.max_seconds - clock.seconds)
                limit = replace(stop, max_seconds=left / len(self.pending))
            pair = self.pending.pop(0)
            pair.solve(active, self.setting.C, limit, self.workers, cancel)
            if pair.result.status is Status.INTERRUPTED:
                cancel.set()

    def left_out(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Of each pair: the positions of its rows, and their decision values when they are left out."""
        C = self.setting.C
        parts = [pair.left_out(self.active, C, self.workers) for pair in self.pairs]
        return [(self._positions(pair), part) for pair, part in zip(self.pairs, parts, strict=True)]

    def _positions(self, pair: LivePair) -> np.ndarray:
        return np.searchsorted(self.training.ids, pair.ids)

    @property
    def rows(self) -> Rows:
        return self._rows.rows

    def index_pairs(self) -> list[Pair]:
        """The pairs, with their rows as positions in the training data."""
        return [Pair(pair.first, pair.second, self._positions(pair), pair.signed_weights) for pair in self.pairs]

    def results(self) -> list[Result]:
        return [pair.result for pair in self.pairs]


def known_result(alpha: np.ndarray, b: float, certificate: Certificate, status: Status, trace: Any) -> Result:
    """What an earlier fit found, as a result."""
    solution = Solution(np.empty(0), b, alpha)
    return Result(solution, status, certificate, {}, trace, None, {"total": 0.0, "judge": 0.0, "compile": 0.0})
