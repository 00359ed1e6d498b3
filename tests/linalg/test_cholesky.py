"""The updated factor against numpy.linalg.cholesky of the current set."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softmargin.linalg import _cholesky as chol


def positive_definite(n, seed, condition=1e3):
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return (Q * np.geomspace(1.0, 1.0 / condition, n)) @ Q.T


def append(A, R, members, k, carried):
    n = len(members)
    y = A[members, k].copy()
    chol.solve_lower(R, n, y)
    pivot = A[k, k] - y @ y
    chol.append_row(R, n, y, pivot)
    carried[n] = (1.0 - y @ carried[:n]) / R[n, n]
    members.append(k)


@settings(max_examples=60, deadline=None)
@given(
    moves=st.lists(st.tuples(st.booleans(), st.integers(0, 10**6)), min_size=1, max_size=120),
    seed=st.integers(0, 5),
)
def test_replayed_appends_and_deletes_match_numpy(moves, seed):
    size = 17
    A = positive_definite(size, seed)
    R = np.full((size, size), np.nan)  # what the factor does not own must not be read
    carried = np.full(size, np.nan)
    members: list[int] = []
    for grow, number in moves:
        outside = [k for k in range(size) if k not in members]
        if outside and (grow or not members):
            append(A, R, members, outside[number % len(outside)], carried)
        else:
            p = number % len(members)
            chol.delete_row(R, len(members), p, carried)
            del members[p]
        n = len(members)
        if n:
            lower = np.linalg.cholesky(A[np.ix_(members, members)])
            np.testing.assert_allclose(np.triu(R[:n, :n]), lower.T, atol=1e-12)
            np.testing.assert_allclose(np.triu(R[:n, :n]).T @ carried[:n], np.ones(n), atol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 40])
def test_solves_invert_the_factor(n):
    A = positive_definite(n, seed=n)
    R = np.full((n + 3, n + 3), np.nan)
    R[:n, :n] = np.triu(np.linalg.cholesky(A).T) + np.tril(np.full((n, n), np.nan), -1)
    b = np.random.default_rng(n).normal(size=n)
    x = b.copy()
    chol.solve_lower(R, n, x)
    chol.solve_upper(R, n, x)
    np.testing.assert_allclose(A @ x, b, atol=1e-12)


def test_delete_without_a_carried_vector():
    A = positive_definite(6, seed=0)
    R = np.linalg.cholesky(A).T.copy()
    chol.delete_row(R, 6, 2, np.empty(0))
    rest = [0, 1, 3, 4, 5]
    np.testing.assert_allclose(np.triu(R[:5, :5]), np.linalg.cholesky(A[np.ix_(rest, rest)]).T, atol=1e-13)


def test_factorise_leaves_dependent_rows_out():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(4, 9))
    rows = np.vstack([rows[0], rows[0], np.zeros(9), rows[1], rows[0] + rows[1], rows[2], rows[3]])
    A = rows @ rows.T
    R = np.empty((7, 7))
    kept = np.empty(7, np.int64)
    n = chol.factorise(A, R, kept, 1e-12)
    assert kept[:n].tolist() == [0, 3, 5, 6]
    expected = np.linalg.cholesky(A[np.ix_(kept[:n], kept[:n])])
    np.testing.assert_allclose(np.triu(R[:n, :n]), expected.T, atol=1e-12)
