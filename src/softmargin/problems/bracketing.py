"""A bracket of the minimiser of a convex function of one number k >= 0, from probes of its value and slope.

This is for functions whose breakpoints are too many, or not known. Every probe is a pass over the data. A bracket of a
relative width of 1e-2 is enough for OCAS, as long as the new plane is put at or beyond its far end.

The rules that choose the next probe are plain functions of a few numbers, so that the compiled search of `_few_rows`
uses the same ones. They read k, value, slope and size of a probe, whatever else it holds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from softmargin.core.stopping import ROUNDING

FARTHEST = 1e30  # if the function still falls at this step, it is taken to be unbounded
# A quantity is expected within this share of its change between two probes from the straight line between them.
EXPECTED_RADIUS = 0.25


@dataclass(frozen=True)
class Probe:
    """A step k, value and some slope of the function there, and whatever else is known about the point.

    `size` is that of the terms that the value is a sum of: rounding errors are a share of it.
    """

    k: float
    value: float
    slope: float
    size: float
    known: Any


class Illinois(NamedTuple):
    """The slopes that the Illinois rule uses for both ends, and which end the last probe replaced (-1 low, 1 high).

    The slope of an end that stays twice in a row is halved, so that the next probe comes closer to that end.
    """

    lo: float
    hi: float
    side: float


def search(probe: Callable[[float], Probe], at_zero: Probe, width: float, first: float = 1.0) -> tuple[Probe, Probe]:
    """(lo, hi) around the minimiser with hi - lo <= width hi.

    Probes go to `first` and beyond until the function rises, then between the two last ones. lo = hi = at_zero if the
    function does not fall at 0. The bracket may stay [0, hi] if no step lowers the value by more than rounding, and hi
    is no upper bound if the function falls for ever.
    """
    lo = hi = at_zero
    if lo.slope >= 0.0:
        return lo, lo
    hi = probe(first)
    factor = 2.0
    while hi.slope < 0.0 and hi.k < FARTHEST:
        lo, hi = hi, probe(factor * hi.k)
        factor = min(factor * factor, 1e6)
    slopes = Illinois(lo.slope, hi.slope, 0.0)
    count = 0
    while hi.slope >= 0.0 and is_wide(lo, hi, width):
        count += 1
        k = between(lo, hi, slopes, count, width)
        if not lo.k < k < hi.k:
            break  # neighbouring numbers
        new = probe(k)
        slopes = told(slopes, new.slope)
        lo, hi = (new, hi) if new.slope < 0.0 else (lo, new)
    return lo, hi


def is_wide(lo: Any, hi: Any, width: float) -> bool:
    """Whether the bracket is still too wide, and a step in it may lower the value by more than rounding."""
    if lo.k == 0.0 and (-lo.slope * hi.k <= ROUNDING * lo.size or hi.k < 1.0 / FARTHEST):
        return False
    return hi.k - lo.k > width * hi.k


def between(lo: Any, hi: Any, slopes: Illinois, count: int, width: float) -> float:
    """Where to probe next, the `count`-th time, between two probes where the slope has opposite signs.

    The Illinois rule is fast if the slope is smooth. If it jumps, the tangents meet at the jump. A bisection now and
    then bounds the number of probes.
    """
    if count < 5:
        k = lo.k + (hi.k - lo.k) * (slopes.lo / (slopes.lo - slopes.hi))
    elif count % 2 == 1:
        k = lo.k + (lo.value - hi.value + hi.slope * (hi.k - lo.k)) / (hi.slope - lo.slope)
    else:
        k = 0.5 * (lo.k + hi.k) if lo.k > hi.k / 16 else max(4.0 * lo.k, hi.k / 16)
    margin = min(0.45 * width * hi.k, 0.5 * (hi.k - lo.k))  # two probes this far around the zero end the search
    return min(max(k, lo.k + margin), hi.k - margin)


def told(slopes: Illinois, slope: float) -> Illinois:
    """The Illinois rule after a probe with this slope."""
    if slope < 0.0:
        return Illinois(slope, 0.5 * slopes.hi if slopes.side < 0.0 else slopes.hi, -1.0)
    return Illinois(0.5 * slopes.lo if slopes.side > 0.0 else slopes.lo, slope, 1.0)
