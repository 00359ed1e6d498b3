"""The columns that a solver sees in place of those of wide sparse data.

Products with sparse rows of many columns spend their time on waiting for entries of a vector that are far apart. The
solver therefore gets rows X~ of other columns, with X = X~ Q' for a Q whose columns are orthonormal. Inner products of
rows stay what they were, and so does everything that a linear SVM is made of: w = Q w~ has the same norm and the same
outputs, and a start w becomes w~ = Q'w, which has the same outputs and no larger norm.

- Columns without entries go.
- Columns that one row alone uses become a single one, with the root of the sum of their squares as its entry: a
  rotation in the space of these columns. Text has many of them: in 20 newsgroups with bigrams 63 of 100 columns.
- The others are renumbered. Columns that are used about equally often (within a factor of two) are neighbours, the
  most used first, in the order in which they are met.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from softmargin.data.csr import CSRRows
from softmargin.data.rows import Flat, Products, Rows

# Weights of more columns than this do not stay in the innermost caches; with more entries than this that matters.
MANY_COLUMNS, MANY_ENTRIES = 1 << 15, 1 << 20
# Merging needs a copy of the values. Where that is as large as what the columns that go would take in so many float64
# vectors, about as many as a fit may hold, it is worth its memory.
VECTORS_HELD = 8
# A root that the type of the values cannot hold is stored as up to so many entries, whose squares add up this exactly.
MAX_PARTS, ROUNDING = 4, 1e-13
# Sums of squares beyond these have lost digits, or will.
SMALLEST, LARGEST = 1e-250, 1e250
ALONE = 63  # the level of columns with one entry


class _Merged(NamedTuple):
    """Which entries were merged: positions[bounds[i] : bounds[i + 1]] of row i became its last n_parts[i] entries."""

    positions: np.ndarray
    bounds: np.ndarray
    n_parts: np.ndarray


@dataclass(frozen=True)
class Columns:
    """`rows` as they were given, `inner` as the solver sees them: the same ones unless they are wide and sparse.

    `number` is the new number of each column, or -1 where it has none.
    """

    rows: Rows
    inner: Rows
    number: np.ndarray | None = None
    merged: _Merged | None = None

    @classmethod
    def of(cls, rows: Rows, check: Callable[[], None] = lambda: None) -> "Columns":
        """Columns for these rows; `check` is called between blocks of them, and what it raises ends the work."""
        flat = rows.flat
        if not flat.indptr.size or rows.n_cols < MANY_COLUMNS or flat.values.size < MANY_ENTRIES:
            return cls(rows, rows)
        from softmargin.data import _columns

        blocks = _Blocks(flat, check)
        counts = np.zeros(rows.n_cols, dtype=np.int64)
        for _, part in blocks:
            _columns.count(flat.indices[part], counts)
        level = (64 - np.frexp(counts)[1]).astype(np.uint8)  # falls with every doubling
        n_of_level = np.bincount(level, minlength=65)
        del counts
        next_number = np.cumsum(n_of_level) - n_of_level
        number = np.full(rows.n_cols, -1, dtype=flat.indices.dtype)
        n_alone = int(n_of_level[ALONE])
        if 8 * VECTORS_HELD * n_alone >= flat.values.itemsize * (flat.values.size - n_alone):
            return _merged(rows, blocks, level, next_number, number)
        indices = np.empty_like(flat.indices)
        for _, part in blocks:
            _columns.renumber(flat.indices[part], level, next_number, number, indices[part])
        return cls(rows, _csr_rows(rows, flat.values, indices, flat.indptr, int(next_number[ALONE])), number)

    def outer(self, w: np.ndarray) -> np.ndarray:
        """Q w: the weights of the columns as they were given."""
        if self.number is None:
            return w
        from softmargin.data import _columns

        out = np.empty(self.number.size)
        _columns.expand(self.number, w, out)
        if self.merged is not None:
            _columns.spread(*_entries(self.rows), *self.merged, *_entries(self.inner), self.inner.flat.indptr, w, out)
        return out

    def start(self, w: np.ndarray) -> np.ndarray:
        """Q'w: weights to start from; more of them than there are columns (a penalised intercept's) stay at the end."""
        if self.number is None:
            return w
        from softmargin.data import _columns

        out = np.empty(self.inner.n_cols)
        _columns.contract(self.number, w, out)
        if self.merged is not None:
            _columns.gather(*_entries(self.rows), *self.merged, *_entries(self.inner), self.inner.flat.indptr, w, out)
        return np.append(out, w[self.number.size :])


class _Blocks:
    """The rows in blocks, and where their entries are, with a check before each."""

    def __init__(self, flat: Flat, check: Callable[[], None]) -> None:
        self._indptr, self._check = flat.indptr, check
        self._edges = Products(flat).row_blocks

    def __iter__(self) -> Iterator[tuple[slice, slice]]:
        for lo, hi in self._edges:
            self._check()
            yield slice(lo, hi), slice(int(self._indptr[lo]), int(self._indptr[hi]))


def _merged(rows: Rows, blocks: _Blocks, level: np.ndarray, next_number: np.ndarray, number: np.ndarray) -> Columns:
    from softmargin.data import _columns

    flat, n = rows.flat, rows.n_rows
    n_alone, squares = np.empty(n, dtype=np.int64), np.empty(n)
    for block, _ in blocks:
        _columns.alone(*_entries(rows), flat.indptr, level, block.start, block.stop, n_alone, squares)
    parts, n_parts = _roots(squares, flat.values.dtype)
    n_parts[n_parts >= n_alone] = 0  # nothing to gain
    n_gone = np.where(n_parts > 0, n_alone, 0)
    bounds = np.append(0, np.cumsum(n_gone))
    size = flat.values.size - int(bounds[-1]) + int(n_parts.sum())
    values, indices = np.empty(size, dtype=flat.values.dtype), np.empty(size, dtype=flat.indices.dtype)
    indptr, positions = np.zeros_like(flat.indptr), np.empty(int(bounds[-1]), dtype=flat.indptr.dtype)
    merged = _Merged(positions, bounds, n_parts)
    for block, _ in blocks:
        at = block.start, block.stop
        _columns.merge(
            *_entries(rows), flat.indptr, *merged, parts, level, *at, next_number, number, values, indices, indptr
        )
    return Columns(rows, _csr_rows(rows, values, indices, indptr, int(next_number[ALONE])), number, merged)


def _roots(squares: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """parts of shape (MAX_PARTS, n): the squares of the first n_parts[i] add up to squares[i]; if none do, 0."""
    parts = np.zeros((MAX_PARTS, squares.size), dtype=dtype)
    n_parts = np.zeros(squares.size, dtype=np.int64)
    left = squares.copy()
    for part in parts:
        is_open = left > ROUNDING * squares
        root = np.sqrt(np.where(is_open, left, 0.0))
        part[:] = _rounded_down(root, dtype)
        left -= part.astype(np.float64) ** 2
        n_parts += is_open
    exact = (left <= ROUNDING * squares) & (squares >= SMALLEST) & (squares <= LARGEST)
    return parts, np.where(exact, n_parts, 0)


def _rounded_down(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype.kind in "iu":
        return np.minimum(x, np.iinfo(dtype).max).astype(dtype)
    near = x.astype(dtype)
    return np.where(near > x, np.nextafter(near, dtype.type(0)), near)


def _entries(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    return rows.flat.values, rows.flat.indices


def _csr_rows(rows: Rows, values: np.ndarray, indices: np.ndarray, indptr: np.ndarray, n_cols: int) -> CSRRows:
    return CSRRows(type(rows.native())((values, indices, indptr), shape=(rows.n_rows, n_cols), copy=False))
