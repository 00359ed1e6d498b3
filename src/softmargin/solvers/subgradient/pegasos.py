"""Pegasos: stochastic subgradient steps with projection onto the ball that holds the optimum.

    min over w of lambda/2 |w|^2 + 1/n sum_i max(0, 1 - y_i w.x_i),   lambda = 1 / (C sum(s))

    for t = 1, 2, ...:
        draw a row i
        w = (1 - 1/t) w,   and   w = w + y_i x_i / (lambda t)   if y_i w.x_i < 1 before
        w = min(1, 1 / (sqrt(lambda) |w|)) w

Reference: S. Shalev-Shwartz, Y. Singer, N. Srebro, Pegasos: Primal Estimated sub-GrAdient SOlver for SVM, ICML 2007,
Figure 1 with k = 1. The budget of 100 / lambda steps is that of the experiments in V. Franc, S. Sonnenburg, Optimized
Cutting Plane Algorithm for Support Vector Machines, ICML 2008, Section 4.1.

Symbols: t -> visits; lambda eta_t -> share (`_epoch.py`).

Departs from the paper: rows are drawn with a chance in proportion to their weight s_i; the best point of those measured
after each epoch is returned, not the last one. A free intercept (the paper has none) stays 0 in the first epoch, whose
steps are too long for it, then begins at its best value and takes the steps of w, neither shrunk nor projected; the
best intercept replaces it in the end.
"""

import math
from dataclasses import dataclass

import numpy as np

from softmargin.problems.base import RowProblem
from softmargin.solvers.subgradient.state import Schedule, SubgradientSolver, positive_integer

# Steps in units of 1 / lambda, if their number is not given.
STEPS_TIMES_LAMBDA = 100


@dataclass(frozen=True)
class Pegasos(SubgradientSolver):
    """Stochastic subgradient descent with projections: approximate, and certified all the same.

    Parameters
    ----------
    iterations : int or None
        Rows drawn in all; None is 100 / lambda = 100 C sum(s), which is 100 C passes over the data.
    projection : bool
        Whether w is put back into the ball of radius 1 / sqrt(lambda) after each step.
    seed : int or None
        Of the random order; None is LinearSVC's random_state, or a new one in each fit.
    stopping : "relative_gap" or "epsilon"
        What `tol` is compared with after each pass: (P - D) / P, or (P - D) / (C sum(s)).
    """

    iterations: int | None = None
    projection: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.iterations is not None:
            positive_integer(self.iterations, "iterations")

    def budget(self, problem: RowProblem, n_present: int) -> int:
        return int(self.iterations or math.ceil(STEPS_TIMES_LAMBDA * problem.scale))

    def schedule(self, problem: RowProblem, present: np.ndarray) -> Schedule:
        return Schedule(radius=math.sqrt(problem.scale) if self.projection else math.inf, b_waits=True)

    def epoch(self, v: np.ndarray, present: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        weights = np.abs(v[present])
        if weights.min() == weights.max():
            drawn = random.integers(present.size, size=present.size)
        else:
            filled = np.cumsum(weights)
            drawn = filled.searchsorted(random.random(present.size) * filled[-1], side="right")
            drawn = np.minimum(drawn, present.size - 1)  # a product that was rounded up
        rows = present[drawn]
        return rows, np.sign(v[rows])
