"""What an iteration costs on a Dask cluster of two worker processes on this machine, beside one process.

The rows are made on the workers from seeds, so that nothing large travels. Both fits make the same number of
iterations of OCAS; the times are those of the trace, without loading, compiling and judging. Some fits wait in every
round for as long as a slow network would take.
"""

import gc
import time
from typing import Any

import numpy as np

from benchmarks import record
from softmargin import LinearSVC

N_WORKERS, N_PARTITIONS = 2, 16
# Rows, columns, and milliseconds that are added to every round.
CASES = [
    (20_000, 50, 0.0),
    (200_000, 50, 0.0),
    (200_000, 250, 0.0),
    (1_000_000, 10, 0.0),
    (1_000_000, 50, 0.0),
    (2_000_000, 50, 0.0),
    (400_000, 800, 0.0),
    (200_000, 50, 20.0),
    (1_000_000, 50, 100.0),
]
COLUMNS = {
    "rows": ("rows", ",d"),
    "columns": ("columns", "d"),
    "data_mb": ("data MB", ".0f"),
    "intercept": ("intercept", ""),
    "added_ms": ("added to a round, ms", ".0f"),
    "iterations": ("iterations", "d"),
    "local_ms": ("one process, ms an iteration", ".1f"),
    "cluster_ms": ("cluster, ms an iteration", ".1f"),
    "rounds": ("rounds an iteration", ".1f"),
    "ratio": ("cluster / one process", ".2f"),
}


def main() -> None:
    parser = record.options(__doc__)
    parser.add_argument("--iterations", type=int, default=20)
    args = parser.parse_args()
    table = record.Table("on_dask", "An iteration on a Dask cluster", COLUMNS, f"{N_WORKERS}", args)
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=N_WORKERS, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster):
        for n, n_cols, added in [(1600, 50, 1.0)] if args.quick else CASES:
            for intercept in ("free", "none"):
                _add(table, n, n_cols, added, intercept, 3 if args.quick else args.iterations)
    table.finish(
        f"dense float64 columns in {N_PARTITIONS} partitions; one process has {N_WORKERS} threads, the cluster "
        f"{N_WORKERS} workers of one thread each; least of three fits, in turn.",
        "rounds: rounds of tasks, one task for each worker, without those before the first iteration.",
    )


def _block(k: int, n: int, n_cols: int) -> np.ndarray:
    return np.random.default_rng(k).standard_normal((n, n_cols))


def _labels(k: int, n: int, n_cols: int) -> np.ndarray:
    noise = np.random.default_rng(1000 + k).standard_normal(n)
    return np.where(_block(k, n, n_cols) @ np.cos(np.arange(n_cols)) + 3.0 * noise + 1.0 > 0.0, 1, -1)


def _add(table: record.Table, n: int, n_cols: int, added: float, intercept: str, iterations: int) -> None:
    import dask
    import dask.array as da

    from softmargin import dask as on_dask

    own = n // N_PARTITIONS
    parts = [(dask.delayed(_block)(k, own, n_cols), dask.delayed(_labels)(k, own, n_cols)) for k in range(N_PARTITIONS)]
    X = da.concatenate([da.from_delayed(part[0], (own, n_cols), float) for part in parts]).persist()
    y = da.concatenate([da.from_delayed(part[1], (own,), np.int64) for part in parts]).persist()
    X_here = np.concatenate([_block(k, own, n_cols) for k in range(N_PARTITIONS)])
    y_here = np.concatenate([_labels(k, own, n_cols) for k in range(N_PARTITIONS)])
    settings: dict[str, Any] = {
        "solver": "ocas",
        "C": 1.0 / n,
        "tol": 1e-12,
        "max_iter": iterations,
        "fit_intercept": intercept == "free",
    }
    local, cluster, rounds = [], [], 0.0
    for _ in range(3):
        local.append(_milliseconds(LinearSVC(n_jobs=N_WORKERS, **settings).fit(X_here, y_here)))
        with _Rounds(added) as counted:
            cluster.append(_milliseconds(on_dask.LinearSVC(**settings).fit(X, y)))
        rounds = counted.of_iterations / iterations
    table.add(
        rows=n,
        columns=n_cols,
        added_ms=added,
        data_mb=X_here.nbytes / 1e6,
        intercept=intercept,
        iterations=iterations,
        local_ms=min(local),
        cluster_ms=min(cluster),
        rounds=rounds,
        ratio=min(cluster) / min(local),
    )
    del X, y
    gc.collect()


def _milliseconds(model: Any) -> float:
    """Of an iteration, from the trace."""
    trace = model.trace_.to_dict()
    seconds, numbers = trace["seconds"], trace["iteration"]
    return 1e3 * float(seconds[-1] - seconds[0]) / max(1, int(numbers[-1] - numbers[0]))


class _Rounds:
    """Counts the rounds of tasks inside steps of the solver, and makes each of them wait for some milliseconds."""

    def __init__(self, added: float) -> None:
        self._added = added

    def __enter__(self) -> "_Rounds":
        from softmargin.data.partitioned import Partitions
        from softmargin.solvers.cutting_plane.ocas import OCAS

        self.of_iterations, self._in_step = 0, False
        self._usual = Partitions.each, OCAS.step
        each, step = self._usual

        def counted(partitions: Any, *arguments: Any, **options: Any) -> Any:
            self.of_iterations += self._in_step
            time.sleep(1e-3 * self._added)
            return each(partitions, *arguments, **options)

        def marked(solver: Any, problem: Any, state: Any) -> Any:
            self._in_step = True
            try:
                return step(solver, problem, state)
            finally:
                self._in_step = False

        Partitions.each, OCAS.step = counted, marked  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: Any) -> None:
        from softmargin.data.partitioned import Partitions
        from softmargin.solvers.cutting_plane.ocas import OCAS

        Partitions.each, OCAS.step = self._usual  # type: ignore[method-assign]


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")  # fits end at their limit of iterations on purpose
    main()
