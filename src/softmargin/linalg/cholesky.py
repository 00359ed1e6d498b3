"""Cholesky factor of a symmetric matrix that gains and loses one row and column at a time.

The factor of A = R^T R is stored as the columns of the upper triangle R one after the other (the packed
format of LAPACK), so a new column goes to the end of the array and BLAS solves without copying the factor.

    append   solve R^T y = A[S, k];  pivot = A[k, k] - y.y;  the new last column of R is (y, sqrt(pivot))
    delete   drop column p of R;  rotate rows p, p+1, ... pairwise until R is triangular again

Both cost O(n^2). A vector that solves R^T carried = b is kept in step with the factor: the same rotations
apply to it, and a right-hand side that is needed at every step (all ones, in an active-set method) then costs
O(n) instead of a triangular solve.

Reference: P. E. Gill, G. H. Golub, W. Murray and M. A. Saunders, "Methods for modifying matrix
factorizations", Mathematics of Computation 28, 1974 (rotations); G. H. Golub and C. F. Van Loan, "Matrix
Computations", 4th edition, 2013, section 6.5.

Departs from the texts: nothing is pivoted, the caller looks at the pivot before it appends; the rotations are
applied column by column, which is the order of the storage.
"""

import math

import numpy as np
from scipy.linalg.blas import dtpsv
from scipy.linalg.lapack import dpotrf, dtrttp


class Factor:
    """R with A[S, S] = R^T R and `carried` with R^T carried = b, for a list S that grows and shrinks."""

    def __init__(self) -> None:
        self.order = 0
        self._members = np.empty(0, dtype=np.int64)
        self._packed = self._carried = np.empty(0)

    @property
    def members(self) -> np.ndarray:
        """S: a view, valid until the next change."""
        return self._members[: self.order]

    @property
    def carried(self) -> np.ndarray:
        return self._carried[: self.order]

    def forward(self, b: np.ndarray) -> np.ndarray:
        """Return y with R^T y = b, in the memory of b."""
        return dtpsv(self.order, self._packed, b, trans=1, overwrite_x=1) if self.order else b

    def backward(self, y: np.ndarray) -> np.ndarray:
        """Return x with R x = y, in the memory of y."""
        return dtpsv(self.order, self._packed, y, overwrite_x=1) if self.order else y

    def append(self, k: int, y: np.ndarray, pivot: float, b: float) -> None:
        """Append k to S: y is the forward solve of A[S, k], pivot = A[k, k] - y.y > 0, b the entry of b."""
        n = self.order
        if n == self._members.size:
            room = n + n // 2 + 16
            self._members = _enlarged(self._members, room)
            self._carried = _enlarged(self._carried, room)
            self._packed = _enlarged(self._packed, room * (room + 1) // 2)
        diagonal = math.sqrt(pivot)
        end = n * (n + 1) // 2 + n
        self._packed[end - n : end] = y
        self._packed[end] = diagonal
        self._carried[n] = (b - y.dot(self._carried[:n])) / diagonal
        self._members[n] = k
        self.order = n + 1

    def delete(self, p: int) -> None:
        """Delete the entry of S at position p."""
        from softmargin.linalg._cholesky import delete_column

        n = self.order
        delete_column(self._packed, n, p, self._carried, np.empty((2, n)))
        self._members[p : n - 1] = self._members[p + 1 : n]
        self.order = n - 1

    def refill(self, members: np.ndarray, A: np.ndarray, b: np.ndarray, relative_pivot: float) -> None:
        """Start again with A = A[S, S] for S = members, up to the first one that depends on those before.

        That is where the Schur complement is at most `relative_pivot` of the diagonal. A is overwritten.
        """
        least = relative_pivot * A.diagonal()
        R, failed = dpotrf(A.T, clean=0, overwrite_a=1)  # symmetric; transposed it is in the order of LAPACK
        n = failed - 1 if failed else len(A)
        weak = (R.diagonal()[:n] ** 2 <= least[:n]).nonzero()[0]
        if weak.size:
            n = int(weak[0])
        self.order = n
        self._members = members[:n].copy()
        self._packed = dtrttp(R[:n, :n], uplo="U")[0] if n else np.empty(0)
        self._carried = self.forward(b[:n].copy())


def _enlarged(array: np.ndarray, size: int) -> np.ndarray:
    """Return an array of this size that begins with the given one."""
    room = np.empty(size, dtype=array.dtype)
    room[: array.size] = array
    return room
