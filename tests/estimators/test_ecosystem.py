"""LinearSVC among scikit-learn's tools, data frames, metadata routing, callbacks and progress lines."""

import re
import threading

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from softmargin import LinearSVC, Status, certify


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


class TestMetaEstimators:
    def test_pipeline(self, cancer):
        X, y = cancer
        pipe = make_pipeline(StandardScaler(), LinearSVC()).fit(X, y)
        model = pipe[-1]
        scaled = pipe[:-1].transform(X)
        assert certify(model, scaled, y).relative_gap <= 1e-3
        np.testing.assert_array_equal(pipe.predict(X), model.predict(scaled))

    def test_weights_through_a_pipeline(self, cancer):
        X, y = cancer
        weights = np.linspace(0.5, 1.5, len(y))
        pipe = Pipeline([("scale", StandardScaler()), ("svc", LinearSVC())])
        pipe.fit(X, y, svc__sample_weight=weights)
        alone = LinearSVC().fit(StandardScaler().fit_transform(X), y, weights)
        np.testing.assert_array_equal(pipe["svc"].coef_, alone.coef_)

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_grid_search_over_C(self, cancer, n_jobs):
        X, y = cancer
        X = StandardScaler().fit_transform(X)
        search = GridSearchCV(LinearSVC(), {"C": [1e-3, 1e-1, 10.0]}, cv=3, n_jobs=n_jobs)
        with joblib.parallel_config("threading"):
            search.fit(X, y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        best = search.best_estimator_
        assert search.best_params_["C"] == best.C
        np.testing.assert_array_equal(best.coef_, LinearSVC(best.C).fit(X, y).coef_)

    def test_grid_search_over_solvers(self, binary):
        X, y = binary
        search = GridSearchCV(LinearSVC(), {"solver": ["ocas", "cpa"], "intercept": ["free", "penalised"]}, cv=2)
        search.fit(X, y)
        assert len(search.cv_results_["params"]) == 4
        assert search.best_estimator_.certificate_.relative_gap <= 1e-3

    @pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
    def test_calibration(self, cancer, method):
        X, y = cancer
        X = StandardScaler().fit_transform(X)
        model = CalibratedClassifierCV(LinearSVC(), method=method, cv=3).fit(X, y)
        probabilities = model.predict_proba(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        assert probabilities.min() >= 0.0
        # A calibrated score ranks as the decision function does.
        order = np.corrcoef(probabilities[:, 1], LinearSVC().fit(X, y).decision_function(X))[0, 1]
        assert order > 0.7

    def test_cross_validation(self):
        X, y = load_iris(return_X_y=True)
        scores = cross_val_score(LinearSVC(), X, y, cv=3)
        assert scores.shape == (3,)
        found = cross_validate(LinearSVC(), X, y, cv=3, return_estimator=True, return_indices=True)
        for model, rows, score in zip(found["estimator"], found["indices"]["test"], scores, strict=True):
            assert model.certificate_.relative_gap <= 1e-3
            assert model.score(X[rows], y[rows]) == score

    def test_one_vs_rest_agrees_with_our_own(self):
        X, y = load_iris(return_X_y=True)
        own, wrapped = LinearSVC().fit(X, y), OneVsRestClassifier(LinearSVC()).fit(X, y)
        np.testing.assert_array_equal(own.coef_, np.vstack([part.coef_ for part in wrapped.estimators_]))

    def test_repr_shows_what_was_changed(self):
        assert repr(LinearSVC(C=2.0, solver="cpa")) == "LinearSVC(C=2.0, solver='cpa')"
        assert "LinearSVC" in LinearSVC()._repr_html_()


class TestFrames:
    def check(self, frame, X, y, names):
        model = LinearSVC().fit(frame, y)
        assert model.feature_names_in_.tolist() == names
        np.testing.assert_allclose(model.coef_, LinearSVC().fit(X, y).coef_, rtol=1e-6)  # the order may differ
        np.testing.assert_allclose(
            np.ravel(model.decision_function(frame)), np.ravel(X @ model.coef_.T + model.intercept_)
        )
        return model

    def test_pandas(self):
        pd = pytest.importorskip("pandas", reason="pandas is not installed")
        data = load_breast_cancer(as_frame=True)
        names = list(data.data.columns)
        model = self.check(data.data, data.data.to_numpy(), data.target, names)
        labels = pd.Series(np.where(data.target == 1, "benign", "malignant"))
        weights = pd.Series(np.linspace(0.5, 2, len(labels)), index=labels.index[::-1])
        named = LinearSVC().fit(data.data, labels, sample_weight=weights)
        assert named.classes_.tolist() == ["benign", "malignant"]
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(data.data[names[::-1]])

    def test_pandas_with_mixed_number_types(self, binary):
        pd = pytest.importorskip("pandas", reason="pandas is not installed")
        X, y = binary
        frame = pd.DataFrame({"a": X[:, 0], "b": (X[:, 1] > 0), "c": np.round(3 * X[:, 2]).astype(int)})
        plain = np.column_stack([X[:, 0], X[:, 1] > 0, np.round(3 * X[:, 2])])
        self.check(frame, plain, y, ["a", "b", "c"])

    def test_pandas_nullable_types_with_a_missing_value(self, binary):
        pd = pytest.importorskip("pandas", reason="pandas is not installed")
        X, y = binary
        frame = pd.DataFrame({"a": X[:, 0], "b": pd.array([None, *range(len(y) - 1)], dtype="Int64")})
        with pytest.raises(ValueError, match="NaN"):
            LinearSVC().fit(frame, y)

    def test_polars(self):
        pl = pytest.importorskip("polars", reason="polars is not installed")
        data = load_iris()
        names = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
        frame = pl.DataFrame(data.data, schema=names)
        self.check(frame, data.data, data.target, names)
        labels = pl.Series("kind", data.target_names[data.target].tolist())
        model = LinearSVC().fit(frame, labels, sample_weight=pl.Series(np.ones(len(labels))))
        assert model.classes_.tolist() == sorted(data.target_names.tolist())
        assert certify(model, frame, labels).relative_gap <= 1e-3


class TestMetadataRouting:
    @pytest.fixture(autouse=True)
    def _routing(self):
        with sklearn.config_context(enable_metadata_routing=True):
            yield

    def test_sample_weight_reaches_fit_where_it_is_asked_for(self, binary):
        X, y = binary
        weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
        svc = LinearSVC().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipe = make_pipeline(scaler, svc).fit(X, y, sample_weight=weights)
        alone = LinearSVC().fit(StandardScaler().fit_transform(X), y, weights)
        np.testing.assert_array_equal(pipe[-1].coef_, alone.coef_)

    def test_sample_weight_reaches_the_folds_of_a_search(self, binary):
        X, y = binary
        weights = np.where(np.arange(len(y)) % 2 == 0, 1.0, 0.0)
        svc = LinearSVC().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(svc, {"C": [0.1, 1.0]}, cv=2).fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(search.best_estimator_.dual_[weights == 0], 0.0)

    def test_a_weight_nobody_asked_for_is_refused(self, binary):
        X, y = binary
        with pytest.raises(ValueError, match="sample_weight"):
            GridSearchCV(LinearSVC(), {"C": [1.0]}, cv=2).fit(X, y, sample_weight=np.ones(len(y)))


try:
    import sklearn.callback as callbacks
except ImportError:
    callbacks = None

needs_callbacks = pytest.mark.skipif(callbacks is None, reason="this scikit-learn has no sklearn.callback")


class Recorder:
    """Counts its calls, keeps the models it is shown, and asks to stop after `stop_after` iterations."""

    def __init__(self, stop_after=None, keep_models=False):
        self.stop_after, self.keep_models = stop_after, keep_models
        self.events, self.models, self.metadata = [], [], []
        self._lock = threading.Lock()

    def setup(self, estimator, context):
        self.events.append("setup")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        with self._lock:
            self.events.append(("begin", context.task_name))
            self.metadata.append(metadata)

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        with self._lock:
            self.events.append(("end", context.task_name))
            if self.keep_models and fitted_estimator is not None:
                self.models.append(fitted_estimator)
        return self.stop_after is not None and self.count("end", "iteration") >= self.stop_after

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def count(self, kind, name):
        return self.events.count((kind, name))


@needs_callbacks
class TestCallbacks:
    def test_every_iteration_is_a_task(self, binary):
        X, y = binary
        recorder = Recorder()
        model = LinearSVC().set_callbacks(recorder).fit(X, y)
        assert recorder.events[:2] == ["setup", ("begin", "fit")]
        assert recorder.events[-2:] == [("end", "fit"), "teardown"]
        assert recorder.count("begin", "iteration") == recorder.count("end", "iteration") == model.n_iter_

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_several_classes_are_tasks_with_iterations(self, three_classes, n_jobs):
        X, y = three_classes
        recorder = Recorder()
        model = LinearSVC(n_jobs=n_jobs).set_callbacks(recorder).fit(X, y)
        iterations = sum(trace[-1].iteration for trace in model.trace_)
        assert recorder.count("end", "iteration") == iterations
        assert len([e for e in recorder.events if e[0] == "begin" and e[1].startswith("class")]) == 3

    def test_watching_changes_nothing(self, three_classes):
        X, y = three_classes
        watched = LinearSVC().set_callbacks(Recorder(keep_models=True)).fit(X, y)
        np.testing.assert_array_equal(watched.coef_, LinearSVC().fit(X, y).coef_)

    @pytest.mark.parametrize("options", [{}, {"intercept": "penalised"}, {"fit_intercept": False}], ids=str)
    @pytest.mark.parametrize("data", ["binary", "wide"])
    def test_the_models_shown_get_better_and_end_with_the_result(self, request, data, options):
        X, y = request.getfixturevalue(data)
        recorder = Recorder(keep_models=True)
        model = LinearSVC(**options).set_callbacks(recorder).fit(X, y)
        signs = np.where(y == 1, 1.0, -1.0)

        def value(shown):
            w, b = shown.coef_[0], shown.intercept_[0]
            penalty = 0.5 * b * b if options.get("intercept") == "penalised" else 0.0
            return 0.5 * w @ w + penalty + np.maximum(0.0, 1.0 - signs * (X @ w + b)).sum()

        values = np.array([value(shown) for shown in recorder.models])
        assert len(values) == model.n_iter_ + 1
        np.testing.assert_allclose(values[:-1], model.trace_["primal"][1:], rtol=1e-9)
        np.testing.assert_array_equal(recorder.models[-1].coef_, model.coef_)
        np.testing.assert_array_equal(recorder.models[-1].predict(X), model.predict(X))

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_a_callback_can_stop_the_fit_without_a_warning(self, binary, n_jobs):
        X, y = binary
        model = LinearSVC(solver="ocas", tol=1e-9, n_jobs=n_jobs).set_callbacks(Recorder(stop_after=4)).fit(X, y)
        assert model.status_ is Status.STOPPED
        assert model.n_iter_ == 4
        assert certify(model, X, y).relative_gap == pytest.approx(model.certificate_.relative_gap)
        model.set_callbacks().set_params(warm_start=True).fit(X, y)
        np.testing.assert_array_equal(model.coef_, LinearSVC(solver="ocas", tol=1e-9).fit(X, y).coef_)

    def test_stopping_one_class_goes_on_with_the_next(self, three_classes):
        X, y = three_classes
        model = LinearSVC(solver="ocas", tol=1e-9).set_callbacks(Recorder(stop_after=4)).fit(X, y)
        assert model.status_ is Status.STOPPED
        assert [trace[-1].iteration for trace in model.trace_] == [4, 1, 1]

    def test_sample_weights_are_metadata(self, binary):
        X, y = binary
        weights = np.linspace(1, 2, len(y))
        recorder = Recorder()
        LinearSVC().set_callbacks(recorder).fit(X, y, weights)
        for metadata in recorder.metadata:
            np.testing.assert_array_equal(metadata["sample_weight"], weights)

    @pytest.mark.parametrize("max_iter", [3, None])
    def test_max_iter_and_warm_start_with_callbacks(self, binary, max_iter):
        X, y = binary
        model = LinearSVC(solver="ocas", tol=1e-2, warm_start=True).set_callbacks(Recorder()).fit(X, y)
        before = model.n_iter_
        recorder = Recorder()
        model.set_callbacks(recorder).set_params(tol=1e-9, max_iter=max_iter)
        if max_iter is None:
            model.fit(X, y)
        else:
            with pytest.warns(match="max_iter"):
                model.fit(X, y)
        assert recorder.count("end", "iteration") == model.n_iter_ - before

    def test_teardown_after_an_error_in_a_callback(self, binary):
        class Broken(Recorder):
            def on_fit_task_end(self, estimator, context):
                raise RuntimeError("the callback broke")

        broken = Broken()
        with pytest.raises(RuntimeError, match="the callback broke"):
            LinearSVC().set_callbacks(broken).fit(*binary)
        assert broken.events[-1] == "teardown"

    @pytest.mark.parametrize("data", ["binary", "three_classes"])
    def test_scoring_monitor(self, request, data):
        X, y = request.getfixturevalue(data)
        monitor = callbacks.ScoringMonitor(scoring="accuracy")
        model = LinearSVC().set_callbacks(monitor).fit(X, y)
        rows = monitor.get_logs().data
        assert rows
        scores = [row["accuracy"] for row in rows if "accuracy" in row]
        assert len(scores) >= model.n_iter_
        assert model.score(X, y) in scores

    @pytest.mark.parametrize("data", ["binary", "three_classes"])
    def test_progress_bar(self, request, data, capsys):
        pytest.importorskip("rich", reason="ProgressBar needs rich")
        X, y = request.getfixturevalue(data)
        model = LinearSVC(n_jobs=2).set_callbacks(callbacks.ProgressBar()).fit(X, y)
        assert model.status_ is Status.OPTIMAL
        assert "LinearSVC" in capsys.readouterr().out

    def test_progress_bar_of_a_pipeline(self, binary, capsys):
        pytest.importorskip("rich", reason="ProgressBar needs rich")
        X, y = binary
        pipe = make_pipeline(StandardScaler(), LinearSVC()).set_callbacks(callbacks.ProgressBar())
        pipe.fit(X, y)
        assert "LinearSVC" in capsys.readouterr().out


NUMBER = r"[-+]?\d\.\d+e[-+]\d+"
LINE = re.compile(rf"\d s  iteration +\d+ +primal {NUMBER} +bound {NUMBER} +gap \S+ \(\S+\)$")


class TestProgressLine:
    def test_two_classes(self, binary, capsys):
        LinearSVC(verbose=1).fit(*binary)
        out, err = capsys.readouterr()
        assert out == ""
        lines = err.strip().splitlines()
        shown = [line for line in lines if LINE.search(line)]
        assert len(shown) >= 3  # whenever the gap has fallen to a tenth
        assert all(line.startswith("LinearSVC") for line in lines)
        assert str(Status.OPTIMAL) in lines[-1]

    def test_the_last_line_shows_the_gap_that_was_reached(self, binary, capsys):
        model = LinearSVC(verbose=1, tol=1e-5).fit(*binary)
        shown = [line for line in capsys.readouterr().err.splitlines() if LINE.search(line)]
        iteration, primal, bound = re.search(
            rf"iteration +(\d+) +primal ({NUMBER}) +bound ({NUMBER})", shown[-1]
        ).groups()
        assert int(iteration) == model.n_iter_
        assert float(primal) == pytest.approx(model.certificate_.primal, rel=1e-3)
        assert float(bound) == pytest.approx(model.certificate_.dual, rel=1e-3)

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_several_classes_name_theirs(self, three_classes, n_jobs, capsys):
        X, y = three_classes
        LinearSVC(verbose=1, n_jobs=n_jobs).fit(X, np.array(["red", "green", "blue"])[y])
        err = capsys.readouterr().err
        for name in ("red", "green", "blue"):
            assert re.search(rf"class {name} .*iteration", err)
        assert err.count(str(Status.OPTIMAL)) == 3

    def test_silent_by_default(self, binary, capsys):
        LinearSVC().fit(*binary)
        assert capsys.readouterr() == ("", "")

    def test_a_fit_that_stops_early_says_so(self, binary, capsys):
        with pytest.warns(match="max_iter"):
            LinearSVC(verbose=1, max_iter=2, tol=1e-9).fit(*binary)
        assert str(Status.MAX_ITER) in capsys.readouterr().err
