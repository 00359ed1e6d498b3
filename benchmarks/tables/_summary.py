"""Every table and figure of the four papers: which script repeats it, what that takes, and what it found.

`page` is benchmarks/results/README.md: one line for each, with a verdict that is computed from the rows of the result.
"""

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import cells
from benchmarks.machine import cores
from benchmarks.tables import _kernel_verdicts as kernel
from benchmarks.tables import _linear_verdicts as linear

NOT_YET = "not measured yet"
# Scripts of the papers, with the minutes that they are expected to take where no result says it.
SCRIPTS = {
    "ocas_paper_figure1": 5,
    "qp_paper_table3": 15,
    "qp_paper_paths": 15,
    "ocas_paper_lambda": 15,
    "ocas_paper_table4": 15,
    "ocas_paper_cov1": 20,
    "ocas_paper_figure2": 20,
    "ocas_paper_figure3": 20,
    "qp_paper_table5": 20,
    "perf_paper_figure5": 30,
    "qp_paper_table1": 40,
    "hmg_paper_table6": 60,
    "qp_paper_table4": 60,
    "hmg_paper_table2": 90,
    "ocas_paper_table2": 90,
    "qp_paper_table2": 90,
    "hmg_paper_table5": 120,
    "perf_paper_table1": 150,
    "hmg_paper_table7": 150,
    "hmg_paper_table4": 240,
    "ocas_paper_table3": 240,
    "perf_paper_figure1": 240,
    "perf_paper_figure3": 240,
    "hmg_paper_figure6": 300,
    "perf_paper_figure8": 400,
    "qp_paper_table6": 600,
}
# Not among those of --all: it writes 15 million rows to disk, and its lines on Dask are measured by an option.
HEADLINE = "ocas_paper_headline"


class Entry(NamedTuple):
    """A table or figure of a paper; without a result it is an illustration, or a matter of the text."""

    what: str
    shows: str
    result: str | None = None
    verdict: Callable[[list[dict[str, Any]]], str | None] | None = None


PAPERS: dict[str, tuple[Entry, ...]] = {
    "OCAS: Franc and Sonnenburg, Optimized Cutting Plane Algorithm for Support Vector Machines, ICML 2008": (
        Entry("Table 1", "the data sets", "ocas_paper_table2", linear.ocas_table1),
        Entry("Table 2", "time and objective at the best C", "ocas_paper_table2", linear.ocas_table2),
        Entry("Table 3", "model selection by ROC area", "ocas_paper_table3", linear.ocas_table3),
        Entry("Table 4", "the effect of threads", "ocas_paper_table4", linear.ocas_table4),
        Entry("Table 5", "a subgradient of the line search, case by case"),
        Entry("Figure 1", "CPA and OCAS step by step", "ocas_paper_figure1", linear.ocas_figure1),
        Entry("Figure 2", "objective against time", "ocas_paper_figure2", linear.ocas_figure2),
        Entry("Figure 3", "time against rows", "ocas_paper_figure3", linear.ocas_figure3),
        Entry("Figure 4", "the line search"),
        Entry("Section 4, cov1", "how the data were prepared", "ocas_paper_cov1", linear.ocas_cov1),
        Entry("Equation 8, lambda", "the mixing parameter", "ocas_paper_lambda", linear.ocas_lambda),
        Entry("Abstract", "15 million splice sites", HEADLINE, linear.ocas_headline),
    ),
    "SVM-perf: Joachims, Training Linear SVMs in Linear Time, KDD 2006": (
        Entry("Table 1", "time for classification and ordinal regression", "perf_paper_table1", linear.perf_table1),
        Entry("Figure 1", "time against rows", "perf_paper_figure1", linear.perf_figure1),
        Entry("Best C", "time against rows, a panel of Figure 1", "perf_paper_figure3", linear.perf_best_C),
        Entry("Figure 2", "iterations against rows", "perf_paper_figure1", linear.perf_figure2),
        Entry("Figure 3", "prediction, less that of SVM-light", "perf_paper_figure3", linear.perf_figure3),
        Entry("Figure 4", "prediction against epsilon", "perf_paper_figure3", linear.perf_figure4),
        Entry("Figure 5", "iterations against epsilon", "perf_paper_figure5", linear.perf_figure5),
        Entry("Figure 6", "time against epsilon", "perf_paper_figure5", linear.perf_figure6),
        Entry("Figure 7", "how far from the optimum", "perf_paper_figure3", linear.perf_figure7),
        Entry("Figure 8", "iterations against C", "perf_paper_figure8", linear.perf_figure8),
        Entry("Figure 9", "time against C", "perf_paper_figure8", linear.perf_figure9),
    ),
    "SVM-QP: Scheinberg, An Efficient Implementation of an Active Set Method for SVMs, JMLR 2006": (
        Entry("Table 1", "the active set and its rivals", "qp_paper_table1", kernel.qp_table1),
        Entry("Table 2", "all rows of web and adult", "qp_paper_table2", kernel.qp_table2),
        Entry("Table 3", "sprint and shrinking", "qp_paper_table3", kernel.qp_table3),
        Entry("Table 4", "20 MB for kernel values", "qp_paper_table4", kernel.qp_table4),
        Entry("Table 5", "a start from interior points", "qp_paper_table5", kernel.qp_table5),
        Entry("Table 6", "rows one at a time", "qp_paper_table6", kernel.qp_table6),
        Entry("Section 4.3", "paths over C and the kernel's width", "qp_paper_paths", kernel.qp_paths),
    ),
    "HMG: Glasmachers and Igel, Maximum-Gain Working Set Selection for SVMs, JMLR 2006": (
        Entry("Table 1", "the data sets and their support vectors", "hmg_paper_table2", kernel.hmg_table1),
        Entry("Table 2", "working-set rules", "hmg_paper_table2", kernel.hmg_table2),
        Entry("Table 3", "decomposition", "hmg_paper_table2", kernel.hmg_table3),
        Entry("Table 4", "without shrinking", "hmg_paper_table4", kernel.hmg_table4),
        Entry("Table 5", "caches of several sizes", "hmg_paper_table5", kernel.hmg_table5),
        Entry("Table 6", "one row or two", "hmg_paper_table6", kernel.hmg_table6),
        Entry("Table 7", "all cached rows", "hmg_paper_table7", kernel.hmg_table7),
        *(
            Entry(f"Figure {k}", shows)
            for k, shows in (
                (1, "the problem of two variables"),
                (2, "the rule"),
                (3, "the condition of Lemma 2"),
                (4, "the feasible region"),
                (5, "where maximum gain alone gets stuck"),
            )
        ),
        Entry("Figure 6", "a grid of C and gamma", "hmg_paper_figure6", kernel.hmg_figure6),
        Entry("Figure 7", "time against the cache", "hmg_paper_table5", kernel.hmg_figure7),
    ),
}
HEAD = """# The four papers, table by table

Written by `python -m benchmarks.tables --summary` from the results in this folder; `python -m benchmarks.tables --all`
measures them again. Every verdict is computed from the rows of the result that it links to, whose notes say where
conditions differ from the paper's. "1 of 3" means that a statement was true in one of the three cases where it could be
judged: a fit that was cut says nothing.
"""


def page(folder: Path) -> str:
    """The summary of the results in this folder."""
    parts = [HEAD]
    for paper, entries in PAPERS.items():
        lines = [
            f"## {paper}",
            "",
            "| there | what it shows | found here | result | measured | commit | machine |",
            "|---|---|---|---|---|---|---|",
            *("| " + " | ".join(_cells(entry, folder)) + " |" for entry in entries),
        ]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _cells(entry: Entry, folder: Path) -> list[str]:
    if entry.result is None:
        return [entry.what, entry.shows, "an illustration, nothing to measure", "", "", "", ""]
    content = _content(folder, entry.result)
    if content is None:
        return [entry.what, entry.shows, NOT_YET, "", "", "", ""]
    found = verdict(entry, content["rows"])
    if content.get("missing"):
        found += f" Not measured yet: {', '.join(content['missing'])}."
    m = content["machine"]
    link = f"[{entry.result}]({entry.result}.md)"
    return [entry.what, entry.shows, found, link, m["date"], m["commit"], f"{m['cpu']}, {cores(m)}"]


def verdict(entry: Entry, rows: list[dict[str, Any]]) -> str:
    """What the rows say; nothing where they were measured before the script had what the sentence needs."""
    return (entry.verdict(rows) if entry.verdict and rows else None) or NOT_YET


def listing(folder: Path) -> str:
    """The scripts in the order of --all, with their minutes and purpose."""
    lines = []
    for name in by_length(folder):
        content = _content(folder, name)
        taken = cells.minutes(content["rows"]) if content else None
        said = f"about {SCRIPTS[name]} min" if taken is None else f"{taken:.0f} min"
        lines.append(f"{name:20} {said:>14}  {purpose(name)}")
    return "\n".join(lines)


def by_length(folder: Path) -> list[str]:
    """The scripts of the papers, short ones first."""

    def minutes(name: str) -> float:
        content = _content(folder, name)
        return (cells.minutes(content["rows"]) if content else None) or SCRIPTS[name]

    return sorted(SCRIPTS, key=minutes)


def purpose(name: str) -> str:
    text = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(text)) or "").splitlines()[0]


def _content(folder: Path, name: str) -> dict[str, Any] | None:
    path = folder / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
