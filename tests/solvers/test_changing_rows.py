"""From one optimum to the next: variables that come, go, and go for a moment."""

from dataclasses import replace

import numpy as np
import pytest

from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.kernels.cached import CachedRows
from softmargin.kernels.functions import RBF, Linear
from softmargin.kernels.matrix import DirectRows
from softmargin.problems.box_qp import BoxQP
from softmargin.problems.row_loss import RowLoss
from softmargin.solvers.active_set import changing_rows
from softmargin.solvers.active_set.active_set import ActiveSet
from softmargin.solvers.dual_state import DualState

C = 3.0
NARROW, COLD = RBF(0.3), ActiveSet(start="cold")


def problem_of(X, v, kernel=NARROW, C=C):
    source = DirectRows(as_rows(X), kernel, np.float64)
    return BoxQP(CachedRows(source, 8.0 * len(X) ** 2), RowLoss.classification(v, C), Workers(1))


def data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    v = np.where(X[:, 0] + 0.7 * rng.standard_normal(n) > 0, 1.0, -1.0) * rng.choice([0.5, 1.0, 2.0], n)
    return X, v


def settled(problem, state=None, solver=COLD):
    state = solver.init(problem) if state is None else state
    while not state.scratch.settled:
        assert not state.is_stalled
        state = solver.step(problem, state)
    return state


def without_weight(problem, rows):
    weights = problem.loss.over - problem.loss.under
    weights[rows] = 0.0
    return replace(problem, loss=RowLoss.classification(weights, problem.loss.C))


def check_optimal(problem, state):
    """Feasible, f as it should be, and no wish beyond the tolerance."""
    assert abs(state.beta.sum()) < 1e-10
    assert np.all((problem.lo <= state.beta) & (state.beta <= problem.hi))
    np.testing.assert_allclose(state.f, problem.K.product(state.beta), atol=1e-9)
    assert problem.measure(state.beta, state.f).kkt <= 2e-6


def check_factor(inner):
    """The factor is that of its members, all free variables are in it, and wishes are what they are."""
    F = inner.factor.members
    M = inner.matrix[np.ix_(F, F)] + inner.sigma
    basis = np.eye(F.size)
    solved = np.column_stack([inner.factor.backward(inner.factor.forward(column.copy())) for column in basis])
    np.testing.assert_allclose(M @ solved, basis, atol=1e-6)
    free = (inner.side == 0.0) & (inner.retired == 0.0)
    assert set(F.tolist()) == set(free.nonzero()[0].tolist())


class TestRetire:
    @pytest.mark.parametrize("kernel", [RBF(0.3), Linear()])
    def test_every_variable_once(self, kernel):
        X, v = data()
        problem = problem_of(X, v, kernel)
        state = settled(problem)
        work = state.scratch.work
        saved = changing_rows.Saved(work)
        for k in range(len(v)):
            reduced = without_weight(problem, [k])
            work.begin(reduced, state.beta, state.f)
            changing_rows.retire(work, reduced, np.array([k]))
            assert work.beta[k] == 0.0
            assert abs(work.beta.sum()) < 1e-10
            np.testing.assert_allclose(work.f, problem.K.product(work.beta), atol=1e-9)
            check_factor(work.inner)
            found = settled(reduced, changing_rows.with_working(DualState(work.beta, work.f), work))
            check_optimal(reduced, found)
            keep = np.delete(np.arange(len(v)), k)
            other = settled(problem_of(X[keep], v[keep], kernel))
            np.testing.assert_allclose(found.f[keep], other.f, atol=1e-5)
            saved.restore()
            check_factor(work.inner)
        saved.close()
        again = settled(problem, changing_rows.with_working(replace(state, iterations=0), work))
        np.testing.assert_array_equal(again.beta, state.beta)
        assert again.iterations == 0

    def test_all_free_variables_at_once(self):
        X, v = data()
        problem = problem_of(X, v)
        state = settled(problem)
        free = ((state.beta > problem.lo) & (state.beta < problem.hi)).nonzero()[0]
        reduced = without_weight(problem, free)
        work = state.scratch.work
        work.begin(reduced, state.beta, state.f)
        changing_rows.retire(work, reduced, free)
        assert not work.beta[free].any()
        check_optimal(reduced, settled(reduced, changing_rows.with_working(DualState(work.beta, work.f), work)))

    def test_where_nobody_is_free(self, monkeypatch):
        """Rows far apart, all at their bounds: those that must take over are called one after the other."""
        X, v = 10.0 * np.arange(6.0)[:, None], np.array([2.0, -1.0, -0.5, -0.5, 0.1, -0.1])
        problem = problem_of(X, v, C=0.5)
        state = settled(problem)
        asked, usual = [], changing_rows._helper
        monkeypatch.setattr(
            changing_rows, "_helper", lambda *about, **more: asked.append(about) or usual(*about, **more)
        )
        work, reduced = state.scratch.work, without_weight(problem, [0])
        work.begin(reduced, state.beta, state.f)
        changing_rows.retire(work, reduced, np.array([0]))
        assert work.beta[0] == 0.0
        assert asked
        check_optimal(reduced, settled(reduced, changing_rows.with_working(DualState(work.beta, work.f), work)))

    @pytest.mark.parametrize("seed", range(8))
    def test_where_nearly_all_are_at_their_bounds(self, seed):
        """Far apart rows of little weight: those that go must wait for each other, and all that stay must help."""
        rng = np.random.default_rng(seed)
        n = 20
        v = np.append([1.0, -1.0], rng.choice([-1.0, 1.0], n - 2)) * rng.choice([0.2, 1.0, 3.0], n)
        problem = problem_of(10.0 * rng.standard_normal((n, 2)), v, C=0.1)
        state = settled(problem, solver=ActiveSet(start="cold", candidates=2))
        gone = 2 + rng.choice(n - 2, 15, replace=False)
        work, reduced = state.scratch.work, without_weight(problem, gone)
        work.begin(reduced, state.beta, state.f)
        changing_rows.retire(work, reduced, gone)
        assert not work.beta[gone].any()
        assert abs(work.beta.sum()) < 1e-12
        check_optimal(reduced, settled(reduced, changing_rows.with_working(DualState(work.beta, work.f), work)))

    def test_a_retired_variable_survives_a_new_factor(self):
        X, v = data()
        problem = problem_of(X, v)
        state = settled(problem)
        k = int(np.abs(state.beta).argmax())
        work, reduced = state.scratch.work, without_weight(problem, [k])
        work.begin(reduced, state.beta, state.f)
        changing_rows.retire(work, reduced, np.array([k]))
        work.inner.refactorise()
        assert work.where[k] not in work.inner.factor.members
        check_factor(work.inner)


def test_variables_come_and_go():
    X, v = data(80)
    rng = np.random.default_rng(3)
    there = np.arange(40)
    problem = problem_of(X[there], v[there])
    state = settled(problem)
    for _ in range(12):
        work = state.scratch.work
        gone = rng.choice(there.size, 3, replace=False)
        reduced = without_weight(problem, gone)
        work.begin(reduced, state.beta, state.f)
        changing_rows.retire(work, reduced, gone)
        beta, f = work.beta, work.f
        order = rng.permutation(np.delete(np.arange(there.size), gone))
        there = there[order]
        problem = problem_of(X[there], v[there])
        changing_rows.reorder(work, problem, order, beta[order], f[order])
        check_factor(work.inner)
        assert np.array_equal(work.where[work.inner.index], np.arange(work.inner.size))

        new = np.setdiff1d(np.arange(80), there)[:4]
        there = np.append(there, new)
        problem = problem_of(X[there], v[there])
        beta = np.append(beta[order], np.zeros(4))
        f = problem.K.product(beta)
        changing_rows.extend(work, problem, beta, f)
        state = settled(problem, changing_rows.with_working(DualState(beta, f), work))
        check_optimal(problem, state)
        check_factor(state.scratch.work.inner)
        other = settled(problem)
        np.testing.assert_allclose(state.f, other.f, atol=1e-5)
        assert problem.measure(state.beta, state.f).dual == pytest.approx(
            problem.measure(other.beta, other.f).dual, rel=1e-10
        )
        assert state.scratch.work.inner.refactorisations <= 2
