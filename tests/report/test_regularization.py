"""RegularizationPathDisplay: what is drawn, from where, and what cannot be."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from softmargin import SVC, SVCCV, LinearSVC, LinearSVCCV, LinearSVR, RegularizationPathDisplay, SoftmarginError, c_path

CS = [1.0, 0.1, 10.0]


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def labels(axis):
    legend = axis.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def test_a_search(iris):
    search = LinearSVCCV(CS).fit(*iris)
    display = RegularizationPathDisplay.from_estimator(search)
    score, objective, support = display.ax_
    assert [axis.get_ylabel() for axis in display.ax_] == ["accuracy", "objective", "support vectors"]
    assert {axis.get_xscale() for axis in display.ax_} == {"log"}
    order = np.argsort(CS)
    for axis, table in ((score, search.scores_), (objective, search.objectives_), (support, search.n_support_vectors_)):
        line = axis.lines[0]
        np.testing.assert_array_equal(line.get_xdata(), np.sort(CS))
        np.testing.assert_allclose(line.get_ydata(), table.mean(axis=0)[order])
        assert axis.lines[1].get_xdata()[0] == search.C_
    [band] = score.collections
    heights = band.get_paths()[0].vertices[:, 1]
    mean, deviation = search.scores_.mean(axis=0), search.scores_.std(axis=0)
    assert heights.max() == pytest.approx((mean + deviation).max())
    assert labels(score) == [f"best: C = {search.C_:.3g}"]
    display.figure_.canvas.draw()


def test_a_search_over_gamma_has_a_line_for_each(iris):
    search = SVCCV(CS, gammas=[0.1, 0.5], scoring="balanced_accuracy").fit(*iris)
    display = RegularizationPathDisplay.from_estimator(search)
    assert display.ax_[0].get_ylabel() == "balanced_accuracy"
    best = f"best: C = {search.C_:.3g}, gamma = {search.gamma_:.2g}"
    assert labels(display.ax_[0]) == ["gamma = 0.1", "gamma = 0.5", best]
    assert len(display.ax_[1].lines) == 3
    display.figure_.canvas.draw()


@pytest.mark.parametrize("model", [LinearSVC(), SVC()])
def test_a_path(model, iris):
    models = c_path(model, *iris, CS)
    display = RegularizationPathDisplay.from_path(models)
    assert [axis.get_ylabel() for axis in display.ax_] == ["objective", "support vectors"]
    primal = [display.ax_[0].lines[0].get_ydata()[k] for k in (1, 0, 2)]
    assert primal == [m.certificate_.primal for m in models]
    assert labels(display.ax_[0]) == []
    scored = RegularizationPathDisplay.from_path(models, *iris)
    assert scored.ax_[0].lines[0].get_ydata()[1] == models[0].score(*iris)
    assert not scored.ax_[0].collections


def test_a_path_of_a_regression_in_given_axes():
    X, y = load_diabetes(return_X_y=True)
    models = c_path(LinearSVR(), X, y, [0.1, 1.0])
    _, pair = plt.subplots(2, 1)
    display = RegularizationPathDisplay.from_path(models, ax=pair)
    assert list(display.ax_) == list(pair)
    display.figure_.canvas.draw()


class TestErrors:
    def test_no_search(self, iris):
        with pytest.raises(SoftmarginError, match="LinearSVC has no scores_ and Cs_"):
            RegularizationPathDisplay.from_estimator(LinearSVC().fit(*iris))

    @pytest.mark.parametrize("models", [[], [LinearSVC()]])
    def test_no_models(self, models):
        with pytest.raises(SoftmarginError, match="list of fitted estimators"):
            RegularizationPathDisplay.from_path(models)

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"Cs": [1.0, 2.0]}, "nothing to draw"),
            ({"Cs": [], "scores": [[[]]]}, "Cs must be a list of numbers"),
            ({"Cs": [1.0, 2.0], "scores": [[[1.0]]]}, "scores must have the shape"),
        ],
    )
    def test_shapes(self, given, words):
        with pytest.raises(SoftmarginError, match=words):
            RegularizationPathDisplay(**given)

    def test_axes(self):
        _, axis = plt.subplots()
        with pytest.raises(SoftmarginError, match="ax must hold 2 axes, but it holds 1"):
            RegularizationPathDisplay(Cs=[1.0], scores=[[[1.0]]], n_support=[[[1]]]).plot(ax=axis)
