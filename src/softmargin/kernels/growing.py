"""A kernel matrix that gains and loses rows, and the rows of it that are kept.

Rows are in no particular order: where one is removed, the last one takes its place. Columns of kept rows are added and
moved in place, in memory with room behind the last column; what is removed is overwritten.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from softmargin.core.buffer import Buffer
from softmargin.core.threads import Workers
from softmargin.data.dense import DenseRows
from softmargin.data.growing import GrowingRows, stored_as
from softmargin.data.rows import Rows
from softmargin.kernels.cached import RowStore
from softmargin.kernels.errors import EntryErrors
from softmargin.kernels.functions import Custom, Kernel
from softmargin.kernels.lru import LRU
from softmargin.kernels.matrix import DirectRows, KernelRows, LeftBlock, Side, centre_of

_FEW = 16  # new rows that are computed in full; of more only what the kept rows need is
_BLOCK = 256  # kept rows that get new columns at a time


class GrowingSide(Side):
    """Rows made ready once and for all: of dense data the array is kept, of sparse data the scaled matrix.

    The centre stays that of the first rows; kernel values depend on it by rounding only.
    """

    def __init__(self, rows: Rows, kernel: Kernel, dtype: Any, centre: np.ndarray | None = None) -> None:
        super().__init__(rows, kernel, dtype, centre)
        self._kept_array, self._kept_rows = Buffer(self.array), None
        if self.is_sparse or isinstance(kernel, Custom):
            self._kept_rows = GrowingRows(rows, self.values if self.values.size else None)
        self._vectors = [Buffer(vector) for vector in self._vectors_of(self, rows)]
        if self._kept_rows is None:
            self.rows = DenseRows(np.empty((0, self.n_cols)))  # the array is enough
        self._refresh()

    @staticmethod
    def _vectors_of(side: Side, rows: Rows) -> tuple[np.ndarray, ...]:
        """Of each row: what its products get added, the error of an entry, its size, and the diagonal entry."""
        diagonal = DirectRows(rows, side.kernel, side.dtype, side=side).diag()
        return side.terms, Side.row_errors(side), Side.sizes(side), diagonal

    def _refresh(self) -> None:
        self.terms, self.errors, self.kept_sizes, self.diagonal = (vector.view for vector in self._vectors)
        self.n = self.terms.size
        self.array = self._kept_array.view
        if self._kept_rows is not None:
            self.rows = self._kept_rows.rows
            self.values = self.rows.flat.values

    def append(self, rows: Rows) -> None:
        rows = stored_as(rows, sparse=self.is_sparse)
        part = Side(rows, self.kernel, self.dtype, self.centre)
        for vector, values in zip(self._vectors, self._vectors_of(part, rows), strict=True):
            vector.append(values)
        if self._kept_rows is not None:
            self._kept_rows.append(rows, part.values if part.values.size else None)
        else:
            self._kept_array.append(part.array)
        self._refresh()

    def reorder(self, order: np.ndarray) -> None:
        """Keep the rows of `order`, in this order."""
        for vector in self._vectors:
            vector.take(order)
        if self._kept_rows is not None:
            self._kept_rows = self._kept_rows.take(order)
        else:
            self._kept_array.take(order)
        self._refresh()

    def left(self, index: np.ndarray) -> LeftBlock:
        if self.is_sparse and not isinstance(self.kernel, Custom):
            return LeftBlock(self.kernel, self.rows.densified(index, self.dtype), self.terms[index])
        return super().left(index)

    def take(self, index: np.ndarray) -> Side:
        """These rows as they are, made ready already."""
        part = object.__new__(Side)
        part.kernel, part.dtype, part.centre, part.factor = self.kernel, self.dtype, self.centre, self.factor
        part.n, part.n_cols, part.is_sparse = len(index), self.n_cols, self.is_sparse
        part.terms, part.array, part.values = self.terms[index], self.array, self.values
        if self._kept_rows is None:
            part.rows, part.array = self.rows, self.array[index]
        else:
            part.rows = self.rows.take(index)
            part.values = part.rows.flat.values
        return part

    def row_errors(self) -> np.ndarray:
        return self.errors

    def sizes(self) -> np.ndarray:
        return self.kept_sizes


class GrowingMatrix(DirectRows):
    """The matrix of a kernel over rows that come and go."""

    side: GrowingSide

    def __init__(self, rows: Rows, kernel: Kernel, workers: Workers) -> None:
        side = GrowingSide(rows, kernel, np.float64, centre_of(rows, kernel))
        super().__init__(rows, kernel, np.float64, workers, side=side)

    def diag(self) -> np.ndarray:
        return self.side.diagonal

    def errors(self) -> EntryErrors:
        return self.new_errors()

    def precise(self, index: np.ndarray) -> None:
        """The rows as they were given are not kept."""
        return


class PartRows:
    """K[index, index] of a growing matrix."""

    def __init__(self, whole: GrowingMatrix, index: np.ndarray) -> None:
        self.whole, self.index = whole, index
        self.is_convex, self.dtype = whole.is_convex, whole.dtype
        self.n_evaluations = 0

    @property
    def n(self) -> int:
        return self.index.size

    def row_errors(self) -> np.ndarray:
        return self.whole.row_errors()[self.index]

    def errors(self) -> EntryErrors:
        return self.whole.errors().take(self.index)

    def sharper(self, index: np.ndarray) -> None:
        return None

    def precise(self, index: np.ndarray) -> None:
        return None

    def diag(self) -> np.ndarray:
        return self.whole.diag()[self.index]

    def rows(self, index: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        values = self.whole.rows(self.index[index], self.index if columns is None else self.index[columns])
        self.n_evaluations += values.size
        return values

    def fill(self, index: np.ndarray, out: np.ndarray, slots: np.ndarray) -> None:
        out[slots, : self.n] = self.rows(index)

    def narrow(self, index: np.ndarray) -> "PartRows":
        return PartRows(self.whole, self.index[index])


class GrowingStore(RowStore):
    """Kept rows of a matrix that grows and shrinks: the slab has more columns than the matrix."""

    def __init__(self, source: KernelRows, budget: Callable[[int], float], workers: Workers) -> None:
        """`budget` are the bytes that may be used for so many rows."""
        super().__init__(source, np.empty((0, 0), source.dtype), budget(source.n), workers)
        self._budget = budget
        self._make_room()

    def _make_room(self) -> None:
        """A slab for more rows than there are; what is kept moves there, as far as it fits."""
        lru, slab, before = self.lru, self.slab, self.lru.slot_of.size
        room = self.n + self.n // 4 + 64
        self.max_bytes = self._budget(room)
        capacity = int(max(2, min(room, self.max_bytes // (room * self.dtype.itemsize))))
        kept = lru.cached()
        kept = kept[np.argsort(-lru.stamp[lru.slot_of[kept]], kind="stable")][:capacity]
        self.slab, self.lru = np.zeros((capacity, room), self.dtype), LRU(self.n, capacity)
        slots, _ = self.lru.place(kept)
        for slot, row in zip(slots.tolist(), kept.tolist(), strict=True):
            self.slab[slot, :before] = slab[lru.slot_of[row], :before]

    def restart_counts(self) -> None:
        self.hits = self.misses = 0
        self._evaluations_before = self.source.n_evaluations

    def extend(self) -> None:
        """The source has more rows than before: kept rows get these columns, and few new rows are kept as well."""
        before = self.lru.slot_of.size
        fresh = np.arange(before, self.n)
        if self.n > self.slab.shape[1]:
            self._make_room()
        else:
            self.lru.slot_of = np.append(self.lru.slot_of, np.full(fresh.size, -1))
        if fresh.size <= min(_FEW, self.capacity):
            slots = self.fetch(fresh)
            kept = self._kept_of(before)
            self.slab[self.lru.slot_of[kept][:, None], fresh] = self.slab[slots[:, None], kept].T
            return
        kept = self._kept_of(before)
        for at in range(0, kept.size, _BLOCK):
            part = kept[at : at + _BLOCK]
            self.slab[self.lru.slot_of[part], before : self.n] = self.source.rows(part, fresh)

    def _kept_of(self, n: int) -> np.ndarray:
        kept = self.lru.cached()
        return kept[kept < n]

    def outputs(self, beta: np.ndarray, index: np.ndarray) -> np.ndarray:
        """(K beta)[index], from these rows of K if they are kept, else from those where beta is not zero."""
        support = beta.nonzero()[0]
        if (self.lru.slot_of[index] >= 0).all():
            return self.rows(index, support) @ beta[support]
        return beta[support] @ self.rows(support, index)

    def reorder(self, order: np.ndarray) -> None:
        """The source keeps the rows of `order` only, in this order; nothing of the others is left."""
        lru, before = self.lru, self.lru.slot_of.size
        removed = np.setdiff1d(np.arange(before), order, assume_unique=True)
        gone = lru.slot_of[removed]
        lru.forget(removed)
        self.slab[gone[gone >= 0]] = 0.0
        slots = (lru.owner >= 0).nonzero()[0][:, None]
        moved = (order != np.arange(order.size)).nonzero()[0]
        self.slab[slots, moved] = self.slab[slots, order[moved]]
        self.slab[slots, np.arange(order.size, before)] = 0.0
        lru.slot_of = lru.slot_of[order]
        there = (lru.slot_of >= 0).nonzero()[0]
        lru.owner[lru.slot_of[there]] = there


def order_without(n: int, removed: np.ndarray) -> np.ndarray:
    """Of n places those that are left, where the last ones fill the holes."""
    left = n - removed.size
    order = np.arange(left)
    is_left = np.ones(n, dtype=bool)
    is_left[removed] = False
    order[~is_left[:left]] = left + is_left[left:].nonzero()[0]
    return order
