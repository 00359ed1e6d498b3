"""The joint risk of several classes and its judge, against the definition."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from softmargin.core.errors import SoftmarginError
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.problems.certificate import HingeJudge
from softmargin.problems.hinge import Hinge
from softmargin.problems.intercepts import Free, NoIntercept, Penalised
from softmargin.problems.joint import Joint, JointSolution
from softmargin.problems.joint_certificate import JointJudge
from softmargin.solvers.base import run
from softmargin.solvers.coordinate.coordinate import CoordinateDescent
from softmargin.solvers.cutting_plane.cpa import CPA
from softmargin.solvers.cutting_plane.ocas import OCAS

INTERCEPTS = [NoIntercept(), Penalised(1.0), Penalised(3.0)]


def example(seed=0, n=40, d=5, n_classes=4, intercept=INTERCEPTS[1], C=0.7, sparse=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    codes = rng.integers(0, n_classes, n)
    codes[:n_classes] = np.arange(n_classes)
    s = rng.choice([0.0, 0.5, 1.0, 3.0], n)
    rows = as_rows(sp.csr_matrix(X) if sparse else X)
    return X, Joint(rows, codes, s, n_classes, C, intercept), JointJudge(rows, codes, s, n_classes, C, intercept)


def parts_of(problem, w):
    parts = [problem.intercept.split(own) for own in w.reshape(problem.n_classes, -1)]
    return np.array([columns for columns, _ in parts]), np.array([b for _, b in parts])


def risk_by_definition(X, problem, w):
    W, b = parts_of(problem, w)
    scores = X @ W.T + b
    own = scores[np.arange(len(X)), problem.codes]
    margins = scores - own[:, None] + (np.arange(problem.n_classes) != problem.codes[:, None])
    return float(problem.weights @ margins.max(axis=1))


@pytest.mark.parametrize("intercept", INTERCEPTS, ids=str)
@pytest.mark.parametrize("sparse", [False, True])
def test_the_risk_is_that_of_the_definition(intercept, sparse):
    X, problem, _ = example(intercept=intercept, sparse=sparse)
    for seed in range(5):
        w = np.random.default_rng(seed).standard_normal(problem.n_weights)
        assert problem.risk(problem.outputs(w)) == pytest.approx(risk_by_definition(X, problem, w), rel=1e-12)


@pytest.mark.parametrize("intercept", INTERCEPTS, ids=str)
def test_planes_touch_the_risk_and_stay_below_it(intercept):
    X, problem, _ = example(intercept=intercept)
    rng = np.random.default_rng(1)
    w = rng.standard_normal(problem.n_weights)
    pattern = problem.pattern(problem.outputs(w))
    a = problem.slope(pattern.c)
    assert a @ w + pattern.constant == pytest.approx(risk_by_definition(X, problem, w), rel=1e-12)
    for _ in range(50):
        other = rng.standard_normal(problem.n_weights) * 10.0 ** rng.uniform(-3, 2)
        assert a @ other + pattern.constant <= risk_by_definition(X, problem, other) + 1e-9
    assert problem.coefficients([pattern.witness], np.array([2.0])) == pytest.approx(2.0 * pattern.c)
    before = rng.standard_normal(pattern.c.size)
    assert problem.slope(pattern.c, before) == pytest.approx(a - problem.slope(before))


def test_the_line_search_finds_the_minimum():
    X, problem, _ = example(n=60)
    rng = np.random.default_rng(2)
    for _ in range(20):
        w, line = rng.standard_normal((2, problem.n_weights))
        f, df = problem.outputs(w), problem.outputs(line)
        A0, B0 = float(line @ line), float(w @ line)

        def value(k, A0=A0, B0=B0, w=w, line=line):
            return 0.5 * A0 * k * k + B0 * k + problem.C * risk_by_definition(X, problem, w + k * line)

        found = problem.minimise_along(f, df, A0, B0)
        steps = np.append(np.linspace(0.0, 4.0, 2001), found.k)
        assert value(found.k) <= min(map(value, steps)) + 1e-5 * value(0.0)
        assert found.lo <= found.k <= found.hi
        f_new, risk, pattern = problem.follow(f, df, found, found.hi)
        assert f_new == pytest.approx(f + found.k * df)
        assert risk == pytest.approx(problem.risk(f_new))
        assert pattern.c @ (f + found.hi * df) + pattern.constant == pytest.approx(problem.risk(f + found.hi * df))


@pytest.mark.parametrize("solver", [OCAS(), CPA(), CoordinateDescent(tol=1e-6)], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("shape", [(40, 5), (12, 60)])  # planes of wide data are kept as outputs
def test_every_solver_ends_at_the_same_value(solver, shape):
    for intercept in INTERCEPTS:
        _, problem, judge = example(n=shape[0], d=shape[1], intercept=intercept)
        best = run(OCAS(), problem, Stop(tol=1e-9), judge).certificate
        result = run(solver, problem, Stop(tol=1e-6, max_iter=20_000), judge)
        assert result.status is Status.OPTIMAL
        assert best.dual <= result.certificate.primal <= best.primal * (1 + 1e-6)


def test_two_classes_are_the_hinge_at_twice_the_C():
    """With w_1 = -w_0 = v / 2 the objective is half of 1/2 |v|^2 + 2 C sum(hinges)."""
    _, problem, judge = example(n_classes=2, intercept=NoIntercept())
    joint = run(OCAS(), problem, Stop(tol=1e-9), judge)
    v = np.where(problem.codes == 1, problem.weights, -problem.weights)
    plain = Hinge(problem.rows, v, 2 * problem.C, NoIntercept())
    found = run(OCAS(), plain, Stop(tol=1e-9), HingeJudge(problem.rows, v, 2 * problem.C, NoIntercept()))
    assert joint.certificate.primal == pytest.approx(0.5 * found.certificate.primal, rel=1e-8)
    assert joint.solution.w[0] == pytest.approx(-joint.solution.w[1])
    assert joint.solution.w[1] - joint.solution.w[0] == pytest.approx(found.solution.w, abs=1e-4)


def test_threads_do_not_change_a_bit():
    rng = np.random.default_rng(3)
    X, codes = rng.standard_normal((140_000, 2)), rng.integers(0, 3, 140_000)
    f, df = rng.standard_normal((2, 3 * len(X)))
    found = []
    for n_threads in (1, 2):
        workers = Workers(n_threads)
        problem = Joint(as_rows(X).on(workers), codes, np.ones(len(X)), 3, 1.0, NoIntercept(), workers)
        found.append((problem.risk(f), problem.minimise_along(f, df, 1e5, -1e5)))
        workers.close()
    assert found[0] == found[1]


@pytest.mark.parametrize("seed", range(20))
def test_dual_vectors_are_made_feasible_exactly(seed):
    _, problem, judge = example(seed, n_classes=5)
    rng = np.random.default_rng(seed)
    alpha = rng.standard_normal((problem.n_rows, 5)) * 10.0 ** rng.uniform(-20, 3, (problem.n_rows, 5))
    alpha[rng.random(alpha.shape) < 0.1] = rng.choice([np.nan, np.inf, -np.inf, 1e300])
    found, sums = judge.feasible(alpha)
    for i in range(problem.n_rows):
        row = [Fraction(value) for value in found[:, i].tolist()]
        assert min(row) >= 0
        assert row[problem.codes[i]] == 0
        assert sum(row) == Fraction(float(sums[i])) <= Fraction(judge.C) * Fraction(float(problem.weights[i]))


def test_a_feasible_dual_vector_stays_as_it_is():
    _, problem, judge = example()
    alpha = np.zeros((problem.n_rows, problem.n_classes))
    alpha[np.arange(problem.n_rows), (problem.codes + 1) % problem.n_classes] = problem.C * problem.weights
    found, _ = judge.feasible(alpha)
    assert (np.abs(found.T - alpha) <= 2.0**-52 * alpha).all()


def test_the_judge_says_what_does_not_fit():
    _, problem, judge = example(intercept=NoIntercept())
    W, b = np.zeros((4, 5)), np.zeros(4)
    alpha = np.zeros((problem.n_rows, 4))
    assert judge(JointSolution(W, b, alpha)).primal == pytest.approx(problem.scale)
    with pytest.raises(SoftmarginError, match="4 classes and 5 features"):
        judge(JointSolution(W[:3], b[:3], alpha))
    with pytest.raises(SoftmarginError, match="dual variables have shape"):
        judge(JointSolution(W, b, alpha[1:]))
    with pytest.raises(SoftmarginError, match="without intercept"):
        judge(JointSolution(W, b + 1.0, alpha))
    with pytest.raises(SoftmarginError, match="no free intercept"):
        replace(problem, intercept=Free())
    with pytest.raises(SoftmarginError, match="numbers from 0 to 2"):
        replace(problem, n_classes=3)
    with pytest.raises(SoftmarginError, match="1 classes"):
        replace(problem, codes=np.zeros_like(problem.codes), n_classes=1)


def test_the_kkt_violation_vanishes_at_the_optimum():
    _, problem, judge = example()
    assert run(OCAS(), problem, Stop(tol=1e-10), judge).certificate.kkt_violation < 1e-4
    nothing = JointSolution(np.zeros((4, 5)), np.zeros(4), np.zeros((problem.n_rows, 4)))
    assert judge(nothing).kkt_violation == 1.0
