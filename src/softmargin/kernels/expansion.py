"""The decision function of a kernel machine: weighted sums of kernel values over support vectors."""

import numpy as np

from softmargin.core.threads import Workers
from softmargin.data.rows import Rows
from softmargin.kernels.functions import Custom, Kernel
from softmargin.kernels.matrix import Side, centre_of, tiles_of

_BLOCK = 256  # new rows at a time


def expansion(kernel: Kernel, support: Rows, coefficients: np.ndarray, rows: Rows, workers: Workers) -> np.ndarray:
    """sum_s coefficients[s, k] K(row, support[s]) for every row and k, in float64; not finite where K overflows.

    Memory is bounded: a block of rows meets a tile of support vectors, and what is left of both is the sum.
    """
    right = Side(support, kernel, np.float64, centre_of(support, kernel))
    out = np.zeros((rows.n_rows, coefficients.shape[1]))
    step = max(1, min(_BLOCK, right.n_dense))
    blocks = [(lo, min(lo + step, rows.n_rows)) for lo in range(0, rows.n_rows, step)]

    def scores(lo: int, hi: int) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            left = right.left_of(rows, slice(lo, hi))
            for first, last in tiles_of(right.n):
                tile, turned = left.tile(right, first, last)
                out[lo:hi] += (tile.T if turned else tile) @ coefficients[first:last]

    if isinstance(kernel, Custom):  # a user's function need not bear several threads
        for block in blocks:
            scores(*block)
    else:
        workers.map(scores, blocks)
    return out
