"""The small dual problem over a block of variables, solved by pair steps on its own kernel matrix.

Vectors are added, gathered and put back by loops. NumPy's ways of writing that take several times as long to compile,
and the first fit of all waits for it.
"""

import numpy as np

from softmargin.core.jit import compiled

_TINY = 1e-12  # a curvature below this counts as this: the step then ends at a bound
_NEVER = 1e300  # added to the wish of a variable that cannot move that way
# The whole problem is solved over all variables until the violation has fallen by the factor _COARSE; then in at most
# _STAGES stages over those whose wish is within _MARGIN times the violation of a bound, if these are fewer than the
# share _WORTHWHILE of all.
_COARSE, _STAGES, _MARGIN, _WORTHWHILE = 1e-3, 10, 3.0, 0.75


@compiled(sums=True, maxima=True)
def solve(matrix, wish, beta, lo, hi, epsilon, tol, max_steps):
    """Pair steps by the second-order rule until the violation is at most `tol`; moves `wish` and `beta`.

    `wish` is p - K beta. `to_rise` and `to_fall` are what a variable's wish differs by when it rises and when it falls:
    epsilon by the side of zero it is on, and out of reach where it cannot move. A step ends at a bound or at zero. The
    pair is the variable whose wish to rise is the largest, and the one that promises the most with it (R.-E. Fan,
    P.-H. Chen, C.-J. Lin, 2005); or the one whose wish to fall is the largest, where the squares of wishes are zero or
    infinite. Returns the number of steps.
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
        while i < n - 1 and wish[i] + to_rise[i] != highest:
            i += 1
        row_i = matrix[i]
        for k in range(n):
            ahead = max(highest - (wish[k] + to_fall[k]), 0.0)
            gain[k] = ahead * ahead / max(diag[i] + diag[k] - 2.0 * row_i[k], _TINY)
        most = 0.0
        for k in range(n):
            most = max(most, gain[k])
        j = 0
        if 0.0 < most < np.inf:
            while j < n - 1 and gain[j] != most:
                j += 1
        else:
            while j < n - 1 and wish[j] + to_fall[j] != lowest:
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


@compiled(sums=True, maxima=True)
def solve_all(matrix, unit, p, lo, hi, epsilon, accuracy, max_steps, before, f_before, beta, f):
    """Pair steps on the whole problem, from `before` with f_before = K before, to `beta` with f = K beta.

    It ends when the violation has fallen by the factor `accuracy`. `matrix` is K divided by `unit`, a power of two.
    Returns the number of steps, the violation before, the gain, how many variables moved, and the size of the terms of
    the dual value.
    """
    n = p.size
    wish, low, high, scaled = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for k in range(n):
        wish[k] = p[k] - f_before[k]
        low[k], high[k], scaled[k] = unit * lo[k], unit * hi[k], unit * before[k]
    highest, lowest = extremes(wish, scaled, low, high, epsilon)
    violation = highest - lowest
    steps = solve_in_stages(matrix, wish, scaled, low, high, epsilon, accuracy * violation, max_steps, violation)
    moved, mean, cost = 0, 0.0, 0.0
    for k in range(n):
        beta[k] = scaled[k] / unit
        f[k] = f_before[k]
        cost += abs(beta[k]) - abs(before[k])
        if beta[k] != before[k]:
            moved += 1
            mean += wish[k] + (p[k] - f_before[k])
    mean /= max(moved, 1)
    gain = 0.0
    for k in range(n):
        if beta[k] != before[k]:
            change = beta[k] - before[k]
            gain += 0.5 * change * (wish[k] + (p[k] - f_before[k]) - mean)
            add_row(matrix[k], unit * change, f)
    linear = curvature = 0.0
    for k in range(n):
        linear += p[k] * beta[k]
        curvature += beta[k] * f[k]
    return steps, violation, gain - epsilon * cost, moved, max(abs(linear), 0.5 * curvature)


@compiled
def solve_in_stages(matrix, wish, beta, lo, hi, epsilon, tol, max_steps, violation):
    """`solve`, but once the violation is small only over the variables that may still move.

    Those are the ones whose wish is within _MARGIN times the violation of being violated. The others are brought up to
    date afterwards, and looked at again.
    """
    n = wish.size
    active = np.empty(n, np.int64)
    steps = solve(matrix, wish, beta, lo, hi, epsilon, max(tol, _COARSE * violation), max_steps)
    for _ in range(_STAGES):
        highest, lowest = extremes(wish, beta, lo, hi, epsilon)
        if highest - lowest <= tol or steps >= max_steps:
            return steps
        margin = _MARGIN * (highest - lowest)
        size = 0
        for k in range(n):
            rise = wish[k] + epsilon if beta[k] < 0.0 else wish[k] - epsilon
            fall = wish[k] - epsilon if beta[k] > 0.0 else wish[k] + epsilon
            may_rise = beta[k] < hi[k] and rise > lowest - margin
            if may_rise or (beta[k] > lo[k] and fall < highest + margin):
                active[size] = k
                size += 1
        if size > _WORTHWHILE * n:
            steps += solve(matrix, wish, beta, lo, hi, epsilon, max(tol, 0.1 * (highest - lowest)), max_steps - steps)
            continue
        part = np.empty((size, size), matrix.dtype)
        part_wish, part_beta, part_lo, part_hi = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
        for a in range(size):
            k = active[a]
            part_wish[a], part_beta[a], part_lo[a], part_hi[a] = wish[k], beta[k], lo[k], hi[k]
            for c in range(size):
                part[a, c] = matrix[k, active[c]]
        made = solve(part, part_wish, part_beta, part_lo, part_hi, epsilon, tol, max_steps - steps)
        if made == 0:
            break
        steps += made
        for a in range(size):
            k = active[a]
            if part_beta[a] != beta[k]:
                add_row(matrix[k], beta[k] - part_beta[a], wish)
                beta[k] = part_beta[a]
        for a in range(size):
            wish[active[a]] = part_wish[a]
    return steps + solve(matrix, wish, beta, lo, hi, epsilon, tol, max_steps - steps)


@compiled(maxima=True)
def extremes(wish, beta, lo, hi, epsilon):
    """The largest wish to rise of a variable that can, and the least wish to fall."""
    highest, lowest = -_NEVER, _NEVER
    for k in range(wish.size):
        rise = wish[k] + epsilon if beta[k] < 0.0 else wish[k] - epsilon
        fall = wish[k] - epsilon if beta[k] > 0.0 else wish[k] + epsilon
        highest = max(highest, rise if beta[k] < hi[k] else -_NEVER)
        lowest = min(lowest, fall if beta[k] > lo[k] else _NEVER)
    return highest, lowest


@compiled(sums=True)
def add_row(row, coefficient, total):
    for j in range(total.size):
        total[j] += coefficient * row[j]
