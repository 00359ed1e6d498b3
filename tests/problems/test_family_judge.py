"""The judge of regression and one class against exact rational arithmetic, on hundreds of small hostile problems."""

from fractions import Fraction

import numpy as np
import pytest

from softmargin.core.result import Solution
from softmargin.kernels.cached import WholeMatrix
from softmargin.problems.feasible import exact_total, filled
from softmargin.problems.kernel_certificate import KernelJudge
from softmargin.problems.row_loss import RowLoss

NO_W = np.empty(0)


def exact(values):
    return [Fraction(float(value)) for value in values]


def dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def objective(K, loss, beta, b):
    """The primal value of a stored model, without any rounding."""
    K, beta, b = [exact(row) for row in K], exact(beta), Fraction(float(b))
    f = [dot(row, beta) for row in K]
    C, epsilon, nu = Fraction(loss.C), Fraction(loss.epsilon), Fraction(loss.nu)
    over, under = exact(loss.over), exact(loss.under)
    value = dot(beta, f) / 2 + b * nu * sum(over)
    for t, f_i, o, u in zip(exact(loss.target), f, over, under, strict=True):
        value += C * (o * max(Fraction(0), t - epsilon - f_i - b) + u * max(Fraction(0), f_i + b - t - epsilon))
    return value


def dual_value(K, loss, beta):
    """The dual value of fractions beta, which must be feasible."""
    K, C, epsilon = [exact(row) for row in K], Fraction(loss.C), Fraction(loss.epsilon)
    over, under = exact(loss.over), exact(loss.under)
    assert all(-C * u <= x <= C * o for x, o, u in zip(beta, over, under, strict=True))
    assert sum(beta) == Fraction(loss.nu) * sum(over)
    curvature = dot(beta, [dot(row, beta) for row in K])
    return dot(exact(loss.target), beta) - epsilon * sum(map(abs, beta)) - curvature / 2


def feasible_fraction(loss, beta):
    """What `RowLoss.feasible` stands for, as fractions."""
    beta = exact(loss.feasible(beta))
    if not loss.nu:
        return beta
    total = Fraction(loss.nu) * sum(exact(loss.over))
    assert sum(beta) >= total
    return [x * total / sum(beta) for x in beta]


def problem(rng, kind):
    """A kernel matrix of integers times a power of two, which is exactly positive semi-definite, and a loss."""
    n = int(rng.integers(2, 8))
    A = rng.integers(-4, 5, (n, int(rng.integers(1, n + 2)))).astype(float)
    K = A @ A.T * 2.0 ** int(rng.integers(-30, 31))
    s = 10.0 ** rng.uniform(-rng.integers(0, 9), rng.integers(0, 9), n)
    if rng.random() < 0.3:
        s = np.ones(n)
    if kind == "one class":
        return K, RowLoss.one_class(s, float(rng.choice([0.1, 0.5, 1.0, rng.uniform(1e-9, 1.0), 1 / 3])))
    y = rng.standard_normal(n) * 10.0 ** rng.integers(-9, 10) + rng.choice([0.0, 1e9, -1e-9])
    epsilon = float(rng.choice([0.0, 0.1, abs(y).mean() * rng.random()]))
    return K, RowLoss.regression(y, s, 10.0 ** rng.uniform(-9, 9), epsilon)


def candidate(rng, K, loss):
    """Coefficients of every kind: wild, in the box, at its bounds; and an intercept."""
    n = len(K)
    beta = rng.choice([loss.lo, loss.hi, np.zeros(n), loss.hi * rng.random(n), loss.lo * rng.random(n)])
    if rng.random() < 0.3:
        beta = beta + rng.standard_normal(n) * 10.0 ** rng.integers(-12, 12)
    f = K @ beta
    wish = loss.target - f
    return beta, float(rng.choice([wish[0], np.median(wish), 0.0, 1e9 * rng.standard_normal()]))


@pytest.mark.parametrize("kind", ["regression", "one class"])
@pytest.mark.parametrize("seed", range(5))
def test_the_bounds_hold_in_real_arithmetic(kind, seed):
    rng = np.random.default_rng([seed, kind == "regression"])
    for _ in range(60):
        K, loss = problem(rng, kind)
        judge = KernelJudge(WholeMatrix(K, 1e9), loss)
        beta, b = candidate(rng, K, loss)
        certificate = judge(Solution(NO_W, b, beta))
        primal = objective(K, loss, beta, b)
        dual = dual_value(K, loss, feasible_fraction(loss, beta))
        assert certificate.primal >= primal
        lower = max(dual, Fraction(0)) if loss.is_nonnegative else dual
        assert certificate.dual <= lower
        assert certificate.gap >= primal - lower
        # and they are no looser than rounding makes them
        reach = np.abs(K) @ np.abs(beta) + np.abs(loss.target) + abs(b)
        size = float((np.abs(beta) + loss.hi - loss.lo) @ reach) + abs(b) * loss.total
        assert certificate.primal <= float(primal) + 1e-11 * size + 1e-300


@pytest.mark.parametrize("kind", ["regression", "one class"])
def test_float32_rows_are_charged(kind):
    """Kernel values of float32 data: the certificate encloses that of the same rows in float64."""
    from softmargin.data.convert import as_rows
    from softmargin.kernels.cached import CachedRows
    from softmargin.kernels.functions import RBF
    from softmargin.kernels.matrix import DirectRows

    rng = np.random.default_rng(3)
    X = rng.standard_normal((80, 3))
    y, s = X[:, 0] + 0.1 * rng.standard_normal(80), rng.uniform(0.5, 2.0, 80)
    loss = RowLoss.regression(y, s, 3.0, 0.1) if kind == "regression" else RowLoss.one_class(s, 0.3)
    beta = loss.feasible(rng.standard_normal(80))
    single, double = (
        KernelJudge(CachedRows(DirectRows(as_rows(X), RBF(0.4), dtype), 1e7), loss)(Solution(NO_W, 0.2, beta))
        for dtype in (np.float32, np.float64)
    )
    assert single.primal >= double.primal - 1e-12 * abs(double.primal)
    assert single.dual <= double.dual + 1e-12 * abs(double.dual)
    assert single.rounding <= 0.1 * single.gap


@pytest.mark.parametrize("nu", [1e-9, 0.1, 1 / 3, 0.5, 0.999999, 1.0])
def test_one_class_variables_have_the_right_sum(nu):
    rng = np.random.default_rng(5)
    for _ in range(50):
        n = int(rng.integers(1, 40))
        weights = 10.0 ** rng.uniform(-rng.integers(0, 200), rng.integers(0, 200), n)
        terms, total = exact_total(weights, nu), Fraction(nu) * sum(exact(weights))
        assert sum(exact(terms)) == total
        found = filled(rng.uniform(0, 1.2, n) * weights, weights, terms)
        assert ((found >= 0.0) & (found <= weights)).all()
        assert 0 <= sum(exact(found)) - total <= total / 2**50
        np.testing.assert_array_equal(filled(found, weights, terms), found)
    assert filled(np.zeros(3), np.ones(3), exact_total(np.ones(3), 1.0)).tolist() == [1.0, 1.0, 1.0]


def test_a_sum_that_is_too_small_for_floating_point_is_rounded_up():
    weights = np.array([2.0**-1074, 2.0**-1070, 0.0])
    for nu in (0.1, 0.5, 0.9, 1.0):
        terms, total = exact_total(weights, nu), Fraction(nu) * sum(exact(weights))
        assert 0 <= sum(exact(terms)) - total < Fraction(2) ** -1074
        found = filled(np.zeros(3), weights, terms)
        assert (found <= weights).all()
        assert total <= sum(exact(found)) <= total + 2 * Fraction(2) ** -1074


def test_variables_at_their_bounds_stay_there():
    beta = np.where(np.arange(100) < 33, 1.0, 0.0)
    beta[33] = 1 / 3 * 100 - 33 - 1e-13
    found = filled(beta, np.ones(100), exact_total(np.ones(100), 1 / 3))
    np.testing.assert_array_equal(found[:33], 1.0)
    np.testing.assert_array_equal(found[34:], 0.0)
