"""Kernel matrices over rows that come and go: the same values as made anew."""

import numpy as np
import pytest
import scipy.sparse as sp

from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.kernels.functions import RBF, Custom, Laplacian, Linear, Polynomial
from softmargin.kernels.growing import GrowingMatrix, GrowingStore, PartRows, order_without
from softmargin.kernels.matrix import DirectRows

KERNELS = [RBF(0.2), Laplacian(0.2), Linear(), Polynomial(0.5, 2, 1.0), Custom(lambda A, B: np.asarray(A @ B.T))]


def exact(X, kernel):
    return DirectRows(as_rows(X), kernel).rows(np.arange(X.shape[0]))


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("room", [4, 1000])
def test_rows_come_and_go(storage, kernel, room):
    if isinstance(kernel, Custom) and storage is sp.csr_array:
        pytest.skip("the function is one of arrays")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    there = np.arange(10)
    matrix = GrowingMatrix(as_rows(storage(X[there])), kernel, Workers(1))
    store = GrowingStore(matrix, lambda n: 8.0 * n * room, Workers(1))
    next_row = 10
    for _ in range(15):
        store.fetch(rng.choice(there.size, min(3, store.capacity, there.size), replace=False))
        size = min(int(rng.choice([1, 3, 30])), 200 - next_row)
        matrix.side.append(as_rows(storage(X[next_row : next_row + size])))
        store.extend()
        there, next_row = np.append(there, np.arange(next_row, next_row + size)), next_row + size
        order = order_without(there.size, rng.choice(there.size, 2, replace=False))
        matrix.side.reorder(order)
        store.reorder(order)
        there = there[order]
        K = exact(X[there], kernel)
        assert store.n == there.size
        for row in store.lru.cached():
            np.testing.assert_allclose(store.slab[store.lru.slot_of[row], : store.n], K[row], rtol=1e-10, atol=1e-12)
            assert not store.slab[store.lru.slot_of[row], store.n :].any()
        np.testing.assert_allclose(store.diag(), K.diagonal(), rtol=1e-12)
        assert store.row_errors().shape == (there.size,)
        beta = rng.standard_normal(there.size) * (rng.random(there.size) < 0.5)
        np.testing.assert_allclose(store.product(beta), K @ beta, atol=1e-9)
        few = rng.choice(there.size, 3, replace=False)
        np.testing.assert_allclose(store.outputs(beta, few), (K @ beta)[few], atol=1e-9)


def test_a_part():
    X = np.random.default_rng(0).standard_normal((30, 4))
    matrix = GrowingMatrix(as_rows(X), RBF(0.2), Workers(1))
    index = np.array([3, 8, 20, 5])
    store = GrowingStore(PartRows(matrix, index), lambda n: 8.0 * n * n, Workers(1))
    K = exact(X, RBF(0.2))[np.ix_(index, index)]
    slots = store.fetch(np.array([2, 0]))
    np.testing.assert_allclose(store.slab[slots, :4], K[[2, 0]], rtol=1e-12)
    assert store.n_evaluations == 8
    np.testing.assert_allclose(store.product(np.ones(4)), K.sum(axis=0), rtol=1e-12)


def test_the_last_ones_fill_the_holes():
    assert order_without(6, np.array([1, 4])).tolist() == [0, 5, 2, 3]
    assert order_without(4, np.array([3])).tolist() == [0, 1, 2]
    assert order_without(3, np.array([0, 1, 2])).tolist() == []
