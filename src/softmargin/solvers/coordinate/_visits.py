"""The compiled part of coordinate descent: shuffling the rows, and visiting them one after the other.

The score of a row, which is its output in the centred problem plus the intercept, is

    u_i = w.x_i + bias w_last - excess m_i + level

    m_i       the inner product of row i with the mean row (an array of length 0 if nothing is centred)
    excess    sum(beta) - total, which the free intercept drives to zero
    level     what all rows have in common: the intercept, its penalty, and the rest of the centring

`excess` and `level` change with every step, and so they live in the array `sums` beside w.mean(x):
sums = [excess, w.mean(x)], and level = b - sums[1] + excess (|mean(x)|^2 + s2).
"""

import numpy as np

from softmargin.core.jit import compiled

# Epochs of one call: over a handful of rows millions would fit into the time of a step, and no limit on the number of
# steps would mean anything.
MOST_EPOCHS = 256
_AHEAD = 30.0  # epochs for which a step of b is looked ahead


@compiled
def shuffle(order, count, seed):
    """Put the first `count` rows of `order` in a random order; `seed` holds the state of the generator (xorshift)."""
    s = seed[0]
    for i in range(count - 1, 0, -1):
        s ^= s << np.uint64(13)
        s ^= s >> np.uint64(7)
        s ^= s << np.uint64(17)
        # 31 bits times a number of rows, shifted back: even enough, and quicker than a remainder
        j = np.int64(((s >> np.uint64(33)) * np.uint64(i + 1)) >> np.uint64(31))
        order[i], order[j] = order[j], order[i]
    seed[0] = s


@compiled(sums=True)
def sparse_product(values, indices, begin, end, w):
    total = 0.0
    for k in range(begin, end):
        total += np.float64(values[k]) * w[indices[k]]
    return total


@compiled(sums=True)
def dense_product(values, begin, n_cols, w):
    total = 0.0
    for k in range(n_cols):
        total += np.float64(values[begin + k]) * w[k]
    return total


@compiled(sums=True)
def strided_product(values, i, n_rows, n_cols, w):
    """Row i of data that are stored by columns."""
    total = 0.0
    for k in range(n_cols):
        total += np.float64(values[i + k * n_rows]) * w[k]
    return total


@compiled
def loss_of(terms, i, u):
    """The loss of row i at the score u."""
    short, long = terms.target[i] - terms.epsilon - u, u - terms.target[i] - terms.epsilon
    if terms.ridge.size:
        miss = max(short if terms.hi[i] > 0.0 else 0.0, long if terms.lo[i] < 0.0 else 0.0, 0.0)
        return 0.5 * miss * miss / terms.ridge[i]
    return max(0.0, short) * terms.hi[i] - max(0.0, long) * terms.lo[i]


@compiled
def visit(flat, rows, terms, shape, b, beta, w, sums, threshold, dropped):
    """One step on each of the `rows`; changes beta, w and sums.

    Rows whose variable stays at an end of its range by more than `threshold` are marked in `dropped`. Returns the
    largest violation of the optimality conditions that was met, and the sum of what each row adds to the duality gap,

        loss_i(u_i) - t_i beta_i + epsilon |beta_i| + 1/2 ridge_i beta_i^2 + u_i beta_i  >=  0,

    as it was met. It is zero for rows that are where they should be, and so rows that are not visited hardly count.
    """
    values, indices, indptr, n_rows, n_cols = flat.values, flat.indices, flat.indptr, flat.n_rows, flat.n_cols
    is_sparse, is_centred, has_ridge = indptr.size > 0, terms.shift.size > 0, terms.ridge.size > 0
    epsilon, bias = terms.epsilon, shape.bias
    excess, along_mean, worst, gap = sums[0], sums[1], 0.0, 0.0
    for k in range(rows.size):
        i = rows[k]
        begin, end = i * n_cols, (i + 1) * n_cols
        if is_sparse:
            begin, end = np.int64(indptr[i]), np.int64(indptr[i + 1])
            u = sparse_product(values, indices, begin, end, w)
        elif flat.fortran:
            u = strided_product(values, i, n_rows, n_cols, w)
        else:
            u = dense_product(values, begin, n_cols, w)
        u += bias * w[n_cols] + b - along_mean + excess * shape.spread
        if is_centred:
            u -= excess * terms.shift[i]
        old, q = beta[i], terms.curvature[i]
        g = u - terms.target[i]
        gap += loss_of(terms, i, u) + g * old + epsilon * abs(old)
        if has_ridge:
            gap += 0.5 * terms.ridge[i] * old * old
            g += terms.ridge[i] * old
        rising = g + epsilon if old >= 0.0 else g - epsilon  # the derivative if beta_i rises, and if it falls
        falling = g + epsilon if old > 0.0 else g - epsilon
        if rising < 0.0 and old < terms.hi[i]:
            worst = max(worst, -rising)
        elif falling > 0.0 and old > terms.lo[i]:
            worst = max(worst, falling)
        else:
            room = min(rising if old < terms.hi[i] else np.inf, -falling if old > terms.lo[i] else np.inf)
            dropped[k] = room > threshold
            continue
        if q > 0.0:
            z = old - g / q
            new = max(0.0, z - epsilon / q) if z > 0.0 else min(0.0, z + epsilon / q)
            new = min(max(new, terms.lo[i]), terms.hi[i])
        else:  # nothing bends the objective: to the end of the range, or to the kink on the way
            far = terms.hi[i] if rising < 0.0 else terms.lo[i]
            new = 0.0 if old * far < 0.0 else far
        step = new - old
        if step == 0.0:
            continue
        beta[i] = new
        if is_sparse:
            for t in range(begin, end):
                w[indices[t]] += step * np.float64(values[t])
        elif flat.fortran:
            for t in range(n_cols):
                w[t] += step * np.float64(values[i + t * n_rows])
        else:
            for t in range(n_cols):
                w[t] += step * np.float64(values[begin + t])
        w[n_cols] += step * bias
        excess += step
        if is_centred:
            along_mean += step * terms.shift[i]
    sums[0], sums[1] = excess, along_mean
    return worst, gap


@compiled
def sweep(flat, terms, shape, v, sums, counts, most, goal):
    """Epochs over the active rows, until `most` rows are visited, in the middle of an epoch if it is a long one.

    Each epoch has a new order, sets rows aside that stay where they are, moves b, and adds its w to the tail. It is the
    last one if the gap that it met is at most `goal` and the last look is long enough ago, if no row is active any
    more, or if the next look is due. sums = [excess, w.mean(x), b, threshold, largest violation, gap] and counts =
    [active rows, place in the epoch, epochs, visits, length of the tail, epoch in which the tail begins anew, visits at
    which the next look may be, visits at which it is due] are changed.
    """
    made, last_epoch = 0, counts[2] + MOST_EPOCHS
    while made < most and counts[2] < last_epoch:
        if counts[1] == 0:
            begin_epoch(v, sums, counts)
        part = slice(counts[1], min(counts[0], counts[1] + most - made))
        rows, dropped = v.order[part], v.dropped[part]
        worst, gap = visit(flat, rows, terms, shape, sums[2], v.beta, v.w, sums, sums[3], dropped)
        sums[4], sums[5] = max(sums[4], worst), sums[5] + gap
        made += rows.size
        counts[1] += rows.size
        if counts[1] < counts[0]:
            return
        end_epoch(shape, v, sums, counts)
        if is_last(sums, counts, goal):
            return


@compiled
def begin_epoch(v, sums, counts):
    """A new order of the active rows."""
    shuffle(v.order, counts[0], v.seed)
    sums[4], sums[5] = 0.0, 0.0


@compiled(sums=True)
def merge(terms, shape, rows, before, v, w, sums, moved):
    """What two threads have made of the variables of `rows`, which were `before`, of w and of the sums, is made one.

    The dual value along both changes together is a parabola, or above one where the variables have a kink or a ridge.
    The step goes to its top, or to the whole changes if that is farther: then no variable leaves its range. Returns
    the share of the changes that was made.
    """
    excess, along_mean = moved[0, 0] + moved[1, 0] - 2.0 * sums[0], moved[0, 1] + moved[1, 1] - 2.0 * sums[1]
    bend = excess * (excess * shape.spread - 2.0 * along_mean)
    rise = sums[0] * along_mean + excess * (sums[1] - sums[0] * shape.spread - sums[2])
    for k in range(v.w.size):
        change = w[0, k] + w[1, k] - 2.0 * v.w[k]
        bend += change * change
        rise -= change * v.w[k]
    for k in range(rows.size):
        i, old = rows[k], before[k]
        new = v.beta[i]
        rise += terms.target[i] * (new - old) - terms.epsilon * (abs(new) - abs(old))
        if terms.ridge.size:
            rise -= 0.5 * terms.ridge[i] * (new * new - old * old)
    step = 1.0 if rise >= bend or bend <= 0.0 else max(0.0, rise / bend)
    for k in range(v.w.size):
        v.w[k] += step * (w[0, k] + w[1, k] - 2.0 * v.w[k])
        w[0, k] = w[1, k] = v.w[k]
    sums[0] += step * excess
    sums[1] += step * along_mean
    moved[0, 0] = moved[1, 0] = sums[0]
    moved[0, 1] = moved[1, 1] = sums[1]
    if step < 1.0:
        for k in range(rows.size):
            i = rows[k]
            v.beta[i] = min(max(before[k] + step * (v.beta[i] - before[k]), terms.lo[i]), terms.hi[i])
    return step


@compiled
def is_last(sums, counts, goal):
    """Whether no other epoch follows now."""
    return (sums[5] <= goal and counts[3] >= counts[6]) or counts[0] == 0 or counts[3] >= counts[7]


@compiled
def end_epoch(shape, v, sums, counts):
    """What follows the last row of an epoch: see `sweep`."""
    counts[1] = 0
    counts[2] += 1
    counts[3] += counts[0]
    # While the excess still moves b, rows that b may reach in the next epochs are not set aside.
    sums[3] = max(sums[4], _AHEAD * shape.penalty * abs(sums[0]))
    k = 0
    while k < counts[0]:  # rows to be set aside change places with the last ones
        if v.dropped[k]:
            counts[0] -= 1
            last = counts[0]
            v.order[k], v.order[last] = v.order[last], v.order[k]
            v.dropped[k], v.dropped[last] = v.dropped[last], False
        else:
            k += 1
    sums[2] += shape.penalty * sums[0]
    if counts[2] >= counts[5]:
        v.tail[:] = 0.0
        counts[4], counts[5] = 0, np.int64(shape.tail_growth * counts[2]) + 1
    v.tail[:] += v.w
    counts[4] += 1


@compiled
def rooms(terms, beta, u, out):
    """By how much each variable stays where it is: infinite if it can move nowhere, negative if it wants to move."""
    for i in range(beta.size):
        g = u[i] - terms.target[i]
        if terms.ridge.size:
            g += terms.ridge[i] * beta[i]
        rising = g + terms.epsilon if beta[i] >= 0.0 else g - terms.epsilon
        falling = g + terms.epsilon if beta[i] > 0.0 else g - terms.epsilon
        out[i] = min(rising if beta[i] < terms.hi[i] else np.inf, -falling if beta[i] > terms.lo[i] else np.inf)
