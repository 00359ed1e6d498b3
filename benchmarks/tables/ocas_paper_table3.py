"""The OCAS paper's Table 3: a whole model selection over C, by ROC area, beside the paper's numbers.

Every solver is trained for each C of the paper's grid; the C with the largest ROC area on the validation rows is taken,
and its ROC area on the test rows is reported with the time of all fits together. OCAS is also run with warm starts:
each C from the planes of the one before.
"""

from collections.abc import Callable, Iterable
from functools import partial
from math import nan
from typing import Any

from benchmarks import record
from benchmarks.datasets import Problem, Split
from benchmarks.solvers import decomposition, paper
from benchmarks.solvers.decomposition import DECOMPOSITION
from benchmarks.solvers.paper import Run
from benchmarks.tables import _paper
from softmargin.metrics import roc_area

NAMES = (*_paper.SETS_OF_THE_PAPER, *_paper.STAND_INS, "a9a", "w8a")
DEFAULT_GRID = (0.1, 0.5, 1.0, 5.0, 10.0)
SMALL = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
GRIDS = {"mnist": (1.0, 5.0, 10.0, 50.0, 100.0), "artificial": SMALL, "worm-like": SMALL}
WARM = "OCAS, warm starts"
# The limit of these is a twentieth: at a large C neither ends in any time that matters.
LIMITED = ("Pegasos", "LIBLINEAR")
# The paper prints "-" for BMRM and SVM-light on artificial and worm: they did not converge there.
WITHOUT_PLANES = {"artificial": ("BMRM",), "worm-like": ("BMRM",)}
OURS = ("OCAS", "CPA", "Pegasos")
# ROC area in per cent, best C, seconds; CPA stands beside SVM-perf. For the accurate solvers the paper prints one mean.
PAPER = {
    "cov1": {
        "OCAS": (83.92, 50, 51),
        "CPA": (83.92, 5, 781),
        "BMRM": (83.92, 10, 1562),
        "SVM-light": (83.92, 10, 282_703),
        "SGD": (83.88, 1, 5),
        "Pegasos": (83.89, 5, 731),
    },
    "mnist": {
        "OCAS": (95.86, 10, 35),
        "CPA": (95.86, 10, 887),
        "BMRM": (95.86, 10, 20_278),
        "SVM-light": (95.86, 10, 9247),
        "SGD": (95.71, 1, 3),
        "Pegasos": (95.84, 5, 2125),
    },
    "ccat": {
        "OCAS": (98.51, 1, 163),
        "CPA": (98.51, 1, 1750),
        "BMRM": (98.51, 1, 2735),
        "SVM-light": (98.51, 1, 124_700),
        "SGD": (98.52, 1, 20),
        "Pegasos": (98.51, 1, 2031),
    },
    "artificial": {
        "OCAS": (86.38, 0.005, 6740),
        "CPA": (86.38, 0.005, 24_520),
        "SGD": (80.88, 0.005, 7),
        "Pegasos": (78.35, 5, 201),
    },
}
PAPER |= {
    "astro-like": {
        "OCAS": (98.15, 1, 4),
        "CPA": (98.15, 1, 13),
        "BMRM": (98.15, 1, 17),
        "SVM-light": (98.15, 1, 152),
        "SGD": (98.13, 0.5, 1),
        "Pegasos": (98.15, 1, 59),
    },
    "worm-like": {
        "OCAS": (99.45, 0.1, 1438),
        "CPA": (99.45, 1, 22_983),
        "SGD": (99.43, 0.005, 69),
        "Pegasos": (99.27, 5, 1438),
    },
}
COLUMNS = {
    "data": ("data", ""),
    "solver": ("solver", ""),
    "roc": ("ROC area %", ".2f"),
    "paper_roc": ("paper", ".2f"),
    "best_C": ("best C", "g"),
    "paper_C": ("paper", "g"),
    "seconds": ("seconds, all C", ".2f"),
    "paper_seconds": ("paper", ",d"),
    "times_ocas": ("seconds / OCAS's", ".2f"),
    "paper_times_ocas": ("paper", ".2f"),
    "cut": ("fits cut", ""),
}
REMARKS: tuple[str, ...] = (
    "Where fits were cut, the times are limits rather than results, and the ROC areas those of unfinished models.",
    "The test part of ccat has 828 rows: differences of a tenth of a per cent may be chance.",
    "Warm starts go from the smallest C to the largest. They stop at the same tolerance, but at another point within "
    "it, so a C with nearly the same ROC area may be selected.",
)


def main() -> None:
    args = _paper.options(__doc__, max_seconds=600.0, repeats=1)
    title = "OCAS paper, Table 3: model selection over C by ROC area"
    table = record.Table("ocas_paper_table3", title, COLUMNS, "1", args)
    _paper.produce(table, _measure, _notes, REMARKS)


def _measure(table: record.Table) -> None:
    args = table.args
    for split in _paper.splits(table, NAMES):
        grid = GRIDS.get(split.name, DEFAULT_GRID)
        paper.warm_up(split.train)
        paths = {
            name: partial(
                _path, solve, split.train, grid, args.max_seconds / 20 if name in LIMITED else args.max_seconds
            )
            for name, solve in paper.SOLVERS.items()
            if name not in WITHOUT_PLANES.get(split.name, ())
        }
        paths[WARM] = partial(paper.warm_path, split.train, grid, args.max_seconds)
        if split.name not in WITHOUT_PLANES:
            paths |= {
                name: partial(_path, solve, split.train, grid, args.slow_seconds / len(grid))
                for name, solve in DECOMPOSITION.items()
            }
        best = {}
        for turn in range(args.repeats):
            for name, path in paths.items():
                found = table.cells.part(f"{name}, run {turn}", _selection, split, grid, path)
                if name not in best or found["seconds"] < best[name]["seconds"]:
                    best[name] = found
        for name, found in best.items():
            _add(table, split.name, name, found, best["OCAS"]["seconds"])


def _path(solve: Any, problem: Problem, grid: tuple[float, ...], limit: float) -> Iterable[Run]:
    return (solve(problem, C, limit) for C in grid)


def _selection(split: Split, grid: tuple[float, ...], path: Callable[[], Iterable[Run]]) -> dict[str, Any]:
    fits = []
    for C, run in zip(grid, path(), strict=True):
        if run.fit.model is None:  # a process that was ended
            nothing = {"objective": None, "validation": -1.0, "test": nan}
            fits.append(
                {"C": C, "seconds": run.fit.seconds, "iterations": 0, "ended": run.ended, "was_cut": True} | nothing
            )
            continue
        w = run.fit.model.coef_[0]
        w = w.toarray().ravel() if hasattr(w, "toarray") else w
        fits.append(
            {
                "C": C,
                "seconds": run.fit.seconds,
                "iterations": run.iterations,
                "objective": run.fit.score.primal,
                "ended": run.ended,
                "was_cut": run.was_cut,
                "validation": _roc(split.validation, w),
                "test": _roc(split.test, w),
            }
        )
    best = max(fits, key=lambda fit: fit["validation"])
    return {"best": best, "seconds": sum(fit["seconds"] for fit in fits), "fits": fits}


def _roc(problem: Problem, w: Any) -> float:
    return 100 * roc_area(problem.y > 0, problem.X @ w)


def _add(table: record.Table, data: str, solver: str, found: dict[str, Any], base: float) -> None:
    printed = PAPER.get(data, {})
    roc, C, seconds = printed.get(solver, (None, None, None))
    n_cut = sum(fit["was_cut"] for fit in found["fits"])
    table.add(
        data=data,
        solver=solver,
        roc=found["best"]["test"],
        paper_roc=roc,
        best_C=found["best"]["C"],
        paper_C=C,
        seconds=found["seconds"],
        paper_seconds=seconds,
        times_ocas=found["seconds"] / base,
        paper_times_ocas=None if seconds is None else seconds / printed["OCAS"][2],
        cut=f"{n_cut} of {len(found['fits'])}" if n_cut else "",
        fits=found["fits"],
    )


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    found = _paper.by_name(rows)
    cut = [name for name, row in found.items() if row["OCAS"]["cut"]]
    return [
        _paper.CONDITIONS + " Fits of OCAS that met their limit: " + (", ".join(cut) or "none") + ".",
        *(_beside_the_paper(name, row) for name, row in found.items()),
        _paper.claim(
            "the ROC areas of the accurate solvers differ by a few hundredths of a per cent (here: by at most 0.05)",
            {name: _spread(row) <= 0.05 for name, row in found.items()},
        ),
        _paper.claim(
            "SGD is the fastest (here: of our own solvers from scratch)",
            {name: all(row["SGD"]["seconds"] <= row[s]["seconds"] for s in OURS) for name, row in found.items()},
        ),
        _paper.claim(
            "SGD comes within 0.2 % of the ROC area of OCAS, except on artificial",
            {name: row["SGD"]["roc"] > row["OCAS"]["roc"] - 0.2 for name, row in found.items() if name != "artificial"},
        ),
        _paper.claim(
            "the C that SGD selects is no larger than that of OCAS",
            {name: row["SGD"]["best_C"] <= row["OCAS"]["best_C"] for name, row in found.items()},
        ),
        _paper.claim(
            "OCAS is the fastest of the accurate solvers",
            {name: all(row[s]["times_ocas"] >= 1 for s in paper.ACCURATE) for name, row in found.items()},
        ),
        _paper.claim(
            "the time of OCAS is mostly that of the two largest C",
            {name: _share_of_largest(row["OCAS"]) > 0.5 for name, row in found.items()},
        ),
        _paper.DATA_NOTE,
        "paper: SVM-perf stands beside CPA; for the accurate solvers it prints one mean ROC area. On cov1 it prints "
        "C = 50 for OCAS, which is not in the grid it names. Its machine was a 2.4 GHz Opteron of 2008.",
        decomposition.NOTE + " Its limit is for the whole grid, a fifth or an eighth of it for each C; SVM-light and "
        "BMRM are left out on artificial and worm-like, where the paper's did not converge.",
        "seconds: of all fits of the grid together, one thread; choosing and scoring are not in them. A fit that was "
        "cut at the limit of time counts with the model it had by then.",
        "ROC area: on the test rows, of the C with the largest one on the validation rows. 50 % is that of w = 0: our "
        "SGD and Pegasos return the best point they have measured, which w = 0 can be.",
    ]


def _beside_the_paper(name: str, row: dict[str, dict[str, Any]]) -> str:
    ocas, warm, cpa = row["OCAS"], row[WARM], row["CPA"]
    said = f"{name}: warm starts take {warm['times_ocas']:.2f} times the time of OCAS from scratch"
    if name not in PAPER:
        return said + "."
    was_cut = f", cut in {cpa['cut'] or 'none'} of its fits and OCAS in {ocas['cut'] or 'none'}" if cpa["cut"] else ""
    return said + (
        f", CPA {cpa['times_ocas']:.1f} times (paper {cpa['paper_times_ocas']:.1f}{was_cut}); ROC area of OCAS "
        f"{ocas['roc']:.2f} % (paper {ocas['paper_roc']:.2f} %), of SGD {row['SGD']['roc']:.2f} % "
        f"(paper {row['SGD']['paper_roc']:.2f} %)."
    )


def _spread(row: dict[str, dict[str, Any]]) -> float:
    areas = [row[solver]["roc"] for solver in (*paper.ACCURATE, WARM)]
    return max(areas) - min(areas)


def _share_of_largest(row: dict[str, Any]) -> float:
    return sum(fit["seconds"] for fit in row["fits"][-2:]) / row["seconds"]


if __name__ == "__main__":
    main()
