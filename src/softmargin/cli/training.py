"""`softmargin train`."""

import re
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
from softmargin.cli import options as train_options
from softmargin.cli.data import DataOptions, Labelled, Trained, naming, read_labelled
from softmargin.cli.wording import option
from softmargin.core.errors import SoftmarginError
from softmargin.core.status import Status
from softmargin.core.stopping import is_at_bound
from softmargin.core.threads import StopHandler
from softmargin.estimators.persistence import load_alone, record_of
from softmargin.io.model_file import write_model
from softmargin.io.record import Step
from softmargin.io.tables import QUERY_NAME
from softmargin.tasks.records import TASK_NAMED, Task

# Parameters that --resume may change. All others are those of the model.
LIMITS = ("C", "tol", "max_seconds", "max_iter", "n_jobs", "cache_bytes")
# What the folds of --cv are drawn with.
CV_SEED = 0
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
        estimator, transform = _resumed(model, given)
    else:
        estimator = train_options.task_meant(given).machine.load()()
    surroundings.check(_task(estimator))
    is_told = not (quiet or as_json)
    rows = prepared(estimator, data, options, given, resume=resume, is_told=is_told)
    rows = scaled_rows(rows, surroundings.scaling, data) if transform is None else with_steps(rows, transform)
    if resume:
        _check_same_data(estimator, rows, data, model, force=force)
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
        given["classes"] = _ordered_labels(given["classes"], rows.y)
    if resume:
        _check_unchanged(estimator, given)
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
) -> tuple[dict[str, Any], str]:
    """Train and write the model; what there is to say of it, and a sentence if the fit did not reach its goal.

    The handler is installed: it sees to it that what was found is written.
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
    shortfall = "" if done else _stopped_early(estimator, model, can_go_on=can_go_on)
    return _summary(estimator, rows, model, seconds), shortfall


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
    task = _task(estimator)
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


def _tell_patience() -> None:
    """Answers a signal, which may come while anything is being written: no stream is used."""
    output.tell_at_once("Stopping: the model so far is judged and saved. Ctrl-\\ ends at once, without it.")


def _describe_origin(estimator: Any, rows: Labelled) -> None:
    """What later commands need to know of the file: which feature is which."""
    estimator.set_params(verbose=0, warm_start=False)
    if rows.feature_names is not None:
        estimator.feature_names_in_ = np.array(rows.feature_names, dtype=object)
    if rows.index_base is not None:
        estimator.index_base_ = rows.index_base


def _stopped_early(estimator: Any, model: Path, *, can_go_on: bool) -> str:
    certificate = estimator.certificate_
    proven = f"with what is proven: a relative gap of {certificate.relative_gap:.2g}"
    if train_options.goes_by_kkt(estimator, certificate):
        proven = f"with a KKT violation of {certificate.kkt_violation:.2g}"
    where = "was written" if files.is_output_stream(model) else f"was saved to {model}"
    spent = estimator.status_ is Status.BUDGET and not estimator.solver_.startswith("Coordinate")
    further = "--solver ocas gets to the optimum." if spent else "The same command with --resume goes on from there."
    if not can_go_on and not spent:
        further = "Train it anew with higher limits to get closer."
    return f"{estimator.status_} The model {where} {proven}. {further}"


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


def _resumed(model: Path, given: dict[str, Any]) -> tuple[Any, tuple[Step, ...]]:
    estimator, record = load_alone(model, as_machine=True)
    task = _task(estimator)
    if given.get("task", task.word) != task.word:
        raise SoftmarginError(f"--resume goes on with the model's own task, {task.word}: leave the other out.")
    train_options.check(given, task, getattr(estimator, "kernel", None))
    if not hasattr(estimator, "_state"):
        raise SoftmarginError(f"{model} was not stopped early: there is nothing to resume. Train it anew.")
    if record.calibration is not None:
        raise SoftmarginError(f"{model} has probabilities, which a longer fit would change: train it anew.")
    return estimator.set_params(warm_start=True, max_seconds=None, max_iter=None), record.transform


def _task(estimator: Any) -> Task:
    return TASK_NAMED[type(estimator).__name__]


def _check_unchanged(estimator: Any, given: dict[str, Any]) -> None:
    for name in given.keys() - set(LIMITS):
        own = getattr(estimator, name)
        if given[name] != own:
            raise SoftmarginError(
                f"--resume goes on with the model's own {option(name)}, {'none' if own is None else repr(own)}: leave "
                "the other out."
            )


def _check_same_data(estimator: Any, rows: Labelled, data: Path, model: Path, *, force: bool) -> None:
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


def class_weights(text: str, y: np.ndarray) -> Any:
    """ "balanced", or weights as they are usually written: 1=2,-1=0.5 or 1:2 -1:0.5 or {1: 2, -1: 0.5}."""
    if text == "balanced":
        return text
    labels = {str(label): label for label in np.unique(y).tolist()}
    weights = {}
    joined = re.sub(r"\s*([=:])\s*", r"\1", text.strip().removeprefix("{").removesuffix("}"))
    for part in filter(None, re.split(r"[,;\s]+", joined)):
        name, separator, weight = re.fullmatch(r"(.*?)(?:([=:])([^=:]*))?", part).groups(default="")  # type: ignore[union-attr]
        name = name.strip("'\"").removeprefix("+")
        usage = "Write LABEL=WEIGHT,LABEL=WEIGHT,... or balanced."
        if not separator:
            raise SoftmarginError(f"--class-weight {text}: {part!r} has no weight. {usage}")
        if name not in labels:
            raise SoftmarginError(
                f"--class-weight {text}: {name!r} is no label of the data ({' '.join(labels)}). {usage}"
            )
        try:
            weights[labels[name]] = float(weight)
        except ValueError:
            raise SoftmarginError(f"--class-weight {text}: {weight!r} is not a number. {usage}") from None
    return weights


def _ordered_labels(text: str, y: np.ndarray) -> list:
    """The labels that are named; those that do not occur in the data are read as the others are."""
    kind = float if y.dtype.kind == "f" else int if y.dtype.kind in "iu" else str
    try:
        return [kind(name.strip()) for name in text.split(",")]
    except ValueError:
        raise SoftmarginError(f"--classes {text}: the labels of the data are numbers, such as {y[0]}.") from None


def _summary(estimator: Any, rows: Labelled, model: Path, seconds: float) -> dict[str, Any]:
    certificate = estimator.certificate_
    is_kernel = _task(estimator).has_kernel
    return {
        **({} if files.is_output_stream(model) else {"model": str(model)}),
        "status": estimator.status_.name,
        "rows": rows.X.shape[0],
        "features": rows.X.shape[1],
        **_targets(estimator, rows),
        **(_kernel_summary(estimator) if is_kernel else {"iterations": estimator.n_iter_}),
        "seconds": seconds,
        "primal": certificate.primal,
        "dual": certificate.dual,
        "relative_gap": certificate.relative_gap,
        **({"kkt_violation": certificate.kkt_violation} if is_kernel else {}),
        "tol": estimator.tol,
    }


def _targets(estimator: Any, rows: Labelled) -> dict[str, Any]:
    """What the model knows about what it learned, if it has such a thing."""
    if hasattr(estimator, "n_pairs_"):
        return {"queries": rows.n_queries, "pairs": int(estimator.n_pairs_)}
    found = ((name, getattr(estimator, f"{name}_", None)) for name in ("classes", "thresholds"))
    return {name: value.tolist() for name, value in found if value is not None}


def _kernel_summary(estimator: Any) -> dict[str, Any]:
    """Of several pairs of classes a support vector that is bounded in any of them counts once."""
    n_bounded = int(estimator.n_bounded_[0])
    if len(estimator.n_bounded_) > 1:
        bounds = estimator.C * np.repeat(estimator.class_weight_, estimator.n_support_)
        is_bounded = is_at_bound(estimator.dual_coef_, bounds).any(axis=0)
        n_bounded = int(np.count_nonzero(is_bounded))
    return {
        "kernel": estimator.kernel,
        **({} if estimator.kernel == "linear" else {"gamma": estimator.gamma_}),
        "support_vectors": estimator.support_.size,
        "bounded": n_bounded,
        "iterations": estimator.counts_["iterations"],
        "kernel_evaluations": estimator.counts_["kernel_evaluations"],
    }
