"""SVM-QP: the dual active set method, which ends at the exact partition into free and bounded variables.

    min over beta of 1/2 beta'K beta - p'beta + epsilon sum |beta_i|,   lo <= beta <= hi,   sum(beta) = total

    repeat (a major iteration, Section 4.1):
        price all variables at a bound, and take those that want away from it most into the working set
        until nobody in the working set wants away from a bound:
            the one that wants most moves, the free ones with it, until it is free or a bound is met     Steps 1 and 2
        update f = K beta for all rows by the rows whose beta has changed
    until nobody wants away from a bound by more than `tol`

Reference: K. Scheinberg, An Efficient Implementation of an Active Set Method for SVMs, JMLR 7, 2006.

Symbols: y alpha -> beta; I_s -> free, F; I_0, I_c -> side; the paper's beta or b -> the wish that free variables share;
s, xi -> minus the prices; L -> R'; r_1 -> `carried`; Q_s' -> the matrix of `Inner`.

Departs from the paper: signed variables. The factor is that of K + sigma 1 1', which has the same minimiser, because
the sum of beta is fixed; a row is dependent in it only if there is a null direction of sum zero. So case 1(a) of
Section 2.1 is regular, and 1(b), 2(a) and 2(b) are one: the entering variable moves along its null direction to a
bound. The dependent variables of a warm start (case 3) do so one after the other. The wishes of free variables are
kept equal, so that a blocked step goes on without solving for all of them again. Full pricing and shrinking are the
same loop with one candidate at a time. Where very many are free, `faces.py` solves by conjugate gradients, as Section
4.1 suggests. After `PATIENCE` variables that entered without a step the least index enters and leaves (Bland's rule;
Y.-Y. Chang, Least-index resolution of degeneracy in linear complementarity problems, 1979).
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.kinds import BOX
from softmargin.core.memory import free_bytes
from softmargin.core.result import Solution
from softmargin.core.stopping import ROUNDING, Measure
from softmargin.linalg.packed import packed_bytes
from softmargin.problems.box_qp import BoxQP
from softmargin.solvers.active_set.faces import Faces
from softmargin.solvers.active_set.working import Working
from softmargin.solvers.dual_state import DualState, first_state

# The ways to price variables. The number is how often in a row a variable may want to stay at its bound before it is
# set aside; 0 means that none is.
PRICINGS = {"sprint": 0, "shrinking": 100, "full": 0}
STARTS = ("cold", "ipm", "smo")
EQUATIONS = ("auto", "cg", "factor")
# A step ends after _SLICE_WORK entries (about 50 ms) or, if that is more, _SLICE_SHARE times the cost of updating f.
# While rows are set aside it has at least _SLICE_MAJORS major iterations, because completing f at its end is expensive.
_SLICE_WORK, _SLICE_SHARE, _SLICE_MAJORS = 60_000_000, 4, 5
# Wishes of free variables may differ by this share of the tolerance.
_FLAT = 0.1
# After a disputed claim the tolerance falls by this factor, down to a share of the rounding error.
_TIGHTER, _BELOW_ROUNDING = 0.25, 0.2
# The solve has stalled after this many steps in a row that gain no more than rounding and reach no lower prices.
_IDLE_STEPS = 20
# The matrix and the factor of the working set take _PAIR_BYTES for each pair of members. Up to _ALWAYS_BYTES nobody
# asks whether so much is free.
_PAIR_BYTES, _ALWAYS_BYTES = 14.0, 1 << 26
# Conjugate gradients take over from the factor where it has more members than this, or no room. They stay until both
# are below the share _STAYS of the limits.
_MANY, _STAYS = 2000, 0.5


@dataclass(frozen=True)
class Settling:
    """What a state carries along: the working set, or the matrix of the face, and whether its point is final.

    `has_tried` says that conjugate gradients came to an end before the optimum, so that the factor goes on.
    """

    work: Working | None
    settled: bool = False
    faces: Faces | None = None
    has_tried: bool = False


@dataclass(frozen=True)
class ActiveSet:
    """The active set method of SVM-QP.

    Parameters
    ----------
    pricing : {"sprint", "shrinking", "full"}
        Which variables compete to enter: those of a working set, which is renewed when it is solved; all but those that
        wanted to stay at their bound 100 times in a row; or all of them. The optimum is the same.
    candidates : int
        Variables at a bound in the working set of "sprint".
    tol : float
        By how much a variable may want away from its bound, in units of half the range of the targets (labels: 1).
    start : {"smo", "ipm", "cold"}
        Where `SVC` lets it begin if there is no start: where some rounds of BlockSMO have come to; at the solution for
        an approximation of K of low rank (Section 4.3); or at zero.
    rank : int
        Of that approximation.
    max_bytes : float or None
        For the matrix and the factor of the working set, or the matrix of conjugate gradients; None is a quarter of the
        memory that is free.
    equations : {"auto", "factor", "cg"}
        How the equations of the free variables are solved: by an updated Cholesky factor, one variable entering at a
        time, which takes 14 bytes for each pair of free variables; by preconditioned conjugate gradients, many at a
        time, with 4 bytes a pair (`pricing` is then without meaning). "auto" takes conjugate gradients for more than
        2,000 free variables, or where the factor does not fit into `max_bytes`. From the start "ipm", which leaves
        variables free that depend on others, it takes the factor until that has 2,000 members; and it takes the factor
        where conjugate gradients get no further.
    slice_pivots : int
        At most about so many pivots make one step of the loop.
    """

    pricing: str = "sprint"
    candidates: int = 300
    tol: float = 1e-6
    start: str = "smo"
    rank: int = 50
    max_bytes: float | None = None
    slice_pivots: int = 1000
    equations: str = "auto"
    stopping: str = "relative_gap"
    needs: ClassVar[str] = BOX
    state_type: ClassVar[type] = DualState
    needs_double: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.pricing not in PRICINGS:
            raise SoftmarginError(f"unknown pricing {self.pricing!r}: choose one of {sorted(PRICINGS)}.")
        if self.start not in STARTS:
            raise SoftmarginError(f"unknown start {self.start!r}: choose one of {sorted(STARTS)}.")
        if self.equations not in EQUATIONS:
            raise SoftmarginError(f"unknown equations {self.equations!r}: choose one of {sorted(EQUATIONS)}.")
        if not self.candidates >= 2:
            raise SoftmarginError(f"candidates={self.candidates!r} must be at least 2, for example 300.")
        if not 0.0 < self.tol < np.inf:
            raise SoftmarginError(f"tol={self.tol!r} must be a positive number, for example 1e-6.")
        if self.max_bytes is not None and not self.max_bytes > 0:
            raise SoftmarginError(
                f"max_bytes={self.max_bytes!r} must be positive, or None for a quarter of what is free."
            )
        if not self.rank >= 1:
            raise SoftmarginError(f"rank={self.rank!r} must be at least 1, for example 50.")
        if not self.slice_pivots >= 1:
            raise SoftmarginError(f"slice_pivots={self.slice_pivots!r} must be at least 1.")

    def init(self, problem: BoxQP, start: Any = None) -> DualState:
        return replace(first_state(problem, start), scratch=Settling(None))

    def excess(self, problem: BoxQP, state: DualState) -> str | None:
        """Why the next step would need more memory than there is for it; None if it does not."""
        n_free = int(np.count_nonzero(problem.is_free(state.beta)))
        if self.iterates(problem, state):
            faces = _scratch(state).faces
            if faces is None or not faces.is_full:
                return None
            needed, what = packed_bytes(n_free), "their kernel matrix needs"
        else:
            needed, what = self._factor_bytes(n_free), "their kernel matrix and its factor need"
            if self._is_little(needed) or needed <= self._limit(state):
                return None
        return (
            f"the active set has {n_free:,} free variables: {what} {needed:,.0f} bytes, and there are "
            f"{self._limit(state):,.0f} for them (max_bytes)"
        )

    def iterates(self, problem: BoxQP, state: DualState) -> bool:
        """Whether the next step solves by conjugate gradients: so many are free that pivots are slow, or the factor is
        too large.
        """
        if self.equations != "auto":
            return self.equations == "cg"
        if self._is_too_large(problem, state):
            return True
        scratch = _scratch(state)
        if scratch.has_tried:
            return False
        if scratch.work is not None and scratch.work.matches is state.beta:
            return scratch.work.inner.factor.order > _MANY
        n_free = int(np.count_nonzero(problem.is_free(state.beta)))
        if scratch.faces is None:
            return self.start != "ipm" and n_free > _MANY
        return n_free > _STAYS * _MANY

    def _is_too_large(self, problem: BoxQP, state: DualState) -> bool:
        """Whether the factor of all free variables has no room."""
        needed = self._factor_bytes(int(np.count_nonzero(problem.is_free(state.beta))))
        share = 1.0 if _scratch(state).faces is None else _STAYS
        return not self._is_little(needed) and needed > share * self._limit(state)

    def _factor_bytes(self, n_free: int) -> float:
        return _PAIR_BYTES * float(n_free + self._n_candidates) ** 2

    def _is_little(self, n_bytes: float) -> bool:
        return self.max_bytes is None and n_bytes <= _ALWAYS_BYTES

    def _limit(self, state: DualState) -> float:
        """Bytes that may be taken; those that conjugate gradients have taken already are not free any more."""
        if self.max_bytes is not None:
            return self.max_bytes
        faces = _scratch(state).faces
        return free_bytes() / 4 if faces is None else faces.max_bytes

    def step(self, problem: BoxQP, state: DualState) -> DualState:
        excess = self.excess(problem, state)
        if excess is not None:
            raise SoftmarginError(f"{excess}: raise it, lower C or gamma, or use solver='auto'.")
        if self.iterates(problem, state):
            return self._face_step(problem, state)
        scratch = _scratch(state)
        work = self._working(problem, state, scratch.settled)
        inner = work.inner
        before, dependents = inner.counts(), len(inner.dependents)
        is_settled, is_stuck, majors = self._majors(problem, work)
        value = problem.dual(work.beta, work.f)
        rounding = ROUNDING * problem.magnitude(work.beta, work.f)
        has_gained = value > work.value + rounding or work.largest < work.least
        has_gained |= len(inner.dependents) < dependents  # they move along null directions, which gains nothing
        work.idle = 0 if has_gained or is_settled else work.idle + 1
        work.value, work.least = value, min(work.least, work.largest)
        pivots, degenerate, refactorisations = (
            after - first for after, first in zip(inner.counts(), before, strict=True)
        )
        work.matches = work.beta
        return replace(
            state,
            beta=work.beta,
            f=work.f,
            iterations=state.iterations + pivots,
            majors=state.majors + majors,
            degenerate=state.degenerate + degenerate,
            refactorisations=state.refactorisations + refactorisations,
            is_stalled=is_stuck or work.idle >= _IDLE_STEPS,
            scratch=Settling(work, is_settled, has_tried=scratch.has_tried),
        ).counted(problem)

    def _face_step(self, problem: BoxQP, state: DualState) -> DualState:
        """One face by conjugate gradients; after a disputed claim with f summed anew and a smaller tolerance."""
        scratch = _scratch(state)
        faces = scratch.faces
        if faces is None:
            faces = Faces(problem, self._limit(state), self.candidates, self.tol * problem.unit)
        f = state.f
        if scratch.settled:
            faces.goal *= _TIGHTER
            f = problem.K.product(state.beta)
        products, pivots = faces.products, faces.pivots
        found = faces.step(problem, state.beta, f, problem.workers.check)
        beta, f = (state.beta, f) if found is None else found
        is_settled = found is None and not faces.is_full
        rounding = ROUNDING * problem.magnitude(beta, f)
        if problem.dual(beta, f) > problem.dual(state.beta, state.f) + rounding:
            faces.idle = 0
        after = replace(
            state,
            beta=beta,
            f=f,
            iterations=state.iterations + faces.pivots - pivots,
            majors=state.majors + 1,
            products=state.products + faces.products - products,
            is_stalled=faces.idle >= _IDLE_STEPS or (is_settled and faces.has_reached_rounding(problem, beta)),
            scratch=Settling(None, is_settled, faces),
        ).counted(problem)
        if faces.idle >= _IDLE_STEPS and self.equations == "auto" and not self._is_too_large(problem, after):
            return replace(after, is_stalled=False, scratch=Settling(None, has_tried=True))
        return after

    def measure(self, problem: BoxQP, state: DualState) -> Measure:
        return replace(problem.measure(state.beta, state.f), settled=_scratch(state).settled)

    def counts(self, state: DualState) -> dict[str, int]:
        return state.counts()

    def solution(self, problem: BoxQP, state: DualState) -> Solution:
        return problem.solution(state.beta, state.f)

    def is_stalled(self, state: DualState) -> bool:
        return state.is_stalled

    @property
    def _n_candidates(self) -> int:
        return self.candidates if self.pricing == "sprint" else 1

    def _working(self, problem: BoxQP, state: DualState, is_settled: bool) -> Working:
        """The working set at this state; after a disputed claim with f summed anew and a smaller tolerance."""
        work = _scratch(state).work
        f = problem.K.product(state.beta) if is_settled else state.f
        if work is None or work.matches is not state.beta:
            goal = self.tol * problem.unit
            return Working(problem, state.beta, f, self._n_candidates, PRICINGS[self.pricing], goal)
        work.matches = None  # until the step is complete
        if is_settled:
            work.goal *= _TIGHTER
        work.begin(problem, state.beta, f)
        return work

    def _majors(self, problem: BoxQP, work: Working) -> tuple[bool, bool, int]:
        """Major iterations for a slice of work: whether nothing is left to do, or can be done, and their number."""
        inner, noise = work.inner, work.noise()
        check = problem.workers.check
        is_stuck, has_ended, majors = False, False, 0
        if work.is_new:
            work.factorise(problem, _FLAT * max(work.goal, noise))
        end = inner.work + max(_SLICE_WORK, _SLICE_SHARE * inner.factor.order * work.beta.size)
        last_pivot = inner.pivots + self.slice_pivots
        while not is_stuck:
            goal = max(work.goal, noise)
            majors += 1
            wanted = work.price(problem, goal)
            if work.largest <= goal and inner.spread() <= goal and not inner.dependents:
                if not work.is_complete:
                    work.complete(problem)
                elif not has_ended and inner.end_segment(float(np.abs(work.beta).sum())):
                    has_ended = True
                    work.advance(problem)
                else:
                    return True, work.goal < _BELOW_ROUNDING * noise, majors
                continue
            work.renew(problem, wanted)
            entered, spread = inner.entered, inner.spread()
            is_solved = inner.solve(goal, end, last_pivot, check)
            work.advance(problem)
            if inner.flatten(_FLAT * goal):
                work.advance(problem)
            is_stuck = is_solved and inner.entered == entered and inner.spread() >= 0.5 * spread
            is_over = inner.work > end or inner.pivots >= last_pivot
            if (is_over or self.pricing == "sprint") and (work.is_complete or majors >= _SLICE_MAJORS):
                break
        work.complete(problem)
        return False, is_stuck, majors


def _scratch(state: DualState) -> Settling:
    """What the state carries along."""
    return state.scratch if isinstance(state.scratch, Settling) else Settling(None)
