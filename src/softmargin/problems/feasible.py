"""Dual vectors that satisfy their constraints exactly, in real arithmetic, from whatever is handed in.

The box is 0 <= alpha_i <= C s_i. A free intercept also asks for sum_i y_i alpha_i = 0. For that all alpha are rounded
down to multiples of a power of two, so that the sum is computed without error, and what is left of it is taken off
rows of the heavier class. The power is the last digit of the largest alpha: where all weights are the same, variables
at their bounds stay there.

Where the sum is to be T = nu sum(s) (one class), there may be no floating point numbers that add up to it. But a sum of
at least T is enough: all targets are zero, and scaling such a vector down to the sum T keeps it in its box and raises
its dual value, -1/2 |sum_i alpha_i phi(x_i)|^2. So the value of the vector is a lower bound of the optimum as it
stands. `filled` makes such vectors, with sums that are as near to T as floating point allows.
"""

from fractions import Fraction
from math import frexp, fsum, ldexp

import numpy as np

from softmargin.linalg.rounding import TINY, above

# Classes whose sums differ by no more than this share are balanced by changing few alpha, others by scaling all of one.
NEARLY_BALANCED = 2.0**-40
_DIGITS = 53
# A sum that is too large by no more than this share of itself is as near as it needs to be.
_NEAR = 2.0**-50


def clipped(alpha: np.ndarray, weights: np.ndarray, C: float) -> np.ndarray:
    """alpha in its box; what is not a number becomes 0."""
    from softmargin.problems import _feasible

    alpha = np.array(alpha, dtype=np.float64)
    _feasible.clip(alpha, C, np.ascontiguousarray(weights, dtype=np.float64))
    return alpha


def balanced(alpha: np.ndarray, is_positive: np.ndarray) -> np.ndarray:
    """alpha lowered such that both classes have exactly the same sum."""
    from softmargin.problems import _feasible

    alpha = np.array(alpha, dtype=np.float64)
    _feasible.balance(alpha, np.ascontiguousarray(is_positive), NEARLY_BALANCED)
    return alpha


def boxed(given: np.ndarray, C: float, over: np.ndarray, under: np.ndarray) -> np.ndarray:
    """Variables between -C under and C over, and balanced; what is not a number becomes zero."""
    from softmargin.problems import _feasible

    given = np.ascontiguousarray(given, dtype=np.float64)
    beta = np.empty(given.size)
    _feasible.box(given, C, over, under, NEARLY_BALANCED, beta)
    return beta


def exact_total(weights: np.ndarray, nu: float) -> tuple[float, ...]:
    """Numbers that add up to nu sum(weights) in real arithmetic, the largest first.

    What would be below the smallest floating point number is rounded up. There are two or three of them, unless the
    sizes of the weights are very different.
    """
    left, sums = weights.tolist(), []
    while part := fsum(left):
        sums.append(part)
        left.append(-part)
    rest, terms = Fraction(nu) * sum(map(Fraction, sums)), []
    while term := float(rest):
        terms.append(term)
        rest -= Fraction(term)
    return (*terms, TINY) if rest > 0 else tuple(terms)


def filled(beta: np.ndarray, weights: np.ndarray, total: tuple[float, ...]) -> np.ndarray:
    """Variables between 0 and `weights`, changed such that their sum is at least that of `total`, and hardly more.

    `total` is what `exact_total` says for these weights, and some nu of at most 1. The other variables stay if a few of
    those between their bounds can take up the difference.
    """
    beta = np.minimum(beta, weights)
    size = fsum(total)
    rest = _rest(beta, total)
    if abs(rest) > NEARLY_BALANCED * size:
        if rest < 0.0:
            beta *= size / (size - rest)
        else:
            room = weights - beta
            beta = np.minimum(beta + room * min(1.0, rest / float(room.sum())), weights)
        rest = _rest(beta, total)
    for _ in range(beta.size):
        if -_NEAR * size - TINY <= rest <= 0.0:
            break
        room = weights - beta if rest > 0.0 else beta
        inside = np.where((beta > 0.0) & (beta < weights), room, 0.0)
        row = int(inside.argmax())
        if inside[row] == 0.0:
            row = int(room.argmax())
        # Rounded up: the sum must not be too small.
        wanted = max(above(float(beta[row]) + rest), 0.0)
        beta[row] = min(wanted, float(weights[row]))
        rest = _rest(beta, total)
    return beta if rest <= 0.0 else weights.copy()


def _rest(beta: np.ndarray, total: tuple[float, ...]) -> float:
    """The sum of `total` less that of beta: the real number rounded once, so that its sign is right."""
    terms = beta[beta > 0.0].tolist()
    terms.extend(-term for term in total)
    return -fsum(terms)


def floored(x: np.ndarray, unit: float) -> np.ndarray:
    """The multiples of `unit`, a power of two, that are next below the numbers x >= 0."""
    return np.floor(x / unit) * unit


def take_off(alpha: np.ndarray, excess: float, where: np.ndarray) -> None:
    """Lower some of the marked alpha, in place, by `excess` altogether; see `_feasible.take_off`."""
    from softmargin.problems import _feasible

    _feasible.take_off(alpha, excess, where, True)


def last_digit(x: float) -> float:
    """The power of two that the last digit of x stands for."""
    return ldexp(1.0, max(frexp(x)[1] - _DIGITS, -1074))
