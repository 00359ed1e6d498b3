"""From a model that is still a record to scores: what the command line predicts with.

Light: scikit-learn is not imported, and the compiler for kernel models only. Files are not trusted, so what a kernel
model says about itself is checked before it is used.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from softmargin.core.errors import ModelFileError
from softmargin.data.convert import as_rows
from softmargin.estimators.kernel_scoring import kernel_scores, one_against_one, pair_coefficients
from softmargin.estimators.scoring import linear_scores
from softmargin.io.record import ModelRecord, matrix_from_arrays
from softmargin.kernels.functions import RBF, Kernel, Laplacian, Linear, Polynomial, Sigmoid


@dataclass(frozen=True)
class Predictor:
    """`scores(X, n_threads)` has shape (n_rows,) for two classes, else (n_rows, n_classes); nan if X is not finite."""

    classes: np.ndarray
    n_features: int
    scores: Callable[[Any, int], np.ndarray]


def predictor_of(record: ModelRecord) -> Predictor:
    if record.kind == "SVC":
        return _kernel_predictor(record)
    coef, intercept = record.arrays["coef_"], record.arrays["intercept_"]
    return Predictor(record.arrays["classes_"], coef.shape[1], lambda X, n_threads: linear_scores(X, coef, intercept))


def named_kernel(name: Any, gamma: Any, degree: Any, coef0: Any) -> Kernel | None:
    """The kernel of these parameters; None is "precomputed"."""
    makers: dict[Any, Callable[[], Kernel | None]] = {
        "linear": Linear,
        "rbf": lambda: RBF(float(gamma)),
        "laplacian": lambda: Laplacian(float(gamma)),
        "poly": lambda: Polynomial(float(gamma), int(degree), float(coef0)),
        "sigmoid": lambda: Sigmoid(float(gamma), float(coef0)),
        "precomputed": lambda: None,
    }
    try:
        return makers[name]()
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ModelFileError(
            f"there is no kernel {name!r} with gamma={gamma!r}, degree={degree!r}, coef0={coef0!r}."
        ) from None


def _kernel_predictor(record: ModelRecord) -> Predictor:
    params, values, arrays = record.params, record.values, record.arrays
    kernel = named_kernel(
        params.get("kernel", "rbf"), values.get("gamma_"), params.get("degree", 3), params.get("coef0", 0.0)
    )
    n_features, classes = values.get("n_features_in_"), arrays["classes_"]
    if not isinstance(n_features, int):
        raise ModelFileError("the number of features is missing.")
    vectors = matrix_from_arrays("support_vectors_", arrays, n_features)
    support = arrays.get("support_", np.empty(0, np.int32))
    n_support, dual_coef = arrays["n_support_"], arrays["dual_coef_"]
    if n_support.min() < 0 or n_support.sum(dtype=np.int64) != dual_coef.shape[1] or (vectors is None) != (not kernel):
        raise ModelFileError("what the model says about its support vectors is contradictory.")
    if kernel is None and not (support.size == dual_coef.shape[1] and np.isin(support, np.arange(n_features)).all()):
        raise ModelFileError("a precomputed kernel needs the rows of the support vectors.")
    coefficients = pair_coefficients(dual_coef, n_support)

    def scores(X: Any, n_threads: int) -> np.ndarray:
        found = kernel_scores(X, kernel, support, vectors, coefficients, arrays["intercept_"], n_threads)
        # Some kernels of infinity are finite; zero times infinity is not.
        found[~np.isfinite(as_rows(X).dot(np.zeros(n_features)))] = np.nan
        return found.ravel() if classes.size == 2 else one_against_one(found, classes.size)

    return Predictor(classes, n_features, scores)
