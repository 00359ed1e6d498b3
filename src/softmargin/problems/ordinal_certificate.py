"""The judge of ordinal regression: primal value, dual bound and gap of any candidate, from the data alone.

    primal = 1/2 |w|^2 + C sum_i s_i sum over k in K_i of max(0, 1 - z_ik (w.x_i - theta_k))
    dual   = sum_ik alpha_ik - 1/2 |sum_i (sum_k z_ik alpha_ik) x_i|^2,   0 <= alpha_ik <= C s_i, 0 for k outside K_i

with the symbols of `ordinal`. The thresholds are free, so beta_k = sum_i z_ik alpha_ik must be 0 ("all"); where they
ascend by constraint ("immediate") the partial sums of beta must not be positive, and the last one 0. alpha is made
feasible first, exactly: clipped to its box, rounded down to multiples of a power of two so large that all sums are
computed without error, and lowered where the sums demand it. Rounding of both values is charged as in `certificate`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Certificate, Solution
from softmargin.core.stopping import AT_BOUND
from softmargin.data.precise import combination, lengths_above, outputs, sharper_combination
from softmargin.data.rows import Products
from softmargin.linalg.rounding import above, square_above
from softmargin.problems.bracket import Bound, Side, certificate, dual_value, is_coarse, losses, sharper_losses
from softmargin.problems.feasible import clipped, floored, last_digit, take_off

# Less than this share of a side is taken off few of its variables; for more, all of them are scaled down.
_NEARLY_FEASIBLE = 2.0**-40


@dataclass(frozen=True)
class OrdinalJudge:
    """Judge of the ordinal problem with the given data; `margins` is "all" or "immediate"."""

    rows: Products
    ranks: np.ndarray
    weights: np.ndarray
    C: float
    margins: str = "all"
    tol: float = 0.0

    def __call__(self, solution: Solution) -> Certificate:
        theta = np.atleast_1d(np.asarray(solution.b, dtype=np.float64))
        self._check(theta, np.shape(solution.alpha))
        with np.errstate(over="ignore", invalid="ignore"):
            return self._certificate(np.asarray(solution.w, dtype=np.float64), theta, solution.alpha)

    def _certificate(self, w: np.ndarray, theta: np.ndarray, alpha: np.ndarray) -> Certificate:
        alpha = self.feasible(np.asarray(alpha, dtype=np.float64))
        upper = self.C * self.weights
        lengths = lengths_above(self.rows)
        found = outputs(self.rows, w, lengths)
        sides = [Side(rows, z, -float(theta[k]), upper[rows]) for k, rows, z in self._sides()]
        scale = float(sum(side.upper.sum() for side in sides))
        half_norm = Bound(0.5 * float(w @ w), above(0.5 * square_above(w)))
        loss, near = losses(found, sides)
        primal = half_norm.plus(loss)

        pull = np.zeros(self.weights.size)
        for k, rows, z in self._sides():
            pull[rows] += z * alpha[rows, k]  # exact: multiples of a power of two
        total = fsum(alpha.ravel(order="K").tolist())
        length, w_alpha = combination(self.rows, pull, lengths)
        value = total - 0.5 * float(w_alpha @ w_alpha)
        dual = Bound(value, dual_value(total, length))
        if is_coarse(primal, dual, scale, self.tol):
            primal = half_norm.plus(sharper_losses(self.rows, w, lengths, sides, found, near))
            dual = Bound(value, dual_value(total, min(length, sharper_combination(self.rows, pull, lengths))))
        return certificate(primal, dual, scale, self._kkt_violation(alpha, self.rows.dot(w_alpha)))

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        """A dual vector that satisfies the constraints exactly, from whatever is handed in."""
        found = np.zeros(alpha.shape[::-1]).T  # by columns
        for k, rows, _ in self._sides():
            found[rows, k] = clipped(alpha[rows, k], self.weights[rows], self.C)
        # Where much is to be taken off a side, all of it is scaled down; what is left then is taken off few of it.
        for k, rows, z, less_plus, less_minus in self._excess(found):
            part = found[rows, k]
            for side, less in ((z > 0.0, less_plus), (z < 0.0, less_minus)):
                total = float(part.sum(where=side))
                if less > _NEARLY_FEASIBLE * total:
                    part[side] *= max(0.0, 1.0 - less / total)
            found[rows, k] = part
        total = float(found.sum())
        if total > 0.0:
            found = floored(found, 4.0 * last_digit(total))
        for k, rows, z, less_plus, less_minus in self._excess(found):
            part = found[rows, k]
            take_off(part, less_plus, z > 0.0)
            take_off(part, less_minus, z < 0.0)
            found[rows, k] = part
        return found

    def _excess(self, alpha: np.ndarray) -> list[tuple[int, Any, np.ndarray, float, float]]:
        """Each threshold, its rows, their z, and by how much either side is too large."""
        sides = list(self._sides())
        plus = np.array([float(alpha[rows, k].sum(where=z > 0.0)) for k, rows, z in sides])
        minus = np.array([float(alpha[rows, k].sum(where=z < 0.0)) for k, rows, z in sides])
        kept_plus, kept_minus = plus.copy(), minus.copy()
        for chain in self._chains:
            _restore(kept_plus[chain], kept_minus[chain])
        return [(k, rows, z, float(plus[k] - kept_plus[k]), float(minus[k] - kept_minus[k])) for k, rows, z in sides]

    @property
    def _n_thresholds(self) -> int:
        return int(self.ranks.max())

    @cached_property
    def _chains(self) -> list[slice]:
        """Thresholds that are held in order, as ranges."""
        count = self._n_thresholds
        return [slice(0, count)] if self.margins == "immediate" else [slice(k, k + 1) for k in range(count)]

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(self.ranks, kind="stable")

    def _sides(self) -> Iterator[tuple[int, Any, np.ndarray]]:
        """Each threshold k, the rows for which it counts, and their z_ik."""
        starts = np.searchsorted(self.ranks[self._order], np.arange(self._n_thresholds + 2))
        for k in range(self._n_thresholds):
            rows = self._order[starts[k] : starts[k + 2]] if self.margins == "immediate" else slice(None)
            yield k, rows, np.where(self.ranks[rows] > k, 1.0, -1.0)

    def _check(self, theta: np.ndarray, shape: tuple[int, ...]) -> None:
        count = self._n_thresholds
        if theta.shape != (count,):
            raise SoftmarginError(f"the model has {theta.size} thresholds, but the labels {count + 1} ranks.")
        if shape != (self.weights.size, count):
            raise SoftmarginError(
                f"the dual variables have shape {shape} for {self.weights.size} rows and {count} thresholds: "
                "certify a model on the rows it was trained on, in the same order."
            )
        if self.margins == "immediate" and not (theta[1:] >= theta[:-1]).all():
            raise SoftmarginError("the thresholds do not ascend: no model of this problem has such thresholds.")

    def _kkt_violation(self, alpha: np.ndarray, f: np.ndarray) -> float:
        """How far the thresholds that single alpha ask for contradict each other.

        One that may grow wants the threshold where it causes no loss, one that may shrink where it does: so every
        threshold has a least and a largest value. Thresholds with a multiplier between them are one; others of a chain
        need only ascend.
        """
        at_least, at_most = np.full((2, self._n_thresholds), [[-np.inf], [np.inf]])
        beta = np.zeros(self._n_thresholds)
        upper = self.C * self.weights
        for k, rows, z in self._sides():
            demand = f[rows] - z
            grow = alpha[rows, k] < (1.0 - AT_BOUND) * upper[rows]
            shrink = alpha[rows, k] > AT_BOUND * upper[rows]
            at_least[k] = demand.max(where=np.where(z > 0.0, shrink, grow), initial=-np.inf)
            at_most[k] = demand.min(where=np.where(z > 0.0, grow, shrink), initial=np.inf)
            beta[k] = float(z @ alpha[rows, k])
        worst = 0.0
        for chain in self._chains:
            multipliers = -np.cumsum(beta[chain])[:-1] > AT_BOUND * float(upper.sum())
            starts = np.flatnonzero(np.append(True, ~multipliers))
            lows = np.maximum.reduceat(at_least[chain], starts)
            highs = np.minimum.reduceat(at_most[chain], starts)
            # thresholds ascend: what one is at least, the later ones are as well
            worst = max(worst, float((np.maximum.accumulate(lows) - highs).max()))
        return worst


def _restore(plus: np.ndarray, minus: np.ndarray) -> None:
    """Lower the two sides of a chain of thresholds, in place, until plus - minus adds up to 0 in the end, and to
    nothing positive on the way."""
    total = 0.0
    for k in range(plus.size):
        plus[k] = min(plus[k], minus[k] - total)
        total = min(0.0, total + plus[k] - minus[k])
    for k in reversed(range(plus.size)):
        less = min(minus[k], -total)
        minus[k] -= less
        total += less
