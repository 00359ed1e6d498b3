"""The judge of several classes at once: primal value, dual bound and gap of any candidate, from the data alone.

    primal = 1/2 sum_k |w_k|^2 + C sum_i s_i max over k of (1[k != y_i] + w_k.x_i - w_(y_i).x_i)
    dual   = sum_ik alpha_ik - 1/2 sum_k |v_k|^2,   v_k = sum_i (1[k = y_i] sum_m alpha_im - alpha_ik) x_i

with alpha_ik >= 0, alpha_ik = 0 for k = y_i, and sum_k alpha_ik <= C s_i. The intercepts b_k are those of a constant
feature, or zero. alpha is made feasible first, exactly: negative numbers and those of a row's own class become zero,
and the variables of each row are rounded down to multiples of the last digit of the largest number that is at most
C s_i, so that their sums are computed without error. Rounding of both values is charged as in `certificate`.

The KKT violation is that of S. S. Keerthi, S. Sundararajan, K.-W. Chang, C.-J. Hsieh, C.-J. Lin, "A Sequential Dual
Method for Large Scale Multi-Class Linear SVMs", KDD 2008, eq. (10): a computed number, not a bound.
"""

from dataclasses import dataclass, field
from math import fsum

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Certificate, Solution
from softmargin.core.stopping import AT_BOUND
from softmargin.data.precise import (
    Outputs,
    combination,
    digits,
    lengths_above,
    outputs,
    sharper_combination,
    sharper_outputs,
)
from softmargin.data.rows import Products
from softmargin.linalg.rounding import SLACK, TINY, above, below, gamma, square_above, sum_above
from softmargin.problems.bracket import Bound, certificate, dual_below, is_coarse
from softmargin.problems.feasible import clipped
from softmargin.problems.intercepts import Intercept, NoIntercept
from softmargin.problems.joint import check_joint

_NO_DIGITS = np.empty((0, 0))


@dataclass(frozen=True)
class JointJudge:
    """Judge of the joint problem with the given data; `tol` is the relative gap that is to be proven."""

    rows: Products
    codes: np.ndarray
    weights: np.ndarray
    n_classes: int
    C: float
    intercept: Intercept = field(default_factory=NoIntercept)
    tol: float = 0.0

    def __call__(self, solution: Solution) -> Certificate:
        check_joint(self.codes, self.n_classes, self.intercept)
        W, b = np.atleast_2d(np.asarray(solution.w, dtype=np.float64)), np.asarray(solution.b, dtype=np.float64)
        alpha = np.asarray(solution.alpha, dtype=np.float64)
        self._check(W, b, alpha.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            return self._certificate(W, b, alpha)

    def feasible(self, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A dual vector by classes that satisfies the constraints exactly, from whatever is handed in, and the sums of
        the variables of each row."""
        from softmargin.problems import _joint_judge

        found, sums = np.array(alpha.T, dtype=np.float64, order="C"), np.empty(self.codes.size)
        _joint_judge.make_feasible(found, self.codes, self._limits(), sums)
        return found, sums

    def _limits(self) -> np.ndarray:
        """The largest numbers that are at most C s_i."""
        return clipped(np.full(self.codes.size, np.inf), self.weights, self.C)

    def _certificate(self, W: np.ndarray, b: np.ndarray, alpha: np.ndarray) -> Certificate:
        rows, intercept = self.rows, self.intercept
        scale = self.C * float(self.weights.sum())
        lengths = lengths_above(rows)

        squares = sum(intercept.square(float(b_k)) for b_k in b)
        half_norm = Bound(
            0.5 * (float(np.vdot(W, W)) + squares),
            above(0.5 * (square_above(W.ravel()) + squares * SLACK) * SLACK + b.size * TINY * bool(squares)),
        )
        found = [outputs(rows, w, lengths) for w in W]
        loss, near = self._losses(found, b)
        primal = half_norm.plus(loss)

        alpha, sums = self.feasible(alpha)
        total = fsum(sums.tolist())
        # Row i counts -alpha_ik for the class k, and the sum of its variables for its own class.
        alpha[self.codes, np.arange(self.codes.size)] = -sums
        pulls = -alpha
        bounds, vectors = zip(*(combination(rows, pull, lengths) for pull in pulls), strict=True)
        sums_of_pulls = [fsum(pull.tolist()) if intercept.feature else 0.0 for pull in pulls]
        extra = 0.5 * sum(map(intercept.dual_square, sums_of_pulls))
        value = total - 0.5 * sum(float(v @ v) for v in vectors) - extra
        dual = Bound(value, _dual_bound(total, bounds, extra))

        if is_coarse(primal, dual, scale, self.tol):
            index = np.flatnonzero(near)
            sharp = [
                own.replaced(index, sharper_outputs(rows, w, lengths, index)) for own, w in zip(found, W, strict=True)
            ]
            primal = half_norm.plus(self._losses(sharp, b)[0])
            sharper = (sharper_combination(rows, pull, lengths) for pull in pulls)
            dual = Bound(value, _dual_bound(total, list(map(min, bounds, sharper)), extra))
        violation = self._violation(-pulls, sums, vectors, sums_of_pulls)
        return certificate(primal, dual, scale, violation)

    def _losses(self, found: list[Outputs], b: np.ndarray) -> tuple[Bound, np.ndarray]:
        """The sum of the losses, and which rows have one or may have one."""
        from softmargin.problems import _joint_judge

        f, error = np.array([own.f for own in found]), np.array([own.error for own in found])
        has_digits = any(digits(own.low).size for own in found)
        low = np.array([np.zeros(own.f.size) + own.low for own in found]) if has_digits else _NO_DIGITS
        near = np.zeros(self.codes.size, dtype=np.bool_)
        value, bound, slacks = _joint_judge.add_losses(
            f, low, error, b, self.codes, self.weights, self.C * self.weights, near
        )
        factor = 1.0 + gamma(self.codes.size + 8)
        return Bound(value, above((bound + TINY * (self.codes.size + slacks)) * factor)), near

    def _violation(
        self, alpha: np.ndarray, sums: np.ndarray, vectors: tuple[np.ndarray, ...], sums_of_pulls: list[float]
    ) -> float:
        from softmargin.problems import _joint_judge

        f = np.array([self.rows.dot(v) for v in vectors])
        f += np.array([[self.intercept.dual_intercept(sum_)] for sum_ in sums_of_pulls])
        return _joint_judge.violation(alpha, sums, self.codes, self.C * self.weights, f, AT_BOUND)

    def _check(self, W: np.ndarray, b: np.ndarray, shape: tuple[int, ...]) -> None:
        if W.shape != (self.n_classes, self.rows.n_cols) or b.shape != (self.n_classes,):
            raise SoftmarginError(
                f"the model has weights of shape {W.shape} and {b.size} intercepts, but the data {self.n_classes} "
                f"classes and {self.rows.n_cols} features: certify a model on the data it was trained on."
            )
        if shape != (self.codes.size, self.n_classes):
            raise SoftmarginError(
                f"the dual variables have shape {shape} for {self.codes.size} rows and {self.n_classes} classes: "
                "certify a model on the rows it was trained on, in the same order."
            )
        for b_k in b.tolist():
            self.intercept.check(b_k)


def _dual_bound(total: float, lengths: "tuple[float, ...] | list[float]", extra: float) -> float:
    """A lower bound of the dual value, given a sum that was rounded once, upper bounds of the lengths of the vectors of
    all classes, and what the intercepts take."""
    halves = sum_above(np.array([above(0.5 * length * length * SLACK) for length in lengths]))
    return dual_below(below(total), 0.0, above(halves + extra * SLACK + len(lengths) * TINY * bool(extra)))
