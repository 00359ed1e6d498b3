"""Writing a store: batches in, chunks out, and a manifest at the end.

Everything is written to a folder beside the one that is wanted, NAME.unfinished, which is renamed at the end. So there
is never a store with a part missing under its own name. If something goes wrong, the unfinished folder is removed; a
program that was killed leaves it behind, and the next writing refuses to touch it, because another program may be
writing there.
"""

import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from softmargin.core.display import display_for
from softmargin.core.errors import SoftmarginError
from softmargin.core.progress import REFRESH_SECONDS
from softmargin.data.convert import as_rows
from softmargin.io.store_format import (
    INDEX_TYPES,
    LARGEST_INTEGER,
    MANIFEST,
    TARGET_TYPES,
    VALUE_TYPES,
    ChunkRecord,
    Manifest,
    chunk_name,
    target_name,
)

CHUNK_BYTES = 1 << 26
UNFINISHED, REPLACED = ".unfinished", ".replaced"
_INT32_COLUMNS = 2**31 - 1
_MAX_CHUNK_BYTES = 1 << 32  # so that int32 counts the values of a chunk


def write_store(
    path: Path,
    batches: Iterable[Any],
    *,
    dtype: Any = None,
    n_features: int | str | None = None,
    feature_names: Iterable[str] | None = None,
    index_base: int | None = None,
    chunk_bytes: int | None = None,
    overwrite: bool = False,
    whole_labels: bool = False,
    verbose: int = 0,
) -> None:
    """See `Store.write`. With `whole_labels`, labels that are all whole numbers become integers, as in text files."""
    with _replacing(path, overwrite) as draft:
        writer = _Writer(
            draft,
            None if dtype is None else _checked_type(dtype),
            _checked_width(n_features),
            CHUNK_BYTES if chunk_bytes is None else _checked_chunk(chunk_bytes),
        )
        writer.are_labels_whole = whole_labels
        try:
            with _showing(path, verbose) as tell:
                for k, batch in enumerate(batches):
                    writer.add(k, batch)
                    tell(writer.n_rows)
            writer.close(None if feature_names is None else tuple(map(str, feature_names)), index_base)
        finally:
            writer.let_go()


@contextmanager
def _showing(path: Path, verbose: int) -> Iterator[Callable[[int], None]]:
    """Takes the number of rows that are written, and shows it in a terminal or a notebook, a few times a second."""
    display = display_for(None) if verbose else None
    if display is None:
        yield lambda n_rows: None
        return
    shown_at = 0.0

    def tell(n_rows: int) -> None:
        nonlocal shown_at
        if time.monotonic() - shown_at > REFRESH_SECONDS:
            display.show(None, f"writing {path}: {n_rows:,} rows")
            shown_at = time.monotonic()

    try:
        yield tell
    finally:
        display.close([], keep=False)


@contextmanager
def _replacing(path: Path, overwrite: bool) -> Iterator[Path]:
    """A new folder that becomes `path` if the block ends well, and vanishes otherwise."""
    path = Path(os.path.realpath(path))
    if path.exists() and not overwrite:
        raise SoftmarginError(f"{path} is there already: name another folder, or replace it with overwrite=True.")
    if path.exists() and not (path.is_dir() and ((path / MANIFEST).is_file() or not any(path.iterdir()))):
        raise SoftmarginError(f"{path} is there already and is no store, so it is not replaced: name another folder.")
    if not path.parent.is_dir():
        raise SoftmarginError(f"{path.parent} is not a folder: {path.name} could not be written there. Make it first.")
    if (old := path.with_name(path.name + REPLACED)).exists():
        raise SoftmarginError(
            f"{old} is there already: it is a store that was being replaced when the program was stopped. Rename it to "
            f"{path.name} if that is missing, or delete it, and begin again."
        )
    draft = path.with_name(path.name + UNFINISHED)
    try:
        draft.mkdir()
    except FileExistsError:
        raise SoftmarginError(
            f"{draft} is there already: another program is writing this store, or one was stopped before the end. If "
            "nobody is writing, delete that folder and begin again."
        ) from None
    try:
        yield draft
        _rename(draft, path)
    except BaseException:
        _remove(draft)
        raise


def _rename(draft: Path, path: Path) -> None:
    """An old store is moved away first, and back if that goes wrong: a folder cannot take the place of another."""
    if not path.exists():
        draft.rename(path)
        return
    old = path.with_name(path.name + REPLACED)
    path.rename(old)
    try:
        draft.rename(path)
    except BaseException:
        old.rename(path)
        raise
    _remove(old)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


class _File:
    """A file of which the checksum is known. Errors, such as that of a full disk, name it."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = open(path, "xb")  # noqa: SIM115  closed by `close`
        self._path = path
        self.crc = 0
        self.size = 0

    def write(self, part: Any) -> None:
        view = memoryview(part).cast("B") if len(part) else b""
        with self._naming():
            self._file.write(view)
        self.crc = zlib.crc32(view, self.crc)
        self.size += len(view)

    def close(self) -> None:
        with self._naming():
            self._file.close()

    @contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            message = f"{error.strerror}. The store was not written, and nothing of it is left"
            raise OSError(error.errno, message, str(self._path)) from None


@dataclass(frozen=True)
class _Piece:
    """Some rows as they are written: values, and for sparse rows indices and the number of values in each row."""

    values: np.ndarray
    indices: np.ndarray
    lengths: np.ndarray
    n_rows: int
    qid: np.ndarray | None

    def cut(self, row: int) -> tuple["_Piece", "_Piece"]:
        at = int(self.lengths[:row].sum()) if self.lengths.size else row * (self.values.size // self.n_rows)
        return tuple(  # type: ignore[return-value]
            _Piece(
                self.values[entries],
                self.indices[entries],
                self.lengths[rows],
                (rows.stop or self.n_rows) - (rows.start or 0),
                None if self.qid is None else self.qid[rows],
            )
            for entries, rows in ((slice(None, at), slice(None, row)), (slice(at, None), slice(row, None)))
        )


class _Writer:
    """Collects rows until they fill a chunk. What a batch brings is copied, so that its memory may be used again."""

    def __init__(self, folder: Path, dtype: str | None, n_features: int | str | None, chunk_bytes: int) -> None:
        self._folder = folder
        self._value_type, self._index_type = dtype or "", ""  # "": not known yet
        self._is_type_given = dtype is not None
        self._n_features, self._n_cols = n_features, 0
        self._chunk_bytes = chunk_bytes
        self._pieces: list[_Piece] = []
        self._n_bytes = 0
        self._chunks: list[ChunkRecord] = []
        self._targets: dict[str, _File] = {}
        self._label_kind = ""
        self._codes: dict[str, int] = {}
        self.are_labels_whole = False
        self.n_rows = 0

    def add(self, k: int, batch: Any) -> None:
        """Rows of batch k, which errors name."""
        X, *given = batch if isinstance(batch, tuple) else (batch,)
        if len(given) > len(TARGET_TYPES):
            raise SoftmarginError(f"batch {k} has {len(given) + 1} parts: X, y, sample_weight and qid are known.")
        targets = {name: part for name, part in zip(TARGET_TYPES, given, strict=False) if part is not None}
        try:
            rows = as_rows(X)
        except (TypeError, ValueError) as error:
            raise SoftmarginError(f"batch {k}: {error}") from None
        if rows.n_rows == 0:
            return
        if self.n_rows == 0:
            self._begin(rows, targets)
        flat = rows.flat
        self._check_kind(k, rows, targets)
        lengths = np.diff(flat.indptr) if flat.indptr.size else np.empty(0, dtype=np.int64)
        if flat.fortran:
            values = np.ascontiguousarray(rows.native()).ravel()
        else:
            values = flat.values
        values = self._as_stored(values, k)
        self._check_finite(k, values, rows)
        columns = {name: self._column(name, part, rows.n_rows, k) for name, part in targets.items()}
        for name, column in columns.items():
            self._targets[name].write(column)
        self.n_rows += rows.n_rows
        indices = flat.indices.astype(INDEX_TYPES[self._index_type]) if lengths.size else flat.indices
        self._collect(_Piece(values, indices, lengths, rows.n_rows, columns.get("qid")))

    def close(self, feature_names: tuple[str, ...] | None, index_base: int | None) -> None:
        """The last chunk, and what makes the folder a store."""
        if self.n_rows == 0:
            raise SoftmarginError("there are no rows to write: the batches are empty, or there are none.")
        if feature_names is not None and len(feature_names) != self._n_cols:
            raise SoftmarginError(f"there are {len(feature_names)} feature_names for {self._n_cols} columns.")
        if self._pieces:
            self._write_chunk(sum(piece.n_rows for piece in self._pieces))
        for file in self._targets.values():
            file.close()
        manifest = Manifest(
            self._n_cols,
            self._value_type,
            self._index_type or None,
            {name: file.crc for name, file in self._targets.items()},
            "int64" if self.are_labels_whole and self._label_kind == "float64" else self._label_kind or "float64",
            tuple(self._codes),
            feature_names,
            index_base,
            tuple(self._chunks),
        )
        file = _File(self._folder / MANIFEST)
        file.write(manifest.to_json())
        file.close()

    def let_go(self) -> None:
        """Close what is open, if something went wrong."""
        for file in self._targets.values():
            with suppress(OSError):
                file.close()

    # --- checks -----------------------------------------------------------------------------------------------------

    def _begin(self, rows: Any, targets: dict[str, Any]) -> None:
        """What the first rows decide for all of them."""
        if not self._is_type_given:
            self._value_type = _smallest_type(rows.flat.values.dtype)
        wanted = self._n_features
        self._n_cols = wanted if isinstance(wanted, int) else rows.n_cols
        if rows.flat.indptr.size:
            self._index_type = "int64" if self._n_cols > _INT32_COLUMNS else "int32"
        self._targets = {name: _File(self._folder / target_name(name)) for name in targets}

    def _check_kind(self, k: int, rows: Any, targets: dict[str, Any]) -> None:
        """Whether the rows are of the same kind as those before."""
        is_sparse = rows.flat.indptr.size > 0
        if is_sparse != bool(self._index_type):
            kinds = ("dense", "sparse")
            raise SoftmarginError(
                f"batch {k} is {kinds[is_sparse]}, but those before are {kinds[not is_sparse]}: give all batches in "
                "the same form."
            )
        if self._n_features == "max" and is_sparse:
            self._n_cols = max(self._n_cols, rows.n_cols)
            if self._n_cols > _INT32_COLUMNS and self._index_type == "int32":
                raise SoftmarginError(f"batch {k} has {rows.n_cols} columns: give n_features beforehand.")
        elif rows.n_cols != self._n_cols:
            raise SoftmarginError(f"batch {k} has {rows.n_cols} columns, but the store has {self._n_cols}.")
        if self._n_cols == 0:
            raise SoftmarginError(f"batch {k} has no columns.")
        if set(targets) != set(self._targets):
            changed = sorted(set(targets) ^ set(self._targets))
            raise SoftmarginError(f"some batches have {' and '.join(changed)} and others have not: see batch {k}.")

    def _as_stored(self, values: np.ndarray, k: int) -> np.ndarray:
        """A copy of the values in the type of the store, which must be able to hold them."""
        dtype = np.dtype(VALUE_TYPES[self._value_type])
        if not self._is_type_given and not np.can_cast(values.dtype, dtype) and dtype != np.float64:
            raise SoftmarginError(
                f"batch {k} has values of type {values.dtype}, but the first rows made the store one of {dtype}: give "
                "dtype='float32' or dtype='float64'."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            found = values.astype(dtype)
        if dtype.kind == "u" and not np.array_equal(found, values):
            raise SoftmarginError(
                f"batch {k} has values that are not whole numbers from 0 to 255, which is all that the type uint8 of "
                "the store holds: give dtype='float32' or dtype='float64'."
            )
        return found

    def _check_finite(self, k: int, values: np.ndarray, rows: Any) -> None:
        if values.dtype.kind != "f" or np.isfinite(values).all():
            return
        place = int(np.argmin(np.isfinite(values)))
        flat = rows.flat
        row = int(np.searchsorted(flat.indptr, place, "right")) - 1 if flat.indptr.size else place // rows.n_cols
        raise SoftmarginError(
            f"batch {k}, row {row} (row {self.n_rows + row} of the store) holds {values[place]}, or a number too "
            f"large for {self._value_type}: every value must be finite."
        )

    def _column(self, name: str, part: Any, n_rows: int, k: int) -> np.ndarray:
        """y, sample_weight or qid of a batch as they are written."""
        column = np.asarray(part)
        if column.shape != (n_rows,):
            raise SoftmarginError(f"batch {k}: {name} has shape {column.shape}, but there are {n_rows} rows.")
        if name == "y":
            return self._labels(column, k)
        if name == "qid":
            if column.dtype.kind not in "iu":
                raise SoftmarginError(f"batch {k}: qid holds {column.dtype}: number the queries with integers.")
            return column.astype(TARGET_TYPES[name])
        try:
            weights = column.astype(TARGET_TYPES[name])
        except (TypeError, ValueError):
            weights = np.full(n_rows, np.nan)
        if not (np.isfinite(weights) & (weights >= 0.0)).all():
            row = int(np.argmin(np.isfinite(weights) & (weights >= 0.0)))
            raise SoftmarginError(
                f"batch {k}, row {row}: the weight {column[row]!r} is not a finite number of at least 0."
            )
        return weights

    def _labels(self, column: np.ndarray, k: int) -> np.ndarray:
        kind = {"b": "bool", "i": "int64", "u": "int64", "f": "float64"}.get(column.dtype.kind, "text")
        if self._label_kind and (kind == "text") != (self._label_kind == "text"):
            raise SoftmarginError(f"batch {k}: y holds {kind}, but before it held {self._label_kind}.")
        if kind == "text":
            self._label_kind = kind
            return self._text_codes(column, k)
        self._label_kind = kind if self._label_kind in ("", kind) else "float64"
        labels = column.astype(np.float64)
        is_good = np.isfinite(labels)
        if kind == "int64":
            is_good &= np.abs(labels) <= LARGEST_INTEGER
        if not is_good.all():
            row = int(np.argmin(is_good))
            raise SoftmarginError(
                f"batch {k}, row {row} (row {self.n_rows + row} of the store) has the label {column[row]}: labels are "
                "text or finite numbers, and integers at most 2^53."
            )
        self.are_labels_whole &= bool(((labels == np.rint(labels)) & (np.abs(labels) < LARGEST_INTEGER)).all())
        return labels

    def _text_codes(self, column: np.ndarray, k: int) -> np.ndarray:
        words = column.tolist()
        if not all(isinstance(word, str) for word in words):
            odd = next(word for word in words if not isinstance(word, str))
            raise SoftmarginError(f"batch {k}: y holds {odd!r} among text: labels are all text or all numbers.")
        codes = self._codes
        return np.array([codes.setdefault(word, len(codes)) for word in words], dtype=np.float64)

    # --- chunks -----------------------------------------------------------------------------------------------------

    def _collect(self, piece: _Piece) -> None:
        """Fill chunks with the rows, and keep those that do not fill one."""
        while True:
            n_fit = self._n_fitting(piece)
            if n_fit == piece.n_rows:
                self._keep(piece)
                return
            if n_fit > 0:
                head, piece = piece.cut(n_fit)
                self._keep(head)
            self._write_chunk(self._last_boundary(None if piece.qid is None else piece.qid[0]))

    def _n_fitting(self, piece: _Piece) -> int:
        """How many rows of the piece still fit into the chunk; one at least if it is empty."""
        room = self._chunk_bytes - self._n_bytes
        width = piece.values.itemsize + (piece.indices.itemsize if piece.lengths.size else 0)
        if piece.lengths.size:
            ends = np.cumsum(width * piece.lengths.astype(np.int64) + piece.indices.itemsize)
            n_fit = int(np.searchsorted(ends, room, side="right"))
        else:
            n_fit = min(piece.n_rows, room // (width * (piece.values.size // piece.n_rows)))
        return max(n_fit, 0 if self._pieces else 1)

    def _keep(self, piece: _Piece) -> None:
        self._pieces.append(piece)
        self._n_bytes += _n_bytes(piece)

    def _last_boundary(self, next_query: Any) -> int:
        """The rows of the chunk up to the end of its last whole query; all of them if they are one query."""
        n_rows = sum(piece.n_rows for piece in self._pieces)
        if next_query is None:
            return n_rows
        queries = np.concatenate([piece.qid for piece in self._pieces if piece.qid is not None] + [[next_query]])
        changes = np.flatnonzero(queries[1:] != queries[:-1])
        return int(changes[-1]) + 1 if changes.size else n_rows

    def _write_chunk(self, n_rows: int) -> None:
        """The first n_rows rows that were kept become a chunk; the others are kept on."""
        taken: list[_Piece] = []
        rest = self._pieces
        while n_rows:
            first, *rest = rest
            if first.n_rows > n_rows:
                first, left = first.cut(n_rows)
                rest = [left, *rest]
            taken.append(first)
            n_rows -= first.n_rows
        self._pieces, self._n_bytes = rest, sum(map(_n_bytes, rest))

        record = ChunkRecord(sum(piece.n_rows for piece in taken), sum(piece.values.size for piece in taken), 0)
        layout = Manifest(self._n_cols, self._value_type, self._index_type or None, {}, "", (), None, None, ())
        parts, _ = layout.parts(record)
        arrays: list[list[np.ndarray]] = [[piece.values for piece in taken]]
        if self._index_type:
            starts = np.append(0, np.cumsum(np.concatenate([piece.lengths for piece in taken]), dtype=np.int64))
            arrays += [[piece.indices for piece in taken], [starts.astype(INDEX_TYPES[self._index_type])]]
        file = _File(self._folder / chunk_name(len(self._chunks)))
        try:
            for part, pieces in zip(parts, arrays, strict=True):
                file.write(bytes(part.offset - file.size))
                for array in pieces:
                    file.write(array)
        finally:
            file.close()
        self._chunks.append(record._replace(crc=file.crc))


def _n_bytes(piece: _Piece) -> int:
    n_bytes = piece.values.nbytes
    return (
        n_bytes + piece.indices.nbytes + piece.lengths.size * piece.indices.itemsize if piece.lengths.size else n_bytes
    )


def _smallest_type(dtype: np.dtype) -> str:
    return next(name for name in VALUE_TYPES if np.can_cast(dtype, name) or name == "float64")


def _checked_type(dtype: Any) -> str:
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    if name not in VALUE_TYPES:
        raise SoftmarginError(f"dtype={dtype!r} is not possible: choose one of {', '.join(VALUE_TYPES)}.")
    return name


def _checked_width(n_features: Any) -> int | str | None:
    if n_features is None or n_features == "max":
        return n_features
    if isinstance(n_features, bool) or not hasattr(n_features, "__index__") or not 1 <= n_features < 2**48:
        raise SoftmarginError(f"n_features={n_features!r} must be a positive integer, 'max' or None.")
    return int(n_features)


def _checked_chunk(chunk_bytes: Any) -> int:
    try:
        found = int(chunk_bytes)
    except (TypeError, ValueError):
        found = 0
    if not 1 <= found <= _MAX_CHUNK_BYTES:
        raise SoftmarginError(f"chunk_bytes={chunk_bytes!r} must be a number from 1 to {_MAX_CHUNK_BYTES}.")
    return found
