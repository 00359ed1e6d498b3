"""Compiled matrix-vector kernels against NumPy, for dense (both orders) and CSR storage."""

import numpy as np
import pytest
from scipy import sparse

from softmargin.data import _kernels

# Few combinations, since each is compiled: value type, index type, pointer type.
TYPES = [(np.float32, np.int32, np.int32), (np.float64, np.int64, np.int64), (np.uint8, np.int32, np.int64)]
LAYOUTS = ["C", "F", "csr"]
ZEROS = np.empty(0)


def example(n, d, dtype, seed=0):
    """Integers with many zeros: every sum with integer weights is exact, so results compare with ==."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 10, (n, d)) * (rng.random((n, d)) < 0.6)
    if np.dtype(dtype).kind == "f":
        x *= rng.choice([-1, 1], (n, d))
    x[::5] = 0  # empty rows
    return x.astype(dtype), rng


def storage(x, layout, index_type, pointer_type):
    """The leading arguments of the kernels: values, indices, indptr, n_rows, n_cols, fortran."""
    if layout == "csr":
        m = sparse.csr_matrix(x)
        return m.data, m.indices.astype(index_type), m.indptr.astype(pointer_type), *x.shape, False
    empty = np.empty(0, index_type), np.empty(0, pointer_type)
    return x.ravel(order=layout), *empty, *x.shape, layout == "F"


@pytest.mark.parametrize("d", [1, 3, 7, 8, 54, 300, 800])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("types", TYPES, ids=lambda t: np.dtype(t[0]).name)
def test_products_and_norms(types, layout, d):
    n = 2 * _kernels._CHUNK + 19  # more than two chunks of rows, and no multiple of 8
    x, rng = example(n, d, types[0])
    matrix = storage(x, layout, *types[1:])
    exact = x.astype(np.float64)
    w = rng.integers(-9, 10, d).astype(np.float64)
    c = rng.integers(-2, 3, n).astype(np.float64)  # a fifth is zero
    for lo, hi in [(0, n), (3, 4), (5, 18), (250, n - 1), (7, 7)]:
        out = np.full(n, 99.0)
        _kernels.dot(*matrix, w, lo, hi, out)
        np.testing.assert_array_equal(out[lo:hi], exact[lo:hi] @ w)
        assert np.all(out[:lo] == 99.0)
        assert np.all(out[hi:] == 99.0)

        acc = np.arange(d, dtype=np.float64)
        _kernels.t_dot(*matrix, c, ZEROS, lo, hi, acc)
        np.testing.assert_array_equal(acc, np.arange(d) + c[lo:hi] @ exact[lo:hi])

        out = np.full(n, 99.0)
        _kernels.sq_norms(*matrix, lo, hi, out)
        np.testing.assert_array_equal(out[lo:hi], (exact[lo:hi] ** 2).sum(axis=1))
        assert np.all(out[:lo] == 99.0)
        assert np.all(out[hi:] == 99.0)


@pytest.mark.parametrize("d", [5, 40])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_more_rows_than_a_block(layout, d):
    x, rng = example(max(2 * _kernels._BLOCK, _kernels._LISTED) + 77, d, np.float64)
    matrix = storage(x, layout, np.int64, np.int64)
    w, c = rng.integers(-9, 10, d).astype(np.float64), rng.integers(-2, 3, len(x)).astype(np.float64)
    out, norms, acc = np.empty(len(x)), np.empty(len(x)), np.zeros(d)
    _kernels.dot(*matrix, w, 0, len(x), out)
    _kernels.sq_norms(*matrix, 0, len(x), norms)
    _kernels.t_dot(*matrix, c, ZEROS, 0, len(x), acc)
    np.testing.assert_array_equal(out, x @ w)
    np.testing.assert_array_equal(norms, (x**2).sum(axis=1))
    np.testing.assert_array_equal(acc, c @ x)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("d", [7, 54, 300, 800])
def test_real_numbers_accumulate_in_double_precision(layout, d):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((400, d)).astype(np.float32)
    matrix = storage(x, layout, np.int32, np.int32)
    w, c = rng.standard_normal(d), rng.standard_normal(400)
    out, acc = np.empty(400), np.zeros(d)
    _kernels.dot(*matrix, w, 0, 400, out)
    _kernels.t_dot(*matrix, c, ZEROS, 0, 400, acc)
    np.testing.assert_allclose(out, x.astype(np.float64) @ w, rtol=0, atol=1e-12)
    np.testing.assert_allclose(acc, c @ x.astype(np.float64), rtol=0, atol=1e-12)
    again = np.zeros(d)
    _kernels.t_dot(*matrix, c, ZEROS, 0, 400, again)
    assert acc.tobytes() == again.tobytes()


@pytest.mark.parametrize("share", [0.0, 0.4, 0.9])
@pytest.mark.parametrize("d", [3, 54, 100, 200, 800])
@pytest.mark.parametrize("layout", ["C", "csr"])
def test_rows_with_zero_coefficient_are_not_read(layout, d, share):
    x, rng = example(600, d, np.float64)
    c = rng.integers(1, 5, 600) * (rng.random(600) < share).astype(np.float64)
    expected = c @ x
    x[c == 0.0] = np.nan
    matrix = storage(x, layout, np.int64, np.int64)
    before = rng.integers(1, 5, 600).astype(np.float64)
    for arguments in ((c, ZEROS), (c + before, before)):
        acc = np.zeros(d)
        _kernels.t_dot(*matrix, *arguments, 0, 600, acc)
        np.testing.assert_array_equal(acc, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("d", [5, 800])
def test_as_ordinary_python(layout, d):
    """The kernels without compilation give the same results."""
    x, rng = example(21, d, np.uint8)
    matrix = storage(x, layout, np.int32, np.int64)
    exact = x.astype(np.float64)
    w, c = rng.integers(-9, 10, d).astype(np.float64), rng.integers(-2, 3, 21).astype(np.float64)
    out, norms, acc = np.zeros(21), np.zeros(21), np.zeros(d)
    plain = {f: getattr(f, "py_func", f) for f in (_kernels.dot, _kernels.t_dot, _kernels.sq_norms)}
    plain[_kernels.dot](*matrix, w, 2, 21, out)
    plain[_kernels.t_dot](*matrix, c, ZEROS, 2, 21, acc)
    plain[_kernels.sq_norms](*matrix, 2, 21, norms)
    np.testing.assert_array_equal(out[2:], exact[2:] @ w)
    np.testing.assert_array_equal(acc, c[2:] @ exact[2:])
    np.testing.assert_array_equal(norms[2:], (exact[2:] ** 2).sum(axis=1))
