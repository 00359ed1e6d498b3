"""Regression and one class as sums of hinges: the problem by hand, and the judge in rational arithmetic."""

from fractions import Fraction
from math import isfinite

import numpy as np
import pytest
from sklearn.svm import LinearSVR, OneClassSVM

from exact.rational import BoxQP, maximise
from softmargin import CPA, OCAS, SGD, Pegasos
from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Solution
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.data.convert import as_rows
from softmargin.problems.certificate import HingeJudge
from softmargin.problems.hinge import Hinge
from softmargin.problems.hinge_targets import OneClass, Tube, TwoClasses
from softmargin.problems.intercepts import Free, NoIntercept, Penalised
from softmargin.solvers.base import run

INTERCEPTS = [Free(), Penalised(), Penalised(0.3), NoIntercept()]
KINDS = ["two classes", "tube", "one class"]


def exact(values):
    return [Fraction(float(value)) for value in values]


class Exact:
    """A problem in rational numbers, from its definition alone."""

    def __init__(self, X, target, C, intercept):
        self.X, self.C, self.intercept = [exact(row) for row in X], Fraction(C), intercept
        self.total = Fraction(0)
        match target:
            case TwoClasses():
                self.v, self.t = exact(target.v), exact(np.sign(target.v))
                self.hinges = list(range(len(X)))
            case Tube():
                s, y, epsilon = exact(target.weights), exact(target.y), Fraction(target.epsilon)
                self.v, self.t = [*s, *(-x for x in s)], [*(a - epsilon for a in y), *(a + epsilon for a in y)]
                self.hinges = [*range(len(X)), *range(len(X))]
            case OneClass():
                self.v, self.t = exact(target.weights), [Fraction(0)] * len(X)
                self.hinges = list(range(len(X)))
                self.total = Fraction(target.nu) * sum(self.v)

    def primal(self, w, b):
        w, b = exact(w), Fraction(b)
        f = [sum(x * y for x, y in zip(row, w, strict=True)) for row in self.X]
        value = sum(x * x for x in w) / 2
        if isinstance(self.intercept, Penalised):
            value += (b / Fraction(self.intercept.scaling)) ** 2 / 2
        loss = sum(max(Fraction(0), v * (t - f[i] - b)) for v, t, i in zip(self.v, self.t, self.hinges, strict=True))
        return value + self.C * (loss + b * self.total)

    def dual(self, beta):
        """The dual value of signed variables that are feasible; one class: scaled down to the right sum."""
        beta, upper = exact(beta), [self.C * abs(v) for v in self.v]
        n = len(self.X)
        assert all(abs(x) <= limit for x, limit in zip(beta, upper, strict=False))
        if len(self.v) == n:
            assert all(x * v >= 0 for x, v in zip(beta, self.v, strict=True))
        if isinstance(self.intercept, Free):
            if self.total:
                assert sum(beta) >= self.total
                beta = [x * self.total / sum(beta) for x in beta]
            assert sum(beta) == self.total
        linear = sum(x * self.t[i] if x > 0 or len(self.v) == n else x * self.t[n + i] for i, x in enumerate(beta) if x)
        columns = zip(*self.X, strict=True)
        square = sum(sum(x * y for x, y in zip(beta, column, strict=True)) ** 2 for column in columns)
        square += (Fraction(self.intercept.feature) * sum(beta)) ** 2
        return linear - square / 2


def hostile(rng, kind):
    """Data with ties, repeated rows, zero weights and sizes of all kinds; now and then near the ends of the numbers."""
    n, d = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    far = 100 if rng.random() < 0.15 else 6
    X = rng.integers(-3, 4, (n, d)).astype(float) if rng.random() < 0.3 else rng.standard_normal((n, d))
    X = X * 10.0 ** rng.uniform(-far, far) + (rng.standard_normal(d) * 10.0 ** rng.uniform(-3, 3))
    s = rng.uniform(0.1, 3.0, n) * (rng.random(n) < 0.9)
    s[0] = 1.0
    C = 10.0 ** rng.uniform(-4, 4)
    intercept = INTERCEPTS[int(rng.integers(len(INTERCEPTS)))]
    if kind == "two classes":
        return X, TwoClasses(s * rng.choice([-1.0, 1.0], n)), C, intercept
    if kind == "tube":
        y = rng.integers(-2, 3, n) * 0.1 if rng.random() < 0.3 else rng.standard_normal(n)
        size = 10.0 ** rng.uniform(-far, far)
        epsilon = float(rng.choice([0.0, 0.1, 1e-9, 3.0])) * size
        return X, Tube(y * size + float(rng.choice([0.0, 1e5])) * size, s, epsilon), C, intercept
    return X, OneClass(s, float(rng.choice([1.0, 0.5, 0.1, 1e-3, rng.uniform(0.01, 1.0), 1.0 - 2.0**-53]))), 1.0, Free()


def candidates(rng, X, target, C, intercept):
    """The solution of a solver, and whatever else may be handed in."""
    rows = as_rows(X)
    n, d = X.shape
    result = run(
        OCAS(), Hinge(rows, target, C, intercept), Stop(tol=1e-9, max_iter=60), HingeJudge(rows, target, C, intercept)
    )
    yield result.solution
    for _ in range(2):
        dual = C * rng.standard_normal(n) * 10.0 ** rng.uniform(-3, 3)
        dual[rng.random(n) < 0.2] = rng.choice([0.0, np.nan, 1e300, -1.0, np.inf])
        w = rng.standard_normal(d) * 10.0 ** rng.uniform(-5, 5)
        b = 0.0 if isinstance(intercept, NoIntercept) else float(rng.standard_normal() * 10.0 ** rng.uniform(-5, 5))
        yield Solution(w, b, dual)
        yield Solution(result.solution.w, result.solution.b, dual)


@pytest.mark.parametrize("kind", KINDS)
def test_certificates_hold_in_rational_arithmetic(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    n_proven = 0
    for _ in range(250):
        X, target, C, intercept = hostile(rng, kind)
        with np.errstate(all="ignore"):
            try:
                found = list(candidates(rng, X, target, C, intercept))
            except SoftmarginError:
                continue  # numbers overflow, and the solver says so
            judge = HingeJudge(as_rows(X), target, C, intercept, 1e-9)
            problem = Exact(X, target, C, intercept)
            values = [(problem.primal(x.w, x.b), judge(x), target.feasible(x.alpha, C, intercept)) for x in found]
        lowest = min(value for value, _, _ in values)
        for value, certificate, beta in values:
            assert certificate.primal >= value
            assert certificate.dual <= max(problem.dual(beta), Fraction(0) if kind != "one class" else -(10**999))
            assert certificate.dual <= lowest
            assert certificate.gap >= 0.0
        n_proven += values[0][1].relative_gap <= 1e-6
    assert n_proven > 200


def exact_optimum(problem):
    """The optimum of a tube or of two classes, from its dual in integers."""
    signs = [1 if v > 0 else -1 for v in problem.v]
    feature = Fraction(problem.intercept.feature)
    vectors = [[*problem.X[i], feature] for i in problem.hinges]
    Q = [
        [z * q * sum(x * y for x, y in zip(a, b, strict=True)) for q, b in zip(signs, vectors, strict=True)]
        for z, a in zip(signs, vectors, strict=True)
    ]
    p = [z * t for z, t in zip(signs, problem.t, strict=True)]
    unit = max(x.denominator for x in p)  # powers of two
    scaled = BoxQP(
        [[x * unit for x in row] for row in Q],
        [int(x * unit) for x in p],
        [problem.C * abs(v) for v in problem.v],
        [signs] if isinstance(problem.intercept, Free) else [],
    )
    found = maximise(scaled)
    return found.lower / unit, found.upper / unit


@pytest.mark.parametrize("intercept", INTERCEPTS, ids=str)
def test_the_exact_optimum_of_a_tube_lies_in_every_bracket(intercept):
    rng = np.random.default_rng(11)
    for _ in range(12):
        n = int(rng.integers(2, 6))
        X = rng.integers(-3, 4, (n, 2)) * 0.1
        target = Tube(rng.standard_normal(n), rng.uniform(0.5, 2.0, n), float(rng.choice([0.0, 0.1])))
        C = float(rng.choice([0.3, 10.0]))
        lower, upper = exact_optimum(Exact(X, target, C, intercept))
        rows = as_rows(X)
        for solver in (OCAS(), CPA()):
            judge = HingeJudge(rows, target, C, intercept, 1e-10)
            result = run(solver, Hinge(rows, target, C, intercept), Stop(tol=1e-10, max_iter=500), judge)
            assert result.status is Status.OPTIMAL
            assert result.certificate.dual <= upper
            assert result.certificate.primal >= lower


def data(n=300, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 1.0
    return X, X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n), rng.uniform(0.2, 2.0, n)


def targets(kind, y, s):
    if kind == "tube":
        return Tube(y, s, 0.2), 0.7, INTERCEPTS
    if kind == "one class":
        return OneClass(s, 0.3), 1.0, [Free()]
    return TwoClasses(s * np.sign(y)), 0.7, INTERCEPTS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(300, 6), (30, 100)], ids=["tall", "wide"])
@pytest.mark.parametrize("solver", [OCAS(), CPA()], ids=["OCAS", "CPA"])
def test_cutting_planes_reach_the_optimum(kind, shape, solver):
    X, y, s = data(*shape)
    target, C, intercepts = targets(kind, y, s)
    rows = as_rows(X)
    for intercept in intercepts:
        values = []
        for tol in (1e-3, 1e-9):
            judge = HingeJudge(rows, target, C, intercept, tol)
            result = run(solver, Hinge(rows, target, C, intercept), Stop(tol=tol, max_iter=2000), judge)
            assert result.status is Status.OPTIMAL
            assert result.certificate.relative_gap <= tol
            values.append(result.certificate)
        assert values[0].dual <= values[1].primal
        assert values[1].dual <= values[0].primal
        assert values[1].kkt_violation < 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_planes_bound_the_risk_and_touch_it(kind):
    X, y, s = data()
    target, C, intercepts = targets(kind, y, s)
    rng = np.random.default_rng(3)
    for intercept in intercepts:
        problem = Hinge(as_rows(X), target, C, intercept)
        points = [problem.outputs(rng.standard_normal(problem.n_weights)) for _ in range(8)]
        for f in points:
            pattern = problem.pattern(f)
            size = 1e-12 * (1.0 + np.abs(pattern.c) @ np.abs(f))
            assert pattern.constant + pattern.c @ f == pytest.approx(problem.risk(f), abs=size)
            for other in points:
                assert pattern.constant + pattern.c @ other <= problem.risk(other) + 1e-12 * np.abs(other).sum()
            made = problem.coefficients([pattern.witness], np.ones(1))
            np.testing.assert_allclose(made, pattern.c, rtol=1e-15, atol=0)


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("n", [200, 20_000])
def test_the_line_search_finds_the_minimum(kind, n):
    X, y, s = data(n)
    target, C, intercepts = targets(kind, y, s)
    rng = np.random.default_rng(4)
    for intercept in intercepts:
        problem = Hinge(as_rows(X), target, C, intercept)
        w = 0.1 * rng.standard_normal(problem.n_weights)
        f = problem.outputs(w)
        pattern = problem.pattern(f)
        dw = -C * problem.slope(pattern.c) - w
        df = problem.outputs(dw)
        for plane in (None, problem_plane(problem, f, df)):
            found = problem.minimise_along(f, df, float(dw @ dw), float(w @ dw), None, plane)

            def value(k, w=w, dw=dw, f=f, df=df, problem=problem):
                return 0.5 * float((w + k * dw) @ (w + k * dw)) + problem.C * problem.risk(f + k * df)

            least = min(value(k) for k in np.linspace(0.0, 2.0 * found.hi, 101))
            assert value(found.k) <= least + 1e-3 * (value(0.0) - least)
            f_new, risk, _ = problem.follow(f, df, found, found.hi)
            np.testing.assert_allclose(f_new, f + found.k * df)
            assert risk == pytest.approx(problem.risk(f_new), rel=1e-9)


def problem_plane(problem, f, df):
    from softmargin.problems.base import PlaneAlong

    c = problem.pattern(f + 1e-3 * df).c
    return PlaneAlong(c, float(c @ df))


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_weight_of_two_is_the_row_twice(kind):
    X, y, _ = data(60)
    twice = np.append(np.arange(60), [3, 7])
    s = np.ones(60)
    s[[3, 7]] = 2.0
    found = []
    for rows, numbers, weights in ((X, y, s), (X[twice], y[twice], np.ones(62))):
        target, C, _ = targets(kind, numbers, weights)
        judge = HingeJudge(as_rows(rows), target, C, Free(), 1e-10)
        found.append(run(OCAS(), Hinge(as_rows(rows), target, C), Stop(tol=1e-10), judge).certificate)
    assert found[0].primal == pytest.approx(found[1].primal, rel=1e-9)


def test_one_class_whose_optimum_is_zero_is_solved():
    """Centred rows: the origin lies among them, so that w = 0 is the best."""
    X, _, _ = data()
    X -= X.mean(axis=0)
    target = OneClass(np.ones(300), 0.5)
    result = run(OCAS(), Hinge(as_rows(X), target, 1.0), Stop(tol=1e-6), HingeJudge(as_rows(X), target, 1.0))
    assert result.status is Status.OPTIMAL
    assert abs(result.certificate.primal) < 1e-6


def test_numbers_that_all_lie_in_the_tube_need_no_weights():
    X, _, s = data()
    for y in (np.full(300, 3.0), np.linspace(-0.1, 0.1, 300), np.zeros(300)):
        for epsilon in (0.0, 0.3):
            target = Tube(y, s, epsilon)
            result = run(OCAS(), Hinge(as_rows(X), target, 1.0), Stop(tol=1e-6), HingeJudge(as_rows(X), target, 1.0))
            assert result.status is Status.OPTIMAL
            assert (result.certificate.primal < 1e-300) == (np.ptp(y) <= 2 * epsilon)


def test_one_class_in_closed_form():
    """Two rows on a line and nu = 1: both dual variables are 1, and w is the sum of the rows."""
    X = np.array([[1.0], [3.0]])
    target = OneClass(np.ones(2), 1.0)
    result = run(OCAS(), Hinge(as_rows(X), target, 1.0), Stop(tol=1e-9), HingeJudge(as_rows(X), target, 1.0))
    assert result.solution.w == pytest.approx([4.0])
    assert result.certificate.primal == pytest.approx(-8.0)
    np.testing.assert_allclose(result.solution.alpha, 1.0)


@pytest.mark.parametrize("has_intercept", [True, False])
def test_linear_regression_is_that_of_scikit_learn(has_intercept):
    X, y, s = data()
    for C, epsilon in ((0.1, 0.0), (1.0, 0.3)):
        theirs = LinearSVR(C=C, epsilon=epsilon, fit_intercept=has_intercept, tol=1e-6, max_iter=1_000_000)
        theirs.fit(X, y, s)
        target, intercept = Tube(y, s, epsilon), Penalised() if has_intercept else NoIntercept()
        judge = HingeJudge(as_rows(X), target, C, intercept, 1e-9)
        ours = run(OCAS(), Hinge(as_rows(X), target, C, intercept), Stop(tol=1e-9), judge)
        b = float(np.ravel(theirs.intercept_)[0])
        assert judge(Solution(theirs.coef_, b, ours.solution.alpha)).relative_gap < 1e-4
        np.testing.assert_allclose(ours.solution.w, theirs.coef_, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.9])
def test_the_linear_one_class_model_is_that_of_scikit_learn(nu):
    X, _, s = data()
    theirs = OneClassSVM(kernel="linear", nu=nu, tol=1e-9).fit(X, sample_weight=s)
    target = OneClass(s, nu)
    judge = HingeJudge(as_rows(X), target, 1.0, Free(), 1e-9)
    ours = run(OCAS(), Hinge(as_rows(X), target, 1.0), Stop(tol=1e-9), judge)
    alpha = np.zeros(300)
    alpha[theirs.support_] = theirs.dual_coef_[0]
    theirs_judged = judge(Solution(theirs.coef_[0], -float(theirs.offset_[0]), alpha))
    assert theirs_judged.primal == pytest.approx(ours.certificate.primal, rel=1e-6)
    assert theirs_judged.relative_gap < 1e-6
    assert -ours.solution.b == pytest.approx(float(theirs.offset_[0]), rel=1e-4)


def test_unsuitable_problems_are_refused():
    rows = as_rows(np.ones((3, 1)))
    for target, C, intercept in (
        (OneClass(np.ones(3), 0.5), 2.0, Free()),
        (OneClass(np.ones(3), 0.5), 1.0, Penalised()),
        (OneClass(np.ones(3), 0.0), 1.0, Free()),
        (OneClass(np.ones(3), 1.5), 1.0, Free()),
    ):
        with pytest.raises(SoftmarginError, match="one-class"):
            Hinge(rows, target, C, intercept)
    tube = Tube(np.arange(3.0), np.ones(3), 0.1)
    for solver in (Pegasos(seed=0), SGD(seed=0)):
        with pytest.raises(SoftmarginError, match="classifiers only"):
            solver.init(Hinge(rows, tube, 1.0))
    with pytest.raises(SoftmarginError, match="5 entries for 3 rows"):
        HingeJudge(rows, tube, 1.0)(Solution(np.zeros(1), 0.0, np.zeros(5)))


@pytest.mark.parametrize("kind", KINDS)
def test_another_C_goes_on_with_the_planes(kind):
    X, y, s = data()
    target, C, _ = targets(kind, y, s)
    problem, judge = Hinge(as_rows(X), target, C), HingeJudge(as_rows(X), target, C)
    state = run(OCAS(), problem, Stop(tol=1e-6), judge).state
    again = run(OCAS(), problem, Stop(tol=1e-6), judge, start=state)
    assert again.counts["iterations"] == state.iterations
    if kind == "one class":
        return
    other, judge = Hinge(as_rows(X), target, 2 * C), HingeJudge(as_rows(X), target, 2 * C)
    result = run(OCAS(), other, Stop(tol=1e-6), judge, start=state)
    assert result.status is Status.OPTIMAL
    assert isfinite(result.certificate.primal)


def test_the_number_of_threads_does_not_change_a_bit():
    from softmargin.core.threads import Workers

    X, y, s = data(70_000, 3)
    for kind in KINDS[1:]:
        target, C, _ = targets(kind, y, s)
        found = []
        for n in (1, 2):
            workers = Workers(n)
            rows = as_rows(X, workers)
            problem = Hinge(rows, target, C, Free(), workers)
            result = run(OCAS(), problem, Stop(tol=1e-4, max_iter=10), HingeJudge(rows, target, C), workers=workers)
            found.append((result.solution.w.tobytes(), result.solution.b, result.solution.alpha.tobytes()))
            workers.close()
        assert found[0] == found[1]
