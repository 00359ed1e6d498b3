"""Linear hinge SVMs: softmargin's, and scikit-learn's: LIBLINEAR's dual coordinate descent and SGDClassifier."""

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
    problem: Problem,
    C: float,
    *,
    free_intercept: bool = False,
    judge: bool = True,
    model: Any = None,
    **parameters: Any,
) -> Fit:
    """Our LinearSVC. A fit that ends early warns; here its status is in the table instead.

    `model` is one to go on with, for warm starts.
    """
    from softmargin import LinearSVC

    C = C * problem.C_factor
    model = LinearSVC() if model is None else model
    model, seconds = _timed(model.set_params(C=C, fit_intercept=free_intercept, **parameters), problem)
    if not judge:
        return Fit(model, seconds, Score(nan))
    found = score(problem.X, problem.y, C, model.coef_, model.intercept_[0], model.dual_, free_intercept=free_intercept)
    return Fit(model, seconds, found)


def liblinear(problem: Problem, C: float, tol: float, max_iter: int = 1_000_000) -> Fit:
    """scikit-learn's LinearSVC with the hinge loss, without intercept; it brings no dual vector to judge."""
    from sklearn.svm import LinearSVC

    rival = LinearSVC(C=C, loss="hinge", dual=True, fit_intercept=False, tol=tol, max_iter=max_iter, random_state=0)
    model, seconds = _timed(rival, problem)
    return Fit(model, seconds, score(problem.X, problem.y, C, model.coef_))


def sgd_classifier(problem: Problem, C: float, epochs: int) -> Fit:
    """scikit-learn's SGDClassifier with the hinge loss and its own step lengths, without intercept."""
    from sklearn.linear_model import SGDClassifier

    alpha = 1.0 / (C * problem.X.shape[0])
    rival = SGDClassifier(loss="hinge", alpha=alpha, max_iter=epochs, tol=None, fit_intercept=False, random_state=0)
    model, seconds = _timed(rival, problem)
    return Fit(model, seconds, score(problem.X, problem.y, C, model.coef_))


def _timed(model: Any, problem: Problem) -> tuple[Any, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        began = time.perf_counter()
        model.fit(problem.X, problem.y)
        return model, time.perf_counter() - began
