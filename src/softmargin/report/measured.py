"""How good predictions are, by the measures of `softmargin evaluate`: facts, curves and tables of bounded size."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from softmargin.metrics.measures import Case, Confusion, areas_of, class_measures, strangers_of
from softmargin.report.data_warnings import short
from softmargin.report.document import Block, Chart, Charts, Fact, Facts, Line, Note, Table, number

CURVES = 5  # classes that have curves of their own: those with the most rows
CLASSES = 50  # of the table of classes
CONFUSED = 30  # of the table of pairs that are mistaken for each other
MATRIX = 12  # more classes than this have pairs instead of a matrix
POINTS = 201
BINS = 10  # of the calibration
RESIDUAL_BINS = 41


# What is shown of the measures of `softmargin evaluate`: how each is called, how it is written, and what it means.
FACTS = {
    "accuracy": ("Accuracy", "{:.2%}", "The share of rows whose label is predicted."),
    "balanced_accuracy": (
        "Balanced accuracy",
        "{:.2%}",
        "The mean over classes of the share of their rows that is found: rare classes count as much.",
    ),
    "macro_f1": ("Macro F1", "{:.2%}", "The mean over classes of F1, which is high if precision and recall both are."),
    "roc_area": (
        "ROC area",
        "{:.4f}",
        "How often a row of the class has a higher score than another; 0.5 is guessing. Of several classes the mean.",
    ),
    "pr_area": (
        "Precision-recall area",
        "{:.4f}",
        "The mean precision over all recalls; guessing reaches the share of the class. Of several classes the mean.",
    ),
    "log_loss": ("Log loss", "{:.4f}", "How much the labels surprise the probabilities; 0 is perfect."),
    "share_of_outliers": ("Outliers", "{:.2%}", "The share of these rows that the model calls unlike the others."),
    "pairs_correct": (
        "Pairs in order",
        "{:.2%}",
        "The share of pairs with different grades that the scores put in the right order; 50 % is guessing.",
    ),
    "map": ("Mean average precision", "{:.4f}", "The mean precision at the places of the relevant rows."),
    "mrr": ("Mean reciprocal rank", "{:.4f}", "1 / the place of the first relevant row, on average over queries."),
    "mean_absolute_error": ("Mean absolute error", "{:.4g}", "How far predictions are off, in units of y."),
    "root_mean_squared_error": ("Root mean square error", "{:.4g}", "The same, with large errors counting more."),
    "median_absolute_error": ("Median absolute error", "{:.4g}", "Half of the rows are off by less than this."),
    "largest_error": ("Largest error", "{:.4g}", "How far the worst prediction is off."),
    "mean_error": ("Mean error", "{:.4g}", "Above 0 predictions are too high on the whole, below 0 too low."),
    "r2": ("R²", "{:.4f}", "1 is perfect; 0 is what the mean of y would reach."),
}
# Likewise, with the number of places behind it.
FACTS_AT = {
    "ndcg": ("NDCG of the first {}", "How good the first places are, by grade; 1 is the best order there is."),
    "p": ("Precision of the first {}", "The share of relevant rows among the first places."),
}


def blocks_of(case: Case, found: Mapping[str, Any]) -> list[Block]:
    """What was found, by the task's own measures, in words, tables and curves."""
    if case.classes is not None and "accuracy" in found and "per_class" not in found:
        # Thresholds cut one score into classes, which have no scores of their own.
        case = case if len(case.classes) == 2 else replace(case, scores=None)
        found = {**class_measures(case), **found}
    if "per_class" not in found:
        blocks: list[Block] = [Facts([*_facts(found), _n_rows(case)])]
        if "r2" in found:
            blocks.append(Charts([_errors(case.predicted - np.asarray(case.y, dtype=np.float64))]))
        return blocks
    per_class = found["per_class"]
    classes = np.asarray(case.classes)
    most_common = max(own["rows"] for own in per_class.values()) / len(case.y)
    guessing = Fact("Guessing", f"{most_common:.2%}", "What always saying the most common label would reach.")
    blocks = [*_unknown(case), Facts([*_facts(found), guessing, _n_rows(case)])]
    blocks += [_class_table(per_class), _confusion(Confusion.of(case), classes.size)]
    charts = [] if case.scores is None else _curves(case, classes, case.scores, per_class)
    if charts and classes.size == 2:
        positive, scores = case.y == classes[1], np.asarray(case.scores)
        if case.probabilities is None:
            charts.append(_share_by_score(positive, scores, classes[1]))
        else:
            charts.append(_calibration(positive, case.probabilities[:, 1]))
    if charts:
        blocks.append(Charts(charts))
    elif case.scores is not None:
        blocks.append(Note("look", "Only one class occurs in these data: ROC and precision-recall curves need two."))
    return blocks


def _facts(found: Mapping[str, Any]) -> Iterator[Fact]:
    for name, value in found.items():
        word, _, place = name.partition("@")
        if name in FACTS:
            title, form, meaning = FACTS[name]
            yield Fact(title, form.format(value), meaning)
        elif word in FACTS_AT:
            title, meaning = FACTS_AT[word]
            yield Fact(title.format(place), f"{value:.4f}", meaning)


def _n_rows(case: Case) -> Fact:
    meaning = "How many rows were measured. With few, all figures are uncertain."
    return Fact("Rows", number(len(case.predicted)), meaning)


def _unknown(case: Case) -> Iterator[Note]:
    """Labels that the model does not know, and classes that the data do not have."""
    classes = np.asarray(case.classes)
    strangers = strangers_of(case.y, classes)
    missing = strangers_of(classes, case.y)
    if strangers:
        n_rows = int(np.count_nonzero(np.isin(case.y, np.array(strangers, dtype=case.y.dtype))))
        yield Note(
            "look",
            f"{number(n_rows)} of {number(len(case.y))} rows have labels that the model does not know, such as "
            f"{short(strangers[0])}. They count as errors, and in the curves as rows of no class.",
        )
    if missing:
        yield Note(
            "look",
            f"{number(len(missing))} of the model's {number(classes.size)} classes do not occur in these "
            f"data ({', '.join(short(each) for each in missing[:5])}{', ...' if len(missing) > 5 else ''}): "
            "nothing is said about them.",
        )


def _class_table(per_class: Mapping[str, Any]) -> Table:
    order = sorted(per_class, key=lambda label: -per_class[label]["rows"])
    caption = "Precision: of the rows called so, the share that is. Recall: of the rows that are so, the share found."
    if len(order) > CLASSES:
        caption += f" The {CLASSES} largest of {number(len(order))} classes."
    rows = []
    for label in order[:CLASSES]:
        own = per_class[label]
        shares = [own[name] if own["rows"] else None for name in ("precision", "recall", "f1")]
        rows.append([short(label), *shares, own["rows"]])
    return Table(caption, ["class", "precision", "recall", "F1", "rows"], rows)


def _confusion(found: Confusion, n_classes: int) -> Table:
    names = [short(label) for label in found.labels]
    if len(names) <= MATRIX:
        columns = ["true class", *(f"called {short(label, 24)}" for label in found.labels[:n_classes])]
        rows = [[name, *row[:n_classes]] for name, row in zip(names, found.table(), strict=True)]
        return Table("Confusion: how many rows of each class were called what.", columns, rows)
    wrong = np.flatnonzero(found.true != found.called)
    most = wrong[np.argsort(-found.counts[wrong], kind="stable")][:CONFUSED]
    rows = [[names[found.true[k]], names[found.called[k]], int(found.counts[k])] for k in most.tolist()]
    caption = f"Confusion: the {len(rows)} most frequent of {number(wrong.size)} kinds of mistakes."
    return Table(caption, ["true class", "called", "rows"], rows)


def _curves(case: Case, classes: np.ndarray, scores: np.ndarray, per_class: Mapping[str, Any]) -> list[Chart]:
    columns = scores.reshape(len(scores), -1)
    if columns.shape[1] == 1:
        problems = [(classes[1], columns[:, 0])]
    else:
        order = sorted(range(classes.size), key=lambda k: -per_class[str(classes[k])]["rows"])
        problems = [(classes[k], columns[:, k]) for k in order[:CURVES]]
    grid = np.linspace(0.0, 1.0, POINTS)
    rocs, precisions, areas = [], [], []
    for label, own in problems:
        measured = areas_of(case, label, own)
        if not measured:
            continue
        of_class = f" of class {short(label, 24)}" if len(problems) > 1 else ""
        areas.append(f"area{of_class} {measured['roc_area']:.4f}")
        hits, alarms = _steps(case.y == label, own)
        tpr, fpr = hits / hits[-1], alarms / alarms[-1]
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
            f"Found share against false alarms, for every threshold: {told} (0.5 is guessing).{some}",
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
