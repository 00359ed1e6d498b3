"""From scores to probabilities: what scikit-learn's CalibratedClassifierCV computes, in NumPy."""

import numpy as np

from softmargin.io.record import Calibration


def probabilities(scores: np.ndarray, calibration: Calibration) -> np.ndarray:
    """A probability for each row and class, from scores of shape (n_rows,) or (n_rows, n_classes)."""
    columns = scores.reshape(len(scores), -1)
    if calibration.method == "sigmoid":
        found = _logistic(-(calibration.arrays["a"] * columns + calibration.arrays["b"]))
    else:
        curves = zip(columns.T, calibration.curves(), strict=True)
        found = np.column_stack([np.interp(column, x, y) for column, (x, y) in curves])
    if found.shape[1] == 1:
        return np.hstack([1.0 - found, found])
    sums = found.sum(axis=1, keepdims=True)
    uniform = np.full_like(found, 1.0 / found.shape[1])  # where every calibrator says zero
    return np.divide(found, sums, out=uniform, where=sums != 0.0)


def _logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0.0, 1.0, small) / (1.0 + small)
