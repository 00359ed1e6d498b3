"""Measures of a two-class ranking by scores, and of predicted labels."""

from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError


def accuracy(y: Any, predicted: Any) -> float:
    """Share of the rows whose predicted label is the true one."""
    y, predicted = np.asarray(y), np.asarray(predicted)
    if y.shape != predicted.shape or y.size == 0:
        raise SoftmarginError(f"{y.shape} labels and {predicted.shape} predictions cannot be compared.")
    return float(np.mean(y == predicted))


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
