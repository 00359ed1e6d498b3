"""NumPy's array files, read without trust: nothing is unpickled, and no claim about a size is believed."""

import math
import os
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Collection
from reprlib import repr as shown
from typing import Any, NamedTuple

import numpy as np

from softmargin.core.errors import DataFormatError

MAGIC = b"\x93NUMPY"
MAX_HEADER_BYTES = 1 << 14
MAX_DIMENSIONS = 32  # what every version of NumPy can make
CHUNK_BYTES = 1 << 20

# The header is the text of a Python dictionary; its three entries are picked out, and nothing is evaluated.
_TYPE = re.compile(rb"""['"]descr['"]\s*:\s*['"]([<>|=]?[biufcSUOV][0-9]{0,9})['"]""")
_ORDER = re.compile(rb"""['"]fortran_order['"]\s*:\s*(True|False)""")
_SHAPE = re.compile(rb"""['"]shape['"]\s*:\s*\(([0-9L,\s]{0,200})\)""")
# What a damaged zip file makes Python's reader raise.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
)


class _Header(NamedTuple):
    dtype: np.dtype
    shape: tuple[int, ...]
    order: str
    size: int  # bytes of the header itself

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def map_npy(path: Any) -> np.ndarray:
    """The array in a .npy file, as a read-only memory map."""
    name = os.fsdecode(path)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        header = _parse_header(file.read, name)
    _check_size(header, size, name)
    if header.n_bytes == 0:
        raise DataFormatError("the array is empty.", file=name)
    order: Any = header.order
    return np.memmap(path, dtype=header.dtype, mode="r", offset=header.size, shape=header.shape, order=order)


def read_npz(path: Any, wanted: Collection[str]) -> dict[str, np.ndarray]:
    """Those of the wanted arrays that a .npz file has."""
    name = os.fsdecode(path)
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
                return {key: _read_member(archive, members[key], name) for key in wanted if key in members}
        except DataFormatError:
            raise
        except _DAMAGE as error:
            raise DataFormatError(f"this is no .npz file, or a damaged one: {shown(str(error))}.", file=name) from None


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> np.ndarray:
    place = f"{name}/{info.filename}"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataFormatError("the array is compressed in another way than np.savez_compressed does it.", file=place)
    with archive.open(info) as stream:
        header = _parse_header(stream.read, place)
        _check_size(header, info.file_size, place)
        data = bytearray()  # grows with what is there: the sizes so far are claims
        while len(data) < header.n_bytes:
            chunk = stream.read(min(CHUNK_BYTES, header.n_bytes - len(data)))
            if not chunk:
                raise DataFormatError("the array ends early.", file=place)
            data += chunk
        stream.read(1)  # the end of the member, where its checksum is compared
    order: Any = header.order
    array = np.ndarray(header.shape, dtype=header.dtype, buffer=data, order=order)
    if array.dtype.kind == "U" and array.size:
        codes = np.ndarray(header.n_bytes // 4, dtype=array.dtype.byteorder + "u4", buffer=data)
        if codes.max() > sys.maxunicode:
            raise DataFormatError("the strings hold code points beyond Unicode.", file=place)
    return array


def _check_size(header: _Header, size: int, name: str) -> None:
    needed = header.size + header.n_bytes
    if needed != size:
        raise DataFormatError(
            f"an array of type {header.dtype} and shape {header.shape} needs {needed} bytes, but has {size}.", file=name
        )


def _parse_header(read: Callable[[int], bytes], name: str) -> _Header:
    start = read(8)
    if not start.startswith(MAGIC) or len(start) < 8 or start[6] not in (1, 2, 3):
        raise DataFormatError("this is not an array in NumPy's format.", file=name)
    width = 2 if start[6] == 1 else 4
    length = int.from_bytes(read(width), "little")
    text = read(min(length, MAX_HEADER_BYTES))
    found = [pattern.search(text) for pattern in (_TYPE, _ORDER, _SHAPE)]
    if len(text) != length or not all(found):
        raise DataFormatError("the header of the array is damaged, or its type is not a simple one.", file=name)
    kind, fortran, shape = (match[1].decode() for match in found if match)
    try:
        dtype = np.dtype(kind)
        lengths = tuple(int(word) for word in shape.replace("L", "").split(",") if word.strip())
    except (TypeError, ValueError):
        dtype, lengths = np.dtype("V"), ()
    if len(lengths) > MAX_DIMENSIONS:
        raise DataFormatError(f"the array has {len(lengths)} dimensions: a matrix has two.", file=name)
    if dtype.kind not in "biufUS" or dtype.itemsize == 0:
        raise DataFormatError(
            f"the array has type {kind!r}: only numbers and strings are read, and Python objects never are.", file=name
        )
    return _Header(dtype, lengths, "F" if fortran == "True" else "C", 8 + width + length)
