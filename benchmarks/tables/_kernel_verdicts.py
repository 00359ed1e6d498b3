"""Verdicts on the tables and figures of the SVM-QP and the HMG paper; see `_verdicts`."""

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from benchmarks.tables import _hmg, _paper, _qp
from benchmarks.tables._hmg import ALL_FREE, ALL_ROWS, HMG, HMG_FREE, HMG_OWN, LIGHT, MVP, ONE_FREE, ONE_ROW, SECOND
from benchmarks.tables._verdicts import NEAR, Rows, is_less, of, sentence

PAIRS = (MVP, SECOND, HMG)

# The SVM-QP paper.


def qp_table1(rows: Rows) -> str | None:
    method = "active set, cold" if all("active set, cold" in row["found"] for row in rows) else "active set"
    faster = [_is_first(row["found"][method], row["found"]["LIBSVM 1e-6"]) for row in rows]
    said = "the paper's method" if method.endswith("cold") else "the active set after rounds of blocks"
    return (
        f"n_s and n_c are the paper's, to a tenth, on {of(map(_same_sets, rows))} problems; {said} is faster than "
        f"LIBSVM at 1e-6 on {of(faster)}."
    )


def qp_table2(rows: Rows) -> str | None:
    ended = [row for row in rows if _is_exact(row["found"]["active set"]) and not row["handed_over"]]
    by_cold = [row for row in rows if "active set, cold" in row["found"]]
    cold = [_is_exact(row["found"]["active set, cold"]) and not row["cold_handed_over"] for row in by_cold]
    faster = [_is_first(row["found"]["active set"], row["found"]["LIBSVM 1e-6"]) for row in rows]
    papers = sum(qp is not None for _, _, _, qp in _qp.PAPER_TABLE2.values())
    return sentence(
        f"The active set ends by itself on {len(ended)} of {len(rows)} problems (the paper: on {papers} of "
        f"{len(_qp.PAPER_TABLE2)}), with its n_s and n_c to a tenth on {of(map(_same_sets, ended))}",
        f"from zero, with the factor alone, on {of(cold)}" if cold else "",
        f"faster than LIBSVM on {of(faster)}",
    )


def qp_table3(rows: Rows) -> str | None:
    faster = [_qp.is_faster(row["found"]["sprint"], row["found"]["shrinking"]) for row in rows]
    papers = [row["paper_times"] > 1.0 for row in rows if row["paper_times"]]
    return f"Sprint is faster than shrinking on {of(faster)} problems; the paper: on {of(papers)}."


def qp_table4(rows: Rows) -> str | None:
    ours, saving = "active set", "active set, 20 MB"
    if all("active set, cold" in row["found"] for row in rows):
        ours, saving = "active set, cold", "active set, cold, 20 MB"
    slower = [_qp.is_faster(row["found"][ours], row["found"][saving]) for row in rows]
    faster = [_qp.is_faster(row["found"][saving], row["found"]["SMO 1e-6, 20 MB"]) for row in rows]
    papers = [row["paper_smo_times"] > 1.0 for row in rows if row["paper_smo_times"]]
    return (
        f"20 MB cost time on {of(slower)} problems; with them the active set is faster than SMO on {of(faster)} (the "
        f"paper, than SVM-light: {of(papers)})."
    )


def qp_table5(rows: Rows) -> str | None:
    alike = []
    for row in rows:
        ours = _qp.ratio(row["found"]["ipm"], row["found"]["cold"])
        if ours is not None and row["paper_times"] is not None:
            alike.append((ours < 1.0) == (row["paper_times"] < 1.0))
    return f"A start from interior points saves or costs time as in the paper on {of(alike)} problems."


def qp_table6(rows: Rows) -> str | None:
    both = [row for row in rows if row["times_cold"] is not None]
    if not both:
        return None
    part = [row for row in both if row["n_rows"] < row.get("all_rows", row["n_rows"] + 1)]  # older results do not say
    whole = [row for row in both if row not in part]

    def times(some: Rows, key: str = "times_cold") -> str:
        return f"{median(row[key] for row in some if row[key]):.1f}"

    if not whole:
        return (
            f"On at most {max(row['n_rows'] for row in part):,} rows of {len(part)} problems, one at a time takes "
            f"{times(part)} times as long as a cold fit in the median; the paper, on all rows: "
            f"{times(both, 'paper_times')} times."
        )
    return sentence(
        f"Rows one at a time take {times(whole)} times as long as a cold fit in the median of {len(whole)} problems; "
        f"the paper on these: {times(whole, 'paper_times')} times",
        f"of {len(part)} problems a part of the rows was learned, which takes {times(part)} times as long"
        if part
        else "",
    )


def qp_paths(rows: Rows) -> str | None:
    later = [row["found"] for row in rows if not row["is_first"]]
    if not later:
        return None
    fewer = [
        None
        if one["warm"]["was_cut"]
        else is_less(one["warm"]["pivots"], one["cold"]["pivots"], one["cold"]["was_cut"])
        for one in later
    ]
    quicker, than_blocks = ([_qp.is_faster(one["warm"], one[other]) for one in later] for other in ("cold", "blocks"))
    return (
        f"A warm start needs fewer pivots than one from zero at {of(fewer)} values, and less time at {of(quicker)}; "
        f"less time than where blocks begin at {of(than_blocks)}."
    )


def _is_exact(fit: Mapping[str, Any]) -> bool:
    return not fit["was_cut"] and fit["kkt_violation"] <= _qp.TOL * 1.05  # the judge sums in another order


def _is_first(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool | None:
    """Whether one fit was faster, and came as near to the optimum as is asked for, or as near as the other."""
    is_faster = _qp.is_faster(one, other)
    near = max(_qp.TOL * 1.05, other.get("kkt_violation") or 0.0)
    return is_faster if is_faster is None or one["was_cut"] else is_faster and one["kkt_violation"] <= near


def _same_sets(row: Mapping[str, Any]) -> bool | None:
    if row["n_free"] is None or row["paper_free"] is None:
        return None
    return all(
        abs(row[f"n_{s}"] - row[f"paper_{s}"]) <= max(2.0, NEAR * row[f"paper_{s}"]) for s in ("free", "bounded")
    )


# The HMG paper.


def hmg_table1(rows: Rows) -> str | None:
    ended = _paper.by_name(row for row in rows if not row["was_cut"] and row["data"] in _hmg.PAPER_SV)
    found = {name: next(iter(row.values())) for name, row in ended.items()}
    off = {name: 100.0 * (row["sv_share"] - _hmg.PAPER_SV[name][0]) for name, row in found.items()}
    if not off:
        return None
    listed = ", ".join(f"{name} {value:+.1f}" for name, value in off.items())
    return f"Shares of support vectors, in points from the paper's: {listed}; the face data are not public."


def hmg_table2(rows: Rows) -> str | None:
    """HMG down to the same KKT gap as the others, with the paper's stop, and with mu_max in place of its mu*."""
    found = _paper.by_name(rows)
    small = [row for name, row in found.items() if name != "spambase"]
    fewest = [_hmg.fewest(row, SECOND, PAIRS, "iterations") for row in found.values()]
    least = [_hmg.fewest(row, HMG, PAIRS, "seconds") for row in small]
    free = [_hmg.fewest(row, HMG_FREE, (MVP, SECOND), "seconds") for row in small if HMG_FREE in row]
    short = [_hmg.ends_short(row, HMG_OWN) for row in found.values() if HMG_OWN in row]
    return sentence(
        *(
            f"HMG {how} needs {said} times the paper's iterations"
            for rule, how in (
                (HMG_OWN, "with the paper's stop"),
                (HMG_FREE, "with mu_max in it"),
                (HMG, "to the KKT gap"),
            )
            if (said := _of_the_papers(found, rule))
        ),
        f"the paper's stop ends more than a millionth below the others on {of(short)} data sets" if any(short) else "",
        f"second order makes the fewest on {of(fewest)} data sets",
        f"with a small cache HMG takes the least time on {of(least)}"
        + (f", with mu_max in the stop on {of(free)}" if free else ""),
    )


def _of_the_papers(found: Mapping[str, Mapping[str, dict[str, Any]]], rule: str) -> str:
    """Iterations of HMG by those that the paper prints, without solves that were cut or ended short."""
    ratios = {
        name: row[rule]["iterations"] / _hmg.PAPER[name][HMG][0]
        for name, row in found.items()
        if name in _hmg.PAPER and rule in row and not row[rule]["was_cut"] and not _hmg.ends_short(row, rule)
    }
    return ", ".join(f"{ratio:.2f} ({name})" for name, ratio in ratios.items())


def hmg_table3(rows: Rows) -> str | None:
    slowest = [_hmg.most(row, LIGHT, PAIRS, "seconds") for row in _paper.by_name(rows).values()]
    return (
        f"Decomposition takes longer than every pair rule on {of(slowest)} data sets; the paper: on all, by SVM-light."
    )


def hmg_table4(rows: Rows) -> str | None:
    longer = [row["seconds_share"] > 1.0 for row in rows if row["seconds_share"] is not None]
    near = [abs(row["iterations_share"] - 1.0) < 0.12 for row in rows if row["iterations_share"] is not None]
    return (
        f"Without shrinking a fit takes more time in {of(longer)} rows, and the iterations change by less than 12 % "
        f"in {of(near)}."
    )


def hmg_table5(rows: Rows) -> str | None:
    found = _paper.by_name(rows)
    small = [row for name, row in found.items() if name != "200 MB"]
    least = [_hmg.fewest(row, HMG, PAIRS, "seconds") for row in small]
    fewest = [_hmg.fewest(row, HMG, PAIRS, "kernel_evaluations") for row in found.values()]
    return sentence(
        f"HMG takes the least time with {of(least)} caches up to 100 MB",
        f"it makes the fewest kernel evaluations with {of(fewest)} caches",
        f"measured on {', '.join(dict.fromkeys(row['problem'] for row in rows))}",
    )


def hmg_figure6(rows: Rows) -> str | None:
    points = {
        rule: of(None if row[key] is None else row[key] < 1.0 for row in rows)
        for rule, key in ((SECOND, "second_ratio"), (MVP, "mvp_ratio"))
    }
    lost = [row["is_degenerate"] for row in rows if max(row["second_ratio"] or 0.0, row["mvp_ratio"] or 0.0) > 1.0]
    return (
        f"HMG takes less time than second order at {points[SECOND]} points, than the most violating pair at "
        f"{points[MVP]}; where it loses, {of(lost)} points are degenerate (the paper: all)."
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

    return _against_two(rows, (ONE_ROW, ONE_FREE), "One row needs", PAPER)


def hmg_table7(rows: Rows) -> str | None:
    from benchmarks.tables.hmg_paper_table7 import PAPER

    return _against_two(rows, (ALL_ROWS, ALL_FREE), "All cached rows need", PAPER)


def _against_two(rows: Rows, rules: tuple[str, str], said: str, paper: Mapping[str, Mapping[str, tuple]]) -> str | None:
    """Iterations by those of two rows, to the same KKT gap, and beside the paper's with its stop, but for the box."""
    printed = {name: figures[rules[0]][0] / figures[HMG][0] for name, figures in paper.items()}
    found = _paper.by_name(rows)

    def ratios(rule: str, two: str, names: Iterable[str]) -> dict[str, float]:
        values = {
            name: _hmg.relative(found[name].get(rule), found[name].get(two), "iterations")
            for name in names
            if name in found and not any(_hmg.ends_short(found[name], one) for one in (rule, two) if one in found[name])
        }
        return {name: value for name, value in values.items() if value is not None}

    same, own = ratios(rules[0], HMG, found), ratios(rules[1], HMG_FREE, printed)
    if not same:
        return None

    def listed(values: Mapping[str, float], has_paper: bool) -> str:
        marks = {name: f", paper {printed[name]:.2f}" for name in values if has_paper and name in printed}
        return ", ".join(f"{ratio:.2f} ({name}{marks.get(name, '')})" for name, ratio in values.items())

    return sentence(
        f"{said} {listed(same, not own)} times the iterations of two rows",
        f"with the paper's stop without the box {listed(own, True)}" if own else "",
    )
