"""Squared losses: the same targets as `hinge_targets`, each hinge squared.

    P(w, b) = 1/2 |w|^2 + C sum_j |v_j| max(0, sign(v_j) (t_j - f_j - b))^2

    SquaredClasses    s_i max(0, 1 - y_i (f_i + b))^2              scikit-learn's squared_hinge
    SquaredTube       s_i max(0, |y_i - f_i - b| - e)^2            scikit-learn's squared_epsilon_insensitive

In the dual the variables have no upper limit, and instead each costs something. That is the conjugate of the square:

    phi_i(beta_i) = (phi of the hinge) - 1/2 ridge_i beta_i^2,    ridge_i = 1 / (2 C s_i)

At the optimum |beta_i| = 2 C s_i times the hinge of the row.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from softmargin.data.rows import Products
from softmargin.linalg.rounding import above, below
from softmargin.problems.base import Coordinates
from softmargin.problems.bracket import Bound, Side
from softmargin.problems.hinge_targets import Tube, TwoClasses, exact_sum
from softmargin.problems.intercepts import Intercept

# A ridge is at most the inverse of this, so that products with it are finite numbers.
_LEAST_COST = 2.0**-1000


class _Squared:
    """What changes if the hinges of a target, which comes next in the order of the bases, are squared."""

    # Of the rows, not negative.
    row_weights: Any

    @property
    def is_squared(self) -> bool:
        return True

    def sides(self, b: float, C: float) -> list[Side]:
        return [replace(side, is_squared=True) for side in super().sides(b, C)]  # type: ignore[misc]

    def _in_range(self, size: np.ndarray, weights: np.ndarray, C: float) -> np.ndarray:
        return np.where((size > 0.0) & (size < inf) & (weights > 0.0), size, 0.0)

    def coordinates(self, C: float) -> Coordinates:
        given: Coordinates = super().coordinates(C)  # type: ignore[misc]
        return replace(
            given,
            lo=np.where(given.lo < 0.0, -inf, 0.0),
            hi=np.where(given.hi > 0.0, inf, 0.0),
            ridge=1.0 / np.maximum(2.0 * C * self.row_weights, _LEAST_COST),
        )

    def linear(self, beta: np.ndarray, C: float) -> Bound:
        """Every term of the ridge is rounded up, four times, and their sum is exact."""
        plain: Bound = super().linear(beta, C)  # type: ignore[misc]
        used = np.flatnonzero(beta)
        size = np.abs(beta[used])
        with np.errstate(divide="ignore", over="ignore"):
            ratio = np.nextafter(size / np.nextafter(C * self.row_weights[used], 0.0), inf)
            price = 0.25 * exact_sum(np.nextafter(size * ratio, inf))
        return Bound(plain.value - price, below(plain.bound - above(above(price))))


@dataclass(frozen=True)
class SquaredClasses(_Squared, TwoClasses):
    """Labels -1 and 1 with weights, as signed weights v_i = s_i y_i; a row loses the square of its hinge."""

    @property
    def row_weights(self) -> np.ndarray:
        return np.abs(self.v)


@dataclass(frozen=True)
class SquaredTube(_Squared, Tube):
    """Numbers y with weights: a row loses the square of what its output is further than epsilon from its number."""

    @property
    def row_weights(self) -> np.ndarray:
        return self.weights

    def scale(self, rows: Products, C: float, intercept: Intercept) -> float:
        """As for the hinges, with squares: ``C sum_i s_i max(|y_i - b|, epsilon)^2``; a free b is the mean."""
        total = float(self.weights.sum())
        mean = float(self.weights @ self.y) / total if intercept.is_free and total > 0.0 else 0.0
        sizes = np.maximum(np.abs(self.y - mean), self.epsilon)
        found = C * float(self.weights @ (sizes * sizes))
        return found or C * float(self.weights @ (self.y * self.y)) or C * total
