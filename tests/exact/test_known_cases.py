"""Fits whose certificates were false once, by name; each is judged in exact arithmetic."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

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
    X = X + 100
    model = SVC(C=0.01, kernel="linear").fit(X, y)
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    w = X.astype(np.longdouble).T @ beta
    loss = np.maximum(0, 1 - np.where(y == 1, 1, -1) * (X @ w + model.intercept_[0])).sum()
    exact = 0.5 * w @ w + 0.01 * loss  # 64 bits of mantissa: 1e-3 as wrong as what is judged
    assert model.certificate_.primal >= exact * (1 - 1e-15)
    optimum = 7.864322
    for certificate in (model.certificate_, certify(model, X, y)):
        assert certificate.dual <= optimum + 1e-6
        assert certificate.primal >= optimum - 1e-6


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
        with pytest.raises(SoftmarginError, match="scale the features"):
            verdict.problem.fit()
