"""Kernel values and sums of them are as close to the real ones as is claimed, on ugly rows too."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.sparse as sp

from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.kernels import _tiles, errors
from softmargin.kernels.cached import CachedRows
from softmargin.kernels.functions import RBF, Laplacian, Linear, Polynomial, Sigmoid
from softmargin.kernels.matrix import DirectRows
from softmargin.kernels.precise import EXP_ERROR
from softmargin.kernels.symmetric import symmetric_product

KERNELS = [
    Linear(),
    RBF(0.5),
    RBF(3e-9),
    Laplacian(0.3),
    Polynomial(0.5, 3, 1.0),
    Polynomial(1.0, 2, 1e6),
    Sigmoid(0.1),
]


def exact(kernel, x, z):
    """The real kernel value, to 60 digits."""
    with localcontext() as context:
        context.prec = 60
        x, z = [Decimal(float(v)) for v in x], [Decimal(float(v)) for v in z]
        product = sum((a * b for a, b in zip(x, z, strict=True)), Decimal(0))
        match kernel:
            case Linear():
                return product
            case RBF(gamma):
                return (-Decimal(gamma) * sum((a - b) ** 2 for a, b in zip(x, z, strict=True))).exp()
            case Laplacian(gamma):
                return (-Decimal(gamma) * sum(abs(a - b) for a, b in zip(x, z, strict=True))).exp()
            case Polynomial(gamma, degree, coef0):
                return (Decimal(gamma) * product + Decimal(coef0)) ** degree
            case Sigmoid(gamma, coef0):
                argument = Decimal(gamma) * product + Decimal(coef0)
                power = (2 * max(min(argument, Decimal(100)), Decimal(-100))).exp()  # tanh(100) is 1 to 80 digits
                return (power - 1) / (power + 1)


def ugly_rows(seed, dtype=np.float64):
    """Offsets, scales that differ by column and by row, duplicates, zeros."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((10, 5)) * 10.0 ** rng.integers(-3, 3, 5) + rng.choice([0.0, 1.0, 100.0, 1e4], 5)
    X *= 10.0 ** rng.integers(-1, 2, (10, 1))
    X[3], X[4], X[rng.random(X.shape) < 0.2] = X[2], X[2] * (1 + 1e-9), 0.0
    return X.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_sums_are_within_their_bounds(kernel, make, dtype):
    for seed in range(6):
        X = ugly_rows(seed)
        rows = as_rows(make(X))
        beta = np.random.default_rng(seed).standard_normal(10) * (np.arange(10) < 7)
        store = CachedRows(DirectRows(rows, kernel, dtype), 1e6)
        bounds = store.errors()
        sums = store.products(bounds.columns(beta))
        with localcontext() as context:
            context.prec = 60
            real = [sum(Decimal(b) * exact(kernel, x, z) for b, z in zip(beta, X, strict=True)) for x in X]
            found = {
                "known": (sums[:, 0] + sums[:, 1], bounds.of_outputs(beta, sums)),
                "coarse": (sums[:, 0] + sums[:, 1], bounds.of_outputs(beta)),
            }
            precise = store.precise(np.arange(10))
            if precise is not None:
                f, low, error = precise.outputs(beta[:7], Workers(1))
                found["in pairs"] = ([Decimal(a) + Decimal(b) for a, b in zip(f, low, strict=True)], error)
            for name, (f, error) in found.items():
                for value, bound, truth in zip(f, error, real, strict=True):
                    assert abs(Decimal(value) - truth) <= Decimal(float(bound)), name
        if precise is not None:
            assert np.median(found["in pairs"][1]) <= np.median(found["known"][1])


@pytest.mark.parametrize(
    ("function", "dtype", "least"), [(_tiles.power_single, np.float32, -126), (_tiles.power_double, np.float64, -1022)]
)
def test_powers_of_two_are_as_exact_as_is_claimed(function, dtype, least):
    rng = np.random.default_rng(0)
    y = np.concatenate([-np.abs(rng.standard_normal(2000)), rng.uniform(least, 0, 2000), [0.0, -0.5, -1.0, -1.5]])
    y = y.astype(dtype)
    tile = y[None, :].copy()
    function(tile, np.zeros(1, dtype), np.zeros(y.size, dtype), dtype(1.0))
    unit = Decimal(float(np.finfo(dtype).eps) / 2)
    with localcontext() as context:
        context.prec = 40
        for exponent, value in zip(y, tile[0], strict=True):
            truth = Decimal(2) ** Decimal(float(exponent))
            assert abs(Decimal(float(value)) / truth - 1) <= Decimal(errors.POWER_ERROR) * unit


def test_exp_of_numpy_is_as_exact_as_is_claimed():
    x = -np.concatenate([np.geomspace(1e-12, 700, 3000), np.linspace(0, 10, 1000)])
    with localcontext() as context:
        context.prec = 40
        for exponent, value in zip(x, np.exp(x), strict=True):
            assert abs(Decimal(float(value)) / Decimal(float(exponent)).exp() - 1) <= Decimal(EXP_ERROR) / 2


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("kernel", [RBF(0.5), Laplacian(0.3), Polynomial(0.5, 3, 1.0)], ids=repr)
def test_symmetric_products_evaluate_each_pair_once_and_miss_none(kernel, make):
    rng = np.random.default_rng(2)
    X, m = rng.standard_normal((2300, 3)), 1500
    K = DirectRows(as_rows(make(X)), kernel)
    columns = rng.standard_normal((m, 2))
    found = symmetric_product(K, columns, Workers(1))
    np.testing.assert_allclose(found, K.rows(np.arange(m)).T @ columns, rtol=1e-9, atol=1e-9)
    workers = Workers(2)
    try:
        np.testing.assert_array_equal(found, symmetric_product(K, columns, workers))
    finally:
        workers.close()
