"""Linear hinge SVMs: softmargin's, and LIBLINEAR's dual coordinate descent as scikit-learn wraps it."""

import time
import warnings
from dataclasses import dataclass
from math import nan
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from benchmarks.datasets import Problem
from benchmarks.objective import Score, score


@dataclass(frozen=True)
class Fit:
    """A trained model, the seconds of the whole `fit`, and what the judge says of it."""

    model: Any
    seconds: float
    score: Score


def softmargin(
    problem: Problem, C: float, *, free_intercept: bool = False, judge: bool = True, **parameters: Any
) -> Fit:
    """Our LinearSVC. A fit that ends early warns; here its status is in the table instead."""
    from softmargin import LinearSVC

    C = C * problem.C_factor
    model, seconds = _timed(LinearSVC(C=C, fit_intercept=free_intercept, **parameters), problem)
    if not judge:
        return Fit(model, seconds, Score(nan))
    found = score(problem.X, problem.y, C, model.coef_, model.intercept_[0], model.dual_, free_intercept=free_intercept)
    return Fit(model, seconds, found)


def liblinear(problem: Problem, C: float, tol: float) -> Fit:
    """scikit-learn's LinearSVC with the hinge loss, without intercept; it brings no dual vector to judge."""
    from sklearn.svm import LinearSVC

    rival = LinearSVC(C=C, loss="hinge", dual=True, fit_intercept=False, tol=tol, max_iter=1_000_000, random_state=0)
    model, seconds = _timed(rival, problem)
    return Fit(model, seconds, score(problem.X, problem.y, C, model.coef_))


def _timed(model: Any, problem: Problem) -> tuple[Any, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        began = time.perf_counter()
        model.fit(problem.X, problem.y)
        return model, time.perf_counter() - began
