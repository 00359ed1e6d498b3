"""CPA: the cutting plane algorithm of SVM-perf, one-slack form.

    min over w, xi >= 0 of 1/2 |w|^2 + C xi   with   xi >= <a_c, w> + e_c   for every pattern c in {0, 1}^n

    repeat:
        (w, xi) = the minimiser over the constraints found so far
        find the most violated constraint at w        c_i = 1 if y_i w.x_i < 1
        add it
    until it exceeds xi by at most epsilon

Reference: T. Joachims, Training Linear SVMs in Linear Time, KDD 2006, Algorithm 1. BMRM (Teo et al., KDD 2007) with the
hinge loss is the same method with another stop rule, the relative gap of the best point so far.

Symbols: xi -> `xi` of the trace; working set W -> planes; epsilon -> tol with stopping="epsilon".

Departs from the paper: C multiplies a sum; the best point so far is kept (it is what an early stop returns); planes
that stay idle are dropped.
"""

from dataclasses import dataclass

from softmargin.problems.base import RiskProblem
from softmargin.solvers.cutting_plane.state import CuttingPlaneSolver, PlaneState, advance, refreshed, solve_over_planes


@dataclass(frozen=True)
class CPA(CuttingPlaneSolver):
    """Cutting planes at the minimiser of the reduced problem.

    Parameters
    ----------
    stopping : "relative_gap" or "epsilon"
        What `tol` is compared with: BMRM's relative gap, or SVM-perf's epsilon on the mean risk.
    tol : float
        What the loop is going to ask for. It only tells how much of a direction may be returned in place of w = 0.
    """

    stopping: str = "relative_gap"
    tol: float = 0.0

    def step(self, problem: RiskProblem, state: PlaneState) -> PlaneState:
        state = refreshed(problem, state)
        reduced = solve_over_planes(problem, state)
        planes = reduced.planes
        point, sq_norm = planes.towards(problem, reduced.gamma, planes.origin(problem))
        dual = planes.bound(reduced.gamma, sq_norm)
        value = 0.5 * sq_norm + problem.C * problem.risk(point.f)
        best, primal = (point, value) if value < state.primal else (state.best, state.primal)
        violation = (value - dual) / problem.scale  # line 9: both sides times C, less 1/2 |w|^2
        return advance(problem, state, reduced, best, primal, dual, violation, problem.pattern(point.f), sq_norm)
