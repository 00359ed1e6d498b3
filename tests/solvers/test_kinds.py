"""Every solver says what kind of problem it needs, in one place and in its class, and is refused for others."""

import numpy as np
import pytest

from softmargin import SoftmarginError
from softmargin.core.stopping import Stop
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.kernels.cached import WholeMatrix
from softmargin.problems.box_qp import BoxQP
from softmargin.problems.hinge import Hinge
from softmargin.problems.hinge_targets import Tube
from softmargin.problems.row_loss import RowLoss
from softmargin.problems.squared import Squared
from softmargin.problems.squared_targets import SquaredClasses, SquaredTube
from softmargin.solvers.base import run
from softmargin.tasks.records import TASKS
from softmargin.tasks.solvers import SOLVERS

V = np.array([1.0, -1.0, 1.0])
ROWS = as_rows(np.arange(6.0).reshape(3, 2))
PROBLEMS = {
    "hinge": Hinge(ROWS, V, 1.0),
    "tube": Hinge(ROWS, Tube(V, np.ones(3), 0.1), 1.0),
    "squared": Squared(ROWS, SquaredClasses(V), 1.0),
    "squared tube": Squared(ROWS, SquaredTube(V, np.ones(3), 0.1), 1.0),
    "box": BoxQP(WholeMatrix(np.eye(3), 1e6), RowLoss.classification(V, 1.0), Workers(1)),
}


@pytest.mark.parametrize("entry", SOLVERS, ids=lambda entry: entry.word)
def test_the_list_and_the_class_agree(entry):
    assert entry.home.load().needs == entry.needs


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("entry", SOLVERS, ids=lambda entry: entry.word)
def test_a_solver_runs_on_its_kind_and_is_refused_for_others(entry, problem):
    solver, problem = entry.home.load()(), PROBLEMS[problem]
    if entry.needs in problem.serves:
        solver.init(problem)
        return
    with pytest.raises(SoftmarginError, match=f"and {type(problem).__name__} is no such problem. Use "):
        run(solver, problem, Stop(), lambda solution: None)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_task_has_what_it_names(task):
    assert task.home.load().__name__ == task.name
    for part in (*task.parts, task.state, task.predictor, task.measures, *task.formats.values()):
        assert part.load() is not None
    parameters = task.home.load()().get_params()
    assert set(task.options) - {"no_qid"} <= set(parameters)
