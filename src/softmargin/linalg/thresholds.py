"""Thresholds that turn scores into ranks with the least error on given rows.

    min over theta_1 <= ... <= theta_(R-1) of  sum_i s_i cost(number of theta_k below f_i, y_i)

A threshold between two neighbouring scores has the same effect wherever it lies, so there are n + 1 places for each. In
ascending order of the scores the cost of the first p rows, using the ranks up to k, is

    best_k(p) = min over q <= p of  best_(k-1)(q) + cost of giving rank k to rows q .. p-1

and the minimum over q is carried along: O(n log n) for the sort and O(n R) for the rest. Equal scores are never
separated.
"""

import numpy as np

COSTS = ("absolute", "zero_one")


def fit_thresholds(
    scores: np.ndarray, ranks: np.ndarray, weights: np.ndarray, n_ranks: int, cost: str = "absolute"
) -> tuple[np.ndarray, float]:
    """The n_ranks - 1 ascending thresholds with the least weighted error, and that error.

    `ranks` are integers from 0; the error of a row is |predicted - true| ("absolute") or whether they differ
    ("zero_one"). A threshold lies midway between the scores that it separates, and is infinite where it has all of the
    rows on one side. Ranks that are given to no row have thresholds that coincide. Rows without weight do not count.
    """
    from softmargin.linalg import _thresholds

    present = np.flatnonzero(np.asarray(weights) > 0.0)
    order = present[np.argsort(scores[present], kind="stable")]
    sorted_scores = np.asarray(scores, dtype=np.float64)[order]
    sorted_ranks = np.asarray(ranks, dtype=np.int64)[order]
    sorted_weights = np.asarray(weights, dtype=np.float64)[order]
    cuts = np.empty(n_ranks - 1, dtype=np.int64)
    error = _thresholds.place_cuts(sorted_scores, sorted_ranks, sorted_weights, _cost_matrix(n_ranks, cost), cuts)
    edges = np.concatenate([[-np.inf], sorted_scores, [np.inf]])
    return _between(edges[cuts], edges[cuts + 1]), float(error)


def assign_ranks(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """The rank of each score: how many of the ascending thresholds lie below it."""
    return np.searchsorted(thresholds, scores, side="left")


def depths(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """How far each score lies inside each rank, negative outside: column k is min(s - theta_(k-1), theta_k - s).

    The first of the largest in a row is that of `assign_ranks`, also where a score equals a threshold. Ranks beyond an
    infinite threshold, which are never given, have the least finite number.
    """
    edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
    found = np.minimum(scores[:, None] - edges[:-1], edges[1:] - scores[:, None])
    return np.maximum(found, np.finfo(np.float64).min)


def _cost_matrix(n_ranks: int, cost: str) -> np.ndarray:
    """cost[predicted, true]."""
    distance = np.abs(np.subtract.outer(np.arange(n_ranks), np.arange(n_ranks))).astype(np.float64)
    return {"absolute": distance, "zero_one": np.minimum(distance, 1.0)}[cost]


def _between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The middle, or `low` where rounding would not leave it below `high`."""
    with np.errstate(invalid="ignore"):
        middle = 0.5 * low + 0.5 * high
    return np.where((low <= middle) & (middle < high) | np.isinf(low) | np.isinf(high), middle, low)
