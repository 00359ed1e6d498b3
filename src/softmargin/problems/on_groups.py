"""What all problems over groups of rows on a cluster share: names of vectors that lie there, and what tasks need.

A vector with an entry for each row is a name here (`Remote`), with the weights that it can be made of again. What is
the same for all rows travels with every task (`Posed`). A method that finds that a worker was lost begins again
(`unless_lost`).
"""

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, Protocol, TypeVar

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.kinds import PLANES
from softmargin.core.threads import Workers
from softmargin.data.chunked import ChunkedRows
from softmargin.data.groups import Group, LostPiece
from softmargin.problems.hinge import Hinge
from softmargin.problems.hinge_targets import HingeTarget, Tube, TwoClasses
from softmargin.problems.hinges import Hinges
from softmargin.problems.intercepts import Intercept

MAX_LOSSES = 25  # a method that loses its groups so often in a row gives up
T = TypeVar("T")


class Groups(Protocol):
    """What a problem needs of a cluster: `data.partitioned.Partitions` keeps it."""

    def __len__(self) -> int: ...
    def each(self, function: Callable[..., Any], *shared: Any, own: Sequence[Any] | None = None) -> list[Any]: ...
    def forget(self, key: Any) -> None: ...


class Learned(Protocol):
    """What the workers make their targets of: a small object that travels with every task."""

    @property
    def key(self) -> str:
        """Tells it from all others on the cluster."""
        ...

    def target(self, group: Group) -> HingeTarget: ...


@dataclass(frozen=True)
class OneAgainstRest:
    """The class with the number `positive` against all others, with a factor for each class."""

    key: str
    classes: np.ndarray
    positive: int
    factors: np.ndarray

    def target(self, group: Group) -> HingeTarget:
        codes = np.searchsorted(self.classes, group.columns["y"])
        weights = self.factors[codes] * group.weights
        return TwoClasses(np.where(codes == self.positive, weights, -weights))


@dataclass(frozen=True)
class Numbers:
    """The numbers y, within a tube of this width."""

    key: str
    epsilon: float

    def target(self, group: Group) -> HingeTarget:
        return Tube(group.columns["y"].astype(np.float64), group.weights, self.epsilon)


@dataclass(frozen=True)
class Posed:
    """The problem as it travels: all but the rows."""

    learned: Learned
    C: float
    intercept: Intercept

    @property
    def key(self) -> str:
        return self.learned.key


class Remote:
    """The name of a vector on the workers, and the weights that it can be made of. Nothing of it is here."""

    size = 0
    __array_ufunc__ = None  # a NumPy number leaves multiplying to this class
    __slots__ = ("__weakref__", "_groups", "age", "b", "is_there", "key", "remake", "slope", "w")

    def __init__(self, key: tuple, w: np.ndarray, groups: Groups, *, is_there: bool = False) -> None:
        self.key, self.w, self.is_there = key, w, is_there
        self._groups = groups
        self.b = 0.0
        self.slope = np.empty(0)
        self.age = 0
        self.remake: Callable[[], None] = lambda: None
        weakref.finalize(self, groups.forget, key)

    def __rmul__(self, factor: float) -> "Remote":
        """A multiple of outputs is that of the weights; it is made when it is needed."""
        return Remote((*self.key, factor), factor * self.w, self._groups)

    @property
    def ref(self) -> tuple:
        """As a task takes it: with the weights only if the workers have not got them."""
        return self.key, None if self.is_there else self.w


@dataclass(frozen=True)
class GroupProblem:
    """What problems over groups of rows have in common. `lost` is what a round raises if memory was lost."""

    groups: Groups
    lost: type[Exception]
    posed: Any
    n_rows: int
    n_cols: int
    scale: float
    workers: Workers

    elsewhere = True  # f and c are names
    serves = (PLANES,)
    lowest = 0.0

    @property
    def C(self) -> float:
        return self.posed.C

    @cached_property
    def _numbers(self) -> Any:
        return count()

    def named(self, kind: str, w: np.ndarray) -> Remote:
        """A new name."""
        return Remote((kind, self.posed.key, next(self._numbers)), w, self.groups)

    def outputs(self, w: np.ndarray) -> Remote:
        """Made when it is needed."""
        return self.named("f", np.array(w))

    def slope(self, c: Remote, before: Remote | None = None) -> np.ndarray:
        return c.slope.copy() if before is None else c.slope - before.slope

    def coefficients(self, witnesses: Sequence[Remote], weights: np.ndarray) -> np.ndarray:
        raise SoftmarginError("planes of rows on a cluster are kept as weights, never as outputs.")

    def each(self, function: Callable[..., Any], made: Sequence[Remote], *arguments: Any) -> list[Any]:
        """A round that makes these vectors where they are not there yet."""
        found = self.groups.each(function, self.posed, *arguments)
        for vector in made:
            vector.is_there = True
        return found

    def unless_lost(self, vectors: Sequence[Remote], method: Callable[[], T]) -> T:
        """The method, from its beginning if a worker was lost meanwhile: these vectors are made again then."""

        def make_again() -> None:
            for vector in vectors:
                vector.is_there = False

        return unless_lost(self.lost, method, make_again)


def unless_lost(lost: type[Exception], method: Callable[[], T], prepare: Callable[[], None]) -> T:
    """The method; if what it needs was lost, it is prepared, and the method begins again."""
    for _ in range(MAX_LOSSES):
        try:
            return method()
        except lost:
            prepare()
    raise SoftmarginError(
        f"workers were lost {MAX_LOSSES} times in a row, before what they had to do was done: look into the logs of "
        "the workers; most often they run out of memory."
    )


def added(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The sum of vectors, in their order."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


# What the workers do, with one group at a time.


def group_problem(group: Group, workers: Workers, posed: Posed) -> Hinge:
    """The problem of the rows of one group."""
    make = lambda: Hinge(group.rows(workers), posed.learned.target(group), posed.C, posed.intercept, workers)  # noqa: E731
    return group.remembered(("problem", posed.key), make)


def group_vectors(
    group: Group, refs: Sequence[tuple], rows: ChunkedRows, intercept: Intercept, spread: Callable[..., np.ndarray]
) -> list[np.ndarray]:
    """Vectors of outputs, remembered or made of their weights; several are made in one reading of the rows.

    `spread` makes outputs of products with the rows and the weight of the intercept.
    """
    lost = {key: w for key, w in refs if group.memory.get(key) is None}
    if any(w is None for w in lost.values()):
        raise LostPiece
    products = {key: np.zeros(rows.n_rows) for key in lost}
    split = {key: intercept.split(w) for key, w in lost.items()}
    nonzero = [key for key, w in lost.items() if w.any()]
    if len(nonzero) == 1:
        products[nonzero[0]] = rows.dot(split[nonzero[0]][0])
    elif nonzero:
        for where, found in rows.dots(np.array([split[key][0] for key in nonzero])):
            for key, product in zip(nonzero, found, strict=True):
                products[key][where] = product
    for key, product in products.items():
        group.memory[key] = spread(product, split[key][1])
    return [group.memory[key] for key, _ in refs]


def group_line(
    group: Group, workers: Workers, posed: Posed, f: tuple, df: tuple
) -> tuple[np.ndarray, np.ndarray, Hinges]:
    """f and df of the rows of one group, remembered or made of their weights, and the hinges."""
    problem = group_problem(group, workers, posed)
    at, along = group_vectors(group, (f, df), group.rows(workers), posed.intercept, problem.spread)
    return problem.shifted(at), along, problem.hinges
