"""What `warm_start` continues from, on its way into a model file and out of it.

A state is a tree of frozen dataclasses with numbers and arrays at its ends. It is taken apart into two flat
dictionaries, whose keys are paths such as "best.x", and put together again by the annotations of its class. Fields that
are not compared are scratch and left out. The shapes its arrays must have are in `io/record.py`; they are checked,
because compiled code relies on them.
"""

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, is_dataclass
from reprlib import repr as shown
from typing import Any, cast, get_args, get_origin, get_type_hints

import numpy as np

from softmargin.core.errors import ModelFileError, SoftmarginError
from softmargin.io.record import CODES, STATES, check_axes
from softmargin.problems.hinge import Witness
from softmargin.solvers.cutting_plane import planes as plane_store
from softmargin.solvers.cutting_plane.planes import Planes
from softmargin.solvers.cutting_plane.state import PlaneState
from softmargin.solvers.smo.state import DualState
from softmargin.solvers.subgradient.state import SubgradientState

STATE_TYPES: dict[str, type] = {
    "PlaneState": PlaneState,
    "SubgradientState": SubgradientState,
    "DualState": DualState,
}

Numbers = dict[str, Any]
Arrays = dict[str, np.ndarray]


def pack_states(states: list[Any]) -> tuple[dict[str, Any], Arrays]:
    """The states of all sub-problems as one value and many arrays; None is the state of one with nothing to solve."""
    some = next((state for state in states if state is not None), None)
    name = type(some).__name__
    if STATE_TYPES.get(name) is not type(some):
        raise SoftmarginError(f"the state of a {name} cannot be saved: save without include_training_state.")
    problems: list[Numbers | None] = []
    arrays: Arrays = {}
    for k, state in enumerate(states):
        if state is None:
            problems.append(None)
            continue
        numbers: Numbers = {}
        parts: Arrays = {}
        _take_apart(state, "", numbers, parts)
        _check(name, parts, {})
        problems.append(numbers)
        arrays |= {f"state.{k}.{path}": part for path, part in parts.items()}
    return {"type": name, "problems": problems}, arrays


def unpack_states(
    value: Any,
    arrays: Mapping[str, np.ndarray],
    n_problems: int,
    lengths: dict[str, int],
    types: tuple[type, ...],
) -> list[Any]:
    """The inverse of `pack_states`; `lengths` are what is known of the model, `types` the states that it may have."""
    match value:
        case {"fingerprint": _, "type": str(name), "problems": list(problems), **rest} if (
            not rest and STATE_TYPES.get(name) in types and len(problems) == n_problems
        ):
            pass
        case _:
            raise ModelFileError("the training state is of no known form")
    parts: dict[str, Arrays] = {str(k): {} for k in range(n_problems)}
    for full_name, array in arrays.items():
        k, _, path = full_name.removeprefix("state.").partition(".")
        if k not in parts:
            raise ModelFileError(f"the array {shown(full_name)} belongs to no sub-problem")
        parts[k][path] = array
    return [
        _unpack_state(STATE_TYPES[name], numbers, part, dict(lengths))
        for numbers, part in zip(problems, parts.values(), strict=True)
    ]


def _unpack_state(cls: type, numbers: Any, arrays: Arrays, lengths: dict[str, int]) -> Any:
    if numbers is None and not arrays:
        return None
    if not isinstance(numbers, dict):
        raise ModelFileError("the training state holds no numbers")
    _check(cls.__name__, arrays, lengths)
    left = dict(numbers)
    state = _put_together(cls, "", left, arrays)
    if left:
        raise ModelFileError(f"the training state holds {shown(sorted(left)[0])}, which is unknown")
    if isinstance(state, DualState) and not all(-1 <= member < state.beta.size for member in state.pair):
        raise ModelFileError("the last pair of the training state lies outside of its variables")
    return state


def _check(name: str, arrays: Arrays, lengths: dict[str, int]) -> None:
    described = {path: (CODES.get(array.dtype, "text"), array.shape) for path, array in arrays.items()}
    check_axes(STATES[name], described, lengths)


def _take_apart(node: Any, prefix: str, numbers: Numbers, arrays: Arrays) -> None:
    if isinstance(node, Planes):
        node = _StoredPlanes.of(node)
    hints = get_type_hints(type(node))
    for field in _stored_fields(node):
        path, part = prefix + field.name, getattr(node, field.name)
        if isinstance(part, np.ndarray):
            arrays[path] = part
        elif is_dataclass(part) or isinstance(part, Planes):
            _take_apart(part, f"{path}.", numbers, arrays)
        elif isinstance(part, tuple):
            numbers[path] = [kind(item) for kind, item in zip(get_args(hints[field.name]), part, strict=True)]
        else:
            numbers[path] = None if part is None else _kind(hints[field.name])(part)


def _stored_fields(node: Any) -> list[Field]:
    return [field for field in fields(node) if field.compare]


def _kind(hint: Any) -> Any:
    """What is annotated, without "or None"."""
    if get_origin(hint) is tuple:
        return hint
    return next((option for option in get_args(hint) if option is not type(None)), hint)


def _put_together(cls: Any, prefix: str, numbers: Numbers, arrays: Arrays) -> Any:
    """An instance of `cls`; numbers that were used are taken out of the dictionary."""
    stored = _StoredPlanes if cls is Planes else cls
    hints = get_type_hints(stored)
    parts: dict[str, Any] = {}
    for name in (field.name for field in _stored_fields(stored)):
        hint, path = hints[name], prefix + name
        kind = _kind(hint)
        if kind is not hint and path in numbers and numbers[path] is None:
            parts[name] = numbers.pop(path)
        elif kind is np.ndarray:
            parts[name] = arrays[path]
        elif is_dataclass(kind) or kind is Planes:
            parts[name] = _put_together(kind, f"{path}.", numbers, arrays)
        elif get_origin(kind) is tuple and _has_types(numbers.get(path), get_args(kind)):
            parts[name] = tuple(numbers.pop(path))
        elif type(numbers.get(path)) is kind:
            parts[name] = numbers.pop(path)
        else:
            raise ModelFileError(f"{path} in the training state should be of type {kind.__name__}")
    node = stored(**parts)
    return node.planes() if stored is _StoredPlanes else node


def _has_types(items: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(items, list) and [type(item) for item in items] == list(kinds)


@dataclass(frozen=True)
class _StoredPlanes:
    """`Planes` as plain arrays. The capacity is kept, so that a continued fit lays out its memory as it would have."""

    vectors: np.ndarray
    gram: np.ndarray
    constants: np.ndarray
    witness_bits: np.ndarray
    witness_row: np.ndarray
    witness_fraction: np.ndarray
    latest: plane_store._Latest
    capacity: int

    @staticmethod
    def of(planes: Planes) -> "_StoredPlanes":
        count, store = len(planes), planes._store
        return _StoredPlanes(
            vectors=store.vectors[:count],
            gram=store.gram[:count, :count],
            constants=store.constants[:count],
            witness_bits=np.stack([witness.bits for witness in planes.witnesses]),
            witness_row=np.array([witness.row for witness in planes.witnesses], dtype=np.int64),
            witness_fraction=np.array([witness.fraction for witness in planes.witnesses]),
            latest=cast(plane_store._Latest, planes._latest),
            capacity=len(store.constants),
        )

    def planes(self) -> Planes:
        (count, width), (n_rows,), (n_weights,) = self.vectors.shape, self.latest.c.shape, self.latest.slope.shape
        as_outputs = n_rows < n_weights
        good = (
            1 <= count <= self.capacity <= max(plane_store.FIRST_CAPACITY, 2 * count)
            and width == (n_rows if as_outputs else n_weights)
            and self.witness_bits.shape[1] == -(-n_rows // 8)
            and self.witness_row.min() >= -1
            and self.witness_row.max() < n_rows
        )
        if not good:
            raise ModelFileError("the planes of the training state contradict each other")
        store = plane_store._Store(self.capacity, width)
        store.vectors[:count] = self.vectors
        store.gram[:count, :count] = self.gram
        store.constants[:count] = self.constants
        store.filled = count
        witnesses = tuple(
            Witness(bits, row, fraction)
            for bits, row, fraction in zip(
                self.witness_bits, self.witness_row.tolist(), self.witness_fraction.tolist(), strict=True
            )
        )
        return Planes(store, witnesses, as_outputs, self.latest)
