"""Sums over support vectors in NumPy alone: for places without a compiler. Sparse rows need scipy, which made them."""

from typing import Any

import numpy as np

from softmargin.kernels.functions import RBF, Kernel, Laplacian, Linear, Polynomial, Sigmoid
from softmargin.prediction.machine import Expansion, Vectors

_TILE = 1 << 21  # entries of what is held at a time: 16 MB in float64


def expanded(machine: Expansion, X: Any) -> np.ndarray:
    """The columns of the expansion for dense rows, or for a CSR matrix."""
    kernel, vectors = machine.kernel, machine.vectors
    if kernel is None or vectors is None:
        return X[:, machine.support] @ machine.coefficients + machine.intercept
    out = np.zeros((X.shape[0], machine.coefficients.shape[1]))
    width = max(1, X.shape[1] if vectors.used is None else vectors.used.size)
    tile = max(1, min(len(vectors), _TILE // width))
    n_rows = max(1, _TILE // max(tile, width))
    centre = _centre(kernel, vectors, X)
    with np.errstate(over="ignore", invalid="ignore"):
        for first in range(0, len(vectors), tile):
            last = min(first + tile, len(vectors))
            right = vectors.block(first, last) - centre
            for low in range(0, X.shape[0], n_rows):
                high = min(low + n_rows, X.shape[0])
                values = _kernel_values(kernel, X[low:high], right, vectors.used, centre)
                out[low:high] += values @ machine.coefficients[first:last]
    return out + machine.intercept


def _centre(kernel: Kernel, vectors: Vectors, X: Any) -> Any:
    """What is taken off rows and vectors: distances do not change, but they are computed with more digits."""
    if isinstance(kernel, RBF) and vectors.dense is not None and len(vectors) and not hasattr(X, "indptr"):
        return vectors.dense.mean(axis=0, dtype=np.float64)
    return 0.0


def _kernel_values(kernel: Kernel, rows: Any, right: np.ndarray, used: np.ndarray | None, centre: Any) -> np.ndarray:
    """K(row, vector) for each of the rows and each vector of a tile."""
    left = rows if used is None else rows[:, used]
    if isinstance(kernel, Laplacian):
        left = _densified(left)
        distances = np.stack([np.abs(left - vector).sum(axis=1) for vector in right], axis=1)
        distances += (_sums(abs(rows)) - _sums(abs(left)))[:, None]  # columns in which no vector has an entry
        return np.exp(-kernel.gamma * np.maximum(distances, 0.0))
    if isinstance(kernel, RBF):
        if not np.isscalar(centre):
            rows = left = left - centre
        products = _densified(left @ right.T)
        distances = _sums(_squared(rows))[:, None] + np.einsum("ij,ij->i", right, right) - 2.0 * products
        return np.exp(-kernel.gamma * np.maximum(distances, 0.0))
    products = _densified(left @ right.T)
    match kernel:
        case Linear():
            return products
        case Polynomial(gamma, degree, coef0):
            return (gamma * products + coef0) ** degree
        case Sigmoid(gamma, coef0):
            return np.tanh(gamma * products + coef0)
    raise AssertionError(kernel)


def _densified(values: Any) -> np.ndarray:
    return values.toarray() if hasattr(values, "toarray") else values


def _squared(rows: Any) -> Any:
    return rows.multiply(rows) if hasattr(rows, "multiply") else rows * rows


def _sums(rows: Any) -> np.ndarray:
    return np.asarray(rows.sum(axis=1), dtype=np.float64).ravel()
