"""Every solver on every hard problem, judged by the certificate."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.data.convert import as_rows
from softmargin.problems.certificate import HingeJudge
from softmargin.problems.hinge import Hinge
from softmargin.problems.intercepts import intercept_named
from softmargin.problems.squared import Squared
from softmargin.problems.squared_targets import SquaredClasses
from softmargin.solvers.automatic import Automatic
from softmargin.solvers.base import run
from softmargin.solvers.coordinate.coordinate import CoordinateDescent
from softmargin.solvers.cutting_plane.cpa import CPA
from softmargin.solvers.cutting_plane.ocas import OCAS
from softmargin.solvers.subgradient.pegasos import Pegasos
from softmargin.solvers.subgradient.sgd import SGD

_spec = importlib.util.spec_from_file_location("catalogue", Path(__file__).with_name("catalogue.py"))
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
CASES = _module.catalogue()

# OCAS must reach the tolerance, and so must "auto". CPA may end within its budget with an honest status, and so may
# coordinate descent, which crawls where C is huge or columns have very different scales.
SOLVERS = {
    "auto": (Automatic(CoordinateDescent(), OCAS()), True),
    "ocas": (OCAS(), True),
    "cpa": (CPA(), False),
    "coordinate": (CoordinateDescent(), False),
}
MOST_STEPS = {"coordinate": 60}
# These rarely reach it, so they are given few epochs.
APPROXIMATE = {"pegasos": Pegasos(seed=0), "sgd": SGD(seed=0), "averaged": SGD(seed=0, average=True)}


@pytest.mark.parametrize("solver_name", SOLVERS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_judge_certifies(case, solver_name):
    solver, exact = SOLVERS[solver_name]
    rows = as_rows(case.X)
    for C in case.Cs:
        for intercept in case.intercepts:
            problem = Hinge(rows, case.v, C, intercept_named(intercept))
            judge = HingeJudge(rows, case.v, C, intercept_named(intercept))
            result = run(solver, problem, Stop(tol=1e-3, max_iter=MOST_STEPS.get(solver_name, 3000)), judge)
            where = f"C={C:g}, intercept={intercept}: {result.status.name} {result.certificate}"
            certificate = result.certificate
            assert np.isfinite(certificate.primal), where
            assert certificate.dual <= certificate.primal * (1 + 1e-9) + 1e-9 * problem.scale, where
            if exact:
                assert result.status is Status.OPTIMAL, where
            if result.status is Status.OPTIMAL:
                assert certificate.relative_gap <= 1e-3, where
            else:
                assert result.status in (Status.BUDGET, Status.MAX_ITER, Status.STALLED, Status.UNCONFIRMED), where


@pytest.mark.parametrize("solver_name", APPROXIMATE)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_approximate_solvers_end_honestly(case, solver_name):
    solver = APPROXIMATE[solver_name]
    rows = as_rows(case.X)
    for C in case.Cs:
        for intercept in case.intercepts:
            problem = Hinge(rows, case.v, C, intercept_named(intercept))
            judge = HingeJudge(rows, case.v, C, intercept_named(intercept))
            result = run(solver, problem, Stop(tol=1e-3, max_iter=20), judge)
            where = f"C={C:g}, intercept={intercept}: {result.status.name} {result.certificate}"
            certificate = result.certificate
            assert np.isfinite(result.solution.w).all(), where
            assert np.isfinite(certificate.dual), where
            assert certificate.primal <= problem.scale * (1 + 1e-9), where
            assert certificate.dual <= certificate.primal * (1 + 1e-9) + 1e-9 * problem.scale, where
            if result.status is Status.OPTIMAL:
                assert certificate.relative_gap <= 1e-3, where
            else:
                assert result.status in (Status.BUDGET, Status.MAX_ITER, Status.STALLED, Status.UNCONFIRMED), where


# Where C times the squared length of a row is enormous, single variables hardly move the others: the limit on the
# iterations may come first. Such problems have features or weights of very different scales, or a C of 1e6.
HARD_FOR_SINGLE_VARIABLES = ("unscaled features", "columns from 1e-6 to 1e6", "weights over ten decades")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_squared_losses(case):
    rows, target = as_rows(case.X), SquaredClasses(case.v)
    for C in case.Cs:
        for intercept in case.intercepts:
            problem = Squared(rows, target, C, intercept_named(intercept))
            judge = HingeJudge(rows, target, C, intercept_named(intercept))
            must_reach = C <= 1.0 and case.name not in HARD_FOR_SINGLE_VARIABLES
            result = run(CoordinateDescent(), problem, Stop(tol=1e-3, max_iter=100 if must_reach else 10), judge)
            certificate = result.certificate
            where = f"C={C:g}, intercept={intercept}: {result.status.name} {certificate}"
            assert np.isfinite(certificate.primal), where
            # Near w = 0 the objective may be above that of w = 0, by no more than tol.
            assert certificate.dual <= certificate.primal <= problem.scale * (1 + 1e-3), where
            if must_reach:
                assert result.status is Status.OPTIMAL, where
            if result.status is not Status.OPTIMAL:
                assert result.status in (Status.BUDGET, Status.MAX_ITER, Status.STALLED, Status.UNCONFIRMED), where


@pytest.mark.parametrize("case", [c for c in CASES if c.name in ("noisy", "n < d", "ties everywhere")], ids=str)
@pytest.mark.parametrize("intercept", ["none", "free", "penalised"])
def test_solvers_agree_on_the_optimum(case, intercept):
    rows = as_rows(case.X)
    problem = Hinge(rows, case.v, 1.0, intercept_named(intercept))
    judge = HingeJudge(rows, case.v, 1.0, intercept_named(intercept))
    found = [run(s, problem, Stop(tol=1e-8, max_iter=3000), judge).certificate for s, _ in SOLVERS.values()]
    low, high = max(c.dual for c in found), min(c.primal for c in found)
    assert low <= high * (1 + 1e-12)
    assert high - low <= 1e-8 * high
