"""ResidualDisplay: what is drawn, from where, and what cannot be."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softmargin import SVR, LinearSVR, ResidualDisplay, SoftmarginError

Y_TRUE, Y_PRED = np.array([1.0, 2.0, 3.0, 5.0]), np.array([1.1, 2.0, 2.4, 6.0])


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


def dots(display):
    return [points.get_offsets() for points in display.ax_.collections]


def test_what_is_drawn():
    display = ResidualDisplay.from_predictions(Y_TRUE, Y_PRED, epsilon=0.5)
    assert display.figure_ is display.ax_.figure
    assert display.counts_ == {"outside the tube": 2, "inside the tube": 2}
    outside, inside = dots(display)
    np.testing.assert_allclose(outside, [[2.4, 0.6], [6.0, -1.0]])
    np.testing.assert_allclose(inside, [[1.1, -0.1], [2.0, 0.0]])
    levels = sorted(line.get_ydata()[0] for line in display.ax_.lines)
    assert levels == [-0.5, 0.0, 0.5]
    assert display.ax_.get_xlabel() == "prediction"
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [
        "outside the tube: 2",
        "inside the tube: 2",
    ]
    display.figure_.canvas.draw()


def test_without_a_tube():
    display = ResidualDisplay.from_predictions(Y_TRUE, Y_PRED)
    assert display.counts_ == {"rows": 4}
    assert len(display.ax_.lines) == 1
    assert display.ax_.get_legend() is None


def test_given_axes_and_no_rows():
    _, axis = plt.subplots()
    display = ResidualDisplay.from_predictions([], [], epsilon=1.0, ax=axis)
    assert display.ax_ is axis
    assert display.counts_ == {"outside the tube": 0, "inside the tube": 0}
    display.figure_.canvas.draw()


def test_many_rows_have_small_dots():
    few, many = (ResidualDisplay.from_predictions(np.zeros(n), np.zeros(n), epsilon=1.0) for n in (10, 10_000))
    assert few.ax_.collections[1].get_sizes() > 5 * many.ax_.collections[1].get_sizes()
    sizes = [handle.get_sizes() for display in (few, many) for handle in display.ax_.get_legend().legend_handles]
    assert len(set(map(float, np.ravel(sizes)))) == 1  # of which the legend says nothing


def test_the_tube_is_that_of_the_model():
    X, y = load_diabetes(return_X_y=True)
    linear = LinearSVR(C=10, epsilon=20).fit(X, y)
    pipeline = make_pipeline(StandardScaler(), SVR(C=10, epsilon=30)).fit(X, y)
    for model, epsilon in ((linear, 20), (pipeline, 30), (Ridge().fit(X, y), None)):
        display = ResidualDisplay.from_estimator(model, X, y)
        assert display.epsilon == epsilon
        np.testing.assert_array_equal(display.y_pred, model.predict(X))
    assert ResidualDisplay.from_estimator(linear, X, y, epsilon=5.0).epsilon == 5.0
    assert ResidualDisplay.from_estimator(linear, X, y, epsilon=None).epsilon is None


def test_rows_in_the_tube_cost_nothing():
    """What lies outside is what the optimum has at its bounds, up to rows on the edge."""
    X, y = load_diabetes(return_X_y=True)
    model = SVR(C=10, epsilon=30, kernel="linear", tol=1e-9).fit(X, y)
    outside = ResidualDisplay.from_estimator(model, X, y).counts_["outside the tube"]
    assert model.n_bounded_[0] <= outside <= model.n_support_[0]


class TestErrors:
    def test_shapes(self):
        with pytest.raises(SoftmarginError, match=r"have the shapes \(4,\) and \(3,\)"):
            ResidualDisplay.from_predictions(Y_TRUE, Y_PRED[:3])

    @pytest.mark.parametrize("epsilon", [-1.0, np.nan, np.inf])
    def test_no_tube(self, epsilon):
        with pytest.raises(SoftmarginError, match="must be a number of at least 0, or None"):
            ResidualDisplay.from_predictions(Y_TRUE, Y_PRED, epsilon=epsilon)

    def test_unknown_word(self):
        X, y = load_diabetes(return_X_y=True)
        with pytest.raises(SoftmarginError, match="epsilon='wide' is unknown"):
            ResidualDisplay.from_estimator(Ridge().fit(X, y), X, y, epsilon="wide")
