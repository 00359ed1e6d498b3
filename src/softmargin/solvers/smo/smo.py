"""SMO: sequential minimal optimisation, with every working-set rule of the HMG paper.

    min over beta of 1/2 beta'K beta - p'beta + epsilon sum |beta_i|,   lo <= beta <= hi,   sum(beta) = total

    repeat:
        choose a pair (i, j) by the rule, with F_i > F_j for the wishes F = p - K beta
        beta_i += mu, beta_j -= mu with mu = min((F_i - F_j) / a, hi_i - beta_i, beta_j - lo_j)       Section 2.1
        F -= mu (K_i - K_j),                                                                          eq. (2)
    until the stop rule is met: the KKT gap and mu are looked at before every step, the duality gap from time to time

The rules, with a = K_ii + K_jj - 2 K_ij and the gain 1/2 a mu (2 (F_i - F_j) / a - mu), eq. (3):

    most_violating_pair    i of the largest wish that may rise, j of the least that may fall     Section 1.3
    second_order           i likewise, j of the largest gain if there were no box                Section 1.3, Fan et al.
    maximum_gain           the best pair that keeps a variable of the last one                   Section 2.3
    hybrid_maximum_gain    likewise, but the most violating pair where both are at bounds        Section 2.4
    gain_one_row           hybrid, but the pair keeps the variable that was new in the last one  Sections 2.5, 4.6
    gain_recent_rows       hybrid, but over the rows of the `recent` variables used last         Section 2.5
    gain_all_cached        hybrid, but over the rows of all variables in the cache               Sections 2.5, 4.6
    greedy                 the best of all pairs, for up to GREEDY_ROWS rows                     Sections 2.3, 3.2
    decomposition          `block` variables of the most violating pairs at a time, as SVM-light Section 1.3
    gain_sets              `block` variables: one enters the last set, the one that gains most   Section 2.5

Reference: T. Glasmachers, C. Igel, Maximum-Gain Working Set Selection for SVMs, JMLR 7, 2006. R.-E. Fan, P.-H. Chen,
C.-J. Lin, Working Set Selection Using Second Order Information for Training SVMs, JMLR 6, 2005.

Symbols: y alpha -> beta; y gradient -> wish F; C -> hi - lo; eta -> eta; B -> pair.

Departs from the papers: signed variables. Regression has one variable for each row in place of two, which a step
leaves at zero before it may change its sign. A curvature of zero or less sends the step to the end of the box. The
hybrid rules also take the most violating pair where no pair of theirs gains anything in floating point. The first pair
is the most violating one. A small step proves nothing: with `stopping="gain"` it ends a solve only if the KKT gap is
small too, unless `strict` is False. Sets of `gain_sets` begin as the most violating pair and grow to `block` variables.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.kinds import BOX
from softmargin.core.result import Solution
from softmargin.core.stopping import BY_KKT, ROUNDING, Measure
from softmargin.core.stopping import RULES as STOP_RULES
from softmargin.problems.box_qp import BoxQP
from softmargin.solvers.dual_state import DualState, first_state, repaired
from softmargin.solvers.smo.shrink import Shrinking, latest, part_of, shrunk, unshrunk

# Working-set rules: the numbers that compiled code knows them by. Those of sets have loops of their own.
RULES = {
    "most_violating_pair": 0,
    "second_order": 1,
    "maximum_gain": 2,
    "hybrid_maximum_gain": 3,
    "gain_one_row": 4,
    "gain_all_cached": 5,
    "gain_recent_rows": 6,
    "greedy": 7,
    "decomposition": 8,
    "gain_sets": 9,
}
BY_SETS = {"decomposition": 10, "gain_sets": 3}  # how large the sets are unless `block` says otherwise
# The largest problem whose pairs are all looked at in each step: they are two million then.
GREEDY_ROWS = 2000
# A slice has _FIRST_STEPS steps at first, and later at most _SHARE of all steps so far: so the solve runs on for little
# after it could have stopped.
_FIRST_STEPS, _SHARE = 100, 1 / 16
_SLICE_WORK = 20_000_000  # entries of kernel rows, or of working sets, that a slice passes over: some 50 ms
_SLICE_MISSES = 32  # kernel rows that a slice computes
_SHRINK_PERIOD = 1000  # steps between two looks at what can be set aside
_LEAST_CURVATURE = 1e-12  # of a pair when second-order gains are compared, as a share of the largest K_ii
_AFTER_CLAIM = 0.95  # the share of a claim that was not confirmed at which the next one is made
# The solve is stuck after this many slices in a row that gain no more than rounding.
_IDLE_SLICES = 20


class Choice(NamedTuple):
    """How compiled loops choose a pair, and when they end.

    `eta` says what is near a bound, `least` is the least curvature, `epsilon` that of the problem. A loop ends where
    the KKT gap is at most `goal` (-1: never); where it `waits`, not before a step that is chosen by its gain is shorter
    than `step_goal` (0: never), or one that is not would follow. Unless `is_strict` the short step is enough. If
    `is_clipped` the length is what the box leaves of the step.
    """

    rule: int
    eta: float
    least: float
    epsilon: float
    goal: float
    step_goal: float
    waits: bool
    is_strict: bool
    is_clipped: bool


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
    block : int or None
        Variables of a working set of `decomposition` (None: 10), and at most of `gain_sets` (None: 3), where choosing
        one means to solve `block` small problems for each variable that violates.
    recent : int
        Rows whose gains `gain_recent_rows` compares.
    eta : float
        How close to a bound, as a share of the range, counts as at it for the hybrid rules.
    slice_steps : int
        At most so many pair steps make one step of the loop.
    tol : float
        What the loop is going to ask for, as `stopping` measures it, so that the solve ends at the very step at which a
        KKT gap is reached, and a shrunk problem is completed when that is worth it. 0 means unknown: then the loop
        looks after slices of steps only. `SVC` sets it.
    stopping : str
        "relative_gap", "kkt", or "gain": that of the HMG paper, where a step that is chosen by its gain is shorter than
        `tol` (Section 2.3), or the KKT gap is at most `tol` where the pair is not chosen so (Section 2.4). Sets of
        `decomposition` and `gain_sets` have no such length: for them it is "kkt".
    strict : bool
        Whether "gain" also asks for a KKT gap of at most `tol` where the step is short. If not, the solve ends as the
        paper's does, with the status SMALL_STEP, and its certificate says what was reached.
    clipped : bool
        Whether the length of the step is that which the box allows, as the paper says (mu*), or that which the step
        would have without the box (mu_max). The box cuts steps short by chance, also far from the optimum.
    """

    rule: str = "second_order"
    shrinking: bool = True
    block: int | None = None
    eta: float = 1e-8
    slice_steps: int = 4096
    tol: float = 0.0
    stopping: str = "relative_gap"
    strict: bool = True
    clipped: bool = True
    recent: int = 10
    needs: ClassVar[str] = BOX
    state_type: ClassVar[type] = DualState

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise SoftmarginError(f"unknown working-set rule {self.rule!r}: choose one of {sorted(RULES)}.")
        if self.block is not None and self.block < 2:
            raise SoftmarginError(f"block={self.block!r} must be at least 2: one variable alone cannot move.")
        if self.recent < 1:
            raise SoftmarginError(f"recent={self.recent!r} must be at least 1: gains are those of rows of the matrix.")
        if self.slice_steps < 1:
            raise SoftmarginError(f"slice_steps={self.slice_steps!r} must be at least 1.")
        if not 0.0 <= self.eta < 0.5:
            raise SoftmarginError(f"eta={self.eta!r} must be at least 0 and below 0.5 (the paper uses 1e-8).")

    def init(self, problem: BoxQP, start: Any = None) -> DualState:
        if self.rule == "greedy":
            _check_greedy(problem)
        diag = problem.K.diag()
        part = part_of(start) if isinstance(start, DualState) else None
        if part is not None:
            beta, _ = latest(start)
            if np.array_equal(repaired(beta, problem), beta):
                return replace(start, scratch=Shrinking(diag, part.of(problem)), is_stalled=False)
            start = replace(start, beta=beta, scratch=None)
        known = getattr(start, "scratch", None)
        members = known.members if isinstance(known, Shrinking) else ()
        return replace(first_state(problem, start), scratch=Shrinking(diag, members=members))

    def step(self, problem: BoxQP, state: DualState) -> DualState:
        after, is_stuck = self._slice(problem, state)
        if part_of(after) is not None:
            if is_stuck or self._gap_looks_closed(problem, after):
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
        measure = problem.measure(state.beta, state.f)
        if self.stopping != "gain":
            return measure
        length = state.scratch.length if isinstance(state.scratch, Shrinking) else np.inf
        return replace(measure, step=length, is_short=not self.strict and 0.0 < length <= self.tol)

    def counts(self, state: DualState) -> dict[str, int]:
        return state.counts()

    def solution(self, problem: BoxQP, state: DualState) -> Solution:
        whole = unshrunk(problem, state, goes_on=False)
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
        members = np.full(self._set_size(K), -1, dtype=np.int64)
        known = scratch.members[: members.size]
        members[: len(known)] = known if part is None else np.searchsorted(part.active, known)
        up, down = problem.rooms(beta, active)
        variables = Variables(scratch.diag[active], problem.lo[active], problem.hi[active], beta, rise, fall, up, down)
        hits, misses = K.hits, K.misses
        done = self._run_loop(problem, K, self._steps(state, K), variables, pair, members, self._goals(state))
        if part is not None:
            problem.K.count(K.hits - hits, K.misses - misses)

        f = p - (rise + _away(beta >= 0.0, epsilon) if epsilon else wish)
        whole[active] = beta
        magnitude = problem.magnitude(whole, state.f)  # f of variables that are set aside is older, and near enough
        idle = scratch.idle + 1 if done.gain <= ROUNDING * magnitude else 0
        after = replace(state, iterations=state.iterations + done.steps, pair_steps=state.pair_steps + done.pair_steps)
        if part is None:
            claim = scratch.claim
            if done.has_ended and self._wants_kkt:
                claim = min(claim, max(done.length, problem.measure(whole, f).kkt))
            scratch = replace(scratch, idle=idle, length=done.length, claim=claim, members=_known(members))
            after = replace(after, beta=whole, f=f)
        else:
            pair = np.where(pair >= 0, part.active[pair], -1)
            members = np.where(members >= 0, part.active[members], -1)
            scratch = replace(scratch, part=replace(part, beta=whole, f=f), idle=idle, members=_known(members))
        after = replace(after, pair=(int(pair[0]), int(pair[1])), scratch=scratch)
        ends_part = part is not None and done.has_ended
        return after, done.is_stuck or ends_part or idle >= _IDLE_SLICES

    @property
    def _wants_kkt(self) -> bool:
        return self.stopping in BY_KKT

    def _goals(self, state: DualState) -> tuple[float, float, bool]:
        """The KKT gap and the length of a step at which a slice ends, and whether it waits for such a step.

        Where a claim did not end the solve, because the judge did not confirm it, a little less is asked for each time.
        A shrunk problem is left at its own goal.
        """
        part = part_of(state)
        goal = step_goal = -1.0
        if self._wants_kkt and self.tol > 0.0:
            goal = min(self.tol, _AFTER_CLAIM * state.scratch.claim)
        by_step = self.stopping == "gain" and goal > 0.0 and self.rule not in BY_SETS
        if by_step:
            step_goal = self.tol if not self.strict else goal
        if part is not None:
            return max(part.goal, goal), step_goal, False
        return goal, step_goal, by_step

    def _run_loop(
        self,
        problem: BoxQP,
        K: Any,
        steps: int,
        variables: Variables,
        pair: np.ndarray,
        members: np.ndarray,
        goals: tuple[float, float, bool],
    ) -> "_Done":
        """The compiled loop, and the rows that it asks for; changes the variables and the last set, counts hits."""
        from softmargin.solvers.smo import _loop, _sets

        if self.rule == "greedy" and K.n_cached < K.n:
            K.fetch(np.arange(K.n))
        slab = K.opened()
        chosen = np.full(self._set_size(K), -1, dtype=np.int64)
        least = _LEAST_CURVATURE * float(variables.diag.max(initial=0.0)) or 1.0
        choice = Choice(RULES[self.rule], self.eta, least, problem.epsilon, *goals, self.strict, self.clipped)
        recent = _recent(slab, self.recent if self.rule == "gain_recent_rows" else 1)
        extremes = np.array([_loop.UNKNOWN, -1])
        is_by_sets = self.rule in BY_SETS
        room = Variables.room_for(chosen.size, has_kinks=problem.epsilon > 0.0) if is_by_sets else None
        made, gain, pair_steps = 0, 0.0, 0
        hits, misses, uses = K.hits, K.misses, -int(slab.clock[0])
        code = _loop.NEED_ROWS
        while code == _loop.NEED_ROWS and (made == 0 or K.misses - misses < _SLICE_MISSES):
            problem.workers.check()
            length = 0.0
            inner_steps = max(1, _SLICE_WORK // chosen.size**2 - pair_steps)
            if self.rule == "decomposition":
                code, n, g, inner = _sets.set_steps(steps - made, inner_steps, choice, slab, variables, room, chosen)
            elif self.rule == "gain_sets":
                code, n, g, inner = _sets.gain_set_steps(
                    steps - made, inner_steps, choice, slab, variables, room, members, chosen
                )
            else:
                code, n, g, length = _loop.pair_steps(
                    steps - made, choice, slab, variables, pair, recent, chosen, extremes
                )
                inner = n
            made, gain, pair_steps = made + n, gain + g, pair_steps + inner
            if code == _loop.NEED_ROWS:
                rows = chosen if chosen[0] >= 0 else members if is_by_sets else pair
                K.fetch(rows[rows >= 0])
                uses -= 1
        uses += int(slab.clock[0])  # the clock advances with each use of a row, and with each fetch
        K.count(hits + max(0, uses - (K.misses - misses)) - K.hits)
        has_ended = code == _loop.ENDED
        if not has_ended:
            length = np.inf
        return _Done(made, pair_steps, gain, length, code == _loop.STUCK, has_ended)

    def _set_size(self, K: Any) -> int:
        return min(self.block or BY_SETS[self.rule], K.capacity) if self.rule in BY_SETS else 2

    def _steps(self, state: DualState, K: Any) -> int:
        """How many steps to make before the loop looks again."""
        size = self._set_size(K)
        # How many times the length of a row a step looks at, or tries to solve a small problem that is as expensive.
        passes = {
            "gain_all_cached": K.n_cached,
            "gain_recent_rows": self.recent,
            "greedy": K.n,
            "gain_sets": size**4,
        }.get(self.rule, size)
        enough = max(1, 2 * _SLICE_WORK // (2 + passes) // max(1, K.n))
        return min(self.slice_steps, max(_FIRST_STEPS, int(_SHARE * state.iterations)), enough)

    def _gap_looks_closed(self, problem: BoxQP, state: DualState) -> bool:
        """Whether a shrunk problem has reached `tol` where that is for the duality gap, so that it is to be completed.

        Its KKT gap has been looked at in every step.
        """
        if self._wants_kkt or self.tol <= 0.0:
            return False
        value = STOP_RULES[self.stopping]
        return value(problem.measure(*latest(state))) <= self.tol < value(self.measure(problem, state))


@dataclass(frozen=True)
class _Done:
    """What a slice has done: steps of the rule and pair steps within them, their gain, and how it ended.

    `length` is that of the step that was not made because it is too short, 0 where the KKT gap ended the slice, and
    infinite where nothing did.
    """

    steps: int
    pair_steps: int
    gain: float
    length: float
    is_stuck: bool
    has_ended: bool


def _check_greedy(problem: BoxQP) -> None:
    n, K = problem.p.size, problem.K
    if n > GREEDY_ROWS:
        raise SoftmarginError(
            f"rule='greedy' compares all pairs of variables in every step, for up to {GREEDY_ROWS:,} rows, and here "
            f"are {n:,}: use 'hybrid_maximum_gain', or 'gain_all_cached' for all pairs with a row in the cache."
        )
    if K.capacity < n:
        raise SoftmarginError(
            f"rule='greedy' needs the whole kernel matrix in the cache, and {K.capacity:,} of its {n:,} rows fit: set "
            f"cache_bytes to at least {n * n * K.dtype.itemsize:,}, or leave it None."
        )


def _recent(slab: Any, count: int) -> np.ndarray:
    """The variables whose rows were used last, the newest first; -1 where there are not so many."""
    recent = np.full(count, -1, dtype=np.int64)
    there = np.flatnonzero(slab.owner >= 0)
    newest = there[np.argsort(-slab.stamp[there], kind="stable")[:count]]
    recent[: newest.size] = slab.owner[newest]
    return recent


def _known(members: np.ndarray) -> tuple[int, ...]:
    return tuple(members[members >= 0].tolist())


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
