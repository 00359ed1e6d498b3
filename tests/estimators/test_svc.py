"""SVC: scikit-learn's attributes and values, all storages and kernels, and relations between problems."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics.pairwise import laplacian_kernel, pairwise_kernels, rbf_kernel
from sklearn.svm import SVC as LibSVM

from softmargin import SVC, BlockSMO, LinearSVC, SoftmarginError, Status
from softmargin.core.result import Solution
from softmargin.estimators import kernel_scoring, kernel_work
from softmargin.kernels.cached import WholeMatrix
from softmargin.prediction.labels import one_against_one, pair_coefficients
from softmargin.problems.kernel_certificate import KernelJudge
from softmargin.problems.row_loss import RowLoss

IRIS = load_iris(return_X_y=True)
DIGITS = load_digits()
TIGHT = 1e-9


@pytest.fixture(scope="module")
def rings():
    """Three classes that no plane separates, with noise."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((150, 3))
    y = np.digitize(np.linalg.norm(X, axis=1) + 0.3 * rng.standard_normal(150), [1.2, 2.0])
    return X, y


@pytest.fixture(scope="module")
def two_rings(rings):
    X, y = rings
    return X[y < 2], y[y < 2]


def assert_like_libsvm(model, reference, X):
    """Names, shapes, types and signs are those of scikit-learn's SVC, and so are the values."""
    for name in ("support_", "n_support_", "classes_"):
        found, expected = getattr(model, name), getattr(reference, name)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype, name
    for name in ("dual_coef_", "intercept_", "class_weight_"):
        found, expected = getattr(model, name), getattr(reference, name)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype), name
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * np.abs(expected).max(), err_msg=name)
    np.testing.assert_array_equal(model.support_vectors_, reference.support_vectors_)
    assert (model.n_iter_.shape, model.n_iter_.dtype) == (reference.n_iter_.shape, reference.n_iter_.dtype)
    assert model.shape_fit_ == reference.shape_fit_
    assert model.fit_status_ == reference.fit_status_ == 0
    for shape in ("ovo", "ovr"):
        found = model.set_params(decision_function_shape=shape).decision_function(X)
        expected = reference.set_params(decision_function_shape=shape).decision_function(X)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


class TestLikeScikitLearn:
    @pytest.mark.parametrize(
        ("data", "kernel"), [("rings", "rbf"), ("rings", "poly"), ("two_rings", "rbf"), ("two_rings", "linear")]
    )
    def test_kernels(self, request, data, kernel):
        X, y = request.getfixturevalue(data)
        options = {"kernel": kernel, "tol": TIGHT, "coef0": 1.0, "gamma": 0.4, "C": 0.5}
        assert_like_libsvm(SVC(**options).fit(X, y), LibSVM(**options).fit(X, y), X)

    def test_ten_classes_with_names(self):
        X, names = DIGITS.data[:400], np.array([f"digit {k}" for k in DIGITS.target[:400]])
        options = {"gamma": 1e-3, "tol": TIGHT}
        model, reference = SVC(**options).fit(X, names), LibSVM(**options).fit(X, names)
        assert_like_libsvm(model, reference, X)
        assert model.dual_coef_.shape == (9, model.support_.size)
        assert len(model.certificates_) == model.intercept_.size == len(model.trace_) == 45
        np.testing.assert_array_equal(model.predict(X), reference.predict(X))

    @pytest.mark.parametrize("data", ["two_rings", "rings"])
    @pytest.mark.parametrize("class_weight", [{0: 3.0, 1: 0.5}, "balanced"], ids=str)
    def test_class_weights(self, request, data, class_weight):
        X, y = request.getfixturevalue(data)
        options = {"class_weight": class_weight, "tol": TIGHT}
        assert_like_libsvm(SVC(**options).fit(X, y), LibSVM(**options).fit(X, y), X)

    @pytest.mark.parametrize("data", ["two_rings", "rings"])
    def test_sample_weights(self, request, data):
        X, y = request.getfixturevalue(data)
        weights = np.random.default_rng(1).uniform(0.1, 3.0, len(y))
        model = SVC(tol=TIGHT, gamma=0.5).fit(X, y, weights)
        assert_like_libsvm(model, LibSVM(tol=TIGHT, gamma=0.5).fit(X, y, weights), X)

    @pytest.mark.parametrize("data", ["two_rings", "rings"])
    def test_weights_of_zero_leave_rows_out(self, request, data):
        """`support_` counts all rows that were given, where scikit-learn counts those that are left."""
        X, y = request.getfixturevalue(data)
        weights = np.arange(len(y)) % 3.0
        left = np.flatnonzero(weights)
        model = SVC(tol=TIGHT, gamma=0.5).fit(X, y, weights)
        reference = LibSVM(tol=TIGHT, gamma=0.5).fit(X[left], y[left], weights[left])
        np.testing.assert_array_equal(model.support_, left[reference.support_])
        np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
        np.testing.assert_allclose(model.dual_coef_, reference.dual_coef_, atol=1e-5)
        np.testing.assert_allclose(model.decision_function(X), reference.decision_function(X), atol=1e-5)

    @pytest.mark.parametrize("labels", [np.array([True, False]), np.array([-1.0, 2.0]), np.array(["a", "bb"])], ids=str)
    def test_two_classes_of_any_type(self, two_rings, labels):
        X, y = two_rings
        model, reference = SVC(tol=TIGHT).fit(X, labels[y]), LibSVM(tol=TIGHT).fit(X, labels[y])
        assert_like_libsvm(model, reference, X)
        np.testing.assert_array_equal(model.predict(X), reference.predict(X))
        assert model.predict(X).dtype == labels.dtype

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_coef(self, n_classes):
        X, y = IRIS[0][50 * (3 - n_classes) :], IRIS[1][50 * (3 - n_classes) :]
        model, reference = (kind(kernel="linear", tol=1e-8).fit(X, y) for kind in (SVC, LibSVM))
        assert (model.coef_.shape, model.coef_.dtype) == (reference.coef_.shape, reference.coef_.dtype)
        np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-4)
        np.testing.assert_allclose(model.intercept_, reference.intercept_, atol=1e-4)
        sparse = SVC(kernel="linear", tol=1e-8).fit(sp.csr_array(X), y)
        np.testing.assert_allclose(sparse.coef_, model.coef_, atol=1e-4)
        assert not hasattr(SVC().fit(X, y), "coef_")
        with pytest.raises(ValueError, match="read-only"):  # a change would have no effect on scores
            model.coef_[0] = 0.0

    def test_a_class_without_weight_never_wins(self, rings):
        X, y = rings
        weights = np.where(y == 1, 0.0, 1.0)
        model = SVC(tol=TIGHT, decision_function_shape="ovo").fit(X, y, weights)
        assert model.classes_.tolist() == [0, 1, 2]
        assert model.n_support_[1] == 0
        assert not (model.predict(X) == 1).any()
        rest = SVC(tol=TIGHT, gamma=model.gamma_).fit(X[y != 1], y[y != 1])
        np.testing.assert_allclose(model.decision_function(X)[:, 1], -rest.decision_function(X), atol=1e-6)
        assert model.status_ is Status.OPTIMAL


class TestPrediction:
    @settings(max_examples=60)
    @given(
        st.integers(3, 6).flatmap(
            lambda n: st.tuples(
                st.just(n),
                arrays(
                    float,
                    (4, n * (n - 1) // 2),
                    elements=st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1e300, -1e300, 1e-300, 1e9]),
                ),
            )
        )
    )
    def test_votes_lead_and_ties_are_broken_by_clarity(self, case):
        n_classes, scores = case
        with np.errstate(over="ignore"):
            totals = one_against_one(scores, n_classes)
        votes = np.zeros((4, n_classes))
        k = 0
        for first in range(n_classes):
            for second in range(first + 1, n_classes):
                votes[np.arange(4), np.where(scores[:, k] >= 0, first, second)] += 1
                k += 1
        assert np.isfinite(totals).all()
        assert np.abs(totals - votes).max() < 0.5  # no clarity outdoes a vote
        np.testing.assert_array_equal(votes[np.arange(4), totals.argmax(axis=1)], votes.max(axis=1))

    @pytest.mark.parametrize("seed", range(8))
    def test_the_largest_score_is_the_prediction(self, seed):
        """On a grid of few values with random labels, where many rows are equal and many scores tie."""
        rng = np.random.default_rng(seed)
        n_classes = int(rng.integers(2, 6))
        X = rng.integers(-1, 2, (40, 2)).astype(float)
        y = np.append(np.arange(n_classes), rng.integers(0, n_classes, 40 - n_classes))
        model = SVC(10.0 ** rng.integers(-3, 4), kernel=["rbf", "linear"][seed % 2]).fit(X, y)
        grid = np.stack(np.meshgrid(*2 * [np.linspace(-1.5, 1.5, 13)]), axis=-1).reshape(-1, 2)
        scores = model.decision_function(grid)
        best = scores.argmax(axis=1) if n_classes > 2 else (scores > 0).astype(int)
        np.testing.assert_array_equal(model.predict(grid), model.classes_[best])

    def test_coefficients_of_the_pairs(self, rings):
        X, y = rings
        model = SVC(tol=TIGHT, gamma=0.5, decision_function_shape="ovo").fit(X, y)
        coefficients = pair_coefficients(model.dual_coef_, model.n_support_)
        assert coefficients.shape == (model.support_.size, 3)
        by_hand = rbf_kernel(X, model.support_vectors_, gamma=0.5) @ coefficients + model.intercept_
        np.testing.assert_allclose(model.decision_function(X), by_hand, atol=1e-12)
        assert np.abs(coefficients.sum(axis=0)).max() < 1e-10  # feasible, and so signs are right

    @pytest.mark.parametrize("n_jobs", [2, 3])
    def test_threads_change_no_bit(self, rings, n_jobs):
        X, y = rings
        many = np.tile(X, (12, 1))
        one, more = SVC(n_jobs=1).fit(X, y), SVC(n_jobs=n_jobs).fit(X, y)
        np.testing.assert_array_equal(one.dual_coef_, more.dual_coef_)
        np.testing.assert_array_equal(one.intercept_, more.intercept_)
        assert one.certificates_ == more.certificates_
        np.testing.assert_array_equal(one.decision_function(many), more.decision_function(many))

    def test_one_model_in_many_threads(self, rings):
        X, y = rings
        model = SVC(n_jobs=2).fit(X, y)
        expected = model.decision_function(X)
        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(lambda _: model.decision_function(X), range(12)):
                np.testing.assert_array_equal(found, expected)

    def test_support_vectors_are_all_that_is_touched(self, two_rings, monkeypatch):
        X, y = two_rings
        model = SVC().fit(X, y)
        seen = []
        expansion = kernel_scoring.expansion

        def watched(kernel, vectors, *rest):
            seen.append(vectors.n_rows)
            return expansion(kernel, vectors, *rest)

        monkeypatch.setattr(kernel_scoring, "expansion", watched)
        model.predict(X)
        assert seen == [model.support_.size]
        assert seen[0] < len(y)


class TestStorages:
    @pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian", "poly"])
    def test_dense_and_sparse_agree(self, rings, kernel):
        X, y = rings
        X = X * (np.abs(X) > 0.5)
        dense, sparse = (
            SVC(kernel=kernel, tol=TIGHT, gamma=0.5).fit(make(X), y) for make in (np.asarray, sp.csr_array)
        )
        assert sp.issparse(sparse.support_vectors_)
        assert not sp.issparse(dense.support_vectors_)
        expected = dense.decision_function(X)
        for model in (dense, sparse):
            for form in (X, sp.csr_array(X), sp.csc_array(X), np.asfortranarray(X)):
                np.testing.assert_allclose(model.decision_function(form), expected, atol=1e-6)

    @pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
    def test_single_precision_and_integers(self, rings, make):
        X, y = rings
        X = np.round(4 * X)  # exact in all types
        double = SVC(tol=1e-6).fit(X, y)
        for dtype in (np.float32, np.int64, np.int8):
            model = SVC(tol=1e-6).fit(make(X.astype(dtype)), y)
            assert model.certificate_.relative_gap <= 1e-6
            assert model.gamma_ == pytest.approx(double.gamma_, rel=1e-6)
            np.testing.assert_allclose(model.decision_function(X), double.decision_function(X), atol=1e-4)
            np.testing.assert_allclose(
                model.decision_function(make(X.astype(np.float32))), double.decision_function(X), atol=1e-4
            )

    @pytest.mark.parametrize("scale", [1e20, 1e-20])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_huge_and_tiny_values(self, rings, scale, dtype):
        X, y = rings
        X = X.astype(np.float32)  # the same problem, whatever the unit
        plain, scaled = SVC().fit(X, y), SVC().fit((X * dtype(scale)).astype(dtype), y)
        assert scaled.status_ is Status.OPTIMAL
        assert scaled.gamma_ * scale * scale == pytest.approx(plain.gamma_, rel=1e-5)
        assert scaled.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-3)
        np.testing.assert_allclose(
            scaled.decision_function((X * dtype(scale)).astype(dtype)), plain.decision_function(X), atol=1e-2
        )
        linear = SVC(0.1 / scale / scale, kernel="linear").fit((X * dtype(scale)).astype(dtype), y)
        assert linear.status_ is Status.OPTIMAL
        unscaled = SVC(0.1, kernel="linear").fit(X, y).certificate_
        assert linear.certificate_.primal * scale * scale == pytest.approx(unscaled.primal, rel=2e-3)


class TestGamma:
    def test_scale_and_auto(self, rings):
        X, y = rings
        assert SVC().fit(X, y).gamma_ == pytest.approx(1 / (3 * X.var()))
        assert SVC().fit(sp.csr_array(X), y).gamma_ == pytest.approx(1 / (3 * X.var()))
        assert SVC(gamma="auto").fit(X, y).gamma_ == pytest.approx(1 / 3)
        assert SVC(gamma=0.25).fit(X, y).gamma_ == 0.25
        assert SVC().fit(np.full((4, 2), 3.0), [0, 1, 0, 1]).gamma_ == 1.0  # as scikit-learn

    @pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
    def test_rows_count_as_often_as_they_weigh(self, rings, make):
        X, y = rings
        weights = np.arange(len(y)) % 4
        weighted = SVC(tol=TIGHT).fit(make(X), y, weights)
        repeated = SVC(tol=TIGHT).fit(make(np.repeat(X, weights, axis=0)), np.repeat(y, weights))
        assert weighted.gamma_ == pytest.approx(repeated.gamma_, rel=1e-12)
        np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)


class TestPrecomputed:
    @pytest.mark.parametrize("data", ["two_rings", "rings"])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_arrays_and_memory_maps(self, request, tmp_path, data, dtype):
        X, y = request.getfixturevalue(data)
        train, new = X[::2], X[1::2]
        direct = SVC(gamma=0.5, tol=1e-7).fit(train, y[::2])
        np.save(tmp_path / "K.npy", rbf_kernel(train, gamma=0.5).astype(dtype))
        values = rbf_kernel(new, train, gamma=0.5)
        for matrix in (np.load(tmp_path / "K.npy"), np.load(tmp_path / "K.npy", mmap_mode="r")):
            model = SVC(kernel="precomputed", tol=1e-7).fit(matrix, y[::2])
            assert model.certificate_.relative_gap <= 1e-7
            assert model.support_vectors_.shape == (0, 0)
            assert model.shape_fit_ == matrix.shape
            assert model.counts_["kernel_evaluations"] == 0
            np.testing.assert_allclose(model.decision_function(values), direct.decision_function(new), atol=1e-4)
            np.testing.assert_array_equal(model.predict(values), direct.predict(new))

    def test_weights_of_zero(self, two_rings):
        X, y = two_rings
        weights = (np.arange(len(y)) % 3 > 0).astype(float)
        model = SVC(kernel="precomputed", tol=TIGHT).fit(rbf_kernel(X, gamma=0.5), y, weights)
        direct = SVC(gamma=0.5, tol=TIGHT).fit(X, y, weights)
        np.testing.assert_array_equal(model.support_, direct.support_)
        np.testing.assert_allclose(model.dual_coef_, direct.dual_coef_, atol=1e-6)


class TestCallable:
    @pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
    def test_is_the_kernel_it_computes(self, rings, make):
        X, y = rings

        def kernel(left, right):
            return pairwise_kernels(left, right, metric="rbf", gamma=0.5)

        model = SVC(kernel=kernel, tol=TIGHT).fit(make(X), y)
        assert model.status_ is Status.OPTIMAL
        expected = SVC(gamma=0.5, tol=TIGHT).fit(X, y).decision_function(X)
        np.testing.assert_allclose(model.decision_function(make(X)), expected, atol=1e-6)

    @pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
    def test_may_return_a_sparse_matrix(self, rings, make):
        X, y = rings
        model = SVC(kernel=lambda left, right: left @ right.T, tol=TIGHT).fit(make(X), y)
        assert model.status_ is Status.OPTIMAL
        expected = SVC(kernel="linear", tol=TIGHT).fit(X, y).decision_function(X)
        np.testing.assert_allclose(model.decision_function(make(X)), expected, atol=1e-5)

    def test_is_given_blocks(self):
        X, y = np.random.default_rng(0).standard_normal((1500, 2)), np.arange(1500) % 2
        largest = []

        def kernel(left, right):
            largest.append(left.shape[0] * right.shape[0])
            return laplacian_kernel(left, right, gamma=1.0)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            SVC(0.01, kernel=kernel, max_iter=1).fit(X, y)
        assert max(largest) < 1500 * 1500 / 4


class TestRelations:
    """Answers that must follow from one another."""

    def test_a_row_twice_is_a_weight_of_two(self, two_rings):
        X, y = two_rings
        once = SVC(tol=TIGHT, gamma=0.5).fit(X, y, np.where(np.arange(len(y)) < 20, 2.0, 1.0))
        twice = SVC(tol=TIGHT, gamma=0.5).fit(np.vstack([X, X[:20]]), np.append(y, y[:20]))
        assert once.certificate_.primal == pytest.approx(twice.certificate_.primal, rel=1e-8)
        np.testing.assert_allclose(once.decision_function(X), twice.decision_function(X), atol=1e-6)

    def test_the_order_of_rows_does_not_matter(self, rings):
        X, y = rings
        order = np.random.default_rng(0).permutation(len(y))
        model, permuted = SVC(tol=TIGHT).fit(X, y), SVC(tol=TIGHT).fit(X[order], y[order])
        np.testing.assert_allclose(permuted.decision_function(X), model.decision_function(X), atol=1e-6)
        assert sorted(order[permuted.support_]) == sorted(model.support_)

    def test_flipped_labels_flip_scores(self, two_rings):
        X, y = two_rings
        model, flipped = SVC(tol=TIGHT).fit(X, y), SVC(tol=TIGHT).fit(X, 1 - y)
        np.testing.assert_allclose(flipped.decision_function(X), -model.decision_function(X), atol=1e-6)

    def test_a_row_far_on_its_side_changes_nothing(self, two_rings):
        X, y = two_rings
        model = SVC(1.0, kernel="linear", tol=TIGHT).fit(X, y)
        far = 1e3 * model.coef_ / np.linalg.norm(model.coef_)
        more = SVC(1.0, kernel="linear", tol=TIGHT).fit(np.vstack([X, far]), np.append(y, 1))
        np.testing.assert_allclose(more.coef_, model.coef_, atol=1e-6)
        assert len(y) not in more.support_

    @pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
    def test_linear_kernel_is_the_linear_problem(self, binary, C, same_optimum):
        X, y = binary
        kernel, linear = SVC(C, kernel="linear", tol=1e-6).fit(X, y), LinearSVC(C, tol=1e-6).fit(X, y)
        assert same_optimum(kernel.certificate_, linear.certificate_)
        assert kernel.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=2e-6)

    def test_every_way_finds_the_same(self, rings, same_optimum):
        X, y = rings
        expected = SVC(tol=1e-6).fit(X, y).certificate_
        for options in (
            {"solver": "block"},
            {"solver": BlockSMO(size=64)},
            {"solver": BlockSMO(size=10)},
            {"solver": "smo"},
            {"working_set": "hybrid_maximum_gain", "shrinking": False},
            {"cache_bytes": 8 * 150 * 8},
            {"n_jobs": 2},
        ):
            model = SVC(tol=1e-6, **options).fit(X, y)
            assert model.certificate_.relative_gap <= 1e-6, options
            assert same_optimum(model.certificate_, expected), options


class TestCertificates:
    @pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian", "poly"])
    @pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0, 1e2])
    def test_hold_for_the_exact_matrix(self, two_rings, kernel, C):
        """Judged again on a matrix that another library computed; LIBSVM's point shows where the optimum is."""
        X, y = two_rings
        model = SVC(C, kernel=kernel, gamma=0.5, coef0=1.0, tol=1e-4).fit(X, y)
        parameters = {"gamma": 0.5} if kernel in ("rbf", "laplacian", "poly") else {}
        parameters |= {"coef0": 1.0, "degree": 3} if kernel == "poly" else {}
        K = pairwise_kernels(X, metric=kernel, **parameters)
        signs = np.where(y == 1, 1.0, -1.0)
        again = KernelJudge(WholeMatrix(K, 1e9), RowLoss.classification(signs, C))

        def judged(fitted):
            alpha = np.zeros(len(y))
            alpha[fitted.support_] = np.abs(fitted.dual_coef_[0])
            return again(Solution(np.empty(0), float(fitted.intercept_[0]), alpha))

        own = judged(model)
        assert own.relative_gap <= 1e-4 * (1 + 1e-6)
        assert own.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
        assert own.dual == pytest.approx(model.certificate_.dual, rel=1e-9)
        other = judged(LibSVM(C=C, kernel="precomputed", tol=1e-8).fit(K, y))
        assert model.certificate_.dual <= other.primal * (1 + 1e-12)  # no bound above the optimum
        assert model.certificate_.primal >= other.dual * (1 - 1e-12)

    def test_in_single_precision(self):
        """More rows than are solved in double precision anyway: the bound pays for the rounding."""
        rng = np.random.default_rng(2)
        X = rng.standard_normal((1200, 4))
        y = (X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(1200) > 0).astype(int)
        model = SVC(gamma=0.3).fit(X, y)
        exact = SVC(gamma=0.3, tol=1e-7).fit(X, y)
        assert model.certificate_.relative_gap <= 1e-3
        assert model.certificate_.dual <= exact.certificate_.primal
        assert model.certificate_.primal >= exact.certificate_.dual
        alpha = np.zeros(len(y))
        alpha[model.support_] = np.abs(model.dual_coef_[0])
        judge = KernelJudge(
            WholeMatrix(rbf_kernel(X, gamma=0.3), 1e9), RowLoss.classification(np.where(y == 1, 1.0, -1.0), 1.0)
        )
        assert judge(Solution(np.empty(0), float(model.intercept_[0]), alpha)).relative_gap <= 1e-3

    @pytest.mark.parametrize("stopping", ["gap", "kkt"])
    def test_the_rule_that_was_asked_for_holds(self, rings, stopping):
        X, y = rings
        model = SVC(10.0, stopping=stopping, tol=1e-5).fit(X, y)
        for certificate in model.certificates_:
            reached = certificate.relative_gap if stopping == "gap" else certificate.kkt_violation
            assert reached <= 1e-5
        assert model.certificate_.primal == pytest.approx(sum(part.primal for part in model.certificates_))

    def test_indefinite_kernels_have_no_bound(self, rings):
        X, y = rings
        with pytest.warns(UserWarning, match="the kernel 'sigmoid' is indefinite on these rows.*stationary") as caught:
            model = SVC(kernel="sigmoid", gamma=0.5, coef0=-1.0).fit(X, y)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert model.status_ is Status.STATIONARY
        assert model.fit_status_ == 0
        assert np.isnan([model.certificate_.dual, model.certificate_.gap, model.certificate_.relative_gap]).all()
        assert all(part.kkt_violation <= 1e-3 for part in model.certificates_)
        assert model.predict(X).shape == y.shape
        K = np.tanh(0.5 * X @ X.T - 1.0)
        with pytest.warns(UserWarning, match="the kernel 'precomputed' is indefinite"):
            matrix = SVC(kernel="precomputed").fit(K, y)
        assert matrix.status_ is Status.STATIONARY
        np.testing.assert_allclose(matrix.decision_function(K), model.decision_function(X), atol=1e-2)


class TestCosts:
    def test_counts(self, rings):
        X, y = rings
        for options in ({}, {"solver": BlockSMO(size=16)}, {"solver": "smo"}):
            model = SVC(tol=1e-6, **options).fit(X, y)
            counts = model.counts_
            assert set(counts) == {
                "iterations", "pair_steps", "kernel_evaluations", "hits", "misses", "unshrinkings",
                "majors", "refactorisations", "degenerate",
            }  # fmt: skip
            assert counts["iterations"] == model.n_iter_.sum()
            assert counts["kernel_evaluations"] == sum(trace[-1].kernel_evaluations for trace in model.trace_) > 0
            assert counts["misses"] > 0
            assert counts["pair_steps"] >= counts["iterations"]

    def test_a_small_binary_problem_computes_its_matrix_once(self, two_rings):
        X, y = two_rings
        model = SVC().fit(X, y)
        assert model.counts_["kernel_evaluations"] == len(y) ** 2
        assert (model.counts_["misses"], model.n_iter_.tolist()) == (len(y), [1])

    def test_pairs_share_kernel_values(self):
        X, y = DIGITS.data[:400], DIGITS.target[:400]
        model = SVC(gamma=1e-3).fit(X, y)
        alone = sum(
            SVC(gamma=1e-3).fit(X[(y == a) | (y == b)], y[(y == a) | (y == b)]).counts_["kernel_evaluations"]
            for a in range(10)
            for b in range(a)
        )
        assert model.counts_["kernel_evaluations"] <= len(y) ** 2
        assert alone > 1.5 * model.counts_["kernel_evaluations"]

    def test_a_small_cache_means_pairs(self, two_rings, same_optimum):
        X, y = two_rings
        whole = SVC(tol=1e-6).fit(X, y)
        small = SVC(tol=1e-6, cache_bytes=3 * len(y) * 8).fit(X, y)
        assert small.n_iter_ > whole.n_iter_  # of pairs, not of blocks
        assert small.counts_["kernel_evaluations"] > whole.counts_["kernel_evaluations"]
        assert same_optimum(small.certificate_, whole.certificate_)

    def test_a_cache_for_less_than_two_rows_is_refused_and_the_advice_is_good(self, two_rings, rings):
        for X, y in (two_rings, rings):
            with pytest.raises(SoftmarginError, match="a cache of 100 bytes cannot hold two rows") as caught:
                SVC(cache_bytes=100).fit(X, y)
            needed = int(str(caught.value).split("at least ")[1].split(", or")[0].replace(",", ""))
            sizes = np.bincount(y)
            assert needed == 2 * 8 * (sizes[0] + sizes[1])
            largest = len(y) if len(sizes) == 2 else len(y) - sizes.min()
            assert SVC(cache_bytes=2 * 8 * largest).fit(X, y).certificate_.relative_gap <= 1e-3

    def test_the_default_cache_is_a_share_of_what_is_free(self, two_rings, monkeypatch):
        X, y = two_rings
        monkeypatch.setattr(kernel_work, "LITTLE_BYTES", 0)
        monkeypatch.setattr(kernel_work, "free_bytes", lambda: 4 * 5 * len(y) * 8)
        model = SVC().fit(X, y)
        assert model.counts_["misses"] > len(y)  # five rows only
        monkeypatch.setattr(kernel_work, "free_bytes", lambda: 0)
        assert SVC().fit(X, y).certificate_.relative_gap <= 1e-3  # two rows are always taken


def test_a_large_linear_problem_is_pointed_to_the_linear_solver(two_rings, monkeypatch):
    X, y = two_rings
    monkeypatch.setattr("softmargin.estimators.machines.kernel_base._MANY_ROWS", len(y))
    with pytest.warns(UserWarning, match="softmargin.LinearSVC minimises the same objective") as caught:
        SVC(kernel="linear").fit(X, y)
    assert caught[0].filename == __file__
    SVC().fit(X, y)
