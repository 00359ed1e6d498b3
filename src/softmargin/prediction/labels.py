"""From scores to labels, for models in memory and for those that are still a file. NumPy only."""

import numpy as np

from softmargin.core.errors import SoftmarginError

# What one-class models predict.
INSIDE_OR_OUTSIDE = np.array([-1, 1])


def finite_scores(scores: np.ndarray) -> np.ndarray:
    """The same scores, if all of them are finite: a row whose score is not has no label and no place in an order."""
    is_finite = np.isfinite(scores) if scores.ndim == 1 else np.isfinite(scores).all(axis=1)
    if not is_finite.all():
        raise SoftmarginError(
            f"the score of row {int(np.argmin(is_finite))} overflows, so there is no label for it: its values are far "
            "larger than those of the training data. Scale X as in training, and check this row for mistakes."
        )
    return scores


def labels_from_scores(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The class of each row: the second of two if its score is positive, else the one with the largest score."""
    if scores.ndim == 1:
        return classes[(scores > 0).astype(np.intp)]
    return classes[scores.argmax(axis=1)]


def inside_or_outside(scores: np.ndarray) -> np.ndarray:
    """What a one-class model says of scores from which its offset is taken off: 1 inside, -1 for outliers.

    Rows on the boundary are inside: they cost nothing. So are all rows of a model without weights.
    """
    return INSIDE_OR_OUTSIDE[(scores >= 0.0).astype(np.intp)]


def pair_coefficients(dual_coef: np.ndarray, n_support: np.ndarray) -> np.ndarray:
    """One column of coefficients for each pair of classes, from scikit-learn's compressed form.

    Of a support vector of class c the row k of `dual_coef` belongs to the pair with class k, or k + 1 from c on.
    """
    n_classes = n_support.size
    if n_classes == 2:
        return np.ascontiguousarray(dual_coef.T)
    ends = np.cumsum(n_support)
    where = [slice(end - n, end) for end, n in zip(ends, n_support, strict=True)]
    columns = []
    for first in range(n_classes):
        for second in range(first + 1, n_classes):
            column = np.zeros(dual_coef.shape[1])
            column[where[first]] = dual_coef[second - 1, where[first]]
            column[where[second]] = dual_coef[first, where[second]]
            columns.append(column)
    return np.column_stack(columns)


def one_against_one(scores: np.ndarray, n_classes: int) -> np.ndarray:
    """A score for each class from those of the pairs: its votes, and less than half a vote for how clear they were.

    A pair votes for its first class where its score is at least zero.
    """
    votes = np.zeros((len(scores), n_classes))
    clarity = np.zeros_like(votes)
    k = 0
    for first in range(n_classes):
        for second in range(first + 1, n_classes):
            clarity[:, first] += scores[:, k]
            clarity[:, second] -= scores[:, k]
            wins = scores[:, k] >= 0
            votes[:, first] += wins
            votes[:, second] += ~wins
            k += 1
    return votes + clarity / (3.0 * (np.abs(clarity) + 1.0))
