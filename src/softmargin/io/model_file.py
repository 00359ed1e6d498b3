"""Model files: one safetensors file, with JSON in its metadata. `docs/model-file.md` is the format in full.

Reading runs no code and believes nothing: the header is compared with the size of the file and with what a model of
its kind stores before any array is allocated. It needs NumPy only, so that a prediction starts at once.
"""

import json
import math
import os
import re
import stat
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from reprlib import repr as shown
from typing import Any, BinaryIO

import numpy as np

from softmargin.core.errors import ModelFileError, SoftmarginError
from softmargin.io import liblinear, libsvm
from softmargin.io.atomic import replacing
from softmargin.io.record import (
    CODES,
    DTYPES,
    Described,
    ModelRecord,
    Named,
    check_kind,
    check_layout,
    check_numbers,
    check_values,
)
from softmargin.io.surroundings import (
    check_calibration,
    check_surroundings,
    check_transform,
    pack_surroundings,
    surrounding_arrays,
    unpack_surroundings,
)

FORMAT = "softmargin"
SURROUNDINGS = {"transform": check_transform, "calibration": check_calibration}  # values of every kind of model
FORMAT_VERSION = 1
MAX_HEADER_BYTES = 1 << 23
MAX_DEPTH = 32
MAX_DIMENSIONS = 3
ALIGNMENT = 8
TEXT_HEAD_BYTES = 16  # enough to tell text formats by their first word

METADATA_KEYS = {"format", "format_version", "crc32", "model"}
MODEL_KEYS = {"estimator": str, "params": dict, "values": dict, "text": dict, "versions": dict}
# A string that is not closed ends with the text: every quote then begins one match, and the time is linear.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


def read_model(path: Any) -> ModelRecord:
    """The model in a softmargin file or in LIBLINEAR's or LIBSVM's text, as data; which of them, the content tells."""
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        try:
            if not stat.S_ISREG(status.st_mode):
                raise ModelFileError(
                    "a pipe or a device has no size, and may be endless: write the model to a file first"
                )
            head = file.read(TEXT_HEAD_BYTES)
            for text in (liblinear, libsvm):
                if head.startswith(text.SIGNATURE):
                    return text.parse(head + file.read())
            file.seek(0)
            return _read(file, status.st_size)
        except ModelFileError as error:
            raise ModelFileError(f"{os.fsdecode(path)}: {error}.") from None


def write_model(path: Any, record: ModelRecord) -> None:
    """Write a softmargin file; the same record gives the same bytes."""
    values, arrays = pack_surroundings(record)
    tensors, text = {}, {}
    for name, array in arrays.items():
        tensors[name] = _as_tensor(name, array)
        if array.dtype.kind in "UO":
            text[name] = "object" if array.dtype.kind == "O" else "str"
    _check(record.kind, values, {n: _as_described(n, CODES[t.dtype], t.shape, text) for n, t in tensors.items()})
    check_numbers(record.arrays)
    check_surroundings(record.transform, record.calibration)
    model = {
        "estimator": record.kind,
        "params": {name: to_json(value, name) for name, value in record.params.items()},
        "values": {name: to_json(value, name) for name, value in values.items()},
        "text": text,
        "versions": record.versions,
    }
    model_text = json.dumps(model, allow_nan=False)
    # Large items first: every array then begins at a multiple of its item size.
    order = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    header: dict[str, Any] = {
        "__metadata__": {
            "format": FORMAT,
            "format_version": str(FORMAT_VERSION),
            "crc32": _checksum(model_text.encode(), tensors),
            "model": model_text,
        }
    }
    end = 0
    for name in order:
        begin, end = end, end + tensors[name].nbytes
        shape = list(tensors[name].shape)
        header[name] = {"dtype": CODES[tensors[name].dtype], "shape": shape, "data_offsets": [begin, end]}
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % ALIGNMENT)
    if len(raw) > MAX_HEADER_BYTES:
        raise SoftmarginError(
            f"the parameters and values of this model need {len(raw)} bytes as JSON; a model file holds at most "
            f"{MAX_HEADER_BYTES}."
        )
    with replacing(path) as file:
        file.write(len(raw).to_bytes(8, "little") + raw)
        for name in order:
            file.write(tensors[name].data)


# --- values as JSON -----------------------------------------------------------------------------------------------


def to_json(value: Any, name: str) -> Any:
    """A value as JSON can hold it; `name` is for the error."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, list):
        return [to_json(part, name) for part in value]
    if isinstance(value, Named):
        return {"$object": value.name, "fields": {key: to_json(part, name) for key, part in value.fields.items()}}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: to_json(part, name) for key, part in value.items()}
        return {"$mapping": [[to_json(key, name), to_json(part, name)] for key, part in value.items()]}
    raise SoftmarginError(
        f"{name}={value!r} cannot be saved: a model file holds None, bool, numbers, strings, lists and dictionaries of "
        f"these, and softmargin's own solvers. Change it with set_params({name}=...) first."
    )


def from_json(value: Any) -> Any:
    """The inverse of `to_json`."""
    if isinstance(value, list):
        return [from_json(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ModelFileError("a number is too large for double precision")
    if not isinstance(value, dict):
        return value
    if not any(key.startswith("$") for key in value):
        return {key: from_json(part) for key, part in value.items()}
    match value:
        case {"$float": "nan" | "inf" | "-inf" as number, **rest} if not rest:
            return float(number)
        case {"$object": str(name), "fields": dict(fields), **rest} if not rest:
            return Named(name, {key: from_json(part) for key, part in fields.items()})
        case {"$mapping": list(pairs), **rest} if not rest:
            return _mapping(pairs)
    raise ModelFileError(f"the value with the keys {shown(sorted(value))} is of no known form")


def _mapping(pairs: list) -> dict:
    result: dict = {}
    for pair in pairs:
        match pair:
            case [None | bool() | int() | float() | str() | {"$float": _} as key, part]:
                plain = from_json(key)
                if plain in result:
                    raise ModelFileError(f"the key {shown(plain)} occurs twice")
                result[plain] = from_json(part)
            case _:
                raise ModelFileError("a mapping holds something else than pairs of a simple key and a value")
    return result


# --- arrays as tensors --------------------------------------------------------------------------------------------


def _as_tensor(name: str, array: np.ndarray) -> np.ndarray:
    """Contiguous, in little-endian order; strings as rows of code points."""
    if array.dtype.kind in "UO":
        only_strings = all(isinstance(item, str) for item in array.flat)
        text = array.astype("<U") if only_strings else array
        if not only_strings or (text.astype(object) != array).any():
            raise SoftmarginError(
                f"{name} holds objects that are not strings, or strings that end in a NUL character, and cannot be "
                "saved: use strings, integers, floats or bool as labels."
            )
        array = np.ascontiguousarray(text)[..., None].view("<u4")
    dtype = array.dtype.newbyteorder("<")
    if dtype not in CODES:
        raise SoftmarginError(f"{name} has type {array.dtype}, which a model file cannot hold: use float64 or int64.")
    return np.ascontiguousarray(array, dtype=dtype)


def _checksum(model: bytes, tensors: Mapping[str, np.ndarray]) -> str:
    """CRC-32 of the model's JSON and then of the arrays in the order of their names."""
    crc = zlib.crc32(model)
    for name in sorted(tensors):
        crc = zlib.crc32(tensors[name].data, crc)
    return f"{crc:08x}"


def _as_described(name: str, code: str, shape: tuple[int, ...], text: Mapping[str, str]) -> tuple[str, tuple[int, ...]]:
    """(type, shape) as `check_layout` knows them: the code points of a string are not an axis."""
    if name not in text:
        return code, shape
    if code != "U32" or len(shape) < 1 or shape[-1] < 1:
        raise ModelFileError(f"the array {shown(name)} does not hold text")
    return "text", shape[:-1]


def _as_text(name: str, codes: np.ndarray, kind: str) -> np.ndarray:
    if codes.max(initial=0) > sys.maxunicode:
        raise ModelFileError(f"the array {name!r} holds code points beyond Unicode")
    strings = codes.view(f"<U{codes.shape[-1]}")[..., 0]
    return strings.astype(object) if kind == "object" else strings


# --- reading ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tensor:
    """Where an array stands in the file, as its header claims."""

    name: str
    code: str
    shape: tuple[int, ...]
    begin: int
    end: int


def _read(file: BinaryIO, size: int) -> ModelRecord:
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or not 2 <= length <= min(size - 8, MAX_HEADER_BYTES):
        raise ModelFileError(
            "this is no model file, or only a part of one: its first bytes do not give a header length"
        )
    header = _parse(file.read(length), "header")
    model, checksum = _checked_metadata(header.pop("__metadata__", None))
    tensors = _checked_tensors(header, size - 8 - length)
    kind, text = model["estimator"], model["text"]
    values = model["values"]
    _check(kind, values, {t.name: _as_described(t.name, t.code, t.shape, text) for t in tensors})
    if not text.keys() <= header.keys() or not set(text.values()) <= {"str", "object"}:
        raise ModelFileError("the list of text arrays is wrong")
    check_values(kind, {name: value for name, value in values.items() if name not in SURROUNDINGS})
    arrays = {}
    for tensor in tensors:
        array = np.empty(tensor.shape, dtype=DTYPES[tensor.code])
        if file.readinto(array.data) != array.nbytes:  # type: ignore[attr-defined]
            raise ModelFileError("the file became shorter while it was read")
        if tensor.code == "BOOL" and array.view(np.uint8).max(initial=0) > 1:
            raise ModelFileError(f"the array {tensor.name!r} holds bytes that are neither true nor false")
        arrays[tensor.name] = array
    if _checksum(model["json"], arrays) != checksum:
        raise ModelFileError("the content does not match its checksum: the file is damaged")
    transform, calibration = unpack_surroundings(values, arrays)
    check_numbers(arrays)
    check_surroundings(transform, calibration)
    for name, form in text.items():
        arrays[name] = _as_text(name, arrays[name], form)
    return ModelRecord(kind, model["params"], values, arrays, model["versions"], transform, calibration)


def _check(kind: str, values: Mapping[str, Any], arrays: Described) -> None:
    """Whether a model of this kind, with what these values say stands around it, stores such arrays."""
    check_kind(kind)
    for name, check in SURROUNDINGS.items():
        if name in values:
            check(values[name], name)
    check_layout(kind, arrays, *surrounding_arrays(kind, values, arrays))


def _parse(raw: bytes, what: str) -> dict[str, Any]:
    if _depth(raw) > MAX_DEPTH:
        raise ModelFileError(f"the {what} is nested too deeply")
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=_without_repetition, parse_constant=_refuse_constant)
    except ModelFileError:
        raise
    except ValueError as error:
        raise ModelFileError(f"the {what} is not JSON in UTF-8 ({error})") from None
    if not isinstance(value, dict):
        raise ModelFileError(f"the {what} is not a JSON object")
    return value


def _depth(raw: bytes) -> int:
    """How deeply brackets are nested in JSON: known before a parser that calls itself for each of them."""
    outside = np.frombuffer(_STRING.sub(b"", raw), dtype=np.uint8)
    opening = (outside == ord("[")) | (outside == ord("{"))
    closing = (outside == ord("]")) | (outside == ord("}"))
    return int(np.cumsum(opening.astype(np.int64) - closing).max(initial=0))


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ModelFileError(f"the key {shown(key)} occurs twice")
        result[key] = value
    return result


def _refuse_constant(constant: str) -> None:
    raise ModelFileError(f"{constant} is not JSON")


def _checked_metadata(metadata: Any) -> tuple[dict[str, Any], str]:
    """The parts of the model's JSON, plain, with its bytes as "json"; and the checksum."""
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise ModelFileError("this is a safetensors file, but not a softmargin model")
    version = metadata.get("format_version")
    if not isinstance(version, str) or not version.isascii() or not version.isdigit() or len(version) > 9:
        raise ModelFileError("the format version is not a number")
    if int(version) > FORMAT_VERSION:
        raise ModelFileError(
            f"the file has format version {int(version)}, this softmargin reads up to {FORMAT_VERSION}: upgrade it"
        )
    if int(version) < 1 or metadata.keys() != METADATA_KEYS or not all(isinstance(v, str) for v in metadata.values()):
        raise ModelFileError(f"the metadata must be the strings {', '.join(sorted(METADATA_KEYS))}")
    raw = metadata["model"].encode("utf-8", "surrogatepass")
    model = _parse(raw, "description of the model")
    if model.keys() != MODEL_KEYS.keys() or not all(isinstance(model[key], kind) for key, kind in MODEL_KEYS.items()):
        raise ModelFileError(f"the description of the model must have the keys {', '.join(MODEL_KEYS)}")
    if not all(isinstance(value, str) for key in ("text", "versions") for value in model[key].values()):
        raise ModelFileError("text and versions must hold strings")
    for key in ("params", "values"):
        model[key] = {name: from_json(value) for name, value in model[key].items()}
    return model | {"json": raw}, metadata["crc32"]


def _checked_tensors(header: dict[str, Any], n_bytes: int) -> list[_Tensor]:
    """The arrays in the order of the file, which they must fill without gaps."""
    tensors = []
    for name, entry in header.items():
        match entry:
            case {"dtype": str(code), "shape": list(shape), "data_offsets": [begin, end], **rest} if not rest:
                numbers = [*shape, begin, end]
            case _:
                raise ModelFileError(f"the header's entry for {shown(name)} is not one of an array")
        if code not in DTYPES or len(shape) > MAX_DIMENSIONS:
            raise ModelFileError(f"the array {shown(name)} has an unknown type or too many dimensions")
        if not all(type(number) is int and 0 <= number <= n_bytes for number in numbers):
            raise ModelFileError(f"the array {shown(name)} has lengths or offsets beyond the end of the file")
        if end - begin != math.prod(shape) * DTYPES[code].itemsize:
            raise ModelFileError(f"the array {shown(name)} of type {code} and shape {shape} does not fit its place")
        tensors.append(_Tensor(name, code, tuple(shape), begin, end))
    tensors.sort(key=lambda tensor: (tensor.begin, tensor.end))
    position = 0
    for tensor in tensors:
        if tensor.begin != position:
            raise ModelFileError(f"the array {shown(tensor.name)} does not begin where the one before it ends")
        position = tensor.end
    if position != n_bytes:
        raise ModelFileError(f"the arrays need {position} bytes, but the file has {n_bytes} for them")
    return tensors
