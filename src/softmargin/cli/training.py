"""`softmargin train`."""

from pathlib import Path
from typing import Any

import typer

from softmargin.cli import files, output
from softmargin.cli import options as train_options
from softmargin.cli.data import DataOptions, naming
from softmargin.cli.fitting import (
    Surroundings,
    fitted_and_saved,
    prepared,
    scaled_rows,
    warnings_as_notes,
    with_steps,
)
from softmargin.cli.resuming import check_same_data, resumed
from softmargin.core.threads import StopHandler
from softmargin.io.record import Step

# What the folds of --cv are drawn with.
CV_SEED = 0


def train(
    data: Path,
    model: Path,
    options: DataOptions,
    given: dict[str, Any],
    *,
    surroundings: Surroundings,
    n_folds: int | None,
    resume: bool,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    to_stream = files.is_output_stream(model)
    if to_stream and (resume or as_json):
        what = "--resume goes on with the model in a file" if resume else "--json describes the model in a file"
        raise typer.BadParameter(f"{what}: give MODEL a name.")
    if resume and n_folds is not None:
        raise typer.BadParameter("--resume goes on with one model, and --cv trains others.", param_hint="--cv")
    files.check_output(model, {"DATA": data}, force=force or resume, is_model=True)
    if resume and surroundings != Surroundings():
        raise typer.BadParameter("--resume goes on with the scaling of the model: leave the other out.")
    transform: tuple[Step, ...] | None = None
    if resume:
        estimator, transform = resumed(model, given)
    else:
        estimator = train_options.task_meant(given).machine.load()()
    surroundings.check(train_options.task_of(estimator))
    is_told = not (quiet or as_json)
    rows = prepared(estimator, data, options, given, resume=resume, is_told=is_told)
    rows = scaled_rows(rows, surroundings.scaling, data) if transform is None else with_steps(rows, transform)
    if resume:
        check_same_data(estimator, rows, data, model, force=force)
    estimator.set_params(verbose=int(output.is_watched() and is_told))
    handler = StopHandler(_tell_patience)
    with handler.installed():
        found = {}
        if n_folds is not None:
            from softmargin.cli.tuning import cross_validated

            with naming(data, rows), output.showing("cross-validating"), warnings_as_notes(as_json):
                found = cross_validated(estimator, rows, n_folds, CV_SEED)
        summary, shortfall = fitted_and_saved(estimator, rows, data, model, surroundings, handler, as_json)
    if as_json or not quiet:
        output.show(summary | found, as_json, apart=to_stream)
    if shortfall and not as_json:
        output.note(shortfall)
    if shortfall:
        raise typer.Exit(output.STOPPED_EARLY)


def _tell_patience() -> None:
    """Answers a signal, which may come while anything is being written: no stream is used."""
    output.tell_at_once("Stopping: the model so far is judged and saved. Ctrl-\\ ends at once, without it.")
