"""Regression and one class on every hard problem, with every solver, judged by the certificate."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest

from softmargin import SVR, ActiveSet, ConvergenceWarning, LinearOneClassSVM, LinearSVR, OneClassSVM, Status, certify

_spec = importlib.util.spec_from_file_location("catalogue", Path(__file__).with_name("catalogue.py"))
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
CASES = _module.catalogue()
# The largest problem is for the linear solvers.
KERNEL_CASES = [case for case in CASES if case.name != "n >> d"]
# Where features differ in scale by orders of magnitude, the limits on the iterations may come first.
UNSCALED = ("unscaled features", "columns from 1e-6 to 1e6", "weights over ten decades")
HONEST = (Status.OPTIMAL, Status.MAX_ITER, Status.STALLED, Status.UNCONFIRMED)
KERNEL_SOLVERS = {"block": 20, "smo": 200_000, "ipm": 200, "ocas": 300, ActiveSet(start="cold"): 20_000}
KERNEL_SOLVERS |= {ActiveSet(start="cold", equations="cg"): 20_000}
named = pytest.mark.parametrize("solver", KERNEL_SOLVERS, ids=["block", "smo", "ipm", "ocas", "active_set", "cg"])


def targets(case):
    """Ugly numbers: the labels, with a trend that the first column follows, an outlier, and ties."""
    first = np.asarray(case.X[:, [0]].todense() if hasattr(case.X, "todense") else case.X[:, [0]]).ravel()
    y = case.y + np.rint(2.0 * first / (np.abs(first).max() or 1.0))
    y[0] += 100.0
    return y


def fit(model, case, y=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "the optimum is w = 0", UserWarning)
        return model.fit(case.X, y, sample_weight=case.s)


def check(model, case, y, *, must_reach):
    found = model.certificate_
    where = f"{model}: {model.status_.name} {found}"
    assert np.isfinite(found.primal), where
    assert found.dual <= found.primal, where
    assert model.status_ in HONEST, where
    if must_reach:
        assert model.status_ is Status.OPTIMAL, where
    if model.status_ is Status.OPTIMAL:
        assert found.relative_gap <= model.tol, where
    again = certify(model, case.X, y, case.s)
    room = 1e-6 * abs(found.primal) + found.rounding + again.rounding
    assert abs(again.primal - found.primal) <= room, where
    assert np.isfinite(model.predict(case.X)).all(), where


@pytest.mark.parametrize("case", CASES, ids=str)
def test_squared_regression(case):
    """Where C is large beside the scale of the features, the limit on the iterations may come first."""
    y = targets(case)
    for C in case.Cs:
        for options in ({}, {"intercept": "penalised"}, {"fit_intercept": False}):
            must_reach = C <= 1.0 and case.name not in UNSCALED
            limit = 400 if must_reach else 10
            model = LinearSVR(C, epsilon=0.1, loss="squared_epsilon_insensitive", max_iter=limit, **options)
            check(fit(model, case, y), case, y, must_reach=must_reach)


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_linear_regression(case, solver):
    y = targets(case)
    for C in case.Cs:
        for options in ({}, {"intercept": "penalised"}, {"fit_intercept": False}):
            for epsilon in (0.0, 0.5, 1e4):
                limit = {"ocas": 2000, "cpa": 300}[solver]
                model = fit(LinearSVR(C, epsilon=epsilon, solver=solver, max_iter=limit, **options), case, y)
                check(model, case, y, must_reach=solver == "ocas" and C <= 1.0)


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_linear_one_class(case, solver):
    for nu in (1e-6, 0.1, 0.5, 1.0):
        model = fit(LinearOneClassSVM(nu, solver=solver, max_iter=2000), case)
        check(model, case, None, must_reach=solver == "ocas")


@named
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("case", KERNEL_CASES, ids=str)
def test_kernel_regression(case, kernel, solver):
    y = targets(case)
    for C in case.Cs:
        for epsilon in (0.0, 0.5, 1e4):
            options = {"kernel": kernel, "solver": solver, "max_iter": KERNEL_SOLVERS[solver]}
            model = fit(SVR(C, epsilon=epsilon, **options), case, y)
            is_slow = case.name in UNSCALED or (case.name == "float32" and solver == "smo")
            check(model, case, y, must_reach=C <= 1.0 and not is_slow)


@named
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("case", KERNEL_CASES, ids=str)
def test_kernel_one_class(case, kernel, solver):
    for nu in (1e-6, 0.1, 0.5, 1.0):
        model = fit(OneClassSVM(nu, kernel=kernel, solver=solver, max_iter=KERNEL_SOLVERS[solver]), case)
        # Around the origin the optimum of a linear kernel is zero. With this nu that is beyond double precision.
        is_hopeless = nu == 1e-6 and kernel == "linear"
        check(model, case, None, must_reach=case.name not in UNSCALED and not is_hopeless)


@pytest.mark.parametrize("case", [c for c in CASES if c.name in ("noisy", "n < d", "ties everywhere")], ids=str)
def test_linear_and_kernel_solvers_agree_on_the_optimum(case):
    y = targets(case)
    found = [fit(SVR(0.1, kernel="linear", solver=s, epsilon=0.1, tol=1e-7), case, y) for s in KERNEL_SOLVERS]
    found += [fit(LinearSVR(0.1, solver=s, epsilon=0.1, tol=1e-7), case, y) for s in ("ocas", "cpa")]
    low, high = max(m.certificate_.dual for m in found), min(m.certificate_.primal for m in found)
    assert low <= high <= low * (1 + 1e-7)
