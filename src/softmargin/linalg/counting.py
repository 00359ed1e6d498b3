"""Counts of ordered pairs in O(n log n), without forming a pair: for ranking problems and for measures alike.

A pair (i, j) has y_i > y_j, both rows in the same query, and the weight s_i s_j times that of the query. At scores f it
is active if f_i - f_j < margin. With c+_i the weight of the active pairs in which row i is the upper one, and c-_i of
those in which it is the lower one, what is counted is

    net_i = c+_i - c-_i          total = sum_i c+_i = sum_i c-_i

from which follows everything that is linear in the scores: for any vector x, the sum of x_i - x_j over the active pairs
is sum_i net_i x_i, and the sum of 1 - (f_i - f_j) is total - sum_i net_i f_i.

Rows are arranged once in the order of their targets (slots). Merge sort by score, from parts of neighbouring targets
up, then meets at every node two lists, sorted by score, of lower and of higher targets: two pointers count between them
before they are merged. A group of equal targets is sorted without counting. So the work is that of one merge sort,
whatever the number of distinct targets; with two it is two sorts and one count.

    plan       queries -> trees of nodes; small subtrees are cut into jobs of about the same size, the large nodes go
               level by level
    count      chunks of large groups are sorted by NumPy, then all jobs, then the large nodes

The difference f_i - f_j is monotone in both scores also when rounded, so that what is counted is exactly the set of
pairs for which the floating-point comparison `f_i - f_j < margin` holds. Counts are exact if all weights are 1; else
they are sums of positive numbers in an order that the data fix, so that threads do not change a bit.

Reference: T. Joachims, Training Linear SVMs in Linear Time, KDD 2006, Algorithm 2, computes c+ and c- in one pass over
the sorted rows for every rank. Departs from it: one merge sort for any number of ranks; weights; queries.
"""

from collections.abc import Sequence
from math import fsum, inf, nextafter
from typing import Any, NamedTuple

import numpy as np

_LEAF = 32  # up to here pairs are counted one by one
_LEAST_CHUNK = 1_024  # groups from here on are sorted by NumPy
_CHUNK = 262_144  # in pieces of up to this many
_JOB_SLOTS = 65_536
_NONE = np.empty(0)


class _OneThread:
    """What counting needs of a team of threads, without any."""

    def map(self, function: Any, blocks: Sequence[tuple]) -> list:
        return [function(*block) for block in blocks]


class Counts(NamedTuple):
    """net of every slot (of every row, where rows were given), and the total weight of the active pairs."""

    net: np.ndarray
    total: float


class Orders(NamedTuple):
    """Weights of the pairs that the scores put in the order of the targets, in the other order, and in none."""

    concordant: float
    discordant: float
    tied: float


class Pairs:
    """The pairs of rows with these targets, arranged once for many counts.

    Parameters
    ----------
    targets : array of n numbers
        Any finite numbers; only their order within a query counts.
    queries : array of n integers 0 .. Q - 1, optional
        Rows of different queries make no pairs. In any order. Default: one query.
    weights : array of n numbers >= 0, optional
        s; a row of weight 0 takes part in no pair.
    query_weights : array of Q numbers >= 0, optional
    per_query : bool
        Divide the weights of a query's pairs by their sum, so that each query counts as much as its weight says.

    Attributes
    ----------
    n_rows, n_queries : int
        As given.
    n_pairs : float
        The weight of all pairs; 0 if there are none.
    rows : array of int
        The row of each slot. Rows that are in no pair have no slot.
    """

    def __init__(
        self,
        targets: np.ndarray,
        queries: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        query_weights: np.ndarray | None = None,
        *,
        per_query: bool = False,
    ) -> None:
        targets = np.asarray(targets, dtype=np.float64)
        self.n_rows = targets.size
        queries = np.zeros(self.n_rows, dtype=np.int64) if queries is None else np.asarray(queries, dtype=np.int64)
        self.n_queries = int(queries.max(initial=-1)) + 1
        s = np.ones(self.n_rows) if weights is None else np.asarray(weights, dtype=np.float64)
        factors = np.ones(self.n_queries) if query_weights is None else np.asarray(query_weights, dtype=np.float64)

        present = np.flatnonzero((s > 0.0) & (factors[queries] > 0.0))
        rows = present[np.lexsort((targets[present], queries[present]))]
        y, q = targets[rows], queries[rows]
        first = np.flatnonzero(_changes(q))
        sizes = np.diff(first, append=rows.size)
        keep = np.repeat(y[first] < y[first + sizes - 1], sizes)  # not the queries whose targets are all the same
        rows, y, q = rows[keep], y[keep], q[keep]
        self.rows = rows
        self._s = _NONE if (s[rows] == 1.0).all() else s[rows]

        is_first = _changes(q)
        first = np.flatnonzero(is_first)
        sizes = np.diff(first, append=rows.size)
        self._start = np.repeat(first.astype(np.int32), sizes) if first.size > 1 else np.empty(0, dtype=np.int32)
        is_new = is_first | _changes(y)
        group_start = np.flatnonzero(is_new)
        self._group = np.cumsum(is_new, dtype=np.int32)
        self._plan(np.flatnonzero(np.append(is_first[group_start], True)), np.append(group_start, rows.size))

        _, totals = self._count(np.zeros(rows.size), inf, _OneThread())
        query_of_node = np.searchsorted(first, np.append(self._nodes[:, 0], self._large[:, 0]), side="right") - 1
        n_pairs = np.bincount(query_of_node, totals, first.size)
        factors = factors[q[first]]
        if per_query:
            factors = factors / n_pairs
        is_plain = bool((factors == 1.0).all())
        self._factor = _NONE if is_plain else np.repeat(factors, sizes)
        self._factor_of_node = _NONE if is_plain else factors[query_of_node]
        self.n_pairs = fsum(factors * n_pairs)

    @property
    def has_weights(self) -> bool:
        """Whether counts are sums of weights; else they are whole numbers, and exact."""
        return bool(self._s.size or self._factor.size)

    def _plan(self, first_group: np.ndarray, group_start: np.ndarray) -> None:
        from softmargin.linalg import _counting

        sizes = _LEAF, _LEAST_CHUNK, _CHUNK, _JOB_SLOTS
        counted = _counting.plan(
            first_group, group_start, *sizes, np.empty((0, 4), np.int64), np.empty((0, 2), np.int64)
        )
        nodes, chunks = (np.empty((n, k), dtype=np.int64) for n, k in zip(counted, (4, 2), strict=True))
        _counting.plan(first_group, group_start, *sizes, nodes, chunks)
        self._chunks = [(int(lo), int(hi)) for lo, hi in chunks]
        length = nodes[:, 2] - nodes[:, 0]
        self._nodes = np.ascontiguousarray(nodes[length <= _JOB_SLOTS])
        self._large = np.ascontiguousarray(nodes[length > _JOB_SLOTS])
        self._jobs = _jobs(self._nodes)
        self._levels = _levels(self._large)
        self._slots = np.arange(self.rows.size, dtype=np.int32)
        self._spare_lists: list[tuple[np.ndarray, ...]] = []  # workspace; a list, so that threads do not share
        self._blocks = [(lo, min(lo + _JOB_SLOTS, self.rows.size)) for lo in range(0, self.rows.size, _JOB_SLOTS)]

    def take(self, x: np.ndarray) -> np.ndarray:
        """A vector over rows, in slot order."""
        return np.asarray(x, dtype=np.float64).take(self.rows)

    def spread(self, x: np.ndarray) -> np.ndarray:
        """A vector over slots, in row order; 0 for rows that are in no pair."""
        out = np.zeros(self.n_rows)
        out[self.rows] = x
        return out

    def count(self, f: np.ndarray, margin: float = 1.0, workers: Any = None) -> Counts:
        """net and total at finite scores f, given in slot order."""
        net, totals = self._count(np.ascontiguousarray(f, dtype=np.float64), margin, workers or _OneThread())
        if self._factor.size:
            net *= self._factor
            totals *= self._factor_of_node
        return Counts(net, float(totals.sum()))

    def _count(self, f: np.ndarray, margin: float, workers: Any) -> tuple[np.ndarray, np.ndarray]:
        """net without the weights of the queries, and what each node counted."""
        from softmargin.linalg import _counting

        lists = self._spare_lists.pop() if self._spare_lists else self._new_lists()
        key, ident, net = lists[:3]
        n_small = len(self._nodes)
        totals = np.empty(n_small + len(self._large))

        def begin(lo: int, hi: int) -> None:
            key[lo:hi], ident[lo:hi], net[lo:hi] = f[lo:hi], self._slots[lo:hi], 0.0

        def job(nodes: np.ndarray, first: int, last: int, totals: np.ndarray) -> None:
            _counting.run(nodes, first, last, margin, self._s, self._group, *lists, totals)

        workers.map(begin, self._blocks)
        workers.map(lambda lo, hi: _sort(f, lo, hi, key, ident), self._chunks)
        workers.map(lambda first, last: job(self._nodes, first, last, totals), self._jobs)
        for level in self._levels:
            workers.map(lambda t: job(self._large, t, t + 1, totals[n_small:]), level)
        out = np.empty(f.size)
        workers.map(lambda lo, hi: _counting.scatter(net, ident, lo, hi, out), self._blocks)
        self._spare_lists.append(lists)
        return out, totals

    def _new_lists(self) -> tuple[np.ndarray, ...]:
        n = self.rows.size
        return tuple(np.empty(n, dtype) for dtype in 2 * (np.float64, np.int32, np.float64))

    def dot(self, net: np.ndarray, x: np.ndarray, workers: Any = None) -> float:
        """sum_i net_i x_i in slot order, for net of a count: x is measured from one of each query, net adds up to 0."""
        from softmargin.linalg import _counting

        workers = workers or _OneThread()
        return fsum(workers.map(lambda lo, hi: _counting.dot_from(net, x, self._start, lo, hi), self._blocks))

    def orders(self, f: np.ndarray, workers: Any = None) -> Orders:
        """How many pairs the finite scores f, in slot order, put in which order."""
        discordant = self.count(f, 0.0, workers).total
        not_concordant = self.count(f, nextafter(0.0, 1.0), workers).total  # a difference below this is at most 0
        # Rounding of sums of weights must not make a count negative.
        return Orders(max(0.0, self.n_pairs - not_concordant), discordant, max(0.0, not_concordant - discordant))


def pair_counts(
    scores: np.ndarray,
    targets: np.ndarray,
    queries: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    margin: float = 1.0,
) -> Counts:
    """net over rows, and the total, of the pairs that are active at these scores; see `Pairs` for the arguments."""
    pairs = Pairs(targets, queries, weights)
    net, total = pairs.count(pairs.take(scores), margin)
    return Counts(pairs.spread(net), total)


def ordered_pairs(
    scores: np.ndarray,
    targets: np.ndarray,
    queries: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    query_weights: np.ndarray | None = None,
    *,
    per_query: bool = False,
) -> Orders:
    """Weights of the pairs in the order of their targets, in the other order, and tied; see `Pairs`.

    (concordant + tied / 2) / (sum of all three) is the share of correctly ordered pairs: with two distinct targets the
    area under the ROC curve.
    """
    pairs = Pairs(targets, queries, weights, query_weights, per_query=per_query)
    return pairs.orders(pairs.take(scores))


def _changes(x: np.ndarray) -> np.ndarray:
    """Whether an entry differs from the one before; the first one does."""
    out = np.ones(x.size, dtype=bool)
    out[1:] = x[1:] != x[:-1]
    return out


def _jobs(nodes: np.ndarray) -> list[tuple[int, int]]:
    """Ranges of nodes, whole trees, of about the same number of slots."""
    from softmargin.linalg import _counting

    ends = np.flatnonzero((nodes[:, 3] & _counting.ENDS > 0) | (nodes[:, 3] & _counting.SORTS == 0))
    slots = np.cumsum(nodes[ends, 2] - nodes[ends, 0])
    cuts = ends[np.flatnonzero(np.diff(slots // _JOB_SLOTS, append=-1))] + 1
    return [(int(lo), int(hi)) for lo, hi in zip([0, *cuts[:-1]], cuts, strict=True)] if len(cuts) else []


def _levels(nodes: np.ndarray) -> list[list[tuple[int]]]:
    """Large nodes by their height above the small ones."""
    levels: list[list[tuple[int]]] = []
    below: list[tuple[int, int]] = []  # (lo, height) of nodes whose parent has not come yet
    for t, lo in enumerate(nodes[:, 0].tolist()):
        height = 0
        while below and below[-1][0] >= lo:
            height = max(height, below.pop()[1] + 1)
        below.append((lo, height))
        if height == len(levels):
            levels.append([])
        levels[height].append((t,))
    return levels


def _sort(f: np.ndarray, lo: int, hi: int, key: np.ndarray, ident: np.ndarray) -> None:
    """Sort the slots lo .. hi by f into key and ident.

    NumPy sorts numbers several times faster than it finds their order, so the slots travel in the last bits of f.
    """
    from softmargin.linalg import _counting

    mask = (1 << (hi - lo - 1).bit_length()) - 1
    packed = f[lo:hi].view(np.int64) & ~mask
    packed |= np.arange(hi - lo)
    packed.view(np.float64).sort()
    if not _counting.unpack(packed, mask, f, lo, key, ident):
        order = np.argsort(f[lo:hi], kind="stable")
        key[lo:hi] = f[lo:hi].take(order)
        ident[lo:hi] = order + lo
