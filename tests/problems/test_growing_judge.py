"""A judge with a memory finds what one without finds, and believes nobody but itself."""

import numpy as np
import pytest

from softmargin.core.result import Solution
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.kernels.functions import RBF
from softmargin.kernels.growing import GrowingMatrix, GrowingStore
from softmargin.problems.certificate import feasible
from softmargin.problems.growing_judge import GrowingJudge
from softmargin.problems.kernel_certificate import KernelJudge
from softmargin.problems.row_loss import RowLoss


def test_the_same_as_summed_anew():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((160, 4))
    v = np.where(rng.random(160) < 0.5, 1.0, -1.0)
    matrix = GrowingMatrix(as_rows(X[:40]), RBF(0.3), Workers(1))
    store = GrowingStore(matrix, lambda n: 8.0 * n * n, Workers(1))
    alpha, judge = np.full(40, 0.5) * (v[:40] > 0), GrowingJudge()
    alpha[v[:40] < 0] = alpha.sum() / np.sum(v[:40] < 0)
    summed = {judge: 0, None: 0}
    usual = store.products

    def products(columns):
        summed[by] += np.count_nonzero(columns.any(axis=1))
        return usual(columns)

    store.products = products
    for n in range(40, 160):
        plain = KernelJudge(store, RowLoss.classification(v[:n], 1.0))
        if n % 3 == 0:  # some change in balance, some do not
            alpha = alpha.copy()
            i, j = rng.choice(np.flatnonzero(v[:n] > 0), 2, replace=False)
            step = rng.uniform(-alpha[i], min(alpha[j], 1.0 - alpha[i]))
            alpha[[i, j]] += step, -step
            alpha = np.clip(alpha, 0.0, 1.0)
        solution = Solution(np.empty(0), 0.1, feasible(alpha, v[:n], 1.0, free_intercept=True))
        by = judge
        found = judge(plain, solution)
        by = None
        expected = plain(solution)
        assert found.primal == pytest.approx(expected.primal, rel=1e-11)
        assert found.dual == pytest.approx(expected.dual, rel=1e-11)
        if n < 159:
            matrix.side.append(as_rows(X[n : n + 1]))
            store.extend()
            alpha = np.append(alpha, 0.0)
    assert 0 < summed[judge] < 0.1 * summed[None]


def test_a_lie_is_found():
    """The f of the solver is nowhere asked for; a candidate that is not what it was is summed again."""
    rng = np.random.default_rng(1)
    X, v = rng.standard_normal((30, 3)), np.repeat([1.0, -1.0], 15)
    store = GrowingStore(GrowingMatrix(as_rows(X), RBF(0.3), Workers(1)), lambda n: 8.0 * n * n, Workers(1))
    plain, judge = KernelJudge(store, RowLoss.classification(v, 1.0)), GrowingJudge()
    good = Solution(np.empty(0), 0.0, np.full(30, 0.5))
    first = judge(plain, good)
    swapped = good.alpha.copy()
    swapped[[0, 15]] = 0.9
    other = judge(plain, Solution(np.empty(0), 0.0, swapped))
    assert other.primal == pytest.approx(plain(Solution(np.empty(0), 0.0, swapped)).primal, rel=1e-12)
    assert other.primal != first.primal
    one_sided = Solution(np.empty(0), 0.0, np.where(np.arange(30) == 3, 1.0, swapped))
    found, expected = judge(plain, one_sided), plain(one_sided)  # out of balance it is no candidate for a bound
    assert found.primal == pytest.approx(expected.primal, rel=1e-11)
    assert found.dual == pytest.approx(expected.dual, rel=1e-12)
