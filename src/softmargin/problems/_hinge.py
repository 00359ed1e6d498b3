"""Compiled passes over rows for the hinge risk, its planes and its line searches.

Every search here is the same problem: the zero of the derivative of a convex function of one number x (a step
k or an intercept b) that is quadratic between breakpoints. A row with signed weight q_i contributes -q_i to
the derivative while it is active: for x < t_i if q_i > 0, for x > t_i if q_i < 0. So the derivative rises by
w_i = |q_i| at t_i. Along a step, t_i = (y_i - f_i) / df_i and q_i = v_i df_i; for the intercept,
t_i = y_i - f_i and q_i = v_i.

    sample      strided rows give an interval (lo, hi) that holds the zero of the derivative almost surely
    scan        one pass sums the rows that are certainly active and copies out the rows with lo < t_i < hi
    select      quickselect on those few, carrying the derivative

Whether a row is active is decided by comparing t_i with other breakpoints, never by a margin computed again.

Arrays are float64 and contiguous, row numbers int64.

Reference: R. W. Floyd, R. L. Rivest, "Expected Time Bounds for Selection", Communications of the ACM 18(3),
1975.
Departs from the paper: weights; the interval comes from the sample's standard error; positions in the sample
are irregular but fixed, so that equal data give equal bits.
"""

import numpy as np

from softmargin.core.jit import compiled

_CHUNK = 1024  # rows whose breakpoints stay in the first-level cache between the two loops of a scan
_NARROW = 4096  # rows up to which quickselect alone is as fast


@compiled(sums=True)
def risk(f, v):
    """Sum of max(0, |v_i| - v_i f_i)."""
    total = 0.0
    for i in range(f.size):
        h = abs(v[i]) - v[i] * f[i]
        total += h if h > 0.0 else 0.0
    return total


@compiled(sums=True)
def pattern(f, v, out):
    """out_i = -v_i where the hinge is positive, else 0; returns the sum of |out_i|."""
    constant = 0.0
    for i in range(f.size):
        c = -v[i] if abs(v[i]) - v[i] * f[i] > 0.0 else 0.0
        out[i] = c
        constant += abs(c)
    return constant


@compiled(sums=True)
def strict_pattern(f, v, b, first, out):
    """The pattern at intercept b, 0 for the rows whose breakpoint is b.

    Returns those rows, counted from `first`, the sum of out_i, the sum of |out_i| and the sum of |v_i|.
    """
    ties = np.empty(f.size, dtype=np.int64)
    balance = 0.0
    constant = 0.0
    weight = 0.0
    n_ties = 0
    for start in range(0, f.size, _CHUNK):
        stop = min(start + _CHUNK, f.size)
        met = 0
        for i in range(start, stop):
            t = (1.0 if v[i] > 0.0 else -1.0) - f[i]
            active = t > b if v[i] > 0.0 else t < b
            c = -v[i] if active else 0.0
            out[i] = c
            balance += c
            constant += abs(c)
            weight += abs(v[i])
            met += 1 if t == b else 0
        if met > 0:
            for i in range(start, stop):
                if (1.0 if v[i] > 0.0 else -1.0) - f[i] == b and v[i] != 0.0:
                    ties[n_ties] = first + i
                    n_ties += 1
    return ties[:n_ties].copy(), balance, constant, weight


@compiled
def fill_ties(v, ties, balance, out):
    """Activate tied rows in turn until the sum of c is 0; the last one by the fraction that is missing.

    Returns what is left of the balance, the sum of |c_i| added, the fractional row or -1, and its fraction.
    """
    added = 0.0
    for k in range(ties.size):
        if balance == 0.0:
            break
        i = ties[k]
        if v[i] * balance > 0.0:
            if abs(balance) < abs(v[i]):
                out[i] = -balance
                return 0.0, added + abs(balance), i, balance / v[i]
            out[i] = -v[i]
            balance -= v[i]
            added += abs(v[i])
    return balance, added, -1, 1.0


@compiled
def find_inside(t, lo, hi, where):
    """Positions with lo < t_i < hi into `where`, without branches; returns their number."""
    m = np.uint64(0)  # unsigned: an index that cannot be negative needs no test
    for i in range(t.size):
        where[m] = i
        m += np.uint64((t[i] > lo) & (t[i] < hi))
    return np.int64(m)


@compiled(sums=True)
def scan_steps(f, df, v, lo, hi):
    """One pass for the search along df.

    Returns t_i and q_i of the rows with lo < t_i < hi, the sum of q over the other active rows, and the sums
    of the positive and of the negative q_i returned.
    """
    t_in = np.empty(f.size)
    q_in = np.empty(f.size)
    t = np.empty(_CHUNK)
    q = np.empty(_CHUNK)
    where = np.empty(_CHUNK, dtype=np.int64)
    outside = 0.0
    rise = 0.0
    fall = 0.0
    m = 0
    for start in range(0, f.size, _CHUNK):
        size = min(_CHUNK, f.size - start)
        fs, dfs, vs = f[start : start + size], df[start : start + size], v[start : start + size]
        for j in range(size):
            qj = vs[j] * dfs[j]
            present = qj != 0.0
            # np.divide: the operator would test for zero and stop the loop from being vectorised
            tj = np.divide((1.0 if vs[j] > 0.0 else -1.0) - fs[j], dfs[j] if present else 1.0)
            tj = tj if present else np.inf  # rows without weight have no breakpoint
            active = tj >= hi if qj > 0.0 else tj <= lo
            outside += qj if active else 0.0
            t[j] = tj
            q[j] = qj
        for p in range(find_inside(t[:size], lo, hi, where)):
            qp = q[where[p]]
            t_in[m] = t[where[p]]
            q_in[m] = qp
            rise += qp if qp > 0.0 else 0.0
            fall += qp if qp < 0.0 else 0.0
            m += 1
    return t_in[:m].copy(), q_in[:m].copy(), outside, rise, fall


@compiled(sums=True)
def scan_intercepts(f, df, v, k, lo, hi, ref, first):
    """One pass for the intercept at f + k df.

    Returns t_i and first + i of the rows with lo < t_i < hi; the sums of v, v df and v (t - ref) over the
    other active rows; and the sums of the positive and of the negative v of the rows returned.
    """
    t_in = np.empty(f.size)
    rows = np.empty(f.size, dtype=np.int64)
    t = np.empty(_CHUNK)
    where = np.empty(_CHUNK, dtype=np.int64)
    sum_v = 0.0
    sum_vdf = 0.0
    sum_vt = 0.0
    rise = 0.0
    fall = 0.0
    m = 0
    for start in range(0, f.size, _CHUNK):
        size = min(_CHUNK, f.size - start)
        fs, dfs, vs = f[start : start + size], df[start : start + size], v[start : start + size]
        for j in range(size):
            tj = (1.0 if vs[j] > 0.0 else -1.0) - (fs[j] + k * dfs[j])
            active = tj >= hi if vs[j] > 0.0 else tj <= lo
            vj = vs[j] if active else 0.0
            sum_v += vj
            sum_vdf += vj * dfs[j]
            sum_vt += vj * (tj - ref)
            t[j] = tj if vs[j] != 0.0 else np.inf
        for p in range(find_inside(t[:size], lo, hi, where)):
            vp = vs[where[p]]
            t_in[m] = t[where[p]]
            rows[m] = first + start + where[p]
            rise += vp if vp > 0.0 else 0.0
            fall += vp if vp < 0.0 else 0.0
            m += 1
    return t_in[:m].copy(), rows[:m].copy(), sum_v, sum_vdf, sum_vt, rise, fall


@compiled
def zero_piece(t, w, slope, curve, lo, hi):
    """The piece [lo, hi] and its slope where the derivative slope + curve x + (sum of w_i, t_i < x) is zero.

    All breakpoints lie between the lo and hi passed in, and the slope passed in is that of the first piece.
    Where the derivative jumps over zero, lo == hi. Otherwise no breakpoint lies between lo and hi and the
    derivative is slope + curve x there. Destroys t and w.
    """
    m = t.size
    right_t = np.empty(m)
    right_w = np.empty(m)
    state = 1
    while m > 0:
        state = state * 16807 % 2147483647  # any regular choice of pivots has a quadratic worst case
        a = t[state % m]
        state = state * 16807 % 2147483647
        b = t[state % m]
        state = state * 16807 % 2147483647
        c = t[state % m]
        pivot = max(min(a, b), min(max(a, b), c))
        below = 0.0
        at = 0.0
        n_left = 0
        n_right = 0
        for i in range(m):
            ti = t[i]
            wi = w[i]
            t[n_left] = ti
            w[n_left] = wi
            right_t[n_right] = ti
            right_w[n_right] = wi
            is_left = ti < pivot
            is_right = ti > pivot
            below += wi if is_left else 0.0
            at += 0.0 if is_left | is_right else wi
            n_left += int(is_left)
            n_right += int(is_right)
        before = slope + below + curve * pivot
        if before >= 0.0:
            hi = pivot
            m = n_left
        elif before + at <= 0.0:
            lo = pivot
            slope += below + at
            t, right_t = right_t, t
            w, right_w = right_w, w
            m = n_right
        else:
            return pivot, pivot, 0.0
    return lo, hi, slope


@compiled
def point(lo, hi, slope, curve):
    """The zero of the derivative in a piece of `zero_piece`; the middle or the finite end of a flat one."""
    if lo == hi:
        return lo
    if curve > 0.0:
        return min(max(-slope / curve, lo), hi)
    if lo == -np.inf and hi == np.inf:
        return 0.0
    if lo == -np.inf or (slope < 0.0 and hi < np.inf):
        return hi
    if hi == np.inf or slope > 0.0:
        return lo
    return 0.5 * (lo + hi)


@compiled
def sample_rows(n, m):
    """m row numbers, one from each of m equal parts of range(n), at irregular places."""
    rows = np.empty(m, dtype=np.int64)
    state = 1
    for j in range(m):
        state = state * 16807 % 2147483647
        start = j * n // m
        rows[j] = start + state % ((j + 1) * n // m - start)
    return rows


@compiled
def bracket(t, q, known, ratio, slope, curve, deviations, lo, hi):
    """An interval inside (lo, hi) that holds the zero of the derivative of all rows, judged from a sample.

    Each row of the sample stands for `ratio` rows. `known` are the contributions of its rows at another
    point, where `slope` is the derivative of all rows: only the difference from them is subject to chance.
    Without such a point, `known` is 0 and `slope` is the part of the derivative that no row contributes. In
    the interval the sample's derivative lies within `deviations` standard errors of zero.
    """
    m = t.size
    inner = np.empty(m)
    jumps = np.empty(m)
    size = 0
    active_lo = 0.0
    squares = 0.0
    for i in range(m):
        active = (q[i] > 0.0) & (t[i] > lo) | (q[i] < 0.0) & (t[i] <= lo)
        active_lo += (q[i] if active else 0.0) - known[i]
        squares += q[i] * q[i]
        inner[size] = t[i]
        jumps[size] = ratio * abs(q[i])
        size += int((q[i] != 0.0) & (t[i] > lo) & (t[i] < hi))
    inner, jumps = inner[:size], jumps[:size]
    slope = slope - ratio * active_lo
    a, b, rest = zero_piece(inner.copy(), jumps.copy(), slope, curve, lo, hi)
    centre = point(a, b, rest, curve)
    total = 0.0
    variance = 0.0
    for i in range(m):
        active = (q[i] > 0.0) & (t[i] > centre) | (q[i] < 0.0) & (t[i] < centre)
        x = (q[i] if active else 0.0) - known[i]
        total += x
        variance += x * x
    # Not below that of one row: a sample in which nothing is active proves little.
    margin = deviations * ratio * np.sqrt(max(variance - total * total / m, squares / m))
    low, _, _ = zero_piece(inner.copy(), jumps.copy(), slope + margin, curve, lo, hi)
    _, high, _ = zero_piece(inner, jumps, slope - margin, curve, lo, hi)
    # Breakpoints equal to an end belong inside: many rows may share one.
    return max(lo, np.nextafter(low, -np.inf)), min(hi, np.nextafter(high, np.inf))


@compiled(sums=True)
def zero(t, w, slope, curve, lo, hi):
    """The zero of slope + curve x + (sum of w_i, t_i < x), breakpoints between lo and hi; destroys t and w.

    Long arrays are first narrowed as in a scan: a sample, an interval, a copy of what is inside.
    """
    m = t.size
    where = np.empty(m if m > _NARROW else 0, dtype=np.int64)
    sample_t = np.empty(_NARROW // 8)
    sample_w = np.empty(_NARROW // 8)
    known = np.zeros(_NARROW // 8)
    while m > _NARROW:
        rows = sample_rows(m, known.size)
        for j in range(rows.size):
            sample_t[j] = t[rows[j]]
            sample_w[j] = w[rows[j]]
        total = 0.0
        for i in range(m):
            total += w[i]
        low, high = bracket(sample_t, sample_w, known, m / known.size, slope + total, curve, 3.0, lo, hi)
        below = 0.0
        for i in range(m):
            below += w[i] if t[i] <= low else 0.0
        size = find_inside(t[:m], low, high, where)
        inside = 0.0
        for p in range(size):
            inside += w[where[p]]
        left_fails = low > lo and slope + below + curve * low >= 0.0
        right_fails = high < hi and slope + below + inside + curve * high <= 0.0
        if left_fails or right_fails or 2 * size > m:
            break
        for p in range(size):
            t[p] = t[where[p]]
            w[p] = w[where[p]]
        slope += below
        lo = low
        hi = high
        m = size
    lo, hi, slope = zero_piece(t[:m], w[:m], slope, curve, lo, hi)
    return point(lo, hi, slope, curve)


@compiled(sums=True)
def active_sums(t, v, df, b):
    """Sums of v, v df and v (t - b) over the rows active at the intercept b, and how many have t = b."""
    sum_v = 0.0
    sum_vdf = 0.0
    sum_vt = 0.0
    n_ties = 0
    for i in range(t.size):
        x = v[i] if (v[i] > 0.0) & (t[i] > b) | (v[i] < 0.0) & (t[i] < b) else 0.0
        sum_v += x
        sum_vdf += x * df[i]
        sum_vt += x * (t[i] - b)
        n_ties += 1 if t[i] == b else 0
    return sum_v, sum_vdf, sum_vt, n_ties
