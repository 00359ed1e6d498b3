"""Fitted thresholds against all that there are."""

from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest

from plain_python import printed_plain_and_compiled
from softmargin.linalg.thresholds import COSTS, assign_ranks, fit_thresholds

RNG = np.random.default_rng(11)


def error(scores, ranks, weights, thresholds, cost):
    difference = np.abs(assign_ranks(scores, thresholds) - ranks)
    return float(weights @ (difference if cost == "absolute" else difference > 0))


def least_error(scores, ranks, weights, n_ranks, cost):
    """Every ascending choice of places between distinct scores."""
    distinct = np.unique(scores)
    places = [-np.inf, *(0.5 * (a + b) for a, b in pairwise(distinct)), np.inf]
    choices = combinations_with_replacement(places, n_ranks - 1)
    return min(error(scores, ranks, weights, np.array(choice), cost) for choice in choices)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("n_values", [2, 5, 1000])
def test_no_thresholds_do_better(cost, n_values):
    for _ in range(25):
        n, n_ranks = int(RNG.integers(1, 9)), int(RNG.integers(2, 5))
        scores = RNG.integers(0, n_values, n) / 8
        ranks = RNG.integers(0, n_ranks, n)
        weights = RNG.integers(1, 4, n).astype(float)
        thresholds, found = fit_thresholds(scores, ranks, weights, n_ranks, cost)
        assert thresholds.shape == (n_ranks - 1,)
        assert (thresholds[1:] >= thresholds[:-1]).all()
        assert found == error(scores, ranks, weights, thresholds, cost)
        assert found == least_error(scores, ranks, weights, n_ranks, cost)


def test_midway_between_the_scores_that_they_separate():
    scores, ranks = np.array([5.0, 1.0, 2.0, 8.0]), np.array([1, 0, 0, 2])
    thresholds, found = fit_thresholds(scores, ranks, np.ones(4), 3)
    np.testing.assert_array_equal(thresholds, [3.5, 6.5])
    assert found == 0.0


@pytest.mark.parametrize("cost", COSTS)
def test_ranks_that_no_row_gets(cost):
    """Rank 0 and rank 4 are outvoted, rank 2 does not occur."""
    scores = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    ranks = np.array([0, 1, 1, 3, 3, 4])
    thresholds, _ = fit_thresholds(scores, ranks, np.ones(6), 5, cost)
    np.testing.assert_array_equal(thresholds, [-np.inf, 0.5, 0.5, np.inf])
    np.testing.assert_array_equal(assign_ranks(scores, thresholds), [1, 1, 1, 3, 3, 3])


def test_the_measures_differ_where_they_should():
    scores, ranks = np.zeros(5), np.array([0, 0, 1, 2, 2])
    assert assign_ranks(scores, fit_thresholds(scores, ranks, np.ones(5), 3, "absolute")[0])[0] == 1
    weights = np.array([2.0, 2.0, 1.0, 1.0, 1.0])
    assert assign_ranks(scores, fit_thresholds(scores, ranks, weights, 3, "zero_one")[0])[0] == 0


def test_neighbouring_numbers_are_separated():
    low = 1.0
    for _ in range(4):
        high = np.nextafter(low, np.inf)
        thresholds, found = fit_thresholds(np.array([low, high]), np.array([0, 1]), np.ones(2), 2)
        np.testing.assert_array_equal(assign_ranks(np.array([low, high]), thresholds), [0, 1])
        assert found == 0.0
        low = high


@pytest.mark.parametrize("cost", COSTS)
def test_weights_are_repetitions(cost):
    scores, ranks = RNG.integers(0, 30, 60) / 4, RNG.integers(0, 4, 60)
    weights = RNG.integers(0, 3, 60)
    weighted = fit_thresholds(scores, ranks, weights.astype(float), 4, cost)
    repeated = fit_thresholds(np.repeat(scores, weights), np.repeat(ranks, weights), np.ones(weights.sum()), 4, cost)
    np.testing.assert_array_equal(weighted[0], repeated[0])
    assert weighted[1] == repeated[1]


def test_the_absolute_error_is_that_of_each_threshold_alone():
    """|predicted - true| counts the thresholds on whose wrong side a row lies."""
    scores = RNG.standard_normal(400)
    ranks = np.clip(np.round(scores + RNG.standard_normal(400) + 2), 0, 4).astype(int)
    weights = RNG.integers(1, 5, 400).astype(float)
    together = fit_thresholds(scores, ranks, weights, 5)[1]
    alone = sum(fit_thresholds(scores, (ranks > k).astype(int), weights, 2)[1] for k in range(4))
    assert together == alone


def test_the_same_without_the_compiler():
    code = (
        "import numpy as np; from softmargin.linalg.thresholds import fit_thresholds; r = np.random.default_rng(0); "
        "print(*(fit_thresholds(r.integers(0, 9, 30), r.integers(0, 4, 30), r.random(30), 4, c) for c in "
        "('absolute', 'zero_one')))"
    )
    plain, compiled = printed_plain_and_compiled(code)
    assert plain == compiled != ""
