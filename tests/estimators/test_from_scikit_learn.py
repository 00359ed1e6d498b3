"""Parameters under the names and with the values that users of scikit-learn know."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC as SklearnLinearSVC

from softmargin import SVC, LinearOneClassSVM, LinearSVC, LinearSVR, OrdinalSVC, RankSVM, SoftmarginError

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)


@pytest.mark.parametrize("model", [LinearSVC(), SVC(), RankSVM(), OrdinalSVC()], ids=lambda model: type(model).__name__)
def test_max_iter_of_minus_one_is_no_limit(model):
    with_limit = model.set_params(max_iter=-1).fit(X, y)
    assert with_limit.status_.reached_goal
    for wrong in (-2, 0, True):
        with pytest.raises(SoftmarginError, match=f"max_iter={wrong!r} must be a positive integer"):
            model.set_params(max_iter=wrong).fit(X, y)


def test_cache_size_is_in_megabytes():
    by_size = SVC(cache_size=0.01, solver="smo").fit(X, y)
    by_bytes = SVC(cache_bytes=0.01 * 2**20, solver="smo").fit(X, y)
    assert by_size.counts_ == by_bytes.counts_
    assert by_size.counts_["misses"] > SVC(cache_size=200, solver="smo").fit(X, y).counts_["misses"]


def test_two_limits_for_one_cache_are_refused():
    with pytest.raises(SoftmarginError, match="set the same limit, in bytes and in MB"):
        SVC(cache_bytes=1e6, cache_size=1).fit(X, y)


@pytest.mark.parametrize("scaling", [0.1, 10.0])
def test_intercept_scaling_is_that_of_scikit_learn(scaling):
    options = {"C": 0.1, "tol": 1e-7, "intercept_scaling": scaling}
    ours = LinearSVC(intercept="penalised", **options).fit(X, y)
    theirs = SklearnLinearSVC(loss="hinge", max_iter=10**6, **options).fit(X, y)
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-3)
    assert np.allclose(ours.intercept_, theirs.intercept_, atol=1e-3)


@pytest.mark.parametrize("settings", [{}, {"fit_intercept": False}])
def test_intercept_scaling_without_a_penalised_intercept_is_refused(settings):
    with pytest.raises(SoftmarginError, match="which this model has not: set intercept='penalised'"):
        LinearSVC(intercept_scaling=2.0, **settings).fit(*load_iris(return_X_y=True))


@pytest.mark.parametrize("estimator", [LinearSVC, LinearSVR, LinearOneClassSVM])
def test_linear_estimators_take_a_random_state(estimator):
    """Coordinate descent visits rows in its order; the default is a fixed one."""
    away = X + 5.0  # from the origin, as one-class estimators need it
    first, again, other = (estimator(random_state=seed).fit(away, y) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.coef_, again.coef_)
    assert (first.coef_ != other.coef_).any()
    np.testing.assert_array_equal(estimator().fit(away, y).coef_, estimator().fit(away, y).coef_)
    with pytest.raises(SoftmarginError, match="random_state=-1 must be an integer of at least 0"):
        estimator(random_state=-1).fit(away, y)
