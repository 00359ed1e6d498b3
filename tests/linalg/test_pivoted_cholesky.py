"""Pivoted Cholesky: exact on matrices of low rank, greedy, and honest about what is left."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from softmargin.core.threads import Workers
from softmargin.linalg.pivoted_cholesky import pivoted_cholesky

RNG = np.random.default_rng(3)
X = RNG.standard_normal((150, 6))


def factored(K, max_rank=100, tolerance=1e-13, n_threads=1):
    asked = []

    def row(i):
        asked.append(i)
        return K[i]

    return pivoted_cholesky(row, K.diagonal(), max_rank, tolerance, Workers(n_threads)), asked


def test_a_matrix_of_low_rank_is_reproduced_from_as_many_rows():
    K = X @ X.T
    found, asked = factored(K)
    assert found.V.shape == (150, 6)
    assert asked == found.pivots.tolist()
    np.testing.assert_allclose(found.V @ found.V.T, K, atol=1e-12)
    assert found.residual <= 1e-13 * found.trace
    assert found.trace == pytest.approx(K.trace())


def test_the_residual_is_known_and_bounds_its_entries():
    K = rbf_kernel(X, gamma=0.1)
    for rank in (1, 7, 40):
        found, asked = factored(K, max_rank=rank)
        assert len(asked) == rank == np.unique(asked).size
        left = K - found.V @ found.V.T
        assert found.residual == pytest.approx(left.trace(), rel=1e-9)
        assert np.linalg.eigvalsh(left)[0] >= -1e-12
        assert np.abs(left).max() <= found.residual
        np.testing.assert_allclose(left[found.pivots], 0.0, atol=1e-12)


def test_the_pivot_is_the_largest_diagonal_entry_of_the_residual():
    K = X @ np.diag([9.0, 4.0, 1.0, 1.0, 0.1, 0.1]) @ X.T
    found, _ = factored(K)
    for j, pivot in enumerate(found.pivots):
        V = found.V[:, :j]
        rest = K.diagonal() - np.square(V).sum(axis=1)
        assert rest[pivot] == pytest.approx(rest.max(), rel=1e-10)


def test_it_stops_where_asked():
    K = rbf_kernel(X, gamma=0.01)
    loose, tight = factored(K, tolerance=1e-2)[0], factored(K, tolerance=1e-4)[0]
    assert loose.pivots.size < tight.pivots.size < 100
    assert loose.residual <= 1e-2 * loose.trace
    assert tight.residual <= 1e-4 * tight.trace
    np.testing.assert_array_equal(tight.V[:, : loose.pivots.size], loose.V)


@pytest.mark.parametrize("n", [1, 3, 70])
def test_nothing_and_everything(n):
    found, asked = factored(np.zeros((n, n)))
    assert found.V.shape == (n, 0)
    assert not asked
    K = np.eye(n)
    found, asked = factored(K)
    assert found.pivots.size == n
    np.testing.assert_array_equal(found.V @ found.V.T, K)


def test_an_indefinite_matrix_shows():
    found, _ = factored(np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert found.least == -3.0


def test_threads_do_not_change_a_bit():
    Z = RNG.standard_normal((70_000, 3))
    results = [
        pivoted_cholesky(lambda i: Z @ Z[i], np.square(Z).sum(axis=1), 5, 1e-13, Workers(threads)) for threads in (1, 3)
    ]
    np.testing.assert_array_equal(results[0].V, results[1].V)
    assert results[0].pivots.size == 3
