"""What a kernel model stores, and the training rows of one that goes on learning."""

from collections.abc import Mapping
from reprlib import repr as shown
from typing import Any

import numpy as np

from softmargin.core.errors import ModelFileError, SoftmarginError
from softmargin.data.convert import as_rows
from softmargin.estimators.kernel_choice import kernel_of
from softmargin.estimators.stored.common import (
    Arrays,
    Part,
    Values,
    pack_outcome,
    pack_state,
    unpack_outcome,
    unpack_state,
)
from softmargin.estimators.training_rows import TrainingRows
from softmargin.estimators.validation import regression_targets
from softmargin.io.record import MAX_COLUMNS, ModelRecord, matrix_from_arrays, matrix_to_arrays, typed
from softmargin.tasks.layouts import TRACE
from softmargin.tasks.records import TASK_NAMED

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
    n_features = typed(values.get("n_features_in_"), int, "n_features_in_")
    names = getattr(estimator, "feature_names_in_", None)
    if not 1 <= n_features <= MAX_COLUMNS or (names is not None and len(names) != n_features):
        raise ModelFileError(f"the number of features cannot be {n_features}")
    estimator.n_features_in_ = n_features
    estimator.gamma_ = typed(values.get("gamma_"), float, "gamma_")
    kernel_of(estimator)  # what is wrong with its parameters; the others are checked by the next fit
    vectors = matrix_from_arrays("support_vectors_", arrays, n_features)
    if (vectors is None) != (estimator.kernel == "precomputed"):
        raise ModelFileError("a model has support vectors if its kernel is not precomputed, and only then")
    estimator.support_vectors_ = np.empty((0, 0)) if vectors is None else vectors


def _pack_kernel_training(estimator: Any, values: Values, arrays: Arrays) -> None:
    if not hasattr(estimator, "status_"):
        return
    pack_outcome(estimator, values, arrays)
    for name in _training_of(type(estimator).__name__).keys() - TRACE.keys():
        arrays[name] = np.atleast_1d(np.asarray(getattr(estimator, name)))
    arrays["n_iter_"] = arrays["n_iter_"].astype(np.int32)
    values["counts_"] = estimator.counts_
    values["fit_status_"] = estimator.fit_status_
    values["shape_fit_"] = list(estimator.shape_fit_)


def _unpack_kernel_training(estimator: Any, record: ModelRecord) -> None:
    values, arrays = record.values, record.arrays
    expected = _training_of(record.kind)
    if not unpack_outcome(estimator, record, {"counts_", "fit_status_", "shape_fit_"}, expected):
        if estimator.kernel == "precomputed":
            raise ModelFileError("a model with a precomputed kernel needs support_, the rows of its support vectors")
        # Imported: which rows of which data were the support vectors is not known.
        estimator.support_ = np.empty(0, dtype=np.int32)
        estimator.shape_fit_ = (0, estimator.n_features_in_)
        return
    for name in expected.keys() - TRACE.keys():
        setattr(estimator, name, arrays[name])
    if "classes_" not in arrays:  # one problem, whose iterations are a number as in scikit-learn
        estimator.n_iter_ = int(estimator.n_iter_[0])
    estimator.counts_, estimator.fit_status_ = values["counts_"], values["fit_status_"]
    shape = values["shape_fit_"]
    if shape[1] != estimator.n_features_in_:
        raise ModelFileError(f"shape_fit_ is {shown(shape)}, but there are {estimator.n_features_in_} features")
    rows = estimator.support_
    if rows.min(initial=0) < 0 or rows.max(initial=-1) >= shape[0]:
        raise ModelFileError(f"support_ holds rows beyond the {shape[0]} of the training data")
    estimator.shape_fit_ = tuple(shape)


def _training_of(kind: str) -> Mapping[str, str]:
    """The arrays that a kernel model of this kind has about its training."""
    return next(group for group in TASK_NAMED[kind].layout.groups if "support_" in group)


def _pack_kernel_state(estimator: Any, values: Values, arrays: Arrays) -> None:
    """What a fit continues from, if it is there, and the rows that were learned from, if they are."""
    has_rows = hasattr(estimator, "_training") and estimator.kernel != "precomputed"
    if hasattr(estimator, "_state") or not has_rows:
        pack_state(estimator, values, arrays)
    if has_rows:
        training = estimator._training
        has_classes = TASK_NAMED[type(estimator).__name__].target == "classes"
        arrays |= matrix_to_arrays("training.X", as_rows(training.matrix).native())
        arrays |= {"training.weights": training.weights, "training.ids": training.ids}
        arrays["training.codes" if has_classes else "training.y"] = training.y.astype(
            np.int64 if has_classes else float
        )
        values["next_row_id"] = training.next_id


def _unpack_kernel_state(estimator: Any, record: ModelRecord) -> None:
    """Problems have rows of their own number, and so the lengths in their states are their own."""
    unpack_state(estimator, record)
    arrays = {name: array for name, array in record.arrays.items() if name.startswith("training.")}
    if not arrays:
        return
    has_classes = TASK_NAMED[record.kind].target == "classes"
    matrix = matrix_from_arrays("training.X", arrays, estimator.n_features_in_)
    y = arrays.get("training.codes" if has_classes else "training.y")
    if matrix is None or y is None or not hasattr(estimator, "status_"):
        raise ModelFileError("the training rows are not complete")
    weights, ids = arrays["training.weights"], arrays["training.ids"]
    next_id = typed(record.values.get("next_row_id"), int, "next_row_id")
    good = (
        matrix.shape == estimator.shape_fit_
        and y.size == matrix.shape[0]
        and bool(np.isfinite(weights).all() and (weights >= 0.0).all() and weights.any())
        and bool((np.diff(ids, prepend=-1, append=next_id) > 0).all())
        and (not has_classes or _are_codes(estimator, y))
    )
    if not good:
        raise ModelFileError("the training rows contradict the model")
    if not has_classes:
        y = regression_targets(y, 0.0)
    estimator._keep_training(TrainingRows(matrix, y, weights, ids, next_id))


def _are_codes(estimator: Any, codes: np.ndarray) -> bool:
    """Whether these are positions of classes, and those of the support vectors what the model says."""
    n_classes = len(estimator.classes_)
    return bool(0 <= codes.min(initial=0) <= codes.max(initial=0) < n_classes) and np.array_equal(
        codes[estimator.support_], np.repeat(np.arange(n_classes), estimator.n_support_)
    )


KERNEL_MODEL = Part(_pack_kernel, _unpack_kernel)
KERNEL_FIT = Part(_pack_kernel_training, _unpack_kernel_training)
KERNEL_STATE = Part(_pack_kernel_state, _unpack_kernel_state)
