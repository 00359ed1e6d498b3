"""One table, three forms: printed, `<name>.md` and `<name>.json`; and the options that all scripts share."""

import argparse
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.cells import Cells, head
from benchmarks.writing import thinned, write_json, write_whole

RESULTS = Path(__file__).resolve().parent / "results"


def options(description: str | None) -> argparse.ArgumentParser:
    """The parser of a table script; scripts may add to it."""
    parser = argparse.ArgumentParser(description=(description or "").strip().splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny generated data, a smoke test: no file is written")
    parser.add_argument("--out", type=Path, help="folder of the results (default: benchmarks/results)")
    return parser


class Table:
    """A measurement under construction. `columns` are key -> (title, format); JSON keeps every key."""

    def __init__(
        self,
        name: str,
        title: str,
        columns: Mapping[str, tuple[str, str | Callable]],
        threads: str,
        args: Any,
    ) -> None:
        self.name, self.title, self.columns, self.threads, self.args = name, title, columns, threads, args
        self.machine = machine.describe()
        self.rows: list[dict[str, Any]] = []
        self.settings: dict[str, Any] = {}  # of rows that were measured in cells
        self.missing: list[str] = []  # cells that are not there yet
        self.notes: list[str] = []
        self.cells = Cells(self)

    def add(self, **row: Any) -> None:
        """Append a row, and show it at once: the whole may take many minutes."""
        self.rows.append(row)
        shown = (f"{title}: {_cell(row.get(key), form)}" for key, (title, form) in self.columns.items())
        print("  " + ", ".join(shown), flush=True)

    def finish(self, *notes: str) -> None:
        """Print the table; write it unless this is a smoke test without --out."""
        self.notes += notes
        self.machine = head(self.machine, self.rows)
        text = self.markdown()
        print("\n" + text)
        folder = self.args.out or (None if self.args.quick else RESULTS)
        if folder is None:
            return
        content = {"name": self.name, "title": self.title, "quick": self.args.quick, "threads": self.threads}
        content |= {"settings": self.settings} if self.settings else {}
        content |= {"missing": self.missing} if self.missing else {}
        content |= {"machine": self.machine, "notes": self.notes, "rows": [thinned(row) for row in self.rows]}
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / f"{self.name}.json", content)
        write_whole(folder / f"{self.name}.md", text)

    def markdown(self) -> str:
        m = self.machine
        versions = ", ".join(f"{name} {version}" for name, version in m["versions"].items())
        head = [
            f"# {self.title}",
            "",
            f"- machine: {m['cpu']}, {machine.cores(m)}, {m['memory_gib']} GiB, {m['system']}; "
            f"load {m['load_average']} at the start",
            f"- versions: {versions}",
            f"- threads: {self.threads}",
            f"- commit: {m['commit']}; {m['date']}",
        ]
        if self.args.quick:
            head.append("- **smoke test on generated data: the numbers mean nothing**")
        titles = [title for title, _ in self.columns.values()]
        numeric = [self._is_numeric(key) for key in self.columns]
        body = [titles, ["--:" if right else "---" for right in numeric]]
        body += [[_cell(row.get(key), form) for key, (_, form) in self.columns.items()] for row in self.rows]
        lines = ["| " + " | ".join(cells) + " |" for cells in body]
        return "\n".join([*head, "", *lines, "", *(f"- {note}" for note in self.notes)]).rstrip() + "\n"

    def _is_numeric(self, key: str) -> bool:
        values = [row.get(key) for row in self.rows]
        return all(isinstance(v, int | float) and not isinstance(v, bool) for v in values if v is not None)


def _cell(value: Any, form: str | Callable) -> str:
    if callable(form):
        return form(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    return format(value, form)
