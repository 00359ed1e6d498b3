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
from softmargin.data.convert import as_rows
from softmargin.estimators import validation
from softmargin.estimators.training_rows import Training
from softmargin.estimators.training_state import pack_states, unpack_states
from softmargin.io.liblinear import write_liblinear
from softmargin.io.libsvm import write_libsvm
from softmargin.io.model_file import read_model, write_model
from softmargin.io.record import (
    DUAL,
    KERNEL_TRAINING,
    MARGIN_DUAL,
    MAX_COLUMNS,
    TRACE,
    ModelRecord,
    Named,
    matrix_from_arrays,
    matrix_to_arrays,
)

Values = dict[str, Any]
Arrays = dict[str, np.ndarray]

# Objects that may be parameters, by the name they have in a file, and where they live.
OBJECTS = {
    "OCAS": "softmargin.solvers.cutting_plane.ocas",
    "CPA": "softmargin.solvers.cutting_plane.cpa",
    "Pegasos": "softmargin.solvers.subgradient.pegasos",
    "SGD": "softmargin.solvers.subgradient.sgd",
    "SMO": "softmargin.solvers.smo.smo",
    "BlockSMO": "softmargin.solvers.smo.block",
    "ActiveSet": "softmargin.solvers.active_set.active_set",
    "IPM": "softmargin.solvers.interior.ipm",
}


class SaveMixin:
    """Adds `save` to an estimator that has a plan in `PLANS`."""

    def save(self, path: Any, *, include_training_state: bool = False, format: str = "softmargin") -> None:
        """Write the fitted model to one file, as a whole or not at all; `softmargin.load` reads it.

        Parameters
        ----------
        path : str or path
            An old file is replaced at the last moment.
        include_training_state : bool, default=False
            Also save what `warm_start=True` continues from. It is there when the fit stopped early or had
            ``warm_start=True``, and holds the cutting planes or the dual variables: it can be large. Of an `SVC` that
            keeps its training rows, for `partial_fit` and `forget`, these are saved, too.
        format : {"softmargin", "liblinear", "libsvm"}, default="softmargin"
            "softmargin" keeps everything, bit for bit: parameters, weights, certificates, dual vector, trace. Metadata
            requests and callbacks are not saved. "liblinear" (for linear models) and "libsvm" (for kernel models) are
            the model texts of these programs: what prediction needs, with integer labels.
        """
        check_is_fitted(self)
        plan = _plan_of(self)
        write = plan.formats[validation.one_of(format, "format", tuple(plan.formats))]
        if include_training_state and format != "softmargin":
            raise SoftmarginError(f"the format {format!r} holds no training state: drop include_training_state.")
        write(path, _record_of(self, plan, include_training_state))


def load(path: Any) -> Any:
    """The model in a file that `save` wrote, or in a model file of a classifier by LIBLINEAR or LIBSVM.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator
        Fitted. A LIBLINEAR model becomes a `LinearSVC` that predicts the same, a LIBSVM model an `SVC`; what they do
        not store stays open: `C` has its default, the certificate is nan, and there is no `trace_` or `status_`.

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


def _plan_of(estimator: Any) -> "Plan":
    kind = type(estimator).__name__
    plan = PLANS.get(kind)
    if plan is None or plan.estimator() is not type(estimator):
        raise SoftmarginError(
            f"{kind} cannot be saved: known are {', '.join(PLANS)}, but not classes derived from them."
        )
    return plan


def _record_of(estimator: Any, plan: "Plan", include_training_state: bool) -> ModelRecord:
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
    return ModelRecord(plan.name, params, values, arrays, versions)


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
    if name in OBJECTS and _object(name) is type(value):
        return Named(name, {field.name: getattr(value, field.name) for field in fields(value)})
    return value


def _param_from_data(value: Any) -> Any:
    if not isinstance(value, Named):
        return value
    if value.name not in OBJECTS:
        raise ModelFileError(f"the object {shown(value.name)} is unknown: known are {', '.join(OBJECTS)}")
    cls = _object(value.name)
    if unknown := sorted(value.fields.keys() - {field.name for field in fields(cls)}):
        raise ModelFileError(f"the setting {shown(unknown[0])} is unknown for {value.name}")
    try:
        return cls(**value.fields)
    except TypeError as error:
        raise ModelFileError(f"the settings of {value.name} cannot be used: {error}") from None


def _object(name: str) -> Any:
    return getattr(import_module(OBJECTS[name]), name)


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


# --- a ranking, or a score in classes -----------------------------------------------------------------------------

_SCORE_ARRAYS = ("coef_", "thresholds_", "classes_", "feature_names_in_")


def _pack_score(estimator: Any, values: Values, arrays: Arrays) -> None:
    arrays |= {name: getattr(estimator, name) for name in _SCORE_ARRAYS if hasattr(estimator, name)}


def _unpack_score(estimator: Any, record: ModelRecord) -> None:
    for name in _SCORE_ARRAYS:
        if name in record.arrays:
            setattr(estimator, name, record.arrays[name])
    thresholds = record.arrays.get("thresholds_", np.zeros(1))
    if np.isnan(thresholds).any() or not (thresholds[:-1] <= thresholds[1:]).all():
        raise ModelFileError("the thresholds between the classes do not ascend")
    estimator.n_features_in_ = estimator.coef_.size


# --- a kernel model -----------------------------------------------------------------------------------------------

_KERNEL_ARRAYS = ("dual_coef_", "intercept_", "n_support_", "classes_", "feature_names_in_")


def _pack_kernel(estimator: Any, values: Values, arrays: Arrays) -> None:
    if callable(estimator.kernel):
        raise SoftmarginError(
            f"kernel={estimator.kernel!r} cannot be saved: a model file holds no code. Use kernel='precomputed' with a "
            "matrix of its values, or keep this model with pickle."
        )
    is_precomputed = estimator.kernel == "precomputed"
    if is_precomputed != (estimator.support_vectors_.shape == (0, 0)):
        raise SoftmarginError(f"kernel={estimator.kernel!r} is not the kernel of the fit: fit again, or set it back.")
    arrays |= {name: getattr(estimator, name) for name in _KERNEL_ARRAYS if hasattr(estimator, name)}
    values["n_features_in_"] = estimator.n_features_in_
    values["gamma_"] = float(estimator.gamma_)
    if not is_precomputed:
        arrays |= matrix_to_arrays("support_vectors_", estimator.support_vectors_)


def _unpack_kernel(estimator: Any, record: ModelRecord) -> None:
    values, arrays = record.values, record.arrays
    for name in _KERNEL_ARRAYS:
        if name in arrays:
            setattr(estimator, name, arrays[name])
    n_support, n_vectors = estimator.n_support_, estimator.dual_coef_.shape[1]
    if n_support.min() < 0 or n_support.sum(dtype=np.int64) != n_vectors:
        raise ModelFileError(f"n_support_ is {shown(n_support.tolist())}, but there are {n_vectors} support vectors")
    n_features = _typed(values.get("n_features_in_"), int, "n_features_in_")
    names = getattr(estimator, "feature_names_in_", None)
    if not 1 <= n_features <= MAX_COLUMNS or (names is not None and len(names) != n_features):
        raise ModelFileError(f"the number of features cannot be {n_features}")
    estimator.n_features_in_ = n_features
    estimator.gamma_ = _typed(values.get("gamma_"), float, "gamma_")
    _check_kernel(estimator)
    vectors = matrix_from_arrays("support_vectors_", arrays, n_features)
    if (vectors is None) != (estimator.kernel == "precomputed"):
        raise ModelFileError("a model has support vectors if its kernel is not precomputed, and only then")
    estimator.support_vectors_ = np.empty((0, 0)) if vectors is None else vectors


def _check_kernel(estimator: Any) -> None:
    """Prediction relies on these parameters; others are checked by the next fit."""
    from softmargin.estimators.kernel_choice import KERNELS, kernel_of

    validation.one_of(estimator.kernel, "kernel", KERNELS)
    try:
        kernel_of(estimator)
    except (TypeError, ValueError, OverflowError):
        raise ModelFileError(
            f"degree={shown(estimator.degree)} and coef0={shown(estimator.coef0)} must be numbers"
        ) from None


# --- how it was trained -------------------------------------------------------------------------------------------

_COLUMN_TYPES: dict[Any, Any] = {int: np.int64, float: np.float64}


def _pack_linear_training(estimator: Any, values: Values, arrays: Arrays) -> None:
    if not hasattr(estimator, "status_"):
        return  # imported: another program trained it
    _pack_outcome(estimator, values, arrays)
    values["n_iter_"] = estimator.n_iter_
    arrays["dual_"] = estimator.dual_.reshape(len(estimator.dual_), -1)


def _unpack_linear_training(estimator: Any, record: ModelRecord) -> None:
    if _unpack_outcome(estimator, record, {"n_iter_"}, DUAL | TRACE):
        estimator.n_iter_ = _typed(record.values["n_iter_"], int, "n_iter_")
        dual = record.arrays["dual_"]
        estimator.dual_ = dual if dual.shape[1] > 1 else dual[:, 0]


def _pack_rank_training(estimator: Any, values: Values, arrays: Arrays) -> None:
    if hasattr(estimator, "status_"):
        _pack_outcome(estimator, values, arrays)
        values["n_iter_"] = estimator.n_iter_
        values["n_pairs_"] = estimator.n_pairs_


def _unpack_rank_training(estimator: Any, record: ModelRecord) -> None:
    if _unpack_outcome(estimator, record, {"n_iter_", "n_pairs_"}, TRACE):
        estimator.n_iter_ = _typed(record.values["n_iter_"], int, "n_iter_")
        estimator.n_pairs_ = _typed(record.values["n_pairs_"], float, "n_pairs_")


def _pack_ordinal_training(estimator: Any, values: Values, arrays: Arrays) -> None:
    if hasattr(estimator, "status_"):
        _pack_outcome(estimator, values, arrays)
        values["n_iter_"] = estimator.n_iter_
        if estimator.dual_ is not None:
            arrays["dual_"] = estimator.dual_


def _unpack_ordinal_training(estimator: Any, record: ModelRecord) -> None:
    expected = TRACE | MARGIN_DUAL if "dual_" in record.arrays else TRACE
    if _unpack_outcome(estimator, record, {"n_iter_"}, expected):
        estimator.n_iter_ = _typed(record.values["n_iter_"], int, "n_iter_")
        estimator.dual_ = record.arrays.get("dual_")


def _pack_kernel_training(estimator: Any, values: Values, arrays: Arrays) -> None:
    if not hasattr(estimator, "status_"):
        return
    _pack_outcome(estimator, values, arrays)
    arrays |= {name: getattr(estimator, name) for name in KERNEL_TRAINING.keys() - TRACE.keys()}
    values["counts_"] = estimator.counts_
    values["fit_status_"] = estimator.fit_status_
    values["shape_fit_"] = list(estimator.shape_fit_)


def _unpack_kernel_training(estimator: Any, record: ModelRecord) -> None:
    values, arrays = record.values, record.arrays
    if not _unpack_outcome(estimator, record, {"counts_", "fit_status_", "shape_fit_"}, KERNEL_TRAINING):
        if estimator.kernel == "precomputed":
            raise ModelFileError("a model with a precomputed kernel needs support_, the rows of its support vectors")
        # Imported: which rows of which data were the support vectors is not known.
        estimator.support_ = np.empty(0, dtype=np.int32)
        estimator.shape_fit_ = (0, estimator.n_features_in_)
        return
    for name in KERNEL_TRAINING.keys() - TRACE.keys():
        setattr(estimator, name, arrays[name])
    counts = _typed(values["counts_"], dict, "counts_")
    estimator.counts_ = _numbers(counts, dict.fromkeys(counts, int), "counts_")
    estimator.fit_status_ = _typed(values["fit_status_"], int, "fit_status_")
    shape = [_typed(length, int, "shape_fit_") for length in _typed(values["shape_fit_"], list, "shape_fit_")]
    if len(shape) != 2 or shape[1] != estimator.n_features_in_:
        raise ModelFileError(f"shape_fit_ is {shown(shape)}, but there are {estimator.n_features_in_} features")
    rows = estimator.support_
    if rows.min(initial=0) < 0 or rows.max(initial=-1) >= shape[0]:
        raise ModelFileError(f"support_ holds rows beyond the {shape[0]} of the training data")
    estimator.shape_fit_ = tuple(shape)


def _pack_outcome(estimator: Any, values: Values, arrays: Arrays) -> None:
    """What the training of every model leaves behind."""
    values["status_"] = estimator.status_.name
    values["certificates_"] = [asdict(certificate) for certificate in estimator.certificates_]
    values["seconds_"] = estimator.seconds_
    traces = estimator.trace_ if isinstance(estimator.trace_, list) else [estimator.trace_]
    arrays["trace.lengths"] = np.array([len(trace) for trace in traces], dtype=np.int64)
    for column in fields(Record):
        parts = [trace[column.name] for trace in traces]
        arrays[f"trace.{column.name}"] = np.concatenate(parts).astype(_COLUMN_TYPES[column.type])


def _unpack_outcome(estimator: Any, record: ModelRecord, more: set[str], expected: Mapping[str, str]) -> bool:
    """Whether the record tells of the training; it must say everything then: `more` values and the expected arrays."""
    values, arrays = record.values, record.arrays
    n_problems = len(arrays.get("intercept_", (0.0,)))
    needed = {"status_", "certificates_", "seconds_"} | more | expected.keys()
    found = needed & (values.keys() | arrays.keys())
    if not found:
        unknown = Certificate(math.nan, math.nan, math.nan, math.nan, math.nan)
        estimator.certificates_ = [unknown] * n_problems
        estimator.certificate_ = unknown
        return False
    if found != needed:
        raise ModelFileError("what is said about the training is not complete")
    if _typed(values["status_"], str, "status_") not in Status.__members__:
        raise ModelFileError(f"the status {shown(values['status_'])} is unknown")
    estimator.status_ = Status[values["status_"]]
    certificates = _typed(values["certificates_"], list, "certificates_")
    if len(certificates) != n_problems:
        raise ModelFileError(f"there are {len(certificates)} certificates for {n_problems} sub-problems")
    estimator.certificates_ = [Certificate(**_numbers(part, _CERTIFICATE, "a certificate")) for part in certificates]
    estimator.certificate_ = Certificate.combine(estimator.certificates_)
    seconds = _typed(values["seconds_"], dict, "seconds_")
    estimator.seconds_ = _numbers(seconds, dict.fromkeys(seconds, float), "seconds_")
    rows = zip(*(arrays[f"trace.{column}"].tolist() for column in Trace.columns), strict=True)
    records = [Record(*row) for row in rows]
    traces = [Trace(records[where]) for where in _slices(arrays["trace.lengths"], len(records))]
    estimator.trace_ = traces if n_problems > 1 else traces[0]
    return True


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


def _unpack_linear_state(estimator: Any, record: ModelRecord) -> None:
    def lengths() -> dict[str, int]:
        n_weights = estimator.n_features_in_ + (estimator.intercept == "penalised")
        return {"rows": len(estimator.dual_), "weights": n_weights}

    _unpack_state(estimator, record, lengths, ("PlaneState", "SubgradientState"))


def _unpack_score_state(estimator: Any, record: ModelRecord) -> None:
    _unpack_state(estimator, record, lambda: {"weights": estimator.n_features_in_}, ("RankingState", "OrdinalState"))


def _pack_kernel_state(estimator: Any, values: Values, arrays: Arrays) -> None:
    """What a fit continues from, if it is there, and the rows that were learned from, if they are."""
    has_rows = hasattr(estimator, "_training") and estimator.kernel != "precomputed"
    if hasattr(estimator, "_state") or not has_rows:
        _pack_state(estimator, values, arrays)
    if has_rows:
        training = estimator._training
        arrays |= matrix_to_arrays("training.X", as_rows(training.matrix).native())
        arrays["training.codes"] = training.codes.astype(np.int64)
        arrays |= {"training.weights": training.weights, "training.ids": training.ids}
        values["next_row_id"] = training.next_id


def _unpack_kernel_state(estimator: Any, record: ModelRecord) -> None:
    """Pairs of classes have rows of their own number."""
    _unpack_state(estimator, record, dict, ("DualState",))
    arrays = {name: array for name, array in record.arrays.items() if name.startswith("training.")}
    if not arrays:
        return
    matrix = matrix_from_arrays("training.X", arrays, estimator.n_features_in_)
    if matrix is None or "training.codes" not in arrays or not hasattr(estimator, "status_"):
        raise ModelFileError("the training rows are not complete")
    codes, weights, ids = (arrays[f"training.{name}"] for name in ("codes", "weights", "ids"))
    next_id = _typed(record.values.get("next_row_id"), int, "next_row_id")
    good = (
        matrix.shape == estimator.shape_fit_
        and codes.size == matrix.shape[0]
        and 0 <= codes.min(initial=0) <= codes.max(initial=0) < len(estimator.classes_)
        and bool(np.isfinite(weights).all() and (weights >= 0.0).all())
        and bool((np.diff(ids, prepend=-1, append=next_id) > 0).all())
        and np.array_equal(
            codes[estimator.support_], np.repeat(np.arange(len(estimator.classes_)), estimator.n_support_)
        )
    )
    if not good:
        raise ModelFileError("the training rows contradict the model")
    estimator._keep_training(Training(matrix, codes, weights, ids, next_id))


def _unpack_state(
    estimator: Any, record: ModelRecord, lengths: Callable[[], dict[str, int]], names: tuple[str, ...]
) -> None:
    arrays = {name: array for name, array in record.arrays.items() if name.startswith("state.")}
    value = record.values.get("state")
    if value is None and not arrays:
        return
    if not hasattr(estimator, "status_") or not isinstance(value, dict):
        raise ModelFileError("the training state is not complete")
    fingerprint = _typed(value.get("fingerprint"), str, "the fingerprint")
    states = unpack_states(value, arrays, len(estimator.certificates_), lengths(), names)
    estimator._state = (fingerprint, states)


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
    """Where an estimator lives, its parts, the part that is saved on request, and what writes which format."""

    home: str
    name: str
    parts: tuple[Part, ...]
    state: Part
    formats: Mapping[str, Callable[[Any, ModelRecord], None]]

    def estimator(self) -> Any:
        return getattr(import_module(self.home), self.name)


LINEAR = Part(_pack_linear, _unpack_linear)
LINEAR_TRAINING = Part(_pack_linear_training, _unpack_linear_training)
LINEAR_STATE = Part(_pack_state, _unpack_linear_state)
SCORE = Part(_pack_score, _unpack_score)
RANK_TRAINING = Part(_pack_rank_training, _unpack_rank_training)
ORDINAL_TRAINING = Part(_pack_ordinal_training, _unpack_ordinal_training)
SCORE_STATE = Part(_pack_state, _unpack_score_state)
KERNEL_MODEL = Part(_pack_kernel, _unpack_kernel)
KERNEL_FIT = Part(_pack_kernel_training, _unpack_kernel_training)
KERNEL_STATE = Part(_pack_kernel_state, _unpack_kernel_state)

PLANS = {
    "LinearSVC": Plan(
        "softmargin.estimators.linear_svc",
        "LinearSVC",
        (LINEAR, LINEAR_TRAINING),
        state=LINEAR_STATE,
        formats={"softmargin": write_model, "liblinear": write_liblinear},
    ),
    "RankSVM": Plan(
        "softmargin.estimators.rank_svm",
        "RankSVM",
        (SCORE, RANK_TRAINING),
        state=SCORE_STATE,
        formats={"softmargin": write_model},
    ),
    "OrdinalSVC": Plan(
        "softmargin.estimators.ordinal_svc",
        "OrdinalSVC",
        (SCORE, ORDINAL_TRAINING),
        state=SCORE_STATE,
        formats={"softmargin": write_model},
    ),
    "SVC": Plan(
        "softmargin.estimators.svc",
        "SVC",
        (KERNEL_MODEL, KERNEL_FIT),
        state=KERNEL_STATE,
        formats={"softmargin": write_model, "libsvm": write_libsvm},
    ),
}
