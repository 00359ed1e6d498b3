"""The hinge risk of a linear model, as cutting planes see it: classification, regression and one-class.

    R(w) = sum_j max(0, v_j (t_j - f_j - b)) + b total,   f = X w

with v, t and total of the target (`hinge_targets`) and the intercept b of `intercepts`. For two classes a hinge is
max(0, |v_i| - v_i (f_i + b)).

A plane of R has coefficients c_j = -v_j pi_j with pi in [0, 1] and the constant sum_j v_j pi_j t_j; if the intercept is
free, sum_j v_j pi_j = total. Its witness is one bit a hinge plus at most one fractional hinge, and
alpha = |v| * sum_j gamma_j pi_j is a dual vector.

Reference: V. Franc, S. Sonnenburg, Optimized Cutting Plane Algorithm for Support Vector Machines, ICML 2008, eq. (2),
(5) and Appendix A. Departs from the paper: weights, a free intercept, targets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

import numpy as np

from softmargin.core.kinds import COORDINATES, PLANES, SINGLE_ROWS
from softmargin.core.result import Solution
from softmargin.data.rows import has_row_access
from softmargin.problems import fixed_intercept, free_intercept
from softmargin.problems.base import Hint, LineMinimum, Pattern, PlaneAlong
from softmargin.problems.hinges import Hinges
from softmargin.problems.linear import LinearProblem


@dataclass(frozen=True)
class ActiveHinges:
    """The witness of a plane: pi, as a bit for each hinge and one hinge whose pi is a fraction (row = -1: none)."""

    bits: np.ndarray
    row: int
    fraction: float


@dataclass(frozen=True)
class Hinge(LinearProblem):
    """The problem of a linear SVM with hinge losses, for every kind of linear solver."""

    @property
    def serves(self) -> tuple[str, ...]:
        """Planes need products only, all other solvers single rows; SGD and Pegasos know two classes only."""
        if not has_row_access(self.rows):
            return (PLANES,)
        return (PLANES, COORDINATES, SINGLE_ROWS) if self.targets is None else (PLANES, COORDINATES)

    @cached_property
    def hinges(self) -> Hinges:
        target = self._target
        return Hinges(target.v, self.workers, 1.0 if target.t is None else 0.0, target.total)

    @property
    def lowest(self) -> float:
        return self._target.lowest

    def slope(self, c: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        fold = self._target.fold
        a = self.rows.t_dot(fold(c), None if before is None else fold(before))
        if not self.intercept.feature:
            return a
        return self.intercept.extended(a, float(c.sum()) - (0.0 if before is None else float(before.sum())))

    def risk(self, f: np.ndarray) -> float:
        f = self.shifted(f)
        if self.intercept.is_free:
            return free_intercept.best_intercept(f, self.hinges)[1]
        return fixed_intercept.risk(f, self.hinges)

    def pattern(self, f: np.ndarray) -> Pattern:
        return self._follow(self.shifted(f), f, LineMinimum(0.0, 0.0, 0.0), 0.0, np.empty(0))[1]

    def follow(
        self, f: np.ndarray, df: np.ndarray, to: LineMinimum, k_plane: float
    ) -> tuple[np.ndarray, float, Pattern]:
        if self.targets is None:
            f_new = np.empty(self.n_outputs)
            return f_new, *self._follow(f, df, to, k_plane, f_new)
        return f + to.k * df, *self._follow(self.shifted(f), df, to, k_plane, np.empty(0))

    def _follow(
        self, f: np.ndarray, df: np.ndarray, to: LineMinimum, k_plane: float, f_new: np.ndarray
    ) -> tuple[float, Pattern]:
        """The risk at f + k df and the plane at f + k_plane df, for outputs less targets; f_new takes f + k df."""
        hinges = self.hinges
        c, bits = np.empty(self.n_outputs), np.empty(-(-self.n_outputs // 8), dtype=np.uint8)
        row, fraction = -1, 0.0
        if self.intercept.is_free:
            known = to.hint
            if known is None:
                known, _ = free_intercept.best_intercept(f + to.k * df, hinges)
            risk, size, row, fraction = free_intercept.follow(f, df, hinges, to.k, known, k_plane, f_new, c, bits)
        else:
            risk, size = fixed_intercept.follow(f, df, hinges, to.k, k_plane, f_new, c, bits)
        constant = size if self.targets is None else -float(c @ self.targets)
        return risk, Pattern(c, constant, ActiveHinges(bits, row, fraction))

    def minimise_along(
        self,
        f: np.ndarray,
        df: np.ndarray,
        A0: float,
        B0: float,
        hint: Hint | None = None,
        plane: PlaneAlong | None = None,
    ) -> LineMinimum:
        f = self.shifted(f)
        if self.intercept.is_free:
            return LineMinimum(*free_intercept.minimise_along(f, df, self.hinges, A0, B0, self.C, hint, plane))
        k = fixed_intercept.minimise_along(f, df, self.hinges, A0, B0, self.C)
        return LineMinimum(k, k, k)

    def coefficients(self, witnesses: Sequence[ActiveHinges], weights: np.ndarray) -> np.ndarray:
        return -self.signed_weights * self.activity(witnesses, weights)

    def solution(
        self, w: np.ndarray, f: np.ndarray, witnesses: Sequence[ActiveHinges], weights: np.ndarray
    ) -> Solution:
        alpha = np.abs(self.signed_weights) * self.activity(witnesses, weights)
        w, b = self.intercept.split(w)
        if self.intercept.is_free:
            b = self._best_intercept(f)
        return Solution(w, b, self._target.dual(alpha))

    def solution_of(self, w: np.ndarray, f: np.ndarray, beta: np.ndarray) -> Solution:
        """The candidate with signed dual variables of the rows, in place of planes."""
        return replace(self.solution(w, f, (), np.empty(0)), alpha=self._target.dual(self._target.alphas(beta)))

    def _best_intercept(self, f: np.ndarray) -> float:
        """The best b. If some b leaves no loss at all, the middle of all of them, which rounding cannot turn into one.

        Rounded sums of weights do not tell such an interval from its ends. That matters where the optimum may be zero:
        a tube that holds all numbers.
        """
        f = self.shifted(f)
        if self.targets is not None and self.lowest == 0.0:
            v = self.signed_weights
            least, most = (-f).max(where=v > 0.0, initial=-inf), (-f).min(where=v < 0.0, initial=inf)
            if -inf < least <= most < inf:
                return 0.5 * float(least) + 0.5 * float(most)
        return free_intercept.best_intercept(f, self.hinges)[0].b

    def activity(self, witnesses: Sequence[ActiveHinges], weights: np.ndarray) -> np.ndarray:
        """sum_j weights_j pi_j."""
        from softmargin.problems import _witness

        out = np.zeros(-(-self.n_outputs // 8) * 8)
        for witness, weight in zip(witnesses, weights, strict=True):
            if weight != 0.0:
                _witness.add_bits(witness.bits, weight, _witness.BYTE_BITS, out)
                if witness.row >= 0:
                    out[witness.row] += weight * witness.fraction
        return out[: self.n_outputs]
