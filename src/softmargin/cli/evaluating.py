"""`softmargin evaluate`."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer

from softmargin.cli import output
from softmargin.cli.data import DataOptions, read_labelled
from softmargin.cli.model_input import block_scores, check_queries, opened_predictor, tell_strangers
from softmargin.core.errors import SoftmarginError
from softmargin.core.text import printable
from softmargin.metrics.measures import Case, Confusion
from softmargin.prediction.calibration import probabilities

SHOWN_CLASSES = 25  # in the table of confusions, to people


def evaluate(
    model: Path, data: Path, options: DataOptions, *, ks: Sequence[int], each_query: bool, as_json: bool
) -> None:
    task, predictor, trained = opened_predictor(model, data)
    ranks = task.target == "queries"
    check_queries(options, ranks)
    if each_query and not ranks:
        raise typer.BadParameter("it is for rankings, and this model is none.", param_hint="--per-query")
    rows = read_labelled(data, options, trained, with_queries=ranks, needs_labels=task.target != "nothing")
    with output.showing("predicting"):
        scores = np.concatenate([found for _, found in block_scores(predictor, rows.X, data, options)])
    found: dict[str, Any] = {"rows": len(scores)} | ({"queries": rows.n_queries} if ranks else {})
    if task.target == "classes" and predictor.classes is not None:
        tell_strangers(rows.y, predictor.classes, data)
    measures = task.measures.load()
    case = Case(
        rows.y,
        predictor.labels(scores),
        scores,
        predictor.classes,
        rows.qid,
        rows.weights,
        None if predictor.calibration is None else probabilities(scores, predictor.calibration),
        ks,
        each_query,
    )
    found |= measures(case)
    if "per_class" in found:
        confusion = Confusion.of(case)
        labels = list(map(str, confusion.labels))
        found["confusion"] = {
            label: dict(zip(labels, row, strict=True)) for label, row in zip(labels, confusion.table(), strict=True)
        }
    if rows.by is not None:
        found["by"] = {
            str(value): {"rows": int(np.count_nonzero(rows.by == value)), **_single(measures, case, rows.by == value)}
            for value in np.unique(rows.by).tolist()
        }
    if as_json:
        output.show(found, as_json)
        return
    tables = {name: found.pop(name) for name in ("per_class", "confusion", "per_query", "by") if name in found}
    output.show(found, as_json)
    if len(tables.get("confusion", ())) > SHOWN_CLASSES:
        del tables["confusion"]
        output.note(f"who is taken for whom among more than {SHOWN_CLASSES} classes is shown with --json.")
    for name, table in tables.items():
        title = {"confusion": "true \\ predicted", "by": str(options.by)}.get(name, name.removeprefix("per_"))
        typer.echo()
        output.show_rows([{title: printable(value)} | line for value, line in table.items()])


def _single(measures: Callable[[Case], dict[str, Any]], case: Case, rows: np.ndarray) -> dict[str, Any]:
    """The measures of some rows that are single numbers; none where these rows allow none, such as of one class."""
    try:
        found = measures(case.part(rows))
    except SoftmarginError:
        return {}
    return {name: value for name, value in found.items() if not isinstance(value, Mapping)}
