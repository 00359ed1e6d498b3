"""The hinge risk with a free intercept: the best b, the cutting plane, and the search along a line.

    R(f) = min over b of sum_i max(0, |v_i| - v_i (f_i + b))
    G(k) = 1/2 A0 k^2 + B0 k + C R(f + k df),  k >= 0                      the search of OCAS

f = X w, and v_i = s_i y_i carries the weight and the label of row i; v_i = 0 leaves the row out. For the intercept the
breakpoints are t_i = y_i - f_i with weights v_i, and `breakpoints` finds the zero of the derivative, a weighted median.
G has no such breakpoints; its minimiser is enclosed by probes, each of which selects b(k) and returns the right
derivative of G. Where a plane is known that is tight nearby, none of them sees all rows:

    sample      the same search on a few rows gives a region, k_lo <= k <= k_hi and an interval of b for each k, that
                holds the minimiser almost surely
    narrow      one pass adds up the rows that stay on one side of their margin all over the region, where their
                hinges are linear in k and b, and keeps the others
    search      on those, as long as k and b(k) stay in the region

Reference: V. Franc, S. Sonnenburg, "Optimized Cutting Plane Algorithm for Support Vector Machines", ICML 2008, eq. (7)
and Appendix A. Departs from the paper, which has no intercept of this kind.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum, inf, nextafter, sqrt

import numpy as np

from softmargin.problems.base import Hint, PlaneAlong
from softmargin.problems.bracketing import FARTHEST, Probe, search, shrinking
from softmargin.problems.breakpoints import (
    DEVIATIONS,
    SAMPLE_ROWS,
    RowWorkers,
    active_part,
    bracket,
    joined,
    positive,
    reference,
    row_blocks,
    sampled,
    scan,
    taken,
    widening,
    zero,
)

_CHUNK_ROWS = 1_024  # of compiled code
_FEW_ROWS = 4 * SAMPLE_ROWS  # up to here no sample is taken
_SELECTED_ROWS = 32 * SAMPLE_ROWS  # up to here one thread finds b as fast
_EXPECTED_RADIUS = 0.25  # of an interval for b between two points, relative to the change from one to the other
_MANY_ROWS = 8 * SAMPLE_ROWS  # from here on the region saves more than it costs
_SAMPLE_WIDTH = 0.1  # relative, of the search on the sample
_SLOWER = 1.5  # the derivative of G is taken to grow at least so many times slower beyond the zero than before it


def best_intercept(f: np.ndarray, v: np.ndarray, workers: RowWorkers) -> tuple[Hint, float]:
    """An intercept b that minimises the risk, and the risk.

    b is a breakpoint y_i - f_i, or the middle of the interval on which the risk is smallest, or the finite
    end of that interval where only one class has weight; 0 without any weight.
    """
    known, value, _ = _Intercepts(f, f, v, workers).best(0.0)
    return known, value


def follow(
    f: np.ndarray,
    df: np.ndarray,
    k: float,
    known: Hint,
    k_plane: float,
    v: np.ndarray,
    f_new: np.ndarray,
    out: np.ndarray,
    bits: np.ndarray,
    workers: RowWorkers,
) -> tuple[float, float, int, float]:
    """f + k df into `f_new` (unless empty); coefficients c_i = -v_i pi_i of the plane at f + k_plane df into `out`.

    The coefficients add up to 0. One bit a row, whether pi_i = 1, goes to `bits`. `known` is of f + k df. Returns the
    risk there, the constant e = sum of |v_i| pi_i of the plane, so that R >= <c, .> + e with equality where it was
    made, and the one row whose pi is neither 0 nor 1, with its pi; -1 and 1.0 if none.
    """
    from softmargin.problems import _hinge, _witness

    def block(i: int, j: int) -> tuple:
        buffer, t, inside = np.empty(_CHUNK_ROWS), np.empty(j - i), np.empty(j - i, dtype=np.int64)
        vectors = f[i:j], df[i:j], k, known.b, k_plane, v[i:j], lo, hi, f_new[i:j], out[i:j]
        count, *sums = _hinge.follow_free(*vectors, buffer, t, inside)
        _witness.pack_bits(out[i:j], bits[i // 8 :])
        inside = inside[:count]
        inside += i
        return t[:count], inside, sums

    lo, hi = inf, -inf
    intercepts = _Intercepts(f, df, v, workers, last=(k, known))
    for wide in intercepts.brackets(k_plane, is_sampled=f.size > _FEW_ROWS):
        lo, hi = min(lo, wide[0]), max(hi, wide[1])
        t, rows, (risk, balance, constant) = joined(workers.map(block, row_blocks(f.size)))
        near = taken(v, rows)
        is_inside, b, sum_v, *_ = _hinge.settle(t, near, near, -balance, lo, hi, *np.empty((2, t.size)))
        if is_inside:
            break
    more, row, fraction = _hinge.complete_plane(t, rows, v, b, balance - sum_v, out, bits)
    return risk, constant + more, row, fraction


def minimise_along(
    f: np.ndarray,
    df: np.ndarray,
    v: np.ndarray,
    A0: float,
    B0: float,
    C: float,
    workers: RowWorkers,
    known: Hint | None = None,
    plane: PlaneAlong | None = None,
    width: float = 1e-2,
) -> tuple[float, float, float, Hint]:
    """Enclose the minimiser over k >= 0 of G(k) = 1/2 A0 k^2 + B0 k + C (min over b of the risk at f + k df).

    Returns (k, lo, hi, known): the minimiser lies in [lo, hi], hi - lo <= width hi, k is the end with the smaller
    G and `known` is of that end. lo = hi = 0 where G does not fall at 0. The interval may stay [0, hi] where no
    step lowers G by more than rounding, and hi is not an upper bound where A0 = 0 and G falls for ever. The step that
    led to f, which is `known`, and a `plane` that is tight near the minimiser save time.
    """
    line = _Line(_Intercepts(f, df, v, workers), A0, B0, C)
    if plane is None or f.size < _MANY_ROWS:
        # Of few rows the probes begin at fixed places: the same rows in another order then take the same path.
        return _search(line, width)
    first = known.step if known is not None and 0.0 < known.step < 1.0 else 1.0
    for region in _regions(line, plane, first):
        try:
            return _search_inside(replace(line, intercepts=line.intercepts.narrowed(region)), region, width)
        except _Outside:
            continue
    return _search(line, width, first)


class _Outside(Exception):
    """The search leads out of the region."""


@dataclass(frozen=True)
class _Region:
    """A quadrilateral of (k, b): its corners are low[0] and high[0] at k_lo, low[1] and high[1] at k_hi."""

    k_lo: float
    k_hi: float
    low: tuple[float, float]
    high: tuple[float, float]

    def at(self, k: float) -> tuple[float, float]:
        """Its lowest and its highest b at k."""
        share = (k - self.k_lo) / (self.k_hi - self.k_lo)
        return (1.0 - share) * self.low[0] + share * self.low[1], (1.0 - share) * self.high[0] + share * self.high[1]


@dataclass(frozen=True)
class _Line:
    """G: the quadratic terms, and the risk as a function of k."""

    intercepts: "_Intercepts"
    A0: float
    B0: float
    C: float

    def probe(self, k: float) -> Probe:
        known, risk, sum_vdf = self.intercepts.best(k)
        value = 0.5 * self.A0 * k * k + self.B0 * k + self.C * risk
        return Probe(k, value, self.A0 * k + self.B0 - self.C * sum_vdf, self.C * risk, known)


def _search(line: _Line, width: float, first: float = 1.0) -> tuple[float, float, float, Hint]:
    return _better_end(*search(line.probe, line.probe(0.0), width, first))


def _search_inside(line: _Line, region: _Region, width: float) -> tuple[float, float, float, Hint]:
    """The same between the sides of the region."""
    lo, hi = line.probe(region.k_lo), line.probe(region.k_hi)
    if lo.k == 0.0 and lo.slope >= 0.0:
        return 0.0, 0.0, 0.0, lo.known
    if not lo.slope < 0.0 <= hi.slope:
        raise _Outside
    for ends in shrinking(line.probe, lo, hi, width):
        lo, hi = ends
    return _better_end(lo, hi)


def _better_end(lo: Probe, hi: Probe) -> tuple[float, float, float, Hint]:
    best = lo if lo.value < hi.value else hi
    return best.k, lo.k, hi.k, best.known


def _regions(line: _Line, plane: PlaneAlong, first: float) -> Iterator[_Region]:
    """Where the minimiser is to be expected, judged from a sample of the rows; the second is wider.

    For the rows that are active in the plane the sums of v and v df are known. How these change from there to the
    minimiser is what the sample tells, up to chance; the zero of the derivative of G lies between those of the sample's
    derivative raised and lowered by some standard errors.
    """
    n = line.intercepts.n_rows
    f, df, v, c = line.intercepts.sampled(plane.c, size=min(max(n // 16, SAMPLE_ROWS), 2 * SAMPLE_ROWS))
    y, ratio = np.sign(v), n / f.size
    few = _Line(
        _Intercepts(f, df, v, line.intercepts.workers, fixed=_Fixed(v=float(c.sum()))),
        line.A0,
        line.B0 + line.C * (plane.rise - ratio * float(c @ df)),
        line.C * ratio,
    )
    k, _, _, known = _search(few, _SAMPLE_WIDTH, first)
    changed = active_part(y - (f + k * df), v, known.b) + c
    # The sum of all changes is zero, so df counts from any origin; this one makes the variance small.
    sq = changed * changed
    df_centred = df - float(sq @ df) / max(float(sq.sum()), np.finfo(float).tiny)
    x = changed * df_centred
    variance = max(float(x @ x - x.sum() ** 2 / x.size), float(np.abs(v * df_centred).max() ** 2))
    error, slope = few.C * sqrt(variance), few.probe(0.0).slope
    for deviations in (DEVIATIONS, 4.0 * DEVIATIONS):
        margin = deviations * error
        if k > 0.0:
            k_lo, k_hi = max(0.0, k * (1.0 + margin / slope)), k * (1.0 - _SLOWER * margin / slope)
        else:
            k_lo, k_hi = 0.0, _search(replace(few, B0=few.B0 - slope - margin), _SAMPLE_WIDTH, first)[2]
        if not k_lo < k_hi < FARTHEST:
            return
        ends = [bracket(y - (f + end * df), v, -c, ratio, 0.0, 0.0, deviations, -inf, inf) for end in (k_lo, k_hi)]
        if not np.isfinite(ends).all():
            return  # too few rows of one class for an estimate
        yield _Region(k_lo, k_hi, (ends[0][0], ends[1][0]), (ends[0][1], ends[1][1]))


@dataclass(frozen=True)
class _Fixed:
    """Rows that are active for every k and b in question: sums of |v| - v f, v df and v."""

    h: float = 0.0
    vdf: float = 0.0
    v: float = 0.0


_Sums = tuple[float, float, float] | list[float]


class _Intercepts:
    """Best intercepts along f + k df: the rows, a sample of them and what is known from earlier searches."""

    def __init__(
        self,
        f: np.ndarray,
        df: np.ndarray,
        v: np.ndarray,
        workers: RowWorkers,
        *,
        fixed: _Fixed | None = None,
        region: _Region | None = None,
        last: tuple[float, Hint] | None = None,
    ) -> None:
        self._f, self._df, self._v, self.workers = f, df, v, workers
        self._fixed, self._region = fixed or _Fixed(), region
        self._sample: list[np.ndarray] = []
        self._last = last
        self._found: dict[float, tuple[Hint, float, float]] = {}

    @property
    def n_rows(self) -> int:
        return self._f.size

    @cached_property
    def _y(self) -> np.ndarray:
        return np.sign(self._v)

    def sampled(self, *columns: np.ndarray, size: int) -> list[np.ndarray]:
        """Some rows of f, df, v and other columns."""
        return sampled(self._f, self._df, self._v, *columns, size=size)

    def narrowed(self, region: _Region) -> "_Intercepts":
        """The rows that may change sides in the region, and what the others add."""
        from softmargin.problems import _hinge

        columns = self._f, self._df, self._v
        corners = region.k_lo, region.low[0], region.high[0], region.k_hi, region.low[1], region.high[1]

        def block(i: int, j: int) -> tuple:
            buffer, inside = np.empty(_CHUNK_ROWS), np.empty(j - i, dtype=np.int64)
            count, *sums = _hinge.narrow(*(column[i:j] for column in columns), *corners, buffer, inside)
            rows = inside[:count]
            return [column[i:j].take(rows) for column in columns], sums

        parts = self.workers.map(block, row_blocks(self.n_rows))
        f, df, v = (np.concatenate([part[0][s] for part in parts]) for s in range(3))
        fixed = _Fixed(*(fsum(part[1][s] for part in parts) for s in range(3)))
        return _Intercepts(f, df, v, self.workers, fixed=fixed, region=region)

    def best(self, k: float) -> tuple[Hint, float, float]:
        """The best b at f + k df, the risk, and the sum of pi_i v_i df_i: minus its right derivative by k.

        Raises `_Outside` where b leaves the region to which the rows were narrowed.
        """
        if k not in self._found:
            self._found[k] = self._best(k)
            self._last = k, self._found[k][0]
        return self._found[k]

    def _expected(self, k: float) -> tuple[float, float] | None:
        """Around the line between the nearest points at which b is known; None where k lies outside of them."""
        below = max((x for x in self._found if x < k), default=None)
        above = min((x for x in self._found if x > k), default=None)
        if below is None or above is None:
            return None
        b_below, b_above = self._found[below][0].b, self._found[above][0].b
        b = b_below + (k - below) / (above - below) * (b_above - b_below)
        radius = _EXPECTED_RADIUS * abs(b_above - b_below)
        return nextafter(b - radius, -inf), nextafter(b + radius, inf)

    def _best(self, k: float) -> tuple[Hint, float, float]:
        from softmargin.problems import _hinge

        fixed, is_few = self._fixed, self.n_rows <= _SELECTED_ROWS
        near = self._expected(k)
        lo, hi = inf, -inf
        for wide in self._intervals(k, near):
            lo, hi = min(lo, wide[0]), max(hi, wide[1])
            ref = reference(lo, hi)
            t, v, df, (sum_v, sum_vdf, sum_vt) = self._all(k) if is_few else self._between(k, lo, hi, ref)
            found = _hinge.settle(t, v, df, sum_v + fixed.v, lo, hi, *np.empty((2, t.size)))
            is_inside, b, more_v, more_vdf, more_vt, n_ties, tied_df = found
            if is_inside:
                break
            if wide is near:  # b may be far away: no end of the next interval
                lo, hi = inf, -inf
        else:
            raise _Outside
        total = sum_v + more_v + fixed.v
        if n_ties == 1:
            more_vdf -= total * tied_df
        elif n_ties > 1:
            ties = np.flatnonzero((t == b) & (v != 0.0))
            more_vdf += _tied_slope(v[ties], df[ties], total)
        risk = sum_vt - (b - ref) * sum_v + more_vt + (fixed.h - k * fixed.vdf - b * fixed.v)
        return Hint(b, total, k), risk, sum_vdf + more_vdf + fixed.vdf

    def _all(self, k: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, _Sums]:
        """Breakpoints, v and df of all rows."""
        t = k * self._df
        t += self._f
        np.subtract(self._y, t, out=t)
        return t, self._v, self._df, (0.0, 0.0, 0.0)

    def _between(self, k: float, lo: float, hi: float, ref: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, _Sums]:
        """The same of rows with lo < t_i < hi; sums of v, v df and v (t - ref) over the others that are active."""
        from softmargin.problems import _hinge

        columns = self._f, self._df, self._v
        t, rows, sums = scan(_hinge.scan_intercepts, columns, (k, ref, lo, hi), np.int64, self.workers)
        return t, taken(self._v, rows), taken(self._df, rows), sums

    def _intervals(self, k: float, near: tuple[float, float] | None) -> Iterator[tuple[float, float]]:
        """Intervals for b in the order in which to try them; the last fails only where b has left the region."""
        if near is not None:
            yield near
        if self._region is not None:
            yield self._region.at(k)
        else:
            yield from self.brackets(k, is_sampled=self.n_rows > _SELECTED_ROWS)

    def brackets(self, k: float, *, is_sampled: bool) -> Iterator[tuple[float, float]]:
        """Intervals for b, judged from a sample of the rows and made as they are asked for; the last cannot fail."""
        known: np.ndarray | None = None
        slope = -self._fixed.v
        if is_sampled:
            self._sample = self._sample or self.sampled(size=SAMPLE_ROWS)
            f, df, v = self._sample
            y = np.sign(v)
            t = y - (f + k * df)
            if self._last is not None:
                last_k, last = self._last
                known, slope = active_part(y - (f + last_k * df), v, last.b), -last.sum_v
        for deviations in widening(is_sampled):
            if deviations < inf:
                yield bracket(t, v, known, self.n_rows / SAMPLE_ROWS, slope, 0.0, deviations, -inf, inf)
            else:
                yield -inf, inf


def _tied_slope(v: np.ndarray, df: np.ndarray, balance: float) -> float:
    """Sum of pi_i v_i df_i over several rows tied at the best b, where balance + sum of pi_i v_i = 0.

    As k grows the breakpoints of these rows move by -df_i: which are active is a selection of its own. It
    makes the sum that of the right derivative by k; any other balanced pi gives some subgradient.
    """
    if df.min() == df.max():
        return -balance * float(df[0])
    turn = zero(-df, np.abs(v), -balance - positive(v), 0.0, -inf, inf)
    active = active_part(-df, v, turn)
    # Rows that stay tied have df = -turn and add up to what is missing.
    return float((active * df).sum() + (balance + active.sum()) * turn)
