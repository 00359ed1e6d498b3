"""RankSVM: the objective by its definition, metamorphic twins, scikit-learn's tools, control and bad input."""

import pickle
import signal
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from softmargin import CPA, OCAS, SGD, ConvergenceWarning, LinearSVC, RankSVM, SoftmarginError, Status, certify
from softmargin.data import columns
from softmargin.metrics import roc_area, swapped_pairs

TOL = 1e-6


def make_queries(n=120, d=5, n_queries=6, n_grades=4, seed=0):
    """Graded rows of several queries, in no order, each query with an offset that only comparisons within it remove."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    qid = rng.integers(n_queries, size=n)
    scores = X @ rng.standard_normal(d) + 0.7 * rng.standard_normal(n)
    y = np.clip(np.round(scores + n_grades / 2), 0, n_grades - 1) + 10.0 * qid
    return X, y, qid


@pytest.fixture(scope="module")
def graded():
    return make_queries()


@pytest.fixture(scope="module")
def wide_graded():
    return make_queries(n=40, d=90, seed=1)


def all_pairs(y, qid, weights):
    """(i, j, weight) of every pair."""
    i, j = np.nonzero((y[:, None] > y[None, :]) & (qid[:, None] == qid[None, :]))
    return i, j, weights[i] * weights[j]


def objective(model, X, y, qid, weights):
    i, j, s = all_pairs(y, qid, weights)
    if model.query_weight == "equal":
        s = s / np.bincount(qid[i], s)[qid[i]]
    f = X @ model.coef_
    risk = s @ np.maximum(0.0, 1.0 - (f[i] - f[j]))
    if model.pairs == "mean":
        risk /= s.sum()
    return 0.5 * model.coef_ @ model.coef_ + model.C * risk


def quiet(model, *args, **metadata):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*args, **metadata)


def assert_same_model(found, expected):
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.certificates_ == expected.certificates_


@pytest.mark.parametrize("pairs", ["mean", "sum"])
@pytest.mark.parametrize("query_weight", ["pairs", "equal"])
@pytest.mark.parametrize("weighted", [False, True])
class TestObjective:
    def test_is_the_sum_over_the_pairs(self, graded, pairs, query_weight, weighted):
        X, y, qid = graded
        weights = np.random.default_rng(1).integers(0, 4, len(y)).astype(float) if weighted else np.ones(len(y))
        model = RankSVM(2.0, pairs=pairs, query_weight=query_weight).fit(X, y, qid, weights if weighted else None)
        assert model.certificate_.relative_gap <= 1e-3
        assert model.certificate_.primal == pytest.approx(objective(model, X, y, qid, weights), rel=1e-10)
        assert model.n_pairs_ == all_pairs(y, qid, weights)[2].sum()

    def test_is_that_of_a_classifier_of_differences(self, graded, same_optimum, pairs, query_weight, weighted):
        X, y, qid = graded
        weights = np.random.default_rng(2).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
        model = RankSVM(1.5, pairs=pairs, query_weight=query_weight, tol=TOL).fit(X, y, qid, weights)
        i, j, s = all_pairs(y, qid, weights)
        if query_weight == "equal":
            s = s / np.bincount(qid[i], s)[qid[i]]
        if pairs == "mean":
            s = s / s.sum()
        sides = np.where(np.arange(i.size) % 2, 1.0, -1.0)  # a classifier needs two classes
        other = LinearSVC(1.5, fit_intercept=False, tol=TOL).fit((X[i] - X[j]) * sides[:, None], sides, s)
        assert same_optimum(model.certificate_, other.certificate_)
        np.testing.assert_allclose(model.coef_, other.coef_[0], atol=5e-3 * np.abs(model.coef_).max())


class TestTwins:
    def test_weight_two_is_the_row_twice_and_zero_is_none(self, graded, same_optimum):
        X, y, qid = graded
        times = np.random.default_rng(3).integers(0, 3, len(y))
        rows = np.repeat(np.arange(len(y)), times)
        weighted = RankSVM(5.0, tol=TOL).fit(X, y, qid, times)
        repeated = RankSVM(5.0, tol=TOL).fit(X[rows], y[rows], qid[rows])
        assert weighted.n_pairs_ == repeated.n_pairs_
        assert same_optimum(weighted.certificate_, repeated.certificate_)
        assert weighted.score(X, y, qid, times) == pytest.approx(weighted.score(X[rows], y[rows], qid[rows]))

    def test_order_of_rows_and_queries_in_pieces(self, graded, same_optimum):
        X, y, qid = graded
        order = np.argsort(qid, kind="stable")
        in_pieces = RankSVM(5.0, tol=TOL).fit(X, y, qid)
        in_blocks = RankSVM(5.0, tol=TOL).fit(X[order], y[order], qid[order])
        assert same_optimum(in_pieces.certificate_, in_blocks.certificate_)
        np.testing.assert_allclose(in_pieces.coef_, in_blocks.coef_, atol=5e-3)

    def test_only_the_order_of_y_within_a_query_counts(self, graded):
        X, y, qid = graded
        _, ranks = np.unique(y, return_inverse=True)
        model = RankSVM(5.0).fit(X, y, qid)
        assert_same_model(RankSVM(5.0).fit(X, ranks, qid), model)
        assert_same_model(RankSVM(5.0).fit(X, np.exp(y / 7.0) - 1000.0 * qid, qid), model)

    def test_the_names_of_queries_do_not_matter(self, graded):
        X, y, qid = graded
        model = RankSVM(5.0).fit(X, y, qid)
        for names in ([f"q{k}" for k in qid], [("a", k) for k in qid.tolist()], pd.Series(qid) * 3.5, -qid):
            assert_same_model(RankSVM(5.0).fit(X, y, names), model)

    def test_without_qid_there_is_one_query(self, graded):
        X, y, _ = graded
        assert_same_model(RankSVM().fit(X, y), RankSVM().fit(X, y, np.full(len(y), 7)))

    def test_two_targets_are_the_area_under_the_roc_curve(self, graded):
        X, y, qid = graded
        target = (y - 10 * qid > 1).astype(int)
        model = RankSVM(100.0).fit(X, target)
        scores = model.predict(X)
        assert model.score(X, target) == pytest.approx(roc_area(target == 1, scores), abs=1e-12)
        assert model.score(X, target) == pytest.approx(roc_auc_score(target, scores), abs=1e-12)
        assert model.n_pairs_ == target.sum() * (1 - target).sum()

    def test_real_targets(self):
        rng = np.random.default_rng(5)
        X = rng.standard_normal((300, 4))
        y = X @ [3.0, -2.0, 1.0, 0.0] + 0.1 * rng.standard_normal(300)
        model = RankSVM(100.0).fit(X, y)
        assert model.n_pairs_ == 300 * 299 / 2
        assert model.score(X, y) > 0.95

    @pytest.mark.parametrize("solver", ["cpa", OCAS(mixing=0.3), CPA()], ids=str)
    @pytest.mark.parametrize("data", ["graded", "wide_graded"])
    def test_solvers_agree(self, request, data, solver, same_optimum):
        X, y, qid = request.getfixturevalue(data)
        first = RankSVM(tol=1e-4).fit(X, y, qid)
        second = RankSVM(tol=1e-4, solver=solver).fit(X, y, qid)
        assert max(first.certificate_.relative_gap, second.certificate_.relative_gap) <= 1e-4
        assert same_optimum(first.certificate_, second.certificate_)

    @pytest.mark.parametrize(
        "storage",
        [sp.csr_array, np.asfortranarray, lambda X: X.astype(np.float32), pd.DataFrame],
        ids=["csr", "F", "float32", "frame"],
    )
    def test_storages(self, graded, storage, same_optimum):
        X, y, qid = graded
        model = RankSVM(tol=TOL).fit(X, y, qid)
        other = RankSVM(tol=TOL).fit(storage(X), y, qid)
        assert same_optimum(model.certificate_, other.certificate_, slack=1e-6)
        np.testing.assert_allclose(other.predict(storage(X)), model.predict(X), atol=1e-2)

    def test_threads_do_not_change_a_bit(self):
        X, y, qid = make_queries(n=3000, n_queries=50)
        assert_same_model(RankSVM(10.0, n_jobs=2).fit(X, y, qid), RankSVM(10.0).fit(X, y, qid))

    def test_renumbered_columns(self, wide_graded, monkeypatch, same_optimum):
        X, y, qid = wide_graded
        X = sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))
        plain = RankSVM(10.0, tol=1e-8).fit(X, y, qid)
        monkeypatch.setattr(columns, "MANY_COLUMNS", 2)
        monkeypatch.setattr(columns, "MANY_ENTRIES", 2)
        model = RankSVM(10.0, tol=1e-8).fit(X, y, qid)
        assert same_optimum(model.certificate_, plain.certificate_)
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-3)
        assert certify(model, X, y, qid=qid).primal == pytest.approx(model.certificate_.primal, rel=1e-12)


class TestTools:
    """Among scikit-learn's tools."""

    @pytest.fixture(autouse=True)
    def routing(self):
        with sklearn.config_context(enable_metadata_routing=True):
            yield

    def test_grid_search_over_whole_queries(self, graded):
        X, y, qid = graded
        ranker = RankSVM().set_fit_request(qid=True).set_score_request(qid=True)
        search = GridSearchCV(ranker, {"C": [0.01, 1.0, 100.0]}, cv=GroupKFold(3))
        search.fit(X, y, qid=qid, groups=qid)
        by_hand = []
        for train, test in GroupKFold(3).split(X, y, qid):
            model = RankSVM(100.0).fit(X[train], y[train], qid[train])
            by_hand.append(1.0 - swapped_pairs(y[test], model.predict(X[test]), qid[test]))
        assert search.cv_results_["mean_test_score"][2] == pytest.approx(np.mean(by_hand))
        assert search.best_score_ > 0.75

    def test_pipeline_and_sample_weight(self, graded):
        X, y, qid = graded
        weights = np.linspace(0.5, 2.0, len(y))
        ranker = RankSVM().set_fit_request(qid=True, sample_weight=True).set_score_request(qid=True, sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), ranker)
        pipeline.fit(X, y, qid=qid, sample_weight=weights)
        scaled = StandardScaler().fit_transform(X)
        assert_same_model(pipeline[-1], RankSVM().fit(scaled, y, qid, weights))
        found = pipeline.score(X, y, qid=qid, sample_weight=weights)
        assert found == pytest.approx(1.0 - swapped_pairs(y, pipeline.predict(X), qid, weights))

    def test_cross_val_predict(self, graded):
        X, y, qid = graded
        ranker = RankSVM(10.0).set_fit_request(qid=True)
        scores = cross_val_predict(ranker, X, y, cv=GroupKFold(3), params={"qid": qid, "groups": qid})
        assert swapped_pairs(y, scores, qid) < 0.25

    def test_without_a_request_it_says_so(self, graded):
        X, y, qid = graded
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="qid"):
            cross_validate(RankSVM(), X, y, cv=3, params={"qid": qid}, error_score="raise")

    @pytest.mark.skipif(
        parse_version(sklearn.__version__) < parse_version("1.9"),
        reason="before 1.9 scikit-learn lets only classifiers use scorers that need a decision function",
    )
    def test_the_roc_area_is_a_scorer(self):
        X, y = load_breast_cancer(return_X_y=True)
        X = StandardScaler().fit_transform(X)
        found = cross_val_score(RankSVM(), X, y, scoring="roc_auc", cv=3, error_score="raise")
        assert found == pytest.approx(cross_val_score(RankSVM(), X, y, cv=3), abs=1e-12)
        assert found.min() > 0.98

    def test_data_frames(self, graded):
        X, y, qid = graded
        frame = pd.DataFrame(X, columns=list("abcde"))
        model = RankSVM().fit(frame, pd.Series(y), pd.Series(qid))
        assert model.feature_names_in_.tolist() == list("abcde")
        np.testing.assert_allclose(model.coef_, RankSVM().fit(X, y, qid).coef_, rtol=1e-9)

    def test_it_is_a_ranker(self):
        assert not sklearn.base.is_regressor(RankSVM())
        assert not sklearn.base.is_classifier(RankSVM())


class Interrupting(OCAS):
    """Sends SIGINT to the main thread, as Ctrl-C does, in its third step."""

    def step(self, problem, state):
        if state.iterations == 2:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return super().step(problem, state)


@pytest.mark.parametrize("data", ["graded", "wide_graded"])
class TestControl:
    def test_a_limit_warns_with_the_gap_and_the_remedy(self, request, data):
        X, y, qid = request.getfixturevalue(data)
        with pytest.warns() as caught:
            model = RankSVM(100.0, tol=1e-9, max_iter=3).fit(X, y, qid)
        [warning] = caught
        assert issubclass(warning.category, ConvergenceWarning)
        assert warning.filename == __file__
        assert f"relative duality gap is {model.certificate_.relative_gap:.2g} (tol=1e-09)" in str(warning.message)
        assert "raise max_iter (now 3)" in str(warning.message)
        assert model.status_ is Status.MAX_ITER
        again = certify(model, X, y, qid=qid)
        assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-12)
        assert again.dual == pytest.approx(model.certificate_.dual, rel=1e-9)

    @pytest.mark.parametrize("solver", ["ocas", "cpa"])
    def test_a_continued_fit_is_the_uninterrupted_one_bit_for_bit(self, request, data, solver):
        X, y, qid = request.getfixturevalue(data)
        setting = {"C": 10.0, "tol": 1e-5, "solver": solver}
        whole = RankSVM(**setting).fit(X, y, qid)
        model = RankSVM(**setting, max_iter=4, warm_start=True)
        for _ in range(200):
            model = pickle.loads(pickle.dumps(quiet(model, X, y, qid)))
            if model.status_ is Status.OPTIMAL:
                break
        assert_same_model(model, whole)
        assert model.n_iter_ == whole.n_iter_

    def test_after_a_time_limit_and_with_threads(self, request, data):
        X, y, qid = request.getfixturevalue(data)
        model = quiet(RankSVM(10.0, tol=1e-5, max_seconds=1e-9), X, y, qid)
        assert model.status_ is Status.MAX_SECONDS
        model.set_params(warm_start=True, max_seconds=None, n_jobs=2).fit(X, y, qid)
        assert_same_model(model, RankSVM(10.0, tol=1e-5).fit(X, y, qid))

    @pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="Ctrl-C cannot be sent to a thread here")
    def test_ctrl_c_keeps_the_best_so_far(self, request, data):
        X, y, qid = request.getfixturevalue(data)
        model = RankSVM(10.0, tol=1e-8, solver=Interrupting())
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y, qid)
        assert model.status_ is Status.INTERRUPTED
        assert model.predict(X).shape == y.shape
        model.set_params(warm_start=True, solver="ocas").fit(X, y, qid)
        assert_same_model(model, RankSVM(10.0, tol=1e-8).fit(X, y, qid))

    @pytest.mark.parametrize("change", ["C", "y", "qid", "weights", "mean", "X"])
    def test_warm_start_after_a_change(self, request, data, change, same_optimum):
        X, y, qid = request.getfixturevalue(data)
        weights = None
        model = RankSVM(tol=TOL, warm_start=True).fit(X, y, qid)
        if change == "C":
            model.set_params(C=3.0)
        elif change == "y":
            y = np.where(np.arange(len(y)) % 7, y, y + 5)
        elif change == "qid":
            qid = qid % 2
        elif change == "weights":
            weights = np.linspace(0.1, 3.0, len(y))
        elif change == "mean":
            model.set_params(pairs="sum")
        else:
            X = 1.3 * X[::-1]
        model.fit(X, y, qid, weights)
        assert model.certificate_.relative_gap <= TOL
        assert model.trace_["dual"].max() <= model.certificate_.primal * (1 + 1e-9)
        assert same_optimum(model.certificate_, clone(model).fit(X, y, qid, weights).certificate_)

    def test_certify_finds_a_bound_as_good_as_the_model_claims(self, request, data):
        X, y, qid = request.getfixturevalue(data)
        model = RankSVM(10.0).fit(X, y, qid)
        assert not hasattr(model, "_state")
        found = certify(model, X, y, qid=qid)
        assert found.primal == pytest.approx(model.certificate_.primal, rel=1e-12)
        assert found.dual == pytest.approx(model.certificate_.dual, rel=1e-12)
        shifted = clone(model).fit(X, y, qid)
        shifted.coef_ = 1.5 * shifted.coef_
        assert certify(shifted, X, y, qid=qid).relative_gap > 0.01


@pytest.mark.skipif(not hasattr(RankSVM, "set_callbacks"), reason="this scikit-learn has no callbacks")
def test_callbacks_see_queries_and_models(graded):
    X, y, qid = graded

    class Recorder:
        models, metadata = [], []

        def setup(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
            self.metadata.append(metadata)

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            self.models.append(fitted_estimator)

        def teardown(self, estimator, context): ...

    model = RankSVM().set_callbacks(Recorder()).fit(X, y, qid)
    assert len(Recorder.models) == model.n_iter_ + 1
    assert all(metadata.keys() == {"qid"} for metadata in Recorder.metadata)
    assert Recorder.models[-1].score(X, y, qid) == model.score(X, y, qid)
    assert_same_model(model, RankSVM().fit(X, y, qid))


class TestBadInput:
    @pytest.mark.parametrize("given", [True, False], ids=["queries given", "no queries"])
    @pytest.mark.parametrize("name", ["qid", "QID"])
    def test_a_column_of_queries_does_not_become_a_feature(self, graded, name, given):
        X, y, qid = graded
        frame = pd.DataFrame(X, columns=list("abcde")).assign(**{name: qid})
        with pytest.raises(SoftmarginError, match=f"X has a column '{name}'.*qid=X\\['{name}'\\]"):
            RankSVM().fit(frame, y, qid if given else None)

    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"C": 0}, "C=0 must be a positive"),
            ({"C": -1.0}, "C=-1.0 must be a positive"),
            ({"C": np.nan}, "C=nan must be"),
            ({"pairs": "all"}, "pairs='all' is unknown: choose one of 'mean', 'sum'"),
            ({"query_weight": "mean"}, "query_weight='mean' is unknown: choose one of 'pairs', 'equal'"),
            ({"solver": "pegasos"}, "solver='pegasos' is unknown: choose one of 'auto', 'ocas', 'cpa'"),
            ({"solver": SGD()}, "one at a time, for LinearSVC"),
            ({"solver": OCAS}, "neither a name"),
            ({"tol": -1}, "tol=-1 must be"),
            ({"max_iter": 0}, "max_iter=0 must be"),
            ({"n_jobs": 0}, "n_jobs"),
        ],
        ids=str,
    )
    def test_parameters(self, graded, params, message):
        with pytest.raises(SoftmarginError, match=message):
            RankSVM(**params).fit(*graded)

    def test_all_targets_equal(self, graded):
        X, y, qid = graded
        with pytest.raises(SoftmarginError, match="all y are 3: there is no pair"):
            RankSVM().fit(X, np.full(len(y), 3), qid)

    def test_no_pair_in_any_query(self, graded):
        X, y, qid = graded
        with pytest.raises(SoftmarginError, match=r"no pair of rows with different y in any query.*check that qid"):
            RankSVM().fit(X, y, np.arange(len(y)))
        with pytest.raises(SoftmarginError, match="no pair of rows with different y in any query"):
            RankSVM().fit(X, qid, qid)

    def test_one_row(self):
        with pytest.raises(SoftmarginError, match="one sample only"):
            RankSVM().fit(np.ones((1, 3)), [1.0])

    def test_qid_of_another_length(self, graded):
        X, y, qid = graded
        with pytest.raises(SoftmarginError, match=r"qid has 119 entries, but y has 120"):
            RankSVM().fit(X, y, qid[1:])

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_targets_that_are_no_numbers(self, graded, bad):
        X, y, qid = graded
        with pytest.raises(ValueError, match=r"y contains|y holds"):
            RankSVM().fit(X, np.where(y == y[0], bad, y), qid)
        with pytest.raises(
            SoftmarginError, match=r"y holds entries that are not numbers, such as '(high|low)': give numbers"
        ):
            RankSVM().fit(X, np.where(y > 10, "high", "low"), qid)

    def test_weights(self, graded):
        X, y, qid = graded
        with pytest.raises(SoftmarginError, match="sample_weight holds negative values"):
            RankSVM().fit(X, y, qid, -np.ones(len(y)))
        with pytest.raises(SoftmarginError, match="no pair of rows with different y in any query, both of weight"):
            RankSVM().fit(X, y, qid, np.arange(len(y)) == 3)
        with pytest.raises(SoftmarginError, match="overflows"):
            RankSVM(pairs="sum").fit(X, y, qid, np.full(len(y), 1e160))

    def test_qid_for_a_model_without_queries(self, graded):
        X, _, qid = graded
        with pytest.raises(SoftmarginError, match="qid is for a RankSVM"):
            certify(LinearSVC().fit(X, qid), X, qid, qid=qid)

    def test_an_error_leaves_an_earlier_fit_as_it_was(self, graded):
        X, y, qid = graded
        model = RankSVM().fit(X, y, qid)
        before = model.coef_
        with pytest.raises(SoftmarginError):
            model.fit(X, np.zeros(len(y)), qid)
        assert model.coef_ is before
