"""What every judge does with its sums: charge their rounding, and make a certificate of them."""

from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from softmargin.core.result import Certificate
from softmargin.core.stopping import NEGLIGIBLE
from softmargin.data.precise import Outputs, digits, sharper_outputs
from softmargin.data.rows import Products
from softmargin.linalg.rounding import SLACK, TINY, above, below, gamma

# Rounding may take this share of the gap, or of what `tol` allows, before values are evaluated again with more digits.
SHARE = 0.1
# Products from here on lose no digits by underflow.
SMALL = 2.0**-960


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
    """Losses upper_i max(0, z_i (t_i - f_i - shift)) of some rows, which are an index, a mask or a slice; z_i = +-1.

    The targets are t_i = target_i + target_low_i, numbers with twice the digits; without them t_i = z_i. Low
    digits that are no array are zero. If `is_squared`, the losses are upper_i max(0, ...)^2.
    """

    rows: Any
    z: np.ndarray
    shift: float
    upper: np.ndarray
    target: np.ndarray | None = None
    target_low: np.ndarray | float = 0.0
    is_squared: bool = False


def costs(C: float, weights: np.ndarray) -> np.ndarray:
    """C s_i, rounded to the nearest number, and rounded up where that is tiny: no loss is forgotten by underflow."""
    upper = C * weights
    is_tiny = (upper < SMALL) & (weights > 0.0)
    upper[is_tiny] = np.nextafter(upper[is_tiny], inf)
    return upper


def certificate(primal: Bound, dual: Bound, scale: float, violation: float, lowest: float = 0.0) -> Certificate:
    """From the two values and their bounds; what is not a number becomes infinite.

    `lowest` is a bound of the optimum that needs no proof: 0, because losses are not negative, or -infinity for
    problems whose objective may be negative.
    """
    upper, lower = primal.bound, max(dual.bound, lowest)
    gap = above(upper - lower)
    size = max(abs(upper), NEGLIGIBLE * scale)
    relative = gap / size if isfinite(gap) and size > 0.0 else (0.0 if gap <= TINY else inf)
    return Certificate(upper, lower, gap, relative, violation, above(primal.charge + dual.charge))


def is_coarse(primal: Bound, dual: Bound, scale: float, tol: float) -> bool:
    """Whether rounding takes too much of the gap that was computed or asked for."""
    wanted = max(tol * max(abs(primal.value), NEGLIGIBLE * scale), primal.value - dual.value)
    return not primal.charge + dual.charge <= SHARE * wanted


def dual_value(total: float, length: float, extra: float = 0.0) -> float:
    """A lower bound of total - 1/2 |w|^2 - extra, given a sum that was rounded and an upper bound of |w|."""
    return dual_below(below(total), length, extra)


def dual_below(linear: float, length: float, extra: float = 0.0) -> float:
    """The same, given a lower bound of the linear part."""
    return below(linear - above(0.5 * length * length * SLACK + extra))


def losses(found: Outputs, sides: list[Side]) -> tuple[Bound, np.ndarray]:
    """The sum of the losses, and which rows have one or are so near to their margin that they may have."""
    from softmargin.problems import _judge

    value = bound = 0.0
    near = np.zeros(found.f.size, dtype=np.bool_)
    low = digits(found.low)
    for side in sides:
        rows = np.arange(found.f.size)[side.rows]
        target = digits(0.0 if side.target is None else side.target)
        numbers = side.shift, side.z, side.upper, target, digits(side.target_low), side.is_squared
        part, most, slacks = _judge.add_losses(rows, found.f, low, found.error, *numbers, near)
        value += part
        bound += most + TINY * (rows.size + slacks)
    factor = 1.0 + gamma(sum(side.upper.size for side in sides) + 8)
    return Bound(value, above(bound * factor)), near


def sharper_losses(
    rows: Products, w: np.ndarray, lengths: np.ndarray, sides: list[Side], found: Outputs, near: np.ndarray
) -> Bound:
    """The losses of a linear model once more, with more digits for the rows that matter."""
    index = np.flatnonzero(near)
    return losses(found.replaced(index, sharper_outputs(rows, w, lengths, index)), sides)[0]
