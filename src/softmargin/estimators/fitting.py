"""What is around the solve of every fit: threads, interrupts, progress lines, and what a fit leaves behind."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from softmargin.core.progress import Part, Progress
from softmargin.core.result import Certificate, Result
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.core.text import printable
from softmargin.core.threads import Cancel, Workers, one_blas_thread
from softmargin.estimators.warnings import ConvergenceWarning
from softmargin.tasks.layouts import ORIGIN


def progress_lines(verbose: int, titles: Sequence[str], stop: Stop) -> list[Part]:
    """An observer for each sub-problem, of one display, if it is wanted; labels in the titles may hold anything."""
    titles = [printable(title) for title in titles]
    goal = stop.tol if stop.rule == "relative_gap" else None
    return Progress(titles, goal).parts if verbose else []


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


def keep_outcome(estimator: Any, results: Sequence[Result]) -> None:
    """How it ended, with which proof, over all sub-problems; from which file an earlier fit came is forgotten."""
    for name in ORIGIN:
        vars(estimator).pop(name, None)
    estimator.certificates_ = [result.certificate for result in results]
    estimator.certificate_ = Certificate.combine(estimator.certificates_)
    estimator.status_ = Status.worst(result.status for result in results)
    estimator.seconds_ = {name: float(sum(r.seconds[name] for r in results)) for name in results[0].seconds}
    traces = [result.trace for result in results]
    estimator.trace_ = traces if len(traces) > 1 else traces[0]


def keep_state(estimator: Any, results: Sequence[Result], fingerprint: Callable[[], str]) -> None:
    """What `warm_start` continues from: kept when it is asked for, or when the fit ended early."""
    if estimator.warm_start or not estimator.status_.reached_goal:
        estimator._state = (fingerprint(), [result.state for result in results])
    elif hasattr(estimator, "_state"):
        del estimator._state


def warn_unless_done(estimator: Any, stop: Stop, stacklevel: int) -> None:
    """Once, with what was reached, what it bounds, and what to change; `stacklevel` is the caller's."""
    if estimator.status_.reached_goal or estimator.status_ is Status.STOPPED:
        return
    limits = {
        Status.MAX_ITER: f"raise max_iter (now {stop.max_iter})",
        Status.MAX_SECONDS: f"raise max_seconds (now {stop.max_seconds:g})" if stop.max_seconds else "",
        Status.BUDGET: "use solver='ocas', which is exact, or give the solver more passes (softmargin.SGD(epochs=100))",
    }
    if estimator.status_ in limits:
        advice = (
            f"To get closer, {limits[estimator.status_]}; warm_start=True and another fit continue from here. Features "
            "on similar scales (StandardScaler, MaxAbsScaler) need fewer iterations."
        )
    else:
        advice = (
            "Rounding in double precision allows no more: accept this by a larger tol, scale the features "
            "(StandardScaler, MaxAbsScaler), or lower C."
        )
    message = f"{estimator.status_} {_reached(estimator.certificate_, stop)} {advice}"
    warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel + 1)


def _reached(certificate: Certificate, stop: Stop) -> str:
    if stop.rule == "kkt":
        return f"The KKT violation is {certificate.kkt_violation:.2g} (tol={stop.tol:g})."
    gap = certificate.relative_gap
    goal = f"tol={stop.tol:g}" if stop.rule == "relative_gap" else f"tol={stop.tol:g} is for the rule {stop.rule!r}"
    return (
        f"The relative duality gap is {gap:.2g} ({goal}): the objective is at most {100 * max(gap, 0.0):.3g} % of its "
        "value above the optimum."
    )
