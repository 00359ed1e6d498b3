"""The line of a search through rows on a cluster: `line_rows.LineRows`, a round of tasks for each pass.

Of many rows a sample of about n^(2/3) comes to the client, and so do the few rows that a pass leaves open. Few rows
(`free_intercept.MANY_ROWS`) are brought here at once.
"""

from collections.abc import Callable
from functools import cached_property
from math import fsum
from typing import Any

import numpy as np

from softmargin.core.threads import Workers
from softmargin.data.groups import Group
from softmargin.problems import line_rows
from softmargin.problems.base import PlaneAlong
from softmargin.problems.breakpoints import SAMPLE_ROWS
from softmargin.problems.free_intercept import MANY_ROWS
from softmargin.problems.hinges import Hinges
from softmargin.problems.on_groups import GroupProblem, Posed, Remote, group_line


class ClusterLine:
    """`LineRows` on the cluster, of both kinds of intercept. Samples are brought here once."""

    is_here = False

    def __init__(
        self, problem: GroupProblem, n_hinges: int, unit: float, f: Remote, df: Remote, c: Remote | None
    ) -> None:
        self._problem, self._f, self._df, self._c = problem, f, df, c
        self.n_rows, self.unit, self.total = n_hinges, unit, 0.0

    def is_along(self, f: Remote, df: Remote, c: Remote | None) -> bool:
        return f is self._f and df is self._df and (c is None or c is self._c)

    @cached_property
    def _sample(self) -> list[Any]:
        n = self.n_rows
        share = 1.0 if n <= MANY_ROWS else max(2 * SAMPLE_ROWS, n ** (2 / 3)) / n
        c = None if self._c is None else self._c.key
        both = [self._f, self._df]
        parts = self._problem.each(_sampled, both, self._f.ref, self._df.ref, c, share)
        columns = [np.concatenate([part[k] for part in parts]) for k in range(3)]
        has_plane = c is not None and all(part[3] is not None for part in parts)
        return [*columns, np.concatenate([part[3] for part in parts]) if has_plane else None]

    @property
    def has_plane(self) -> bool:
        return self._sample[3] is not None

    def nearest(self) -> Any:
        """These hinges, or all of them brought here if they are few."""
        if self.n_rows > MANY_ROWS:
            return self
        f, df, v, _ = self._sample
        return line_rows.RowsHere(f, df, Hinges(v, Workers(1), self.unit, self.total))

    def sample(self, size: int) -> list[np.ndarray]:
        return self._sample[:3]

    def sample_beside(self, plane: PlaneAlong) -> list[np.ndarray]:
        return self._sample

    def everything(self) -> list[np.ndarray]:
        """Never asked for where `is_here` is false: all rows would have to travel."""
        raise NotImplementedError

    def between(self, k: float, reference: float, lo: float, hi: float) -> tuple[list[np.ndarray], list[float]]:
        return self._passed(_between, k, reference, lo, hi)

    def narrowed(self, corners: tuple) -> tuple[list[np.ndarray], list[float]]:
        return self._passed(_narrowed, corners)

    def steps(self, lo: float, hi: float) -> tuple[list[np.ndarray], list[float]]:
        return self._passed(_steps, lo, hi)

    def _passed(self, function: Callable[..., Any], *arguments: Any) -> tuple[list[np.ndarray], list[float]]:
        both = [self._f, self._df]
        parts = self._problem.each(function, both, self._f.ref, self._df.ref, *arguments)
        columns, sums = zip(*parts, strict=True)
        return (
            [np.concatenate(column) for column in zip(*columns, strict=True)],
            [fsum(each) for each in zip(*sums, strict=True)],
        )


# What the workers do, with one group at a time.


def _sampled(group: Group, workers: Workers, posed: Posed, f: tuple, df: tuple, c: tuple | None, share: float) -> list:
    """f, df, v and c of about this share of the hinges, at irregular but fixed places; c is None if it is not known."""
    at, along, hinges = group_line(group, workers, posed, f, df)
    n = at.size
    columns = [at, along, hinges.v, None if c is None else group.memory.get(c)]
    if share >= 1.0:
        return columns
    size = max(1, round(share * n)) if n else 0
    number = np.arange(size)
    rows = ((number + number**2 * 0.6180339887498949 % 1.0) * (n / max(size, 1))).astype(np.int64)
    return [None if column is None else column.take(rows) for column in columns]


def _between(group: Group, workers: Workers, posed: Posed, f: tuple, df: tuple, *limits: float) -> tuple:
    return line_rows.rows_between(*group_line(group, workers, posed, f, df), *limits)


def _narrowed(group: Group, workers: Workers, posed: Posed, f: tuple, df: tuple, corners: tuple) -> tuple:
    return line_rows.rows_in_region(*group_line(group, workers, posed, f, df), corners)


def _steps(group: Group, workers: Workers, posed: Posed, f: tuple, df: tuple, lo: float, hi: float) -> tuple:
    return line_rows.rows_with_steps(*group_line(group, workers, posed, f, df), lo, hi)
