"""Rows of kernel matrices against scikit-learn, for every storage; the tiles against exact arithmetic."""

import math
import os
import subprocess
import sys
import textwrap
import threading
from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels

from softmargin.core.errors import Abandoned, SoftmarginError
from softmargin.core.threads import Workers, one_blas_thread
from softmargin.data.convert import as_rows
from softmargin.kernels import _tiles, matrix
from softmargin.kernels.functions import RBF, Custom, Laplacian, Linear, Polynomial, Sigmoid
from softmargin.kernels.matrix import DirectRows

N, D = 97, 6
KERNELS = [Linear(), RBF(0.2), Laplacian(0.1), Polynomial(0.3, 3, 0.5), Polynomial(0.5, 1), Sigmoid(0.1, -0.2)]
STORAGES = ["C64", "C32", "F64", "map", "int16", "csr32", "csr64", "csr_uint8"]
NAMED = {"ids": lambda kernel: f"{kernel.name}{getattr(kernel, 'degree', '')}"}


def numbers(n=N, d=D, seed=0):
    """Small multiples of 1/4 with zeros, an empty row and a repeated one; exact in every type but the integers."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-8, 9, (n, d)) * (rng.random((n, d)) < 0.7) / 4.0
    X[n // 2] = 0.0
    X[n - 1] = X[0]
    return X


def stored(X, storage, folder):
    """X as the name says, and what it holds as a float64 array."""
    if "int" in storage:
        X = np.abs(np.rint(X))
    exact = X.astype(np.float64)
    if storage == "map":
        np.save(folder / "X.npy", X.astype(np.float32))
        return np.load(folder / "X.npy", mmap_mode="r"), exact
    if storage.startswith("csr"):
        kind, index = {"csr32": ("f8", "i4"), "csr64": ("f4", "i8"), "csr_uint8": ("u1", "i4")}[storage]
        csr = sp.csr_array(X.astype(kind))
        csr.indices, csr.indptr = csr.indices.astype(index), csr.indptr.astype(index)
        return csr, exact
    kind, order = {"C64": ("f8", "C"), "C32": ("f4", "C"), "F64": ("f8", "F"), "int16": ("i2", "C")}[storage]
    return X.astype(kind, order=order), exact


def reference(kernel, X):
    parameters = {name: getattr(kernel, name) for name in ("gamma", "degree", "coef0") if hasattr(kernel, name)}
    return pairwise_kernels(X, metric=kernel.name, **parameters)


def assert_close(K, exact, kernel):
    """To rounding, which for the polynomial kernel is that of the largest value."""
    assert K.shape == exact.shape
    scale = np.abs(exact).max(initial=1.0)
    np.testing.assert_allclose(K, exact, rtol=0, atol=40 * np.finfo(K.dtype).eps * scale, err_msg=kernel.name)


@pytest.fixture
def small_tiles(monkeypatch):
    """Several tiles and left blocks for a hundred rows, the last ones smaller."""
    monkeypatch.setattr(matrix, "_RIGHT", 37)
    monkeypatch.setattr(matrix, "LEFT_ROWS", 10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("kernel", KERNELS, **NAMED)
@pytest.mark.usefixtures("small_tiles")
def test_rows_are_those_of_scikit_learn(kernel, storage, dtype, tmp_path):
    X, numbers_of_X = stored(numbers(), storage, tmp_path)
    exact = reference(kernel, numbers_of_X)
    K = DirectRows(as_rows(X), kernel, dtype)
    assert (K.n, K.dtype, K.is_convex) == (N, dtype, kernel.is_convex)
    index = np.array([3, 3, N - 1, 0, *range(20, 60), N // 2])
    columns = np.array([5, 2, 80, 2, *range(40, 90)])

    got = K.rows(index)
    assert got.dtype == dtype
    assert_close(got, exact[index], kernel)
    assert_close(K.rows(index, columns), exact[np.ix_(index, columns)], kernel)
    assert_close(K.rows(np.arange(N)), exact, kernel)
    assert K.n_evaluations == index.size * N + index.size * columns.size + N * N

    assert K.diag().dtype == np.float64
    np.testing.assert_allclose(K.diag(), exact.diagonal(), rtol=1e-13, atol=1e-13)

    slots = np.random.default_rng(1).permutation(60)[: index.size]
    out = np.full((60, N), 99.0, dtype)
    K.fill(index, out, slots)
    assert_close(out[slots], exact[index], kernel)
    assert np.all(np.delete(out, slots, axis=0) == 99.0)


@pytest.mark.parametrize("storage", ["F64", "int16", "csr64"])
@pytest.mark.parametrize("kernel", KERNELS, **NAMED)
@pytest.mark.usefixtures("small_tiles")
def test_parts(kernel, storage, tmp_path):
    X, numbers_of_X = stored(numbers(), storage, tmp_path)
    exact = reference(kernel, numbers_of_X)
    whole = DirectRows(as_rows(X), kernel, np.float32)
    first = np.random.default_rng(2).permutation(N)[:70]
    second = np.array([60, 3, 41])
    part = whole.narrow(first)
    parts_of_it = part.narrow(second)
    assert (part.n, part.dtype, parts_of_it.n) == (70, np.float32, 3)
    assert_close(part.rows(np.arange(70)), exact[np.ix_(first, first)], kernel)
    chosen = first[second]
    assert_close(parts_of_it.rows(np.array([2, 0])), exact[np.ix_(chosen[[2, 0]], chosen)], kernel)
    np.testing.assert_allclose(parts_of_it.diag(), exact.diagonal()[chosen], rtol=1e-13)
    assert whole.n_evaluations == part.n_evaluations == parts_of_it.n_evaluations == 70 * 70 + 2 * 3


@pytest.mark.parametrize("storage", ["C64", "csr32"])
@pytest.mark.parametrize(
    "kernel", [*KERNELS[:3], Custom(lambda X, Z: (X @ Z.T).toarray() if sp.issparse(X) else X @ Z.T)]
)
def test_nothing_asked_nothing_computed(kernel, storage, tmp_path):
    X, _ = stored(numbers(), storage, tmp_path)
    K = DirectRows(as_rows(X), kernel)
    nothing = np.empty(0, dtype=np.int64)
    assert K.rows(nothing).shape == (0, N)
    assert K.rows(np.array([1, 2]), nothing).shape == (2, 0)
    K.fill(nothing, np.empty((0, N)), nothing)
    assert K.narrow(nothing).rows(nothing).shape == (0, 0)
    assert K.narrow(nothing).diag().shape == (0,)
    assert K.n_evaluations == 0


@pytest.mark.parametrize(("kernel", "value"), [(Linear(), 0.0), (RBF(0.5), 1.0), (Laplacian(0.5), 1.0)])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_rows_without_columns_are_all_alike(kernel, value, make):
    K = DirectRows(as_rows(make(np.empty((5, 0)))), kernel)
    np.testing.assert_array_equal(K.rows(np.arange(5)), np.full((5, 5), value))


@pytest.mark.parametrize("storage", ["C32", "csr64"])
@pytest.mark.parametrize("kernel", KERNELS[:3], **NAMED)
def test_more_rows_than_a_tile(kernel, storage, tmp_path):
    X, numbers_of_X = stored(numbers(matrix._RIGHT + matrix.LEFT_ROWS + 7, 3), storage, tmp_path)
    index = np.arange(matrix.LEFT_ROWS + 3) * 9
    exact = reference(kernel, numbers_of_X)
    assert_close(DirectRows(as_rows(X), kernel).rows(index), exact[index], kernel)


@pytest.mark.parametrize("storage", ["C32", "csr32"])
@pytest.mark.parametrize("kernel", KERNELS[:3], **NAMED)
@pytest.mark.usefixtures("small_tiles")
def test_few_rows_are_dense_at_a_time(kernel, storage, tmp_path, monkeypatch):
    X, numbers_of_X = stored(numbers(), storage, tmp_path)
    exact = reference(kernel, numbers_of_X)
    sizes = []
    left = matrix.Side.left

    def recorded(side, index):
        sizes.append(index.size)
        return left(side, index)

    monkeypatch.setattr(matrix.Side, "left", recorded)
    for n_bytes, expected in ((1, [1] * 30), (13 * D * 8, [10, 3, 10, 3, 4]), (1 << 20, [10, 10, 10])):
        monkeypatch.setattr(matrix, "_DENSE_BYTES", n_bytes)
        sizes.clear()
        assert_close(DirectRows(as_rows(X), kernel).rows(np.arange(30)), exact[:30], kernel)
        assert sizes == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", ["C64", "csr32"])
@pytest.mark.parametrize("kernel", KERNELS, **NAMED)
@pytest.mark.usefixtures("small_tiles")
def test_every_number_of_threads_gives_the_same_bits(kernel, storage, dtype):
    X = np.random.default_rng(4).standard_normal((N, D))
    X = sp.csr_array(X) if storage == "csr32" else X
    with one_blas_thread():
        bits = {
            DirectRows(as_rows(X), kernel, dtype, Workers(threads)).rows(np.arange(25)).tobytes()
            for threads in (1, 2, 3)
        }
    assert len(bits) == 1


@pytest.mark.parametrize("kernel", [Linear(), Laplacian(1.0), Custom(lambda X, Z: X @ Z.T)], **NAMED)
@pytest.mark.usefixtures("small_tiles")
def test_an_interrupt_is_looked_for_between_tiles(kernel):
    checks = []

    def check():
        checks.append(1)
        if len(checks) == 3:
            raise Abandoned

    workers = Workers(1)
    K = DirectRows(as_rows(numbers()), kernel, workers=workers)
    with workers.checking(check), pytest.raises(Abandoned):
        K.rows(np.arange(3))
    assert K.n_evaluations == 0


def test_rbf_far_from_the_origin_keeps_its_digits():
    """Dense rows are shifted to their mean: 1e4 away from the origin |x|^2 alone would take all digits of float32."""
    X = (1e4 + np.random.default_rng(5).standard_normal((60, 5))).astype(np.float32)
    exact = reference(RBF(0.3), X.astype(np.float64) - 1e4)
    K = DirectRows(as_rows(X), RBF(0.3), np.float32)
    np.testing.assert_allclose(K.rows(np.arange(60)), exact, rtol=1e-5)
    index = np.arange(7, 33)
    np.testing.assert_allclose(K.narrow(index).rows(np.arange(26)), exact[np.ix_(index, index)], rtol=1e-5)
    np.testing.assert_allclose(K.rows(index, index), exact[np.ix_(index, index)], rtol=1e-5)
    assert K.row_errors().max() < 1e-5


@pytest.mark.parametrize("offset", [0.0, 3.0, 30.0, 300.0])
@pytest.mark.parametrize("storage", ["C64", "C32", "csr32"])
@pytest.mark.parametrize("kernel", [RBF(0.05), Laplacian(0.05)], **NAMED)
def test_the_stated_error_covers_the_real_one(kernel, storage, offset):
    X = offset + np.random.default_rng(6).standard_normal((60, 5))
    X = X.astype(np.float32) if storage == "C32" else X
    exact = reference(kernel, X.astype(np.float64) - offset)
    rows = as_rows(sp.csr_array(X) if storage == "csr32" else X)
    for dtype in (np.float32, np.float64):
        K = DirectRows(rows, kernel, dtype)
        errors = K.row_errors()
        assert (errors.shape, errors.dtype) == ((60,), np.float64)
        off = np.abs(K.rows(np.arange(60)) - exact)
        assert np.all(off <= 2 * errors[:, None])
        assert off.max() > 0.001 * errors.max()  # nor is it empty talk
        np.testing.assert_array_equal(K.narrow(np.array([5, 1])).row_errors(), errors[[5, 1]])


def test_the_stated_error_of_products_is_a_few_roundings():
    for dtype in (np.float32, np.float64):
        errors = DirectRows(as_rows(numbers()), Linear(), dtype).row_errors()
        np.testing.assert_array_equal(errors, np.full(N, (4 + np.sqrt(D) / 8) * np.finfo(dtype).eps))


@pytest.mark.parametrize("storage", ["C", "F", "csr"])
@pytest.mark.usefixtures("small_tiles")
def test_a_users_function_sees_native_blocks_from_one_thread_only(storage):
    X = numbers()
    exact = np.maximum(X @ X.T, 0.5)
    data = sp.csr_array(X) if storage == "csr" else np.asarray(X, order=storage)
    shapes = []

    def kernel(left, right):
        assert threading.get_ident() == caller
        assert sp.issparse(left) == sp.issparse(right) == (storage == "csr")
        assert left.dtype == np.float64
        shapes.append((left.shape, right.shape))
        products = left @ right.T
        return np.maximum(products.toarray() if storage == "csr" else products, 0.5)

    caller = threading.get_ident()
    K = DirectRows(as_rows(data), Custom(kernel), np.float32, Workers(3))
    np.testing.assert_array_equal(K.rows(np.arange(15)), exact[:15].astype(np.float32))
    assert shapes == [((left, D), (right, D)) for right in (37, 37, 23) for left in (10, 5)]
    np.testing.assert_array_equal(K.diag(), exact.diagonal())
    part = np.array([4, 90, 12])
    np.testing.assert_array_equal(K.narrow(part).rows(np.arange(3)), exact[np.ix_(part, part)])
    np.testing.assert_array_equal(K.rows(part, np.array([7])), exact[part][:, [7]])


@pytest.mark.parametrize(
    "wrap", [np.asfortranarray, lambda K: np.broadcast_to(K[:1], K.shape), lambda K: K.astype(np.int32)]
)
def test_a_users_function_may_return_any_layout(wrap):
    X = numbers() * 4.0
    K = DirectRows(as_rows(X), Custom(lambda left, right: wrap(left @ right.T)))
    np.testing.assert_array_equal(K.rows(np.arange(5)), wrap(X[:5] @ X.T))


@pytest.mark.usefixtures("small_tiles")
def test_a_users_function_that_fails_late_is_an_error():
    X = numbers()
    calls = []

    def kernel(left, right):
        calls.append(1)
        return left @ right.T if len(calls) < 3 else np.full((left.shape[0], right.shape[0]), np.nan)

    K = DirectRows(as_rows(X), Custom(kernel))
    with pytest.raises(SoftmarginError, match="NaN"):
        K.rows(np.arange(4))
    assert K.n_evaluations == 0


# Powers of two: the polynomials, their coefficients, and the ends of the range.


def interpolated(degree):
    """Coefficients of the polynomial that meets 2^f at the Chebyshev points of [-1/2, 1/2], lowest first."""
    n = degree + 1
    points = [Decimal(math.cos((k + 0.5) * math.pi / n) / 2) for k in range(n)]
    differences = [Decimal(2) ** point for point in points]
    for order in range(1, n):
        for k in reversed(range(order, n)):
            differences[k] = (differences[k] - differences[k - 1]) / (points[k] - points[k - order])
    coefficients = [differences[-1]]
    for point, difference in zip(points[-2::-1], differences[-2::-1], strict=True):
        higher, lower = [difference, *coefficients], [*coefficients, Decimal(0)]  # times (f - point), plus difference
        coefficients = [a - point * b for a, b in zip(higher, lower, strict=True)]
    return coefficients


def worst_error(coefficients):
    """Largest relative error as 2^f on a grid of [-1/2, 1/2]."""
    worst = Decimal(0)
    for k in range(-100, 101):
        f, value = Decimal(k) / 200, Decimal(0)
        for coefficient in reversed(coefficients):
            value = value * f + coefficient
        worst = max(worst, abs(value / Decimal(2) ** f - 1))
    return worst


@pytest.mark.parametrize(("letter", "degree", "error", "eps"), [("S", 6, 3e-9, 2.0**-23), ("D", 11, 5e-18, 2.0**-52)])
def test_coefficients_derived_anew(letter, degree, error, eps):
    written = [Decimal(float(getattr(_tiles, f"_{letter}{k}"))) for k in range(degree + 1)]
    assert not hasattr(_tiles, f"_{letter}{degree + 1}")
    with localcontext(prec=50):
        exact = interpolated(degree)
        assert worst_error(exact) < error
        assert worst_error(written) < eps / 4  # what rounding the coefficients leaves of that
        for k in range(degree + 1):
            assert abs(written[k] - exact[k]) < 2**k * eps / 4  # f^k is at most 2^-k


@pytest.mark.parametrize(
    ("power", "dtype", "least"), [("power_single", np.float32, -126.0), ("power_double", np.float64, -1022.0)]
)
def test_powers_of_two_over_the_whole_range(power, dtype, least):
    power = getattr(_tiles, power)
    rng = np.random.default_rng(7)
    eps = np.finfo(dtype).eps
    steps = np.arange(0.0, least - 1, -1.0)
    near = np.concatenate([steps[:40], steps[:40] - 0.5])
    y = np.concatenate([
        steps, steps[:-1] - 0.5, near * (1 + eps), near * (1 - eps),
        rng.uniform(least, 0, 20_000), -(10.0 ** rng.uniform(-12, 0, 2_000)),
    ]).astype(dtype)  # fmt: skip
    y = y[(y >= least) & (y <= 0)]
    zeros = np.zeros(1, dtype), np.zeros(y.size, dtype)
    tile = y[None, :].copy()
    power(tile, *zeros, dtype(1))
    exact = np.exp2(y.astype(np.longdouble))
    assert np.abs(tile[0] / exact - 1).max() < 1.5 * eps
    assert tile.max() <= 1.0
    np.testing.assert_array_equal(tile[0][y == np.rint(y)], exact[y == np.rint(y)])

    beyond = np.array([[0.0, 1e-3, 7.0, 1e30, least, np.nextafter(dtype(least), dtype(-np.inf)), 2 * least, -1e30]])
    beyond = beyond.astype(dtype)
    power(beyond, np.zeros(1, dtype), np.zeros(beyond.size, dtype), dtype(1))
    np.testing.assert_array_equal(beyond[0], np.array([1, 1, 1, 1] + [2.0**least] * 4, dtype))


@pytest.mark.parametrize(("power", "dtype"), [("power_single", np.float32), ("power_double", np.float64)])
def test_powers_of_terms(power, dtype):
    tile = np.array([[1, 2, 3], [4, 5, 6]], dtype)
    rows, columns = np.array([-3, -7], dtype), np.array([-1, 0, -2], dtype)
    getattr(_tiles, power)(tile, rows, columns, dtype(0.5))
    exponents = np.minimum(0, rows[:, None] + columns + 0.5 * np.array([[1, 2, 3], [4, 5, 6]]))
    np.testing.assert_allclose(tile, np.exp2(exponents), rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize("gamma", [1e-12, 1e-3, 1.0, 1e3, 1e8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rbf_of_any_width_stays_between_zero_and_one(gamma, dtype):
    X = numbers()
    K = DirectRows(as_rows(X), RBF(gamma), dtype)
    values = K.rows(np.arange(N))
    assert np.all((values >= 0) & (values <= 1))
    assert np.all(np.abs(values - reference(RBF(gamma), X)) <= 2 * K.row_errors()[:, None])


@pytest.mark.parametrize("degree", [0, 1, 2, 7])
def test_polynomials_of_any_degree(degree):
    tile = np.array([[-1.0, 0.0, 2.0]])
    _tiles.polynomial(tile, 2.0, 1.0, degree)
    np.testing.assert_array_equal(tile, [[(-1.0) ** degree, 1.0, 5.0**degree]])


def test_as_ordinary_python():
    """Without compilation the same rows come out."""
    code = """
    import numpy as np, scipy.sparse as sp
    from softmargin.data.convert import as_rows
    from softmargin.kernels import matrix
    from softmargin.kernels.cached import CachedRows
    from softmargin.kernels.functions import RBF, Laplacian, Linear, Polynomial, Sigmoid

    matrix._RIGHT, matrix.LEFT_ROWS = 8, 3
    rng = np.random.default_rng(0)
    X = rng.standard_normal((21, 5)) * (rng.random((21, 5)) < 0.8)
    P, far = X @ X.T, X[:, None, :] - X
    exact = {
        Linear(): P,
        RBF(0.3): np.exp(-0.3 * (far**2).sum(axis=2)),
        Laplacian(0.3): np.exp(-0.3 * np.abs(far).sum(axis=2)),
        Polynomial(0.5, 2, 1.0): (0.5 * P + 1.0) ** 2,
        Sigmoid(0.5, -0.1): np.tanh(0.5 * P - 0.1),
    }
    beta = rng.standard_normal(21)
    for kernel, K in exact.items():
        for data in (X, np.asfortranarray(X), sp.csr_array(X)):
            for dtype, digits in ((np.float32, 2e-5), (np.float64, 1e-12)):
                store = CachedRows(matrix.DirectRows(as_rows(data), kernel, dtype), 1e6)
                slots = store.fetch(np.arange(3, 12))
                np.testing.assert_allclose(store.slab[slots], K[3:12], rtol=0, atol=digits)
                np.testing.assert_allclose(store.product(beta), K @ beta, rtol=0, atol=10 * digits)
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def test_importing_does_not_import_numba():
    modules = ", ".join(f"softmargin.kernels.{name}" for name in ("functions", "matrix", "cached", "precomputed"))
    code = f"import sys, {modules}; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
