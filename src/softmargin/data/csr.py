"""Rows of a compressed sparse row matrix, used in place."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from softmargin.core.threads import Workers
from softmargin.data.rows import Flat, Products, Rows


class CSRRows:
    """A canonical CSR matrix (sorted, no duplicates) with int32 or int64 indices; nothing is copied."""

    def __init__(self, matrix: Any, workers: Workers | None = None, products: Products | None = None) -> None:
        self._matrix = matrix
        self._workers = workers or Workers(1)
        self._products = products or Products(
            Flat(matrix.data, matrix.indices, matrix.indptr, int(matrix.shape[0]), int(matrix.shape[1]), False)
        )

    @property
    def n_rows(self) -> int:
        return self._matrix.shape[0]

    @property
    def n_cols(self) -> int:
        return self._matrix.shape[1]

    @property
    def flat(self) -> Flat:
        return self._products.flat

    def dot(self, w: np.ndarray) -> np.ndarray:
        return self._products.dot(w, self._workers)

    def t_dot(self, v: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        return self._products.t_dot(v, before, self._workers)

    def sq_norms(self) -> np.ndarray:
        return self._products.sq_norms(self._workers)

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
