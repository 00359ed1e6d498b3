"""Rows of a kernel matrix, a block at a time, and how they are computed.

A few left rows are made dense and multiplied with all right rows: by BLAS where these are dense, entry by entry where
they are sparse. The right rows are cut into tiles, which depend on the data alone: every number of threads gives the
same bits.
"""

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from softmargin.core.threads import Workers
from softmargin.data.precise import longest_row
from softmargin.data.rows import Rows
from softmargin.kernels.errors import EntryErrors, entry_errors, exact_entries, sizes_of
from softmargin.kernels.functions import RBF, Custom, Kernel, Laplacian, Polynomial, Sigmoid
from softmargin.kernels.precise import PreciseRows

LEFT_ROWS, _RIGHT = 64, 1024  # rows of a tile, left and right: 256 KiB of float32
_DENSE_BYTES = 1 << 26  # of left rows that are made dense at a time
_LOG2_E = math.log2(math.e)


class KernelRows(Protocol):
    """The matrix K of a kernel over n rows, whose entries are computed when they are asked for."""

    @property
    def n(self) -> int: ...
    @property
    def dtype(self) -> np.dtype:
        """Of the entries: float32 or float64."""
        ...

    @property
    def is_convex(self) -> bool:
        """Whether K is positive semi-definite whatever the rows."""
        ...

    def row_errors(self) -> np.ndarray:
        """About how large the relative rounding error of an entry is, for each row."""
        ...

    def errors(self) -> EntryErrors:
        """Bounds of the errors of the entries."""
        ...

    def sharper(self, index: np.ndarray) -> "DirectRows | None":
        """K[index, index] with entries in double precision; None if they are so already, or exact."""
        ...

    def precise(self, index: np.ndarray) -> PreciseRows | None:
        """K[index, index] for sums with twice the digits of double precision; None if that is not possible."""
        ...

    @property
    def n_evaluations(self) -> int:
        """Entries computed so far, for this matrix and its parts."""
        ...

    def diag(self) -> np.ndarray:
        """K[i, i], in float64."""
        ...

    def rows(self, index: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        """K[index, columns]; all columns if None."""
        ...

    def fill(self, index: np.ndarray, out: np.ndarray, slots: np.ndarray) -> None:
        """Write K[index[k]] to out[slots[k]]."""
        ...

    def narrow(self, index: np.ndarray) -> "KernelRows":
        """The part K[index, index] as a matrix of its own."""
        ...


class Counter:
    """A number that a matrix and its parts count up together."""

    def __init__(self) -> None:
        self.value = 0


class Side:
    """Rows made ready for products with others: one floating point type, and what the kernel adds to their products.

    For RBF and Laplacian dense rows are shifted by `centre`, so that digits survive far from the origin, and all rows
    are scaled so that distances are exponents of two already, of whatever size the data are.
    """

    def __init__(self, rows: Rows, kernel: Kernel, dtype: Any, centre: np.ndarray | None = None) -> None:
        self.rows, self.kernel, self.dtype = rows, kernel, np.dtype(dtype)
        self.n, self.n_cols = rows.n_rows, rows.n_cols
        self.is_sparse = rows.flat.indptr.size > 0
        self.centre = None if self.is_sparse else centre
        self.factor = _factor(kernel)
        self.array = np.empty((0, 0), self.dtype)  # if dense
        self.values = np.empty(0, self.dtype)  # if sparse
        self.terms = np.zeros(self.n, self.dtype)
        if isinstance(kernel, Custom):
            return
        if self.is_sparse:
            self.values = self._ready(rows.flat.values)
        else:
            self.array = self._dense()
        if isinstance(kernel, RBF):
            norms = self.factor**2 * rows.sq_norms() if self.is_sparse else _sq_norms(self.array)
            self.terms = (-0.5 * norms).astype(self.dtype)

    def _ready(self, array: np.ndarray) -> np.ndarray:
        """Data shifted, scaled and in the right type; the same data if they are so already."""
        if self.centre is not None:
            array = array - self.centre
        if self.factor != 1.0:
            array = np.multiply(array, self.factor, dtype=np.float64)
        return np.ascontiguousarray(array, dtype=self.dtype)

    def _dense(self) -> np.ndarray:
        if self.centre is None and self.factor == 1.0:
            return self._ready(self.rows.native())
        out = np.empty((self.n, self.n_cols), self.dtype)
        for where, part in self.rows.blocks():
            out[where] = self._ready(part.native())
        return out

    def left(self, index: np.ndarray) -> "LeftBlock":
        """The rows of `index`, to be multiplied with tiles of this or another side."""
        if self.is_sparse or isinstance(self.kernel, Custom):
            return self.left_of(self.rows, index)
        return LeftBlock(self.kernel, self.array[index], self.terms[index])

    def left_of(self, rows: Rows, index: np.ndarray | slice) -> "LeftBlock":
        """Rows of these or other data, made ready as those of this side are."""
        if isinstance(self.kernel, Custom):
            part = rows.take(index)
            nothing = np.empty((part.n_rows, 0), self.dtype)
            return LeftBlock(self.kernel, nothing, np.zeros(part.n_rows, self.dtype), part)
        is_final = self.centre is None and self.factor == 1.0
        array = self._ready(rows.densified(index, self.dtype if is_final else np.float64))
        terms = -0.5 * _sq_norms(array) if isinstance(self.kernel, RBF) else np.zeros(len(array))
        return LeftBlock(self.kernel, array, terms.astype(self.dtype))

    def take(self, index: np.ndarray) -> "Side":
        return Side(self.rows.take(index), self.kernel, self.dtype, self.centre)

    def row_errors(self) -> np.ndarray:
        """A few roundings, more for long sums; for RBF the exponent, a small difference of large numbers, is off by as
        much as these. So it is for Laplacian where rows are sparse, whose sums begin with |z|_1; where dense, the data
        are rounded.
        """
        lengths = np.diff(self.rows.flat.indptr) if self.is_sparse else np.full(self.n, self.n_cols)
        exponents = np.abs(self.terms, dtype=np.float64)
        if isinstance(self.kernel, Laplacian):
            norms = self.factor**2 * self.rows.sq_norms() if self.is_sparse else _sq_norms(self.array)
            exponents = np.sqrt(norms * (lengths if self.is_sparse else 1))
        return float(np.finfo(self.dtype).eps) * (4.0 + np.sqrt(lengths) / 8.0 + 2.0 * exponents)

    def sizes(self) -> np.ndarray:
        """For each row what the errors of its entries grow with."""
        if isinstance(self.kernel, Custom):
            return np.zeros(self.n)
        return sizes_of(self.rows, self.kernel, self.factor, self.array)

    @property
    def n_dense(self) -> int:
        """How many rows may be made dense at a time."""
        return max(1, _DENSE_BYTES // (self.dtype.itemsize * max(self.n_cols, 1)))


def centre_of(rows: Rows, kernel: Kernel) -> np.ndarray | None:
    """A point amid dense rows, to shift them by: their mean. None where that is of no use."""
    if not isinstance(kernel, RBF | Laplacian) or rows.flat.indptr.size > 0 or rows.n_rows == 0:
        return None
    total = np.zeros(rows.n_cols)
    for _, part in rows.blocks():
        total += part.native().sum(axis=0, dtype=np.float64)
    return total / rows.n_rows


def tiles_of(n: int) -> list[tuple[int, int]]:
    return [(lo, min(lo + _RIGHT, n)) for lo in range(0, n, _RIGHT)]


def _sq_norms(array: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", array, array, dtype=np.float64)


def _factor(kernel: Kernel) -> float:
    """Of the rows: with it RBF is 2^-(|x - z|^2 / 2), and Laplacian 2^-|x - z|_1."""
    if isinstance(kernel, RBF):
        return float(np.sqrt(2.0 * kernel.gamma * _LOG2_E))
    return kernel.gamma * _LOG2_E if isinstance(kernel, Laplacian) else 1.0


def largest_exponent(kernel: Kernel, rows: Rows) -> float:
    """Four times the largest square of a row as `Side` scales it, which no square of a distance exceeds; else 0."""
    if not isinstance(kernel, RBF | Laplacian):
        return 0.0
    factor = _factor(kernel)
    return max(factor * factor, 4.0 * factor * factor * float(rows.sq_norms().max(initial=0.0)))


class LeftBlock:
    """Some rows, dense, to be multiplied with tiles of a side; `rows` are the same as the user gave them."""

    def __init__(self, kernel: Kernel, array: np.ndarray, terms: np.ndarray, rows: Rows | None = None) -> None:
        self.kernel, self.array, self.terms, self._rows = kernel, array, terms, rows
        self.size, self.dtype = terms.size, terms.dtype

    @cached_property
    def turned(self) -> np.ndarray:
        return np.ascontiguousarray(self.array.T)

    @cached_property
    def lengths(self) -> np.ndarray:
        return np.abs(self.array).sum(axis=1, dtype=self.dtype)

    def tile(self, right: Side, lo: int, hi: int) -> tuple[np.ndarray, bool]:
        """Kernel values of this block and the right rows lo .. hi - 1, and whether a row of them is a right row."""
        from softmargin.kernels import _tiles

        kernel = self.kernel
        if isinstance(kernel, Custom):
            assert self._rows is not None
            values = kernel.block(self._rows.native(), right.rows.native()[lo:hi])
            return values.astype(self.dtype, copy=False), False
        turned = right.is_sparse or isinstance(kernel, Laplacian)
        tile = np.empty((hi - lo, self.size) if turned else (self.size, hi - lo), self.dtype)
        flat = right.rows.flat
        if not turned:
            np.dot(self.array, right.array[lo:hi].T, out=tile)
        elif not isinstance(kernel, Laplacian):
            _tiles.sparse_dots(right.values, flat.indices, flat.indptr, lo, hi, self.turned, tile)
        elif right.is_sparse:
            _tiles.sparse_l1(right.values, flat.indices, flat.indptr, lo, hi, self.turned, self.lengths, tile)
        else:
            _tiles.dense_l1(right.array, lo, hi, self.turned, tile)
        own, others = self.terms, right.terms[lo:hi]
        _finish(kernel, tile, others if turned else own, own if turned else others)
        return tile, turned


def _finish(kernel: Kernel, tile: np.ndarray, row_terms: np.ndarray, column_terms: np.ndarray) -> None:
    """From products, or from distances for the Laplacian kernel, to kernel values, in place."""
    from softmargin.kernels import _tiles

    number = tile.dtype.type
    power: Callable = _tiles.power_single if tile.dtype == np.float32 else _tiles.power_double
    if isinstance(kernel, RBF):
        power(tile, row_terms, column_terms, number(1.0))
    elif isinstance(kernel, Laplacian):
        power(tile, row_terms, column_terms, number(-1.0))
    elif isinstance(kernel, Polynomial):
        _tiles.polynomial(tile, number(kernel.gamma), number(kernel.coef0), kernel.degree)
    elif isinstance(kernel, Sigmoid):
        _tiles.tanh(tile, number(kernel.gamma), number(kernel.coef0))


class DirectRows:
    """The matrix of a kernel over rows of data, computed entry by entry whenever it is asked for."""

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        dtype: Any = np.float64,
        workers: Workers | None = None,
        *,
        side: Side | None = None,
        counter: Counter | None = None,
    ) -> None:
        self.kernel = kernel
        self.is_convex = kernel.is_convex
        self.side = side or Side(rows, kernel, dtype, centre_of(rows, kernel))
        self._workers = workers or Workers(1)
        self._counter = counter or Counter()

    @property
    def n(self) -> int:
        return self.side.n

    @property
    def dtype(self) -> np.dtype:
        return self.side.dtype

    def row_errors(self) -> np.ndarray:
        return self.side.row_errors()

    def errors(self) -> EntryErrors:
        return self._errors

    @cached_property
    def _errors(self) -> EntryErrors:
        return self.new_errors()

    def new_errors(self) -> EntryErrors:
        """The bounds for the rows as they are now."""
        side = self.side
        if isinstance(self.kernel, Custom):
            return exact_entries(self.diag())
        k = longest_row(side.rows) if side.is_sparse else side.n_cols
        return entry_errors(self.kernel, side.sizes(), k, side.dtype, side.is_sparse)

    def sharper(self, index: np.ndarray) -> "DirectRows | None":
        if self.dtype == np.float64:
            return None
        rows = self.side.rows.take(index)
        return DirectRows(rows, self.kernel, np.float64, self._workers, counter=self._counter)

    def precise(self, index: np.ndarray) -> PreciseRows | None:
        return PreciseRows.of(self.side.rows.take(index), self.kernel)

    @property
    def n_evaluations(self) -> int:
        return self._counter.value

    def diag(self) -> np.ndarray:
        if isinstance(self.kernel, Custom):
            parts = np.array_split(np.arange(self.n), max(1, self.n // LEFT_ROWS))
            return np.concatenate([self.rows(part, part).diagonal() for part in parts]).astype(np.float64)
        return self.kernel.diagonal(self.side.rows)

    def rows(self, index: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        right = self.side if columns is None else self.side.take(columns)
        out = np.empty((len(index), right.n), self.dtype)
        self.evaluate(np.asarray(index), right, out, np.arange(len(index)))
        return out

    def fill(self, index: np.ndarray, out: np.ndarray, slots: np.ndarray) -> None:
        self.evaluate(index, self.side, out, slots)

    def evaluate(self, index: np.ndarray, right: Side, out: np.ndarray, slots: np.ndarray) -> None:
        """Write the values of the rows `index` and all right rows to out[slots]."""
        step = self.side.n_dense
        for at in range(0, index.size, step):
            end = min(at + step, index.size)
            cuts = [slice(lo, min(lo + LEFT_ROWS, end)) for lo in range(at, end, LEFT_ROWS)]
            self._evaluate_part([(self.side.left(index[cut]), slots[cut]) for cut in cuts], right, out)
        self._counter.value += index.size * right.n

    def _evaluate_part(self, blocks: list[tuple[LeftBlock, np.ndarray]], right: Side, out: np.ndarray) -> None:
        from softmargin.kernels import _tiles

        def columns(lo: int, hi: int) -> None:
            for block, places in blocks:
                tile, turned = block.tile(right, lo, hi)
                (_tiles.put_turned if turned else _tiles.put)(tile, out, places, lo)

        if isinstance(self.kernel, Custom):  # a user's function need not bear several threads
            for lo, hi in tiles_of(right.n):
                self._workers.check()
                columns(lo, hi)
        else:
            self._workers.map(columns, tiles_of(right.n))

    def narrow(self, index: np.ndarray) -> "DirectRows":
        side = self.side.take(index)
        return DirectRows(side.rows, self.kernel, workers=self._workers, side=side, counter=self._counter)
