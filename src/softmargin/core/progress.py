"""A progress line on the terminal: how far the gap has closed, time left, iteration, primal, bound."""

import math
import shutil
import sys
from typing import Any, TextIO

from softmargin.core.trace import Record

REFRESH_SECONDS = 0.1
BAR_WIDTH = 20


class Closing:
    """How far the gap has closed towards `tol` on a log scale, and how long the rest may take at the recent pace."""

    def __init__(self, tol: float) -> None:
        self._goal = math.log(tol)
        self._begin: float | None = None
        self._seen: list[tuple[float, float]] = []  # seconds and share, as they grow

    def tell(self, record: Record) -> None:
        gap = record.relative_gap
        if not 0.0 < gap < math.inf:
            return
        self._begin = max(math.log(gap), self._goal + 1e-9) if self._begin is None else self._begin
        share = (self._begin - math.log(gap)) / (self._begin - self._goal)
        self._seen.append((record.seconds, min(max(share, self.share), 1.0)))

    @property
    def share(self) -> float:
        return self._seen[-1][1] if self._seen else 0.0

    @property
    def seconds_left(self) -> float | None:
        """At the pace of the later half of the time so far; None while there is none."""
        if len(self._seen) < 3:
            return None
        now, share = self._seen[-1]
        then, earlier = next(seen for seen in self._seen if seen[0] >= now / 2)
        return (1.0 - share) * (now - then) / (share - earlier) if share > earlier and now > then else None

    def bar(self) -> str:
        filled = int(BAR_WIDTH * self.share)
        return "[" + "#" * filled + "-" * (BAR_WIDTH - filled) + "]"


class ProgressLine:
    """Observer that rewrites one line while a solve runs (with rich where it is installed) and leaves the last one.

    On a terminal the line is refreshed at most ten times a second. Elsewhere (a log file), and where several solves
    share the terminal (`alone=False`), a line is written whenever the gap has fallen by a factor of ten.
    """

    def __init__(self, title: str, tol: float | None, *, alone: bool = True, stream: TextIO | None = None) -> None:
        self.title, self.tol = title, tol
        self._stream = stream if stream is not None else sys.stderr
        self._terminal = alone and self._stream.isatty()
        self._last_shown = -float("inf")
        self._next_gap = float("inf")
        self._record: Record | None = None
        self._closed = False
        self._closing = Closing(tol) if tol else None
        self._live = self._open_live() if self._terminal else None

    def _open_live(self) -> Any:
        try:
            from rich.console import Console
            from rich.live import Live
        except ImportError:
            return None
        live = Live(
            console=Console(file=self._stream),
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        live.start()
        return live

    def __call__(self, record: Record, _state: Any = None) -> None:
        self._record = record
        if self._closing is not None:
            self._closing.tell(record)
        if self._terminal:
            if record.seconds - self._last_shown >= REFRESH_SECONDS:
                self._last_shown = record.seconds
                self._show(final=False)
        elif record.gap < self._next_gap:
            self._next_gap = record.gap / 10
            self._show(final=True)

    def text(self, record: Record) -> str:
        goal = "" if self.tol is None else f" ({self.tol:.0e})"
        return (
            f"{record.seconds:6.1f} s  iteration {record.iteration:>4d}  primal {record.primal:.4e}  "
            f"bound {record.dual:.4e}  gap {record.relative_gap:.0e}{goal}"
        )

    def bar(self, record: Record) -> str:
        """The most telling things first: a narrow terminal cuts off the rest."""
        if self._closing is None:
            return self.text(record)
        left = self._closing.seconds_left
        rest = "" if left is None else f"  ~{_duration(left)} left"
        return (
            f"{self._closing.bar()} gap {record.relative_gap:.1e} (tol {self.tol:.0e})  {record.seconds:.1f} s{rest}  "
            f"iteration {record.iteration}  primal {record.primal:.6g}  bound {record.dual:.6g}"
        )

    def _show(self, final: bool) -> None:
        if self._record is None:
            return
        line = self.bar(self._record) if self._terminal else f"{self.title}  {self.text(self._record)}"
        if self._live is not None:
            from rich.text import Text

            self._live.update(Text(line, no_wrap=True, overflow="ellipsis"), refresh=True)
        elif self._terminal:
            width = shutil.get_terminal_size().columns - 1  # a wrapped line could not be rewritten
            self._stream.write("\r" + line[:width].ljust(width) + ("\n" if final else ""))
        else:
            self._stream.write(line + "\n")
        self._stream.flush()

    def close(self, sentence: str = "") -> None:
        """Show the last record, then how the solve ended. Closing again does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._terminal:
            self._show(final=True)
        if self._live is not None:
            self._live.stop()
        if sentence:
            self._stream.write(f"{self.title}  {sentence}\n")
        self._stream.flush()


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
