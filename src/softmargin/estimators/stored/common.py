"""What all models store: how the training went, what warm_start continues from, and checks of what a file says."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from itertools import accumulate, pairwise
from reprlib import repr as shown
from typing import Any

import numpy as np

from softmargin.core.errors import ModelFileError, SoftmarginError
from softmargin.core.result import Certificate
from softmargin.core.status import Status
from softmargin.core.trace import Record, Trace
from softmargin.io.record import ModelRecord, typed
from softmargin.tasks.layouts import ORIGIN
from softmargin.tasks.records import TASK_NAMED

Values = dict[str, Any]
Arrays = dict[str, np.ndarray]

_COLUMN_TYPES: dict[Any, Any] = {int: np.int64, float: np.float64}


@dataclass(frozen=True)
class Part:
    """Something that a model holds, on its way into a record and out of it."""

    pack: Callable[[Any, Values, Arrays], None]
    unpack: Callable[[Any, ModelRecord], None]


def pack_outcome(estimator: Any, values: Values, arrays: Arrays) -> None:
    """What the training of every model leaves behind."""
    values["status_"] = estimator.status_.name
    values["certificates_"] = [asdict(certificate) for certificate in estimator.certificates_]
    values["seconds_"] = estimator.seconds_
    traces = estimator.trace_ if isinstance(estimator.trace_, list) else [estimator.trace_]
    arrays["trace.lengths"] = np.array([len(trace) for trace in traces], dtype=np.int64)
    for column in fields(Record):
        parts = [trace[column.name] for trace in traces]
        arrays[f"trace.{column.name}"] = np.concatenate(parts).astype(_COLUMN_TYPES[column.type])


def unpack_outcome(
    estimator: Any, record: ModelRecord, more: set[str], expected: Mapping[str, str], n_problems: int | None = None
) -> bool:
    """Whether the record tells of the training; it must say everything then: `more` values and the expected arrays.

    There are as many sub-problems as intercepts, if `n_problems` does not say otherwise.
    """
    values, arrays = record.values, record.arrays
    if n_problems is None:
        n_problems = len(arrays.get("intercept_", (0.0,)))
    needed = {"status_", "certificates_", "seconds_"} | more | expected.keys()
    found = needed & (values.keys() | arrays.keys())
    if not found:
        unknown = Certificate(**{field.name: math.nan for field in fields(Certificate)})
        estimator.certificates_ = [unknown] * n_problems
        estimator.certificate_ = unknown
        return False
    if found != needed:
        raise ModelFileError("what is said about the training is not complete")
    if values["status_"] not in Status.__members__:
        raise ModelFileError(f"the status {shown(values['status_'])} is unknown")
    estimator.status_ = Status[values["status_"]]
    if len(values["certificates_"]) != n_problems:
        raise ModelFileError(f"there are {len(values['certificates_'])} certificates for {n_problems} sub-problems")
    if len(arrays["trace.lengths"]) != n_problems:
        raise ModelFileError(f"there are {len(arrays['trace.lengths'])} traces for {n_problems} sub-problems")
    estimator.certificates_ = [Certificate(**part) for part in values["certificates_"]]
    estimator.certificate_ = Certificate.combine(estimator.certificates_)
    estimator.seconds_ = values["seconds_"]
    rows = zip(*(arrays[f"trace.{column}"].tolist() for column in Trace.columns), strict=True)
    records = [Record(*row) for row in rows]
    traces = [Trace(records[where]) for where in _slices(arrays["trace.lengths"], len(records))]
    estimator.trace_ = traces if n_problems > 1 else traces[0]
    return True


def pack_state(estimator: Any, values: Values, arrays: Arrays) -> None:
    if not hasattr(estimator, "_state"):
        raise SoftmarginError(
            "this model keeps no training state, because its fit reached its goal: fit with warm_start=True, or save "
            "without include_training_state."
        )
    from softmargin.estimators.training_state import pack_states

    fingerprint, states = estimator._state
    value, parts = pack_states(states)
    values["state"] = {"fingerprint": fingerprint} | value
    arrays |= parts


def unpack_state(estimator: Any, record: ModelRecord) -> None:
    arrays = {name: array for name, array in record.arrays.items() if name.startswith("state.")}
    value = record.values.get("state")
    if value is None and not arrays:
        return
    if not hasattr(estimator, "status_") or value is None:
        raise ModelFileError("the training state is not complete")
    from softmargin.estimators.training_state import unpack_states

    fingerprint = typed(value.get("fingerprint"), str, "the fingerprint")
    states = unpack_states(value, arrays, len(estimator.certificates_), {}, TASK_NAMED[record.kind].states)
    estimator._state = (fingerprint, states)


def _pack_origin(estimator: Any, values: Values, arrays: Arrays) -> None:
    values |= {name: getattr(estimator, name) for name in ORIGIN if hasattr(estimator, name)}


def _unpack_origin(estimator: Any, record: ModelRecord) -> None:
    for name, kind in ORIGIN.items():
        if name in record.values:
            setattr(estimator, name, typed(record.values[name], kind, name))


ORIGIN_PART = Part(_pack_origin, _unpack_origin)


def _slices(lengths: np.ndarray, total: int) -> list[slice]:
    """Consecutive parts of the given lengths that make up the total."""
    ends = list(accumulate(lengths.tolist(), initial=0))
    if lengths.min() < 0 or ends[-1] != total:
        raise ModelFileError(f"the lengths {shown(lengths.tolist())} do not add up to {total}")
    return [slice(start, stop) for start, stop in pairwise(ends)]
