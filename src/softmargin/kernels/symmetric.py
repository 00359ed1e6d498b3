"""Sums of kernel rows where the matrix is symmetric: each pair of support vectors is evaluated once."""

import numpy as np

from softmargin.core.threads import Workers
from softmargin.kernels.matrix import LEFT_ROWS, DirectRows, tiles_of


def symmetric_product(K: DirectRows, coefficients: np.ndarray, workers: Workers) -> np.ndarray:
    """K[:, :m] @ coefficients for m coefficients (or rows of them): the first m rows of K are the support vectors.

    A tile of columns meets blocks of support vectors. Blocks before the tile serve both ways: for the sums of the
    columns, and for their own. Inside the tile every block serves the columns only.
    """
    m, out = len(coefficients), np.zeros((K.n, coefficients.shape[1]))
    step = max(1, K.side.n_dense // LEFT_ROWS) * LEFT_ROWS
    for first in range(0, m, step):
        last = min(first + step, m)
        cuts = [(lo, min(lo + LEFT_ROWS, last)) for lo in range(first, last, LEFT_ROWS)]
        blocks = [(lo, hi, K.side.left(np.arange(lo, hi))) for lo, hi in cuts]

        def columns(lo: int, hi: int, blocks: list = blocks) -> tuple[np.ndarray, np.ndarray]:
            own, back = np.zeros((hi - lo, out.shape[1])), np.zeros((min(lo, m), out.shape[1]))
            inside = coefficients[lo:hi]
            for a, b, block in blocks:
                if a >= hi:
                    break
                tile, turned = block.tile(K.side, lo, hi)
                values = (tile.T if turned else tile).astype(np.float64, copy=False)
                own += values.T @ coefficients[a:b]
                if a < lo and inside.size:
                    back[a:b] += values[:, : len(inside)] @ inside
            return own, back

        tiles = [(lo, hi) for lo, hi in tiles_of(K.n) if hi > first]
        for (lo, hi), (own, back) in zip(tiles, workers.map(columns, tiles), strict=True):
            out[lo:hi] += own
            out[: len(back)] += back
    return out
