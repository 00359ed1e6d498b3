"""Models to files and back: `save` for every estimator, and `load`.

A model is stored part by part. Each part has a function that puts what the estimator holds into values and arrays, and
one that takes it out of a record again (`stored/`); `PLANS` says which parts an estimator has. What a file may hold,
with types and shapes, is in `io/record.py`.
"""

import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from reprlib import repr as shown
from typing import Any

import numpy as np
import sklearn
from sklearn.utils.validation import check_is_fitted

import softmargin
from softmargin.core.errors import ModelFileError, SoftmarginError
from softmargin.estimators import validation
from softmargin.estimators.stored.common import ORIGIN_PART, Arrays, Part, Values
from softmargin.estimators.stored.kernel import KERNEL_FIT, KERNEL_MODEL, KERNEL_STATE
from softmargin.estimators.stored.linear import (
    LINEAR,
    LINEAR_STATE,
    LINEAR_TRAINING,
    ORDINAL_TRAINING,
    RANK_TRAINING,
    SCORE,
    SCORE_STATE,
)
from softmargin.io.liblinear import write_liblinear
from softmargin.io.libsvm import write_libsvm
from softmargin.io.model_file import read_model, write_model
from softmargin.io.record import ModelRecord, Named

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
        _check_limits(self)
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
    for part in (*plan.parts, ORIGIN_PART):
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
    _check_limits(estimator)
    for part in (*plan.parts, ORIGIN_PART, plan.state):
        part.unpack(estimator, record)
    return estimator


def _check_limits(estimator: Any) -> None:
    """What `certify` and the command line rely on without a fit; other parameters are checked by the next fit."""
    validation.positive_number(estimator.C, "C")
    validation.stop_rule(estimator.tol, estimator.max_iter, estimator.max_seconds, "relative_gap")


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
