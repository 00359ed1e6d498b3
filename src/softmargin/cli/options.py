"""The options of `train`: what there is, in groups, and which go together. Nothing heavy is imported."""

import functools
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from softmargin.cli.wording import option
from softmargin.core.stopping import BY_KKT
from softmargin.tasks.records import TASK_NAMED, TASKS, WORDS, Task, task_for
from softmargin.tasks.solvers import SOLVERS

# Parameters that belong to some kernels only.
PARAMETERS_OF = {
    "linear": (),
    "rbf": ("gamma",),
    "laplacian": ("gamma",),
    "poly": ("gamma", "degree", "coef0"),
    "sigmoid": ("gamma", "coef0"),
}
WORKING_SETS = (
    "auto",
    "most_violating_pair",
    "second_order",
    "maximum_gain",
    "hybrid_maximum_gain",
    "gain_one_row",
    "gain_all_cached",
    "gain_recent_rows",
    "greedy",
    "decomposition",
    "gain_sets",
)
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


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


def names(text: str | None) -> tuple[str, ...] | None:
    """Names of columns, with commas between them."""
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def places(text: str) -> list[int]:
    """Numbers of places, with commas between them."""
    found = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in found):
        raise typer.BadParameter(f"{text!r} is no list of places, such as 1,5,10.", param_hint="--ndcg-at")
    return [int(part) for part in found]


@dataclass(frozen=True)
class Option:
    """An option that sets a parameter of the estimator.

    `kind` is float, int, str, or a tuple of words to choose from; a flag has the value `value` where it is given. How
    the option is called follows from the parameter, but for `more` names.
    """

    name: str
    kind: Any
    help: str
    metavar: str | None = None
    parser: Callable[[str], Any] | None = None
    value: Any = None
    more: tuple[str, ...] = ()

    def annotation(self) -> Any:
        names = (option(self.name), *self.more)
        if self.kind is bool:
            return Annotated[bool, typer.Option(*names, help=self.help)]
        described = typer.Option(*names, help=self.help, metavar=self.metavar, parser=self.parser, show_default=False)
        return Annotated[
            (_choice(self.name, self.kind) if isinstance(self.kind, tuple) else self.kind) | None, described
        ]


def _choice(name: str, words: tuple[str, ...]) -> Any:
    """A type whose values are these words."""
    members = {word: word for word in words}
    return StrEnum(name, members)


# Parameters of estimators, in the order of `softmargin train --help`.
TASK_OPTIONS = (
    Option("C", float, "Weight of the sum of losses.  [default: 1]", metavar="C", more=("-c",)),
    Option(
        "task",
        WORDS,
        "classify learns classes, regress numbers, oneclass where the rows lie, rank an order, ordinal ordered "
        "labels.  [default: classify]",
    ),
    Option("epsilon", float, "For regress: deviations that cost nothing.  [default: 0, with a kernel 0.1]"),
    Option(
        "loss",
        ("hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive"),
        "Of a linear model; the first two are for classify, the others for regress.  [default: not squared]",
    ),
    Option("nu", float, "For oneclass: about the share of outliers.  [default: 0.5]"),
    Option("pairs", ("mean", "sum"), "What C multiplies: mean or sum over the pairs.  [default: mean]"),
    Option("query_weight", ("pairs", "equal"), "A query counts by its pairs, or as others do.  [default: pairs]"),
    Option(
        "thresholds",
        ("fitted", "immediate", "all"),
        "How those between ordered labels are found.  [default: fitted]",
    ),
    Option("cost", ("absolute", "zero_one"), "What fitted thresholds minimise.  [default: absolute]"),
    Option("classes", str, "Ordered labels in their order.  [default: numbers ascend]", metavar="LABEL,..."),
    Option("class_weight", str, '"balanced", or LABEL=WEIGHT,LABEL=WEIGHT,...'),
    Option("fit_intercept", bool, "No intercept.", value=False),
    Option("intercept", bool, "The intercept as a constant feature, as in LIBLINEAR.", value="penalised"),
    Option("intercept_scaling", float, "Value of the constant feature.  [default: 1]"),
    Option(
        "multi_class",
        ("ovr", "crammer_singer"),
        "Each class against the rest, or one joint problem of all classes.  [default: ovr]",
    ),
)
KERNEL_OPTIONS = (
    Option("kernel", tuple(PARAMETERS_OF), "Train a kernel model.  [default: a linear model]"),
    Option(
        "gamma",
        str,
        "Of the kernel; auto is 1 / features.  [default: scale]",
        metavar="scale|auto|NUMBER",
        parser=gamma,
    ),
    Option("degree", int, "Of the kernel poly.  [default: 3]"),
    Option("coef0", float, "Of the kernels poly and sigmoid.  [default: 0]"),
    Option("working_set", WORKING_SETS, "How smo chooses its pair.  [default: auto]"),
    Option("shrinking", bool, "smo sets no variables aside.", value=False),
    Option(
        "cache_bytes",
        str,
        "Memory for kernel values, such as 500M or 2G.  [default: a quarter of what is free]",
        metavar="BYTES",
        parser=n_bytes,
    ),
    Option(
        "stopping",
        ("gap", "kkt", "gain"),
        "kkt: --tol is for LIBSVM's KKT violation; gain: the HMG paper's rule for pairs.  [default: gap]",
    ),
)
SOLVER_OPTIONS = (
    Option(
        "solver",
        ("auto", *dict.fromkeys(entry.word for entry in SOLVERS)),
        "Algorithm; for kernels: block, smo, active_set, ipm and ocas.  [default: auto]",
    ),
    Option("tol", float, "Stop at this relative duality gap.  [default: 0.001]"),
    Option("max_seconds", float, "Stop after so many seconds."),
    Option("max_iter", int, "Stop after so many iterations."),
    Option("random_state", int, "For pegasos, sgd and coordinate, which visit rows in random order."),
)
OPTIONS = (*TASK_OPTIONS, *KERNEL_OPTIONS, *SOLVER_OPTIONS)

# What to say of an option that means nothing for the task; options that no task lists are for all of them.
REASONS = {
    ("C",): "it is not for --task oneclass, which has --nu instead.",
    ("epsilon",): "it is for numbers, which --task regress learns.",
    ("nu",): "it is for --task oneclass.",
    ("loss", "fit_intercept", "intercept", "intercept_scaling"): (
        "it is for linear models that classify or regress, which are trained without --kernel."
    ),
    ("multi_class",): "it is for linear models that classify, which are trained without --kernel and --task.",
    ("random_state",): (
        "it is for linear models that classify, regress or learn one class, which are trained without --kernel."
    ),
    (
        "kernel",
        "gamma",
        "degree",
        "coef0",
        "cache_bytes",
        "working_set",
        "shrinking",
        "stopping",
    ): "it is for kernel models, which --kernel trains.",
    ("class_weight",): "it is for classes, and this task has none.",
    ("pairs", "query_weight", "no_qid"): "it is for rankings, which --task rank trains.",
    ("thresholds", "cost", "classes"): "it is for ordered labels, which --task ordinal learns.",
}


def taking(options: Iterable[Option]) -> Callable[[Callable], Callable]:
    """A decorator: a command with these options, of which it gets those that are given, as the dictionary `given`."""
    options = tuple(options)

    def decorate(command: Callable) -> Callable:
        @functools.wraps(command)
        def with_options(**arguments: Any) -> Any:
            given = {}
            for each in options:
                found = arguments.pop(each.name)
                if each.kind is bool and found:
                    given[each.name] = each.value
                elif each.kind is not bool and found is not None:
                    given[each.name] = found.value if isinstance(found, StrEnum) else found
            return command(given=given, **arguments)

        own = inspect.signature(command, eval_str=True).parameters
        added = {
            each.name: inspect.Parameter(
                each.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=False if each.kind is bool else None,
                annotation=each.annotation(),
            )
            for each in options
        }
        parameters: dict[str, inspect.Parameter] = {}
        for name, parameter in own.items():
            if name == "given":
                parameters |= added
            else:
                parameters[name] = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        with_options.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
        with_options.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
        del with_options.__wrapped__
        return with_options

    return decorate


def task_meant(given: Mapping[str, Any]) -> Task:
    """What the options train."""
    word, has_kernel = given.get("task", "classify"), given.get("kernel") is not None
    task = task_for(word, has_kernel=has_kernel)
    if task is None:
        raise typer.BadParameter(f"models of --task {word} are linear: leave it out.", param_hint="--kernel")
    return task


def task_of(estimator: Any) -> Task:
    """What this estimator learns."""
    return TASK_NAMED[type(estimator).__name__]


def check(given: Mapping[str, Any], task: Task, kernel: str | None = None) -> None:
    """Refuse options that mean nothing for this task, or for this kernel."""
    special = {name for each in TASKS for name in each.options} - set(task.options)
    for names, reason in REASONS.items():
        _refuse(given, special.intersection(names), reason)
    if kernel is not None:
        others = {name for names in PARAMETERS_OF.values() for name in names} - set(PARAMETERS_OF.get(kernel, ()))
        _refuse(given, others, f"the kernel {kernel} has no such parameter.")
    solver = given.get("solver", "auto")
    if solver not in task.solvers:
        family = ("kernel" if task.has_kernel else "linear") if task.word == "classify" else f"--task {task.word}"
        raise typer.BadParameter(
            f"{solver} is not for {family} models: choose one of {', '.join(task.solvers)}.", param_hint="--solver"
        )


def _refuse(given: Mapping[str, Any], names: Iterable[str], reason: str) -> None:
    for name in given:
        if name in names:
            raise typer.BadParameter(reason, param_hint=option(name))


def goes_by_kkt(estimator: Any, certificate: Any) -> bool:
    """Whether `tol` is for the KKT violation: as the estimator or its solver says, or because there is no bound."""
    rules = (getattr(each, "stopping", "gap") for each in (estimator, estimator.solver))
    return any(rule in BY_KKT for rule in rules) or math.isnan(certificate.dual)
