"""Dual vectors that satisfy their constraints exactly, in real arithmetic, from whatever is handed in.

The box is 0 <= alpha_i <= C s_i. A free intercept also asks for sum_i y_i alpha_i = 0. For that all alpha are rounded
down to multiples of a power of two, so that the sum is computed without error, and what is left of it is taken off
rows of the heavier class. The power is the last digit of the largest alpha: where all weights are the same, variables
at their bounds stay there.

Where the sum is to be nu sum(s) (one class), there may be no floating point numbers that add up to it. Then the vector
is as near as floating point allows, and the difference that is left is known exactly: see `Filled`.
"""

from fractions import Fraction
from math import frexp, fsum, ldexp
from typing import NamedTuple

import numpy as np

from softmargin.linalg.rounding import SLACK, above, below, two_product

# Classes whose sums differ by no more than this share are balanced by changing few alpha, others by scaling all of one.
_NEARLY_BALANCED = 2.0**-40
_DIGITS = 53
# A sum that is off by no more than this share of itself is as near as it needs to be.
_NEAR = 2.0**-51
# Products between these sizes are split into two numbers without over- or underflow.
_SPLITTABLE = (2.0**-900, 2.0**900)


class Filled(NamedTuple):
    """Variables in their box whose sum is wrong by `rest`, which is rounded once; zero if the sum is right.

    A feasible vector is beta + rest d, with d_i >= 0 and sum(d) = 1: for a positive rest d is in proportion to the room
    above each variable, for a negative one to the room below it. There is always that much room. Nobody needs to form
    this vector: its dual value differs from that of beta by at most |rest| max |f_i| + 1/2 rest^2 max K_ii.
    """

    beta: np.ndarray
    rest: float = 0.0


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
    _feasible.balance(alpha, np.ascontiguousarray(is_positive), _NEARLY_BALANCED)
    return alpha


def boxed(given: np.ndarray, C: float, over: np.ndarray, under: np.ndarray) -> np.ndarray:
    """Variables between -C under and C over, and balanced; what is not a number becomes zero."""
    from softmargin.problems import _feasible

    given = np.ascontiguousarray(given, dtype=np.float64)
    beta = np.empty(given.size)
    _feasible.box(given, C, over, under, _NEARLY_BALANCED, beta)
    return beta


def filled(beta: np.ndarray, weights: np.ndarray, nu: float) -> Filled:
    """Variables between 0 and `weights`, changed such that they sum to nu sum(weights).

    The others stay if a few of those between their bounds can take up the difference.
    """
    beta = np.minimum(beta, weights)
    total = nu * fsum(weights.tolist())
    rest = _rest(beta, weights, nu)
    if abs(rest) > _NEARLY_BALANCED * total:
        if rest < 0.0:
            beta *= total / (total - rest)
        else:
            room = weights - beta
            beta = np.minimum(beta + room * min(1.0, rest / float(room.sum())), weights)
        rest = _rest(beta, weights, nu)
    for _ in range(beta.size):
        if abs(rest) <= _NEAR * total:
            break
        room = weights - beta if rest > 0.0 else beta
        inside = np.where((beta > 0.0) & (beta < weights), room, 0.0)
        row = int(inside.argmax())
        if inside[row] == 0.0:
            row = int(room.argmax())
        wanted = float(beta[row]) + max(rest, -float(beta[row]))
        beta[row] = min(wanted, float(weights[row]))
        rest = _rest(beta, weights, nu)
    return Filled(beta, rest)


def _rest(beta: np.ndarray, weights: np.ndarray, nu: float) -> float:
    """nu sum(weights) - sum(beta), the real number rounded once."""
    products, low = two_product(nu, weights)
    sizes = products[products != 0.0]
    lost = np.any((products == 0.0) & (weights != 0.0))
    if not lost and (sizes.size == 0 or (_SPLITTABLE[0] <= sizes.min() and weights.max() <= _SPLITTABLE[1])):
        return fsum(np.concatenate([products, low, -beta]).tolist())
    exact = Fraction(nu) * sum(map(Fraction, weights.tolist())) - sum(map(Fraction, beta.tolist()))
    return float(exact)


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


def covering(alpha: np.ndarray, upper: np.ndarray, total: float) -> np.ndarray:
    """alpha in the box 0 <= alpha <= upper, raised or lowered until its sum is at least `total`, and hardly more.

    `total` is rounded: the sum is at least a number that is certainly above the real one, unless that takes all of
    `upper`. Then alpha is `upper`.
    """
    wanted = above(total * SLACK)
    found = float(alpha.sum())
    if found > wanted * (1.0 + _NEARLY_BALANCED):
        alpha = alpha * (wanted / found)
    for _ in range(8):
        missing = wanted - below(fsum(alpha.tolist()))
        if missing <= 0.0:
            return alpha
        room = upper - alpha
        all_room = float(room.sum())
        if not all_room > missing:
            break
        if missing <= _NEARLY_BALANCED * wanted:
            # A single row, the one with the least room that is enough: others may be at their bounds, and stay there.
            row = int(np.argmin(np.where(room >= 4.0 * missing, room, np.inf)))
            if room[row] >= 4.0 * missing:
                alpha = alpha.copy()
                alpha[row] += 2.0 * missing + last_digit(float(alpha[row]))
                alpha[row] = min(alpha[row], upper[row])
                continue
        alpha = np.minimum(alpha + room * (missing / all_room), upper)
    return upper.copy()
