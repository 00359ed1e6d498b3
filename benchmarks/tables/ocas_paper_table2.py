"""The OCAS paper's Table 2: training time and objective at the best C, beside the paper's numbers."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.solvers import decomposition, paper
from benchmarks.solvers.decomposition import DECOMPOSITION
from benchmarks.tables import _paper

NAMES = (*_paper.SETS_OF_THE_PAPER, *_paper.STAND_INS, "20news-bigrams", "a9a", "w8a")
REFERENCE_TOL = 1e-5
# objective, iterations, seconds; CPA stands beside SVM-perf
PAPER = {
    "cov1": {
        "OCAS": (2.5045e6, 80, 10),
        "CPA": (2.5063e6, 520, 152),
        "BMRM": (2.5060e6, 678, 225),
        "SVM-light": (2.5044e6, 1_027_310, 41_531),
        "SGD": (2.6490e6, 10, 1),
        "Pegasos": (2.5060e6, 470_000_000, 460),
    },
    "mnist": {
        "OCAS": (6.7158e5, 137, 10),
        "CPA": (6.7245e5, 1295, 228),
        "BMRM": (6.7250e5, 2318, 4327),
        "SVM-light": (6.7118e5, 622_391, 2719),
        "SGD": (1.3254e6, 10, 1),
        "Pegasos": (None, 270_000_000, 647),
    },
    "ccat": {
        "OCAS": (8.1462e4, 48, 25),
        "CPA": (8.1744e4, 228, 228),
        "BMRM": (8.1682e4, 327, 248),
        "SVM-light": (8.1235e4, 77_429, 5295),
        "SGD": (8.2963e4, 10, 4),
        "Pegasos": (8.1564e4, 70_000_000, 127),
    },
    "artificial": {
        "OCAS": (1.3172e2, 76, 13),
        "CPA": (1.3186e2, 709, 162),
        "SGD": (1.8097e2, 10, 2),
        "Pegasos": (1.3120e3, 25_000, 1),
    },
}
PAPER |= {
    "astro-like": {
        "OCAS": (2.1103e3, 21, 1),
        "CPA": (2.1180e3, 38, 2),
        "BMRM": (2.1152e3, 42, 2),
        "SVM-light": (2.0939e3, 2972, 22),
        "SGD": (2.2377e3, 10, 1),
        "Pegasos": (2.1090e3, 2_689_000, 4),
    },
    "worm-like": {
        "OCAS": (3.1920e4, 125, 258),
        "CPA": (3.2224e4, 2029, 4436),
        "SGD": (2.1299e5, 10, 9),
        "Pegasos": (4.6212e4, 82_000_000, 213),
    },
}
SAME_DATA = ("cov1", "mnist")  # where objectives can be compared with the paper's
COLUMNS = {
    "data": ("data", ""),
    "n_rows": ("rows", ",d"),
    "C": ("C", "g"),
    "solver": ("solver", ""),
    "objective": ("objective", ".4e"),
    "paper_objective": ("paper", ".4e"),
    "iterations": ("iterations", ",d"),
    "paper_iterations": ("paper", ",d"),
    "seconds": ("seconds", ".2f"),
    "paper_seconds": ("paper", "d"),
    "times_ocas": ("seconds / OCAS's", ".2f"),
    "paper_times_ocas": ("paper", ".2f"),
    "above": ("above the optimum, at most", ".1e"),
    "certified_gap": ("certified gap", ".1e"),
    "ended": ("ended by", ""),
}
REMARKS: tuple[str, ...] = (
    "The paper does not say how cov1 was scaled; `ocas_paper_cov1` tries several readings. That SGD ends far above "
    "the optimum there is no matter of our program: SGDClassifier, another implementation, ends as far off.",
    "LIBLINEAR takes less time than OCAS on sparse data at moderate C (ccat, astro-like, 20news-bigrams, w8a): it "
    "improves w after every row, and a few epochs do on the text sets, where every plane of OCAS costs two products. "
    "Its tolerance is its own, and its objective is lower there as well. So `auto` takes coordinate descent there, "
    "too: `linear_race` compares that with LIBLINEAR at the same objective.",
    "mnist was read in four ways before the one above was chosen, because objective and iterations match: that match "
    "is no independent evidence. Nor is artificial: its means and scales were chosen to come near the paper.",
)


def main() -> None:
    args = _paper.options(__doc__, max_seconds=45.0)
    title = "OCAS paper, Table 2: training time and objective at the best C"
    table = record.Table("ocas_paper_table2", title, COLUMNS, "1", args)
    _paper.produce(table, _measure, _notes, REMARKS)


def _measure(table: record.Table) -> None:
    args = table.args
    for split in _paper.splits(table, NAMES):
        problem, C = split.train, _paper.BEST_C[split.name]
        paper.warm_up(problem)
        reference = paper.lower_bound(problem, C, args.max_seconds, REFERENCE_TOL)
        tried = paper.SOLVERS | {"coordinate descent": paper.coordinate_descent}
        solvers = {name: partial(solve, problem, C, args.max_seconds) for name, solve in tried.items()}
        found = paper.alternate(solvers, args.repeats)
        bound = np.nanmax([reference.dual, *(run.fit.score.dual for runs in found.values() for run in runs)])
        base = paper.median_seconds(found["OCAS"])
        slow = {name: partial(solve, problem, C, args.slow_seconds) for name, solve in DECOMPOSITION.items()}
        found |= paper.alternate(slow, 1)
        for solver, runs in found.items():
            _add(table, problem, C, solver, runs, bound, base)


def _add(table: record.Table, problem: Any, C: float, solver: str, runs: list, bound: float, base: float) -> None:
    printed = PAPER.get(problem.name, {})
    objective, iterations, seconds = printed.get(solver, (None, None, None))
    score, taken = runs[-1].fit.score, paper.median_seconds(runs)
    table.add(
        data=problem.name,
        n_rows=problem.X.shape[0],
        n_features=problem.X.shape[1],
        storage=problem.form,
        C=C,
        solver=solver,
        objective=score.primal,
        paper_objective=objective,
        iterations=runs[-1].iterations or None,
        paper_iterations=iterations,
        seconds=taken,
        all_seconds=[run.fit.seconds for run in runs],
        paper_seconds=seconds,
        times_ocas=taken / base,
        paper_times_ocas=None if seconds is None else seconds / printed["OCAS"][2],
        above=None if solver in DECOMPOSITION else (score.primal - bound) / score.primal,
        bound=bound,
        certified_gap=score.relative_gap,
        was_cut=runs[-1].was_cut,
        ended=runs[-1].ended,
    )


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    found = _paper.by_name(rows)
    both = {name: row for name, row in found.items() if name in PAPER}
    claims = [
        _paper.claim(
            "at the same stop rule OCAS takes less time than the cutting planes of SVM-perf and BMRM (here: CPA)",
            {name: row["CPA"]["times_ocas"] > 1 for name, row in found.items()},
        ),
        _paper.claim(
            "OCAS takes less time than every other accurate solver, each at its own tolerance (there: SVM-light; here: "
            "LIBLINEAR)",
            {name: row["LIBLINEAR"]["times_ocas"] > 1 for name, row in found.items()},
        ),
        _paper.claim(
            "OCAS takes less time than BMRM (here: the planes of CPA with BMRM's stop)",
            {name: row["times_ocas"] > 1 for name, row in _by(found, "BMRM").items()},
        ),
        _paper.claim(
            "OCAS is far faster than SVM-light: 22 to 4,153 times (here, seconds / OCAS's: "
            + ", ".join(f"{name} {_times(row)}" for name, row in _by(found, "SVM-light").items())
            + "; of LIBSVM: "
            + ", ".join(f"{name} {_times(row)}" for name, row in _by(found, "LIBSVM").items())
            + ")",
            # A fit that was cut has a lower bound, which may be too low to say.
            {
                name: is_far
                for name, row in _by(found, "SVM-light").items()
                if (is_far := row["times_ocas"] >= 22) or not row["was_cut"]
            },
        ),
        _paper.claim(
            "OCAS ends with an objective no higher than CPA's",
            {name: row["OCAS"]["objective"] <= row["CPA"]["objective"] for name, row in found.items()},
        ),
        _paper.claim(
            "SGD is through with its 10 epochs before OCAS ends",
            {name: row["SGD"]["times_ocas"] < 1 for name, row in found.items()},
        ),
        _paper.claim(
            "SGD's objective is then more than 1 % above that of OCAS",
            {name: row["SGD"]["objective"] > 1.01 * row["OCAS"]["objective"] for name, row in found.items()},
        ),
        _paper.claim(
            "Pegasos takes longer than OCAS on all sets but worm and artificial",
            {name: row["Pegasos"]["times_ocas"] > 1 for name, row in found.items() if name != "artificial"},
        ),
    ]
    newer = _by(found, "coordinate descent")
    quicker = [name for name, row in newer.items() if row["times_ocas"] < 1]
    return [
        _paper.CONDITIONS,
        *(_beside_the_paper(name, row) for name, row in both.items()),
        *claims,
        "Our own coordinate descent, which the paper does not have, at the stop rule of OCAS: seconds / OCAS's "
        + ", ".join(f"{name} {row['times_ocas']:.2f}" for name, row in newer.items())
        + f". It takes less time on {', '.join(quicker) or 'none'}; and less than LIBLINEAR on "
        + (
            ", ".join(name for name, row in newer.items() if row["times_ocas"] < found[name]["LIBLINEAR"]["times_ocas"])
            or "none"
        )
        + '. `LinearSVC(solver="auto")` chooses between both.',
        _paper.DATA_NOTE,
        "best C: the paper does not print it, but Pegasos makes 100 C m steps in its Table 2, which gives the C above.",
        "paper: SVM-perf 2.1 stands beside CPA, svmsgd2 beside SGD; its machine was a 2.4 GHz Opteron of 2008, so "
        "ratios can be compared, seconds cannot. LIBLINEAR, LIBSVM and SGDClassifier were not run there. Pegasos on "
        "mnist: the paper's program failed; SVM-light on artificial: it did not converge there.",
        decomposition.NOTE,
        "stop rules: OCAS, CPA and coordinate descent (F - F_t) / (C n) <= 1e-3, SGD and SGDClassifier 10 epochs, "
        f"Pegasos 100 C n steps, LIBLINEAR tol = {paper.LIBLINEAR_TOL:g}. Our SGD and Pegasos measure the "
        "objective after each epoch, which is in their seconds, and return the best point; the paper's programs return "
        "the last one.",
        "seconds: of the whole `fit`, one thread each, in turn; the median of several runs where one takes less than "
        f"{paper.SHORT:g} s. iterations: planes, epochs, passes (coordinate descent), or single steps (Pegasos). A "
        "fit that was cut has not met its stop rule.",
        "above the optimum: relative, against the highest dual bound of any run, one of OCAS to a gap of "
        f"{REFERENCE_TOL:g} among them. Objectives, bounds and gaps are recomputed by benchmarks/objective.py.",
    ]


def _by(found: dict[str, dict[str, dict[str, Any]]], solver: str) -> dict[str, dict[str, Any]]:
    """The rows of this solver, by data set; older results lack some."""
    return {name: row[solver] for name, row in found.items() if solver in row}


def _times(row: dict[str, Any]) -> str:
    return f"{'more than ' if row['was_cut'] else ''}{row['times_ocas']:.1f}"


def _beside_the_paper(name: str, row: dict[str, dict[str, Any]]) -> str:
    ocas, cpa, sgd = row["OCAS"], row["CPA"], row["SGD"]
    printed = PAPER[name]
    parts = []
    if name in SAME_DATA:
        off = ocas["objective"] / printed["OCAS"][0] - 1
        parts.append(f"the objective of OCAS is {100 * off:+.2f} % from the paper's")
    parts.append(f"OCAS needs {ocas['iterations']} iterations (paper {printed['OCAS'][1]})")
    at_least = "at least " if cpa["was_cut"] else ""
    iterations = cpa["iterations"] / ocas["iterations"], printed["CPA"][1] / printed["OCAS"][1]
    parts.append(f"CPA {at_least}{iterations[0]:.1f} times as many (paper {iterations[1]:.1f})")
    parts.append(f"and {at_least}{cpa['times_ocas']:.1f} times the time (paper {cpa['paper_times_ocas']:.1f})")
    ours = 100 * (sgd["objective"] / ocas["objective"] - 1)
    theirs = 100 * (printed["SGD"][0] / printed["OCAS"][0] - 1)
    parts.append(f"SGD ends {ours:.1f} % above OCAS's objective (paper {theirs:.1f} %)")
    return f"{name}: " + ", ".join(parts) + "."


if __name__ == "__main__":
    main()
