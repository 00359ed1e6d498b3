"""Stores from what other libraries hold: tables and arrays of pyarrow, Polars, pandas and Dask."""

import os
import warnings

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
import scipy.sparse as sp

from softmargin import LinearSVC, SoftmarginError, Store
from softmargin.io import sources

with warnings.catch_warnings():  # early versions announce another implementation
    warnings.simplefilter("ignore")
    import dask.dataframe as dd

RNG = np.random.default_rng(2)
X = RNG.standard_normal((50, 3))
Y = np.where(X[:, 0] > 0, 1, -1)
W = RNG.random(50)
Q = np.repeat(np.arange(10), 5)
FRAME = pd.DataFrame(X, columns=list("abc")).assign(y=Y, w=W, qid=Q)


def joined(store):
    parts = [part.native() for _, part in store.blocks()]
    return np.concatenate([part.toarray() if sp.issparse(part) else part for part in parts])


def check(store, names=("a", "b", "c")):
    np.testing.assert_array_equal(joined(store), X)
    np.testing.assert_array_equal(store.y, Y)
    np.testing.assert_array_equal(store.sample_weight, W)
    np.testing.assert_array_equal(store.qid, Q)
    assert store.feature_names == names


def dataset(tmp_path):
    for k in range(2):
        FRAME[25 * k : 25 * k + 25].to_parquet(tmp_path / f"part{k}.parquet")
    return pyarrow.dataset.dataset([tmp_path / "part0.parquet", tmp_path / "part1.parquet"])


TABLES = {
    "pandas": lambda tmp_path: FRAME,
    "pandas in parts": lambda tmp_path: (FRAME[lo : lo + 20] for lo in range(0, 60, 20)),
    "pyarrow table": lambda tmp_path: pa.Table.from_pandas(FRAME),
    "record batches": lambda tmp_path: pa.Table.from_pandas(FRAME).to_batches(max_chunksize=7),
    "reader": lambda tmp_path: pa.Table.from_pandas(FRAME).to_reader(max_chunksize=7),
    "dataset": dataset,
    "polars": lambda tmp_path: pl.from_pandas(FRAME),
    "query": lambda tmp_path: pl.from_pandas(FRAME).lazy().filter(pl.col("w") > -1.0),
    "dask": lambda tmp_path: dd.from_pandas(FRAME, npartitions=3),
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables(kind, tmp_path):
    check(Store.write(tmp_path / "store", TABLES[kind](tmp_path), sample_weight="w"))


def test_columns_by_other_names(tmp_path):
    frame = FRAME.rename(columns={"y": "class", "qid": "query"})
    check(Store.write(tmp_path / "store", frame, y="class", sample_weight="w", qid="query"))


def test_a_query_that_polars_does_not_cut_itself(tmp_path, monkeypatch):
    class Query:
        """A query of an earlier version."""

        def __init__(self, query):
            self._query = query

        def slice(self, at, n):
            return self._query.slice(at, n)

        collect = None

    Query.__module__ = "polars"
    monkeypatch.setattr(sources, "_QUERY_ROWS", 12)
    check(Store.write(tmp_path / "store", Query(pl.from_pandas(FRAME).lazy()), sample_weight="w"))


@pytest.mark.parametrize("chunks", [(20, 3), (7, 2), (50, 3)])
@pytest.mark.parametrize("in_memory", [True, False])
def test_dask_arrays(chunks, in_memory, tmp_path):
    given = {"y": Y, "sample_weight": W, "qid": Q}
    if not in_memory:
        given = {name: da.from_array(part, chunks=11) for name, part in given.items()}
    check(Store.write(tmp_path / "store", da.from_array(X, chunks=chunks), **given), None)


def test_dask_arrays_of_sparse_blocks_and_of_unknown_sizes(tmp_path):
    sparse = da.from_array(X, chunks=(20, 3)).map_blocks(sp.csr_matrix)
    store = Store.write(tmp_path / "sparse", sparse, y=da.from_array(Y, chunks=20))
    np.testing.assert_array_equal(joined(store), X)
    frame = dd.from_pandas(FRAME, npartitions=3)
    unknown = frame[["a", "b", "c"]].to_dask_array()
    store = Store.write(tmp_path / "unknown", unknown, y=frame["y"])
    np.testing.assert_array_equal(joined(store), X)
    np.testing.assert_array_equal(store.y, Y)
    with pytest.raises(SoftmarginError, match="y has 2 blocks, but X has 3: give both the same chunks"):
        Store.write(tmp_path / "bad", unknown, y=da.from_array(Y, chunks=25))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_matrices_in_memory(form, tmp_path):
    store = Store.write(tmp_path / "store", form(X), y=Y, sample_weight=W, qid=Q, chunk_bytes=200)
    check(store, None)
    assert len(list(store.blocks())) > 3
    assert LinearSVC().fit(store).status_.reached_goal


@pytest.mark.parametrize(
    ("source", "given", "message"),
    [
        (FRAME, {"y": "z"}, "table 0: there is no column 'z'"),
        (FRAME, {"qid": "z"}, "there is a column 'qid' beside 'z'"),
        (FRAME, {"sample_weight": "z"}, "table 0: there is no column 'z'"),
        (FRAME, {"y": Y}, "y of tables is the name of a column, not an array"),
        (FRAME.assign(target=1), {}, r"'y' and 'target' may be the label: name it with y="),
        (FRAME.assign(a="word"), {}, "table 0: the column 'a' holds"),
        ([FRAME, FRAME.rename(columns={"b": "B"})], {}, r"table 1: 1 of the 4 columns that are needed are missing"),
        ([FRAME, FRAME.assign(a=np.where(Y > 0, np.nan, 1.0))], {}, "table 1: the column 'a' has|batch 1, row"),
        ([(X, Y)], {"y": Y}, "y is given apart from batches"),
        (3, {}, "a store is written from batches of rows, and int has none"),
        (FRAME[:0], {}, "there are no rows to write"),
        (da.ones(5), {}, "X must be a matrix with two dimensions, but it has 1"),
        (da.from_array(X), {"y": "y"}, "y='y' is the name of a column, and a Dask array has no names"),
        (da.from_array(X), {"y": Y[:9]}, r"y has shape \(9,\), but there are 50 rows"),
        (da.from_array(X), {"y": np.append(Y, 1)}, r"y has 51 entries, but X has 50 rows"),
        (da.from_array(X).to_delayed().ravel()[0], {}, "a Dask Delayed has no rows"),
    ],
)
def test_bad_sources_leave_nothing(source, given, message, tmp_path):
    with pytest.raises(SoftmarginError, match=message):
        Store.write(tmp_path / "store", source, **given)
    assert os.listdir(tmp_path) == []
