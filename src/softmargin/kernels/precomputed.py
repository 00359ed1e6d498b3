"""A kernel matrix that the user computed."""

import numpy as np

from softmargin.data.dense import DenseRows
from softmargin.kernels.errors import EntryErrors, exact_entries
from softmargin.kernels.precise import PreciseRows


class PrecomputedRows:
    """Rows of a symmetric matrix, or of its part K[index, index], copied when they are asked for."""

    is_convex = False  # nobody knows
    n_evaluations = 0  # looking up is not computing

    def __init__(self, matrix: np.ndarray, index: np.ndarray | None = None) -> None:
        self._matrix = matrix
        self._index = np.arange(len(matrix)) if index is None else index

    @property
    def n(self) -> int:
        return self._index.size

    @property
    def dtype(self) -> np.dtype:
        return self._matrix.dtype

    def row_errors(self) -> np.ndarray:
        return np.full(self.n, np.finfo(np.float64).eps)  # the matrix is what it is; sums are rounded

    def errors(self) -> EntryErrors:
        return exact_entries(self.diag())

    def sharper(self, index: np.ndarray) -> None:
        return None

    def precise(self, index: np.ndarray) -> PreciseRows | None:
        return PreciseRows.of(DenseRows(np.ascontiguousarray(self.rows(index, index))), None)

    def diag(self) -> np.ndarray:
        return self._matrix[self._index, self._index].astype(np.float64)

    def rows(self, index: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        wanted = self._index if columns is None else self._index[columns]
        return self._matrix[self._index[index][:, None], wanted]

    def fill(self, index: np.ndarray, out: np.ndarray, slots: np.ndarray) -> None:
        out[slots] = self.rows(index)

    def narrow(self, index: np.ndarray) -> "PrecomputedRows":
        return PrecomputedRows(self._matrix, self._index[index])
