"""Long tables, cell by cell: each is written as soon as it is measured, so that a run can be stopped and go on later.

A cell is what is measured in one go and adds rows to the table, such as all solvers on one data set:

    for name in table.cells.each(names):
        table.add(...)

Finished cells are in `<table>.part.json` beside the results until the table is whole. A cell that takes hours has
parts, whose plain values are kept in the same file:

    found = table.cells.part("OCAS, C = 10", fit, problem, 10.0)
"""

import argparse
import json
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.writing import plain, thinned, write_json

STOPPED = 3  # exit status of a run that has not come to its end
# Options that do not change what a cell is.
FREE = ("out", "render", "only", "add", "goes_on", "seconds", "since")


class OutOfTimeError(Exception):
    """The seconds of --seconds are over, and a new cell would begin."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """For scripts whose rows are measured in cells."""
    text = "keep the cells of an unfinished run, or of the last results, and measure only what is missing"
    parser.add_argument("--continue", dest="goes_on", action="store_true", help=text)
    parser.add_argument("--seconds", type=float, metavar="S", help="begin no cell after so many seconds")
    text = "with --continue: cells that were measured before this day (such as 2026-11-19) are missing too"
    parser.add_argument("--since", metavar="DAY", default="", help=text)


class Cells:
    """What a table has already measured; `table` has name, args, rows and machine."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.path: Path | None = None
        self.names: list[str] = []  # of this run
        self._known: list[str] = []  # of the run that it goes on with, which may have more
        self.settings: dict[str, Any] = {}  # the options that decide what a cell is
        self._done: dict[str, list[dict[str, Any]]] = {}
        self._parts: dict[str, dict[str, dict[str, Any]]] = {}
        self._open = ""
        self._end = float("inf")

    @property
    def missing(self) -> list[str]:
        return [name for name in self.names if name not in self._done]

    def begin(self, folder: Path | None) -> None:
        """Take up what is in this folder, if that is asked for. Without a folder nothing is written."""
        args = self.table.args
        self.settings = plain({key: value for key, value in vars(args).items() if key not in FREE})
        self._end = time.monotonic() + (float("inf") if args.seconds is None else args.seconds)
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{self.table.name}.part.json"
        if args.goes_on:
            self._take_up(folder / f"{self.table.name}.json")

    def _take_up(self, whole: Path) -> None:
        if self.path is not None and self.path.exists():
            kept = _read(self.path)
            if kept["settings"] != self.settings:
                raise SystemExit(
                    f"The unfinished run in {self.path.name} was made with other options: {kept['settings']}. Give "
                    "these, or begin anew without --continue."
                )
            cells, parts, self._known = kept["cells"], kept["parts"], kept["names"]
        else:
            content = _read(whole) if whole.exists() else {"rows": []}
            cells, parts = by_cell(content["rows"]) if content.get("settings") == self.settings else {}, {}
        since = self.table.args.since
        self._done = {name: rows for name, rows in cells.items() if all(row["date"] >= since for row in rows)}
        cpu = self.table.machine["cpu"]  # the seconds of a cell are those of one machine
        self._parts = {
            name: {key: part for key, part in found.items() if part["date"] >= since and part["cpu"] == cpu}
            for name, found in parts.items()
        }

    def each(self, keys: Sequence[Any], name: Callable[[Any], str] = str) -> Iterator[Any]:
        """The cells that are still to be measured. The rows that are added while one is open are its rows."""
        table = self.table
        self.names += [name(key) for key in keys]
        for key in keys:
            self._open = name(key)
            if self._open in self._done:
                print(f"  kept: {self._open}", flush=True)
                table.rows += self._done[self._open]
                continue
            self._check_time()
            n_rows = len(table.rows)
            # A cell is of the code that its parts were measured with, too.
            parts = [*self._parts.get(self._open, {}).values()]
            commits = [*(part["commit"] for part in parts), table.machine["commit"]]
            earlier, began = sum(part["took"] for part in parts), time.monotonic()
            yield key
            stamp = self._stamp(", ".join(dict.fromkeys(commits)), earlier + time.monotonic() - began)
            new = [thinned(row) | {"cell": self._open} | stamp for row in table.rows[n_rows:]]
            table.rows[n_rows:] = self._done[self._open] = new
            self._parts.pop(self._open, None)
            self._write()

    def part(self, key: str, measure: Callable[..., Any], *arguments: Any) -> Any:
        """A part of the open cell: as it was kept, or measured now. The value must be one that JSON can hold."""
        parts = self._parts.setdefault(self._open, {})
        if key not in parts:
            self._check_time()
            began = time.monotonic()
            value = plain(measure(*arguments))
            parts[key] = self._stamp(self.table.machine["commit"], time.monotonic() - began) | {"value": value}
            self._write()
        return plain(parts[key]["value"])  # a copy

    def _stamp(self, commit: str, seconds: float) -> dict[str, Any]:
        """Of a cell or a part of one; `took` are all its seconds, those that nothing reports included."""
        machine = self.table.machine
        return {"commit": commit, "date": machine["date"], "cpu": machine["cpu"], "took": round(seconds, 2)}

    def _check_time(self) -> None:
        if time.monotonic() >= self._end:
            raise OutOfTimeError

    def _write(self) -> None:
        if self.path is not None:
            names = list(dict.fromkeys([*self._known, *self.names]))
            content = {"name": self.table.name, "settings": self.settings, "names": names}
            write_json(self.path, content | {"cells": self._done, "parts": self._parts})

    def take_unfinished(self, folder: Path) -> None:
        """The rows of an unfinished run, to be shown with what is missing."""
        path = folder / f"{self.table.name}.part.json"
        if not path.exists():
            raise SystemExit(f"There is no unfinished run in {path}.")
        kept = _read(path)
        self.names, self.settings, self._done = kept["names"], kept["settings"], kept["cells"]
        if not self._done:
            raise SystemExit(f"No cell of {path.name} is finished: go on with --continue.")
        self.table.rows[:] = [row for name in self.names for row in self._done.get(name, [])]

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """Ctrl-C, a signal to end, and the end of the time leave what is there, and say how much is missing."""

        def interrupt(*_: Any) -> None:
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGTERM, interrupt)
        try:
            yield
        except (KeyboardInterrupt, OutOfTimeError):
            print(f"\n{self.state()}", flush=True)
            raise SystemExit(STOPPED) from None
        finally:
            signal.signal(signal.SIGTERM, before)

    def state(self) -> str:
        said = f"{len(self.missing)} of {len(self.names)} cells are missing"
        return f"{said}; nothing is written of a part." if self.path is None else f"{said}; go on with --continue."

    def end(self) -> None:
        """The table is written: what was kept for it goes, unless it has cells of more than this run."""
        if self.path is not None and self._done.keys() <= set(self.names):
            self.path.unlink(missing_ok=True)


def minutes(rows: Sequence[dict[str, Any]]) -> float | None:
    """What a table took, None where it was not measured in cells."""
    found = by_cell(rows)
    return sum(cell[0]["took"] for cell in found.values()) / 60.0 if found else None


def by_cell(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Rows that were measured in cells, by these; others are left out."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if "cell" in row:
            found.setdefault(row["cell"], []).append(row)
    return found


def head(machine: dict[str, Any], rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The machine of a table, with the commits, processors and the last day of its cells."""
    cells = [row for row in rows if "cell" in row]
    if not cells:
        return machine
    commits = dict.fromkeys(commit for row in cells for commit in row["commit"].split(", "))
    processors = dict.fromkeys(row["cpu"] for row in cells)
    return machine | {
        "commit": ", ".join(commits),
        "cpu": ", ".join(processors),
        "date": max(row["date"] for row in cells),
    }


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))
