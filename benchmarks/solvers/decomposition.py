"""Decomposition methods on the linear kernel, as SVM-light is run in the papers on linear solvers.

SVM-light    our SVC with SVM-light's rule: sets of 10 variables, stop at a KKT violation of 1e-3
LIBSVM       scikit-learn's SVC with the linear kernel, in a process of its own, which is ended at the limit of time

Both have an intercept that costs nothing, which the linear solvers of these papers go without, and which SVM-light was
run without (-b 0): their objective may be lower for that reason. It is that of the model with its intercept.
"""

import time
import warnings
from math import nan

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.datasets import Problem
from benchmarks.datasets.qp_problems import QPProblem
from benchmarks.objective import Score, score
from benchmarks.solvers import kernel
from benchmarks.solvers.linear import Fit
from benchmarks.solvers.paper import Run

TOL = 1e-3
NOTE = (
    "SVM-light: our SVC with SVM-light's rule (working_set='decomposition', sets of 10), kernel='linear'; LIBSVM: "
    "scikit-learn's SVC. Both stop at a KKT violation of 1e-3, as the paper's SVM-light does, and have an intercept "
    "without a price, which the others here go without: their objective may be lower for it. A fit of LIBSVM that was "
    "cut leaves no model."
)


def svm_light(problem: Problem, C: float, limit: float) -> Run:
    """Its iterations are steps over sets of variables."""
    from softmargin import SVC

    model = SVC(C, kernel="linear", working_set="decomposition", stopping="kkt", tol=TOL, max_seconds=limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "kernel='linear' on", UserWarning)
        began = time.perf_counter()
        model.fit(problem.X, problem.y)
        seconds = time.perf_counter() - began
    ended = {"OPTIMAL": "tolerance", "MAX_SECONDS": f"cut at {limit:g} s"}.get(model.status_.name, model.status_.name)
    return Run(Fit(model, seconds, _score(problem, C, model)), int(model.n_iter_[0]), ended)


def libsvm(problem: Problem, C: float, limit: float) -> Run:
    machine = QPProblem(problem.name, problem.storage, problem.X, problem.y, C=C, kernel="linear")
    fit = kernel.libsvm_within(machine, TOL, limit)
    if fit.model is None:
        return Run(Fit(None, limit, Score(nan)), 0, f"cut at {limit:g} s")
    iterations = int(np.sum(fit.model.n_iter_))
    return Run(Fit(fit.model, fit.seconds, _score(problem, C, fit.model)), iterations, "tolerance")


def _score(problem: Problem, C: float, model: object) -> Score:
    w = model.coef_  # type: ignore[attr-defined]
    w = w.toarray() if hasattr(w, "toarray") else w
    return score(problem.X, problem.y, C, np.ravel(w), float(model.intercept_[0]), free_intercept=True)  # type: ignore[attr-defined]


DECOMPOSITION = {"SVM-light": svm_light, "LIBSVM": libsvm}
