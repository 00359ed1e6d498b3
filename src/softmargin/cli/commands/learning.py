"""The commands `train` and `tune`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from softmargin.cli import options as train_options
from softmargin.cli.arguments import (
    Base,
    Data,
    Drop,
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
    NewModel,
    NoQueries,
    NumberOfFeatures,
    Probability,
    Scale,
    Scaling,
    Type,
    ValueType,
    Weight,
)
from softmargin.cli.output import reporting_errors


@reporting_errors
@train_options.taking(train_options.OPTIONS)
def train(
    data: Data,
    model: NewModel,
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
    n_features: NumberOfFeatures = None,
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


@reporting_errors
@train_options.taking(train_options.OPTIONS)
def tune(
    data: Data,
    model: NewModel,
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
    n_features: NumberOfFeatures = None,
    dtype: Type = ValueType.float64,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No table, no summary.")] = False,
    json: Json = False,
) -> None:
    """Choose C (and gamma, epsilon, nu) by cross-validation, and train the best model on all of DATA.

    What is given by -C, --gamma, --epsilon or --nu is not searched; their defaults below are those of train. Rows of a
    query stay together. Ctrl-C ends the search: the best of what was found is trained and written.
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


def _surroundings(scale: Scaling | None, fold_scaling: bool, probability: Method | None) -> Any:
    from softmargin.cli.fitting import Surroundings

    return Surroundings(scale and scale.value, fold_scaling, probability and probability.value)
