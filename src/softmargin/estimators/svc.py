"""The kernel support vector classifier."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import DualStart, Result, Solution
from softmargin.core.stopping import Stop
from softmargin.core.threads import thread_count
from softmargin.core.trace import Observer
from softmargin.data.convert import as_rows
from softmargin.data.rows import Rows
from softmargin.estimators import validation
from softmargin.estimators.build_kernel import (
    KernelSetting,
    Pair,
    kernel_fingerprint,
    kernel_solver,
    needs_convex,
    pairs_of,
    solve_pairs,
)
from softmargin.estimators.callbacks import FRAMES_TO_CALLER, CallbackBridge, CallbackSupportMixin, with_callbacks
from softmargin.estimators.fitting import fitting, keep_outcome, keep_state, progress_lines, warn_unless_done
from softmargin.estimators.incremental import IncrementalMixin, given_classes, keeps_training
from softmargin.estimators.kernel_choice import checked_kernel, kernel_of
from softmargin.estimators.kernel_scoring import kernel_scores, one_against_one, pair_coefficients
from softmargin.estimators.persistence import SaveMixin
from softmargin.estimators.plain_state import PlainStateMixin
from softmargin.estimators.scoring import finite_scores, labels_from_scores
from softmargin.estimators.training_rows import Training
from softmargin.problems.box_qp import BoxQP
from softmargin.solvers.dual_state import DualState

STOP_RULES = {"gap": "relative_gap", "kkt": "kkt"}
# From here on LinearSVC solves the same problem faster.
_MANY_ROWS = 20_000
# Dual variables of two rows that differ by no more, relative to their weights, are at one bound.
_SAME_BOUND = 1e-12


class SVC(IncrementalMixin, PlainStateMixin, SaveMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
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
        (the last two are looked at after slices of steps, so a few more are made).
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
        Seconds spent in all ("total"), judging ("judge") and compiling ("compile").

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from softmargin import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(C=10).fit(X, y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_precomputed
        tags.input_tags.pairwise = self._is_precomputed
        return tags

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

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
        return self._train(X, y, sample_weight, solver=self.solver)

    def _stop_rule(self) -> str:
        """What `tol` is for: `stopping`, unless that has its default and a solver object asks for the other rule."""
        rule = STOP_RULES[validation.one_of(self.stopping, "stopping", tuple(STOP_RULES))]
        own = rule if isinstance(self.solver, str) else getattr(self.solver, "stopping", rule)
        validation.one_of(own, "stopping of the solver", tuple(STOP_RULES.values()))
        return own if self.stopping == "gap" else rule

    def _limits(self) -> tuple[float, Stop, int, float | None]:
        """C, when to stop, the number of threads and the bytes for kernel rows, checked."""
        C = validation.positive_number(self.C, "C")
        rule = self._stop_rule()
        validation.one_of(self.decision_function_shape, "decision_function_shape", ("ovr", "ovo"))
        stop = validation.stop_rule(self.tol, self.max_iter, self.max_seconds, rule)
        cache_bytes = None if self.cache_bytes is None else validation.positive_number(self.cache_bytes, "cache_bytes")
        return C, stop, thread_count(self.n_jobs), cache_bytes

    def _train(
        self, X: Any, y: Any, sample_weight: Any, *, solver: Any, all_classes: Any = None, copy: bool = False
    ) -> "SVC":
        """Fit with this solver; of classes that are given not all need to have rows."""
        C, stop, n_threads, cache_bytes = self._limits()
        storage = {"accept_sparse": False if self._is_precomputed else "csr", "accept_large_sparse": True, "copy": copy}
        X, y = validate_data(self, X, y, dtype="numeric", **storage)
        classes, codes = validation.class_labels(y) if all_classes is None else given_classes(y, all_classes)
        base = validation.row_weights(sample_weight, codes.size)
        factors = validation.class_weights(self.class_weight, classes, codes, base)
        weights = base * factors[codes]
        pairs = pairs_of(codes, classes.size, weights)
        if all_classes is None:
            validation.two_classes_left(codes, weights)
        validation.finite_scale(C, [pair.signed_weights for pair in pairs])

        bridge = CallbackBridge.of(self, X, y, {"sample_weight": sample_weight}, len(pairs), self.max_iter)
        versus = [f" {classes[pair.first]} against {classes[pair.second]}" for pair in pairs]
        lines = progress_lines(self.verbose, [f"SVC{names}" for names in versus] if len(pairs) > 1 else ["SVC"], stop)
        with fitting(n_threads, lines) as (cancel, workers):
            rows = as_rows(X, workers)
            kernel = checked_kernel(self, rows, base)
            if kernel is None:
                validation.kernel_matrix(rows.native())
            setting = KernelSetting(C, kernel, cache_bytes, needs_convex(solver))
            is_convex = setting.looks_convex(rows)
            if not is_convex and needs_convex(solver):
                raise SoftmarginError(
                    f"the kernel {self.kernel!r} is not positive semi-definite on these rows, and solver="
                    f"{solver!r} needs that: use solver='auto' or solver='smo', or a kernel such as 'rbf'."
                )
            if not is_convex:
                stop = self._without_bound(stop)
            working_set = self.working_set if solver is self.solver else "auto"  # partial_fit has a solver of its own
            choose = kernel_solver(solver, working_set, bool(self.shrinking), stop)
            self._hint_at_linear_svc(rows)
            starts = self._starts(rows, pairs, setting, classes)

            def attributes(solutions: list[Any]) -> dict[str, Any]:
                found = [solution or _nothing(pair) for solution, pair in zip(solutions, pairs, strict=True)]
                return _support(rows, codes, pairs, found, precomputed=kernel is None)

            def observers(k: int, problem: BoxQP) -> list[Observer]:
                found: list[Observer] = [lines[k]] if lines else []
                if bridge is not None:
                    found.append(bridge.observer(k, lambda state: problem.solution(state.beta, state.f), attributes))
                return found

            self.classes_ = classes  # a callback may look at the model while it is being trained
            self.class_weight_ = factors
            self.gamma_ = getattr(kernel, "gamma", 0.0)
            self.shape_fit_ = X.shape
            results = solve_pairs(
                choose,
                setting,
                rows,
                pairs,
                stop,
                workers,
                is_convex=is_convex,
                starts=starts,
                cancel=cancel,
                observers=observers,
            )
            final = self._adopt(results, pairs, rows, codes, C)
            self._drop_training()
            if keeps_training(solver) or self.warm_start:
                self._keep_training(Training(X, codes, base, np.arange(codes.size), codes.size))
            keep_state(self, results, lambda: kernel_fingerprint(rows, pairs, setting, float(self.tol)))
            for line, result in zip(lines, results, strict=False):
                line.close(str(result.status))

        if bridge is not None:
            bridge.close(final)
        if cancel.is_set:
            raise KeyboardInterrupt
        warn_unless_done(self, stop, FRAMES_TO_CALLER + 1)
        return self

    def _adopt(
        self,
        results: list[Result],
        pairs: list[Pair],
        rows: Rows,
        codes: np.ndarray,
        C: float,
        *,
        is_longer: bool = False,
    ) -> dict[str, Any]:
        """Become the model that was found; returns the attributes of its decision function.

        If the data are those of before and more rows behind them, support vectors that are the same are not copied.
        """
        known = (self.support_, self.support_vectors_) if is_longer else None
        solutions = [result.solution for result in results]
        final = _support(rows, codes, pairs, solutions, precomputed=self._is_precomputed, known=known)
        for name, value in final.items():
            setattr(self, name, value)
        self.shape_fit_ = (rows.n_rows, rows.n_cols)
        self._store(results, pairs, C)
        return final

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, for the linear kernel: shape (n_pairs, n_features).

        They are computed from the support vectors, which are what scores are made of: the array is read-only, because
        a change of it would have no effect.
        """
        if not isinstance(self.kernel, str) or self.kernel != "linear":
            raise AttributeError("coef_ is only there for kernel='linear'.")
        check_is_fitted(self)
        coefficients = pair_coefficients(self.dual_coef_, self.n_support_)
        coef = np.asarray((self.support_vectors_.T @ coefficients).T, dtype=np.float64)
        coef.flags.writeable = False
        return coef

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: shape (n_rows,) for two classes, positive for the second; else a column a class (or a pair)."""
        scores = self._pair_scores(X)
        if self.classes_.size == 2:
            return scores.ravel()
        return scores if self.decision_function_shape == "ovo" else one_against_one(scores, self.classes_.size)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row: the one with the largest score of shape "ovr"."""
        scores = self._pair_scores(X)
        if self.classes_.size > 2:
            scores = one_against_one(scores, self.classes_.size)
        return labels_from_scores(scores if self.classes_.size > 2 else scores.ravel(), self.classes_)

    def _pair_scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        accept_sparse = False if self._is_precomputed else "csr"
        X = validate_data(self, X, accept_sparse=accept_sparse, dtype="numeric", reset=False)
        coefficients = pair_coefficients(self.dual_coef_, self.n_support_)
        n_threads = thread_count(self.n_jobs)
        scores = kernel_scores(
            X, kernel_of(self), self.support_, self.support_vectors_, coefficients, self.intercept_, n_threads
        )
        return finite_scores(scores)

    def _without_bound(self, stop: Stop) -> Stop:
        warnings.warn(
            f"the kernel {self.kernel!r} is indefinite on these rows: the problem is not convex, there is no dual "
            f"bound, and the fit ends at a stationary point, where the KKT violation is at most tol={stop.tol:g}. "
            "Use a positive semi-definite kernel, such as 'rbf', for a certificate.",
            UserWarning,
            stacklevel=FRAMES_TO_CALLER + 2,
        )
        return Stop(stop.tol, stop.max_iter, stop.max_seconds, stop.target, "kkt")

    def _hint_at_linear_svc(self, rows: Rows) -> None:
        if isinstance(self.kernel, str) and self.kernel == "linear" and rows.n_rows >= max(_MANY_ROWS, rows.n_cols):
            warnings.warn(
                f"kernel='linear' on {rows.n_rows:,} rows works on a kernel matrix; softmargin.LinearSVC minimises the "
                "same objective on the data themselves, much faster.",
                UserWarning,
                stacklevel=FRAMES_TO_CALLER + 2,
            )

    def _dual_variables(self, n_rows: int, pairs: list[Pair]) -> list[np.ndarray]:
        return dual_variables(self, n_rows, pairs)

    def _store(self, results: list[Result], pairs: list[Pair], C: float) -> None:
        keep_outcome(self, results)
        self.fit_status_ = 0 if self.status_.reached_goal else 1
        self.n_iter_ = np.array([result.counts["iterations"] for result in results], dtype=np.int32)
        self.counts_ = {name: sum(result.counts[name] for result in results) for name in results[0].counts}
        alphas = [np.abs(result.state.beta) if result.state else result.solution.alpha for result in results]
        bounded = [alpha >= C * np.abs(pair.signed_weights) for alpha, pair in zip(alphas, pairs, strict=True)]
        self.n_bounded_ = np.array([at.sum() for at in bounded], dtype=np.int32)
        self.n_free_ = np.array([np.count_nonzero(alpha) for alpha in alphas], dtype=np.int32) - self.n_bounded_

    def _starts(self, rows: Rows, pairs: list[Pair], setting: KernelSetting, classes: np.ndarray) -> list[Any] | None:
        if not self.warm_start or not hasattr(self, "dual_coef_") or not np.array_equal(self.classes_, classes):
            return None
        if hasattr(self, "_state") and self._state[0] == kernel_fingerprint(rows, pairs, setting, float(self.tol)):
            states = self._state[1]
            if [len(state.beta) if state else 0 for state in states] == [pair.index.size for pair in pairs]:
                return [_at_bounds_of(setting.C, state, pair) for state, pair in zip(states, pairs, strict=True)]
        if self.shape_fit_[0] != rows.n_rows:
            return None
        starts = map(DualStart, dual_variables(self, rows.n_rows, pairs))
        return [_at_bounds_of(setting.C, start, pair) for start, pair in zip(starts, pairs, strict=True)]


def _at_bounds_of(C: float, start: Any, pair: Pair) -> Any:
    """A start, or the state of a solve, for another C: where some variables were at the upper bound, all of them grow
    or shrink with it, so that the same ones are at their bounds.
    """
    if start is None:
        return None
    upper = np.abs(pair.signed_weights)
    shares = np.abs(start.beta) / upper
    largest = float(shares.max(initial=0.0))
    bounded = shares >= (1.0 - _SAME_BOUND) * largest
    if largest == 0.0 or abs(largest - C) <= _SAME_BOUND * C or np.count_nonzero(bounded) < 2:
        return start
    factor = C / largest
    beta = np.where(bounded, np.sign(start.beta) * (C * upper), factor * start.beta)
    return DualState(beta, factor * start.f) if isinstance(start, DualState) else DualStart(beta)


def _nothing(pair: Pair) -> Solution:
    return Solution(np.empty(0), 0.0, np.zeros(pair.index.size))


def _support(
    rows: Rows,
    codes: np.ndarray,
    pairs: list[Pair],
    solutions: list[Solution],
    *,
    precomputed: bool,
    known: tuple[np.ndarray, Any] | None = None,
) -> dict[str, Any]:
    """The fitted attributes that describe the decision function, in scikit-learn's shapes and signs.

    `known` are support vectors of the same rows, with their positions.
    """
    n_classes = pairs[-1].second + 1
    coefficients = np.zeros((n_classes - 1, codes.size))
    for pair, solution in zip(pairs, solutions, strict=True):
        beta = solution.alpha * np.sign(pair.signed_weights)
        own = codes[pair.index] == pair.first
        coefficients[pair.second - 1, pair.index[own]] = beta[own]
        coefficients[pair.first, pair.index[~own]] = beta[~own]
    is_support = coefficients.any(axis=0)
    support = np.concatenate([np.flatnonzero(is_support & (codes == c)) for c in range(n_classes)]).astype(np.int32)
    if known is not None and np.array_equal(known[0], support):
        vectors = known[1]
    else:
        vectors = np.empty((0, 0)) if precomputed else rows.take(support).native()
    return {
        "support_": support,
        "support_vectors_": vectors,
        "n_support_": np.bincount(codes[support], minlength=n_classes).astype(np.int32),
        "dual_coef_": coefficients[:, support],
        "intercept_": np.array([solution.b for solution in solutions]),
    }


def dual_variables(estimator: Any, n_rows: int, pairs: list[Pair]) -> list[np.ndarray]:
    """The signed dual variables of each pair, from a model's `dual_coef_` and `support_`."""
    coefficients = np.zeros((estimator.dual_coef_.shape[0], n_rows))
    coefficients[:, estimator.support_] = estimator.dual_coef_
    found = []
    for pair in pairs:
        own = pair.signed_weights < 0 if len(pairs) == 1 else pair.signed_weights > 0
        found.append(np.where(own, coefficients[pair.second - 1, pair.index], coefficients[pair.first, pair.index]))
    return found
