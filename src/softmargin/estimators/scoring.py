"""From a model's arrays to scores and labels. Light: neither scikit-learn nor Numba is imported."""

from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.data.convert import as_rows


def linear_scores(X: Any, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """X coef' + intercept: shape (n_rows,) for one row of coefficients, else (n_rows, n_classes)."""
    rows = as_rows(X)
    if rows.n_cols != coef.shape[1]:
        raise SoftmarginError(f"X has {rows.n_cols} features, but the model was trained on {coef.shape[1]}.")
    scores = rows.cross(as_rows(coef)) + intercept
    return scores.ravel() if len(coef) == 1 else scores


def labels_from_scores(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The class of each row: the second of two if its score is positive, else the one with the largest score."""
    if scores.ndim == 1:
        return classes[(scores > 0).astype(np.intp)]
    return classes[scores.argmax(axis=1)]
