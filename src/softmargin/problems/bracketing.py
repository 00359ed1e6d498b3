"""A bracket of the minimiser of a convex function of one number k >= 0, from probes of its value and slope.

For functions whose breakpoints are too many, or not known: every probe is a pass over the data, and a bracket of a
relative width of 1e-2 is enough for OCAS if the new plane is put at or beyond its far end.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

FARTHEST = 1e30  # a step at which the function still falls is taken for unbounded
_ROUNDING = 1e-16


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


def search(probe: Callable[[float], Probe], at_zero: Probe, width: float, first: float = 1.0) -> tuple[Probe, Probe]:
    """(lo, hi) around the minimiser, hi - lo <= width hi: probes at `first` and beyond until it rises, then between.

    lo = hi = at_zero where the function does not fall at 0. The bracket may stay [0, hi] where no step lowers the value
    by more than rounding, and hi is no upper bound where the function falls for ever.
    """
    lo = hi = at_zero
    if lo.slope >= 0.0:
        return lo, lo
    hi = probe(first)
    factor = 2.0
    while hi.slope < 0.0 and hi.k < FARTHEST:
        lo, hi = hi, probe(factor * hi.k)
        factor = min(factor * factor, 1e6)
    for ends in shrinking(probe, lo, hi, width):
        lo, hi = ends
    return lo, hi


def shrinking(probe: Callable[[float], Probe], lo: Probe, hi: Probe, width: float) -> Iterator[tuple[Probe, Probe]]:
    """The enclosing probes, from the given ones to the last."""
    yield lo, hi
    shrink = _Shrink(lo.slope, hi.slope)
    while hi.slope >= 0.0 and hi.k - lo.k > width * hi.k:
        if lo.k == 0.0 and (-lo.slope * hi.k <= _ROUNDING * lo.size or hi.k < 1.0 / FARTHEST):
            return  # no step in (0, hi) lowers the value by more than rounding
        k = shrink.next(lo, hi, width)
        if not lo.k < k < hi.k:
            return  # neighbouring numbers
        new = probe(k)
        if new.slope < 0.0:
            lo = new
        else:
            hi = new
        shrink.tell(new.slope)
        yield lo, hi


class _Shrink:
    """Chooses the next probe between two ends where the slope has opposite signs.

    The Illinois rule is fast where the slope is smooth; where it jumps, the tangents meet at the jump; a bisection now
    and then makes the number of probes certain.
    """

    def __init__(self, slope_lo: float, slope_hi: float) -> None:
        self._slope_lo, self._slope_hi = slope_lo, slope_hi
        self._last_side = 0
        self._count = 0

    def next(self, lo: Probe, hi: Probe, width: float) -> float:
        self._count += 1
        if self._count < 5:
            k = lo.k + (hi.k - lo.k) * (self._slope_lo / (self._slope_lo - self._slope_hi))
        elif self._count % 2 == 1:
            k = lo.k + (lo.value - hi.value + hi.slope * (hi.k - lo.k)) / (hi.slope - lo.slope)
        else:
            k = 0.5 * (lo.k + hi.k) if lo.k > hi.k / 16 else max(4.0 * lo.k, hi.k / 16)
        margin = min(0.45 * width * hi.k, 0.5 * (hi.k - lo.k))  # two probes this far around the zero end it
        return min(max(k, lo.k + margin), hi.k - margin)

    def tell(self, slope: float) -> None:
        """Take in the slope at the probe; that of an end that stays twice in a row counts half."""
        if slope < 0.0:
            self._slope_lo = slope
            self._slope_hi *= 0.5 if self._last_side < 0 else 1.0
            self._last_side = -1
        else:
            self._slope_hi = slope
            self._slope_lo *= 0.5 if self._last_side > 0 else 1.0
            self._last_side = 1
