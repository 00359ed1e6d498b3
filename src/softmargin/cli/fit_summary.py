"""What a fit is said to have done."""

from pathlib import Path
from typing import Any

import numpy as np

from softmargin.cli import files
from softmargin.cli import options as train_options
from softmargin.cli.data import Labelled
from softmargin.core.status import Status
from softmargin.core.stopping import is_at_bound


def summary_of(estimator: Any, rows: Labelled, model: Path, seconds: float) -> dict[str, Any]:
    certificate = estimator.certificate_
    is_kernel = train_options.task_of(estimator).has_kernel
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


def stopped_early(estimator: Any, model: Path, *, can_go_on: bool) -> str:
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
