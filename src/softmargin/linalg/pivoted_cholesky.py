"""Incomplete Cholesky factor of a positive semi-definite matrix, from few of its rows.

    K ~ V V',  V is n x k:  the pivot is the largest diagonal entry of the residual K - V V';
    its row of K, minus what V says already, over the root of the pivot, is the next column of V

After k pivots n k entries of K were asked for, O(n k^2) operations were done, and what is left is positive
semi-definite with a known trace, which bounds every entry of it. A matrix of rank k is reproduced after k pivots.

Reference: S. Fine, K. Scheinberg, Efficient SVM Training Using Low-Rank Kernel Representations, JMLR 2, 2001, Figure 2.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from softmargin.linalg.vectors import combine_rows

_FIRST_ROOM = 64  # columns that memory is taken for at first; twice as many each time after
_TRANSPOSE_ROWS = 4096
# A diagonal entry of the rest so far below zero, as a share of the largest of K, shows an indefinite matrix.
_INDEFINITE = 1e-8


@dataclass(frozen=True)
class LowRank:
    """K ~ V V'. `trace` is that of K, `largest` its largest diagonal entry, and `rest` the diagonal of K - V V', which
    has no entry below zero, but for rounding, where K is positive semi-definite.
    """

    V: np.ndarray
    pivots: np.ndarray
    trace: float
    largest: float
    rest: np.ndarray

    @property
    def residual(self) -> float:
        """The trace of K - V V'."""
        return float(np.maximum(self.rest, 0.0).sum())

    @property
    def least(self) -> float:
        """The least entry of the rest."""
        return float(self.rest.min(initial=0.0))

    @property
    def is_indefinite(self) -> bool:
        """Whether the rest shows that K is not positive semi-definite."""
        return self.least < -_INDEFINITE * self.largest


def pivoted_cholesky(
    row: Callable[[int], np.ndarray], diagonal: np.ndarray, max_rank: int, tolerance: float, workers: Any
) -> LowRank:
    """Factor the matrix with these rows until the residual's trace is at most `tolerance` of that of the matrix."""
    n = diagonal.size
    rest = np.array(diagonal, dtype=np.float64)
    trace, largest = float(rest.sum()), float(np.abs(rest).max(initial=0.0))
    columns = np.empty((min(_FIRST_ROOM, n), n))
    pivots: list[int] = []
    while len(pivots) < min(max_rank, n):
        k = len(pivots)
        if float(np.maximum(rest, 0.0).sum()) <= tolerance * trace:
            break
        pivot = int(rest.argmax())
        if k == len(columns):
            columns = np.concatenate([columns, np.empty((min(k, n - k), n))])
        column = columns[k]
        column[:] = row(pivot)
        if k:
            column -= combine_rows(columns[:k, pivot].copy(), columns[:k], workers)
        column /= math.sqrt(rest[pivot])
        column[pivots] = 0.0
        rest -= column * column
        rest[pivot] = 0.0
        pivots.append(pivot)
    return LowRank(_transposed(columns[: len(pivots)], workers), np.array(pivots, np.int64), trace, largest, rest)


def _transposed(columns: np.ndarray, workers: Any) -> np.ndarray:
    """The columns as a row-major matrix."""
    k, n = columns.shape
    V = np.empty((n, k))

    def block(lo: int, hi: int) -> None:
        V[lo:hi] = columns[:, lo:hi].T

    workers.map(block, [(lo, min(lo + _TRANSPOSE_ROWS, n)) for lo in range(0, n, _TRANSPOSE_ROWS)])
    return V
