"""How close an iteration of OCAS is to the machine's limit.

An iteration needs one product with X, one with its transpose, and a line search over vectors of length n:
memory has to deliver 2 * bytes of X + 3 * 8 n bytes. That, over the rate at which this machine reads memory
with as many threads, is the bound. (Data that fit into the last-level cache may beat it, and so may
iterations whose plane leaves many rows out: they are not read for the product with the transpose.)

Sparse data have a second limit: each stored value needs an entry of a vector that lies anywhere. The column "with
gathers" is the bound in which the time to stream the indices is replaced by the measured time of reading a vector at
these very indices, without arithmetic and without values.
"""

import numpy as np

from benchmarks import machine, record
from benchmarks.datasets import Problem, generate, load
from benchmarks.solvers.linear import softmargin

TARGETS = {"dense": 1.5, "csr": 2.0}
CASES = [
    *[("covtype", storage, dtype) for storage in ("dense", "csr") for dtype in ("float32", "float64")],
    *[("mnist", "dense", dtype) for dtype in ("float32", "float64", "uint8")],
    *[(name, "csr", dtype) for name in ("rcv1", "20news-bigrams") for dtype in ("float32", "float64")],
]
COLUMNS = {
    "problem": ("problem", ""),
    "storage": ("storage", ""),
    "megabytes": ("MB", ".0f"),
    "intercept": ("intercept", ""),
    "threads": ("threads", "d"),
    "iterations": ("iterations", "d"),
    "mean_ms": ("mean ms", ".2f"),
    "bound_ms": ("bound ms", ".2f"),
    "ratio": ("ratio", ".2f"),
    "early_ratio": ("ratio, 10 to 40", ".2f"),
    "target": ("target", ".1f"),
    "met": ("met", ""),
    "gather_bound_ms": ("with gathers ms", ".2f"),
    "gather_ratio": ("ratio to that", ".2f"),
}


def main() -> None:
    parser = record.options(__doc__)
    parser.add_argument("--only", help="one problem of the list")
    parser.add_argument("--repeats", type=int, default=5, help="rounds over all cases; of each the median counts")
    args = parser.parse_args()
    title = "Time of an OCAS iteration against the time to stream its data"
    table = record.Table("iteration_limit", title, COLUMNS, "as in the table", args)
    found: dict[tuple, list[dict]] = {}
    for turn in range(args.repeats):
        print(f"round {turn + 1} of {args.repeats}", flush=True)
        for problem in _problems(args):
            for intercept in ("none", "free"):
                rates = _rates(args.quick)
                for threads in (1, 2):
                    row = _row(problem, intercept, threads, rates[threads])
                    found.setdefault((problem.name, problem.form, intercept, threads), []).append(row)
    rates = {
        n: float(np.median([row["rate"] for rows in found.values() for row in rows if row["threads"] == n]))
        for n in (1, 2)
    }
    for rows in found.values():
        table.add(**_middle(rows, rates))
    table.finish(
        "memory read: "
        + ", ".join(f"{rate / 1e9:.1f} GB/s with {n} thread(s)" for n, rate in rates.items())
        + " (compiled sum over 1 GiB of float64; the median of the runs, one before each pair of fits)",
        "mean: over all iterations of a whole fit to a relative gap of 1e-3. Compilation, validation and the judge are "
        "not in it. ratio, 10 to 40: the median of these iterations instead, when more rows change sides from one "
        "plane to the next than later on. The machine's speed changes with the hour, so all problems are measured in "
        f"turn, {args.repeats} times, and a row is the fit with the median time; the JSON file has all of them.",
        "bound: (2 x bytes of X + 3 vectors of 8 n bytes) / memory read with as many threads, the median above. "
        "ratio: mean / bound; met: at most the target. Below 1: data from the cache, or rows that stay on their "
        "side of the margin from one plane to the next and are not read for the product with the transpose.",
        "with gathers: the bound plus, for both products, what reading a vector at the file's own indices takes beyond "
        "streaming the indices, measured beside each fit with as many threads.",
        "uint8: pixels as they are, with C scaled so that the problem is the same.",
        "above its target, and why: float32 halves the bound, but the vectors of length n stay float64, as do all "
        "sums, and short steps, those of the search for a free intercept among them, run on one thread; bytes (uint8) "
        "wait for their conversion to float64, not for memory; an iteration on rcv1 is short enough that the reduced "
        "problem and waking a thread count.",
    )


def _problems(args):
    if args.quick:
        yield generate(4000, 30)
        yield generate(300, 2000, "csr", "float32", density=0.02)
        return
    for name, storage, dtype in CASES:
        if args.only in (None, name):
            yield load(name, storage, dtype)


def _rates(quick: bool) -> dict[int, float]:
    return machine.stream_rates(n_bytes=1 << 24, repeats=3) if quick else machine.stream_rates()


def _iteration_ms(problem: Problem, intercept: str, threads: int) -> tuple[float, float, int]:
    """(mean of all, median of iterations 10 to 40, iterations); a short fit goes before, which compiles."""
    settings = {
        "free_intercept": intercept == "free",
        "n_jobs": threads,
        "solver": "ocas",
        "tol": 1e-3,
        "judge": False,
    }
    softmargin(problem, 1.0, max_iter=2, **settings)
    fit = softmargin(problem, 1.0, **settings)
    steps = 1e3 * np.diff(fit.model.trace_["seconds"])
    return float(steps.mean()), float(np.median(steps[10:40])), len(steps)


def _row(problem: Problem, intercept: str, threads: int, rate: float) -> dict:
    mean_ms, early_ms, iterations = _iteration_ms(problem, intercept, threads)
    row = {
        "problem": problem.name,
        "storage": problem.form,
        "n_rows": problem.X.shape[0],
        "data_bytes": problem.bytes,
        "megabytes": problem.bytes / 1e6,
        "intercept": intercept,
        "threads": threads,
        "mean_ms": mean_ms,
        "early_ms": early_ms,
        "iterations": iterations,
        "target": TARGETS[problem.storage],
        "rate": rate,
    }
    if problem.storage == "csr":
        seconds = machine.gather_seconds(problem.X.indices, problem.X.shape[1], threads)
        row |= {"gather_seconds": seconds, "index_bytes": problem.X.indices.nbytes}
    return row


def _middle(rows: list[dict], rates: dict[int, float]) -> dict:
    """The fit with the median time against the median rate: fits and memory are disturbed at different moments."""
    row = sorted(rows, key=lambda row: row["mean_ms"])[(len(rows) - 1) // 2]
    row = row | {"rate": rates[row["threads"]], "rounds": [[one["mean_ms"], one["rate"]] for one in rows]}
    return row | _against_bound(row)


def _against_bound(row: dict) -> dict:
    bound_ms = 1e3 * (2 * row["data_bytes"] + 3 * 8 * row["n_rows"]) / row["rate"]
    ratio = row["mean_ms"] / bound_ms
    found = {"bound_ms": bound_ms, "ratio": ratio, "met": bool(ratio <= row["target"])}
    found["early_ratio"] = row["early_ms"] / bound_ms
    if "gather_seconds" in row:
        indices_ms = 1e3 * row["index_bytes"] / row["rate"]
        gather_bound_ms = bound_ms + 2 * max(0.0, 1e3 * row["gather_seconds"] - indices_ms)
        found |= {"gather_bound_ms": gather_bound_ms, "gather_ratio": row["mean_ms"] / gather_bound_ms}
    return found


if __name__ == "__main__":
    main()
