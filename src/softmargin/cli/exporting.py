"""`softmargin export`: a model as other programs read it, or as numbers."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from softmargin.cli import files
from softmargin.core.errors import SoftmarginError
from softmargin.io.model_file import read_model
from softmargin.io.record import ModelRecord, Named
from softmargin.tasks.records import TASK_NAMED

FORMATS = ("onnx", "liblinear", "libsvm", "csv", "json")


def export(model: Path, out: Path, format: str, *, force: bool) -> None:
    """Write the model in this format; what the format has no place for is an error."""
    is_model = format in ("liblinear", "libsvm")
    files.check_output(out, {"MODEL": model}, force=force, is_model=is_model, replaces=is_model)
    with files.readable(model, is_model=True) as file:
        record = read_model(file)
        if format == "onnx":
            content = _onnx(file)
            files.write(out, lambda target: target.write(content))
            return
    if format in ("liblinear", "libsvm"):
        formats = TASK_NAMED[record.kind].formats
        if format not in formats:
            able = ", ".join(name for name, task in TASK_NAMED.items() if format in task.formats)
            raise SoftmarginError(f"a {record.kind} has no form in {format}, which is for {able}.")
        files.save(out, lambda path: formats[format].load()(path, record))
        return
    text = (_csv if format == "csv" else _json)(record)
    files.write(out, lambda target: target.write(text.encode()))


def _onnx(file: Path) -> bytes:
    from softmargin.estimators.persistence import load
    from softmargin.onnx import to_onnx

    return to_onnx(load(file)).SerializeToString()


def weight_table(record: ModelRecord) -> tuple[list[str], list[str], np.ndarray]:
    """Names of the features, names of the scores, and the weights: a row for each feature, a column for each score."""
    if "coef_" not in record.arrays:
        raise SoftmarginError(
            f"a {record.kind} with a kernel has no weights of features: its support vectors are exported as json or "
            "libsvm."
        )
    coef = np.atleast_2d(record.arrays["coef_"])
    names = record.arrays.get("feature_names_in_")
    first = record.values.get("index_base_", 0)
    features = [str(first + k) for k in range(coef.shape[1])] if names is None else [str(name) for name in names]
    classes = record.arrays.get("classes_")
    titles = ["weight"] if len(coef) == 1 or classes is None else [str(label) for label in classes]
    return features, titles, coef.T


def _csv(record: ModelRecord) -> str:
    """The weights, with a line for each feature and for the intercept; numbers are exact."""
    features, titles, weights = weight_table(record)
    _refuse_surroundings(record)
    intercept = record.arrays.get("intercept_")
    thresholds = record.arrays.get("thresholds_")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["feature", *titles])
    writer.writerows([name, *map(repr, row)] for name, row in zip(features, weights.tolist(), strict=True))
    if intercept is not None:
        writer.writerow(["(intercept)", *map(repr, intercept.tolist())])
    if thresholds is not None:
        writer.writerows([f"(threshold {k + 1})", repr(value)] for k, value in enumerate(thresholds.tolist()))
    return text.getvalue()


def _refuse_surroundings(record: ModelRecord) -> None:
    if record.transform or record.calibration is not None:
        raise SoftmarginError(
            "a table of weights has no place for the scaling or the calibration of this model: export it as json or "
            "onnx, or train with --fold-scaling."
        )


def _json(record: ModelRecord) -> str:
    """All that predicts: parameters, arrays, scaling, calibration. Numbers are exact."""
    arrays = {name: array for name, array in record.arrays.items() if _predicts(name)}
    found: dict[str, Any] = {
        "format": "softmargin",
        "estimator": record.kind,
        "parameters": {name: _plain(value) for name, value in record.params.items()},
        "arrays": {name: _listed(array) for name, array in arrays.items()},
        "gamma": record.values.get("gamma_"),
        "index_base": record.values.get("index_base_"),
        "n_features": record.values.get(
            "n_features_in_", np.atleast_2d(arrays.get("coef_", np.empty((1, 0)))).shape[1]
        ),
        "transform": [
            {"kind": step.kind, "params": step.params, "arrays": {n: _listed(a) for n, a in step.arrays.items()}}
            for step in record.transform
        ],
        "calibration": record.calibration
        and {
            "method": record.calibration.method,
            "arrays": {name: _listed(array) for name, array in record.calibration.arrays.items()},
        },
    }
    return json.dumps({name: value for name, value in found.items() if value not in (None, [])}, allow_nan=True) + "\n"


_PREDICTING = ("coef_", "intercept_", "thresholds_", "classes_", "feature_names_in_", "dual_coef_", "n_support_")


def _predicts(name: str) -> bool:
    return name in _PREDICTING or name.partition(".")[0] == "support_vectors_"


def _plain(value: Any) -> Any:
    return {"solver": value.name, **value.fields} if isinstance(value, Named) else value


_listed: Callable[[np.ndarray], Any] = np.ndarray.tolist
