"""The threshold risks against their definition, a linear programme, and the hinge with a free intercept."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from plain_python import numbers_plain_and_compiled
from softmargin.core.errors import SoftmarginError
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.problems.certificate import HingeJudge
from softmargin.problems.hinge import Hinge
from softmargin.problems.ordinal import MARGINS, Ordinal
from softmargin.problems.ordinal_certificate import OrdinalJudge
from softmargin.solvers.base import run
from softmargin.solvers.cutting_plane.cpa import CPA
from softmargin.solvers.cutting_plane.ocas import OCAS

C = 0.7
_spec = importlib.util.spec_from_file_location("catalogue", Path(__file__).parents[1] / "contract" / "catalogue.py")
_catalogue = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_catalogue)
HARD = [case for case in _catalogue.catalogue() if len(case.y) > 4]


def losses(y, n_thresholds, margins):
    return [
        (i, k) for i, rank in enumerate(y) for k in range(n_thresholds) if margins == "all" or k in (rank - 1, rank)
    ]


def least_risk(f, y, s, margins):
    """min over theta and the slacks, by linear programming."""
    K = y.max()
    pairs = losses(y, K, margins)
    A = np.zeros((len(pairs) + K - 1, K + len(pairs)))
    b = np.zeros(len(A))
    for row, (i, k) in enumerate(pairs):
        z = 1 if y[i] > k else -1
        A[row, k], A[row, K + row], b[row] = z, -1, z * f[i] - 1
    for k in range(K - 1):
        A[len(pairs) + k, [k, k + 1]] = 1, -1
    used = len(A) if margins == "immediate" else len(pairs)
    cost = np.append(np.zeros(K), [s[i] for i, _ in pairs])
    bounds = [(None, None)] * K + [(0, None)] * len(pairs)
    return linprog(cost, A_ub=A[:used], b_ub=b[:used], bounds=bounds).fun


def risk_at(f, theta, y, s, margins):
    return sum(
        s[i] * max(0.0, 1 - (1 if y[i] > k else -1) * (f[i] - theta[k])) for i, k in losses(y, theta.size, margins)
    )


def random_problem(seed, margins, n_ranks=None, n=30):
    """Every other one has weights, some of them 0, every third many ties; the signal differs."""
    rng = np.random.default_rng(seed)
    n_ranks = n_ranks or int(rng.integers(2, 6))
    y = np.append(np.arange(n_ranks), rng.integers(0, n_ranks, n - n_ranks))
    X = rng.standard_normal((n, 3)) + np.outer(y, [rng.choice([0.0, 0.4, 2.0]), 0, 0])
    if seed % 3 == 0:
        X = np.round(X)
    s = np.where(rng.random(n) < 0.2, 0.0, rng.uniform(0.3, 2.0, n)) if seed % 2 else np.ones(n)
    s[:n_ranks] = 1.0
    return Ordinal(as_rows(X), y, s, C, margins), X, y, s, rng


def solve(solver, problem, tol=1e-6):
    judge = OrdinalJudge(problem.rows, problem.ranks, problem.weights, problem.C, problem.margins)
    return run(solver, problem, Stop(tol=tol, max_iter=2000), judge)


@pytest.mark.parametrize("margins", MARGINS)
@pytest.mark.parametrize("seed", range(8))
def test_risk_thresholds_and_planes(margins, seed):
    problem, X, y, s, rng = random_problem(seed, margins)
    for size in (0.0, 0.3, 1.0, 4.0):
        f = X @ (size * rng.standard_normal(3))
        risk, theta = problem.risk(f), problem.best_thresholds(f)
        assert risk == pytest.approx(least_risk(f, y, s, margins), rel=1e-9)
        assert risk == pytest.approx(risk_at(f, theta, y, s, margins), rel=1e-12)
        assert (theta[1:] >= theta[:-1]).all()
        plane = problem.pattern(f)
        assert plane.c @ f + plane.constant == pytest.approx(risk, rel=1e-11)  # tight where it was made
        for _ in range(10):
            other = X @ (rng.exponential(2.0) * rng.standard_normal(3))
            assert plane.c @ other + plane.constant <= problem.risk(other) * (1 + 1e-12)  # below R everywhere else


@pytest.mark.parametrize("seed", range(6))
def test_the_best_thresholds_of_all_margins_ascend_without_being_told(seed):
    """Each is the best intercept of its own hinge problem."""
    problem, X, y, s, rng = random_problem(seed, "all", n_ranks=5)
    f = X @ rng.standard_normal(3)
    theta = problem.best_thresholds(f)
    for k in range(4):
        alone = Ordinal(problem.rows, (y > k).astype(int), s, C)
        assert alone.best_thresholds(f)[0] == theta[k]


def test_pools_are_needed_and_found():
    """Ranks in the wrong order: all thresholds coincide, and the plane's multipliers are positive."""
    f = np.array([4.0, 4.0, 2.0, 0.0, 0.0])
    y, s = np.array([0, 0, 1, 2, 2]), np.ones(5)
    problem = Ordinal(as_rows(f[:, None]), y, s, C, "immediate")
    np.testing.assert_array_equal(problem.best_thresholds(f), [2.0, 2.0])  # alone they would be 5 and -1
    assert problem.risk(f) == pytest.approx(least_risk(f, y, s, "immediate"), rel=1e-12)
    plane = problem.pattern(f)
    alpha = problem.solution(np.ones(1), f, [plane.witness], np.ones(1)).alpha
    beta = (np.where(y[:, None] > np.arange(2), 1.0, -1.0) * alpha).sum(axis=0)
    np.testing.assert_array_equal(beta, [-1.0, 1.0])


@pytest.mark.parametrize("margins", MARGINS)
@pytest.mark.parametrize("n_ranks", [2, 3, 6])
def test_the_witness_remembers_the_plane(margins, n_ranks):
    problem, X, y, s, rng = random_problem(3, margins, n_ranks, n=43)
    K = n_ranks - 1
    planes = [problem.pattern(X @ rng.standard_normal(3)) for _ in range(4)]
    witnesses = [plane.witness for plane in planes]
    weights = np.array([0.5, 0.0, 1.5, 2.0])
    expected = sum(g * p.c for g, p in zip(weights, planes, strict=True))
    np.testing.assert_allclose(problem.coefficients(witnesses, weights), expected, atol=1e-12)
    solution = problem.solution(np.ones(3), X @ np.ones(3), witnesses, weights)
    z = np.where(y[:, None] > np.arange(K), 1.0, -1.0)
    np.testing.assert_allclose(-(z * solution.alpha).sum(axis=1), expected, atol=1e-12)
    assert solution.alpha.sum() == pytest.approx(sum(g * p.constant for g, p in zip(weights, planes, strict=True)))
    assert (solution.alpha <= weights.sum() * s[:, None] * (1 + 1e-12)).all()
    sums = np.cumsum((z * solution.alpha).sum(axis=0))
    if margins == "all":
        np.testing.assert_allclose(sums, 0.0, atol=1e-12)
    else:
        assert (sums <= 1e-12).all()
        assert sums[-1] == pytest.approx(0.0, abs=1e-12)
    assert witnesses[0].bits.nbytes == min(K, 2 if margins == "immediate" else K) * -(-43 // 8)


@pytest.mark.parametrize("margins", MARGINS)
@pytest.mark.parametrize("seed", range(6))
def test_line_search(margins, seed):
    problem, X, _, _, rng = random_problem(seed, margins)
    for size in (0.0, 1.0):  # at 0 all rows are tied
        w, direction = size * rng.standard_normal(3), rng.standard_normal(3)
        f, df = X @ w, X @ direction
        A0, B0 = direction @ direction, w @ direction

        def value(k, f=f, df=df, A0=A0, B0=B0):
            return 0.5 * A0 * k * k + B0 * k + C * problem.risk(f + k * df)

        found = problem.minimise_along(f, df, A0, B0)
        assert 0.0 <= found.lo <= found.k <= found.hi
        least = min(map(value, np.linspace(0, 5, 300)))
        assert value(found.k) <= least + 1e-2 * abs(least)
        around = max(1e-6, 1e-6 * found.hi)
        assert value(found.hi + around) >= value(found.hi)
        assert found.lo == 0.0 or value(found.lo - around) >= value(found.lo)
        again = problem.minimise_along(f + found.k * df, df, A0, B0 + found.k * A0, found.hint)
        without = problem.minimise_along(f + found.k * df, df, A0, B0 + found.k * A0)
        assert again.k == without.k
        f_new, risk, plane = problem.follow(f, df, found, 2.0 * found.k)
        np.testing.assert_array_equal(f_new, f + found.k * df)
        assert risk == problem.risk(f_new)
        np.testing.assert_array_equal(plane.c, problem.pattern(f + 2.0 * found.k * df).c)


@pytest.mark.parametrize("margins", MARGINS)
@pytest.mark.parametrize("seed", range(6))
def test_the_slope_of_a_probe_is_the_right_derivative(margins, seed):
    """Also where many rows are tied at coinciding thresholds."""
    problem, X, _, _, rng = random_problem(3 * seed, margins)
    for w in (np.zeros(3), np.round(rng.standard_normal(3)), rng.standard_normal(3)):
        f, df = X @ w, X @ rng.standard_normal(3)
        theta = problem.best_thresholds(f)
        sums = problem._evaluate(f, df, theta)
        slope = sums.slope + problem._tied_slope(f, df, theta, sums)
        step = 2.0**-24
        assert slope == pytest.approx((problem.risk(f + step * df) - sums.risk) / step, abs=1e-5, rel=1e-5)


@pytest.mark.parametrize("solver", [OCAS(), CPA()], ids=["ocas", "cpa"])
@pytest.mark.parametrize("margins", MARGINS)
@pytest.mark.parametrize("seed", range(4))
def test_solvers_reach_the_gap(solver, margins, seed):
    problem, X, y, s, _ = random_problem(seed, margins, n=60)
    result = solve(solver, problem)
    assert result.status is Status.OPTIMAL
    certificate, solution = result.certificate, result.solution
    assert -1e-14 <= certificate.relative_gap <= 1e-6  # below 0 by rounding only
    objective = 0.5 * solution.w @ solution.w + C * risk_at(X @ solution.w, solution.b, y, s, margins)
    assert certificate.primal == pytest.approx(objective, rel=1e-12)
    assert (np.diff(solution.b) >= 0.0).all()


@pytest.mark.parametrize("margins", MARGINS)
@pytest.mark.parametrize("case", HARD, ids=str)
def test_the_hard_problems_with_four_ranks(case, margins):
    """The catalogue of two-class problems; each class becomes two ranks, which overlap with those of the other."""
    s = np.ones(len(case.y)) if case.s is None else case.s
    mixed = 2 * (case.y > 0) + np.random.default_rng(6).integers(-1, 3, case.y.size)
    y = np.zeros(case.y.size, dtype=np.int64)
    y[s > 0] = np.unique(np.clip(mixed[s > 0], 0, 3), return_inverse=True)[1]
    for strength in (case.Cs[0], case.Cs[-1]):
        result = solve(OCAS(), Ordinal(as_rows(case.X), y, s, strength, margins), tol=1e-3)
        assert result.status is Status.OPTIMAL, f"C={strength:g}: {result.certificate}"


@pytest.mark.parametrize("margins", MARGINS)
def test_two_ranks_are_the_hinge_with_a_free_intercept(margins):
    problem, X, y, s, rng = random_problem(7, margins, 2, n=80)
    v = s * np.where(y > 0, 1.0, -1.0)
    hinge = Hinge(problem.rows, v, C)
    for _ in range(5):
        f = X @ rng.standard_normal(3)
        assert problem.risk(f) == pytest.approx(hinge.risk(f), rel=1e-13)
        np.testing.assert_allclose(problem.pattern(f).c, hinge.pattern(f).c, atol=1e-13)
    ours = solve(OCAS(), problem, tol=1e-9)
    theirs = run(OCAS(), hinge, Stop(tol=1e-9), HingeJudge(problem.rows, v, C))
    assert ours.certificate.primal == pytest.approx(theirs.certificate.primal, rel=2e-9)
    np.testing.assert_allclose(ours.solution.w, theirs.solution.w, atol=1e-4)
    assert ours.solution.b[0] == pytest.approx(-theirs.solution.b, abs=1e-4)
    assert problem.scale == pytest.approx(hinge.scale)


@pytest.mark.parametrize("margins", MARGINS)
def test_weights_are_repetitions(margins):
    _, X, y, _, rng = random_problem(8, margins, 4, n=60)
    s = rng.integers(0, 3, 60)
    s[:4] = 1
    weighted = Ordinal(as_rows(X), y, s.astype(float), C, margins)
    repeated = Ordinal(as_rows(np.repeat(X, s, axis=0)), np.repeat(y, s), np.ones(s.sum()), C, margins)
    assert weighted.scale == repeated.scale
    w = rng.standard_normal(3)
    np.testing.assert_array_equal(
        weighted.best_thresholds(weighted.outputs(w)), repeated.best_thresholds(repeated.outputs(w))
    )
    results = [solve(OCAS(), problem, tol=1e-9).certificate.primal for problem in (weighted, repeated)]
    assert results[0] == pytest.approx(results[1], rel=2e-9)


@pytest.mark.parametrize("margins", MARGINS)
def test_outliers_many_ranks_and_a_far_origin(margins):
    """Outer bins that hold most of the breakpoints change nothing."""
    rng = np.random.default_rng(2)
    f = np.concatenate([rng.standard_normal(3000), 1e9 * rng.standard_cauchy(200)])
    y = np.append(np.clip(np.round(4 * f[:3000] + rng.standard_normal(3000) + 20), 0, 40), rng.integers(0, 41, 200))
    y = np.unique(y, return_inverse=True)[1]
    for scores in (f, f[:3000] + 1e6):
        ranks = np.unique(y[: scores.size], return_inverse=True)[1]
        problem = Ordinal(as_rows(scores[:, None]), ranks, np.ones(scores.size), C, margins)
        sums = problem._evaluate(scores, scores, problem.best_thresholds(scores))
        assert (sums.balance - sums.tied_upper).sum() <= 0.0 <= (sums.balance + sums.tied_lower).sum()
        if margins == "all":
            assert (sums.balance - sums.tied_upper <= 0.0).all()  # the derivatives change sign at the thresholds
            assert (sums.balance + sums.tied_lower >= 0.0).all()
        plane = problem.pattern(scores)
        assert plane.c @ scores + plane.constant == pytest.approx(sums.risk, rel=1e-9)


@pytest.mark.parametrize("margins", MARGINS)
def test_threads_do_not_change_a_bit(margins):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((70_000, 2))
    y = np.clip(np.round(2 * X[:, 0] + rng.standard_normal(70_000) + 3), 0, 6).astype(np.int64)
    s = rng.uniform(0.5, 2.0, y.size)
    results = []
    for workers in (Workers(1), Workers(3)):
        problem = Ordinal(as_rows(X).on(workers), y, s, 1e-4, margins, workers)
        judge = OrdinalJudge(problem.rows, y, s, 1e-4, margins)
        results.append(run(OCAS(), problem, Stop(tol=1e-12, max_iter=3), judge))
        workers.close()
    one, three = (result.solution for result in results)
    np.testing.assert_array_equal(one.w, three.w)
    np.testing.assert_array_equal(one.b, three.b)
    np.testing.assert_array_equal(one.alpha, three.alpha)


def test_the_same_without_the_compiler():
    code = """
import numpy as np
from softmargin.core.stopping import Stop
from softmargin.data.convert import as_rows
from softmargin.problems.ordinal import MARGINS, Ordinal
from softmargin.problems.ordinal_certificate import OrdinalJudge
from softmargin.solvers.base import run
from softmargin.solvers.cutting_plane.ocas import OCAS
rng = np.random.default_rng(0)
X = np.round(rng.standard_normal((40, 2)), 1)
y = np.append(np.arange(4), np.clip(np.round(X[4:, 0] + 1.5), 0, 3)).astype(np.int64)
s = rng.uniform(0.5, 2.0, 40)
for margins in MARGINS:
    result = run(OCAS(), Ordinal(as_rows(X), y, s, 1.0, margins), Stop(tol=1e-6),
                 OrdinalJudge(as_rows(X), y, s, 1.0, margins))
    print(*[float(x).hex() for x in (*result.solution.w, *result.solution.b, result.certificate.dual)])
"""

    plain, compiled = numbers_plain_and_compiled(code)
    assert plain.shape == (2, 6)
    np.testing.assert_allclose(plain, compiled, rtol=1e-5)


@pytest.mark.parametrize(
    ("ranks", "weights", "margins", "message"),
    [
        ([0, 1, 2], [1, 1, 1], "some", "unknown margins 'some'"),
        ([0, 2, 2], [1, 1, 1], "all", "rank 1 has no row with a positive weight"),
        ([0, 1, 2], [0, 1, 1], "immediate", "rank 0 has no row with a positive weight"),
        ([0, 0, 0], [1, 1, 1], "all", "there is only one rank"),
    ],
)
def test_what_is_no_problem(ranks, weights, margins, message):
    with pytest.raises(SoftmarginError, match=message):
        Ordinal(as_rows(np.eye(3)), np.array(ranks), np.array(weights, dtype=float), C, margins)
