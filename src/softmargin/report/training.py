"""The sections of a report that the fitted model answers alone: verdict, convergence, path, cost."""

import math
from typing import Any

import numpy as np

from softmargin.core.status import Status
from softmargin.report.as_markdown import spread
from softmargin.report.convergence import NO_GAP, ZOOM
from softmargin.report.data_warnings import short
from softmargin.report.document import Block, Chart, Charts, Fact, Facts, Line, Note, Section, Text, number

POINTS = 300  # of a curve
LEAST_SECONDS = 0.001  # shorter times say nothing about the cost

_TO_CHANGE = {
    Status.OPTIMAL: "Nothing needs to be changed.",
    Status.TARGET: "The target was reached, and the fit ended there; leave the target out to go on.",
    Status.MAX_ITER: "Raise max_iter, or fit again with warm_start=True to go on.",
    Status.MAX_SECONDS: "Raise max_seconds, or fit again with warm_start=True to go on.",
    Status.INTERRUPTED: "Fit again with warm_start=True to go on.",
    Status.STOPPED: "A callback ended the fit; fit again with warm_start=True to go on.",
    Status.BUDGET: "Raise max_iter, or choose an exact solver.",
    Status.STALLED: "Scale the features, or accept this gap with a larger tol.",
    Status.UNCONFIRMED: "Scale the features, or accept this gap with a larger tol.",
    Status.SMALL_STEP: "Lower tol, or leave out strict=False, to get closer.",
    Status.STATIONARY: "Choose a kernel that is positive definite, such as rbf, to get a bound.",
}


def verdict(model: Any) -> tuple[str, str]:
    """A level and a sentence: status, gap, what that bounds, and what to change."""
    certificate, status = getattr(model, "certificate_", None), getattr(model, "status_", None)
    if certificate is None or not math.isfinite(certificate.primal):
        return "look", (
            "It is not known how far this model is from the best possible: its file holds no certificate, because "
            "another program trained it, or its scaling was folded into its weights. For a model of another program "
            "softmargin certify computes one from the training data."
        )
    goal = status is None or status.reached_goal
    ended = "Training ended." if status is None else str(status)
    if not math.isfinite(certificate.dual):
        change = _TO_CHANGE.get(status, "") if status is not None else ""
        return "look", f"{ended} There is no bound on how far the model is from the best possible. {change}".strip()
    share = max(certificate.relative_gap, 0.0)
    percent = f"{100 * share:.3g} %" if share < 10 else f"{share:.2g} times its value"
    change = "" if status is None else _TO_CHANGE[status]
    return ("good" if goal else "bad"), (
        f"{ended} The best possible value of the training objective is at most {percent} below that of this model "
        f"(gap {certificate.gap:.3g}); that is proven, whatever the weights. {change}"
    ).strip()


def convergence(model: Any) -> Section:
    certificate = model.certificate_
    blocks: list[Block] = [
        Facts(
            [
                Fact(
                    "Primal value",
                    _value(certificate.primal),
                    "The training objective of this model: regularisation plus losses.",
                ),
                Fact(
                    "Dual bound",
                    _value(certificate.dual),
                    "Proven: no model with these parameters has a lower objective.",
                ),
                Fact(
                    "Relative gap",
                    _value(certificate.relative_gap),
                    "The difference of the two as a share of the primal value.",
                ),
                Fact("Tolerance", _value(float(model.tol)), "The relative gap at which training was to stop (tol)."),
            ]
        )
    ]
    found = getattr(model, "trace_", None)
    traces = [trace for trace in (found if isinstance(found, list) else [found]) if trace is not None and len(trace)]
    if not traces:
        blocks.append(Text("The model keeps no record of its training."))
    else:
        longest = max(traces, key=lambda trace: trace[-1].seconds)
        some = f" Of {len(traces)} sub-problems, the one that took longest." if len(traces) > 1 else ""
        blocks.append(Charts(_convergence_charts(longest, float(model.tol), some)))
    intro = "Training narrows the space between the objective and a bound that is proven. Where they meet, it is done."
    return Section("convergence", "Convergence", intro, blocks)


def _convergence_charts(trace: Any, tol: float, some: str) -> list[Chart]:
    where = spread(len(trace), POINTS)
    seconds, primal, dual = (trace[name][where].astype(float) for name in ("seconds", "primal", "dual"))
    gaps = np.array([trace[k].relative_gap for k in where])
    x = np.maximum.accumulate(seconds).tolist()
    end, lowest = float(primal[-1]), float(np.nanmin(np.where(np.isfinite(dual), dual, primal), initial=0.0))
    is_far = float(primal.max()) > ZOOM * end > 0.0
    told = f"{len(trace)} measurements in {number(float(seconds[-1]))} seconds.{some}"
    far = f" Values above {number(ZOOM * end)} are not shown." if is_far else ""
    return [
        Chart(
            "Objective and bound",
            told + far,
            "seconds",
            "objective",
            x,
            [Line("primal value", _finite(primal)), Line("dual bound", _finite(dual), "dashed")],
            y_range=(min(lowest, 0.0), ZOOM * end) if is_far else None,
        ),
        Chart(
            "Relative gap",
            f"The share that is left to gain, on a log scale; training stops at the dashed line ({tol:g}).{some}",
            "seconds",
            "relative gap",
            x,
            [
                Line("relative gap", _finite(np.maximum(gaps, NO_GAP))),
                Line("tolerance", [tol] * len(x), "dashed", muted=True),
            ],
            log_y=True,
        ),
    ]


def cost(model: Any, n_data_bytes: int | None) -> Section:
    """What the training took."""
    found = getattr(model, "trace_", None)
    last = [trace[-1] for trace in (found if isinstance(found, list) else [found]) if trace is not None and len(trace)]
    seconds = getattr(model, "seconds_", None) or {}
    names = {
        "total": ("Seconds in all", "Time on the wall, compiling included."),
        "judge": ("Seconds judging", "Computing the certificate, added up over sub-problems."),
        "compile": ("Seconds compiling", "Only the first fit on a machine compiles; later ones load the result."),
    }
    facts = []
    if last:
        facts.append(
            Fact(
                "Iterations", number(sum(r.iteration for r in last)), "Steps of the solver, all sub-problems together."
            )
        )
        if passes := sum(r.passes for r in last):
            facts.append(
                Fact("Passes", number(passes), "Products of the data with a vector: what reading all rows once costs.")
            )
        if evaluations := sum(r.kernel_evaluations for r in last):
            facts.append(
                Fact("Kernel evaluations", number(evaluations), "Values of the kernel function that were computed.")
            )
            n_rows = getattr(model, "shape_fit_", (0,))[0]
            if n_rows:
                facts.append(
                    Fact(
                        "Kernel rows",
                        number(evaluations / n_rows),
                        "The same as rows of the kernel matrix, one for each training row.",
                    )
                )
    for name, value in seconds.items():
        title, meaning = names.get(name, (f"Seconds: {name}", "A part of the time."))
        facts.append(Fact(title, _seconds(float(value)), meaning))
    threads = {None: "1", -1: "all cores"}.get(model.n_jobs, str(model.n_jobs))
    facts.append(Fact("Threads", threads, "n_jobs of the model. The result is the same whatever their number."))
    n_bytes = sum(value.nbytes for value in vars(model).values() if isinstance(value, np.ndarray))
    facts.append(Fact("Memory of the model", _bytes(n_bytes), "Arrays that the fitted model holds."))
    if n_data_bytes is not None:
        facts.append(Fact("Memory of the data", _bytes(n_data_bytes), "The rows of this report in memory."))
    blocks: list[Block] = [Facts(facts)]
    if hasattr(model, "solver_"):
        blocks.append(Text(f"Solver: {short(model.solver_, 300)}"))
    if not last and not seconds:
        blocks.append(Note("look", "The file of this model does not tell what its training took."))
    return Section("cost", "Cost", "What the training took. Counts do not depend on the machine, seconds do.", blocks)


def _seconds(value: float) -> str:
    return f"under {LEAST_SECONDS:g}" if 0.0 < value < LEAST_SECONDS else number(value)


def _bytes(n: int) -> str:
    size, unit = float(n), "bytes"
    for larger in ("KB", "MB", "GB", "TB"):
        if size < 1000.0:
            break
        size, unit = size / 1000.0, larger
    return f"{size:.3g} {unit}"


def _value(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else "not known"


def _finite(values: np.ndarray) -> list[float | None]:
    return [float(value) if math.isfinite(value) else None for value in values]
