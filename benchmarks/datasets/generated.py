"""What the OCAS paper's experiments need generated: its two Gaussians, and windows of DNA for its splice sets."""

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets.problems import Problem

# Standard deviations of the Gaussians: 10 to a power from this range, drawn for each class and feature.
POWERS = (-2.0, 0.75)
# Distance of the means in pooled standard deviations; a ROC area of 0.885 is the most a linear rule can have then.
SEPARATION = 1.7

LETTERS = 4
POSITIVES = 0.25
# A letter of the motif is put over the random one with this chance at the centre, and e times more rarely every so
# many positions away from it.
MOTIF_CHANCE, MOTIF_REACH = 0.7, 6.0
WINDOW_BLOCK = 100_000  # rows that are made at a time


def gaussians(n: int, d: int = 500) -> Problem:
    """Two Gaussians with different diagonal covariance matrices of multiple scale, dense.

    The paper says no more than that; means and scales were tried until objective, ROC area and iterations of OCAS came
    near its own.
    """
    rng = np.random.default_rng(0)
    deviation = 10.0 ** rng.uniform(*POWERS, (2, d))
    direction = rng.standard_normal(d)
    direction *= 0.5 * SEPARATION / np.linalg.norm(direction)
    mean = direction * np.sqrt((deviation**2).mean(axis=0))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = rng.standard_normal((n, d))
    for sign, scale in zip((1.0, -1.0), deviation, strict=True):
        X[y == sign] = X[y == sign] * scale + sign * mean
    return Problem("artificial", "dense", X, y)


def dna_windows(n: int, window: int = 141) -> Problem:
    """Random windows of DNA, one-hot as float32 CSR: 4 * window features, one in four of them 1.

    Rows of the positive class carry a motif around the centre, whose letters are the more often missing the further
    away they are. 141 positions make the 564 features of the paper's human splice data.
    """
    rng = np.random.default_rng(0)
    motif = rng.integers(LETTERS, size=window, dtype=np.int8)
    chance = MOTIF_CHANCE * np.exp(-np.abs(np.arange(window) - window // 2) / MOTIF_REACH)
    y = np.where(rng.random(n) < POSITIVES, 1.0, -1.0)
    indices = np.empty((n, window), dtype=np.int32)
    first = LETTERS * np.arange(window, dtype=np.int32)
    for start in range(0, n, WINDOW_BLOCK):
        part = slice(start, start + WINDOW_BLOCK)
        letters = rng.integers(LETTERS, size=indices[part].shape, dtype=np.int8)
        has_motif = (y[part, None] > 0) & (rng.random(letters.shape, dtype=np.float32) < chance)
        indices[part] = first + np.where(has_motif, motif, letters)
    starts = np.arange(0, n * window + 1, window, dtype=np.int32)
    ones = np.ones(indices.size, dtype=np.float32)
    X = sp.csr_matrix((ones, indices.ravel(), starts), shape=(n, LETTERS * window))
    return Problem("DNA windows", "csr", X, y)
