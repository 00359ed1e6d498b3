"""The joint hinge risk of several classes, which share one slack for each row.

    R(W) = sum_i s_i max over k of (1[k != y_i] + w_k.x_i - w_(y_i).x_i)

There is one vector of weights for each class. A row costs nothing if its own class wins by a margin of at least 1 over
every other class; otherwise it costs what is missing against the strongest of them. The intercept is none, or a
constant feature for each class.

The vector w of the solvers is W row by row, with the weight of the constant feature at the end of each row. The
outputs f are by classes too, f = (X w_0, X w_1, ...), and so have n_classes * n_rows entries.

A plane lets every row lose to one class, or to none. Its coefficients are s_i for that class and -s_i for the row's own
class, and its constant is the weight of the rows that lose. The witness is the number of that class for each row, where
the row's own class stands for none. alpha_ik = s_i times the weight of the planes in which row i loses to class k is
a dual vector.

Along a line the loss of a row is the largest of n_classes lines. Two probes that find the same class highest for a row
know its loss everywhere between them, so that later probes visit the other rows only.

Reference: K. Crammer, Y. Singer, "On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines", JMLR
2, 2001, eq. (5) to (9). Departs from the paper: C multiplies a sum, rows have weights, and there is a constant feature.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum
from typing import Any, NamedTuple

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.kinds import COORDINATES, PLANES
from softmargin.core.result import Solution
from softmargin.core.threads import Workers
from softmargin.data.rows import Flat, Products, has_row_access
from softmargin.problems.base import JointCoordinates, LineMinimum, Pattern, PlaneAlong
from softmargin.problems.bracketing import Probe, search
from softmargin.problems.breakpoints import row_blocks
from softmargin.problems.intercepts import Intercept, NoIntercept

_WIDTH = 1e-3  # relative, of the bracket of a line search
MOST_CLASSES = 2**16


@dataclass(frozen=True)
class LostTo:
    """The witness of a plane: for each row the class that it loses to (uint16), its own if it does not lose."""

    classes: np.ndarray


@dataclass(frozen=True)
class JointSolution(Solution):
    """w has a row and b an entry for each class, alpha a column."""

    b: np.ndarray  # type: ignore[assignment]


@dataclass(frozen=True)
class Joint:
    """The problem of several classes at once. `codes` (int64) are the numbers of the rows' classes, from 0 on."""

    rows: Products
    codes: np.ndarray
    weights: np.ndarray
    n_classes: int
    C: float
    intercept: Intercept = field(default_factory=NoIntercept)
    workers: Workers = field(default_factory=Workers)

    def __post_init__(self) -> None:
        check_joint(self.codes, self.n_classes, self.intercept)

    @property
    def serves(self) -> tuple[str, ...]:
        return (PLANES, COORDINATES) if has_row_access(self.rows) else (PLANES,)

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    @property
    def n_variables(self) -> int:
        return self.n_outputs

    @cached_property
    def coordinates(self) -> JointCoordinates:
        return JointCoordinates(self.codes, self.C * self.weights, self.n_classes)

    @property
    def n_outputs(self) -> int:
        return self.n_classes * self.rows.n_rows

    @property
    def n_weights(self) -> int:
        return self.n_classes * (self.rows.n_cols + self.intercept.n_weights)

    @property
    def lowest(self) -> float:
        return 0.0

    @cached_property
    def scale(self) -> float:
        return self.C * float(self.weights.sum())

    def outputs(self, w: np.ndarray) -> np.ndarray:
        f = np.empty((self.n_classes, self.n_rows))
        for k, own in enumerate(w.reshape(self.n_classes, -1)):
            columns, b = self.intercept.split(own)
            f[k] = self.rows.dot(columns)
            if self.intercept.feature:
                f[k] += b
        return f.ravel()

    def slope(self, c: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        parts = []
        for k, own in enumerate(self._by_class(c)):
            last = None if before is None else self._by_class(before)[k]
            a = self.rows.t_dot(own, last)
            if self.intercept.feature:
                a = self.intercept.extended(a, float(own.sum()) - (0.0 if last is None else float(last.sum())))
            parts.append(a)
        return np.concatenate(parts)

    def risk(self, f: np.ndarray) -> float:
        return self._highest(f, f, 0.0)[0]

    def pattern(self, f: np.ndarray) -> Pattern:
        return self._pattern(f, f, 0.0)

    def follow(
        self, f: np.ndarray, df: np.ndarray, to: LineMinimum, k_plane: float
    ) -> tuple[np.ndarray, float, Pattern]:
        f_new = f + to.k * df
        return f_new, self.risk(f_new), self._pattern(f, df, k_plane)

    def minimise_along(
        self,
        f: np.ndarray,
        df: np.ndarray,
        A0: float,
        B0: float,
        hint: Any = None,
        plane: PlaneAlong | None = None,
    ) -> LineMinimum:
        C, known = self.C, _Undecided(self._every_row, 0.0, 0.0)

        def probe(k: float) -> Probe:
            nonlocal known
            height, steepness, highest = self._lines(f, df, k, known.rows)
            height, steepness = height + known.height, steepness + known.steepness
            risk, slope = height + k * steepness, A0 * k + B0 + C * steepness
            value = 0.5 * A0 * k * k + B0 * k + C * risk
            known = self._narrowed(f, df, k, known, highest, slope < 0.0)
            return Probe(k, value, slope, C * risk, None)

        lo, hi = search(probe, probe(0.0), _WIDTH)
        best = lo if lo.value < hi.value else hi
        return LineMinimum(best.k, lo.k, hi.k)

    def coefficients(self, witnesses: Sequence[LostTo], weights: np.ndarray) -> np.ndarray:
        from softmargin.problems import _joint

        c = np.zeros((self.n_classes, self.n_rows))
        for witness, weight in zip(witnesses, weights, strict=True):
            if weight != 0.0:
                _joint.add_coefficients(witness.classes, self.codes, self.weights, float(weight), c)
        return c.ravel()

    def solution(self, w: np.ndarray, f: np.ndarray, witnesses: Sequence[LostTo], weights: np.ndarray) -> Solution:
        from softmargin.problems import _joint

        alpha = np.zeros((self.n_classes, self.n_rows))
        for witness, weight in zip(witnesses, weights, strict=True):
            if weight != 0.0:
                _joint.add_activity(witness.classes, self.codes, self.weights, float(weight), alpha)
        return self._solution(w, alpha.T)

    def solution_of(self, w: np.ndarray, f: np.ndarray, beta: np.ndarray) -> Solution:
        """The candidate with signed dual variables, beta_ik = -alpha_ik but for the row's own class."""
        alpha = np.maximum(-beta.reshape(self.n_rows, self.n_classes), 0.0)
        alpha[np.arange(self.n_rows), self.codes] = 0.0
        return self._solution(w, alpha)

    def rows_at(self, index: np.ndarray) -> tuple[Flat, np.ndarray]:
        """As `RowProblem.rows_at`."""
        rows: Any = self.rows
        if not rows.flat.fortran:
            return rows.flat, index
        return rows.take(index).flat, np.arange(index.size)

    def _solution(self, w: np.ndarray, alpha: np.ndarray) -> Solution:
        """Of two classes only the difference counts. It is shared out evenly: that is shorter and costs the same, and
        a model that stores the difference then says exactly what was judged."""
        columns, intercepts = zip(*map(self.intercept.split, w.reshape(self.n_classes, -1)), strict=True)
        W, b = np.array(columns), np.array(intercepts)
        if self.n_classes == 2:
            half, half_b = 0.5 * (W[1] - W[0]), 0.5 * (b[1] - b[0])
            W, b = np.array([-half, half]), np.array([-half_b, half_b])
        return JointSolution(W, b, alpha)

    def _by_class(self, vector: np.ndarray) -> np.ndarray:
        return vector.reshape(self.n_classes, self.n_rows)

    @cached_property
    def _every_row(self) -> np.ndarray:
        return np.arange(self.n_rows)

    def _pattern(self, f: np.ndarray, df: np.ndarray, k: float) -> Pattern:
        """The plane at f + k df."""
        from softmargin.problems import _joint

        _, highest = self._highest(f, df, k)
        c = np.zeros((self.n_classes, self.n_rows))
        constant = _joint.add_coefficients(highest, self.codes, self.weights, 1.0, c)
        return Pattern(c.ravel(), constant, LostTo(highest))

    def _highest(self, f: np.ndarray, df: np.ndarray, k: float) -> tuple[float, np.ndarray]:
        """The risk at f + k df, and the class that each row loses to."""
        height, steepness, highest = self._lines(f, df, k, self._every_row)
        return height if k == 0.0 else height + k * steepness, highest

    def _lines(self, f: np.ndarray, df: np.ndarray, k: float, rows: np.ndarray) -> tuple[float, float, np.ndarray]:
        """The sums of the heights at 0 and of the slopes of the lines that are highest at k, and their classes."""
        from softmargin.problems import _joint

        highest = np.empty(rows.size, dtype=np.uint16)
        F, dF = self._by_class(f), self._by_class(df)

        def block(i: int, j: int) -> tuple[float, float]:
            return _joint.highest_lines(F, dF, self.codes, self.weights, rows[i:j], k, highest[i:j])

        sums = self.workers.map(block, row_blocks(rows.size)) if rows.size else [(0.0, 0.0)]
        heights, slopes = zip(*sums, strict=True)
        if len(sums) == 1:
            return heights[0], slopes[0], highest
        return fsum(heights), fsum(slopes), highest

    def _narrowed(
        self, f: np.ndarray, df: np.ndarray, k: float, known: "_Undecided", highest: np.ndarray, is_low: bool
    ) -> "_Undecided":
        """What is known after a probe at k, which is the new lower end of the bracket, or the upper one."""
        lower, upper = (highest, known.upper) if is_low else (known.lower, highest)
        if lower is None or upper is None:
            return known._replace(lower=lower, upper=upper)
        is_open = lower != upper
        height, steepness, _ = self._lines(f, df, k, known.rows[~is_open])
        return _Undecided(
            known.rows[is_open], known.height + height, known.steepness + steepness, lower[is_open], upper[is_open]
        )


class _Undecided(NamedTuple):
    """Rows whose highest line changes between the ends of a bracket, with its class at either end once it is known.

    The lines of all other rows add up to height + k steepness.
    """

    rows: np.ndarray
    height: float
    steepness: float
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None


def check_joint(codes: np.ndarray, n_classes: int, intercept: Intercept) -> None:
    """Refuse what is no problem of this kind."""
    if intercept.is_free:
        raise SoftmarginError(
            "the joint problem of several classes has no free intercept: take Penalised() or NoIntercept()."
        )
    if not 2 <= n_classes <= MOST_CLASSES:
        raise SoftmarginError(f"there are {n_classes} classes: the joint problem takes 2 to {MOST_CLASSES} of them.")
    if codes.size and not 0 <= codes.min() <= codes.max() < n_classes:
        raise SoftmarginError(f"the classes of the rows must be numbers from 0 to {n_classes - 1}.")
