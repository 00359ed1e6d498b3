"""Which rows are kept, and where: slots of a cache, given to the rows used last.

The arrays are open to compiled loops: `slot_of[i]` is where row i lies (-1: nowhere), `stamp[slot]` when it was last
used. A loop that uses a row sets its stamp to the clock, and advances the clock.
"""

import numpy as np

from softmargin.core.errors import SoftmarginError


class LRU:
    """Slots for `capacity` of `n` rows; the row that was used least recently gives way."""

    def __init__(self, n: int, capacity: int) -> None:
        self.slot_of = np.full(n, -1, dtype=np.int64)
        self.owner = np.full(capacity, -1, dtype=np.int64)
        self.stamp = np.full(capacity, -1, dtype=np.int64)
        self.clock = np.zeros(1, dtype=np.int64)  # an array, so that compiled loops can advance it

    @property
    def capacity(self) -> int:
        return self.owner.size

    def place(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slots for the rows of `index` (all different), and the positions in it of those that were not there yet.

        The caller computes these. Rows of `index` do not push out each other.
        """
        if index.size > self.capacity:
            raise SoftmarginError(f"{index.size} rows do not fit into a cache of {self.capacity}.")
        slots = self.slot_of[index]
        missing = (slots < 0).nonzero()[0]
        if missing.size < slots.size:
            self.stamp[slots[slots >= 0]] = self.clock[0]
        if missing.size:
            freed = self._oldest(missing.size)
            previous = self.owner[freed]
            self.slot_of[previous[previous >= 0]] = -1
            self.owner[freed] = index[missing]
            self.slot_of[index[missing]] = freed
            self.stamp[freed] = self.clock[0]
            slots[missing] = freed
        self.clock[0] += 1
        return slots, missing

    def _oldest(self, k: int) -> np.ndarray:
        """The k slots used least recently, among equals the first: slots that were never used come in order.

        Those of the present call are not among them, for their stamp is the clock.
        """
        if k == 1:
            return np.array([self.stamp.argmin()])
        order = self.stamp * self.capacity + np.arange(self.capacity)
        return np.sort(np.argpartition(order, k - 1)[:k]) if k < self.capacity else np.arange(k)

    def cached(self) -> np.ndarray:
        """The rows that are there, in the order of their slots."""
        return self.owner[self.owner >= 0]

    def forget(self, index: np.ndarray) -> None:
        """Give up the slots of these rows."""
        slots = self.slot_of[index]
        slots = slots[slots >= 0]
        self.slot_of[self.owner[slots]] = -1
        self.owner[slots] = -1
        self.stamp[slots] = -1
