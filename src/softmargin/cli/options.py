"""Which options of `train` go together, and what they mean. Nothing heavy is imported."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import typer

from softmargin.cli.wording import option

SOLVERS = {
    "linear": ("auto", "ocas", "cpa", "pegasos", "sgd"),
    "kernel": ("auto", "block", "smo", "active_set", "ipm"),
    "rank": ("auto", "ocas", "cpa"),
    "ordinal": ("auto", "ocas", "cpa"),
}
# Options that mean something for some kinds of models only: which, and what to say of them elsewhere.
ONLY_FOR: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (
        ("fit_intercept", "intercept", "random_state"),
        ("linear",),
        "it is for linear models that classify, which are trained without --kernel and --task.",
    ),
    (
        ("kernel", "gamma", "degree", "coef0", "cache_bytes", "working_set", "shrinking", "stopping"),
        ("kernel",),
        "it is for kernel models, which --kernel trains.",
    ),
    (("class_weight",), ("linear", "kernel", "ordinal"), "it is for classes, and a ranking has none."),
    (("pairs", "query_weight", "no_qid"), ("rank",), "it is for rankings, which --task rank trains."),
    (("thresholds", "cost", "classes"), ("ordinal",), "it is for ordered labels, which --task ordinal learns."),
)
# Of those parameters that belong to some kernels only.
PARAMETERS_OF = {
    "linear": (),
    "rbf": ("gamma",),
    "laplacian": ("gamma",),
    "poly": ("gamma", "degree", "coef0"),
    "sigmoid": ("gamma", "coef0"),
}
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def check(given: Mapping[str, Any], kind: str, kernel: str | None = None) -> None:
    """Refuse options that mean nothing for a model of this kind: linear, kernel (with its name), rank or ordinal."""
    if kind in ("rank", "ordinal") and "kernel" in given:
        raise typer.BadParameter(f"models of --task {kind} are linear: leave it out.", param_hint="--kernel")
    for names, kinds, reason in ONLY_FOR:
        if kind not in kinds:
            _refuse(given, names, reason)
    if kernel is not None:
        others = {name for names in PARAMETERS_OF.values() for name in names} - set(PARAMETERS_OF.get(kernel, ()))
        _refuse(given, others, f"the kernel {kernel} has no such parameter.")
    solver = given.get("solver", "auto")
    if solver not in SOLVERS[kind]:
        family = kind if kind in ("linear", "kernel") else f"--task {kind}"
        raise typer.BadParameter(
            f"{solver} is not for {family} models: choose one of {', '.join(SOLVERS[kind])}.", param_hint="--solver"
        )


def kind_of(given: Mapping[str, Any]) -> str:
    """What the options train."""
    task = given.get("task", "classify")
    if task != "classify":
        return str(task)
    return "linear" if given.get("kernel") is None else "kernel"


def _refuse(given: Mapping[str, Any], names: Iterable[str], reason: str) -> None:
    for name in given:
        if name in names:
            raise typer.BadParameter(reason, param_hint=option(name))


def goes_by_kkt(estimator: Any, certificate: Any) -> bool:
    """Whether `tol` is for the KKT violation: as `stopping` says, or because there is no bound."""
    return getattr(estimator, "stopping", "gap") == "kkt" or math.isnan(certificate.dual)


def gamma(text: str) -> Any:
    if text in ("scale", "auto"):
        return text
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither scale nor auto nor a number.") from None


def n_bytes(text: str) -> float:
    """A number, with K, M, G or T behind it for powers of 1024."""
    match = re.fullmatch(r"([0-9.]+(?:e[0-9]+)?)([KMGT]?)B?", text.strip(), re.IGNORECASE)
    try:
        found = float(match[1]) * UNITS[match[2].upper()] if match else math.nan
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise typer.BadParameter(f"{text!r} is not a number of bytes, such as 500M or 2G.")
    return found
