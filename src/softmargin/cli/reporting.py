"""The command `report`: a model and data to a page for people."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from softmargin.cli import files, output
from softmargin.cli.data import DataOptions, Trained, naming, read_labelled
from softmargin.cli.model_input import check_queries, opened_model
from softmargin.core.errors import SoftmarginError
from softmargin.estimators.persistence import load
from softmargin.report.model_report import check_free
from softmargin.report.model_report import report as reported
from softmargin.tasks.records import TASK_NAMED


def report(model: Path, data: Path, out: Path, options: DataOptions, *, force: bool) -> None:
    to_stream = files.is_output_stream(out)
    files.check_output(out, {"MODEL": model, "DATA": data}, force=force, is_model=False)
    if not to_stream:
        check_free(out, overwrite=force)
    if data.is_dir():
        raise SoftmarginError(
            f"{data} is a store, but a report reads all rows into memory: give a file with some of them."
        )
    estimator = opened_model(model, data, load)
    parts = list(_parts(estimator))
    last = parts[-1]
    task = TASK_NAMED[type(last).__name__]
    ranks = task.target == "queries"
    check_queries(options, ranks)
    # Rows of files are in the order of the model, but carry no names: no part is to look for them.
    known = [vars(part).pop("feature_names_in_", None) for part in parts]
    names = next((each for each in known if each is not None), None)
    trained = Trained.of(estimator.n_features_in_, names, getattr(last, "index_base_", None))
    rows = read_labelled(data, options, trained, with_queries=ranks, needs_labels=False)
    if rows.y is None and task.target != "nothing":
        output.note(f"{files.title(data)} has no labels, so nothing is measured: --label names their column.")
    last.set_params(n_jobs=options.n_jobs)
    command = shlex.join(["softmargin", "report", str(model), str(data), *_how_read(options), "-o", str(out)])
    with naming(data, rows), output.showing("measuring"):
        page = reported(
            estimator,
            rows.X,
            rows.y,
            qid=rows.qid,
            feature_names=rows.feature_names if names is None else names,
            command=command,
        )
    if to_stream:
        typer.echo(page.html)
        return
    page.save(out, overwrite=force)
    output.show({"report": str(out), "rows": rows.X.shape[0], "verdict": page.document.verdict}, False)


def _how_read(options: DataOptions) -> list[str]:
    """The options of the command that say what the file holds, where they are not the usual ones."""
    label = [] if options.label is None else ["--label", options.label]
    base = [] if options.index_base == DataOptions.index_base else ["--index-base", options.index_base]
    return [*label, *base, *(["--no-qid"] if options.no_qid else [])]


def _parts(estimator: Any) -> Iterator[Any]:
    """A model and all that stands in it: the steps of a pipeline, what a calibration is around; the machine is last."""
    yield estimator
    for _, step in getattr(estimator, "steps", ()):
        yield from _parts(step)
    for calibrated in getattr(estimator, "calibrated_classifiers_", ()):
        yield from _parts(calibrated.estimator)
