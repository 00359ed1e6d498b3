"""The sums of the judge of `joint_certificate`, row by row, with what their rounding is charged.

Arrays of two dimensions are by classes: entry [k, i] belongs to class k and row i. Nothing here may be reordered by the
compiler: the bounds hold for the operations as they are written.
"""

import math

import numpy as np

from softmargin.core.jit import compiled
from softmargin.data._precise import two_sum
from softmargin.linalg.rounding import SLACK, UNIT

_DIGITS = 53
# Rows whose variables exceed their limit by a larger share than this are scaled down; of others the last ones give way.
_NEARLY = 1.0 + 2.0**-40


@compiled
def add_losses(f, low, error, b, codes, weights, upper, near):
    """The sum of the losses upper_i max(0, max_k 1 + (f_ki + b_k) - (f_yi + b_y)), the same with all errors added, and
    the sum of those largest losses before they are weighted.

    The outputs are f + low, each within `error`; an empty `low` stands for zeros. Rows that have a loss, or may have
    one, are marked in `near`. Rows without weight do not count.
    """
    value = bound = total = 0.0
    for i in range(codes.size):
        if not weights[i] > 0.0:
            continue
        own = codes[i]
        p, p_low = two_sum(f[own, i], b[own])
        if low.size > 0:
            p_low += low[own, i]
        found = most = 0.0
        for k in range(f.shape[0]):
            if k == own:
                continue
            q, q_low = two_sum(f[k, i], b[k])
            if low.size > 0:
                q_low += low[k, i]
            d, d_low = two_sum(q, -p)
            e, e_low = two_sum(1.0, d)
            slack = e + (e_low + (d_low + (q_low - p_low)))
            sizes = abs(e_low) + abs(d_low) + abs(q_low) + abs(p_low)
            charge = error[k, i] + error[own, i] + 2.0 * UNIT * abs(slack) + 8.0 * UNIT * sizes
            high = slack + charge * SLACK
            if not high < np.inf:  # or it is not a number
                high = np.inf
            most = max(most, high)
            found = slack if not slack <= found else found
        if most > 0.0:
            near[i] = True
            bound += upper[i] * most
            total += most
        value += upper[i] * found
    return value, bound, total


@compiled
def make_feasible(alpha, codes, upper, sums):
    """Bring alpha, in place, to numbers of at least zero that are zero for the own class of a row and add up to at most
    upper_i, exactly. The sums, which are exact as well, go to `sums`. What is not a number becomes zero.

    All variables of a row are rounded down to multiples of the last digit of upper_i; sums of such numbers up to
    upper_i are computed without error.
    """
    for i in range(codes.size):
        limit, total = upper[i], 0.0
        for k in range(alpha.shape[0]):
            alpha[k, i] = min(alpha[k, i], limit) if alpha[k, i] > 0.0 and k != codes[i] else 0.0
            total += alpha[k, i]
        sums[i] = 0.0
        if total == 0.0:
            continue
        factor = limit / total if total > _NEARLY * limit else 1.0
        unit = math.ldexp(1.0, max(math.frexp(limit)[1] - _DIGITS, -1074))
        rest = limit
        for k in range(alpha.shape[0]):
            alpha[k, i] = min(math.floor(factor * alpha[k, i] / unit) * unit, rest)
            rest -= alpha[k, i]
        sums[i] = limit - rest


@compiled
def violation(alpha, sums, codes, upper, f, at_bound):
    """The largest difference, over all rows, between what the strongest class and the weakest class with a share gain.

    A row gains 1 + f_k - f_y by class k and 0 by its own class, which has the share upper_i less the sum of the others.
    """
    worst = 0.0
    for i in range(codes.size):
        if not upper[i] > 0.0:
            continue
        own = codes[i]
        highest, lowest = 0.0, 0.0 if sums[i] < (1.0 - at_bound) * upper[i] else np.inf
        for k in range(f.shape[0]):
            if k != own:
                gain = 1.0 + (f[k, i] - f[own, i])
                highest = max(highest, gain)
                if alpha[k, i] > at_bound * upper[i]:
                    lowest = min(lowest, gain)
        if lowest < np.inf:
            worst = max(worst, highest - lowest)
    return worst
