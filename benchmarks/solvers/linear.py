"""Linear SVMs: softmargin's, scikit-learn's (LIBLINEAR and SGDClassifier), LIBLINEAR's own package, and ReHLine."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
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
    biases, duals = np.ravel(model.intercept_), model.dual_.reshape(problem.X.shape[0], -1).T
    squared = model.loss == "squared_hinge"
    return Fit(model, seconds, _score(problem, C, model.coef_, squared, biases, duals, free_intercept))


def liblinear(
    problem: Problem, C: float, tol: float, max_iter: int = 1_000_000, loss: str = "hinge", dual: bool = True
) -> Fit:
    """scikit-learn's LinearSVC without intercept; it brings no dual vector to judge."""
    from sklearn.svm import LinearSVC

    rival = LinearSVC(C=C, loss=loss, dual=dual, fit_intercept=False, tol=tol, max_iter=max_iter, random_state=0)
    model, seconds = _timed(rival, problem)
    return Fit(model, seconds, _score(problem, C, model.coef_, loss == "squared_hinge"))


def liblinear_official(problem: Problem, C: float, tol: float) -> Fit:
    """LIBLINEAR's own package, without intercept. It ends after 300 epochs, whatever `tol` says."""
    from liblinear import liblinearutil

    class Model:
        def fit(self, X: Any, y: np.ndarray) -> None:
            data = liblinearutil.problem(y, X)
            self.model = liblinearutil.train(data, liblinearutil.parameter(f"-s 3 -c {C} -e {tol} -q"))

    model, seconds = _timed(Model(), problem)
    labels = model.model.get_labels()
    found = {label: np.array(model.model.get_decfun(k)[0]) for k, label in enumerate(labels)}
    coef = [found[label] for label in np.unique(problem.y)]
    if len(coef) == 2:
        coef = [found[labels[0]] * (1.0 if labels[0] > 0 else -1.0)]
    return Fit(model, seconds, _score(problem, C, coef))


def rehline(problem: Problem, C: float, tol: float, max_iter: int) -> Fit:
    """ReHLine, a coordinate descent for piecewise linear-quadratic losses, for two classes. It takes dense rows."""
    from rehline import plqERM_Ridge

    model, seconds = _timed(plqERM_Ridge(loss={"name": "svm"}, C=C, tol=tol, max_iter=max_iter), problem)
    return Fit(model, seconds, _score(problem, C, [model.coef_]))


def sgd_classifier(problem: Problem, C: float, epochs: int) -> Fit:
    """scikit-learn's SGDClassifier with the hinge loss and its own step lengths, without intercept."""
    from sklearn.linear_model import SGDClassifier

    alpha = 1.0 / (C * problem.X.shape[0])
    rival = SGDClassifier(loss="hinge", alpha=alpha, max_iter=epochs, tol=None, fit_intercept=False, random_state=0)
    model, seconds = _timed(rival, problem)
    return Fit(model, seconds, _score(problem, C, model.coef_))


def _score(
    problem: Problem,
    C: float,
    coef: Sequence[Any],
    squared: bool = False,
    biases: Sequence[float] | None = None,
    duals: Sequence[Any] | None = None,
    free_intercept: bool = False,
) -> Score:
    """The sums of primal values and bounds over the classes."""
    scores = []
    for k, y in enumerate(problem.signs):
        b, alpha = (0.0 if biases is None else biases[k]), (None if duals is None else duals[k])
        settings = {"free_intercept": free_intercept, "squared": squared}
        scores.append(score(problem.X, y, C, coef[k], b, alpha, **settings))
    return Score(sum(found.primal for found in scores), sum(found.dual for found in scores))


def _timed(model: Any, problem: Problem) -> tuple[Any, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        began = time.perf_counter()
        model.fit(problem.X, problem.y)
        return model, time.perf_counter() - began
