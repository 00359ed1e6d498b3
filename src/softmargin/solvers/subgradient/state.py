"""What Pegasos and SGD have in common: the state, and all of the solver but the order of the visits and the steps.

Both visit one row at a time and change w by a multiple of y_i x_i where it violates the margin. An iteration is an
epoch: as many visits as there are rows with weight.

The dual candidate is made of counts: alpha_i = C s_i * (visits of row i that violated the margin) / (visits of row i).
It lies in its box by construction; where the intercept is free the heavier class is scaled down, and weak duality makes
a lower bound of it. With steps 1 / (lambda t) this is what w itself is made of: telescoped, every violating visit
weighs 1 / (lambda T) in w = sum_i alpha_i y_i x_i. But counting applies to all steps, and late visits know more: here a
visit counts as much as the number of its epoch.

An epoch is followed by a measurement (one product with X for the value of the point, one with X' for that of the
counts). The best point and the best bound so far are kept: a random step may make either worse, and both stay true
whatever comes later.
"""

import math
import secrets
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.kinds import SINGLE_ROWS
from softmargin.core.result import Solution, WeightStart
from softmargin.core.stopping import Measure
from softmargin.problems.base import RowProblem

# Compiled code is interrupted between slices of about this many values, and at most this many visits: milliseconds.
SLICE_VALUES = 1 << 20
SLICE_VISITS = 1 << 18


@dataclass(frozen=True)
class Schedule:
    """The numbers that make one algorithm or the other of the shared loop, see `_epoch.descend`.

    A free intercept moves by `b_gain` times the steps of w; if `b_waits`, only from the second epoch on, and from the
    best intercept for w.
    """

    t0: float = 0.0
    power: float = 1.0
    skip: int = 0
    radius: float = math.inf
    b_gain: float = 1.0
    b_waits: bool = False


class Visits(NamedTuple):
    """Visits of rows, one after the other, as compiled code sees them.

    `place` is where each row is found, `gain` its label times its weight. Into `hit` goes 1 for a visit that violated
    the margin, otherwise 0.
    """

    place: np.ndarray
    gain: np.ndarray
    hit: np.ndarray


class Steps(NamedTuple):
    """The numbers of a `Schedule` and of the problem that do not change during an epoch, as compiled code sees them.

    `scale_C` is C sum(s) = 1 / lambda, `bias` the value of the constant feature, and `b_gain` is 0 where the intercept
    stays as it is.
    """

    scale_C: float
    t0: float
    power: float
    skip: int
    radius: float
    bias: float
    b_gain: float


class Point(NamedTuple):
    """The weights, which compiled code changes; they have one entry more than a row, for the constant feature.

    Unless `total` is empty, the weights after each visit are added to it.
    """

    w: np.ndarray
    total: np.ndarray


@dataclass(frozen=True)
class SubgradientState:
    """A solve between two epochs, at the point w with the intercept b (0 unless free).

    `hits` and `seen` are the weighted counts of violating visits and of all visits of each row; `total` is the sum of
    the last `n_total` points. `best` with its outputs `best_f`, and `bound`, are the point with the lowest primal value
    and the dual vector with the highest dual value so far.
    """

    w: np.ndarray
    b: float
    hits: np.ndarray
    seen: np.ndarray
    total: np.ndarray
    n_total: int
    schedule: Schedule
    seed: int
    visits: int
    last_visit: int
    best: np.ndarray
    best_f: np.ndarray
    bound: np.ndarray
    primal: float
    dual: float
    C: float
    iterations: int = 0
    passes: int = 0


@dataclass(frozen=True, kw_only=True)
class SubgradientSolver(ABC):
    """The parts of `Solver` that Pegasos and SGD share."""

    needs: ClassVar[str] = SINGLE_ROWS
    state_type: ClassVar[type] = SubgradientState
    seed: int | None = None
    stopping: str = "relative_gap"

    def __post_init__(self) -> None:
        seed = self.seed
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, Integral) or int(seed) < 0):
            raise SoftmarginError(f"seed={seed!r} must be an integer of at least 0, or None for a new one in each fit.")

    @property
    def averages(self) -> bool:
        """Whether the candidate is the mean of the points from the second epoch on."""
        return False

    @abstractmethod
    def budget(self, problem: RowProblem, n_present: int) -> int:
        """How many visits a solve is made of."""

    @abstractmethod
    def schedule(self, problem: RowProblem, present: np.ndarray) -> Schedule:
        """The steps for this problem, whose rows with weight are `present`."""

    @abstractmethod
    def epoch(self, v: np.ndarray, present: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The rows in the order of their visits, and label times weight of each visit; 1 is a mean weight."""

    def init(self, problem: RowProblem, start: Any = None) -> SubgradientState:
        """Continues a state: to the end of its budget, or with a new one if that is used up or C has changed.

        Bare weights count as the result of one epoch, which sets the length of the next steps.
        """
        if problem.targets is not None:
            raise SoftmarginError(
                f"{type(self).__name__} trains classifiers only: use OCAS or CPA for regression and for one class."
            )
        present = np.flatnonzero(problem.signed_weights)
        budget = self.budget(problem, present.size) if present.size else 0
        schedule = self.schedule(problem, present) if present.size else Schedule()
        if isinstance(start, SubgradientState):
            state = replace(start, schedule=schedule)
            if start.C != problem.C:
                state = _at_other_C(problem, state)
            elif start.visits < start.last_visit:
                return state
            return replace(state, last_visit=start.visits + budget)
        nothing = np.zeros(problem.n_outputs)
        state = SubgradientState(
            w=np.zeros(problem.n_weights),
            b=0.0,
            hits=nothing,
            seen=nothing,
            total=np.zeros(problem.n_weights),
            n_total=0,
            schedule=schedule,
            seed=secrets.randbits(63) if self.seed is None else int(self.seed),
            visits=0,
            last_visit=budget,
            best=np.zeros(problem.n_weights),
            best_f=nothing,
            bound=nothing,
            primal=problem.C * problem.risk(nothing),
            dual=0.0,
            C=problem.C,
        )
        if isinstance(start, WeightStart):
            state = replace(state, w=start.w, visits=present.size, last_visit=present.size + budget)
            state = _point_measured(problem, state, sets_b=True)
        return state

    def step(self, problem: RowProblem, state: SubgradientState) -> SubgradientState:
        v = problem.signed_weights
        random = np.random.default_rng([state.seed, state.iterations])
        rows, gains = self.epoch(v, np.flatnonzero(v), random)
        left = state.last_visit - state.visits
        rows, gains = rows[:left], gains[:left]
        age = state.iterations + 1
        adds_up = self.averages and age > 1
        w, b, hit, total = _visit(problem, state, rows, gains, adds_up)
        state = replace(
            state,
            w=w,
            b=b,
            hits=state.hits + age * np.bincount(rows, hit, minlength=v.size),
            seen=state.seen + age * np.bincount(rows, minlength=v.size),
            total=total,
            n_total=state.n_total + rows.size if adds_up else 0,
            visits=state.visits + rows.size,
            iterations=age,
            passes=state.passes + 1,
        )
        state = _point_measured(problem, state, sets_b=state.schedule.b_waits and age == 1)
        return _bound_measured(problem, state)

    def measure(self, problem: RowProblem, state: SubgradientState) -> Measure:
        violation = (state.primal - state.dual) / problem.scale if problem.scale > 0 else 0.0
        spent = state.visits >= state.last_visit
        return Measure(state.primal, state.dual, problem.scale, violation, spent=spent)

    def counts(self, state: SubgradientState) -> dict[str, int]:
        return {"iterations": state.iterations, "passes": state.passes, "visits": state.visits}

    def solution(self, problem: RowProblem, state: SubgradientState) -> Solution:
        return replace(problem.solution(state.best, state.best_f, (), np.empty(0)), alpha=state.bound)

    def is_stalled(self, state: SubgradientState) -> bool:
        """Steps that are too long for the data make w overflow; nothing can come after that."""
        return not np.isfinite(state.w).all()


def positive_integer(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise SoftmarginError(f"{name}={value!r} must be a positive integer.")


def _visit(
    problem: RowProblem, state: SubgradientState, rows: np.ndarray, gains: np.ndarray, adds_up: bool
) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
    """The point and its intercept after the visits, which of them violated the margin, and the sum of the points."""
    from softmargin.solvers.subgradient import _epoch

    plan, b = state.schedule, state.b
    moves_b = problem.intercept.is_free and not (plan.b_waits and state.iterations == 0)
    steps = Steps(
        scale_C=problem.scale,
        t0=plan.t0,
        power=plan.power,
        skip=plan.skip,
        radius=plan.radius,
        bias=problem.intercept.feature,
        b_gain=plan.b_gain if moves_b else 0.0,
    )
    flat, _ = problem.rows_at(rows[:1])
    w, total = np.zeros(flat.n_cols + 1), np.zeros(flat.n_cols + 1)
    size = state.w.size
    w[:size] = state.w
    if state.n_total:
        total[:size] = state.total
    point = Point(w, total if adds_up else np.empty(0))
    hit = np.empty(rows.size)
    row_values = max(1.0, flat.values.size / max(flat.n_rows, 1))
    n_slice = max(1, min(SLICE_VISITS, int(SLICE_VALUES / row_values)))
    for lo in range(0, rows.size, n_slice):
        problem.workers.check()
        part = slice(lo, lo + n_slice)
        flat, place = problem.rows_at(rows[part])
        visits = Visits(place, gains[part], hit[part])
        b = _epoch.descend(flat, visits, steps, point, b, state.visits + lo)
    return w[:size], b, hit, total[:size]


@np.errstate(over="ignore", invalid="ignore")
def _point_measured(problem: RowProblem, state: SubgradientState, sets_b: bool) -> SubgradientState:
    """The state with the value of its point, the mean of the points where there is one; may set b to the best."""
    w = state.total / state.n_total if state.n_total else state.w
    if not np.isfinite(w).all():
        return state
    f = problem.outputs(w)
    state = replace(state, passes=state.passes + 1)
    if not np.isfinite(f).all():
        return state
    primal = 0.5 * float(w @ w) + problem.C * problem.risk(f)
    if sets_b and problem.intercept.is_free:
        state = replace(state, b=problem.solution(w, f, (), np.empty(0)).b)
    return replace(state, best=w, best_f=f, primal=primal) if primal < state.primal else state


@np.errstate(over="ignore", invalid="ignore")
def _bound_measured(problem: RowProblem, state: SubgradientState) -> SubgradientState:
    """The state with the dual value of its counts, at the best point k alpha, k <= 1."""
    v = problem.signed_weights
    share = np.divide(state.hits, state.seen, out=np.zeros(v.size), where=state.seen > 0)
    signed = problem.C * v * share
    if problem.intercept.is_free:
        plus, minus = float(signed[v > 0].sum()), -float(signed[v < 0].sum())
        if plus != minus:
            signed[v > 0 if plus > minus else v < 0] *= min(plus, minus) / max(plus, minus)
    w = problem.slope(signed)
    state = replace(state, passes=state.passes + 1)
    alpha = np.abs(signed)
    linear, square = float(alpha.sum()), float(w @ w)
    k = min(1.0, linear / square) if square > 0.0 else 1.0
    dual = k * linear - 0.5 * k * k * square
    return replace(state, bound=k * alpha, dual=dual) if dual > state.dual else state


def _at_other_C(problem: RowProblem, state: SubgradientState) -> SubgradientState:
    """The same point and counts at another C; the mean of points made for the old one is forgotten."""
    primal = 0.5 * float(state.best @ state.best) + problem.C * problem.risk(state.best_f)
    nothing = np.zeros_like(state.bound)
    return _bound_measured(problem, replace(state, n_total=0, primal=primal, bound=nothing, dual=0.0, C=problem.C))
