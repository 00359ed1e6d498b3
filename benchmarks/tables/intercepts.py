"""Why a free intercept can cost more than none: passes of coordinate descent with none, a penalised and a free one.

Passes are counted, not timed. A goal of `linear_race` is that a free one costs at most 1.25 times what none costs.
Where a penalised one, which is nothing but one more feature, costs as much as a free one, it is the problem with an
intercept that is harder, and not the method by which the intercept is kept free.
"""

import warnings
from typing import Any

from benchmarks import record
from benchmarks.datasets import generate, load
from benchmarks.tables import _paper

NAMES = ("spambase", "sms", "reuters", "a9a", "w8a", "rcv1")
CS, TOLS = (1.0, 10.0), (1e-3, 1e-6)
NONE_FACTOR, PENALISED_FACTOR = 1.25, 1.25
KINDS: dict[str, dict[str, Any]] = {
    "none": {"fit_intercept": False},
    "penalised": {"intercept": "penalised"},
    "free": {},
}
COLUMNS = {
    "problem": ("problem", ""),
    "C": ("C", "g"),
    "tol": ("gap", "g"),
    "none": ("no intercept, passes", ",d"),
    "penalised": ("penalised, passes", ",d"),
    "free": ("free, passes", ",d"),
    "over_none": ("free / none", ".2f"),
    "over_penalised": ("free / penalised", ".2f"),
}


def main() -> None:
    parser = record.options(__doc__)
    parser.add_argument("--max-seconds", type=float, default=600.0, help="limit of one fit")
    parser.add_argument("--render", action="store_true", help="measure nothing: write the last results again")
    args = parser.parse_args()
    args.only = None
    table = record.Table("intercepts", "What an intercept costs, in passes over the rows", COLUMNS, "1", args)
    _paper.produce(table, _measure, _notes)


def _measure(table: record.Table) -> None:
    for name in ("generated",) if table.args.quick else NAMES:
        problem = generate(500, 30, "csr") if table.args.quick else load(name, "csr")
        for C in CS:
            for tol in TOLS:
                passes = {
                    kind: _passes(problem, C, tol, table.args.max_seconds, options) for kind, options in KINDS.items()
                }
                free, none, penalised = (passes[kind] for kind in ("free", "none", "penalised"))
                ratios = {"over_none": free / none, "over_penalised": free / penalised}
                table.add(problem=name, C=C, tol=tol, **passes, **ratios)


def _passes(problem: Any, C: float, tol: float, limit: float, options: dict[str, Any]) -> int:
    from softmargin import LinearSVC

    model = LinearSVC(C=C, tol=tol, solver="coordinate", n_jobs=1, max_seconds=limit, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a fit that does not reach its gap has no number of passes
        return int(model.fit(problem.X, problem.y).trace_["passes"][-1])


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    dear = [row for row in rows if row["over_none"] > NONE_FACTOR]
    own = [row for row in dear if row["over_penalised"] > PENALISED_FACTOR]
    return [
        f"a free intercept takes over {NONE_FACTOR:g} times the passes of none in {len(dear)} of {len(rows)} rows; "
        f"in {len(own)} of these also over {PENALISED_FACTOR:g} times those of a penalised one.",
    ]


if __name__ == "__main__":
    main()
