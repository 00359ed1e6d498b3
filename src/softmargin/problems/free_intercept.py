"""The sum of hinges with a free intercept: the best b, the cutting plane, and the search along a line.

    R(f) = min over b of sum_i max(0, v_i (unit sign(v_i) - f_i - b)) + b total
    G(k) = 1/2 A0 k^2 + B0 k + C R(f + k df),  k >= 0                      the search of OCAS

The symbols are those of `hinges`. Sums of v over active rows always include -total, as if it were one more row that is
active for every b. For the intercept the breakpoints are t_i = unit sign(v_i) - f_i with weights v_i, and `breakpoints`
finds the zero of the derivative, a weighted median. G has no such breakpoints; its minimiser is enclosed by probes,
each of which selects b(k) and returns the right derivative of G. If a plane is known that is tight nearby, none of them
sees all rows:

    sample      the same search on a few rows gives a region, k_lo <= k <= k_hi and an interval of b for each k, that
                holds the minimiser almost surely
    narrow      one pass adds up the rows that stay on one side of their margin all over the region, where their
                hinges are linear in k and b, and keeps the others
    search      on those, as long as k and b(k) stay in the region

The passes over the rows are the contract `line_rows.LineRows`, so that the rows may lie on other machines.

Reference: V. Franc, S. Sonnenburg, "Optimized Cutting Plane Algorithm for Support Vector Machines", ICML 2008, eq. (7)
and Appendix A. Departs from the paper, which has no intercept of this kind.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite, nextafter, sqrt
from typing import Any, NamedTuple

import numpy as np

from softmargin.problems.base import Hint, PlaneAlong
from softmargin.problems.bracketing import EXPECTED_RADIUS, FARTHEST, Probe, search
from softmargin.problems.breakpoints import (
    DEVIATIONS,
    SAMPLE_ROWS,
    active_part,
    bracket,
    positive,
    reference,
    widening,
    zero,
)
from softmargin.problems.hinges import Hinges
from softmargin.problems.line_rows import LineRows, RowsHere, follow_rows

_FEW_ROWS = 4 * SAMPLE_ROWS  # up to here no sample is taken
_SELECTED_ROWS = 32 * SAMPLE_ROWS  # up to here one thread finds b as fast
MANY_ROWS = 8 * SAMPLE_ROWS  # from here on the region saves more than it costs
_SAMPLE_WIDTH = 0.1  # relative, of the search on the sample
_SLOWER = 1.5  # the derivative of G is taken to grow at least so many times slower beyond the zero than before it


def best_intercept(f: np.ndarray, hinges: Hinges) -> tuple[Hint, float]:
    """An intercept b that minimises the risk, and the risk.

    b is a breakpoint t_i, or the middle of the interval on which the risk is smallest, or the finite end of that
    interval if it has only one (all v have the same sign); 0 without any weight.
    """
    return best_intercept_of(RowsHere(f, f, hinges))


def best_intercept_of(line: LineRows, k: float = 0.0) -> tuple[Hint, float]:
    """The same for f + k df of a line."""
    known, probe = _Intercepts(line).best(k)
    return known, probe.risk


def follow(
    f: np.ndarray,
    df: np.ndarray,
    hinges: Hinges,
    k: float,
    known: Hint,
    k_plane: float,
    f_new: np.ndarray,
    out: np.ndarray,
    bits: np.ndarray,
) -> tuple[float, float, int, float]:
    """f + k df into `f_new` (unless empty); coefficients c_i = -v_i pi_i of the plane at f + k_plane df into `out`.

    The coefficients add up to -total. One bit a row, whether pi_i = 1, goes to `bits`. `known` is of f + k df. Returns
    the risk there, the sum of |c_i|, and the one row whose pi is neither 0 nor 1, with its pi; -1 and 1.0 if none. The
    plane is R >= <c, .> + unit sum_i |c_i|, with equality where it was made.
    """
    from softmargin.problems import _hinge

    lo, hi = inf, -inf
    for wide in plane_brackets(RowsHere(f, df, hinges), k, known, k_plane):
        lo, hi = min(lo, wide[0]), max(hi, wide[1])
        at = k, known.b, k_plane, lo, hi
        (t, q, rows), (risk, balance, constant) = follow_rows(f, df, hinges, at, f_new, out, bits)
        is_inside, b, missing = plane_intercept(t, q, balance + hinges.total, lo, hi)
        if is_inside:
            break
    more, row, fraction = _hinge.complete_plane(t, q, rows, b, missing, out, bits)
    return risk + known.b * hinges.total, constant + more, row, fraction


def plane_intercept(t: np.ndarray, q: np.ndarray, balance: float, lo: float, hi: float) -> tuple[bool, float, float]:
    """Whether the intercept of a plane lies between lo and hi, where it is, and the sum of the coefficients of all
    rows but those that are tied there."""
    from softmargin.problems import _hinge

    is_inside, b, sum_v, *_ = _hinge.settle(t, q, q, -balance, lo, hi, *np.empty((2, t.size)))
    return is_inside, b, balance - sum_v


def minimise_along(
    f: np.ndarray,
    df: np.ndarray,
    hinges: Hinges,
    A0: float,
    B0: float,
    C: float,
    known: Hint | None = None,
    plane: PlaneAlong | None = None,
    width: float = 1e-2,
) -> tuple[float, float, float, Hint]:
    """Enclose the minimiser over k >= 0 of G(k) = 1/2 A0 k^2 + B0 k + C R(f + k df).

    Returns (k, lo, hi, known): the minimiser lies in [lo, hi], hi - lo <= width hi, k is the end with the smaller
    G and `known` is of that end. lo = hi = 0 where G does not fall at 0. The interval may stay [0, hi] where no
    step lowers G by more than rounding, and hi is not an upper bound where A0 = 0 and G falls for ever. The step that
    led to f, which is `known`, and a `plane` that is tight near the minimiser save time.
    """
    return minimise_over(RowsHere(f, df, hinges), A0, B0, C, known, plane, width)


def minimise_over(
    line: LineRows,
    A0: float,
    B0: float,
    C: float,
    known: Hint | None = None,
    plane: PlaneAlong | None = None,
    width: float = 1e-2,
) -> tuple[float, float, float, Hint]:
    """The same for any line."""
    G = _Line(_Intercepts(line), A0, B0, C)
    if plane is None or line.n_rows < MANY_ROWS:
        # Of few rows the probes begin at fixed places: the same rows in another order then take the same path.
        return _search(G, width)
    first = known.step if known is not None and 0.0 < known.step < 1.0 else 1.0
    for region in _regions(line, (A0, B0, C), plane, first):
        (f, df, v), (sum_h, sum_vdf, sum_v) = line.narrowed(region.corners)
        few = _Rows(_Columns(f, df, v, line.unit), (A0, B0, C), (sum_h, sum_vdf, sum_v - line.total))
        lo, hi, _ = few.search(region, width)
        if lo.is_inside and hi.is_inside and (lo.slope < 0.0 <= hi.slope or hi.k == 0.0):
            return _better_end(lo, hi)
    return _search(G, width, first)


def plane_brackets(line: LineRows, k: float, known: Hint, k_plane: float) -> Iterator[tuple[float, float]]:
    """Intervals for the intercept at f + k_plane df, given what is known of f + k df; the last cannot fail."""
    return _Intercepts(line, last=(k, known)).brackets(k_plane, is_sampled=line.n_rows > _FEW_ROWS)


class _Region(NamedTuple):
    """A quadrilateral of (k, b): at the two `ends`, steps k, b lies between `low` and `high`."""

    ends: tuple[float, float]
    low: tuple[float, float] = (-inf, -inf)
    high: tuple[float, float] = (inf, inf)

    @property
    def corners(self) -> tuple[float, float, float, float, float, float]:
        """As `_hinge.narrow` takes them."""
        (k0, k1), (lo0, lo1), (hi0, hi1) = self
        return k0, lo0, hi0, k1, lo1, hi1


@dataclass(frozen=True)
class _Line:
    """G: the quadratic terms, and the risk as a function of k."""

    intercepts: "_Intercepts"
    A0: float
    B0: float
    C: float

    def probe(self, k: float) -> Probe:
        known, at = self.intercepts.best(k)
        value = 0.5 * self.A0 * k * k + self.B0 * k + self.C * at.risk
        return Probe(k, value, self.A0 * k + self.B0 - self.C * at.sum_vdf, self.C * at.size, known)


def _search(line: _Line, width: float, first: float = 1.0) -> tuple[float, float, float, Hint]:
    return _better_end(*search(line.probe, line.probe(0.0), width, first))


def _better_end(lo: Any, hi: Any) -> tuple[float, float, float, Hint]:
    best = lo if lo.value < hi.value else hi
    return best.k, lo.k, hi.k, best.known


class _Columns(NamedTuple):
    """The vectors of some rows, and the size of their targets."""

    f: np.ndarray
    df: np.ndarray
    v: np.ndarray
    unit: float = 1.0


@dataclass(frozen=True)
class _Rows:
    """Rows along which to search, the `terms` A0, B0 and C of G, and what other rows add to the risk.

    `fixed` are the sums of unit |v| - v f, v df and v over those that are active for every k and b in question.
    """

    columns: _Columns
    terms: tuple[float, float, float]
    fixed: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def search(self, region: _Region, width: float) -> tuple[Any, Any, Any]:
        """What `_few_rows.search` finds: probes around the minimiser, and the first one."""
        from softmargin.problems import _few_rows

        columns = self.columns
        work = tuple(np.empty((3, columns.f.size)))
        return _few_rows.search(tuple(columns), self.fixed, self.terms, tuple(region), width, work)


def _regions(line: LineRows, terms: tuple[float, float, float], plane: PlaneAlong, first: float) -> Iterator[_Region]:
    """Where the minimiser is to be expected, judged from a sample of the rows; the second is wider.

    For the rows that are active in the plane the sums of v and v df are known. How these change from there to the
    minimiser is what the sample tells, up to chance; the zero of the derivative of G lies between those of the sample's
    derivative raised and lowered by some standard errors.
    """
    unit = line.unit
    f, df, v, c = line.sample_beside(plane)
    y, ratio = unit * np.sign(v), line.n_rows / f.size
    A0, B0, C = terms
    B0, C = B0 + C * (plane.rise - ratio * float(c @ df)), C * ratio
    few = _Rows(_Columns(f, df, v, unit), (A0, B0, C), (0.0, 0.0, float(c.sum())))
    forward = _Region((0.0, first))
    lo, hi, at_zero = few.search(forward, _SAMPLE_WIDTH)
    best, slope = lo if lo.value < hi.value else hi, at_zero.slope
    changed = active_part(y - (f + best.k * df), v, best.b)
    changed += c
    # The sum of all changes is zero, so df counts from any origin; this one makes the variance small.
    sq = changed * changed
    df_centred = df - float(sq @ df) / max(float(sq.sum()), np.finfo(float).tiny)
    x = changed * df_centred
    variance = max(float(x @ x - x.sum() ** 2 / x.size), float(np.abs(v * df_centred).max() ** 2))
    for deviations in (DEVIATIONS, 4.0 * DEVIATIONS):
        margin = deviations * C * sqrt(variance)
        if best.k > 0.0:
            ends = max(0.0, best.k * (1.0 + margin / slope)), best.k * (1.0 - _SLOWER * margin / slope)
        else:
            falling = replace(few, terms=(A0, B0 - slope - margin, C))
            ends = 0.0, falling.search(forward, _SAMPLE_WIDTH)[1].k
        if not ends[0] < ends[1] < FARTHEST:
            return
        limits = [bracket(y - (f + k * df), v, -c, ratio, 0.0, 0.0, deviations, -inf, inf) for k in ends]
        (low_0, high_0), (low_1, high_1) = limits
        if not isfinite(low_0 + high_0 + low_1 + high_1):
            return  # too few rows of one class for an estimate
        yield _Region(ends, (low_0, low_1), (high_0, high_1))


_Sums = tuple[float, float, float] | list[float]


class _At(NamedTuple):
    """The risk, the size of the terms that it is a sum of, and the sum of pi_i v_i df_i: minus its right derivative."""

    risk: float
    size: float
    sum_vdf: float


class _Intercepts:
    """Best intercepts along f + k df: the rows, a sample of them and what is known from earlier searches."""

    def __init__(self, line: LineRows, last: tuple[float, Hint] | None = None) -> None:
        self._line = line
        self._is_few = line.is_here and line.n_rows <= _SELECTED_ROWS
        self._last = last
        self._found: dict[float, tuple[Hint, _At]] = {}

    @cached_property
    def _sample(self) -> list[np.ndarray]:
        return self._line.sample(SAMPLE_ROWS)

    @cached_property
    def _everything(self) -> list[np.ndarray]:
        """f, df, v and targets of all rows."""
        f, df, v = self._line.everything()
        return [f, df, v, self._line.unit * np.sign(v)]

    def best(self, k: float) -> tuple[Hint, "_At"]:
        """The best b at f + k df, and the risk there."""
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
        radius = EXPECTED_RADIUS * abs(b_above - b_below)
        return nextafter(b - radius, -inf), nextafter(b + radius, inf)

    def _best(self, k: float) -> tuple[Hint, _At]:
        from softmargin.problems import _hinge

        total = self._line.total
        near = self._expected(k)
        lo, hi = inf, -inf
        for wide in self._intervals(k, near):
            lo, hi = min(lo, wide[0]), max(hi, wide[1])
            ref = reference(lo, hi)
            if self._is_few:
                t, v, df, (sum_v, sum_vdf, sum_vt) = self._all(k)
            else:
                (t, v, df), (sum_v, sum_vdf, sum_vt) = self._line.between(k, ref, lo, hi)
            sum_v -= total
            found = _hinge.settle(t, v, df, sum_v, lo, hi, *np.empty((2, t.size)))
            is_inside, b, more_v, more_vdf, more_vt, n_ties, tied_df = found
            if is_inside:
                break
            if wide is near:  # b may be far away: no end of the next interval
                lo, hi = inf, -inf
        all_v = sum_v + more_v
        if n_ties == 1:
            more_vdf -= all_v * tied_df
        elif n_ties > 1:
            ties = np.flatnonzero((t == b) & (v != 0.0))
            more_vdf += tied_slope(v[ties], df[ties], all_v)
        risk = sum_vt + ref * total - (b - ref) * sum_v + more_vt
        return Hint(b, all_v, k), _At(risk, risk + 2.0 * abs(b * total), sum_vdf + more_vdf)

    def _all(self, k: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, _Sums]:
        """Breakpoints, v and df of all rows."""
        f, df, v, y = self._everything
        t = k * df
        t += f
        np.subtract(y, t, out=t)
        return t, v, df, (0.0, 0.0, 0.0)

    def _intervals(self, k: float, near: tuple[float, float] | None) -> Iterator[tuple[float, float]]:
        """Intervals for b in the order in which to try them; the last cannot fail."""
        if near is not None:
            yield near
        yield from self.brackets(k, is_sampled=not self._is_few)

    def brackets(self, k: float, *, is_sampled: bool) -> Iterator[tuple[float, float]]:
        """Intervals for b, judged from a sample of the rows and made as they are asked for; the last cannot fail."""
        known: np.ndarray | None = None
        slope = self._line.total
        if is_sampled:
            f, df, v = self._sample
            y = self._line.unit * np.sign(v)
            t = y - (f + k * df)
            if self._last is not None:
                last_k, last = self._last
                known, slope = active_part(y - (f + last_k * df), v, last.b), -last.sum_v
        for deviations in widening(is_sampled):
            if deviations < inf:
                yield bracket(t, v, known, self._line.n_rows / v.size, slope, 0.0, deviations, -inf, inf)
            else:
                yield -inf, inf


def tied_slope(v: np.ndarray, df: np.ndarray, balance: float) -> float:
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
