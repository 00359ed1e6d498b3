"""The judge of the benchmarks: primal value and dual bound in float64, with NumPy and SciPy alone.

    primal = 1/2 |w|^2 + C sum_i max(0, 1 - y_i (w.x_i + b))
    dual   = sum_i alpha_i - 1/2 |sum_i alpha_i y_i x_i|^2
             0 <= alpha_i <= C, and sum_i alpha_i y_i = 0 where b is free

Squared hinge: the loss of a row is squared, alpha has no upper end, and the dual value is lower by
sum_i alpha_i^2 / (4 C).
Regression: the loss is C sum_i max(0, |y_i - w.x_i - b| - epsilon). Kernel machines have judges of their own:
`kernel_objective.py` and, for every kind of target, `family_objective.py`.

It shares no code with softmargin and trusts nothing but the candidate: alpha is clipped to its box, and with
a free intercept the heavier class is scaled down.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

ROWS = 50_000  # rows that are converted to float64 at a time


@dataclass(frozen=True)
class Score:
    """What a candidate is worth; `dual` and the gaps are nan where no alpha was given."""

    primal: float
    dual: float = nan

    @property
    def gap(self) -> float:
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        return self.gap / self.primal


def joint_score(X: Any, y: np.ndarray, C: float, W: np.ndarray, alpha: Any = None) -> Score:
    """Of the joint problem of several classes (Crammer and Singer), without intercept.

    primal = 1/2 |W|^2 + C sum_i max over k of (1[k != y_i] + w_k.x_i - w_(y_i).x_i); alpha_ik >= 0 counts against class
    k, and is scaled down where a row has more than C in all.
    """
    codes = np.unique(y, return_inverse=True)[1]
    every = np.arange(codes.size)
    F = np.asarray(X @ np.asarray(W).T)
    missing = 1.0 + F - F[every, codes][:, None]
    missing[every, codes] = 0.0
    primal = 0.5 * float(np.vdot(W, W)) + C * float(missing.max(axis=1).sum())
    if alpha is None:
        return Score(primal)
    alpha = np.maximum(np.array(alpha, dtype=np.float64), 0.0)
    alpha[every, codes] = 0.0
    sums = alpha.sum(axis=1)
    alpha *= np.minimum(1.0, C / np.maximum(sums, C))[:, None]
    pulls = -alpha
    pulls[every, codes] = alpha.sum(axis=1)
    V = np.asarray(X.T @ pulls)
    return Score(primal, float(alpha.sum()) - 0.5 * float(np.vdot(V, V)))


def score(
    X: Any,
    y: np.ndarray,
    C: float,
    w: np.ndarray,
    b: float = 0.0,
    alpha: Any = None,
    *,
    free_intercept: bool = False,
    squared: bool = False,
) -> Score:
    """Primal value of (w, b) and, if alpha is given, the bound it proves."""
    w = np.asarray(w, dtype=np.float64).ravel()
    loss = 0.0
    for where, block in _float64_blocks(X):
        short = np.maximum(0.0, 1.0 - y[where] * (block @ w + b))
        loss += float(short @ short if squared else short.sum())
    primal = 0.5 * float(w @ w) + C * loss
    return Score(primal) if alpha is None else Score(primal, _dual(X, y, C, b, alpha, free_intercept, squared))


def regression_primal(X: Any, y: np.ndarray, C: float, epsilon: float, w: np.ndarray, b: float = 0.0) -> float:
    """The primal value of a linear model of numbers."""
    w = np.asarray(w, dtype=np.float64).ravel()
    loss = 0.0
    for where, block in _float64_blocks(X):
        loss += float(np.maximum(0.0, np.abs(y[where] - block @ w - b) - epsilon).sum())
    return 0.5 * float(w @ w) + C * loss


def _dual(X: Any, y: np.ndarray, C: float, b: float, alpha: Any, free_intercept: bool, squared: bool) -> float:
    alpha = np.clip(np.asarray(alpha, dtype=np.float64), 0.0, np.inf if squared else C)
    if free_intercept:
        plus, minus = alpha[y > 0].sum(), alpha[y < 0].sum()
        heavier = y > 0 if plus > minus else y < 0
        alpha[heavier] *= min(plus, minus) / max(plus, minus, 1e-300)
    signed = alpha * y
    w = np.zeros(X.shape[1])
    for where, block in _float64_blocks(X):
        w += block.T @ signed[where]
    residual = abs(float(signed.sum())) * abs(b) if free_intercept else 0.0
    ridge = float(alpha @ alpha) / (4.0 * C) if squared else 0.0
    return float(alpha.sum()) - 0.5 * float(w @ w) - ridge - residual


def _float64_blocks(X: Any) -> Iterator[tuple[slice, Any]]:
    for start in range(0, X.shape[0], ROWS):
        where = slice(start, start + ROWS)
        yield where, X[where].astype(np.float64)
