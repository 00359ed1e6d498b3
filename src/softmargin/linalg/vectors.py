"""Long vectors, block by block on a team of threads; the blocks depend on the length alone."""

from typing import Any

import numpy as np

BLOCK = 1 << 16
LONG = 1 << 13  # from here on it pays to leave rows out
MANY_VALUES = 1 << 22  # from here on it pays to wake other threads


def _blocks(n: int) -> list[tuple[int, int]]:
    return [(lo, min(lo + BLOCK, n)) for lo in range(0, n, BLOCK)]


def add_to(out: np.ndarray, x: np.ndarray, workers: Any) -> None:
    """out += x."""

    def block(lo: int, hi: int) -> None:
        out[lo:hi] += x[lo:hi]

    workers.map(block, _blocks(out.size))


def rows_times(A: np.ndarray, x: np.ndarray, workers: Any) -> np.ndarray:
    """A x for a few long rows: each chunk of rows is one job."""
    out = np.empty(A.shape[0])
    chunk = max(1, (1 << 20) // max(A.shape[1], 1))

    def block(lo: int, hi: int) -> None:
        out[lo:hi] = A[lo:hi] @ x

    blocks = [(lo, min(lo + chunk, A.shape[0])) for lo in range(0, A.shape[0], chunk)]
    workers.map(block, blocks, alone=A.size < MANY_VALUES)
    return out


def combine_rows(weights: np.ndarray, A: np.ndarray, workers: Any) -> np.ndarray:
    """sum_k weights_k A_k for a few rows; of long ones those with weight 0 are not read."""
    if A.shape[1] < LONG:
        return weights @ A
    from softmargin.linalg import _vectors

    out, used = np.empty(A.shape[1]), np.flatnonzero(weights)
    is_little = used.size * A.shape[1] < MANY_VALUES
    workers.map(lambda lo, hi: _vectors.combine(weights, used, A, lo, hi, out), _blocks(A.shape[1]), alone=is_little)
    return out
