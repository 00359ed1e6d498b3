"""What the OCAS paper's experiments need generated: its two Gaussians, and windows of DNA for its splice sets."""

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets.problems import Problem, unit_rows

# Standard deviations of the Gaussians: 10 to a power from this range, drawn for each class and feature.
POWERS = (-2.0, 0.75)
# Distance of the means in pooled standard deviations; a ROC area of 0.885 is the most a linear rule can have then.
SEPARATION = 1.7

ASTRO_ROWS, ASTRO_WORDS, WORDS_A_ROW = 62_369, 99_757, 100
WORD_ODDS = 0.6  # deviation of the logarithms of how much more often one class uses a word
WORM_ROWS, WORM_WINDOW = 256_509, 201  # a quarter of the paper's rows, 804 features as there

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


def astro_like(n: int = ASTRO_ROWS, d: int = ASTRO_WORDS) -> Problem:
    """Made-up abstracts of the size of the paper's Astro set: words by Zipf's law, TF-IDF, rows of length 1.

    Each class uses each word more or less often than the other, at random.
    """
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    chance = 1.0 / (np.arange(d) + 10.0)
    odds = WORD_ODDS * rng.standard_normal(d)
    length = rng.poisson(WORDS_A_ROW, n) + 1
    words = np.empty(length.sum(), dtype=np.int64)
    for sign in (1.0, -1.0):
        ends = np.cumsum(chance * np.exp(0.5 * sign * odds))
        mine = np.repeat(y == sign, length)
        words[mine] = np.searchsorted(ends, rng.random(int(mine.sum())) * ends[-1]).clip(0, d - 1)
    counts = sp.csr_matrix((np.ones(words.size), (np.repeat(np.arange(n), length), words)), shape=(n, d))
    seen = np.maximum(np.bincount(counts.indices, minlength=d), 1)
    X = sp.csr_matrix(counts @ sp.diags(np.log(n / seen) + 1.0))
    unit_rows(X)
    return Problem("astro-like", "csr", X, y)


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
