"""Rows that grow in number."""

import numpy as np
import scipy.sparse as sp

from softmargin.core.buffer import Buffer
from softmargin.data.convert import as_rows
from softmargin.data.csr import CSRRows
from softmargin.data.dense import DenseRows
from softmargin.data.rows import Rows

_INT32_MAX = np.iinfo(np.int32).max


def stored_as(rows: Rows, *, sparse: bool) -> Rows:
    """The same rows, dense or CSR."""
    if (rows.flat.indptr.size > 0) == sparse:
        return rows
    return as_rows(sp.csr_array(rows.native()) if sparse else rows.native().toarray())


class GrowingRows:
    """Rows of one storage, dense or CSR, to which others are appended. `rows` are those of now, in place.

    Rows that were handed out before stay valid. `values`, if given, are what the entries of a CSR matrix become.
    """

    def __init__(self, rows: Rows, values: np.ndarray | None = None) -> None:
        flat = rows.flat
        self.is_sparse, self.n_cols = flat.indptr.size > 0, rows.n_cols
        self._kind = type(rows.native())
        if self.is_sparse:
            self._parts = [Buffer(flat.values if values is None else values), Buffer(flat.indices), Buffer(flat.indptr)]
        else:
            self._parts = [Buffer(rows.native())]

    @property
    def rows(self) -> Rows:
        parts = [part.view for part in self._parts]
        if not self.is_sparse:
            return DenseRows(parts[0])
        return CSRRows(self._kind(tuple(parts), shape=(parts[2].size - 1, self.n_cols), copy=False))

    def append(self, more: Rows, values: np.ndarray | None = None) -> None:
        """Rows of either storage; `values` as above."""
        more = stored_as(more, sparse=self.is_sparse)
        if not self.is_sparse:
            self._parts[0].append(more.native())
            return
        flat = more.flat
        data, indices, indptr = self._parts
        ends = flat.indptr[1:] + np.int64(indptr.view[-1])
        data.append(flat.values if values is None else values)
        indices.append(flat.indices)
        indptr.append(ends.astype(indptr.view.dtype) if ends.max(initial=0) <= _INT32_MAX else ends)

    def take(self, order: np.ndarray) -> "GrowingRows":
        """The rows of `order`, copied: nothing of the others is left."""
        return GrowingRows(self.rows.take(order))
