"""The judge of a kernel machine: primal value, dual bound and gap, true in real arithmetic.

    primal = 1/2 beta'K beta + C sum_i s_i max(0, 1 - y_i (f_i + b)),   f = K beta
    dual   = sum_i alpha_i - 1/2 beta'K beta,                           beta_i = y_i alpha_i

What is judged is what is stored: coefficients beta, intercept b and the rows; kernel values are the real ones of these
rows, and how far computed ones are from them is charged (`kernels.errors`).

The judge sums rows of the kernel matrix itself; the cache may serve them. Where they are in float32, that only sorts
the rows: those whose margin exceeds 1 by more than the error of f have no loss. The support vectors and all other rows
are evaluated again in double precision, each pair of support vectors once. Where that is still too coarse, and the rows
are few, they are evaluated in pairs of numbers (`kernels.precise`).
"""

from dataclasses import dataclass
from math import fsum, inf, nan
from typing import NamedTuple

import numpy as np

from softmargin.core.result import Certificate, Solution
from softmargin.data.precise import Outputs
from softmargin.kernels.cached import RowStore
from softmargin.kernels.symmetric import symmetric_product
from softmargin.linalg.rounding import SLACK, TINY, UNIT, above, below, gamma, two_product
from softmargin.problems.bracket import Bound, Side, certificate, is_coarse, losses
from softmargin.problems.certificate import feasible, kkt_violation

# Products in pairs of numbers that a judgement may take: about two seconds.
_MOST_WORK = 10**8


@dataclass(frozen=True)
class KernelJudge:
    """Judge of the kernel problem. `tol` is the relative gap that is to be proven.

    Unless the problem `is_convex` there is no bound: dual and gap are nan.
    """

    K: RowStore
    signed_weights: np.ndarray
    C: float
    is_convex: bool = True
    tol: float = 0.0

    def __call__(self, solution: Solution) -> Certificate:
        with np.errstate(over="ignore", invalid="ignore"):
            alpha = feasible(solution.alpha, self.signed_weights, self.C, free_intercept=True)
            given = np.sign(self.signed_weights) * np.asarray(solution.alpha, dtype=np.float64)
            beta = np.sign(self.signed_weights) * alpha
            model = Model(given, self.outputs(given), float(solution.b))
            return self.certificate(model, beta, model.f if np.array_equal(given, beta) else self.outputs(beta))

    def outputs(self, beta: np.ndarray) -> Outputs:
        """K beta from the rows of the matrix as they are, with error bounds."""
        errors = self.K.errors()
        sums = self.K.products(errors.columns(beta))
        return Outputs(sums[:, 0] + sums[:, 1], 0.0, errors.of_outputs(beta, sums))

    def certificate(self, model: "Model", beta: np.ndarray, f: Outputs) -> Certificate:
        """For a model, and a feasible beta with its f = K beta: the same ones if the model is feasible."""
        (primal, near), dual = self._primal(model), self._dual(beta, f)
        is_same = f is model.f
        for again in (self._in_double, self._in_pairs):
            if not is_coarse(primal, dual, self._scale, self.tol):
                break
            model = model._replace(f=again(model.beta, model.f, near))
            f = model.f if is_same else again(beta, f, near)
            (primal, near), dual = self._primal(model), self._dual(beta, f)
        labels = np.sign(self.signed_weights)
        upper = self.C * np.abs(self.signed_weights)
        violation = kkt_violation(np.abs(beta), upper, labels, 1.0 - labels * f.f, free_intercept=True)
        if not self.is_convex:
            return Certificate(primal.bound, nan, nan, nan, violation, primal.charge)
        return certificate(primal, dual, self._scale, violation)

    @property
    def _scale(self) -> float:
        return self.C * float(np.abs(self.signed_weights).sum())

    def _primal(self, model: "Model") -> tuple[Bound, np.ndarray]:
        """The primal value, and the rows that have a loss, or may have one."""
        labels, upper = np.sign(self.signed_weights), self.C * np.abs(self.signed_weights)
        loss, near = losses(model.f, [Side(slice(None), labels, model.b, upper)])
        curvature = _curvature(model.beta, model.f)
        return Bound(0.5 * curvature.value + loss.value, above(0.5 * curvature.bound + loss.bound)), near

    def _dual(self, beta: np.ndarray, f: Outputs) -> Bound:
        total, curvature = fsum(np.abs(beta).tolist()), _curvature(beta, f)
        return Bound(total - 0.5 * curvature.value, below(below(total) - above(0.5 * curvature.bound)))

    def _in_double(self, beta: np.ndarray, found: Outputs, near: np.ndarray) -> Outputs:
        """f once more, in double precision, for the support vectors and the rows that are near."""
        support, index = _that_matter(beta, near)
        K = self.K.sharper(index)
        if K is None:
            return found
        errors = K.errors()
        sums = symmetric_product(K, errors.columns(beta[index])[: support.size], self.K.workers)
        return found.replaced(index, Outputs(sums[:, 0] + sums[:, 1], 0.0, errors.of_outputs(beta[index], sums)))

    def _in_pairs(self, beta: np.ndarray, found: Outputs, near: np.ndarray) -> Outputs:
        """f once more, in pairs of numbers, if that does not take too long."""
        support, index = _that_matter(beta, near)
        K = self.K.precise(index) if index.size * support.size <= _MOST_WORK else None
        if K is None or K.work(support.size) > _MOST_WORK:
            return found
        return found.replaced(index, K.outputs(beta[support], self.K.workers))


def _that_matter(beta: np.ndarray, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The support vectors; and these followed by the other rows that are near."""
    support = np.flatnonzero(beta)
    return support, np.concatenate([support, np.flatnonzero(near & (beta == 0.0))])


class Model(NamedTuple):
    """Signed coefficients, what they make of the training rows, and the intercept."""

    beta: np.ndarray
    f: Outputs
    b: float


def _curvature(beta: np.ndarray, f: Outputs) -> Bound:
    """beta'K beta, and an upper bound of it."""
    support = np.flatnonzero(beta)
    part, (values, low, error) = beta[support], f.take(support)
    products, rest = two_product(part, values)
    terms = np.concatenate([products, rest, part * low])
    if not np.isfinite(terms).all():
        return Bound(nan, inf)
    value = fsum(terms.tolist())
    charge = float(np.abs(part) @ (error + UNIT * np.abs(low))) * (1.0 + gamma(part.size + 2))
    return Bound(value, above(value + (charge + 8 * part.size * TINY) * SLACK))
