"""LowRankMap: features of a kernel, what they leave out, and the bound on what that costs."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

from softmargin import SVC, SVR, LinearSVC, LinearSVR, LowRankMap, SoftmarginError

RNG = np.random.default_rng(11)
X = RNG.standard_normal((150, 3))
Y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * RNG.standard_normal(150) > 0, 1.0, -1.0)
S = RNG.uniform(0.0, 2.0, 150)
GAMMA = 0.3
K = np.exp(-GAMMA * ((X[:, None] - X[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize("rank", [1, 10, 40])
def test_the_features_are_a_factor_of_the_matrix_but_for_the_error_that_is_told(rank):
    found = LowRankMap(rank, gamma=GAMMA)
    V = found.fit_transform(X)
    left = K - V @ V.T
    assert V.shape == (150, rank) == (150, found.n_components_)
    np.testing.assert_allclose(found.residuals_, left.diagonal(), atol=1e-12)
    assert found.trace_error_ == pytest.approx(left.trace(), rel=1e-9)
    assert found.trace_ == pytest.approx(150.0)
    assert np.linalg.eigvalsh(left)[0] > -1e-12
    assert np.abs(left).max() <= found.trace_error_
    np.testing.assert_allclose(found.transform(X), V, atol=1e-12)
    np.testing.assert_allclose(left[found.component_indices_], 0.0, atol=1e-12)
    np.testing.assert_array_equal(found.components_, X[found.component_indices_])
    assert found.get_feature_names_out()[0] == "lowrankmap0"


def test_it_ends_where_nothing_is_left():
    found = LowRankMap(50, kernel="linear").fit(X)
    assert found.n_components_ == 3
    assert found.trace_error_ <= 1e-10 * found.trace_
    assert LowRankMap(100, gamma=GAMMA, tol=0.1).fit(X).trace_error_ <= 15.0


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian", "precomputed", lambda A, B: A @ B.T + 1.0])
def test_kernels(kernel):
    data = K if kernel == "precomputed" else X
    found = LowRankMap(20, kernel=kernel, gamma=GAMMA, coef0=1.0)
    V = found.fit_transform(data)
    np.testing.assert_allclose(found.transform(data), V, atol=1e-9)
    assert 0.0 <= found.trace_error_ < found.trace_


def test_sparse_rows_threads_and_copies_give_the_same():
    plain = LowRankMap(20, gamma=GAMMA).fit(X)
    for other, data in ((LowRankMap(20, gamma=GAMMA), sp.csr_matrix(X)), (LowRankMap(20, gamma=GAMMA, n_jobs=2), X)):
        np.testing.assert_allclose(other.fit(data).transform(data), plain.transform(X), atol=1e-10)
    np.testing.assert_array_equal(other.transform(X), plain.transform(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(plain)).transform(X), plain.transform(X))


class TestBound:
    """Theorems of docs/maths/low_rank.md, against exact optima."""

    @pytest.mark.parametrize("rank", [2, 10, 30, 60])
    @pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_the_exact_optimum_of_classes_lies_where_it_is_said_to(self, rank, C, loss):
        found = LowRankMap(rank, gamma=GAMMA)
        V = found.fit_transform(X)
        model = LinearSVC(C, loss=loss, tol=1e-7).fit(V, Y, S)
        certificate, beta = model.certificate_, Y * model.dual_
        if loss == "hinge":
            exact = SVC(C, gamma=GAMMA, tol=1e-9).fit(X, Y, S).certificate_
        else:  # the squared hinge adds 1 / (2 C s) to the diagonal, without a bound from above
            used = S > 0.0
            ridge = K[np.ix_(used, used)] + np.diag(0.5 / (C * S[used]))
            exact = SVC(1e4, kernel="precomputed", solver="active_set").fit(ridge, Y[used]).certificate_
        room = 1e-6 * exact.primal
        sharp, cheap = found.bound(beta, X), found.bound(model.dual_)
        assert 0.0 <= sharp <= cheap * (1 + 1e-9) + 1e-12
        assert cheap <= 0.5 * found.trace_error_ * np.square(beta).sum() * (1 + 1e-9) + 1e-12
        assert certificate.dual - sharp <= exact.primal + room
        assert exact.dual - room <= certificate.primal

    def test_the_exact_optimum_of_numbers(self):
        y = X[:, 0] * X[:, 1]
        found = LowRankMap(20, gamma=GAMMA)
        model = LinearSVR(10.0, epsilon=0.05, tol=1e-7).fit(found.fit_transform(X), y)
        exact = SVR(10.0, epsilon=0.05, gamma=GAMMA, tol=1e-8).fit(X, y).certificate_
        assert model.certificate_.dual - found.bound(model.dual_, X) <= exact.primal <= model.certificate_.primal

    def test_the_model_has_the_same_objective_with_the_whole_kernel(self):
        """Its weights are a sum over the pivots in the feature space of the kernel."""
        found = LowRankMap(15, gamma=GAMMA)
        model = LinearSVC(2.0, tol=1e-6).fit(found.fit_transform(X), Y)
        a = np.linalg.solve(found.factor_.T, model.coef_[0])
        pivots = found.component_indices_
        outputs = K[:, pivots] @ a + model.intercept_
        value = 0.5 * a @ K[np.ix_(pivots, pivots)] @ a + 2.0 * np.maximum(0.0, 1.0 - Y * outputs).sum()
        assert value == pytest.approx(model.certificate_.primal, rel=1e-9)

    def test_more_features_are_never_worse(self):
        optima = [
            LinearSVC(1.0, solver="ocas", tol=1e-7).fit(LowRankMap(k, gamma=GAMMA).fit_transform(X), Y).certificate_
            for k in (5, 15, 45, 150)
        ]
        exact = SVC(1.0, gamma=GAMMA, tol=1e-9).fit(X, Y).certificate_
        for few, more in pairwise(optima):
            assert more.dual <= few.primal
        assert optima[-1].primal == pytest.approx(exact.primal, rel=1e-6)

    def test_several_classes(self):
        y = np.digitize(X[:, 0], [-0.5, 0.5])
        found = LowRankMap(30, gamma=GAMMA)
        model = LinearSVC(tol=1e-6).fit(found.fit_transform(X), y)
        signed = model.dual_ * np.where(y[:, None] == model.classes_, 1.0, -1.0)
        assert found.bound(signed, X).shape == (3,)
        assert (found.bound(signed, X) <= found.bound(model.dual_)).all()


def test_in_a_pipeline():
    model = make_pipeline(LowRankMap(60, gamma=GAMMA), LinearSVC(10.0)).fit(X, Y)
    exact = SVC(10.0, gamma=GAMMA).fit(X, Y)
    assert (model.predict(X) == exact.predict(X)).mean() > 0.95
    assert model[-1].certificate_.relative_gap <= 1e-3


class TestErrors:
    @pytest.mark.parametrize("n_components", [0, 1.5, True, "many"])
    def test_n_components(self, n_components):
        with pytest.raises(SoftmarginError, match="must be an integer of at least 1"):
            LowRankMap(n_components).fit(X)

    def test_a_kernel_without_features(self):
        with pytest.raises(SoftmarginError, match="not positive semi-definite"):
            LowRankMap(kernel="sigmoid", gamma=1.0, coef0=-2.0).fit(X)
        with pytest.raises(SoftmarginError, match="is zero on all of these rows"):
            LowRankMap(kernel="linear").fit(np.zeros((4, 2)))

    def test_dual_variables_of_other_rows(self):
        with pytest.raises(SoftmarginError, match="for 150 training rows"):
            LowRankMap(3).fit(X).bound(np.zeros(7))
