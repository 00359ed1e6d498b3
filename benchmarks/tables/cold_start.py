"""Cold start: what the first fit costs beyond the imports that any user of scikit-learn and Numba pays.

On a 200 x 20 problem, every measurement in a fresh process: with an empty compile cache (the first fit ever
on a machine), and with the cache that it left (the first fit of a later process). `import softmargin` must
not import Numba.
"""

import json
import subprocess
import sys
import tempfile
from statistics import median

from benchmarks import machine, record

EVER, LATER = 5.0, 0.7  # seconds beyond imports
KINDS = {"dense float64": ("dense", "float64"), "csr float32": ("csr", "float32")}
COLUMNS = {
    "what": ("what", ""),
    "storage": ("storage", ""),
    "median_s": ("median s", ".3f"),
    "best_s": ("best s", ".3f"),
    "worst_s": ("worst s", ".3f"),
    "target": ("target s", ".1f"),
    "met": ("met", ""),
}
CHILD = """
import time
began = time.perf_counter()
import numpy, scipy.sparse, sklearn.base, sklearn.utils.validation, numba
imported = time.perf_counter()
import json, sys
storage, dtype = sys.argv[1:]
rng = numpy.random.default_rng(0)
X = rng.standard_normal((200, 20)).astype(dtype)
y = numpy.where(X @ rng.standard_normal(20) + rng.standard_normal(200) > 0, 1, -1)
if storage == "csr":
    X = scipy.sparse.csr_matrix(X)
ready = time.perf_counter()
from softmargin import LinearSVC
LinearSVC().fit(X, y)
first = time.perf_counter()
LinearSVC().fit(X, y)
second = time.perf_counter()
print(json.dumps({"imports": imported - began, "first": first - ready, "second": second - first}))
"""
NUMBA_CHECK = "import sys, softmargin; from softmargin import LinearSVC; print('numba' in sys.modules)"


def main() -> None:
    parser = record.options(__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    repeats = 1 if args.quick else args.repeats
    table = record.Table("cold_start", "Cold start on a 200 x 20 problem", COLUMNS, "1", args)
    _run(NUMBA_CHECK, None)  # brings the files of Python's packages into the system's cache
    for name, kind in list(KINDS.items())[: 1 if args.quick else None]:
        ever, later = [], []
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as cache:
                ever.append(json.loads(_run(CHILD, cache, *kind)))
                later.append(json.loads(_run(CHILD, cache, *kind)))
        _add(
            table,
            "imports: numpy, scipy, scikit-learn, numba",
            name,
            [run["imports"] for run in ever + later],
        )
        _add(table, "first fit ever, beyond imports", name, [run["first"] for run in ever], EVER)
        _add(table, "first fit of a new process, beyond imports", name, [run["first"] for run in later], LATER)
        _add(table, "second fit in the process", name, [run["second"] for run in later])
    clean = _run(NUMBA_CHECK, None).strip() == "False"
    table.add(what="`import softmargin` (and LinearSVC) leaves Numba alone", storage="-", met=clean)
    table.finish(
        "beyond imports: from the end of the imports of the first line until `fit` has returned; "
        "`import softmargin` counts. LinearSVC with its defaults.",
        "ever: NUMBA_CACHE_DIR is an empty folder. new process: the folder as the first left it. met: by the median.",
    )


def _add(table, what: str, storage: str, seconds: list[float], target: float | None = None) -> None:
    middle = median(seconds)
    met = None if target is None else middle <= target
    table.add(
        what=what,
        storage=storage,
        median_s=middle,
        best_s=min(seconds),
        worst_s=max(seconds),
        all_s=seconds,
        target=target,
        met=met,
    )


def _run(code: str, cache: str | None, *arguments: str) -> str:
    environment = machine.as_installed()
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment, cwd=machine.PROJECT)
    return done.stdout


if __name__ == "__main__":
    main()
