"""The compiled part of coordinate descent on the joint problem of several classes.

A row has a variable v_k for each class. It is at most `limit` for the row's own class and at most 0 for the others, and
together they are zero. The weights W are by columns, W[column, class], with the constant feature last, so that an entry
of a row meets the weights of all classes side by side. All classes are taken four at a time, which the compiler turns
into vectors; W has columns of zeros for classes that are missing to a multiple of four.

G_k = w_k.x + 1[k != own] is the derivative of what is minimised by v_k. Nothing can be gained by a row if the classes
whose variables may still grow have the highest of all G_k. A class whose variable is at its bound, and whose G_k is far
below those, is closed for this row: most rows lose to very few classes, and their visits only look at these.
`classes.order[i]` has the numbers of the classes of row i, of which the first `classes.n_open[i]` are open.
"""

import numpy as np

from softmargin.core.jit import compiled
from softmargin.solvers.coordinate._visits import MOST_EPOCHS, end_epoch, is_last, shuffle

# All classes of a row are read in order, and not only those that are open, if these are more than this share.
FEW_OPEN = 0.34
# A class is closed if its G_k is lower than those of variables that may grow by this share of the largest violation
# that the epoch before has met.
CLASS_SHARE = 0.03
# What a visit costs beside the classes that it looks at, in classes.
VISIT_CLASSES = 4


@compiled
def room_of(beta, begin, open_classes, G, own, limit):
    """(room, gap, lowest): by how much the row stays where it is, negative if it wants to move; what it adds to the
    duality gap; and the lowest G_k of variables that may grow.

    G has an entry for each of the open classes. The variables of all others are at their bounds, so that the share of
    the gap, limit (max_k G_k - G_own) + sum_k v_k G_k, is limit max_k G_k + sum_k (v_k - bound_k) G_k over the open
    ones.
    """
    top, second, lowest, total, n_growing = -np.inf, -np.inf, np.inf, 0.0, 0
    for j in range(open_classes.size):
        k, g = np.int64(open_classes[j]), G[j]
        below = beta[begin + k] - (limit if k == own else 0.0)
        if g > top:
            top, second = g, top
        elif g > second:
            second = g
        if below < 0.0:
            n_growing += 1
            lowest = min(lowest, g)
            total += below * g
    gap = limit * top + total
    if lowest < top:
        return lowest - top, gap, lowest
    return top - second if n_growing == 1 else 0.0, gap, lowest


@compiled
def close_classes(beta, begin, order, n_open, G, own, limit, level):
    """Put the classes that may be closed, with G_k below `level`, behind the others; how many stay open."""
    j = 0
    while j < n_open:
        k = np.int64(order[j])
        if G[j] < level and beta[begin + k] == (limit if k == own else 0.0):
            n_open -= 1
            order[j], order[n_open] = order[n_open], order[j]
            G[j], G[n_open] = G[n_open], G[j]
        else:
            j += 1
    return n_open


@compiled
def minimise_row(beta, begin, open_classes, G, own, limit, q, levels, change):
    """The exact minimiser over the variables of the open classes of a row, and the change of each.

    v_k = min(bound_k, (level - B_k) / q) with B_k = G_k - q v_k (old) and the level at which all of them add up to
    zero. The classes that stay below their bounds are those with B_k + q bound_k above the level. It is found from
    below: the level at which those that are left would add up to zero, until none of them is below it.
    """
    n = open_classes.size
    level = -np.inf
    if q > 0.0:
        total = -q * limit
        for j in range(n):
            k = np.int64(open_classes[j])
            levels[j] = G[j] - q * (beta[begin + k] - (limit if k == own else 0.0))
            total += levels[j]
        left, count = n, n + 1
        while 0 < left < count:
            level, count = total / left, left
            left, total = 0, -q * limit
            for j in range(count):
                if levels[j] > level:
                    levels[left] = levels[j]
                    total += levels[left]
                    left += 1
    else:  # nothing bends the objective: the whole limit goes to the class with the highest derivative
        for j in range(n):
            level = max(level, G[j])
    others, place, taken = 0.0, -1, False
    for j in range(n):
        taken = taken or (q <= 0.0 and open_classes[j] == own and G[j] == level)
    for j in range(n):
        k = np.int64(open_classes[j])
        if k == own:
            place = j
            continue
        if q > 0.0:
            new = min(0.0, (level - G[j]) / q + beta[begin + k])
        else:
            new = -limit if not taken and G[j] == level else 0.0
            taken = taken or new < 0.0
        change[j] = new - beta[begin + k]
        beta[begin + k] = new
        others += new
    if place >= 0:
        # A sum that misses the limit by rounding must not look like a variable that may still grow.
        is_full = q > 0.0 and (level - G[place]) / q + beta[begin + own] >= limit
        new = limit if is_full else min(limit, -others)
        change[place] = new - beta[begin + own]
        beta[begin + own] = new


@compiled
def outputs(values, indices, is_sparse, first, count, stride, W, out):
    """out_k = sum of the `count` entries of a row times the weights of class k; they lie `stride` apart.

    Entries at even and at odd places are added up apart, so that one addition does not wait for the other.
    """
    for j in range(0, W.shape[1], 4):
        k, o, m, n = np.uint64(j), np.uint64(j + 1), np.uint64(j + 2), np.uint64(j + 3)
        a = b = c = d = e = f = g = h = 0.0
        for t in range(1, count, 2):
            x = np.float64(values[first + (t - 1) * stride])
            column = np.uint64(indices[first + t - 1]) if is_sparse else np.uint64(t - 1)
            a += x * W[column, k]
            b += x * W[column, o]
            c += x * W[column, m]
            d += x * W[column, n]
            x = np.float64(values[first + t * stride])
            column = np.uint64(indices[first + t]) if is_sparse else np.uint64(t)
            e += x * W[column, k]
            f += x * W[column, o]
            g += x * W[column, m]
            h += x * W[column, n]
        if count % 2:
            x = np.float64(values[first + (count - 1) * stride])
            column = np.uint64(indices[first + count - 1]) if is_sparse else np.uint64(count - 1)
            a += x * W[column, k]
            b += x * W[column, o]
            c += x * W[column, m]
            d += x * W[column, n]
        out[j], out[j + 1], out[j + 2], out[j + 3] = a + e, b + f, c + g, d + h


@compiled
def some_outputs(values, indices, is_sparse, first, count, stride, W, some, out):
    """As `outputs`, of the classes `some`, whose outputs go to the beginning of `out`."""
    last = some.size - 1
    for j in range(0, some.size, 4):
        k, o = np.uint64(some[j]), np.uint64(some[min(j + 1, last)])
        m, n = np.uint64(some[min(j + 2, last)]), np.uint64(some[min(j + 3, last)])
        a = b = c = d = 0.0
        for t in range(count):
            x = np.float64(values[first + t * stride])
            column = np.uint64(indices[first + t]) if is_sparse else np.uint64(t)
            a += x * W[column, k]
            b += x * W[column, o]
            c += x * W[column, m]
            d += x * W[column, n]
        out[min(j + 3, last)], out[min(j + 2, last)], out[min(j + 1, last)], out[j] = d, c, b, a


@compiled
def add_to_weights(values, indices, is_sparse, first, count, stride, some, change, W):
    """W_k += change_k times the entries of a row, for the classes `some`, three at a time."""
    for j in range(0, some.size, 3):
        a, b, c = change[j], change[j + 1] if j + 1 < some.size else 0.0, change[j + 2] if j + 2 < some.size else 0.0
        if a != 0.0 or b != 0.0 or c != 0.0:
            k = np.uint64(some[j])
            o = np.uint64(some[j + 1]) if b != 0.0 else k
            m = np.uint64(some[j + 2]) if c != 0.0 else k
            for t in range(count):
                x = np.float64(values[first + t * stride])
                column = np.uint64(indices[first + t]) if is_sparse else np.uint64(t)
                W[column, k] += x * a
                W[column, o] += x * b
                W[column, m] += x * c


@compiled
def add_to_all_weights(values, indices, is_sparse, first, count, stride, change, W):
    """The same for all classes, in order; `change` has an entry for each column of W."""
    for t in range(count):
        x = np.float64(values[first + t * stride])
        column = np.uint64(indices[first + t]) if is_sparse else np.uint64(t)
        for k in range(W.shape[1]):
            W[column, np.uint64(k)] += x * change[k]


@compiled
def visit(flat, rows, terms, classes, bias, beta, W, threshold, dropped):
    """One step on each of the `rows`; changes beta, W and which classes are open.

    Rows that stay where they are by more than `threshold` are marked in `dropped`. Returns the largest violation that
    was met, the sum of what each row adds to the duality gap, as it was met, and what that cost, in classes.
    """
    values, indices, indptr, n_cols = flat.values, flat.indices, flat.indptr, flat.n_cols
    n_classes = terms.n_classes
    padded, change = np.empty(W.shape[1]), np.empty(n_classes)
    G, levels = np.empty(n_classes), np.empty(n_classes)
    is_sparse = indptr.size > 0
    worst, gap, seen = 0.0, 0.0, np.int64(0)
    for j in range(rows.size):
        i = rows[j]
        own, limit, order, n_open = terms.codes[i], terms.limits[i], classes.order[i], np.int64(classes.n_open[i])
        if is_sparse:
            first = np.int64(indptr[i])
            count, stride = np.int64(indptr[i + 1]) - first, 1
        elif flat.fortran:
            first, count, stride = np.int64(i), n_cols, flat.n_rows
        else:
            first, count, stride = np.int64(i * n_cols), n_cols, 1
        if n_open > FEW_OPEN * W.shape[1]:
            outputs(values, indices, is_sparse, first, count, stride, W, padded)
            for m in range(n_open):
                G[m] = padded[order[m]]
        else:
            some_outputs(values, indices, is_sparse, first, count, stride, W, order[:n_open], G)
        for m in range(n_open):
            G[m] += bias * W[n_cols, order[m]] + (0.0 if order[m] == own else 1.0)
        seen += n_open + VISIT_CLASSES
        begin = i * n_classes
        room, share, lowest = room_of(beta, begin, order[:n_open], G, own, limit)
        gap += share
        n_open = close_classes(beta, begin, order, n_open, G, own, limit, lowest - CLASS_SHARE * threshold)
        classes.n_open[i] = n_open
        if room >= 0.0:
            dropped[j] = room > threshold
            continue
        worst = max(worst, -room)
        minimise_row(beta, begin, order[:n_open], G, own, limit, terms.curvature[i], levels, change)
        if n_open > FEW_OPEN * W.shape[1]:
            padded[:] = 0.0
            for m in range(n_open):
                padded[order[m]] = change[m]
            add_to_all_weights(values, indices, is_sparse, first, count, stride, padded, W)
        else:
            add_to_weights(values, indices, is_sparse, first, count, stride, order[:n_open], change, W)
        for m in range(n_open):
            W[n_cols, order[m]] += bias * change[m]
    return worst, gap, seen


@compiled
def set_aside(v, counts):
    """Rows that are to be set aside change places with the last active ones."""
    for k in range(counts[0] - 1, -1, -1):
        if v.dropped[k]:
            counts[0] -= 1
            v.order[k], v.order[counts[0]] = v.order[counts[0]], v.order[k]
            v.dropped[k] = False


@compiled
def sweep(flat, terms, shape, v, classes, W, sums, counts, most, goal):
    """As `_visits.sweep`, but every active row is visited once in an epoch; W is v.w by columns and classes.

    A visit counts as much as its share of the classes, because that is what it costs.
    """
    made, last_epoch = 0, counts[2] + MOST_EPOCHS
    while made < most and counts[2] < last_epoch:
        if counts[1] == 0:
            shuffle(v.order, counts[0], v.seed)
            sums[4], sums[5] = 0.0, 0.0
        part = slice(counts[1], min(counts[0], counts[1] + most - made))
        rows, dropped = v.order[part], v.dropped[part]
        worst, gap, seen = visit(flat, rows, terms, classes, shape.bias, v.beta, W, sums[3], dropped)
        sums[4], sums[5] = max(sums[4], worst), sums[5] + gap
        spent = 1 + seen // (terms.n_classes + VISIT_CLASSES)
        made += spent
        counts[1] += rows.size
        counts[3] += spent
        if counts[1] < counts[0]:
            return
        counts[1] = 0
        set_aside(v, counts)
        end_epoch(shape, v, sums, counts)
        if is_last(sums, counts, goal):
            return


@compiled
def rooms(terms, beta, f, classes, threshold, out):
    """`room_of` all rows, from their outputs f[class, row], and their open classes."""
    n_classes = f.shape[0]
    G = np.empty(n_classes)
    for i in range(out.size):
        own, order = terms.codes[i], classes.order[i]
        for j in range(n_classes):
            k = np.int64(order[j])
            G[j] = f[k, i] + (0.0 if k == own else 1.0)
        begin, limit = i * n_classes, terms.limits[i]
        out[i], _, lowest = room_of(beta, begin, order, G, own, limit)
        level = lowest - CLASS_SHARE * threshold
        classes.n_open[i] = close_classes(beta, begin, order, n_classes, G, own, limit, level)
