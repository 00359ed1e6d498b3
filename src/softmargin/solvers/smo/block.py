"""SMO on blocks: many violating rows at a time, whose kernel rows come out of one product.

    repeat:  choose a block of variables, the worst violators beside members of the last block
             get their kernel rows (what the cache lacks in one go), and the small matrix of the block
             solve the block by pair steps until its violation is a tenth of what it was
             one product with the rows of the variables that moved updates f = K beta

The last block's members stay as long as there is room: those at a bound leave first, then the oldest. Blocks begin
small, because the first violators are guesses. A problem that fits into one block is solved at once.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.kinds import BOX
from softmargin.core.result import Solution
from softmargin.core.stopping import ROUNDING, Measure
from softmargin.problems.box_qp import BoxQP
from softmargin.solvers.dual_state import DualState, first_state

_FIRST = 64  # variables that may enter the first block; twice as many each time after
_INNER_STEPS = 20_000  # pair steps in a block, which take about 50 ms: between blocks interrupts are seen
# A problem that fits into one block is solved until its violation has fallen by the factor _EXACT, or for _EXACT_WORK
# steps times variables, but for _EXACT_STEPS steps at most.
_EXACT, _EXACT_WORK, _EXACT_STEPS = 1e-12, 1 << 22, 100_000
# Regression needs many more steps to that end, so it stops earlier. Where that does not suffice a second round follows.
# With at most _FEW_ROWS the steps cost less than what surrounds them, and the result depends on no order of the rows.
_NEARLY_EXACT, _FEW_ROWS = 1e-4, 100
# A kernel matrix whose diagonal is below this is scaled up for its block, so that _TINY of `_block.py` is small beside
# it.
_SMALL_VALUES = 1e-3
# The solver gives up after _IDLE_ROUNDS rounds in a row that gain nothing and reach no smaller violation than ever. A
# gain is nothing if it is rounding, or so small that _FAR such rounds would be needed to close the gap.
_IDLE_ROUNDS, _FAR = 50, 1e8


@dataclass(frozen=True)
class BlockSMO:
    """Blocks of up to `size` variables, half of which may be exchanged each time; `accuracy` is that of a block."""

    size: int = 1024
    accuracy: float = 0.1
    stopping: str = "relative_gap"
    needs: ClassVar[str] = BOX
    state_type: ClassVar[type] = DualState

    def __post_init__(self) -> None:
        if not self.size >= 2:
            raise SoftmarginError(f"size={self.size!r} must be at least 2: one variable alone cannot move.")
        if not 0.0 < self.accuracy < 1.0:
            raise SoftmarginError(f"accuracy={self.accuracy!r} must lie between 0 and 1, for example 0.1.")

    def init(self, problem: BoxQP, start: Any = None) -> DualState:
        return first_state(problem, start)

    def step(self, problem: BoxQP, state: DualState) -> DualState:
        from softmargin.solvers.smo import _block

        K = problem.K
        size = min(self.size, problem.p.size, K.capacity)
        if size == problem.p.size:
            return _at_once(problem, state)
        block = state.scratch
        if not isinstance(block, Block) or block.size != size:
            block = Block.first(size, K.dtype)
        before = block
        block, violation = block.next(problem, state.beta, state.f)
        members = block.members
        slots = K.fetch(members)
        matrix = block.matrix.fill(problem, members, slots)

        unit = _unit(matrix)
        if unit != 1.0:
            matrix = matrix / unit
        wish = problem.p[members] - state.f[members]
        beta, block_wish = unit * state.beta[members], wish.copy()
        lo, hi = unit * problem.lo[members], unit * problem.hi[members]
        tol = self.accuracy * violation
        steps = _block.solve(matrix, block_wish, beta, lo, hi, problem.epsilon, tol, _INNER_STEPS)
        beta /= unit
        before_beta = state.beta[members]
        change = beta - before_beta
        moved = np.flatnonzero(change)
        f, all_beta = state.f.copy(), state.beta.copy()
        K.add(slots[moved], change[moved], f)
        all_beta[members] = beta
        wishes = (wish + block_wish)[moved]
        gain = 0.5 * float(change[moved] @ (wishes - wishes.mean())) if moved.size else 0.0
        if problem.epsilon:
            gain -= problem.epsilon * float((np.abs(beta) - np.abs(before_beta)).sum())
        progress = before.progress.after(problem, state, gain, violation, problem.magnitude(all_beta, f))
        return replace(
            state,
            beta=all_beta,
            f=f,
            iterations=state.iterations + 1,
            pair_steps=state.pair_steps + steps,
            is_stalled=progress.idle >= _IDLE_ROUNDS,
            scratch=replace(block, progress=progress),
        ).counted(problem)

    def measure(self, problem: BoxQP, state: DualState) -> Measure:
        return problem.measure(state.beta, state.f)

    def counts(self, state: DualState) -> dict[str, int]:
        return state.counts()

    def solution(self, problem: BoxQP, state: DualState) -> Solution:
        return problem.solution(state.beta, state.f)

    def is_stalled(self, state: DualState) -> bool:
        return state.is_stalled


@dataclass(frozen=True)
class Progress:
    """The last `idle` rounds gained nothing, and `least` is the smallest violation so far."""

    idle: int = 0
    least: float = np.inf

    def after(self, problem: BoxQP, state: DualState, gain: float, violation: float, magnitude: float) -> "Progress":
        """The same after a round from this state with this gain, before which the violation was `violation`."""
        if violation < self.least:
            return Progress(0, violation)
        nothing = max(ROUNDING * magnitude, problem.measure(state.beta, state.f).gap / _FAR)
        return Progress(0 if gain > nothing else self.idle + 1, self.least)


def _at_once(problem: BoxQP, state: DualState) -> DualState:
    """A step whose block is the whole problem: it is solved to its end, if that is not far."""
    from softmargin.solvers.smo import _block

    n, matrix = problem.p.size, problem.K.everything()
    unit = _unit(matrix)
    accuracy = _EXACT if problem.kinks is None or n <= _FEW_ROWS else _NEARLY_EXACT
    max_steps = max(min(_EXACT_STEPS, _EXACT_WORK // n), 10 * n)
    beta, f = np.empty((2, n))
    steps, violation, gain, moved, magnitude = _block.solve_all(
        matrix if unit == 1.0 else matrix / unit,
        unit,
        problem.p,
        problem.lo,
        problem.hi,
        problem.epsilon,
        accuracy,
        max_steps,
        state.beta,
        state.f,
        beta,
        f,
    )
    before = state.scratch if isinstance(state.scratch, Progress) else Progress()
    progress = before.after(problem, state, gain, violation, magnitude)
    K = problem.K
    return replace(
        state,
        beta=beta,
        f=f,
        iterations=state.iterations + 1,
        pair_steps=state.pair_steps + steps,
        is_stalled=progress.idle >= _IDLE_ROUNDS or moved == 0,
        scratch=progress,
        kernel_evaluations=K.n_evaluations,
        hits=K.hits,
        misses=K.misses,
    )


class BlockMatrix:
    """The kernel matrix of a block, and whose values each place of it holds (-1: nobody's)."""

    def __init__(self, size: int, dtype: Any) -> None:
        self.values = np.empty((size, size), dtype)  # takes memory when it is written
        self.holds = np.full(size, -1, dtype=np.int64)

    def fill(self, problem: BoxQP, members: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """K over the members; only rows and columns of places that changed hands are gathered."""
        n = members.size
        fresh = np.flatnonzero(self.holds[:n] != members)
        if fresh.size:
            self.holds[n:] = -1  # what those places hold is not kept up to date
        self.holds[fresh] = -1
        matrix = self.values[:n, :n]
        problem.K.gather(slots, members, fresh, matrix)
        self.holds[fresh] = members[fresh]
        return matrix


@dataclass(frozen=True)
class Block:
    """The members of the working block, each in its place, and since when."""

    matrix: BlockMatrix
    members: np.ndarray
    since: np.ndarray
    round: int = 0
    entering: int = _FIRST
    progress: Progress = Progress()

    @classmethod
    def first(cls, size: int, dtype: Any) -> "Block":
        """Nobody."""
        members = np.arange(0)
        return cls(BlockMatrix(size, dtype), members, np.zeros_like(members))

    @property
    def size(self) -> int:
        return self.matrix.holds.size

    def next(self, problem: BoxQP, beta: np.ndarray, f: np.ndarray) -> tuple["Block", float]:
        """The block for the next step, and the violation over all variables."""
        rise, fall = problem.wishes(beta, f)
        up, down = beta < problem.hi, beta > problem.lo
        highest = float(np.max(rise, where=up, initial=-np.inf))
        lowest = float(np.min(fall, where=down, initial=np.inf))
        outside = np.ones(beta.size, dtype=bool)
        outside[self.members] = False
        room = max(self.size // 2, self.size - self.members.size)
        half = max(1, min(room, self.entering) // 2)
        rising = _extreme(-rise, up & outside & (rise > lowest), half)
        outside[rising] = False
        falling = _extreme(fall, down & outside & (fall < highest), half)
        return self._with(np.concatenate([rising, falling]), problem, beta), highest - lowest

    def _with(self, new: np.ndarray, problem: BoxQP, beta: np.ndarray) -> "Block":
        """New members take the places of those at a bound, then of the oldest, once there is no room."""
        excess = max(0, self.members.size + new.size - self.size)
        is_free = problem.is_free(beta[self.members], self.members)
        leaving = np.lexsort((self.since, is_free))[:excess]
        members, since = self.members.copy(), self.since.copy()
        members[leaving], since[leaving] = new[:excess], self.round
        return Block(
            self.matrix,
            members=np.concatenate([members, new[excess:]]),
            since=np.concatenate([since, np.full(new.size - excess, self.round)]),
            round=self.round + 1,
            entering=min(2 * self.entering, 2 * self.size),
        )


def _unit(matrix: np.ndarray) -> float:
    """A power of two by which small kernel values are divided, and variables multiplied: the same problem, in which a
    curvature that counts as zero is a share of the diagonal.
    """
    largest = float(np.abs(matrix.diagonal()).max(initial=0.0))
    return math.ldexp(1.0, math.frexp(largest)[1]) if 0.0 < largest < _SMALL_VALUES else 1.0


def _extreme(values: np.ndarray, candidates: np.ndarray, k: int) -> np.ndarray:
    """The indices of the k smallest values among the candidates."""
    index = np.flatnonzero(candidates)
    if index.size <= k:
        return index
    return index[np.argpartition(values[index], k - 1)[:k]]
