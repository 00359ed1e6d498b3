"""The OCAS paper's headline, 15 million rows in 671 seconds on 16 CPUs: in memory, from disk, and on Dask.

The paper's human splice sites are not to be had; `datasets/splice_like.py` generates rows of the same size and kind.
`ocas_paper_table4` has the effect of threads on other data.

    python -m benchmarks.tables.ocas_paper_headline --folder /large/disk           # 12 GB of memory, 9 GB of the disk
    python -m benchmarks.tables.ocas_paper_headline --folder /large/disk --dask    # with lines for two Dask workers
    python -m benchmarks.tables.ocas_paper_headline --folder /large/disk --rows 100000 1000000 --out somewhere
"""

import json
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine, record, writing
from benchmarks.datasets import splice_like
from benchmarks.datasets.files import cache_folder
from benchmarks.tables import _paper
from benchmarks.tables._parts import TITLES, cluster_parts_timed, parts_timed

PAPER_C = 1e-4
PAPER_SECONDS = {1: 3087.0, 2: 1742.0, 16: 671.0}
PAPER_PARTS = {  # CPUs: seconds
    1: {"output": 2476.0, "search": 238.0, "plane": 270.0},
    2: {"output": 1300.0, "search": 184.0, "plane": 155.0},
    16: {"output": 410.0, "search": 117.0, "plane": 45.0},
}
SIZES = (1_000_000, 3_000_000, 10_000_000, splice_like.PAPER_ROWS)
# C of the full set; a smaller one has the same C n. The paper's C, and larger ones, which take more iterations.
FACTORS = (1.0, 100.0, 1000.0)
GROWTH_FACTOR = 100.0  # sizes below the largest, sparse matrices and small windows are fitted with this one only
TOL = 1e-3
WINDOW_BYTES = 1 << 30
OWN_LIMIT = 4e9  # bytes of its own that a fit from disk may take
DISK_FACTOR = 1.3  # of the time in memory, with two threads
WARM_ROWS = 3000
FORMS = DENSE, CSR = "dense", "csr"  # arrays of uint8, or sparse matrices
MEMORY, DASK = "memory", "Dask, 2 workers"
FROM_DISK = COLD, DISK, WINDOW = "disk, cold", "disk", "disk, 1 GiB mapped"
COLUMNS = {
    "where": ("rows in", ""),
    "form": ("form", ""),
    "n_rows": ("rows", ",d"),
    "C": ("C", ".3g"),
    "threads": ("threads", "d"),
    "iterations": ("iterations", "d"),
    "gap": ("relative gap", ".1e"),
    **{part: (f"{title} s", ".4g") for part, title in TITLES.items()},
    "rest": ("the rest s", ".4g"),
    "seconds": ("total s", ".4g"),
    "speed_up": ("speed-up", ".2f"),
    "own_gb": ("own memory GB", ".2f"),
}
REMARKS: tuple[str, ...] = (
    "1 GiB mapped: chunks that do not stay mapped are mapped anew in every pass, page by page. Tried, and kept: the "
    "first chunks stay mapped, a chunk is not checked again, its pages are touched ahead, and large pages are asked "
    "for (docs/design/013). So all of the free memory may be mapped by default.",
)


def main() -> None:
    parser = record.options(__doc__)
    parser.add_argument("--folder", type=Path, help="folder for the stores (default: the benchmarks' cache)")
    parser.add_argument("--rows", type=int, nargs="+", default=list(SIZES), help="numbers of rows, ascending")
    parser.add_argument("--no-csr", action="store_true", help="leave out the sparse matrices, which are on disk only")
    parser.add_argument("--dask", action="store_true", help="on two Dask workers too (needs softmargin.dask)")
    parser.add_argument("--only-dask", action="store_true", help="nowhere else: with --again for these lines alone")
    parser.add_argument("--keep", action="store_true", help="keep the stores, for another run")
    parser.add_argument("--max-seconds", type=float, default=3600.0, help="limit of one fit")
    parser.add_argument("--again", action="store_true", help="put the sizes of --rows in place of those in the results")
    parser.add_argument("--render", action="store_true", help="measure nothing: write the last results again")
    args = parser.parse_args()
    is_whole = args.rows == list(SIZES) and not args.only_dask
    args.only = None if args.again or is_whole else "some lines"  # not written without --out
    args.folder = args.folder or cache_folder()
    if args.quick:
        args.rows, args.max_seconds = [2000, 4000], 1.0
    args.dask |= args.only_dask
    if args.dask and find_spec("softmargin.dask") is None:
        parser.error("--dask needs softmargin.dask, which this version of softmargin has not.")
    title = "OCAS paper, the headline: 15 million splice sites"
    table = record.Table("ocas_paper_headline", title, COLUMNS, "1 and 2", args)
    if args.again:
        _measure_again(table)
        args.render = True
    _paper.produce(table, _measure, _notes, REMARKS)


def _measure_again(table: record.Table) -> None:
    """Put new lines in place of the last results', which are written; the header then names both commits."""
    path = _paper.folder(table.args) / f"{table.name}.json"
    kept = json.loads(path.read_text(encoding="utf-8"))
    _measure(table)
    new = [row for row in table.rows if "factor" in row]
    again = {(row["n_rows"], row["where"]) for row in new}
    rows = [row for row in kept["rows"] if "factor" not in row or (row["n_rows"], row["where"]) not in again] + new
    rows.sort(key=lambda row: ("factor" in row, row["n_rows"]))
    commits = kept["machine"]["commit"].split(", ")
    kept["machine"]["commit"] = ", ".join(dict.fromkeys([*commits, table.machine["commit"]]))
    writing.write_json(path, kept | {"rows": rows})


def _measure(table: record.Table) -> None:
    args = table.args
    for cpus, parts in PAPER_PARTS.items():
        seconds = PAPER_SECONDS[cpus]
        table.add(
            where="the paper",
            form=CSR,
            n_rows=splice_like.PAPER_ROWS,
            C=PAPER_C,
            threads=cpus,
            **parts,
            seconds=seconds,
            speed_up=PAPER_SECONDS[1] / seconds,
        )
    for form in FORMS:
        _fit(*splice_like.in_memory(WARM_ROWS, form), C=1.0, threads=2, limit=1.0)  # compiles
    for n_rows in args.rows:
        is_largest = n_rows == (SIZES if args.again else args.rows)[-1]
        factors = FACTORS if is_largest else (GROWTH_FACTOR,)
        if not args.only_dask:
            _on_one_machine(table, n_rows, factors, is_largest and not args.no_csr)
        if args.dask:
            _on_dask(table, n_rows, factors)


def _on_one_machine(table: record.Table, n_rows: int, factors: tuple[float, ...], has_csr: bool) -> None:
    with _stored(table, n_rows, DENSE) as path:
        _on_disk(table, COLD, path, n_rows, DENSE, GROWTH_FACTOR)
        for factor in factors:
            _on_disk(table, DISK, path, n_rows, DENSE, factor)
        _on_disk(table, WINDOW, path, n_rows, DENSE, GROWTH_FACTOR)
    if has_csr:
        with _stored(table, n_rows, CSR) as path:
            _on_disk(table, COLD, path, n_rows, CSR, GROWTH_FACTOR)
    _in_memory(table, n_rows, factors)


@contextmanager
def _stored(table: record.Table, n_rows: int, form: str) -> Iterator[Path]:
    """A store of these rows, which is removed in the end unless it is to be kept."""
    path = splice_like.store(table.args.folder, n_rows, form)
    try:
        yield path
    finally:
        if not table.args.keep:
            shutil.rmtree(path)


def _on_disk(table: record.Table, where: str, path: Path, n_rows: int, form: str, factor: float) -> None:
    """The store is not in the system's cache at the beginning of a cold fit. Every fit checks all chunks once."""
    from softmargin import Store

    if where == COLD:
        machine.drop_cached(path.iterdir())
    store = Store(path, memory_bytes=WINDOW_BYTES if where == WINDOW else None)
    limit = table.args.max_seconds
    _add(table, where, n_rows, factor, 2, lambda C: _fit(store, None, C, 2, limit), form=form)


def _in_memory(table: record.Table, n_rows: int, factors: tuple[float, ...]) -> None:
    X, y = splice_like.in_memory(n_rows, DENSE)
    for factor in factors:
        for threads in (1, 2):
            _add(table, MEMORY, n_rows, factor, threads, lambda C, t=threads: _fit(X, y, C, t, table.args.max_seconds))


def _on_dask(table: record.Table, n_rows: int, factors: tuple[float, ...]) -> None:
    """Each of two workers, processes with one thread, makes its own blocks of rows and keeps them."""
    import dask
    import dask.array as da
    from dask.distributed import Client, LocalCluster, wait

    from softmargin.dask import LinearSVC

    sizes = [
        min(splice_like.BLOCK_ROWS, n_rows - k * splice_like.BLOCK_ROWS) for k in range(splice_like.n_blocks(n_rows))
    ]
    made = [dask.delayed(splice_like.block)(k, n_rows, DENSE) for k in range(len(sizes))]
    width = splice_like.N_FEATURES
    X = da.concatenate(
        [da.from_delayed(part[0], (n, width), dtype=np.uint8) for part, n in zip(made, sizes, strict=True)]
    )
    y = da.concatenate([da.from_delayed(part[1], (n,), dtype=np.int64) for part, n in zip(made, sizes, strict=True)])
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=None)
    with cluster, Client(cluster) as client:
        X, y = client.persist([X, y])
        wait([X, y])

        def fit(C: float, X: Any = X, y: Any = y) -> Any:
            model = LinearSVC(C=C, fit_intercept=False, tol=TOL, max_seconds=table.args.max_seconds)
            return model.fit(X, y)

        fit(1.0, *(da.from_array(part, chunks=WARM_ROWS // 4) for part in splice_like.in_memory(WARM_ROWS, DENSE)))
        for factor in factors:
            _add(table, DASK, n_rows, factor, 2, fit, parts_timed=lambda: cluster_parts_timed(client))


def _fit(X: Any, y: Any, C: float, threads: int, limit: float) -> Any:
    from softmargin import LinearSVC

    model = LinearSVC(C=C, fit_intercept=False, solver="ocas", tol=TOL, n_jobs=threads, max_seconds=limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what ended a fit early is in the table
        return model.fit(X) if y is None else model.fit(X, y)


def _add(
    table: record.Table,
    where: str,
    n_rows: int,
    factor: float,
    threads: int,
    fit: Callable[[float], Any],
    *,
    form: str = DENSE,
    parts_timed: Callable[[], Any] = parts_timed,
) -> None:
    C = factor * PAPER_C * splice_like.PAPER_ROWS / n_rows
    with parts_timed() as parts, machine.watching_memory() as memory:
        began = time.perf_counter()
        model = fit(C)
        seconds = time.perf_counter() - began
    one = next((row["seconds"] for row in table.rows if _is_base(row, n_rows, factor)), seconds)
    if threads == 1:
        one = seconds
    table.add(
        where=where,
        form=form,
        n_rows=n_rows,
        C=C,
        factor=factor,
        threads=threads,
        iterations=int(model.n_iter_),
        gap=model.certificate_.relative_gap,
        primal=model.certificate_.primal,
        status=model.status_.name,
        **parts,
        rest=seconds - sum(parts.values()),
        seconds=seconds,
        speed_up=one / seconds if where == MEMORY else None,
        own_gb=memory["grown"] / 1e9,
    )


def _is_base(row: dict[str, Any], n_rows: int, factor: float) -> bool:
    return (row["where"], row["n_rows"], row.get("factor"), row["threads"]) == (MEMORY, n_rows, factor, 1)


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    ours = [row for row in rows if "factor" in row]
    said = [
        f"{row['where']}, {row['form']}, C = {row['C']:.3g}, 2 threads: {PAPER_SECONDS[16] / row['seconds']:.1f} times "
        f"as fast as the paper's 16 CPUs, in {row['iterations']} iterations."
        for row in ours
        if (row["n_rows"], row["threads"]) == (splice_like.PAPER_ROWS, 2)
    ]
    in_memory = {(row["n_rows"], row["factor"]): row for row in ours if (row["where"], row["threads"]) == (MEMORY, 2)}
    for row in ours:
        beside = in_memory.get((row["n_rows"], row["factor"]))
        if row["where"] in FROM_DISK and row["form"] == DENSE and beside:
            ratio = row["seconds"] / beside["seconds"]
            verdict = "" if row["where"] == COLD else f"; goal {DISK_FACTOR:g}: {_verdict(ratio <= DISK_FACTOR)}"
            said.append(
                f"{row['where']}, {row['n_rows']:,d} rows, C = {row['C']:.3g}: {ratio:.2f} times the seconds in memory"
                f"{verdict}."
            )
    for where, threads in dict.fromkeys((row["where"], row["threads"]) for row in ours):
        like = (where, DENSE, threads, GROWTH_FACTOR)
        line = [r for r in ours if (r["where"], r["form"], r["threads"], r["factor"]) == like]
        if len(line) > 1:
            said.append(
                f"growth, {where}, {threads} threads: seconds as rows to the power {_exponent(line, 'seconds'):.2f}, "
                f"an iteration {_exponent(line, 'iteration'):.2f}."
            )
    most = max((row["own_gb"] for row in ours if row["where"] in FROM_DISK), default=0.0)
    above = [row for row in ours if row["status"] != "OPTIMAL"]
    return [
        "Other conditions than the paper's: generated rows in place of its human DNA, two threads in place of 16 CPUs, "
        "a stricter stop rule; fits from disk and on Dask are not in the paper.",
        *said,
        f"own memory of fits from disk: at most {most:.2f} GB, "
        f"{'below' if 1e9 * most < OWN_LIMIT else '**above**'} the {OWN_LIMIT / 1e9:g} GB that they may take.",
        "every fit reached its tolerance."
        if not above
        else f"**not** to the tolerance: {len(above)} fits, see the gap.",
        f"data: generated, {splice_like.N_FEATURES} binary features, a quarter of them 1, "
        f"{splice_like.PAPER_POSITIVES / splice_like.PAPER_ROWS:.2%} positive rows, as in the paper's data. C n is the "
        "paper's, and up to 1,000 times that. Stop rule: a relative gap of 1e-3, certified; the paper's is "
        "(F - F_t) / (C n) <= 1e-3, which is weaker. No intercept, as in the paper.",
        f"disk: a store, all of which a fit checks during its first pass. {COLD}: not in the system's cache at the "
        f"beginning; {DISK}: read before, all of it may be mapped; {WINDOW}: read before, chunks of that much mapped.",
        "own memory: the most that the process took for itself during the fit; mapped files are not counted, nor rows "
        "that were in memory before. For Dask it is that of the program, not of the workers.",
        "moving, cutting: the new best point, its risk and the rows of the next plane. The paper times sorting as its "
        "line search; ours does not sort. On Dask the products take the seconds of the slower worker; line search and "
        "moving are the rest of the rounds in which they are made, so they include waiting and what travels.",
    ]


def _verdict(is_met: bool) -> str:
    return "met" if is_met else "**missed**"


def _exponent(line: list[dict[str, Any]], what: str) -> float:
    """The slope of the logarithm of the seconds, of a fit or of an iteration, over that of the rows."""
    seconds = [row["seconds"] / (max(1, row["iterations"]) if what == "iteration" else 1) for row in line]
    return float(np.polyfit(np.log([row["n_rows"] for row in line]), np.log(seconds), 1)[0])


if __name__ == "__main__":
    main()
