"""partial_fit, forget and leave_one_out of SVC and SVR: the same model as a fit on the rows that are there."""

import copy
import itertools
import pickle
import signal
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import StandardScaler

from softmargin import SVC, SVR, ActiveSet, ConvergenceWarning, SoftmarginError, Status, certify, load
from softmargin.core.threads import Workers
from softmargin.io.model_file import read_model, write_model

KERNELS = {
    "rbf": {"kernel": "rbf", "gamma": 0.1},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "gamma": 0.1, "coef0": 1.0, "degree": 2},
    "laplacian": {"kernel": "laplacian", "gamma": 0.1},
    "function": {"kernel": lambda A, B: np.exp(-0.1 * ((A[:, None] - B[None]) ** 2).sum(axis=2))},
}


@dataclass(frozen=True)
class Kind:
    """An estimator with data: what is said of both kinds is tested with both."""

    make: Any
    X: np.ndarray
    y: np.ndarray

    @property
    def data(self):
        return self.X, self.y


@pytest.fixture(params=["SVC", "SVR"])
def kind(request, binary):
    X, y = binary
    if request.param == "SVC":
        return Kind(SVC, X, y)
    rng = np.random.default_rng(5)
    return Kind(partial(SVR, epsilon=0.2), X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.4 * rng.standard_normal(len(y)))


def scores(model, X):
    return model.predict(X) if isinstance(model, SVR) else model.decision_function(X)


def in_batches(model, X, y, size, weights=None, first=40):
    """Learn `first` rows, then the others in batches."""
    cuts = [0, *range(first, len(y), size), len(y)]
    for lo, hi in itertools.pairwise(cuts):
        model.partial_fit(X[lo:hi], y[lo:hi], sample_weight=None if weights is None else weights[lo:hi])
    return model


def full_fit(model, X, y, weights=None):
    """A fit with what the first call has frozen."""
    settings = {"solver": "active_set"}
    if isinstance(model, SVC):
        settings["class_weight"] = dict(zip(model.classes_, model.class_weight_, strict=True))
    if model.kernel not in ("linear", "precomputed") and not callable(model.kernel):
        settings["gamma"] = model.gamma_
    return clone(model).set_params(**settings).fit(X, y, weights)


def check_same(model, X, y, weights=None, same_sets=True, same_scores=True):
    """The model against a full fit on these rows, and against the judge."""
    reference = full_fit(model, X, y, weights)
    assert model.status_ is Status.OPTIMAL
    for found, expected in zip(model.certificates_, reference.certificates_, strict=True):
        assert found.primal == pytest.approx(expected.primal, rel=1e-8)
        assert found.dual == pytest.approx(expected.dual, rel=1e-8)
        assert found.kkt_violation <= 1e-5
    judged = certify(model, X, y, sample_weight=weights) if not callable(model.kernel) else model.certificate_
    assert judged.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    if same_sets:
        np.testing.assert_array_equal(model.n_free_, reference.n_free_)
        np.testing.assert_array_equal(model.n_bounded_, reference.n_bounded_)
    if same_scores:  # where the intercept is unique
        np.testing.assert_allclose(scores(model, X), scores(reference, X), atol=1e-6)
    assert model.shape_fit_ == X.shape
    return reference


class TestPartialFit:
    @pytest.mark.parametrize("size", [1, 7, 1000])
    def test_batches_of_any_size(self, kind, size):
        X, y = kind.data
        model = in_batches(kind.make(2.0, gamma=0.1), X, y, size)
        check_same(model, X, y)
        np.testing.assert_array_equal(model.row_ids_, np.arange(len(y)))

    @pytest.mark.parametrize("kernel", KERNELS)
    @pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
    def test_kernels_and_storages(self, kind, kernel, storage):
        X, y = kind.data
        if kernel == "function" and storage is not np.asarray:
            pytest.skip("the function is one of arrays")
        X = storage(X)
        model = in_batches(kind.make(2.0, **KERNELS[kernel]), X, y, 25, first=100)
        check_same(model, X, y)
        assert sp.issparse(model.support_vectors_) == sp.issparse(X)

    def test_mostly_zeros_are_sparse_inside_and_dense_outside(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((150, 80)) * (rng.random((150, 80)) < 0.1)
        y = (X.sum(axis=1) + 0.5 * rng.standard_normal(150) > 0).astype(int)
        model = in_batches(SVC(2.0, gamma=0.1), X, y, 9)
        check_same(model, X, y)
        assert isinstance(model.support_vectors_, np.ndarray)

    def test_storages_may_alternate_and_types_widen(self, kind):
        X, y = kind.data
        model = kind.make(2.0, gamma=0.1).partial_fit(X[:50].astype(np.float32), y[:50])
        model.partial_fit(sp.csr_matrix(X[50:120]), y[50:120]).partial_fit(X[120:], y[120:])
        together = np.concatenate([X[:50].astype(np.float32), X[50:]])
        check_same(model, together, y)

    def test_weights(self, binary):
        X, y = binary
        weights = 0.5 * (np.arange(len(y)) % 4)
        for size in (1, 30):
            model = in_batches(SVC(3.0, gamma=0.1, class_weight="balanced"), X, y, size, weights, first=60)
            check_same(model, X, y, weights)

    def test_what_is_taken_from_the_data_is_frozen(self, binary):
        X, y = binary
        X = X * np.linspace(0.5, 4.0, len(y))[:, None]
        model = in_batches(SVC(class_weight="balanced"), X, y, 50)
        first = SVC(class_weight="balanced").fit(X[:40], y[:40])
        assert model.gamma_ == first.gamma_
        np.testing.assert_array_equal(model.class_weight_, first.class_weight_)
        check_same(model, X, y)

    def test_many_classes(self):
        X, y = load_iris(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order], y[order]
        model = in_batches(SVC(5.0, gamma=0.5), X, y, 10, first=30)
        check_same(model, X, y)
        before = model.certificates_
        model.partial_fit(X[y == 1][:1] + 2.0, [1])
        after = model.certificates_
        assert after[1] is before[1]  # classes 0 and 2 have nothing to do with it
        assert after[0] is not before[0]
        assert after[2] is not before[2]

    def test_duplicates_of_both_labels(self, kind):
        X, y = kind.data
        X, y = np.repeat(X[:60], 3, axis=0), np.repeat(y[:60], 3)
        y[::9] = 1 - y[::9]
        model = in_batches(kind.make(5.0, gamma=0.1), X, y, 4)
        check_same(model, X, y, same_sets=False)

    def test_threads(self, kind):
        X, y = kind.data
        models = [in_batches(kind.make(2.0, gamma=0.1, n_jobs=n), X, y, 13) for n in (1, 2)]
        np.testing.assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)
        assert models[0].certificate_ == models[1].certificate_

    def test_a_tiny_cache(self, kind):
        X, y = kind.data
        model = in_batches(kind.make(2.0, gamma=0.1, cache_bytes=20_000), X, y, 13)
        check_same(model, X, y)

    def test_pivots_are_a_fraction_of_those_of_a_fit(self):
        X, y = load_breast_cancer(return_X_y=True)
        X = StandardScaler().fit_transform(X)
        cold = ActiveSet(start="cold")
        model = SVC(10.0, gamma=0.02, solver=cold).fit(X[:-40], y[:-40])
        pivots, evaluations = [], []
        for k in range(len(y) - 40, len(y)):
            model.partial_fit(X[k : k + 1], y[k : k + 1])
            pivots.append(model.counts_["iterations"])
            evaluations.append(model.counts_["kernel_evaluations"])
        check_same(model, X, y)
        whole = SVC(10.0, gamma=0.02, solver=cold).fit(X, y)
        assert max(pivots) < 0.5 * whole.counts_["iterations"]
        assert np.median(pivots) == 0
        assert np.median(evaluations) <= len(y)

    @pytest.mark.parametrize("settings", [{"solver": "active_set"}, {"warm_start": True, "solver": "smo", "tol": 1e-2}])
    def test_after_a_fit(self, kind, settings):
        X, y = kind.data
        model = kind.make(2.0, gamma=0.1, **settings).fit(X[:150], y[:150])
        model.partial_fit(X[150:], y[150:])
        check_same(model, X, y)

    def test_a_first_batch_may_be_reused_by_the_caller(self, kind):
        X, y = kind.data
        batch, labels = X[:100].copy(), y[:100].copy()
        model = kind.make(2.0, gamma=0.1).partial_fit(batch, labels)
        batch[:], labels[:] = X[100:], y[100:]
        model.partial_fit(batch, labels)
        batch[:], labels[:] = 0.0, 0
        check_same(
            model.partial_fit(X[:1], y[:1], sample_weight=[0.0]),
            np.vstack([X, X[:1]]),
            np.append(y, y[0]),
            np.append(np.ones(200), 0.0),
        )

    def test_other_limits(self, kind):
        X, y = kind.data
        model = kind.make(2.0, gamma=0.1).partial_fit(X[:100], y[:100])
        model.set_params(C=0.5).partial_fit(X[100:150], y[100:150])
        check_same(model, X[:150], y[:150])
        model.set_params(C=4.0, n_jobs=2, kernel="linear").partial_fit(X[150:], y[150:])
        check_same(model, X, y)

    def test_an_iteration_limit_is_told_and_made_up_for(self, kind):
        X, y = kind.data
        model = kind.make(20.0, gamma=0.1, solver=ActiveSet(slice_pivots=1, candidates=2)).fit(X[:100], y[:100])
        model.set_params(max_iter=1)
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            model.partial_fit(X[100:], y[100:])
        assert model.status_ is Status.MAX_ITER
        model.set_params(max_iter=None).partial_fit(X[:1], y[:1])
        check_same(model, np.vstack([X, X[:1]]), np.append(y, y[0]))


class TestNumbers:
    """What is said of regression only."""

    @pytest.fixture
    def numbers(self):
        X, y = load_diabetes(return_X_y=True)
        return X / X.std(axis=0), y

    @pytest.mark.parametrize("epsilon", [0.0, 5.0, 40.0, 300.0])
    @pytest.mark.parametrize("C", [1.0, 100.0])
    def test_tubes_of_any_width(self, numbers, epsilon, C):
        X, y = numbers
        model = in_batches(SVR(C, epsilon=epsilon, gamma=0.05), X[:200], y[:200], 37)
        check_same(model, X[:200], y[:200])

    @pytest.mark.parametrize("weights", [0.5 * (np.arange(250) % 4), np.linspace(0.1, 3.0, 250)], ids=["zeros", "many"])
    def test_weights(self, numbers, weights):
        X, y = numbers
        X, y = X[:250], y[:250]
        model = in_batches(SVR(30.0, epsilon=5.0, gamma=0.05), X, y, 19, weights, first=100)
        check_same(model, X, y, weights)
        keep = np.delete(np.arange(250), [0, 3, 77, 249])
        check_same(model.forget([0, 3, 77, 249]), X[keep], y[keep], weights[keep])

    def test_variables_at_their_bounds_are_found_there_again(self, numbers):
        """The coefficients of a model are rounded so that their sum is zero; each of them took a pivot."""
        X, y = numbers
        weights = np.linspace(0.1, 3.0, 400)
        model = SVR(0.3, epsilon=1.0, gamma=0.05, solver="active_set").fit(X[:400], y[:400], weights)
        assert model.n_bounded_[0] > 300
        model.partial_fit(X[400:401], y[400:401])
        assert model.counts_["iterations"] < 30

    def test_gamma_is_frozen(self, numbers):
        X, y = numbers
        X = X * np.linspace(0.5, 4.0, len(y))[:, None]
        model = in_batches(SVR(10.0), X[:150], y[:150], 50)
        assert model.gamma_ == SVR(10.0).fit(X[:40], y[:40]).gamma_
        check_same(model, X[:150], y[:150])

    def test_pivots_are_a_fraction_of_those_of_a_fit(self, numbers):
        X, y = numbers
        cold = ActiveSet(start="cold")
        model = SVR(100.0, epsilon=40.0, gamma=0.02, solver=cold).fit(X[:-30], y[:-30])
        pivots, evaluations = [], []
        for k in range(len(y) - 30, len(y)):
            model.partial_fit(X[k : k + 1], y[k : k + 1])
            pivots.append(model.counts_["iterations"])
            evaluations.append(model.counts_["kernel_evaluations"])
        reference = check_same(model, X, y)
        whole = clone(reference).set_params(solver=cold).fit(X, y)
        assert max(pivots) < 0.2 * whole.counts_["iterations"]
        assert np.median(evaluations) < 10 * len(y)

    def test_another_epsilon(self, numbers):
        X, y = numbers
        model = SVR(10.0, epsilon=5.0, gamma=0.05).partial_fit(X[:100], y[:100])
        model.set_params(epsilon=30.0).partial_fit(X[100:150], y[100:150])
        check_same(model, X[:150], y[:150])
        model.set_params(epsilon=0.0).forget([0, 1])
        check_same(model, X[2:150], y[2:150])

    @pytest.mark.parametrize("far", [1e3, 1e8])
    def test_the_tolerance_follows_the_range_of_the_targets(self, numbers, far):
        """Rows with far targets come and go; afterwards the others are solved as exactly as without them."""
        X, y = numbers
        X, y = X[:120], y[:120]
        model = SVR(5.0, epsilon=5.0, gamma=0.05).partial_fit(X, y)
        model.partial_fit(X[:2] + 1.0, [far, -far]).forget([120, 121])
        check_same(model, X, y)
        model = SVR(5.0, epsilon=5.0, gamma=0.05).partial_fit(X[:2] + 1.0, [far, -far]).partial_fit(X, y)
        check_same(model.forget([0, 1]), X, y)

    @pytest.mark.parametrize("one_by_one", [True, False])
    @pytest.mark.parametrize("n_left", [1, 2])
    def test_everything_but_few_rows_is_forgotten(self, numbers, one_by_one, n_left):
        """A single row needs no support vector: what rounding left of one ended in a warning."""
        X, y = numbers
        model = SVR(2.0, gamma=0.1, solver="active_set").fit(X[:40], y[:40])
        gone = np.delete(model.row_ids_, [7, 30][:n_left])
        for part in gone[:, None] if one_by_one else [gone]:
            model.forget(part)
        keep = [7, 30][:n_left]
        check_same(model, X[keep], y[keep])
        assert model.support_.size == (0 if n_left == 1 else 2)
        model.partial_fit(X[50:80], y[50:80])
        keep = [*keep, *range(50, 80)]
        check_same(model, X[keep], y[keep])

    def test_the_last_row_stays(self, numbers):
        X, y = numbers
        model = SVR(2.0, gamma=0.1).partial_fit(X[:3], y[:3], sample_weight=[1.0, 0.0, 1.0])
        before = pickle.dumps(model)
        for rows in ([0, 1, 2], [0, 2]):
            with pytest.raises(SoftmarginError, match="no row with a weight would be left"):
                model.forget(rows)
        assert pickle.dumps(model) == before
        model.forget([2])
        with pytest.raises(SoftmarginError, match="at least two rows"):
            model.leave_one_out()

    def test_targets_that_cannot_be(self, numbers):
        X, y = numbers
        model = SVR(2.0, gamma=0.1).partial_fit(X[:50], y[:50])
        before = pickle.dumps(model)
        with pytest.raises(SoftmarginError, match="too large"):
            model.partial_fit(X[:1], [1e200])
        with pytest.raises(ValueError, match="NaN"):
            model.partial_fit(X[:1], [np.nan])
        with pytest.raises(ValueError, match="X has 3 features, but SVR is expecting 10 features"):
            model.partial_fit(X[:1, :3], y[:1])
        with pytest.raises(SoftmarginError, match="negative"):
            model.partial_fit(X[:1], y[:1], sample_weight=[-1.0])
        assert pickle.dumps(model) == before
        model.set_params(epsilon=1e200)
        with pytest.raises(SoftmarginError, match="too large"):
            model.forget([0])
        model.set_params(epsilon=-1.0)
        with pytest.raises(SoftmarginError, match="epsilon=-1"):
            model.forget([0])


class TestClasses:
    def test_one_class_at_first(self, binary):
        X, y = binary
        model = SVC(2.0, gamma=0.1).partial_fit(X[y == 1][:5], np.ones(5, int), classes=[0, 1])
        np.testing.assert_array_equal(model.predict(X), 1)
        model.partial_fit(X[y == 1][5:], y[y == 1][5:])
        assert model.status_ is Status.OPTIMAL
        np.testing.assert_array_equal(model.predict(X), 1)
        model.partial_fit(X[y == 0], y[y == 0])
        together = np.vstack([X[y == 1], X[y == 0]])
        check_same(model, together, np.repeat([1, 0], [np.sum(y == 1), np.sum(y == 0)]))

    def test_classes_come_one_after_the_other(self):
        X, y = load_iris(return_X_y=True)
        model = SVC(5.0, gamma=0.5)
        for c in (2, 0, 1):
            model.partial_fit(X[y == c], y[y == c], classes=[2, 1, 0])
            seen = np.unique(model.predict(X))
            assert c in seen
        order = np.concatenate([np.flatnonzero(y == c) for c in (2, 0, 1)])
        check_same(model, X[order], y[order])

    def test_words(self, binary):
        X, y = binary
        words = np.array(["no", "yes"])[y]
        model = SVC(2.0, gamma=0.1).partial_fit(X[:100], words[:100]).partial_fit(X[100:], words[100:])
        assert set(model.predict(X)) == {"no", "yes"}


class TestForget:
    def test_goes_back_to_the_earlier_optimum(self, kind):
        X, y = kind.data
        model = kind.make(2.0, gamma=0.1).partial_fit(X[:150], y[:150])
        before = model.certificate_
        model.partial_fit(X[150:], y[150:])
        model.forget(model.row_ids_[150:])
        check_same(model, X[:150], y[:150])
        assert model.certificate_.primal == pytest.approx(before.primal, rel=1e-9)

    @pytest.mark.parametrize("kernel", ["rbf", "linear"])
    @pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
    def test_free_bounded_and_other_rows(self, kind, kernel, storage):
        X, y = kind.data
        X = storage(X)
        model = kind.make(2.0, solver="active_set", **KERNELS[kernel]).fit(X, y)
        alpha = np.zeros(len(y))
        alpha[model.support_] = np.abs(model.dual_coef_[0])
        for kind in (alpha == 2.0, (alpha > 0) & (alpha < 2.0), alpha == 0):
            gone = np.flatnonzero(kind)[:3]
            assert gone.size == 3
            found = copy.deepcopy(model).forget(gone)
            keep = np.delete(np.arange(len(y)), gone)
            check_same(found, X[keep], y[keep])
            np.testing.assert_array_equal(found.row_ids_, keep)

    def test_many_classes_and_weights(self):
        X, y = load_iris(return_X_y=True)
        weights = 0.5 * (np.arange(len(y)) % 4)
        model = SVC(5.0, gamma=0.5, solver="active_set").fit(X, y, weights)
        keep = np.arange(len(y))
        for part in (model.support_[:4], np.array([0, 4, 149]), np.array([75])):
            gone = np.intersect1d(part, keep)
            model.forget(gone)
            keep = np.setdiff1d(keep, gone)
            check_same(model, X[keep], y[keep], weights[keep])

    @pytest.mark.parametrize("one_by_one", [True, False])
    def test_everything_but_two_rows(self, binary, one_by_one):
        X, y = binary
        X, y = X[:60], y[:60]
        keep = np.sort([np.flatnonzero(y == 0)[3], np.flatnonzero(y == 1)[2]])
        model = SVC(2.0, gamma=0.1, solver="active_set").fit(X, y)
        gone = np.delete(model.row_ids_, keep)
        for part in gone[:, None] if one_by_one else [gone]:
            model.forget(part)
        check_same(model, X[keep], y[keep])
        np.testing.assert_array_equal(model.row_ids_, keep)

    def test_ids_are_never_given_twice(self, kind):
        X, y = kind.data
        model = kind.make(2.0, gamma=0.1, solver="active_set").fit(X[:50], y[:50])
        model.forget([49, 3]).partial_fit(X[50:52], y[50:52])
        assert model.row_ids_.tolist() == [*range(3), *range(4, 49), 50, 51]
        assert model.forget([]) is model

    def test_nothing_of_the_row_is_left(self, kind):
        X, y = kind.data
        X = X.copy()
        X[0, 0] = X[7, 0] = marked = 123.4567890123
        for storage in (np.asarray, sp.csr_array):
            model = in_batches(kind.make(2.0, gamma=1e-3), storage(X), y, 50)
            assert holds(model, marked)
            model.forget([0, 7])
            assert not holds(model, marked)

    def test_few_rows_of_a_set(self, kind):
        X, y = kind.data
        model = kind.make(5.0, gamma=0.1, solver="active_set").fit(X, y)
        model.forget(model.support_[0])
        assert model.counts_["iterations"] < 60


def holds(model, value):
    """Whether an array with data has this value, as given or made ready for a kernel."""
    fit = model._incremental[1]
    seen, todo, found = set(), [model._training, model.support_vectors_, fit.training, fit._rows, fit._matrix], False
    factor = fit._matrix.side.factor
    while todo:
        part = todo.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, np.ndarray):
            memory = part if part.base is None or not isinstance(part.base, np.ndarray) else part.base
            numbers = memory[np.isfinite(memory)] if memory.dtype.kind == "f" else np.empty(0)
            found |= bool(np.isclose(numbers, value, rtol=1e-9).any())
            found |= fit._matrix.side.is_sparse and bool(np.isclose(numbers, factor * value, rtol=1e-9).any())
        elif isinstance(part, dict):
            todo.extend(part.values())
        elif isinstance(part, list | tuple):
            todo.extend(part)
        elif hasattr(part, "__dict__") and not callable(part):
            todo.extend(vars(part).values())
    return found


class TestLeaveOneOut:
    @pytest.mark.parametrize("C", [0.5, 50.0])
    @pytest.mark.parametrize("kernel", ["rbf", "linear"])
    def test_is_what_refitting_gives(self, C, kernel):
        X, y = load_breast_cancer(return_X_y=True)
        X, y = StandardScaler().fit_transform(X)[:120], y[:120]
        model = SVC(C, kernel=kernel, gamma=0.05, solver="active_set").fit(X, y)
        before = pickle.dumps(model)
        values = model.leave_one_out()
        np.testing.assert_allclose(values, refitted(model, X, y), atol=1e-6)
        assert pickle.dumps(model) == before
        np.testing.assert_allclose(model.leave_one_out(), values, atol=1e-10)

    @pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 20.0])
    @pytest.mark.parametrize("C", [1e-3, 0.5, 50.0])
    def test_of_numbers_is_what_refitting_gives(self, C, epsilon):
        """Also where no variable is free, so that the intercept is the middle of an interval."""
        rng = np.random.default_rng(1)
        X = rng.standard_normal((50, 3))
        y = X[:, 0] + 0.3 * rng.standard_normal(50)
        for kernel in ("rbf", "linear"):
            model = SVR(C, epsilon=epsilon, kernel=kernel, gamma=0.5, solver="active_set").fit(X, y)
            before = pickle.dumps(model)
            values = model.leave_one_out()
            np.testing.assert_allclose(values, refitted(model, X, y), atol=1e-6)
            assert pickle.dumps(model) == before

    @pytest.mark.parametrize("shape", ["ovr", "ovo"])
    def test_many_classes(self, shape):
        X, y = load_iris(return_X_y=True)
        X, y = X[::2], y[::2]
        model = SVC(5.0, gamma=0.5, solver="active_set", decision_function_shape=shape).fit(X, y)
        values = model.leave_one_out()
        assert values.shape == (75, 3)
        np.testing.assert_allclose(values, refitted(model, X, y), atol=1e-6)

    def test_weights_and_duplicates(self, kind):
        X, y = kind.data
        X, y = np.repeat(X[:25], 2, axis=0), np.repeat(y[:25], 2)
        y[::10] = 1 - y[::10]
        weights = 0.5 * (np.arange(len(y)) % 4)
        model = kind.make(2.0, gamma=0.1, solver="active_set").fit(X, y, weights)
        np.testing.assert_allclose(model.leave_one_out(), refitted(model, X, y, weights), atol=1e-6)

    def test_a_kernel_matrix(self, kind):
        X, y = kind.data
        X, y = X[:60], y[:60]
        direct = kind.make(2.0, kernel="linear", solver="active_set").fit(X, y)
        model = kind.make(2.0, kernel="precomputed", solver="active_set").fit(X @ X.T, y)
        np.testing.assert_allclose(model.leave_one_out(), direct.leave_one_out(), atol=1e-6)

    def test_the_only_row_of_its_class(self, binary):
        X, y = binary
        keep = np.append(np.flatnonzero(y == 0)[:20], np.flatnonzero(y == 1)[0])
        model = SVC(2.0, gamma=0.1, solver="active_set").fit(X[keep], y[keep])
        assert model.leave_one_out()[-1] == -1.0

    def test_after_learning_and_before_it(self, kind):
        X, y = kind.data
        model = kind.make(2.0, gamma=0.1).partial_fit(X[:40], y[:40]).partial_fit(X[40:60], y[40:60])
        expected = refitted(model, X[:60], y[:60])
        np.testing.assert_allclose(model.leave_one_out(), expected, atol=1e-6)
        model.partial_fit(X[60:], y[60:])
        check_same(model, X, y)

    def test_an_interrupt(self, kind, monkeypatch):
        X, y = kind.data
        model = kind.make(2.0, gamma=0.1, solver="active_set").fit(X, y)
        expected = model.leave_one_out()
        with ctrl_c(monkeypatch, 30), pytest.raises(KeyboardInterrupt):
            model.leave_one_out()
        np.testing.assert_allclose(model.leave_one_out(), expected, atol=1e-6)


def refitted(model, X, y, weights=None):
    values = []
    for i in range(len(y)):
        keep = np.delete(np.arange(len(y)), i)
        part = full_fit(model, X[keep], y[keep], None if weights is None else weights[keep])
        values.append(scores(part, X[i : i + 1])[0])
    return np.array(values)


class ctrl_c:
    """Inside, the k-th check between blocks of work is an interrupt."""

    def __init__(self, monkeypatch, k):
        self._monkeypatch, self._left = monkeypatch, k

    def __enter__(self):
        usual = Workers.check

        def check(workers):
            self._left -= 1
            if self._left == 0:
                signal.raise_signal(signal.SIGINT)
            usual(workers)

        self._context = self._monkeypatch.context()
        self._context.__enter__().setattr(Workers, "check", check)

    def __exit__(self, *error):
        self._context.__exit__(*error)


class TestInterrupts:
    @pytest.mark.parametrize("k", [2, 5, 12, 25])
    def test_of_partial_fit_leave_a_valid_model(self, kind, monkeypatch, k):
        X, y = kind.data
        slow = ActiveSet(slice_pivots=2, candidates=2)
        model = kind.make(20.0, gamma=0.1, solver=slow).fit(X[:80], y[:80])
        with ctrl_c(monkeypatch, k), pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[80:], y[80:])
        n = model.row_ids_.size
        assert n in (80, len(y))
        judged = certify(model, X[:n], y[:n])
        assert judged.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
        assert (model.status_ is Status.INTERRUPTED) == (n == len(y))
        model.partial_fit(X[n:], y[n:]) if n < len(y) else model.partial_fit(X[:1], y[:1], sample_weight=[0.0])
        assert model.status_ is Status.OPTIMAL

    def test_of_forget_leave_a_valid_model(self, kind, monkeypatch):
        X, y = kind.data
        for k in (1, 8, 30):
            model = kind.make(20.0, gamma=0.1, solver=ActiveSet(slice_pivots=2, candidates=2)).fit(X, y)
            with ctrl_c(monkeypatch, k), pytest.raises(KeyboardInterrupt):
                model.forget(np.arange(60))
            ids = model.row_ids_
            assert ids.size in (len(y), len(y) - 60)
            judged = certify(model, X[ids], y[ids])
            assert judged.primal == pytest.approx(model.certificate_.primal, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_random_histories(seed):
    """Rows come and go, in batches of any size, with weights, ties and duplicates; now and then it is compared."""
    rng = np.random.default_rng(seed)
    n_classes = 2 + seed % 2
    X = rng.integers(-3, 4, (160, 4)).astype(float) if seed < 2 else rng.standard_normal((160, 4))
    y = (X @ rng.standard_normal((4, n_classes)) + rng.standard_normal((160, n_classes))).argmax(axis=1)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], 160)
    kernel = [{"gamma": 0.2}, {"kernel": "linear"}, {"kernel": "poly", "gamma": 0.2, "coef0": 1.0}][seed % 3]
    model = SVC(float(rng.choice([0.3, 3.0, 30.0])), **kernel)
    model.partial_fit(
        X[:20], y[:20], classes=np.arange(n_classes), sample_weight=np.where(weights[:20], weights[:20], 1)
    )
    weights[:20] = np.where(weights[:20], weights[:20], 1)
    there, at = list(range(20)), 20
    for step in range(24):
        if rng.random() < 0.5 and at < 160:
            size = min(int(rng.choice([1, 1, 4, 20])), 160 - at)
            model.partial_fit(X[at : at + size], y[at : at + size], sample_weight=weights[at : at + size])
            there.extend(range(at, at + size))
            at += size
        else:
            gone = rng.choice(there, int(rng.choice([1, 1, 5])), replace=False)
            left = np.setdiff1d(there, gone)
            if all((weights[left][y[left] == c] > 0).any() for c in range(n_classes)):
                model.forget(gone)
                there = left.tolist()
        assert model.row_ids_.tolist() == there
        if step % 8 == 7:
            model = [model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))][step // 8]
            check_same(model, X[there], y[there], weights[there], same_sets=False)


@pytest.mark.parametrize("seed", range(6))
def test_random_histories_of_numbers(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (160, 4)).astype(float) if seed < 2 else rng.standard_normal((160, 4))
    y = X @ rng.standard_normal(4) + rng.standard_normal(160)
    y = np.round(y) if seed % 2 else y
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], 160)
    weights[:20] = np.maximum(weights[:20], 0.5)
    kernel = [{"gamma": 0.2}, {"kernel": "linear"}, {"kernel": "poly", "gamma": 0.2, "coef0": 1.0}][seed % 3]
    model = SVR(float(rng.choice([0.3, 3.0, 30.0])), epsilon=float(rng.choice([0.0, 0.5, 2.0])), **kernel)
    model.partial_fit(X[:20], y[:20], sample_weight=weights[:20])
    there, at = list(range(20)), 20
    for step in range(24):
        if rng.random() < 0.5 and at < 160:
            size = min(int(rng.choice([1, 1, 4, 20])), 160 - at)
            model.partial_fit(X[at : at + size], y[at : at + size], sample_weight=weights[at : at + size])
            there.extend(range(at, at + size))
            at += size
        else:
            gone = rng.choice(there, min(int(rng.choice([1, 1, 5])), len(there) - 1), replace=False)
            left = np.setdiff1d(there, gone)
            if weights[left].any():
                model.forget(gone)
                there = left.tolist()
        assert model.row_ids_.tolist() == there
        if step % 8 == 7:
            model = [model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))][step // 8]
            check_same(model, X[there], y[there], weights[there], same_sets=False, same_scores=False)


def through_a_file(record, path):
    write_model(path, record)
    return load(path)


class TestKeeping:
    def test_learning_goes_on_after_save_and_load(self, kind, tmp_path):
        X, y = kind.data
        for storage in (np.asarray, sp.csr_matrix):
            model = in_batches(kind.make(2.0), storage(X[:120]), y[:120], 40).forget([3, 50])
            model.save(tmp_path / "m", include_training_state=True)
            found = load(tmp_path / "m")
            np.testing.assert_array_equal(found.row_ids_, model.row_ids_)
            found.partial_fit(storage(X[120:]), y[120:])
            keep = np.delete(np.arange(len(y)), [3, 50])
            check_same(found, X[keep], y[keep])
            assert found.row_ids_[-1] == len(y) - 1

    def test_many_classes_after_save_and_load(self, tmp_path):
        X, y = load_iris(return_X_y=True)
        model = SVC(5.0, solver="active_set").fit(X[::2], y[::2])
        model.save(tmp_path / "m", include_training_state=True)
        found = load(tmp_path / "m").partial_fit(X[1::2], y[1::2])
        check_same(found, np.vstack([X[::2], X[1::2]]), np.append(y[::2], y[1::2]))

    def test_without_its_rows_a_loaded_model_says_so(self, kind, tmp_path):
        X, y = kind.data
        kind.make(solver="active_set").fit(X, y).save(tmp_path / "m")
        found = load(tmp_path / "m")
        with pytest.raises(AttributeError) as error:
            found.partial_fit(X, y)
        assert "include_training_state" in str(error.value.__cause__)

    def test_damaged_rows_are_refused(self, binary, tmp_path):
        X, y = binary
        SVC(solver="active_set").fit(X, y).save(tmp_path / "m", include_training_state=True)
        record = read_model(tmp_path / "m")
        for name, array in {
            "training.codes": np.full(len(y), 2),
            "training.ids": np.zeros(len(y), dtype=np.int64),
            "training.weights": np.full(len(y), np.nan),
        }.items():
            write_model(tmp_path / "bad", replace(record, arrays=record.arrays | {name: array}))
            with pytest.raises(SoftmarginError, match="bad: "):
                load(tmp_path / "bad")
        self.check_incomplete(record, tmp_path)

    def test_damaged_rows_with_numbers_are_refused(self, binary, tmp_path):
        X, y = binary
        SVR(solver="active_set").fit(X, y).save(tmp_path / "m", include_training_state=True)
        record = read_model(tmp_path / "m")
        for name, array in {
            "training.y": np.full(len(y), np.nan),
            "training.y ": np.full(len(y), 1e200),
            "training.y  ": np.zeros(len(y) - 1),
            "training.ids": np.zeros(len(y), dtype=np.int64),
            "training.ids ": np.arange(1, len(y) + 1),
            "training.weights": np.full(len(y), -1.0),
            "training.weights ": np.zeros(len(y)),
            "training.codes": np.zeros(len(y), dtype=np.int64),
        }.items():
            damaged = replace(record, arrays=record.arrays | {name.strip(): array})
            with pytest.raises(SoftmarginError):  # by what writes it, or by what reads it
                through_a_file(damaged, tmp_path / "bad")
        self.check_incomplete(record, tmp_path)

    def check_incomplete(self, record, tmp_path):
        arrays = {name: array for name, array in record.arrays.items() if name != "training.X"}
        write_model(tmp_path / "bad", replace(record, arrays=arrays))
        with pytest.raises(SoftmarginError, match="not complete"):
            load(tmp_path / "bad")

    def test_kept_rows_that_overflow_are_refused(self, kind, tmp_path):
        """Forgetting one of them did not end."""
        X, y = kind.data
        kind.make(solver="active_set").fit(X, y).save(tmp_path / "m", include_training_state=True)
        record = read_model(tmp_path / "m")
        rows = record.arrays["training.X"].copy()
        rows[7, 1] = -1e308
        write_model(tmp_path / "m", replace(record, arrays=record.arrays | {"training.X": rows}))
        for change in (lambda model: model.forget([0, 1]), lambda model: model.partial_fit(X[:3], y[:3])):
            with pytest.raises(SoftmarginError, match="overflow on these rows"):
                change(load(tmp_path / "m"))

    def test_a_pickle_has_nothing_that_is_kept_ready(self, kind):
        X, y = kind.data
        model = kind.make(gamma=0.1).partial_fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
        assert model._incremental is not None
        assert len(pickle.dumps(model)) < 3 * X.nbytes + 60_000
        assert pickle.loads(pickle.dumps(model))._incremental is None

    def test_rows_are_kept_only_where_it_is_asked_for(self, kind):
        X, y = kind.data
        model = kind.make(solver="active_set").fit(X, y)
        assert model.row_ids_.size == len(y)
        model.set_params(solver="auto").fit(X, y)
        assert not hasattr(model, "row_ids_")
        for call in (lambda: model.forget([0]), model.leave_one_out):
            with pytest.raises(SoftmarginError, match="warm_start=True"):
                call()
        with pytest.raises(AttributeError) as error:
            model.partial_fit(X, y)
        assert "warm_start=True" in str(error.value.__cause__)


class TestBadInput:
    @pytest.fixture
    def model(self, binary):
        X, y = binary
        return SVC(2.0, gamma=0.1).partial_fit(X, y)

    def test_of_partial_fit(self, binary, model):
        X, y = binary
        before = pickle.dumps(model)
        with pytest.raises(SoftmarginError, match="2, which is not among the classes"):
            model.partial_fit(X[:1], [2])
        with pytest.raises(ValueError, match="X has 7 features, but SVC is expecting 8 features"):
            model.partial_fit(X[:1, :7], y[:1])
        with pytest.raises(SoftmarginError, match="not those of the first call"):
            model.partial_fit(X[:1], y[:1], classes=[0, 1, 2])
        with pytest.raises(SoftmarginError, match="negative"):
            model.partial_fit(X[:1], y[:1], sample_weight=[-1.0])
        with pytest.raises(SoftmarginError, match="shape"):
            model.partial_fit(X[:1], y[:1], sample_weight=[0.0, 0.0])
        with pytest.raises(ValueError, match="NaN"):
            model.partial_fit(np.full((1, 8), np.nan), y[:1])
        assert pickle.dumps(model) == before
        model.set_params(gamma=0.2)
        with pytest.raises(SoftmarginError, match=r"gamma=0\.2"):
            model.partial_fit(X[:1], y[:1])

    @pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "poly"])
    def test_of_rows_that_overflow(self, kind, kernel):
        """The linear kernel ended in a ZeroDivisionError."""
        X, y = kind.data
        model = kind.make(kernel=kernel, solver="active_set").fit(X, y)
        before = model.dual_coef_.copy()
        with pytest.raises(SoftmarginError, match="overflow on these rows: scale the features"):
            model.partial_fit(np.full((1, X.shape[1]), 1e308), y[:1])
        np.testing.assert_array_equal(model.dual_coef_, before)

    def test_of_weights_that_overflow_together(self, kind):
        X, y = kind.data
        model = kind.make(2.0, gamma=0.1).partial_fit(X, y)
        before = model.certificate_
        with pytest.raises(SoftmarginError, match="sum of the weights overflows"):
            model.partial_fit(X[:2], y[:2], sample_weight=[1e308, 1e308])
        assert model.certificate_ is before
        model.partial_fit(X[:2], y[:2])
        assert model.status_ is Status.OPTIMAL

    def test_of_the_first_call(self, binary):
        X, y = binary
        with pytest.raises(SoftmarginError, match="one class only"):
            SVC().partial_fit(X[y == 0], y[y == 0])
        with pytest.raises(SoftmarginError, match="at least two"):
            SVC().partial_fit(X[y == 0], y[y == 0], classes=[0])
        with pytest.raises(SoftmarginError, match="not among the classes"):
            SVC().partial_fit(X, y, classes=[1, 2])

    def test_of_forget(self, binary, model):
        _, y = binary
        before = pickle.dumps(model)
        for rows, message in (
            ([0, 200], "no row with the id 200"),
            ([-1], "no row with the id -1"),
            ([5, 7, 5], "the id 5 is there 2 times"),
            ([0.5], "integers from row_ids_"),
            ([True], "integers from row_ids_"),
            (np.zeros((2, 2), int), "integers from row_ids_"),
            (np.flatnonzero(y == 1), "class 1 would be left without rows"),
            (np.arange(len(y)), "would be left without rows"),
        ):
            with pytest.raises(SoftmarginError, match=message):
                model.forget(rows)
        assert pickle.dumps(model) == before
        model.forget([5])
        with pytest.raises(SoftmarginError, match="no row with the id 5"):
            model.forget([5])

    def test_of_a_kernel_matrix(self, kind):
        X, y = kind.data
        model = kind.make(kernel="precomputed", solver="active_set").fit(X @ X.T, y)
        for name in ("partial_fit", "forget"):
            assert not hasattr(model, name)
        with pytest.raises(AttributeError) as error:
            model.partial_fit(X @ X.T, y)
        assert "precomputed" in str(error.value.__cause__)

    def test_of_an_indefinite_kernel(self, kind):
        X, y = kind.data
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = kind.make(kernel="sigmoid", gamma=1.0, coef0=-2.0, warm_start=True).fit(X, y)
        with pytest.raises(SoftmarginError, match="positive semi-definite"):
            model.partial_fit(X[:1], y[:1])

    def test_too_little_memory_for_the_active_set(self, kind):
        X, y = kind.data
        model = kind.make(2.0, gamma=0.1, solver="active_set").fit(X[:100], y[:100])
        model.set_params(solver=ActiveSet(max_bytes=100.0), tol=1e-6)
        with pytest.warns(UserWarning, match="BlockSMO goes on"):
            model.partial_fit(X[100:], y[100:])
        assert model.certificate_.relative_gap <= 1e-6
        with pytest.warns(UserWarning, match="BlockSMO goes on"):
            model.forget([0, 1])
        reference = kind.make(2.0, gamma=0.1, solver="active_set").fit(X[2:], y[2:])
        assert model.certificate_.primal == pytest.approx(reference.certificate_.primal, rel=1e-5)
        with pytest.raises(SoftmarginError, match="too many"):
            model.leave_one_out()


class TestKernelValuesThatOverflow:
    """They are refused with a sentence also where no fit has checked the kernel: after loading, and in new rows."""

    def test_in_a_model_whose_kernel_was_changed(self):
        X = np.arange(12.0).reshape(6, 2)
        model = SVC(kernel="poly", solver="active_set").fit(X, [0, 1] * 3).set_params(coef0=1e150)
        with pytest.raises(SoftmarginError, match="values of the kernel 'poly' overflow"):
            model.partial_fit(X[:2], [0, 1])

    def test_in_new_rows(self):
        X = np.arange(12.0).reshape(6, 2)
        model = SVC(gamma=1.0, solver="active_set").fit(X, [0, 1] * 3)
        before = model.predict(X)
        with pytest.raises(SoftmarginError, match="values of the kernel 'rbf' overflow"):
            model.partial_fit([[1e200, 0.0]], [1])
        assert np.array_equal(model.predict(X), before)
