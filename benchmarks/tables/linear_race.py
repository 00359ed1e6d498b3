"""The race of linear SVMs: LinearSVC(solver="auto") to a certified gap, against LIBLINEAR to the same primal value.

Goals: with two threads never slower than LIBLINEAR where that takes more than 0.1 s (a ratio of at most 1.05), and
twice as fast in the median at a gap of 1e-3; with one thread 1.2 times in the median; a free intercept costs at most
1.25 times what none costs.
"""

from collections.abc import Callable
from statistics import median
from typing import Any

from benchmarks import machine, record
from benchmarks.datasets import Problem, generate, load
from benchmarks.datasets.problems import NAMES, RAW
from benchmarks.solvers.linear import Fit, liblinear, softmargin
from benchmarks.tables import _paper

SLOW, NOT_SLOWER = 0.1, 1.05
TWO_THREADS, ONE_THREAD, FREE = 2.0, 1.2, 1.25
TOLS, CS = (1e-3, 1e-6), (0.01, 1.0, 10.0, 100.0)
RIVAL_TOLS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 3e-3, 1e-3, 1e-4, 1e-5)
# Our own fits end after so many seconds. LIBLINEAR hears no interrupt, so its iterations are limited such that it reads
# at most so many entries; both are far beyond any winner's time.
OUR_SECONDS, RIVAL_ENTRIES = 120.0, 5e9
LONG = 10.0  # seconds: a fit that takes longer is made once
DENSE = ("bio",)
COLUMNS = {
    "problem": ("problem", ""),
    "n_rows": ("rows", ",d"),
    "n_features": ("features", ",d"),
    "C": ("C", "g"),
    "tol": ("gap", "g"),
    "solver": ("auto chose", ""),
    "passes": ("passes", ",d"),
    "two_s": ("2 threads, s", ".3f"),
    "one_s": ("1 thread, s", ".3f"),
    "free_s": ("free intercept, 2 threads, s", ".3f"),
    "rival_s": ("LIBLINEAR, s", ".3f"),
    "over_two": ("LIBLINEAR / 2 threads", ".2f"),
    "over_one": ("LIBLINEAR / 1 thread", ".2f"),
    "free_over_none": ("free / none", ".2f"),
    "certified_gap": ("certified gap", ".1e"),
    "rival_above": ("LIBLINEAR's primal above our bound", ".1e"),
    "met": ("not slower", ""),
}
REMARKS: tuple[str, ...] = ()


def main() -> None:
    machine.keep_freed_memory()
    parser = record.options(__doc__)
    parser.add_argument("--only", metavar="NAME", choices=(*NAMES, *RAW), help="one problem; not written without --out")
    parser.add_argument("--tol", type=float, choices=TOLS, help="one gap only")
    parser.add_argument("--repeats", type=int, default=3, help="fits of each kind; long ones are made once")
    parser.add_argument("--render", action="store_true", help="measure nothing: write the last results again")
    args = parser.parse_args()
    title = "Linear SVMs: softmargin to a certified gap, LIBLINEAR to the same primal value"
    _paper.produce(record.Table("linear_race", title, COLUMNS, "as in the table", args), _measure, _notes, REMARKS)


def _measure(table: record.Table) -> None:
    args = table.args
    names = (args.only,) if args.only else ("generated",) if args.quick else (*NAMES, *RAW)
    for name in names:
        problem = generate(500, 30, "csr") if args.quick else load(name, "dense" if name in DENSE else "csr")
        _ours(problem, 1.0, 1e-3, 2)  # compiles, or loads what was compiled
        for C in CS[1:2] if args.quick else CS:
            for tol in TOLS if args.tol is None else (args.tol,):
                _add(table, problem, C, tol, args.repeats)


def _add(table: record.Table, problem: Problem, C: float, tol: float, repeats: int) -> None:
    first = _ours(problem, C, tol, 2)
    rival_tol = _comparable_tol(problem, C, first.score.primal)
    runs: dict[str, Callable[[], Fit]] = {
        "two": lambda: _ours(problem, C, tol, 2),
        "one": lambda: _ours(problem, C, tol, 1),
        "free": lambda: softmargin(
            problem, C, free_intercept=True, judge=False, tol=tol, n_jobs=2, max_seconds=OUR_SECONDS
        ),
        "rival": lambda: _rival(problem, C, rival_tol),
    }
    found: dict[str, list[Fit]] = {name: [] for name in runs}
    for turn in range(repeats):
        for k in range(len(runs)):
            name = list(runs)[(turn + k) % len(runs)]
            if not found[name] or found[name][0].seconds < LONG:
                found[name].append(runs[name]())
    seconds = {name: median(fit.seconds for fit in fits) for name, fits in found.items()}
    ours, rival = found["two"][-1], found["rival"][-1]
    trace = ours.model.trace_
    table.add(
        problem=problem.name,
        n_rows=problem.X.shape[0],
        n_features=problem.X.shape[1],
        C=C,
        tol=tol,
        solver=_chosen(trace["planes"]),
        passes=int(trace["passes"][-1]),
        status=ours.model.status_.name,
        **{f"{name}_s": value for name, value in seconds.items()},
        over_two=seconds["rival"] / seconds["two"],
        over_one=seconds["rival"] / seconds["one"],
        free_over_none=seconds["free"] / seconds["two"],
        certified_gap=ours.score.relative_gap,
        rival_tol=rival_tol,
        rival_iterations=int(rival.model.n_iter_),
        rival_above=(rival.score.primal - ours.score.dual) / rival.score.primal,
        all_s={name: [fit.seconds for fit in fits] for name, fits in found.items()},
        met=seconds["rival"] < SLOW or seconds["two"] <= NOT_SLOWER * seconds["rival"],
    )


def _ours(problem: Problem, C: float, tol: float, threads: int) -> Fit:
    return softmargin(problem, C, tol=tol, n_jobs=threads, max_seconds=OUR_SECONDS)


def _rival(problem: Problem, C: float, tol: float) -> Fit:
    return liblinear(problem, C, tol, _most_iterations(problem))


def _most_iterations(problem: Problem) -> int:
    return max(100, int(RIVAL_ENTRIES / getattr(problem.X, "nnz", problem.X.size)))


def _comparable_tol(problem: Problem, C: float, goal: float) -> float:
    """The loosest tolerance at which LIBLINEAR's primal value is as good as ours, or at which it ends in its limit."""
    for tol in RIVAL_TOLS:
        fit = _rival(problem, C, tol)
        if fit.score.primal <= goal or fit.model.n_iter_ >= _most_iterations(problem):
            return tol
    return RIVAL_TOLS[-1]


def _chosen(planes: Any) -> str:
    if not planes.any():
        return "coordinate"
    return "ocas" if planes[0] else "coordinate, ocas"


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    raced = [row for row in rows if row["rival_s"] > SLOW]
    lost = [
        f"{row['problem']} C={row['C']:g} gap {row['tol']:g} ({row['over_two']:.2f})" for row in raced if not row["met"]
    ]
    coarse = [row for row in raced if row["tol"] == max(TOLS)]
    notes = [
        f"goal, never slower than LIBLINEAR where it takes more than {SLOW:g} s: "
        + (f"**not** met: {'; '.join(lost)}." if lost else f"met in all {len(raced)} cells."),
    ]
    for key, factor, words in (("over_two", TWO_THREADS, "two threads"), ("over_one", ONE_THREAD, "one thread")):
        if coarse:
            middle = median(row[key] for row in coarse)
            verdict = "met" if middle >= factor else "**not** met"
            notes.append(
                f"goal, {words} at a gap of {max(TOLS):g}: median factor {middle:.2f} over {len(coarse)} cells, goal "
                f"{factor:g}: {verdict}."
            )
    dear = [row for row in rows if row["two_s"] > 0.02]
    if dear:
        share = median(row["free_over_none"] for row in dear)
        worst = max(dear, key=lambda row: row["free_over_none"])
        verdict = "met" if worst["free_over_none"] <= FREE else "**not** met everywhere"
        notes.append(
            f"goal, a free intercept costs at most {FREE:g} times none (fits of more than 0.02 s): median {share:.2f}, "
            f"worst {worst['free_over_none']:.2f} ({worst['problem']}, C={worst['C']:g}, gap {worst['tol']:g}): "
            f"{verdict}. It is another problem, which can be easier or harder."
        )
    return [
        *notes,
        "seconds: of the whole `fit`, validation and judge included; median of runs that take turns in one process.",
        "LIBLINEAR: scikit-learn's LinearSVC(loss='hinge'), without intercept, the loosest tol of "
        f"{', '.join(f'{tol:g}' for tol in RIVAL_TOLS)} at which its primal value is as good as ours. It may read "
        f"{RIVAL_ENTRIES:g} entries in all; where it is not as good even then, its primal value shows it.",
        f"our fits end after {OUR_SECONDS:g} s; certified gap: recomputed by benchmarks/objective.py.",
    ]


if __name__ == "__main__":
    main()
