"""`softmargin train`."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import typer

from softmargin.cli import output
from softmargin.cli.data import DataOptions, read_labelled
from softmargin.core.errors import SoftmarginError
from softmargin.core.status import Status
from softmargin.estimators.linear_svc import LinearSVC
from softmargin.estimators.persistence import load
from softmargin.estimators.warnings import ConvergenceWarning

# What may be changed when a stopped fit goes on; everything else is the model's.
LIMITS = ("C", "tol", "max_seconds", "max_iter", "n_jobs")


def train(
    data: Path, model: Path, options: DataOptions, given: dict[str, Any], *, resume: bool, quiet: bool, as_json: bool
) -> None:
    given = {name: value for name, value in given.items() if value is not None}
    estimator = _resumed(model) if resume else LinearSVC()
    if not model.parent.is_dir():
        raise SoftmarginError(f"{model.parent} is not a folder: the model could not be written there.")
    n_features = estimator.n_features_in_ if resume else None
    X, y = read_labelled(data, options, n_features)
    if "class_weight" in given:
        given["class_weight"] = _class_weight(given["class_weight"], y)
    if resume:
        _check_unchanged(estimator, given)
    estimator.set_params(**given, verbose=int(output.is_watched() and not quiet and not as_json))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the summary says the same
            estimator.fit(X, y)
    except KeyboardInterrupt:
        if getattr(estimator, "status_", None) is not Status.INTERRUPTED:
            raise
    estimator.set_params(verbose=0, warm_start=False)
    done = estimator.status_.reached_goal
    estimator.save(model, include_training_state=not done)
    if as_json or not quiet:
        output.show(_summary(estimator, X, model), as_json)
    if not done and not as_json:
        spent = estimator.status_ is Status.BUDGET
        further = (
            "--solver ocas gets to the optimum." if spent else "The same command with --resume goes on from there."
        )
        output.note(
            f"{estimator.status_} The model was saved to {model} with what is proven: a relative gap of "
            f"{estimator.certificate_.relative_gap:.2g}. {further}"
        )
    if not done:
        raise typer.Exit(output.STOPPED_EARLY)


def _resumed(model: Path) -> LinearSVC:
    estimator = load(model)
    if not hasattr(estimator, "_state"):
        raise SoftmarginError(f"{model} was not stopped early: there is nothing to resume. Train it anew.")
    return estimator.set_params(warm_start=True, max_seconds=None, max_iter=None)


def _check_unchanged(estimator: LinearSVC, given: dict[str, Any]) -> None:
    for name in given.keys() - set(LIMITS):
        own = getattr(estimator, name)
        if given[name] != own:
            raise SoftmarginError(f"--resume goes on with the model's own {name}, {own!r}: leave the other out.")


def _class_weight(text: str, y: np.ndarray) -> Any:
    if text == "balanced":
        return text
    labels = {str(label): label for label in np.unique(y).tolist()}
    weights = {}
    for part in text.split(","):
        name, _, weight = part.rpartition("=")
        name = name.strip().removeprefix("+")
        if name not in labels:
            known = " ".join(labels)
            raise SoftmarginError(
                f'--class-weight {text}: {name!r} is no label of the data ({known}). Use "balanced" or LABEL=WEIGHT,...'
            )
        try:
            weights[labels[name]] = float(weight)
        except ValueError:
            raise SoftmarginError(f"--class-weight {text}: {weight!r} is not a number.") from None
    return weights


def _summary(estimator: LinearSVC, X: Any, model: Path) -> dict[str, Any]:
    certificate = estimator.certificate_
    return {
        "model": str(model),
        "status": estimator.status_.name,
        "rows": X.shape[0],
        "features": X.shape[1],
        "classes": estimator.classes_.tolist(),
        "iterations": estimator.n_iter_,
        "seconds": estimator.seconds_["total"],
        "primal": certificate.primal,
        "dual": certificate.dual,
        "relative_gap": certificate.relative_gap,
        "tol": estimator.tol,
    }
