"""The linear support vector classifier that chooses C by cross-validation."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from softmargin.estimators.linear_svc import LinearSVC
from softmargin.estimators.machines.cells import Cells, Task
from softmargin.estimators.machines.linear_search import linear_cells
from softmargin.estimators.search import SearchCV


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
    one_standard_error : bool, default=False
        Whether the smoothest model is chosen whose mean score is within one standard error (over the folds) of the
        best, instead of the best: the smallest such C.
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
        one_standard_error: bool = False,
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
        self.one_standard_error = one_standard_error

    def _n_problems(self, n_classes: int) -> int:
        return 1 if n_classes == 2 else n_classes

    def _keep(self, tables: dict[str, np.ndarray], gammas: Sequence[Any]) -> None:
        for name, table in tables.items():
            setattr(self, name, table[:, 0])

    def _cells(self, task: Task, plain: LinearSVC) -> tuple[Cells, Sequence[Any]]:
        return linear_cells(task, plain, self.verbose), [None]
