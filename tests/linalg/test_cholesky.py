"""The updated factor against numpy.linalg.cholesky of the current set."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softmargin.linalg.cholesky import Factor


def positive_definite(n, seed, condition=1e3):
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return (Q * np.geomspace(1.0, 1.0 / condition, n)) @ Q.T


def append(A, factor, k, b):
    y = factor.forward(A[factor.members, k])
    factor.append(k, y, A[k, k] - y @ y, b)


def check(A, factor, b):
    """Assert that both solves and the carried vector are those of the factor of A[S, S]."""
    S = factor.members
    if S.size == 0:
        return
    lower = np.linalg.cholesky(A[np.ix_(S, S)])
    identity = np.eye(S.size)
    forward = np.column_stack([factor.forward(column.copy()) for column in identity])
    backward = np.column_stack([factor.backward(column.copy()) for column in identity])
    np.testing.assert_allclose(lower @ forward, identity, atol=1e-11)
    np.testing.assert_allclose(lower.T @ backward, identity, atol=1e-11)
    np.testing.assert_allclose(lower @ factor.carried, b[S], atol=1e-11)


@settings(max_examples=60, deadline=None)
@given(
    moves=st.lists(st.tuples(st.booleans(), st.integers(0, 10**6)), min_size=1, max_size=120),
    filled=st.integers(0, 17),
    seed=st.integers(0, 5),
)
def test_replayed_appends_and_deletes_match_numpy(moves, filled, seed):
    size = 17
    A = positive_definite(size, seed)
    b = np.random.default_rng(seed).normal(size=size)
    factor = Factor()
    if filled:
        S = np.arange(filled)[::-1]
        factor.refill(S, A[np.ix_(S, S)], b[S], 1e-14)
        assert factor.members.tolist() == S.tolist()
    for grow, number in moves:
        outside = [k for k in range(size) if k not in factor.members]
        if outside and (grow or not factor.order):
            append(A, factor, outside[number % len(outside)], b[outside[number % len(outside)]])
        else:
            factor.delete(number % factor.order)
        check(A, factor, b)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), closeness=st.sampled_from([1e-3, 1e-5, 1e-6]))
def test_long_sequences_with_nearly_dependent_rows(seed, closeness):
    """400 updates, as an active set makes them: rows come in near copies, and one that depends is turned away.

    The error of R'R stays within some units of rounding, whatever the condition.
    """
    rng = np.random.default_rng(seed)
    size, dependent = 30, 1e-11
    rows = rng.normal(size=(size // 2, 12))
    rows = np.vstack([rows, rows + closeness * rng.normal(size=rows.shape)])
    A, ones = rows @ rows.T + 1.0, np.ones(size)
    factor = Factor()
    for _ in range(400):
        outside = np.setdiff1d(np.arange(size), factor.members)
        if factor.order == 0 or (outside.size and rng.random() < 0.5):
            k = int(rng.choice(outside))
            y = factor.forward(A[factor.members, k])
            pivot = A[k, k] - y @ y
            if pivot > dependent * A[k, k]:
                factor.append(k, y, pivot, 1.0)
        else:
            factor.delete(int(rng.integers(factor.order)))
    S = factor.members
    if S.size:
        R = np.zeros((S.size, S.size))
        for j in range(S.size):  # column by column, as LAPACK packs it
            R[: j + 1, j] = factor._packed[j * (j + 1) // 2 : (j + 1) * (j + 2) // 2]
        assert np.abs(R.T @ R - A[np.ix_(S, S)]).max() <= 1e-13 * np.abs(A).max()
        np.testing.assert_allclose(R.T @ factor.carried, ones[S], atol=1e-9)


def test_appending_enlarges_the_factor():
    A = positive_definite(90, seed=1)
    factor = Factor()
    for k in range(90):
        append(A, factor, k, 1.0)
    check(A, factor, np.ones(90))


@pytest.mark.parametrize("n", [1, 2, 7, 40, 150])
def test_solves_invert_the_matrix_in_place(n):
    A = positive_definite(n, seed=n)
    factor = Factor()
    factor.refill(np.arange(n), A.copy(), np.ones(n), 1e-14)
    b = np.random.default_rng(n).normal(size=n)
    x = b.copy()
    assert np.shares_memory(factor.forward(x), x)
    assert np.shares_memory(factor.backward(x), x)
    np.testing.assert_allclose(A @ x, b, atol=1e-11)


@pytest.mark.parametrize("n", [3, 20, 100, 300])
@pytest.mark.parametrize("place", [0.0, 0.3, 0.7, 1.0])
def test_refill_ends_before_the_first_dependent_row(n, place):
    rng = np.random.default_rng(n)
    j = int(place * (n - 1))
    rows = rng.normal(size=(n, 2 * n))
    rows[j] = rows[0] - rows[j - 1] if j > 1 else rows[0] * j
    A = rows @ rows.T
    for lowered in (0.0, 0.5):  # singular, then indefinite
        A[j, j] -= lowered
        factor = Factor()
        factor.refill(np.arange(n), A.copy(), np.ones(n), 1e-12)
        assert factor.order == j
        check(A, factor, np.ones(n))


def test_importing_does_not_import_numba():
    code = "import sys, softmargin.linalg.cholesky; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
