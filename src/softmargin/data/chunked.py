"""Rows in chunks that come one after the other, such as files: only a few of them need to be in memory at a time.

A product goes through the chunks in their order. While the threads work on one chunk, another thread fetches the next.
The parts of a sum and their order follow from the chunks alone, so that the bits depend neither on the number of
threads nor on how many chunks stay in memory. Rows in a single chunk give the bits of the same rows in memory.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from typing import NamedTuple, Protocol

import numpy as np

from softmargin.core.threads import Workers
from softmargin.data.csr import CSRRows
from softmargin.data.dense import DenseRows
from softmargin.data.rows import FlatProducts, add_up, n_partial_sums, n_row_blocks


class ChunkSize(NamedTuple):
    """How many rows and stored values a chunk has, and how many bytes the values take, with their column indices."""

    n_rows: int
    n_values: int
    n_bytes: int


class Chunks(Protocol):
    """Where the chunks come from. `read` is called from several threads, and a chunk is let go after its use."""

    @property
    def n_cols(self) -> int: ...

    @property
    def sizes(self) -> Sequence[ChunkSize]: ...

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
        for where, products in self._products():
            self._workers.map(lambda function, *arguments: function(*arguments), products.dot_jobs(w, out[where]))
        return out

    def t_dot(self, v: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        total = np.zeros(self.n_cols)
        parts = [self._borrowed() for _ in range(self._n_sums - 1)]
        for where, products in self._products():
            products.add_t_dot(v[where], None if before is None else before[where], [total, *parts], self._workers)
        add_up(total, parts, self._workers)
        self._spare += parts
        return total

    def sq_norms(self) -> np.ndarray:
        out = np.empty(self.n_rows)
        for where, products in self._products():
            out[where] = products.sq_norms(self._workers)
        return out

    def blocks(self) -> Iterator[tuple[slice, DenseRows | CSRRows]]:
        """The chunks in their order, as rows in memory."""
        for where, rows in self._visited():
            yield where, rows.on(self._workers)

    def on(self, workers: Workers) -> "ChunkedRows":
        return ChunkedRows(self._chunks, workers)

    def _products(self) -> Iterator[tuple[slice, FlatProducts]]:
        return ((where, rows.products) for where, rows in self._visited())

    def _visited(self) -> Iterator[tuple[slice, DenseRows | CSRRows]]:
        """The chunks in their order; the next one is fetched by another thread meanwhile."""
        read, n_chunks = self._chunks.read, len(self._places)
        if n_chunks == 0:
            return
        if n_chunks == 1:
            yield self._places[0], read(0)
            return
        with ThreadPoolExecutor(1, "softmargin-read") as reader:
            ahead = reader.submit(read, 0)
            for k, where in enumerate(self._places):
                rows = ahead.result()
                if k + 1 < n_chunks:
                    ahead = reader.submit(read, k + 1)
                yield where, rows
                del rows

    def _borrowed(self) -> np.ndarray:
        try:
            part = self._spare.pop()
        except IndexError:
            return np.zeros(self.n_cols)
        part.fill(0.0)
        return part
