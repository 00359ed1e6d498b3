"""Models and fits in MLflow, where it is installed."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softmargin import SKOPS_TRUSTED_TYPES, SVC, BlockSMO, LinearSVC, LinearSVCCV, OneClassSVM, SoftmarginError

mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # those of MLflow and what it imports
has_callbacks = hasattr(LinearSVC(), "set_callbacks")


@pytest.fixture(autouse=True)
def _store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")


def test_a_model_with_default_settings():
    from softmargin.mlflow import log_model

    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LinearSVC()).fit(X, y)
    with mlflow.start_run():
        info = log_model(model)
    again = mlflow.sklearn.load_model(info.model_uri)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again[-1].certificate_ == model[-1].certificate_


class TestWithoutOurs:
    """What `docs/ship.md` says of MLflow's own `log_model`."""

    @pytest.fixture(scope="class")
    def fitted(self):
        return make_pipeline(StandardScaler(), LinearSVC()).fit(*load_breast_cancer(return_X_y=True))

    def test_the_default_is_refused_because_of_our_types(self, fitted):
        with mlflow.start_run(), pytest.raises(mlflow.exceptions.MlflowException, match="untrusted types"):
            mlflow.sklearn.log_model(fitted, name="model")

    @pytest.mark.parametrize(
        "settings",
        [
            {"skops_trusted_types": SKOPS_TRUSTED_TYPES},
            {"serialization_format": "pickle"},
            {"serialization_format": "cloudpickle"},
        ],
        ids=str,
    )
    def test_what_it_needs(self, fitted, settings):
        X, _ = load_breast_cancer(return_X_y=True)
        with mlflow.start_run():
            info = mlflow.sklearn.log_model(fitted, name="model", **settings)
        again = mlflow.sklearn.load_model(info.model_uri)
        np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
        assert again[-1].certificate_ == fitted[-1].certificate_
        np.testing.assert_array_equal(mlflow.pyfunc.load_model(info.model_uri).predict(X), fitted.predict(X))


@pytest.mark.parametrize(
    "model",
    [
        SVC(solver=BlockSMO()),
        LinearSVCCV(Cs=[0.1, 1.0], cv=2),
        CalibratedClassifierCV(LinearSVC(), ensemble=False, cv=2),
        OneClassSVM(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_models(model):
    from softmargin.mlflow import log_model

    X, y = load_iris(return_X_y=True)
    model.fit(X, y)
    with mlflow.start_run():
        info = log_model(model)
    np.testing.assert_array_equal(mlflow.sklearn.load_model(info.model_uri).predict(X), model.predict(X))


def test_a_model_that_tune_chose(tmp_path):
    import softmargin
    from softmargin.mlflow import log_model

    model = LinearSVC().fit(*load_iris(return_X_y=True))
    model.search_ = {"measure": "accuracy", "n_folds": 2, "params": {"C": [1.0]}, "score": [0.5]}
    model.search_ |= {"standard_error": [0.0], "support_vectors": [1.0]}
    model.save(tmp_path / "model")
    with mlflow.start_run():
        info = log_model(softmargin.load(tmp_path / "model"))
    assert mlflow.sklearn.load_model(info.model_uri).search_ == model.search_


def test_another_format_and_more_types_by_ours():
    from softmargin.mlflow import log_model

    X, y = load_iris(return_X_y=True)
    model = LinearSVC().fit(X, y)
    for settings in ({"serialization_format": "pickle"}, {"skops_trusted_types": ["builtins.set"]}):
        with mlflow.start_run():
            info = log_model(model, **settings)
        np.testing.assert_array_equal(mlflow.sklearn.load_model(info.model_uri).predict(X), model.predict(X))


@pytest.mark.skipif(not has_callbacks, reason="this scikit-learn has no callbacks")
class TestConvergence:
    @pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
    def test_the_gap_is_logged(self, load):
        from softmargin.mlflow import LogConvergence

        X, y = load(return_X_y=True)
        model = LinearSVC(n_jobs=2).set_callbacks(LogConvergence(min_seconds=0.0))
        with mlflow.start_run() as run:
            model.fit(StandardScaler().fit_transform(X), y)
        traces = model.trace_ if isinstance(model.trace_, list) else [model.trace_]
        for k, trace in enumerate(traces):
            prefix = f"class {k}/" if len(traces) > 1 else ""
            found = mlflow.MlflowClient().get_metric_history(run.info.run_id, f"{prefix}primal")
            assert [metric.step for metric in found] == trace["iteration"][1:].tolist()
            assert found[-1].value == trace[-1].primal

    def test_the_last_one_is_not_left_out(self):
        from softmargin.mlflow import LogConvergence

        X, y = load_breast_cancer(return_X_y=True)
        model = LinearSVC().set_callbacks(LogConvergence(min_seconds=1e9))
        with mlflow.start_run() as run:
            model.fit(StandardScaler().fit_transform(X), y)
        found = mlflow.MlflowClient().get_metric_history(run.info.run_id, "relative_gap")
        assert [metric.step for metric in found] == [1, model.trace_[-1].iteration]

    def test_a_watched_model_can_be_logged(self):
        from softmargin.mlflow import LogConvergence, log_model

        X, y = load_iris(return_X_y=True)
        with mlflow.start_run():
            model = LinearSVC().set_callbacks(LogConvergence()).fit(X, y)
            info = log_model(model)
        again = mlflow.sklearn.load_model(info.model_uri)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))

    def test_without_a_run(self):
        from softmargin.mlflow import LogConvergence

        with pytest.raises(SoftmarginError, match="start_run"):
            LinearSVC().set_callbacks(LogConvergence()).fit(*load_iris(return_X_y=True))
