"""Squared losses: the best intercept, the search along a line, and the judge against exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from softmargin import SoftmarginError
from softmargin.core.result import Solution
from softmargin.data.convert import as_rows
from softmargin.problems.certificate import HingeJudge
from softmargin.problems.intercepts import Free, NoIntercept, Penalised
from softmargin.problems.squared import Squared
from softmargin.problems.squared_targets import SquaredClasses, SquaredTube

INTERCEPTS = {"free": Free(), "penalised": Penalised(0.7), "none": NoIntercept()}


def made(seed, kind, n=7, d=2):
    """Rows and a target, with weights over some decades, one of them zero."""
    rng = np.random.default_rng(seed)
    X, s = rng.standard_normal((n, d)), 10.0 ** rng.uniform(-2, 2, n)
    s[-1] = 0.0
    if kind == "classes":
        return X, SquaredClasses(s * np.where(rng.random(n) < 0.5, -1.0, 1.0))
    return X, SquaredTube(rng.standard_normal(n) * 3.0, s, 0.3)


def risk(target, f, b):
    if isinstance(target, SquaredClasses):
        losses = np.maximum(0.0, 1.0 - np.sign(target.v) * (f + b))
    else:
        losses = np.maximum(0.0, np.abs(target.y - f - b) - target.epsilon)
    return float(target.row_weights @ losses**2)


@pytest.mark.parametrize("kind", ["classes", "tube"])
@pytest.mark.parametrize("seed", range(15))
def test_the_best_intercept(seed, kind):
    X, target = made(seed, kind)
    problem = Squared(as_rows(X), target, 1.0)
    f = problem.outputs(np.ones(2))
    best = minimize_scalar(lambda b: risk(target, X @ np.ones(2), b), bracket=(-20, 20), tol=1e-12).fun
    assert problem.risk(f) == pytest.approx(best, rel=1e-8, abs=1e-12)
    b = problem.solution_of(np.ones(2), f, np.zeros(7)).b
    assert risk(target, X @ np.ones(2), b) == pytest.approx(best, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e9])
def test_the_best_intercept_far_from_zero(offset):
    X, target = made(3, "tube")
    moved = SquaredTube(target.y + offset, target.weights, 0.3)
    near, far = (Squared(as_rows(X), t, 1.0).risk(np.zeros(14)) for t in (target, moved))
    assert far == pytest.approx(near, rel=1e-6)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("kind", ["classes", "tube"])
@pytest.mark.parametrize("seed", range(10))
def test_the_best_point_of_a_line(seed, kind, intercept):
    X, target = made(seed, kind)
    problem = Squared(as_rows(X), target, 2.0, INTERCEPTS[intercept])
    rng = np.random.default_rng(100 + seed)
    w, line = rng.standard_normal((2, problem.n_weights))
    f, df = problem.outputs(w), problem.outputs(line)

    def value(k):
        point = w + k * line
        return 0.5 * float(point @ point) + 2.0 * problem.risk(f + k * df)

    found = problem.minimise_along(f, df, float(line @ line), float(w @ line)).k
    assert found >= 0.0
    best = min(value(k) for k in np.concatenate([[0.0], np.geomspace(1e-4, 1e2, 4000)]))
    assert value(found) <= best * (1 + 1e-9)


def test_no_loss_at_all_is_the_middle():
    problem = Squared(as_rows(np.zeros((2, 1))), SquaredTube(np.array([1.0, 3.0]), np.ones(2), 5.0), 1.0)
    assert problem.solution_of(np.zeros(1), np.zeros(4), np.zeros(2)).b == 2.0
    one_class = Squared(as_rows(np.zeros((2, 1))), SquaredClasses(np.ones(2)), 1.0)
    assert one_class.solution_of(np.zeros(1), np.zeros(2), np.zeros(2)).b == 1.0
    none = Squared(as_rows(np.zeros((2, 1))), SquaredClasses(np.zeros(2)), 1.0)
    assert none.solution_of(np.zeros(1), np.zeros(2), np.zeros(2)).b == 0.0


def test_data_out_of_reach_are_refused():
    class Products:
        n_rows, n_cols = 3, 2

    with pytest.raises(
        SoftmarginError, match="offer products with X only, as those of a store do, but squared losses are minimised by"
    ):
        Squared(Products(), SquaredClasses(np.ones(3)), 1.0)


def exact(values):
    return [Fraction(float(value)) for value in values]


def dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def exact_values(X, target, C, intercept, w, b, beta):
    """The primal value of the model and the dual value of beta, which must be feasible, without any rounding."""
    rows, w, b, beta, C = [exact(x) for x in X], exact(w), Fraction(b), exact(beta), Fraction(C)
    s = exact(target.row_weights)
    primal, dual = dot(w, w) / 2, Fraction(0)
    for i, x in enumerate(rows):
        if isinstance(target, SquaredClasses):
            y, epsilon = Fraction(float(np.sign(target.v[i]))), Fraction(0)
            loss = max(Fraction(0), 1 - y * (dot(w, x) + b))
            assert beta[i] * y >= 0
        else:
            y, epsilon = Fraction(float(target.y[i])), Fraction(target.epsilon)
            loss = max(Fraction(0), abs(y - dot(w, x) - b) - epsilon)
        primal += C * s[i] * loss**2
        assert s[i] > 0 or beta[i] == 0
        if s[i]:
            dual += y * beta[i] - epsilon * abs(beta[i]) - beta[i] ** 2 / (4 * C * s[i])
    sums = [dot(beta, column) for column in zip(*rows, strict=True)]
    dual -= dot(sums, sums) / 2
    if intercept.is_free:
        assert sum(beta) == 0
    elif intercept.feature:
        scaling = Fraction(intercept.scaling)
        primal += (b / scaling) ** 2 / 2
        dual -= (scaling * sum(beta)) ** 2 / 2
    return primal, dual


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("kind", ["classes", "tube"])
def test_the_judge_charges_every_rounding(kind, intercept):
    """Any model and any dual vector: hostile scales of rows, C, weights, and of the candidate itself."""
    kept = INTERCEPTS[intercept]
    for seed in range(150):
        rng = np.random.default_rng(seed)
        X, target = made(seed, kind)
        X = X * 10.0 ** rng.integers(-8, 9) + rng.choice([0.0, 1e4])
        C = 10.0 ** rng.uniform(-10, 10) if seed % 3 else 10.0 ** rng.uniform(-305, -290)
        w, b = rng.standard_normal(2) * 10.0 ** rng.integers(-8, 3), float(rng.standard_normal())
        b = b if intercept != "none" else 0.0
        given = rng.standard_normal(7) * 10.0 ** rng.integers(-6, 4) * min(C, 1.0)
        given[:2] = np.nan, np.inf
        judge = HingeJudge(as_rows(X), target, C, kept, tol=1e-9)
        with np.errstate(all="ignore"):
            found = judge(Solution(w, b, given))
            beta = target.feasible(given, C, kept)
        primal, dual = exact_values(X, target, C, kept, w, b, beta)
        assert found.primal >= primal
        assert found.dual <= max(dual, 0)
        assert found.rounding >= 0.0
        if abs(np.log10(C)) < 11:
            assert found.primal <= primal * (1 + Fraction(1, 10**8)) + Fraction(1, 10**300), seed
