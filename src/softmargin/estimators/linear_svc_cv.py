"""The linear support vector classifier that chooses C by cross-validation."""

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
from softmargin.estimators.linear_svc import LinearSVC
from softmargin.estimators.linear_work import aimed
from softmargin.estimators.machines.base import fitting, progress_lines
from softmargin.estimators.search import Cell, Cells, SearchCV, Task
from softmargin.solvers.base import run
from softmargin.solvers.cutting_plane.state import CuttingPlaneSolver


class LinearSVCCV(SearchCV):
    """`LinearSVC` with C chosen by cross-validation; every solution of the search has a certificate.

    All folds use one copy of X: held-out rows have the weight 0 in training. The solutions of a fold begin where that
    of the next smaller C ended, so that a search costs little more than a few single fits.

    Parameters
    ----------
    Cs : int or list of float, default=10
        Values of C. An integer is a grid of so many values from 1e-4 to 1e4, evenly spaced on a log scale.
    cv : int, splitter or iterable of (train, test), default=None
        How rows are held out, as in scikit-learn; None is 5 stratified folds. For groups of rows that belong together
        give the splits themselves, ``list(GroupKFold().split(X, y, groups))``.
    scoring : str, callable or None, default=None
        What is maximised, as in scikit-learn; None is the accuracy, and copies no rows. Anything else is given the
        held-out rows of a fold, a copy, and what answers `predict` and `decision_function` for these rows. Sample
        weights are passed on if there are some.
    refit : bool, default=True
        Whether a `LinearSVC` is fitted on all rows with the best C. Without it there is no model to predict with.
    solver, tol, fit_intercept, intercept, intercept_scaling, class_weight, max_iter, random_state, verbose
        As in `LinearSVC`. "balanced" class weights are those of the training rows of each fold.
    max_seconds : float or None, default=None
        Limit on the time of the whole search with the last fit. Every solution may take an equal share of what is left.
    n_jobs : int or None, default=None
        Threads: None is one, -1 all. They go to folds and classes first, then to rows.

    Attributes
    ----------
    C_ : float
        The C with the best mean score over the folds; of several equally good ones the smallest.
    Cs_ : ndarray of shape (n_Cs,)
    scores_ : ndarray of shape (n_folds, n_Cs)
        The score of each fold's held-out rows, for each C. Fold scores are not weighted by the size of the fold.
    best_score_ : float
        The mean score of `C_`.
    relative_gaps_ : ndarray of shape (n_folds, n_Cs)
        What the judge has proven for each solution: the worst relative duality gap of its sub-problems.
    objectives_ : ndarray of shape (n_folds, n_Cs)
        The primal values, added up over the sub-problems.
    n_support_vectors_ : ndarray of shape (n_folds, n_Cs)
        How many rows have a dual variable above zero, by more than rounding, in any sub-problem.
    best_estimator_ : LinearSVC
        The model of all rows, with `refit=True`: an ordinary `LinearSVC`, which can be saved and certified. `coef_`,
        `intercept_`, `certificate_`, `n_iter_`, `predict` and `decision_function` are its own.
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    Ctrl-C is raised again. A search that has not come to its end leaves the estimator as it was before.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from softmargin import LinearSVCCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = LinearSVCCV(Cs=[0.01, 0.1, 1.0]).fit(StandardScaler().fit_transform(X), y)
    >>> search.scores_.shape
    (5, 3)
    >>> bool((search.relative_gaps_ <= 1e-3).all())
    True
    """

    _plain_type = LinearSVC

    def __init__(
        self,
        Cs: Any = 10,
        *,
        cv: Any = None,
        scoring: Any = None,
        solver: Any = "auto",
        tol: float = 1e-3,
        fit_intercept: bool = True,
        intercept: str = "free",
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        refit: bool = True,
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept = intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.refit = refit

    def _n_problems(self, n_classes: int) -> int:
        return 1 if n_classes == 2 else n_classes

    def _keep(self, tables: dict[str, np.ndarray], gammas: Sequence[Any]) -> None:
        for name, table in tables.items():
            setattr(self, name, table[:, 0])

    def _cells(self, task: Task, plain: LinearSVC) -> tuple[Cells, Sequence[Any]]:
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
        lines = progress_lines(self.verbose, titles, stop)
        n_outer = min(n_threads, len(chains))
        with fitting(n_threads, lines) as (cancel, workers):
            rows = as_products(task.X, workers)
            occupied = Occupied.of(rows)
            try:
                columns = Columns.of(occupied.rows, isinstance(solver, CuttingPlaneSolver), cancel.check)
            except Abandoned:
                raise KeyboardInterrupt from None
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
        if cancel.is_set:
            raise KeyboardInterrupt
        return [[_cells_of(steps[j * n_problems : (j + 1) * n_problems])] for j in range(len(targets))], [None]


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
    for steps in zip(*chains, strict=True):
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
