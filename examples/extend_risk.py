"""A risk of one's own: least absolute deviations, a linear regression that cutting planes solve unchanged.

    primal   P(w)     = 1/2 |w|^2 + C sum_i s_i |w.x_i - y_i|
    dual     D(theta) = sum_i theta_i y_i - 1/2 |sum_i theta_i x_i|^2,   |theta_i| <= C s_i

A plane of R has coefficients c_i = s_i sign(f_i - y_i) and the constant -sum_i c_i y_i; weights gamma of the planes
make w = X'theta with theta = -sum_j gamma_j c_j.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from softmargin import CPA, OCAS, Certificate
from softmargin.core.result import Solution
from softmargin.core.stopping import Stop, relative_gap
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.data.rows import Rows
from softmargin.problems.base import Hint, LineMinimum, Pattern, PlaneAlong
from softmargin.problems.breakpoints import zero
from softmargin.solvers.base import run


@dataclass(frozen=True)
class AbsoluteError:
    """What is minimised. A witness holds the sign of each row's error, one byte a row."""

    rows: Rows
    y: np.ndarray
    s: np.ndarray
    C: float
    workers: Workers = field(default_factory=Workers)

    @property
    def n_outputs(self) -> int:
        return self.rows.n_rows

    @property
    def n_weights(self) -> int:
        return self.rows.n_cols

    @cached_property
    def scale(self) -> float:
        return self.C * self.risk(np.zeros(self.n_outputs))

    @property
    def lowest(self) -> float:
        return 0.0  # absolute errors are not negative

    def outputs(self, w: np.ndarray) -> np.ndarray:
        return self.rows.dot(w)

    def slope(self, c: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        return self.rows.t_dot(c, before)

    def risk(self, f: np.ndarray) -> float:
        return float(self.s @ np.abs(f - self.y))

    def pattern(self, f: np.ndarray) -> Pattern:
        signs = np.sign(f - self.y).astype(np.int8)
        c = self.s * signs
        return Pattern(c, -float(c @ self.y), signs)

    def follow(
        self, f: np.ndarray, df: np.ndarray, to: LineMinimum, k_plane: float
    ) -> tuple[np.ndarray, float, Pattern]:
        f_new = f + to.k * df
        return f_new, self.risk(f_new), self.pattern(f + k_plane * df)

    def minimise_along(
        self,
        f: np.ndarray,
        df: np.ndarray,
        A0: float,
        B0: float,
        hint: Hint | None = None,
        plane: PlaneAlong | None = None,
    ) -> LineMinimum:
        error = f - self.y
        rate = self.C * self.s * np.abs(df)
        falls = error * df < 0.0
        slope = B0 + float(rate[~falls].sum()) - float(rate[falls].sum())  # of the objective, right of k = 0
        k = 0.0
        if slope < 0.0:
            k = zero(-error[falls] / df[falls], 2.0 * rate[falls], slope, A0, 0.0, inf)
        return LineMinimum(k, k, k)

    def coefficients(self, witnesses: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
        signs = np.zeros(self.n_outputs)
        for witness, weight in zip(witnesses, weights, strict=True):
            signs += weight * witness
        return self.s * signs

    def solution(self, w: np.ndarray, f: np.ndarray, witnesses: Sequence[np.ndarray], weights: np.ndarray) -> Solution:
        return Solution(w, 0.0, -self.coefficients(witnesses, weights))


@dataclass(frozen=True)
class AbsoluteErrorJudge:
    """Is it true? From the data and the candidate (w, theta) alone."""

    rows: Rows
    y: np.ndarray
    s: np.ndarray
    C: float

    def __call__(self, solution: Solution) -> Certificate:
        w, upper = solution.w, self.C * self.s
        theta = np.clip(np.nan_to_num(solution.alpha), -upper, upper)
        w_theta = self.rows.t_dot(theta)
        primal = 0.5 * float(w @ w) + float(upper @ np.abs(self.rows.dot(w) - self.y))
        dual = float(theta @ self.y) - 0.5 * float(w_theta @ w_theta)

        lengths = np.sqrt(self.rows.sq_norms())
        reach = upper @ lengths * np.linalg.norm(w) + np.abs(theta) @ lengths * np.linalg.norm(w_theta)
        dual -= float(np.finfo(np.float64).eps * reach)  # an estimate of the rounding errors of both values
        gradient = self.y - self.rows.dot(w_theta)
        blocked = np.where(gradient > 0.0, theta >= upper, theta <= -upper)
        scale = float(upper @ np.abs(self.y))
        return Certificate(
            primal=primal,
            dual=dual,
            gap=primal - dual,
            relative_gap=relative_gap(primal, dual, scale),
            kkt_violation=float(np.abs(gradient[~blocked]).max(initial=0.0)),
        )


def main() -> None:
    X, y = load_diabetes(return_X_y=True)
    rows, y = as_rows(StandardScaler().fit_transform(X)), y - np.median(y)
    s = np.ones(y.size)
    for solver in (OCAS(), CPA()):
        result = run(solver, AbsoluteError(rows, y, s, C=1.0), Stop(tol=1e-4), AbsoluteErrorJudge(rows, y, s, C=1.0))
        print(f"{type(solver).__name__}: {result.status.name} after {result.counts['iterations']} iterations")
        print(f"the optimum is at most {result.certificate.primal:.0f}, off by {result.certificate.relative_gap:.0e}")


if __name__ == "__main__":
    main()
