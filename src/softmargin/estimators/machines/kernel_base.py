"""What the kernel estimators have in common: the kernel, its checks, and scores from support vectors."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Result
from softmargin.core.stopping import BY_KKT, Stop
from softmargin.core.threads import Workers, one_blas_thread, thread_count
from softmargin.data.convert import as_rows, is_storage
from softmargin.data.rows import Rows
from softmargin.estimators import validation
from softmargin.estimators.kernel_choice import checked_kernel, kernel_of
from softmargin.estimators.kernel_scoring import kernel_scores
from softmargin.estimators.kernel_targets import KernelTarget
from softmargin.estimators.kernel_work import KernelSetting, KernelWork, kernel_solver, needs_convex
from softmargin.estimators.machines.base import Machine
from softmargin.estimators.machines.linear_base import WITNESS_TOL
from softmargin.kernels.cached import CachedRows
from softmargin.kernels.matrix import DirectRows, KernelRows
from softmargin.kernels.precomputed import PrecomputedRows
from softmargin.prediction.labels import finite_scores
from softmargin.problems.kernel_certificate import KernelJudge

STOP_RULES = {"gap": "relative_gap", "kkt": "kkt", "gain": "gain"}
# With a linear kernel and at least this many rows, a fit warns that a linear estimator solves the same problem faster.
_MANY_ROWS = 20_000


class KernelMachine(Machine):
    """An estimator with the parameters of a kernel and of its solvers, and with support vectors."""

    C: float
    kernel: Any
    solver: Any
    working_set: str
    shrinking: bool
    cache_bytes: float | None
    cache_size: float | None
    stopping: str
    support_: np.ndarray
    n_support_: np.ndarray
    shape_fit_: tuple[int, int]
    support_vectors_: Any
    dual_coef_: np.ndarray
    intercept_: np.ndarray
    linear_twin: str  # the estimator that solves the problem of a linear kernel on the data themselves

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _stop_rule(self) -> str:
        """What `tol` is for: `stopping`, unless that has its default and a solver object asks for the other rule."""
        rule = STOP_RULES[validation.one_of(self.stopping, "stopping", tuple(STOP_RULES))]
        own = rule if isinstance(self.solver, str) else getattr(self.solver, "stopping", rule)
        validation.one_of(own, "stopping of the solver", tuple(STOP_RULES.values()))
        return own if self.stopping == "gap" else rule

    def _limits(self) -> tuple[float, Stop, int, float | None]:
        """C, when to stop, the number of threads and the bytes for kernel rows, checked."""
        C = validation.positive_number(self.C, "C")
        stop = validation.stop_rule(self.tol, self.max_iter, self.max_seconds, self._stop_rule())
        return C, stop, thread_count(self.n_jobs), validation.cache_limit(self.cache_bytes, self.cache_size)

    def _validated(self, X: Any, **options: Any) -> Any:
        """X (and y, if it is among the options), checked; a kernel matrix is dense."""
        if is_storage(X):
            X = as_rows(X).native()
        return self._matrix(X, sparse=not self._is_precomputed, **options)

    def _work(
        self, rows: Rows, workers: Workers, targets: Sequence[KernelTarget], weights: np.ndarray, solver: Any
    ) -> KernelWork:
        """The problems of these targets over the rows, which have these sample weights."""
        C, stop, _, cache_bytes = self._limits()
        kernel = checked_kernel(self, rows, weights)
        if kernel is None:
            validation.kernel_matrix(rows.native())
        setting = KernelSetting(C, kernel, cache_bytes, needs_convex(solver))
        is_convex = setting.looks_convex(rows)
        if not is_convex and needs_convex(solver):
            raise SoftmarginError(
                f"the kernel {self.kernel!r} is not positive semi-definite on these rows, and solver="
                f"{solver!r} needs that: use solver='auto' or solver='smo', or a kernel such as 'rbf'."
            )
        notes = []
        if not is_convex:
            stop = replace(stop, rule=stop.rule if stop.rule in BY_KKT else "kkt")
            notes.append(
                f"the kernel {self.kernel!r} is indefinite on these rows: the problem is not convex, there is no dual "
                f"bound, and the fit ends at a stationary point, where the KKT violation is at most tol={stop.tol:g}. "
                "Use a positive semi-definite kernel, such as 'rbf', for a certificate."
            )
        is_linear = isinstance(self.kernel, str) and self.kernel == "linear"
        if is_linear and rows.n_rows >= max(_MANY_ROWS, rows.n_cols):
            notes.append(
                f"kernel='linear' on {rows.n_rows:,} rows works on a kernel matrix; softmargin.{self.linear_twin} "
                "minimises the same objective on the data themselves, much faster."
            )
        working_set = self.working_set
        if solver is not self.solver:  # partial_fit has a solver of its own
            working_set = "auto"
            stop = replace(stop, rule="kkt" if stop.rule == "gain" else stop.rule)
        choose = kernel_solver(solver, working_set, bool(self.shrinking), stop)
        return KernelWork(choose, setting, rows, targets, stop, workers, is_convex, notes)

    def _remember_rows(self, X: Any, y: Any, weights: np.ndarray, solver: Any) -> None:
        """Keep what is needed of the training rows to learn more of them, in estimators that can (`incremental`)."""

    def _support_vectors(self, rows: Rows, support: np.ndarray, known: tuple[np.ndarray, Any] | None) -> Any:
        """The rows of these positions; `known` are positions in the same rows, and their vectors."""
        if known is not None and np.array_equal(known[0], support):
            return known[1]
        return np.empty((0, 0)) if self._is_precomputed else rows.take(support).native()

    def _keep_counts(self, results: Sequence[Result]) -> None:
        """What scikit-learn's kernel estimators tell about a fit, and what this library counts."""
        self.fit_status_ = 0 if self.status_.reached_goal else 1
        self.n_iter_ = np.array([result.counts["iterations"] for result in results], dtype=np.int32)
        self.counts_ = {name: sum(result.counts[name] for result in results) for name in results[0].counts}

    def _expanded(self, X: Any, coefficients: np.ndarray) -> np.ndarray:
        """Scores of new rows: for each column of coefficients the sum over the support vectors, plus its intercept."""
        self._check_fitted()
        X = self._validated(X, reset=False)
        n_threads = thread_count(self.n_jobs)
        scores = kernel_scores(
            X, kernel_of(self), self.support_, self.support_vectors_, coefficients, self.intercept_, n_threads
        )
        return finite_scores(scores)

    @contextmanager
    def _judging(self, X: Any) -> Iterator[tuple[Rows, Callable[[KernelTarget], KernelJudge]]]:
        """The rows of X, and judges of problems over them, with kernel values that are computed and not kept."""
        with one_blas_thread():
            workers = Workers(thread_count(self.n_jobs))
            try:
                rows = as_rows(X, workers)
                if self._is_precomputed:
                    validation.kernel_matrix(rows.native())
                setting = KernelSetting(validation.positive_number(self.C, "C"), kernel_of(self))
                is_convex = setting.looks_convex(rows)

                def judge(target: KernelTarget) -> KernelJudge:
                    source: KernelRows
                    if setting.kernel is None:
                        source = PrecomputedRows(rows.native(), target.index)
                    else:
                        source = DirectRows(rows.take(target.index), setting.kernel, np.float64, workers)
                    store = CachedRows(source, 2.0 * source.n * source.dtype.itemsize, workers)
                    return KernelJudge(store, target.loss(setting.C), is_convex, WITNESS_TOL)

                yield rows, judge
            finally:
                workers.close()

    def _linear_weights(self, coefficients: np.ndarray) -> np.ndarray:
        """`coef_` of a linear kernel. It is computed from the support vectors, which are what scores are made of: the
        array is read-only, because a change of it would have no effect.
        """
        if not isinstance(self.kernel, str) or self.kernel != "linear":
            raise AttributeError("coef_ is only there for kernel='linear'.")
        coef = np.asarray((self.support_vectors_.T @ coefficients).T, dtype=np.float64)
        coef.flags.writeable = False
        return coef
