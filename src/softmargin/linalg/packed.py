"""A symmetric matrix in half of its memory, with a preconditioner: what conjugate gradients need where a Cholesky
factor would be too large or too slow.

The upper triangle lies column by column (the packed format of LAPACK), 4 n^2 bytes: a new column goes to the end. The
preconditioner is G'G, where G is sparse and lower triangular. Row i of G predicts row i of the matrix from the NEAREST
rows before it:

    B = A[N, N],  a = A[N, i]:    G_iN = -B^-1 a / s,   G_ii = 1 / s,   s^2 = A_ii - a'B^-1 a

With N all rows before i this is the inverse Cholesky factor. A new column changes no row of G above its own; where rows
go, those that were predicted from them are made anew. Kernel matrices have many small eigenvalues, which belong to
differences of rows that lie close together, and these G knows.

Reference: L. Yu. Kolotilina, A. Yu. Yeremin, Factorized sparse approximate inverse preconditionings I, SIAM Journal on
Matrix Analysis and Applications 14, 1993 (G minimises |I - G L| over its pattern, L the Cholesky factor).
"""

import numpy as np
from scipy.linalg.blas import dspmv

# Rows that predict a row.
NEAREST = 50
# What is left of a row's diagonal entry, as a share of it, counts as at least this: the row may depend on others.
_LEAST_REST = 1e-8
# BLAS counts the entries of a packed matrix in 32 bits.
MAX_ORDER = 46_340
# Bytes beside the matrix for each row: its places and weights, and some vectors.
ROW_BYTES = 8 * (2 * NEAREST + 1) + 128


def packed_bytes(order: float) -> float:
    """What the matrix of this order takes, with its preconditioner."""
    return 4.0 * order * order + ROW_BYTES * order


class Packed:
    """A[S, S] for a list S of members that grows and shrinks."""

    def __init__(self) -> None:
        self.order = 0
        self._members = np.empty(0, dtype=np.int64)
        self._values = np.empty(0)
        self._nearest = np.empty((0, NEAREST), dtype=np.int64)
        self._weights = np.empty((0, NEAREST + 1))
        self._stale = np.empty(0, dtype=np.int64)

    @property
    def members(self) -> np.ndarray:
        """S: a view, valid until the next change."""
        return self._members[: self.order]

    def make_room(self, order: int) -> None:
        """Memory for so many members, in place: a copy beside it would be what this matrix is to avoid."""
        if order > self._members.size:
            self._members = np.append(self._members, np.zeros(order - self._members.size, np.int64))
            self._values.resize(order * (order + 1) // 2, refcheck=False)
            for name in ("_nearest", "_weights"):
                old = getattr(self, name)
                new = np.zeros((order, old.shape[1]), old.dtype)
                new[: len(old)] = old
                setattr(self, name, new)

    def append(self, k: int, column: np.ndarray) -> None:
        """Append k to S: `column` is A[S, k], and A[k, k] at its end."""
        n = self.order
        self.make_room(n + 1)
        at = n * (n + 1) // 2
        self._values[at : at + n + 1] = column
        self._members[n] = k
        self._stale = np.append(self._stale, n)
        self.order = n + 1

    def keep(self, is_kept: np.ndarray) -> None:
        """Leave only these members."""
        from softmargin.linalg import _packed

        n, places = self.order, np.flatnonzero(is_kept)
        if places.size == n:
            return
        number = np.full(n + 1, -1)
        number[places] = np.arange(places.size)
        _packed.keep(self._values, places)
        nearest = self._nearest[places]
        renamed = number[nearest]  # -1, nobody, is the last entry, which is -1 too
        has_lost = ((nearest >= 0) & (renamed < 0)).any(axis=1)
        stale = number[self._stale]
        self._stale = np.union1d(stale[stale >= 0], np.flatnonzero(has_lost))
        self._nearest[: places.size], self._weights[: places.size] = renamed, self._weights[places]
        self._members[: places.size] = self._members[places]
        self.order = places.size

    def product(self, x: np.ndarray) -> np.ndarray:
        """A x."""
        return dspmv(self.order, 1.0, self._values, x) if self.order else np.empty(0)

    def precondition(self, r: np.ndarray) -> np.ndarray:
        """G'G r."""
        from softmargin.linalg import _packed

        if self._stale.size:
            square = np.empty((NEAREST, NEAREST))
            args = self._values, self._stale, self._nearest, self._weights
            _packed.weigh(*args, np.empty(NEAREST), square, _LEAST_REST)
            self._stale = self._stale[:0]
        out, half = np.empty((2, self.order))
        _packed.precondition(self._nearest, self._weights, r, self.order, half, out)
        return out
