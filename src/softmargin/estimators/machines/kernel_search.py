"""Solutions of a kernel classifier for all folds and all values of C and gamma, which share the kernel values."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Result
from softmargin.core.threads import Cancel, Workers
from softmargin.data.convert import as_rows
from softmargin.data.rows import Rows
from softmargin.estimators.kernel_scoring import kernel_scores
from softmargin.estimators.kernel_targets import Pair, pairs_of
from softmargin.estimators.kernel_work import KernelWork, Stores
from softmargin.estimators.machines.base import fitting, progress_lines
from softmargin.estimators.machines.cells import Budget, Cell, Cells, SearchInterrupted, Task, checked_grid
from softmargin.kernels.cached import RowStore
from softmargin.prediction.labels import one_against_one
from softmargin.solvers.interior.ipm import IPM

# An integer number of values of gamma stands for a grid between these powers of ten, times the gamma "scale".
GAMMA_GRID = ("gammas", (-2.0, 2.0))
# Kernels that have a gamma.
WITH_GAMMA = ("rbf", "poly", "sigmoid", "laplacian")


def has_gamma(plain: Any) -> bool:
    """Whether the kernel of this estimator or machine has a gamma."""
    return isinstance(plain.kernel, str) and plain.kernel in WITH_GAMMA


def copied(plain: Any, **params: Any) -> Any:
    """An unfitted copy with other parameters."""
    return type(plain)(**{**plain.get_params(deep=False), **params})


def kernel_cells(task: Task, plain: Any, gammas: Any, verbose: int) -> tuple[Cells, list[float], int]:
    """The cells of all folds, the values of gamma, and how many kernel values were computed.

    An interrupt is raised with the cells that were finished.
    """
    if not takes_weight_zero(plain.solver):
        raise SoftmarginError(
            "solver='ipm' cannot search: held-out rows have the weight 0, for which interior points have no place. "
            "Use solver='auto', or GridSearchCV with SVC."
        )
    _, stop, n_threads, _ = plain._limits()
    lines = progress_lines(verbose, [f"fold {j}" for j in range(len(task.folds))], stop)
    cells: Cells = [[] for _ in task.folds]
    n_evaluations = 0
    with fitting(n_threads, lines) as (cancel, workers):
        rows = as_rows(task.X, workers)
        values = gamma_values(plain, gammas, rows, workers, task.weights)
        for gamma in values:
            model = copied(plain, **({"gamma": gamma} if has_gamma(plain) else {}))
            found, n_more = _solved(task, model, rows, workers, cancel, lines)
            n_evaluations += n_more
            for j, of_fold in enumerate(found):
                cells[j].append(of_fold)
            if cancel.is_set:
                raise SearchInterrupted(cells, values)
    return cells, values, n_evaluations


def takes_weight_zero(solver: Any) -> bool:
    """Whether this value of `solver` can solve problems in which held-out rows have the weight 0."""
    return not (isinstance(solver, IPM) or (isinstance(solver, str) and solver == "ipm"))


def gamma_values(plain: Any, gammas: Any, rows: Rows, workers: Workers, weights: np.ndarray) -> list[float]:
    """The values themselves; what follows from the data is that of all rows."""
    if not has_gamma(plain):
        return [0.0]

    def value(gamma: Any) -> float:
        pairs = [Pair(np.arange(rows.n_rows), np.ones(rows.n_rows), 0, 1)]
        work = copied(plain, gamma=gamma)._work(rows, workers, pairs, weights, plain.solver)
        return float(work.known["gamma_"])

    if isinstance(gammas, str):
        return [value(gammas)]
    if hasattr(gammas, "__len__") and len(gammas):
        return [value(gamma) for gamma in gammas]
    factors = checked_grid(gammas, *GAMMA_GRID)
    scale = value("scale")
    return [scale * float(factor) for factor in factors]


def _solved(
    task: Task, model: Any, rows: Rows, workers: Workers, cancel: Cancel, lines: Sequence[Any]
) -> tuple[list[list[Cell]], int]:
    """The cells of each fold for the gamma of this model, and the kernel values that were computed.

    Pairs of classes come one after the other, and each with all of its folds and values of C: its kernel values are
    computed once, as far as the cache holds them. After an interrupt a fold has the cells of which all pairs are
    solved.
    """
    n_classes = task.classes.size
    every = pairs_of(task.codes, n_classes, np.ones(task.codes.size))
    whole = model._work(rows, workers, every, task.weights, model.solver)
    used = whole.setting.used(rows, workers)
    shared = cache(lambda dtype: whole.setting.stores(used, every, dtype, workers))
    weights = [model._row_weights(task.classes, task.codes, fold.weights) for fold in task.folds]
    paths: list[list[list[Result]]] = [[] for _ in task.folds]
    evaluations: dict[Any, int] = {}
    for k, pair in enumerate(every):
        stores: dict[Any, RowStore] = {}  # of this pair only: those of all pairs would not fit into the budget

        def of_pair(dtype: Any, pair: Pair = pair, stores: dict[Any, RowStore] = stores) -> Stores:
            if dtype not in stores:
                stores[dtype] = shared(dtype)(pair)
            return lambda target: stores[dtype]

        for j, of_fold in enumerate(weights):
            target = replace(pair, signed_weights=pair.signed_weights * of_fold[pair.index])
            work = replace(whole, rows=used, targets=[target], stores=of_pair)
            paths[j].append(path_over_C(task.Cs, task.budget, work, cancel, lines[j : j + 1]))
            if cancel.is_set:
                break
        if cancel.is_set and k + 1 < len(every):
            return [], 0
        # Pairs that share a cache share its counter, so that the last one knows of all evaluations.
        evaluations |= {dtype: store.source.n_evaluations for dtype, store in stores.items()}
    cells = [
        _scored(rows, whole, every, fold.held_out, path, n_classes) if len(path) == len(every) else []
        for fold, path in zip(task.folds, paths, strict=True)
    ]
    return cells, sum(evaluations.values())


def _scored(
    rows: Rows, work: KernelWork, pairs: list[Pair], held_out: np.ndarray, path: Any, n_classes: int
) -> list[Cell]:
    """The cells of one fold: decision values for all C at once, so that kernel values are computed once."""
    n_Cs, n_pairs = min(map(len, path)), len(pairs)
    if not n_Cs:
        return []
    coefficients = np.zeros((rows.n_rows, n_pairs, n_Cs))
    for k, pair in enumerate(pairs):
        for c, result in enumerate(path[k][:n_Cs]):
            coefficients[pair.index, k, c] = result.solution.alpha * np.sign(pair.signed_weights)
    intercepts = np.array([[result.solution.b for result in of_pair[:n_Cs]] for of_pair in path])
    scores = held_out_scores(rows, work, coefficients.reshape(rows.n_rows, -1), intercepts.ravel(), held_out)
    scores = scores.reshape(held_out.size, n_pairs, n_Cs)
    is_support = coefficients != 0.0
    return [
        Cell(
            certificates=[of_pair[c].certificate for of_pair in path],
            statuses=[of_pair[c].status for of_pair in path],
            n_support=int(np.count_nonzero(is_support[:, :, c].any(axis=1))),
            decisions=scores[:, 0, c] if n_pairs == 1 else one_against_one(scores[:, :, c], n_classes),
        )
        for c in range(n_Cs)
    ]


def held_out_scores(
    rows: Rows, work: KernelWork, coefficients: np.ndarray, intercepts: np.ndarray, held_out: np.ndarray
) -> np.ndarray:
    """Scores of the held-out rows for all columns of coefficients at once, so that kernel values are computed once."""
    support = np.flatnonzero(coefficients.any(axis=1))
    return kernel_scores(
        rows.take(held_out),
        work.setting.kernel,
        support,
        rows.take(support) if work.setting.kernel is not None else None,
        coefficients[support],
        intercepts,
        work.workers.n_threads,
    )


def path_over_C(
    Cs: np.ndarray, budget: Budget, work: KernelWork, cancel: Cancel, observers: Sequence[Any] = ()
) -> list[Result]:
    """The one target of this work for all C, each from the state of the last; after an interrupt, those finished."""
    results: list[Result] = []
    state = None
    for C in Cs:
        at = replace(
            work,
            setting=replace(work.setting, C=float(C)),
            stop=replace(work.stop, max_seconds=budget.next()),
        )
        starts = None if state is None else at.at_bounds([state])
        [result] = at.solve(starts, cancel, lambda k, candidate: observers)
        if cancel.is_set:
            break
        state = result.state
        results.append(replace(result, state=None))
    return results
