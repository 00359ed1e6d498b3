"""The one decorator of compiled code.

Only files whose name begins with an underscore use it, and those are imported at the first fit: importing
`softmargin` does not import Numba. Compiled functions release the interpreter lock, take arrays and scalars,
and are plain Python when `NUMBA_DISABLE_JIT=1`.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, event, types
from numba.extending import intrinsic

# Sums vectorise only when the order of addition is free. NaN and infinity keep their meaning.
_FREE_ORDER = {"reassoc", "contract"}
# Maxima vectorise only where NaN cannot occur, and where it does not matter which of two zeros is found.
_NO_NAN = {"nnan", "nsz"}


def compiled(function: Callable | None = None, *, sums: bool = False, maxima: bool = False) -> Any:
    """Compile `function` at its first call; `sums` lets the compiler reorder additions, `maxima` forget about NaN.

    The machine code is cached on disk; where no cache folder is writable it is compiled in every process.
    """
    if function is None:
        return lambda f: compiled(f, sums=sums, maxima=maxima)
    flags = (_FREE_ORDER if sums else set()) | (_NO_NAN if maxima else set())
    options = {"nogil": True, "fastmath": flags or False}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # Numba: "no locator available": neither the package nor the user has a writable cache
        return numba.njit(**options)(function)


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
