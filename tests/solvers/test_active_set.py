"""The active set: exact partitions, singular matrices, ties, warm starts, limits of memory, states as values."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from softmargin.core.errors import Abandoned, SoftmarginError
from softmargin.core.result import DualStart
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.kernels.cached import CachedRows
from softmargin.kernels.functions import RBF, Linear
from softmargin.kernels.matrix import DirectRows
from softmargin.problems.box_qp import BoxQP
from softmargin.problems.kernel_certificate import KernelJudge
from softmargin.problems.row_loss import RowLoss
from softmargin.solvers.active_set import active_set
from softmargin.solvers.active_set.active_set import PRICINGS, ActiveSet
from softmargin.solvers.active_set.inner import Inner
from softmargin.solvers.base import run
from softmargin.solvers.dual_state import DualState
from softmargin.solvers.smo.block import BlockSMO

RNG = np.random.default_rng(11)
N = 150
X = RNG.standard_normal((N, 3))
Y = np.where(X[:, 0] * X[:, 1] + 0.5 * RNG.standard_normal(N) > 0, 1.0, -1.0)
S = RNG.uniform(0.2, 2.0, N)


def problem(data=X, y=Y, s=None, C=3.0, kernel=None, capacity=None):
    n = len(y)
    workers = Workers(1)
    source = DirectRows(as_rows(data), kernel or RBF(0.5), np.float64, workers)
    store = CachedRows(source, (capacity or n) * n * 8, workers)
    return BoxQP(store, RowLoss.classification(y * (np.ones(n) if s is None else s), C), workers)


def solve(dual, solver=None, tol=1e-9, **options):
    judge = KernelJudge(dual.K, dual.loss)
    return run(solver or ActiveSet(), dual, Stop(tol=tol, max_iter=20_000), judge, **options)


def partition(dual, beta):
    free = (beta > dual.lo) & (beta < dual.hi)
    return np.flatnonzero(free), np.flatnonzero(~free & (beta != 0))


@pytest.mark.parametrize("pricing", PRICINGS)
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0, 1e5])
def test_every_pricing_finds_the_same_partition(pricing, C):
    dual = problem(s=S, C=C)
    result = solve(dual, ActiveSet(pricing), tol=1e-9 if C <= 100.0 else 1e-6)  # more is not provable there
    assert result.status is Status.OPTIMAL
    assert result.certificate.kkt_violation <= 1e-6
    expected = solve(problem(s=S, C=C), ActiveSet(candidates=7))
    for found, wanted in zip(partition(dual, result.state.beta), partition(dual, expected.state.beta), strict=True):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_allclose(result.state.f, rbf_kernel(X, gamma=0.5) @ result.state.beta, atol=1e-9 * C)


def test_a_coarse_tolerance_still_ends_at_the_exact_partition():
    dual = problem(C=10.0)
    coarse, fine = solve(dual, tol=0.5), solve(dual, tol=1e-10)
    for found, wanted in zip(*(partition(dual, r.state.beta) for r in (coarse, fine)), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert not ActiveSet().measure(dual, ActiveSet().init(dual)).settled


@pytest.mark.parametrize("labels", ["equal", "opposite", "mixed"])
@pytest.mark.parametrize("pricing", PRICINGS)
def test_duplicates(labels, pricing):
    """No free variable depends on the others, however often a row is repeated."""
    copies = {"equal": [Y, Y, Y], "opposite": [Y, -Y], "mixed": [Y, Y, -Y]}[labels]
    data, y = np.tile(X[:40], (len(copies), 1)), np.concatenate([part[:40] for part in copies])
    dual = problem(data, y, C=2.0)
    result = solve(dual, ActiveSet(pricing))
    assert result.status is Status.OPTIMAL
    free, _ = partition(dual, result.state.beta)
    assert np.unique(free % 40).size == free.size
    assert result.counts["iterations"] <= 40 * y.size


@pytest.mark.parametrize("pricing", PRICINGS)
def test_a_kernel_of_low_rank(pricing):
    """Far more rows than the rank: at most rank + 1 variables are free."""
    dual = problem(kernel=Linear(), C=50.0)
    result = solve(dual, ActiveSet(pricing), tol=1e-8)
    assert result.status is Status.OPTIMAL
    assert partition(dual, result.state.beta)[0].size <= 4


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), values=st.integers(1, 3), C=st.sampled_from([0.5, 1.0, 4.0]))
def test_ties_do_not_cycle(seed, values, C):
    rng = np.random.default_rng(seed)
    n = 40
    data = rng.integers(0, values + 1, (n, 2)).astype(float)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    for pricing in PRICINGS:
        for kernel in (Linear(), RBF(1.0)):
            result = solve(problem(data, y, C=C, kernel=kernel), ActiveSet(pricing), tol=1e-6)
            assert result.status is Status.OPTIMAL
            assert result.counts["iterations"] <= 30 * n


class TestStarts:
    def test_from_blocks_with_many_dependent_variables(self):
        """SMO spreads weight over copies of a row; the crossover gathers it."""
        data, y = np.tile(X[:50], (4, 1)), np.tile(Y[:50], 4)
        dual = problem(data, y, C=5.0)
        begun = run(BlockSMO(), dual, Stop(tol=1e-3), KernelJudge(dual.K, dual.loss))
        spread, _ = partition(dual, begun.state.beta)
        assert np.unique(spread % 50).size < spread.size
        result = solve(dual, start=begun.state)
        assert result.status is Status.OPTIMAL
        free, _ = partition(dual, result.state.beta)
        assert np.unique(free % 50).size == free.size
        assert result.counts["iterations"] - begun.counts["iterations"] < 3 * spread.size

    def test_a_null_space_of_many_dimensions(self):
        """All variables free, rank 3: they go to bounds along null directions, and the value does not fall."""
        dual = problem(kernel=Linear(), C=1.0)
        beta = np.where(Y > 0, 0.5 / (Y > 0).sum(), -0.5 / (Y < 0).sum())
        before = dual.measure(beta, dual.K.product(beta)).dual
        solver = ActiveSet()
        state = solver.step(dual, solver.init(dual, DualStart(beta)))
        assert solver.measure(dual, state).dual >= before - 1e-9
        result = solve(dual, start=DualStart(beta), tol=1e-8)
        assert result.status is Status.OPTIMAL
        assert partition(dual, result.state.beta)[0].size <= 4

    @pytest.mark.parametrize("beta", [np.zeros(N), 5.0 * RNG.standard_normal(N), np.full(N, 1e9), S * Y])
    def test_any_start_leads_to_the_same_optimum(self, beta):
        dual = problem(s=S)
        result, cold = solve(dual, start=DualStart(beta)), solve(problem(s=S))
        assert result.status is Status.OPTIMAL
        np.testing.assert_allclose(result.state.beta, cold.state.beta, atol=1e-6)

    def test_a_neighbouring_C_takes_few_pivots(self):
        first = solve(problem(C=10.0))
        warm, cold = solve(problem(C=10.5), start=first.state), solve(problem(C=10.5))
        np.testing.assert_allclose(warm.state.beta, cold.state.beta, atol=1e-6)
        assert warm.counts["iterations"] - first.counts["iterations"] < 0.5 * cold.counts["iterations"]

    def test_the_optimum_itself_takes_no_pivot(self):
        dual = problem()
        first = solve(dual)
        again = solve(dual, start=first.state)
        assert again.counts["iterations"] == first.counts["iterations"]
        blocks = solve(dual, BlockSMO(), tol=1e-6, start=first.state)
        assert blocks.counts["pair_steps"] == 0

    def test_many_dependent_variables_in_small_steps(self, monkeypatch):
        """Each moves along a null direction, which gains nothing: that is progress all the same."""
        monkeypatch.setattr(active_set, "_IDLE_STEPS", 3)
        once = solve(problem(C=100.0), tol=1e-3).state.beta
        dual = problem(np.tile(X, (2, 1)), np.tile(Y, 2), C=60.0)
        begun = DualStart(0.5 * np.tile(once, 2))
        assert partition(dual, begun.beta)[0].size > 100
        result = solve(dual, ActiveSet(slice_pivots=1), start=begun)
        assert result.status is Status.OPTIMAL
        free, _ = partition(dual, result.state.beta)
        assert np.unique(free % N).size == free.size

    @pytest.mark.parametrize("start", [DualStart(np.zeros(N + 1)), DualStart(np.full(N, np.nan))])
    def test_bad_starts(self, start):
        with pytest.raises(SoftmarginError, match="start from"):
            ActiveSet().init(problem(), start)


class TestStates:
    def test_a_discarded_step_leaves_the_old_state_valid(self):
        dual = problem(C=10.0)
        solver = ActiveSet(candidates=5, slice_pivots=4)
        state = solver.step(dual, solver.init(dual))
        kept = state.beta.copy(), state.f.copy()

        def abandon():
            raise Abandoned

        with dual.workers.checking(abandon), pytest.raises(Abandoned):
            solver.step(dual, state)
        np.testing.assert_array_equal(state.beta, kept[0])
        np.testing.assert_array_equal(state.f, kept[1])
        first, second = solver.step(dual, state), solver.step(dual, state)
        np.testing.assert_allclose(first.beta, second.beta, atol=1e-12)

    def test_the_value_never_falls_and_f_is_right(self):
        dual, K = problem(s=S, C=10.0), rbf_kernel(X, gamma=0.5)
        solver = ActiveSet(candidates=10, slice_pivots=3)
        state, last = solver.init(dual), 0.0
        for _ in range(60):
            state = solver.step(dual, state)
            value = float(dual.p @ state.beta - 0.5 * state.beta @ K @ state.beta)
            assert value >= last - 1e-9
            last = value
            np.testing.assert_allclose(state.f, K @ state.beta, atol=1e-9)
            assert abs(state.beta.sum()) <= 1e-9
            assert np.all((state.beta >= dual.lo) & (state.beta <= dual.hi))

    def test_pickled_in_the_middle(self):
        dual = problem(C=10.0)
        solver = ActiveSet(candidates=5, slice_pivots=4)
        state = solver.step(dual, solver.step(dual, solver.init(dual)))
        again = pickle.loads(pickle.dumps(state))
        assert len(pickle.dumps(state)) < 10 * N * 8
        np.testing.assert_allclose(solve(dual, start=again).state.beta, solve(dual, start=state).state.beta, atol=1e-8)


class TestMemory:
    @pytest.mark.parametrize("capacity", [2, 10, 40])
    def test_a_small_cache_changes_nothing(self, capacity):
        small, large = problem(C=10.0, capacity=capacity), problem(C=10.0)
        found, wanted = solve(small, ActiveSet(candidates=20)), solve(large, ActiveSet(candidates=20))
        assert found.status is Status.OPTIMAL
        np.testing.assert_allclose(found.state.beta, wanted.state.beta, atol=1e-6)
        assert found.counts["kernel_evaluations"] > wanted.counts["kernel_evaluations"]

    def test_too_many_free_variables_are_refused_before_anything_is_allocated(self):
        dual = problem(C=10.0)
        solver = ActiveSet(max_bytes=1000.0, equations="factor")
        assert "max_bytes" in solver.excess(dual, solver.init(dual))
        with pytest.raises(SoftmarginError, match="free variables"):
            solver.step(dual, solver.init(dual))
        assert dual.K.n_evaluations == 0
        assert ActiveSet().excess(dual, solver.init(dual)) is None


class TestCounts:
    def test_counts(self):
        counts = solve(problem(C=10.0), ActiveSet(candidates=20)).counts
        assert counts["majors"] >= 2
        assert counts["iterations"] > counts["majors"]
        assert counts["refactorisations"] >= 1
        assert set(counts) == set(DualState(np.zeros(1), np.zeros(1)).counts())

    def test_sprint_prices_all_rows_less_often(self):
        counts = {pricing: solve(problem(C=10.0), ActiveSet(pricing, candidates=20)).counts for pricing in PRICINGS}
        assert 3 * counts["sprint"]["majors"] < counts["full"]["majors"]


def test_an_indefinite_matrix_is_found_during_the_solve():
    matrix = np.eye(6) - 0.9
    data = np.arange(6.0)[:, None]
    inner = Inner(6, sigma=1.0)
    inner.size = 6
    inner.matrix[:] = matrix - 1.0
    inner.index[:] = data[:, 0]
    with pytest.raises(SoftmarginError, match="not positive semi-definite"):
        inner.refactorise()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"pricing": "best"}, "pricing"),
        ({"start": "warm"}, "start"),
        ({"candidates": 1}, "candidates"),
        ({"tol": 0.0}, "tol"),
        ({"max_bytes": 0.0}, "max_bytes"),
        ({"slice_pivots": 0}, "slice_pivots"),
    ],
)
def test_options(options, name):
    with pytest.raises(SoftmarginError, match=name):
        ActiveSet(**options)
    assert replace(ActiveSet(), candidates=5).candidates == 5
