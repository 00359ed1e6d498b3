"""What stands between `fit` and `run`: everything that all estimators do alike.

An estimator checks its parameters and y, and says what is to be solved: a `Job`. From there on the way is the same for
all of them, in `Machine._run`:

    rows of X -> the job's work on these rows -> where to start -> solve -> fitted attributes -> state -> warnings

with threads, interrupts, a progress display and, in estimators, scikit-learn's callbacks around it.
"""

import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.progress import Part, Progress
from softmargin.core.result import Certificate, Result, Solution
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.core.text import printable
from softmargin.core.threads import Cancel, Workers, one_blas_thread
from softmargin.core.trace import Clock, Observer
from softmargin.data.columns import Occupied
from softmargin.data.convert import as_rows
from softmargin.data.rows import Products
from softmargin.estimators.machines.checks import check_matrix, checked_targets
from softmargin.estimators.machines.parameters import Parameters
from softmargin.estimators.persistence import SaveMixin
from softmargin.tasks.layouts import ORIGIN

NO_TARGETS: Any = object()  # y of data that have none
Candidate = Callable[[Any], Solution]
Observers = Callable[[int, Candidate], Sequence[Observer]]


class Work(Protocol):
    """What is to be solved on given rows: one sub-problem or many."""

    @property
    def stop(self) -> Stop: ...

    @property
    def known(self) -> dict[str, Any]:
        """Fitted attributes that follow from the rows, before anything is solved."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What the user should be told about these rows, as warnings."""
        ...

    @property
    def state_type(self) -> type:
        """What its solver continues from."""
        ...

    def fingerprint(self) -> str:
        """Identifies the data, the targets, the weights, and what else makes earlier states useless."""
        ...

    def resumed(self, states: Sequence[Any]) -> Sequence[Any] | None:
        """Starts from the states of an earlier fit with the same fingerprint; None if they cannot be used."""
        ...

    def solve(self, starts: Sequence[Any] | None, cancel: Cancel, observers: Observers) -> list[Result]:
        """A result for each sub-problem. Observers are told how a state becomes a solution."""
        ...

    def remarks(self, results: Sequence[Result]) -> Sequence[str]:
        """What the user should be told about how it was solved, as warnings."""
        ...


@dataclass(frozen=True)
class Job:
    """A fit that may begin: everything is checked that can be checked without looking at the rows.

    `titles` are those of the sub-problems, for the progress display. `known` are fitted attributes that are there
    before; `found` makes the others from the solutions of the sub-problems (None: there is none yet). `keep` stores
    what else the results tell.
    """

    stop: Stop
    n_threads: int
    titles: Sequence[str]
    known: dict[str, Any]
    work: Callable[[Any, Workers], Work]
    found: Callable[[Any, list[Any]], dict[str, Any]]
    keep: Callable[[list[Result]], None] = lambda results: None


class Bridge(Protocol):
    """Somebody else who watches the sub-problems, such as callbacks of scikit-learn."""

    def observer(self, k: int, candidate: Candidate, attributes: Callable[[list[Any]], dict[str, Any]]) -> Observer: ...

    def close(self, final: dict[str, Any]) -> None: ...


class Machine(SaveMixin, Parameters):
    """A model with the parameters `tol`, `max_iter`, `max_seconds`, `n_jobs`, `warm_start` and `verbose`.

    The methods from `_matrix` to `_tell_shortfall` are those that scikit-learn's surface replaces (`surface.py`).
    """

    tol: float
    max_iter: int | None
    max_seconds: float | None
    n_jobs: int | None
    warm_start: bool
    verbose: int
    n_features_in_: int
    status_: Status
    certificate_: Certificate
    _frames_to_caller = 2  # from `fit` to the user's line

    def _matrix(
        self, X: Any, y: Any = NO_TARGETS, *, reset: bool = True, sparse: bool = True, copy: bool = False
    ) -> Any:
        """X, or X and y if there are targets; `reset` makes the features of X those of the model."""
        check_matrix(X)
        if reset:
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
        elif X.shape[1] != self.n_features_in_:
            raise SoftmarginError(f"X has {X.shape[1]} features, but the model was trained on {self.n_features_in_}.")
        X = X.copy() if copy else X
        return X if y is NO_TARGETS else (X, checked_targets(y, X.shape[0]))

    def _checked_targets(self, y: Any, n_rows: int) -> np.ndarray:
        """y beside rows that are no matrix."""
        return checked_targets(y, n_rows)

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_features_in_"):
            raise SoftmarginError(f"this {type(self).__name__} is not fitted yet: call fit first.")

    def _bridge(self, X: Any, y: Any, metadata: dict[str, Any], job: Job) -> Bridge | None:
        """Who else is to be told about the course of the fit."""
        return None

    def _tell_shortfall(self, stop: Stop, stacklevel: int) -> None:
        """Warn that the fit ended before its goal. Who fits a machine looks at `status_`."""

    def _to_predict(self, X: Any) -> Any:
        """X, checked against what the model was trained on."""
        self._check_fitted()
        return self._matrix(X, reset=False)

    def _run(self, job: Job, X: Any, y: Any, metadata: dict[str, Any]) -> None:
        """Solve, and store all that a fit leaves behind.

        It is called by a function that `fit` calls, and so a warning names the line that called `fit`.
        """
        clock = Clock()
        bridge = self._bridge(X, y, metadata, job)
        lines = progress_lines(self.verbose, job.titles, job.stop)
        with fitting(job.n_threads, lines) as (cancel, workers):
            rows = self._rows(X, workers)
            work = job.work(rows, workers)
            for note in work.notes:
                warnings.warn(note, UserWarning, stacklevel=self._frames_to_caller + 2)
            starts = self._starts(job, work, rows)

            def observers(k: int, candidate: Candidate) -> list[Observer]:
                found: list[Observer] = [lines[k]] if lines else []
                if bridge is not None:
                    found.append(bridge.observer(k, candidate, lambda solutions: job.found(rows, solutions)))
                return found

            self._set({**job.known, **work.known})  # a callback may look at the model while it is being trained
            results = work.solve(starts, cancel, observers)
            final = job.found(rows, [result.solution for result in results])
            self._set(final)
            self._keep_outcome(results, clock)
            job.keep(results)
            self._keep_state(results, work.fingerprint)
            for line, result in zip(lines, results, strict=False):
                line.close(f"{result.status} {result.remark}".rstrip())

        if bridge is not None:
            bridge.close(final)
        if cancel.is_set:
            raise KeyboardInterrupt
        for note in [*work.remarks(results), *self._remarks()]:
            warnings.warn(note, UserWarning, stacklevel=self._frames_to_caller + 2)
        self._tell_shortfall(work.stop, self._frames_to_caller + 2)

    def _rows(self, X: Any, workers: Workers) -> Any:
        """The rows of X, as the problems of this estimator need them."""
        return as_rows(X, workers)

    def _remarks(self) -> Sequence[str]:
        """What the user should be told about the fitted model, as warnings."""
        return ()

    def _set(self, attributes: dict[str, Any]) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)

    def _starts(self, job: Job, work: Work, rows: Any) -> Sequence[Any] | None:
        """The states of the last fit, if it was one of the same data; else what its model has to offer."""
        if not self.warm_start or not hasattr(self, "status_"):
            return None
        if hasattr(self, "_state"):
            key, states = self._state
            some = next((state for state in states if state is not None), None)
            if isinstance(some, work.state_type) and key == work.fingerprint():
                starts = work.resumed(states)
                if starts is not None:
                    return starts
        return self._model_starts(job, work, rows)

    def _model_starts(self, job: Job, work: Work, rows: Any) -> Sequence[Any] | None:
        """Starts from the fitted model alone, if it is one for such a job."""
        raise NotImplementedError

    def _keep_outcome(self, results: Sequence[Result], clock: Clock | None = None) -> None:
        """How it ended, with which proof, over all sub-problems; from which file an earlier fit came is forgotten.

        Sub-problems that are solved side by side each count the same seconds: how long all of them took, and what was
        compiled meanwhile, is known to the clock of the fit.
        """
        for name in ORIGIN:
            self.__dict__.pop(name, None)
        self.certificates_ = [result.certificate for result in results]
        self.certificate_ = Certificate.combine(self.certificates_)
        self.status_ = Status.worst(result.status for result in results)
        self.seconds_ = {name: float(sum(r.seconds[name] for r in results)) for name in results[0].seconds}
        if clock is not None:
            self.seconds_ |= {"total": clock.wall, "compile": clock.compiling}
        traces = [result.trace for result in results]
        self.trace_ = traces if len(traces) > 1 else traces[0]
        self.n_iter_: Any = max(result.counts["iterations"] for result in results)

    def _keep_state(self, results: Sequence[Result], fingerprint: Callable[[], str]) -> None:
        """What `warm_start` continues from: kept when it is asked for, or when the fit ended early."""
        if self.warm_start or not self.status_.reached_goal:
            self._state = (fingerprint(), [result.state for result in results])
        elif hasattr(self, "_state"):
            del self._state


def fingerprint(rows: Products, key: str, targets: Iterable[Iterable[np.ndarray]]) -> str:
    """Identifies the data, and targets that are given as arrays, at the cost of one product with X.

    Any change of an entry changes the product with a fixed vector, unless it drowns in rounding, and then the solvers
    do not notice it either.
    """
    digest = hashlib.sha256(f"{rows.n_rows} {rows.n_cols} {key}".encode())
    digest.update(Occupied.of(rows).probed().tobytes())
    for target in targets:
        for part in target:
            digest.update(part.tobytes())
    return digest.hexdigest()


def progress_lines(verbose: int, titles: Sequence[str], stop: Stop) -> list[Part]:
    """An observer for each sub-problem, of one display, if it is wanted; labels in the titles may hold anything."""
    if not verbose:
        return []
    goal = stop.tol if stop.rule == "relative_gap" else None
    return Progress([printable(title) for title in titles], goal).parts


@contextmanager
def fitting(n_threads: int, lines: Sequence[Part]) -> Iterator[tuple[Cancel, Workers]]:
    """Interrupts are caught, BLAS has one thread, and whatever happens the terminal is left as it was."""
    cancel = Cancel()
    with ExitStack() as stack:
        stack.enter_context(cancel.on_interrupt())
        stack.enter_context(one_blas_thread())
        workers = Workers(n_threads)
        stack.callback(workers.close)
        for line in lines:
            stack.callback(line.close)
        yield cancel, workers
