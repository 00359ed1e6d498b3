"""Scalers applied to rows: dense ones, or CSR matrices where the zeros stay zeros. NumPy only.

Everything is computed in float64. The rows may have more columns than the scalers know: features that are zero in all
training rows, which scalers of columns leave as they are, and which count in the norm of a row.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from softmargin.io.record import Step
from softmargin.tasks.transforms import Operation

_COLUMNWISE: dict[str, Callable[..., Any]] = {
    "subtract": np.subtract,
    "divide": np.divide,
    "multiply": np.multiply,
    "add": np.add,
}


def operations_of(steps: Iterable[Step]) -> list[Operation]:
    return [operation for step in steps for operation in step.operations()]


def keeps_zeros(steps: Iterable[Step]) -> bool:
    """Whether zeros stay zeros, so that sparse rows stay sparse."""
    for operation, operand in operations_of(steps):
        if operation in ("subtract", "add") and np.any(operand != 0.0):
            return False
        if operation == "clip" and not operand[0] <= 0.0 <= operand[1]:
            return False
    return True


def transformed(X: np.ndarray, steps: Iterable[Step]) -> np.ndarray:
    """Dense rows behind all steps: a new array in float64, or X itself if there are no steps."""
    steps = tuple(steps)
    if not steps:
        return X
    out = np.array(X, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        for operation, operand in operations_of(steps):
            if operation in _COLUMNWISE:
                known = out[:, : operand.size]
                _COLUMNWISE[operation](known, operand, out=known)
            elif operation == "clip":
                np.clip(out, *operand, out=out)
            else:
                out /= _nonzero(_row_norms(out, operand))[:, None]
    return out


def transformed_csr(X: Any, steps: Iterable[Step]) -> Any:
    """A CSR matrix behind steps that `keeps_zeros` holds of: a new matrix with the same pattern."""
    steps = tuple(steps)
    if not steps:
        return X
    values = np.array(X.data, dtype=np.float64)
    row_of = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    with np.errstate(over="ignore", invalid="ignore"):
        for operation, operand in operations_of(steps):
            if operation in ("multiply", "divide"):
                factors = np.ones(X.shape[1])
                factors[: operand.size] = operand
                _COLUMNWISE[operation](values, factors[X.indices], out=values)
            elif operation == "clip":
                np.clip(values, *operand, out=values)
            elif operation == "norm":
                values /= _nonzero(_csr_norms(values, row_of, X.shape[0], operand))[row_of]
    return type(X)((values, X.indices, X.indptr), shape=X.shape, copy=False)


def _row_norms(X: np.ndarray, norm: str) -> np.ndarray:
    if norm == "l1":
        return np.abs(X).sum(axis=1)
    if norm == "max":
        return np.abs(X).max(axis=1, initial=0.0)
    return np.sqrt(np.einsum("ij,ij->i", X, X))


def _csr_norms(values: np.ndarray, row_of: np.ndarray, n_rows: int, norm: str) -> np.ndarray:
    if norm == "max":
        largest = np.zeros(n_rows)
        np.maximum.at(largest, row_of, np.abs(values))
        return largest
    sizes = np.abs(values) if norm == "l1" else values * values
    sums = np.bincount(row_of, weights=sizes, minlength=n_rows)
    return sums if norm == "l1" else np.sqrt(sums)


def _nonzero(norms: np.ndarray) -> np.ndarray:
    """Rows of zeros stay what they are."""
    return np.where(norms == 0.0, 1.0, norms)
