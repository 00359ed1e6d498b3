"""SVM-perf's Figures 1 and 2: training time and iterations against the number of rows, both problems."""

from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.solvers import decomposition
from benchmarks.tables import _paper, _perf

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)  # and all rows
SLOPES = {"seconds": 0.8}
REMARKS: tuple[str, ...] = (
    "bio: 0.9 % positive rows and no intercept. The mean hinge loss stays at 0.88, while the pairs are nearly "
    "separable (a mean loss of 0.014 on all rows, 0.001 on 1,000, where 28 iterations are enough): the two "
    "problems have nothing in common but the rows, nor have their iterations.",
)


def main() -> None:
    args = _perf.options(__doc__, 60.0, _perf.NAMES)
    title = "SVM-perf paper, Figures 1 and 2: time and iterations against rows"
    table = record.Table("perf_paper_figure1", title, _perf.SWEEP_COLUMNS, "1", args)
    _perf.draw(table, _measure, _notes, REMARKS, ("n_rows", "rows"), SLOPES)


def _measure(table: record.Table) -> None:
    for problem in _perf.tasks(table, _perf.NAMES):
        _perf.warm_up(problem)
        sizes = (100, 200, 400) if table.args.quick else [n for n in SIZES if n < 0.7 * problem.n_rows]
        _perf.sweep(table, problem, "n_rows", [*sizes, problem.n_rows], decomposition=True)


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    seconds, counts = _perf.growth(rows, "n_rows")
    slow = _perf.by_decomposition(rows, "n_rows")
    classification, ordinal = seconds["classification", "CPA"], seconds["ordinal", "CPA"]
    return [
        _perf.CONDITIONS,
        "![time and iterations against rows](perf_paper_figure1.png)",
        _perf.told("exponents e of seconds ~ n^e, by least squares in log-log", seconds),
        _perf.told("exponents of the iterations", counts),
        _paper.claim(
            "the time for classification grows no faster than linearly, as about n^0.8 (here: CPA, an exponent below "
            "1.1)",
            {name: e < 1.1 for name, e in classification.items()},
        ),
        _paper.claim(
            "for ordinal regression too, a little more steeply (here: CPA, an exponent below 1.2)",
            {name: e < 1.2 for name, e in ordinal.items()},
        ),
        _paper.claim(
            "the iterations do not grow with n (here: CPA for classification, an exponent below 0.1)",
            {name: e < 0.1 for name, e in counts["classification", "CPA"].items()},
        ),
        _paper.claim(
            "the iterations for ordinal regression are virtually those for classification (here: CPA on all rows, to a "
            "factor of 1.65)",
            _alike(rows),
        ),
        _paper.claim(
            "the time of SVM-light grows as about n^1.7 (here an exponent of 1.2 to 2.5; SVM-light "
            f"{_perf.listed(slow['SVM-light'])}; LIBSVM {_perf.listed(slow['LIBSVM'])})",
            {f"{name} ({s})": 1.2 <= e <= 2.5 for s, found in slow.items() for name, e in found.items()},
        ),
        "dashed: the exponent that the paper draws, 0.8 for the seconds of both problems. The panel of its Figure 1 "
        "for the C that is best at each n is in `perf_paper_figure3`.",
        decomposition.NOTE,
        _perf.DATA_NOTE,
        "samples are the first rows of the same seeded order; C is that of the paper for all rows.",
        _perf.STOP_NOTE + " A fit that was cut is not in the picture and the exponents, and no larger sample follows.",
        _perf.machine_note(rows),
    ]


def _alike(rows: list[dict[str, Any]]) -> dict[str, bool]:
    found = {}
    for name in dict.fromkeys(row["data"] for row in rows):
        (n, a), (m, b) = (_perf.line(rows, name, kind, "CPA", "n_rows", "iterations") for kind in _perf.PROBLEMS)
        if n.size and m.size and n[-1] == m[-1]:
            found[name] = bool(abs(np.log(a[-1] / b[-1])) < 0.5)
    return found


if __name__ == "__main__":
    main()
