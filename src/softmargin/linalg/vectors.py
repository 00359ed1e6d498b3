"""Long vectors, block by block on a team of threads; the blocks depend on the length alone."""

from typing import Any

import numpy as np

BLOCK = 1 << 16


def _blocks(n: int) -> list[tuple[int, int]]:
    return [(lo, min(lo + BLOCK, n)) for lo in range(0, n, BLOCK)]


def rows_times(A: np.ndarray, x: np.ndarray, workers: Any) -> np.ndarray:
    """A x for a few long rows: each chunk of rows is one job."""
    out = np.empty(A.shape[0])
    chunk = max(1, (1 << 19) // max(A.shape[1], 1))

    def block(lo: int, hi: int) -> None:
        out[lo:hi] = A[lo:hi] @ x

    workers.map(block, [(lo, min(lo + chunk, A.shape[0])) for lo in range(0, A.shape[0], chunk)])
    return out


def combine_rows(weights: np.ndarray, A: np.ndarray, workers: Any) -> np.ndarray:
    """sum_k weights_k A_k for a few long rows: each range of columns is one job."""
    out = np.empty(A.shape[1])

    def block(lo: int, hi: int) -> None:
        out[lo:hi] = weights @ A[:, lo:hi]

    workers.map(block, _blocks(A.shape[1]))
    return out
