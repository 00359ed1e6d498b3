"""From a model that is still a record to scores: what the command line predicts with.

Light: scikit-learn is not imported, and the compiler for kernel models only. Files are not trusted, so what a kernel
model says about itself is checked before it is used.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from softmargin.core.errors import ModelFileError
from softmargin.core.threads import thread_count
from softmargin.data.columns import without_empty_columns
from softmargin.data.convert import as_rows
from softmargin.estimators.kernel_scoring import kernel_scores, one_against_one, pair_coefficients
from softmargin.estimators.scoring import INSIDE_OR_OUTSIDE, inside_or_outside, labels_from_scores, linear_scores
from softmargin.io.record import MAX_COLUMNS, ModelRecord, matrix_from_arrays
from softmargin.kernels.by_name import named_kernel
from softmargin.kernels.functions import RBF, Laplacian
from softmargin.linalg.thresholds import assign_ranks
from softmargin.tasks.records import TASK_NAMED

_IN_DISTANCES = "in all support vectors they are zero, and they count in the distances"


@dataclass(frozen=True)
class Predictor:
    """Rankings and regressions have no classes; ordered classes have thresholds between them.

    `scores(X, n_jobs)` has shape (n_rows,) for both and for two classes, else (n_rows, n_classes); nan where X is not
    finite. X may have more columns than the model has features, unless `unseen` is empty: features that training never
    saw, where all its rows were zero. `unseen` says what they mean for the scores.
    """

    classes: np.ndarray | None
    n_features: int
    scores: Callable[[Any, int | None], np.ndarray]
    thresholds: np.ndarray | None = None
    unseen: str = "they have weight zero"

    def labels(self, scores: np.ndarray) -> np.ndarray:
        """The class of each row; if there are no classes, its score is what is predicted."""
        if self.classes is None:
            return scores
        if self.classes is INSIDE_OR_OUTSIDE:
            return inside_or_outside(scores)
        if self.thresholds is None or self.classes.size == 2:
            return labels_from_scores(scores, self.classes)
        return self.classes[assign_ranks(scores, self.thresholds)]


def predictor_of(record: ModelRecord) -> Predictor:
    """What predicts with a model that may come from anywhere."""
    return TASK_NAMED[record.kind].predictor.load()(record)


def linear_predictor(record: ModelRecord) -> Predictor:
    arrays = record.arrays
    classes, thresholds, coef = _classes(record), arrays.get("thresholds_"), np.atleast_2d(arrays["coef_"])
    intercept = arrays.get("intercept_", np.zeros(1))
    if thresholds is not None:
        intercept = -thresholds if thresholds.size == 1 else np.zeros(1)  # two classes are told apart by the sign
    n_features = coef.shape[1]

    def scores(X: Any, n_jobs: int | None) -> np.ndarray:
        if X.shape[1] == n_features:
            return linear_scores(X, coef, intercept)
        found = linear_scores(X[:, :n_features], coef, intercept)
        return (found.T + _no_number(X[:, n_features:])).T

    return Predictor(classes, n_features, scores, thresholds)


def kernel_predictor(record: ModelRecord) -> Predictor:
    params, values, arrays = record.params, record.values, record.arrays
    kernel = named_kernel(
        params.get("kernel", "rbf"), values.get("gamma_"), params.get("degree", 3), params.get("coef0", 0.0)
    )
    n_features, classes = values.get("n_features_in_"), _classes(record)
    if not isinstance(n_features, int) or not 1 <= n_features <= MAX_COLUMNS:
        raise ModelFileError(f"the number of features cannot be {n_features!r}.")
    vectors = matrix_from_arrays("support_vectors_", arrays, n_features)
    n_support, dual_coef = arrays["n_support_"], arrays["dual_coef_"]
    if n_support.min() < 0 or n_support.sum(dtype=np.int64) != dual_coef.shape[1]:
        raise ModelFileError("the numbers of support vectors do not add up.")
    support = arrays.get("support_", np.full(dual_coef.shape[1], -1))  # of imported models they are not known
    is_known = support.min(initial=0) >= 0 and support.max(initial=0) < n_features
    if (vectors is None) != (kernel is None) or (kernel is None and not is_known):
        raise ModelFileError("a model needs its support vectors, or for a precomputed kernel their rows.")
    coefficients = np.ascontiguousarray(dual_coef.T) if len(dual_coef) == 1 else pair_coefficients(dual_coef, n_support)

    def scores(X: Any, n_jobs: int | None) -> np.ndarray:
        known = X if X.shape[1] == n_features else X[:, :n_features]
        intercept = arrays["intercept_"]
        found = kernel_scores(known, kernel, support, vectors, coefficients, intercept, thread_count(n_jobs))
        if known is not X:
            found = intercept + (found - intercept) * _falloff(kernel, X[:, n_features:])[:, None]
        (rows,), _ = without_empty_columns(as_rows(known))
        if not np.isfinite(rows.flat.values).all():  # and a kernel of infinity may be finite
            found[np.isnan(rows.dot(np.zeros(rows.n_cols)))] = np.nan
        return found.ravel() if len(dual_coef) == 1 else one_against_one(found, n_support.size)

    unseen = {RBF: _IN_DISTANCES, Laplacian: _IN_DISTANCES, type(None): ""}
    return Predictor(classes, n_features, scores, unseen=unseen.get(type(kernel), Predictor.unseen))


def _classes(record: ModelRecord) -> np.ndarray | None:
    """The labels that a model predicts, if it does."""
    if TASK_NAMED[record.kind].target == "nothing":
        return INSIDE_OR_OUTSIDE
    return record.arrays.get("classes_")


def _falloff(kernel: Any, unseen: Any) -> np.ndarray:
    """The factor by which features that are zero in all support vectors change the kernel values of each row.

    Products of rows do not see them. Distances do: |x - z|^2, or the sum of |x_j - z_j|, grows by what they add to it.
    """
    match kernel:
        case RBF(gamma):
            distances = gamma * _row_sums(unseen.multiply(unseen))
        case Laplacian(gamma):
            distances = gamma * _row_sums(abs(unseen))
        case _:
            distances = np.zeros(unseen.shape[0])
    return np.exp(-distances) + _no_number(unseen)


def _no_number(unseen: Any) -> np.ndarray:
    """0 for each row, but nan where a value is not finite."""
    return np.where(np.isfinite(_row_sums(abs(unseen))), 0.0, np.nan)


def _row_sums(matrix: Any) -> np.ndarray:
    return np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel()
