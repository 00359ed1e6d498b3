"""Ranking with rows in groups on a cluster: `ranking.Ranking` and its judge, group by group.

Rows of a query lie in one partition, so that every pair lies in one group. Then all that a ranking counts is a sum over
the groups:

    R(f) = u sum over groups of (total - net.f),     slope = -u sum over groups of X'net

with u = 1 / (weight of all pairs), or 1. The line search probes a step in one round of tasks; the plane and its slope
come in one round. The witness of a plane, the scores at which it was made, stays on the workers; if it is lost, scores
are computed again from the weights, which make a plane as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np

from softmargin.core.result import Certificate, PlaneSolution, Solution
from softmargin.core.threads import Workers
from softmargin.data.groups import Group, LostPiece
from softmargin.data.precise import (
    combination_above,
    combination_in_pairs,
    lengths_above,
    outputs,
    reach,
    sharper_outputs,
)
from softmargin.linalg.counting import Pairs
from softmargin.linalg.rounding import SLACK, above, below, gamma, square_above
from softmargin.problems.base import LineMinimum, Pattern, PlaneAlong
from softmargin.problems.bracket import Bound, certificate, dual_below, is_coarse
from softmargin.problems.bracketing import Probe, search
from softmargin.problems.intercepts import NoIntercept
from softmargin.problems.on_groups import GroupProblem, Groups, Remote, added, group_vectors, unless_lost
from softmargin.problems.partitioned_certificate import added_above, length_of_pairs, sum_above, sum_below
from softmargin.problems.ranking import SINGLE_UP_TO, WIDTH
from softmargin.problems.ranking_certificate import RankingJudge


@dataclass(frozen=True)
class RankPosed:
    """The problem as it travels: all but the rows."""

    key: str
    C: float
    equal_queries: bool


@dataclass(frozen=True)
class PairWeights:
    """How many slots there are in all groups, what their pairs weigh, and whether any weight is not 1."""

    n_slots: int
    n_pairs: float
    has_weights: bool
    average: bool

    @property
    def unit(self) -> float:
        """u."""
        return 1.0 / self.n_pairs if self.average else 1.0

    @property
    def count_error(self) -> float:
        """Relative error of counts, with u among their factors: see `ranking_certificate`."""
        return gamma(2 * self.n_slots + 40) if self.has_weights else gamma(8)


@dataclass(frozen=True)
class Known:
    """What is known of a point: the risk, and the step that led there."""

    risk: float
    step: float


@dataclass(frozen=True)
class PartitionedRanking(GroupProblem):
    """`RiskProblem` of ordered pairs over groups of rows; `posed` is a `RankPosed`."""

    pairs: PairWeights

    @property
    def n_outputs(self) -> int:
        return self.n_rows

    @property
    def n_weights(self) -> int:
        return self.n_cols

    def risk(self, f: Remote) -> float:
        return self.unless_lost([f], lambda: self._probed(f, f, [0.0])[0][0])

    def pattern(self, f: Remote) -> Pattern:
        return self.follow(f, f, LineMinimum(0.0, 0.0, 0.0, Known(0.0, 0.0)), 0.0)[2]

    def minimise_along(
        self,
        f: Remote,
        df: Remote,
        A0: float,
        B0: float,
        hint: Known | None = None,
        plane: PlaneAlong | None = None,
    ) -> LineMinimum:
        C, first = self.C, hint.step if hint is not None and 0.0 < hint.step < 1.0 else 1.0
        found: dict[float, tuple[float, float]] = {}

        def probe(k: float) -> Probe:
            if k not in found:
                steps = [k] if found else [k, first]  # the second is wanted next
                found.update(zip(steps, self._probed(f, df, steps), strict=True))
            risk, rise = found[k]
            value = 0.5 * A0 * k * k + B0 * k + C * risk
            return Probe(k, value, A0 * k + B0 - C * rise, C * risk, Known(risk, k))

        def minimise() -> LineMinimum:
            lo, hi = search(probe, probe(0.0), WIDTH, first)
            best = lo if lo.value < hi.value else hi
            return LineMinimum(best.k, lo.k, hi.k, best.known)

        return self.unless_lost([f, df], minimise)

    def _probed(self, f: Remote, df: Remote, steps: list[float]) -> list[tuple[float, float]]:
        """The risk at some steps, and by how much it falls there at most."""
        parts = self.each(_probed, [f, df], f.ref, df.ref, steps)
        unit = self.pairs.unit
        sums = [[fsum(part[k][i] for part in parts) for i in range(2)] for k in range(len(steps))]
        return [(max(0.0, unit * loss), unit * rise) for loss, rise in sums]

    def follow(self, f: Remote, df: Remote, to: LineMinimum, k_plane: float) -> tuple[Remote, float, Pattern]:
        def follow() -> tuple[Remote, float, Pattern]:
            risk = self._probed(f, df, [to.k])[0][0] if to.hint is None else to.hint.risk
            f_new, c = self.named("f", f.w + to.k * df.w), self.named("scores", f.w + k_plane * df.w)
            parts = self.each(_plane, [f, df], f.ref, df.ref, to.k, k_plane, (f_new.key, c.key))
            f_new.is_there = c.is_there = True
            unit = self.pairs.unit
            c.slope = -unit * added([part[0] for part in parts])
            return f_new, risk, Pattern(c, unit * fsum(part[1] for part in parts), c)  # type: ignore[arg-type]

        return self.unless_lost([f, df], follow)

    def solution(self, w: np.ndarray, f: Remote, witnesses: Sequence[Remote], weights: np.ndarray) -> PlaneSolution:
        points = tuple(witness for witness, weight in zip(witnesses, weights, strict=True) if weight != 0.0)
        return PlaneSolution(w, 0.0, weights[weights != 0.0], points)  # type: ignore[arg-type]


@dataclass(frozen=True)
class PartitionedRankingJudge:
    """Judge of a ranking on a cluster; see `ranking_certificate` for what is charged."""

    groups: Groups
    lost: type[Exception]
    posed: RankPosed
    pairs: PairWeights
    scale: float
    tol: float = 0.0

    def __call__(self, solution: Solution) -> Certificate:
        planes: Any = getattr(solution, "points", ())

        def make_again() -> None:
            for plane in planes:
                plane.is_there = False

        w, weights = np.asarray(solution.w, dtype=np.float64), np.asarray(solution.alpha, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            return unless_lost(self.lost, lambda: self._certificate(w, weights, planes), make_again)

    def _certificate(self, w: np.ndarray, weights: np.ndarray, planes: Sequence[Remote]) -> Certificate:
        posed, pairs, key = self.posed, self.pairs, ("judged", self.posed.key)
        half_norm = Bound(0.5 * float(w @ w), above(0.5 * square_above(w)))
        try:
            primal = half_norm.plus(self._loss(self.groups.each(_losses, posed, w, False)))

            refs = [plane.ref for plane in planes]
            parts = self.groups.each(_combined, posed, refs, weights, key)
            # Any u that is not too large makes planes below the risk.
            unit = pairs.unit * (1.0 - pairs.count_error) if pairs.average else 1.0
            e = sum_below([part[0] for part in parts])
            e = Bound(unit * e.value, below(unit * e.bound * (1.0 - gamma(8))))
            w_sum = added([part[1] for part in parts])
            used, far = sum(part[2] for part in parts), added_above(part[3] for part in parts)
            spread = added_above(part[4] for part in parts)  # of X'g, because counts are rounded
            length = combination_above(w_sum, used, far, len(parts))
            w_gamma = -unit * w_sum
            sq_norm = float(w_gamma @ w_gamma)

            def bound(length: float) -> Bound:
                return Bound(e.value - 0.5 * sq_norm, dual_below(e.bound, above(unit * (length + spread) * SLACK)))

            dual = bound(length)
            if is_coarse(primal, dual, self.scale, self.tol):
                primal = half_norm.plus(self._loss(self.groups.each(_losses, posed, w, True)))
                length = min(length, length_of_pairs(self.groups.each(_in_pairs, posed, key), used, far))
                dual = bound(length)
            risk = self._loss(self.groups.each(_losses, posed, w_gamma, False)).value
        finally:
            self.groups.forget(key)
        violation = (0.5 * sq_norm + risk - dual.value) / self.scale
        return certificate(primal, dual, self.scale, max(0.0, violation))

    def _loss(self, parts: Sequence[Bound]) -> Bound:
        """C R, and an upper bound of it, from what the groups lose without C and u."""
        found, factor = sum_above(parts), self.posed.C * self.pairs.unit
        return Bound(factor * found.value, above(factor * found.bound * (1.0 + self.pairs.count_error + gamma(8))))


# What the workers do, with one group at a time.


def group_pairs(group: Group, posed: RankPosed) -> Pairs:
    """The pairs of the rows of one group."""

    def make() -> Pairs:
        codes = np.unique(group.columns["qid"], return_inverse=True)[1]
        return Pairs(group.columns["y"].astype(np.float64), codes, group.weights, per_query=posed.equal_queries)

    return group.remembered(("problem", posed.key), make)


def pair_sums(group: Group, workers: Workers, posed: RankPosed) -> tuple[int, float, float, bool]:
    """Slots, the weight of the pairs, the same if queries count by their pairs, and whether any weight is not 1."""
    pairs = group_pairs(group, posed)
    n_pairs = pairs.n_pairs
    if posed.equal_queries:
        codes = np.unique(group.columns["qid"], return_inverse=True)[1]
        n_pairs = Pairs(group.columns["y"].astype(np.float64), codes, group.weights).n_pairs
    return pairs.rows.size, pairs.n_pairs, n_pairs, pairs.has_weights


def _scores(group: Group, workers: Workers, refs: Sequence[tuple]) -> list[np.ndarray]:
    return group_vectors(group, refs, group.rows(workers), NoIntercept(), lambda product, b: product)


def _probed(
    group: Group, workers: Workers, posed: RankPosed, f: tuple, df: tuple, steps: list[float]
) -> list[tuple[float, float]]:
    """total - net.f and net.df at some steps."""
    pairs = group_pairs(group, posed)
    at, along = map(pairs.take, _scores(group, workers, (f, df)))
    found = []
    for k in steps:
        here = at + k * along
        net, total = pairs.count(here, workers=workers)
        found.append((total - pairs.dot(net, here, workers), pairs.dot(net, along, workers)))
    return found


def _plane(
    group: Group, workers: Workers, posed: RankPosed, f: tuple, df: tuple, k: float, k_plane: float, names: tuple
) -> tuple[np.ndarray, float]:
    """X'net and the total of the plane at f + k_plane df; its scores and f + k df are remembered."""
    at, along = _scores(group, workers, (f, df))
    scores = at + k_plane * along
    if np.abs(scores).max(initial=0.0) <= SINGLE_UP_TO:
        scores = scores.astype(np.float32)
    pairs = group_pairs(group, posed)
    net, total = pairs.count(pairs.take(scores), workers=workers)
    f_key, c_key = names
    group.memory[f_key], group.memory[c_key] = at + k * along, scores
    return group.rows(workers).t_dot(pairs.spread(net)), total


def _judge(group: Group, workers: Workers, posed: RankPosed, C: float) -> RankingJudge:
    """The judge of the group alone, for the sum over its pairs."""
    return RankingJudge(group.rows(workers), group_pairs(group, posed), C, False, workers)


def _losses(group: Group, workers: Workers, posed: RankPosed, w: np.ndarray, is_sharp: bool) -> Bound:
    rows = group.rows(workers)
    lengths = lengths_above(rows)
    found = sharper_outputs(rows, w, lengths, np.arange(rows.n_rows)) if is_sharp else outputs(rows, w, lengths)
    return _judge(group, workers, posed, 1.0).loss(found)


def _combined(
    group: Group, workers: Workers, posed: RankPosed, planes: list[tuple], weights: np.ndarray, key: tuple
) -> tuple[Bound, np.ndarray, int, float, float]:
    """Of the weighted planes: their constants, X'g, how many rows have a part in g, their reach, and the error of X'g
    because counts are rounded."""
    points = tuple(_scores(group, workers, planes))
    found = _judge(group, workers, posed, posed.C).combined(PlaneSolution(np.empty(0), 0.0, weights, points))
    rows, g = group.rows(workers), -found.g
    lengths = lengths_above(rows)
    group.memory[key] = g
    spread = above(found.count_error * float(lengths.max(initial=0.0)))
    return Bound(found.e, found.least_e), rows.t_dot(g), int(np.count_nonzero(g)), reach(g, lengths), spread


def _in_pairs(group: Group, workers: Workers, posed: RankPosed, key: tuple) -> tuple[np.ndarray, np.ndarray, float]:
    if key not in group.memory:
        raise LostPiece
    return combination_in_pairs(group.rows(workers), group.memory[key])
