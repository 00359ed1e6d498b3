"""An estimator of one's own: kernel quantile regression, which predicts what, say, 90 % of the rows stay below.

    min of 1/2 |w|^2 + C sum_i s_i (q max(0, y_i - w.phi(x_i) - b) + (1 - q) max(0, w.phi(x_i) + b - y_i))

It is regression in which errors to one side cost more than errors to the other. Kernel, solvers, judge, weights, warm
start and everything else are those of `SVR`; only what a row loses is new.

Reference: I. Takeuchi, Q. Le, T. Sears, A. Smola, Nonparametric Quantile Estimation, JMLR 7, 2006.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from softmargin import SVR, SoftmarginError, certify
from softmargin.problems import RowLoss
from softmargin.tasks.lazy import Lazy
from softmargin.tasks.records import TASK_NAMED


@dataclass(frozen=True)
class QuantileTarget:
    """What is learned from the rows of `index`: see `KernelTarget` in estimators/kernel_targets.py."""

    index: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    quantile: float

    @property
    def parts(self) -> tuple[np.ndarray, ...]:
        """Arrays that tell this target from another: a warm start from a fit with other ones would be wrong."""
        return self.index, self.y, self.weights, np.array([self.quantile])

    def loss(self, C: float) -> RowLoss:
        """`over` is what it costs to predict too little, `under` to predict too much."""
        return RowLoss(self.y, self.quantile * self.weights, (1.0 - self.quantile) * self.weights, C)

    def answer(self) -> None:
        """There is always something to solve."""


class QuantileSVR(SVR):
    """Predicts the `quantile` of y: parameters are those of `SVR`, but there is no tube."""

    def __init__(
        self,
        C: float = 1.0,
        *,
        quantile: float = 0.5,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        super().__init__(C, epsilon=0.0, kernel=kernel, gamma=gamma)
        self.quantile = quantile
        self.tol, self.max_iter, self.max_seconds = tol, max_iter, max_seconds
        self.n_jobs, self.warm_start, self.verbose = n_jobs, warm_start, verbose

    def _target(self, y: np.ndarray, index: np.ndarray, weights: np.ndarray) -> QuantileTarget:
        if not 0.0 < self.quantile < 1.0:
            raise SoftmarginError(f"quantile={self.quantile!r} must lie between 0 and 1.")
        return QuantileTarget(index, y[index], weights, float(self.quantile))


# The record that would go to tasks/records.py, where it is written out in full.
HOME = Lazy("extend_estimator:QuantileSVR")
RECORD = replace(TASK_NAMED["SVR"], home=HOME, machine=HOME, word="quantile")


def main() -> None:
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    for quantile in (0.1, 0.5, 0.9):
        model = QuantileSVR(C=100, quantile=quantile, gamma=0.005).fit(X, y)
        share, again = np.mean(y < model.predict(X)), certify(model, X, y)
        print(f"quantile {quantile}: {share:.0%} of the rows lie below; proven again: {again.relative_gap <= 1e-3}")


if __name__ == "__main__":
    main()
