"""SVM-perf's Figures 3, 4 and 7, and the panel of Figure 1 for the best C: what the tolerance costs.

    figure 3    test performance of CPA less that of SVM-light, in percentage points, against C
    figure 4    test performance of CPA less that at epsilon = 0.001, against epsilon
    figure 7    how far the objective of the relaxed problem is below the optimum, against C and against epsilon
    best C      seconds of CPA at the C that is best on the test rows, against the number of training rows

The performance is the break-even point of precision and recall on text, accuracy elsewhere, as in the paper. The
objective of the relaxed problem, 1/2 |w|^2 + C xi, is the dual bound of the last planes.
"""

import argparse
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks import plots, record
from benchmarks.datasets.ranking_problems import RankingProblem
from benchmarks.solvers import decomposition, paper
from benchmarks.tables import _paper, _perf

GRID = (100.0, 1_000.0, 10_000.0, 50_000.0, 100_000.0, 1_000_000.0)
EPSILON = 1e-3
EPSILONS = (0.1, 0.03, 0.01, 0.003, EPSILON, 3e-4, 1e-4)
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
TRAINING = {"covertype 1": 522_911}  # rows, as in the paper; a half of the others
LIGHT_ROWS = 50_000  # of those at most for Figure 3, because SVM-light would not end on more
TEXT = ("ccat", "c11")
# The gap to which the optimum is solved for, and the largest with which it still says something: 0.1 % is the matter.
OPTIMUM_TOL, OPTIMUM_KNOWN = 1e-6, 1e-4
COLUMNS = {
    "data": ("data", ""),
    "part": ("figure", ""),
    "n_rows": ("training rows", ",d"),
    "C": ("C", "g"),
    "epsilon": ("epsilon", "g"),
    "performance": ("test performance", ".2%"),
    "difference": ("points above the reference", "+.2f"),
    "below": ("relaxed objective below the optimum", ".2%"),
    "seconds": ("seconds", ".2f"),
    "ended": ("ended by", ""),
}


def main() -> None:
    args = _perf.options(__doc__, 60.0, _perf.NAMES, repeats=1)
    title = "SVM-perf paper, Figures 3, 4 and 7, and Figure 1 at the best C"
    table = record.Table("perf_paper_figure3", title, COLUMNS, "1", args)
    _paper.produce(table, _measure, _notes)
    names = list(dict.fromkeys(row["data"] for row in table.rows))
    panels = [
        plots.Panel(title, _curves(table.rows, names, part, x, y), y_label=label)
        for title, part, x, y, label in (
            ("Figure 7: against C", "7 left", "C", "below", "below the optimum, share"),
            ("Figure 7: against epsilon", "7 right", "epsilon", "below", "below the optimum, share"),
            ("Figure 1, best C: against rows", "best C", "n_rows", "seconds", "seconds"),
        )
    ]
    png = plots.log_log([panel for panel in panels if any(len(x) for x, _ in panel.curves.values())], "", "")
    if _paper.writes(args):
        plots.write(_paper.folder(args) / f"{table.name}.png", png)


def _measure(table: record.Table) -> None:
    args = table.args
    for problem in _perf.tasks(table, _perf.NAMES):
        _perf.warm_up(problem)
        n = problem.n_rows // 2 if args.quick else TRAINING.get(problem.name, problem.n_rows // 2)
        train, test = problem.rows(slice(n)), problem.rows(slice(n, None))
        grid = GRID[:2] if args.quick else GRID
        _against_light(table, train.rows(slice(min(n, LIGHT_ROWS))), test, grid)
        best = _against_C(table, train, test, grid)
        _against_epsilon(table, train, test, best, EPSILONS[-3:] if args.quick else EPSILONS)
        for size in [200] if args.quick else [*(size for size in SIZES if size < n), n]:
            part = train.rows(slice(size))
            tried = {C: _cpa(table, part, test, C) for C in grid}
            C = max(tried, key=lambda C: (tried[C]["performance"], -C))
            _add(table, problem.name, "best C", size, C, EPSILON, tried[C])


def _against_light(table: record.Table, train: RankingProblem, test: RankingProblem, grid: Any) -> None:
    """Figure 3. SVM-light is not tried beyond a C at which it was cut."""
    light: dict[str, Any] = {"was_cut": False}
    for C in grid:
        tried = _cpa(table, train, test, C)
        if not light["was_cut"]:
            light = table.cells.part(f"SVM-light, C = {C:g}", _slow, train, test, C, table.args)
        points = None if light["was_cut"] else 100.0 * (tried["performance"] - light["performance"])
        _add(table, train.name, "3", train.n_rows, C, EPSILON, tried, difference=points)


def _against_C(table: record.Table, train: RankingProblem, test: RankingProblem, grid: Any) -> float:
    """Figure 7, left; returns the C that is best on the test rows."""
    found = {C: _cpa(table, train, test, C) for C in grid}
    for C, tried in found.items():
        below = _below(tried, _optimum(table, train, C))
        _add(table, train.name, "7 left", train.n_rows, C, EPSILON, tried | {"performance": None}, below=below)
    return max(found, key=lambda C: (found[C]["performance"], -C))


def _against_epsilon(table: record.Table, train: RankingProblem, test: RankingProblem, C: float, epsilons: Any) -> None:
    """Figures 4 and 7, right."""
    optimum, runs = _optimum(table, train, C), {e: _cpa(table, train, test, C, e) for e in epsilons}
    reference = runs[EPSILON]
    for epsilon, tried in runs.items():
        points = None if reference["was_cut"] else 100.0 * (tried["performance"] - reference["performance"])
        _add(table, train.name, "4", train.n_rows, C, epsilon, tried, difference=points)
        below = _below(tried, optimum)
        _add(table, train.name, "7 right", train.n_rows, C, epsilon, tried | {"performance": None}, below=below)


def _cpa(
    table: record.Table, train: RankingProblem, test: RankingProblem, C: float, epsilon: float = EPSILON
) -> dict[str, Any]:
    """What the rows say of a fit, made once for all figures that show it."""
    key = f"{train.n_rows} rows, C = {C:g}, epsilon = {epsilon:g}"
    return table.cells.part(key, _tried, train, test, C, epsilon, table.args.max_seconds)


def _tried(train: RankingProblem, test: RankingProblem, C: float, epsilon: float, limit: float) -> dict[str, Any]:
    run = _perf.fit(train, "classification", "CPA", C, limit, epsilon)
    return {
        "seconds": run.seconds,
        "n_fits": 1,
        "iterations": run.iterations,
        "was_cut": run.was_cut,
        "ended": run.ended,
        "performance": _performance(test, run.model),
        "relaxed": float(run.model.trace_["dual"][-1]),
    }


def _slow(train: RankingProblem, test: RankingProblem, C: float, args: argparse.Namespace) -> dict[str, Any]:
    run = _perf.fit(train, "classification", "SVM-light", C, args.slow_seconds)
    return {"was_cut": run.was_cut, "performance": None if run.was_cut else _performance(test, run.model)}


def _optimum(table: record.Table, problem: RankingProblem, C: float) -> dict[str, float]:
    return table.cells.part(f"optimum, C = {C:g}", _solved, problem, C, table.args.slow_seconds)


def _solved(problem: RankingProblem, C: float, limit: float) -> dict[str, float]:
    signed = RankingProblem(problem.name, problem.storage, problem.X, np.where(problem.y > 0, 1.0, -1.0))
    score = paper.lower_bound(signed, C / problem.n_rows, limit, OPTIMUM_TOL)
    return {"primal": score.primal, "gap": score.relative_gap}


def _below(tried: dict[str, Any], optimum: dict[str, float]) -> float | None:
    """(optimum - relaxed objective) / optimum; None where the optimum is not known well enough."""
    return 1.0 - tried["relaxed"] / optimum["primal"] if optimum["gap"] <= OPTIMUM_KNOWN else None


def _performance(test: RankingProblem, model: Any) -> float:
    from softmargin.metrics import prbep

    w = model.coef_
    w = w.toarray() if hasattr(w, "toarray") else w
    scores = test.X @ np.ravel(w) + float(np.ravel(model.intercept_)[0])
    if test.name in TEXT:
        return float(prbep(test.y > 0, scores))
    return float(((scores > 0) == (test.y > 0)).mean())


def _add(
    table: record.Table, data: str, part: str, n: int, C: float, epsilon: float, tried: dict[str, Any], **more: Any
) -> None:
    table.add(data=data, part=part, n_rows=n, C=C, epsilon=epsilon, **tried, **more)


def _curves(rows: list[dict[str, Any]], names: list[str], part: str, x: str, y: str) -> dict[str, Any]:
    found = {}
    for name in names:
        kept = [row for row in rows if (row["data"], row["part"]) == (name, part) and not row["was_cut"]]
        points = sorted((row[x], row[y]) for row in kept if row[y] is not None and row[y] > 0)
        if points:
            found[name] = tuple(zip(*points, strict=True))
    return found


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    difference, coarse = of(rows, "3", "difference"), of(rows, "4", "difference", at_most=0.01)
    right = {name: [row["below"] for row in along] for name, along in right_panel(rows).items()}
    growth = best_C_growth(rows)
    return [
        "Other conditions than the paper's: training and test are halves of the rows but for covertype 1, which has "
        f"the {TRAINING['covertype 1']:,} and 58,101 of the paper; c11 and ccat have 27,613 documents; Figure 3 is "
        f"made with {LIGHT_ROWS:,} training rows at most. SVM-light is our own of that rule, with an intercept, and a "
        "limit of time.",
        "![what the tolerance costs](perf_paper_figure3.png)",
        _paper.claim(
            "Figure 3: for almost all C both predict equally well (here: CPA and SVM-light within one percentage point "
            "on average over the C at which neither was cut)",
            {name: float(np.mean(np.abs(values))) <= 1.0 for name, values in difference.items()},
        ),
        "Figure 3, values of C that could be compared, and the points by which CPA is above SVM-light: "
        + ("; ".join(f"{name} {len(v)} of {_tried_of(rows, name)}, {_points(v)}" for name, v in difference.items()))
        + ".",
        _paper.claim(
            "Figure 4: for epsilon <= 0.01 the performance is within half a percentage point of that at 0.001",
            {name: max(map(abs, values)) <= 0.5 for name, values in coarse.items()},
        ),
        _paper.claim(
            "Figure 7: at epsilon = 0.001 the objective is 0.1 to 1 % below the optimum for all C (here: at most 1 %)",
            {name: max(values) <= 0.01 for name, values in of(rows, "7 left", "below").items()},
        ),
        _paper.claim(
            "Figure 7: the distance decreases with epsilon (here: with every step)",
            {name: is_falling(values) for name, values in right.items()},
        ),
        _paper.claim(
            "Figure 1 at the best C: seconds grow about linearly with the rows (here an exponent below 1.3: "
            f"{_perf.listed(growth)})",
            {name: e < 1.3 for name, e in growth.items()},
        ),
        f"the optimum is that of OCAS to a relative gap of {OPTIMUM_TOL:g}; where the limit of time left it above "
        f"{OPTIMUM_KNOWN:g}, the distance from it is not given.",
        decomposition.NOTE,
        _perf.DATA_NOTE,
        _perf.STOP_NOTE,
        _perf.machine_note(rows),
    ]


def of(rows: list[dict[str, Any]], part: str, key: str, at_most: float = np.inf) -> dict[str, list[float]]:
    """What is known of a figure by data set, for this epsilon at most; the reference of Figure 4 is not compared."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if (part, row["epsilon"]) == ("4", EPSILON) or row["epsilon"] > at_most:
            continue
        if row["part"] == part and row.get(key) is not None and not row["was_cut"]:
            found.setdefault(row["data"], []).append(row[key])
    return found


def right_panel(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The points of Figure 7, right, by data set, epsilon descending; without sets that have fewer than three."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: -row["epsilon"]):
        if row["part"] == "7 right" and row.get("below") is not None and not row["was_cut"]:
            found.setdefault(row["data"], []).append(row)
    return {name: along for name, along in found.items() if len(along) > 2}


def is_falling(values: list[float]) -> bool:
    return all(after < before for before, after in pairwise(values))


def best_C_growth(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The exponents of the seconds at the best C along the rows."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    curves = _curves(rows, names, "best C", "n_rows", "seconds")
    found = {name: _perf.exponent(*map(np.array, curve)) for name, curve in curves.items()}
    return {name: e for name, e in found.items() if not np.isnan(e)}


def _tried_of(rows: list[dict[str, Any]], name: str) -> int:
    return sum((row["data"], row["part"]) == (name, "3") for row in rows)


def _points(values: list[float]) -> str:
    low, high = f"{min(values):+.2f}", f"{max(values):+.2f}"
    return low if low == high else f"{low} to {high}"


if __name__ == "__main__":
    main()
