"""The judge of ordinal regression: primal value, dual bound and gap of any candidate, from the data alone.

    primal = 1/2 |w|^2 + C sum_i s_i sum over k in K_i of max(0, 1 - z_ik (w.x_i - theta_k))
    dual   = sum_ik alpha_ik - 1/2 |sum_i (sum_k z_ik alpha_ik) x_i|^2,   0 <= alpha_ik <= C s_i, 0 for k outside K_i

with the symbols of `ordinal`. The thresholds are free, so beta_k = sum_i z_ik alpha_ik must be 0 ("all"); where they
ascend by constraint ("immediate") the partial sums of beta must not be positive, and the last one 0. alpha is made
feasible first: clipped to its box, then one side of a threshold is scaled down where the sums demand it. What rounding
leaves of them is charged to the bound, at the candidate's thresholds, as are the rounding errors of both values.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Certificate, Solution
from softmargin.core.stopping import relative_gap
from softmargin.data.rows import Rows
from softmargin.problems.certificate import AT_BOUND, ROUNDING


@dataclass(frozen=True)
class OrdinalJudge:
    """Judge of the ordinal problem with the given data; `margins` is "all" or "immediate"."""

    rows: Rows
    ranks: np.ndarray
    weights: np.ndarray
    C: float
    margins: str = "all"

    def __call__(self, solution: Solution) -> Certificate:
        w = np.asarray(solution.w, dtype=np.float64)
        theta = np.atleast_1d(np.asarray(solution.b, dtype=np.float64))
        self._check(theta, np.shape(solution.alpha))
        alpha = self.feasible(np.asarray(solution.alpha, dtype=np.float64))
        upper = self.C * self.weights
        lengths, w_length = np.sqrt(self.rows.sq_norms()), np.sqrt(w @ w)

        f = self.rows.dot(w)
        reach = w_length * lengths
        loss, errors, scale = 0.0, 0.0, 0.0
        pull = np.zeros(f.size)
        for k, rows, z in self._sides():
            slack = np.maximum(0.0, 1.0 - z * (f[rows] - theta[k]))
            loss += float(upper[rows] @ slack)
            lossy = upper[rows] * (slack > 0.0)  # the others may be off without any effect
            errors += float(lossy @ (reach[rows] + abs(theta[k])))
            scale += float(upper[rows].sum())
            pull[rows] += z * alpha[rows, k]
        primal = 0.5 * float(w @ w) + loss

        w_alpha = self.rows.t_dot(pull)
        dual = float(alpha.sum()) - 0.5 * float(w_alpha @ w_alpha)
        errors += float(alpha.sum(axis=1) @ lengths) * np.sqrt(w_alpha @ w_alpha)
        dual -= float(self._imbalance(alpha, theta) + ROUNDING * errors)
        return Certificate(
            primal=primal,
            dual=dual,
            gap=primal - dual,
            relative_gap=relative_gap(primal, dual, scale),
            kkt_violation=self._kkt_violation(alpha, self.rows.dot(w_alpha)),
        )

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        """A dual vector that satisfies the constraints up to rounding, from whatever is handed in."""
        clipped = np.zeros(alpha.shape[::-1]).T  # by columns
        plus, minus = np.zeros((2, self._n_thresholds))
        for k, rows, z in self._sides():
            part = np.clip(np.nan_to_num(alpha[rows, k]), 0.0, self.C * self.weights[rows])
            plus[k], minus[k] = part.sum(where=z > 0.0), part.sum(where=z < 0.0)
            clipped[rows, k] = part
        kept_plus, kept_minus = plus.copy(), minus.copy()
        for chain in self._chains:
            _restore(kept_plus[chain], kept_minus[chain])
        for k, rows, z in self._sides():
            if kept_plus[k] < plus[k]:
                clipped[rows, k] *= np.where(z > 0.0, kept_plus[k] / plus[k], 1.0)
            if kept_minus[k] < minus[k]:
                clipped[rows, k] *= np.where(z < 0.0, kept_minus[k] / minus[k], 1.0)
        return clipped

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

    def _imbalance(self, alpha: np.ndarray, theta: np.ndarray) -> float:
        """What is left of the constraints on beta, times the thresholds or their differences."""
        beta = np.array([float(z @ alpha[rows, k]) for k, rows, z in self._sides()])
        charge = 0.0
        for chain in self._chains:
            sums = np.cumsum(beta[chain])
            charge += abs(sums[-1] * theta[chain][-1])
            charge += float(np.maximum(sums[:-1], 0.0) @ np.diff(theta[chain]))
        return charge

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
