"""`softmargin tune`, and `train --cv`: parameters by cross-validation."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer

from softmargin.cli import files, fitting, output
from softmargin.cli import options as train_options
from softmargin.cli.data import DataOptions, Labelled, naming
from softmargin.core.errors import SoftmarginError
from softmargin.core.threads import StopHandler
from softmargin.estimators.machines.kernel_search import has_gamma
from softmargin.estimators.machines.tuning import Data, Table, Tuning, scale_gamma
from softmargin.tasks.records import Task

# The grids of parameters for which none is given. Those of gamma are multiples of that of "scale".
GRIDS: dict[str, Sequence[float]] = {
    "C": (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3),
    "gamma": (1e-2, 1e-1, 1.0, 1e1, 1e2),
    "nu": (0.01, 0.05, 0.1, 0.2, 0.5),
}
FLAGS = {"C": "--Cs", "gamma": "--gammas", "epsilon": "--epsilons", "nu": "--nus"}


def grid(text: str, flag: str) -> list[float]:
    """Numbers with commas between them, or FROM:TO:COUNT on a log scale."""
    usage = f"{flag} {text}: write numbers such as 0.1,1,10 or FROM:TO:COUNT such as 0.01:100:5."
    try:
        if ":" in text:
            low, high, count = text.split(":")
            found = np.geomspace(float(low), float(high), int(count)).tolist()
        else:
            found = [float(part) for part in text.split(",")]
    except ValueError:
        raise SoftmarginError(usage) from None
    if not found or not all(math.isfinite(value) and value >= 0.0 for value in found):
        raise SoftmarginError(usage)
    return sorted(set(found))


def tune(
    data: Path,
    model: Path,
    options: DataOptions,
    given: dict[str, Any],
    grids: dict[str, str],
    *,
    n_folds: int,
    seed: int,
    widen: int,
    one_standard_error: bool,
    plot: Path | None,
    surroundings: fitting.Surroundings,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    if files.is_output_stream(model):
        raise typer.BadParameter("the table is written to the standard output: give MODEL a name.")
    files.check_output(model, {"DATA": data}, force=force, is_model=True)
    if plot is not None:
        files.check_output(plot, {"DATA": data, "MODEL": model}, force=force, is_model=False)
    task = train_options.task_meant(given)
    _check_grids(given, grids, task)
    surroundings.check(task)
    if plot is not None and "C" not in task.options:
        raise typer.BadParameter("it draws scores against C, which this task has not.", param_hint="--plot")
    estimator = task.machine.load()()
    rows = fitting.prepared(estimator, data, options, given, is_told=not (quiet or as_json))
    rows = fitting.scaled_rows(rows, surroundings.scaling, data)
    chosen_grids = _grids(estimator, rows, given, grids, task)
    handler = StopHandler(_tell_choice)
    with handler.installed():
        with naming(data, rows), output.showing("searching"), fitting.warnings_as_notes(as_json):
            search = _tuning(estimator, rows, chosen_grids, n_folds, seed, widen, one_standard_error)
            chosen = search.run()
        if plot is not None:
            _draw(search.table, chosen, plot)
        if not as_json and not quiet:
            _show_table(search.table, chosen)
        estimator.set_params(**chosen)
        if task.target == "nothing":  # as in the search, outliers are not what is learned
            rows = rows._replace(weights=np.where(rows.y == 1, 1.0 if rows.weights is None else rows.weights, 0.0))
        if search.is_interrupted and not as_json:
            output.note("interrupted: the choice is made among what was found until then.")
        summary, shortfall = fitting.fitted_and_saved(
            estimator, rows, data, model, surroundings, handler, as_json, search.table.stored()
        )
    summary = {**_found(search.table, chosen), **summary}
    if as_json:
        output.show({"table": [_line(search.table, point) for point in search.table.scores], **summary}, as_json)
    elif not quiet:
        output.show(summary, as_json)
    if shortfall and not as_json:
        output.note(shortfall)
    if search.is_interrupted or shortfall:
        raise typer.Exit(output.STOPPED_EARLY)


def cross_validated(estimator: Any, rows: Labelled, n_folds: int, seed: int) -> dict[str, Any]:
    """Scores of held-out rows for the parameters that the estimator has."""
    params = {"C": [estimator.C]} if "C" in estimator.get_params() else {"nu": [estimator.nu]}
    search = _tuning(estimator, rows, params, n_folds, seed, 0, False)
    search.run()
    if search.is_interrupted:
        raise KeyboardInterrupt
    [point] = search.table.scores
    return {
        "folds": n_folds,
        f"{search.table.measure}_of_held_out_rows": search.table.mean(point),
        "standard_error": search.table.error(point),
        "scores": search.table.scores[point],
    }


def _tuning(
    estimator: Any, rows: Labelled, grids: dict[str, list[float]], n_folds: int, seed: int, widen: int, one: bool
) -> Tuning:
    if rows.store is not None:
        raise SoftmarginError("cross-validation needs the rows in memory, and DATA is a store: give a file.")
    plain = type(estimator)(**{**estimator.get_params(), "verbose": 0})
    values: dict[str, Sequence[float]] = {**grids}
    return Tuning(plain, Data(rows.X, rows.y, rows.qid, rows.weights), values, n_folds, seed, widen, one, rows.groups)


def _check_grids(given: dict[str, Any], grids: dict[str, str], task: Task) -> None:
    for name in grids:
        flag = FLAGS[name]
        if name not in task.options:
            raise typer.BadParameter(f"models of this task have no {name}.", param_hint=flag)
        if name in given:
            raise typer.BadParameter(f"{name} is fixed and searched at once: drop one of them.", param_hint=flag)
        if name == "gamma" and "gamma" not in train_options.PARAMETERS_OF.get(given.get("kernel", ""), ()):
            raise typer.BadParameter(f"the kernel {given.get('kernel')} has no gamma.", param_hint=flag)


def _grids(
    estimator: Any, rows: Labelled, given: dict[str, Any], grids: dict[str, str], task: Task
) -> dict[str, list[float]]:
    """The values of each parameter that is searched."""
    found = {name: grid(text, FLAGS[name]) for name, text in grids.items()}
    for name, values in GRIDS.items():
        is_there = name in task.options and (name != "gamma" or has_gamma(estimator))
        if is_there and name not in found and name not in given:
            factor = 1.0
            if name == "gamma":
                factor = scale_gamma(rows.X, rows.weights)
            found[name] = [factor * value for value in values]
    if not found:
        raise SoftmarginError("every parameter is fixed, so that there is nothing to search: use train --cv.")
    if "C" not in found and "C" in task.options:
        found["C"] = [estimator.C]
    return {name: found[name] for name in FLAGS if name in found}


def _tell_choice() -> None:
    output.tell_at_once("Stopping: the best of what was found so far is fitted and saved.")


def _line(table: Table, point: tuple) -> dict[str, Any]:
    return {
        **table.params(point),
        table.measure: table.mean(point),
        "standard_error": _error(table, point),
        "folds": len(table.scores[point]),
        "relative_gap": table.gaps[point],
        **({"support_vectors": table.n_support[point]} if any(table.n_support.values()) else {}),
    }


def _error(table: Table, point: tuple) -> float | None:
    """One fold, which an interrupt may leave, has no standard error."""
    return table.error(point) if len(table.scores[point]) > 1 else None


def _show_table(table: Table, chosen: dict[str, float]) -> None:
    points = sorted(table.scores)
    lines = [_line(table, point) | {"": "*" if table.params(point) == chosen else ""} for point in points]
    output.show_rows(lines)
    typer.echo()


def _found(table: Table, chosen: dict[str, float]) -> dict[str, Any]:
    point = tuple(chosen[name] for name in table.names)
    return {
        "chosen": chosen,
        f"{table.measure}_of_held_out_rows": table.mean(point),
        "standard_error": _error(table, point),
        "points": len(table.scores),
    }


def _draw(table: Table, chosen: dict[str, float], path: Path) -> None:
    """Scores against C, with a line for each gamma; of other parameters the value that was chosen."""
    from softmargin.report.drawing import pyplot
    from softmargin.report.regularization import RegularizationPathDisplay

    points = [table.params(point) for point in table.scores]
    Cs = sorted({point["C"] for point in points})
    gammas = sorted({point.get("gamma", 0.0) for point in points})  # 0 where there is none
    scores = np.full((table.n_folds, len(gammas), len(Cs)), np.nan)
    for point, found in table.scores.items():
        at = table.params(point)
        if all(at[name] == chosen[name] for name in table.names if name not in ("C", "gamma")):
            scores[: len(found), gammas.index(at.get("gamma", 0.0)), Cs.index(at["C"])] = found
    best = gammas.index(chosen.get("gamma", 0.0)), chosen["C"]
    named = gammas if "gamma" in table.names else None
    display = RegularizationPathDisplay(Cs=Cs, scores=scores, gammas=named, best=best, score_name=table.measure)
    pyplot().switch_backend("agg")
    figure = display.plot().figure_
    kind = path.suffix.removeprefix(".") or "png"
    files.write(path, lambda file: figure.savefig(file, format=kind))
