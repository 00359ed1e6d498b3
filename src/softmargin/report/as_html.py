"""A report as one HTML page that needs nothing else: style, script, chart library and values are inside.

Everything that comes from data, names or parameters goes through `_safe`, and the values of the charts through
`json_inside_a_script`. The page forbids itself every connection, by a Content-Security-Policy.
"""

import html
import json
import math
from importlib.resources import files
from itertools import count
from typing import Any

from softmargin.core.text import printable
from softmargin.report.as_markdown import spread
from softmargin.report.document import Chart, Charts, Code, Document, Facts, Note, Section, Table, Text, cell

CHART_LIBRARY = "vendor/uplot-1.6.32"
CHART_ROWS = 25  # of the table of values below a chart
_WORDS = {"good": "Good", "look": "Look at this", "bad": "Warning"}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def as_html(document: Document) -> str:
    """The whole report as one page."""
    charts: list[Chart] = []
    numbers = count()
    body = "\n".join(_section(section, charts, numbers) for section in document.sections)
    entries = "".join(f'<li><a href="#{each.name}">{_safe(each.title)}</a></li>' for each in document.sections)
    values = json_inside_a_script([_chart_values(chart) for chart in charts])
    licence = _file(f"{CHART_LIBRARY}/LICENSE")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="softmargin">
<link rel="icon" href="data:,">
<title>{_safe(document.title)}</title>
<style>
{_file(f"{CHART_LIBRARY}/uPlot.min.css")}
{_file("page/page.css")}
</style>
</head>
<body>
<a class="skip" href="#main">Skip to the report</a>
<header>
<p class="brand">softmargin report</p>
<h1>{_safe(document.title)}</h1>
<p class="subtitle">{_safe(document.subtitle)}</p>
{_note("verdict", document.level, document.verdict)}
</header>
<nav aria-label="Sections"><ol>{entries}</ol></nav>
<main id="main" tabindex="-1">
<noscript><p class="note look">Charts need JavaScript. Their values stand in tables below them.</p></noscript>
{body}
</main>
<footer>
<p>Written by softmargin. This page is complete: it loads nothing and sends nothing.</p>
<details><summary>Licence of the chart library uPlot</summary><pre>{_safe_lines(licence)}</pre></details>
</footer>
<script type="application/json" id="charts">{values}</script>
<script>
{_file(f"{CHART_LIBRARY}/uPlot.iife.min.js")}
</script>
<script>
{_file("page/page.js")}
</script>
</body>
</html>
"""


def json_inside_a_script(value: Any) -> str:
    """JSON in which nothing can end the script element that holds it, or begin a comment there."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))  # ASCII: no line separators of Unicode either
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _section(section: Section, charts: list[Chart], numbers: Any) -> str:
    blocks = "\n".join(_block(block, charts, numbers) for block in section.blocks)
    title = f'<h2 id="{section.name}-title">{_safe(section.title)}</h2>'
    intro = f'<p class="intro">{_safe(section.intro)}</p>'
    return (
        f'<section id="{section.name}" aria-labelledby="{section.name}-title">\n{title}\n{intro}\n{blocks}\n</section>'
    )


def _block(block: object, charts: list[Chart], numbers: Any) -> str:
    match block:
        case Facts(facts):
            inner = "".join(
                f"<div><dt>{_safe(fact.name)}</dt><dd><b>{_safe(fact.value)}</b><small>{_safe(fact.meaning)}</small></dd></div>"
                for fact in facts
            )
            return f'<dl class="facts">{inner}</dl>'
        case Text(text):
            return f"<p>{_safe(text)}</p>"
        case Note(level, text):
            return _note("note", level, text)
        case Code(text):
            return f'<pre tabindex="0"><code>{_safe_lines(text)}</code></pre>'
        case Table(caption, columns, rows):
            return _table(caption, columns, rows, next(numbers))
        case Charts(shown):
            return f'<div class="charts">{"".join(_chart(chart, charts, numbers) for chart in shown)}</div>'
    raise TypeError(block)


def _note(kind: str, level: str, text: str) -> str:
    return f'<p class="{kind} {level}"><strong class="badge">{_WORDS[level]}</strong> <span>{_safe(text)}</span></p>'


def _chart(chart: Chart, charts: list[Chart], numbers: Any) -> str:
    k = len(charts)
    charts.append(chart)
    rows = [[chart.x[i], *(line.values[i] for line in chart.lines)] for i in spread(len(chart.x), CHART_ROWS)]
    columns = [chart.x_name, *(line.name for line in chart.lines)]
    caption = f"Values of: {chart.title}"
    return (
        f'<figure aria-labelledby="chart-{k}-title">'
        f'<figcaption><h3 id="chart-{k}-title">{_safe(chart.title)}</h3><p>{_safe(chart.summary)}</p></figcaption>'
        f'<div class="chart" id="chart-{k}" tabindex="0" role="application" '
        f'aria-label="{_safe(chart.title)}: chart. The arrow keys go through its values."></div>'
        f'<p class="reading" id="reading-{k}" aria-live="polite"></p>'
        f"<details><summary>Values as a table</summary>{_table(caption, columns, rows, next(numbers))}</details>"
        f"</figure>"
    )


def _chart_values(chart: Chart) -> dict[str, Any]:
    return {
        "title": chart.title,
        "xName": chart.x_name,
        "yName": chart.y_name,
        "logX": chart.log_x,
        "logY": chart.log_y,
        "xRange": chart.x_range,
        "yRange": chart.y_range,
        "x": [_finite(value) for value in chart.x],
        "lines": [
            {
                "name": printable(line.name),
                "style": line.style,
                "muted": line.muted,
                "values": [_finite(value) for value in line.values],
            }
            for line in chart.lines
        ],
    }


def _finite(value: float | None) -> float | None:
    """Seven digits are more than a screen shows."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.7g}")


def _table(caption: str, columns: Any, rows: Any, k: int) -> str:
    rows = [list(row) for row in rows]
    is_number = [_holds_numbers([row[c] for row in rows]) for c in range(len(columns))]
    head = "".join(
        f'<th scope="col"{_kind(numeric)}><button type="button">{_safe(str(name))}</button></th>'
        for name, numeric in zip(columns, is_number, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(_cell(value, numeric) for value, numeric in zip(row, is_number, strict=True)) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-labelledby="table-{k}">'
        f'<table><caption id="table-{k}"><span>{_safe(caption)}</span></caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _kind(numeric: bool) -> str:
    return ' class="number"' if numeric else ""


def _cell(value: Any, numeric: bool) -> str:
    """With the exact number to sort by beside the rounded one that is shown."""
    exact = f' data-value="{float(value)!r}"' if numeric and value is not None else ""
    return f"<td{_kind(numeric)}{exact}>{_safe(cell(value))}</td>"


def _holds_numbers(values: list[Any]) -> bool:
    found = [value for value in values if value is not None]
    return bool(found) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in found)


def _safe(text: str) -> str:
    return html.escape(printable(text), quote=True)


def _safe_lines(text: str) -> str:
    return "\n".join(map(_safe, text.splitlines()))


def _file(name: str) -> str:
    return (files("softmargin.report") / name).read_text(encoding="utf-8").strip()
