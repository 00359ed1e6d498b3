"""Choosing C: a path of 20 values against its hardest single fit, and a whole search against scikit-learn's.

Goals: `c_path` over 20 values takes at most 3 times as long as the hardest of its fits alone; `LinearSVCCV` with 5
folds and 10 values is at least 5 times faster than GridSearchCV with scikit-learn's LinearSVC of the same objective.
"""

import time
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC as Rival
from threadpoolctl import threadpool_limits

from benchmarks import record
from benchmarks.datasets import problems
from benchmarks.tables import _paper

PATH_FACTOR, SEARCH_FACTOR = 3.0, 5.0
PATH_CS = np.logspace(-3, 2, 20)
SEARCH_CS = np.logspace(-3, 2, 10)
SETS = ("rcv1", "a9a")
SOLVERS = ("auto", "ocas", "coordinate")
COLUMNS = {
    "what": ("what", ""),
    "data": ("data", ""),
    "solver": ("solver", ""),
    "n_fits": ("fits", "d"),
    "seconds": ("seconds", ".2f"),
    "other": ("against", ""),
    "other_seconds": ("seconds", ".2f"),
    "ratio": ("ratio", ".2f"),
    "largest_gap": ("largest relative gap", ".1e"),
    "score": ("best score", ".4f"),
    "other_score": ("of the other", ".4f"),
    "met": ("goal met", ""),
}
REMARKS: tuple[str, ...] = ()


def main() -> None:
    parser = record.options(__doc__)
    parser.add_argument("--only", metavar="NAME", choices=SETS, help="one data set; not written without --out")
    parser.add_argument("--solver", choices=SOLVERS, help="one solver; not written without --out")
    parser.add_argument("--skip-rival", action="store_true", help="without scikit-learn; not written without --out")
    parser.add_argument("--render", action="store_true", help="measure nothing: write the last results again")
    args = parser.parse_args()
    table = record.Table("c_selection", "Choosing C: paths and searches", COLUMNS, "one, for all", args)
    with threadpool_limits(1):
        _paper.produce(table, _measure, _notes, REMARKS)


def _measure(table: record.Table) -> None:
    args = table.args
    solvers = (args.solver,) if args.solver else SOLVERS
    for name in (args.only,) if args.only else SETS[:1] if args.quick else SETS:
        problem = problems.generate(300, 20, "csr") if args.quick else problems.load(name)
        for solver in solvers:
            _add_path(table, problem, solver)
        rival = None if args.skip_rival else _rival(problem)
        for solver in solvers:
            _add_search(table, problem, solver, rival)


def _add_path(table: record.Table, problem: problems.Problem, solver: str) -> None:
    from softmargin import LinearSVC, c_path

    model = LinearSVC(solver=solver, fit_intercept=False)
    Cs = PATH_CS[::5] if table.args.quick else PATH_CS
    c_path(model, problem.X, problem.y, Cs[:2])  # compiles
    singles = []
    for C in Cs:
        began = time.perf_counter()
        LinearSVC(C, solver=solver, fit_intercept=False).fit(problem.X, problem.y)
        singles.append(time.perf_counter() - began)
    began = time.perf_counter()
    models = c_path(model, problem.X, problem.y, Cs)
    seconds = time.perf_counter() - began
    hardest = int(np.argmax(singles))
    table.add(
        what="path",
        data=problem.name,
        solver=solver,
        n_fits=len(Cs),
        seconds=seconds,
        other=f"one fit, C = {Cs[hardest]:.3g}",
        other_seconds=singles[hardest],
        ratio=seconds / singles[hardest],
        single_seconds=singles,
        path_seconds=[m.seconds_["total"] for m in models],
        sum_of_singles=sum(singles),
        largest_gap=max(m.certificate_.relative_gap for m in models),
        met=bool(seconds <= PATH_FACTOR * singles[hardest]),
    )


def _rival(problem: problems.Problem) -> tuple[float, Any]:
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of its max_iter, which is left at its default
        grid = GridSearchCV(Rival(loss="hinge", fit_intercept=False), {"C": SEARCH_CS}, cv=5)
        grid.fit(problem.X, problem.y)
    return time.perf_counter() - began, grid


def _add_search(table: record.Table, problem: problems.Problem, solver: str, rival: tuple[float, Any] | None) -> None:
    from softmargin import LinearSVCCV

    LinearSVCCV(SEARCH_CS[:2], cv=2, solver=solver, fit_intercept=False).fit(problem.X[:2000], problem.y[:2000])
    began = time.perf_counter()
    search = LinearSVCCV(SEARCH_CS, cv=5, solver=solver, fit_intercept=False).fit(problem.X, problem.y)
    seconds = time.perf_counter() - began
    known = {}
    if rival is not None:
        other_seconds, grid = rival
        known = {
            "other": "GridSearchCV, scikit-learn",
            "other_seconds": other_seconds,
            "ratio": other_seconds / seconds,
            "other_score": float(grid.best_score_),
            "other_C": float(grid.best_params_["C"]),
            "met": bool(other_seconds >= SEARCH_FACTOR * seconds),
        }
    table.add(
        what="search",
        data=problem.name,
        solver=solver,
        n_fits=search.scores_.size + 1,
        seconds=seconds,
        largest_gap=float(search.relative_gaps_.max()),
        score=search.best_score_,
        C=search.C_,
        **known,
    )


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    def missed(what: str) -> str:
        lines = [
            f"{row['data']} with {row['solver']} ({row['ratio']:.2f})"
            for row in rows
            if row["what"] == what and row.get("met") is False
        ]
        return "missed by " + ", ".join(lines) if lines else "met"

    return [
        f"goal of paths: 20 values in at most {PATH_FACTOR:g} times the time of the hardest single fit: "
        f"{missed('path')}. The ratio is path / hardest fit.",
        f"goal of searches: at least {SEARCH_FACTOR:g} times faster than scikit-learn: {missed('search')}. The ratio "
        "is scikit-learn / softmargin.",
        f"C from {PATH_CS[0]:g} to {PATH_CS[-1]:g} on a log scale, no intercept, the defaults of both otherwise: "
        "softmargin proves a relative gap of 1e-3 for every fit, scikit-learn stops by its own tol = 1e-4 or after "
        "1,000 passes. Both searches have the same 5 stratified folds, and fit the best C on all rows in the end.",
        "times: the whole call in one warm process, judging included.",
    ]


if __name__ == "__main__":
    main()
