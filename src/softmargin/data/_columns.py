"""Passes over sparse rows that renumber columns, split them by how many rows use them, and merge those of one row."""

import numpy as np

from softmargin.core.jit import compiled
from softmargin.data.columns import ALONE


@compiled
def count(indices, counts):
    """counts[j] += the number of entries in column j."""
    for p in range(np.uint64(indices.size)):
        counts[np.uint64(indices[p])] += 1


@compiled
def renumber(indices, level, next_number, number, out):
    """out[p] = the new number of column indices[p]; number[j] >= 0 once column j has one.

    A column that is met for the first time gets the next number of its level.
    """
    for p in range(np.uint64(indices.size)):
        j = np.uint64(indices[p])
        if number[j] < 0:
            number[j] = next_number[level[j]]
            next_number[level[j]] += 1
        out[p] = number[j]


@compiled
def alone(values, indices, indptr, level, lo, hi, n_alone, squares):
    """How many columns each row alone uses, and the sum of the squares of its entries there."""
    for i in range(lo, hi):
        n, total = 0, 0.0
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            if level[np.uint64(indices[p])] == ALONE:
                n += 1
                total += np.float64(values[p]) * np.float64(values[p])
        n_alone[i], squares[i] = n, total


@compiled
def split(
    values,
    indices,
    indptr,
    level,
    common_levels,
    number,
    n_common,
    lo,
    hi,
    values_a,
    indices_a,
    starts_a,
    values_b,
    rows_b,
    next_b,
    positions,
    bounds,
):
    """Entries of rows lo to hi: those of common columns to A, the others to B; where the row's own ones are."""
    one = np.uint64(1)
    a = np.uint64(starts_a[lo])
    for i in range(lo, hi):
        m = np.uint64(bounds[i])
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = np.uint64(indices[p])
            if level[j] < common_levels:
                values_a[a], indices_a[a] = values[p], number[j]
                a += one
            elif level[j] == ALONE:
                positions[m] = p
                m += one
            else:
                column = np.uint64(number[j] - n_common)
                b = np.uint64(next_b[column])
                values_b[b], rows_b[b] = values[p], i
                next_b[column] += 1
        starts_a[i + 1] = a


@compiled
def place(values, positions, bounds, parts, part_bounds, roots, rows):
    """The parts of all rows and their row numbers: roots[:, i], or the entries as they were if they are as many."""
    for i in range(bounds.size - 1):
        first, n_parts = part_bounds[i], part_bounds[i + 1] - part_bounds[i]
        as_they_were = n_parts == bounds[i + 1] - bounds[i]
        for k in range(n_parts):
            parts[first + k] = values[positions[bounds[i] + k]] if as_they_were else roots[k, i]
            rows[first + k] = i


@compiled
def expand(number, w2, w):
    """w[j] = w2[number[j]], or 0 where column j has no number."""
    for j in range(number.size):
        w[j] = w2[np.uint64(number[j])] if number[j] >= 0 else 0.0


@compiled
def contract(number, w, w2):
    """w2[number[j]] = w[j]; every number is that of one column, or of merged ones."""
    for j in range(number.size):
        if number[j] >= 0:
            w2[np.uint64(number[j])] = w[j]


@compiled
def spread(values, indices, positions, bounds, parts, part_bounds, w2, w):
    """The weights of merged columns: those of a row are a multiple of its entries."""
    for i in range(bounds.size - 1):
        total = squares = 0.0
        for k in range(part_bounds[i], part_bounds[i + 1]):
            total += parts[k] * w2[k]
            squares += np.float64(parts[k]) * np.float64(parts[k])
        n_alone = bounds[i + 1] - bounds[i]
        as_they_were = n_alone == part_bounds[i + 1] - part_bounds[i]
        for m in range(n_alone):
            p = np.uint64(positions[bounds[i] + m])
            w[np.uint64(indices[p])] = w2[part_bounds[i] + m] if as_they_were else total / squares * values[p]


@compiled
def gather(values, indices, positions, bounds, parts, part_bounds, w, w2):
    """The part of w along the merged entries of each row."""
    for i in range(bounds.size - 1):
        total = squares = 0.0
        for m in range(bounds[i], bounds[i + 1]):
            p = np.uint64(positions[m])
            total += values[p] * w[np.uint64(indices[p])]
            squares += np.float64(values[p]) * np.float64(values[p])
        as_they_were = bounds[i + 1] - bounds[i] == part_bounds[i + 1] - part_bounds[i]
        for k in range(part_bounds[i + 1] - part_bounds[i]):
            column = np.uint64(indices[np.uint64(positions[bounds[i] + k])])
            w2[part_bounds[i] + k] = w[column] if as_they_were else total / squares * parts[part_bounds[i] + k]
