"""The hinge risk, its cutting plane, the best intercept and the line search, in few passes over the rows.

    R(f) = sum_i max(0, |v_i| - v_i f_i)                                   no intercept
    R(f) = min over b of sum_i max(0, |v_i| - v_i (f_i + b))               free intercept
    G(k) = 1/2 A0 k^2 + B0 k + C R(f + k df),  k >= 0                      the search of OCAS

f = X w, and v_i = s_i y_i carries the weight and the label of row i; v_i = 0 leaves the row out. The
derivatives of R by b and of G by k rise at one breakpoint a row, so each minimiser is a weighted selection: a
sample of the rows gives an interval, one pass adds up the rows outside it and copies out the few inside, and
quickselect ends it. With a free intercept G has no such breakpoints; its minimiser is enclosed by probes,
each of which selects b(k) and returns the right derivative of G.

Reference: V. Franc, S. Sonnenburg, "Optimized Cutting Plane Algorithm for Support Vector Machines", ICML
2008, eq. (7) and Appendix A.
Symbols: A_0, B_0 -> A0, B0; B_i -> -C v_i df_i; C_i -> C (|v_i| - v_i f_i).
Departs from the paper: selection in linear time instead of sorting; row weights; a free intercept, minimised
inside R.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum, inf
from typing import Any, Protocol

import numpy as np

_BLOCK_ROWS = 65_536
_SAMPLE_ROWS = 4_096
_DEVIATIONS = 3.0  # of the sample's derivative: about one search in 400 has to scan again
_GUESS_WIDTH = 1e-9  # relative; an intercept guessed better than this is confirmed without a sample
_FARTHEST = 1e30  # a step at which G still falls is taken for unbounded
_ROUNDING = 1e-16
_BALANCE_TOLERANCE = 1e-9


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


def pattern(f: np.ndarray, v: np.ndarray, workers: RowWorkers, out: np.ndarray) -> float:
    """Coefficients c of the plane at f into `out`; returns the constant e: R >= <c, .> + e, equal at f."""
    from softmargin.problems import _hinge

    return fsum(workers.map(lambda lo, hi: _hinge.pattern(f[lo:hi], v[lo:hi], out[lo:hi]), row_blocks(f.size)))


def best_intercept(
    f: np.ndarray, v: np.ndarray, workers: RowWorkers, guess: float | None = None
) -> tuple[float, float]:
    """The intercept b that minimises the risk, and the risk.

    b is a breakpoint y_i - f_i, or the middle of the interval on which the risk is smallest, or the finite
    end of that interval where only one class has weight; 0 without any weight. A `guess` saves time if it is
    b up to rounding and costs a pass if it is not.
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

    parts = workers.map(lambda lo, hi: _hinge.strict_pattern(f[lo:hi], v[lo:hi], b, lo, out[lo:hi]), row_blocks(f.size))
    balance, constant, weight = (fsum(p[s] for p in parts) for s in (1, 2, 3))
    ties = _joined(parts, 0)
    balance, added, row, fraction = _hinge.fill_ties(v, ties, balance, out)
    if abs(balance) > _BALANCE_TOLERANCE * weight:
        raise ValueError(
            f"b={b!r} does not minimise the risk at these outputs: pass what best_intercept returns for them."
        )
    return constant + added, row, fraction


def minimise_along(
    f: np.ndarray, df: np.ndarray, v: np.ndarray, A0: float, B0: float, C: float, workers: RowWorkers
) -> float:
    """The exact minimiser over k >= 0 of G(k) = 1/2 A0 k^2 + B0 k + C sum max(0, |v_i| - v_i (f_i + k df_i)).

    Where A0 = 0 and G falls for ever or stays constant from some k on, the last breakpoint.
    """
    from softmargin.problems import _hinge

    n = f.size
    blocks = row_blocks(n)
    sample = None
    if n > 4 * _SAMPLE_ROWS:
        rows = _hinge.sample_rows(n, _SAMPLE_ROWS)
        q = v[rows] * df[rows]
        with np.errstate(over="ignore"):
            t = np.divide(np.sign(v[rows]) - f[rows], df[rows], out=np.full(rows.size, inf), where=q != 0.0)
        sample = t, q
    lo, hi = inf, 0.0
    left_fails = right_fails = True
    for deviations in _widening(sample is not None):
        wide = (0.0, inf)
        if sample is not None and deviations < inf:
            wide = _hinge.bracket(*sample, np.zeros(_SAMPLE_ROWS), C * n / _SAMPLE_ROWS, B0, A0, deviations, 0.0, inf)
        lo = min(lo, wide[0]) if left_fails else lo
        hi = max(hi, wide[1]) if right_fails else hi
        parts = workers.map(lambda i, j, lo=lo, hi=hi: _hinge.scan_steps(f[i:j], df[i:j], v[i:j], lo, hi), blocks)
        outside, rise, fall = (fsum(p[s] for p in parts) for s in (2, 3, 4))
        slope = B0 - C * (outside + rise)
        if lo == 0.0 and slope >= 0.0:
            return 0.0
        left_fails = lo > 0.0 and A0 * lo + slope >= 0.0
        right_fails = hi < inf and A0 * hi + B0 - C * (outside + fall) <= 0.0
        if not (left_fails or right_fails):
            break
    return _hinge.zero(_joined(parts, 0), C * np.abs(_joined(parts, 1)), slope, A0, lo, hi)


def minimise_along_free(
    f: np.ndarray,
    df: np.ndarray,
    v: np.ndarray,
    A0: float,
    B0: float,
    C: float,
    workers: RowWorkers,
    width: float = 1e-2,
) -> tuple[float, float, float, float]:
    """Enclose the minimiser over k >= 0 of G(k) = 1/2 A0 k^2 + B0 k + C (min over b of the risk at f + k df).

    Returns (k, lo, hi, b): the minimiser lies in [lo, hi], hi - lo <= width hi, k is the end with the smaller
    G and b its best intercept. lo = hi = 0 where G does not fall at 0. The interval may stay [0, hi] where no
    step lowers G by more than rounding, and hi is not an upper bound where A0 = 0 and G falls for ever.
    """
    intercepts = _Intercepts(f, df, v, workers)

    def probe(k: float) -> _Probe:
        b, value, sum_vdf = intercepts.best(k)
        return _Probe(k, b, value, 0.5 * A0 * k * k + B0 * k + C * value, A0 * k + B0 - C * sum_vdf)

    lo = probe(0.0)
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
        from softmargin.problems import _hinge

        self._f, self._df, self._v, self._workers = f, df, v, workers
        self._blocks = row_blocks(f.size)
        self._sample = None
        if f.size > 4 * _SAMPLE_ROWS:
            chosen = _hinge.sample_rows(f.size, _SAMPLE_ROWS)
            self._sample = f[chosen], df[chosen], v[chosen]
        self._known, self._known_sum = np.zeros(_SAMPLE_ROWS), 0.0  # of the last b, see `_hinge.bracket`

    def best(self, k: float, guess: float | None = None) -> tuple[float, float, float]:
        """The best b at f + k df, the risk, and the sum of pi_i v_i df_i: minus its right derivative by k."""
        from softmargin.problems import _hinge

        sample = None
        if self._sample is not None:
            f, df, v = self._sample
            sample = np.sign(v) - (f + k * df), v
        lo, hi = inf, -inf
        left_fails = right_fails = True
        for wide in self._brackets(sample, guess):
            lo = min(lo, wide[0]) if left_fails else lo
            hi = max(hi, wide[1]) if right_fails else hi
            parts = self._scan(k, lo, hi)
            sum_v, sum_vdf, sum_vt, rise, fall = (fsum(p[s] for p in parts) for s in range(2, 7))
            left_fails = lo > -inf and sum_v + rise <= 0.0
            right_fails = hi < inf and sum_v + fall >= 0.0
            if not (left_fails or right_fails):
                break
        t, rows = _joined(parts, 0), _joined(parts, 1)
        v, df = self._v[rows], self._df[rows]
        b = _hinge.zero(t.copy(), np.abs(v), -(sum_v + rise), 0.0, lo, hi)
        more_v, more_vdf, more_vt, n_ties = _hinge.active_sums(t, v, df, b)
        if n_ties > 0:
            ties = np.flatnonzero(t == b)
            more_vdf += _tied_slope(v[ties], df[ties], sum_v + more_v)
        if sample is not None:
            self._known, self._known_sum = _active(*sample, b), sum_v + more_v
        return b, sum_vt - (b - _reference(lo, hi)) * sum_v + more_vt, sum_vdf + more_vdf

    def _brackets(
        self, sample: tuple[np.ndarray, np.ndarray] | None, guess: float | None
    ) -> Iterator[tuple[float, float]]:
        """Intervals for b in the order in which to try them, made as they are asked for."""
        from softmargin.problems import _hinge

        if guess is not None:
            radius = _GUESS_WIDTH * (1.0 + abs(guess))
            yield guess - radius, guess + radius
        for deviations in _widening(sample is not None):
            if sample is not None and deviations < inf:
                ratio = self._f.size / _SAMPLE_ROWS
                yield _hinge.bracket(*sample, self._known, ratio, -self._known_sum, 0.0, deviations, -inf, inf)
            else:
                yield -inf, inf

    def _scan(self, k: float, lo: float, hi: float) -> list[tuple]:
        """What `scan_intercepts` returns for each block."""
        from softmargin.problems import _hinge

        f, df, v, ref = self._f, self._df, self._v, _reference(lo, hi)
        return self._workers.map(
            lambda i, j: _hinge.scan_intercepts(f[i:j], df[i:j], v[i:j], k, lo, hi, ref, i), self._blocks
        )


def _active(t: np.ndarray, v: np.ndarray, b: float) -> np.ndarray:
    """v_i where row i is active at the intercept b, else 0."""
    return np.where(np.where(v > 0.0, t > b, t < b), v, 0.0)


def _tied_slope(v: np.ndarray, df: np.ndarray, balance: float) -> float:
    """Sum of pi_i v_i df_i over rows tied at the best b, where balance + sum of pi_i v_i = 0.

    As k grows the breakpoints of these rows move by -df_i: which are active is a selection of its own. It
    makes the sum that of the right derivative by k; any other balanced pi gives some subgradient.
    """
    from softmargin.problems import _hinge

    rise = float(v[v > 0.0].sum())
    turn = _hinge.zero(-df, np.abs(v), -(balance + rise), 0.0, -inf, inf)
    active = _active(-df, v, turn)
    # Rows that stay tied have df = -turn and add up to what is missing.
    return float((active * df).sum() + (balance + active.sum()) * turn)


def _joined(parts: list[tuple], position: int) -> np.ndarray:
    """One array of the arrays that the blocks returned."""
    return np.concatenate([part[position] for part in parts])


def _reference(lo: float, hi: float) -> float:
    """A finite number in [lo, hi]; sums of t measured from it do not cancel."""
    if lo == -inf:
        return hi if hi < inf else 0.0
    return lo if hi == inf else 0.5 * (lo + hi)
