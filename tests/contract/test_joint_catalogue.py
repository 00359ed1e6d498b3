"""The joint problem on every hard problem, with two classes and with a third one cut out of them."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.data.convert import as_rows
from softmargin.problems.intercepts import intercept_named
from softmargin.problems.joint import Joint
from softmargin.problems.joint_certificate import JointJudge
from softmargin.solvers.base import run
from softmargin.solvers.coordinate.coordinate import CoordinateDescent
from softmargin.solvers.cutting_plane.cpa import CPA
from softmargin.solvers.cutting_plane.ocas import OCAS

_spec = importlib.util.spec_from_file_location("catalogue", Path(__file__).with_name("catalogue.py"))
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
CASES = _module.catalogue()
# CPA and coordinate descent may end within their budgets with an honest status; OCAS must reach the tolerance.
SOLVERS = {"ocas": (OCAS(), 3000), "cpa": (CPA(), 300), "coordinate": (CoordinateDescent(), 5)}


@pytest.mark.parametrize("solver_name", SOLVERS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_judge_certifies(case, solver_name):
    solver, max_iter = SOLVERS[solver_name]
    rows = as_rows(case.X)
    weights = np.ones(len(case.y)) if case.s is None else case.s
    codes = np.where(case.y > 0, 1, 0)
    codes[::3] = 2
    for C in case.Cs[:3]:
        for intercept in ("none", "penalised"):
            given = codes, weights, 3, C, intercept_named(intercept)
            problem, judge = Joint(rows, *given), JointJudge(rows, *given)
            result = run(solver, problem, Stop(tol=1e-3, max_iter=max_iter), judge)
            certificate = result.certificate
            where = f"C={C:g}, intercept={intercept}: {result.status.name} {certificate}"
            assert np.isfinite(certificate.primal), where
            assert certificate.dual <= certificate.primal, where
            if solver_name == "ocas":
                assert result.status is Status.OPTIMAL, where
            if result.status is Status.OPTIMAL:
                assert certificate.relative_gap <= 1e-3, where
            else:
                assert result.status in (Status.MAX_ITER, Status.STALLED, Status.UNCONFIRMED), where
