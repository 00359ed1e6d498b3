"""The race of support vector regression: SVR against oneDAL and LIBSVM, LinearSVR against LIBLINEAR.

Goals: faster than each of them everywhere, by a median factor of 1.5 where they take more than 0.2 s, at an objective
that is as good.
"""

from statistics import median
from typing import Any

from benchmarks import machine, record
from benchmarks.datasets.regression_problems import REGRESSION, FamilyProblem, load_regression, tiny_family
from benchmarks.solvers import family, kernel
from benchmarks.tables import _paper, _race

THREADS = 2
SLOW, FACTOR = 0.2, 1.5
KERNEL_C, LINEAR_C = (1.0, 10.0), (1.0, 100.0)
COLUMNS = {
    "machine": ("machine", ""),
    "problem": ("problem", ""),
    "C": ("C", "g"),
    "n_rows": ("rows", ",d"),
    "n_features": ("features", "d"),
    "n_support": ("SV", ",d"),
    "seconds": ("softmargin best s", ".4f"),
    "median_s": ("median s", ".4f"),
    "onedal_s": ("oneDAL best s", ".4f"),
    "libsvm_s": ("LIBSVM best s", ".4f"),
    "liblinear_s": ("LIBLINEAR best s", ".4f"),
    "over_onedal": ("oneDAL / softmargin", ".2f"),
    "over_libsvm": ("LIBSVM / softmargin", ".2f"),
    "over_liblinear": ("LIBLINEAR / softmargin", ".2f"),
    "primal": ("primal", ",.4f"),
    "dual": ("dual", ",.4f"),
    "dual_over_onedal": ("dual above oneDAL's, relative", ".1e"),
    "dual_over_libsvm": ("above LIBSVM's", ".1e"),
    "primal_under_liblinear": ("primal below LIBLINEAR's", ".1e"),
    "tol": ("tol", "g"),
    "met": ("fastest", ""),
}
REMARKS: tuple[str, ...] = ()


def main() -> None:
    machine.keep_freed_memory()
    parser = record.options(__doc__)
    parser.add_argument("--only", metavar="NAME", choices=REGRESSION, help="one problem; not written without --out")
    parser.add_argument("--repeats", type=int, default=3, help="fits of each kind; long ones are made once")
    parser.add_argument("--render", action="store_true", help="measure nothing: write the last results again")
    args = parser.parse_args()
    title = "Support vector regression: softmargin, oneDAL, LIBSVM and LIBLINEAR"
    threads = f"softmargin {THREADS} (linear: 1), oneDAL all cores, LIBSVM and LIBLINEAR 1 (they have no threads here)"
    _paper.produce(record.Table("regression_race", title, COLUMNS, threads, args), _measure, _notes, REMARKS)


def _measure(table: record.Table) -> None:
    args = table.args
    kernel.note_onedal(table.machine)
    absent = kernel.missing_onedal()
    if absent and not args.quick:
        raise SystemExit(f"The race needs its rival: {absent}")
    rivals = [name for name in family.RIVALS if not (absent and name == "oneDAL")]
    for name in (args.only,) if args.only else REGRESSION[:1] if args.quick else REGRESSION:
        for C in KERNEL_C:
            row = _race.kernel_row(_problem(name, C, args.quick), rivals, args.repeats, THREADS)
            table.add(machine="SVR", **row)
        for C in LINEAR_C:
            _add_linear(table, _problem(name, C, args.quick), args.repeats)


def _problem(name: str, C: float, is_quick: bool) -> FamilyProblem:
    return tiny_family(name, C=C, epsilon=0.1) if is_quick else load_regression(name, C)


def _add_linear(table: record.Table, problem: FamilyProblem, repeats: int) -> None:
    goal = family.softmargin_linear(problem).score.primal
    tol = next(
        (
            tol
            for tol in family.LINEAR_TOLS
            if family.liblinear(problem, tol).score.primal <= goal * (1.0 + _race.WORSE)
        ),
        family.LINEAR_TOLS[-1],
    )
    found = _race.in_turn(
        {
            "softmargin": lambda: family.softmargin_linear(problem),
            "LIBLINEAR": lambda: family.liblinear(problem, tol),
        },
        repeats,
    )
    ours, rival = found["softmargin"], found["LIBLINEAR"]
    seconds, primal = _race.best(ours), ours[-1].score.primal
    table.add(
        machine="LinearSVR",
        problem=problem.name,
        C=problem.C,
        n_rows=problem.n_rows,
        n_features=problem.X.shape[1],
        seconds=seconds,
        median_s=median(one.seconds for one in ours),
        liblinear_s=_race.best(rival),
        over_liblinear=_race.best(rival) / seconds,
        liblinear_tol=tol,
        primal=primal,
        primal_under_liblinear=-_race.above(primal, rival[-1].score.primal),
        status=ours[-1].model.status_.name,
        n_iter=int(ours[-1].model.n_iter_),
        all_s={name: [one.seconds for one in fits] for name, fits in found.items()},
        met=seconds < _race.best(rival),
    )


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    return [
        *(_race.goal(rival, rows, SLOW, FACTOR) for rival in ("oneDAL", "LIBSVM", "LIBLINEAR")),
        _race.objectives(rows, ("oneDAL", "LIBSVM")),
        "problems: features and targets standardised; epsilon = 0.1; RBF kernel with gamma = 1 / features for SVR.",
        "seconds: of the whole `fit`, judge included; best and median of several fits in turn in one process, after a "
        "warm-up; ratios compare the best.",
        f"SVR: all stop at a KKT violation of {kernel.TOL:g}; LIBSVM (scikit-learn's SVR) and oneDAL "
        f"(scikit-learn-intelex's, whose log was read to be sure that it ran accelerated) have {kernel.RIVAL_CACHE_MB} "
        f"MB for kernel values. Where our dual objective was lower by more than {_race.WORSE:g}, softmargin ran again "
        "with a smaller tol.",
        "LinearSVR: without intercept, because LIBLINEAR penalises it; softmargin to a certified relative gap of "
        f"{family.LINEAR_TOL:g}, LIBLINEAR (scikit-learn's LinearSVR) with the loosest tol of "
        f"{', '.join(f'{tol:g}' for tol in family.LINEAR_TOLS)} at which its primal value is as good.",
        "objectives: recomputed in float64 by benchmarks/family_objective.py and benchmarks/objective.py.",
    ]


if __name__ == "__main__":
    main()
