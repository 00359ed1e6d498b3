"""Small problems and the judge's view of a model, shared by the estimator tests."""

import numpy as np
import pytest


def make_noisy(n=200, d=8, n_classes=2, seed=0):
    """Overlapping classes: a linear rule with noise, so that some rows stay on the wrong side."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    scores = X @ rng.standard_normal((d, n_classes)) + 0.8 * rng.standard_normal((n, n_classes))
    return X, scores.argmax(axis=1)


def hinge_objective(model, X, y, weights=None, C=None):
    """P(w, b) of a two-class model with a free intercept or none, worked out by hand."""
    s = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    w, b = model.coef_[0], float(np.ravel(model.intercept_)[0])
    C = model.C if C is None else C
    return 0.5 * w @ w + C * np.sum(s * np.maximum(0.0, 1.0 - signs * (X @ w + b)))


def same_optimum(first, second, slack=1e-9):
    """Whether two certificates can belong to the same optimum: their intervals [dual, primal] overlap."""
    room = slack * max(1.0, abs(first.primal))
    return first.dual <= second.primal + room and second.dual <= first.primal + room


@pytest.fixture(name="make_noisy", scope="session")
def make_noisy_fixture():
    return make_noisy


@pytest.fixture(name="hinge_objective", scope="session")
def hinge_objective_fixture():
    return hinge_objective


@pytest.fixture(name="same_optimum", scope="session")
def same_optimum_fixture():
    return same_optimum


@pytest.fixture(scope="session")
def binary():
    return make_noisy()


@pytest.fixture(scope="session")
def three_classes():
    return make_noisy(n_classes=3, seed=1)


@pytest.fixture(scope="session")
def wide():
    return make_noisy(n=40, d=150, seed=2)
