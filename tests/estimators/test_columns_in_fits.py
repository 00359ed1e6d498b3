"""Wide sparse data are solved with other columns: nobody may notice."""

import numpy as np
import pytest
import scipy.sparse as sp

from softmargin import LinearSVC, certify, load
from softmargin.data import columns as columns_module
from softmargin.data.columns import Columns

RNG = np.random.default_rng(3)


def example(n, d):
    """The last half of the columns has one entry each, three of them in each row."""
    half = d // 2
    alone = sp.csr_matrix((RNG.standard_normal(half), (np.arange(half) // 3, np.arange(half))), shape=(n, half))
    X = sp.hstack([sp.random(n, half, density=0.2, random_state=4), alone], format="csr")
    y = np.where(X @ RNG.standard_normal(d) + 0.1 * RNG.standard_normal(n) > 0, 1, -1)
    return X, y


@pytest.fixture(params=["merged", "renumbered"])
def other_columns(request, monkeypatch):
    """Call it with True or False: whether fits from here on see other columns."""

    def switch(on):
        limit = 2 if on else 1 << 60
        monkeypatch.setattr(columns_module, "MANY_COLUMNS", limit)
        monkeypatch.setattr(columns_module, "MANY_ENTRIES", limit)
        monkeypatch.setattr(columns_module, "VECTORS_HELD", 1000 if request.param == "merged" else 0)

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
def test_same_model(shape, setting, other_columns):
    X, y = example(*shape)
    setting = {"tol": 1e-9, **setting}
    other_columns(False)
    plain = LinearSVC(**setting).fit(X, y)
    other_columns(True)
    model = LinearSVC(**setting).fit(X, y)
    near = 0.02 if setting.get("solver") == "sgd" else 1e-3  # how often SGD shrinks w depends on the number of columns
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=near)
    if setting["tol"] < 1e-6 and "solver" not in setting:
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-3 * np.abs(plain.coef_).max())
    assert certify(model, X, y).primal == pytest.approx(model.certificate_.primal, rel=1e-12)


def test_it_does(other_columns, monkeypatch):
    X, y = example(60, 300)
    seen = []
    of = Columns.of
    monkeypatch.setattr(Columns, "of", classmethod(lambda cls, *args: seen.append(of(*args)) or seen[-1]))
    other_columns(True)
    LinearSVC(solver="ocas").fit(X, y)
    [columns] = seen
    assert not np.array_equal(columns.number, np.arange(300))
    assert (columns.merged is not None) == (columns_module.VECTORS_HELD > 0)
    assert (columns.inner.n_cols <= 200) == (columns.merged is not None)


@pytest.mark.parametrize("shape", [(150, 40), (60, 300)], ids=["tall", "wide"])
@pytest.mark.filterwarnings("ignore::softmargin.ConvergenceWarning")
def test_continued_fits(shape, other_columns, tmp_path):
    X, y = example(*shape)
    other_columns(True)
    setting = {"tol": 1e-8, "warm_start": True}
    whole = LinearSVC(**setting).fit(X, y)
    part = LinearSVC(**setting, max_iter=4).fit(X, y)
    part.save(tmp_path / "part.model", include_training_state=True)
    for model in (part, load(tmp_path / "part.model")):
        model.set_params(max_iter=None).fit(X, y)
        assert model.n_iter_ == whole.n_iter_
        np.testing.assert_array_equal(model.coef_, whole.coef_)


def test_start_from_weights_alone(other_columns):
    X, y = example(150, 40)
    other_columns(True)
    model = LinearSVC(tol=1e-6, warm_start=True, intercept="penalised").fit(X, y)
    X2 = X.copy()
    X2.data[0] *= 1.0001
    first = model.fit(X2, y).trace_[0].primal
    assert first == pytest.approx(model.certificate_.primal, rel=1e-3)


def test_no_time_for_other_columns(other_columns, monkeypatch):
    X, y = example(150, 40)
    other_columns(True)
    seen = []
    init = Columns.__init__
    monkeypatch.setattr(Columns, "__init__", lambda self, *args: seen.append(args) or init(self, *args))
    with pytest.warns(match="max_seconds"):
        model = LinearSVC(max_seconds=1e-9).fit(X, y)
    assert model.status_.name == "MAX_SECONDS"
    [(rows, inner)] = seen
    assert inner is rows
