"""Measures of a two-class ranking by scores, and of predicted labels."""

from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError


def accuracy(y: Any, predicted: Any, weights: Any = None) -> float:
    """Share of the rows, or of their weight, whose predicted label is the true one."""
    y, predicted = np.asarray(y), np.asarray(predicted)
    if y.shape != predicted.shape or y.size == 0:
        raise SoftmarginError(f"{y.shape} labels and {predicted.shape} predictions cannot be compared.")
    return float(np.average(y == predicted, weights=weights))


def roc_area(positive: Any, scores: Any) -> float:
    """The share of pairs of a positive and a negative row that the scores put in the right order; ties count half.

    Parameters
    ----------
    positive : array of bool
        Which rows are of the positive class.
    scores : array of the same length, larger meaning more positive
    """
    positive, scores = _checked(positive, scores)
    n_positive = int(positive.sum())
    n_pairs = n_positive * (positive.size - n_positive)
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    rank = np.cumsum(count) - (count - 1) / 2  # the mean rank of equal scores, from 1
    return float((rank[place[positive]].sum() - n_positive * (n_positive + 1) / 2) / n_pairs)


def weighted_roc_area(positive: Any, scores: Any, weights: Any) -> float:
    """The same of weighted rows: a pair counts by the product of its weights."""
    positive, scores = _checked(positive, scores)
    weights = np.asarray(weights, dtype=np.float64)
    _, place = np.unique(scores, return_inverse=True)
    own, others = (np.bincount(place, np.where(part, weights, 0.0)) for part in (positive, ~positive))
    if not own.any() or not others.any():
        raise SoftmarginError("all rows with a weight are of one class: there is nothing to put in order.")
    return float(own @ (np.cumsum(others) - 0.5 * others) / (own.sum() * others.sum()))


def pr_area(positive: Any, scores: Any, weights: Any = None) -> float:
    """Area under the curve of precision over recall: the mean precision at the places of the positive rows.

    Rows of equal score are called positive together, as in scikit-learn's `average_precision_score`.

    Parameters
    ----------
    positive, scores : as of `roc_area`
    weights : array of the same length; default: all the same
    """
    positive, scores = _checked(positive, scores)
    weights = np.ones(scores.size) if weights is None else np.asarray(weights, dtype=np.float64)
    _, place = np.unique(-scores, return_inverse=True)
    own = np.bincount(place, np.where(positive, weights, 0.0))
    called = np.cumsum(np.bincount(place, weights))
    precision = np.cumsum(own) / np.where(called > 0.0, called, 1.0)
    return float(own @ precision / own.sum())


def prbep(positive: Any, scores: Any) -> float:
    """Precision/recall break-even point: both, when as many rows are called positive as there are positive ones.

    Rows that tie at the threshold count by the share of them that is called positive.
    """
    positive, scores = _checked(positive, scores)
    n_positive = int(positive.sum())
    threshold = np.partition(scores, scores.size - n_positive)[scores.size - n_positive]
    above, tied = scores > threshold, scores == threshold
    share = (n_positive - above.sum()) / tied.sum()
    return float((positive[above].sum() + share * positive[tied].sum()) / n_positive)


def _checked(positive: Any, scores: Any) -> tuple[np.ndarray, np.ndarray]:
    positive, scores = np.asarray(positive), np.asarray(scores, dtype=np.float64)
    if positive.shape != scores.shape or positive.ndim != 1:
        raise SoftmarginError(f"{positive.shape} labels and {scores.shape} scores: one of each for every row, please.")
    if positive.dtype != bool:
        raise SoftmarginError("the first argument says which rows are positive: pass a bool for each, e.g. y == 1.")
    if positive.all() or not positive.any():
        raise SoftmarginError("all rows are of one class: there is nothing to put in order.")
    if not np.isfinite(scores).all():
        raise SoftmarginError("some scores are not finite.")
    return positive, scores
