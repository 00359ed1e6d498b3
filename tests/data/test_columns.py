"""The columns that a solver sees in place of those of wide sparse data."""

import numpy as np
import pytest
import scipy.sparse as sp

from softmargin.core.errors import Abandoned
from softmargin.core.threads import Workers
from softmargin.data import columns as columns_module
from softmargin.data import rows as rows_module
from softmargin.data.columns import Columns, Occupied, without_empty_columns
from softmargin.data.convert import as_rows
from softmargin.data.csr import CSRRows

RNG = np.random.default_rng(5)
TYPES = [np.float64, np.float32, np.int64, np.uint8]


@pytest.fixture
def of(monkeypatch):
    """Columns.of, for data of any size; `merging` or not, whatever that costs; few columns count as common."""

    def made(X, merging, products_only=True):
        monkeypatch.setattr(columns_module, "MANY_COLUMNS", 2)
        monkeypatch.setattr(columns_module, "MANY_ENTRIES", 2)
        monkeypatch.setattr(columns_module, "VECTORS_HELD", 1000 if merging else 0)
        monkeypatch.setattr(columns_module, "COMMON_COLUMNS", 100)
        return Columns.of(as_rows(X), products_only)

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


@pytest.mark.parametrize("products_only", [False, True])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_numbers_by_frequency(index_type, products_only, of):
    X = example(index_type=index_type)
    columns = of(X, False, products_only)
    used = np.flatnonzero(counts(X))
    number = columns.number
    assert sorted(number[used]) == list(range(used.size))
    assert (number[counts(X) == 0] == -1).all()
    np.testing.assert_array_equal(columns.inner.native().toarray()[:, number[used]], X.toarray()[:, used])
    assert np.shares_memory(columns.inner.flat.values, X.data)
    order = used[np.argsort(number[used])]
    levels = counts(X)[order].tolist()  # all of them below the count from where on levels are coarser
    assert levels == sorted(levels, reverse=True)
    assert max(levels) < columns_module.COUNTED
    met = {column: at for at, column in reversed(list(enumerate(X.indices.tolist())))}
    for level in set(levels):
        at = [met[column] for column in order[np.array(levels) == level].tolist()]
        assert at == sorted(at)


def test_levels_of_columns_that_many_rows_use(of):
    X = sp.csr_array(np.tri(70, 70)[:, ::-1])  # columns with 1 to 70 entries, the most used last
    number = of(X, False).number
    levels = [min(count, 16) + int(count).bit_length() for count in counts(X)[np.argsort(number)]]
    assert levels == sorted(levels, reverse=True)
    assert (np.diff(number[:15]) < 0).all()  # 15 entries and less each have a level of their own


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


@pytest.mark.parametrize("common", [0, 100, 10_000])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("many_rows", [False, True])
def test_split_products(many_rows, index_type, common, of, monkeypatch):
    X = example(index_type=index_type)
    if many_rows:  # more than two bytes can number
        X = sp.vstack([X, sp.csr_array((70_000, X.shape[1])), X[:20]], format="csr")
        parts = X.data, X.indices.astype(index_type), X.indptr.astype(index_type)
        X = sp.csr_array(parts, shape=X.shape)
    of(X, merging=True)
    monkeypatch.setattr(columns_module, "COMMON_COLUMNS", common)
    columns = Columns.of(as_rows(X), True)
    inner, matrix = columns.inner, columns.inner.native()
    w, v, before = (RNG.standard_normal(size) for size in (inner.n_cols, inner.n_rows, inner.n_rows))
    for rows in (inner, inner.on(Workers(3))):
        np.testing.assert_allclose(rows.dot(w), matrix @ w, atol=1e-12)
        np.testing.assert_allclose(rows.t_dot(v), matrix.T @ v, atol=1e-12)
        np.testing.assert_allclose(rows.t_dot(v, before), matrix.T @ (v - before), atol=1e-12)
    np.testing.assert_array_equal(inner.dot(w), inner.on(Workers(3)).dot(w))
    np.testing.assert_array_equal(inner.t_dot(v), inner.on(Workers(3)).t_dot(v))
    np.testing.assert_allclose(inner.dot(columns.start(np.ones(500))), X @ np.ones(500), atol=1e-12)


def test_split_rows_are_rows(of):
    rows = of(example(), merging=True).inner
    matrix = rows.native()
    assert (rows.n_rows, rows.n_cols) == matrix.shape == (rows.flat.n_rows, rows.flat.n_cols)
    np.testing.assert_allclose(rows.sq_norms(), np.ravel(matrix.multiply(matrix).sum(axis=1)))
    np.testing.assert_array_equal(rows.take(np.array([3, 1])).native().toarray(), matrix[[3, 1]].toarray())
    np.testing.assert_array_equal(rows.densified(slice(4, 6), np.float32), matrix[4:6].toarray().astype(np.float32))
    np.testing.assert_allclose(rows.cross(rows.take(slice(5))), (matrix @ matrix[:5].T).toarray())
    assert sum(part.n_rows for _, part in rows.blocks()) == rows.n_rows


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
    inner = columns.inner.native()
    assert inner.indptr.tolist() == [0, n_entries + 2, n_entries + 4]
    if n_entries < n:
        found = inner.data[2 : n_entries + 2].astype(float)
        assert (found**2).sum() == pytest.approx(sum(float(value) ** 2 for value in values), rel=1e-13)


def test_values_are_copied_only_where_that_saves_memory(monkeypatch):
    monkeypatch.setattr(columns_module, "MANY_COLUMNS", 2)
    monkeypatch.setattr(columns_module, "MANY_ENTRIES", 2)
    alone = sp.hstack([sp.eye(50, format="csr"), sp.eye(50, format="csr")]).tocsr()
    few, many = (as_rows(sp.hstack([alone, np.ones((50, k))]).tocsr()) for k in (3, 30))
    assert Columns.of(few, True).merged is not None
    assert Columns.of(many, True).merged is None


def test_values_are_shared_with_solvers_that_visit_rows(of):
    X = example()
    columns = of(X, merging=True, products_only=False)
    assert columns.merged is None
    assert np.shares_memory(columns.inner.flat.values, X.data)
    assert columns.inner.n_cols == np.count_nonzero(counts(X))


def test_columns_stay_where_products_are_quick_already(of):
    X = example()
    rows = as_rows(X)
    columns = Columns.of(rows, True)
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
    parts = Columns.of(as_rows(X), True, lambda: checks.append(1))
    assert len(checks) >= 20
    np.testing.assert_array_equal(parts.number, whole.number)
    for part, other in zip(parts.inner.flat, whole.inner.flat, strict=True):
        np.testing.assert_array_equal(part, other)


def test_what_the_check_raises_ends_it(of, monkeypatch):
    of(example(), merging=True)

    def stop():
        raise Abandoned

    with pytest.raises(Abandoned):
        Columns.of(as_rows(example()), True, stop)


class TestOccupied:
    def rows(self):
        X = sp.random(20, 6, 0.5, format="csr", random_state=0)
        wide = sp.csr_matrix((X.data, X.indices * 1_000_003, X.indptr), shape=(20, 2**31 - 1))
        return X, CSRRows(wide)

    def test_columns_that_never_occur_are_left_out(self):
        X, rows = self.rows()
        occupied = Occupied.of(rows)
        assert occupied.rows.n_cols == 6
        np.testing.assert_array_equal(occupied.rows.native().toarray(), X.toarray())
        assert Occupied.of(occupied.rows).used is None

    def test_weights_there_and_back(self):
        _, rows = self.rows()
        narrow = sp.csr_matrix((rows.flat.values, rows.flat.indices, rows.flat.indptr), shape=(20, 6_000_000))
        occupied = Occupied.of(CSRRows(narrow))
        w = np.arange(1.0, 7.0)
        wide = occupied.spread(w)
        assert wide.shape == (6_000_000,)
        assert wide.sum() == w.sum()
        np.testing.assert_array_equal(occupied.gather(wide), w)
        np.testing.assert_array_equal(occupied.gather(np.append(wide, 9.0)), np.append(w, 9.0))

    def test_two_parts_keep_what_either_uses(self):
        _, rows = self.rows()
        other = CSRRows(sp.csr_matrix(([1.0], [5], [0, 1]), shape=(1, 2**31 - 1)))
        (left, right), used = without_empty_columns(rows, other)
        assert left.n_cols == right.n_cols == 7
        assert used[1] == 5
