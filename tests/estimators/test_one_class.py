"""OneClassSVM and LinearOneClassSVM: known optima, scikit-learn's answers, and relations between fits.

Where nu times the number of rows is a whole number there may be no row on the boundary, and then more than one offset
is optimal. Fits that are compared row by row have another nu.
"""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.datasets import load_wine
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from softmargin import IPM, SMO, ActiveSet, BlockSMO, LinearOneClassSVM, OneClassSVM, Status, certify
from softmargin.solvers.smo.smo import RULES

SOLVERS = ["auto", "block", "smo", "active_set", "ipm", "ocas"]
LINEAR = [LinearOneClassSVM(solver=solver) for solver in ("ocas", "cpa")]
LINEAR += [OneClassSVM(kernel="linear", solver=solver) for solver in SOLVERS]


def ids(model):
    return f"{type(model).__name__}-{model.solver}"


def fresh(model, **parameters):
    return type(model)(**(model.get_params() | parameters))


@pytest.fixture(scope="module")
def cloud():
    """Rows away from the origin, so that a plane can separate them from it."""
    rng = np.random.default_rng(5)
    return rng.standard_normal((90, 3)) + np.array([3.0, 2.0, 4.0])


def objective(model, K, weights=None):
    weights = np.ones(len(K)) if weights is None else weights
    beta = np.zeros(len(K))
    beta[model.support_] = np.ravel(model.dual_coef_)
    f, rho = K @ beta, float(np.ravel(model.offset_)[0])
    return 0.5 * beta @ f + np.sum(weights * np.maximum(0.0, rho - f)) - rho * model.nu * weights.sum()


@pytest.mark.parametrize("model", LINEAR, ids=ids)
class TestHandWorked:
    def test_two_rows_of_which_one_may_be_outside(self, model):
        """x = 1, 3 and nu = 1/2: the dual variables sum to 1, and the row next to the origin gets all of it."""
        found = fresh(model, nu=0.5, tol=1e-9).fit([[1.0], [3.0]])
        np.testing.assert_allclose(found.coef_, [[1.0]], rtol=1e-8)
        assert 1.0 - 1e-8 <= found.offset_[0] <= 3.0  # any offset between the two rows is optimal
        assert found.certificate_.primal == pytest.approx(-0.5, rel=1e-8)
        np.testing.assert_allclose(found.score_samples([[2.0], [-1.0]]), [2.0, -1.0], rtol=1e-8)

    def test_two_rows_inside(self, model):
        """nu = 1/4: all of 1/2 goes to x = 1, which is then on the boundary: w = 1/2 and the offset 1/2."""
        found = fresh(model, nu=0.25, tol=1e-9).fit([[1.0], [3.0]])
        np.testing.assert_allclose(found.coef_, [[0.5]], rtol=1e-8)
        np.testing.assert_allclose(found.offset_, [0.5], rtol=1e-8)
        assert found.predict([[0.9], [1.1], [3.0]]).tolist() == [-1, 1, 1]
        assert found.certificate_.primal == pytest.approx(-0.125, rel=1e-8)

    @pytest.mark.parametrize("nu", [1e-9, 0.3, 1.0])
    def test_one_row(self, model, nu):
        found = fresh(model, nu=nu).fit([[3.0, 4.0]])
        np.testing.assert_allclose(found.coef_, nu * np.array([[3.0, 4.0]]), rtol=1e-6)
        assert found.status_ is Status.OPTIMAL

    def test_all_rows_equal(self, model):
        found = fresh(model, nu=0.5, tol=1e-9).fit(np.full((6, 2), 2.0))
        np.testing.assert_allclose(found.coef_, [[6.0, 6.0]], rtol=1e-8)
        np.testing.assert_allclose(found.offset_, [24.0], rtol=1e-8)


@pytest.mark.parametrize("model", LINEAR, ids=ids)
class TestAroundTheOrigin:
    """The optimum is w = 0, which is no model: that is said, and no row is called an outlier for it."""

    @pytest.mark.parametrize("nu", [0.01, 0.5, 0.9])
    def test_one_warning_says_the_cause_and_what_to_do(self, model, nu):
        X = StandardScaler().fit_transform(load_wine().data)
        with pytest.warns() as caught:
            found = fresh(model, nu=nu).fit(X)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        text = str(caught[0].message)
        assert "the optimum is w = 0" in text
        assert "Do not centre the data" in text
        assert "kernel such as 'rbf'" in text
        assert found.status_ is Status.OPTIMAL
        np.testing.assert_allclose(found.coef_, 0.0, atol=1e-6)

    def test_exactly_zero_weights_call_no_row_an_outlier(self, model):
        with pytest.warns(UserWarning, match="the optimum is w = 0"):
            found = fresh(model).fit(np.zeros((5, 2)))
        assert not found.coef_.any()
        assert found.predict([[0.0, 0.0], [5.0, -7.0]]).tolist() == [1, 1]

    def test_rows_on_one_side_are_not_warned_of(self, model, cloud):
        assert fresh(model).fit(cloud).certificate_.primal < 0.0

    def test_an_early_end_has_its_own_warning_only(self, cloud, model):
        X = cloud - cloud.mean(axis=0)
        with pytest.warns() as caught:
            found = fresh(model, max_seconds=1e-9, tol=1e-12).fit(X)
        assert len(caught) == 1
        assert ("the optimum is w = 0" in str(caught[0].message)) == found.status_.reached_goal


class TestLikeScikitLearn:
    @pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
    @pytest.mark.parametrize("nu", [0.05, 0.5, 0.95])
    def test_objective_scores_and_offset(self, cloud, kernel, nu):
        options = {"nu": nu, "kernel": kernel, "gamma": 0.2, "coef0": 1.0, "degree": 2, "tol": 1e-9}
        ours, theirs = (kind(**options).fit(cloud) for kind in (OneClassSVM, svm.OneClassSVM))
        K = {
            "rbf": rbf_kernel(cloud, gamma=0.2),
            "linear": cloud @ cloud.T,
            "poly": polynomial_kernel(cloud, None, 2, 0.2, 1.0),
        }[kernel]
        size = abs(objective(theirs, K))
        assert objective(ours, K) <= objective(theirs, K) + 1e-8 * size
        assert ours.certificate_.primal == pytest.approx(objective(ours, K), rel=1e-9)
        scores = theirs.score_samples(cloud)
        np.testing.assert_allclose(ours.score_samples(cloud), scores, rtol=1e-4, atol=1e-6 * np.abs(scores).max())
        np.testing.assert_allclose(ours.offset_, theirs.offset_, rtol=1e-3)
        sure = np.abs(theirs.decision_function(cloud)) > 1e-3 * np.abs(scores).max()
        np.testing.assert_array_equal(ours.predict(cloud)[sure], theirs.predict(cloud)[sure])

    @pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.csr_array])
    def test_attributes(self, cloud, make):
        options = {"nu": 0.23, "kernel": "linear", "tol": 1e-9}
        ours, theirs = (kind(**options).fit(make(cloud)) for kind in (OneClassSVM, svm.OneClassSVM))
        for name in ("support_", "n_support_", "dual_coef_", "intercept_", "offset_", "coef_", "support_vectors_"):
            mine, other = (getattr(model, name) for model in (ours, theirs))
            assert mine.dtype == other.dtype, name
            assert mine.ndim == other.ndim, name
        for name in ("intercept_", "offset_", "coef_"):
            mine, other = (getattr(model, name) for model in (ours, theirs))
            np.testing.assert_allclose(mine, other.toarray() if sp.issparse(other) else other, rtol=1e-4)
        assert ours.shape_fit_ == theirs.shape_fit_
        assert ours.fit_status_ == theirs.fit_status_ == 0
        np.testing.assert_array_equal(ours.intercept_, -ours.offset_)

    def test_weights(self, cloud):
        weights = np.random.default_rng(1).uniform(0.1, 3.0, len(cloud))
        ours = OneClassSVM(0.3, gamma=0.1, tol=1e-9).fit(cloud, sample_weight=weights)
        theirs = svm.OneClassSVM(nu=0.3, gamma=0.1, tol=1e-9).fit(cloud, sample_weight=weights)
        found, other = ours.score_samples(cloud), theirs.score_samples(cloud)
        np.testing.assert_allclose(found / found.max(), other / other.max(), atol=0.1)  # they scale nu otherwise
        assert ours.certificate_.primal == pytest.approx(
            objective(ours, rbf_kernel(cloud, gamma=0.1), weights), rel=1e-9
        )

    def test_all_rows_at_their_bounds(self, cloud):
        """nu = 1, which scikit-learn's estimator refuses: every dual variable is its weight."""
        model = OneClassSVM(1.0).fit(cloud)
        np.testing.assert_array_equal(model.dual_coef_, np.ones((1, len(cloud))))
        assert model.status_ is Status.OPTIMAL


@pytest.mark.parametrize("nu", [0.02, 0.1, 0.5, 0.8])
class TestShareOfOutliers:
    @pytest.mark.parametrize("estimator", [OneClassSVM, LinearOneClassSVM])
    def test_nu_is_between_outliers_and_support_vectors(self, cloud, estimator, nu):
        model = estimator(nu, tol=1e-9).fit(cloud)
        scores, n = model.decision_function(cloud), len(cloud)
        near = 1e-6 * np.abs(model.offset_[0])
        assert np.count_nonzero(scores < -near) <= nu * n + 1e-9
        assert np.count_nonzero(scores <= near) >= nu * n - 1e-9
        np.testing.assert_allclose(model.score_samples(cloud) - model.offset_, scores, atol=1e-9 * np.abs(scores).max())
        np.testing.assert_array_equal(model.predict(cloud), np.where(scores >= 0.0, 1, -1))
        np.testing.assert_array_equal(model.fit_predict(cloud), model.predict(cloud))

    def test_solvers_agree(self, cloud, nu):
        for kernel in ("rbf", "linear"):
            by_pairs = [SMO(rule) for rule in RULES if rule != "maximum_gain"]  # it may get stuck, as its paper says
            active = [ActiveSet(), ActiveSet("shrinking"), ActiveSet("full", start="cold"), ActiveSet(start="ipm")]
            solvers = [BlockSMO(), BlockSMO(size=8), IPM(), *by_pairs, *active]
            found = [OneClassSVM(nu, kernel=kernel, solver=solver, tol=1e-7).fit(cloud) for solver in solvers]
            assert {model.status_ for model in found} == {Status.OPTIMAL}
            high, low = (min(m.certificate_.primal for m in found), max(m.certificate_.dual for m in found))
            assert low <= high <= low + 1e-7 * abs(low)
            for model in found:
                scores = model.score_samples(cloud)
                np.testing.assert_allclose(scores, found[0].score_samples(cloud), atol=1e-3 * np.abs(scores).max())

    def test_a_linear_kernel_is_the_linear_estimator(self, cloud, nu):
        kernel, linear = (
            OneClassSVM(nu, kernel="linear", tol=1e-9).fit(cloud),
            LinearOneClassSVM(nu, tol=1e-9).fit(cloud),
        )
        assert kernel.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=1e-8)
        np.testing.assert_allclose(kernel.coef_, linear.coef_, rtol=1e-3)
        np.testing.assert_allclose(kernel.offset_, linear.offset_, rtol=1e-3)


MODELS = [*LINEAR, *(OneClassSVM(gamma=0.1, solver=solver) for solver in SOLVERS)]


@pytest.mark.parametrize("model", MODELS, ids=lambda m: f"{ids(m)}-{getattr(m, 'kernel', '')}")
class TestRelations:
    def test_a_weight_of_two_is_the_row_twice_and_of_zero_without_it(self, cloud, model):
        weights = np.arange(len(cloud)) % 3
        weighted = fresh(model, nu=0.31, tol=1e-9).fit(cloud, sample_weight=weights)
        repeated = fresh(model, nu=0.31, tol=1e-9).fit(np.repeat(cloud, weights, axis=0))
        size = np.abs(repeated.decision_function(cloud)).max()
        np.testing.assert_allclose(
            weighted.decision_function(cloud), repeated.decision_function(cloud), atol=1e-3 * size
        )
        assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-8)

    @pytest.mark.parametrize("factor", [1e-9, 1e9])
    def test_weights_in_another_unit(self, cloud, model, factor):
        one = fresh(model, nu=0.31, tol=1e-9).fit(cloud)
        other = fresh(model, nu=0.31, tol=1e-9).fit(cloud, sample_weight=np.full(len(cloud), factor))
        assert other.certificate_.primal / factor**2 == pytest.approx(one.certificate_.primal, rel=1e-8)
        np.testing.assert_allclose(other.offset_ / factor, one.offset_, rtol=1e-3)

    def test_the_order_of_rows_does_not_matter(self, cloud, model):
        order = np.random.default_rng(3).permutation(len(cloud))
        one, other = (fresh(model, nu=0.23, tol=1e-9).fit(X) for X in (cloud, cloud[order]))
        size = np.abs(one.decision_function(cloud)).max()
        np.testing.assert_allclose(other.decision_function(cloud), one.decision_function(cloud), atol=1e-3 * size)

    def test_y_is_not_looked_at(self, cloud, model):
        one, other = fresh(model).fit(cloud), fresh(model).fit(cloud, y=["any", "thing"])
        np.testing.assert_array_equal(one.decision_function(cloud), other.decision_function(cloud))

    @pytest.mark.parametrize("make", [np.asfortranarray, sp.csr_matrix, sp.csr_array, np.float32, pd.DataFrame])
    def test_forms_of_the_same_numbers(self, cloud, model, make):
        rows = make(cloud)
        if isinstance(rows, pd.DataFrame):
            rows.columns = [*"abc"]
        one, other = (fresh(model, nu=0.17, tol=1e-9).fit(X) for X in (cloud, rows))
        size = np.abs(one.decision_function(cloud)).max()
        np.testing.assert_allclose(other.decision_function(rows), one.decision_function(cloud), atol=1e-3 * size)

    def test_certify_says_what_the_fit_said(self, cloud, model):
        weights = np.linspace(0.0, 2.0, len(cloud))
        found = fresh(model).fit(cloud, sample_weight=weights)
        again = certify(found, cloud, sample_weight=weights)
        assert again.primal == pytest.approx(found.certificate_.primal, rel=1e-9)
        assert again.dual == pytest.approx(found.certificate_.dual, rel=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_kernels_of_the_user(cloud, solver):
    K = rbf_kernel(cloud, gamma=0.1)
    expected = OneClassSVM(0.2, gamma=0.1, tol=1e-9).fit(cloud).decision_function(cloud)
    given = OneClassSVM(0.2, kernel="precomputed", solver=solver, tol=1e-9).fit(K)
    computed = OneClassSVM(0.2, kernel=lambda a, b: rbf_kernel(a, b, gamma=0.1), solver=solver, tol=1e-9).fit(cloud)
    np.testing.assert_allclose(given.decision_function(K), expected, atol=1e-5)
    np.testing.assert_allclose(computed.decision_function(cloud), expected, atol=1e-5)


def test_pipeline_and_grid():
    X, y = load_wine(return_X_y=True)
    inside = np.where(y == 0, 1, -1)
    model = make_pipeline(StandardScaler(), OneClassSVM(0.1))
    assert (model.fit(X[y == 0]).predict(X) == inside).mean() > 0.9
    search = GridSearchCV(model, {"oneclasssvm__nu": [0.05, 0.3]}, scoring="accuracy", cv=3).fit(X, inside)
    assert set(search.predict(X)) == {-1, 1}
    mapped = make_pipeline(MinMaxScaler(), Nystroem(gamma=1.0, random_state=0, n_components=40), LinearOneClassSVM(0.1))
    assert (mapped.fit(X[y == 0]).predict(X) == inside).mean() > 0.9
