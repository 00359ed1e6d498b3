"""What each kind of model and each kind of training state stores: arrays by name, with types and lengths.

An array is described by its type and the names of its lengths. One name is one length wherever it stands, so that
arrays that contradict each other are found without knowing what they mean; `io/record.py` compares.

Types: "label" is numbers, bool or text; "text" strings; "number" what data consist of; "index" integers of 32 or 64
bits; "float" floats of 32 or 64 bits; the others are those of safetensors.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """What one kind of model stores: arrays it must have, groups of arrays that come together or not at all, values."""

    arrays: Mapping[str, str]
    groups: tuple[Mapping[str, str], ...]
    values: tuple[str, ...]
    rule: Callable[[Mapping[str, int]], bool]  # whether lengths of different names go together


def one_against_rest(lengths: Mapping[str, int]) -> bool:
    """One row of weights for two classes, else one for each; the same of traces and of columns of the dual vector,
    unless all classes were one joint problem, which has one trace, and a column of the dual vector for each class."""
    n_classes = lengths["classes"]
    n_rows = 1 if n_classes == 2 else n_classes
    training = lengths.get("traces", n_rows), lengths.get("columns", n_rows)
    return (
        n_classes >= 2
        and lengths["problems"] == n_rows
        and lengths["features"] >= 1
        and training in ((n_rows, n_rows), (1, n_classes))
    )


def one_against_one(lengths: Mapping[str, int]) -> bool:
    n_classes = lengths["classes"]
    return (
        n_classes >= 2
        and lengths["others"] == n_classes - 1
        and lengths["problems"] == n_classes * (n_classes - 1) // 2
        and _matrices_fit(lengths)
    )


def one_expansion(lengths: Mapping[str, int]) -> bool:
    """A kernel machine without classes: one row of coefficients."""
    return lengths["others"] == lengths["problems"] == lengths["classes"] == 1 and _matrices_fit(lengths)


def one_score(lengths: Mapping[str, int]) -> bool:
    return lengths["features"] >= 1 and lengths.get("problems", 1) == 1


def one_score_in_classes(lengths: Mapping[str, int]) -> bool:
    n_thresholds = lengths["classes"] - 1
    return (
        one_score(lengths) and lengths["thresholds"] == n_thresholds >= 1 <= lengths.get("margins", 1) <= n_thresholds
    )


def _matrices_fit(lengths: Mapping[str, int]) -> bool:
    n_vectors, n_rows = lengths["vectors"], lengths.get("rows", 0)
    return (
        lengths.get("features", 1) >= 1
        and lengths.get("bounds", n_vectors + 1) == n_vectors + 1
        and lengths.get("training_bounds", n_rows + 1) == n_rows + 1
    )


FEATURE_NAMES = {"feature_names_in_": "text features"}
# The records of all sub-problems, one after the other; `lengths` says how many belong to each.
TRACE = {
    "trace.lengths": "I64 problems",
    "trace.iteration": "I64 records",
    "trace.seconds": "F64 records",
    "trace.primal": "F64 records",
    "trace.dual": "F64 records",
    "trace.planes": "I64 records",
    "trace.passes": "I64 records",
    "trace.kernel_evaluations": "I64 records",
    "trace.xi": "F64 records",
}
DUAL = {"dual_": "F64 rows problems"}
CLASSIFIER_TRACE = TRACE | {"trace.lengths": "I64 traces"}
CLASSIFIER_DUAL = {"dual_": "F64 rows columns"}
MARGIN_DUAL = {"dual_": "F64 rows margins"}  # a column for each threshold between classes that have rows
# About the file that the command line trained on: the number of the first feature in svmlight text, and a digest of its
# rows and labels, by which a fit that goes on knows them again.
ORIGIN: dict[str, type] = {"index_base_": int, "data_digest_": str, "search_": dict}
OUTCOME = ("status_", "certificates_", "seconds_", "state", *ORIGIN)
LINEAR_OUTCOME = ("n_iter_", "solver_", *OUTCOME)

LINEAR_CLASSIFIER = Layout(
    arrays={"coef_": "F64 problems features", "intercept_": "F64 problems", "classes_": "label classes"},
    groups=(FEATURE_NAMES, CLASSIFIER_DUAL, CLASSIFIER_TRACE),
    values=LINEAR_OUTCOME,
    rule=one_against_rest,
)
LINEAR_SCORE = Layout(
    arrays={"coef_": "F64 features", "intercept_": "F64 problems"},
    groups=(FEATURE_NAMES, DUAL, TRACE),
    values=LINEAR_OUTCOME,
    rule=one_score,
)
LINEAR_NOVELTY = Layout(
    arrays={"coef_": "F64 problems features", "intercept_": "F64 problems"},
    groups=(FEATURE_NAMES, DUAL, TRACE),
    values=LINEAR_OUTCOME,
    rule=one_score,
)
RANKING = Layout(
    arrays={"coef_": "F64 features"},
    groups=(FEATURE_NAMES, TRACE),
    values=("n_pairs_", *LINEAR_OUTCOME),
    rule=one_score,
)
ORDINAL = Layout(
    arrays={"coef_": "F64 features", "thresholds_": "F64 thresholds", "classes_": "label classes"},
    groups=(FEATURE_NAMES, MARGIN_DUAL, TRACE),
    values=LINEAR_OUTCOME,
    rule=one_score_in_classes,
)

# --- kernel models ------------------------------------------------------------------------------------------------

EXPANSION = {"dual_coef_": "F64 others vectors", "intercept_": "F64 problems", "n_support_": "I32 classes"}
# A precomputed kernel has neither: its vectors are known by their rows in the training data.
DENSE_VECTORS = {"support_vectors_": "number vectors features"}
SPARSE_VECTORS = {
    "support_vectors_.data": "number entries",
    "support_vectors_.indices": "index entries",
    "support_vectors_.indptr": "index bounds",
}
EXPANSION_TRAINING = {
    "support_": "I32 vectors",
    "n_iter_": "I32 problems",
    "n_free_": "I32 problems",
    "n_bounded_": "I32 problems",
    **TRACE,
}
KERNEL_TRAINING = {**EXPANSION_TRAINING, "class_weight_": "F64 classes"}
# What `partial_fit`, `forget` and `leave_one_out` of a kernel model go on from: its training rows, each with the
# position of its class, or with its number.
_ROWS = {"training.weights": "F64 rows", "training.ids": "I64 rows"}
ROWS_OF_CLASSES = {"training.codes": "I64 rows", **_ROWS}
ROWS_WITH_NUMBERS = {"training.y": "F64 rows", **_ROWS}
DENSE_TRAINING = {"training.X": "number rows features"}
SPARSE_TRAINING = {
    "training.X.data": "number training_entries",
    "training.X.indices": "index training_entries",
    "training.X.indptr": "index training_bounds",
}
_KERNEL_VALUES = ("gamma_", "n_features_in_", "counts_", "fit_status_", "shape_fit_", "next_row_id", *OUTCOME)
KERNEL_CLASSIFIER = Layout(
    arrays={**EXPANSION, "classes_": "label classes"},
    groups=(
        FEATURE_NAMES,
        DENSE_VECTORS,
        SPARSE_VECTORS,
        KERNEL_TRAINING,
        ROWS_OF_CLASSES,
        DENSE_TRAINING,
        SPARSE_TRAINING,
    ),
    values=_KERNEL_VALUES,
    rule=one_against_one,
)
KERNEL_SCORE = Layout(
    arrays=EXPANSION,
    groups=(
        FEATURE_NAMES,
        DENSE_VECTORS,
        SPARSE_VECTORS,
        EXPANSION_TRAINING,
        ROWS_WITH_NUMBERS,
        DENSE_TRAINING,
        SPARSE_TRAINING,
    ),
    values=_KERNEL_VALUES,
    rule=one_expansion,
)
KERNEL_NOVELTY = Layout(
    arrays=EXPANSION,
    groups=(FEATURE_NAMES, DENSE_VECTORS, SPARSE_VECTORS, EXPANSION_TRAINING),
    values=_KERNEL_VALUES,
    rule=one_expansion,
)

# --- training states ----------------------------------------------------------------------------------------------

# What a solver continues from: for each sub-problem k the arrays "state.k.gamma" and so on. Which of the states it is,
# and its numbers, stand in the value "state".
PLANE_STATE = {
    "gamma": "F64 planes",
    "idle": "I64 planes",
    "best.x": "F64 width",
    "best.f": "F64 rows",
    "planes.vectors": "F64 planes width",
    "planes.gram": "F64 planes planes",
    "planes.constants": "F64 planes",
    "planes.latest.c": "F64 rows",
    "planes.latest.slope": "F64 weights",
}
STATES = {
    "PlaneState": {
        **PLANE_STATE,
        "planes.witness_bits": "U8 planes bytes",
        "planes.witness_row": "I64 planes",
        "planes.witness_fraction": "F64 planes",
    },
    "RankingState": {
        **PLANE_STATE,
        "planes.witness_scores": "float planes rows",
        "planes.witness_c": "F64 planes kept",  # all rows of wide data, none of others
    },
    "JointState": {
        **PLANE_STATE,  # f and c have an entry for each class of each row
        "planes.witness_classes": "U16 planes examples",
    },
    "OrdinalState": {
        **PLANE_STATE,
        "planes.witness_bits": "U8 planes slots bytes",
        "planes.witness_rows": "I64 planes thresholds",
        "planes.witness_fractions": "F64 planes thresholds",
    },
    "SubgradientState": {
        "w": "F64 weights",
        "hits": "F64 rows",
        "seen": "F64 rows",
        "total": "F64 weights",
        "best": "F64 weights",
        "best_f": "F64 rows",
        "bound": "F64 rows",
    },
    "CoordinateState": {
        "beta": "F64 rows",
        "best": "F64 weights",
        "best_f": "F64 outputs",
        "bound": "F64 rows",
        "sweep.w": "F64 padded",
        "sweep.order": "I64 present",
        "sweep.tail": "F64 padded",
        "sweep.wait": "I64 waiting",  # all rows, or none of joint classes
        "sweep.due_turn": "I64 waiting",
    },
    "NewtonState": {
        "w": "F64 weights",
        "f": "F64 outputs",
        "beta": "F64 rows",
        "slope": "F64 weights",
        "matrix": "F64 columns columns",  # empty before the first step, as are the curvatures
        "curved": "F64 curved",
    },
    "DualState": {
        "beta": "F64 members",
        "f": "F64 members",
    },
}
