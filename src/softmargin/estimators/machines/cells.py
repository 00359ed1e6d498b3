"""What a search over parameters solves, and what it keeps of every solution: folds, cells, grids, time.

There is one copy of X. A fold is a vector of weights: its held-out rows have the weight 0, which is the same as leaving
them out.
"""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Certificate
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.core.trace import Clock
from softmargin.estimators import validation


@dataclass(frozen=True)
class Fold:
    """The weights of all rows in training, 0 for those that are left out; and which rows are scored."""

    weights: np.ndarray
    held_out: np.ndarray


@dataclass(frozen=True)
class Cell:
    """What is kept of the solutions of one fold, C and gamma: for each sub-problem a certificate and a status."""

    certificates: Sequence[Certificate]
    statuses: Sequence[Status]
    n_support: int
    decisions: np.ndarray

    @property
    def reached_goal(self) -> bool:
        return all(status.reached_goal for status in self.statuses)


class SearchInterrupted(KeyboardInterrupt):
    """Ctrl-C during a search, with the cells of the finished solutions: of a fold these may be few, or none."""

    def __init__(self, cells: "Cells", gammas: Sequence[Any]) -> None:
        super().__init__()
        self.cells, self.gammas = cells, gammas


class Budget:
    """A time limit for many solves: each may take an equal share of what is left."""

    def __init__(self, stop: Stop, n_solves: int) -> None:
        self._stop, self._left, self._clock = stop, n_solves, Clock()
        self._lock = threading.Lock()  # folds are solved in several threads

    @property
    def seconds_left(self) -> float | None:
        limit = self._stop.max_seconds
        return None if limit is None else max(0.0, limit - self._clock.seconds)

    def next(self, n_at_once: int = 1) -> float | None:
        """The seconds of the next solve; None is no limit. `n_at_once` solves run side by side."""
        with self._lock:
            left, rounds = self.seconds_left, -(-max(1, self._left) // n_at_once)
            self._left -= 1
        return None if left is None else left / rounds


@dataclass(frozen=True)
class Task:
    """What a search is to solve: rows and the codes of their classes, checked; folds; values of C in ascending order.

    `weights` are the sample weights of the rows, `budget` the time that is left.
    """

    X: Any
    classes: np.ndarray
    codes: np.ndarray
    weights: np.ndarray
    folds: Sequence[Fold]
    Cs: np.ndarray
    budget: Budget


# Of each fold, of each gamma, of each C in ascending order.
Cells = list[list[list[Cell]]]


def checked_grid(given: Any, name: str, powers: tuple[float, float]) -> np.ndarray:
    """Positive numbers: as given, or as many as asked for between two powers of ten."""
    if isinstance(given, Integral) and not isinstance(given, bool):
        if given < 1:
            raise SoftmarginError(f"{name}={given!r} must be at least 1, or a list of positive numbers.")
        return np.logspace(*powers, int(given))
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise SoftmarginError(f"{name}={given!r} must be a number of values, or a list of positive numbers.")
    values = np.array([validation.positive_number(value, f"a value in {name}") for value in given])
    if not values.size:
        raise SoftmarginError(f"{name} is empty: give at least one value.")
    return values
