"""One cache for all pairs of classes: every entry right, and none computed twice while there is room."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.kernels.cached import CachedRows
from softmargin.kernels.functions import Linear
from softmargin.kernels.segments import PairRows, Segments

BOUNDS = np.array([0, 7, 12, 12, 26])  # the third class has no rows
N = 26
X = np.random.default_rng(0).integers(-3, 4, (N, 4)).astype(np.float64)  # products are exact, in float32 too
K = X @ X.T
PAIRS = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def segments(rows=X, dtype=np.float32, capacity=N, n_threads=1):
    return Segments(as_rows(rows), Linear(), dtype, BOUNDS, capacity * N * np.dtype(dtype).itemsize, Workers(n_threads))


def rows_of(pair):
    return np.concatenate([np.arange(BOUNDS[c], BOUNDS[c + 1]) for c in pair])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("pair", PAIRS)
def test_a_pair_is_a_kernel_matrix(pair, make, dtype):
    matrix = PairRows(segments(make(X), dtype), *pair)
    index = rows_of(pair)
    exact = K[np.ix_(index, index)]
    n = index.size
    assert (matrix.n, matrix.dtype, matrix.is_convex) == (n, dtype, True)
    np.testing.assert_array_equal(matrix.rows(np.arange(n)), exact)
    np.testing.assert_array_equal(matrix.diag(), exact.diagonal())
    assert matrix.row_errors().shape == (n,)
    some = np.arange(n)[::-2]
    np.testing.assert_array_equal(matrix.rows(some, some[:2]), exact[np.ix_(some, some[:2])])
    out = np.full((n + 2, n), np.nan, dtype)
    matrix.fill(some, out, np.arange(some.size) + 2)
    np.testing.assert_array_equal(out[2 : 2 + some.size], exact[some])
    assert np.isnan(out[:2]).all()
    assert np.isnan(out[2 + some.size :]).all()
    part = matrix.narrow(some)
    np.testing.assert_array_equal(part.rows(np.arange(some.size)), exact[np.ix_(some, some)])


@settings(max_examples=30)
@given(
    capacity=st.integers(1, 9),
    calls=st.lists(
        st.tuples(st.sampled_from([(0, 1), (0, 3), (1, 3)]), st.lists(st.integers(0, 11), unique=True)), max_size=12
    ),
)
def test_right_after_any_history_of_evictions(capacity, calls):
    shared = segments(capacity=capacity)
    pairs = {pair: PairRows(shared, *pair) for pair in PAIRS}
    for pair, rows in calls:
        index = np.array(rows, dtype=np.int64)
        where = rows_of(pair)
        np.testing.assert_array_equal(pairs[pair].rows(index), K[np.ix_(where[index], where)])


def test_pairs_share_what_they_have_in_common():
    """Each entry of the matrix is computed once; alone, each pair would compute the blocks of its own classes."""
    shared = segments()
    for pair in PAIRS:
        matrix = PairRows(shared, *pair)
        matrix.rows(np.arange(matrix.n))
    assert shared.whole.n_evaluations == N * N
    alone = sum(rows_of(pair).size ** 2 for pair in PAIRS)
    assert alone > 1.5 * N * N


def test_nothing_that_was_not_asked_for_is_computed():
    shared = segments()
    matrix = PairRows(shared, 0, 1)
    matrix.rows(np.array([0, 3]))
    assert matrix.n_evaluations == 2 * 12  # columns of the classes 0 and 1
    other = PairRows(shared, 0, 3)
    other.rows(np.array([0, 3]))
    assert other.n_evaluations == 2 * 12 + 2 * 14  # the columns of class 0 were there


def test_a_store_counts_its_own_evaluations():
    shared = segments()
    first = CachedRows(PairRows(shared, 0, 1), 1e6)
    first.fetch(np.arange(12))
    second = CachedRows(PairRows(shared, 0, 3), 1e6)
    assert second.n_evaluations == 0
    second.fetch(np.array([0]))
    assert second.n_evaluations == 14


def test_a_failure_leaves_no_garbage(monkeypatch):
    shared = segments()
    matrix = PairRows(shared, 0, 1)
    evaluate = shared.whole.evaluate

    def fails(index, side, out, slots):
        evaluate(index, side, out, slots)
        out[slots] = np.nan
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shared.whole, "evaluate", fails)
        with pytest.raises(KeyboardInterrupt):
            matrix.rows(np.arange(5))
    np.testing.assert_array_equal(matrix.rows(np.arange(5)), K[:5, :12])


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_threads_change_no_bit(make):
    rows = make(np.random.default_rng(1).standard_normal((N, 5)))
    found = [PairRows(segments(rows, n_threads=n), 1, 3).rows(np.arange(19)) for n in (1, 2, 3)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
