"""Matrix-vector products over a range of rows, for dense and CSR matrices.

One signature serves both: `values` is flat, and an empty `indptr` marks a dense matrix, stored row by row or
(`fortran`) column by column. Vectors are float64, and so are all sums; the order of every sum depends only on
the arguments. Inner loops run over slices from zero, and columns are cast to unsigned, because a possibly
negative index has to be wrapped and that keeps the compiler from vectorising.
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


@compiled(sums=True)
def dot(values, indices, indptr, n_rows, n_cols, fortran, w, lo, hi, out):
    """out[i] = sum_j X[i, j] w[j] for lo <= i < hi."""
    if indptr.size > 0:
        for i in range(lo, hi):
            x = values[indptr[i] : indptr[i + 1]]
            columns = indices[indptr[i] : indptr[i + 1]]
            total = 0.0
            for p in range(x.size):
                total += x[p] * w[np.uint64(columns[p])]
            out[i] = total
    elif fortran:
        for start in range(lo, hi, _BLOCK):
            y = out[start : min(start + _BLOCK, hi)]
            y[:] = 0.0
            for j in range(n_cols):
                x = values[j * n_rows + start : j * n_rows + start + y.size]
                w_j = w[j]
                for i in range(y.size):
                    y[i] += w_j * x[i]
    else:
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
def t_dot(values, indices, indptr, n_rows, n_cols, fortran, c, lo, hi, acc):
    """acc[j] += sum_i c[i] X[i, j] over lo <= i < hi; unless `fortran`, rows with c[i] == 0 are not read."""
    if indptr.size == 0 and fortran:
        for start in range(lo, hi, _BLOCK):
            y = c[start : min(start + _BLOCK, hi)]
            for j in range(n_cols):
                x = values[j * n_rows + start : j * n_rows + start + y.size]
                total = 0.0
                for i in range(y.size):
                    total += y[i] * x[i]
                acc[j] += total
        return
    rows = np.empty(_CHUNK, np.int64)
    for start in range(lo, hi, _CHUNK):
        n = _list_nonzero(c, start, min(start + _CHUNK, hi), rows)
        if indptr.size > 0:
            for k in range(n):
                i = rows[k]
                x = values[indptr[i] : indptr[i + 1]]
                columns = indices[indptr[i] : indptr[i + 1]]
                c_i = c[i]
                for p in range(x.size):
                    acc[np.uint64(columns[p])] += c_i * x[p]
        else:
            _add_rows(values, n_cols, c, rows[:n], acc)


@compiled
def _list_nonzero(c, lo, hi, rows):
    """Write the i in lo <= i < hi with c[i] != 0 to rows and count them: no branch, so none mispredicted."""
    n = 0
    for i in range(lo, hi):
        rows[n] = i
        n += c[i] != 0.0
    return n


@compiled(sums=True)
def _add_rows(values, d, c, rows, acc):
    """Add c[i] X[i] for the i in `rows` (increasing) to acc."""
    if rows.size == 0:
        return
    row_bytes = d * values.itemsize
    gapped = 4 * rows.size < 3 * (rows[-1] - rows[0] + 1)
    k = 0
    if row_bytes >= _LONG_BYTES or (gapped and row_bytes >= _SHORT_BYTES):
        while k + 8 <= rows.size:
            x0, c0 = _row(values, d, rows[k]), c[rows[k]]
            x1, c1 = _row(values, d, rows[k + 1]), c[rows[k + 1]]
            x2, c2 = _row(values, d, rows[k + 2]), c[rows[k + 2]]
            x3, c3 = _row(values, d, rows[k + 3]), c[rows[k + 3]]
            x4, c4 = _row(values, d, rows[k + 4]), c[rows[k + 4]]
            x5, c5 = _row(values, d, rows[k + 5]), c[rows[k + 5]]
            x6, c6 = _row(values, d, rows[k + 6]), c[rows[k + 6]]
            x7, c7 = _row(values, d, rows[k + 7]), c[rows[k + 7]]
            for j in range(d):
                first = c0 * x0[j] + c1 * x1[j] + c2 * x2[j] + c3 * x3[j]
                acc[j] += first + c4 * x4[j] + c5 * x5[j] + c6 * x6[j] + c7 * x7[j]
            k += 8
    elif row_bytes < _SHORT_BYTES:
        while k + 2 <= rows.size:
            x0, c0 = _row(values, d, rows[k]), c[rows[k]]
            x1, c1 = _row(values, d, rows[k + 1]), c[rows[k + 1]]
            for j in range(d):
                acc[j] += c0 * x0[j] + c1 * x1[j]
            k += 2
    while k < rows.size:
        x0, c0 = _row(values, d, rows[k]), c[rows[k]]
        for j in range(d):
            acc[j] += c0 * x0[j]
        k += 1


@compiled
def _row(values, d, i):
    return values[i * d : (i + 1) * d]


@compiled(sums=True)
def t_dot_columns(values, indices, indptr, starts, c, part, col_lo, acc):
    """Add the entries of one part of `split_columns`, times c[i], to acc, which begins at column col_lo."""
    rows = np.empty(_CHUNK, np.int64)
    n_rows = indptr.size - 1
    for start in range(0, n_rows, _CHUNK):
        n = _list_nonzero(c, start, min(start + _CHUNK, n_rows), rows)
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
def sq_norms(values, indices, indptr, n_rows, n_cols, fortran, lo, hi, out):
    """out[i] = sum_j X[i, j]^2 for lo <= i < hi."""
    if indptr.size == 0 and fortran:
        for start in range(lo, hi, _BLOCK):
            y = out[start : min(start + _BLOCK, hi)]
            y[:] = 0.0
            for j in range(n_cols):
                x = values[j * n_rows + start : j * n_rows + start + y.size]
                for i in range(y.size):
                    y[i] += np.float64(x[i]) * np.float64(x[i])
        return
    for i in range(lo, hi):
        if indptr.size > 0:
            x = values[indptr[i] : indptr[i + 1]]
        else:
            x = values[i * n_cols : (i + 1) * n_cols]
        total = 0.0
        for p in range(x.size):
            total += np.float64(x[p]) * np.float64(x[p])
        out[i] = total


@compiled
def is_sorted(indices, indptr):
    """Whether the column indices strictly increase within every row."""
    for i in range(indptr.size - 1):
        columns = indices[indptr[i] : indptr[i + 1]]
        n_wrong = 0
        for p in range(1, columns.size):  # counted to the end: a loop without an exit is vectorised
            n_wrong += columns[p] <= columns[p - 1]
        if n_wrong > 0:
            return False
    return True
