"""The folder of a store: what lies where, and a manifest that is not believed before it is checked.

    manifest.json       what follows, and a checksum (CRC-32) of every other file; it is written last
    chunk-000000.bin    rows: the values, and for sparse rows the column indices and where each row begins
    y.bin               float64, a number for each row; for text the number of the label in the manifest
    sample_weight.bin   float64
    qid.bin             int64

Numbers are little-endian. The arrays of a chunk begin at multiples of 64 bytes. The names of the files follow from
their numbers, so that a manifest cannot name files elsewhere. Nothing in a store is code.
"""

import json
import os
import stat
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from softmargin.core.errors import DataFormatError

FORMAT, VERSION = "softmargin store", 1
MANIFEST = "manifest.json"
VALUE_TYPES = {"uint8": "|u1", "float32": "<f4", "float64": "<f8"}
INDEX_TYPES = {"int32": "<i4", "int64": "<i8"}
TARGET_TYPES = {"y": "<f8", "sample_weight": "<f8", "qid": "<i8"}
# What the labels were before they became float64.
LABEL_KINDS = ("float64", "int64", "bool", "text")
MAX_MANIFEST_BYTES = 1 << 28
MAX_COUNT = 1 << 48
LARGEST_INTEGER = 2**53  # float64 holds all integers up to here
_ALIGNMENT = 64


class ChunkRecord(NamedTuple):
    """What the manifest says of a chunk: rows, stored values, checksum."""

    n_rows: int
    n_values: int
    crc: int


class Part(NamedTuple):
    """An array in the file of a chunk."""

    dtype: np.dtype
    size: int
    offset: int


@dataclass(frozen=True)
class Manifest:
    """What a store holds. `index_type` is None for dense rows, `columns` for columns without names.

    `targets` has the checksum of each file beside the chunks. `label_kind` says what the numbers in y stand for, and
    `labels` what text. `index_base` is the number of the first feature in the svmlight text that the rows come from.
    """

    n_cols: int
    value_type: str
    index_type: str | None
    targets: dict[str, int]
    label_kind: str
    labels: tuple[str, ...]
    columns: tuple[str, ...] | None
    index_base: int | None
    chunks: tuple[ChunkRecord, ...]

    @property
    def n_rows(self) -> int:
        return sum(chunk.n_rows for chunk in self.chunks)

    def parts(self, chunk: ChunkRecord) -> tuple[list[Part], int]:
        """Where the arrays of a chunk are, and the size of its file: values, and of sparse rows indices and starts."""
        arrays = [(VALUE_TYPES[self.value_type], chunk.n_values)]
        if self.index_type is not None:
            arrays += [(INDEX_TYPES[self.index_type], size) for size in (chunk.n_values, chunk.n_rows + 1)]
        found, end = [], 0
        for kind, size in arrays:
            offset = end + -end % _ALIGNMENT
            dtype = np.dtype(kind)
            found.append(Part(dtype, size, offset))
            end = offset + size * dtype.itemsize
        return found, end

    def to_json(self) -> bytes:
        return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, ensure_ascii=False).encode()


def chunk_name(k: int) -> str:
    return f"chunk-{k:06d}.bin"


def target_name(target: str) -> str:
    return f"{target}.bin"


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a store, checked for itself and against the sizes of the files. Nothing else is read."""
    path = folder / MANIFEST
    if not folder.is_dir():
        if folder.exists():
            raise DataFormatError("this is a file, but a store is a folder.", file=str(folder))
        raise DataFormatError("there is no such store.", file=str(folder))
    try:
        if path.stat().st_size > MAX_MANIFEST_BYTES:
            raise DataFormatError(f"the manifest has more than {MAX_MANIFEST_BYTES} bytes.", file=str(path))
        text = path.read_bytes()
    except FileNotFoundError:
        raise DataFormatError(
            f"the folder has no {MANIFEST}: it is no store, or one whose writing was stopped. Write it again.",
            file=str(folder),
        ) from None
    manifest = _parsed(text, str(path))
    for k, chunk in enumerate(manifest.chunks):
        _check_size(folder / chunk_name(k), manifest.parts(chunk)[1])
    for target in manifest.targets:
        _check_size(folder / target_name(target), 8 * manifest.n_rows)
    return manifest


def check_crc(data: Any, crc: int, path: Path) -> None:
    if zlib.crc32(data) != crc:
        raise DataFormatError(
            "the checksum is not the one in the manifest: the file is damaged, or belongs to another place or store. "
            "Write the store again.",
            file=str(path),
        )


def _parsed(text: bytes, name: str) -> Manifest:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise DataFormatError("the manifest is not JSON: it is damaged.", file=name) from None
    if not isinstance(found, dict) or found.pop("format", None) != FORMAT:
        raise DataFormatError("this is not the manifest of a store.", file=name)
    version = found.pop("version", None)
    if version != VERSION:
        raise DataFormatError(
            f"the store has version {str(version)[:20]}, but this program reads version {VERSION}: write the store "
            "again, or use another version of softmargin.",
            file=name,
        )
    problem = _problem(found)
    if problem:
        raise DataFormatError(f"the manifest is damaged: {problem}.", file=name)
    entries: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
    return Manifest(**entries | {"chunks": tuple(ChunkRecord(*chunk) for chunk in found["chunks"])})


def _problem(found: dict[str, Any]) -> str:
    """What is wrong with the entries of a manifest; empty if nothing is."""
    names = set(Manifest.__dataclass_fields__)
    if set(found) != names:
        return f"it has other entries than {', '.join(sorted(names))}"
    n_cols, chunks, targets, columns = (found[name] for name in ("n_cols", "chunks", "targets", "columns"))
    labels, is_dense = found["labels"], found["index_type"] is None
    good = {
        "n_cols": _is_count(n_cols) and 0 < n_cols < 2**63,
        "value_type": _is_one_of(found["value_type"], VALUE_TYPES),
        "index_type": is_dense or _is_one_of(found["index_type"], INDEX_TYPES),
        "targets": isinstance(targets, dict) and all(name in TARGET_TYPES for name in targets),
        "label_kind": _is_one_of(found["label_kind"], LABEL_KINDS),
        "labels": _is_text_list(labels),
        "columns": columns is None or (_is_text_list(columns) and len(columns) == n_cols),
        "index_base": found["index_base"] in (None, 0, 1) and not isinstance(found["index_base"], bool | float),
        "chunks": isinstance(chunks, list)
        and len(chunks) > 0
        and all(isinstance(chunk, list) and len(chunk) == 3 and all(map(_is_count, chunk)) for chunk in chunks),
    }
    for name, is_good in good.items():
        if not is_good:
            return f"{name} cannot be what it says"
    if not all(_is_count(crc) for crc in targets.values()):
        return "targets cannot be what it says"
    for k, (n_rows, n_values, _) in enumerate(chunks):
        if n_rows == 0 or (is_dense and n_values != n_rows * n_cols):
            return f"chunk {k} has {n_rows} rows and {n_values} values of {n_cols} columns"
    return ""


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT


def _is_one_of(value: Any, names: Any) -> bool:
    return isinstance(value, str) and value in names


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _check_size(path: Path, needed: int) -> None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise DataFormatError("the file is missing: the store is not complete.", file=str(path)) from None
    if not stat.S_ISREG(found.st_mode):
        raise DataFormatError("this is not a regular file.", file=str(path))
    if found.st_size != needed:
        raise DataFormatError(
            f"the file has {found.st_size} bytes, but the manifest says {needed}: it was cut off, or belongs to "
            "another place or store.",
            file=str(path),
        )
