"""The judge against an independent computation, and against candidates that cheat."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Solution
from softmargin.data.convert import as_rows
from softmargin.problems.certificate import HingeJudge
from softmargin.problems.intercepts import Free, intercept_named

RNG = np.random.default_rng(8)
X = RNG.standard_normal((40, 4))
S = RNG.uniform(0.2, 2.0, 40)
Y = np.where(X[:, 0] + 0.5 * RNG.standard_normal(40) > 0, 1.0, -1.0)
C = 0.7
INTERCEPTS = ("none", "free", "penalised")


def judge(intercept, scaling=1.0):
    return HingeJudge(as_rows(X), S * Y, C, intercept_named(intercept, scaling))


def objective(w, b, intercept, scaling=1.0):
    penalty = 0.5 * (b / scaling) ** 2 if intercept == "penalised" else 0.0
    return 0.5 * w @ w + penalty + C * (S * np.maximum(0, 1 - Y * (X @ w + b))).sum()


def optimum(intercept, scaling=1.0):
    """By a general solver on the smooth dual, to about 1e-7."""
    Z = Y[:, None] * X
    const = scaling**2 if intercept == "penalised" else 0.0

    def negative_dual(alpha):
        g, r = Z.T @ alpha, Y @ alpha
        return 0.5 * g @ g + 0.5 * const * r * r - alpha.sum(), Z @ g + const * r * Y - 1.0

    constraints = [{"type": "eq", "fun": lambda a: Y @ a, "jac": lambda a: Y}] if intercept == "free" else []
    with warnings.catch_warnings():  # older SciPy tells of steps past a bound by a rounding error
        warnings.filterwarnings("ignore", "Values in x were outside bounds", RuntimeWarning)
        found = minimize(
            negative_dual, np.full(40, 0.1) * S, jac=True, bounds=[(0, C * s) for s in S], method="SLSQP",
            constraints=constraints, options={"maxiter": 2000, "ftol": 1e-13},
        )  # fmt: skip
    return found.x, -found.fun


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_primal_is_the_objective(intercept):
    w, b = RNG.standard_normal(4), 0.0 if intercept == "none" else 0.4
    certificate = judge(intercept)(Solution(w, b, np.zeros(40)))
    assert certificate.primal == pytest.approx(objective(w, b, intercept), rel=1e-12)
    assert certificate.dual == pytest.approx(0.0, abs=1e-12)
    assert certificate.gap == pytest.approx(certificate.primal - certificate.dual)
    assert certificate.primal >= objective(w, b, intercept) * (1 - 1e-15)
    assert 0.0 < certificate.rounding < 1e-12 * certificate.primal


@pytest.mark.parametrize(
    ("intercept", "scaling"), [("none", 1.0), ("free", 1.0), ("penalised", 1.0), ("penalised", 3.0)]
)
def test_dual_and_kkt_at_the_optimum(intercept, scaling):
    alpha, value = optimum(intercept, scaling)
    w = X.T @ (alpha * Y)
    if intercept == "free":
        t = Y - X @ w
        b = min(t, key=lambda b: objective(w, b, intercept))
    else:
        b = scaling**2 * float(alpha @ Y) if intercept == "penalised" else 0.0
    certificate = judge(intercept, scaling)(Solution(w, b, alpha))
    assert certificate.dual == pytest.approx(value, rel=1e-5)
    assert 0 <= certificate.relative_gap < 1e-3
    assert certificate.kkt_violation < 0.02


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_no_alpha_proves_more_than_the_optimum(intercept):
    """Weak duality for whatever is handed in: infeasible, negative, huge, NaN."""
    _, value = optimum(intercept)
    for scale in (1e-3, 1.0, 10.0, 1e6):
        for _ in range(30):
            alpha = RNG.standard_normal(40) * scale
            assert judge(intercept)(Solution(np.zeros(4), 0.0, alpha)).dual <= value * (1 + 1e-6)
    alpha = np.full(40, np.nan)
    assert judge(intercept)(Solution(np.zeros(4), 0.0, alpha)).dual == 0.0
    alpha = np.full(40, np.inf)
    assert judge(intercept)(Solution(np.zeros(4), 0.0, alpha)).dual <= value * (1 + 1e-6)


def test_unbalanced_alpha_is_balanced():
    one_sided = np.where(Y > 0, C * S, 0.0)
    assert judge("free")(Solution(np.zeros(4), 0.0, one_sided)).dual == 0.0


def test_kkt_violation_counts_what_could_still_move():
    at_zero = judge("none")(Solution(np.zeros(4), 0.0, np.zeros(40)))
    assert at_zero.kkt_violation == pytest.approx(1.0)  # the gradient of the dual at 0 is 1 everywhere
    free = judge("free")(Solution(np.zeros(4), 0.0, np.zeros(40)))
    assert free.kkt_violation == pytest.approx(2.0)  # LIBSVM: m - M = 1 - (-1)


def test_rows_of_weight_zero_do_not_count():
    s = np.where(np.arange(40) < 20, S, 0.0)
    w, alpha = RNG.standard_normal(4), RNG.uniform(0, 1, 40)
    whole = HingeJudge(as_rows(X), s * Y, C, Free())(Solution(w, 0.3, alpha))
    part = HingeJudge(as_rows(X[:20]), (s * Y)[:20], C, Free())(Solution(w, 0.3, alpha[:20]))
    assert whole.primal == pytest.approx(part.primal)
    assert whole.dual == pytest.approx(part.dual)
    assert whole.kkt_violation == pytest.approx(part.kkt_violation)


def test_sparse_and_dense_are_judged_alike():
    w, alpha = RNG.standard_normal(4), RNG.uniform(0, 1, 40)
    dense = judge("free")(Solution(w, 0.3, alpha))
    sparse = HingeJudge(as_rows(sp.csr_array(X)), S * Y, C, Free())(Solution(w, 0.3, alpha))
    assert dense.gap == pytest.approx(sparse.gap, rel=1e-12)


def test_wrong_length_of_alpha():
    with pytest.raises(SoftmarginError, match="39 entries for 40 rows"):
        judge("free")(Solution(np.zeros(4), 0.0, np.zeros(39)))


def test_an_intercept_where_there_is_none():
    with pytest.raises(SoftmarginError, match="without intercept"):
        judge("none")(Solution(np.zeros(4), 0.5, np.zeros(40)))
