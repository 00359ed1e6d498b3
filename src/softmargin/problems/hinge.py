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
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.kinds import COORDINATES, PLANES, SINGLE_ROWS
from softmargin.core.result import Solution
from softmargin.core.threads import Workers
from softmargin.data.rows import Flat, Products, has_row_access
from softmargin.problems import fixed_intercept, free_intercept
from softmargin.problems.base import Coordinates, Hint, LineMinimum, Pattern, PlaneAlong
from softmargin.problems.hinge_targets import HingeTarget, as_target
from softmargin.problems.hinges import Hinges
from softmargin.problems.intercepts import Free, Intercept


@dataclass(frozen=True)
class ActiveHinges:
    """The witness of a plane: pi, as a bit for each hinge and one hinge whose pi is a fraction (row = -1: none)."""

    bits: np.ndarray
    row: int
    fraction: float


@dataclass(frozen=True)
class Hinge:
    """The problem of a linear SVM: rows, and what is to be learnt from them.

    An array as target stands for the signed weights v = s * y of two classes.
    """

    rows: Products
    target: HingeTarget | np.ndarray
    C: float
    intercept: Intercept = field(default_factory=Free)
    workers: Workers = field(default_factory=Workers)

    @property
    def serves(self) -> tuple[str, ...]:
        """Planes need products only, all other solvers single rows; SGD and Pegasos know two classes only."""
        if not has_row_access(self.rows):
            return (PLANES,)
        return (PLANES, COORDINATES, SINGLE_ROWS) if self.targets is None else (PLANES, COORDINATES)

    def __post_init__(self) -> None:
        self._target.check(self.C, self.intercept)

    @cached_property
    def _target(self) -> HingeTarget:
        return as_target(self.target)

    @cached_property
    def _hinges(self) -> Hinges:
        target = self._target
        return Hinges(target.v, self.workers, 1.0 if target.t is None else 0.0, target.total)

    @property
    def signed_weights(self) -> np.ndarray:
        return self._target.v

    @property
    def targets(self) -> np.ndarray | None:
        return self._target.t

    @property
    def lowest(self) -> float:
        return self._target.lowest

    @property
    def n_rows(self) -> int:
        return self._target.n_rows

    @property
    def n_outputs(self) -> int:
        return self._target.v.size

    @cached_property
    def coordinates(self) -> Coordinates:
        return self._target.coordinates(self.C)

    @property
    def n_weights(self) -> int:
        return self.rows.n_cols + self.intercept.n_weights

    @cached_property
    def scale(self) -> float:
        return self._target.scale(self.rows, self.C, self.intercept)

    def outputs(self, w: np.ndarray) -> np.ndarray:
        w, b = self.intercept.split(w)
        f = self.rows.dot(w)
        if self.intercept.feature:
            f += b
        return self._target.spread(f)

    def slope(self, c: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        fold = self._target.fold
        a = self.rows.t_dot(fold(c), None if before is None else fold(before))
        if not self.intercept.feature:
            return a
        return self.intercept.extended(a, float(c.sum()) - (0.0 if before is None else float(before.sum())))

    def risk(self, f: np.ndarray) -> float:
        f = self._shifted(f)
        if self.intercept.is_free:
            return free_intercept.best_intercept(f, self._hinges)[1]
        return fixed_intercept.risk(f, self._hinges)

    def pattern(self, f: np.ndarray) -> Pattern:
        return self._follow(self._shifted(f), f, LineMinimum(0.0, 0.0, 0.0), 0.0, np.empty(0))[1]

    def follow(
        self, f: np.ndarray, df: np.ndarray, to: LineMinimum, k_plane: float
    ) -> tuple[np.ndarray, float, Pattern]:
        if self.targets is None:
            f_new = np.empty(self.n_outputs)
            return f_new, *self._follow(f, df, to, k_plane, f_new)
        return f + to.k * df, *self._follow(self._shifted(f), df, to, k_plane, np.empty(0))

    def _follow(
        self, f: np.ndarray, df: np.ndarray, to: LineMinimum, k_plane: float, f_new: np.ndarray
    ) -> tuple[float, Pattern]:
        """The risk at f + k df and the plane at f + k_plane df, for outputs less targets; f_new takes f + k df."""
        hinges = self._hinges
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
        f = self._shifted(f)
        if self.intercept.is_free:
            return LineMinimum(*free_intercept.minimise_along(f, df, self._hinges, A0, B0, self.C, hint, plane))
        k = fixed_intercept.minimise_along(f, df, self._hinges, A0, B0, self.C)
        return LineMinimum(k, k, k)

    def coefficients(self, witnesses: Sequence[ActiveHinges], weights: np.ndarray) -> np.ndarray:
        return -self.signed_weights * self._activity(witnesses, weights)

    def solution(
        self, w: np.ndarray, f: np.ndarray, witnesses: Sequence[ActiveHinges], weights: np.ndarray
    ) -> Solution:
        alpha = np.abs(self.signed_weights) * self._activity(witnesses, weights)
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
        f = self._shifted(f)
        if self.targets is not None and self.lowest == 0.0:
            v = self.signed_weights
            least, most = (-f).max(where=v > 0.0, initial=-inf), (-f).min(where=v < 0.0, initial=inf)
            if -inf < least <= most < inf:
                return 0.5 * float(least) + 0.5 * float(most)
        return free_intercept.best_intercept(f, self._hinges)[0].b

    def rows_at(self, index: np.ndarray) -> tuple[Flat, np.ndarray]:
        if not has_row_access(self.rows):
            raise SoftmarginError(
                f"{type(self.rows).__name__} offers products with X only: solvers that visit single rows, such as SGD "
                "and Pegasos, need data in memory. Use OCAS or CPA."
            )
        flat = self.rows.flat
        if not flat.fortran:
            return flat, index
        return self.rows.take(index).flat, np.arange(index.size)

    def _shifted(self, f: np.ndarray) -> np.ndarray:
        """Outputs as `Hinges` takes them: less the targets, unless these are the signs of v."""
        return f if self.targets is None else f - self.targets

    def _activity(self, witnesses: Sequence[ActiveHinges], weights: np.ndarray) -> np.ndarray:
        """sum_j weights_j pi_j."""
        from softmargin.problems import _witness

        out = np.zeros(-(-self.n_outputs // 8) * 8)
        for witness, weight in zip(witnesses, weights, strict=True):
            if weight != 0.0:
                _witness.add_bits(witness.bits, weight, _witness.BYTE_BITS, out)
                if witness.row >= 0:
                    out[witness.row] += weight * witness.fraction
        return out[: self.n_outputs]
