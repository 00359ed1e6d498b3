"""The dual over a working set: pivots on its own kernel matrix, with an updated Cholesky factor.

    min 1/2 beta'K beta - p'beta,   lo <= beta <= hi,   sum(beta) = total

Free variables F have equal wishes g = p - K beta. M = K + sigma 1 1' has the same minimiser, because the sum is fixed,
and is kept as M_FF = R'R; `carried` is u with R'u = 1. One variable k moves at a time, and F with it:

    v_k = 1,  sum(v) = 0,  (M v)_F = level 1:     R'y = M_Fk,  level = (y.u - 1) / u.u,  R v_F = level u - y
    curvature v'Kv = (M_kk - y.y) + level^2 u.u,  slope v.g = g_k - g_F

The step ends where the slope is used up, and k joins the factor, or where a variable meets its bound: a member of F
leaves the factor, and k goes on with what is left of its slope; k itself stays at its other bound.

Regression adds epsilon sum |beta_i|, which has a kink at zero. `segments.py` takes care of that: to a pivot, the ends
of a variable's segment are its bounds.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpstrf

from softmargin.core.errors import SoftmarginError
from softmargin.linalg.cholesky import Factor
from softmargin.solvers.active_set.segments import Segments

EPS = float(np.finfo(np.float64).eps)
# A pivot of the factor below this share of the diagonal is rounding: the row is affinely dependent on F.
DEPENDENT = 1e-13
# A pivot below minus this share is not: the matrix is indefinite.
INDEFINITE = 1e-7
# Entering variables in a row without a step after which the least index enters and leaves, which ends cycles.
PATIENCE = 20
# Newton steps in a row that flatten the wishes of F; a step that does less than this share asks for a new factor.
LEVELS, LEVEL_SHARE = 4, 0.1
# What a sum of variables may be off by, as a share of their sizes.
_SUM_ROUNDING = 4.0 * EPS
# A product gathers the rows it needs if they are less than this share.
SPARSE_SHARE = 0.4


class Inner(Segments):
    """The working set with its factor.

    Free variables are members of the factor or `dependents`, which a start may bring and which move to a bound first.
    """

    def __init__(self, room: int, sigma: float, precision: float = 0.0, epsilon: float = 0.0) -> None:
        super().__init__(room, epsilon)
        self.total = 0.0
        self.dependent = max(DEPENDENT, precision)
        self.sigma = sigma if sigma > 0.0 else 1.0
        self.factor = Factor()
        self.dependents: list[int] = []
        self.pivots = self.degenerate = self.refactorisations = 0
        self.entered = self.idle = self.work = 0

    def shared_wish(self, rise: np.ndarray | None = None, fall: np.ndarray | None = None) -> float:
        """What free variables wish; where none is free, the middle between those that may rise and that may fall.

        These are the wishes of the variables here, or the given ones, infinite for those that may not.
        """
        F = self.factor.members
        if F.size:
            return float(self.g[F].mean())
        if rise is None or fall is None:
            rise, fall = self.wishes_at_bounds()
        highest, lowest = float(rise.max(initial=-np.inf)), float(fall.min(initial=np.inf))
        if math.isfinite(highest) and math.isfinite(lowest):
            return 0.5 * (highest + lowest)
        return highest if math.isfinite(highest) else lowest

    def prices(self) -> np.ndarray:
        """By how much each variable at a bound wants away from it; 0 for free and barred ones.

        A variable at zero that wants to its other segment has that price, and is put there.
        """
        shared = self.shared_wish()
        prices = self.side * (self.g - shared)
        self.cross_kinks(prices)
        return prices * (1.0 - self.barred)

    def counts(self) -> tuple[int, int, int]:
        return self.pivots, self.degenerate, self.refactorisations

    def solve(self, goal: float, end: int, last_pivot: int, check: Callable[[], None]) -> bool:
        """Pivot until nobody wants away from a bound by more than `goal`; False if a limit ended it before."""
        while True:
            check()
            if self.dependents:
                k = self.dependents.pop()
                if self.side[k] == 0.0:
                    self.bring_in(k)
            else:
                prices = self.prices()
                k = int(prices.argmax()) if self.idle < PATIENCE else self._least_index(prices > goal)
                if not prices[k] > goal:
                    return True
                if not self.bring_in(k) and not (self.flatten(0.0) and self.bring_in(k)):
                    self.barred[k] = 1.0
            if self.work > end or self.pivots >= last_pivot:
                return False

    def _least_index(self, among: np.ndarray) -> int:
        places = among.nonzero()[0]
        return int(places[self.index[places].argmin()]) if places.size else 0

    def bring_in(self, k: int) -> bool:
        """Move k, and the free variables with it, until k is free or at its other bound; False if it would not gain."""
        factor, beta, lo, hi, side = self.factor, self.beta, self.lo, self.hi, self.side
        change = beta.copy()
        row = self.matrix[k]
        diagonal = float(row[k]) + self.sigma
        sign, slope, is_refilled = float(side[k]), math.nan, False
        while True:
            F = factor.members
            if F.size == 0:
                self.pivots += 1
                self._append(k, np.empty(0), diagonal)
                break
            y = factor.forward(row[F] + self.sigma)
            pivot = diagonal - float(y.dot(y))
            if pivot < -INDEFINITE * diagonal:
                if is_refilled:
                    raise SoftmarginError(_indefinite(pivot))
                is_refilled = True
                self.refactorise()
                if side[k] == 0.0:  # it is among the free ones again
                    break
                continue
            u = factor.carried
            uu = float(u.dot(u))
            level = (float(y.dot(u)) - 1.0) / uu
            v = factor.backward(level * u - y)
            if math.isnan(slope):
                slope = float(self.g[k] + self.g[F].dot(v))
                if sign == 0.0:
                    sign = 1.0 if slope >= 0.0 else -1.0
                slope *= sign
                if slope <= 0.0 and side[k] != 0.0:
                    return False
            if sign < 0.0:
                v *= -1.0
            self.pivots += 1
            self.work += 3 * F.size * F.size
            is_dependent = pivot <= self.dependent * diagonal
            curvature = max(pivot, 0.0) + level * level * uu
            step, p = self._first_bound(F, v)
            own = float(hi[k] - beta[k] if sign > 0.0 else beta[k] - lo[k])
            if own <= step:
                step, p = own, -1
            if not is_dependent and slope <= step * curvature:
                step = slope / curvature
                beta[F] += step * v
                beta[k] += sign * step
                self._append(k, y, pivot)
                break
            if step == 0.0:
                self.degenerate += 1
            beta[F] += step * v
            if p < 0:
                beta[k] = hi[k] if sign > 0.0 else lo[k]
                side[k] = -sign
                break
            beta[k] += sign * step
            self._drop(p, v[p] > 0.0)
            slope = max(slope - step * curvature, 0.0)
        np.clip(beta, lo, hi, out=beta)
        change -= beta
        self._advance(change)
        self.entered += 1
        if change.any():
            self.idle = 0
            self.barred[:] = 0.0
        else:
            self.idle += 1
        return True

    def retire(self, k: int) -> bool:
        """Drive k to zero for good, and the free variables with it; members of F that meet a bound leave on the way.

        False if nobody is free any more to take over its share: then it has gone as far as it could.
        """
        factor, beta = self.factor, self.beta
        if self.side[k] == 0.0:
            for p in (factor.members == k).nonzero()[0].tolist():
                factor.delete(p)
            self.dependents = [j for j in self.dependents if j != k]
        self.side[k] = self.other[k] = 0.0
        self.lo[k], self.hi[k] = min(0.0, float(beta[k])), max(0.0, float(beta[k]))
        change = beta.copy()
        row, sign = self.matrix[k], -math.copysign(1.0, beta[k])
        while beta[k] != 0.0 and factor.order:
            F, u = factor.members, factor.carried
            y = factor.forward(row[F] + self.sigma)
            level = (float(y.dot(u)) - 1.0) / float(u.dot(u))
            v = factor.backward(level * u - y)
            v *= sign
            self.pivots += 1
            self.work += 3 * F.size * F.size
            step, p = self._first_bound(F, v)
            rest = abs(float(beta[k]))
            beta[F] += min(step, rest) * v
            if rest <= step:
                beta[k] = 0.0
            else:
                beta[k] += sign * step
                self._drop(p, v[p] > 0.0)
        np.clip(beta, self.lo, self.hi, out=beta)
        is_done = bool(beta[k] == 0.0)
        if is_done:
            self.lo[k] = self.hi[k] = 0.0
            self.retired[k] = 1.0
        change -= beta
        self._advance(change)
        self.barred[:] = 0.0
        self.idle = 0
        return is_done

    def release(self, k: int, *, is_rising: bool) -> None:
        """Make k free where nobody is, on the segment that leads this way."""
        if self.beta[k] == 0.0 and (self.other[k] > 0.0 if is_rising else self.other[k] < 0.0):
            self.flip(k)
        self._append(k, np.empty(0), float(self.matrix[k, k]) + self.sigma)

    def discard(self, k: int) -> None:
        """Give up the place of a variable that is not free; the last one moves there."""
        last = self.size - 1
        if k != last:
            self.factor.members[self.factor.members == last] = k
            self.dependents = [k if j == last else j for j in self.dependents]
        self.move_last(k)

    def end_segment(self, sizes: float) -> bool:
        """Put the only free variable at an end of its segment if it is there but for rounding; whether it was.

        All others are at their bounds, and so its value follows from the sum; `sizes` is the sum of all absolute
        values. Left where it is, it alone would say what the intercept is: an end of the interval that the others
        leave, instead of its middle.
        """
        if not self.has_kinks or self.factor.order != 1:
            return False
        k = int(self.factor.members[0])
        lo, hi = float(self.lo[k]), float(self.hi[k])
        value = self.total - (float(self.beta.sum()) - float(self.beta[k]))
        if min(value - lo, hi - value) > _SUM_ROUNDING * (hi - lo + sizes):
            return False
        change = self.beta.copy()
        self._drop(0, hi - value < value - lo)
        change -= self.beta
        self._advance(change)
        return True

    def _first_bound(self, F: np.ndarray, v: np.ndarray) -> tuple[float, int]:
        """The step at which a member of F first meets its bound, and its position; of several the fastest, or the one
        of the least index where nothing has moved for long.
        """
        values = self.beta[F]
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(v > 0.0, self.hi[F] - values, self.lo[F] - values) / v
        steps[np.abs(v) <= 1e-300] = np.inf
        p = int(steps.argmin())
        step = float(steps[p])
        ties = (steps <= step * (1.0 + 4.0 * EPS)).nonzero()[0]
        if ties.size > 1:
            p = int(ties[self.index[F[ties]].argmin() if self.idle >= PATIENCE else np.abs(v[ties]).argmax()])
        return max(step, 0.0), p

    def _append(self, k: int, y: np.ndarray, pivot: float) -> None:
        self.factor.append(k, y, max(pivot, EPS * EPS), 1.0)
        self.side[k] = 0.0

    def _drop(self, p: int, is_up: bool) -> None:
        i = self.factor.members[p]
        self.beta[i] = self.hi[i] if is_up else self.lo[i]
        self.side[i] = -1.0 if is_up else 1.0
        self.factor.delete(p)

    def _advance(self, fall: np.ndarray) -> None:
        """g for beta that has changed by minus `fall`."""
        moved = fall.nonzero()[0]
        if moved.size < SPARSE_SHARE * self.size:
            self.g[:] += fall[moved] @ self.matrix[moved]
            self.work += 2 * moved.size * self.size
        else:
            self.g[:] += self.matrix @ fall
            self.work += self.size * self.size

    def spread(self) -> float:
        """How far the wishes of the factor's members are from each other."""
        g = self.g[self.factor.members]
        return float(g.max() - g.min()) if g.size else 0.0

    def flatten(self, goal: float) -> bool:
        """Newton steps on F until its wishes differ by no more than `goal` or by rounding; members that meet a bound
        leave. Returns whether anything was done.
        """
        before = spread = self.spread()
        for _ in range(LEVELS):
            if spread <= goal or self.factor.order == 0:
                break
            order = self.factor.order
            self._level()
            now = self.spread()
            if now > LEVEL_SHARE * spread and self.factor.order == order:
                self.refactorise()
                self._level()
                break
            spread = now
        return before > goal

    def _level(self) -> None:
        """To the minimiser over F, or past bounds, which members meet on the way and stay at."""
        beta, factor = self.beta, self.factor
        change = beta.copy()
        wishes = self.g[factor.members]
        wishes -= wishes.mean()
        while factor.order:
            F, u = factor.members, factor.carried
            missing = self.total - float(beta.sum())
            half = factor.forward(wishes.copy())
            level = (float(half.dot(u)) - missing) / float(u.dot(u))
            d = factor.backward(half - level * u)
            self.pivots += 1
            self.work += 3 * F.size * F.size
            step, p = self._first_bound(F, d)
            if step >= 1.0:
                beta[F] += d
                break
            beta[F] += step * d
            wishes -= step * (wishes - level)
            wishes = np.delete(wishes, p)
            self._drop(p, d[p] > 0.0)
        np.clip(beta, self.lo, self.hi, out=beta)
        change -= beta
        self._advance(change)

    def refactorise(self) -> None:
        """Factorise all free variables anew; those that depend on others become `dependents`."""
        self.refactorisations += 1
        free = ((self.side == 0.0) & (self.retired == 0.0)).nonzero()[0]
        matrix = self.matrix
        A = matrix[np.ix_(free, free)]
        A += self.sigma
        self.work += free.size**3 // 3
        diagonal = A.diagonal().copy()
        order, rank = np.empty(0, dtype=np.int64), 0
        if free.size:
            _, order, rank, _ = dpstrf(A, tol=self.dependent * float(diagonal.max()))
        first, rest = order[:rank] - 1, order[rank:] - 1
        self.factor.refill(free[first], A[np.ix_(first, first)], np.ones(rank), self.dependent)
        rest = np.append(first[self.factor.order :], rest)
        self.dependents = []
        for j in rest.tolist():
            k = int(free[j])
            y = self.factor.forward(matrix[k][self.factor.members] + self.sigma)
            pivot = float(diagonal[j] - y.dot(y))
            if pivot > self.dependent * diagonal[j]:
                self.factor.append(k, y, pivot, 1.0)
            elif pivot < -INDEFINITE * diagonal[j]:
                raise SoftmarginError(_indefinite(pivot))
            else:
                self.dependents.append(k)


def _indefinite(pivot: float) -> str:
    return (
        f"the kernel matrix is not positive semi-definite (a pivot of its Cholesky factor is {pivot:.2g}), and the "
        "active set needs that: use solver='auto' or solver='smo', or a kernel such as 'rbf'."
    )
