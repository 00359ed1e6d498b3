"""Rows on disk: a folder that is written once, and read in chunks by fits and predictions."""

import mmap
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from softmargin.core.errors import DataFormatError, SoftmarginError
from softmargin.core.memory import free_bytes
from softmargin.data.chunked import ChunkedRows, ChunkSize
from softmargin.data.convert import as_checked_csr, as_rows
from softmargin.data.csr import CSRRows
from softmargin.data.dense import DenseRows
from softmargin.io.store_format import (
    INDEX_TYPES,
    LARGEST_INTEGER,
    TARGET_TYPES,
    VALUE_TYPES,
    Manifest,
    check_crc,
    chunk_name,
    read_manifest,
    target_name,
)

_PAGE_BYTES = 4096


class Store(ChunkedRows):
    """Rows, targets, weights and queries in a folder, for data that are larger than memory.

    The linear estimators train on a store and predict its rows as they do with arrays: ``LinearSVC().fit(store)``. A
    fit reads the rows in passes, chunk by chunk. What it keeps in memory are vectors with a number for each row or
    column, its planes, and at most `memory_bytes` of chunks.

    Parameters
    ----------
    path : str or path
        The folder, which `Store.write` or ``softmargin convert`` has made. It is not trusted: the sizes of all files
        are compared with the manifest now, and checksum, indices and values of a chunk when it is first read. While a
        store is in use its files must not be changed.
    memory_bytes : int or None, default=None
        The bytes of chunks that may be mapped into memory at a time, for two chunks at least. Chunks that stay mapped
        are faster to reach again; what the system keeps of the files in its cache is its own affair. None is all of
        the memory that is free: mapped pages are no loss to others, because the system takes them back when it needs
        them.

    Attributes
    ----------
    shape : tuple of int
        The numbers of rows and columns.
    y, sample_weight, qid : ndarray of shape (n_rows,) or None
        The targets, weights and queries of the rows, if the store has them. They are read at first use.
    target_names : tuple of str
        Which of y, sample_weight and qid the store has. This reads none of them.
    feature_names : tuple of str or None
        The names of the columns.
    """

    def __init__(self, path: Any, *, memory_bytes: float | None = None) -> None:
        folder = _Folder(Path(path), memory_bytes)
        super().__init__(folder)
        self._folder = folder
        self.feature_names = folder.manifest.columns
        self.index_base = folder.manifest.index_base

    @classmethod
    def write(
        cls,
        path: Any,
        batches: Any,
        *,
        y: Any = None,
        sample_weight: Any = None,
        qid: Any = None,
        dtype: Any = None,
        n_features: int | str | None = None,
        feature_names: Iterable[str] | None = None,
        index_base: int | None = None,
        chunk_bytes: int | None = None,
        overwrite: bool = False,
        verbose: int = 0,
    ) -> "Store":
        """Write a store, and open it.

        The folder appears under its name when all of it is written. If anything goes wrong, nothing is left behind.

        Parameters
        ----------
        path : str or path
            The folder to make.
        batches : iterable, table or matrix
            Each batch of an iterable is X, or a tuple (X, y), (X, y, sample_weight) or (X, y, sample_weight, qid) of
            one or more rows. X is an array or a scipy sparse matrix; all batches must be of the same kind. None stands
            for a part that is not there, which must be so in all batches. y holds numbers or text, qid integers.
            Tables: a pyarrow Table, Dataset or RecordBatchReader, a Polars DataFrame or LazyFrame, a pandas or Dask
            DataFrame, or an iterable of tables. They are read part by part where they are not in memory.
            Matrices: a Dask array, of which one block of rows is computed at a time, an array or a sparse matrix.
        y, sample_weight, qid : str, array-like or None, default=None
            Of tables, the names of columns: y by default is the column called label, y or target, and qid the one
            called qid, if there are such. Of a matrix, the arrays themselves, of Dask or in memory.
        dtype : {"uint8", "float32", "float64"} or None, default=None
            The type of the values. By default it is that of the first batch, or the smallest of these that holds it.
        n_features : int, "max" or None, default=None
            The number of columns. By default it is that of the first batch, and the others must have as many. With
            "max", sparse batches may differ, and the widest counts.
        feature_names : iterable of str or None, default=None
            The names of the columns.
        index_base : {0, 1} or None, default=None
            The number of the first feature in the svmlight text that the rows come from, if they do.
        chunk_bytes : int or None, default=None
            The size of a chunk, 64 MiB by default. Rows of a query that follow each other stay in one chunk, unless
            they fill it.
        overwrite : bool, default=False
            Whether a store of this name is replaced. A folder that is no store never is.
        verbose : int, default=0
            1 shows how many rows are written, in a terminal or a notebook.
        """
        from softmargin.io.sources import batches_of
        from softmargin.io.store_writing import write_store

        found, names = batches_of(batches, y, sample_weight, qid)
        write_store(
            Path(path),
            found,
            dtype=dtype,
            n_features=n_features,
            feature_names=names if feature_names is None else feature_names,
            index_base=index_base,
            chunk_bytes=chunk_bytes,
            overwrite=overwrite,
            verbose=verbose,
        )
        return cls(path)

    def map(self, function: Callable[[Any], Any], path: Any, *, overwrite: bool = False) -> np.ndarray:
        """Write what a function makes of the rows to a file, such as ``store.map(model.predict, "labels.npy")``.

        Parameters
        ----------
        function : callable
            Called with the rows of one chunk after the other, an array or a CSR matrix; returns an array with an entry
            for each of them.
        path : str or path
            The file, whose name ends in .npy. It appears when all of it is written.
        overwrite : bool, default=False
            Whether a file of this name is replaced.

        Returns
        -------
        ndarray
            The values, as a read-only memory map of the file.
        """
        from softmargin.io.store_mapping import write_mapped

        return write_mapped(Path(path), self.blocks(), self.n_rows, function, overwrite=overwrite)

    @property
    def path(self) -> Path:
        return self._folder.path

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, self.n_cols

    @property
    def n_chunks(self) -> int:
        return len(self._folder.manifest.chunks)

    @property
    def size(self) -> int:
        """The number of stored values."""
        return sum(chunk.n_values for chunk in self._folder.manifest.chunks)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self._folder.manifest.value_type)

    @property
    def digest(self) -> str:
        """Identifies rows, targets, weights and queries, by their checksums."""
        manifest = self._folder.manifest
        return f"{self.shape} {sorted(manifest.targets.items())} {[chunk.crc for chunk in manifest.chunks]}"

    @property
    def target_names(self) -> tuple[str, ...]:
        return tuple(name for name in TARGET_TYPES if name in self._folder.manifest.targets)

    @cached_property
    def y(self) -> np.ndarray | None:
        found = self._folder.target("y")
        manifest = self._folder.manifest
        if found is None or manifest.label_kind == "float64":
            return found
        if manifest.label_kind != "text":
            return found.astype(manifest.label_kind)
        return np.array(manifest.labels)[found.astype(np.int64)]

    @cached_property
    def sample_weight(self) -> np.ndarray | None:
        return self._folder.target("sample_weight")

    @cached_property
    def qid(self) -> np.ndarray | None:
        return self._folder.target("qid")

    def targets(self) -> dict[str, np.ndarray | None]:
        """y, sample_weight and qid, by these names."""
        return {"y": self.y, "sample_weight": self.sample_weight, "qid": self.qid}

    def __repr__(self) -> str:
        manifest = self._folder.manifest
        kind = "dense" if manifest.index_type is None else "sparse"
        size = f"{self.n_rows} rows, {self.n_cols} columns, {kind} {self.dtype}, {len(manifest.chunks)} chunks"
        return f"Store({str(self.path)!r}: {size})"

    def __reduce__(self) -> tuple:
        return _reopened, (self.path, self._folder.memory_bytes)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise SoftmarginError(
            "a Store is not turned into an array, because it may be larger than memory. The linear estimators of "
            "softmargin train on it as it is; kernels and other libraries need arrays: store.blocks() reads them chunk "
            "by chunk."
        )


class StorePart:
    """Some chunks of a store that follow each other, for one of several machines that see the same folder."""

    is_in_memory = False  # what the system keeps of the files in its cache is its own affair

    def __init__(self, path: Path, chunks: range) -> None:
        self._folder = _Folder(path, None)
        self._chunks = chunks
        self.n_cols = self._folder.n_cols
        self.sizes = self._folder.sizes[chunks.start : chunks.stop]
        self._kept: dict[int, DenseRows | CSRRows] = {}

    def __reduce__(self) -> tuple:
        return StorePart, (self._folder.path, self._chunks)

    @property
    def n_held(self) -> int:
        return len(self._kept)

    def read(self, k: int) -> DenseRows | CSRRows:
        if k not in self._kept:
            self._kept[k] = self._folder._mapped(self._chunks[k])
        return self._kept[k]

    def targets(self) -> dict[str, np.ndarray]:
        """y, sample_weight and qid of its rows, as far as the store has them."""
        first = sum(size.n_rows for size in self._folder.sizes[: self._chunks.start])
        last = first + sum(size.n_rows for size in self.sizes)
        store = Store(self._folder.path)
        return {name: found[first:last].copy() for name, found in store.targets().items() if found is not None}


def _reopened(path: Path, memory_bytes: float) -> Store:
    return Store(path, memory_bytes=memory_bytes)


class _Folder:
    """The chunks of a store, each checked when it is first read. The first ones stay mapped, as many as may be.

    A pass begins with the first chunk and ends with the last, so that keeping those which were used last would keep
    those which are needed last.
    """

    def __init__(self, path: Path, memory_bytes: float | None) -> None:
        self.path = path
        self.manifest: Manifest = read_manifest(path)
        self.n_cols = self.manifest.n_cols
        manifest = self.manifest
        width = np.dtype(VALUE_TYPES[manifest.value_type]).itemsize
        if manifest.index_type is not None:
            width += np.dtype(INDEX_TYPES[manifest.index_type]).itemsize
        self.sizes = [ChunkSize(chunk.n_rows, chunk.n_values, width * chunk.n_values) for chunk in manifest.chunks]
        n_bytes = [manifest.parts(chunk)[1] for chunk in manifest.chunks]
        window = sum(sorted(n_bytes)[-2:])
        self.memory_bytes = max(window, free_bytes()) if memory_bytes is None else _checked_bytes(memory_bytes)
        if not self.memory_bytes >= window:
            raise SoftmarginError(
                f"memory_bytes={memory_bytes!r} is too little: two chunks of {path} take {window} bytes, the one that "
                "is worked on and the next. Write the store with smaller chunk_bytes."
            )
        left = self.memory_bytes - (0 if sum(n_bytes) <= self.memory_bytes else window)
        self._n_kept = int(np.searchsorted(np.cumsum(n_bytes), left, side="right"))
        self._kept: dict[int, DenseRows | CSRRows] = {}
        self._checked: dict[int, tuple[int, ...]] = {}  # the files as they were when they were checked

    def __reduce__(self) -> tuple:
        return _Folder, (self.path, self.memory_bytes)

    @property
    def n_held(self) -> int:
        return len(self._kept)  # passes read the chunks in their order, so that these are the first ones

    def read(self, k: int) -> DenseRows | CSRRows:
        rows = self._kept.get(k)
        if rows is None:
            rows = self._mapped(k)
            if k < self._n_kept:
                self._kept[k] = rows
        return rows

    def _mapped(self, k: int) -> DenseRows | CSRRows:
        """A chunk, all of whose pages are in memory when this returns."""
        manifest, chunk, path = self.manifest, self.manifest.chunks[k], self.path / chunk_name(k)
        parts, n_bytes = manifest.parts(chunk)
        with open(path, "rb") as file:
            try:
                memory = mmap.mmap(file.fileno(), n_bytes, access=mmap.ACCESS_READ)
            except ValueError:
                raise DataFormatError("the file became shorter while it was in use.", file=str(path)) from None
            found = os.fstat(file.fileno())
            identity = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
        self._advise(memory, k)
        arrays = [np.frombuffer(memory, part.dtype, part.size, part.offset) for part in parts]
        if self._checked.get(k, identity) != identity:
            raise DataFormatError("the file was changed while it was in use: open the store again.", file=str(path))
        if k in self._checked:
            np.frombuffer(memory, np.uint8)[::_PAGE_BYTES].max()
        else:
            check_crc(memory, chunk.crc, path)
            first_row = sum(earlier.n_rows for earlier in manifest.chunks[:k])
            _check_arrays(arrays, chunk.n_rows, manifest.n_cols, path, first_row)
            self._checked[k] = identity
        shape = chunk.n_rows, manifest.n_cols
        if manifest.index_type is None:
            rows: Any = as_rows(arrays[0].reshape(shape))
            return rows
        values, indices, starts = arrays
        return as_checked_csr(values, indices, starts, shape)

    def _advise(self, memory: mmap.mmap, k: int) -> None:
        """Tell the system how a chunk is used, where it listens.

        A chunk that will be mapped again and again is read in large pages at first, if the file system has them: then
        mapping it costs next to nothing. Later readings from the disk do not wait for large pages to be made free.
        """
        if k >= self._n_kept and k not in self._checked:
            advice = getattr(mmap, "MADV_HUGEPAGE", None)
        else:
            advice = getattr(mmap, "MADV_SEQUENTIAL", None)
        if advice is not None:
            with suppress(OSError):  # a kernel without large pages
                memory.madvise(advice)

    def target(self, name: str) -> np.ndarray | None:
        """A vector with a number for each row, checked; None if the store has none."""
        manifest, path = self.manifest, self.path / target_name(name)
        if name not in manifest.targets:
            return None
        found = np.fromfile(path, dtype=TARGET_TYPES[name], count=manifest.n_rows)
        if found.size != manifest.n_rows:
            raise DataFormatError("the file became shorter while it was in use.", file=str(path))
        check_crc(found, manifest.targets[name], path)
        if name == "qid":
            return found
        is_good = np.isfinite(found)
        if name == "y" and manifest.label_kind != "float64":
            is_good &= found == np.rint(found)
            least, most = {
                "int64": (-LARGEST_INTEGER, LARGEST_INTEGER),
                "bool": (0, 1),
                "text": (0, len(manifest.labels) - 1),
            }[manifest.label_kind]
            is_good &= (least <= found) & (found <= most)
        if not is_good.all():
            row = int(np.argmin(is_good))
            raise DataFormatError(f"row {row} has {found[row]}, which cannot be.", file=str(path))
        return found


def _checked_bytes(memory_bytes: Any) -> float:
    try:
        return float(memory_bytes)
    except (TypeError, ValueError):
        raise SoftmarginError(f"memory_bytes={memory_bytes!r} is not a number of bytes, such as 2**30.") from None


def _check_arrays(arrays: list[np.ndarray], n_rows: int, n_cols: int, path: Path, first_row: int) -> None:
    """Whether sparse rows are where their starts say, in order and within the columns, and all values are finite.

    Compiled code does not look where an index leads, and a repeated index would make the length of a row wrong.
    """
    values, *sparse = arrays
    if sparse:
        indices, starts = sparse
        if starts[0] != 0 or starts[-1] != indices.size or (starts[1:] < starts[:-1]).any():
            raise DataFormatError("the starts of the rows contradict the number of values.", file=str(path))
        if indices.size and not 0 <= indices.min() <= indices.max() < n_cols:
            raise DataFormatError(
                f"there are column indices from {indices.min()} to {indices.max()}, but {n_cols} columns.",
                file=str(path),
            )
        is_descent = indices[1:] <= indices[:-1]
        inner = starts[1:-1]
        is_descent[inner[(inner > 0) & (inner < indices.size)] - 1] = False  # where a row ends
        if is_descent.any():
            row = int(np.searchsorted(starts, int(np.argmax(is_descent)), side="right")) - 1
            raise DataFormatError(f"row {first_row + row}: the column indices do not ascend.", file=str(path))
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        place = int(np.argmin(np.isfinite(values)))
        row = int(np.searchsorted(sparse[1], place, side="right")) - 1 if sparse else place // n_cols
        column = int(sparse[0][place]) if sparse else place % n_cols
        raise DataFormatError(
            f"row {first_row + row}, column {column} holds {values[place]}: every value must be a finite number.",
            file=str(path),
        )
