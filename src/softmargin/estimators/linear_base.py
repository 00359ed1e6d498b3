"""What every estimator over the rows themselves does in `fit`: threads, interrupts, progress, callbacks, continuing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from softmargin.core.result import WeightStart
from softmargin.core.stopping import Stop
from softmargin.core.threads import thread_count
from softmargin.core.trace import Observer
from softmargin.data.convert import as_rows
from softmargin.data.rows import Rows
from softmargin.estimators import validation
from softmargin.estimators.build import Candidate, fingerprint, solve_all
from softmargin.estimators.callbacks import FRAMES_TO_CALLER, CallbackBridge, CallbackSupportMixin
from softmargin.estimators.fitting import fitting, keep_outcome, keep_state, progress_lines, warn_unless_done
from softmargin.estimators.persistence import SaveMixin
from softmargin.estimators.plain_state import PlainStateMixin
from softmargin.estimators.settings import Setting
from softmargin.solvers.base import Solver


@dataclass(frozen=True)
class Job:
    """A fit that may begin: everything is checked.

    `known` are fitted attributes that are there before; `found` makes the others from the solutions of the
    sub-problems (None: there is none yet).
    """

    solver: Solver
    setting: Setting
    targets: Sequence[Any]
    stop: Stop
    n_threads: int
    titles: Sequence[str]
    known: dict[str, Any]
    found: Callable[[list[Any]], dict[str, Any]]


class LinearBase(PlainStateMixin, SaveMixin, CallbackSupportMixin, BaseEstimator):
    """An estimator with the parameters `tol`, `max_iter`, `max_seconds`, `n_jobs`, `warm_start` and `verbose`."""

    tol: float
    max_iter: int | None
    max_seconds: float | None
    n_jobs: int | None
    warm_start: bool
    verbose: int
    coef_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _limits(self, solver: Solver) -> tuple[Stop, int]:
        """When to stop, and the number of threads; checked."""
        rule = getattr(solver, "stopping", "relative_gap")
        return validation.stop_rule(self.tol, self.max_iter, self.max_seconds, rule), thread_count(self.n_jobs)

    def _to_predict(self, X: Any) -> Any:
        """X, checked against what the model was trained on."""
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype="numeric", reset=False)

    def _weight_starts(self, job: Job, n_cols: int) -> list[WeightStart] | None:
        """Starts from the weights of the last fit, if they are for such a job."""
        return [WeightStart(self.coef_)] if self.coef_.shape == (n_cols,) else None

    def _run(self, job: Job, X: Any, y: Any, **metadata: Any) -> None:
        """Solve, and store all that a fit leaves behind. `fit` itself calls it: a warning names the caller's line."""
        bridge = CallbackBridge.of(self, X, y, metadata, len(job.targets), self.max_iter)
        lines = progress_lines(self.verbose, job.titles, job.stop)
        with fitting(job.n_threads, lines) as (cancel, workers):
            rows = as_rows(X, workers)
            starts = self._starts(job, rows)

            def observers(k: int, candidate: Candidate) -> list[Observer]:
                found: list[Observer] = [lines[k]] if lines else []
                if bridge is not None:
                    found.append(bridge.observer(k, candidate, job.found))
                return found

            self._set(job.known)  # a callback may look at the model while it is being trained
            results = solve_all(
                job.solver,
                job.setting,
                rows,
                job.targets,
                job.stop,
                job.n_threads,
                starts=starts,
                cancel=cancel,
                observers=observers,
            )
            final = job.found([result.solution for result in results])
            self._set(final)
            keep_outcome(self, results)
            self.n_iter_ = max(result.counts["iterations"] for result in results)
            keep_state(self, results, lambda: fingerprint(rows, job.targets, job.setting))
            for line, result in zip(lines, results, strict=False):
                line.close(str(result.status))

        if bridge is not None:
            bridge.close(final)
        if cancel.is_set:
            raise KeyboardInterrupt
        warn_unless_done(self, job.stop, FRAMES_TO_CALLER + 1)

    def _set(self, attributes: dict[str, Any]) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)

    def _starts(self, job: Job, rows: Rows) -> Sequence[Any] | None:
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        if hasattr(self, "_state"):
            key, states = self._state
            fits = isinstance(states[0], getattr(job.solver, "state_type", object))
            if fits and key == fingerprint(rows, job.targets, job.setting):
                return states
        return self._weight_starts(job, rows.n_cols)
