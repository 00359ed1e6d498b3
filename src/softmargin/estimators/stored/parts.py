"""The records of what predicts as one: of one model, or of a calibration's models, one for each fold."""

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from softmargin.core.errors import SoftmarginError
from softmargin.estimators.persistence import record_of
from softmargin.estimators.stored.surroundings import UnknownStep, calibration_arrays, unwrapped
from softmargin.io.record import Calibration, ModelRecord, matrix_to_arrays, sparse_parts
from softmargin.kernels.by_name import named_kernel
from softmargin.prediction.machine import Expansion, Vectors
from softmargin.tasks.records import task_behind
from softmargin.tasks.transforms import SCALER_NAMED


def records_of(model: Any) -> list[ModelRecord]:
    """Records for a graph: whose probabilities are averaged if there are several."""
    check_is_fitted(model)
    model = settled(model)
    inner = model[-1] if isinstance(model, Pipeline) else model
    try:
        if not isinstance(inner, CalibratedClassifierCV) or len(inner.calibrated_classifiers_) == 1:
            refuse_what_no_graph_holds(unwrapped(model).model)
            return [record_of(model)]
        scalers = model.steps[:-1] if isinstance(model, Pipeline) else []
        return [_of_fold(scalers, inner, part) for part in inner.calibrated_classifiers_]
    except UnknownStep as error:
        raise SoftmarginError(
            f"{error.what}, which softmargin writes into no graph: known are {', '.join(SCALER_NAMED)}. Convert the "
            "pipeline with skl2onnx, which knows other steps: softmargin.onnx.register() and then "
            "skl2onnx.to_onnx(pipeline, X[:1]). There a calibration must be the last step, not around the pipeline."
        ) from None


def settled(model: Any) -> Any:
    """The fitted model with the best one in the place of a search, in pipelines and calibrations, too.

    What keeps a model from being fitted again, and what trained it on a cluster, is left out as well.
    """
    if hasattr(model, "best_estimator_"):
        return settled(model.best_estimator_)
    if isinstance(model, FrozenEstimator):
        return settled(model.estimator)
    if hasattr(model, "to_local"):
        return model.to_local()
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        return Pipeline([*model.steps[:-1], (name, settled(last))])
    if isinstance(model, CalibratedClassifierCV):
        found = copy(model)
        found.calibrated_classifiers_ = [copy(part) for part in model.calibrated_classifiers_]
        for part in found.calibrated_classifiers_:
            part.estimator = settled(part.estimator)
        return found
    return model


def _of_fold(scalers: list[Any], outer: CalibratedClassifierCV, part: Any) -> ModelRecord:
    steps = part.estimator.steps if isinstance(part.estimator, Pipeline) else [("model", part.estimator)]
    refuse_what_no_graph_holds(steps[-1][1])
    if not np.array_equal(outer.classes_, steps[-1][1].classes_):
        raise SoftmarginError(
            "a fold of the calibration lacks some of the classes: use fewer folds, or folds by class, which "
            "CalibratedClassifierCV(cv=5) makes."
        )
    names = {name for name, _ in steps}
    before = [(name if name not in names else f"{name}-before", scaler) for name, scaler in scalers]
    record = record_of(Pipeline([*before, *steps]) if before or len(steps) > 1 else steps[-1][1])
    return replace(record, calibration=Calibration(part.method, calibration_arrays(part)))


def expansion_of_map(features: Any) -> Expansion:
    """A fitted `LowRankMap` as weighted sums of kernel values: L^-1 k(x)."""
    check_is_fitted(features)
    refuse_functions(features)
    kernel = named_kernel(features.kernel, features.gamma_, features.degree, features.coef0)
    vectors = None
    if kernel is not None:
        arrays, width = matrix_to_arrays("vectors", features.components_), features.n_features_in_
        vectors = Vectors(arrays.get("vectors"), sparse_parts("vectors", arrays, width), width)
    coefficients = solve_triangular(features.factor_, np.eye(features.n_components_), lower=True).T
    nothing = np.zeros(features.n_components_)
    where = features.component_indices_
    return Expansion(kernel, vectors, where, np.ascontiguousarray(coefficients), nothing, features.n_features_in_)


def refuse_what_no_graph_holds(model: Any) -> None:
    """Models of other libraries, and functions."""
    if task_behind(model) is None:
        kind = type(model)
        raise SoftmarginError(
            f"{kind.__module__}.{kind.__qualname__} is no estimator of softmargin: skl2onnx converts those of "
            "scikit-learn."
        )
    refuse_functions(model)


def refuse_functions(model: Any) -> None:
    if callable(getattr(model, "kernel", None)):
        raise SoftmarginError(
            f"kernel={model.kernel!r} is a function, and an ONNX graph holds no Python: train with a kernel that has "
            "a name ('rbf', 'poly', 'laplacian', ...), or with kernel='precomputed' and compute the kernel values "
            "before the graph."
        )
