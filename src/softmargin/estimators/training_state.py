"""The training state, from which a fit with `warm_start` continues: how it gets into a model file and out of it.

A model file holds plain numbers and arrays, but the state of a solver is a tree of frozen dataclasses, whose leaves are
numbers and arrays. For a file the tree is taken apart into two flat dictionaries, one of numbers and one of arrays.
Their keys are paths in the tree, such as "best.x". The annotations of the state's class tell how to put it together
again. Fields that are declared with compare=False hold values that a solver can rebuild; these are not stored.

A file may be damaged, or made by somebody else, and compiled code relies on the shapes of its arrays. So the shapes are
checked against `tasks/layouts.py` before a state is used.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, fields, is_dataclass
from reprlib import repr as shown
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from softmargin.core.errors import ModelFileError, SoftmarginError
from softmargin.estimators.problem_settings import LastStep
from softmargin.io.record import CODES, check_axes
from softmargin.problems import hinge, joint, ordinal, ranking
from softmargin.problems.base import Hint, is_wide
from softmargin.solvers.coordinate.coordinate import CoordinateState
from softmargin.solvers.cutting_plane.planes import FIRST_CAPACITY, Latest, PlaneParts, Planes
from softmargin.solvers.cutting_plane.state import PlaneState
from softmargin.solvers.dual_state import DualState
from softmargin.solvers.newton.newton import NewtonState
from softmargin.solvers.subgradient.state import SubgradientState
from softmargin.tasks.layouts import STATES

# Counts in a file must be below this number.
LARGEST_COUNT = 2**53
# Rounding may make an inner product of two planes wrong by this share of the product of their lengths.
_PRODUCT_ERROR = 1e-6
Numbers = dict[str, Any]
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Form:
    """A kind of state that a file can hold.

    `state` is the class of the state. States of cutting planes have the same class for every kind of problem and are
    told apart by the class of their witnesses, `witness`. `stored_as` names the classes in the tree that are not plain,
    and for each of them the class that is stored in its place.
    """

    state: type
    witness: type | None
    stored_as: Mapping[type, Any]

    def is_for(self, state: Any) -> bool:
        if isinstance(state, PlaneState) and type(state.planes.witnesses[0]) is not self.witness:
            return False
        return type(state) is self.state


def pack_states(states: list[Any]) -> tuple[dict[str, Any], Arrays]:
    """The states of all sub-problems, as one value for the JSON part of a file and a dictionary of arrays.

    A sub-problem with nothing to solve has the state None. None is also stored for a state whose numbers have
    overflowed, because no fit can continue from it.
    """
    some = next((state for state in states if state is not None), None)
    name = next((name for name, form in FORMS.items() if form.is_for(some)), None)
    if name is None:
        raise SoftmarginError(
            f"a training state of the type {type(some).__name__} cannot be saved: save the model without "
            "include_training_state."
        )
    problems: list[Numbers | None] = []
    arrays: Arrays = {}
    for k, state in enumerate(states):
        if state is None:
            problems.append(None)
            continue
        numbers: Numbers = {}
        parts: Arrays = {}
        _take_apart(state, "", numbers, parts, FORMS[name])
        _check(name, parts, {})
        if not _is_finite(numbers, parts):
            problems.append(None)
            continue
        problems.append(numbers)
        arrays |= {f"state.{k}.{path}": part for path, part in parts.items()}
    return {"type": name, "problems": problems}, arrays


def unpack_states(
    value: Any,
    arrays: Mapping[str, np.ndarray],
    n_problems: int,
    lengths: dict[str, int],
    names: tuple[str, ...],
) -> list[Any]:
    """The inverse of `pack_states`.

    `lengths` are the lengths of axes that are known from the model, and `names` are the kinds of state that a model of
    its type can have.
    """
    match value:
        case {"fingerprint": _, "type": str(name), "problems": list(problems), **rest} if (
            not rest and name in names and len(problems) == n_problems
        ):
            pass
        case _:
            raise ModelFileError("the training state does not have a form that is known for this model")
    parts: dict[str, Arrays] = {str(k): {} for k in range(n_problems)}
    for full_name, array in arrays.items():
        k, _, path = full_name.removeprefix("state.").partition(".")
        if k not in parts:
            raise ModelFileError(f"the array {shown(full_name)} of the training state belongs to no sub-problem")
        parts[k][path] = array
    return [
        _unpack_state(name, numbers, part, dict(lengths))
        for numbers, part in zip(problems, parts.values(), strict=True)
    ]


def _unpack_state(name: str, numbers: Any, arrays: Arrays, lengths: dict[str, int]) -> Any:
    if numbers is None and not arrays:
        return None
    if not isinstance(numbers, dict):
        raise ModelFileError("the training state of a sub-problem lacks its numbers")
    _check(name, arrays, lengths)
    _check_numbers(numbers, arrays)
    left = dict(numbers)
    state = _put_together(FORMS[name].state, "", left, arrays, FORMS[name])
    if left:
        raise ModelFileError(f"the training state holds the entry {shown(sorted(left)[0])}, which is unknown")
    if isinstance(state, DualState) and not all(-1 <= member < state.beta.size for member in state.pair):
        raise ModelFileError("the last pair in the training state names a variable that does not exist")
    return state


def _check(name: str, arrays: Arrays, lengths: dict[str, int]) -> None:
    """Refuse arrays whose types or shapes are not those that `tasks/layouts.py` lists for this kind of state."""
    described = {path: (CODES.get(array.dtype, "text"), array.shape) for path, array in arrays.items()}
    check_axes(STATES[name], described, lengths)


def _check_numbers(numbers: Numbers, arrays: Arrays) -> None:
    """Refuse numbers that no solver could have left behind: NaN, infinity, and counts that are negative or too large.

    A seed is no count, and may be any integer of at least 0.
    """
    if not _is_finite(numbers, arrays):
        raise ModelFileError("the training state holds NaN or infinity")
    for path, number in numbers.items():
        if type(number) is int and not 0 <= number < (math.inf if path == "seed" else LARGEST_COUNT):
            raise ModelFileError(f"{path} in the training state cannot be {shown(number)}")


def _is_finite(numbers: Numbers, arrays: Arrays) -> bool:
    """Whether all numbers and all entries of arrays are finite.

    The schedule of a subgradient method is left out. Its radius may be infinite, and a fit that continues makes a new
    schedule anyway.
    """
    single = [n for path, n in numbers.items() if type(n) is float and not path.startswith("schedule.")]
    return bool(np.isfinite(single).all()) and all(np.isfinite(part).all() for part in arrays.values())


def _take_apart(node: Any, prefix: str, numbers: Numbers, arrays: Arrays, form: Form) -> None:
    """Add the leaves of the tree below `node` to the two dictionaries; the paths of all of them begin with `prefix`."""
    hints = get_type_hints(type(node))
    for field in _stored_fields(node):
        path, part = prefix + field.name, getattr(node, field.name)
        if part is not None and _kind(hints[field.name]) in form.stored_as:
            part = form.stored_as[_kind(hints[field.name])].of(part)
        if isinstance(part, np.ndarray):
            arrays[path] = part
        elif is_dataclass(part):
            _take_apart(part, f"{path}.", numbers, arrays, form)
        elif isinstance(part, tuple):
            numbers[path] = [kind(item) for kind, item in zip(get_args(hints[field.name]), part, strict=True)]
        else:
            numbers[path] = None if part is None else _kind(hints[field.name])(part)


def _stored_fields(node: Any) -> list[Field]:
    """The fields of a dataclass or of its instance that belong into a file; those with compare=False do not."""
    return [field for field in fields(node) if field.compare]


def _kind(hint: Any) -> Any:
    """The type in an annotation such as `X` or `X | None`: X in both cases."""
    if get_origin(hint) is tuple:
        return hint
    return next((option for option in get_args(hint) if option is not type(None)), hint)


def _put_together(cls: Any, prefix: str, numbers: Numbers, arrays: Arrays, form: Form) -> Any:
    """The inverse of `_take_apart`: an instance of `cls`.

    Numbers that were used are removed from their dictionary, so that what is left in the end is unknown to the state.
    """
    hints = get_type_hints(cls)
    parts: dict[str, Any] = {}
    for name in (field.name for field in _stored_fields(cls)):
        hint, path = hints[name], prefix + name
        optional = _kind(hint) is not hint
        kind = form.stored_as.get(_kind(hint), _kind(hint))
        if optional and path in numbers and numbers[path] is None:
            parts[name] = numbers.pop(path)
        elif kind is np.ndarray:
            parts[name] = arrays[path]
        elif is_dataclass(kind):
            parts[name] = _put_together(kind, f"{path}.", numbers, arrays, form)
        elif get_origin(kind) is tuple and _has_types(numbers.get(path), get_args(kind)):
            parts[name] = tuple(numbers.pop(path))
        elif type(numbers.get(path)) is kind:
            parts[name] = numbers.pop(path)
        else:
            raise ModelFileError(f"{path} in the training state should be of type {kind.__name__}")
    node = cls(**parts)
    return node.planes() if isinstance(node, _StoredPlanes) else node


def _has_types(items: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(items, list) and [type(item) for item in items] == list(kinds)


@dataclass(frozen=True)
class _StoredPlanes(ABC):
    """`Planes` as plain arrays. Every kind of problem has witnesses of its own, which derived classes add."""

    vectors: np.ndarray
    gram: np.ndarray
    constants: np.ndarray
    latest: Latest
    capacity: int

    @classmethod
    def of(cls, planes: Planes) -> "_StoredPlanes":
        parts: dict[str, Any] = {**planes.parts()._asdict(), **cls._arrays(planes.witnesses)}
        return cls(**parts)

    @staticmethod
    @abstractmethod
    def _arrays(witnesses: Any) -> Arrays:
        """The witnesses of all planes as arrays, by the names of the fields that a derived class adds."""

    @abstractmethod
    def _witnesses(self) -> Iterable[Any]:
        """The inverse of `_arrays`: one witness for each plane."""

    @abstractmethod
    def _fits(self, n_rows: int) -> bool:
        """Whether the witnesses can belong to a problem of `n_rows` rows."""

    def planes(self) -> Planes:
        """The planes, after a check that the arrays can belong together."""
        (count, width), (n_rows,), (n_weights,) = self.vectors.shape, self.latest.c.shape, self.latest.slope.shape
        as_outputs = is_wide(n_rows, n_weights)
        good = (
            1 <= count <= self.capacity <= max(FIRST_CAPACITY, 2 * count)
            and width == (n_rows if as_outputs else n_weights)
            and _can_be_gram(self.gram)
            and self._fits(n_rows)
        )
        if not good:
            raise ModelFileError("the planes of the training state contradict each other")
        parts = PlaneParts(self.vectors, self.gram, self.constants, self.latest, self.capacity)
        return Planes.of_parts(parts, tuple(self._witnesses()))


@dataclass(frozen=True)
class _HingePlanes(_StoredPlanes):
    witness_bits: np.ndarray
    witness_row: np.ndarray
    witness_fraction: np.ndarray

    @staticmethod
    def _arrays(witnesses: Any) -> Arrays:
        return {
            "witness_bits": np.stack([witness.bits for witness in witnesses]),
            "witness_row": np.array([witness.row for witness in witnesses], dtype=np.int64),
            "witness_fraction": np.array([witness.fraction for witness in witnesses]),
        }

    def _witnesses(self) -> Iterable[hinge.ActiveHinges]:
        rows, fractions = self.witness_row.tolist(), self.witness_fraction.tolist()
        return map(hinge.ActiveHinges, self.witness_bits, rows, fractions)

    def _fits(self, n_rows: int) -> bool:
        return self.witness_bits.shape[1] == -(-n_rows // 8) and _are_rows(self.witness_row, n_rows)


@dataclass(frozen=True)
class _RankingPlanes(_StoredPlanes):
    witness_scores: np.ndarray
    witness_c: np.ndarray

    @staticmethod
    def _arrays(witnesses: Any) -> Arrays:
        nothing = np.empty(0)
        return {
            "witness_scores": np.stack([witness.scores for witness in witnesses]),
            "witness_c": np.stack([nothing if witness.c is None else witness.c for witness in witnesses]),
        }

    def _witnesses(self) -> Iterable[ranking.PlaneScores]:
        is_wide = self.witness_c.shape[1] > 0
        return (
            ranking.PlaneScores(scores, c if is_wide else None)
            for scores, c in zip(self.witness_scores, self.witness_c, strict=True)
        )

    def _fits(self, n_rows: int) -> bool:
        return self.witness_c.shape[1] in (0, n_rows) and bool(np.isfinite(self.witness_scores).all())


@dataclass(frozen=True)
class _JointPlanes(_StoredPlanes):
    witness_classes: np.ndarray

    @staticmethod
    def _arrays(witnesses: Any) -> Arrays:
        return {"witness_classes": np.stack([witness.classes for witness in witnesses])}

    def _witnesses(self) -> Iterable[joint.LostTo]:
        return map(joint.LostTo, self.witness_classes)

    def _fits(self, n_rows: int) -> bool:
        """`n_rows` is that of the outputs, which has an entry for each class of each row."""
        n = self.witness_classes.shape[1]
        return n > 0 and n_rows % n == 0 and int(self.witness_classes.max()) < n_rows // n


@dataclass(frozen=True)
class _OrdinalPlanes(_StoredPlanes):
    witness_bits: np.ndarray
    witness_rows: np.ndarray
    witness_fractions: np.ndarray

    @staticmethod
    def _arrays(witnesses: Any) -> Arrays:
        return {
            "witness_bits": np.stack([witness.bits for witness in witnesses]),
            "witness_rows": np.stack([witness.rows for witness in witnesses]),
            "witness_fractions": np.stack([witness.fractions for witness in witnesses]),
        }

    def _witnesses(self) -> Iterable[ordinal.ActiveLosses]:
        return map(ordinal.ActiveLosses, self.witness_bits, self.witness_rows, self.witness_fractions)

    def _fits(self, n_rows: int) -> bool:
        return self.witness_bits.shape[2] == -(-n_rows // 8) and _are_rows(self.witness_rows, n_rows)


def _can_be_gram(gram: np.ndarray) -> bool:
    """Whether a matrix can hold the inner products of some vectors.

    Such a matrix is symmetric, and no entry is larger than the product of the lengths of its two vectors. Both are
    checked up to rounding.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.sqrt(np.diagonal(gram))
        largest = np.outer(lengths, lengths) * (1.0 + _PRODUCT_ERROR)
        return bool((np.abs(gram) <= largest).all() and (np.abs(gram - gram.T) <= _PRODUCT_ERROR * largest).all())


def _are_rows(index: np.ndarray, n_rows: int) -> bool:
    """Whether every entry is the number of a row, or -1, which stands for no row."""
    return bool(index.min() >= -1 and index.max() < n_rows)


# The kinds of state, by the names that they have in a file. A state of cutting planes holds a hint for the next line
# search. For hinges the hint is stored as it is. For ranking and thresholds it is large and follows from the problem,
# so only its step length is stored.
FORMS = {
    "PlaneState": Form(PlaneState, hinge.ActiveHinges, {Planes: _HingePlanes}),
    "RankingState": Form(PlaneState, ranking.PlaneScores, {Planes: _RankingPlanes, Hint: LastStep}),
    "JointState": Form(PlaneState, joint.LostTo, {Planes: _JointPlanes}),
    "OrdinalState": Form(PlaneState, ordinal.ActiveLosses, {Planes: _OrdinalPlanes, Hint: LastStep}),
    "CoordinateState": Form(CoordinateState, None, {}),
    "NewtonState": Form(NewtonState, None, {}),
    "SubgradientState": Form(SubgradientState, None, {}),
    "DualState": Form(DualState, None, {}),
}
