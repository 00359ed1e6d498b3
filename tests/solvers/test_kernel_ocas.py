"""OCAS with a kernel: the same iterations as OCAS on the data, from products with K alone."""

import signal
import threading
from dataclasses import replace

import numpy as np
import pytest

from softmargin import OCAS, SVC, ConvergenceWarning, KernelOCAS, LinearSVC, SoftmarginError, Status, certify, load
from softmargin.core.result import DualStart
from softmargin.core.stopping import Stop
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.kernels.cached import CachedRows
from softmargin.kernels.functions import RBF, Linear
from softmargin.kernels.matrix import DirectRows
from softmargin.problems.box_qp import BoxQP
from softmargin.problems.hinge import Hinge
from softmargin.problems.kernel_certificate import KernelJudge
from softmargin.problems.row_loss import RowLoss
from softmargin.solvers.base import run
from softmargin.solvers.dual_state import repaired

RNG = np.random.default_rng(5)
N = 120
X = RNG.standard_normal((N, 4))
Y = np.where(X[:, 0] * X[:, 1] + 0.5 * RNG.standard_normal(N) > 0.0, 1.0, -1.0)
S = RNG.uniform(0.5, 2.0, N)
NONLINEAR = RBF(0.3)
LOSSES = {
    "classes": RowLoss.classification(S * Y, 2.0),
    "numbers": RowLoss.regression(X[:, 0] + Y, S, 2.0, 0.1),
    "one class": RowLoss.one_class(S, 0.3),
}
kinds = pytest.mark.parametrize("kind", LOSSES)


def problem(loss, kernel=NONLINEAR):
    workers = Workers(1)
    return BoxQP(CachedRows(DirectRows(as_rows(X), kernel, np.float64, workers), 1e9, workers), loss, workers)


def solved(qp, tol=1e-6, start=None):
    return run(KernelOCAS(), qp, Stop(tol=tol), KernelJudge.of(qp, tol), start=start)


@pytest.mark.parametrize("kind", ["classes", "numbers"])  # one class does not begin at zero
@pytest.mark.parametrize("mixing", [0.1, 0.5, 1.0])
def test_the_planes_are_those_of_the_data(kind, mixing):
    """With a linear kernel every step has the primal and dual value of the step of OCAS on the rows themselves."""
    loss = LOSSES[kind]
    qp = problem(loss, Linear())
    target = qp.hinge.target
    plain = Hinge(as_rows(X), target, loss.C)
    by_kernel, by_data = KernelOCAS(mixing), OCAS(mixing)
    ours, state = by_kernel.init(qp), by_data.init(plain)
    for _ in range(12):
        ours, state = by_kernel.step(qp, ours), by_data.step(plain, state)
        planes = ours.scratch.planes
        assert planes.primal == pytest.approx(state.primal, rel=1e-9)
        assert planes.dual == pytest.approx(state.dual, rel=1e-9, abs=1e-9)


@kinds
def test_the_variables_are_feasible_and_f_is_theirs(kind):
    loss = LOSSES[kind]
    qp = problem(loss)
    solver = KernelOCAS()
    state = solver.init(qp)
    for _ in range(20):
        state = solver.step(qp, state)
        assert ((state.beta >= loss.lo) & (state.beta <= loss.hi)).all()
        assert state.beta.sum() == pytest.approx(loss.total, rel=1e-12, abs=1e-9)
        np.testing.assert_allclose(state.f, qp.K.product(state.beta), atol=1e-9)
        measure = solver.measure(qp, state)
        assert measure.dual <= measure.primal
        assert measure.dual == pytest.approx(qp.dual(state.beta, state.f), rel=1e-12)


@kinds
def test_a_plane_of_dual_variables_has_their_value_and_bounds_the_risk(kind):
    qp = problem(LOSSES[kind])
    beta = solved(qp, tol=1e-2).state.beta
    hinge, f = qp.hinge, qp.K.product(beta)
    plane = hinge.plane_of(beta)
    slope = hinge.slope(plane.c)
    value = hinge.C * plane.constant - 0.5 * hinge.C**2 * float(hinge.rows_of(plane.c, slope)[0] @ slope[:N])
    assert value == pytest.approx(qp.dual(beta, f), rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(
        hinge.rows_of(hinge.coefficients((plane.witness,), np.array([-hinge.C])), f)[0], beta, atol=1e-12
    )
    for size in (0.1, 1.0, 10.0):
        _, outputs = hinge.point(beta, size * RNG.standard_normal(N))
        assert hinge.risk(outputs) >= float(plane.c @ outputs) + plane.constant - 1e-9


@kinds
def test_a_start_from_dual_variables_keeps_their_bound(kind):
    qp = problem(LOSSES[kind])
    first = solved(qp)
    beta = LOSSES[kind].signed(first.solution.alpha)
    again = solved(qp, start=DualStart(beta))
    assert again.status is Status.OPTIMAL
    assert again.counts["iterations"] <= 1
    solver = KernelOCAS()
    state = solver.step(qp, solver.init(qp, DualStart(beta)))
    assert state.scratch.planes.dual >= first.certificate.dual - 1e-9 * abs(first.certificate.dual)


@pytest.mark.parametrize(("kind", "name"), [("classes", "C"), ("numbers", "C"), ("numbers", "epsilon")])
def test_planes_of_another_parameter_are_left_behind(kind, name):
    """They bound another risk. The variables stay feasible as C and epsilon grow, so they are taken as they are."""
    loss = LOSSES[kind]
    state = solved(problem(loss)).state
    qp = problem(replace(loss, **{name: 2.0 * getattr(loss, name)}))
    state = KernelOCAS().init(qp, replace(state, beta=repaired(state.beta, qp)))
    assert state.scratch is None
    assert solved(qp, start=state).status is Status.OPTIMAL


def test_planes_of_the_same_loss_are_kept():
    first = solved(problem(LOSSES["numbers"]), tol=1e-2).state
    state = replace(first, beta=repaired(first.beta, problem(LOSSES["numbers"])))
    qp = problem(replace(LOSSES["numbers"]))  # made anew
    assert KernelOCAS().init(qp, state).scratch.planes is first.scratch.planes


def test_a_step_is_one_product_with_k_of_the_rows_that_changed(monkeypatch):
    qp = problem(LOSSES["classes"])
    sizes = []
    plain = type(qp.K).product

    def counted(self, beta, *, keep=False):
        sizes.append(np.count_nonzero(beta))
        return plain(self, beta, keep=keep)

    monkeypatch.setattr(type(qp.K), "product", counted)
    solver = KernelOCAS()
    state = solver.init(qp)
    for _ in range(40):
        state = solver.step(qp, state)
    assert len(sizes) == 41  # the first is for the plane to begin with
    assert np.mean(sizes[10:]) < 0.3 * N
    assert qp.K.n_evaluations == N * N


class TestSVC:
    def fit(self, y=Y, **options):
        return SVC(10.0, gamma=0.3, **({"solver": "ocas", "tol": 1e-6} | options)).fit(X, y, S)

    def test_the_optimum_is_that_of_blocks(self):
        ours, block = self.fit(), self.fit(solver="block")
        assert ours.status_ is Status.OPTIMAL
        assert ours.certificate_.primal == pytest.approx(block.certificate_.primal, rel=2e-6)
        assert certify(ours, X, Y, S).relative_gap <= 1.0001e-6
        assert ours.counts_["planes"] == ours.trace_["planes"][-1] > 0

    def test_the_trace_has_the_slack(self):
        model = self.fit()
        xi = model.trace_["xi"]
        assert np.isnan(xi[0])
        margins = np.where(Y > 0, 1.0, -1.0) * model.decision_function(X)
        risk = np.average(np.maximum(0.0, 1.0 - margins), weights=S)
        assert 0.0 <= xi[-1] <= risk
        assert xi[-1] == pytest.approx(risk, rel=1e-3)

    def test_a_linear_kernel_is_linear_svc(self):
        kernel = SVC(0.1, kernel="linear", solver="ocas", tol=1e-8).fit(X, Y)
        linear = LinearSVC(0.1, solver="ocas", tol=1e-8).fit(X, Y)
        assert kernel.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=2e-8)
        np.testing.assert_allclose(kernel.coef_, linear.coef_, atol=1e-4)

    def test_three_classes_precomputed_and_one_class_without_weight(self):
        y = np.digitize(X[:, 0], [-0.5, 0.5])
        model = self.fit(y)
        assert (model.status_, len(model.certificates_)) == (Status.OPTIMAL, 3)
        K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
        same = SVC(10.0, kernel="precomputed", solver="ocas", tol=1e-6).fit(K, y, S)
        np.testing.assert_allclose(same.decision_function(K), model.decision_function(X), atol=1e-2)
        lost = SVC(solver="ocas").fit(X, y, np.where(y == 1, 0.0, 1.0))  # two of three pairs have one class
        assert lost.status_ is Status.OPTIMAL

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_an_interrupted_fit_goes_on(self, n_jobs):
        whole = self.fit(n_jobs=n_jobs)
        model = SVC(10.0, gamma=0.3, solver="ocas", tol=1e-6, max_iter=5, warm_start=True, n_jobs=n_jobs)
        with pytest.warns(ConvergenceWarning, match="raise max_iter"):
            model.fit(X, Y, S)
        model.set_params(max_iter=None).fit(X, Y, S)
        np.testing.assert_array_equal(model.dual_coef_, whole.dual_coef_)
        assert model.n_iter_ == whole.n_iter_

    def test_an_interrupt_keeps_the_best_solution(self, monkeypatch):
        step, calls = KernelOCAS.step, []

        def interrupting(self, problem, state):
            calls.append(1)
            if len(calls) == 6:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            return step(self, problem, state)

        monkeypatch.setattr(KernelOCAS, "step", interrupting)
        model = SVC(10.0, gamma=0.3, solver="ocas", tol=1e-6)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y, S)
        assert model.status_ is Status.INTERRUPTED
        assert certify(model, X, Y, S).primal == pytest.approx(model.certificate_.primal)
        assert model.set_params(warm_start=True).fit(X, Y, S).status_ is Status.OPTIMAL

    def test_a_file_keeps_the_solver_and_the_start(self, tmp_path):
        model = SVC(10.0, gamma=0.3, solver=KernelOCAS(mixing=0.3), tol=1e-6, warm_start=True).fit(X, Y, S)
        model.save(tmp_path / "model", include_training_state=True)
        again = load(tmp_path / "model")
        assert again.solver == model.solver
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
        again.fit(X, Y, S)
        assert again.n_iter_[0] - model.n_iter_[0] <= 1

    def test_a_cache_that_is_too_small(self):
        with pytest.raises(SoftmarginError, match=r"of 120 rows, which takes 115,200 bytes.*LowRankMap"):
            self.fit(cache_bytes=50_000)

    def test_an_indefinite_kernel_and_a_rule_for_pairs(self):
        with pytest.raises(SoftmarginError, match="not positive semi-definite"):
            SVC(kernel="sigmoid", gamma=1.0, coef0=-2.0, solver="ocas").fit(X, Y)
        with pytest.raises(SoftmarginError, match="solver='ocas' has none"):
            self.fit(working_set="second_order")

    def test_mixing(self):
        with pytest.raises(SoftmarginError, match="mixing=0"):
            KernelOCAS(mixing=0.0)
