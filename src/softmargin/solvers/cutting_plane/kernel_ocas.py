"""OCAS with a kernel: cutting planes that are known by their outputs.

    min over w, b of 1/2 |w|^2 + C R(w, b) in the feature space of a kernel

    repeat:  one iteration of OCAS on the risk of the kernel machine         ocas.py, problems/kernel_hinge.py
             measure the minimiser w_t of the reduced problem; keep the best

Everything that OCAS does takes inner products of planes, and outputs of combinations of planes. Both come from u = K c,
the outputs that a plane's slope would have as a weight vector: one product with K an iteration, of the coefficients
that changed. The whole kernel matrix is needed, because at w = 0 nearly every row is in the plane.

What is returned is w_t, not the best point w_b of the line searches: its coefficients are feasible dual variables, so
that one vector has both a primal and a dual value, as in all kernel machines here, and rows that no plane holds are no
support vectors. The searches along lines keep the planes close together, so w_t is nearly as good as w_b.

Reference: V. Franc, S. Sonnenburg, Optimized Cutting Plane Algorithm for Support Vector Machines, ICML 2008, Section 5,
which asks for kernels.
Departs from the paper: a start from dual variables is one more plane, which has their dual value as its bound.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.kinds import BOX
from softmargin.core.result import Solution
from softmargin.core.stopping import RULES, Measure
from softmargin.problems.box_qp import BoxQP
from softmargin.solvers.cutting_plane.ocas import OCAS
from softmargin.solvers.cutting_plane.planes import Point
from softmargin.solvers.cutting_plane.state import PlaneState, begun, init_planes
from softmargin.solvers.dual_state import DualState, first_state, repaired

# A variable this close to its bound, as a share of it, is there: sums of weights of planes are rounded.
_AT_BOUND = 1e-12


@dataclass(frozen=True)
class Minimiser:
    """Feasible dual variables, their outputs f, the best intercept, and what is known of them."""

    beta: np.ndarray
    f: np.ndarray
    b: float
    measure: Measure


class LossParameters(NamedTuple):
    """What tells one loss of the same rows from another."""

    C: float
    epsilon: float
    nu: float

    @classmethod
    def of(cls, problem: BoxQP) -> "LossParameters":
        return cls(problem.loss.C, problem.loss.epsilon, problem.loss.nu)


@dataclass(frozen=True)
class KernelPlanes:
    """The scratch of a `KernelOCAS`: the cutting planes, the best minimiser so far, and the loss both belong to.

    States are only handed on between equal data, so that the parameters of the loss are enough to know it by.
    """

    planes: PlaneState
    best: Minimiser
    loss: LossParameters


def is_of_C(start: Any, C: float) -> bool:
    """Whether this is a state that holds planes, made with this C."""
    return isinstance(start, DualState) and isinstance(start.scratch, KernelPlanes) and start.scratch.loss.C == C


@dataclass(frozen=True)
class KernelOCAS:
    """Optimised cutting planes for kernel matrices that fit into the cache.

    Parameters
    ----------
    mixing : float in (0, 1]
        As of `OCAS`: where the new plane goes, between the best point (0) and the reduced minimiser (1).
    stopping : "relative_gap" or "kkt"
        What `tol` is compared with.
    """

    mixing: float = 0.1
    stopping: str = "relative_gap"
    needs: ClassVar[str] = BOX
    state_type: ClassVar[type] = DualState

    def __post_init__(self) -> None:
        OCAS(self.mixing)  # refuses what it does not know

    @property
    def _ocas(self) -> OCAS:
        return OCAS(self.mixing)

    def init(self, problem: BoxQP, start: Any = None) -> DualState:
        K = problem.K
        if K.capacity < K.n:
            needed = K.n * K.n * K.dtype.itemsize
            raise SoftmarginError(
                f"cutting planes multiply with the whole kernel matrix of {K.n:,} rows, which takes {needed:,} bytes, "
                f"but the cache holds {K.capacity:,} rows of it. If there is so much memory set cache_bytes to that, "
                "or to twice that for more than two classes; or use solver='auto', which needs few rows at a time, or "
                "LinearSVC behind a LowRankMap."
            )
        state = first_state(problem, start)
        known = state.scratch
        is_known = isinstance(known, KernelPlanes) and known.loss == LossParameters.of(problem)
        return state if is_known else replace(state, scratch=None)

    def _begin(self, problem: BoxQP, state: DualState) -> DualState:
        """With the plane of w = 0, or that of the given variables and one that has their dual value."""
        hinge = problem.hinge
        best = Point(*hinge.point(state.beta, state.f))
        if state.beta.any():
            primal = 0.5 * float(state.beta @ state.f) + hinge.C * hinge.risk(best.f)
            planes = begun(hinge, best, primal, best.f, hinge.plane_of(state.beta))
        else:
            planes = init_planes(hinge)
        return self._kept(problem, state, planes, best)

    def step(self, problem: BoxQP, state: DualState) -> DualState:
        K = problem.K
        if K.n_cached < K.n:
            K.fetch(np.arange(K.n))  # at once: the last bits of a row depend on the rows it is computed with
        if state.scratch is None:
            state = self._begin(problem, state)
        planes, start, line = self._ocas.searched(problem.hinge, state.scratch.planes)
        state = replace(state, iterations=state.iterations + 1)
        return self._kept(problem, state, planes, Point(start.x + line.x, start.f + line.f))

    def _kept(self, problem: BoxQP, state: DualState, planes: PlaneState, minimiser: Point) -> DualState:
        """The state with these planes; the variables are the minimiser's if they are better than those so far."""
        best = self._measured(problem, minimiser)
        if state.scratch is not None:
            best = min(state.scratch.best, best, key=lambda each: RULES[self.stopping](each.measure))
        return replace(
            state,
            beta=best.beta,
            f=best.f,
            is_stalled=self._ocas.is_stalled(planes),
            scratch=KernelPlanes(planes, best, LossParameters.of(problem)),
        ).counted(problem)

    def _measured(self, problem: BoxQP, minimiser: Point) -> Minimiser:
        beta, f = problem.hinge.rows_of(minimiser.x, minimiser.f)
        beta = np.where(beta >= (1.0 - _AT_BOUND) * problem.hi, problem.hi, beta)
        beta = np.where(beta <= (1.0 - _AT_BOUND) * problem.lo, problem.lo, beta)
        beta = repaired(beta, problem)
        measure = problem.measure(beta, f)
        b = problem.hinge.best_b(minimiser.f)
        primal = problem.primal(beta, f, b)
        if primal <= measure.primal:
            return Minimiser(beta, f, b, replace(measure, primal=primal))
        return Minimiser(beta, f, problem.solution(beta, f).b, measure)

    def measure(self, problem: BoxQP, state: DualState) -> Measure:
        if state.scratch is None:
            return problem.measure(state.beta, state.f)
        return replace(state.scratch.best.measure, xi=state.scratch.planes.xi)

    def counts(self, state: DualState) -> dict[str, int]:
        planes = None if state.scratch is None else state.scratch.planes
        n_planes, passes = (0, 0) if planes is None else (len(planes.planes), planes.passes)
        return state.counts() | {"planes": n_planes, "passes": passes}

    def solution(self, problem: BoxQP, state: DualState) -> Solution:
        solution = problem.solution(state.beta, state.f)
        return solution if state.scratch is None else replace(solution, b=state.scratch.best.b)

    def is_stalled(self, state: DualState) -> bool:
        return state.is_stalled
