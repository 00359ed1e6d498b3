"""Where a dual solve begins: zero, exactly where another ended, or at given variables made feasible."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import DualStart
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.kernels.cached import CachedRows
from softmargin.kernels.functions import Linear
from softmargin.kernels.matrix import DirectRows
from softmargin.problems.box_qp import BoxQP
from softmargin.problems.row_loss import RowLoss
from softmargin.solvers.dual_state import DualState, first_state, repaired

RNG = np.random.default_rng(13)
N = 24
X = RNG.standard_normal((N, 3))
K = X @ X.T


def problem(C=1.0, y=None, s=None):
    y = np.where(np.arange(N) % 3 == 0, 1.0, -1.0) if y is None else y
    s = np.ones(N) if s is None else s
    store = CachedRows(DirectRows(as_rows(X), Linear()), 1e6)
    return BoxQP(store, RowLoss.classification(s * y, C), Workers(1))


def check_feasible(beta, dual):
    assert np.all((dual.lo <= beta) & (beta <= dual.hi))
    assert abs(beta.sum() - dual.total) <= 1e-12 * np.abs(beta).sum()


def test_zero_is_the_beginning():
    dual = problem()
    state = first_state(dual)
    assert not state.beta.any()
    assert not state.f.any()
    assert state.beta.shape == state.f.shape == (N,)
    assert state.pair == (-1, -1)
    assert set(state.counts().values()) == {0}
    assert dual.K.n_evaluations == 0


@pytest.mark.parametrize("C", [1e-8, 1.0, 1e8])
def test_given_variables_are_made_feasible(C):
    dual = problem(C, s=RNG.uniform(0.1, 3.0, N))
    start = C * RNG.standard_normal(N)
    kept = start.copy()
    state = first_state(dual, DualStart(start))
    check_feasible(state.beta, dual)
    assert np.abs(state.beta).sum() > 0
    np.testing.assert_allclose(state.f, K @ state.beta, rtol=0, atol=1e-12 * np.abs(state.beta).sum())
    np.testing.assert_array_equal(start, kept)  # the user's array is not touched
    assert state.kernel_evaluations == dual.K.n_evaluations == np.count_nonzero(state.beta) * N
    assert state.iterations == 0


def test_given_variables_that_are_feasible_stay():
    dual = problem()
    beta = np.zeros(N)
    beta[[0, 1, 2, 3]] = 0.5, -0.25, -0.5, 0.25
    np.testing.assert_array_equal(first_state(dual, DualStart(beta)).beta, beta)


def test_a_state_is_continued_exactly():
    dual = problem()
    beta = np.zeros(N)
    beta[[0, 1, 2, 3]] = 0.1, -0.3, -0.1, 0.3  # the sum is only zero up to rounding
    f = RNG.standard_normal(N)  # carried along, not computed anew
    state = DualState(beta, f, 17, 2, 500, 40, 30, (3, 1), is_stalled=True, pair_steps=99)
    again = first_state(dual, state)
    assert again.beta is beta
    assert again.f is f
    assert not again.is_stalled
    assert (again.pair, again.counts()) == ((3, 1), state.counts())
    assert dual.K.n_evaluations == 0


def test_a_state_of_a_problem_with_larger_C_is_cut():
    beta = np.where(np.arange(N) % 3 == 0, 2.0, -1.0)
    state = DualState(beta, K @ beta, iterations=17, kernel_evaluations=500, pair=(3, 1), is_stalled=True)
    dual = problem(C=0.5)
    again = first_state(dual, state)
    check_feasible(again.beta, dual)
    np.testing.assert_allclose(again.f, K @ again.beta, rtol=0, atol=1e-12)
    assert again.iterations == 17
    assert again.pair == (-1, -1)
    assert not again.is_stalled
    np.testing.assert_array_equal(state.beta, beta)


def test_counts_have_names():
    more = {"majors": 7, "refactorisations": 8, "degenerate": 9, "products": 10}
    state = DualState(np.zeros(2), np.zeros(2), 1, 2, 3, 4, 5, pair_steps=6, **more)
    expected = {"iterations": 1, "unshrinkings": 2, "kernel_evaluations": 3, "hits": 4, "misses": 5, "pair_steps": 6}
    assert state.counts() == expected | more


@pytest.mark.parametrize(
    ("beta", "reason"), [(np.zeros(N - 1), "shape"), (np.zeros((N, 2)), "shape"), (np.full(N, np.nan), "NaN")]
)
def test_starts_that_are_none(beta, reason):
    for start in (DualStart(beta), DualState(beta, beta)):
        with pytest.raises(SoftmarginError, match=reason):
            first_state(problem(), start)


def test_counted_reads_the_matrix():
    dual = problem()
    dual.K.fetch(np.array([1, 2, 3]))
    dual.K.fetch(np.array([3, 4]))
    state = first_state(dual).counted(dual)
    assert (state.kernel_evaluations, state.hits, state.misses) == (4 * N, 1, 4)


# Down to 1e-300: subnormal numbers have no digits to get a sum right with.
NUMBERS = st.floats(-1e3, 1e3).map(lambda x: round(x, 12)) | st.sampled_from([1e300, -1e300, 1e-300, -1e-300])


@settings(max_examples=150)
@given(
    numbers=st.lists(NUMBERS, min_size=N, max_size=N),
    labels=st.lists(st.sampled_from([1.0, -1.0]), min_size=N, max_size=N),
    C=st.sampled_from([1e-10, 1e-3, 1.0, 7.3, 1e10]),
)
def test_repaired_is_feasible_and_close(numbers, labels, C):
    y = np.array(labels)
    dual = problem(C, y)
    beta = repaired(np.array(numbers), dual)
    check_feasible(beta, dual)
    np.testing.assert_array_equal(repaired(beta, dual), beta)
    clipped = np.clip(numbers, dual.lo, dual.hi)
    assert np.all(np.abs(beta) <= np.abs(clipped))  # only ever towards zero
    lighter = clipped < 0 if clipped.sum() > 0 else clipped > 0
    np.testing.assert_allclose(beta[lighter], clipped[lighter], rtol=1e-12, atol=1e-15 * np.abs(clipped).sum())


@pytest.mark.parametrize("label", [1.0, -1.0])
def test_one_class_alone_leaves_nothing(label):
    """Not even what rounding leaves, which for these numbers once was a sum of 1e-47 and no zero."""
    start = np.append(np.zeros(N - 3), label * np.array([1.0, 8.0, 8.0]))
    assert not repaired(start, problem(7.3, np.full(N, label))).any()
