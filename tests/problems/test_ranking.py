"""The ranking risk against its definition, and cutting planes on it against explicit pairs."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from plain_python import printed_plain_and_compiled
from softmargin.core.errors import SoftmarginError
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.linalg.counting import Pairs
from softmargin.problems.ranking import Ranking
from softmargin.problems.ranking_certificate import RankingJudge
from softmargin.solvers.base import run
from softmargin.solvers.cutting_plane.cpa import CPA
from softmargin.solvers.cutting_plane.ocas import OCAS

RNG = np.random.default_rng(4)
X = np.round(RNG.standard_normal((60, 5)), 1)
Y = np.clip(np.round(X[:, 0] + RNG.standard_normal(60)), -1, 2)
Q = RNG.integers(0, 4, 60)
S = np.where(RNG.random(60) < 0.2, 0.0, RNG.uniform(0.3, 2, 60))


def pair_table(y=Y, q=Q, s=S):
    """(i, j, weight) of every pair."""
    i, j = np.nonzero((y[:, None] > y) & (q[:, None] == q) & (s[:, None] * s > 0))
    return i, j, s[i] * s[j]


def risk_by_definition(f, average=True, table=None):
    i, j, weight = table or pair_table()
    return (weight * np.maximum(0, 1 - (f[i] - f[j]))).sum() / (weight.sum() if average else 1.0)


def problem(C=2.0, average=True, **other):
    return Ranking(as_rows(X), Pairs(Y, Q, S), C, average, **other)


def solve(ranking, solver=None, tol=1e-6, **other):
    judge = RankingJudge(ranking.rows, ranking.pairs, ranking.C, ranking.average)
    return run(solver or OCAS(), ranking, Stop(tol=tol), judge, **other)


@pytest.mark.parametrize("average", [True, False])
def test_risk_and_plane(average):
    ranking = problem(average=average)
    assert ranking.scale == pytest.approx(2.0 * risk_by_definition(np.zeros(60), average))
    for _ in range(20):
        w, other = RNG.standard_normal((2, 5))
        f = ranking.outputs(w)
        assert ranking.risk(f) == pytest.approx(risk_by_definition(f, average), rel=1e-12)
        plane = ranking.pattern(f)
        slope = ranking.slope(plane.c)
        assert slope @ w + plane.constant == pytest.approx(ranking.risk(f), rel=1e-12)  # tight where it was made
        f_other = ranking.outputs(other)
        assert slope @ other + plane.constant <= ranking.risk(f_other) * (1 + 1e-12)  # below R everywhere else


def test_witnesses_are_small_and_true():
    ranking = problem()
    f = ranking.outputs(RNG.standard_normal(5))
    small, large = ranking.pattern(f), ranking.pattern(1000.0 * f)
    assert small.witness.scores.dtype == np.float32
    assert large.witness.scores.dtype == np.float64  # where rounding would be felt
    for plane in (small, large):
        again = ranking.pattern(plane.witness.scores.astype(np.float64))
        np.testing.assert_array_equal(again.c, plane.c)
        assert again.constant == plane.constant
    weights = np.array([0.5, -2.0])
    combined = ranking.coefficients([small.witness, large.witness], weights)
    np.testing.assert_allclose(combined, weights[0] * small.c + weights[1] * large.c, atol=1e-15)


def test_line_minimum():
    ranking = problem()
    for _ in range(20):
        w, direction = RNG.standard_normal((2, 5))
        f, df = ranking.outputs(w), ranking.outputs(direction)

        def G(k, f=f, df=df, w=w, direction=direction):
            return 0.5 * k * k * direction @ direction + k * w @ direction + 2.0 * risk_by_definition(f + k * df)

        found = ranking.minimise_along(f, df, direction @ direction, w @ direction)
        i, j, _ = pair_table()
        slopes = df[i] - df[j]
        moving = slopes != 0
        kinks = (1 - (f[i] - f[j]))[moving] / slopes[moving]
        kinks = np.unique(np.append(kinks[kinks > 0], [0.0, 1e3]))
        values = np.array([G(k) for k in kinks])
        best = int(values.argmin())  # the minimiser lies in a piece that ends there
        around = kinks[max(best - 1, 0)], kinks[min(best + 1, kinks.size - 1)]
        assert found.lo <= around[1]
        assert found.hi >= around[0]
        assert found.lo <= found.k <= found.hi
        assert found.hi - found.lo <= 0.1 * found.hi
        assert G(found.k) <= G(0.0)


def test_a_line_that_does_not_fall():
    ranking = problem()
    f = ranking.outputs(np.ones(5))
    found = ranking.minimise_along(f, np.zeros(60), 1.0, 0.5)
    assert (found.k, found.lo, found.hi) == (0.0, 0.0, 0.0)


def test_the_next_search_and_follow_reuse_the_last_count():
    ranking = problem()
    n_counts = 0
    count = ranking.pairs.count

    def counted(*arguments, **options):
        nonlocal n_counts
        n_counts += 1
        return count(*arguments, **options)

    ranking.pairs.count = counted
    f, df = np.zeros(60), ranking.outputs(0.1 * np.eye(5)[0])
    found = ranking.minimise_along(f, df, 0.01, 0.0)
    assert found.k > 0
    before = n_counts
    f_new, risk, plane = ranking.follow(f, df, found, found.hi)
    assert n_counts == before + 1  # for the plane; the risk is known
    np.testing.assert_array_equal(f_new, f + found.k * df)
    assert risk == pytest.approx(risk_by_definition(f_new), rel=1e-12)
    assert plane.constant == ranking.pattern(f + found.hi * df).constant

    df = ranking.outputs(np.eye(5)[1])
    before = n_counts
    hinted = ranking.minimise_along(f_new, df, 1.0, -1.0, replace(found.hint, step=1.0))
    with_hint = n_counts - before
    before = n_counts
    plain = ranking.minimise_along(f_new, df, 1.0, -1.0)
    assert with_hint == n_counts - before - 1
    assert hinted.k == plain.k > 0


def optimum_of_pairs(C, average=True, table=None, features=X):
    """LinearSVC on the differences of all pairs."""
    i, j, weight = table or pair_table()
    sign = np.where(np.arange(i.size) % 2, 1.0, -1.0)
    weight = weight / weight.sum() if average else weight
    model = LinearSVC(loss="hinge", fit_intercept=False, C=C, tol=1e-10, max_iter=2_000_000)
    model.fit(sign[:, None] * (features[i] - features[j]), sign, sample_weight=weight)
    w = model.coef_[0]
    return 0.5 * w @ w + C * risk_by_definition(features @ w, average, table)


@pytest.mark.parametrize("solver", [OCAS(), CPA()], ids=["ocas", "cpa"])
@pytest.mark.parametrize(("C", "average"), [(3.0, True), (0.02, False)])
def test_cutting_planes_find_the_optimum_of_all_pairs(solver, C, average):
    result = solve(problem(C, average), solver)
    assert result.status == Status.OPTIMAL
    best = optimum_of_pairs(C, average)
    assert result.certificate.relative_gap <= 1e-6
    assert result.certificate.dual <= best * (1 + 1e-9)
    assert result.certificate.primal == pytest.approx(best, rel=1e-5)
    assert 0.0 <= result.certificate.kkt_violation < 1e-4


def test_real_targets_and_wide_data():
    rng = np.random.default_rng(0)
    wide, y = rng.standard_normal((30, 70)), rng.standard_normal(30)
    ranking = Ranking(as_rows(wide), Pairs(y), 0.5)
    result = solve(ranking)
    table = pair_table(y, np.zeros(30), np.ones(30))
    assert result.status == Status.OPTIMAL
    assert result.certificate.primal == pytest.approx(optimum_of_pairs(0.5, True, table, wide), rel=1e-5)
    assert result.state.planes.witnesses[0].c is not None  # 2 n < d: needed in every iteration


def test_weight_two_is_a_row_twice():
    twice = np.append(np.arange(60), [3, 7])
    weights = np.ones(60)
    weights[[3, 7]] = 2.0
    for average in (True, False):
        one = solve(Ranking(as_rows(X), Pairs(Y, Q, weights), 0.5, average))
        two = solve(Ranking(as_rows(X[twice]), Pairs(Y[twice], Q[twice]), 0.5, average))
        assert one.certificate.primal == pytest.approx(two.certificate.primal, rel=1e-5)
    # but not within a pair of its own: equal targets make none
    assert Pairs(Y, Q, weights).n_pairs == Pairs(Y[twice], Q[twice]).n_pairs


def test_rows_that_are_in_no_pair_change_nothing():
    alone = np.concatenate([X, RNG.standard_normal((3, 5))])
    more = Ranking(
        as_rows(alone), Pairs(np.append(Y, [5, 6, 7]), np.append(Q, [7, 8, 9]), np.append(S, [1, 1, 1])), 2.0
    )
    one, two = solve(problem()), solve(more)
    assert one.counts == two.counts
    np.testing.assert_array_equal(one.solution.w, two.solution.w)


def test_threads_do_not_change_a_bit():
    rng = np.random.default_rng(1)
    n = 150_000
    features = rng.standard_normal((n, 3))
    y = np.round(features[:, 0] + rng.standard_normal(n), 1)
    pairs = Pairs(y, rng.integers(0, 3, n), rng.uniform(0.5, 2.0, n))

    def weights(n_threads):
        workers = Workers(n_threads)
        ranking = Ranking(as_rows(features).on(workers), pairs, 10.0, workers=workers)
        return solve(ranking, tol=1e-2, workers=workers).solution.w

    np.testing.assert_array_equal(weights(1), weights(2))


class CountedRows:
    """Rows that count their products."""

    def __init__(self, rows):
        self._rows, self.n_dot, self.n_t_dot = rows, 0, 0

    def __getattr__(self, name):
        return getattr(self._rows, name)

    def dot(self, w):
        self.n_dot += 1
        return self._rows.dot(w)

    def t_dot(self, v, before=None):
        self.n_t_dot += 1
        return self._rows.t_dot(v, before)


def test_an_iteration_costs_two_products_and_few_counts():
    rows = CountedRows(as_rows(X))
    pairs = Pairs(Y, Q, S)
    n_counts = 0
    count = pairs.count

    def counted(*arguments, **options):
        nonlocal n_counts
        n_counts += 1
        return count(*arguments, **options)

    pairs.count = counted
    ranking, solver = Ranking(rows, pairs, 20.0), OCAS()
    state = solver.init(ranking)
    first = rows.n_dot, rows.n_t_dot, n_counts
    for _ in range(20):
        state = solver.step(ranking, state)
    assert rows.n_dot - first[0] == 20
    assert rows.n_t_dot - first[1] == 20
    assert n_counts - first[2] <= 20 * 8


def test_a_state_continues_after_pickling_and_with_another_C():
    ranking, solver = problem(20.0), OCAS()
    state = solver.init(ranking)
    for _ in range(5):
        state = solver.step(ranking, state)
    whole = solve(ranking, start=state)
    again = solve(ranking, start=pickle.loads(pickle.dumps(state)))
    np.testing.assert_array_equal(whole.solution.w, again.solution.w)
    other = solve(problem(25.0), start=state)
    assert other.certificate.primal == pytest.approx(solve(problem(25.0)).certificate.primal, rel=1e-5)


def test_no_pair_is_an_error_that_says_so():
    with pytest.raises(SoftmarginError, match="no pair to rank"):
        Ranking(as_rows(X), Pairs(np.ones(60)), 1.0)


def test_as_plain_python():
    code = (
        "import numpy as np; from softmargin import OCAS; from softmargin.core.stopping import Stop;"
        "from softmargin.data.convert import as_rows; from softmargin.linalg.counting import Pairs;"
        "from softmargin.problems.ranking import Ranking; from softmargin.solvers.base import run;"
        "from softmargin.problems.ranking_certificate import RankingJudge; r = np.random.default_rng(0);"
        "X = r.standard_normal((20, 2)); p = Pairs(np.round(X[:, 0] + r.standard_normal(20)), r.integers(0, 2, 20));"
        "x = as_rows(X); print(run(OCAS(), Ranking(x, p, 1.0), Stop(tol=1e-3), RankingJudge(x, p, 1.0)).certificate)"
    )

    plain, compiled = printed_plain_and_compiled(code)
    assert plain.split()[:2] == compiled.split()[:2]
