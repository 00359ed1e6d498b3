"""Small problems whose optimum can be worked out by hand."""

import numpy as np
import pytest

from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.data.convert import as_rows
from softmargin.problems.certificate import HingeJudge
from softmargin.problems.hinge import Hinge
from softmargin.problems.intercepts import intercept_named
from softmargin.solvers.base import run
from softmargin.solvers.cutting_plane.cpa import CPA
from softmargin.solvers.cutting_plane.ocas import OCAS

# name, X, v, C, intercept, optimal value, optimal w (None where not unique), optimal b (None likewise)
PROBLEMS = [
    # min 1/2 w^2 + C max(0, 1 - w): w = min(C, 1).
    ("one row, small C", [[1.0]], [1.0], 0.5, "none", 0.125 + 0.25, [0.5], 0.0),
    ("one row, large C", [[1.0]], [1.0], 3.0, "none", 0.5, [1.0], 0.0),
    # A free intercept satisfies any number of rows of one class for nothing.
    ("one class, free intercept", [[1.0], [5.0]], [1.0, 1.0], 1.0, "free", 0.0, [0.0], None),
    # Rows at +1 and -1: hard margin w = 1, b = 0.
    ("two rows", [[1.0], [-1.0]], [1.0, -1.0], 10.0, "free", 0.5, [1.0], 0.0),
    # Shifted by 10 the free intercept absorbs the shift: w = 1, b = -10.
    ("two rows, shifted", [[11.0], [9.0]], [1.0, -1.0], 10.0, "free", 0.5, [1.0], -10.0),
    # Small C: alpha = C on both, w = 2 C, value = C * 2 - 1/2 (2 C)^2.
    ("two rows, both bounded", [[1.0], [-1.0]], [1.0, -1.0], 0.1, "free", 0.2 - 0.02, [0.2], None),
    # The same row with both labels: w = 0 is optimal, the loss of the pair is 2 whatever |w.x| <= 1.
    ("opposite labels", [[3.0], [3.0]], [1.0, -1.0], 2.0, "none", 4.0, [0.0], 0.0),
    # Weights: the heavier label decides; with v = (3, -1) on the same row the loss falls with slope 2 until w = 1.
    ("opposite labels, weighted", [[1.0], [1.0]], [3.0, -1.0], 10.0, "none", 0.5 + 20.0, [1.0], 0.0),
    # Penalised intercept = constant feature: rows (1; 1), (-1; 1): same as without since b = 0 by symmetry.
    ("two rows, penalised", [[1.0], [-1.0]], [1.0, -1.0], 10.0, "penalised", 0.5, [1.0], 0.0),
    # All-zero row: nothing to learn without intercept, the penalised intercept gets min(C, 1).
    ("zero row", [[0.0]], [1.0], 2.0, "none", 2.0, [0.0], 0.0),
    ("zero row, penalised", [[0.0]], [1.0], 2.0, "penalised", 0.5, [0.0], 1.0),
    # Three rows on a line, two dimensions: (2, 0)+, (0, 0)-, (0, 5)-: margin between x1 = 0 and 2: w = (1, 0), b = -1.
    (
        "margin in the plane",
        [[2.0, 0.0], [0.0, 0.0], [0.0, 5.0]],
        [1.0, -1.0, -1.0],
        50.0,
        "free",
        0.5,
        [1.0, 0.0],
        -1.0,
    ),
]


@pytest.mark.parametrize("solver", [OCAS(), CPA()], ids=["ocas", "cpa"])
@pytest.mark.parametrize(
    ("name", "X", "v", "C", "intercept", "value", "w", "b"), PROBLEMS, ids=[p[0] for p in PROBLEMS]
)
def test_optimum(solver, name, X, v, C, intercept, value, w, b):
    X, v = np.array(X), np.array(v)
    rows = as_rows(X)
    result = run(
        solver,
        Hinge(rows, v, C, intercept_named(intercept)),
        Stop(tol=1e-9, max_iter=200),
        HingeJudge(rows, v, C, intercept_named(intercept)),
    )
    assert result.status is Status.OPTIMAL
    assert result.certificate.primal == pytest.approx(value, rel=1e-7, abs=1e-12)
    assert result.certificate.dual == pytest.approx(value, rel=1e-7, abs=1e-12)
    if w is not None:
        np.testing.assert_allclose(result.solution.w, w, atol=1e-4)
    if b is not None:
        assert result.solution.b == pytest.approx(b, abs=1e-4)
