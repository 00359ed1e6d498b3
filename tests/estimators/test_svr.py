"""SVR: known optima, scikit-learn's answers, relations between fits, and the forms that data come in."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softmargin import IPM, SMO, SVR, ActiveSet, BlockSMO, LinearSVR, Status, c_path, certify
from softmargin.solvers.smo.smo import RULES

KERNELS = ["rbf", "linear", "poly", "laplacian"]
SOLVERS = ["auto", "block", "smo", "active_set", "ipm", "ocas"]


def make_data(n=80, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def data():
    return make_data()


def objective(model, K, y, weights=1.0):
    """The primal value of a fitted model, by its definition; K is the kernel of all training rows."""
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    f = K @ beta
    losses = np.maximum(0.0, np.abs(y - f - model.intercept_[0]) - model.epsilon)
    return 0.5 * beta @ f + model.C * np.sum(weights * losses)


class TestHandWorked:
    """x = -1, 1 and y = -1, 1 with a linear kernel: w = 1 - epsilon if C allows it, and b = 0."""

    X, y = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])

    @pytest.mark.parametrize("solver", SOLVERS)
    def test_with_room(self, solver):
        model = SVR(10.0, epsilon=0.5, kernel="linear", solver=solver, tol=1e-9).fit(self.X, self.y)
        np.testing.assert_allclose(model.coef_, [[0.5]], rtol=1e-8)
        np.testing.assert_allclose(model.dual_coef_, [[-0.25, 0.25]], rtol=1e-8)
        np.testing.assert_allclose(model.intercept_, [0.0], atol=1e-8)
        assert model.certificate_.primal == pytest.approx(0.125, rel=1e-8)
        assert (model.n_free_.tolist(), model.n_bounded_.tolist()) == ([2], [0])

    @pytest.mark.parametrize("solver", SOLVERS)
    def test_with_little_C(self, solver):
        model = SVR(0.125, epsilon=0.5, kernel="linear", solver=solver, tol=1e-9).fit(self.X, self.y)
        np.testing.assert_allclose(model.coef_, [[0.25]], rtol=1e-8)
        np.testing.assert_allclose(model.dual_coef_, [[-0.125, 0.125]])
        assert model.certificate_.primal == pytest.approx(0.25**2 / 2 + 0.125 * 2 * 0.25, rel=1e-8)
        assert (model.n_free_.tolist(), model.n_bounded_.tolist()) == ([0], [2])

    @pytest.mark.parametrize("solver", SOLVERS)
    @pytest.mark.parametrize("epsilon", [1.0, 7.0])
    def test_numbers_that_fit_into_the_tube(self, solver, epsilon):
        model = SVR(epsilon=epsilon, solver=solver).fit(self.X, self.y)
        assert model.status_ is Status.OPTIMAL
        assert model.certificate_.primal == pytest.approx(0.0, abs=1e-12)
        assert (model.support_.size, model.support_vectors_.shape, model.dual_coef_.shape) == (0, (0, 1), (1, 0))
        np.testing.assert_allclose(model.predict([[-1.0], [0.0], [99.0]]), 0.0, atol=1e-9)

    @pytest.mark.parametrize("solver", SOLVERS)
    @pytest.mark.parametrize("value", [0.0, 3.5, -1e9])
    @pytest.mark.parametrize("epsilon", [0.0, 0.25])
    def test_constant_numbers(self, solver, value, epsilon):
        model = SVR(epsilon=epsilon, solver=solver).fit(np.arange(6.0)[:, None], np.full(6, value))
        assert model.status_ is Status.OPTIMAL
        np.testing.assert_allclose(model.predict([[2.5], [1e3]]), value, atol=epsilon + 1e-12)

    @pytest.mark.parametrize("solver", SOLVERS)
    @pytest.mark.parametrize("epsilon", [0.0, 0.1])
    def test_one_row(self, solver, epsilon):
        model = SVR(epsilon=epsilon, solver=solver).fit([[1.0, 2.0]], [7.0])
        assert model.status_ is Status.OPTIMAL
        assert model.predict([[3.0, 4.0]])[0] == pytest.approx(7.0, abs=epsilon + 1e-12)


class TestLikeScikitLearn:
    @pytest.mark.parametrize("kernel", KERNELS)
    @pytest.mark.parametrize("C", [0.1, 10.0])
    @pytest.mark.parametrize("epsilon", [0.0, 0.2])
    def test_objective_and_predictions(self, data, kernel, C, epsilon):
        X, y = data
        options = {"C": C, "epsilon": epsilon, "gamma": 0.2, "coef0": 1.0, "degree": 2}
        ours = SVR(kernel=kernel, tol=1e-9, **options).fit(X, y)
        if kernel == "laplacian":
            K = np.exp(-0.2 * np.abs(X[:, None] - X[None]).sum(axis=2))
            theirs = svm.SVR(kernel="precomputed", tol=1e-9, **options).fit(K, y)
            predicted = theirs.predict(K)
        else:
            K = {"rbf": rbf_kernel(X, gamma=0.2), "linear": X @ X.T, "poly": polynomial_kernel(X, None, 2, 0.2, 1.0)}[
                kernel
            ]
            theirs = svm.SVR(kernel=kernel, tol=1e-9, **options).fit(X, y)
            predicted = theirs.predict(X)
        assert objective(ours, K, y) <= objective(theirs, K, y) * (1 + 1e-9)
        assert ours.certificate_.primal == pytest.approx(objective(ours, K, y), rel=1e-9)
        np.testing.assert_allclose(ours.predict(X), predicted, atol=2e-4 * np.abs(y).max())
        assert ours.score(X, y) == pytest.approx(r2_score(y, predicted), abs=1e-4)

    @pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.csr_array])
    def test_attributes(self, data, make):
        X, y = data
        options = {"C": 0.5, "epsilon": 0.2, "kernel": "linear", "tol": 1e-8}
        ours, theirs = (kind(**options).fit(make(X), y) for kind in (SVR, svm.SVR))
        for name in ("support_", "n_support_", "dual_coef_", "intercept_", "coef_", "support_vectors_"):
            mine, other = (getattr(model, name) for model in (ours, theirs))
            assert mine.shape == other.shape, name
            assert mine.dtype == other.dtype, name
            if name == "n_support_":  # scikit-learn leaves the number itself unset for sparse rows
                assert mine.tolist() == [ours.support_.size]
            elif name != "support_vectors_":
                mine, other = (part.toarray() if sp.issparse(part) else part for part in (mine, other))
                np.testing.assert_allclose(mine, other, atol=1e-5)
        assert ours.shape_fit_ == theirs.shape_fit_
        assert ours.fit_status_ == theirs.fit_status_ == 0
        assert isinstance(ours.n_iter_, int)
        assert sp.issparse(ours.support_vectors_) == sp.issparse(theirs.support_vectors_)
        assert ours.n_features_in_ == 4

    def test_weights(self, data):
        X, y = data
        weights = np.random.default_rng(1).uniform(0.1, 3.0, len(y))
        ours, theirs = (kind(epsilon=0.05, gamma=0.3, tol=1e-9).fit(X, y, weights) for kind in (SVR, svm.SVR))
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-5)
        assert ours.certificate_.primal == pytest.approx(
            objective(ours, rbf_kernel(X, gamma=0.3), y, weights), rel=1e-9
        )

    def test_certify_their_model(self, data):
        X, y = data
        theirs = svm.SVR(C=2.0, tol=1e-8).fit(X, y)
        certificate = certify(theirs, X, y)
        assert certificate.primal == pytest.approx(SVR(2.0, tol=1e-9).fit(X, y).certificate_.primal, rel=1e-6)
        assert certificate.relative_gap <= 1e-6


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("epsilon", [0.0, 0.15])
class TestSolversAgree:
    def test_on_the_optimum(self, data, kernel, epsilon):
        X, y = data
        by_pairs = [SMO(rule) for rule in RULES] + [SMO("second_order", shrinking=False)]
        active = [ActiveSet(), ActiveSet("shrinking"), ActiveSet("full", start="cold"), ActiveSet(start="ipm")]
        solvers = [BlockSMO(), BlockSMO(size=8), IPM(), *by_pairs, *active]
        found = [SVR(2.0, epsilon=epsilon, kernel=kernel, solver=solver, tol=1e-7).fit(X, y) for solver in solvers]
        assert {model.status_ for model in found} == {Status.OPTIMAL}
        low, high = (
            pick(side)
            for pick, side in zip(
                (max, min),
                zip(*((m.certificate_.dual, m.certificate_.primal) for m in found), strict=True),
                strict=True,
            )
        )
        assert low <= high
        assert high - low <= 1e-7 * high
        expected = found[0].predict(X)
        for model in found:
            np.testing.assert_allclose(model.predict(X), expected, atol=5e-3)

    @pytest.mark.parametrize("rule", RULES)
    def test_the_word_for_a_rule(self, data, kernel, epsilon, rule):
        X, y = data
        model = SVR(kernel=kernel, epsilon=epsilon, working_set=rule).fit(X, y)
        assert model.status_ is Status.OPTIMAL


@pytest.mark.parametrize("solver", SOLVERS)
class TestRelations:
    """Fits whose solutions follow from each other."""

    def fit(self, X, y, weights=None, C=2.0, epsilon=0.1, **options):
        return SVR(C, epsilon=epsilon, gamma=0.3, tol=1e-10, **options).fit(X, y, weights)

    def test_a_weight_of_two_is_the_row_twice_and_of_zero_without_it(self, data, solver):
        X, y = data
        weights = np.arange(len(y)) % 3
        rows = np.repeat(np.arange(len(y)), weights)
        weighted, repeated = self.fit(X, y, weights, solver=solver), self.fit(X[rows], y[rows], solver=solver)
        np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-6)
        assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-8)
        assert weights[weighted.support_].min() > 0

    def test_a_shift_of_y_is_one_of_the_intercept(self, data, solver):
        X, y = data
        here, there = self.fit(X, y, solver=solver), self.fit(X, y + 1000.0, solver=solver)
        np.testing.assert_allclose(there.intercept_ - 1000.0, here.intercept_, atol=1e-6)
        np.testing.assert_allclose(there.predict(X) - 1000.0, here.predict(X), atol=1e-6)

    @pytest.mark.parametrize("scale", [1e-6, 1e5])
    def test_units_of_y(self, data, solver, scale):
        X, y = data
        one = self.fit(X, y, solver=solver)
        other = self.fit(X, scale * y, C=scale * 2.0, epsilon=scale * 0.1, solver=solver)
        np.testing.assert_allclose(other.predict(X) / scale, one.predict(X), atol=1e-6)
        assert other.certificate_.primal / scale**2 == pytest.approx(one.certificate_.primal, rel=1e-8)

    def test_a_mirror_image(self, data, solver):
        X, y = data
        np.testing.assert_allclose(
            -self.fit(X, -y, solver=solver).predict(X), self.fit(X, y, solver=solver).predict(X), atol=1e-6
        )

    def test_the_order_of_rows_does_not_matter(self, data, solver):
        X, y = data
        order = np.random.default_rng(3).permutation(len(y))
        np.testing.assert_allclose(
            self.fit(X[order], y[order], solver=solver).predict(X), self.fit(X, y, solver=solver).predict(X), atol=1e-6
        )

    def test_a_linear_kernel_is_the_linear_estimator(self, data, solver):
        X, y = data
        kernel = SVR(0.3, epsilon=0.1, kernel="linear", solver=solver, tol=1e-9).fit(X, y)
        linear = LinearSVR(0.3, epsilon=0.1, tol=1e-9).fit(X, y)
        assert kernel.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=1e-8)
        np.testing.assert_allclose(kernel.coef_[0], linear.coef_, atol=1e-4)
        np.testing.assert_allclose(kernel.predict(X), linear.predict(X), atol=1e-4)


class TestStorage:
    @pytest.mark.parametrize("make", [np.asfortranarray, sp.csr_matrix, sp.csr_array, sp.csc_array, pd.DataFrame])
    def test_forms_of_the_same_numbers(self, data, make):
        X, y = data
        rows = make(X)
        if isinstance(rows, pd.DataFrame):
            rows.columns = ["a", "b", "c", "d"]
        found = SVR(tol=1e-8).fit(rows, y).predict(rows)
        np.testing.assert_allclose(found, SVR(tol=1e-8).fit(X, y).predict(X), atol=1e-6)

    def test_names_of_columns(self, data):
        X, y = data
        model = SVR().fit(pd.DataFrame(X, columns=["a", "b", "c", "d"]), pd.Series(y))
        assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            model.predict(X)

    def test_single_precision(self, data):
        X, y = (part.astype(np.float32) for part in data)
        model = SVR().fit(X, y)
        assert model.support_vectors_.dtype == np.float32
        assert model.dual_coef_.dtype == model.predict(X).dtype == np.float64
        np.testing.assert_allclose(model.predict(X), SVR().fit(X.astype(float), y.astype(float)).predict(X), atol=1e-5)

    def test_integers(self):
        X, y = np.arange(24).reshape(12, 2) % 7, np.arange(12) % 5
        for kind in (np.int64, np.int8, np.uint8):
            found = SVR(tol=1e-8).fit(X.astype(kind), y.astype(kind)).predict(X.astype(kind))
            np.testing.assert_allclose(found, SVR(tol=1e-8).fit(X * 1.0, y * 1.0).predict(X * 1.0), atol=1e-8)

    @pytest.mark.parametrize("solver", SOLVERS)
    def test_kernels_of_the_user(self, data, solver):
        X, y = data
        K = rbf_kernel(X, gamma=0.25)
        expected = SVR(gamma=0.25, tol=1e-9).fit(X, y).predict(X)
        given = SVR(kernel="precomputed", solver=solver, tol=1e-9).fit(K, y)
        computed = SVR(kernel=lambda a, b: rbf_kernel(a, b, gamma=0.25), solver=solver, tol=1e-9).fit(X, y)
        np.testing.assert_allclose(given.predict(K), expected, atol=1e-5)
        np.testing.assert_allclose(computed.predict(X), expected, atol=1e-5)
        assert given.support_vectors_.shape == svm.SVR(kernel="precomputed").fit(K, y).support_vectors_.shape

    def test_many_rows_in_single_precision_kernels(self):
        X, y = make_data(1500, 5, seed=4)
        model = SVR(C=3.0).fit(X, y)
        assert model.status_ is Status.OPTIMAL
        assert certify(model, X, y).relative_gap <= 1e-3


class TestTools:
    def test_pipeline_grid_and_cross_validation(self):
        X, y = load_diabetes(return_X_y=True)
        model = make_pipeline(StandardScaler(), SVR(epsilon=5.0))
        search = GridSearchCV(model, {"svr__C": [1.0, 30.0], "svr__epsilon": [0.0, 10.0]}, cv=3).fit(X, y)
        assert search.best_score_ > 0.4
        assert cross_val_score(clone(search.best_estimator_), X, y, cv=3).mean() > 0.4

    @pytest.mark.parametrize("solver", ["auto", "smo", "active_set"])
    def test_a_path_over_C(self, data, solver):
        X, y = data
        estimator = SVR(solver=solver, tol=1e-7)
        for model in c_path(estimator, X, y, [0.1, 1.0, 10.0, 0.5]):
            alone = clone(estimator).set_params(C=model.C).fit(X, y)
            assert model.status_ is Status.OPTIMAL
            assert model.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=2e-7)

    def test_certify_says_what_the_fit_said(self, data):
        X, y = data
        weights = np.linspace(0.0, 2.0, len(y))
        model = SVR().fit(X, y, weights)
        again = certify(model, X, y, weights)
        assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
        assert again.dual == pytest.approx(model.certificate_.dual, rel=1e-9)
