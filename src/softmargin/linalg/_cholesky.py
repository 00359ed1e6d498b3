"""Cholesky factor of a symmetric matrix that gains and loses one row and column at a time.

The factor of the n x n matrix A is kept as the upper triangle R of A = R^T R, in the leading block of an
array that may be larger; what lies below the diagonal or beyond n is never read. With L = R^T, row j of R is
column j of L, so the solves and the rotations below run along contiguous memory.

    append   solve R^T y = A[S, k];  pivot = A[k, k] - y.y;  the new last column of R is (y, sqrt(pivot))
    delete   drop column p of R;  rotate rows p, p+1, ... pairwise until R is triangular again

Both cost O(n^2). A vector that solves R^T carried = b can be kept in step with the factor: the same rotations
apply to it, and a right-hand side that is needed at every step (all ones, in an active-set method) then costs
O(n) instead of a triangular solve.

Reference: P. E. Gill, G. H. Golub, W. Murray and M. A. Saunders, "Methods for modifying matrix
factorizations", Mathematics of Computation 28, 1974 (rotations); G. H. Golub and C. F. Van Loan, "Matrix
Computations", 4th edition, 2013, section 6.5.

Departs from the texts: four rows of R are used per pass of a solve, because memory and not arithmetic is the
limit; nothing is pivoted, the caller looks at the pivot before it appends.
"""

import math

import numpy as np

from softmargin.core.jit import compiled


@compiled(sums=True)
def dot(x, y, n):
    """Return the inner product of the first n entries."""
    total = 0.0
    for i in range(n):
        total += x[i] * y[i]
    return total


@compiled(sums=True)
def solve_lower(R, n, b):
    """Solve R^T y = b in place: the first n entries of b become y."""
    j = 0
    while j + 4 <= n:
        row0, row1, row2, row3 = R[j], R[j + 1], R[j + 2], R[j + 3]
        y0 = b[j] / row0[j]
        y1 = (b[j + 1] - y0 * row0[j + 1]) / row1[j + 1]
        y2 = (b[j + 2] - y0 * row0[j + 2] - y1 * row1[j + 2]) / row2[j + 2]
        y3 = (b[j + 3] - y0 * row0[j + 3] - y1 * row1[j + 3] - y2 * row2[j + 3]) / row3[j + 3]
        b[j], b[j + 1], b[j + 2], b[j + 3] = y0, y1, y2, y3
        rest = b[j + 4 : n]
        row0, row1, row2, row3 = row0[j + 4 : n], row1[j + 4 : n], row2[j + 4 : n], row3[j + 4 : n]
        for i in range(rest.size):
            rest[i] -= y0 * row0[i] + y1 * row1[i] + y2 * row2[i] + y3 * row3[i]
        j += 4
    while j < n:
        b[j] /= R[j, j]
        for i in range(j + 1, n):
            b[i] -= b[j] * R[j, i]
        j += 1


@compiled(sums=True)
def solve_upper(R, n, y):
    """Solve R x = y in place: the first n entries of y become x."""
    j = n
    while j >= 4:
        row0, row1, row2, row3 = R[j - 4], R[j - 3], R[j - 2], R[j - 1]
        done = y[j:n]
        tail0, tail1, tail2, tail3 = row0[j:n], row1[j:n], row2[j:n], row3[j:n]
        s0 = s1 = s2 = s3 = 0.0
        for i in range(done.size):
            s0 += tail0[i] * done[i]
            s1 += tail1[i] * done[i]
            s2 += tail2[i] * done[i]
            s3 += tail3[i] * done[i]
        x3 = (y[j - 1] - s3) / row3[j - 1]
        x2 = (y[j - 2] - s2 - row2[j - 1] * x3) / row2[j - 2]
        x1 = (y[j - 3] - s1 - row1[j - 2] * x2 - row1[j - 1] * x3) / row1[j - 3]
        x0 = (y[j - 4] - s0 - row0[j - 3] * x1 - row0[j - 2] * x2 - row0[j - 1] * x3) / row0[j - 4]
        y[j - 4], y[j - 3], y[j - 2], y[j - 1] = x0, x1, x2, x3
        j -= 4
    while j > 0:
        j -= 1
        rest = 0.0
        for i in range(j + 1, n):
            rest += R[j, i] * y[i]
        y[j] = (y[j] - rest) / R[j, j]


@compiled
def append_row(R, n, y, pivot):
    """Append the row and column of A whose solve_lower is y and whose Schur complement is pivot > 0.

    R needs room for n + 1 rows. With y = R^-T A[S, k], pivot = A[k, k] - y.y.
    """
    for j in range(n):
        R[j, n] = y[j]
    R[n, n] = math.sqrt(pivot)


@compiled(sums=True)
def delete_row(R, n, p, carried):
    """Delete row and column p of A from its n x n factor; the factor is n - 1 x n - 1 afterwards.

    `carried` is a vector with R^T carried = b (or an array without entries); it is updated to solve the
    smaller system with entry p of b left out.
    """
    for i in range(p):
        row = R[i, p:n]
        for j in range(row.size - 1):
            row[j] = row[j + 1]
    carrying = carried.size > 0
    for i in range(p, n - 1):
        above = R[i, i:n]
        below = R[i + 1, i + 1 : n]
        r = math.hypot(above[1], below[0])
        cosine = above[1] / r
        sine = below[0] / r
        # `above` is moved one column to the left in the same pass; the sign makes the new diagonal r > 0
        for j in range(below.size):
            x = above[j + 1]
            z = below[j]
            above[j] = cosine * x + sine * z
            below[j] = cosine * z - sine * x
        if carrying:
            x = carried[i]
            z = carried[i + 1]
            carried[i] = cosine * x + sine * z
            carried[i + 1] = cosine * z - sine * x


@compiled
def factorise(A, R, kept, relative_pivot):
    """Factorise A into R, leaving out rows that depend on those before; return how many were kept.

    Row k is left out when its Schur complement is at most relative_pivot * A[k, k]. The indices in the factor
    are written to the beginning of `kept`, in increasing order.
    """
    n = 0
    y = np.empty(A.shape[0])
    for k in range(A.shape[0]):
        for i in range(n):
            y[i] = A[kept[i], k]
        solve_lower(R, n, y)
        pivot = A[k, k] - dot(y, y, n)
        if pivot > relative_pivot * A[k, k]:
            append_row(R, n, y, pivot)
            kept[n] = k
            n += 1
    return n
