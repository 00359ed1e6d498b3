"""The search of `free_intercept` on few rows, compiled: one call instead of a dozen short ones with Python between.

Rows given are few. `rows` are their f, df and v and `unit`; what other rows add is `fixed`: the sums of unit |v| - v f,
v df and v over rows that are active for every k and b in question. `terms` are A0, B0 and C of G, and `work` are three
arrays to work in.
"""

from typing import NamedTuple

import numpy as np

from softmargin.core.jit import compiled
from softmargin.problems import bracketing
from softmargin.problems._hinge import settle, zero_piece
from softmargin.problems.base import Hint
from softmargin.problems.bracketing import Illinois

_FARTHEST = bracketing.FARTHEST
_RADIUS = bracketing.EXPECTED_RADIUS
_is_wide, _between, _told = compiled(bracketing.is_wide), compiled(bracketing.between), compiled(bracketing.told)


class Probe(NamedTuple):
    """A step k, G and its right derivative there, the size of the terms of C R, the best b, and the sum of active v.

    They count only if the best b lies where it was looked for: `is_inside`.
    """

    is_inside: bool
    k: float
    value: float
    slope: float
    size: float
    b: float
    sum_v: float

    @property
    def known(self) -> Hint:
        return Hint(self.b, self.sum_v, self.k)


@compiled
def _tied_slope(t, v, df, b, balance, some, weights):
    """What `free_intercept.tied_slope` returns, of all rows with t_i = b."""
    n = np.uint64(t.size)
    m = np.uint64(0)
    slope = -balance
    for i in range(n):
        if t[i] == b and v[i] != 0.0:
            some[m] = -df[i]
            weights[m] = abs(v[i])
            slope -= max(v[i], 0.0)
            m += np.uint64(1)
    low, high, _ = zero_piece(some[:m], weights[:m], slope, 0.0, -np.inf, np.inf)
    turn = high if high < np.inf else low
    total = 0.0
    for i in range(n):
        if t[i] == b and (-df[i] > turn if v[i] > 0.0 else -df[i] < turn):
            total += v[i] * df[i]
            balance += v[i]
    return total + balance * turn


@compiled(sums=True)
def _probe(rows, fixed, terms, k, near, wide, work):
    """Looks for b in the interval `near` first, and no further than in `wide`."""
    f, df, v, unit = rows
    t, some, weights = work
    n = np.uint64(f.size)
    for i in range(n):
        t[i] = (unit if v[i] > 0.0 else -unit) - (f[i] + k * df[i])
    lo, hi = near
    for _ in range(2):
        is_inside, b, sum_v, sum_vdf, sum_vt, ties, tied_df = settle(t, v, df, fixed[2], lo, hi, some, weights)
        if is_inside:
            break
        lo, hi = wide
    sum_v += fixed[2]
    if ties == 1:
        sum_vdf -= sum_v * tied_df
    elif ties > 1:
        sum_vdf += _tied_slope(t, v, df, b, sum_v, some, weights)
    A0, B0, C = terms
    rest = fixed[0] - k * fixed[1] - b * fixed[2]
    risk = C * (sum_vt + rest)
    value = 0.5 * A0 * k * k + B0 * k + risk
    slope = A0 * k + B0 - C * (sum_vdf + fixed[1])
    return Probe(is_inside, k, value, slope, risk + 2.0 * C * max(-rest, 0.0), b, sum_v)


@compiled
def _middle(limits):
    """Half of an interval: limits of b are some standard errors away from where it is expected."""
    lo, hi = limits
    return (0.75 * lo + 0.25 * hi, 0.25 * lo + 0.75 * hi) if lo > -np.inf else limits


@compiled
def search(rows, fixed, terms, region, width, work):
    """(lo, hi, first) around the minimiser of G, found as by `bracketing.search`; probes at both `ends` come first.

    `region` holds the two ends, and the limits of b at both of them, `low` and `high`. If these are finite, k is looked
    for between the ends and b between the limits; otherwise any b is taken, and any k from the first end on. The
    minimiser lies between lo and hi only if both are inside and their slopes have opposite signs, or if lo = hi has
    k = 0.
    """
    ends, low, high = region
    is_region = low[0] > -np.inf
    wide = low[0], high[0]
    first = lo = _probe(rows, fixed, terms, ends[0], _middle(wide), wide, work)
    if lo.slope >= 0.0 or not lo.is_inside:
        return lo, lo, lo
    wide = low[1], high[1]
    hi = _probe(rows, fixed, terms, ends[1], _middle(wide), wide, work)
    factor = 2.0
    while hi.slope < 0.0 and hi.k < _FARTHEST and not is_region:
        lo, hi = hi, _probe(rows, fixed, terms, factor * hi.k, wide, wide, work)
        factor = min(factor * factor, 1e6)
    slopes = Illinois(lo.slope, hi.slope, 0.0)
    count = 0
    while hi.slope >= 0.0 and hi.is_inside and lo.is_inside and _is_wide(lo, hi, width):
        count += 1
        k = _between(lo, hi, slopes, count, width)
        if not lo.k < k < hi.k:
            break  # neighbouring numbers
        b = lo.b + (k - lo.k) / (hi.k - lo.k) * (hi.b - lo.b)
        radius = _RADIUS * abs(hi.b - lo.b)
        near = np.nextafter(b - radius, -np.inf), np.nextafter(b + radius, np.inf)
        if is_region:
            x = (k - ends[0]) / (ends[1] - ends[0])
            wide = (1.0 - x) * low[0] + x * low[1], (1.0 - x) * high[0] + x * high[1]
        new = _probe(rows, fixed, terms, k, near, wide, work)
        slopes = _told(slopes, new.slope)
        if new.slope < 0.0:
            lo = new
        else:
            hi = new
    return lo, hi, first
