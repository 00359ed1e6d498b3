"""The judge of kernel problems: the linear judge's twin, and deaf to forgeries and to rounding."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Solution
from softmargin.data.convert import as_rows
from softmargin.kernels.cached import CachedRows, WholeMatrix
from softmargin.kernels.functions import RBF, Laplacian, Linear, Polynomial
from softmargin.kernels.matrix import DirectRows
from softmargin.problems.certificate import HingeJudge
from softmargin.problems.intercepts import Free
from softmargin.problems.kernel_certificate import KernelJudge
from softmargin.problems.row_loss import RowLoss

RNG = np.random.default_rng(12)
N = 60
X = RNG.standard_normal((N, 4))
Y = np.where(X[:, 0] + 0.7 * RNG.standard_normal(N) > 0, 1.0, -1.0)
S = RNG.uniform(0.2, 2.0, N)
NO_W = np.empty(0)


def judge(kernel, C, rows=X, dtype=np.float64, s=S, **options):
    return KernelJudge(
        CachedRows(DirectRows(as_rows(rows), kernel, dtype), 1e8), RowLoss.classification(s * Y, C), **options
    )


def gram(kernel, rows=X):
    parameters = {name: getattr(kernel, name) for name in ("gamma", "degree", "coef0") if hasattr(kernel, name)}
    return pairwise_kernels(rows, metric=kernel.name, **parameters)


def optimum(K, C, s=S):
    """LIBSVM's solution in double precision, its primal value, which no bound may pass, and its dual value."""
    model = SVC(C=C, kernel="precomputed", tol=1e-8).fit(K, Y, sample_weight=s)
    alpha, b = np.zeros(N), float(model.intercept_[0])
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    f = K @ (Y * alpha)
    curvature = (Y * alpha) @ f
    primal = 0.5 * curvature + C * (s * np.maximum(0.0, 1 - Y * (f + b))).sum()
    return alpha, b, primal, alpha.sum() - 0.5 * curvature


@pytest.mark.parametrize("C", [1e-3, 0.7, 30.0])
@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sp.csr_array])
def test_linear_kernel_is_judged_as_the_linear_problem_is(make, C):
    for _ in range(10):
        positive = Y > 0
        alpha = C * S * RNG.uniform(0, 1, N)
        alpha[positive] *= min(1.0, alpha[~positive].sum() / alpha[positive].sum())
        alpha[~positive] *= min(1.0, alpha[positive].sum() / alpha[~positive].sum())
        b = float(RNG.standard_normal())
        by_kernel = judge(Linear(), C, make(X))(Solution(NO_W, b, alpha))
        directly = HingeJudge(as_rows(make(X)), S * Y, C, Free())(Solution(X.T @ (Y * alpha), b, alpha))
        for name in ("primal", "dual", "gap", "relative_gap", "kkt_violation"):
            assert getattr(by_kernel, name) == pytest.approx(getattr(directly, name), rel=1e-9), name


def test_an_infeasible_dual_vector_is_repaired():
    C = 0.7
    for _ in range(20):
        wild = RNG.standard_normal(N) * 10.0 ** RNG.integers(-2, 3)
        clipped = np.clip(wild, 0.0, C * S)
        plus, minus = clipped[Y > 0].sum(), clipped[Y < 0].sum()
        clipped[Y > 0] *= min(1.0, minus / plus)
        clipped[Y < 0] *= min(1.0, plus / minus)
        forged, honest = (judge(RBF(0.5), C)(Solution(NO_W, 0.3, alpha)) for alpha in (wild, clipped))
        assert forged.dual == pytest.approx(honest.dual, rel=1e-12)
        f = gram(RBF(0.5)) @ (Y * wild)  # the primal value is that of the coefficients as they are
        objective = 0.5 * (Y * wild) @ f + C * (S * np.maximum(0.0, 1 - Y * (f + 0.3))).sum()
        assert forged.primal == pytest.approx(objective, rel=1e-12)


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2])
@pytest.mark.parametrize("kernel", [RBF(0.5), Polynomial(0.5, 2, 1.0), Linear()], ids=lambda kernel: kernel.name)
def test_no_candidate_proves_more_than_the_optimum(kernel, C):
    alpha, b, primal, dual = optimum(gram(kernel), C)
    call = judge(kernel, C)
    found = call(Solution(NO_W, b, alpha))
    assert found.primal == pytest.approx(primal, rel=1e-9)
    assert found.dual == pytest.approx(dual, rel=1e-9)
    assert 0 <= found.relative_gap < 1e-3
    forgeries = [alpha * factor for factor in (0.5, 0.999, 1.001, 2.0, 1e9)]
    forgeries += [alpha + scale * RNG.standard_normal(N) for scale in (1e-6 * C, 1e-2 * C, C)]
    forgeries += [10.0 ** RNG.uniform(-8, 8) * RNG.standard_normal(N) for _ in range(20)]
    forgeries += [np.full(N, value) for value in (np.nan, np.inf, -np.inf, 1e300, -1.0)]
    forgeries += [np.where(Y > 0, C * S, 0.0), np.where(Y < 0, C * S, 0.0), C * S]
    for forged in forgeries:
        for intercept in (b, 0.0, -1e6, 1e6):
            certificate = call(Solution(NO_W, intercept, forged))
            assert certificate.dual <= primal
            assert certificate.primal >= dual
            assert certificate.gap >= 0


def test_nothing_is_nothing():
    certificate = judge(RBF(0.5), 0.7)(Solution(NO_W, 0.0, np.zeros(N)))
    assert certificate.primal == pytest.approx(0.7 * S.sum())
    assert certificate.dual == 0.0
    assert certificate.kkt_violation == pytest.approx(2.0)  # LIBSVM: m - M = 1 - (-1)
    certificate = judge(RBF(0.5), 0.7)(Solution(NO_W, 0.0, np.full(N, np.nan)))
    assert certificate.primal == np.inf  # such a model has no value
    assert certificate.dual == 0.0


def test_rows_of_weight_zero_do_not_count():
    s = np.where(np.arange(N) < 40, S, 0.0)
    alpha = RNG.uniform(0, 1, N)
    whole = judge(RBF(0.5), 0.7, s=s)(Solution(NO_W, 0.3, alpha))
    store = CachedRows(DirectRows(as_rows(X[:40]), RBF(0.5)), 1e8)
    part = KernelJudge(store, RowLoss.classification((s * Y)[:40], 0.7))(Solution(NO_W, 0.3, alpha[:40]))
    assert whole.primal == pytest.approx(part.primal)
    assert whole.dual == pytest.approx(part.dual)
    assert whole.kkt_violation == pytest.approx(part.kkt_violation)


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    ("kernel", "offset"),
    [
        (RBF(0.5), 0.0),
        (RBF(0.05), 30.0),
        (Laplacian(0.2), 0.0),
        (Laplacian(0.2), 100.0),
        (Polynomial(0.5, 3, 1.0), 0.0),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_single_precision_rows_are_judged_in_double_precision(kernel, offset, make, C):
    """Where float32 rows are too coarse for the bracket, what matters is evaluated again."""
    rows = X + offset
    alpha, b, primal, dual = optimum(gram(kernel, rows), C)
    single = judge(kernel, C, make(rows), np.float32)(Solution(NO_W, b, alpha))
    double = judge(kernel, C, make(rows))(Solution(NO_W, b, alpha))
    assert dual <= single.primal
    assert single.dual <= primal
    assert single.dual == pytest.approx(double.dual, rel=1e-9)
    assert single.primal == pytest.approx(double.primal, rel=1e-8)
    assert double.dual == pytest.approx(dual, rel=1e-6)
    assert 0.0 <= single.rounding <= 0.1 * single.gap + 1e-9 * single.primal


def test_a_wide_gap_needs_no_second_look():
    """The charge for float32 rows is small beside this gap: they are not evaluated again."""
    call = judge(RBF(0.5), 0.7, dtype=np.float32)
    call.K.source.sharper = None  # would fail if it were asked
    alpha = np.where(np.arange(N) < 20, 0.1, 0.0)
    found = call(Solution(NO_W, 5.0, alpha))
    assert 0.0 < found.rounding <= 0.1 * found.gap


def test_cached_rows_serve_the_judge():
    call = judge(RBF(0.5), 0.7)
    alpha = np.where(np.arange(N) < 20, 0.1, 0.0)
    call.K.fetch(np.arange(15))
    before = call.K.n_evaluations
    call(Solution(NO_W, 0.0, alpha))
    assert call.K.n_evaluations == before + 5 * N


def test_without_convexity_there_is_no_bound():
    indefinite = np.tanh(0.5 * X @ X.T - 1.0)
    assert np.linalg.eigvalsh(indefinite)[0] < -0.1
    alpha = RNG.uniform(0, 0.7, N)
    certificate = KernelJudge(WholeMatrix(indefinite, 1e8), RowLoss.classification(Y, 0.7), is_convex=False)(
        Solution(NO_W, 0.1, alpha)
    )
    assert np.isnan([certificate.dual, certificate.gap, certificate.relative_gap]).all()
    convex = KernelJudge(WholeMatrix(indefinite, 1e8), RowLoss.classification(Y, 0.7))(Solution(NO_W, 0.1, alpha))
    assert certificate.primal == convex.primal
    assert certificate.kkt_violation == convex.kkt_violation


def test_wrong_length_of_alpha():
    with pytest.raises(SoftmarginError, match="59 entries for 60 rows"):
        judge(RBF(0.5), 0.7)(Solution(NO_W, 0.0, np.zeros(59)))
