"""NoveltyDisplay: what is drawn, from where, and what cannot be."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softmargin import SVC, LinearOneClassSVM, NoveltyDisplay, OneClassSVM, SoftmarginError

SCORES, OFFSET = np.array([0.1, 0.5, 0.6, 0.9, 1.0]), 0.55


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def X():
    return 3.0 + np.random.default_rng(0).standard_normal((120, 3))


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def heights(display):
    """The number of rows in all bars of a colour."""
    return [int(sum(bar.get_height() for bar in bars)) for bars in display.ax_.containers]


def test_the_two_sides_of_the_offset():
    display = NoveltyDisplay.from_predictions(SCORES, OFFSET, bins=10)
    assert display.figure_ is display.ax_.figure
    assert display.counts_ == {"outliers": 2, "inliers": 3}
    assert heights(display) == [2, 3]
    assert sorted(legend(display)) == ["inliers: 3", "offset 0.55", "outliers: 2"]
    assert display.ax_.lines[0].get_xdata()[0] == OFFSET
    display.figure_.canvas.draw()


@pytest.mark.parametrize("bins", [1, 7, 50])
def test_no_bin_has_rows_of_both_sides(bins):
    display = NoveltyDisplay.from_predictions(SCORES, OFFSET, bins=bins)
    edges = np.unique([edge for bar in display.ax_.patches for edge in (bar.get_x(), bar.get_x() + bar.get_width())])
    assert np.abs(edges - OFFSET).min() < 1e-12
    assert edges[0] <= SCORES.min()
    assert edges[-1] >= SCORES.max()


def test_labels_have_colours_and_shares():
    labels = np.array(["new", "old", "new", "old", "old"])
    display = NoveltyDisplay.from_predictions(SCORES, OFFSET, labels)
    assert display.counts_ == {"new": 2, "old": 3}
    assert sorted(legend(display)) == ["new: 2 rows, 50% outliers", "offset 0.55", "old: 3 rows, 33% outliers"]


def test_the_legend_stays_in_the_figure():
    for labels in (None, np.array(["usual"] * 3 + ["a label that is quite a bit longer than that"] * 2)):
        display = NoveltyDisplay.from_predictions(SCORES, OFFSET, labels)
        display.figure_.canvas.draw()
        box, page = display.ax_.get_legend().get_window_extent(), display.figure_.bbox
        assert box.x0 >= page.x0
        assert box.x1 <= page.x1
        assert box.y1 <= page.y1


@pytest.mark.parametrize("model", [OneClassSVM(nu=0.2), LinearOneClassSVM(nu=0.2), IsolationForest(random_state=0)])
def test_scores_and_offset_are_those_of_the_model(model, X):
    model.fit(X)
    display = NoveltyDisplay.from_estimator(model, X)
    np.testing.assert_array_equal(display.scores, model.score_samples(X))
    assert display.offset == float(np.ravel(model.offset_)[0])


def test_pipelines_and_given_axes(X):
    _, axis = plt.subplots()
    pipeline = make_pipeline(StandardScaler(), OneClassSVM(nu=0.2)).fit(X)
    display = NoveltyDisplay.from_estimator(pipeline, X, np.arange(len(X)) % 2, bins="auto", ax=axis)
    assert display.ax_ is axis
    assert display.offset == pipeline[-1].offset_[0]
    assert display.counts_ == {"0": 60, "1": 60}


def test_equal_scores_and_none():
    for scores in (np.full(4, OFFSET), np.empty(0)):
        display = NoveltyDisplay.from_predictions(scores, OFFSET)
        assert display.counts_ == {"outliers": 0, "inliers": scores.size}
        display.figure_.canvas.draw()


class TestErrors:
    def test_models_without_an_offset(self, X):
        with pytest.raises(SoftmarginError, match="SVC has no offset_: give a fitted novelty detector"):
            NoveltyDisplay.from_estimator(SVC().fit(X, X[:, 0] > 3), X)

    def test_shapes(self):
        with pytest.raises(SoftmarginError, match=r"has the shape \(5, 1\)"):
            NoveltyDisplay.from_predictions(SCORES[:, None], OFFSET)
        with pytest.raises(SoftmarginError, match="offset must be one number, but has 2 entries"):
            NoveltyDisplay.from_predictions(SCORES, [0.1, 0.2])
        with pytest.raises(SoftmarginError, match="there are 2 labels for 5 scores"):
            NoveltyDisplay.from_predictions(SCORES, OFFSET, [1, -1])

    def test_too_many_labels(self):
        with pytest.raises(SoftmarginError, match="11 different labels: at most 10"):
            NoveltyDisplay.from_predictions(np.arange(11.0), OFFSET, np.arange(11))

    @pytest.mark.parametrize("bins", [0, 2.5])
    def test_bins(self, bins):
        with pytest.raises(SoftmarginError, match="must be a positive integer, or the edges"):
            NoveltyDisplay.from_predictions(SCORES, OFFSET, bins=bins)
