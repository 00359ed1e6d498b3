"""The kernel support vector classifier that chooses C and gamma by cross-validation."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from softmargin.estimators.machines.cells import Cells, Task, checked_grid
from softmargin.estimators.machines.kernel_search import GAMMA_GRID, has_gamma, kernel_cells
from softmargin.estimators.search import SearchCV
from softmargin.estimators.svc import SVC


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
    one_standard_error : bool, default=False
        Whether the smoothest model is chosen whose mean score is within one standard error (over the folds) of the
        best, instead of the best: the smallest such gamma, and then the smallest C.
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
        the smallest C. `gamma_` is 0 for kernels without gamma.
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
        one_standard_error: bool = False,
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
        self.one_standard_error = one_standard_error

    @property
    def dual_coef_(self) -> np.ndarray:
        """`dual_coef_` of `best_estimator_`."""
        return self._best().dual_coef_

    @property
    def support_(self) -> np.ndarray:
        """`support_` of `best_estimator_`."""
        return self._best().support_

    def _n_problems(self, n_classes: int) -> int:
        n_gammas = 1
        if has_gamma(self) and not isinstance(self.gammas, str):
            n_gammas = (
                len(self.gammas) if hasattr(self.gammas, "__len__") else checked_grid(self.gammas, *GAMMA_GRID).size
            )
        return n_classes * (n_classes - 1) // 2 * n_gammas

    def _chosen(self, gammas: Sequence[float], g: int) -> dict[str, Any]:
        self.gamma_ = float(gammas[g])
        return {"gamma": self.gamma_} if has_gamma(self) else {}

    def _keep(self, tables: dict[str, np.ndarray], gammas: Sequence[float]) -> None:
        self.gammas_ = np.array(gammas)
        for name, table in tables.items():
            setattr(self, name, table)

    def _cells(self, task: Task, plain: SVC) -> tuple[Cells, Sequence[float]]:
        cells, gammas, self.n_kernel_evaluations_ = kernel_cells(task, plain, self.gammas, self.verbose)
        return cells, gammas
