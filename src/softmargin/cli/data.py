"""From the options about data to a table; labels as they were in the file."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from softmargin.core.errors import DataFormatError, SoftmarginError
from softmargin.io.compression import opened
from softmargin.io.npy import read_npz
from softmargin.io.svmlight import Failure, text_blocks
from softmargin.io.tables import QUERY_NAME, Table, load_table

COLUMN_FILES = (".parquet", ".csv", ".csv.gz", ".csv.bz2", ".csv.zst")
# Rows of svmlight text, and those that have a query.
_ROW = re.compile(rb"^[ \t]*[^\s#].*", re.MULTILINE)
_QUERY = re.compile(rb"^[ \t]*[^\s#]+[ \t]+qid:", re.MULTILINE)
_PIECE_BYTES = 2**22


class Labelled(NamedTuple):
    """What there is to learn from, or to compare with."""

    X: Any
    y: np.ndarray
    qid: np.ndarray | None

    @property
    def n_queries(self) -> int | None:
        return None if self.qid is None else len(np.unique(self.qid))


@dataclass(frozen=True)
class DataOptions:
    label: str | None = None
    index_base: str = "auto"
    n_features: int | None = None
    dtype: str = "float64"
    n_jobs: int = -1
    no_qid: bool = False


def read(path: Path, options: DataOptions, n_features: int | None = None, *, with_queries: bool = False) -> Table:
    """The rows of a file; whole numbers as labels become integers, so that they are shown as in the file.

    With `with_queries` the table has the queries if the file has them and the options do not leave them out.
    """
    label: Any = options.label
    if label is not None and path.suffix == ".npy":
        try:
            label = int(label)
        except ValueError:
            raise SoftmarginError(f"--label {label}: the columns of {path} have numbers, not names.") from None
    is_text = path.suffix not in (".npy", ".npz", ".csv", ".parquet")
    table = load_table(
        path,
        label=label,
        dtype=options.dtype if is_text else None,
        n_features=options.n_features if n_features is None else n_features,
        zero_based="auto" if options.index_base == "auto" else options.index_base == "0",
        n_jobs=options.n_jobs,
        query_id=with_queries and _has_queries(path, options),
    )
    return replace(table, y=_as_in_file(table.y), qid=None if options.no_qid else table.qid)


def read_labelled(
    path: Path, options: DataOptions, n_features: int | None = None, *, with_queries: bool = False
) -> Labelled:
    table = read(path, options, n_features, with_queries=with_queries)
    if table.y is None:
        raise SoftmarginError(f"{path} has no labels: name their column with --label.")
    return Labelled(table.X, table.y, table.qid)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """What scikit-learn's checks of X and y find is told with the name of the file, in one sentence."""
    try:
        yield
    except SoftmarginError:
        raise
    except ValueError as error:
        raise DataFormatError(str(error).splitlines()[0], file=str(path)) from None


def _as_in_file(y: np.ndarray | None) -> np.ndarray | None:
    if y is None or y.dtype.kind != "f" or not np.all(np.abs(y) < 2**53) or not np.all(y == np.rint(y)):
        return y
    return y.astype(np.int64)


def _has_queries(path: Path, options: DataOptions) -> bool:
    """Whether queries are to be read, if only to keep their column apart from the features."""
    name = path.name.lower()
    if name.endswith(COLUMN_FILES):
        table = load_table(path, label=options.label, n_jobs=options.n_jobs)
        return QUERY_NAME in (table.feature_names or ())
    if options.no_qid or name.endswith(".npy"):
        return False
    if name.endswith(".npz"):
        return QUERY_NAME in read_npz(path, {QUERY_NAME})
    return _text_has_queries(path) if path.is_file() else True  # a pipe can be read only once


def _text_has_queries(path: Path) -> bool:
    """Whether the first row has a query; the reader then wants one in all others. If it has none, no other may."""
    first = None
    with opened(path) as (read_bytes, name):
        for rows in text_blocks(read_bytes, _PIECE_BYTES):
            if isinstance(rows, Failure):
                raise DataFormatError(rows.message, file=name)
            first = first or _ROW.search(rows)
            if first is not None and _QUERY.match(first[0]):
                return True
            if b"qid:" in rows and _QUERY.search(rows):
                raise DataFormatError(
                    "some rows have a qid and others have none, the first one among them. Give each row one, or rank "
                    "all rows together with --no-qid.",
                    file=name,
                )
    return False
