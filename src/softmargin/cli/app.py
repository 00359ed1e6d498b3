"""The program: its commands and its help. Nothing heavy is imported before a command runs: help is instant."""

from typing import Annotated

import typer

import softmargin
from softmargin.cli.commands.learning import train, tune
from softmargin.cli.commands.models import certify, evaluate, export, info, predict, report
from softmargin.cli.commands.preparing import convert, warmup

COMMANDS = (train, tune, predict, info, export, certify, evaluate, report, convert)  # in the order of the help

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


for command in COMMANDS:
    app.command(no_args_is_help=True)(command)
app.command()(warmup)  # which needs no argument
