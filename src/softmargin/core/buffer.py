"""An array with room behind its end."""

from typing import Any

import numpy as np


class Buffer:
    """Entries of an array that gains some at its end and loses some anywhere.

    Growing copies rarely, and views that were taken before stay as they are. What is given up is overwritten. The first
    array is used in place until it must grow or shrink.
    """

    def __init__(self, array: np.ndarray) -> None:
        self._memory, self.size = array, len(array)
        self._is_borrowed = True

    @property
    def view(self) -> np.ndarray:
        return self._memory[: self.size]

    def append(self, values: Any) -> None:
        """Put entries at the end; the type widens if it must."""
        values = np.asarray(values)
        dtype = np.result_type(self._memory, values)
        size = self.size + len(values)
        if self._is_borrowed or size > len(self._memory) or dtype != self._memory.dtype:
            self._move(size + size // 4 + 16, dtype)
        self._memory[self.size : size] = values
        self.size = size

    def take(self, order: np.ndarray) -> None:
        """Keep the entries of `order`, in this order; most of them should be where they are."""
        if self._is_borrowed:
            self._move(self.size, self._memory.dtype)
        moved = np.flatnonzero(order != np.arange(order.size))
        self._memory[moved] = self._memory[order[moved]]
        self._memory[order.size : self.size] = 0
        self.size = order.size

    def _move(self, room: int, dtype: Any) -> None:
        memory = np.zeros((room, *self._memory.shape[1:]), dtype)
        memory[: self.size] = self.view
        self._memory, self._is_borrowed = memory, False
