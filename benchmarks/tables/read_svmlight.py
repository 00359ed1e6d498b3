"""Reading svmlight text: softmargin with one and two threads, and scikit-learn's reader beside it.

The text lies decompressed in a temporary file, which the system keeps in memory. The readers take turns, each time in
another order, because the first after a large one has to find its memory anew. A last row is the first read ever on a
machine: what compiling the parser costs.
"""

import io
import lzma
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from sklearn.datasets import load_svmlight_file

from benchmarks import machine, record
from benchmarks.datasets import files
from softmargin import load_svmlight

NAMES = ("covtype", "mnist", "rcv1", "20news-bigrams")
RATE = 150.0  # MB/s with one thread
COMPILE = 1.5  # seconds
COLUMNS = {
    "file": ("file", ""),
    "reader": ("reader", ""),
    "threads": ("threads", "d"),
    "text_mb": ("text MB", ".1f"),
    "best_s": ("best s", ".3f"),
    "median_s": ("median s", ".3f"),
    "rate": ("MB/s", ".0f"),
    "times": ("times scikit-learn", ".1f"),
    "same": ("same arrays", ""),
    "target": ("target", ""),
    "met": ("met", ""),
}
READERS = {
    ("scikit-learn", 1): load_svmlight_file,
    ("softmargin", 1): lambda path: load_svmlight(path, n_jobs=1),
    ("softmargin", 2): lambda path: load_svmlight(path, n_jobs=2),
}
CHILD = """
import sys, time
import numpy, scipy.sparse, numba
from softmargin import load_svmlight
began = time.perf_counter()
load_svmlight(sys.argv[1])
print(time.perf_counter() - began)
"""


def main() -> None:
    parser = record.options(__doc__)
    parser.add_argument("--repeats", type=int, default=6)
    args = parser.parse_args()
    repeats = 1 if args.quick else args.repeats
    table = record.Table("read_svmlight", "Reading svmlight text", COLUMNS, "1 and 2", args)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.txt")
        for name in ("generated",) if args.quick else NAMES:
            text = _generated() if args.quick else _text(name)
            Path(path).write_bytes(text)
            _add(table, name, path, len(text), repeats)
        Path(path).write_bytes(_generated())
        _add_compile(table, path, repeats)
    table.finish(
        f"rate: text bytes by the best of {repeats} reads, in 10^6 bytes. target: {RATE:.0f} MB/s with one thread.",
        "same: data, indices, indptr, labels and shape equal those of scikit-learn's reader.",
        "compiling: the first `load_svmlight` in a process with an empty NUMBA_CACHE_DIR; the imports of NumPy, SciPy "
        "and Numba come before. met: by the median.",
    )


def _add(table, name: str, path: str, n_bytes: int, repeats: int) -> None:
    seconds: dict[tuple[str, int], list[float]] = {reader: [] for reader in READERS}
    expected = load_svmlight_file(path)
    same = {reader: _same(READERS[reader](path), expected) for reader in READERS}
    for turn in range(repeats):
        for k in range(len(READERS)):
            reader = list(READERS)[(turn + k) % len(READERS)]
            began = time.perf_counter()
            READERS[reader](path)
            seconds[reader].append(time.perf_counter() - began)
    for (reader, threads), times in seconds.items():
        rate = n_bytes / min(times) / 1e6
        has_target = (reader, threads) == ("softmargin", 1)
        table.add(
            file=name,
            reader=reader,
            threads=threads,
            text_mb=n_bytes / 1e6,
            best_s=min(times),
            median_s=median(times),
            all_s=times,
            rate=rate,
            times=min(seconds["scikit-learn", 1]) / min(times),
            same=same[reader, threads],
            target=f"{RATE:.0f} MB/s" if has_target else "",
            met=rate >= RATE if has_target else None,
        )


def _add_compile(table, path: str, repeats: int) -> None:
    first = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, "-c", CHILD, path]
            environment = os.environ | {"NUMBA_CACHE_DIR": cache}
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment, cwd=machine.PROJECT)
            first.append(float(done.stdout))
    table.add(
        file="generated",
        reader="softmargin, compiling",
        threads=1,
        text_mb=os.path.getsize(path) / 1e6,
        best_s=min(first),
        median_s=median(first),
        all_s=first,
        target=f"{COMPILE} s",
        met=median(first) <= COMPILE,
    )


def _same(found: tuple, expected: tuple) -> bool:
    (X, y), (Z, z) = found, expected
    pairs = [(X.data, Z.data), (X.indices, Z.indices), (X.indptr, Z.indptr), (y, z)]
    return X.shape == Z.shape and all(np.array_equal(ours, theirs) for ours, theirs in pairs)


def _text(name: str) -> bytes:
    file = files.FILES[name]
    source = files.data_folder() / file.path
    if not source.exists():
        raise files.MissingData(f"The file {source} is missing: {file.what}. Name its folder in SOFTMARGIN_DATA.")
    return lzma.decompress(source.read_bytes())


def _generated() -> bytes:
    rng = np.random.default_rng(0)
    out = io.StringIO()
    for label in rng.integers(0, 2, 5000):
        columns = np.flatnonzero(rng.random(50) < 0.3) + 1
        out.write(f"{label} " + " ".join(f"{j}:{x:.4f}" for j, x in zip(columns, rng.random(50), strict=False)) + "\n")
    return out.getvalue().encode()


if __name__ == "__main__":
    main()
