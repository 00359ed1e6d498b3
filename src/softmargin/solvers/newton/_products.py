"""The compiled part of Newton's method: products of sparse rows with themselves."""

import numpy as np

from softmargin.core.jit import compiled


@compiled
def add_products(flat, index, factors, constant, matrix):
    """matrix += sum_k factors[k] x_i x_i' for the sparse rows i = index[k], below the diagonal and on it.

    If the matrix has one more row than there are columns, all rows end with the constant. The indices of a row may be
    in any order, and one may come twice.
    """
    has_constant = matrix.shape[0] > flat.n_cols
    for k in range(index.size):
        begin, end = np.int64(flat.indptr[index[k]]), np.int64(flat.indptr[index[k] + 1])
        for s in range(begin, end):
            scaled, i = factors[k] * np.float64(flat.values[s]), flat.indices[s]
            matrix[i, i] += scaled * np.float64(flat.values[s])
            for t in range(begin, s):
                j, product = flat.indices[t], scaled * np.float64(flat.values[t])
                matrix[max(i, j), min(i, j)] += product if i != j else 2.0 * product
        if has_constant:
            row = matrix[flat.n_cols]
            for t in range(begin, end):
                row[flat.indices[t]] += factors[k] * constant * np.float64(flat.values[t])
            row[flat.n_cols] += factors[k] * constant * constant
