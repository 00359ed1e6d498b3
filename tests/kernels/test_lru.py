"""Which rows are kept: replayed against a twin that remembers everything in dictionaries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softmargin.core.errors import SoftmarginError
from softmargin.kernels.lru import LRU


class Twin:
    """The same cache, slow: the slots as a list of rows, and the last use of each row that is there."""

    def __init__(self, capacity):
        self.slots = [None] * capacity
        self.last_use = {}
        self.now = 0

    def place(self, index):
        self.now += 1
        missing = [k for k, row in enumerate(index) if row not in self.slots]
        for row in index:
            if row in self.slots:
                self.last_use[row] = self.now
        for_free = [slot for slot, row in enumerate(self.slots) if row is None]
        by_age = sorted(
            (self.last_use[row], slot) for slot, row in enumerate(self.slots) if row is not None and row not in index
        )
        given_away = sorted((for_free + [slot for _, slot in by_age])[: len(missing)])
        for slot, k in zip(given_away, missing, strict=True):
            self.last_use.pop(self.slots[slot], None)
            self.slots[slot] = index[k]
            self.last_use[index[k]] = self.now
        return [self.slots.index(row) for row in index], missing

    def use(self, row):
        self.now += 1
        self.last_use[row] = self.now

    def forget(self, index):
        for row in index:
            if row in self.slots:
                self.slots[self.slots.index(row)] = None
                del self.last_use[row]


def use_as_compiled_loops_do(lru, row):
    lru.stamp[lru.slot_of[row]] = lru.clock[0]
    lru.clock[0] += 1


def check_inverse(lru):
    """slot_of and owner say the same, and every stamp lies in the past."""
    there = np.flatnonzero(lru.slot_of >= 0)
    np.testing.assert_array_equal(lru.owner[lru.slot_of[there]], there)
    taken = np.flatnonzero(lru.owner >= 0)
    np.testing.assert_array_equal(lru.slot_of[lru.owner[taken]], taken)
    assert there.size == taken.size
    assert np.all(lru.stamp < lru.clock[0])
    assert np.all(lru.stamp[lru.owner < 0] == -1)


N = 9
MOVES = st.one_of(
    st.tuples(st.just("place"), st.lists(st.integers(0, N - 1), unique=True)),
    st.tuples(st.just("use"), st.lists(st.integers(0, N - 1), max_size=3)),
    st.tuples(st.just("forget"), st.lists(st.integers(0, N - 1), unique=True, max_size=3)),
)


@settings(max_examples=150)
@given(capacity=st.integers(1, N), moves=st.lists(MOVES, max_size=40))
def test_replayed_against_a_naive_twin(capacity, moves):
    lru, twin = LRU(N, capacity), Twin(capacity)
    for move, rows in moves:
        if move == "place":
            index = rows[:capacity]
            slots, missing = lru.place(np.array(index, dtype=np.int64))
            assert (slots.tolist(), missing.tolist()) == twin.place(index)
            assert lru.owner[slots].tolist() == index  # none of them pushed out another
        elif move == "use":
            for row in rows:
                if lru.slot_of[row] >= 0:
                    use_as_compiled_loops_do(lru, row)
                    twin.use(row)
        else:
            lru.forget(np.array(rows, dtype=np.int64))
            twin.forget(rows)
        assert [None if row < 0 else row for row in lru.owner.tolist()] == twin.slots
        assert lru.cached().tolist() == [row for row in twin.slots if row is not None]
        check_inverse(lru)


def test_unused_slots_are_handed_out_in_order():
    lru = LRU(20, 10)
    assert lru.place(np.array([7]))[0].tolist() == [0]
    assert lru.place(np.array([3, 7, 19]))[0].tolist() == [1, 0, 2]
    assert lru.place(np.arange(8, 13))[0].tolist() == [3, 4, 5, 6, 7]
    lru.forget(np.array([19, 3, 0]))
    assert lru.place(np.array([0, 1, 2]))[0].tolist() == [1, 2, 8]
    assert lru.capacity == 10


def test_the_row_used_least_recently_gives_way():
    lru = LRU(10, 3)
    for row in (0, 1, 2):
        lru.place(np.array([row]))
    use_as_compiled_loops_do(lru, 0)
    assert lru.place(np.array([5]))[0].tolist() == [1]
    assert sorted(lru.cached()) == [0, 2, 5]
    slots, missing = lru.place(np.array([2, 6, 7]))
    assert slots.tolist() == [2, 0, 1]
    assert missing.tolist() == [1, 2]


def test_more_rows_than_slots():
    lru = LRU(10, 3)
    with pytest.raises(SoftmarginError, match="4 rows do not fit into a cache of 3"):
        lru.place(np.arange(4))
    assert lru.cached().size == 0


def test_nothing_to_place():
    lru = LRU(0, 0)
    slots, missing = lru.place(np.empty(0, dtype=np.int64))
    assert slots.size == missing.size == 0
