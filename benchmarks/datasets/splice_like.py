"""Rows like those of the OCAS paper's largest data set, the human acceptor splice sites, which is not to be had.

A row is a window of 141 letters of DNA, one-hot: 564 binary features, 141 of them 1. All windows have the letters AG
in the middle, as candidates for a splice site do. Few of them are real: as many as in the paper's data, 159,771 of
15,028,326. Real ones differ by the chances of their letters, which are those of the background far away, rich in C and
T before the middle, and a mixture of their own at each position. The two classes overlap, so that no plane parts them.

Rows are made in blocks, each of which has a random generator of its own: a smaller set is the beginning of a larger
one, and of all sizes only one block is in memory.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

PAPER_ROWS = 15_028_326
PAPER_POSITIVES = 159_771
POSITIONS, LETTERS = 141, 4  # A, C, G, T
N_FEATURES = POSITIONS * LETTERS
BLOCK_ROWS = 1 << 16
SEED = 4
# Chances of the letters far from a splice site; the two letters in the middle; how C and T grow before it.
BACKGROUND = (0.29, 0.21, 0.21, 0.29)
MIDDLE = {POSITIONS // 2: 0, POSITIONS // 2 + 1: 2}
TRACT_LENGTH, TRACT_GAIN = 18, 1.1
# The logarithms of the chances of real windows differ by numbers of this size next to the middle, and e times less
# every so many positions away from it.
OWN_SIZE, OWN_REACH = 1.0, 12.0
_LEVELS = 256  # a letter is drawn by one byte


def n_blocks(n_rows: int) -> int:
    return -(-n_rows // BLOCK_ROWS)


def block(k: int, n_rows: int, form: str) -> tuple[Any, np.ndarray]:
    """Block k of so many rows, and their labels -1 and 1: "dense" is an array of uint8, "csr" a matrix of uint8."""
    rng = np.random.default_rng([SEED, k])
    is_real = rng.random(BLOCK_ROWS) < PAPER_POSITIVES / PAPER_ROWS
    drawn = rng.integers(_LEVELS, size=(BLOCK_ROWS, POSITIONS), dtype=np.uint8)
    places = drawn + np.arange(0, _LEVELS * POSITIONS, _LEVELS, dtype=np.uint16)
    others, real = _letter_tables()
    letters = others.take(places)
    letters[is_real] = real.take(places[is_real])
    here = slice(0, min(BLOCK_ROWS, n_rows - k * BLOCK_ROWS))
    letters, y = letters[here], np.where(is_real[here], 1, -1)
    if form == "dense":
        one_hot = (1 << 8 * np.arange(LETTERS, dtype=np.uint64)).astype("<u4")  # a letter is the byte that is 1
        return one_hot.take(letters).view(np.uint8), y
    columns = letters + LETTERS * np.arange(POSITIONS, dtype=np.int32)
    starts = np.arange(0, letters.size + 1, POSITIONS, dtype=np.int32)
    parts = np.ones(letters.size, dtype=np.uint8), columns.ravel(), starts
    return sp.csr_matrix(parts, shape=(len(letters), N_FEATURES)), y


def batches(n_rows: int, form: str) -> Iterator[tuple[Any, np.ndarray]]:
    """X and y, block by block."""
    return (block(k, n_rows, form) for k in range(n_blocks(n_rows)))


def in_memory(n_rows: int, form: str) -> tuple[Any, np.ndarray]:
    """All of X and y. The dense array is filled in place, so that it is in memory once."""
    if form == "csr":
        parts = list(batches(n_rows, form))
        return sp.vstack([X for X, _ in parts], format="csr"), np.concatenate([y for _, y in parts])
    X, y = np.empty((n_rows, N_FEATURES), dtype=np.uint8), np.empty(n_rows, dtype=np.int64)
    at = 0
    for part, labels in batches(n_rows, form):
        where = slice(at, at + len(labels))
        X[where], y[where] = part, labels
        at = where.stop
    return X, y


def store(folder: Path, n_rows: int, form: str) -> Path:
    """The path of a store of these rows, which is written if it is not there."""
    from softmargin import Store

    path = folder / f"splice-like-{form}-{n_rows}.store"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        Store.write(path, batches(n_rows, form))
    return path


@cache
def _letter_tables() -> tuple[np.ndarray, np.ndarray]:
    """For other windows and for real ones: which letter each byte stands for, position after position."""
    rng = np.random.default_rng(SEED)
    distance = np.abs(np.arange(POSITIONS) - POSITIONS // 2)
    background = np.log(np.tile(BACKGROUND, (POSITIONS, 1)))
    real = background + OWN_SIZE * np.exp(-distance / OWN_REACH)[:, None] * rng.standard_normal((POSITIONS, LETTERS))
    middle = min(MIDDLE)
    real[middle - TRACT_LENGTH : middle, [1, 3]] += TRACT_GAIN
    return _table(background), _table(real)


def _table(logs: np.ndarray) -> np.ndarray:
    chances = np.exp(logs)
    chances /= chances.sum(axis=1, keepdims=True)
    for position, letter in MIDDLE.items():
        chances[position] = np.arange(LETTERS) == letter
    ends = np.rint(_LEVELS * chances.cumsum(axis=1))
    levels = np.arange(_LEVELS)
    return (levels[None, :, None] >= ends[:, None, :-1]).sum(axis=2).astype(np.uint8).ravel()
