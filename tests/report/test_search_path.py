"""Score and support vectors against C, from the points that a model file holds."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from softmargin import SVCCV, LinearSVCCV
from softmargin.report.search_path import LINES, path


def searched(points, names=("C", "gamma")):
    return {
        "measure": "accuracy",
        "n_folds": 5,
        "params": {name: [point[k] for point in points] for k, name in enumerate(names)},
        "score": [0.5 + 0.01 * k for k in range(len(points))],
        "standard_error": [0.02] * len(points),
        "support_vectors": [10.0] * len(points),
    }


def charts_of(model):
    section = path(model, model)
    (charts,) = section.blocks
    return section.title, charts.charts


def test_a_curve_for_each_of_the_best_gammas():
    points = list(product([0.1, 1.0, 10.0], [2.0**k for k in range(9)]))
    title, (score, sizes) = charts_of(SimpleNamespace(search_=searched(points), C=10.0, gamma=256.0))
    assert title == "Score against C"
    assert [line.name for line in score.lines] == [f"gamma {2.0**k:.3g}" for k in range(3, 9)]
    assert len(score.lines) == LINES
    assert f"The {LINES} best of 9 values of gamma" in score.summary
    assert "0.76 at C = 10, gamma = 256" in score.summary
    assert "This model" not in score.summary
    assert (score.x, score.log_x, sizes.y_name) == ([0.1, 1.0, 10.0], True, "support vectors")


def test_a_value_of_c_that_one_gamma_lacks():
    points = [(0.1, 1.0), (1.0, 1.0), (0.1, 2.0)]
    _, (score, _) = charts_of(SimpleNamespace(search_=searched(points), C=0.1, gamma=1.0))
    assert [line.values for line in score.lines] == [[0.5, 0.51], [0.52, None]]
    assert "This model has C = 0.1, gamma = 1, with 0.5." in score.summary


@pytest.mark.parametrize("C", [1.0, 5.0])
def test_other_parameters_are_those_of_the_model(C):
    points = list(product([0.5, 1.0], [0.0, 0.1]))
    model = SimpleNamespace(search_=searched(points, ("C", "epsilon")), C=C, epsilon=0.1)
    _, (score, _) = charts_of(model)
    assert score.lines[0].values == [0.51, 0.53]
    assert "Other parameters are those of the model" in score.summary
    assert ("trained anew" in score.summary) == (C == 5.0)


@pytest.mark.parametrize(
    ("search", "names"),
    [
        (SVCCV(Cs=[0.1, 1.0], gammas=[0.1, 1.0], cv=2), ["gamma 0.1", "gamma 1"]),
        (SVCCV(Cs=[0.1, 1.0], kernel="linear", cv=2), ["score"]),
        (LinearSVCCV(Cs=[1.0, 0.1], cv=[(np.arange(20), np.arange(20, 30))]), ["score"]),
    ],
    ids=["rbf", "linear", "one fold"],
)
def test_the_searches_of_python(search, names):
    X = np.random.default_rng(0).normal(size=(30, 3))
    search.fit(X, np.arange(30) % 2)
    (charts,) = path(search, search.best_estimator_).blocks
    score = charts.charts[0]
    assert [line.name for line in score.lines] == names
    assert score.x == [0.1, 1.0]
    means = search.scores_.mean(axis=0).reshape(-1, 2)[:, np.argsort(search.Cs_)]
    np.testing.assert_allclose([line.values for line in score.lines], means)
    assert "trained anew" not in score.summary
    assert ("standard error" in score.summary) == (len(search.scores_) > 1)


def test_a_search_over_nothing_but_epsilon():
    title, (score, _) = charts_of(SimpleNamespace(search_=searched([(1.0, 0.0), (1.0, 0.5)], ("C", "epsilon")), C=1.0))
    assert title == "Score against epsilon"
    assert (score.x, score.log_x) == ([0.0, 0.5], False)
