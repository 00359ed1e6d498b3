"""The one decorator of compiled code.

Only files whose name begins with an underscore use it, and those are imported at the first fit: importing
`softmargin` does not import Numba. Compiled functions release the interpreter lock, take arrays and scalars,
and are plain Python when `NUMBA_DISABLE_JIT=1`.

The first fit of all waits for the compiler. Loops over entries compile several times faster than NumPy's expressions of
whole arrays: assigning one array to a part of another, `x[:] = y` or `x[index] = y`, alone takes a second, because
Numba then compiles the text of an error message.
"""

import hashlib
import io
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numba
from llvmlite import ir
from numba.core import caching, cgutils, event, types
from numba.core.runtime import rtsys
from numba.extending import intrinsic

# The compiler vectorises a sum only if it may change the order of the additions. NaN and infinity keep their meaning.
_FREE_ORDER = {"reassoc", "contract"}
# The compiler vectorises a maximum only if it may assume that there is no NaN, and that 0 and -0 are the same.
_NO_NAN = {"nnan", "nsz"}


def compiled(function: Callable | None = None, *, sums: bool = False, maxima: bool = False) -> Any:
    """Compile `function` at its first call; `sums` lets the compiler reorder additions, `maxima` forget about NaN.

    The machine code is cached on disk. Where that is not possible (no writable folder, a full disk, a damaged file) it
    is compiled in every process.
    """
    if function is None:
        return lambda f: compiled(f, sums=sums, maxima=maxima)
    flags = (_FREE_ORDER if sums else set()) | (_NO_NAN if maxima else set())
    # Without the wrapper for C callers, which nobody calls and which takes a twentieth of the time of compiling.
    dispatcher = numba.njit(nogil=True, no_cfunc_wrapper=True, fastmath=flags or False)(function)
    if not numba.config.DISABLE_JIT:
        with suppress(RuntimeError, OSError):  # RuntimeError: neither the package nor the user has a writable folder
            dispatcher._cache = _Cache(function)
    return dispatcher


class _CacheFile(caching.IndexDataCacheFile):
    """Numba's files of one function, each with a digest at its end: a damaged file counts as missing.

    Machine code is written before the index that names it. In Numba's order a disk that becomes full in between leaves
    an index that may name the code of an older source.
    """

    def save(self, key: Any, data: Any) -> None:
        overloads = self._load_index()
        taken = set(overloads.values())
        names = map(self._data_name, itertools.count(1))
        name = overloads.get(key) or next(name for name in names if name not in taken)
        self._save_data(name, data)
        self._save_index(overloads | {key: name})

    def _load_index(self) -> dict:
        try:
            _check_digest(self._index_path)
            return super()._load_index()
        except (OSError, ImportError, AttributeError):  # the last two: another version, which had other argument types
            return {}

    def _load_data(self, name: str) -> Any:
        _check_digest(self._data_path(name))
        return super()._load_data(name)  # without what is behind the end of a pickle

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[BinaryIO]:
        with super()._open_for_write(filepath) as file:
            content = io.BytesIO()
            yield content
            file.write(content.getvalue() + _digest(content.getvalue()))


class _Cache(caching.FunctionCache):
    """Numba's cache of one function, which does without what it cannot read or write."""

    def __init__(self, function: Callable) -> None:
        super().__init__(function)
        locator = self._impl.locator
        self._cache_file = _CacheFile(self._cache_path, self._impl.filename_base, locator.get_source_stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code, without Numba's refresh of what it can compile.

        That imports 60 modules, a tenth of a second. Code that is loaded needs only the memory of arrays to be set up;
        the compiler refreshes by itself. (Code that uses dictionaries or sets would also need their hashing.)
        """
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _check_digest(path: str) -> None:
    content = Path(path).read_bytes()
    size = hashlib.sha256().digest_size
    if content[-size:] != _digest(content[:-size]):
        raise OSError(f"{path} is damaged.")


def _no_prefetch(array: Any, index: Any) -> None:
    """Plain Python has nothing to fetch ahead."""


@intrinsic
def _prefetch(_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, arguments[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        )
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(function, [address, number(0), number(3), number(1)])  # to read, to all caches, data
        return context.get_dummy_value()

    return types.void(array, index), generate


# prefetch(array, index), in compiled code: entry `index` of a contiguous array will be read soon. It need not exist.
prefetch = _no_prefetch if numba.config.DISABLE_JIT else _prefetch


class _CompileTimer(event.Listener):
    """Adds up the wall-clock time in which some thread compiled or loaded from the cache."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._began = 0.0
        self.seconds = 0.0

    def on_start(self, _event: Any) -> None:
        with self._lock:
            if self._depth == 0:
                self._began = time.perf_counter()
            self._depth += 1

    def on_end(self, _event: Any) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self.seconds += time.perf_counter() - self._began


_timer = _CompileTimer()
event.register("numba:compiler_lock", _timer)


def compile_seconds() -> float:
    """Seconds this process has spent compiling so far; time limits leave them out."""
    return _timer.seconds
