"""Coordinate descent with one variable a row: what follows from the problem."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softmargin.problems.base import CoordinateProblem, Coordinates

if TYPE_CHECKING:
    from softmargin.solvers.coordinate.coordinate import CoordinateState

# s2 of the augmented Lagrangian, as a share of the mean squared length of the centred rows.
PENALTY_SHARE = 0.1
# The same for squared losses where C is small, as a share of 1 / sum_i (1 / ridge_i).
RIDGE_SHARE = 5.0


class Terms(NamedTuple):
    """What belongs to each row: see `problems.base.Coordinates`. `shift` is m_i, or empty where nothing is centred."""

    target: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    ridge: np.ndarray
    curvature: np.ndarray
    shift: np.ndarray
    epsilon: float


class Shape(NamedTuple):
    """What all rows have in common: the constant feature, s2, |mean(x)|^2 + s2, and the weights of the tail."""

    bias: float
    penalty: float
    spread: float
    tail_power: float


class Vectors(NamedTuple):
    """What compiled code changes in place."""

    beta: np.ndarray
    w: np.ndarray
    tail: np.ndarray
    order: np.ndarray
    dropped: np.ndarray
    seed: np.ndarray
    wait: np.ndarray
    due: np.ndarray


@dataclass(frozen=True)
class Known:
    """What follows from the problem alone."""

    terms: Terms
    total: float
    present: np.ndarray
    penalty: float
    spread: float
    row_values: float

    @property
    def n_rows(self) -> int:
        return self.terms.target.size

    @property
    def n_waiting(self) -> int:
        """Rows that wait for their turn: all of them."""
        return self.n_rows

    @property
    def first_dual(self) -> float:
        """The dual value of beta = 0, which is feasible unless the variables have to add up to something."""
        return 0.0 if self.total == 0.0 else -math.inf

    def clipped(self, beta: np.ndarray) -> np.ndarray:
        """beta within its ranges."""
        return np.clip(beta, self.terms.lo, self.terms.hi)

    def weights(self, problem: CoordinateProblem, w: np.ndarray) -> np.ndarray:
        """The weights as the problem has them."""
        return w[: problem.n_weights]

    def first_weights(self, problem: CoordinateProblem, beta: np.ndarray) -> tuple[np.ndarray, float, float]:
        """X'beta, what the sum of beta has too much, and X'beta times the mean row."""
        w = np.zeros(problem.rows.n_cols + 1)
        along_mean = 0.0
        if beta.any():
            w[: problem.n_weights] = problem.intercept.extended(problem.rows.t_dot(beta), float(beta.sum()))
            along_mean = float(self.terms.shift @ beta) if self.terms.shift.size else 0.0
        return w, float(beta.sum()) - self.total, along_mean

    def copied(self, classes: Any) -> None:
        """Only rows of several classes have some that are open."""

    def sweep(
        self,
        problem: CoordinateProblem,
        shape: Shape,
        v: Vectors,
        sums: np.ndarray,
        counts: np.ndarray,
        most: int,
        goal: float,
        classes: Any,
    ) -> None:
        """Epochs over the active rows; see `_visits.sweep`."""
        from softmargin.solvers.coordinate import _visits

        _visits.sweep(problem.rows.flat, self.terms, shape, v, sums, counts, most, goal)

    def judged(
        self, problem: CoordinateProblem, beta: np.ndarray, w: np.ndarray, excess: float
    ) -> tuple[np.ndarray, float, int]:
        """Feasible variables near beta, their dual value, and how many passes over the data that took."""
        if not self.penalty:
            return beta, _dual_value(self.terms, beta, 0.5 * float(w @ w)), 0
        change = _without_excess(self.terms, beta, excess)
        beta, w = beta + change, w + problem.rows.t_dot(change)
        return beta, _dual_value(self.terms, beta, 0.5 * float(w @ w)), 1

    def rooms(self, state: "CoordinateState", f: np.ndarray) -> np.ndarray:
        """By how much each row stays where it is; see `_visits.rooms`."""
        from softmargin.solvers.coordinate import _visits

        sweep = state.sweep
        scores = f[: self.n_rows] + (state.b - sweep.along_mean + sweep.excess * self.spread)
        if self.terms.shift.size:
            scores -= sweep.excess * self.terms.shift
        room = np.empty(self.n_rows)
        _visits.rooms(self.terms, state.beta, scores, room)
        return room


def known_of(problem: CoordinateProblem, given: Coordinates) -> Known:
    """Targets and ranges of the variables, curvatures, and what centres the rows. One pass, three if b is free."""
    rows = problem.rows
    present = np.flatnonzero(given.hi > given.lo)
    curvature = rows.sq_norms() + problem.intercept.feature**2
    shift, penalty, spread = np.empty(0), 0.0, 0.0
    if problem.intercept.is_free and present.size:
        weights = np.zeros(rows.n_rows)
        weights[present] = 1.0 / present.size
        mean = rows.t_dot(weights)
        shift, square = rows.dot(mean), float(mean @ mean)
        curvature = np.maximum(curvature - 2.0 * shift + square, 0.0)
        # With all variables at one end b moves by about the size of the targets in an epoch. This matters where C is so
        # small that they are; a step of one variable is not shortened by it, because its range is shorter still.
        # Variables without ends move by 1 / ridge if the targets do by 1, and b has to follow all of them.
        if given.ridge.size:
            reply = RIDGE_SHARE / float((1.0 / given.ridge[present]).sum())
        else:
            size = float(np.abs(given.target).max()) or 1.0
            reply = size / float((given.hi - given.lo)[present].sum())
        penalty = max(PENALTY_SHARE * float(curvature[present].mean()), reply)
        spread = square + penalty
        curvature += penalty
    if given.ridge.size:
        curvature += given.ridge
    terms = Terms(given.target, given.lo, given.hi, given.ridge, curvature, shift, given.epsilon)
    flat = problem.rows.flat
    row_values = max(1.0, flat.values.size / max(flat.n_rows, 1))
    return Known(terms, given.total, present, penalty, spread, row_values)


def _dual_value(terms: Terms, beta: np.ndarray, half_norm: float) -> float:
    value = float(terms.target @ beta) - half_norm
    if terms.epsilon:
        value -= terms.epsilon * float(np.abs(beta).sum())
    if terms.ridge.size:
        value -= 0.5 * float(np.dot(terms.ridge * beta, beta))
    return value


def _without_excess(terms: Terms, beta: np.ndarray, excess: float) -> np.ndarray:
    """A change of the variables that takes the excess off their sum.

    First of those inside of their ranges, to which it makes next to no difference: at the optimum their gradients are
    all the same. What they cannot take, other variables take on the way to zero, or else any.
    """
    change = np.zeros(beta.size)
    far = terms.lo if excess > 0.0 else terms.hi
    to_zero = np.where(beta * excess > 0.0, np.abs(beta), 0.0)
    to_end = np.where(beta * excess < 0.0, np.minimum(np.abs(far - beta), np.abs(beta)), to_zero)
    is_inside = (beta > terms.lo) & (beta < terms.hi)
    for room in (np.where(is_inside, to_end, 0.0), to_zero, np.abs(far - beta)):
        room = room - np.abs(change)
        left, whole = abs(excess) - float(np.abs(change).sum()), float(room.sum())
        if left > 0.0 and 0.0 < whole < math.inf:
            change -= room * math.copysign(min(left / whole, 1.0), excess)
    return change
