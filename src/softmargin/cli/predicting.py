"""`softmargin predict`. It starts at once: Numba is imported for kernels only, scikit-learn never."""

from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import typer

from softmargin.cli import files, output
from softmargin.cli.data import DataOptions, read
from softmargin.cli.model_input import block_scores, opened_predictor, tell_strangers
from softmargin.core.errors import SoftmarginError
from softmargin.core.text import printable
from softmargin.prediction.calibration import probabilities


def predict(
    model: Path,
    data: Path,
    out: Path,
    options: DataOptions,
    *,
    scores: bool,
    probability: bool,
    force: bool,
    as_json: bool,
) -> None:
    if as_json and files.is_output_stream(out):
        raise typer.BadParameter("--json describes the predictions, which then go to a file: give OUT.")
    files.check_output(out, {"MODEL": model, "DATA": data}, force=force, is_model=False)
    task, predictor, trained = opened_predictor(model, data)
    if probability and scores:
        raise typer.BadParameter("scores and probabilities are not written at once: drop one.", param_hint="--scores")
    if probability and predictor.calibration is None:
        raise SoftmarginError(f"{files.title(model)} has no probabilities: train it with --probability sigmoid.")
    table = read(data, options, trained, with_queries=task.target == "queries")
    rated = table.y is not None and predictor.classes is not None and np.isin(table.y, predictor.classes).any()
    n_rows = correct = 0
    lines = {
        label: f"{printable(str(label))}\n"
        for label in ([] if predictor.classes is None else predictor.classes.tolist())
    }

    def write_lines(file: Any) -> None:
        nonlocal n_rows, correct
        for where, found in blocks:
            predicted = predictor.labels(found)
            has_scores = scores or probability or predictor.classes is None
            shown_scores = found
            if probability and predictor.calibration is not None:
                shown_scores = probabilities(found, predictor.calibration)
            text = _score_lines(shown_scores) if has_scores else "".join(map(lines.__getitem__, predicted.tolist()))
            file.write(text.encode())
            n_rows += len(predicted)
            if rated and table.y is not None:
                correct += int(np.count_nonzero(predicted == table.y[where]))

    blocks: Iterable[tuple[slice, np.ndarray]] = block_scores(predictor, table.X, data, options)
    if not data.is_dir():
        with output.showing("predicting"):
            blocks = list(blocks)
    with nullcontext() if files.is_output_stream(out) else output.showing("predicting"):
        files.write(out, write_lines)
    summary: dict[str, Any] = {"rows": n_rows, "predictions": str(out)}
    if rated and table.y is not None and predictor.classes is not None:
        tell_strangers(table.y, predictor.classes, data)
        summary |= {"correct": correct, "accuracy": correct / n_rows}
        if not as_json:
            output.note(f"accuracy {100 * correct / n_rows:.4f} % ({correct} of {n_rows})")
    if as_json:
        output.show(summary, as_json)


def _score_lines(scores: np.ndarray) -> str:
    rows = scores[:, None] if scores.ndim == 1 else scores
    return "".join(" ".join(map(repr, row)) + "\n" for row in rows.tolist())
