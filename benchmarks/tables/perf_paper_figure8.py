"""SVM-perf's Figures 8 and 9: iterations and training time against C, both problems."""

from typing import Any

from benchmarks import record
from benchmarks.solvers import decomposition
from benchmarks.tables import _paper, _perf

GRID = (100.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0)
SLOPES = {"seconds": 1.0, "iterations": 0.5}
REMARKS: tuple[str, ...] = (
    "c11, ordinal: 60 iterations at C = 1e5 and at 1e6. The pairs can nearly all be put in order: objective / C, which "
    "bounds the mean loss, is 0.0074 and 0.0016 there, and the stop rule asks for 0.001 at any C.",
)


def main() -> None:
    args = _perf.options(__doc__, 300.0, _perf.NAMES)
    title = "SVM-perf paper, Figures 8 and 9: iterations and time against C"
    table = record.Table("perf_paper_figure8", title, _perf.SWEEP_COLUMNS, "1", args)
    _perf.draw(table, _measure, _notes, REMARKS, ("C", "C"), SLOPES)


def _measure(table: record.Table) -> None:
    for problem in _perf.tasks(table, _perf.NAMES):
        _perf.warm_up(problem)
        _perf.sweep(table, problem, "C", GRID[:3] if table.args.quick else GRID, decomposition=True)


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    seconds, counts = _perf.growth(rows, "C")
    both = {f"{name} ({k})": e for k in _perf.PROBLEMS for name, e in counts[k, "CPA"].items()}
    return [
        _perf.CONDITIONS,
        "![iterations and time against C](perf_paper_figure8.png)",
        _perf.told("exponents e of iterations ~ C^e, by least squares in log-log", counts),
        _perf.told("exponents of the seconds", seconds),
        _paper.claim(
            "the iterations grow as the root of C for classification, and similarly for ordinal regression, far below "
            "the 1 of the bound (here: CPA, an exponent from 0.3 to 0.65)",
            {name: 0.3 <= e <= 0.65 for name, e in both.items()},
        ),
        _paper.claim(
            "the time of classification grows less than linearly with C, except for excessive C (here: CPA, an "
            "exponent below 1)",
            {name: e < 1.0 for name, e in seconds["classification", "CPA"].items()},
        ),
        _paper.claim(
            "CPA is faster than SVM-light for all C (here: where neither was cut, and where SVM-light alone was)",
            _is_faster(rows),
        ),
        "dashed: the exponents that the paper draws, 0.5 and 1.",
        decomposition.NOTE,
        _perf.DATA_NOTE,
        _perf.STOP_NOTE + " A fit that was cut is not in the picture and the exponents, and no larger C follows.",
        _perf.machine_note(rows),
    ]


def _is_faster(rows: list[dict[str, Any]]) -> dict[str, bool]:
    """By data set and C, of classification."""
    found = {(row["data"], row["C"], row["solver"]): row for row in rows if row["problem"] == "classification"}
    pairs = {
        f"{name} at {C:g}": (found.get((name, C, "CPA")), row)
        for (name, C, solver), row in found.items()
        if solver == "SVM-light"
    }
    return {
        name: is_faster
        for name, (cpa, slow) in pairs.items()
        if cpa is not None
        and not cpa["was_cut"]
        and ((is_faster := cpa["seconds"] < slow["seconds"]) or not slow["was_cut"])
    }


if __name__ == "__main__":
    main()
