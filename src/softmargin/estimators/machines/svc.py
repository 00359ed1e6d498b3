"""The kernel support vector classifier."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Certificate, DualStart, Result, Solution
from softmargin.core.stopping import Stop
from softmargin.data.rows import Rows
from softmargin.estimators import validation
from softmargin.estimators.kernel_targets import Pair, pairs_of
from softmargin.estimators.machines.base import Job
from softmargin.estimators.machines.keeping import KeepsTraining
from softmargin.estimators.machines.kernel_base import KernelMachine
from softmargin.estimators.machines.linear_base import check_same_classes
from softmargin.estimators.support_rows import support_rows
from softmargin.estimators.training_rows import TrainingRows
from softmargin.prediction.labels import labels_from_scores, one_against_one, pair_coefficients


class SVC(KeepsTraining, KernelMachine):
    """What `softmargin.SVC` learns with; its parameters and attributes are told there."""

    classes_: np.ndarray
    class_weight_: np.ndarray

    linear_twin = "LinearSVC"

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
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
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
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
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train on X and y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or a kernel matrix if it is "precomputed"
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), default=None
            2 is the same as repeating the row, 0 as leaving it out.

        Returns
        -------
        self
            After Ctrl-C the model is fitted with the best solution so far, and the interrupt is raised again.
        """
        return self._fit(X, y, sample_weight, solver=self.solver)

    def _fit(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> Any:
        """What `fit` does, and the first `partial_fit`; the options are those of `_job`."""
        job, X, y = self._job(X, y, sample_weight, **options)
        self._run(job, X, y, {"sample_weight": sample_weight})
        return self

    def _limits(self) -> tuple[float, Stop, int, float | None]:
        validation.one_of(self.decision_function_shape, "decision_function_shape", ("ovr", "ovo"))
        return super()._limits()

    def _job(
        self, X: Any, y: Any, sample_weight: Any, *, solver: Any, all_classes: Any = None, copy: bool = False
    ) -> tuple[Job, Any, np.ndarray]:
        """What this solver is to solve, and X and y, checked; of given classes not all need to have rows."""
        C, stop, n_threads, _ = self._limits()
        X, y = self._validated(X, y=y, copy=copy)
        classes, codes = validation.class_labels(y) if all_classes is None else validation.given_classes(y, all_classes)
        base = validation.row_weights(sample_weight, codes.size)
        factors = validation.class_weights(self.class_weight, classes, codes, base)
        weights = base * factors[codes]
        pairs = pairs_of(codes, classes.size, weights)
        if all_classes is None:
            validation.two_classes_left(codes, weights)
        validation.finite_scale(C, [weights])

        def attributes(rows: Rows, solutions: list[Any]) -> dict[str, Any]:
            found = [solution or _nothing(pair) for solution, pair in zip(solutions, pairs, strict=True)]
            return self._expansion(rows, codes, pairs, found)

        def keep(results: list[Result]) -> None:
            self._keep_solved(results, pairs, C)
            self._remember_rows(X, codes, base, solver)

        labels = classes.tolist()
        versus = [f"SVC {labels[pair.first]} against {labels[pair.second]}" for pair in pairs]
        job = Job(
            stop,
            n_threads,
            titles=versus if len(pairs) > 1 else ["SVC"],
            known={"classes_": classes, "class_weight_": factors, "shape_fit_": X.shape},
            work=lambda rows, workers: self._work(rows, workers, pairs, base, solver),
            found=attributes,
            keep=keep,
        )
        return job, X, y

    def _row_weights(self, classes: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Sample weights times class weights."""
        return weights * validation.class_weights(self.class_weight, classes, codes, weights)[codes]

    def _targets_of(self, codes: np.ndarray, weights: np.ndarray) -> list[Pair]:
        """The pairs of rows that come later, with the class weights of the first fit."""
        return pairs_of(codes, self.classes_.size, weights * self.class_weight_[codes])

    def _check_rows_left(self, training: TrainingRows, left: np.ndarray) -> None:
        weights = training.weights * self.class_weight_[training.y]
        before, after = (
            np.bincount(training.y[part], weights[part] > 0, self.classes_.size) for part in (slice(None), left)
        )
        lost = ((before > 0) & (after == 0)).nonzero()[0]
        if lost.size:
            raise SoftmarginError(
                f"class {self.classes_[lost].tolist()[0]!r} would be left without rows: keep one of them, or fit a "
                "model without this class."
            )

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, for the linear kernel: shape (n_pairs, n_features), read-only."""
        self._check_fitted()
        return self._linear_weights(pair_coefficients(self.dual_coef_, self.n_support_))

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: shape (n_rows,) for two classes, positive for the second; else a column a class (or a pair)."""
        return self._decisions(self._problem_scores(X))

    def _decisions(self, scores: np.ndarray) -> np.ndarray:
        """Scores in the shape that the user has asked for, from those of pairs of classes."""
        if self.classes_.size == 2:
            return scores.ravel()
        return scores if self.decision_function_shape == "ovo" else one_against_one(scores, self.classes_.size)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row: the one with the largest score of shape "ovr"."""
        scores = self._problem_scores(X)
        if self.classes_.size > 2:
            scores = one_against_one(scores, self.classes_.size)
        return labels_from_scores(scores if self.classes_.size > 2 else scores.ravel(), self.classes_)

    def _problem_scores(self, X: Any) -> np.ndarray:
        """A column for each pair of classes."""
        self._check_fitted()
        return self._expanded(X, pair_coefficients(self.dual_coef_, self.n_support_))

    def _dual_variables(self, n_rows: int, pairs: list[Pair]) -> list[np.ndarray]:
        return dual_variables(self, n_rows, pairs)

    def _expansion(
        self,
        rows: Rows,
        codes: np.ndarray,
        pairs: list[Pair],
        solutions: list[Solution],
        known: tuple[np.ndarray, Any] | None = None,
    ) -> dict[str, Any]:
        """The fitted attributes that describe the decision function, in scikit-learn's shapes and signs.

        `known` are support vectors of the same rows, with their positions.
        """
        n_classes = pairs[-1].second + 1
        coefficients = np.zeros((n_classes - 1, codes.size))
        for pair, solution in zip(pairs, solutions, strict=True):
            of_row = np.where(codes[pair.index] == pair.first, pair.second - 1, pair.first)
            coefficients[of_row, pair.index] = solution.alpha * np.sign(pair.signed_weights)
        support = np.flatnonzero(coefficients.any(axis=0)).astype(np.int32)
        support = support[np.argsort(codes[support], kind="stable")]
        return {
            "support_": support,
            "support_vectors_": self._support_vectors(rows, support, known),
            "n_support_": np.bincount(codes[support], minlength=n_classes).astype(np.int32),
            "dual_coef_": coefficients[:, support],
            "intercept_": np.array([solution.b for solution in solutions]),
        }

    def _keep_solved(self, results: list[Result], pairs: list[Pair], C: float) -> None:
        self._keep_counts(results)
        alphas = [np.abs(result.state.beta) if result.state else result.solution.alpha for result in results]
        bounded = [alpha >= C * np.abs(pair.signed_weights) for alpha, pair in zip(alphas, pairs, strict=True)]
        self.n_bounded_ = np.array([np.count_nonzero(at) for at in bounded], dtype=np.int32)
        self.n_free_ = np.array([np.count_nonzero(alpha) for alpha in alphas], dtype=np.int32) - self.n_bounded_

    def _certified(self, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
        """The certificate of the fitted model on its training data: one pair of classes after the other."""
        self._check_fitted()
        X, y = self._validated(X, y=y, reset=False)
        classes, codes = validation.class_labels(y)
        check_same_classes(self, {"classes_": classes})
        base = validation.row_weights(sample_weight, codes.size)
        factors = getattr(self, "class_weight_", None)  # those of the fit; an imported model has none
        if factors is None:
            factors = validation.class_weights(self.class_weight, classes, codes, base)
        weights = base * factors[codes]
        validation.two_classes_left(codes, weights)
        pairs = pairs_of(codes, classes.size, weights)
        with self._judging(X) as (rows, judge):
            support = support_rows(self, self.dual_coef_, rows, codes, base)
            model = SimpleNamespace(dual_coef_=self.dual_coef_, support_=support)
            betas = dual_variables(model, rows.n_rows, pairs)
            parts = [
                judge(pair)(Solution(np.empty(0), float(b), beta * np.sign(pair.signed_weights)))
                for pair, b, beta in zip(pairs, self.intercept_, betas, strict=True)
                if pair.index.size
            ]
        return Certificate.combine(parts)

    def _model_starts(self, job: Job, work: Any, rows: Rows) -> list[Any] | None:
        if self.shape_fit_[0] != rows.n_rows or not np.array_equal(self.classes_, job.known["classes_"]):
            return None
        return work.at_bounds([DualStart(beta) for beta in dual_variables(self, rows.n_rows, work.targets)])


def _nothing(pair: Pair) -> Solution:
    return Solution(np.empty(0), 0.0, np.zeros(pair.index.size))


def dual_variables(estimator: Any, n_rows: int, pairs: list[Pair]) -> list[np.ndarray]:
    """The signed dual variables of each pair, from a model's `dual_coef_` and `support_`."""
    coefficients = np.zeros((estimator.dual_coef_.shape[0], n_rows))
    coefficients[:, estimator.support_] = estimator.dual_coef_
    found = []
    for pair in pairs:
        own = pair.signed_weights < 0 if len(pairs) == 1 else pair.signed_weights > 0
        found.append(np.where(own, coefficients[pair.second - 1, pair.index], coefficients[pair.first, pair.index]))
    return found
