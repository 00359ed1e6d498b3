"""Newton's method for squared losses: its optima beside those of coordinate descent, its matrix, its states."""

import numpy as np
import pytest
import scipy.sparse as sp

from softmargin import LinearSVC, LinearSVR, Newton, SoftmarginError, load
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.problems.certificate import HingeJudge
from softmargin.problems.intercepts import Free, NoIntercept, intercept_named
from softmargin.problems.squared import Squared
from softmargin.problems.squared_targets import SquaredClasses, SquaredTube
from softmargin.solvers.base import run
from softmargin.solvers.coordinate.coordinate import CoordinateDescent
from softmargin.solvers.newton import newton

RNG = np.random.default_rng(3)
N = 90
X = RNG.standard_normal((N, 4)) * (RNG.random((N, 4)) < 0.6) + 0.2
Y = np.where(X[:, 0] + 0.8 * RNG.standard_normal(N) > 0.2, 1.0, -1.0)
S = np.where(RNG.random(N) < 0.2, 0.0, RNG.uniform(0.3, 2.0, N))
NUMBERS = X @ RNG.standard_normal(4) + 0.3 * RNG.standard_normal(N) + 2.0
TARGETS = {
    "classes": SquaredClasses(Y * S),
    "numbers": SquaredTube(NUMBERS, S, 0.2),
    "no tube": SquaredTube(NUMBERS, S, 0.0),
}


def solved(target, intercept, solver, tol=1e-9, C=1.0, rows=X, **limits):
    rows, workers = as_rows(rows), Workers(2)
    problem, judge = Squared(rows, target, C, intercept, workers), HingeJudge(rows, target, C, intercept, tol)
    return run(solver, problem, Stop(tol=tol, **limits), judge, workers=workers)


def with_disorder(dense):
    """The same rows as CSR, with indices in falling order, and every value in two halves."""
    rows = sp.csr_matrix(dense)
    data, indices = np.repeat(0.5 * rows.data[::-1], 2), np.repeat(rows.indices[::-1], 2)
    return sp.csr_matrix((data, indices, 2 * (rows.nnz - rows.indptr[::-1])), shape=dense.shape)[::-1]


@pytest.mark.parametrize("C", [1e-4, 1.0, 1e6])
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("kind", ["none", "free", "penalised"])
def test_the_optimum_in_a_few_steps(name, kind, C):
    intercept, target = intercept_named(kind), TARGETS[name]
    found = solved(target, intercept, Newton(), C=C, max_iter=30)
    assert found.status is Status.OPTIMAL
    if C == 1.0:
        theirs = solved(target, intercept, CoordinateDescent(tol=1e-9))
        assert found.certificate.primal == pytest.approx(theirs.certificate.primal, rel=2e-9)


@pytest.mark.parametrize("store", [sp.csr_matrix, np.asfortranarray, np.float32, with_disorder])
def test_any_storage_has_the_same_optimum(store, monkeypatch):
    monkeypatch.setattr(newton, "SPARSE", 1.1)  # all CSR rows count as sparse
    rows = store(X.astype(np.float32).astype(float))
    plain = solved(TARGETS["classes"], Free(), Newton(), rows=X.astype(np.float32).astype(float))
    found = solved(TARGETS["classes"], Free(), Newton(), rows=rows)
    assert found.certificate.primal == pytest.approx(plain.certificate.primal, rel=1e-9)
    assert found.counts["iterations"] == plain.counts["iterations"]


def test_rows_that_change_sides_are_added_to_the_matrix_or_taken_off(monkeypatch):
    monkeypatch.setattr(newton, "BLOCK_ENTRIES", 40)  # many blocks
    problem = Squared(as_rows(X), TARGETS["classes"], 10.0, Free(), Workers(2))
    solver = Newton()
    state = solver.init(problem)
    for _ in range(4):
        state = solver.step(problem, state)
        whole = np.column_stack([X, np.ones(N)])
        np.testing.assert_allclose(state.matrix, whole.T @ (state.curved[:, None] * whole), rtol=1e-10, atol=1e-8)


def test_the_gap_is_half_the_square_of_the_slope():
    found = solved(TARGETS["numbers"], NoIntercept(), Newton(), tol=1e-3)
    state, certificate = found.state, found.certificate
    assert certificate.gap == pytest.approx(0.5 * state.slope @ state.slope, rel=1e-4)


@pytest.mark.parametrize(
    "model", [LinearSVC(loss="squared_hinge"), LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1)], ids=str
)
def test_auto_takes_it_for_few_features_and_a_state_from_a_file_goes_on(model, tmp_path):
    y = Y if isinstance(model, LinearSVC) else NUMBERS
    straight = model.set_params(C=100.0, tol=1e-9).fit(X, y)
    assert straight.solver_.startswith("Newton's method")
    w = straight.coef_.copy()
    with pytest.warns(UserWarning, match="limit on iterations"):
        model.set_params(max_iter=1).fit(X, y)
    model.save(tmp_path / "m", include_training_state=True)
    again = load(tmp_path / "m").set_params(max_iter=None, warm_start=True).fit(X, y)
    assert again.coef_.tobytes() == w.tobytes()


def test_many_features_are_left_to_coordinate_descent_and_other_losses_refused():
    wide = RNG.standard_normal((20, 60))
    model = LinearSVC(loss="squared_hinge").fit(wide, Y[:20])
    assert model.solver_.startswith("Coordinate descent")
    with pytest.raises(SoftmarginError, match="newton"):
        LinearSVC(solver="newton").fit(X, Y)
