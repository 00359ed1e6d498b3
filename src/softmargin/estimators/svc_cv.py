"""The kernel support vector classifier that chooses C and gamma by cross-validation."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from sklearn.base import clone

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Result
from softmargin.core.threads import Cancel, Workers
from softmargin.data.convert import as_rows
from softmargin.data.rows import Rows
from softmargin.estimators.kernel_scoring import kernel_scores, one_against_one
from softmargin.estimators.kernel_targets import Pair, pairs_of
from softmargin.estimators.kernel_work import KernelWork, Stores
from softmargin.estimators.machines.base import fitting, progress_lines
from softmargin.estimators.search import Cell, Cells, SearchCV, Task, checked_grid
from softmargin.estimators.svc import SVC
from softmargin.kernels.cached import RowStore
from softmargin.solvers.interior.ipm import IPM

# An integer number of values of gamma stands for a grid between these powers of ten, times the gamma "scale".
_GRID = ("gammas", (-2.0, 2.0))
# Kernels that have a gamma.
WITH_GAMMA = ("rbf", "poly", "sigmoid", "laplacian")


class SVCCV(SearchCV):
    """`SVC` with C and gamma chosen by cross-validation; every solution of the search has a certificate.

    All folds and all values of C share the kernel values of a gamma: the kernel matrix depends neither on labels nor on
    weights, and held-out rows have the weight 0 in training. The solutions of a fold begin where that of the next
    smaller C ended.

    Parameters
    ----------
    Cs : int or list of float, default=10
        Values of C. An integer is a grid of so many values from 1e-4 to 1e4, evenly spaced on a log scale.
    gammas : int or list of float, "scale" and "auto", default=5
        Values of gamma. An integer is a grid of so many values from 0.01 to 100 times that of "scale", evenly spaced on
        a log scale. "scale" is 1 / (n_features * X.var()) of all rows, not only of those in a fold's training, because
        folds share kernel values. Kernels without gamma have nothing to choose, and ignore this.
    cv : int, splitter or iterable of (train, test), default=None
        How rows are held out, as in scikit-learn; None is 5 stratified folds.
    scoring : str, callable or None, default=None
        What is maximised, as in scikit-learn; None is the accuracy. Anything else is given the held-out rows of a fold,
        a copy, and what answers `predict` and `decision_function` for these rows. Sample weights are passed on if there
        are some.
    refit : bool, default=True
        Whether an `SVC` is fitted on all rows with the best values. Without it there is no model to predict with.
    kernel, degree, coef0, working_set, shrinking, cache_bytes, cache_size, tol, stopping, class_weight, \
decision_function_shape, max_iter, n_jobs, random_state, verbose
        As in `SVC`. The shape "ovo" is for the model that is fitted in the end; scores of the search have shape "ovr".
    solver : {"auto", "block", "smo", "active_set"} or solver object, default="auto"
        As in `SVC`, but not "ipm": interior points have no place for rows whose weight is zero.
    max_seconds : float or None, default=None
        Limit on the time of the whole search with the last fit. Every solution may take an equal share of what is left.

    Attributes
    ----------
    C_, gamma_ : float
        The values with the best mean score over the folds; of several equally good ones the smallest gamma, and then
        the smallest C. gamma_ is 0 for kernels without gamma.
    Cs_, gammas_ : ndarray of shape (n_Cs,), (n_gammas,)
    scores_ : ndarray of shape (n_folds, n_gammas, n_Cs)
        The score of each fold's held-out rows. Fold scores are not weighted by the size of the fold.
    best_score_ : float
        The mean score of `C_` and `gamma_`.
    relative_gaps_ : ndarray of shape (n_folds, n_gammas, n_Cs)
        What the judge has proven for each solution: the worst relative duality gap of its pairs of classes; nan if the
        kernel is indefinite.
    objectives_ : ndarray of shape (n_folds, n_gammas, n_Cs)
        The primal values, added up over the pairs of classes.
    n_support_vectors_ : ndarray of shape (n_folds, n_gammas, n_Cs)
    n_kernel_evaluations_ : int
        Kernel values that were computed to solve all problems of the search.
    best_estimator_ : SVC
        The model of all rows, with `refit=True`: an ordinary `SVC`, which can be saved and certified. `dual_coef_`,
        `support_`, `intercept_`, `certificate_`, `predict` and `decision_function` are its own.
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    Ctrl-C is raised again. A search that has not come to its end leaves the estimator as it was before.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from softmargin import SVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = SVCCV(Cs=[1.0, 10.0], gammas=[0.01, 0.1, 1.0]).fit(X, y)
    >>> search.scores_.shape
    (5, 3, 2)
    >>> bool((search.relative_gaps_ <= 1e-3).all())
    True
    """

    gammas: Any
    kernel: Any
    verbose: int
    n_kernel_evaluations_: int
    _plain_type = SVC

    def __init__(
        self,
        Cs: Any = 10,
        *,
        gammas: Any = 5,
        cv: Any = None,
        scoring: Any = None,
        kernel: Any = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        solver: Any = "auto",
        working_set: str = "auto",
        shrinking: bool = True,
        cache_bytes: float | None = None,
        cache_size: float | None = None,
        tol: float = 1e-3,
        stopping: str = "gap",
        class_weight: Any = None,
        decision_function_shape: str = "ovr",
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        refit: bool = True,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.solver = solver
        self.working_set = working_set
        self.shrinking = shrinking
        self.cache_bytes = cache_bytes
        self.cache_size = cache_size
        self.tol = tol
        self.stopping = stopping
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.refit = refit

    @property
    def dual_coef_(self) -> np.ndarray:
        """`dual_coef_` of `best_estimator_`."""
        return self._best().dual_coef_

    @property
    def support_(self) -> np.ndarray:
        """`support_` of `best_estimator_`."""
        return self._best().support_

    def _has_gamma(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel in WITH_GAMMA

    def _n_problems(self, n_classes: int) -> int:
        n_gammas = 1
        if self._has_gamma() and not isinstance(self.gammas, str):
            n_gammas = len(self.gammas) if hasattr(self.gammas, "__len__") else checked_grid(self.gammas, *_GRID).size
        return n_classes * (n_classes - 1) // 2 * n_gammas

    def _chosen(self, gammas: Sequence[float], g: int) -> dict[str, Any]:
        self.gamma_ = float(gammas[g])
        return {"gamma": self.gamma_} if self._has_gamma() else {}

    def _keep(self, tables: dict[str, np.ndarray], gammas: Sequence[float]) -> None:
        self.gammas_ = np.array(gammas)
        for name, table in tables.items():
            setattr(self, name, table)

    def _cells(self, task: Task, plain: SVC) -> tuple[Cells, Sequence[float]]:
        if isinstance(self.solver, IPM) or (isinstance(self.solver, str) and self.solver == "ipm"):
            raise SoftmarginError(
                "solver='ipm' cannot search: held-out rows have the weight 0, for which interior points have no place. "
                "Use solver='auto', or GridSearchCV with SVC."
            )
        _, stop, n_threads, _ = plain._limits()
        lines = progress_lines(self.verbose, [f"fold {j}" for j in range(len(task.folds))], stop)
        cells: Cells = [[] for _ in task.folds]
        self.n_kernel_evaluations_ = 0
        with fitting(n_threads, lines) as (cancel, workers):
            rows = as_rows(task.X, workers)
            gammas = self._gammas(plain, rows, workers, task.weights)
            for gamma in gammas:
                model = clone(plain).set_params(**({"gamma": gamma} if self._has_gamma() else {}))
                found = self._solved(task, model, rows, workers, cancel, lines)
                if cancel.is_set:
                    raise KeyboardInterrupt
                for j, of_fold in enumerate(found):
                    cells[j].append(of_fold)
        return cells, gammas

    def _gammas(self, plain: SVC, rows: Rows, workers: Workers, weights: np.ndarray) -> list[float]:
        """The values themselves; what follows from the data is that of all rows."""
        if not self._has_gamma():
            return [0.0]

        def value(gamma: Any) -> float:
            pairs = [Pair(np.arange(rows.n_rows), np.ones(rows.n_rows), 0, 1)]
            work = clone(plain).set_params(gamma=gamma)._work(rows, workers, pairs, weights, self.solver)
            return float(work.known["gamma_"])

        if isinstance(self.gammas, str):
            return [value(self.gammas)]
        if hasattr(self.gammas, "__len__") and len(self.gammas):
            return [value(gamma) for gamma in self.gammas]
        factors = checked_grid(self.gammas, *_GRID)
        scale = value("scale")
        return [scale * float(factor) for factor in factors]

    def _solved(
        self, task: Task, model: SVC, rows: Rows, workers: Workers, cancel: Cancel, lines: Sequence[Any]
    ) -> list[list[Cell]]:
        """The cells of each fold for the gamma of this model.

        Pairs of classes come one after the other, and each with all of its folds and values of C: its kernel values are
        computed once, as far as the cache holds them.
        """
        n_classes = task.classes.size
        every = pairs_of(task.codes, n_classes, np.ones(task.codes.size))
        whole = model._work(rows, workers, every, task.weights, self.solver)
        used = whole.setting.used(rows, workers)
        shared = cache(lambda dtype: whole.setting.stores(used, every, dtype, workers))
        weights = [model._row_weights(task.classes, task.codes, fold.weights) for fold in task.folds]
        paths: list[list[list[Result]]] = [[] for _ in task.folds]
        evaluations: dict[Any, int] = {}
        for pair in every:
            stores: dict[Any, RowStore] = {}  # of this pair only: those of all pairs would not fit into the budget

            def of_pair(dtype: Any, pair: Pair = pair, stores: dict[Any, RowStore] = stores) -> Stores:
                if dtype not in stores:
                    stores[dtype] = shared(dtype)(pair)
                return lambda target: stores[dtype]

            for j, of_fold in enumerate(weights):
                target = replace(pair, signed_weights=pair.signed_weights * of_fold[pair.index])
                work = replace(whole, rows=used, targets=[target], stores=of_pair)
                paths[j].append(_path(task, work, cancel, lines[j : j + 1]))
                if cancel.is_set:
                    return []
            # Pairs that share a cache share its counter, so that the last one knows of all evaluations.
            evaluations |= {dtype: store.source.n_evaluations for dtype, store in stores.items()}
        self.n_kernel_evaluations_ += sum(evaluations.values())
        return [
            self._scored(rows, whole, every, fold.held_out, path, n_classes)
            for fold, path in zip(task.folds, paths, strict=True)
        ]

    def _scored(
        self, rows: Rows, work: KernelWork, pairs: list[Pair], held_out: np.ndarray, path: Any, n_classes: int
    ) -> list[Cell]:
        """The cells of one fold: decision values for all C at once, so that kernel values are computed once."""
        n_Cs, n_pairs = len(path[0]), len(pairs)
        coefficients = np.zeros((rows.n_rows, n_pairs, n_Cs))
        for k, pair in enumerate(pairs):
            for c, result in enumerate(path[k]):
                coefficients[pair.index, k, c] = result.solution.alpha * np.sign(pair.signed_weights)
        is_support = coefficients != 0.0
        support = np.flatnonzero(is_support.any(axis=(1, 2)))
        intercepts = np.array([[result.solution.b for result in of_pair] for of_pair in path])
        scores = kernel_scores(
            rows.take(held_out),
            work.setting.kernel,
            support,
            rows.take(support) if work.setting.kernel is not None else None,
            coefficients[support].reshape(support.size, -1),
            intercepts.ravel(),
            work.workers.n_threads,
        ).reshape(held_out.size, n_pairs, n_Cs)
        return [
            Cell(
                certificates=[of_pair[c].certificate for of_pair in path],
                statuses=[of_pair[c].status for of_pair in path],
                n_support=int(np.count_nonzero(is_support[:, :, c].any(axis=1))),
                decisions=scores[:, 0, c] if n_pairs == 1 else one_against_one(scores[:, :, c], n_classes),
            )
            for c in range(n_Cs)
        ]


def _path(task: Task, work: KernelWork, cancel: Cancel, observers: Sequence[Any]) -> list[Result]:
    """One pair of classes of one fold, for all C, each from the state of the last."""
    results: list[Result] = []
    state = None
    for C in task.Cs:
        at = replace(
            work,
            setting=replace(work.setting, C=float(C)),
            stop=replace(work.stop, max_seconds=task.budget.next()),
        )
        starts = None if state is None else at.at_bounds([state])
        [result] = at.solve(starts, cancel, lambda k, candidate: observers)
        state = result.state
        results.append(replace(result, state=None))
        if cancel.is_set:
            break
    return results
