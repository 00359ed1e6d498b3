"""What stands around a model in its file: the transformations of X in front of it, and the calibration behind it.

In the file they are the values "transform" and "calibration", and arrays whose names begin with these words. In a
`ModelRecord` they are `Step`s and a `Calibration`. What a file says about them is checked here, before anything is
computed from it.
"""

from collections.abc import Mapping
from reprlib import repr as shown
from typing import Any

import numpy as np

from softmargin.core.errors import ModelFileError, SoftmarginError
from softmargin.io.record import Calibration, ModelRecord, Step, typed
from softmargin.tasks.records import TASK_NAMED
from softmargin.tasks.transforms import CALIBRATIONS, SCALER_NAMED

MAX_STEPS = 16
_STEP_KEYS = {"name", "kind", "params", "n_samples_seen"}
_CALIBRATION_KEYS = {"method", "params", "around"}
AROUND = ("model", "pipeline")  # what was calibrated: the model behind the scalers, or all of them as one


def pack_surroundings(record: ModelRecord) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The values and arrays of a record, with those of its surroundings."""
    values, arrays = dict(record.values), dict(record.arrays)
    if record.transform:
        values["transform"] = [
            {"name": step.name, "kind": step.kind, "params": _listed(step.params)}
            | ({} if step.n_samples_seen is None else {"n_samples_seen": step.n_samples_seen})
            for step in record.transform
        ]
        for k, step in enumerate(record.transform):
            arrays |= {f"transform.{k}.{name}": array for name, array in step.arrays.items()}
    if record.calibration is not None:
        calibration = record.calibration
        values["calibration"] = {
            "method": calibration.method,
            "around": calibration.around,
            "params": _listed(calibration.params),
        }
        arrays |= {f"calibration.{name}": array for name, array in calibration.arrays.items()}
    return values, arrays


def _listed(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in params.items()}


def unpack_surroundings(
    values: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[tuple[Step, ...], Calibration | None]:
    """The inverse: takes what belongs to the surroundings out of the values and arrays."""
    steps = []
    for k, said in enumerate(values.pop("transform", ())):
        own = _taken(arrays, f"transform.{k}.")
        steps.append(Step(said["name"], said["kind"], said["params"], own, said.get("n_samples_seen")))
    said = values.pop("calibration", None)
    if said is None:
        return tuple(steps), None
    own = _taken(arrays, "calibration.")
    return tuple(steps), Calibration(said["method"], own, said["around"], said["params"])


def _taken(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): arrays.pop(name) for name in list(arrays) if name.startswith(prefix)}


# --- checks -------------------------------------------------------------------------------------------------------


def check_transform(value: Any, name: str) -> None:
    """Whether this describes steps that are known, with parameters that they may have."""
    steps = typed(value, list, name)
    if not 1 <= len(steps) <= MAX_STEPS:
        raise ModelFileError(f"there are {len(steps)} transformations: a file holds 1 to {MAX_STEPS}")
    for step in steps:
        keys = typed(step, dict, "a transformation").keys()
        if not {"name", "kind", "params"} <= keys <= _STEP_KEYS:
            raise ModelFileError(f"a transformation has the keys {shown(sorted(keys))}")
        typed(step["name"], str, "the name of a transformation")
        if typed(step["kind"], str, "the kind of a transformation") not in SCALER_NAMED:
            known = ", ".join(SCALER_NAMED)
            raise ModelFileError(f"the transformation {shown(step['kind'])} is unknown: known are {known}")
        _check_params(step["kind"], typed(step["params"], dict, "its parameters"))
        if "n_samples_seen" in step and typed(step["n_samples_seen"], int, "n_samples_seen") < 0:
            raise ModelFileError("a transformation has seen less than no rows")
    names = [step["name"] for step in steps]
    if len(set(names)) < len(names):
        raise ModelFileError(f"two transformations have the same name: {shown(names)}")


def _check_params(kind: str, params: Mapping[str, Any]) -> None:
    known = SCALER_NAMED[kind].params
    for name, value in params.items():
        if name not in known:
            raise ModelFileError(f"the parameter {shown(name)} is unknown for {kind}")
        if not known[name][1](value):
            raise ModelFileError(f"the parameter {name} of {kind} cannot be {shown(value)}")


def check_calibration(value: Any, name: str) -> None:
    found = typed(value, dict, name)
    if found.keys() != _CALIBRATION_KEYS:
        raise ModelFileError(f"the calibration has the keys {shown(sorted(found))}")
    if typed(found["method"], str, "the method of the calibration") not in CALIBRATIONS:
        raise ModelFileError(
            f"the calibration {shown(found['method'])} is unknown: known are {', '.join(CALIBRATIONS)}"
        )
    if found["around"] not in AROUND:
        raise ModelFileError(f"what is calibrated cannot be {shown(found['around'])}")
    typed(found["params"], dict, "the parameters of the calibration")


def surrounding_arrays(
    kind: str, values: Mapping[str, Any], found: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, int]]:
    """The arrays that these (checked) values call for, of those found, as layouts describe them; and known lengths."""
    expected: dict[str, str] = {}
    for k, said in enumerate(values.get("transform", ())):
        scaler = SCALER_NAMED[said["kind"]]
        wanted = scaler.needs(scaler.completed(said["params"]))
        kept = [name for name in scaler.keeps if f"transform.{k}.{name}" in found]
        expected |= {f"transform.{k}.{name}": "F64 features" for name in (*wanted, *kept)}
    if "calibration" not in values:
        return expected, {}
    if TASK_NAMED[kind].target != "classes":
        raise ModelFileError(f"{kind} predicts no classes, and so cannot have calibrated probabilities")
    n_classes = found["classes_"][1][0] if "classes_" in found and found["classes_"][1] else 0
    return expected | CALIBRATIONS[values["calibration"]["method"]], {"calibrators": 1 if n_classes == 2 else n_classes}


def check_surroundings(transform: tuple[Step, ...], calibration: Calibration | None) -> None:
    """Whether the numbers are such that they can be computed with."""
    for step in transform:
        for name, array in step.arrays.items():
            if not np.isfinite(array).all():
                raise ModelFileError(f"{name} of {step.kind} holds NaN or infinity")
        for operation, operand in step.operations():
            if operation == "divide" and not (operand != 0.0).all():
                raise ModelFileError(f"{step.kind} would divide by zero")
    if calibration is None:
        return
    arrays = calibration.arrays
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise ModelFileError("the calibration holds NaN or infinity")
    if calibration.method == "isotonic":
        lengths, points = arrays["lengths"], arrays["x"].size
        if lengths.min(initial=1) < 1 or lengths.max(initial=0) > points or lengths.sum() != points:
            raise ModelFileError(f"the lengths of the calibration's curves do not add up to {points}")
        for x, y in calibration.curves():
            if not (np.diff(x) > 0.0).all() or y.min() < 0.0 or y.max() > 1.0:
                raise ModelFileError("a curve of the calibration does not ascend, or leaves the range from 0 to 1")


def refuse_surroundings(record: ModelRecord, program: str) -> None:
    """Other programs' model texts hold the model alone."""
    if record.transform:
        steps = ", ".join(step.kind for step in record.transform)
        raise SoftmarginError(
            f"{program}'s model text holds no scaling, but this model has {steps} in front of it: save in the format "
            "'softmargin', or train on data that are scaled already."
        )
    if record.calibration is not None:
        raise SoftmarginError(
            f"{program}'s model text cannot hold this model's calibration: save in the format 'softmargin', or save "
            "the model without it."
        )
