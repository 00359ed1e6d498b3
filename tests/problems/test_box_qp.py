"""The dual problem's own figures against their definitions, written out."""

from math import fsum

import numpy as np
import pytest
from sklearn.svm import SVC

from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.kernels.cached import CachedRows
from softmargin.kernels.functions import RBF
from softmargin.kernels.matrix import DirectRows
from softmargin.problems.box_qp import BoxQP
from softmargin.problems.row_loss import RowLoss

RNG = np.random.default_rng(11)
N = 40
X = RNG.standard_normal((N, 3))
Y = np.where(X[:, 0] + RNG.standard_normal(N) > 0, 1.0, -1.0)
S = RNG.uniform(0.2, 2.0, N)
K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))


def problem(C=0.7, y=Y, s=S, **options):
    n = len(y)
    store = CachedRows(DirectRows(as_rows(X[:n]), RBF(0.5)), 1e6)
    return BoxQP(store, RowLoss.classification(s[:n] * y, C), Workers(1), **options)


def feasible_beta(C, seed):
    """Within the box, many at its ends, with sum zero: of the heavier class the last ones are taken away."""
    rng = np.random.default_rng(seed)
    alpha = C * S * np.clip(rng.uniform(-0.4, 1.4, N), 0, 1)
    heavy = (Y > 0) == (Y @ alpha > 0)
    left = alpha[~heavy].sum()
    for i in np.flatnonzero(heavy):
        alpha[i] = min(alpha[i], left)
        left -= alpha[i]
    return Y * alpha


def primal(beta, b, C):
    return 0.5 * beta @ K @ beta + C * sum(
        s * max(0.0, 1 - y * (f + b)) for s, y, f in zip(S, Y, K @ beta, strict=True)
    )


def test_the_box_is_that_of_the_signed_variables():
    dual = problem(C=0.7)
    np.testing.assert_array_equal(dual.p, Y)
    np.testing.assert_allclose(dual.lo, np.where(Y > 0, 0.0, -0.7 * S))
    np.testing.assert_allclose(dual.hi, np.where(Y > 0, 0.7 * S, 0.0))
    assert dual.total == 0.0
    assert dual.scale == pytest.approx(0.7 * S.sum())
    assert dual.scale == pytest.approx(primal(np.zeros(N), 0.0, 0.7))


@pytest.mark.parametrize("C", [1e-3, 0.7, 1e3])
@pytest.mark.parametrize("seed", range(8))
def test_figures_are_their_definitions(C, seed):
    beta = feasible_beta(C, seed)
    alpha = Y * beta
    assert np.all((alpha >= 0) & (alpha <= C * S))
    assert abs(beta.sum()) < 1e-9 * C
    f = K @ beta
    up = ((Y > 0) & (alpha < C * S)) | ((Y < 0) & (alpha > 0))
    low = ((Y > 0) & (alpha > 0)) | ((Y < 0) & (alpha < C * S))
    Q = np.outer(Y, Y) * K
    minus_y_gradient = -Y * (Q @ alpha - 1)  # LIBSVM's words
    m, M = minus_y_gradient[up].max(), minus_y_gradient[low].min()

    dual = problem(C)
    measure = dual.measure(beta, f)
    solution = dual.solution(beta, f)
    assert measure.kkt == pytest.approx(max(0.0, m - M), rel=1e-9)
    assert solution.b == pytest.approx((m + M) / 2, rel=1e-9)
    assert measure.primal == pytest.approx(primal(beta, solution.b, C), rel=1e-9)
    assert measure.dual == pytest.approx(alpha.sum() - 0.5 * alpha @ Q @ alpha, rel=1e-9)
    assert measure.dual <= measure.primal
    assert measure.scale == dual.scale
    np.testing.assert_allclose(solution.alpha, alpha, rtol=1e-12, atol=1e-12 * C)
    assert fsum(Y * solution.alpha) == 0.0  # exactly balanced, whatever rounding left in beta
    assert solution.w.size == 0


def test_at_the_optimum_primal_and_dual_meet():
    C = 0.7
    model = SVC(C=C, kernel="precomputed", tol=1e-9).fit(K, Y, sample_weight=S)
    beta = np.zeros(N)
    beta[model.support_] = model.dual_coef_[0]
    dual = problem(C)
    measure = dual.measure(beta, K @ beta)
    assert abs(measure.gap) < 1e-7 * measure.primal
    assert measure.kkt < 1e-7
    assert dual.solution(beta, K @ beta).b == pytest.approx(model.intercept_[0], abs=1e-7)


def test_without_convexity_there_is_no_bound():
    beta = feasible_beta(0.7, 0)
    convex, other = problem(), problem(is_convex=False)
    measure = other.measure(beta, K @ beta)
    assert np.isnan(measure.dual)
    assert measure.primal == convex.measure(beta, K @ beta).primal
    assert measure.kkt == convex.measure(beta, K @ beta).kkt


@pytest.mark.parametrize("label", [1.0, -1.0])
def test_one_class_alone_is_met_by_the_intercept(label):
    """No variable can move: nothing is violated, and the intercept is the label."""
    dual = problem(y=np.full(6, label))
    measure = dual.measure(np.zeros(6), np.zeros(6))
    assert (measure.primal, measure.dual, measure.kkt) == (0.0, 0.0, 0.0)
    assert dual.solution(np.zeros(6), np.zeros(6)).b == label


def test_every_variable_at_its_bound():
    """With C tiny and equal classes all of them are: one class bounds the intercept from above, one from below."""
    y, s = np.tile([1.0, -1.0], 10), np.ones(20)
    dual = problem(1e-3, y, s)
    beta = 1e-3 * y
    f = K[:20, :20] @ beta
    measure = dual.measure(beta, f)
    highest, lowest = (y - f)[y < 0].max(), (y - f)[y > 0].min()
    assert highest < lowest
    assert measure.kkt == 0.0
    assert dual.solution(beta, f).b == pytest.approx((highest + lowest) / 2)
    assert abs(measure.gap) < 1e-12


def test_no_rows():
    dual = problem(y=np.empty(0))
    measure = dual.measure(np.empty(0), np.empty(0))
    assert (measure.primal, measure.dual, measure.kkt) == (0.0, 0.0, 0.0)
    assert dual.solution(np.empty(0), np.empty(0)).b == 0.0
