"""From a model's arrays to scores and labels. Light: neither scikit-learn nor Numba is imported."""

from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.data.convert import as_products, as_rows
from softmargin.data.rows import has_row_access


def linear_scores(X: Any, coef: np.ndarray, intercept: np.ndarray | float = 0.0) -> np.ndarray:
    """X coef' + intercept: shape (n_rows,) for one row of coefficients, else (n_rows, n_classes)."""
    rows = as_products(X)
    if rows.n_cols != coef.shape[1]:
        raise SoftmarginError(f"X has {rows.n_cols} features, but the model was trained on {coef.shape[1]}.")
    with np.errstate(over="ignore", invalid="ignore"):  # who needs finite scores asks for them: `finite_scores`
        if has_row_access(rows):
            scores = rows.cross(as_rows(coef)) + intercept
        else:
            scores = np.column_stack([rows.dot(w) for w in coef]) + intercept
    return scores.ravel() if len(coef) == 1 else scores
