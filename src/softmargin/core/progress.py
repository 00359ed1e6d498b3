"""What a fit with `verbose=1` shows: how far the gap has closed, time left, iteration, primal, bound."""

import math
import sys
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from softmargin.core.display import display_for
from softmargin.core.trace import Record

REFRESH_SECONDS = 0.1
# The time left is shown once a fit has taken PACE_SECONDS and the gap has closed by PACE_SHARE. Any earlier estimate
# would be a guess.
PACE_SECONDS = 1.0
PACE_SHARE = 0.1
# If the recent pace is below this share of the average pace so far, something holds the fit up. Nobody knows for how
# long, so no time is shown.
HELD_UP = 0.25


class Closing:
    """How far the gap of one problem has closed towards `tol`, as a share on a log scale. It never falls."""

    def __init__(self, tol: float) -> None:
        self._goal = math.log(tol)
        self._begin: float | None = None
        self.share = 0.0

    def tell(self, record: Record) -> None:
        gap = record.relative_gap
        if gap <= 0.0:
            self.share = 1.0
        elif gap < math.inf:
            self._begin = max(math.log(gap), self._goal + 1e-9) if self._begin is None else self._begin
            share = (self._begin - math.log(gap)) / (self._begin - self._goal)
            self.share = min(max(share, self.share), 1.0)


class Pace:
    """How long the rest may take, at the pace of the later half of the time so far."""

    def __init__(self) -> None:
        self._seconds: list[float] = []
        self._shares: list[float] = []

    def tell(self, seconds: float, share: float) -> None:
        self._seconds.append(seconds)
        self._shares.append(share)

    @property
    def seconds_left(self) -> float | None:
        """None while there is no honest estimate."""
        if len(self._seconds) < 3:
            return None
        now, share = self._seconds[-1], self._shares[-1]
        if now < PACE_SECONDS or not PACE_SHARE <= share < 1.0:
            return None
        half = bisect_left(self._seconds, now / 2)
        then, earlier = self._seconds[half], self._shares[half]
        gained, passed = share - earlier, now - then
        if passed <= 0.0 or gained / passed < HELD_UP * share / now:
            return None
        return (1.0 - share) * passed / gained


class Progress:
    """One bar for all sub-problems of a fit, in a terminal or a notebook; elsewhere (a log file) lines.

    The bar is drawn anew at most ten times a second. In a log file a sub-problem gets a line whenever its gap has
    fallen by a factor of ten. `parts` are the observers of the sub-problems. Seconds are those on the wall, and so
    include compiling.
    """

    def __init__(
        self,
        titles: Sequence[str],
        tol: float | None,
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.tol = tol
        self.parts = [Part(self, title, tol) for title in titles]
        self._stream = sys.stderr if stream is None else stream
        self._clock, self._began = clock, clock()
        self._lock = threading.RLock()  # sub-problems run in several threads; a listener may be called while one shows
        self._pace = Pace()
        self._shown_at = -math.inf
        self._is_closed = False
        self._display = display_for(stream)
        self._listening: Callable[[], None] | None = None
        if self._display is not None:
            self._display.show(None, "starting")
            self._listening = _listen_to_compiler(self._compiling)

    @property
    def seconds(self) -> float:
        return self._clock() - self._began

    @contextmanager
    def _showing(self) -> Iterator[None]:
        """One thread at a time; a terminal that is gone, or a full disk under a log, does not end the fit."""
        with self._lock, suppress(OSError):
            yield

    def tell(self, part: "Part", record: Record) -> None:
        with self._showing():
            if self._display is None:
                if record.gap < part.next_gap:
                    part.next_gap = record.gap / 10
                    self._write(part, record)
                return
            now = self.seconds
            share = self._share()
            self._pace.tell(now, 0.0 if share is None else share)
            if now - self._shown_at >= REFRESH_SECONDS:
                self._shown_at = now
                self._display.show(share, self.text())

    def _write(self, part: "Part", record: Record) -> None:
        part.written = record
        self._stream.write(f"{part.title}  {self._figures(record)}\n")
        self._stream.flush()

    def _share(self) -> float | None:
        shares = [part.share for part in self.parts]
        return None if None in shares else sum(shares) / len(shares)  # type: ignore[arg-type]

    def text(self) -> str:
        """The most telling things first: a narrow terminal cuts off the rest."""
        records = [part.record for part in self.parts if part.record is not None]
        if not records:
            return "starting"
        if len(self.parts) == 1 and self.tol is None:
            return self._figures(records[0])
        worst = max(records, key=lambda record: record.relative_gap)
        left = self._pace.seconds_left
        rest = "" if left is None else f"  ~{_duration(left)} left"
        goal = "" if self.tol is None else f" (tol {self.tol:.0e})"
        text = f"gap {worst.relative_gap:.1e}{goal}  {self.seconds:.1f} s{rest}"
        if len(self.parts) == 1:
            return f"{text}  iteration {worst.iteration}  primal {worst.primal:.6g}  bound {worst.dual:.6g}"
        done = sum(part.share == 1.0 for part in self.parts)
        return f"{done} of {len(self.parts)} sub-problems  {text}"

    def _figures(self, record: Record) -> str:
        goal = "" if self.tol is None else f" ({self.tol:.0e})"
        return (
            f"{self.seconds:6.1f} s  iteration {record.iteration:>4d}  primal {record.primal:.4e}  "
            f"bound {record.dual:.4e}  gap {record.relative_gap:.0e}{goal}"
        )

    def _compiling(self) -> None:
        with self._showing():
            if self._display is not None and not self._is_closed:
                self._display.show(None, f"compiling  {self.seconds:.1f} s")

    def end(self) -> None:
        """When all parts are closed: show the last records, then how the solves ended."""
        with self._showing():
            if self._is_closed or not all(part.is_closed for part in self.parts):
                return
            self._is_closed = True
            if self._listening is not None:
                self._listening()
            if self._display is None:
                for part in self.parts:
                    if part.record is not None and part.record is not part.written:
                        self._write(part, part.record)
                self._stream.writelines(f"{part.title}  {part.ending}\n" for part in self.parts if part.ending)
                self._stream.flush()
                return
            has_begun = any(part.record is not None for part in self.parts)
            if has_begun:
                self._display.show(self._share(), self.text())
            endings = Counter(part.ending for part in self.parts if part.ending)
            if len(self.parts) == 1:
                sentences = [f"{self.parts[0].title}  {ending}" for ending in endings]
            elif len(endings) == 1:
                sentences = list(endings)
            else:
                sentences = [f"{n} of {len(self.parts)} sub-problems: {ending}" for ending, n in endings.items()]
            self._display.close(sentences, keep=has_begun)


class Part:
    """The observer of one sub-problem."""

    def __init__(self, progress: Progress, title: str, tol: float | None) -> None:
        self._progress, self.title = progress, title
        self._closing = Closing(tol) if tol else None
        self.record: Record | None = None
        self.written: Record | None = None
        self.next_gap = math.inf
        self.is_closed = False
        self.ending = ""

    @property
    def share(self) -> float | None:
        return None if self._closing is None else self._closing.share

    def __call__(self, record: Record, _state: Any = None) -> None:
        self.record = record
        if self._closing is not None:
            self._closing.tell(record)
        self._progress.tell(self, record)

    def close(self, sentence: str = "") -> None:
        """No more records; the sentence says how it ended. Closing again does nothing."""
        if not self.is_closed:
            self.is_closed, self.ending = True, sentence
            self._progress.end()


def _listen_to_compiler(tell: Callable[[], None]) -> Callable[[], None]:
    """Calls `tell` whenever a function is compiled, not loaded from the cache; returns what ends this."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, _event: Any) -> None:
            tell()

        def on_end(self, _event: Any) -> None:
            pass

    listener = Listener()
    event.register("numba:compile", listener)
    return lambda: event.unregister("numba:compile", listener)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
