"""Products with error bounds, and with twice the digits, against exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from softmargin.data.convert import as_rows
from softmargin.data.precise import combination, lengths_above, outputs, sharper_combination, sharper_outputs

STORAGES = {
    "C": np.asarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "float32": lambda X: X.astype(np.float32),
    "int64": lambda X: np.round(X * 1e6).astype(np.int64),
}


def cancelling(seed):
    """Rows far from the origin, and weights that take most of them away."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 6)) + 1e6
    X[5] = 0.0
    w = rng.standard_normal(6)
    return X, w - w.mean()


def exact_dot(a, b):
    return sum((Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)), Fraction(0))


@pytest.mark.parametrize("storage", STORAGES)
def test_products_are_within_their_bounds(storage):
    for seed in range(20):
        X, w = cancelling(seed)
        rows = as_rows(STORAGES[storage](X))
        dense = rows.densified(slice(None), np.float64)
        lengths = lengths_above(rows)
        assert all(Fraction(n) ** 2 >= exact_dot(x, x) for n, x in zip(lengths, dense, strict=True))
        plain = outputs(rows, w, lengths)
        sharp = sharper_outputs(rows, w, lengths, np.arange(20))
        for i, x in enumerate(dense):
            real = exact_dot(x, w)
            assert abs(Fraction(plain.f[i]) - real) <= Fraction(plain.error[i])
            assert abs(Fraction(sharp.f[i]) + Fraction(sharp.low[i]) - real) <= Fraction(sharp.error[i])
        assert (sharp.error[plain.error > 0] <= 1e-9 * plain.error[plain.error > 0] + 1e-300).all()

        v = np.random.default_rng(seed).standard_normal(20)
        v -= v.mean()
        square = sum(exact_dot(column, v) ** 2 for column in dense.T)
        length, w_alpha = combination(rows, v, lengths)
        assert Fraction(length) ** 2 >= square
        assert Fraction(sharper_combination(rows, v, lengths)) ** 2 >= square
        assert sharper_combination(rows, v, lengths) <= length
        np.testing.assert_allclose(w_alpha, dense.T @ v, rtol=1e-6)


def test_large_integers_are_not_taken_for_exact():
    X = np.array([[2**60 + 1, 1], [3, 4]])
    rows = as_rows(X)
    lengths = lengths_above(rows)
    sharp = sharper_outputs(rows, np.array([1.0, 1.0]), lengths, np.arange(2))
    assert abs(Fraction(sharp.f[0]) + Fraction(sharp.low[0]) - (2**60 + 2)) <= Fraction(sharp.error[0])
