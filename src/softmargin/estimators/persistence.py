"""Models to files and back: `save` for every estimator and for pipelines of them, and `load`.

A model is stored part by part. Each part has a function that puts what the estimator holds into values and arrays, and
one that takes it out of a record again (`stored/`). The record of its task says which parts an estimator has, and what
its file may hold (`tasks/records.py`, `tasks/layouts.py`).
"""

import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from reprlib import repr as shown
from typing import Any

import numpy as np

import softmargin
from softmargin.core.errors import MissingPackageError, ModelFileError, SoftmarginError
from softmargin.estimators import validation
from softmargin.estimators.stored.common import ORIGIN_PART, Arrays, Values
from softmargin.io.model_file import read_model
from softmargin.io.record import ModelRecord, Named
from softmargin.tasks.lazy import Lazy
from softmargin.tasks.records import TASK_NAMED, Task, task_of
from softmargin.tasks.solvers import SOLVER_NAMED


class SaveMixin:
    """Adds `save` to a machine that has a task, and so to its estimator."""

    _check_fitted: Callable[[], None]

    def save(self, path: Any, *, include_training_state: bool = False, format: str = "softmargin") -> None:
        """Write the fitted model to one file, as a whole or not at all; `softmargin.load` reads it.

        Parameters
        ----------
        path : str or path
            An old file is replaced at the last moment.
        include_training_state : bool, default=False
            Also save what `warm_start=True` continues from. It is there when the fit stopped early or had
            ``warm_start=True``, and holds the cutting planes or the dual variables: it can be large. Of an `SVC` or
            `SVR` that keeps its training rows, for `partial_fit` and `forget`, these are saved, too.
        format : {"softmargin", "liblinear", "libsvm"}, default="softmargin"
            "softmargin" keeps everything, bit for bit: parameters, weights, certificates, dual vector, trace. Metadata
            requests and callbacks are not saved. "liblinear" (for `LinearSVC`, `LinearSVR` and `LinearOneClassSVM`) and
            "libsvm" (for `SVC`, `SVR` and `OneClassSVM`) are the model texts of these programs: what prediction needs,
            with integer labels.
        """
        save(self, path, include_training_state=include_training_state, format=format)


def save(model: Any, path: Any, *, include_training_state: bool = False, format: str = "softmargin") -> None:
    """Write a fitted model, or a pipeline that ends in one, to one file; `load` and `load_predictor` read it.

    Parameters
    ----------
    model : estimator
        An estimator of softmargin, a `Pipeline` of scikit-learn's `StandardScaler`, `MinMaxScaler`, `MaxAbsScaler`,
        `RobustScaler` or `Normalizer` and such an estimator, or `CalibratedClassifierCV(..., ensemble=False)` around
        either. Their parameters and what their fits found are kept in double precision.
    path : str or path
        An old file is replaced at the last moment.
    include_training_state : bool, default=False
        Also save what `warm_start=True` continues from.
    format : {"softmargin", "liblinear", "libsvm"}, default="softmargin"
        As of `save` of the estimators; the texts of LIBLINEAR and LIBSVM hold no scalers and no calibration.

    Raises
    ------
    SoftmarginError
        A step is of another kind: a model file holds no code, so that only known ones can be read back.
    """
    if include_training_state and format != "softmargin":
        raise SoftmarginError(f"the format {format!r} holds no training state: drop include_training_state.")
    record = record_of(model, include_training_state)
    formats = TASK_NAMED[record.kind].formats
    formats[validation.one_of(format, "format", tuple(formats))].load()(path, record)


def load(path: Any) -> Any:
    """The model in a file that `save` or `softmargin train` wrote, or in a model file of LIBLINEAR or LIBSVM.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator
        Fitted. A pipeline or a calibrated model comes back as one. A LIBLINEAR model becomes a `LinearSVC`, a
        `LinearSVR` or a `LinearOneClassSVM` that predicts the same, a LIBSVM model an `SVC`, an `SVR` or a
        `OneClassSVM`. What they do not store stays open: `C`, `epsilon` and `nu` have their defaults, the certificate
        is nan, and there is no `trace_` or `status_`.

    Raises
    ------
    ModelFileError
        The file is damaged, of another format, or from a newer version. Loading never runs code from the file.
    """
    record = read_model(path)
    try:
        home = TASK_NAMED[record.kind].home
        home.load()
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            f"load makes an estimator, which needs the package {error.name}: install it, or predict with "
            "softmargin.load_predictor, which needs NumPy alone."
        ) from error
    with _naming(path):
        estimator = _estimator_of(record, home)
        if not record.transform and record.calibration is None:
            return estimator
        from softmargin.estimators.stored.surroundings import wrapped

        return wrapped(estimator, record)


def load_alone(path: Any, *, as_machine: bool = False) -> tuple[Any, ModelRecord]:
    """The model without what stands around it, and the record, which has that. A machine needs no scikit-learn."""
    record = read_model(path)
    task = TASK_NAMED[record.kind]
    with _naming(path):
        return _estimator_of(record, task.machine if as_machine else task.home), record


@contextmanager
def _naming(path: Any) -> Iterator[None]:
    """What is wrong with a file is told with its name."""
    try:
        yield
    except SoftmarginError as error:
        raise ModelFileError(f"{os.fsdecode(path)}: {str(error).removesuffix('.')}.") from None


def record_of(model: Any, include_training_state: bool = False) -> ModelRecord:
    """A fitted estimator as data, with the scalers and the calibration that stand around it."""
    if hasattr(model, "to_local"):  # it was trained on a cluster
        model = model.to_local()
    task = task_of(model)
    if task is not None:
        model._check_fitted()
        _check_limits(model)
        return _record_of(model, task, include_training_state)
    from softmargin.estimators.stored.surroundings import unwrapped  # imports much of scikit-learn

    found = unwrapped(model)
    if task_of(found.model) is None:
        hint = " (save its best_estimator_)" if hasattr(found.model, "best_estimator_") else ""
        raise SoftmarginError(
            f"{_dotted(found.model)} cannot be saved{hint}: known are softmargin's {', '.join(TASK_NAMED)}, but not "
            "classes derived from them."
        )
    record = record_of(found.model, include_training_state)
    if found.feature_names is not None:
        record.arrays["feature_names_in_"] = found.feature_names
    return replace(record, transform=found.transform, calibration=found.calibration, name=found.name)


def _dotted(model: Any) -> str:
    """Its class, with the library that it is from: scikit-learn has classes of the same names."""
    return f"{type(model).__module__.partition('.')[0]}.{type(model).__name__}"


def _record_of(estimator: Any, task: Task, include_training_state: bool) -> ModelRecord:
    values: Values = {}
    arrays: Arrays = {}
    for part in (*(part.load() for part in task.parts), ORIGIN_PART):
        part.pack(estimator, values, arrays)
    if include_training_state:
        task.state.load().pack(estimator, values, arrays)
    params = {name: _param_to_data(value) for name, value in estimator.get_params(deep=False).items()}
    versions = {
        "softmargin": softmargin.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    if "sklearn" in sys.modules:  # machines do without it
        versions["scikit-learn"] = sys.modules["sklearn"].__version__
    return ModelRecord(task.name, params, values, arrays, versions)


def _estimator_of(record: ModelRecord, home: Lazy) -> Any:
    task = TASK_NAMED[record.kind]
    cls = home.load()
    if unknown := sorted(record.params.keys() - cls().get_params(deep=False).keys()):
        raise ModelFileError(f"the parameter {shown(unknown[0])} is unknown for {record.kind}")
    estimator = cls(**{name: _param_from_data(value) for name, value in record.params.items()})
    _check_limits(estimator)
    for part in (*(part.load() for part in task.parts), ORIGIN_PART, task.state.load()):
        part.unpack(estimator, record)
    return estimator


def _check_limits(estimator: Any) -> None:
    """What `certify` and the command line rely on without a fit; other parameters are checked by the next fit."""
    if "C" in estimator.get_params(deep=False):
        validation.positive_number(estimator.C, "C")
    validation.stop_rule(estimator.tol, estimator.max_iter, estimator.max_seconds, "relative_gap")


def _param_to_data(value: Any) -> Any:
    name = type(value).__name__
    if name in SOLVER_NAMED and SOLVER_NAMED[name].home.load() is type(value):
        return Named(name, {field.name: getattr(value, field.name) for field in fields(value)})
    return value


def _param_from_data(value: Any) -> Any:
    if not isinstance(value, Named):
        return value
    if value.name not in SOLVER_NAMED:
        raise ModelFileError(f"the object {shown(value.name)} is unknown: known are {', '.join(SOLVER_NAMED)}")
    cls = SOLVER_NAMED[value.name].home.load()
    if unknown := sorted(value.fields.keys() - {field.name for field in fields(cls)}):
        raise ModelFileError(f"the setting {shown(unknown[0])} is unknown for {value.name}")
    try:
        return cls(**value.fields)
    except TypeError as error:
        raise ModelFileError(f"the settings of {value.name} cannot be used: {error}") from None
