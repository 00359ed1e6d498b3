"""The cutting planes of a solve, their Gram matrix, and points that are combinations of them.

A plane says R(w) >= <a, w> + e with a = X'c. There are two forms, with the same interface and the same cost of one
product with X and one with X' for every plane:

    slopes    keep a (length d). A point w = -sum gamma_j a_j gets its outputs by the product X w.
    outputs   keep u = X a (length n); a itself is forgotten. <a_i, a_j> = <c_i, u_j>, the outputs of a point are
              -sum gamma_j u_j, and w is formed once at the end as X'x with x = -sum gamma_j c_j.

The second is for wide data (2 n < d): 300 planes of 1.8 million features would be 4 GB, of 20,000 outputs 48 MB.

Neighbouring planes differ in few rows, so the product with X' is taken of the difference to the last plane's
coefficients only, a = a_last + X'(c - c_last): rows that did not change sides are not touched.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.linalg import vectors
from softmargin.problems.base import Hint, Pattern, PlaneAlong, RiskProblem, is_wide, lives_elsewhere

FIRST_CAPACITY = 64
# A slope is computed afresh when more than this share of the plane's rows changed, and at the latest after this many
# differences, so that rounding errors do not pile up.
CHANGED_SHARE = 0.5
MAX_DIFFERENCES = 50
COUNTED_ROWS = 2048  # changes are counted on every (1 + n // COUNTED_ROWS)-th row


@dataclass(frozen=True)
class Point:
    """A weight vector: its outputs f, and x, which is w itself (slopes) or row coefficients with w = X'x (outputs).

    `hint` is what a line search found out about it, for the next one.
    """

    x: np.ndarray
    f: np.ndarray
    hint: Hint | None = None


@dataclass(frozen=True)
class Latest:
    """The last plane in full: its coefficients c, its slope a = X'c, and how many differences led to it."""

    c: np.ndarray
    slope: np.ndarray
    age: int


class PlaneParts(NamedTuple):
    """Planes as plain arrays. The capacity is kept, so that a continued fit lays out its memory as it would have."""

    vectors: np.ndarray
    gram: np.ndarray
    constants: np.ndarray
    latest: Latest
    capacity: int


class _Store:
    """Growing arrays behind `Planes`. Rows up to `filled` belong to some Planes and are never written again."""

    def __init__(self, capacity: int, width: int) -> None:
        self.vectors = np.empty((capacity, width))
        self.gram = np.zeros((capacity, capacity))
        self.constants = np.empty(capacity)
        self.filled = 0

    def copy_of(self, keep: Any, capacity: int) -> "_Store":
        copy = _Store(capacity, self.vectors.shape[1])
        count = len(self.constants[keep])
        copy.vectors[:count] = self.vectors[keep]
        copy.gram[:count, :count] = self.gram[keep][:, keep]
        copy.constants[:count] = self.constants[keep]
        copy.filled = count
        return copy


class Planes:
    """An immutable collection of planes: `add` and `keep` return a new one. Copies share memory where they can."""

    def __init__(self, store: _Store, witnesses: tuple, as_outputs: bool, latest: Latest | None = None) -> None:
        self._store = store
        self.witnesses = witnesses
        self.as_outputs = as_outputs
        self._latest = latest

    @classmethod
    def empty(cls, problem: RiskProblem) -> "Planes":
        as_outputs = not lives_elsewhere(problem) and is_wide(problem.n_outputs, problem.n_weights)
        width = problem.n_outputs if as_outputs else problem.n_weights
        return cls(_Store(FIRST_CAPACITY, width), (), as_outputs)

    def parts(self) -> "PlaneParts":
        """All but the witnesses, as plain arrays, for a file."""
        count, store = len(self), self._store
        return PlaneParts(
            store.vectors[:count],
            store.gram[:count, :count],
            store.constants[:count],
            cast(Latest, self._latest),
            len(store.constants),
        )

    @classmethod
    def of_parts(cls, parts: "PlaneParts", witnesses: tuple) -> "Planes":
        """The inverse of `parts`; they must agree with each other."""
        count, width = parts.vectors.shape
        store = _Store(parts.capacity, width)
        store.vectors[:count] = parts.vectors
        store.gram[:count, :count] = parts.gram
        store.constants[:count] = parts.constants
        store.filled = count
        return cls(store, witnesses, is_wide(parts.latest.c.size, parts.latest.slope.size), parts.latest)

    def __len__(self) -> int:
        return len(self.witnesses)

    @property
    def shape(self) -> tuple[int, int]:
        """(outputs, weights) of the problem that the planes belong to; there must be a plane."""
        latest = cast(Latest, self._latest)
        return latest.c.size, latest.slope.size

    @property
    def gram(self) -> np.ndarray:
        """H = A A'; only the leading block of len(self) rows and columns counts."""
        return self._store.gram

    @property
    def constants(self) -> np.ndarray:
        return self._store.constants[: len(self)]

    def add(self, problem: RiskProblem, pattern: Pattern) -> "Planes":
        """With one more plane, given by its pattern."""
        latest = self._slope(problem, pattern.c)
        if self.as_outputs:
            vector, left = problem.outputs(latest.slope), pattern.c
        else:
            vector = left = latest.slope
        count = len(self)
        store = self._store
        if store.filled != count or count == len(store.constants):
            # Full, or an abandoned step or a sibling of this state has written here already.
            capacity = 2 * count if count >= len(store.constants) else len(store.constants)
            store = store.copy_of(slice(count), capacity)
        store.vectors[count] = vector
        row = vectors.rows_times(store.vectors[: count + 1], left, problem.workers)
        if not np.isfinite(row).all():
            raise SoftmarginError(
                "inner products of the weighted rows overflow double precision: scale the features or the weights down."
            )
        store.gram[count, : count + 1] = row
        store.gram[: count + 1, count] = row
        store.constants[count] = pattern.constant
        store.filled = count + 1
        return Planes(store, (*self.witnesses, pattern.witness), self.as_outputs, latest)

    def _slope(self, problem: RiskProblem, c: np.ndarray) -> Latest:
        """X'c, by the difference to the last plane where that touches fewer rows."""
        last = self._latest
        if lives_elsewhere(problem):  # the problem takes differences where c is
            return Latest(c, problem.slope(c), 0)
        if last is not None and last.age < MAX_DIFFERENCES:
            some = slice(None, None, 1 + c.size // COUNTED_ROWS)
            n_changed = np.count_nonzero(c[some] != last.c[some])
            if n_changed <= CHANGED_SHARE * np.count_nonzero(c[some] != 0.0):
                slope = problem.slope(c, last.c)
                vectors.add_to(slope, last.slope, problem.workers)
                return Latest(c, slope, last.age + 1)
        return Latest(c, problem.slope(c), 0)

    def keep(self, which: np.ndarray) -> "Planes":
        """Only the planes where `which` is true."""
        index = np.flatnonzero(which)
        store = self._store.copy_of(index, max(FIRST_CAPACITY, 2 * index.size))
        return Planes(store, tuple(self.witnesses[k] for k in index), self.as_outputs, self._latest)

    def towards(self, problem: RiskProblem, gamma: np.ndarray, start: Point) -> tuple[Point, float]:
        """The direction from `start` to w = -sum_j gamma_j a_j, and |w|^2."""
        combined = vectors.combine_rows(-gamma, self._store.vectors[: len(self)], problem.workers)
        if self.as_outputs:
            x = problem.coefficients(self.witnesses, -gamma)
            return Point(x - start.x, combined - start.f), float(x @ combined)
        sq_norm = float(combined @ combined)
        combined -= start.x
        return Point(combined, problem.outputs(combined)), sq_norm

    def bound(self, gamma: np.ndarray, sq_norm: float) -> float:
        """The value of the dual of the reduced problem, given |w|^2 of the point of gamma.

        Not from the Gram matrix: at large C that loses half of the digits.
        """
        return float(self.constants @ gamma) - 0.5 * sq_norm

    def origin(self, problem: RiskProblem) -> Point:
        """w = 0."""
        if lives_elsewhere(problem):
            return Point(np.zeros(problem.n_weights), problem.outputs(np.zeros(problem.n_weights)))
        size = problem.n_outputs if self.as_outputs else problem.n_weights
        return Point(np.zeros(size), np.zeros(problem.n_outputs))

    def inner(self, p: Point, q: Point) -> float:
        """<w_p, w_q>."""
        return float(p.x @ (q.f if self.as_outputs else q.x))

    def last_along(self, line: Point) -> PlaneAlong:
        """The plane that was added last, along a line; there must be one."""
        last = cast(Latest, self._latest)
        return PlaneAlong(last.c, float(last.c @ line.f if self.as_outputs else last.slope @ line.x))

    def weights(self, problem: RiskProblem, p: Point) -> np.ndarray:
        """The weight vector of a point; in the outputs form this is one product with X'."""
        return problem.slope(p.x) if self.as_outputs else p.x
