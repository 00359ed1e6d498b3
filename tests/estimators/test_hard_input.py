"""Data that are hard for linear machines: every fit ends by itself, with a certificate, or says how far it came."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from softmargin import LinearSVC, LinearSVR
from softmargin.core.status import Status
from softmargin.estimators.warnings import ConvergenceWarning

INTERCEPTS = ({}, {"intercept": "penalised"}, {"fit_intercept": False})
SETTINGS = [
    {"solver": solver, "loss": loss, **intercept}
    for solver, loss in (
        ("auto", "hinge"),
        ("coordinate", "hinge"),
        ("ocas", "hinge"),
        ("auto", "squared_hinge"),
        ("coordinate", "squared_hinge"),
    )
    for intercept in INTERCEPTS
]


def _rows(n=120, d=5):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1, -1)


def _unscaled():
    X, y = _rows()
    X[:, 3] = 1e6 * (5.0 + X[:, 3])
    return X, y


def _constant():
    X, y = _rows()
    return np.c_[X, np.ones(len(X)), np.full(len(X), 7.0), np.zeros(len(X))], y


def _separable():
    X, _ = _rows()
    y = np.where(X[:, 0] + 0.2 * X[:, 1] > 0, 1, -1)
    return X + 0.1 * np.outer(y, [1.0, 0.2, 0.0, 0.0, 0.0]), y


def _one_of_a_class():
    X, y = _rows()
    y[:] = -1
    y[17] = 1
    return X, y


def _fitted(X, y, **parameters):
    """The model and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = LinearSVC(**parameters).fit(X, y)
    return model, [warning for warning in caught if issubclass(warning.category, ConvergenceWarning)]


def _primal(model, X, y, C):
    """The objective in exact arithmetic, for a model without intercept and the hinge."""
    w = [Fraction(value) for value in model.coef_[0].tolist()]
    rows = X.toarray() if sp.issparse(X) else X
    losses = (
        1 - int(label) * sum(a * Fraction(b) for a, b in zip(w, x, strict=True))
        for x, label in zip(rows.tolist(), y, strict=True)
    )
    return sum(value * value for value in w) / 2 + Fraction(C) * sum(max(Fraction(0), loss) for loss in losses)


def _check(model, warned):
    """A certificate within tol and no warning, or one warning that states the gap and what to change."""
    certificate = model.certificate_
    assert certificate.dual <= certificate.primal
    if model.status_ is Status.OPTIMAL:
        assert certificate.relative_gap <= model.tol
        assert not warned
    else:
        (warning,) = warned
        assert f"{certificate.relative_gap:.2g}" in str(warning.message)
        assert "scale the features" in str(warning.message)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: "-".join(map(str, setting.values())))
@pytest.mark.parametrize(
    ("make", "C"),
    [(_unscaled, 1.0), (_constant, 1.0), (_separable, 1e6), (_one_of_a_class, 1.0)],
    ids=lambda x: getattr(x, "__name__", str(x)),
)
def test_every_fit_ends_and_says_where(make, C, setting):
    X, y = make()
    model, warned = _fitted(X, y, C=C, **setting)
    _check(model, warned)
    if make is not _unscaled:
        assert model.status_ is Status.OPTIMAL


@pytest.mark.parametrize("solver", ["auto", "ocas"])
def test_one_feature_in_millions_is_no_trouble_for_cutting_planes(solver):
    X, y = _rows()
    X[:, 3] *= 1e6
    for intercept in INTERCEPTS:
        model, _ = _fitted(X, y, solver=solver, **intercept)
        assert model.status_ is Status.OPTIMAL


def test_coordinate_descent_gives_up_where_the_gap_does_not_fall():
    X, y = _unscaled()
    for loss in ("hinge", "squared_hinge"):
        model, (warning,) = _fitted(X, y, solver="coordinate", loss=loss)
        assert model.status_ is Status.BUDGET
        assert "coordinate descent hardly gets on" in str(warning.message)


def test_regression_gives_up_as_well():
    X, _ = _unscaled()
    with pytest.warns(ConvergenceWarning, match="scale the features"):
        model = LinearSVR(solver="coordinate").fit(X, X[:, 0])
    assert model.status_ is Status.BUDGET


def test_a_fit_that_gave_up_can_go_on():
    X, y = _unscaled()
    model = LinearSVC(solver="coordinate", fit_intercept=False, warm_start=True)
    with pytest.warns(ConvergenceWarning):
        passes = model.fit(X, y).trace_["passes"][-1]
    with pytest.warns(ConvergenceWarning):
        assert model.fit(X, y).trace_["passes"][-1] > passes


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: "-".join(map(str, setting.values())))
def test_ten_rows_of_a_million_features(setting):
    X = sp.random(10, 1_000_000, density=2e-4, format="csr", random_state=0)
    model, warned = _fitted(X, [1, -1] * 5, **setting)
    _check(model, warned)
    assert model.status_ is Status.OPTIMAL


def test_ten_dense_rows_of_a_million_features():
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, size=(10, 1_000_000), dtype=np.int8).astype(np.float32)
    model, warned = _fitted(X, [1, -1] * 5, fit_intercept=False)
    _check(model, warned)
    assert model.status_ is Status.OPTIMAL


@pytest.mark.parametrize("few", [False, True])
def test_a_million_rows_of_two_features(few):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_000_000, 2), dtype=np.float32)
    y = np.where(np.arange(len(X)) == 17, 1, -1) if few else np.where(X[:, 0] > 0.3 * X[:, 1], 1, -1)
    model, warned = _fitted(X, y, C=1e-3, fit_intercept=False)
    _check(model, warned)
    assert model.status_ is Status.OPTIMAL


def test_the_certificate_of_unscaled_data_holds_in_exact_arithmetic():
    X, y = _unscaled()
    for solver in ("auto", "coordinate", "ocas"):
        model, _ = _fitted(X, y, solver=solver, fit_intercept=False)
        assert _primal(model, X, y, 1.0) <= Fraction(model.certificate_.primal)


@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("setting", [*SETTINGS, {"solver": "cpa"}], ids=str)
def test_an_optimum_near_zero_does_not_become_a_constant_decision(setting, C):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 5))
    for y in (np.where(X[:, 0] ** 2 > 0.5, 1, -1), np.where(np.arange(500) < 50, 1, -1), rng.choice([-1, 1], 500)):
        model, warned = _fitted(X, y, C=C, **setting)
        _check(model, warned)
        assert np.unique(model.decision_function(X)).size > 1


@pytest.mark.parametrize("solver", ["auto", "coordinate", "ocas"])
def test_a_rare_class_is_found_although_zero_is_good_enough(solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 5))
    y = np.where(np.arange(2000) < 20, 1, -1)
    X[:20, 0] += 3.0
    model, _ = _fitted(X, y, C=1e-6, solver=solver)
    assert model.status_ is Status.OPTIMAL
    assert roc_auc_score(y, model.decision_function(X)) > 0.95


def test_wide_rows_of_a_rare_class():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 400))
    y = np.where(np.arange(100) < 5, 1, -1)
    X[:5, 0] += 5.0
    model, _ = _fitted(X, y, C=1e-9, solver="ocas")
    assert model.status_ is Status.OPTIMAL
    assert roc_auc_score(y, model.decision_function(X)) > 0.95
