"""The linear support vector classifier."""

from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.kinds import COORDINATES, PLANES, SINGLE_ROWS
from softmargin.core.result import Solution, WeightStart
from softmargin.data.rows import Products
from softmargin.estimators import validation
from softmargin.estimators.linear_work import linear_solver, solver_of_squares
from softmargin.estimators.machines.base import Job, Work
from softmargin.estimators.machines.linear_base import LinearMachine, Posed, chosen_intercept
from softmargin.estimators.problem_settings import JointSetting, JointTarget, LinearSetting, SquaredSetting
from softmargin.estimators.scoring import linear_scores
from softmargin.prediction.labels import finite_scores, labels_from_scores
from softmargin.problems.joint import JointSolution
from softmargin.problems.squared_targets import SquaredClasses
from softmargin.solvers.base import Solver

MULTI_CLASS = ("ovr", "crammer_singer")


class LinearSVC(LinearMachine):
    """What `softmargin.LinearSVC` learns with; its parameters and attributes are told there."""

    classes_: np.ndarray

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "hinge",
        solver: Any = "auto",
        tol: float = 1e-3,
        fit_intercept: bool = True,
        intercept: str = "free",
        intercept_scaling: float = 1.0,
        multi_class: str = "ovr",
        class_weight: Any = None,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept = intercept
        self.intercept_scaling = intercept_scaling
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    # How scikit-learn's LinearSVC reads class weights, for its models that are judged: the rest of one against the rest
    # is unweighted (`validation.signed_weights`), and before version 1.7 "balanced" counts rows, not their weights.
    _rest_unweighted = False
    _balance_counts_rows = False

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
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
        return validation.one_of(self.loss, "loss", ("hinge", "squared_hinge")) == "squared_hinge"

    def _solver(self) -> Solver:
        if self._is_squared:
            return solver_of_squares(self.solver, self.loss, self.random_state)
        needs = (PLANES, COORDINATES) if self._is_joint else (PLANES, COORDINATES, SINGLE_ROWS)
        return linear_solver(self.solver, needs, self.random_state)

    @property
    def _is_joint(self) -> bool:
        return validation.one_of(self.multi_class, "multi_class", MULTI_CLASS) == "crammer_singer"

    def _setting(self) -> LinearSetting | JointSetting:
        C, intercept = validation.positive_number(self.C, "C"), chosen_intercept(self)
        if not self._is_joint:
            return (SquaredSetting if self._is_squared else LinearSetting)(C, intercept)
        if self._is_squared:
            raise SoftmarginError(
                "multi_class='crammer_singer' has the hinge loss only: set loss='hinge', or multi_class='ovr'."
            )
        if intercept.is_free:
            raise SoftmarginError(
                "multi_class='crammer_singer' has no free intercept: set intercept='penalised', or fit_intercept=False "
                "for a model without intercept."
            )
        return JointSetting(C, intercept)

    def _posed(self, setting: LinearSetting | JointSetting, X: Any, y: np.ndarray, sample_weight: Any = None) -> Posed:
        classes, codes = validation.class_labels(y)
        class_weight = self.class_weight
        if self._balance_counts_rows and isinstance(class_weight, str):
            factors = validation.class_weights(class_weight, classes, codes, np.ones(codes.size))
            class_weight = dict(zip(classes.tolist(), factors.tolist(), strict=True))
        if isinstance(setting, JointSetting):
            weights = validation.weights_of_rows(classes, codes, class_weight, sample_weight)
            validation.finite_scale(setting.C, [weights])
            return Posed(
                setting,
                [JointTarget(codes, classes.size, weights)],
                titles=["LinearSVC"],
                known={"classes_": classes},
                found=lambda rows, found: _joint_attributes(rows, classes.size, found),
                stored=lambda rows: [_joint_solution(self, rows, classes.size)],
            )
        targets = validation.signed_weights(classes, codes, class_weight, sample_weight, self._rest_unweighted)
        validation.finite_scale(setting.C, targets)
        return Posed(
            setting,
            [SquaredClasses(v) for v in targets] if self._is_squared else targets,
            titles=["LinearSVC"] if len(targets) == 1 else [f"LinearSVC class {label}" for label in classes],
            known={"classes_": classes},
            found=attributes,
            stored=lambda rows: _solutions(self, rows),
        )

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distances times ``|w|``: shape (n_rows,) for two classes, else (n_rows, n_classes)."""
        X = self._to_predict(X)
        return finite_scores(linear_scores(X, self.coef_, self.intercept_))

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row."""
        return labels_from_scores(self.decision_function(X), self.classes_)

    def _model_starts(self, job: Job, work: Work, rows: Products) -> list[WeightStart] | None:
        same_classes = np.array_equal(getattr(self, "classes_", ()), job.known["classes_"])
        if not same_classes:
            return None
        setting = self._setting()
        if isinstance(setting, JointSetting):
            n_classes = len(self.classes_)
            if self.coef_.shape != (n_classes if n_classes > 2 else 1, rows.n_cols):
                return None
            return [setting.start_from(*_weights_of_classes(self, n_classes))]
        if self.coef_.shape != (len(job.titles), rows.n_cols):
            return None
        return [setting.start_from(w, b) for w, b in zip(self.coef_, self.intercept_, strict=True)]


def attributes(rows: Products, found: list[Solution | None]) -> dict[str, np.ndarray]:
    """Of sub-problems without a solution as yet all is zero."""
    nothing = Solution(np.zeros(rows.n_cols), 0.0, np.zeros(rows.n_rows))
    solutions = [solution or nothing for solution in found]
    dual = np.column_stack([solution.alpha for solution in solutions])
    return {
        "coef_": solutions[0].w[None, :] if len(solutions) == 1 else np.array([solution.w for solution in solutions]),
        "intercept_": np.array([solution.b for solution in solutions]),
        "dual_": dual[:, 0] if len(solutions) == 1 else dual,
    }


def _joint_attributes(rows: Products, n_classes: int, found: list[Solution | None]) -> dict[str, np.ndarray]:
    """Of two classes the model holds the difference, as scikit-learn's does."""
    [solution] = found
    if solution is None:
        nothing = np.zeros((n_classes, rows.n_cols)), np.zeros(n_classes), np.zeros((rows.n_rows, n_classes))
        solution = JointSolution(*nothing)
    W, b = solution.w, np.asarray(solution.b)
    return {
        "coef_": W if n_classes > 2 else W[1:] - W[:1],
        "intercept_": b if n_classes > 2 else b[1:] - b[:1],
        "dual_": np.ascontiguousarray(solution.alpha),
    }


def _weights_of_classes(model: LinearSVC, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights and intercepts with a row for each class. Of a difference each of two classes has one half."""
    coef, b = np.atleast_2d(model.coef_), np.broadcast_to(np.ravel(model.intercept_), (len(model.coef_),))
    if n_classes > 2:
        return coef, b.astype(np.float64)
    return np.concatenate([-0.5 * coef, 0.5 * coef]), np.append(-0.5 * b, 0.5 * b)


def _joint_solution(model: LinearSVC, rows: Products, n_classes: int) -> Solution:
    """The inverse of `_joint_attributes`; models of other libraries have no dual vectors."""
    dual = getattr(model, "dual_", None)
    alpha = np.zeros((rows.n_rows, n_classes)) if dual is None else dual
    return JointSolution(*_weights_of_classes(model, n_classes), alpha)


def _solutions(model: LinearSVC, rows: Products) -> list[Solution]:
    """The inverse of `attributes`; models of other libraries have no dual vectors."""
    coef = np.atleast_2d(model.coef_)
    dual = getattr(model, "dual_", None)
    alphas = np.zeros((len(coef), rows.n_rows)) if dual is None else dual.reshape(len(dual), -1).T
    intercepts = np.broadcast_to(np.ravel(model.intercept_), (len(coef),))
    return [Solution(w, float(b), alpha) for w, b, alpha in zip(coef, intercepts, alphas, strict=True)]
