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

from softmargin.core.jit import compiled, prefetch

# Epochs of one call: over a handful of rows millions would fit into the time of a step, and no limit on the number of
# steps would mean anything.
MOST_EPOCHS = 256
_AHEAD = 30.0  # epochs for which a step of b is looked ahead
# A row that gains at least this share of what rows gained in the last turn on average is visited again in the next
# turn. Any other waits twice as long as the last time, at most so many turns. In the first epochs none waits.
_FAIR_SHARE, _LONGEST_WAIT, _FIRST_EPOCHS = 0.5, 64, 2
_ROWS_OF_A_TURN = 16  # a turn with fewer rows takes longer than what waiting saves
# A row is asked for so many rows ahead, if rows have at least so many values on average.
_ROWS_AHEAD, _ASKED_VALUES, _LINE_BYTES = 3, 12, 64
_NEVER = 2**31 - 1  # the turn in which a row is due that is set aside


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


@compiled
def ask_for(values, indices, p, end):
    """Ask for a row before its turn: rows come in a random order, and memory would be waited for at each of them."""
    line = np.uint64(_LINE_BYTES // values.itemsize)
    while p < end:
        prefetch(values, p)
        if indices.size:
            prefetch(indices, p)
        p += line


@compiled
def sparse_product(values, indices, p, end, w):
    """Four sums, because adding to one of them waits for the last addition."""
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    t0 = t1 = t2 = t3 = 0.0
    while p + four <= end:
        t0 += np.float64(values[p]) * w[np.uint64(indices[p])]
        t1 += np.float64(values[p + one]) * w[np.uint64(indices[p + one])]
        t2 += np.float64(values[p + two]) * w[np.uint64(indices[p + two])]
        t3 += np.float64(values[p + three]) * w[np.uint64(indices[p + three])]
        p += four
    while p < end:
        t0 += np.float64(values[p]) * w[np.uint64(indices[p])]
        p += one
    return (t0 + t1) + (t2 + t3)


@compiled
def add_sparse(values, indices, p, end, step, w):
    """w += step x_i, for entries whose columns differ, so that four may be read before one is written."""
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    while p + four <= end:
        j0, j1 = np.uint64(indices[p]), np.uint64(indices[p + one])
        j2, j3 = np.uint64(indices[p + two]), np.uint64(indices[p + three])
        w0, w1 = w[j0] + step * np.float64(values[p]), w[j1] + step * np.float64(values[p + one])
        w2, w3 = w[j2] + step * np.float64(values[p + two]), w[j3] + step * np.float64(values[p + three])
        w[j0], w[j1], w[j2], w[j3] = w0, w1, w2, w3
        p += four
    while p < end:
        w[np.uint64(indices[p])] += step * np.float64(values[p])
        p += one


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
def visit(flat, rows, terms, shape, v, sums, turn, longest_wait):
    """One step on each of the `rows`; changes v and sums.

    Rows whose variable stays at an end of its range by more than the threshold are never due again. `sums` gets the
    largest violation of the optimality conditions that was met, what the steps gained, and what rows add to the gap,

        loss_i(u_i) - t_i beta_i + epsilon |beta_i| + 1/2 ridge_i beta_i^2 + u_i beta_i  >=  0,

    as it was met, times the turns for which the row has waited. It is zero for rows that are where they should be, and
    so rows that are set aside hardly count.
    """
    beta, w = v.beta, v.w
    values, indices, indptr, n_rows, n_cols = flat.values, flat.indices, flat.indptr, flat.n_rows, flat.n_cols
    is_sparse, is_centred, has_ridge = indptr.size > 0, terms.shift.size > 0, terms.ridge.size > 0
    asks = not flat.fortran and values.size >= _ASKED_VALUES * n_rows
    epsilon, bias = terms.epsilon, shape.bias
    excess, along_mean, b, threshold, worst, gap, fair, gained = sums
    for k in range(rows.size):
        if asks and k + _ROWS_AHEAD < rows.size:
            j = rows[k + _ROWS_AHEAD]
            if is_sparse:
                ask_for(values, indices, np.uint64(indptr[j]), np.uint64(indptr[j + 1]))
            else:
                ask_for(values, indices, np.uint64(j * n_cols), np.uint64((j + 1) * n_cols))
        i = rows[k]
        begin = i * n_cols
        if is_sparse:
            u = sparse_product(values, indices, np.uint64(indptr[i]), np.uint64(indptr[i + 1]), w)
        elif flat.fortran:
            u = strided_product(values, i, n_rows, n_cols, w)
        else:
            u = dense_product(values, begin, n_cols, w)
        u += bias * w[n_cols] + b - along_mean + excess * shape.spread
        if is_centred:
            u -= excess * terms.shift[i]
        old, q = beta[i], terms.curvature[i]
        g = u - terms.target[i]
        share = loss_of(terms, i, u) + g * old + epsilon * abs(old)
        if has_ridge:
            share += 0.5 * terms.ridge[i] * old * old
            g += terms.ridge[i] * old
        gap += share * v.wait[i]
        v.wait[i] = min(2 * v.wait[i], longest_wait)
        v.due[i] = turn + v.wait[i]
        rising = g + epsilon if old >= 0.0 else g - epsilon  # the derivative if beta_i rises, and if it falls
        falling = g + epsilon if old > 0.0 else g - epsilon
        if rising < 0.0 and old < terms.hi[i]:
            worst = max(worst, -rising)
        elif falling > 0.0 and old > terms.lo[i]:
            worst = max(worst, falling)
        else:
            room = min(rising if old < terms.hi[i] else np.inf, -falling if old > terms.lo[i] else np.inf)
            if room > threshold:
                v.due[i] = _NEVER
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
        gain = -step * (rising if step > 0.0 else falling)  # up to a factor between one half and one
        gained += gain
        if gain >= fair:
            v.wait[i], v.due[i] = 1, turn + 1
        beta[i] = new
        if is_sparse:
            add_sparse(values, indices, np.uint64(indptr[i]), np.uint64(indptr[i + 1]), step, w)
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
    sums[0], sums[1], sums[4], sums[5], sums[7] = excess, along_mean, worst, gap, gained


@compiled
def enter(rows, due, turn, first, following):
    """Enter rows into a calendar: first[t % size] is a row that is due in turn t, and others follow it up to -1."""
    for k in range(rows.size - 1, -1, -1):
        i = rows[k]
        if due[i] < _NEVER:
            slot = max(due[i], turn) % first.size
            first[slot], following[i] = i, first[slot]


@compiled
def take(turn, first, following, rows):
    """Take the rows that are due in this turn out of the calendar; how many these are."""
    count, slot = 0, turn % first.size
    i = first[slot]
    while i >= 0:
        rows[count] = i
        count += 1
        i = following[i]
    first[slot] = -1
    return count


@compiled
def sweep(flat, terms, shape, v, sums, counts, most, goal):
    """Epochs over the active rows, until `most` rows are visited, in the middle of an epoch if it is a long one.

    An epoch is as many visits as there are active rows, in turns: each takes the rows that are due in a new order, sets
    those aside that stay where they are, and moves b. An epoch adds its w to the tail. It is the last one if the gap
    that it met is at most `goal` and the last look is long enough ago, if no row is active any more, or if the next
    look is due. Changed are sums = [excess, w.mean(x), b, threshold, largest violation, gap, fair gain of a visit, what
    this turn gained] and counts = [active rows, visits in this epoch, epochs, visits, epochs in the tail, visits at
    which the next look may be, visits at which it is due, visits in this turn, number of the turn, turns in this
    epoch].
    """
    active = v.order[: counts[0]]
    for i in active:
        if v.due[i] == _NEVER:
            v.due[i] = counts[8]
    first, following = np.full(2 * _LONGEST_WAIT, -1), np.empty(v.due.size, dtype=np.int64)
    enter(active, v.due, counts[8], first, following)
    rows = np.empty(active.size, dtype=np.int64)
    made, last_epoch, goes_on = 0, counts[2] + MOST_EPOCHS, True
    while goes_on and made < most and counts[2] < last_epoch:
        if counts[1] == 0:
            sums[4], sums[5], counts[9] = 0.0, 0.0, 0
        n_due = take(counts[8], first, following, rows)
        if n_due == 0:  # before the first turn of an epoch, too, in which every row may have to wait
            counts[8] += 1
            continue
        shuffle(rows, n_due, v.seed)
        now = rows[: min(n_due, most - made)]
        longest = min(_LONGEST_WAIT, max(1, counts[0] // _ROWS_OF_A_TURN)) if counts[2] >= _FIRST_EPOCHS else 1
        visit(flat, now, terms, shape, v, sums, counts[8], longest)
        for i in now:
            if v.due[i] == _NEVER:
                counts[0] -= 1
        enter(now, v.due, counts[8], first, following)
        made += now.size
        counts[1] += now.size
        counts[7] += now.size
        if now.size < n_due:
            break
        counts[8] += 1
        sums[6], sums[7] = _FAIR_SHARE * sums[7] / counts[7], 0.0
        sums[2] += shape.penalty * sums[0]
        counts[7] = 0
        counts[9] += 1
        if counts[1] >= counts[0]:
            sums[5] /= max(1, counts[9])
            counts[3] += counts[1]
            counts[1] = 0
            end_epoch(shape, v, sums, counts)
            goes_on = not is_last(sums, counts, goal)
    count = 0
    for k in range(active.size):
        i = active[k]
        if v.due[i] < _NEVER:
            active[k], active[count] = active[count], i
            count += 1


@compiled
def is_last(sums, counts, goal):
    """Whether no other epoch follows now."""
    return (sums[5] <= goal and counts[3] >= counts[5]) or counts[0] == 0 or counts[3] >= counts[6]


@compiled
def end_epoch(shape, v, sums, counts):
    """What follows the last visit of an epoch: see `sweep`."""
    counts[2] += 1
    # While the excess still moves b, rows that b may reach in the next epochs are not set aside.
    sums[3] = max(sums[4], _AHEAD * shape.penalty * abs(sums[0]))
    counts[4] += 1
    share = (shape.tail_power + 1.0) / (shape.tail_power + counts[4])
    for k in range(v.w.size):
        v.tail[k] += (v.w[k] - v.tail[k]) * share


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
