"""Tuning of machines: folds, the choice, widening, one standard error, interrupts."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

from softmargin import LinearSVC, LinearSVCCV
from softmargin.core.errors import SoftmarginError
from softmargin.estimators.machines.cells import Budget
from softmargin.estimators.machines.folds import folds_of
from softmargin.estimators.machines.linear_one_class_svm import LinearOneClassSVM
from softmargin.estimators.machines.linear_svc import LinearSVC as LinearMachine
from softmargin.estimators.machines.linear_svr import LinearSVR
from softmargin.estimators.machines.one_class_svm import OneClassSVM
from softmargin.estimators.machines.score_search import ScoreTask, score_cells
from softmargin.estimators.machines.svc import SVC
from softmargin.estimators.machines.svr import SVR
from softmargin.estimators.machines.tuning import Data, Table, Tuning


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def test_every_row_is_held_out_once_and_classes_are_spread():
    classes = np.repeat([0, 1, 2], [50, 30, 10])
    folds = folds_of(90, 5, 0, classes)
    assert sorted(np.concatenate([fold.held_out for fold in folds])) == list(range(90))
    for fold in folds:
        assert np.bincount(classes[fold.held_out]).tolist() == [10, 6, 2]
        assert not fold.weights[fold.held_out].any()


def test_rows_of_a_group_stay_together():
    groups = np.arange(100) % 13
    for fold in folds_of(100, 4, 1, groups=groups):
        inside = set(groups[fold.held_out])
        assert inside.isdisjoint(groups[fold.weights > 0])
        assert 20 <= fold.held_out.size <= 30


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((3, 5, 0), "no more than rows"),
        ((10, 1, 0), "at least 2"),
        ((10, 3, 0, None, np.zeros(10)), "1 groups"),
        ((4, 2, 0, np.array([0, 0, 0, 1])), "one class only"),
    ],
)
def test_folds_that_cannot_be_are_refused(arguments, words):
    with pytest.raises(SoftmarginError, match=words):
        folds_of(*arguments)


def test_scores_are_those_of_the_search_of_the_estimator(cancer):
    X, y = cancer
    tuning = Tuning(LinearMachine(), Data(X, y), {"C": [0.01, 1.0]}, 4, 0, n_rounds=0)
    tuning.run()
    splits = [(np.flatnonzero(fold.weights), fold.held_out) for fold in tuning.folds]
    search = LinearSVCCV(Cs=[0.01, 1.0], cv=splits).fit(X, y)
    for k, C in enumerate((0.01, 1.0)):
        np.testing.assert_array_equal(tuning.table.scores[(C,)], search.scores_[:, k])


def test_a_grid_grows_while_the_best_value_lies_at_its_edge(cancer):
    X, y = cancer
    tuning = Tuning(LinearMachine(), Data(X, y), {"C": [1e-4, 1e-3]}, 4, 0, n_rounds=5)
    chosen = tuning.run()
    assert 1e-3 <= chosen["C"] < max(tuning.grids["C"])
    assert len(tuning.grids["C"]) >= 4
    kernel = Tuning(SVC(), Data(X, y), {"C": [1.0, 10.0], "gamma": [10.0, 100.0]}, 3, 0, n_rounds=1)
    kernel.run()
    assert min(kernel.grids["gamma"]) < 10.0
    assert all((C, gamma) in kernel.table.scores for C in kernel.grids["C"] for gamma in kernel.grids["gamma"])


def test_one_standard_error_takes_the_smoothest_model_that_is_as_good():
    table = Table(("C",), 3, "accuracy")
    for C, scores in {0.1: (0.8, 0.8, 0.8), 1.0: (0.89, 0.9, 0.9), 10.0: (0.86, 0.9, 0.95)}.items():
        for score in scores:
            table.add((C,), score, 0.0, 0)
    assert table.chosen(False) == (10.0,)
    assert table.chosen(True) == (1.0,)


def test_of_equal_scores_the_smoothest_model_wins():
    table = Table(("C", "gamma"), 1, "accuracy")
    for point in ((10.0, 0.1), (1.0, 0.1), (0.1, 1.0)):
        table.add(point, 0.5, 0.0, 0)
    assert table.chosen(False) == (1.0, 0.1)


def test_after_an_interrupt_the_choice_is_among_what_was_found(monkeypatch):
    X, y = load_diabetes(return_X_y=True)
    fitted, usual = [], LinearSVR.fit

    def fit(self, *arguments, **options):
        if len(fitted) == 3:
            raise KeyboardInterrupt
        fitted.append(self.C)
        return usual(self, *arguments, **options)

    monkeypatch.setattr(LinearSVR, "fit", fit)
    tuning = Tuning(LinearSVR(), Data(10 * X, y), {"C": [0.1, 10.0]}, 5, 0)
    assert tuning.run() == {"C": 0.1}  # the only one with scores of two folds
    assert tuning.is_interrupted
    assert {point: len(found) for point, found in tuning.table.scores.items()} == {(0.1,): 2, (10.0,): 1}


def test_an_interrupt_of_a_shared_search_keeps_finished_cells(cancer, monkeypatch):
    import softmargin.estimators.machines.linear_search as search

    X, y = cancer
    solved, usual = [], search.run

    def run(*arguments, cancel, **options):
        if len(solved) == 3:
            cancel.set()
        solved.append(1)
        return usual(*arguments, cancel=cancel, **options)

    monkeypatch.setattr(search, "run", run)
    tuning = Tuning(LinearMachine(n_jobs=1), Data(X, y), {"C": [0.1, 1.0]}, 3, 0)
    assert tuning.run() == {"C": 0.1}
    assert tuning.is_interrupted
    assert {point: len(found) for point, found in tuning.table.scores.items()} == {(0.1,): 2, (1.0,): 1}
    solved.clear()
    with pytest.raises(KeyboardInterrupt):
        LinearSVCCV(Cs=[0.1, 1.0]).fit(X, y)
    assert isinstance(LinearSVC(), LinearMachine)


def test_one_standard_error_of_the_estimators(cancer):
    X, y = cancer
    Cs = [0.001, 0.02, 0.04, 0.07, 0.1, 0.2]
    plain, smooth = (LinearSVCCV(Cs=Cs, one_standard_error=wanted).fit(X, y) for wanted in (False, True))
    mean, error = plain.scores_.mean(axis=0), plain.scores_.std(axis=0, ddof=1) / np.sqrt(5)
    assert Cs[int(mean.argmax())] == plain.C_
    k = int(np.flatnonzero(mean >= mean.max() - error[mean.argmax()])[0])
    assert smooth.C_ == Cs[k] < plain.C_
    assert smooth.best_score_ == mean[k]


def test_novelties_are_scored_by_labels():
    rng = np.random.default_rng(0)
    X = np.concatenate([3 + rng.standard_normal((40, 2)), rng.standard_normal((10, 2)) - 3])
    y = np.repeat([1, -1], [40, 10])
    tuning = Tuning(OneClassSVM(), Data(X, y), {"nu": [0.1, 0.5]}, 2, 0, n_rounds=0)
    assert tuning.run()["nu"] in (0.1, 0.5)
    assert all(not fold.weights[y == -1].any() for fold in tuning.folds)
    with pytest.raises(SoftmarginError, match="labels 1"):
        Tuning(OneClassSVM(), Data(X, None), {"nu": [0.1]}, 2, 0)


class TestWidening:
    """Grids grow towards what the score prefers, which here is small or large values of one parameter."""

    def searched(self, monkeypatch, machine, y, grids, name, sign, **options):
        monkeypatch.setattr(Tuning, "_score", lambda self, model, held_out: sign * getattr(model, name))
        X = np.random.default_rng(0).normal(2.0, 1.0, size=(40, 3))
        search = Tuning(machine, Data(X, y), grids, 2, 0, **options)
        search.run()
        return search.grids[name]

    @pytest.mark.parametrize(
        ("grid", "sign", "expected"),
        [
            ([0.1, 1.0], -1, [0.001, 0.01, 0.1, 1.0]),
            ([0.1, 1.0], 1, [0.1, 1.0, 10.0, 100.0]),
            ([0.0, 1.0], -1, [0.0, 1.0]),
            ([0.0, 1.0], 1, [0.0, 1.0, 2.0, 4.0]),
            ([0.5], 1, [0.5]),
        ],
    )
    def test_epsilon(self, monkeypatch, grid, sign, expected):
        y = np.arange(40.0)
        grids = {"C": [0.1], "epsilon": grid}
        found = self.searched(monkeypatch, LinearSVR(tol=0.1), y, grids, "epsilon", sign, n_rounds=1)
        assert found == pytest.approx(expected)

    @pytest.mark.parametrize(
        ("grid", "sign", "expected"),
        [
            ([0.25, 0.5], 1, [0.25, 0.5, 1.0]),
            ([0.1, 0.4], 1, [0.1, 0.4, 1.0]),
            ([0.5, 1.0], 1, [0.5, 1.0]),
            ([0.2, 0.4], -1, [1 / 18, 0.1, 0.2, 0.4]),
            ([0.01, 0.1], -1, [0.01, 0.1]),
        ],
    )
    def test_nu_stays_in_its_range(self, monkeypatch, grid, sign, expected):
        """18 of the 36 usual rows are learned from in each of the two folds."""
        y = np.where(np.arange(40) % 10 == 0, -1, 1)
        found = self.searched(monkeypatch, LinearOneClassSVM(tol=0.1), y, {"nu": grid}, "nu", sign)
        assert found == pytest.approx(expected)


class TestSharedKernelValues:
    """Folds, C and epsilon or nu share the kernel values of a gamma, and the solutions are those of separate fits."""

    @pytest.fixture
    def patients(self):
        X, y = load_diabetes(return_X_y=True)
        return 20 * X[:150], y[:150]

    @pytest.mark.parametrize("weighted", [False, True])
    def test_numbers(self, patients, weighted):
        X, y = patients
        weights = np.linspace(0.0, 2.0, y.size) if weighted else None
        grids = {"C": [1.0, 50.0], "gamma": [0.02, 0.2], "epsilon": [1.0, 10.0]}
        tuning = Tuning(SVR(tol=1e-7), Data(X, y, weights=weights), grids, 3, 0, n_rounds=0)
        tuning.run()
        assert len(tuning.table.scores) == 8
        for (C, gamma, epsilon), scores in tuning.table.scores.items():
            for fold, score in zip(tuning.folds, scores, strict=True):
                model = SVR(C, gamma=gamma, epsilon=epsilon, tol=1e-7).fit(X, y, sample_weight=fold.weights)
                assert score == pytest.approx(tuning._score(model, fold.held_out), abs=1e-5)
        assert max(tuning.table.gaps.values()) <= 1e-7

    def test_one_class(self, patients):
        X, y = patients
        y = np.where(y > 200, -1, 1)
        tuning = Tuning(OneClassSVM(tol=1e-7), Data(X, y), {"gamma": [0.02, 0.2], "nu": [0.1, 0.4]}, 3, 0, n_rounds=0)
        tuning.run()
        for (gamma, nu), scores in tuning.table.scores.items():
            for fold, score in zip(tuning.folds, scores, strict=True):
                model = OneClassSVM(nu, gamma=gamma, tol=1e-7).fit(X, sample_weight=fold.weights)
                assert score == pytest.approx(tuning._score(model, fold.held_out), abs=1e-3)

    def test_each_kernel_value_is_computed_once_for_each_gamma(self, patients):
        X, y = patients
        folds = folds_of(y.size, 4, 0)
        others = [{"epsilon": 1.0}, {"epsilon": 10.0}]
        budget = Budget(SVR()._limits()[1], 32)
        task = ScoreTask(X, y, np.ones(y.size), folds, np.array([0.1, 10.0]), others, budget)
        found = []
        n = score_cells(task, SVR(solver="smo"), [0.02, 0.2], lambda *each: found.append(each))
        assert len(found) == 2 * 2 * 4
        assert 0 < n <= 2 * y.size**2

    def test_interior_points_are_fitted_fold_by_fold(self, patients):
        X, y = patients
        tuning = Tuning(SVR(solver="ipm"), Data(X, y), {"C": [1.0, 50.0]}, 3, 0, n_rounds=0)
        assert tuning.run() == {"C": 50.0}

    def test_an_interrupt_keeps_what_was_found(self, patients, cancer, monkeypatch):
        import softmargin.estimators.kernel_work as kernel_work

        solved, usual = [], kernel_work.run

        def run(*arguments, cancel, **options):
            if len(solved) == 5:
                cancel.set()
            solved.append(1)
            return usual(*arguments, cancel=cancel, **options)

        monkeypatch.setattr(kernel_work, "run", run)
        X, y = patients
        found = {}
        for machine, data in ((SVR(), Data(X, y)), (SVC(), Data(*cancer))):
            solved.clear()
            tuning = Tuning(machine, data, {"C": [0.1, 1.0], "gamma": [0.01, 0.1]}, 4, 0)
            assert tuning.run() == {"C": 0.1, "gamma": 0.01}  # the only one with scores of three folds
            assert tuning.is_interrupted
            found[type(machine)] = {point: len(scores) for point, scores in tuning.table.scores.items()}
        assert set(map(str, found.values())) == {"{(0.1, 0.01): 3, (1.0, 0.01): 2}"}


@pytest.mark.parametrize("machine", [LinearMachine, SVC, LinearSVR, SVR])
def test_a_time_limit_is_for_the_whole_search(cancer, machine, monkeypatch):
    """When it has passed, what has begun is finished with the shortest of limits, and no grid is widened."""
    X, y = cancer
    limits = []
    monkeypatch.setattr(Budget, "next", lambda self, n_at_once=1: limits.append(self.seconds_left) or 0.0)
    tuning = Tuning(machine(max_seconds=1e-9), Data(X, y.astype(float)), {"C": [1e-4, 1e-3]}, 3, 0)
    tuning.run()
    assert len(limits) == 6
    assert not any(limits)
    assert tuning.grids["C"] == [1e-4, 1e-3]
