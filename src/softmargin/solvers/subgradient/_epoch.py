"""The loop that Pegasos and SGD share: rows visited one after the other.

The point is kept as w = scale * v, so that shrinking it costs nothing and an update touches one row only.

The arguments come in tuples: `rows` is the `Flat` of `data/rows.py`; `Visits`, `Steps` and `Point` are in `state.py`.
"""

import numpy as np

from softmargin.core.jit import compiled

# Below this the scale is multiplied into v, long before it could underflow.
_TINY = 1e-200


@compiled(sums=True)
def descend(rows, visits, steps, point, b, t):
    """Make the visits in turn: changes the point and `visits.hit`, and returns b. Before them t visits were made.

        eta = 1 / (lambda t0) (t0 / (t0 + t))^power, which is 1 / (lambda (t0 + t)) for power = 1
        w = (1 - lambda eta) w before each update (skip = 0), or skip times as much after every skip-th update
        w = the nearest point of the ball of `radius`

    The sum of the points is formed as (sum of scales) * v, from which every update of v takes back what it would add to
    the points before it.
    """
    values, indices, indptr, n_cols = rows.values, rows.indices, rows.indptr, rows.n_cols
    place, gain, hit = visits.place, visits.gain, visits.hit
    scale_C, t0, power, skip, radius = steps.scale_C, steps.t0, steps.power, steps.skip, steps.radius
    bias, b_gain = steps.bias, steps.b_gain
    w, total = point.w, point.total
    is_dense = indptr.size == 0
    sums_points = total.size > 0
    scale = 1.0
    sum_scale = 0.0
    sq_norm = 0.0
    for j in range(w.size):
        sq_norm += w[j] * w[j]
    for k in range(place.size):
        t += 1
        if is_dense:
            lo, hi = place[k] * n_cols, (place[k] + 1) * n_cols
        else:
            lo, hi = indptr[place[k]], indptr[place[k] + 1]
        x, columns = values[lo:hi], indices[lo:hi]
        inner = bias * w[n_cols]
        if is_dense:
            for j in range(x.size):
                inner += x[j] * w[j]
        else:
            for p in range(x.size):
                inner += x[p] * w[np.uint64(columns[p])]
        inner *= scale
        y = 1.0 if gain[k] > 0.0 else -1.0
        is_hit = y * (inner + b) < 1.0

        share = 1.0 / (t0 + t)  # lambda eta
        if power != 1.0:
            share = (t0 * share) ** power / t0
        update = scale_C * share * abs(gain[k])
        if is_hit:
            b += b_gain * update * y
        factor = 1.0
        if skip == 0:
            factor = 1.0 - share
        elif t % skip == 0:
            factor = 1.0 - skip * share
            if factor < 0.8:
                factor = (1.0 - share) ** skip
            update *= factor

        if scale * factor < _TINY:
            for j in range(w.size):
                if sums_points:
                    total[j] += sum_scale * w[j]
                w[j] *= scale * factor
            scale, sum_scale = 1.0, 0.0
        else:
            scale *= factor
        sq_norm *= factor * factor
        hit[k] = 1.0 if is_hit else 0.0
        if is_hit:
            step = update * y / scale
            back_step = -sum_scale * step
            sq_row = bias * bias
            w[n_cols] += step * bias
            if is_dense:
                for j in range(x.size):
                    w[j] += step * x[j]
                    sq_row += np.float64(x[j]) * np.float64(x[j])
                if sums_points:
                    for j in range(x.size):
                        total[j] += back_step * x[j]
            else:
                for p in range(x.size):
                    w[np.uint64(columns[p])] += step * x[p]
                    sq_row += np.float64(x[p]) * np.float64(x[p])
                if sums_points:
                    for p in range(x.size):
                        total[np.uint64(columns[p])] += back_step * x[p]
            if sums_points:
                total[n_cols] += back_step * bias
            sq_norm += 2.0 * factor * update * y * inner + update * update * sq_row
            if sq_norm > radius * radius:
                scale *= radius / np.sqrt(sq_norm)
                sq_norm = radius * radius
        sum_scale += scale
    for j in range(w.size):
        if sums_points:
            total[j] += sum_scale * w[j]
        w[j] *= scale
    return b


@compiled
def add_magnitudes(rows, place, sums):
    """sums_j += |x_j| over the rows at `place`; returns their number of entries and the sum of their squares."""
    values, indices, indptr, n_cols = rows.values, rows.indices, rows.indptr, rows.n_cols
    entries = 0
    squares = 0.0
    for k in range(place.size):
        if indptr.size == 0:
            for j in range(n_cols):
                x = np.float64(values[place[k] * n_cols + j])
                sums[j] += abs(x)
                squares += x * x
            entries += n_cols
        else:
            for p in range(indptr[place[k]], indptr[place[k] + 1]):
                x = np.float64(values[p])
                sums[indices[p]] += abs(x)
                squares += x * x
            entries += indptr[place[k] + 1] - indptr[place[k]]
    return entries, squares
