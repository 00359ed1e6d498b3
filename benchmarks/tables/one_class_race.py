"""The race of one-class machines: OneClassSVM against LIBSVM (scikit-learn's OneClassSVM).

Goals: faster everywhere, by a median factor of 1.5 where LIBSVM takes more than 0.2 s, at a dual objective that is as
good.
"""

from typing import Any

from benchmarks import machine, record
from benchmarks.datasets.regression_problems import ONE_CLASS, load_one_class, tiny_family
from benchmarks.solvers import kernel
from benchmarks.tables import _paper, _race

THREADS = 2
SLOW, FACTOR = 0.2, 1.5
COLUMNS = {
    "problem": ("problem", ""),
    "form": ("storage", ""),
    "n_rows": ("rows", ",d"),
    "n_features": ("features", "d"),
    "nu": ("nu", "g"),
    "n_support": ("SV", ",d"),
    "seconds": ("softmargin best s", ".3f"),
    "median_s": ("median s", ".3f"),
    "libsvm_s": ("LIBSVM best s", ".3f"),
    "over_libsvm": ("LIBSVM / softmargin", ".2f"),
    "primal": ("primal", ",.5f"),
    "dual": ("dual", ",.5f"),
    "dual_over_libsvm": ("dual above LIBSVM's, relative", ".1e"),
    "tol": ("tol", "g"),
    "met": ("fastest", ""),
}
REMARKS: tuple[str, ...] = ()


def main() -> None:
    machine.keep_freed_memory()
    parser = record.options(__doc__)
    parser.add_argument("--only", metavar="NAME", choices=ONE_CLASS, help="one problem; not written without --out")
    parser.add_argument("--repeats", type=int, default=3, help="fits of each kind; long ones are made once")
    parser.add_argument("--render", action="store_true", help="measure nothing: write the last results again")
    args = parser.parse_args()
    title = "One-class machines to a KKT violation of 1e-3: softmargin and LIBSVM"
    threads = f"softmargin {THREADS}, LIBSVM 1 (it has no threads here)"
    _paper.produce(record.Table("one_class_race", title, COLUMNS, threads, args), _measure, _notes, REMARKS)


def _measure(table: record.Table) -> None:
    args = table.args
    for name in (args.only,) if args.only else ONE_CLASS[:1] if args.quick else ONE_CLASS:
        problem = tiny_family(name, nu=0.2) if args.quick else load_one_class(name)
        table.add(**_race.kernel_row(problem, ("LIBSVM",), args.repeats, THREADS))


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    return [
        _race.goal("LIBSVM", rows, SLOW, FACTOR),
        _race.objectives(rows, ("LIBSVM",)),
        "seconds: of the whole `fit`, judge included; best and median of several fits in turn in one process, after a "
        "warm-up; ratios compare the best.",
        f"both stop at a KKT violation of {kernel.TOL:g}; LIBSVM has {kernel.RIVAL_CACHE_MB} MB for kernel values. The "
        "dual variables lie between 0 and 1 and sum to nu times the rows, so that a violation of the same size means "
        "the same for both. scikit-learn-intelex has no one-class machine.",
        "objectives: recomputed in float64 by benchmarks/family_objective.py.",
    ]


if __name__ == "__main__":
    main()
