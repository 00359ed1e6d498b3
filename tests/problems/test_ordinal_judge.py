"""The judge of ordinal regression against an independent optimum, and against candidates that cheat."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Solution
from softmargin.core.stopping import Stop
from softmargin.data.convert import as_rows
from softmargin.problems.certificate import HingeJudge
from softmargin.problems.ordinal import MARGINS, ActiveLosses, Ordinal
from softmargin.problems.ordinal_certificate import OrdinalJudge
from softmargin.solvers.base import run
from softmargin.solvers.cutting_plane.ocas import OCAS

RNG = np.random.default_rng(12)
N, K = 24, 3
Y = np.append(np.arange(K + 1), RNG.integers(0, K + 1, N - K - 1))
X = RNG.standard_normal((N, 3)) + np.outer(Y, [0.5, 0, 0])
S = RNG.uniform(0.3, 2.0, N)
C = 0.6
Z = np.where(Y[:, None] > np.arange(K), 1.0, -1.0)
COUNTS = {"all": np.ones((N, K)), "immediate": (Y[:, None] == np.arange(K)) | (Y[:, None] == np.arange(K) + 1)}


def judge(margins):
    return OrdinalJudge(as_rows(X), Y, S, C, margins)


def objective(w, theta, margins):
    slack = np.maximum(0.0, 1.0 - Z * ((X @ w)[:, None] - theta)) * COUNTS[margins]
    return 0.5 * w @ w + C * S @ slack.sum(axis=1)


def optimum(margins):
    """By a general solver on the smooth dual, to about 1e-7."""

    def negative_dual(alpha):
        alpha = alpha.reshape(N, K)
        w = X.T @ (Z * alpha).sum(axis=1)
        return 0.5 * w @ w - alpha.sum(), (Z * (X @ w)[:, None] - 1.0).ravel()

    partial = [(Z * (np.arange(K) == k)).ravel() for k in range(K)]
    if margins == "immediate":
        partial = list(np.cumsum(partial, axis=0))
    constraints = [
        {
            "type": "ineq" if margins == "immediate" and k < K - 1 else "eq",
            "fun": lambda a, p=p: -p @ a,
            "jac": lambda a, p=p: -p,
        }
        for k, p in enumerate(partial)
    ]
    upper = (C * S[:, None] * COUNTS[margins]).ravel()
    with warnings.catch_warnings():  # older SciPy tells of steps past a bound by a rounding error
        warnings.filterwarnings("ignore", "Values in x were outside bounds", RuntimeWarning)
        found = minimize(
            negative_dual, np.zeros(N * K), jac=True, bounds=[(0, u) for u in upper], method="SLSQP",
            constraints=constraints, options={"maxiter": 1000, "ftol": 1e-12},
        )  # fmt: skip
    assert found.success
    return -found.fun


OPTIMA = {margins: optimum(margins) for margins in MARGINS}


def solved(margins, tol=1e-8):
    return run(OCAS(), Ordinal(as_rows(X), Y, S, C, margins), Stop(tol=tol), judge(margins))


@pytest.mark.parametrize("margins", MARGINS)
def test_the_optimum_is_that_of_a_general_solver(margins):
    certificate = solved(margins).certificate
    assert certificate.primal == pytest.approx(OPTIMA[margins], rel=1e-6)
    assert certificate.dual == pytest.approx(OPTIMA[margins], rel=1e-6)
    assert certificate.kkt_violation < 1e-3


@pytest.mark.parametrize("margins", MARGINS)
def test_primal_is_the_objective(margins):
    w, theta = RNG.standard_normal(3), np.array([-1.0, 0.2, 0.9])
    certificate = judge(margins)(Solution(w, theta, np.zeros((N, K))))
    assert certificate.primal == pytest.approx(objective(w, theta, margins), rel=1e-12)
    assert certificate.dual == pytest.approx(0.0, abs=1e-12)
    assert certificate.gap == pytest.approx(certificate.primal - certificate.dual)


@pytest.mark.parametrize("margins", MARGINS)
def test_no_alpha_proves_more_than_the_optimum(margins):
    """Weak duality for whatever is handed in: infeasible, negative, huge, NaN, and the optimum distorted."""
    best = solved(margins).solution.alpha
    for scale in (1e-3, 1.0, 1e6):
        for _ in range(30):
            noise = scale * RNG.standard_normal((N, K))
            for alpha in (noise, best + noise, best * (1 + noise), np.where(noise > scale, np.nan, best)):
                certificate = judge(margins)(Solution(np.zeros(3), np.zeros(K), alpha))
                assert certificate.dual <= OPTIMA[margins] * (1 + 1e-6)


@pytest.mark.parametrize("margins", MARGINS)
def test_feasible_alpha_is_feasible_and_stays_what_it_is(margins):
    allowed = C * S[:, None] * COUNTS[margins]
    for _ in range(30):
        alpha = judge(margins).feasible(RNG.uniform(-0.5, 2.0, (N, K)))
        assert ((alpha >= 0.0) & (alpha <= allowed)).all()
        beta = (Z * alpha).sum(axis=0)
        sums = np.cumsum(beta) if margins == "immediate" else beta
        np.testing.assert_allclose(sums[-1], 0.0, atol=1e-12)
        assert (sums <= 1e-12).all()
        if margins == "all":
            np.testing.assert_allclose(sums, 0.0, atol=1e-12)
        np.testing.assert_allclose(judge(margins).feasible(alpha), alpha, rtol=1e-12)
    best = solved(margins).solution.alpha
    np.testing.assert_allclose(judge(margins).feasible(best), best, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("margins", MARGINS)
def test_a_forged_witness_does_not_raise_the_bound(margins):
    problem = Ordinal(as_rows(X), Y, S, C, margins)
    w = RNG.standard_normal(3)
    true = problem.pattern(X @ w).witness
    for _ in range(30):
        forged = ActiveLosses(
            RNG.integers(0, 256, true.bits.shape).astype(np.uint8),
            RNG.integers(-1, N, K),
            RNG.choice([-1e3, 0.5, 1e9, np.nan], K),
        )
        for weights in (np.array([C, 0.0]), np.array([0.1, 50.0]), np.array([1e9, -1e9])):
            candidate = problem.solution(w, X @ w, [true, forged], weights)
            assert judge(margins)(candidate).dual <= OPTIMA[margins] * (1 + 1e-6)


def test_two_ranks_are_judged_as_the_hinge_is():
    y = (Y > 1).astype(int)
    v = S * np.where(y > 0, 1.0, -1.0)
    for _ in range(10):
        w, theta = RNG.standard_normal(3), RNG.standard_normal(1)
        alpha = RNG.uniform(-0.1, 1.0, N)
        expected = HingeJudge(as_rows(X), v, C)(Solution(w, -float(theta[0]), alpha))
        for margins in MARGINS:
            found = OrdinalJudge(as_rows(X), y, S, C, margins)(Solution(w, theta, alpha[:, None]))
            for name in ("primal", "dual", "gap", "relative_gap", "kkt_violation"):
                assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-12), name


def test_rounding_is_charged():
    """Rows far from the origin: outputs are small differences of large numbers."""
    far = as_rows(X + 1e9)
    candidate = solved("all").solution
    certificate = OrdinalJudge(far, Y, S, C)(candidate)
    assert certificate.dual < float(candidate.alpha.sum()) - 1e-7


@pytest.mark.parametrize(
    ("theta", "shape", "message"),
    [
        (np.zeros(2), (N, K), "the model has 2 thresholds, but the labels 4 ranks"),
        (np.zeros(K), (N - 1, K), "certify a model on the rows it was trained on"),
        (np.array([0.0, 1.0, 0.5]), (N, K), "the thresholds do not ascend"),
        (np.array([0.0, np.nan, 0.5]), (N, K), "the thresholds do not ascend"),
    ],
)
def test_what_cannot_be_judged(theta, shape, message):
    with pytest.raises(SoftmarginError, match=message):
        judge("immediate")(Solution(np.zeros(3), theta, np.zeros(shape)))
