"""Models and fits in MLflow, where it is installed."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softmargin import LinearSVC, SoftmarginError

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
