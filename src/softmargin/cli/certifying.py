"""`softmargin certify`."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from softmargin.cli import files, output
from softmargin.cli.data import DataOptions, Trained, naming, read_labelled
from softmargin.cli.fitting import with_steps
from softmargin.cli.model_input import check_queries, opened_model
from softmargin.cli.options import goes_by_kkt
from softmargin.core.errors import SoftmarginError
from softmargin.estimators.certify import certify as judged
from softmargin.estimators.persistence import load_alone
from softmargin.tasks.records import TASK_NAMED


def certify(
    model: Path, data: Path, options: DataOptions, problem: Mapping[str, float | None], *, as_json: bool
) -> None:
    """`problem` is what models of other programs do not say about what they minimise, by parameter; None: not given."""
    estimator, record = opened_model(model, data, load_alone)
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
            folded = (
                " With --fold-scaling there is none to compute: it is about scaled data." if record.versions else ""
            )
            raise SoftmarginError(
                f"{files.title(model)} does not say which {name} it was trained with, on which the certificate "
                f"depends: give {flag}.{folded}"
            )
    estimator.set_params(n_jobs=options.n_jobs, **given)
    task = TASK_NAMED[type(estimator).__name__]
    ranks = task.target == "queries"
    check_queries(options, ranks)
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
