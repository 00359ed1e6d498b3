"""The sums of the kernel judges, row by row, with what their rounding is charged.

These are the formulas of `bracket.py` and `kernel_certificate.py` in one pass each. Nothing here may be reordered by
the compiler: the bounds hold for the operations as they are written. Sums that lose most of their digits when they are
added up are kept in pairs of numbers (`data/_precise.py`).
"""

import numpy as np

from softmargin.core.jit import compiled
from softmargin.data._precise import add_product, two_sum
from softmargin.linalg.rounding import SLACK, UNIT


@compiled
def add_losses(rows, f, low, error, shift, z, upper, target, target_low, is_squared, near):
    """The sum of upper_i max(0, z_i (t_i - f_i - shift)), the same with the errors added, and the sum of those slacks.

    Entry i of z, upper and the targets belongs to the row rows[i] of f, low and error. Rows that have a loss, or may
    have one, are marked in `near`. Empty arrays stand for zeros (low, target_low) and for z (target). If `is_squared`,
    both sums are of the squares of the slacks.
    """
    value = bound = total = 0.0
    for i in range(rows.size):
        row = rows[i]
        t = target[i] if target.size > 0 else z[i]
        t_low = target_low[i] if target_low.size > 0 else 0.0
        own, own_low = two_sum(f[row], shift)
        d, d_low = two_sum(t, -own)
        if low.size > 0:
            own_low += low[row]
        slack = z[i] * (d + (d_low + (t_low - own_low)))
        sizes = abs(d_low) + abs(own_low) + abs(t_low)
        most = slack + (error[row] + 2.0 * UNIT * abs(slack) + 8.0 * UNIT * sizes) * SLACK
        if not upper[i] > 0.0:
            most = 0.0
        if not most <= 0.0:  # or it is not a number
            near[row] = True
            bound += upper[i] * most * most if is_squared else upper[i] * most
            total += most
        if not slack <= 0.0:
            value += upper[i] * slack * slack if is_squared else upper[i] * slack
    return value, bound, total


@compiled
def row_losses(f, low, error, b, C, over, under, target, epsilon, near):
    """The same for a kernel machine, whose rows lose where f + b is below t - epsilon or above t + epsilon."""
    value = bound = total = 0.0
    for i in range(f.size):
        own, own_low = two_sum(f[i], b)
        if low.size > 0:
            own_low += low[i]
        for z in (1.0, -1.0):
            upper = C * (over[i] if z > 0.0 else under[i])
            if upper > 0.0:
                t, t_low = two_sum(target[i], -z * epsilon)
                d, d_low = two_sum(t, -own)
                slack = z * (d + (d_low + (t_low - own_low)))
                sizes = abs(d_low) + abs(own_low) + abs(t_low)
                most = slack + (error[i] + 2.0 * UNIT * abs(slack) + 8.0 * UNIT * sizes) * SLACK
                if not most <= 0.0:
                    near[i] = True
                    bound += upper * most
                    total += most
                if not slack <= 0.0:
                    value += upper * slack
    return value, bound, total


@compiled
def inner_product(beta, f, low, error):
    """sum beta_i (f_i + low_i) as two numbers; the sum of the sizes of its terms, that of the errors times |beta_i|,
    and how many beta are not zero. Without `low` it is zero.
    """
    total = rest = sizes = charge = 0.0
    count = 0
    for i in range(beta.size):
        if beta[i] != 0.0:
            count += 1
            size = abs(beta[i])
            total, rest = add_product(total, rest, beta[i], f[i])
            sizes += size * abs(f[i])
            if low.size > 0:
                total, rest = add_product(total, rest, beta[i], low[i])
                sizes += size * abs(low[i])
            charge += size * error[i]
    return total, rest, sizes, charge, count


@compiled
def violation(beta, f, target, lo, hi, epsilon, at_bound):
    """m(alpha) - M(alpha), or zero; variables within `at_bound` of a bound or of their kink count as being there."""
    highest, lowest = -np.inf, np.inf
    for i in range(beta.size):
        wish = target[i] - f[i]
        is_positive, is_negative = beta[i] > at_bound * hi[i], beta[i] < at_bound * lo[i]
        if is_negative or (hi[i] > 0.0 and beta[i] < (1.0 - at_bound) * hi[i]):
            highest = max(highest, wish + epsilon if is_negative else wish - epsilon)
        if is_positive or (lo[i] < 0.0 and beta[i] > (1.0 - at_bound) * lo[i]):
            lowest = min(lowest, wish - epsilon if is_positive else wish + epsilon)
    return max(0.0, highest - lowest)


@compiled
def disagreement(alpha, upper, labels, gradient, at_bound):
    """The same for alpha = |beta| of rows with labels, given the gradient of the dual; a label of zero does not count.

    The intercept that a row asks for is y times its gradient (-y grad f in LIBSVM's words).
    """
    highest, lowest = -np.inf, np.inf
    for i in range(alpha.size):
        wish = labels[i] * gradient[i]
        can_grow, can_shrink = alpha[i] < (1.0 - at_bound) * upper[i], alpha[i] > at_bound * upper[i]
        if (can_grow and labels[i] > 0.0) or (can_shrink and labels[i] < 0.0):
            highest = max(highest, wish)
        if (can_shrink and labels[i] > 0.0) or (can_grow and labels[i] < 0.0):
            lowest = min(lowest, wish)
    return max(0.0, highest - lowest)


@compiled
def projected_gradient(alpha, upper, labels, gradient, at_bound):
    """The largest entry of the gradient of the dual along which alpha may move; a label of zero does not count."""
    largest = 0.0
    for i in range(alpha.size):
        if labels[i] != 0.0 and alpha[i] < (1.0 - at_bound) * upper[i]:
            largest = max(largest, gradient[i])
        if labels[i] != 0.0 and alpha[i] > at_bound * upper[i]:
            largest = max(largest, -gradient[i])
    return largest
