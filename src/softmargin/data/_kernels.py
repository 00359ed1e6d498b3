"""Matrix-vector products over a range of rows, for dense and CSR matrices.

One signature serves every storage: `values` is flat, and an empty `indptr` marks a dense matrix, stored row by row or
(`fortran`) column by column; only the loop that a storage needs is compiled. Vectors are float64, and so are all sums;
the order of every sum depends only on the arguments. Inner loops run over slices from zero, and columns are cast to
unsigned, because a possibly negative index has to be wrapped and that keeps the compiler from vectorising.
"""

import numpy as np

from softmargin.core.jit import compiled

_CHUNK = 256  # rows whose non-zero coefficients are listed at a time
_BLOCK = 2048  # rows whose part of a vector stays in the innermost cache (column by column storage)

# Short rows gain from sharing loop overhead and long ones from being separate streams of memory; in between,
# jumping from row to row defeats the hardware prefetcher, and one row after the other is up to twice as fast,
# unless rows are left out, so that memory is not read in order anyway.
_SHORT_BYTES = 512
_LONG_BYTES = 4096


def dot(values, indices, indptr, n_rows, n_cols, fortran, w, lo, hi, out):
    """out[i] = sum_j X[i, j] w[j] for lo <= i < hi."""
    if indptr.size > 0:
        _dot_csr(values, indices, indptr, w, lo, hi, out)
    elif fortran:
        _dot_columns(values, n_rows, n_cols, w, lo, hi, out)
    else:
        _dot_rows(values, n_cols, w, lo, hi, out)


def t_dot(values, indices, indptr, n_rows, n_cols, fortran, c, lo, hi, acc):
    """acc[j] += sum_i c[i] X[i, j] over lo <= i < hi; unless `fortran`, rows with c[i] == 0 are not read."""
    if indptr.size > 0:
        _t_dot_csr(values, indices, indptr, c, lo, hi, acc)
    elif fortran:
        _t_dot_columns(values, n_rows, n_cols, c, lo, hi, acc)
    else:
        _t_dot_rows(values, n_cols, c, lo, hi, acc)


def sq_norms(values, indices, indptr, n_rows, n_cols, fortran, lo, hi, out):
    """out[i] = sum_j X[i, j]^2 for lo <= i < hi."""
    if indptr.size > 0:
        _sq_norms_csr(values, indptr, lo, hi, out)
    elif fortran:
        _sq_norms_columns(values, n_rows, n_cols, lo, hi, out)
    else:
        _sq_norms_rows(values, n_cols, lo, hi, out)


@compiled(sums=True)
def _dot_csr(values, indices, indptr, w, lo, hi, out):
    for i in range(lo, hi):
        x = values[indptr[i] : indptr[i + 1]]
        columns = indices[indptr[i] : indptr[i + 1]]
        total = 0.0
        for p in range(x.size):
            total += x[p] * w[np.uint64(columns[p])]
        out[i] = total


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
    while i < hi:
        x = _row(values, n_cols, i)
        total = 0.0
        for j in range(n_cols):
            total += x[j] * w[j]
        out[i] = total
        i += 1


@compiled(sums=True)
def _t_dot_csr(values, indices, indptr, c, lo, hi, acc):
    rows = np.empty(_CHUNK, np.int64)
    for start in range(lo, hi, _CHUNK):
        n = _list_nonzero(c, start, min(start + _CHUNK, hi), rows)
        for k in range(n):
            i = rows[k]
            x = values[indptr[i] : indptr[i + 1]]
            columns = indices[indptr[i] : indptr[i + 1]]
            c_i = c[i]
            for p in range(x.size):
                acc[np.uint64(columns[p])] += c_i * x[p]


@compiled(sums=True)
def _t_dot_columns(values, n_rows, n_cols, c, lo, hi, acc):
    for start in range(lo, hi, _BLOCK):
        y = c[start : min(start + _BLOCK, hi)]
        for j in range(n_cols):
            x = values[j * n_rows + start : j * n_rows + start + y.size]
            total = 0.0
            for i in range(y.size):
                total += y[i] * x[i]
            acc[j] += total


@compiled(sums=True)
def _t_dot_rows(values, n_cols, c, lo, hi, acc):
    row_bytes = n_cols * values.itemsize
    rows = np.empty(_CHUNK, np.int64)
    for start in range(lo, hi, _CHUNK):
        stop = min(start + _CHUNK, hi)
        n = _list_nonzero(c, start, stop, rows)
        gapped = 4 * n < 3 * (stop - start)
        k = 0
        if row_bytes >= _LONG_BYTES or (gapped and row_bytes >= _SHORT_BYTES):
            while k + 4 <= n:
                x0, c0 = _row(values, n_cols, rows[k]), c[rows[k]]
                x1, c1 = _row(values, n_cols, rows[k + 1]), c[rows[k + 1]]
                x2, c2 = _row(values, n_cols, rows[k + 2]), c[rows[k + 2]]
                x3, c3 = _row(values, n_cols, rows[k + 3]), c[rows[k + 3]]
                for j in range(n_cols):
                    acc[j] += c0 * x0[j] + c1 * x1[j] + c2 * x2[j] + c3 * x3[j]
                k += 4
        elif row_bytes < _SHORT_BYTES:
            while k + 2 <= n:
                x0, c0 = _row(values, n_cols, rows[k]), c[rows[k]]
                x1, c1 = _row(values, n_cols, rows[k + 1]), c[rows[k + 1]]
                for j in range(n_cols):
                    acc[j] += c0 * x0[j] + c1 * x1[j]
                k += 2
        while k < n:
            x0, c0 = _row(values, n_cols, rows[k]), c[rows[k]]
            for j in range(n_cols):
                acc[j] += c0 * x0[j]
            k += 1


@compiled
def _list_nonzero(c, lo, hi, rows):
    """Write the i in lo <= i < hi with c[i] != 0 to rows and count them: no branch, so none mispredicted."""
    n = 0
    for i in range(lo, hi):
        rows[n] = i
        n += c[i] != 0.0
    return n


@compiled
def _row(values, d, i):
    return values[i * d : (i + 1) * d]


@compiled(sums=True)
def t_dot_columns(values, indices, starts, c, part, col_lo, lo, hi, acc):
    """Add the entries of lo <= i < hi in one part of `split_columns`, times c[i], to acc, which begins at col_lo."""
    rows = np.empty(_CHUNK, np.int64)
    for start in range(lo, hi, _CHUNK):
        n = _list_nonzero(c, start, min(start + _CHUNK, hi), rows)
        for k in range(n):
            i = rows[k]
            x = values[starts[i, part] : starts[i, part + 1]]
            columns = indices[starts[i, part] : starts[i, part + 1]]
            c_i = c[i]
            for p in range(x.size):
                acc[np.uint64(columns[p] - col_lo)] += c_i * x[p]


@compiled
def split_columns(indices, indptr, bounds, starts):
    """starts[i, k] = position of the first entry of row i in a column >= bounds[k]; indices are sorted."""
    n_parts = bounds.size - 1
    for i in range(indptr.size - 1):
        p = np.int64(indptr[i])
        end = np.int64(indptr[i + 1])
        starts[i, 0] = p
        for k in range(1, n_parts):
            while p < end and indices[p] < bounds[k]:
                p += 1
            starts[i, k] = p
        starts[i, n_parts] = end


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
