"""SGD: stochastic gradient descent as in svmsgd2, and its averaged form.

    min over w of lambda/2 |w|^2 + 1/n sum_i max(0, 1 - y_i w.x_i),   lambda = 1 / (C sum(s))

    for t = 1, 2, ...:  (in each epoch every row once, in a new random order)
        eta = 1 / (lambda (t0 + t))
        w = w + eta y_i x_i   if y_i w.x_i < 1
        w = (1 - skip lambda eta) w   in every skip-th step

t0 makes the first step as long as a typical w: eta_0 = lambda^(-1/4), the root of the greatest length that the optimum
can have. skip is 16 times the number of features over the mean number of entries in a row.

Averaged: eta = eta_0 (1 + lambda eta_0 t)^(-3/4), w is shrunk in every step before the update, and the result is the
mean of all points from the second epoch on. eta_0 = 1 / (mean |x_i|^2): the first steps move the output of their row
by about 1.

References: L. Bottou, svmsgd2 (Stochastic Gradient Descent, version 1.1, 2007), the program in the experiments of
V. Franc, S. Sonnenburg, Optimized Cutting Plane Algorithm for Support Vector Machines, ICML 2008, with 10 epochs.
Averaged: B. Polyak, A. Juditsky, Acceleration of Stochastic Approximation by Averaging, 1992; W. Xu, Towards Optimal
One Pass Large Scale Learning with Averaged Stochastic Gradient Descent, 2011; L. Bottou, svmasgd (version 2, 2011).

Departs from the programs: they visit the rows in the order of the file, svmasgd finds eta_0 by trial; a weight s_i
scales the step by s_i / mean(s); t0 is at least 1; skip is at most the number of rows, and counts on from epoch to
epoch; the best point of those measured after each epoch is returned, not the last one. A free intercept takes the steps
of w times svmsgd2's factor, half the greatest mean |x_j| of a feature, is not averaged, and the best intercept replaces
it in the end. What is said about features and entries is measured on about 1000 rows, of the columns that are given:
those of wide sparse data may be merged ones.
"""

from dataclasses import dataclass

import numpy as np

from softmargin.problems.base import RowProblem
from softmargin.solvers.subgradient.state import Schedule, SubgradientSolver, positive_integer

SAMPLE_ROWS = 1000


@dataclass(frozen=True)
class SGD(SubgradientSolver):
    """Stochastic gradient descent over a few epochs: approximate, and certified all the same.

    Parameters
    ----------
    epochs : int
        Passes over the data, each in a new random order.
    average : bool
        Whether the result is the mean of the points from the second epoch on.
    seed : int or None
        Of the random orders; None is LinearSVC's random_state, or a new one in each fit.
    stopping : "relative_gap" or "epsilon"
        What `tol` is compared with after each epoch: (P - D) / P, or (P - D) / (C sum(s)).
    """

    epochs: int = 10
    average: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_integer(self.epochs, "epochs")

    @property
    def averages(self) -> bool:
        return self.average

    def budget(self, problem: RowProblem, n_present: int) -> int:
        return int(self.epochs) * n_present

    def schedule(self, problem: RowProblem, present: np.ndarray) -> Schedule:
        from softmargin.solvers.subgradient import _epoch

        sample = present[:: -(-present.size // SAMPLE_ROWS)]
        flat, place = problem.rows_at(sample)
        sums = np.zeros(flat.n_cols)
        entries, squares = _epoch.add_magnitudes(flat, place, sums)
        b_gain = 0.5 * float(sums.max(initial=0.0)) / sample.size
        if self.average:
            return Schedule(t0=max(1.0, problem.scale * squares / sample.size), power=0.75, b_gain=b_gain)
        skip = 16 * sample.size * flat.n_cols / max(entries, 1)
        skip = max(1, min(int(skip), present.size))
        return Schedule(t0=max(1.0, problem.scale**0.75), skip=skip, b_gain=b_gain)

    def epoch(self, v: np.ndarray, present: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        rows = random.permutation(present)
        return rows, v[rows] / np.abs(v[present]).mean()
