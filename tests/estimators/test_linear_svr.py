"""LinearSVR: known optima, scikit-learn's answers, relations between fits, and the forms that data come in."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softmargin import CPA, OCAS, LinearSVR, Status, c_path, certify

SOLVERS = ["ocas", "cpa"]
INTERCEPTS = {"free": {}, "penalised": {"intercept": "penalised"}, "none": {"fit_intercept": False}}


def make_data(n=120, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) + 1.5 + 0.5 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def data():
    return make_data()


def objective(model, X, y, weights=1.0, scaling=None):
    """The primal value by its definition; `scaling` is the constant feature of a penalised intercept."""
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    losses = np.maximum(0.0, np.abs(y - X @ w - b) - model.epsilon)
    square = 0.0 if scaling is None else (b / scaling) ** 2
    return 0.5 * (w @ w + square) + model.C * np.sum(weights * losses)


@pytest.mark.parametrize("solver", SOLVERS)
class TestHandWorked:
    """x = -1, 1 and y = -1, 1: w = 1 - epsilon if C allows it, and b = 0."""

    X, y = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])

    @pytest.mark.parametrize("kind", INTERCEPTS)
    def test_with_room(self, solver, kind):
        model = LinearSVR(10.0, epsilon=0.5, solver=solver, tol=1e-9, **INTERCEPTS[kind]).fit(self.X, self.y)
        np.testing.assert_allclose(model.coef_, [0.5], rtol=1e-8)
        np.testing.assert_allclose(model.intercept_, [0.0], atol=1e-8)
        np.testing.assert_allclose(model.dual_, [-0.25, 0.25], rtol=1e-6)
        assert model.certificate_.primal == pytest.approx(0.125, rel=1e-8)

    def test_with_little_C(self, solver):
        model = LinearSVR(0.125, epsilon=0.5, solver=solver, tol=1e-9).fit(self.X, self.y)
        np.testing.assert_allclose(model.coef_, [0.25], rtol=1e-8)
        assert model.certificate_.primal == pytest.approx(0.25**2 / 2 + 0.125 * 2 * 0.25, rel=1e-8)

    def test_the_median_where_the_rows_say_nothing(self, solver):
        model = LinearSVR(solver=solver, tol=1e-9).fit(np.zeros((5, 2)), [0.0, 0.0, 3.0, 4.0, 100.0])
        np.testing.assert_allclose(model.intercept_, [3.0], atol=1e-9)
        assert not model.coef_.any()
        assert model.certificate_.primal == pytest.approx(104.0)

    @pytest.mark.parametrize("kind", INTERCEPTS)
    @pytest.mark.parametrize("epsilon", [1.0, 7.0])
    def test_numbers_that_fit_into_the_tube(self, solver, kind, epsilon):
        model = LinearSVR(epsilon=epsilon, solver=solver, **INTERCEPTS[kind]).fit(self.X, self.y)
        assert model.status_ is Status.OPTIMAL
        assert model.certificate_.primal == pytest.approx(0.0, abs=1e-12)
        np.testing.assert_allclose(model.predict([[0.0], [99.0]]), 0.0, atol=1e-9)

    @pytest.mark.parametrize("value", [0.0, 3.5, -1e9])
    @pytest.mark.parametrize("epsilon", [0.0, 0.25])
    def test_constant_numbers(self, solver, value, epsilon):
        model = LinearSVR(epsilon=epsilon, solver=solver).fit(np.arange(6.0)[:, None], np.full(6, value))
        assert model.status_ is Status.OPTIMAL
        np.testing.assert_allclose(model.predict([[2.5], [1e3]]), value, atol=epsilon + 1e-12)

    @pytest.mark.parametrize("kind", INTERCEPTS)
    def test_one_row(self, solver, kind):
        model = LinearSVR(100.0, solver=solver, tol=1e-9, **INTERCEPTS[kind]).fit([[1.0, 2.0]], [7.0])
        assert model.status_ is Status.OPTIMAL
        assert model.predict([[1.0, 2.0]])[0] == pytest.approx(7.0, abs=1e-6)


class TestLikeScikitLearn:
    @pytest.mark.parametrize("solver", SOLVERS)
    @pytest.mark.parametrize("scaling", [1.0, 10.0])
    @pytest.mark.parametrize("epsilon", [0.0, 0.5])
    def test_penalised_intercept(self, data, solver, scaling, epsilon):
        X, y = data
        ours = LinearSVR(
            0.5, epsilon=epsilon, intercept="penalised", intercept_scaling=scaling, solver=solver, tol=1e-9
        ).fit(X, y)
        theirs = svm.LinearSVR(
            C=0.5, epsilon=epsilon, intercept_scaling=scaling, tol=1e-9, max_iter=10**6, random_state=0
        ).fit(X, y)
        found = objective(ours, X, y, scaling=scaling)
        assert ours.certificate_.primal == pytest.approx(found, rel=1e-9)
        assert found <= objective(theirs, X, y, scaling=scaling) * (1 + 1e-8)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
        assert (ours.coef_.shape, ours.intercept_.shape) == (theirs.coef_.shape, theirs.intercept_.shape)

    def test_without_intercept(self, data):
        X, y = data
        ours = LinearSVR(fit_intercept=False, tol=1e-9).fit(X, y)
        theirs = svm.LinearSVR(fit_intercept=False, tol=1e-9, max_iter=10**6, random_state=0).fit(X, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
        assert ours.intercept_.tolist() == [0.0]

    def test_free_intercept_is_that_of_their_kernel_machine(self, data):
        X, y = data
        ours = LinearSVR(2.0, epsilon=0.2, tol=1e-9).fit(X, y)
        theirs = svm.SVR(C=2.0, epsilon=0.2, kernel="linear", tol=1e-9).fit(X, y)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)
        assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-5)


@pytest.mark.parametrize("kind", INTERCEPTS)
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
class TestRelations:
    """Fits whose solutions follow from each other."""

    def fit(self, kind, X, y, weights=None, C=0.5, epsilon=0.1, **options):
        return LinearSVR(C, epsilon=epsilon, tol=1e-10, **INTERCEPTS[kind], **options).fit(X, y, weights)

    def test_solvers_agree(self, data, kind, epsilon):
        X, y = data
        found = [
            self.fit(kind, X, y, epsilon=epsilon, solver=solver)
            for solver in ("auto", OCAS(), OCAS(mixing=0.5), CPA(), "cpa")
        ]
        assert {model.status_ for model in found} == {Status.OPTIMAL}
        for model in found:
            assert model.certificate_.primal == pytest.approx(found[0].certificate_.primal, rel=1e-9)
            np.testing.assert_allclose(model.coef_, found[0].coef_, atol=1e-4)

    def test_a_weight_of_two_is_the_row_twice_and_of_zero_without_it(self, data, kind, epsilon):
        X, y = data
        weights = np.arange(len(y)) % 3
        rows = np.repeat(np.arange(len(y)), weights)
        weighted = self.fit(kind, X, y, weights, epsilon=epsilon)
        repeated = self.fit(kind, X[rows], y[rows], epsilon=epsilon)
        np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-4)
        assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-9)
        assert not weighted.dual_[weights == 0].any()

    @pytest.mark.parametrize("scale", [1e-6, 1e5])
    def test_units_of_y(self, data, kind, epsilon, scale):
        X, y = data
        one = self.fit(kind, X, y, epsilon=epsilon)
        other = self.fit(kind, X, scale * y, C=scale * 0.5, epsilon=scale * epsilon)
        np.testing.assert_allclose(other.predict(X) / scale, one.predict(X), atol=1e-4)
        assert other.certificate_.primal / scale**2 == pytest.approx(one.certificate_.primal, rel=1e-8)

    def test_the_order_of_rows_and_a_mirror_image(self, data, kind, epsilon):
        X, y = data
        order = np.random.default_rng(3).permutation(len(y))
        one = self.fit(kind, X, y, epsilon=epsilon)
        for other in (
            self.fit(kind, X[order], y[order], epsilon=epsilon).predict(X),
            -self.fit(kind, X, -y, epsilon=epsilon).predict(X),
            self.fit(kind, -X, y, epsilon=epsilon).predict(-X),
        ):
            np.testing.assert_allclose(other, one.predict(X), atol=1e-4)


def test_a_shift_of_y_is_one_of_the_intercept(data):
    X, y = data
    here, there = (LinearSVR(epsilon=0.1, tol=1e-10).fit(X, target) for target in (y, y + 1000.0))
    np.testing.assert_allclose(there.intercept_ - 1000.0, here.intercept_, atol=1e-4)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-4)


class TestStorage:
    @pytest.mark.parametrize("make", [np.asfortranarray, sp.csr_matrix, sp.csr_array, sp.csc_array, pd.DataFrame])
    def test_forms_of_the_same_numbers(self, data, make):
        X, y = data
        rows = make(X)
        if isinstance(rows, pd.DataFrame):
            rows.columns = [*"abcde"]
        found = LinearSVR(tol=1e-9).fit(rows, y).predict(rows)
        np.testing.assert_allclose(found, LinearSVR(tol=1e-9).fit(X, y).predict(X), atol=1e-4)

    def test_single_precision_and_integers(self, data):
        X, y = (part.astype(np.float32) for part in data)
        model = LinearSVR(tol=1e-8).fit(X, y)
        assert model.coef_.dtype == model.intercept_.dtype == model.predict(X).dtype == np.float64
        np.testing.assert_allclose(model.coef_, LinearSVR(tol=1e-8).fit(X.astype(float), y).coef_, atol=1e-4)
        whole = np.rint(3 * X).astype(np.int16)
        found = LinearSVR(tol=1e-8).fit(whole, np.rint(y).astype(int))
        np.testing.assert_allclose(found.coef_, LinearSVR(tol=1e-8).fit(whole * 1.0, np.rint(y)).coef_, atol=1e-6)

    def test_columns_without_entries(self, data):
        X, y = data
        wide = sp.csr_array(
            (X.ravel(), np.tile(np.arange(5) * 1000, len(y)), np.arange(len(y) + 1) * 5), (len(y), 9999)
        )
        model = LinearSVR(tol=1e-9).fit(wide, y)
        assert model.coef_.shape == (9999,)
        np.testing.assert_allclose(model.coef_[:5000:1000], LinearSVR(tol=1e-9).fit(X, y).coef_, atol=1e-4)


class TestTools:
    def test_pipeline_grid_and_cross_validation(self):
        X, y = load_diabetes(return_X_y=True)
        model = make_pipeline(StandardScaler(), LinearSVR())
        search = GridSearchCV(model, {"linearsvr__C": [0.1, 1.0], "linearsvr__epsilon": [0.0, 10.0]}, cv=3).fit(X, y)
        assert search.best_score_ > 0.4
        assert cross_val_score(clone(search.best_estimator_), X, y, cv=3).mean() > 0.4

    @pytest.mark.parametrize("solver", SOLVERS)
    def test_a_path_over_C(self, data, solver):
        X, y = data
        estimator = LinearSVR(epsilon=0.1, solver=solver, tol=1e-7)
        for model in c_path(estimator, X, y, [0.01, 0.1, 1.0, 0.05]):
            alone = clone(estimator).set_params(C=model.C).fit(X, y)
            assert model.status_ is Status.OPTIMAL
            assert model.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=2e-7)

    @pytest.mark.parametrize("kind", INTERCEPTS)
    def test_certify_says_what_the_fit_said(self, data, kind):
        X, y = data
        weights = np.linspace(0.0, 2.0, len(y))
        model = LinearSVR(epsilon=0.1, **INTERCEPTS[kind]).fit(X, y, weights)
        again = certify(model, X, y, weights)
        assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
        assert again.dual == pytest.approx(model.certificate_.dual, rel=1e-9)
