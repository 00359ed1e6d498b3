"""The compiled part of coordinate descent on the joint problem of several classes.

A row has a variable v_k for each class. It is at most `limit` for the row's own class and at most 0 for the others, and
together they are zero. The weights W are by columns, W[column, class], with the constant feature last, so that an entry
of a row meets the weights of all classes side by side. Classes are taken four at a time, which the compiler turns into
vectors; W has columns of zeros for classes that are missing to a multiple of four.

G_k = w_k.x + 1[k != own] is the derivative of what is minimised by v_k. Nothing can be gained by a row if the classes
whose variables may still grow have the highest of all G_k.
"""

import numpy as np

from softmargin.core.jit import compiled
from softmargin.solvers.coordinate._visits import MOST_EPOCHS, end_epoch, is_last, shuffle


@compiled
def room_of(beta, begin, G, own, limit):
    """(room, gap): by how much the row stays where it is, negative if it wants to move, and what it adds to the duality
    gap, limit (max_k G_k - G_own) + sum_k v_k G_k."""
    top, second, lowest, total, n_open = -np.inf, -np.inf, np.inf, 0.0, 0
    for k in range(G.size):
        v, g = beta[begin + k], G[k]
        if g > top:
            top, second = g, top
        elif g > second:
            second = g
        if v < (limit if k == own else 0.0):
            n_open += 1
            lowest = min(lowest, g)
        total += v * g
    gap = limit * (top - G[own]) + total
    if lowest < top:
        return lowest - top, gap
    return top - second if n_open == 1 else 0.0, gap


@compiled
def minimise_row(beta, begin, G, own, limit, q, sorted_levels, change):
    """The exact minimiser over the variables of a row, and the change of each; whether there is any.

    v_k = min(bound_k, (level - B_k) / q) with B_k = G_k - q v_k (old) and the level at which they add up to zero. The
    classes that stay below their bounds are those with the largest B_k + q bound_k.
    """
    n = G.size
    if q > 0.0:
        for k in range(n):
            sorted_levels[k] = G[k] - q * beta[begin + k] + (q * limit if k == own else 0.0)
        sorted_levels.sort()
        level, count = sorted_levels[n - 1] - q * limit, 1
        while count < n and level < count * sorted_levels[n - 1 - count]:
            level += sorted_levels[n - 1 - count]
            count += 1
        level /= count
    else:  # nothing bends the objective: the whole limit goes to the class with the highest derivative
        level = 0.0
        for k in range(n):
            level = max(level, G[k] - G[own])
    others, is_new, taken = 0.0, False, False
    for k in range(n):
        if k == own:
            continue
        if q > 0.0:
            new = min(0.0, (level - G[k]) / q + beta[begin + k])
        else:
            new = -limit if not taken and level > 0.0 and G[k] - G[own] == level else 0.0
            taken = taken or new < 0.0
        change[k] = new - beta[begin + k]
        is_new = is_new or change[k] != 0.0
        beta[begin + k] = new
        others += new
    # A sum that misses the limit by rounding must not look like a variable that may still grow.
    is_full = q > 0.0 and (level - G[own]) / q + beta[begin + own] >= limit
    new = limit if is_full else min(limit, -others)
    change[own] = new - beta[begin + own]
    beta[begin + own] = new
    return is_new or change[own] != 0.0


@compiled
def outputs(values, indices, is_sparse, first, count, stride, W, out):
    """out_k = sum of the `count` entries of a row times the weights of class k; they lie `stride` apart."""
    for k in range(0, W.shape[1], 4):
        a = b = c = d = 0.0
        for t in range(count):
            x = np.float64(values[first + t * stride])
            column = np.int64(indices[first + t]) if is_sparse else t
            a += x * W[column, k]
            b += x * W[column, k + 1]
            c += x * W[column, k + 2]
            d += x * W[column, k + 3]
        out[k], out[k + 1], out[k + 2], out[k + 3] = a, b, c, d


@compiled
def add_to_weights(values, indices, is_sparse, first, count, stride, change, W):
    """W_k += change_k times the entries of a row, for the classes of which some change."""
    for k in range(0, W.shape[1], 4):
        a, b, c, d = change[k], change[k + 1], change[k + 2], change[k + 3]
        if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0:
            for t in range(count):
                x = np.float64(values[first + t * stride])
                column = np.int64(indices[first + t]) if is_sparse else t
                W[column, k] += x * a
                W[column, k + 1] += x * b
                W[column, k + 2] += x * c
                W[column, k + 3] += x * d


@compiled
def visit(flat, rows, terms, bias, beta, W, threshold, dropped):
    """One step on each of the `rows`; changes beta and W.

    Rows that stay where they are by more than `threshold` are marked in `dropped`. Returns the largest violation that
    was met, and the sum of what each row adds to the duality gap, as it was met.
    """
    values, indices, indptr, n_cols = flat.values, flat.indices, flat.indptr, flat.n_cols
    n_classes = terms.n_classes
    padded, change = np.empty(W.shape[1]), np.zeros(W.shape[1])
    G, levels = padded[:n_classes], np.empty(n_classes)
    is_sparse = indptr.size > 0
    worst = gap = 0.0
    for j in range(rows.size):
        i = rows[j]
        own, limit = terms.codes[i], terms.limits[i]
        if is_sparse:
            first = np.int64(indptr[i])
            count, stride = np.int64(indptr[i + 1]) - first, 1
        elif flat.fortran:
            first, count, stride = np.int64(i), n_cols, flat.n_rows
        else:
            first, count, stride = np.int64(i * n_cols), n_cols, 1
        outputs(values, indices, is_sparse, first, count, stride, W, padded)
        for k in range(n_classes):
            G[k] += bias * W[n_cols, k] + (0.0 if k == own else 1.0)
        begin = i * n_classes
        room, share = room_of(beta, begin, G, own, limit)
        gap += share
        if room >= 0.0:
            dropped[j] = room > threshold
            continue
        worst = max(worst, -room)
        if minimise_row(beta, begin, G, own, limit, terms.curvature[i], levels, change):
            add_to_weights(values, indices, is_sparse, first, count, stride, change, W)
            for k in range(n_classes):
                W[n_cols, k] += bias * change[k]
    return worst, gap


@compiled
def set_aside(v, counts):
    """Rows that are to be set aside change places with the last active ones."""
    for k in range(counts[0] - 1, -1, -1):
        if v.dropped[k]:
            counts[0] -= 1
            v.order[k], v.order[counts[0]] = v.order[counts[0]], v.order[k]
            v.dropped[k] = False


@compiled
def sweep(flat, terms, shape, v, W, sums, counts, most, goal):
    """As `_visits.sweep`, but every active row is visited once in an epoch; W is v.w by columns and classes."""
    made, last_epoch = 0, counts[2] + MOST_EPOCHS
    while made < most and counts[2] < last_epoch:
        if counts[1] == 0:
            shuffle(v.order, counts[0], v.seed)
            sums[4], sums[5] = 0.0, 0.0
        part = slice(counts[1], min(counts[0], counts[1] + most - made))
        rows, dropped = v.order[part], v.dropped[part]
        worst, gap = visit(flat, rows, terms, shape.bias, v.beta, W, sums[3], dropped)
        sums[4], sums[5] = max(sums[4], worst), sums[5] + gap
        made += rows.size
        counts[1] += rows.size
        if counts[1] < counts[0]:
            return
        counts[1] = 0
        counts[3] += counts[0]
        set_aside(v, counts)
        end_epoch(shape, v, sums, counts)
        if is_last(sums, counts, goal):
            return


@compiled
def rooms(terms, beta, f, out):
    """`room_of` all rows, from their outputs f[class, row]."""
    n_classes = f.shape[0]
    G = np.empty(n_classes)
    for i in range(out.size):
        own = terms.codes[i]
        for k in range(n_classes):
            G[k] = f[k, i] + (0.0 if k == own else 1.0)
        out[i] = room_of(beta, i * n_classes, G, own, terms.limits[i])[0]
