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

DONE, STUCK, NEED_ROWS, ENDED = 0, 1, 2, 3
MOST_VIOLATING, SECOND_ORDER, MAXIMUM_GAIN, HYBRID, ONE_ROW, ALL_CACHED, RECENT_ROWS, GREEDY = 0, 1, 2, 3, 4, 5, 6, 7

_STRETCH = 128
UNKNOWN = -2
_CRUMB = 1e-14  # room that is a smaller share of a variable's range is rounding


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
def step_length(v, row, b, partner, is_clipped):
    """How far the pair of b and its partner would move: mu* if it is clipped to the box, else mu_max.

    `row` is that of b.
    """
    e = v.rise[b] - v.fall[partner]
    room = min(v.up[b], v.down[partner]) if e > 0.0 else min(v.down[b], v.up[partner])
    d = e if e > 0.0 else v.rise[partner] - v.fall[b]
    a = v.diag[b] + v.diag[partner] - 2.0 * np.float64(row[partner])
    if is_clipped:
        return room if d >= a * room else d / a
    return d / a if a > 0.0 else np.inf


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
    """beta_i += amount, beta_j -= amount, exactly to a bound or zero where the room ends; whether anything changed.

    Where rounding would leave a crumb of room, the bound is taken: a later step would gain nothing with it, so that
    rules which go by the gain would leave it to the end, with its violation.
    """
    before_i, before_j = v.beta[i], v.beta[j]
    top = 0.0 if before_i < 0.0 else v.hi[i]
    bottom = 0.0 if before_j > 0.0 else v.lo[j]
    above, below = before_i + amount, before_j - amount
    is_up = amount >= v.up[i] or top - above <= _CRUMB * (v.hi[i] - v.lo[i])
    is_down = amount >= v.down[j] or below - bottom <= _CRUMB * (v.hi[j] - v.lo[j])
    has_risen = put(i, top if is_up else above, v, epsilon)
    has_fallen = put(j, bottom if is_down else below, v, epsilon)
    return has_risen or has_fallen


@compiled
def touch(b, recent):
    """Move variable b to the front of `recent`, the variables used last; the last of them gives way."""
    at = 0
    while at < recent.size - 1 and recent[at] != b and recent[at] >= 0:
        at += 1
    while at > 0:
        recent[at] = recent[at - 1]
        at -= 1
    recent[0] = b


@compiled
def pair_steps(steps, choice, slab, v, pair, recent, chosen, extremes):
    """Up to `steps` pair steps; changes the variables, `pair`, the last working set, and `recent`, the rows used last.

    `chosen` is a pair that was chosen but lacks rows (-1: not chosen yet), for the call after NEED_ROWS; where both are
    -1 then, the rows of the last pair are missing. `extremes` keeps `top` and `witness` for that call: at first they
    are UNKNOWN and -1. Returns the code, the steps made, what they gained, and with ENDED how long the step would have
    been that ended it: 0 if the KKT gap alone did.

    The KKT conditions are looked at before every step. It is enough to know one variable whose wish to fall is further
    below the highest wish to rise than `choice.goal`: as long as the last such `witness` is one, nothing is searched.
    """
    rule, epsilon, has_twin = choice.rule, choice.epsilon, choice.epsilon > 0.0
    values, slot_of = slab.values, slab.slot_of
    made, gain = 0, 0.0
    first, second = chosen[0], chosen[1]
    chosen[0], chosen[1] = -1, -1
    top, witness = extremes[0], extremes[1]
    is_plain = False  # the most violating pair, because the rule's own choice led nowhere
    while made < steps:
        if first < 0:
            if top == UNKNOWN:
                top = move(v.rise, v.fall, False, values[0], values[0], 0.0, v.up, 1.0)
            if top < 0:
                return STUCK, made, gain, 0.0
            is_open = witness >= 0 and v.down[witness] > 0.0 and v.rise[top] - v.fall[witness] > choice.goal
            if rule == MOST_VIOLATING or (choice.goal >= 0.0 and not is_open):
                witness = move(v.fall, v.rise, False, values[0], values[0], 0.0, v.down, -1.0)
                is_open = witness >= 0 and v.rise[top] - v.fall[witness] > choice.goal
            extremes[0], extremes[1] = top, witness
            is_closed = choice.goal >= 0.0 and not is_open
            if is_closed and not choice.waits:
                return ENDED, made, gain, 0.0

            uses_gain = rule >= MAXIMUM_GAIN and (pair[0] >= 0 or rule == GREEDY) and not is_plain
            if uses_gain and rule != MAXIMUM_GAIN and rule != GREEDY:
                n_free = 0  # of the last pair, that are off their bounds and off zero
                for b in pair:
                    n_free += min(v.up[b], v.down[b]) > choice.eta * (v.up[b] + v.down[b]) and v.beta[b] != 0.0
                uses_gain = n_free > 0
            if uses_gain:
                if rule != GREEDY and (slot_of[pair[0]] < 0 or slot_of[pair[1]] < 0):
                    return NEED_ROWS, made, gain, 0.0
                best = 0.0
                count = 2
                if rule == ALL_CACHED:
                    count = slab.owner.size
                elif rule == RECENT_ROWS:
                    count = recent.size
                elif rule == GREEDY:
                    count = v.rise.size
                for s in range(count):
                    if rule == ALL_CACHED:
                        b = slab.owner[s]
                    elif rule == RECENT_ROWS:
                        b = recent[s]
                    elif rule == GREEDY:
                        b = s if v.up[s] > 0.0 else -1  # every pair has a variable that may rise
                    else:
                        b = pair[s]
                    if b < 0 or slot_of[b] < 0 or (rule == ONE_ROW and s == 0):
                        continue
                    partner, best = gain_partner(v, values[slot_of[b]], b, best)
                    if partner >= 0:
                        first, second = b, partner
                if first < 0 and rule == MAXIMUM_GAIN:
                    return STUCK, made, gain, 0.0
                if first >= 0 and choice.step_goal > 0.0 and (is_closed or not choice.is_strict):
                    length = step_length(v, values[slot_of[first]], first, second, choice.is_clipped)
                    if length < choice.step_goal:
                        return ENDED, made, gain, length
            if first < 0:
                if is_closed:
                    return ENDED, made, gain, 0.0
                first = top
                if rule != SECOND_ORDER or is_plain:
                    second = witness
                    if rule != MOST_VIOLATING:
                        second = move(v.fall, v.rise, False, values[0], values[0], 0.0, v.down, -1.0)
                    if second < 0 or v.rise[first] <= v.fall[second]:
                        return STUCK, made, gain, 0.0
        if second < 0:
            if slot_of[first] < 0:
                chosen[0] = first
                return NEED_ROWS, made, gain, 0.0
            second = second_order_partner(v, values[slot_of[first]], first, choice.least)
            if second < 0:
                return STUCK, made, gain, 0.0
        if slot_of[first] < 0 or slot_of[second] < 0:
            chosen[0], chosen[1] = first, second
            return NEED_ROWS, made, gain, 0.0

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
            if rule == RECENT_ROWS:
                touch(first, recent)
                touch(second, recent)
            top = move(v.rise, v.fall, has_twin, row_i, row_j, amount, v.up, 1.0)
            extremes[0] = top
            is_plain = False
        elif is_plain or rule in (MOST_VIOLATING, MAXIMUM_GAIN):
            return STUCK, made, gain, 0.0
        else:
            is_plain = True
        first, second = -1, -1
    return DONE, made, gain, 0.0
