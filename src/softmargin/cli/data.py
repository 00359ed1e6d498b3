"""From the options about data to a table; labels as they were in the file."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.io.tables import Table, load_table


@dataclass(frozen=True)
class DataOptions:
    label: str | None = None
    index_base: str = "auto"
    n_features: int | None = None
    dtype: str = "float64"
    n_jobs: int = -1


def read(path: Path, options: DataOptions, n_features: int | None = None) -> Table:
    """The rows of a file; whole numbers as labels become integers, so that they are shown as in the file."""
    label: Any = options.label
    if label is not None and path.suffix == ".npy":
        try:
            label = int(label)
        except ValueError:
            raise SoftmarginError(f"--label {label}: the columns of {path} have numbers, not names.") from None
    is_text = path.suffix not in (".npy", ".npz", ".csv", ".parquet")
    table = load_table(
        path,
        label=label,
        dtype=options.dtype if is_text else None,
        n_features=options.n_features if n_features is None else n_features,
        zero_based="auto" if options.index_base == "auto" else options.index_base == "0",
        n_jobs=options.n_jobs,
    )
    return replace(table, y=_as_in_file(table.y))


def read_labelled(path: Path, options: DataOptions, n_features: int | None = None) -> tuple[Any, np.ndarray]:
    table = read(path, options, n_features)
    if table.y is None:
        raise SoftmarginError(f"{path} has no labels: name their column with --label.")
    return table.X, table.y


def _as_in_file(y: np.ndarray | None) -> np.ndarray | None:
    if y is None or y.dtype.kind != "f" or not np.all(np.abs(y) < 2**53) or not np.all(y == np.rint(y)):
        return y
    return y.astype(np.int64)
