"""A storage of one's own: matrices that lie one above the other, such as a folder of .npy files, never joined."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from softmargin import OCAS
from softmargin.core.stopping import Stop
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.data.rows import Flat, Rows
from softmargin.problems.certificate import HingeJudge
from softmargin.problems.hinge import Hinge
from softmargin.solvers.base import run


class StackedRows:
    """Dense parts with the same columns. Products run part by part, in parallel inside each."""

    def __init__(self, parts: Sequence[Rows]) -> None:
        self._parts = list(parts)
        edges = accumulate((part.n_rows for part in self._parts), initial=0)
        self._places = [slice(lo, hi) for lo, hi in pairwise(edges)]

    @classmethod
    def of_files(cls, paths: Sequence[Path]) -> "StackedRows":
        """Memory maps: rows are read from disk as the products come to them."""
        return cls([as_rows(np.load(path, mmap_mode="r")) for path in paths])

    @property
    def n_rows(self) -> int:
        return self._places[-1].stop

    @property
    def n_cols(self) -> int:
        return self._parts[0].n_cols

    def dot(self, w: np.ndarray) -> np.ndarray:
        return np.concatenate([part.dot(w) for part in self._parts])

    def t_dot(self, v: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        total = np.zeros(self.n_cols)
        for where, part in self._pairs():  # always in this order: the bits do not depend on the threads
            total += part.t_dot(v[where], None if before is None else before[where])
        return total

    def sq_norms(self) -> np.ndarray:
        return np.concatenate([part.sq_norms() for part in self._parts])

    def take(self, index: np.ndarray) -> Rows:
        index = np.asarray(index)
        rows = np.empty((index.size, self.n_cols))
        for where, part in self._pairs():
            mine = np.flatnonzero((index >= where.start) & (index < where.stop))
            rows[mine] = part.take(index[mine] - where.start).native()
        return as_rows(rows)

    def densified(self, index: np.ndarray, dtype: Any) -> np.ndarray:
        return self.take(index).densified(np.arange(len(index)), dtype)

    def cross(self, other: Rows) -> np.ndarray:
        return np.concatenate([part.cross(other) for part in self._parts])

    def native(self) -> np.ndarray:
        """A copy of it all: nothing that trains asks for it."""
        return np.concatenate([part.native() for part in self._parts])

    def blocks(self) -> Iterator[tuple[slice, Rows]]:
        for where, part in self._pairs():
            for inner, block in part.blocks():
                yield slice(where.start + inner.start, where.start + inner.stop), block

    def on(self, workers: Workers) -> "StackedRows":
        return StackedRows([part.on(workers) for part in self._parts])

    @cached_property
    def flat(self) -> Flat:
        """For solvers that visit single rows (SGD, Pegasos): those need one array, which is a copy."""
        return as_rows(self.native()).flat

    def _pairs(self) -> Iterator[tuple[slice, Rows]]:
        return zip(self._places, self._parts, strict=True)


def main() -> None:
    X, y = load_digits(return_X_y=True)
    paths = [Path(f"part{k}.npy") for k in range(3)]
    for path, part in zip(paths, np.array_split(X, 3), strict=True):
        np.save(path, part)

    rows = StackedRows.of_files(paths)
    v = np.where(y == 8, 1.0, -1.0)
    result = run(OCAS(), Hinge(rows, v, C=0.01), Stop(tol=1e-3), HingeJudge(rows, v, C=0.01))
    print(f"{rows.n_rows} rows in {len(paths)} files: {result.status.name}, gap {result.certificate.relative_gap:.0e}")


if __name__ == "__main__":
    main()
