"""Zeros of the derivative of a convex, piecewise quadratic function of one number, in few passes over the rows.

A row with signed weight q_i contributes -q_i to the derivative while it is active: for x < t_i if q_i > 0, for
x > t_i if q_i < 0. So the derivative rises by |q_i| at the breakpoint t_i.

    sample      a few rows give an interval (lo, hi) that holds the zero of the derivative almost surely
    scan        one pass adds up the rows that are certainly active and finds the rows with lo < t_i < hi
    select      quickselect on those few, carrying the derivative

Whether a row is active is decided by comparing t_i with other breakpoints, never by a margin computed again.

Reference: R. W. Floyd, R. L. Rivest, "Expected Time Bounds for Selection", Communications of the ACM 18(3), 1975.
Departs from it: weights and a quadratic term; the interval comes from the sample's standard error; places in the sample
are irregular but fixed, so that equal data give equal bits.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import fsum, inf, nextafter
from typing import Any, Protocol

import numpy as np

SAMPLE_ROWS = 2_048
DEVIATIONS = 3.0  # of the sample's derivative: about one search in 400 has to scan again
_BLOCK_ROWS = 65_536
_CHUNK_ROWS = 1_024  # of compiled code
_SELECTED_ROWS = 12_288  # up to here quickselect alone is as fast
_ZEROS = np.empty(0)  # what compiled code takes for a vector of zeros

# Irregular places, one in each interval (j, j + 1): the fractional parts of a quadratic sequence.
_PLACES = np.arange(4 * SAMPLE_ROWS) + np.arange(4 * SAMPLE_ROWS) ** 2 * 0.6180339887498949 % 1.0


class RowWorkers(Protocol):
    """What the searches need of `softmargin.core.threads.Workers`."""

    def map(self, function: Callable[..., Any], blocks: Sequence[tuple]) -> list: ...


def row_blocks(n: int) -> list[tuple[int, int]]:
    """Blocks of rows (lo, hi) that depend on n alone, so that sums do not depend on the number of threads.

    A multiple of four of them, so that few threads end together; they begin at multiples of eight, for packed bits.
    """
    n_blocks = 4 * -(-n // (4 * _BLOCK_ROWS)) if n > _BLOCK_ROWS else 1
    size = 8 * -(-n // (8 * n_blocks))
    return [(lo, min(lo + size, n)) for lo in range(0, n, max(size, 1))]


def widening(sampled: bool) -> tuple[float, ...]:
    """Standard errors to try in turn; the last interval cannot fail."""
    return (DEVIATIONS, 4.0 * DEVIATIONS, inf) if sampled else (inf,)


def scan(
    function: Callable[..., tuple],
    columns: tuple[np.ndarray, ...],
    arguments: tuple,
    dtype: type,
    workers: RowWorkers,
) -> tuple[list[np.ndarray], list[float]]:
    """What a scan of `_hinge` finds: breakpoints in the interval, their weights or (int64) row numbers, and sums."""

    def block(i: int, j: int) -> tuple:
        buffer, t = np.empty(_CHUNK_ROWS), np.empty(j - i)
        other: np.ndarray = np.empty(j - i, dtype)
        count, *sums = function(*(column[i:j] for column in columns), *arguments, buffer, t, other)
        other = other[:count]
        if dtype is np.int64:
            other += i
        return (t[:count], other), sums

    return joined(workers.map(block, row_blocks(columns[0].size)))


def joined(parts: list[tuple[Sequence[np.ndarray], Sequence[float]]]) -> tuple[list[np.ndarray], list[float]]:
    """Columns and sums of the blocks of a pass, as one."""
    columns, sums = (zip(*both, strict=True) for both in zip(*parts, strict=True))
    one = len(parts) == 1
    return [column[0] if one else np.concatenate(column) for column in columns], [fsum(sum_) for sum_ in sums]


def taken(column: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """These rows, in ascending order, of a column; the column itself if that is all of them."""
    return column if rows.size == column.size else column.take(rows)


def sampled(*columns: np.ndarray, size: int) -> list[np.ndarray]:
    """One row from each of `size` equal parts of the rows, at irregular places."""
    rows = _sampled_rows(columns[0].size, size)
    return [column.take(rows) for column in columns]


@lru_cache(maxsize=8)  # the searches of a solve take the same ones over and over
def _sampled_rows(n: int, size: int) -> np.ndarray:
    return (_PLACES[:size] * (n / size)).astype(np.int64)


def bracket(
    t: np.ndarray,
    q: np.ndarray,
    known: np.ndarray | None,
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
    Without such a point, `known` is None and `slope` is the part of the derivative that no row contributes. In
    the interval the sample's derivative lies within `deviations` standard errors of zero.
    """
    from softmargin.problems import _hinge

    known = _ZEROS if known is None else known
    low, high = _hinge.bracket(t, q, known, ratio, slope, curve, deviations, lo, hi, *np.empty((2, t.size)))
    # Breakpoints equal to an end belong inside: many rows may share one.
    return max(lo, nextafter(low, -inf)), min(hi, nextafter(high, inf))


def zero(t: np.ndarray, w: np.ndarray, slope: float, curve: float, lo: float, hi: float) -> float:
    """The zero of slope + curve x + (sum of w_i, t_i < x), breakpoints between lo and hi; may destroy w.

    Long arrays are first narrowed as in a scan: a sample, an interval, a copy of what is inside.
    """
    from softmargin.problems import _hinge

    n = t.size + 1
    while _SELECTED_ROWS < t.size < n:
        n = t.size
        t_few, w_few = sampled(t, w, size=SAMPLE_ROWS // 4)
        total = float(w.sum())
        low, high = bracket(t_few, w_few, None, n / t_few.size, slope + total, curve, DEVIATIONS, lo, hi)
        rows = np.empty(n, dtype=np.int64)
        count, below = _hinge.find_between(t, w, low, high, rows)
        inside = rows[:count]
        near = w.take(inside)
        left_fails = low > lo and slope + below + curve * low >= 0.0
        right_fails = high < hi and slope + below + float(near.sum()) + curve * high <= 0.0
        if not (left_fails or right_fails):
            t, w, slope, lo, hi = t.take(inside), near, slope + below, low, high
    lo, hi, slope = _hinge.zero_piece(t.copy(), w, slope, curve, lo, hi)
    return point(lo, hi, slope, curve)


def point(lo: float, hi: float, slope: float, curve: float) -> float:
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


def active_part(t: np.ndarray, q: np.ndarray, x: float) -> np.ndarray:
    """q_i where row i is active at x, else 0."""
    return q * (((t > x) == (q > 0.0)) & (t != x))


def positive(q: np.ndarray) -> float:
    """Sum of the positive q_i."""
    return float(np.maximum(q, 0.0).sum())


def reference(lo: float, hi: float) -> float:
    """A finite number in [lo, hi]; sums of t measured from it do not cancel."""
    if lo == -inf:
        return hi if hi < inf else 0.0
    return lo if hi == inf else 0.5 * (lo + hi)
