"""A fit as `train` and `tune` make it: rows and parameters in, a written model out."""

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from softmargin.cli import files, output
from softmargin.cli.data import DataOptions, Labelled, Trained, naming, read_labelled
from softmargin.cli.fit_summary import stopped_early, summary_of
from softmargin.cli.label_options import class_weights, ordered_labels
from softmargin.cli.options import task_of
from softmargin.cli.resuming import check_unchanged
from softmargin.core.errors import SoftmarginError
from softmargin.core.threads import StopHandler
from softmargin.estimators.persistence import record_of
from softmargin.io.model_file import write_model
from softmargin.io.record import Step
from softmargin.io.tables import QUERY_NAME
from softmargin.tasks.records import Task

# A linear model with more than MANY_FEATURES weights, and EMPTY_FACTOR times as many as the file has values, is
# probably the result of a wrong index: `train` says so.
MANY_FEATURES, EMPTY_FACTOR = 2**24, 16


@dataclass(frozen=True)
class Surroundings:
    """What is to stand around the model in its file: a scaling of the features, a calibration of the scores."""

    scaling: str | None = None
    folds_scaling: bool = False
    calibration: str | None = None

    def check(self, task: Task) -> None:
        """Refuse what this task cannot have."""
        if self.folds_scaling and self.scaling is None:
            raise typer.BadParameter("there is no scaling to fold: give --scale.", param_hint="--fold-scaling")
        if self.folds_scaling and (task.has_kernel or self.scaling == "unit"):
            reason = "kernel models have no weights" if task.has_kernel else "unit scales rows, not features"
            raise typer.BadParameter(f"{reason}, into which it could be folded.", param_hint="--fold-scaling")
        if self.calibration is not None and task.word != "classify":
            raise typer.BadParameter("it is for models that classify.", param_hint="--probability")


def prepared(
    estimator: Any,
    data: Path,
    options: DataOptions,
    given: dict[str, Any],
    *,
    resume: bool = False,
    is_told: bool,
) -> Labelled:
    """What is learned from; the estimator gets the parameters that are given, some of which need the labels."""
    for name in ("task", "no_qid"):  # no parameters of the estimator
        given.pop(name, None)
    rows = _rows_for(estimator, data, options, resume=resume, is_told=is_told)
    if "class_weight" in given:
        given["class_weight"] = class_weights(given["class_weight"], rows.y)
    if "classes" in given:
        given["classes"] = ordered_labels(given["classes"], rows.y)
    if resume:
        check_unchanged(estimator, given)
    estimator.set_params(**given)
    return rows


def fitted_and_saved(
    estimator: Any,
    rows: Labelled,
    data: Path,
    model: Path,
    surroundings: Surroundings,
    handler: StopHandler,
    as_json: bool,
    search: dict[str, Any] | None = None,
) -> tuple[dict[str, Any], str]:
    """Train and write the model; what there is to say of it, and a sentence if the fit did not reach its goal.

    The handler is installed: it sees to it that what was found is written. `search` is what chose the parameters.
    """
    calibration = None
    if surroundings.calibration is not None:
        from softmargin.estimators.machines.calibrating import calibration_of

        with naming(data, rows), output.showing("calibrating"):
            groups = rows.qid if rows.groups is None else rows.groups
            calibration = calibration_of(estimator, rows.X, rows.y, rows.weights, groups, surroundings.calibration)
    seconds = _fit(estimator, rows, data, as_json)
    handler.is_stopping = True  # what was found is saved first, whatever happens
    _describe_origin(estimator, rows)
    if search is not None:
        estimator.search_ = search
    done = estimator.status_.reached_goal
    if not done:
        estimator.data_digest_ = rows.digest()
    record = record_of(estimator, not done and not surroundings.folds_scaling)
    record = replace(record, transform=rows.transform, calibration=calibration)
    if surroundings.folds_scaling:
        from softmargin.estimators.machines.scaling import folded

        record = folded(record)
    files.save(model, lambda path: write_model(path, record))
    can_go_on = calibration is None and not surroundings.folds_scaling
    shortfall = "" if done else stopped_early(estimator, model, can_go_on=can_go_on)
    return summary_of(estimator, rows, model, seconds), shortfall


def scaled_rows(rows: Labelled, scaling: str | None, data: Path) -> Labelled:
    """The rows behind the scaling that was asked for, which is fitted to them."""
    if scaling is None:
        return rows
    if rows.store is not None:
        raise SoftmarginError(f"{data} is a store, whose rows are read as they are: scale them before convert.")
    from softmargin.estimators.machines.scaling import fitted_scaler

    step = fitted_scaler(scaling, rows.X)
    if scaling == "standard" and step.params:
        output.note(
            f"{files.title(data)} is sparse: features are divided by their standard deviations, but means are not "
            "subtracted, which would fill the zeros."
        )
    return with_steps(rows, (step,))


def with_steps(rows: Labelled, steps: tuple[Step, ...]) -> Labelled:
    """The rows behind these steps."""
    if not steps:
        return rows
    from softmargin.estimators.machines.scaling import scaled

    with np.errstate(over="ignore", invalid="ignore"):  # values that are not finite are told about later
        return rows._replace(X=scaled(rows.X, steps), transform=steps)


def _rows_for(estimator: Any, data: Path, options: DataOptions, *, resume: bool, is_told: bool) -> Labelled:
    """What is learned from, with the features of the model if it goes on."""
    task = task_of(estimator)
    ranks = task.target == "queries"
    trained = None
    if resume:
        names, index_base = (vars(estimator).pop(name, None) for name in ("feature_names_in_", "index_base_"))
        trained = Trained.of(estimator.n_features_in_, names, index_base)
    rows = read_labelled(data, options, trained, with_queries=ranks, needs_labels=task.target != "nothing")
    if is_told and ranks and rows.qid is None and not options.no_qid:
        output.note(f"{files.title(data)} has no qid: all rows are one query.")
    if rows.store is not None and task.has_kernel:
        raise SoftmarginError(f"{data} is a store, from which linear models are trained: leave --kernel out.")
    if is_told and not ranks and QUERY_NAME in (rows.feature_names or ()):
        output.note(f"{files.title(data)}: the column {QUERY_NAME!r} is a feature here; --task rank makes it queries.")
    if is_told and not task.has_kernel:
        _tell_width(rows.X, data)
    return rows


def _tell_width(X: Any, data: Path) -> None:
    """Before the work begins: a linear model has a weight for each feature, also for those that never occur."""
    n_cols = X.shape[1]
    if n_cols > MANY_FEATURES and n_cols > EMPTY_FACTOR * (n_values := getattr(X, "nnz", X.size)):
        output.note(
            f"{files.title(data)}: the largest index makes {n_cols} features of {n_values} values. The model has a "
            f"weight for each of them, and its file {8 * n_cols / 2**30:.1f} GiB. If that index is a mistake, stop "
            "with Ctrl-C."
        )


def _fit(estimator: Any, rows: Labelled, data: Path, as_json: bool) -> float:
    """Train, and return the seconds on the wall. After an interrupt there is a model if the solver had begun."""
    began = time.perf_counter()
    earlier = getattr(estimator, "trace_", None)
    try:
        with naming(data, rows), warnings_as_notes(as_json):
            given, metadata = rows.for_fit
            estimator.fit(*given, **metadata)
    except KeyboardInterrupt:
        if getattr(estimator, "trace_", None) is earlier:
            raise
    return time.perf_counter() - began


def _describe_origin(estimator: Any, rows: Labelled) -> None:
    """What later commands need to know of the file: which feature is which."""
    estimator.set_params(verbose=0, warm_start=False)
    if rows.feature_names is not None:
        estimator.feature_names_in_ = np.array(rows.feature_names, dtype=object)
    if rows.index_base is not None:
        estimator.index_base_ = rows.index_base


@contextmanager
def warnings_as_notes(as_json: bool) -> Iterator[None]:
    """What the estimator has to say, without the line of code that says it."""

    def show(message: Any, *where: Any) -> None:
        if not as_json:
            output.note(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        yield
