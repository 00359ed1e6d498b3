"""Compiled part of the updated Cholesky factor; see `cholesky.py`."""

import math

from softmargin.core.jit import compiled


@compiled(sums=True)
def delete_column(packed, n, p, carried, rotations):
    """Delete row and column p of A from its packed n x n factor R, and entry p of b from R^T carried = b.

    Column j of R moves to the place of column j - 1 while the rotations of the columns before are applied to
    it; one more rotation, of rows j - 1 and j, makes it end on the diagonal. `rotations` is workspace, 2 x n.
    """
    tail = carried[p]
    for j in range(p + 1, n):
        old = j * (j + 1) // 2
        new = old - j
        for i in range(p):
            packed[new + i] = packed[old + i]
        x = packed[old + p]
        for i in range(p, j - 1):
            cosine = rotations[0, i]
            sine = rotations[1, i]
            z = packed[old + i + 1]
            packed[new + i] = cosine * x + sine * z
            x = cosine * z - sine * x
        z = packed[old + j]
        r = math.hypot(x, z)  # positive, and so is the new diagonal
        cosine = x / r
        sine = z / r
        rotations[0, j - 1] = cosine
        rotations[1, j - 1] = sine
        packed[new + j - 1] = r
        z = carried[j]
        carried[j - 1] = cosine * tail + sine * z
        tail = cosine * z - sine * tail
