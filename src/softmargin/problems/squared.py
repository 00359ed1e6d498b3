"""The problem of a linear model with squared losses, for coordinate descent.

    R(w) = sum_j |v_j| max(0, z_j (r_j - b))^2,   z_j = sign(v_j),  r_j = t_j - f_j,  f = X w

with v and t of the target (`squared_targets`). R is smooth and piecewise quadratic, also as a function of the intercept
b and of a step k along a line, and so Newton's method finds the best b, or the best k and b together, in a few passes.
Cutting planes would be slow: they bound such a risk by straight lines.
"""

from dataclasses import dataclass
from math import inf

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.kinds import COORDINATES, SMOOTH
from softmargin.core.result import Solution
from softmargin.data.rows import has_row_access
from softmargin.problems.base import LineMinimum
from softmargin.problems.linear import LinearProblem

# Passes of Newton's method. Nearly always ten are enough, because it ends once no hinge changes sides.
_MOST_PASSES = 60
# A step along a line must lower the objective by at least this share of what its slope promises.
_LEAST_SHARE = 1e-4


@dataclass(frozen=True)
class Squared(LinearProblem):
    """Rows and a target with squared losses, `SquaredClasses` or `SquaredTube`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not has_row_access(self.rows):
            raise SoftmarginError(
                "These rows offer products with X only, as those of a store do, but squared losses are minimised by a "
                "solver that visits single rows: load the data into memory, or use the loss that is not squared."
            )

    @property
    def serves(self) -> tuple[str, ...]:
        return (COORDINATES, SMOOTH)

    def risk(self, f: np.ndarray) -> float:
        """R, at the best intercept where that is free."""
        from softmargin.problems import _squared

        r = self._residuals(f)
        return float(_squared.sums(r, r, self.signed_weights, 0.0, self.best_intercept(f))[0])

    def best_intercept(self, f: np.ndarray) -> float:
        """The best b where that is free, and 0 elsewhere."""
        return self._best_intercept(self._residuals(f)) if self.intercept.is_free else 0.0

    def minimise_along(self, f: np.ndarray, df: np.ndarray, A0: float, B0: float) -> LineMinimum:
        """Minimise over k >= 0, and over b if that is free: 1/2 A0 k^2 + B0 k + C R(f + k df)."""
        from softmargin.problems import _squared

        r, is_free = self._residuals(f), self.intercept.is_free
        b = self._best_intercept(r) if is_free else 0.0
        terms = np.array([A0, B0, self.C])
        k = float(_squared.minimise_along(r, df, self.signed_weights, terms, b, is_free, _MOST_PASSES, _LEAST_SHARE))
        return LineMinimum(k, k, k)

    def solution_of(self, w: np.ndarray, f: np.ndarray, beta: np.ndarray) -> Solution:
        """The candidate for the judge: w with its best intercept, and a dual vector."""
        w, b = self.intercept.split(w)
        if self.intercept.is_free:
            b = self._best_intercept(self._residuals(f))
        return Solution(w, b, self._target.dual(self._target.alphas(beta)))

    def _residuals(self, f: np.ndarray) -> np.ndarray:
        return (np.sign(self.signed_weights) if self.targets is None else self.targets) - f

    def _best_intercept(self, r: np.ndarray) -> float:
        """The best b. If some b leaves no loss at all, the middle of all of them, or the end of a half line."""
        from softmargin.problems import _squared

        v = self.signed_weights
        least, most = r.max(where=v > 0.0, initial=-inf), r.min(where=v < 0.0, initial=inf)
        if least <= most:
            if least == -inf or most == inf:
                return float(most if least == -inf else least) if least != -inf or most != inf else 0.0
            return 0.5 * float(least) + 0.5 * float(most)
        return float(_squared.best_intercept(r, v, most, least, _MOST_PASSES))
