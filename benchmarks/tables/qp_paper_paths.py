"""The SVM-QP paper's Section 4.3, paths: solutions for several C and several kernel widths, warm and cold."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks import record
from benchmarks.datasets.qp_problems import QPProblem, load_qp, tiny_qp
from benchmarks.solvers import kernel
from benchmarks.tables import _paper, _qp
from benchmarks.tables._qp import TOL

COLD, BLOCKS, WARM = "cold", "blocks", "warm"
OVER_C, OVER_WIDTH = "C", "sigma"
POINTS = 7
SAME = 1e-9  # relative: dual values that differ by less are the same optimum


class Path(NamedTuple):
    """From the first value to the last, at equal ratios; the rest of the problem is that of Table 1."""

    problem: str
    over: str
    first: float
    last: float


PATHS = (
    Path("web_100_100", OVER_C, 1.0, 100.0),
    Path("letter_40_100", OVER_C, 1.0, 100.0),
    Path("abalone_4_100", OVER_C, 1.0, 100.0),
    Path("spam_300_100", OVER_C, 1.0, 100.0),
    Path("adult_100_100", OVER_C, 1.0, 100.0),
    Path("web_100_100", OVER_WIDTH, 100.0, 40.0),
    Path("letter_100_100", OVER_WIDTH, 100.0, 40.0),
    Path("abalone_4_100", OVER_WIDTH, 8.0, 2.0),
    Path("spam_300_100", OVER_WIDTH, 600.0, 300.0),
    Path("adult_200_100", OVER_WIDTH, 200.0, 100.0),
)
COLUMNS: dict[str, Any] = {
    "problem": ("problem", ""),
    "over": ("path over", ""),
    "value": ("value", ".4g"),
    "n_free": ("n_s", ",d"),
    "n_bounded": ("n_c", ",d"),
    "cold_pivots": ("cold: pivots", ",d"),
    "blocks_pivots": ("blocks begin", ",d"),
    "warm_pivots": ("warm", ",d"),
    "cold_s": ("cold s", ""),
    "blocks_s": ("blocks begin s", ""),
    "warm_s": ("warm s", ""),
    "same_sets": ("same n_s and n_c", lambda value: "yes" if value else "no"),
    "differ": ("duals differ by, relative", ".0e"),
}
REMARKS: tuple[str, ...] = ()


def main() -> None:
    args = _qp.options(__doc__, 60.0, tuple(dict.fromkeys(path.problem for path in PATHS)), repeats=1)
    title = "SVM-QP paper, Section 4.3: paths over C and over the kernel parameter, warm and cold"
    _paper.produce(record.Table("qp_paper_paths", title, COLUMNS, "1", args), _measure, _notes, REMARKS)


def _measure(table: record.Table) -> None:
    args = table.args
    if not args.quick:
        kernel.touch_memory(_qp.OURS_MEMORY)
    wanted = [path for path in PATHS if args.only in (None, path.problem)]
    wanted = wanted[:1] + wanted[-1:] if args.quick else wanted
    for path in table.cells.each(wanted, "{0.problem} over {0.over}".format):
        _follow(tiny_qp(path.problem, 1_100), path, args.max_seconds)  # compiled
        problem = tiny_qp(path.problem) if args.quick else load_qp(path.problem)
        for row in _follow(problem, path, args.max_seconds):
            table.add(**row)


def _follow(problem: QPProblem, path: Path, max_seconds: float) -> list[dict[str, Any]]:
    """One row for each value; the first solution of the warm ones is the cold one."""
    rows = []
    beta: np.ndarray | None = None
    before = 0.0
    for part in _points(problem, path):
        found: dict[str, dict[str, Any]] = {COLD: _solved(part, None, "cold", max_seconds)}
        found[BLOCKS] = _solved(part, None, "smo", max_seconds)
        start = None if beta is None else _scaled(beta, before, part.C)
        found[WARM] = found[COLD] if start is None else _solved(part, start, "cold", max_seconds)
        beta, before = found[WARM].pop("beta") if start is not None else found[COLD]["beta"], part.C
        for one in found.values():
            one.pop("beta", None)
        rows.append(
            {
                "problem": problem.name,
                "over": path.over,
                "value": part.C if path.over == OVER_C else 1.0 / part.gamma,
                "n_free": found[WARM]["n_free"],
                "n_bounded": found[WARM]["n_bounded"],
                **{f"{name}_pivots": one["pivots"] for name, one in found.items()},
                **{f"{name}_s": _qp.shown(one) for name, one in found.items()},
                "same_sets": len({(one["n_free"], one["n_bounded"]) for one in found.values()}) == 1,
                "differ": _qp.equal_duals(found),
                "is_first": start is None,
                "found": found,
            }
        )
    return rows


def _points(problem: QPProblem, path: Path) -> Iterator[QPProblem]:
    for value in np.geomspace(path.first, path.last, POINTS).tolist():
        yield replace(problem, C=value) if path.over == OVER_C else replace(problem, gamma=1.0 / value)


def _scaled(beta: np.ndarray, before: float, C: float) -> np.ndarray:
    """For another C all variables grow with it: those at their bound stay there, as with `SVC(warm_start=True)`."""
    return np.where(np.abs(beta) >= before, np.sign(beta) * C, beta * (C / before))


def _solved(problem: QPProblem, start: np.ndarray | None, begins: str, max_seconds: float) -> dict[str, Any]:
    """The active set from a start, from zero, or after rounds of blocks; of the parts of the library, so that a start
    can be given for another kernel too.
    """
    from softmargin.core.result import DualStart
    from softmargin.core.stopping import Stop
    from softmargin.core.threads import Workers
    from softmargin.data.convert import as_rows
    from softmargin.estimators.kernel_work import KernelSetting, staged
    from softmargin.kernels.cached import CachedRows
    from softmargin.kernels.functions import RBF
    from softmargin.kernels.matrix import DirectRows
    from softmargin.problems.box_qp import BoxQP
    from softmargin.problems.kernel_certificate import KernelJudge
    from softmargin.problems.row_loss import RowLoss
    from softmargin.solvers.active_set.active_set import ActiveSet
    from softmargin.solvers.base import run

    workers = Workers(1)
    source = DirectRows(as_rows(problem.X), RBF(problem.gamma), np.float64, workers)
    setting = KernelSetting(problem.C, RBF(problem.gamma), None, True)
    store = CachedRows(source, setting.cache(problem.n_rows, 8), workers)
    qp = BoxQP(store, RowLoss.classification(problem.y, problem.C), workers)
    stop = Stop(tol=TOL, rule="kkt", max_seconds=max_seconds)
    solver = staged(ActiveSet(start=begins, equations="factor", stopping="kkt"), stop)
    result = run(
        solver,
        qp,
        stop,
        KernelJudge.of(qp, TOL),
        start=None if start is None else DualStart(start),
        workers=workers,
    )
    free = qp.is_free(result.state.beta)
    return {
        "seconds": result.seconds["total"],
        "was_cut": result.status.name == "MAX_SECONDS",
        "pivots": result.counts["iterations"],
        "kernel_evaluations": result.counts["kernel_evaluations"],
        "n_free": int(np.count_nonzero(free)),
        "n_bounded": int(np.count_nonzero(~free & (result.state.beta != 0.0))),
        "dual": result.certificate.dual,
        "kkt_violation": result.certificate.kkt_violation,
        "status": result.status.name,
        "beta": result.state.beta,
    }


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    later = [row for row in rows if not row["is_first"] and not any(one["was_cut"] for one in row["found"].values())]
    paths = list(dict.fromkeys((row["problem"], row["over"]) for row in later))
    said = []
    for over, what in ((OVER_C, "of the penalty C"), (OVER_WIDTH, "of the kernel parameter")):
        sums = {
            name: {one: _sums(later, (name, over), one) for one in (COLD, BLOCKS, WARM)}
            for name, along in paths
            if along == over
        }
        said += [
            _qp.claim(
                f"warm starts generate solutions for values {what} (here: in fewer pivots than from zero)",
                {name: one[WARM][0] < one[COLD][0] for name, one in sums.items()},
            ),
            _qp.claim(
                "no figure: in less time than from zero",
                {name: one[WARM][1] < one[COLD][1] for name, one in sums.items()},
            ),
            _qp.claim(
                "no figure: in less time than where blocks of variables begin, the default of the library",
                {name: one[WARM][1] < one[BLOCKS][1] for name, one in sums.items()},
            ),
            f"path over {over}, pivots and seconds of values after the first (from zero; where blocks begin; warm): "
            + "; ".join(
                f"{name} " + ", ".join(f"{one[how][0]:,} in {one[how][1]:.2f} s" for how in (COLD, BLOCKS, WARM))
                for name, one in sums.items()
            )
            + ".",
        ]
    other = [
        f"{row['problem']} at {row['over']} = {row['value']:.4g}"
        for row in rows
        if row["differ"] is not None and row["differ"] > SAME
    ]
    return [
        "not in the paper, whose Section 4.3 says that warm starts serve such paths, and that those over the kernel "
        "parameter need a separate study: there are no numbers of its own to compare with.",
        *said,
        f"the three optima are the same to {SAME:g} of the dual value"
        + (f", but for {', '.join(other)}." if other else " everywhere."),
        f"{POINTS} values at equal ratios, in the order of the rows. The first solution is from zero; a warm start has "
        "the dual variables of the row before, of another C scaled so that those at their bound stay there (that is "
        "c_path of the library), of another kernel as they are. By ActiveSet(equations='factor') to a KKT violation "
        f"of {TOL:g}. Every solve computes its kernel values anew, and its seconds contain them, the judge's too; one "
        "thread, each solve once.",
        _qp.DATA_NOTE,
    ]


def _sums(rows: list[dict[str, Any]], path: tuple[str, str], how: str) -> tuple[int, float]:
    mine = [row["found"][how] for row in rows if (row["problem"], row["over"]) == path]
    return sum(one["pivots"] for one in mine), sum(one["seconds"] for one in mine)


if __name__ == "__main__":
    main()
