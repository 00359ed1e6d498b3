"""The judge of a kernel problem that is solved again and again while rows are added.

What it summed for the last candidate it need not sum again: f = K beta is extended to the new rows, and updated by the
rows of K whose beta is another. These are sums of its own; the f of the solver is not used. After some updates, or
where much of beta has changed, it sums anew. Rounding errors of updates add up, and so do their bounds.
"""

import numpy as np

from softmargin.core.result import Certificate, Solution
from softmargin.data.precise import Outputs
from softmargin.kernels.growing import GrowingStore
from softmargin.linalg.rounding import UNIT
from softmargin.problems.kernel_certificate import KernelJudge, Model

# Updates in a row, and the share of beta that may have changed, before f is summed anew.
_UPDATES, _SHARE = 50, 0.5


class GrowingJudge:
    """A judge that remembers the last beta, made feasible, and its f."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Sum anew next time: rows are gone."""
        self._beta = np.empty(0)
        self._f = Outputs(np.empty(0), 0.0, np.empty(0))
        self._updates = 0

    def __call__(self, judge: KernelJudge, solution: Solution) -> Certificate:
        """What `judge` finds, whose rows are those of the last time, and perhaps more behind them."""
        given, beta = judge.candidates(solution)
        n_known = self._beta.size
        before = np.append(self._beta, np.zeros(beta.size - n_known))
        changed = np.flatnonzero(before != beta)
        is_near = changed.size <= _SHARE * np.count_nonzero(beta) and self._updates < _UPDATES
        if n_known and is_near:
            self._f = self._updated(judge, beta - before, beta, n_known)
        else:
            self._f, self._updates = judge.outputs(beta), 0
        self._beta = beta
        f = self._f if np.array_equal(given, beta) else judge.outputs(given)
        return judge.certificate(Model(given, f, float(solution.b)), beta, self._f)

    def _updated(self, judge: KernelJudge, step: np.ndarray, beta: np.ndarray, n_known: int) -> Outputs:
        """f of the known rows by what has changed, that of new rows from the beginning."""
        K, fresh = judge.K, np.arange(n_known, beta.size)
        assert isinstance(K, GrowingStore)
        f, error = np.append(self._f.f, np.zeros(fresh.size)), np.append(self._f.error, np.zeros(fresh.size))
        errors = K.errors()
        if step.any():
            sums = K.products(errors.columns(step))
            f += sums[:, 0] + sums[:, 1]
            # the difference of two beta is rounded, and so is the sum
            error += errors.of_outputs(step, sums) + 2.0 * UNIT * (np.abs(f) + errors.reach(step))
            self._updates += 1
        if fresh.size:
            f[fresh] = K.outputs(beta, fresh)
            error[fresh] = errors.of_outputs(beta)[fresh]
        return Outputs(f, 0.0, error)
