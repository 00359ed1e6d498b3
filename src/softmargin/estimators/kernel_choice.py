"""From the parameters of an estimator to its kernel."""

import math
from collections.abc import Callable, Iterator
from numbers import Real
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.data.rows import Rows
from softmargin.estimators import validation
from softmargin.kernels.by_name import named_kernel
from softmargin.kernels.functions import Custom, Kernel, Linear
from softmargin.kernels.matrix import largest_exponent

# If gamma times the largest squared length of a row is below this, distances between rows are finite numbers.
_LARGEST_EXPONENT = 1e300
# Below this variance of X, 1 / variance may overflow.
_LEAST_VARIANCE = 1e-300
KERNELS = ("linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed")


def checked_kernel(estimator: Any, rows: Rows, weights: np.ndarray) -> Kernel | None:
    """The kernel that the parameters ask for; None is "precomputed". The weights are those of the rows."""
    kernel = estimator.kernel
    if callable(kernel):
        return Custom(kernel)
    validation.one_of(kernel, "kernel", KERNELS)
    if kernel == "precomputed":
        return None
    if kernel == "linear":
        return in_range(Linear(), rows)
    gamma = gamma_value(estimator.gamma, rows, weights)
    return in_range(named_kernel(kernel, gamma, estimator.degree, estimator.coef0), rows)


def in_range(kernel: Kernel | None, rows: Rows) -> Kernel | None:
    """The same kernel, if its values on these rows are numbers."""
    if kernel is None or isinstance(kernel, Custom):
        return kernel
    with np.errstate(over="ignore", invalid="ignore"):
        largest = float(np.abs(kernel.diagonal(rows)).max(initial=0.0))
        reach = largest_exponent(kernel, rows)
    if not math.isfinite(largest) or not reach < _LARGEST_EXPONENT:
        raise SoftmarginError(
            f"values of the kernel {kernel.name!r} overflow on these rows: scale the features, for example with "
            "StandardScaler, or lower gamma or degree."
        )
    return kernel


def kernel_of(estimator: Any) -> Kernel | None:
    """The kernel of a fitted model."""
    if callable(estimator.kernel):
        return Custom(estimator.kernel)
    return named_kernel(estimator.kernel, estimator.gamma_, estimator.degree, estimator.coef0)


def gamma_value(gamma: Any, rows: Rows, weights: np.ndarray) -> float:
    """The number that a gamma means for these rows, which have these weights."""
    if isinstance(gamma, str):
        validation.one_of(gamma, "gamma", ("scale", "auto"))
        if gamma == "auto":
            return 1.0 / rows.n_cols
        with np.errstate(over="ignore", invalid="ignore"):
            variance = _variance(rows, weights)
        if not math.isfinite(variance):
            raise SoftmarginError(
                "gamma='scale' needs the variance of X, which overflows: scale the features, for example with "
                "StandardScaler."
            )
        if 0.0 < variance < _LEAST_VARIANCE:
            raise SoftmarginError(
                f"gamma='scale' is 1 / (n_features * X.var()), and the variance of X is {variance:.3g}, too small "
                "for that: scale the features, for example with StandardScaler, or set gamma."
            )
        return 1.0 / (rows.n_cols * variance) if variance > 0 else 1.0
    if isinstance(gamma, bool) or not isinstance(gamma, Real) or not math.isfinite(gamma) or gamma <= 0:
        raise SoftmarginError(
            f"gamma={gamma!r} must be a positive, finite number, 'scale' or 'auto': a kernel with gamma <= 0 does not "
            "tell rows apart."
        )
    return float(gamma)


def _variance(rows: Rows, weights: np.ndarray) -> float:
    """The variance of all entries of X, zeros that are not stored included; rows count as often as they weigh."""
    total = rows.n_cols * float(weights.sum())
    mean = sum(float(share.sum()) for share in _weighted(rows, weights, np.asarray)) / total
    spread = sum(float(share.sum()) for share in _weighted(rows, weights, lambda entries: np.square(entries - mean)))
    stored = float((weights * _stored(rows)).sum())
    return (spread + (total - stored) * mean * mean) / total


def _stored(rows: Rows) -> np.ndarray | int:
    """How many entries of each row are stored."""
    return np.diff(rows.flat.indptr) if rows.flat.indptr.size else rows.n_cols


def _weighted(rows: Rows, weights: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> Iterator[np.ndarray]:
    """A function of the stored entries, block by block, times the weight of the row that each is in."""
    for where, part in rows.blocks():
        flat = part.flat
        if flat.indptr.size:
            yield np.repeat(weights[where], _stored(part)) * function(flat.values.astype(np.float64))
        else:
            yield weights[where] @ function(part.native().astype(np.float64, copy=False))
