"""What the numbers were measured on, and what it can do: memory, matrix products, exponentials."""

import datetime
import importlib.metadata
import mmap
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

PROJECT = Path(__file__).resolve().parents[1]
PACKAGES = ("softmargin", "numpy", "scipy", "numba", "scikit-learn")


def describe() -> dict[str, Any]:
    """CPU, cores, memory, versions, commit, date and load: the header of every result."""
    return {
        "cpu": _cpu_model(),
        "cores": core_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": {"python": platform.python_version()}
        | {name: importlib.metadata.version(name) for name in PACKAGES},
        "commit": commit(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "load_average": round(os.getloadavg()[0], 2),
    }


def core_count() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cores(described: Mapping[str, Any]) -> str:
    """The number of cores in words; a pinned process has fewer than the machine."""
    number = described["cores"]
    return f"{number} core{'' if number == 1 else 's'}"


def commit() -> str:
    """The commit id, with "+ changes" where files other than results differ from it."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--", ".", ":(exclude)benchmarks/results")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head} + changes" if changed else head


def _git(*arguments: str) -> str:
    command = ["git", "--no-optional-locks", "-C", str(PROJECT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def stream_rates(threads: tuple[int, ...] = (1, 2), n_bytes: int = 1 << 30, repeats: int = 9) -> dict[int, float]:
    """Bytes a second at which each number of threads reads a float64 array far above the last-level cache.

    A compiled sum over contiguous parts, one a thread; the best of `repeats`: anything slower was disturbed.
    """
    import numba

    @numba.njit(nogil=True, fastmath={"reassoc", "contract"})
    def total(x):
        s = 0.0
        for i in range(x.size):
            s += x[i]
        return s

    array = np.ones(n_bytes // 8)
    total(array[:8])
    rates = {}
    for n_threads in threads:
        parts = np.array_split(array, n_threads)
        with ThreadPoolExecutor(n_threads) as pool:
            seconds = []
            for _ in range(repeats):
                began = time.perf_counter()
                list(pool.map(total, parts))
                seconds.append(time.perf_counter() - began)
        rates[n_threads] = array.nbytes / min(seconds)
    return rates


def gather_seconds(indices: np.ndarray, width: int, n_threads: int, repeats: int = 7) -> float:
    """Seconds to read a float64 vector of length `width` at these indices, and nothing else.

    What the products of a sparse matrix cannot do without, whatever the arithmetic; the best of `repeats`.
    """
    import numba

    @numba.njit(nogil=True, fastmath={"reassoc", "contract"})
    def total(w, index):
        s = 0.0
        for p in range(index.size):
            s += w[np.uint64(index[p])]
        return s

    w = np.ones(width)
    parts = [(w, part) for part in np.array_split(indices, n_threads)]
    total(w, indices[:1])
    seconds = []
    with ThreadPoolExecutor(n_threads) as pool:
        for _ in range(repeats):
            began = time.perf_counter()
            list(pool.map(lambda part: total(*part), parts))
            seconds.append(time.perf_counter() - began)
    return min(seconds)


def gemm_rate(n_threads: int, n: int = 2048, repeats: int = 7) -> float:
    """Float32 operations a second of a matrix product with so many BLAS threads, the best of `repeats`."""
    from threadpoolctl import threadpool_limits

    A, B, out = (np.ones((n, n), dtype=np.float32) for _ in range(3))
    with threadpool_limits(n_threads, user_api="blas"):
        seconds = _best(lambda: np.matmul(A, B, out=out), repeats)
    return 2.0 * n**3 / seconds


def exp_rate(n_threads: int, n: int = 1 << 22, repeats: int = 7) -> float:
    """Float32 exponentials a second with so many threads, in pieces that stay in the cache; the best of `repeats`."""
    x = np.linspace(-10.0, 0.0, n, dtype=np.float32)
    parts = [np.array_split(part, max(1, part.size >> 14)) for part in np.array_split(x, n_threads)]
    scratch = [np.empty_like(pieces[0]) for pieces in parts]  # the first piece is the longest

    def work(k: int) -> None:
        for piece in parts[k]:
            np.exp(piece, out=scratch[k][: piece.size])

    with ThreadPoolExecutor(n_threads) as pool:
        return n / _best(lambda: list(pool.map(work, range(n_threads))), repeats)


def fresh_memory_seconds(n_bytes: int = 256 << 20) -> float:
    """Seconds to touch every page of this much new memory once, from the system and not from what was freed."""
    began = time.perf_counter()
    with mmap.mmap(-1, n_bytes) as fresh:
        for at in range(0, n_bytes, mmap.PAGESIZE):
            fresh[at] = 1
    return time.perf_counter() - began


@contextmanager
def watching_memory() -> Iterator[dict[str, int]]:
    """Afterwards `grown`: the most bytes of its own that the process had more than at the beginning (Linux).

    Mapped files are not counted: their pages are the system's, which takes them back when it needs them.
    """
    began, peak, is_over = _own_bytes(), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not is_over.wait(0.02):
            peak = max(peak, _own_bytes())

    found: dict[str, int] = {}
    watcher = threading.Thread(target=watch, name="watching-memory")
    watcher.start()
    try:
        yield found
    finally:
        is_over.set()
        watcher.join()
        found["grown"] = max(peak, _own_bytes()) - began


def _own_bytes() -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
    except (OSError, StopIteration):
        return 0


def drop_cached(files: Iterable[Path]) -> None:
    """Take files out of the system's cache, so that the next reading of them is from the disk. Needs no privileges."""
    for file in files:
        with open(file, "rb") as opened:
            os.fsync(opened.fileno())  # pages that are not written yet would stay
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def keep_freed_memory() -> None:
    """Start this program again with an allocator that never gives memory back to the system (glibc).

    Where new pages are slow, as on some virtual machines, they would be measured instead of the solvers.
    """
    wanted = dict.fromkeys(("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), str(1 << 40))
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | wanted)


def as_installed() -> dict[str, str]:
    """The environment for new processes whose modules are compiled once and not at every start, as pip leaves them."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _best(work: Callable[[], Any], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


if __name__ == "__main__":
    for key, value in describe().items():
        print(f"{key}: {value}")
    for n_threads, rate in stream_rates().items():
        print(f"memory read, {n_threads} thread(s): {rate / 1e9:.1f} GB/s")
