"""What the names on the command line stand for: files, standard input and output; and what must not be overwritten."""

import os
import re
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
from softmargin.core.threads import StopHandler
from softmargin.io import svmlight
from softmargin.io.atomic import replacing
from softmargin.io.compression import opened

STANDARD = "-"
STANDARD_OUTPUT = (STANDARD, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
STANDARD_INPUT = (STANDARD, "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
# The standard input has no name whose ending would tell what it holds. Its first bytes do.
_SIGNATURES = {b"PAR1": ".parquet", b"\x93NUMPY": ".npy", b"PK\x03\x04": ".npz"}
_COMPRESSED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
_MODELS = (b"solver_type", b"svm_type")
_MODEL_HEAD = b'{"__metadata__":{"format":"softmargin"'
_HEAD_BYTES = 1 << 16
_PIECE_BYTES = 1 << 20


def title(path: Path) -> str:
    """What messages call this file."""
    return "the standard input" if is_input_stream(path) else str(path)


def is_input_stream(path: Path) -> bool:
    return str(path) in STANDARD_INPUT


def is_output_stream(path: Path) -> bool:
    return str(path) in STANDARD_OUTPUT


# --- reading --------------------------------------------------------------------------------------------------------


@contextmanager
def readable(path: Path, *, is_model: bool = False) -> Iterator[Path]:
    """A file with the rows or the model: the one that is named, or a copy of the standard input, as long as needed.

    A copy, because formats but svmlight text are not read from front to back. Its content says what it is. Signals
    that end the program raise KeyboardInterrupt here, so that they do not leave the copy behind.
    """
    if not is_input_stream(path):
        yield path
        return
    removing_the_copy = StopHandler(lambda: None).installed()
    with removing_the_copy, tempfile.TemporaryDirectory(prefix="softmargin-") as folder:
        copy = Path(folder) / "input"
        try:
            head = _head(sys.stdin.buffer)
            ending = "" if is_model else _ending(head)
            # What cannot be read is refused before all of it, which may be endless, is copied.
            if is_model and head and not may_be_model(head):
                raise SoftmarginError(f"{title(path)}: this is no model file, as its first bytes show.")
            if ending == "" and not looks_like_model(head) and b"\n" in head:
                _check_text(head)
            with copy.open("wb") as file:
                _copy(head, sys.stdin.buffer, file, is_text=ending == "" and not is_model)
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


def _copy(head: bytes, stream: BinaryIO, file: BinaryIO, *, is_text: bool) -> None:
    """All of a stream whose first bytes have been read; text whose first line does not end is given up."""
    in_first_line = is_text and b"\n" not in head
    n_bytes = 0
    piece = head
    while piece:
        try:
            n_bytes += file.write(piece)
        except OSError as error:
            raise SoftmarginError(
                f"{title(Path(STANDARD))} could not be copied to {Path(file.name).parent.parent}, the folder for "
                f"temporary files: {error.strerror}. TMPDIR may name another folder."
            ) from None
        piece = stream.read1(_PIECE_BYTES)  # type: ignore[attr-defined]
        in_first_line = in_first_line and b"\n" not in piece
        if in_first_line and n_bytes > svmlight.LINE_BYTES:
            raise SoftmarginError(
                f"{title(Path(STANDARD))}: the first line is longer than {svmlight.LINE_BYTES} bytes. Is this svmlight "
                "text?"
            )


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
    svmlight.read_svmlight(lines)


# --- writing --------------------------------------------------------------------------------------------------------


def check_output(path: Path, inputs: Mapping[str, Path], *, force: bool, is_model: bool, replaces: bool = True) -> None:
    """Whether the result can be written, and nothing else is lost by it: known before the work begins.

    Without `replaces` any file that is there already is kept, unless it is empty.
    """
    if is_output_stream(path) or _descriptor(path) is not None:
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
        if head and not force and not replaces:
            raise SoftmarginError(f"{path} is there already: name another file, or replace it with --force.")
    draft = target.parent / f".softmargin-{secrets.token_hex(8)}.tmp"
    try:
        draft.touch(exist_ok=False)
        draft.unlink()
    except OSError as error:
        raise SoftmarginError(f"{path} cannot be written: {error.strerror}.") from None


def looks_like_model(head: bytes) -> bool:
    return head.startswith(_MODELS) or head[8:].startswith(_MODEL_HEAD)


def may_be_model(head: bytes) -> bool:
    """As `looks_like_model`, or a safetensors file whose description begins in another way."""
    return head.startswith(_MODELS) or head[8:9] == b"{"


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


def _descriptor(path: Path) -> int | None:
    """The number of the open file that a name such as /dev/stderr stands for; the shell writes `>(gzip)` so, too.

    What is behind such a name must be written to, and never replaced: a pipe has no folder where a draft could be, and
    a shell goes on writing to the file that it has opened.
    """
    if str(path) == "/dev/stderr":
        return 2
    found = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", str(path))
    return int(found[1]) if found and path.exists() else None


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """A full disk is told with the name of the file; a reader that has seen enough is no such error."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or isinstance(error, BrokenPipeError):
            raise
        raise SoftmarginError(f"{path} could not be written: {error.strerror}.") from None


def write(path: Path, content: Callable[[BinaryIO], object]) -> None:
    """Let `content` write a file as a whole; a device, a pipe and the standard output are written as they are."""
    with _naming(path):
        _write(path, content)


def _write(path: Path, content: Callable[[BinaryIO], object]) -> None:
    descriptor = _descriptor(path)
    if is_output_stream(path):
        sys.stdout.flush()
        content(sys.stdout.buffer)
        sys.stdout.buffer.flush()
    elif descriptor is not None:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            content(file)
    elif path.exists() and not path.is_file():
        with path.open("wb") as file:
            content(file)
    else:
        with replacing(path) as file:
            content(file)


def save(path: Path, save_to: Callable[[Path], None]) -> None:
    """Let `save_to` write a model file; one for the standard output, a device or a pipe is copied there."""
    is_stream = is_output_stream(path) or _descriptor(path) is not None
    if not is_stream and (path.is_file() or not path.exists()):
        with _naming(path):
            save_to(path)
        return
    with tempfile.TemporaryDirectory(prefix="softmargin-") as folder:
        copy = Path(folder) / "model"
        save_to(copy)
        with copy.open("rb") as file:
            write(path, lambda out: shutil.copyfileobj(file, out))
