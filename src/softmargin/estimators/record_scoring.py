"""From a model that is still a record to scores: what the command line predicts with.

Light: scikit-learn is not imported, and the compiler for kernel models only. Files are not trusted, so what a kernel
model says about itself is checked before it is used.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softmargin.core.errors import ModelFileError
from softmargin.core.threads import thread_count
from softmargin.data.columns import without_empty_columns
from softmargin.data.convert import as_rows
from softmargin.estimators.kernel_scoring import kernel_scores
from softmargin.estimators.scoring import linear_scores
from softmargin.io.record import Calibration, ModelRecord, matrix_from_arrays
from softmargin.kernels.functions import RBF, Laplacian
from softmargin.linalg.thresholds import assign_ranks
from softmargin.prediction.calibration import probabilities
from softmargin.prediction.labels import (
    INSIDE_OR_OUTSIDE,
    inside_or_outside,
    labels_from_scores,
    one_against_one,
)
from softmargin.prediction.machine import Expansion, LinearMap
from softmargin.prediction.transforms import keeps_zeros, transformed, transformed_csr
from softmargin.tasks.records import TASK_NAMED

_BLOCK = 1 << 21  # entries of sparse rows that are made dense at a time, where a scaling moves the zeros
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
    calibration: Calibration | None = None

    def labels(self, scores: np.ndarray) -> np.ndarray:
        """The class of each row; if there are no classes, its score is what is predicted."""
        if self.classes is None:
            return scores
        if self.calibration is not None:  # the most probable class, as load_predictor and scikit-learn have it
            return self.classes[probabilities(scores, self.calibration).argmax(axis=1)]
        if self.classes is INSIDE_OR_OUTSIDE:
            return inside_or_outside(scores)
        if self.thresholds is None or self.classes.size == 2:
            return labels_from_scores(scores, self.classes)
        return self.classes[assign_ranks(scores, self.thresholds)]


def predictor_of(record: ModelRecord) -> Predictor:
    """What predicts with a model that may come from anywhere."""
    found = TASK_NAMED[record.kind].predictor.load()(record)
    if not record.transform:
        return replace(found, calibration=record.calibration)
    for step in record.transform:
        for name, array in step.arrays.items():
            if array.size != found.n_features:
                raise ModelFileError(f"{name} of {step.kind} has {array.size} values for {found.n_features} features.")
    zeros_stay = keeps_zeros(record.transform)

    def scores(X: Any, n_jobs: int | None) -> np.ndarray:
        if not hasattr(X, "indptr"):
            return found.scores(transformed(X, record.transform), n_jobs)
        if zeros_stay:
            return found.scores(transformed_csr(X, record.transform), n_jobs)
        step = max(1, _BLOCK // max(1, X.shape[1]))
        blocks = (X[low : low + step].toarray() for low in range(0, X.shape[0], step))
        return np.concatenate([found.scores(transformed(block, record.transform), n_jobs) for block in blocks])

    return replace(found, scores=scores, calibration=record.calibration)


def linear_predictor(record: ModelRecord) -> Predictor:
    coef, intercept = (linear := LinearMap.of(record)).coef, linear.intercept
    classes, thresholds, n_features = _classes(record), record.arrays.get("thresholds_"), linear.n_features

    def scores(X: Any, n_jobs: int | None) -> np.ndarray:
        if X.shape[1] == n_features:
            return linear_scores(X, coef, intercept)
        found = linear_scores(X[:, :n_features], coef, intercept)
        return (found.T + _no_number(X[:, n_features:])).T

    return Predictor(classes, n_features, scores, thresholds)


def kernel_predictor(record: ModelRecord) -> Predictor:
    sums = Expansion.of(record)
    kernel, n_features, intercept, classes = sums.kernel, sums.n_features, sums.intercept, _classes(record)
    vectors = matrix_from_arrays("support_vectors_", record.arrays, n_features)

    def scores(X: Any, n_jobs: int | None) -> np.ndarray:
        known = X if X.shape[1] == n_features else X[:, :n_features]
        found = kernel_scores(known, kernel, sums.support, vectors, sums.coefficients, intercept, thread_count(n_jobs))
        if known is not X:
            found = intercept + (found - intercept) * _falloff(kernel, X[:, n_features:])[:, None]
        (rows,), _ = without_empty_columns(as_rows(known))
        if not np.isfinite(rows.flat.values).all():  # and a kernel of infinity may be finite
            found[np.isnan(rows.dot(np.zeros(rows.n_cols)))] = np.nan
        return found.ravel() if classes is None or classes.size == 2 else one_against_one(found, classes.size)

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
