"""SMO: sequential minimal optimisation, with every working-set rule of the HMG paper.

    min over beta of 1/2 beta'K beta - p'beta + epsilon sum |beta_i|,   lo <= beta <= hi,   sum(beta) = total

    repeat:
        choose a pair (i, j) by the rule, with F_i > F_j for the wishes F = p - K beta
        beta_i += mu, beta_j -= mu with mu = min((F_i - F_j) / a, hi_i - beta_i, beta_j - lo_j)       Section 2.1
        F -= mu (K_i - K_j),                                                                          eq. (2)
    until the problem's measure says so

The rules, with a = K_ii + K_jj - 2 K_ij and the gain 1/2 a mu (2 (F_i - F_j) / a - mu), eq. (3):

    most_violating_pair    i of the largest wish that may rise, j of the least that may fall     Section 1.3
    second_order           i likewise, j of the largest gain if there were no box                Section 1.3, Fan et al.
    maximum_gain           the best pair that keeps a variable of the last one                   Section 2.3
    hybrid_maximum_gain    likewise, but the most violating pair where both are at bounds        Section 2.4
    gain_one_row           hybrid, but the pair keeps the variable that was new in the last one  Sections 2.5, 4.6
    gain_all_cached        hybrid, but over the rows of all variables in the cache               Sections 2.5, 4.6
    decomposition          `block` variables of the most violating pairs at a time, as SVM-light Section 1.3

Reference: T. Glasmachers, C. Igel, Maximum-Gain Working Set Selection for SVMs, JMLR 7, 2006. R.-E. Fan, P.-H. Chen,
C.-J. Lin, Working Set Selection Using Second Order Information for Training SVMs, JMLR 6, 2005.

Symbols: y alpha -> beta; y gradient -> wish F; C -> hi - lo; eta -> eta; B -> pair.

Departs from the papers: signed variables. Regression has one variable for each row in place of two, which a step
leaves at zero before it may change its sign. A curvature of zero or less sends the step to the end of the box. The
hybrid rules also take the most violating pair where no pair of theirs gains anything in floating point. A small step
ends nothing: only the measure of the whole problem does. The first pair is the most violating one.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.kinds import BOX
from softmargin.core.result import Solution
from softmargin.core.stopping import ROUNDING, Measure
from softmargin.core.stopping import RULES as STOP_RULES
from softmargin.problems.box_qp import BoxQP
from softmargin.solvers.dual_state import DualState, first_state, repaired
from softmargin.solvers.smo.shrink import Shrinking, latest, part_of, shrunk, unshrunk

# Working-set rules: the numbers that compiled code knows them by. Decomposition has a loop of its own.
RULES = {
    "most_violating_pair": 0,
    "second_order": 1,
    "maximum_gain": 2,
    "hybrid_maximum_gain": 3,
    "gain_one_row": 4,
    "gain_all_cached": 5,
    "decomposition": 6,
}
# A slice has _FIRST_STEPS steps at first, and later at most _SHARE of all steps so far: so the solve runs on for little
# after it could have stopped.
_FIRST_STEPS, _SHARE = 100, 1 / 16
_SLICE_WORK = 20_000_000  # entries of kernel rows, or of working sets, that a slice passes over: some 50 ms
_SLICE_MISSES = 32  # kernel rows that a slice computes
_SHRINK_PERIOD = 1000  # steps between two looks at what can be set aside
_LEAST_CURVATURE = 1e-12  # of a pair when second-order gains are compared, as a share of the largest K_ii
# The solve is stuck after this many slices in a row that gain no more than rounding.
_IDLE_SLICES = 20


class Choice(NamedTuple):
    """How compiled loops choose a pair: the number of the rule, what is near a bound, and the least curvature.

    `epsilon` is that of the problem.
    """

    rule: int
    eta: float
    least: float
    epsilon: float


class Variables(NamedTuple):
    """The variables of a slice, as compiled loops see and change them; see `_loop.py`. `diag` is that of K."""

    diag: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    beta: np.ndarray
    rise: np.ndarray
    fall: np.ndarray
    up: np.ndarray
    down: np.ndarray

    @classmethod
    def room_for(cls, size: int, *, has_kinks: bool) -> "Variables":
        """Variables of this number, without values."""
        diag, lo, hi, beta, rise, fall, up, down = (np.zeros(size) for _ in range(8))
        return cls(diag, lo, hi, beta, rise, fall if has_kinks else rise, up, down)


@dataclass(frozen=True)
class SMO:
    """Pair steps by one of the `RULES`.

    Parameters
    ----------
    rule : str
        How the pair is chosen.
    shrinking : bool
        Whether variables that seem to stay at their bounds are set aside.
    block : int
        Variables of a working set of `decomposition`.
    eta : float
        How close to a bound, as a share of the range, counts as at it for the hybrid rules.
    slice_steps : int
        At most so many pair steps make one step of the loop.
    tol : float
        What the loop is going to ask for, as `stopping` measures it. It only tells when a shrunk problem is worth
        completing; 0 means unknown.
    """

    rule: str = "second_order"
    shrinking: bool = True
    block: int = 10
    eta: float = 1e-8
    slice_steps: int = 4096
    tol: float = 0.0
    stopping: str = "relative_gap"
    needs: ClassVar[str] = BOX
    state_type: ClassVar[type] = DualState

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise SoftmarginError(f"unknown working-set rule {self.rule!r}: choose one of {sorted(RULES)}.")
        if self.block < 2:
            raise SoftmarginError(f"block={self.block!r} must be at least 2: one variable alone cannot move.")
        if self.slice_steps < 1:
            raise SoftmarginError(f"slice_steps={self.slice_steps!r} must be at least 1.")
        if not 0.0 <= self.eta < 0.5:
            raise SoftmarginError(f"eta={self.eta!r} must be at least 0 and below 0.5 (the paper uses 1e-8).")

    def init(self, problem: BoxQP, start: Any = None) -> DualState:
        diag = problem.K.diag()
        part = part_of(start) if isinstance(start, DualState) else None
        if part is not None:
            beta, _ = latest(start)
            if np.array_equal(repaired(beta, problem), beta):
                return replace(start, scratch=Shrinking(diag, part.of(problem)), is_stalled=False)
            start = replace(start, beta=beta, scratch=None)
        return replace(first_state(problem, start), scratch=Shrinking(diag))

    def step(self, problem: BoxQP, state: DualState) -> DualState:
        after, is_stuck = self._slice(problem, state)
        if part_of(after) is not None:
            if is_stuck or self._looks_done(problem, after):
                after = unshrunk(problem, after)
        elif is_stuck:
            after = _settled(problem, after)
        if self.shrinking and not is_stuck and after.unshrinkings == state.unshrinkings:
            period = min(after.beta.size, _SHRINK_PERIOD)
            if after.iterations // period > state.iterations // period:
                after = shrunk(problem, after)
        return after.counted(problem)

    def measure(self, problem: BoxQP, state: DualState) -> Measure:
        """That of the whole problem where f was last complete: a shrunk problem proves nothing."""
        return problem.measure(state.beta, state.f)

    def counts(self, state: DualState) -> dict[str, int]:
        return state.counts()

    def solution(self, problem: BoxQP, state: DualState) -> Solution:
        whole = unshrunk(problem, state)
        return problem.solution(whole.beta, whole.f)

    def is_stalled(self, state: DualState) -> bool:
        return state.is_stalled

    def _slice(self, problem: BoxQP, state: DualState) -> tuple[DualState, bool]:
        """Some pair steps, on the part of the problem that is active; and whether there is none left to make."""
        scratch, part = state.scratch, part_of(state)
        active = slice(None) if part is None else part.active
        K, whole, f = (problem.K, state.beta, state.f) if part is None else (part.K, part.beta, part.f)
        p, epsilon = problem.p[active], problem.epsilon
        whole = whole.copy()
        beta, wish = whole[active], p - f
        rise, fall = wish, wish
        if epsilon:
            rise, fall = wish - _away(beta >= 0.0, epsilon), wish - _away(beta > 0.0, epsilon)
        pair = np.array(state.pair, dtype=np.int64)
        if part is not None:
            pair = np.where(pair >= 0, np.searchsorted(part.active, pair), -1)
        up, down = problem.rooms(beta, active)
        variables = Variables(scratch.diag[active], problem.lo[active], problem.hi[active], beta, rise, fall, up, down)
        hits, misses = K.hits, K.misses
        done = self._run_loop(problem, K, self._steps(state, K), variables, pair)
        if part is not None:
            problem.K.count(K.hits - hits, K.misses - misses)

        f = p - (rise + _away(beta >= 0.0, epsilon) if epsilon else wish)
        whole[active] = beta
        magnitude = problem.magnitude(whole, state.f)  # f of variables that are set aside is older, and near enough
        idle = scratch.idle + 1 if done.gain <= ROUNDING * magnitude else 0
        if part is None:
            state, scratch = replace(state, beta=whole, f=f), replace(scratch, idle=idle)
        else:
            pair = np.where(pair >= 0, part.active[pair], -1)
            scratch = replace(scratch, part=replace(part, beta=whole, f=f), idle=idle)
        after = replace(
            state,
            iterations=state.iterations + done.steps,
            pair_steps=state.pair_steps + done.pair_steps,
            pair=(int(pair[0]), int(pair[1])),
            scratch=scratch,
        )
        return after, done.is_stuck or idle >= _IDLE_SLICES

    def _run_loop(self, problem: BoxQP, K: Any, steps: int, variables: Variables, pair: np.ndarray) -> "_Done":
        """The compiled loop, and the rows that it asks for; changes the variables and the pair, counts hits."""
        from softmargin.solvers.smo import _loop

        slab = K.opened()
        chosen = np.full(self._set_size(K), -1, dtype=np.int64)
        least = _LEAST_CURVATURE * float(variables.diag.max(initial=0.0)) or 1.0
        choice = Choice(RULES[self.rule], self.eta, least, problem.epsilon)
        is_by_sets = self.rule == "decomposition"
        room = Variables.room_for(chosen.size, has_kinks=problem.epsilon > 0.0) if is_by_sets else None
        made, gain, pair_steps = 0, 0.0, 0
        hits, misses, uses = K.hits, K.misses, -int(slab.clock[0])
        code = _loop.NEED_ROWS
        while code == _loop.NEED_ROWS and (made == 0 or K.misses - misses < _SLICE_MISSES):
            problem.workers.check()
            if is_by_sets:
                inner_steps = max(1, _SLICE_WORK // chosen.size**2 - pair_steps)
                code, n, g, inner = _loop.set_steps(steps - made, inner_steps, choice, slab, variables, room, chosen)
            else:
                code, n, g = _loop.pair_steps(steps - made, choice, slab, variables, pair, chosen)
                inner = n
            made, gain, pair_steps = made + n, gain + g, pair_steps + inner
            if code == _loop.NEED_ROWS:
                rows = chosen if chosen[0] >= 0 else pair
                K.fetch(rows[rows >= 0])
                uses -= 1
        uses += int(slab.clock[0])  # the clock advances with each use of a row, and with each fetch
        K.count(hits + max(0, uses - (K.misses - misses)) - K.hits)
        return _Done(made, pair_steps, gain, code == _loop.STUCK)

    def _set_size(self, K: Any) -> int:
        return min(self.block, K.capacity) if self.rule == "decomposition" else 2

    def _steps(self, state: DualState, K: Any) -> int:
        """How many steps to make before the loop looks again."""
        passes = K.n_cached if self.rule == "gain_all_cached" else self._set_size(K)
        enough = max(1, 2 * _SLICE_WORK // (2 + passes) // max(1, K.n))
        return min(self.slice_steps, max(_FIRST_STEPS, int(_SHARE * state.iterations)), enough)

    def _looks_done(self, problem: BoxQP, state: DualState) -> bool:
        """Whether a shrunk problem is solved well enough for the whole one to be looked at."""
        part = part_of(state)
        assert part is not None
        beta, f = latest(state)
        rise, fall = (wish[part.active] for wish in problem.wishes(beta, f))
        highest = np.max(rise, where=(beta < problem.hi)[part.active], initial=-np.inf)
        lowest = np.min(fall, where=(beta > problem.lo)[part.active], initial=np.inf)
        if highest - lowest <= part.goal:
            return True
        if self.tol <= 0.0:
            return False
        value = STOP_RULES[self.stopping]
        return value(problem.measure(beta, f)) <= self.tol < value(self.measure(problem, state))


@dataclass(frozen=True)
class _Done:
    """What a slice has done: steps of the rule and pair steps within them, and their gain."""

    steps: int
    pair_steps: int
    gain: float
    is_stuck: bool


def _away(is_above: np.ndarray, epsilon: float) -> np.ndarray:
    """What a wish loses by leading away from zero, or gains by leading there."""
    return np.where(is_above, epsilon, -epsilon)


def _settled(problem: BoxQP, state: DualState) -> DualState:
    """No step is left: f is summed anew, and if that was done before without any gain since, the solve has stalled."""
    f = problem.K.product(state.beta)
    value = problem.dual(state.beta, f)
    before = state.scratch.stuck_at
    scratch = replace(state.scratch, idle=0, stuck_at=max(value, before))
    return replace(state, f=f, scratch=scratch, is_stalled=value <= before + ROUNDING * abs(value))
