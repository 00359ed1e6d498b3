"""What a linear model is to learn from its rows, as a sum of hinges: two classes, numbers within a tube, or one class.

    R(w) = sum_j max(0, v_j (t_j - f_j - b)) + b total

    TwoClasses    one hinge a row      v_i = s_i y_i          t_i = y_i               total = 0
    Tube          two hinges a row     v = s_i and -s_i       t = y_i - e, y_i + e    total = 0
    OneClass      one hinge a row      v_i = s_i              t_i = 0                 total = nu sum(s)

The hinges of a Tube add up to s_i max(0, |y_i - f_i - b| - e), the epsilon-insensitive loss. The two hinges of a row
see the same output, so the data are never doubled: `spread` repeats the outputs, `fold` adds up the two coefficients.

A target also knows what the judge must know about it. In signed variables beta_i, one for each row, the dual is

    D(beta) = sum_i phi_i(beta_i) - 1/2 |sum_i beta_i x_i|^2,    and sum_i beta_i = C total if the intercept is free

    TwoClasses    phi = |beta_i|                    beta_i = y_i alpha_i, 0 <= alpha_i <= C s_i
    Tube          phi = y_i beta_i - e |beta_i|     |beta_i| <= C s_i
    OneClass      phi = 0                           0 <= beta_i <= s_i

`feasible` makes a beta that satisfies all of this in real arithmetic from whatever is handed in. The beta of OneClass
may have a sum that is a little larger than its total, which is enough: see `problems.feasible`.
"""

from dataclasses import dataclass
from functools import cached_property
from math import fsum, inf, nan
from typing import Any, Protocol

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.stopping import NEGLIGIBLE
from softmargin.data.rows import Products
from softmargin.linalg.rounding import TINY, above, below, two_product, two_sum
from softmargin.problems.base import Coordinates
from softmargin.problems.bracket import Bound, Side, costs
from softmargin.problems.feasible import balanced, clipped, exact_total, filled
from softmargin.problems.intercepts import Intercept

# The relative gap of a one-class problem is measured against at least this share of a typical size of the objective,
# because the optimum may be zero.
ONE_CLASS_SHARE = 1e-6


class HingeTarget(Protocol):
    """What the linear problem and its judge ask about a target."""

    @property
    def n_rows(self) -> int: ...
    @property
    def v(self) -> np.ndarray:
        """Signed weights, one for each hinge."""
        ...

    @property
    def t(self) -> np.ndarray | None:
        """Targets, one for each hinge; None if they are the signs of v."""
        ...

    @property
    def total(self) -> float: ...
    @property
    def lowest(self) -> float:
        """A lower bound of R: 0, or -infinity if R may be negative."""
        ...

    def check(self, C: float, intercept: Intercept) -> None:
        """Raise an error if there is no such problem."""
        ...

    def scale(self, rows: Products, C: float, intercept: Intercept) -> float:
        """A typical size of the objective; the relative gap takes 1e-12 of it for zero."""
        ...

    def spread(self, f: np.ndarray) -> np.ndarray:
        """From numbers for each row to numbers for each hinge."""
        ...

    def fold(self, c: np.ndarray) -> np.ndarray:
        """From coefficients of the hinges to coefficients of the rows: the transpose of `spread`."""
        ...

    def dual(self, alpha: np.ndarray) -> np.ndarray:
        """The dual vector of a solution, from the variables alpha >= 0 of the hinges."""
        ...

    @property
    def is_squared(self) -> bool:
        """Whether the losses are the squares of the hinges: see `squared_targets`."""
        ...

    def sides(self, b: float, C: float) -> list[Side]:
        """The losses of a model with the intercept b, for the judge."""
        ...

    def offset(self, b: float) -> Bound:
        """b total, and an upper bound of it."""
        ...

    def feasible(self, dual: np.ndarray, C: float, intercept: Intercept) -> np.ndarray:
        """Signed variables that satisfy the constraints of the dual exactly, from whatever is handed in."""
        ...

    def coordinates(self, C: float) -> Coordinates:
        """The dual as solvers see it that change one variable at a time, in rounded numbers."""
        ...

    def linear(self, beta: np.ndarray, C: float) -> Bound:
        """sum_i phi_i(beta_i), and a lower bound of it."""
        ...

    def alphas(self, beta: np.ndarray) -> np.ndarray:
        """The variables of the hinges, from the signed variables of the rows."""
        ...


class _Plain:
    """Losses that are the hinges themselves: a dual variable is at most C times the weight of its row."""

    @property
    def is_squared(self) -> bool:
        return False

    def _in_range(self, size: np.ndarray, weights: np.ndarray, C: float) -> np.ndarray:
        return clipped(size, weights, C)


class _OneHinge:
    """A hinge for each row: outputs and coefficients are the same for rows and hinges."""

    def spread(self, f: np.ndarray) -> np.ndarray:
        return f

    def fold(self, c: np.ndarray) -> np.ndarray:
        return c

    def dual(self, alpha: np.ndarray) -> np.ndarray:
        return alpha

    def alphas(self, beta: np.ndarray) -> np.ndarray:
        return np.abs(beta)


class _Nonnegative(_Plain):
    """Losses only: the risk is never negative, and b costs nothing."""

    @property
    def total(self) -> float:
        return 0.0

    @property
    def lowest(self) -> float:
        return 0.0

    def check(self, C: float, intercept: Intercept) -> None:
        pass

    def offset(self, b: float) -> Bound:
        return Bound(0.0, 0.0)


@dataclass(frozen=True)
class TwoClasses(_Nonnegative, _OneHinge):
    """Labels -1 and 1 with weights, as signed weights v_i = s_i y_i."""

    v: np.ndarray

    @property
    def n_rows(self) -> int:
        return self.v.size

    @property
    def t(self) -> np.ndarray | None:
        return None

    def scale(self, rows: Products, C: float, intercept: Intercept) -> float:
        """The objective at w = 0, b = 0."""
        return C * float(np.abs(self.v).sum())

    def sides(self, b: float, C: float) -> list[Side]:
        return [Side(slice(None), np.sign(self.v), b, costs(C, np.abs(self.v)))]

    def sized(self, dual: np.ndarray, C: float) -> tuple[np.ndarray, np.ndarray]:
        """Sizes of the signed variables within their ranges, and which of them are positive."""
        check_length(dual, self.n_rows)
        return self._in_range(dual, np.abs(self.v), C), self.v > 0

    def feasible(self, dual: np.ndarray, C: float, intercept: Intercept) -> np.ndarray:
        alpha, is_positive = self.sized(dual, C)
        if intercept.is_free:
            alpha = balanced(alpha, is_positive)
        return alpha * np.sign(self.v)

    def coordinates(self, C: float) -> Coordinates:
        upper = C * self.v
        return Coordinates(np.sign(self.v), np.minimum(upper, 0.0), np.maximum(upper, 0.0))

    def linear(self, beta: np.ndarray, C: float) -> Bound:
        value = fsum(np.abs(beta).tolist())
        return Bound(value, below(value))


@dataclass(frozen=True)
class Tube(_Nonnegative):
    """Numbers y with weights: a row loses what its output is further than epsilon from its number."""

    y: np.ndarray
    weights: np.ndarray
    epsilon: float

    @property
    def n_rows(self) -> int:
        return self.y.size

    @cached_property
    def v(self) -> np.ndarray:
        return np.concatenate([self.weights, -self.weights])

    @cached_property
    def t(self) -> np.ndarray:
        return np.concatenate([self.y - self.epsilon, self.y + self.epsilon])

    def scale(self, rows: Products, C: float, intercept: Intercept) -> float:
        """``C sum_i s_i max(|y_i - b|, epsilon)`` at the best b: the objective at w = 0, had the tube no width.

        The objective itself may be zero there. If this is zero as well, all numbers are the same, and their size
        counts.
        """
        distance = np.abs(self.y - _median(self.y, self.weights)) if intercept.is_free else np.abs(self.y)
        found = C * float(self.weights @ np.maximum(distance, self.epsilon))
        return found or C * float(self.weights @ np.abs(self.y)) or C * float(self.weights.sum())

    def spread(self, f: np.ndarray) -> np.ndarray:
        return np.concatenate([f, f])

    def fold(self, c: np.ndarray) -> np.ndarray:
        return c[: self.n_rows] + c[self.n_rows :]

    def dual(self, alpha: np.ndarray) -> np.ndarray:
        """alpha of the lower hinge less alpha of the upper one: a better point if both are positive."""
        return alpha[: self.n_rows] - alpha[self.n_rows :]

    def alphas(self, beta: np.ndarray) -> np.ndarray:
        return np.concatenate([np.maximum(beta, 0.0), np.maximum(-beta, 0.0)])

    def sides(self, b: float, C: float) -> list[Side]:
        upper, every = costs(C, self.weights), slice(None)
        low, high = two_sum(self.y, -self.epsilon), two_sum(self.y, self.epsilon)  # exact, unlike t
        one = np.ones(self.n_rows)
        return [Side(every, one, b, upper, *low), Side(every, -one, b, upper, *high)]

    def sized(self, dual: np.ndarray, C: float) -> tuple[np.ndarray, np.ndarray]:
        """As for two classes."""
        check_length(dual, self.n_rows)
        return self._in_range(np.abs(dual), self.weights, C), dual > 0.0

    def feasible(self, dual: np.ndarray, C: float, intercept: Intercept) -> np.ndarray:
        size, is_positive = self.sized(dual, C)
        if intercept.is_free:
            size = balanced(size, is_positive)
        return np.where(is_positive, size, -size)

    def coordinates(self, C: float) -> Coordinates:
        return Coordinates(self.y, -C * self.weights, C * self.weights, self.epsilon)

    def linear(self, beta: np.ndarray, C: float) -> Bound:
        used = np.flatnonzero(beta)
        if used.size == 0:
            return Bound(0.0, 0.0)
        part = beta[used]
        gain, price = two_product(part, self.y[used]), two_product(-self.epsilon, np.abs(part))
        value = exact_sum(*gain, *price)
        return Bound(value, below(below(value) - 16 * TINY * used.size))  # products of tiny numbers are rounded


@dataclass(frozen=True)
class OneClass(_Plain, _OneHinge):
    """All rows are of one class, with weights; at most the share nu of the weight lies beyond the plane w.x + b = 0.

    The objective ``1/2 |w|^2 + sum_i s_i max(0, -(w.x_i + b)) + b nu sum(s)`` is that of B. Scholkopf et al.,
    "Estimating the Support of a High-Dimensional Distribution", Neural Computation 13, 2001, with rho = -b, as LIBSVM
    scales it. C is 1, and the intercept is free.
    """

    weights: np.ndarray
    nu: float

    @property
    def n_rows(self) -> int:
        return self.weights.size

    @property
    def v(self) -> np.ndarray:
        return self.weights

    @cached_property
    def t(self) -> np.ndarray:
        return np.zeros(self.n_rows)

    @cached_property
    def total(self) -> float:
        return self.nu * float(self.weights.sum())

    @property
    def lowest(self) -> float:
        return -inf

    def check(self, C: float, intercept: Intercept) -> None:
        if C != 1.0 or not intercept.is_free or not 0.0 < self.nu <= 1.0:
            raise SoftmarginError(
                f"a one-class problem has C=1, a free intercept and 0 < nu <= 1, but C={C}, nu={self.nu} and "
                f"{intercept} were given."
            )

    def scale(self, rows: Products, C: float, intercept: Intercept) -> float:
        """A million times the floor of the relative gap, which is 1e-6 of ``1/2 nu^2 sum(s) sum_i s_i |x_i|^2``.

        That is the size of the objective for dual variables nu s_i if all rows point the same way. The optimum may be
        much smaller, or zero.
        """
        size = 0.5 * self.nu * self.total * float(self.weights @ rows.sq_norms())
        return (size or 1.0) * (ONE_CLASS_SHARE / NEGLIGIBLE)  # the stop rule multiplies by NEGLIGIBLE

    def sides(self, b: float, C: float) -> list[Side]:
        zeros = np.zeros(self.n_rows)
        return [Side(slice(None), np.ones(self.n_rows), b, self.weights, zeros, 0.0)]

    @cached_property
    def _exact_total(self) -> tuple[float, ...]:
        return exact_total(self.weights, self.nu)

    def offset(self, b: float) -> Bound:
        first, rest = fsum(self._exact_total[:1]), fsum(self._exact_total[1:])
        high, low = two_product(b, first)
        low += b * rest
        value = high + low
        # `low` is the sum of two terms, each smaller than 2^-52 of `high`, and rounded three times.
        return Bound(value, above(above(value) + 2.0**-98 * abs(high) + 64 * TINY))

    def feasible(self, dual: np.ndarray, C: float, intercept: Intercept) -> np.ndarray:
        check_length(dual, self.n_rows)
        return filled(clipped(dual, self.weights, 1.0), self.weights, self._exact_total)

    def coordinates(self, C: float) -> Coordinates:
        zeros = np.zeros(self.n_rows)
        return Coordinates(zeros, zeros, self.weights, total=self.total)

    def linear(self, beta: np.ndarray, C: float) -> Bound:
        return Bound(0.0, 0.0)


def as_target(target: Any) -> HingeTarget:
    """A target as it is; an array stands for the signed weights of two classes."""
    return TwoClasses(target) if isinstance(target, np.ndarray) else target


def check_length(dual: np.ndarray, n_rows: int) -> None:
    """Whether a dual vector has one entry for each row."""
    if np.shape(dual) != (n_rows,):
        raise SoftmarginError(
            f"the dual vector has {np.size(dual)} entries for {n_rows} rows: "
            "certify a model on the rows it was trained on, in the same order."
        )


def exact_sum(*parts: np.ndarray) -> float:
    """The sum of all entries, rounded once; not a number if it overflows."""
    try:
        return fsum(np.concatenate(parts).tolist())
    except (OverflowError, ValueError):
        return nan


def _median(y: np.ndarray, weights: np.ndarray) -> float:
    """A weighted median, which minimises the sum of the weighted distances."""
    order = np.argsort(y, kind="stable")
    sums = np.cumsum(weights[order])
    return float(y[order[np.searchsorted(sums, 0.5 * sums[-1])]])
