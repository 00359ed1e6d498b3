"""Pegasos and SGD against ten lines of NumPy on the same draws, their bounds, and how they end."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification

from plain_python import numbers_plain_and_compiled
from softmargin import OCAS, SGD, ConvergenceWarning, LinearSVC, Pegasos, SoftmarginError, Status
from softmargin.core.errors import Abandoned
from softmargin.core.result import WeightStart
from softmargin.core.stopping import Stop
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.problems.certificate import HingeJudge
from softmargin.problems.hinge import Hinge
from softmargin.problems.intercepts import Free, NoIntercept, Penalised, intercept_named
from softmargin.solvers.base import run
from softmargin.solvers.subgradient import state as shared

INTERCEPTS = ("none", "free", "penalised")
SOLVERS = (Pegasos(seed=1), SGD(seed=1), SGD(seed=1, average=True))
ids = ("pegasos", "sgd", "averaged")


def data(n=150, d=6, seed=0):
    X, y = make_classification(n, d, n_informative=4, flip_y=0.1, random_state=seed)
    return X, np.where(y, 1.0, -1.0)


def weights(n, seed=0):
    """Some 0, the others between 0.2 and 3."""
    s = np.random.default_rng(seed).uniform(0.2, 3.0, n)
    s[::7] = 0.0
    return s


def after(solver, problem, n_epochs):
    state = solver.init(problem)
    for _ in range(n_epochs):
        state = solver.step(problem, state)
    return state


def visits(solver, v, n_epochs):
    """The rows of the first epochs in their order, with label times weight."""
    for epoch in range(n_epochs):
        yield from zip(*solver.epoch(v, np.flatnonzero(v), np.random.default_rng([solver.seed, epoch])), strict=True)


def naive_pegasos(X, solver, v, C, n_epochs):
    """Figure 1 of the paper with k = 1."""
    lam = 1.0 / (C * np.abs(v).sum())
    w = np.zeros(X.shape[1])
    for t, (i, y) in enumerate(visits(solver, v, n_epochs), start=1):
        eta = 1.0 / (lam * t)
        violates = y * (X[i] @ w) < 1.0
        w = (1.0 - eta * lam) * w
        if violates:
            w = w + eta * y * X[i]
        if solver.projection:
            w = w * min(1.0, 1.0 / (np.sqrt(lam) * max(np.linalg.norm(w), 1e-300)))
    return w


def naive_svmsgd2(X, solver, v, C, n_epochs, bias_gain=0.0):
    """svmsgd2: the update with every row, the shrinking in every skip-th step."""
    lam = 1.0 / (C * np.abs(v).sum())
    t0 = max(1.0, lam**-0.75)
    skip = int(16 * X[v != 0].size / np.count_nonzero(X[v != 0]))
    w, b = np.zeros(X.shape[1]), 0.0
    for t, (i, gain) in enumerate(visits(solver, v, n_epochs), start=1):
        eta = 1.0 / (lam * (t0 + t))
        if np.sign(gain) * (X[i] @ w + b) < 1.0:
            w = w + eta * gain * X[i]
            b += eta * gain * bias_gain
        if t % skip == 0:
            r = 1.0 - eta * lam * skip
            w = w * (r if r >= 0.8 else (1.0 - eta * lam) ** skip)
    return w, b


def naive_averaged(X, solver, v, C, n_epochs):
    """svmasgd: the mean of all points from the second epoch on."""
    lam, n = 1.0 / (C * np.abs(v).sum()), np.count_nonzero(v)
    eta0 = min(1.0 / np.mean((X[v != 0] ** 2).sum(axis=1)), 1.0 / lam)
    w, points = np.zeros(X.shape[1]), []
    for t, (i, gain) in enumerate(visits(solver, v, n_epochs), start=1):
        eta = eta0 * (1.0 + lam * eta0 * t) ** -0.75
        violates = np.sign(gain) * (X[i] @ w) < 1.0
        w = (1.0 - eta * lam) * w + (eta * gain * X[i] if violates else 0.0)
        if t > n:
            points.append(w)
    return np.mean(points, axis=0)


def assert_same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("projection", [True, False])
@pytest.mark.parametrize("C", [1e-4, 0.02, 50.0])
def test_pegasos_is_the_algorithm_of_the_paper(C, projection):
    X, y = data()
    solver = Pegasos(projection=projection, iterations=10**6, seed=3)
    v = y * weights(len(y))
    assert_same(after(solver, Hinge(as_rows(X), v, C, NoIntercept()), 3).w, naive_pegasos(X, solver, v, C, 3))


def test_sgd_is_svmsgd2():
    X, y = data()
    X[np.abs(X) < 0.5] = 0.0
    v = y * weights(len(y))
    for C in (1e-4, 0.02, 50.0):
        state = after(SGD(seed=3), Hinge(as_rows(sp.csr_matrix(X)), v, C, NoIntercept()), 3)
        assert_same(state.w, naive_svmsgd2(X, SGD(seed=3), v, C, 3)[0])
    gain = 0.5 * np.abs(X[v != 0]).mean(axis=0).max()
    state = after(SGD(seed=3), Hinge(as_rows(X), v, 0.02, Free()), 3)
    w, b = naive_svmsgd2(np.where(X == 0, 1e-300, X), SGD(seed=3), v, 0.02, 3, gain)  # dense: zeros are entries
    assert_same(state.w, w)
    assert state.b == pytest.approx(b, rel=1e-12)


def test_averaged_sgd_is_the_mean_of_its_points():
    X, y = data()
    v = y * weights(len(y))
    for C in (1e-4, 0.02, 50.0):
        state = after(SGD(seed=3, average=True), Hinge(as_rows(X), v, C, NoIntercept()), 4)
        assert_same(state.total / state.n_total, naive_averaged(X, SGD(seed=3), v, C, 4))
        assert state.n_total == 3 * np.count_nonzero(v)


@pytest.mark.parametrize("solver", SOLVERS, ids=ids)
def test_a_penalised_intercept_is_a_constant_feature(solver):
    X, y = data()
    wide = np.column_stack([X, np.full(len(y), 0.7)])
    schedule = solver.schedule(Hinge(as_rows(wide), y, 1.0, NoIntercept()), np.arange(len(y)))
    ends = []
    for problem in (Hinge(as_rows(X), y, 1.0, Penalised(0.7)), Hinge(as_rows(wide), y, 1.0, NoIntercept())):
        state = replace(solver.init(problem), schedule=schedule)
        for _ in range(3):
            state = solver.step(problem, state)
        ends.append(state)
    assert_same(ends[0].w, ends[1].w)
    assert ends[0].primal == pytest.approx(ends[1].primal, rel=1e-10)
    assert ends[0].dual == pytest.approx(ends[1].dual, rel=1e-10)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("solver", SOLVERS, ids=ids)
def test_storage_does_not_matter(solver, intercept):
    X, y = data()
    X = np.round(4 * X)
    forms = [X, np.asfortranarray(X), sp.csr_matrix(X)]
    schedule = solver.init(Hinge(as_rows(X), y, 0.1, intercept_named(intercept))).schedule  # skip depends on sparsity
    ends = []
    for form in forms:
        problem = Hinge(as_rows(form), y, 0.1, intercept_named(intercept))
        state = replace(solver.init(problem), schedule=schedule)
        ends.append(solver.step(problem, solver.step(problem, state)))
    for end in ends[1:]:
        assert_same(end.w, ends[0].w)
        np.testing.assert_array_equal(end.hits, ends[0].hits)


def test_a_dual_vector_of_counts_is_what_w_is_made_of():
    """Without projection, after T steps of 1 / (lambda t) every violating visit weighs 1 / (lambda T)."""
    X, y = data()
    v = y * weights(len(y))
    problem = Hinge(as_rows(X), v, 0.3, NoIntercept())
    state = after(Pegasos(projection=False, seed=0), problem, 1)
    alpha = problem.scale / state.visits * state.hits
    assert_same(state.w, X.T @ (alpha * np.sign(v)))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("solver", SOLVERS, ids=ids)
def test_the_judge_finds_what_the_solver_believes(solver, intercept):
    X, y = data()
    v = y * weights(len(y))
    problem, judge = (
        Hinge(as_rows(X), v, 0.3, intercept_named(intercept)),
        HingeJudge(as_rows(X), v, 0.3, intercept_named(intercept)),
    )
    state = solver.init(problem)
    for _ in range(5):
        before, state = state, solver.step(problem, state)
        certificate = judge(solver.solution(problem, state))
        assert certificate.primal == pytest.approx(state.primal, rel=1e-10)
        assert certificate.dual == pytest.approx(state.dual, rel=1e-10, abs=1e-10 * problem.scale)
        assert (state.bound <= 0.3 * np.abs(v) * (1 + 1e-12)).all()
        assert state.primal <= before.primal
        assert state.dual >= before.dual
        assert state.passes == before.passes + 3
    assert 0.0 < state.dual < state.primal


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("solver", [Pegasos(60_000, seed=0), SGD(30, seed=0), SGD(30, seed=0, average=True)], ids=ids)
def test_comes_close_to_the_optimum_of_an_easy_problem(solver, intercept):
    X, y = data(n=2000, d=10)
    problem, judge = (
        Hinge(as_rows(X), y, 0.1, intercept_named(intercept)),
        HingeJudge(as_rows(X), y, 0.1, intercept_named(intercept)),
    )
    optimum = run(OCAS(), problem, Stop(tol=1e-6), judge).certificate.primal
    result = run(solver, problem, Stop(tol=1e-5), judge)
    assert result.status is Status.BUDGET
    certificate = result.certificate
    assert optimum * (1 - 1e-6) <= certificate.primal <= 1.02 * optimum
    assert 0.8 * optimum <= certificate.dual <= optimum
    assert run(solver, problem, Stop(tol=0.5), judge).status is Status.OPTIMAL


@pytest.mark.parametrize("solver", SOLVERS, ids=ids)
def test_rows_without_weight_are_as_if_removed(solver):
    X, y = data()
    s = weights(len(y))
    kept = s > 0
    all_rows = after(solver, Hinge(as_rows(X), y * s, 0.3, Free()), 3)
    fewer = after(solver, Hinge(as_rows(X[kept]), (y * s)[kept], 0.3, Free()), 3)
    assert_same(all_rows.w, fewer.w)
    np.testing.assert_array_equal(all_rows.seen[kept], fewer.seen)
    assert not all_rows.seen[~kept].any()


def test_pegasos_draws_in_proportion_to_weights():
    v = np.array([0.0, 3.0, -1.0, 2.0, -2.0] * 2000)
    rows, gains = Pegasos().epoch(v, np.flatnonzero(v), np.random.default_rng(0))
    share = np.bincount(rows % 5, minlength=5) / rows.size
    np.testing.assert_allclose(share, [0.0, 3 / 8, 1 / 8, 2 / 8, 2 / 8], atol=0.02)
    np.testing.assert_array_equal(gains, np.sign(v[rows]))


@pytest.mark.parametrize("solver", SOLVERS, ids=ids)
def test_seeds_and_threads(solver, monkeypatch):
    X, y = data(n=3000, d=40)
    monkeypatch.setattr("softmargin.data.rows.BLOCK_VALUES", 5000)  # so that there is something to share out
    ends = []
    for n_threads, seed in ((1, 1), (2, 1), (5, 1), (1, 2)):
        workers = Workers(n_threads)
        problem = Hinge(as_rows(X, workers), y, 0.1, Free(), workers=workers)
        ends.append(after(replace(solver, seed=seed), problem, 3))
        workers.close()
    for same in ends[1:3]:
        np.testing.assert_array_equal(same.best, ends[0].best)
        np.testing.assert_array_equal(same.bound, ends[0].bound)
    assert not np.array_equal(ends[3].w, ends[0].w)
    problem = Hinge(as_rows(X), y, 0.1, Free())
    fresh = [after(replace(solver, seed=None), problem, 1).w for _ in range(2)]
    assert not np.array_equal(*fresh)


@pytest.mark.parametrize("solver", SOLVERS, ids=ids)
def test_states_are_values(solver):
    X, y = data()
    problem = Hinge(as_rows(X), y, 0.3, Free())
    middle = after(solver, problem, 3)
    copied = pickle.loads(pickle.dumps(middle))
    one, two, three = (solver.step(problem, solver.step(problem, state)) for state in (middle, middle, copied))
    for other in (two, three):
        for name in ("w", "hits", "total", "best", "bound"):
            np.testing.assert_array_equal(getattr(other, name), getattr(one, name))


@pytest.mark.parametrize("n_slice", [1, 7, 1 << 20])
@pytest.mark.parametrize("solver", SOLVERS, ids=ids)
def test_an_epoch_can_be_given_up_between_slices(solver, n_slice, monkeypatch):
    X, y = data()
    workers = Workers(1)
    problem = Hinge(as_rows(X, workers), y, 0.3, Free(), workers=workers)
    whole = after(solver, problem, 3)
    monkeypatch.setattr(shared, "SLICE_VALUES", n_slice * X.shape[1])
    state, n_checks = after(solver, problem, 2), 0

    def count():
        nonlocal n_checks
        n_checks += 1

    with workers.checking(count):
        sliced = solver.step(problem, state)
    assert n_checks >= len(y) / n_slice
    assert_same(sliced.w, whole.w)

    def give_up():
        raise Abandoned

    with workers.checking(give_up), pytest.raises(Abandoned):
        solver.step(problem, state)
    np.testing.assert_array_equal(solver.step(problem, state).w, sliced.w)


class TestBudget:
    def test_is_counted_in_visits_and_epochs(self):
        X, y = data()
        problem, judge = Hinge(as_rows(X), y, 0.02, NoIntercept()), HingeJudge(as_rows(X), y, 0.02, NoIntercept())
        for solver, n_visits, n_epochs in (
            (SGD(epochs=4, seed=0), 600, 4),
            (Pegasos(seed=0), 300, 2),  # 100 / lambda = 100 C n
            (Pegasos(iterations=301, seed=0), 301, 3),
            (Pegasos(iterations=7, seed=0), 7, 1),
        ):
            result = run(solver, problem, Stop(tol=0.0), judge)
            assert result.status is Status.BUDGET
            assert result.counts == {"iterations": n_epochs, "passes": 3 * n_epochs, "visits": n_visits}
        assert run(SGD(), problem, Stop(tol=0.0, max_iter=3), judge).status is Status.MAX_ITER
        assert run(SGD(), problem, Stop(tol=0.0, max_seconds=0.0), judge).status is Status.MAX_SECONDS

    def test_a_huge_one_ends_by_the_limits(self):
        X, y = data()
        problem, judge = Hinge(as_rows(X), y, 1e6, Free()), HingeJudge(as_rows(X), y, 1e6, Free())
        result = run(Pegasos(seed=0), problem, Stop(tol=1e-9, max_seconds=0.1), judge)
        assert result.status is Status.MAX_SECONDS
        assert result.state.last_visit == 100 * 10**6 * 150

    @pytest.mark.parametrize("solver", SOLVERS, ids=ids)
    def test_a_fit_that_was_cut_short_is_completed_a_finished_one_goes_on(self, solver):
        X, y = data()
        problem, judge = Hinge(as_rows(X), y, 0.1, Free()), HingeJudge(as_rows(X), y, 0.1, Free())
        once = run(solver, problem, Stop(tol=0.0), judge)
        half = run(solver, problem, Stop(tol=0.0, max_iter=4), judge)
        rest = run(solver, problem, Stop(tol=0.0), judge, start=half.state)
        np.testing.assert_array_equal(rest.solution.w, once.solution.w)
        np.testing.assert_array_equal(rest.solution.alpha, once.solution.alpha)
        assert rest.counts == once.counts
        more = run(solver, problem, Stop(tol=0.0), judge, start=once.state)
        assert more.counts["iterations"] == 2 * once.counts["iterations"]
        assert more.certificate.gap <= once.certificate.gap


class TestStarts:
    @pytest.mark.parametrize("intercept", INTERCEPTS)
    @pytest.mark.parametrize("solver", SOLVERS, ids=ids)
    def test_from_weights(self, solver, intercept):
        X, y = data()
        problem, judge = (
            Hinge(as_rows(X), y, 0.3, intercept_named(intercept)),
            HingeJudge(as_rows(X), y, 0.3, intercept_named(intercept)),
        )
        best = run(OCAS(), problem, Stop(tol=1e-6), judge)
        w = best.solution.w if intercept != "penalised" else np.append(best.solution.w, best.solution.b)
        state = solver.init(problem, WeightStart(w))
        assert state.primal == pytest.approx(best.certificate.primal, rel=1e-9)
        if intercept == "free":
            assert state.b == pytest.approx(best.solution.b, abs=1e-3)
        result = run(solver, problem, Stop(tol=0.0, max_iter=5), judge, start=WeightStart(w))
        assert result.certificate.primal <= state.primal * (1 + 1e-12)
        assert 0.0 < result.certificate.dual < result.certificate.primal

    @pytest.mark.parametrize("solver", SOLVERS, ids=ids)
    def test_at_another_C(self, solver):
        X, y = data()
        first = after(solver, Hinge(as_rows(X), y, 0.1, Free()), 10)
        problem, judge = Hinge(as_rows(X), y, 0.2, Free()), HingeJudge(as_rows(X), y, 0.2, Free())
        state = solver.init(problem, first)
        certificate = judge(solver.solution(problem, state))
        assert certificate.primal == pytest.approx(state.primal, rel=1e-10)
        assert certificate.dual == pytest.approx(state.dual, rel=1e-10)
        assert state.last_visit - state.visits == solver.init(problem).last_visit
        np.testing.assert_array_equal(state.w, first.w)
        assert solver.step(problem, state).n_total == (150 if solver.averages else 0)


@pytest.mark.parametrize("solver", SOLVERS, ids=ids)
@pytest.mark.parametrize("factor", [1e8, 1e160, 1e300])
def test_overflow_ends_with_the_best_finite_point(solver, factor):
    X, y = data()
    X *= factor
    with np.errstate(over="ignore", invalid="ignore"):  # the judge squares lengths
        problem, judge = Hinge(as_rows(X), y, 1e3, Free()), HingeJudge(as_rows(X), y, 1e3, Free())
        result = run(solver, problem, Stop(tol=1e-3, max_iter=5), judge)
    assert result.status in (Status.STALLED, Status.MAX_ITER)
    assert np.isfinite(result.solution.w).all()
    assert np.isfinite(result.certificate.primal)


def test_nothing_with_weight_is_done_at_once():
    problem = Hinge(as_rows(np.ones((3, 2))), np.zeros(3), 1.0, Free())
    for solver in SOLVERS:
        assert solver.measure(problem, solver.init(problem)).spent


def test_runs_without_the_compiler():
    code = """
import numpy as np
from softmargin import SGD, Pegasos
from softmargin.data.convert import as_rows
from softmargin.problems.hinge import Hinge
from softmargin.problems.intercepts import Penalised
import scipy.sparse as sp

X = np.random.default_rng(0).standard_normal((12, 3))
X[X < -1] = 0
for form in (X, np.asfortranarray(X), sp.csr_matrix(X)):
    for solver in (Pegasos(seed=0), SGD(seed=0), SGD(seed=0, average=True)):
        problem = Hinge(as_rows(form), np.where(X[:, 0] > 0, 1.0, -1.0), 1.0, Penalised())
        state = solver.init(problem)
        for _ in range(3):
            state = solver.step(problem, state)
        print(*[float(x).hex() for x in (*state.w, state.primal, state.dual)])
"""

    plain, compiled = numbers_plain_and_compiled(code)
    assert plain.shape == (9, 6)
    assert_same(plain, compiled)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SGD(epochs=0), "epochs=0 must be a positive integer"),
        (lambda: SGD(epochs=2.5), r"epochs=2\.5 must be a positive integer"),
        (lambda: Pegasos(iterations=-1), "iterations=-1 must be a positive integer"),
        (lambda: SGD(seed=-1), "seed=-1 must be an integer of at least 0"),
        (lambda: Pegasos(seed="a"), "seed='a' must be an integer"),
        (lambda: LinearSVC(solver="sgd", random_state=-1).fit(*data()), "random_state=-1 must be an integer"),
        (lambda: LinearSVC(solver="sgd", random_state="a").fit(*data()), "random_state='a' must be an integer"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(SoftmarginError, match=message):
        make()


def fit_quietly(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


class TestLinearSVC:
    @pytest.mark.parametrize("solver", ["pegasos", "sgd"])
    def test_ends_with_its_budget_and_one_warning(self, solver):
        X, y = data()
        with pytest.warns(ConvergenceWarning, match="own budget .* used up") as caught:
            model = LinearSVC(0.1, solver=solver, random_state=0).fit(X, y)
        assert len(caught) == 1
        assert f"gap is {model.certificate_.relative_gap:.2g}" in str(caught[0].message)
        assert "solver='ocas'" in str(caught[0].message)
        assert model.status_ is Status.BUDGET
        assert model.n_iter_ == 10
        assert (model.trace_["dual"] <= model.trace_["primal"]).all()
        assert model.trace_[-1].passes == 30

    @pytest.mark.parametrize("solver", ["pegasos", "sgd", SGD(average=True)])
    def test_random_state(self, solver):
        X, y = make_classification(200, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)

        def coef(random_state, **parameters):
            return fit_quietly(LinearSVC(0.1, solver=solver, random_state=random_state, **parameters), X, y).coef_

        np.testing.assert_array_equal(coef(0), coef(0, n_jobs=2))
        np.testing.assert_array_equal(coef(np.random.RandomState(0)), coef(np.random.RandomState(0)))
        assert not np.array_equal(coef(0), coef(1))
        assert not np.array_equal(coef(None), coef(None))

    def test_a_seed_of_the_solver_goes_first(self):
        X, y = data()
        models = [fit_quietly(LinearSVC(0.1, solver=SGD(seed=5), random_state=k), X, y) for k in (0, 1)]
        np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
        assert models[0].solver == SGD(seed=5)

    def test_warm_start(self):
        X, y = data()
        once = fit_quietly(LinearSVC(0.1, solver="sgd", random_state=0), X, y)
        model = fit_quietly(LinearSVC(0.1, solver="sgd", random_state=0, warm_start=True, max_iter=3), X, y)
        assert model.status_ is Status.MAX_ITER
        fit_quietly(model.set_params(max_iter=None), X, y)
        np.testing.assert_array_equal(model.coef_, once.coef_)
        np.testing.assert_array_equal(model.dual_, once.dual_)
        fit_quietly(model, X, y)
        assert model.n_iter_ == 20

    @pytest.mark.parametrize(("first", "second"), [("sgd", "ocas"), ("ocas", "sgd"), ("pegasos", "ocas")])
    def test_hands_its_weights_to_another_solver(self, first, second):
        X, y = data()
        model = fit_quietly(LinearSVC(0.1, solver=first, random_state=0, warm_start=True), X, y)
        reached = model.certificate_.primal
        fit_quietly(model.set_params(solver=second), X, y)
        assert model.trace_["primal"][0] == pytest.approx(reached, rel=1e-9)
        assert model.certificate_.primal <= reached * (1 + 1e-9)
