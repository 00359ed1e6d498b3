"""Products X w and X'v with bounds of their errors, and with twice the digits where these are too large.

plain     |computed - real| <= gamma(k) |x_i| |w|, with k the number of stored values in a row
in pairs  the same with 2^-101 k in place of gamma(k)
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from softmargin.data.rows import Products, RowAccess, has_row_access
from softmargin.linalg.rounding import PAIR_UNIT, SLACK, TINY, UNIT, gamma, norm_above

# Integers from here on are not all float64 numbers.
_LARGEST_INTEGER = 2**53
_NO_DIGITS = np.empty(0)


class Outputs(NamedTuple):
    """Scores f + low, each within `error` of the real one. `low` is 0.0 where one number is enough."""

    f: np.ndarray
    low: np.ndarray | float
    error: np.ndarray

    def take(self, index: Any) -> "Outputs":
        low = self.low[index] if isinstance(self.low, np.ndarray) else self.low
        return Outputs(self.f[index], low, self.error[index])

    def replaced(self, index: np.ndarray, by: "Outputs") -> "Outputs":
        """Those of `index` exchanged for others, where these are known better."""
        f, low, error = self.f.copy(), np.zeros(self.f.size) + self.low, self.error.copy()
        better = by.error < error[index]
        f[index[better]], low[index[better]], error[index[better]] = by.take(better)
        return Outputs(f, low, error)


def digits(low: np.ndarray | float) -> np.ndarray:
    """Low digits as compiled code takes them: an empty array stands for zeros."""
    return low if isinstance(low, np.ndarray) else _NO_DIGITS


def longest_row(rows: Products) -> int:
    """The largest number of stored values in a row, or more if the storage does not tell."""
    if not has_row_access(rows):
        return rows.n_cols
    flat = rows.flat
    return int(np.diff(flat.indptr).max(initial=0)) if flat.indptr.size else rows.n_cols


def _parts(rows: Products) -> Iterator[tuple[slice, RowAccess | None]]:
    """The rows in parts in which single rows can be reached; None for a part where they cannot."""
    if has_row_access(rows):
        yield slice(0, rows.n_rows), rows
    else:
        for where, part in rows.blocks():
            yield where, part if has_row_access(part) else None


def lengths_above(rows: Products) -> np.ndarray:
    """Upper bounds of |x_i|."""
    k = longest_row(rows)
    squares = rows.sq_norms()
    squares *= 1.0 + gamma(k + 4)
    squares += (k + 1) * TINY
    np.sqrt(squares, out=squares)
    squares *= SLACK
    return squares


def outputs(rows: Products, w: np.ndarray, lengths: np.ndarray) -> Outputs:
    """X w, with error bounds from upper bounds of the lengths of the rows."""
    k, norm = longest_row(rows), norm_above(w)
    if norm == 0.0:  # whatever the rows are
        return Outputs(np.zeros(rows.n_rows), 0.0, np.zeros(rows.n_rows))
    error = lengths * (gamma(k + 2) * norm)
    error += 2 * k * TINY
    return Outputs(rows.dot(w), 0.0, error)


def sharper_outputs(rows: Products, w: np.ndarray, lengths: np.ndarray, index: np.ndarray) -> Outputs:
    """The same in pairs of numbers, for the rows of `index`, which ascend. Rows out of reach get an infinite error."""
    from softmargin.data import _precise

    w = np.ascontiguousarray(w, dtype=np.float64)
    high, low, error = np.empty(index.size), np.empty(index.size), np.full(index.size, np.inf)
    with np.errstate(all="ignore"):
        norm = norm_above(w)
        for where, part in _parts(rows):
            mine = slice(*np.searchsorted(index, [where.start, where.stop]))
            if part is not None and mine.start < mine.stop:
                k = longest_row(part)
                _precise.dot(*part.flat, w, index[mine] - where.start, high[mine], low[mine])
                error[mine] = lengths[index[mine]] * (pair_error(part, k) * norm) + 8 * k * TINY
    is_bad = ~(np.isfinite(low) & np.isfinite(error))
    high[is_bad], low[is_bad], error[is_bad] = 0.0, 0.0, np.inf
    return Outputs(high, low, error)


def combination(rows: Products, v: np.ndarray, lengths: np.ndarray) -> tuple[float, np.ndarray]:
    """An upper bound of |X'v|, and the computed X'v."""
    w = rows.t_dot(v)
    return combination_above(w, int(np.count_nonzero(v)), reach(v, lengths)), w


def combination_above(w: np.ndarray, used: int, reach: float, n_parts: int = 0) -> float:
    """An upper bound of |X'v| from its computed value, a sum over so many rows that was made of so many parts."""
    charge = gamma(used + n_parts + 20) * reach + used * np.sqrt(w.size) * TINY
    return (norm_above(w) + charge) * SLACK


def sharper_combination(rows: Products, v: np.ndarray, lengths: np.ndarray) -> float:
    """An upper bound of |X'v| from sums in pairs of numbers; infinite if some rows are out of reach."""
    high, low, error = combination_in_pairs(rows, v)
    used = int(np.count_nonzero(v))
    with np.errstate(all="ignore"):
        found = (norm_above(high) + norm_above(low) + error * reach(v, lengths)) * SLACK
    return float(found + 8 * used * np.sqrt(high.size) * TINY) if np.isfinite(found) else np.inf


def combination_in_pairs(rows: Products, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """X'v as two vectors, and a bound of the error beside the reach of v; infinite if some rows are out of reach."""
    from softmargin.data import _precise

    v = np.ascontiguousarray(v, dtype=np.float64)
    high, low = np.zeros((2, rows.n_cols))
    used, error = int(np.count_nonzero(v)), 0.0
    with np.errstate(all="ignore"):
        for where, part in _parts(rows):
            if part is None:
                return high, low, np.inf
            _precise.t_dot(*part.flat, v[where], high, low)
            error = max(error, pair_error(part, used))
    return high, low, error


def reach(v: np.ndarray, lengths: np.ndarray) -> float:
    """An upper bound of sum_i |v_i| |x_i|; rows that are not used may be of any length."""
    used = np.flatnonzero(v)
    return float(np.abs(v[used]) @ lengths[used]) * (1.0 + gamma(used.size + 2))


def pair_error(rows: RowAccess, k: int) -> float:
    """Relative error of k terms in pairs of numbers; large integers are rounded before they are multiplied."""
    values = rows.flat.values
    is_rounded = values.dtype.kind in "iu" and values.itemsize == 8 and values.size
    if is_rounded and max(abs(int(values.max())), abs(int(values.min()))) > _LARGEST_INTEGER:
        return 4 * UNIT
    return (k + 4) * PAIR_UNIT
