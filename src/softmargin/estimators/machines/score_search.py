"""Solutions of a kernel machine without classes for all folds and parameters, which share the kernel values of a gamma.

    for each gamma: for each value of epsilon or nu: for each fold: solve for all C, each from the state of the last
    score the held-out rows of every solution

As for classes, held-out rows have the weight 0 in training. The kernel matrix depends neither on weights nor on C,
epsilon or nu, so that there is one cache of its rows for each gamma.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softmargin.core.result import Result
from softmargin.data.convert import as_rows
from softmargin.data.rows import Rows
from softmargin.estimators import validation
from softmargin.estimators.kernel_work import KernelWork, Stores
from softmargin.estimators.machines.base import fitting
from softmargin.estimators.machines.cells import Budget, Cell, Fold
from softmargin.estimators.machines.kernel_search import (
    copied,
    gamma_values,
    has_gamma,
    held_out_scores,
    path_over_C,
)
from softmargin.kernels.cached import RowStore
from softmargin.prediction.labels import finite_scores

# What is done with the cells of one fold, one for each C: it is given gamma, the other parameters and the fold.
Found = Callable[[float, Mapping[str, float], Fold, Sequence[Cell]], None]


@dataclass(frozen=True)
class ScoreTask:
    """What a search is to solve: rows and targets, checked; folds; values of C in ascending order.

    `others` are the values of the parameters beside C and gamma, `weights` the sample weights of the rows, `budget` the
    time that is left.
    """

    X: Any
    y: Any
    weights: np.ndarray
    folds: Sequence[Fold]
    Cs: np.ndarray
    others: Sequence[Mapping[str, float]]
    budget: Budget


def score_cells(task: ScoreTask, plain: Any, gammas: Any, found: Found) -> int:
    """Give the cells of each fold to `found` as soon as they are there; how many kernel values the solvers needed.

    An interrupt is raised again after the cells of the solutions that were finished have been given.
    """
    _, _, n_threads, _ = plain._limits()
    validation.finite_scale(float(task.Cs[-1]), [task.weights])
    n_evaluations = 0
    with fitting(n_threads, []) as (cancel, workers):
        rows = as_rows(task.X, workers)
        every = np.arange(rows.n_rows)
        for gamma in gamma_values(plain, gammas, rows, workers, task.weights):
            model = copied(plain, **({"gamma": gamma} if has_gamma(plain) else {}))
            targets = [model._target(task.y, every, np.ones(rows.n_rows))]
            whole = model._work(rows, workers, targets, task.weights, model.solver)
            used = whole.setting.used(rows, workers)
            made: dict[Any, RowStore] = {}

            def stores(
                dtype: Any, made: dict[Any, RowStore] = made, whole: KernelWork = whole, used: Rows = used
            ) -> Stores:
                if dtype not in made:
                    made[dtype] = whole.setting.stores(used, whole.targets, dtype, workers)(whole.targets[0])
                return lambda target: made[dtype]

            for other in task.others:
                machine = copied(model, **other)
                for fold in task.folds:
                    target = machine._target(task.y, every, fold.weights)
                    work = replace(whole, rows=used, targets=[target], stores=stores)
                    results = path_over_C(task.Cs, task.budget, work, cancel)
                    found(gamma, other, fold, _cells(rows, whole, results, fold.held_out))
                    if cancel.is_set:
                        raise KeyboardInterrupt
            n_evaluations += sum(store.source.n_evaluations for store in made.values())
    return n_evaluations


def _cells(rows: Rows, work: KernelWork, results: Sequence[Result], held_out: np.ndarray) -> list[Cell]:
    """The cells of one fold, for all C."""
    if not results:
        return []
    coefficients = np.column_stack([result.solution.alpha for result in results])
    intercepts = np.array([result.solution.b for result in results])
    scores = finite_scores(held_out_scores(rows, work, coefficients, intercepts, held_out))
    return [
        Cell([result.certificate], [result.status], int(np.count_nonzero(coefficients[:, c])), scores[:, c])
        for c, result in enumerate(results)
    ]
