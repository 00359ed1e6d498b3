"""Hinges along a line f + k df: the passes over all rows that the searches of OCAS need, and these passes in memory.

The symbols are those of `hinges`. A search takes a sample of the rows to learn where its result lies, and then needs
the sums over all rows, and the few rows that are near. These passes are a contract, because the rows may lie on other
machines: `RowsHere` has them in memory, `partitioned_line` on a cluster.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from softmargin.problems.base import PlaneAlong
from softmargin.problems.breakpoints import SAMPLE_ROWS, joined, row_blocks, sampled, scan, taken
from softmargin.problems.hinges import Hinges

_CHUNK_ROWS = 1_024  # of compiled code

Columns = list[np.ndarray]
Sums = list[float]


class LineRows(Protocol):
    """Hinges along a line f + k df, and the passes over all of them that a search needs. Sums come beside columns."""

    @property
    def n_rows(self) -> int: ...
    @property
    def unit(self) -> float:
        """`unit` of `hinges`, and `total` is that one, too."""
        ...

    @property
    def total(self) -> float: ...
    @property
    def is_here(self) -> bool:
        """Whether all of them are at hand, so that there may be too few for a sample to pay."""
        ...

    def sample(self, size: int) -> Columns:
        """f, df and v of so many of them, always the same ones; of rows that lie elsewhere it may be more."""
        ...

    def sample_beside(self, plane: PlaneAlong) -> Columns:
        """f, df, v and the coefficients of the plane, of some more."""
        ...

    def everything(self) -> Columns:
        """f, df and v, if they are here."""
        ...

    def between(self, k: float, reference: float, lo: float, hi: float) -> tuple[Columns, Sums]:
        """Breakpoints of the intercept with lo < t_i < hi, v and df; see `_hinge.scan_intercepts` for the sums."""
        ...

    def narrowed(self, corners: tuple) -> tuple[Columns, Sums]:
        """f, df and v of those that may change sides in a region; see `_hinge.narrow` for its corners and the sums."""
        ...

    def steps(self, lo: float, hi: float) -> tuple[Columns, Sums]:
        """Breakpoints along df with lo < t_i < hi, their q_i, and the sum of q_i over the others that are active."""
        ...


@dataclass(frozen=True)
class RowsHere:
    """`LineRows` in memory."""

    f: np.ndarray
    df: np.ndarray
    hinges: Hinges

    @property
    def n_rows(self) -> int:
        return self.f.size

    @property
    def unit(self) -> float:
        return self.hinges.unit

    @property
    def total(self) -> float:
        return self.hinges.total

    @property
    def is_here(self) -> bool:
        return True

    def everything(self) -> Columns:
        return [self.f, self.df, self.hinges.v]

    def sample(self, size: int) -> Columns:
        return sampled(*self.everything(), size=size)

    def sample_beside(self, plane: PlaneAlong) -> Columns:
        size = min(max(self.n_rows // 16, SAMPLE_ROWS), 2 * SAMPLE_ROWS)
        return sampled(*self.everything(), plane.c, size=size)

    def between(self, k: float, reference: float, lo: float, hi: float) -> tuple[Columns, Sums]:
        return rows_between(self.f, self.df, self.hinges, k, reference, lo, hi)

    def narrowed(self, corners: tuple) -> tuple[Columns, Sums]:
        return rows_in_region(self.f, self.df, self.hinges, corners)

    def steps(self, lo: float, hi: float) -> tuple[Columns, Sums]:
        return rows_with_steps(self.f, self.df, self.hinges, lo, hi)


def rows_between(
    f: np.ndarray, df: np.ndarray, hinges: Hinges, k: float, reference: float, lo: float, hi: float
) -> tuple[Columns, Sums]:
    """What `LineRows.between` says, of rows in memory."""
    from softmargin.problems import _hinge

    arguments = hinges.unit, k, reference, lo, hi
    (t, rows), sums = scan(_hinge.scan_intercepts, (f, df, hinges.v), arguments, np.int64, hinges.workers)
    return [t, taken(hinges.v, rows), taken(df, rows)], sums


def rows_in_region(f: np.ndarray, df: np.ndarray, hinges: Hinges, corners: tuple) -> tuple[Columns, Sums]:
    """What `LineRows.narrowed` says, of rows in memory."""
    from softmargin.problems import _hinge

    columns = f, df, hinges.v

    def block(i: int, j: int) -> tuple:
        buffer, inside = np.empty(_CHUNK_ROWS), np.empty(j - i, dtype=np.int64)
        count, *sums = _hinge.narrow(*(column[i:j] for column in columns), hinges.unit, *corners, buffer, inside)
        rows = inside[:count]
        return [column[i:j].take(rows) for column in columns], sums

    return joined(hinges.workers.map(block, row_blocks(f.size)))


def rows_with_steps(f: np.ndarray, df: np.ndarray, hinges: Hinges, lo: float, hi: float) -> tuple[Columns, Sums]:
    """What `LineRows.steps` says, of rows in memory."""
    from softmargin.problems import _hinge

    return scan(_hinge.scan_steps, (f, df, hinges.v), (hinges.unit, lo, hi), np.float64, hinges.workers)


def follow_rows(
    f: np.ndarray,
    df: np.ndarray,
    hinges: Hinges,
    at: tuple[float, float, float, float, float],
    f_new: np.ndarray,
    out: np.ndarray,
    bits: np.ndarray,
) -> tuple[Columns, Sums]:
    """The pass of `free_intercept.follow`; `at` is (k, b, k_plane, lo, hi), where lo and hi enclose its intercept.

    Breakpoints, v and numbers of the rows that this leaves open are returned beside the risk without the total, the sum
    of the coefficients, and that of their sizes.
    """
    from softmargin.problems import _hinge, _witness

    k, b, k_plane, lo, hi = at
    v = hinges.v

    def block(i: int, j: int) -> tuple:
        buffer, t, q = np.empty(_CHUNK_ROWS), np.empty(j - i), np.empty(j - i)
        inside = np.empty(j - i, dtype=np.int64)
        vectors = f[i:j], df[i:j], v[i:j], hinges.unit, k, b, k_plane, lo, hi, f_new[i:j], out[i:j]
        count, *sums = _hinge.follow_free(*vectors, buffer, t, q, inside)
        _witness.pack_bits(out[i:j], bits[i // 8 :])
        inside = inside[:count]
        inside += i
        return (t[:count], q[:count], inside), sums

    return joined(hinges.workers.map(block, row_blocks(f.size)))
