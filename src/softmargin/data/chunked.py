"""Rows in chunks that come one after the other, such as files: only a few of them need to be in memory at a time.

A product goes through the chunks in their order. Those which are in memory already are worked on together; of the
others, another thread fetches the next one while the threads work on the last. The parts of a sum and their order
follow from the chunks alone, so that the bits depend neither on the number of threads nor on how many chunks stay in
memory. Rows in a single chunk give the bits of the same rows in memory.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from typing import NamedTuple, Protocol

import numpy as np

from softmargin.core.threads import Workers
from softmargin.data.csr import CSRRows
from softmargin.data.dense import DenseRows
from softmargin.data.rows import add_t_dot, add_up, n_partial_sums, n_row_blocks


class ChunkSize(NamedTuple):
    """How many rows and stored values a chunk has, and how many bytes the values take, with their column indices."""

    n_rows: int
    n_values: int
    n_bytes: int


class Chunks(Protocol):
    """Where the chunks come from. `read` is called from several threads, and a chunk is let go after its use.

    `n_held` of them, the first ones, are in memory, so that `read` returns them at once.
    """

    @property
    def n_cols(self) -> int: ...

    @property
    def sizes(self) -> Sequence[ChunkSize]: ...

    @property
    def n_held(self) -> int: ...

    def read(self, k: int) -> DenseRows | CSRRows: ...


class ChunkedRows:
    """The contract `Products` for rows in chunks."""

    def __init__(self, chunks: Chunks, workers: Workers | None = None) -> None:
        self._chunks = chunks
        self._workers = workers or Workers(1)
        sizes = chunks.sizes
        self._places = [slice(*edges) for edges in pairwise(accumulate((size.n_rows for size in sizes), initial=0))]
        n_blocks = sum(n_row_blocks(size.n_rows, size.n_values) for size in sizes)
        self._n_sums = n_partial_sums(n_blocks, sum(size.n_bytes for size in sizes), chunks.n_cols)
        self._spare: list[np.ndarray] = []  # partial sums: pages of new memory cost more than adding to them

    @property
    def n_rows(self) -> int:
        return self._places[-1].stop if self._places else 0

    @property
    def n_cols(self) -> int:
        return self._chunks.n_cols

    def dot(self, w: np.ndarray) -> np.ndarray:
        out = np.empty(self.n_rows)
        for run in self._runs():
            jobs = [job for where, rows in run for job in rows.products.dot_jobs(w, out[where])]
            self._workers.map(lambda function, *arguments: function(*arguments), jobs)
        return out

    def dots(self, W: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """X w for every row w of W, one row of the result each, block by block: the rows are read once for all."""
        weights = DenseRows(np.ascontiguousarray(W, dtype=np.float64))
        for chunk, rows in self.blocks():
            for where, part in rows.blocks():
                self._workers.check()
                yield slice(chunk.start + where.start, chunk.start + where.stop), part.cross(weights).T

    def t_dot(self, v: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        total = np.zeros(self.n_cols)
        parts = [self._borrowed() for _ in range(self._n_sums - 1)]
        for run in self._runs():
            pieces = [(rows.products, v[at], None if before is None else before[at]) for at, rows in run]
            add_t_dot(pieces, [total, *parts], self._workers)
        add_up(total, parts, self._workers)
        self._spare += parts
        return total

    def sq_norms(self) -> np.ndarray:
        out = np.empty(self.n_rows)
        for where, rows in self.blocks():
            out[where] = rows.sq_norms()
        return out

    def blocks(self) -> Iterator[tuple[slice, DenseRows | CSRRows]]:
        """The chunks in their order, as rows in memory."""
        for run in self._runs():
            for where, rows in run:
                yield where, rows.on(self._workers)

    def on(self, workers: Workers) -> "ChunkedRows":
        return ChunkedRows(self._chunks, workers)

    def _runs(self) -> Iterator[list[tuple[slice, DenseRows | CSRRows]]]:
        """The chunks in their order: those in memory all at once, then one by one.

        Threads that work on a run end at different times, and the first ones wait. So chunks in memory are one run.
        """
        read, places, n_held = self._chunks.read, self._places, self._chunks.n_held
        held = [(where, read(k)) for k, where in enumerate(places[:n_held])]
        rest = range(n_held, len(places))
        if len(rest) <= 1 and not held:
            held, rest = [(places[k], read(k)) for k in rest], range(0)
        if not rest:
            yield held
            return
        with ThreadPoolExecutor(1, "softmargin-read") as reader:
            ahead = reader.submit(read, n_held)
            if held:
                yield held
            for k in rest:
                rows = ahead.result()
                if k + 1 in rest:
                    ahead = reader.submit(read, k + 1)
                yield [(places[k], rows)]
                del rows

    def _borrowed(self) -> np.ndarray:
        try:
            part = self._spare.pop()
        except IndexError:
            return np.zeros(self.n_cols)
        part.fill(0.0)
        return part
