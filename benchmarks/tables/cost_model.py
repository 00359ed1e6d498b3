"""What an iteration on a Dask cluster should cost: a formula fitted to `on_dask`, and what it says of a billion rows.

    seconds of an iteration = rounds (a + latency) + worker's bytes / rate + worker's rows c + travelling / network

    a           what Dask takes for a round of tasks, one for each worker
    rate        at which one core reads its rows in both passes of an iteration together
    c           what vectors with an entry for each row cost
    travelling  in each iteration the client gets a vector of the columns from each group, and about n^(2/3) rows twice

a, rate and c are fitted to the runs of `on_dask` without added latency, the others are assumptions, which the table
names. Runs with added latency, and those of `ocas_paper_headline` on Dask, check the formula. This script measures
nothing itself.
"""

import json
from typing import Any

import numpy as np
from scipy.optimize import nnls

from benchmarks import record
from benchmarks.datasets import splice_like
from benchmarks.tables import _paper

N_WORKERS = 2  # of `on_dask`
ROW_BYTES = 4 * 8  # of a row that travels: f, df, v and c
# Vectors of float64 that a worker holds for each row: v, f, df, the next f, two planes' c, the weights of the samples
# and labels.
HELD_VECTORS = 8
MAX_GROUPS = 32
LATENCY, NETWORK = 1e-3, 1.25e9  # seconds of a round, bytes a second: a data centre with 10 Gbit/s
ITERATIONS = 100
# Rows, columns, bytes of a value: splice sites as in the OCAS paper, and float32 tables.
DATA = {
    "15 million x 564, uint8": (15_028_326, 564, 1),
    "1 billion x 564, uint8": (1_000_000_000, 564, 1),
    "1 billion x 100, float32": (1_000_000_000, 100, 4),
}
WORKERS = (2, 10, 32, 100)
CORES = (1, 16)  # of a worker
COLUMNS = {
    "what": ("", ""),
    "data": ("data", ""),
    "workers": ("workers", "d"),
    "cores": ("cores of each", "d"),
    "worker_gb": ("memory of a worker, GB", ".1f"),
    "measured_ms": ("measured, ms an iteration", ".1f"),
    "iteration_ms": ("formula, ms an iteration", ".1f"),
    "rounds_ms": ("of it rounds", ".1f"),
    "rows_ms": ("of it rows", ".1f"),
    "travel_ms": ("of it travelling", ".1f"),
    "fit_minutes": (f"{ITERATIONS} iterations, minutes", ".1f"),
    "ratio": ("formula / measured", ".2f"),
}


def main() -> None:
    parser = record.options(__doc__)
    parser.add_argument("--render", action="store_true", help="the same as without: nothing is measured")
    args = parser.parse_args()
    args.only, args.render = None, False
    table = record.Table("cost_model", "What training on a Dask cluster costs, on paper", COLUMNS, "none", args)
    _paper.produce(table, _measure, _notes)


def _measure(table: record.Table) -> None:
    runs = _rows_of("on_dask")
    known = [run for run in runs if not run["added_ms"]]
    terms = _fitted(known)
    for run in runs:
        parts = _parts(terms, run["rounds"], run["added_ms"], 1e6 * run["data_mb"] / N_WORKERS, run["rows"] / N_WORKERS)
        table.add(
            what="fitted" if run in known else "checked",
            data=f"{run['rows']:,} x {run['columns']}, float64, {run['intercept']}, + {run['added_ms']:.0f} ms",
            workers=N_WORKERS,
            cores=1,
            measured_ms=run["cluster_ms"],
            **parts,
            ratio=parts["iteration_ms"] / run["cluster_ms"],
        )
    rounds = max(run["rounds"] for run in known)
    for row in _rows_of("ocas_paper_headline"):
        if row["where"].startswith("Dask"):
            _add_headline(table, terms, rounds, row)
    for name, (n_rows, n_cols, n_bytes) in DATA.items():
        for workers in WORKERS:
            for cores in CORES:
                table.add(**_predicted(terms, rounds, name, n_rows, n_cols, n_bytes, workers, cores))
    a, per_byte, per_row = terms
    table.notes.append(
        f"fitted: a = {a:.1f} ms, rate = {1e-6 / max(per_byte, 1e-12):.1f} GB/s, c = {1e6 * per_row:.1f} ns."
    )


def _rows_of(name: str) -> list[dict[str, Any]]:
    path = record.RESULTS / f"{name}.json"
    if not path.exists():
        raise SystemExit(f"There is no {path}: run python -m benchmarks.tables.{name} first.")
    return json.loads(path.read_text(encoding="utf-8"))["rows"]


def _add_headline(table: record.Table, terms: np.ndarray, rounds: float, row: dict[str, Any]) -> None:
    """Whole fits, with the judge and what comes before the first iteration, so that the formula should say less."""
    own, width = row["n_rows"] / N_WORKERS, splice_like.N_FEATURES
    parts = _parts(terms, rounds, 0.0, own * width, own)
    measured = 1e3 * row["seconds"] / row["iterations"]
    table.add(
        what="checked",
        data=f"{row['n_rows']:,} x {width}, uint8, none, whole fit, C = {row['C']:.2g}",
        workers=N_WORKERS,
        cores=1,
        measured_ms=measured,
        **parts,
        ratio=parts["iteration_ms"] / measured,
    )


def _fitted(runs: list[dict[str, Any]]) -> np.ndarray:
    """a in milliseconds, milliseconds a byte, and milliseconds a row; none negative, all runs of equal weight."""
    measured = np.array([run["cluster_ms"] for run in runs])
    terms = np.array([[run["rounds"], 1e6 * run["data_mb"] / N_WORKERS, run["rows"] / N_WORKERS] for run in runs])
    scale = terms.max(axis=0)
    return nnls(terms / scale / measured[:, None], np.ones(measured.size))[0] / scale


def _parts(
    terms: np.ndarray,
    rounds: float,
    latency_ms: float,
    worker_bytes: float,
    worker_rows: float,
    travelling: float = 0.0,
) -> dict[str, float]:
    a, per_byte, per_row = terms
    parts = {
        "rounds_ms": rounds * (a + latency_ms),
        "rows_ms": per_byte * worker_bytes + per_row * worker_rows,
        "travel_ms": 1e3 * travelling / NETWORK,
    }
    return parts | {"iteration_ms": sum(parts.values())}


def _predicted(
    terms: np.ndarray, rounds: float, name: str, n_rows: int, n_cols: int, n_bytes: int, workers: int, cores: int
) -> dict[str, Any]:
    busy = min(workers, MAX_GROUPS)
    own = n_rows / busy
    travelling = 8 * n_cols * MAX_GROUPS + 2 * ROW_BYTES * n_rows ** (2 / 3)
    parts = _parts(terms, rounds, 1e3 * LATENCY, own * n_cols * n_bytes / cores, own / cores, travelling)
    held = own * (n_cols * n_bytes + 8 * HELD_VECTORS + ITERATIONS / 8)
    return {
        "what": "predicted",
        "data": name,
        "workers": workers,
        "cores": cores,
        "worker_gb": held / 1e9,
        **parts,
        "fit_minutes": ITERATIONS * parts["iteration_ms"] / 6e4,
    }


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    ratios = {what: [row["ratio"] for row in rows if row["what"] == what] for what in ("fitted", "checked")}
    said = [
        f"{what} runs: the formula gives {min(found):.2f} to {max(found):.2f} times what was measured."
        for what, found in ratios.items()
        if found
    ]
    return [
        *said,
        f"assumed: a round takes {1e3 * LATENCY:g} ms longer on a network than on one machine, the client receives "
        f"{NETWORK / 1e9:g} GB/s, cores share the rows of a worker evenly and do not wait for memory, and a fit takes "
        f"{ITERATIONS} iterations. Loading the rows, the judge and lost workers are not in it.",
        f"workers: the partitions form at most {MAX_GROUPS} groups, so that more workers than that stay idle.",
        "not checked: more than two workers, real networks, more than one core a worker.",
    ]


if __name__ == "__main__":
    main()
