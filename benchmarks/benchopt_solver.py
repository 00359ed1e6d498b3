"""softmargin for benchopt's public benchmark of this very problem: linear SVM, hinge loss, two classes, no intercept.

The benchmark is benchopt/benchmark_linear_svm_binary_classif_no_intercept on GitHub. Copy this file into its folder
`solvers/`, with a name of your choice, and run for example

    benchopt run . -s softmargin -s sklearn -d news20

Its curves are made of fits to one tolerance after the other.
"""

import warnings
from typing import Any, ClassVar

import numpy as np
from benchopt import BaseSolver


class Solver(BaseSolver):
    """LinearSVC to a relative duality gap; every point of its curve comes with a proof."""

    name = "softmargin"
    install_cmd = "conda"
    requirements = ("pip::softmargin",)
    sampling_strategy = "tolerance"
    parameters: ClassVar = {"solver": ["auto"], "n_jobs": [1]}

    def set_objective(self, X: Any, y: np.ndarray, C: float) -> None:
        from softmargin import LinearSVC

        self.X, self.y = X, y
        self.model = LinearSVC(C=C, fit_intercept=False, solver=self.solver, n_jobs=self.n_jobs)

    def warm_up(self) -> None:
        """A fit that is not timed: it compiles, or loads what was compiled."""
        self.run(0.5)

    def run(self, tolerance: float) -> None:
        """benchopt begins with a large tolerance; w = 0 has a gap of 1."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a tolerance that rounding does not allow: the curve ends there
            self.model.set_params(tol=min(tolerance, 0.99)).fit(self.X, self.y)

    def get_result(self) -> dict[str, np.ndarray]:
        return {"beta": self.model.coef_.ravel()}
