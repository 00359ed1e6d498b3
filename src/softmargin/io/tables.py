"""Data files of every format to X and y: svmlight, .npz, .npy, and with pyarrow .parquet and .csv."""

import csv
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from reprlib import repr as shown
from typing import Any

import numpy as np
import scipy.sparse as sp

from softmargin.core.errors import DataFormatError, SoftmarginError
from softmargin.core.threads import thread_count
from softmargin.io.compression import opened
from softmargin.io.npy import map_npy, read_npz
from softmargin.io.svmlight import read_svmlight

# Columns that are taken as the label where none is named.
LABEL_NAMES = ("label", "y", "target")
QUERY_NAME = "qid"
SPARSE_PARTS = ("format", "shape", "data", "indices", "indptr")
MAX_COLUMNS = 2**31 - 1
_LONGEST_HEADER = 2**22  # bytes of the line that names the columns of a CSV file
# Names of columns are shown up to this length.
_LONG_NAME = 60
# A label and the first feature, perhaps after a query.
_SVMLIGHT_LINE = re.compile(r"[+-]?[\d.]+(e[+-]?\d+)?( qid:\d+)? \d+:")


@dataclass(frozen=True)
class Table:
    """Rows X (array or CSR matrix), and what the file says about them: labels, queries, names of the features.

    `left_out` are the names of columns that are none of the features asked for; `index_base` is the number of the first
    feature in svmlight text. `extra` are columns that were asked for by name and are no features.
    """

    X: Any
    y: np.ndarray | None = None
    qid: np.ndarray | None = None
    feature_names: tuple[str, ...] | None = None
    left_out: tuple[str, ...] = ()
    index_base: int | None = None
    extra: Mapping[str, np.ndarray] = field(default_factory=dict)


def load_table(
    path: Any,
    *,
    label: str | int | None = None,
    dtype: Any = None,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    n_jobs: int | None = None,
    query_id: bool = False,
    feature_names: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    extra: Sequence[str] = (),
) -> Table:
    """Read a data file; its name says how.

    Parameters
    ----------
    path : str or path
        ``.npz``: arrays X and, if there, y and qid; or a CSR matrix that `scipy.sparse.save_npz` wrote.
        ``.npy``: a matrix, memory-mapped where that is possible.
        ``.parquet``, ``.csv`` and ``.tsv`` (or ``.csv.gz``, ``.csv.bz2``, ``.csv.zst``, and so with ``.tsv``): columns
        with names; these need pyarrow.
        Anything else: svmlight text, also compressed.
    label : str, int or None
        Where the label is: the name or the number of a column, -1 being the last (.parquet, .csv; default: the one
        called label, y or target), the name of an array (.npz; default: y), the number of a column (.npy; default: no
        label).
    dtype : type of X; default: float64 for svmlight, else what the file has
    n_features : columns that X must have; sparse X may have fewer, and is widened
    zero_based : for svmlight, see `load_svmlight`
    n_jobs : threads for reading text
    query_id : whether the queries are read: qid: in svmlight, an array or a column qid elsewhere
    feature_names : for .parquet and .csv, the columns that become X, in this order; default: all but label and queries
    drop : for .parquet and .csv, columns that are left out
    extra : columns (.npz: arrays) that are no features and come back in `Table.extra`, as numbers or text

    Raises
    ------
    DataFormatError
        The file does not hold what its name says. Nothing in a file is ever run or unpickled.
    """
    name = os.fsdecode(path)
    if os.path.isfile(name) and os.path.getsize(name) == 0:
        raise DataFormatError("the file is empty.", file=name)
    read = _reader_of(name)
    if (drop or extra) and (read is None or name.lower().endswith(".npy")):
        raise SoftmarginError(f"{name} has no named columns, and so no {shown([*drop, *extra][0])}.")
    if read is not None:
        table = read(name, Options(label, query_id, n_features, thread_count(n_jobs) > 1, feature_names, drop, extra))
        if n_features is not None and table.X.shape[1] != n_features:
            raise DataFormatError(f"X has {table.X.shape[1]} features, but {n_features} are needed.", file=name)
        return table if dtype is None else replace(table, X=table.X.astype(dtype, copy=False))
    if label is not None:
        raise SoftmarginError(f"{name}: svmlight text has the label first in every line: leave label={label!r} out.")
    parts = read_svmlight(
        path,
        n_features=n_features,
        dtype=np.float64 if dtype is None else dtype,
        zero_based=zero_based,
        query_id=query_id,
        n_jobs=n_jobs,
    )
    if parts.X.shape[0] == 0:
        raise DataFormatError("the file has no rows, only blank lines or comments.", file=name)
    return Table(parts.X, parts.y, parts.qid, index_base=parts.index_base)


@dataclass(frozen=True)
class Options:
    """What the caller wants to know of the file."""

    label: str | int | None
    query_id: bool
    n_features: int | None
    use_threads: bool
    feature_names: Sequence[str] | None
    drop: Sequence[str] = ()
    extra: Sequence[str] = ()


Reader = Callable[[str, Options], Table]


def _reader_of(name: str) -> Reader | None:
    for endings, reader in READERS.items():
        if name.lower().endswith(endings):
            return reader
    return None


# --- NumPy's files ------------------------------------------------------------------------------------------------


def map_matrix(name: str) -> np.ndarray:
    """The matrix in a .npy file, as a memory map."""
    array = map_npy(name)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise DataFormatError(f"a matrix of numbers is needed, not shape {array.shape}, type {array.dtype}.", file=name)
    return array


def _read_npy(name: str, options: Options) -> Table:
    array = map_matrix(name)
    if options.query_id:
        raise SoftmarginError(f"{name}: a .npy file holds no queries: use .npz with the arrays X, y and qid.")
    return without_label(array, options.label, name)


def without_label(array: np.ndarray, label: str | int | None, name: str) -> Table:
    """The columns of a matrix, of which one may be the label."""
    if label is None:
        return Table(array)
    label = str(label)
    n_columns = array.shape[1]
    column = int(label) if label.removeprefix("-").isdecimal() else n_columns
    if not -n_columns <= column < n_columns:
        raise SoftmarginError(f"label={label} is not the number of one of the {n_columns} columns of {name}.")
    column %= n_columns
    y = np.array(array[:, column])
    if column == n_columns - 1:
        return Table(array[:, :-1], y)
    return Table(array[:, 1:] if column == 0 else np.delete(array, column, axis=1), y)


def _read_npz(name: str, options: Options) -> Table:
    key = "y" if options.label is None else str(options.label)
    if options.drop:
        raise SoftmarginError(f"{name}: the features of a .npz file have no names: leave out what drops some.")
    arrays = read_npz(name, {"X", key, QUERY_NAME, *SPARSE_PARTS, *options.extra})
    if "X" in arrays:
        X = arrays["X"]
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise DataFormatError(f"X must be a matrix of numbers, not shape {X.shape}, type {X.dtype}.", file=name)
    elif arrays.keys() >= set(SPARSE_PARTS):
        X = _sparse_matrix(arrays, options.n_features or 0, name)
    else:
        raise DataFormatError(
            "the file has neither an array X nor a matrix that scipy.sparse.save_npz wrote.", file=name
        )
    if options.label is not None and key not in arrays:
        raise DataFormatError(f"there is no array {key!r} for the label.", file=name)
    if options.query_id and QUERY_NAME not in arrays:
        raise DataFormatError(f"there is no array {QUERY_NAME!r}.", file=name)
    y = arrays.get(key)
    qid = arrays[QUERY_NAME] if options.query_id else None
    for what, column, kinds in ((key, y, "biufU"), (QUERY_NAME, qid, "iu")):
        if column is not None and (column.shape != (X.shape[0],) or column.dtype.kind not in kinds):
            raise DataFormatError(
                f"{what} has shape {column.shape} and type {column.dtype}: one entry for each of the {X.shape[0]} rows "
                "is needed.",
                file=name,
            )
    extra = {}
    for own in options.extra:
        if own not in arrays or arrays[own].shape != (X.shape[0],):
            raise DataFormatError(
                f"there is no array {own!r} with an entry for each of the {X.shape[0]} rows.", file=name
            )
        extra[own] = arrays[own]
    return Table(X, y, qid, extra=extra)


def _sparse_matrix(arrays: dict[str, np.ndarray], least_columns: int, name: str) -> Any:
    """The CSR matrix of checked arrays: compiled code does not look where an index leads."""
    form = arrays["format"].tolist()
    if form not in ("csr", b"csr"):
        raise DataFormatError(f"the sparse format is {shown(form)}: save X.tocsr() instead.", file=name)
    shape, data, indices, indptr = (arrays[part] for part in SPARSE_PARTS[1:])
    if shape.shape != (2,) or any(part.dtype.kind not in "iu" for part in (shape, indices, indptr)):
        raise DataFormatError("shape, indices and indptr must be integers, and shape two of them.", file=name)
    n_rows, n_cols = shape.tolist()
    good = (
        n_rows >= 0
        and 0 <= n_cols <= MAX_COLUMNS
        and data.dtype.kind in "biuf"
        and data.ndim == indices.ndim == indptr.ndim == 1
        and indptr.size == n_rows + 1
        and data.size == indices.size == indptr[-1]
        and indptr[0] == 0
        and (indptr[1:] >= indptr[:-1]).all()
        and (indices.size == 0 or (indices.min() >= 0 and indices.max() < n_cols))
    )
    if not good:
        raise DataFormatError("the arrays of the sparse matrix contradict each other.", file=name)
    values = data.astype(np.float32 if data.dtype == np.float16 else data.dtype.newbyteorder("="), copy=False)
    parts = (values, indices.astype(np.int64, copy=False), indptr.astype(np.int64, copy=False))
    return sp.csr_matrix(parts, shape=(n_rows, max(n_cols, least_columns)))


# --- tables with named columns ------------------------------------------------------------------------------------


def _read_parquet(name: str, options: Options) -> Table:
    need_pyarrow(name)
    from pyarrow import parquet

    return _from_columns(lambda: parquet.read_table(name, use_threads=options.use_threads), name, options)


def _read_csv(name: str, options: Options, separator: str = ",") -> Table:
    need_pyarrow(name)
    from pyarrow import csv as arrow

    check_header(name, separator)
    reading, parsing = arrow.ReadOptions(use_threads=options.use_threads), arrow.ParseOptions(delimiter=separator)
    return _from_columns(lambda: arrow.read_csv(name, read_options=reading, parse_options=parsing), name, options)


def _read_tsv(name: str, options: Options) -> Table:
    return _read_csv(name, options, "\t")


def check_header(name: str, separator: str = ",") -> None:
    """Whether the first line names columns, each of them once, with the separator between them.

    This is looked at before pyarrow is: that takes some kilobytes of memory for every column, also if the columns have
    no names and the whole file is a few hundred bytes of compressed commas.
    """
    if not os.path.isfile(name):
        return
    with opened(name) as (read, _):
        header, end, _ = read(_LONGEST_HEADER).partition(b"\n")
    if len(header) == _LONGEST_HEADER and not end:
        raise DataFormatError(
            f"the first line, which should name the columns, has more than {_LONGEST_HEADER >> 20} MiB.", file=name
        )
    own = separator.encode()
    for other, what in ((b";", "semicolons"), (b"\t", "tabs"), (b",", "commas")):
        if other != own and header.count(other) > header.count(own):
            wanted = "tabs" if own == b"\t" else "commas"
            raise DataFormatError(
                f"the columns seem to be separated by {what}: write the file with {wanted}, and numbers with decimal "
                "points. Tabs are for .tsv, commas for .csv.",
                file=name,
            )
    try:
        columns = next(csv.reader([header.decode("utf-8", "replace").rstrip("\r")], delimiter=separator), [])
    except csv.Error as error:
        raise DataFormatError(
            f"the first line, which should name the columns, cannot be read: {error}.", file=name
        ) from None
    if twice := [column for column, count in Counter(columns).items() if count > 1]:
        raise DataFormatError(f"there are two columns called {shown(twice[0])}.", file=name)


def need_pyarrow(name: str) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise SoftmarginError(f'{name}: pyarrow reads this file: pip install "softmargin[parquet]".') from None


def _from_columns(read: Callable[[], Any], name: str, options: Options) -> Table:
    """The table that `read` reads."""
    with explaining(name):
        return from_table(read(), name, options)


@contextmanager
def explaining(name: str) -> Iterator[None]:
    """What pyarrow finds damaged in a file; it may show when a column's name or values are asked for."""
    import pyarrow as pa

    os.stat(name)  # a missing file is not a damaged one
    try:
        yield
    except SoftmarginError:
        raise
    except UnicodeDecodeError:
        raise DataFormatError(
            "a column's name or label is not text in UTF-8: save the file as UTF-8.", file=name
        ) from None
    except (pa.ArrowException, ValueError, OSError) as error:
        raise DataFormatError(f"the file cannot be read: {error}", file=name) from None


def from_table(table: Any, name: str, options: Options) -> Table:
    # pandas writes the index of a frame as such columns.
    names = [column for column in table.column_names if not column.startswith("__index_level_")]
    if twice := [column for column, count in Counter(names).items() if count > 1]:
        raise DataFormatError(f"there are two columns called {twice[0]!r}.", file=name)
    wanted = options.feature_names
    taken = set() if wanted is None or options.label is not None else set(wanted)
    label_name = _label_column([column for column in names if column not in taken], options.label, name)
    special = [label_name] if label_name is not None else []
    if options.query_id:
        if QUERY_NAME not in names:
            raise DataFormatError(f"there is no column {QUERY_NAME!r}.", file=name)
        special.append(QUERY_NAME)
    for asked in (*options.extra, *options.drop):
        if asked not in names:
            raise DataFormatError(f"there is no column {asked!r}; the columns are {shown(names)}.", file=name)
    special += [*options.extra, *options.drop]
    others = [column for column in names if column not in special]
    features = others if wanted is None else _found_columns(others, list(wanted), name)
    used = set(features)
    left_out = tuple(column for column in others if column not in used)
    if not features or table.num_rows == 0:
        raise DataFormatError("there are no features, or no rows.", file=name)
    columns = [_numbers_of(table.column(feature), feature, name) for feature in features]
    X = np.empty((table.num_rows, len(columns)), dtype=np.result_type(*{column.dtype for column in columns}), order="F")
    for k, column in enumerate(columns):
        X[:, k] = column
    y = None if label_name is None else _labels_of(table.column(label_name), label_name, name)
    qid = _numbers_of(table.column(QUERY_NAME), QUERY_NAME, name) if options.query_id else None
    if qid is not None and qid.dtype.kind not in "iu":
        raise DataFormatError(f"the column {QUERY_NAME!r} must hold integers.", file=name)
    extra = {column: _labels_of(table.column(column), column, name) for column in options.extra}
    return Table(X, y, qid, tuple(features), left_out, extra=extra)


def _found_columns(names: list[str], wanted: list[str], name: str) -> list[str]:
    """The columns that are wanted, all of them."""
    known, needed = set(names), set(wanted)
    if missing := [column for column in wanted if column not in known]:
        unknown = [column for column in names if column not in needed]
        instead = f" Columns that it has instead: {shown(unknown)}." if unknown else ""
        raise DataFormatError(
            f"{len(missing)} of the {len(wanted)} columns that are needed are missing: {shown(missing)}.{instead}",
            file=name,
        )
    return wanted


def _label_column(names: list[str], label: Any, name: str) -> str | None:
    if label is not None:
        if label not in names and str(label).removeprefix("-").isdecimal() and -len(names) <= int(label) < len(names):
            return names[int(label)]
        if label not in names:
            raise DataFormatError(f"there is no column {label!r}; the columns are {shown(names)}.", file=name)
        return str(label)
    found = [column for column in LABEL_NAMES if column in names]
    if len(found) > 1:
        raise DataFormatError(f"{' and '.join(map(repr, found))} may be the label: name it with label=.", file=name)
    return found[0] if found else None


def _numbers_of(column: Any, title: str, name: str) -> np.ndarray:
    import pyarrow as pa

    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        if _SVMLIGHT_LINE.match(title):
            raise DataFormatError(
                "the first line, which should name the columns, is svmlight text: give the file another ending, such "
                "as .svm.",
                file=name,
            )
        title = title if len(title) <= _LONG_NAME else title[:_LONG_NAME] + "..."
        raise DataFormatError(
            f"the column {title!r} holds {kind}, not numbers: encode it as numbers, leave it out, or, if it is the "
            "label, name it with label=.",
            file=name,
        )
    return _without_gaps(column, title, name).to_numpy()


def _labels_of(column: Any, title: str, name: str) -> np.ndarray:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column.validate(full=True)  # text in a Parquet file need not be UTF-8
        return _without_gaps(column, title, name).to_numpy()
    return _numbers_of(column, title, name)


def _without_gaps(column: Any, title: str, name: str) -> Any:
    if column.null_count:
        raise DataFormatError(
            f"the column {title!r} has {column.null_count} missing values: fill them, or leave their rows out.",
            file=name,
        )
    return column


READERS: dict[str | tuple[str, ...], Reader] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".parquet": _read_parquet,
    (".csv", ".csv.gz", ".csv.bz2", ".csv.zst"): _read_csv,
    (".tsv", ".tsv.gz", ".tsv.bz2", ".tsv.zst"): _read_tsv,
}
