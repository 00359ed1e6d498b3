"""Bounds of rounding errors: what separates a computed number from the real one.

A sum or product of k floating point operations differs from the real value by at most gamma(k) times the sum of the
sizes of its terms, in whatever order it was added up (N. J. Higham, Accuracy and Stability of Numerical Algorithms,
2nd ed., 2002, Section 3.1). Products may also underflow, by at most TINY each. Where that is too coarse, numbers are
kept as the unevaluated sum of two (T. J. Dekker, "A floating-point technique for extending the available precision",
Numerische Mathematik 18, 1971), which doubles the digits.
"""

import math
from typing import Any

import numpy as np

UNIT = 2.0**-53  # relative error of one operation
TINY = 2.0**-1074  # absolute error of one product that underflows
# Relative error of a sum of products kept in pairs of numbers, for each term: 2^-104, and some to spare.
PAIR_UNIT = 2.0**-101
# What bounds are multiplied by, to cover the rounding of their own few operations.
SLACK = 1.0 + 2.0**-48
_SPLIT = 2.0**27 + 1.0


def gamma(k: float, unit: float = UNIT) -> float:
    """Relative error of k operations in a row; infinite if so many say nothing."""
    return k * unit / (1.0 - k * unit) * SLACK if k * unit < 0.5 else math.inf


def above(x: Any) -> float:
    """A number above x, which was rounded once; infinity if x is not a number."""
    x = float(x)
    return math.inf if math.isnan(x) else math.nextafter(x, math.inf)


def below(x: Any) -> float:
    """A number below x, which was rounded once; -infinity if x is not a number."""
    return -above(-float(x))


def sum_above(x: np.ndarray) -> float:
    """An upper bound of the sum of numbers of at least zero."""
    return above(float(x.sum()) * (1.0 + gamma(x.size)))


def square_above(x: np.ndarray) -> float:
    """An upper bound of |x|^2; exact if x is zero."""
    if not x.any():
        return 0.0
    return above((float(x @ x) + x.size * TINY) * (1.0 + gamma(x.size + 2)))


def norm_above(x: np.ndarray) -> float:
    """An upper bound of |x|; exact if x is zero."""
    square = square_above(x)
    return above(math.sqrt(square)) if square > 0.0 else 0.0


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """a + b as two numbers whose sum it is exactly."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """a b as two numbers whose sum it is exactly, unless it over- or underflows."""
    p = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


def _split(a: Any) -> tuple[Any, Any]:
    t = _SPLIT * a
    high = t - (t - a)
    return high, a - high
