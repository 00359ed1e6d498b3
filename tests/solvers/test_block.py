"""SMO on blocks: the dual never falls, f stays K beta, states are values, and blocks are what they say."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC as LibSVM

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import DualStart
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.kernels.cached import CachedRows, WholeMatrix
from softmargin.kernels.functions import RBF
from softmargin.kernels.matrix import DirectRows
from softmargin.problems.box_qp import BoxQP
from softmargin.problems.kernel_certificate import KernelJudge
from softmargin.problems.row_loss import RowLoss
from softmargin.solvers.base import run
from softmargin.solvers.smo import _block
from softmargin.solvers.smo.block import BlockMatrix, BlockSMO
from softmargin.solvers.smo.smo import SMO

RNG = np.random.default_rng(7)
N = 160
X = RNG.standard_normal((N, 3))
Y = np.where(X[:, 0] * X[:, 1] + 0.5 * RNG.standard_normal(N) > 0, 1.0, -1.0)
S = RNG.uniform(0.2, 2.0, N)
K = rbf_kernel(X, gamma=0.5)


def problem(C=3.0, dtype=np.float64, capacity=N, n_threads=1, y=Y):
    workers = Workers(n_threads)
    source = DirectRows(as_rows(X), RBF(0.5), dtype, workers)
    return BoxQP(
        CachedRows(source, capacity * N * np.dtype(dtype).itemsize, workers), RowLoss.classification(S * y, C), workers
    )


def judge(dual):
    return KernelJudge(dual.K, dual.loss)


def solve(dual, solver, tol=1e-6, **options):
    return run(solver, dual, Stop(tol=tol, max_iter=2000), judge(dual), **options)


def dual_value(beta):
    return float(Y @ beta - 0.5 * beta @ (K @ beta))


def optimum(C):
    model = LibSVM(C=C, kernel="precomputed", tol=1e-9).fit(K, Y, sample_weight=S)
    beta = np.zeros(N)
    beta[model.support_] = model.dual_coef_[0]
    return dual_value(beta)


def steps(solver, dual, n):
    states = [solver.init(dual)]
    for _ in range(n):
        states.append(solver.step(dual, states[-1]))
    return states


@pytest.mark.parametrize(
    ("size", "C"), [(4, 1e-3), (64, 1e-3), (2, 3.0), (8, 3.0), (64, 3.0), (1024, 3.0), (64, 1e3), (1024, 1e3)]
)
def test_every_size_finds_the_optimum(size, C):
    result = run(BlockSMO(size=size), problem(C), Stop(tol=1e-6, max_iter=30_000), judge(problem(C)))
    assert result.status is Status.OPTIMAL
    assert result.certificate.relative_gap <= 1e-6
    assert result.certificate.dual == pytest.approx(optimum(C), rel=2e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [4, 32, 70])
def test_steps(size, dtype):
    dual = problem(dtype=dtype)
    precision = 1e-6 if dtype == np.float32 else 1e-12
    values, before = [0.0], None
    for state in steps(BlockSMO(size=size), dual, 25):
        assert np.all((dual.lo <= state.beta) & (state.beta <= dual.hi))
        assert abs(state.beta.sum()) <= 1e-12 * max(1.0, np.abs(state.beta).sum())
        np.testing.assert_allclose(state.f, K @ state.beta, rtol=0, atol=precision * (1 + np.abs(state.beta).sum()))
        values.append(dual_value(state.beta))
        assert values[-1] >= values[-2] - precision * abs(values[-2])
        if before is not None:
            assert np.count_nonzero(state.beta != before.beta) <= size
            assert state.iterations == before.iterations + 1
            assert state.pair_steps >= before.pair_steps
        before = state
    assert values[-1] > values[3] > 0
    assert (before.kernel_evaluations, before.misses) == (dual.K.n_evaluations, dual.K.misses)
    assert before.kernel_evaluations == before.misses * N


@pytest.mark.parametrize("size", [16, 100])
def test_states_are_values(size):
    """Any old state can be stepped again, whatever happened since, and nothing changes under it."""
    dual, solver = problem(), BlockSMO(size=size)
    states = steps(solver, dual, 12)
    kept = [(state.beta.copy(), state.f.copy()) for state in states]
    for k in (7, 2, 0, 10, 3, 3):
        again = states[k]
        for j in range(k, min(k + 3, 12)):
            again = solver.step(dual, again)
            np.testing.assert_array_equal(again.beta, states[j + 1].beta)
            np.testing.assert_array_equal(again.f, states[j + 1].f)
    for state, (beta, f) in zip(states, kept, strict=True):
        np.testing.assert_array_equal(state.beta, beta)
        np.testing.assert_array_equal(state.f, f)


@pytest.mark.parametrize("size", [16, 100])
def test_resumption_is_exact(size):
    solver = BlockSMO(size=size)
    whole = solve(problem(), solver)
    dual = problem()
    part = run(solver, dual, Stop(tol=1e-6, max_iter=3), judge(dual))
    assert part.status is Status.MAX_ITER
    for state in (part.state, pickle.loads(pickle.dumps(part.state))):
        rest = solve(dual, solver, start=state)
        np.testing.assert_array_equal(rest.solution.alpha, whole.solution.alpha)
        assert rest.counts["iterations"] == whole.counts["iterations"]
        assert rest.trace["dual"].tolist() == whole.trace["dual"][3:].tolist()


def test_resumption_with_an_empty_cache():
    """Rows come in other groups from the product, so that their last bits may differ, and no more."""
    solver = BlockSMO(size=100)
    whole = solve(problem(), solver)
    part = run(solver, problem(), Stop(tol=1e-6, max_iter=3), judge(problem()))
    rest = solve(problem(), solver, start=part.state)
    np.testing.assert_allclose(rest.solution.alpha, whole.solution.alpha, rtol=1e-6)
    np.testing.assert_allclose(rest.trace["dual"], whole.trace["dual"][3:], rtol=1e-9)


def test_without_its_scratch_a_state_goes_on_to_the_same_optimum():
    """As after a model file, or from another solver: the members of the last block are forgotten, the point is not."""
    solver = BlockSMO(size=16)
    state = replace(steps(solver, problem(), 5)[-1], scratch=None)
    result = solve(problem(), solver, start=state)
    assert result.status is Status.OPTIMAL
    assert result.trace[0].dual == pytest.approx(dual_value(state.beta))
    by_pairs = solve(problem(), SMO(shrinking=False), start=steps(solver, problem(), 5)[-1])
    back = solve(problem(), solver, start=by_pairs.state)
    assert by_pairs.status is back.status is Status.OPTIMAL


def test_from_given_variables():
    far = solve(problem(), BlockSMO(size=16), start=DualStart(10 * RNG.standard_normal(N)))
    assert far.status is Status.OPTIMAL
    done = solve(problem(), BlockSMO(size=16), tol=1e-9)
    near = solve(problem(), BlockSMO(size=16), start=DualStart(done.solution.alpha * Y))
    assert near.counts["iterations"] == 0


@pytest.mark.parametrize("capacity", [2, 5, 40])
def test_a_block_is_no_larger_than_the_cache(capacity):
    dual = problem(capacity=capacity)
    result = run(BlockSMO(), dual, Stop(tol=1e-4, max_iter=30_000), judge(dual))
    assert result.status is Status.OPTIMAL
    assert result.certificate.dual == pytest.approx(optimum(3.0), rel=2e-4)


@pytest.mark.parametrize("size", [16, 1024])
def test_threads_change_no_bit(size):
    found = [solve(problem(n_threads=n), BlockSMO(size=size)) for n in (1, 2, 3)]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].solution.alpha, other.solution.alpha)
        assert found[0].certificate == other.certificate
        assert found[0].counts == other.counts


def test_a_small_problem_takes_one_step():
    result = solve(problem(), BlockSMO(), tol=1e-8)
    assert result.counts["iterations"] == 1
    assert result.counts["kernel_evaluations"] == N * N
    assert (result.counts["hits"], result.counts["misses"]) == (0, N)


def test_rows_are_read_where_they_are():
    matrix = K.copy()
    matrix.flags.writeable = False
    dual = BoxQP(WholeMatrix(matrix, 1e6), RowLoss.classification(S * Y, 3.0), Workers(1))
    result = solve(dual, BlockSMO(size=16))
    assert result.status is Status.OPTIMAL
    assert result.counts["kernel_evaluations"] == 0


def test_members_stay_in_their_places():
    solver, dual = BlockSMO(size=20), problem()
    before = None
    for state in steps(solver, dual, 10)[1:]:
        members = state.scratch.members
        assert members.size == np.unique(members).size <= 20
        if before is not None and before.size == 20:
            assert np.count_nonzero(members != before) <= 10  # half may be exchanged
        before = members


def test_at_the_optimum_it_stalls():
    dual, solver = problem(), BlockSMO()
    state = solver.init(dual)
    for _ in range(50):
        state = solver.step(dual, state)
        if solver.is_stalled(state):
            break
    assert solver.is_stalled(state)
    assert dual_value(state.beta) == pytest.approx(optimum(3.0), rel=1e-9)
    assert run(solver, dual, Stop(tol=0.0), judge(dual)).status in (Status.STALLED, Status.UNCONFIRMED, Status.OPTIMAL)


@pytest.mark.parametrize("C", [1.0, 1e6])
def test_indefinite_kernels_end_at_a_stationary_point(C):
    matrix = np.tanh(0.5 * X @ X.T - 1.0)
    assert np.linalg.eigvalsh(matrix)[0] < -0.1
    dual = BoxQP(WholeMatrix(matrix, 1e6), RowLoss.classification(Y, C), Workers(1), is_convex=False)
    for size in (16, 1024):
        call = KernelJudge(dual.K, RowLoss.classification(Y, C), is_convex=False)
        result = run(BlockSMO(size=size, stopping="kkt"), dual, Stop(tol=1e-3, max_iter=20_000, rule="kkt"), call)
        assert result.status is Status.STATIONARY
        assert result.certificate.kkt_violation <= 1e-3
        assert np.isnan(result.certificate.dual)


def test_duplicates_and_zero_rows():
    """Pairs without curvature: the step ends at a bound."""
    rows = np.repeat(np.array([[0.0, 0.0], [1.0, 1.0]]), 6, axis=0)
    labels = np.tile([1.0, -1.0], 6)
    matrix = rows @ rows.T
    for size in (2, 4, 1024):
        dual = BoxQP(WholeMatrix(matrix, 1e6), RowLoss.classification(labels, 2.0), Workers(1))
        result = solve(dual, BlockSMO(size=size))
        assert result.status is Status.OPTIMAL
        assert result.certificate.primal == pytest.approx(24.0)  # w = 0, b = 0: twelve losses of one, times C


@pytest.mark.parametrize("size", [1e-100, 1e-189, 1e-200, 1.0, 1e100, 1e200])
def test_the_optimum_of_wishes_whose_squares_are_no_numbers(size):
    """The first variable wishes the most and cannot fall; it was its own partner once."""
    n = 5
    matrix = np.eye(n) + 0.1
    wish = size * np.array([3.0, 0.0, 1.0, -1.0, 2.0])
    lo, hi, beta = np.zeros(n), np.full(n, 9.0 * size), size * np.array([0.0, 1.0, 2.0, 3.0, 0.0])
    f = matrix @ beta
    p = wish + f
    steps = _block.solve(matrix, wish, beta, lo, hi, 0.0, 1e-6 * size, 10_000)
    assert 0 < steps < 10_000
    assert ((beta >= lo) & (beta <= hi)).all()
    np.testing.assert_allclose(beta.sum(), 6.0 * size)
    np.testing.assert_allclose(wish, p - matrix @ beta, atol=1e-9 * size)
    assert wish[beta < hi].max() - wish[beta > lo].min() <= 1e-6 * size


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_wishes_that_are_no_numbers_end(bad):
    """Nothing is written beside the arrays (`make test-bounds` would tell)."""
    matrix, wish, beta = np.eye(3), np.array([bad, 1.0, -1.0]), np.zeros(3)
    _block.solve(matrix, wish, beta, np.full(3, -1.0), np.ones(3), 0.0, 1e-6, 100)


@pytest.mark.parametrize("size", [1, 0, -3, float("nan")])
def test_a_block_of_one_cannot_move(size):
    with pytest.raises(SoftmarginError, match="must be at least 2: one variable alone cannot move"):
        BlockSMO(size=size)


@pytest.mark.parametrize("accuracy", [0.0, 1.0, -0.1, float("nan")])
def test_accuracy_is_a_share(accuracy):
    with pytest.raises(SoftmarginError, match=r"accuracy=.* must lie between 0 and 1"):
        BlockSMO(accuracy=accuracy)


def test_the_matrix_of_a_block_is_right_after_any_history():
    """Also where a small block, of an old state, comes after a large one whose places are partly the same."""
    dual = problem()
    scratch = BlockMatrix(6, np.float64)
    for members in ([0, 1, 2, 3], [0, 1, 2, 3, 4, 5], [9, 1, 2, 3, 4, 5], [0, 1, 2, 3], [0, 1, 2, 3, 4, 5], [7, 8]):
        index = np.array(members)
        matrix = scratch.fill(dual, index, dual.K.fetch(index))
        np.testing.assert_allclose(matrix, K[np.ix_(index, index)], rtol=1e-12)


@pytest.mark.parametrize("scale", [2.0**-40, 2.0**-400])
def test_the_unit_of_the_kernel_does_not_matter(scale):
    """C grows as kernel values shrink: the same problem, whose variables are larger."""
    found = []
    for factor in (1.0, scale):
        dual = BoxQP(WholeMatrix(factor * K, 1e6), RowLoss.classification(S * Y, 3.0 / factor), Workers(1))
        found.append(run(BlockSMO(size=32), dual, Stop(tol=1e-6, max_iter=500), judge(dual)))
    assert found[1].status is Status.OPTIMAL
    np.testing.assert_allclose(found[1].solution.alpha * scale, found[0].solution.alpha, rtol=1e-6, atol=1e-9)
    assert found[1].counts["pair_steps"] == found[0].counts["pair_steps"]


def test_cycling_at_rounding_ends():
    """Weights over seven decades: no gap of 1e-10 can be had in double precision, and steps never come to rest."""
    weights = np.where(Y > 0, 1e-4, 1e3)
    dual = BoxQP(WholeMatrix(K[:50, :50], 1e6), RowLoss.classification((weights * Y)[:50], 1.0), Workers(1))
    result = run(BlockSMO(), dual, Stop(tol=1e-14, max_iter=1000), judge(dual))
    assert result.status in (Status.OPTIMAL, Status.STALLED, Status.UNCONFIRMED)
