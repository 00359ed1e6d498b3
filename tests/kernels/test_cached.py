"""Rows in memory: right after any history of evictions and failures, counted, and shared with parts."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from softmargin.core.errors import SoftmarginError
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.kernels import cached
from softmargin.kernels.cached import CachedRows, RowStore, WholeMatrix
from softmargin.kernels.functions import RBF, Linear
from softmargin.kernels.matrix import DirectRows
from softmargin.kernels.precomputed import PrecomputedRows

N = 30
X = np.random.default_rng(0).integers(-3, 4, (N, 4)).astype(np.float64)  # products are exact, in float32 too
K = X @ X.T


def source(dtype=np.float32, workers=None):
    return DirectRows(as_rows(X), Linear(), dtype, workers)


def room_for(rows, n=N, dtype=np.float32):
    return rows * n * np.dtype(dtype).itemsize


def index_of(*rows):
    return np.array(rows, dtype=np.int64)


def use_as_compiled_loops_do(store, row):
    store.lru.stamp[store.lru.slot_of[row]] = store.lru.clock[0]
    store.lru.clock[0] += 1


def check_slab(store, exact):
    """Every row that is said to be there is there."""
    there = np.flatnonzero(store.lru.slot_of >= 0)
    np.testing.assert_array_equal(store.slab[store.lru.slot_of[there]], exact[there])


class Fails(DirectRows):
    """While `error` is set it raises that, and leaves garbage in the first of the rows it was asked for."""

    error: BaseException | None = None

    def fill(self, index, out, slots):
        super().fill(index, out, slots)
        if self.error is not None:
            out[slots[0]] = np.nan
            raise self.error


class TestCachedRows:
    @settings(max_examples=40)
    @given(capacity=st.integers(2, 9), calls=st.lists(st.lists(st.integers(0, N - 1), unique=True), max_size=25))
    def test_rows_are_right_after_any_history(self, capacity, calls):
        store = CachedRows(source(), room_for(capacity))
        hits = misses = 0
        for rows in calls:
            index = np.array(rows[:capacity], dtype=np.int64)
            known = int((store.lru.slot_of[index] >= 0).sum())
            slots = store.fetch(index)
            np.testing.assert_array_equal(store.slab[slots], K[index])
            hits, misses = hits + known, misses + index.size - known
            assert (store.hits, store.misses, store.n_evaluations) == (hits, misses, misses * N)
            check_slab(store, K)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_it_is_the_matrix_of_its_source(self, dtype):
        inner = DirectRows(as_rows(X), RBF(0.1), dtype)
        store = CachedRows(inner, 1e6)
        assert (store.n, store.dtype, store.is_convex, store.capacity) == (N, dtype, True, N)
        np.testing.assert_array_equal(store.diag(), inner.diag())
        np.testing.assert_array_equal(store.row_errors(), inner.row_errors())

    def test_room_is_counted_in_rows(self):
        assert CachedRows(source(), room_for(7) + 3).capacity == 7
        assert CachedRows(source(np.float64), room_for(7)).capacity == 3
        assert CachedRows(source(), room_for(1000)).capacity == N
        assert CachedRows(source(), np.inf).capacity == N

    @pytest.mark.parametrize("max_bytes", [0, 1, room_for(2) - 1])
    def test_less_than_two_rows(self, max_bytes):
        with pytest.raises(SoftmarginError, match=f"{max_bytes} bytes.*120 each: set cache_bytes to at least 240"):
            CachedRows(source(), max_bytes)
        assert CachedRows(source(), room_for(2)).capacity == 2

    def test_a_matrix_of_one_row_needs_no_second(self):
        store = CachedRows(DirectRows(as_rows(X[:1]), Linear(), np.float32), 4)
        assert store.slab[store.fetch(index_of(0))].item() == K[0, 0]

    def test_more_rows_than_there_is_room_for(self):
        store = CachedRows(source(), room_for(3))
        with pytest.raises(SoftmarginError, match="4 rows do not fit into a cache of 3"):
            store.fetch(np.arange(4))
        assert (store.hits, store.misses, store.n_evaluations) == (0, 0, 0)

    @pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt()])
    def test_a_failing_source_leaves_no_half_written_row(self, error):
        inner = Fails(as_rows(X), Linear(), np.float32)
        store = CachedRows(inner, room_for(4))
        store.fetch(index_of(0, 1, 2, 3))
        inner.error = error
        with pytest.raises(type(error)):
            store.fetch(index_of(2, 10, 11))
        assert store.lru.cached().tolist() == [2, 3]
        check_slab(store, K)
        assert (store.hits, store.misses) == (0, 4)
        inner.error = None
        slots = store.fetch(index_of(10, 2, 11))
        np.testing.assert_array_equal(store.slab[slots], K[[10, 2, 11]])
        assert sorted(store.lru.cached()) == [2, 3, 10, 11]  # the slots of the failure were free

    def test_rows_come_from_the_cache_and_are_not_kept(self):
        store = CachedRows(source(), room_for(3))
        store.fetch(index_of(5, 6))
        before = store.n_evaluations
        np.testing.assert_array_equal(store.rows(index_of(6, 7, 5)), K[[6, 7, 5]])
        assert store.n_evaluations == before + N
        columns = index_of(3, 3, 29)
        np.testing.assert_array_equal(store.rows(index_of(7, 6), columns), K[np.ix_([7, 6], columns)])
        assert store.n_evaluations == before + N + 3
        assert store.rows(index_of()).shape == (0, N)
        assert store.rows(index_of(6), index_of()).shape == (1, 0)
        assert sorted(store.lru.cached()) == [5, 6]
        out = np.zeros((4, N), np.float32)
        store.fill(index_of(6, 8), out, index_of(3, 1))
        np.testing.assert_array_equal(out[[3, 1]], K[[6, 8]])
        assert not out[[0, 2]].any()

    @pytest.mark.parametrize("cached_rows", [[], [3], [3, 8, 9, 20], range(N)])
    @pytest.mark.parametrize("support", [[], [3], [3, 4, 20], range(0, N, 2), range(N)])
    def test_product(self, support, cached_rows, monkeypatch):
        monkeypatch.setattr(cached, "_COLUMNS", 7)
        monkeypatch.setattr(cached, "_SCRATCH_BYTES", room_for(3))
        store = CachedRows(source(), 1e6)
        store.fetch(np.array(cached_rows, dtype=np.int64))
        before = store.n_evaluations
        beta = np.zeros(N)
        beta[list(support)] = np.arange(1.0, len(support) + 1)
        np.testing.assert_array_equal(store.product(beta), K @ beta)
        assert store.n_evaluations == before + len(set(support) - set(cached_rows)) * N
        assert (store.hits, store.misses) == (0, len(cached_rows))

    def test_product_sums_in_double_precision(self):
        rng = np.random.default_rng(1)
        rows = rng.standard_normal((2100, 3))  # more than two parts of a row sum
        store = CachedRows(DirectRows(as_rows(rows), RBF(0.5), np.float32), 1e9)
        support = np.arange(0, 2100, 30)
        exact = store.slab[store.fetch(support)].astype(np.float64)
        beta = np.zeros(2100)
        beta[support] = rng.standard_normal(support.size)
        np.testing.assert_allclose(store.product(beta), beta[support] @ exact, rtol=0, atol=1e-13)

    def test_every_number_of_threads_gives_the_same_bits(self, monkeypatch):
        monkeypatch.setattr(cached, "_COLUMNS", 7)
        beta = np.random.default_rng(2).standard_normal(N)
        bits = set()
        for threads in (1, 2, 3):
            store = CachedRows(DirectRows(as_rows(sp.csr_array(X / 3)), RBF(0.1)), 1e6, Workers(threads))
            store.fetch(np.arange(10))
            bits.add(store.product(beta).tobytes())
        assert len(bits) == 1

    def test_add(self):
        store = CachedRows(source(), room_for(9))
        slots = store.fetch(np.arange(9))
        for n_rows in range(10):
            total = np.ones(N)
            store.add(slots[:n_rows], np.arange(1.0, n_rows + 1), total)
            np.testing.assert_array_equal(total, 1.0 + np.arange(1.0, n_rows + 1) @ K[:n_rows])


class TestNarrow:
    def test_it_starts_with_what_is_known(self):
        store = CachedRows(source(), room_for(6))
        store.fetch(index_of(0, 4, 9, 12))
        index = index_of(9, 2, 0, 7, 4, 25, 26, 27)
        part = store.narrow(index)
        exact = K[np.ix_(index, index)]
        assert isinstance(part, CachedRows)
        assert sorted(part.lru.cached()) == [0, 2, 4]
        assert part.capacity == index.size  # shorter rows: more of them fit
        check_slab(part, exact)
        assert (part.hits, part.misses, part.n_evaluations) == (0, 0, 0)
        np.testing.assert_array_equal(part.slab[part.fetch(index_of(1, 2))], exact[[1, 2]])
        assert (part.hits, part.misses) == (1, 1)
        assert part.n_evaluations == index.size
        assert store.n_evaluations == 4 * N + index.size
        part.slab[:] = np.nan
        check_slab(store, K)  # a copy

    def test_recency_is_kept(self):
        store = CachedRows(source(), room_for(5))
        for row in (0, 1, 2, 3, 4):
            store.fetch(index_of(row))
        for row in (1, 0, 3):
            use_as_compiled_loops_do(store, row)
        index = np.flatnonzero(np.arange(N) != 2)  # 29 rows: still five fit
        part = store.narrow(index)
        assert part.capacity == 5
        names = dict(enumerate(index.tolist()))
        gone = []
        for new in (10, 11, 12, 13, 14):
            before = {names[row] for row in part.lru.cached()}
            part.fetch(index_of(new))
            gone += sorted(before - {names[row] for row in part.lru.cached()})
        assert gone == [4, 1, 0, 3]  # the fifth slot was free

    def test_the_rows_used_last_are_carried_over(self):
        store = WholeMatrix(K, room_for(3, dtype=np.float64))
        for row in (17, 5, 23):
            use_as_compiled_loops_do(store, row)
        part = store.narrow(np.arange(1, N))
        assert part.capacity == 3
        assert sorted(part.lru.cached() + 1) == [5, 17, 23]
        check_slab(part, K[1:, 1:])

    def test_narrow_again(self):
        first, second = index_of(8, 3, 20, 11, 29), index_of(4, 0, 2)
        for store in (CachedRows(source(), 1e6), WholeMatrix(K, 1e6)):
            store.fetch(index_of(8, 20))
            part = store.narrow(first).narrow(second)
            chosen = first[second]
            exact = K[np.ix_(chosen, chosen)]
            check_slab(part, exact)
            np.testing.assert_array_equal(part.slab[part.fetch(np.arange(3))], exact)
            np.testing.assert_array_equal(part.diag(), exact.diagonal())
            beta = np.array([1.0, 0.0, -2.0])
            np.testing.assert_array_equal(part.product(beta), exact @ beta)

    def test_a_part_that_fits_beside_the_rows_leaves_them_there(self):
        store = CachedRows(source(), room_for(6))
        store.fetch(index_of(0, 4))
        part = store.narrow(index_of(4, 0, 7))
        assert sorted(store.lru.cached()) == [0, 4]
        assert not np.shares_memory(part.slab, store.slab)
        assert store.n_cached * N + part.slab.size <= 6 * N
        check_slab(store, K)

    def test_else_it_takes_their_memory_and_gives_it_back(self):
        store, slots = CachedRows(source(), room_for(6)), index_of(0, 4, 9, 12, 20, 29)
        store.fetch(slots)
        before, index = store.slab, index_of(9, 2, 0, 7, 4, 25, 26, 27, 29, 1)
        part = store.narrow(index)
        assert np.shares_memory(part.slab, before)
        assert store.n_cached == 0
        assert sorted(index[part.lru.cached()]) == [0, 4, 9, 29]
        check_slab(part, K[np.ix_(index, index)])
        part.fetch(index_of(1, 3))  # the rows 2 and 7
        smaller = index_of(0, 1, 2, 3, 4)
        again = part.narrow(smaller)
        assert part.n_cached == 0 or not np.shares_memory(again.slab, part.slab)
        active, rows = index[smaller], index_of(4, 2, 13, 9)
        aside = np.setdiff1d(np.arange(N), active)
        found = np.full((N, aside.size), np.nan)
        for some, values in store.widened(again, active, rows, aside):
            found[some] = values
        np.testing.assert_array_equal(found[rows], K[np.ix_(rows, aside)])
        check_slab(store, K)
        check_slab(again, K[np.ix_(active, active)])
        if np.shares_memory(store.slab, before):
            assert sorted(store.lru.cached()) == [2, 4, 9]  # those of `rows` that the part had
            assert again.n_cached == 0
        np.testing.assert_array_equal(again.slab[again.fetch(smaller)], K[np.ix_(active, active)])
        check_slab(store, K)

    @pytest.mark.parametrize("n_known", [1, 5, 6])
    def test_back_and_forth(self, n_known):
        store = CachedRows(source(), room_for(6))
        active = np.arange(0, N, 2)
        aside = np.arange(1, N, 2)
        for _ in range(3):
            store.fetch(np.arange(n_known))
            part = store.narrow(active)
            part.fetch(index_of(14, 3, 9))
            rows = np.arange(N)
            total = np.zeros(aside.size)
            for _some, values in store.widened(part, active, rows, aside):
                total += values.sum(axis=0)
            np.testing.assert_allclose(total, K[:, aside].sum(axis=0), rtol=1e-12)
            check_slab(store, K)
            assert store.slab.shape == (6, N)

    def test_looking_only_leaves_the_part_its_rows(self):
        store = CachedRows(source(), room_for(6))
        store.fetch(np.arange(6))
        active, aside = np.arange(20), np.arange(20, N)
        part = store.narrow(active)
        for some, values in store.widened(None, active, index_of(3, 25), aside):
            np.testing.assert_array_equal(values, K[np.ix_(some, aside)])
        assert part.n_cached == 6
        check_slab(part, K[:20, :20])

    def test_nothing_is_left(self):
        store = CachedRows(source(), room_for(4))
        store.fetch(index_of(1, 2))
        part = store.narrow(index_of())
        assert (part.n, part.capacity) == (0, 0)
        assert part.product(np.empty(0)).shape == (0,)


class TestWholeMatrix:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_used_in_place(self, dtype, order):
        matrix = K.astype(dtype, order=order)
        store = WholeMatrix(matrix, 1e6)
        assert isinstance(store, RowStore)
        assert np.shares_memory(store.slab, matrix)
        assert (store.n, store.dtype, store.capacity, store.is_convex) == (N, dtype, N, False)
        self.check(store)

    def test_read_only_memory_map(self, tmp_path):
        np.save(tmp_path / "K.npy", K.astype(np.float32))
        matrix = np.load(tmp_path / "K.npy", mmap_mode="r")
        store = WholeMatrix(matrix, 1e6)
        assert np.shares_memory(store.slab, matrix)
        self.check(store)

    def check(self, store):
        index = index_of(7, 29, 0)
        np.testing.assert_array_equal(store.slab[store.fetch(index)], K[index])
        np.testing.assert_array_equal(store.rows(index, index), K[np.ix_(index, index)])
        np.testing.assert_array_equal(store.diag(), K.diagonal())
        assert store.diag().dtype == np.float64
        beta = np.arange(-15.0, 15.0)
        np.testing.assert_array_equal(store.product(beta), K @ beta)
        part = store.narrow(index)
        np.testing.assert_array_equal(part.slab[part.fetch(np.arange(3))], K[np.ix_(index, index)])
        assert (store.hits, store.misses, store.n_evaluations) == (3, 0, 0)  # looking up is not computing
        assert (part.hits, part.misses, part.n_evaluations) == (3, 0, 0)


class TestPrecomputedRows:
    def test_rows_of_a_part(self):
        index = index_of(12, 4, 28, 7)
        part = PrecomputedRows(K).narrow(index)
        exact = K[np.ix_(index, index)]
        assert (part.n, part.dtype) == (4, np.float64)
        np.testing.assert_array_equal(part.rows(np.arange(4)), exact)
        np.testing.assert_array_equal(part.rows(index_of(3, 1), index_of(0)), exact[[3, 1]][:, [0]])
        np.testing.assert_array_equal(part.diag(), exact.diagonal())
        out = np.zeros((3, 4))
        part.fill(index_of(2, 1), out, index_of(0, 2))
        np.testing.assert_array_equal(out, [exact[2], np.zeros(4), exact[1]])
        assert part.rows(index_of()).shape == (0, 4)
        assert part.n_evaluations == 0

    def test_rows_are_copies(self):
        matrix = K.copy()
        assert not np.shares_memory(PrecomputedRows(matrix).rows(index_of(0)), matrix)
