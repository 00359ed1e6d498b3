"""Files that are there as a whole or not at all."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

# How writing to an open file may fail; the system does not say which file it was.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replacing(path: Any) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` when the block ends, and vanishes if the block fails.

    It is written beside `path`, under a name of its own: until the last moment an old file stays as it was. Links are
    followed. An old file's permissions are kept; until then, nobody but the owner can read what will replace it.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "the folder to write to does not exist", str(target.parent))
    mode = target.stat().st_mode if target.exists() else None
    if mode is not None and not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "only a regular file can be replaced", str(target))
    draft = target.parent / f".softmargin-{secrets.token_hex(8)}.tmp"
    try:
        permissions = 0o666 if mode is None else 0o600  # a new file is as open as the user's umask says
        with open(draft, "xb", opener=lambda name, flags: os.open(name, flags, permissions)) as file:
            yield file
        if mode is not None:
            draft.chmod(stat.S_IMODE(mode))
        draft.replace(target)
    except BaseException as error:
        with suppress(OSError):
            draft.unlink()
        if isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None:
            message = f"{error.strerror}; nothing of it is left"
            raise OSError(error.errno, message, str(target)) from None
        raise
