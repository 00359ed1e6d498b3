"""`softmargin info`: what is in a model file, without importing scikit-learn or Numba."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from softmargin.cli import files, output
from softmargin.cli.exporting import weight_table
from softmargin.core.text import printable
from softmargin.io.model_file import read_model
from softmargin.io.record import ModelRecord, Named
from softmargin.tasks.records import TASK_NAMED

SHOWN_NAMES = 20  # of the features, to people


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
        "search": _search_described(record.values.get("search_")),
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


def _search_described(search: dict[str, Any] | None) -> dict[str, Any] | None:
    if search is None:
        return None
    known = {"over": list(search["params"]), "points": len(search["score"]), "folds": search["n_folds"]}
    return known | {f"best_{search['measure']}_of_held_out_rows": max(search["score"])}


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
