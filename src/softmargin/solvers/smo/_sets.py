"""The compiled part of SMO on working sets of more than two variables: choosing them, and solving their problem.

The arrays are those of `_loop.py`. A set is solved by pair steps on a copy of its variables; then all wishes are
updated, by one row of the kernel matrix for each variable that moved.
"""

import numpy as np

from softmargin.core.jit import compiled
from softmargin.solvers.smo._loop import DONE, ENDED, NEED_ROWS, STUCK, move, put, raise_and_lower, twice_gain

_STRETCH = 128
# The inner problem of a working set is solved until its violation has fallen to _INNER_SHARE, or for so many steps;
# to _LOOK_SHARE where only its gain is asked for.
_INNER_SHARE, _LOOK_SHARE = 1e-8, 1e-3
_INNER_STEPS = 10_000


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
def solve_set(K, v, epsilon, share):
    """Best pairs of a small problem, one after the other, until its violation has fallen to this share.

    Changes its variables. Returns what it gained and in how many steps.
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
            goal = share * violation
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
def step_on_set(chosen, size, epsilon, slab, v, part, K):
    """Solve the problem of the first `size` variables of `chosen`, whose rows are there, and update all wishes.

    `part` and K are room for the variables of the set and their matrix. Frees `chosen`, and returns what it gained and
    in how many pair steps.
    """
    values, slot_of = slab.values, slab.slot_of
    for s in range(chosen.size):  # places that are not used are variables without room
        part.up[s], part.down[s] = 0.0, 0.0
    for s in range(size):
        k = chosen[s]
        slot = slot_of[k]
        slab.stamp[slot] = slab.clock[0]
        slab.clock[0] += 1
        for t in range(size):
            K[s, t] = values[slot, chosen[t]]
        copy_variable(v, k, part, s)
    gained, inner = solve_set(K, part, epsilon, _INNER_SHARE)
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
    return gained, inner


@compiled
def copy_variable(v, k, part, s):
    """Variable k becomes variable s of the small problem."""
    part.lo[s], part.hi[s], part.beta[s] = v.lo[k], v.hi[k], v.beta[k]
    part.rise[s], part.fall[s], part.up[s], part.down[s] = v.rise[k], v.fall[k], v.up[k], v.down[k]


@compiled
def set_steps(steps, inner_steps, choice, slab, v, part, chosen):
    """Up to `steps` steps on working sets of the most violating pairs, as many as `chosen` has room for.

    A set can take thousands of pair steps of its own, so it also ends after the first set with which `inner_steps` pair
    steps were made in all: otherwise an ill-conditioned problem would not hear Ctrl-C for minutes.
    `part` are variables for the working set to be copied to. `chosen` holds a set that lacks rows, for the call after
    NEED_ROWS, and ends with -1. Returns as `pair_steps`, and the pair steps inside the sets.
    """
    slot_of = slab.slot_of
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
            if v.rise[rising[0]] - v.fall[falling[0]] <= choice.goal:
                for s in range(size):
                    chosen[s] = -1
                return ENDED, made, gain, pair_steps
        size = 0
        while size < chosen.size and chosen[size] >= 0:
            if slot_of[chosen[size]] < 0:
                return NEED_ROWS, made, gain, pair_steps
            size += 1

        gained, inner = step_on_set(chosen, size, choice.epsilon, slab, v, part, K)
        if inner == 0:
            return STUCK, made, gain, pair_steps
        gain += gained
        pair_steps += inner
        made += 1
    return DONE, made, gain, pair_steps


@compiled
def best_entry(members, size, epsilon, slab, v, part, K):
    """The variable that enters the last working set with the largest gain, and the place that it takes.

    While the set is not full nobody leaves; else every member may. The gain of each set is found by solving its small
    problem. Only a variable that can make a pair with a member who stays is tried: without one nothing is gained,
    because the members were solved before. Returns (-1, -1) if there is none.
    """
    values, slot_of = slab.values, slab.slot_of
    best, entering, place = 0.0, -1, -1
    is_full = size == members.size
    for leaver in range(size if is_full else 1):
        at = leaver if is_full else size
        highest, lowest = -np.inf, np.inf
        for s in range(members.size):
            part.up[s], part.down[s] = 0.0, 0.0
        for s in range(size):
            if s != at:
                k = members[s]
                for t in range(size):
                    if t != at:
                        K[s, t] = values[slot_of[k], members[t]]
                if v.up[k] > 0.0:
                    highest = max(highest, v.rise[k])
                if v.down[k] > 0.0:
                    lowest = min(lowest, v.fall[k])
        for k in range(v.rise.size):
            if not ((v.up[k] > 0.0 and v.rise[k] > lowest) or (v.down[k] > 0.0 and v.fall[k] < highest)):
                continue
            is_member = False
            for s in range(size):
                is_member |= members[s] == k
            if is_member:
                continue
            for s in range(size):
                if s != at:
                    copy_variable(v, members[s], part, s)
                    K[s, at] = values[slot_of[members[s]], k]
                    K[at, s] = K[s, at]
            copy_variable(v, k, part, at)
            K[at, at] = v.diag[k]
            gain, _ = solve_set(K, part, epsilon, _LOOK_SHARE)
            if gain > best:
                best, entering, place = gain, k, at
    return entering, place


@compiled
def gain_set_steps(steps, inner_steps, choice, slab, v, part, members, chosen):
    """Up to `steps` steps on working sets that keep all members of the last one but one, and gain the most.

    `members` is the last working set, which ends with -1 if it is not full. It begins as the most violating pair, and
    does so again where all members are at bounds or nobody gains anything with them. Else as `set_steps`.
    """
    values, slot_of = slab.values, slab.slot_of
    made, gain, pair_steps, failures = 0, 0.0, 0, 0
    K = np.empty((chosen.size, chosen.size))
    while made < steps and pair_steps < inner_steps:
        if chosen[0] < 0:
            top = move(v.rise, v.fall, False, values[0], values[0], 0.0, v.up, 1.0)
            bottom = move(v.fall, v.rise, False, values[0], values[0], 0.0, v.down, -1.0)
            if top < 0 or bottom < 0 or v.rise[top] <= v.fall[bottom]:
                return STUCK, made, gain, pair_steps
            if v.rise[top] - v.fall[bottom] <= choice.goal:
                return ENDED, made, gain, pair_steps
            size, n_free = 0, 0
            while size < members.size and members[size] >= 0:
                b = members[size]
                if slot_of[b] < 0:
                    return NEED_ROWS, made, gain, pair_steps
                n_free += min(v.up[b], v.down[b]) > choice.eta * (v.up[b] + v.down[b]) and v.beta[b] != 0.0
                size += 1
            entering, place = -1, -1
            if n_free > 0:
                entering, place = best_entry(members, size, choice.epsilon, slab, v, part, K)
            if entering >= 0:
                for s in range(size):
                    chosen[s] = members[s]
                chosen[place] = entering
            else:
                chosen[0], chosen[1] = top, bottom
        size = 0
        while size < chosen.size and chosen[size] >= 0:
            if slot_of[chosen[size]] < 0:
                return NEED_ROWS, made, gain, pair_steps
            size += 1
        for s in range(members.size):
            members[s] = chosen[s]
        gained, inner = step_on_set(chosen, size, choice.epsilon, slab, v, part, K)
        if inner == 0:  # rounding leaves nothing to gain: then by the most violating pair, or not at all
            members[:] = -1
            failures += 1
            if failures == 2:
                return STUCK, made, gain, pair_steps
            continue
        gain += gained
        pair_steps += inner
        made += 1
        failures = 0
    return DONE, made, gain, pair_steps
