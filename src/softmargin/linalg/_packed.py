"""Compiled part of the packed matrix and of its preconditioner; see `packed.py`."""

import math

from softmargin.core.jit import compiled


@compiled
def keep(packed, places):
    """Leave only the rows and columns of `places`, in ascending order."""
    at = 0
    for j in range(places.size):
        old = places[j] * (places[j] + 1) // 2
        for i in range(j + 1):
            packed[at] = packed[old + places[i]]
            at += 1


@compiled
def weigh(packed, rows, nearest, weights, chosen, square, least):
    """Rows of G: each row of the matrix is predicted from the nearest of those before it, and scaled by what is left.

    Near is where |A_ij| / sqrt(A_jj) is large. The places go to `nearest` (-1 behind the last one), minus the
    coefficients to `weights`, both over the root of the rest, which is at least the share `least` of the diagonal;
    the last weight is that of the row itself. `chosen` and `square` are workspace, of m values and of m x m.
    """
    for row in rows:
        m = min(nearest.shape[1], row)
        start = row * (row + 1) // 2
        diagonal = packed[start + row]
        n_chosen = 0
        for j in range(row):
            scale = packed[j * (j + 1) // 2 + j]
            if not scale > 0.0:
                continue
            value = packed[start + j] * packed[start + j] / scale
            if n_chosen == m and value <= chosen[m - 1]:
                continue
            k = n_chosen if n_chosen < m else m - 1
            while k > 0 and chosen[k - 1] < value:
                chosen[k] = chosen[k - 1]
                nearest[row, k] = nearest[row, k - 1]
                k -= 1
            chosen[k] = value
            nearest[row, k] = j
            n_chosen = min(n_chosen + 1, m)
        for k in range(n_chosen, nearest.shape[1]):
            nearest[row, k] = -1
            weights[row, k] = 0.0
        rest = diagonal
        for k in range(n_chosen):  # a Cholesky factor of the part, with the forward solve in `weights`
            place = nearest[row, k]
            own = packed[place * (place + 1) // 2 + place]
            for j in range(k + 1):
                other = nearest[row, j]
                high, low = max(place, other), min(place, other)
                value = packed[high * (high + 1) // 2 + low]
                for i in range(j):
                    value -= square[k, i] * square[j, i]
                if j < k:
                    square[k, j] = value / square[j, j]
                else:
                    square[k, k] = math.sqrt(max(value, least * own))
            value = packed[start + place]
            for i in range(k):
                value -= square[k, i] * weights[row, i]
            weights[row, k] = value / square[k, k]
            rest -= weights[row, k] * weights[row, k]
        scale = 1.0 / math.sqrt(max(rest, least * diagonal)) if diagonal > 0.0 else 1.0
        for k in range(n_chosen - 1, -1, -1):
            value = weights[row, k]
            for i in range(k + 1, n_chosen):
                value -= square[i, k] * weights[row, i]
            weights[row, k] = value / square[k, k]
        for k in range(n_chosen):
            weights[row, k] *= -scale
        weights[row, nearest.shape[1]] = scale


@compiled
def precondition(nearest, weights, r, n, half, out):
    """out = G'G r; `half` is workspace."""
    m = nearest.shape[1]
    for i in range(n):
        out[i] = 0.0
        total = weights[i, m] * r[i]
        for k in range(m):
            if nearest[i, k] >= 0:
                total += weights[i, k] * r[nearest[i, k]]
        half[i] = total
    for i in range(n):
        out[i] += weights[i, m] * half[i]
        for k in range(m):
            if nearest[i, k] >= 0:
                out[nearest[i, k]] += weights[i, k] * half[i]
