"""Rows in chunks: the contract of products, bits, threads, the next chunk fetched ahead, errors and interrupts."""

import itertools
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp

from softmargin.core.errors import Abandoned
from softmargin.core.threads import Workers
from softmargin.data import rows as rows_module
from softmargin.data.chunked import ChunkedRows, ChunkSize
from softmargin.data.convert import as_rows
from softmargin.data.rows import Products, has_row_access

RNG = np.random.default_rng(3)
X = RNG.standard_normal((101, 7)) * (RNG.random((101, 7)) < 0.6)
V, BEFORE = RNG.standard_normal((2, 101))
V[::3] = BEFORE[::3]
FORMS = {
    "dense": lambda X: X.copy(),
    "float32": lambda X: X.astype(np.float32),
    "bytes": lambda X: (4 * np.abs(X)).astype(np.uint8),
    "csr": sp.csr_array,
}


class InMemory:
    """Chunks of a matrix; `read_by` are the chunks that were read, and by which thread."""

    def __init__(self, X, edges, n_held=0):
        self.n_held = n_held
        self.parts = [as_rows(X[lo:hi]) for lo, hi in itertools.pairwise(edges)]
        self.n_cols = X.shape[1]
        flats = [part.flat for part in self.parts]
        self.sizes = [ChunkSize(f.n_rows, f.values.size, f.values.nbytes + f.indices.nbytes) for f in flats]
        self.read_by = []

    def read(self, k):
        self.read_by.append((k, threading.current_thread().name))
        return self.parts[k]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("edges", [[0, 101], [0, 40, 80, 101], [0, 1, 1, 101]], ids=["one", "three", "an empty one"])
def test_products(form, edges):
    matrix = FORMS[form](X)
    dense = np.asarray(matrix.todense() if sp.issparse(matrix) else matrix, dtype=np.float64)
    rows = ChunkedRows(InMemory(matrix, edges))
    assert isinstance(rows, Products)
    assert not has_row_access(rows)
    assert (rows.n_rows, rows.n_cols) == X.shape
    w = RNG.standard_normal(7)
    np.testing.assert_allclose(rows.dot(w), dense @ w, atol=1e-12)
    np.testing.assert_allclose(rows.t_dot(V), dense.T @ V, atol=1e-12)
    np.testing.assert_allclose(rows.t_dot(V, BEFORE), dense.T @ (V - BEFORE), atol=1e-12)
    np.testing.assert_allclose(rows.sq_norms(), (dense**2).sum(axis=1), atol=1e-12)
    found = list(rows.blocks())
    assert [(where.start, where.stop) for where, _ in found] == list(itertools.pairwise(edges))
    assert all(has_row_access(part) for _, part in found)


@pytest.mark.parametrize("form", FORMS)
def test_one_chunk_has_the_bits_of_memory_and_threads_do_not_change_them(form, monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK_VALUES", 50)
    monkeypatch.setattr(rows_module, "FEW_VALUES", 10)
    monkeypatch.setattr(rows_module, "FINE_VALUES", 25)
    matrix = FORMS[form](X)
    in_memory = as_rows(matrix)
    assert len(in_memory.products.groups) > 1
    for edges in ([0, 101], [0, 40, 80, 101]):
        one, three = (ChunkedRows(InMemory(matrix, edges)).on(Workers(n)) for n in (1, 3))
        for name, arguments in (("dot", (V[:7],)), ("t_dot", (V,)), ("t_dot", (V, BEFORE)), ("sq_norms", ())):
            found = getattr(one, name)(*arguments)
            np.testing.assert_array_equal(found, getattr(three, name)(*arguments))
            np.testing.assert_array_equal(found, getattr(one, name)(*arguments))  # sums that are used again
            if len(edges) == 2 or name != "t_dot":
                np.testing.assert_array_equal(found, getattr(in_memory, name)(*arguments))


@pytest.mark.parametrize("form", FORMS)
def test_chunks_that_are_held_give_the_same_bits(form):
    matrix, edges = FORMS[form](X), [0, 30, 60, 80, 101]
    plain = ChunkedRows(InMemory(matrix, edges))
    for n_held in range(1, 5):
        chunks = InMemory(matrix, edges, n_held)
        rows = ChunkedRows(chunks, Workers(2))
        for name, arguments in (("dot", (V[:7],)), ("t_dot", (V,)), ("t_dot", (V, BEFORE)), ("sq_norms", ())):
            np.testing.assert_array_equal(getattr(rows, name)(*arguments), getattr(plain, name)(*arguments))
        by_reader = {k for k, name in chunks.read_by if name == "softmargin-read_0"}
        assert by_reader == set(range(n_held, 4))


def test_the_next_chunk_is_fetched_meanwhile():
    chunks = InMemory(X, [0, 40, 80, 101])
    visits = iter(ChunkedRows(chunks).blocks())
    next(visits)
    deadline = time.monotonic() + 30
    while len(chunks.read_by) < 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert [k for k, _ in chunks.read_by] == [0, 1]
    assert {name for _, name in chunks.read_by} == {"softmargin-read_0"}
    visits.close()
    assert "softmargin-read_0" not in {thread.name for thread in threading.enumerate()}


def test_what_goes_wrong_in_the_reading_thread_is_raised():
    chunks = InMemory(X, [0, 40, 80, 101])
    chunks.parts[2] = None
    with pytest.raises(AttributeError):
        ChunkedRows(chunks).dot(V[:7])


def test_a_check_between_blocks_ends_the_work():
    chunks = InMemory(X, [0, 40, 80, 101])
    workers = Workers(1)

    def check():
        if len(chunks.read_by) > 1:
            raise Abandoned

    rows = ChunkedRows(chunks, workers)
    with workers.checking(check), pytest.raises(Abandoned):
        rows.t_dot(V)
    np.testing.assert_allclose(rows.t_dot(V), X.T @ V, atol=1e-12)
