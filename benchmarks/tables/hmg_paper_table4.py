"""The HMG paper's Table 4: what shrinking changes, rule by rule, beside the paper's numbers."""

from typing import Any

from benchmarks import record
from benchmarks.tables import _hmg, _paper
from benchmarks.tables._hmg import HMG, HMG_FREE, HMG_OWN, MVP, SECOND

RULES = (MVP, SECOND, HMG, HMG_OWN, HMG_FREE)
PAIRS = (MVP, SECOND, HMG)
# Without shrinking: iterations, their share of those with shrinking, and the share of the seconds.
PAPER = {
    "spambase": {MVP: (33_340, 0.911, 1.14), SECOND: (9_123, 0.989, 1.06), HMG: (9_342, 0.884, 1.24)},
    "connect-4": {MVP: (65_735, 1.009, 2.43), SECOND: (45_466, 0.999, 2.13), HMG: (49_512, 0.985, 1.59)},
    "mnist 60k": {MVP: (187_653, 1.013, 6.95), SECOND: (110_470, 1.0, 5.85), HMG: (155_182, 1.015, 5.49)},
}
COLUMNS = {
    "data": ("data", ""),
    "n_rows": ("rows", ",d"),
    "solver": ("rule", ""),
    "iterations": ("iterations", ",d"),
    "iterations_range": ("range", ""),
    "paper_iterations": ("paper", ",d"),
    "iterations_share": ("of those with shrinking", ".1%"),
    "paper_iterations_share": ("paper", ".1%"),
    "kernel_evaluations": ("kernel evaluations", ",d"),
    "evaluations_share": ("of those with shrinking", ".1%"),
    "seconds": ("seconds", ".2f"),
    "seconds_range": ("range", ""),
    "seconds_share": ("of those with shrinking", ".0%"),
    "paper_seconds_share": ("paper", ".0%"),
    "objective": ("objective", ",.3f"),
    "shrunk_objective": ("with shrinking", ",.3f"),
    "ended": ("ended by", ""),
    "shrunk_ended": ("with shrinking", ""),
}
SETS = (*_hmg.SETS, _hmg.MNIST_PART)
REMARKS: tuple[str, ...] = (
    "spambase: the rows of the support vectors fit into the cache, so shrinking saves no kernel evaluations, only the "
    "length of the sums.",
)


def main() -> None:
    args = _hmg.options(__doc__, 14_400.0, SETS, RULES, full=True)
    title = "HMG paper, Table 4: without shrinking"
    _paper.produce(record.Table("hmg_paper_table4", title, COLUMNS, "1", args), _measure, _notes, REMARKS)


def _measure(table: record.Table) -> None:
    args = table.args
    for problem in _hmg.problems(table, SETS, args.rules):
        shrunk = _hmg.trials(table, problem, args.rules, shrinking=True)
        plain = _hmg.trials(table, problem, args.rules, shrinking=False)
        for rule in args.rules:
            row, base = _hmg.figures(plain[rule], args), _hmg.figures(shrunk[rule], args)
            printed = _hmg.beside(problem.name, rule, PAPER) or (None, None, None)
            table.add(
                data=problem.name,
                n_rows=problem.n_rows,
                solver=rule,
                **row,
                iterations_share=_hmg.relative(row, base, "iterations"),
                evaluations_share=_hmg.relative(row, base, "kernel_evaluations"),
                seconds_share=_hmg.relative(row, base, "seconds"),
                **{f"shrunk_{key}": value for key, value in base.items()},
                paper_iterations=printed[0],
                paper_iterations_share=printed[1],
                paper_seconds_share=printed[2],
            )
    _hmg.measured_also(table)


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    found = _paper.by_name(rows)
    return [
        _hmg.conditions(rows),
        _hmg.claim(
            "without shrinking every rule takes more time",
            {name: _all(row, lambda r: r["seconds_share"] > 1) for name, row in found.items()},
        ),
        _hmg.claim(
            "the iterations change by less than 12 %",
            {name: _all(row, lambda r: abs(r["iterations_share"] - 1) < 0.12) for name, row in found.items()},
        ),
        _hmg.claim(
            "the second-order rule still needs the fewest iterations",
            {name: _hmg.fewest(row, SECOND, PAIRS, "iterations") for name, row in found.items()},
        ),
        _hmg.claim(
            "HMG still takes the least time where the cache is small",
            {name: _hmg.fewest(row, HMG, PAIRS, "seconds") for name, row in found.items() if name != "spambase"},
        ),
        *_hmg.tests(found, [(HMG, SECOND), (HMG, MVP), (SECOND, MVP)]),
        "A share is missing where a fit was cut, with or without shrinking.",
        _hmg.DATA_NOTE,
        _hmg.RUN_NOTE,
        _hmg.COUNT_NOTE,
    ]


def _all(row: dict[str, dict[str, Any]], holds: Any) -> bool | None:
    if any(each["was_cut"] or each["shrunk_was_cut"] for each in row.values()):
        return None
    return all(holds(each) for each in row.values())


if __name__ == "__main__":
    main()
