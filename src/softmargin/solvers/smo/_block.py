"""The small dual problem over a block of variables, solved by pair steps on its own kernel matrix."""

import numpy as np

from softmargin.core.jit import compiled

_TINY = 1e-12  # a curvature below this counts as this: the step then ends at a bound
_NEVER = 1e300  # added to the wish of a variable that cannot move that way


@compiled
def gather(slab, slots, members, fresh, lo, hi, matrix):
    """matrix[p, c] = K[members[p], members[c]] for the positions p = fresh[lo .. hi - 1]."""
    for k in range(lo, hi):
        p = fresh[k]
        row = slab[slots[p]]
        to = matrix[p]
        for c in range(members.size):
            to[c] = row[members[c]]


@compiled
def mirror(matrix, fresh):
    """The columns of fresh positions, from their rows."""
    for c in range(matrix.shape[0]):
        to = matrix[c]
        for k in range(fresh.size):
            to[fresh[k]] = matrix[fresh[k], c]


@compiled(sums=True, maxima=True)
def solve(matrix, wish, beta, lo, hi, tol, max_steps):
    """Pair steps by the second-order rule until the violation is at most `tol`; moves `wish` and `beta`.

    `wish` is p - K beta. The pair is the variable whose wish to grow is the largest, and the one that promises the most
    with it (R.-E. Fan, P.-H. Chen, C.-J. Lin, 2005). Returns the number of steps.
    """
    n = wish.size
    barred_up, barred_down = np.empty(n), np.empty(n)
    diag, gain = np.empty(n), np.empty(n)
    for k in range(n):
        barred_up[k] = 0.0 if beta[k] < hi[k] else -_NEVER
        barred_down[k] = 0.0 if beta[k] > lo[k] else _NEVER
        diag[k] = matrix[k, k]
    for steps in range(max_steps):
        highest, lowest = -_NEVER, _NEVER
        for k in range(n):
            highest = max(highest, wish[k] + barred_up[k])
            lowest = min(lowest, wish[k] + barred_down[k])
        if highest - lowest <= tol:
            return steps
        i = 0
        while wish[i] + barred_up[i] != highest:
            i += 1
        row_i = matrix[i]
        for k in range(n):
            ahead = max(highest - (wish[k] + barred_down[k]), 0.0)
            gain[k] = ahead * ahead / max(diag[i] + diag[k] - 2.0 * row_i[k], _TINY)
        most = 0.0
        for k in range(n):
            most = max(most, gain[k])
        j = 0
        while gain[j] != most:
            j += 1
        step = (highest - wish[j]) / max(diag[i] + diag[j] - 2.0 * row_i[j], _TINY)
        room_i, room_j = hi[i] - beta[i], beta[j] - lo[j]
        step = min(step, room_i, room_j)
        before_i, before_j = beta[i], beta[j]
        beta[i] = hi[i] if step == room_i else beta[i] + step
        beta[j] = lo[j] if step == room_j else beta[j] - step
        if beta[i] == before_i and beta[j] == before_j:
            return steps  # rounding leaves nothing to gain
        for k in (i, j):
            barred_up[k] = 0.0 if beta[k] < hi[k] else -_NEVER
            barred_down[k] = 0.0 if beta[k] > lo[k] else _NEVER
        row_j = matrix[j]
        for k in range(n):
            wish[k] -= step * (row_i[k] - row_j[k])
    return max_steps
