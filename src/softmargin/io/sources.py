"""Batches for a store from what other libraries hold: pyarrow, Polars, pandas and Dask.

Whose object it is shows in the module of its class, so that none of these libraries has to be imported, or installed,
for the others. Tables of every kind become pyarrow's, and are read as files with named columns are (`tables`).
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from softmargin.core.errors import DataFormatError, SoftmarginError
from softmargin.io.tables import QUERY_NAME, Options, from_table, need_pyarrow

_TABLES = ("pyarrow", "polars", "pandas")
# Rows of a Polars query that are computed at a time where Polars does not choose them itself.
_QUERY_ROWS = 1 << 17


def batches_of(
    source: Any, y: Any = None, sample_weight: Any = None, qid: Any = None
) -> tuple[Iterator[Any], tuple[str, ...] | None]:
    """Batches as a store takes them, and the names of the columns if the source has any.

    Of tables y, sample_weight and qid are the names of columns, of a matrix they are arrays.
    """
    given = {"y": y, "sample_weight": sample_weight, "qid": qid}
    if _library(source) == "dask" and hasattr(type(source), "blocks"):
        return _dask_batches(source, given), None
    pieces = _pieces(source)
    first = next(pieces, None)
    if first is None:
        return iter(()), None
    pieces = chain([first], pieces)
    if _is_table(first):
        return _table_batches(pieces, given)
    if _is_matrix(source):
        return iter([(source, y, sample_weight, qid)]), None
    if named := [name for name, value in given.items() if value is not None]:
        raise SoftmarginError(
            f"{named[0]} is given apart from batches: let each batch be a tuple (X, y, sample_weight, qid) instead."
        )
    return pieces, None


def _library(thing: Any) -> str:
    root = type(thing).__module__.partition(".")[0]
    return "dask" if root == "dask_expr" else root


def _is_table(thing: Any) -> bool:
    return _library(thing) in _TABLES and any(hasattr(thing, name) for name in ("columns", "column_names"))


def _is_matrix(thing: Any) -> bool:
    return len(getattr(thing, "shape", ())) == 2 and not _is_table(thing)


def _pieces(source: Any) -> Iterator[Any]:
    """What the source consists of: tables, or batches."""
    library = _library(source)
    if library == "dask":
        if not hasattr(type(source), "partitions"):
            raise SoftmarginError(f"a Dask {type(source).__name__} has no rows: give a Dask array or data frame.")
        return (source.partitions[k].compute() for k in range(source.npartitions))
    if library == "polars" and hasattr(source, "collect"):
        return _query_results(source)
    if library == "pyarrow" and hasattr(source, "to_batches"):
        return iter(source.to_batches())
    if _is_table(source) or _is_matrix(source):
        return iter([source])
    if not isinstance(source, Iterable):
        raise SoftmarginError(f"a store is written from batches of rows, and {type(source).__name__} has none.")
    return iter(source)


def _query_results(query: Any) -> Iterator[Any]:
    """The rows of a Polars query, some at a time. Versions that cannot do that run the query again for each part."""
    if hasattr(query, "collect_batches"):
        yield from query.collect_batches(maintain_order=True)
        return
    at = 0
    while (part := query.slice(at, _QUERY_ROWS).collect()).height:
        yield part
        at += part.height


# --- tables ---------------------------------------------------------------------------------------------------------


def _table_batches(tables: Iterator[Any], given: dict[str, Any]) -> tuple[Iterator[tuple], tuple[str, ...] | None]:
    for name, column in given.items():
        if column is not None and not isinstance(column, str):
            raise SoftmarginError(f"{name} of tables is the name of a column, not an array.")
    names: tuple[str, ...] | None = None

    def batches() -> Iterator[tuple]:
        nonlocal names
        for k, table in enumerate(tables):
            arrow = _as_arrow(table)
            if arrow.num_rows:
                names, batch = _from_arrow(arrow, given, names, f"table {k}")
                yield batch

    found = batches()
    first = next(found, None)
    return iter(()) if first is None else chain([first], found), names


def _as_arrow(table: Any) -> Any:
    need_pyarrow(f"a table of {_library(table)}")
    import pyarrow as pa

    if _library(table) == "pandas":
        return pa.Table.from_pandas(table, preserve_index=False)
    if _library(table) == "polars":
        return table.to_arrow()
    return pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table


def _from_arrow(
    table: Any, given: dict[str, Any], names: tuple[str, ...] | None, title: str
) -> tuple[tuple[str, ...] | None, tuple]:
    """The names of the features, and X, y, sample_weight and qid of a table; `names` are the features if known."""
    weights = None
    if given["sample_weight"] is not None:
        table, weights = _taken(table, given["sample_weight"], title)
        weights = weights.to_numpy()
    queries = given["qid"]
    if queries is not None and queries != QUERY_NAME:
        if QUERY_NAME in table.column_names:
            raise DataFormatError(f"there is a column {QUERY_NAME!r} beside {queries!r}: drop one.", file=title)
        table, column = _taken(table, queries, title)
        table = table.append_column(QUERY_NAME, column)
    has_queries = queries is not None or QUERY_NAME in table.column_names
    try:
        found = from_table(table, title, Options(given["y"], has_queries, None, False, names))
    except DataFormatError as error:
        raise DataFormatError(error.message.replace("label=", "y="), file=title) from None
    return found.feature_names, (found.X, found.y, weights, found.qid)


def _taken(table: Any, name: str, title: str) -> tuple[Any, Any]:
    """The table without a column, and the column."""
    if name not in table.column_names:
        raise DataFormatError(f"there is no column {name!r}.", file=title)
    return table.drop_columns([name]), table.column(name)


# --- Dask arrays ----------------------------------------------------------------------------------------------------


def _dask_batches(X: Any, given: dict[str, Any]) -> Iterator[tuple]:
    """The blocks of rows of a Dask array, computed one after the other, with what belongs to them."""
    if X.ndim != 2:
        raise SoftmarginError(f"X must be a matrix with two dimensions, but it has {X.ndim}.")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    columns = {name: _Column(name, value, X) for name, value in given.items() if value is not None}
    at = 0
    for k in range(X.numblocks[0]):
        block = X.blocks[k, 0].compute()
        rows = slice(at, at + block.shape[0])
        yield (block, *(columns[name].block(k, rows) if name in columns else None for name in given))
        at = rows.stop
    for column in columns.values():
        column.check_length(at)


class _Column:
    """A column beside a Dask array: one of Dask in as many blocks, or an array in memory."""

    def __init__(self, name: str, values: Any, X: Any) -> None:
        if isinstance(values, str):
            raise SoftmarginError(f"{name}={values!r} is the name of a column, and a Dask array has no names.")
        self._name = name
        self._is_dask = _library(values) == "dask"
        if not self._is_dask:
            self._values: Any = np.asarray(values)
            return
        values = values.to_dask_array() if hasattr(values, "to_dask_array") else values
        sizes, own = X.chunks[0], values.chunks[0]
        if own != sizes and all(size == size for size in (*own, *sizes)) and sum(own) == sum(sizes):
            values = values.rechunk((sizes,))
        if values.numblocks[0] != X.numblocks[0]:
            raise SoftmarginError(
                f"{name} has {values.numblocks[0]} blocks, but X has {X.numblocks[0]}: give both the same chunks "
                "(compute_chunk_sizes() finds out sizes that are not known)."
            )
        self._values = values

    def block(self, k: int, rows: slice) -> np.ndarray:
        return np.asarray(self._values.blocks[k].compute()) if self._is_dask else self._values[rows]

    def check_length(self, n_rows: int) -> None:
        if not self._is_dask and len(self._values) != n_rows:
            raise SoftmarginError(f"{self._name} has {len(self._values)} entries, but X has {n_rows} rows.")
