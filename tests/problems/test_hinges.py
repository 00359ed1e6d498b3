"""Planes, intercepts and line searches of the hinge risk, judged by enumeration on small problems."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from softmargin.problems import _hinge, line_rows
from softmargin.problems import fixed_intercept as fixed
from softmargin.problems import free_intercept as free
from softmargin.problems.breakpoints import sampled
from softmargin.problems.hinges import Hinges
from softmargin.problems.line_rows import RowsHere, rows_in_region


class Serial:
    def map(self, function, blocks):
        return [function(*block) for block in blocks]


class TwoThreads:
    def map(self, function, blocks):
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda block: function(*block), blocks))


SERIAL = Serial()
NOWHERE = np.empty(0)


def no_bits(c):
    return np.empty(-(-c.size // 8), dtype=np.uint8)


def best_intercept(f, v, workers=SERIAL):
    known, value = free.best_intercept(f, Hinges(v, workers))
    return known.b, value


def best_expecting(f, v, below, above):
    """The same, where the best intercepts of two points to the left and to the right are given as these."""
    intercepts = free._Intercepts(RowsHere(f, f, Hinges(v, SERIAL)))
    intercepts._found = {-1.0: (free.Hint(below, 0.0), None), 1.0: (free.Hint(above, 0.0), None)}
    known, (value, _, _) = intercepts.best(0.0)
    return known.b, value


def free_plane(f, v, workers=SERIAL):
    """Coefficients, and (constant, row, fraction), of the plane at f."""
    c = np.empty_like(f)
    hinges = Hinges(v, workers)
    return c, free.follow(f, f, hinges, 0.0, free.best_intercept(f, hinges)[0], 0.0, NOWHERE, c, no_bits(c))[1:]


def hinge_sum(f, v, b=0.0):
    return float(np.sum(np.maximum(0.0, np.abs(v) - v * (f + b))))


def marginal_risk(F, v):
    """min over b of the risk, for each row of F: the minimum is at a breakpoint."""
    y = np.sign(v)[v != 0]
    F, v = F[:, v != 0], v[v != 0]
    if v.size == 0:
        return np.zeros(len(F))
    b = y - F
    return np.maximum(0.0, np.abs(v) - v * (F[:, None, :] + b[:, :, None])).sum(axis=2).min(axis=1)


def along(k, f, df, v, A0, B0, C):
    k = np.atleast_1d(k)
    h = np.maximum(0.0, np.abs(v) - v * (f + k[:, None] * df))
    return 0.5 * A0 * k * k + B0 * k + C * h.sum(axis=1)


def along_free(k, f, df, v, A0, B0, C):
    k = np.atleast_1d(k)
    return 0.5 * A0 * k * k + B0 * k + C * marginal_risk(f + k[:, None] * df, v)


def candidates(f, df, v, A0, B0, C):
    """Points among which the minimiser of `along` must be: 0, breakpoints, and the zero of every piece."""
    keep = v * df != 0
    t = (np.sign(v[keep]) - f[keep]) / df[keep]
    edges = np.unique(np.concatenate([[0.0], t[t > 0]]))
    if A0 == 0:
        return edges
    inside = np.append(0.5 * (edges[1:] + edges[:-1]), 2 * edges[-1] + 1)
    active = np.abs(v) - v * (f + inside[:, None] * df) > 0
    return np.concatenate([edges, np.maximum(0.0, -(B0 - C * (active * v * df).sum(axis=1)) / A0)])


def small_problem(rng, kind):
    """A few rows; integer outputs make ties, zero weights make absent rows, one sign makes one class."""
    n = int(rng.integers(1, 12))
    v = rng.choice([-1.0, 1.0], n)
    if kind == "ties":
        f, df = rng.integers(-2, 3, n).astype(float), rng.integers(-2, 3, n).astype(float)
    elif kind == "weights":
        f, df = rng.normal(size=n), rng.normal(size=n)
        v *= rng.choice([0.0, 0.5, 1.0, 3.0], n)
    elif kind == "one class":
        f, df, v = rng.normal(size=n), rng.normal(size=n), np.abs(v) * rng.choice([-1.0, 1.0])
    elif kind == "twins":
        f, df, v = (np.repeat(a, 3) for a in (rng.normal(size=n), rng.normal(size=n), v * rng.uniform(0, 2, n)))
    else:
        scale = 10.0 ** rng.uniform(-6, 6, 3)
        f, df, v = (
            scale[0] * rng.normal(size=n),
            scale[1] * rng.normal(size=n),
            scale[2] * v * rng.uniform(0, 2, n),
        )
    return f, df, v


def step_terms(rng, f, df, v):
    """A0, B0, C of very different sizes, with B0 often negative enough that the search leaves 0."""
    C = 10.0 ** rng.uniform(-6, 6)
    A0 = 0.0 if rng.random() < 0.1 else 10.0 ** rng.uniform(-3, 3) * C * max(1e-3, float(np.sum(np.abs(v * df))))
    B0 = 0.0 if A0 == 0.0 else rng.normal() * math.sqrt(A0 * C * max(1e-3, hinge_sum(f, v)))
    return A0, B0, C


KINDS = ["ties", "weights", "one class", "twins", "scales"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_plane_touches_the_risk_and_stays_below_it(kind):
    rng = np.random.default_rng(0)
    for _ in range(300):
        f, df, v = small_problem(rng, kind)
        c = np.empty_like(f)
        value, constant = fixed.follow(f, f, Hinges(v, SERIAL), 0.0, 0.0, NOWHERE, c, no_bits(c))
        assert fixed.risk(f, Hinges(v, SERIAL)) == pytest.approx(value, rel=1e-14)
        scale = 1e-12 * (np.abs(v).sum() + np.abs(v * f).sum() + np.abs(v * df).sum())
        assert abs(value - hinge_sum(f, v)) <= scale
        assert abs(constant + c @ f - value) <= scale
        assert constant + c @ (f + df) <= hinge_sum(f + df, v) + scale


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_intercept_beats_every_breakpoint_and_its_plane_balances(kind):
    rng = np.random.default_rng(1)
    for _ in range(600):
        f, df, v = small_problem(rng, kind)
        b, value = best_intercept(f, v)
        scale = 1e-12 * (np.abs(v).sum() + np.abs(v * f).sum() + np.abs(v * df).sum())
        assert math.isfinite(b)
        assert value == pytest.approx(hinge_sum(f, v, b), rel=1e-12, abs=scale)
        assert value <= marginal_risk(f[None], v)[0] + scale
        c, (constant, row, fraction) = free_plane(f, v)
        assert abs(c.sum()) <= 1e-13 * np.abs(v).sum()
        assert abs(constant + c @ f - value) <= scale
        assert constant + c @ (f + df) <= marginal_risk((f + df)[None], v)[0] + scale
        share = np.divide(-c, v, out=np.zeros_like(c), where=v != 0)
        inexact = np.flatnonzero((share != 0) & (share != 1))
        assert list(inexact) == ([] if row < 0 else [row])
        if row >= 0:
            assert 0 < fraction < 1
            assert share[row] == pytest.approx(fraction, rel=1e-14)
        for ends in ((b - 1e-12, b + 1e-12), (b, b + 1.0), (b - 2.0, b - 1.0), (b, b), (b + 9.0, b + 9.0)):
            assert best_expecting(f, v, *ends)[1] == pytest.approx(value, rel=1e-12, abs=scale)


def test_the_intercept_of_a_flat_piece_is_its_middle_and_of_one_class_its_finite_end():
    assert best_intercept(np.zeros(2), np.array([1.0, -1.0])) == (0.0, 2.0)
    assert best_intercept(np.array([0.0, 3.0]), np.array([2.0, 1.0])) == (1.0, 0.0)
    assert best_intercept(np.array([0.0, 3.0]), np.array([-2.0, -1.0])) == (-4.0, 0.0)
    assert best_intercept(np.array([0.0, 9.0]), np.array([2.0, 0.0])) == (1.0, 0.0)
    assert best_intercept(np.array([5.0]), np.zeros(1)) == (0.0, 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_following_a_line_is_moving_and_cutting_in_one(kind):
    rng = np.random.default_rng(11)
    for _ in range(200):
        f, df, v = small_problem(rng, kind)
        k, k_plane = rng.uniform(0, 2, 2)
        scale = 1e-12 * (np.abs(v).sum() + np.abs(v * f).sum() + np.abs(v * df).sum())
        f_new, c = np.empty_like(f), np.empty_like(f)
        risk, constant = fixed.follow(f, df, Hinges(v, SERIAL), k, k_plane, f_new, c, no_bits(c))
        np.testing.assert_allclose(f_new, f + k * df, rtol=0, atol=1e-14 * (np.abs(f) + np.abs(df)).max())
        assert abs(risk - hinge_sum(f_new, v)) <= scale
        assert abs(constant + c @ (f + k_plane * df) - hinge_sum(f + k_plane * df, v)) <= scale

        known, value = free.best_intercept(f + k * df, Hinges(v, SERIAL))
        risk, constant, _, _ = free.follow(f, df, Hinges(v, SERIAL), k, known, k_plane, f_new, c, no_bits(c))
        np.testing.assert_allclose(f_new, f + k * df, rtol=0, atol=1e-14 * (np.abs(f) + np.abs(df)).max())
        assert abs(risk - value) <= scale
        assert abs(c.sum()) <= 1e-13 * np.abs(v).sum()
        assert abs(constant + c @ (f + k_plane * df) - marginal_risk((f + k_plane * df)[None], v)[0]) <= scale


@pytest.mark.parametrize("kind", KINDS)
def test_the_step_is_the_exact_minimiser(kind):
    rng = np.random.default_rng(2)
    moved = 0
    for _ in range(1200):
        f, df, v = small_problem(rng, kind)
        terms = step_terms(rng, f, df, v)
        k = fixed.minimise_along(f, df, Hinges(v, SERIAL), *terms)
        values = along(np.append(candidates(f, df, v, *terms), [k, 0.0]), f, df, v, *terms)
        rounding = 1e-11 * (abs(values[-1]) + abs(terms[2]) * np.abs(v * (1 + np.abs(f + k * df))).sum())
        assert 0.0 <= k < math.inf
        assert values[-2] <= values.min() + rounding
        moved += k > 0
    assert moved > 300


def test_the_step_of_a_hand_worked_problem():
    one = np.ones(1)
    # the hinge of one row falls with slope -C until k = 1 and stays 0 from there on
    assert fixed.minimise_along(0 * one, one, Hinges(one, SERIAL), 1.0, 0.0, 0.25) == 0.25
    assert fixed.minimise_along(0 * one, one, Hinges(one, SERIAL), 1.0, 0.0, 7.0) == 1.0
    assert fixed.minimise_along(0 * one, one, Hinges(one, SERIAL), 1.0, 7.0, 7.0) == 0.0
    assert fixed.minimise_along(0 * one, 0 * one, Hinges(one, SERIAL), 1.0, -3.0, 7.0) == 3.0
    assert fixed.minimise_along(0 * one, one, Hinges(0 * one, SERIAL), 2.0, -3.0, 7.0) == 1.5
    assert fixed.minimise_along(0 * one, one, Hinges(one, SERIAL), 0.0, 0.0, 1.0) == 1.0
    assert fixed.minimise_along(0 * one, 0 * one, Hinges(one, SERIAL), 0.0, 0.0, 1.0) == 0.0


def large_problem(rng, order, n=200_000):
    """Rows enough for the sample, in an order or with ties that a sample may misjudge."""
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    f = 0.6 * y + rng.normal(size=n)
    df = 0.3 * y + 0.5 * rng.normal(size=n)
    v = y * rng.uniform(0.2, 2.0, n)
    if order == "sorted":
        by = np.argsort((y - f) / df)
        f, df, v = f[by], df[by], v[by]
    elif order == "one block":
        by = np.argsort(-np.abs(f))
        f, df, v = f[by], df[by], v[by]
        df[70_000:] = 0.0
    elif order == "equal":
        f, df = np.where(v > 0, 0.5, -0.5), np.where(v > 0, 1.0, -1.0)
    elif order == "nearly equal":
        f, df = np.where(rng.random(n) < 0.99, 0.25 * y, f), np.where(rng.random(n) < 0.99, 1.5 * y, df)
    elif order == "few rows carry all weight":
        v *= np.where(rng.random(n) < 1e-3, 1e4, 1e-4)
    elif order == "one direction":  # a constant feature: the intercept undoes every step
        df[:] = 0.75
    elif order == "separable":
        f = y * rng.uniform(0.9, 3.0, n)
    elif order == "absent":
        v[rng.random(n) < 0.999] = 0.0
    return f, df, v


ORDERS = [
    "random",
    "sorted",
    "one block",
    "equal",
    "nearly equal",
    "few rows carry all weight",
    "one direction",
    "separable",
    "absent",
]


@pytest.mark.parametrize("order", ORDERS)
def test_many_rows_in_every_order(order):
    rng = np.random.default_rng(3)
    f, df, v = large_problem(rng, order)
    c, _ = free_plane(f + 0.1 * df, v)
    plane = free.PlaneAlong(c, float(c @ df))
    for A0, B0, C in [(1.0, -0.1, 1e-5), (1.0, 0.0, 1.0), (1e-3, -1e-4, 1e-8), (0.0, 0.0, 1.0)]:
        k = fixed.minimise_along(f, df, Hinges(v, SERIAL), A0, B0, C)
        keep = v * df != 0
        t, q = (np.sign(v[keep]) - f[keep]) / df[keep], (v * df)[keep]
        active = np.where(q > 0, t >= k * (1 - 1e-9), t <= k * (1 - 1e-9))
        left = A0 * k * (1 - 1e-9) + B0 - C * q[active].sum()
        active = np.where(q > 0, t >= k * (1 + 1e-9), t <= k * (1 + 1e-9))
        right = A0 * k * (1 + 1e-9) + B0 - C * q[active].sum()
        rounding = 1e-8 * (A0 * k + abs(B0)) + 1e-12 * C * np.abs(q).sum()
        assert right >= -rounding
        assert left <= rounding or k == 0.0

        assert k == fixed.minimise_along(f, df, Hinges(v, TwoThreads()), A0, B0, C)
        if order == "one direction" and B0 == 0.0:
            continue  # the risk is the same for every k: rounding decides where it is smallest
        step = free.minimise_along(f, df, Hinges(v, SERIAL), A0, B0, C, None, plane)
        assert step == free.minimise_along(f, df, Hinges(v, TwoThreads()), A0, B0, C, None, plane)
        k_full, lo, hi, _ = free.minimise_along(f, df, Hinges(v, SERIAL), A0, B0, C)  # without sample and region
        if A0 > 0.0:
            assert step[1] <= hi * (1 + 1e-9)
            assert step[2] >= lo * (1 - 1e-9)
        assert (k_full == 0.0) == (step[0] == 0.0)
    b, value = best_intercept(f, v)
    by = np.argsort(np.sign(v) - f)
    t, rise = (np.sign(v) - f)[by], np.cumsum(np.abs(v)[by]) - v[v > 0].sum()
    assert value == pytest.approx(hinge_sum(f, v, t[np.argmax(rise >= -1e-9 * np.abs(v).sum())]), rel=1e-9)
    assert value == pytest.approx(hinge_sum(f, v, b), rel=1e-12)
    c, (constant, _, _) = free_plane(f, v)
    assert abs(c.sum()) <= 1e-13 * np.abs(v).sum()
    assert constant + c @ f == pytest.approx(value, rel=1e-11)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [200_000, 40_000])
def test_where_a_search_begins_changes_the_time_not_the_minimum(order, n):
    f, df, v = large_problem(np.random.default_rng(8), order, n)
    for weights in (v, np.sign(v)):  # equal weights make a flat piece of the derivative
        b, value = best_intercept(f, weights)
        for ends in ((b - 1e-12, b + 1e-12), (b, b + 1e-3), (b - 2e3, b - 1e3), (b, b), (b + 0.1, b + 0.1)):
            assert best_expecting(f, weights, *ends)[1] == pytest.approx(value, rel=1e-12)
        plain = free.minimise_along(f, df, Hinges(weights, SERIAL), 1.0, -0.1, 1e-5)[:3]
        for k in (0.0, 0.1, 5.0, -30.0):  # planes that are tight here and there
            c, _ = free_plane(f + k * df, weights)
            for rise in (float(c @ df), 0.0, 1e9, math.nan):  # the truth, and lies
                plane = free.PlaneAlong(c, rise)
                for hint in (None, free.Hint(b, 0.0, 0.3)):
                    found = free.minimise_along(f, df, Hinges(weights, SERIAL), 1.0, -0.1, 1e-5, hint, plane)
                    assert found[:3] == pytest.approx(plain, rel=2e-2)


def test_the_number_of_threads_does_not_change_a_bit():
    f, df, v = large_problem(np.random.default_rng(4), "random")
    outs = []
    for workers in (SERIAL, TwoThreads()):
        f_new, f_free, c, d = (np.empty_like(f) for _ in range(4))
        hinges = Hinges(v, workers)
        results = fixed.follow(f, df, hinges, 0.3, 0.7, f_new, c, no_bits(c)), best_intercept(f, v, workers)
        known, _ = free.best_intercept(f + 0.3 * df, hinges)
        results += (free.follow(f, df, hinges, 0.3, known, 0.7, f_free, d, no_bits(d)), fixed.risk(f, hinges))
        outs.append((*results, *(array.tobytes() for array in (f_new, f_free, c, d))))
    assert outs[0] == outs[1]


@pytest.mark.parametrize("kind", KINDS)
def test_the_free_search_encloses_the_minimiser(kind):
    rng = np.random.default_rng(5)
    moved = 0
    for _ in range(250):
        f, df, v = small_problem(rng, kind)
        terms = step_terms(rng, f, df, v)
        k, lo, hi, known = free.minimise_along(f, df, Hinges(v, SERIAL), *terms)
        assert 0.0 <= lo <= hi < math.inf
        assert k in (lo, hi)
        values = along_free(np.array([k, 0.0]), f, df, v, *terms)
        rounding = 1e-10 * (abs(values[1]) + abs(terms[2]) * np.abs(v * (1 + np.abs(f + k * df))).sum())
        at_b = 0.5 * terms[0] * k * k + terms[1] * k + terms[2] * hinge_sum(f + k * df, v, known.b)
        assert values[0] == pytest.approx(at_b, abs=rounding)
        assert values[0] <= values[1] + rounding
        inside = along_free(np.linspace(lo, hi, 20), f, df, v, *terms).min()
        outside = np.concatenate([lo * np.linspace(0, 1, 20), (hi if hi > 0 else 1) * np.geomspace(1, 100, 20)])
        assert inside <= along_free(outside, f, df, v, *terms).min() + rounding + 1e-3 * (values[1] - values[0])
        if hi > 0 and terms[0] > 0:
            assert hi - lo <= 1e-2 * hi
            moved += 1
    assert moved > 20


def test_the_derivative_of_a_probe_is_the_right_derivative_even_where_rows_tie():
    rng = np.random.default_rng(6)
    for _ in range(500):
        f, df, v = small_problem(rng, "ties")
        v *= rng.integers(0, 4, v.size)
        _, (value, _, sum_vdf) = free._Intercepts(RowsHere(f, df, Hinges(v, SERIAL))).best(0.0)
        later = marginal_risk((f + 1e-3 * df)[None], v)[0]
        assert -sum_vdf == pytest.approx((later - value) / 1e-3, abs=1e-9)
        first = free._Rows(free._Columns(f, df, v), (0.0, 0.0, 1.0)).search(free._Region((0.0, 1.0)), 1e-2)[2]
        assert first.slope == pytest.approx(-sum_vdf, abs=1e-9)


def test_the_free_search_takes_few_probes_and_few_of_them_of_all_rows(monkeypatch):
    n = 100_000
    f, df, v = large_problem(np.random.default_rng(7), "random", n=n)
    probed, searched = [], []
    best, few = free._Intercepts.best, free._Rows.search
    monkeypatch.setattr(free._Intercepts, "best", lambda s, k: probed.append(k) or best(s, k))
    monkeypatch.setattr(free._Rows, "search", lambda s, *rest: searched.append(s.columns.f.size) or few(s, *rest))
    c, _ = free_plane(f + 0.1 * df, v)
    for A0 in (1e-2, 1.0, 1e2, 1e4):
        probed.clear()
        free.minimise_along(f, df, Hinges(v, SERIAL), A0, 0.0, 1e-2)
        assert len(probed) <= 12
        probed.clear()
        searched.clear()
        free.minimise_along(f, df, Hinges(v, SERIAL), A0, 0.0, 1e-2, None, free.PlaneAlong(c, float(c @ df)))
        assert not probed
        assert searched[0] == 2 * free.SAMPLE_ROWS
        assert len(searched) <= 3
        assert max(searched) < n / 4


@pytest.mark.parametrize("kind", KINDS)
def test_the_search_of_few_rows_takes_the_same_path_compiled(kind):
    """Both go by the rules of `bracketing`; rounding may take them to other sides of a kink."""
    rng = np.random.default_rng(14)
    n_same = 0
    for _ in range(250):
        f, df, v = small_problem(rng, kind)
        terms = step_terms(rng, f, df, v)
        lo, hi, first = free._Rows(free._Columns(f, df, v), terms).search(free._Region((0.0, 1.0)), 1e-2)
        k, k_lo, k_hi, known = free.minimise_along(f, df, Hinges(v, SERIAL), *terms)
        found = free._better_end(lo, hi)
        assert first.k == 0.0
        assert lo.is_inside
        assert hi.is_inside
        values = along_free(np.array([k, found[0], 0.0]), f, df, v, *terms)
        rounding = 1e-10 * (abs(values[2]) + abs(terms[2]) * np.abs(v * (1 + np.abs(f + k * df))).sum())
        assert values[1] <= values[0] + rounding + 1e-3 * (values[2] - values[0])
        at_b = 0.5 * terms[0] * lo.k**2 + terms[1] * lo.k + terms[2] * hinge_sum(f + lo.k * df, v, lo.b)
        assert lo.value == pytest.approx(at_b, rel=1e-12, abs=rounding)
        n_same += found[:3] == pytest.approx((k, k_lo, k_hi), rel=1e-9) and found[3].b == pytest.approx(
            known.b, abs=1e-9
        )
    assert n_same > 200


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_stay_fixed_are_as_good_as_present(kind):
    """A search of narrowed rows finds what one of all rows finds, or says that it left the region."""
    rng = np.random.default_rng(15)
    n_inside = 0
    for _ in range(250):
        f, df, v = small_problem(rng, kind)
        terms = step_terms(rng, f, df, v)
        _, k_lo, k_hi, known = free.minimise_along(f, df, Hinges(v, SERIAL), *terms)
        if not 0.0 < k_lo < k_hi:
            continue
        wide = rng.choice([0.01, 0.1, 1.0])
        low, high = (known.b - wide,) * 2, (known.b + wide,) * 2
        region = free._Region((0.5 * k_lo, 2.0 * k_hi), low, high)
        columns, sums = rows_in_region(f, df, Hinges(v, SERIAL), region.corners)
        lo, hi, _ = free._Rows(free._Columns(*columns), terms, tuple(sums)).search(region, 1e-2)
        if lo.is_inside and hi.is_inside and lo.slope < 0.0 <= hi.slope:
            n_inside += 1
            k = np.concatenate([[0.0, k_lo, k_hi], np.linspace(lo.k, hi.k, 20)])
            at_zero, *ends, at_lo = (values := along_free(k, f, df, v, *terms))[:4]
            rounding = 1e-9 * (abs(at_zero) + abs(terms[2]) * np.abs(v * (1 + np.abs(f + k_hi * df))).sum())
            assert values[3:].min() <= min(ends) + 1e-3 * abs(at_zero - min(ends)) + rounding
            at_b = 0.5 * terms[0] * lo.k**2 + terms[1] * lo.k + terms[2] * hinge_sum(f + lo.k * df, v, lo.b)
            assert lo.value == pytest.approx(at_b, abs=rounding)
            assert lo.value == pytest.approx(at_lo, abs=rounding)
    assert n_inside > 10 or kind == "one class"  # where b has no limits


def test_a_sample_that_misleads_costs_time_only():
    """All rows of the sample are alike and tell nothing of the others."""
    n, size = 20_000, free.SAMPLE_ROWS
    in_sample = np.zeros(n, dtype=bool)
    in_sample[sampled(np.arange(n), size=size)[0]] = True
    y = np.empty(n)
    for part in (in_sample, ~in_sample):
        y[part] = np.resize([1.0, -1.0], part.sum())
    f = np.where(in_sample, 0.5 * y, np.where(y > 0.0, -4.0, -10.0))
    df = np.where(in_sample, np.where(y > 0.0, 0.0, 0.25), np.where(y > 0.0, 1.0, 0.0))
    plane = free.PlaneAlong(-y, float(-y @ df))
    k, lo, hi, known = free.minimise_along(f, df, Hinges(y, SERIAL), float(n), 0.0, 1.0)
    found = free.minimise_along(f, df, Hinges(y, SERIAL), float(n), 0.0, 1.0, None, plane)
    assert (*found[:3], found[3].b) == pytest.approx((k, lo, hi, known.b), rel=2e-2)


def test_regions_hold_the_minimiser_of_rows_in_groups():
    """Rows of a few kinds, most of them tied: a copy with one row a kind has the same minimiser."""
    rng = np.random.default_rng(11)
    for _ in range(400):
        n, kinds = int(rng.choice([16_384, 20_001, 70_000])), int(rng.choice([2, 5, 50]))
        y = rng.choice([-1.0, 1.0], kinds)
        f, df = 0.3 * y + rng.normal(size=kinds), 0.3 * y + rng.normal(size=kinds) * 10 ** rng.uniform(-2, 1)
        v = y * (rng.uniform(0.1, 2.0, kinds) if rng.random() < 0.5 else 1.0)
        kind = rng.choice(kinds, n, p=rng.dirichlet(np.full(kinds, 0.3)))
        few = f, df, v * np.bincount(kind, minlength=kinds)
        total = float(np.abs(few[1] * few[2]).sum())
        terms = total * 10 ** rng.uniform(-3, 2), rng.normal() * total * 10 ** rng.uniform(-3, 0), 1.0
        many = f[kind], df[kind], v[kind]
        c, _ = free_plane(many[0] + rng.choice([0.0, 0.1, 1.0]) * many[1], many[2])
        k, _, _, known = free.minimise_along(
            *many[:2], Hinges(many[2], SERIAL), *terms, None, free.PlaneAlong(c, float(c @ many[1]))
        )
        k_best = free.minimise_along(*few[:2], Hinges(few[2], SERIAL), *terms, width=1e-6)[0]
        at_zero, at_k, at_best = along_free(np.array([0.0, k, k_best]), *few, *terms)
        rounding = 1e-9 * (abs(at_zero) + np.abs(few[2]).sum())
        assert at_k <= at_best + 0.02 * abs(at_zero - at_best) + rounding
        with_b = 0.5 * terms[0] * k * k + terms[1] * k + hinge_sum(few[0] + k * few[1], few[2], known.b)
        assert with_b == pytest.approx(at_k, abs=rounding)


def test_classes_too_rare_for_the_sample_are_searched_without_a_region(monkeypatch):
    rng = np.random.default_rng(13)
    n = 50_000
    y = np.where(rng.random(n) < 3e-4, 1.0, -1.0)
    f, df = 0.3 * y + rng.normal(size=n), 0.5 * y + rng.normal(size=n)
    c, _ = free_plane(f, y)
    plain = free.minimise_along(f, df, Hinges(y, SERIAL), 1.0, -0.1, 1.0)[:3]
    monkeypatch.setattr(line_rows, "rows_in_region", None)
    plane = free.PlaneAlong(c, float(c @ df))
    assert free.minimise_along(f, df, Hinges(y, SERIAL), 1.0, -0.1, 1.0, None, plane)[:3] == pytest.approx(
        plain, rel=2e-2
    )


@pytest.mark.parametrize("kind", KINDS)
def test_scan_of_an_interval_is_what_breakpoints_say(kind):
    rng = np.random.default_rng(12)
    for _ in range(200):
        f, df, v = small_problem(rng, kind)
        q = v * df
        t = np.full(f.size, np.inf)
        np.divide(np.sign(v) - f, df, out=t, where=q != 0.0)
        ends = np.sort(np.append(t[(t > 0.0) & (t < np.inf)], rng.uniform(0, 2, 2)))
        lo, hi = np.sort(rng.choice(ends, 2))  # often breakpoints themselves
        for interval in [(lo, hi), (0.0, hi), (lo, np.inf)]:
            inside = (t > interval[0]) & (t < interval[1])
            active = np.where(q > 0.0, t >= interval[1], t <= interval[0]) & ~inside
            found_t, found_q = np.empty(f.size), np.empty(f.size)
            count, total = _hinge.scan_steps(f, df, v, 1.0, *interval, np.empty(1024), found_t, found_q)
            np.testing.assert_array_equal(found_t[:count], t[inside])
            np.testing.assert_array_equal(found_q[:count], q[inside])
            assert total == pytest.approx(q[active].sum(), rel=1e-12, abs=1e-12 * np.abs(q).sum())
