"""The judge of ranking against the definition, and against candidates that cheat."""

import numpy as np
import pytest

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import PlaneSolution, Solution
from softmargin.core.stopping import Stop
from softmargin.data.convert import as_rows
from softmargin.linalg.counting import Pairs
from softmargin.problems.ranking import Ranking
from softmargin.problems.ranking_certificate import RankingJudge
from softmargin.solvers.base import run
from softmargin.solvers.cutting_plane.ocas import OCAS

RNG = np.random.default_rng(8)
X = RNG.standard_normal((40, 4))
Y = np.round(X[:, 0] + 0.5 * RNG.standard_normal(40))
Q = RNG.integers(0, 3, 40)
S = RNG.uniform(0.2, 2.0, 40)
C = 5.0
PAIRS = Pairs(Y, Q, S)
JUDGE = RankingJudge(as_rows(X), PAIRS, C)


def objective(w):
    f = X @ w
    weights = ((Y[:, None] > Y) & (Q[:, None] == Q)) * S[:, None] * S
    return 0.5 * w @ w + C * (weights * np.maximum(0, 1 - (f[:, None] - f))).sum() / weights.sum()


@pytest.fixture(scope="module")
def solved():
    return run(OCAS(), Ranking(as_rows(X), PAIRS, C), Stop(tol=1e-8), JUDGE)


def test_primal_is_the_objective():
    w = RNG.standard_normal(4)
    certificate = JUDGE(PlaneSolution(w, 0.0, np.empty(0), ()))
    assert certificate.primal == pytest.approx(objective(w), rel=1e-12)
    assert certificate.dual == pytest.approx(0.0, abs=1e-12)
    assert certificate.gap == pytest.approx(certificate.primal - certificate.dual)
    assert certificate.kkt_violation == pytest.approx(1.0)  # the mean loss at the dual candidate w = 0


def test_the_bound_is_that_of_the_planes():
    """One plane at scores f: D = gamma e - 1/2 |gamma X'c|^2, with the pairs formed."""
    f, gamma = RNG.standard_normal(40), 0.3
    active = ((Y[:, None] > Y) & (Q[:, None] == Q) & (f[:, None] - f < 1)) * S[:, None] * S / PAIRS.n_pairs
    w = gamma * (active[:, :, None] * (X[:, None] - X)).sum(axis=(0, 1))
    certificate = JUDGE(PlaneSolution(np.zeros(4), 0.0, np.array([gamma]), (f,)))
    assert certificate.dual == pytest.approx(gamma * active.sum() - 0.5 * w @ w, rel=1e-12)


def test_at_the_optimum(solved):
    certificate = JUDGE(solved.solution)
    assert certificate == solved.certificate
    assert -1e-14 <= certificate.relative_gap <= 1e-8
    assert certificate.kkt_violation < 1e-5
    assert certificate.primal == pytest.approx(objective(solved.solution.w), rel=1e-12)


@pytest.mark.parametrize("n_planes", [1, 2, 6])
def test_no_planes_prove_more_than_the_optimum(solved, n_planes):
    """Weak duality for whatever is handed in: weights negative, huge, NaN; scores of any kind."""
    best = solved.certificate.primal
    for scale in (1e-3, 1.0, 10.0, 1e6):
        for _ in range(20):
            points = tuple(X @ solved.solution.w + scale * RNG.standard_normal((n_planes, 40)))
            gamma = RNG.standard_normal(n_planes) * scale
            assert JUDGE(PlaneSolution(np.zeros(4), 0.0, gamma, points)).dual <= best
    for bad in (np.nan, np.inf, -np.inf, 1e308, -1e308):
        for _ in range(10):
            points = tuple(np.where(RNG.random((n_planes, 40)) < 0.5, bad, RNG.standard_normal((n_planes, 40))))
            assert JUDGE(PlaneSolution(np.zeros(4), 0.0, np.full(n_planes, C), points)).dual <= best
            forged = np.where(RNG.random(n_planes) < 0.5, bad, 1.0)
            points = tuple(RNG.standard_normal((n_planes, 40)))
            assert JUDGE(PlaneSolution(np.zeros(4), 0.0, forged, points)).dual <= best


def test_weights_of_more_than_C_are_scaled_down(solved):
    solution = solved.solution
    double = PlaneSolution(solution.w, 0.0, 2.0 * solution.alpha, solution.points)
    assert JUDGE(double).dual <= solved.certificate.primal
    assert JUDGE(double).dual == pytest.approx(solved.certificate.dual, rel=1e-6)  # all of C was in use


def test_a_rounded_witness_still_proves(solved):
    solution = solved.solution
    rough = tuple(scores.astype(np.float16) for scores in solution.points)
    certificate = JUDGE(PlaneSolution(solution.w, 0.0, solution.alpha, rough))
    assert certificate.dual <= solved.certificate.primal
    assert certificate.dual == pytest.approx(solved.certificate.dual, rel=1e-2)


def test_what_does_not_fit_is_refused(solved):
    w = solved.solution.w
    with pytest.raises(SoftmarginError, match="39 entries for 40 rows"):
        JUDGE(PlaneSolution(w, 0.0, np.ones(1), (np.zeros(39),)))
    with pytest.raises(SoftmarginError, match="2 weights for 1 score"):
        JUDGE(PlaneSolution(w, 0.0, np.ones(2), (np.zeros(40),)))
    with pytest.raises(SoftmarginError, match="score vectors"):
        JUDGE(Solution(w, 0.0, np.ones(40)))
    with pytest.raises(SoftmarginError, match="intercept"):
        JUDGE(PlaneSolution(w, 0.5, np.ones(1), (np.zeros(40),)))
