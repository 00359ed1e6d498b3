"""The small dual problem over a block of variables, solved by pair steps on its own kernel matrix."""

import numpy as np

from softmargin.core.jit import compiled

_TINY = 1e-12  # a curvature below this counts as this: the step then ends at a bound
_NEVER = 1e300  # added to the wish of a variable that cannot move that way


@compiled(sums=True, maxima=True)
def solve(matrix, wish, beta, lo, hi, epsilon, tol, max_steps):
    """Pair steps by the second-order rule until the violation is at most `tol`; moves `wish` and `beta`.

    `wish` is p - K beta. `to_rise` and `to_fall` are what a variable's wish differs by when it rises and when it falls:
    epsilon by the side of zero it is on, and out of reach where it cannot move. A step ends at a bound or at zero. The
    pair is the variable whose wish to rise is the largest, and the one that promises the most with it (R.-E. Fan,
    P.-H. Chen, C.-J. Lin, 2005). Returns the number of steps.
    """
    n = wish.size
    to_rise, to_fall = np.empty(n), np.empty(n)
    diag, gain = np.empty(n), np.empty(n)
    for k in range(n):
        to_rise[k] = (epsilon if beta[k] < 0.0 else -epsilon) if beta[k] < hi[k] else -_NEVER
        to_fall[k] = (-epsilon if beta[k] > 0.0 else epsilon) if beta[k] > lo[k] else _NEVER
        diag[k] = matrix[k, k]
    for steps in range(max_steps):
        highest, lowest = -_NEVER, _NEVER
        for k in range(n):
            highest = max(highest, wish[k] + to_rise[k])
            lowest = min(lowest, wish[k] + to_fall[k])
        if highest - lowest <= tol:
            return steps
        i = 0
        while wish[i] + to_rise[i] != highest:
            i += 1
        row_i = matrix[i]
        for k in range(n):
            ahead = max(highest - (wish[k] + to_fall[k]), 0.0)
            gain[k] = ahead * ahead / max(diag[i] + diag[k] - 2.0 * row_i[k], _TINY)
        most = 0.0
        for k in range(n):
            most = max(most, gain[k])
        j = 0
        while gain[j] != most:
            j += 1
        step = (highest - (wish[j] + to_fall[j])) / max(diag[i] + diag[j] - 2.0 * row_i[j], _TINY)
        before_i, before_j = beta[i], beta[j]
        end_i = 0.0 if before_i < 0.0 else hi[i]
        end_j = 0.0 if before_j > 0.0 else lo[j]
        room_i, room_j = end_i - before_i, before_j - end_j
        step = min(step, room_i, room_j)
        beta[i] = end_i if step == room_i else before_i + step
        beta[j] = end_j if step == room_j else before_j - step
        if beta[i] == before_i and beta[j] == before_j:
            return steps  # rounding leaves nothing to gain
        for k in (i, j):
            to_rise[k] = (epsilon if beta[k] < 0.0 else -epsilon) if beta[k] < hi[k] else -_NEVER
            to_fall[k] = (-epsilon if beta[k] > 0.0 else epsilon) if beta[k] > lo[k] else _NEVER
        row_j = matrix[j]
        for k in range(n):
            wish[k] -= step * (row_i[k] - row_j[k])
    return max_steps
