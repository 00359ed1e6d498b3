"""Solutions for a list of C, each from the last."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softmargin import SVC, SVR, LinearSVC, LinearSVR, RankSVM, SoftmarginError, c_path


@pytest.fixture(scope="module")
def binary():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize(
    "estimator",
    [
        SVC(solver="active_set"),
        SVC(solver="smo", tol=1e-6),
        SVC(kernel="linear", solver="ipm", tol=1e-6),
        SVC(solver="ocas", tol=1e-6),
        SVR(solver="active_set"),
        SVR(solver="smo", tol=1e-6),
        LinearSVC(tol=1e-6),
        LinearSVC(solver="ocas", tol=1e-6),
        LinearSVC(solver="cpa", tol=1e-6),
        LinearSVC(solver="coordinate", tol=1e-6),
        LinearSVC(solver="coordinate", tol=1e-6, fit_intercept=False),
        LinearSVR(solver="ocas", tol=1e-6),
        RankSVM(tol=1e-6),
    ],
    ids=lambda e: f"{type(e).__name__} {e.solver}",
)
@pytest.mark.parametrize("Cs", [[0.1, 0.3, 1.0, 3.0], [10.0, 1.0]], ids=["rising", "falling"])
def test_every_solution_is_that_of_a_fit(binary, estimator, Cs):
    X, y = binary
    before = clone(estimator)
    models = c_path(estimator, X, y, Cs)
    assert [model.C for model in models] == Cs
    assert estimator.get_params() == before.get_params()
    assert not hasattr(estimator, "certificate_")
    for model in models:
        assert model.status_.reached_goal
        assert not model.warm_start
        assert not hasattr(model, "_state")
        assert hasattr(model, "_training") == (model.solver == "active_set")  # as after a fit
        plain = clone(estimator).set_params(C=model.C).fit(X, y)
        assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2e-3 * estimator.tol + 1e-6)
        assert np.corrcoef(model.predict(X), plain.predict(X))[0, 1] > 0.99


def test_many_classes_and_weights():
    X, y = load_iris(return_X_y=True)
    weights = np.linspace(0.5, 2.0, y.size)
    models = c_path(SVC(solver="active_set"), X, y, [1.0, 2.0, 4.0], sample_weight=weights)
    for model in models:
        plain = SVC(solver="active_set", C=model.C).fit(X, y, sample_weight=weights)
        assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-8)
        np.testing.assert_array_equal(model.n_bounded_, plain.n_bounded_)


def test_numbers_and_weights():
    X, y = load_diabetes(return_X_y=True)
    weights = np.linspace(0.5, 2.0, y.size)
    models = c_path(SVR(epsilon=20.0, solver="active_set"), X, y, [1.0, 2.0, 40.0, 4.0], sample_weight=weights)
    for model in models:
        plain = SVR(epsilon=20.0, solver="active_set", C=model.C).fit(X, y, sample_weight=weights)
        assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-8)
        np.testing.assert_array_equal(model.n_bounded_, plain.n_bounded_)
        np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=1e-6)
    models[-1].forget([0, 1]).partial_fit(X[:2], y[:2])
    assert models[-1].status_.reached_goal


def test_a_start_at_a_neighbouring_C_saves_pivots():
    X, y = make_classification(3000, 10, flip_y=0.2, random_state=0)
    model = SVC(solver="active_set")
    Cs = [1.0, 1.05, 1.1, 1.15]
    path = [m.counts_["iterations"] + m.counts_["pair_steps"] for m in c_path(model, X, y, Cs)]
    fresh = [clone(model).set_params(C=C).fit(X, y).counts_ for C in Cs]
    fresh = [counts["iterations"] + counts["pair_steps"] for counts in fresh]
    assert sum(path[1:]) < 0.5 * sum(fresh[1:])


@pytest.mark.parametrize(
    ("make", "solver"),
    [
        (LinearSVC, "ocas"),
        (LinearSVC, "cpa"),
        (LinearSVC, "coordinate"),
        (LinearSVR, "ocas"),
        (LinearSVR, "coordinate"),
    ],
)
def test_a_linear_start_at_a_neighbouring_C_saves_passes(make, solver):
    X, y = make_classification(2000, 30, flip_y=0.1, random_state=0)
    model = make(solver=solver, tol=1e-4)
    Cs = np.logspace(-2, 0, 9)

    def passes(fitted):
        return fitted.trace_["passes"][-1] - fitted.trace_["passes"][0]

    path = c_path(model, X, y, Cs)
    fresh = [clone(model).set_params(C=C).fit(X, y) for C in Cs]
    for found, other in zip(path, fresh, strict=True):
        assert found.certificate_.relative_gap <= model.tol
        assert found.certificate_.primal == pytest.approx(other.certificate_.primal, rel=2 * model.tol)
    assert sum(map(passes, path[1:])) < 0.6 * sum(map(passes, fresh[1:]))


class TestErrors:
    def test_no_warm_start(self, binary):
        with pytest.raises(SoftmarginError, match="Pipeline has no warm_start"):
            c_path(make_pipeline(StandardScaler(), SVC()), *binary, [1.0])

    def test_C(self, binary):
        with pytest.raises(SoftmarginError, match="C=0"):
            c_path(SVC(), *binary, [1.0, 0])
