"""The judge of linear problems whose rows lie in groups on a cluster: `certificate.HingeJudge`, group by group.

The workers recompute everything from their rows; what comes here are bounds and sums of each group, and vectors with an
entry for each column. Sums of bounds are rounded outwards. The balance of the dual vector is exact: all variables are
multiples of one power of two, so that the sums of the groups are integers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import fsum, inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from softmargin.core.result import Certificate, Solution
from softmargin.core.stopping import AT_BOUND
from softmargin.core.threads import Workers
from softmargin.data.groups import Group, LostPiece
from softmargin.data.precise import combination_above, combination_in_pairs, lengths_above, outputs, reach
from softmargin.linalg.rounding import SLACK, TINY, above, below, gamma, norm_above, square_above, two_sum
from softmargin.problems.bracket import Bound, certificate, dual_below, is_coarse, losses, sharper_losses
from softmargin.problems.certificate import hinge_conditions
from softmargin.problems.feasible import NEARLY_BALANCED, floored, last_digit, take_off
from softmargin.problems.hinge_targets import as_target
from softmargin.problems.on_groups import Groups, Posed, added, group_problem, unless_lost

MAX_BALANCING = 8  # rounds; if the sums are not equal then, the bound is that of a dual vector of zeros
_HALF = 26  # bits: sums of halves of integers with 53 bits do not overflow


class _DualParts(NamedTuple):
    """What a group says of its part of the dual vector: the excess of the positive variables as an integer, a bound of
    the linear part, the exact sum if it is asked for, X'beta, how many are used, and how far they reach."""

    excess: int
    linear: Bound
    sum_beta: Fraction
    w: np.ndarray
    used: int
    reach: float


@dataclass(frozen=True)
class PartitionedJudge:
    """Judge of a problem on a cluster; `tol` is the relative gap that is to be proven."""

    groups: Groups
    lost: type[Exception]
    posed: Posed
    scale: float
    tol: float = 0.0

    def __call__(self, solution: Solution) -> Certificate:
        alpha: Any = solution.alpha
        with np.errstate(over="ignore", invalid="ignore"):
            return unless_lost(
                self.lost,
                lambda: self._certificate(np.asarray(solution.w, dtype=np.float64), float(solution.b), alpha.key),
                alpha.remake,
            )

    def _certificate(self, w: np.ndarray, b: float, dual_key: tuple) -> Certificate:
        posed, intercept = self.posed, self.posed.intercept
        intercept.check(b)
        beta_key = ("judged", posed.key, dual_key)
        try:
            square = intercept.square(b)
            rest = Bound(0.5 * float(w @ w + square), above(0.5 * (square_above(w) + square * SLACK)))
            primal = sum_above([rest, *self.groups.each(_losses, posed, w, b)])

            parts = self._dual_parts(dual_key, beta_key)
            linear = sum_below([part.linear for part in parts])
            sum_beta = sum((part.sum_beta for part in parts), Fraction(0))
            extra = 0.5 * intercept.dual_square(float(sum_beta))
            w_beta = added([part.w for part in parts])
            used = sum(part.used for part in parts)
            far = added_above(part.reach for part in parts)
            length = combination_above(w_beta, used, far, len(parts))
            value = linear.value - 0.5 * float(w_beta @ w_beta) - extra
            dual = Bound(value, dual_below(linear.bound, length, extra * SLACK))

            if is_coarse(primal, dual, self.scale, self.tol):
                primal = sum_above([rest, *self.groups.each(_sharper_losses, posed, w, b)])
                length = min(length, length_of_pairs(self.groups.each(_pairs, posed, beta_key), used, far))
                dual = Bound(value, dual_below(linear.bound, length, extra * SLACK))

            b_beta = intercept.dual_intercept(float(sum_beta)) if intercept.feature else 0.0
            violation = self._violation(self.groups.each(_wishes, posed, beta_key, w_beta, b_beta))
        finally:
            self.groups.forget(beta_key)
            self.groups.forget(("lengths", posed.key))
        return certificate(primal, dual, self.scale, violation)

    def _dual_parts(self, dual_key: tuple, beta_key: tuple) -> list[_DualParts]:
        """The dual vector made feasible, exactly; see `feasible` and `_feasible.balance` for how."""
        sizes = self.groups.each(_clipped, self.posed, dual_key, beta_key)
        if not self.posed.intercept.is_free:
            return self.groups.each(_dual_part, self.posed, beta_key, None)
        plus, minus = (fsum(part[k][0] for part in sizes) for k in range(2))
        largest = [max(part[k][1] for part in sizes) for k in range(2)]
        least, most = min(plus, minus), max(plus, minus)
        factors = [1.0, 1.0]
        if most > 0.0 and most - least > NEARLY_BALANCED * most:
            factors[0 if plus > minus else 1] = least / most
        top = max(largest[0] * factors[0], largest[1] * factors[1])
        unit = last_digit(top) if top > 0.0 else 0.0
        totals = self.groups.each(_rounded, self.posed, beta_key, factors, unit)
        for _ in range(MAX_BALANCING):
            excess = sum(plus - minus for plus, minus in totals)
            own = _shared_out(excess, [pair[0] if excess > 0 else pair[1] for pair in totals])
            totals = self.groups.each(_lowered, self.posed, beta_key, unit, excess > 0, own=own)
            if sum(plus - minus for plus, minus in totals) == 0:
                break
        else:
            self.groups.each(_rounded, self.posed, beta_key, [0.0, 0.0], 0.0)
        parts = self.groups.each(_dual_part, self.posed, beta_key, unit)
        if sum(part.excess for part in parts) != 0:
            raise self.lost  # a group was made again between two rounds: begin again
        return parts

    def _violation(self, wishes: Sequence[tuple[float, float, float]]) -> float:
        if self.posed.intercept.is_free:
            return max(0.0, max(part[0] for part in wishes) - min(part[1] for part in wishes))
        return max(part[2] for part in wishes)


def sum_above(bounds: Sequence[Bound]) -> Bound:
    total = bounds[0]
    for bound in bounds[1:]:
        total = total.plus(bound)
    return total


def sum_below(bounds: Sequence[Bound]) -> Bound:
    total = bounds[0]
    for bound in bounds[1:]:
        total = Bound(total.value + bound.value, below(total.bound + bound.bound))
    return total


def added_above(numbers: Any) -> float:
    """An upper bound of a sum of numbers of at least zero."""
    total = 0.0
    for number in numbers:
        total = above(total + number)
    return total


def _shared_out(excess: int, room: Sequence[int]) -> list[int]:
    """How much of the excess each group takes off: the first one that can takes all of it, if there is one."""
    left = abs(excess)
    own = [0] * len(room)
    for g in range(len(room)):
        own[g] = min(left, room[g])
        left -= own[g]
    return own


def length_of_pairs(parts: Sequence[tuple[np.ndarray, np.ndarray, float]], used: int, far: float) -> float:
    """An upper bound of |X'beta| from the sums of the groups in pairs of numbers."""
    high, low = parts[0][0].copy(), parts[0][1].copy()
    sizes = np.abs(low)
    for part_high, part_low, _ in parts[1:]:
        high, error = two_sum(high, part_high)
        low += part_low
        low += error
        sizes += np.abs(part_low)
        sizes += np.abs(error)
    error = max(part[2] for part in parts)
    # The low digits are added in floating point, twice for each group.
    added_up = gamma(2 * len(parts) + 2) * norm_above(sizes) * SLACK
    with np.errstate(all="ignore"):
        found = (norm_above(high) + norm_above(low) + error * far + added_up) * SLACK
    return float(found + 8 * used * np.sqrt(high.size) * TINY) if isfinite(found) else inf


# What the workers do, with one group at a time.


def _lengths(group: Group, workers: Workers, posed: Posed) -> np.ndarray:
    return group.remembered(("lengths", posed.key), lambda: lengths_above(group.rows(workers)))


def _losses(group: Group, workers: Workers, posed: Posed, w: np.ndarray, b: float) -> Bound:
    target = as_target(group_problem(group, workers, posed).target)
    return losses(outputs(group.rows(workers), w, _lengths(group, workers, posed)), target.sides(b, posed.C))[0]


def _sharper_losses(group: Group, workers: Workers, posed: Posed, w: np.ndarray, b: float) -> Bound:
    rows, lengths = group.rows(workers), _lengths(group, workers, posed)
    sides = as_target(group_problem(group, workers, posed).target).sides(b, posed.C)
    found = outputs(rows, w, lengths)
    return sharper_losses(rows, w, lengths, sides, found, losses(found, sides)[1])


def _known(group: Group, key: tuple) -> Any:
    if key not in group.memory:
        raise LostPiece
    return group.memory[key]


def _clipped(group: Group, workers: Workers, posed: Posed, dual_key: tuple, beta_key: tuple) -> list:
    """Sizes of the variables in their ranges are remembered; sums and largest ones of both signs are told."""
    target: Any = as_target(group_problem(group, workers, posed).target)
    size, is_positive = target.sized(_known(group, dual_key), posed.C)
    group.memory[beta_key] = size, is_positive
    return [(float(part.sum()), float(part.max(initial=0.0))) for part in (size[is_positive], size[~is_positive])]


def _rounded(
    group: Group, workers: Workers, posed: Posed, beta_key: tuple, factors: list[float], unit: float
) -> tuple[int, int]:
    """Variables of both signs are scaled, and rounded down to multiples of the unit; their sums as integers."""
    size, is_positive = _known(group, beta_key)
    size = np.where(is_positive, size * factors[0], size * factors[1])
    size = floored(size, unit) if unit > 0.0 else np.zeros(size.size)
    group.memory[beta_key] = size, is_positive
    return _totals(size, is_positive, unit)


def _totals(size: np.ndarray, is_positive: np.ndarray, unit: float) -> tuple[int, int]:
    multiples = (size / unit).astype(np.int64) if unit > 0.0 else np.zeros(size.size, dtype=np.int64)
    return _exact(multiples[is_positive]), _exact(multiples[~is_positive])


def _exact(multiples: np.ndarray) -> int:
    return (int((multiples >> _HALF).sum()) << _HALF) + int((multiples & ((1 << _HALF) - 1)).sum())


def _lowered(
    group: Group, workers: Workers, posed: Posed, beta_key: tuple, unit: float, is_plus: bool, own: int
) -> tuple[int, int]:
    """Variables of one sign are lowered by so many units altogether."""
    size, is_positive = _known(group, beta_key)
    if own:
        size = size.copy()
        take_off(size, float(own) * unit, is_positive if is_plus else ~is_positive)
        group.memory[beta_key] = size, is_positive
    return _totals(size, is_positive, unit)


def _dual_part(group: Group, workers: Workers, posed: Posed, beta_key: tuple, unit: float | None) -> _DualParts:
    """What the variables add to the dual. `unit` is None if they need no balance."""
    size, is_positive = _known(group, beta_key)
    target = as_target(group_problem(group, workers, posed).target)
    beta = np.where(is_positive, size, -size)
    plus, minus = (0, 0) if unit is None else _totals(size, is_positive, unit)
    total = _exact_sum(beta) if posed.intercept.feature else Fraction(0)
    return _DualParts(
        plus - minus,
        target.linear(beta, posed.C),
        total,
        group.rows(workers).t_dot(beta),
        int(np.count_nonzero(beta)),
        reach(beta, _lengths(group, workers, posed)),
    )


def _exact_sum(numbers: np.ndarray) -> Fraction:
    left, total = numbers.tolist(), Fraction(0)
    while part := fsum(left):
        total += Fraction(part)
        left.append(-part)
    return total


def _pairs(group: Group, workers: Workers, posed: Posed, beta_key: tuple) -> tuple[np.ndarray, np.ndarray, float]:
    size, is_positive = _known(group, beta_key)
    return combination_in_pairs(group.rows(workers), np.where(is_positive, size, -size))


def _wishes(
    group: Group, workers: Workers, posed: Posed, beta_key: tuple, w_beta: np.ndarray, b_beta: float
) -> tuple[float, float, float]:
    """The largest intercept that a variable asks for which may go that way, the smallest, and the largest entry of the
    gradient along which a variable may move: see `_judge.disagreement` and `_judge.projected_gradient`."""
    size, is_positive = _known(group, beta_key)
    beta = np.where(is_positive, size, -size)
    target = as_target(group_problem(group, workers, posed).target)
    f = group.rows(workers).dot(w_beta)
    f += b_beta
    alpha, upper, labels, gradient = hinge_conditions(target, beta, f, posed.C)
    can_grow = (alpha < (1.0 - AT_BOUND) * upper) & (labels != 0.0)
    can_shrink = (alpha > AT_BOUND * upper) & (labels != 0.0)
    wish, is_up = labels * gradient, labels > 0.0
    highest = wish.max(where=(can_grow & is_up) | (can_shrink & ~is_up), initial=-inf)
    lowest = wish.min(where=(can_shrink & is_up) | (can_grow & ~is_up), initial=inf)
    largest = max(gradient.max(where=can_grow, initial=0.0), (-gradient).max(where=can_shrink, initial=0.0))
    return float(highest), float(lowest), float(largest)
