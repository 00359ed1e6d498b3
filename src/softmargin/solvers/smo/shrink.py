"""Shrinking: variables at a bound that want to stay there are set aside, and the rest is a problem of the same form.

A variable that may fall finds a pair if its wish to fall is not above all wishes of those that may rise; one that may
rise, if its wish to rise is not below all of those that may fall. Variables without any pair are set aside: those at a
bound that want to stay there, and in regression those at zero that do. What is set
aside may still be wrong, so a solve never ends on a shrunk problem: f is made complete first (LIBSVM's gradient
reconstruction), and the loop goes on with all variables.

References: T. Joachims, Making Large-Scale SVM Learning Practical, 1999, Section 11.4; C.-C. Chang, C.-J. Lin, LIBSVM:
A Library for Support Vector Machines, 2011, Section 5.1.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softmargin.problems.box_qp import BoxQP
from softmargin.solvers.dual_state import DualState

# A problem is shrunk if at least this share of its active variables can be set aside.
_LEAST_SHARE = 0.1
# f is made complete when the violation of the shrunk problem has fallen to this share of the last full one.
_GOAL_SHARE = 0.1
# What copying and computing an entry of a kernel row costs, in units of the passes of a step over it.
_COPY_COST, _ROW_COST = 4.0, 8.0


@dataclass(frozen=True)
class Part:
    """The point of a shrunk problem: beta of all variables, f of the `active` ones, and their part of the matrix.

    At the violation `goal` f is to be made complete. `parent` is the matrix that K is a part of; neither is pickled.
    """

    active: np.ndarray
    beta: np.ndarray
    f: np.ndarray
    goal: float
    K: Any = None
    parent: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"K": None, "parent": None}

    def of(self, problem: BoxQP) -> "Part":
        """The same with the matrix of this problem."""
        if self.parent is problem.K:
            return self
        return replace(self, K=problem.K.narrow(self.active), parent=problem.K)


@dataclass(frozen=True)
class Shrinking:
    """What SMO keeps in a state's `scratch`: K's diagonal, and where the solve has come to on a shrunk problem.

    The state itself is a point of the whole problem, whose f is right. `idle` counts slices in a row without progress
    beyond rounding; `stuck_at` is the dual value at which no step was left. `length` is that of the step which was too
    short to be made (infinite: no slice has ended so), and `claim` what the stop rule saw when the solver last claimed
    to be done. `members` are the last working set of rules that go on from one.
    """

    diag: np.ndarray
    part: Part | None = None
    idle: int = 0
    stuck_at: float = -np.inf
    length: float = np.inf
    claim: float = np.inf
    members: tuple[int, ...] = ()


def latest(state: DualState) -> tuple[np.ndarray, np.ndarray]:
    """The current beta, and f, which is old for variables that are set aside."""
    part = part_of(state)
    if part is None:
        return state.beta, state.f
    f = state.f.copy()
    f[part.active] = part.f
    return part.beta, f


def part_of(state: DualState) -> Part | None:
    return state.scratch.part if isinstance(state.scratch, Shrinking) else None


def shrunk(problem: BoxQP, state: DualState) -> DualState:
    """The state with fewer active variables, or the same where it would not be worth it."""
    part = part_of(state)
    if part is None:
        active, beta, f, K = np.arange(state.beta.size), state.beta, state.f, problem.K
    else:
        active, beta, f, K = part.active, part.beta, part.f, part.K
    rise, fall = (wish[active] for wish in problem.wishes(*latest(state)))
    may_rise, may_fall = (beta < problem.hi)[active], (beta > problem.lo)[active]
    highest = np.max(rise, where=may_rise, initial=-np.inf)
    lowest = np.min(fall, where=may_fall, initial=np.inf)
    has_pair = (may_rise & (rise >= lowest)) | (may_fall & (fall <= highest))
    keep = has_pair | np.isin(active, (*state.pair, *state.scratch.members))
    stay = np.flatnonzero(keep)
    fits = 2 <= stay.size <= K.max_bytes / (2 * K.dtype.itemsize)
    if not fits or stay.size > (1.0 - _LEAST_SHARE) * active.size:
        return state
    if not _pays(problem, state, K, active.size, stay.size):
        return state
    goal = _GOAL_SHARE * (highest - lowest) if part is None else part.goal
    part = Part(active[stay], beta, f[stay], goal, K.narrow(stay), problem.K)
    return replace(state, scratch=replace(state.scratch, part=part))


def _pays(problem: BoxQP, state: DualState, K: Any, n_active: int, n_stay: int) -> bool:
    """Whether as many steps again as were made so far save more than shrinking costs, in entries of kernel rows.

    It costs copying the rows in the cache, and computing rows to make f complete in the end. A step saves its passes
    over what is set aside, and computing that for rows that are not cached.
    """
    n_cached, n_support = K.n_cached, np.count_nonzero(state.beta)
    costs = _COPY_COST * n_cached * n_stay + _ROW_COST * n_support * (problem.p.size - n_stay)
    uses = problem.K.hits + problem.K.misses
    rows_per_step = 0.0 if K.capacity == K.n else 2.0 * problem.K.misses / max(1, uses)
    return bool(costs < state.iterations * (n_active - n_stay) * (1.0 + _ROW_COST * rows_per_step))


def unshrunk(problem: BoxQP, state: DualState, *, goes_on: bool = True) -> DualState:
    """The state with all variables active again, and f complete.

    If the solve `goes_on` from there, the cache of the shrunk problem is given up for that of the whole one.
    """
    part = part_of(state)
    if part is None:
        return state
    beta, f = latest(state)
    aside = np.ones(beta.size, dtype=bool)
    aside[part.active] = False
    columns = np.flatnonzero(aside)
    change = beta - state.beta
    if np.count_nonzero(beta) < np.count_nonzero(change):  # summing anew is less work
        change = beta
        f[columns] = 0.0
    K = part.K if goes_on else None
    for rows, values in problem.K.widened(K, part.active, np.flatnonzero(change), columns):
        f[columns] += change[rows] @ values
    scratch = replace(state.scratch, part=None)
    return replace(state, beta=beta, f=f, scratch=scratch, unshrinkings=state.unshrinkings + 1)
