"""The OCAS paper's Figure 1: the objective of CPA jumps, that of OCAS falls; both lower bounds rise.

The objective at w_t, the minimiser of the reduced problem, is what CPA has; OCAS has that of the best point of its
searches along lines, w_b. Every step is taken by hand from the state of the solver.
"""

import time
from typing import Any

import numpy as np

from benchmarks import plots, record
from benchmarks.datasets import Problem
from benchmarks.solvers import paper
from benchmarks.tables import _paper

STEPS = 100
COLUMNS = {
    "data": ("data", ""),
    "C": ("C", "g"),
    "solver": ("solver", ""),
    "steps": ("steps", "d"),
    "rises": ("steps at which the objective rises", "d"),
    "worst_rise": ("largest rise, times", ".3g"),
    "lowest": ("lowest objective / bound", ".4g"),
    "last": ("last objective / bound", ".4g"),
    "seconds": ("seconds", ".2f"),
}


def main() -> None:
    args = _paper.options(__doc__, max_seconds=30.0, repeats=1, sets=_paper.SETS_OF_THE_PAPER)
    title = "OCAS paper, Figure 1: CPA and OCAS, step by step"
    table = record.Table("ocas_paper_figure1", title, COLUMNS, "1", args)
    _paper.produce(table, _measure, _notes)
    panels = [_panel(name, row) for name, row in _paper.by_name(table.rows).items()]
    png = plots.log_log(panels, "step", "F / the best bound")
    if _paper.writes(args):
        plots.write(_paper.folder(args) / f"{table.name}.png", png)


def _measure(table: record.Table) -> None:
    limit, steps = table.args.max_seconds, 10 if table.args.quick else STEPS
    for split in _paper.splits(table, _paper.SETS_OF_THE_PAPER):
        problem, C = split.train, _paper.BEST_C[split.name]
        paper.warm_up(problem)
        reference = paper.lower_bound(problem, C, limit, 1e-5)
        found = {name: _walk(problem, C, name, steps, limit) for name in ("CPA", "OCAS")}
        bound = max([reference.dual, *(max(walk["dual"]) for walk in found.values())])
        for name, walk in found.items():
            _add(table, problem.name, C, name, walk, bound)


def _walk(problem: Problem, C: float, name: str, n_steps: int, limit: float) -> dict[str, Any]:
    """The objective and the bound after each step."""
    from softmargin import CPA, OCAS
    from softmargin.data.convert import as_rows
    from softmargin.problems import Hinge
    from softmargin.problems.intercepts import NoIntercept

    began = time.perf_counter()
    hinge = Hinge(as_rows(problem.X), problem.y.astype(np.float64), C, NoIntercept())
    solver: Any = {"CPA": CPA, "OCAS": OCAS}[name]()
    state = solver.init(hinge)
    primal, dual = [], []
    for _ in range(n_steps):
        state = solver.step(hinge, state)
        # `violation` is that of w_t in CPA; its best point so far, `state.primal`, would hide the jumps
        primal.append(state.violation * hinge.scale + state.dual if name == "CPA" else state.primal)
        dual.append(state.dual)
        if time.perf_counter() - began > limit:
            break
    return {"primal": primal, "dual": dual, "seconds": time.perf_counter() - began}


def _add(table: record.Table, data: str, C: float, solver: str, walk: dict[str, Any], bound: float) -> None:
    primal = np.array(walk["primal"])
    ratios = primal[1:] / primal[:-1]
    table.add(
        data=data,
        C=C,
        solver=solver,
        steps=primal.size,
        rises=int((ratios > 1.0 + 1e-12).sum()),
        worst_rise=float(ratios.max(initial=1.0)),
        lowest=float(primal.min() / bound),
        last=float(primal[-1] / bound),
        seconds=walk["seconds"],
        curve_primal=(primal / bound).tolist(),
        curve_dual=(np.array(walk["dual"]) / bound).tolist(),
    )


def _panel(name: str, rows: dict[str, dict[str, Any]]) -> plots.Panel:
    curves = {}
    for solver, row in rows.items():
        steps = np.arange(1, row["steps"] + 1)
        curves[solver] = (steps, row["curve_primal"])
        dual = np.array(row["curve_dual"])
        curves[f"{solver}, bound"] = (steps[dual > 0], dual[dual > 0])
    return plots.Panel(f"{name}, C = {rows['OCAS']['C']:g}", curves)


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    found = _paper.by_name(rows)
    return [
        "Other conditions than the paper's: it does not say on which data its Figure 1 was made; here are the data and "
        "the C of its Table 2.",
        "![the objective step by step](ocas_paper_figure1.png)",
        _paper.claim(
            "the objective of OCAS falls monotonically. It keeps its best point, so that it cannot rise (here: it "
            "falls at half of the steps or more: "
            + ", ".join(f"{name} {changes(row['OCAS'], 'curve_primal')[0]:.0%}" for name, row in found.items())
            + ")",
            {name: changes(row["OCAS"], "curve_primal")[0] >= 0.5 for name, row in found.items()},
        ),
        _paper.claim("that of CPA fluctuates", {name: row["CPA"]["rises"] > 0 for name, row in found.items()}),
        _paper.claim(
            "the lower bound of OCAS rises strictly",
            {name: changes(row["OCAS"], "curve_dual")[1] == 1.0 for name, row in found.items()},
        ),
        "F / the best bound: the objective at w_t (CPA) and at w_b (OCAS), and the bounds F_t(w_t), over the highest "
        "bound of all runs. A step is one plane: one product with X and one with its transpose.",
        _paper.DATA_NOTE,
    ]


def changes(row: dict[str, Any], curve: str) -> tuple[float, float]:
    """The share of the steps at which the curve falls, and at which it rises."""
    steps = np.diff(row[curve])
    return float((steps < 0.0).mean()), float((steps > 0.0).mean())


if __name__ == "__main__":
    main()
