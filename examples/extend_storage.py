"""A storage of one's own: matrices that lie one above the other, such as a folder of .npy files, never joined."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from softmargin import LinearSVC
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.data.rows import Rows


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

    def blocks(self) -> Iterator[tuple[slice, Rows]]:
        for where, part in self._pairs():
            for inner, block in part.blocks():
                yield slice(where.start + inner.start, where.start + inner.stop), block

    def on(self, workers: Workers) -> "StackedRows":
        return StackedRows([part.on(workers) for part in self._parts])

    def _pairs(self) -> Iterator[tuple[slice, Rows]]:
        return zip(self._places, self._parts, strict=True)


def main() -> None:
    X, y = load_digits(return_X_y=True)
    paths = [Path(f"part{k}.npy") for k in range(3)]
    for path, part in zip(paths, np.array_split(X, 3), strict=True):
        np.save(path, part)

    rows = StackedRows.of_files(paths)
    model = LinearSVC(C=0.01).fit(rows, y == 8)
    share = np.mean(model.predict(rows) == (y == 8))
    print(f"{rows.n_rows} rows in {len(paths)} files: {model.status_.name}, {share:.3f} right")


if __name__ == "__main__":
    main()
