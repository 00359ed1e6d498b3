"""Scaling the features before a fit: scikit-learn's plain scalers, fitted without it, for model files.

What is stored is what the scaler of that name would have stored. Sparse rows stay sparse: what would fill their zeros
is refused, or left out where the scaler has a switch for it.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.io.record import ModelRecord, Step
from softmargin.prediction.transforms import keeps_zeros, transformed, transformed_csr

SCALINGS = ("minmax", "standard", "maxabs", "unit")
_AFFINE = ("subtract", "divide", "multiply", "add")
# What a record keeps of a model whose weights have been changed: what predicts, but nothing of the training.
_KEPT = ("coef_", "intercept_", "thresholds_", "classes_", "feature_names_in_")


def fitted_scaler(word: str, X: Any) -> Step:
    """The scaler that `--scale` calls so, fitted to these rows."""
    if word == "unit":
        return Step("scaler", "Normalizer", {"norm": "l2"}, {}, None)
    is_sparse, n_rows = hasattr(X, "indptr"), int(X.shape[0])
    low, high = _range(X)
    if word == "maxabs":
        largest = np.maximum(np.abs(low), np.abs(high))
        return Step("scaler", "MaxAbsScaler", {}, {"max_abs_": largest, "scale_": _nonzero(largest)}, n_rows)
    if word == "standard":
        mean, variance = _moments(X, low, high)
        arrays = {"mean_": mean, "var_": variance, "scale_": _nonzero(np.sqrt(variance))}
        return Step("scaler", "StandardScaler", {"with_mean": False} if is_sparse else {}, arrays, n_rows)
    scale = 1.0 / _nonzero(high - low)
    arrays = {
        "scale_": scale,
        "min_": 0.0 - low * scale,
        "data_min_": low,
        "data_max_": high,
        "data_range_": high - low,
    }
    if is_sparse and low.any():
        column = int(np.flatnonzero(low)[0])
        raise SoftmarginError(
            f"the smallest value of feature {column + 1} is {low[column]:g}: to move it to 0, minmax would make every "
            "zero of the sparse data another number. Use --scale maxabs, which keeps zeros, or give dense data (.csv, "
            ".npy)."
        )
    return Step("scaler", "MinMaxScaler", {}, arrays, n_rows)


def scaled(X: Any, steps: tuple[Step, ...]) -> Any:
    """The rows behind these steps; sparse ones become dense where a step fills the zeros."""
    if hasattr(X, "indptr"):
        return transformed_csr(X, steps) if keeps_zeros(steps) else transformed(X.toarray(), steps)
    return transformed(X, steps)


def folded(record: ModelRecord) -> ModelRecord:
    """The same predictions of a linear model without its scaling: each weight takes the factor of its feature.

    The certificate goes with the scaling, because the new weights are no optimum on data that are not scaled.
    """
    if "coef_" not in record.arrays:
        raise SoftmarginError("the scaling can be folded into the weights of a linear model only: leave that out.")
    arrays = {name: record.arrays[name] for name in _KEPT if name in record.arrays}
    coef = np.atleast_2d(arrays["coef_"])
    factor, shift = np.ones(coef.shape[1]), np.zeros(coef.shape[1])
    for step in record.transform:
        for operation, operand in step.operations():
            if operation not in _AFFINE:
                raise SoftmarginError(
                    f"{step.kind} is no scaling of single features, so that it cannot be folded into weights: leave "
                    "that out."
                )
            if operation in ("multiply", "divide"):
                by = operand if operation == "multiply" else 1.0 / operand
                factor, shift = factor * by, shift * by
            else:
                shift = shift + (operand if operation == "add" else -operand)
    moved = coef @ shift
    if "intercept_" in arrays:
        arrays["intercept_"] = arrays["intercept_"] + moved
    if "thresholds_" in arrays:
        arrays["thresholds_"] = arrays["thresholds_"] - moved[0]
    arrays["coef_"] = (coef * factor).reshape(arrays["coef_"].shape)
    values = {name: value for name, value in record.values.items() if name in ("index_base_", "search_")}
    return replace(record, arrays=arrays, values=values, transform=())


def _range(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value of each column, zeros that are not stored included."""
    if not hasattr(X, "indptr"):
        return X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    return tuple(np.asarray(part.todense(), dtype=np.float64).ravel() for part in (X.min(axis=0), X.max(axis=0)))  # type: ignore[return-value]


def _moments(X: Any, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each column; that of a constant one is exactly zero."""
    n_rows, n_cols = X.shape
    if hasattr(X, "indptr"):
        values = X.data.astype(np.float64)
        mean = np.bincount(X.indices, values, minlength=n_cols) / n_rows
        stored = np.bincount(X.indices, minlength=n_cols)
        squares = np.bincount(X.indices, np.square(values - mean[X.indices]), minlength=n_cols)
        variance = (squares + (n_rows - stored) * np.square(mean)) / n_rows
    else:
        dense = X.astype(np.float64, copy=False)
        mean = dense.mean(axis=0)
        variance = np.square(dense - mean).mean(axis=0)
    return mean, np.where(low == high, 0.0, variance)


def _nonzero(scale: np.ndarray) -> np.ndarray:
    """Constant features stay what they are."""
    return np.where(scale == 0.0, 1.0, scale)
