"""SVC and the kernel solvers on every hard problem, judged by the certificate."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest

from softmargin import SMO, SVC, ActiveSet, BlockSMO, ConvergenceWarning, KernelOCAS, Status
from softmargin.core.result import Solution
from softmargin.data.convert import as_rows
from softmargin.kernels.cached import CachedRows
from softmargin.kernels.functions import RBF, Linear
from softmargin.kernels.matrix import DirectRows
from softmargin.problems.kernel_certificate import KernelJudge
from softmargin.problems.row_loss import RowLoss

_spec = importlib.util.spec_from_file_location("catalogue", Path(__file__).with_name("catalogue.py"))
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
# A classifier needs two classes. The largest problem is for the linear solvers.
CASES = [case for case in _module.catalogue() if np.unique(case.y).size == 2 and case.name != "n >> d"]
LIMIT = 20  # rounds, of up to 70,000 pair steps each
# Where features differ in scale by orders of magnitude, or C is large, that may be too few.
UNSCALED = ("unscaled features", "columns from 1e-6 to 1e6")
ACTIVE_SETS = {pricing: ActiveSet(pricing, start="cold") for pricing in ("sprint", "shrinking", "full")} | {
    "conjugate gradients": ActiveSet(start="cold", equations="cg")
}


def fit(case, **options):
    model = SVC(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(case.X, case.y, case.s)


def judged(model, case, kernel):
    """Primal and dual of the fitted model, from exact kernel rows, weights and the fitted attributes alone."""
    alpha = np.zeros(len(case.y))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    store = CachedRows(DirectRows(as_rows(case.X), kernel), 1e9)
    return KernelJudge(store, RowLoss.classification(case.v, model.C))(
        Solution(np.empty(0), float(model.intercept_[0]), alpha)
    )


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_judge_certifies(case, kernel):
    for C in case.Cs:
        model = fit(case, C=C, kernel=kernel, max_iter=LIMIT)
        found = model.certificate_
        where = f"C={C:g}: {model.status_.name} {found}"
        assert np.isfinite(found.primal), where
        scale = C * np.abs(case.v).sum()
        assert found.dual <= found.primal * (1 + 1e-9) + 1e-9 * scale, where
        again = judged(model, case, RBF(model.gamma_) if kernel == "rbf" else Linear())
        rounding = found.rounding + again.rounding
        assert again.primal == pytest.approx(found.primal, rel=1e-6, abs=1e-9 * scale + rounding), where
        if C <= 1.0 and (kernel == "rbf" or case.name not in UNSCALED):
            assert model.status_ is Status.OPTIMAL, where
        if model.status_ is Status.OPTIMAL:
            assert found.relative_gap <= 1e-3, where
            assert again.relative_gap <= 1.001e-3, where
        else:
            assert model.status_ in (Status.MAX_ITER, Status.STALLED, Status.UNCONFIRMED), where
        predicted = model.predict(case.X)
        np.testing.assert_array_equal(predicted, np.where(model.decision_function(case.X) > 0, 1.0, -1.0))


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("how", ACTIVE_SETS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_active_set_is_certified(case, how, kernel):
    """At every C: an optimum, or what double precision allows, in a bounded number of pivots."""
    for C in case.Cs:
        model = fit(case, C=C, kernel=kernel, solver=ACTIVE_SETS[how], tol=1e-6, max_iter=20_000)
        found = model.certificate_
        where = f"C={C:g}: {model.status_.name} {found} {model.counts_}"
        scale = C * np.abs(case.v).sum()
        assert found.dual <= found.primal * (1 + 1e-9) + 1e-9 * scale, where
        again = judged(model, case, RBF(model.gamma_) if kernel == "rbf" else Linear())
        rounding = found.rounding + again.rounding
        assert again.primal == pytest.approx(found.primal, rel=1e-6, abs=1e-9 * scale + rounding), where
        assert model.counts_["iterations"] <= 20_000, where
        if kernel == "rbf" or (C <= 1.0 and case.name not in UNSCALED):
            assert model.status_ is Status.OPTIMAL, where
        else:
            assert model.status_ in (Status.OPTIMAL, Status.STALLED, Status.UNCONFIRMED), where


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_cutting_planes_are_certified(case, kernel):
    for C in case.Cs:
        model = fit(case, C=C, kernel=kernel, solver="ocas", max_iter=1000)
        found = model.certificate_
        where = f"C={C:g}: {model.status_.name} {found} {model.counts_}"
        scale = C * np.abs(case.v).sum()
        assert found.dual <= found.primal * (1 + 1e-9) + 1e-9 * scale, where
        again = judged(model, case, RBF(model.gamma_) if kernel == "rbf" else Linear())
        rounding = found.rounding + again.rounding
        assert again.primal == pytest.approx(found.primal, rel=1e-6, abs=1e-9 * scale + rounding), where
        if kernel == "rbf" or (C <= 1.0 and case.name not in UNSCALED):
            assert model.status_ is Status.OPTIMAL, where
        else:
            assert model.status_ in (Status.OPTIMAL, Status.STALLED, Status.UNCONFIRMED, Status.MAX_ITER), where


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in ("noisy", "n < d", "ties everywhere")], ids=str
)
def test_solvers_agree_on_the_optimum(case):
    by_pairs = (SMO("second_order"), SMO("hybrid_maximum_gain"), SMO("decomposition"))
    active_sets = (ActiveSet(), ActiveSet("shrinking"), ActiveSet("full", start="cold"), ActiveSet(equations="cg"))
    solvers = (BlockSMO(), BlockSMO(size=8), KernelOCAS(), *by_pairs, *active_sets)
    found = [fit(case, solver=solver, tol=1e-6).certificate_ for solver in solvers]
    low, high = max(part.dual for part in found), min(part.primal for part in found)
    assert low <= high * (1 + 1e-12)
    assert high - low <= 1e-6 * high


def test_one_row_a_class():
    """K = [[1, k], [k, 1]], alpha_1 = alpha_2 = 1 / (1 - k) within the box."""
    X, k = np.array([[0.0], [1.0]]), np.exp(-0.5)
    model = SVC(100.0, gamma=0.5, tol=1e-12).fit(X, [0, 1])
    np.testing.assert_allclose(model.dual_coef_, [[-1 / (1 - k), 1 / (1 - k)]], rtol=1e-12)
    np.testing.assert_allclose(model.decision_function(X), [-1.0, 1.0], rtol=1e-12)
    bounded = SVC(0.5, gamma=0.5, tol=1e-12).fit(X, [0, 1])
    np.testing.assert_allclose(bounded.dual_coef_, [[-0.5, 0.5]])
    three = SVC(100.0, gamma=0.5).fit(np.array([[0.0], [1.0], [2.0]]), ["a", "b", "c"])
    assert three.predict(np.array([[0.1], [0.9], [2.2]])).tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_all_rows_equal(kernel, value):
    """Nothing can be told apart: the larger class wins everywhere, and its loss is the other's weight."""
    X, y = np.full((7, 2), value), np.array([0, 1, 1, 0, 1, 1, 1])
    model = SVC(kernel=kernel).fit(X, y)
    assert model.status_ is Status.OPTIMAL
    assert model.certificate_.primal == pytest.approx(4.0, rel=1e-3)  # 2 rows, each with a loss of 2
    assert model.predict(X).tolist() == [1] * 7


def test_constant_features_change_nothing_for_a_kernel_of_distances():
    case = next(case for case in CASES if case.name == "noisy")
    more = np.column_stack([case.X, np.full(60, 1e3)])
    found = [SVC(gamma=0.2, tol=1e-8).fit(X, case.y).decision_function(X) for X in (case.X, more)]
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)
