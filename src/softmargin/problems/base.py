"""The contracts between what is minimised and how.

Conventions, said once for the whole package:

    primal   P(w, b) = 1/2 |w|^2 + C * sum_i s_i max(0, 1 - y_i (w.x_i + b))
    dual     D(alpha) = sum_i alpha_i - 1/2 |sum_i alpha_i y_i x_i|^2,   0 <= alpha_i <= C s_i,
             and sum_i alpha_i y_i = 0 if the intercept is free

C multiplies a sum, as in scikit-learn, LIBSVM and LIBLINEAR (the cutting-plane papers write C/m: their C is our C m).
s_i is class weight times sample weight: 2 is the same as repeating the row, 0 removes it. In code labels and weights
travel together as signed weights v_i = s_i y_i, so a row's hinge is max(0, |v_i| - v_i (f_i + b)). Linear regression
and the linear one-class problem are sums of hinges as well, with targets t_i in place of the labels (`hinge_targets`):

    primal   P(w, b) = 1/2 |w|^2 + C * (sum_i max(0, v_i (t_i - w.x_i - b)) + b * total)

Kernel problems are one class, `problems.box_qp.BoxQP`, which is the contract itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from softmargin.core.result import Certificate, Solution
from softmargin.core.threads import Workers
from softmargin.data.rows import Flat, RowAccess
from softmargin.problems.intercepts import Intercept


@dataclass(frozen=True)
class Pattern:
    """The plane R(w) >= <X'c, w> + constant, tight at the outputs it was made from.

    `witness` is what the plane leaves behind, small enough to keep: from the witnesses of the planes and their
    weights the problem forms its dual vector.
    """

    c: np.ndarray
    constant: float
    witness: Any


@dataclass(frozen=True)
class Hint:
    """What a line search knows about the point it found: the best intercept, the sum of v over the rows active there,
    and the step that led there."""

    b: float
    sum_v: float
    step: float = 1.0


@dataclass(frozen=True)
class PlaneAlong:
    """The coefficients c of a plane, and its rise <c, df> along a line."""

    c: np.ndarray
    rise: float


@dataclass(frozen=True)
class LineMinimum:
    """The best point k found on a line, and a bracket [lo, hi] of the exact minimiser (lo = hi = k if exact).

    `hint` is for `follow` and for the next search from there; only the problem that made it looks inside.
    """

    k: float
    lo: float
    hi: float
    hint: Any = None


def is_wide(n_outputs: int, n_weights: int) -> bool:
    """Whether cutting planes are kept as outputs, because vectors of weights would take more than twice the memory.

    Where they are about as long, weights are quicker: they need no sums over witnesses.
    """
    return 2 * n_outputs < n_weights


def lives_elsewhere(problem: Any) -> bool:
    """Whether f and c of a problem are only the names of vectors, which lie in pieces on other machines.

    Solvers hand them back to the problem and never look inside; planes are then kept as slopes, whatever their length.
    """
    return getattr(problem, "elsewhere", False)


class RiskProblem(Protocol):
    """min over w of ``1/2 |w|^2 + C R(w)``, with R convex and a function of the outputs f = X w alone."""

    @property
    def C(self) -> float: ...
    @property
    def workers(self) -> Workers: ...
    @property
    def n_outputs(self) -> int:
        """Length of f."""
        ...

    @property
    def n_weights(self) -> int:
        """Length of w."""
        ...

    @property
    def scale(self) -> float:
        """A typical size of the objective: for classification C * sum(s), its value at w = 0, b = 0.

        The relative gap takes 1e-12 of it for zero, and the rule "epsilon" divides by it.
        """
        ...

    @property
    def lowest(self) -> float:
        """A lower bound of R that holds everywhere: 0 if R is a sum of losses, -infinity if R may be negative."""
        ...

    def outputs(self, w: np.ndarray) -> np.ndarray:
        """f = X w: an iteration's one product with X."""
        ...

    def risk(self, f: np.ndarray) -> float:
        """R, at the best intercept where that is free."""
        ...

    def pattern(self, f: np.ndarray) -> Pattern:
        """The cutting plane at f."""
        ...

    def follow(
        self, f: np.ndarray, df: np.ndarray, to: LineMinimum, k_plane: float
    ) -> tuple[np.ndarray, float, Pattern]:
        """The point f + k df that `to` found, its risk, and the cutting plane at f + k_plane df, in one go."""
        ...

    def slope(self, c: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        """X'c, or X'(c - before): an iteration's one product with the transpose."""
        ...

    def minimise_along(
        self,
        f: np.ndarray,
        df: np.ndarray,
        A0: float,
        B0: float,
        hint: Any = None,
        plane: PlaneAlong | None = None,
    ) -> LineMinimum:
        """Minimise over k >= 0: 1/2 A0 k^2 + B0 k + C R(f + k df).

        A hint about f and the last plane may save time; they move k within its bracket at most.
        """
        ...

    def coefficients(self, witnesses: Sequence[Any], weights: np.ndarray) -> np.ndarray:
        """sum_j weights_j c_j, from the witnesses alone."""
        ...

    def solution(self, w: np.ndarray, f: np.ndarray, witnesses: Sequence[Any], weights: np.ndarray) -> Solution:
        """The candidate for the judge: w with its best intercept, and the dual vector of the weighted planes."""
        ...


class RowProblem(RiskProblem, Protocol):
    """A risk that is a sum over rows, for solvers that visit one row at a time."""

    @property
    def signed_weights(self) -> np.ndarray: ...
    @property
    def targets(self) -> np.ndarray | None:
        """None if the target of each row is the sign of its weight, as in classification."""
        ...

    @property
    def intercept(self) -> Intercept: ...

    def rows_at(self, index: np.ndarray) -> tuple[Flat, np.ndarray]:
        """Flat arrays in which rows are contiguous, and the place in them of each row of `index`.

        The data themselves where they are stored by rows; a copy of just these rows where by columns.
        """
        ...


@dataclass(frozen=True)
class Coordinates:
    """The dual of a linear problem, row by row, in signed variables beta_i with w = X'beta:

        max over beta of sum_i t_i beta_i - epsilon |beta_i| - 1/2 ridge_i beta_i^2   -   1/2 |X'beta|^2

    with lo <= beta <= hi, and sum(beta) = total if the intercept is free. `target` is t. Losses that are squared have a
    ridge and endless ranges; of others the array is empty.
    """

    target: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    epsilon: float = 0.0
    total: float = 0.0
    ridge: np.ndarray = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class JointCoordinates:
    """The dual of the joint problem of several classes, with a variable beta_ik for each row and class:

        max over beta of -sum_i sum_(k != y_i) beta_ik - 1/2 sum_k |sum_i beta_ik x_i|^2

    with beta_ik <= limit_i for k = y_i, beta_ik <= 0 for the other classes, and sum_k beta_ik = 0. `codes` are y.
    """

    codes: np.ndarray
    limits: np.ndarray
    n_classes: int


class CoordinateProblem(Protocol):
    """A linear problem whose dual has one variable a row, or one for each class of a row, for solvers that change one
    row at a time."""

    C: float
    workers: Workers

    @property
    def rows(self) -> RowAccess: ...
    @property
    def intercept(self) -> Intercept: ...
    @property
    def coordinates(self) -> Coordinates | JointCoordinates: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_variables(self) -> int:
        """Length of beta: the variables of a row lie side by side."""
        ...

    @property
    def n_outputs(self) -> int:
        """Length of what `outputs` returns: the outputs of the rows come first."""
        ...

    @property
    def n_weights(self) -> int: ...
    @property
    def scale(self) -> float: ...
    def outputs(self, w: np.ndarray) -> np.ndarray: ...
    def risk(self, f: np.ndarray) -> float: ...
    def minimise_along(self, f: np.ndarray, df: np.ndarray, A0: float, B0: float) -> LineMinimum: ...
    def solution_of(self, w: np.ndarray, f: np.ndarray, beta: np.ndarray) -> Solution:
        """The candidate for the judge: w with its best intercept, and a dual vector."""
        ...


class SmoothProblem(CoordinateProblem, Protocol):
    """A linear problem with squared losses, whose objective has a slope everywhere; one variable a row."""

    @property
    def coordinates(self) -> Coordinates: ...
    def best_intercept(self, f: np.ndarray) -> float:
        """The best b for these outputs where b is free, and 0 elsewhere."""
        ...


class Judge(Protocol):
    """Recomputes primal, dual and gap of a candidate from the data; trusts nothing else."""

    def __call__(self, solution: Solution) -> Certificate: ...
