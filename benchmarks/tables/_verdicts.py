"""One sentence for each table and figure of the papers: what its rows show beside what the paper prints.

Every function computes its sentence from the rows of a result, and returns None where they lack what it needs.
"""

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from benchmarks.tables import _hmg, _paper, _perf, _qp
from benchmarks.tables._hmg import ALL_ROWS, HMG, HMG_OWN, LIGHT, MVP, ONE_ROW, SECOND

Rows = list[dict[str, Any]]
PAIRS = (MVP, SECOND, HMG)
NEAR = 0.1  # relative: a count that differs by less from the paper's counts as found again


# The OCAS paper.


def ocas_table1(rows: Rows) -> str | None:
    """The sizes of the training parts, as Table 2 was measured on them."""
    papers = {"cov1": 470_620, "mnist": 53_900, "ccat": 699_840, "artificial": 49_500}  # Table 1: examples times share
    found = {name: next(iter(row.values()))["n_rows"] for name, row in _paper.by_name(rows).items() if name in papers}
    if not found:
        return None
    least = min(found, key=lambda name: found[name] / papers[name])
    near = _of(abs(found[name] / papers[name] - 1.0) <= NEAR for name in found)
    return (
        f"{near} data sets that are to be had are trained on the paper's number of rows, to a tenth; {least} has "
        f"{found[least] / papers[least]:.2f} times as many."
    )


def ocas_table2(rows: Rows) -> str | None:
    found = _paper.by_name(rows)
    iterations = [
        row["OCAS"]["iterations"] / row["OCAS"]["paper_iterations"]
        for row in found.values()
        if row["OCAS"]["paper_iterations"]
    ]
    slow = {name: row["SVM-light"]["times_ocas"] >= 22.0 for name, row in found.items() if "SVM-light" in row}
    faster = _of(row["CPA"]["times_ocas"] > 1.0 for row in found.values())
    return _sentence(
        f"OCAS needs {_range(iterations)} times the paper's iterations" if iterations else "",
        f"OCAS takes less time than CPA on {faster} data sets",
        f"SVM-light takes 22 times as long or more on {_of(slow.values())}" if slow else "",
    )


def ocas_table3(rows: Rows) -> str | None:
    found = _paper.by_name(rows)
    near = [abs(row["OCAS"]["roc"] - row["OCAS"]["paper_roc"]) for row in found.values() if row["OCAS"]["paper_roc"]]
    cut = sum(bool(row["OCAS"]["cut"]) for row in found.values())
    return _sentence(
        f"OCAS selects a model in less time than CPA on "
        f"{_of(row['CPA']['times_ocas'] > 1.0 for row in found.values())} data sets, and its ROC area is within half a "
        f"point of the paper's on {_of(off <= 0.5 for off in near)}",
        f"fits of OCAS were cut on {cut}" if cut else "",
    )


def ocas_table4(rows: Rows) -> str | None:
    from benchmarks.tables.ocas_paper_table4 import PAPER

    gains = {row["data"]: row["speed_up"] for row in rows if row.get("solver") == "2"}
    if not gains:
        return None
    listed = ", ".join(f"{gain:.2f} ({name})" for name, gain in gains.items())
    paper = PAPER[1]["seconds"] / PAPER[2]["seconds"]
    return f"A second thread makes OCAS {listed} times as fast; the paper's second CPU {paper:.2f} times."


def ocas_figure1(rows: Rows) -> str | None:
    found = _paper.by_name(rows)
    return (
        f"The objective of OCAS never rises on {_of(row['OCAS']['rises'] == 0 for row in found.values())} data sets, "
        f"that of CPA does on {_of(row['CPA']['rises'] > 0 for row in found.values())}."
    )


def ocas_figure2(rows: Rows) -> str | None:
    found = _paper.by_name(rows)
    others = ("CPA", "SGD", "Pegasos")
    lowest = [all(row["OCAS"]["lowest"] <= row[name]["lowest"] for name in others) for row in found.values()]
    return f"OCAS ends with the lowest objective of the paper's solvers on {_of(lowest)} data sets."


def ocas_figure3(rows: Rows) -> str | None:
    from benchmarks.tables import ocas_paper_figure3 as figure

    exponents = {}
    for solver in ("OCAS", "SGD"):
        n, seconds = figure._line(rows, solver)
        exponents[solver] = figure._exponent(n[n >= figure.LARGE], seconds[n >= figure.LARGE])
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
    cpa = [row["of_classification"] for (_, kind, solver), row in found.items() if (kind, solver) == ("ordinal", "CPA")]
    if not cpa:
        return None
    slow = [
        row["seconds"] > 4.7 * found[name, kind, "CPA"]["seconds"]
        for (name, kind, solver), row in found.items()
        if solver == "SVM-light"
    ]
    return _sentence(
        f"Ordinal regression takes {_range(cpa)} times as long as classification; the paper: 1.5 to 6.5 times",
        f"SVM-light takes at least 4.7 times as long as CPA on {_of(slow)} data sets" if slow else "",
    )


def perf_figure1(rows: Rows) -> str | None:
    return _powers(rows, "n_rows", "seconds", "Seconds grow with the rows", "0.8")


def perf_figure2(rows: Rows) -> str | None:
    counts = _perf.growth(rows, "n_rows")[1]["classification", "CPA"]
    flat = _of(e < 0.1 for e in counts.values())
    return f"The iterations do not grow with the rows (a power below 0.1) on {flat} data sets."


def perf_figure3(rows: Rows) -> str | None:
    off: dict[str, list[float]] = {}
    for row in rows:
        if row["part"] == "3" and row["difference"] is not None and not row["was_cut"]:
            off.setdefault(row["data"], []).append(abs(row["difference"]))
    if not off:
        return None
    near = _of(sum(values) / len(values) <= 1.0 for values in off.values())
    return f"CPA and SVM-light predict equally well, to a point on average over C, on {near} data sets."


def perf_figure4(rows: Rows) -> str | None:
    off = [row for row in rows if row["part"] == "4" and row["epsilon"] <= 0.01 and not row["was_cut"]]
    near = _of(abs(row["difference"]) <= 0.5 for row in off)
    return f"With epsilon of at most 0.01 test performance is within half a point of that at 0.001 in {near} fits."


def perf_figure5(rows: Rows) -> str | None:
    return _powers(rows, "epsilon", "iterations", "Iterations grow with 1 / epsilon", "0.3")


def perf_figure6(rows: Rows) -> str | None:
    return _powers(rows, "epsilon", "seconds", "Seconds grow with 1 / epsilon", "0.4")


def perf_figure7(rows: Rows) -> str | None:
    below = [row["below"] for row in rows if row["part"] == "7 left" and not row["was_cut"]]
    if not below:
        return None
    return (
        f"At epsilon = 0.001 the objective is at most 1 % below the optimum in {_of(b <= 0.01 for b in below)} fits, "
        f"at most {max(below):.1%} in all; the paper: 0.1 to 1 %."
    )


def perf_figure8(rows: Rows) -> str | None:
    return _powers(rows, "C", "iterations", "Iterations grow with C", "0.5")


def perf_figure9(rows: Rows) -> str | None:
    cpa = _perf.growth(rows, "C")[0]["classification", "CPA"]
    found = {(row["data"], row["C"], row["solver"]): row for row in rows if row["problem"] == "classification"}
    slow = [
        row["seconds"] > found[name, C, "CPA"]["seconds"]
        for (name, C, solver), row in found.items()
        if solver == "SVM-light" and (name, C, "CPA") in found
    ]
    return _sentence(
        f"Seconds grow less than linearly with C on {_of(e < 1.0 for e in cpa.values())} data sets",
        f"SVM-light takes longer than CPA in {_of(slow)} fits" if slow else "",
    )


# The SVM-QP paper.


def qp_table1(rows: Rows) -> str | None:
    method = "active set, cold" if all("active set, cold" in row["found"] for row in rows) else "active set"
    faster = [_qp.is_faster(row["found"][method], row["found"]["LIBSVM 1e-6"]) for row in rows]
    said = "the paper's method" if method.endswith("cold") else "the active set after rounds of blocks"
    return (
        f"n_s and n_c are the paper's, to a tenth, on {_of(map(_same_sets, rows))} problems; {said} is faster than "
        f"LIBSVM at 1e-6 on {_of(faster)}."
    )


def qp_table2(rows: Rows) -> str | None:
    ended = [row for row in rows if not row["found"]["active set"]["was_cut"]]
    faster = [_qp.is_faster(row["found"]["active set"], row["found"]["LIBSVM 1e-6"]) for row in rows]
    papers = sum(qp is not None for _, _, _, qp in _qp.PAPER_TABLE2.values())
    return (
        f"The active set ends on {len(ended)} of {len(rows)} problems (the paper: on {papers}), with its n_s and n_c "
        f"to a tenth on {_of(map(_same_sets, ended))}; faster than LIBSVM on {_of(faster)}."
    )


def qp_table3(rows: Rows) -> str | None:
    faster = [_qp.is_faster(row["found"]["sprint"], row["found"]["shrinking"]) for row in rows]
    papers = [row["paper_times"] > 1.0 for row in rows if row["paper_times"]]
    return f"Sprint is faster than shrinking on {_of(faster)} problems; the paper: on {_of(papers)}."


def qp_table4(rows: Rows) -> str | None:
    ours, saving = "active set", "active set, 20 MB"
    if all("active set, cold" in row["found"] for row in rows):
        ours, saving = "active set, cold", "active set, cold, 20 MB"
    slower = [_qp.is_faster(row["found"][ours], row["found"][saving]) for row in rows]
    faster = [_qp.is_faster(row["found"][saving], row["found"]["SMO 1e-6, 20 MB"]) for row in rows]
    papers = [row["paper_smo_times"] > 1.0 for row in rows if row["paper_smo_times"]]
    return (
        f"20 MB cost time on {_of(slower)} problems; with them the active set is faster than SMO on {_of(faster)} (the "
        f"paper, than SVM-light: {_of(papers)})."
    )


def qp_table5(rows: Rows) -> str | None:
    alike = []
    for row in rows:
        ours = _qp.ratio(row["found"]["ipm"], row["found"]["cold"])
        if ours is not None and row["paper_times"] is not None:
            alike.append((ours < 1.0) == (row["paper_times"] < 1.0))
    return f"A start from interior points saves or costs time as in the paper on {_of(alike)} problems."


def qp_table6(rows: Rows) -> str | None:
    both = [row for row in rows if row["times_cold"] is not None]
    if not both:
        return None
    part = [row for row in rows if row["n_rows"] < row.get("all_rows", row["n_rows"] + 1)]  # older results do not say
    return _sentence(
        f"Rows one at a time take {median(row['times_cold'] for row in both):.1f} times as long as a cold fit in the "
        f"median; the paper: {median(row['paper_times'] for row in both if row['paper_times']):.1f} times",
        f"at most {max(row['n_rows'] for row in part):,} rows were learned on {len(part)} problems" if part else "",
    )


def qp_paths(rows: Rows) -> str | None:
    later = [row["found"] for row in rows if not row["is_first"]]
    fewer = [one["warm"]["pivots"] < one["cold"]["pivots"] for one in later if not one["warm"]["was_cut"]]
    return f"A warm start needs fewer pivots than one from zero at {_of(fewer)} values."


def _same_sets(row: Mapping[str, Any]) -> bool | None:
    if row["n_free"] is None or row["paper_free"] is None:
        return None
    return all(
        abs(row[f"n_{s}"] - row[f"paper_{s}"]) <= max(2.0, NEAR * row[f"paper_{s}"]) for s in ("free", "bounded")
    )


# The HMG paper.


def hmg_table1(rows: Rows) -> str | None:
    found = {name: next(iter(row.values())) for name, row in _paper.by_name(rows).items() if name in _hmg.PAPER_SV}
    off = {name: 100.0 * (row["sv_share"] - _hmg.PAPER_SV[name][0]) for name, row in found.items()}
    if not off:
        return None
    listed = ", ".join(f"{name} {value:+.1f}" for name, value in off.items())
    return f"Shares of support vectors, in points from the paper's: {listed}; the face data are not public."


def hmg_table2(rows: Rows) -> str | None:
    found = _paper.by_name(rows)
    fewest = [_hmg.fewest(row, SECOND, PAIRS, "iterations") for row in found.values()]
    least = [_hmg.fewest(row, HMG, PAIRS, "seconds") for name, row in found.items() if name != "spambase"]
    ratios = [
        row[HMG_OWN if HMG_OWN in row else HMG]["iterations"] / _hmg.PAPER[name][HMG][0]
        for name, row in found.items()
        if name in _hmg.PAPER and HMG in row
    ]
    return _sentence(
        f"HMG needs {_range(ratios)} times the paper's iterations" if ratios else "",
        f"second order makes the fewest on {_of(fewest)} data sets",
        f"HMG takes the least time on {_of(least)} with a small cache",
    )


def hmg_table3(rows: Rows) -> str | None:
    slowest = [_hmg.most(row, LIGHT, PAIRS, "seconds") for row in _paper.by_name(rows).values()]
    return (
        f"Decomposition takes longer than every pair rule on {_of(slowest)} data sets; the paper: on all, by SVM-light."
    )


def hmg_table4(rows: Rows) -> str | None:
    longer = [row["seconds_share"] > 1.0 for row in rows if row["seconds_share"] is not None]
    near = [abs(row["iterations_share"] - 1.0) < 0.12 for row in rows if row["iterations_share"] is not None]
    return (
        f"Without shrinking a fit takes more time in {_of(longer)} rows, and the iterations change by less than 12 % "
        f"in {_of(near)}."
    )


def hmg_table5(rows: Rows) -> str | None:
    found = _paper.by_name(rows)
    least = [_hmg.fewest(row, HMG, PAIRS, "seconds") for name, row in found.items() if name != "200 MB"]
    fewest = [_hmg.fewest(row, HMG, PAIRS, "kernel_evaluations") for row in found.values()]
    return (
        f"HMG takes the least time with {_of(least)} caches up to 100 MB, and the fewest kernel evaluations with "
        f"{_of(fewest)} caches."
    )


def hmg_figure6(rows: Rows) -> str | None:
    points = {
        rule: _of(None if row[key] is None else row[key] < 1.0 for row in rows)
        for rule, key in ((SECOND, "second_ratio"), (MVP, "mvp_ratio"))
    }
    lost = [row["is_degenerate"] for row in rows if max(row["second_ratio"] or 0.0, row["mvp_ratio"] or 0.0) > 1.0]
    return (
        f"HMG takes less time than second order at {points[SECOND]} points, than the most violating pair at "
        f"{points[MVP]}; where it loses, {_of(lost)} points are degenerate (the paper: all)."
    )


def hmg_figure7(rows: Rows) -> str | None:
    from benchmarks.tables.hmg_paper_table5 import PAPER

    found = _paper.by_name(rows)
    small, large = found.get("20 MB"), found.get("200 MB")
    if small is None or large is None:
        return None
    falls = {rule: _hmg.relative(small.get(rule), large.get(rule), "seconds") for rule in PAIRS}
    listed = ", ".join(
        f"{fall:.2f} ({rule}, paper {PAPER[20][rule] / PAPER[200][rule]:.2f})" for rule, fall in falls.items() if fall
    )
    return f"From 20 to 200 MB the seconds fall by factors of {listed}." if listed else None


def hmg_table6(rows: Rows) -> str | None:
    from benchmarks.tables.hmg_paper_table6 import PAPER

    return _against_two(rows, ONE_ROW, "One row needs", PAPER)


def hmg_table7(rows: Rows) -> str | None:
    from benchmarks.tables.hmg_paper_table7 import PAPER

    return _against_two(rows, ALL_ROWS, "All cached rows need", PAPER)


def _against_two(rows: Rows, rule: str, said: str, paper: Mapping[str, Mapping[str, tuple]]) -> str | None:
    papers = {name: printed[rule][0] / printed[HMG][0] for name, printed in paper.items()}
    found = {
        name: _hmg.relative(row.get(rule), row.get(HMG), "iterations") for name, row in _paper.by_name(rows).items()
    }
    known = {name: ratio for name, ratio in found.items() if ratio is not None}
    if not known:
        return None
    listed = ", ".join(
        f"{ratio:.2f} ({name}{f', paper {papers[name]:.2f}' if name in papers else ''})"
        for name, ratio in known.items()
    )
    return f"{said} {listed} times the iterations of two rows."


# What they share.


def _powers(rows: Rows, x: str, y: str, said: str, papers: str) -> str | None:
    seconds, counts = _perf.growth(rows, x, -1.0 if x == "epsilon" else 1.0)
    found = (seconds if y == "seconds" else counts)["classification", "CPA"]
    if not found:
        return None
    return (
        f"{said} to the power {median(found.values()):.2f} in the median of {len(found)} data sets "
        f"({_range(found.values())}); the paper: about {papers}."
    )


def _of(holds: Iterable[bool | None]) -> str:
    known = [bool(one) for one in holds if one is not None]
    return f"{sum(known)} of {len(known)}"


def _range(values: Iterable[float]) -> str:
    found = list(values)
    low, high = f"{min(found):.2f}", f"{max(found):.2f}"
    return low if low == high else f"{low} to {high}"


def _sentence(*parts: str) -> str:
    said = "; ".join(part for part in parts if part)
    return f"{said[0].upper()}{said[1:]}."
