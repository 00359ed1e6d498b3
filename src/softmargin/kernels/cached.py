"""A kernel matrix with a cache of rows around it."""

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.threads import Workers
from softmargin.kernels.errors import EntryErrors
from softmargin.kernels.lru import LRU
from softmargin.kernels.matrix import DirectRows, KernelRows
from softmargin.kernels.precise import PreciseRows
from softmargin.kernels.precomputed import PrecomputedRows

_COLUMNS = 4096  # of a row sum that a thread works on at a time
_SCRATCH_BYTES = 1 << 26  # for rows that are computed, used once and forgotten


class RowStore:
    """Rows of a kernel matrix in memory: `slab[lru.slot_of[i]]` is row i if it is there.

    Compiled loops read the slab directly, and ask for rows that are missing.
    """

    def __init__(self, source: KernelRows, slab: np.ndarray, max_bytes: float, workers: Workers | None) -> None:
        self.source, self.slab, self.max_bytes = source, slab, max_bytes
        self.workers = workers or Workers(1)
        self.lru = LRU(source.n, len(slab))
        self.hits = self.misses = 0
        self._evaluations_before = source.n_evaluations

    @property
    def n(self) -> int:
        return self.source.n

    @property
    def dtype(self) -> np.dtype:
        return self.source.dtype

    @property
    def is_convex(self) -> bool:
        return self.source.is_convex

    def row_errors(self) -> np.ndarray:
        return self.source.row_errors()

    def errors(self) -> EntryErrors:
        return self.source.errors()

    def sharper(self, index: np.ndarray) -> DirectRows | None:
        return self.source.sharper(index)

    def precise(self, index: np.ndarray) -> PreciseRows | None:
        return self.source.precise(index)

    @property
    def n_evaluations(self) -> int:
        """Since this store was made; those of its parts count too."""
        return self.source.n_evaluations - self._evaluations_before

    @property
    def capacity(self) -> int:
        return self.lru.capacity

    def diag(self) -> np.ndarray:
        return self.source.diag()

    def fetch(self, index: np.ndarray) -> np.ndarray:
        """The slots of these rows (all different, at most `capacity`); missing ones are computed in one go."""
        slots, missing = self.lru.place(index)
        if missing.size:
            try:
                self.source.fill(index[missing], self.slab, slots[missing])
            except BaseException:
                self.lru.forget(index[missing])  # half written
                raise
        self.hits += index.size - missing.size
        self.misses += missing.size
        return slots

    def rows(self, index: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        """K[index, columns], from the cache where possible; nothing new is kept."""
        index = np.asarray(index)
        slots = self.lru.slot_of[index]
        out = np.empty((index.size, self.n if columns is None else len(columns)), self.dtype)
        there = slots >= 0
        kept = slots[there]
        out[there] = self.slab[kept, : self.n] if columns is None else self.slab[kept[:, None], columns]
        if kept.size < index.size:
            out[~there] = self.source.rows(index[~there], columns)
        return out

    def fill(self, index: np.ndarray, out: np.ndarray, slots: np.ndarray) -> None:
        out[slots] = self.rows(index)

    def add(self, slots: np.ndarray, coefficients: np.ndarray, total: np.ndarray) -> None:
        """total += sum_k coefficients[k] K[row in slots[k]], with sums in float64."""
        self._add(self.slab, slots, coefficients, total)

    def _add(self, slab: np.ndarray, slots: np.ndarray, coefficients: np.ndarray, total: np.ndarray) -> None:
        from softmargin.kernels import _tiles

        blocks = [(lo, min(lo + _COLUMNS, total.size)) for lo in range(0, total.size, _COLUMNS)]
        self.workers.map(lambda lo, hi: _tiles.add_rows(slab, slots, coefficients, lo, hi, total), blocks)

    def product(self, beta: np.ndarray) -> np.ndarray:
        """K beta, from the rows where beta is not zero; those that are missing are computed, but not kept."""
        return self.products(beta[:, None])[:, 0]

    def products(self, columns: np.ndarray) -> np.ndarray:
        """K times each column, in one go over the rows."""
        totals = np.zeros((columns.shape[1], self.n))

        def add(slab: np.ndarray, slots: np.ndarray, rows: np.ndarray) -> None:
            for total, column in zip(totals, columns[rows].T, strict=True):
                used = np.flatnonzero(column)
                self._add(slab, slots[used], column[used], total)

        support = np.flatnonzero(columns.any(axis=1))
        slots = self.lru.slot_of[support]
        there = slots >= 0
        add(self.slab, slots[there], support[there])
        rest = support[~there]
        step = max(1, _SCRATCH_BYTES // (max(1, self.n) * self.dtype.itemsize))
        for at in range(0, rest.size, step):
            part = rest[at : at + step]
            add(self.source.rows(part), np.arange(part.size), part)
        return totals.T

    def narrow(self, index: np.ndarray) -> "RowStore":
        """The part K[index, index] with a cache of its own, which starts with what is known already."""
        part = CachedRows(self.source.narrow(index), self.max_bytes, self.workers)
        known = np.flatnonzero(self.lru.slot_of[index] >= 0)
        by_use = known[np.argsort(-self.lru.stamp[self.lru.slot_of[index[known]]], kind="stable")][: part.capacity]
        slots, _ = part.lru.place(by_use)
        for slot, row in zip(slots.tolist(), index[by_use].tolist(), strict=True):
            np.take(self.slab[self.lru.slot_of[row]], index, out=part.slab[slot], mode="clip")
        part.lru.stamp[slots] = self.lru.stamp[self.lru.slot_of[index[by_use]]]
        part.lru.clock[0] = self.lru.clock[0]
        return part


class CachedRows(RowStore):
    """Rows of `source`, of which as many are kept as `max_bytes` allow. Rows take memory when they are written."""

    def __init__(self, source: KernelRows, max_bytes: float, workers: Workers | None = None) -> None:
        row_bytes = max(1, source.n) * source.dtype.itemsize
        if max_bytes < min(2, source.n) * row_bytes:
            raise SoftmarginError(
                f"a cache of {max_bytes:,.0f} bytes cannot hold two rows of the kernel matrix, which take "
                f"{row_bytes:,} each: set cache_bytes to at least {2 * row_bytes:,}, or leave it None."
            )
        capacity = int(min(source.n, max_bytes // row_bytes))
        super().__init__(source, np.empty((capacity, source.n), source.dtype), max_bytes, workers)


class WholeMatrix(RowStore):
    """A matrix that is there already, an array or a memory map, used in place."""

    def __init__(self, matrix: np.ndarray, max_bytes: float, workers: Workers | None = None) -> None:
        super().__init__(PrecomputedRows(matrix), matrix, max_bytes, workers)
        self.lru.place(np.arange(self.n))
