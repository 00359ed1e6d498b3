"""The dual of every kernel machine here: a quadratic problem over a box, with one sum fixed.

    min over beta of 1/2 beta'K beta - p'beta + epsilon sum |beta_i|,   lo <= beta <= hi,   sum(beta) = total

K carries no labels, so one cache of kernel rows serves every pair of classes. With f = K beta the decision function is
f + b, and with r = p - f - b the primal value is

    1/2 beta'f + sum_i max(0, hi_i (r_i - epsilon), lo_i (r_i + epsilon)) + b total

p_i - f_i - epsilon sign(beta_i) is the intercept that row i asks for: a row whose beta may rise wants b no smaller, one
whose beta may fall wants it no larger. The largest disagreement is LIBSVM's violation m(alpha) - M(alpha). At
beta_i = 0 a row of regression has a kink: it rises with p_i - f_i - epsilon and falls with p_i - f_i + epsilon.

The kink takes the place of the two variables that a row of regression usually has. One of them is always zero, so that
solvers need vectors of the length of the data only, and no kernel row twice.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from softmargin.core.kinds import BOX
from softmargin.core.result import Solution
from softmargin.core.stopping import NEGLIGIBLE, Measure
from softmargin.core.threads import Workers
from softmargin.kernels.cached import RowStore
from softmargin.problems.kernel_hinge import KernelHinge
from softmargin.problems.row_loss import RowLoss

# Where the optimum can be zero whatever the data (one class), gaps are relative to at least this share of the
# objective at the start.
_FLOOR_SHARE = 1e-6
# Rows on all sides of the origin cancel each other in the objective at the start, and rounding is left of it. It counts
# as at least this share of what it would be if they did not.
_CANCELLED_SHARE = 1e-3
# When the start looks for rows that lie outside, one row in _SAMPLE_SHARE stands for all others, but no more
# than _SAMPLE_ROWS of them: their kernel rows are what the search costs.
_SAMPLE_SHARE, _SAMPLE_ROWS = 32, 64


@dataclass(frozen=True)
class BoxQP:
    """The problem of these kernel rows and this loss: what SMO, blocks, active set and interior points solve.

    Unless it `is_convex`, that is K positive semi-definite, the dual value is no bound, and nan.
    """

    K: RowStore
    loss: RowLoss
    workers: Workers
    is_convex: bool = True
    serves: ClassVar[tuple[str, ...]] = (BOX,)

    @property
    def p(self) -> np.ndarray:
        return self.loss.target

    @property
    def lo(self) -> np.ndarray:
        return self.loss.lo

    @property
    def hi(self) -> np.ndarray:
        return self.loss.hi

    @property
    def total(self) -> float:
        return self.loss.total

    @property
    def epsilon(self) -> float:
        return self.loss.epsilon

    @cached_property
    def kinks(self) -> np.ndarray | None:
        """Which variables may be on either side of zero; None if no variable may."""
        if self.loss.signs is not None:  # a row of a class is on the side of its class
            return None
        kinks = (self.lo < 0.0) & (self.hi > 0.0)
        return kinks if kinks.any() else None

    @cached_property
    def hinge(self) -> KernelHinge:
        """The same machine as cutting planes see it."""
        return KernelHinge.of(self.K, self.loss, self.workers)

    @cached_property
    def scale(self) -> float:
        """What gaps are relative to at least, as a share NEGLIGIBLE of it: see `core.stopping.relative_gap`."""
        if self.loss.is_nonnegative:
            return self.loss.scale_without_model()
        beta, f = self.start
        largest = self.total * float(beta @ np.abs(self.K.diag()))
        size = max(float(beta @ f), _CANCELLED_SHARE * largest)
        return _FLOOR_SHARE / NEGLIGIBLE * 0.5 * (size or 1.0)

    @cached_property
    def unit(self) -> float:
        """How large wishes are: half of the range of the targets, which is 1 for labels.

        Where all targets are the same, it is their size; for one class, whose targets are zero, the mean output at the
        start.
        """
        if self.total:
            beta, f = self.start
            return abs(float(beta @ f)) / self.total or 1.0
        half = 0.5 * float(self.p.max() - self.p.min()) if self.p.size else 0.0
        return half or float(np.abs(self.p).max(initial=0.0)) or 1.0

    @cached_property
    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """A feasible beta and its f = K beta: zero if it may be, otherwise rows at their upper bounds.

        These are the rows that a sample of the others is least similar to. At the optimum the rows that lie outside are
        at their upper bounds, so that most of this choice stays. (LIBSVM takes the first rows.)
        """
        n, total = self.p.size, self.total
        if total == 0.0:
            return np.zeros(n), np.zeros(n)
        size = min(1 + n // _SAMPLE_SHARE, _SAMPLE_ROWS, self.K.capacity)
        sample = np.unique(np.linspace(0, n - 1, size).astype(np.int64))
        self.K.fetch(sample)
        likeness = self.hi[sample] @ self.K.rows(sample).astype(np.float64)
        order = np.argsort(likeness, kind="stable")
        before = np.cumsum(self.hi[order]) - self.hi[order]
        beta = np.zeros(n)
        beta[order] = np.clip(total - before, 0.0, self.hi[order])
        return beta, self.K.product(beta, keep=True)

    def wishes(self, beta: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The intercepts that rows ask for if beta rises, and if it falls: the same array if there is no epsilon."""
        wish = self.p - f
        if self.epsilon == 0.0:
            return wish, wish
        rise = wish - np.where(beta >= 0.0, self.epsilon, -self.epsilon)
        return rise, wish - np.where(beta > 0.0, self.epsilon, -self.epsilon)

    def extremes(self, beta: np.ndarray, f: np.ndarray) -> tuple[float, float]:
        """(m, M): the largest wish to rise over rows with beta < hi, and the least to fall over rows with beta > lo."""
        from softmargin.problems import _box

        return _box.extremes(self.p, self.lo, self.hi, self.epsilon, beta, f)

    def is_free(self, beta: np.ndarray, index: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Which variables are neither at a bound nor at their kink; `beta` are those of `index`."""
        free = (beta > self.lo[index]) & (beta < self.hi[index])
        if self.kinks is not None:
            free &= beta != 0.0
        return free

    def rooms(self, beta: np.ndarray, index: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """How far variables may rise and fall until they meet a bound or zero; `beta` are those of `index`."""
        up, down = self.hi[index] - beta, beta - self.lo[index]
        if self.kinks is None:
            return up, down
        return np.where(beta < 0.0, -beta, up), np.where(beta > 0.0, beta, down)

    def dual(self, beta: np.ndarray, f: np.ndarray) -> float:
        """``p'beta - epsilon sum |beta| - 1/2 beta'f``."""
        value = float(self.p @ beta) - 0.5 * float(beta @ f)
        return value - self.epsilon * float(np.abs(beta).sum()) if self.epsilon else value

    def magnitude(self, beta: np.ndarray, f: np.ndarray) -> float:
        """The size of the terms of the dual value, whose rounding no step can be told from."""
        return max(abs(float(self.p @ beta)), 0.5 * float(beta @ f))

    def primal(self, beta: np.ndarray, f: np.ndarray, b: float) -> float:
        from softmargin.problems import _box

        return self._values(b, *_box.sums(self.p, self.lo, self.hi, self.epsilon, beta, f, b))[0]

    def _values(self, b: float, linear: float, curvature: float, size: float, loss: float) -> tuple[float, float]:
        """The primal value with this intercept, and the dual value, from the sums of `_box.sums`."""
        return 0.5 * curvature + loss + b * self.total, linear - self.epsilon * size - 0.5 * curvature

    def measure(self, beta: np.ndarray, f: np.ndarray) -> Measure:
        """Primal and dual value, and by how much the optimality conditions are violated."""
        from softmargin.problems import _box

        loss = self.loss
        (highest, lowest), b, sums = _box.measured(loss.target, loss.lo, loss.hi, loss.epsilon, beta, f)
        primal, dual = self._values(b, *sums)
        return Measure(primal, dual if self.is_convex else np.nan, self.scale, kkt=max(0.0, highest - lowest))

    def solution(self, beta: np.ndarray, f: np.ndarray) -> Solution:
        """The candidate for the judge."""
        from softmargin.problems import _box

        b = _box.middle(*self.extremes(beta, f))
        return Solution(np.empty(0), b, self.loss.held(self.loss.feasible(beta)))
