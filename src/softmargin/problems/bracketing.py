"""A bracket of the minimiser of a convex function of one number k >= 0, from probes of its value and slope.

For functions whose breakpoints are too many, or not known: every probe is a pass over the data, and a bracket of a
relative width of 1e-2 is enough for OCAS if the new plane is put at or beyond its far end.

The rules are functions of numbers, so that compiled searches (`_few_rows`) go by the same ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

FARTHEST = 1e30  # a step at which the function still falls is taken for unbounded
EXPECTED_RADIUS = 0.25  # of what is expected between two probes, relative to the change from one to the other
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
    slope_lo, slope_hi, side = lo.slope, hi.slope, 0.0
    count = 0
    while hi.slope >= 0.0 and is_wide(lo.k, lo.slope, lo.size, hi.k, width):
        count += 1
        k = between(count, slope_lo, slope_hi, lo.k, lo.value, lo.slope, hi.k, hi.value, hi.slope, width)
        if not lo.k < k < hi.k:
            break  # neighbouring numbers
        new = probe(k)
        slope_lo, slope_hi, side = told(new.slope, slope_lo, slope_hi, side)
        lo, hi = (new, hi) if new.slope < 0.0 else (lo, new)
    return lo, hi


def is_wide(lo_k: float, lo_slope: float, lo_size: float, hi_k: float, width: float) -> bool:
    """Whether the bracket is too wide still, and a step in it may lower the value by more than rounding."""
    if lo_k == 0.0 and (-lo_slope * hi_k <= _ROUNDING * lo_size or hi_k < 1.0 / FARTHEST):
        return False
    return hi_k - lo_k > width * hi_k


def between(
    count: int,
    slope_lo: float,
    slope_hi: float,
    lo_k: float,
    lo_value: float,
    lo_slope: float,
    hi_k: float,
    hi_value: float,
    hi_slope: float,
    width: float,
) -> float:
    """Where to probe next, the `count`-th time, between two ends where the slope has opposite signs.

    The Illinois rule, for which `slope_lo` and `slope_hi` are those that `told` returned last, is fast where the slope
    is smooth; where it jumps, the tangents meet at the jump; a bisection now and then makes the number of probes
    certain.
    """
    if count < 5:
        k = lo_k + (hi_k - lo_k) * (slope_lo / (slope_lo - slope_hi))
    elif count % 2 == 1:
        k = lo_k + (lo_value - hi_value + hi_slope * (hi_k - lo_k)) / (hi_slope - lo_slope)
    else:
        k = 0.5 * (lo_k + hi_k) if lo_k > hi_k / 16 else max(4.0 * lo_k, hi_k / 16)
    margin = min(0.45 * width * hi_k, 0.5 * (hi_k - lo_k))  # two probes this far around the zero end it
    return min(max(k, lo_k + margin), hi_k - margin)


def told(slope: float, slope_lo: float, slope_hi: float, side: float) -> tuple[float, float, float]:
    """Slopes and side of the Illinois rule after a probe: that of an end that stays twice in a row counts half."""
    if slope < 0.0:
        return slope, 0.5 * slope_hi if side < 0.0 else slope_hi, -1.0
    return 0.5 * slope_lo if side > 0.0 else slope_lo, slope, 1.0
