"""Counts of ordered pairs against their definition."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from softmargin.core.threads import Workers
from softmargin.linalg import counting
from softmargin.linalg.counting import Pairs, ordered_pairs, pair_counts


def by_definition(f, y, q, s, margin=1.0, factor=None):
    """net and total from the n x n matrix of pair weights."""
    is_pair = (y[:, None] > y[None, :]) & (q[:, None] == q[None, :])
    weights = is_pair * s[:, None] * s[None, :]
    if factor is not None:
        weights = weights * factor[q][:, None]
    active = weights * (f[:, None] - f[None, :] < margin)
    return active.sum(axis=1) - active.sum(axis=0), active.sum(), weights.sum()


@pytest.fixture(params=["usual", "tiny"])
def sizes(request, monkeypatch):
    """With tiny leaves, chunks and jobs few rows go all the ways that else only many rows go."""
    if request.param == "tiny":
        for name, size in {"_LEAF": 2, "_LEAST_CHUNK": 4, "_CHUNK": 9, "_JOB_SLOTS": 20}.items():
            monkeypatch.setattr(counting, name, size)


def random_problem(rng, n):
    """Ties in scores and targets, differences of exactly 1, several queries in pieces, some of one row."""
    y = rng.integers(0, rng.integers(1, n + 2), n) * 0.5
    f = np.round(2 * rng.standard_normal(n), rng.integers(0, 3)) + rng.choice([0.0, 1e6])
    return f, y, rng.integers(0, rng.integers(1, 6), n)


@pytest.mark.parametrize("margin", [1.0, 0.0])
def test_unit_weights_are_counted_exactly(sizes, margin):
    rng = np.random.default_rng(0)
    for _ in range(60):
        n = int(rng.integers(1, 120))
        f, y, q = random_problem(rng, n)
        net, total, n_pairs = by_definition(f, y, q, np.ones(n), margin)
        found = pair_counts(f, y, q, margin=margin)
        np.testing.assert_array_equal(found.net, net)
        assert found.total == total
        assert Pairs(y, q).n_pairs == n_pairs


def test_weights(sizes):
    rng = np.random.default_rng(1)
    for _ in range(60):
        n = int(rng.integers(1, 120))
        f, y, q = random_problem(rng, n)
        s = rng.integers(0, 3, n) * rng.uniform(0.5, 2.0, n)
        net, total, n_pairs = by_definition(f, y, q, s)
        found = pair_counts(f, y, q, s)
        np.testing.assert_allclose(found.net, net, rtol=1e-12, atol=1e-12 * max(total, 1.0))
        assert found.total == pytest.approx(total, rel=1e-12)
        assert Pairs(y, q, s).n_pairs == pytest.approx(n_pairs, rel=1e-12)


def test_query_weights_and_normalisation(sizes):
    rng = np.random.default_rng(2)
    f, y, q = np.round(rng.standard_normal(100), 1), rng.integers(0, 4, 100) * 1.0, rng.integers(0, 5, 100)
    s, t = rng.uniform(0.5, 2.0, 100), np.array([1.0, 0.0, 2.0, 0.5, 3.0])
    pairs = Pairs(y, q, s, t)
    net, total, n_pairs = by_definition(f, y, q, s, factor=t)
    found = pairs.count(pairs.take(f))
    np.testing.assert_allclose(pairs.spread(found.net), net, rtol=1e-12, atol=1e-12 * total)
    assert found.total == pytest.approx(total, rel=1e-12)
    assert pairs.n_pairs == pytest.approx(n_pairs, rel=1e-12)

    equal = Pairs(y, q, s, t, per_query=True)
    sums = np.array([by_definition(f[q == k], y[q == k], q[q == k], s[q == k])[2] for k in range(5)])
    net, total, n_pairs = by_definition(f, y, q, s, factor=t / sums)
    found = equal.count(equal.take(f))
    np.testing.assert_allclose(equal.spread(found.net), net, rtol=1e-12, atol=1e-12)
    assert found.total == pytest.approx(total, rel=1e-12)
    assert equal.n_pairs == pytest.approx(t.sum(), rel=1e-12) == pytest.approx(n_pairs, rel=1e-12)


scores = st.lists(st.tuples(st.integers(-6, 6), st.integers(0, 5), st.integers(0, 2), st.integers(0, 2)), max_size=40)


@given(scores)
def test_any_small_problem(columns):
    f, y, q, s = (np.array(column) for column in zip(*columns, strict=True)) if columns else (np.empty(0, int),) * 4
    net, total, n_pairs = by_definition(0.5 * f, y, q, s)
    found = pair_counts(0.5 * f, y, q, s)
    np.testing.assert_array_equal(found.net, net)  # weights 0, 1 and 2: still whole numbers
    assert (found.total, Pairs(y, q, s).n_pairs) == (total, n_pairs)


def test_rows_without_a_partner_have_no_slot():
    y, q = np.array([1.0, 2, 3, 3, 1, 5, 0]), np.array([0, 0, 1, 1, 2, 3, 0])
    pairs = Pairs(y, q, np.array([1.0, 1, 1, 1, 1, 1, 0]))
    assert sorted(pairs.rows) == [0, 1]
    none = Pairs(np.ones(4))
    assert none.n_pairs == 0.0
    assert none.rows.size == 0
    assert none.count(np.empty(0)).total == 0.0
    assert none.dot(np.empty(0), np.empty(0)) == 0.0


def test_queries_of_very_different_weights():
    """The weight of a query's pairs must not be a difference of large numbers."""
    y, q = np.array([0.0, 1, 2, 0, 1, 2]), np.array([0, 0, 0, 1, 1, 1])
    s = np.array([1e9, 1e9, 1e9, 1e-9, 1e-9, 1e-9])
    assert Pairs(y, q, s, np.array([0.0, 1.0])).n_pairs == pytest.approx(3e-18, rel=1e-12)
    pairs = Pairs(y, q, s, per_query=True)
    net = pairs.spread(pairs.count(np.zeros(6)).net)
    np.testing.assert_allclose(net, np.array([-2, 0, 2, -2, 0, 2]) / 3, atol=1e-12)


def test_targets_may_be_extreme():
    y = np.array([-1.7e308, 1.7e308, np.inf, np.inf, -np.inf])
    assert Pairs(y).n_pairs == 9


def test_many_rows_of_two_ranks():
    """More than one chunk, and nodes larger than a job, against a binary search."""
    rng = np.random.default_rng(3)
    n = 700_000
    f, y = rng.integers(-4096, 4096, n) / 1024.0, (rng.random(n) < 0.1) * 1.0
    low, high = np.sort(f[y == 0]), np.sort(f[y == 1])
    expected = np.empty(n)
    expected[y == 1] = low.size - low.searchsorted(f[y == 1] - 1.0, side="right")
    expected[y == 0] = -high.searchsorted(f[y == 0] + 1.0, side="left")
    found = pair_counts(f, y)
    np.testing.assert_array_equal(found.net, expected)
    assert found.total == expected[y == 1].sum()


@pytest.mark.parametrize("scale", [2.0**-52, 2.0**-44, 2.0**-30])
def test_scores_that_differ_in_their_last_bits(scale):
    """The sort hides the slot in those bits: what it leaves out of order is put right, or sorted in another way."""
    rng = np.random.default_rng(4)
    n = 3_000
    f, y = 1.0 + rng.integers(0, 4 * n, n) * scale, (rng.random(n) < 0.5) * 1.0
    f[::7] = -f[::7]
    for margin in (0.0, 1000 * scale):
        found = pair_counts(f, y, margin=margin)
        np.testing.assert_array_equal(found.net, by_definition(f, y, np.zeros(n), np.ones(n), margin)[0])


@pytest.mark.parametrize("n_ranks", [2, 5, 100_000])
def test_threads_do_not_change_a_bit(n_ranks):
    rng = np.random.default_rng(5)
    n = 160_000
    f, y, s = rng.standard_normal(n), rng.integers(0, n_ranks, n) * 1.0, rng.uniform(0.5, 2.0, n)
    pairs = Pairs(y, rng.choice([0, 0, 0, 1, 2], n), s)
    f = pairs.take(f)
    one, two = pairs.count(f), pairs.count(f, workers=Workers(2))
    np.testing.assert_array_equal(one.net, two.net)
    assert one.total == two.total
    assert pairs.dot(one.net, f) == pairs.dot(one.net, f, Workers(2))


def test_order_of_pairs():
    rng = np.random.default_rng(6)
    f, y, q = np.round(rng.standard_normal(80), 1), rng.integers(0, 3, 80), rng.integers(0, 3, 80)
    is_pair = (y[:, None] > y) & (q[:, None] == q)
    difference = f[:, None] - f
    expected = [(is_pair & sign).sum() for sign in (difference > 0, difference < 0, difference == 0)]
    assert list(ordered_pairs(f, y, q)) == expected


def test_two_ranks_give_the_area_under_the_roc_curve():
    rng = np.random.default_rng(7)
    y, s = rng.integers(0, 2, 500), rng.uniform(0.0, 2.0, 500)
    f = np.round(y + rng.standard_normal(500), 1)
    concordant, discordant, tied = ordered_pairs(f, y, weights=s)
    area = (concordant + tied / 2) / (concordant + discordant + tied)
    assert area == pytest.approx(roc_auc_score(y, f, sample_weight=s), rel=1e-12)


def test_dot_of_scores_far_from_zero():
    """net adds up to zero in every query, so a common offset must not cost digits."""
    rng = np.random.default_rng(8)
    f, y, q = rng.integers(-50, 50, 200) / 16.0, rng.integers(0, 9, 200) * 1.0, rng.integers(0, 4, 200)
    pairs = Pairs(y, q)
    net = pairs.count(pairs.take(f)).net
    assert pairs.dot(net, pairs.take(f + 2.0**40 * q)) == pairs.dot(net, pairs.take(f))


def test_as_plain_python():
    code = (
        "import numpy as np; from softmargin.linalg import counting as c; c._LEAF, c._LEAST_CHUNK, c._CHUNK = 2, 4, 9;"
        "r = np.random.default_rng(0); f, y = np.round(r.standard_normal(60), 1), r.integers(0, 4, 60);"
        "p = c.pair_counts(f, y, r.integers(0, 3, 60), r.uniform(0, 1, 60)); u = c.pair_counts(f, y);"
        "print(p.net.tolist(), p.total, u.net.tolist(), u.total)"
    )

    def lines(**extra):
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", code], env={**os.environ, **extra}, capture_output=True, check=True
        ).stdout

    assert lines(NUMBA_DISABLE_JIT="1") == lines()
