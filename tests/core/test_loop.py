"""The one loop, with solvers made up for the purpose."""

import time
from dataclasses import dataclass, replace

import numpy as np
import pytest

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Certificate, Solution
from softmargin.core.status import Status
from softmargin.core.stopping import Measure, Stop, relative_gap
from softmargin.core.threads import Cancel, Workers
from softmargin.core.trace import Record, Trace
from softmargin.solvers.base import MAX_DISPUTES, run


@dataclass(frozen=True)
class State:
    gap: float = 1.0
    iterations: int = 0


class Halving:
    """Halves the gap in every step; `after` runs inside a step."""

    stopping = "relative_gap"

    def __init__(self, after=lambda state: None, stalls_at=None):
        self.after, self.stalls_at = after, stalls_at

    def init(self, problem, start=None):
        return start or State()

    def step(self, problem, state):
        self.after(state)
        return replace(state, gap=state.gap / 2, iterations=state.iterations + 1)

    def measure(self, problem, state):
        return Measure(primal=10.0 + state.gap, dual=10.0, scale=10.0, violation=state.gap / 10)

    def counts(self, state):
        return {"iterations": state.iterations, "planes": 1, "passes": 2 * state.iterations}

    def solution(self, problem, state):
        return Solution(np.array([state.gap]), 0.0, np.zeros(1))

    def is_stalled(self, state):
        return self.stalls_at is not None and state.iterations >= self.stalls_at


def judge_with(factor):
    """A judge that finds `factor` times the gap that the solver believes in."""

    def judge(solution):
        gap = float(solution.w[0]) * factor
        return Certificate(10.0 + gap, 10.0, gap, relative_gap(10.0 + gap, 10.0, 10.0), 0.0)

    return judge


def test_stops_when_the_judge_agrees():
    result = run(Halving(), None, Stop(tol=1e-3), judge_with(1.0))
    assert result.status is Status.OPTIMAL
    assert result.certificate.relative_gap <= 1e-3
    assert result.counts["iterations"] == 7
    assert list(result.trace["iteration"]) == list(range(8))
    assert set(result.seconds) == {"total", "judge", "compile"}


def test_goes_on_when_the_judge_disagrees():
    result = run(Halving(), None, Stop(tol=1e-3), judge_with(100.0))
    assert result.status is Status.OPTIMAL
    assert result.certificate.relative_gap <= 1e-3
    assert result.counts["iterations"] > 7


def test_gives_up_on_a_judge_that_never_agrees():
    def never(solution):
        return Certificate(20.0, 10.0, 10.0, 0.5, 1.0)

    result = run(Halving(), None, Stop(tol=1e-3), never)
    assert result.status is Status.UNCONFIRMED
    assert result.certificate.relative_gap == 0.5
    assert result.counts["iterations"] <= 7 + 2 * MAX_DISPUTES


@pytest.mark.parametrize(
    ("stop", "status"),
    [
        (Stop(tol=0.0, max_iter=4), Status.MAX_ITER),
        (Stop(tol=0.0, max_seconds=0.0), Status.MAX_SECONDS),
        (Stop(tol=0.0, target=10.1), Status.TARGET),
    ],
)
def test_limits(stop, status):
    result = run(Halving(), None, stop, judge_with(1.0))
    assert result.status is status
    assert result.certificate.gap == pytest.approx(result.solution.w[0])


def test_max_iter_counts_the_steps_of_this_run():
    first = run(Halving(), None, Stop(tol=0.0, max_iter=3), judge_with(1.0))
    second = run(Halving(), None, Stop(tol=0.0, max_iter=3), judge_with(1.0), start=first.state)
    assert second.counts["iterations"] == 6


def test_stalled_is_honest_and_optimal_if_the_judge_says_so():
    assert run(Halving(stalls_at=3), None, Stop(tol=1e-9), judge_with(1.0)).status is Status.STALLED
    assert run(Halving(stalls_at=3), None, Stop(tol=1e-3), judge_with(0.0)).status is Status.OPTIMAL


def test_an_interrupt_keeps_the_last_state():
    def interrupt(state):
        if state.iterations == 3:
            raise KeyboardInterrupt

    result = run(Halving(interrupt), None, Stop(tol=0.0), judge_with(1.0))
    assert result.status is Status.INTERRUPTED
    assert result.state.iterations == 3
    assert result.certificate.gap == pytest.approx(1 / 8)


def test_a_step_is_abandoned_between_blocks():
    workers = Workers(1)
    cancel = Cancel()

    def blocks(state):
        if state.iterations == 2:
            cancel.set()
        workers.map(lambda k: k, [(1,), (2,)])

    result = run(Halving(blocks), None, Stop(tol=0.0), judge_with(1.0), workers=workers, cancel=cancel)
    assert result.status is Status.INTERRUPTED
    assert result.state.iterations == 2


def test_a_time_limit_cuts_a_step_short():
    workers = Workers(1)

    def endless(state):
        if state.iterations == 1:
            workers.map(lambda k: time.sleep(1e-3), [(k,) for k in range(10**4)])

    result = run(Halving(endless), None, Stop(tol=0.0, max_seconds=0.05), judge_with(1.0), workers=workers)
    assert result.status is Status.MAX_SECONDS
    assert result.state.iterations == 1


def test_observers_see_every_record_and_may_stop():
    seen = []

    def observer(record, state):
        seen.append((record.iteration, state.iterations))
        return record.iteration == 4

    result = run(Halving(), None, Stop(tol=0.0), judge_with(1.0), observers=[observer])
    assert result.status is Status.STOPPED
    assert seen == [(k, k) for k in range(5)]


def test_the_epsilon_rule_looks_at_the_violation():
    result = run(Halving(), None, Stop(tol=0.01, rule="epsilon"), judge_with(1.0))
    assert result.status is Status.OPTIMAL
    assert result.state.gap == pytest.approx(1 / 16)


def test_unknown_rule():
    with pytest.raises(SoftmarginError, match="unknown stop rule"):
        Stop(rule="guess")


def test_every_status_is_a_sentence():
    for status in Status:
        assert str(status).endswith(".")
        assert str(status)[0].isupper()


def test_trace_columns():
    trace = Trace([Record(0, 0.0, 2.0, 1.0, 1, 0), Record(1, 0.1, 1.5, 1.2, 2, 2)])
    np.testing.assert_array_equal(trace["primal"], [2.0, 1.5])
    assert trace[-1].gap == pytest.approx(0.3)
    assert list(trace.to_dict()) == list(Trace.columns)
    assert "2 records" in repr(trace)
    with pytest.raises(KeyError, match="choose one of"):
        trace["colour"]


def test_combined_certificate():
    parts = [Certificate(2.0, 1.0, 1.0, 0.5, 0.1, 0.25), Certificate(10.0, 9.0, 1.0, 0.1, 0.3, 0.5)]
    both = Certificate.combine(parts)
    assert (both.primal, both.dual, both.gap) == pytest.approx((12.0, 10.0, 2.0))
    assert both.dual < 10.0 < 12.0 < both.primal  # sums are rounded outwards
    assert both.rounding == 0.75
    assert (both.relative_gap, both.kkt_violation) == (0.5, 0.3)
    assert Certificate.combine(parts[:1]) is parts[0]
    assert "relative 0.5" in str(both)
