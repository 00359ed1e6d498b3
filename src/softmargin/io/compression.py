"""The bytes of a file, decompressed as they are read: gzip, bzip2, xz and Zstandard.

However small a file is and whatever it claims, a read holds little more than what was asked for: an endless text in a
few compressed bytes is the reader's to stop.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from typing import Any, BinaryIO

from softmargin.core.errors import DataFormatError, SoftmarginError

Source = str | bytes | os.PathLike | BinaryIO
Read = Callable[[int], bytes]

_MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\x00", ".zst": b"\x28\xb5\x2f\xfd"}
# So much of a file of zstd frames decompresses to 32 MiB at most: 128 KiB for a block of four bytes.
_ZSTD_PIECE = 1024


@contextmanager
def opened(source: Source) -> Iterator[tuple[Read, str]]:
    """A function that reads n bytes (fewer at the end only), and the name of the file for messages.

    The format is known by the file name's ending, or else by the first bytes. A file object is read as it is, from
    where it stands, and left open.
    """
    if not isinstance(source, str | bytes | os.PathLike):
        if not callable(getattr(source, "read", None)):
            raise SoftmarginError(
                f"A path or a file opened in binary mode is needed, not an object of type {type(source).__name__}."
            )
        name = getattr(source, "name", "")
        yield _whole_reads(source.read), name if isinstance(name, str) else ""
        return
    name = os.fsdecode(source)
    with open(source, "rb") as raw:
        suffix = _compression(name, raw.peek(8))
        if not suffix:
            yield _whole_reads(raw.read), name
            return
        stream, damage = _DECOMPRESS[suffix](raw)
        with closing(stream):
            yield _whole_reads(_explained(stream.read, damage, suffix, name)), name


def is_compressed(name: str) -> bool:
    with open(name, "rb") as file:
        return _compression(name, file.read(8)) != ""


def _compression(name: str, head: bytes) -> str:
    suffix = os.path.splitext(name)[1].lower()
    if suffix in _MAGIC:
        return suffix
    return next((suffix for suffix, magic in _MAGIC.items() if head.startswith(magic)), "")


def _whole_reads(read: Read) -> Read:
    """Reads that come back short (pipes, sockets) are continued."""

    def read_whole(n: int) -> bytes:
        pieces = []
        while n > 0:
            piece = read(n)
            if not isinstance(piece, bytes):
                raise SoftmarginError(
                    f"The file object's read() gave {type(piece).__name__} instead of bytes: open it in binary mode."
                )
            if not piece:
                break
            pieces.append(piece)
            n -= len(piece)
        return b"".join(pieces)

    return read_whole


def _explained(read: Read, damage: tuple[type[Exception], ...], suffix: str, name: str) -> Read:
    """What the decompressor raises on damaged data, as an error that says so."""

    def read_or_explain(n: int) -> bytes:
        try:
            return read(n)
        except EOFError as error:
            raise DataFormatError(
                f"the {suffix} data end too early: the file is cut short. Copy or download it again.", file=name
            ) from error
        except damage as error:
            if getattr(error, "errno", None) is not None:  # the disk's error, not the data's
                raise
            raise DataFormatError(
                f"the {suffix} data are damaged ({error}). Copy or download the file again.", file=name
            ) from error

    return read_or_explain


def _gzip(raw: BinaryIO) -> tuple[Any, tuple]:
    import gzip
    import zlib

    return gzip.GzipFile(fileobj=raw, mode="rb"), (gzip.BadGzipFile, zlib.error)


def _bzip2(raw: BinaryIO) -> tuple[Any, tuple]:
    import bz2

    return bz2.BZ2File(raw), (OSError,)


def _xz(raw: BinaryIO) -> tuple[Any, tuple]:
    import lzma

    return lzma.LZMAFile(raw), (lzma.LZMAError,)


def _zstd(raw: BinaryIO) -> tuple[Any, tuple]:
    """By Python itself from 3.14 on, by the package `zstandard` before."""
    try:
        zstd = import_module("compression.zstd")
        return zstd.ZstdFile(raw), (zstd.ZstdError,)
    except ImportError:
        pass
    try:
        zstandard = import_module("zstandard")
    except ImportError:
        raise SoftmarginError(
            "Reading .zst files needs Python 3.14 or the package zstandard: pip install zstandard, "
            "or decompress the file with `zstd -d` first."
        ) from None
    return _ZstdFrames(raw, zstandard.ZstdDecompressor().decompressobj), (zstandard.ZstdError,)


class _ZstdFrames:
    """Reads frames one after the other; the stream reader of `zstandard` takes a frame that is cut short for whole."""

    def __init__(self, raw: BinaryIO, start: Callable[[], Any]) -> None:
        self._raw, self._start = raw, start
        self._frame: Any = None
        self._input = b""
        self._output = memoryview(b"")

    def read(self, n: int) -> bytes:
        while not self._output:
            self._input = self._input or self._raw.read(_ZSTD_PIECE)
            if not self._input:
                if self._frame is not None:
                    raise EOFError
                return b""
            if self._frame is None:
                self._frame = self._start()
            self._output = memoryview(self._frame.decompress(self._input))
            self._input = self._frame.unused_data if self._frame.eof else b""
            if self._frame.eof:
                self._frame = None
        piece, self._output = self._output[:n], self._output[n:]
        return piece.tobytes()

    def close(self) -> None:
        self._frame = None


_DECOMPRESS = {".gz": _gzip, ".bz2": _bzip2, ".xz": _xz, ".zst": _zstd}
