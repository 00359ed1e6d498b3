"""Coordinate descent: its steps against a few lines of NumPy, its optima, free intercepts, and the change to planes."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification

from plain_python import numbers_plain_and_compiled
from softmargin import OCAS, CoordinateDescent, LinearOneClassSVM, LinearSVC, LinearSVR, SoftmarginError, certify, load
from softmargin.core.result import WeightStart
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.problems.certificate import HingeJudge
from softmargin.problems.hinge import Hinge
from softmargin.problems.hinge_targets import OneClass, Tube
from softmargin.problems.intercepts import Free, NoIntercept, intercept_named
from softmargin.problems.squared import Squared
from softmargin.problems.squared_targets import SquaredClasses
from softmargin.solvers import automatic
from softmargin.solvers.automatic import Automatic
from softmargin.solvers.base import run
from softmargin.solvers.coordinate.coordinate import CoordinateState
from softmargin.solvers.coordinate.variables import _without_excess
from softmargin.solvers.cutting_plane.state import PlaneState

INTERCEPTS = ("none", "free", "penalised")
RNG = np.random.default_rng(0)
N = 120
X = RNG.standard_normal((N, 5)) * (RNG.random((N, 5)) < 0.7) + 0.5
Y = np.where(X[:, 0] + 0.7 * RNG.standard_normal(N) > 0.5, 1.0, -1.0)
S = np.where(RNG.random(N) < 0.2, 0.0, RNG.uniform(0.3, 2.0, N))
NUMBERS = X @ RNG.standard_normal(5) + 0.3 * RNG.standard_normal(N) + 2.0
TARGETS = {
    "classes": Y * S,
    "numbers": Tube(NUMBERS, S, 0.2),
    "no tube": Tube(NUMBERS, S, 0.0),
    "one class": OneClass(S, 0.3),
}


def solved(target, intercept, solver, tol=1e-8, C=1.0, rows=X, start=None, workers=None, **limits):
    rows = as_rows(rows)
    workers = workers or Workers()
    problem = Hinge(rows, target, C, intercept, workers=workers)
    judge = HingeJudge(rows, target, C, intercept, tol)
    return run(solver, problem, Stop(tol=tol, **limits), judge, start=start, workers=workers)


def text(n=400, d=3000, seed=1):
    """Rows like those of documents: short, of length 1, in many columns."""
    rng = np.random.default_rng(seed)
    columns = np.minimum(rng.pareto(0.6, (n, 30)) * 8, d - 1).astype(int)
    rows = sp.csr_matrix((np.ones(n * 30), (np.repeat(np.arange(n), 30), columns.ravel())), shape=(n, d))
    rows.data = np.log1p(rows.data)
    rows = sp.diags(1.0 / np.sqrt(np.asarray(rows.multiply(rows).sum(1)).ravel())) @ rows
    y = np.where(rows @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return sp.csr_matrix(rows), y


class TestOptima:
    @pytest.mark.parametrize("name", TARGETS)
    @pytest.mark.parametrize("kind", INTERCEPTS)
    def test_the_optimum_is_that_of_cutting_planes(self, name, kind):
        if name == "one class" and kind != "free":
            pytest.skip("a one-class problem has a free intercept")
        intercept, target = intercept_named(kind), TARGETS[name]
        ours = solved(target, intercept, CoordinateDescent(tol=1e-8))
        theirs = solved(target, intercept, OCAS())
        assert ours.status is Status.OPTIMAL
        assert ours.certificate.relative_gap <= 1e-8
        assert ours.certificate.primal == pytest.approx(theirs.certificate.primal, rel=2e-8)

    def test_two_points_by_hand(self):
        """x = -1, 1: w = 1 with a sum of alpha of 1, if C allows it; with C = 1/8 both are at C, and w = 1/4."""
        rows, v = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])
        for C, w in ((10.0, 1.0), (0.125, 0.25)):
            for intercept in (NoIntercept(), Free()):
                found = solved(v, intercept, CoordinateDescent(), C=C, rows=rows).solution
                np.testing.assert_allclose(found.w, [w], rtol=1e-6)
                assert found.alpha.sum() == pytest.approx(min(1.0, 2 * C), rel=1e-3)

    @pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sp.csr_matrix, lambda X: X.astype(np.float32)])
    def test_every_storage(self, make):
        model = LinearSVC(solver="coordinate", tol=1e-6).fit(make(X), Y, sample_weight=S)
        exact = LinearSVC(solver="ocas", tol=1e-6).fit(make(X), Y, sample_weight=S)
        assert model.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=2e-6)

    @pytest.mark.parametrize("C", [1e-6, 1e-3, 1e2])
    @pytest.mark.parametrize("kind", INTERCEPTS)
    def test_any_C(self, kind, C):
        result = solved(Y * S, intercept_named(kind), CoordinateDescent(), tol=1e-3, C=C)
        assert result.status is Status.OPTIMAL

    def test_rows_that_are_all_the_same(self):
        for C in (1e-3, 1.0):
            result = solved(Y[:20], Free(), CoordinateDescent(), tol=1e-3, C=C, rows=np.full((20, 1), 3.0))
            assert result.status is Status.OPTIMAL

    def test_several_classes_and_weights_of_zero(self):
        labels = np.digitize(X[:, 0], [0.2, 0.8])
        model = LinearSVC(solver="coordinate", tol=1e-5).fit(X, labels, sample_weight=S)
        left = LinearSVC(solver="coordinate", tol=1e-5).fit(X[S > 0], labels[S > 0], sample_weight=S[S > 0])
        assert model.certificate_.primal == pytest.approx(left.certificate_.primal, rel=2e-5)
        assert certify(model, X, labels, sample_weight=S).relative_gap <= 1e-5


class TestSteps:
    @pytest.mark.parametrize("name", ["classes", "numbers", "no tube"])
    def test_an_epoch_minimises_over_one_variable_after_the_other(self, name):
        """The same visits in NumPy: each variable goes to the best value of a fine search around the exact one."""
        problem = Hinge(as_rows(X), TARGETS[name], 0.7, NoIntercept())
        solver = CoordinateDescent(tol=0.0)
        state = solver.init(problem)
        state = replace(state, sweep=replace(state.sweep, due=1))  # a single epoch
        after = solver.step(problem, state)
        assert after.epochs == 1
        given, beta, w = problem.coordinates, np.zeros(N), np.zeros(5)

        def value(i, b, w):
            part = w + (b - beta[i]) * X[i]
            return 0.5 * part @ part - given.target[i] * b + given.epsilon * abs(b)

        order = problem.coordinates.hi > problem.coordinates.lo
        visited = _order_of_the_first_epoch(np.flatnonzero(order))
        for i in visited:
            q = X[i] @ X[i]
            around = np.unique(np.clip(after.beta[i] + np.linspace(-1, 1, 41) / q, given.lo[i], given.hi[i]))
            assert value(i, after.beta[i], w) <= min(value(i, b, w) for b in around) + 1e-12
            w, beta[i] = w + (after.beta[i] - beta[i]) * X[i], after.beta[i]
        np.testing.assert_allclose(after.sweep.w[:5], w, rtol=1e-12)

    def test_the_dual_value_never_falls(self):
        result = solved(Y * S, NoIntercept(), CoordinateDescent(), tol=1e-10)
        assert (np.diff(result.trace["dual"]) >= 0.0).all()
        assert (np.diff(result.trace["primal"]) <= 0.0).all()

    def test_rows_that_stay_are_not_visited(self):
        rows, y = text()
        counts = solved(y, NoIntercept(), CoordinateDescent(tol=1e-6), tol=1e-6, C=1.0, rows=rows).counts
        assert counts["visits"] < 0.5 * counts["epochs"] * y.size

    def test_rows_that_gain_little_wait(self):
        rows, y = text()
        result = solved(y, NoIntercept(), CoordinateDescent(tol=1e-6), tol=1e-6, C=100.0, rows=rows)
        wait = result.state.sweep.wait
        assert wait.min() == 1
        assert 8 <= wait.max() <= 64
        assert result.counts["visits"] < 180 * y.size  # 141, and 240 if every active row came in every turn

    def test_another_C_counts_its_passes_anew(self):
        rows, y = text()
        first, again = Hinge(as_rows(rows), y, 10.0, NoIntercept()), Hinge(as_rows(rows), y, 20.0, NoIntercept())
        solver = CoordinateDescent()
        state = solver.init(first)
        for _ in range(5):
            state = solver.step(first, state)
        state = solver.init(again, state)
        assert (state.epochs, state.visits) == (0, 0)
        assert state.passes <= 2  # one look

    def test_the_mean_of_the_points_is_better_than_the_last_one(self):
        rows, y = text(2000, 300, seed=3)
        y[np.random.default_rng(1).random(2000) < 0.1] *= -1.0
        problem, solver = Hinge(as_rows(rows), y, 10.0, NoIntercept()), CoordinateDescent(tol=1e-9)
        state = solver.init(problem)
        while not (state.is_measured and state.epochs > 30):
            state = solver.step(problem, state)
        w = state.sweep.w[:300]
        of_last = 0.5 * w @ w + 10.0 * problem.risk(problem.outputs(w))
        assert state.primal - state.dual < 0.9 * (of_last - state.dual)

    def test_compiled_and_plain_are_the_same(self):
        code = """
import numpy as np
from softmargin import LinearSVC, LinearSVR
rng = np.random.default_rng(0)
X = rng.standard_normal((12, 3)) + 1.0
y = np.where(X[:, 0] + rng.standard_normal(12) > 1.0, 1, -1)
for model in (LinearSVC(solver="coordinate", max_iter=3), LinearSVR(solver="coordinate", epsilon=0.1, max_iter=3)):
    import warnings
    warnings.simplefilter("ignore")
    model.fit(X, y)
    print(*(float(v).hex() for v in [*model.coef_.ravel(), *np.ravel(model.intercept_), *model.dual_]))
"""
        plain, compiled = numbers_plain_and_compiled(code)
        np.testing.assert_allclose(plain, compiled, rtol=1e-9, atol=1e-12)


def _order_of_the_first_epoch(rows):
    from softmargin.solvers.coordinate import _visits
    from softmargin.solvers.coordinate.coordinate import _first_seed

    order = rows.copy()
    _visits.shuffle(order, order.size, np.array([_first_seed(None)], dtype=np.uint64))
    return order


class TestFreeIntercept:
    def test_it_costs_hardly_more_passes_than_none(self):
        rows, y = text(1500, seed=2)
        y[RNG.random(1500) < 0.05] *= -1.0
        passes = {
            kind: solved(y, intercept_named(kind), CoordinateDescent(), tol=1e-3, rows=rows).counts["visits"]
            for kind in ("none", "free")
        }
        assert passes["free"] <= 1.5 * passes["none"]

    def test_rows_far_from_the_origin_need_no_more_passes(self):
        near = solved(Y, Free(), CoordinateDescent(), tol=1e-4)
        far = solved(Y, Free(), CoordinateDescent(), tol=1e-4, rows=X + 100.0)
        assert far.status is Status.OPTIMAL
        assert far.counts["visits"] <= 2 * near.counts["visits"]

    @pytest.mark.parametrize("excess", [0.3, -0.3, 40.0, -40.0])
    def test_an_excess_is_taken_off_within_the_ranges(self, excess):
        given = Hinge(as_rows(X), Y, 1.0, Free()).coordinates
        beta = np.clip(RNG.uniform(-1.5, 1.5, N), given.lo, given.hi)
        change = _without_excess(given, beta, excess)
        assert change.sum() == pytest.approx(-excess)
        assert (beta + change >= given.lo - 1e-12).all()
        assert (beta + change <= given.hi + 1e-12).all()


class TestStates:
    def test_the_same_bits_for_any_number_of_threads(self):
        rows, y = text(900)
        one, two = (LinearSVC(solver="coordinate", n_jobs=k).fit(rows, y) for k in (1, 2))
        assert one.coef_.tobytes() == two.coef_.tobytes()
        other = LinearSVC(solver="coordinate", random_state=5).fit(rows, y)
        assert other.coef_.tobytes() != one.coef_.tobytes()
        assert LinearSVC(solver="coordinate").fit(rows, y).coef_.tobytes() == one.coef_.tobytes()

    def test_going_on_is_as_if_it_had_never_stopped(self):
        rows, y = text()
        whole = LinearSVC(10.0, solver="coordinate", tol=1e-6).fit(rows, y)
        model = LinearSVC(10.0, solver="coordinate", tol=1e-6, max_iter=2, warm_start=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(100):
                if model.fit(rows, y).status_ is Status.OPTIMAL:
                    break
        assert model.coef_.tobytes() == whole.coef_.tobytes()
        assert model.n_iter_ == whole.n_iter_

    @pytest.mark.parametrize("model", [LinearSVC(), LinearSVR(epsilon=0.1), LinearOneClassSVM(nu=0.3)], ids=str)
    def test_a_state_from_a_file_goes_on(self, model, tmp_path):
        y = NUMBERS if isinstance(model, LinearSVR) else Y
        model.set_params(solver="coordinate", tol=1e-7, max_iter=1, warm_start=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X + 1.0, y).save(tmp_path / "m", include_training_state=True)
        again = load(tmp_path / "m")
        assert isinstance(again._state[1][0], CoordinateState)
        again.set_params(max_iter=None).fit(X + 1.0, y)
        model.set_params(max_iter=None).fit(X + 1.0, y)
        assert again.coef_.tobytes() == model.coef_.tobytes()
        assert again.status_ is Status.OPTIMAL
        assert certify(again, X + 1.0, y).relative_gap <= 1e-7

    @pytest.mark.parametrize("lie", ["order", "n_active", "w", "beta"])
    def test_a_state_that_lies_is_found(self, lie, tmp_path):
        model = LinearSVC(solver="coordinate", tol=1e-9, max_iter=1, warm_start=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, Y)
        key, (state,) = model._state
        sweep = state.sweep
        if lie == "beta":
            state = replace(state, beta=state.beta + 10.0)
        elif lie == "n_active":
            state = replace(state, sweep=replace(sweep, n_active=sweep.order.size + 1))
        else:
            state = replace(state, sweep=replace(sweep, **{lie: getattr(sweep, lie) + 7}))
        model._state = key, [state]
        with pytest.raises(SoftmarginError, match="the training state does not fit these rows"):
            model.fit(X, Y)

    def test_pickles_and_another_C(self):
        model = LinearSVC(solver="coordinate", tol=1e-6, warm_start=True).fit(X, Y)
        model = pickle.loads(pickle.dumps(model))
        for C in (10.0, 0.01):
            model.set_params(C=C).fit(X, Y)
            cold = LinearSVC(C, solver="coordinate", tol=1e-6).fit(X, Y)
            assert model.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-6)

    def test_bare_weights_are_a_first_point(self):
        best = solved(Y, NoIntercept(), CoordinateDescent(), tol=1e-6).solution.w
        result = solved(Y, NoIntercept(), CoordinateDescent(), tol=1e-6, start=WeightStart(best))
        assert result.trace["primal"][0] == pytest.approx(result.certificate.primal, rel=1e-6)

    def test_limits_and_seeds(self):
        stopped = solved(Y, Free(), CoordinateDescent(), tol=1e-12, max_iter=1)
        assert stopped.status is Status.MAX_ITER
        assert stopped.certificate.dual <= stopped.certificate.primal
        assert stopped.counts["iterations"] == 1
        with pytest.raises(SoftmarginError, match="seed=-1 must be an integer of at least 0"):
            CoordinateDescent(seed=-1)


class TestAutomatic:
    def test_text_is_for_coordinate_descent(self):
        rows, y = text()
        model = LinearSVC(10.0).fit(rows, y)
        assert model.solver_.startswith("Coordinate descent, because there are many features")
        assert set(model.trace_["planes"]) == {0}

    def test_few_features_and_much_data_are_for_planes(self):
        rows, y = make_classification(30_000, 10, random_state=0)
        model = LinearSVC().fit(rows, y)
        assert model.solver_.startswith("Cutting planes (OCAS), because there are few features")
        assert model.coef_.tobytes() == LinearSVC(solver="ocas").fit(rows, y).coef_.tobytes()

    def test_it_begins_with_cutting_planes_where_rows_are_long(self):
        model = LinearSVC(100.0).fit(X * 100.0, Y)
        assert model.solver_.startswith("Cutting planes (OCAS), because")

    def test_it_changes_over_where_coordinate_descent_does_not_get_on(self, monkeypatch):
        monkeypatch.setattr(automatic, "ENTRIES_AND_LENGTHS", ((0, np.inf, np.inf),))
        rows = X * 10.0 ** np.array([-3, -2, 0, 2, 3])
        model = LinearSVC(100.0, warm_start=True).fit(rows, Y)
        assert model.status_ is Status.OPTIMAL
        assert model.solver_.startswith("Coordinate descent, and then cutting planes (OCAS)")
        assert model.trace_["planes"][0] == 0 < model.trace_["planes"][-1]
        assert (np.diff(model.trace_["iteration"]) == 1).all()
        assert (np.diff(model.trace_["primal"]) <= 1e-9).all()
        assert isinstance(model._state[1][0], PlaneState)
        assert model.fit(rows, Y).n_iter_ == model.trace_["iteration"][-1]  # nothing was left to do

    def test_a_stalled_descent_is_followed_by_planes(self):
        problem = Hinge(as_rows(X), Y, 1.0, Free())
        solver = Automatic(CoordinateDescent(), OCAS())
        state = solver.init(problem)
        assert isinstance(state, CoordinateState)
        stalled = replace(state, idle=10**6)
        assert not solver.is_stalled(stalled)
        assert isinstance(solver.step(problem, stalled), PlaneState)

    def test_rows_by_columns_and_storages_without_rows_are_for_planes(self):
        wide = RNG.standard_normal((400, 1500))
        y = np.where(wide[:, 0] > 0.0, 1.0, -1.0)
        assert automatic.suits_planes(Hinge(as_rows(np.asfortranarray(wide)), y, 1.0, Free(), Workers(1)))
        assert not automatic.suits_planes(Hinge(as_rows(wide), y, 1.0, Free(), Workers(1)))
        assert not automatic.suits_planes(Hinge(as_rows(np.asfortranarray(X)), Y, 1.0, Free(), Workers(1)))

    def test_newton_begins_where_passes_cost_more_than_its_matrix(self):
        def suits(rows, length):
            y = np.where(np.arange(len(rows)) % 2, 1.0, -1.0)
            C = length / (rows**2).sum(axis=1).mean()
            return automatic.suits_planes(Squared(as_rows(sp.csr_matrix(rows)), SquaredClasses(y), C))

        short = RNG.standard_normal((1000, 300)) * (RNG.random((1000, 300)) < 0.05)
        assert suits(short, 0.4)
        assert not suits(short, 0.2)
        long = RNG.standard_normal((1000, 600)) * (RNG.random((1000, 600)) < 0.2)  # 120 entries in each row
        assert suits(long, 20.0)
        assert not suits(long, 10.0)
        many = np.zeros((1 << 17, 2))
        many[:, 0] = 1.0
        assert suits(many, 0.05)
        assert not suits(many, 0.02)

    def test_what_was_chosen_is_kept_in_the_file(self, tmp_path):
        model = LinearSVC().fit(X, Y)
        model.save(tmp_path / "m")
        assert load(tmp_path / "m").solver_ == model.solver_
        assert LinearSVC(solver="cpa").fit(X, Y).solver_ == "CPA, as asked for."
