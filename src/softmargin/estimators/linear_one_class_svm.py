"""The linear one-class support vector machine."""

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from softmargin.core.kinds import COORDINATES, PLANES
from softmargin.core.result import Solution, WeightStart
from softmargin.data.convert import as_products, is_storage
from softmargin.data.rows import Products
from softmargin.estimators import validation
from softmargin.estimators.base import Job, Work
from softmargin.estimators.callbacks import with_callbacks
from softmargin.estimators.linear_base import LinearEstimator, Posed
from softmargin.estimators.linear_work import linear_solver
from softmargin.estimators.novelty import NoveltyMixin
from softmargin.estimators.problem_settings import LinearSetting
from softmargin.estimators.scoring import linear_scores
from softmargin.prediction.labels import finite_scores, inside_or_outside
from softmargin.problems.hinge_targets import OneClass
from softmargin.problems.intercepts import Free
from softmargin.solvers.base import Solver


class LinearOneClassSVM(NoveltyMixin, LinearEstimator):
    """Novelty detection by a plane between the rows and the origin, exact and with a certificate.

    Minimises ``1/2 |w|^2 + sum_i s_i max(0, offset - w.x_i) - offset * nu * sum_i s_i`` over w and the offset: the
    one-class support vector machine of Schölkopf et al. (2001) with a linear kernel. Rows whose score w.x is below the
    offset are outliers. A plane tells little about rows around the origin: use `OneClassSVM` with its RBF kernel for a
    region of any shape, or map the rows first, for example with scikit-learn's `Nystroem`.

    Parameters
    ----------
    nu : float, default=0.5
        About the share of the training rows that become outliers: an upper bound of it, and a lower bound of the share
        of support vectors. Above 0, at most 1.
    solver : {"auto", "ocas", "coordinate", "cpa"} or solver object, default="auto"
        The algorithm; "auto" is "coordinate" (dual coordinate descent) where features are many or data are few, and
        "ocas" (cutting planes) where features are few and data many, or where coordinate descent does not get on;
        `solver_` says which. An object such as ``softmargin.OCAS(mixing=0.2)`` carries its own settings.
    tol : float, default=1e-3
        Stop when the relative duality gap is at most this, confirmed by the judge.
    max_iter : int or None, default=None
        Limit on the iterations; None or -1 is no limit.
    max_seconds : float or None, default=None
        Limit on the time of solving; compilation, validation and the judge are not counted. None is no limit.
    n_jobs : int or None, default=None
        Threads: None is one, -1 all. The result is the same, bit for bit, whatever the number.
    warm_start : bool, default=False
        Continue from the last fit: exactly, if data, weights and nu are the same; else from its weights.
    random_state : int, RandomState instance or None, default=None
        Seed of "coordinate", which visits rows in random order. None is a fixed one, so that results repeat. "ocas" and
        "cpa" do not use it.
    verbose : int, default=0
        1 shows a progress line.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
    offset_ : ndarray of shape (1,)
        Scores below it are those of outliers.
    intercept_ : ndarray of shape (1,)
        ``-offset_``
    certificate_ : Certificate
        `primal`, `dual`, `gap`, `relative_gap`, `kkt_violation`, as the judge found them from the data. The optimum of
        this problem is at most zero.
    certificates_ : list of Certificate
        The same as a list of one.
    dual_ : ndarray of shape (n_rows,)
        The dual variables behind the bound.
    status_, trace_, n_iter_, seconds_ : as of `LinearSVR`
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from softmargin import LinearOneClassSVM
    >>> X, _ = load_wine(return_X_y=True)
    >>> model = LinearOneClassSVM(nu=0.1).fit(X)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    >>> bool((model.predict(X) == -1).mean() <= 0.11)
    True
    """

    def __init__(
        self,
        nu: float = 0.5,
        *,
        solver: Any = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.nu = nu
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "LinearOneClassSVM":
        """Train on X.

        Parameters
        ----------
        X : array-like, sparse matrix or Store of shape (n_rows, n_features)
            float32, float64, integers and bool are used in place, dense in either order or CSR. A `Store` stays on
            disk.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array-like of shape (n_rows,), default=None
            2 is the same as repeating the row, 0 as leaving it out.

        Returns
        -------
        self
            After Ctrl-C the model is fitted with the best solution so far, and the interrupt is raised again (while X
            is still being checked there is nothing to keep yet).
        """
        return self._fit(X, y, {"sample_weight": sample_weight})

    def _solver(self) -> Solver:
        return linear_solver(self.solver, (PLANES, COORDINATES), self.random_state)

    def _setting(self) -> LinearSetting:
        validation.share(self.nu, "nu")
        return LinearSetting(1.0, Free())

    def _validated(self, X: Any, y: Any, **options: Any) -> Any:
        """Targets are none of its business."""
        if is_storage(X):
            return X, self._checked_beside(X, np.zeros(X.n_rows), **options)
        X = validate_data(self, X, accept_sparse="csr", accept_large_sparse=True, dtype="numeric", **options)
        return X, y

    def _posed(self, setting: LinearSetting, X: Any, y: Any, sample_weight: Any = None) -> Posed:
        weights = validation.row_weights(sample_weight, as_products(X).n_rows)
        validation.finite_scale(1.0, [weights])
        return Posed(
            setting,
            [OneClass(weights, float(self.nu))],
            titles=["LinearOneClassSVM"],
            known={},
            found=_attributes,
            stored=lambda rows: [_solution(self, rows)],
        )

    @property
    def offset_(self) -> np.ndarray:
        """Scores below it are those of outliers."""
        return -self.intercept_

    def score_samples(self, X: Any) -> np.ndarray:
        """The score w.x of each row: the larger, the more it is like the training rows."""
        X = self._to_predict(X)
        return finite_scores(linear_scores(X, self.coef_))

    def decision_function(self, X: Any) -> np.ndarray:
        """``score_samples(X) - offset_``: negative for outliers."""
        X = self._to_predict(X)
        return finite_scores(linear_scores(X, self.coef_, self.intercept_))

    def predict(self, X: Any) -> np.ndarray:
        """1 for rows that are like the training rows, -1 for outliers."""
        return inside_or_outside(self.decision_function(X))

    def _model_starts(self, job: Job, work: Work, rows: Products) -> list[WeightStart] | None:
        return [WeightStart(self.coef_[0])] if self.coef_.shape == (1, rows.n_cols) else None


def _attributes(rows: Products, solutions: list[Solution]) -> dict[str, np.ndarray]:
    [solution] = solutions
    return {"coef_": solution.w[None, :], "intercept_": np.array([solution.b]), "dual_": solution.alpha}


def _solution(model: LinearOneClassSVM, rows: Products) -> Solution:
    """The inverse of `_attributes`; models of other programs have no dual vectors."""
    return Solution(model.coef_[0], float(model.intercept_[0]), getattr(model, "dual_", np.zeros(rows.n_rows)))
