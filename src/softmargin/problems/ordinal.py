"""The threshold risks of ordinal regression, as cutting planes see them.

    R(w) = min over theta of  sum_i s_i sum over k in K_i of max(0, 1 - z_ik (w.x_i - theta_k))

with z_ik = +1 if y_i > k, else -1. Ranks y_i are 0 .. R-1, thresholds theta_0 .. theta_(R-2) are not penalised, and
theta_k is to lie between the ranks k and k+1. With `margins="all"` every threshold counts for every row, and the best
ones ascend by themselves; with "immediate" only the two next to the row's rank count, k = y_i - 1 and y_i, and theta
ascends by constraint.

    all         the derivatives by the thresholds are sums over ranks: one table of the breakpoints' weights by bin and
                rank shows in which bin each threshold lies, and only the rows of those bins are sorted
    immediate   one selection for each threshold, and one for each pool of neighbours that would not ascend

A plane has coefficients c_i = -s_i sum_k z_ik pi_ik with pi in [0, 1]. Write beta_k = sum_i s_i z_ik pi_ik. The plane
bounds R from below if sum_k beta_k theta_k >= 0 for all theta that are allowed: beta = 0 ("all"), or beta_0 + .. +
beta_k <= 0 with a sum of 0 in the end ("immediate"). Rows tied at a threshold are activated until that holds, at most
one of each threshold by a fraction. `docs/maths/ordinal.md` has the proofs.

Reference: W. Chu, S. S. Keerthi, "Support Vector Ordinal Regression", Neural Computation 19(3), 2007: explicit
(immediate) and implicit (all) constraints. Pools: M. J. Best, N. Chakravarti, V. A. Ubhaya, "Minimizing separable
convex functions subject to simple chain constraints", SIAM Journal on Optimization 10(3), 2000. Departs from the first:
the primal in w, the thresholds minimised inside the risk.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum, inf
from typing import Any, ClassVar, NamedTuple

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.kinds import PLANES
from softmargin.core.result import Solution
from softmargin.core.threads import Workers
from softmargin.data.rows import Products
from softmargin.problems.base import LineMinimum, Pattern, PlaneAlong
from softmargin.problems.bracketing import Probe, search
from softmargin.problems.breakpoints import row_blocks, sampled, zero

MARGINS = ("all", "immediate")
_ROWS_PER_BIN = 16
_MOST_BINS = 2_048
_SAMPLE_ROWS = 512  # that tell where the bins begin and end
_BINS_PER_THRESHOLD = 64  # to look thresholds up: few bins hold one
_LISTED_TIES = 16  # for each threshold; where there are more they are looked for again
_WIDTH = 1e-2  # relative, of the bracket of a line search
_MANY_ROWS = 65_536


@dataclass(frozen=True)
class ActiveLosses:
    """The witness of a plane: pi, as a bit for each loss and for each threshold at most one row with a fraction.

    Where a threshold has no such row, its entry of `rows` is -1.

    The loss of row i at threshold k has its bit in bits[k % len(bits)].
    """

    bits: np.ndarray
    rows: np.ndarray
    fractions: np.ndarray


@dataclass(frozen=True)
class OrdinalSolution(Solution):
    """The thresholds in place of an intercept; alpha has a column for each."""

    b: np.ndarray  # type: ignore[assignment]


@dataclass(frozen=True)
class Ordinal:
    """The problem of a linear model with thresholds. `ranks` (int64) count from 0, and each has some weight."""

    rows: Products
    ranks: np.ndarray
    weights: np.ndarray
    C: float
    margins: str = "all"
    workers: Workers = field(default_factory=Workers)
    serves: ClassVar[tuple[str, ...]] = (PLANES,)

    def __post_init__(self) -> None:
        check_margins(self.margins)
        if self.n_thresholds < 1 or not (self._totals > 0.0).all():
            missing = np.flatnonzero(self._totals <= 0.0)
            what = f"rank {missing[0]} has no row with a positive weight" if missing.size else "there is only one rank"
            raise SoftmarginError(f"{what}: number the ranks 0, 1, ... of the rows that have a weight, at least two.")

    @cached_property
    def n_thresholds(self) -> int:
        return int(self.ranks.max(initial=0))

    @cached_property
    def reach(self) -> int:
        """How many thresholds above and how many below its rank count for a row."""
        return self.n_thresholds if self.margins == "all" else 1

    @property
    def n_outputs(self) -> int:
        return self.rows.n_rows

    @property
    def n_weights(self) -> int:
        return self.rows.n_cols

    @property
    def lowest(self) -> float:
        return 0.0

    @cached_property
    def scale(self) -> float:
        y = self.ranks
        n_losses = np.minimum(y, self.reach) + np.minimum(self.n_thresholds - y, self.reach)
        return self.C * float(self.weights @ n_losses)

    def outputs(self, w: np.ndarray) -> np.ndarray:
        return self.rows.dot(w)

    def slope(self, c: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        return self.rows.t_dot(c, before)

    def risk(self, f: np.ndarray) -> float:
        return self._evaluate(f, f, self.best_thresholds(f)).risk

    def pattern(self, f: np.ndarray) -> Pattern:
        from softmargin.problems import _ordinal

        theta = self.best_thresholds(f)
        wanted = self._multipliers(theta, self._evaluate(f, f, theta))
        n, n_slots = self.n_outputs, self._n_slots
        c, bits = np.empty(n), np.zeros((n_slots, -(-n // 8)), dtype=np.uint8)
        rows, fractions = np.full(theta.size, -1), np.zeros(theta.size)
        slots = np.arange(theta.size) % n_slots
        constants = []
        for i, j in row_blocks(n):  # in order: what is wanted of the ties goes from block to block
            self.workers.check()
            block = f[i:j], self.ranks[i:j], self.weights[i:j], theta, self.reach, *wanted, slots, i, c[i:j]
            constants.append(_ordinal.make_plane(*block, bits[:, i // 8 :], rows, fractions))
        return Pattern(c, fsum(constants), ActiveLosses(bits, rows, fractions))

    def follow(
        self, f: np.ndarray, df: np.ndarray, to: LineMinimum, k_plane: float
    ) -> tuple[np.ndarray, float, Pattern]:
        f_new = f + to.k * df
        risk = self.risk(f_new) if to.hint is None else to.hint.sums.risk
        return f_new, risk, self.pattern(f + k_plane * df)

    def minimise_along(
        self,
        f: np.ndarray,
        df: np.ndarray,
        A0: float,
        B0: float,
        hint: Any = None,
        plane: PlaneAlong | None = None,
    ) -> LineMinimum:
        C = self.C

        def probe(k: float, theta: np.ndarray | None = None) -> Probe:
            g = f + k * df
            theta = self.best_thresholds(g) if theta is None else theta
            sums = self._evaluate(g, df, theta)
            value = 0.5 * A0 * k * k + B0 * k + C * sums.risk
            slope = A0 * k + B0 + C * (sums.slope + self._tied_slope(g, df, theta, sums))
            return Probe(k, value, slope, C * sums.risk, _Known(theta, sums, k))

        # Of few rows the probes begin at fixed places: the same rows in another order then take the same path.
        goes_on = hint is not None and f.size >= _MANY_ROWS and 0.0 < hint.step < 1.0
        lo, hi = search(probe, probe(0.0, None if hint is None else hint.theta), _WIDTH, hint.step if goes_on else 1.0)
        best = lo if lo.value < hi.value else hi
        return LineMinimum(best.k, lo.k, hi.k, best.known)

    def coefficients(self, witnesses: Sequence[ActiveLosses], weights: np.ndarray) -> np.ndarray:
        c = np.zeros(self.n_outputs)
        for rows, k, activity in self._activities(witnesses, weights):
            c[rows] += np.where(k < self.ranks[rows], -activity, activity)
        return c * self.weights

    def solution(
        self, w: np.ndarray, f: np.ndarray, witnesses: Sequence[ActiveLosses], weights: np.ndarray
    ) -> Solution:
        alpha = np.zeros((self.n_thresholds, self.n_outputs)).T  # by columns
        for rows, k, activity in self._activities(witnesses, weights):
            alpha[rows, k] = activity * self.weights[rows]
        return OrdinalSolution(w, self.best_thresholds(f), alpha)

    def best_thresholds(self, f: np.ndarray) -> np.ndarray:
        """Ascending thresholds that minimise the risk: breakpoints f_i -+ 1, or the middle of an interval."""
        return self._by_bins(f) if self.margins == "all" else self._by_pools(f)

    @cached_property
    def _totals(self) -> np.ndarray:
        return np.bincount(self.ranks, self.weights, self.n_thresholds + 1)

    @cached_property
    def _n_slots(self) -> int:
        return min(self.n_thresholds, 2 * self.reach)

    @cached_property
    def _by_rank(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows with weight in the order of their ranks, their weights, and where each rank begins."""
        present = np.flatnonzero(self.weights > 0.0)
        order = present[np.argsort(self.ranks[present], kind="stable")]
        starts = np.searchsorted(self.ranks[order], np.arange(self.n_thresholds + 2))
        return order, self.weights[order], starts

    def _by_bins(self, f: np.ndarray) -> np.ndarray:
        """The best thresholds of all margins."""
        from softmargin.problems import _ordinal

        n, n_thresholds = f.size, self.n_thresholds
        n_bins = max(1, min(_MOST_BINS, n // _ROWS_PER_BIN))
        few = np.sort(sampled(f, size=_SAMPLE_ROWS)[0])  # a hundredth of them at either end is left to the outer bins
        low, high = float(few[_SAMPLE_ROWS // 100]) - 1.0, float(few[-_SAMPLE_ROWS // 100]) + 1.0
        cells = low, n_bins / (high - low)
        blocks = row_blocks(n)

        def count(i: int, j: int) -> np.ndarray:
            tables = np.zeros((2, n_bins, n_thresholds + 1))
            _ordinal.count_bins(f[i:j], self.ranks[i:j], self.weights[i:j], *cells, tables[0], tables[1])
            return tables

        lower, upper = sum(self.workers.map(count, blocks))
        first, last = np.empty((2, n_thresholds), dtype=np.int64)
        before = np.empty(n_thresholds)
        _ordinal.find_bins(lower, upper, self._totals, first, last, before)
        wanted = np.zeros(n_bins, dtype=np.bool_)
        wanted[first] = wanted[last] = True

        def gather(i: int, j: int) -> list[np.ndarray]:
            t, weights = np.empty((2, 2 * (j - i)))
            bins, ranks, sides = np.empty((3, 2 * (j - i)), dtype=np.int64)
            columns = t, bins, ranks, sides, weights
            count = _ordinal.gather_bins(f[i:j], self.ranks[i:j], self.weights[i:j], *cells, wanted, *columns)
            return [column[:count] for column in columns]

        columns = [np.concatenate(parts) for parts in zip(*self.workers.map(gather, blocks), strict=True)]
        order = np.argsort(columns[0], kind="stable")
        theta = np.empty(n_thresholds)
        _ordinal.settle(*(column[order] for column in columns), first, last, before, theta)
        return np.maximum.accumulate(theta)  # they ascend but for rounding

    def _by_pools(self, f: np.ndarray) -> np.ndarray:
        """The best thresholds of immediate margins."""
        order, s, starts = self._by_rank
        f = f[order]

        def minimiser(first: int, last: int) -> float:
            above, below = (slice(starts[first + d], starts[last + 1 + d]) for d in (0, 1))
            t = np.concatenate([f[above] + 1.0, f[below] - 1.0])
            return zero(t, np.concatenate([s[above], s[below]]), -float(s[above].sum()), 0.0, -inf, inf)

        return _pooled(minimiser, self.n_thresholds)

    def _evaluate(self, g: np.ndarray, dg: np.ndarray, theta: np.ndarray) -> "_Sums":
        """Risk, slope along dg and balances at outputs g and thresholds theta, in one pass."""
        from softmargin.problems import _ordinal

        n_thresholds = theta.size
        reference = float(theta[n_thresholds // 2])
        prefix = np.append(0.0, np.cumsum(theta - reference))
        n_bins = _BINS_PER_THRESHOLD * n_thresholds
        start, per_unit = float(theta[0]), n_bins / max(float(theta[-1] - theta[0]), 1.0)
        place = np.minimum((theta - start) * per_unit, n_bins - 1).astype(np.int64)
        table = np.append(theta, inf), prefix, reference, np.searchsorted(place, np.arange(n_bins)), start, per_unit

        def block(i: int, j: int) -> tuple:
            steps, tied = np.zeros(n_thresholds + 1), np.zeros((2, n_thresholds))
            ties = np.empty((2, _LISTED_TIES * n_thresholds), dtype=np.int64)
            rows = g[i:j], dg[i:j], self.ranks[i:j], self.weights[i:j]
            *sums, count = _ordinal.evaluate(*rows, *table, self.reach, steps, tied, ties)
            ties[0] += i
            return *sums, steps, tied, ties[:, :count], count

        risk, slope, steps, tied, ties, counts = zip(*self.workers.map(block, row_blocks(g.size)), strict=True)
        listed = np.concatenate(ties, axis=1)
        balance, (lower, upper) = np.cumsum(sum(steps) - 2.0 * self._totals)[:-1], sum(tied)
        return _Sums(fsum(risk), fsum(slope), balance, lower, upper, listed if listed.shape[1] == sum(counts) else None)

    def _runs(self, theta: np.ndarray) -> Iterator[tuple[int, int]]:
        """Thresholds that are equal, and may not pass each other, as ranges first .. last."""
        together = (theta[1:] == theta[:-1]) & (self.margins == "immediate")
        ends = np.append(np.flatnonzero(~together), theta.size - 1)
        return zip(np.append(0, ends[:-1] + 1).tolist(), ends.tolist(), strict=True)

    def _multipliers(self, theta: np.ndarray, sums: "_Sums") -> tuple[np.ndarray, np.ndarray]:
        """Weight to activate of the rows tied at each threshold, on the lower and on the upper side.

        In a run of equal thresholds the balances may add up to anything from -infinity to 0 on the way, and to 0 at
        the end; how high they may be on the way follows from the end backwards.
        """
        least, most = sums.balance - sums.tied_upper, sums.balance + sums.tied_lower
        target = np.zeros(theta.size)
        for first, last in self._runs(theta):
            highest = np.zeros(last - first + 1)
            for k in range(last, first, -1):
                highest[k - 1 - first] = min(0.0, highest[k - first] - least[k])
            total = 0.0
            for k in range(first, last + 1):
                reached = min(highest[k - first], total + most[k])
                target[k] = reached - total
                total = reached
        missing = target - sums.balance
        return np.maximum(missing, 0.0), np.maximum(-missing, 0.0)

    def _tied_slope(self, g: np.ndarray, dg: np.ndarray, theta: np.ndarray, sums: "_Sums") -> float:
        """What the thresholds and the rows tied at them add to the right derivative of the risk along dg.

        As g moves along dg the thresholds move too, by the minimiser of a problem of the same kind, in which the
        tied rows have the breakpoints dg_i.
        """
        return fsum(self._tied_slope_of(first, last, g, dg, theta, sums) for first, last in self._runs(theta))

    def _ties(self, k: int, g: np.ndarray, theta: np.ndarray, sums: "_Sums") -> np.ndarray:
        """The rows tied at threshold k."""
        from softmargin.problems import _ordinal

        if sums.ties is not None:
            return sums.ties[0, sums.ties[1] == k]
        rows = np.empty(g.size, dtype=np.int64)
        return rows[: _ordinal.find_ties(g, self.ranks, self.weights, theta, k, self.reach, rows)]

    def _tied_slope_of(
        self, first: int, last: int, g: np.ndarray, dg: np.ndarray, theta: np.ndarray, sums: "_Sums"
    ) -> float:
        """The part of one run of thresholds."""
        ties = []
        for k in range(first, last + 1):
            rows = self._ties(k, g, theta, sums)
            ties.append((dg[rows], np.where(self.ranks[rows] > k, self.weights[rows], -self.weights[rows])))
        if first == last and ties[0][0].size < 2:
            return float(sums.balance[first] * ties[0][0].sum())

        def joined(a: int, b: int) -> tuple[np.ndarray, np.ndarray, float]:
            x, w = (np.concatenate(parts) for parts in zip(*ties[a : b + 1], strict=True))
            return x, w, float(sums.balance[first + a : first + b + 1].sum())

        def minimiser(a: int, b: int) -> float:
            x, w, balance = joined(a, b)
            slope = balance - float(np.maximum(-w, 0.0).sum())
            if slope >= 0.0:
                return -inf
            if slope + float(np.abs(w).sum()) <= 0.0:
                return inf
            return zero(x, np.abs(w), slope, 0.0, -inf, inf)

        total = 0.0
        moves = _pooled(minimiser, last - first + 1)
        for move in np.unique(moves):
            pool = np.flatnonzero(moves == move)
            x, w, balance = joined(pool[0], pool[-1])
            if x.size > 0:  # without ties the balance is zero but for rounding
                move = min(max(move, x.min()), x.max())  # nothing is gained beyond
                total += balance * move + float(np.maximum(0.0, w * (move - x)).sum())
        return total

    def _activities(
        self, witnesses: Sequence[ActiveLosses], weights: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """sum_j weights_j pi_j in parts: rows, the threshold of each, and the sum."""
        from softmargin.problems import _witness

        y, n, n_slots = self.ranks, self.n_outputs, self._n_slots
        every = np.arange(n)
        for slot in range(n_slots):
            k = y + (slot - y) % n_slots
            k = np.where((k < self.n_thresholds) & (k - y < self.reach), k, k - n_slots)
            out = np.zeros(-(-n // 8) * 8)
            for witness, weight in zip(witnesses, weights, strict=True):
                if weight != 0.0:
                    _witness.add_bits(witness.bits[slot], weight, _witness.BYTE_BITS, out)
                    own = np.flatnonzero((witness.rows >= 0) & (np.arange(self.n_thresholds) % n_slots == slot))
                    np.add.at(out, witness.rows[own], weight * witness.fractions[own])
            rows = every[(k >= 0) & (y - k <= self.reach)]
            yield rows, k[rows], out[rows]


class _Sums(NamedTuple):
    """What one pass finds at fixed thresholds; see `_ordinal.evaluate`. `ties` is None where there are too many."""

    risk: float
    slope: float
    balance: np.ndarray
    tied_lower: np.ndarray
    tied_upper: np.ndarray
    ties: np.ndarray | None


class _Known(NamedTuple):
    """The best thresholds of a point, the sums there, and the step that led there."""

    theta: np.ndarray
    sums: _Sums
    step: float


def check_margins(margins: str) -> None:
    if margins not in MARGINS:
        raise SoftmarginError(f"unknown margins {margins!r}: choose one of {', '.join(map(repr, MARGINS))}.")


def _pooled(minimiser: Callable[[int, int], float], n: int) -> np.ndarray:
    """Ascending values that minimise a sum of n convex functions of one value each: pool adjacent violators.

    `minimiser(a, b)` is the minimiser that the functions a .. b have in common. Of several it must be chosen such that
    that of two pools lies between those of each.
    """
    pools: list[tuple[int, float]] = []
    for k in range(n):
        first, value = k, minimiser(k, k)
        while pools and pools[-1][1] > value:
            first, _ = pools.pop()
            value = minimiser(first, k)
        pools.append((first, value))
    lengths = np.diff([*(first for first, _ in pools), n])
    return np.repeat([value for _, value in pools], lengths)
