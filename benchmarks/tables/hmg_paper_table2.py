"""The HMG paper's Tables 2 and 3: working-set rules with shrinking and a cache of 40 MB, beside the paper's numbers."""

from typing import Any

from benchmarks import record
from benchmarks.datasets.kernel_problems import KernelProblem
from benchmarks.solvers import kernel
from benchmarks.tables import _hmg, _paper
from benchmarks.tables._hmg import HMG, HMG_FREE, HMG_OWN, LIGHT, MVP, PAPER, SECOND

RULES = (MVP, SECOND, HMG, HMG_OWN, HMG_FREE, LIGHT)
PAIRS = (MVP, SECOND, HMG)
SPAMBASE_OBJECTIVE = 27_019.140
# The paper's own rules differ by 0.002 at this tolerance, because each stops somewhere else below the optimum.
CLOSE = 0.005
REFERENCE_TOL = 1e-8
COLUMNS = {
    "data": ("data", ""),
    "n_rows": ("rows", ",d"),
    "solver": ("rule", ""),
    "iterations": ("iterations", ",d"),
    "iterations_range": ("range", ""),
    "paper_iterations": ("paper", ",d"),
    "kernel_evaluations": ("kernel evaluations", ",d"),
    "misses": ("misses", ",d"),
    "misses_per_iteration": ("misses / iteration", ".2f"),
    "unshrinkings": ("unshrinkings", "d"),
    "kkt_violation": ("KKT violation", ".1e"),
    "objective": ("objective", ",.3f"),
    "paper_objective": ("paper", ",.3f"),
    "seconds": ("seconds", ".2f"),
    "seconds_range": ("range", ""),
    "times_hmg": ("seconds / HMG's with its stop without the box", ".2f"),
    "paper_times_hmg": ("paper", ".2f"),
    "sv_share": ("SV", ".1%"),
    "paper_sv_share": ("paper", ".1%"),
    "bounded_share": ("at C", ".1%"),
    "paper_bounded_share": ("paper", ".1%"),
    "ended": ("ended by", ""),
}
REMARKS: tuple[str, ...] = (
    "Decomposition: the paper times another program there, SVM-light. Here it shares caches and products with the pair "
    "rules and computes the missing rows of a working set in one product; it evaluates the kernel more than twice as "
    "often as HMG, and is quicker all the same where 42 features make an evaluation cheap.",
)


def main() -> None:
    args = _hmg.options(__doc__, 1800.0, _hmg.SETS, RULES, full=True)
    title = "HMG paper, Tables 2 and 3: working-set rules, with shrinking, cache 40 MB"
    table = record.Table("hmg_paper_table2", title, COLUMNS, "1", args)
    _paper.produce(table, _measure, _notes, REMARKS, _derive)


def _measure(table: record.Table) -> None:
    args = table.args
    for problem in _hmg.problems(table, _hmg.SETS, args.rules):
        found = _hmg.trials(table, problem, args.rules)
        optimum = _optimum(problem, args.max_seconds) if problem.name == "spambase" else None
        rows = {rule: _hmg.figures(fits, args) for rule, fits in found.items()}
        for rule, row in rows.items():
            table.add(
                data=problem.name,
                n_rows=problem.n_rows,
                n_features=problem.X.shape[1],
                C=problem.C,
                gamma=problem.gamma,
                cache_bytes=_hmg.cache_bytes(problem),
                solver=rule,
                **row,
                misses_per_iteration=row["misses"] / max(1, row["iterations"]),
                optimum=optimum,
                **_hmg.shares(problem.name),
            )
    _hmg.measured_also(table)


def _derive(rows: list[dict[str, Any]]) -> None:
    """The paper's numbers, and seconds by those of HMG with the stop that comes near the paper's counts."""
    for name, found in _paper.by_name(rows).items():
        base = found.get(HMG_FREE, found.get(HMG))
        for rule, row in found.items():
            iterations, seconds, objective = _hmg.beside(name, rule, PAPER) or (None, None, None)
            row |= {
                "times_hmg": _hmg.relative(row, base, "seconds"),
                "paper_iterations": iterations,
                "paper_seconds": seconds,
                "paper_objective": objective,
                "paper_times_hmg": None if seconds is None else seconds / PAPER[name][HMG][1],
            }


def _optimum(problem: KernelProblem, limit: float) -> float:
    """The dual value at a relative gap far below what the rules stop at."""
    return kernel.softmargin(problem, stopping="gap", tol=REFERENCE_TOL, max_seconds=limit).dual


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    found = _paper.by_name(rows)
    small_cache = {name: row for name, row in found.items() if name != "spambase"}
    return [
        _hmg.conditions(rows),
        *(_about_spambase(row) for name, row in found.items() if name == "spambase"),
        *(
            _about_the_stop(name, row, stop)
            for name, row in found.items()
            for stop in (HMG_OWN, HMG_FREE)
            if HMG in row and stop in row
        ),
        _hmg.claim(
            "the second-order rule needs the fewest iterations of the pair rules",
            {name: _hmg.fewest(row, SECOND, PAIRS, "iterations") for name, row in found.items()},
        ),
        _hmg.claim(
            "the most violating pair needs the most iterations",
            {name: _hmg.most(row, MVP, PAIRS, "iterations") for name, row in found.items()},
        ),
        _hmg.claim(
            "HMG uses the cache best where it is small: the fewest kernel evaluations of the pair rules",
            {name: _hmg.fewest(row, HMG, PAIRS, "kernel_evaluations") for name, row in small_cache.items()},
        ),
        _hmg.claim(
            "HMG takes the least time there",
            {name: _hmg.fewest(row, HMG, PAIRS, "seconds") for name, row in small_cache.items()},
        ),
        _hmg.claim(
            "the same, with the paper's stop",
            {name: _hmg.fewest(row, HMG_OWN, (MVP, SECOND), "seconds") for name, row in small_cache.items()},
        ),
        _hmg.claim(
            "the same, with its stop without the box",
            {name: _hmg.fewest(row, HMG_FREE, (MVP, SECOND), "seconds") for name, row in small_cache.items()},
        ),
        _hmg.claim(
            "on spambase, which fits into the cache once it is shrunk, the second-order rule takes the least time",
            {name: _hmg.fewest(row, SECOND, PAIRS, "seconds") for name, row in found.items() if name == "spambase"},
        ),
        _hmg.claim(
            "HMG has at most one cache miss an iteration (here: on average)",
            {name: row[HMG]["misses_per_iteration"] <= 1.0 for name, row in found.items() if HMG in row},
        ),
        _hmg.claim(
            "decomposition takes longer than every pair rule (there by SVM-light, another program)",
            {name: _hmg.most(row, LIGHT, PAIRS, "seconds") for name, row in found.items()},
        ),
        *(_beside_the_paper(name, row) for name, row in found.items()),
        *_hmg.tests(found, [(HMG, SECOND), (HMG_FREE, SECOND), (HMG, MVP), (SECOND, MVP)]),
        _hmg.DATA_NOTE,
        _hmg.RUN_NOTE,
        _hmg.COUNT_NOTE,
    ]


def _about_spambase(row: dict[str, dict[str, Any]]) -> str:
    pairs = [rule for rule in PAIRS if rule in row]
    if not pairs:
        return "spambase: no pair rule was measured."
    best, optimum = max(row[rule]["objective"] for rule in pairs), row[pairs[-1]]["optimum"]
    near = [rule for rule in pairs if abs(row[rule]["objective"] - SPAMBASE_OBJECTIVE) <= CLOSE]
    verdict = f"found again by {', '.join(near)}" if near else "**not** found again"
    return (
        f"The paper's objective on spambase is {SPAMBASE_OBJECTIVE:,.3f}: {verdict} (within {CLOSE:g}; the best of the "
        f"pair rules here is {best:,.4f}). At a relative gap of {REFERENCE_TOL:g} it is {optimum:,.4f}: every rule "
        "stops a little below."
    )


def _about_the_stop(name: str, row: dict[str, dict[str, Any]], stop: str) -> str:
    ours, own = row[HMG], row[stop]
    said = (
        f"{name}: {stop}, makes {own['iterations']:,} iterations ({own['iterations_range']}), and "
        f"leaves a KKT gap of {own['kkt_violation']:.1e} and an objective of {own['objective']:,.3f}; down to a KKT "
        f"gap of 0.001 it is {ours['iterations']:,} ({ours['iterations_range']}), and {ours['objective']:,.3f}."
    )
    printed = PAPER.get(name, {}).get(HMG)
    if printed is None:
        return said
    said = f"{said} The paper prints {printed[0]:,}: that is {own['iterations'] / printed[0] - 1.0:+.1%} here."
    if _hmg.ends_short(row, stop):
        said += f" It ends short: the paper's objective, {printed[2]:,.3f}, is not that of such a stop."
    return said


def _beside_the_paper(name: str, row: dict[str, dict[str, Any]]) -> str:
    missing = [rule for rule in PAIRS if rule not in row]
    if missing:
        return f"{name}: rules cannot be compared, because {', '.join(missing)} was not measured."
    cut = [rule for rule in PAIRS if row[rule]["was_cut"]]
    if cut:
        return f"{name}: rules cannot be compared, because fits were cut ({', '.join(cut)}); --max-seconds allows more."

    def times(rule: str, key: str, column: int | None = None) -> str:
        said = f"{row[rule][key] / row[SECOND][key]:.2f} times"
        if column is None or name not in PAPER:
            return said
        printed = PAPER[name][_hmg.PAPERS_STOP.get(rule, rule)]
        return f"{said} (paper {printed[column] / PAPER[name][SECOND][column]:.2f})"

    stop, how = (HMG_FREE, " with its stop without the box") if HMG_FREE in row else (HMG, "")
    return (
        f"{name}, against the second-order rule: HMG{how} makes {times(stop, 'iterations', 0)} its iterations, needs "
        f"{times(stop, 'kernel_evaluations')} its kernel evaluations and {times(stop, 'seconds', 1)} its seconds; the "
        f"most violating pair {times(MVP, 'iterations', 0)}, {times(MVP, 'kernel_evaluations')} and "
        f"{times(MVP, 'seconds', 1)}."
    )


if __name__ == "__main__":
    main()
