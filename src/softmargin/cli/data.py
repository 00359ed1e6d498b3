"""From the options about data to rows as the model counts its features; labels as they were in the file."""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from reprlib import repr as shown
from typing import Any, NamedTuple

import numpy as np

from softmargin.cli.files import readable, title
from softmargin.cli.output import note, showing
from softmargin.core.errors import DataFormatError, ModelFileError, SoftmarginError
from softmargin.core.threads import Workers
from softmargin.io.compression import opened
from softmargin.io.npy import map_npy, read_npz
from softmargin.io.record import Step
from softmargin.io.store import Store
from softmargin.io.svmlight import Failure, text_blocks
from softmargin.io.tables import QUERY_NAME, Table, load_table

COLUMN_FILES = (".parquet", *(f".{kind}{end}" for kind in ("csv", "tsv") for end in ("", ".gz", ".bz2", ".zst")))
# A line of svmlight text that holds a row, and one whose row has a query.
_ROW = re.compile(rb"^[ \t]*[^\s#].*", re.MULTILINE)
_QUERY = re.compile(rb"^[ \t]*[^\s#]+[ \t]+qid:", re.MULTILINE)
_PIECE_BYTES = 2**22
# How the error of the estimators begins when a label is no class. Here it is told in other words, with --task; and so
# are errors that begin with "Input", about values that are not finite.
_NO_CLASS = "Unknown label type: continuous. Row"


class Labelled(NamedTuple):
    """What there is to learn from, or to compare with."""

    X: Any
    y: Any
    qid: np.ndarray | None
    feature_names: tuple[str, ...] | None = None
    index_base: int | None = None
    store: Store | None = None
    weights: np.ndarray | None = None
    groups: np.ndarray | None = None  # rows that belong together, for cross-validation
    by: np.ndarray | None = None  # what `evaluate` tells apart
    transform: tuple[Step, ...] = ()  # what X has been scaled by

    @property
    def for_fit(self) -> tuple[tuple, dict[str, Any]]:
        """The arguments of `fit`. A store brings its own targets, and without its queries it is plain rows."""
        if self.store is None:
            more = {"qid": self.qid, "sample_weight": self.weights}
            return (self.X, self.y), {name: value for name, value in more.items() if value is not None}
        if self.qid is not None or self.store.qid is None:
            return (self.store,), {}
        weights = self.store.sample_weight
        return (self.store.on(Workers(1)), self.y), {} if weights is None else {"sample_weight": weights}

    @property
    def n_queries(self) -> int | None:
        return None if self.qid is None else len(np.unique(self.qid))

    def digest(self) -> str:
        """Identifies rows, labels and queries."""
        if self.store is not None:
            return hashlib.sha256(f"{self.store.digest} {self.qid is None}".encode()).hexdigest()
        digest = hashlib.sha256(repr(self.X.shape).encode())
        parts = [self.X.data, self.X.indices, self.X.indptr] if hasattr(self.X, "indptr") else [self.X]
        for part in (*parts, self.y, self.qid, self.weights):
            if part is not None:
                is_text = part.dtype.kind in "OU"
                digest.update(repr(part.tolist()).encode() if is_text else np.ascontiguousarray(part).data)
        return digest.hexdigest()


@dataclass(frozen=True)
class Trained:
    """What a model knows about its features: their number, perhaps their names, and how svmlight text counted them.

    `unseen` says what features mean that training did not see; if it is empty there must be none.
    """

    n_features: int
    feature_names: tuple[str, ...] | None = None
    index_base: int | None = None
    unseen: str = ""

    def __post_init__(self) -> None:
        if self.index_base not in (None, 0, 1):
            raise ModelFileError(f"features of svmlight text cannot begin at {self.index_base}.")

    @classmethod
    def of(cls, n_features: int, names: Any, index_base: int | None, unseen: str = "") -> "Trained":
        return cls(n_features, None if names is None else tuple(map(str, names)), index_base, unseen)


@dataclass(frozen=True)
class DataOptions:
    label: str | None = None
    index_base: str = "auto"
    n_features: int | None = None
    dtype: str = "float64"
    n_jobs: int = -1
    no_qid: bool = False
    weight: str | None = None  # a column, or a file with a number in each line
    group: str | None = None
    by: str | None = None
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None

    @property
    def extra(self) -> tuple[str, ...]:
        """Columns that are no features."""
        weight = None if self.weight is None or Path(self.weight).is_file() else self.weight
        return tuple(dict.fromkeys(name for name in (weight, self.group, self.by) if name is not None))

    @property
    def asked_by_name(self) -> dict[str, Any]:
        """Where columns are asked for by name: the options, with their values."""
        found = {
            "weight": self.weight,
            "group": self.group,
            "by": self.by,
            "drop": self.drop,
            "features": self.features,
        }
        return {name: value for name, value in found.items() if value}


def read(path: Path, options: DataOptions, model: Trained | None = None, *, with_queries: bool = False) -> Table:
    """The rows of a file; whole numbers as labels become integers, so that they are shown as in the file.

    With a model its features are put in its order, and what had to be assumed for that is told. With `with_queries` the
    table has the queries if the file has them and the options do not leave them out.
    """
    if path.is_dir():
        return _opened_store(path, options, model)
    with showing(f"reading {title(path)}"), readable(path) as file:
        table = _read(file, options, model, with_queries)
    if table.X.shape[0] == 0:
        raise DataFormatError("there are no rows: the file is empty, or holds comments only.", file=title(path))
    if model is not None:
        _tell(table, options, model, title(path))
        if table.index_base is not None and table.X.shape[1] < model.n_features:
            table.X.resize(table.X.shape[0], model.n_features)
    return replace(table, y=_as_in_file(table.y), qid=None if options.no_qid else table.qid)


def _opened_store(path: Path, options: DataOptions, model: Trained | None) -> Table:
    """A store in the place of a table. How its rows were read was decided when it was written."""
    for name, default in (("label", None), ("index_base", "auto"), ("n_features", None), ("dtype", "float64")):
        if getattr(options, name) != default:
            raise SoftmarginError(f"{path} is a store, for which {name} was decided when it was written: leave it out.")
    for name in options.asked_by_name:
        raise SoftmarginError(f"{path} is a store, whose rows are read as they are: leave --{name} out.")
    store = Store(path)
    if model is not None and model.feature_names is not None and store.feature_names is not None:
        for k, (own, name) in enumerate(zip(model.feature_names, store.feature_names, strict=False)):
            if own != name:
                raise SoftmarginError(f"column {k} of {path} is called {name!r}, but the model has {own!r} there.")
    queries = None if options.no_qid else store.qid
    return Table(store, store.y, queries, store.feature_names, index_base=store.index_base)


def _read(file: Path, options: DataOptions, model: Trained | None, with_queries: bool) -> Table:
    name = file.name.lower()
    label: Any = options.label
    if label is not None and name.endswith(".npy"):
        try:
            label = int(label)
        except ValueError:
            raise SoftmarginError(f"--label {label}: the columns of {file} have numbers, not names.") from None
    is_text = not name.endswith((*COLUMN_FILES, ".npy", ".npz"))
    n_features, feature_names = options.n_features, options.features
    if feature_names is not None and not name.endswith(COLUMN_FILES):
        raise SoftmarginError(f"--features names columns, and those of {title(file)} have no names.")
    zero_based = "auto" if options.index_base == "auto" else options.index_base == "0"
    if model is not None:
        n_features, feature_names = None if is_text else model.n_features, model.feature_names
        if options.index_base == "auto" and model.index_base is not None:
            zero_based = model.index_base == 0
        if name.endswith(".npy") and label is None and (n_columns := map_npy(file).shape[-1]) == model.n_features + 1:
            raise SoftmarginError(
                f"{file} has {n_columns} columns, one more than the model has features: say which one is the label, "
                "such as --label -1 for the last."
            )
    return load_table(
        file,
        label=label,
        dtype=options.dtype if is_text else None,
        n_features=n_features,
        zero_based=zero_based,
        n_jobs=options.n_jobs,
        query_id=with_queries and _has_queries(file, options, feature_names),
        feature_names=feature_names,
        drop=options.drop,
        extra=options.extra,
    )


def _tell(table: Table, options: DataOptions, model: Trained, name: str) -> None:
    """Say what had to be assumed so that the features of the file are those of the model; refuse what cannot be."""
    if table.left_out:
        note(f"{name}: columns that are no features of the model were left out: {shown(list(table.left_out))}.")
    if table.feature_names is not None and model.feature_names is None:
        note(f"{name}: the model does not know the names of its features; the columns are taken in their order.")
    elif table.feature_names is None and model.feature_names is not None:
        note(
            f"{name} has no names for its features; they are taken in the model's order: {shown(model.feature_names)}."
        )
    if table.index_base is None:
        return
    if options.index_base == "auto" and model.index_base is None and table.index_base == 0:
        note(f"{name}: index 0 occurs, so features are counted from 0. If they are not, say --index-base 1.")
    n_found = table.X.shape[1]
    if n_found <= model.n_features:
        return
    last = model.n_features - 1 + table.index_base
    if not model.unseen:
        raise DataFormatError(
            f"index {n_found - 1 + table.index_base} occurs, but the model was trained on features up to {last}. Is "
            "this another file, or does it count from another number (--index-base)?",
            file=name,
        )
    beyond = np.flatnonzero(table.X.indices >= model.n_features)
    n_rows = np.unique(np.searchsorted(table.X.indptr, beyond, "right")).size
    share = f"{n_rows:,} of {table.X.shape[0]:,} rows"
    note(f"{name}: features beyond {last}, which training never saw, occur in {share}: {model.unseen}.")


def read_labelled(
    path: Path,
    options: DataOptions,
    model: Trained | None = None,
    *,
    with_queries: bool = False,
    needs_labels: bool = True,
) -> Labelled:
    """Rows with labels; where these are not needed, y is None if there are none."""
    table = read(path, options, model, with_queries=with_queries)
    if table.y is None and needs_labels:
        raise SoftmarginError(f"{title(path)} has no labels: name their column with --label.")
    store = table.X if path.is_dir() else None
    weights = _weights(table, options, title(path))
    found = Labelled(table.X, table.y, table.qid, table.feature_names, table.index_base, store, weights)
    extra = {name: table.extra.get(getattr(options, name) or "") for name in ("group", "by")}
    return found._replace(groups=extra["group"], by=extra["by"])


def _weights(table: Table, options: DataOptions, name: str) -> np.ndarray | None:
    """The weights of the rows: a column of the table, or a file of its own."""
    if options.weight is None:
        return None
    if options.weight in options.extra:
        found, where = table.extra[options.weight], f"{name}: the column {options.weight!r}"
    else:
        where = options.weight
        try:
            found = np.loadtxt(where, dtype=np.float64, ndmin=1)
        except ValueError as error:
            raise DataFormatError(f"a file of weights has one number in each line: {error}", file=where) from None
    if found.dtype.kind not in "biuf" or found.shape != (table.X.shape[0],):
        raise SoftmarginError(f"{where} must hold a number for each of the {table.X.shape[0]} rows.")
    return found.astype(np.float64)


@contextmanager
def naming(path: Path, rows: Labelled) -> Iterator[None]:
    """What the checks of X and y find is told with the name of the file and the row, in one sentence."""
    try:
        yield
    except ValueError as error:
        message = str(error).splitlines()[0]
        if isinstance(error, SoftmarginError) and not message.startswith((_NO_CLASS, "Input ")):
            raise
        if message.startswith("Input X contains"):
            message = f"row {_first_bad_row(rows.X) + 1} has values that are not finite (nan or inf)."
        elif message.startswith(_NO_CLASS):
            fraction = rows.y[np.argmax(rows.y % 1 != 0)]
            other = "" if rows.index_base is not None else "name another column with --label, or "
            message = (
                f"the labels, such as {fraction}, are real numbers, not classes: {other}learn their order with "
                "--task rank."
            )
        elif message.startswith("Input y contains"):
            message = f"row {int(np.argmin(np.isfinite(rows.y))) + 1} has a label that is not finite (nan or inf)."
        raise DataFormatError(message, file=title(path)) from None


def _first_bad_row(X: Any) -> int:
    """The first row with a value that is no finite number, if there is one."""
    if hasattr(X, "indptr"):
        return int(np.searchsorted(X.indptr, np.argmin(np.isfinite(X.data)), "right")) - 1
    return int(np.argmin(np.isfinite(X).all(axis=1)))


def _as_in_file(y: np.ndarray | None) -> np.ndarray | None:
    if y is None or y.dtype.kind != "f" or not np.all(np.abs(y) < 2**53) or not np.all(y == np.rint(y)):
        return y
    return y.astype(np.int64)


def _has_queries(path: Path, options: DataOptions, feature_names: tuple[str, ...] | None) -> bool:
    """Whether queries are to be read, if only to keep their column apart from the features."""
    name = path.name.lower()
    if name.endswith(COLUMN_FILES):
        table = load_table(
            path,
            label=options.label,
            n_jobs=options.n_jobs,
            feature_names=feature_names,
            drop=options.drop,
            extra=options.extra,
        )
        return QUERY_NAME in (*(table.feature_names or ()), *table.left_out)
    if options.no_qid or name.endswith(".npy"):
        return False
    if name.endswith(".npz"):
        return QUERY_NAME in read_npz(path, {QUERY_NAME})
    return _text_has_queries(path) if path.is_file() else True  # a pipe can be read only once


def _text_has_queries(path: Path) -> bool:
    """Whether the first row has a query; the reader then wants one in all others. If it has none, no other may."""
    first = None
    with opened(path) as (read_bytes, name):
        for rows in text_blocks(read_bytes, _PIECE_BYTES):
            if isinstance(rows, Failure):
                raise DataFormatError(rows.message, file=name)
            first = first or _ROW.search(rows)
            if first is not None and _QUERY.match(first[0]):
                return True
            if b"qid:" in rows and _QUERY.search(rows):
                raise DataFormatError(
                    "some rows have a qid and others have none, the first one among them. Give each row one, or rank "
                    "all rows together with --no-qid.",
                    file=name,
                )
    return False
