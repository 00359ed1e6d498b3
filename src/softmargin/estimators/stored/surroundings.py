"""Pipelines of scikit-learn's scalers, and its calibration around them, as parts of a record; and back.

Pipeline([scalers, model])      Pipeline([scalers, calibrated model])      calibrated Pipeline([scalers, model])
"""

from dataclasses import dataclass, replace
from reprlib import repr as shown
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV, _CalibratedClassifier, _SigmoidCalibration
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from softmargin.core.errors import ModelFileError, SoftmarginError
from softmargin.io.record import Calibration, ModelRecord, Step
from softmargin.tasks.transforms import CALIBRATIONS, SCALER_NAMED

_PLAIN = (bool, int, float, str)


class UnknownStep(SoftmarginError):
    """A step of a pipeline that a record cannot hold. `what` names it."""

    def __init__(self, name: str, kind: str) -> None:
        self.what = f"the step {name!r} is a {kind}"
        super().__init__(
            f"{self.what}, which a model file cannot hold: known are {', '.join(SCALER_NAMED)}. "
            "Transform the data before they come to the pipeline, or keep it with joblib or skops."
        )


@dataclass(frozen=True)
class Unwrapped:
    """A fitted estimator of ours, and what stood around it."""

    model: Any
    name: str | None = None  # of the model as a step of the pipeline
    transform: tuple[Step, ...] = ()
    calibration: Calibration | None = None
    feature_names: np.ndarray | None = None


def unwrapped(given: Any) -> Unwrapped:
    """The model in a pipeline of scalers, with or without a calibration; an estimator alone is itself."""
    check_is_fitted(given)
    if isinstance(given, FrozenEstimator):
        return unwrapped(given.estimator)
    if isinstance(given, CalibratedClassifierCV):
        return _uncalibrated(given)
    if not isinstance(given, Pipeline):
        names = getattr(given, "feature_names_in_", None)
        return Unwrapped(given, feature_names=names)
    *scalers, (name, last) = [(name, step) for name, step in given.steps if step not in (None, "passthrough")]
    inner = unwrapped(last)
    if inner.transform:
        raise SoftmarginError(
            "a pipeline within a pipeline cannot be saved: make one Pipeline of all scalers and the model."
        )
    names = getattr(scalers[0][1], "feature_names_in_", None) if scalers else inner.feature_names
    steps = tuple(_step_of(each, scaler) for each, scaler in scalers)
    return replace(inner, name=name, transform=steps, feature_names=names)


def _step_of(name: str, scaler: Any) -> Step:
    kind = type(scaler).__name__
    if kind not in SCALER_NAMED or SCALER_NAMED[kind].home.load() is not type(scaler):
        raise UnknownStep(name, kind)
    check_is_fitted(scaler)
    known = SCALER_NAMED[kind]
    params = {key: value for key, value in scaler.get_params().items() if key in known.params}
    wanted = dict.fromkeys((*known.needs(known.completed(params)), *known.keeps))
    found = {key: getattr(scaler, key, None) for key in wanted}
    arrays = {key: np.asarray(array, dtype=np.float64) for key, array in found.items() if array is not None}
    seen = getattr(scaler, "n_samples_seen_", None)
    return Step(name, kind, params, arrays, int(seen) if seen is not None and np.ndim(seen) == 0 else None)


def _uncalibrated(given: CalibratedClassifierCV) -> Unwrapped:
    parts = given.calibrated_classifiers_
    if len(parts) != 1:
        raise SoftmarginError(
            f"this CalibratedClassifierCV holds {len(parts)} models, one for each fold, but a model file holds "
            "one: use CalibratedClassifierCV(model, ensemble=False), which calibrates one model on scores from all "
            "folds."
        )
    inner = unwrapped(parts[0].estimator)
    if inner.calibration is not None:
        raise SoftmarginError("a calibration around a calibration cannot be saved: calibrate once.")
    if not np.array_equal(given.classes_, inner.model.classes_):
        raise SoftmarginError("the calibration saw other classes than the model: fit both on all of them.")
    params = {key: value for key, value in given.get_params(deep=False).items() if isinstance(value, _PLAIN)}
    around = "pipeline" if inner.transform else "model"
    calibration = Calibration(given.method, calibration_arrays(parts[0]), around, params)
    return replace(inner, calibration=calibration)


def calibration_arrays(part: Any) -> dict[str, np.ndarray]:
    """The numbers of one of the `calibrated_classifiers_`."""
    if part.method not in CALIBRATIONS:
        raise SoftmarginError(
            f"the calibration method {part.method!r} cannot be stored: use method='sigmoid' or method='isotonic'."
        )
    model = part.estimator[-1] if isinstance(part.estimator, Pipeline) else part.estimator
    if getattr(model, "decision_function_shape", "ovr") == "ovo":
        raise SoftmarginError("scores of pairs of classes cannot be calibrated: use decision_function_shape='ovr'.")
    if part.method == "sigmoid":
        return {name: np.array([float(getattr(each, f"{name}_")) for each in part.calibrators]) for name in "ab"}
    curves = [(each.X_thresholds_, each.y_thresholds_) for each in part.calibrators]
    x, y = (np.concatenate([np.asarray(curve[k], dtype=np.float64) for curve in curves]) for k in (0, 1))
    return {"lengths": np.array([len(curve[0]) for curve in curves], dtype=np.int64), "x": x, "y": y}


# --- and back -----------------------------------------------------------------------------------------------------


def wrapped(model: Any, record: ModelRecord) -> Any:
    """The model with what its record says stands around it."""
    if not record.transform and record.calibration is None:
        return model
    n_features = model.n_features_in_
    names = vars(model).pop("feature_names_in_", None) if record.transform else None
    scalers = [(step.name, _scaler_of(step, n_features)) for step in record.transform]
    if names is not None:
        scalers[0][1].feature_names_in_ = names
    calibration = record.calibration
    if calibration is not None and calibration.around == "model":
        model = _calibrated(model, calibration)
    found = Pipeline([*scalers, (record.name or type(model).__name__.lower(), model)]) if scalers else model
    if calibration is not None and calibration.around == "pipeline":
        found = _calibrated(found, calibration)
    return found


def _scaler_of(step: Step, n_features: int) -> Any:
    known = SCALER_NAMED[step.kind]
    params = {key: tuple(value) if isinstance(value, list) else value for key, value in step.params.items()}
    cls = known.home.load()
    older = params.keys() - cls().get_params().keys()  # scikit-learn's scalers learn new parameters
    if any(params[key] != known.params[key][0] for key in older):
        raise ModelFileError(f"the parameter {shown(min(older))} of {step.kind} needs a newer scikit-learn")
    scaler = cls(**{key: value for key, value in params.items() if key not in older})
    for key in (*known.needs(known.completed({})), *known.keeps):
        array = step.arrays.get(key)
        if array is not None and array.size != n_features:
            raise ModelFileError(f"{key} of {step.kind} has {array.size} values for {n_features} features")
        setattr(scaler, key, array)
    scaler.n_features_in_ = n_features
    if step.n_samples_seen is not None:
        scaler.n_samples_seen_ = np.int64(step.n_samples_seen)  # partial_fit asks for its shape
    return scaler


def _calibrated(inner: Any, calibration: Calibration) -> CalibratedClassifierCV:
    params = {"cv": None, "n_jobs": None} | calibration.params | {"ensemble": False, "method": calibration.method}
    if unknown := sorted(params.keys() - CalibratedClassifierCV().get_params(deep=False).keys()):
        raise ModelFileError(f"the parameter {shown(unknown[0])} is unknown for CalibratedClassifierCV")
    outer = CalibratedClassifierCV(**{**params, "estimator": clone(inner)})
    outer.classes_, outer.n_features_in_ = inner.classes_, inner.n_features_in_
    if hasattr(inner, "feature_names_in_"):
        outer.feature_names_in_ = inner.feature_names_in_
    calibrators = _calibrators(calibration)
    part = _CalibratedClassifier(inner, calibrators, classes=outer.classes_, method=calibration.method)
    outer.calibrated_classifiers_ = [part]
    return outer


def _calibrators(calibration: Calibration) -> list[Any]:
    if calibration.method == "isotonic":  # a curve that ascends is its own isotonic regression
        return [IsotonicRegression(out_of_bounds="clip").fit(x, y) for x, y in calibration.curves()]
    found = []
    for a, b in zip(calibration.arrays["a"].tolist(), calibration.arrays["b"].tolist(), strict=True):
        calibrator = _SigmoidCalibration()
        calibrator.a_, calibrator.b_ = a, b
        found.append(calibrator)
    return found
