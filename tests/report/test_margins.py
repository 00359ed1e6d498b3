"""MarginDisplay: which rows are what, what is drawn, and what cannot be."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.svm import SVC as SklearnSVC

from softmargin import SVC, LinearSVC, MarginDisplay, SoftmarginError

KINDS = ["bounded support vectors", "free support vectors", "not support vectors"]


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 2))
    y = np.where(X[:, 0] + 0.8 * rng.standard_normal(120) > 0, "yes", "no")
    return X, y


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def heights(axis):
    """How many rows of each kind are drawn."""
    return [sum(bar.get_height() for bar in pile) for pile in axis.containers]


@pytest.mark.parametrize(
    ("Model", "options"), [(SVC, {}), (SVC, {"class_weight": {"no": 3.0}}), (SklearnSVC, {}), (LinearSVC, {})]
)
def test_kinds_are_what_the_optimality_conditions_say(data, Model, options):
    X, y = data
    model = Model(tol=1e-8, **options).fit(X, y)
    display = MarginDisplay.from_estimator(model, X, y)
    margins = np.where(y == "yes", 1.0, -1.0) * model.decision_function(X)
    np.testing.assert_array_equal(display.margins, margins)
    expected = [np.sum(margins < 1 - 1e-3), np.sum(np.abs(margins - 1) <= 1e-3), np.sum(margins > 1 + 1e-3)]
    assert list(display.counts_) == KINDS
    assert list(display.counts_.values()) == expected
    assert min(expected) > 0
    assert heights(display.ax_) == expected


def test_what_is_drawn(data):
    X, y = data
    model = SVC().fit(X, y)
    display = MarginDisplay.from_estimator(model, X, y, bins=20)
    axis = display.ax_
    assert display.figure_ is axis.figure
    assert [line.get_xdata()[0] for line in axis.get_lines()] == [0.0, 1.0]
    shown = [text.get_text() for text in axis.get_legend().get_texts()]
    assert shown == [f"{name}: {display.counts_[name]}" for name in reversed(KINDS)]
    edges = [bar.get_x() for bar in axis.containers[0]]
    assert 20 <= len(edges) <= 22
    assert edges[0] <= display.margins.min()
    middles = np.array(edges) + axis.containers[0][0].get_width() / 2
    assert np.abs(middles - 1.0).min() < 1e-9
    assert display.counts_[KINDS[0]] + display.counts_[KINDS[1]] == model.n_support_.sum()
    display.figure_.canvas.draw()


def test_given_axes_and_edges(data):
    X, y = data
    _, axis = plt.subplots()
    display = MarginDisplay.from_estimator(LinearSVC().fit(X, y), X, y, bins=[-2.0, 0.0, 1.0, 5.0], ax=axis)
    assert display.ax_ is axis
    assert len(axis.containers[0]) == 3
    assert heights(display.plot(bins="auto").ax_) == list(display.counts_.values())


@pytest.mark.parametrize("Model", [SVC, LinearSVC])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"yes": 0.5}])
def test_bounds_follow_the_weights(data, Model, class_weight):
    X, y = data
    weights = np.random.default_rng(1).integers(0, 3, y.size)
    model = Model(C=0.7, tol=1e-8, class_weight=class_weight).fit(X, y, sample_weight=weights)
    display = MarginDisplay.from_estimator(model, X, y, sample_weight=weights)
    margins = display.margins[weights > 0]
    assert np.sum(margins < 1 - 1e-3) <= display.counts_["bounded support vectors"] <= np.sum(margins < 1 + 1e-3)
    assert 0 < display.counts_["free support vectors"] <= np.sum(np.abs(margins - 1) <= 1e-3)
    assert (display.alpha <= display.upper * (1 + 1e-9)).all()


@pytest.mark.parametrize("Model", [SVC, SklearnSVC])
@pytest.mark.parametrize("pair", [(0, 1), (2, 1), (0, 2)])
def test_a_pair_of_several_classes(iris, Model, pair):
    X, y = iris
    model = Model(C=2.0, gamma=0.5, tol=1e-8).fit(X, y)
    display = MarginDisplay.from_estimator(model, X, y, pair=pair)
    of_pair = np.isin(y, pair)
    alone = SVC(C=2.0, gamma=0.5, tol=1e-8).fit(X[of_pair], y[of_pair])
    expected = MarginDisplay.from_estimator(alone, X[of_pair], y[of_pair])
    np.testing.assert_allclose(display.margins, expected.margins, atol=1e-3)
    assert display.counts_ == expected.counts_
    assert model.decision_function_shape == "ovr"


def test_from_arrays():
    display = MarginDisplay(margins=[-1.0, 0.5, 1.0, 1.0, 2.0], alpha=[3.0, 3.0, 3.0 - 1e-6, 1.0, 0.0], upper=3.0)
    assert not hasattr(display, "ax_")
    assert list(display.plot().counts_.values()) == [2, 2, 1]


@pytest.mark.parametrize("margins", [[], [1.0], [2.0, 2.0], [-1e6, 1e6]])
def test_few_or_equal_margins_can_be_drawn(margins):
    display = MarginDisplay(margins=margins, alpha=np.zeros(len(margins)), upper=1.0).plot()
    assert sum(heights(display.ax_)) == len(margins)
    display.figure_.canvas.draw()


class TestErrors:
    def test_not_fitted(self, data):
        with pytest.raises(SoftmarginError, match=r"SVC has no classes_: margins are those of a fitted classifier"):
            MarginDisplay.from_estimator(SVC(), *data)

    def test_other_rows(self, data):
        X, y = data
        for model in (SVC().fit(X, y), LinearSVC().fit(X, y)):
            with pytest.raises(SoftmarginError, match=r"trained on 120 rows, but y has 100"):
                MarginDisplay.from_estimator(model, X[:100], y[:100])
            with pytest.raises(SoftmarginError, match=r"X has 100 rows, but y has 120"):
                MarginDisplay.from_estimator(model, X[:100], y)
            with pytest.raises(SoftmarginError, match=r"sample_weight has shape \(3,\), but y has 120 rows"):
                MarginDisplay.from_estimator(model, X, y, sample_weight=[1.0, 1.0, 1.0])
            with pytest.raises(SoftmarginError, match=r"y holds \['maybe'\], which the model does not know"):
                MarginDisplay.from_estimator(model, X, ["maybe", *y[1:]])

    def test_several_classes(self, iris):
        X, y = iris
        model = SVC().fit(X, y)
        with pytest.raises(SoftmarginError, match=r"has 3 classes: choose the two .* pair=\(0, 1\)"):
            MarginDisplay.from_estimator(model, X, y)
        for pair in [(0, 3), (1, 1), (0, 1, 2)]:
            with pytest.raises(SoftmarginError, match=r"must be two different labels of \[0, 1, 2\]"):
                MarginDisplay.from_estimator(model, X, y, pair=pair)
        with pytest.raises(SoftmarginError, match=r"LinearSVC was trained on 3 classes, one against the rest"):
            MarginDisplay.from_estimator(LinearSVC().fit(X, y), X, y)

    def test_models_without_dual_variables(self, data):
        from sklearn.linear_model import LogisticRegression

        with pytest.raises(SoftmarginError, match=r"LogisticRegression has neither dual_ nor dual_coef_"):
            MarginDisplay.from_estimator(LogisticRegression().fit(*data), *data)

    def test_a_model_of_another_program_does_not_know_its_rows(self, data):
        model = SVC().fit(*data)
        model.support_ = np.empty(0, np.int32)
        with pytest.raises(SoftmarginError, match="which rows its support vectors were"):
            MarginDisplay.from_estimator(model, *data)

    @pytest.mark.parametrize("bins", [0, -3, 2.5])
    def test_bins(self, bins):
        with pytest.raises(SoftmarginError, match=r"bins=.* must be a positive integer"):
            MarginDisplay(margins=[1.0], alpha=[0.0], upper=1.0).plot(bins=bins)

    def test_shapes(self):
        with pytest.raises(SoftmarginError, match=r"shapes \(2,\) and \(3,\)"):
            MarginDisplay(margins=[1.0, 2.0], alpha=[0.0, 0.0, 0.0], upper=1.0)


MODELS = [
    SVC(),
    SVC(kernel="linear", solver="active_set"),
    SklearnSVC(),
    LinearSVC(),
    LinearSVC(intercept="penalised"),
    LinearSVC(fit_intercept=False),
    LinearSVC(class_weight="balanced"),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
class TestOnlyTrainingRowsAreShown:
    """Dual variables belong to rows: with other rows the picture would be wrong without a word."""

    def refused(self, model, *data, **weights):
        with pytest.raises(SoftmarginError, match="not the rows that the model was trained on"):
            MarginDisplay.from_estimator(model, *data, **weights)

    def test_other_rows(self, data, model):
        X, y = data
        model = clone(model).fit(X[:60], y[:60])
        MarginDisplay.from_estimator(model, X[:60], y[:60])
        self.refused(model, X[60:], y[60:])

    def test_rows_in_another_order(self, data, model):
        X, y = data
        model = clone(model).fit(X, y)
        order = np.argsort(y, kind="stable")
        self.refused(model, X[order], y[order])
        self.refused(model, X[::-1], y)

    def test_other_labels_and_weights(self, data, model):
        X, y = data
        weights = np.linspace(0.5, 2.0, len(y))
        model = clone(model).fit(X, y, weights)
        MarginDisplay.from_estimator(model, X, y, sample_weight=weights)
        self.refused(model, X, y)
        self.refused(model, X, np.roll(y, 1), sample_weight=weights)


@pytest.mark.parametrize("scaling", [0.5, 10.0])
def test_a_scaled_intercept_is_one_of_the_weights(scaling):
    X, y = load_breast_cancer(return_X_y=True)
    X = X / X.max(axis=0) + 1.0
    model = LinearSVC(C=1.0, intercept="penalised", intercept_scaling=scaling).fit(X, y)
    assert sum(MarginDisplay.from_estimator(model, X, y).counts_.values()) == len(y)


def test_only_training_rows_of_a_pair_are_shown(iris):
    X, y = iris
    model = SVC().fit(X, y)
    for pair in ((0, 1), (0, 2), (2, 1)):
        MarginDisplay.from_estimator(model, X, y, pair=pair)
    order = np.random.default_rng(0).permutation(len(y))
    with pytest.raises(SoftmarginError, match="not the rows that the model was trained on"):
        MarginDisplay.from_estimator(model, X[order], y[order], pair=(1, 2))
