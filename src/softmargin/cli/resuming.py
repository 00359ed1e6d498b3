"""`train --resume`: the model that is gone on with, and what must not differ."""

from pathlib import Path
from typing import Any

from softmargin.cli import files, output
from softmargin.cli import options as train_options
from softmargin.cli.data import Labelled
from softmargin.cli.wording import option
from softmargin.core.errors import SoftmarginError
from softmargin.estimators.persistence import load_alone
from softmargin.io.record import Step

# Parameters that --resume may change. All others are those of the model.
LIMITS = ("C", "tol", "max_seconds", "max_iter", "n_jobs", "cache_bytes")


def resumed(model: Path, given: dict[str, Any]) -> tuple[Any, tuple[Step, ...]]:
    """The model of the file, ready for a longer fit, and the scaling in front of it."""
    estimator, record = load_alone(model, as_machine=True)
    task = train_options.task_of(estimator)
    if given.get("task", task.word) != task.word:
        raise SoftmarginError(f"--resume goes on with the model's own task, {task.word}: leave the other out.")
    train_options.check(given, task, getattr(estimator, "kernel", None))
    if not hasattr(estimator, "_state"):
        raise SoftmarginError(f"{model} was not stopped early: there is nothing to resume. Train it anew.")
    if record.calibration is not None:
        raise SoftmarginError(f"{model} has probabilities, which a longer fit would change: train it anew.")
    return estimator.set_params(warm_start=True, max_seconds=None, max_iter=None), record.transform


def check_unchanged(estimator: Any, given: dict[str, Any]) -> None:
    """Refuse parameters that are not those of the model."""
    for name in given.keys() - set(LIMITS):
        own = getattr(estimator, name)
        if given[name] != own:
            raise SoftmarginError(
                f"--resume goes on with the model's own {option(name)}, {'none' if own is None else repr(own)}: leave "
                "the other out."
            )


def check_same_data(estimator: Any, rows: Labelled, data: Path, model: Path, *, force: bool) -> None:
    """A fit goes on exactly where it was stopped on the same rows only; on others it can begin from its weights."""
    digest = vars(estimator).pop("data_digest_", None)
    if digest is None:
        output.note(
            f"{model} does not say which rows it was trained on. If {files.title(data)} has others, the fit begins "
            "anew, from the weights of the model."
        )
    elif digest != rows.digest():
        message = (
            f"{files.title(data)} does not hold the rows and labels that {model} was stopped on, in the same order"
        )
        if not force:
            raise SoftmarginError(
                f"{message}: name that file, or train on these rows with --force, which begins from the weights of "
                "the model and replaces it."
            )
        output.note(f"{message}: the fit begins anew, from the weights of the model.")
