"""Groups of partitions: what a worker of a cluster holds of the data, and what it may remember beside them."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.threads import Workers
from softmargin.data.chunked import ChunkedRows, Chunks, ChunkSize
from softmargin.data.convert import as_rows
from softmargin.data.rows import RowAccess


class LostPiece(Exception):
    """A worker was asked about a vector that it does not remember: the group came here after the vector was made."""


class MemoryChunks:
    """Blocks of rows in memory, as chunks. They are not copied."""

    is_in_memory = True

    def __init__(self, blocks: Sequence[Any], n_cols: int) -> None:
        self._blocks: list[Any] = [as_rows(block) for block in blocks]
        self.n_cols = n_cols
        self.sizes = [_size_of(rows) for rows in self._blocks]
        self.n_held = len(self._blocks)

    def __reduce__(self) -> tuple:
        return MemoryChunks, ([rows.native() for rows in self._blocks], self.n_cols)

    def read(self, k: int) -> Any:
        return self._blocks[k]


def _size_of(rows: RowAccess) -> ChunkSize:
    flat = rows.flat
    return ChunkSize(rows.n_rows, flat.values.size, flat.values.nbytes + flat.indices.nbytes)


class GroupChunks(Chunks, Protocol):
    """Chunks of a group, which say whether they take the memory of the worker."""

    is_in_memory: bool


class Group:
    """Consecutive partitions: rows, and columns such as y with an entry for each row.

    `numbers` are those of the partitions that have rows, one for each chunk.
    `memory` is for what can be computed again, such as outputs of the rows: it is not sent along if the group moves to
    another worker or to disk, and is forgotten with the group.
    """

    def __init__(
        self, partitions: range, chunks: GroupChunks, columns: dict[str, np.ndarray], numbers: list[int]
    ) -> None:
        self.partitions = partitions
        self.numbers = numbers
        self.chunks = chunks
        self.columns = columns
        self.memory: dict[Any, Any] = {}

    def __reduce__(self) -> tuple:
        return Group, (self.partitions, self.chunks, self.columns, self.numbers)

    def __sizeof__(self) -> int:
        """For Dask, which decides by it what to move and what to put on disk."""
        columns = sum(column.nbytes for column in self.columns.values())
        return columns + (sum(size.n_bytes for size in self.chunks.sizes) if self.chunks.is_in_memory else 0)

    @property
    def n_rows(self) -> int:
        return sum(size.n_rows for size in self.chunks.sizes)

    @property
    def weights(self) -> np.ndarray:
        """The weights of the rows: ones if there are none."""
        weights = self.columns.get("sample_weight")
        return np.ones(self.n_rows) if weights is None else np.asarray(weights, dtype=np.float64)

    def rows(self, workers: Workers) -> ChunkedRows:
        return ChunkedRows(self.chunks, workers)

    def remembered(self, key: Any, make: Callable[[], Any]) -> Any:
        """What is remembered under a key; it is made if there is nothing."""
        if key not in self.memory:
            self.memory[key] = make()
        return self.memory[key]


@cache
def team(n_threads: int) -> Workers:
    """The threads that all tasks of a process share."""
    return Workers(n_threads)


def in_memory(partitions: range, blocks: Sequence[Any], columns: dict[str, Sequence[Any]]) -> Group:
    """The group of these blocks of rows, checked: errors name the partition."""
    found, widths = [], []
    for number, block in zip(partitions, blocks, strict=True):
        try:
            rows = as_rows(block)
        except (SoftmarginError, TypeError, ValueError) as error:
            raise SoftmarginError(f"partition {number} of X cannot be used: {error}") from None
        _check_finite(rows, number)
        found.append(rows)
        widths.append(rows.n_cols)
    for number, width in zip(partitions, widths, strict=True):
        if width != widths[0]:
            raise SoftmarginError(
                f"partition {number} of X has {width} columns, but partition {partitions[0]} has {widths[0]}: give all "
                "of them the same columns."
            )
    vectors = {name: _joined(name, partitions, found, parts) for name, parts in columns.items()}
    occupied = [rows.native() for rows in found if rows.n_rows]
    numbers = [number for number, rows in zip(partitions, found, strict=True) if rows.n_rows]
    return Group(partitions, MemoryChunks(occupied, widths[0]), vectors, numbers)


def _joined(name: str, partitions: range, rows: Sequence[RowAccess], parts: Sequence[Any]) -> np.ndarray:
    """A column with an entry for each row, in one vector."""
    found = []
    for number, own, part in zip(partitions, rows, parts, strict=True):
        column = np.asarray(part)
        if column.ndim == 2 and column.shape[1] == 1:
            column = column[:, 0]
        if column.shape != (own.n_rows,):
            raise SoftmarginError(
                f"partition {number} has {own.n_rows} rows of X, but {name} has the shape {column.shape} there: take "
                f"the same rows of X and {name}, in the same partitions. Where sizes are not known, "
                f"X.compute_chunk_sizes() finds them out; then {name}.rechunk(X.chunks[0]) can follow them."
            )
        found.append(column)
    # Labels of an empty partition may have another type.
    return np.concatenate([part for part in found if part.size] or found[:1])


def _check_finite(rows: RowAccess, number: int) -> None:
    values = rows.flat.values
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        is_bad = ~np.isfinite(values)
        raise SoftmarginError(
            f"partition {number} of X holds {values[np.argmax(is_bad)]} ({np.count_nonzero(is_bad)} such values): "
            "every value must be a finite number. Fill in what is missing, or leave these rows out."
        )
