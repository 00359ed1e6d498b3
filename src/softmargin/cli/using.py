"""Commands that use a model file.

Predicting and showing do not import scikit-learn, nor Numba unless the model has a kernel: they start at once.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import combinations
from pathlib import Path
from reprlib import repr as shown
from typing import Any

import numpy as np
import typer

from softmargin.cli import files, output
from softmargin.cli.data import DataOptions, Trained, naming, read, read_labelled
from softmargin.cli.exporting import weight_table
from softmargin.cli.options import goes_by_kkt
from softmargin.core.errors import DataFormatError, ModelFileError, SoftmarginError
from softmargin.core.text import printable
from softmargin.estimators.evaluate import Case
from softmargin.estimators.record_scoring import Predictor, predictor_of
from softmargin.io.model_file import read_model
from softmargin.io.record import ModelRecord, Named
from softmargin.prediction.calibration import probabilities
from softmargin.tasks.records import TASK_NAMED, Task

SHOWN_NAMES = 20  # of the features, to people
SHOWN_CLASSES = 25  # in the table of confusions, to people


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
    task, predictor, trained = _predictor(model, data)
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

    blocks: Iterable[tuple[slice, np.ndarray]] = _scores(predictor, table.X, data, options)
    if not data.is_dir():
        with output.showing("predicting"):
            blocks = list(blocks)
    with nullcontext() if files.is_output_stream(out) else output.showing("predicting"):
        files.write(out, write_lines)
    summary: dict[str, Any] = {"rows": n_rows, "predictions": str(out)}
    if rated and table.y is not None and predictor.classes is not None:
        _tell_strangers(table.y, predictor.classes, data)
        summary |= {"correct": correct, "accuracy": correct / n_rows}
        if not as_json:
            output.note(f"accuracy {100 * correct / n_rows:.4f} % ({correct} of {n_rows})")
    if as_json:
        output.show(summary, as_json)


def _predictor(model: Path, data: Path) -> tuple[Task, Predictor, Trained]:
    """The model's task, what predicts, and what it expects of the data."""
    record = _opened(model, data, read_model)
    try:
        predictor = predictor_of(record)
        names, index_base = record.arrays.get("feature_names_in_"), record.values.get("index_base_")
        trained = Trained.of(predictor.n_features, names, index_base, predictor.unseen)
        return TASK_NAMED[record.kind], predictor, trained
    except SoftmarginError as error:
        raise ModelFileError(f"{files.title(model)}: {error}") from None


def _opened(model: Path, data: Path, read: Callable[[Path], Any]) -> Any:
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


def _scores(predictor: Predictor, X: Any, data: Path, options: DataOptions) -> Iterator[tuple[slice, np.ndarray]]:
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


def _score_lines(scores: np.ndarray) -> str:
    rows = scores[:, None] if scores.ndim == 1 else scores
    return "".join(" ".join(map(repr, row)) + "\n" for row in rows.tolist())


def info(model: Path, *, n_weights: int | None, as_json: bool) -> None:
    with files.readable(model, is_model=True) as file:
        record = read_model(file)
        n_bytes = file.stat().st_size
    found = _described(record, n_bytes, as_json)
    if n_weights is None:
        output.show(found, as_json)
        return
    lines = _largest_weights(record, n_weights)
    if as_json:
        output.show(found | {"weights": lines}, as_json)
    else:
        output.show_rows(lines)


def _largest_weights(record: ModelRecord, n_weights: int) -> list[dict[str, Any]]:
    """The features with the largest weights in size, in any of the scores."""
    features, titles, weights = weight_table(record)
    if record.transform:
        output.note("the weights are those of scaled features.")
    order = np.argsort(-np.abs(weights).max(axis=1), kind="stable")[:n_weights]
    return [
        {"feature": printable(features[k]), **dict(zip(titles, weights[k].tolist(), strict=True))}
        for k in order.tolist()
    ]


def _described(record: ModelRecord, n_bytes: int, as_json: bool) -> dict[str, Any]:
    classes, thresholds = (record.arrays.get(name) for name in ("classes_", "thresholds_"))
    known = {
        "estimator": record.kind,
        "parameters": {name: _parameter(value) for name, value in record.params.items()},
        "solver": _solver_of(record),
        "classes": None if classes is None else classes.tolist(),
        "thresholds": None if thresholds is None else thresholds.tolist(),
        "scaling": [step.kind for step in record.transform] or None,
        "calibration": None if record.calibration is None else record.calibration.method,
        **_features_described(record, as_json),
        **(_kernel_described(record) if TASK_NAMED[record.kind].has_kernel else _linear_described(record)),
        **_certificates(record),
        "can_be_resumed": any(name.startswith("state.") for name in record.arrays),
        "bytes": n_bytes,
        "versions": record.versions,
    }
    return {name: value for name, value in known.items() if value is not None}


def _features_described(record: ModelRecord, in_full: bool) -> dict[str, Any]:
    found = record.arrays.get("feature_names_in_")
    names = None if found is None else found.tolist()
    if names is not None and not in_full and len(names) > SHOWN_NAMES:
        names = [*names[:SHOWN_NAMES], "..."]
    return {
        "feature_names": names,
        "index_base": record.values.get("index_base_"),
    }


def _linear_described(record: ModelRecord) -> dict[str, Any]:
    coef = np.atleast_2d(record.arrays["coef_"])
    return {
        "features": coef.shape[1],
        "features_used": int(np.count_nonzero(np.any(coef != 0.0, axis=0))),
        "pairs": record.values.get("n_pairs_"),
        "status": record.values.get("status_"),
        "iterations": record.values.get("n_iter_"),
    }


def _kernel_described(record: ModelRecord) -> dict[str, Any]:
    values = record.values
    counts = values.get("counts_") or {}
    return {
        "features": values.get("n_features_in_"),
        "gamma": None if record.params.get("kernel") in ("linear", "precomputed") else values.get("gamma_"),
        "support_vectors": record.arrays["dual_coef_"].shape[1],
        "of_each_class": record.arrays["n_support_"].tolist() if "classes_" in record.arrays else None,
        "status": values.get("status_"),
        "iterations": counts.get("iterations"),
        "kernel_evaluations": counts.get("kernel_evaluations"),
    }


def _certificates(record: ModelRecord) -> dict[str, Any]:
    found = record.values.get("certificates_") or []
    if len(found) == 1:
        return {"certificate": dict(found[0])}
    names = list(map(str, range(len(found))))
    if TASK_NAMED[record.kind].has_kernel and "classes_" in record.arrays:  # a machine for each pair of classes
        names = [f"{first} against {second}" for first, second in combinations(record.arrays["classes_"].tolist(), 2)]
    return {"certificates": dict(zip(names, found, strict=False))} if found else {}


def _parameter(value: Any) -> Any:
    return (
        f"{value.name}({', '.join(f'{k}={v}' for k, v in value.fields.items())})" if isinstance(value, Named) else value
    )


def _solver_of(record: ModelRecord) -> str | None:
    solver = record.params.get("solver")
    if solver is None:
        return None  # another program trained it
    if solver == "auto" and TASK_NAMED[record.kind].has_kernel:
        return "auto (block, or smo where its rules are asked for or the cache is small)"
    if solver == "auto":
        return "auto: " + printable(record.values.get("solver_", "it is not known which"))
    return str(_parameter(solver)) + " (as asked for)"


def certify(
    model: Path, data: Path, options: DataOptions, problem: Mapping[str, float | None], *, as_json: bool
) -> None:
    """`problem` is what models of other programs do not say about what they minimise, by parameter; None: not given."""
    from softmargin.cli.training import with_steps
    from softmargin.estimators.certify import certify as judged
    from softmargin.estimators.persistence import load_alone

    estimator, record = _opened(model, data, load_alone)
    is_ours = hasattr(estimator, "status_")
    given = {name: value for name, value in problem.items() if value is not None}
    known = estimator.get_params(deep=False)
    flags = {name: "-C" if name == "C" else f"--{name}" for name in problem}
    for name in given:
        if name not in known:
            kind = type(estimator).__name__
            raise SoftmarginError(
                f"{files.title(model)} holds a {kind} model, which has no {name}: drop {flags[name]}."
            )
        if is_ours:
            flag = flags[name]
            raise SoftmarginError(f"{files.title(model)} was trained with {flag} {known[name]:g}: leave {flag} out.")
    for name, flag in flags.items():
        if not is_ours and name in known and name not in given:
            raise SoftmarginError(
                f"{files.title(model)} does not say which {name} it was trained with, on which the certificate "
                f"depends: give {flag}."
            )
    estimator.set_params(n_jobs=options.n_jobs, **given)
    task = TASK_NAMED[type(estimator).__name__]
    ranks = task.target == "queries"
    _check_queries(options, ranks)
    names, index_base = (vars(estimator).pop(name, None) for name in ("feature_names_in_", "index_base_"))
    trained = Trained.of(estimator.n_features_in_, names, index_base)
    rows = read_labelled(data, options, trained, with_queries=ranks, needs_labels=task.target != "nothing")
    if is_ours and _n_trained(estimator) not in (None, rows.X.shape[0]):
        raise SoftmarginError(
            f"{files.title(data)} has {rows.X.shape[0]} rows, but the model was trained on {_n_trained(estimator)}: "
            "certify needs those rows, in the same order."
        )
    rows = with_steps(rows, record.transform)
    with naming(data, rows), output.showing("judging"):
        learned, metadata = rows.for_fit
        certificate = judged(estimator, *learned, **metadata)
    output.show(
        {
            "primal": certificate.primal,
            "dual": certificate.dual,
            "gap": certificate.gap,
            "relative_gap": certificate.relative_gap,
            "kkt_violation": certificate.kkt_violation,
            "tol": estimator.tol,
        },
        as_json,
    )
    by_kkt = goes_by_kkt(estimator, certificate)
    reached = certificate.kkt_violation if by_kkt else certificate.relative_gap
    if not (math.isfinite(certificate.primal) and reached <= estimator.tol):
        if is_ours and (reason := _why_worse(estimator.certificate_, certificate)):
            output.note(f"{files.title(data)}: {reason}")
        raise typer.Exit(output.STOPPED_EARLY)


def _n_trained(estimator: Any) -> int | None:
    """The number of training rows, where the model knows it."""
    if hasattr(estimator, "shape_fit_"):
        return int(estimator.shape_fit_[0])
    dual = getattr(estimator, "dual_", None)
    return None if dual is None else len(dual)


def _why_worse(before: Any, now: Any) -> str:
    """What a certificate that is not the one of the fit says about the data. The value does not depend on the order of
    rows, but the bound needs each row's own dual variable.
    """
    slack = 1e-6 * abs(before.primal)
    if not abs(now.primal - before.primal) <= slack:
        return (
            f"on these rows the objective is {now.primal:.10g}, in training it was {before.primal:.10g}. These are "
            "other rows, labels or queries than those the model was trained on."
        )
    if not now.dual >= before.dual - slack:
        return "the objective is that of training, but the bound is not: the same rows, but in another order."
    return ""


def evaluate(
    model: Path, data: Path, options: DataOptions, *, ks: Sequence[int], each_query: bool, as_json: bool
) -> None:
    task, predictor, trained = _predictor(model, data)
    ranks = task.target == "queries"
    _check_queries(options, ranks)
    if each_query and not ranks:
        raise typer.BadParameter("it is for rankings, and this model is none.", param_hint="--per-query")
    rows = read_labelled(data, options, trained, with_queries=ranks, needs_labels=task.target != "nothing")
    with output.showing("predicting"):
        scores = np.concatenate([found for _, found in _scores(predictor, rows.X, data, options)])
    found: dict[str, Any] = {"rows": len(scores)} | ({"queries": rows.n_queries} if ranks else {})
    if task.target == "classes" and predictor.classes is not None:
        _tell_strangers(rows.y, predictor.classes, data)
    measures = task.measures.load()
    case = Case(predictor, scores, rows.y, rows.qid, ks, rows.weights, each_query)
    found |= measures(case)
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


def _tell_strangers(y: np.ndarray, classes: np.ndarray, data: Path) -> None:
    strangers = np.setdiff1d(y, classes)
    if strangers.size > 0:
        n_rows = np.count_nonzero(np.isin(y, strangers))
        output.note(
            f"{files.title(data)}: labels that the model does not know, {shown(strangers.tolist())}, occur in {n_rows} "
            f"of {len(y)} rows, which count as errors."
        )


def _check_queries(options: DataOptions, ranks: bool) -> None:
    if options.no_qid and not ranks:
        raise typer.BadParameter("it is for rankings, and this model is none.", param_hint="--no-qid")
