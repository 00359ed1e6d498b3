"""Wide sparse data are solved with columns renumbered: nobody may notice."""

import numpy as np
import pytest
import scipy.sparse as sp

from softmargin import LinearSVC, certify, load
from softmargin.data import convert
from softmargin.estimators import build

RNG = np.random.default_rng(3)


def example(n, d):
    X = sp.random(n, d, density=0.1, format="csr", random_state=4)
    y = np.where(X @ RNG.standard_normal(d) + 0.1 * RNG.standard_normal(n) > 0, 1, -1)
    return X, y


@pytest.fixture
def renumber(monkeypatch):
    """Call it with True or False: whether fits from here on renumber."""

    def switch(on):
        limit = 2 if on else 1 << 60
        monkeypatch.setattr(convert, "MANY_COLUMNS", limit)
        monkeypatch.setattr(convert, "MANY_ENTRIES", limit)

    return switch


SETTINGS = [
    {},
    {"fit_intercept": False},
    {"intercept": "penalised"},
    {"solver": "cpa", "tol": 1e-4},
    {"solver": "pegasos", "random_state": 0},
    {"solver": "sgd", "random_state": 0},
]


@pytest.mark.filterwarnings("ignore::softmargin.ConvergenceWarning")
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("shape", [(150, 40), (60, 300)], ids=["tall", "wide"])
def test_same_model(shape, setting, renumber):
    X, y = example(*shape)
    setting = {"tol": 1e-9, **setting}
    renumber(False)
    plain = LinearSVC(**setting).fit(X, y)
    renumber(True)
    model = LinearSVC(**setting).fit(X, y)
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-3)
    if setting["tol"] < 1e-6 and "solver" not in setting:
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-3 * np.abs(plain.coef_).max())
    assert certify(model, X, y).primal == pytest.approx(model.certificate_.primal, rel=1e-12)


def test_it_does_renumber(renumber, monkeypatch):
    X, y = example(60, 300)
    numbers = []

    def spied(rows):
        inner, number = convert.by_frequency(rows)
        numbers.append(number)
        return inner, number

    monkeypatch.setattr(build, "by_frequency", spied)
    renumber(True)
    LinearSVC().fit(X, y)
    [number] = numbers
    assert not np.array_equal(number, np.arange(300))


@pytest.mark.parametrize("shape", [(150, 40), (60, 300)], ids=["tall", "wide"])
@pytest.mark.filterwarnings("ignore::softmargin.ConvergenceWarning")
def test_continued_fits(shape, renumber, tmp_path):
    X, y = example(*shape)
    renumber(True)
    setting = {"tol": 1e-8, "warm_start": True}
    whole = LinearSVC(**setting).fit(X, y)
    part = LinearSVC(**setting, max_iter=4).fit(X, y)
    part.save(tmp_path / "part.model", include_training_state=True)
    for model in (part, load(tmp_path / "part.model")):
        model.set_params(max_iter=None).fit(X, y)
        assert model.n_iter_ == whole.n_iter_
        np.testing.assert_array_equal(model.coef_, whole.coef_)


def test_start_from_weights_alone(renumber):
    X, y = example(150, 40)
    renumber(True)
    model = LinearSVC(tol=1e-6, warm_start=True, intercept="penalised").fit(X, y)
    X2 = X.copy()
    X2.data[0] *= 1.0001
    first = model.fit(X2, y).trace_[0].primal
    assert first == pytest.approx(model.certificate_.primal, rel=1e-3)
