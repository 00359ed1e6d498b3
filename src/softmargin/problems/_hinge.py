"""Compiled passes over blocks of rows for the hinge risk, its planes and its line searches.

The searches are those of `line_search`; t_i are the breakpoints of a derivative. Each function is a few flat
loops over whole arrays, and writes into arrays it is given: slices, allocations and calls between compiled
functions would take long to compile.

A loop that writes an array never adds up at the same time: whether the compiler's fast version of such a loop runs
depends on where the arrays lie in memory, and the two versions add in different orders.

Arrays are float64 and contiguous, row numbers int64.
"""

import numpy as np

from softmargin.core.jit import compiled


@compiled(sums=True)
def risk(f, v):
    """Sum of max(0, |v_i| - v_i f_i)."""
    total = 0.0
    for i in range(f.size):
        h = abs(v[i]) - v[i] * f[i]
        total += h if h > 0.0 else 0.0
    return total


@compiled(sums=True)
def pattern(f, df, k, v, out):
    """out_i = -v_i where the hinge at f + k df is positive, else 0; returns the sum of |out_i|."""
    for i in range(f.size):
        out[i] = -v[i] if abs(v[i]) - v[i] * (f[i] + k * df[i]) > 0.0 else 0.0
    constant = 0.0
    for i in range(f.size):
        constant += abs(out[i])
    return constant


@compiled(sums=True)
def strict_pattern(f, v, b, out):
    """The pattern at intercept b, nan for the rows whose breakpoint is b.

    Returns the number of these rows, and the sums of out_i and |out_i| over the others and of |v_i| over all.
    """
    for i in range(f.size):
        t = (1.0 if v[i] > 0.0 else -1.0) - f[i]
        active = t > b if v[i] > 0.0 else t < b
        c = -v[i] if active else 0.0
        out[i] = np.nan if (t == b) & (v[i] != 0.0) else c
    n_ties = 0
    balance = 0.0
    constant = 0.0
    weight = 0.0
    for i in range(f.size):
        tied = out[i] != out[i]
        c = 0.0 if tied else out[i]
        n_ties += 1 if tied else 0
        balance += c
        constant += abs(c)
        weight += abs(v[i])
    return n_ties, balance, constant, weight


@compiled(sums=True)
def scan_steps(f, df, v, lo, hi, t, inside):
    """Breakpoints along df into t, row numbers with lo < t_i < hi into `inside`.

    Returns how many, and the sum of q_i = v_i df_i over the other active rows.
    """
    for i in range(f.size):
        present = v[i] * df[i] != 0.0
        # np.divide: the operator would test for zero and stop the loop from being vectorised
        ti = np.divide((1.0 if v[i] > 0.0 else -1.0) - f[i], df[i] if present else 1.0)
        t[i] = ti if present else np.inf  # rows without weight have no breakpoint
    sum_q = 0.0
    for i in range(f.size):
        q = v[i] * df[i]
        active = t[i] >= hi if q > 0.0 else t[i] <= lo
        sum_q += q if active else 0.0
    m = np.uint64(0)  # unsigned: an index that cannot be negative needs no test
    for i in range(f.size):
        inside[m] = i
        m += np.uint64((t[i] > lo) & (t[i] < hi))
    return m, sum_q


@compiled(sums=True)
def scan_intercepts(f, df, v, k, reference, lo, hi, t, inside):
    """Breakpoints of the intercept at f + k df into t, row numbers with lo < t_i < hi into `inside`.

    Returns how many, and the sums of v, v df and v (t - reference) over the other active rows.
    """
    for i in range(f.size):
        t[i] = (1.0 if v[i] > 0.0 else -1.0) - (f[i] + k * df[i]) if v[i] != 0.0 else np.inf
    sum_v = 0.0
    sum_vdf = 0.0
    sum_vt = 0.0
    for i in range(f.size):
        active = t[i] >= hi if v[i] > 0.0 else t[i] <= lo
        x = v[i] if active else 0.0
        sum_v += x
        sum_vdf += x * df[i]
        sum_vt += x * (t[i] - reference if active else 0.0)
    m = np.uint64(0)
    for i in range(f.size):
        inside[m] = i
        m += np.uint64((t[i] > lo) & (t[i] < hi))
    return m, sum_v, sum_vdf, sum_vt


@compiled(sums=True)
def find_between(t, w, lo, hi, inside):
    """Row numbers with lo < t_i < hi into `inside`; returns how many, and the sum of w over t_i <= lo."""
    below = 0.0
    for i in range(t.size):
        below += w[i] if t[i] <= lo else 0.0
    m = np.uint64(0)
    for i in range(t.size):
        inside[m] = i
        m += np.uint64((t[i] > lo) & (t[i] < hi))
    return m, below


@compiled(sums=True)
def zero_piece(t, w, slope, curve, lo, hi):
    """The piece [lo, hi] and its slope where the derivative slope + curve x + (sum of w_i, t_i < x) is zero.

    All breakpoints lie between the lo and hi passed in, and the slope passed in is that of the first piece.
    Where the derivative jumps over zero, lo == hi. Otherwise no breakpoint lies between lo and hi and the
    derivative is slope + curve x there. Quickselect; destroys t and w.
    """
    m = np.uint64(t.size)
    state = np.uint64(1)
    while m > 0:
        # any regular choice of pivots has a quadratic worst case; a generator of 31 bits does not overflow
        state = (state * np.uint64(1103515245) + np.uint64(12345)) & np.uint64(0x7FFFFFFF)
        a = t[(state >> np.uint64(7)) % m]
        state = (state * np.uint64(1103515245) + np.uint64(12345)) & np.uint64(0x7FFFFFFF)
        b = t[(state >> np.uint64(7)) % m]
        c = t[m >> np.uint64(1)]
        pivot = max(min(a, b), min(max(a, b), c))
        below = 0.0
        at = 0.0
        for i in range(m):
            below += w[i] if t[i] < pivot else 0.0
            at += w[i] if t[i] == pivot else 0.0
        before = slope + below + curve * pivot
        if before >= 0.0:
            hi = pivot
        elif before + at <= 0.0:
            lo = pivot
            slope += below + at
        else:
            return pivot, pivot, 0.0
        left = np.uint64(0)
        for i in range(m):
            x = t[i]
            t[left] = x
            w[left] = w[i]
            left += np.uint64((x > lo) & (x < hi))
        m = left
    return lo, hi, slope


@compiled(sums=True)
def active_sums(t, v, df, b):
    """Sums of v, v df and v (t - b) over the rows active at the intercept b."""
    sum_v = 0.0
    sum_vdf = 0.0
    sum_vt = 0.0
    for i in range(t.size):
        x = v[i] if (t[i] > b if v[i] > 0.0 else t[i] < b) else 0.0
        sum_v += x
        sum_vdf += x * df[i]
        sum_vt += x * (t[i] - b)
    return sum_v, sum_vdf, sum_vt
