"""One suite for every storage: products, prediction, blocks, threads, in place."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from softmargin.core.errors import SoftmarginError
from softmargin.core.threads import Workers
from softmargin.data import rows as rows_module
from softmargin.data.convert import as_rows

RNG = np.random.default_rng(0)
DENSE = np.round(RNG.standard_normal((57, 9)) * 4) * (RNG.random((57, 9)) < 0.5)


def read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


def unsorted_csr(X):
    M = sp.csr_matrix(X)
    for i in range(M.shape[0]):
        part = slice(M.indptr[i], M.indptr[i + 1])
        M.indices[part], M.data[part] = M.indices[part][::-1].copy(), M.data[part][::-1].copy()
    M.has_sorted_indices = False
    M.has_canonical_format = False
    return M


def long_indices(X):
    M = sp.csr_array(X)
    M.indices, M.indptr = M.indices.astype(np.int64), M.indptr.astype(np.int64)
    return M


def repeated_entries(X):
    M = sp.coo_matrix(X)
    half = sp.coo_matrix((np.tile(M.data / 2, 2), (np.tile(M.row, 2), np.tile(M.col, 2))), shape=X.shape)
    order = np.argsort(half.row, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(half.row, minlength=X.shape[0]))])
    return sp.csr_matrix((half.data[order], half.col[order], indptr), shape=X.shape)


STORAGES = {
    "C": lambda X: X.copy(),
    "Fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "float32 Fortran": lambda X: np.asfortranarray(X.astype(np.float32)),
    "float16": lambda X: X.astype(np.float16),
    "int8": lambda X: X.astype(np.int8),
    "int64": lambda X: X.astype(np.int64),
    "big endian": lambda X: X.astype(">f8"),
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "read-only": read_only,
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
    "csr float32": lambda X: sp.csr_matrix(X.astype(np.float32)),
    "csr int64 indices": long_indices,
    "csr unsorted": unsorted_csr,
    "csr repeated": repeated_entries,
    "csc": sp.csc_matrix,
    "coo": sp.coo_array,
}


@pytest.mark.parametrize("storage", STORAGES)
def test_products(storage):
    rows = as_rows(STORAGES[storage](DENSE))
    w = RNG.standard_normal(9)
    v = np.where(np.arange(57) % 3, RNG.standard_normal(57), 0.0)
    assert (rows.n_rows, rows.n_cols) == DENSE.shape
    np.testing.assert_allclose(rows.dot(w), DENSE @ w, atol=1e-12)
    np.testing.assert_allclose(rows.t_dot(v), DENSE.T @ v, atol=1e-12)
    np.testing.assert_allclose(rows.sq_norms(), (DENSE**2).sum(1), atol=1e-12)
    np.testing.assert_allclose(rows.cross(as_rows(w[None, :])), (DENSE @ w)[:, None], atol=1e-12)
    np.testing.assert_allclose(rows.cross(as_rows(sp.csr_array(DENSE))), DENSE @ DENSE.T, atol=1e-12)
    index = np.array([5, 0, 56])
    np.testing.assert_allclose(rows.take(index).dot(w), DENSE[index] @ w, atol=1e-12)
    for product in (rows.dot(w), rows.t_dot(v), rows.sq_norms()):
        assert product.dtype == np.float64


@pytest.mark.parametrize("storage", STORAGES)
def test_blocks_cover_the_rows_in_order(storage, monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK_VALUES", 40)
    monkeypatch.setattr("softmargin.data.dense.BLOCK_VALUES", 40)
    rows = as_rows(STORAGES[storage](DENSE))
    w = RNG.standard_normal(9)
    parts = list(rows.blocks())
    assert len(parts) > 3
    assert [part.start for part, _ in parts] == [0, *[part.stop for part, _ in parts[:-1]]]
    np.testing.assert_array_equal(np.concatenate([part.dot(w) for _, part in parts]), rows.dot(w))


@pytest.mark.parametrize(
    "make", [np.copy, np.asfortranarray, sp.csr_matrix, sp.csr_array], ids=["C", "F", "csr_matrix", "csr_array"]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_used_in_place(make, dtype):
    X = make(DENSE.astype(dtype))
    rows = as_rows(X)
    ours, theirs = (getattr(M, "data", None) if sp.issparse(M) else M for M in (rows.native(), X))
    assert np.shares_memory(ours, theirs)
    assert np.shares_memory(rows._products.flat.values, theirs)


def test_bool_and_integers_are_not_blown_up():
    for dtype in (np.bool_, np.uint8, np.int16):
        X = (DENSE > 0).astype(dtype)
        rows = as_rows(X)
        assert np.shares_memory(rows.native(), X)
        assert rows.native().itemsize == X.itemsize


def test_read_only_memory_map(tmp_path):
    np.save(tmp_path / "X.npy", DENSE)
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    rows = as_rows(X)
    assert np.shares_memory(rows.native(), X)
    np.testing.assert_allclose(rows.dot(np.ones(9)), DENSE.sum(1))


@pytest.mark.parametrize("shape", [(400, 30), (60, 3000), (12, 400)], ids=["tall", "wide", "wide, long rows"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_threads_do_not_change_the_bits(shape, sparse, monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK_VALUES", 500)
    X = RNG.standard_normal(shape) * (RNG.random(shape) < 0.5)
    X = sp.csr_matrix(X) if sparse else X
    w, v = RNG.standard_normal(shape[1]), RNG.standard_normal(shape[0])
    one, many = (as_rows(X, Workers(n)) for n in (1, 4))
    np.testing.assert_array_equal(one.dot(w), many.dot(w))
    np.testing.assert_array_equal(one.t_dot(v), many.t_dot(v))
    np.testing.assert_allclose(one.t_dot(v), X.T @ v, atol=1e-9)


@pytest.mark.parametrize("share", [0.01, 0.9], ids=["few rows change", "most rows change"])
def test_a_difference_of_few_rows_wakes_no_thread(share, monkeypatch):
    X = RNG.standard_normal((10_000, 60))
    before = RNG.standard_normal(10_000)
    v = np.where(np.arange(10_000) < share * 10_000, before + 1.0, before)
    workers, left_alone = Workers(3), []
    plain_map = workers.map

    def watched(function, blocks, *, alone=False):
        left_alone.append(alone)
        return plain_map(function, blocks, alone=alone)

    monkeypatch.setattr(workers, "map", watched)
    found = as_rows(X, workers).t_dot(v, before)
    assert left_alone[0] == (share < 0.5)
    np.testing.assert_allclose(found, X.T @ (v - before), atol=1e-9)
    np.testing.assert_array_equal(found, as_rows(X, Workers(1)).t_dot(v, before))


@pytest.mark.parametrize("n_threads", [1, 3])
def test_two_partial_sums_of_wide_data(n_threads, monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK_VALUES", 500)
    X = sp.random(40, 5000, density=0.05, format="csr", random_state=0)
    rows = as_rows(X, Workers(n_threads))
    assert len(rows._products.groups) == 2
    v = np.where(np.arange(40) % 2, 1.5, 0.0)
    np.testing.assert_allclose(rows.t_dot(v), X.T @ v, atol=1e-12)
    np.testing.assert_array_equal(as_rows(X, Workers(1)).t_dot(v), rows.t_dot(v))


def test_partial_sums_are_not_shared_between_calls(monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK_VALUES", 500)
    X = sp.random(40, 5000, density=0.05, format="csr", random_state=0)
    rows = as_rows(X)
    V = RNG.standard_normal((30, 40))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(rows.t_dot, V))
    for v, slope in zip(V, found, strict=True):
        np.testing.assert_allclose(slope, X.T @ v, atol=1e-12)


def test_at_most_sixteen_partial_sums(monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK_VALUES", 10)
    rows = as_rows(RNG.standard_normal((5000, 3)))
    assert len(rows._products.row_blocks) > 1000
    assert len(rows._products.groups) == 16


def test_rows_with_zero_coefficients_are_not_touched():
    X = DENSE.copy()
    X[10] = np.nan
    v = np.ones(57)
    v[10] = 0.0
    assert np.isfinite(as_rows(X).t_dot(v)).all()


@pytest.mark.parametrize("bad", [np.ones(3), np.ones((2, 2, 2))], ids=["1-D", "3-D"])
def test_wrong_number_of_dimensions(bad):
    with pytest.raises(SoftmarginError, match="two dimensions"):
        as_rows(bad)


def test_complex_values():
    with pytest.raises(SoftmarginError, match="complex"):
        as_rows(np.ones((2, 2), dtype=complex))


def test_no_rows_and_no_columns():
    assert as_rows(np.empty((0, 3))).dot(np.ones(3)).shape == (0,)
    assert as_rows(np.empty((0, 3))).t_dot(np.ones(0)).shape == (3,)
    assert as_rows(np.empty((3, 0))).t_dot(np.ones(3)).shape == (0,)
    np.testing.assert_array_equal(as_rows(np.empty((4, 0))).dot(np.ones(0)), np.zeros(4))


@pytest.mark.parametrize(("n", "d", "per_row"), [(2000, 400, 60), (1000, 100, 40), (700, 3000, 100)])
def test_the_way_of_summing_does_not_depend_on_the_threads(n, d, per_row, monkeypatch):
    """Also where only two or three blocks of rows exist."""
    monkeypatch.setattr(rows_module, "BLOCK_VALUES", n * per_row // 2 - 1)
    X = sp.random(n, d, density=per_row / d, format="csr", random_state=1)
    v = RNG.standard_normal(n)
    one, *more = (as_rows(X, Workers(k)).t_dot(v) for k in (1, 2, 3))
    for other in more:
        np.testing.assert_array_equal(other, one)


@pytest.mark.parametrize("index", [-1, 4])
def test_column_indices_outside_of_the_matrix_are_refused(index):
    matrix = sp.csr_matrix(np.eye(4))
    matrix.indices[2] = index
    with pytest.raises(
        SoftmarginError, match=r"no valid sparse matrix: its column indices go from .* it has 4 columns"
    ):
        as_rows(matrix)
