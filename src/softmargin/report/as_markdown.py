"""A report as Markdown, with a table of values in the place of each chart."""

import re

from softmargin.core.text import printable
from softmargin.report.document import Chart, Charts, Code, Document, Facts, Note, Table, Text, cell

# Characters that Markdown or the HTML inside it could take for markup.
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#+|~$&])")
_WORDS = {"good": "Good", "look": "Look at this", "bad": "Warning"}
CHART_ROWS = 12


def as_markdown(document: Document) -> str:
    """The whole report as one text."""
    lines = [f"# {_safe(document.title)}", "", _safe(document.subtitle), "", f"**{_safe(document.verdict)}**"]
    for section in document.sections:
        lines += ["", f"## {_safe(section.title)}", "", _safe(section.intro)]
        for block in section.blocks:
            lines += ["", *_block(block)]
    return "\n".join(lines) + "\n"


def _block(block: object) -> list[str]:
    match block:
        case Facts(facts):
            return _table(["", "value", "meaning"], [[fact.name, fact.value, fact.meaning] for fact in facts])
        case Text(text):
            return [_safe(text)]
        case Note(level, text):
            return [f"> **{_WORDS[level]}:** {_safe(text)}"]
        case Code(text):
            return [f"    {printable(line)}" for line in text.splitlines()]
        case Table(caption, columns, rows):
            return [f"**{_safe(caption)}**", "", *_table(columns, rows)]
        case Charts(charts):
            return [line for chart in charts for line in (*_chart(chart), "")][:-1]
    raise TypeError(block)


def _chart(chart: Chart) -> list[str]:
    rows = [[chart.x[k], *(line.values[k] for line in chart.lines)] for k in spread(len(chart.x), CHART_ROWS)]
    head = [f"**{_safe(chart.title)}**", "", _safe(chart.summary), ""]
    return head + _table([chart.x_name, *(line.name for line in chart.lines)], rows)


def spread(n: int, limit: int) -> list[int]:
    """At most `limit` places from 0 to n - 1, the first and the last among them."""
    if n <= limit:
        return list(range(n))
    return sorted({round(k * (n - 1) / (limit - 1)) for k in range(limit)})


def _table(columns: object, rows: object) -> list[str]:
    head = [_safe(str(name)) or " " for name in columns]  # type: ignore[attr-defined]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return lines + [f"| {' | '.join(_safe(cell(value)) for value in row)} |" for row in rows]  # type: ignore[attr-defined]


def _safe(text: str) -> str:
    return _MARKUP.sub(r"\\\1", printable(text))
