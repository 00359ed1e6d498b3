"""The compiled part of SMO: choosing a pair by each of the rules, and stepping on it.

    rise, fall    what a variable asks the intercept to be if it rises, and if it falls: p - f less epsilon where that
                  leads away from zero, plus epsilon where it leads there; the same array if epsilon is zero
    up, down      the room of each variable: how far it may rise and fall until it meets a bound or zero

A variable may rise if it has room above, and fall if it has room below. The step of a pair raises one variable and
lowers the other by the same amount. Rows of the kernel matrix are read where they lie; a loop that misses some returns
NEED_ROWS and is called again when they are there.

The arrays come in tuples: `slab` is that of `kernels.cached`, `v` are the `Variables` and `choice` the `Choice` of
`smo.py`.

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
def move(wish, twin, has_twin, rising, falling, amount, room, sign):
    """wish -= amount (rising - falling), and so for its twin if it has one.

    Returns where sign * wish is then largest among variables with room, or -1.
    """
    best, at = -np.inf, -1
    for begin in range(0, wish.size, _STRETCH):
        w, r = wish[begin : begin + _STRETCH], room[begin : begin + _STRETCH]
        if amount != 0.0:
            x, z = rising[begin : begin + _STRETCH], falling[begin : begin + _STRETCH]
            for k in range(w.size):
                w[k] -= amount * (np.float64(x[k]) - np.float64(z[k]))
            if has_twin:
                t = twin[begin : begin + _STRETCH]
                for k in range(w.size):
                    t[k] -= amount * (np.float64(x[k]) - np.float64(z[k]))
        better = 0
        for k in range(w.size):
            better += (sign * w[k] > best) & (r[k] > 0.0)
        if better > 0:
            for k in range(w.size):
                if sign * w[k] > best and r[k] > 0.0:
                    best, at = sign * w[k], begin + k
    return at


@compiled
def second_order_partner(v, row, i, least):
    """The j that promises most together with i if there were no box, or -1; curvatures count as at least `least`."""
    best, at = 0.0, -1
    top, own = v.rise[i], v.diag[i]
    for begin in range(0, v.fall.size, _STRETCH):
        end = begin + _STRETCH
        w, r, g, x = v.fall[begin:end], v.down[begin:end], v.diag[begin:end], row[begin:end]
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
def gain_partner(v, row, b, best):
    """The partner with which b gains most, and twice that gain; (-1, best) unless it is more than `best`.

    Twice the gain of a step d / a that fits the box is d^2 / a; one that the box ends after `room` gains
    room (2 d - a room), whatever the sign of the curvature a: eq. (3). A wish to rise is never above the wish to fall
    of the same variable, so that a pair can move in one direction at most.
    """
    at = -1
    own_rise, own_fall, own, own_up, own_down = v.rise[b], v.fall[b], v.diag[b], v.up[b], v.down[b]
    for begin in range(0, v.rise.size, _STRETCH):
        end = begin + _STRETCH
        rise, fall, g, x = v.rise[begin:end], v.fall[begin:end], v.diag[begin:end], row[begin:end]
        up, down = v.up[begin:end], v.down[begin:end]
        better = 0
        for k in range(rise.size):  # both sides of each choice are computed: then it is no jump, and vectorises
            e = own_rise - fall[k]
            above = own_up if own_up < down[k] else down[k]
            below = own_down if own_down < up[k] else up[k]
            room = above if e > 0.0 else below
            d = e if e > 0.0 else rise[k] - own_fall
            a = own + g[k] - 2.0 * np.float64(x[k])
            reach = a * room
            clipped, inner, inner_bar = room * (2.0 * d - reach), d * d, best * a
            is_clipped = d >= reach
            value = clipped if is_clipped else inner
            bar = best if is_clipped else inner_bar
            better += (value > bar) & (d > 0.0)
        if better > 0:
            for k in range(rise.size):
                e = own_rise - fall[k]
                room = min(own_up, down[k]) if e > 0.0 else min(own_down, up[k])
                d = e if e > 0.0 else rise[k] - own_fall
                if d > 0.0 and room > 0.0:
                    value = twice_gain(d, own + g[k] - 2.0 * np.float64(x[k]), room)
                    if value > best:
                        best, at = value, begin + k
    return at, best


@compiled
def twice_gain(d, a, room):
    """Twice what a pair gains whose wishes differ by d > 0, with curvature a and this much room: eq. (3)."""
    return room * (2.0 * d - a * room) if d >= a * room else d * d / a


@compiled
def put(k, value, v, epsilon):
    """beta_k = value, with its rooms; its wishes change sides with it. Whether that is another value than before."""
    before = v.beta[k]
    v.beta[k] = value
    v.up[k] = (0.0 if value < 0.0 else v.hi[k]) - value
    v.down[k] = value - (0.0 if value > 0.0 else v.lo[k])
    if epsilon > 0.0:
        # Off zero both wishes must be the same number, to the last digit: a variable is no pair with itself.
        above = v.rise[k] - 2.0 * epsilon if before < 0.0 else v.rise[k]  # the wish on the upper side of zero
        below = v.fall[k] + 2.0 * epsilon if before > 0.0 else v.fall[k]
        v.rise[k] = below if value < 0.0 else above
        v.fall[k] = above if value > 0.0 else below
    return value != before


@compiled
def raise_and_lower(i, j, amount, v, epsilon):
    """beta_i += amount, beta_j -= amount, exactly to a bound or zero where the room ends; whether anything changed."""
    before_i, before_j = v.beta[i], v.beta[j]
    top = 0.0 if before_i < 0.0 else v.hi[i]
    bottom = 0.0 if before_j > 0.0 else v.lo[j]
    has_risen = put(i, top if amount >= v.up[i] else min(before_i + amount, top), v, epsilon)
    has_fallen = put(j, bottom if amount >= v.down[j] else max(before_j - amount, bottom), v, epsilon)
    return has_risen or has_fallen


@compiled
def pair_steps(steps, choice, slab, v, pair, chosen):
    """Up to `steps` pair steps; changes the variables and `pair`, the last working set.

    `chosen` is a pair that was chosen but lacks rows (-1: not chosen yet), for the call after NEED_ROWS; where both are
    -1 then, the rows of the last pair are missing. Returns the code, the steps made, and what they gained.
    """
    rule, epsilon, has_twin = choice.rule, choice.epsilon, choice.epsilon > 0.0
    values, slot_of = slab.values, slab.slot_of
    made, gain = 0, 0.0
    first, second = chosen[0], chosen[1]
    chosen[0], chosen[1] = -1, -1
    top = _UNKNOWN
    is_plain = False  # the most violating pair, because the rule's own choice led nowhere
    while made < steps:
        if first < 0:
            if top == _UNKNOWN:
                top = move(v.rise, v.fall, False, values[0], values[0], 0.0, v.up, 1.0)
            uses_gain = rule >= MAXIMUM_GAIN and pair[0] >= 0 and not is_plain
            if uses_gain and rule != MAXIMUM_GAIN:
                n_free = 0  # of the last pair, that are off their bounds and off zero
                for b in pair:
                    n_free += min(v.up[b], v.down[b]) > choice.eta * (v.up[b] + v.down[b]) and v.beta[b] != 0.0
                uses_gain = n_free > 0
            if uses_gain:
                if slot_of[pair[0]] < 0 or slot_of[pair[1]] < 0:
                    return NEED_ROWS, made, gain
                best = 0.0
                for s in range(slab.owner.size if rule == ALL_CACHED else 2):
                    if rule == ALL_CACHED:
                        b = slab.owner[s]
                    else:
                        b = pair[s]
                    if b < 0 or (rule == ONE_ROW and s == 0):
                        continue
                    partner, best = gain_partner(v, values[slot_of[b]], b, best)
                    if partner >= 0:
                        first, second = b, partner
                if first < 0 and rule == MAXIMUM_GAIN:
                    return STUCK, made, gain
            if first < 0:
                first = top
                if first < 0:
                    return STUCK, made, gain
                if rule != SECOND_ORDER or is_plain:
                    second = move(v.fall, v.rise, False, values[0], values[0], 0.0, v.down, -1.0)
                    if second < 0 or v.rise[first] <= v.fall[second]:
                        return STUCK, made, gain
        if second < 0:
            if slot_of[first] < 0:
                chosen[0] = first
                return NEED_ROWS, made, gain
            second = second_order_partner(v, values[slot_of[first]], first, choice.least)
            if second < 0:
                return STUCK, made, gain
        if slot_of[first] < 0 or slot_of[second] < 0:
            chosen[0], chosen[1] = first, second
            return NEED_ROWS, made, gain

        i, j = (first, second) if v.rise[first] > v.fall[second] else (second, first)
        slab.stamp[slot_of[first]], slab.stamp[slot_of[second]] = slab.clock[0], slab.clock[0] + 1
        slab.clock[0] += 2
        row_i, row_j = values[slot_of[i]], values[slot_of[j]]
        d = v.rise[i] - v.fall[j]
        a = (np.float64(row_i[i]) - np.float64(row_i[j])) + (np.float64(row_j[j]) - np.float64(row_j[i]))
        room = min(v.up[i], v.down[j])
        amount = room if d >= a * room else d / a
        if raise_and_lower(i, j, amount, v, epsilon):
            gain += 0.5 * twice_gain(d, a, room)
            made += 1
            pair[0], pair[1] = first, second
            top = move(v.rise, v.fall, has_twin, row_i, row_j, amount, v.up, 1.0)
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
def solve_set(K, v, epsilon):
    """Best pairs of a small problem, one after the other, until it is solved; changes its variables.

    Returns what it gained and in how many steps.
    """
    made, gain, goal = 0, 0.0, -1.0
    size = v.beta.size
    while made < _INNER_STEPS:
        best, i, j, violation = 0.0, -1, -1, 0.0
        for s in range(size):
            for t in range(size):
                d, room = v.rise[s] - v.fall[t], min(v.up[s], v.down[t])
                if d > 0.0 and room > 0.0:
                    violation = max(violation, d)
                    value = twice_gain(d, (K[s, s] - K[s, t]) + (K[t, t] - K[t, s]), room)
                    if value > best:
                        best, i, j = value, s, t
        if goal < 0.0:
            goal = _INNER_SHARE * violation
        if i < 0 or violation <= goal:
            break
        d, a, room = v.rise[i] - v.fall[j], (K[i, i] - K[i, j]) + (K[j, j] - K[j, i]), min(v.up[i], v.down[j])
        amount = room if d >= a * room else d / a
        if not raise_and_lower(i, j, amount, v, epsilon):
            break
        gain += 0.5 * best
        made += 1
        for s in range(size):
            v.rise[s] -= amount * (K[i, s] - K[j, s])
        if epsilon > 0.0:
            for s in range(size):
                v.fall[s] -= amount * (K[i, s] - K[j, s])
    return gain, made


@compiled
def set_steps(steps, inner_steps, choice, slab, v, part, chosen):
    """Up to `steps` steps on working sets of the most violating pairs, as many as `chosen` has room for.

    A set can take thousands of pair steps of its own, so it also ends after the first set with which `inner_steps` pair
    steps were made in all: otherwise an ill-conditioned problem would not hear Ctrl-C for minutes.
    `part` are variables for the working set to be copied to. `chosen` holds a set that lacks rows, for the call after
    NEED_ROWS, and ends with -1. Returns as `pair_steps`, and the pair steps inside the sets.
    """
    epsilon, values, slot_of = choice.epsilon, slab.values, slab.slot_of
    made, gain, pair_steps = 0, 0.0, 0
    half = chosen.size // 2
    rising, falling = np.empty(half, np.int64), np.empty(half, np.int64)
    K = np.empty((chosen.size, chosen.size))
    while made < steps and pair_steps < inner_steps:
        if chosen[0] < 0:
            count = min(rank(v.rise, v.up, 1.0, rising), rank(v.fall, v.down, -1.0, falling))
            size = 0
            for k in range(count):
                if v.rise[rising[k]] > v.fall[falling[k]]:
                    size = include(rising[k], chosen, size)
                    size = include(falling[k], chosen, size)
            if size == 0:
                return STUCK, made, gain, pair_steps
        size = 0
        while size < chosen.size and chosen[size] >= 0:
            if slot_of[chosen[size]] < 0:
                return NEED_ROWS, made, gain, pair_steps
            size += 1

        for s in range(chosen.size):  # places that are not used are variables without room
            part.up[s], part.down[s] = 0.0, 0.0
        for s in range(size):
            k = chosen[s]
            slot = slot_of[k]
            slab.stamp[slot] = slab.clock[0]
            slab.clock[0] += 1
            for t in range(size):
                K[s, t] = values[slot, chosen[t]]
            part.lo[s], part.hi[s], part.beta[s] = v.lo[k], v.hi[k], v.beta[k]
            part.rise[s], part.fall[s], part.up[s], part.down[s] = v.rise[k], v.fall[k], v.up[k], v.down[k]
        gained, inner = solve_set(K, part, epsilon)
        for s in range(size):
            k = chosen[s]
            change = part.beta[s] - v.beta[k]
            if change != 0.0:
                put(k, part.beta[s], v, epsilon)
                row = values[slot_of[k]]
                for m in range(v.rise.size):
                    v.rise[m] -= change * np.float64(row[m])
                if epsilon > 0.0:
                    for m in range(v.fall.size):
                        v.fall[m] -= change * np.float64(row[m])
            chosen[s] = -1
        if inner == 0:
            return STUCK, made, gain, pair_steps
        gain += gained
        pair_steps += inner
        made += 1
    return DONE, made, gain, pair_steps
