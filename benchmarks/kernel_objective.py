"""The judge of kernel machines: the dual value of a model in float64, with NumPy and SciPy alone.

    dual = sum_i |beta_i| - 1/2 beta'K beta,   0 <= y_i beta_i <= C,   sum_i beta_i = 0

beta comes from `dual_coef_` and `support_`, K = exp(-gamma |x - z|^2) from the data, block by block. It shares no code
with softmargin and trusts nothing but the candidate: beta is clipped to its box, and the heavier class is scaled down.

`judge` also knows linear and polynomial kernels, whose sums it makes in extended precision, because their values may be
large, and measures the KKT violation, the stop rule of LIBSVM: with f = K beta and no scaling of beta,

    max over i that may grow of (y_i - f_i)  -  min over i that may fall of (y_i - f_i)
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

BLOCK = 2_000  # rows and columns of K that are there at a time
AT_BOUND = 1e-9  # share of C: so near to a bound beta is at it


@dataclass(frozen=True)
class Judgement:
    """The dual value, and by how much the optimality conditions are violated."""

    dual: float
    kkt_violation: float


def judge(X: Any, y: np.ndarray, C: float, kernel: dict[str, Any], model: Any) -> Judgement:
    """Both for a fitted two-class SVC; `kernel` has the parameters of scikit-learn's SVC."""
    support, beta = _support(model)
    alpha = np.zeros(y.size)
    alpha[support] = np.clip(y[support] * beta, 0.0, C)
    is_up, is_low = (alpha < C * (1.0 - AT_BOUND), alpha > C * AT_BOUND)
    is_up, is_low = np.where(y > 0, is_up, is_low), np.where(y > 0, is_low, is_up)
    beta = y[support] * alpha[support]
    parts = np.column_stack([np.maximum(beta, 0.0), np.minimum(beta, 0.0)])
    f = _products(X, support, parts, kernel)
    wish = y - f.sum(axis=1)
    violation = wish[is_up].max(initial=-np.inf) - wish[is_low].min(initial=np.inf)
    totals = np.abs(parts.sum(axis=0))
    scales = totals.min() / np.maximum(totals, 1e-300)  # 1 for the lighter class
    quadratic = scales @ (parts.T @ f[support]) @ scales
    return Judgement(float(totals @ scales - 0.5 * quadratic), max(0.0, float(violation)))


def dual_value(X: Any, y: np.ndarray, C: float, gamma: float, model: Any) -> float:
    """What the support vectors of a fitted two-class SVC prove, whoever trained it."""
    support, beta = _support(model)
    beta = _feasible(beta, y[support], C)
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


def _support(model: Any) -> tuple[np.ndarray, np.ndarray]:
    coefficients = model.dual_coef_
    coefficients = coefficients.toarray() if hasattr(coefficients, "toarray") else coefficients
    return np.asarray(model.support_), np.asarray(coefficients, dtype=np.float64).ravel()


def _products(X: Any, support: np.ndarray, columns: np.ndarray, kernel: dict[str, Any]) -> np.ndarray:
    """K(all rows, support) times the columns, in extended precision unless the kernel is RBF."""
    name, gamma = kernel["kernel"], kernel["gamma"]
    precision = np.float64 if name == "rbf" else np.longdouble
    supports = _dense(X[support], precision)
    if name == "linear":
        weights = supports.T @ columns
    squares = (supports**2).sum(axis=1)
    f = np.empty((X.shape[0], columns.shape[1]), dtype=precision)
    for start in range(0, X.shape[0], BLOCK):
        rows = _dense(X[start : start + BLOCK], precision)
        if name == "linear":
            f[start : start + BLOCK] = rows @ weights
            continue
        values = rows @ supports.T
        if name == "poly":
            values = (gamma * values + kernel["coef0"]) ** kernel["degree"]
        else:
            values *= 2.0
            values -= squares
            values -= (rows**2).sum(axis=1)[:, None]
            values *= gamma
            np.exp(np.minimum(values, 0.0, out=values), out=values)
        f[start : start + BLOCK] = values @ columns
    return f


def _dense(rows: Any, precision: Any) -> np.ndarray:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=precision)
