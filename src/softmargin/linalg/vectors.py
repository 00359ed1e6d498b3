"""Long vectors, block by block on a team of threads; the blocks depend on the length alone."""

from typing import Any

import numpy as np

BLOCK = 1 << 16


def _blocks(n: int) -> list[tuple[int, int]]:
    return [(lo, min(lo + BLOCK, n)) for lo in range(0, n, BLOCK)]


def difference(x: np.ndarray, y: np.ndarray, workers: Any) -> np.ndarray:
    """x - y."""
    out = np.empty_like(x)
    workers.map(lambda lo, hi: np.subtract(x[lo:hi], y[lo:hi], out=out[lo:hi]), _blocks(x.size))
    return out


def change(x: np.ndarray, before: np.ndarray, workers: Any) -> tuple[np.ndarray, int]:
    """x - before, and in how many entries they differ."""
    out = np.empty_like(x)

    def block(lo: int, hi: int) -> int:
        np.subtract(x[lo:hi], before[lo:hi], out=out[lo:hi])
        return int(np.count_nonzero(out[lo:hi] != 0.0))  # of bools: several times faster than of floats

    return out, sum(workers.map(block, _blocks(x.size)))


def add_scaled(x: np.ndarray, k: float, d: np.ndarray, workers: Any) -> np.ndarray:
    """x + k d."""
    out = np.empty_like(x)

    def block(lo: int, hi: int) -> None:
        np.multiply(d[lo:hi], k, out=out[lo:hi])
        out[lo:hi] += x[lo:hi]

    workers.map(block, _blocks(x.size))
    return out


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
