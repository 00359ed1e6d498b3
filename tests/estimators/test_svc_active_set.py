"""SVC(solver="active_set"): exact sets, the same attributes and control as SMO, saved, resumed, handed over."""

import pickle
import signal
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.svm import SVC as LibSVM

from softmargin import SVC, ActiveSet, BlockSMO, ConvergenceWarning, SoftmarginError, Status, certify, load

SMALL = ActiveSet(candidates=4, slice_pivots=2, start="cold")  # so that small problems take many steps


def fit_quietly(model, X, y, sample_weight=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, sample_weight)


class TestExactSets:
    @pytest.mark.parametrize("start", ["smo", "cold"])
    @pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
    def test_counts_are_those_of_libsvm_at_a_tight_tolerance(self, binary, kernel, start):
        X, y = binary
        model = SVC(2.0, kernel=kernel, gamma=0.1, coef0=1.0, solver=ActiveSet(start=start)).fit(X, y)
        exact = LibSVM(C=2.0, kernel=kernel if kernel != "laplacian" else _laplacian, gamma=0.1, coef0=1.0, tol=1e-10)
        alpha = np.abs(exact.fit(X, y).dual_coef_[0])
        assert model.status_ is Status.OPTIMAL
        assert model.n_free_ == np.count_nonzero(alpha < 2.0 * (1 - 1e-9))
        assert model.n_bounded_ == np.count_nonzero(alpha >= 2.0 * (1 - 1e-9))
        assert model.n_free_.shape == model.n_bounded_.shape == (1,)
        assert model.n_free_ + model.n_bounded_ == model.support_.size
        np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=1e-5)

    def test_more_than_two_classes(self):
        X, y = load_iris(return_X_y=True)
        model = SVC(5.0, solver="active_set").fit(X, y)
        assert model.n_free_.shape == model.n_bounded_.shape == (3,)
        coefficients = np.count_nonzero(model.dual_coef_)
        assert model.n_free_.sum() + model.n_bounded_.sum() == coefficients
        assert model.certificate_.relative_gap <= 1e-3
        assert certify(model, X, y).relative_gap <= 1e-3

    def test_weights(self, binary):
        X, y = binary
        weights = 0.5 + np.arange(len(y)) % 4
        model = SVC(solver="active_set", class_weight="balanced", tol=1e-8).fit(X, y, weights)
        other = SVC(class_weight="balanced", tol=1e-8).fit(X, y, weights)
        assert model.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-7)

    def test_every_solver_counts(self, binary):
        X, y = binary
        for solver in ("block", "smo"):
            model = SVC(solver=solver, tol=1e-6).fit(X, y)
            assert model.n_free_ + model.n_bounded_ == model.support_.size

    def test_sparse_rows_and_threads_change_nothing(self, three_classes):
        X, y = three_classes
        one = SVC(10.0, solver="active_set").fit(X, y)
        two = SVC(10.0, solver="active_set", n_jobs=2).fit(X, y)
        np.testing.assert_array_equal(two.dual_coef_, one.dual_coef_)
        csr = SVC(10.0, solver="active_set").fit(sp.csr_array(X), y)
        np.testing.assert_allclose(csr.decision_function(X), one.decision_function(X), atol=1e-6)

    def test_rows_are_double_whatever_tol(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((1100, 4))
        y = (X[:, 0] + 0.8 * rng.standard_normal(1100) > 0).astype(int)
        model = SVC(solver="active_set").fit(X, y)
        assert model.certificate_.relative_gap <= 1e-9
        assert model.counts_["majors"] > 0


def _laplacian(A, B):
    return np.exp(-0.1 * np.abs(A[:, None] - B[None]).sum(axis=2))


class TestControl:
    def test_limits_keep_what_was_reached_and_go_on(self, binary):
        X, y = binary
        model = fit_quietly(SVC(10.0, tol=1e-8, solver=SMALL, max_iter=20, warm_start=True), X, y)
        assert model.status_ is Status.MAX_ITER
        assert 20 <= model.n_iter_[0] <= 60
        again = pickle.loads(pickle.dumps(model)).set_params(max_iter=None).fit(X, y)
        assert again.status_ is Status.OPTIMAL
        assert again.n_free_ == SVC(10.0, tol=1e-8, solver="active_set").fit(X, y).n_free_
        stopped = fit_quietly(SVC(solver="active_set", max_seconds=1e-9), X, y)
        assert stopped.status_ is Status.MAX_SECONDS

    @pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="Ctrl-C cannot be sent to a thread here")
    @pytest.mark.parametrize("at", [1, 4])
    def test_an_interrupt_leaves_a_certified_model(self, binary, monkeypatch, at):
        X, y = binary
        original, calls = ActiveSet.step, []

        def watched(self, *args):
            calls.append(1)
            if len(calls) == at:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            return original(self, *args)

        monkeypatch.setattr(ActiveSet, "step", watched)
        model = SVC(10.0, tol=1e-6, solver=SMALL)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert model.status_ is Status.INTERRUPTED
        assert np.isfinite(model.certificate_.primal)
        assert model.set_params(warm_start=True).fit(X, y).status_ is Status.OPTIMAL

    def test_a_warm_start_at_another_C_takes_few_pivots(self, binary):
        X, y = binary
        model = SVC(10.0, solver="active_set", warm_start=True).fit(X, y)
        before = model.counts_["iterations"]
        model.set_params(C=10.5).fit(X, y)
        cold = SVC(10.5, solver=ActiveSet(start="cold")).fit(X, y)
        assert (model.n_free_[0], model.n_bounded_[0]) == (cold.n_free_[0], cold.n_bounded_[0])
        assert model.counts_["iterations"] - before < 0.5 * cold.counts_["iterations"]

    def test_smo_begins_and_the_active_set_ends(self, three_classes):
        X, y = three_classes
        model = SVC(10.0, warm_start=True).fit(X, y).set_params(solver="active_set").fit(X, y)
        cold = SVC(10.0, solver="active_set").fit(X, y)
        np.testing.assert_array_equal(model.n_free_, cold.n_free_)
        np.testing.assert_array_equal(model.n_bounded_, cold.n_bounded_)

    def test_a_goal_below_rounding_ends_with_an_honest_status(self, binary):
        X, y = binary
        for stopping in ("gap", "kkt"):
            model = fit_quietly(SVC(tol=0.0, stopping=stopping, solver="active_set"), X, y)
            assert model.status_ in (Status.OPTIMAL, Status.STALLED, Status.UNCONFIRMED)
            assert model.certificate_.relative_gap <= 1e-9

    def test_saved_with_its_training_state(self, binary, tmp_path):
        X, y = binary
        model = fit_quietly(SVC(10.0, tol=1e-8, solver=SMALL, max_iter=20, warm_start=True), X, y)
        model.save(tmp_path / "m.safetensors", include_training_state=True)
        again = load(tmp_path / "m.safetensors").set_params(max_iter=None).fit(X, y)
        assert again.status_ is Status.OPTIMAL
        assert again.solver == SMALL
        assert again.counts_["iterations"] >= model.counts_["iterations"]


class TestHandOver:
    def test_too_little_memory_hands_over_to_blocks(self, binary):
        X, y = binary
        solver = ActiveSet(candidates=10, slice_pivots=5, start="cold", max_bytes=8000.0, equations="factor")
        with pytest.warns(
            UserWarning, match=r"free variables: .* bytes, and there are 8,000 .*BlockSMO goes on"
        ) as caught:
            model = SVC(10.0, solver=solver, tol=1e-5).fit(X, y)
        assert len(caught) == 1
        assert model.status_ is Status.OPTIMAL
        assert model.counts_["majors"] > 0
        assert model.counts_["pair_steps"] > 0
        assert model.certificate_.relative_gap <= 1e-5


class TestBadInput:
    def test_an_indefinite_kernel(self, binary):
        X, y = binary
        with pytest.raises(SoftmarginError, match=r"not positive semi-definite .* use solver='auto'"):
            SVC(kernel="sigmoid", gamma=1.0, coef0=-1.0, solver="active_set").fit(X, y)

    def test_an_indefinite_matrix_that_shows_during_the_fit(self, monkeypatch):
        rng = np.random.default_rng(1)
        X = rng.standard_normal((60, 3))
        K = X @ X.T - 2.0 * np.eye(60)
        monkeypatch.setattr("softmargin.estimators.kernel_work.KernelSetting.looks_convex", lambda *_: True)
        with pytest.raises(SoftmarginError, match="not positive semi-definite"):
            SVC(1e3, kernel="precomputed", solver="active_set").fit(K, np.arange(60) % 2)

    def test_a_rule_for_pairs(self, binary):
        with pytest.raises(SoftmarginError, match="rule for pairs"):
            SVC(solver="active_set", working_set="second_order").fit(*binary)

    def test_solver_objects_are_named(self, binary):
        with pytest.raises(SoftmarginError, match=r"ActiveSet\(\), IPM\(\) or KernelOCAS\(\)"):
            SVC(solver=3).fit(*binary)
        assert SVC(solver=BlockSMO()).fit(*binary).counts_["majors"] == 0
