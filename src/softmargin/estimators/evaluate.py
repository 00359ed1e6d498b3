"""How good predictions are: for each kind of task its measures, those of the papers among them.

All of them take a predictor, the scores of some rows, their targets, their queries (or None), and how many places count
in NDCG. Light: no scikit-learn, and Numba only to count pairs.
"""

from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.estimators.record_scoring import Predictor
from softmargin.metrics import (
    accuracy,
    mean_average_precision_by_query,
    ndcg_by_query,
    prbep,
    roc_area,
    swapped_pairs,
)

# NDCG counts 2^grade - 1 for a row, which makes sense for small whole numbers only. Targets beyond this are taken for
# numbers that have an order but no gain.
LARGEST_GRADE = 31


def class_measures(predictor: Predictor, scores: np.ndarray, y: np.ndarray, qid: Any, k: int) -> dict[str, float]:
    """Accuracy; for two classes also ROC area and break-even point, if both occur among the labels."""
    classes = _classes(predictor, y)
    found = {"accuracy": accuracy(y, predictor.labels(scores))}
    positive = y == classes[1]
    if len(classes) == 2 and 0 < np.count_nonzero(positive) < len(y):
        found |= {"roc_area": roc_area(positive, scores), "break_even": prbep(positive, scores)}
    return found


def ranking_measures(predictor: Predictor, scores: np.ndarray, y: np.ndarray, qid: Any, k: int) -> dict[str, float]:
    """Shares of the pairs; NDCG@k and MAP where y are grades; ROC area for two grades and one query."""
    swapped = swapped_pairs(y, scores, qid)
    found = {"pairs_correct": 1.0 - swapped, "swapped_pairs": swapped}
    upper = y > y.min()
    has_two = len(np.unique(y)) == 2
    is_graded = y.min() >= 0 and y.max() <= LARGEST_GRADE and np.all(y == np.rint(y))
    if is_graded or has_two:
        grades = y if is_graded else upper.astype(np.int64)
        found[f"ndcg@{k}"] = float(ndcg_by_query(grades, scores, qid, k))
        found["map"] = float(mean_average_precision_by_query(grades, scores, qid))
    if has_two and (qid is None or len(np.unique(qid)) == 1):
        found["roc_area"] = roc_area(upper, scores)
    return found


def ordinal_measures(predictor: Predictor, scores: np.ndarray, y: np.ndarray, qid: Any, k: int) -> dict[str, float]:
    """Mean absolute error and accuracy of the labels, and the share of the pairs that the scores put in order.

    The error is in units of the labels where they are ascending numbers, else of places in their order.
    """
    classes, predicted = _classes(predictor, y), predictor.labels(scores)
    truth, found = (_as_numbers(labels, classes) for labels in (y, predicted))
    measured = {"mean_absolute_error": float(np.mean(np.abs(truth - found))), "accuracy": accuracy(y, predicted)}
    if truth.min() < truth.max():
        measured["pairs_correct"] = 1.0 - swapped_pairs(truth, scores)
    return measured


def regression_measures(predictor: Predictor, scores: np.ndarray, y: np.ndarray, qid: Any, k: int) -> dict[str, float]:
    """R2 (1 is perfect, 0 as good as the mean of y), mean absolute error, and root of the mean squared error."""
    errors = as_targets(y) - scores
    squares, spread = float(errors @ errors), float(np.square(y - np.mean(y)).sum())
    return {
        "r2": 1.0 - squares / spread if spread > 0.0 else (1.0 if squares == 0.0 else 0.0),
        "mean_absolute_error": float(np.mean(np.abs(errors))),
        "root_mean_squared_error": float(np.sqrt(squares / len(y))),
    }


def novelty_measures(
    predictor: Predictor, scores: np.ndarray, y: np.ndarray | None, qid: Any, k: int
) -> dict[str, float]:
    """The share of outliers; where the labels are -1 and 1, how well these are told apart."""
    found = {"share_of_outliers": float(np.mean(predictor.labels(scores) == -1))}
    if y is not None and np.array_equal(np.unique(y), [-1, 1]):
        found |= class_measures(predictor, scores, y, qid, k)
    return found


def as_targets(y: np.ndarray) -> np.ndarray:
    """Labels of a file as numbers."""
    try:
        return y.astype(np.float64)
    except ValueError:
        raise SoftmarginError("the labels are not numbers, but this model predicts numbers.") from None


def _as_numbers(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    if classes.dtype.kind in "biuf" and (classes[1:] > classes[:-1]).all():
        return labels.astype(np.float64)
    place = {label: number for number, label in enumerate(classes.tolist())}
    if strangers := {label for label in labels.tolist() if label not in place}:
        raise SoftmarginError(
            f"the label {min(strangers)!r} is none of the model's, which are {list(place)[:5]}: its place is not known."
        )
    return np.array([place[label] for label in labels.tolist()], dtype=np.float64)


def _classes(predictor: Predictor, y: np.ndarray) -> np.ndarray:
    """The classes of the model, of which at least one must be among the labels."""
    classes = predictor.classes
    assert classes is not None
    strangers = np.setdiff1d(y, classes)
    if strangers.size == len(np.unique(y)):
        raise SoftmarginError(
            f"none of the labels {strangers[:5].tolist()} is a class of the model {classes[:5].tolist()}: "
            "is this the file the model is for?"
        )
    return classes
