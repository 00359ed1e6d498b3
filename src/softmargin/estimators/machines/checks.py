"""X and y of a machine, checked: they come from a reader of ours, and so little can be wrong with them."""

from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError


def check_matrix(X: Any) -> None:
    """Refuse a matrix without rows or columns, and values that are not finite; the words are scikit-learn's."""
    n_rows, n_cols = X.shape
    if n_rows == 0 or n_cols == 0:
        raise SoftmarginError(f"X has {n_rows} rows and {n_cols} features: there is nothing to learn from.")
    values = X.data if hasattr(X, "indptr") else X
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise SoftmarginError("Input X contains NaN or infinity: every value must be a finite number.")


def checked_targets(y: Any, n_rows: int) -> np.ndarray:
    """y as an array with an entry for each row."""
    if y is None:
        raise SoftmarginError("y is missing: there is nothing to learn.")
    y = np.asarray(y)
    if y.shape != (n_rows,):
        raise SoftmarginError(f"there are {y.size} targets for {n_rows} rows: give one for each row.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise SoftmarginError("Input y contains NaN or infinity: every target must be a finite number.")
    return y
