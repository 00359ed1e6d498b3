"""Matrix-vector products over a range of rows, for dense and CSR matrices.

One signature serves every storage: `values` is flat, and an empty `indptr` marks a dense matrix, stored row by row or
(`fortran`) column by column; only the loop that a storage needs is compiled. Vectors are float64, and so are all sums;
the order of every sum depends only on the arguments. Inner loops run over slices from zero, and columns are cast to
unsigned, because a possibly negative index has to be wrapped and that keeps the compiler from vectorising. The number
of a loop is made unsigned once more before it is added to: without the compiler it is an int, and NumPy 1 would make a
float of the sum of an int and an unsigned number.
"""

import numpy as np

from softmargin.core.jit import compiled, prefetch

_CHUNK = 1024  # rows whose coefficients are listed at a time, where these are not zero
_BLOCK = 2048  # rows whose part of a vector stays in the innermost cache (column by column storage)

# Rows are asked for ahead of time: without that the processor waits for memory at every other row. Long ones are
# streams that it sees through itself, and four of them at a time are faster; so are shorter ones that lie far apart.
_LINE_BYTES, _BYTES_AHEAD, _LISTED_BYTES_AHEAD = 64, 8192, 2048
_SHORT_BYTES, _LONG_BYTES = 512, 4096
# Sparse rows are read this many entries ahead, where none is left out, so that memory is not waited for.
_ENTRIES_AHEAD = np.uint64(256)
# Where some are left out, this many rows ahead, of those listed, and up to so many entries of each.
_LISTED, _ROWS_AHEAD, _ENTRIES_EACH = 4096, np.uint64(8), np.uint64(32)
# With fewer entries than this, listing the rows that changed takes longer than reading all of them.
_FEW_ENTRIES = 8


def dot(values, indices, indptr, n_rows, n_cols, fortran, w, lo, hi, out):
    """out[i] = sum_j X[i, j] w[j] for lo <= i < hi."""
    if indptr.size > 0:
        _dot_csr(values, indices, indptr, w, lo, hi, out)
    elif fortran:
        _dot_columns(values, n_rows, n_cols, w, lo, hi, out)
    else:
        _dot_rows(values, n_cols, w, lo, hi, out)


def t_dot(values, indices, indptr, n_rows, n_cols, fortran, c, before, lo, hi, acc):
    """acc[j] += sum_i (c[i] - before[i]) X[i, j] over lo <= i < hi; an empty `before` means zeros.

    Unless `fortran`, rows with c[i] == before[i] are not read.
    """
    if indptr.size > 0 and indptr[hi] - indptr[lo] < _FEW_ENTRIES * (hi - lo):
        _t_dot_short_csr(values, indices, indptr, c, before, lo, hi, acc)
    elif indptr.size > 0:
        _t_dot_csr(values, indices, indptr, c, before, lo, hi, acc)
    elif fortran:
        _t_dot_columns(values, n_rows, n_cols, c, before, lo, hi, acc)
    else:
        _t_dot_rows(values, n_cols, c, before, lo, hi, acc)


def sq_norms(values, indices, indptr, n_rows, n_cols, fortran, lo, hi, out):
    """out[i] = sum_j X[i, j]^2 for lo <= i < hi."""
    if indptr.size > 0:
        _sq_norms_csr(values, indptr, lo, hi, out)
    elif fortran:
        _sq_norms_columns(values, n_rows, n_cols, lo, hi, out)
    else:
        _sq_norms_rows(values, n_cols, lo, hi, out)


@compiled
def _dot_csr(values, indices, indptr, w, lo, hi, out):
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    p = np.uint64(indptr[lo])
    for i in range(np.uint64(lo), np.uint64(hi)):
        end = np.uint64(indptr[np.uint64(i) + one])
        t0 = t1 = t2 = t3 = 0.0
        while p + four <= end:
            prefetch(values, p + _ENTRIES_AHEAD)
            prefetch(indices, p + two * _ENTRIES_AHEAD)
            t0 += values[p] * w[np.uint64(indices[p])]
            t1 += values[p + one] * w[np.uint64(indices[p + one])]
            t2 += values[p + two] * w[np.uint64(indices[p + two])]
            t3 += values[p + three] * w[np.uint64(indices[p + three])]
            p += four
        while p < end:
            t0 += values[p] * w[np.uint64(indices[p])]
            p += one
        out[i] = (t0 + t1) + (t2 + t3)


@compiled(sums=True)
def _dot_columns(values, n_rows, n_cols, w, lo, hi, out):
    for start in range(lo, hi, _BLOCK):
        y = out[start : min(start + _BLOCK, hi)]
        y[:] = 0.0
        for j in range(n_cols):
            x = values[j * n_rows + start : j * n_rows + start + y.size]
            w_j = w[j]
            for i in range(y.size):
                y[i] += w_j * x[i]


@compiled(sums=True)
def _dot_rows(values, n_cols, w, lo, hi, out):
    line, ahead = np.uint64(_LINE_BYTES // values.itemsize), np.uint64(_BYTES_AHEAD // values.itemsize)
    i = lo
    if n_cols * values.itemsize >= _LONG_BYTES:
        while i + 4 <= hi:
            x0, x1 = _row(values, n_cols, i), _row(values, n_cols, i + 1)
            x2, x3 = _row(values, n_cols, i + 2), _row(values, n_cols, i + 3)
            t0 = t1 = t2 = t3 = 0.0
            for j in range(n_cols):
                t0 += x0[j] * w[j]
                t1 += x1[j] * w[j]
                t2 += x2[j] * w[j]
                t3 += x3[j] * w[j]
            out[i], out[i + 1], out[i + 2], out[i + 3] = t0, t1, t2, t3
            i += 4
    p = np.uint64(i * n_cols) + ahead
    while i < hi:
        while p < np.uint64((i + 1) * n_cols) + ahead:
            prefetch(values, p)
            p += line
        x = _row(values, n_cols, i)
        total = 0.0
        for j in range(n_cols):
            total += x[j] * w[j]
        out[i] = total
        i += 1


@compiled
def _t_dot_csr(values, indices, indptr, c, before, lo, hi, acc):
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    rows, coefs = np.empty(_LISTED, np.int64), np.empty(_LISTED)
    for start in range(lo, hi, _LISTED):
        n = _list_changed(c, before, start, min(start + _LISTED, hi), rows, coefs)
        for k in range(n):
            later = np.uint64(k) + _ROWS_AHEAD
            if later < n:
                i = np.uint64(rows[later])
                p, end = np.uint64(indptr[i]), np.uint64(indptr[i + one])
                end = min(end, p + _ENTRIES_EACH)
                while p < end:
                    prefetch(values, p)
                    prefetch(indices, p)
                    p += two * four  # a line of float64
            i, x = np.uint64(rows[k]), coefs[k]
            p, end = np.uint64(indptr[i]), np.uint64(indptr[i + one])
            while p + four <= end:  # the columns of a row differ, so that four sums may be read before one is written
                j0, j1 = np.uint64(indices[p]), np.uint64(indices[p + one])
                j2, j3 = np.uint64(indices[p + two]), np.uint64(indices[p + three])
                a0, a1 = acc[j0] + x * values[p], acc[j1] + x * values[p + one]
                a2, a3 = acc[j2] + x * values[p + two], acc[j3] + x * values[p + three]
                acc[j0], acc[j1], acc[j2], acc[j3] = a0, a1, a2, a3
                p += four
            while p < end:
                acc[np.uint64(indices[p])] += x * values[p]
                p += one


@compiled
def _t_dot_short_csr(values, indices, indptr, c, before, lo, hi, acc):
    one = np.uint64(1)
    p = np.uint64(indptr[lo])
    for i in range(np.uint64(lo), np.uint64(hi)):
        end = np.uint64(indptr[np.uint64(i) + one])
        x = c[i] - before[i] if before.size > 0 else c[i]
        if x == 0.0:
            p = end
        while p < end:
            acc[np.uint64(indices[p])] += x * values[p]
            p += one


@compiled(sums=True)
def _t_dot_columns(values, n_rows, n_cols, c, before, lo, hi, acc):
    y = np.empty(_BLOCK)
    for start in range(lo, hi, _BLOCK):
        n = min(start + _BLOCK, hi) - start
        for i in range(n):
            y[i] = c[start + i] - before[start + i] if before.size > 0 else c[start + i]
        for j in range(n_cols):
            x = values[j * n_rows + start : j * n_rows + start + n]
            total = 0.0
            for i in range(n):
                total += y[i] * x[i]
            acc[j] += total


@compiled(sums=True)
def _t_dot_rows(values, n_cols, c, before, lo, hi, acc):
    row_bytes = n_cols * values.itemsize
    width, line = np.uint64(n_cols), np.uint64(_LINE_BYTES // values.itemsize)
    ahead = max(2, _LISTED_BYTES_AHEAD // max(row_bytes, 1))
    rows, coefs = np.empty(_CHUNK, np.int64), np.empty(_CHUNK)
    for start in range(lo, hi, _CHUNK):
        stop = min(start + _CHUNK, hi)
        n = _list_changed(c, before, start, stop, rows, coefs)
        k = 0
        if row_bytes >= (_LONG_BYTES if 4 * n >= 3 * (stop - start) else _SHORT_BYTES):
            while k + 4 <= n:
                x0, c0 = _row(values, n_cols, rows[k]), coefs[k]
                x1, c1 = _row(values, n_cols, rows[k + 1]), coefs[k + 1]
                x2, c2 = _row(values, n_cols, rows[k + 2]), coefs[k + 2]
                x3, c3 = _row(values, n_cols, rows[k + 3]), coefs[k + 3]
                for j in range(n_cols):
                    acc[j] += c0 * x0[j] + c1 * x1[j] + c2 * x2[j] + c3 * x3[j]
                k += 4
        else:
            while k + 2 <= n:
                for q in range(np.uint64(k + ahead), np.uint64(min(k + ahead + 2, n))):
                    p = np.uint64(rows[q]) * width
                    end = p + width
                    while p < end:
                        prefetch(values, p)
                        p += line
                x0, c0 = _row(values, n_cols, rows[k]), coefs[k]
                x1, c1 = _row(values, n_cols, rows[k + 1]), coefs[k + 1]
                for j in range(n_cols):
                    acc[j] += c0 * x0[j] + c1 * x1[j]
                k += 2
        while k < n:
            x0, c0 = _row(values, n_cols, rows[k]), coefs[k]
            for j in range(n_cols):
                acc[j] += c0 * x0[j]
            k += 1


@compiled
def _list_changed(c, before, lo, hi, rows, coefs):
    """Write the i in lo <= i < hi with c[i] != before[i], and the differences; no branch, so none mispredicted."""
    n = np.uint64(0)
    for i in range(np.uint64(lo), np.uint64(hi)):
        change = c[i] - before[i] if before.size > 0 else c[i]
        rows[n] = i
        coefs[n] = change
        n += np.uint64(change != 0.0)
    return n


@compiled
def _row(values, d, i):
    return values[i * d : (i + 1) * d]


@compiled(sums=True)
def _sq_norms_csr(values, indptr, lo, hi, out):
    for i in range(lo, hi):
        x = values[indptr[i] : indptr[i + 1]]
        total = 0.0
        for p in range(x.size):
            total += np.float64(x[p]) * np.float64(x[p])
        out[i] = total


@compiled(sums=True)
def _sq_norms_columns(values, n_rows, n_cols, lo, hi, out):
    for start in range(lo, hi, _BLOCK):
        y = out[start : min(start + _BLOCK, hi)]
        y[:] = 0.0
        for j in range(n_cols):
            x = values[j * n_rows + start : j * n_rows + start + y.size]
            for i in range(y.size):
                y[i] += np.float64(x[i]) * np.float64(x[i])


@compiled(sums=True)
def _sq_norms_rows(values, n_cols, lo, hi, out):
    for i in range(lo, hi):
        x = _row(values, n_cols, i)
        total = 0.0
        for j in range(n_cols):
            total += np.float64(x[j]) * np.float64(x[j])
        out[i] = total
