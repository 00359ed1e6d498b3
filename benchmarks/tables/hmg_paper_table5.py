"""The HMG paper's Table 5: working-set rules on connect-4 with caches of several sizes, beside the paper's numbers."""

from typing import Any

from benchmarks import record
from benchmarks.tables import _hmg, _paper
from benchmarks.tables._hmg import HMG, HMG_OWN, MVP, SECOND

RULES = (MVP, SECOND, HMG, HMG_OWN)
PAIRS = (MVP, SECOND, HMG)
SETS = ("connect-4", _hmg.PART)
CACHES = (20, 40, 100, 200)  # MB
# seconds
PAPER = {
    20: {MVP: 958, SECOND: 766, HMG: 656},
    40: {MVP: 916, SECOND: 734, HMG: 633},
    100: {MVP: 758, SECOND: 649, HMG: 583},
    200: {MVP: 603, SECOND: 547, HMG: 555},
}
COLUMNS = {
    "data": ("cache", ""),
    "share": ("of the matrix", ".2%"),
    "n_rows": ("rows", ",d"),
    "solver": ("rule", ""),
    "iterations": ("iterations", ",d"),
    "iterations_range": ("range", ""),
    "kernel_evaluations": ("kernel evaluations", ",d"),
    "misses": ("misses", ",d"),
    "evaluations_of_hmg": ("of HMG's", ".2f"),
    "seconds": ("seconds", ".2f"),
    "seconds_range": ("range", ""),
    "times_hmg": ("of HMG's", ".2f"),
    "paper_times_hmg": ("paper", ".2f"),
    "objective": ("objective", ",.3f"),
    "ended": ("ended by", ""),
}
REMARKS: tuple[str, ...] = ()


def main() -> None:
    args = _hmg.options(__doc__, 1800.0, SETS, RULES, adds=False)
    title = "HMG paper, Table 5: connect-4 with caches of 20 to 200 MB"
    table = record.Table("hmg_paper_table5", title, COLUMNS, "1", args)
    _paper.produce(table, _measure, _notes, REMARKS, _derive)


def _measure(table: record.Table) -> None:
    args = table.args
    problem = _hmg.prepared(args.only or SETS[0], args.rules, args)
    for cache_mb in table.cells.each(CACHES, lambda mb: f"{problem.name}, {mb} MB"):
        found = _hmg.trials(table, problem, args.rules, cache_mb=cache_mb)
        rows = {rule: _hmg.figures(fits, args) for rule, fits in found.items()}
        for rule, row in rows.items():
            table.add(
                data=f"{cache_mb} MB",
                problem=problem.name,
                share=min(1.0, _hmg.cache_bytes(problem, cache_mb) / (4.0 * problem.n_rows**2)),
                n_rows=problem.n_rows,
                solver=rule,
                **row,
            )


def _derive(rows: list[dict[str, Any]]) -> None:
    """Costs by those of HMG down to the same KKT gap, and the paper's."""
    for name, found in _paper.by_name(rows).items():
        printed = PAPER[int(name.removesuffix(" MB"))]
        for rule, row in found.items():
            row |= {
                "evaluations_of_hmg": _hmg.relative(row, found.get(HMG), "kernel_evaluations"),
                "times_hmg": _hmg.relative(row, found.get(HMG), "seconds"),
                "paper_seconds": printed.get(rule),
                "paper_times_hmg": printed[rule] / printed[HMG] if rule in printed else None,
            }


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    found = _paper.by_name(rows)
    small, large = "20 MB", "200 MB"
    parts = [row["problem"] for row in rows[:1] if row["problem"] != "connect-4"]
    return [
        _hmg.conditions(rows, *(f"{name} is a part of the paper's data" for name in parts)),
        _hmg.claim(
            "with caches up to 100 MB HMG takes the least time",
            {name: _hmg.fewest(row, HMG, PAIRS, "seconds") for name, row in found.items() if name != large},
        ),
        _hmg.claim(
            "with 200 MB the second-order rule has caught up",
            {large: _hmg.fewest(found[large], SECOND, (HMG,), "seconds")},
        ),
        _hmg.claim(
            "HMG uses a small cache better (here: the fewest kernel evaluations)",
            {name: _hmg.fewest(row, HMG, PAIRS, "kernel_evaluations") for name, row in found.items()},
        ),
        f"From {small} to {large} the seconds fall by the factors "
        + ", ".join(
            f"{_fall(found, rule, small, large)} ({rule}; paper {PAPER[20][rule] / PAPER[200][rule]:.2f})"
            for rule in PAIRS
            if rule in found[small]
        )
        + ".",
        *_hmg.tests(found, [(HMG, SECOND), (SECOND, MVP), (HMG, MVP)]),
        "On a part of connect-4 a cache is as much smaller as the matrix is: it is named by the paper's size, and the "
        "share of the matrix says what it holds.",
        _hmg.DATA_NOTE,
        _hmg.RUN_NOTE,
        _hmg.COUNT_NOTE,
    ]


def _fall(found: dict[str, dict[str, dict[str, Any]]], rule: str, small: str, large: str) -> str:
    value = _hmg.relative(found[small][rule], found[large][rule], "seconds")
    return "unknown, because a fit was cut" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    main()
