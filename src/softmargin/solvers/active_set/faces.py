"""The active set where the factor would be too large: conjugate gradients on all free variables at once (Section 4.1).

    min 1/2 beta'K beta - p'beta + epsilon sum |beta_i|,   lo <= beta <= hi,   sum(beta) = total

    repeat:
        if the wishes of the free variables F are equal, but for a share of the largest price:
            the variables that want away from their bounds most join F                       Step 2, many at a time
        d = the way to the minimum over F:  K_FF d + level 1 = wishes,  sum(d) = what is missing    Step 1, by CG
        go along d, or along its projection on the bounds if that gains more than the way to the first bound
        update f = K beta for all rows by the rows whose beta has changed

K_FF lies in packed form, 4 n^2 bytes (`linalg/packed.py`), and its sparse approximate inverse is the preconditioner;
projecting both residual and direction on sum(d) = 0 keeps the condition on the sum. A factor with the matrix of its
working set takes 14 n^2 bytes, and n^2 operations for one change of the set; here many change for some 100 products.

Copies of a row would make K_FF singular. What copies have together is shared out so that at most one of them is free,
which changes no output; only that one is in the matrix.

Convergence: each step gains, or fewer variables enter the next one; where one enters, d moves it off its bound, as in
`inner.py`, and so the value rises until nobody wants away from a bound.

References: K. Scheinberg, An Efficient Implementation of an Active Set Method for SVMs, JMLR 7, 2006, whose Section 4.1
says that large problems may need an iterative solver; J. J. More and G. Toraldo, On the solution of large quadratic
programming problems with bound constraints, SIAM Journal on Optimization 1, 1991 (faces explored by CG, projected
searches); N. I. M. Gould, M. E. Hribar and J. Nocedal, On the solution of equality constrained quadratic programming
problems arising in optimization, SIAM Journal on Scientific Computing 23, 2001 (projected preconditioned CG).
"""

from collections.abc import Callable

import numpy as np

from softmargin.linalg.packed import MAX_ORDER, Packed, packed_bytes
from softmargin.problems.box_qp import BoxQP
from softmargin.solvers.active_set.inner import EPS

# Variables enter once the wishes of the free ones differ by less than the share _LEVEL of the largest price, and those
# whose price is at least the share _NEAR of it.
_LEVEL, _NEAR = 0.1, 0.1
# At most this share of the free variables enters at a time, where that is more than the candidates.
_GROWTH = 0.25
# CG ends where the wishes of the face differ by the share _REDUCE of what they did, or by _FLAT times the tolerance, or
# after _MAX_PRODUCTS.
_REDUCE, _FLAT, _MAX_PRODUCTS = 0.01, 0.05, 1000
# A curvature below this share of the diagonal is rounding: the direction leads to a bound.
_NO_CURVATURE = 1e-13
# A squared distance below this share of the squared lengths makes two rows copies of each other.
_COPY = 1e-13
# Lengths that a projected search tries, each half of the last; and bisections of a projection.
_LENGTHS, _BISECTIONS = 6, 100
# A sum that is off by less, as a share of the sizes of its terms, is rounding.
_SUM_ROUNDING = 1e-15
# Where the tolerance is below this share of the rounding error of a wish, nothing is left to do.
_BELOW_ROUNDING = 0.2
# A variable that is nearer to its bound than this share of its range is at it.
_AT_BOUND = 16.0 * EPS
# Rows of the matrix that are computed at a time.
_ROWS = 256


class Face:
    """Where a step begins: who is free, what all variables wish, and between which bounds each moves.

    A variable of regression is on one side of zero, and at zero on the side that it wants to most. `own` is p less what
    the kink costs there, so that a variable wishes own - f.
    """

    def __init__(self, problem: BoxQP, beta: np.ndarray, f: np.ndarray) -> None:
        self.beta, lo, hi = beta, problem.lo, problem.hi
        self.is_free = problem.is_free(beta)
        self.free = self.is_free.nonzero()[0]
        rise, fall = problem.wishes(beta, f)
        self.spread = float(np.ptp(rise[self.free])) if self.free.size else 0.0
        shared = float(rise[self.free].mean()) if self.free.size else sum(problem.extremes(beta, f)) / 2.0
        self.up = np.where(~self.is_free & (beta < hi), rise - shared, -np.inf)
        self.down = np.where(~self.is_free & (beta > lo), shared - fall, -np.inf)
        self.prices = np.maximum(self.up, self.down)
        self.largest = float(self.prices.max(initial=0.0))
        self.own, self.lo, self.hi = problem.p, lo, hi
        if problem.kinks is not None:
            is_above = (beta > 0.0) | ((beta == 0.0) & (self.up >= self.down))
            self.own = problem.p - np.where(is_above, problem.epsilon, -problem.epsilon)
            self.lo = np.where(problem.kinks & is_above, 0.0, lo)
            self.hi = np.where(problem.kinks & ~is_above, 0.0, hi)

    def entering(self, least: float, most: int) -> np.ndarray:
        """The variables with the largest prices, of at least `least`: at most so many, but two where nobody is free."""
        if self.free.size:
            return _largest(self.prices, least, most)
        half = max(1, most // 2)
        return np.union1d(_largest(self.up, -np.inf, half), _largest(self.down, -np.inf, half))

    def share_out(self, i: int, j: int) -> None:
        """Give of two copies of a row as much as possible to the one that wishes more; then at most one is free."""
        if self.own[i] == self.own[j] and not (self.is_inside(i) and self.is_inside(j)):
            return
        gains, gives = (i, j) if self.own[i] > self.own[j] else (j, i)
        room, there = self.hi[gains] - self.beta[gains], self.beta[gives] - self.lo[gives]
        if there <= room:
            self.beta[gains] += there
            self.beta[gives] = self.lo[gives]
        else:
            self.beta[gives] -= room
            self.beta[gains] = self.hi[gains]

    def is_inside(self, i: int) -> bool:
        return bool(self.lo[i] < self.beta[i] < self.hi[i])


class Faces:
    """The matrix of the free variables, kept from step to step: it depends on the rows only, not on where they stand.

    At most `entering` variables enter a step. `goal` is the tolerance, `products` counts those with the matrix, and
    `is_full` says that there is no room for all free variables.
    """

    def __init__(self, problem: BoxQP, max_bytes: float, candidates: int, goal: float) -> None:
        self.max_bytes, self.candidates, self.entering, self.goal = max_bytes, candidates, candidates, goal
        self.packed = Packed()
        self.diagonal = np.maximum(problem.K.diag(), 0.0)
        self.is_full = False
        self.products = self.pivots = self.idle = 0
        self.least = np.inf

    def __reduce__(self) -> tuple:
        return _forgotten, ()

    def step(
        self, problem: BoxQP, beta: np.ndarray, f: np.ndarray, check: Callable[[], None]
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """beta and f after one face, as new arrays; None if nothing is left to do, or there is no room."""
        goal = max(self.goal, self._noise(problem, beta))
        face = Face(problem, beta.copy(), f)
        entering = np.empty(0, dtype=np.int64)
        if face.largest > goal and face.spread <= max(_FLAT * goal, _LEVEL * face.largest):
            entering = face.entering(max(goal, _NEAR * face.largest), self.entering)
        is_done = face.largest <= goal and face.spread <= goal
        if is_done and np.isin(face.free, self.packed.members).all():  # members are no copies of each other
            return None
        self._fill(problem, face, entering, check)
        if self.is_full:
            return None
        rows = self.packed.members.copy()
        before = face.beta[rows]
        after = _snapped(self._moved(problem, face, f, goal, check), face.lo[rows], face.hi[rows])
        face.beta[rows] = after
        self.pivots += max(1, int(np.count_nonzero(problem.is_free(face.beta) != face.is_free)))
        if entering.size:
            has_moved = bool((after != before).any())
            more = min(2 * self.entering, max(self.candidates, int(_GROWTH * face.free.size)))
            self.entering = more if has_moved else max(1, entering.size // 2)
        violation = max(face.largest, face.spread)
        self.idle = 0 if violation < self.least else self.idle + 1
        self.least = min(self.least, violation)
        changed = (face.beta != beta).nonzero()[0]
        f = f.copy()
        problem.K.add_rows(changed, face.beta[changed] - beta[changed], f, None)
        return face.beta, f

    def has_reached_rounding(self, problem: BoxQP, beta: np.ndarray) -> bool:
        """Whether the tolerance is a small share of the rounding error of a wish, so that a smaller one asks for
        nothing more.
        """
        return self.goal < _BELOW_ROUNDING * self._noise(problem, beta)

    def _noise(self, problem: BoxQP, beta: np.ndarray) -> float:
        """About how large the rounding error of a wish is."""
        lengths = np.sqrt(self.diagonal)
        spread = float(np.sqrt(np.square(beta * lengths).sum()))
        return EPS * (float(np.abs(problem.p).max(initial=0.0)) + float(lengths.max(initial=0.0)) * spread)

    def _fill(self, problem: BoxQP, face: Face, entering: np.ndarray, check: Callable[[], None]) -> None:
        """The matrix of free and entering variables, as far as there is room; copies share out what they have."""
        packed, diagonal = self.packed, self.diagonal
        is_wanted = face.is_free.copy()
        is_wanted[entering] = True
        packed.keep(is_wanted[packed.members])
        is_wanted[packed.members] = False
        fresh = np.concatenate([(is_wanted & face.is_free).nonzero()[0], (is_wanted & ~face.is_free).nonzero()[0]])
        for at in range(0, fresh.size, _ROWS):
            check()
            rows = fresh[at : at + _ROWS]
            values = problem.K.entries(rows, np.concatenate([packed.members, rows]))
            columns = np.arange(packed.order)
            for t, i in enumerate(rows.tolist()):
                column = values[t, columns]
                lengths = diagonal[i] + diagonal[packed.members]
                copies = (lengths - 2.0 * column <= _COPY * lengths).nonzero()[0]
                if copies.size:
                    self._meet(face, i, int(copies[0]))
                    continue
                if not self._has_room():
                    self.is_full = bool(face.is_free[i]) or packed.order == np.count_nonzero(face.is_free)
                    return
                own = values.shape[1] - rows.size + t
                packed.append(i, np.append(column, values[t, own]))
                columns = np.append(columns, own)

    def _has_room(self) -> bool:
        order = self.packed.order + 1
        return order <= MAX_ORDER and packed_bytes(order) <= self.max_bytes

    def _meet(self, face: Face, i: int, place: int) -> None:
        """Row i is a copy of a member, whose place it takes if it is the one that may move."""
        j = int(self.packed.members[place])
        face.share_out(i, j)
        if not face.is_inside(j) and (face.is_inside(i) or face.prices[i] > face.prices[j]):
            self.packed.members[place] = i

    def _moved(self, problem: BoxQP, face: Face, f: np.ndarray, goal: float, check: Callable[[], None]) -> np.ndarray:
        """The members' beta at the minimum over the face, or on the way there."""
        rows = self.packed.members
        start, lo, hi = face.beta[rows], face.lo[rows], face.hi[rows]
        wishes = face.own[rows] - f[rows]
        missing = problem.total - float(face.beta.sum())
        if abs(missing) <= _SUM_ROUNDING * float(np.abs(face.beta).sum()):
            missing = 0.0
        d, product, null = self._direction(wishes, missing, _FLAT * goal, check)
        wishes -= wishes.mean()
        x, gain = self._searched(start, d, product, wishes, lo, hi, missing, check)
        if null is not None:
            first, y = _to_first_bound(start, null, lo, hi)
            if first * float(wishes @ null) > gain:
                return y
        return x

    def _searched(
        self,
        start: np.ndarray,
        d: np.ndarray,
        product: np.ndarray,
        wishes: np.ndarray,
        lo: np.ndarray,
        hi: np.ndarray,
        missing: float,
        check: Callable[[], None],
    ) -> tuple[np.ndarray, float]:
        """Where d leads, or its projection on the bounds if that gains more than the way to the first one; the gain."""
        first, x = _to_first_bound(start, d, lo, hi)
        slope, curvature = float(wishes @ d), float(d @ product)
        if first >= 1.0:
            return np.clip(start + d, lo, hi), slope - 0.5 * curvature
        least = first * slope - 0.5 * first * first * curvature
        total = float(start.sum()) + missing  # not of d, whose rounding may be larger than the box
        for k in range(_LENGTHS):
            check()
            y = _projected(start + 0.5**k * d, lo, hi, total)
            change = y - start
            self.products += 1
            gain = float(wishes @ change) - 0.5 * float(change @ self.packed.product(change))
            if gain > max(least, 0.0):
                return y, gain
        return x, least

    def _direction(
        self, wishes: np.ndarray, missing: float, flat: float, check: Callable[[], None]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """d with K d + level 1 = wishes and sum(d) = missing, and the product K d; if CG meets a direction without
        curvature, which leads to a bound, d is where it was before, and the direction the third result.

        Where rows depend on others the preconditioner may be nothing but rounding: then CG goes without it.
        """
        packed = self.packed
        n = packed.order
        ones = packed.precondition(np.ones(n))
        weight = float(ones.sum())
        is_conditioned = 0.0 < weight < np.inf
        if not is_conditioned:
            ones, weight = np.ones(n), float(n)
        d, product, residual = np.zeros(n), np.zeros(n), wishes.copy()
        if missing:
            d = missing / weight * ones
            product = packed.product(d)
            residual -= product
        flat = max(flat, _REDUCE * float(np.ptp(residual)))
        direction, before = np.zeros(n), np.inf
        for made in range(_MAX_PRODUCTS):
            if float(np.ptp(residual)) <= flat:
                break
            check()
            residual -= residual.mean()
            step = residual
            if is_conditioned:
                step = packed.precondition(residual)
                step -= float(step.sum()) / weight * ones
            slope = float(residual @ step)
            if not slope > 0.0:
                if made:
                    break
                step, slope, is_conditioned = residual, float(residual @ residual), False
            direction = step + slope / before * direction
            before = slope
            image = packed.product(direction)
            self.products += 1
            curvature = float(direction @ image)
            if curvature <= _NO_CURVATURE * float(self.diagonal[packed.members] @ np.square(direction)):
                return d, product, direction
            length = slope / curvature
            d += length * direction
            product += length * image
            residual -= length * image
        return d, product, None


def _largest(values: np.ndarray, least: float, most: int) -> np.ndarray:
    """The indices of the largest values, at most so many, of those that are finite and at least `least`."""
    index = (np.isfinite(values) & (values >= least)).nonzero()[0]
    if index.size <= most:
        return index
    return np.sort(index[np.argpartition(-values[index], most - 1)[:most]])


def _snapped(x: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """What is off its bound by rounding only is put there: it would be free, and block every way."""
    near = _AT_BOUND * (hi - lo)
    return np.where(x - lo <= near, lo, np.where(hi - x <= near, hi, x))


def _to_first_bound(start: np.ndarray, d: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> tuple[float, np.ndarray]:
    """How far along d the first bound is, and the point there; the start itself if there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(d > 0.0, hi - start, lo - start) / d
    steps[d == 0.0] = np.inf
    first = max(float(steps.min(initial=np.inf)), 0.0)
    if not np.isfinite(first):
        return first, start
    x = np.clip(start + first * d, lo, hi)
    meets = steps <= first * (1.0 + 4.0 * EPS)
    x[meets] = np.where(d > 0.0, hi, lo)[meets]
    return first, x


def _projected(x: np.ndarray, lo: np.ndarray, hi: np.ndarray, total: float) -> np.ndarray:
    """The nearest point between the bounds with this sum: x shifted by one number, and clipped.

    What is far outside is brought nearer first, so that rounding of the shift is small beside the box.
    """
    far = float((hi - lo).max())
    x = np.clip(x, lo - far, hi + far)
    least, most = float((lo - x).min()), float((hi - x).max())
    for _ in range(_BISECTIONS):
        middle = 0.5 * (least + most)
        if float(np.clip(x + middle, lo, hi).sum()) < total:
            least = middle
        else:
            most = middle
    return np.clip(x + most, lo, hi)


def _forgotten() -> None:
    return None
