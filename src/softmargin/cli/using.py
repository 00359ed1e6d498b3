"""Commands that use a model file. Predicting and showing import neither scikit-learn nor Numba: they start at once."""

from pathlib import Path
from typing import Any

import numpy as np
import typer

from softmargin.cli import output
from softmargin.cli.data import DataOptions, read, read_labelled
from softmargin.core.errors import DataFormatError, SoftmarginError
from softmargin.estimators import scoring
from softmargin.io.atomic import replacing
from softmargin.io.model_file import read_model
from softmargin.io.record import ModelRecord, Named


def predict(model: Path, data: Path, out: Path | None, options: DataOptions, *, scores: bool, as_json: bool) -> None:
    if as_json and out is None:
        raise typer.BadParameter("--json describes the predictions, which then go to a file: give OUT.")
    record = read_model(model)
    table = read(data, options, n_features=record.arrays["coef_"].shape[1])
    found = _scores(record, table.X, data)
    predicted = scoring.labels_from_scores(found, record.arrays["classes_"])
    text = _score_lines(found) if scores else "".join(f"{label}\n" for label in predicted.tolist())
    if out is None:
        typer.echo(text, nl=False)
    else:
        with replacing(out) as file:
            file.write(text.encode())
    summary: dict[str, Any] = {"rows": len(predicted), "predictions": None if out is None else str(out)}
    known = None if table.y is None else np.isin(table.y, record.arrays["classes_"])
    if known is not None and known.any():
        correct = int(np.count_nonzero(predicted == table.y))
        summary |= {"correct": correct, "accuracy": correct / len(predicted)}
        if not as_json:
            output.note(f"accuracy {100 * correct / len(predicted):.4f} % ({correct} of {len(predicted)})")
    if as_json:
        output.show(summary, as_json)


def _scores(record: ModelRecord, X: Any, data: Path) -> np.ndarray:
    scores = scoring.linear_scores(X, record.arrays["coef_"], record.arrays["intercept_"])
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
    coef = record.arrays["coef_"]
    certificates = record.values.get("certificates_") or []
    known = {
        "estimator": record.kind,
        "parameters": {name: _parameter(value) for name, value in record.params.items()},
        "solver": _solver_of(record),
        "classes": record.arrays["classes_"].tolist(),
        "features": coef.shape[1],
        "features_used": int(np.count_nonzero(np.any(coef != 0.0, axis=0))),
        "status": record.values.get("status_"),
        "iterations": record.values.get("n_iter_"),
        "certificate": dict(certificates[0]) if len(certificates) == 1 else None,
        "certificates": None if len(certificates) < 2 else {str(k): c for k, c in enumerate(certificates)},
        "can_be_resumed": any(name.startswith("state.") for name in record.arrays),
        "bytes": model.stat().st_size,
        "versions": record.versions,
    }
    return {name: value for name, value in known.items() if value is not None}


def _parameter(value: Any) -> Any:
    return (
        f"{value.name}({', '.join(f'{k}={v}' for k, v in value.fields.items())})" if isinstance(value, Named) else value
    )


def _solver_of(record: ModelRecord) -> str:
    solver = record.params.get("solver")
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
    if not certificate.relative_gap <= estimator.tol:
        raise typer.Exit(output.STOPPED_EARLY)


def evaluate(model: Path, data: Path, options: DataOptions, *, as_json: bool) -> None:
    from softmargin.estimators.evaluate import measures

    record = read_model(model)
    X, y = read_labelled(data, options, n_features=record.arrays["coef_"].shape[1])
    scores = _scores(record, X, data)
    output.show({"rows": len(y)} | measures(scores, record.arrays["classes_"], y), as_json)
