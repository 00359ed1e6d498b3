"""What the numbers were measured on, and how fast its memory can be read."""

import datetime
import importlib.metadata
import os
import platform
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
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


if __name__ == "__main__":
    for key, value in describe().items():
        print(f"{key}: {value}")
    for n_threads, rate in stream_rates().items():
        print(f"memory read, {n_threads} thread(s): {rate / 1e9:.1f} GB/s")
