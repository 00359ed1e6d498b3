"""ConvergenceDisplay: what is drawn, against what, and where."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris

from softmargin import SVC, ConvergenceDisplay, LinearSVC, MarginDisplay, RankingDisplay, SoftmarginError
from softmargin.core.trace import Record, Trace
from softmargin.solvers.smo.smo import SMO


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def binary_model():
    return LinearSVC().fit(*load_breast_cancer(return_X_y=True))


@pytest.fixture(scope="module")
def iris_model():
    return LinearSVC().fit(*load_iris(return_X_y=True))


def texts(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


def test_two_classes_show_primal_bound_and_gap(binary_model):
    display = ConvergenceDisplay.from_estimator(binary_model)
    assert isinstance(display, ConvergenceDisplay)
    assert display.ax_.shape == (2, 2)
    assert display.figure_ is display.ax_[0, 0].figure
    trace = binary_model.trace_
    for column, key in enumerate(["iteration", "seconds"]):
        values, gaps = display.ax_[:, column]
        primal, bound = values.get_lines()
        np.testing.assert_array_equal(primal.get_xdata(), trace[key])
        np.testing.assert_array_equal(primal.get_ydata(), trace["primal"])
        np.testing.assert_array_equal(bound.get_ydata(), trace["dual"])
        relative = (trace["primal"] - trace["dual"]) / trace["primal"]
        np.testing.assert_allclose(gaps.get_lines()[0].get_ydata(), relative)
        assert gaps.get_yscale() == "log"
        assert gaps.get_xlabel() == {"iteration": "iteration", "seconds": "seconds"}[key]
        assert texts(values) == ["primal", "lower bound"]
        assert "tol = 0.001" in texts(gaps)
    display.figure_.canvas.draw()


@pytest.mark.parametrize(("against", "key"), [("iterations", "iteration"), ("seconds", "seconds")])
def test_against_one_of_them(binary_model, against, key):
    display = ConvergenceDisplay.from_estimator(binary_model, against=against)
    assert display.ax_.shape == (2, 1)
    line = display.ax_[0, 0].get_lines()[0]
    np.testing.assert_array_equal(line.get_xdata(), binary_model.trace_[key])
    assert display.ax_[0, 0].get_ylabel() == "objective"
    assert display.ax_[1, 0].get_ylabel() == "relative duality gap"


def test_several_classes_have_a_colour_and_a_name_each(iris_model):
    display = ConvergenceDisplay.from_estimator(iris_model, against="iterations")
    values, gaps = display.ax_[:, 0]
    lines = values.get_lines()
    assert len(lines) == 6
    for k, trace in enumerate(iris_model.trace_):
        primal, bound = lines[2 * k : 2 * k + 2]
        np.testing.assert_array_equal(primal.get_ydata(), trace["primal"])
        assert primal.get_color() == bound.get_color()
        assert primal.get_linestyle() != bound.get_linestyle()
        assert f"({k})" in primal.get_label()
    assert len({line.get_color() for line in lines}) == 3
    assert texts(gaps)[:3] == ["0", "1", "2"]
    display.figure_.canvas.draw()


def test_many_classes_have_one_legend():
    X, y = load_digits(return_X_y=True)
    model = LinearSVC(tol=0.1).fit(X, y)
    display = ConvergenceDisplay.from_estimator(model, against="iterations")
    assert len(display.ax_[0, 0].get_lines()) == 20
    assert display.ax_[0, 0].get_legend() is None
    assert len(texts(display.ax_[1, 0])) == 11
    display.figure_.canvas.draw()


@pytest.mark.parametrize(("against", "columns"), [("iterations", 1), ("both", 2)])
def test_given_axes_are_used(binary_model, against, columns):
    figure, axes = plt.subplots(2, columns)
    display = ConvergenceDisplay.from_estimator(binary_model, against=against, ax=axes)
    assert display.figure_ is figure
    assert plt.get_fignums() == [figure.number]
    assert list(display.ax_.ravel()) == list(np.ravel(axes))
    assert all(axis.get_lines() for axis in np.ravel(axes))


def test_plot_can_be_called_again(binary_model):
    display = ConvergenceDisplay.from_estimator(binary_model)
    first = display.figure_
    assert display.plot(against="seconds") is display
    assert display.figure_ is not first
    assert display.ax_.shape == (2, 1)


def test_a_fit_that_ended_at_its_start_can_be_drawn():
    """Zero data: the first point is the optimum, and the gap is zero, which a log scale cannot show."""
    model = LinearSVC().fit(np.zeros((4, 2)), [0, 1, 0, 1])
    display = ConvergenceDisplay.from_estimator(model)
    assert len(display.ax_[0, 0].get_lines()) == 2
    display.figure_.canvas.draw()


def test_no_line_for_a_tolerance_of_zero(binary_model):
    display = ConvergenceDisplay(traces=[binary_model.trace_], names=[""], tol=0.0).plot()
    assert len(display.ax_[1, 0].get_lines()) == 1


class TestErrors:
    def test_not_fitted(self):
        with pytest.raises(ValueError, match=r"LinearSVC has no trace_: fit it first"):
            ConvergenceDisplay.from_estimator(LinearSVC())

    @pytest.mark.parametrize("against", ["time", None, ""])
    def test_unknown_against(self, binary_model, against):
        with pytest.raises(ValueError, match=r"against=.* is unknown: choose 'iterations', 'seconds' or 'both'"):
            ConvergenceDisplay.from_estimator(binary_model, against=against)
        assert plt.get_fignums() == []

    @pytest.mark.parametrize(("against", "count"), [("both", 2), ("iterations", 1), ("seconds", 4)])
    def test_wrong_number_of_axes(self, binary_model, against, count):
        _, axes = plt.subplots(1, count, squeeze=False)
        needed = {"both": 4}.get(against, 2)
        with pytest.raises(ValueError, match=rf"ax.*{needed} axes"):
            ConvergenceDisplay.from_estimator(binary_model, against=against, ax=axes)


@pytest.mark.parametrize("n_classes", [3, 4])
def test_pairs_of_classes_are_named_as_pairs(n_classes):
    X, y = load_digits(n_class=n_classes, return_X_y=True)
    model = SVC().fit(X[:200], y[:200])
    gaps = ConvergenceDisplay.from_estimator(model, against="iterations").ax_[1, 0]
    names = ["0 against 1", "0 against 2", "1 against 2"]
    if n_classes == 4:
        names = ["0 against 1", "0 against 2", "0 against 3", "1 against 2", "1 against 3", "2 against 3"]
    assert texts(gaps) == [*names, "tol = 0.001"]


def test_very_many_pairs_have_one_name():
    X, y = load_digits(return_X_y=True)
    display = ConvergenceDisplay.from_estimator(SVC().fit(X[:300], y[:300]), against="iterations")
    values, gaps = display.ax_[:, 0]
    assert len(values.get_lines()) == 90
    assert texts(gaps) == ["45 sub-problems", "tol = 0.001"]
    display.figure_.canvas.draw()


def test_pairs_without_a_solve_are_left_out():
    X, y = load_iris(return_X_y=True)
    model = SVC().fit(X, y, np.where(y == 1, 0.0, 1.0))
    assert [len(trace) > 0 for trace in model.trace_] == [False, True, False]
    display = ConvergenceDisplay.from_estimator(model, against="iterations")
    assert len(display.ax_[0, 0].get_lines()) == 2
    display.figure_.canvas.draw()


def test_a_gap_of_zero_or_below_is_drawn():
    values = [(4.0, 1.0), (3.0, 2.0), (2.5, 2.5), (2.5, 2.5 + 1e-15)]
    trace = Trace([Record(k, float(k), primal, dual, 0, 0) for k, (primal, dual) in enumerate(values)])
    display = ConvergenceDisplay(traces=[trace], names=[""]).plot(against="iterations")
    np.testing.assert_allclose(display.ax_[1, 0].get_lines()[0].get_ydata(), [0.75, 1 / 3, 1e-16, 1e-16])
    display.figure_.canvas.draw()


@pytest.mark.parametrize("params", [{"stopping": "kkt"}, {"solver": SMO(stopping="kkt")}], ids=str)
def test_a_tol_for_another_rule_is_no_line_at_the_gap(params):
    model = SVC(**params).fit(*load_breast_cancer(return_X_y=True))
    assert texts(ConvergenceDisplay.from_estimator(model).ax_[1, 0]) == ["gap"]


def test_without_matplotlib_the_error_says_how_to_get_it(binary_model, monkeypatch):
    X, y = load_breast_cancer(return_X_y=True)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    pictures = [
        lambda: ConvergenceDisplay.from_estimator(binary_model),
        lambda: MarginDisplay.from_estimator(binary_model, X, y),
        lambda: RankingDisplay.from_curves([1.0, 2.0], [0.1, 0.2]),
    ]
    for picture in pictures:
        with pytest.raises(ImportError, match=r'pip install "softmargin\[plot\]"') as caught:
            picture()
        assert isinstance(caught.value, SoftmarginError)
