"""Passes over sparse rows that renumber columns and merge those that one row alone uses."""

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
def merge(
    values,
    indices,
    indptr,
    positions,
    bounds,
    n_parts,
    parts,
    level,
    lo,
    hi,
    next_number,
    number,
    values2,
    indices2,
    indptr2,
):
    """Rows lo to hi with renumbered columns; where n_parts[i] > 0, `parts` for the columns that row i alone uses."""
    one = np.uint64(1)
    q = np.uint64(indptr2[lo])
    for i in range(lo, hi):
        m = np.uint64(bounds[i])
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = np.uint64(indices[p])
            if n_parts[i] > 0 and level[j] == ALONE:
                positions[m] = p
                m += one
                continue
            if number[j] < 0:
                number[j] = next_number[level[j]]
                next_number[level[j]] += 1
            values2[q], indices2[q] = values[p], number[j]
            q += one
        for k in range(n_parts[i]):
            values2[q], indices2[q] = parts[k, i], next_number[ALONE]
            next_number[ALONE] += 1
            q += one
        indptr2[i + 1] = q


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
def spread(values, indices, positions, bounds, n_parts, values2, indices2, indptr2, w2, w):
    """The weights of merged columns: those of a row are a multiple of its entries."""
    for i in range(n_parts.size):
        total = squares = 0.0
        for q in range(indptr2[i + 1] - n_parts[i], indptr2[i + 1]):
            total += values2[q] * w2[indices2[q]]
            squares += np.float64(values2[q]) * np.float64(values2[q])
        for m in range(np.uint64(bounds[i]), np.uint64(bounds[i + 1])):
            p = np.uint64(positions[m])
            w[np.uint64(indices[p])] = total / squares * values[p]


@compiled
def gather(values, indices, positions, bounds, n_parts, values2, indices2, indptr2, w, w2):
    """The part of w along the merged entries of each row."""
    for i in range(n_parts.size):
        total = squares = 0.0
        for m in range(np.uint64(bounds[i]), np.uint64(bounds[i + 1])):
            p = np.uint64(positions[m])
            total += values[p] * w[np.uint64(indices[p])]
            squares += np.float64(values[p]) * np.float64(values[p])
        for q in range(indptr2[i + 1] - n_parts[i], indptr2[i + 1]):
            w2[indices2[q]] = total / squares * values2[q]
