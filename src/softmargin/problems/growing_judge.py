"""The judge of a kernel problem that is solved again and again while rows are added.

What it summed for the last candidate it need not sum again: f = K beta is extended to the new rows, and updated by the
rows of K whose beta is another. These are sums of its own; the f of the solver is not used. After some updates, or
where much of beta has changed, it sums anew. What updates may add to the rounding error is charged to the bound.
"""

import numpy as np

from softmargin.core.result import Certificate, Solution
from softmargin.kernels.growing import GrowingStore
from softmargin.problems.certificate import ROUNDING, KernelJudge, feasible

# Updates in a row, and the share of beta that may have changed, before f is summed anew.
_UPDATES, _SHARE = 50, 0.5
# By how much the classes may be out of balance, as a share of beta: by rounding.
_BALANCED = 1e-12


class GrowingJudge:
    """A judge that remembers the last alpha, as given and as made feasible, and its f."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Sum anew next time: rows are gone."""
        self._given = self._alpha = self._f = np.empty(0)
        self._updates = 0

    def __call__(self, judge: KernelJudge, solution: Solution) -> Certificate:
        """What `judge` finds, whose rows are those of the last time, and perhaps more behind them."""
        given = np.asarray(solution.alpha, dtype=np.float64)
        labels, n_known = np.sign(judge.signed_weights), self._given.size
        more = np.zeros(given.size - n_known)
        changed = (np.append(self._given, more) != given).nonzero()[0]
        alpha = np.append(self._alpha, more)
        change = -alpha[changed]
        alpha[changed] = feasible(given, judge.signed_weights, judge.C, balanced=False)[changed]
        change += alpha[changed]
        is_near = (
            changed.size <= _SHARE * np.count_nonzero(given)
            and self._updates < _UPDATES
            and abs(float(alpha @ labels)) <= _BALANCED * float(alpha.sum())
        )
        if n_known and is_near:
            f = np.append(self._f, more)
            self._update(judge, f, changed, change * labels[changed], alpha * labels, n_known)
        else:
            alpha = feasible(given, judge.signed_weights, judge.C, balanced=True)
            f, self._updates = judge.K.product(alpha * labels), 0
        self._given, self._alpha, self._f = given.copy(), alpha, f
        return judge.certificate(alpha, float(solution.b), f, self._updates * ROUNDING)

    def _update(
        self, judge: KernelJudge, f: np.ndarray, changed: np.ndarray, change: np.ndarray, beta: np.ndarray, n_known: int
    ) -> None:
        """f of the known rows by what has changed, that of new rows from the beginning."""
        K = judge.K
        assert isinstance(K, GrowingStore)
        if changed.size:
            step = np.zeros(beta.size)
            step[changed] = change
            f += K.product(step)
            self._updates += 1
        if n_known < beta.size:
            fresh = np.arange(n_known, beta.size)
            f[fresh] = K.outputs(beta, fresh)
