"""Probabilities for a classifier: a curve from its scores to them, found on rows that its training did not see.

    score the held-out rows of each fold by a fit on the other rows (folds share data, kernel values and states)
    for each class (one of two): fit the curve to these scores and to whether the row is of the class

That is what CalibratedClassifierCV(ensemble=False) does, and it is stored as such.

Reference: J. Platt, "Probabilistic Outputs for Support Vector Machines", 1999 (the sigmoid and its targets); H.-T. Lin,
C.-J. Lin and R. C. Weng, "A Note on Platt's Probabilistic Outputs for Support Vector Machines", Machine Learning 68,
2007 (Newton's method for it); M. Ayer et al., "An Empirical Distribution Function for Sampling with Incomplete
Information", Annals of Mathematical Statistics 26, 1955 (pooling adjacent violators).
"""

from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.estimators import validation
from softmargin.estimators.machines.cells import Budget
from softmargin.estimators.machines.cells import Task as CellTask
from softmargin.estimators.machines.folds import folds_of
from softmargin.estimators.machines.kernel_search import copied, kernel_cells
from softmargin.estimators.machines.linear_search import linear_cells
from softmargin.io.record import Calibration
from softmargin.tasks.records import TASK_NAMED

METHODS = ("sigmoid", "isotonic")
_MAX_STEPS = 100
_LEAST_STEP = 1e-10
_RIDGE = 1e-12
_TOL = 1e-8  # of the gradient, for scores of size 1 and weights that add up to 1


def calibration_of(
    machine: Any, X: Any, y: np.ndarray, weights: Any, groups: Any, method: str, n_folds: int = 5, seed: int = 0
) -> Calibration:
    """The calibration of a classifier with the parameters of this machine, which needs not be fitted."""
    task = TASK_NAMED[type(machine).__name__]
    if task.word != "classify":
        raise SoftmarginError("probabilities are for classes without an order, and this model learns something else.")
    if getattr(machine, "multi_class", "ovr") != "ovr":
        raise SoftmarginError("probabilities need a machine for each class: use multi_class='ovr'.")
    classes, codes = validation.class_labels(y)
    folds = folds_of(codes.size, n_folds, seed, codes, groups, weights)
    base = validation.row_weights(weights, codes.size)
    for k, label in enumerate(classes):
        if any(not fold.weights[codes == k].any() for fold in folds):
            raise SoftmarginError(f"class {label} has too few rows for {n_folds} folds, on which to calibrate.")
    plain = copied(machine, verbose=0)
    checked, _ = plain._validated(X, y=y)
    _, stop, *_ = plain._limits()
    Cs = np.array([float(plain.C)])
    cells_task = CellTask(checked, classes, codes, base, folds, Cs, Budget(stop, n_folds))
    cells = (
        kernel_cells(cells_task, plain, [plain.gamma], 0)[0] if task.has_kernel else linear_cells(cells_task, plain, 0)
    )
    n_columns = 1 if classes.size == 2 else classes.size
    scores = np.empty((codes.size, n_columns))
    for fold, of_fold in zip(folds, cells, strict=True):
        scores[fold.held_out] = of_fold[0][0].decisions.reshape(-1, n_columns)
    positives = [codes == (1 if n_columns == 1 else k) for k in range(n_columns)]
    params = {"method": method, "ensemble": False}
    if method == "sigmoid":
        found = np.array([sigmoid(scores[:, k], positives[k], base) for k in range(n_columns)])
        return Calibration(method, {"a": found[:, 0].copy(), "b": found[:, 1].copy()}, "model", params)
    curves = [isotonic(scores[:, k], positives[k], base) for k in range(n_columns)]
    x, values = (np.concatenate([curve[part] for curve in curves]) for part in (0, 1))
    lengths = np.array([curve[0].size for curve in curves], dtype=np.int64)
    return Calibration(method, {"lengths": lengths, "x": x, "y": values}, "model", params)


def sigmoid(scores: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """(a, b) of 1 / (1 + exp(a score + b)) with the least log loss, by Newton's method with a line search."""
    size = max(float(np.abs(scores).max(initial=0.0)), 1e-300)
    s, w = scores / size, weights / weights.sum()
    n_positive, n_negative = float(weights[positive].sum()), float(weights[~positive].sum())
    target = np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))
    ab = np.array([0.0, np.log((n_negative + 1.0) / (n_positive + 1.0))])

    def loss(at: np.ndarray) -> float:
        z = at[0] * s + at[1]  # log loss is log(1 + exp(z)) - (1 - target) z
        return float(w @ (np.logaddexp(0.0, z) - (1.0 - target) * z))

    value = loss(ab)
    for _ in range(_MAX_STEPS):
        z = ab[0] * s + ab[1]
        q = np.where(z >= 0.0, 1.0, np.exp(-np.abs(z))) / (1.0 + np.exp(-np.abs(z)))  # 1 - p
        slope = np.array([w @ ((q - (1.0 - target)) * s), w @ (q - (1.0 - target))])
        if np.abs(slope).max() < _TOL:
            break
        h = w * q * (1.0 - q)
        H = np.array([[h @ (s * s), h @ s], [h @ s, h.sum()]]) + _RIDGE * np.eye(2)
        direction = -np.linalg.solve(H, slope)
        step, decrease = 1.0, float(slope @ direction)
        while step >= _LEAST_STEP and not loss(ab + step * direction) < value + 1e-4 * step * decrease:
            step /= 2.0
        if step < _LEAST_STEP:
            break
        ab = ab + step * direction
        value = loss(ab)
    return float(ab[0] / size), float(ab[1])


def isotonic(scores: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points (x, y) of the ascending curve with the least squared error: both ends of every flat part."""
    x, codes = np.unique(scores[weights > 0], return_inverse=True)
    codes = codes.ravel()
    mass = np.bincount(codes, weights[weights > 0])
    share = np.bincount(codes, (weights * positive)[weights > 0]) / mass
    means: list[float] = []
    masses: list[float] = []
    lengths: list[int] = []
    for value, own in zip(share.tolist(), mass.tolist(), strict=True):
        means.append(value)
        masses.append(own)
        lengths.append(1)
        while len(means) > 1 and means[-2] >= means[-1]:
            value, own, length = means.pop(), masses.pop(), lengths.pop()
            total = masses[-1] + own
            means[-1] = (means[-1] * masses[-1] + value * own) / total
            masses[-1] = total
            lengths[-1] += length
    y = np.clip(np.repeat(means, lengths), 0.0, 1.0)
    is_end = np.ones(x.size, dtype=bool)
    is_end[1:-1] = (y[1:-1] != y[:-2]) | (y[1:-1] != y[2:])
    return x[is_end], y[is_end]
