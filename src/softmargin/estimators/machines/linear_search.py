"""Solutions of a linear classifier for all folds and all values of C: over one copy of the rows, each from the last."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softmargin.core.errors import Abandoned
from softmargin.core.result import Result
from softmargin.core.stopping import AT_BOUND
from softmargin.core.threads import Cancel, Workers, limit_blas_of_this_thread
from softmargin.data.columns import Columns, Occupied
from softmargin.data.convert import as_products
from softmargin.data.rows import Products
from softmargin.estimators.linear_work import aimed
from softmargin.estimators.machines.base import fitting, progress_lines
from softmargin.estimators.machines.cells import Cell, Cells, SearchInterrupted, Task
from softmargin.solvers.base import run
from softmargin.solvers.cutting_plane.state import CuttingPlaneSolver


def linear_cells(task: Task, plain: Any, verbose: int) -> Cells:
    """The cells of all folds. An interrupt is raised with those that there are."""
    solver, stop, n_threads = plain._limits()
    solver = aimed(solver, stop.tol)
    settings = [plain.set_params(C=float(C))._setting() for C in task.Cs]
    targets = [
        plain._posed(settings[-1], task.X, task.classes[task.codes], sample_weight=fold.weights).targets
        for fold in task.folds
    ]
    n_problems = len(targets[0])
    chains = [(j, k) for j in range(len(targets)) for k in range(n_problems)]
    titles = [f"fold {j}" if n_problems == 1 else f"fold {j}, class {task.classes[k]}" for j, k in chains]
    lines = progress_lines(verbose, titles, stop)
    n_outer = min(n_threads, len(chains))
    with fitting(n_threads, lines) as (cancel, workers):
        rows = as_products(task.X, workers)
        occupied = Occupied.of(rows)
        try:
            columns = Columns.of(occupied.rows, isinstance(solver, CuttingPlaneSolver), cancel.check)
        except Abandoned:
            raise SearchInterrupted([[[]] for _ in task.folds], [None]) from None
        path = _Path(task, solver, settings, stop, rows, occupied, columns, cancel, n_outer, n_threads)

        def follow(number: int) -> list[_Step]:
            j, k = chains[number]
            found = path.follow(targets[j][k], task.folds[j].held_out, lines[number : number + 1])
            if lines:
                lines[number].close()
            return found

        if n_outer == 1:
            steps = [follow(number) for number in range(len(chains))]
        else:
            with ThreadPoolExecutor(n_outer, "softmargin-fold", initializer=limit_blas_of_this_thread) as pool:
                steps = list(pool.map(follow, range(len(chains))))
    cells = [[_cells_of(steps[j * n_problems : (j + 1) * n_problems])] for j in range(len(targets))]
    if cancel.is_set:
        raise SearchInterrupted(cells, [None])
    return cells


@dataclass(frozen=True)
class _Step:
    """What is kept of one solution: how it ended, its outputs on the held-out rows, and which rows support it."""

    result: Result
    outputs: np.ndarray
    support: np.ndarray


@dataclass(frozen=True)
class _Path:
    """Everything that the solutions of all folds have in common."""

    task: Task
    solver: Any
    settings: Sequence[Any]
    stop: Any
    rows: Products
    occupied: Occupied
    columns: Columns
    cancel: Cancel
    n_outer: int
    n_threads: int

    def follow(self, target: np.ndarray, held_out: np.ndarray, observers: Sequence[Any]) -> list[_Step]:
        """Solve one sub-problem of one fold for all C, each from the state of the last."""
        workers = Workers(max(1, self.n_threads // self.n_outer))
        steps: list[_Step] = []
        state = None
        try:
            for setting in self.settings:
                result = self._solved(setting, target, state, workers, observers)
                state = result.state
                if self.cancel.is_set:
                    break
                w = self.occupied.spread(result.solution.w)
                outputs = self.rows.on(workers).dot(w)[held_out] + result.solution.b
                small = replace(result, solution=None, state=None)  # type: ignore[arg-type]  # weights may be many
                steps.append(_Step(small, outputs, result.solution.alpha > AT_BOUND * setting.C * np.abs(target)))
        except BaseException:
            self.cancel.set()
            raise
        finally:
            workers.close()
        return steps

    def _solved(self, setting: Any, target: np.ndarray, state: Any, workers: Workers, observers: Any) -> Result:
        limit = replace(self.stop, max_seconds=self.task.budget.next(self.n_outer))
        problem = setting.problem(self.columns.inner, target, workers)
        judge = setting.judge(self.occupied.rows, target, workers, self.stop.tol)

        def outer(solution: Any) -> Any:
            return replace(solution, w=self.columns.outer(solution.w))

        result = run(
            self.solver,
            problem,
            limit,
            lambda solution: judge(outer(solution)),
            start=state,
            observers=observers,
            workers=workers,
            cancel=self.cancel,
        )
        return replace(result, solution=outer(result.solution))


def _cells_of(chains: Sequence[Sequence[_Step]]) -> list[Cell]:
    """The cells of one fold, from the steps of each of its sub-problems."""
    cells = []
    for steps in zip(*chains, strict=False):  # after an interrupt some chains are shorter
        outputs = [step.outputs for step in steps]
        cells.append(
            Cell(
                certificates=[step.result.certificate for step in steps],
                statuses=[step.result.status for step in steps],
                n_support=int(np.count_nonzero(np.logical_or.reduce([step.support for step in steps]))),
                decisions=outputs[0] if len(outputs) == 1 else np.column_stack(outputs),
            )
        )
    return cells
