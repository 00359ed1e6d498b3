"""The interior point method on a kernel matrix of low rank, and as a start for other solvers.

    factor K = V V' by pivots, until nothing is left          linalg/pivoted_cholesky.py
    repeat:  one iteration of the interior point method       low_rank.py
             put variables to their bounds                     crossover.py
             measure what came out; keep the best

The first step factors the matrix; where the rank that is allowed does not suffice it says so. The method starts in the
middle of the box whatever it is given: interior points gain nothing from a solution of another problem.

Interior points need a smooth objective. So a variable that costs epsilon |beta| is taken apart into two, one on each
side of zero, which have the same row of V; their sum is beta.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.kinds import BOX
from softmargin.core.result import DualStart, Solution
from softmargin.core.stopping import NEGLIGIBLE, RULES, Measure
from softmargin.linalg.pivoted_cholesky import LowRank, pivoted_cholesky
from softmargin.problems.box_qp import BoxQP
from softmargin.solvers.dual_state import DualState, first_state, repaired
from softmargin.solvers.interior.crossover import crossed
from softmargin.solvers.interior.low_rank import (
    LowRankQP,
    Point,
    advance,
    beta_of,
    complementarity_of,
    in_range,
    intercept_of,
    middle,
)

_MAX_RANK = 500
# Trace of K - V V', as a share of that of K: what rounding leaves of a matrix of low rank.
_NOTHING_LEFT = 1e-13
# Iterations that may pass without a better candidate: once the point's own gap is a negligible share of the optimum,
# and before, if that gap does not fall to half either.
_IDLE, _SPENT, _LONG_IDLE = 3, 1e-10, 25
# A point inside the box has no variable at a bound: it is taken where it is so many times nearer to the optimum, as
# where C is so large that the rounding of a margin costs more than its excess.
_FAR_BETTER = 1e3


@dataclass(frozen=True)
class Candidate:
    """Feasible variables, what is known of them, and the intercept to judge them with."""

    beta: np.ndarray
    f: np.ndarray
    b: float
    measure: Measure


@dataclass(frozen=True)
class Interior:
    """The scratch of an `IPM` between steps; `idle` iterations brought no better candidate, and `slow` ones left more
    than half of the complementarity `mark`.
    """

    qp: LowRankQP
    point: Point
    best: Candidate
    idle: int = 0
    slow: int = 0
    mark: float = np.inf

    def is_of(self, problem: BoxQP) -> bool:
        """Whether this is about a problem with the same bounds and the same sum."""
        smooth = _smooth(problem)
        return self.qp.total == problem.total and all(map(np.array_equal, (self.qp.p, self.qp.lo, self.qp.hi), smooth))


@dataclass(frozen=True)
class IPM:
    """Interior points, for kernel matrices of rank `max_rank` at most (or as many as there are rows)."""

    max_rank: int = _MAX_RANK
    stopping: str = "relative_gap"
    needs: ClassVar[str] = BOX
    state_type: ClassVar[type] = DualState

    def __post_init__(self) -> None:
        if not self.max_rank >= 1:
            raise SoftmarginError(f"max_rank={self.max_rank!r} must be at least 1, for example 500.")

    def init(self, problem: BoxQP, start: Any = None) -> DualState:
        if not isinstance(start, DualState):
            return first_state(problem)
        if isinstance(start.scratch, Interior) and start.scratch.is_of(problem):
            return replace(start, is_stalled=False)
        return replace(first_state(problem), iterations=start.iterations)

    def step(self, problem: BoxQP, state: DualState) -> DualState:
        before = state.scratch
        if not isinstance(before, Interior):
            before = self._begin(problem, state)
        qp = before.qp
        with in_range():
            point = advance(qp, before.point)
            here = self._candidate(problem, qp, point)
        best = min(before.best, here, key=self._value)
        optimum = max(abs(here.measure.dual), NEGLIGIBLE * here.measure.scale)  # about so, once the end is near
        is_spent = complementarity_of(qp, point) <= _SPENT * optimum
        idle = before.idle + 1 if best is before.best else 0
        is_slow = point.mu > 0.5 * before.mark
        slow, mark = (before.slow + 1, before.mark) if is_slow else (0, point.mu)
        return replace(
            state,
            beta=best.beta,
            f=best.f,
            iterations=state.iterations + 1,
            is_stalled=(idle >= _IDLE and is_spent) or min(idle, slow) >= _LONG_IDLE,
            scratch=Interior(qp, point, best, idle, slow, mark),
        ).counted(problem)

    def _begin(self, problem: BoxQP, state: DualState) -> Interior:
        factored = factor_of(problem, self.max_rank)
        if factored.residual > _NOTHING_LEFT * factored.trace:
            raise SoftmarginError(
                f"the kernel matrix is not of rank {factored.pivots.size} or less, which interior points need: "
                f"{factored.residual / factored.trace:.1g} of its trace is left. Raise max_rank of IPM(), or use "
                "another solver, such as solver='auto'."
            )
        qp = _low_rank(problem, factored.V)
        b = problem.solution(state.beta, state.f).b
        return Interior(qp, middle(qp), Candidate(state.beta, state.f, b, problem.measure(state.beta, state.f)))

    def _candidate(self, problem: BoxQP, qp: LowRankQP, point: Point) -> Candidate:
        """The point with variables put to their bounds, unless the point itself is far better."""
        b = intercept_of(qp, point)
        at_bounds = min((_measured(problem, qp, beta, b) for beta in crossed(qp, point)), key=self._value)
        inside = _measured(problem, qp, beta_of(qp, point), b)
        return inside if _FAR_BETTER * self._value(inside) < self._value(at_bounds) else at_bounds

    def _value(self, candidate: Candidate) -> float:
        """What is compared with `tol`."""
        return RULES[self.stopping](candidate.measure)

    def measure(self, problem: BoxQP, state: DualState) -> Measure:
        if isinstance(state.scratch, Interior):
            return state.scratch.best.measure
        return problem.measure(state.beta, state.f)

    def counts(self, state: DualState) -> dict[str, int]:
        return state.counts()

    def solution(self, problem: BoxQP, state: DualState) -> Solution:
        solution = problem.solution(state.beta, state.f)
        return replace(solution, b=state.scratch.best.b) if isinstance(state.scratch, Interior) else solution

    def is_stalled(self, state: DualState) -> bool:
        return state.is_stalled


def low_rank_start(problem: BoxQP, rank: int = 50, tol: float = 1e-4, max_iter: int = 50) -> DualStart:
    """The solution, to a relative gap of `tol`, of the problem with K replaced by a matrix of this rank.

    Variables near their bounds are put exactly there. It is a start for an active set method: n * rank kernel values
    tell it most of what is at its bounds.
    """
    factored = factor_of(problem, rank)
    qp = _low_rank(problem, factored.V)
    point = middle(qp)
    for _ in range(max_iter):
        with in_range():
            point = advance(qp, point)
        inside = _measured(problem, qp, beta_of(qp, point), intercept_of(qp, point))
        if RULES["relative_gap"](inside.measure) <= tol:
            break
    with in_range():
        return DualStart(_folded(crossed(qp, point)[0], problem))


def factor_of(problem: BoxQP, max_rank: int) -> LowRank:
    """V with V V' = K, or as near as `max_rank` columns come."""
    K = problem.K
    factored = pivoted_cholesky(lambda i: K.rows(np.array([i]))[0], K.diag(), max_rank, _NOTHING_LEFT, problem.workers)
    if factored.is_indefinite:
        raise SoftmarginError(
            "the kernel matrix is not positive semi-definite, so that the problem is not convex: use solver='smo', "
            "which finds a stationary point, or another kernel."
        )
    return factored


def _smooth(problem: BoxQP) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """p, lo and hi of the problem without kinks: if there is an epsilon, upper halves first, then lower halves."""
    p, lo, hi, epsilon = problem.p, problem.lo, problem.hi, problem.epsilon
    if epsilon == 0.0:
        return p, lo, hi
    nothing = np.zeros(p.size)
    return np.append(p - epsilon, p + epsilon), np.append(nothing, lo), np.append(hi, nothing)


def _low_rank(problem: BoxQP, V: np.ndarray) -> LowRankQP:
    p, lo, hi = _smooth(problem)
    return LowRankQP(V if problem.epsilon == 0.0 else np.concatenate([V, V]), p, lo, hi, problem.total, problem.workers)


def _folded(beta: np.ndarray, problem: BoxQP) -> np.ndarray:
    """The problem's variables from those of `_smooth`."""
    n = problem.p.size
    return beta if beta.size == n else beta[:n] + beta[n:]


def _measured(problem: BoxQP, qp: LowRankQP, beta: np.ndarray, b: float) -> Candidate:
    """beta made feasible, with the better of two intercepts: b, and what the problem makes of the variables."""
    beta = repaired(_folded(beta, problem), problem)
    if beta.size == len(qp.V):
        f = qp.times(qp.t_times(beta))
    else:
        f = qp.times(qp.t_times(np.append(beta, np.zeros(beta.size))))[: beta.size]
    measure = problem.measure(beta, f)
    primal = problem.primal(beta, f, b)
    if primal <= measure.primal:
        return Candidate(beta, f, b, replace(measure, primal=primal))
    return Candidate(beta, f, problem.solution(beta, f).b, measure)
