"""Compiled passes over rows for the joint risk of several classes (`joint`).

Outputs are by classes: f[k, i] is the output of class k for row i. Along a line every class m other than the row's own
is a line 1 + (f[m, i] - f[own, i]) + k (df[m, i] - df[own, i]), the own class is the constant 0, and the loss of the
row is the largest of them. Additions keep their order, so that equal data give equal bits.
"""

import numpy as np

from softmargin.core.jit import compiled


@compiled
def highest_lines(f, df, codes, weights, rows, k, highest):
    """For each of the rows the class whose line is the highest at k, of several the steepest one, into `highest`.

    Returns the sums of the heights at 0 and of the slopes of these lines, times the weights of the rows.
    """
    height = steepness = 0.0
    for j in range(rows.size):
        i = rows[j]
        own = codes[i]
        f_own, df_own = f[own, i], df[own, i]
        best, best_a, best_b, best_value = own, 0.0, 0.0, 0.0
        for m in range(f.shape[0]):
            if m != own:
                a, b = 1.0 + (f[m, i] - f_own), df[m, i] - df_own
                value = a + k * b
                if value > best_value or (value == best_value and b > best_b):
                    best, best_a, best_b, best_value = m, a, b, value
        highest[j] = best
        height += weights[i] * best_a
        steepness += weights[i] * best_b
    return height, steepness


@compiled
def add_coefficients(highest, codes, weights, factor, c):
    """c += factor * (the coefficients of the plane in which row i loses to the class highest[i]); the sum of the
    weights of rows that lose to another class than their own."""
    total = 0.0
    for i in range(codes.size):
        other, own = np.int64(highest[i]), codes[i]
        if other != own:
            size = factor * weights[i]
            c[other, i] += size
            c[own, i] -= size
            total += weights[i]
    return total


@compiled
def add_activity(highest, codes, weights, factor, alpha):
    """alpha[k, i] += factor * weights[i] for the class k that row i loses to, if that is not its own."""
    for i in range(codes.size):
        other = np.int64(highest[i])
        if other != codes[i]:
            alpha[other, i] += factor * weights[i]
