"""Every solver of the box QP solves regression and one class to a proven optimum, which is that of scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVR, OneClassSVM

from softmargin.core.result import DualStart
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.kernels.cached import CachedRows
from softmargin.kernels.functions import RBF, Linear
from softmargin.kernels.growing import GrowingMatrix, GrowingStore
from softmargin.kernels.matrix import DirectRows
from softmargin.problems.box_qp import BoxQP
from softmargin.problems.growing_judge import GrowingJudge
from softmargin.problems.kernel_certificate import KernelJudge
from softmargin.problems.row_loss import RowLoss
from softmargin.solvers.active_set import changing_rows
from softmargin.solvers.active_set.active_set import ActiveSet
from softmargin.solvers.base import run
from softmargin.solvers.cutting_plane.kernel_ocas import KernelOCAS
from softmargin.solvers.dual_state import DualState
from softmargin.solvers.interior.ipm import IPM, low_rank_start
from softmargin.solvers.smo.block import BlockSMO
from softmargin.solvers.smo.shrink import part_of
from softmargin.solvers.smo.smo import RULES, SMO
from softmargin.solvers.staged import Staged

RNG = np.random.default_rng(7)
N = 150
X = RNG.standard_normal((N, 4)) + 1.0
Y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * RNG.standard_normal(N)
S = RNG.uniform(0.3, 2.0, N)
TOL = 1e-6
WIDE = RBF(0.2)

LOSSES = {
    "regression": RowLoss.regression(Y, S, 1.0, 0.1),
    "large C": RowLoss.regression(Y, S, 30.0, 0.5),
    "no epsilon": RowLoss.regression(Y, S, 0.5, 0.0),
    "large epsilon": RowLoss.regression(Y, S, 1.0, 100.0),
    "one class": RowLoss.one_class(S, 0.1),
    "half": RowLoss.one_class(S, 0.5),
    "all": RowLoss.one_class(S, 1.0),
}
SOLVERS = {
    "block": BlockSMO(),
    "small blocks": BlockSMO(size=32),
    **{rule: SMO(rule=rule, tol=TOL) for rule in RULES},
    "cold": ActiveSet(start="cold"),
    "full": ActiveSet(start="cold", pricing="full"),
    "shrinking": ActiveSet(start="cold", pricing="shrinking"),
    "ocas": KernelOCAS(),
    "conjugate gradients": ActiveSet(equations="cg"),
    "staged": Staged(ActiveSet(), BlockSMO(), "begin"),
    "low rank": Staged(ActiveSet(), BlockSMO(), "low rank", lambda problem: low_rank_start(problem, 20)),
}


def problem(loss, kernel=WIDE, cache=1.0, dtype=np.float64, rows=X):
    workers, n = Workers(1), len(rows)
    source = DirectRows(as_rows(rows), kernel, dtype, workers)
    return BoxQP(CachedRows(source, max(2, int(cache * n)) * n * source.dtype.itemsize, workers), loss, workers)


def solved(qp, solver, tol=TOL, **options):
    return run(solver, qp, Stop(tol=tol, max_seconds=60), KernelJudge.of(qp, tol), **options)


def matrix(kernel, rows=X):
    return DirectRows(as_rows(rows), kernel).rows(np.arange(len(rows)))


def rival(kernel, loss):
    """Primal and dual value of scikit-learn's solution."""
    K = matrix(kernel)
    if loss.nu:
        model = OneClassSVM(kernel="precomputed", nu=loss.nu, tol=1e-9).fit(K, sample_weight=loss.over)
    else:
        model = SVR(kernel="precomputed", C=loss.C, epsilon=loss.epsilon, tol=1e-9).fit(K, Y, sample_weight=loss.over)
    beta, b = np.zeros(N), float(model.intercept_[0])
    beta[model.support_] = model.dual_coef_[0]
    qp = problem(loss, kernel)
    return qp.primal(beta, K @ beta, b), qp.dual(beta, K @ beta)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("kind", LOSSES)
def test_the_optimum_is_proven_and_that_of_scikit_learn(kind, name):
    loss = LOSSES[kind]
    qp = problem(loss)
    result = solved(qp, SOLVERS[name])
    assert result.status is Status.OPTIMAL
    if kind != "all":  # which scikit-learn refuses
        primal, dual = rival(RBF(0.2), loss)
        assert result.certificate.primal == pytest.approx(primal, rel=1e-5, abs=1e-9)
        assert result.certificate.dual == pytest.approx(dual, rel=1e-5, abs=1e-9)
    beta = loss.signed(result.solution.alpha)
    assert ((beta >= loss.lo) & (beta <= loss.hi)).all()
    assert beta.sum() == pytest.approx(loss.total, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("kind", LOSSES)
def test_interior_points(kind):
    loss = LOSSES[kind]
    result = solved(problem(loss, Linear()), IPM())
    assert result.status is Status.OPTIMAL
    if kind != "all":
        primal, dual = rival(Linear(), loss)
        assert result.certificate.primal <= primal + 1e-5 * abs(primal) + 1e-9
        assert result.certificate.dual >= dual - 1e-5 * abs(dual) - 1e-9


@pytest.mark.parametrize("kind", ["regression", "large C", "half"])
@pytest.mark.parametrize("name", ["small blocks", "second_order", "hybrid_maximum_gain", "cold"])
def test_a_small_cache(kind, name):
    whole, small = (solved(problem(LOSSES[kind], cache=cache), SOLVERS[name]) for cache in (1.0, 0.1))
    assert small.status is Status.OPTIMAL
    assert small.certificate.primal == pytest.approx(whole.certificate.primal, rel=1e-5)


def test_a_row_of_regression_is_computed_once():
    """Each row has one variable and one kernel row, of the length of the data."""
    for name in ("block", "small blocks", "second_order"):
        qp = problem(LOSSES["large C"])
        result = solved(qp, SOLVERS[name], 1e-3)
        assert qp.K.slab.shape == (N, N)
        assert result.counts["kernel_evaluations"] <= N * N


def test_shrinking_sets_aside_rows_inside_the_tube():
    n = 1500
    rows = RNG.standard_normal((n, 2))
    y = rows[:, 0] * rows[:, 1] + 0.05 * RNG.standard_normal(n)
    qp = problem(RowLoss.regression(y, np.ones(n), 10.0, 0.1), RBF(0.5), rows=rows)
    solver, fewest = SMO(tol=1e-5), n
    state = solver.init(qp)
    while qp.measure(state.beta, state.f).kkt > 1e-4:
        state = solver.step(qp, state)
        part = part_of(state)
        fewest = min(fewest, n if part is None else part.active.size)
    assert fewest < 0.8 * n
    np.testing.assert_allclose(state.f, qp.K.product(state.beta), rtol=0, atol=1e-9)


def test_float32_rows():
    n = 1200
    rows = RNG.standard_normal((n, 3))
    y = rows[:, 0] + 0.2 * RNG.standard_normal(n)
    for loss in (RowLoss.regression(y, np.ones(n), 1.0, 0.1), RowLoss.one_class(np.ones(n), 0.2)):
        for solver in (BlockSMO(), SMO()):
            assert solved(problem(loss, dtype=np.float32, rows=rows), solver, 1e-3).status is Status.OPTIMAL


@pytest.mark.parametrize("kind", ["regression", "half"])
@pytest.mark.parametrize("name", ["block", "second_order", "cold"])
def test_given_variables_are_made_feasible(kind, name):
    qp = problem(LOSSES[kind])
    state = SOLVERS[name].init(qp, DualStart(RNG.standard_normal(N)))
    assert ((state.beta >= qp.lo) & (state.beta <= qp.hi)).all()
    assert state.beta.sum() == pytest.approx(qp.total, abs=1e-9)
    for start in (np.zeros(N), qp.lo, qp.hi):
        result = solved(problem(LOSSES[kind]), SOLVERS[name], start=DualStart(start))
        assert result.status is Status.OPTIMAL


def test_an_optimum_is_its_own_start():
    for kind in ("regression", "half"):
        done = solved(problem(LOSSES[kind]), BlockSMO())
        qp = problem(LOSSES[kind])
        again = solved(qp, BlockSMO(), start=DualStart(qp.loss.signed(done.solution.alpha)))
        assert again.counts["iterations"] == 0


def test_one_class_starts_where_it_may():
    qp = problem(LOSSES["half"])
    beta, f = qp.start
    assert ((beta >= 0.0) & (beta <= qp.hi)).all()
    assert beta.sum() == pytest.approx(qp.total, rel=1e-12)
    np.testing.assert_allclose(f, matrix(RBF(0.2)) @ beta, rtol=1e-12)
    assert np.count_nonzero((beta > 0.0) & (beta < qp.hi)) <= 1
    assert qp.scale == pytest.approx(1e6 * 0.5 * float(beta @ f))
    state = BlockSMO().init(qp)
    assert state.kernel_evaluations == qp.K.n_evaluations
    np.testing.assert_array_equal(state.beta, beta)


def test_the_scale_of_regression_is_what_the_best_constant_loses_without_a_tube():
    """A deviation within the tube counts as epsilon, so that the scale is not zero where all numbers fit into it."""
    constants = np.linspace(Y.min() - 1.0, Y.max() + 1.0, 4001)
    for loss in (LOSSES["regression"], LOSSES["no epsilon"]):
        values = [loss.C * (S * np.maximum(np.abs(Y - b), loss.epsilon)).sum() for b in constants]
        assert problem(loss).scale == pytest.approx(min(values), rel=1e-2 if loss.epsilon else 1e-4)


@pytest.mark.parametrize(("y", "epsilon", "scale"), [(Y, 1e3, 1e3), (0.0 * Y + 3.0, 0.0, 3.0), (0.0 * Y, 0.0, 1.0)])
def test_no_scale_of_regression_is_zero(y, epsilon, scale):
    loss = RowLoss.regression(y, S, 2.0, epsilon)
    assert problem(loss).scale == pytest.approx(2.0 * S.sum() * scale)


@pytest.mark.parametrize("target", [0.0, 0.3, 1e9])
def test_targets_that_a_constant_fits(target):
    for epsilon in (0.0, 0.1):
        qp = problem(RowLoss.regression(np.full(N, target), S, 1.0, epsilon))
        assert qp.scale > 0.0
        for solver in (BlockSMO(), SMO(), ActiveSet(start="cold"), IPM(max_rank=N), KernelOCAS()):
            assert solved(qp, solver, 1e-3).status is Status.OPTIMAL


@pytest.mark.parametrize("unit", [1e-8, 1e6])
@pytest.mark.parametrize("name", ["block", "second_order", "cold", "staged"])
def test_the_unit_of_the_targets_does_not_matter(unit, name):
    loss, scaled = RowLoss.regression(Y, S, 1.0, 0.1), RowLoss.regression(unit * Y, S, unit, unit * 0.1)
    one, other = (solved(problem(each), SOLVERS[name]) for each in (loss, scaled))
    assert other.status is Status.OPTIMAL
    assert other.certificate.primal == pytest.approx(unit**2 * one.certificate.primal, rel=1e-5)
    assert other.counts["iterations"] <= 1.5 * one.counts["iterations"] + 10


def test_where_the_origin_lies_inside_the_optimum_is_zero():
    """Then a gap relative to the optimum would never close; it is relative to a share of the objective at the start."""
    loss = RowLoss.one_class(np.ones(N), 0.5)
    rows = X - X.mean(axis=0)
    for solver in (BlockSMO(), SMO(), ActiveSet(start="cold"), IPM(), KernelOCAS()):
        result = solved(problem(loss, Linear(), rows=rows), solver, 1e-3)
        assert result.status is Status.OPTIMAL
        assert abs(result.certificate.primal) <= 1e-3 * abs(problem(loss, Linear(), rows=rows).scale) * 1e-12


class TestRowsComeAndGo:
    def test_rows_of_regression_are_added(self):
        """In the order of the data, a few at a time; each optimum is that of a solve from the beginning."""
        matrix = GrowingMatrix(as_rows(X[:100]), WIDE, Workers(1))
        store = GrowingStore(matrix, lambda n: 8.0 * n * n, Workers(1))
        judge, state, work = GrowingJudge(), None, None
        for n in range(100, N + 1, 10):
            qp = BoxQP(store, RowLoss.regression(Y[:n], S[:n], 3.0, 0.1), Workers(1))
            if state is None:
                state = self.settled(qp)
            else:
                matrix.side.append(as_rows(X[n - 10 : n]))
                store.extend()
                beta = np.append(state.beta, np.zeros(10))
                f = np.append(state.f, store.outputs(beta, np.arange(n - 10, n)))
                changing_rows.extend(work, qp, beta, f)
                state = self.settled(qp, changing_rows.with_working(DualState(beta, f), work))
            work = state.scratch.work
            self.check(qp, state)
            certificate = judge(KernelJudge.of(qp, TOL), qp.solution(state.beta, state.f))
            plain = solved(problem(qp.loss, rows=X[:n]), BlockSMO())
            assert certificate.primal == pytest.approx(plain.certificate.primal, rel=1e-5)
            assert certificate.relative_gap <= 1e-5

    def settled(self, qp, state=None):
        solver = ActiveSet(start="cold")
        state = solver.init(qp) if state is None else state
        while not state.scratch.settled:
            state = solver.step(qp, state)
        return state

    def check(self, qp, state):
        measure = qp.measure(state.beta, state.f)
        assert measure.kkt <= 1e-5
        assert measure.gap <= 1e-5 * measure.primal
        np.testing.assert_allclose(state.f, qp.K.product(state.beta), rtol=0, atol=1e-8)

    @pytest.mark.parametrize("C", [0.3, 10.0])
    def test_rows_of_regression_are_retired(self, C):
        qp = problem(RowLoss.regression(Y, S, C, 0.1))
        state = self.settled(qp)
        for _ in range(10):
            gone = RNG.choice(np.flatnonzero(state.beta), 5, replace=False)
            weights = S.copy()
            weights[gone] = 0.0
            reduced = replace(qp, loss=RowLoss.regression(Y, weights, C, 0.1))
            work = state.scratch.work
            saved = changing_rows.Saved(work)
            work.begin(reduced, state.beta, state.f)
            changing_rows.retire(work, reduced, gone)
            assert not work.beta[gone].any()
            after = self.settled(reduced, changing_rows.with_working(DualState(work.beta, work.f), work))
            self.check(reduced, after)
            saved.restore()
            saved.close()
            work.begin(qp, state.beta, state.f)
            state = self.settled(qp, changing_rows.with_working(state, work))
            self.check(qp, state)


def test_handing_over_is_said_in_the_state():
    qp = problem(LOSSES["large C"])
    result = solved(qp, Staged(ActiveSet(candidates=2, max_bytes=2000.0, equations="factor"), BlockSMO(), "active"))
    assert result.status is Status.OPTIMAL
    assert "free variables" in result.state.handed_over
    assert solved(problem(LOSSES["large C"]), Staged(ActiveSet(), BlockSMO(), "begin")).state.handed_over == ""
