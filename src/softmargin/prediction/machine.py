"""What a model in a file computes, as arrays: a linear map, or a sum over support vectors; then classes.

Predictions in NumPy and ONNX graphs are made of these. Files are not trusted, so what a kernel model says about itself
is checked here.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from softmargin.core.errors import ModelFileError
from softmargin.io.record import MAX_COLUMNS, ModelRecord, sparse_parts
from softmargin.kernels.by_name import named_kernel
from softmargin.kernels.functions import Kernel
from softmargin.linalg.thresholds import depths
from softmargin.prediction.labels import (
    INSIDE_OR_OUTSIDE,
    inside_or_outside,
    labels_from_scores,
    one_against_one,
    pair_coefficients,
)
from softmargin.tasks.records import TASK_NAMED


@dataclass(frozen=True)
class LinearMap:
    """x coef' + intercept: one column, or one for each class."""

    coef: np.ndarray
    intercept: np.ndarray

    @property
    def n_features(self) -> int:
        return self.coef.shape[1]

    @classmethod
    def of(cls, record: ModelRecord) -> "LinearMap":
        coef, thresholds = np.atleast_2d(record.arrays["coef_"]), record.arrays.get("thresholds_")
        intercept = record.arrays.get("intercept_", np.zeros(1))
        if thresholds is not None:
            intercept = -thresholds if thresholds.size == 1 else np.zeros(1)  # two classes are told apart by the sign
        return cls(coef, intercept)


@dataclass(frozen=True)
class Vectors:
    """Support vectors: a dense array, or the values, column indices and row starts of a CSR matrix."""

    dense: np.ndarray | None
    sparse: tuple[np.ndarray, np.ndarray, np.ndarray] | None
    n_columns: int

    def __len__(self) -> int:
        return len(self.dense) if self.sparse is None else self.sparse[2].size - 1  # type: ignore[arg-type]

    @cached_property
    def used(self) -> np.ndarray | None:
        """The columns in which a sparse vector has an entry; None stands for all of them."""
        return None if self.sparse is None else np.unique(self.sparse[1])

    def block(self, first: int, last: int) -> np.ndarray:
        """Vectors first .. last - 1 as a dense float64 array of the used columns."""
        if self.sparse is None:
            assert self.dense is not None
            return np.asarray(self.dense[first:last], dtype=np.float64)
        values, indices, starts = self.sparse
        used = self.used
        assert used is not None
        out = np.zeros((last - first, used.size))
        inside = slice(starts[first], starts[last])
        rows = np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))
        np.add.at(out, (rows, np.searchsorted(used, indices[inside])), values[inside])
        return out


@dataclass(frozen=True)
class Expansion:
    """sum_s coefficients[s, k] K(x, vector s) + intercept[k]: one column, or one for each pair of classes.

    Without a kernel x holds its kernel values with all training rows, of which those in `support` count.
    """

    kernel: Kernel | None
    vectors: Vectors | None
    support: np.ndarray
    coefficients: np.ndarray
    intercept: np.ndarray
    n_features: int

    @classmethod
    def of(cls, record: ModelRecord) -> "Expansion":
        params, values, arrays = record.params, record.values, record.arrays
        kernel = named_kernel(
            params.get("kernel", "rbf"), values.get("gamma_"), params.get("degree", 3), params.get("coef0", 0.0)
        )
        n_features = values.get("n_features_in_")
        if not isinstance(n_features, int) or not 1 <= n_features <= MAX_COLUMNS:
            raise ModelFileError(f"the number of features cannot be {n_features!r}.")
        sparse = sparse_parts("support_vectors_", arrays, n_features)
        dense = arrays.get("support_vectors_")
        if dense is not None and dense.shape[1] != n_features:
            raise ModelFileError(f"the support vectors have {dense.shape[1]} columns, not {n_features}.")
        has_vectors = sparse is not None or dense is not None
        n_support, dual_coef = arrays["n_support_"], arrays["dual_coef_"]
        if n_support.min() < 0 or n_support.sum(dtype=np.int64) != dual_coef.shape[1]:
            raise ModelFileError("the numbers of support vectors do not add up.")
        support = arrays.get("support_", np.full(dual_coef.shape[1], -1))  # of imported models they are not known
        is_known = support.min(initial=0) >= 0 and support.max(initial=0) < n_features
        if has_vectors == (kernel is None) or (kernel is None and not is_known):
            raise ModelFileError("a model needs its support vectors, or for a precomputed kernel their rows.")
        if len(dual_coef) == 1:
            coefficients = np.ascontiguousarray(dual_coef.T)
        else:
            coefficients = pair_coefficients(dual_coef, n_support)
        vectors = Vectors(dense, sparse, n_features) if has_vectors else None
        return cls(kernel, vectors, support, coefficients, arrays["intercept_"], n_features)


@dataclass(frozen=True)
class Machine:
    """All that stands in a file about predicting, without transformations and calibration."""

    function: LinearMap | Expansion
    classes: np.ndarray | None  # of rankings and regressions there are none
    thresholds: np.ndarray | None  # between more than two ordered classes
    votes: bool  # whether the columns are pairs of classes that vote
    pairs_are_shown: bool  # whether their values are the decision function, as with decision_function_shape="ovo"

    @classmethod
    def of(cls, record: ModelRecord) -> "Machine":
        task = TASK_NAMED[record.kind]
        classes = INSIDE_OR_OUTSIDE if task.target == "nothing" else record.arrays.get("classes_")
        thresholds = record.arrays.get("thresholds_")
        votes = task.has_kernel and task.target == "classes" and classes is not None and classes.size > 2
        shape = record.params.get("decision_function_shape", "ovr")
        return cls(
            Expansion.of(record) if task.has_kernel else LinearMap.of(record),
            classes,
            thresholds if thresholds is not None and thresholds.size > 1 else None,
            votes,
            votes and shape == "ovo",
        )

    @property
    def n_features(self) -> int:
        return self.function.n_features

    def decisions(self, found: np.ndarray) -> np.ndarray:
        """The decision function as the estimator has it, from the columns of the linear map or of the expansion."""
        if self.votes:
            assert self.classes is not None
            return found if self.pairs_are_shown else one_against_one(found, self.classes.size)
        if found.shape[1] > 1:
            return found
        return found[:, 0] if self.thresholds is None else depths(found[:, 0], self.thresholds)

    def labels(self, found: np.ndarray) -> np.ndarray:
        """What the model predicts, from the same columns."""
        if self.classes is None:
            return found[:, 0]
        if self.classes is INSIDE_OR_OUTSIDE:
            return inside_or_outside(found[:, 0])
        decisions: Any = one_against_one(found, self.classes.size) if self.votes else self.decisions(found)
        return labels_from_scores(decisions, self.classes)
