"""Making the sums of two classes equal, exactly: see `feasible.py`."""

import math

import numpy as np

from softmargin.core.jit import compiled
from softmargin.data._precise import add_product

_DIGITS = 53
_SPLITTABLE = 2.0**-900  # products from here on are split into two numbers without underflow
# Halves of the digits of a number, whose sums over any number of rows fit into an integer of 64 bits.
_HALF, _LOW_HALF = np.int64(26), np.int64((1 << 26) - 1)


@compiled
def box(given, C, over, under, nearly, beta):
    """beta = given between the real products -C under_i and C over_i, and balanced; what is not a number becomes zero.

    `nearly` is that of `balance`.
    """
    is_positive = np.empty(given.size, np.bool_)
    for i in range(given.size):
        is_positive[i] = given[i] > 0.0
        if is_positive[i]:
            beta[i] = _at_most(given[i], C, over[i])
        elif given[i] < 0.0:
            beta[i] = _at_most(-given[i], C, under[i])
        else:
            beta[i] = 0.0
    balance(beta, is_positive, nearly)
    for i in range(given.size):
        beta[i] = math.copysign(beta[i], given[i])


@compiled
def clip(alpha, C, weights):
    """Bring alpha, in place, between zero and the real products C weights_i; what is not a number becomes zero."""
    for i in range(alpha.size):
        alpha[i] = _at_most(alpha[i], C, weights[i]) if alpha[i] > 0.0 else 0.0


@compiled
def _at_most(x, a, b):
    """x, or the largest number that is at most the real product a b."""
    p = a * b
    if x < p or p == 0.0:
        return min(x, p)
    high, rest = add_product(0.0, 0.0, a, b)
    return high if rest >= 0.0 and p >= _SPLITTABLE else np.nextafter(p, 0.0)


@compiled
def balance(alpha, is_positive, nearly):
    """Lower alpha, in place, such that both classes have exactly the same sum.

    If the sums differ by a larger share than `nearly`, all of the heavier class are scaled first. Then all alpha are
    rounded down to multiples of a power of two, which are added up as integers, without error.
    """
    plus = plus_rest = minus = minus_rest = 0.0
    for i in range(alpha.size):
        if is_positive[i]:
            plus, plus_rest = add_product(plus, plus_rest, alpha[i], 1.0)
        else:
            minus, minus_rest = add_product(minus, minus_rest, alpha[i], 1.0)
    least, most = min(plus, minus), max(plus, minus)
    if most == 0.0:
        return
    if most - least > nearly * most:
        for i in range(alpha.size):
            if is_positive[i] == (plus > minus):
                alpha[i] *= least / most
    largest = 0.0
    for i in range(alpha.size):
        largest = max(largest, alpha[i])
    unit = last_digit(largest)
    for i in range(alpha.size):
        alpha[i] = math.floor(alpha[i] / unit) * unit
    # Nearly always once: the sum is rounded only where scaling underflows, so that one class is left with nothing.
    while True:
        high = low = np.int64(0)
        for i in range(alpha.size):
            multiple = np.int64(alpha[i] / unit)
            if is_positive[i]:
                high += multiple >> _HALF
                low += multiple & _LOW_HALF
            else:
                high -= multiple >> _HALF
                low -= multiple & _LOW_HALF
        excess = (float(high) * float(1 << 26) + float(low)) * unit
        if excess == 0.0:
            return
        take_off(alpha, abs(excess), is_positive, excess > 0.0)


@compiled
def take_off(alpha, excess, marks, mark):
    """Lower some of the alpha whose mark is `mark`, in place, by `excess` altogether.

    Only the smallest that is large enough, if there is one: the largest ones may be at their bounds, and stay there.
    """
    while excess > 0.0:
        row = largest = -1
        for i in range(alpha.size):
            if marks[i] == mark and alpha[i] > 0.0:
                if alpha[i] >= excess and (row < 0 or alpha[i] < alpha[row]):
                    row = i
                if largest < 0 or alpha[i] > alpha[largest]:
                    largest = i
        if row < 0:
            row = largest
        if row < 0:  # `excess` was rounded up, and nothing is left
            return
        less = min(alpha[row], excess)
        alpha[row] -= less
        excess -= less


@compiled
def last_digit(x):
    """The power of two that the last digit of x stands for."""
    return math.ldexp(1.0, max(math.frexp(x)[1] - _DIGITS, -1074))
