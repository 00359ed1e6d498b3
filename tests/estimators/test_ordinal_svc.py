"""OrdinalSVC: the objectives by their definitions, thresholds, orders of labels, scikit-learn's tools and bad input."""

import signal
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.metrics import top_k_accuracy_score
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softmargin import (
    OCAS,
    SGD,
    ConvergenceWarning,
    LinearSVC,
    OrdinalSVC,
    RankSVM,
    SoftmarginError,
    Status,
    certify,
    load,
)

TOL = 1e-6
KINDS = ["fitted", "immediate", "all"]
MARGINS = ["immediate", "all"]


def make_graded(n=150, d=4, n_ranks=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    scores = X @ rng.standard_normal(d) + 0.4 * rng.standard_normal(n)
    return X, np.searchsorted(np.quantile(scores, np.arange(1, n_ranks) / n_ranks), scores)


@pytest.fixture(scope="module")
def graded():
    return make_graded()


@pytest.fixture(scope="module")
def wide_graded():
    return make_graded(n=40, d=90, seed=1)


def threshold_objective(model, X, ranks, weights):
    """The sum over rows and thresholds, worked out by hand."""
    f, theta = X @ model.coef_, model.thresholds_
    total = 0.0
    for k in range(theta.size):
        z = np.where(ranks > k, 1.0, -1.0)
        counts = np.ones(len(ranks), bool) if model.thresholds == "all" else (ranks == k) | (ranks == k + 1)
        total += (weights * counts) @ np.maximum(0.0, 1.0 - z * (f - theta[k]))
    return 0.5 * model.coef_ @ model.coef_ + model.C * total


def quiet(model, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*args)


def assert_same_model(found, expected):
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.thresholds_, expected.thresholds_)
    assert found.certificates_ == expected.certificates_


class TestObjective:
    @pytest.mark.parametrize("kind", MARGINS)
    @pytest.mark.parametrize("weighted", [False, True])
    def test_is_the_sum_over_rows_and_thresholds(self, graded, kind, weighted):
        X, y = graded
        weights = np.linspace(0.5, 3.0, len(y)) if weighted else np.ones(len(y))
        model = OrdinalSVC(0.7, thresholds=kind).fit(X, y, weights if weighted else None)
        assert model.certificate_.relative_gap <= 1e-3
        assert model.certificate_.primal == pytest.approx(threshold_objective(model, X, y, weights), rel=1e-10)
        assert model.dual_.shape == (len(y), 3)
        assert (np.diff(model.thresholds_) >= 0).all()

    @pytest.mark.parametrize("kind", MARGINS)
    @pytest.mark.parametrize("data", ["binary", "wide"])
    def test_of_two_classes_is_that_of_a_linear_svc(self, request, data, kind, same_optimum):
        X, y = request.getfixturevalue(data)
        model = OrdinalSVC(thresholds=kind, tol=TOL).fit(X, y)
        other = LinearSVC(tol=TOL).fit(X, y)
        assert same_optimum(model.certificate_, other.certificate_)
        np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), atol=1e-2)

    def test_of_fitted_thresholds_is_that_of_a_ranking(self, graded):
        X, y = graded
        model, ranking = OrdinalSVC(10.0).fit(X, y), RankSVM(10.0).fit(X, y)
        np.testing.assert_array_equal(model.coef_, ranking.coef_)
        assert model.certificate_ == ranking.certificate_
        assert model.dual_ is None

    @pytest.mark.parametrize("cost", ["absolute", "zero_one"])
    def test_no_other_thresholds_are_better(self, cost):
        X, y = make_graded(n=30, n_ranks=3, seed=4)
        y = np.where(np.arange(30) % 4, y, 2 - y)
        model = OrdinalSVC(cost=cost).fit(X, y)
        f = X @ model.coef_

        def error(thresholds):
            off = np.abs(np.searchsorted(thresholds, f) - y)
            return (off if cost == "absolute" else off > 0).sum()

        places = np.concatenate([[-np.inf], np.sort(f)])  # a threshold just above or at each score
        best = min(error([low, high]) for low in places for high in places if low <= high)
        assert error(model.thresholds_) == best
        assert 0 < best < len(y)


@pytest.mark.parametrize("kind", KINDS)
class TestTwins:
    def test_weight_two_is_the_row_twice_and_zero_is_none(self, graded, kind, same_optimum):
        X, y = graded
        times = np.random.default_rng(3).integers(0, 3, len(y))
        rows = np.repeat(np.arange(len(y)), times)
        weighted = OrdinalSVC(thresholds=kind, tol=TOL).fit(X, y, times)
        repeated = OrdinalSVC(thresholds=kind, tol=TOL).fit(X[rows], y[rows])
        assert same_optimum(weighted.certificate_, repeated.certificate_)
        np.testing.assert_allclose(weighted.thresholds_, repeated.thresholds_, atol=2e-2)

    def test_order_of_rows(self, graded, kind, same_optimum):
        X, y = graded
        order = np.random.default_rng(5).permutation(len(y))
        model = OrdinalSVC(thresholds=kind, tol=TOL).fit(X, y)
        other = OrdinalSVC(thresholds=kind, tol=TOL).fit(X[order], y[order])
        assert same_optimum(model.certificate_, other.certificate_)

    def test_classes_the_other_way_round(self, graded, kind, same_optimum):
        X, y = graded
        model = OrdinalSVC(thresholds=kind, tol=TOL).fit(X, y)
        other = OrdinalSVC(thresholds=kind, tol=TOL).fit(X, -y)
        assert same_optimum(model.certificate_, other.certificate_)
        np.testing.assert_allclose(other.coef_, -model.coef_, atol=1e-2)

    @pytest.mark.parametrize(
        "names", [[1.0, 2.0, 5.0, 9.0], [-3, 0, 2, 100], np.array([1, 2, 3, 4], dtype=np.int8)], ids=str
    )
    def test_the_size_of_numbers_does_not_matter(self, graded, kind, names):
        X, y = graded
        model = OrdinalSVC(thresholds=kind).fit(X, np.asarray(names)[y])
        assert_same_model(model, OrdinalSVC(thresholds=kind).fit(X, y))
        assert model.classes_.tolist() == list(names)
        assert set(model.predict(X)) <= set(names)

    def test_labels_in_an_order_that_is_given(self, graded, kind):
        X, y = graded
        names = ["low", "fair", "good", "best"]
        model = OrdinalSVC(thresholds=kind, classes=names).fit(X, np.array(names)[y])
        assert_same_model(model, OrdinalSVC(thresholds=kind).fit(X, y))
        assert model.classes_.tolist() == names
        np.testing.assert_array_equal(
            model.predict(X), np.array(names)[OrdinalSVC(thresholds=kind).fit(X, y).predict(X)]
        )
        objects = OrdinalSVC(thresholds=kind, classes=names).fit(X, np.array(names, dtype=object)[y])
        assert_same_model(objects, model)
        assert objects.predict(X).dtype == object
        half = OrdinalSVC(thresholds=kind, classes=[0.5, 1, 1.5, 2]).fit(X, np.array([0.5, 1, 1.5, 2])[y])
        assert_same_model(half, model)

    @pytest.mark.parametrize("left_out", ["not in y", "of weight zero"])
    def test_classes_without_rows_are_never_predicted(self, graded, kind, left_out):
        X, y = graded
        if left_out == "not in y":
            ranks = np.array([1, 3, 4, 6])[y]
            model = OrdinalSVC(thresholds=kind, classes=range(8)).fit(X, ranks)
            theta = OrdinalSVC(thresholds=kind).fit(X, y).thresholds_
            expected = [-np.inf, theta[0], theta[0], theta[1], theta[2], theta[2], np.inf]
            np.testing.assert_array_equal(model.thresholds_, expected)
            assert set(model.predict(X)) <= {1, 3, 4, 6}
            assert certify(model, X, ranks).primal == pytest.approx(model.certificate_.primal, rel=1e-12)
        else:
            weights = (y != 1) & (y != 3)
            model = OrdinalSVC(thresholds=kind).fit(X, y, weights)
            assert set(model.predict(X)) == {0, 2}
            again = certify(model, X, y, weights)
            assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-12)

    def test_class_weight_is_a_factor_on_rows(self, graded, kind):
        X, y = graded
        factors = {0: 2.0, 1: 1.0, 2: 0.5, 3: 1.0}
        model = OrdinalSVC(thresholds=kind, class_weight=factors).fit(X, y)
        assert_same_model(model, OrdinalSVC(thresholds=kind).fit(X, y, [factors[rank] for rank in y]))
        OrdinalSVC(thresholds=kind, class_weight="balanced").fit(X, y)

    def test_the_score_is_cut_by_the_thresholds(self, graded, kind, binary):
        X, y = graded
        model = OrdinalSVC(thresholds=kind).fit(X, y)
        scores = model.predict_score(X)
        np.testing.assert_allclose(scores, X @ model.coef_, atol=1e-12)
        np.testing.assert_array_equal(model.predict(X), np.sum(scores[:, None] > model.thresholds_, axis=1))
        model = OrdinalSVC(thresholds=kind).fit(*binary)
        np.testing.assert_array_equal(model.predict(binary[0]), model.decision_function(binary[0]) > 0)

    def test_the_decision_function_says_how_far_inside_each_class(self, graded, kind):
        X, y = graded
        model = OrdinalSVC(thresholds=kind).fit(X, y)
        scores, theta = model.predict_score(X), model.thresholds_
        columns = [theta[0] - scores, np.minimum(scores - theta[0], theta[1] - scores)]
        columns += [np.minimum(scores - theta[1], theta[2] - scores), scores - theta[2]]
        np.testing.assert_array_equal(model.decision_function(X), np.column_stack(columns))
        np.testing.assert_array_equal(model.decision_function(X).argmax(axis=1), model.predict(X))

    def test_storages_and_threads(self, graded, kind, same_optimum):
        X, y = graded
        model = OrdinalSVC(thresholds=kind, tol=TOL).fit(X, y)
        for other in (sp.csr_array(X), np.asfortranarray(X), pd.DataFrame(X, columns=list("abcd"))):
            assert same_optimum(OrdinalSVC(thresholds=kind, tol=TOL).fit(other, y).certificate_, model.certificate_)
        assert_same_model(OrdinalSVC(thresholds=kind, tol=TOL, n_jobs=2).fit(X, y), model)


def test_a_class_that_is_better_not_predicted_keeps_a_finite_threshold():
    """One row of the second class amid the first: no threshold gains anything by splitting them."""
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])
    model = OrdinalSVC().fit(X, [0, 0, 1, 0, 0])
    assert np.isfinite(model.decision_function(X)).all()
    assert (model.predict(X) == 0).all()


@pytest.mark.parametrize("theta", [[-1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [-np.inf, 0.0, 0.0, 1.0, np.inf]], ids=str)
def test_the_decision_function_agrees_with_the_labels_also_at_thresholds(theta):
    theta = np.array(theta)
    model = OrdinalSVC()
    model.coef_, model.thresholds_, model.classes_ = np.ones(1), theta, np.arange(theta.size + 1)
    model.n_features_in_ = 1
    finite = theta[np.isfinite(theta)]
    X = np.concatenate([finite, np.nextafter(finite, 9.0), np.nextafter(finite, -9.0), [-5.0, 0.5, 5.0]])[:, None]
    found = model.decision_function(X)
    assert found.shape == (len(X), theta.size + 1)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found.argmax(axis=1), model.predict(X))


class TestLabels:
    def test_half_stars_are_ordered_classes(self, graded):
        X, y = graded
        stars = 0.5 + 0.5 * y
        model = OrdinalSVC(thresholds="all").fit(X, stars)
        assert_same_model(model, OrdinalSVC(thresholds="all").fit(X, y))
        assert model.classes_.tolist() == [0.5, 1.0, 1.5, 2.0]
        assert model.score(X, stars) == OrdinalSVC(thresholds="all").fit(X, y).score(X, y) > 0.6
        assert cross_val_score(OrdinalSVC(), X, stars, cv=3).min() > 0.5
        assert certify(model, X, stars).primal == pytest.approx(model.certificate_.primal, rel=1e-12)

    def test_half_stars_survive_a_model_file(self, graded, tmp_path):
        X, y = graded
        model = OrdinalSVC().fit(X, 0.5 + 0.5 * y)
        model.save(tmp_path / "stars")
        np.testing.assert_array_equal(load(tmp_path / "stars").predict(X), model.predict(X))

    def test_the_score_counts_weights(self, graded):
        X, y = graded
        model = OrdinalSVC().fit(X, y)
        weights = np.linspace(0.0, 2.0, len(y))
        right = model.predict(X) == y
        assert model.score(X, y, weights) == pytest.approx(weights[right].sum() / weights.sum())

    @pytest.mark.parametrize("make", [pd.Series, pd.Categorical])
    def test_an_ordered_categorical_brings_its_order(self, graded, make):
        X, y = graded
        names = ["low", "fair", "good", "best", "never seen"]
        kind = pd.CategoricalDtype(names, ordered=True)
        model = OrdinalSVC().fit(X, make(np.array(names, dtype=object)[y], dtype=kind))
        assert model.classes_.tolist() == names
        expected = OrdinalSVC().fit(X, y)
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        np.testing.assert_array_equal(model.thresholds_, [*expected.thresholds_, np.inf])
        np.testing.assert_array_equal(model.predict(X), np.array(names)[expected.predict(X)])
        downwards = pd.CategoricalDtype([3, 2, 1, 0], ordered=True)
        assert OrdinalSVC().fit(X, make(y, dtype=downwards)).classes_.tolist() == [3, 2, 1, 0]

    def test_an_order_that_is_given_goes_before_that_of_a_categorical(self, graded):
        X, y = graded
        model = OrdinalSVC(classes=[3, 2, 1, 0]).fit(X, pd.Series(y, dtype=pd.CategoricalDtype(range(4), ordered=True)))
        assert model.classes_.tolist() == [3, 2, 1, 0]

    def test_a_categorical_without_an_order_is_what_it_holds(self, graded):
        X, y = graded
        assert_same_model(OrdinalSVC().fit(X, pd.Series(y, dtype="category")), OrdinalSVC().fit(X, y))
        with pytest.raises(SoftmarginError, match="which of them is higher is not known"):
            OrdinalSVC().fit(X, pd.Series(np.array(["a", "b", "c", "d"])[y], dtype="category"))


@pytest.mark.skipif(not hasattr(OrdinalSVC, "set_callbacks"), reason="this scikit-learn has no callbacks")
@pytest.mark.parametrize("kind", KINDS)
def test_callbacks_see_models_that_predict(graded, kind):
    X, y = graded

    class Recorder:
        def __init__(self):
            self.models = []

        def setup(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            self.models.append(fitted_estimator)

        def teardown(self, estimator, context): ...

    recorder = Recorder()
    model = OrdinalSVC(thresholds=kind).set_callbacks(recorder).fit(X, y)
    assert len(recorder.models) == model.n_iter_ + 1
    assert recorder.models[0].predict(X).shape == y.shape
    np.testing.assert_array_equal(recorder.models[-1].thresholds_, model.thresholds_)


class TestTools:
    def test_grid_search_and_pipeline(self, graded):
        X, y = graded
        pipeline = make_pipeline(StandardScaler(), OrdinalSVC())
        grid = {"ordinalsvc__thresholds": KINDS, "ordinalsvc__C": [0.1, 10.0]}
        search = GridSearchCV(pipeline, grid, cv=3, scoring="neg_mean_absolute_error").fit(X, y)
        assert search.best_score_ > -0.5

    @pytest.mark.parametrize("kind", KINDS)
    def test_calibrated_probabilities(self, kind):
        X, y = load_iris(return_X_y=True)
        model = CalibratedClassifierCV(OrdinalSVC(10.0, thresholds=kind), cv=3).fit(X, y)
        assert model.score(X, y) > 0.95
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)

    def test_scorers_that_need_a_score_for_each_class(self, graded):
        X, y = graded
        model = OrdinalSVC(classes=range(5)).fit(X, y)  # one of them without rows
        found = top_k_accuracy_score(y, model.decision_function(X), k=2, labels=range(5))
        assert found > model.score(X, y)

    def test_cross_val_predict(self, graded):
        X, y = graded
        assert np.abs(cross_val_predict(OrdinalSVC(thresholds="all"), X, y, cv=3) - y).mean() < 0.5

    def test_metadata_routing(self, graded):
        X, y = graded
        weights = np.linspace(0.5, 2.0, len(y))
        with sklearn.config_context(enable_metadata_routing=True):
            model = OrdinalSVC().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
            search = GridSearchCV(model, {"C": [1.0]}, cv=3).fit(X, y, sample_weight=weights)
        assert_same_model(search.best_estimator_, OrdinalSVC().fit(X, y, weights))

    def test_names_of_features(self, graded):
        X, y = graded
        model = OrdinalSVC().fit(pd.DataFrame(X, columns=list("abcd")), pd.Series(y))
        assert model.feature_names_in_.tolist() == list("abcd")


class Interrupting(OCAS):
    """Sends SIGINT to the main thread, as Ctrl-C does, in its third step."""

    def step(self, problem, state):
        if state.iterations == 2:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return super().step(problem, state)


@pytest.mark.parametrize("data", ["graded", "wide_graded"])
@pytest.mark.parametrize("kind", KINDS)
class TestControl:
    def test_a_limit_warns_and_the_fit_can_be_continued(self, request, data, kind):
        X, y = request.getfixturevalue(data)
        model = OrdinalSVC(10.0, thresholds=kind, tol=1e-5, max_iter=3, warm_start=True)
        with pytest.warns(ConvergenceWarning, match=r"raise max_iter \(now 3\)") as caught:
            model.fit(X, y)
        assert caught[0].filename == __file__
        assert certify(model, X, y).primal == pytest.approx(model.certificate_.primal, rel=1e-12)
        while model.status_ is not Status.OPTIMAL:
            quiet(model, X, y)
        whole = OrdinalSVC(10.0, thresholds=kind, tol=1e-5).fit(X, y)
        assert_same_model(model, whole)
        assert model.n_iter_ == whole.n_iter_

    @pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="Ctrl-C cannot be sent to a thread here")
    def test_ctrl_c_keeps_the_best_so_far(self, request, data, kind):
        X, y = request.getfixturevalue(data)
        model = OrdinalSVC(10.0, thresholds=kind, tol=1e-8, solver=Interrupting())
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert model.status_ is Status.INTERRUPTED
        assert model.predict(X).shape == y.shape

    def test_certify(self, request, data, kind):
        X, y = request.getfixturevalue(data)
        model = OrdinalSVC(thresholds=kind).fit(X, y)
        found = certify(model, X, y)
        assert found.primal == pytest.approx(model.certificate_.primal, rel=1e-12)
        assert found.dual == pytest.approx(model.certificate_.dual, rel=1e-9)

    def test_warm_start_after_a_change(self, request, data, kind, same_optimum):
        X, y = request.getfixturevalue(data)
        model = OrdinalSVC(thresholds=kind, tol=1e-3, warm_start=True).fit(X, y)
        for change in ({"C": 3.0}, {"thresholds": KINDS[KINDS.index(kind) - 1]}):
            model.set_params(**change).fit(X, y)
            assert model.certificate_.relative_gap <= 1e-3
            assert same_optimum(model.certificate_, clone(model).fit(X, y).certificate_)
        fewer = np.minimum(y, 1)
        assert same_optimum(model.fit(X, fewer).certificate_, clone(model).fit(X, fewer).certificate_)


class TestBadInput:
    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"C": 0}, "C=0 must be a positive"),
            ({"thresholds": "best"}, "thresholds='best' is unknown: choose one of 'fitted', 'immediate', 'all'"),
            ({"cost": "squared"}, "cost='squared' is unknown: choose one of 'absolute', 'zero_one'"),
            ({"solver": "sgd"}, "solver='sgd' is unknown: choose one of 'auto', 'ocas', 'cpa'"),
            ({"solver": SGD()}, "one at a time, for LinearSVC"),
            ({"class_weight": {7: 1.0}}, "class_weight names classes that are not in y"),
            ({"classes": [0]}, "must list at least two labels"),
            ({"classes": [0, 1, 1, 2, 3]}, "each of them once"),
            ({"classes": "0123"}, "must list at least two labels"),
            ({"classes": 4}, "must list at least two labels"),
            ({"classes": [[0], [1]]}, "must list at least two labels"),
            ({"classes": [0, 1, 2]}, "y holds labels that are not among the classes 0, 1, 2: 3"),
        ],
        ids=str,
    )
    def test_parameters(self, graded, params, message):
        with pytest.raises(SoftmarginError, match=message):
            OrdinalSVC(**params).fit(*graded)

    @pytest.mark.parametrize("dtype", [str, object])
    def test_words_without_an_order(self, graded, dtype):
        X, y = graded
        words = np.array(["bad", "good", "poor", "ugly"], dtype=dtype)[y]
        with pytest.raises(SoftmarginError, match=r"'bad', 'good'.*which of them is higher is not known.*classes=\["):
            OrdinalSVC().fit(X, words)

    def test_one_class(self, graded):
        X, y = graded
        with pytest.raises(SoftmarginError, match="one class only"):
            OrdinalSVC().fit(X, np.zeros(len(y)))
        with pytest.raises(SoftmarginError, match="at least two classes"):
            OrdinalSVC(classes=[0, 1]).fit(X, np.zeros(len(y)))
        with pytest.raises(SoftmarginError, match="at least two classes"):
            OrdinalSVC(thresholds="all").fit(X, y, y == 2)

    def test_real_targets_and_missing_ones(self, graded):
        X, y = graded
        with pytest.raises(SoftmarginError, match=r"Unknown label type: continuous.*150 different.*use RankSVM"):
            OrdinalSVC().fit(X, y + np.linspace(0.1, 0.9, len(y)))
        with pytest.raises(ValueError, match="NaN"):
            OrdinalSVC().fit(X, np.where(y == 1, np.nan, y))

    @pytest.mark.parametrize("kind", KINDS)
    def test_weights_that_overflow(self, graded, kind):
        X, y = graded
        with pytest.raises(SoftmarginError, match="overflows"):
            OrdinalSVC(10.0, thresholds=kind).fit(X, y, np.full(len(y), 1e307))

    def test_other_rows_cannot_be_certified(self, graded):
        X, y = graded
        model = OrdinalSVC(thresholds="all").fit(X, y)
        with pytest.raises(SoftmarginError, match="on the rows it was trained on"):
            certify(model, X[1:], y[1:])
        with pytest.raises(SoftmarginError, match="not among the classes"):
            certify(model, X, y + 1)
