"""The judge: primal value, dual bound and gap of any candidate, from the data alone.

    primal = 1/2 |w|^2 + C sum_i s_i max(0, 1 - y_i (w.x_i + b))
    dual   = sum_i alpha_i - 1/2 |sum_i alpha_i y_i x_i|^2

Nothing that a solver computed is used but the candidate (w, b, alpha) itself. alpha is first made feasible: clipped to
0 <= alpha_i <= C s_i and, where the intercept is free, the heavier class is scaled down until sum alpha_i y_i = 0;
what rounding leaves of that sum is charged to the bound as |residual| |b|, and so is an estimate of the rounding errors
of both values, which matters where outputs are small differences of large numbers. Weak duality then says

    dual <= optimum <= primal

whatever the solver did. The KKT violation is LIBSVM's m(alpha) - M(alpha) for a free intercept, and the largest
projected gradient otherwise (C.-C. Chang, C.-J. Lin, LIBSVM, 2011, eq. (6); LIBLINEAR, 2008, eq. (12)).
"""

from dataclasses import dataclass

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Certificate, Solution
from softmargin.core.stopping import relative_gap
from softmargin.data.rows import Rows
from softmargin.kernels.cached import RowStore

# Relative rounding error of an inner product, in units of the product of the lengths.
ROUNDING = float(np.finfo(np.float64).eps)
# alpha this close to its bound, as a share of C s_i, counts as lying on it when the KKT violation is measured.
AT_BOUND = 1e-9


@dataclass(frozen=True)
class HingeJudge:
    """Judge of the linear hinge problem with the given data; see `problems/base.py` for the symbols."""

    rows: Rows
    signed_weights: np.ndarray
    C: float
    intercept: str = "free"
    intercept_scaling: float = 1.0

    def __call__(self, solution: Solution) -> Certificate:
        w = np.asarray(solution.w, dtype=np.float64)
        b = float(solution.b)
        free = self.intercept == "free"
        alpha = feasible(np.asarray(solution.alpha, dtype=np.float64), self.signed_weights, self.C, balanced=free)
        lengths = np.sqrt(self.rows.sq_norms())
        loss, reach = self._loss(w, b, lengths)
        primal = 0.5 * float(w @ w) + loss

        labels = np.sign(self.signed_weights)
        signed_alpha = alpha * labels
        w_alpha = self.rows.t_dot(signed_alpha)
        residual = float(signed_alpha.sum())
        dual = float(alpha.sum()) - 0.5 * float(w_alpha @ w_alpha)
        reach += float(alpha @ lengths) * float(np.sqrt(w_alpha @ w_alpha))
        del signed_alpha, lengths  # of many rows: no more vectors at a time than the solver has
        b_alpha = 0.0
        if free:
            dual -= abs(residual) * abs(b)
        elif self.intercept == "penalised":
            # b = scaling * u with 1/2 u^2 in the primal; its dual twin is u = scaling * sum alpha_i y_i.
            primal += 0.5 * (b / self.intercept_scaling) ** 2
            dual -= 0.5 * (self.intercept_scaling * residual) ** 2
            b_alpha = self.intercept_scaling**2 * residual
        elif b != 0.0:
            raise SoftmarginError(f"the model has the intercept {b}, but the problem is without intercept.")

        dual -= ROUNDING * reach
        upper = self.C * np.abs(self.signed_weights)
        gradient = self.rows.dot(w_alpha)
        gradient += b_alpha
        gradient *= -labels
        gradient += 1.0
        return Certificate(
            primal=primal,
            dual=dual,
            gap=primal - dual,
            relative_gap=relative_gap(primal, dual, float(upper.sum())),
            kkt_violation=kkt_violation(alpha, upper, labels, gradient, free_intercept=free),
        )

    def _loss(self, w: np.ndarray, b: float, lengths: np.ndarray) -> tuple[float, float]:
        """C times the hinge losses, and by how much rounding may change them, in units of it: those that are zero may
        be off without any effect.
        """
        v = self.signed_weights
        slack = self.rows.dot(w)
        slack += b
        slack *= -v
        slack += np.abs(v)
        np.maximum(slack, 0.0, out=slack)
        lossy = np.abs(v)
        lossy *= slack > 0.0
        return self.C * float(slack.sum()), self.C * float(lossy @ (lengths * np.sqrt(w @ w) + abs(b)))


@dataclass(frozen=True)
class KernelJudge:
    """Judge of the kernel problem; the decision function is f + b with f = K beta, beta_i = y_i alpha_i.

    It sums rows of the kernel matrix itself; the cache may serve them. What their rounding can do to the values is
    estimated as of independent errors of the entries, and charged to the bound. Unless the
    problem `is_convex` there is no bound: dual and gap are nan.
    """

    K: RowStore
    signed_weights: np.ndarray
    C: float
    is_convex: bool = True

    def __call__(self, solution: Solution) -> Certificate:
        b = float(solution.b)
        alpha = feasible(np.asarray(solution.alpha, dtype=np.float64), self.signed_weights, self.C, balanced=True)
        return self.certificate(alpha, b, self.K.product(alpha * np.sign(self.signed_weights)))

    def certificate(self, alpha: np.ndarray, b: float, f: np.ndarray, error: float = 0.0) -> Certificate:
        """For feasible alpha and f = K beta, which may be off by a share `error` beside what entries of K are off."""
        upper = self.C * np.abs(self.signed_weights)
        labels = np.sign(self.signed_weights)
        beta = alpha * labels
        curvature = float(beta @ f)
        slack = np.maximum(0.0, np.abs(self.signed_weights) - self.signed_weights * (f + b))
        primal = 0.5 * curvature + self.C * float(slack.sum())
        violation = kkt_violation(alpha, upper, labels, 1.0 - labels * f, free_intercept=True)
        if not self.is_convex:
            return Certificate(primal, np.nan, np.nan, np.nan, violation)
        dual = float(alpha.sum()) - 0.5 * curvature - abs(float(beta.sum())) * abs(b)
        lengths = np.sqrt(np.maximum(self.K.diag(), 0.0))
        lossy = upper * (slack > 0.0)  # the others may be off without any effect
        spread = np.sqrt(np.square(beta * lengths).sum())  # of f_i, in units of the error of an entry
        reach = float(np.sqrt(np.square((lossy + alpha) * lengths * self.K.row_errors()).sum()) * spread)
        reach += ROUNDING * float(lossy.sum()) * abs(b) + error * float((lossy + alpha) @ np.abs(f))
        dual -= reach
        return Certificate(primal, dual, primal - dual, relative_gap(primal, dual, float(upper.sum())), violation)


def feasible(alpha: np.ndarray, signed_weights: np.ndarray, C: float, *, balanced: bool) -> np.ndarray:
    """alpha clipped to its box and, if asked for (a free intercept), balanced between the classes."""
    if alpha.shape != signed_weights.shape:
        raise SoftmarginError(
            f"the dual vector has {alpha.size} entries for {signed_weights.size} rows: "
            "certify a model on the rows it was trained on, in the same order."
        )
    alpha = np.clip(np.nan_to_num(alpha), 0.0, C * np.abs(signed_weights))
    if balanced:
        positive = signed_weights > 0
        plus, minus = float(alpha[positive].sum()), float(alpha[~positive].sum())
        if plus > minus:
            alpha[positive] *= minus / plus
        elif minus > plus:
            alpha[~positive] *= plus / minus
    return alpha


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
