"""The commands that prepare data and the machine."""

from pathlib import Path
from typing import Annotated

import typer

from softmargin.cli import options as train_options
from softmargin.cli.arguments import (
    Base,
    IndexBase,
    Jobs,
    Json,
    Label,
    NumberOfFeatures,
    StoredType,
)
from softmargin.cli.output import reporting_errors


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
    n_features: NumberOfFeatures = None,
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


@reporting_errors
def warmup(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary.")] = False, json: Json = False
) -> None:
    """Compile what fits and predictions need, and keep it.

    For images and workers: later processes that find the same cache folder (NUMBA_CACHE_DIR) do not compile.
    """
    from softmargin.cli import warmup as compiling

    compiling.warmup(quiet=quiet, as_json=json)
