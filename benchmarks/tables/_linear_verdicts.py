"""Verdicts on the tables and figures of the OCAS and the SVM-perf paper; see `_verdicts`."""

from collections.abc import Mapping
from statistics import median
from typing import Any

from benchmarks.solvers.decomposition import DECOMPOSITION
from benchmarks.tables import _paper, _perf
from benchmarks.tables._verdicts import NEAR, Rows, is_less, of, sentence, span, takes, was_cut

# The OCAS paper.


def ocas_table1(rows: Rows) -> str | None:
    """The sizes of the training parts, as Table 2 was measured on them."""
    papers = {"cov1": 470_620, "mnist": 53_900, "ccat": 699_840, "artificial": 49_500}  # Table 1: examples times share
    found = {name: next(iter(row.values()))["n_rows"] for name, row in _paper.by_name(rows).items() if name in papers}
    if not found:
        return None
    least = min(found, key=lambda name: found[name] / papers[name])
    near = of(abs(found[name] / papers[name] - 1.0) <= NEAR for name in found)
    return (
        f"{near} data sets that are to be had are trained on the paper's number of rows, to a tenth; {least} has "
        f"{found[least] / papers[least]:.2f} times as many."
    )


def ocas_table2(rows: Rows) -> str | None:
    found = _paper.by_name(rows)
    iterations = [
        row["OCAS"]["iterations"] / row["OCAS"]["paper_iterations"]
        for row in found.values()
        if row["OCAS"]["paper_iterations"] and not row["OCAS"]["was_cut"]
    ]
    if not iterations:
        return None
    return sentence(
        f"OCAS needs {span(iterations)} times the paper's iterations",
        *(
            f"{other} takes {said} on {of(takes(times, row[other], row['OCAS']) for row in among)} data sets"
            for other, times, said in (
                ("CPA", 1.0, "more time"),
                ("BMRM", 1.0, "more time"),
                ("SVM-light", 22.0, "at least 22 times as long, as in the paper,"),
                ("LIBSVM", 22.0, "as long"),
            )
            if (among := [row for row in found.values() if other in row])
        ),
    )


def ocas_table3(rows: Rows) -> str | None:
    from benchmarks.tables.ocas_paper_table3 import least_light

    found = _paper.by_name(rows)
    ended = {name: row for name, row in found.items() if not row["OCAS"]["cut"]}
    if not ended:
        return None
    near = [abs(row["OCAS"]["roc"] - row["OCAS"]["paper_roc"]) for row in ended.values() if row["OCAS"]["paper_roc"]]
    slow = {
        name: [
            is_less(least_light(), row[name]["times_ocas"], bool(row[name]["cut"]))
            for row in ended.values()
            if name in row
        ]
        for name in DECOMPOSITION
    }
    said = [f"{name} on {of(holds)}" for name, holds in slow.items() if holds]
    faster = [is_less(1.0, row["CPA"]["times_ocas"], bool(row["CPA"]["cut"])) for row in ended.values()]
    return sentence(
        f"OCAS selects a model in less time than CPA on {of(faster)} data sets, and its ROC area is within half a "
        f"point of the paper's on {of(off <= 0.5 for off in near)}",
        f"at least {least_light():.0f} times as long, as the paper's SVM-light, takes {', '.join(said)}"
        if said
        else "decomposition was not run",
        f"fits of OCAS were cut on {', '.join(name for name in found if name not in ended)}"
        if len(ended) < len(found)
        else "",
    )


def ocas_table4(rows: Rows) -> str | None:
    from benchmarks.tables.ocas_paper_table4 import PAPER

    gains = {row["data"]: row["speed_up"] for row in rows if row.get("solver") == "2"}
    if not gains:
        return None
    listed = ", ".join(f"{gain:.2f} ({name})" for name, gain in gains.items())
    paper = PAPER[1]["seconds"] / PAPER[2]["seconds"]
    return f"A second thread makes OCAS {listed} times as fast; the paper's second CPU {paper:.2f} times."


def ocas_cov1(rows: Rows) -> str | None:
    from benchmarks.tables import ocas_paper_cov1 as cov1

    objective, iterations = cov1.near(rows)
    excess = cov1.excess(rows)
    best = min(excess, key=lambda name: excess[name][0], default=None)
    both = [name for name in objective if name in iterations]
    return sentence(
        f"of {len({row['reading'] for row in rows})} readings {len(objective)} have the objective of Table 2, to 0.5 %",
        f"with its iterations, to a quarter: {cov1.listed(both)}",
        f'the nearest of them, "{best}", takes {excess[best][0]:.2f} times the paper\'s of OCAS and '
        f"{excess[best][1]:.2f} times those of SVM-perf"
        if best is not None
        else "",
    )


def ocas_lambda(rows: Rows) -> str | None:
    from benchmarks.tables import ocas_paper_lambda as study

    near = study.is_near(rows)
    if not near:
        return None
    best = ", ".join(f"{row['mixing']:g} ({name})" for name, row in study.fewest(rows).items())
    return sentence(
        "the paper's 0.1, which works consistently well there, needs at most 1.25 times the fewest iterations of any "
        f"value on {of(near.values())} data sets",
        f"the fewest are at {best}",
    )


def ocas_figure1(rows: Rows) -> str | None:
    """OCAS keeps its best point, so that its objective cannot rise: what can be seen is how often it falls."""
    from benchmarks.tables.ocas_paper_figure1 import changes

    found = _paper.by_name(rows)
    if not found:
        return None
    rises = [changes(row["CPA"], "curve_primal")[1] for row in found.values()]
    falls = [changes(row["OCAS"], "curve_primal")[0] for row in found.values()]
    bounds = [changes(fit, "curve_dual")[1] == 1.0 for row in found.values() for fit in row.values()]
    lower = [row["OCAS"]["last"] < row["CPA"]["last"] for row in found.values()]
    return sentence(
        f"the objective of CPA rises at {min(rises):.0%} to {max(rises):.0%} of the steps",
        f"that of OCAS, which keeps its best point, falls at {min(falls):.0%} to {max(falls):.0%}, and ends lower on "
        f"{of(lower)} data sets",
        f"the lower bound rises at every step in {of(bounds)} solves",
    )


def ocas_figure2(rows: Rows) -> str | None:
    found = _paper.by_name(rows)
    if not found:
        return None
    others = ("CPA", "SGD", "Pegasos")
    lowest = [all(row["OCAS"]["lowest"] <= row[name]["lowest"] for name in others) for row in found.values()]
    light = [_is_later(row["SVM-light"], row["OCAS"]) for row in found.values() if "SVM-light" in row]
    return sentence(
        f"OCAS ends with the lowest objective of the paper's solvers on {of(lowest)} data sets",
        f"SVM-light is within 1 % of the optimum later than OCAS, or not at all, on {of(light)}" if light else "",
    )


def _is_later(one: Mapping[str, Any], other: Mapping[str, Any], key: str = "to_0.01") -> bool | None:
    """Whether one solver came to this distance from the optimum after the other; None where the other never did."""
    if other[key] is None:
        return None
    return one[key] is None or one[key] > other[key]


def ocas_figure3(rows: Rows) -> str | None:
    from benchmarks.tables import ocas_paper_figure3 as figure

    exponents = {}
    for solver in ("OCAS", "SGD"):
        n, seconds = figure._line(rows, solver)
        if (n >= figure.LARGE).sum() > 1:
            exponents[solver] = figure._exponent(n[n >= figure.LARGE], seconds[n >= figure.LARGE])
    if not exponents:
        return None
    listed = ", ".join(f"{solver} {e:.2f}" for solver, e in exponents.items())
    return f"Seconds grow with the rows to the power {listed} from {figure.LARGE:,} rows on; the paper: about linearly."


def ocas_headline(rows: Rows) -> str | None:
    from benchmarks.tables.ocas_paper_headline import MEMORY, PAPER_SECONDS, splice_like

    found = [
        row
        for row in rows
        if (row["where"], row["n_rows"], row["threads"]) == (MEMORY, splice_like.PAPER_ROWS, 2) and "factor" in row
    ]
    if not found:
        return None
    row = min(found, key=lambda row: row["factor"])
    return (
        f"15 million generated rows take {row['seconds']:.0f} s with two threads at the paper's C, "
        f"{PAPER_SECONDS[16] / row['seconds']:.1f} times as fast as its 16 CPUs."
    )


# The SVM-perf paper.


def perf_table1(rows: Rows) -> str | None:
    found = {(row["data"], row["problem"], row["solver"]): row for row in rows if row["part"] == "time"}
    cpa = [
        row["of_classification"]
        for (name, kind, solver), row in found.items()
        if (kind, solver) == ("ordinal", "CPA") and not was_cut(row, found[name, "classification", "CPA"])
    ]
    if not cpa:
        return None
    return sentence(
        f"Ordinal regression takes {span(cpa)} times as long as classification; the paper: 1.5 to 6.5 times",
        *(
            f"{name} takes at least 4.7 times as long as CPA, as SVM-light does there, on {of(slow)} data sets"
            for name in DECOMPOSITION
            if (
                slow := [
                    takes(4.7, row, found[data, kind, "CPA"])
                    for (data, kind, solver), row in found.items()
                    if solver == name
                ]
            )
        ),
    )


def perf_figure1(rows: Rows) -> str | None:
    slow = _perf.by_decomposition(rows, "n_rows")["SVM-light"]
    said = _powers(rows, "n_rows", "seconds", "Seconds grow with the rows", "0.8")
    if said is None or not slow:
        return said
    return (
        f"{said} Those of SVM-light to the power {median(slow.values()):.2f} in the median of {len(slow)} "
        f"({span(slow.values())}); the paper: about 1.7."
    )


def perf_figure2(rows: Rows) -> str | None:
    counts = _perf.growth(rows, "n_rows")[1]["classification", "CPA"]
    if not counts:
        return None
    flat = of(e < 0.1 for e in counts.values())
    return f"The iterations do not grow with the rows (a power below 0.1) on {flat} data sets."


def perf_figure3(rows: Rows) -> str | None:
    from benchmarks.tables import perf_paper_figure3 as figure

    off = figure.of(rows, "3", "difference")
    if not off:
        return None
    near = of(sum(map(abs, values)) / len(values) <= 1.0 for values in off.values())
    tried = sum(row["part"] == "3" for row in rows)
    return (
        f"CPA and SVM-light predict equally well, to a point on average over C, on {near} data sets; neither was cut "
        f"in {sum(map(len, off.values()))} of {tried} fits."
    )


def perf_figure4(rows: Rows) -> str | None:
    from benchmarks.tables import perf_paper_figure3 as figure

    off = [value for values in figure.of(rows, "4", "difference", at_most=0.01).values() for value in values]
    if not off:
        return None
    near = of(abs(value) <= 0.5 for value in off)
    return f"With epsilon of at most 0.01 test performance is within half a point of that at 0.001 in {near} fits."


def perf_figure5(rows: Rows) -> str | None:
    return _powers(rows, "epsilon", "iterations", "Iterations grow with 1 / epsilon", "0.3")


def perf_figure6(rows: Rows) -> str | None:
    return _powers(rows, "epsilon", "seconds", "Seconds grow with 1 / epsilon", "0.4")


def perf_figure7(rows: Rows) -> str | None:
    from benchmarks.tables import perf_paper_figure3 as figure

    below = [value for values in figure.of(rows, "7 left", "below").values() for value in values]
    if not below:
        return None
    right = [[row["below"] for row in along] for along in figure.right_panel(rows).values()]
    return sentence(
        f"At epsilon = 0.001 the objective is at most 1 % below the optimum in {of(b <= 0.01 for b in below)} fits, "
        f"at most {max(below):.1%} in all; the paper: 0.1 to 1 %",
        f"the distance decreases with every smaller epsilon on {of(map(figure.is_falling, right))} data sets"
        if right
        else "",
    )


def perf_best_C(rows: Rows) -> str | None:
    from benchmarks.tables import perf_paper_figure3 as figure

    found = figure.best_C_growth(rows)
    if not found:
        return None
    return (
        f"Seconds at the best C grow with the rows to the power {median(found.values()):.2f} in the median of "
        f"{len(found)} data sets ({span(found.values())}); the paper: about linearly."
    )


def perf_figure8(rows: Rows) -> str | None:
    return _powers(rows, "C", "iterations", "Iterations grow with C", "0.5")


def perf_figure9(rows: Rows) -> str | None:
    cpa = _perf.growth(rows, "C")[0]["classification", "CPA"]
    found = {(row["data"], row["C"], row["solver"]): row for row in rows if row["problem"] == "classification"}
    slow = {
        method: [
            takes(1.0, row, found[name, C, "CPA"])
            for (name, C, solver), row in found.items()
            if solver == method and (name, C, "CPA") in found
        ]
        for method in DECOMPOSITION
    }
    if not cpa:
        return None
    return sentence(
        f"Seconds grow less than linearly with C on {of(e < 1.0 for e in cpa.values())} data sets",
        *(f"{method} takes longer than CPA in {of(holds)} fits" for method, holds in slow.items() if holds),
    )


def _powers(rows: Rows, x: str, y: str, said: str, papers: str) -> str | None:
    seconds, counts = _perf.growth(rows, x, -1.0 if x == "epsilon" else 1.0)
    found = (seconds if y == "seconds" else counts)["classification", "CPA"]
    if not found:
        return None
    return (
        f"{said} to the power {median(found.values()):.2f} in the median of {len(found)} data sets "
        f"({span(found.values())}); the paper: about {papers}."
    )
