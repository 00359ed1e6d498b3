"""Commands that use a model file.

Predicting and showing do not import scikit-learn, nor Numba unless the model has a kernel: they start at once.
"""

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import typer

from softmargin.cli import output
from softmargin.cli.data import DataOptions, naming, read, read_labelled
from softmargin.cli.options import goes_by_kkt
from softmargin.core.errors import DataFormatError, ModelFileError, SoftmarginError
from softmargin.core.text import printable
from softmargin.estimators.record_scoring import Predictor, predictor_of
from softmargin.io.atomic import replacing
from softmargin.io.model_file import read_model
from softmargin.io.record import ModelRecord, Named


def predict(model: Path, data: Path, out: Path | None, options: DataOptions, *, scores: bool, as_json: bool) -> None:
    if as_json and out is None:
        raise typer.BadParameter("--json describes the predictions, which then go to a file: give OUT.")
    predictor = _predictor(model)
    ranks = predictor.classes is None
    table = read(data, options, predictor.n_features, with_queries=ranks)
    found = _scores(predictor, table.X, data, options)
    predicted = found if ranks else predictor.labels(found)
    text = (
        _score_lines(found)
        if scores or ranks
        else "".join(f"{printable(str(label))}\n" for label in predicted.tolist())
    )
    if out is None:
        typer.echo(text, nl=False)
    else:
        with replacing(out) as file:
            file.write(text.encode())
    summary: dict[str, Any] = {"rows": len(predicted), "predictions": None if out is None else str(out)}
    if predictor.classes is not None and table.y is not None and np.isin(table.y, predictor.classes).any():
        correct = int(np.count_nonzero(predicted == table.y))
        summary |= {"correct": correct, "accuracy": correct / len(predicted)}
        if not as_json:
            output.note(f"accuracy {100 * correct / len(predicted):.4f} % ({correct} of {len(predicted)})")
    if as_json:
        output.show(summary, as_json)


def _predictor(model: Path) -> Predictor:
    record = read_model(model)
    try:
        return predictor_of(record)
    except SoftmarginError as error:
        raise ModelFileError(f"{model}: {error}") from None


def _scores(predictor: Predictor, X: Any, data: Path, options: DataOptions) -> np.ndarray:
    scores = predictor.scores(X, options.n_jobs)
    bad = ~np.isfinite(scores if scores.ndim == 1 else scores.sum(axis=1))
    if bad.any():
        row = int(np.argmax(bad)) + 1
        raise DataFormatError(f"row {row} has values that are not finite, or too large to be scored.", file=str(data))
    return scores


def _score_lines(scores: np.ndarray) -> str:
    rows = scores[:, None] if scores.ndim == 1 else scores
    return "".join(" ".join(map(repr, row)) + "\n" for row in rows.tolist())


def info(model: Path, *, as_json: bool) -> None:
    record = read_model(model)
    output.show(_described(record, model), as_json)


def _described(record: ModelRecord, model: Path) -> dict[str, Any]:
    classes, thresholds = (record.arrays.get(name) for name in ("classes_", "thresholds_"))
    known = {
        "estimator": record.kind,
        "parameters": {name: _parameter(value) for name, value in record.params.items()},
        "solver": _solver_of(record),
        "classes": None if classes is None else classes.tolist(),
        "thresholds": None if thresholds is None else thresholds.tolist(),
        **(_kernel_described(record) if record.kind == "SVC" else _linear_described(record)),
        **_certificates(record),
        "can_be_resumed": any(name.startswith("state.") for name in record.arrays),
        "bytes": model.stat().st_size,
        "versions": record.versions,
    }
    return {name: value for name, value in known.items() if value is not None}


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
        "of_each_class": record.arrays["n_support_"].tolist(),
        "status": values.get("status_"),
        "iterations": counts.get("iterations"),
        "kernel_evaluations": counts.get("kernel_evaluations"),
    }


def _certificates(record: ModelRecord) -> dict[str, Any]:
    found = record.values.get("certificates_") or []
    if len(found) == 1:
        return {"certificate": dict(found[0])}
    names = list(map(str, range(len(found))))
    if record.kind == "SVC":
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
    if solver == "auto" and record.kind == "SVC":
        return "auto (block, or smo where its rules are asked for or the cache is small)"
    if solver == "auto":
        return "ocas (auto: the exact solver for linear models)"
    return str(_parameter(solver)) + " (as asked for)"


def certify(model: Path, data: Path, options: DataOptions, *, C: float | None, as_json: bool) -> None:
    from softmargin.estimators.certify import certify as judged
    from softmargin.estimators.persistence import load

    estimator = load(model)
    if C is not None:
        if hasattr(estimator, "status_"):
            raise SoftmarginError(f"{model} was trained with C={estimator.C:g}: leave -C out.")
        estimator.set_params(C=C)
    estimator.set_params(n_jobs=options.n_jobs)
    ranks = not hasattr(estimator, "classes_")
    _check_queries(options, ranks)
    X, y, qid = read_labelled(data, options, estimator.n_features_in_, with_queries=ranks)
    with naming(data):
        certificate = judged(estimator, X, y, qid=qid)
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
        raise typer.Exit(output.STOPPED_EARLY)


def evaluate(model: Path, data: Path, options: DataOptions, *, k: int, as_json: bool) -> None:
    from softmargin.estimators.evaluate import measures, ordinal_measures, ranking_measures

    predictor = _predictor(model)
    classes = predictor.classes
    _check_queries(options, classes is None)
    rows = read_labelled(data, options, predictor.n_features, with_queries=classes is None)
    scores = _scores(predictor, rows.X, data, options)
    found: dict[str, Any] = {"rows": len(rows.y)}
    if classes is None:
        found |= {"queries": rows.n_queries} | ranking_measures(scores, rows.y, rows.qid, k)
    elif predictor.thresholds is not None:
        found |= ordinal_measures(scores, predictor.labels(scores), classes, rows.y)
    else:
        found |= measures(scores, classes, rows.y)
    output.show(found, as_json)


def _check_queries(options: DataOptions, ranks: bool) -> None:
    if options.no_qid and not ranks:
        raise typer.BadParameter("it is for rankings, and this model is none.", param_hint="--no-qid")
