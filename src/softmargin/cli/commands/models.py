"""The commands that use a model file."""

from pathlib import Path
from typing import Annotated

import typer

from softmargin.cli import options as train_options
from softmargin.cli.arguments import (
    Base,
    Data,
    ExportFormat,
    Force,
    IndexBase,
    Jobs,
    Json,
    Label,
    Model,
    NoQueries,
    Type,
    ValueType,
    Weight,
)
from softmargin.cli.output import reporting_errors


@reporting_errors
def predict(
    model: Model,
    data: Data,
    out: Annotated[
        Path,
        typer.Argument(metavar="[OUT]", help="File to write; without it, the standard output.", show_default=False),
    ] = Path("-"),
    scores: Annotated[
        bool, typer.Option("--scores", help="Scores instead of labels; several classes in the order that info shows.")
    ] = False,
    probability: Annotated[
        bool, typer.Option("--probability", help="A probability for each class, in the order that info shows.")
    ] = False,
    label: Label = None,
    index_base: Base = IndexBase.auto,
    jobs: Jobs = -1,
    force: Force = False,
    json: Json = False,
) -> None:
    """Predict a label for each row of DATA, one a line; with a ranking model, a score.

    Where DATA has labels, the accuracy is shown.
    """
    from softmargin.cli import predicting
    from softmargin.cli.data import DataOptions

    options = DataOptions(label, index_base.value, n_jobs=jobs, no_qid=True)
    predicting.predict(model, data, out, options, scores=scores, probability=probability, force=force, as_json=json)


@reporting_errors
def info(
    model: Model,
    weights: Annotated[
        int | None,
        typer.Option(
            "--weights", min=1, metavar="N", help="Of linear models: the N largest weights.", show_default=False
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show what is in a model file.

    Parameters, classes, certificate, solver, size, versions.
    """
    from softmargin.cli import showing

    showing.info(model, n_weights=weights, as_json=json)


@reporting_errors
def export(
    model: Model,
    out: Annotated[
        Path,
        typer.Argument(metavar="[OUT]", help="File to write; without it, the standard output.", show_default=False),
    ] = Path("-"),
    format: Annotated[ExportFormat, typer.Option("--format", help="What to write.")] = ExportFormat.json,
    force: Force = False,
) -> None:
    """Write a model for other programs.

    onnx for ONNX Runtime, liblinear and libsvm for these programs, csv for the weights by feature, json for all that
    predicts.
    """
    from softmargin.cli import exporting

    exporting.export(model, out, format.value, force=force)


@reporting_errors
def certify(
    model: Model,
    data: Data,
    C: Annotated[
        float | None,
        typer.Option(
            "-C", "-c", metavar="C", help="For models of LIBLINEAR and LIBSVM, which do not tell.", show_default=False
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option("--epsilon", help="Likewise, for regressions: what deviation costs nothing.", show_default=False),
    ] = None,
    nu: Annotated[
        float | None,
        typer.Option("--nu", help="Likewise, for one-class models: the share of outliers.", show_default=False),
    ] = None,
    label: Label = None,
    weight: Weight = None,
    no_qid: NoQueries = False,
    index_base: Base = IndexBase.auto,
    dtype: Type = ValueType.float64,
    jobs: Jobs = -1,
    json: Json = False,
) -> None:
    """Judge a model again on its training data.

    Shows primal value, dual bound and gap, computed from the data. The exit code is 3 if the relative gap is above the
    model's tolerance.
    """
    from softmargin.cli import certifying
    from softmargin.cli.data import DataOptions

    options = DataOptions(label, index_base.value, dtype=dtype.value, n_jobs=jobs, no_qid=no_qid, weight=weight)
    certifying.certify(model, data, options, {"C": C, "epsilon": epsilon, "nu": nu}, as_json=json)


@reporting_errors
def evaluate(
    model: Model,
    data: Data,
    label: Label = None,
    no_qid: NoQueries = False,
    index_base: Base = IndexBase.auto,
    k: Annotated[
        str, typer.Option("--ndcg-at", "-k", metavar="K,...", help="Places that count in NDCG and precision.")
    ] = "10",
    each_query: Annotated[bool, typer.Option("--per-query", help="Of rankings: a line for each query.")] = False,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="COLUMN", help="Measures of each value of a column.", show_default=False),
    ] = None,
    weight: Weight = None,
    jobs: Jobs = -1,
    json: Json = False,
) -> None:
    """Measure how well a model predicts DATA.

    Classes: accuracy, F1, ROC and precision/recall area, each class, the confusion. Rankings: pairs in order, NDCG,
    precision, mean average precision, reciprocal rank. Ordered labels: mean absolute error, accuracy, pairs in order.
    """
    from softmargin.cli import evaluating
    from softmargin.cli.data import DataOptions

    options = DataOptions(label, index_base.value, n_jobs=jobs, no_qid=no_qid, weight=weight, by=by)
    evaluating.evaluate(model, data, options, ks=train_options.places(k), each_query=each_query, as_json=json)


@reporting_errors
def report(
    model: Model,
    data: Data,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="File to write: .html, or .md for Markdown.")
    ] = Path("report.html"),
    label: Label = None,
    no_qid: NoQueries = False,
    index_base: Base = IndexBase.auto,
    jobs: Jobs = -1,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
) -> None:
    """Write a page for people about a model and DATA.

    Verdict, convergence, margins, weights, measures, warnings about the data, cost, and how to repeat it. DATA that the
    model was trained on show its support vectors; other DATA show how good it is.
    """
    from softmargin.cli import reporting
    from softmargin.cli.data import DataOptions

    options = DataOptions(label, index_base.value, n_jobs=jobs, no_qid=no_qid)
    reporting.report(model, data, out, options, force=force)
