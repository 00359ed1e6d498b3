"""A kernel matrix with a cache of rows around it."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.threads import Workers
from softmargin.kernels.errors import EntryErrors
from softmargin.kernels.lru import LRU
from softmargin.kernels.matrix import DirectRows, KernelRows
from softmargin.kernels.precise import PreciseRows
from softmargin.kernels.precomputed import PrecomputedRows

_COLUMNS = 4096  # a thread sums rows over this many columns at a time
_SCRATCH_BYTES = 1 << 26  # memory for rows that are computed, used once and forgotten
_GATHER_PARTS = 4  # the matrix of a block is gathered in this many parts, which threads share
_GATHER_COST = 4.0  # picking single entries out of a row takes this many times as long as reading them in order


class Slab(NamedTuple):
    """What compiled loops see of the cache: row i is values[slot_of[i]] if slot_of[i] is not -1.

    `owner` tells which row a slot holds. A loop that uses a row sets the stamp of its slot to clock[0], and advances
    the clock; so the rows that were used least recently give way.
    """

    values: np.ndarray
    slot_of: np.ndarray
    stamp: np.ndarray
    clock: np.ndarray
    owner: np.ndarray


class RowStore:
    """Rows of a kernel matrix in memory: `slab[lru.slot_of[i]]` is row i if it is there.

    Solvers use the methods. Compiled loops read the slab where it lies (`opened`), and ask for rows that are missing.
    `hits` and `misses` count the rows that were there when they were needed, and that were not.
    """

    def __init__(
        self,
        source: KernelRows,
        slab: np.ndarray,
        max_bytes: float,
        workers: Workers | None,
        lru: LRU | None = None,
    ) -> None:
        self.source, self.slab, self.max_bytes = source, slab, max_bytes
        self.workers = workers or Workers(1)
        self.lru = lru or LRU(source.n, len(slab))
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

    @property
    def n_cached(self) -> int:
        """How many rows are there."""
        return int(np.count_nonzero(self.lru.owner >= 0))

    def opened(self) -> Slab:
        """The cache as compiled loops see it; it is valid until rows are added or removed."""
        return Slab(self.slab, self.lru.slot_of, self.lru.stamp, self.lru.clock, self.lru.owner)

    def count(self, hits: int, misses: int = 0) -> None:
        """Add what a compiled loop, or a part of the matrix, has used."""
        self.hits += hits
        self.misses += misses

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

    def everything(self) -> np.ndarray:
        """The whole matrix, to be read only, if all of its rows fit; where they lie, if that is in order."""
        every = np.arange(self.n)
        slots = self.fetch(every)
        if self.slab.shape[1] == self.n and (slots == every).all():
            return self.slab
        matrix = np.empty((self.n, self.n), self.dtype)
        self.gather(slots, every, every, matrix)
        return matrix

    def gather(self, slots: np.ndarray, members: np.ndarray, fresh: np.ndarray, matrix: np.ndarray) -> None:
        """Bring matrix = K[members, members] up to date where the places `fresh` have new members.

        `slots` are those of the members, which have been fetched.
        """
        from softmargin.kernels import _tiles

        cuts = np.linspace(0, fresh.size, _GATHER_PARTS + 1).astype(int).tolist()
        self.workers.map(
            lambda lo, hi: _tiles.gather(self.slab, slots, members, fresh, lo, hi, matrix), list(pairwise(cuts))
        )
        _tiles.mirror(matrix, fresh)

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """K[rows, columns] in float64. What is cached, as a row or as a column, is looked up; nothing is kept."""
        out = np.empty((rows.size, columns.size))
        slots = self.lru.slot_of[rows]
        for j in (slots >= 0).nonzero()[0].tolist():
            out[j] = self.slab[slots[j]].take(columns)
        rest = (slots < 0).nonzero()[0]
        if rest.size == 0:
            return out
        slots = self.lru.slot_of[columns]
        there, missing = (slots >= 0).nonzero()[0], (slots < 0).nonzero()[0]
        out[rest[:, None], there] = self.slab[slots[there], rows[rest, None]]  # by symmetry
        if missing.size:
            out[rest[:, None], missing] = self.source.rows(rows[rest], columns[missing])
        return out

    def add_rows(self, rows: np.ndarray, change: np.ndarray, f: np.ndarray, columns: np.ndarray | None) -> None:
        """f += sum_k change[k] K[rows[k]], for all columns or the given ones.

        As many rows are kept as the cache holds; the others are computed in parts.
        """
        if rows.size == 0:
            return
        order = np.argsort(self.lru.slot_of[rows] < 0, kind="stable")
        kept, rest = order[: self.capacity], order[self.capacity :]
        slots = self.fetch(rows[kept])
        if columns is None:
            self.add(slots, change[kept], f)
        elif _GATHER_COST * columns.size > self.n:
            total = np.zeros(self.n)
            self.add(slots, change[kept], total)
            f[columns] += total[columns]
        else:
            for part in _parts(kept.size, columns.size):
                f[columns] += change[kept[part]] @ self.slab[slots[part, None], columns]
        for part in _parts(rest.size, self.n if columns is None else columns.size):
            values = change[rest[part]] @ self.source.rows(rows[rest[part]], columns)
            f[slice(None) if columns is None else columns] += values
        self.misses += rest.size

    def product(self, beta: np.ndarray, *, keep: bool = False) -> np.ndarray:
        """K beta, from the rows where beta is not zero. Those that are missing are computed, and kept if asked for."""
        if keep:
            self.fetch(np.flatnonzero(beta)[: self.capacity])
        return self.products(beta[:, None])[:, 0]

    def products(self, columns: np.ndarray) -> np.ndarray:
        """K times each column, in one go over the rows."""
        from softmargin.kernels import _tiles

        totals = np.zeros((columns.shape[1], self.n))
        blocks = [(lo, min(lo + _COLUMNS, self.n)) for lo in range(0, self.n, _COLUMNS)]

        def add(slab: np.ndarray, slots: np.ndarray, rows: np.ndarray) -> None:
            part = columns[rows]
            self.workers.map(lambda lo, hi: _tiles.add_columns(slab, slots, part, lo, hi, totals), blocks)

        support = np.flatnonzero(columns.any(axis=1))
        slots = self.lru.slot_of[support]
        if slots.min(initial=0) >= 0:
            add(self.slab, slots, support)
            return totals.T
        there = slots >= 0
        add(self.slab, slots[there], support[there])
        rest = support[~there]
        step = max(1, _SCRATCH_BYTES // (max(1, self.n) * self.dtype.itemsize))
        for at in range(0, rest.size, step):
            part = rest[at : at + step]
            add(self.source.rows(part), np.arange(part.size), part)
        return totals.T

    def narrow(self, index: np.ndarray) -> "CachedRows":
        """The part K[index, index] with a cache of its own, which starts with what is known already."""
        part = CachedRows(self.source.narrow(index), self.max_bytes, self.workers)
        part.take_over(self.slab, self.lru, index)
        return part

    def widened(
        self, part: "RowStore | None", active: np.ndarray, rows: np.ndarray, columns: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Some of `rows` at a time, and K[rows, columns]: the columns that the part K[active, active] lacks."""
        step = max(1, _SCRATCH_BYTES // (8 * max(1, self.n)))
        for at in range(0, rows.size, step):
            yield rows[at : at + step], self.rows(rows[at : at + step], columns)


def _parts(n_rows: int, width: int) -> Iterator[slice]:
    """Rows so few at a time that their entries fit into the memory for scratch."""
    step = max(1, _SCRATCH_BYTES // (8 * max(width, 1)))
    return (slice(at, at + step) for at in range(0, n_rows, step))


class CachedRows(RowStore):
    """Rows of `source`, of which as many are kept as `max_bytes` allow. Rows take memory when they are written.

    A part of the matrix (`narrow`) and the whole take no more than `max_bytes` together. If all of the part fits beside
    the rows that are there, both are kept. Else the part takes the memory of the whole, until it is widened again. A
    store that gives its memory away has new memory, in which nothing is written yet, so that it can still be used.
    """

    def __init__(
        self,
        source: KernelRows,
        max_bytes: float,
        workers: Workers | None = None,
        memory: np.ndarray | None = None,
    ) -> None:
        row_bytes = max(1, source.n) * source.dtype.itemsize
        if max_bytes < min(2, source.n) * row_bytes:
            raise SoftmarginError(
                f"a cache of {max_bytes:,.0f} bytes cannot hold two rows of the kernel matrix, which take "
                f"{row_bytes:,} each: set cache_bytes to at least {2 * row_bytes:,}, or leave it None."
            )
        self._is_written = memory is not None  # all of the memory may be taken already
        if memory is None:
            capacity = int(min(source.n, max_bytes // row_bytes))
            memory = np.empty(capacity * source.n, source.dtype)
        self._memory = memory
        super().__init__(source, self._shaped(memory, source.n), max_bytes, workers)

    @staticmethod
    def _shaped(memory: np.ndarray, n: int) -> np.ndarray:
        """Memory as rows of length n."""
        capacity = min(n, memory.size // max(1, n))
        return memory[: capacity * n].reshape(capacity, n)

    def _given(self) -> tuple[np.ndarray, np.ndarray, LRU]:
        """The memory, the rows in it and where they are; the store itself goes on empty, in memory not yet written."""
        memory, slab, lru = self._memory, self.slab, self.lru
        self._memory, self._is_written = np.empty_like(memory), False
        self.slab, self.lru = self._shaped(self._memory, self.n), LRU(self.n, lru.capacity)
        self.lru.clock[0] = lru.clock[0]
        return memory, slab, lru

    def take_over(self, slab: np.ndarray, lru: LRU, index: np.ndarray) -> None:
        """Take the rows of the part `index` that another store holds, the last used ones as far as there is room.

        This store may lie in the memory that they lie in: a row is copied to a place before all rows that are not
        copied yet.
        """
        known = np.flatnonzero(lru.slot_of[index] >= 0)
        stamps = lru.stamp[lru.slot_of[index[known]]]
        known = known[np.argsort(-stamps, kind="stable")][: self.capacity]
        known = known[np.argsort(lru.slot_of[index[known]])]
        before = lru.slot_of[index[known]]
        for slot, old in enumerate(before.tolist()):
            self.slab[slot] = slab[old].take(index)
        slots, _ = self.lru.place(known)  # in order, because none was used before
        self.lru.stamp[slots] = lru.stamp[before]
        self.lru.clock[0] = lru.clock[0]

    def narrow(self, index: np.ndarray) -> "CachedRows":
        """The part K[index, index], which begins with the rows that are known, cut."""
        spare = self.max_bytes - self.n_cached * self.n * self.dtype.itemsize
        if not self._is_written and index.size**2 * self.dtype.itemsize <= spare:
            part = CachedRows(self.source.narrow(index), spare, self.workers)
            part.take_over(self.slab, self.lru, index)
            return part
        memory, slab, lru = self._given()
        part = CachedRows(self.source.narrow(index), self.max_bytes, self.workers, memory)
        part.take_over(slab, lru, index)
        return part

    def widened(
        self, part: RowStore | None, active: np.ndarray, rows: np.ndarray, columns: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """As in general; the memory that a part took comes back, with those of `rows` that the part holds, complete.

        Rows that lie one behind the other are moved apart from the last to the first, so that none is overwritten.
        """
        has_given = self.n_cached == 0 and isinstance(part, CachedRows) and part._memory.size >= self._memory.size
        if not has_given or not isinstance(part, CachedRows):
            yield from super().widened(part, active, rows, columns)
            return
        memory, short, lru = part._given()
        where = np.full(self.n, -1)
        where[active] = lru.slot_of
        kept = rows[where[rows] >= 0]
        kept = kept[np.argsort(-lru.stamp[where[kept]], kind="stable")][: self.capacity]
        kept = kept[np.argsort(where[kept])]
        for at, slot in enumerate(where[kept].tolist()):
            short[at] = short[slot]
        slab = self._shaped(memory, self.n)
        step = max(1, _SCRATCH_BYTES // (8 * max(1, self.n)))
        for end in range(kept.size, 0, -step):
            begin = max(0, end - step)
            values = self.rows(kept[begin:end], columns)
            for at in range(end - 1, begin - 1, -1):
                row = short[at].copy()
                slab[at, active], slab[at, columns] = row, values[at - begin]
            yield kept[begin:end], values
        yield from super().widened(part, active, rows[~np.isin(rows, kept)], columns)
        stamps = lru.stamp[where[kept]]
        self._memory, self._is_written = memory, True
        self.slab, self.lru = slab, LRU(self.n, len(slab))
        self.lru.place(kept)
        self.lru.stamp[: kept.size] = stamps
        self.lru.clock[0] = lru.clock[0]


class WholeMatrix(RowStore):
    """A matrix that is there already, an array or a memory map, used in place."""

    def __init__(self, matrix: np.ndarray, max_bytes: float, workers: Workers | None = None) -> None:
        super().__init__(PrecomputedRows(matrix), matrix, max_bytes, workers, LRU.full(len(matrix)))
