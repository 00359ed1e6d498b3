"""What solvers ask of a box problem again and again, in one pass each: see `box_qp.py`."""

import math

import numpy as np

from softmargin.core.jit import compiled


@compiled(maxima=True)
def extremes(p, lo, hi, epsilon, beta, f):
    """The largest wish to rise over rows with beta < hi, and the least to fall over rows with beta > lo."""
    highest, lowest = -np.inf, np.inf
    for i in range(beta.size):
        wish = p[i] - f[i]
        rise = wish - epsilon if beta[i] >= 0.0 else wish + epsilon
        fall = wish - epsilon if beta[i] > 0.0 else wish + epsilon
        highest = max(highest, rise if beta[i] < hi[i] else -np.inf)
        lowest = min(lowest, fall if beta[i] > lo[i] else np.inf)
    return highest, lowest


@compiled
def middle(highest, lowest):
    """The intercept between two wishes; one that is not there does not count."""
    if math.isfinite(highest) and math.isfinite(lowest):
        return 0.5 * (highest + lowest)
    return highest if math.isfinite(highest) else lowest if math.isfinite(lowest) else 0.0


@compiled(sums=True)
def sums(p, lo, hi, epsilon, beta, f, b):
    """p'beta, beta'f, the sum of |beta|, and the sum of the losses max(0, hi (r - epsilon), lo (r + epsilon))."""
    linear = curvature = size = loss = 0.0
    for i in range(beta.size):
        linear += p[i] * beta[i]
        curvature += beta[i] * f[i]
        size += abs(beta[i])
        rest = p[i] - f[i] - b
        loss += max(max(hi[i] * (rest - epsilon), lo[i] * (rest + epsilon)), 0.0)
    return linear, curvature, size, loss


@compiled
def measured(p, lo, hi, epsilon, beta, f):
    """The two `extremes`, the intercept in their `middle`, and the `sums` with that intercept."""
    highest, lowest = extremes(p, lo, hi, epsilon, beta, f)
    b = middle(highest, lowest)
    return (highest, lowest), b, sums(p, lo, hi, epsilon, beta, f, b)
