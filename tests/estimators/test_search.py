"""LinearSVCCV and SVCCV: the same as fits on the folds, without copies of X, and certified."""

import pickle
import signal

import numpy as np
import pytest
import scipy.sparse as sp
import skops.io
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.utils.validation import check_is_fitted

import softmargin
from softmargin import SVC, SVCCV, ConvergenceWarning, LinearSVC, LinearSVCCV, SoftmarginError, certify, load
from softmargin.core.trace import Trace

CS = [1.0, 0.01, 30.0]  # in no order
LINEAR_SOLVERS = ("ocas", "cpa", "coordinate")
KERNEL_SOLVERS = ("block", "smo", "active_set", "ocas")


@pytest.fixture(scope="module")
def binary():
    X, y = make_classification(240, 8, flip_y=0.15, random_state=3)
    return X, np.where(y > 0, "yes", "no")


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X - X.mean(axis=0), y


def fold_scores(grid, n_folds=5):
    return np.array([grid.cv_results_[f"split{k}_test_score"] for k in range(n_folds)])


class TestTheSameAsFitsOnTheFolds:
    @pytest.mark.parametrize("solver", LINEAR_SOLVERS)
    @pytest.mark.parametrize("data", ["binary", "iris"])
    def test_linear(self, solver, data, request):
        X, y = request.getfixturevalue(data)
        search = LinearSVCCV(CS, solver=solver, tol=1e-7).fit(X, y)
        grid = GridSearchCV(LinearSVC(solver=solver, tol=1e-7), {"C": CS}, cv=5).fit(X, y)
        np.testing.assert_array_equal(search.scores_, fold_scores(grid))
        assert search.best_score_ == grid.best_score_
        assert (search.relative_gaps_ <= 1e-7).all()
        np.testing.assert_array_equal(search.Cs_, CS)

    @pytest.mark.parametrize("solver", KERNEL_SOLVERS)
    @pytest.mark.parametrize("data", ["binary", "iris"])
    def test_kernel(self, solver, data, request):
        X, y = request.getfixturevalue(data)
        gammas = [0.3, 0.05]
        search = SVCCV(CS, gammas=gammas, solver=solver, tol=1e-7).fit(X, y)
        grid = GridSearchCV(SVC(solver=solver, tol=1e-7), {"C": CS, "gamma": gammas}, cv=5).fit(X, y)
        np.testing.assert_array_equal(search.scores_, fold_scores(grid).reshape(5, 3, 2).transpose(0, 2, 1))
        assert search.best_score_ == grid.best_score_
        assert (search.relative_gaps_ <= 1e-7).all()

    @pytest.mark.parametrize(
        ("search", "plain"), [(LinearSVCCV, LinearSVC), (SVCCV, SVC)], ids=["LinearSVCCV", "SVCCV"]
    )
    @pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}])
    def test_objectives_and_weights(self, search, plain, class_weight, iris):
        X, y = iris
        weights = np.linspace(0.0, 2.0, y.size)
        cv = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
        more = {"gammas": [0.2]} if search is SVCCV else {}
        found = search(CS, cv=cv, tol=1e-8, class_weight=class_weight, **more).fit(X, y, sample_weight=weights)
        more = {"gamma": 0.2} if search is SVCCV else {}
        for j, (train, test) in enumerate(cv):
            for c, C in enumerate(CS):
                model = plain(C, tol=1e-8, class_weight=class_weight, **more)
                model.fit(X[train], y[train], sample_weight=weights[train])
                assert found.objectives_[j, ..., c] == pytest.approx(model.certificate_.primal, rel=1e-7)
                expected = model.score(X[test], y[test], sample_weight=weights[test])
                assert found.scores_[j, ..., c] == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize("scoring", ["roc_auc", "balanced_accuracy", "f1_macro"])
    def test_scoring(self, scoring, binary):
        X, y = binary
        search = LinearSVCCV(CS, scoring=scoring, tol=1e-7).fit(X, y)
        grid = GridSearchCV(LinearSVC(tol=1e-7), {"C": CS}, cv=5, scoring=scoring).fit(X, y)
        np.testing.assert_allclose(search.scores_, fold_scores(grid))
        assert search.score(X, y) == pytest.approx(grid.score(X, y))

    def test_precomputed_and_kernels_without_gamma(self, binary):
        X, y = binary
        linear = SVCCV(CS, kernel="linear", tol=1e-7).fit(X, y)
        matrix = SVCCV(CS, kernel="precomputed", tol=1e-7).fit(X @ X.T, y)
        function = SVCCV(CS, kernel=lambda X, Z: X @ Z.T, tol=1e-7).fit(X, y)
        for other in (matrix, function):
            np.testing.assert_array_equal(other.scores_, linear.scores_)
        assert linear.scores_.shape == (5, 1, 3)
        np.testing.assert_array_equal(matrix.predict(X @ X.T), linear.predict(X))

    def test_sparse_rows_and_many_classes_in_large_segments(self, iris, monkeypatch):
        X, y = iris
        dense = SVCCV(CS, gammas=[0.1], tol=1e-7).fit(X, y)
        monkeypatch.setattr("softmargin.estimators.kernel_work._SMALL_WHOLE", 0)
        sparse = SVCCV(CS, gammas=[0.1], tol=1e-7).fit(sp.csr_array(X), y)
        np.testing.assert_array_equal(dense.scores_, sparse.scores_)


class TestCost:
    def test_folds_and_values_of_C_share_kernel_values(self, binary):
        X, y = binary
        search = SVCCV([0.1, 1.0, 10.0], gammas=[0.1, 1.0], solver="smo").fit(X, y)
        assert search.n_kernel_evaluations_ <= 2 * len(X) ** 2

    @pytest.mark.parametrize("make", [LinearSVCCV, lambda Cs, **more: SVCCV(Cs, gammas=["scale"], **more)])
    def test_threads_change_nothing(self, make, iris):
        one, two = (make(CS, n_jobs=n_jobs).fit(*iris) for n_jobs in (1, 2))
        np.testing.assert_array_equal(one.scores_, two.scores_)
        np.testing.assert_array_equal(one.objectives_, two.objectives_)
        np.testing.assert_array_equal(one.decision_function(iris[0]), two.decision_function(iris[0]))

    def test_the_rows_are_not_copied(self, binary, monkeypatch):
        X, y = sp.csr_array(binary[0]), binary[1]
        monkeypatch.setattr("softmargin.estimators.search._safe_indexing", None)
        assert LinearSVCCV(CS).fit(X, y).scores_.shape == (5, 3)


class TestTheModel:
    @pytest.mark.parametrize("search", [LinearSVCCV([0.1, 1.0]), SVCCV([0.1, 1.0], gammas=[0.1])])
    def test_it_is_an_ordinary_one(self, search, binary, tmp_path):
        X, y = binary
        search = clone(search).fit(X, y)
        model = search.best_estimator_
        assert type(model) is (LinearSVC if isinstance(search, LinearSVCCV) else SVC)
        assert search.C_ == model.C
        assert certify(model, X, y).relative_gap <= 1e-3
        assert search.certificate_ == model.certificate_
        model.save(tmp_path / "model.safetensors")
        np.testing.assert_array_equal(load(tmp_path / "model.safetensors").predict(X), search.predict(X))
        np.testing.assert_array_equal(search.intercept_, model.intercept_)
        np.testing.assert_array_equal(search.classes_, ["no", "yes"])
        assert search.score(X, y) == model.score(X, y)

    @pytest.mark.parametrize("search", [LinearSVCCV([0.1, 1.0]), SVCCV([0.1, 1.0], gammas=[0.1])])
    def test_copies_and_files_of_other_libraries(self, search, binary):
        X, y = binary
        search = clone(search).fit(X, y)
        trusted = softmargin.SKOPS_TRUSTED_TYPES
        for other in (pickle.loads(pickle.dumps(search)), skops.io.loads(skops.io.dumps(search), trusted=trusted)):
            np.testing.assert_array_equal(other.predict(X), search.predict(X))
            np.testing.assert_array_equal(other.scores_, search.scores_)

    def test_of_equally_good_values_the_smallest(self):
        X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]] * 5), np.array([0, 0, 1, 1] * 5)
        search = SVCCV([10.0, 1.0, 100.0], gammas=[0.5, 0.1]).fit(X, y)
        assert (search.best_score_, search.C_, search.gamma_) == (1.0, 1.0, 0.1)

    def test_without_refit(self, binary):
        search = LinearSVCCV([0.1, 1.0], refit=False).fit(*binary)
        assert search.C_ in (0.1, 1.0)
        with pytest.raises(AttributeError, match="refit=False and holds no model"):
            search.predict(binary[0])

    def test_grids(self, binary):
        search = SVCCV(3, gammas=3, cv=2).fit(*binary)
        np.testing.assert_allclose(search.Cs_, [1e-4, 1.0, 1e4])
        scale = SVC().fit(*binary).gamma_
        np.testing.assert_allclose(search.gammas_, [0.01 * scale, scale, 100 * scale])
        words = SVCCV([1.0], gammas=["scale", "auto", 0.5], cv=2).fit(*binary)
        np.testing.assert_allclose(words.gammas_, [scale, 1 / 8, 0.5])


class TestEndings:
    def test_a_time_limit_is_for_the_whole(self, binary):
        with pytest.warns(ConvergenceWarning) as warned:
            search = LinearSVCCV(CS, tol=1e-9, max_seconds=1e-9).fit(*binary)
        assert any("15 of the 15 solutions of the search ended before tol=1e-09" in str(w.message) for w in warned)
        assert (search.relative_gaps_ > 1e-9).all()
        assert search.best_estimator_.max_seconds == 1e-9

    @pytest.mark.parametrize("search", [LinearSVCCV(CS), LinearSVCCV(CS, n_jobs=2), SVCCV(CS, gammas=[0.1, 1.0])])
    def test_an_interrupt_leaves_nothing_half_fitted(self, search, binary, monkeypatch):
        append, n_records = Trace.append, 0

        def append_and_interrupt(trace, record):
            nonlocal n_records
            append(trace, record)
            n_records += 1
            if n_records == 12:
                signal.raise_signal(signal.SIGINT)

        fresh, fitted = clone(search), clone(search).fit(*binary)
        before = dict(vars(fitted))
        with monkeypatch.context() as patch:
            patch.setattr(Trace, "append", append_and_interrupt)
            for estimator in (fresh, fitted):
                n_records = 0
                with pytest.raises(KeyboardInterrupt):
                    estimator.fit(binary[0][:, :4], binary[1])
        with pytest.raises(NotFittedError):
            check_is_fitted(fresh)
        assert vars(fresh) == vars(clone(search))
        assert vars(fitted) == before

    @pytest.mark.parametrize(
        ("search", "words"),
        [
            (LinearSVCCV(0), "Cs=0 must be at least 1"),
            (LinearSVCCV([]), "Cs is empty"),
            (LinearSVCCV([1.0, -1.0]), "a value in Cs=-1.0 must be a positive"),
            (LinearSVCCV(None), "Cs=None must be a number of values"),
            (LinearSVCCV(tol=2.0), "tol=2.0 asks for nothing"),
            (SVCCV(gammas=[]), "gammas is empty"),
            (SVCCV(gammas=[0.0]), "gamma=0.0 must be"),
            (SVCCV(gammas="some"), "gamma='some' is unknown"),
            (SVCCV(solver="ipm"), "solver='ipm' cannot search"),
            (LinearSVCCV(cv=KFold(2)), "fold 0 have one class only"),
        ],
    )
    def test_errors(self, search, words):
        X, y = np.arange(12.0)[:, None], np.repeat([0, 1], 6)
        with pytest.raises(SoftmarginError, match=words):
            search.fit(X, y)

    def test_a_scorer_may_not_ask_for_other_rows(self, binary):
        X, y = binary
        with pytest.raises(SoftmarginError, match="asked for 240 rows"):
            LinearSVCCV([1.0], scoring=lambda model, rows, truth: model.predict(X).size).fit(X, y)

    def test_progress(self, iris, capfd):
        LinearSVCCV([0.1, 1.0], cv=2, verbose=1).fit(*iris)
        SVCCV([0.1, 1.0], gammas=[0.1], cv=2, verbose=1).fit(*iris)
        assert "fold 1" in capfd.readouterr().err
