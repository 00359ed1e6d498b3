"""Threads over fixed row blocks, and the guard that holds BLAS to one thread inside them.

The blocks depend on the data alone and results are reduced in block order, so every number of threads gives the
same bits. Between blocks the workers look at a check, which the loop uses for time limits and cancellation.
"""

import math
import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from softmargin.core.errors import Abandoned, SoftmarginError


class _Job:
    """Blocks that several threads work off together; the caller does not wait for helpers that come too late."""

    def __init__(self, function: Callable[..., Any], blocks: Sequence[tuple]) -> None:
        self._function, self._blocks = function, blocks
        self.results: list = [None] * len(blocks)
        self.error: BaseException | None = None
        self._todo = iter(range(len(blocks)))
        self._condition = threading.Condition()
        self._helping = 0
        self._closed = False

    def work(self, check: Callable[[], None] | None = None) -> None:
        """Take blocks until none is left or the job is closed."""
        while not self._closed:
            if check is not None:
                check()
            with self._condition:
                k = next(self._todo, None)
            if k is None:
                return
            self.results[k] = self._function(*self._blocks[k])

    def help(self) -> None:
        """The part of a helper thread; what goes wrong is kept for the caller."""
        with self._condition:
            if self._closed:
                return
            self._helping += 1
        try:
            self.work()
        except BaseException as error:
            self.error = error
            self._closed = True
        finally:
            with self._condition:
                self._helping -= 1
                self._condition.notify()

    def close(self) -> None:
        """No more blocks; returns when nobody works on one: then nobody writes into the caller's arrays any more."""
        with self._condition:
            self._closed = True
            while self._helping:
                self._condition.wait()


def _help(queue: "SimpleQueue[_Job | None]") -> None:
    limit_blas_of_this_thread()
    while (job := queue.get()) is not None:
        job.help()
        del job


def _dismiss(queue: "SimpleQueue[_Job | None]", n_helpers: int) -> None:
    for _ in range(n_helpers):
        queue.put(None)


class Workers:
    """A team of `n_threads` threads, the caller's among them. Light until first used; threads start then."""

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self._queue: SimpleQueue[_Job | None] | None = None
        self._dismiss: Any = None
        self._check: Callable[[], None] | None = None

    def __reduce__(self) -> tuple:
        return (Workers, (self.n_threads,))  # threads do not travel; a copy starts its own

    @contextmanager
    def checking(self, check: Callable[[], None]) -> Iterator[None]:
        """Call `check` between blocks, in whichever thread is about to begin one; what it raises ends the work."""
        previous, self._check = self._check, check
        try:
            yield
        finally:
            self._check = previous

    def check(self) -> None:
        if self._check is not None:
            self._check()

    def map(self, function: Callable[..., Any], blocks: Sequence[tuple], *, alone: bool = False) -> list:
        """`[function(*block) for block in blocks]`, spread over the threads, results in the order of blocks.

        `alone` leaves all of them to the calling thread: waking another takes as long as reading a megabyte or two.
        """
        if alone or self.n_threads == 1 or len(blocks) < 2:
            results = []
            for block in blocks:
                self.check()
                results.append(function(*block))
            return results
        queue = self._helpers()
        job = _Job(function, blocks)
        for _ in range(min(self.n_threads, len(blocks)) - 1):
            queue.put(job)
        try:
            job.work(self.check)
        finally:
            job.close()
        if job.error is not None:
            raise job.error
        return job.results

    def _helpers(self) -> "SimpleQueue[_Job | None]":
        """The queue of the helper threads, which are started at first use and end with this object."""
        if self._queue is None:
            self._queue = SimpleQueue()
            for k in range(self.n_threads - 1):
                threading.Thread(target=_help, args=(self._queue,), name=f"softmargin-{k}", daemon=True).start()
            self._dismiss = weakref.finalize(self, _dismiss, self._queue, self.n_threads - 1)
        return self._queue

    def close(self) -> None:
        if self._queue is not None:
            self._dismiss()
            self._queue = None


class Cancel:
    """A switch that several solves look at: set once, all of them stop at their next row block."""

    def __init__(self) -> None:
        self.is_set = False

    def set(self) -> None:
        self.is_set = True

    def check(self) -> None:
        if self.is_set:
            raise Abandoned

    @contextmanager
    def on_interrupt(self) -> Iterator[None]:
        """Inside, the first Ctrl-C sets the switch instead of raising; later ones go to the usual handler.

        So no interrupt is raised inside compiled code, nor between the lines that store a result. The same holds for
        other signals whose handler is Python's for Ctrl-C, or a `StopHandler`. Python delivers signals to the main
        thread only; elsewhere, or where the user has a handler of another kind, nothing changes.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        usual = {number: handler for number in STOP_SIGNALS if _stops(handler := signal.getsignal(number))}

        def restore() -> None:
            for number, handler in usual.items():
                signal.signal(number, handler)

        def first(_number: int, _frame: Any) -> None:
            self.set()
            for handler in usual.values():
                if isinstance(handler, StopHandler):
                    handler.is_stopping = True
            restore()

        for number in usual:
            signal.signal(number, first)
        try:
            yield
        finally:
            restore()


# What asks a program to stop: Ctrl-C, the system or a job queue, a terminal that was closed (not on Windows).
STOP_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class StopHandler:
    """A signal handler for a program that must not lose its work: as Ctrl-C, but only until the program is stopping.

    From then on (a fit was told to stop, or its result is being saved) signals are answered by `tell()` alone.
    """

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self.is_stopping = False

    def __call__(self, _number: int, _frame: Any) -> None:
        if not self.is_stopping:
            raise KeyboardInterrupt
        self._tell()

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Handles the stop signals inside, except those that the user ignores (nohup, background jobs) or handles."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers = {number: signal.getsignal(number) for number in STOP_SIGNALS}
        replaced = {n: old for n, old in handlers.items() if old in (signal.SIG_DFL, signal.default_int_handler)}
        for number in replaced:
            signal.signal(number, self)
        try:
            yield
        finally:
            for number, handler in replaced.items():
                signal.signal(number, handler)


def _stops(handler: Any) -> bool:
    return handler is signal.default_int_handler or isinstance(handler, StopHandler)


def thread_count(n_jobs: int | None) -> int:
    """Number of threads for scikit-learn's `n_jobs`: None is 1, -1 all, -2 all but one, k > 0 just k.

    "All" respects the CPU affinity, the cgroup's quota and the limits that joblib and Dask set for their workers.
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__") or int(n_jobs) == 0:
        raise SoftmarginError(
            f"n_jobs={n_jobs!r} is not a number of threads: use None for one, -1 for all, or a positive integer."
        )
    return int(n_jobs) if n_jobs > 0 else max(1, available_threads() + 1 + int(n_jobs))


def available_threads() -> int:
    """Threads that this process may use at once."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if (quota := _cgroup_quota()) is not None:
        count = min(count, math.ceil(quota))
    limit = _outer_limit()
    return max(1, count if limit is None else min(count, limit))


def _cgroup_quota(root: Path = Path("/sys/fs/cgroup")) -> float | None:
    """The processors that the control group of a container leaves us, by either version of the kernel's interface."""
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        with suppress(OSError, ValueError):
            quota, period = map(float, " ".join((root / name).read_text() for name in names).split())
            if quota > 0.0 and period > 0.0:
                return quota / period
    return None


def _outer_limit() -> int | None:
    """What a surrounding pool leaves us: joblib and Dask tell their workers through these variables."""
    limits = []
    for name in ("LOKY_MAX_CPU_COUNT", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.strip().isdigit() and int(value) > 0:
            limits.append(int(value))
    if _inside_dask_worker():
        limits.append(1)
    return min(limits) if limits else None


def _inside_dask_worker() -> bool:
    """A Dask worker already runs one task on each of its threads."""
    return "Dask-Default-Threads" in threading.current_thread().name


class _BlasGuard:
    """Holds BLAS to one thread while at least one fit is running, in whatever thread.

    Most builds of OpenBLAS have one pool for the process, which threadpoolctl lets only one thread control at a time;
    here the first fit to begin sets the limit and the last to end lifts it, and these may be different threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before: list[Any] = []

    @property
    def is_active(self) -> bool:
        return self._users > 0

    def enter(self) -> None:
        with self._lock:
            if self._users == 0:
                _release_blas_control()
                self._before = [library.num_threads for library in _blas_libraries()]
                _limit_blas()
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                _release_blas_control()
                for library, n_threads in zip(_blas_libraries(), self._before, strict=True):
                    library.set_num_threads(n_threads)
                _release_blas_control()


@cache
def _blas_libraries() -> list[Any]:
    """What sets the threads of each BLAS library; looking for these takes milliseconds, so it is done once."""
    import scipy.linalg.blas  # noqa: F401  SciPy's BLAS is another one, and must be loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas").lib_controllers


def _limit_blas() -> None:
    """One BLAS thread: for the process, or for this thread where the library has a pool for each."""
    for library in _blas_libraries():
        library.set_num_threads(1)


def limit_blas_of_this_thread() -> None:
    """For threads of our own pools, where BLAS has a pool for each thread; elsewhere the guard has done it already."""
    if _guard.is_active:
        _limit_blas()


def _release_blas_control() -> None:
    """Let this thread set the limit next; versions of threadpoolctl before 3.7 know no such ownership."""
    import threadpoolctl

    controller = getattr(threadpoolctl, "OpenBLASController", None)
    release = getattr(controller, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)


_guard = _BlasGuard()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside, BLAS runs on the calling thread: the bits do not depend on its thread count."""
    _guard.enter()
    try:
        yield
    finally:
        _guard.leave()
