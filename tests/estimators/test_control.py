"""Stopping, resuming, interrupting and running fits side by side."""

import pickle
import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning

from softmargin import CPA, OCAS, SVC, ConvergenceWarning, LinearSVC, Status, certify


def fit_quietly(model, X, y, sample_weight=None):
    """Fit, and let a warning about the gap pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, sample_weight)


def assert_same_model(found, expected):
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.intercept_, expected.intercept_)
    np.testing.assert_array_equal(found.dual_, expected.dual_)
    assert found.certificates_ == expected.certificates_


def assert_certified(model, X, y):
    """The certificate holds for the model as it stands, and its bound is below its value."""
    assert np.isfinite(model.certificate_.primal)
    assert -1e-9 * model.certificate_.primal <= model.certificate_.gap
    again = certify(model, X, y)
    assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert again.dual == pytest.approx(model.certificate_.dual, rel=1e-9, abs=1e-9 * abs(again.primal))


class TestLimits:
    def test_max_iter_warns_once_with_the_gap_its_meaning_and_the_remedy(self, binary):
        X, y = binary
        with pytest.warns() as caught:
            model = LinearSVC(solver="ocas", max_iter=3, tol=1e-6).fit(X, y)
        assert len(caught) == 1
        assert issubclass(caught[0].category, ConvergenceWarning)
        assert issubclass(caught[0].category, SklearnConvergenceWarning)
        assert caught[0].filename == __file__
        text = str(caught[0].message)
        gap = model.certificate_.relative_gap
        assert f"relative duality gap is {gap:.2g} (tol=1e-06)" in text
        assert f"at most {100 * gap:.3g} % of its value above the optimum" in text
        assert "raise max_iter (now 3)" in text
        assert "warm_start=True" in text
        assert model.status_ is Status.MAX_ITER
        assert model.n_iter_ == 3
        assert gap > 1e-6
        assert_certified(model, X, y)

    def test_several_classes_warn_once(self, three_classes):
        X, y = three_classes
        with pytest.warns() as caught:
            model = LinearSVC(max_iter=2, tol=1e-6, n_jobs=2).fit(X, y)
        assert len(caught) == 1
        assert f"{model.certificate_.relative_gap:.2g}" in str(caught[0].message)
        assert model.status_ is Status.MAX_ITER

    def test_the_message_bounds_the_objective(self, binary):
        X, y = binary
        optimum = LinearSVC(tol=1e-8).fit(X, y).certificate_
        stopped = fit_quietly(LinearSVC(max_iter=4, tol=1e-8), X, y).certificate_
        assert stopped.primal - optimum.primal <= stopped.relative_gap * stopped.primal
        assert stopped.dual <= optimum.primal

    @pytest.mark.parametrize("data", ["binary", "three_classes"])
    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_max_seconds(self, request, data, n_jobs):
        X, y = request.getfixturevalue(data)
        with pytest.warns(ConvergenceWarning, match=r"raise max_seconds \(now 1e-09\)") as caught:
            model = LinearSVC(max_seconds=1e-9, tol=1e-9, n_jobs=n_jobs).fit(X, y)
        assert len(caught) == 1
        assert model.status_ is Status.MAX_SECONDS
        assert model.predict(X).shape == y.shape
        assert_certified(model, X, y)

    def test_generous_limits_change_nothing(self, binary):
        X, y = binary
        free, limited = LinearSVC().fit(X, y), LinearSVC(max_iter=10**6, max_seconds=1e6).fit(X, y)
        assert_same_model(limited, free)
        assert limited.status_ is Status.OPTIMAL

    def test_a_goal_below_rounding_ends_with_an_honest_status(self, binary):
        X, y = binary
        model = fit_quietly(LinearSVC(tol=0.0, max_iter=3000), X, y)
        assert model.status_ in (Status.OPTIMAL, Status.STALLED, Status.UNCONFIRMED, Status.MAX_ITER)
        assert model.certificate_.relative_gap <= 1e-9
        if model.status_ is Status.OPTIMAL:
            assert model.certificate_.relative_gap <= 0.0

    @pytest.mark.parametrize("solver", [CPA(stopping="epsilon"), OCAS(stopping="epsilon")], ids=str)
    def test_the_epsilon_rule_of_the_papers(self, binary, solver):
        X, y = binary
        model = LinearSVC(solver=solver, tol=1e-3).fit(X, y)
        assert model.status_ is Status.OPTIMAL
        assert model.certificate_.gap / len(y) <= 1e-3  # on the mean risk; C = 1

    def test_the_warning_under_the_epsilon_rule_names_what_was_compared(self, binary):
        """The number must be the one that tol was compared with, or be named as the relative gap that it is."""
        X, y = binary
        with pytest.warns(ConvergenceWarning) as caught:
            model = LinearSVC(solver=CPA(stopping="epsilon"), tol=1e-6, max_iter=5).fit(X, y)
        text = str(caught[0].message)
        relative, epsilon = model.certificate_.relative_gap, model.certificate_.gap / len(y)
        assert f"relative duality gap is {relative:.2g}" in text or f"is {epsilon:.2g} (tol=1e-06)" in text


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
@pytest.mark.parametrize("data", ["binary", "three_classes", "wide"])
class TestResume:
    def test_is_the_uninterrupted_fit_bit_for_bit(self, request, data, solver):
        X, y = request.getfixturevalue(data)
        whole = LinearSVC(solver=solver, tol=1e-5).fit(X, y)
        model = LinearSVC(solver=solver, tol=1e-5, max_iter=4)
        fit_quietly(model, X, y)
        assert model.status_ is Status.MAX_ITER
        model.set_params(warm_start=True)
        for _ in range(1000):
            if model.status_ is Status.OPTIMAL:
                break
            before = model.n_iter_
            fit_quietly(model, X, y)
            assert before < model.n_iter_ <= before + 4
        assert model.status_ is Status.OPTIMAL
        assert_same_model(model, whole)
        assert model.n_iter_ == whole.n_iter_

    def test_after_a_time_limit(self, request, data, solver):
        X, y = request.getfixturevalue(data)
        whole = LinearSVC(solver=solver, tol=1e-5).fit(X, y)
        model = LinearSVC(solver=solver, tol=1e-5, max_seconds=1e-9)
        fit_quietly(model, X, y)
        assert model.status_ is Status.MAX_SECONDS
        model.set_params(warm_start=True, max_seconds=None).fit(X, y)
        assert_same_model(model, whole)

    def test_through_a_pickle_and_with_other_threads(self, request, data, solver):
        X, y = request.getfixturevalue(data)
        whole = LinearSVC(solver=solver, tol=1e-5).fit(X, y)
        model = fit_quietly(LinearSVC(solver=solver, tol=1e-5, max_iter=5), X, y)
        model = pickle.loads(pickle.dumps(model))
        model.set_params(warm_start=True, max_iter=None, n_jobs=2).fit(X, y)
        assert_same_model(model, whole)

    def test_a_finished_fit_has_nothing_left_to_do(self, request, data, solver):
        X, y = request.getfixturevalue(data)
        model = LinearSVC(solver=solver, warm_start=True).fit(X, y)
        done = model.n_iter_
        assert model.fit(X, y).n_iter_ == done
        assert model.status_ is Status.OPTIMAL

    def test_a_smaller_tol_goes_on_from_there(self, request, data, solver):
        X, y = request.getfixturevalue(data)
        whole = LinearSVC(solver=solver, tol=1e-6).fit(X, y)
        model = LinearSVC(solver=solver, tol=1e-2, warm_start=True).fit(X, y)
        model.set_params(tol=1e-6).fit(X, y)
        assert_same_model(model, whole)


class TestWarmStart:
    @pytest.mark.parametrize("data", ["binary", "three_classes", "wide"])
    @pytest.mark.parametrize("factor", [0.5, 2.0])
    def test_at_another_C_takes_fewer_iterations(self, request, data, factor, same_optimum):
        X, y = request.getfixturevalue(data)
        cold = LinearSVC(factor, solver="ocas", tol=1e-5).fit(X, y)
        model = LinearSVC(1.0, solver="ocas", tol=1e-5, warm_start=True).fit(X, y)
        before = model.n_iter_
        model.set_params(C=factor).fit(X, y)
        assert model.n_iter_ - before < cold.n_iter_
        assert model.certificate_.relative_gap <= 1e-5
        assert_certified(model, X, y)
        assert same_optimum(model.certificate_, cold.certificate_)

    @pytest.mark.parametrize("C", [1e-4, 1e4])
    def test_at_a_C_far_away_is_still_certified(self, binary, C, same_optimum):
        X, y = binary
        cold = LinearSVC(C).fit(X, y)
        model = LinearSVC(1.0, warm_start=True).fit(X, y).set_params(C=C).fit(X, y)
        assert model.certificate_.relative_gap <= 1e-3
        assert same_optimum(model.certificate_, cold.certificate_)

    @pytest.mark.parametrize("data", ["binary", "three_classes", "wide"])
    @pytest.mark.parametrize("change", ["data", "labels", "weights", "one entry", "intercept"])
    def test_on_changed_data_does_not_use_the_old_planes(self, request, data, change, same_optimum):
        X, y = request.getfixturevalue(data)
        model = LinearSVC(tol=1e-6, warm_start=True).fit(X, y)
        weights = None
        X, y = X.copy(), y.copy()
        if change == "data":
            X = X[::-1] * 1.3
        elif change == "labels":
            y[::5] = (y[::5] + 1) % (y.max() + 1)
        elif change == "weights":
            weights = np.linspace(0.1, 3.0, len(y))
        elif change == "one entry":
            X[7, 3] += 40.0
        else:
            model.set_params(fit_intercept=False)
        model.fit(X, y, weights)
        cold = clone(model).fit(X, y, weights)
        assert model.status_ is Status.OPTIMAL
        assert model.certificate_.relative_gap <= 1e-6
        assert same_optimum(model.certificate_, cold.certificate_)
        # A plane of the old data may lie above the new objective: the solver's own bound must not pass the optimum.
        traces = model.trace_ if isinstance(model.trace_, list) else [model.trace_]
        for trace, part in zip(traces, model.certificates_, strict=True):
            assert trace["dual"].max() <= part.primal * (1 + 1e-9)
            assert trace["iteration"][0] == 0

    def test_weights_alone_still_help_on_nearly_the_same_data(self, binary):
        X, y = binary
        model = LinearSVC(tol=1e-3, warm_start=True).fit(X, y)
        changed = X + 1e-6
        model.fit(changed, y)
        assert model.trace_["primal"][0] < 0.5 * LinearSVC().fit(changed, y).trace_["primal"][0]

    def test_with_another_number_of_features_starts_afresh(self, binary):
        X, y = binary
        model = LinearSVC(warm_start=True).fit(X, y)
        model.fit(X[:, :5], y)
        assert_same_model(model, LinearSVC().fit(X[:, :5], y))

    def test_with_other_classes_starts_afresh(self, binary, three_classes):
        model = LinearSVC(warm_start=True).fit(*three_classes)
        model.fit(*binary)
        assert_same_model(model, LinearSVC().fit(*binary))
        X, y = binary
        model.fit(X, y + 3)
        assert_same_model(model, LinearSVC().fit(X, y + 3))

    def test_with_another_solver(self, binary, same_optimum):
        X, y = binary
        model = fit_quietly(LinearSVC(tol=1e-5, max_iter=5, warm_start=True), X, y)
        model.set_params(solver="cpa", max_iter=None).fit(X, y)
        assert model.certificate_.relative_gap <= 1e-5
        assert same_optimum(model.certificate_, LinearSVC(tol=1e-5).fit(X, y).certificate_)

    def test_off_means_that_earlier_fits_leave_no_trace(self, binary):
        X, y = binary
        model = fit_quietly(LinearSVC(max_iter=3), X, y)
        model.set_params(max_iter=None).fit(X, y)
        assert_same_model(model, LinearSVC().fit(X, y))
        assert not hasattr(model, "_state")


class InterruptingOCAS(OCAS):
    """Sends SIGINT to the main thread, as Ctrl-C does, in step number `at` of all steps (or init number `at`)."""

    def __init__(self, at, where="step"):
        super().__init__()
        object.__setattr__(self, "calls", {"step": 0, "init": 0, "solution": 0})
        object.__setattr__(self, "at", at)
        object.__setattr__(self, "where", where)

    def _count(self, where):
        self.calls[where] += 1
        if where == self.where and self.calls[where] == self.at:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            if threading.current_thread() is not threading.main_thread():
                time.sleep(0.2)  # the main thread hears it when it runs next

    def init(self, problem, start=None):
        self._count("init")
        return super().init(problem, start)

    def step(self, problem, state):
        self._count("step")
        return super().step(problem, state)

    def solution(self, problem, state):
        self._count("solution")
        return super().solution(problem, state)


needs_signals = pytest.mark.skipif(
    not hasattr(signal, "pthread_kill"), reason="Ctrl-C cannot be sent to a thread on this system"
)


@needs_signals
class TestInterrupt:
    @pytest.mark.parametrize(
        ("data", "n_jobs"),
        [("binary", 1), ("binary", 2), ("three_classes", 1), ("three_classes", 2), ("wide", 1)],
    )
    @pytest.mark.parametrize("at", [1, 8])
    def test_leaves_a_certified_model_and_raises_again(self, request, data, n_jobs, at):
        X, y = request.getfixturevalue(data)
        model = LinearSVC(tol=1e-6, solver=InterruptingOCAS(at), n_jobs=n_jobs)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert model.status_ is Status.INTERRUPTED
        assert model.predict(X).shape == y.shape
        assert_certified(model, X, y)
        model.set_params(warm_start=True, solver="ocas").fit(X, y)
        assert model.status_ is Status.OPTIMAL
        assert_same_model(model, LinearSVC(tol=1e-6, solver="ocas").fit(X, y))

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_in_rows_of_many_blocks(self, make_noisy, n_jobs):
        X, y = make_noisy(n=20_000, d=100, seed=23)
        model = LinearSVC(100.0, tol=1e-9, solver=InterruptingOCAS(5), n_jobs=n_jobs)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert model.status_ is Status.INTERRUPTED
        assert 1 <= model.n_iter_ <= 6
        assert_certified(model, X, y)

    @pytest.mark.parametrize(("n_classes", "n_jobs"), [(2, 1), (2, 2), (3, 1), (3, 2)])
    def test_from_outside_during_a_long_fit(self, make_noisy, monkeypatch, n_classes, n_jobs):
        """The fit would take minutes; the interrupt comes a while after its first step has begun."""
        X, y = make_noisy(n=20_000, d=100, n_classes=n_classes, seed=23)
        fit_quietly(LinearSVC(solver="cpa", max_iter=1, n_jobs=n_jobs), X, y)  # what is compiled is compiled
        step, begun = CPA.step, threading.Event()

        def told(self, *args):
            begun.set()
            return step(self, *args)

        def press():
            begun.wait()
            time.sleep(0.2)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        monkeypatch.setattr(CPA, "step", told)
        model = LinearSVC(1000.0, solver="cpa", tol=1e-12, n_jobs=n_jobs)
        finger = threading.Thread(target=press, daemon=True)
        finger.start()
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        finger.join()
        assert model.status_ is Status.INTERRUPTED
        assert_certified(model, X, y)

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_is_raised_even_if_an_earlier_class_hit_its_limit(self, three_classes, n_jobs):
        """Class 0 ends at max_iter; the interrupt comes while a later class is trained."""
        X, y = three_classes
        model = LinearSVC(tol=1e-9, max_iter=5, solver=InterruptingOCAS(13), n_jobs=n_jobs)
        with pytest.raises(KeyboardInterrupt):
            fit_quietly(model, X, y)
        assert model.status_ is Status.INTERRUPTED
        assert_certified(model, X, y)

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_between_classes_keeps_those_that_are_done(self, three_classes, n_jobs):
        X, y = three_classes
        model = LinearSVC(tol=1e-3, solver=InterruptingOCAS(3, where="init"), n_jobs=n_jobs)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert model.status_ is Status.INTERRUPTED
        assert_certified(model, X, y)
        assert min(certificate.relative_gap for certificate in model.certificates_) <= 1e-3  # one class was done

    def test_before_the_first_iteration(self, binary):
        X, y = binary
        model = LinearSVC(solver=InterruptingOCAS(1, where="init"))
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert model.status_ is Status.INTERRUPTED
        assert_certified(model, X, y)

    @pytest.mark.parametrize("data", ["binary", "three_classes"])
    def test_while_the_result_is_put_together(self, request, data):
        X, y = request.getfixturevalue(data)
        model = LinearSVC(max_iter=3, tol=1e-9, solver=InterruptingOCAS(1, where="solution"))
        with pytest.raises(KeyboardInterrupt):
            fit_quietly(model, X, y)
        assert_certified(model, X, y)

    def test_leaves_the_handler_of_ctrl_c_as_it_was(self, binary):
        X, y = binary
        before = signal.getsignal(signal.SIGINT)
        LinearSVC().fit(X, y)
        assert signal.getsignal(signal.SIGINT) is before
        with pytest.raises(KeyboardInterrupt):
            LinearSVC(solver=InterruptingOCAS(2), tol=1e-9).fit(X, y)
        assert signal.getsignal(signal.SIGINT) is before


def fit_coef(X, y, n_jobs=None):
    return LinearSVC(tol=1e-5, n_jobs=n_jobs).fit(X, y).coef_


class TestSideBySide:
    def test_python_threads(self, binary, three_classes, wide):
        jobs = [binary, three_classes, wide] * 4
        alone = [fit_coef(X, y) for X, y in jobs[:3]]
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(lambda job: fit_coef(*job, n_jobs=2), jobs))
        for k, coef in enumerate(together):
            np.testing.assert_array_equal(coef, alone[k % 3])

    @pytest.mark.parametrize("backend", ["threading", "loky"])
    def test_joblib(self, binary, three_classes, backend):
        jobs = [binary, three_classes] * 2
        alone = [fit_coef(X, y) for X, y in jobs[:2]]
        together = joblib.Parallel(n_jobs=2, backend=backend)(
            joblib.delayed(fit_coef)(X, y, n_jobs=-1) for X, y in jobs
        )
        for k, coef in enumerate(together):
            np.testing.assert_array_equal(coef, alone[k % 2])

    def test_dask_threads(self, binary, three_classes):
        dask = pytest.importorskip("dask", reason="Dask is an extra")
        jobs = [binary, three_classes] * 2
        alone = [fit_coef(X, y) for X, y in jobs[:2]]
        tasks = [dask.delayed(fit_coef, pure=False)(X, y, n_jobs=-1) for X, y in jobs]
        together = dask.compute(*tasks, scheduler="threads", num_workers=2)
        for k, coef in enumerate(together):
            np.testing.assert_array_equal(coef, alone[k % 2])

    def test_dask_cluster(self, binary, three_classes):
        distributed = pytest.importorskip("distributed", reason="Dask's scheduler is an extra")
        jobs = [binary, three_classes]
        alone = [fit_coef(X, y) for X, y in jobs]
        with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as client:
            futures = [client.submit(fit_coef, X, y, n_jobs=-1, pure=False) for X, y in jobs * 2]
            together = client.gather(futures)
        for k, coef in enumerate(together):
            np.testing.assert_array_equal(coef, alone[k % 2])

    def test_a_fit_outside_the_main_thread_can_be_stopped_by_its_limits(self, binary):
        X, y = binary
        with ThreadPoolExecutor(1) as pool:
            model = pool.submit(fit_quietly, LinearSVC(max_iter=2, tol=1e-9), X, y).result()
        assert model.status_ is Status.MAX_ITER


class TestCopies:
    @pytest.mark.parametrize("data", ["binary", "three_classes"])
    def test_pickle(self, request, data):
        X, y = request.getfixturevalue(data)
        model = LinearSVC(warm_start=True, solver=OCAS(mixing=0.2)).fit(X, y)
        copy = pickle.loads(pickle.dumps(model))
        assert_same_model(copy, model)
        assert copy.status_ is model.status_
        np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
        assert certify(copy, X, y).relative_gap <= 1e-3

    def test_a_finished_model_carries_no_training_state(self, binary):
        X, y = binary
        model = LinearSVC().fit(X, y)
        warm = LinearSVC(warm_start=True).fit(X, y)
        assert len(pickle.dumps(model)) < len(pickle.dumps(warm))
        assert not hasattr(model, "_state")

    def test_clone_and_parameters(self):
        parameters = {
            "C": 2.0,
            "solver": "cpa",
            "tol": 1e-4,
            "fit_intercept": False,
            "intercept": "free",
            "intercept_scaling": 1.0,
            "loss": "hinge",
            "multi_class": "ovr",
            "class_weight": "balanced",
            "max_iter": 7,
            "max_seconds": 3.0,
            "n_jobs": 2,
            "warm_start": True,
            "random_state": 0,
            "verbose": 0,
        }
        model = LinearSVC(**parameters)
        assert model.get_params() == parameters
        assert clone(model).get_params() == parameters
        assert model.set_params(C=0.5, solver="ocas").get_params() == {
            **parameters,
            "C": 0.5,
            "solver": "ocas",
        }
        with pytest.raises(ValueError, match="Invalid parameter 'epsilon'"):
            model.set_params(epsilon=1)

    def test_clone_of_a_fitted_model_is_not_fitted(self, binary):
        model = LinearSVC(C=3.0, solver=CPA()).fit(*binary)
        copy = clone(model)
        assert copy.C == 3.0
        assert copy.solver == CPA()
        assert not hasattr(copy, "coef_")

    def test_only_C_may_be_given_by_position(self):
        assert LinearSVC(0.25).C == 0.25
        with pytest.raises(TypeError, match="positional argument"):
            LinearSVC(1.0, "ocas")


@pytest.mark.parametrize("estimator", [LinearSVC(n_jobs=4), SVC(n_jobs=4)], ids=["one against the rest", "pairs"])
def test_seconds_are_those_on_the_wall_also_of_classes_side_by_side(estimator):
    """The classes' own seconds were added up, and what was compiled meanwhile counted once for each of them."""
    X = np.random.default_rng(0).standard_normal((1000, 20))
    began = time.perf_counter()
    estimator.fit(X, np.argmax(X[:, :6], axis=1))
    passed = time.perf_counter() - began
    longest = max(trace[-1].seconds for trace in estimator.trace_)
    assert longest <= estimator.seconds_["total"] <= passed
    assert estimator.seconds_["compile"] <= estimator.seconds_["total"]
