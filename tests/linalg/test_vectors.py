import numpy as np
import pytest

from softmargin.core.threads import Workers
from softmargin.linalg import vectors

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("length", [1, 50, vectors.LONG, vectors.BLOCK + 3, 2 * vectors.BLOCK + 2049])
@pytest.mark.parametrize("n_rows", [1, 3, 4, 11])
def test_products(n_rows, length, n_threads):
    A, x = RNG.standard_normal((n_rows, length)), RNG.standard_normal(length)
    weights = RNG.standard_normal(n_rows) * (np.arange(n_rows) % 3 != 1)
    workers = Workers(n_threads)
    np.testing.assert_allclose(vectors.rows_times(A, x, workers), A @ x, atol=1e-9)
    combined = vectors.combine_rows(weights, A, workers)
    np.testing.assert_allclose(combined, weights @ A, atol=1e-12)
    np.testing.assert_array_equal(combined, vectors.combine_rows(weights, A, Workers(1)))
    total = A[0].copy()
    vectors.add_to(total, x, workers)
    np.testing.assert_array_equal(total, A[0] + x)


def test_no_weight_at_all():
    A = np.full((5, vectors.LONG), np.nan)  # rows with weight 0 are not read
    np.testing.assert_array_equal(vectors.combine_rows(np.zeros(5), A, Workers(1)), np.zeros(vectors.LONG))
