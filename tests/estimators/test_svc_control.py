"""SVC stopped, resumed, interrupted and watched, and among scikit-learn's tools."""

import pickle
import re
import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softmargin import IPM, SMO, SVC, ActiveSet, BlockSMO, ConvergenceWarning, Status

SMALL = BlockSMO(size=16)  # so that small problems take many rounds


def fit_quietly(model, X, y, sample_weight=None):
    """Fit, and let a warning about the gap pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, sample_weight)


def assert_same_model(found, expected):
    np.testing.assert_array_equal(found.support_, expected.support_)
    np.testing.assert_array_equal(found.dual_coef_, expected.dual_coef_)
    np.testing.assert_array_equal(found.intercept_, expected.intercept_)


def assert_certified(model):
    assert np.isfinite(model.certificate_.primal)
    assert model.certificate_.gap >= -1e-9 * model.certificate_.primal
    assert model.fit_status_ == (0 if model.status_.reached_goal else 1)


class TestLimits:
    def test_max_iter_warns_once_with_the_gap_its_meaning_and_the_remedy(self, binary):
        X, y = binary
        with pytest.warns() as caught:
            model = SVC(10.0, solver=SMALL, max_iter=3, tol=1e-6).fit(X, y)
        assert len(caught) == 1
        assert issubclass(caught[0].category, ConvergenceWarning)
        assert issubclass(caught[0].category, SklearnConvergenceWarning)
        assert caught[0].filename == __file__
        text, gap = str(caught[0].message), model.certificate_.relative_gap
        assert f"relative duality gap is {gap:.2g} (tol=1e-06)" in text
        assert f"at most {100 * gap:.3g} % of its value above the optimum" in text
        assert "raise max_iter (now 3)" in text
        assert "warm_start=True" in text
        assert model.status_ is Status.MAX_ITER
        assert (model.n_iter_.tolist(), model.fit_status_) == ([3], 1)
        assert gap > 1e-6

    def test_the_kkt_rule_names_its_violation(self, binary):
        X, y = binary
        with pytest.warns(ConvergenceWarning) as caught:
            model = SVC(10.0, solver=SMALL, max_iter=3, tol=1e-6, stopping="kkt").fit(X, y)
        assert f"KKT violation is {model.certificate_.kkt_violation:.2g} (tol=1e-06)" in str(caught[0].message)

    def test_the_rule_by_gain(self, binary):
        X, y = binary
        asked = SVC(10.0, stopping="gain", working_set="hybrid_maximum_gain").fit(X, y)
        own = SVC(10.0, solver=SMO(rule="hybrid_maximum_gain", stopping="gain")).fit(X, y)
        assert_same_model(own, asked)
        assert asked.status_ is Status.OPTIMAL
        assert asked.certificate_.kkt_violation <= 1e-3
        with pytest.warns(ConvergenceWarning, match=r"shorter than tol.*KKT violation is .*leave out strict=False"):
            early = SVC(10.0, solver=SMO(rule="hybrid_maximum_gain", stopping="gain", strict=False)).fit(X, y)
        assert early.status_ is Status.SMALL_STEP
        assert early.n_iter_[0] < asked.n_iter_[0]

    @pytest.mark.parametrize("make", [BlockSMO, SMO, ActiveSet, IPM])
    def test_the_stop_rule_of_a_solver_object_counts(self, binary, make):
        X, y = binary
        kernel = "linear" if make is IPM else "rbf"
        for tol in (1e-1, 1e-6):
            asked = SVC(kernel=kernel, tol=tol, stopping="kkt", solver=make()).fit(X, y)
            own = SVC(kernel=kernel, tol=tol, solver=make(stopping="kkt")).fit(X, y)
            assert_same_model(own, asked)
            assert own.certificate_.kkt_violation <= tol

    def test_what_rounding_does_not_allow_is_not_to_be_got_by_a_larger_tol(self, binary):
        X, y = binary
        with pytest.warns(ConvergenceWarning) as caught:
            SVC(tol=0.0).fit(X, y)
        text = str(caught[0].message)
        assert "Rounding in double precision allows no more: accept this by a larger tol, scale the features" in text
        assert "To get closer" not in text

    def test_the_message_bounds_the_objective(self, binary):
        X, y = binary
        optimum = SVC(10.0, tol=1e-8).fit(X, y).certificate_
        stopped = fit_quietly(SVC(10.0, solver=SMALL, max_iter=4), X, y).certificate_
        assert stopped.primal - optimum.primal <= stopped.relative_gap * stopped.primal
        assert stopped.dual <= optimum.primal

    @pytest.mark.parametrize("data", ["binary", "three_classes"])
    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_max_seconds(self, request, data, n_jobs):
        X, y = request.getfixturevalue(data)
        with pytest.warns(ConvergenceWarning, match=r"raise max_seconds \(now 1e-09\)") as caught:
            model = SVC(max_seconds=1e-9, tol=1e-9, n_jobs=n_jobs).fit(X, y)
        assert len(caught) == 1
        assert model.status_ is Status.MAX_SECONDS
        assert model.predict(X).shape == y.shape
        assert_certified(model)

    def test_generous_limits_change_nothing(self, three_classes):
        X, y = three_classes
        limited = SVC(max_iter=10**6, max_seconds=1e6).fit(X, y)
        assert_same_model(limited, SVC().fit(X, y))
        assert limited.status_ is Status.OPTIMAL

    @pytest.mark.parametrize("stopping", ["gap", "kkt"])
    def test_a_goal_below_rounding_ends_with_an_honest_status(self, binary, stopping):
        X, y = binary
        model = fit_quietly(SVC(tol=0.0, stopping=stopping), X, y)
        assert model.status_ in (Status.OPTIMAL, Status.STALLED, Status.UNCONFIRMED)
        assert model.certificate_.relative_gap <= 1e-9


@pytest.mark.parametrize("data", ["binary", "three_classes"])
class TestResume:
    def test_goes_on_where_it_stopped(self, request, data):
        """Kernel values are computed anew, in other groups, so that their last bits may differ."""
        X, y = request.getfixturevalue(data)
        whole = SVC(10.0, tol=1e-8, solver=SMALL).fit(X, y)
        model = fit_quietly(SVC(10.0, tol=1e-8, solver=SMALL, max_iter=5), X, y)
        assert model.n_iter_.max() == 5
        model = pickle.loads(pickle.dumps(model)).set_params(warm_start=True, max_iter=None, n_jobs=2).fit(X, y)
        assert model.status_ is Status.OPTIMAL
        assert np.all(np.abs(model.n_iter_ - whole.n_iter_) <= 0.3 * whole.n_iter_ + 5)
        np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), atol=1e-4)

    def test_a_finished_fit_has_nothing_left_to_do(self, request, data):
        X, y = request.getfixturevalue(data)
        model = SVC(solver=SMALL, warm_start=True).fit(X, y)
        done, before = model.n_iter_.copy(), clone(model).fit(X, y)
        np.testing.assert_array_equal(model.fit(X, y).n_iter_, done)
        assert_same_model(model, before)

    def test_after_a_time_limit(self, request, data):
        X, y = request.getfixturevalue(data)
        model = fit_quietly(SVC(tol=1e-6, max_seconds=1e-9), X, y)
        model.set_params(warm_start=True, max_seconds=None).fit(X, y)
        assert model.certificate_.relative_gap <= 1e-6


class TestWarmStart:
    @pytest.mark.parametrize("data", ["binary", "three_classes"])
    @pytest.mark.parametrize("change", [{"C": 0.5}, {"C": 2.0}, {"gamma": 0.13}, {"tol": 1e-9}], ids=str)
    def test_with_other_parameters_takes_fewer_steps(self, request, data, change, same_optimum):
        X, y = request.getfixturevalue(data)
        options = {"C": 1.0, "gamma": 0.12, "tol": 1e-6, "solver": SMALL}
        cold = SVC(**(options | change)).fit(X, y)
        model = SVC(**options, warm_start=True).fit(X, y)
        before = model.counts_["pair_steps"]
        model.set_params(**change).fit(X, y)
        assert model.status_ is Status.OPTIMAL
        assert same_optimum(model.certificate_, cold.certificate_)
        own = (
            [trace["dual"][0] for trace in model.trace_]
            if isinstance(model.trace_, list)
            else [model.trace_["dual"][0]]
        )
        assert min(own) > 0  # not from zero
        assert model.counts_["pair_steps"] < cold.counts_["pair_steps"] + before

    @pytest.mark.parametrize("factor", [1e-4, 1e3])
    def test_at_a_C_far_away_is_still_certified(self, binary, factor, same_optimum):
        X, y = binary
        model = SVC(1.0, warm_start=True).fit(X, y).set_params(C=factor).fit(X, y)
        assert model.certificate_.relative_gap <= 1e-3
        assert same_optimum(model.certificate_, SVC(factor).fit(X, y).certificate_)

    @pytest.mark.parametrize("data", ["binary", "three_classes"])
    @pytest.mark.parametrize("change", ["data", "labels", "weights", "one entry", "kernel", "fewer rows"])
    def test_on_another_problem_is_still_certified(self, request, data, change, same_optimum):
        X, y = request.getfixturevalue(data)
        model = SVC(tol=1e-6, warm_start=True).fit(X, y)
        weights = None
        X, y = X.copy(), y.copy()
        if change == "data":
            X = X[::-1] * 1.3
        elif change == "labels":
            y[::5] = (y[::5] + 1) % (y.max() + 1)
        elif change == "weights":
            weights = np.arange(len(y)) % 3.0
        elif change == "one entry":
            X[7, 3] += 40.0
        elif change == "kernel":
            model.set_params(kernel="laplacian")
        else:
            X, y = X[:-20], y[:-20]
        model.fit(X, y, weights)
        cold = clone(model).fit(X, y, weights)
        assert model.status_ is Status.OPTIMAL
        assert model.certificate_.relative_gap <= 1e-6
        assert same_optimum(model.certificate_, cold.certificate_)

    def test_with_a_tol_that_needs_double_precision(self):
        """The first fit kept float32 rows, and so is its f = K beta: it must be summed anew."""
        rng = np.random.default_rng(0)
        X = rng.standard_normal((1100, 4))
        y = (X[:, 0] + 0.8 * rng.standard_normal(1100) > 0).astype(int)
        model = SVC(warm_start=True).fit(X, y)
        model.set_params(tol=1e-9).fit(X, y)
        assert model.status_ is Status.OPTIMAL
        assert model.certificate_.relative_gap <= 1e-9
        assert model.trace_["dual"][0] > 0

    def test_with_other_classes_starts_afresh(self, binary, three_classes):
        model = SVC(warm_start=True).fit(*three_classes)
        assert_same_model(model.fit(*binary), SVC().fit(*binary))

    def test_with_another_solver(self, three_classes, same_optimum):
        X, y = three_classes
        model = fit_quietly(SVC(tol=1e-5, solver=SMALL, max_iter=3, warm_start=True), X, y)
        model.set_params(solver="smo", max_iter=None).fit(X, y)
        assert model.certificate_.relative_gap <= 1e-5
        assert same_optimum(model.certificate_, SVC(tol=1e-5).fit(X, y).certificate_)

    def test_off_means_that_earlier_fits_leave_no_trace(self, binary):
        X, y = binary
        model = fit_quietly(SVC(solver=SMALL, max_iter=3), X, y)
        assert hasattr(model, "_state")
        model.set_params(max_iter=None).fit(X, y)
        assert_same_model(model, SVC(solver=SMALL).fit(X, y))
        assert not hasattr(model, "_state")


@pytest.fixture
def interrupting(monkeypatch):
    """Sends SIGINT to the main thread, as Ctrl-C does, in the call number `at` of a method of BlockSMO."""

    def arm(at, method="step"):
        original, calls = getattr(BlockSMO, method), []

        def watched(self, *args):
            calls.append(method)
            if len(calls) == at:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                if threading.current_thread() is not threading.main_thread():
                    time.sleep(0.2)  # the main thread hears it when it runs next
            return original(self, *args)

        monkeypatch.setattr(BlockSMO, method, watched)

    return arm


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="Ctrl-C cannot be sent to a thread on this system")
class TestInterrupt:
    @pytest.mark.parametrize("data", ["binary", "three_classes"])
    @pytest.mark.parametrize("n_jobs", [1, 2])
    @pytest.mark.parametrize("at", [1, 4])
    def test_leaves_a_certified_model_and_raises_again(self, request, interrupting, data, n_jobs, at):
        X, y = request.getfixturevalue(data)
        model = SVC(10.0, tol=1e-6, solver=SMALL, n_jobs=n_jobs)
        interrupting(at)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert model.status_ is Status.INTERRUPTED
        assert model.predict(X).shape == y.shape
        assert_certified(model)
        model.set_params(warm_start=True).fit(X, y)
        assert model.status_ is Status.OPTIMAL

    def test_keeps_the_pairs_that_are_done(self, three_classes, interrupting):
        X, y = three_classes
        model = SVC(tol=1e-6)
        interrupting(2, "init")
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert model.status_ is Status.INTERRUPTED
        assert [part.relative_gap <= 1e-6 for part in model.certificates_] == [True, False, False]

    def test_leaves_the_handler_of_ctrl_c_as_it_was(self, binary, interrupting):
        before = signal.getsignal(signal.SIGINT)
        interrupting(2)
        with pytest.raises(KeyboardInterrupt):
            SVC(10.0, tol=1e-9, solver=SMALL).fit(*binary)
        assert signal.getsignal(signal.SIGINT) is before


class TestSideBySide:
    def test_python_threads(self, binary, three_classes):
        jobs = [binary, three_classes] * 3
        alone = [SVC(solver=SMALL).fit(*job) for job in jobs[:2]]
        with ThreadPoolExecutor(3) as pool:
            together = list(pool.map(lambda job: SVC(solver=SMALL, n_jobs=2).fit(*job), jobs))
        for k, model in enumerate(together):
            assert_same_model(model, alone[k % 2])

    @pytest.mark.parametrize("n_jobs", [2, 3])
    @pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
    def test_the_number_of_threads_changes_no_bit(self, three_classes, n_jobs, make):
        X, y = three_classes
        for options in ({"solver": SMALL}, {"solver": "smo"}):
            one, more = (SVC(**options, n_jobs=n).fit(make(X), y) for n in (1, n_jobs))
            assert_same_model(more, one)
            assert more.certificates_ == one.certificates_
            assert more.counts_ == one.counts_


class TestTools:
    @pytest.mark.parametrize("data", ["binary", "three_classes"])
    def test_pickle_and_clone(self, request, data):
        X, y = request.getfixturevalue(data)
        model = SVC(2.0, solver=SMALL, gamma=0.2).fit(X, y)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
        assert again.certificates_ == model.certificates_
        fresh = clone(model)
        assert fresh.get_params() == model.get_params()
        assert not hasattr(fresh, "dual_coef_")
        assert repr(SVC(2.0, kernel="linear")) == "SVC(C=2.0, kernel='linear')"

    def test_search_over_a_pipeline(self):
        X, y = load_iris(return_X_y=True)
        pipe = make_pipeline(StandardScaler(), SVC())
        grid = {"svc__C": [0.1, 10.0], "svc__gamma": ["scale", 0.1], "svc__kernel": ["rbf", "laplacian"]}
        search = GridSearchCV(pipe, grid, cv=2).fit(X, y)
        assert search.best_score_ > 0.9
        assert search.best_estimator_[-1].certificate_.relative_gap <= 1e-3

    def test_cross_validation_cuts_a_precomputed_matrix_both_ways(self):
        X, y = load_iris(return_X_y=True)
        by_matrix = cross_val_score(SVC(kernel="precomputed"), rbf_kernel(X, gamma=0.5), y, cv=3)
        np.testing.assert_array_equal(by_matrix, cross_val_score(SVC(gamma=0.5), X, y, cv=3))

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_calibration(self, n_classes):
        X, y = load_iris(return_X_y=True)
        X, y = X[y < n_classes], y[y < n_classes]
        model = CalibratedClassifierCV(SVC(), cv=3).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
        assert model.score(X, y) > 0.9

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_decision_boundary(self, n_classes):
        pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is an extra")
        X, y = load_iris(return_X_y=True)
        X, y = X[y < n_classes, :2], y[y < n_classes]
        display = DecisionBoundaryDisplay.from_estimator(SVC().fit(X, y), X, grid_resolution=20)
        assert display.response.shape[:2] == (20, 20)
        pyplot.close("all")

    def test_frames(self):
        pytest.importorskip("pandas", reason="pandas is not installed")
        data = load_iris(as_frame=True)
        model = SVC().fit(data.data, data.target)
        assert model.feature_names_in_.tolist() == list(data.data.columns)
        plain = SVC().fit(data.data.to_numpy(), data.target)
        np.testing.assert_allclose(model.decision_function(data.data), plain.decision_function(data.data.to_numpy()))


try:
    import sklearn.callback as callbacks
except ImportError:
    callbacks = None


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
class TestCallbacks:
    @pytest.mark.parametrize("data", ["binary", "three_classes"])
    def test_they_are_shown_models_and_change_nothing(self, request, data):
        X, y = request.getfixturevalue(data)
        recorder = Recorder()
        model = SVC(10.0, solver=SMALL).set_callbacks(recorder).fit(X, y)
        assert_same_model(model, SVC(10.0, solver=SMALL).fit(X, y))
        assert recorder.iterations == model.n_iter_.sum()
        assert len(recorder.models) >= recorder.iterations
        scores = [shown.score(X, y) for shown in recorder.models]
        assert scores[-1] == model.score(X, y)
        assert_same_model(recorder.models[-1], model)

    def test_one_can_stop_the_fit_without_a_warning(self, binary):
        X, y = binary
        model = SVC(10.0, solver=SMALL, tol=1e-9).set_callbacks(Recorder(stop_after=4)).fit(X, y)
        assert model.status_ is Status.STOPPED
        assert model.n_iter_.tolist() == [4]
        assert_certified(model)
        model.set_callbacks().set_params(warm_start=True).fit(X, y)
        assert model.status_ is Status.OPTIMAL


class TestProgressLine:
    def test_two_classes(self, binary, capsys):
        model = SVC(10.0, solver=SMALL, verbose=1).fit(*binary)
        out, err = capsys.readouterr()
        lines = err.strip().splitlines()
        assert out == ""
        assert all(line.startswith("SVC") for line in lines)
        iterations = [int(found) for found in re.findall(r"iteration +(\d+) ", err)]
        gaps = [float(found) for found in re.findall(r"gap (\S+) ", err)]
        assert iterations[0] == 0
        assert iterations == sorted(set(iterations))
        assert 0 < iterations[-1] <= model.n_iter_[0]
        assert gaps[-1] <= 10 * model.tol  # there is a line for every factor of ten, not always for the end
        assert str(Status.OPTIMAL) in lines[-1]

    def test_several_classes_name_their_pair(self, three_classes, capsys):
        X, y = three_classes
        SVC(verbose=1).fit(X, np.array(["red", "green", "blue"])[y])
        err = capsys.readouterr().err
        for pair in ("blue against green", "blue against red", "green against red"):
            assert f"SVC {pair}" in err
        assert err.count(str(Status.OPTIMAL)) == 3

    def test_silent_by_default(self, binary, capsys):
        SVC().fit(*binary)
        assert capsys.readouterr() == ("", "")
