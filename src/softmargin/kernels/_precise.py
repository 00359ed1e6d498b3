"""Distances of rows in pairs of numbers; see `data/_precise.py`."""

import numpy as np

from softmargin.core.jit import compiled
from softmargin.data._precise import add_product


@compiled
def l1(values, indices, indptr, n_rows, n_cols, fortran, z, m, high, low):
    """high[j] + low[j] = |x_j - z|_1 for the rows j < m."""
    all_of_z = rest_of_z = 0.0
    for k in range(z.size):
        all_of_z, rest_of_z = add_product(all_of_z, rest_of_z, abs(z[k]), 1.0)
    for j in range(m):
        if indptr.size > 0:
            total, rest = all_of_z, rest_of_z
            for p in range(indptr[j], indptr[j + 1]):
                total, rest = _add_distance(total, rest, np.float64(values[p]), z[indices[p]])
                total, rest = add_product(total, rest, abs(z[indices[p]]), -1.0)
        else:
            total = rest = 0.0
            for k in range(n_cols):
                at = k * n_rows + j if fortran else j * n_cols + k
                total, rest = _add_distance(total, rest, np.float64(values[at]), z[k])
        high[j], low[j] = total, rest


@compiled
def _add_distance(total, rest, x, z):
    """total + rest + |x - z|, as two numbers again."""
    sign = 1.0 if x >= z else -1.0
    total, rest = add_product(total, rest, x, sign)
    return add_product(total, rest, z, -sign)
