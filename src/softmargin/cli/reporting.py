"""The command `report`: a model and data to a page for people."""

import shlex
from pathlib import Path

import typer

from softmargin.cli import files, output
from softmargin.cli.data import DataOptions, Trained, naming, read_labelled
from softmargin.cli.using import _check_queries, _opened
from softmargin.core.errors import SoftmarginError
from softmargin.tasks.records import TASK_NAMED


def report(model: Path, data: Path, out: Path, options: DataOptions, *, force: bool) -> None:
    from softmargin.estimators.persistence import load
    from softmargin.report.drawing import last_step
    from softmargin.report.model_report import check_free
    from softmargin.report.model_report import report as reported

    to_stream = files.is_output_stream(out)
    files.check_output(out, {"MODEL": model, "DATA": data}, force=force, is_model=False)
    if not to_stream:
        check_free(out, overwrite=force)
    if data.is_dir():
        raise SoftmarginError(
            f"{data} is a store, but a report reads all rows into memory: give a file with some of them."
        )
    estimator = _opened(model, data, load)
    last = last_step(estimator)
    if calibrated := getattr(last, "calibrated_classifiers_", None):
        last = last_step(calibrated[0].estimator)
    task = TASK_NAMED[type(last).__name__]
    ranks = task.target == "queries"
    _check_queries(options, ranks)
    names, index_base = (
        getattr(each, name, None) for each, name in ((last, "feature_names_in_"), (last, "index_base_"))
    )
    vars(last).pop("feature_names_in_", None)  # rows of files are in the model's order, but carry no names
    trained = Trained.of(estimator.n_features_in_, names, index_base)
    rows = read_labelled(data, options, trained, with_queries=ranks, needs_labels=task.target != "nothing")
    last.set_params(n_jobs=options.n_jobs)
    command = shlex.join(["softmargin", "report", str(model), str(data), "-o", str(out)])
    with naming(data, rows), output.showing("measuring"):
        found = reported(
            estimator,
            rows.X,
            rows.y,
            qid=rows.qid,
            feature_names=rows.feature_names if names is None else names,
            command=command,
        )
    if to_stream:
        typer.echo(found.html)
        return
    found.save(out, overwrite=force)
    output.show({"report": str(out), "rows": rows.X.shape[0], "verdict": found.document.verdict}, False)
