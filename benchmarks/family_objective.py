"""The judge of kernel machines of every kind: primal and dual value in float64, with NumPy and SciPy alone.

    classes      P = 1/2 beta'K beta + C sum_i max(0, 1 - y_i (f_i + b)),
                 D = sum_i |beta_i| - 1/2 beta'K beta
    numbers      P = 1/2 beta'K beta + C sum_i max(0, |y_i - f_i - b| - epsilon),
                 D = sum_i y_i beta_i - epsilon |beta_i| - 1/2 beta'K beta
    one class    P = 1/2 beta'K beta + sum_i max(0, -f_i - b) + b nu n,
                 D = -1/2 beta'K beta

with f = K beta and K = exp(-gamma |x - z|^2). beta and b are those of a fitted model in scikit-learn's form. The primal
value is that of the model as it is. For the dual value beta is clipped to its box, and the heavier side is scaled down
(for one class: all of beta is scaled, and what is missing is spread over the rows with room).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.objective import Score

BLOCK = 2_000  # rows of K that are there at a time


def class_score(X: Any, y: np.ndarray, C: float, gamma: float, model: Any) -> Score:
    """The sums over all pairs of classes of a fitted SVC."""
    primal = dual = 0.0
    for index, signs, beta, b in _pairs(model, y):
        found = _score(X[index], gamma, beta, lambda beta, f, b=b, signs=signs: _hinge(beta, f, b, signs, C), signs, C)
        primal, dual = primal + found.primal, dual + found.dual
    return Score(primal, dual)


def number_score(X: Any, y: np.ndarray, C: float, epsilon: float, gamma: float, model: Any) -> Score:
    beta, b = _single(model, y.size)

    def primal(beta: np.ndarray, f: np.ndarray) -> float:
        return C * float(np.maximum(0.0, np.abs(y - f - b) - epsilon).sum())

    return _score(X, gamma, beta, primal, y, C, epsilon)


def one_class_score(X: Any, nu: float, gamma: float, model: Any) -> Score:
    n = X.shape[0]
    beta, b = _single(model, n)
    total = nu * n
    feasible = np.clip(beta, 0.0, 1.0)
    if feasible.sum() > total:
        feasible *= total / feasible.sum()
    else:
        room = 1.0 - feasible
        feasible += room * ((total - feasible.sum()) / max(room.sum(), 1e-300))
    f, g = _products(X, gamma, np.column_stack([beta, feasible])).T
    primal = 0.5 * float(beta @ f) + float(np.maximum(0.0, -f - b).sum()) + b * total
    return Score(primal, -0.5 * float(feasible @ g))


def _score(
    X: Any, gamma: float, beta: np.ndarray, loss: Any, target: np.ndarray, C: float, epsilon: float = 0.0
) -> Score:
    """`target` are the linear terms of the dual; beta is feasible if it is in its box and sums to zero."""
    feasible = np.clip(beta, -C, C)
    if not epsilon and np.isin(target, (-1.0, 1.0)).all():
        feasible = target * np.clip(target * beta, 0.0, C)
    plus, minus = feasible[feasible > 0].sum(), -feasible[feasible < 0].sum()
    heavier = feasible > 0 if plus > minus else feasible < 0
    feasible[heavier] *= min(plus, minus) / max(plus, minus, 1e-300)
    f, g = _products(X, gamma, np.column_stack([beta, feasible])).T
    linear = float(target @ feasible) - epsilon * float(np.abs(feasible).sum())
    return Score(0.5 * float(beta @ f) + loss(beta, f), linear - 0.5 * float(feasible @ g))


def _hinge(_beta: np.ndarray, f: np.ndarray, b: float, signs: np.ndarray, C: float) -> float:
    return C * float(np.maximum(0.0, 1.0 - signs * (f + b)).sum())


def _pairs(model: Any, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, float]]:
    """Of each pair of classes its rows, their signs, beta and b, from scikit-learn's compressed form."""
    classes = model.classes_
    coefficients = np.zeros((len(classes) - 1, y.size))
    coefficients[:, model.support_] = _dense(model.dual_coef_)
    if len(classes) == 2:
        yield np.arange(y.size), np.where(y == classes[1], 1.0, -1.0), coefficients[0], float(model.intercept_[0])
        return
    k = 0
    for first in range(len(classes)):
        for second in range(first + 1, len(classes)):
            index = np.flatnonzero((y == classes[first]) | (y == classes[second]))
            own = y[index] == classes[first]
            beta = np.where(own, coefficients[second - 1, index], coefficients[first, index])
            yield index, np.where(own, 1.0, -1.0), beta, float(model.intercept_[k])
            k += 1


def _single(model: Any, n: int) -> tuple[np.ndarray, float]:
    beta = np.zeros(n)
    beta[model.support_] = _dense(model.dual_coef_).ravel()
    return beta, float(np.ravel(model.intercept_)[0])


def _products(X: Any, gamma: float, columns: np.ndarray) -> np.ndarray:
    """K times the columns."""
    support = np.flatnonzero(columns.any(axis=1))
    supports = _dense(X[support])
    squares, out = (supports**2).sum(axis=1), np.empty(columns.shape)
    for start in range(0, X.shape[0], BLOCK):
        rows = _dense(X[start : start + BLOCK])
        distances = (rows**2).sum(axis=1)[:, None] + squares - 2.0 * (rows @ supports.T)
        out[start : start + BLOCK] = np.exp(-gamma * np.maximum(distances, 0.0)) @ columns[support]
    return out


def _dense(values: Any) -> np.ndarray:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=np.float64)
