"""Compiled part of the counting of ordered pairs; see `counting.py` for the words.

Slots are numbered in the order of queries and, within a query, of targets. `key` holds scores, `ident` the slots they
belong to and `net` their counts so far: at first in slot order, and after a node sorted by score within the node. They
move together, so that everything is read and written in sequence. `s` are the weights of the slots; empty means that
all are 1, and then every count is a whole number.
"""

import numpy as np

from softmargin.core.jit import compiled

# What a node does: count the pairs between its two parts, leave its slots sorted; and whether a job may end after it.
COUNTS = 1
SORTS = 2
ENDS = 4
_ONE = np.uint64(1)  # places that cannot be negative need no test


@compiled
def plan(first_group, group_start, leaf, least, chunk, block, nodes, chunks):
    """Cut every query into a tree of nodes (lo, mid, hi, what), children first; mid = lo is a leaf.

    A query has the groups first_group[q] .. first_group[q + 1], a group of equal targets the slots from
    group_start[g] on. Groups of at least `least` slots are left to be sorted from outside, in chunks of up to `chunk`.
    Returns the numbers of nodes and chunks; with empty arrays they are only counted.
    """
    stack = np.empty((512, 4), dtype=np.int64)  # first group, last group, mid (-1: not yet split), what
    bounds = np.empty((512, 2), dtype=np.int64)  # lo, hi
    n_nodes = 0
    n_chunks = 0
    for q in range(first_group.size - 1):
        stack[0, 0] = first_group[q]
        stack[0, 1] = first_group[q + 1]
        stack[0, 2] = -1
        stack[0, 3] = 0
        bounds[0, 0] = group_start[first_group[q]]
        bounds[0, 1] = group_start[first_group[q + 1]]
        top = 0
        while top >= 0:
            g0 = stack[top, 0]
            g1 = stack[top, 1]
            mid = stack[top, 2]
            lo = bounds[top, 0]
            hi = bounds[top, 1]
            is_group = g1 - g0 == 1
            if is_group and least <= hi - lo <= chunk:
                if chunks.size > 0:
                    chunks[n_chunks, 0] = lo
                    chunks[n_chunks, 1] = hi
                n_chunks += 1
                top -= 1
                continue
            if mid < 0 and hi - lo > leaf:
                mid = (lo + hi) // 2
                split = g0
                if not is_group:
                    # The boundary between groups that is nearest to the middle.
                    split = g0 + 1
                    above = g1 - 1
                    while split < above:
                        g = (split + above) // 2
                        if group_start[g] < mid:
                            split = g + 1
                        else:
                            above = g
                    if split > g0 + 1 and mid - group_start[split - 1] < group_start[split] - mid:
                        split -= 1
                    mid = group_start[split]
                    stack[top, 3] |= COUNTS
                stack[top, 2] = mid
                for side in range(2):  # the left one on top
                    stack[top + 1 + side, 0] = g0 if side == 1 else split
                    stack[top + 1 + side, 1] = max(split, g0 + 1) if side == 1 else g1
                    stack[top + 1 + side, 2] = -1
                    stack[top + 1 + side, 3] = SORTS | (ENDS if hi - lo > block else 0)
                    bounds[top + 1 + side, 0] = lo if side == 1 else mid
                    bounds[top + 1 + side, 1] = mid if side == 1 else hi
                top += 2
                continue
            if mid < 0:
                mid = lo
                if not is_group:
                    stack[top, 3] |= COUNTS
            if nodes.size > 0:
                nodes[n_nodes, 0] = lo
                nodes[n_nodes, 1] = mid
                nodes[n_nodes, 2] = hi
                nodes[n_nodes, 3] = stack[top, 3]
            n_nodes += 1
            top -= 1
    return n_nodes, n_chunks


@compiled
def count_leaf(lo, hi, key, s, group, margin, net):
    """Count the pairs of a few slots one by one."""
    total = 0.0
    for i in range(lo + 1, hi):
        above = 0.0
        for j in range(lo, i):
            if group[j] < group[i] and key[i] - key[j] < margin:
                weight = s[i] * s[j] if s.size > 0 else 1.0
                net[j] -= weight
                above += weight
        net[i] += above
        total += above
    return total


@compiled
def sort_leaf(lo, hi, key, ident, net):
    for i in range(lo + 1, hi):
        x = key[i]
        slot = ident[i]
        count = net[i]
        j = i
        while j > lo and key[j - 1] > x:
            key[j] = key[j - 1]
            ident[j] = ident[j - 1]
            net[j] = net[j - 1]
            j -= 1
        key[j] = x
        ident[j] = slot
        net[j] = count


@compiled
def count_between(lo, mid, hi, key, ident, s, margin, net, weight_from):
    """Count the pairs between lo .. mid, the lower targets, and mid .. hi, the higher ones; both are sorted.

    One walk along both: whoever steps knows its partners. Those of an upper slot are all lower ones from the present
    one on, those of a lower slot all upper ones before the present one. `weight_from` is workspace.
    """
    j = np.uint64(lo)
    p = np.uint64(mid)
    middle = p
    end = np.uint64(hi)
    if s.size == 0:
        n_active = np.int64(0)
        while j < middle and p < end:
            if key[p] - key[j] < margin:
                partners = np.int64(middle - j)
                net[p] += partners
                n_active += partners
                p += _ONE
            else:
                net[j] -= np.int64(p - middle)
                j += _ONE
        for i in range(j, middle):
            net[i] -= hi - mid
        return float(n_active)
    weight = 0.0
    for i in range(mid - 1, lo - 1, -1):
        weight += s[ident[i]]
        weight_from[i] = weight
    before = 0.0
    total = 0.0
    while j < middle and p < end:
        if key[p] - key[j] < margin:
            weight = s[ident[p]] * weight_from[j]
            net[p] += weight
            total += weight
            before += s[ident[p]]
            p += _ONE
        else:
            net[j] -= s[ident[j]] * before
            j += _ONE
    for i in range(j, middle):
        net[i] -= s[ident[i]] * before
    return total


@compiled
def merge(lo, mid, hi, key, ident, net, key_left, ident_left, net_left):
    """Sort lo .. hi, of which lo .. mid and mid .. hi are sorted; the last three arrays are workspace."""
    j = np.uint64(lo)
    p = np.uint64(mid)
    middle = p
    end = np.uint64(hi)
    out = j
    for i in range(j, middle):
        key_left[i] = key[i]
        ident_left[i] = ident[i]
        net_left[i] = net[i]
    while j < middle and p < end:
        if key_left[j] <= key[p]:
            key[out] = key_left[j]
            ident[out] = ident_left[j]
            net[out] = net_left[j]
            j += _ONE
        else:
            key[out] = key[p]
            ident[out] = ident[p]
            net[out] = net[p]
            p += _ONE
        out += _ONE
    for i in range(j, middle):
        key[out] = key_left[i]
        ident[out] = ident_left[i]
        net[out] = net_left[i]
        out += _ONE


@compiled
def unpack(packed, mask, f, lo, key, ident):
    """Scores f and slots in the order of packed numbers, which hold the slot in the bits of `mask` and f in the others.

    What is out of order because it differs only there is put right; returns whether that took few moves.
    """
    moves_left = 8 * packed.size
    for t in range(packed.size):
        slot = lo + (packed[t] & mask)
        x = f[slot]
        j = lo + t
        while j > lo and key[j - 1] > x:
            key[j] = key[j - 1]
            ident[j] = ident[j - 1]
            j -= 1
            moves_left -= 1
        if moves_left < 0:
            return False
        key[j] = x
        ident[j] = slot
    return True


@compiled
def run(nodes, first, last, margin, s, group, key, ident, net, key_left, ident_left, net_left, totals):
    """Do the nodes first .. last; totals[t] is the weight of the active pairs that node t counted."""
    for t in range(first, last):
        lo = nodes[t, 0]
        mid = nodes[t, 1]
        hi = nodes[t, 2]
        what = nodes[t, 3]
        totals[t] = 0.0
        if mid == lo:
            if what & COUNTS:
                totals[t] = count_leaf(lo, hi, key, s, group, margin, net)
            if what & SORTS:
                sort_leaf(lo, hi, key, ident, net)
        else:
            if what & COUNTS:
                totals[t] = count_between(lo, mid, hi, key, ident, s, margin, net, key_left)
            if what & SORTS:
                merge(lo, mid, hi, key, ident, net, key_left, ident_left, net_left)


@compiled
def scatter(net, ident, lo, hi, out):
    """The counts at the places lo .. hi of the sorted lists, in slot order."""
    for t in range(lo, hi):
        out[ident[t]] = net[t]


@compiled(sums=True)
def dot_from(net, x, start, lo, hi):
    """Sum of net_i (x_i - x[start_i]) over the slots lo .. hi; an empty `start` means x[0]."""
    total = 0.0
    if start.size > 0:
        for i in range(lo, hi):
            total += net[i] * (x[i] - x[start[i]])
    else:
        base = x[0]
        for i in range(lo, hi):
            total += net[i] * (x[i] - base)
    return total
