"""The linear support vector classifier."""

import warnings
from contextlib import ExitStack
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from softmargin.core.errors import SoftmarginError
from softmargin.core.progress import ProgressLine
from softmargin.core.result import Certificate, Result, Solution
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.core.threads import Cancel, Workers, one_blas_thread, thread_count
from softmargin.core.trace import Observer
from softmargin.data.convert import as_rows
from softmargin.data.rows import Rows
from softmargin.estimators import validation
from softmargin.estimators.build import Candidate, LinearSetting, fingerprint, linear_solver, solve_all
from softmargin.estimators.callbacks import FRAMES_TO_CALLER, CallbackBridge, CallbackSupportMixin, with_callbacks
from softmargin.estimators.persistence import SaveMixin
from softmargin.estimators.scoring import labels_from_scores, linear_scores
from softmargin.estimators.warnings import ConvergenceWarning


class LinearSVC(SaveMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Linear support vector classification, exact and with a certificate.

    Minimises ``1/2 |w|^2 + C * sum_i s_i max(0, 1 - y_i (w.x_i + b))``. More than two classes are trained one against
    the rest, in parallel over one copy of X.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum of hinge losses; larger means less regularisation.
    solver : {"auto", "ocas", "cpa", "pegasos", "sgd"} or solver object, default="auto"
        The algorithm; "auto" is "ocas". An object such as ``softmargin.OCAS(mixing=0.2)`` carries its own settings.
        "pegasos" and "sgd" are approximate: they end after a fixed number of steps, mostly before `tol`, and warn with
        the gap they reached.
    tol : float, default=1e-3
        Stop when the relative duality gap (primal - dual) / primal is at most this, confirmed by the judge.
    fit_intercept : bool, default=True
        Whether there is an intercept b.
    intercept : {"free", "penalised"}, default="free"
        "free": b is not penalised. "penalised": a constant feature 1, as in the papers and in LIBLINEAR.
    class_weight : dict, "balanced" or None, default=None
        Factor on the weights of each class's rows.
    max_iter : int or None, default=None
        Limit on the iterations of each sub-problem (for "pegasos" and "sgd": passes over the data); None is no limit.
    max_seconds : float or None, default=None
        Limit on the time of solving, all classes together; compilation, validation and the judge are not counted. None
        is no limit.
    n_jobs : int or None, default=None
        Threads: None is one, -1 all. The result is the same, bit for bit, whatever the number.
    warm_start : bool, default=False
        Continue from the last fit: exactly, if data and weights are the same; with its planes, if only C or tol
        changed; else from its weights.
    random_state : int, RandomState instance or None, default=None
        Seed of "pegasos" and "sgd", which visit rows in random order; None is a new one in each fit. "ocas" and "cpa"
        do not use it.
    verbose : int, default=0
        1 shows a progress line.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    certificate_ : Certificate
        `primal`, `dual`, `gap`, `relative_gap`, `kkt_violation`, as the judge found them from the data; for several
        sub-problems the sums, and the worst relative gap.
    certificates_ : list of Certificate
        One for each sub-problem.
    dual_ : ndarray of shape (n_rows,) or (n_rows, n_classes)
        The dual vector alpha behind the bound.
    status_ : Status
        How the fit ended (for several sub-problems: the worst of their endings).
    trace_ : Trace or list of Trace
        Primal, bound, planes and passes over iterations and seconds.
    n_iter_ : int
        Iterations (the most of any sub-problem), earlier ones included where a fit was continued.
    seconds_ : dict
        Seconds spent in all ("total"), judging ("judge") and compiling ("compile"), added up over the sub-problems.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    A fit that stopped early, or with ``warm_start=True``, keeps its planes, so that another fit can continue.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from softmargin import LinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearSVC(C=1.0, tol=1e-4).fit(X, y)
    >>> model.certificate_.relative_gap <= 1e-4
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        solver: Any = "auto",
        tol: float = 1e-3,
        fit_intercept: bool = True,
        intercept: str = "free",
        class_weight: Any = None,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.solver = solver
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept = intercept
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LinearSVC":
        """Train on X and y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            float32, float64, integers and bool are used in place, dense in either order or CSR.
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), default=None
            2 is the same as repeating the row, 0 as leaving it out.

        Returns
        -------
        self
            After Ctrl-C the model is fitted with the best solution so far, and the interrupt is raised again (while X
            and y are still being checked there is nothing to keep yet).
        """
        solver, setting, stop, n_threads = self._checked_parameters()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype="numeric", accept_large_sparse=True)
        classes, codes = validation.class_labels(y)
        targets = validation.signed_weights(classes, codes, self.class_weight, sample_weight)
        validation.finite_scale(setting.C, targets)
        bridge = CallbackBridge.of(self, X, y, sample_weight, len(targets), self.max_iter)
        cancel = Cancel()
        with ExitStack() as stack:
            stack.enter_context(cancel.on_interrupt())
            stack.enter_context(one_blas_thread())
            workers = Workers(n_threads)
            stack.callback(workers.close)
            lines = self._progress_lines(classes, len(targets), stop)
            for line in lines:
                stack.callback(line.close)  # whatever happens, the terminal is left as it was
            rows = as_rows(X, workers)
            starts = self._starts(solver, rows, targets, setting, classes)

            def attributes(found: list[Any]) -> dict[str, np.ndarray]:
                nothing = Solution(np.zeros(rows.n_cols), 0.0, np.empty(0))
                return _weights([solution or nothing for solution in found])

            def observers(k: int, candidate: Candidate) -> list[Observer]:
                found: list[Observer] = [lines[k]] if lines else []
                if bridge is not None:
                    found.append(bridge.observer(k, candidate, attributes))
                return found

            self.classes_ = classes  # a callback may look at the model while it is being trained
            results = solve_all(
                solver, setting, rows, targets, stop, n_threads, starts=starts, cancel=cancel, observers=observers
            )
            self._store(results, classes)
            self._keep_state(results, rows, targets, setting)
            for line, result in zip(lines, results, strict=False):
                line.close(str(result.status))

        if bridge is not None:
            bridge.close({"coef_": self.coef_, "intercept_": self.intercept_})
        if cancel.is_set:
            raise KeyboardInterrupt
        if not self.status_.reached_goal and self.status_ is not Status.STOPPED:
            warnings.warn(_convergence_message(self, stop), ConvergenceWarning, stacklevel=FRAMES_TO_CALLER)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distances times |w|: shape (n_rows,) for two classes, else (n_rows, n_classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype="numeric", reset=False)
        return linear_scores(X, self.coef_, self.intercept_)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row."""
        return labels_from_scores(self.decision_function(X), self.classes_)

    def _checked_parameters(self) -> tuple[Any, LinearSetting, Stop, int]:
        setting = linear_setting(self)
        solver = linear_solver(self.solver, self.random_state)
        rule = getattr(solver, "stopping", "relative_gap")
        stop = validation.stop_rule(self.tol, self.max_iter, self.max_seconds, rule)
        return solver, setting, stop, thread_count(self.n_jobs)

    def _progress_lines(self, classes: np.ndarray, n_tasks: int, stop: Stop) -> list[ProgressLine]:
        if not self.verbose:
            return []
        titles = ["LinearSVC"] if n_tasks == 1 else [f"LinearSVC class {label}" for label in classes]
        goal = stop.tol if stop.rule == "relative_gap" else None
        return [ProgressLine(title, goal, alone=n_tasks == 1) for title in titles]

    def _store(self, results: list[Result], classes: np.ndarray) -> None:
        self.classes_ = classes
        weights = _weights([result.solution for result in results])
        self.coef_, self.intercept_ = weights["coef_"], weights["intercept_"]
        self.certificates_ = [result.certificate for result in results]
        self.certificate_ = Certificate.combine(self.certificates_)
        self.status_ = Status.worst(result.status for result in results)
        self.n_iter_ = max(result.counts["iterations"] for result in results)
        self.seconds_ = {name: float(sum(r.seconds[name] for r in results)) for name in results[0].seconds}
        self.trace_: Any = [result.trace for result in results]
        self.dual_ = np.column_stack([result.solution.alpha for result in results])
        if len(results) == 1:
            self.trace_, self.dual_ = self.trace_[0], self.dual_[:, 0]

    def _keep_state(self, results: list[Result], rows: Rows, targets: list[np.ndarray], setting: LinearSetting) -> None:
        """What `warm_start` continues from: kept when it is asked for, or when the fit ended early."""
        if self.warm_start or not self.status_.reached_goal:
            self._state = (fingerprint(rows, targets, setting), [result.state for result in results])
        elif hasattr(self, "_state"):
            del self._state

    def _starts(
        self, solver: Any, rows: Rows, targets: list[np.ndarray], setting: LinearSetting, classes: np.ndarray
    ) -> list[Any] | None:
        if not self.warm_start or not hasattr(self, "coef_") or not hasattr(self, "classes_"):
            return None
        if hasattr(self, "_state") and isinstance(self._state[1][0], getattr(solver, "state_type", object)):
            key, states = self._state
            # A state from a file may belong to other data than its fingerprint says.
            if len(self.dual_) == rows.n_rows and key == fingerprint(rows, targets, setting):
                return states
        if self.coef_.shape != (len(targets), rows.n_cols) or not np.array_equal(self.classes_, classes):
            return None
        return [setting.start_from(w, b) for w, b in zip(self.coef_, self.intercept_, strict=True)]


def _weights(solutions: list[Solution]) -> dict[str, np.ndarray]:
    return {
        "coef_": np.array([solution.w for solution in solutions]),
        "intercept_": np.array([solution.b for solution in solutions]),
    }


def linear_setting(estimator: Any) -> LinearSetting:
    """C and the kind of intercept of a LinearSVC, checked."""
    C = validation.positive_number(estimator.C, "C")
    if isinstance(estimator.intercept, str) and estimator.intercept == "none":
        raise SoftmarginError("intercept='none' is unknown: use fit_intercept=False for a model without intercept.")
    intercept = validation.one_of(estimator.intercept, "intercept", ("free", "penalised"))
    if not estimator.fit_intercept:
        if intercept == "penalised":
            raise SoftmarginError(
                "fit_intercept=False and intercept='penalised' contradict each other: drop one of them."
            )
        intercept = "none"
    return LinearSetting(C, intercept)


def _convergence_message(estimator: LinearSVC, stop: Stop) -> str:
    """What was reached, what it bounds, and what to change."""
    gap = estimator.certificate_.relative_gap
    goal = f"tol={stop.tol:g}" if stop.rule == "relative_gap" else f"tol={stop.tol:g} is for the rule {stop.rule!r}"
    advice = {
        Status.MAX_ITER: f"raise max_iter (now {stop.max_iter})",
        Status.MAX_SECONDS: f"raise max_seconds (now {stop.max_seconds:g})" if stop.max_seconds else "",
        Status.BUDGET: "use solver='ocas', which is exact, or give the solver more passes (softmargin.SGD(epochs=100))",
        Status.STALLED: "raise tol, or scale the features",
        Status.UNCONFIRMED: "raise tol, or scale the features",
    }[estimator.status_]
    return (
        f"{estimator.status_} The relative duality gap is {gap:.2g} ({goal}): the objective is at most "
        f"{100 * max(gap, 0.0):.3g} % of its value above the optimum. To get closer, {advice}; "
        "warm_start=True and another fit continue from here. Features on similar scales (StandardScaler, MaxAbsScaler) "
        "need fewer iterations."
    )
