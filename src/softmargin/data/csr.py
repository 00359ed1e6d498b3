"""Rows of a compressed sparse row matrix, used in place."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from softmargin.core.threads import Workers
from softmargin.data.rows import Flat, FlatProducts, FlatRows, Rows


class CSRRows(FlatRows):
    """A canonical CSR matrix (sorted, no duplicates) with int32 or int64 indices; nothing is copied."""

    def __init__(self, matrix: Any, workers: Workers | None = None, products: FlatProducts | None = None) -> None:
        n_rows, n_cols = map(int, matrix.shape)
        flat = Flat(matrix.data, matrix.indices, matrix.indptr, n_rows, n_cols, False)
        super().__init__(workers, products or FlatProducts(flat))
        self._matrix = matrix

    def take(self, index: np.ndarray | slice) -> "CSRRows":
        return CSRRows(self._matrix[index], self._workers)

    def densified(self, index: np.ndarray | slice, dtype: Any) -> np.ndarray:
        return self._matrix[index].toarray().astype(dtype, copy=False)

    def cross(self, other: Rows) -> np.ndarray:
        right = other.native().T
        out = np.empty((self.n_rows, right.shape[1]))
        for where, part in self.blocks():
            product = part.native() @ right
            out[where] = product if isinstance(product, np.ndarray) else product.toarray()
        return out

    def native(self) -> Any:
        return self._matrix

    def blocks(self) -> Iterator[tuple[slice, "CSRRows"]]:
        for lo, hi in self._products.row_blocks:
            yield slice(lo, hi), CSRRows(self._matrix[lo:hi], self._workers)

    def on(self, workers: Workers) -> "CSRRows":
        return CSRRows(self._matrix, workers, self._products)
