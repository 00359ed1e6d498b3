"""One loop for every solver: the clock, the trace, the stop rules, the observers, interrupts, and the judge.

    state = init
    repeat:  measure -> record -> stop? -> step

A solver's claim to be done is put to the judge; if the judge disagrees the solver goes on with a smaller tolerance.
States are values: a step that is cut short by a time limit or an interrupt is discarded, and the last state stands.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import isnan
from typing import Any, Protocol

import numpy as np

from softmargin.core.errors import Abandoned, SoftmarginError
from softmargin.core.kinds import SUCH_AS, WHAT_IT_DOES
from softmargin.core.result import Certificate, Result, Solution
from softmargin.core.status import Status
from softmargin.core.stopping import BY_KKT, Measure, Stop
from softmargin.core.threads import Cancel, Workers
from softmargin.core.trace import Clock, Observer, Record, Trace

# How often the judge may send a solver back before the loop gives up.
MAX_DISPUTES = 20
# After a dispute about rounding the next claim is smaller by this many times the difference.
_SAFETY = 4.0
# Endings at a point where the stop rule may hold all the same.
_MAY_BE_CONFIRMED = (Status.STALLED, Status.BUDGET, Status.MAX_ITER, Status.SMALL_STEP)


class Solver(Protocol):
    """An algorithm as three functions on an explicit state."""

    @property
    def stopping(self) -> str:
        """The stop rule that `tol` is for: a key of `core.stopping.RULES`."""
        ...

    @property
    def needs(self) -> str:
        """The kind of problem that it solves: one of `core.kinds`."""
        ...

    @property
    def state_type(self) -> type:
        """What its states are: an earlier state is continued only by a solver of this kind."""
        ...

    def init(self, problem: Any, start: Any = None) -> Any:
        """The first state; `start` is an earlier state of the same data, or a `WeightStart`."""
        ...

    def step(self, problem: Any, state: Any) -> Any:
        """The next state: one plane, pivot, epoch, or slice of pair steps."""
        ...

    def measure(self, problem: Any, state: Any) -> Measure:
        """What the stop rule looks at."""
        ...

    def counts(self, state: Any) -> dict[str, int]:
        """iterations, planes, passes ...: costs that do not depend on the machine."""
        ...

    def solution(self, problem: Any, state: Any) -> Solution:
        """The candidate for the judge."""
        ...

    def is_stalled(self, state: Any) -> bool:
        """Whether floating point allows no further progress."""
        ...


def run(
    solver: Solver,
    problem: Any,
    stop: Stop,
    judge: Callable[[Solution], Certificate],
    *,
    start: Any = None,
    observers: Sequence[Observer] = (),
    workers: Workers | None = None,
    cancel: Cancel | None = None,
    max_disputes: int = MAX_DISPUTES,
) -> Result:
    """Run `solver` on `problem` until `stop` says so, and return what the judge found.

    An interrupt (Ctrl-C) does not propagate: it ends the solve with status INTERRUPTED, and the caller, who must
    store the result first, raises it again. Numbers that overflow end in an error: no result holds one that is none.
    """
    check_kind(solver, getattr(problem, "serves", None), type(problem).__name__)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        result = _run(solver, problem, stop, judge, start, observers, workers or Workers(1), cancel, max_disputes)
    solution = result.solution
    if not (np.isfinite(solution.b).all() and _is_finite(solution.w) and _is_finite(solution.alpha)):
        raise SoftmarginError(
            "numbers overflow or vanish in this fit, so that there is no model: X, C or the weights are too large "
            "or too small. Scale the features, for example with StandardScaler."
        )
    return result


def check_kind(solver: Any, serves: Sequence[str] | None, what: str) -> None:
    """Refuse a solver that needs another kind of problem; where one of them does not say its kind, anything goes."""
    needs = getattr(solver, "needs", None)
    if needs is not None and serves is not None and needs not in serves:
        raise SoftmarginError(
            f"solver={solver!r} {WHAT_IT_DOES[needs]}, and {what} is no such problem. Use "
            f"{', '.join(SUCH_AS[kind] for kind in serves)}."
        )


def _run(
    solver: Solver,
    problem: Any,
    stop: Stop,
    judge: Callable[[Solution], Certificate],
    start: Any,
    observers: Sequence[Observer],
    workers: Workers,
    cancel: Cancel | None,
    max_disputes: int,
) -> Result:
    """The loop itself."""
    clock = Clock()
    trace = Trace()
    solution: Solution | None = None
    certificate: Certificate | None = None
    judging = 0.0
    tol = stop.tol
    disputes = 0
    status: Status | None = None

    def out_of_time() -> bool:
        return stop.max_seconds is not None and clock.seconds - judging > stop.max_seconds

    def check_between_blocks() -> None:
        if cancel is not None:
            cancel.check()
        if out_of_time():
            raise Abandoned

    state = solver.init(problem, start)
    first_iteration = solver.counts(state)["iterations"]
    try:
        while status is None:
            measure = solver.measure(problem, state)
            counts = solver.counts(state)
            record = _record(clock.seconds, measure, counts)
            trace.append(record)
            stopped = _notify(observers, record, state)

            claimed = stop.value(measure)
            if measure.settled and claimed <= tol:
                began = clock.seconds
                solution = solver.solution(problem, state)
                certificate = judge(solution)
                judging += clock.seconds - began
                if _confirmed(stop, certificate, measure):
                    status = Status.STATIONARY if isnan(certificate.dual) else Status.OPTIMAL
                    break
                disputes += 1
                tol = min(tol, max(claimed, 0.0)) * _less(stop, claimed, certificate, measure)
                if disputes > max_disputes or _is_beyond_proof(stop, certificate, measure):
                    status = Status.UNCONFIRMED
                    break
            if measure.primal <= stop.target:
                status = Status.TARGET
            elif stopped:
                status = Status.STOPPED
            elif solver.is_stalled(state):
                status = Status.STALLED
            elif measure.is_short:
                status = Status.SMALL_STEP
            elif measure.spent:
                status = Status.BUDGET
            elif stop.max_iter is not None and counts["iterations"] - first_iteration >= stop.max_iter:
                status = Status.MAX_ITER
            elif cancel is not None and cancel.is_set:
                status = Status.INTERRUPTED
            elif out_of_time():
                status = Status.MAX_SECONDS
            else:
                try:
                    with workers.checking(check_between_blocks):
                        state = solver.step(problem, state)
                except Abandoned:
                    cancelled = cancel is not None and cancel.is_set
                    status = Status.INTERRUPTED if cancelled else Status.MAX_SECONDS
    except KeyboardInterrupt:
        status = Status.INTERRUPTED

    if solution is None or certificate is None or status not in (Status.OPTIMAL, Status.STATIONARY):
        solution = solver.solution(problem, state)
        began = clock.seconds
        certificate = judge(solution)
        judging += clock.seconds - began
        measure = solver.measure(problem, state)
        if status in _MAY_BE_CONFIRMED and _confirmed(stop, certificate, measure):
            status = Status.OPTIMAL
        elif status is Status.STALLED and _is_beyond_proof(stop, certificate, measure):
            status = Status.UNCONFIRMED
    seconds = {"total": clock.wall, "judge": judging, "compile": clock.compiling}
    remark = solver.remark(problem, state) if hasattr(solver, "remark") else ""
    return Result(solution, status, certificate, solver.counts(state), trace, state, seconds, remark)


def _is_finite(array: np.ndarray) -> bool:
    return array.size == 0 or bool(np.isfinite(array).all())


def _record(seconds: float, measure: Measure, counts: dict[str, int]) -> Record:
    return Record(
        iteration=counts["iterations"],
        seconds=seconds,
        primal=measure.primal,
        dual=measure.dual,
        planes=counts.get("planes", 0),
        passes=counts.get("passes", 0),
        kernel_evaluations=counts.get("kernel_evaluations", 0),
    )


def _notify(observers: Iterable[Observer], record: Record, state: Any) -> bool:
    answers = [observer(record, state) for observer in observers]  # all of them are told, whoever stops
    return any(answers)


def _confirmed(stop: Stop, certificate: Certificate, measure: Measure) -> bool:
    """Whether the stop rule also holds for what the judge computed.

    Without a bound (the problem is not convex) only the optimality conditions can be confirmed.
    """
    if isnan(certificate.dual):
        return stop.rule in BY_KKT and certificate.kkt_violation <= stop.tol
    return certificate.gap >= 0.0 and _judged(stop, certificate.gap, certificate, measure) <= stop.tol


def _less(stop: Stop, claimed: float, certificate: Certificate, measure: Measure) -> float:
    """What share of a claim that the judge did not confirm the solver has to reach next.

    A KKT violation is a computed number, which rounding in float32 rows changes by a few percent: then a little less is
    enough, and many steps are saved. Else it is a half.
    """
    if stop.rule not in BY_KKT or claimed <= 0.0:
        return 0.5
    excess = _judged(stop, certificate.gap, certificate, measure) / claimed - 1.0
    return min(max(1.0 - _SAFETY * excess, 0.5), 0.95)


def _is_beyond_proof(stop: Stop, certificate: Certificate, measure: Measure) -> bool:
    """Whether the rounding errors alone exceed what the stop rule allows, so that no further step can help."""
    return stop.rule not in BY_KKT and _judged(stop, certificate.rounding, certificate, measure) > stop.tol


def _judged(stop: Stop, gap: float, certificate: Certificate, measure: Measure) -> float:
    """The quantity of the stop rule, if the gap below the judge's primal value were this."""
    judged = replace(
        measure,
        primal=certificate.primal,
        dual=certificate.primal - gap,
        violation=gap / measure.scale if measure.scale > 0 else 0.0,
        kkt=certificate.kkt_violation,
    )
    return stop.value(judged)
