"""Sparse rows for solvers that want their products only.

X = [A | B] with columns that many rows use in A and the others in B. A is stored row by row, B column by column: a
product with A reads a short vector of weights here and there, one with B a vector of length n. Either stays in a near
cache, where one of the weights of all columns would not.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from softmargin.core.threads import Workers
from softmargin.data.csr import CSRRows
from softmargin.data.rows import Flat, FlatProducts, Rows


class SplitRows:
    """Rows [A | B] from A, and B' unless it is empty; products are quick, everything else makes a CSR matrix first."""

    def __init__(
        self, a: FlatProducts, b_transposed: FlatProducts | None = None, workers: Workers | None = None
    ) -> None:
        self._a, self._bt = a, b_transposed
        self._workers = workers or Workers(1)

    @property
    def n_rows(self) -> int:
        return self._a.flat.n_rows

    @property
    def n_cols(self) -> int:
        return self._a.flat.n_cols + (self._bt.flat.n_rows if self._bt is not None else 0)

    @property
    def parts(self) -> tuple[Flat, ...]:
        """What is stored: A, and B' unless it is empty."""
        return (self._a.flat,) if self._bt is None else (self._a.flat, self._bt.flat)

    def dot(self, w: np.ndarray) -> np.ndarray:
        if self._bt is None:
            return self._a.dot(w, self._workers)
        cut, f = self._a.flat.n_cols, np.empty(self.n_rows)
        f += self._bt.t_dot(w[cut:], None, self._workers, beside=self._a.dot_jobs(w[:cut], f))
        return f

    def t_dot(self, v: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        if self._bt is None:
            return self._a.t_dot(v, before, self._workers)
        cut, out = self._a.flat.n_cols, np.empty(self.n_cols)
        change = v if before is None else v - before
        self._a.t_dot(v, before, self._workers, out[:cut], beside=self._bt.dot_jobs(change, out[cut:]))
        return out

    def on(self, workers: Workers) -> "SplitRows":
        return SplitRows(self._a, self._bt, workers)

    @cached_property
    def _csr(self) -> CSRRows:
        a = _matrix(self._a.flat)
        joined = a if self._bt is None else sp.hstack([a, _matrix(self._bt.flat).T], format="csr")
        return CSRRows(joined, self._workers)

    @property
    def flat(self) -> Flat:
        return self._csr.flat

    def native(self) -> Any:
        return self._csr.native()

    def take(self, index: np.ndarray | slice) -> Rows:
        return self._csr.take(index)

    def cross(self, other: Rows) -> np.ndarray:
        return self._csr.cross(other)

    def densified(self, index: np.ndarray | slice, dtype: Any) -> np.ndarray:
        return self._csr.densified(index, dtype)

    def sq_norms(self) -> np.ndarray:
        return self._csr.sq_norms()

    def blocks(self) -> Iterator[tuple[slice, Rows]]:
        return self._csr.blocks()


def _matrix(flat: Flat) -> sp.csr_array:
    indices = flat.indices if flat.indices.dtype == flat.indptr.dtype else flat.indices.astype(flat.indptr.dtype)
    return sp.csr_array((flat.values, indices, flat.indptr), shape=(flat.n_rows, flat.n_cols), copy=False)
