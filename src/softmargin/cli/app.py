"""The commands and their options. Nothing heavy is imported before a command runs: help is instant."""

from pathlib import Path
from typing import Annotated, Any

import typer

import softmargin
from softmargin.cli import options as train_options
from softmargin.cli.arguments import (
    Base,
    Data,
    Drop,
    ExportFormat,
    Features,
    FoldScaling,
    Force,
    Grid,
    Group,
    IndexBase,
    Jobs,
    Json,
    Label,
    Method,
    Model,
    NoQueries,
    Probability,
    Scale,
    Scaling,
    StoredType,
    Type,
    ValueType,
    Weight,
)
from softmargin.cli.output import reporting_errors

app = typer.Typer(
    help="Train support vector machines exactly, with proof: every model carries a certificate of how far it can be "
    "from the optimum.\n\n"
    "  softmargin train a9a.svm a9a.model -C 1\n\n"
    "  softmargin train a9a.svm a9a.rbf -C 1 --kernel rbf --gamma 0.05\n\n"
    "  softmargin train mq2008.svm mq2008.model -C 10 --task rank\n\n"
    "  softmargin predict a9a.model a9a.t predictions.txt\n\n"
    "DATA is svmlight/LIBSVM text (also .gz, .bz2, .xz, .zst), .npz, .npy, .csv, .parquet, or a store that convert "
    "wrote; - is the standard input or output. "
    "Exit codes: 0 done, 1 error, 2 wrong usage, 3 stopped before the tolerance was reached.",
    add_completion=True,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"softmargin {softmargin.__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of the program itself."""


@app.command(no_args_is_help=True)
@reporting_errors
@train_options.taking(train_options.OPTIONS)
def train(
    data: Data,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File to write.", show_default=False)],
    given: dict[str, Any],
    cv: Annotated[
        int | None,
        typer.Option("--cv", metavar="FOLDS", help="Also show scores of held-out rows.", show_default=False),
    ] = None,
    scale: Scale = None,
    fold_scaling: FoldScaling = False,
    probability: Probability = None,
    jobs: Jobs = -1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where MODEL was stopped.")] = False,
    force: Force = False,
    label: Label = None,
    weight: Weight = None,
    group: Group = None,
    drop: Drop = None,
    features: Features = None,
    no_qid: NoQueries = False,
    index_base: Base = IndexBase.auto,
    n_features: Annotated[
        int | None, typer.Option(help="Number of features.  [default: as many as occur]", show_default=False)
    ] = None,
    dtype: Type = ValueType.float64,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no summary.")] = False,
    json: Json = False,
) -> None:
    """Train a model on DATA and write it to MODEL.

    Ctrl-C, SIGTERM and SIGHUP stop early: the best model so far is saved with its certificate, and --resume goes on
    from there.
    """
    given |= {"n_jobs": jobs} | ({"no_qid": True} if no_qid else {})
    if not resume:
        train_options.check(given, train_options.task_meant(given), given.get("kernel"))
    from softmargin.cli import training
    from softmargin.cli.data import DataOptions

    options = DataOptions(
        label,
        index_base.value,
        n_features,
        dtype.value,
        jobs,
        no_qid,
        weight=weight,
        group=group,
        drop=train_options.names(drop) or (),
        features=train_options.names(features),
    )
    around = _surroundings(scale, fold_scaling, probability)
    training.train(
        data,
        model,
        options,
        given,
        surroundings=around,
        n_folds=cv,
        resume=resume,
        force=force,
        quiet=quiet,
        as_json=json,
    )


def _surroundings(scale: Scaling | None, fold_scaling: bool, probability: Method | None) -> Any:
    from softmargin.cli.training import Surroundings

    return Surroundings(scale and scale.value, fold_scaling, probability and probability.value)


@app.command(no_args_is_help=True)
@reporting_errors
@train_options.taking(train_options.OPTIONS)
def tune(
    data: Data,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File to write.", show_default=False)],
    given: dict[str, Any],
    Cs: Annotated[str | None, typer.Option("--Cs", help=f"{Grid}  [default: 0.001:1000:7]", show_default=False)] = None,
    gammas: Annotated[
        str | None, typer.Option("--gammas", help=f"{Grid}  [default: 0.01 to 100 times scale]", show_default=False)
    ] = None,
    epsilons: Annotated[
        str | None, typer.Option("--epsilons", help=f"{Grid}  [default: --epsilon alone]", show_default=False)
    ] = None,
    nus: Annotated[
        str | None, typer.Option("--nus", help=f"{Grid}  [default: 0.01,0.05,0.1,0.2,0.5]", show_default=False)
    ] = None,
    cv: Annotated[int, typer.Option("--cv", metavar="FOLDS", help="Folds of the cross-validation.")] = 5,
    fold_seed: Annotated[int, typer.Option("--fold-seed", min=0, help="Which folds are drawn.")] = 0,
    widen: Annotated[
        int, typer.Option("--widen", min=0, help="How often a grid grows where the best value lies at its edge.")
    ] = 3,
    one_standard_error: Annotated[
        bool, typer.Option("--one-se", help="The smoothest model within one standard error of the best.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Picture of scores against C (.png, .svg, .pdf).", show_default=False)
    ] = None,
    scale: Scale = None,
    fold_scaling: FoldScaling = False,
    probability: Probability = None,
    jobs: Jobs = -1,
    force: Force = False,
    label: Label = None,
    weight: Weight = None,
    group: Group = None,
    drop: Drop = None,
    features: Features = None,
    no_qid: NoQueries = False,
    index_base: Base = IndexBase.auto,
    n_features: Annotated[
        int | None, typer.Option(help="Number of features.  [default: as many as occur]", show_default=False)
    ] = None,
    dtype: Type = ValueType.float64,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No table, no summary.")] = False,
    json: Json = False,
) -> None:
    """Choose C (and gamma, epsilon, nu) by cross-validation, and train the best model on all of DATA.

    Rows of a query stay together. Ctrl-C ends the search: the best of what was found is trained and written.
    """
    given |= {"n_jobs": jobs} | ({"no_qid": True} if no_qid else {})
    train_options.check(given, train_options.task_meant(given), given.get("kernel"))
    from softmargin.cli import tuning
    from softmargin.cli.data import DataOptions

    options = DataOptions(
        label,
        index_base.value,
        n_features,
        dtype.value,
        jobs,
        no_qid,
        weight=weight,
        group=group,
        drop=train_options.names(drop) or (),
        features=train_options.names(features),
    )
    grids = {"C": Cs, "gamma": gammas, "epsilon": epsilons, "nu": nus}
    tuning.tune(
        data,
        model,
        options,
        given,
        {name: text for name, text in grids.items() if text is not None},
        n_folds=cv,
        seed=fold_seed,
        widen=widen,
        one_standard_error=one_standard_error,
        plot=plot,
        surroundings=_surroundings(scale, fold_scaling, probability),
        force=force,
        quiet=quiet,
        as_json=json,
    )


@app.command(no_args_is_help=True)
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
    from softmargin.cli import using
    from softmargin.cli.data import DataOptions

    options = DataOptions(label, index_base.value, n_jobs=jobs, no_qid=True)
    using.predict(model, data, out, options, scores=scores, probability=probability, force=force, as_json=json)


@app.command(no_args_is_help=True)
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
    from softmargin.cli import using

    using.info(model, n_weights=weights, as_json=json)


@app.command(no_args_is_help=True)
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


@app.command(no_args_is_help=True)
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
    from softmargin.cli import using
    from softmargin.cli.data import DataOptions

    options = DataOptions(label, index_base.value, dtype=dtype.value, n_jobs=jobs, no_qid=no_qid, weight=weight)
    using.certify(model, data, options, {"C": C, "epsilon": epsilon, "nu": nu}, as_json=json)


@app.command(no_args_is_help=True)
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
    from softmargin.cli import using
    from softmargin.cli.data import DataOptions

    options = DataOptions(label, index_base.value, n_jobs=jobs, no_qid=no_qid, weight=weight, by=by)
    using.evaluate(model, data, options, ks=train_options.places(k), each_query=each_query, as_json=json)


@app.command(no_args_is_help=True)
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


@app.command(no_args_is_help=True)
@reporting_errors
def convert(
    data: Annotated[list[Path], typer.Argument(metavar="DATA...", help="Files with rows.", show_default=False)],
    store: Annotated[Path, typer.Argument(metavar="STORE", help="Folder to write.", show_default=False)],
    memory: Annotated[
        str | None,
        typer.Option(
            help="Memory to use, such as 500M or 2G.  [default: a quarter of what is free]",
            metavar="BYTES",
            parser=train_options.n_bytes,
            show_default=False,
        ),
    ] = None,
    label: Label = None,
    no_qid: Annotated[bool, typer.Option("--no-qid", help="Leave queries out.")] = False,
    index_base: Base = IndexBase.auto,
    n_features: Annotated[
        int | None, typer.Option(help="Number of features.  [default: as many as occur]", show_default=False)
    ] = None,
    dtype: Annotated[
        StoredType | None,
        typer.Option("--dtype", help="Type of the values.  [default: that of DATA]", show_default=False),
    ] = None,
    jobs: Jobs = -1,
    force: Annotated[bool, typer.Option("--force", help="Replace a store that is there.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")] = False,
    json: Json = False,
) -> None:
    """Write the rows of DATA... to STORE, from which train reads them chunk by chunk.

    For data that are larger than memory. All files must have the same features.
    """
    from softmargin.cli import converting
    from softmargin.cli.data import DataOptions

    options = DataOptions(label, index_base.value, n_features, "float64", jobs, no_qid)
    converting.convert(
        data,
        store,
        options,
        dtype=None if dtype is None else dtype.value,
        memory_bytes=memory,  # type: ignore[arg-type]
        force=force,
        quiet=quiet,
        as_json=json,
    )


@app.command()
@reporting_errors
def warmup(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary.")] = False, json: Json = False
) -> None:
    """Compile what fits and predictions need, and keep it.

    For images and workers: later processes that find the same cache folder (NUMBA_CACHE_DIR) do not compile.
    """
    from softmargin.cli import warmup as compiling

    compiling.warmup(quiet=quiet, as_json=json)
