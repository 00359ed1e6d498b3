"""Passes over the rows of a problem with squared losses: see `squared.py`."""

import numpy as np

from softmargin.core.jit import compiled


@compiled
def sums(r, dr, v, k, b):
    """R at r - k dr - b, half its slopes by k and by b, and half its second derivatives by k k, k b and b b."""
    value = by_k = by_b = kk = kb = bb = 0.0
    for i in range(r.size):
        d = r[i] - k * dr[i] - b
        if v[i] * d > 0.0:
            weight = abs(v[i])
            value += weight * d * d
            by_k -= weight * d * dr[i]
            by_b -= weight * d
            kk += weight * dr[i] * dr[i]
            kb += weight * dr[i]
            bb += weight
    return value, by_k, by_b, kk, kb, bb


@compiled
def best_intercept(r, v, lo, hi, most_passes):
    """The zero between lo and hi of the slope by b, which rises: the mean of the active r_i, or else a bisection."""
    b = 0.5 * lo + 0.5 * hi
    for _ in range(most_passes):
        total = sum_r = 0.0
        for i in range(r.size):
            if v[i] * (r[i] - b) > 0.0:
                total += abs(v[i])
                sum_r += abs(v[i]) * (r[i] - b)
        if sum_r > 0.0:
            lo = b
        else:
            hi = b
        new = b + sum_r / total if total > 0.0 else b
        if not lo <= new <= hi:
            new = 0.5 * lo + 0.5 * hi
        if new == b:
            break
        b = new
    return b


@compiled
def minimise_along(r, dr, v, terms, b, is_free, most_passes, least_share):
    """The best k >= 0 of 1/2 A0 k^2 + B0 k + C R(r - k dr - b), and the best b if it is free: Newton with halving."""
    A0, B0, C = terms[0], terms[1], terms[2]
    k = 0.0
    value, by_k, by_b, kk, kb, bb = sums(r, dr, v, k, b)
    at = C * value
    for _ in range(most_passes):
        slope_k, slope_b = A0 * k + B0 + 2.0 * C * by_k, 2.0 * C * by_b if is_free else 0.0
        h_kk, h_kb, h_bb = A0 + 2.0 * C * kk, 2.0 * C * kb, 2.0 * C * bb
        step_k = step_b = 0.0
        if is_free and h_bb > 0.0:
            # Without b, which follows k: the Schur complement, which rounding may make negative.
            bent = h_kk - h_kb * (h_kb / h_bb)
            if bent > 1e-14 * h_kk:
                step_k = -(slope_k - slope_b * (h_kb / h_bb)) / bent
            step_k = max(step_k, -k)
            step_b = -(slope_b + h_kb * step_k) / h_bb
        elif h_kk > 0.0:
            step_k = max(-slope_k / h_kk, -k)
        promised = slope_k * step_k + slope_b * step_b
        if not promised < 0.0:
            break
        share = 1.0
        while share > 1e-9:
            new_k, new_b = k + share * step_k, b + share * step_b
            value, by_k, by_b, kk, kb, bb = sums(r, dr, v, new_k, new_b)
            new_at = 0.5 * A0 * new_k * new_k + B0 * new_k + C * value
            if new_at <= at + least_share * share * promised:
                break
            share *= 0.5
        if not new_at < at:
            break
        is_done = new_at >= at - 1e-12 * abs(at) or not np.isfinite(new_k)
        k, b, at = new_k, new_b, new_at
        if is_done:
            break
    return k
