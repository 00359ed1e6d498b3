"""The solvers in the experiments of the OCAS paper: each with its stop rule, a limit of time, and what it counts.

OCAS, CPA        (F - F_t) / (C n) <= 1e-3, Section 4.1 of the paper
BMRM             the planes of CPA, until (F - F_t) / F <= 1e-3
SGD              10 epochs
Pegasos          100 / lambda = 100 C n steps
LIBLINEAR        scikit-learn's LinearSVC, tol = 0.1, which is the program's own default
SGDClassifier    10 epochs, alpha = 1 / (C n)

C multiplies the sum of the losses, and so does the C that the paper's tables speak of (its C_light); the C of its
equations is C n. There is no intercept. All run with one thread unless they are told otherwise.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.datasets import Problem
from benchmarks.objective import Score
from benchmarks.solvers import linear
from benchmarks.solvers.linear import Fit

EPSILON = 1e-3
EPOCHS = 10
LIBLINEAR_TOL = 0.1
SHORT = 5.0  # seconds: a fit that takes longer is not repeated


@dataclass(frozen=True)
class Run:
    """One fit: `iterations` are planes, epochs, or single steps (Pegasos); `ended` says what ended it."""

    fit: Fit
    iterations: int
    ended: str

    @property
    def was_cut(self) -> bool:
        return self.ended.startswith("cut")


def ocas(problem: Problem, C: float, limit: float, **parameters: Any) -> Run:
    from softmargin import OCAS

    return _ours(problem, C, limit, {"solver": OCAS(stopping="epsilon"), "tol": EPSILON} | parameters)


def cpa(problem: Problem, C: float, limit: float, **parameters: Any) -> Run:
    from softmargin import CPA

    return _ours(problem, C, limit, {"solver": CPA(stopping="epsilon"), "tol": EPSILON} | parameters)


def bmrm(problem: Problem, C: float, limit: float) -> Run:
    """The same planes as CPA, with BMRM's stop: a relative gap of 1e-3."""
    from softmargin import CPA

    return _ours(problem, C, limit, {"solver": CPA(), "tol": EPSILON})


def coordinate_descent(problem: Problem, C: float, limit: float) -> Run:
    """Ours, at the stop rule of OCAS; its iterations are passes over the data."""
    from softmargin import CoordinateDescent

    run = _ours(problem, C, limit, {"solver": CoordinateDescent(stopping="epsilon"), "tol": EPSILON})
    return Run(run.fit, int(run.fit.model.trace_["passes"][-1]), run.ended)


def sgd(problem: Problem, C: float, limit: float, epochs: int = EPOCHS) -> Run:
    from softmargin import SGD

    return _ours(problem, C, limit, {"solver": SGD(epochs), "tol": 0.0})


def pegasos(problem: Problem, C: float, limit: float) -> Run:
    from softmargin import Pegasos

    run = _ours(problem, C, limit, {"solver": Pegasos(), "tol": 0.0})
    n = problem.X.shape[0]
    return Run(run.fit, min(run.iterations * n, round(100 * C * n)), run.ended)


def liblinear(problem: Problem, C: float, limit: float, tol: float = LIBLINEAR_TOL) -> Run:
    """It knows no limit of time, so its iterations are limited by what the first ones take.

    Later ones are often cheaper: if that ends it in less than half of the time, it is run again with twice as many.
    """
    one, few = (linear.liblinear(problem, C, tol, max_iter).seconds for max_iter in (1, 4))
    most = max(10, int(3 * limit / max(few - one, 1e-6)))
    fit = linear.liblinear(problem, C, tol, most)
    while fit.model.n_iter_ >= most and fit.seconds < limit / 2:
        most *= 2
        fit = linear.liblinear(problem, C, tol, most)
    count = int(fit.model.n_iter_)
    return Run(fit, count, f"cut after {count} iterations" if count >= most else "tolerance")


def sgd_classifier(problem: Problem, C: float, limit: float, epochs: int = EPOCHS) -> Run:
    """It always does its few epochs; `limit` is there for the signature."""
    return Run(linear.sgd_classifier(problem, C, epochs), epochs, "budget")


SOLVERS: dict[str, Callable[..., Run]] = {
    "OCAS": ocas,
    "CPA": cpa,
    "BMRM": bmrm,
    "LIBLINEAR": liblinear,
    "SGD": sgd,
    "Pegasos": pegasos,
    "SGDClassifier": sgd_classifier,
}
ACCURATE = ("OCAS", "CPA", "LIBLINEAR")  # they solve the problem to a tolerance; the others end after a budget


def warm_path(problem: Problem, grid: Sequence[float], limit: float) -> Iterable[Run]:
    """OCAS for one C after the other, each from the planes of the one before. Look at a run before the next is made."""
    from softmargin import LinearSVC

    model, before = LinearSVC(warm_start=True), 0
    for C in grid:
        run = ocas(problem, C, limit, model=model)
        yield Run(run.fit, run.iterations - before, run.ended)
        before = run.iterations


def lower_bound(problem: Problem, C: float, limit: float, tol: float) -> Score:
    """Primal value and bound of OCAS at a relative gap far below what the experiments ask for."""
    return _ours(problem, C, limit, {"solver": "ocas", "tol": tol, "n_jobs": -1}).fit.score


def warm_up(problem: Problem) -> None:
    """Compiles, so that no measured fit does."""
    for solver in ("ocas", "cpa", "sgd", "pegasos"):
        linear.softmargin(problem, 1.0, solver=solver, tol=0.0, max_iter=1, judge=False)


def alternate(runs: Mapping[str, Callable[[], Run]], repeats: int) -> dict[str, list[Run]]:
    """Each of `runs` in turn, `repeats` times round; what took long the first time is left at that."""
    found: dict[str, list[Run]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            if not found[name] or found[name][0].fit.seconds < SHORT:
                found[name].append(run())
    return found


def median_seconds(runs: Iterable[Run]) -> float:
    return median(run.fit.seconds for run in runs)


def _ours(problem: Problem, C: float, limit: float, parameters: dict[str, Any]) -> Run:
    fit = linear.softmargin(problem, C, max_seconds=limit, random_state=0, **parameters)
    endings = {"OPTIMAL": "tolerance", "BUDGET": "budget", "MAX_SECONDS": f"cut at {limit:g} s"}
    name = fit.model.status_.name
    return Run(fit, fit.model.n_iter_, endings.get(name, name))
