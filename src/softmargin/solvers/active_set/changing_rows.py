"""Rows are added and removed: from one optimum to that of a problem with more or fewer variables (Section 4.4).

A new variable begins at zero, and wants away from there or not. A variable that is to go is driven to zero while the
free ones keep their wishes equal; those that meet a bound stay there. What is left is an ordinary start for the solver,
with its working set and factor.
"""

from collections import deque
from copy import deepcopy
from dataclasses import replace

import numpy as np

from softmargin.problems.box_qp import BoxQP
from softmargin.solvers.active_set.active_set import Settling
from softmargin.solvers.active_set.working import Working
from softmargin.solvers.dual_state import DualState


def with_working(state: DualState, work: Working | None, *, settled: bool = False) -> DualState:
    """A state for the solver to go on from, with a working set that belongs to it, or to be judged at once."""
    if work is not None:
        work.matches = state.beta
        work.idle, work.value, work.least = 0, -np.inf, np.inf
    return replace(state, is_stalled=False, scratch=Settling(work, settled))


def extend(work: Working, problem: BoxQP, beta: np.ndarray, f: np.ndarray) -> None:
    """The problem has more variables behind the old ones."""
    more = beta.size - work.where.size
    work.where = np.append(work.where, np.full(more, -1))
    work.streak = np.zeros(beta.size, dtype=np.int64)
    work.lengths = np.sqrt(np.maximum(problem.K.diag(), 0.0))
    work.take_targets(problem)
    work.begin(problem, beta, f)


def retire(work: Working, problem: BoxQP, rows: np.ndarray) -> None:
    """Drive the variables of these rows to zero; in the problem they have no weight, so that they stay there."""
    waiting = deque(rows.tolist())
    while waiting:
        problem.workers.check()
        row = waiting.popleft()
        if not _retire_one(work, problem, row):
            waiting.append(row)  # it has to wait for one of the other sign


def _retire_one(work: Working, problem: BoxQP, row: int) -> bool:
    """False if nobody who stays can take over what is left."""
    if work.beta[row] == 0.0 and work.where[row] < 0:
        return True
    place = work.bring(problem, row)
    while not work.inner.retire(place):
        work.advance(problem)
        is_rising = bool(work.beta[row] > 0.0)
        helper = _helper(work, problem, is_rising=is_rising)
        if helper is None:
            return False
        work.inner.release(work.bring(problem, helper), is_rising=is_rising)
    work.advance(problem)
    return True


def _helper(work: Working, problem: BoxQP, *, is_rising: bool) -> int | None:
    """Who takes over where nobody is free: of those who stay and can rise or fall, the one that wants to most."""
    rise, fall = problem.wishes(work.beta, work.f)
    wishes = rise if is_rising else -fall
    has_room = work.beta < problem.hi if is_rising else work.beta > problem.lo
    able = (has_room & (problem.lo < problem.hi)).nonzero()[0]
    return int(able[wishes[able].argmax()]) if able.size else None


def reorder(work: Working, problem: BoxQP, order: np.ndarray, beta: np.ndarray, f: np.ndarray) -> None:
    """The problem keeps the variables of `order` only, in this order; the others are retired."""
    inner = work.inner
    number = np.full(work.where.size, -1)
    number[order] = np.arange(order.size)
    gone = (number[inner.index] < 0).nonzero()[0]
    for k in gone[::-1].tolist():
        inner.discard(k)
    inner.index[:] = number[inner.index]
    work.where = np.full(order.size, -1)
    work.where[inner.index] = np.arange(inner.size)
    work.streak = np.zeros(order.size, dtype=np.int64)
    work.lengths = work.lengths[order]
    work.take_targets(problem)
    work.begin(problem, beta, f)


class Saved:
    """A working set at its optimum, to come back to after detours, in which new members come behind the present ones.

    A detour begins with `work.begin`.
    """

    def __init__(self, work: Working) -> None:
        work.keeps_places = True
        self._work, self._size, self._patience = work, work.inner.size, work.patience
        self._values, self._factor = work.inner.values.copy(), deepcopy(work.inner.factor)

    def restore(self) -> None:
        work, inner = self._work, self._work.inner
        work.where[inner.index] = -1
        inner.shrink(self._size)
        work.where[inner.index] = np.arange(inner.size)
        inner.values[:] = self._values
        inner.factor, inner.dependents, inner.idle = deepcopy(self._factor), [], 0
        work.patience = self._patience

    def close(self) -> None:
        self._work.keeps_places = False
