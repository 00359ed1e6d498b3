"""Regression and one class: softmargin's machines, LIBSVM's and LIBLINEAR's (scikit-learn), and oneDAL's.

Kernel machines stop at a KKT violation of `kernel.TOL`, as in the race of classifiers. oneDAL has no one-class machine
of its own: scikit-learn-intelex hands that to LIBSVM.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from benchmarks.datasets.regression_problems import FamilyProblem
from benchmarks.family_objective import number_score, one_class_score
from benchmarks.objective import Score, regression_primal
from benchmarks.solvers.kernel import RIVAL_CACHE_MB, TOL, check_accelerated, messages

LINEAR_TOL = 1e-3  # relative gap of our linear fits
LINEAR_TOLS = (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4)  # what LIBLINEAR tries, until it is as good


@dataclass(frozen=True)
class FamilyFit:
    """A trained model, its problem, and the seconds of the whole `fit`."""

    problem: FamilyProblem
    model: Any
    seconds: float

    @cached_property
    def score(self) -> Score:
        """What the judge of the benchmarks says of it."""
        p = self.problem
        if not hasattr(self.model, "dual_coef_"):
            return Score(regression_primal(p.X, p.y, p.C, p.epsilon, self.model.coef_))
        if p.nu:
            return one_class_score(p.X, p.nu, p.gamma, self.model)
        return number_score(p.X, p.y, p.C, p.epsilon, p.gamma, self.model)


def softmargin(problem: FamilyProblem, tol: float = TOL, n_jobs: int = 2) -> FamilyFit:
    """Our SVR or OneClassSVM."""
    from softmargin import SVR, OneClassSVM

    settings: dict[str, Any] = {"stopping": "kkt", "tol": tol, "n_jobs": n_jobs, "gamma": problem.gamma}
    if problem.nu:
        return _timed(OneClassSVM(nu=problem.nu, **settings), problem)
    return _timed(SVR(C=problem.C, epsilon=problem.epsilon, **settings), problem)


def libsvm(problem: FamilyProblem) -> FamilyFit:
    from sklearn.svm import SVR, OneClassSVM

    settings: dict[str, Any] = {"tol": TOL, "gamma": problem.gamma, "cache_size": RIVAL_CACHE_MB}
    if problem.nu:
        return _timed(OneClassSVM(nu=problem.nu, **settings), problem)
    return _timed(SVR(C=problem.C, epsilon=problem.epsilon, **settings), problem)


def onedal(problem: FamilyProblem) -> FamilyFit:
    """It hands what it does not support to scikit-learn, which is an error here: that is not what is measured."""
    from sklearnex.svm import SVR  # type: ignore[import-untyped]

    model = SVR(C=problem.C, epsilon=problem.epsilon, gamma=problem.gamma, tol=TOL, cache_size=RIVAL_CACHE_MB)
    with messages() as said:
        fit = _timed(model, problem)
    check_accelerated(said, "fit")
    return fit


RIVALS: dict[str, Callable[[FamilyProblem], FamilyFit]] = {"oneDAL": onedal, "LIBSVM": libsvm}


def softmargin_linear(problem: FamilyProblem, n_jobs: int = 1) -> FamilyFit:
    """Our LinearSVR, without intercept: LIBLINEAR penalises it, so that only then both solve the same problem."""
    from softmargin import LinearSVR

    model = LinearSVR(C=problem.C, epsilon=problem.epsilon, fit_intercept=False, tol=LINEAR_TOL, n_jobs=n_jobs)
    return _timed(model, problem)


def liblinear(problem: FamilyProblem, tol: float) -> FamilyFit:
    from sklearn.svm import LinearSVR

    settings: dict[str, Any] = {"fit_intercept": False, "dual": True, "max_iter": 1_000_000, "random_state": 0}
    return _timed(LinearSVR(C=problem.C, epsilon=problem.epsilon, tol=tol, **settings), problem)


def _timed(model: Any, problem: FamilyProblem) -> FamilyFit:
    """A fit that ends early warns; here its status is in the table instead."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        began = time.perf_counter()
        if problem.nu:
            model.fit(problem.X)
        else:
            model.fit(problem.X, problem.y)
        return FamilyFit(problem, model, time.perf_counter() - began)
