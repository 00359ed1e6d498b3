"""Compiled active-set loop of the QP over cutting planes; see `reduced_qp.py` for the method."""

import math
from typing import Any

import numpy as np

from softmargin.core.jit import compiled
from softmargin.linalg._cholesky import append_row, delete_row, dot, solve_lower, solve_upper

EPS = 2.220446049250313e-16

# A Schur complement below this share of the diagonal is rounding error: the plane is affinely dependent on S.
DEPENDENT = 1e-14

# S is levelled again when its gradients differ by more than this share of the violation about to be used.
LEVEL_SHARE = 1e-2

# Pivots without a measurable change of the objective or of the gap after which rounding is all that is left:
# this many, and one more for each two members.
PATIENCE = 20

# Full levelling steps in a row that may fail to flatten the gradient before it is taken as flat.
MAX_STALLS = 3


@compiled
def entry(H, stride, i, j, sigma, zero):
    """Return entry (i, j) of H + sigma 1 1^T, where index `zero` is the zero plane."""
    if i == zero or j == zero:
        return sigma
    return H[i * stride + j] + sigma


@compiled(sums=True)
def gradient(H, stride, x, shift, support, g):
    """Set g = H x - shift on the planes and 0 on the zero plane, from scratch."""
    t = shift.size
    out = g[:t]
    for k in range(t):
        out[k] = -shift[k]
    m = 0
    for j in range(t):
        if x[j] != 0.0:
            support[m] = j
            m += 1
    i = 0
    while i + 4 <= m:
        j0, j1, j2, j3 = support[i], support[i + 1], support[i + 2], support[i + 3]
        x0, x1, x2, x3 = x[j0], x[j1], x[j2], x[j3]
        row0 = H[j0 * stride : j0 * stride + t]
        row1 = H[j1 * stride : j1 * stride + t]
        row2 = H[j2 * stride : j2 * stride + t]
        row3 = H[j3 * stride : j3 * stride + t]
        for k in range(t):
            out[k] += x0 * row0[k] + x1 * row1[k] + x2 * row2[k] + x3 * row3[k]
        i += 4
    while i < m:
        j0 = support[i]
        x0 = x[j0]
        row0 = H[j0 * stride : j0 * stride + t]
        for k in range(t):
            out[k] += x0 * row0[k]
        i += 1
    g[t] = 0.0


@compiled
def typical_diagonal(H, stride, t, beta):
    """Return the geometric mean of the positive diagonal over the support, or over all planes, or 1."""
    for supported in (True, False):
        logs = 0.0
        count = 0
        for k in range(t):
            if H[k * stride + k] > 0.0 and (beta[k] > 0.0 or not supported):
                logs += math.log(H[k * stride + k])
                count += 1
        if count > 0:
            return math.exp(logs / count)
    return 1.0


@compiled
def enlarged(R, s):
    """Return an array with room for twice the working set that begins with the factor of size s."""
    room = np.empty((2 * s + 2, 2 * s + 2))
    for i in range(s):
        for j in range(i, s):
            room[i, j] = R[i, j]
    return room


@compiled
def drop_member(R, u, members, s, p):
    """Take position p out of the working set of size s."""
    delete_row(R, s, p, u)
    for i in range(p, s - 1):
        members[i] = members[i + 1]


@compiled
def add_member(R, u, members, s, k, y, pivot):
    """Append plane k, whose forward solve is y, to the working set of size s."""
    append_row(R, s, y, pivot)
    u[s] = (1.0 - dot(y, u, s)) / R[s, s]
    members[s] = k


@compiled(sums=True)
def bring_in(H, stride, sigma, k, beta, g, R, u, members, s, y, v):
    """Move plane k into the working set along the direction that keeps the gradient equal on it.

    Direction v: v_k = 1, sum v = 0, (H v)_S constant. Members that reach zero are dropped on the way. If k
    depends on S there is (nearly) no curvature along v: a bound is met first and the factor stays regular.
    Returns (size of the working set, decrease of the objective, pivots).
    """
    zero = beta.size - 1
    diagonal = entry(H, stride, k, k, sigma, zero)
    decrease = 0.0
    pivots = 0
    while True:
        pivots += 1
        if s == 0:
            add_member(R, u, members, s, k, y, diagonal)
            return 1, decrease, pivots
        for i in range(s):
            y[i] = entry(H, stride, members[i], k, sigma, zero)
        solve_lower(R, s, y)
        pivot = diagonal - dot(y, y, s)
        uu = dot(u, u, s)
        level = (dot(y, u, s) - 1.0) / uu
        for i in range(s):
            v[i] = level * u[i] - y[i]
        solve_upper(R, s, v)
        independent = pivot > DEPENDENT * diagonal
        curvature = max(pivot, 0.0) + level * level * uu
        slope = g[k]
        for i in range(s):
            slope += g[members[i]] * v[i]
        if slope >= 0.0 and beta[k] <= 0.0:
            return s, decrease, pivots
        sign = 1.0 if slope < 0.0 else -1.0

        limit = math.inf
        blocker: Any = np.int64(-1)
        if sign < 0.0:
            limit = beta[k]
            blocker = s
        for i in range(s):
            rate = -sign * v[i]
            if rate > 0.0:
                ratio = beta[members[i]] / rate
                if ratio < limit or (ratio == limit and blocker < s and rate > -sign * v[blocker]):
                    limit = ratio
                    blocker = i
        if blocker < 0:  # only rounding can do this: sum v = 0 and v_k = 1
            return s, decrease, pivots
        step = limit
        full = False
        if abs(slope) < curvature * limit:
            if independent:
                step = abs(slope) / curvature
                full = True
            elif beta[k] <= 0.0:
                return s, decrease, pivots  # the violation is as small as the rounding errors of H
        beta[k] += sign * step
        g[k] += sign * step * (curvature + level)
        for i in range(s):
            j = members[i]
            beta[j] = max(0.0, beta[j] + sign * step * v[i])
            g[j] += sign * step * level
        decrease += step * (abs(slope) - 0.5 * curvature * step)
        if full:
            add_member(R, u, members, s, k, y, pivot)
            return s + 1, decrease, pivots
        if blocker == s:
            beta[k] = 0.0
            return s, decrease, pivots
        beta[members[blocker]] = 0.0
        drop_member(R, u, members, s, blocker)
        s -= 1


@compiled(sums=True)
def level_members(H, stride, beta, g, R, u, members, s, d):
    """Step towards the minimiser over the working set; drop the first member that reaches zero.

    The step length is that of the real quadratic, so an inaccurate factor costs speed and never ascent.
    Returns (size of the working set, decrease of the objective).
    """
    zero = beta.size - 1
    for i in range(s):
        d[i] = g[members[i]]
    solve_lower(R, s, d)
    level = dot(d, u, s) / dot(u, u, s)
    for i in range(s):
        d[i] = level * u[i] - d[i]
    solve_upper(R, s, d)
    slope = 0.0
    curvature = 0.0
    for i in range(s):
        slope += g[members[i]] * d[i]
        if members[i] != zero:
            start = members[i] * stride
            inner = 0.0
            for j in range(s):
                if members[j] != zero:
                    inner += H[start + members[j]] * d[j]
            curvature += d[i] * inner
    if slope >= 0.0:
        return s, 0.0
    limit = math.inf
    blocker: Any = np.int64(-1)
    for i in range(s):
        if d[i] < 0.0:
            ratio = -beta[members[i]] / d[i]
            if ratio < limit or (ratio == limit and d[i] < d[blocker]):
                limit = ratio
                blocker = i
    step = limit
    if curvature > 0.0 and -slope < curvature * limit:
        step = -slope / curvature
        blocker = np.int64(-1)
    elif blocker < 0:
        return s, 0.0
    for i in range(s):
        beta[members[i]] = max(0.0, beta[members[i]] + step * d[i])
    if blocker >= 0:
        beta[members[blocker]] = 0.0
        drop_member(R, u, members, s, blocker)
        s -= 1
    return s, -step * (slope + 0.5 * curvature * step)


@compiled
def load(H, stride, sigma, beta, g, R, u, members, y, v):
    """Factorise the planes with beta > 0; those that depend on the others are moved to a bound.

    Returns (size of the working set, pivots).
    """
    zero = beta.size - 1
    s: Any = np.int64(0)
    n_left = 0
    left = np.empty(beta.size, np.int64)
    for k in range(zero, -1, -1):
        if beta[k] > 0.0:
            for i in range(s):
                y[i] = entry(H, stride, members[i], k, sigma, zero)
            solve_lower(R, s, y)
            diagonal = entry(H, stride, k, k, sigma, zero)
            pivot = diagonal - dot(y, y, s)
            if pivot > DEPENDENT * diagonal:
                add_member(R, u, members, s, k, y, pivot)
                s += 1
            else:
                left[n_left] = k
                n_left += 1
    pivots = 0
    for i in range(n_left):
        k = left[i]
        s, _, more = bring_in(H, stride, sigma, k, beta, g, R, u, members, s, y, v)
        pivots += more
    return s, pivots


@compiled
def normalise(beta):
    """Scale beta to sum one."""
    total = 0.0
    for k in range(beta.size):
        total += beta[k]
    if total != 1.0:
        for k in range(beta.size):
            beta[k] /= total


@compiled(sums=True)
def solve(H, stride, e, total, beta, tol, max_pivots):
    """Minimise 1/2 beta^T H beta - (e / total)^T beta over the simplex; beta is start and result.

    H is the flat array of the matrix with `stride` entries a row; beta has t + 1 entries, the last for the
    zero plane. The result is the point with the smallest gap seen. Returns the number of pivots.
    """
    t = e.size
    shift = e / total
    g = np.empty(t + 1)
    support = np.empty(t + 1, np.int64)
    root = np.empty(t)
    for k in range(t):
        root[k] = math.sqrt(max(H[k * stride + k], 0.0))
    best = beta.copy()
    best_gap = math.inf
    enough = tol / total / total

    in_set = np.zeros(t + 1, np.bool_)
    banned = np.zeros(t + 1, np.bool_)
    capacity = 32
    for k in range(t + 1):
        if beta[k] > 0.0:
            capacity += 1
    R = np.empty((capacity, capacity))
    u = np.empty(t + 1)
    y = np.empty(t + 1)
    v = np.empty(t + 1)
    members = np.empty(t + 1, np.int64)
    s: Any = np.int64(0)  # a plain 0 would compile every function below once more, for that constant
    sigma = 0.0
    pivots = 0
    loaded = False
    stalls = 0
    share = LEVEL_SHARE
    last_spread = math.inf
    decrease = math.inf
    marked_gap = math.inf
    marked_pivots = 0
    gained = 0.0
    while True:
        normalise(beta)
        gradient(H, stride, beta, shift, support, g)
        mu = 0.0
        length = 0.0
        profit = 0.0
        for k in range(t):
            if beta[k] > 0.0:
                mu += beta[k] * g[k]
                length += beta[k] * root[k]
                profit += beta[k] * shift[k]
        lowest = 0.0
        for k in range(t):
            lowest = min(lowest, g[k])
        gap = mu - lowest
        if gap < best_gap:
            best_gap = gap
            for k in range(t + 1):
                best[k] = beta[k]
        if gap <= enough or pivots >= max_pivots:
            break
        gained += decrease
        if gap < 0.5 * marked_gap or gained > EPS * (length * length + profit):
            marked_gap = gap
            marked_pivots = pivots
            gained = 0.0
        elif pivots > marked_pivots + PATIENCE + s // 2:
            break
        decrease = 0.0
        tiny = EPS * EPS * (length * length + profit)
        # only differences matter from here on; a large constant in g would drown them in the solves
        for k in range(t + 1):
            g[k] -= mu

        if not loaded:
            sigma = typical_diagonal(H, stride, t, beta)
            s, more = load(H, stride, sigma, beta, g, R, u, members, y, v)
            loaded = True
            if more > 0:
                pivots += more
                decrease = math.inf
                continue

        in_set[:] = False
        spread = 0.0
        noise = 0.0
        for i in range(s):
            k = members[i]
            in_set[k] = True
            spread = max(spread, abs(g[k]))
            if k < t:
                noise = max(noise, root[k] * length + shift[k])
        noise *= 2.0 * EPS
        entering: Any = np.int64(-1)
        violation = 0.0
        for k in range(t + 1):
            if not in_set[k] and not banned[k] and -g[k] > violation:
                own = 0.0
                if k < t:
                    own = 2.0 * EPS * (root[k] * length + shift[k])
                if -g[k] > max(noise, own):
                    violation = -g[k]
                    entering = k

        if stalls < MAX_STALLS and spread > max(noise, share * violation):
            if spread > 0.5 * last_spread:
                stalls += 1
                if stalls == 1:
                    loaded = False  # the factor has drifted: build it again
            last_spread = spread
            before = s
            s, decrease = level_members(H, stride, beta, g, R, u, members, s, v)
            pivots += 1
            if decrease > tiny:
                banned[:] = False
            if s < before:
                stalls = 0
                last_spread = math.inf
            continue
        if entering < 0:
            break
        if s + 1 > R.shape[0]:
            R = enlarged(R, s)
        s, decrease, more = bring_in(H, stride, sigma, entering, beta, g, R, u, members, s, y, v)
        pivots += more
        stalls = 0
        last_spread = math.inf
        if decrease > tiny:
            banned[:] = False
            share = LEVEL_SHARE
        elif share > 0.0:
            share = 0.0  # v may be large and turn a small slope in S against the plane: level S, then try again
        else:
            banned[entering] = True
    for k in range(t + 1):
        beta[k] = best[k]
    return pivots
