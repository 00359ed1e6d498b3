"""The HMG paper's Table 6: the gain over one kernel row or over two, beside the paper's numbers."""

from typing import Any

from benchmarks import record
from benchmarks.tables import _hmg, _paper
from benchmarks.tables._hmg import HMG, ONE_ROW

RULES = (HMG, ONE_ROW)
NAMES = ("spambase", _hmg.PART, "connect-4")
# iterations, seconds, objective
PAPER: dict[str, dict[str, tuple[int, float, float]]] = {
    "spambase": {HMG: (10_563, 9.17, 27_019.140), ONE_ROW: (14_023, 10.99, 27_019.134)},
    "connect-4": {HMG: (50_281, 633, 13_557.536), ONE_ROW: (83_305, 4_967, 13_557.529)},
}
COLUMNS = {
    "data": ("data", ""),
    "n_rows": ("rows", ",d"),
    "solver": ("rule", ""),
    "iterations": ("iterations", ",d"),
    "paper_iterations": ("paper", ",d"),
    "iterations_of_two": ("of those with two rows", ".2f"),
    "paper_iterations_of_two": ("paper", ".2f"),
    "kernel_evaluations": ("kernel evaluations", ",d"),
    "unshrinkings": ("unshrinkings", "d"),
    "seconds": ("seconds", ".2f"),
    "seconds_of_two": ("of those with two rows", ".2f"),
    "paper_seconds_of_two": ("paper", ".2f"),
    "objective": ("objective", ",.3f"),
    "paper_objective": ("paper", ",.3f"),
    "ended": ("ended by", ""),
}
REMARKS: tuple[str, ...] = (
    "The paper's one-row rule lost most of its time in unshrinkings after steps that were small by chance. Here such a "
    "step ends nothing, and the rule needs hardly more unshrinkings than the other; without that handicap it is the "
    "better of the two on connect-4, as far as these runs go.",
)


def main() -> None:
    args = _hmg.options(__doc__, 90.0, NAMES)
    title = "HMG paper, Table 6: one row against two"
    _paper.produce(record.Table("hmg_paper_table6", title, COLUMNS, "1", args), _measure, _notes, REMARKS)


def _measure(table: record.Table) -> None:
    args = table.args
    for problem in _hmg.problems(args, NAMES, RULES):
        found = _hmg.trials(problem, RULES, args)
        rows = {rule: _hmg.figures(fits, args) for rule, fits in found.items()}
        for rule, row in rows.items():
            printed = PAPER.get(problem.name)
            table.add(
                data=problem.name,
                n_rows=problem.n_rows,
                solver=rule,
                **row,
                iterations_of_two=_hmg.relative(row, rows[HMG], "iterations"),
                seconds_of_two=_hmg.relative(row, rows[HMG], "seconds"),
                paper_iterations=printed[rule][0] if printed else None,
                paper_objective=printed[rule][2] if printed else None,
                paper_iterations_of_two=printed[rule][0] / printed[HMG][0] if printed else None,
                paper_seconds_of_two=printed[rule][1] / printed[HMG][1] if printed else None,
            )


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    found = _paper.by_name(rows)
    return [
        _hmg.claim(
            "two rows need fewer iterations than one",
            {name: _hmg.fewest(row, HMG, RULES, "iterations") for name, row in found.items()},
        ),
        _hmg.claim(
            "two rows take less time than one",
            {name: _hmg.fewest(row, HMG, RULES, "seconds") for name, row in found.items()},
        ),
        _hmg.claim(
            "with one row the problem is unshrunk more often",
            {name: _hmg.most(row, ONE_ROW, RULES, "unshrinkings") and _differ(row) for name, row in found.items()},
        ),
        _hmg.claim(
            "with one row the objective is worse",
            {name: _hmg.fewest(row, ONE_ROW, RULES, "objective") for name, row in found.items()},
        ),
        "There a step of small length may end the solve, on a shrunk problem wrongly, and the objectives differ; here "
        "only the KKT violation of the whole problem ends it, so that both rules are held to the same accuracy.",
        _hmg.DATA_NOTE,
        _hmg.RUN_NOTE,
        _hmg.COUNT_NOTE,
    ]


def _differ(row: dict[str, dict[str, Any]]) -> bool:
    return row[ONE_ROW]["unshrinkings"] != row[HMG]["unshrinkings"]


if __name__ == "__main__":
    main()
