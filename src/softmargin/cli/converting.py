"""`softmargin convert`."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import typer

from softmargin.cli import files, output
from softmargin.cli.data import DataOptions
from softmargin.core.errors import DataFormatError, SoftmarginError
from softmargin.core.memory import free_bytes
from softmargin.core.threads import StopHandler
from softmargin.io.batches import Batches
from softmargin.io.store import Store
from softmargin.io.store_writing import CHUNK_BYTES, write_store
from softmargin.io.tables import Table

# Without --memory, this share of the free memory; and the part of it that a chunk of the store takes.
MEMORY_SHARE, CHUNK_SHARE = 0.25, 1 / 8
LEAST_BYTES = 1 << 24


def convert(
    data: list[Path],
    path: Path,
    options: DataOptions,
    *,
    dtype: str | None,
    memory_bytes: float | None,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    memory_bytes = max(LEAST_BYTES, MEMORY_SHARE * free_bytes()) if memory_bytes is None else memory_bytes
    if memory_bytes < LEAST_BYTES:
        raise typer.BadParameter(f"at least {LEAST_BYTES >> 20}M are needed.", param_hint="--memory")
    if files.is_output_stream(path):
        raise typer.BadParameter("a store is a folder: give STORE a name.")
    if not path.resolve().parent.is_dir():
        raise SoftmarginError(f"{path.resolve().parent} is not a folder: {path} could not be written there.")
    stopping = StopHandler(lambda: None).installed()  # a signal is an interrupt, after which nothing is left behind
    with stopping, ExitStack() as stack, output.showing("converting", with_bar=True) as tell:
        inputs = [(each, stack.enter_context(files.readable(each))) for each in data]
        reading = _Reading(inputs, _batches(inputs, options, memory_bytes), tell)
        tables = iter(reading)
        try:
            first = next(tables)
            write_store(
                path,
                ((table.X, table.y, None, table.qid) for table in chain([first], tables)),
                dtype=dtype,
                n_features=options.n_features or "max",
                feature_names=first.feature_names,
                index_base=first.index_base,
                chunk_bytes=int(min(CHUNK_BYTES, CHUNK_SHARE * memory_bytes)),
                overwrite=force,
                whole_labels=True,
            )
        except SoftmarginError as error:
            if not str(error).startswith("batch "):
                raise
            raise DataFormatError(str(error), file=files.title(reading.path)) from None
    if as_json or not quiet:
        output.show(_summary(Store(path)), as_json)


def _batches(inputs: list[tuple[Path, Path]], options: DataOptions, memory_bytes: float) -> Batches:
    """How the files are read. Text that begins with index 0, or with queries, decides for all of them."""
    label: Any = options.label
    zero_based = None if options.index_base == "auto" else options.index_base == "0"
    plain = Batches(memory_bytes, label, options.n_features, zero_based, None, options.n_jobs)
    if zero_based is None:
        zero_based = any(plain.beginning(file)[0] for _, file in inputs)
    query_id = False if options.no_qid else None
    return Batches(memory_bytes, label, options.n_features, zero_based, query_id, options.n_jobs)


class _Reading:
    """The rows of all files, batch by batch; `path` is the file of the last batch."""

    def __init__(self, inputs: list[tuple[Path, Path]], batches: Batches, tell: Callable[[str, float], None]) -> None:
        self._inputs, self._batches, self._tell = inputs, batches, tell
        self.path = inputs[0][0]

    def __iter__(self) -> Iterator[Table]:
        """Columns must have the same names in all files, and be in the same order."""
        n_rows, first = 0, None
        sizes = [file.stat().st_size for _, file in self._inputs]
        for k, (path, file) in enumerate(self._inputs):
            for table, share in self._batches.of(file):
                self.path = path
                first = first or (path, table.feature_names)
                if table.feature_names != first[1]:
                    raise DataFormatError(
                        f"the columns are not those of {files.title(first[0])}, in the same order.",
                        file=files.title(path),
                    )
                yield table
                n_rows += table.X.shape[0]
                done = (sum(sizes[:k]) + min(share or 0.0, 1.0) * sizes[k]) / max(sum(sizes), 1)
                self._tell(f"converting {files.title(path)} ({k + 1} of {len(sizes)}): {n_rows:,} rows", done)
        if first is None:
            raise SoftmarginError("there are no rows in DATA: the files are empty, or hold comments only.")


def _summary(store: Store) -> dict[str, Any]:
    n_bytes = sum(file.stat().st_size for file in store.path.iterdir())
    return {
        "store": str(store.path),
        "rows": store.n_rows,
        "features": store.n_cols,
        "values": store.size,
        "type": str(store.dtype),
        "labels": "y" in store.target_names,
        "queries": "qid" in store.target_names,
        "bytes": n_bytes,
    }
