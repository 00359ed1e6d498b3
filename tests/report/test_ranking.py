"""RankingDisplay: what is drawn, from where, and what cannot be."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from softmargin import OrdinalSVC, RankingDisplay, SoftmarginError
from softmargin.metrics import ndcg_by_query, swapped_pairs

X_VALUES = [0.01, 1.0, 0.1]
NDCG, PAIRS = [0.4, 0.45, 0.5], [0.7, 0.75, 0.72]


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    y = np.digitize(X[:, 0] + rng.standard_normal(200), [0.0, 1.0])
    return X, y, rng.integers(8, size=200)


def texts(display):
    return [text.get_text() for text in display.ax_.texts]


def test_what_is_drawn():
    display = RankingDisplay.from_curves(X_VALUES, NDCG, PAIRS)
    assert display.figure_ is display.ax_.figure
    assert display.ax_.get_xscale() == "log"
    assert display.ax_.get_xlabel() == "C"
    np.testing.assert_array_equal(display.lines_["ndcg"].get_xdata(), [0.01, 0.1, 1.0])
    np.testing.assert_array_equal(display.lines_["ndcg"].get_ydata(), [0.4, 0.5, 0.45])
    np.testing.assert_array_equal(display.lines_["pairs"].get_ydata(), [0.7, 0.72, 0.75])
    assert texts(display) == ["NDCG@10", "0.500", "pairs in order", "0.750"]
    rings = [(line.get_xdata()[0], line.get_ydata()[0]) for line in display.ax_.lines[2:]]
    assert rings == [(0.1, 0.5), (1.0, 0.75)]
    display.figure_.canvas.draw()


def test_names_do_not_lie_on_each_other():
    display = RankingDisplay.from_curves(X_VALUES, PAIRS, np.add(PAIRS, 1e-6))
    display.figure_.canvas.draw()
    first, second = (display.ax_.texts[k].get_window_extent() for k in (0, 2))
    assert not first.overlaps(second)
    assert first.y0 < second.y0


def test_one_curve_and_given_axes():
    _, axis = plt.subplots()
    display = RankingDisplay.from_curves([1, 2], ndcg=[0.2, 0.3], k=None, x_label="degree", ax=axis)
    assert display.ax_ is axis
    assert axis.get_xscale() == "linear"
    assert list(display.lines_) == ["ndcg"]
    assert texts(display) == ["NDCG", "0.300"]
    assert texts(RankingDisplay.from_curves([1], pairs=[0.5])) == ["pairs in order", "0.500"]


def test_values_that_are_not_known_leave_a_gap():
    display = RankingDisplay.from_curves([1, 2, 3], [0.4, np.nan, np.nan], [np.nan] * 3, x_scale="linear")
    assert texts(display) == ["NDCG@10", "0.400"]
    display.figure_.canvas.draw()


@pytest.mark.parametrize(("against", "label", "column"), [("iterations", "iteration", 0), ("seconds", "seconds", 1)])
def test_records_of_a_fit(against, label, column):
    records = [(i, 0.1 * i, 0.5 - 0.1 / i, 0.8 - 0.1 / i) for i in range(1, 50)]
    display = RankingDisplay.from_records(iter(records), against=against, k=5)
    assert display.ax_.get_xlabel() == label
    assert display.ax_.get_xscale() == "linear"
    np.testing.assert_array_equal(display.lines_["ndcg"].get_xdata(), [record[column] for record in records])
    np.testing.assert_array_equal(display.lines_["pairs"].get_ydata(), [record[3] for record in records])
    assert texts(display)[0] == "NDCG@5"


def test_estimators_are_measured(data):
    X, y, qid = data
    models = [Ridge(alpha=alpha).fit(X, y) for alpha in (100.0, 0.1)]
    display = RankingDisplay.from_estimators(models, X, y, qid, parameter="alpha", k=3)
    np.testing.assert_array_equal(display.x, [100.0, 0.1])
    np.testing.assert_array_equal(display.ndcg, [ndcg_by_query(y, m.predict(X), qid, 3).mean for m in models])
    np.testing.assert_array_equal(display.pairs, [1.0 - swapped_pairs(y, m.predict(X), qid) for m in models])
    assert display.ax_.get_xlabel() == "alpha"
    assert texts(display)[0] == "NDCG@3"


def test_scores_of_classifiers_are_their_decision_values(data):
    X, y, qid = data
    model = LinearSVC().fit(X, y > 0)
    display = RankingDisplay.from_estimators([model], X, y, qid)
    assert display.pairs == [1.0 - swapped_pairs(y, model.decision_function(X), qid)]


def test_the_score_of_ordered_classes_is_the_one_that_is_cut(data):
    X, y, qid = data
    model = OrdinalSVC().fit(X, y)
    pipeline = make_pipeline(StandardScaler(), OrdinalSVC()).fit(X, y)
    for fitted, parameter in ((model, "C"), (pipeline, "ordinalsvc__C")):
        display = RankingDisplay.from_estimators([fitted], X, y, qid, parameter=parameter)
        scores = model.predict_score(X) if fitted is model else pipeline[-1].predict_score(pipeline[:-1].transform(X))
        assert display.pairs == [1.0 - swapped_pairs(y, scores, qid)]


def test_parameter_of_a_pipeline(data):
    X, y, qid = data
    models = [make_pipeline(StandardScaler(), LinearSVC(C=C)).fit(X, y > 0) for C in (0.01, 1.0)]
    display = RankingDisplay.from_estimators(models, X, y, qid, parameter="linearsvc__C")
    np.testing.assert_array_equal(display.x, [0.01, 1.0])
    assert display.ax_.get_xlabel() == "C"


def test_predictions(data):
    _, y, qid = data
    scores = [y, -y, np.zeros(y.size)]
    display = RankingDisplay.from_predictions([1, 2, 3], y, scores, qid)
    np.testing.assert_array_equal(display.pairs, [1.0, 0.0, 0.5])
    assert display.ndcg[0] == 1.0


class TestErrors:
    def test_nothing_to_show(self):
        with pytest.raises(SoftmarginError, match="neither ndcg nor pairs"):
            RankingDisplay.from_curves([1.0, 2.0])
        with pytest.raises(SoftmarginError, match="at least one value"):
            RankingDisplay.from_curves([], [])

    def test_lengths(self):
        with pytest.raises(SoftmarginError, match=r"pairs has the shape \(2,\), but x \(3,\)"):
            RankingDisplay(x=X_VALUES, ndcg=NDCG, pairs=[0.1, 0.2])

    @pytest.mark.parametrize("records", [[], [(1, 2, 3)], [(1, 2, 3, 4), (1, 2, 3, 4, 5)]])
    def test_records(self, records):
        with pytest.raises(SoftmarginError, match=r"a list of \(iteration, seconds, ndcg, pairs\)"):
            RankingDisplay.from_records(records)

    def test_unknown_choices(self):
        with pytest.raises(SoftmarginError, match="choose 'iterations' or 'seconds'"):
            RankingDisplay.from_records([(1, 2, 3, 4)], against="passes")
        with pytest.raises(SoftmarginError, match="choose 'auto', 'linear' or 'log'"):
            RankingDisplay.from_curves(X_VALUES, NDCG, x_scale="symlog")
        with pytest.raises(SoftmarginError, match="zero or below"):
            RankingDisplay.from_curves([0.0, 1.0], [0.1, 0.2], x_scale="log")

    def test_several_scores_a_row(self, data):
        X, y, qid = data
        with pytest.raises(SoftmarginError, match="scores for each row, and a ranking needs one: use from_predictions"):
            RankingDisplay.from_estimators([LinearSVC().fit(X, y)], X, y, qid)

    def test_models_without_the_parameter(self, data):
        X, y, qid = data
        with pytest.raises(SoftmarginError, match="Ridge has no parameter 'C': name what the models differ in"):
            RankingDisplay.from_estimators([Ridge().fit(X, y)], X, y, qid)
        with pytest.raises(SoftmarginError, match="solver='auto' is no number"):
            RankingDisplay.from_estimators([Ridge().fit(X, y)], X, y, qid, parameter="solver")
