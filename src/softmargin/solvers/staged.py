"""One solver begins, another goes on, and a third may have to finish: stages of one solve.

    "begin"      blocks of variables, until the gap is small enough for the active set to be quick from there: with
                 conjugate gradients, which change many variables at a time, a gap is enough that is larger than what
                 thousands of pivots need, but not reached in few rounds
    "low rank"   the start is computed by other means, in one go
    "active"     the active set
    "rest"       blocks again, where the active set would need more memory than it may have

The solvers are given: this file knows none of them. That the active set has handed over is said in the state, and
whoever runs the solver may tell the user.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from softmargin.core.kinds import BOX
from softmargin.core.result import DualStart, Solution
from softmargin.core.stopping import Measure, relative_gap
from softmargin.problems.box_qp import BoxQP
from softmargin.solvers.base import Solver
from softmargin.solvers.dual_state import DualState

# The first stage ends at this relative gap, or after so many rounds or pair steps.
_COARSE_GAP, _COARSE_ROUNDS, _COARSE_STEPS = 0.1, 100, 100_000
# Above so many free variables, where every pivot costs more, that gap falls with this power of their number.
_MANY_FREE, _MANY_POWER = 1500, 4
# The same where the active set would solve by conjugate gradients.
_ITERATED_GAP, _ITERATED_ROUNDS, _ITERATED_STEPS = 0.01, 1000, 2_000_000


class Exacting(Solver, Protocol):
    """A solver that can tell beforehand what a step will take."""

    def excess(self, problem: Any, state: Any) -> str | None:
        """Why the next step would need more memory than there is for it; None if it does not."""
        ...

    def iterates(self, problem: Any, state: Any) -> bool:
        """Whether the next step changes many variables, by conjugate gradients."""
        ...


@dataclass(frozen=True)
class Stage:
    """Which stage a state is in, and what its solver keeps in the state."""

    name: str
    scratch: Any = None


@dataclass(frozen=True)
class Staged:
    """The active set, which others may begin for, and which hands over to blocks where its matrix gets too large.

    `first` is the stage that a new solve begins with; "low rank" needs `compute_start`.
    """

    active: Exacting
    blocks: Solver
    first: str = "active"
    compute_start: Callable[[BoxQP], DualStart] | None = None
    needs: ClassVar[str] = BOX
    state_type: ClassVar[type] = DualState

    @property
    def stopping(self) -> str:
        return self.active.stopping

    def init(self, problem: BoxQP, start: Any = None) -> DualState:
        if isinstance(start, DualState) and isinstance(start.scratch, Stage):
            inner = replace(start, scratch=start.scratch.scratch)
            return replace(self.active.init(problem, inner), scratch=Stage(start.scratch.name))
        first = "active" if start is not None and self.first == "low rank" else self.first
        return replace(self.active.init(problem, start), scratch=Stage(first))

    def step(self, problem: BoxQP, state: DualState) -> DualState:
        stage, state = _unwrapped(state)
        if stage == "begin" and self._is_coarse(problem, state):
            stage, state = "active", replace(state, scratch=None, is_stalled=False)
        if stage == "low rank":
            assert self.compute_start is not None
            stage, state = "active", self.active.init(problem, self.compute_start(problem))
        excess = self.active.excess(problem, state) if stage == "active" else None
        if excess is not None:
            stage, state = "rest", replace(state, scratch=None, handed_over=excess)
        after = (self.active if stage == "active" else self.blocks).step(problem, state)
        return replace(after, scratch=Stage(stage, after.scratch))

    def measure(self, problem: BoxQP, state: DualState) -> Measure:
        stage, state = _unwrapped(state)
        if stage in ("active", "low rank"):
            return self.active.measure(problem, state)
        return replace(self.blocks.measure(problem, state), settled=stage == "rest")

    def counts(self, state: DualState) -> dict[str, int]:
        return state.counts()

    def solution(self, problem: BoxQP, state: DualState) -> Solution:
        return problem.solution(state.beta, state.f)

    def is_stalled(self, state: DualState) -> bool:
        return state.is_stalled and _unwrapped(state)[0] != "begin"

    def _is_coarse(self, problem: BoxQP, state: DualState) -> bool:
        """Whether the first stage has done its part."""
        measure = self.blocks.measure(problem, state)
        gap = relative_gap(measure.primal, measure.dual, measure.scale)
        if self.active.iterates(problem, state):
            goal, rounds, steps = _ITERATED_GAP, _ITERATED_ROUNDS, _ITERATED_STEPS
        else:
            n_free = int(np.count_nonzero(problem.is_free(state.beta)))
            goal = _COARSE_GAP * (_MANY_FREE / max(n_free, _MANY_FREE)) ** _MANY_POWER
            rounds, steps = _COARSE_ROUNDS, _COARSE_STEPS
        has_worked = state.iterations >= rounds or state.pair_steps >= steps
        return gap <= goal or has_worked or state.is_stalled


@dataclass(frozen=True)
class Continued(Staged):
    """The active set from a state that brings its working set along."""

    def init(self, problem: BoxQP, start: Any = None) -> DualState:
        return replace(start, scratch=Stage("active", start.scratch))


def _unwrapped(state: DualState) -> tuple[str, DualState]:
    """The stage, and the state as the solver of that stage knows it."""
    stage = state.scratch if isinstance(state.scratch, Stage) else Stage("active")
    return stage.name, replace(state, scratch=stage.scratch)
