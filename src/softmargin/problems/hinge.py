"""The hinge risk of a linear classifier, as cutting planes see it.

    R(w) = sum_i max(0, |v_i| - v_i (w.x_i + b)),   v_i = s_i y_i

with b = 0 (`intercept="none"`), b the minimiser ("free"), or b = scaling * w_last with w_last among the penalised
weights ("penalised": the constant feature of the papers, without adding a column to the data).

A plane of R has coefficients c_i = -v_i pi_i with pi in [0, 1]; where the intercept is free, sum_i v_i pi_i = 0. Its
witness is one bit a row plus at most one fractional row, and alpha = |v| * sum_j gamma_j pi_j is a dual vector.

Reference: V. Franc, S. Sonnenburg, Optimized Cutting Plane Algorithm for Support Vector Machines, ICML 2008, eq. (2),
(5) and Appendix A. Departs from the paper: weights and a free intercept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from softmargin.core.result import Solution
from softmargin.core.threads import Workers
from softmargin.data.rows import Flat, Rows
from softmargin.problems import free_intercept, line_search
from softmargin.problems.base import Hint, LineMinimum, Pattern, PlaneAlong


@dataclass(frozen=True)
class Witness:
    """pi of one plane: a bit a row, and one row whose pi is a fraction (row = -1: none)."""

    bits: np.ndarray
    row: int
    fraction: float


@dataclass(frozen=True)
class Hinge:
    """The problem of a two-class linear SVM. `signed_weights` are v = s * y."""

    rows: Rows
    signed_weights: np.ndarray
    C: float
    intercept: str = "free"
    intercept_scaling: float = 1.0
    workers: Workers = field(default_factory=Workers)

    @property
    def n_outputs(self) -> int:
        return self.rows.n_rows

    @property
    def n_weights(self) -> int:
        return self.rows.n_cols + (self.intercept == "penalised")

    @cached_property
    def scale(self) -> float:
        return self.C * float(np.abs(self.signed_weights).sum())

    def outputs(self, w: np.ndarray) -> np.ndarray:
        if self.intercept != "penalised":
            return self.rows.dot(w)
        f = self.rows.dot(w[:-1])
        f += self.intercept_scaling * w[-1]
        return f

    def slope(self, c: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        a = self.rows.t_dot(c, before)
        if self.intercept == "penalised":
            total = float(c.sum()) - (0.0 if before is None else float(before.sum()))
            a = np.append(a, self.intercept_scaling * total)
        return a

    def risk(self, f: np.ndarray) -> float:
        if self.intercept == "free":
            return free_intercept.best_intercept(f, self.signed_weights, self.workers)[1]
        return line_search.risk(f, self.signed_weights, self.workers)

    def pattern(self, f: np.ndarray) -> Pattern:
        return self._follow(f, f, LineMinimum(0.0, 0.0, 0.0), 0.0, np.empty(0))[1]

    def follow(
        self, f: np.ndarray, df: np.ndarray, to: LineMinimum, k_plane: float
    ) -> tuple[np.ndarray, float, Pattern]:
        f_new = np.empty(self.n_outputs)
        return f_new, *self._follow(f, df, to, k_plane, f_new)

    def _follow(
        self, f: np.ndarray, df: np.ndarray, to: LineMinimum, k_plane: float, f_new: np.ndarray
    ) -> tuple[float, Pattern]:
        v, workers = self.signed_weights, self.workers
        c, bits = np.empty(self.n_outputs), np.empty(-(-self.n_outputs // 8), dtype=np.uint8)
        row, fraction = -1, 0.0
        if self.intercept == "free":
            known = to.hint
            if known is None:
                known, _ = free_intercept.best_intercept(f + to.k * df, v, workers)
            risk, constant, row, fraction = free_intercept.follow(
                f, df, to.k, known, k_plane, v, f_new, c, bits, workers
            )
        else:
            risk, constant = line_search.follow(f, df, to.k, k_plane, v, f_new, c, bits, workers)
        return risk, Pattern(c, constant, Witness(bits, row, fraction))

    def minimise_along(
        self,
        f: np.ndarray,
        df: np.ndarray,
        A0: float,
        B0: float,
        hint: Hint | None = None,
        plane: PlaneAlong | None = None,
    ) -> LineMinimum:
        v, C = self.signed_weights, self.C
        if self.intercept == "free":
            return LineMinimum(*free_intercept.minimise_along(f, df, v, A0, B0, C, self.workers, hint, plane))
        k = line_search.minimise_along(f, df, v, A0, B0, C, self.workers)
        return LineMinimum(k, k, k)

    def coefficients(self, witnesses: Sequence[Witness], weights: np.ndarray) -> np.ndarray:
        return -self.signed_weights * self._activity(witnesses, weights)

    def solution(self, w: np.ndarray, f: np.ndarray, witnesses: Sequence[Witness], weights: np.ndarray) -> Solution:
        alpha = np.abs(self.signed_weights) * self._activity(witnesses, weights)
        if self.intercept == "penalised":
            return Solution(w[:-1], self.intercept_scaling * float(w[-1]), alpha)
        if self.intercept == "free":
            return Solution(w, free_intercept.best_intercept(f, self.signed_weights, self.workers)[0].b, alpha)
        return Solution(w, 0.0, alpha)

    def rows_at(self, index: np.ndarray) -> tuple[Flat, np.ndarray]:
        flat = self.rows.flat
        if not flat.fortran:
            return flat, index
        return self.rows.take(index).flat, np.arange(index.size)

    def _activity(self, witnesses: Sequence[Witness], weights: np.ndarray) -> np.ndarray:
        """sum_j weights_j pi_j."""
        from softmargin.problems import _witness

        out = np.zeros(-(-self.n_outputs // 8) * 8)
        for witness, weight in zip(witnesses, weights, strict=True):
            if weight != 0.0:
                _witness.add_bits(witness.bits, weight, _witness.BYTE_BITS, out)
                if witness.row >= 0:
                    out[witness.row] += weight * witness.fraction
        return out[: self.n_outputs]
