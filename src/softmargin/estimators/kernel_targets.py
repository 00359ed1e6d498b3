"""What a kernel machine is to learn from some rows: to tell two classes apart, numbers, or where the rows lie.

Each kind says which rows take part, with which weights (all of them positive), and what they lose (`RowLoss`).
"""

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from softmargin.core.result import Certificate, Result, Solution
from softmargin.core.status import Status
from softmargin.core.trace import Trace
from softmargin.problems.row_loss import RowLoss
from softmargin.solvers.dual_state import DualState


class KernelTarget(Protocol):
    """A sub-problem but for its kernel values."""

    @property
    def index(self) -> np.ndarray:
        """The rows that take part."""
        ...

    @property
    def weights(self) -> np.ndarray: ...

    @property
    def parts(self) -> tuple[np.ndarray, ...]:
        """Arrays that tell it from other targets; not C, and nothing else that earlier states can be used with."""
        ...

    def loss(self, C: float) -> RowLoss: ...

    def answer(self) -> Result | None:
        """The result where there is nothing to solve."""
        ...


class ChangingTarget(KernelTarget, Protocol):
    """A target whose rows may come and go. Places are positions in `index`."""

    def numbered(self, index: np.ndarray) -> Self:
        """The same rows under other numbers."""
        ...

    def without_weight(self, places: np.ndarray) -> Self:
        """The rows in these places are still there, but have the weight zero."""
        ...

    def take(self, places: np.ndarray) -> Self:
        """Only the rows in these places, in this order."""
        ...

    def followed_by(self, more: Self) -> Self:
        """The rows of another target behind those of this one."""
        ...


def _with_zeros(weights: np.ndarray, places: np.ndarray) -> np.ndarray:
    weights = weights.copy()
    weights[places] = 0.0
    return weights


@dataclass(frozen=True)
class Pair:
    """Two classes: the rows of both, and their signed weights.

    A positive score votes for `second` if there are two classes, otherwise for `first`.
    """

    index: np.ndarray
    signed_weights: np.ndarray
    first: int
    second: int

    @property
    def weights(self) -> np.ndarray:
        return np.abs(self.signed_weights)

    @property
    def parts(self) -> tuple[np.ndarray, ...]:
        return self.index, self.signed_weights

    def loss(self, C: float) -> RowLoss:
        return RowLoss.classification(self.signed_weights, C)

    def numbered(self, index: np.ndarray) -> "Pair":
        return self._with(index, self.signed_weights)

    def without_weight(self, places: np.ndarray) -> "Pair":
        return self._with(self.index, _with_zeros(self.signed_weights, places))

    def take(self, places: np.ndarray) -> "Pair":
        return self._with(self.index[places], self.signed_weights[places])

    def followed_by(self, more: "Pair") -> "Pair":
        return self._with(np.append(self.index, more.index), np.append(self.signed_weights, more.signed_weights))

    def _with(self, index: np.ndarray, signed_weights: np.ndarray) -> "Pair":
        return Pair(index, signed_weights, self.first, self.second)

    def answer(self) -> Result | None:
        """Where only one class has rows of positive weight: always that class."""
        v = self.signed_weights
        if v.size and v[0] * v[-1] < 0:  # nearly always, because the rows of the first class come first
            return None
        if (v > 0).any() and (v < 0).any():
            return None
        b = 1.0 if (self.signed_weights > 0).any() else -1.0
        nothing = np.zeros(self.index.size)
        counts = DualState(nothing, nothing).counts()
        seconds = {"total": 0.0, "judge": 0.0, "compile": 0.0}
        certificate = Certificate(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        return Result(Solution(np.empty(0), b, nothing), Status.OPTIMAL, certificate, counts, Trace(), None, seconds)


@dataclass(frozen=True)
class Numbers:
    """Numbers y, to be met up to epsilon."""

    index: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    epsilon: float

    @property
    def parts(self) -> tuple[np.ndarray, ...]:
        return self.index, self.y, self.weights

    def loss(self, C: float) -> RowLoss:
        return RowLoss.regression(self.y, self.weights, C, self.epsilon)

    def numbered(self, index: np.ndarray) -> "Numbers":
        return self._with(index, self.y, self.weights)

    def without_weight(self, places: np.ndarray) -> "Numbers":
        return self._with(self.index, self.y, _with_zeros(self.weights, places))

    def take(self, places: np.ndarray) -> "Numbers":
        return self._with(self.index[places], self.y[places], self.weights[places])

    def followed_by(self, more: "Numbers") -> "Numbers":
        index, y = np.append(self.index, more.index), np.append(self.y, more.y)
        return self._with(index, y, np.append(self.weights, more.weights))

    def _with(self, index: np.ndarray, y: np.ndarray, weights: np.ndarray) -> "Numbers":
        return Numbers(index, y, weights, self.epsilon)

    def answer(self) -> None:
        return None


@dataclass(frozen=True)
class Inliers:
    """Rows of one class, of which the share nu may lie outside. C is 1."""

    index: np.ndarray
    weights: np.ndarray
    nu: float

    @property
    def parts(self) -> tuple[np.ndarray, ...]:
        return self.index, self.weights

    def loss(self, C: float) -> RowLoss:
        return RowLoss.one_class(self.weights, self.nu)

    def answer(self) -> None:
        return None


def pairs_of(codes: np.ndarray, n_classes: int, weights: np.ndarray) -> list[Pair]:
    """One problem for two classes, positive for the second; else one for each two, positive for the first.

    Rows of weight zero are left out. In problems of many classes the rows of the first class come first.
    """
    if n_classes == 2:
        index = np.flatnonzero(weights > 0)
        return [Pair(index, np.where(codes[index] == 1, weights[index], -weights[index]), 0, 1)]
    is_there = weights > 0
    rows_of = [np.flatnonzero((codes == c) & is_there) for c in range(n_classes)]
    weights_of = [weights[rows] for rows in rows_of]
    pairs, nothing = [], np.empty(0)
    for first in range(n_classes):
        for second in range(first + 1, n_classes):
            if not (rows_of[first].size or rows_of[second].size):  # most pairs, where a single row is learned
                pairs.append(Pair(rows_of[first], nothing, first, second))
                continue
            index = np.concatenate([rows_of[first], rows_of[second]])
            pairs.append(Pair(index, np.concatenate([weights_of[first], -weights_of[second]]), first, second))
    return pairs
