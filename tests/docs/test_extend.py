"""The examples of docs/extend: the pages show them whole, and they keep the contracts they are examples of."""

import importlib.util
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.svm import LinearSVR

import softmargin
from softmargin import (
    CPA,
    OCAS,
    SVC,
    LinearOneClassSVM,
    LinearSVC,
    OrdinalSVC,
    RankSVM,
    SoftmarginError,
    certify,
)
from softmargin import LinearSVR as OurLinearSVR
from softmargin.core.result import Solution, WeightStart
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.problems.certificate import HingeJudge
from softmargin.problems.hinge import Hinge
from softmargin.problems.intercepts import intercept_named
from softmargin.solvers.base import run

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(8)


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


PARTS = ("storage", "risk", "solver", "estimator")
storage, risk, solver, estimator = (module(ROOT / "examples" / f"extend_{name}.py") for name in PARTS)


@pytest.mark.parametrize("name", PARTS)
def test_the_page_shows_the_whole_file(name):
    page = (ROOT / "docs" / "extend" / f"{name}.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    file = (ROOT / "examples" / f"extend_{name}.py").read_text(encoding="utf-8")

    def lines(text):
        return [line for line in text.splitlines() if line.strip()]

    assert lines(code) == lines(file)


# --- the storage ---------------------------------------------------------------------------------------------------

X = RNG.standard_normal((57, 9))


def stacked(X=X):
    return storage.StackedRows([as_rows(part) for part in (X[:20], np.asfortranarray(X[20:21]), X[21:])])


def test_stacked_rows_are_the_joined_matrix():
    rows = stacked()
    w, v = RNG.standard_normal(9), np.where(np.arange(57) % 3, RNG.standard_normal(57), 0.0)
    assert (rows.n_rows, rows.n_cols) == X.shape
    np.testing.assert_allclose(rows.dot(w), X @ w, atol=1e-12)
    np.testing.assert_allclose(rows.t_dot(v), X.T @ v, atol=1e-12)
    np.testing.assert_allclose(rows.t_dot(v, np.ones(57)), X.T @ (v - 1.0), atol=1e-12)
    np.testing.assert_allclose(rows.sq_norms(), (X**2).sum(1), atol=1e-12)
    parts = list(rows.blocks())
    assert [where.start for where, _ in parts] == [0, *[where.stop for where, _ in parts[:-1]]]
    np.testing.assert_array_equal(np.concatenate([part.dot(w) for _, part in parts]), rows.dot(w))


def test_stacked_rows_give_the_same_bits_on_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("softmargin.data.rows.FINE_VALUES", 40)
    monkeypatch.setattr("softmargin.data.rows.FEW_VALUES", 0)
    w, v = RNG.standard_normal(9), RNG.standard_normal(57)
    one, two = stacked(), stacked().on(Workers(2))
    np.testing.assert_array_equal(one.dot(w), two.dot(w))
    np.testing.assert_array_equal(one.t_dot(v), two.t_dot(v))


@pytest.mark.parametrize("method", [OCAS(), CPA()])
def test_solvers_do_not_notice_how_rows_are_kept(method):
    v = np.where(X[:, 0] + RNG.standard_normal(57) > 0, 1.0, -1.0)
    stop = Stop(tol=1e-9, max_iter=300)
    found = [
        run(method, Hinge(rows, v, 1.0), stop, HingeJudge(rows, v, 1.0)).certificate for rows in (stacked(), as_rows(X))
    ]
    assert found[0].primal == pytest.approx(found[1].primal, rel=1e-8)
    assert found[0].dual == pytest.approx(found[1].dual, rel=1e-8)


@pytest.mark.parametrize("model", [LinearSVC(), OurLinearSVR(), LinearOneClassSVM(), RankSVM(), OrdinalSVC()], ids=str)
def test_estimators_do_not_notice_how_rows_are_kept(model):
    y = np.digitize(X[:, 0] + RNG.standard_normal(57), [-0.7, 0.7])
    Z = X + 3.0  # on one side of the origin: for rows around it the one-class model is w = 0
    model.set_params(tol=1e-6)
    ours, theirs = clone(model).fit(stacked(Z), y), clone(model).fit(Z, y)
    assert ours.certificate_.primal == pytest.approx(theirs.certificate_.primal, rel=2e-6)
    np.testing.assert_allclose(ours.predict(stacked(Z)), ours.predict(Z), rtol=1e-12, atol=1e-12)
    assert certify(ours, stacked(Z), y).relative_gap <= 2e-6


def test_what_a_storage_cannot_do_is_said():
    y = np.arange(57) % 2
    with pytest.raises(SoftmarginError, match="offers products with X only, but single rows are needed here"):
        SVC().fit(stacked(), y)
    with pytest.raises(SoftmarginError, match=r"visits the rows .* one at a time, and Hinge is no such problem"):
        LinearSVC(solver="sgd", random_state=0).fit(stacked(), y)
    with pytest.raises(SoftmarginError, match="3 targets for 57 rows"):
        LinearSVC().fit(stacked(), [0, 1, 0])
    with pytest.raises(SoftmarginError, match="X has 9 features, but the model was trained on 3"):
        LinearSVC().fit(X[:, :3], y).predict(stacked())


# --- the risk ------------------------------------------------------------------------------------------------------

Y = np.round(X[:, 0] + RNG.standard_normal(57), 1)
S = np.where(RNG.random(57) < 0.2, 0.0, RNG.uniform(0.3, 2.0, 57))


def absolute(C=0.7, matrix=X):
    rows = as_rows(matrix)
    return risk.AbsoluteError(rows, Y, S, C), risk.AbsoluteErrorJudge(rows, Y, S, C)


def test_planes_lie_below_the_risk_and_touch_it():
    problem, _ = absolute()
    for _ in range(20):
        w, other = RNG.standard_normal((2, 9))
        f = problem.outputs(w)
        plane = problem.pattern(f)
        slope = problem.slope(plane.c)
        assert slope @ w + plane.constant == pytest.approx(problem.risk(f), rel=1e-10)
        assert slope @ other + plane.constant <= problem.risk(problem.outputs(other)) + 1e-9
        np.testing.assert_array_equal(problem.coefficients([plane.witness], np.ones(1)), plane.c)


def test_the_line_search_is_exact():
    problem, _ = absolute()
    for _ in range(20):
        w, direction = RNG.standard_normal((2, 9))
        f, df = problem.outputs(w), problem.outputs(direction)
        A0, B0 = direction @ direction, w @ direction

        def value(k, f=f, df=df, A0=A0, B0=B0):
            return 0.5 * A0 * k * k + B0 * k + problem.C * problem.risk(f + k * df)

        k = problem.minimise_along(f, df, A0, B0).k
        assert value(k) <= min(map(value, np.linspace(0.0, 5.0, 400))) + 1e-9
        assert value(k) <= min(value(1.001 * k), value(0.999 * k)) + 1e-12


@pytest.mark.parametrize("method", [OCAS(), CPA()])
@pytest.mark.parametrize("matrix", [X, RNG.standard_normal((57, 200))], ids=["tall", "wide"])
def test_cutting_planes_solve_it_unchanged(method, matrix):
    problem, judge = absolute(matrix=matrix)
    result = run(method, problem, Stop(tol=1e-6, max_iter=2000), judge)
    assert result.status is Status.OPTIMAL
    assert result.certificate.dual == pytest.approx(result.trace[-1].dual, rel=1e-9)
    theirs = LinearSVR(epsilon=0.0, C=0.7, fit_intercept=False, tol=1e-8, max_iter=10**6, random_state=0)
    theirs.fit(matrix, Y, sample_weight=S)
    value = judge(Solution(theirs.coef_, 0.0, np.zeros(57))).primal
    assert result.certificate.dual <= value
    assert result.certificate.primal <= value * (1.0 + 2e-6)


def test_a_median_by_hand():
    # R(w) = |w - 1| + |w - 2| + |w - 9|: with a large C the optimum is the median, and P = 1/2 2^2 + 100 (1 + 0 + 7).
    rows, y, s = as_rows(np.ones((3, 1))), np.array([1.0, 2.0, 9.0]), np.ones(3)
    judge = risk.AbsoluteErrorJudge(rows, y, s, 100.0)
    result = run(OCAS(), risk.AbsoluteError(rows, y, s, 100.0), Stop(tol=1e-9), judge)
    assert result.solution.w[0] == pytest.approx(2.0, abs=1e-6)
    assert result.certificate.primal == pytest.approx(802.0)
    assert result.certificate.dual == pytest.approx(802.0)


def test_nonsense_proves_nothing_false():
    problem, judge = absolute()
    optimum = run(OCAS(), problem, Stop(tol=1e-9), judge).certificate
    for scale in (1e-3, 1.0, 1e3, np.inf, np.nan):
        with np.errstate(invalid="ignore"):
            theta = scale * RNG.standard_normal(57)
        assert judge(Solution(np.zeros(9), 0.0, theta)).dual <= optimum.primal


# --- the solver ----------------------------------------------------------------------------------------------------

HARD = module(ROOT / "tests" / "contract" / "catalogue.py").catalogue()


@pytest.mark.parametrize("case", HARD, ids=str)
def test_frank_wolfe_ends_honestly_on_hard_problems(case):
    rows = as_rows(case.X)
    for C in case.Cs:
        for intercept in case.intercepts:
            problem, judge = (
                Hinge(rows, case.v, C, intercept_named(intercept)),
                HingeJudge(rows, case.v, C, intercept_named(intercept)),
            )
            result = run(solver.FrankWolfe(), problem, Stop(tol=1e-2, max_iter=30), judge)
            certificate = result.certificate
            where = f"C={C:g}, intercept={intercept}: {result.status.name} {certificate}"
            assert certificate.dual <= certificate.primal * (1 + 1e-9) + 1e-9 * problem.scale, where
            if result.status is Status.OPTIMAL:
                assert certificate.relative_gap <= 1e-2, where
            else:
                assert result.status in (Status.MAX_ITER, Status.STALLED, Status.UNCONFIRMED), where


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X / X.max(axis=0), y


def test_frank_wolfe_inside_the_estimator(tmp_path):
    data = cancer()
    model = LinearSVC(C=0.1, solver=solver.FrankWolfe(), tol=1e-2, n_jobs=2).fit(*data)
    exact = LinearSVC(C=0.1, tol=1e-8).fit(*data).certificate_
    assert model.status_ is Status.OPTIMAL
    assert model.certificate_.dual <= exact.primal
    assert exact.dual <= model.certificate_.primal <= exact.primal * 1.0102
    assert clone(model).fit(*data).coef_.tobytes() == model.coef_.tobytes()
    with pytest.raises(SoftmarginError, match="solver="):
        model.save(tmp_path / "model")


def test_frank_wolfe_goes_on_exactly_where_it_stopped():
    X, y = cancer()
    v = np.where(y, 1.0, -1.0)
    problem, judge = Hinge(as_rows(X), v, 0.1), HingeJudge(as_rows(X), v, 0.1)
    method = solver.FrankWolfe()
    whole = run(method, problem, Stop(tol=0.0, max_iter=20), judge)
    half = run(method, problem, Stop(tol=0.0, max_iter=10), judge)
    rest = run(method, problem, Stop(tol=0.0, max_iter=10), judge, start=half.state)
    assert rest.solution.w.tobytes() == whole.solution.w.tobytes()
    assert half.state.iterations == 10  # a state is a value
    for start in (WeightStart(whole.solution.w), replace(half.state, C=7.0)):
        assert method.init(problem, start).iterations == 0


def test_frank_wolfe_solves_another_risk():
    """A solver knows the contract only: with the risk of the other example it minimises another problem."""
    X, y = load_diabetes(return_X_y=True)
    rows, y, s = as_rows(10.0 * X), y - np.median(y), np.ones(len(y))
    judge = risk.AbsoluteErrorJudge(rows, y, s, 0.1)
    result = run(solver.FrankWolfe(), risk.AbsoluteError(rows, y, s, 0.1), Stop(tol=1e-2, max_iter=2000), judge)
    assert result.status is Status.OPTIMAL


# --- the estimator -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quantile", [0.1, 0.75])
@pytest.mark.parametrize("method", ["block", "smo", "active_set"])
def test_quantiles_have_their_share_of_the_rows_below(quantile, method):
    X, y = load_diabetes(return_X_y=True)
    model = estimator.QuantileSVR(C=10, quantile=quantile, kernel="linear", tol=1e-6)
    model.solver = method
    model.fit(10.0 * X, y)
    assert model.status_ is Status.OPTIMAL
    # Rows on the surface itself are free support vectors, and may be counted on either side.
    below = np.count_nonzero(y < model.predict(10.0 * X))
    assert abs(below - quantile * len(y)) <= model.n_support_[0] - model.n_bounded_[0] + 12
    assert certify(model, 10.0 * X, y).relative_gap <= 1e-6


def test_a_quantile_by_hand():
    # Without features (a kernel of zeros) b alone is fitted: the third of four numbers for q = 0.7.
    y = np.array([1.0, 2.0, 3.0, 10.0])
    model = estimator.QuantileSVR(quantile=0.7, kernel="precomputed", tol=1e-9).fit(np.zeros((4, 4)), y)
    assert model.intercept_[0] == pytest.approx(3.0)
    assert model.certificate_.primal == pytest.approx(0.7 * 7 + 0.3 * (2 + 1))
    with pytest.raises(SoftmarginError, match="must lie between 0 and 1"):
        estimator.QuantileSVR(quantile=1.0).fit(X, Y)


def test_one_line_and_one_record_are_enough(tmp_path):
    """What the pages promise: with these two entries everything knows the new solver and the new estimator."""
    tasks = Path(softmargin.__file__).parent / "tasks"
    line = (
        '    SolverEntry("frank_wolfe", Lazy("extend_solver:FrankWolfe"), PLANES, "to save memory"),\n)\nSOLVER_NAMED ='
    )
    changed = (tasks / "solvers.py").read_text(encoding="utf-8").replace(")\nSOLVER_NAMED =", line)
    (tmp_path / "solvers.py").write_text(changed, encoding="utf-8")
    text = (tasks / "records.py").read_text(encoding="utf-8")
    start = text.index('    Task(\n        home=Lazy("softmargin.estimators.svr:SVR")')
    record = text[start : text.index("    Task(", start + 1)]
    for home in ("softmargin.estimators.svr:SVR", "softmargin.estimators.machines.svr:SVR"):
        record = record.replace(home, "extend_estimator:QuantileSVR")
    record = record.replace('"regress"', '"quantile"').replace('"epsilon", ', "")
    changed = text.replace(")\nTASK_NAMED =", record + ")\nTASK_NAMED =")
    (tmp_path / "records.py").write_text(changed, encoding="utf-8")
    script = tmp_path / "script.py"
    script.write_text(ONE_LINE_EACH, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), str(ROOT / "examples")], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "everything knows them"


ONE_LINE_EACH = """
import importlib.util, sys
from pathlib import Path

CHANGED = {f"softmargin.tasks.{name}": Path(f"{name}.py").resolve() for name in ("solvers", "records")}


class Changed:
    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_file_location(name, CHANGED[name]) if name in CHANGED else None


sys.meta_path.insert(0, Changed())
sys.path.insert(0, sys.argv[1])

import numpy as np
import softmargin
from sklearn.datasets import dump_svmlight_file, load_breast_cancer
from typer.testing import CliRunner

X, y = load_breast_cancer(return_X_y=True)
X = X / X.max(axis=0)
for solver in ("frank_wolfe", softmargin.FrankWolfe()):
    model = softmargin.LinearSVC(C=0.1, solver=solver, tol=0.05).fit(X, y)
    model.save("linear.model")
    assert softmargin.load("linear.model").solver == solver
softmargin.LinearSVR(solver="frank_wolfe", tol=0.5, max_iter=3, C=1e-3).fit(X, y)

model = softmargin.QuantileSVR(C=10, quantile=0.9).fit(X, X[:, 0])
model.save("quantile.model")
loaded = softmargin.load("quantile.model")
assert loaded.quantile == 0.9 and (loaded.predict(X) == model.predict(X)).all()
assert softmargin.certify(loaded, X, X[:, 0]).relative_gap <= 1e-3
assert "extend_estimator.QuantileSVR" in softmargin.SKOPS_TRUSTED_TYPES

from softmargin.cli.app import app

dump_svmlight_file(X, y, "data.svm", zero_based=False)
for options in (["--solver", "frank_wolfe", "--tol", "0.05", "-C", "0.1"], ["--task", "quantile", "--kernel", "rbf"]):
    done = CliRunner().invoke(app, ["train", "data.svm", "new.model", *options, "--quiet", "--force"])
    assert done.exit_code == 0, (options, done.output, done.exception)
    done = CliRunner().invoke(app, ["evaluate", "new.model", "data.svm"])
    assert done.exit_code == 0, done.output
print("everything knows them")
"""
