"""The loss of a kernel machine, row by row, in the numbers that the user gave.

    C sum_i [ over_i max(0, t_i - epsilon - f_i - b) + under_i max(0, f_i + b - t_i - epsilon) ]  +  b total

The first part of a row costs where the decision value f_i + b is too small for its target t_i, the second where it is
too large. Three machines are made of it:

    classification    t = y = +-1, epsilon = 0, total = 0. A positive row has over = s, a negative row under = s.
    regression        t = y, over = under = s, total = 0
    one class         t = 0, over = s, C = 1, total = nu sum(s). The threshold of scikit-learn's offset_ is -b.

The dual variables of the rows, beta_i, lie between -C under_i and C over_i, and their sum is `total`. A row with both
parts has one variable, which costs epsilon |beta_i|: that is the usual pair of variables of regression, of which never
both differ from zero at the optimum.

The solver works with the rounded products C s. The judge needs vectors that are feasible in real arithmetic; those come
from `feasible`, which both use, so that what a solver hands over is judged as it is.
"""

from dataclasses import dataclass
from functools import cached_property
from math import fsum

import numpy as np

from softmargin.problems.feasible import boxed, exact_total, filled


@dataclass(frozen=True)
class RowLoss:
    """Targets, weights and parameters of the rows. `nu` is zero unless there is one class.

    `signs` are the labels of classification: its solutions hold ``alpha = |beta|``. Without them they hold beta itself.
    """

    target: np.ndarray
    over: np.ndarray
    under: np.ndarray
    C: float = 1.0
    epsilon: float = 0.0
    nu: float = 0.0
    signs: np.ndarray | None = None

    @classmethod
    def classification(cls, signed_weights: np.ndarray, C: float) -> "RowLoss":
        """`signed_weights` are s_i y_i; a row whose weight is zero takes no part."""
        signs = np.sign(signed_weights)
        return cls(signs, np.maximum(signed_weights, 0.0), np.maximum(-signed_weights, 0.0), C, signs=signs)

    @classmethod
    def regression(cls, y: np.ndarray, weights: np.ndarray, C: float, epsilon: float) -> "RowLoss":
        """Deviations of up to `epsilon` from y are free."""
        return cls(np.asarray(y, dtype=np.float64), weights, weights, C, epsilon)

    @classmethod
    def one_class(cls, weights: np.ndarray, nu: float) -> "RowLoss":
        """About the share `nu` of the weight may lie outside, 0 < nu <= 1."""
        return cls(np.zeros(weights.size), weights, np.zeros(weights.size), nu=nu)

    @property
    def is_nonnegative(self) -> bool:
        """Whether zero is a lower bound of the objective. It is none where a multiple of b is part of it."""
        return self.nu == 0.0

    @cached_property
    def lo(self) -> np.ndarray:
        return 0.0 - self.C * self.under

    @cached_property
    def hi(self) -> np.ndarray:
        return self.C * self.over

    @cached_property
    def total(self) -> float:
        """What the variables sum to, rounded; `feasible` works with the exact product nu sum(s)."""
        return self.nu * fsum(self.over.tolist()) if self.nu else 0.0

    @cached_property
    def _exact_total(self) -> tuple[float, ...]:
        return exact_total(self.over, self.nu)

    def signed(self, alpha: np.ndarray) -> np.ndarray:
        """beta, from what a solution holds."""
        alpha = np.asarray(alpha, dtype=np.float64)
        return alpha if self.signs is None else self.signs * alpha

    def held(self, beta: np.ndarray) -> np.ndarray:
        """What a solution holds, from beta."""
        return beta if self.signs is None else np.abs(beta)

    def feasible(self, beta: np.ndarray) -> np.ndarray:
        """beta in its box and with the right sum, exactly, in real arithmetic; one class: with at least that sum.

        That is enough, see `problems.feasible`. What is not a number becomes zero.
        """
        if self.nu:
            given = np.nan_to_num(np.asarray(beta, dtype=np.float64))
            return filled(np.clip(given, 0.0, self.over), self.over, self._exact_total)
        return boxed(beta, self.C, self.over, self.under)

    def scale_without_model(self) -> float:
        """A typical size of the objective, where losses are not negative; it is positive unless all weights are zero.

        For classes this is the objective at beta = 0 and b = 0. For numbers it is
        ``C sum_i s_i max(|y_i - b|, epsilon)`` at the best b, which is the objective at beta = 0 if the tube were
        without width: the objective itself is zero there if all numbers fit into the tube. If all of them are the same
        and epsilon is zero, their size counts.
        """
        weights = self.over + self.under
        if self.signs is not None:
            return self.C * float(weights.sum())
        if not weights.size:
            return 0.0
        order = np.argsort(self.target, kind="stable")
        sums = np.cumsum(weights[order])
        median = self.target[order[np.searchsorted(sums, 0.5 * sums[-1])]]
        weights = 0.5 * weights  # a row loses on one side only
        found = self.C * float(weights @ np.maximum(np.abs(self.target - median), self.epsilon))
        return found or self.C * float(weights @ np.abs(self.target)) or self.C * float(weights.sum())
