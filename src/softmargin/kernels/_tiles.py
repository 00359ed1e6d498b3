"""Tiles of a kernel matrix: products of a few dense rows with many rows, and what makes kernel values of them.

A tile holds the products of some rows with some others and stays in the cache of a core, where a finishing function
turns it into kernel values, in place and in its own type. A dense tile has a row for each left row; a sparse one is the
other way round, and is turned when it is copied to its place.

2^y is a polynomial on [-1/2, 1/2] (Chebyshev interpolation, relative error 3e-9 in single, 5e-18 in double precision)
times a power of two, whose exponent comes from adding a number so large that only integers are left.
"""

import numpy as np

from softmargin.core.jit import compiled

_S0, _S1, _S2, _S3, _S4, _S5, _S6 = (
    np.float32(1.0),
    np.float32(0.6931472067028326),
    np.float32(0.24022650922288757),
    np.float32(0.05550327226670303),
    np.float32(0.009618056678524656),
    np.float32(0.0013400428177615747),
    np.float32(0.00015461444698564738),
)
_SINGLE_ROUND, _SINGLE_SHIFT = np.float32(1.5 * 2**23 + 127), np.int32(23)
_SINGLE_LEAST, _SINGLE_ZERO = np.float32(-126.0), np.float32(0.0)
_D0, _D1, _D2, _D3, _D4, _D5, _D6, _D7, _D8, _D9, _D10, _D11 = (
    1.0,
    0.6931471805599453,
    0.24022650695910158,
    0.055504108664821604,
    0.009618129107587314,
    0.0013333558146410788,
    0.00015403530463679096,
    1.5252733837988064e-05,
    1.3215432551928214e-06,
    1.0178058390428893e-07,
    7.074192209639015e-09,
    4.4556433403988256e-10,
)
_DOUBLE_ROUND, _DOUBLE_SHIFT = 1.5 * 2**52 + 1023, np.int64(52)
_DOUBLE_LEAST = -1022.0


@compiled(sums=True)
def power_single(tile, row_terms, column_terms, scale):
    """2^min(0, row term + column term + scale tile), in float32; below 2^-126 it is that."""
    for i in range(tile.shape[0]):
        to = tile[i]
        term = row_terms[i]
        for j in range(to.size):
            y = max(min(term + column_terms[j] + scale * to[j], _SINGLE_ZERO), _SINGLE_LEAST)
            rounded = np.float32(y + _SINGLE_ROUND)
            f = y - (rounded - _SINGLE_ROUND)
            p = _S0 + f * (_S1 + f * (_S2 + f * (_S3 + f * (_S4 + f * (_S5 + f * _S6)))))
            to[j] = p * np.int32(np.float32(rounded).view(np.int32) << _SINGLE_SHIFT).view(np.float32)


@compiled(sums=True)
def power_double(tile, row_terms, column_terms, scale):
    """2^min(0, row term + column term + scale tile), in float64; below 2^-1022 it is that."""
    for i in range(tile.shape[0]):
        to = tile[i]
        term = row_terms[i]
        for j in range(to.size):
            y = max(min(term + column_terms[j] + scale * to[j], 0.0), _DOUBLE_LEAST)
            rounded = np.float64(y + _DOUBLE_ROUND)
            f = y - (rounded - _DOUBLE_ROUND)
            p = _D6 + f * (_D7 + f * (_D8 + f * (_D9 + f * (_D10 + f * _D11))))
            p = _D0 + f * (_D1 + f * (_D2 + f * (_D3 + f * (_D4 + f * (_D5 + f * p)))))
            to[j] = p * np.int64(np.float64(rounded).view(np.int64) << _DOUBLE_SHIFT).view(np.float64)


@compiled
def polynomial(tile, scale, shift, degree):
    """(scale tile + shift)^degree."""
    for i in range(tile.shape[0]):
        to = tile[i]
        for j in range(to.size):
            base = scale * to[j] + shift
            value = base
            for _ in range(1, degree):
                value *= base
            to[j] = value if degree > 0 else 1


@compiled
def tanh(tile, scale, shift):
    """tanh(scale tile + shift)."""
    for i in range(tile.shape[0]):
        to = tile[i]
        for j in range(to.size):
            to[j] = np.tanh(scale * to[j] + shift)


@compiled
def put(tile, out, slots, at):
    """out[slots[i], at + j] = tile[i, j]."""
    for i in range(tile.shape[0]):
        row = tile[i]
        to = out[slots[i]][at : at + row.size]
        for j in range(row.size):
            to[j] = row[j]


@compiled
def move(slab, places, lo, hi, out, slots, at):
    """out[slots[k], at + j] = slab[places[k], lo + j] for j < hi - lo."""
    for k in range(slots.size):
        row = slab[places[k]][lo:hi]
        to = out[slots[k]][at : at + row.size]
        for j in range(row.size):
            to[j] = row[j]


@compiled
def put_turned(tile, out, slots, at):
    """out[slots[j], at + i] = tile[i, j], sixteen rows of the tile at a time, which is a line of the cache."""
    for first in range(0, tile.shape[0], 16):
        last = min(first + 16, tile.shape[0])
        for j in range(tile.shape[1]):
            to = out[slots[j]][at + first : at + last]
            for i in range(to.size):
                to[i] = tile[first + i, j]


@compiled(sums=True)
def sparse_dots(values, indices, indptr, lo, hi, block, out):
    """out[i - lo, b] = x_i . z_b for sparse rows lo <= i < hi; the rows z_b are the columns of `block`."""
    if block.shape[1] == 1:  # nothing to vectorise over: an ordinary product with a vector
        single = block[:, 0]
        for i in range(lo, hi):
            total = 0.0
            for p in range(indptr[i], indptr[i + 1]):
                total += values[p] * single[np.uint64(indices[p])]
            out[i - lo, 0] = total
        return
    for i in range(lo, hi):
        to = out[i - lo]
        for b in range(to.size):
            to[b] = 0
        p, end = indptr[i], indptr[i + 1]
        while p + 1 < end:
            x0, z0, x1, z1 = values[p], block[indices[p]], values[p + 1], block[indices[p + 1]]
            for b in range(to.size):
                to[b] += x0 * z0[b] + x1 * z1[b]
            p += 2
        if p < end:
            x0, z0 = values[p], block[indices[p]]
            for b in range(to.size):
                to[b] += x0 * z0[b]


@compiled(sums=True)
def sparse_l1(values, indices, indptr, lo, hi, block, lengths, out):
    """out[i - lo, b] = |x_i - z_b|_1 for sparse rows; `lengths` are |z_b|_1."""
    for i in range(lo, hi):
        to = out[i - lo]
        for b in range(to.size):
            to[b] = lengths[b]
        for p in range(indptr[i], indptr[i + 1]):
            x, z = values[p], block[indices[p]]
            for b in range(to.size):
                to[b] += abs(x - z[b]) - abs(z[b])


@compiled(sums=True)
def dense_l1(rows, lo, hi, block, out):
    """out[i - lo, b] = |x_i - z_b|_1 for dense rows; the rows z_b are the columns of `block`."""
    for i in range(lo, hi):
        to = out[i - lo]
        for b in range(to.size):
            to[b] = 0
        for k in range(rows.shape[1]):
            x, z = rows[i, k], block[k]
            for b in range(to.size):
                to[b] += abs(x - z[b])


@compiled(sums=True)
def add_rows(slab, slots, coefficients, lo, hi, total):
    """total[j] += sum_k coefficients[k] slab[slots[k], j] for lo <= j < hi, four rows at a time; sums in float64."""
    n = slots.size
    for at in range(lo, hi, 1024):  # part of `total` that stays in the innermost cache
        end = min(at + 1024, hi)
        to = total[at:end]
        k = 0
        while k + 3 < n:
            r0, r1 = slab[slots[k]][at:end], slab[slots[k + 1]][at:end]
            r2, r3 = slab[slots[k + 2]][at:end], slab[slots[k + 3]][at:end]
            c0, c1, c2, c3 = coefficients[k], coefficients[k + 1], coefficients[k + 2], coefficients[k + 3]
            for j in range(to.size):
                to[j] += c0 * r0[j] + c1 * r1[j] + (c2 * r2[j] + c3 * r3[j])
            k += 4
        while k < n:
            r0, c0 = slab[slots[k]][at:end], coefficients[k]
            for j in range(to.size):
                to[j] += c0 * r0[j]
            k += 1


@compiled
def add_columns(slab, slots, coefficients, lo, hi, totals):
    """totals[c, j] += sum_k coefficients[k, c] slab[slots[k], j] for lo <= j < hi; see `add_rows`."""
    used, values = np.empty(slots.size, np.int64), np.empty(slots.size)
    for c in range(coefficients.shape[1]):
        n = 0
        for k in range(slots.size):
            if coefficients[k, c] != 0.0:
                used[n], values[n] = slots[k], coefficients[k, c]
                n += 1
        add_rows(slab, used[:n], values[:n], lo, hi, totals[c])


@compiled
def gather(slab, slots, members, fresh, lo, hi, matrix):
    """matrix[p, c] = K[members[p], members[c]] for the positions p = fresh[lo .. hi - 1]."""
    for k in range(lo, hi):
        p = fresh[k]
        row = slab[slots[p]]
        to = matrix[p]
        for c in range(members.size):
            to[c] = row[members[c]]


@compiled
def mirror(matrix, fresh):
    """The columns of fresh positions, from their rows."""
    for c in range(matrix.shape[0]):
        to = matrix[c]
        for k in range(fresh.size):
            to[fresh[k]] = matrix[fresh[k], c]
