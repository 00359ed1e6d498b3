"""The compiled part of SMO: choosing a pair by each of the rules, and stepping on it.

    wish = p - f, the negative gradient      up = hi - beta, down = beta - lo: the room of each variable

A variable may rise if it has room above, and fall if it has room below. The step of a pair raises one variable and
lowers the other by the same amount. Rows of the kernel matrix are read where they lie; a loop that misses some returns
NEED_ROWS and is called again when they are there.

Searches run over short stretches: first it is counted, in a form that vectorises, how many entries beat the best so
far; only where there are any is the stretch looked at one by one, which happens a handful of times. No score is divided
before it is known to win.
"""

import numpy as np

from softmargin.core.jit import compiled

DONE, STUCK, NEED_ROWS = 0, 1, 2
MOST_VIOLATING, SECOND_ORDER, MAXIMUM_GAIN, HYBRID, ONE_ROW, ALL_CACHED = 0, 1, 2, 3, 4, 5

_STRETCH = 128
_UNKNOWN = -2
# The inner problem of a working set is solved until its violation has fallen to this share, or for so many steps.
_INNER_SHARE = 1e-8
_INNER_STEPS = 10_000


@compiled
def move(wish, rising, falling, amount, room, sign):
    """wish -= amount (rising - falling); returns where sign * wish is then largest among variables with room, or -1."""
    best, at = -np.inf, -1
    for begin in range(0, wish.size, _STRETCH):
        w, r = wish[begin : begin + _STRETCH], room[begin : begin + _STRETCH]
        if amount != 0.0:
            x, z = rising[begin : begin + _STRETCH], falling[begin : begin + _STRETCH]
            for k in range(w.size):
                w[k] -= amount * (np.float64(x[k]) - np.float64(z[k]))
        better = 0
        for k in range(w.size):
            better += (sign * w[k] > best) & (r[k] > 0.0)
        if better > 0:
            for k in range(w.size):
                if sign * w[k] > best and r[k] > 0.0:
                    best, at = sign * w[k], begin + k
    return at


@compiled
def second_order_partner(wish, down, diag, row, i, least):
    """The j that promises most together with i if there were no box, or -1; curvatures count as at least `least`."""
    best, at = 0.0, -1
    top, own = wish[i], diag[i]
    for begin in range(0, wish.size, _STRETCH):
        end = begin + _STRETCH
        w, r, g, x = wish[begin:end], down[begin:end], diag[begin:end], row[begin:end]
        better = 0
        for k in range(w.size):
            d = top - w[k]
            a = max(own + g[k] - 2.0 * np.float64(x[k]), least)
            better += (d > 0.0) & (r[k] > 0.0) & (d * d > best * a)
        if better > 0:
            for k in range(w.size):
                d = top - w[k]
                a = max(own + g[k] - 2.0 * np.float64(x[k]), least)
                if d > 0.0 and r[k] > 0.0 and d * d > best * a:
                    best, at = d * d / a, begin + k
    return at


@compiled
def gain_partner(wish, up, down, diag, row, b, best):
    """The partner with which b gains most, and twice that gain; (-1, best) unless it is more than `best`.

    Twice the gain of a step d / a that fits the box is d^2 / a; one that the box ends after `room` gains
    room (2 d - a room), whatever the sign of the curvature a: eq. (3).
    """
    at = -1
    own_wish, own, own_up, own_down = wish[b], diag[b], up[b], down[b]
    for begin in range(0, wish.size, _STRETCH):
        end = begin + _STRETCH
        w, u, v, g, x = wish[begin:end], up[begin:end], down[begin:end], diag[begin:end], row[begin:end]
        better = 0
        for k in range(w.size):  # both sides of each choice are computed: then it is no jump, and vectorises
            e = own_wish - w[k]
            above = own_up if own_up < v[k] else v[k]
            below = own_down if own_down < u[k] else u[k]
            room = above if e > 0.0 else below
            d = abs(e)
            a = own + g[k] - 2.0 * np.float64(x[k])
            reach = a * room
            clipped, inner, inner_bar = room * (2.0 * d - reach), d * d, best * a
            is_clipped = d >= reach
            value = clipped if is_clipped else inner
            bar = best if is_clipped else inner_bar
            better += (value > bar) & (d > 0.0)
        if better > 0:
            for k in range(w.size):
                e = own_wish - w[k]
                room = min(own_up, v[k]) if e > 0.0 else min(own_down, u[k])
                if e != 0.0 and room > 0.0:
                    value = twice_gain(abs(e), own + g[k] - 2.0 * np.float64(x[k]), room)
                    if value > best:
                        best, at = value, begin + k
    return at, best


@compiled
def twice_gain(d, a, room):
    """Twice what a pair gains whose wishes differ by d > 0, with curvature a and this much room: eq. (3)."""
    return room * (2.0 * d - a * room) if d >= a * room else d * d / a


@compiled
def raise_and_lower(i, j, amount, beta, lo, hi, up, down):
    """beta_i += amount, beta_j -= amount, exactly to the bound where the room ends; whether anything changed."""
    before_i, before_j = beta[i], beta[j]
    beta[i] = hi[i] if amount >= up[i] else min(before_i + amount, hi[i])
    beta[j] = lo[j] if amount >= down[j] else max(before_j - amount, lo[j])
    up[i], down[i] = hi[i] - beta[i], beta[i] - lo[i]
    up[j], down[j] = hi[j] - beta[j], beta[j] - lo[j]
    return beta[i] != before_i or beta[j] != before_j


@compiled
def pair_steps(
    rule, eta, least, steps, slab, slot_of, stamp, clock, owner, diag, lo, hi, beta, wish, up, down, pair, chosen
):
    """Up to `steps` pair steps; changes beta, wish, up, down, and `pair`, the last working set.

    `chosen` is a pair that was chosen but lacks rows (-1: not chosen yet), for the call after NEED_ROWS; where both are
    -1 then, the rows of the last pair are missing. Returns the code, the steps made, and what they gained.
    """
    made, gain = 0, 0.0
    first, second = chosen[0], chosen[1]
    chosen[0], chosen[1] = -1, -1
    top = _UNKNOWN
    is_plain = False  # the most violating pair, because the rule's own choice led nowhere
    while made < steps:
        if first < 0:
            if top == _UNKNOWN:
                top = move(wish, slab[0], slab[0], 0.0, up, 1.0)
            uses_gain = rule >= MAXIMUM_GAIN and pair[0] >= 0 and not is_plain
            if uses_gain and rule != MAXIMUM_GAIN:
                n_free = 0  # of the last pair, that are off their bounds
                for b in pair:
                    n_free += min(up[b], down[b]) > eta * (up[b] + down[b])
                uses_gain = n_free > 0
            if uses_gain:
                if slot_of[pair[0]] < 0 or slot_of[pair[1]] < 0:
                    return NEED_ROWS, made, gain
                best = 0.0
                for s in range(owner.size if rule == ALL_CACHED else 2):
                    if rule == ALL_CACHED:
                        b = owner[s]
                    else:
                        b = pair[s]
                    if b < 0 or (rule == ONE_ROW and s == 0):
                        continue
                    partner, best = gain_partner(wish, up, down, diag, slab[slot_of[b]], b, best)
                    if partner >= 0:
                        first, second = b, partner
                if first < 0 and rule == MAXIMUM_GAIN:
                    return STUCK, made, gain
            if first < 0:
                first = top
                if first < 0:
                    return STUCK, made, gain
                if rule != SECOND_ORDER or is_plain:
                    second = move(wish, slab[0], slab[0], 0.0, down, -1.0)
                    if second < 0 or wish[first] <= wish[second]:
                        return STUCK, made, gain
        if second < 0:
            if slot_of[first] < 0:
                chosen[0] = first
                return NEED_ROWS, made, gain
            second = second_order_partner(wish, down, diag, slab[slot_of[first]], first, least)
            if second < 0:
                return STUCK, made, gain
        if slot_of[first] < 0 or slot_of[second] < 0:
            chosen[0], chosen[1] = first, second
            return NEED_ROWS, made, gain

        i, j = (first, second) if wish[first] > wish[second] else (second, first)
        stamp[slot_of[first]], stamp[slot_of[second]] = clock[0], clock[0] + 1
        clock[0] += 2
        row_i, row_j = slab[slot_of[i]], slab[slot_of[j]]
        d = wish[i] - wish[j]
        a = (np.float64(row_i[i]) - np.float64(row_i[j])) + (np.float64(row_j[j]) - np.float64(row_j[i]))
        room = min(up[i], down[j])
        amount = room if d >= a * room else d / a
        if raise_and_lower(i, j, amount, beta, lo, hi, up, down):
            gain += 0.5 * twice_gain(d, a, room)
            made += 1
            pair[0], pair[1] = first, second
            top = move(wish, row_i, row_j, amount, up, 1.0)
            is_plain = False
        elif is_plain or rule in (MOST_VIOLATING, MAXIMUM_GAIN):
            return STUCK, made, gain
        else:
            is_plain = True
        first, second = -1, -1
    return DONE, made, gain


@compiled
def rank(wish, room, sign, out):
    """The variables with room whose sign * wish is largest, best first; returns their number."""
    count = 0
    scores = np.empty(out.size)
    bar = -np.inf
    for begin in range(0, wish.size, _STRETCH):
        w, r = wish[begin : begin + _STRETCH], room[begin : begin + _STRETCH]
        better = 0
        for k in range(w.size):
            better += (sign * w[k] > bar) & (r[k] > 0.0)
        if better == 0:
            continue
        for k in range(w.size):
            score = sign * w[k]
            if score <= bar or r[k] <= 0.0:
                continue
            place = min(count, out.size - 1)
            while place > 0 and scores[place - 1] < score:
                scores[place], out[place] = scores[place - 1], out[place - 1]
                place -= 1
            scores[place], out[place] = score, begin + k
            count = min(count + 1, out.size)
            if count == out.size:
                bar = scores[count - 1]
    return count


@compiled
def include(k, chosen, size):
    """Put k to the first `size` of `chosen` unless it is there already; returns how many there are then."""
    for s in range(size):
        if chosen[s] == k:
            return size
    chosen[size] = k
    return size + 1


@compiled
def solve_set(K, wish, lo, hi, beta, up, down):
    """Best pairs of a small problem, one after the other, until it is solved; changes all but K, lo and hi.

    Returns what it gained and in how many steps.
    """
    made, gain, goal = 0, 0.0, -1.0
    while made < _INNER_STEPS:
        best, i, j, violation = 0.0, -1, -1, 0.0
        for s in range(beta.size):
            for t in range(beta.size):
                d, room = wish[s] - wish[t], min(up[s], down[t])
                if d > 0.0 and room > 0.0:
                    violation = max(violation, d)
                    value = twice_gain(d, (K[s, s] - K[s, t]) + (K[t, t] - K[t, s]), room)
                    if value > best:
                        best, i, j = value, s, t
        if goal < 0.0:
            goal = _INNER_SHARE * violation
        if i < 0 or violation <= goal:
            break
        d, a, room = wish[i] - wish[j], (K[i, i] - K[i, j]) + (K[j, j] - K[j, i]), min(up[i], down[j])
        amount = room if d >= a * room else d / a
        if not raise_and_lower(i, j, amount, beta, lo, hi, up, down):
            break
        gain += 0.5 * best
        made += 1
        for s in range(beta.size):
            wish[s] -= amount * (K[i, s] - K[j, s])
    return gain, made


@compiled
def set_steps(steps, slab, slot_of, stamp, clock, lo, hi, beta, wish, up, down, chosen):
    """Up to `steps` steps on working sets of the most violating pairs, as many as `chosen` has room for.

    `chosen` holds a set that lacks rows, for the call after NEED_ROWS, and ends with -1. Returns as `pair_steps`, and
    the pair steps inside the sets.
    """
    made, gain, pair_steps = 0, 0.0, 0
    half = chosen.size // 2
    rising, falling = np.empty(half, np.int64), np.empty(half, np.int64)
    while made < steps:
        if chosen[0] < 0:
            count = min(rank(wish, up, 1.0, rising), rank(wish, down, -1.0, falling))
            size = 0
            for k in range(count):
                if wish[rising[k]] > wish[falling[k]]:
                    size = include(rising[k], chosen, size)
                    size = include(falling[k], chosen, size)
            if size == 0:
                return STUCK, made, gain, pair_steps
        size = 0
        while size < chosen.size and chosen[size] >= 0:
            if slot_of[chosen[size]] < 0:
                return NEED_ROWS, made, gain, pair_steps
            size += 1

        K = np.empty((size, size))
        part = np.empty((6, size))
        for s in range(size):
            k = chosen[s]
            slot = slot_of[k]
            stamp[slot] = clock[0]
            clock[0] += 1
            for t in range(size):
                K[s, t] = slab[slot, chosen[t]]
            part[0, s], part[1, s], part[2, s] = wish[k], lo[k], hi[k]
            part[3, s], part[4, s], part[5, s] = beta[k], up[k], down[k]
        gained, inner = solve_set(K, part[0], part[1], part[2], part[3], part[4], part[5])
        for s in range(size):
            k = chosen[s]
            change = part[3, s] - beta[k]
            beta[k], up[k], down[k] = part[3, s], part[4, s], part[5, s]
            if change != 0.0:
                row = slab[slot_of[k]]
                for m in range(wish.size):
                    wish[m] -= change * np.float64(row[m])
            chosen[s] = -1
        if inner == 0:
            return STUCK, made, gain, pair_steps
        gain += gained
        pair_steps += inner
        made += 1
    return DONE, made, gain, pair_steps
