"""Bounds of rounding errors, held against exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmargin.linalg import rounding

NUMBERS = st.floats(-1e100, 1e100, allow_subnormal=False).filter(lambda x: x == 0.0 or abs(x) > 1e-100)


@given(NUMBERS, NUMBERS)
def test_sums_and_products_of_two_are_exact(a, b):
    assert sum(map(Fraction, rounding.two_sum(a, b))) == Fraction(a) + Fraction(b)
    assert sum(map(Fraction, rounding.two_product(a, b))) == Fraction(a) * Fraction(b)


@given(st.lists(NUMBERS, min_size=1, max_size=20))
def test_norms_and_sums_are_upper_bounds(numbers):
    x = np.array(numbers)
    square = sum(Fraction(number) ** 2 for number in numbers)
    assert Fraction(rounding.square_above(x)) >= square
    assert Fraction(rounding.norm_above(x)) ** 2 >= square
    assert Fraction(rounding.sum_above(np.abs(x))) >= sum(abs(Fraction(number)) for number in numbers)


def test_bounds_of_no_number_are_infinite():
    assert rounding.above(np.nan) == math.inf
    assert rounding.below(np.nan) == -math.inf
    assert rounding.gamma(2**60) == math.inf


@pytest.mark.parametrize("k", [1, 10, 10**6])
def test_gamma_is_an_upper_bound_that_is_hardly_larger(k):
    exact = Fraction(k, 2**53) / (1 - Fraction(k, 2**53))
    assert exact <= Fraction(rounding.gamma(k)) <= exact * (1 + Fraction(1, 2**40))
