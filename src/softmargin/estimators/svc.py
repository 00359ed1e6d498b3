"""The kernel support vector classifier."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Certificate, DualStart, Result, Solution
from softmargin.core.stopping import Stop
from softmargin.data.rows import Rows
from softmargin.estimators import validation
from softmargin.estimators.base import Job
from softmargin.estimators.callbacks import with_callbacks
from softmargin.estimators.incremental import IncrementalMixin, can_learn
from softmargin.estimators.kernel_base import KernelEstimator
from softmargin.estimators.kernel_targets import Pair, pairs_of
from softmargin.estimators.linear_base import check_same_classes
from softmargin.estimators.support_rows import support_rows
from softmargin.estimators.training_rows import TrainingRows
from softmargin.prediction.labels import labels_from_scores, one_against_one, pair_coefficients


class SVC(IncrementalMixin, ClassifierMixin, KernelEstimator):
    """Support vector classification with a kernel, exact and with a certificate.

    Minimises ``1/2 |w|^2 + C * sum_i s_i max(0, 1 - y_i (w.phi(x_i) + b))`` through its dual, where phi is the feature
    map of the kernel. More than two classes are trained one against one, over one cache of kernel values.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum of hinge losses; larger means less regularisation.
    kernel : {"rbf", "linear", "poly", "sigmoid", "laplacian", "precomputed"} or callable, default="rbf"
        A callable ``k(X, Z)`` is given two blocks of rows and returns their matrix. With "precomputed" X is the
        symmetric kernel matrix (an array or a memory map) when fitting, and K(new rows, training rows) when predicting.
    gamma : {"scale", "auto"} or float, default="scale"
        Of "rbf", "poly", "sigmoid" and "laplacian". "scale" is 1 / (n_features * X.var()), where rows count as often as
        their sample weight says; "auto" is 1 / n_features.
    degree : int, default=3
        Of "poly".
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".
    solver : {"auto", "block", "smo", "active_set", "ipm"} or solver object, default="auto"
        "block" works on blocks of variables, "smo" on pairs; "auto" is "block", unless the cache holds fewer than 128
        rows. "active_set" ends at the exact partition into free and bounded variables, whatever `tol`; its options are
        those of `softmargin.ActiveSet`. "ipm", an interior point method, is for kernel matrices of low rank, such as
        the linear kernel's with few features; it refuses others.
    working_set : {"auto", "most_violating_pair", "second_order", "maximum_gain", "hybrid_maximum_gain", \
"gain_one_row", "gain_all_cached", "decomposition"}, default="auto"
        How "smo" chooses its pair; any but "auto" implies ``solver="smo"``. "auto" is "second_order" where the cache
        holds a tenth of the kernel matrix, else "hybrid_maximum_gain".
    shrinking : bool, default=True
        Whether "smo" sets variables aside that seem to stay at a bound. "block" does not shrink.
    cache_bytes : float or None, default=None
        Memory for kernel values. None is a quarter of the memory that is free, at most the whole matrix. While "smo"
        has set variables aside, the matrix of the others may take as much again.
    cache_size : float or None, default=None
        The same in MB (2^20 bytes), as scikit-learn has it. Give one of the two at most.
    tol : float, default=1e-3
        Stop when the relative duality gap, or the KKT violation, is at most this, confirmed by the judge. Below 1e-4
        kernel values are kept in double precision; for "active_set" and "ipm" they always are.
    stopping : {"gap", "kkt"}, default="gap"
        What `tol` is for: "gap" is (primal - dual) / primal, "kkt" LIBSVM's violation. A solver object with
        ``stopping="kkt"`` asks for the same.
    class_weight : dict, "balanced" or None, default=None
        Factor on the weights of each class's rows.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Of the scores for more than two classes: a column a class, or a column a pair.
    max_iter : int or None, default=None
        Limit on the iterations of each pair of classes: rounds of "block", pair steps of "smo", pivots of "active_set"
        (the last two are looked at after slices of steps, so a few more are made). None or -1 is no limit.
    max_seconds : float or None, default=None
        Limit on the time of solving, all pairs of classes together.
    n_jobs : int or None, default=None
        Threads for kernel values and sums: None is one, -1 all. The result is the same, bit for bit.
    warm_start : bool, default=False
        Continue from the last fit: exactly, if data, weights, kernel and its precision (see `tol`) are the same; else
        from its dual variables, if there are as many rows.
    random_state : int, RandomState instance or None, default=None
        There for pipelines that set it; no solver of this class draws at random.
    verbose : int, default=0
        1 shows a progress line.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_ (linear kernel), classes_, class_weight_, \
fit_status_, shape_fit_, n_iter_, n_features_in_, feature_names_in_ : as in scikit-learn's SVC
    gamma_ : float
        The gamma that was used.
    certificate_ : Certificate
        `primal`, `dual`, `gap`, `relative_gap`, `kkt_violation`, as the judge found them; for several pairs the sums,
        and the worst relative gap. Without a bound (an indefinite kernel) dual and gap are nan.
    certificates_ : list of Certificate
        One for each pair of classes.
    status_ : Status
        How the fit ended (for several pairs: the worst of their endings).
    trace_ : Trace or list of Trace
        Primal, dual and kernel evaluations over iterations and seconds.
    row_ids_ : array of shape (n_rows,)
        Of the training rows, for `forget`: there if the model keeps them, that is with ``solver="active_set"``,
        ``warm_start=True`` or after `partial_fit`.
    n_free_, n_bounded_ : array of shape (n_pairs,)
        How many dual variables lie strictly between their bounds, and how many at the upper one.
    counts_ : dict
        `iterations`, `pair_steps`, `kernel_evaluations`, cache `hits` and `misses`, `unshrinkings`, over all pairs; of
        the active set also major iterations (`majors`), `refactorisations` and `degenerate` steps.
    seconds_ : dict
        Seconds on the wall in all ("total") and compiling ("compile"), and those of judging ("judge"), added up over
        the pairs of classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from softmargin import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(C=10).fit(X, y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

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

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SVC":
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

    @available_if(can_learn)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> "SVC":
        """Learn more rows: the model is then that of a fit on all rows so far, at a fraction of its cost.

        The optimum is restored by pivots of the active set, whatever `solver` is, and judged as after `fit`. What `fit`
        takes from the data is that of the first call: `gamma_` ("scale") and `class_weight_` ("balanced").

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        classes : array-like of shape (n_classes,), default=None
            All classes there will be; needed in the first call if not all of them are in y. As long as only one of them
            has rows the model predicts that one.
        sample_weight : array-like of shape (n_rows,), default=None

        Returns
        -------
        self
            The new rows have ids of their own at the end of `row_ids_`. After Ctrl-C the model knows the new rows, with
            the best solution so far, and the interrupt is raised again; the next call goes on from there.
        """
        if not hasattr(self, "dual_coef_"):
            return self._fit(X, y, sample_weight, solver=self._active_set(), all_classes=classes, copy=True)
        training = self._known_training()
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise SoftmarginError(
                f"classes={classes!r} are not those of the first call, {self.classes_.tolist()}: leave them out, or "
                "fit a new model."
            )
        X, y = self._validated(X, y=y, reset=False)
        return self._change(self._adding(X, validation.codes_among(y, self.classes_), sample_weight), training)

    def _fit(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> "SVC":
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
        check_is_fitted(self)
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
        check_is_fitted(self)
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
        check_is_fitted(self)
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
