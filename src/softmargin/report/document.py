"""What a report is made of, before it becomes HTML or Markdown: sections that hold facts, tables, charts and notes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Fact:
    """A number with its name, and a sentence that says what it means."""

    name: str
    value: str
    meaning: str


@dataclass(frozen=True)
class Facts:
    facts: Sequence[Fact]


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Note:
    """A sentence that asks for attention. `level` is "good", "look" or "bad"."""

    level: str
    text: str


@dataclass(frozen=True)
class Code:
    """Something to copy: a command."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows of numbers and texts; in HTML a click on the head of a column sorts by it."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Line:
    """One curve of a chart: a value for each x, None where there is none.

    `style` is "line", "dashed" or "bars"; bars of several lines stand on top of each other. A muted line is grey.
    """

    name: str
    values: Sequence[float | None]
    style: str = "line"
    muted: bool = False


@dataclass(frozen=True)
class Chart:
    """Curves over a common, ascending x. `summary` says in words what the picture shows."""

    title: str
    summary: str
    x_name: str
    y_name: str
    x: Sequence[float]
    lines: Sequence[Line]
    log_x: bool = False
    log_y: bool = False
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Charts:
    """Charts that stand beside each other where there is room."""

    charts: Sequence[Chart]


Block = Facts | Text | Note | Code | Table | Charts


@dataclass(frozen=True)
class Section:
    """`name` is the address of the section inside the page."""

    name: str
    title: str
    intro: str
    blocks: Sequence[Block] = field(default_factory=list)


@dataclass(frozen=True)
class Document:
    """A report. `verdict` is the first sentence, whose `level` is that of a note."""

    title: str
    subtitle: str
    level: str
    verdict: str
    sections: Sequence[Section]


def number(value: float) -> str:
    """A number as people read it: whole ones with separators, others with four digits."""
    if isinstance(value, int) or (abs(value) < 1e15 and float(value).is_integer()):
        return f"{int(value):,}"
    return f"{value:.4g}"


def cell(value: Any) -> str:
    """What a cell of a table shows."""
    if value is None:
        return "–"
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
