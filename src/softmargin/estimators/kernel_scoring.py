"""From support vectors to scores and labels. Light: scikit-learn is not imported."""

from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.threads import Workers, one_blas_thread
from softmargin.data.columns import without_empty_columns
from softmargin.data.convert import as_rows, thinned
from softmargin.kernels.expansion import expansion
from softmargin.kernels.functions import Custom, Kernel


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


def kernel_scores(
    X: Any,
    kernel: Kernel | None,
    support: np.ndarray,
    support_vectors: Any,
    coefficients: np.ndarray,
    intercept: np.ndarray,
    n_threads: int,
) -> np.ndarray:
    """The decision function of each pair of classes: shape (n_rows, n_pairs).

    Without a kernel X holds kernel values with all training rows. Everything is computed in float64, whatever the type
    of the data: coefficients of both signs cancel, and the rounding of float32 can be larger than what is left.
    """
    rows = as_rows(X)
    if kernel is None:
        (rows,), used = without_empty_columns(rows)
        if used is not None:
            known = np.isin(support, used)  # the values with all others are zero
            support, coefficients = np.searchsorted(used, support[known]), coefficients[known]
        return np.asarray(rows.native()[:, support] @ coefficients + intercept, dtype=np.float64)
    vectors = as_rows(support_vectors)
    if rows.n_cols != vectors.n_cols:
        raise SoftmarginError(f"X has {rows.n_cols} features, but the model was trained on {vectors.n_cols}.")
    if not isinstance(kernel, Custom):
        (rows, vectors), _ = without_empty_columns(rows, thinned(vectors))
    with one_blas_thread():
        workers = Workers(n_threads)
        try:
            sums = expansion(kernel, vectors, coefficients, rows, workers)
        finally:
            workers.close()
    return sums + intercept


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
