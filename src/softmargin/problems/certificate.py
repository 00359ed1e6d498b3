"""The judge: primal value, dual bound and gap of any candidate, from the data alone, and true in real arithmetic.

    primal = 1/2 |w|^2 + C (sum of the losses + b total)
    dual   = sum_i phi_i(beta_i) - 1/2 |sum_i beta_i x_i|^2

The losses, the total, phi and the constraints of beta are those of the target (`hinge_targets`); for two classes

    primal = 1/2 |w|^2 + C sum_i s_i max(0, 1 - y_i (w.x_i + b))
    dual   = sum_i alpha_i - 1/2 |sum_i alpha_i y_i x_i|^2

Nothing that a solver computed is used but the candidate (w, b, alpha) itself. Its dual vector is first made feasible,
exactly (`feasible`). Weak duality then says

    dual <= optimum <= primal

whatever the solver did. For that to hold of the numbers that are printed, every rounding is charged: `primal` is the
computed value plus all that rounding may have taken from it, `dual` the computed value less all that it may have
added, and `rounding` the sum of both charges. A row whose computed loss is zero is charged too, if it is that near to
its margin. If the charge is large beside the gap that was found or asked for, what matters is evaluated again in pairs
of numbers (`data.precise`). Targets y - epsilon and y + epsilon are such pairs from the start, and so are no rounded
numbers.

Squared losses (`squared_targets`) are judged in the same way: what they add to the dual belongs to phi.

The KKT violation is LIBSVM's m(alpha) - M(alpha) for a free intercept, and the largest projected gradient otherwise
(C.-C. Chang, C.-J. Lin, LIBSVM, 2011, eq. (6); LIBLINEAR, 2008, eq. (12)). It is a computed number, not a bound.
"""

from dataclasses import dataclass, field
from math import fsum

import numpy as np

from softmargin.core.result import Certificate, Solution
from softmargin.core.stopping import AT_BOUND
from softmargin.data.precise import combination, lengths_above, outputs, sharper_combination
from softmargin.data.rows import Products
from softmargin.linalg.rounding import SLACK, above, square_above
from softmargin.problems.bracket import Bound, certificate, dual_below, is_coarse, losses, sharper_losses
from softmargin.problems.feasible import balanced, clipped
from softmargin.problems.hinge_targets import HingeTarget, as_target, check_length
from softmargin.problems.intercepts import Free, Intercept


@dataclass(frozen=True)
class HingeJudge:
    """Judge of a linear hinge problem with the given data; an array as target stands for two classes' signed weights.

    `tol` is the relative gap that is to be proven: it says how exact the values need to be.
    """

    rows: Products
    target: HingeTarget | np.ndarray
    C: float
    intercept: Intercept = field(default_factory=Free)
    tol: float = 0.0

    def __call__(self, solution: Solution) -> Certificate:
        with np.errstate(over="ignore", invalid="ignore"):
            return self._certificate(
                np.asarray(solution.w, dtype=np.float64),
                float(solution.b),
                np.asarray(solution.alpha, dtype=np.float64),
            )

    def _certificate(self, w: np.ndarray, b: float, dual_vector: np.ndarray) -> Certificate:
        target, intercept, rows = as_target(self.target), self.intercept, self.rows
        target.check(self.C, intercept)
        intercept.check(b)
        scale = target.scale(rows, self.C, intercept)
        lengths = lengths_above(rows)

        square = intercept.square(b)
        found, sides = outputs(rows, w, lengths), target.sides(b, self.C)
        half_norm = Bound(0.5 * float(w @ w + square), above(0.5 * (square_above(w) + square * SLACK)))
        rest = half_norm if target.lowest == 0.0 else half_norm.plus(target.offset(b))
        loss, near = losses(found, sides)
        primal = rest.plus(loss)

        beta = target.feasible(dual_vector, self.C, intercept)
        linear = target.linear(beta, self.C)
        sum_beta = fsum(beta.tolist()) if intercept.feature else 0.0
        extra = 0.5 * intercept.dual_square(sum_beta)
        length, w_beta = combination(rows, beta, lengths)
        value = linear.value - 0.5 * float(w_beta @ w_beta) - extra
        dual = Bound(value, dual_below(linear.bound, length, extra * SLACK))

        if is_coarse(primal, dual, scale, self.tol):
            primal = rest.plus(sharper_losses(rows, w, lengths, sides, found, near))
            length = min(length, sharper_combination(rows, beta, lengths))
            dual = Bound(value, dual_below(linear.bound, length, extra * SLACK))
        del lengths, found, near, sides  # of many rows: no more vectors at a time than the solver has

        f = rows.dot(w_beta)
        if intercept.feature:
            f += intercept.dual_intercept(sum_beta)
        violation = _violation(target, beta, f, self.C, intercept)
        return certificate(primal, dual, scale, violation, target.lowest)


def _violation(target: HingeTarget, beta: np.ndarray, f: np.ndarray, C: float, intercept: Intercept) -> float:
    """The KKT violation, with a dual variable for each hinge."""
    return kkt_violation(*hinge_conditions(target, beta, f, C), free_intercept=intercept.is_free)


def hinge_conditions(
    target: HingeTarget, beta: np.ndarray, f: np.ndarray, C: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The variables of the hinges, their upper limits, labels, and the gradient of the dual."""
    labels, alpha = np.sign(target.v), target.alphas(beta)
    if target.t is None:
        gradient = -labels * f
        gradient += 1.0
    else:
        gradient = labels * (target.t - target.spread(f))
    upper = C * np.abs(target.v)
    if target.is_squared:
        # No variable has an upper limit, and one counts as zero if it is tiny beside the largest.
        gradient -= np.divide(alpha, 2.0 * upper, out=np.zeros(alpha.size), where=upper > 0.0)
        upper = np.full(alpha.size, 2.0 * max(float(alpha.max(initial=0.0)), float(upper.max(initial=0.0))))
    return alpha, upper, labels, gradient


def feasible(alpha: np.ndarray, signed_weights: np.ndarray, C: float, *, free_intercept: bool) -> np.ndarray:
    """alpha in its box and, if the intercept is free, with exactly the same sum in both classes."""
    check_length(alpha, signed_weights.size)
    in_box = clipped(alpha, np.abs(signed_weights), C)
    return balanced(in_box, signed_weights > 0) if free_intercept else in_box


def kkt_violation(
    alpha: np.ndarray, upper: np.ndarray, labels: np.ndarray, gradient: np.ndarray, *, free_intercept: bool
) -> float:
    """How far alpha is from satisfying its optimality conditions; `gradient` is that of the dual."""
    from softmargin.problems import _judge

    if free_intercept:
        return _judge.disagreement(alpha, upper, labels, gradient, AT_BOUND)
    return _judge.projected_gradient(alpha, upper, labels, gradient, AT_BOUND)
