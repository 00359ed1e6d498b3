"""What a model file holds before it is a model: plain values and arrays, compared with what its task says it stores."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from reprlib import repr as shown
from typing import Any

import numpy as np

from softmargin.core.errors import ModelFileError, SoftmarginError
from softmargin.core.result import Certificate
from softmargin.tasks.layouts import ORIGIN
from softmargin.tasks.records import TASK_NAMED
from softmargin.tasks.transforms import SCALER_NAMED, Operation


@dataclass(frozen=True)
class Named:
    """A configured object among the parameters, such as a solver: the name of its class, and its fields."""

    name: str
    fields: dict[str, Any]


@dataclass(frozen=True)
class Step:
    """A transformation of X in front of the model: a scaler of scikit-learn as data (`tasks/transforms.py`).

    `name` is its name in the pipeline, `kind` its class, `arrays` its fitted attributes with a value for each column.
    """

    name: str
    kind: str
    params: dict[str, Any]
    arrays: dict[str, np.ndarray]
    n_samples_seen: int | None = None

    def operations(self) -> tuple[Operation, ...]:
        """What it does to X."""
        scaler = SCALER_NAMED[self.kind]
        return scaler.operations(scaler.completed(self.params), self.arrays)


@dataclass(frozen=True)
class Calibration:
    """What makes probabilities of a classifier's scores, as scikit-learn's CalibratedClassifierCV(ensemble=False) does.

    `method` is "sigmoid", with arrays `a` and `b` (the probability is 1 / (1 + exp(a score + b))), or "isotonic", with
    `lengths`, `x` and `y` (points of curves, one behind the other, between which it is linear). There is one calibrator
    for two classes, else one for each class, whose values are divided by their sum. `around` says what was calibrated:
    the "model" behind the transformations, or the "pipeline" of both; `params` are those of CalibratedClassifierCV.
    """

    method: str
    arrays: dict[str, np.ndarray]
    around: str = "model"
    params: dict[str, Any] = field(default_factory=dict)

    def curves(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(x, y) of each isotonic calibrator."""
        ends = np.cumsum(self.arrays["lengths"])[:-1]
        return zip(np.split(self.arrays["x"], ends), np.split(self.arrays["y"], ends), strict=True)


@dataclass(frozen=True)
class ModelRecord:
    """A model as data. `params` and `values` hold None, bool, int, float, str, and lists, dicts or `Named` of these.

    `feature_names_in_` among the arrays are the names of the columns before all transformations; `name` is that of the
    model as the last step of a pipeline.
    """

    kind: str
    params: dict[str, Any]
    values: dict[str, Any]
    arrays: dict[str, np.ndarray]
    versions: dict[str, str] = field(default_factory=dict)
    transform: tuple[Step, ...] = ()
    calibration: Calibration | None = None
    name: str | None = None


# Arrays without NaN and infinity, if they are there.
FINITE = {
    "coef_",
    "intercept_",
    "dual_coef_",
    "support_vectors_",
    "support_vectors_.data",
    "class_weight_",
    "training.X",
    "training.X.data",
    "training.y",
}

# The types of safetensors.
DTYPES = {
    "BOOL": np.dtype("bool"),
    **{f"I{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"U{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    **{f"F{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
}
CODES = {dtype: code for code, dtype in DTYPES.items()}
TYPES_OF = {
    "label": (*DTYPES, "text"),
    "number": tuple(DTYPES.keys() - {"BOOL", "F16"}),
    "index": ("I32", "I64"),
    "float": ("F32", "F64"),
}


Described = Mapping[str, tuple[str, tuple[int, ...]]]  # of each array: its type and its shape


def check_kind(kind: str) -> None:
    if kind not in TASK_NAMED:
        known = ", ".join(TASK_NAMED)
        raise ModelFileError(f"the estimator {shown(kind)} is unknown to this version: known are {known}")


def check_layout(
    kind: str, arrays: Described, surroundings: Mapping[str, str], known_lengths: Mapping[str, int]
) -> None:
    """Whether a model of this kind stores such arrays, and whether their lengths agree. States are not looked at.

    `surroundings` are the arrays that stand around the model, and `known_lengths` their lengths that are known.
    """
    layout = TASK_NAMED[kind].layout
    arrays = {name: described for name, described in arrays.items() if not name.startswith("state.")}
    expected = {**layout.arrays, **surroundings}
    for group in layout.groups:
        if not arrays.keys().isdisjoint(group):
            expected |= group
    lengths = dict(known_lengths)
    check_axes(expected, arrays, lengths)
    if not layout.rule(lengths):
        found = ", ".join(f"{length} {axis}" for axis, length in lengths.items())
        raise ModelFileError(f"lengths contradict each other: {found}")


def check_axes(expected: Mapping[str, str], arrays: Described, lengths: dict[str, int]) -> None:
    """Whether the arrays are exactly the expected ones; `lengths` are those known already, and gets those found."""
    if missing := sorted(expected.keys() - arrays.keys()):
        raise ModelFileError(f"the array {missing[0]!r} is missing")
    if unknown := sorted(arrays.keys() - expected.keys()):
        raise ModelFileError(f"the array {shown(unknown[0])} is unknown")
    for name, description in expected.items():
        wanted, *axes = description.split()
        found, shape = arrays[name]
        if found not in TYPES_OF.get(wanted, (wanted,)):
            raise ModelFileError(f"the array {name!r} has type {found}, not {wanted}")
        if len(shape) != len(axes):
            raise ModelFileError(f"the array {name!r} has shape {shape}, but needs {len(axes)} dimensions")
        for axis, length in zip(axes, shape, strict=True):
            if lengths.setdefault(axis, length) != length:
                raise ModelFileError(
                    f"the array {name!r} has shape {shape}, but the number of {axis} is {lengths[axis]}"
                )


# --- values and numbers ------------------------------------------------------------------------------------------


def check_values(kind: str, values: Mapping[str, Any]) -> None:
    """Whether a model of this kind stores such values, each of the form that it must have."""
    if unknown := sorted(values.keys() - set(TASK_NAMED[kind].layout.values)):
        raise ModelFileError(f"the value {shown(unknown[0])} is unknown for {kind}")
    for name, value in values.items():
        form = VALUE_FORMS[name]
        if isinstance(form, type):
            typed(value, form, name)
        else:
            form(value, name)


def check_numbers(arrays: Mapping[str, np.ndarray]) -> None:
    """Whether the numbers that predictions are made of are finite, and thresholds ascend."""
    for name, array in arrays.items():
        if name in FINITE and array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelFileError(f"the array {name!r} holds NaN or infinity, which no fit leaves there")
    thresholds = arrays.get("thresholds_", np.zeros(1))
    if np.isnan(thresholds).any() or not (thresholds[:-1] <= thresholds[1:]).all():
        raise ModelFileError("the thresholds between the classes do not ascend")


def typed(value: Any, kind: type, what: str) -> Any:
    if type(value) is not kind:
        raise ModelFileError(f"{what} should be of type {kind.__name__}, but is {shown(value)}")
    return value


def _check_certificates(value: Any, name: str) -> None:
    """Certificates have the fields of `Certificate`; those that have a default are missing in older files."""
    known = {part.name: part.default is MISSING for part in fields(Certificate)}
    for certificate in typed(value, list, name):
        found = typed(certificate, dict, "a certificate").keys()
        if not found <= known.keys() or any(needed and part not in found for part, needed in known.items()):
            raise ModelFileError(f"a certificate has the keys {shown(list(found))}, but needs {shown(list(known))}")
        _check_parts(certificate, float, "a certificate")


def _check_parts(value: Any, kind: type, name: str) -> None:
    for key, part in typed(value, dict, name).items():
        typed(part, kind, f"{name}: {shown(key)}")


def _check_shape(value: Any, name: str) -> None:
    lengths = typed(value, list, name)
    if len(lengths) != 2 or any(type(length) is not int or length < 0 for length in lengths):
        raise ModelFileError(f"{name} should be the number of rows and of columns, but is {shown(value)}")


# Of a search: the parameters that it may be over, and the most points that a file holds.
SEARCHED, MAX_POINTS = ("C", "gamma", "epsilon", "nu"), 4096
_SEARCH_COLUMNS = ("standard_error", "support_vectors", "score")


def _check_search(value: Any, name: str) -> None:
    """The points of a search: columns of one length, each a list of finite numbers."""
    found = typed(value, dict, name)
    if found.keys() != {"measure", "n_folds", "params", *_SEARCH_COLUMNS}:
        raise ModelFileError(f"{name} has the keys {shown(sorted(found))}")
    params = typed(found["params"], dict, f"{name}: params")
    if not params or not params.keys() <= set(SEARCHED):
        raise ModelFileError(f"{name} is over {shown(sorted(params))}: known are {', '.join(SEARCHED)}")
    typed(found["measure"], str, f"{name}: measure")
    if typed(found["n_folds"], int, f"{name}: n_folds") < 2:
        raise ModelFileError(f"{name} has less than two folds")
    columns = {**params, **{column: found[column] for column in _SEARCH_COLUMNS}}
    for column, numbers in columns.items():
        n_points = len(typed(numbers, list, f"{name}: {column}"))
        if n_points != len(columns["score"]) or not 1 <= n_points <= MAX_POINTS:
            raise ModelFileError(f"{name}: {column} does not hold a number for each of 1 to {MAX_POINTS} points")
        for number in numbers:
            if not math.isfinite(typed(number, float, f"{name}: {column}")) or (column != "score" and number < 0.0):
                raise ModelFileError(f"{name}: {column} holds {shown(number)}")


VALUE_FORMS: dict[str, type | Callable[[Any, str], None]] = {
    "status_": str,
    "certificates_": _check_certificates,
    "seconds_": lambda value, name: _check_parts(value, float, name),
    "counts_": lambda value, name: _check_parts(value, int, name),
    "n_iter_": int,
    "solver_": str,
    "n_pairs_": float,
    "gamma_": float,
    "n_features_in_": int,
    "fit_status_": int,
    "shape_fit_": _check_shape,
    "next_row_id": int,
    "state": dict,
    **ORIGIN,
    "search_": _check_search,
}


# --- matrices and labels ------------------------------------------------------------------------------------------

MAX_COLUMNS = 2**31 - 1
# Text formats keep labels as 32-bit integers.
_LABEL_RANGE = np.iinfo(np.int32)


def matrix_to_arrays(name: str, matrix: Any) -> dict[str, np.ndarray]:
    """An array as it is; a CSR matrix as the three arrays it consists of."""
    if isinstance(matrix, np.ndarray):
        return {name: matrix}
    return {f"{name}.{part}": getattr(matrix, part) for part in ("data", "indices", "indptr")}


def sparse_parts(
    name: str, arrays: Mapping[str, np.ndarray], n_columns: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The values, column indices and row starts of a CSR matrix, checked; None if the arrays hold none.

    Whoever computes with them does not look where an index leads.
    """
    if f"{name}.data" not in arrays:
        return None
    data, indices, indptr = (arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    good = (
        name not in arrays
        and 0 <= n_columns <= MAX_COLUMNS
        and indptr[0] == 0
        and indptr[-1] == indices.size
        and (indptr[1:] >= indptr[:-1]).all()
        and indices.min(initial=0) >= 0
        and indices.max(initial=-1) < n_columns
    )
    if not good:
        raise ModelFileError(f"the arrays of the sparse matrix {name!r} contradict each other")
    return data, indices, indptr


def matrix_from_arrays(name: str, arrays: Mapping[str, np.ndarray], n_columns: int) -> Any:
    """The inverse of `matrix_to_arrays`; None if there is none."""
    parts = sparse_parts(name, arrays, n_columns)
    if parts is None:
        matrix = arrays.get(name)
        if matrix is not None and matrix.shape[1] != n_columns:
            raise ModelFileError(f"the array {name!r} has {matrix.shape[1]} columns, not {n_columns}")
        return matrix
    import scipy.sparse as sp

    return sp.csr_matrix(parts, shape=(parts[2].size - 1, n_columns), copy=False)


def integer_labels(classes: np.ndarray, program: str) -> list[int]:
    """Labels as the text formats of LIBLINEAR and LIBSVM hold them."""
    whole = classes.dtype.kind in "iu" or (classes.dtype.kind == "f" and (classes == np.round(classes)).all())
    if not whole or classes.min() < _LABEL_RANGE.min or classes.max() > _LABEL_RANGE.max:
        raise SoftmarginError(
            f"{program}'s labels are 32-bit integers, but the classes are {shown(classes.tolist())}: train on "
            "integers (sklearn.preprocessing.LabelEncoder makes them), or save in the format 'softmargin'."
        )
    return [int(label) for label in classes]
