"""Regression and one-class fits that are stopped, continued, interrupted, watched, saved and run side by side."""

import pickle
import signal
import threading
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from softmargin import (
    CPA,
    OCAS,
    SMO,
    SVR,
    ActiveSet,
    BlockSMO,
    ConvergenceWarning,
    LinearOneClassSVM,
    LinearSVR,
    OneClassSVM,
    Status,
    load,
)

try:
    import sklearn.callback as callbacks
except ImportError:
    callbacks = None

SMALL = BlockSMO(size=8)  # so that small problems take many rounds
MODELS = [
    SVR(10.0, epsilon=0.01, solver=SMALL, tol=1e-6),
    SVR(10.0, epsilon=0.01, solver=SMO(slice_steps=8), tol=1e-6),
    SVR(10.0, epsilon=0.01, solver=ActiveSet(start="cold", slice_pivots=5), tol=1e-6),
    SVR(10.0, epsilon=0.01, kernel="linear", solver="ipm", tol=1e-6),
    LinearSVR(10.0, epsilon=0.01, solver=OCAS(), tol=1e-6),
    LinearSVR(10.0, epsilon=0.01, solver=CPA(), tol=1e-6),
    LinearSVR(10.0, epsilon=0.01, intercept="penalised", tol=1e-6),
    OneClassSVM(0.17, solver=SMALL, tol=1e-6),
    OneClassSVM(0.17, solver=SMO(slice_steps=8), tol=1e-6),
    OneClassSVM(0.17, solver=ActiveSet(start="cold", slice_pivots=5), tol=1e-6),
    OneClassSVM(0.17, kernel="linear", solver="ipm", tol=1e-6),
    LinearOneClassSVM(0.17, solver=OCAS(), tol=1e-6),
    LinearOneClassSVM(0.17, solver=CPA(), tol=1e-6),
    SVR(10.0, epsilon=0.01, solver="ocas", tol=1e-6),
    OneClassSVM(0.17, solver="ocas", tol=1e-6),
]


def name_of(model):
    solver = model.solver if isinstance(model.solver, str) else type(model.solver).__name__
    return f"{type(model).__name__}-{solver}-{getattr(model, 'intercept', '')}".rstrip("-")


every = pytest.mark.parametrize("model", MODELS, ids=name_of)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 4)) + 2.0
    return X, X[:, 0] - np.cos(2.0 * X[:, 1]) + 0.3 * rng.standard_normal(150)


def fit_quietly(model, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data, **options)


def outputs(model, X):
    return model.predict(X) if hasattr(model, "epsilon") else model.decision_function(X)


def assert_same_model(found, expected):
    names = ("dual_coef_", "support_") if hasattr(found, "support_") else ("coef_", "dual_")
    for name in (*names, "intercept_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def assert_certified(model, X):
    assert np.isfinite(model.certificate_.primal)
    assert np.isfinite(model.certificate_.dual)
    assert model.certificate_.gap >= 0.0
    assert np.isfinite(outputs(model, X)).all()


@every
class TestLimits:
    def test_max_iter_warns_once_with_the_gap_and_the_remedy(self, data, model):
        X, y = data
        with pytest.warns() as caught:
            found = clone(model).set_params(max_iter=2, tol=1e-9).fit(X, y)
        assert len(caught) == 1
        assert issubclass(caught[0].category, ConvergenceWarning)
        assert caught[0].filename == __file__
        text = str(caught[0].message)
        assert f"relative duality gap is {found.certificate_.relative_gap:.2g} (tol=1e-09)" in text
        assert "raise max_iter (now 2)" in text
        assert found.status_ is Status.MAX_ITER
        assert 2 <= found.n_iter_ <= 8  # limits are looked at between slices
        assert getattr(found, "fit_status_", 1) == 1
        assert_certified(found, X)

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_max_seconds(self, data, model, n_jobs):
        X, y = data
        with pytest.warns(ConvergenceWarning, match=r"raise max_seconds \(now 1e-09\)") as caught:
            found = clone(model).set_params(max_seconds=1e-9, tol=1e-9, n_jobs=n_jobs).fit(X, y)
        assert len(caught) == 1
        assert found.status_ is Status.MAX_SECONDS
        assert_certified(found, X)

    def test_limits_of_scikit_learn(self, data, model):
        X, y = data
        assert clone(model).set_params(max_iter=-1).fit(X, y).status_ is Status.OPTIMAL


@every
class TestWarmStart:
    def test_goes_on_where_it_stopped(self, data, model):
        X, y = data
        whole = clone(model).fit(X, y)
        found = fit_quietly(clone(model).set_params(max_iter=3, warm_start=True), X, y)
        assert 3 <= found.n_iter_ <= 8
        found = pickle.loads(pickle.dumps(found)).set_params(max_iter=None).fit(X, y)
        assert found.status_ is Status.OPTIMAL
        assert found.n_iter_ <= 1.5 * whole.n_iter_ + 5
        assert found.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=2e-6)

    def test_a_finished_fit_has_nothing_left_to_do(self, data, model):
        X, y = data
        found = clone(model).set_params(warm_start=True).fit(X, y)
        done, before = found.n_iter_, outputs(found, X)
        assert found.fit(X, y).n_iter_ == done
        np.testing.assert_allclose(outputs(found, X), before, rtol=1e-12)

    @pytest.mark.parametrize("factor", [0.3, 0.999, 3.0])
    @pytest.mark.parametrize("name", ["C", "epsilon", "nu"])
    def test_another_parameter(self, data, model, name, factor):
        X, y = data
        if name not in model.get_params():
            return
        found = clone(model).set_params(warm_start=True).fit(X, y)
        found.set_params(**{name: factor * getattr(model, name)}).fit(X, y)
        cold = clone(found).fit(X, y)
        assert found.status_ is Status.OPTIMAL
        assert found.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-6)

    def test_other_rows_targets_and_weights(self, data, model):
        X, y = data
        found = clone(model).set_params(warm_start=True).fit(X, y)
        for rows, target, weights in (
            (X, y + X[:, 2], None),
            (X + 0.1, y, None),
            (X[:90], y[:90], None),
            (X[:, :3], y, None),
            (X, y, np.arange(len(y)) % 3),
        ):
            found.fit(rows, target, sample_weight=weights)
            cold = clone(found).fit(rows, target, sample_weight=weights)
            assert found.status_ is Status.OPTIMAL
            assert found.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-6)


class Interrupting(OCAS):
    """Ctrl-C in the third step."""

    calls = 0

    def step(self, problem, state):
        Interrupting.calls += 1
        if Interrupting.calls == 3:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return super().step(problem, state)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="Ctrl-C cannot be sent to a thread on this system")
@pytest.mark.parametrize("n_jobs", [1, 2])
class TestInterrupt:
    def check(self, model, X, y):
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert model.status_ is Status.INTERRUPTED
        assert_certified(model, X)
        done = model.n_iter_
        model.set_params(warm_start=True).fit(X, y)
        assert model.status_ is Status.OPTIMAL
        assert model.n_iter_ >= done

    @pytest.mark.parametrize("model", [MODELS[0], MODELS[7]], ids=name_of)
    @pytest.mark.parametrize("at", [1, 4])
    def test_kernels(self, data, model, n_jobs, at, monkeypatch):
        original, calls = BlockSMO.step, []

        def step(self, problem, state):
            calls.append(1)
            if len(calls) == at:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            return original(self, problem, state)

        monkeypatch.setattr(BlockSMO, "step", step)
        self.check(clone(model).set_params(n_jobs=n_jobs), *data)

    @pytest.mark.parametrize("model", [MODELS[4], MODELS[11]], ids=name_of)
    def test_linear(self, data, model, n_jobs):
        Interrupting.calls = 0
        self.check(clone(model).set_params(solver=Interrupting(), n_jobs=n_jobs), *data)


@every
class TestSideBySide:
    def test_the_number_of_threads_changes_no_bit(self, data, model):
        X, y = data
        one, more = (clone(model).set_params(n_jobs=n).fit(X, y) for n in (1, 3))
        assert_same_model(more, one)
        assert more.certificate_ == one.certificate_
        np.testing.assert_array_equal(outputs(more, X), outputs(one, X))

    def test_twice_the_same(self, data, model):
        assert_same_model(clone(model).fit(*data), clone(model).fit(*data))


@every
class TestFiles:
    def test_a_model_from_a_file_says_the_same(self, data, model, tmp_path):
        X, y = data
        found = clone(model).fit(X, y)
        found.save(tmp_path / "model.npz")
        again = load(tmp_path / "model.npz")
        assert type(again) is type(found)
        np.testing.assert_array_equal(outputs(again, X), outputs(found, X))
        assert again.certificate_.primal == found.certificate_.primal
        assert again.get_params().keys() == found.get_params().keys()


class Recorder:
    """Keeps the models it is shown, and asks to stop after `stop_after` iterations."""

    def __init__(self, stop_after=None):
        self.stop_after, self.models, self.iterations = stop_after, [], 0

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        if fitted_estimator is not None:
            self.models.append(fitted_estimator)
        self.iterations += context.task_name == "iteration"
        return self.stop_after is not None and self.iterations >= self.stop_after

    def teardown(self, estimator, context):
        pass


@pytest.mark.skipif(callbacks is None, reason="this scikit-learn has no sklearn.callback")
@every
class TestCallbacks:
    def test_they_are_shown_models_and_change_nothing(self, data, model):
        X, y = data
        recorder = Recorder()
        found = clone(model).set_callbacks(recorder).fit(X, y)
        assert_same_model(found, clone(model).fit(X, y))
        assert recorder.iterations >= 1
        shown = [outputs(one, X) for one in recorder.models]
        assert all(np.isfinite(values).all() for values in shown)
        np.testing.assert_array_equal(shown[-1], outputs(found, X))

    def test_one_can_stop_the_fit_without_a_warning(self, data, model):
        X, y = data
        found = clone(model).set_params(tol=1e-9).set_callbacks(Recorder(stop_after=2)).fit(X, y)
        assert found.status_ is Status.STOPPED
        assert 2 <= found.n_iter_ <= 16
        assert_certified(found, X)
        found.set_callbacks().set_params(warm_start=True, tol=1e-6).fit(X, y)
        assert found.status_ is Status.OPTIMAL


@every
class TestProgressLine:
    def test_it_names_the_estimator_and_the_end(self, data, model, capsys):
        found = clone(model).set_params(verbose=1).fit(*data)
        out, err = capsys.readouterr()
        lines = err.strip().splitlines()
        assert out == ""
        assert all(line.startswith(type(found).__name__) for line in lines)
        assert str(Status.OPTIMAL) in lines[-1]

    def test_silent_by_default(self, data, model, capsys):
        clone(model).fit(*data)
        assert capsys.readouterr() == ("", "")
