"""Models to files and back: `save` for every estimator, and `load`.

A model is stored part by part. Each part has a function that puts what the estimator holds into values and arrays, and
one that takes it out of a record again; `PLANS` says which parts an estimator has. What a file may hold, with types and
shapes, is in `io/record.py`.
"""

import math
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from itertools import accumulate, pairwise
from reprlib import repr as shown
from typing import Any

import numpy as np
import sklearn
from sklearn.utils.validation import check_is_fitted

import softmargin
from softmargin.core.errors import ModelFileError, SoftmarginError
from softmargin.core.result import Certificate
from softmargin.core.status import Status
from softmargin.core.trace import Record, Trace
from softmargin.estimators import validation
from softmargin.estimators.training_state import pack_states, unpack_states
from softmargin.io.liblinear import write_liblinear
from softmargin.io.model_file import read_model, write_model
from softmargin.io.record import ModelRecord, Named
from softmargin.solvers.cutting_plane.cpa import CPA
from softmargin.solvers.cutting_plane.ocas import OCAS
from softmargin.solvers.subgradient.pegasos import Pegasos
from softmargin.solvers.subgradient.sgd import SGD

Values = dict[str, Any]
Arrays = dict[str, np.ndarray]

# Objects that may be parameters, by the name they have in a file.
OBJECTS: dict[str, Any] = {"OCAS": OCAS, "CPA": CPA, "Pegasos": Pegasos, "SGD": SGD}


class SaveMixin:
    """Adds `save` to an estimator that has a plan in `PLANS`."""

    def save(self, path: Any, *, include_training_state: bool = False, format: str = "softmargin") -> None:
        """Write the fitted model to one file, as a whole or not at all; `softmargin.load` reads it.

        Parameters
        ----------
        path : str or path
            An old file is replaced at the last moment.
        include_training_state : bool, default=False
            Also save what `warm_start=True` continues from, so that a loaded model continues exactly. It is there when
            the fit stopped early or had ``warm_start=True``, and holds the cutting planes: it can be large.
        format : {"softmargin", "liblinear"}, default="softmargin"
            "softmargin" keeps everything, bit for bit: parameters, weights, certificates, dual vector, trace. Metadata
            requests and callbacks are not saved. "liblinear" is LIBLINEAR's model text: weights and integer labels.
        """
        check_is_fitted(self)
        validation.one_of(format, "format", ("softmargin", "liblinear"))
        record = _record_of(self, include_training_state)
        if format == "softmargin":
            write_model(path, record)
            return
        if include_training_state:
            raise SoftmarginError("a LIBLINEAR model holds no training state: drop include_training_state.")
        write_liblinear(path, record)


def load(path: Any) -> Any:
    """The model in a file that `save` wrote, or in a LIBLINEAR model file of a classifier.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator
        Fitted. A LIBLINEAR model becomes a `LinearSVC` that predicts the same; what LIBLINEAR does not store stays
        open: `C` has its default, the certificate is nan, and there is no `dual_`, `trace_` or `status_`.

    Raises
    ------
    ModelFileError
        The file is damaged, of another format, or from a newer version. Loading never runs code from the file.
    """
    record = read_model(path)
    try:
        return _estimator_of(record)
    except SoftmarginError as error:
        raise ModelFileError(f"{os.fsdecode(path)}: {str(error).removesuffix('.')}.") from None


def _record_of(estimator: Any, include_training_state: bool) -> ModelRecord:
    kind = type(estimator).__name__
    plan = PLANS.get(kind)
    if plan is None or plan.estimator() is not type(estimator):
        raise SoftmarginError(
            f"{kind} cannot be saved: known are {', '.join(PLANS)}, but not classes derived from them."
        )
    values: Values = {}
    arrays: Arrays = {}
    for part in plan.parts:
        part.pack(estimator, values, arrays)
    if include_training_state:
        plan.state.pack(estimator, values, arrays)
    params = {name: _param_to_data(value) for name, value in estimator.get_params(deep=False).items()}
    versions = {
        "softmargin": softmargin.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }
    return ModelRecord(kind, params, values, arrays, versions)


def _estimator_of(record: ModelRecord) -> Any:
    plan = PLANS[record.kind]
    cls = plan.estimator()
    if unknown := sorted(record.params.keys() - cls().get_params(deep=False).keys()):
        raise ModelFileError(f"the parameter {shown(unknown[0])} is unknown for {record.kind}")
    estimator = cls(**{name: _param_from_data(value) for name, value in record.params.items()})
    for part in (*plan.parts, plan.state):
        part.unpack(estimator, record)
    return estimator


def _param_to_data(value: Any) -> Any:
    name = type(value).__name__
    if OBJECTS.get(name) is type(value):
        return Named(name, {field.name: getattr(value, field.name) for field in fields(value)})
    return value


def _param_from_data(value: Any) -> Any:
    if not isinstance(value, Named):
        return value
    if value.name not in OBJECTS:
        raise ModelFileError(f"the object {shown(value.name)} is unknown: known are {', '.join(OBJECTS)}")
    cls = OBJECTS[value.name]
    if unknown := sorted(value.fields.keys() - {field.name for field in fields(cls)}):
        raise ModelFileError(f"the setting {shown(unknown[0])} is unknown for {value.name}")
    return cls(**value.fields)


# --- a linear model -----------------------------------------------------------------------------------------------


def _pack_linear(estimator: Any, values: Values, arrays: Arrays) -> None:
    for name in ("coef_", "intercept_", "classes_", "feature_names_in_"):
        if hasattr(estimator, name):
            arrays[name] = getattr(estimator, name)


def _unpack_linear(estimator: Any, record: ModelRecord) -> None:
    for name in ("coef_", "intercept_", "classes_", "feature_names_in_"):
        if name in record.arrays:
            setattr(estimator, name, record.arrays[name])
    estimator.n_features_in_ = estimator.coef_.shape[1]


# --- how it was trained -------------------------------------------------------------------------------------------

_TRAINING = {"status_", "certificates_", "n_iter_", "seconds_"}
_COLUMN_TYPES: dict[Any, Any] = {int: np.int64, float: np.float64}


def _pack_training(estimator: Any, values: Values, arrays: Arrays) -> None:
    if not hasattr(estimator, "status_"):
        return  # imported: another program trained it
    values["status_"] = estimator.status_.name
    values["certificates_"] = [asdict(certificate) for certificate in estimator.certificates_]
    values["n_iter_"] = estimator.n_iter_
    values["seconds_"] = estimator.seconds_
    arrays["dual_"] = estimator.dual_.reshape(len(estimator.dual_), -1)
    traces = estimator.trace_ if isinstance(estimator.trace_, list) else [estimator.trace_]
    arrays["trace.lengths"] = np.array([len(trace) for trace in traces], dtype=np.int64)
    for column in fields(Record):
        parts = [trace[column.name] for trace in traces]
        arrays[f"trace.{column.name}"] = np.concatenate(parts).astype(_COLUMN_TYPES[column.type])


def _unpack_training(estimator: Any, record: ModelRecord) -> None:
    values, arrays = record.values, record.arrays
    n_problems = len(estimator.coef_)
    if _TRAINING.isdisjoint(values) and not {"dual_", "trace.lengths"} & arrays.keys():
        unknown = Certificate(math.nan, math.nan, math.nan, math.nan, math.nan)
        estimator.certificates_ = [unknown] * n_problems
        estimator.certificate_ = unknown
        return
    if not values.keys() >= _TRAINING or not arrays.keys() >= {"dual_", "trace.lengths"}:
        raise ModelFileError("what is said about the training is not complete")
    if _typed(values["status_"], str, "status_") not in Status.__members__:
        raise ModelFileError(f"the status {shown(values['status_'])} is unknown")
    estimator.status_ = Status[values["status_"]]
    certificates = _typed(values["certificates_"], list, "certificates_")
    if len(certificates) != n_problems:
        raise ModelFileError(f"there are {len(certificates)} certificates for {n_problems} sub-problems")
    estimator.certificates_ = [Certificate(**_numbers(part, _CERTIFICATE, "a certificate")) for part in certificates]
    estimator.certificate_ = Certificate.combine(estimator.certificates_)
    estimator.n_iter_ = _typed(values["n_iter_"], int, "n_iter_")
    seconds = _typed(values["seconds_"], dict, "seconds_")
    estimator.seconds_ = _numbers(seconds, dict.fromkeys(seconds, float), "seconds_")
    rows = zip(*(arrays[f"trace.{column}"].tolist() for column in Trace.columns), strict=True)
    records = [Record(*row) for row in rows]
    traces = [Trace(records[where]) for where in _slices(arrays["trace.lengths"], len(records))]
    several = n_problems > 1
    estimator.trace_ = traces if several else traces[0]
    estimator.dual_ = arrays["dual_"] if several else arrays["dual_"][:, 0]


# --- what warm_start continues from -------------------------------------------------------------------------------


def _pack_state(estimator: Any, values: Values, arrays: Arrays) -> None:
    if not hasattr(estimator, "_state"):
        raise SoftmarginError(
            "this model keeps no training state, because its fit reached its goal: fit with warm_start=True, or save "
            "without include_training_state."
        )
    fingerprint, states = estimator._state
    value, parts = pack_states(states)
    values["state"] = {"fingerprint": fingerprint} | value
    arrays |= parts


def _unpack_state(estimator: Any, record: ModelRecord) -> None:
    arrays = {name: array for name, array in record.arrays.items() if name.startswith("state.")}
    value = record.values.get("state")
    if value is None and not arrays:
        return
    if not hasattr(estimator, "dual_") or not isinstance(value, dict):
        raise ModelFileError("the training state is not complete")
    fingerprint = _typed(value.get("fingerprint"), str, "the fingerprint")
    n_weights = estimator.n_features_in_ + (estimator.intercept == "penalised")
    lengths = {"rows": len(estimator.dual_), "weights": n_weights}
    estimator._state = (fingerprint, unpack_states(value, arrays, len(estimator.coef_), lengths))


# --- checking -----------------------------------------------------------------------------------------------------

_CERTIFICATE = {field.name: float for field in fields(Certificate)}


def _typed(value: Any, kind: type, what: str) -> Any:
    if type(value) is not kind:
        raise ModelFileError(f"{what} should be of type {kind.__name__}, but is {shown(value)}")
    return value


def _numbers(value: Any, kinds: Mapping[str, type], what: str) -> dict[str, Any]:
    """A dictionary with exactly these keys, and values of these types."""
    if _typed(value, dict, what).keys() != kinds.keys():
        raise ModelFileError(f"{what} has the keys {shown(list(value))}, but needs {shown(list(kinds))}")
    return {name: _typed(value[name], kind, f"{what}: {name}") for name, kind in kinds.items()}


def _slices(lengths: np.ndarray, total: int) -> list[slice]:
    """Consecutive parts of the given lengths that make up the total."""
    ends = list(accumulate(lengths.tolist(), initial=0))
    if lengths.min() < 0 or ends[-1] != total:
        raise ModelFileError(f"the lengths {shown(lengths.tolist())} do not add up to {total}")
    return [slice(start, stop) for start, stop in pairwise(ends)]


# --- what each estimator stores -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """Something that a model holds, on its way into a record and out of it."""

    pack: Callable[[Any, Values, Arrays], None]
    unpack: Callable[[Any, ModelRecord], None]


@dataclass(frozen=True)
class Plan:
    """Where an estimator lives, its parts, and the part that is saved on request."""

    home: str
    name: str
    parts: tuple[Part, ...]
    state: Part

    def estimator(self) -> Any:
        return getattr(import_module(self.home), self.name)


LINEAR = Part(_pack_linear, _unpack_linear)
TRAINING = Part(_pack_training, _unpack_training)
STATE = Part(_pack_state, _unpack_state)

PLANS = {
    "LinearSVC": Plan("softmargin.estimators.linear_svc", "LinearSVC", (LINEAR, TRAINING), state=STATE),
}
