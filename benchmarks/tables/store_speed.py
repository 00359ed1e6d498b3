"""Fits from a store on disk beside fits of the same rows in memory, and a pass over the store beside dd.

Goals: with the pages of the files in the system's cache, a fit from a store takes at most 1.1 times as long as one in
memory; without them, a pass reads as fast as dd.
"""

import shutil
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import machine, record
from benchmarks.datasets import splice_like
from benchmarks.datasets.files import cache_folder
from benchmarks.tables import _paper
from softmargin.core.threads import Workers

FACTOR = 1.1
DISK_SHARE = 0.9  # of the speed of dd: what counts as the same
N_BYTES = 1e9
ITERATIONS = 30  # each is two passes over the rows
C_TIMES_N = 1e4
WINDOW_CHUNKS = 2
FLOAT_COLUMNS = 250
SPARSE_COLUMNS, SPARSE_VALUES = 5000, 100  # values in a row
BATCH_ROWS = 1 << 15
COLUMNS = {
    "data": ("data", ""),
    "gb": ("GB", ".2f"),
    "threads": ("threads", "d"),
    "memory_s": ("in memory s", ".3f"),
    "store_s": ("from the store s", ".3f"),
    "ratio": ("ratio", ".2f"),
    "cpu_ratio": ("ratio of CPU time", ".2f"),
    "first_ratio": ("first fit, with the checks", ".2f"),
    "window_ratio": ("two chunks mapped", ".2f"),
    "warm_gbs": ("pass, warm GB/s", ".2f"),
    "check_gbs": ("pass, cold, with the checks GB/s", ".2f"),
    "cold_gbs": ("pass, cold GB/s", ".2f"),
    "dd_gbs": ("dd, cold GB/s", ".2f"),
    "met": ("goals met", ""),
}
REMARKS: tuple[str, ...] = ()


def main() -> None:
    parser = record.options(__doc__)
    parser.add_argument("--folder", type=Path, help="folder for the stores (default: the benchmarks' cache)")
    parser.add_argument("--only", metavar="NAME", choices=DATA, help="one kind of data; not written without --out")
    parser.add_argument("--bytes", type=float, default=N_BYTES, help="size of the data")
    parser.add_argument("--repeats", type=int, default=7, help="fits of each kind, in turn; the best one counts")
    parser.add_argument("--render", action="store_true", help="measure nothing: write the last results again")
    args = parser.parse_args()
    args.folder = args.folder or cache_folder()
    if args.quick:
        args.bytes, args.repeats = 1e6, 1
    table = record.Table("store_speed", "Fits from disk beside fits in memory", COLUMNS, "1 and 2", args)
    _paper.produce(table, _measure, _notes, REMARKS)


def _measure(table: record.Table) -> None:
    from softmargin import Store

    args = table.args
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in (args.only,) if args.only else DATA:
        path = args.folder / f"store-speed-{name.replace(' ', '-')}"
        chunk_bytes = None if args.bytes > 1e8 else int(args.bytes / 8)
        Store.write(path, DATA[name](int(args.bytes)), chunk_bytes=chunk_bytes, overwrite=True)
        try:
            rows = _in_memory(Store(path))
            for threads in (1, 2):
                _add(table, name, path, rows, threads)
        finally:
            shutil.rmtree(path)


def _splice_like(n_bytes: int) -> Iterator[tuple]:
    return splice_like.batches(n_bytes // splice_like.N_FEATURES, "dense")


def _floats(n_bytes: int) -> Iterator[tuple]:
    rng = np.random.default_rng(0)
    w = rng.standard_normal(FLOAT_COLUMNS)
    for size in _batch_sizes(n_bytes // (4 * FLOAT_COLUMNS)):
        X = rng.standard_normal((size, FLOAT_COLUMNS), dtype=np.float32)
        yield X, _labels(X @ w, rng)


def _sparse(n_bytes: int) -> Iterator[tuple]:
    """Frequent and rare columns, as in text: the square of a uniform number says which."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal(SPARSE_COLUMNS)
    for size in _batch_sizes(n_bytes // (8 * SPARSE_VALUES)):
        columns = (SPARSE_COLUMNS * rng.random((size, SPARSE_VALUES)) ** 2).astype(np.int32)
        starts = np.arange(0, columns.size + 1, SPARSE_VALUES, dtype=np.int32)
        X = sp.csr_matrix((np.ones(columns.size, np.float32), columns.ravel(), starts), shape=(size, SPARSE_COLUMNS))
        X.sum_duplicates()
        yield X, _labels(X @ w, rng)


def _batch_sizes(n_rows: int) -> Iterator[int]:
    return (min(BATCH_ROWS, n_rows - lo) for lo in range(0, n_rows, BATCH_ROWS))


def _labels(score: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(score + score.std() * rng.standard_normal(score.size) > 0.0, 1, -1)


DATA: dict[str, Callable[[int], Iterator[tuple]]] = {
    "dense uint8": _splice_like,
    "dense float32": _floats,
    "csr float32": _sparse,
}


def _in_memory(store: Any) -> tuple[Any, np.ndarray]:
    parts = [rows.native() for _, rows in store.blocks()]
    stack = np.concatenate if isinstance(parts[0], np.ndarray) else _stacked
    return stack(parts), store.y


def _stacked(parts: list[Any]) -> Any:
    return sp.csr_matrix(sp.vstack(parts, format="csr"))


def _add(table: record.Table, name: str, path: Path, rows: tuple[Any, np.ndarray], threads: int) -> None:
    from softmargin import Store

    files = sorted(path.glob("chunk-*.bin"))
    n_bytes = sum(file.stat().st_size for file in files)
    window = Store(path, memory_bytes=WINDOW_CHUNKS * max(file.stat().st_size for file in files))
    rates = _cold_rates(window, files, threads, table.args.repeats)
    mapped = Store(path)
    kinds: dict[str, Callable[[], tuple]] = {
        "memory": lambda: rows,
        "store": lambda: (mapped,),
        "first": lambda: (Store(path),),
        "window": lambda: (window,),
    }
    for make in kinds.values():  # compiles, checks, and brings the files into the system's cache
        _fit(make(), threads)
    wall: dict[str, list[float]] = {kind: [] for kind in kinds}
    cpu: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(table.args.repeats):
        for kind, make in kinds.items():
            given = make()
            began, began_cpu = time.perf_counter(), time.process_time()
            _fit(given, threads)
            cpu[kind].append(time.process_time() - began_cpu)
            wall[kind].append(time.perf_counter() - began)
    best = {kind: min(seconds) for kind, seconds in wall.items()}
    rates["warm_gbs"] = n_bytes / _best_pass(lambda: mapped, threads, table.args.repeats) / 1e9
    ratio = best["store"] / best["memory"]
    table.add(
        data=name,
        n_rows=mapped.n_rows,
        gb=n_bytes / 1e9,
        n_chunks=len(files),
        threads=threads,
        memory_s=best["memory"],
        store_s=best["store"],
        ratio=ratio,
        median_ratio=median(wall["store"]) / median(wall["memory"]),
        cpu_ratio=min(cpu["store"]) / min(cpu["memory"]),
        first_ratio=best["first"] / best["memory"],
        window_ratio=best["window"] / best["memory"],
        **rates,
        met=bool(ratio <= FACTOR and rates["cold_gbs"] >= DISK_SHARE * rates["dd_gbs"]),
    )


def _fit(given: tuple, threads: int) -> None:
    from softmargin import LinearSVC

    C = C_TIMES_N / given[0].shape[0]
    model = LinearSVC(C=C, fit_intercept=False, solver="ocas", tol=0.0, max_iter=ITERATIONS, n_jobs=threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fits are cut on purpose
        model.fit(*given)


def _cold_rates(window: Any, files: list[Path], threads: int, repeats: int) -> dict[str, float]:
    """Gigabytes a second of X w and of dd, from the disk. Files that are mapped cannot be made cold: none may be."""
    from softmargin import Store

    n_bytes = sum(file.stat().st_size for file in files)
    memory_bytes = WINDOW_CHUNKS * max(file.stat().st_size for file in files)
    seconds: dict[str, list[float]] = {"dd_gbs": [], "cold_gbs": [], "check_gbs": []}
    window.on(Workers(1)).dot(np.ones(window.n_cols))  # checks the chunks
    for _ in range(repeats):
        machine.drop_cached(files)
        seconds["dd_gbs"].append(_dd_seconds(files))
        machine.drop_cached(files)
        seconds["cold_gbs"].append(_best_pass(lambda: window, threads, 1))
        machine.drop_cached(files)
        seconds["check_gbs"].append(_best_pass(lambda: Store(window.path, memory_bytes=memory_bytes), threads, 1))
    return {what: n_bytes / min(found) / 1e9 for what, found in seconds.items()}


def _best_pass(make: Callable[[], Any], threads: int, repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        store = make()
        store.on(Workers(threads)).dot(np.ones(store.n_cols))
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def _dd_seconds(files: list[Path]) -> float:
    began = time.perf_counter()
    for file in files:
        command = ["dd", f"if={file}", "of=/dev/null", "bs=4M"]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    slow = [f"{row['data']}, {row['threads']} threads ({row['ratio']:.2f})" for row in rows if row["ratio"] > FACTOR]
    waits = [
        f"{row['data']}, {row['threads']} threads ({row['cold_gbs'] / row['dd_gbs']:.2f})"
        for row in rows
        if row["cold_gbs"] < DISK_SHARE * row["dd_gbs"]
    ]
    return [
        f"goal: from a store at most {FACTOR:g} times the time in memory: {_verdict(slow)}.",
        f"goal: a cold pass at the speed of dd, at least {DISK_SHARE:g} times it: {_verdict(waits)}.",
        f"a fit: LinearSVC, OCAS, {ITERATIONS} iterations, whole `fit`; in memory, from the store and so on in turn, "
        "the best of each. The files are in the system's cache.",
        "first fit: of a new Store object, which looks at checksums, indices and values of all chunks. Two chunks "
        "mapped: `memory_bytes` is as small as can be, so that every pass maps every chunk anew.",
        "a pass: X w. Cold: the files were taken out of the system's cache before; also for dd, which reads file after "
        "file by 4 MiB.",
    ]


def _verdict(missed: list[str]) -> str:
    return f"missed by {', '.join(missed)}" if missed else "met"


if __name__ == "__main__":
    main()
