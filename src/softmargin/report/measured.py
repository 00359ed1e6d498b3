"""How good predictions are: curves and tables of bounded size, from scores and labels alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from softmargin.report.data_warnings import short
from softmargin.report.document import Block, Chart, Charts, Fact, Facts, Line, Note, Table, number

CURVES = 5  # classes that have curves of their own: those with the most rows
CLASSES = 50  # of the table of classes
CONFUSED = 30  # of the table of pairs that are mistaken for each other
MATRIX = 12  # more classes than this have pairs instead of a matrix
POINTS = 201
BINS = 10  # of the calibration
RESIDUAL_BINS = 41


def of_classes(classes: np.ndarray, y: np.ndarray, predicted: np.ndarray, scores: Any, proba: Any) -> list[Block]:
    """Accuracy and what stands behind it. `scores` has a column for each class, or is a vector for two, or None."""
    places = {label: k for k, label in enumerate(classes.tolist())}  # 1 and "1" are different labels
    known = np.array([label in places for label in y.tolist()])
    blocks: list[Block] = []
    if not known.any():
        return [
            Note(
                "bad",
                f"None of the labels of these data, such as {short(y[0])}, is a class of the model "
                f"({', '.join(short(each) for each in classes[:5])}{', ...' if classes.size > 5 else ''}). Nothing can "
                "be measured: is this the right file, and the right column of labels?",
            )
        ]
    found = set(y.tolist())
    strangers, missing = y[~known], [label for label in places if label not in found]
    if strangers.size:
        blocks.append(
            Note(
                "look",
                f"{number(int((~known).sum()))} rows have labels that the model does not know, such as "
                f"{short(strangers[0])}. They count as errors, and have no place in the curves.",
            )
        )
    if missing:
        blocks.append(
            Note(
                "look",
                f"{number(len(missing))} of the model's {number(int(classes.size))} classes do not occur in these "
                f"data ({', '.join(short(each) for each in missing[:5])}{', ...' if len(missing) > 5 else ''}): "
                "nothing is said about them.",
            )
        )
    recalls, table = _per_class(classes, y, predicted)
    right = predicted == y
    most_common = max(np.unique(y, return_counts=True)[1]) / y.size
    blocks.append(
        Facts(
            [
                Fact("Accuracy", f"{np.mean(right):.2%}", "The share of rows whose label is predicted."),
                Fact("Guessing", f"{most_common:.2%}", "What always saying the most common label would reach."),
                Fact(
                    "Balanced accuracy",
                    f"{np.mean(recalls):.2%}",
                    "The mean over classes of the share of their rows that is found: rare classes count as much.",
                ),
                Fact("Rows", number(y.size), "How many rows were measured. With few, all figures are uncertain."),
            ]
        )
    )
    blocks.append(table)
    blocks.append(_confusion(classes, y, predicted))
    charts = [] if scores is None else _curves(classes, y[known], scores[known])
    if charts and proba is not None and classes.size == 2:
        charts.append(_calibration(y[known] == classes[1], proba[known][:, 1]))
    elif charts and classes.size == 2:
        charts.append(_share_by_score(y[known] == classes[1], scores[known], classes[1]))
    if charts:
        blocks.append(Charts(charts))
    elif scores is not None:
        blocks.append(Note("look", "Only one class occurs in these data: ROC and precision-recall curves need two."))
    return blocks


def _per_class(classes: np.ndarray, y: np.ndarray, predicted: np.ndarray) -> tuple[list[float], Table]:
    rows, recalls = [], []
    codes = {label: k for k, label in enumerate(classes.tolist())}
    true = np.array([codes.get(label, -1) for label in y.tolist()])
    given = np.array([codes.get(label, -1) for label in predicted.tolist()])
    n_true = np.bincount(true[true >= 0], minlength=classes.size)
    n_given = np.bincount(given[given >= 0], minlength=classes.size)
    hits = np.bincount(true[(true == given) & (true >= 0)], minlength=classes.size)
    for k in np.argsort(-n_true, kind="stable"):
        precision = hits[k] / n_given[k] if n_given[k] else None
        recall = hits[k] / n_true[k] if n_true[k] else None
        f1 = 2 * hits[k] / (n_true[k] + n_given[k]) if n_true[k] + n_given[k] else None
        recalls += [] if recall is None else [recall]
        rows.append(
            [short(classes[k]), *(None if v is None else float(v) for v in (precision, recall, f1)), int(n_true[k])]
        )
    caption = "Precision: of the rows called so, the share that is. Recall: of the rows that are so, the share found."
    if len(rows) > CLASSES:
        caption += f" The {CLASSES} largest of {len(rows)} classes."
    return recalls, Table(caption, ["class", "precision", "recall", "F1", "rows"], rows[:CLASSES])


def _confusion(classes: np.ndarray, y: np.ndarray, predicted: np.ndarray) -> Table:
    if classes.size <= MATRIX:
        rows = [
            [short(true), *(int(np.count_nonzero((y == true) & (predicted == said))) for said in classes)]
            for true in classes
        ]
        columns = ["true class", *(f"called {short(said, 24)}" for said in classes)]
        return Table("Confusion: how many rows of each class were called what.", columns, rows)
    wrong = predicted != y
    pairs, counts = np.unique(
        np.stack([y[wrong].astype(str), predicted[wrong].astype(str)]), axis=1, return_counts=True
    )
    order = np.argsort(-counts, kind="stable")[:CONFUSED]
    rows = [[short(pairs[0, k]), short(pairs[1, k]), int(counts[k])] for k in order]
    caption = f"Confusion: the {len(rows)} most frequent of {number(counts.size)} kinds of mistakes."
    return Table(caption, ["true class", "called", "rows"], rows)


def _curves(classes: np.ndarray, y: np.ndarray, scores: np.ndarray) -> list[Chart]:
    if classes.size == 2:
        problems = [(classes[1], scores if scores.ndim == 1 else scores[:, -1])]
    else:
        counts = np.array([np.count_nonzero(y == label) for label in classes]) if classes.size <= 1000 else None
        order = range(CURVES) if counts is None else np.argsort(-counts, kind="stable")[:CURVES]
        problems = [(classes[k], scores[:, k]) for k in order] if scores.ndim == 2 else []
    grid = np.linspace(0.0, 1.0, POINTS)
    rocs, precisions, areas = [], [], []
    for label, own in problems:
        positive = y == label
        if positive.all() or not positive.any():
            continue
        hits, alarms = _steps(positive, own)
        tpr, fpr = hits / hits[-1], alarms / alarms[-1]
        area = float(np.sum((fpr[1:] - fpr[:-1]) * (tpr[1:] + tpr[:-1])) / 2.0)
        areas.append(f"{short(label, 24)}: {area:.4f}")
        rocs.append(Line(f"class {short(label, 24)}", np.interp(grid, fpr, tpr).tolist()))
        precision = np.divide(hits, hits + alarms, out=np.ones_like(hits), where=hits + alarms > 0)
        best = np.maximum.accumulate(precision[::-1])[::-1]
        place = np.minimum(np.searchsorted(tpr, grid - 1e-12), tpr.size - 1)
        precisions.append(Line(f"class {short(label, 24)}", best[place].tolist()))
    if not rocs:
        return []
    told = "; ".join(areas)
    some = f" Curves of the {len(rocs)} largest classes, each against the rest." if classes.size > 2 else ""
    unit = (0.0, 1.0)
    return [
        Chart(
            "ROC curve",
            f"Found share against false alarms, for every threshold. Area: {told} (0.5 is guessing).{some}",
            "false alarms",
            "found",
            grid.tolist(),
            [*rocs, Line("guessing", grid.tolist(), "dashed", muted=True)],
            x_range=unit,
            y_range=unit,
        ),
        Chart(
            "Precision and recall",
            "The best precision at each recall: what share of the alarms is right if that much is to be found." + some,
            "recall",
            "precision",
            grid.tolist(),
            precisions,
            x_range=unit,
            y_range=unit,
        ),
    ]


def _steps(positive: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hits and false alarms as the threshold falls, from none to all; equal scores are one step."""
    order = np.argsort(-scores, kind="stable")
    positive, scores = positive[order], scores[order]
    ends = np.concatenate([np.flatnonzero(np.diff(scores)), [scores.size - 1]])
    hits = np.cumsum(positive)[ends].astype(np.float64)
    return np.concatenate([[0.0], hits]), np.concatenate([[0.0], ends + 1 - hits])


def _calibration(positive: np.ndarray, proba: np.ndarray) -> Chart:
    edges = np.linspace(0.0, 1.0, BINS + 1)
    place = np.clip(np.digitize(proba, edges) - 1, 0, BINS - 1)
    counts = np.bincount(place, minlength=BINS)
    used = np.flatnonzero(counts)
    said = np.bincount(place, proba, minlength=BINS)[used] / counts[used]
    was = np.bincount(place, positive, minlength=BINS)[used] / counts[used]
    return Chart(
        "Calibration",
        "What share was positive among the rows that got about this probability. On the dashed line the probabilities "
        f"are right; the mean distance from it is {np.sum(counts[used] * np.abs(said - was)) / counts.sum():.3f}.",
        "probability",
        "share that is positive",
        said.tolist(),
        [Line("measured", was.tolist()), Line("right", said.tolist(), "dashed", muted=True)],
        x_range=(0.0, 1.0),
        y_range=(0.0, 1.0),
    )


def _share_by_score(positive: np.ndarray, scores: np.ndarray, label: Any) -> Chart:
    """The counterpart of a calibration for a model without probabilities: bins of about equally many rows."""
    order = np.argsort(scores, kind="stable")
    parts = [part for part in np.array_split(order, BINS) if part.size]
    x = [float(scores[part].mean()) for part in parts]
    return Chart(
        "Calibration of scores",
        f"The share of rows that are {short(label, 24)}, by score, in ten parts of the rows. The model gives scores, "
        "not probabilities; where this curve rises evenly, calibration will work well.",
        "score",
        "share",
        x,
        [Line(f"is {short(label, 24)}", [float(positive[part].mean()) for part in parts])],
        y_range=(0.0, 1.0),
    )


def of_numbers(y: np.ndarray, predicted: np.ndarray) -> list[Block]:
    """Errors of a regression."""
    error = predicted - y
    spread = float(np.sum((y - y.mean()) ** 2))
    r2 = 1.0 - float(np.sum(error**2)) / spread if spread > 0.0 else None
    facts = [
        Fact("Mean absolute error", number(float(np.abs(error).mean())), "How far predictions are off, in units of y."),
        Fact(
            "Root mean square error",
            number(float(np.sqrt(np.mean(error**2)))),
            "The same, with large errors counting more.",
        ),
        Fact("R²", "–" if r2 is None else f"{r2:.4f}", "1 is perfect; 0 is what the mean of y would reach."),
        Fact("Rows", number(y.size), "How many rows were measured."),
    ]
    return [Facts(facts), Charts([_errors(error)])]


def _errors(error: np.ndarray) -> Chart:
    middles, (counts,) = histogram([error], RESIDUAL_BINS)
    return Chart(
        "Errors",
        f"Predicted minus true value. Half of the rows are off by less than {number(float(np.median(np.abs(error))))}.",
        "error",
        "rows",
        middles,
        [Line("rows", counts, "bars")],
    )


def histogram(parts: Sequence[np.ndarray], n_bins: int) -> tuple[list[float], list[list[float]]]:
    """Middles of equal bins over all parts, from the 0.5th to the 99.5th percentile, and the counts of each part.

    What lies outside is counted in the first and the last bin, so that a few far values do not flatten the picture.
    """
    values = np.concatenate(parts)
    low, high = np.percentile(values, [0.5, 99.5])
    if not high > low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, n_bins + 1)
    counts = [np.histogram(np.clip(part, low, high), edges)[0].astype(float).tolist() for part in parts]
    return ((edges[1:] + edges[:-1]) / 2.0).tolist(), counts
