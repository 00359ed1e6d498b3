"""Storages that offer products only: fits, judges and words."""

import numpy as np
import pytest

from softmargin import CPA, OCAS, SGD
from softmargin.core.errors import SoftmarginError
from softmargin.core.status import Status
from softmargin.core.stopping import Stop
from softmargin.core.threads import Workers
from softmargin.data.columns import Columns, Occupied
from softmargin.data.convert import as_products, as_rows
from softmargin.data.rows import Products, has_row_access
from softmargin.estimators.linear_work import LinearWork
from softmargin.estimators.problem_settings import LinearSetting
from softmargin.problems.certificate import HingeJudge
from softmargin.problems.hinge import Hinge
from softmargin.problems.hinge_targets import Tube
from softmargin.problems.intercepts import Free
from softmargin.solvers.base import run

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 4))
V = np.where(X[:, 0] + RNG.standard_normal(60) > 0, 1.0, -1.0)


class Far:
    """Rows of which only products are known; if `parts_in_memory`, blocks of them can be read."""

    def __init__(self, X, parts_in_memory=True, workers=None):
        self._X, self._in_memory, self._workers = X, parts_in_memory, workers

    n_rows = property(lambda self: self._X.shape[0])
    n_cols = property(lambda self: self._X.shape[1])

    def dot(self, w):
        return self._X @ w

    def t_dot(self, v, before=None):
        return self._X.T @ (v if before is None else v - before)

    def sq_norms(self):
        return (self._X**2).sum(axis=1)

    def blocks(self):
        for lo in range(0, self.n_rows, 7):
            part = self._X[lo : lo + 7]
            yield slice(lo, lo + len(part)), as_rows(part) if self._in_memory else Far(part, False)

    def on(self, workers):
        return Far(self._X, self._in_memory, workers)


class Stored(Far):
    """The same with access to single rows, at a price that nobody may pay without need."""

    @property
    def flat(self):
        raise AssertionError("asking whether there is access must not make a copy")


def test_what_a_storage_offers_is_seen_without_asking_for_it():
    assert isinstance(Far(X), Products)
    assert not isinstance(X, Products)
    assert not has_row_access(Far(X))
    assert has_row_access(Stored(X))
    assert has_row_access(as_rows(X))
    workers = Workers(1)
    assert as_products(Far(X), workers)._workers is workers
    assert has_row_access(as_products(X))
    far = Far(X)
    assert as_products(far) is far
    assert as_rows(stored := Stored(X)) is stored
    with pytest.raises(SoftmarginError, match="products with X only"):
        as_rows(far)


def test_columns_of_products_are_left_alone():
    far = Far(X)
    assert Occupied.of(far).rows is far
    assert Columns.of(far, products_only=True).inner is far


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("solver", [OCAS(), CPA()], ids=["OCAS", "CPA"])
@pytest.mark.parametrize("target", [V, Tube(X @ np.ones(4) + V, np.ones(60), 0.1)], ids=["classes", "tube"])
def test_linear_fits_need_products_only(in_memory, solver, target):
    found = []
    for rows in (Far(X, in_memory), as_rows(X)):
        result = run(solver, Hinge(rows, target, 1.0), Stop(tol=1e-8), HingeJudge(rows, target, 1.0, Free(), 1e-8))
        assert result.status is Status.OPTIMAL
        found.append(result.certificate)
    assert found[0].primal == pytest.approx(found[1].primal, rel=1e-7)


def test_the_path_of_the_estimators_needs_products_only():
    setting, stop = LinearSetting(1.0, Free()), Stop(tol=1e-6)
    work = LinearWork(OCAS(), setting, Far(X), [V], stop, 1)
    [result] = work.solve()
    assert result.status is Status.OPTIMAL
    assert work.fingerprint() == LinearWork(OCAS(), setting, Far(X), [V], stop, 1).fingerprint()
    with pytest.raises(SoftmarginError, match="Use OCAS or CPA"):
        LinearWork(SGD(seed=0), setting, Far(X), [V], stop, 1).solve()


def test_more_digits_come_from_blocks_in_memory():
    """Rows so long that plain products prove nothing at this tolerance."""
    rough = X + 1e7
    certificates = []
    for rows in (as_rows(rough), Far(rough), Far(rough, parts_in_memory=False)):
        result = run(OCAS(), Hinge(rows, V, 1e-6), Stop(tol=1e-4, max_iter=30), HingeJudge(rows, V, 1e-6, Free(), 0.0))
        certificates.append(HingeJudge(rows, V, 1e-6, Free(), 0.0)(result.solution))
    assert certificates[1].rounding < 0.1 * certificates[2].rounding
    assert certificates[1].rounding < 10.0 * certificates[0].rounding
