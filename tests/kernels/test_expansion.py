"""Sums over support vectors: as by hand, the same in several threads, and in little memory."""

import threading
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels

from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.kernels.expansion import expansion
from softmargin.kernels.functions import RBF, Custom, Laplacian, Linear, Polynomial, Sigmoid

RNG = np.random.default_rng(3)
SUPPORT = RNG.standard_normal((1100, 4))  # more than a tile
ROWS = RNG.standard_normal((150, 4))  # more than two blocks
COEFFICIENTS = RNG.standard_normal((1100, 3))
KERNELS = [Linear(), RBF(0.3), Laplacian(0.3), Polynomial(0.5, 3, 1.0), Sigmoid(0.2, -0.5)]


def by_hand(kernel, dtype=np.float64):
    """From data that are rounded to a type, but in float64 from there on."""
    parameters = {name: getattr(kernel, name) for name in ("gamma", "degree", "coef0") if hasattr(kernel, name)}
    rows, support = (data.astype(dtype).astype(np.float64) for data in (ROWS, SUPPORT))
    return pairwise_kernels(rows, support, metric=kernel.name, **parameters) @ COEFFICIENTS


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make_rows", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("make_support", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_sums_are_in_double_precision(kernel, make_support, make_rows, dtype):
    support, rows = as_rows(make_support(SUPPORT.astype(dtype))), as_rows(make_rows(ROWS.astype(dtype)))
    found = expansion(kernel, support, COEFFICIENTS, rows, Workers(1))
    assert (found.dtype, found.shape) == (np.float64, (150, 3))
    expected = by_hand(kernel, dtype)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_threads_change_no_bit():
    for kernel in (RBF(0.3), Laplacian(0.3)):
        for make in (np.asarray, sp.csr_array):
            support, rows = as_rows(make(SUPPORT)), as_rows(make(ROWS))
            found = [expansion(kernel, support, COEFFICIENTS, rows, Workers(n)) for n in (1, 2, 3)]
            np.testing.assert_array_equal(found[0], found[1])
            np.testing.assert_array_equal(found[0], found[2])


def test_a_user_s_function_is_called_in_one_thread():
    threads = set()

    def product(X, Z):
        threads.add(threading.get_ident())
        return X @ Z.T

    workers = Workers(2)
    found = expansion(Custom(product), as_rows(SUPPORT), COEFFICIENTS, as_rows(ROWS), workers)
    np.testing.assert_allclose(found, by_hand(Linear()), rtol=1e-10, atol=1e-10)
    assert threads == {threading.get_ident()}


def test_no_support_vectors_and_no_rows():
    rows = as_rows(ROWS)
    np.testing.assert_array_equal(
        expansion(RBF(1.0), as_rows(SUPPORT[:0]), COEFFICIENTS[:0], rows, Workers(1)), np.zeros((150, 3))
    )
    support = as_rows(SUPPORT)
    assert expansion(RBF(1.0), support, COEFFICIENTS, as_rows(ROWS[:0]), Workers(1)).shape == (0, 3)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_memory_is_bounded(make):
    """3000 new rows and 5500 support vectors: their matrix would take 132 MB."""
    support, rows = as_rows(make(np.tile(SUPPORT, (5, 1)))), as_rows(make(np.tile(ROWS, (20, 1))))
    coefficients = np.tile(COEFFICIENTS, (5, 1))
    expansion(RBF(0.3), support, coefficients, as_rows(make(ROWS)), Workers(1))  # compiled before
    tracemalloc.start()
    try:
        expansion(RBF(0.3), support, coefficients, rows, Workers(1))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8e6
