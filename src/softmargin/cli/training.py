"""`softmargin train`."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import typer

from softmargin.cli import options as train_options
from softmargin.cli import output
from softmargin.cli.data import DataOptions, Labelled, naming, read_labelled
from softmargin.core.errors import SoftmarginError
from softmargin.core.status import Status
from softmargin.estimators.linear_svc import LinearSVC
from softmargin.estimators.ordinal_svc import OrdinalSVC
from softmargin.estimators.persistence import load
from softmargin.estimators.rank_svm import RankSVM
from softmargin.estimators.svc import SVC
from softmargin.estimators.warnings import ConvergenceWarning

ESTIMATORS = {"linear": LinearSVC, "kernel": SVC, "rank": RankSVM, "ordinal": OrdinalSVC}
# What may be changed when a stopped fit goes on; everything else is the model's.
LIMITS = ("C", "tol", "max_seconds", "max_iter", "n_jobs", "cache_bytes")
# Linear models of more features, and so many times more than there are values, are probably not what was meant.
MANY_FEATURES, EMPTY_FACTOR = 2**24, 16
# A dual variable this close to its bound, as a share of it, lies on it.
AT_BOUND = 1e-9


def train(
    data: Path, model: Path, options: DataOptions, given: dict[str, Any], *, resume: bool, quiet: bool, as_json: bool
) -> None:
    estimator = _resumed(model, given) if resume else ESTIMATORS[train_options.kind_of(given)]()
    for name in ("task", "no_qid"):  # no parameters of the estimator
        given.pop(name, None)
    ranks = isinstance(estimator, RankSVM)
    if not model.parent.is_dir():
        raise SoftmarginError(f"{model.parent} is not a folder: the model could not be written there.")
    n_features = estimator.n_features_in_ if resume else None
    rows = read_labelled(data, options, n_features, with_queries=ranks)
    if ranks and rows.qid is None and not (options.no_qid or quiet or as_json):
        output.note(f"{data} has no qid: all rows are one query.")
    if not quiet and not isinstance(estimator, SVC):
        _tell_width(rows.X, data)
    if "class_weight" in given:
        given["class_weight"] = _class_weight(given["class_weight"], rows.y)
    if "classes" in given:
        given["classes"] = _ordered_labels(given["classes"], rows.y)
    if resume:
        _check_unchanged(estimator, given)
    estimator.set_params(**given, verbose=int(output.is_watched() and not quiet and not as_json))
    try:
        with naming(data), _warnings_as_notes(as_json):
            estimator.fit(rows.X, rows.y, **({"qid": rows.qid} if ranks else {}))
    except KeyboardInterrupt:
        if getattr(estimator, "status_", None) is not Status.INTERRUPTED:
            raise
    estimator.set_params(verbose=0, warm_start=False)
    done = estimator.status_.reached_goal
    estimator.save(model, include_training_state=not done)
    if as_json or not quiet:
        output.show(_summary(estimator, rows, model), as_json)
    if not done and not as_json:
        spent = estimator.status_ is Status.BUDGET
        further = (
            "--solver ocas gets to the optimum." if spent else "The same command with --resume goes on from there."
        )
        certificate = estimator.certificate_
        proven = f"with what is proven: a relative gap of {certificate.relative_gap:.2g}"
        if train_options.goes_by_kkt(estimator, certificate):
            proven = f"with a KKT violation of {certificate.kkt_violation:.2g}"
        output.note(f"{estimator.status_} The model was saved to {model} {proven}. {further}")
    if not done:
        raise typer.Exit(output.STOPPED_EARLY)


def _tell_width(X: Any, data: Path) -> None:
    """Before the work begins: a linear model has a weight for each feature, also for those that never occur."""
    n_cols = X.shape[1]
    if n_cols > MANY_FEATURES and n_cols > EMPTY_FACTOR * (n_values := getattr(X, "nnz", X.size)):
        output.note(
            f"{data}: the largest index makes {n_cols} features of {n_values} values. The model has a weight for each "
            f"of them, and its file {8 * n_cols / 2**30:.1f} GiB. If that index is a mistake, stop with Ctrl-C."
        )


@contextmanager
def _warnings_as_notes(as_json: bool) -> Iterator[None]:
    """What the estimator has to say, without the line of code that says it."""

    def show(message: Any, *where: Any) -> None:
        if not as_json:
            output.note(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)  # the summary says the same
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _resumed(model: Path, given: dict[str, Any]) -> Any:
    estimator = load(model)
    kind = next(kind for kind, cls in ESTIMATORS.items() if type(estimator) is cls)
    task = kind if kind in ("rank", "ordinal") else "classify"
    if given.get("task", task) != task:
        raise SoftmarginError(f"--resume goes on with the model's own task, {task}: leave the other out.")
    train_options.check(given, kind, getattr(estimator, "kernel", None))
    if not hasattr(estimator, "_state"):
        raise SoftmarginError(f"{model} was not stopped early: there is nothing to resume. Train it anew.")
    return estimator.set_params(warm_start=True, max_seconds=None, max_iter=None)


def _check_unchanged(estimator: Any, given: dict[str, Any]) -> None:
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


def _ordered_labels(text: str, y: np.ndarray) -> list:
    """The labels that are named; those that do not occur in the data are read as the others are."""
    kind = float if y.dtype.kind == "f" else int if y.dtype.kind in "iu" else str
    try:
        return [kind(name.strip()) for name in text.split(",")]
    except ValueError:
        raise SoftmarginError(f"--classes {text}: the labels of the data are numbers, such as {y[0]}.") from None


def _summary(estimator: Any, rows: Labelled, model: Path) -> dict[str, Any]:
    certificate = estimator.certificate_
    is_kernel = isinstance(estimator, SVC)
    return {
        "model": str(model),
        "status": estimator.status_.name,
        "rows": rows.X.shape[0],
        "features": rows.X.shape[1],
        **_targets(estimator, rows),
        **(_kernel_summary(estimator) if is_kernel else {"iterations": estimator.n_iter_}),
        "seconds": estimator.seconds_["total"],
        "primal": certificate.primal,
        "dual": certificate.dual,
        "relative_gap": certificate.relative_gap,
        **({"kkt_violation": certificate.kkt_violation} if is_kernel else {}),
        "tol": estimator.tol,
    }


def _targets(estimator: Any, rows: Labelled) -> dict[str, Any]:
    if isinstance(estimator, RankSVM):
        return {"queries": rows.n_queries, "pairs": int(estimator.n_pairs_)}
    thresholds = {"thresholds": estimator.thresholds_.tolist()} if isinstance(estimator, OrdinalSVC) else {}
    return {"classes": estimator.classes_.tolist()} | thresholds


def _kernel_summary(estimator: SVC) -> dict[str, Any]:
    bounds = estimator.C * np.repeat(estimator.class_weight_, estimator.n_support_)
    is_bounded = (np.abs(estimator.dual_coef_) >= (1.0 - AT_BOUND) * bounds).any(axis=0)
    return {
        "kernel": estimator.kernel,
        **({} if estimator.kernel == "linear" else {"gamma": estimator.gamma_}),
        "support_vectors": estimator.support_.size,
        "bounded": int(np.count_nonzero(is_bounded)),
        "iterations": estimator.counts_["iterations"],
        "kernel_evaluations": estimator.counts_["kernel_evaluations"],
    }
