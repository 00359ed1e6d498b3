"""Where progress is shown: a line of the terminal that is rewritten, or a bar in a notebook."""

import html
import shutil
import sys
from typing import Any, Protocol, TextIO


class Display(Protocol):
    """Shows a share between 0 and 1 (None: unknown) and a text, in the place of what it showed before."""

    def show(self, share: float | None, text: str) -> None: ...

    def close(self, sentences: list[str], *, keep: bool) -> None:
        """Leave what is shown, or take it away, and say how it ended."""
        ...


def display_for(stream: TextIO | None) -> Display | None:
    """What fits the surroundings; None where nothing can be rewritten, as in a log file."""
    if stream is None and (notebook := _notebook()) is not None:
        return NotebookBar(notebook)
    stream = sys.stderr if stream is None else stream
    return TerminalLine(stream) if stream.isatty() else None


class TerminalLine:
    """One line, by rich where it is installed."""

    WIDTH = 20

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = self._open_live()

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

    def show(self, share: float | None, text: str) -> None:
        line = text if share is None else f"{_hashes(share, self.WIDTH)} {text}"
        if self._live is not None:
            from rich.text import Text

            self._live.update(Text(line, no_wrap=True, overflow="ellipsis"), refresh=True)
        else:
            width = shutil.get_terminal_size().columns - 1  # a wrapped line could not be rewritten
            self._stream.write("\r" + line[:width].ljust(width))
        self._stream.flush()

    def close(self, sentences: list[str], *, keep: bool) -> None:
        if self._live is not None:
            self._live.transient = not keep
            self._live.stop()
        elif keep:
            self._stream.write("\n")
        else:
            self.show(None, "")
            self._stream.write("\r")
        self._stream.writelines(f"{sentence}\n" for sentence in sentences)
        self._stream.flush()


class NotebookBar:
    """A bar below the cell, in Jupyter and what else runs an IPython kernel."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._handle: Any = None
        self._shown: tuple[float | None, str] = (None, "")

    def show(self, share: float | None, text: str) -> None:
        self._shown = share, text
        self._publish("")

    def close(self, sentences: list[str], *, keep: bool) -> None:
        if not keep:
            self._shown = None, ""
        self._publish("\n".join(sentences))

    def _publish(self, below: str) -> None:
        share, text = self._shown
        bar = "" if share is None else f'<progress max="1" value="{share:.3f}" style="width: 16em"></progress> '
        end = "".join(f"<br>{html.escape(line)}" for line in below.splitlines())
        bundle = {
            "text/html": f"<div>{bar}<code>{html.escape(text)}</code>{end}</div>",
            "text/plain": f"{text}\n{below}".rstrip(),
        }
        if self._handle is None:
            self._handle = self._module.display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def _notebook() -> Any:
    """IPython's display module if this process is the kernel of a notebook, else None."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is None:
        return None
    import IPython.display

    return IPython.display


def _hashes(share: float, width: int) -> str:
    filled = int(width * share)
    return "[" + "#" * filled + "-" * (width - filled) + "]"
