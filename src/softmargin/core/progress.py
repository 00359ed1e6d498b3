"""A progress line on the terminal: iteration, primal, bound, gap, time. Uses rich where it is installed."""

import shutil
import sys
from typing import Any, TextIO

from softmargin.core.trace import Record

REFRESH_SECONDS = 0.1


class ProgressLine:
    """Observer that rewrites one line while a solve runs and leaves the last one standing.

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
        if self._terminal:
            if record.seconds - self._last_shown >= REFRESH_SECONDS:
                self._last_shown = record.seconds
                self._show(final=False)
        elif record.gap < self._next_gap:
            self._next_gap = record.gap / 10
            self._show(final=True)

    def text(self, record: Record) -> str:
        goal = "" if self.tol is None else f" ({self.tol:.0e})"
        relative = record.gap / max(abs(record.primal), 1e-300)
        return (
            f"{record.seconds:6.1f} s  iteration {record.iteration:>4d}  primal {record.primal:.4e}  "
            f"bound {record.dual:.4e}  gap {relative:.0e}{goal}"
        )

    def _show(self, final: bool) -> None:
        if self._record is None:
            return
        line = self.text(self._record) if self._terminal else f"{self.title}  {self.text(self._record)}"
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
