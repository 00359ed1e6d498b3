"""What every judge does with its sums: charge their rounding, and make a certificate of them."""

from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from softmargin.core.result import Certificate
from softmargin.core.stopping import NEGLIGIBLE
from softmargin.data.precise import Outputs, sharper_outputs
from softmargin.data.rows import Rows
from softmargin.linalg.rounding import SLACK, TINY, UNIT, above, below, gamma, two_sum
from softmargin.problems.breakpoints import row_blocks

# Rounding may take this share of the gap, or of what `tol` allows, before values are evaluated again with more digits.
SHARE = 0.1


class Bound(NamedTuple):
    """A computed value, and how large (or small) the real one can be."""

    value: float
    bound: float

    @property
    def charge(self) -> float:
        return abs(self.bound - self.value)

    def plus(self, other: "Bound") -> "Bound":
        """The sum of two upper bounds."""
        return Bound(self.value + other.value, above(self.bound + other.bound))


@dataclass(frozen=True)
class Side:
    """Losses upper_i max(0, margin_i - slack - z_i (f_i + shift)) of some rows, which are an index, a mask or a slice.

    z_i is 1 or -1, or 0 for a row that takes no part.
    """

    rows: Any
    z: np.ndarray
    shift: float
    upper: np.ndarray
    margin: np.ndarray | float = 1.0
    slack: float = 0.0

    def part(self, lo: int, hi: int) -> "Side":
        """The rows from lo to hi - 1 of these."""
        margin = self.margin[lo:hi] if isinstance(self.margin, np.ndarray) else self.margin
        return Side(None, self.z[lo:hi], self.shift, self.upper[lo:hi], margin, self.slack)


def certificate(
    primal: Bound, dual: Bound, scale: float, violation: float, *, is_nonnegative: bool = True
) -> Certificate:
    """Of a value and a bound; not a number becomes infinite. Zero is a bound too where no objective is negative."""
    upper, lower = primal.bound, max(dual.bound, 0.0) if is_nonnegative else dual.bound
    gap = above(upper - lower)
    size = max(abs(upper), NEGLIGIBLE * scale)
    relative = gap / size if isfinite(gap) and size > 0.0 else (0.0 if gap <= TINY else inf)
    return Certificate(upper, lower, gap, relative, violation, above(primal.charge + dual.charge))


def is_coarse(primal: Bound, dual: Bound, scale: float, tol: float) -> bool:
    """Whether rounding takes too much of the gap that was computed or asked for."""
    wanted = max(tol * max(abs(primal.value), NEGLIGIBLE * scale), primal.value - dual.value)
    return not primal.charge + dual.charge <= SHARE * wanted


def dual_value(total: float, length: float, extra: float = 0.0) -> float:
    """A lower bound of total - 1/2 |w|^2 - extra, given an upper bound of the length of w."""
    return below(below(total) - above(0.5 * length * length * SLACK + extra))


def losses(found: Outputs, sides: list[Side]) -> tuple[Bound, np.ndarray]:
    """The sum of the losses, and which rows have one or are so near to their margin that they may have."""
    value = bound = 0.0
    near = np.zeros(found.f.size, dtype=bool)
    for side in sides:
        every = np.arange(found.f.size)[side.rows]
        for lo, hi in row_blocks(every.size):
            rows = every[lo:hi]
            part = side.part(lo, hi)
            slack, error = _slack(found.take(rows), part)
            upper = part.upper
            most = np.where(upper > 0.0, slack + error, 0.0)
            near[rows] |= ~(most <= 0.0)
            value += float(upper @ np.maximum(slack, 0.0))
            largest = np.maximum(most, 0.0)
            bound += float(upper @ largest) + TINY * (rows.size + float(largest.sum()))
    factor = 1.0 + gamma(sum(side.upper.size for side in sides) + 8)
    return Bound(value, above(bound * factor)), near


def _slack(at: Outputs, side: Side) -> tuple[np.ndarray, np.ndarray]:
    """margin - slack - z (f + low + shift), and a bound of its error."""
    z = side.z
    s, s_low = two_sum(at.f, side.shift)
    t, t_low = two_sum(side.margin, -z * s)
    if side.slack:
        t, more = two_sum(t, -side.slack)
        t_low += more
    s_low += at.low
    slack = t + (t_low - z * s_low)
    return slack, (at.error + 2.0 * UNIT * np.abs(slack) + 4.0 * UNIT * (np.abs(t_low) + np.abs(s_low))) * SLACK


def sharper_losses(
    rows: Rows, w: np.ndarray, lengths: np.ndarray, sides: list[Side], found: Outputs, near: np.ndarray
) -> Bound:
    """The losses of a linear model once more, with more digits for the rows that matter."""
    index = np.flatnonzero(near)
    return losses(found.replaced(index, sharper_outputs(rows, w, lengths, index)), sides)[0]
