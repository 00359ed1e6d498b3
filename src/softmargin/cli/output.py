"""What the user sees: lines of names and values, JSON, errors without a traceback."""

import functools
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import typer

from softmargin.cli.wording import in_options
from softmargin.core.errors import SoftmarginError
from softmargin.core.text import printable

STOPPED_EARLY = 3


def reporting_errors(command: Callable[..., None]) -> Callable[..., None]:
    """A wrong file or parameter is told in one sentence and ends with exit code 1."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader, such as head, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except (SoftmarginError, OSError) as error:
            fail(in_options(sentence(error)))
        except MemoryError:
            fail("out of memory. Try --dtype float32, or fewer rows.")
        except KeyboardInterrupt:
            fail("interrupted; nothing was written.")

    return wrapped


def sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror is not None:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    return str(error)


def fail(sentence: str) -> None:
    with suppress(OSError):  # the terminal may be gone
        typer.echo(f"softmargin: {printable(sentence)}", err=True)
    raise typer.Exit(1)


def show(values: Mapping[str, Any], as_json: bool, *, apart: bool = False) -> None:
    """Lines "name  value", or one JSON object; a mapping inside is shown indented.

    `apart`: on the standard error, because the standard output carries the result itself.
    """
    if as_json:
        typer.echo(json.dumps(_plain(values), allow_nan=False), err=apart)
        return
    lines = list(_lines(values, ""))
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        typer.echo(f"{name.ljust(width)}  {text}".rstrip(), err=apart)


@contextmanager
def showing(activity: str, *, with_bar: bool = False) -> Iterator[Callable[[str, float], None]]:
    """On a terminal, what the program is doing and for how long; it is gone afterwards.

    What is yielded changes the activity, and the share of it that is done, which a bar shows.
    """
    if not is_watched():
        yield lambda activity, share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns: list[ProgressColumn] = [SpinnerColumn("line"), TextColumn("{task.description}", markup=False)]
    columns += [BarColumn(20)] if with_bar else []
    columns.append(TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(activity, total=1.0 if with_bar else None)
        yield lambda activity, share: progress.update(task, description=activity, completed=share)


def tell_at_once(sentence: str) -> None:
    """For answers to signals, which may come while anything is being written: no stream is used."""
    with suppress(OSError):
        os.write(2, f"\n{sentence}\n".encode())


def show_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """A table: all names, and a line for each row."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[str(name).replace("_", " ") for name in names]]
    cells += [[_short(row[name]) if name in row else "" for name in names] for row in rows]
    widths = [max(len(line[k]) for line in cells) for k in range(len(cells[0]))]
    for line in cells:
        typer.echo("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def note(sentence: str) -> None:
    """For the person at the terminal; what scripts read goes to the standard output."""
    typer.echo(printable(in_options(sentence)), err=True)


def is_watched() -> bool:
    return sys.stderr.isatty()


def _lines(values: Mapping[str, Any], indent: str) -> Any:
    for name, value in values.items():
        title = indent + printable(str(name).replace("_", " "))
        if isinstance(value, Mapping):
            yield title, ""
            yield from _lines(value, indent + "  ")
        else:
            yield title, _text(value)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, list | tuple):
        return " ".join(_text(item) for item in value)
    return "none" if value is None else printable(str(value))


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else _text(value)


def _plain(value: Any) -> Any:
    """For JSON: NumPy's numbers as Python's, numbers that are not finite as null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
