"""Dual coordinate descent for linear machines: one variable at a time, with w kept up to date.

    min over beta of 1/2 |X'beta|^2 + 1/2 sum_i ridge_i beta_i^2 - sum_i t_i beta_i + epsilon sum_i |beta_i|,
    lo <= beta <= hi,   and sum(beta) = total if the intercept is free

    repeat, for the rows that are active, in a new random order each time (an epoch):
        u = w.x_i (+ b)
        beta_i = the minimiser over beta_i alone, which costs one product w.x_i         Algorithm 1, eq. (9)
        w += (change of beta_i) x_i
        row i is set aside if beta_i stays at its end by more than any row was off      Section 3.2
    now and then: the objective of w, and which rows are active, from the outputs of all rows

Two things are added to the method of the paper:

- The primal value of w lags behind the dual value of beta, by a factor of 10 to 40 on text. The mean of w over the last
  third of the epochs is a much better point, and the best point on the line through both is better still.
- A free intercept is the multiplier of sum(beta) = total. It costs next to nothing as an augmented Lagrangian: the
  score of a row is w.x_i + b + s2 excess, with excess = sum(beta) - total carried along, and b += s2 excess after every
  epoch. Rows far from the origin would make that slow, so that the rows are centred, without being touched: w is
  replaced by w - excess mean(x), which is the same where the excess is zero, and everything that this changes follows
  from m_i = x_i.mean(x) and w.mean(x).

References: C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi, S. Sundararajan, A Dual Coordinate Descent Method for
Large-scale Linear SVM, ICML 2008, Algorithms 1 to 3. C.-H. Ho, C.-J. Lin, Large-scale Linear Support Vector Regression,
JMLR 13, 2012, for the kink of regression at zero. D. Bertsekas, Constrained Optimization and Lagrange Multiplier
Methods, 1982, for the multiplier.

Symbols: alpha -> beta (signed); Q_ii -> curvature; D_ii -> ridge; M, m -> threshold.

Departs from the paper: signed variables; one threshold for rows at either end; which rows are active is decided anew
from the outputs of all rows whenever these are there, and not only at the end. The stop rule is the duality gap. It is
estimated from the losses that an epoch meets anyway, and computed when the estimate says that it may be small enough.

The joint problem of several classes has as many variables a row as there are classes; `classes` has what differs.
"""

import math
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.kinds import COORDINATES
from softmargin.core.result import Solution, WeightStart
from softmargin.core.stopping import AT_BOUND, NEGLIGIBLE, Measure
from softmargin.problems.base import CoordinateProblem, JointCoordinates
from softmargin.solvers.coordinate.classes import KnownClasses, OpenClasses, is_state_of_classes, n_padded

# Compiled code is interrupted between slices of about this many values. A step is as long, or an epoch if that is
# longer.
SLICE_VALUES = 1 << 20
# The mean of w begins anew when this many times as many epochs were made as at its last beginning.
TAIL_GROWTH = 1.5
# The value of the point is computed whenever the visits have grown by the second factor, or by the first if the gap
# seems to be small enough.
SOON, LATE = 1.1, 2.0
# s2 of the augmented Lagrangian, as a share of the mean squared length of the centred rows.
PENALTY_SHARE = 0.1
# The same for squared losses where C is small, as a share of 1 / sum_i (1 / ridge_i).
RIDGE_SHARE = 5.0
# What the estimated gap may be wrong by before it is corrected: the limits of the correction.
LEAST_CORRECTION, MOST_CORRECTION = 0.02, 50.0
# The solve has stalled if neither value changed by more than LEAST_PROGRESS of its size in so many looks in a row.
STALL_LOOKS, LEAST_PROGRESS = 20, 1e-15
_STATE_SLACK = 1e-3  # of w in a state, beside what it is made of: rounding alone stays far below
_FIRST_SEED = 0x9E3779B97F4A7C15  # any odd number will do; the generator must not begin at zero


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
    """What all rows have in common: the constant feature, s2, |mean(x)|^2 + s2, and how the tail grows."""

    bias: float
    penalty: float
    spread: float
    tail_growth: float


class Vectors(NamedTuple):
    """What compiled code changes in place."""

    beta: np.ndarray
    w: np.ndarray
    tail: np.ndarray
    order: np.ndarray
    dropped: np.ndarray
    seed: np.ndarray


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

    def copied(self, classes: None) -> None:
        """Only rows of several classes have some that are open."""

    def sweep(self, problem: CoordinateProblem, shape: Shape, *arguments: Any) -> None:
        """Epochs over the active rows; see `_visits.sweep`."""
        from softmargin.solvers.coordinate import _visits

        _visits.sweep(problem.rows.flat, self.terms, shape, *arguments[:-1])

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


@dataclass(frozen=True)
class Sweep:
    """Where the visits have come to.

    w is X'beta, with the weight of the constant feature last, or 0. The first `n_active` rows of `order` are visited.
    `excess` is sum(beta) less what it should be, `along_mean` is w.mean(x). Rows are set aside if they stay where they
    are by more than `threshold`; none are as long as that is negative. `tail` is the sum of the points after the last
    `n_tail` epochs. `correction` is what the last estimate of the gap was wrong by.
    """

    w: np.ndarray
    order: np.ndarray
    n_active: int
    excess: float
    along_mean: float
    tail: np.ndarray
    tail_end: int
    next_look: int
    due: int
    n_tail: int = 0
    threshold: float = -1.0
    correction: float = 1.0


@dataclass(frozen=True)
class CoordinateState:
    """A solve between two steps, at the variables beta and the multiplier b of a free intercept.

    `best` with its outputs `best_f` is the point with the lowest primal value so far, `bound` the dual vector with the
    highest dual value. Both are as of the last look at all rows; `is_measured` says that this was the last step.
    `known` follows from the problem, and so it is never saved.
    """

    beta: np.ndarray
    b: float
    best: np.ndarray
    best_f: np.ndarray
    bound: np.ndarray
    primal: float
    dual: float
    C: float
    seed: int
    sweep: Sweep
    is_measured: bool = True
    iterations: int = 0
    epochs: int = 0
    visits: int = 0
    passes: int = 0
    idle: int = 0
    known: Known | KnownClasses | None = field(default=None, repr=False, compare=False)
    classes: OpenClasses | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"known": None, "classes": None}

    def is_one_of(self, problem: CoordinateProblem) -> bool:
        """Whether it can be a state of this problem: one from a file may say anything, and compiled code believes it.

        This costs a product with the transpose of X.
        """
        given, sweep = problem.coordinates, self.sweep
        if isinstance(given, JointCoordinates):
            return is_state_of_classes(problem, given, self, _STATE_SLACK)
        present = np.flatnonzero(given.hi > given.lo)
        if not 0 <= sweep.n_active <= sweep.order.size or not np.array_equal(np.sort(sweep.order), present):
            return False
        share = self.C / problem.C
        if share != 1.0:  # the bounds of the other C are only known up to rounding; a new start clips the variables
            share *= 1.0 + AT_BOUND
        if not ((self.beta >= share * given.lo) & (self.beta <= share * given.hi)).all():
            return False
        w = problem.intercept.extended(problem.rows.t_dot(self.beta), float(self.beta.sum()))
        miss = np.abs(sweep.w[: w.size] - w).max(initial=0.0)
        return bool(miss <= _STATE_SLACK * (1.0 + np.abs(w).max(initial=0.0)))


@dataclass(frozen=True)
class CoordinateDescent:
    """Dual coordinate descent.

    Parameters
    ----------
    seed : int or None
        Of the random orders in which rows are visited. None is LinearSVC's random_state, or a fixed one: the same
        data give the same result.
    tol : float
        What the loop is going to ask for. It only tells when the value of the point is worth computing.
    stopping : "relative_gap" or "epsilon"
        What `tol` is compared with: (P - D) / P, or (P - D) / (C sum(s)).
    """

    seed: int | None = None
    tol: float = 1e-3
    stopping: str = "relative_gap"
    needs: ClassVar[str] = COORDINATES
    state_type: ClassVar[type] = CoordinateState

    def __post_init__(self) -> None:
        seed = self.seed
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, Integral) or int(seed) < 0):
            raise SoftmarginError(f"seed={seed!r} must be an integer of at least 0, or None for a fixed one.")

    def init(self, problem: CoordinateProblem, start: Any = None) -> CoordinateState:
        """Continues a state, at its C or at another; bare weights are a first point, but say nothing about beta."""
        known = _known(problem) if getattr(start, "known", None) is None else start.known
        if isinstance(start, CoordinateState):
            if start.C != problem.C:
                return _restarted(problem, start)
            return replace(start, known=known, idle=0)
        f = np.zeros(problem.n_outputs)
        state = CoordinateState(
            beta=np.zeros(problem.n_variables),
            b=0.0,
            best=np.zeros(problem.n_weights),
            best_f=f,
            bound=np.zeros(problem.n_variables),
            primal=problem.C * problem.risk(f),
            dual=known.first_dual,
            C=problem.C,
            seed=_first_seed(self.seed),
            sweep=_first_sweep(problem, known, np.zeros(problem.n_variables)),
            known=known,
        )
        if isinstance(start, WeightStart):
            f = problem.outputs(start.w)
            value = 0.5 * float(start.w @ start.w) + problem.C * problem.risk(f)
            if value < state.primal:
                state = replace(state, best=start.w, best_f=f, primal=value, passes=1)
        return state

    def step(self, problem: CoordinateProblem, state: CoordinateState) -> CoordinateState:
        """Epochs over the active rows, one or, if they are short, more; then perhaps a look at all rows."""
        goal = self.tol * max(abs(state.primal), NEGLIGIBLE * problem.scale) / state.sweep.correction
        after, estimate = _epochs(problem, state, goal)
        soon, due = after.visits >= after.sweep.next_look, after.visits >= after.sweep.due
        if due or after.sweep.n_active == 0 or (soon and estimate <= goal):
            after = _measured(problem, after, estimate)
        return replace(after, iterations=state.iterations + 1)

    def measure(self, problem: CoordinateProblem, state: CoordinateState) -> Measure:
        violation = (state.primal - state.dual) / problem.scale if problem.scale > 0 else 0.0
        return Measure(state.primal, state.dual, problem.scale, violation, settled=state.is_measured)

    def counts(self, state: CoordinateState) -> dict[str, int]:
        n_rows = state.beta.size if state.known is None else state.known.n_rows
        return {
            "iterations": state.iterations,
            "passes": state.passes + state.visits // max(1, n_rows),
            "epochs": state.epochs,
            "visits": state.visits,
        }

    def solution(self, problem: CoordinateProblem, state: CoordinateState) -> Solution:
        return problem.solution_of(state.best, state.best_f, state.bound)

    def is_stalled(self, state: CoordinateState) -> bool:
        return state.idle >= STALL_LOOKS or not np.isfinite(state.beta).all()


def n_held_weights(problem: CoordinateProblem) -> int:
    """The length of `Sweep.w`: a weight for each column and for the constant feature, in each of joint classes."""
    given = problem.coordinates
    return (problem.rows.n_cols + 1) * (n_padded(given.n_classes) if isinstance(given, JointCoordinates) else 1)


def _first_seed(seed: int | None) -> int:
    """A generator that begins anywhere but at zero, and at another place for every seed."""
    return (_FIRST_SEED * (2 * int(seed or 0) + 1)) % 2**64


def _known(problem: CoordinateProblem) -> Known | KnownClasses:
    """Targets and ranges of the variables, curvatures, and what centres the rows. One pass, three if b is free."""
    given, rows = problem.coordinates, problem.rows
    if isinstance(given, JointCoordinates):
        return KnownClasses.of(problem, given)
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


def _first_sweep(
    problem: CoordinateProblem, known: Known | KnownClasses, beta: np.ndarray, epochs: int = 0, visits: int = 0
) -> Sweep:
    """All rows are active, and the mean of the points begins."""
    w, excess, along_mean = known.first_weights(problem, beta)
    return Sweep(
        w=w,
        order=known.present,
        n_active=known.present.size,
        excess=excess,
        along_mean=along_mean,
        tail=np.zeros(w.size),
        tail_end=epochs + 4,
        next_look=visits + known.present.size,
        due=visits + known.present.size,
    )


def _restarted(problem: CoordinateProblem, start: CoordinateState) -> CoordinateState:
    """A state at another C: its variables in the same shares of their ranges, and its best point."""
    known = _known(problem)
    beta = known.clipped(start.beta * (problem.C / start.C))
    state = replace(
        start,
        beta=beta,
        bound=np.zeros(beta.size),
        primal=0.5 * float(start.best @ start.best) + problem.C * problem.risk(start.best_f),
        dual=known.first_dual,
        C=problem.C,
        sweep=_first_sweep(problem, known, beta, start.epochs, start.visits),
        idle=0,
        known=known,
        classes=known.copied(None),
    )
    return _measured(problem, state, 0.0)


def _epochs(problem: CoordinateProblem, state: CoordinateState, goal: float) -> tuple[CoordinateState, float]:
    """Enough epochs to make a step, or until the gap seems to be as small as `goal`; and the estimate of the gap."""
    known, sweep = state.known, state.sweep
    assert known is not None
    vectors = Vectors(
        state.beta.copy(),
        sweep.w.copy(),
        sweep.tail.copy(),
        sweep.order.copy(),
        np.zeros(sweep.order.size, dtype=np.bool_),
        np.array([state.seed], dtype=np.uint64),
    )
    threshold = sweep.threshold if sweep.threshold >= 0.0 else math.inf
    sums = np.array([sweep.excess, sweep.along_mean, state.b, threshold, 0.0, math.inf])
    counts = np.array(
        [sweep.n_active, 0, state.epochs, state.visits, sweep.n_tail, sweep.tail_end, sweep.next_look, sweep.due],
        dtype=np.int64,
    )
    shape = Shape(problem.intercept.feature, known.penalty, known.spread, TAIL_GROWTH)
    most = max(1, int(SLICE_VALUES / known.row_values))
    classes = known.copied(state.classes)
    is_in_epoch = sweep.n_active > 0
    while is_in_epoch:
        problem.workers.check()
        known.sweep(problem, shape, vectors, sums, counts, most, goal, classes)
        is_in_epoch = counts[1] > 0
    n_active, _, epochs, visits, n_tail, tail_end, _, _ = counts.tolist()
    excess, along_mean, b, threshold, _, gap = sums.tolist()
    after = replace(
        state,
        beta=vectors.beta,
        b=b,
        seed=int(vectors.seed[0]),
        sweep=replace(
            sweep,
            w=vectors.w,
            order=vectors.order,
            n_active=n_active,
            excess=excess,
            along_mean=along_mean,
            tail=vectors.tail,
            n_tail=n_tail,
            tail_end=tail_end,
            threshold=threshold if threshold < math.inf else -1.0,
        ),
        is_measured=False,
        epochs=epochs,
        visits=visits,
        classes=classes,
    )
    return after, gap


def _measured(problem: CoordinateProblem, state: CoordinateState, estimate: float) -> CoordinateState:
    """The values of the point and of the variables, and those rows active that may move, from one look at all rows."""
    known, sweep = state.known, state.sweep
    assert known is not None
    w = known.weights(problem, sweep.w)
    f = problem.outputs(w)
    best, best_f, primal, passes = state.best, state.best_f, state.primal, state.passes + 1
    value = 0.5 * float(w @ w) + problem.C * problem.risk(f)
    if value < primal:
        best, best_f, primal = w, f, value
    if sweep.n_tail > 1:
        line = known.weights(problem, sweep.tail) / sweep.n_tail - w
        df = problem.outputs(line)
        passes += 1
        k = problem.minimise_along(f, df, float(line @ line), float(w @ line)).k
        point, outputs = w + k * line, f + k * df
        value = 0.5 * float(point @ point) + problem.C * problem.risk(outputs)
        if value < primal:
            best, best_f, primal = point, outputs, value

    bound, dual = state.bound, state.dual
    beta, value, more = known.judged(problem, state.beta, w, sweep.excess)
    passes += more
    if value > dual:
        bound, dual = beta, value

    # A row that was set aside and wants to move shows how far off the others may be: those nearer than that stay.
    rooms = known.rooms(state, f)[known.present]
    threshold = max(sweep.threshold, -float(rooms.min(initial=0.0))) if sweep.threshold >= 0.0 else -1.0
    is_active = rooms <= threshold if threshold >= 0.0 else np.ones(rooms.size, dtype=np.bool_)
    active, aside = known.present[is_active], known.present[~is_active]
    if active.size == 0:
        active, aside = known.present, aside[:0]
    small = LEAST_PROGRESS * max(abs(primal), abs(dual))
    has_moved = primal < state.primal - small or dual > state.dual + small
    return replace(
        state,
        best=best,
        best_f=best_f,
        bound=bound,
        primal=primal,
        dual=dual,
        sweep=replace(
            sweep,
            order=np.concatenate([active, aside]),
            n_active=active.size,
            threshold=threshold,
            correction=_correction(primal - dual, estimate),
            next_look=int(SOON * state.visits) + 1,
            due=int(LATE * state.visits) + 1,
        ),
        is_measured=True,
        passes=passes,
        idle=0 if has_moved else state.idle + 1,
    )


def _correction(gap: float, estimate: float) -> float:
    return min(max(gap / estimate, LEAST_CORRECTION), MOST_CORRECTION) if 0.0 < estimate < math.inf else 1.0


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
