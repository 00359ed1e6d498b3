"""The hinge risk against its definition."""

import numpy as np
import pytest

from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.problems.hinge import Hinge
from softmargin.problems.intercepts import intercept_named

RNG = np.random.default_rng(4)
X = np.round(RNG.standard_normal((43, 5)), 1)
V = np.where(RNG.random(43) < 0.4, 1.0, -1.0) * np.where(RNG.random(43) < 0.2, 0.0, RNG.uniform(0.3, 2, 43))
INTERCEPTS = ("none", "free", "penalised")


def problem(intercept):
    return Hinge(as_rows(X), V, 0.5, intercept_named(intercept, 2.0))


def risk_by_definition(f, intercept):
    def at(b):
        return np.maximum(0, np.abs(V) - V * (f + b)).sum()

    present = V != 0
    candidates = np.append(np.sign(V[present]) - f[present], 0.0)
    return min(map(at, candidates)) if intercept == "free" else at(0.0)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_risk_and_plane(intercept):
    hinge = problem(intercept)
    for _ in range(20):
        w, other = RNG.standard_normal((2, hinge.n_weights))
        f = hinge.outputs(w)
        assert hinge.risk(f) == pytest.approx(risk_by_definition(f, intercept), rel=1e-12)
        plane = hinge.pattern(f)
        slope = hinge.slope(plane.c)
        assert slope @ w + plane.constant == pytest.approx(hinge.risk(f), rel=1e-10)  # tight where it was made
        f_other = hinge.outputs(other)
        assert slope @ other + plane.constant <= hinge.risk(f_other) + 1e-9  # below R everywhere else
        if intercept == "free":
            assert plane.c.sum() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_the_witness_remembers_the_plane(intercept):
    hinge = problem(intercept)
    planes = [hinge.pattern(hinge.outputs(RNG.standard_normal(hinge.n_weights))) for _ in range(4)]
    weights = np.array([0.5, 0.0, 1.5, 2.0])
    combined = hinge.coefficients([plane.witness for plane in planes], weights)
    np.testing.assert_allclose(combined, sum(g * p.c for g, p in zip(weights, planes, strict=True)), atol=1e-12)
    bytes_kept = planes[0].witness.bits.nbytes
    assert bytes_kept == -(-43 // 8)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_line_minimum(intercept):
    hinge = problem(intercept)
    for _ in range(10):
        w, direction = RNG.standard_normal((2, hinge.n_weights))
        f, df = hinge.outputs(w), hinge.outputs(direction)
        A0, B0 = direction @ direction, w @ direction

        def value(k, f=f, df=df, A0=A0, B0=B0):
            return 0.5 * A0 * k * k + B0 * k + hinge.C * hinge.risk(f + k * df)

        found = hinge.minimise_along(f, df, A0, B0)
        assert found.lo <= found.k <= found.hi
        scan = np.linspace(0, 5, 400)
        best = min(map(value, scan))
        assert value(found.k) <= best + (1e-9 if intercept != "free" else 1e-2 * abs(best))
        assert value(found.k) <= value(0.0) + 1e-12


def test_solution_of_a_penalised_intercept():
    hinge = problem("penalised")
    w = RNG.standard_normal(6)
    solution = hinge.solution(w, hinge.outputs(w), [], np.empty(0))
    np.testing.assert_allclose(X @ solution.w + solution.b, hinge.outputs(w))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("n", [1, 7, 8, 9, 32_768, 70_001])
def test_bits_say_which_rows_a_plane_counts(n, intercept):
    v = RNG.choice([-1.0, 0.0, 1.0, 2.0], n)
    hinge = Hinge(as_rows(RNG.standard_normal((n, 1))), v, 1.0, intercept_named(intercept), workers=Workers(2))
    plane = hinge.pattern(RNG.standard_normal(n))
    counted = plane.c != 0.0
    if plane.witness.row >= 0:
        counted[plane.witness.row] = False
    np.testing.assert_array_equal(plane.witness.bits, np.packbits(counted))
