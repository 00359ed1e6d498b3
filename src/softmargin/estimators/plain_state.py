"""Fitted estimators as plain values, for pickle, joblib, copies and skops.

What a fit leaves behind is handed over as numbers, strings, lists, dictionaries and arrays, and put together again on
the other side. So skops, which loads only types that it is told to trust, needs to trust the estimator and, if it is an
object, its solver (`softmargin.SKOPS_TRUSTED_TYPES` lists them all). A long trace takes a few arrays instead of
thousands of objects.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Certificate
from softmargin.core.status import Status
from softmargin.core.trace import Record, Trace
from softmargin.estimators.training_rows import TrainingRows
from softmargin.estimators.training_state import FORMS, pack_states, unpack_states


class PlainStateMixin:
    """Adds `__getstate__` and `__setstate__` with plain values only."""

    def __getstate__(self) -> dict[str, Any]:
        above: Any = super()
        return {
            name: _PLAIN[name][0](value) if name in _PLAIN else value for name, value in above.__getstate__().items()
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        above: Any = super()
        above.__setstate__({name: _PLAIN[name][1](value) if name in _PLAIN else value for name, value in state.items()})


def _trace(columns: dict[str, Any]) -> Trace:
    rows = zip(*(columns[name].tolist() for name in Trace.columns), strict=True)
    return Trace([Record(*row) for row in rows])


def _packed(state: tuple[str, list[Any]]) -> dict[str, Any]:
    fingerprint, states = state
    try:
        value, arrays = pack_states(states)
    except SoftmarginError:  # of a solver that is not ours: it travels as it is
        return {"fingerprint": fingerprint, "states": states}
    return {"value": {"fingerprint": fingerprint} | value, "arrays": arrays}


def _unpacked(packed: dict[str, Any]) -> tuple[str, list[Any]]:
    if "states" in packed:
        return packed["fingerprint"], packed["states"]
    value = packed["value"]
    return value["fingerprint"], unpack_states(value, packed["arrays"], len(value["problems"]), {}, tuple(FORMS))


def _each(function: Callable) -> Callable:
    """The function of one, or of each in a list."""
    return lambda value: [function(part) for part in value] if isinstance(value, list) else function(value)


# Attributes that are not plain: how each becomes plain, and how it comes back.
_PLAIN: dict[str, tuple[Callable, Callable]] = {
    "status_": (lambda status: status.name, lambda name: Status[name]),
    "certificate_": (asdict, lambda numbers: Certificate(**numbers)),
    "certificates_": (_each(asdict), _each(lambda numbers: Certificate(**numbers))),
    "trace_": (_each(Trace.to_dict), _each(_trace)),
    "_state": (_packed, _unpacked),
    "_training": (lambda training: dict(vars(training)), lambda parts: TrainingRows(**parts)),
}
