"""OCAS: the optimised cutting plane algorithm for linear SVMs.

    min over w of F(w) = 1/2 |w|^2 + C R(w), where R is convex and bounded below by its planes

    repeat:
        w_t = argmin F_t                              the reduced problem, eq. (3): F_t(w_t) is a lower bound
        w_b = argmin over k >= 0 of F on the line from the old w_b through w_t           eq. (7), Appendix A
        w_c = (1 - lambda) w_b + lambda w_t           eq. (8)
        add the plane that touches R at w_c           eq. (5)
    until F(w_b) - F_t(w_t) is small enough           eq. (9)

One product with X (the outputs of w_t - w_b) and one with X' (the slope of the plane) an iteration: the outputs at w_b
and w_c are linear combinations.

Reference: V. Franc, S. Sonnenburg, Optimized Cutting Plane Algorithm for Support Vector Machines, ICML 2008,
Algorithm 1.

Symbols: F_t(w_t) -> dual; F(w_b) -> primal; w_b -> best; w_t - w_b -> line; lambda -> mixing.

Departs from the paper: C multiplies a sum; planes that stay idle are dropped; a solve that stalls begins anew at its
best point; where the line search returns a bracket instead of a point (free intercept) the plane is put at or beyond
its far end, so that it cuts off w_t.
"""

import math
from dataclasses import dataclass
from numbers import Real

from softmargin.core.errors import SoftmarginError
from softmargin.problems.base import LineMinimum, RiskProblem
from softmargin.solvers.cutting_plane.planes import Point
from softmargin.solvers.cutting_plane.state import CuttingPlaneSolver, PlaneState, advance, refreshed, solve_over_planes

# A line this short beside its ends is mostly rounding. A step of length k on it moves the outputs by k times that
# rounding, so k is limited such that they stay good to ten digits.
SHORT_LINE = 1e-6
LONGEST_STEP = 1e-10 / math.ulp(1.0)


@dataclass(frozen=True)
class OCAS(CuttingPlaneSolver):
    """Optimised cutting planes.

    Parameters
    ----------
    mixing : float in (0, 1]
        lambda of eq. (8): where the new plane goes, between the best point (0) and the reduced minimiser (1).
    stopping : "relative_gap" or "epsilon"
        What `tol` is compared with: (P - D) / P, or (P - D) / (C sum(s)) as in the paper's tables.
    tol : float
        What the loop is going to ask for. It only tells how much of a direction may be returned in place of w = 0.
    """

    mixing: float = 0.1
    stopping: str = "relative_gap"
    tol: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.mixing, Real) or isinstance(self.mixing, bool) or not 0 < self.mixing <= 1:
            raise SoftmarginError(
                f"mixing={self.mixing!r} must be a number above 0 and at most 1 (the paper uses 0.1)."
            )

    def step(self, problem: RiskProblem, state: PlaneState) -> PlaneState:
        return self.searched(problem, state)[0]

    def searched(self, problem: RiskProblem, state: PlaneState) -> tuple[PlaneState, Point, Point]:
        """The next state, the point where its search began, and the line from there to w_t."""
        state = refreshed(problem, state)
        reduced = solve_over_planes(problem, state)
        best, planes = state.best, reduced.planes
        line, sq_norm = planes.towards(problem, reduced.gamma, best)
        dual = planes.bound(reduced.gamma, sq_norm)
        A0, B0 = planes.inner(line, line), planes.inner(best, line)
        found = problem.minimise_along(best.f, line.f, A0, B0, best.hint, planes.last_along(line))  # eq. (7)
        if found.k > LONGEST_STEP and SHORT_LINE**2 * max(planes.inner(best, best), sq_norm) > A0:
            found = LineMinimum(LONGEST_STEP, LONGEST_STEP, LONGEST_STEP)
        k_mixed = found.k + self.mixing * (1.0 - found.k)  # eq. (8) along the line, where w_t is at k = 1
        k_mixed = max(k_mixed, found.hi) if found.k <= 1.0 else min(k_mixed, found.lo)
        f, risk, pattern = problem.follow(best.f, line.f, found, k_mixed)
        x = found.k * line.x
        x += best.x
        candidate = Point(x, f, found.hint)
        value = 0.5 * planes.inner(candidate, candidate) + problem.C * risk
        new_best, primal = (candidate, value) if value < state.primal else (best, state.primal)
        violation = (primal - dual) / problem.scale
        return advance(problem, state, reduced, new_best, primal, dual, violation, pattern, sq_norm), best, line
