"""Fits and models in MLflow: needs the packages mlflow and skops.

import mlflow
from softmargin.mlflow import LogConvergence, log_model

with mlflow.start_run():
    model = softmargin.LinearSVC().set_callbacks(LogConvergence()).fit(X, y)
    log_model(model)
"""

import time
from importlib.metadata import version
from typing import Any

from softmargin.core.errors import MissingPackageError, SoftmarginError

try:
    import mlflow
except ModuleNotFoundError as error:
    if error.name != "mlflow":
        raise
    raise MissingPackageError("softmargin.mlflow needs MLflow: pip install mlflow skops.") from error

__all__ = ["LogConvergence", "log_model"]

_METRICS = ("primal", "dual", "gap", "relative_gap")


def log_model(model: Any, name: str = "model", **settings: Any) -> Any:
    """`mlflow.sklearn.log_model` with the types that a model of softmargin consists of as trusted ones.

    Parameters
    ----------
    model : estimator
        Fitted; or a pipeline with one of our estimators, or `CalibratedClassifierCV` around either.
    name : str, default="model"
    **settings
        What else `mlflow.sklearn.log_model` takes; more `skops_trusted_types` are added to ours.

    Returns
    -------
    mlflow.models.model.ModelInfo
        ``mlflow.sklearn.load_model(info.model_uri)`` needs no further settings.
    """
    from softmargin.tasks.records import SKOPS_TRUSTED_TYPES

    more = settings.pop("skops_trusted_types", None) or ()
    callback = f"{LogConvergence.__module__}.{LogConvergence.__name__}"  # it stays with the model that it watched
    trusted = sorted({*SKOPS_TRUSTED_TYPES, callback, *more})
    if not settings.keys() & {"pip_requirements", "extra_pip_requirements", "conda_env"}:
        # without them MLflow loads the model in another process to see what it imports
        names = ("softmargin", "scikit-learn", "numpy", "skops")
        settings["pip_requirements"] = [f"{name}=={version(name)}" for name in names]
    return mlflow.sklearn.log_model(model, name=name, skops_trusted_types=trusted, **settings)


class LogConvergence:
    """A callback that logs objective, dual bound and gap of a fit to MLflow's active run, while the fit is running.

    The metrics are `primal`, `dual`, `gap` and `relative_gap`, with the iteration as the step; of several classes each
    has its own, `class 0/primal` and so on. Callbacks need scikit-learn 1.9: ``model.set_callbacks(LogConvergence())``.

    Parameters
    ----------
    min_seconds : float, default=1.0
        The least time between two entries, because each is written by MLflow at once. The last iteration of a
        sub-problem that was left out is logged at the end.
    """

    def __init__(self, min_seconds: float = 1.0) -> None:
        self.min_seconds = min_seconds

    def setup(self, estimator: Any, context: Any) -> None:
        self._logged: dict[str, float] = {}
        self._left_out: dict[str, Any] = {}
        run = mlflow.active_run()
        if run is None:
            raise SoftmarginError("no MLflow run is active: call fit within mlflow.start_run().")
        self._run_id = run.info.run_id  # MLflow keeps the active run by thread, and classes have threads of their own
        self._client: Any = mlflow.MlflowClient()

    def on_fit_task_begin(self, estimator: Any, context: Any, **_: Any) -> None:
        """Nothing is known yet."""

    def on_fit_task_end(self, estimator: Any, context: Any, **_: Any) -> bool:
        record = getattr(context, "record", None)
        if record is not None:
            title = context.parent.task_name if context.parent is not None else ""
            prefix = f"{title}/" if title.startswith("class ") else ""
            now = time.monotonic()
            if now - self._logged.get(prefix, -self.min_seconds) >= self.min_seconds:
                self._logged[prefix] = now
                self._left_out.pop(prefix, None)
                self._log(prefix, record)
            else:
                self._left_out[prefix] = record
        return False

    def teardown(self, estimator: Any, context: Any) -> None:
        for prefix, record in self._left_out.items():
            self._log(prefix, record)
        self._client = None  # the model keeps this callback, and may be stored
        self._left_out.clear()

    def _log(self, prefix: str, record: Any) -> None:
        now = int(1000 * time.time())
        metrics = [
            mlflow.entities.Metric(prefix + name, float(getattr(record, name)), now, record.iteration)
            for name in _METRICS
        ]
        self._client.log_batch(self._run_id, metrics=metrics)
