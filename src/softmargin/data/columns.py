"""The columns that a solver sees in place of those of wide sparse data.

Products with sparse rows of many columns spend their time on waiting for entries of a vector that are far apart. The
solver therefore gets rows X~ of other columns, with X = X~ Q' for a Q whose columns are orthonormal. Inner products of
rows stay what they were, and so does everything that a linear SVM is made of: w = Q w~ has the same norm and the same
outputs, and a start w becomes w~ = Q'w, which has the same outputs and no larger norm.

- Columns without entries go.
- Columns that one row alone uses become a single one, with the root of the sum of their squares as its entry: a
  rotation in the space of these columns. Text has many of them: in 20 newsgroups with bigrams 63 of 100 columns.
- The others are renumbered. Columns that are used about equally often are neighbours, the most used first.

Merging needs a copy of the values, which then is split: columns that many rows use row by row, the others column by
column (`split`). Without it the values are shared, and only the column indices are copied.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np

from softmargin.data.csr import CSRRows
from softmargin.data.rows import Flat, FlatProducts, Products, Rows, has_row_access
from softmargin.data.split import SplitRows

# Weights of more columns than this do not stay in the innermost caches; with more entries than this that matters.
MANY_COLUMNS, MANY_ENTRIES = 1 << 15, 1 << 20
# Columns without entries are left out beforehand if there are so many times more columns than entries.
EMPTY_FACTOR = 4
# Merging needs a copy of the values. Where that is as large as what the columns that go would take in so many float64
# vectors, about as many as a fit may hold, it is worth its memory.
VECTORS_HELD = 8
# The weights of this many columns stay in a near cache in products row by row.
COMMON_COLUMNS = 1 << 15
# A root that the type of the values cannot hold is stored as up to MAX_PARTS entries. The part of the square that they
# leave out is at most SQUARES_LEFT of it.
MAX_PARTS, SQUARES_LEFT = 4, 1e-13
# Sums of squares beyond these have lost digits, or will.
SMALLEST, LARGEST = 1e-250, 1e250
# Columns have a level: 64 without entries, 63 with one, and so on; above this count one level for each doubling.
ALONE, COUNTED = 63, 16


_Kept = TypeVar("_Kept", bound=Products)


@dataclass(frozen=True)
class Occupied(Generic[_Kept]):
    """Rows without the columns in which none of them has an entry, if most columns are such.

    A single large index would otherwise make every vector of weights as long. `used` are the columns that are left;
    None means all of them. Rows without access to entries stay as they are.
    """

    rows: _Kept
    n_cols: int
    used: np.ndarray | None = None

    @classmethod
    def of(cls, rows: _Kept) -> "Occupied[_Kept]":
        if not has_row_access(rows):
            return cls(rows, rows.n_cols)
        (inner,), used = without_empty_columns(rows)
        return cls(cast(Any, inner), rows.n_cols, used)

    def spread(self, w: np.ndarray) -> np.ndarray:
        """Weights of all columns, in an array of their own. The system gives no memory for zeros that nobody writes."""
        if self.used is None:
            return w.copy()
        out = np.zeros(self.n_cols)
        out[self.used] = w
        return out

    def gather(self, w: np.ndarray) -> np.ndarray:
        """Weights of the columns that are left; more of them than columns (an intercept's) stay at the end."""
        return w if self.used is None else np.append(w[self.used], w[self.n_cols :])

    def probed(self) -> np.ndarray:
        """X v for a fixed v, of which no two entries are alike: any change of an entry changes it, or is rounding."""
        columns = np.arange(self.n_cols) if self.used is None else self.used
        probe = (columns + 1.0) * 0.6180339887498949
        probe %= 1.0
        probe += 0.5
        return self.rows.dot(probe)


def without_empty_columns(*parts: Rows) -> tuple[tuple[Rows, ...], np.ndarray | None]:
    """Sparse rows without the columns that are empty in all of them, and which are left; unless few would go."""
    n_cols = parts[0].n_cols
    flats = [part.flat for part in parts]
    n_entries = sum(flat.values.size for flat in flats)
    if n_cols < MANY_COLUMNS or n_cols < EMPTY_FACTOR * n_entries or not all(flat.indptr.size for flat in flats):
        return parts, None
    used = np.unique(np.concatenate([np.zeros(1, flats[0].indices.dtype), *(flat.indices for flat in flats)]))
    shorter = []
    for part, flat in zip(parts, flats, strict=True):
        entries = flat.values, np.searchsorted(used, flat.indices).astype(flat.indices.dtype), flat.indptr
        shorter.append(CSRRows(type(part.native())(entries, shape=(part.n_rows, used.size), copy=False)))
    return tuple(shorter), used


class _Merged(NamedTuple):
    """What became of columns that one row alone uses: they are the last ones of the inner rows.

    Entries positions[bounds[i] : bounds[i + 1]] of row i became parts[part_bounds[i] : part_bounds[i + 1]], one column
    each. They are the entries as they were if there are as many.
    """

    positions: np.ndarray
    bounds: np.ndarray
    parts: np.ndarray
    part_bounds: np.ndarray


@dataclass(frozen=True)
class Columns:
    """`rows` as they were given, `inner` as the solver sees them: the same ones unless they are wide and sparse.

    `number` is the new number of each column, or -1 where it has none.
    """

    rows: Products
    inner: Products
    number: np.ndarray | None = None
    merged: _Merged | None = None

    @classmethod
    def of(cls, rows: Products, products_only: bool, check: Callable[[], None] = lambda: None) -> "Columns":
        """Columns for these rows, for a solver that wants `products_only` or also visits single rows.

        `check` is called between blocks of rows, and what it raises ends the work.
        """
        if not has_row_access(rows):
            return cls(rows, rows)
        flat = rows.flat
        if not flat.indptr.size or rows.n_cols < MANY_COLUMNS or flat.values.size < MANY_ENTRIES:
            return cls(rows, rows)
        from softmargin.data import _columns

        blocks = _Blocks(flat, check)
        counts = np.zeros(rows.n_cols, dtype=np.int64)
        for _, part in blocks:
            _columns.count(flat.indices[part], counts)
        level = np.where(counts < COUNTED, 64 - counts, 53 - np.frexp(counts)[1]).astype(np.uint8)
        n_of_level = np.bincount(level, minlength=65)
        n_alone = int(n_of_level[ALONE])
        if products_only and 8 * VECTORS_HELD * n_alone >= flat.values.itemsize * (flat.values.size - n_alone):
            return _split(rows, blocks, counts, level, n_of_level)
        del counts
        n_cols = rows.n_cols - int(n_of_level[64])
        next_number = np.cumsum(n_of_level) - n_of_level
        number = np.full(rows.n_cols, -1, dtype=flat.indices.dtype)
        indices = np.empty(flat.indices.size, dtype=_index_type(n_cols, flat) if products_only else flat.indices.dtype)
        for _, part in blocks:
            _columns.renumber(flat.indices[part], level, next_number, number, indices[part])
        inner: Rows
        if products_only:
            inner = SplitRows(FlatProducts(Flat(flat.values, indices, flat.indptr, rows.n_rows, n_cols, False)))
        else:
            parts = flat.values, indices, flat.indptr
            inner = CSRRows(type(rows.native())(parts, shape=(rows.n_rows, n_cols), copy=False))
        return cls(rows, inner, number)

    def outer(self, w: np.ndarray) -> np.ndarray:
        """Q w: the weights of the columns as they were given."""
        if self.number is None:
            return w
        from softmargin.data import _columns

        out = np.empty(self.number.size)
        _columns.expand(self.number, w, out)
        if self.merged is not None:
            _columns.spread(*_entries(self.rows), *self.merged, w[self.inner.n_cols - self.merged.parts.size :], out)
        return out

    def start(self, w: np.ndarray) -> np.ndarray:
        """Q'w: weights to start from; more of them than there are columns (a penalised intercept's) stay at the end."""
        if self.number is None:
            return w
        from softmargin.data import _columns

        out = np.empty(self.inner.n_cols)
        _columns.contract(self.number, w, out)
        if self.merged is not None:
            _columns.gather(*_entries(self.rows), *self.merged, w, out[out.size - self.merged.parts.size :])
        return np.append(out, w[self.number.size :])


class _Blocks:
    """The rows in blocks, and where their entries are, with a check before each."""

    def __init__(self, flat: Flat, check: Callable[[], None]) -> None:
        self._indptr, self._check = flat.indptr, check
        self._edges = FlatProducts(flat).row_blocks

    def __iter__(self) -> Iterator[tuple[slice, slice]]:
        for lo, hi in self._edges:
            self._check()
            yield slice(lo, hi), slice(int(self._indptr[lo]), int(self._indptr[hi]))


def _split(rows: Rows, blocks: _Blocks, counts: np.ndarray, level: np.ndarray, n_of_level: np.ndarray) -> Columns:
    """Rows A of common columns, columns B of the others, those of one row alone merged and last."""
    from softmargin.data import _columns

    flat, n = rows.flat, rows.n_rows
    n_alone, squares = np.empty(n, dtype=np.int64), np.empty(n)
    for block, _ in blocks:
        _columns.alone(*_entries(rows), flat.indptr, level, block.start, block.stop, n_alone, squares)
    roots, n_parts = _roots(squares, flat.values.dtype)
    n_parts = np.where((n_parts > 0) & (n_parts < n_alone), n_parts, n_alone)  # else nothing to gain
    bounds, part_bounds = np.append(0, np.cumsum(n_alone)), np.append(0, np.cumsum(n_parts))

    up_to_level = np.cumsum(n_of_level)
    common_levels = min(int(np.searchsorted(up_to_level, COMMON_COLUMNS, side="right")), ALONE)
    n_common, n_shared = (int(up_to_level[k - 1]) if k else 0 for k in (common_levels, ALONE))
    order = np.argsort(level, kind="stable")[:n_shared]
    number = np.full(rows.n_cols, -1, dtype=flat.indices.dtype)
    number[order] = np.arange(n_shared)
    size_a = int(counts[order[:n_common]].sum())
    lengths = np.concatenate([counts[order[n_common:]], np.ones(part_bounds[-1], dtype=np.int64)])
    starts_b = np.append(0, np.cumsum(lengths)).astype(flat.indptr.dtype)
    del order, lengths

    values_a, indices_a = np.empty(size_a, flat.values.dtype), np.empty(size_a, _index_type(n_common, flat))
    values_b, rows_b = np.empty(starts_b[-1], flat.values.dtype), np.empty(starts_b[-1], _index_type(n, flat))
    starts_a, positions = np.zeros_like(flat.indptr), np.empty(int(bounds[-1]), dtype=flat.indptr.dtype)
    next_b = starts_b.copy()
    for block, _ in blocks:
        at = level, common_levels, number, n_common, block.start, block.stop
        to = values_a, indices_a, starts_a, values_b, rows_b, next_b, positions, bounds
        _columns.split(*_entries(rows), flat.indptr, *at, *to)
    parts, rows_of_parts = (array[array.size - int(part_bounds[-1]) :] for array in (values_b, rows_b))
    merged = _Merged(positions, bounds, parts, part_bounds)
    _columns.place(flat.values, *merged, roots, rows_of_parts)
    a = FlatProducts(Flat(values_a, indices_a, starts_a, n, n_common, False))
    bt = FlatProducts(Flat(values_b, rows_b, starts_b, starts_b.size - 1, n, False))
    return Columns(rows, SplitRows(a, bt), number, merged)


def _roots(squares: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """parts of shape (MAX_PARTS, n): the squares of the first n_parts[i] add up to squares[i]; if none do, 0."""
    parts = np.zeros((MAX_PARTS, squares.size), dtype=dtype)
    n_parts = np.zeros(squares.size, dtype=np.int64)
    left = squares.copy()
    for part in parts:
        is_open = left > SQUARES_LEFT * squares
        root = np.sqrt(np.where(is_open, left, 0.0))
        part[:] = _rounded_down(root, dtype)
        left -= part.astype(np.float64) ** 2
        n_parts += is_open
    exact = (left <= SQUARES_LEFT * squares) & (squares >= SMALLEST) & (squares <= LARGEST)
    return parts, np.where(exact, n_parts, 0)


def _rounded_down(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype.kind in "iu":
        return np.minimum(x, np.iinfo(dtype).max).astype(dtype)
    near = x.astype(dtype)
    return np.where(near > x, np.nextafter(near, dtype.type(0)), near)


def _entries(rows: Any) -> tuple[np.ndarray, np.ndarray]:
    return rows.flat.values, rows.flat.indices


def _index_type(n: int, flat: Flat) -> Any:
    """The smallest type for n indices that compiled code has to know beside that of the data."""
    return np.uint16 if n <= 1 << 16 else flat.indices.dtype
