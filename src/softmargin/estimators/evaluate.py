"""How good predictions are: for each kind of task its measures, those of the papers among them.

All of them take a `Case`. Light: no scikit-learn, and Numba only to count pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.estimators.record_scoring import Predictor
from softmargin.metrics import (
    mean_average_precision_by_query,
    ndcg_by_query,
    pr_area,
    prbep,
    precision_by_query,
    reciprocal_rank_by_query,
    roc_area,
    swapped_pairs,
    weighted_roc_area,
)
from softmargin.prediction.calibration import probabilities

# NDCG counts 2^grade - 1 for a row, which makes sense for small whole numbers only. Targets beyond this are taken for
# numbers that have an order but no gain.
LARGEST_GRADE = 31


@dataclass(frozen=True)
class Case:
    """What is to be measured: scores of some rows, their targets, and if there are some their queries and weights.

    `ks` are the numbers of places that count in NDCG and precision; with `each_query` every query is told.
    """

    predictor: Predictor
    scores: np.ndarray
    y: Any
    qid: Any = None
    ks: Sequence[int] = (10,)
    weights: np.ndarray | None = None
    each_query: bool = False

    def part(self, rows: np.ndarray) -> "Case":
        """The same of some rows only."""
        y, qid, weights = (None if part is None else part[rows] for part in (self.y, self.qid, self.weights))
        return replace(self, scores=self.scores[rows], y=y, qid=qid, weights=weights, each_query=False)


def class_measures(case: Case) -> dict[str, Any]:
    """Accuracy and macro F1, the areas under the ROC and the precision/recall curve, each class, and the confusion.

    Of several classes the areas are the means over the classes, each against the rest. The break-even point is told of
    two classes, and the log loss where there are probabilities.
    """
    classes = _classes(case.predictor, case.y)
    predicted, y = case.predictor.labels(case.scores), case.y
    weights = np.ones(len(y)) if case.weights is None else case.weights
    found: dict[str, Any] = {"accuracy": float(np.average(y == predicted, weights=weights))}
    columns = case.scores.reshape(len(y), -1)
    chosen = [1] if columns.shape[1] == 1 else range(len(classes))
    areas = []
    for k, column in zip(chosen, columns.T, strict=True):
        positive = y == classes[k]
        if weights[positive].any() and weights[~positive].any():
            areas.append(_areas(positive, column, case.weights))
    if len(areas) == len(classes) or (areas and columns.shape[1] == 1):
        names = areas[0] if columns.shape[1] == 1 else ("roc_area", "pr_area")
        found |= {name: float(np.mean([area[name] for area in areas])) for name in names}
    if case.predictor.calibration is not None:
        found["log_loss"] = _log_loss(case, classes, weights)
    labels = [*classes.tolist(), *np.setdiff1d(y, classes).tolist()]
    table = _confusion(labels, y, predicted, weights)
    each = {str(label): _of_class(table, k) for k, label in enumerate(labels)}
    found["macro_f1"] = float(np.mean([own["f1"] for own in each.values()]))
    is_whole = case.weights is None
    rows = table.astype(np.int64).tolist() if is_whole else table.tolist()
    confusion = {
        str(label): dict(zip(map(str, labels), row, strict=True)) for label, row in zip(labels, rows, strict=True)
    }
    return found | {"per_class": each, "confusion": confusion}


def _areas(positive: np.ndarray, scores: np.ndarray, weights: np.ndarray | None) -> dict[str, float]:
    if weights is not None:
        area = weighted_roc_area(positive, scores, weights)
        return {"roc_area": area, "pr_area": pr_area(positive, scores, weights)}
    found = {"roc_area": roc_area(positive, scores), "pr_area": pr_area(positive, scores)}
    return found | {"break_even": prbep(positive, scores)}


def _log_loss(case: Case, classes: np.ndarray, weights: np.ndarray) -> float:
    assert case.predictor.calibration is not None
    table = probabilities(case.scores, case.predictor.calibration)
    places = np.searchsorted(classes, case.y)
    known = classes[np.minimum(places, classes.size - 1)] == case.y
    own = table[np.arange(len(table)), np.minimum(places, classes.size - 1)]
    own = np.clip(np.where(known, own, 0.0), np.finfo(np.float64).eps, 1.0)
    return float(np.average(-np.log(own), weights=weights))


def _confusion(labels: list, y: np.ndarray, predicted: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weights of the rows by true label (down) and predicted label (across)."""
    place = {label: k for k, label in enumerate(labels)}
    true, called = (np.array([place[label] for label in part.tolist()]) for part in (y, predicted))
    flat = np.bincount(true * len(labels) + called, weights, minlength=len(labels) ** 2)
    return flat.reshape(len(labels), len(labels))


def _of_class(table: np.ndarray, k: int) -> dict[str, float]:
    hits, called, there = float(table[k, k]), float(table[:, k].sum()), float(table[k].sum())
    return {
        "precision": hits / called if called else 0.0,
        "recall": hits / there if there else 0.0,
        "f1": 2.0 * hits / (called + there) if called + there else 0.0,
        "rows": int(there) if there == int(there) else there,
    }


def ranking_measures(case: Case) -> dict[str, Any]:
    """Shares of the pairs; NDCG@k, P@k, MAP and MRR where y are grades; ROC area for two grades and one query."""
    y, scores, qid = case.y, case.scores, case.qid
    swapped = swapped_pairs(y, scores, qid, case.weights)
    found: dict[str, Any] = {"pairs_correct": 1.0 - swapped, "swapped_pairs": swapped}
    upper = y > y.min()
    has_two = len(np.unique(y)) == 2
    is_graded = y.min() >= 0 and y.max() <= LARGEST_GRADE and np.all(y == np.rint(y))
    if (is_graded or has_two) and upper.any():
        grades = y if is_graded else upper.astype(np.int64)
        by_query = {f"ndcg@{k}": ndcg_by_query(grades, scores, qid, k) for k in case.ks}
        by_query["map"] = mean_average_precision_by_query(grades, scores, qid)
        by_query["mrr"] = reciprocal_rank_by_query(grades, scores, qid)
        by_query |= {f"p@{k}": precision_by_query(grades, scores, qid, k) for k in case.ks}
        found |= {name: float(values) for name, values in by_query.items()}
        if case.each_query:
            names = next(iter(by_query.values())).queries.tolist()
            found["per_query"] = {
                str(query): {name: float(values.values[k]) for name, values in by_query.items()}
                for k, query in enumerate(names)
            }
    if has_two and (qid is None or len(np.unique(qid)) == 1):
        found["roc_area"] = roc_area(upper, scores)
    return found


def ordinal_measures(case: Case) -> dict[str, Any]:
    """Mean absolute error and accuracy of the labels, the share of pairs that the scores put in order, and the classes.

    The error is in units of the labels where they are ascending numbers, else of places in their order.
    """
    classes, predicted = _classes(case.predictor, case.y), case.predictor.labels(case.scores)
    truth, found = (_as_numbers(labels, classes) for labels in (case.y, predicted))
    measured: dict[str, Any] = {
        "mean_absolute_error": float(np.average(np.abs(truth - found), weights=case.weights)),
        "accuracy": float(np.average(case.y == predicted, weights=case.weights)),
    }
    if truth.min() < truth.max():
        measured["pairs_correct"] = 1.0 - swapped_pairs(truth, case.scores, None, case.weights)
    return measured


def regression_measures(case: Case) -> dict[str, Any]:
    """R2 (1 is perfect, 0 as good as the mean of y), mean, median and largest absolute error, root of the mean square,
    and the mean error, which tells whether predictions are too high or too low.
    """
    y = as_targets(case.y)
    weights = np.ones(y.size) if case.weights is None else case.weights
    errors = y - case.scores
    squares, spread = (float(weights @ np.square(part)) for part in (errors, y - np.average(y, weights=weights)))
    return {
        "r2": 1.0 - squares / spread if spread > 0.0 else (1.0 if squares == 0.0 else 0.0),
        "mean_absolute_error": float(np.average(np.abs(errors), weights=weights)),
        "root_mean_squared_error": float(np.sqrt(squares / weights.sum())),
        "median_absolute_error": float(np.median(np.abs(errors)[weights > 0])),
        "largest_error": float(np.abs(errors)[weights > 0].max()),
        "mean_error": float(np.average(-errors, weights=weights)),
    }


def novelty_measures(case: Case) -> dict[str, Any]:
    """The share of outliers; where the labels are -1 and 1, how well these are told apart."""
    is_outlier = case.predictor.labels(case.scores) == -1
    found: dict[str, Any] = {"share_of_outliers": float(np.average(is_outlier, weights=case.weights))}
    if case.y is not None and np.array_equal(np.unique(case.y), [-1, 1]):
        found |= class_measures(case)
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
