"""The hinge risk, its cutting plane, the best intercept and the line search, in few passes over the rows.

    R(f) = sum_i max(0, |v_i| - v_i f_i)                                   no intercept
    R(f) = min over b of sum_i max(0, |v_i| - v_i (f_i + b))               free intercept
    G(k) = 1/2 A0 k^2 + B0 k + C R(f + k df),  k >= 0                      the search of OCAS

f = X w, and v_i = s_i y_i carries the weight and the label of row i; v_i = 0 leaves the row out.

Every search is the same problem: the zero of the derivative of a convex function of one number x (a step k or
an intercept b). A row with signed weight q_i contributes -q_i to the derivative while it is active: for
x < t_i if q_i > 0, for x > t_i if q_i < 0. So the derivative rises by |q_i| at the breakpoint t_i. Along a
step, t_i = (y_i - f_i) / df_i and q_i = v_i df_i; for the intercept, t_i = y_i - f_i and q_i = v_i.

    sample      a few rows give an interval (lo, hi) that holds the zero of the derivative almost surely
    scan        one pass adds up the rows that are certainly active and finds the rows with lo < t_i < hi
    select      quickselect on those few, carrying the derivative

Whether a row is active is decided by comparing t_i with other breakpoints, never by a margin computed again.
With a free intercept G has no such breakpoints; its minimiser is enclosed by probes, each of which selects
b(k) and returns the right derivative of G.

References: V. Franc, S. Sonnenburg, "Optimized Cutting Plane Algorithm for Support Vector Machines", ICML
2008, eq. (7) and Appendix A; R. W. Floyd, R. L. Rivest, "Expected Time Bounds for Selection", Communications
of the ACM 18(3), 1975.
Symbols: A_0, B_0 -> A0, B0; B_i -> -C v_i df_i; C_i -> C (|v_i| - v_i f_i).
Departs from the papers: selection in linear time instead of sorting; row weights; a free intercept, minimised
inside R; the interval comes from the sample's standard error; places in the sample are irregular but fixed,
so that equal data give equal bits.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum, inf, nextafter, sqrt
from typing import Any, Protocol

import numpy as np

_BLOCK_ROWS = 65_536
_SAMPLE_ROWS = 2_048
_SELECTED_ROWS = 12_288  # up to here quickselect alone is as fast
_DEVIATIONS = 3.0  # of the sample's derivative: about one search in 400 has to scan again
_GUESS_WIDTH = 1e-9  # relative; an intercept guessed better than this is confirmed without a sample
_FARTHEST = 1e30  # a step at which G still falls is taken for unbounded
_ROUNDING = 1e-16
_BALANCE_TOLERANCE = 1e-9

# Irregular places, one in each interval (j, j + 1): the fractional parts of a quadratic sequence.
_PLACES = np.arange(_SAMPLE_ROWS) + np.arange(_SAMPLE_ROWS) ** 2 * 0.6180339887498949 % 1.0


class RowWorkers(Protocol):
    """What the searches need of `softmargin.core.threads.Workers`."""

    def map(self, function: Callable[..., Any], blocks: Sequence[tuple]) -> list: ...


def row_blocks(n: int) -> list[tuple[int, int]]:
    """Blocks of rows (lo, hi) that depend on n alone, so that sums do not depend on the number of threads."""
    return [(lo, min(lo + _BLOCK_ROWS, n)) for lo in range(0, n, _BLOCK_ROWS)]


def risk(f: np.ndarray, v: np.ndarray, workers: RowWorkers) -> float:
    """Sum of max(0, |v_i| - v_i f_i)."""
    from softmargin.problems import _hinge

    return fsum(workers.map(lambda lo, hi: _hinge.risk(f[lo:hi], v[lo:hi]), row_blocks(f.size)))


def pattern(
    f: np.ndarray, v: np.ndarray, workers: RowWorkers, out: np.ndarray, df: np.ndarray | None = None, k: float = 0.0
) -> float:
    """Coefficients c of the plane at f + k df into `out`; returns its constant e: R >= <c, .> + e, equal there."""
    from softmargin.problems import _hinge

    step = f if df is None else df

    def block(lo: int, hi: int) -> float:
        return _hinge.pattern(f[lo:hi], step[lo:hi], k, v[lo:hi], out[lo:hi])

    return fsum(workers.map(block, row_blocks(f.size)))


def best_intercept(
    f: np.ndarray, v: np.ndarray, workers: RowWorkers, guess: float | None = None
) -> tuple[float, float]:
    """An intercept b that minimises the risk, and the risk.

    b is a breakpoint y_i - f_i, or the middle of the interval on which the risk is smallest, or the finite
    end of that interval where only one class has weight; 0 without any weight. A `guess` saves time if it
    minimises the risk up to rounding, and then b is the guess up to rounding; otherwise it costs a pass.
    """
    b, value, _ = _Intercepts(f, f, v, workers).best(0.0, guess)
    return b, value


def balanced_pattern(
    f: np.ndarray, v: np.ndarray, b: float, workers: RowWorkers, out: np.ndarray
) -> tuple[float, int, float]:
    """Coefficients c_i = -v_i pi_i of the plane at f for the free intercept into `out`; they add up to 0.

    `b` is what `best_intercept` returned for the same f. Returns the constant e = sum of |v_i| pi_i, so that
    R >= <c, .> + e with equality at f, and the one row whose pi is neither 0 nor 1, with its pi; -1 and 1.0
    if none.
    """
    from softmargin.problems import _hinge

    blocks = row_blocks(f.size)
    parts = workers.map(lambda lo, hi: _hinge.strict_pattern(f[lo:hi], v[lo:hi], b, out[lo:hi]), blocks)
    balance, constant, weight = (fsum(p[s] for p in parts) for s in (1, 2, 3))
    row, fraction = -1, 1.0
    for (lo, hi), part in zip(blocks, parts, strict=True):
        if part[0] == 0:
            continue
        ties = lo + np.flatnonzero(np.isnan(out[lo:hi]))
        out[ties] = 0.0
        # Activate tied rows in turn until the sum of c is 0; the last one by the fraction that is missing.
        ties = ties[(v[ties] > 0.0) == (balance > 0.0)]  # by sign: a product of tiny weights would be 0
        weights = np.abs(v[ties])
        filled = weights.cumsum()
        whole = int(filled.searchsorted(abs(balance), side="right"))
        out[ties[:whole]] = -v[ties[:whole]]
        done = float(filled[whole - 1]) if whole > 0 else 0.0
        rest = abs(balance) - done
        if whole < ties.size and rest > 0.0:
            row, fraction = int(ties[whole]), rest / float(weights[whole])
            out[row] = -fraction * v[row]
            done, rest = abs(balance), 0.0
        constant += done
        balance = rest if balance > 0.0 else -rest
    if abs(balance) > _BALANCE_TOLERANCE * weight:
        raise ValueError(
            f"b={b!r} does not minimise the risk at these outputs: pass what best_intercept returns for them."
        )
    return constant, row, fraction


def minimise_along(
    f: np.ndarray, df: np.ndarray, v: np.ndarray, A0: float, B0: float, C: float, workers: RowWorkers
) -> float:
    """The exact minimiser over k >= 0 of G(k) = 1/2 A0 k^2 + B0 k + C sum max(0, |v_i| - v_i (f_i + k df_i)).

    Where A0 = 0 and G falls for ever or stays constant from some k on, the last breakpoint.
    """
    from softmargin.problems import _hinge

    n = f.size
    sample = None
    if n > 4 * _SAMPLE_ROWS:
        f_few, df_few, v_few = _sampled(f, df, v, size=_SAMPLE_ROWS)
        q = v_few * df_few
        with np.errstate(over="ignore"):
            t = np.divide(np.sign(v_few) - f_few, df_few, out=np.full(q.size, inf), where=q != 0.0)
        sample = t, q
    lo, hi = inf, 0.0
    left_fails = right_fails = True
    for deviations in _widening(sample is not None):
        wide = (0.0, inf)
        if sample is not None and deviations < inf:
            wide = _bracket(*sample, 0.0, C * n / _SAMPLE_ROWS, B0, A0, deviations, 0.0, inf)
        lo = min(lo, wide[0]) if left_fails else lo
        hi = max(hi, wide[1]) if right_fails else hi
        t, rows, (sum_q,) = _scan(_hinge.scan_steps, (f, df, v), (lo, hi), workers)
        q = _taken(v, rows) * _taken(df, rows)
        slope = B0 - C * (sum_q + _positive(q))
        if lo == 0.0 and slope >= 0.0:
            return 0.0
        left_fails = lo > 0.0 and A0 * lo + slope >= 0.0
        right_fails = hi < inf and A0 * hi + B0 - C * (sum_q - _positive(-q)) <= 0.0
        if not (left_fails or right_fails):
            break
    return _zero(t, C * np.abs(q), slope, A0, lo, hi)


def minimise_along_free(
    f: np.ndarray,
    df: np.ndarray,
    v: np.ndarray,
    A0: float,
    B0: float,
    C: float,
    workers: RowWorkers,
    width: float = 1e-2,
    guess: float | None = None,
) -> tuple[float, float, float, float]:
    """Enclose the minimiser over k >= 0 of G(k) = 1/2 A0 k^2 + B0 k + C (min over b of the risk at f + k df).

    Returns (k, lo, hi, b): the minimiser lies in [lo, hi], hi - lo <= width hi, k is the end with the smaller
    G and b its best intercept. lo = hi = 0 where G does not fall at 0. The interval may stay [0, hi] where no
    step lowers G by more than rounding, and hi is not an upper bound where A0 = 0 and G falls for ever.
    `guess` is one for the best intercept at f, as in `best_intercept`.
    """
    intercepts = _Intercepts(f, df, v, workers)

    def probe(k: float, guess: float | None = None) -> _Probe:
        b, value, sum_vdf = intercepts.best(k, guess)
        return _Probe(k, b, value, 0.5 * A0 * k * k + B0 * k + C * value, A0 * k + B0 - C * sum_vdf)

    lo = probe(0.0, guess)
    if lo.slope >= 0.0:
        return 0.0, 0.0, 0.0, lo.b
    hi = probe(1.0)
    factor = 2.0
    while hi.slope < 0.0 and hi.k < _FARTHEST:
        lo, hi = hi, probe(factor * hi.k)
        factor = min(factor * factor, 1e6)
    shrink = _Shrink(lo.slope, hi.slope)
    while hi.slope >= 0.0 and hi.k - lo.k > width * hi.k:
        if lo.k == 0.0 and (-lo.slope * hi.k <= _ROUNDING * C * lo.risk or hi.k < 1.0 / _FARTHEST):
            break  # no step in (0, hi) lowers G by more than rounding
        k = shrink.next(lo, hi, width)
        if not lo.k < k < hi.k:
            break  # neighbouring numbers
        new = probe(k)
        if new.slope < 0.0:
            lo = new
        else:
            hi = new
        shrink.tell(new.slope)
    best = lo if lo.value < hi.value else hi
    return best.k, lo.k, hi.k, best.b


def _widening(sampled: bool) -> tuple[float, ...]:
    """Standard errors to try in turn; the last interval cannot fail."""
    return (_DEVIATIONS, 4.0 * _DEVIATIONS, inf) if sampled else (inf,)


@dataclass(frozen=True)
class _Probe:
    """A step k, its best intercept and risk, and the value and right derivative of G there."""

    k: float
    b: float
    risk: float
    value: float
    slope: float


class _Shrink:
    """Chooses the next probe between two ends where the derivative of G has opposite signs.

    The Illinois rule is fast where the derivative is smooth; where it jumps, the tangents meet at the jump; a
    bisection now and then makes the number of probes certain.
    """

    def __init__(self, slope_lo: float, slope_hi: float) -> None:
        self._slope_lo, self._slope_hi = slope_lo, slope_hi
        self._last_side = 0
        self._count = 0

    def next(self, lo: _Probe, hi: _Probe, width: float) -> float:
        self._count += 1
        if self._count < 5:
            k = lo.k + (hi.k - lo.k) * (self._slope_lo / (self._slope_lo - self._slope_hi))
        elif self._count % 2 == 1:
            k = lo.k + (lo.value - hi.value + hi.slope * (hi.k - lo.k)) / (hi.slope - lo.slope)
        else:
            k = 0.5 * (lo.k + hi.k) if lo.k > hi.k / 16 else max(4.0 * lo.k, hi.k / 16)
        margin = min(0.45 * width * hi.k, 0.5 * (hi.k - lo.k))  # two probes this far around the zero end it
        return min(max(k, lo.k + margin), hi.k - margin)

    def tell(self, slope: float) -> None:
        """Take in the derivative at the probe; the value of an end that stays twice in a row counts half."""
        if slope < 0.0:
            self._slope_lo = slope
            self._slope_hi *= 0.5 if self._last_side < 0 else 1.0
            self._last_side = -1
        else:
            self._slope_hi = slope
            self._slope_lo *= 0.5 if self._last_side > 0 else 1.0
            self._last_side = 1


class _Intercepts:
    """Best intercepts along f + k df: the rows, a sample of them and what the last search knows."""

    def __init__(self, f: np.ndarray, df: np.ndarray, v: np.ndarray, workers: RowWorkers) -> None:
        self._f, self._df, self._v, self._workers = f, df, v, workers
        self._sample: list[np.ndarray] = []
        self._last: tuple[float, float, float] | None = None  # k, b and the sum of v over the active rows

    def best(self, k: float, guess: float | None = None) -> tuple[float, float, float]:
        """The best b at f + k df, the risk, and the sum of pi_i v_i df_i: minus its right derivative by k."""
        from softmargin.problems import _hinge

        lo, hi = inf, -inf
        left_fails = right_fails = True
        for wide, is_guess in self._brackets(k, guess):
            lo = min(lo, wide[0]) if left_fails else lo
            hi = max(hi, wide[1]) if right_fails else hi
            ref = _reference(lo, hi)
            arguments = (k, ref, lo, hi)
            t, rows, (sum_v, sum_vdf, sum_vt) = _scan(
                _hinge.scan_intercepts, (self._f, self._df, self._v), arguments, self._workers
            )
            v = _taken(self._v, rows)
            at_lo, at_hi = -sum_v - _positive(v), -sum_v + _positive(-v)
            if is_guess and not at_lo <= 0.0 <= at_hi:
                lo, hi = inf, -inf  # far from b: no end of the next interval
                continue
            left_fails = not is_guess and lo > -inf and at_lo >= 0.0
            right_fails = not is_guess and hi < inf and at_hi <= 0.0
            if not (left_fails or right_fails):
                break
        df = _taken(self._df, rows)
        b = _zero(t, np.abs(v), at_lo, 0.0, lo, hi)
        more_v, more_vdf, more_vt = _hinge.active_sums(t, v, df, b)
        ties = np.flatnonzero(t == b)
        if ties.size > 0:
            more_vdf += _tied_slope(v[ties], df[ties], sum_v + more_v)
        self._last = k, b, sum_v + more_v
        return b, sum_vt - (b - ref) * sum_v + more_vt, sum_vdf + more_vdf

    def _brackets(self, k: float, guess: float | None) -> Iterator[tuple[tuple[float, float], bool]]:
        """Intervals for b in the order in which to try them, made as they are asked for; True: of the guess."""
        n = self._f.size
        sampled = n > 4 * _SAMPLE_ROWS
        if guess is not None and sampled:
            radius = _GUESS_WIDTH * (1.0 + abs(guess))
            yield (guess - radius, guess + radius), True
        known: np.ndarray | float = 0.0
        slope = 0.0
        if sampled:
            self._sample = self._sample or _sampled(self._f, self._df, self._v, size=_SAMPLE_ROWS)
            f, df, v = self._sample
            y = np.sign(v)
            t = y - (f + k * df)
            if self._last is not None:
                last_k, last_b, total = self._last
                known, slope = _active(y - (f + last_k * df), v, last_b), -total
        for deviations in _widening(sampled):
            if deviations < inf:
                yield _bracket(t, v, known, n / _SAMPLE_ROWS, slope, 0.0, deviations, -inf, inf), False
            else:
                yield (-inf, inf), False


def _tied_slope(v: np.ndarray, df: np.ndarray, balance: float) -> float:
    """Sum of pi_i v_i df_i over rows tied at the best b, where balance + sum of pi_i v_i = 0.

    As k grows the breakpoints of these rows move by -df_i: which are active is a selection of its own. It
    makes the sum that of the right derivative by k; any other balanced pi gives some subgradient.
    """
    if v.size == 1 or df.min() == df.max():
        return -balance * float(df[0])
    turn = _zero(-df, np.abs(v), -balance - _positive(v), 0.0, -inf, inf)
    active = _active(-df, v, turn)
    # Rows that stay tied have df = -turn and add up to what is missing.
    return float((active * df).sum() + (balance + active.sum()) * turn)


def _scan(
    scan: Callable[..., tuple], columns: tuple[np.ndarray, ...], arguments: tuple, workers: RowWorkers
) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Breakpoints and numbers of the rows inside the interval, and the sums that a scan of `_hinge` returns."""

    def block(i: int, j: int) -> tuple:
        t, inside = np.empty(j - i), np.empty(j - i, dtype=np.int64)
        count, *sums = scan(*(column[i:j] for column in columns), *arguments, t, inside)
        inside = inside[:count]
        return _taken(t, inside), inside + i if i > 0 else inside, sums

    parts = workers.map(block, row_blocks(columns[0].size))
    if len(parts) == 1:
        return parts[0]
    t, rows = (np.concatenate([part[s] for part in parts]) for s in (0, 1))
    return t, rows, [fsum(sums) for sums in zip(*(part[2] for part in parts), strict=True)]


def _taken(column: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """These rows, in ascending order, of a column; the column itself if that is all of them."""
    return column if rows.size == column.size else column.take(rows)


def _sampled(*columns: np.ndarray, size: int) -> list[np.ndarray]:
    """One row from each of `size` equal parts of the rows, at irregular places."""
    rows = (_PLACES[:size] * (columns[0].size / size)).astype(np.int64)
    return [column.take(rows) for column in columns]


def _bracket(
    t: np.ndarray,
    q: np.ndarray,
    known: np.ndarray | float,
    ratio: float,
    slope: float,
    curve: float,
    deviations: float,
    lo: float,
    hi: float,
) -> tuple[float, float]:
    """An interval inside (lo, hi) that holds the zero of the derivative of all rows, judged from a sample.

    Each row of the sample stands for `ratio` rows. `known` are the contributions of its rows at another
    point, where `slope` is the derivative of all rows: only the difference from them is subject to chance.
    Without such a point, `known` is 0 and `slope` is the part of the derivative that no row contributes. In
    the interval the sample's derivative lies within `deviations` standard errors of zero.
    """
    from softmargin.problems import _hinge

    inside = np.flatnonzero((t > lo) & (t < hi))
    inner, jumps = t.take(inside), ratio * np.abs(q.take(inside))
    slope -= ratio * float((q * ((t > lo) == (q > 0.0)) - known).sum())
    low, high, rest = _hinge.zero_piece(inner.copy(), jumps.copy(), slope, curve, lo, hi)
    x = _active(t, q, _point(low, high, rest, curve)) - known
    # Not below that of one row: a sample in which nothing is active proves little.
    variance = max(float((x * x).sum() - x.sum() ** 2 / x.size), float((q * q).sum() / x.size))
    margin = deviations * ratio * sqrt(variance)
    low = _hinge.zero_piece(inner.copy(), jumps.copy(), slope + margin, curve, lo, hi)[0]
    high = _hinge.zero_piece(inner, jumps, slope - margin, curve, lo, hi)[1]
    # Breakpoints equal to an end belong inside: many rows may share one.
    return max(lo, nextafter(low, -inf)), min(hi, nextafter(high, inf))


def _zero(t: np.ndarray, w: np.ndarray, slope: float, curve: float, lo: float, hi: float) -> float:
    """The zero of slope + curve x + (sum of w_i, t_i < x), breakpoints between lo and hi; may destroy w.

    Long arrays are first narrowed as in a scan: a sample, an interval, a copy of what is inside.
    """
    from softmargin.problems import _hinge

    n = t.size + 1
    while _SELECTED_ROWS < t.size < n:
        n = t.size
        t_few, w_few = _sampled(t, w, size=_SAMPLE_ROWS // 4)
        total = float(w.sum())
        low, high = _bracket(t_few, w_few, 0.0, n / t_few.size, slope + total, curve, _DEVIATIONS, lo, hi)
        rows = np.empty(n, dtype=np.int64)
        count, below = _hinge.find_between(t, w, low, high, rows)
        inside = rows[:count]
        near = w.take(inside)
        left_fails = low > lo and slope + below + curve * low >= 0.0
        right_fails = high < hi and slope + below + float(near.sum()) + curve * high <= 0.0
        if not (left_fails or right_fails):
            t, w, slope, lo, hi = t.take(inside), near, slope + below, low, high
    lo, hi, slope = _hinge.zero_piece(t.copy(), w, slope, curve, lo, hi)
    return _point(lo, hi, slope, curve)


def _point(lo: float, hi: float, slope: float, curve: float) -> float:
    """The zero of the derivative in a piece of `zero_piece`; the middle or the finite end of a flat one."""
    if lo == hi:
        return lo
    if curve > 0.0:
        return min(max(-slope / curve, lo), hi)
    if lo == -inf and hi == inf:
        return 0.0
    if lo == -inf or (slope < 0.0 and hi < inf):
        return hi
    if hi == inf or slope > 0.0:
        return lo
    return 0.5 * (lo + hi)


def _active(t: np.ndarray, q: np.ndarray, x: float) -> np.ndarray:
    """q_i where row i is active at x, else 0."""
    return q * (((t > x) == (q > 0.0)) & (t != x))


def _positive(q: np.ndarray) -> float:
    """Sum of the positive q_i."""
    return float(np.maximum(q, 0.0).sum())


def _reference(lo: float, hi: float) -> float:
    """A finite number in [lo, hi]; sums of t measured from it do not cancel."""
    if lo == -inf:
        return hi if hi < inf else 0.0
    return lo if hi == inf else 0.5 * (lo + hi)
