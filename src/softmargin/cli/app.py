"""The commands and their options. Nothing heavy is imported before a command runs: help is instant."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import softmargin
from softmargin.cli import options as train_options
from softmargin.cli.output import reporting_errors

app = typer.Typer(
    help="Train support vector machines exactly, with proof: every model carries a certificate of how far it can be "
    "from the optimum.\n\n"
    "  softmargin train a9a.svm a9a.model -C 1\n\n"
    "  softmargin train a9a.svm a9a.rbf -C 1 --kernel rbf --gamma 0.05\n\n"
    "  softmargin train mq2008.svm mq2008.model -C 10 --task rank\n\n"
    "  softmargin predict a9a.model a9a.t predictions.txt\n\n"
    "DATA is svmlight/LIBSVM text (also .gz, .bz2, .xz, .zst), .npz, .npy, .csv or .parquet; - is the standard input "
    "or output. Exit codes: 0 done, 1 error, 2 wrong usage, 3 stopped before the tolerance was reached.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


class TaskName(StrEnum):
    classify = "classify"
    rank = "rank"
    ordinal = "ordinal"


class SolverName(StrEnum):
    auto = "auto"
    ocas = "ocas"
    cpa = "cpa"
    pegasos = "pegasos"
    sgd = "sgd"
    block = "block"
    smo = "smo"
    active_set = "active_set"
    ipm = "ipm"


class KernelName(StrEnum):
    linear = "linear"
    rbf = "rbf"
    poly = "poly"
    sigmoid = "sigmoid"
    laplacian = "laplacian"


class WorkingSet(StrEnum):
    auto = "auto"
    most_violating_pair = "most_violating_pair"
    second_order = "second_order"
    maximum_gain = "maximum_gain"
    hybrid_maximum_gain = "hybrid_maximum_gain"
    gain_one_row = "gain_one_row"
    gain_all_cached = "gain_all_cached"
    decomposition = "decomposition"


class PairWeight(StrEnum):
    mean = "mean"
    sum = "sum"


class QueryWeight(StrEnum):
    pairs = "pairs"
    equal = "equal"


class Thresholds(StrEnum):
    fitted = "fitted"
    immediate = "immediate"
    all = "all"


class Cost(StrEnum):
    absolute = "absolute"
    zero_one = "zero_one"


class StopRule(StrEnum):
    gap = "gap"
    kkt = "kkt"


class ValueType(StrEnum):
    float32 = "float32"
    float64 = "float64"


class IndexBase(StrEnum):
    auto = "auto"
    zero = "0"
    one = "1"


Data = Annotated[Path, typer.Argument(metavar="DATA", help="Rows with labels.", show_default=False)]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for scripts.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 is all cores.")]
Label = Annotated[
    str | None,
    typer.Option(help="Column of the labels: a name (.csv, .parquet, .npz) or a number (.npy).", show_default=False),
]
NoQueries = Annotated[bool, typer.Option("--no-qid", help="For rankings: all rows are one query, whatever their qid.")]
Base = Annotated[IndexBase, typer.Option("--index-base", help="Number of the first feature in svmlight text.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the file even if something else is in it.")]
Type = Annotated[ValueType, typer.Option("--dtype", help="Type in which values of text are kept.")]


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
def train(
    data: Data,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File to write.", show_default=False)],
    C: Annotated[
        float | None,
        typer.Option("-C", "-c", metavar="C", help="Weight of the sum of losses.  [default: 1]", show_default=False),
    ] = None,
    task: Annotated[
        TaskName | None,
        typer.Option(help="rank learns an order, ordinal ordered labels.  [default: classify]", show_default=False),
    ] = None,
    pairs: Annotated[
        PairWeight | None,
        typer.Option(help="What C multiplies: mean or sum over the pairs.  [default: mean]", show_default=False),
    ] = None,
    query_weight: Annotated[
        QueryWeight | None,
        typer.Option(help="A query counts by its pairs, or as others do.  [default: pairs]", show_default=False),
    ] = None,
    thresholds: Annotated[
        Thresholds | None,
        typer.Option(help="How those between ordered labels are found.  [default: fitted]", show_default=False),
    ] = None,
    cost: Annotated[
        Cost | None,
        typer.Option(help="What fitted thresholds minimise.  [default: absolute]", show_default=False),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL,...", help="Ordered labels in their order.  [default: numbers ascend]", show_default=False
        ),
    ] = None,
    kernel: Annotated[
        KernelName | None, typer.Option(help="Train a kernel model.  [default: a linear model]", show_default=False)
    ] = None,
    gamma: Annotated[
        str | None,
        typer.Option(
            parser=train_options.gamma,
            metavar="scale|auto|NUMBER",
            help="Of the kernel; auto is 1 / features.  [default: scale]",
            show_default=False,
        ),
    ] = None,
    degree: Annotated[int | None, typer.Option(help="Of the kernel poly.  [default: 3]", show_default=False)] = None,
    coef0: Annotated[
        float | None, typer.Option(help="Of the kernels poly and sigmoid.  [default: 0]", show_default=False)
    ] = None,
    solver: Annotated[
        SolverName | None,
        typer.Option(
            help="Algorithm; block, smo, active_set and ipm are for kernels.  [default: auto]", show_default=False
        ),
    ] = None,
    working_set: Annotated[
        WorkingSet | None, typer.Option(help="How smo chooses its pair.  [default: auto]", show_default=False)
    ] = None,
    no_shrinking: Annotated[bool, typer.Option("--no-shrinking", help="smo sets no variables aside.")] = False,
    cache_bytes: Annotated[
        str | None,
        typer.Option(
            parser=train_options.n_bytes,
            metavar="BYTES",
            help="Memory for kernel values, such as 500M or 2G.  [default: a quarter of what is free]",
            show_default=False,
        ),
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(help="Stop at this relative duality gap.  [default: 0.001]", show_default=False),
    ] = None,
    stopping: Annotated[
        StopRule | None,
        typer.Option(help="kkt: --tol is LIBSVM's, on the KKT violation.  [default: gap]", show_default=False),
    ] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Stop after so many seconds.", show_default=False)] = None,
    max_iter: Annotated[int | None, typer.Option(help="Stop after so many iterations.", show_default=False)] = None,
    jobs: Jobs = -1,
    class_weight: Annotated[
        str | None,
        typer.Option(help='"balanced", or LABEL=WEIGHT,LABEL=WEIGHT,...', show_default=False),
    ] = None,
    no_intercept: Annotated[bool, typer.Option("--no-intercept", help="No intercept.")] = False,
    penalised_intercept: Annotated[
        bool, typer.Option("--penalised-intercept", help="The intercept as a constant feature, as in LIBLINEAR.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="For pegasos and sgd, which draw at random.", show_default=False)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where MODEL was stopped.")] = False,
    force: Force = False,
    label: Label = None,
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
    named: dict[str, Any] = {
        "C": C,
        "task": task and task.value,
        "pairs": pairs and pairs.value,
        "query_weight": query_weight and query_weight.value,
        "thresholds": thresholds and thresholds.value,
        "cost": cost and cost.value,
        "classes": classes,
        "no_qid": True if no_qid else None,
        "kernel": kernel and kernel.value,
        "gamma": gamma,
        "degree": degree,
        "coef0": coef0,
        "solver": solver and solver.value,
        "working_set": working_set and working_set.value,
        "shrinking": False if no_shrinking else None,
        "cache_bytes": cache_bytes,
        "stopping": stopping and stopping.value,
        "tol": tol,
        "max_seconds": max_seconds,
        "max_iter": max_iter,
        "n_jobs": jobs,
        "class_weight": class_weight,
        "fit_intercept": False if no_intercept else None,
        "intercept": "penalised" if penalised_intercept else None,
        "random_state": seed,
    }
    given = {name: value for name, value in named.items() if value is not None}
    if not resume:
        train_options.check(given, train_options.kind_of(given), given.get("kernel"))
    from softmargin.cli import training
    from softmargin.cli.data import DataOptions

    options = DataOptions(label, index_base.value, n_features, dtype.value, jobs, no_qid)
    training.train(data, model, options, given, resume=resume, force=force, quiet=quiet, as_json=json)


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
    using.predict(model, data, out, options, scores=scores, force=force, as_json=json)


@app.command(no_args_is_help=True)
@reporting_errors
def info(model: Model, json: Json = False) -> None:
    """Show what is in a model file.

    Parameters, classes, certificate, solver, size, versions.
    """
    from softmargin.cli import using

    using.info(model, as_json=json)


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
    label: Label = None,
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

    options = DataOptions(label, index_base.value, dtype=dtype.value, n_jobs=jobs, no_qid=no_qid)
    using.certify(model, data, options, C=C, as_json=json)


@app.command(no_args_is_help=True)
@reporting_errors
def evaluate(
    model: Model,
    data: Data,
    label: Label = None,
    no_qid: NoQueries = False,
    index_base: Base = IndexBase.auto,
    k: Annotated[int, typer.Option("--ndcg-at", "-k", min=1, metavar="K", help="Places that count in NDCG.")] = 10,
    jobs: Jobs = -1,
    json: Json = False,
) -> None:
    """Measure how well a model predicts DATA.

    Classes: accuracy, and for two of them ROC area and precision/recall break-even point. Rankings: pairs in order,
    NDCG, mean average precision. Ordered labels: mean absolute error, accuracy, pairs in order.
    """
    from softmargin.cli import using
    from softmargin.cli.data import DataOptions

    options = DataOptions(label, index_base.value, n_jobs=jobs, no_qid=no_qid)
    using.evaluate(model, data, options, k=k, as_json=json)


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
