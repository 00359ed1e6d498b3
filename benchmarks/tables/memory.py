"""Peak memory of a linear fit in a fresh process: the data, 15 %, the planes and a few vectors, no more.

The parent writes the matrix to plain .npy files; the child compiles on tiny data first (the baseline), then
reads the files straight into place, then fits. Peaks are the high-water mark of resident memory.
"""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks import machine, record
from benchmarks.datasets import Problem, generate, load
from benchmarks.solvers.linear import softmargin

CASES = [
    ("covtype", "dense", "float32"),
    ("covtype", "dense", "float64"),
    ("covtype", "csr", "float32"),
    ("covtype", "csr", "float64"),
    ("20news-bigrams", "csr", "float64"),
]
SLACK = 1.15
VECTORS_N, VECTORS_D = 16, 8  # float64 vectors of lengths n and d that a fit may hold at once
LIMITS = {"20news-bigrams": 2e9}
COLUMNS = {
    "problem": ("problem", ""),
    "storage": ("storage", ""),
    "intercept": ("intercept", ""),
    "iterations": ("iterations", "d"),
    "planes": ("planes", "d"),
    "data_mb": ("data MB", ".0f"),
    "fit_mb": ("peak - baseline MB", ".0f"),
    "allowed_mb": ("allowed MB", ".0f"),
    "over_data": ("(peak - baseline) / data", ".2f"),
    "peak_mb": ("peak of the process MB", ".0f"),
    "limit_mb": ("limit MB", ".0f"),
    "met": ("met", ""),
}


def main() -> None:
    parser = record.options(__doc__)
    parser.add_argument("--child", help="internal: folder of the matrix to fit")
    parser.add_argument("--intercept", default="none", help="internal")
    parser.add_argument("--iterations", type=int, default=300)
    args = parser.parse_args()
    if args.child:
        _child(Path(args.child), args.intercept, args.iterations)
        return
    table = record.Table("memory", "Peak memory of a linear fit", COLUMNS, "2", args)
    iterations = 20 if args.quick else args.iterations
    for case in [None] if args.quick else CASES:
        problem = generate(20_000, 50) if case is None else load(*case)
        with tempfile.TemporaryDirectory() as folder:
            _write(problem, Path(folder))
            shape, size = problem.X.shape, problem.bytes
            for intercept in ("none", "free"):
                _add(table, problem, intercept, _measure(folder, intercept, iterations), shape, size)
    table.finish(
        "allowed: 1.15 x data + planes (each a float64 vector of the shorter side of X and a bit a row, and "
        f"their Gram matrix) + {VECTORS_N} float64 vectors of length n + {VECTORS_D} of length d + for wide sparse "
        "data the rows with other columns that the solver sees (20news; docs/design/003).",
        "baseline: after imports and fits on tiny data, so that the compiler's memory is not counted. "
        f"tol = 0 and max_iter = {iterations}: the planes keep growing; two threads.",
        "limit: for the whole process, interpreter and libraries included (20news: 2 GB with 300 planes).",
    )


def _measure(folder: str, intercept: str, iterations: int) -> dict:
    command = [sys.executable, "-m", "benchmarks.tables.memory", "--child", folder]
    command += ["--intercept", intercept, "--iterations", str(iterations)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=machine.PROJECT)
    return json.loads(done.stdout.splitlines()[-1])


def _add(table, problem: Problem, intercept: str, seen: dict, shape: tuple[int, int], size: int) -> None:
    n, d = shape
    planes = seen["planes"]
    plane_bytes = planes * (8 * min(n, d) + n / 8 + 8 * planes)
    allowed = SLACK * size + plane_bytes + 8 * (VECTORS_N * n + VECTORS_D * d) + _copied(problem)
    used = seen["peak_fit"] - seen["baseline"]
    limit = LIMITS.get(problem.name)
    table.add(
        problem=problem.name,
        storage=problem.form,
        intercept=intercept,
        iterations=seen["iterations"],
        planes=planes,
        data_mb=size / 1e6,
        baseline_mb=seen["baseline"] / 1e6,
        peak_data_mb=seen["peak_data"] / 1e6,
        peak_mb=seen["peak_fit"] / 1e6,
        fit_mb=used / 1e6,
        planes_mb=plane_bytes / 1e6,
        allowed_mb=allowed / 1e6,
        over_data=used / size,
        limit_mb=None if limit is None else limit / 1e6,
        met=bool(used <= allowed and (limit is None or seen["peak_fit"] <= limit)),
    )


def _copied(problem: Problem) -> int:
    """Bytes of the rows that the solver sees in place of wide sparse ones, without what both share."""
    from softmargin.data.columns import Columns
    from softmargin.data.convert import as_rows

    columns = Columns.of(as_rows(problem.X), True)
    if columns.inner is columns.rows:
        return 0
    given = columns.rows.flat[:3]
    stored = [array for part in columns.inner.parts for array in part[:3]]
    return sum(array.nbytes for array in stored if not any(np.shares_memory(array, other) for other in given))


def _write(problem: Problem, folder: Path) -> None:
    X = problem.X
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr} if sp.issparse(X) else {"dense": X}
    for name, array in (parts | {"y": problem.y, "shape": np.array(X.shape)}).items():
        np.save(folder / f"{name}.npy", array)


def _read(folder: Path) -> Problem:
    y, shape = np.load(folder / "y.npy"), tuple(np.load(folder / "shape.npy").tolist())
    if (folder / "dense.npy").exists():
        return Problem("child", "dense", np.load(folder / "dense.npy"), y)
    X = sp.csr_matrix(tuple(np.load(folder / f"{part}.npy") for part in ("data", "indices", "indptr")), shape=shape)
    return Problem("child", "csr", X, y)


def _child(folder: Path, intercept: str, iterations: int) -> None:
    settings = {"solver": "ocas", "tol": 0.0, "n_jobs": 2}
    for storage in ("dense", "csr"):
        for dtype in ("float32", "float64"):
            tiny = generate(200, 20, storage, dtype)
            _fit(tiny, intercept, max_iter=30, **settings)
    seen = {"baseline": _peak_bytes()}
    problem = _read(folder)
    seen["peak_data"] = _peak_bytes()
    model = _fit(problem, intercept, max_iter=iterations, **settings)
    planes = model.trace_["planes"]
    seen |= {"peak_fit": _peak_bytes(), "iterations": int(model.n_iter_), "planes": int(planes.max())}
    print(json.dumps(seen))


def _fit(problem: Problem, intercept: str, **settings):
    """Without the judge of the benchmarks, whose blocks would count as memory of the fit."""
    return softmargin(problem, 1.0, free_intercept=intercept == "free", judge=False, **settings).model


def _peak_bytes() -> int:
    """The high-water mark. On Linux ru_maxrss inherits the parent's, so the kernel's own line comes first."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        unit = 1 if sys.platform == "darwin" else 1024
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
