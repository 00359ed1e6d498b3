"""The columns that a solver sees in place of those of wide sparse data."""

import numpy as np
import pytest
import scipy.sparse as sp

from softmargin.core.errors import Abandoned
from softmargin.data import columns as columns_module
from softmargin.data import rows as rows_module
from softmargin.data.columns import Columns
from softmargin.data.convert import as_rows

RNG = np.random.default_rng(5)
TYPES = [np.float64, np.float32, np.int64, np.uint8]


@pytest.fixture
def of(monkeypatch):
    """Columns.of, for data of any size; `merging` or not, whatever that costs."""

    def made(X, merging):
        monkeypatch.setattr(columns_module, "MANY_COLUMNS", 2)
        monkeypatch.setattr(columns_module, "MANY_ENTRIES", 2)
        monkeypatch.setattr(columns_module, "VECTORS_HELD", 1000 if merging else 0)
        return Columns.of(as_rows(X))

    return made


def example(dtype=np.float64, index_type=np.int32):
    """Some columns without entries, many with one, some with more."""
    X = sp.random(60, 500, density=0.02, format="csr", random_state=0)
    X.data = 40 * X.data if np.dtype(dtype).kind in "iu" else X.data
    parts = X.data.astype(dtype), X.indices.astype(index_type), X.indptr.astype(index_type)
    X = sp.csr_array(parts, shape=X.shape)
    assert X.indices.dtype == index_type
    assert {0, 1, 2} <= set(counts(X).tolist())
    return X


def counts(X):
    return np.diff(X.tocsc().indptr)


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_numbers_by_frequency(index_type, of):
    X = example(index_type=index_type)
    columns = of(X, merging=False)
    used = np.flatnonzero(counts(X))
    number = columns.number
    assert sorted(number[used]) == list(range(used.size))
    assert (number[counts(X) == 0] == -1).all()
    np.testing.assert_array_equal(columns.inner.native().toarray()[:, number[used]], X.toarray()[:, used])
    assert np.shares_memory(columns.inner.flat.values, X.data)
    order = used[np.argsort(number[used])]
    levels = [int(count).bit_length() for count in counts(X)[order]]
    assert levels == sorted(levels, reverse=True)
    met = {column: at for at, column in reversed(list(enumerate(X.indices.tolist())))}
    for level in set(levels):
        at = [met[column] for column in order[np.array(levels) == level].tolist()]
        assert at == sorted(at)


@pytest.mark.parametrize("merging", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_inner_products_stay(dtype, merging, of):
    X = example(dtype)
    columns = of(X, merging)
    inner = columns.inner.native().astype(float)
    gram = (X.astype(float) @ X.astype(float).T).toarray()
    np.testing.assert_allclose((inner @ inner.T).toarray(), gram, rtol=1e-12, atol=1e-12 * gram.max())
    assert columns.inner.native().dtype == dtype
    if merging:
        assert columns.inner.n_cols < np.count_nonzero(counts(X))
        assert columns.inner.flat.values.size < X.nnz


@pytest.mark.parametrize("merging", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_weights_there_and_back(dtype, merging, of):
    X = example(dtype)
    columns = of(X, merging)
    v = RNG.standard_normal(60)
    w = X.T @ v  # in the span of the rows
    inner = columns.inner.t_dot(v)
    np.testing.assert_allclose(columns.outer(inner), w, atol=1e-12 * abs(w).max())
    np.testing.assert_allclose(columns.start(w), inner, atol=1e-12 * abs(w).max())
    anything = RNG.standard_normal(501)
    start = columns.start(anything)
    np.testing.assert_allclose(columns.inner.dot(start[:-1]), X @ anything[:-1], atol=1e-10 * abs(X.data).max())
    assert start[-1] == anything[-1]
    assert np.linalg.norm(start) <= np.linalg.norm(anything)
    np.testing.assert_allclose(np.linalg.norm(columns.outer(start[:-1])), np.linalg.norm(start[:-1]))


@pytest.mark.parametrize(
    ("values", "dtype", "n_entries"),
    [
        ([3.0, 4.0, 12.0], np.float64, 1),  # 13 squared
        ([3.0, 4.0, 12.0], np.float32, 1),
        ([1.0, 1.0, 1.0], np.float64, 1),
        ([1.0, 1.0, 1.0], np.float32, 2),  # a root of 3 in two parts
        ([1, 1, 1], np.int64, 3),  # three squares already
        ([2, 2, 3, 3], np.int64, 2),  # 26 = 25 + 1
        ([200, 200, 200], np.uint8, 3),  # 346 does not fit into a byte
        ([7], np.int64, 1),
        ([0.0, 0.0], np.float64, 2),
        ([1e-170, 1e-170], np.float64, 2),  # squares underflow
        ([1e170, 1e170], np.float64, 2),  # and overflow
        ([1e-42, 1e-42, 1e-42], np.float32, 3),  # roots that are too coarse
    ],
)
def test_what_one_row_alone_uses(values, dtype, n_entries, of):
    n = len(values)
    data = np.array([*values, 1, 1, 1, 1], dtype=dtype)  # and two columns that both rows use
    X = sp.csr_matrix((data, [*range(n), n, n + 1, n, n + 1], [0, n + 2, n + 4]), shape=(2, n + 2))
    columns = of(X, merging=True)
    inner = columns.inner.flat
    assert inner.indptr.tolist() == [0, n_entries + 2, n_entries + 4]
    if n_entries < n:
        found = inner.values[2 : n_entries + 2].astype(float)
        assert (found**2).sum() == pytest.approx(sum(float(value) ** 2 for value in values), rel=1e-13)


def test_values_are_copied_only_where_that_saves_memory(monkeypatch):
    monkeypatch.setattr(columns_module, "MANY_COLUMNS", 2)
    monkeypatch.setattr(columns_module, "MANY_ENTRIES", 2)
    alone = sp.hstack([sp.eye(50, format="csr"), sp.eye(50, format="csr")]).tocsr()
    assert Columns.of(as_rows(sp.hstack([alone, np.ones((50, 3))]).tocsr())).merged is not None
    assert Columns.of(as_rows(sp.hstack([alone, np.ones((50, 30))]).tocsr())).merged is None


def test_columns_stay_where_products_are_quick_already(of):
    X = example()
    rows = as_rows(X)
    columns = Columns.of(rows)
    w = RNG.standard_normal(500)
    assert columns.inner is rows
    assert columns.outer(w) is w
    assert columns.start(w) is w
    dense = of(X.toarray(), merging=True)
    assert dense.inner is dense.rows


@pytest.mark.parametrize("merging", [False, True])
def test_block_by_block(merging, of, monkeypatch):
    X = example()
    whole = of(X, merging)
    monkeypatch.setattr(rows_module, "BLOCK_VALUES", 50)
    checks = []
    parts = Columns.of(as_rows(X), lambda: checks.append(1))
    assert len(checks) >= 20
    np.testing.assert_array_equal(parts.number, whole.number)
    for part, other in zip(parts.inner.flat, whole.inner.flat, strict=True):
        np.testing.assert_array_equal(part, other)


def test_what_the_check_raises_ends_it(of, monkeypatch):
    of(example(), merging=True)

    def stop():
        raise Abandoned

    with pytest.raises(Abandoned):
        Columns.of(as_rows(example()), stop)
