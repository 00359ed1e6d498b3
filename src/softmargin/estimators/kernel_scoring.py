"""From support vectors to scores and labels. Light: scikit-learn is not imported."""

from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.threads import Workers, one_blas_thread
from softmargin.data.columns import without_empty_columns
from softmargin.data.convert import as_rows, thinned
from softmargin.kernels.expansion import expansion
from softmargin.kernels.functions import Custom, Kernel


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
