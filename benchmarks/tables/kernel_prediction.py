"""Decision values of kernel SVMs for 2,000 rows: softmargin beside oneDAL and LIBSVM, each with its own model.

Goals: at least as fast as oneDAL, and five times as fast as LIBSVM.
"""

import argparse
from statistics import median
from typing import Any

from benchmarks import machine, record
from benchmarks.datasets.kernel_problems import NAMES, SPARSE, load_kernel, tiny_kernel
from benchmarks.solvers import kernel
from benchmarks.tables import _paper

THREADS = 2
ROWS = 2_000
LIBSVM_FACTOR = 5.0
# LIBSVM takes a minute or more to train here, whatever it then predicts.
SLOW_FOR_LIBSVM = ("connect-4", "mnist 20k", "mnist 60k", "covtype 50k")
COLUMNS = {
    "problem": ("problem", ""),
    "form": ("storage", ""),
    "n_rows": ("rows of training", ",d"),
    "n_features": ("features", "d"),
    "n_support": ("SV", ",d"),
    "softmargin_s": ("softmargin best s", ".4f"),
    "softmargin_median_s": ("median s", ".4f"),
    "oneDAL_s": ("oneDAL best s", ".4f"),
    "oneDAL_median_s": ("median s", ".4f"),
    "LIBSVM_s": ("LIBSVM best s", ".3f"),
    "over_oneDAL": ("oneDAL / softmargin", ".2f"),
    "over_LIBSVM": ("LIBSVM / softmargin", ".1f"),
    "same": ("most that values differ", ".1e"),
    "met": ("goals met", ""),
    "why_missing": ("missing", ""),
}
REMARKS: tuple[str, ...] = ()


def main() -> None:
    machine.keep_freed_memory()
    parser = record.options(__doc__)
    parser.add_argument("--only", metavar="NAME", choices=NAMES, help="one problem; not written without --out")
    parser.add_argument("--repeats", type=int, default=5, help="predictions of each model")
    parser.add_argument("--slow", action="store_true", help=f"LIBSVM on {', '.join(SLOW_FOR_LIBSVM)} too")
    parser.add_argument("--render", action="store_true", help="measure nothing: write the last results again")
    args = parser.parse_args()
    title = f"Decision values for {ROWS:,} rows: softmargin, oneDAL and LIBSVM"
    threads = f"softmargin {THREADS}, oneDAL all cores, LIBSVM 1 (it has no threads)"
    _paper.produce(record.Table("kernel_prediction", title, COLUMNS, threads, args), _measure, _notes, REMARKS)


def _measure(table: record.Table) -> None:
    args = table.args
    kernel.note_onedal(table.machine)
    absent = kernel.missing_onedal()
    if absent and not args.quick:
        raise SystemExit(f"This table needs a rival: {absent}")
    for name in (args.only,) if args.only else ("spambase", "a9a") if args.quick else NAMES:
        _add(table, name, _left_out(name, args, absent))


def _left_out(name: str, args: argparse.Namespace, absent: str | None) -> dict[str, str]:
    why = {"oneDAL": absent} if absent else {}
    if name in SLOW_FOR_LIBSVM and not args.slow:
        why["LIBSVM"] = "takes a minute or more to train: --slow does it"
    return why


def _add(table: record.Table, name: str, why: dict[str, str]) -> None:
    problem = tiny_kernel(name) if table.args.quick else load_kernel(name)
    fits = {"softmargin": kernel.softmargin(problem, n_jobs=THREADS)}
    fits |= {rival: fit(problem) for rival, fit in kernel.RIVALS.items() if rival not in why}
    X = problem.part(ROWS).X
    values = {who: fit.model.decision_function(X) for who, fit in fits.items()}  # a warm-up as well
    seconds: dict[str, list[float]] = {who: [] for who in fits}
    for _ in range(table.args.repeats):
        for who, fit in fits.items():
            seconds[who].append(kernel.decision_seconds(fit, X))
    best = {who: min(times) for who, times in seconds.items()}
    factors = {rival: best[rival] / best["softmargin"] for rival in kernel.RIVALS if rival in best}
    goals = {"oneDAL": 1.0, "LIBSVM": LIBSVM_FACTOR}
    table.add(
        problem=name,
        form=problem.form,
        n_rows=problem.n_rows,
        n_features=problem.X.shape[1],
        n_predicted=X.shape[0],
        n_support=fits["softmargin"].n_support,
        n_support_by={who: fit.n_support for who, fit in fits.items()},
        **{f"{who}_s": times for who, times in best.items()},
        **{f"{who}_median_s": median(times) for who, times in seconds.items()},
        all_s=seconds,
        **{f"over_{rival}": factor for rival, factor in factors.items()},
        same=max((float(abs(values[rival] - values["softmargin"]).max()) for rival in factors), default=None),
        met=all(factor >= goals[rival] for rival, factor in factors.items()),
        why_missing="; ".join(f"{rival}: {reason}" for rival, reason in why.items()),
    )


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    return [
        *(_goal(rows, rival, goal) for rival, goal in (("oneDAL", 1.0), ("LIBSVM", LIBSVM_FACTOR))),
        f"seconds: of one `decision_function` for {rows[0]['n_predicted']:,} rows of the training data, drawn with a "
        "fixed seed; best and median of several in turn in one process, after a first one; ratios compare the best. "
        "Each has trained its own model to a KKT violation of "
        f"{kernel.TOL:g}, so that the numbers of support vectors differ a little.",
        f"sparse problems ({', '.join(SPARSE)}) are predicted from CSR rows, the others from dense ones, float64. "
        "oneDAL's log was read to be sure that it ran accelerated.",
        "most that values differ: the largest difference between softmargin's decision values and a rival's; models "
        "that stop at this violation may differ by as much.",
        "memory: freed memory is kept, for all alike, as in the table kernel_race.",
    ]


def _goal(rows: list[dict[str, Any]], rival: str, goal: float) -> str:
    factors = {row["problem"]: row[f"over_{rival}"] for row in rows if row.get(f"over_{rival}") is not None}
    if not factors:
        return f"goal, {rival}: not measured."
    missed = [f"{name} ({factor:.2f})" for name, factor in factors.items() if factor < goal]
    said = f"missed on {', '.join(missed)}" if missed else f"met on all {len(factors)}"
    return f"goal, at least {goal:g} times as fast as {rival}: {said}; median {median(factors.values()):.2f}."


if __name__ == "__main__":
    main()
