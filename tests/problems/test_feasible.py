"""Dual vectors are made feasible exactly, and lose next to nothing by it."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from softmargin.problems.feasible import balanced, clipped

SIZES = st.floats(0.0, 1e308)
NUMBERS = st.one_of(st.floats(0.0, 1.0), st.floats(0.0, 1e300), st.floats(0.0, 1e-290), st.just(0.1))


@given(st.lists(st.tuples(NUMBERS, st.booleans()), min_size=1, max_size=30))
@example([(8.926843387992523e-291, True), (7.676354637141779e-291, True), (6.721049384789344e33, False)])
def test_both_classes_have_exactly_the_same_sum(rows):
    alpha, positive = (np.array(column) for column in zip(*rows, strict=True))
    found = balanced(alpha, positive)
    assert ((found >= 0.0) & (found <= alpha)).all()
    assert sum(map(Fraction, found[positive])) == sum(map(Fraction, found[~positive]))
    np.testing.assert_array_equal(balanced(found, positive), found)


def test_what_rounding_left_is_taken_off_few():
    free = np.random.default_rng(0).uniform(0, 0.1, 40)
    alpha = np.concatenate([free, free * (1 + 1e-15), np.full(60, 0.1)])
    positive = np.arange(140) < 40
    positive[80::2] = True
    found = balanced(alpha, positive)
    np.testing.assert_allclose(found, alpha, rtol=0, atol=1e-14)
    assert np.count_nonzero(found[80:] != 0.1) <= 1  # those at their bound stay there


def test_the_box_is_that_of_real_arithmetic():
    weights = np.random.default_rng(1).uniform(0, 3, 1000)
    found = clipped(np.full(1000, np.inf), weights, 0.1)
    assert all(Fraction(a) <= Fraction(0.1) * Fraction(s) for a, s in zip(found, weights, strict=True))
    np.testing.assert_allclose(found, 0.1 * weights, rtol=4e-16)
    np.testing.assert_array_equal(clipped(np.array([np.nan, -1.0]), np.ones(2), 1.0), 0.0)


@given(SIZES, SIZES)
def test_the_end_of_the_box_is_below_the_real_one_by_less_than_a_digit(C, weight):
    [found] = clipped(np.array([np.inf]), np.array([weight]), C)
    exact = Fraction(C) * Fraction(weight)
    if exact >= Fraction(2) ** 1024:
        assert found > 1e308
        return
    assert Fraction(found) <= exact
    assert exact < Fraction(math.nextafter(math.nextafter(found, math.inf), math.inf))
