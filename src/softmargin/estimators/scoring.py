"""From a model's arrays to scores and labels. Light: neither scikit-learn nor Numba is imported."""

from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.data.convert import as_products, as_rows
from softmargin.data.rows import has_row_access

# What one-class models predict.
INSIDE_OR_OUTSIDE = np.array([-1, 1])


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


def finite_scores(scores: np.ndarray) -> np.ndarray:
    """The same scores, if all of them are finite: a row whose score is not has no label and no place in an order."""
    is_finite = np.isfinite(scores) if scores.ndim == 1 else np.isfinite(scores).all(axis=1)
    if not is_finite.all():
        raise SoftmarginError(
            f"the score of row {int(np.argmin(is_finite))} overflows, so there is no label for it: its values are far "
            "larger than those of the training data. Scale X as in training, and check this row for mistakes."
        )
    return scores


def labels_from_scores(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The class of each row: the second of two if its score is positive, else the one with the largest score."""
    if scores.ndim == 1:
        return classes[(scores > 0).astype(np.intp)]
    return classes[scores.argmax(axis=1)]


def inside_or_outside(scores: np.ndarray) -> np.ndarray:
    """What a one-class model says of scores from which its offset is taken off: 1 inside, -1 for outliers.

    Rows on the boundary are inside: they cost nothing. So are all rows of a model without weights.
    """
    return INSIDE_OR_OUTSIDE[(scores >= 0.0).astype(np.intp)]
