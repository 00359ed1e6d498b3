"""Bad input to SVC: each mistake gets an error that names its cause, and none reaches a solver."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from softmargin import OCAS, SGD, SMO, SVC, ActiveSet, BlockSMO, SoftmarginError, Status

X = np.array([[0.0, 1.0], [1.0, 0.5], [2.0, -1.0], [3.0, 0.0], [4.0, 2.0], [5.0, 1.5]])
Y = np.array([0, 0, 0, 1, 1, 1])
K = X @ X.T


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"C": 0}, r"C=0 must be a positive"),
        ({"C": np.inf}, r"C=inf must be a positive, finite"),
        ({"C": 1e308, "class_weight": {0: 1e9}}, r"overflows: make C or the weights smaller"),
        ({"tol": -1.0}, r"tol=-1\.0 must be a finite number of at least 0"),
        ({"tol": 1.5}, r"tol=1\.5 asks for nothing, because w = 0 meets it before any training: .* below 1"),
        ({"tol": 2.0, "stopping": "kkt"}, r"tol=2\.0 asks for nothing, .* below 2"),
        ({"solver": OCAS()}, r"solver=OCAS\(.*\) adds cutting planes to a linear problem, for LinearSVC.* use 'auto'"),
        ({"solver": SGD()}, r"visits the rows of a linear problem one at a time, for LinearSVC; it cannot solve"),
        (
            {"solver": SMO(stopping="epsilon")},
            r"stopping of the solver='epsilon' is unknown: choose one of 'relative_g",
        ),
        ({"kernel": "tanh"}, r"kernel='tanh' is unknown: choose one of 'linear', 'poly', 'rbf'"),
        ({"kernel": None}, r"kernel=None is unknown"),
        ({"gamma": 0}, r"gamma=0 must be a positive, finite number, 'scale' or 'auto'"),
        ({"gamma": -0.5}, r"gamma=-0\.5 must be a positive"),
        ({"gamma": np.nan}, r"gamma=nan must be a positive"),
        ({"gamma": "wide"}, r"gamma='wide' is unknown: choose one of 'scale', 'auto'"),
        ({"gamma": True}, r"gamma=True must be a positive"),
        ({"gamma": None}, r"gamma=None must be a positive"),
        ({"kernel": "poly", "degree": 1.5}, r"degree=1\.5 must be an integer of at least 0"),
        ({"kernel": "poly", "degree": -1}, r"degree=-1 must be an integer"),
        ({"kernel": "poly", "coef0": np.inf}, r"coef0=inf must be a finite number"),
        ({"solver": "newton"}, r"solver='newton' is unknown: choose one of 'auto', 'block', 'smo'"),
        ({"solver": 3}, r"solver=3 is neither a name .* nor a solver object such as softmargin\.SMO\(\)"),
        ({"solver": BlockSMO}, r"is neither a name .* nor a solver object"),
        ({"working_set": "worst"}, r"working_set='worst' is unknown: choose one of 'auto', 'most_violating_pair'"),
        ({"working_set": None}, r"working_set=None is unknown"),
        (
            {"solver": "block", "working_set": "second_order"},
            r"working_set='second_order' is a rule for pairs, but solver='block' works on blocks: use solver='smo'",
        ),
        ({"stopping": "soon"}, r"stopping='soon' is unknown: choose one of 'gap', 'kkt', 'gain'"),
        (
            {"stopping": "gain", "solver": "block"},
            r"stopping='gain' is a rule for pair steps, but solver='block' makes",
        ),
        (
            {"stopping": "gain", "solver": ActiveSet()},
            r"stopping='gain' is a rule for pair steps, .* or stopping='kkt'",
        ),
        ({"decision_function_shape": "ova"}, r"decision_function_shape='ova' is unknown: choose one of 'ovr', 'ovo'"),
        ({"cache_bytes": 0}, r"cache_bytes=0 must be a positive"),
        ({"cache_bytes": "1 GB"}, r"cache_bytes='1 GB' must be a positive"),
        ({"cache_bytes": 95}, r"a cache of 95 bytes cannot hold two rows .* at least 96"),
        ({"n_jobs": 0}, r"n_jobs=0 is not a number of threads"),
        ({"max_iter": 0}, r"max_iter=0 must be a positive integer or None"),
        ({"max_seconds": -2.0}, r"max_seconds=-2\.0 must be a positive number or None"),
        ({"class_weight": {7: 2.0}}, r"class_weight names classes that are not in y: \[7\]"),
        ({"class_weight": {0: 0.0}}, r"same class: give at least two classes a positive weight"),
    ],
    ids=str,
)
def test_parameters(parameters, text):
    model = SVC(**parameters)
    with pytest.raises(SoftmarginError, match=text):
        model.fit(X, Y)
    assert not hasattr(model, "dual_coef_")


def test_an_unused_parameter_is_not_looked_at():
    SVC(kernel="linear", gamma="no matter", degree=-1).fit(X, Y)


@pytest.mark.parametrize("weights", [[1, 1, 1, 0, 0, 0], [0] * 6, [1, 1, 1, 1, 1, -1], [1, 2], [np.nan] * 6], ids=str)
def test_sample_weights(weights):
    with pytest.raises(SoftmarginError, match="weight"):
        SVC().fit(X, Y, np.array(weights, dtype=float))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    ("scale", "parameters", "text"),
    [
        (1e60, {"kernel": "poly", "gamma": 1.0}, r"values of the kernel 'poly' overflow on these rows: scale"),
        (1e160, {"kernel": "linear"}, r"values of the kernel 'linear' overflow"),
        (1e160, {}, r"gamma='scale' needs the variance of X, which overflows: scale the features"),
        (1e300, {}, r"gamma='scale' needs the variance"),
    ],
    ids=str,
)
def test_values_beyond_all_numbers(make, scale, parameters, text):
    with pytest.raises(SoftmarginError, match=text):
        SVC(**parameters).fit(make(X * scale), Y)


class TestPrecomputed:
    def fit(self, matrix):
        return SVC(kernel="precomputed").fit(matrix, Y)

    def test_not_square(self):
        with pytest.raises(SoftmarginError, match=r"must be the square matrix .* but it has shape \(6, 2\)"):
            self.fit(X)

    def test_not_symmetric(self):
        spoiled = K.copy()
        spoiled[4, 1] += 2.5
        with pytest.raises(SoftmarginError, match=r"not symmetric: .* by up to 2\.5\. Use \(K \+ K\.T\) / 2"):
            self.fit(spoiled)

    def test_not_symmetric_in_a_later_block(self, monkeypatch):
        monkeypatch.setattr("softmargin.estimators.validation._BLOCK_VALUES", 12)
        spoiled = K.copy()
        spoiled[5, 4] += 2.5
        with pytest.raises(SoftmarginError, match="not symmetric"):
            self.fit(spoiled)
        self.fit(K)

    def test_rounding_is_forgiven(self):
        noise = 1e-7 * np.random.default_rng(0).standard_normal(K.shape)
        assert self.fit(K + np.eye(6) + noise).status_ is Status.OPTIMAL

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_no_numbers(self, value):
        spoiled = K.copy()
        spoiled[2, 3] = spoiled[3, 2] = value
        with pytest.raises(ValueError, match="Input X contains"):
            self.fit(spoiled)

    def test_sparse(self):
        with pytest.raises(TypeError, match="dense data is required"):
            self.fit(sp.csr_array(K))

    def test_the_wrong_columns_at_prediction(self):
        with pytest.raises(ValueError, match="X has 2 features, but SVC is expecting 6 features"):
            self.fit(K).predict(X)


class TestCallable:
    @pytest.mark.parametrize(
        ("kernel", "text"),
        [
            (lambda left, right: (left @ right.T)[:1], r"array of shape \(1, 6\) for blocks of 6 and 6 rows"),
            (lambda left, right: left @ left.T @ np.ones(len(left)), r"array of shape \(6,\)"),
            (lambda left, right: None, r"array of shape \(\)"),
            (lambda left, right: np.full((len(left), len(right)), np.nan), "returned NaN or infinity"),
            (lambda left, right: np.full((len(left), len(right)), np.inf), "returned NaN or infinity"),
            (lambda left, right: (left @ right.T) + 1j, "values of type complex128: real numbers are needed"),
            (lambda left, right: left @ right, r"the kernel function failed on blocks of \(6, 6\) rows"),
            (lambda left: left @ left.T, r"the kernel function failed on blocks"),
        ],
        ids=["few rows", "vector", "none", "nan", "infinite", "complex", "its own error", "one argument"],
    )
    def test_what_it_returns_is_checked(self, kernel, text):
        with pytest.raises(SoftmarginError, match=text):
            SVC(kernel=kernel).fit(X, Y)

    def test_an_error_of_its_own_reaches_the_user(self):
        def kernel(left, right):
            raise ZeroDivisionError("by hand")

        with pytest.raises(ZeroDivisionError, match="by hand"):
            SVC(kernel=kernel).fit(X, Y)

    def test_one_that_is_not_a_kernel_is_warned_of_and_ends(self):
        with pytest.warns(UserWarning, match="is indefinite on these rows"):
            model = SVC(kernel=lambda left, right: -(left @ right.T)).fit(X, Y)
        assert model.status_ is Status.STATIONARY


@pytest.mark.parametrize("method", ["predict", "decision_function"])
class TestPrediction:
    def test_before_fit(self, method):
        with pytest.raises(NotFittedError, match="This SVC instance is not fitted yet"):
            getattr(SVC(), method)(X)

    @pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
    def test_wrong_number_of_features(self, method, storage):
        with pytest.raises(ValueError, match="X has 3 features, but SVC is expecting 2 features"):
            getattr(SVC().fit(X, Y), method)(storage(np.ones((4, 3))))

    def test_not_a_number(self, method):
        with pytest.raises(ValueError, match="Input X contains NaN"):
            getattr(SVC().fit(X, Y), method)(X * np.nan)


def test_coef_is_for_linear_kernels():
    with pytest.raises(AttributeError, match=re.escape("coef_ is only there for kernel='linear'")):
        _ = SVC().fit(X, Y).coef_
    with pytest.raises(NotFittedError):
        _ = SVC(kernel="linear").coef_


def test_a_failed_fit_leaves_an_earlier_model_alone():
    model = SVC().fit(X, Y)
    before = model.decision_function(X)
    with pytest.raises(SoftmarginError, match="one class only"):
        model.fit(X, np.zeros(6))
    with pytest.raises(SoftmarginError, match="cannot hold two rows"):
        model.set_params(cache_bytes=1).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X), before)


@pytest.mark.parametrize("solver", [BlockSMO(), SMO()], ids=["block", "smo"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_inside_a_solver_reaches_the_caller(monkeypatch, solver, n_jobs):
    def breaks(self, problem, state):
        raise RuntimeError("the solver broke in its step")

    with monkeypatch.context() as patch:
        patch.setattr(type(solver), "step", breaks)
        with pytest.raises(RuntimeError, match="the solver broke in its step"):
            SVC(solver=solver, n_jobs=n_jobs).fit(X, Y)
    assert SVC(solver=solver, n_jobs=n_jobs).fit(X, Y).status_ is Status.OPTIMAL
