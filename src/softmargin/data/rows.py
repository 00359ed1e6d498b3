"""How rows are reached: the two contracts that storages keep, and the products of those in memory.

`Products` is what linear problems need; `RowAccess` is what every storage in memory has beside that.

A matrix is handed to compiled code as flat arrays (`Flat`); an empty `indptr` means dense, so one compiled function
serves every storage. Blocks of rows depend on the data alone, never on the number of threads.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from math import log2
from typing import Any, NamedTuple, Protocol, TypeGuard, runtime_checkable

import numpy as np

from softmargin.core.threads import Workers

# A block of BLOCK_VALUES is small enough that an interrupt waits for milliseconds, and large enough that calling it
# costs nothing. Data of a few such blocks are cut into up to FINE_BLOCKS blocks of FINE_VALUES, so that the threads end
# together. Data with fewer than FEW_VALUES stay one block: waking a thread would take longer than it saves.
BLOCK_VALUES = 1 << 20
FINE_VALUES = 1 << 18
FEW_VALUES = 1 << 19
FINE_BLOCKS = 32
COUNTED_ROWS = 2048  # how many rows a difference reads is estimated from about this many rows
BLOCK_COLUMNS = 1 << 16
# Partial sums of X'v: a fixed number, so that the bits do not depend on the threads.
MAX_PARTIAL_SUMS = 16
# Their share of the data: clearing and adding them up must not take longer than the product. Two there may always be.
PARTIAL_SHARE = 0.02
_ZEROS = np.empty(0)  # what compiled code takes for a vector of zeros


@runtime_checkable
class Products(Protocol):
    """Rows x_1 .. x_n of a data matrix X that are reached through products alone.

    This is all that linear problems, their judges and cutting planes need, so the rows may lie on disk or on other
    machines. Sums are in float64 whatever the storage.
    """

    @property
    def n_rows(self) -> int: ...
    @property
    def n_cols(self) -> int: ...
    def dot(self, w: np.ndarray) -> np.ndarray:
        """X w."""
        ...

    def t_dot(self, v: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        """X' v, or X' (v - before); rows where that is zero are not touched (in storage by columns they are read)."""
        ...

    def sq_norms(self) -> np.ndarray:
        """Squared Euclidean norm of each row."""
        ...

    def blocks(self) -> "Iterator[tuple[slice, Products]]":
        """Consecutive parts in storage order. Parts with `RowAccess` let the judge use more digits where it must."""
        ...

    def on(self, workers: Workers) -> "Products":
        """The same rows, whose products run on `workers`."""
        ...


@runtime_checkable
class Labelled(Products, Protocol):
    """Rows that bring with them what is to be learned from them, such as a store on disk."""

    @property
    def feature_names(self) -> Sequence[str] | None:
        """The names of the columns, if they have any."""
        ...

    def targets(self) -> dict[str, np.ndarray | None]:
        """y, sample_weight and qid, each with an entry for every row, or None if it is not known."""
        ...


class RowAccess(Products, Protocol):
    """Rows in memory, where single rows and entries can be reached: kernels, SGD, Pegasos, renumbered columns."""

    def take(self, index: np.ndarray | slice) -> "RowAccess":
        """The rows of `index`, as a copy."""
        ...

    def cross(self, other: "RowAccess") -> np.ndarray:
        """X Z' for other rows Z, as a dense float64 array."""
        ...

    def densified(self, index: np.ndarray | slice, dtype: Any) -> np.ndarray:
        """The rows of `index` as a dense row-major array of the given type."""
        ...

    def native(self) -> Any:
        """The array or CSR matrix behind."""
        ...

    def blocks(self) -> "Iterator[tuple[slice, RowAccess]]":
        """Consecutive parts in storage order."""
        ...

    def on(self, workers: Workers) -> "RowAccess":
        """The same rows, whose products run on `workers`."""
        ...

    @property
    def flat(self) -> "Flat":
        """The matrix as flat arrays, for compiled loops that visit single rows."""
        ...


Rows = RowAccess


def has_row_access(rows: Products) -> TypeGuard[RowAccess]:
    """Whether single rows can be reached. `flat` is looked up without being computed: it may be a copy of the data."""
    return getattr(type(rows), "flat", None) is not None or getattr(rows, "__dict__", {}).get("flat") is not None


class Flat(NamedTuple):
    """A matrix as flat arrays: the arguments that every compiled product begins with."""

    values: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    n_rows: int
    n_cols: int
    fortran: bool


class FlatProducts:
    """X w and X' v of one `Flat` matrix, block by block. Light: copies share everything but the workers."""

    def __init__(self, flat: Flat) -> None:
        self.flat = flat
        self._spare: list[np.ndarray] = []  # for partial sums: pages of new memory cost more than adding to them
        self._sq_norms: np.ndarray | None = None

    @cached_property
    def row_blocks(self) -> list[tuple[int, int]]:
        """(lo, hi) of consecutive blocks of about the same number of stored values."""
        flat = self.flat
        if flat.n_rows == 0:
            return []
        n_blocks = n_row_blocks(flat.n_rows, flat.values.size)
        if n_blocks == 1:
            return [(0, flat.n_rows)]
        if flat.indptr.size:
            goals = np.linspace(0, flat.values.size, n_blocks + 1)
            edges = np.searchsorted(flat.indptr, goals)
            edges[0], edges[-1] = 0, flat.n_rows
            edges = np.unique(edges)
        else:
            edges = np.linspace(0, flat.n_rows, n_blocks + 1).astype(np.int64)
        return [(int(lo), int(hi)) for lo, hi in pairwise(edges)]

    @cached_property
    def groups(self) -> list[list[tuple[int, int]]]:
        """The row blocks in one to MAX_PARTIAL_SUMS groups, one partial sum of X'v each."""
        flat = self.flat
        n_groups = n_partial_sums(len(self.row_blocks), flat.values.nbytes + flat.indices.nbytes, flat.n_cols)
        return self.dealt(n_groups)

    def dealt(self, n_groups: int) -> list[list[tuple[int, int]]]:
        """The row blocks in groups, dealt out in turn: files are often sorted, and then rows to be left out lie side
        by side.
        """
        return [self.row_blocks[k::n_groups] for k in range(n_groups)]

    def dot(self, w: np.ndarray, workers: Workers) -> np.ndarray:
        """X w."""
        out = np.empty(self.flat.n_rows)
        workers.map(_call, self.dot_jobs(w, out))
        return out

    def dot_jobs(self, w: np.ndarray, out: np.ndarray) -> list[tuple]:
        """Calls that together write X w into `out`, for any number of threads."""
        from softmargin.data import _kernels

        w = np.ascontiguousarray(w, dtype=np.float64)
        return [(_kernels.dot, *self.flat, w, lo, hi, out) for lo, hi in self.row_blocks]

    def t_dot(
        self,
        v: np.ndarray,
        before: np.ndarray | None,
        workers: Workers,
        out: np.ndarray | None = None,
        beside: Sequence[tuple] = (),
    ) -> np.ndarray:
        """X' v or X' (v - before), into `out` if that is given; the threads do the calls of `beside` too."""
        total = np.empty(self.flat.n_cols) if out is None else out
        parts = [self._borrowed() for _ in self.groups[1:]]
        add_t_dot([(self, v, before)], [total, *parts], workers, beside, clear=True)
        add_up(total, parts, workers)
        self._spare += parts
        return total

    def values_changed(self, v: np.ndarray, before: np.ndarray) -> float:
        """About how many values X'(v - before) reads at least, judged from some of the rows; v and before included."""
        if not before.size:
            return float(self.flat.values.size)
        if 2 * v.size >= FEW_VALUES:
            return 2.0 * v.size
        some = slice(None, None, 1 + v.size // COUNTED_ROWS)
        share = np.count_nonzero(v[some] != before[some]) / max(v[some].size, 1)
        return 2.0 * v.size + share * self.flat.values.size

    def _borrowed(self) -> np.ndarray:
        try:
            return self._spare.pop()
        except IndexError:
            return np.empty(self.flat.n_cols)

    def sq_norms(self, workers: Workers) -> np.ndarray:
        """Squared norms of the rows. They are computed once: solvers and judges of every class ask for them."""
        from softmargin.data import _kernels

        if self._sq_norms is None:
            out = np.empty(self.flat.n_rows)
            workers.map(lambda lo, hi: _kernels.sq_norms(*self.flat, lo, hi, out), self.row_blocks)
            self._sq_norms = out
        return self._sq_norms.copy()


def n_row_blocks(n_rows: int, n_values: int) -> int:
    """How many blocks rows with so many stored values are cut into, at most."""
    n_fine = min(FINE_BLOCKS, -(-n_values // FINE_VALUES)) if n_values >= FEW_VALUES else 1
    return max(1, min(n_rows, max(-(-n_values // BLOCK_VALUES), n_fine)))


def n_partial_sums(n_blocks: int, n_bytes: int, n_cols: int) -> int:
    """How many partial sums of X'v so many blocks are worth; a power of two, so that few threads end together."""
    affordable = 2 ** round(log2(max(2.0, PARTIAL_SHARE * n_bytes / (8 * max(n_cols, 1)))))
    return max(1, min(MAX_PARTIAL_SUMS, n_blocks, affordable))


def add_t_dot(
    pieces: Sequence[tuple[FlatProducts, np.ndarray, np.ndarray | None]],
    sums: Sequence[np.ndarray],
    workers: Workers,
    beside: Sequence[tuple] = (),
    *,
    clear: bool = False,
) -> None:
    """Add X' v or X' (v - before) to `sums`, for each of the pieces (X, v, before); `clear` zeroes the sums first.

    Each sum takes a part of the row blocks of every piece. The threads do the calls of `beside` too.
    """
    from softmargin.data import _kernels

    given = [
        (
            products,
            np.ascontiguousarray(v, dtype=np.float64),
            _ZEROS if b is None else np.ascontiguousarray(b, np.float64),
        )
        for products, v, b in pieces
    ]
    groups = [products.dealt(len(sums)) for products, _, _ in given]

    def partial_sum(k: int, acc: np.ndarray) -> None:
        if clear:
            acc.fill(0.0)
        for (products, v, before), blocks in zip(given, groups, strict=True):
            for lo, hi in blocks[k]:
                workers.check()
                _kernels.t_dot(*products.flat, v, before, lo, hi, acc)

    jobs = [(partial_sum, k, acc) for k, acc in enumerate(sums)]
    is_little = not beside and sum(products.values_changed(v, b) for products, v, b in given) < FEW_VALUES
    workers.map(_call, [*jobs, *beside], alone=is_little)


def add_up(total: np.ndarray, parts: Sequence[np.ndarray], workers: Workers) -> None:
    """Add the parts to the total, always in their order, some columns at a time."""

    def add(lo: int, hi: int) -> None:
        for part in parts:
            total[lo:hi] += part[lo:hi]

    workers.map(add, [(lo, lo + BLOCK_COLUMNS) for lo in range(0, total.size, BLOCK_COLUMNS)] if parts else [])


def _call(function: Callable[..., None], *arguments: Any) -> None:
    function(*arguments)


class FlatRows:
    """The part of `RowAccess` that is the same for every storage: what `FlatProducts` computes on a team of threads."""

    def __init__(self, workers: Workers | None, products: FlatProducts) -> None:
        self._workers = workers or Workers(1)
        self._products = products
        self.flat = products.flat

    @property
    def products(self) -> FlatProducts:
        return self._products

    @property
    def n_rows(self) -> int:
        return self.flat.n_rows

    @property
    def n_cols(self) -> int:
        return self.flat.n_cols

    def dot(self, w: np.ndarray) -> np.ndarray:
        return self._products.dot(w, self._workers)

    def t_dot(self, v: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        return self._products.t_dot(v, before, self._workers)

    def sq_norms(self) -> np.ndarray:
        return self._products.sq_norms(self._workers)
