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
from softmargin.cli.data import DataOptions, read, read_labelled
from softmargin.cli.options import goes_by_kkt
from softmargin.core.errors import DataFormatError, ModelFileError, SoftmarginError
from softmargin.estimators.record_scoring import Predictor, predictor_of
from softmargin.estimators.scoring import labels_from_scores
from softmargin.io.atomic import replacing
from softmargin.io.model_file import read_model
from softmargin.io.record import ModelRecord, Named


def predict(model: Path, data: Path, out: Path | None, options: DataOptions, *, scores: bool, as_json: bool) -> None:
    if as_json and out is None:
        raise typer.BadParameter("--json describes the predictions, which then go to a file: give OUT.")
    predictor = _predictor(model)
    table = read(data, options, n_features=predictor.n_features)
    found = _scores(predictor, table.X, data, options)
    predicted = labels_from_scores(found, predictor.classes)
    text = _score_lines(found) if scores else "".join(f"{label}\n" for label in predicted.tolist())
    if out is None:
        typer.echo(text, nl=False)
    else:
        with replacing(out) as file:
            file.write(text.encode())
    summary: dict[str, Any] = {"rows": len(predicted), "predictions": None if out is None else str(out)}
    known = None if table.y is None else np.isin(table.y, predictor.classes)
    if known is not None and known.any():
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
    except ModelFileError as error:
        raise ModelFileError(f"{model}: {error}") from None


def _scores(predictor: Predictor, X: Any, data: Path, options: DataOptions) -> np.ndarray:
    scores = predictor.scores(X, options.n_jobs)
    bad = ~np.isfinite(scores if scores.ndim == 1 else scores.sum(axis=1))
    if bad.any():
        raise DataFormatError(f"row {int(np.argmax(bad)) + 1} has values that are not finite.", file=str(data))
    return scores


def _score_lines(scores: np.ndarray) -> str:
    rows = scores[:, None] if scores.ndim == 1 else scores
    return "".join(" ".join(map(repr, row)) + "\n" for row in rows.tolist())


def info(model: Path, *, as_json: bool) -> None:
    record = read_model(model)
    output.show(_described(record, model), as_json)


def _described(record: ModelRecord, model: Path) -> dict[str, Any]:
    classes = record.arrays["classes_"].tolist()
    known = {
        "estimator": record.kind,
        "parameters": {name: _parameter(value) for name, value in record.params.items()},
        "solver": _solver_of(record),
        "classes": classes,
        **(_kernel_described(record) if record.kind == "SVC" else _linear_described(record)),
        **_certificates(record, classes),
        "can_be_resumed": any(name.startswith("state.") for name in record.arrays),
        "bytes": model.stat().st_size,
        "versions": record.versions,
    }
    return {name: value for name, value in known.items() if value is not None}


def _linear_described(record: ModelRecord) -> dict[str, Any]:
    coef = record.arrays["coef_"]
    return {
        "features": coef.shape[1],
        "features_used": int(np.count_nonzero(np.any(coef != 0.0, axis=0))),
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


def _certificates(record: ModelRecord, classes: list) -> dict[str, Any]:
    found = record.values.get("certificates_") or []
    if len(found) == 1:
        return {"certificate": dict(found[0])}
    names = list(map(str, range(len(found))))
    if record.kind == "SVC":
        names = [f"{first} against {second}" for first, second in combinations(classes, 2)]
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
    X, y = read_labelled(data, options, estimator.n_features_in_)
    certificate = judged(estimator, X, y)
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


def evaluate(model: Path, data: Path, options: DataOptions, *, as_json: bool) -> None:
    from softmargin.estimators.evaluate import measures

    predictor = _predictor(model)
    X, y = read_labelled(data, options, n_features=predictor.n_features)
    scores = _scores(predictor, X, data, options)
    output.show({"rows": len(y)} | measures(scores, predictor.classes, y), as_json)
