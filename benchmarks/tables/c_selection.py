"""Choosing C: a path of 20 values against its hardest single fit, and whole searches against scikit-learn's.

Goals: `c_path` over 20 values takes at most 3 times as long as the hardest of its fits alone; `LinearSVCCV` with 5
folds and 10 values is at least 5 times faster than GridSearchCV with scikit-learn's LinearSVC of the same objective.
`SVCCV` with 5 folds, 5 values of C and 2 of gamma is measured beside GridSearchCV with scikit-learn's SVC.

A search of scikit-learn is given the loosest tolerance at which it solves every problem of the grid as well as
softmargin proves to: to a relative gap of 1e-3. Otherwise one of both would do less work. It is measured at its
defaults, too.
"""

import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC as RivalSVC
from sklearn.svm import LinearSVC as RivalLinearSVC
from threadpoolctl import threadpool_limits

from benchmarks import record
from benchmarks.datasets import problems
from benchmarks.tables import _paper

PATH_FACTOR, SEARCH_FACTOR = 3.0, 5.0
PATH_CS = np.logspace(-3, 2, 20)
SEARCH_CS = np.logspace(-3, 2, 10)
KERNEL_CS, KERNEL_GAMMAS = np.logspace(-1, 3, 5), (0.1, 1.0)
SETS, KERNEL_SETS = ("rcv1", "a9a"), ("spambase",)
SOLVERS = ("auto", "ocas", "coordinate")
GAP = 1e-3  # what softmargin proves at its default tol
# The bound that a rival's objective is compared with is proven to this gap.
BOUND_GAP = 1e-4
RIVAL_TOLERANCES = (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4)
RIVAL_PASSES = 100_000  # in place of 1,000, which are too few for a gap of 1e-3 at large C
REPEATS = 3
COLUMNS = {
    "what": ("what", ""),
    "data": ("data", ""),
    "solver": ("solver", ""),
    "threads": ("threads", "d"),
    "n_fits": ("fits", "d"),
    "seconds": ("seconds", ".2f"),
    "other": ("against", ""),
    "other_seconds": ("seconds", ".2f"),
    "ratio": ("ratio", ".2f"),
    "largest_gap": ("largest relative gap", ".1e"),
    "other_gap": ("of the other", ".1e"),
    "score": ("best score", ".4f"),
    "other_score": ("of the other", ".4f"),
    "met": ("goal met", ""),
}
REMARKS: tuple[str, ...] = (
    "The path on rcv1: its hardest fit costs only about ten times as much as its easiest, so that the sum of 20 is far "
    "above 3 times the hardest, and a start from the solution of the C before saves about a quarter of the passes at "
    "large C and none at small C. On a9a the hardest fit outweighs the others. Dual variables of the last C were tried "
    "scaled, kept, half way between both, and extrapolated from two: 5 % apart (docs/design/012).",
)


def main() -> None:
    parser = record.options(__doc__)
    names = (*SETS, *KERNEL_SETS)
    parser.add_argument("--only", metavar="NAME", choices=names, help="one data set; not written without --out")
    parser.add_argument("--solver", choices=SOLVERS, default="auto", help="of linear machines")
    parser.add_argument("--skip-rival", action="store_true", help="without scikit-learn")
    parser.add_argument("--render", action="store_true", help="measure nothing: write the last results again")
    args = parser.parse_args()
    table = record.Table("c_selection", "Choosing C: paths and searches", COLUMNS, "as the table says", args)
    with threadpool_limits(1):
        _paper.produce(table, _measure, _notes, REMARKS)


def _measure(table: record.Table) -> None:
    args = table.args
    for name in (args.only,) if args.only else (SETS[0], KERNEL_SETS[0]) if args.quick else (*SETS, *KERNEL_SETS):
        if name in KERNEL_SETS:
            problem = problems.generate(200, 10) if args.quick else problems.load(name, "dense")
            _add_kernel_searches(table, problem)
        else:
            problem = problems.generate(300, 20, "csr") if args.quick else problems.load(name)
            _add_path(table, problem)
            _add_linear_searches(table, problem)


def _seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # of scikit-learn's limit of passes; its gap is in the table
        began = time.perf_counter()
        found = run()
        return time.perf_counter() - began, found


def _alternating(runs: Iterable[Callable[[], Any]], repeats: int) -> list[tuple[float, Any]]:
    """The shortest time of each, and what it returned, of rounds in which each of them runs once."""
    rounds = [[_seconds(run) for run in runs] for _ in range(repeats)]
    return [min(of_run, key=lambda found: found[0]) for of_run in zip(*rounds, strict=True)]


def _add_path(table: record.Table, problem: problems.Problem) -> None:
    from softmargin import LinearSVC, c_path

    args, X, y = table.args, problem.X, problem.y
    model = LinearSVC(solver=args.solver, fit_intercept=False)
    Cs = PATH_CS[::5] if args.quick else PATH_CS
    c_path(model, X, y, Cs[:2])  # compiles
    singles = [_seconds(lambda C=C: LinearSVC(C, solver=args.solver, fit_intercept=False).fit(X, y))[0] for C in Cs]
    hardest = float(Cs[int(np.argmax(singles))])
    (single, _), (seconds, models) = _alternating(
        [
            lambda: LinearSVC(hardest, solver=args.solver, fit_intercept=False).fit(X, y),
            lambda: c_path(model, X, y, Cs),
        ],
        1 if args.quick else REPEATS,
    )
    table.add(
        what="path",
        data=problem.name,
        solver=args.solver,
        threads=1,
        n_fits=len(Cs),
        seconds=seconds,
        other=f"one fit, C = {hardest:.3g}",
        other_seconds=single,
        ratio=seconds / single,
        single_seconds=singles,
        path_seconds=[m.seconds_["total"] for m in models],
        path_passes=[m.trace_[-1].passes for m in models],
        sum_of_singles=sum(singles),
        largest_gap=max(m.certificate_.relative_gap for m in models),
        met=bool(seconds <= PATH_FACTOR * single),
    )


def _add_linear_searches(table: record.Table, problem: problems.Problem) -> None:
    from softmargin import LinearSVC, LinearSVCCV

    args, X, y = table.args, problem.X, problem.y
    Cs = SEARCH_CS[::3] if args.quick else SEARCH_CS

    def ours(threads: int) -> Any:
        return LinearSVCCV(Cs, cv=5, solver=args.solver, fit_intercept=False, n_jobs=threads).fit(X, y)

    def rival(**settings: Any) -> RivalLinearSVC:
        return RivalLinearSVC(loss="hinge", fit_intercept=False, random_state=0, **settings)

    def objective(w: np.ndarray, C: float) -> float:
        return 0.5 * float(w @ w) + C * float(np.maximum(0.0, 1.0 - y * (X @ w)).sum())

    def gap(model: RivalLinearSVC) -> float:
        value = objective(model.coef_[0], model.C)
        return (value - bounds[model.C]) / value

    LinearSVCCV(Cs[:2], cv=2, solver=args.solver, fit_intercept=False).fit(X[:2000], y[:2000])  # compiles
    bounds = {}
    if not args.skip_rival:
        bounds = {
            C: LinearSVC(C, solver=args.solver, tol=BOUND_GAP, fit_intercept=False).fit(X, y).certificate_.dual
            for C in Cs
        }
    grids = [{"C": C} for C in Cs]
    _add_searches(table, problem, ours, rival, {"C": list(Cs)}, grids, gap, {"max_iter": RIVAL_PASSES}, args.solver)


def _add_kernel_searches(table: record.Table, problem: problems.Problem) -> None:
    from softmargin import SVCCV, certify

    X, y = problem.X, problem.y

    def ours(threads: int) -> Any:
        return SVCCV(KERNEL_CS, gammas=KERNEL_GAMMAS, cv=5, n_jobs=threads).fit(X, y)

    def gap(model: RivalSVC) -> float:
        return certify(model, X, y).relative_gap

    SVCCV(KERNEL_CS[:2], gammas=KERNEL_GAMMAS[:1], cv=2).fit(X[::10], y[::10])  # compiles
    grid = {"C": list(KERNEL_CS), "gamma": list(KERNEL_GAMMAS)}
    each = [{"C": C, "gamma": gamma} for C in KERNEL_CS for gamma in KERNEL_GAMMAS]
    _add_searches(table, problem, ours, RivalSVC, grid, each, gap, {}, "auto")


def _add_searches(
    table: record.Table,
    problem: problems.Problem,
    ours: Callable[[int], Any],
    rival: Callable[..., Any],
    grid: dict[str, list[float]],
    each: list[dict[str, float]],
    gap: Callable[[Any], float],
    unlimited: dict[str, Any],
    solver: str,
) -> None:
    """One row for each rival and number of threads: ours and theirs in turn, the shortest time of each."""
    args, X, y = table.args, problem.X, problem.y

    def gaps(settings: dict[str, Any]) -> Iterable[float]:
        """The gaps of the rival on all rows for each point of the grid, the hardest first."""
        for point in reversed(each):
            yield gap(_seconds(lambda point=point: rival(**settings, **point).fit(X, y))[1])

    rivals: list[tuple[str, dict[str, Any]]] = []
    if not args.skip_rival:
        matched = next(
            (
                settings
                for settings in (unlimited | {"tol": tol} for tol in RIVAL_TOLERANCES)
                if all(value <= GAP for value in gaps(settings))
            ),
            unlimited | {"tol": RIVAL_TOLERANCES[-1]},
        )
        rivals = [(f"GridSearchCV, tol = {matched['tol']:g}", matched), ("GridSearchCV, defaults", {})]
    for threads in (1, 2):
        runs: list[Callable[[], Any]] = [lambda threads=threads: ours(threads)]
        for _, settings in rivals:
            search = GridSearchCV(rival(**settings), grid, cv=5, n_jobs=threads)
            runs.append(lambda search=search: search.fit(X, y))
        (seconds, found), *others = _alternating(runs, 1 if args.quick else REPEATS)
        row = {
            "what": "search",
            "data": problem.name,
            "solver": solver,
            "threads": threads,
            "n_fits": found.scores_.size + 1,
            "seconds": seconds,
            "largest_gap": float(found.relative_gaps_.max()),
            "score": found.best_score_,
            "chosen": {name: value for name, value in vars(found).items() if name in ("C_", "gamma_")},
        }
        if not rivals:
            table.add(**row)
        for (title, settings), (other_seconds, other) in zip(rivals, others, strict=True):
            is_goal = bool(settings) and found.scores_.ndim == 2
            table.add(
                **row,
                other=title,
                other_seconds=other_seconds,
                ratio=other_seconds / seconds,
                other_gap=max(gaps(settings)),
                other_score=float(other.best_score_),
                other_chosen=other.best_params_,
                **({"met": bool(other_seconds >= SEARCH_FACTOR * seconds)} if is_goal else {}),
            )


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    def missed(what: str) -> str:
        lines = [
            f"{row['data']} with {row['threads']} threads ({row['ratio']:.2f})"
            for row in rows
            if row["what"] == what and row.get("met") is False
        ]
        return "missed by " + ", ".join(lines) if lines else "met"

    return [
        f"goal of paths: 20 values in at most {PATH_FACTOR:g} times the time of the hardest single fit: "
        f"{missed('path')}. The ratio is path / hardest fit.",
        f"goal of linear searches: at least {SEARCH_FACTOR:g} times faster than scikit-learn: {missed('search')}. The "
        "ratio is scikit-learn / softmargin.",
        f"softmargin proves a relative gap of {GAP:g} for every fit. scikit-learn has one tolerance for the whole "
        f"grid: the loosest of {', '.join(f'{tol:g}' for tol in RIVAL_TOLERANCES)} at which all problems of the grid, "
        f"on all rows, have a relative gap of at most {GAP:g}, with up to {RIVAL_PASSES:,} passes for LinearSVC; and "
        "its defaults, which are 1e-4 or 1,000 passes for LinearSVC and 1e-3 for SVC. Its largest gap in the table is "
        "that of its objectives on all rows above a proven bound.",
        f"linear: C from {PATH_CS[0]:g} to {PATH_CS[-1]:g} on a log scale, no intercept. Kernel: rbf, C from "
        f"{KERNEL_CS[0]:g} to {KERNEL_CS[-1]:g}, gamma {' and '.join(f'{gamma:g}' for gamma in KERNEL_GAMMAS)}. All "
        "searches have the same 5 stratified folds, and fit the best values on all rows in the end.",
        f"times: the whole call in one warm process, judging included, the shortest of {REPEATS} in turn with the "
        "others.",
    ]


if __name__ == "__main__":
    main()
