"""How good predictions are: for each kind of task its measures, those of the papers among them.

`softmargin evaluate` and the report show these, and a search compares by them. All take a `Case`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from reprlib import repr as shown
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.metrics.classification import accuracy, pr_area, prbep, roc_area, weighted_roc_area
from softmargin.metrics.ranking import (
    mean_average_precision_by_query,
    ndcg_by_query,
    precision_by_query,
    reciprocal_rank_by_query,
    swapped_pairs,
)

# NDCG counts 2^grade - 1 for a row, which makes sense for small whole numbers only. Targets beyond this are taken for
# numbers that have an order but no gain.
LARGEST_GRADE = 31


@dataclass(frozen=True)
class Case:
    """What is to be measured: predictions of some rows, their targets, and if there are some their queries and weights.

    `predicted` are labels of the `classes`, of which -1 and 1 are those of one-class models; without classes they are
    the scores. The scores are one for each row where two classes or ordered ones are told apart, else they have a
    column for each class; they are None if there are no such scores.
    `probabilities` have a column for each class. `ks` are the numbers of places that count in NDCG and precision; with
    `each_query` every query is told.
    """

    y: Any
    predicted: np.ndarray
    scores: np.ndarray | None
    classes: np.ndarray | None = None
    qid: Any = None
    weights: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    ks: Sequence[int] = (10,)
    each_query: bool = False

    def part(self, rows: np.ndarray) -> "Case":
        """The same of some rows only."""
        names = ("y", "predicted", "scores", "qid", "weights", "probabilities")
        parts: Any = {name: None if (part := getattr(self, name)) is None else part[rows] for name in names}
        return replace(self, **parts, each_query=False)


@dataclass(frozen=True)
class Confusion:
    """What is taken for what: `counts[k]`, the weight of the rows with label `true[k]` that are called `called[k]`.

    Both are places among the `labels`: the classes of the model, then labels that it does not know. Only pairs that
    occur are held.
    """

    labels: list
    true: np.ndarray
    called: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, case: Case) -> "Confusion":
        classes = _classes(case)
        labels = [*classes.tolist(), *strangers_of(case.y, classes)]
        place = {label: k for k, label in enumerate(labels)}
        true, called = (np.array([place[label] for label in part.tolist()]) for part in (case.y, case.predicted))
        pairs, where = np.unique(true * len(labels) + called, return_inverse=True)
        return cls(labels, pairs // len(labels), pairs % len(labels), np.bincount(where.ravel(), case.weights))

    def table(self) -> list[list[float]]:
        """Rows by true label (down) and predicted label (across)."""
        found: np.ndarray = np.zeros((len(self.labels), len(self.labels)), dtype=self._type)
        found[self.true, self.called] = self.counts
        return found.tolist()

    def per_class(self) -> dict[str, dict[str, float]]:
        """Precision, recall and F1 of each label; 0 where there are no rows to tell."""
        right = self.true == self.called
        hits = self._sums(self.true[right], self.counts[right])
        there, said = self._sums(self.true, self.counts), self._sums(self.called, self.counts)
        parts = zip(
            map(str, self.labels),
            _shares(hits, said),
            _shares(hits, there),
            _shares(2.0 * hits, there + said),
            there.astype(self._type).tolist(),
            strict=True,
        )
        return {
            label: {"precision": precision, "recall": recall, "f1": f1, "rows": rows}
            for label, precision, recall, f1, rows in parts
        }

    @property
    def _type(self) -> type:
        return int if np.array_equal(self.counts, np.rint(self.counts)) else float

    def _sums(self, places: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return np.bincount(places, counts, minlength=len(self.labels))


def _shares(parts: np.ndarray, wholes: np.ndarray) -> list[float]:
    return np.divide(parts, wholes, out=np.zeros(len(parts)), where=wholes > 0.0).tolist()


def class_measures(case: Case) -> dict[str, Any]:
    """Accuracy, balanced accuracy and macro F1, the areas under the ROC and the precision/recall curve, and each class.

    Labels that the model does not know are errors, and in the areas rows of no class. Of several classes the areas are
    the means over the classes, each against the rest. The break-even point is told of two classes, and the log loss
    where there are probabilities.
    """
    classes, each = _classes(case), Confusion.of(case).per_class()
    found: dict[str, Any] = {
        "accuracy": accuracy(case.y, case.predicted, case.weights),
        "balanced_accuracy": float(np.mean([own["recall"] for own in each.values() if own["rows"]])),
    }
    if case.scores is not None:
        columns = case.scores.reshape(len(case.y), -1)
        chosen = [1] if columns.shape[1] == 1 else range(len(classes))
        areas = [areas_of(case, classes[k], column) for k, column in zip(chosen, columns.T, strict=True)]
        if all(areas):
            names = areas[0] if len(areas) == 1 else ("roc_area", "pr_area")
            found |= {name: float(np.mean([area[name] for area in areas])) for name in names}
    if case.probabilities is not None:
        found["log_loss"] = _log_loss(case, classes, case.probabilities)
    found["macro_f1"] = float(np.mean([own["f1"] for own in each.values()]))
    return found | {"per_class": each}


def areas_of(case: Case, label: Any, scores: np.ndarray) -> dict[str, float]:
    """The areas of one class against the rest by these scores; none if all rows, or none, are of this class."""
    positive = case.y == label
    counts = np.ones(positive.size) if case.weights is None else case.weights
    if not counts[positive].any() or not counts[~positive].any():
        return {}
    if case.weights is not None:
        area = weighted_roc_area(positive, scores, case.weights)
        return {"roc_area": area, "pr_area": pr_area(positive, scores, case.weights)}
    found = {"roc_area": roc_area(positive, scores), "pr_area": pr_area(positive, scores)}
    return found | {"break_even": prbep(positive, scores)}


def _log_loss(case: Case, classes: np.ndarray, table: np.ndarray) -> float:
    places = np.searchsorted(classes, case.y)
    known = classes[np.minimum(places, classes.size - 1)] == case.y
    own = table[np.arange(len(table)), np.minimum(places, classes.size - 1)]
    own = np.clip(np.where(known, own, 0.0), np.finfo(np.float64).eps, 1.0)
    return float(np.average(-np.log(own), weights=case.weights))


def ranking_measures(case: Case) -> dict[str, Any]:
    """Shares of the pairs; NDCG@k, P@k, MAP and MRR where y are grades; ROC area for two grades and one query."""
    y, scores, qid = _numbers(case.y), case.predicted, case.qid
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
    classes = _classes(case)
    truth, found = (_as_numbers(labels, classes) for labels in (case.y, case.predicted))
    measured: dict[str, Any] = {
        "mean_absolute_error": float(np.average(np.abs(truth - found), weights=case.weights)),
        "accuracy": accuracy(case.y, case.predicted, case.weights),
    }
    if case.scores is not None and truth.min() < truth.max():
        measured["pairs_correct"] = 1.0 - swapped_pairs(truth, case.scores, None, case.weights)
    return measured


def regression_measures(case: Case) -> dict[str, Any]:
    """R2 (1 is perfect, 0 as good as the mean of y), mean, median and largest absolute error, root of the mean square,
    and the mean error, which tells whether predictions are too high or too low.
    """
    y = _numbers(case.y)
    weights = np.ones(y.size) if case.weights is None else case.weights
    errors = y - case.predicted
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
    is_outlier = case.predicted == -1
    found: dict[str, Any] = {"share_of_outliers": float(np.average(is_outlier, weights=case.weights))}
    if case.y is not None and np.array_equal(np.unique(case.y), [-1, 1]):
        found |= class_measures(case)
    return found


def _numbers(y: np.ndarray) -> np.ndarray:
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


def strangers_of(y: np.ndarray, classes: np.ndarray) -> list:
    """The labels that are no classes, in rising order. 1 and "1" are different labels."""
    known = set(classes.tolist())
    return [label for label in np.unique(y).tolist() if label not in known]


def _classes(case: Case) -> np.ndarray:
    """The classes of the model, of which at least one must be among the labels."""
    classes = case.classes
    assert classes is not None
    strangers = strangers_of(case.y, classes)
    if len(strangers) == len(np.unique(case.y)):
        raise SoftmarginError(
            f"none of the labels {shown(strangers)} is a class of the model {shown(classes.tolist())}: is this the "
            "file the model is for?"
        )
    return classes
