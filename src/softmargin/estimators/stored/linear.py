"""What a linear model stores: a classifier, a ranking, or a score that is cut into classes."""

from typing import Any

from softmargin.core.errors import ModelFileError
from softmargin.estimators.stored.common import (
    Arrays,
    Part,
    Values,
    pack_outcome,
    pack_state,
    unpack_outcome,
    unpack_state,
)
from softmargin.io.record import ModelRecord
from softmargin.tasks.layouts import DUAL, MARGIN_DUAL, TRACE

_SCORE_ARRAYS = ("coef_", "thresholds_", "classes_", "feature_names_in_")


def _pack_linear(estimator: Any, values: Values, arrays: Arrays) -> None:
    for name in ("coef_", "intercept_", "classes_", "feature_names_in_"):
        if hasattr(estimator, name):
            arrays[name] = getattr(estimator, name)


def _unpack_linear(estimator: Any, record: ModelRecord) -> None:
    for name in ("coef_", "intercept_", "classes_", "feature_names_in_"):
        if name in record.arrays:
            setattr(estimator, name, record.arrays[name])
    estimator.n_features_in_ = estimator.coef_.shape[-1]


def _pack_score(estimator: Any, values: Values, arrays: Arrays) -> None:
    arrays |= {name: getattr(estimator, name) for name in _SCORE_ARRAYS if hasattr(estimator, name)}


def _unpack_score(estimator: Any, record: ModelRecord) -> None:
    for name in _SCORE_ARRAYS:
        if name in record.arrays:
            setattr(estimator, name, record.arrays[name])
    estimator.n_features_in_ = estimator.coef_.size


def _pack_linear_training(estimator: Any, values: Values, arrays: Arrays) -> None:
    if not hasattr(estimator, "status_"):
        return  # imported: another program trained it
    pack_outcome(estimator, values, arrays)
    values["n_iter_"] = estimator.n_iter_
    _pack_solver(estimator, values)
    arrays["dual_"] = estimator.dual_.reshape(len(estimator.dual_), -1)


def _unpack_linear_training(estimator: Any, record: ModelRecord) -> None:
    is_joint = getattr(estimator, "multi_class", "ovr") == "crammer_singer"
    if unpack_outcome(estimator, record, {"n_iter_"}, DUAL | TRACE, 1 if is_joint else None):
        estimator.n_iter_ = record.values["n_iter_"]
        _unpack_solver(estimator, record)
        dual = record.arrays["dual_"]
        if dual.shape[1] != (len(estimator.classes_) if is_joint else len(estimator.intercept_)):
            raise ModelFileError(f"the dual vector has {dual.shape[1]} columns, which does not fit its model")
        estimator.dual_ = dual if dual.shape[1] > 1 else dual[:, 0]


def _pack_rank_training(estimator: Any, values: Values, arrays: Arrays) -> None:
    if hasattr(estimator, "status_"):
        pack_outcome(estimator, values, arrays)
        values["n_iter_"] = estimator.n_iter_
        _pack_solver(estimator, values)
        values["n_pairs_"] = estimator.n_pairs_


def _unpack_rank_training(estimator: Any, record: ModelRecord) -> None:
    if unpack_outcome(estimator, record, {"n_iter_", "n_pairs_"}, TRACE):
        estimator.n_iter_ = record.values["n_iter_"]
        _unpack_solver(estimator, record)
        estimator.n_pairs_ = record.values["n_pairs_"]


def _pack_ordinal_training(estimator: Any, values: Values, arrays: Arrays) -> None:
    if hasattr(estimator, "status_"):
        pack_outcome(estimator, values, arrays)
        values["n_iter_"] = estimator.n_iter_
        _pack_solver(estimator, values)
        if estimator.dual_ is not None:
            arrays["dual_"] = estimator.dual_


def _unpack_ordinal_training(estimator: Any, record: ModelRecord) -> None:
    expected = TRACE | MARGIN_DUAL if "dual_" in record.arrays else TRACE
    if unpack_outcome(estimator, record, {"n_iter_"}, expected):
        estimator.n_iter_ = record.values["n_iter_"]
        _unpack_solver(estimator, record)
        estimator.dual_ = record.arrays.get("dual_")


def _pack_solver(estimator: Any, values: Values) -> None:
    if hasattr(estimator, "solver_"):
        values["solver_"] = estimator.solver_


def _unpack_solver(estimator: Any, record: ModelRecord) -> None:
    if "solver_" in record.values:  # files of the first versions do not say
        estimator.solver_ = record.values["solver_"]


LINEAR = Part(_pack_linear, _unpack_linear)
LINEAR_TRAINING = Part(_pack_linear_training, _unpack_linear_training)
SCORE = Part(_pack_score, _unpack_score)
RANK_TRAINING = Part(_pack_rank_training, _unpack_rank_training)
ORDINAL_TRAINING = Part(_pack_ordinal_training, _unpack_ordinal_training)
STATE = Part(pack_state, unpack_state)
