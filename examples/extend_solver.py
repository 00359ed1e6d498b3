"""A solver of one's own: Frank-Wolfe on the dual, which keeps one averaged plane instead of all of them.

    max of D = C e - 1/2 |w|^2 with w = -C a, over the averages (a, e) of planes <a, w> + e <= R(w)

    repeat:
        (a', e') = the plane that touches R at w,  w' = -C a'
        k = min(1, (P(w) - D) / |w' - w|^2)              the best step: at k = 0 the gap is the derivative of D
        average the plane in with weight k, so that w = w + k (w' - w)

Reference: S. Lacoste-Julien, M. Jaggi, M. Schmidt, P. Pletscher, Block-Coordinate Frank-Wolfe Optimization for
Structural SVMs, ICML 2013, Algorithm 2. Departs from the paper: the best point so far is what is returned.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from softmargin import LinearSVC
from softmargin.core.kinds import PLANES
from softmargin.core.result import Solution
from softmargin.core.stopping import Measure
from softmargin.problems.base import RiskProblem


@dataclass(frozen=True)
class FrankWolfeState:
    """A solve between two steps: w and its outputs f, `offset` = C e, and what the average is made of.

    `witnesses` are one bit a row for each plane, `weights` add up to C at most. `value` is the primal value of w,
    `primal` that of the best point so far.
    """

    w: np.ndarray
    f: np.ndarray
    offset: float
    witnesses: tuple
    weights: np.ndarray
    value: float
    best: np.ndarray
    best_f: np.ndarray
    primal: float
    C: float
    last_step: float = 1.0
    iterations: int = 0

    @property
    def dual(self) -> float:
        return self.offset - 0.5 * float(self.w @ self.w)


@dataclass(frozen=True)
class FrankWolfe:
    """The method. Settings are fields: this one has none but the stop rule."""

    stopping: str = "relative_gap"
    needs: ClassVar[str] = PLANES
    state_type: ClassVar[type] = FrankWolfeState

    def init(self, problem: RiskProblem, start: Any = None) -> FrankWolfeState:
        if isinstance(start, FrankWolfeState) and start.C == problem.C:
            return start
        w, f = np.zeros(problem.n_weights), np.zeros(problem.n_outputs)
        value = problem.C * problem.risk(f)
        return FrankWolfeState(w, f, 0.0, (), np.empty(0), value, w, f, value, problem.C)

    def step(self, problem: RiskProblem, state: FrankWolfeState) -> FrankWolfeState:
        plane = problem.pattern(state.f)
        line = -problem.C * problem.slope(plane.c) - state.w
        sq_length = float(line @ line)
        k = min(1.0, (state.value - state.dual) / sq_length) if sq_length > 0.0 else 1.0
        w = state.w + k * line
        f = state.f + k * problem.outputs(line)
        value = 0.5 * float(w @ w) + problem.C * problem.risk(f)
        is_better = value < state.primal
        return replace(
            state,
            w=w,
            f=f,
            offset=(1.0 - k) * state.offset + k * problem.C * plane.constant,
            witnesses=(*state.witnesses, plane.witness),
            weights=np.append((1.0 - k) * state.weights, k * problem.C),
            value=value,
            best=w if is_better else state.best,
            best_f=f if is_better else state.best_f,
            primal=min(value, state.primal),
            last_step=k,
            iterations=state.iterations + 1,
        )

    def measure(self, problem: RiskProblem, state: FrankWolfeState) -> Measure:
        violation = (state.primal - state.dual) / problem.scale
        return Measure(state.primal, state.dual, problem.scale, violation)

    def counts(self, state: FrankWolfeState) -> dict[str, int]:
        return {"iterations": state.iterations, "passes": 2 * state.iterations}

    def solution(self, problem: RiskProblem, state: FrankWolfeState) -> Solution:
        return problem.solution(state.best, state.best_f, state.witnesses, state.weights)

    def is_stalled(self, state: FrankWolfeState) -> bool:
        return state.last_step < 1e-15


def main() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    for solver in (FrankWolfe(), "ocas"):
        model = LinearSVC(C=0.1, solver=solver, tol=1e-2).fit(X, y)
        print(f"{solver}: {model.status_.name} after {model.n_iter_} iterations")


if __name__ == "__main__":
    main()
