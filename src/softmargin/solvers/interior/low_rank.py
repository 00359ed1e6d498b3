"""A primal-dual interior point method for box problems whose matrix is V V', with V of few columns.

    min over beta of 1/2 |V'beta|^2 - p'beta,   lo <= beta <= hi,   sum(beta) = total (or no such condition)

With x = beta - lo, t = hi - beta, their multipliers z and s, w = V'beta and the multiplier b of the sum:

    residuals -> D = z/x + s/t -> factor I + V'D^-1 V, bordered by V'D^-1 1
    affine direction -> how far it goes -> the centring parameter -> corrected direction
    further correctors while the step is short -> step

An iteration costs one weighted Gram matrix, O(n k^2), and a few products with V and V'. The system is solved for
(w, b), and the n variables follow from D dx = g - V dw - db: a formula for increments, so that the small D of variables
inside their box magnify only the rounding of what is small itself. The residual of the stationarity condition is only
ever scaled by 1 - step, never computed anew, for the same reason.

Reference: S. Mehrotra, On the Implementation of a Primal-Dual Interior Point Method, SIAM J. Optimization 2, 1992;
S. Fine, K. Scheinberg, Efficient SVM Training Using Low-Rank Kernel Representations, JMLR 2, 2001; M. C. Ferris, T. S.
Munson, Interior-Point Methods for Massive Support Vector Machines, SIAM J. Optimization 13, 2002; J. Gondzio, Multiple
Centrality Corrections in a Primal-Dual Method for Linear Programming, Computational Optimization and Applications 6,
1996 (further correctors).
Departs from the papers: w is a variable of its own; the sum is one more column of V without its ridge; all start in the
middle of the box, whose complementarity products are equal.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from softmargin.core.errors import SoftmarginError
from softmargin.core.threads import Workers

_PARTS, _PART_ROWS = 16, 1024  # partial sums at most, and rows that are worth a part
_TILE_VALUES = 1 << 16  # of V that are scaled and multiplied at a time
# The least D, in units of the mean diagonal of V V': below it the factor would lose the ridge.
_LEAST_D = 1e-14
_TO_THE_BOUNDARY = 0.9995
# The mean multiplier at the start. p, whose size is one, is to be small beside it.
_FIRST_MULTIPLIER = 10.0
# Correctors after Mehrotra's, as long as the step is short and they make it longer; where products should lie, in units
# of the target; how much longer a step they try for; and the share of that which is worth another corrector. Where the
# path is so curved that the affine step is this short, there are more of them, for smaller gains.
_CORRECTORS, _SHORT = 2, 0.9
_LEAST_PRODUCT, _MOST_PRODUCT = 0.1, 10.0
_LONGER, _WORTHWHILE = (1.5, 0.1), 0.1
_CURVED, _MORE_CORRECTORS, _LESS_WORTHWHILE = 0.5, 5, 0.01
# What is added to the scaled factor's diagonal where rounding left it indefinite; ten times as much each time after.
_JITTER = 1e-14
# A diagonal entry of the scaled factor, at most one, that makes a solution worth refining.
_DELICATE = 1e-3
_TINY = 1e-300


@dataclass(frozen=True)
class LowRankQP:
    """The problem. V is a row-major float64 array; lo < hi; `total` is None where the sum is free."""

    V: np.ndarray
    p: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    total: float | None
    workers: Workers = field(default_factory=Workers)

    @cached_property
    def parts(self) -> list[tuple[int, int]]:
        """Ranges of rows, whatever the number of threads."""
        n = len(self.V)
        cuts = np.linspace(0, n, max(1, min(_PARTS, n // _PART_ROWS)) + 1).astype(int).tolist()
        return list(pairwise(cuts))

    @cached_property
    def unit(self) -> float:
        """The mean diagonal of V V', without what a constant contributes where the sum is fixed: beta has the size of
        p over this. One if all of it is zero.
        """
        n = len(self.V)
        squares = self.reduce(lambda lo, hi: np.einsum("ij,ij->j", self.V[lo:hi], self.V[lo:hi]))
        mean = self.t_times(np.ones(n)) / n
        whole = float(squares.sum()) / n
        varying = whole - float(mean @ mean) if self.total is not None else whole
        return varying if varying > 1e-12 * whole else whole or 1.0

    def each(self, part: Callable[[int, int], Any]) -> list:
        """`part` of every range of rows."""
        return self.workers.map(part, self.parts)

    def reduce(self, part: Callable[[int, int], np.ndarray]) -> np.ndarray:
        """The sum of `part` over ranges of rows, in their order."""
        total, *others = self.each(part)
        for other in others:
            total = total + other
        return total

    def times(self, w: np.ndarray) -> np.ndarray:
        """V w."""
        out = np.empty(len(self.V))

        def block(lo: int, hi: int) -> None:
            np.dot(self.V[lo:hi], w, out=out[lo:hi])

        self.each(block)
        return out

    def t_times(self, v: np.ndarray) -> np.ndarray:
        """V'v."""
        return self.reduce(lambda lo, hi: v[lo:hi] @ self.V[lo:hi])

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """V' diag(weights) V."""
        k = self.V.shape[1]
        tile = max(4 * k, _TILE_VALUES // max(1, k))

        def part(lo: int, hi: int) -> np.ndarray:
            total = np.zeros((k, k))
            for at in range(lo, hi, tile):
                self.workers.check()
                rows = slice(at, min(at + tile, hi))
                scaled = self.V[rows] * np.sqrt(weights[rows])[:, None]
                total += scaled.T @ scaled
            return total

        return self.reduce(part)


@dataclass(frozen=True)
class Point:
    """An interior point, in units in which the mean diagonal of V V' and the largest |p| are one.

    The rows of `vectors` are x, t, z, s and the stationarity residual p - V w - b - s + z. `mu` is the mean product of
    x and z, t and s.
    """

    vectors: np.ndarray
    w: np.ndarray
    b: float
    mu: float


@dataclass(frozen=True)
class _Units:
    """From the problem's variables to those of the method: beta times `beta`, w times unit / size, b over `size`."""

    unit: float
    size: float

    @property
    def beta(self) -> float:
        return self.unit / self.size


def _units(qp: LowRankQP) -> _Units:
    """Outputs have the size of p. Where p is zero they have that of sums of n variables with different signs, whose
    sizes sum to the total: without this, weights of 1e9 for one class would be another problem than weights of 1.
    """
    size = float(np.abs(qp.p).max(initial=0.0))
    if size == 0.0 and qp.total:
        size = qp.unit * abs(qp.total) / float(np.sqrt(qp.p.size))
    return _Units(qp.unit, size or 1.0)


def middle(qp: LowRankQP) -> Point:
    """The middle of the box, with w = 0 and multipliers whose products with x and t are all equal."""
    units = _units(qp)
    half = 0.5 * units.beta * (qp.hi - qp.lo)
    mu = _FIRST_MULTIPLIER * float(half.mean())
    vectors = np.empty((5, half.size))
    vectors[:2] = half
    vectors[2:4] = mu / half
    vectors[4] = qp.p / units.size
    return Point(vectors, np.zeros(qp.V.shape[1]), 0.0, mu)


def beta_of(qp: LowRankQP, point: Point) -> np.ndarray:
    """The variables, each from the bound that is nearer."""
    x, t = point.vectors[:2] / _units(qp).beta
    return np.where(x < t, qp.lo + x, qp.hi - t)


def intercept_of(qp: LowRankQP, point: Point) -> float:
    return point.b * _units(qp).size


def weights_of(qp: LowRankQP, point: Point) -> np.ndarray:
    """w, which is V'beta at the solution, and nearly so before."""
    return point.w * _units(qp).size


def complementarity_of(qp: LowRankQP, point: Point) -> float:
    """The gap that a feasible point with these products has."""
    units = _units(qp)
    return 2.0 * len(qp.V) * point.mu * units.size / units.beta


@contextmanager
def in_range() -> Iterator[None]:
    """Numbers that overflow or vanish on the way end in one sentence."""
    try:
        yield
    except (ZeroDivisionError, np.linalg.LinAlgError):
        raise SoftmarginError(
            "numbers overflow or vanish in the interior point method: scale the features, for example with "
            "StandardScaler, or use solver='auto'."
        ) from None


def advance(qp: LowRankQP, point: Point) -> Point:
    """One iteration: predictor, correctors, step. Where the products of all pairs have vanished there is none left."""
    from softmargin.solvers.interior import _passes

    if point.mu == 0.0:
        return point
    units = _units(qp)
    n, k = qp.V.shape
    x, t, z, s, residual = point.vectors
    d_inv, g, affine = np.empty(n), np.empty(n), np.empty(n)
    qp.each(lambda lo, hi: _passes.weigh(x, t, z, s, residual, _LEAST_D, lo, hi, d_inv, g))
    total = 0.0 if qp.total is None else units.beta * qp.total
    wanted = np.append(units.unit * point.w, total) - _sums(qp, units.beta * beta_of(qp, point))
    system = _System.of(qp, units.unit, d_inv, wanted)

    y, _ = system.solve(g)
    parts = qp.each(lambda lo, hi: _passes.predict(x, t, z, s, d_inv, g, y, lo, hi, affine))
    step = min(1.0, 1.0 / max(*(part[0] for part in parts), _TINY))
    after = max(0.0, (1.0 - step) * point.mu + step * step * sum(part[1] for part in parts) / (2 * n))
    centre = (after / point.mu) ** 3 * point.mu

    to_x, to_t = np.empty(n), np.empty(n)
    qp.each(lambda lo, hi: _passes.second_order(x, t, z, s, affine, centre, lo, hi, to_x, to_t))
    best = _direction(system, point, to_x, to_t)
    is_curved = step < _CURVED
    worthwhile = _LESS_WORTHWHILE if is_curved else _WORTHWHILE
    for _ in range(_MORE_CORRECTORS if is_curved else _CORRECTORS):
        if best.reach >= _SHORT:
            break
        tried = min(1.0, _LONGER[0] * best.reach + _LONGER[1])
        _recentre(qp, point, best, tried, centre, to_x, to_t)
        other = _direction(system, point, to_x, to_t)
        if other.reach < best.reach + worthwhile * (tried - best.reach):
            break
        best = other

    step = min(1.0, _TO_THE_BOUNDARY * best.reach)
    new = np.empty((5, n))
    dx, dz, ds = best.dx, best.dz, best.ds
    qp.each(lambda lo, hi: _passes.move(x, t, z, s, residual, dx, dz, ds, step, 1.0 - step, lo, hi, new))
    mu = float(new[0] @ new[2] + new[1] @ new[3]) / (2 * n)
    return Point(new, point.w + step * best.change[:k], point.b + step * float(best.change[k]), mu)


@dataclass(frozen=True)
class _Direction:
    """A direction, and the longest step along it that leaves all of x, t, z and s at least zero."""

    dx: np.ndarray
    dz: np.ndarray
    ds: np.ndarray
    change: np.ndarray
    reach: float


def _direction(system: "_System", point: Point, to_x: np.ndarray, to_t: np.ndarray) -> _Direction:
    """The direction in which the products x z and t s change by `to_x` and `to_t`, in first order."""
    from softmargin.solvers.interior import _passes

    qp, d_inv = system.qp, system.d_inv
    x, t, z, s, residual = point.vectors
    g, dx, dz, ds = (np.empty(x.size) for _ in range(4))
    qp.each(lambda lo, hi: _passes.aim(x, t, residual, to_x, to_t, lo, hi, g))
    y, change = system.solve(g)
    parts = qp.each(lambda lo, hi: _passes.reach(x, t, z, s, d_inv, g, y, to_x, to_t, lo, hi, dx, dz, ds))
    return _Direction(dx, dz, ds, change, 1.0 / max(max(parts), _TINY))


def _recentre(
    qp: LowRankQP, point: Point, best: _Direction, tried: float, centre: float, to_x: np.ndarray, to_t: np.ndarray
) -> None:
    """Add to the changes what brings the products after a step of this length nearer to their target."""
    from softmargin.solvers.interior import _passes

    x, t, z, s, _ = point.vectors
    dx, dz, ds = best.dx, best.dz, best.ds
    least, most = _LEAST_PRODUCT * centre, _MOST_PRODUCT * centre
    qp.each(lambda lo, hi: _passes.recentre(x, t, z, s, dx, dz, ds, tried, least, most, lo, hi, to_x, to_t))


@dataclass(frozen=True)
class _System:
    """D dx + V dw + db = g,  V'dx - unit dw = r,  sum(dx) = r_b:  solved for (dw, db) by a Cholesky factor.

    (dw, db) are one vector, and so is `wanted`, (r, r_b); db stays zero where the sum is free. `scale` makes the
    diagonal of the factored matrix one.
    """

    qp: LowRankQP
    unit: float
    d_inv: np.ndarray
    wanted: np.ndarray
    factor: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, qp: LowRankQP, unit: float, d_inv: np.ndarray, wanted: np.ndarray) -> "_System":
        k = qp.V.shape[1]
        matrix = np.zeros((k + 1, k + 1))
        matrix[:k, :k] = qp.gram(d_inv)
        matrix[range(k), range(k)] += unit
        matrix[k] = matrix[:, k] = _sums(qp, d_inv)
        if qp.total is None:
            matrix[k] = matrix[:, k] = 0.0
            matrix[k, k] = 1.0
        scale = 1.0 / np.sqrt(matrix.diagonal())
        matrix *= scale
        matrix *= scale[:, None]
        if not np.isfinite(matrix).all():
            raise ZeroDivisionError
        jitter = 0.0
        while True:
            factor, failed = dpotrf(matrix, lower=1)
            if not failed:
                return cls(qp, unit, d_inv, wanted, factor, scale)
            jitter = max(10.0 * jitter, _JITTER)
            matrix[range(k + 1), range(k + 1)] += jitter

    def solve(self, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """V dw + db, and (dw, db); refined once where the factor asks for it."""
        change = self._small(_sums(self.qp, self.d_inv * g) - self.wanted)
        y = self._rows(change)
        if float(self.factor.diagonal().min()) < _DELICATE:
            missed = _sums(self.qp, self.d_inv * (g - y)) - self.wanted
            missed[:-1] -= self.unit * change[:-1]
            more = self._small(missed)
            change, y = change + more, y + self._rows(more)
        return y, change

    def _rows(self, change: np.ndarray) -> np.ndarray:
        """V dw + db."""
        y = self.qp.times(change[:-1])
        y += change[-1]
        return y

    def _small(self, right: np.ndarray) -> np.ndarray:
        solved, _ = dpotrs(self.factor, self.scale * right, lower=1)
        return self.scale * solved


def _sums(qp: LowRankQP, v: np.ndarray) -> np.ndarray:
    """V'v, and the sum of v (0 where that is free)."""
    return np.append(qp.t_times(v), 0.0 if qp.total is None else v.sum())
