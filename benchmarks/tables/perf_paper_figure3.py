"""SVM-perf's Figures 3, 4 and 7, and the panel of Figure 1 for the best C: what the tolerance costs.

    figure 3    test performance of CPA less that of SVM-light, in percentage points, against C
    figure 4    test performance of CPA less that at epsilon = 0.001, against epsilon
    figure 7    how far the objective of the relaxed problem is below the optimum, against C and against epsilon
    best C      seconds of CPA at the C that is best on the test rows, against the number of training rows

The performance is the break-even point of precision and recall on text, accuracy elsewhere, as in the paper. The
objective of the relaxed problem, 1/2 |w|^2 + C xi, is the dual bound of the last planes.
"""

import argparse
from typing import Any

import numpy as np

from benchmarks import plots, record
from benchmarks.datasets.ranking_problems import RankingProblem
from benchmarks.solvers import decomposition, paper
from benchmarks.tables import _paper, _perf

GRID = (100.0, 1_000.0, 10_000.0, 50_000.0, 100_000.0, 1_000_000.0)
EPSILONS = (0.1, 0.03, 0.01, 0.003, 0.001, 3e-4, 1e-4)
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
ROWS = {"covertype 1": 100_000}  # of training and test together
TEXT = ("ccat", "c11")
OPTIMUM_TOL = 1e-6
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
            ("figure 7, left", "7 left", "C", "below", "below the optimum, share"),
            ("figure 7, right", "7 right", "epsilon", "below", "below the optimum, share"),
            ("figure 1, best C", "best C", "n_rows", "seconds", "seconds"),
        )
    ]
    png = plots.log_log([panel for panel in panels if any(len(x) for x, _ in panel.curves.values())], "", "")
    if _paper.writes(args):
        plots.write(_paper.folder(args) / f"{table.name}.png", png)


def _measure(table: record.Table) -> None:
    args = table.args
    for problem in _perf.tasks(table, _perf.NAMES):
        problem = problem.rows(slice(ROWS.get(problem.name, problem.n_rows)))
        _perf.warm_up(problem)
        train, test = problem.rows(slice(problem.n_rows // 2)), problem.rows(slice(problem.n_rows // 2, None))
        best = _against_C(table, train, test, GRID[:2] if args.quick else GRID)
        _against_epsilon(table, train, test, best, EPSILONS[-3:] if args.quick else EPSILONS)
        sizes = [200] if args.quick else [n for n in SIZES if n < train.n_rows] + [train.n_rows]
        for n in sizes:
            part = train.rows(slice(n))
            tried = {C: table.cells.part(f"{n} rows, C = {C:g}", _tried, part, test, C, args) for C in GRID}
            C = max(tried, key=lambda C: (tried[C]["performance"], -C))
            _add(table, problem.name, "best C", n, C, 1e-3, tried[C])


def _against_C(table: record.Table, train: RankingProblem, test: RankingProblem, grid: Any) -> float:
    """Figures 3 and 7, left; returns the C that is best on the test rows."""
    args, found = table.args, {}
    for C in grid:
        tried = table.cells.part(f"C = {C:g}", _tried, train, test, C, args, 1e-3, True)
        slow = table.cells.part(f"SVM-light, C = {C:g}", _slow, train, test, C, args)
        found[C], below = tried["performance"], tried.pop("below")
        points = None if slow is None else 100.0 * (found[C] - slow)
        _add(table, train.name, "3", train.n_rows, C, 1e-3, tried, difference=points)
        _add(table, train.name, "7 left", train.n_rows, C, 1e-3, tried | {"performance": None}, below=below)
    return max(found, key=lambda C: (found[C], -C))


def _tried(
    train: RankingProblem,
    test: RankingProblem,
    C: float,
    args: argparse.Namespace,
    epsilon: float = 1e-3,
    with_optimum: bool = False,
) -> dict[str, Any]:
    """What the rows say of a fit by CPA."""
    run = _perf.fit(train, "classification", "CPA", C, args.max_seconds, epsilon)
    return {
        "seconds": run.seconds,
        "iterations": run.iterations,
        "was_cut": run.was_cut,
        "ended": run.ended,
        "performance": _performance(test, run.model),
    } | ({"below": _below(train, C, run, args.slow_seconds)} if with_optimum else {})


def _slow(train: RankingProblem, test: RankingProblem, C: float, args: argparse.Namespace) -> float | None:
    """The test performance of SVM-light, None where it was cut."""
    run = _perf.fit(train, "classification", "SVM-light", C, args.slow_seconds)
    return None if run.was_cut else _performance(test, run.model)


def _against_epsilon(table: record.Table, train: RankingProblem, test: RankingProblem, C: float, epsilons: Any) -> None:
    """Figures 4 and 7, right."""
    args = table.args
    runs = {e: table.cells.part(f"epsilon = {e:g}", _tried, train, test, C, args, e, True) for e in epsilons}
    for epsilon, tried in runs.items():
        points, below = 100.0 * (tried["performance"] - runs[1e-3]["performance"]), tried.pop("below")
        _add(table, train.name, "4", train.n_rows, C, epsilon, tried, difference=points)
        _add(table, train.name, "7 right", train.n_rows, C, epsilon, tried | {"performance": None}, below=below)


def _below(problem: RankingProblem, C: float, run: _perf.Run, limit: float) -> float:
    """(optimum - relaxed objective) / optimum; the optimum to a relative gap of OPTIMUM_TOL."""
    signed = RankingProblem(problem.name, problem.storage, problem.X, np.where(problem.y > 0, 1.0, -1.0))
    optimum = paper.lower_bound(signed, C / problem.n_rows, limit, OPTIMUM_TOL).primal
    return 1.0 - float(run.model.trace_["dual"][-1]) / optimum


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
    def of(part: str, key: str) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for row in rows:
            if row["part"] == part and row.get(key) is not None and not row["was_cut"]:
                found.setdefault(row["data"], []).append(row[key])
        return found

    fine = {}
    for row in rows:
        if row["part"] == "4" and row["epsilon"] <= 0.01 and not row["was_cut"]:
            fine.setdefault(row["data"], []).append(abs(row["difference"]))
    growth = {
        name: _perf.exponent(*map(np.array, curve))
        for name, curve in _curves(rows, list(fine), "best C", "n_rows", "seconds").items()
    }
    growth = {name: e for name, e in growth.items() if not np.isnan(e)}
    return [
        "Other conditions than the paper's: training and test are halves of the rows here, c11 and ccat have 27,613 "
        f"documents, and covertype 1 is {ROWS['covertype 1']:,} rows. SVM-light is our own of that rule, with an "
        "intercept.",
        "![what the tolerance costs](perf_paper_figure3.png)",
        _paper.claim(
            "Figure 3: for almost all C both predict equally well (here: CPA and SVM-light within one percentage point "
            "on average over C)",
            {name: float(np.mean(np.abs(values))) <= 1.0 for name, values in of("3", "difference").items()},
        ),
        _paper.claim(
            "Figure 4: for epsilon <= 0.01 the performance is within half a percentage point of that at 0.001",
            {name: max(values) <= 0.5 for name, values in fine.items()},
        ),
        _paper.claim(
            "Figure 7: at epsilon = 0.001 the objective is 0.1 to 1 % below the optimum for all C (here: at most 1 %)",
            {name: max(values) <= 0.01 for name, values in of("7 left", "below").items()},
        ),
        _paper.claim(
            "Figure 1 at the best C: seconds grow about linearly with the rows (here an exponent below 1.3: "
            f"{_perf.listed(growth)})",
            {name: e < 1.3 for name, e in growth.items()},
        ),
        decomposition.NOTE,
        _perf.DATA_NOTE,
        _perf.STOP_NOTE,
        _perf.MACHINE_NOTE,
    ]


if __name__ == "__main__":
    main()
