"""Rows of a dense array, row-major or column-major, used in place."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from softmargin.core.threads import Workers
from softmargin.data.rows import BLOCK_VALUES, Flat, FlatProducts, FlatRows, Rows

_NO_INDICES = np.empty(0, dtype=np.int32)


class DenseRows(FlatRows):
    """A contiguous 2-D array (either order, any real type); nothing is copied."""

    def __init__(self, array: np.ndarray, workers: Workers | None = None, products: FlatProducts | None = None) -> None:
        super().__init__(workers, products or FlatProducts(_flatten(array)))
        self._array = array

    def take(self, index: np.ndarray | slice) -> "DenseRows":
        return DenseRows(np.ascontiguousarray(self._array[index]), self._workers)

    def densified(self, index: np.ndarray | slice, dtype: Any) -> np.ndarray:
        return np.ascontiguousarray(self._array[index], dtype=dtype)

    def cross(self, other: Rows) -> np.ndarray:
        right = other.native()
        out = np.empty((self.n_rows, other.n_rows))
        for where, part in self.blocks():  # a float32 block becomes float64 for a moment, the whole never does
            out[where] = (right @ np.asarray(part.native().T, dtype=np.float64)).T
        return out

    def native(self) -> np.ndarray:
        return self._array

    def blocks(self) -> Iterator[tuple[slice, "DenseRows"]]:
        step = max(1, BLOCK_VALUES // max(self.n_cols, 1))
        if 0 < self.n_rows <= step:
            yield slice(0, self.n_rows), self
            return
        for lo in range(0, self.n_rows, step):
            where = slice(lo, min(lo + step, self.n_rows))
            yield where, DenseRows(self._array[where], self._workers)

    def on(self, workers: Workers) -> "DenseRows":
        return DenseRows(self._array, workers, self._products)


def _flatten(array: np.ndarray) -> Flat:
    fortran = not array.flags.c_contiguous
    return Flat(array.ravel(order="K"), _NO_INDICES, _NO_INDICES, int(array.shape[0]), int(array.shape[1]), fortran)
