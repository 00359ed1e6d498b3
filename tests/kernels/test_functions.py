"""Kernels as values: which are convex, their diagonals, and what a user's function may return."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels

from softmargin.core.errors import SoftmarginError
from softmargin.data.convert import as_rows
from softmargin.kernels.functions import RBF, Custom, Laplacian, Linear, Polynomial, Sigmoid

RNG = np.random.default_rng(3)
X = RNG.standard_normal((12, 4))
KERNELS = [
    (Linear(), {}),
    (RBF(0.7), {"gamma": 0.7}),
    (Laplacian(0.4), {"gamma": 0.4}),
    (Polynomial(0.5, 2, 0.3), {"gamma": 0.5, "degree": 2, "coef0": 0.3}),
    (Sigmoid(0.2, -0.1), {"gamma": 0.2, "coef0": -0.1}),
]


@pytest.mark.parametrize(("kernel", "parameters"), KERNELS, ids=lambda value: getattr(value, "name", ""))
def test_names_and_diagonals_are_those_of_scikit_learn(kernel, parameters):
    exact = pairwise_kernels(X, metric=kernel.name, **parameters)
    np.testing.assert_allclose(kernel.diagonal(as_rows(X)), exact.diagonal(), rtol=1e-13)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (Linear(), True),
        (RBF(1.0), True),
        (Laplacian(1.0), True),
        (Polynomial(1.0, 3, 0.0), True),
        (Polynomial(1.0, 2, 1.0), True),
        (Polynomial(1.0, 2, -0.5), False),
        (Sigmoid(1.0), False),
        (Custom(np.dot), False),
    ],
)
def test_convex_is_said_of_kernels_that_are_so_whatever_the_rows(kernel, expected):
    assert kernel.is_convex is expected


def test_kernels_are_values():
    assert RBF(0.5) == RBF(0.5) != RBF(0.6)
    assert len({Linear(), Linear(), Polynomial(1.0), Polynomial(1.0, 3, 0.0)}) == 2
    with pytest.raises(AttributeError):
        RBF(0.5).gamma = 1.0


def returning(values):
    """The block of six and twelve rows by a function that returns `values`."""
    return Custom(lambda left, right: values).block(X[:6], X)


@pytest.mark.parametrize(
    ("values", "cause"),
    [
        (np.ones((12, 6)), r"shape \(12, 6\) for blocks of 6 and 12 rows.*shape \(6, 12\)"),
        (np.ones(72), r"shape \(72,\)"),
        (1.0, r"shape \(\)"),
        (None, r"shape \(\)"),
        (sp.csr_array(np.ones((6, 11))), r"shape \(6, 11\)"),
        (np.full((6, 12), np.nan), "NaN or infinity"),
        (np.where(np.eye(6, 12), np.inf, 0.0), "NaN or infinity"),
        (np.full((6, 12), "1"), "type <U1: real numbers"),
        (np.ones((6, 12), dtype=object), "type object: real numbers"),
        (np.ones((6, 12), dtype=complex), "type complex128: real numbers"),
    ],
)
def test_a_bad_answer_is_an_error_that_says_why(values, cause):
    with pytest.raises(SoftmarginError, match=cause):
        returning(values)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.longdouble, np.int8, np.uint64, bool])
def test_any_real_type_becomes_float64(dtype):
    values = RNG.integers(0, 2, (6, 12))
    got = returning(values.astype(dtype))
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, values)


def test_lists_are_taken():
    np.testing.assert_array_equal(returning([[1] * 12] * 6), np.ones((6, 12)))


def test_what_the_function_raises_comes_through():
    def fails(left, right):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        Custom(fails).block(X, X)
