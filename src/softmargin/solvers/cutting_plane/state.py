"""What CPA and OCAS have in common: the state, and all of the solver but the choice of the next plane."""

from dataclasses import dataclass, field, replace
from math import nan
from typing import Any, ClassVar

import numpy as np

from softmargin.core.kinds import PLANES
from softmargin.core.result import Solution, WeightStart
from softmargin.core.stopping import Measure
from softmargin.problems.base import Pattern, RiskProblem
from softmargin.solvers.cutting_plane.planes import Planes, Point
from softmargin.solvers.near_zero import share_allowed
from softmargin.solvers.reduced_qp import solve_reduced

# A plane that had no weight in this many reduced solutions in a row is dropped.
PATIENCE = 40
# Dropping copies the planes that stay, so it waits until at least this share can go.
DROP_SHARE = 0.25
# The reduced QP is solved to this share of the outer gap.
QP_SHARE = 1e-3
# Steps in a row without progress in floating point before a solve counts as stalled.
STALL_STEPS = 20
# Then it begins anew at its best point, up to so many times, if the gap is less than this share of what it was the last
# time it did so.
MOST_RESTARTS, WORTH_ANOTHER = 10, 0.999
# A step has made progress if primal or dual changed by more than this share of their size: less is rounding.
LEAST_PROGRESS = 1e-15


@dataclass(frozen=True)
class PlaneState:
    """A cutting-plane solve between two iterations. `gamma` and `dual` belong to the last reduced problem.

    `xi` is the slack of the reduced problem, as mean risk: (dual - 1/2 |w_t|^2) / scale. It is not saved.
    The solve began anew `restarts` times. When it last did so the gap was `marked_gap`, and `earlier` is the state with
    the highest bound before that; it is not saved.
    """

    planes: Planes
    gamma: np.ndarray
    idle: np.ndarray
    best: Point
    primal: float
    dual: float
    violation: float
    C: float
    iterations: int = 0
    passes: int = 0
    stalled: int = 0
    restarts: int = 0
    marked_gap: float = 0.0
    earlier: "PlaneState | None" = field(default=None, repr=False, compare=False)
    xi: float = field(default=nan, compare=False)


@dataclass(frozen=True)
class Reduced:
    """The reduced problem solved: the planes that survive, and their weights."""

    planes: Planes
    gamma: np.ndarray
    idle: np.ndarray


def init_planes(problem: RiskProblem, start: Any = None) -> PlaneState:
    """The first state: one plane at w = 0 or at the given start. Planes of an earlier C stay valid."""
    if isinstance(start, PlaneState):
        return start if start.C == problem.C else _rescale(problem, start)
    planes = Planes.empty(problem)
    best = planes.origin(problem)
    primal = problem.C * problem.risk(best.f)
    f_first = best.f
    if isinstance(start, WeightStart):
        f_first = problem.outputs(start.w)
        value = 0.5 * float(start.w @ start.w) + problem.C * problem.risk(f_first)
        # Wide data keep points as row coefficients, which a bare w does not have: there only its plane helps.
        if value < primal and not planes.as_outputs:
            best, primal = Point(start.w, f_first), value
    return begun(problem, best, primal, f_first)


def begun(
    problem: RiskProblem, best: Point, primal: float, f_first: np.ndarray, known: Pattern | None = None
) -> PlaneState:
    """A state at the point `best` with the plane at the outputs f_first, and before it one that is `known`, if any.

    The first plane gets all the weight if that gives a bound above 0, or if 0 is no lower bound of the objective: each
    plane is one of the risk.
    """
    planes = Planes.empty(problem)
    if known is not None:
        planes = planes.add(problem, known)
    planes = planes.add(problem, problem.pattern(f_first))
    gamma, dual = np.zeros(len(planes)), 0.0
    if known is not None or problem.lowest < 0.0:
        gamma[0] = problem.C
        dual = _dual_value(planes, gamma)
        if dual < 0.0 <= problem.lowest:
            gamma[0], dual = 0.0, 0.0
    return PlaneState(
        planes=planes,
        gamma=gamma,
        idle=np.zeros(len(planes), dtype=np.int64),
        best=best,
        primal=primal,
        dual=dual,
        violation=(primal - dual) / problem.scale,
        C=problem.C,
    )


def refreshed(problem: RiskProblem, state: PlaneState) -> PlaneState:
    """The state, or one that begins anew at its best point if it has stalled.

    Planes from far away are what stalls a solve: they are so long that the new ones are lost in their rounding.
    """
    if state.stalled < STALL_STEPS:
        return state
    return replace(
        begun(problem, state.best, state.primal, state.best.f),
        iterations=state.iterations,
        passes=state.passes + 1,
        restarts=state.restarts + 1,
        marked_gap=_gap(state),
        earlier=replace(_better(state), earlier=None),
    )


def _better(state: PlaneState) -> PlaneState:
    """Of a state and the one before it began anew, that with the higher bound."""
    earlier = state.earlier
    return state if earlier is None or earlier.dual <= state.dual else earlier


def _gap(state: PlaneState) -> float:
    return state.primal - _better(state).dual


def _rescale(problem: RiskProblem, start: PlaneState) -> PlaneState:
    """The same planes at another C: R does not depend on C, so they bound it as well as before."""
    sq_norm = start.planes.inner(start.best, start.best)
    primal = 0.5 * sq_norm + problem.C * problem.risk(start.best.f)
    gamma = start.gamma * (problem.C / start.C)
    value = _dual_value(start.planes, gamma)
    if value < 0.0 <= problem.lowest:
        gamma, value = np.zeros_like(gamma), 0.0
    return replace(
        start,
        gamma=gamma,
        primal=primal,
        dual=value,
        C=problem.C,
        stalled=0,
        restarts=0,
        marked_gap=0.0,
        earlier=None,
        violation=(primal - value) / problem.scale,
    )


def _dual_value(planes: Planes, gamma: np.ndarray) -> float:
    t = len(planes)
    return float(planes.constants @ gamma - 0.5 * gamma @ (planes.gram[:t, :t] @ gamma))


def solve_over_planes(problem: RiskProblem, state: PlaneState) -> Reduced:
    """w_t = argmin F_t(w), eq. (3) of the OCAS paper, warm-started; idle planes are dropped."""
    gap = max(state.primal - state.dual, 0.0)
    planes = state.planes
    reduced = solve_reduced(
        planes.gram, planes.constants, problem.C, state.gamma, QP_SHARE * gap, has_zero=problem.lowest == 0.0
    )
    gamma = reduced.gamma
    idle = np.where(gamma > 0.0, 0, state.idle + 1)
    keep = idle <= PATIENCE
    if np.count_nonzero(~keep) > DROP_SHARE * len(planes):
        planes, gamma, idle = planes.keep(keep), gamma[keep], idle[keep]
    return Reduced(planes, gamma, idle)


def advance(
    problem: RiskProblem,
    state: PlaneState,
    reduced: Reduced,
    best: Point,
    primal: float,
    dual: float,
    violation: float,
    pattern: Pattern,
    sq_norm: float,
) -> PlaneState:
    """The state after the plane of `pattern` was added; `sq_norm` is |w_t|^2."""
    small = LEAST_PROGRESS * max(abs(state.primal), abs(state.dual))
    progress = dual > state.dual + small or primal < state.primal - small
    return PlaneState(
        planes=reduced.planes.add(problem, pattern),
        gamma=np.append(reduced.gamma, 0.0),
        idle=np.append(reduced.idle, 0),
        best=best,
        primal=primal,
        dual=dual,
        violation=violation,
        C=problem.C,
        iterations=state.iterations + 1,
        passes=state.passes + 2,
        stalled=0 if progress else state.stalled + 1,
        restarts=state.restarts,
        marked_gap=state.marked_gap,
        earlier=state.earlier,
        xi=(dual - 0.5 * sq_norm) / problem.scale,
    )


class CuttingPlaneSolver:
    """The parts of `Solver` that do not depend on where the next plane goes."""

    stopping: str
    tol: float
    needs: ClassVar[str] = PLANES
    state_type: ClassVar[type] = PlaneState

    def init(self, problem: RiskProblem, start: Any = None) -> PlaneState:
        return init_planes(problem, start)

    def measure(self, problem: RiskProblem, state: PlaneState) -> Measure:
        return Measure(state.primal, _better(state).dual, problem.scale, state.violation, xi=state.xi)

    def counts(self, state: PlaneState) -> dict[str, int]:
        return {"iterations": state.iterations, "planes": len(state.planes), "passes": state.passes}

    def solution(self, problem: RiskProblem, state: PlaneState) -> Solution:
        """The best point, or as much of the last minimiser as `tol` allows if that is w = 0."""
        planes, best = state.planes, state.best
        if not best.x.any():
            last, sq_norm = planes.towards(problem, state.gamma, best)
            share = share_allowed(problem, state.primal, state.dual, self.tol, self.stopping, sq_norm, last.f)
            best = Point(share * last.x, share * last.f)
        bound = _better(state)
        return problem.solution(planes.weights(problem, best), best.f, bound.planes.witnesses, bound.gamma)

    def is_stalled(self, state: PlaneState) -> bool:
        """Once beginning anew at the best point does not help any more, either."""
        if state.stalled < STALL_STEPS or state.restarts == 0:
            return False
        return state.restarts >= MOST_RESTARTS or _gap(state) > WORTH_ANOTHER * state.marked_gap
