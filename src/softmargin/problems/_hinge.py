"""Compiled passes over blocks of rows for the hinge risk, its planes and its line searches.

The searches are those of `fixed_intercept` and `free_intercept`; t_i are the breakpoints of a derivative. Each function
is a few flat loops, and writes into arrays it is given: slices, allocations and calls between compiled functions would
take long to compile, and the first fit of all waits for most of these. The loops go over _CHUNK rows at a time, so that
the later ones find their data in the innermost cache. Row numbers are unsigned: an index that cannot be negative needs
no test. The number of a loop is made unsigned once more before it is added to: without the compiler it is an int, and
NumPy 1 would make a float of the sum of an int and an unsigned number.

`unit` is that of `hinges`: 1 if the target of a row is the sign of v_i, 0 if f holds outputs less targets. A hinge is
unit |v_i| - v_i f_i. The code chooses between |v_i| and 0 instead of multiplying by `unit`, so that the compiler fuses
the other product with the subtraction, whatever `unit` is.

A loop that writes an array never adds up at the same time: whether the compiler's fast version of such a loop runs
depends on where the arrays lie in memory, and the two versions add in different orders.

Arrays are float64 and contiguous, row numbers int64.
"""

import numpy as np

from softmargin.core.jit import compiled

_CHUNK = np.uint64(1024)
# Few rows are ever collected. They are tested 16 at a time; a group without a hit is skipped.
_PART = np.uint64(16)


@compiled(sums=True)
def risk(f, v, unit):
    """Sum of max(0, unit |v_i| - v_i f_i)."""
    total = 0.0
    for i in range(f.size):
        h = (abs(v[i]) if unit > 0.0 else 0.0) - v[i] * f[i]
        total += h if h > 0.0 else 0.0
    return total


@compiled(sums=True)
def follow(f, df, v, unit, k, k_plane, f_new, out):
    """f + k df into f_new (unless that is empty) and the coefficients of the plane at f + k_plane df into out.

    Returns the sum of the hinges at f + k df, and that of |out_i|.
    """
    n = np.uint64(f.size)
    risk = 0.0
    constant = 0.0
    for start in range(np.uint64(0), n, _CHUNK):
        stop = min(np.uint64(start) + _CHUNK, n)
        if f_new.size > 0:
            for i in range(start, stop):
                f_new[i] = f[i] + k * df[i]
        for i in range(start, stop):
            out[i] = -v[i] if (abs(v[i]) if unit > 0.0 else 0.0) - v[i] * (f[i] + k_plane * df[i]) > 0.0 else 0.0
        for i in range(start, stop):
            h = (abs(v[i]) if unit > 0.0 else 0.0) - v[i] * (f[i] + k * df[i])
            risk += h if h > 0.0 else 0.0
            constant += abs(out[i])
    return risk, constant


@compiled(sums=True)
def follow_free(f, df, v, unit, k, b, k_plane, lo, hi, f_new, out, buffer, t, q, inside):
    """As `follow`, at intercept b; the plane's own intercept is known to lie in (lo, hi) only.

    Rows whose breakpoint lies in there get coefficient 0 for now; their breakpoints go to t, their v to q, their
    numbers to `inside`.
    Returns how many, the sum of the hinges at f + k df and b, and the sums of out_i and |out_i|.
    """
    n = np.uint64(f.size)
    m = np.uint64(0)
    risk = 0.0
    balance = 0.0
    constant = 0.0
    for start in range(np.uint64(0), n, _CHUNK):
        stop = min(np.uint64(start) + _CHUNK, n)
        if f_new.size > 0:
            for i in range(start, stop):
                f_new[i] = f[i] + k * df[i]
        for i in range(start, stop):
            ti = (unit if v[i] > 0.0 else -unit) - (f[i] + k_plane * df[i]) if v[i] != 0.0 else np.inf
            active = ti >= hi if v[i] > 0.0 else ti <= lo
            out[i] = -v[i] if active else 0.0
            buffer[i - start] = ti
        for i in range(start, stop):
            h = (abs(v[i]) if unit > 0.0 else 0.0) - v[i] * (f[i] + k * df[i] + b)
            risk += h if h > 0.0 else 0.0
            balance += out[i]
            constant += abs(out[i])
        for part in range(start, stop, _PART):
            end = min(np.uint64(part) + _PART, stop)
            some = False
            for i in range(part, end):
                some |= (buffer[i - start] > lo) & (buffer[i - start] < hi)
            if some:
                for i in range(part, end):
                    t[m] = buffer[i - start]
                    q[m] = v[i]
                    inside[m] = i
                    m += np.uint64((buffer[i - start] > lo) & (buffer[i - start] < hi))
    return m, risk, balance, constant


@compiled(sums=True)
def scan_steps(f, df, v, unit, lo, hi, buffer, t, q):
    """Breakpoints along df with lo < t_i < hi into t, their q_i = v_i df_i into q.

    Returns how many, and the sum of q_i over the other active rows.
    """
    n = np.uint64(f.size)
    m = np.uint64(0)
    sum_q = 0.0
    for start in range(np.uint64(0), n, _CHUNK):
        stop = min(np.uint64(start) + _CHUNK, n)
        for i in range(start, stop):
            present = v[i] * df[i] != 0.0
            # np.divide: the operator would test for zero and stop the loop from being vectorised
            ti = np.divide((unit if v[i] > 0.0 else -unit) - f[i], df[i] if present else 1.0)
            buffer[i - start] = ti if present else np.inf  # rows without weight have no breakpoint
        for i in range(start, stop):
            qi = v[i] * df[i]
            active = buffer[i - start] >= hi if qi > 0.0 else buffer[i - start] <= lo
            sum_q += qi if active else 0.0
        for part in range(start, stop, _PART):
            end = min(np.uint64(part) + _PART, stop)
            some = False
            for i in range(part, end):
                some |= (buffer[i - start] > lo) & (buffer[i - start] < hi)
            if some:
                for i in range(part, end):
                    t[m] = buffer[i - start]
                    q[m] = v[i] * df[i]
                    m += np.uint64((buffer[i - start] > lo) & (buffer[i - start] < hi))
    return m, sum_q


@compiled(sums=True)
def scan_intercepts(f, df, v, unit, k, reference, lo, hi, buffer, t, inside):
    """Breakpoints of the intercept at f + k df with lo < t_i < hi into t, their row numbers into `inside`.

    Returns how many, and the sums of v, v df and v (t - reference) over the other active rows.
    """
    n = np.uint64(f.size)
    m = np.uint64(0)
    sum_v = 0.0
    sum_vdf = 0.0
    sum_vt = 0.0
    for start in range(np.uint64(0), n, _CHUNK):
        stop = min(np.uint64(start) + _CHUNK, n)
        for i in range(start, stop):
            buffer[i - start] = (unit if v[i] > 0.0 else -unit) - (f[i] + k * df[i]) if v[i] != 0.0 else np.inf
        for i in range(start, stop):
            active = buffer[i - start] >= hi if v[i] > 0.0 else buffer[i - start] <= lo
            x = v[i] if active else 0.0
            sum_v += x
            sum_vdf += x * df[i]
            sum_vt += x * (buffer[i - start] - reference if active else 0.0)
        for part in range(start, stop, _PART):
            end = min(np.uint64(part) + _PART, stop)
            some = False
            for i in range(part, end):
                some |= (buffer[i - start] > lo) & (buffer[i - start] < hi)
            if some:
                for i in range(part, end):
                    t[m] = buffer[i - start]
                    inside[m] = i
                    m += np.uint64((buffer[i - start] > lo) & (buffer[i - start] < hi))
    return m, sum_v, sum_vdf, sum_vt


@compiled(sums=True)
def narrow(f, df, v, unit, k0, lo0, hi0, k1, lo1, hi1, buffer, inside):
    """Numbers of the rows that may change sides in a quadrilateral of (k, b) into `inside`.

    Its corners are lo0 and hi0 at k0, lo1 and hi1 at k1. Returns how many rows, and the sums of unit |v| - v f, v df
    and v over the rows that are active all over it.
    """
    n = np.uint64(f.size)
    m = np.uint64(0)
    sum_h = 0.0
    sum_vdf = 0.0
    sum_v = 0.0
    for start in range(np.uint64(0), n, _CHUNK):
        stop = min(np.uint64(start) + _CHUNK, n)
        for i in range(start, stop):
            y = unit if v[i] > 0.0 else -unit
            t0 = y - (f[i] + k0 * df[i])
            t1 = y - (f[i] + k1 * df[i])
            above = (t0 >= hi0) & (t1 >= hi1)
            below = (t0 <= lo0) & (t1 <= lo1)
            active = above if v[i] > 0.0 else below
            side = v[i] if active else 0.0
            buffer[i - start] = side if above | below | (v[i] == 0.0) else np.nan
        for i in range(start, stop):
            x = buffer[i - start]
            x = x if x == x else 0.0
            sum_h += (abs(x) if unit > 0.0 else 0.0) - x * f[i]
            sum_vdf += x * df[i]
            sum_v += x
        for part in range(start, stop, _PART):
            end = min(np.uint64(part) + _PART, stop)
            some = False
            for i in range(part, end):
                some |= buffer[i - start] != buffer[i - start]
            if some:
                for i in range(part, end):
                    inside[m] = i
                    m += np.uint64(buffer[i - start] != buffer[i - start])
    return m, sum_h, sum_vdf, sum_v


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


@compiled
def _between(t, q, ratio, lo, hi, some, weights):
    """Breakpoints between lo and hi into `some`, ratio |q_i| into `weights`; returns how many."""
    m = np.uint64(0)
    for i in range(np.uint64(t.size)):
        some[m] = t[i]
        weights[m] = ratio * abs(q[i])
        m += np.uint64((t[i] > lo) & (t[i] < hi))
    return m


@compiled(sums=True)
def bracket(t, q, known, ratio, slope, curve, deviations, lo, hi, some, weights):
    """Ends of the interval of `breakpoints.bracket`; `some` and `weights` are workspace."""
    n = np.uint64(t.size)
    total = 0.0
    for i in range(n):
        total += q[i] if (t[i] > lo) == (q[i] > 0.0) else 0.0
    if known.size > 0:
        for i in range(n):
            total -= known[i]
    slope -= ratio * total
    m = _between(t, q, ratio, lo, hi, some, weights)
    low, high, _ = zero_piece(some[:m], weights[:m], slope, curve, lo, hi)
    zero = low if low > -np.inf else high if high < np.inf else 0.0
    total = 0.0
    squares = 0.0
    squares_of_all = 0.0
    for i in range(n):
        x = q[i] if (t[i] > zero if q[i] > 0.0 else t[i] < zero) else 0.0
        x -= known[i] if known.size > 0 else 0.0
        total += x
        squares += x * x
        squares_of_all += q[i] * q[i]
    # Not below that of one row: a sample in which nothing is active proves little.
    variance = max(squares - total * total / n, squares_of_all / n)
    margin = deviations * ratio * np.sqrt(variance)
    # A larger derivative has its zero no later, a smaller one no earlier.
    m = _between(t, q, ratio, lo, min(hi, np.nextafter(high, np.inf)), some, weights)
    left, _, _ = zero_piece(some[:m], weights[:m], slope + margin, curve, lo, hi)
    below = 0.0
    for i in range(n):
        below += ratio * abs(q[i]) if (t[i] > lo) & (t[i] < low) else 0.0
    m = _between(t, q, ratio, max(lo, np.nextafter(low, -np.inf)), hi, some, weights)
    _, right, _ = zero_piece(some[:m], weights[:m], slope + below - margin, curve, lo, hi)
    return left, right


@compiled(sums=True)
def settle(t, v, df, fixed_v, lo, hi, some, weights):
    """The best intercept b between lo and hi of a few rows with breakpoints t.

    `fixed_v` is the sum of v over other rows, which are active anyway; `some` and `weights` are workspace. Returns
    whether b lies there, b, the sums of v, v df and v (t - b) over the rows active at b, and the number and the sum of
    df of the rows that have their breakpoint there.
    """
    n = np.uint64(t.size)
    slope = -fixed_v
    for i in range(n):
        slope -= v[i] if (t[i] > lo) == (v[i] > 0.0) else 0.0
    m = np.uint64(0)
    for i in range(n):
        some[m] = t[i]
        weights[m] = abs(v[i])
        m += np.uint64((t[i] > lo) & (t[i] < hi) & (v[i] != 0.0))
    rise = 0.0
    for i in range(m):
        rise += weights[i]
    is_inside = (lo == -np.inf or slope < 0.0) and (hi == np.inf or slope + rise > 0.0)
    lo, hi, slope = zero_piece(some[:m], weights[:m], slope, 0.0, lo, hi)
    if lo == -np.inf and hi == np.inf:
        b = 0.0
    elif lo == -np.inf or (slope < 0.0 and hi < np.inf):
        b = hi
    elif hi == np.inf or slope > 0.0:
        b = lo
    else:
        b = 0.5 * (lo + hi)
    sum_v = 0.0
    sum_vdf = 0.0
    sum_vt = 0.0
    ties = 0
    tied_df = 0.0
    for i in range(n):
        x = v[i] if (t[i] > b if v[i] > 0.0 else t[i] < b) else 0.0
        is_tied = (t[i] == b) & (v[i] != 0.0)
        sum_v += x
        sum_vdf += x * df[i]
        sum_vt += x * (t[i] - b)
        ties += is_tied
        tied_df += df[i] if is_tied else 0.0
    return is_inside, b, sum_v, sum_vdf, sum_vt, ties, tied_df


@compiled
def complete_plane(t, q, rows, b, balance, out, bits):
    """Coefficients and bits of the rows that `follow_free` left open, where b is the plane's intercept.

    Rows tied at b are activated in turn until the coefficients add up to zero, the last one by the fraction that is
    missing; `balance` is the sum of the coefficients of all other rows. Returns the sum of |coefficients|, that row,
    and its fraction; -1 and 1.0 if none.
    """
    constant = 0.0
    missing = abs(balance)
    last = np.int64(-1)
    fraction = 1.0
    for i in range(t.size):
        row = rows[i]
        x = q[i]
        if t[i] == b and (x > 0.0) == (balance > 0.0) and missing > 0.0:
            if abs(x) > missing:
                last = row
                fraction = missing / abs(x)
                x *= fraction
                missing = 0.0
            else:
                missing -= abs(x)
        elif (t[i] > b) != (x > 0.0) or t[i] == b:
            x = 0.0
        out[row] = -x
        constant += abs(x)
        if x != 0.0 and row != last:
            bits[row >> 3] |= 128 >> (row & 7)
    return constant, last, fraction
