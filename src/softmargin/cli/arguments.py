"""Arguments and options that several commands have."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class ValueType(StrEnum):
    float32 = "float32"
    float64 = "float64"


class StoredType(StrEnum):
    uint8 = "uint8"
    float32 = "float32"
    float64 = "float64"


class IndexBase(StrEnum):
    auto = "auto"
    zero = "0"
    one = "1"


class Scaling(StrEnum):
    minmax = "minmax"
    standard = "standard"
    maxabs = "maxabs"
    unit = "unit"


class Method(StrEnum):
    sigmoid = "sigmoid"
    isotonic = "isotonic"


class ExportFormat(StrEnum):
    onnx = "onnx"
    liblinear = "liblinear"
    libsvm = "libsvm"
    csv = "csv"
    json = "json"


Weight = Annotated[
    str | None,
    typer.Option("--weight", help="Weights of the rows: a column, or a file of numbers.", show_default=False),
]
Group = Annotated[
    str | None,
    typer.Option("--group", metavar="COLUMN", help="Rows with the same value stay in one fold.", show_default=False),
]
Names = "Names with commas between them (.csv, .tsv, .parquet)."
Drop = Annotated[str | None, typer.Option("--drop", help=f"Columns to leave out. {Names}", show_default=False)]
Features = Annotated[
    str | None, typer.Option("--features", help=f"The columns to learn from. {Names}", show_default=False)
]
Data = Annotated[Path, typer.Argument(metavar="DATA", help="Rows with labels.", show_default=False)]
NewModel = Annotated[Path, typer.Argument(metavar="MODEL", help="File to write.", show_default=False)]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for scripts.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 is all cores.")]
Label = Annotated[
    str | None,
    typer.Option(
        help="Column of the labels: a name (.csv, .tsv, .parquet, .npz) or a number from 0; -1 is the last.",
        show_default=False,
    ),
]
NumberOfFeatures = Annotated[
    int | None,
    typer.Option("--n-features", help="Number of features.  [default: as many as occur]", show_default=False),
]
NoQueries = Annotated[bool, typer.Option("--no-qid", help="For rankings: all rows are one query, whatever their qid.")]
Base = Annotated[IndexBase, typer.Option("--index-base", help="Number of the first feature in svmlight text.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the file even if something else is in it.")]
Type = Annotated[ValueType, typer.Option("--dtype", help="Type in which values of text are kept.")]


Scale = Annotated[
    Scaling | None,
    typer.Option(
        "--scale",
        help="Features to 0..1, to mean 0 and deviation 1, to at most 1; or rows to length 1. predict does it, too.",
        show_default=False,
    ),
]
FoldScaling = Annotated[
    bool, typer.Option("--fold-scaling", help="Of a linear model: scale the weights instead of storing the scaling.")
]
Probability = Annotated[
    Method | None,
    typer.Option("--probability", help="Calibrate scores on folds, for predict --probability.", show_default=False),
]
Grid = "Values such as 0.1,1,10 or FROM:TO:COUNT."
