"""Between the whole problem and its working set: who is in it, f for all rows, and rows that are set aside."""

import numpy as np

from softmargin.problems.box_qp import BoxQP
from softmargin.solvers.active_set.inner import EPS, PATIENCE, Inner
from softmargin.solvers.active_set.segments import sides_of

_MAJORS_ASIDE = 5  # major iterations after which rows are set aside where the cache is too small
_NEAR = 0.5  # rows that want to stay at their bound are candidates if by less than this share of the largest price


class Working:
    """The working set of a solve; it belongs to the dual variables `matches`, and is made anew if it is lost.

    f is kept up to date for the rows that are priced. Rows that wanted to stay at their bound `patience` times in a row
    are set aside, if that is not 0; `complete` brings their f up to date and prices them again. Where the cache cannot
    hold the rows of the free variables, rows are set aside in any case, because every one of them costs kernel values
    in each major iteration (Section 4.2).
    """

    def __init__(
        self, problem: BoxQP, beta: np.ndarray, f: np.ndarray, candidates: int, patience: int, goal: float
    ) -> None:
        self.candidates, self.patience, self.goal = candidates, patience, goal
        self.keeps_places = False  # whether members stay in the working set, and others come behind them
        self.matches: np.ndarray | None = None
        self.idle, self.value, self.least, self.largest = 0, -np.inf, np.inf, np.inf
        diagonal = np.maximum(problem.K.diag(), 0.0)
        self.lengths = np.sqrt(diagonal)
        self.targets, self.unit = float(np.abs(problem.p).max(initial=0.0)), problem.unit
        free = np.flatnonzero(problem.is_free(beta))
        self.inner = Inner(
            free.size + min(candidates, beta.size - free.size),
            sigma=float(diagonal.mean()),
            precision=16.0 * float(problem.K.row_errors().max(initial=0.0)),
            epsilon=problem.epsilon,
        )
        self.where = np.full(beta.size, -1)
        self.streak = np.zeros(beta.size, dtype=np.int64)
        self.begin(problem, beta, f)
        self._enter(problem, free)
        self.is_new = True

    def __reduce__(self) -> tuple:
        return _forgotten, ()

    def begin(self, problem: BoxQP, beta: np.ndarray, f: np.ndarray) -> None:
        """Work on copies of these from now on, with f right for all rows."""
        self.beta, self.f = beta.copy(), f.copy()
        self.base = (beta, f)
        self.priced: np.ndarray | None = None  # the rows that are not set aside; None: all
        self.streak[:] = 0
        self._take_wishes(problem)

    def take_targets(self, problem: BoxQP) -> None:
        """The targets are others now: their size, and the tolerance, which is a share of half their range."""
        self.targets = float(np.abs(problem.p).max(initial=0.0))
        self.goal *= problem.unit / self.unit
        self.unit = problem.unit

    @property
    def is_complete(self) -> bool:
        return self.priced is None

    def noise(self) -> float:
        """About how large the rounding error of a wish is."""
        spread = float(np.sqrt(np.square(self.beta * self.lengths).sum()))
        return EPS * (self.targets + float(self.lengths.max(initial=0.0)) * spread)

    def factorise(self, problem: BoxQP, flat: float) -> None:
        """The factor of the free variables, and the minimum over these."""
        self.inner.refactorise()
        self.inner.flatten(flat)
        self.advance(problem)
        self.is_new = False

    def advance(self, problem: BoxQP) -> None:
        """Take over the members' beta, and bring f of the priced rows up to date."""
        inner = self.inner
        moved = (inner.beta != self.beta[inner.index]).nonzero()[0]
        rows = inner.index[moved]
        change = inner.beta[moved] - self.beta[rows]
        self.beta[rows] = inner.beta[moved]
        problem.K.add_rows(rows, change, self.f, self.priced)
        self._take_wishes(problem)

    def _take_wishes(self, problem: BoxQP) -> None:
        inner = self.inner
        inner.g[:] = problem.p[inner.index] - self.f[inner.index]
        if inner.has_kinks:
            inner.g[:] += inner.shift
        inner.total = problem.total - (float(self.beta.sum()) - float(inner.beta.sum()))

    def complete(self, problem: BoxQP) -> None:
        """f of the rows that were set aside, from where it was last right."""
        if self.priced is None:
            return
        aside = np.ones(self.beta.size, dtype=bool)
        aside[self.priced] = False
        columns = aside.nonzero()[0]
        beta, f = self.base
        change = self.beta - beta
        rows = change.nonzero()[0]
        self.f[columns] = f[columns]
        problem.K.add_rows(rows, change[rows], self.f, columns)
        self.base = (self.beta.copy(), self.f.copy())
        self.streak[:] = 0
        self.priced = None

    def price(self, problem: BoxQP, goal: float) -> np.ndarray:
        """The rows that are to be in the working set beside the free ones; `largest` is the largest price."""
        rows = self.priced
        sides, prices = self._prices(problem, slice(None) if rows is None else rows)
        inner = self.inner
        self.largest = float(prices.max(initial=0.0))
        if not self.patience and inner.factor.order > problem.K.capacity:
            self.patience = _MAJORS_ASIDE
        if self.patience:
            self._set_aside(prices, goal)
        if inner.idle >= PATIENCE and self.largest > goal:
            best = (prices > goal).nonzero()[0][:1]
        elif inner.factor.order:
            best = _largest(prices, self.candidates)
        else:  # a pair at least, so that something can move
            half = max(1, self.candidates // 2)
            rising = _largest(np.where(sides > 0.0, prices, -np.inf), half)
            best = np.union1d(rising, _largest(np.where(sides < 0.0, prices, -np.inf), half))
        best = best[prices[best] > -_NEAR * self.largest]
        return best if rows is None else rows[best]

    def _prices(self, problem: BoxQP, pick: slice | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of the picked rows: at which bound they are, and by how much they want away from it.

        A row at zero that may go either way is at the lower bound of its upper segment or at the upper bound of its
        lower one, whichever it wants away from more.
        """
        inner = self.inner
        beta = self.beta[pick]
        sides = sides_of(beta, problem.lo[pick], problem.hi[pick])
        places = self.where[pick]
        members = (places >= 0).nonzero()[0]
        wishes = problem.p[pick] - self.f[pick]
        if problem.kinks is None:
            sides[members] = inner.side[places[members]]
            is_up, is_down = sides > 0.0, sides < 0.0
        else:
            at_zero = problem.kinks[pick] & (beta == 0.0)
            member_sides = inner.side[places[members]]
            sides[members] = np.where(at_zero[members], 1.0, member_sides)
            at_zero[members[member_sides == 0.0]] = False
            sides[members[member_sides == 0.0]] = 0.0
            wishes -= problem.epsilon * np.sign(beta)
            is_up, is_down = (sides > 0.0) | at_zero, (sides < 0.0) | at_zero
        if inner.factor.order:
            shared = inner.shared_wish()
        else:
            loss = 0.0 if problem.kinks is None else problem.epsilon * at_zero
            shared = inner.shared_wish(
                np.where(is_up, wishes - loss, -np.inf), np.where(is_down, wishes + loss, np.inf)
            )
        if problem.kinks is not None:
            sides = np.where(at_zero, np.where(wishes >= shared, 1.0, -1.0), sides)
            wishes = np.where(at_zero, wishes - sides * problem.epsilon, wishes)
        return sides, sides * (wishes - shared)

    def _set_aside(self, prices: np.ndarray, goal: float) -> None:
        rows = np.arange(self.beta.size) if self.priced is None else self.priced
        stays = prices <= goal
        self.streak[rows[~stays]] = 0
        self.streak[rows[stays]] += 1
        weary = self.streak[rows] >= self.patience
        weary[self.where[rows] >= 0] = False
        if weary.any():
            self.priced = rows[~weary]

    def renew(self, problem: BoxQP, wanted: np.ndarray) -> None:
        """Take in the wanted rows, in the places of members at a bound that nobody wants, as far as these go."""
        inner = self.inner
        fresh = wanted[self.where[wanted] < 0]
        if fresh.size == 0:
            return
        idle = (inner.side != 0.0) & (not self.keeps_places)
        kept = self.where[wanted]
        idle[kept[kept >= 0]] = False
        self._enter(problem, fresh, idle.nonzero()[0][: fresh.size])

    def bring(self, problem: BoxQP, row: int) -> int:
        """The place of this row in the working set, which it enters if it is not there."""
        if self.where[row] < 0:
            self._enter(problem, np.array([row]))
        return int(self.where[row])

    def _enter(self, problem: BoxQP, rows: np.ndarray, places: np.ndarray | None = None) -> None:
        """Rows in the given places, and behind all others where these are not enough."""
        inner, size = self.inner, self.inner.size
        places = np.empty(0, dtype=np.int64) if places is None else places
        more = rows.size - places.size
        if size + more > inner.room:
            inner.grow(size + more + (size + more) // 4)
        inner.size = size + more
        places = np.append(places, np.arange(size, size + more))
        old = inner.index[places]
        self.where[old[old >= 0]] = -1
        self.where[rows] = places
        inner.index[places] = rows
        values = problem.K.entries(rows, inner.index)
        inner.matrix[places] = values
        inner.matrix[:, places] = values.T
        inner.barred[places], inner.retired[places] = 0.0, 0.0
        inner.place_on_segments(places, self.beta[rows], problem.lo[rows], problem.hi[rows])
        self._take_wishes(problem)


def _forgotten() -> None:
    return None


def _largest(values: np.ndarray, k: int) -> np.ndarray:
    """The indices of the k largest values."""
    if k == 1:
        return np.array([values.argmax()])
    return np.argpartition(values, values.size - k)[-k:] if k < values.size else np.arange(values.size)
