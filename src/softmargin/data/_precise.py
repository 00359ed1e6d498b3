"""Products of rows and vectors in pairs of numbers, for the few rows that need twice the digits.

The sum of products is kept as total + rest. Every operation's error goes to the rest, which is rounded itself: of
error 2^-104 a term, relative to the sum of the sizes. The compiler must not reorder any of it.
"""

import numpy as np

from softmargin.core.jit import compiled

_SPLIT = 2.0**27 + 1.0


@compiled
def add_product(total, rest, x, y):
    """total + rest + x y, as two numbers again."""
    p = x * y
    t = _SPLIT * x
    x_high = t - (t - x)
    x_low = x - x_high
    t = _SPLIT * y
    y_high = t - (t - y)
    y_low = y - y_high
    error = ((x_high * y_high - p) + x_high * y_low + x_low * y_high) + x_low * y_low
    s = total + p
    t = s - total
    rest += ((total - (s - t)) + (p - t)) + error
    high = s + rest
    return high, rest - (high - s)


@compiled
def two_sum(a, b):
    """a + b as two numbers, without error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@compiled
def dot(values, indices, indptr, n_rows, n_cols, fortran, w, index, high, low):
    """high[r] + low[r] = x_i . w for the row i = index[r]."""
    for r in range(index.size):
        i = index[r]
        total = rest = 0.0
        if indptr.size > 0:
            for p in range(indptr[i], indptr[i + 1]):
                total, rest = add_product(total, rest, np.float64(values[p]), w[indices[p]])
        else:
            for j in range(n_cols):
                at = j * n_rows + i if fortran else i * n_cols + j
                total, rest = add_product(total, rest, np.float64(values[at]), w[j])
        high[r], low[r] = total, rest


@compiled
def t_dot(values, indices, indptr, n_rows, n_cols, fortran, v, high, low):
    """high + low += X'v; rows with v_i = 0 are not read."""
    for i in range(n_rows):
        x = v[i]
        if x != 0.0:
            if indptr.size > 0:
                for p in range(indptr[i], indptr[i + 1]):
                    j = indices[p]
                    high[j], low[j] = add_product(high[j], low[j], x, np.float64(values[p]))
            else:
                for j in range(n_cols):
                    at = j * n_rows + i if fortran else i * n_cols + j
                    high[j], low[j] = add_product(high[j], low[j], x, np.float64(values[at]))
