"""How the time of a kernel fit grows: with the rows of mnist, and as the cache shrinks."""

import math
from typing import Any

from benchmarks import machine, record
from benchmarks.datasets.kernel_problems import KernelProblem, load_kernel, tiny_kernel
from benchmarks.solvers import kernel
from benchmarks.tables import _paper

THREADS = 2
SIZES = (1_000, 2_000, 5_000, 10_000, 20_000, 40_000, 60_000)
LONG = 30.0  # seconds: a fit that takes longer is not repeated
LIBSVM_ROWS = 10_000  # more takes minutes
CACHE_ROWS = 20_000
CACHES_MB = (20, 40, 100, 200, 400, 800, 1600)
COLUMNS = {
    "varied": ("varied", ""),
    "n_rows": ("rows", ",d"),
    "cache": ("cache", ""),
    "cache_share": ("of the matrix", ".1%"),
    "n_support": ("SV", ",d"),
    "seconds": ("softmargin s", ".3f"),
    "onedal_s": ("oneDAL s", ".3f"),
    "libsvm_s": ("LIBSVM s", ".2f"),
    "rows_computed": ("kernel rows computed", ",.0f"),
    "rows_of_support": ("by SV", ".2f"),
    "exponent": ("seconds grow as rows to the", ".2f"),
    "ended": ("ended by", ""),
    "why_missing": ("missing", ""),
}
REMARKS: tuple[str, ...] = ()


def main() -> None:
    machine.keep_freed_memory()
    parser = record.options(__doc__)
    parser.add_argument("--repeats", type=int, default=2, help="fits of each kind; long ones are made once")
    parser.add_argument("--max-seconds", type=float, default=40.0, help="limit of one fit of softmargin")
    parser.add_argument("--render", action="store_true", help="measure nothing: write the last results again")
    parser.set_defaults(only=None)
    args = parser.parse_args()
    threads = f"softmargin {THREADS}, oneDAL all cores, LIBSVM 1 (it has no threads)"
    title = "Kernel SVMs: time against rows and against cache, mnist"
    _paper.produce(record.Table("kernel_growth", title, COLUMNS, threads, args), _measure, _notes, REMARKS)


def _measure(table: record.Table) -> None:
    args = table.args
    kernel.note_onedal(table.machine)
    absent = kernel.missing_onedal()
    whole = tiny_kernel("mnist 60k") if args.quick else load_kernel("mnist 60k")
    for run in (kernel.softmargin, *kernel.RIVALS.values()):
        if run is not kernel.onedal or not absent:
            run(whole.rows(slice(2_000)))
    before: tuple[int, float] | None = None
    for n in (100, 200) if args.quick else SIZES:
        problem = whole.rows(slice(n))
        why = {"oneDAL": absent} if absent else {}
        if n > LIBSVM_ROWS:
            why["LIBSVM"] = "takes minutes"
        before = _add(table, problem, why, before)
    problem = whole.rows(slice(300 if args.quick else CACHE_ROWS))
    for cache_mb in (0.1, 0.2) if args.quick else CACHES_MB:
        _add_cache(table, problem, cache_mb)


def _add(
    table: record.Table, problem: KernelProblem, why: dict[str, str], before: tuple[int, float] | None
) -> tuple[int, float]:
    args = table.args
    runs: dict[str, Any] = {"softmargin": lambda: kernel.softmargin(problem, max_seconds=args.max_seconds)}
    runs |= {name: lambda fit=fit: fit(problem) for name, fit in kernel.RIVALS.items() if name not in why}
    found = kernel.alternate(runs, args.repeats, LONG)
    best = {name: kernel.best_seconds(fits) for name, fits in found.items()}
    n, seconds = problem.n_rows, best["softmargin"]
    table.add(
        varied="rows",
        **_figures(found["softmargin"][-1]),
        cache="default",
        seconds=seconds,
        onedal_s=best.get("oneDAL"),
        libsvm_s=best.get("LIBSVM"),
        all_s={name: [fit.seconds for fit in fits] for name, fits in found.items()},
        exponent=math.log(seconds / before[1]) / math.log(n / before[0]) if before else None,
        why_missing="; ".join(f"{name}: {reason}" for name, reason in why.items()),
    )
    return n, seconds


def _add_cache(table: record.Table, problem: KernelProblem, cache_mb: float) -> None:
    args = table.args
    n_bytes = cache_mb * kernel.MIB
    fit = kernel.softmargin(problem, cache_bytes=n_bytes, max_seconds=args.max_seconds)
    table.add(
        varied="cache",
        **_figures(fit),
        cache=f"{cache_mb:g} MB",
        cache_mb=cache_mb,
        cache_share=min(1.0, n_bytes / (4.0 * problem.n_rows**2)),
        seconds=fit.seconds,
        why_missing="rivals: not asked to use so little",
    )


def _figures(fit: kernel.KernelFit) -> dict[str, Any]:
    model, n = fit.model, fit.problem.n_rows
    rows = model.counts_["kernel_evaluations"] / n
    status = model.status_.name
    return {
        "n_rows": n,
        "n_support": fit.n_support,
        "rows_computed": rows,
        "rows_of_support": rows / max(1, fit.n_support),
        **{f"count_{name}": value for name, value in model.counts_.items()},
        "was_cut": status == "MAX_SECONDS",
        "ended": {"OPTIMAL": "tolerance", "MAX_SECONDS": "limit of time"}.get(status, status.lower()),
    }


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    by_rows = [row for row in rows if row["varied"] == "rows" and not row["was_cut"]]
    by_cache = [row for row in rows if row["varied"] == "cache" and not row["was_cut"]]
    notes = []
    if len(by_rows) > 1:
        first, last = by_rows[0], by_rows[-1]
        slope = math.log(last["seconds"] / first["seconds"]) / math.log(last["n_rows"] / first["n_rows"])
        notes.append(
            f"From {first['n_rows']:,} to {last['n_rows']:,} rows the seconds grow as the rows to the power of "
            f"{slope:.2f}, and the support vectors from {first['n_support']:,} to {last['n_support']:,}."
        )
    if len(by_cache) > 1:
        least, most = by_cache[0], by_cache[-1]
        notes.append(
            f"With {least['cache']} of cache ({least['cache_share']:.1%} of the matrix) a fit on "
            f"{least['n_rows']:,} rows takes {least['seconds'] / most['seconds']:.1f} times as long as with "
            f"{most['cache']}, and computes {least['rows_computed'] / most['rows_computed']:.1f} times the kernel rows."
        )
    return [
        *notes,
        "data: digits 0 to 4 against 5 to 9, pixels 0 to 255, sigma = 3500, C = 50, the first rows of the file, dense "
        "float64. softmargin: SVC(solver='auto', stopping='kkt', tol = "
        f"{kernel.TOL:g}), whose default cache is a quarter of the free memory, at most the whole matrix; the rivals "
        f"have {kernel.RIVAL_CACHE_MB} MB.",
        "seconds: of the whole `fit`, the best of several in turn where one takes less than "
        f"{LONG:g} s ({kernel.LIBSVM_LONG:g} s for LIBSVM). The exponent is that "
        "between a row of the table and the one above.",
        "memory: freed memory is kept, for all alike, as in the table kernel_race.",
    ]


if __name__ == "__main__":
    main()
