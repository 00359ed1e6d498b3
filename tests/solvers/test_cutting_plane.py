"""OCAS and CPA: what the papers promise, what an iteration costs, and how states behave."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.preprocessing import StandardScaler

from softmargin import LinearSVC, load
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.linalg.counting import Pairs
from softmargin.problems.base import LineMinimum
from softmargin.problems.certificate import HingeJudge
from softmargin.problems.hinge import Hinge
from softmargin.problems.intercepts import Free, NoIntercept, intercept_named
from softmargin.problems.ranking import Ranking
from softmargin.problems.ranking_certificate import RankingJudge
from softmargin.solvers.base import run
from softmargin.solvers.cutting_plane.cpa import CPA
from softmargin.solvers.cutting_plane.ocas import OCAS
from softmargin.solvers.cutting_plane.planes import Planes
from softmargin.solvers.cutting_plane.state import PATIENCE, STALL_STEPS, WeightStart, refreshed

INTERCEPTS = ("none", "free", "penalised")


class CountingRows:
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


def data(wide=False):
    if wide:
        X, y = make_classification(60, 200, n_informative=20, flip_y=0.1, random_state=0)
    else:
        X, y = load_breast_cancer(return_X_y=True)
        X = StandardScaler().fit_transform(X)
    return X, np.where(y, 1.0, -1.0)


def problem_and_judge(wide=False, C=1.0, intercept="none"):
    X, v = data(wide)
    rows = CountingRows(as_rows(X))
    return Hinge(rows, v, C, intercept_named(intercept)), HingeJudge(as_rows(X), v, C, intercept_named(intercept)), rows


def states(solver, problem, n):
    state = solver.init(problem)
    yield state
    for _ in range(n):
        state = solver.step(problem, state)
        yield state


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("wide", [False, True], ids=["tall", "wide"])
def test_ocas_primal_falls_and_bound_grows(intercept, wide):
    problem, _, _ = problem_and_judge(wide, intercept=intercept)
    primal, dual = np.array([(s.primal, s.dual) for s in states(OCAS(), problem, 25)]).T
    assert (np.diff(primal) <= 0).all()
    open_gap = (primal - dual)[:-1] > 1e-10 * primal[:-1]
    assert (np.diff(dual)[open_gap] > 0).all()
    assert (primal >= dual - 1e-12 * primal).all()


def ranking_problem(C=1.0):
    """Pairs over three ranks, rows of length at most 1."""
    X, y = make_classification(80, 10, n_informative=5, n_classes=3, flip_y=0.2, random_state=0)
    X = X / np.sqrt((X**2).sum(axis=1).max())
    pairs = Pairs(y.astype(float))
    return Ranking(as_rows(X), pairs, C), RankingJudge(as_rows(X), pairs, C)


def largest_slope(problem):
    """A bound on |a| of every plane <a, w> + e of R: scale / C times the longest row, or difference of two rows."""
    longest = np.sqrt(problem.rows.sq_norms().max())
    if isinstance(problem, Ranking):
        longest *= 2.0
    elif problem.intercept == "penalised":
        longest = np.hypot(longest, problem.intercept_scaling)
    return problem.scale / problem.C * longest


def assert_steps_rise_as_stated(solver, problem, n_steps=25):
    """The proof of Theorem 1 (OCAS) and of Lemma 2 (SVM-perf), step by step.

    While the gap is eps, the new plane cuts off the reduced minimiser w_t by at least eps: F_(t+1)(w_t) - F_t(w_t) >=
    eps. Towards the point where the new plane has all the weight the reduced dual is a parabola with that slope and the
    curvature L^2 = |C a_new + w_t|^2, so its maximum over [0, 1] rises by at least min(eps / 2, eps^2 / (2 L^2)). As
    |C a| <= C Q and |w_t| <= C Q with the papers' C, this is at least min(eps / 2, eps^2 / (8 C^2 Q^2)). (OCAS's proof
    prints it without C^2, but its bound (10) has it.) A millionth is left for rounding.
    """
    slope = largest_slope(problem)
    state = solver.init(problem)
    n_checked = 0
    for _ in range(n_steps):
        eps = state.primal - state.dual
        if eps <= 1e-9 * problem.scale:
            break
        t = len(state.planes)
        H, e = state.planes.gram[:t, :t], state.planes.constants
        towards = -state.gamma
        towards[-1] += problem.C
        cut, curvature = towards @ (e - H @ state.gamma), towards @ H @ towards
        after = solver.step(problem, state)
        assert cut >= (1 - 1e-6) * eps
        assert H[-1, -1] <= (1 + 1e-9) * slope**2
        assert curvature <= (1 + 1e-9) * (2 * problem.C * slope) ** 2
        stated = min(eps / 2, eps**2 / (2 * curvature))
        assert after.dual - state.dual >= (1 - 1e-6) * stated
        state = after
        n_checked += 1
    assert n_checked > 0


@pytest.mark.parametrize("solver", [OCAS(), OCAS(mixing=1.0), CPA()], ids=["ocas", "ocas mixing 1", "cpa"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("wide", [False, True], ids=["tall", "wide"])
@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 100.0])
def test_every_step_rises_as_the_proof_of_theorem_1_states(solver, intercept, wide, C):
    assert_steps_rise_as_stated(solver, problem_and_judge(wide, C, intercept)[0])


@pytest.mark.parametrize("solver", [OCAS(), CPA()], ids=["ocas", "cpa"])
@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
def test_every_step_of_a_ranking_rises_as_the_proof_of_lemma_2_states(solver, C):
    assert_steps_rise_as_stated(solver, ranking_problem(C)[0])


class StalePlane(CPA):
    """A wrong step: the plane is made at the best point of the step before."""

    def step(self, problem, state):
        state = refreshed(problem, state)
        stale = problem.pattern(state.best.f)
        return replace(super().step(problem, state), planes=state.planes.add(problem, stale))


class ShortLine(Hinge):
    """A wrong line search: it goes half the way, so that the plane at the mixed point need not cut off w_t."""

    def minimise_along(self, *arguments):
        k = 0.5 * super().minimise_along(*arguments).k
        return LineMinimum(k, k, k)


class LightPlane(Ranking):
    """Wrong planes: a hundredth lower than the risk at their point."""

    def pattern(self, f):
        pattern = super().pattern(f)
        return replace(pattern, constant=0.99 * pattern.constant)


def test_a_wrong_step_does_not_rise_as_stated():
    """The checks above can fail: each mistake is noticed."""
    hinge = problem_and_judge(C=1.0)[0]
    with pytest.raises(AssertionError):
        assert_steps_rise_as_stated(StalePlane(), hinge)
    with pytest.raises(AssertionError):
        assert_steps_rise_as_stated(OCAS(), ShortLine(hinge.rows, hinge.signed_weights, hinge.C, hinge.intercept))
    ranking = ranking_problem(10.0)[0]
    for solver in (OCAS(), CPA()):
        with pytest.raises(AssertionError):
            assert_steps_rise_as_stated(solver, LightPlane(ranking.rows, ranking.pairs, ranking.C))


def test_pairs_need_twice_the_longest_row():
    """Algorithm 2 has R = 2 max |x|: two opposite rows make a plane of that slope."""
    rows = as_rows(np.array([[-3.0], [3.0]]))
    problem = Ranking(rows, Pairs(np.array([0.0, 1.0])), 1.0)
    state = CPA().init(problem)
    assert state.planes.gram[0, 0] == largest_slope(problem) ** 2 == 36.0


def ends_within_the_papers_bound(solver, kind, eps):
    """Whether a mean risk within eps is proven after max(2 / eps, 8 C R^2 / eps^2) iterations, the bound of Lemma 2 for
    the papers' C (`scale`); with the gap C eps it is that of Theorem 1. The rows are at most 1 long."""
    if kind == "pairs":
        problem, judge = ranking_problem(100.0)
    else:
        X, v = data()
        rows = as_rows(X / np.sqrt((X**2).sum(axis=1).max()))
        C = 100.0 / v.size
        problem, judge = Hinge(rows, v, C, NoIntercept()), HingeJudge(rows, v, C, NoIntercept())
    R = 2.0 if kind == "pairs" else 1.0
    assert largest_slope(problem) * problem.C == pytest.approx(problem.scale * R)
    bound = int(max(2 / eps, 8 * problem.scale * R**2 / eps**2))
    return run(solver, problem, Stop(tol=eps, max_iter=bound, rule="epsilon"), judge).status is Status.OPTIMAL


@pytest.mark.parametrize("kind", ["rows", "pairs"])
@pytest.mark.parametrize("eps", [0.05, 0.02])
def test_the_papers_bound_on_the_iterations(kind, eps):
    """The bound itself is far above what any solver needs; the steps above are what must not get worse."""
    assert ends_within_the_papers_bound(OCAS(), kind, eps)
    assert ends_within_the_papers_bound(CPA(), kind, eps)
    assert not ends_within_the_papers_bound(StalePlane(), kind, eps)


@pytest.mark.parametrize("solver", [OCAS(), CPA()], ids=["ocas", "cpa"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("wide", [False, True], ids=["tall", "wide"])
def test_one_product_each_an_iteration(solver, intercept, wide):
    problem, _, rows = problem_and_judge(wide, intercept=intercept)
    state = solver.init(problem)
    before = rows.n_dot, rows.n_t_dot
    assert sum(before) <= 2  # initialisation: the first plane
    for _ in range(12):
        state = solver.step(problem, state)
    assert rows.n_dot - before[0] == 12
    assert rows.n_t_dot - before[1] == 12
    assert state.passes == 24


def test_both_forms_of_planes_give_the_same_iterates():
    X, y = data(wide=True)
    problem = Hinge(as_rows(X), y, 1.0, Free())
    as_outputs = OCAS().init(problem)
    assert as_outputs.planes.as_outputs
    slopes = Planes.empty(problem)
    slopes = Planes(type(slopes._store)(64, problem.n_weights), (), as_outputs=False)
    origin = slopes.origin(problem)
    as_slopes = replace(as_outputs, planes=slopes.add(problem, problem.pattern(origin.f)), best=origin)
    for _ in range(10):
        as_outputs = OCAS().step(problem, as_outputs)
        as_slopes = OCAS().step(problem, as_slopes)
        assert as_outputs.primal == pytest.approx(as_slopes.primal, rel=1e-9)
        assert as_outputs.dual == pytest.approx(as_slopes.dual, rel=1e-9)
    w = as_outputs.planes.weights(problem, as_outputs.best)
    np.testing.assert_allclose(w, as_slopes.best.x, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_alpha_from_the_witnesses_has_the_value_of_the_reduced_problem(intercept):
    X, y = data()
    v = y * np.random.default_rng(0).uniform(0.1, 3, y.size)
    problem = Hinge(as_rows(X), v, 0.3, intercept_named(intercept))
    judge = HingeJudge(as_rows(X), v, 0.3, intercept_named(intercept))
    for state in list(states(OCAS(), problem, 15))[1:]:
        certificate = judge(OCAS().solution(problem, state))
        assert certificate.dual == pytest.approx(state.dual, rel=1e-10)
        assert certificate.primal == pytest.approx(state.primal, rel=1e-10)


def test_idle_planes_are_dropped_without_losing_the_bound():
    problem, judge, _ = problem_and_judge(C=1e4)
    trace = run(CPA(), problem, Stop(tol=1e-6), judge).trace
    assert trace["planes"].max() < trace["iteration"].max()
    assert trace["iteration"].max() > PATIENCE
    assert (np.diff(trace["dual"]) >= -1e-12 * np.abs(trace["dual"][1:])).all()


def test_memory_of_planes_follows_the_shorter_side():
    X = sp.random(30, 100_000, density=0.001, format="csr", random_state=0)
    problem = Hinge(as_rows(X), np.where(np.arange(30) % 2, 1.0, -1.0), 1.0, NoIntercept())
    state = list(states(OCAS(), problem, 3))[-1]
    assert state.planes._store.vectors.shape[1] == 30


@pytest.mark.parametrize("solver", [OCAS(), CPA()], ids=["ocas", "cpa"])
def test_states_are_values(solver):
    problem, _, _ = problem_and_judge()
    middle = list(states(solver, problem, 5))[-1]
    copied = pickle.loads(pickle.dumps(middle))
    one = solver.step(problem, solver.step(problem, middle))
    two = solver.step(problem, solver.step(problem, middle))  # again from the same state
    three = solver.step(problem, solver.step(problem, copied))
    for other in (two, three):
        assert other.primal == one.primal
        assert other.dual == one.dual
        np.testing.assert_array_equal(other.best.x, one.best.x)
        np.testing.assert_array_equal(
            other.planes.gram[: len(one.planes), : len(one.planes)],
            one.planes.gram[: len(one.planes), : len(one.planes)],
        )


@pytest.mark.parametrize("wide", [False, True], ids=["tall", "wide"])
def test_planes_serve_at_another_C(wide):
    problem, judge, _ = problem_and_judge(wide, C=1.0, intercept="free")
    first = run(OCAS(), problem, Stop(tol=1e-4), judge)
    other, other_judge, _ = problem_and_judge(wide, C=1.3, intercept="free")
    cold = run(OCAS(), other, Stop(tol=1e-4), other_judge)
    warm = run(OCAS(), other, Stop(tol=1e-4), other_judge, start=first.state)
    assert warm.status is Status.OPTIMAL
    assert len(warm.trace) < len(cold.trace)


@pytest.mark.parametrize("wide", [False, True], ids=["tall", "wide"])
def test_starting_from_weights_costs_one_more_product(wide):
    problem, judge, rows = problem_and_judge(wide)
    best = run(OCAS(), problem, Stop(tol=1e-6), judge)
    rows.n_dot = rows.n_t_dot = 0
    state = OCAS().init(problem, WeightStart(best.solution.w))
    assert rows.n_dot + rows.n_t_dot == (3 if wide else 2)
    if not wide:
        assert state.primal == pytest.approx(best.certificate.primal, rel=1e-9)
    assert run(OCAS(), problem, Stop(tol=1e-6), judge, start=WeightStart(best.solution.w)).status is Status.OPTIMAL


def test_svm_perf_epsilon_is_the_violation_of_the_newest_constraint():
    problem, judge, rows = problem_and_judge(C=0.1)
    solver = CPA(stopping="epsilon")
    result = run(solver, problem, Stop(tol=0.01, rule=solver.stopping), judge)
    assert result.status is Status.OPTIMAL
    assert result.certificate.gap / problem.scale <= 0.01
    before = list(states(solver, problem, result.counts["iterations"] - 1))[-1]
    assert before.violation > 0.01  # it stops at the first iteration that satisfies the rule
    del rows


def test_ocas_needs_fewer_iterations_than_cpa():
    problem, judge, _ = problem_and_judge(C=10.0)
    ocas, cpa = (run(s, problem, Stop(tol=1e-4), judge).counts["iterations"] for s in (OCAS(), CPA()))
    assert ocas < cpa


@pytest.mark.parametrize("mixing", [0.05, 0.5, 1.0])
def test_any_mixing_reaches_the_optimum(mixing):
    problem, judge, _ = problem_and_judge(intercept="free")
    assert run(OCAS(mixing=mixing), problem, Stop(tol=1e-5, max_iter=2000), judge).status is Status.OPTIMAL


def test_threads_do_not_change_the_bits():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30_000, 40))
    v = np.where(X[:, 0] + rng.standard_normal(30_000) > 0, 1.0, -1.0)
    finals = []
    for n_threads in (1, 2, 5):
        workers = Workers(n_threads)
        problem = Hinge(as_rows(X, workers), v, 0.1, Free(), workers=workers)
        finals.append(list(states(OCAS(), problem, 8))[-1])
        workers.close()
    for other in finals[1:]:
        np.testing.assert_array_equal(other.best.x, finals[0].best.x)
        assert other.dual == finals[0].dual


@pytest.mark.parametrize("intercept", ["penalised", "none"])
@pytest.mark.parametrize("wide", [False, True], ids=["tall", "wide"])
def test_a_solve_that_stalls_begins_anew_and_keeps_its_bound(intercept, wide):
    problem, judge, _ = problem_and_judge(wide, intercept=intercept)
    solver = OCAS()
    state = solver.init(problem)
    for _ in range(5):
        state = solver.step(problem, state)
    stuck = replace(state, stalled=STALL_STEPS)
    assert not solver.is_stalled(stuck)
    again = solver.step(problem, stuck)
    assert (again.restarts, len(again.planes)) == (1, 2)
    assert again.primal <= stuck.primal
    assert solver.measure(problem, again).dual == stuck.dual  # that of one plane is lower
    before, after = judge(solver.solution(problem, stuck)), judge(solver.solution(problem, again))
    assert after.dual == pytest.approx(before.dual)
    assert solver.is_stalled(replace(again, stalled=STALL_STEPS, marked_gap=1e-3 * again.marked_gap))
    assert run(solver, problem, Stop(tol=1e-6), judge, start=stuck).status is Status.OPTIMAL


@pytest.mark.parametrize("intercept", ["penalised", "none"])
def test_a_column_far_from_the_origin_without_a_free_intercept(intercept):
    X, y = data()
    X = np.c_[X, 1e6 * (5.0 + np.random.default_rng(0).standard_normal(len(X)))]
    problem = Hinge(as_rows(X), y, 1.0, intercept_named(intercept))
    result = run(OCAS(), problem, Stop(tol=1e-3), HingeJudge(as_rows(X), y, 1.0, intercept_named(intercept)))
    assert result.status is Status.OPTIMAL


class TestTheSlackOfTheWorkingSet:
    """xi of SVM-perf, Algorithm 1: the least slack that the constraints of the working set allow at w."""

    @pytest.mark.parametrize("solver", [CPA(), OCAS()], ids=["cpa", "ocas"])
    @pytest.mark.parametrize("intercept", INTERCEPTS)
    def test_it_is_that_of_the_worst_plane(self, solver, intercept):
        problem = problem_and_judge(C=0.1, intercept=intercept)[0]
        state = solver.init(problem)
        assert np.isnan(solver.measure(problem, state).xi)
        for _ in range(15):
            before = state
            state = solver.step(problem, state)
            n = len(before.planes)
            w = before.planes.towards(problem, state.gamma[:n], before.planes.origin(problem))[0]
            worst = max(0.0, float((before.planes._store.vectors[:n] @ w.x + before.planes.constants).max()))
            room = (
                1e-3 * (before.primal - before.dual) + 1e-12
            )  # the share of the gap that the reduced problem may leave
            assert problem.C * worst == pytest.approx(problem.scale * state.xi, abs=10 * room)
            assert len(state.planes) == n + 1

    def test_it_is_in_the_trace_and_in_files(self, tmp_path):
        X, y = data()
        m = LinearSVC(1.0, fit_intercept=False, solver=CPA(stopping="epsilon"), tol=1e-3).fit(X, y)
        xi, planes = m.trace_["xi"], m.trace_["planes"]
        assert np.isnan(xi[0])
        assert planes[0] == 1
        assert planes[-1] == m.n_iter_ + 1
        risk = np.maximum(0.0, 1.0 - y * (X @ m.coef_[0])).mean()
        assert xi[-1] <= risk <= xi[-1] + 2e-3
        m.save(tmp_path / "model")
        np.testing.assert_array_equal(load(tmp_path / "model").trace_["xi"], xi)
