"""The judge of kernel machines: the dual value of a model in float64, with NumPy and SciPy alone.

    dual = sum_i |beta_i| - 1/2 beta'K beta,   0 <= y_i beta_i <= C,   sum_i beta_i = 0

beta comes from `dual_coef_` and `support_`, K = exp(-gamma |x - z|^2) from the data, block by block. It shares no code
with softmargin and trusts nothing but the candidate: beta is clipped to its box, and the heavier class is scaled down.
"""

from typing import Any

import numpy as np

BLOCK = 2_000  # rows and columns of K that are there at a time


def dual_value(X: Any, y: np.ndarray, C: float, gamma: float, model: Any) -> float:
    """What the support vectors of a fitted two-class SVC prove, whoever trained it."""
    support = np.asarray(model.support_)
    coefficients = model.dual_coef_
    beta = np.asarray(coefficients.toarray() if hasattr(coefficients, "toarray") else coefficients, dtype=np.float64)
    beta = _feasible(beta.ravel(), y[support], C)
    rows = X[support].astype(np.float64)
    squares = np.asarray(rows.multiply(rows).sum(axis=1) if hasattr(rows, "multiply") else (rows**2).sum(axis=1))
    squares = squares.ravel()
    quadratic = 0.0
    for start in range(0, beta.size, BLOCK):
        one = slice(start, start + BLOCK)
        for other_start in range(start, beta.size, BLOCK):
            other = slice(other_start, other_start + BLOCK)
            products = rows[one] @ rows[other].T
            products = products.toarray() if hasattr(products, "toarray") else products
            distances = squares[one, None] + squares[None, other] - 2.0 * products
            part = beta[one] @ np.exp(-gamma * np.maximum(distances, 0.0)) @ beta[other]
            quadratic += float(part) * (1.0 if start == other_start else 2.0)
    return float(np.abs(beta).sum()) - 0.5 * quadratic


def _feasible(beta: np.ndarray, y: np.ndarray, C: float) -> np.ndarray:
    beta = y * np.clip(y * beta, 0.0, C)
    plus, minus = beta[beta > 0].sum(), -beta[beta < 0].sum()
    heavier = beta > 0 if plus > minus else beta < 0
    return np.where(heavier, beta * (min(plus, minus) / max(plus, minus, 1e-300)), beta)
