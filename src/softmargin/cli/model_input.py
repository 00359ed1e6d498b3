"""Model files as commands open them, and the scores of the rows of a file."""

from collections.abc import Callable, Iterator
from pathlib import Path
from reprlib import repr as shown
from typing import Any

import numpy as np
import typer

from softmargin.cli import files, output
from softmargin.cli.data import DataOptions, Trained
from softmargin.core.errors import DataFormatError, ModelFileError, SoftmarginError
from softmargin.estimators.record_scoring import Predictor, predictor_of
from softmargin.io.model_file import read_model
from softmargin.tasks.records import TASK_NAMED, Task


def opened_model(model: Path, data: Path, read: Callable[[Path], Any]) -> Any:
    """The model, by one of its readers."""
    if files.is_input_stream(model) and files.is_input_stream(data):
        raise typer.BadParameter("MODEL and DATA cannot both come from the standard input.")
    try:
        with files.readable(model, is_model=True) as file:
            return read(file)
    except ModelFileError:
        if files.is_model(data):
            raise SoftmarginError(f"{files.title(data)} is the model, not {model}: MODEL comes before DATA.") from None
        raise


def opened_predictor(model: Path, data: Path) -> tuple[Task, Predictor, Trained]:
    """The model's task, what predicts, and what it expects of the data."""
    record = opened_model(model, data, read_model)
    try:
        predictor = predictor_of(record)
        names, index_base = record.arrays.get("feature_names_in_"), record.values.get("index_base_")
        trained = Trained.of(predictor.n_features, names, index_base, predictor.unseen)
        return TASK_NAMED[record.kind], predictor, trained
    except SoftmarginError as error:
        raise ModelFileError(f"{files.title(model)}: {error}") from None


def block_scores(predictor: Predictor, X: Any, data: Path, options: DataOptions) -> Iterator[tuple[slice, np.ndarray]]:
    """Which rows, and their scores: all rows at once, or those of a store chunk by chunk."""
    blocks = X.blocks() if data.is_dir() else [(slice(0, X.shape[0]), X)]
    for where, part in blocks:
        rows = _widened(part.native(), predictor.n_features) if data.is_dir() else part
        scores = predictor.scores(rows, options.n_jobs)
        bad = ~np.isfinite(scores if scores.ndim == 1 else scores.sum(axis=1))
        if bad.any():
            row = where.start + int(np.argmax(bad)) + 1
            raise DataFormatError(
                f"row {row} has values that are not finite, or too large to be scored.", file=files.title(data)
            )
        yield where, scores


def _widened(rows: Any, n_features: int) -> Any:
    """Sparse rows of a store with all features of the model: those that the store never saw are zero."""
    if not hasattr(rows, "indptr") or rows.shape[1] >= n_features:
        return rows
    return type(rows)((rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], n_features), copy=False)


def tell_strangers(y: np.ndarray, classes: np.ndarray, data: Path) -> None:
    strangers = np.setdiff1d(y, classes)
    if strangers.size > 0:
        n_rows = np.count_nonzero(np.isin(y, strangers))
        output.note(
            f"{files.title(data)}: labels that the model does not know, {shown(strangers.tolist())}, occur in {n_rows} "
            f"of {len(y)} rows, which count as errors."
        )


def check_queries(options: DataOptions, ranks: bool) -> None:
    if options.no_qid and not ranks:
        raise typer.BadParameter("it is for rankings, and this model is none.", param_hint="--no-qid")
