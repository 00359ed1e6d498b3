"""The judge of a kernel machine: primal value, dual bound and gap, true in real arithmetic.

    primal = 1/2 beta'K beta + the loss of f + b,                              f = K beta
    dual   = sum_i t_i beta_i - epsilon sum_i |beta_i| - 1/2 beta'K beta

The loss, its targets t and the constraints of beta are those of `problems.row_loss`: classification, regression and one
class are judged by the same code. What is judged is what is stored: a coefficient beta for each row, the intercept b
and the rows; kernel values are the real ones of these rows, and how far computed ones are from them is charged
(`kernels.errors`).

The judge sums rows of the kernel matrix itself; the cache may serve them. Where they are in float32, that only sorts
the rows: those whose margin exceeds 1 by more than the error of f have no loss. The support vectors and all other rows
are evaluated again in double precision, each pair of support vectors once. Where that is still too coarse, and the rows
are few, they are evaluated in pairs of numbers (`kernels.precise`).

The sum of beta must be nu sum(s) for one class, in real arithmetic, which floating point numbers may not add up to.
`problems.feasible` makes a sum that is hardly larger, and says why its dual value is a bound all the same.
"""

from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite, nan
from typing import NamedTuple

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Certificate, Solution
from softmargin.core.stopping import AT_BOUND
from softmargin.data.precise import Outputs, digits
from softmargin.kernels.cached import RowStore
from softmargin.kernels.symmetric import symmetric_product
from softmargin.linalg.rounding import PAIR_UNIT, SLACK, TINY, UNIT, above, below, gamma
from softmargin.problems.box_qp import BoxQP
from softmargin.problems.bracket import Bound, certificate, is_coarse
from softmargin.problems.row_loss import RowLoss

# Products in pairs of numbers that a judgement may take: about two seconds.
_MOST_WORK = 10**8


@dataclass(frozen=True)
class KernelJudge:
    """Judge of the machine with this loss. `tol` is the relative gap that is to be proven.

    Unless the problem `is_convex` there is no bound: dual and gap are nan. `known_scale` is that of the problem
    (`BoxQP.scale`), if somebody has computed it.
    """

    K: RowStore
    loss: RowLoss
    is_convex: bool = True
    tol: float = 0.0
    known_scale: float | None = None

    @classmethod
    def of(cls, problem: BoxQP, tol: float) -> "KernelJudge":
        """The judge of a problem that is about to be solved."""
        return cls(problem.K, problem.loss, problem.is_convex, tol, problem.scale)

    def __call__(self, solution: Solution) -> Certificate:
        with np.errstate(over="ignore", invalid="ignore"):
            given, beta = self.candidates(solution)
            model = Model(given, self.outputs(given), float(solution.b))
            f = model.f if np.array_equal(given, beta) else self.outputs(beta)
            return self.certificate(model, beta, f)

    def candidates(self, solution: Solution) -> tuple[np.ndarray, np.ndarray]:
        """The coefficients as they are given, and the feasible ones next to them."""
        if np.shape(solution.alpha) != self.loss.target.shape:
            raise SoftmarginError(
                f"the dual vector has {np.size(solution.alpha)} entries for {self.loss.target.size} rows: "
                "certify a model on the rows it was trained on, in the same order."
            )
        given = self.loss.signed(solution.alpha)
        return given, self.loss.feasible(given)

    def outputs(self, beta: np.ndarray) -> Outputs:
        """K beta from the rows of the matrix as they are, with error bounds."""
        errors = self.K.errors()
        sums = self.K.products(errors.columns(beta))
        return Outputs(sums[:, 0] + sums[:, 1], 0.0, errors.of_outputs(beta, sums))

    def certificate(self, model: "Model", beta: np.ndarray, f: Outputs) -> Certificate:
        """For a model, and a feasible beta with its f = K beta: the same ones if the model is feasible."""
        is_same = f is model.f
        primal, dual, near = self._bounds(model, beta, f)
        for again in (self._in_double, self._in_pairs):
            if not is_coarse(primal, dual, self.scale, self.tol):
                break
            model = model._replace(f=again(model.beta, model.f, near))
            f = model.f if is_same else again(beta, f, near)
            primal, dual, near = self._bounds(model, beta, f)
        violation = _violation(self.loss, beta, f.f)
        if not self.is_convex:
            return Certificate(primal.bound, nan, nan, nan, violation, primal.charge)
        return certificate(primal, dual, self.scale, violation, 0.0 if self.loss.is_nonnegative else -inf)

    @cached_property
    def scale(self) -> float:
        if self.known_scale is not None:
            return self.known_scale
        return BoxQP(self.K, self.loss, self.K.workers).scale

    def _bounds(self, model: "Model", beta: np.ndarray, f: Outputs) -> tuple[Bound, Bound, np.ndarray]:
        """The primal value, the dual value, and the rows that have a loss, or may have one."""
        loss, near = self._losses(model.f, model.b)
        curvature = _curvature(model.beta, model.f)
        primal = self._primal(model, loss, curvature)
        dual = self._dual(beta, curvature if f is model.f else _curvature(beta, f))
        return primal, dual, near

    def _primal(self, model: "Model", loss: Bound, curvature: Bound) -> Bound:
        value, bound = 0.5 * curvature.value + loss.value, above(0.5 * curvature.bound + loss.bound)
        if self.loss.nu:  # nu, the sum of the weights and b: three roundings
            part = model.b * self.loss.total
            value, bound = value + part, above(bound + above(part + 4.0 * (UNIT * abs(part) + TINY)))
        return Bound(value, bound)

    def _losses(self, f: Outputs, b: float) -> tuple[Bound, np.ndarray]:
        """The sum of the losses, and which rows have one or may have one; see `bracket.losses`."""
        from softmargin.problems import _judge

        loss, near = self.loss, np.zeros(f.f.size, dtype=np.bool_)
        value, bound, slacks = _judge.row_losses(
            f.f, digits(f.low), f.error, b, loss.C, loss.over, loss.under, loss.target, loss.epsilon, near
        )
        n_terms = 2 * near.size
        return Bound(value, above((bound + TINY * (n_terms + slacks)) * (1.0 + gamma(n_terms + 8)))), near

    def _dual(self, beta: np.ndarray, curvature: Bound) -> Bound:
        linear = self._linear(beta)
        lower = below(linear.bound - above(0.5 * curvature.bound))
        return Bound(linear.value - 0.5 * curvature.value, lower)

    def _linear(self, beta: np.ndarray) -> Bound:
        """t'beta - epsilon sum |beta|, and a lower bound of it."""
        from softmargin.problems import _judge

        if self.loss.nu:  # all targets are zero
            return Bound(0.0, 0.0)
        kink = -self.loss.epsilon * np.sign(beta) if self.loss.epsilon else np.empty(0)
        total, rest, sizes, _, count = _judge.inner_product(beta, self.loss.target, kink, np.zeros(beta.size))
        if not isfinite(rest):
            return Bound(nan, -inf)
        charge = (2 * count + 4) * PAIR_UNIT * sizes * (1.0 + gamma(2 * count + 4)) * SLACK + 16 * count * TINY
        return Bound(total, below(below(total + min(rest, 0.0)) - charge))

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


def _violation(loss: RowLoss, beta: np.ndarray, f: np.ndarray) -> float:
    """LIBSVM's m(alpha) - M(alpha); variables within AT_BOUND of a bound or of their kink count as being there.

    It is a computed number, not a bound.
    """
    from softmargin.problems import _judge

    return _judge.violation(beta, f, loss.target, loss.lo, loss.hi, loss.epsilon, AT_BOUND)


class Model(NamedTuple):
    """Signed coefficients, what they make of the training rows, and the intercept."""

    beta: np.ndarray
    f: Outputs
    b: float


def _curvature(beta: np.ndarray, f: Outputs) -> Bound:
    """beta'K beta, and an upper bound of it."""
    from softmargin.problems import _judge

    total, rest, sizes, charge, count = _judge.inner_product(beta, f.f, digits(f.low), f.error)
    if not isfinite(rest):
        return Bound(nan, inf)
    charge = (charge + (2 * count + 4) * PAIR_UNIT * sizes) * (1.0 + gamma(2 * count + 4)) + 16 * count * TINY
    return Bound(total, above(above(total + max(rest, 0.0)) + charge * SLACK))
