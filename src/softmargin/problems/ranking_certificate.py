"""The judge of ranking: primal value, dual bound and gap of any candidate, from the data alone.

    primal = 1/2 |w|^2 + C R(w)
    dual   = sum_j gamma_j e_j - 1/2 |X' sum_j gamma_j c_j|^2,    gamma >= 0, sum_j gamma_j <= C

A candidate is w, and for the dual the weight gamma_j and the score vector of some planes. Whatever the scores are, the
pairs with a difference below 1 are a set of pairs, and its c = -u net and e = u total, which are counted here, make
R(w) >= <X'c, w> + e for all w. So the bound holds for every set of scores, once gamma is made feasible: clipped at 0,
and scaled down where its sum exceeds C. (Counts handed over would prove nothing: with three ranks different e go with
the same c.) An estimate of the rounding errors of both values is charged to the bound.
"""

from dataclasses import dataclass, field

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Certificate, PlaneSolution, Solution
from softmargin.core.stopping import relative_gap
from softmargin.core.threads import Workers
from softmargin.data.rows import Rows
from softmargin.linalg.counting import Pairs
from softmargin.problems.certificate import ROUNDING

_LARGEST = 1e300  # of a score: differences stay finite


@dataclass(frozen=True)
class RankingJudge:
    """Judge of the ranking problem; see `problems/ranking.py` for the symbols.

    The KKT violation is that of the dual candidate: with w = -X' sum_j gamma_j c_j and xi = (dual - 1/2 |w|^2) / C, by
    how much R(w) exceeds xi, as a mean over the pairs. It is SVM-perf's epsilon, and 0 at the optimum only.
    """

    rows: Rows
    pairs: Pairs
    C: float
    average: bool = True
    workers: Workers = field(default_factory=Workers)

    def __call__(self, solution: Solution) -> Certificate:
        if not isinstance(solution, PlaneSolution):
            raise SoftmarginError("a ranking is certified by the score vectors of its planes, which this model lacks.")
        if solution.b != 0.0:
            raise SoftmarginError(f"the model has the intercept {solution.b}, which ranking does not have.")
        w = np.asarray(solution.w, dtype=np.float64)
        pairs, C = self.pairs, self.C
        scale = C * self._unit * pairs.n_pairs

        risk, net, size = self._risk(w)
        primal = 0.5 * float(w @ w) + C * risk
        g, e = self._combined(solution)
        w_gamma = -self.rows.t_dot(g)
        sq_norm = float(w_gamma @ w_gamma)
        dual = e - 0.5 * sq_norm
        violation = (0.5 * sq_norm + C * self._risk(w_gamma)[0] - dual) / scale

        lengths = np.sqrt(self.rows.sq_norms())
        reach = C * self._unit * (size + float(np.abs(net) @ lengths[pairs.rows]) * np.sqrt(w @ w))
        reach += e + float(np.abs(g) @ lengths) * np.sqrt(sq_norm)
        dual -= ROUNDING * float(reach)
        return Certificate(primal, dual, primal - dual, relative_gap(primal, dual, scale), max(0.0, violation))

    @property
    def _unit(self) -> float:
        return 1.0 / self.pairs.n_pairs if self.average else 1.0

    def _combined(self, solution: PlaneSolution) -> tuple[np.ndarray, float]:
        """sum_j gamma_j c_j and sum_j gamma_j e_j of the planes, which are counted here, for gamma made feasible."""
        if len(solution.points) != len(solution.alpha):
            raise SoftmarginError(f"there are {len(solution.alpha)} weights for {len(solution.points)} score vectors.")
        gamma = _feasible(np.asarray(solution.alpha, dtype=np.float64), self.C)
        net_sum, total_sum = np.zeros(self.pairs.rows.size), 0.0
        for weight, scores in zip(gamma, solution.points, strict=True):
            if scores.shape != (self.pairs.n_rows,):
                raise SoftmarginError(
                    f"a score vector has {scores.size} entries for {self.pairs.n_rows} rows: "
                    "certify a model on the rows it was trained on, in the same order."
                )
            finite = np.clip(np.nan_to_num(scores.astype(np.float64)), -_LARGEST, _LARGEST)
            net, total = self.pairs.count(self.pairs.take(finite), workers=self.workers)
            net_sum += weight * net
            total_sum += weight * total
        return self.pairs.spread(-self._unit * net_sum), float(self._unit * total_sum)

    def _risk(self, w: np.ndarray) -> tuple[float, np.ndarray, float]:
        """R(w), net in slot order, and the size of the terms that R / u is a sum of."""
        f = self.pairs.take(self.rows.dot(w))
        net, total = self.pairs.count(f, workers=self.workers)
        size = total + float(np.abs(net) @ np.abs(f - f.mean()))
        return max(0.0, self._unit * (total - self.pairs.dot(net, f, self.workers))), net, size


def _feasible(gamma: np.ndarray, C: float) -> np.ndarray:
    gamma = np.clip(np.nan_to_num(gamma), 0.0, C)
    total = float(gamma.sum())
    return gamma * (C / total) if total > C else gamma
