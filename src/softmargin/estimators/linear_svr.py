"""Linear support vector regression."""

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from softmargin.core.kinds import COORDINATES, PLANES
from softmargin.core.result import Solution, WeightStart
from softmargin.data.rows import Products
from softmargin.estimators import validation
from softmargin.estimators.base import Job, Work
from softmargin.estimators.callbacks import with_callbacks
from softmargin.estimators.linear_base import LinearEstimator, Posed, chosen_intercept
from softmargin.estimators.linear_work import linear_solver, solver_of_squares
from softmargin.estimators.problem_settings import LinearSetting, SquaredSetting
from softmargin.estimators.scoring import linear_scores
from softmargin.prediction.labels import finite_scores
from softmargin.problems.hinge_targets import Tube
from softmargin.problems.squared_targets import SquaredTube
from softmargin.solvers.base import Solver


class LinearSVR(RegressorMixin, LinearEstimator):
    """Linear support vector regression, exact and with a certificate.

    Minimises ``1/2 |w|^2 + C * sum_i s_i max(0, |y_i - w.x_i - b| - epsilon)``, or with the square of that maximum.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum of losses; larger means less regularisation.
    epsilon : float, default=0.0
        Deviations from y up to this cost nothing. It is in the units of y.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        The loss above, or its square. Where the square is minimised, `solver` can only be "auto",
        "coordinate" or "newton".
    solver : {"auto", "ocas", "coordinate", "newton", "cpa"} or solver object, default="auto"
        The algorithm; "auto" is "coordinate" (dual coordinate descent) where features are many or data are few, and
        "ocas" (cutting planes) where features are few and data many, or where coordinate descent does not get on;
        `solver_` says which. If the loss is squared, "auto" is "newton" (Newton's
        method) for few features, and "coordinate" for many. An object such as
        ``softmargin.OCAS(mixing=0.2)`` carries its own settings.
    tol : float, default=1e-3
        Stop when the relative duality gap (primal - dual) / primal is at most this, confirmed by the judge.
    fit_intercept : bool, default=True
        Whether there is an intercept b.
    intercept : {"free", "penalised"}, default="free"
        "free": b is not penalised. "penalised": a constant feature, as in LIBLINEAR.
    intercept_scaling : float, default=1.0
        The value of the constant feature of a penalised intercept: the larger it is, the less b is penalised.
    max_iter : int or None, default=None
        Limit on the iterations; None or -1 is no limit.
    max_seconds : float or None, default=None
        Limit on the time of solving; compilation, validation and the judge are not counted. None is no limit.
    n_jobs : int or None, default=None
        Threads: None is one, -1 all. The result is the same, bit for bit, whatever the number.
    warm_start : bool, default=False
        Continue from the last fit: exactly, if data and weights are the same; with its planes, if only C or tol
        changed; else from its weights.
    random_state : int, RandomState instance or None, default=None
        Seed of "coordinate", which visits rows in random order. None is a fixed one, so that results repeat. "ocas" and
        "cpa" do not use it.
    verbose : int, default=0
        1 shows a progress line.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : ndarray of shape (1,)
    certificate_ : Certificate
        `primal`, `dual`, `gap`, `relative_gap`, `kkt_violation`, as the judge found them from the data.
    certificates_ : list of Certificate
        The same as a list of one.
    dual_ : ndarray of shape (n_rows,)
        The dual variables behind the bound: positive where the prediction is too low, negative where it is too high.
    solver_ : str
        Which solver it was, and why.
    status_ : Status
        How the fit ended.
    trace_ : Trace
        Primal, bound, planes and passes over iterations and seconds.
    n_iter_ : int
        Iterations, earlier ones included where a fit was continued.
    seconds_ : dict
        Seconds spent in all ("total"), judging ("judge") and compiling ("compile").
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from softmargin import LinearSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LinearSVR(C=10, epsilon=5).fit(X, y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        epsilon: float = 0.0,
        loss: str = "epsilon_insensitive",
        solver: Any = "auto",
        tol: float = 1e-3,
        fit_intercept: bool = True,
        intercept: str = "free",
        intercept_scaling: float = 1.0,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept = intercept
        self.intercept_scaling = intercept_scaling
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "LinearSVR":
        """Train on X and y.

        Parameters
        ----------
        X : array-like, sparse matrix or Store of shape (n_rows, n_features)
            float32, float64, integers and bool are used in place, dense in either order or CSR. A `Store` stays on
            disk.
        y : array-like of shape (n_rows,)
            Left out if X is a `Store` that holds it, and so are weights.
        sample_weight : array-like of shape (n_rows,), default=None
            2 is the same as repeating the row, 0 as leaving it out.

        Returns
        -------
        self
            After Ctrl-C the model is fitted with the best solution so far, and the interrupt is raised again (while X
            and y are still being checked there is nothing to keep yet).
        """
        return self._fit(X, y, {"sample_weight": sample_weight})

    @property
    def _is_squared(self) -> bool:
        plain, squared = "epsilon_insensitive", "squared_epsilon_insensitive"
        return validation.one_of(self.loss, "loss", (plain, squared)) == squared

    def _solver(self) -> Solver:
        if self._is_squared:
            return solver_of_squares(self.solver, self.loss, self.random_state)
        return linear_solver(self.solver, (PLANES, COORDINATES), self.random_state)

    def _setting(self) -> LinearSetting:
        validation.not_negative(self.epsilon, "epsilon")
        setting = SquaredSetting if self._is_squared else LinearSetting
        return setting(validation.positive_number(self.C, "C"), chosen_intercept(self))

    def _posed(self, setting: LinearSetting, X: Any, y: np.ndarray, sample_weight: Any = None) -> Posed:
        y = validation.regression_targets(y, float(self.epsilon))
        weights = validation.row_weights(sample_weight, y.size)
        with np.errstate(over="ignore"):
            sizes = weights * np.abs(y) * (np.abs(y) if self._is_squared else 1.0)
        validation.finite_scale(setting.C, [weights, sizes])
        target = SquaredTube if self._is_squared else Tube
        return Posed(
            setting,
            [target(y, weights, float(self.epsilon))],
            titles=["LinearSVR"],
            known={},
            found=attributes,
            stored=lambda rows: [_solution(self, rows)],
        )

    def predict(self, X: Any) -> np.ndarray:
        """A number for each row."""
        X = self._to_predict(X)
        return finite_scores(linear_scores(X, self.coef_[None, :], self.intercept_))

    def _model_starts(self, job: Job, work: Work, rows: Products) -> list[WeightStart] | None:
        if self.coef_.shape != (rows.n_cols,):
            return None
        return [self._setting().start_from(self.coef_, float(self.intercept_[0]))]


def attributes(rows: Products, solutions: list[Solution]) -> dict[str, np.ndarray]:
    [solution] = solutions
    return {"coef_": solution.w, "intercept_": np.array([solution.b]), "dual_": solution.alpha}


def _solution(model: LinearSVR, rows: Products) -> Solution:
    """The inverse of `attributes`; models of other libraries have no dual vectors."""
    dual = getattr(model, "dual_", None)
    alpha = np.zeros(rows.n_rows) if dual is None else dual
    return Solution(np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]), alpha)
