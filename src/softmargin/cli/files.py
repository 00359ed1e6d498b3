"""What the names on the command line stand for: files, standard input and output; and what must not be overwritten."""

import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from softmargin.cli.output import sentence
from softmargin.core.errors import SoftmarginError
from softmargin.io.atomic import replacing
from softmargin.io.compression import opened
from softmargin.io.svmlight import read_svmlight

STANDARD = "-"
STANDARD_OUTPUT = (STANDARD, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
STANDARD_INPUT = (STANDARD, "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
# By their first bytes, as files have them by the ending of their name.
_SIGNATURES = {b"PAR1": ".parquet", b"\x93NUMPY": ".npy", b"PK\x03\x04": ".npz"}
_COMPRESSED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
_MODELS = (b"solver_type", b"svm_type")
_MODEL_HEAD = b'{"__metadata__":{"format":"softmargin"'
_HEAD_BYTES = 1 << 16


def title(path: Path) -> str:
    """How a message calls it."""
    return "the standard input" if is_input_stream(path) else str(path)


def is_input_stream(path: Path) -> bool:
    return str(path) in STANDARD_INPUT


def is_output_stream(path: Path) -> bool:
    return str(path) in STANDARD_OUTPUT


# --- reading --------------------------------------------------------------------------------------------------------


@contextmanager
def readable(path: Path) -> Iterator[Path]:
    """A file with the rows or the model: the one that is named, or a copy of the standard input, as long as needed.

    A copy, because formats but svmlight text are not read from front to back. Its content says what it is.
    """
    if not is_input_stream(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="softmargin-") as folder:
        copy = Path(folder) / "input"
        try:
            head = _head(sys.stdin.buffer)
            ending = _ending(head)
            if ending == "" and not looks_like_model(head) and b"\n" in head:
                # Text that cannot be read is refused before all of it, which may be endless, is copied.
                _check_text(head)
            with copy.open("wb") as file:
                file.write(head)
                shutil.copyfileobj(sys.stdin.buffer, file)
            if ending in _COMPRESSED.values():
                with opened(copy) as (read, _):
                    ending = _ending(read(_HEAD_BYTES)) + ending
            yield copy.rename(copy.with_name(f"input{ending}"))
        except (SoftmarginError, OSError) as error:
            message = sentence(error)
            for name in sorted(map(str, Path(folder).iterdir()), reverse=True):
                message = message.replace(name, title(path))
            raise SoftmarginError(message) from None


def _head(stream: BinaryIO) -> bytes:
    """The first line and more, if there is more."""
    head = b""
    while len(head) < _HEAD_BYTES and b"\n" not in head:
        piece = stream.read1(_HEAD_BYTES - len(head))  # type: ignore[attr-defined]
        if not piece:
            break
        head += piece
    return head


def _ending(head: bytes) -> str:
    for signature, ending in (_SIGNATURES | _COMPRESSED).items():
        if head.startswith(signature):
            return ending
    line = head.lstrip().partition(b"\n")[0]
    return ".csv" if b"," in line and not _is_number(line.split()[0]) else ""


def _is_number(text: bytes) -> bool:
    with suppress(ValueError):
        float(text)
        return True
    return False


def _check_text(head: bytes) -> None:
    from io import BytesIO

    lines = BytesIO(head[: head.rindex(b"\n") + 1])
    lines.name = "the standard input"  # type: ignore[attr-defined]
    read_svmlight(lines)


# --- writing --------------------------------------------------------------------------------------------------------


def check_output(path: Path, inputs: Mapping[str, Path], *, force: bool, is_model: bool) -> None:
    """Whether the result can be written, and nothing else is lost by it: known before the work begins."""
    if is_output_stream(path):
        return
    for name, other in inputs.items():
        if _same_file(path, other):
            raise SoftmarginError(f"{path} is {name}, which would be overwritten: name another file to write.")
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise SoftmarginError(f"{path} is a folder: name a file to write.")
    if not target.parent.is_dir():
        raise SoftmarginError(f"{target.parent} is not a folder: {path} could not be written there.")
    if target.exists():
        if not stat.S_ISREG(target.stat().st_mode):
            return  # a device or a pipe: it is written to, not replaced
        with target.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        if head and not force and looks_like_model(head) != is_model:
            what = "is no model file" if is_model else "is a model file"
            raise SoftmarginError(f"{path} is there already and {what}: name another file, or replace it with --force.")
    draft = target.parent / f".softmargin-{secrets.token_hex(8)}.tmp"
    try:
        draft.touch(exist_ok=False)
        draft.unlink()
    except OSError as error:
        raise SoftmarginError(f"{path} cannot be written: {error.strerror}.") from None


def looks_like_model(head: bytes) -> bool:
    return head.startswith(_MODELS) or head[8:].startswith(_MODEL_HEAD)


def is_model(path: Path) -> bool:
    """Whether a file looks like a model of ours or of LIBLINEAR or LIBSVM."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return looks_like_model(file.read(_HEAD_BYTES))


def _same_file(path: Path, other: Path) -> bool:
    with suppress(OSError, ValueError):
        found = os.fstat(sys.stdin.fileno()) if is_input_stream(other) else other.stat()
        return stat.S_ISREG(found.st_mode) and os.path.samestat(path.stat(), found)
    return False


def write(path: Path, content: Callable[[BinaryIO], object]) -> None:
    """Let `content` write a file as a whole; a device, a pipe and the standard output are written as they are."""
    if is_output_stream(path):
        sys.stdout.flush()
        content(sys.stdout.buffer)
        sys.stdout.buffer.flush()
    elif path.exists() and not path.is_file():
        with path.open("wb") as file:
            content(file)
    else:
        with replacing(path) as file:
            content(file)


def save(path: Path, save_to: Callable[[Path], None]) -> None:
    """Let `save_to` write a model file; one for the standard output, a device or a pipe is copied there."""
    if not is_output_stream(path) and (path.is_file() or not path.exists()):
        save_to(path)
        return
    with tempfile.TemporaryDirectory(prefix="softmargin-") as folder:
        copy = Path(folder) / "model"
        save_to(copy)
        with copy.open("rb") as file:
            write(path, lambda out: shutil.copyfileobj(file, out))
