"""Data files in batches of rows, for files that are larger than memory.

Formats, names of columns and errors are those of `tables`. What a file holds shows only at its end, so a few things are
decided at its beginning: whether svmlight text counts features from 0 and has queries, and which columns of a CSV file
hold numbers.
"""

import os
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softmargin.core.errors import DataFormatError, SoftmarginError
from softmargin.core.threads import thread_count
from softmargin.io.compression import is_compressed, opened
from softmargin.io.svmlight import Failure, iter_svmlight, text_blocks
from softmargin.io.tables import (
    QUERY_NAME,
    Options,
    Table,
    check_header,
    explaining,
    from_table,
    load_table,
    map_matrix,
    need_pyarrow,
    without_label,
)

# A batch takes this part of the memory: it is there several times, as it is read, converted and written.
BATCH_SHARE = 1 / 16
# pyarrow reads 32 blocks of CSV text ahead, and converts some of them.
_CSV_SHARE = 1 / 64
# Parsing takes this many bytes for each byte of text, on each thread.
_PARSED_BYTES = 40
_LARGEST_TEXT, _SMALLEST_TEXT = 1 << 24, 1 << 16
_HEAD_BYTES = 1 << 22
_CSV_FILES = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst")
_ROW = re.compile(rb"^[ \t]*[^\s#].*", re.MULTILINE)
_QUERY = re.compile(rb"[ \t]*[^\s#]+[ \t]+qid:")
_ZERO = re.compile(rb"^[^#\n]*[ \t]0+:", re.MULTILINE)


@dataclass(frozen=True)
class Batches:
    """How files are read: see `tables.load_table`. None leaves what the beginning of a file tells.

    `memory_bytes` bounds what reading takes, but for the smallest pieces that a format has: a row group of a Parquet
    file, and arrays in a .npz file, which must be smaller.
    """

    memory_bytes: float
    label: str | int | None = None
    n_features: int | None = None
    zero_based: bool | None = None
    query_id: bool | None = None
    n_jobs: int | None = None

    def of(self, path: Any) -> Iterator[tuple[Table, float | None]]:
        """The rows of a file, batch by batch, in its order; and about which share of the file was read so far.

        The share is None for compressed text, of which nobody knows the length.
        """
        name = os.fsdecode(path)
        if os.path.getsize(name) == 0 and os.path.isfile(name):
            raise DataFormatError("the file is empty.", file=name)
        if not os.path.isfile(name):
            raise DataFormatError("this is no regular file, which could be read from its beginning again.", file=name)
        readers: dict[str | tuple[str, ...], Callable[[str], Iterator[tuple[Table, float | None]]]] = {
            ".npy": self._npy,
            ".npz": self._npz,
            ".parquet": self._parquet,
            _CSV_FILES: self._csv,
        }
        for ending, read in readers.items():
            if name.lower().endswith(ending):
                return read(name)
        return self._svmlight(name)

    def beginning(self, path: Any) -> tuple[bool, bool]:
        """Whether the beginning of svmlight text has index 0, and queries; of other files neither is known."""
        name = os.fsdecode(path)
        if not os.path.isfile(name) or name.lower().endswith((".npy", ".npz", ".parquet", *_CSV_FILES)):
            return False, False
        with opened(name) as (read, _):
            head = next(text_blocks(read, _HEAD_BYTES), b"")
        if isinstance(head, Failure):
            raise DataFormatError(head.message, file=name)
        first = _ROW.search(head)
        return _ZERO.search(head) is not None, first is not None and _QUERY.match(first[0]) is not None

    def _n_rows(self, row_bytes: int) -> int:
        return max(1, int(BATCH_SHARE * self.memory_bytes / max(row_bytes, 1)))

    def _svmlight(self, name: str) -> Iterator[tuple[Table, float | None]]:
        if self.label is not None:
            raise SoftmarginError(
                f"{name}: svmlight text has the label first in every line: leave label={self.label!r} out."
            )
        has_zero, has_queries = self.beginning(name)
        zero_based = has_zero if self.zero_based is None else self.zero_based
        query_id = has_queries if self.query_id is None else self.query_id
        n_bytes = int(self.memory_bytes / (_PARSED_BYTES * thread_count(self.n_jobs)))
        n_bytes = min(max(n_bytes, _SMALLEST_TEXT), _LARGEST_TEXT)
        blocks = iter_svmlight(
            name,
            n_features=self.n_features,
            zero_based=zero_based,
            query_id=query_id,
            block_bytes=n_bytes,
            n_jobs=self.n_jobs,
        )
        for k, (X, y, *qid) in enumerate(blocks, 1):
            yield (
                Table(X, y, qid[0] if qid else None, index_base=int(not zero_based)),
                _share_of_text(name, k * n_bytes),
            )

    def _npy(self, name: str) -> Iterator[tuple[Table, float | None]]:
        array = map_matrix(name)
        if self.query_id:
            raise SoftmarginError(f"{name}: a .npy file holds no queries: use .npz with the arrays X, y and qid.")
        step = self._n_rows(array.shape[1] * array.itemsize)
        for lo in range(0, array.shape[0], step):
            yield (
                without_label(np.array(array[lo : lo + step]), self.label, name),
                min((lo + step) / array.shape[0], 1.0),
            )

    def _npz(self, name: str) -> Iterator[tuple[Table, float | None]]:
        n_bytes = 0
        if zipfile.is_zipfile(name):
            with zipfile.ZipFile(name) as archive:
                n_bytes = sum(info.file_size for info in archive.infolist())
                has_queries = f"{QUERY_NAME}.npy" in archive.namelist()
        if n_bytes > self.memory_bytes / 2:
            raise SoftmarginError(
                f"{name} has arrays of {n_bytes} bytes, which are read as a whole, and for that there is not enough "
                "memory to be used. Save them as .npy files, which are read piece by piece."
            )
        query_id = n_bytes > 0 and has_queries if self.query_id is None else self.query_id
        table = load_table(name, label=self.label, n_features=self.n_features, query_id=query_id)
        n_rows = table.X.shape[0]
        step = self._n_rows(-(-n_bytes // max(n_rows, 1)))
        for lo in range(0, n_rows, step):
            where = slice(lo, lo + step)
            y, qid = (None if part is None else part[where] for part in (table.y, table.qid))
            yield replace(table, X=table.X[where], y=y, qid=qid), min((lo + step) / n_rows, 1.0)

    def _parquet(self, name: str) -> Iterator[tuple[Table, float | None]]:
        need_pyarrow(name)
        import pyarrow as pa
        from pyarrow import parquet

        # Otherwise pyarrow would keep the bytes of the whole file.
        with explaining(name), parquet.ParquetFile(name, pre_buffer=False) as file:
            columns = file.schema_arrow.names
            batches = file.iter_batches(
                batch_size=self._n_rows(8 * len(columns)), use_threads=thread_count(self.n_jobs) > 1
            )
            n_rows = 0
            for batch in batches:
                if batch.num_rows:
                    n_rows += batch.num_rows
                    table = from_table(pa.Table.from_batches([batch]), name, self._options(columns))
                    yield table, n_rows / file.metadata.num_rows

    def _csv(self, name: str) -> Iterator[tuple[Table, float | None]]:
        need_pyarrow(name)
        import pyarrow as pa
        from pyarrow import csv

        check_header(name)
        n_bytes = int(min(max(_CSV_SHARE * self.memory_bytes, _SMALLEST_TEXT), _LARGEST_TEXT))
        reading = csv.ReadOptions(use_threads=thread_count(self.n_jobs) > 1, block_size=n_bytes)
        with explaining(name), _hinting(n_bytes):
            with csv.open_csv(name, read_options=reading) as file:
                schema = file.schema
            # The first block says which columns hold numbers. Later ones may have fractions, or be the first not empty.
            options = self._options(schema.names)
            types = {
                field.name: pa.float64()
                for field in schema
                if (pa.types.is_integer(field.type) or pa.types.is_null(field.type))
                and not (options.query_id and field.name == QUERY_NAME)
            }
            converting = csv.ConvertOptions(column_types=types)
            with csv.open_csv(name, read_options=reading, convert_options=converting) as file:
                for k, batch in enumerate(file, 1):
                    if batch.num_rows:
                        table = from_table(pa.Table.from_batches([batch]), name, options)
                        yield table, _share_of_text(name, k * n_bytes)

    def _options(self, columns: list[str]) -> Options:
        query_id = QUERY_NAME in columns if self.query_id is None else self.query_id
        return Options(self.label, query_id, self.n_features, thread_count(self.n_jobs) > 1, None)


def _share_of_text(name: str, n_bytes: int) -> float | None:
    return None if is_compressed(name) else n_bytes / max(os.path.getsize(name), 1)


@contextmanager
def _hinting(n_bytes: int) -> Iterator[None]:
    """pyarrow's words for a row that is longer than a block say neither that nor what helps."""
    try:
        yield
    except ValueError as error:
        if isinstance(error, SoftmarginError) or "block" not in str(error):
            raise
        raise ValueError(f"{error}. Rows of more than {n_bytes} bytes need more memory") from None
