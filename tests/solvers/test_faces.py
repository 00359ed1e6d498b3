"""The active set by conjugate gradients: the sets that the factor finds, copies, low rank, limits, counts."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from softmargin import SVC, SVR, OneClassSVM
from softmargin.core.errors import Abandoned, SoftmarginError
from softmargin.core.result import DualStart
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.kernels.cached import CachedRows
from softmargin.kernels.functions import RBF, Linear
from softmargin.kernels.matrix import DirectRows
from softmargin.linalg.packed import NEAREST, Packed, packed_bytes
from softmargin.problems.box_qp import BoxQP
from softmargin.problems.kernel_certificate import KernelJudge
from softmargin.problems.row_loss import RowLoss
from softmargin.solvers.active_set import active_set
from softmargin.solvers.active_set.active_set import ActiveSet
from softmargin.solvers.base import run
from softmargin.solvers.smo.block import BlockSMO
from softmargin.solvers.staged import Staged

RNG = np.random.default_rng(5)
N = 150
X = RNG.standard_normal((N, 3))
Y = np.where(X[:, 0] * X[:, 1] + 0.5 * RNG.standard_normal(N) > 0, 1.0, -1.0)
S = RNG.uniform(0.2, 2.0, N)
CG, FACTOR = (ActiveSet(start="cold", equations=equations) for equations in ("cg", "factor"))


def problem(data=X, y=Y, C=3.0, kernel=None, loss=None, capacity=None):
    workers = Workers(1)
    source = DirectRows(as_rows(data), kernel or RBF(0.5), np.float64, workers)
    store = CachedRows(source, (capacity or len(data)) * len(data) * 8, workers)
    return BoxQP(store, loss or RowLoss.classification(y, C), workers)


def solve(dual, solver=CG, tol=1e-8, **options):
    return run(solver, dual, Stop(tol=tol, max_iter=20_000), KernelJudge(dual.K, dual.loss), **options)


def partition(dual, beta):
    free = dual.is_free(beta)
    return np.flatnonzero(free), np.flatnonzero(~free & (beta != 0))


def assert_same_sets(dual, one, other):
    for found, wanted in zip(*(partition(dual, result.state.beta) for result in (one, other)), strict=True):
        np.testing.assert_array_equal(found, wanted)


class TestSets:
    @pytest.mark.parametrize("kernel", [RBF(0.5), Linear()])
    @pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
    def test_those_of_the_factor(self, C, kernel):
        dual = problem(y=S * Y, C=C, kernel=kernel)
        result = solve(dual, tol=1e-6)
        assert result.status is Status.OPTIMAL
        assert result.certificate.kkt_violation <= 1e-6
        assert result.counts["products"] > 0 == result.counts["refactorisations"]
        assert_same_sets(dual, result, solve(dual, FACTOR, tol=1e-6))

    @pytest.mark.parametrize(
        "loss",
        [
            RowLoss.regression(X[:, 0] + np.sin(X[:, 1]), S, 5.0, 0.1),
            RowLoss.regression(np.round(X[:, 0]), S, 0.5, 0.0),
            RowLoss.one_class(S, 0.3),
        ],
        ids=["tube", "no tube", "one class"],
    )
    def test_of_regression_and_one_class(self, loss):
        dual = problem(loss=loss)
        result = solve(dual)
        assert result.status is Status.OPTIMAL
        assert_same_sets(dual, result, solve(dual, FACTOR))

    @pytest.mark.parametrize("beta", [5.0 * RNG.standard_normal(N), np.full(N, 1e9), S * Y])
    def test_from_any_start(self, beta):
        dual = problem()
        result = solve(dual, start=DualStart(beta))
        assert result.status is Status.OPTIMAL
        np.testing.assert_allclose(result.state.beta, solve(dual, FACTOR).state.beta, atol=1e-6)

    @pytest.mark.parametrize("labels", [(1, 1, 1), (1, -1), (1, 1, -1)])
    def test_of_copies_at_most_one_is_free(self, labels):
        data, y = np.tile(X[:40], (len(labels), 1)), np.concatenate([sign * Y[:40] for sign in labels])
        dual = problem(data, y, C=2.0)
        begun = run(BlockSMO(), dual, Stop(tol=1e-3), KernelJudge(dual.K, dual.loss))
        for start in (None, begun.state):
            result = solve(dual, start=start)
            assert result.status is Status.OPTIMAL
            free, _ = partition(dual, result.state.beta)
            assert np.unique(free % 40).size == free.size
            assert abs(result.state.beta.sum()) < 1e-9

    def test_a_zero_matrix(self):
        dual = problem(np.zeros((6, 2)), np.array([1.0, 1.0, -1.0, -1.0, 1.0, -1.0]), kernel=Linear())
        assert solve(dual).status is Status.OPTIMAL


@pytest.mark.parametrize("broken", [lambda r: -r, lambda r: np.full_like(r, np.nan)])
def test_a_preconditioner_of_nothing_but_rounding_is_left_out(broken, monkeypatch):
    dual = problem(C=1.0)
    wanted = solve(dual, FACTOR)
    monkeypatch.setattr(Packed, "precondition", lambda packed, r: broken(r))
    result = solve(dual)
    assert result.status is Status.OPTIMAL
    assert_same_sets(dual, result, wanted)


class TestStates:
    def test_a_discarded_step_leaves_the_old_state_valid(self):
        dual = problem(C=10.0)
        state = CG.step(dual, CG.step(dual, CG.init(dual)))
        kept = state.beta.copy(), state.f.copy()

        def abandon():
            raise Abandoned

        with dual.workers.checking(abandon), pytest.raises(Abandoned):
            CG.step(dual, state)
        np.testing.assert_array_equal(state.beta, kept[0])
        np.testing.assert_array_equal(state.f, kept[1])
        assert solve(dual, start=state).status is Status.OPTIMAL

    def test_the_value_never_falls_and_f_is_right(self):
        dual = problem(C=10.0)
        state, last = CG.init(dual), 0.0
        while not CG.measure(dual, state).settled:
            state = CG.step(dual, state)
            np.testing.assert_allclose(state.f, dual.K.product(state.beta), atol=1e-9)
            assert dual.dual(state.beta, state.f) >= last - 1e-9
            last = dual.dual(state.beta, state.f)
        assert len(pickle.dumps(state)) < 10 * N * 8
        assert pickle.loads(pickle.dumps(state)).scratch.faces is None

    def test_a_small_cache_changes_nothing(self):
        small, large = solve(problem(capacity=5)), solve(problem())
        np.testing.assert_allclose(small.state.beta, large.state.beta, atol=1e-6)


class TestChoice:
    def test_auto_takes_conjugate_gradients_where_the_factor_has_no_room(self):
        dual = problem(C=100.0)
        n_free = partition(dual, solve(dual, FACTOR).state.beta)[0].size
        auto = ActiveSet(candidates=100, max_bytes=2.0 * packed_bytes(n_free))
        assert auto.excess(dual, auto.init(dual)) is None
        result = solve(dual, auto)
        assert result.status is Status.OPTIMAL
        assert result.counts["products"] > 0
        assert_same_sets(dual, result, solve(dual, FACTOR))

    def test_auto_takes_them_where_many_are_free(self, monkeypatch):
        dual = problem(C=100.0)
        assert solve(dual, ActiveSet()).counts["products"] == 0
        monkeypatch.setattr(active_set, "_MANY", 20)
        result = solve(dual, ActiveSet(candidates=10, slice_pivots=10))
        assert result.counts["products"] > 0
        assert_same_sets(dual, result, solve(dual, FACTOR))

    def test_variables_that_interior_points_leave_free_are_for_the_factor(self, monkeypatch):
        """Of many that depend on others few are members of it."""
        monkeypatch.setattr(active_set, "_MANY", 20)
        model = SVC(kernel="linear", solver=ActiveSet(start="ipm", rank=3, max_bytes=1e9), tol=1e-6)
        assert model.fit(X, Y).status_ is Status.OPTIMAL
        assert model.counts_["products"] == 0

    def test_the_factor_goes_on_where_conjugate_gradients_get_no_further(self, monkeypatch):
        def gets_no_further(faces, dual, beta, f, check):
            faces.idle += 1
            return beta, f

        dual = problem(C=100.0)
        best = solve(dual, FACTOR)
        monkeypatch.setattr(active_set, "_MANY", 20)
        monkeypatch.setattr(active_set.Faces, "step", gets_no_further)
        auto = ActiveSet(candidates=10, slice_pivots=10)
        result = solve(dual, auto)
        assert result.status is Status.OPTIMAL
        assert result.counts["majors"] > active_set._IDLE_STEPS
        assert_same_sets(dual, result, best)
        assert solve(dual, replace(auto, equations="cg")).status is Status.STALLED

    def test_too_little_room_for_the_matrix_is_said(self):
        dual = problem(C=100.0)
        small = replace(CG, max_bytes=packed_bytes(12))
        with pytest.raises(SoftmarginError, match=r"free variables: their kernel matrix needs .* \(max_bytes\)"):
            solve(dual, small)
        result = solve(dual, Staged(small, BlockSMO(), "active"), tol=1e-5)
        assert result.status is Status.OPTIMAL
        assert "free variables" in result.state.handed_over

    def test_unknown_equations(self):
        with pytest.raises(SoftmarginError, match="equations"):
            ActiveSet(equations="lu")

    @pytest.mark.parametrize("estimator", [SVC(10.0), SVR(10.0), OneClassSVM(0.3)], ids=lambda e: type(e).__name__)
    def test_from_the_estimators(self, estimator):
        target = X[:, 0] if isinstance(estimator, SVR) else Y
        models = [estimator.__class__(**estimator.get_params()).set_params(solver=solver) for solver in (CG, FACTOR)]
        one, other = (model.fit(X, target) for model in models)
        assert one.status_ is Status.OPTIMAL
        assert one.counts_["products"] > 0
        np.testing.assert_array_equal(one.n_free_, other.n_free_)
        np.testing.assert_array_equal(one.n_bounded_, other.n_bounded_)

    def test_learning_on_keeps_the_factor(self):
        model = SVC(10.0, solver=CG).fit(X[:100], Y[:100]).partial_fit(X[100:], Y[100:])
        whole = SVC(10.0, gamma=model.gamma_, solver=FACTOR).fit(X, Y)
        np.testing.assert_array_equal(model.n_free_, whole.n_free_)
        assert model.leave_one_out().shape == (N,)


class TestPacked:
    def test_against_a_dense_matrix(self):
        rows = RNG.standard_normal((120, 2))
        K = np.exp(-((rows[:, None] - rows[None]) ** 2).sum(axis=2))
        packed, members = Packed(), []
        for turn in range(6):
            for k in RNG.permutation(np.setdiff1d(np.arange(120), members))[:40].tolist():
                packed.append(k, K[[*members, k], k])
                members.append(k)
            r = RNG.standard_normal(len(members))
            A = K[np.ix_(members, members)]
            np.testing.assert_allclose(packed.product(r), A @ r, atol=1e-12)
            again = Packed()
            for place, k in enumerate(members):
                again.append(k, A[: place + 1, place])
            np.testing.assert_allclose(packed.precondition(r), again.precondition(r), rtol=1e-6)
            kept = RNG.random(len(members)) < (0.5 if turn % 2 else 0.9)
            packed.keep(kept)
            members = [k for k, stays in zip(members, kept.tolist(), strict=True) if stays]
            np.testing.assert_array_equal(packed.members, members)

    def test_the_preconditioner_is_the_inverse_of_few_rows(self):
        B = RNG.standard_normal((NEAREST, NEAREST))
        A = B @ B.T + np.eye(NEAREST)
        packed = Packed()
        for k in range(NEAREST):
            packed.append(k, A[: k + 1, k])
        r = RNG.standard_normal(NEAREST)
        np.testing.assert_allclose(packed.precondition(r), np.linalg.solve(A, r), atol=1e-9)
