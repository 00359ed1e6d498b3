"""The adapter for benchopt does what that benchmark asks of a solver. benchopt itself need not be installed."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import benchmarks
import numpy as np
import pytest
import scipy.sparse as sp

ADAPTER = Path(benchmarks.__file__).parent / "benchopt_solver.py"


@pytest.fixture
def solver(monkeypatch):
    class BaseSolver:
        def __init__(self, **parameters):
            self.__dict__.update(parameters)

    monkeypatch.setitem(sys.modules, "benchopt", ModuleType("benchopt"))
    sys.modules["benchopt"].BaseSolver = BaseSolver
    spec = importlib.util.spec_from_file_location("benchopt_solver", ADAPTER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Solver(**{name: values[0] for name, values in module.Solver.parameters.items()})


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_the_objective_falls_with_the_tolerance(solver, form):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 15))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(200) > 0, 1.0, -1.0)
    C = 0.5
    solver.set_objective(X=form(X), y=y, C=C)
    solver.warm_up()
    values = []
    for tolerance in (1e38, 0.1, 1e-3, 1e-6, 1e-12):
        solver.run(tolerance)
        beta = solver.get_result()["beta"]
        assert beta.shape == (15,)
        values.append(C * np.maximum(1.0 - y * (X @ beta), 0.0).sum() + 0.5 * beta @ beta)
    assert values[3] <= min(values[:3])
    certificate = solver.model.certificate_
    assert values[-1] == pytest.approx(certificate.primal, rel=1e-12)
    assert values[-1] - certificate.dual <= 1e-9 * values[-1]
