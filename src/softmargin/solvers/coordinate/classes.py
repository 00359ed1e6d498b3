"""Coordinate descent on the joint problem of several classes: what differs from one variable a row.

    min over beta of 1/2 sum_k |sum_i beta_ik x_i|^2 + sum_i sum_(k != y_i) beta_ik,
    beta_ik <= limit_i if k = y_i and <= 0 otherwise,   sum_k beta_ik = 0 for every row

A visit minimises over all variables of the open classes of a row at once, exactly. A class is closed for a row if its
variable is at its bound and stays there by much: most rows lose to very few classes. Rows of which only one class may
grow, and is the best by more than any row was off, are set aside. Everything else is that of `coordinate`: orders, the
mean of the points, looks at the gap. At a look it is decided anew which rows are active and which classes are open.

Reference: S. S. Keerthi, S. Sundararajan, K.-W. Chang, C.-J. Hsieh, C.-J. Lin, "A Sequential Dual Method for Large
Scale Multi-Class Linear SVMs", KDD 2008, Algorithms 2 and 3; the row's problem is K. Crammer, Y. Singer, JMLR 2, 2001,
Section 5. Departs from the first: one threshold, the violation met in the last epoch, decides about rows and, with a
small factor, about classes; the row's problem is solved without sorting.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from softmargin.problems.base import CoordinateProblem, JointCoordinates


class ClassTerms(NamedTuple):
    """What belongs to each row: its class, its limit, and the square of its length; and how many classes there are."""

    codes: np.ndarray
    limits: np.ndarray
    curvature: np.ndarray
    n_classes: int


class OpenClasses(NamedTuple):
    """The classes of each row, the open ones first, and how many of these there are: see `_class_visits`."""

    order: np.ndarray
    n_open: np.ndarray


@dataclass(frozen=True)
class KnownClasses:
    """What follows from the problem alone; the same methods as `coordinate.Known`."""

    terms: ClassTerms
    n_classes: int
    present: np.ndarray
    row_values: float
    penalty: float = 0.0
    spread: float = 0.0
    first_dual: float = 0.0
    n_waiting: int = 0  # every active row is visited in every epoch

    @classmethod
    def of(cls, problem: CoordinateProblem, given: JointCoordinates) -> "KnownClasses":
        curvature = problem.rows.sq_norms() + problem.intercept.feature**2
        present = np.flatnonzero(given.limits > 0.0)
        flat = problem.rows.flat
        row_values = given.n_classes * max(1.0, flat.values.size / max(flat.n_rows, 1))
        return cls(
            ClassTerms(given.codes, given.limits, curvature, given.n_classes), given.n_classes, present, row_values
        )

    @property
    def n_rows(self) -> int:
        return self.terms.codes.size

    def clipped(self, beta: np.ndarray) -> np.ndarray:
        """beta within its ranges; the own class of a row makes up for the others."""
        found = np.minimum(beta.reshape(self.n_rows, self.n_classes), 0.0)
        every = np.arange(self.n_rows)
        found[every, self.terms.codes] = 0.0
        sums = -found.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            found *= np.where(sums > self.terms.limits, self.terms.limits / sums, 1.0)[:, None]
        found[every, self.terms.codes] = np.minimum(-found.sum(axis=1), self.terms.limits)
        return found.ravel()

    def weights(self, problem: CoordinateProblem, w: np.ndarray) -> np.ndarray:
        """The weights as the problem has them, class by class."""
        by_columns = w.reshape(-1, n_padded(self.n_classes))
        return by_columns[: problem.n_weights // self.n_classes, : self.n_classes].T.ravel()

    def first_weights(self, problem: CoordinateProblem, beta: np.ndarray) -> tuple[np.ndarray, float, float]:
        """sum_i beta_ik x_i, by columns and for a multiple of four classes; nothing has to add up to anything, and
        nothing is centred."""
        w = np.zeros((problem.rows.n_cols + 1, n_padded(self.n_classes)))
        if beta.any():
            for k, own in enumerate(beta.reshape(-1, self.n_classes).T):
                own = np.ascontiguousarray(own)
                slope = problem.intercept.extended(problem.rows.t_dot(own), float(own.sum()))
                w[: slope.size, k] = slope
        return w.ravel(), 0.0, 0.0

    def sweep(
        self,
        problem: CoordinateProblem,
        shape: Any,
        v: Any,
        sums: np.ndarray,
        counts: np.ndarray,
        most: int,
        goal: float,
        classes: Any,
    ) -> None:
        from softmargin.solvers.coordinate import _class_visits

        by_columns = v.w.reshape(-1, n_padded(self.n_classes))
        _class_visits.sweep(problem.rows.flat, self.terms, shape, v, classes, by_columns, sums, counts, most, goal)

    def copied(self, classes: "OpenClasses | None") -> "OpenClasses":
        """A copy of what is known about open classes, or all of them."""
        if classes is not None:
            return OpenClasses(classes.order.copy(), classes.n_open.copy())
        order = np.empty((self.n_rows, self.n_classes), dtype=np.uint16)
        order[:] = np.arange(self.n_classes)
        return OpenClasses(order, np.full(self.n_rows, self.n_classes, dtype=np.int32))

    def judged(
        self, problem: CoordinateProblem, beta: np.ndarray, w: np.ndarray, excess: float
    ) -> tuple[np.ndarray, float, int]:
        """The variables, their dual value, and passes over the data: none."""
        gains = beta.reshape(-1, self.n_classes)[np.arange(self.n_rows), self.terms.codes]
        return beta, float(gains.sum()) - 0.5 * float(w @ w), 0

    def rooms(self, state: Any, f: np.ndarray) -> np.ndarray:
        from softmargin.solvers.coordinate import _class_visits

        out = np.empty(self.n_rows)
        threshold = state.sweep.threshold if state.sweep.threshold >= 0.0 else math.inf
        _class_visits.rooms(self.terms, state.beta, f.reshape(self.n_classes, -1), state.classes, threshold, out)
        return out


def n_padded(n_classes: int) -> int:
    """The least multiple of four that has room for all classes."""
    return 4 * -(-n_classes // 4)


def is_state_of_classes(problem: CoordinateProblem, given: JointCoordinates, state: Any, slack: float) -> bool:
    """Whether it can be a state of this problem: see `CoordinateState.is_one_of`."""
    sweep, present = state.sweep, np.flatnonzero(given.limits > 0.0)
    if sweep.wait.size or sweep.due_turn.size:
        return False
    if not 0 <= sweep.n_active <= sweep.order.size or not np.array_equal(np.sort(sweep.order), present):
        return False
    beta = state.beta.reshape(-1, given.n_classes)
    own = np.arange(given.n_classes) == given.codes[:, None]
    limits = (state.C / problem.C) * given.limits[:, None] * (1.0 + slack)
    if not (beta <= np.where(own, limits, 0.0)).all() or not (np.abs(beta.sum(axis=1)) <= limits[:, 0] * slack).all():
        return False
    w, _, _ = KnownClasses.of(problem, given).first_weights(problem, state.beta)
    return bool(np.abs(sweep.w - w).max(initial=0.0) <= slack * (1.0 + np.abs(w).max(initial=0.0)))
