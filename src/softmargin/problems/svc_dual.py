"""The dual of the kernel support vector machine, in signed variables beta_i = y_i alpha_i.

    min 1/2 beta'K beta - y'beta,   0 <= y_i beta_i <= C s_i,   sum(beta) = 0

With f = K beta the decision function is f + b, the primal value 1/2 beta'f + C sum_i s_i max(0, 1 - y_i (f_i + b)), and
y_i - f_i is the intercept that row i asks for: rows whose beta may grow want b no smaller, those whose beta may fall no
larger. The largest disagreement is LIBSVM's violation m(alpha) - M(alpha).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from softmargin.core.result import Solution
from softmargin.core.stopping import Measure
from softmargin.core.threads import Workers
from softmargin.kernels.cached import RowStore
from softmargin.problems.certificate import feasible


@dataclass(frozen=True)
class SVCDual:
    """See `problems.base.DualQP`. `signed_weights` are s_i y_i; none of them is zero.

    Unless the problem `is_convex`, that is K positive semi-definite, the dual value is no bound, and nan.
    """

    K: RowStore
    signed_weights: np.ndarray
    C: float
    workers: Workers
    is_convex: bool = True
    total: float = 0.0

    @cached_property
    def p(self) -> np.ndarray:
        return np.sign(self.signed_weights)

    @cached_property
    def lo(self) -> np.ndarray:
        return np.minimum(0.0, self.C * self.signed_weights)

    @cached_property
    def hi(self) -> np.ndarray:
        return np.maximum(0.0, self.C * self.signed_weights)

    @cached_property
    def scale(self) -> float:
        return self.C * float(np.abs(self.signed_weights).sum())

    def measure(self, beta: np.ndarray, f: np.ndarray) -> Measure:
        highest, lowest = self._wishes(beta, f)
        b = _middle(highest, lowest)
        curvature = float(beta @ f)
        margins = self.signed_weights * (f + b)
        loss = float(np.maximum(0.0, np.abs(self.signed_weights) - margins).sum())
        return Measure(
            primal=0.5 * curvature + self.C * loss,
            dual=float(self.p @ beta) - 0.5 * curvature if self.is_convex else np.nan,
            scale=self.scale,
            kkt=max(0.0, highest - lowest),
        )

    def solution(self, beta: np.ndarray, f: np.ndarray) -> Solution:
        alpha = feasible(np.abs(beta), self.signed_weights, self.C, free_intercept=True)
        return Solution(np.empty(0), _middle(*self._wishes(beta, f)), alpha)

    def _wishes(self, beta: np.ndarray, f: np.ndarray) -> tuple[float, float]:
        """The largest intercept that a beta which may grow asks for, and the least of those which may fall."""
        wish = self.p - f
        highest = np.where(beta < self.hi, wish, -np.inf).max(initial=-np.inf)
        lowest = np.where(beta > self.lo, wish, np.inf).min(initial=np.inf)
        return float(highest), float(lowest)


def _middle(highest: float, lowest: float) -> float:
    """The intercept between two wishes; one that is not there does not count."""
    if np.isfinite(highest) and np.isfinite(lowest):
        return 0.5 * (highest + lowest)
    return highest if np.isfinite(highest) else lowest if np.isfinite(lowest) else 0.0
