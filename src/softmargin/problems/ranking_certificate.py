"""The judge of ranking: primal value, dual bound and gap of any candidate, from the data alone.

    primal = 1/2 |w|^2 + C R(w)
    dual   = sum_j gamma_j e_j - 1/2 |X' sum_j gamma_j c_j|^2,    gamma >= 0, sum_j gamma_j <= C

A candidate is w, and for the dual the weight gamma_j and the score vector of some planes. Whatever the scores are, the
pairs with a difference below 1 are a set of pairs, and its c = -u net and e = u total, which are counted here, make
R(w) >= <X'c, w> + e for all w. So the bound holds for every set of scores, once gamma is made feasible: clipped at 0,
and scaled down where its sum exceeds C. (Counts handed over would prove nothing: with three ranks different e go with
the same c.)

Rounding is charged so that both values hold in real arithmetic. Scores are off by at most some delta, so that no pair
loses more than 1 + 2 delta - (f_i - f_j) if that is positive: the primal value is a count with this margin. Counts of
pairs are whole numbers, and exact, unless rows or queries have weights; then they are sums of positive numbers.
"""

from dataclasses import dataclass, field
from math import fsum, inf, isfinite, nan
from typing import NamedTuple

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Certificate, PlaneSolution, Solution
from softmargin.core.threads import Workers
from softmargin.data.precise import (
    Outputs,
    combination,
    lengths_above,
    outputs,
    sharper_combination,
    sharper_outputs,
)
from softmargin.data.rows import Products
from softmargin.linalg.counting import Pairs
from softmargin.linalg.rounding import SLACK, UNIT, above, below, gamma, square_above
from softmargin.problems.bracket import Bound, certificate, dual_value, is_coarse

_LARGEST = 1e300  # of a score: differences stay finite


@dataclass(frozen=True)
class RankingJudge:
    """Judge of the ranking problem; see `problems/ranking.py` for the symbols.

    The KKT violation is that of the dual candidate: with ``w = -X' sum_j gamma_j c_j`` and
    ``xi = (dual - 1/2 |w|^2) / C``, by how much R(w) exceeds xi, as a mean over the pairs. It is SVM-perf's epsilon,
    and 0 at the optimum only.
    """

    rows: Products
    pairs: Pairs
    C: float
    average: bool = True
    workers: Workers = field(default_factory=Workers)
    tol: float = 0.0

    def __call__(self, solution: Solution) -> Certificate:
        if not isinstance(solution, PlaneSolution):
            raise SoftmarginError("a ranking is certified by the score vectors of its planes, which this model lacks.")
        if solution.b != 0.0:
            raise SoftmarginError(f"the model has the intercept {solution.b}, which ranking does not have.")
        with np.errstate(over="ignore", invalid="ignore"):
            return self._certificate(np.asarray(solution.w, dtype=np.float64), solution)

    def _certificate(self, w: np.ndarray, solution: PlaneSolution) -> Certificate:
        lengths = lengths_above(self.rows)
        scale = self.C * self._unit * self.pairs.n_pairs
        half_norm = Bound(0.5 * float(w @ w), above(0.5 * square_above(w)))
        primal = half_norm.plus(self.loss(outputs(self.rows, w, lengths)))

        planes = self.combined(solution)
        spread = planes.count_error * float(lengths.max(initial=0.0))  # of X'g, because counts are rounded
        length, w_gamma = combination(self.rows, planes.g, lengths)
        w_gamma = -w_gamma
        sq_norm = float(w_gamma @ w_gamma)
        dual = Bound(planes.e - 0.5 * sq_norm, dual_value(planes.least_e, length + spread))
        if is_coarse(primal, dual, scale, self.tol):
            sharp = sharper_outputs(self.rows, w, lengths, np.arange(self.rows.n_rows))
            primal = half_norm.plus(self.loss(sharp))
            length = min(length, sharper_combination(self.rows, planes.g, lengths))
            dual = Bound(dual.value, dual_value(planes.least_e, length + spread))
        risk = self.loss(outputs(self.rows, w_gamma, lengths)).value
        violation = (0.5 * sq_norm + risk - dual.value) / scale
        return certificate(primal, dual, scale, max(0.0, violation))

    @property
    def _unit(self) -> float:
        return 1.0 / self.pairs.n_pairs if self.average else 1.0

    @property
    def _count_error(self) -> float:
        """Relative error of counts, with u among their factors."""
        return gamma(2 * self.pairs.rows.size + 40) if self.pairs.has_weights else gamma(8)

    def loss(self, found: Outputs) -> Bound:
        """C R(w), and an upper bound of it."""
        pairs, take = self.pairs, self.pairs.take
        f = take(found.f + found.low)
        if not np.isfinite(f).all():
            return Bound(nan, inf)
        off = float(take(found.error).max(initial=0.0)) + UNIT * float(np.abs(f).max(initial=0.0))
        net, total = pairs.count(f, workers=self.workers)
        value = self.C * max(0.0, self._unit * (total - pairs.dot(net, f, self.workers)))
        margin = above((1.0 + 2.0 * off) * (1.0 + 8.0 * UNIT))
        if not isfinite(margin):
            return Bound(value, inf)
        net, total = pairs.count(f, margin, workers=self.workers)
        # The difference of two scores is rounded too: pairs that were counted may exceed the margin by as little.
        most = margin * (1.0 + 4.0 * UNIT) * total - pairs.dot(net, f, self.workers)
        width = 2.0 * float(f.max(initial=0.0) - f.min(initial=0.0))
        counting = self._count_error
        most += (counting * margin + (counting + gamma(f.size + 8)) * width) * total * SLACK
        return Bound(value, above(self.C * self._unit * max(0.0, most) * (1.0 + counting + gamma(4))))

    def combined(self, solution: PlaneSolution) -> "_Planes":
        """The weighted planes, which are counted here, for gamma made feasible."""
        if len(solution.points) != len(solution.alpha):
            raise SoftmarginError(f"there are {len(solution.alpha)} weights for {len(solution.points)} score vectors.")
        weights = _feasible(np.asarray(solution.alpha, dtype=np.float64), self.C)
        net_sum, total_sum = np.zeros(self.pairs.rows.size), 0.0
        for weight, scores in zip(weights, solution.points, strict=True):
            if scores.shape != (self.pairs.n_rows,):
                raise SoftmarginError(
                    f"a score vector has {scores.size} entries for {self.pairs.n_rows} rows: "
                    "certify a model on the rows it was trained on, in the same order."
                )
            finite = np.clip(np.nan_to_num(scores.astype(np.float64)), -_LARGEST, _LARGEST)
            net, total = self.pairs.count(self.pairs.take(finite), workers=self.workers)
            net_sum += weight * net
            total_sum += weight * total
        # Any u that is not too large makes planes below the risk.
        unit = self._unit * (1.0 - self._count_error) if self.average else 1.0
        error = self._count_error + gamma(weights.size + 8)
        e = unit * total_sum
        return _Planes(self.pairs.spread(-unit * net_sum), e, below(e * (1.0 - error)), above(2.0 * error * e * SLACK))


class _Planes(NamedTuple):
    """sum_j gamma_j c_j and sum_j gamma_j e_j, a lower bound of the latter, and a bound of the sum of the errors of the
    former: a row's part of a plane is a difference of two counts, which all together add up to twice the total."""

    g: np.ndarray
    e: float
    least_e: float
    count_error: float


def _feasible(weights: np.ndarray, C: float) -> np.ndarray:
    """Weights of at least 0 whose sum is at most C."""
    weights = np.clip(np.nan_to_num(weights), 0.0, C)
    total = fsum(weights.tolist())
    return weights * (C / total * (1.0 - 8.0 * UNIT)) if total > C else weights
