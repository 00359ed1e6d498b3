"""The judge: primal value, dual bound and gap of any candidate, from the data alone, and true in real arithmetic.

    primal = 1/2 |w|^2 + C sum_i s_i max(0, 1 - y_i (w.x_i + b))
    dual   = sum_i alpha_i - 1/2 |sum_i alpha_i y_i x_i|^2

Nothing that a solver computed is used but the candidate (w, b, alpha) itself. alpha is first made feasible, exactly
(`feasible`). Weak duality then says

    dual <= optimum <= primal

whatever the solver did. For that to hold of the numbers that are printed, every rounding is charged: `primal` is the
computed value plus all that rounding may have taken from it, `dual` the computed value less all that it may have
added, and `rounding` the sum of both charges. A row whose computed loss is zero is charged too, if it is that near to
its margin. Where the charge is large beside the gap that was found or asked for, what matters is evaluated again in
pairs of numbers (`data.precise`).

The KKT violation is LIBSVM's m(alpha) - M(alpha) for a free intercept, and the largest projected gradient otherwise
(C.-C. Chang, C.-J. Lin, LIBSVM, 2011, eq. (6); LIBLINEAR, 2008, eq. (12)). It is a computed number, not a bound.
"""

from dataclasses import dataclass
from math import fsum

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Certificate, Solution
from softmargin.data.precise import combination, lengths_above, outputs, sharper_combination
from softmargin.data.rows import Rows
from softmargin.linalg.rounding import SLACK, above, square_above
from softmargin.problems.bracket import Bound, Side, certificate, dual_value, is_coarse, losses, sharper_losses
from softmargin.problems.feasible import balanced, clipped

# alpha this close to its bound, as a share of C s_i, counts as lying on it when the KKT violation is measured.
AT_BOUND = 1e-9


@dataclass(frozen=True)
class HingeJudge:
    """Judge of the linear hinge problem with the given data; see `problems/base.py` for the symbols.

    `tol` is the relative gap that is to be proven: it says how exact the values need to be.
    """

    rows: Rows
    signed_weights: np.ndarray
    C: float
    intercept: str = "free"
    intercept_scaling: float = 1.0
    tol: float = 0.0

    def __call__(self, solution: Solution) -> Certificate:
        with np.errstate(over="ignore", invalid="ignore"):
            return self._certificate(np.asarray(solution.w, dtype=np.float64), float(solution.b), solution.alpha)

    def _certificate(self, w: np.ndarray, b: float, alpha: np.ndarray) -> Certificate:
        if self.intercept == "none" and b != 0.0:
            raise SoftmarginError(f"the model has the intercept {b}, but the problem is without intercept.")
        is_free, is_penalised = self.intercept == "free", self.intercept == "penalised"
        labels, upper = np.sign(self.signed_weights), self.C * np.abs(self.signed_weights)
        scale = float(upper.sum())
        lengths = lengths_above(self.rows)

        # A penalised b is scaling * u with 1/2 u^2 in the primal; its dual twin is u = scaling * sum alpha_i y_i.
        penalty = (b / self.intercept_scaling) ** 2 if is_penalised else 0.0
        found, sides = outputs(self.rows, w, lengths), [Side(slice(None), labels, b, upper)]
        half_norm = Bound(0.5 * float(w @ w + penalty), above(0.5 * (square_above(w) + penalty * SLACK)))
        loss, near = losses(found, sides)
        primal = half_norm.plus(loss)

        alpha = feasible(alpha, self.signed_weights, self.C, free_intercept=is_free)
        signed_alpha = alpha * labels
        total = fsum(alpha.tolist())
        u = self.intercept_scaling * fsum(signed_alpha.tolist()) if is_penalised else 0.0
        length, w_alpha = combination(self.rows, signed_alpha, lengths)
        value = total - 0.5 * float(w_alpha @ w_alpha) - 0.5 * u * u
        dual = Bound(value, dual_value(total, length, 0.5 * u * u * SLACK))

        if is_coarse(primal, dual, scale, self.tol):
            primal = half_norm.plus(sharper_losses(self.rows, w, lengths, sides, found, near))
            length = min(length, sharper_combination(self.rows, signed_alpha, lengths))
            dual = Bound(value, dual_value(total, length, 0.5 * u * u * SLACK))
        del signed_alpha, lengths, found, near  # of many rows: no more vectors at a time than the solver has

        gradient = self.rows.dot(w_alpha)
        gradient += self.intercept_scaling * u
        gradient *= -labels
        gradient += 1.0
        return certificate(primal, dual, scale, kkt_violation(alpha, upper, labels, gradient, free_intercept=is_free))


def feasible(alpha: np.ndarray, signed_weights: np.ndarray, C: float, *, free_intercept: bool) -> np.ndarray:
    """alpha in its box and, if the intercept is free, with exactly the same sum in both classes."""
    if np.shape(alpha) != signed_weights.shape:
        raise SoftmarginError(
            f"the dual vector has {np.size(alpha)} entries for {signed_weights.size} rows: "
            "certify a model on the rows it was trained on, in the same order."
        )
    in_box = clipped(alpha, np.abs(signed_weights), C)
    return balanced(in_box, signed_weights > 0) if free_intercept else in_box


def kkt_violation(
    alpha: np.ndarray, upper: np.ndarray, labels: np.ndarray, gradient: np.ndarray, *, free_intercept: bool
) -> float:
    """How far alpha is from satisfying its optimality conditions; `gradient` is that of the dual."""
    present = labels != 0
    can_grow = present & (alpha < (1.0 - AT_BOUND) * upper)
    can_shrink = present & (alpha > AT_BOUND * upper)
    if free_intercept:
        # -y grad f in LIBSVM's words: the intercept each row would ask for.
        wish = labels * gradient
        up = np.where(labels > 0, can_grow, can_shrink)
        low = np.where(labels > 0, can_shrink, can_grow)
        if not (up.any() and low.any()):
            return 0.0
        return max(0.0, float(wish[up].max() - wish[low].min()))
    grow = float(gradient[can_grow].max(initial=0.0))
    shrink = float(-gradient[can_shrink].min(initial=0.0))
    return max(grow, shrink, 0.0)
