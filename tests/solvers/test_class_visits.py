"""Coordinate descent on several classes: the exact step on a row, and states."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from softmargin.core.stopping import Stop
from softmargin.data.convert import as_rows
from softmargin.problems.intercepts import NoIntercept, Penalised
from softmargin.problems.joint import Joint
from softmargin.problems.joint_certificate import JointJudge
from softmargin.solvers.base import run
from softmargin.solvers.coordinate import _class_visits
from softmargin.solvers.coordinate.coordinate import CoordinateDescent


@pytest.mark.parametrize("seed", range(30))
def test_a_step_minimises_over_the_variables_of_a_row(seed):
    rng = np.random.default_rng(seed)
    n, own, limit, q = int(rng.integers(2, 7)), 0, float(rng.uniform(0.1, 2)), float(rng.uniform(0.1, 5))
    start = -rng.random(n) * limit / n * (rng.random(n) < 0.5)
    start[own] = -start[1:].sum()
    G = rng.standard_normal(n) * 3
    bounds = [(None, limit if k == own else 0.0) for k in range(n)]

    def value(v):
        return 0.5 * q * ((v - start) ** 2).sum() + G @ (v - start)

    beta, change = start.copy(), np.zeros(n)
    _class_visits.minimise_row(beta, 0, np.arange(n), G, own, limit, q, np.empty(n), change)
    assert beta == pytest.approx(start + change)
    assert abs(beta.sum()) <= 1e-12
    assert beta[own] <= limit
    assert (beta[1:] <= 0).all()
    other = minimize(value, start, bounds=bounds, constraints={"type": "eq", "fun": np.sum}, method="SLSQP")
    assert value(beta) <= other.fun + 1e-7
    room, gap, _ = _class_visits.room_of(beta, 0, np.arange(n), G + q * (beta - start), own, limit)
    assert room >= -1e-9
    assert gap >= -1e-9


def test_a_row_of_zeros_goes_all_the_way():
    beta, change, every = np.zeros(3), np.zeros(3), np.arange(3)
    _class_visits.minimise_row(beta, 0, every, np.array([0.0, 1.0, 1.0]), 0, 2.0, 0.0, np.empty(3), change)
    assert beta.tolist() == [2.0, -2.0, 0.0]
    _class_visits.minimise_row(beta, 0, every, np.array([0.0, -1.0, -1.0]), 0, 2.0, 0.0, np.empty(3), change)
    assert beta.tolist() == [0.0, 0.0, 0.0]


def test_classes_far_below_are_closed_and_steps_on_the_others_are_as_good():
    n, own, limit, q = 6, 2, 1.0, 2.0
    G = np.array([0.5, -9.0, 0.0, 0.7, -9.0, -8.0])
    order, ordered = np.arange(n), G.copy()
    n_open = _class_visits.close_classes(np.zeros(n), 0, order, n, ordered, own, limit, -5.0)
    assert sorted(order[:n_open]) == [0, 2, 3]
    assert np.array_equal(ordered, G[order])
    few, all_of_them = np.zeros(n), np.zeros(n)
    _class_visits.minimise_row(few, 0, order[:n_open], ordered, own, limit, q, np.empty(n), np.empty(n))
    _class_visits.minimise_row(all_of_them, 0, np.arange(n), G, own, limit, q, np.empty(n), np.empty(n))
    assert few == pytest.approx(all_of_them)
    assert _class_visits.close_classes(few, 0, order, n, ordered, own, limit, 9.0) < n
    closed = [int(k) for k in order if few[k] == (limit if k == own else 0.0)]
    assert set(order[_class_visits.close_classes(few, 0, order, n, ordered, own, limit, 9.0) :]) == set(closed)


@pytest.fixture
def problem_and_judge():
    rng = np.random.default_rng(0)
    rows = as_rows(rng.standard_normal((80, 6)))
    given = rng.integers(0, 5, 80), rng.choice([0.0, 1.0, 2.0], 80), 5, 0.5, Penalised(1.0)
    return Joint(rows, *given), JointJudge(rows, *given)


def test_a_state_goes_on_as_it_would_have(problem_and_judge):
    problem, judge = problem_and_judge
    solver = CoordinateDescent(tol=1e-6)
    whole = run(solver, problem, Stop(tol=1e-6), judge)
    half = run(solver, problem, Stop(tol=1e-6, max_iter=5), judge)
    rest = run(solver, problem, Stop(tol=1e-6), judge, start=half.state)
    assert np.array_equal(whole.solution.w, rest.solution.w)


def test_a_state_at_another_C_keeps_its_variables_in_their_ranges(problem_and_judge):
    problem, judge = problem_and_judge
    solver = CoordinateDescent(tol=1e-4)
    first = run(solver, problem, Stop(tol=1e-4), judge)
    other, other_judge = replace(problem, C=0.05), replace(judge, C=0.05)
    state = solver.init(other, first.state)
    beta = state.beta.reshape(80, 5)
    own = beta[np.arange(80), problem.codes]
    assert (own <= 0.05 * problem.weights).all()
    assert np.abs(beta.sum(axis=1)).max() < 1e-12
    cold, warm = (
        run(solver, other, Stop(tol=1e-4), other_judge),
        run(solver, other, Stop(tol=1e-4), other_judge, start=first.state),
    )
    assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=1e-3)


def test_passes_count_rows_and_not_variables(problem_and_judge):
    problem, judge = problem_and_judge
    result = run(CoordinateDescent(), problem, Stop(tol=1e-3), judge)
    assert result.counts["passes"] <= result.counts["epochs"] + 3 * result.counts["iterations"] + 1


def test_storage_by_columns_gives_the_same(problem_and_judge):
    problem, judge = problem_and_judge
    X = problem.rows.native()
    other = replace(problem, rows=as_rows(np.asfortranarray(X)), intercept=NoIntercept())
    plain = replace(problem, intercept=NoIntercept())
    judge = replace(judge, intercept=NoIntercept())
    found = [run(CoordinateDescent(), each, Stop(tol=1e-3), judge).solution.w for each in (plain, other)]
    assert found[0] == pytest.approx(found[1])
