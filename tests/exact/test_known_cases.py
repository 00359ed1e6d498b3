"""Fits whose certificates were false once, by name; each is judged in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.datasets import make_classification

from exact.objective import dot, exact
from exact.problems import Problem
from exact.verdict import judge
from softmargin import SVC, certify
from softmargin.core.errors import SoftmarginError


def _problem(estimator, parameters, X, y, **options):
    return Problem(-1, estimator, parameters, np.array(X, dtype=float), y, **options)


KNOWN = {
    "huge coef0": _problem("SVC", {"kernel": "poly", "degree": 3, "coef0": 1e10, "gamma": 1.0}, [[1], [2]], [0, 1]),
    "huge coef0 and weight": _problem(
        "SVC",
        {"kernel": "poly", "degree": 3, "coef0": 1e10, "gamma": 1.0},
        [[1], [2]],
        [0, 1],
        sample_weight=[1e12, 1],
    ),
    "huge C": _problem("SVC", {"kernel": "linear", "C": 1e12, "tol": 1e-6}, [[0.1], [0.7]], [0, 1]),
}


@pytest.mark.parametrize("name", KNOWN)
def test_rows_without_computed_loss_are_charged(name):
    verdict = judge(KNOWN[name])
    assert not verdict.faults, str(verdict)


def test_float32_kernel_rows_do_not_lower_the_primal_value():
    """Offset features: the bracket of the fit, of `certify` and of a fit in double precision belong to one optimum."""
    X, y = make_classification(1200, 6, n_informative=4, flip_y=0.3, random_state=3)
    model = SVC(C=0.01, kernel="linear").fit(X + 100, y)
    rows = exact(X + 100)
    w = [sum(terms) for terms in zip(*([beta * v for v in rows[i]] for i, beta in _support(model)), strict=True)]
    b = exact(model.intercept_[0])
    losses = [max(Fraction(0), 1 - (1 if label else -1) * (dot(x, w) + b)) for x, label in zip(rows, y, strict=True)]
    assert model.certificate_.primal >= dot(w, w) / 2 + Fraction(0.01) * sum(losses)
    optimum = 7.864322
    for certificate in (model.certificate_, certify(model, X + 100, y)):
        assert certificate.dual <= optimum + 1e-6
        assert certificate.primal >= optimum - 1e-6


def _support(model):
    return zip(model.support_, exact(model.dual_coef_[0]), strict=True)


ONE_CLASS_AND_REGRESSION = {
    "squares of the rows underflow": _problem("LinearOneClassSVM", {"nu": 0.003, "tol": 1e-3}, [[0], [3e-157]], [1, 1]),
    "rows of 1e-95": _problem(
        "OneClassSVM",
        {"kernel": "linear", "solver": "block", "tol": 1e-3, "nu": 0.5},
        [[1e-95, -3e-95], [2e-95, 3e-95], [-1e-95, -1e-95], [-1e-95, 2e-95], [1e-95, -2e-95], [0, -2e-95]],
        [1] * 6,
    ),
    "weights of 1e9": _problem(
        "OneClassSVM", {"nu": 0.9, "solver": "ipm", "tol": 1e-6}, [[1], [2], [4]], [1, 1, 1], sample_weight=[1e9] * 3
    ),
    "rows around the origin": _problem("OneClassSVM", {"nu": 1.0, "kernel": "linear"}, [[1], [-1]], [1, 1]),
    "rows of zeros": _problem("OneClassSVM", {"kernel": "linear"}, [[0], [0]], [1, 1]),
    "one number": _problem("SVR", {}, [[1]], [7.0]),
    "numbers that fit into the tube": _problem("SVR", {"epsilon": 9.0}, [[1], [2]], [7.0, 8.0]),
    "zeros without a tube": _problem("SVR", {"epsilon": 0.0}, [[1], [2]], [0.0, 0.0]),
}


@pytest.mark.parametrize("name", ONE_CLASS_AND_REGRESSION)
def test_values_that_gaps_are_relative_to_may_be_zero(name):
    verdict = judge(ONE_CLASS_AND_REGRESSION[name])
    assert not verdict.faults, str(verdict)
    assert verdict.is_certified or "underflow" in name, verdict.ending


FAR_ROWS = {
    "two rows": [[0.0], [1e160]],
    "four rows": [[1e155], [2e155], [0.0], [3.0]],
    "difference overflows": [[1e308], [-1e308], [0.0], [3.0]],
}


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("solver", ["auto", "block", "smo", "active_set", "ipm"])
@pytest.mark.parametrize("rows", FAR_ROWS)
def test_far_rows_are_fitted_or_refused(kernel, solver, rows):
    """Distances that overflow: the model is right, or the error says what to do; never NaN, never another exception."""
    X = FAR_ROWS[rows]
    verdict = judge(_problem("SVC", {"kernel": kernel, "gamma": 1.0, "solver": solver}, X, [0, 1] * (len(X) // 2)))
    assert not verdict.faults, str(verdict)
    if verdict.ending == "REFUSED":
        with pytest.raises(SoftmarginError, match="scale"):
            verdict.problem.fit()
