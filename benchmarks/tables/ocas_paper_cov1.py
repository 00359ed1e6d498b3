"""Which reading of cov1 is the OCAS paper's? Objective and iterations of OCAS and CPA for several preprocessings.

The paper's Table 2 has an objective of 2.5045e6 after 80 iterations of OCAS and 520 of SVM-perf, at C = 10.
"""

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import record
from benchmarks.datasets import Problem, load, tiny_split
from benchmarks.datasets.problems import unit_rows
from benchmarks.solvers import paper
from benchmarks.tables import _paper

OBJECTIVE, ITERATIONS, CPA_ITERATIONS = 2.5045e6, 80, 520
C = 10.0
N_MEASURED = 10  # features; the others are binary
ROWS = 470_620  # 81 %, the paper's training part
# SVM-perf's paper counts 22.22 % of the entries of covertype: 12 of 54 in every row, so that none of the ten measured
# features is ever zero there, as in raw and in min-max form some are; the other 44 are binary.
MEASURED = ("measured standardised", "measured standardised, unit rows")
READINGS = (
    "to [0, 1]",
    "raw",
    "standardised",
    "unit rows",
    "to [0, 1], unit rows",
    "largest entry 1",
    "deviation 1",
    *MEASURED,
)
COLUMNS = {
    "reading": ("features", ""),
    "n_rows": ("rows", ",d"),
    "solver": ("solver", ""),
    "mixing": ("lambda", ""),
    "objective": ("objective", ".4e"),
    "of_paper": ("from the paper's", "+.2%"),
    "iterations": ("iterations", ",d"),
    "paper_iterations": ("paper", ",d"),
    "seconds": ("seconds", ".2f"),
    "ended": ("ended by", ""),
}


def main() -> None:
    args = _paper.options(__doc__, max_seconds=60.0, repeats=1, sets=(), more=_own_options)
    table = record.Table("ocas_paper_cov1", "OCAS paper, Table 2: the preprocessing of cov1", COLUMNS, "1", args)
    _paper.produce(table, _measure, _notes)


def _own_options(parser: argparse.ArgumentParser) -> None:
    text = "fewer rows, with C larger by the same factor, so that the mean loss counts as much"
    parser.add_argument("--rows", type=int, default=ROWS, help=text)


def _measure(table: record.Table) -> None:
    from softmargin import OCAS

    args = table.args
    for reading in table.cells.each(READINGS[:2] if args.quick else READINGS):
        problem = tiny_split("cov1").train if args.quick else read(reading, args.rows)
        paper.warm_up(problem)
        for mixing in (0.1, 0.2, 0.5):
            solver = OCAS(mixing, stopping="epsilon")
            run = paper.ocas(problem, C * ROWS / args.rows, args.max_seconds, solver=solver)
            _add(table, reading, "OCAS", f"{mixing:g}", run, ITERATIONS)
        run = paper.cpa(problem, C * ROWS / args.rows, args.max_seconds)
        _add(table, reading, "CPA", "", run, CPA_ITERATIONS)


def read(reading: str, n_rows: int) -> Problem:
    """81 % of covertype, or fewer rows, class 1 against the rest, with features as the reading says."""
    source = load("covtype" if reading.startswith("to [0, 1]") else "covtype raw")
    index = np.sort(np.random.default_rng(0).permutation(source.X.shape[0])[:n_rows])
    X: Any = source.X[index].astype(np.float64)
    if reading == "standardised":
        dense = X.toarray()
        deviations = dense.std(axis=0)
        X = (dense - dense.mean(axis=0)) / np.where(deviations > 0.0, deviations, 1.0)
    elif reading == "deviation 1":
        mean = np.asarray(X.mean(axis=0)).ravel()
        deviations = np.sqrt(np.maximum(np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2, 0.0))
        X = sp.csr_matrix(X @ sp.diags(1.0 / np.where(deviations > 0.0, deviations, 1.0)))
    elif reading == "largest entry 1":
        largest = np.asarray(abs(X).max(axis=0).todense()).ravel()
        X = sp.csr_matrix(X @ sp.diags(1.0 / np.where(largest > 0.0, largest, 1.0)))
    elif reading in MEASURED:
        dense = X.toarray()
        part = dense[:, :N_MEASURED]
        dense[:, :N_MEASURED] = (part - part.mean(axis=0)) / part.std(axis=0)
        X = sp.csr_matrix(dense)
    if reading.endswith("unit rows"):
        unit_rows(X)
    return replace(source, name="cov1", X=X, y=source.y[index])


def _add(table: record.Table, reading: str, solver: str, mixing: str, run: Any, printed: int) -> None:
    objective = run.fit.score.primal
    table.add(
        reading=reading,
        solver=solver,
        mixing=mixing,
        n_rows=run.fit.model.dual_.shape[0],
        objective=objective,
        of_paper=objective / OBJECTIVE - 1,
        iterations=run.iterations,
        paper_iterations=printed,
        seconds=run.fit.seconds,
        was_cut=run.was_cut,
        ended=run.ended,
    )


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    objective, iterations = near(rows)
    few = min(row["n_rows"] for row in rows) < ROWS
    return [
        "Other conditions than the paper's: which 81 % of the rows it trained on is not known."
        + (" Here are fewer rows, with C larger by the same factor." if few else ""),
        f"the objective is within 0.5 % of the paper's for: {listed(objective)}; the iterations of OCAS are within a "
        f"quarter of its {ITERATIONS} for: {listed(iterations)}.",
        "iterations, in multiples of the paper's, where the objective is near: "
        + "; ".join(f'"{name}" OCAS {ocas:.2f}, CPA {cpa:.2f}' for name, (ocas, cpa) in excess(rows).items())
        + ". Where both need more, the difference is one of the data, and no matter of what OCAS adds to CPA.",
        f"C = {C:g} on the sum of the losses, no intercept; the stop rule is the paper's, 1e-3 on the mean loss.",
    ]


def listed(readings: list[str]) -> str:
    """Their names have commas."""
    return ", ".join(f'"{name}"' for name in readings) or "none"


def excess(rows: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """Iterations of OCAS and of CPA by the paper's, for the readings with its objective where neither was cut."""
    found = {(row["reading"], row["solver"], row["mixing"]): row for row in rows if not row["was_cut"]}
    pairs = {name: (found[name, "OCAS", "0.1"], found.get((name, "CPA", ""))) for name in near(rows)[0]}
    return {
        name: (ocas["iterations"] / ITERATIONS, cpa["iterations"] / CPA_ITERATIONS)
        for name, (ocas, cpa) in pairs.items()
        if cpa is not None
    }


def near(rows: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """The readings for which OCAS comes near the objective of the paper, and near its iterations."""
    ours = [row for row in rows if row["solver"] == "OCAS" and row["mixing"] == "0.1" and not row["was_cut"]]
    objective = [row["reading"] for row in ours if abs(row["of_paper"]) < 0.005]
    return objective, [row["reading"] for row in ours if 0.8 < row["iterations"] / ITERATIONS < 1.25]


if __name__ == "__main__":
    main()
