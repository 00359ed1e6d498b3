"""Dual coordinate descent for linear machines: one variable at a time, with w kept up to date.

    min over beta of 1/2 |X'beta|^2 + 1/2 sum_i ridge_i beta_i^2 - sum_i t_i beta_i + epsilon sum_i |beta_i|,
    lo <= beta <= hi,   and sum(beta) = total if the intercept is free

    repeat, for the active rows that are due, in a new random order each time (a turn):
        u = w.x_i (+ b)
        beta_i = the minimiser over beta_i alone, which costs one product w.x_i         Algorithm 1, eq. (9)
        w += (change of beta_i) x_i
        row i is set aside if beta_i stays at its end by more than any row was off      Section 3.2
        row i is due again in the next turn if it gained about as much as others, or else after twice its last wait
    now and then: the objective of w, and which rows are active, from the outputs of all rows

Three things are added to the method of the paper:

- The primal value of w lags behind the dual value of beta, by a factor of 10 to 40 on text. The mean of w over the last
  epochs is a much better point, the best point on the line through both is better still, and a multiple of it the best:
  rows at the margin miss it by a little, at C times the price, and a longer w costs less.
- Rows that gain little are visited more rarely, which at large C saves most of the visits. An epoch is as many visits
  as there are active rows.
- A free intercept is the multiplier of sum(beta) = total. It costs next to nothing as an augmented Lagrangian: the
  score of a row is w.x_i + b + s2 excess, with excess = sum(beta) - total carried along, and b += s2 excess after every
  turn. Rows far from the origin would make that slow, so that the rows are centred, without being touched: w is
  replaced by w - excess mean(x), which is the same where the excess is zero, and everything that this changes follows
  from m_i = x_i.mean(x) and w.mean(x).

References: C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi, S. Sundararajan, A Dual Coordinate Descent Method for
Large-scale Linear SVM, ICML 2008, Algorithms 1 to 3. C.-H. Ho, C.-J. Lin, Large-scale Linear Support Vector Regression,
JMLR 13, 2012, for the kink of regression at zero. D. Bertsekas, Constrained Optimization and Lagrange Multiplier
Methods, 1982, for the multiplier. T. Glasmachers, U. Dogan, Accelerated Coordinate Descent with Adaptive Coordinate
Frequencies, ACML 2013, for visiting variables as often as they gain; their frequencies are changed by factors that
depend on the gain, and here a wait is doubled or ended.

Symbols: alpha -> beta (signed); Q_ii -> curvature; D_ii -> ridge; M, m -> threshold.

Departs from the paper: signed variables; one threshold for rows at either end; which rows are active is decided anew
from the outputs of all rows whenever these are there, and not only at the end. The stop rule is the duality gap. It is
estimated from the losses that an epoch meets anyway, and computed when the estimate says that it may be small enough.

`variables` has what follows from the problem. The joint problem of several classes
has as many variables a row as there are classes; `classes` has what differs.
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
from softmargin.solvers.coordinate.variables import Known, Shape, Vectors, known_of
from softmargin.solvers.near_zero import share_allowed

# Compiled code is interrupted between slices of about this many values. A step is as long, or an epoch if that is
# longer.
SLICE_VALUES = 1 << 20
# In the mean of w over the epochs that after epoch t has a weight that grows like t to this power: half of all weight
# lies on the last twelfth of the epochs.
TAIL_POWER = 8.0
# The value of the point is computed whenever the visits have grown by the second factor, or by the first if the gap
# seems to be small enough.
SOON, LATE = 1.1, 2.0
# The best point between w and the mean of the last ones is searched for if the gap is so many times what it should be:
# that makes it smaller by a third to a half, and takes time where the data are small.
WORTH_A_SEARCH = 10.0
# However small the data are, a look at all rows takes as long as visiting so many values.
LOOK_VALUES = 1 << 15
# What the estimated gap may be wrong by before it is corrected: the limits of the correction.
LEAST_CORRECTION, MOST_CORRECTION = 0.02, 50.0
# The solve has stalled if neither value changed by more than LEAST_PROGRESS of its size in so many looks in a row.
STALL_LOOKS, LEAST_PROGRESS = 20, 1e-15
# Nor has it stalled as long as an epoch moves b by more than this: nothing else may change before b gets somewhere.
LEAST_TURN = 1e-9
# No more passes are made if the gap falls by less than this share while their number doubles: it would not come down in
# any reasonable time. This is asked once there were so many passes, and as many values were visited.
LEAST_FALL, PATIENT_PASSES, PATIENT_VALUES = 0.1, 1000, 1 << 25
_STATE_SLACK = 1e-3  # of w in a state, beside what it is made of: rounding alone stays far below
_FIRST_SEED = 0x9E3779B97F4A7C15  # any odd number will do; the generator must not begin at zero


@dataclass(frozen=True)
class Sweep:
    """Where the visits have come to.

    w is X'beta, with the weight of the constant feature last, or 0. The first `n_active` rows of `order` are visited.
    `excess` is sum(beta) less what it should be, `along_mean` is w.mean(x). Rows are set aside if they stay where they
    are by more than `threshold`; none are as long as that is negative. `tail` is the mean of w after each of `n_tail`
    epochs, the later the heavier. `correction` is what the last estimate of the gap was wrong by.

    Rows are visited in turns, of which `turn` is the next one: row i is due in turn due_turn[i], and waited for wait[i]
    turns. `fair` is what a visit has to gain so that the row is due again at once. Joint classes have no such turns.
    """

    w: np.ndarray
    order: np.ndarray
    n_active: int
    excess: float
    along_mean: float
    tail: np.ndarray
    next_look: int
    due: int
    wait: np.ndarray
    due_turn: np.ndarray
    turn: int = 0
    fair: float = 0.0
    n_tail: int = 0
    threshold: float = -1.0
    correction: float = 1.0


@dataclass(frozen=True)
class CoordinateState:
    """A solve between two steps, at the variables beta and the multiplier b of a free intercept.

    `best` with its outputs `best_f` is the point with the lowest primal value so far, `bound` the dual vector with the
    highest dual value. Both are as of the last look at all rows; `is_measured` says that this was the last step.
    The gap was `marked_gap` after `marked_visits`, both 0 at first, and `is_slow` says that it hardly fell since then.
    `known` follows from the problem, and `classes` from the next look, and so neither is ever saved.
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
    marked_visits: int = 0
    marked_gap: float = 0.0
    is_slow: bool = False
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
        if not sweep.wait.size == sweep.due_turn.size == given.target.size or (sweep.wait < 1).any() or sweep.turn < 0:
            return False
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
                return _restarted(problem, start, self.tol)
            return replace(start, known=known, idle=0, marked_gap=0.0, is_slow=False)
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
            after = _measured(problem, after, estimate, self.tol)
        return replace(after, iterations=state.iterations + 1)

    def measure(self, problem: CoordinateProblem, state: CoordinateState) -> Measure:
        violation = (state.primal - state.dual) / problem.scale if problem.scale > 0 else 0.0
        return Measure(
            state.primal, state.dual, problem.scale, violation, spent=state.is_slow, settled=state.is_measured
        )

    def counts(self, state: CoordinateState) -> dict[str, int]:
        n_rows = state.beta.size if state.known is None else state.known.n_rows
        return {
            "iterations": state.iterations,
            "passes": state.passes + state.visits // max(1, n_rows),
            "epochs": state.epochs,
            "visits": state.visits,
        }

    def solution(self, problem: CoordinateProblem, state: CoordinateState) -> Solution:
        """The best point, or as much of the last one as `tol` allows if that is w = 0."""
        best, f = state.best, state.best_f
        if not best.any() and state.known is not None and state.sweep.w.any():
            w = state.known.weights(problem, state.sweep.w)
            outputs = problem.outputs(w)
            share = share_allowed(problem, state.primal, state.dual, self.tol, self.stopping, float(w @ w), outputs)
            best, f = share * w, share * outputs
        return problem.solution_of(best, f, state.bound)

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
    given = problem.coordinates
    return KnownClasses.of(problem, given) if isinstance(given, JointCoordinates) else known_of(problem, given)


def _first_sweep(problem: CoordinateProblem, known: Known | KnownClasses, beta: np.ndarray) -> Sweep:
    """All rows are active, and the mean of the points begins."""
    w, excess, along_mean = known.first_weights(problem, beta)
    # A look takes a product with X for each class: as long as an epoch, or longer, so that two epochs come first.
    n_epochs = 2 if isinstance(known, KnownClasses) else 1
    return Sweep(
        w=w,
        order=known.present,
        n_active=known.present.size,
        excess=excess,
        along_mean=along_mean,
        tail=np.zeros(w.size),
        next_look=known.present.size,
        due=max(n_epochs * known.present.size, int(LOOK_VALUES / known.row_values)),
        wait=np.ones(known.n_waiting, dtype=np.int64),
        due_turn=np.zeros(known.n_waiting, dtype=np.int64),
    )


def _restarted(problem: CoordinateProblem, start: CoordinateState, tol: float) -> CoordinateState:
    """A state at another C: its variables in the same shares of their ranges, and its best point.

    Passes are counted anew, because looks become rarer as they grow, and "auto" gives up after a number of them.
    """
    known = _known(problem)
    beta = known.clipped(start.beta * (problem.C / start.C))
    state = replace(
        start,
        beta=beta,
        bound=np.zeros(beta.size),
        primal=0.5 * float(start.best @ start.best) + problem.C * problem.risk(start.best_f),
        dual=known.first_dual,
        C=problem.C,
        sweep=_first_sweep(problem, known, beta),
        epochs=0,
        visits=0,
        passes=0,
        marked_visits=0,
        marked_gap=0.0,
        is_slow=False,
        idle=0,
        known=known,
        classes=known.copied(None),
    )
    return _measured(problem, state, 0.0, tol)


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
        sweep.wait.copy(),
        sweep.due_turn.copy(),
    )
    threshold = sweep.threshold if sweep.threshold >= 0.0 else math.inf
    sums = np.array([sweep.excess, sweep.along_mean, state.b, threshold, 0.0, math.inf, sweep.fair, 0.0])
    counts = np.array(
        [sweep.n_active, 0, state.epochs, state.visits, sweep.n_tail, sweep.next_look, sweep.due, 0, sweep.turn, 0],
        dtype=np.int64,
    )
    shape = Shape(problem.intercept.feature, known.penalty, known.spread, TAIL_POWER)
    most = max(1, int(SLICE_VALUES / known.row_values))
    classes = known.copied(state.classes)
    is_in_epoch = sweep.n_active > 0
    while is_in_epoch:
        problem.workers.check()
        known.sweep(problem, shape, vectors, sums, counts, most, goal, classes)
        is_in_epoch = counts[1] > 0
    n_active, _, epochs, visits, n_tail, _, _, _, turn, _ = counts.tolist()
    excess, along_mean, b, threshold, _, gap, fair, _ = sums.tolist()
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
            wait=vectors.wait,
            due_turn=vectors.due,
            turn=turn,
            fair=fair,
            threshold=threshold if threshold < math.inf else -1.0,
        ),
        is_measured=False,
        epochs=epochs,
        visits=visits,
        classes=classes,
    )
    return after, gap


def _measured(problem: CoordinateProblem, state: CoordinateState, estimate: float, tol: float) -> CoordinateState:
    """The values of the point and of the variables, and those rows active that may move, from one look at all rows."""
    known, sweep = state.known, state.sweep
    assert known is not None
    w = known.weights(problem, sweep.w)
    f = problem.outputs(w)
    bound, dual = state.bound, state.dual
    beta, value, passes = known.judged(problem, state.beta, w, sweep.excess)
    if value > dual:
        bound, dual = beta, value

    points = [_Point(w, f)]
    best, primal = points[0].or_better(problem, _Point(state.best, state.best_f), state.primal)
    goal = tol * max(abs(primal), NEGLIGIBLE * problem.scale)
    if sweep.n_tail > 1 and primal - dual > goal:
        mean = known.weights(problem, sweep.tail)
        points.append(_Point(mean, problem.outputs(mean)))
        best, primal = points[1].or_better(problem, best, primal)
    if goal < primal - dual <= WORTH_A_SEARCH * goal:
        point = points[0].towards(problem, points[-1])
        # A longer w costs less than what rows at the margin miss it by, times C.
        point = _Point(np.zeros(w.size), np.zeros(f.size)).towards(problem, point)
        best, primal = point.or_better(problem, best, primal)

    # A row that was set aside and wants to move shows how far off the others may be: those nearer than that stay.
    rooms = known.rooms(state, f)[known.present]
    threshold = max(sweep.threshold, -float(rooms.min(initial=0.0))) if sweep.threshold >= 0.0 else -1.0
    is_active = rooms <= threshold if threshold >= 0.0 else np.ones(rooms.size, dtype=np.bool_)
    active, aside = known.present[is_active], known.present[~is_active]
    if active.size == 0:
        active, aside = known.present, aside[:0]
    least = LOOK_VALUES / known.row_values
    small = LEAST_PROGRESS * max(abs(primal), abs(dual))
    is_turning = known.penalty * abs(sweep.excess) > LEAST_TURN * (1.0 + abs(state.b))
    has_moved = primal < state.primal - small or dual > state.dual + small or is_turning
    patient = max(PATIENT_PASSES * known.n_rows, PATIENT_VALUES / known.row_values)
    is_marked = state.visits >= max(2 * state.marked_visits, patient)
    return replace(
        state,
        best=best.w,
        best_f=best.f,
        bound=bound,
        primal=primal,
        dual=dual,
        sweep=replace(
            sweep,
            order=np.concatenate([active, aside]),
            n_active=active.size,
            threshold=threshold,
            correction=_correction(primal - dual, estimate),
            next_look=state.visits + int(max((SOON - 1.0) * state.visits, 0.03 * least)) + 1,
            due=state.visits + int(max((LATE - 1.0) * state.visits, least)) + 1,
        ),
        is_measured=True,
        passes=state.passes + len(points) + passes,
        idle=0 if has_moved else state.idle + 1,
        marked_visits=state.visits if is_marked else state.marked_visits,
        marked_gap=primal - dual if is_marked else state.marked_gap,
        is_slow=is_marked and primal - dual > (1.0 - LEAST_FALL) * state.marked_gap > 0.0,
    )


class _Point(NamedTuple):
    """Weights and their outputs."""

    w: np.ndarray
    f: np.ndarray

    def or_better(self, problem: CoordinateProblem, other: "_Point", primal: float) -> tuple["_Point", float]:
        """This point and its primal value, or the other one if that is as good."""
        value = 0.5 * float(self.w @ self.w) + problem.C * problem.risk(self.f)
        return (self, value) if value < primal else (other, primal)

    def towards(self, problem: CoordinateProblem, other: "_Point") -> "_Point":
        """The best point on the half line from here through the other one, which costs no pass over the data."""
        line, df = other.w - self.w, other.f - self.f
        k = problem.minimise_along(self.f, df, float(line @ line), float(self.w @ line)).k
        return _Point(self.w + k * line, self.f + k * df)


def _correction(gap: float, estimate: float) -> float:
    return min(max(gap / estimate, LEAST_CORRECTION), MOST_CORRECTION) if 0.0 < estimate < math.inf else 1.0
