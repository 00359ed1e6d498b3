"""`SVC(solver="ipm")`, and interior points as a start of the active set."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import StandardScaler

from softmargin import IPM, SVC, ActiveSet, SoftmarginError, Status, certify, load


@pytest.fixture(scope="module")
def binary():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("C", [1e-4, 0.01, 1.0, 100.0])
def test_the_linear_kernel_to_the_exact_sets(binary, C):
    X, y = binary
    model = SVC(kernel="linear", C=C, solver="ipm", tol=1e-9).fit(X, y)
    exact = SVC(kernel="linear", C=C, solver="active_set").fit(X, y)
    assert model.status_ is Status.OPTIMAL
    assert model.n_iter_[0] <= 25
    assert model.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-8)
    np.testing.assert_array_equal(model.n_bounded_, exact.n_bounded_)
    assert certify(model, X, y).relative_gap <= 1e-9


def test_many_classes_weights_and_files(tmp_path):
    X, y = load_iris(return_X_y=True)
    weights = np.linspace(0.0, 2.0, y.size)
    model = SVC(kernel="poly", degree=2, gamma=0.1, coef0=1.0, solver=IPM(max_rank=20), tol=1e-6)
    model.fit(X, y, sample_weight=weights)
    assert model.certificate_.relative_gap <= 1e-6
    model.save(tmp_path / "m.model")
    again = load(tmp_path / "m.model")
    assert again.solver == IPM(max_rank=20)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_start_for_the_active_set(binary, kernel):
    X, y = binary
    setting = {"kernel": kernel, "C": 10.0}
    cold = SVC(solver=ActiveSet(start="cold"), **setting).fit(X, y)
    warm = SVC(solver=ActiveSet(start="ipm"), **setting).fit(X, y)
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-9)
    assert (warm.n_free_, warm.n_bounded_) == (cold.n_free_, cold.n_bounded_)
    assert warm.counts_["iterations"] < cold.counts_["iterations"]


class TestErrors:
    def test_a_matrix_of_full_rank(self):
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((80, 30)), np.arange(80) % 2
        with pytest.raises(SoftmarginError, match=r"not of rank 20 or less.*max_rank.*solver='auto'"):
            SVC(solver=IPM(max_rank=20)).fit(X, y)

    def test_an_indefinite_kernel(self, binary):
        with pytest.raises(SoftmarginError, match=r"not positive semi-definite.*solver='ipm'"):
            SVC(kernel="sigmoid", gamma=1.0, coef0=-2.0, solver="ipm").fit(*binary)

    def test_a_rule_for_pairs(self, binary):
        with pytest.raises(SoftmarginError, match="solver='ipm' has none"):
            SVC(solver="ipm", working_set="second_order").fit(*binary)

    def test_options(self):
        with pytest.raises(SoftmarginError, match="max_rank=0"):
            IPM(max_rank=0)
        with pytest.raises(SoftmarginError, match="rank=0"):
            ActiveSet(rank=0)
