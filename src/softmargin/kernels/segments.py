"""One cache for all one-against-one problems: kernel rows cut into a segment for each class.

The problem of classes a and b needs of its rows the columns of a and b only. A row of class a meets the columns of its
own class in every problem it takes part in: that segment is computed once, while it stays in the cache, and no segment
that no problem asks for is ever computed. Of few rows the whole matrix is computed at once, which takes less time than
keeping account of its parts.
"""

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from softmargin.core.threads import Workers
from softmargin.data.rows import Rows
from softmargin.kernels.cached import RowStore
from softmargin.kernels.errors import EntryErrors
from softmargin.kernels.functions import Kernel
from softmargin.kernels.lru import LRU
from softmargin.kernels.matrix import DirectRows
from softmargin.kernels.precise import PreciseRows


class Segments:
    """Rows of a kernel matrix over data sorted by class; class c has the rows bounds[c] .. bounds[c + 1] - 1."""

    def __init__(
        self, rows: Rows, kernel: Kernel, dtype: Any, bounds: list[int], max_bytes: float, workers: Workers
    ) -> None:
        self.whole = DirectRows(rows, kernel, dtype, workers)
        self.bounds = bounds
        n = rows.n_rows
        self._sides = [self.whole.side.take(np.arange(lo, hi)) for lo, hi in pairwise(bounds)]
        capacity = int(max(1, min(n, max_bytes // (n * np.dtype(dtype).itemsize))))
        self._lru = [LRU(n, capacity) for _ in self._sides]
        self._slabs = [np.empty((capacity, side.n), dtype) for side in self._sides]

    def copy(self, c: int, index: np.ndarray, out: np.ndarray, slots: np.ndarray, at: int) -> None:
        """Write the segment of class c of the rows `index` to out[slots, at : ...]; what is missing is computed."""
        from softmargin.kernels import _tiles

        lru, slab, side = self._lru[c], self._slabs[c], self._sides[c]
        for first in range(0, index.size, lru.capacity):
            part = index[first : first + lru.capacity]
            places, missing = lru.place(part)
            try:
                self.whole.evaluate(part[missing], side, slab, places[missing])
            except BaseException:
                lru.forget(part[missing])
                raise
            _tiles.move(slab, places, 0, side.n, out, slots[first : first + part.size], at)


class SmallSegments:
    """The same for few rows: the whole matrix, computed when it is first asked for."""

    def __init__(self, rows: Rows, kernel: Kernel, dtype: Any, bounds: list[int], workers: Workers) -> None:
        self.whole = DirectRows(rows, kernel, dtype, workers)
        self.bounds = bounds

    @cached_property
    def _matrix(self) -> np.ndarray:
        every = np.arange(self.whole.n)
        matrix = np.empty((every.size, every.size), self.whole.dtype)
        self.whole.fill(every, matrix, every)
        return matrix

    def copy(self, c: int, index: np.ndarray, out: np.ndarray, slots: np.ndarray, at: int) -> None:
        from softmargin.kernels import _tiles

        _tiles.move(self._matrix, index, self.bounds[c], self.bounds[c + 1], out, slots, at)

    def part(self, first: int, second: int) -> np.ndarray:
        """The matrix of two classes, a copy."""
        (lo, hi), (other_lo, other_hi) = self.bounds[first : first + 2], self.bounds[second : second + 2]
        one, other, n = slice(lo, hi), slice(other_lo, other_hi), hi - lo
        part = np.empty((n + other_hi - other_lo, n + other_hi - other_lo), self.whole.dtype)
        part[:n, :n], part[:n, n:] = self._matrix[one, one], self._matrix[one, other]
        part[n:, :n], part[n:, n:] = self._matrix[other, one], self._matrix[other, other]
        return part


class PairRows:
    """The kernel matrix of two classes, put together from segments; the rows of the first class come first."""

    def __init__(self, segments: Segments | SmallSegments, first: int, second: int) -> None:
        self._segments, self._classes = segments, (first, second)
        ranges = [np.arange(segments.bounds[c], segments.bounds[c + 1]) for c in (first, second)]
        self._index = np.concatenate(ranges)
        self._starts = (0, ranges[0].size)
        self.is_convex = segments.whole.is_convex
        self.dtype = segments.whole.dtype

    @property
    def n(self) -> int:
        return self._index.size

    @property
    def n_evaluations(self) -> int:
        return self._segments.whole.n_evaluations

    def diag(self) -> np.ndarray:
        return self._segments.whole.diag()[self._index]

    def row_errors(self) -> np.ndarray:
        return self._segments.whole.row_errors()[self._index]

    def errors(self) -> EntryErrors:
        return self._segments.whole.errors().take(self._index)

    def sharper(self, index: np.ndarray) -> DirectRows | None:
        return self._segments.whole.sharper(self._index[index])

    def precise(self, index: np.ndarray) -> PreciseRows | None:
        return self._segments.whole.precise(self._index[index])

    def rows(self, index: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        if columns is not None:
            return self._segments.whole.rows(self._index[index], self._index[columns])
        out = np.empty((len(index), self.n), self.dtype)
        self.fill(np.asarray(index), out, np.arange(len(index)))
        return out

    def fill(self, index: np.ndarray, out: np.ndarray, slots: np.ndarray) -> None:
        rows = self._index[index]
        for c, at in zip(self._classes, self._starts, strict=True):
            self._segments.copy(c, rows, out, slots, at)

    def narrow(self, index: np.ndarray) -> DirectRows:
        return self._segments.whole.narrow(self._index[index])


class PairMatrix(RowStore):
    """All rows of the matrix of two classes at once, and in order."""

    def __init__(self, segments: SmallSegments, first: int, second: int, workers: Workers) -> None:
        source = PairRows(segments, first, second)
        before, matrix = source.n_evaluations, segments.part(first, second)
        super().__init__(source, matrix, matrix.nbytes, workers, LRU.full(source.n))
        self.misses, self._evaluations_before = source.n, before

    def everything(self) -> np.ndarray:
        return self.slab
