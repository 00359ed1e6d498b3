"""Compiled passes over blocks of rows for the threshold risks of `ordinal`.

A row with score g and rank y has the losses theta_k - (g - 1) for the `reach` thresholds below it, k = y-1, y-2, ...,
and (g + 1) - theta_k for the `reach` thresholds above it, k = y, y+1, ..., where these are positive. So its breakpoints
are g - 1 ("lower") and g + 1 ("upper"). Thresholds ascend: the losses of a row end at the first that is not positive.

Additions keep their order, so that equal data give equal bits. Arrays are contiguous; ranks are int64, all else float64
unless it is said.
"""

import numpy as np

from softmargin.core.jit import compiled


@compiled
def count_bins(g, y, s, start, per_unit, lower, upper):
    """Add the weight of every breakpoint to the table [bin, rank] of its kind."""
    last = lower.shape[0] - 1
    for i in range(g.size):
        x = (g[i] - 1.0 - start) * per_unit
        lower[int(min(x, last)) if x > 0.0 else 0, y[i]] += s[i]
        x = (g[i] + 1.0 - start) * per_unit
        upper[int(min(x, last)) if x > 0.0 else 0, y[i]] += s[i]


@compiled
def find_bins(lower, upper, total, first, last, before):
    """For each threshold the bins in which the derivative reaches and leaves zero, and the derivative before them.

    The derivative of threshold k falls as k grows, so one sweep over the bins serves all: below[j] and above[j] are
    what it has passed of rank j, from which the derivative of the next threshold follows.
    """
    n_bins, n_ranks = lower.shape
    below = np.zeros(n_ranks)
    above = np.zeros(n_ranks)
    slope = -total[0]
    k = 0
    for b in range(n_bins):
        while True:
            jump = 0.0
            for j in range(n_ranks):
                jump += upper[b, j] if j <= k else lower[b, j]
            if slope + jump < 0.0 and b < n_bins - 1:
                break
            first[k] = b
            before[k] = slope
            end = b
            if slope + jump == 0.0:
                more = 0.0
                while more == 0.0 and end < n_bins - 1:
                    end += 1
                    for j in range(n_ranks):
                        more += upper[end, j] if j <= k else lower[end, j]
            last[k] = end
            k += 1
            if k == first.size:
                return
            slope -= (total[k] - above[k]) + below[k]
        slope += jump
        for j in range(n_ranks):
            below[j] += lower[b, j]
            above[j] += upper[b, j]


@compiled
def gather_bins(g, y, s, start, per_unit, wanted, t, bins, ranks, sides, weights):
    """The breakpoints in wanted bins, their bins, ranks, sides (0 lower, 1 upper) and weights; returns how many."""
    end = wanted.size - 1
    m = 0
    for i in range(g.size):
        if s[i] == 0.0:
            continue
        for side in range(2):
            ti = g[i] - 1.0 if side == 0 else g[i] + 1.0
            x = (ti - start) * per_unit
            b = int(min(x, end)) if x > 0.0 else 0
            if wanted[b]:
                t[m] = ti
                bins[m] = b
                ranks[m] = y[i]
                sides[m] = side
                weights[m] = s[i]
                m += 1
    return m


@compiled
def settle(t, bins, ranks, sides, weights, first, last, before, theta):
    """The thresholds, from the breakpoints of their bins in ascending order."""
    begin = 0
    for k in range(theta.size):
        while begin < t.size and bins[begin] < first[k]:
            begin += 1
        slope = before[k]
        low = 0.0
        p = begin
        while p < t.size and bins[p] <= last[k]:
            if (ranks[p] <= k) == (sides[p] == 1):
                if slope == 0.0:
                    low = 0.5 * (low + t[p])  # anywhere between the two
                    break
                low = t[p]
                slope += weights[p]
                if slope > 0.0:
                    break
            p += 1
        theta[k] = low


@compiled
def evaluate(g, dg, y, s, theta, prefix, reference, starts, start, per_unit, reach, steps, tied, ties):
    """Risk and its derivative along dg at fixed thresholds, without the rows tied at one, and how many ties there are.

    The active losses of a row on either side are those of a range of thresholds. Where the range begins or ends is
    looked up: starts[b] thresholds lie before bin b, and `theta` ends with infinity. prefix[k] is the sum of the first
    k thresholds, measured from `reference`. `steps` gains what the balance changes by from one threshold to the next,
    but for -2 s_i at the rank of the row; `tied` the weights of the rows tied at each threshold, on the lower and on
    the upper side. Row and threshold of the first ties go to `ties`.
    """
    n_thresholds = theta.size - 1
    end = float(starts.size - 1)
    risk = 0.0
    slope = 0.0
    n_ties = 0
    for i in range(g.size):
        if s[i] == 0.0:
            continue
        loss = 0.0
        t = g[i] - 1.0
        x = (t - start) * per_unit
        k = starts[int(min(x, end)) if x > 0.0 else 0]
        while theta[k] < t:
            k += 1
        k = max(k, y[i] - reach)
        while theta[k] == t and k < y[i]:
            tied[0, k] += s[i]
            if n_ties < ties.shape[1]:
                ties[0, n_ties] = i
                ties[1, n_ties] = k
            n_ties += 1
            k += 1
        k = min(k, y[i])
        below = y[i] - k
        loss += prefix[y[i]] - prefix[k] - below * (t - reference)
        steps[k] += s[i]
        t = g[i] + 1.0
        x = (t - start) * per_unit
        k = starts[int(min(x, end)) if x > 0.0 else 0]
        stop = min(y[i] + reach, n_thresholds)
        while theta[k] < t:
            k += 1
        k = max(min(k, stop), y[i])
        above = k - y[i]
        loss += above * (t - reference) - (prefix[k] - prefix[y[i]])
        steps[k] += s[i]
        while theta[k] == t and k < stop:
            tied[1, k] += s[i]
            if n_ties < ties.shape[1]:
                ties[0, n_ties] = i
                ties[1, n_ties] = k
            n_ties += 1
            k += 1
        risk += s[i] * loss
        slope += s[i] * (above - below) * dg[i]
    return risk, slope, n_ties


@compiled
def find_ties(g, y, s, theta, k, reach, rows):
    """The rows tied at threshold k; returns how many."""
    m = 0
    for i in range(g.size):
        if s[i] > 0.0 and -reach <= k - y[i] < reach and theta[k] == (g[i] - 1.0 if k < y[i] else g[i] + 1.0):
            rows[m] = i
            m += 1
    return m


@compiled
def make_plane(g, y, s, theta, reach, from_lower, from_upper, slots, start, c, bits, rows, fractions):
    """Coefficients into c and active losses into bits[slots[k]]; returns the constant of the plane.

    Tied rows are activated in turn while weight is wanted of their side, in `from_lower` or `from_upper`, which
    shrink; the last one by a fraction, into `rows` (numbered from `start`) and `fractions`.
    """
    n_thresholds = theta.size
    constant = 0.0
    for i in range(g.size):
        net = 0.0
        size = 0.0
        bit = 128 >> (i % 8)
        first = max(y[i] - reach, 0)
        stop = min(y[i] + reach, n_thresholds)
        for side in range(2):
            wanted = from_lower if side == 0 else from_upper
            sign = -1.0 if side == 0 else 1.0
            t = g[i] + sign
            k = y[i] - 1 + side
            while s[i] > 0.0 and first <= k < stop and sign * (t - theta[k]) >= 0.0:
                part = 1.0
                if theta[k] == t:
                    part = min(1.0, wanted[k] / s[i])
                    wanted[k] = max(0.0, wanted[k] - s[i])
                if part == 1.0:
                    bits[slots[k], i // 8] |= bit
                elif part > 0.0:
                    rows[k] = start + i
                    fractions[k] = part
                net += sign * part
                size += part
                k += 1 if side == 1 else -1
        c[i] = s[i] * net
        constant += s[i] * size
    return constant
