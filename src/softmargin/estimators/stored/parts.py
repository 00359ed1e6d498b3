"""The records of what predicts as one: of one model, or of a calibration's models, one for each fold."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from softmargin.core.errors import SoftmarginError
from softmargin.estimators.persistence import record_of
from softmargin.estimators.stored.surroundings import calibration_arrays, unwrapped
from softmargin.io.record import Calibration, ModelRecord
from softmargin.tasks.records import task_behind


def records_of(model: Any) -> list[ModelRecord]:
    """Records for a graph: whose probabilities are averaged if there are several."""
    if hasattr(model, "best_estimator_"):
        return records_of(model.best_estimator_)
    check_is_fitted(model)
    inner = model[-1] if isinstance(model, Pipeline) else model
    if hasattr(inner, "best_estimator_"):
        return records_of(Pipeline([*model.steps[:-1], (model.steps[-1][0], inner.best_estimator_)]))
    if not isinstance(inner, CalibratedClassifierCV) or len(inner.calibrated_classifiers_) == 1:
        refuse_functions(unwrapped(model).model)
        return [record_of(model)]
    scalers = model.steps[:-1] if isinstance(model, Pipeline) else []
    return [_of_fold(scalers, inner, part) for part in inner.calibrated_classifiers_]


def _of_fold(scalers: list[Any], outer: CalibratedClassifierCV, part: Any) -> ModelRecord:
    steps = part.estimator.steps if isinstance(part.estimator, Pipeline) else [("model", part.estimator)]
    refuse_functions(steps[-1][1])
    if not np.array_equal(outer.classes_, steps[-1][1].classes_):
        raise SoftmarginError(
            "a fold of the calibration lacks some of the classes: use fewer folds, or folds by class, which "
            "CalibratedClassifierCV(cv=5) makes."
        )
    names = {name for name, _ in steps}
    before = [(name if name not in names else f"{name}-before", scaler) for name, scaler in scalers]
    record = record_of(Pipeline([*before, *steps]) if before or len(steps) > 1 else steps[-1][1])
    return replace(record, calibration=Calibration(part.method, calibration_arrays(part)))


def refuse_functions(model: Any) -> None:
    """An ONNX graph holds no Python."""
    if task_behind(model) is not None and callable(getattr(model, "kernel", None)):
        raise SoftmarginError(
            f"kernel={model.kernel!r} is a function, and an ONNX graph holds no Python: train with a kernel that has "
            "a name ('rbf', 'poly', 'laplacian', ...), or with kernel='precomputed' and compute the kernel values "
            "before the graph."
        )
