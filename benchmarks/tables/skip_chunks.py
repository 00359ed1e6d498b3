"""How many chunks of a store a fit could leave unread, because all of their rows are on a known side of the margin.

A simulation, made before anything was built. Let a chunk have been read when the plane was at w_ref. At another point w
no output of a row x differs by more than |w - w_ref| |x|, and by rounding. If that is less than the distance of the
margin y w_ref.x from 1, the side of the row is known; if it is so for all rows of a chunk, the chunk need not be read.
Otherwise it is read, and w becomes its w_ref.

Goal: the idea is worth building if at least 30 % of the chunks are left unread.
"""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks import record
from benchmarks.datasets import files, splice_like
from benchmarks.tables import _paper

GOAL = 0.3
TOL = 1e-3
SIZES = (1, 10, 100, 1000)  # rows of a chunk; the last in the table are those of 64 MiB
STORE_BYTES = 1 << 26
GENERATED_ROWS = 200_000
GENERATED_FACTORS = (1.0, 10.0, 100.0)  # times the paper's C n
SPLICE_C = (0.01, 0.1, 1.0)
COLUMNS = {
    "data": ("data", ""),
    "n_rows": ("rows", ",d"),
    "C": ("C", ".3g"),
    "iterations": ("iterations", "d"),
    **{f"left_{size}": ("single rows" if size == 1 else f"chunks of {size:,} rows", ".1%") for size in SIZES},
    "left_store": ("chunks of 64 MiB", ".1%"),
    "met": ("at least 30 % of the last", ""),
}
REMARKS: tuple[str, ...] = ()


def main() -> None:
    parser = record.options(__doc__)
    parser.add_argument("--render", action="store_true", help="measure nothing: write the last results again")
    args = parser.parse_args()
    args.only = None
    table = record.Table("skip_chunks", "Chunks that a fit could leave unread", COLUMNS, "1", args)
    _paper.produce(table, _measure, _notes, REMARKS)


def _measure(table: record.Table) -> None:
    for name, X, y, C in _problems(table.args.quick):
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        points = list(_points(X, y, C))
        store_rows = STORE_BYTES // X.shape[1]  # a byte for each value, dense
        left = {size: _share_left(points, norms, size, X.shape[1]) for size in (*SIZES, store_rows)}
        table.add(
            data=name,
            n_rows=len(y),
            C=C,
            iterations=len(points),
            **{f"left_{size}": left[size] for size in SIZES},
            left_store=left[store_rows],
            store_rows=store_rows,
            met=bool(left[store_rows] >= GOAL),
        )


def _problems(quick: bool) -> Iterator[tuple[str, Any, np.ndarray, float]]:
    n_rows = 2000 if quick else GENERATED_ROWS
    X, y = splice_like.in_memory(n_rows, "csr")
    X = X.astype(np.float32)
    for factor in GENERATED_FACTORS:
        yield "splice-like", X, y.astype(np.float64), factor * 1e-4 * splice_like.PAPER_ROWS / n_rows
    if quick:
        return
    X, labels = files.read("splice")
    for C in SPLICE_C:
        yield "splice (UCI), acceptors", X, np.where(labels == 2, 1.0, -1.0), C


def _points(X: Any, y: np.ndarray, C: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Where OCAS puts its planes: the weights, and the margins of the rows there."""
    from softmargin.data import as_rows
    from softmargin.problems import Hinge, NoIntercept
    from softmargin.solvers import OCAS

    problem, solver = Hinge(as_rows(X), y, C, NoIntercept()), OCAS()
    state = solver.init(problem)
    seen: dict[str, Any] = {}
    outputs, follow = Hinge.outputs, Hinge.follow

    def seen_outputs(self: Hinge, w: np.ndarray) -> np.ndarray:
        seen["direction"] = w.copy()
        return outputs(self, w)

    def seen_follow(self: Hinge, f: np.ndarray, df: np.ndarray, to: Any, k_plane: float) -> Any:
        seen.update(f=f + k_plane * df, k=k_plane)
        return follow(self, f, df, to, k_plane)

    with patch.object(Hinge, "outputs", seen_outputs), patch.object(Hinge, "follow", seen_follow):
        while (state.primal - state.dual) > TOL * state.primal:
            before = state.best.x
            state = solver.step(problem, state)
            yield before + seen["k"] * seen["direction"], y * seen["f"]


def _share_left(points: list[tuple[np.ndarray, np.ndarray]], norms: np.ndarray, size: int, n_cols: int) -> float:
    """The share of the chunks of `size` rows that stay unread, of all visits but the first to each."""
    starts = np.arange(0, norms.size, size)
    lengths = np.diff(np.append(starts, norms.size))
    read_at = np.zeros(starts.size, dtype=np.int64)
    rounding = 2.0 * (n_cols + 2) * np.finfo(np.float64).eps
    known_margins = points[0][1].copy()
    n_left = 0
    for t, (w, margins) in enumerate(points[1:], 1):
        moved = np.array([np.linalg.norm(w - earlier) for earlier, _ in points[:t]])
        lengthy = np.array([np.linalg.norm(earlier) for earlier, _ in points[:t]]) + np.linalg.norm(w)
        reach = np.repeat((moved + rounding * lengthy)[read_at], lengths) * norms
        is_left = np.logical_and.reduceat(reach < np.abs(known_margins - 1.0), starts)
        n_left += int(is_left.sum())
        is_row_read = np.repeat(~is_left, lengths)
        known_margins[is_row_read] = margins[is_row_read]
        read_at[~is_left] = t
    return n_left / (starts.size * max(len(points) - 1, 1))


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    best = max(row["left_store"] for row in rows)
    return [
        f"goal: at least {GOAL:.0%} of the chunks of 64 MiB left unread: "
        f"{'met' if best >= GOAL else 'missed'}, the most is {best:.1%}.",
        "shares are of all visits of a fit but the first to each chunk. The rows are in the order in which they come. "
        "Single rows are the most that any order of the rows could give.",
        "the points are those at which OCAS puts its planes. The line search looks further, at the outputs of the "
        "reduced solution, so that the true shares are smaller.",
        "without intercept, relative gap 1e-3. splice-like: the paper's C n, and 10 and 100 times that.",
    ]


if __name__ == "__main__":
    main()
