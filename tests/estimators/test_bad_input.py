"""Bad input: each mistake gets an error that names its cause, and none reaches a solver."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from softmargin import CPA, IPM, OCAS, SMO, ActiveSet, BlockSMO, LinearSVC, SoftmarginError, certify

X = np.array([[0.0, 1.0], [1.0, 0.5], [2.0, -1.0], [3.0, 0.0], [4.0, 2.0], [5.0, 1.5]])
Y = np.array([0, 0, 0, 1, 1, 1])


def with_value(value):
    spoiled = X.copy()
    spoiled[2, 1] = value
    return spoiled


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"C": 0}, r"C=0 must be a positive"),
        ({"C": -1.0}, r"C=-1\.0 must be a positive"),
        ({"C": np.nan}, r"C=nan must be a positive, finite"),
        ({"C": np.inf}, r"C=inf must be a positive, finite"),
        ({"C": "1"}, r"C='1' must be a positive, finite number"),
        ({"C": None}, r"C=None must be a positive"),
        ({"C": True}, r"C=True must be a positive"),
        ({"tol": -1e-3}, r"tol=-0\.001 must be a finite number of at least 0"),
        ({"tol": np.nan}, r"tol=nan must be a finite number"),
        ({"tol": "small"}, r"tol='small' must be a finite number"),
        ({"tol": 1.0}, r"tol=1\.0 asks for nothing, because w = 0 meets it before any training: .* below 1"),
        ({"tol": 30}, r"tol=30 asks for nothing"),
        ({"tol": 1.0, "solver": CPA(stopping="epsilon")}, r"tol=1\.0 asks for nothing"),
        ({"solver": "newton"}, r"solver='newton' is unknown: choose one of 'auto', 'ocas', 'coordinate', 'cpa'"),
        ({"solver": 3}, r"solver=3 is neither a name .* nor a solver object"),
        ({"solver": OCAS}, r"is neither a name .* nor a solver object"),
        ({"solver": None}, r"solver=None is neither a name"),
        (
            {"solver": BlockSMO()},
            r"solver=BlockSMO\(.*\) solves the dual problem of a kernel machine, for SVC, SVR and OneClassSVM; .* use",
        ),
        (
            {"solver": SMO()},
            "for SVC, SVR and OneClassSVM; it cannot solve the problem of this estimator: use 'auto', 'ocas'",
        ),
        ({"solver": ActiveSet()}, "for SVC, SVR and OneClassSVM; it cannot solve the problem of this estimator"),
        ({"solver": IPM()}, "for SVC, SVR and OneClassSVM; it cannot solve the problem of this estimator"),
        ({"solver": OCAS(stopping="soon")}, r"unknown stop rule 'soon'.*relative_gap"),
        ({"intercept": "sometimes"}, r"intercept='sometimes' is unknown: choose one of 'free', 'penalised'"),
        ({"intercept": None}, r"intercept=None is unknown"),
        (
            {"fit_intercept": False, "intercept": "penalised"},
            r"fit_intercept=False and intercept='penalised'",
        ),
        ({"n_jobs": 0}, r"n_jobs=0 is not a number of threads"),
        ({"n_jobs": 1.5}, r"n_jobs=1\.5 is not a number of threads"),
        ({"n_jobs": "all"}, r"n_jobs='all' is not a number of threads"),
        ({"max_iter": 0}, r"max_iter=0 must be a positive integer or None"),
        ({"max_iter": -2}, r"max_iter=-2 must be a positive integer or None"),
        ({"max_iter": 2.5}, r"max_iter=2\.5 must be a positive integer or None"),
        ({"max_seconds": 0}, r"max_seconds=0 must be a positive number or None"),
        ({"max_seconds": -2.0}, r"max_seconds=-2\.0 must be a positive number or None"),
        ({"max_seconds": np.nan}, r"max_seconds=nan must be a positive number or None"),
        ({"max_seconds": "1 min"}, r"max_seconds='1 min' must be a positive number or None"),
        ({"class_weight": {0: 1.0, 7: 2.0}}, r"class_weight names classes that are not in y: \[7\]"),
        ({"class_weight": {0: -1.0}}, r"class_weight=.* must hold finite numbers of at least 0"),
        ({"class_weight": {0: np.nan}}, r"class_weight=.* must hold finite numbers"),
        ({"class_weight": "even"}, r"class_weight='even' is unknown: use None, 'balanced' or a dictionary"),
        ({"class_weight": [1, 2]}, r"class_weight=\[1, 2\] is unknown"),
        ({"class_weight": {0: 0.0}}, r"same class: give at least two classes a positive weight"),
    ],
    ids=str,
)
def test_parameters(parameters, text):
    model = LinearSVC(**parameters)
    with pytest.raises(SoftmarginError, match=text):
        model.fit(X, Y)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize(
    "parameters",
    [{"mixing": 0.0}, {"mixing": 1.5}, {"mixing": -0.1}, {"mixing": np.nan}, {"mixing": "some"}],
    ids=str,
)
def test_the_mixing_of_ocas_must_lie_in_its_interval(parameters):
    with pytest.raises(ValueError, match=r"mixing"):
        LinearSVC(solver=OCAS(**parameters)).fit(X, Y)


def test_a_class_weight_that_is_no_number_is_named():
    with pytest.raises(ValueError, match=r"class_weight"):
        LinearSVC(class_weight={0: "heavy"}).fit(X, Y)


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        (np.array([1, 1, 1, 1, 1, -0.5]), r"sample_weight holds negative values \(the least is -0\.5\)"),
        (np.zeros(6), r"sample_weight is zero for every row"),
        (np.ones(5), r"sample_weight has shape \(5,\), but there are 6 rows"),
        (np.ones((6, 2)), r"sample_weight has shape \(6, 2\).*must be 1D"),
        (np.array([1, 1, np.nan, 1, 1, 1]), r"sample_weight holds NaN or infinity"),
        (np.array([1, 1, np.inf, 1, 1, 1]), r"sample_weight holds NaN or infinity"),
        (np.array([1, 1, 1, 0, 0, 0]), r"same class: give at least two classes a positive weight"),
        (-1.0, r"sample_weight holds negative values"),
    ],
    ids=[
        "negative",
        "all zero",
        "short",
        "two columns",
        "nan",
        "infinite",
        "one class left",
        "negative scalar",
    ],
)
def test_sample_weights(weights, text):
    with pytest.raises(SoftmarginError, match=text):
        LinearSVC().fit(X, Y, sample_weight=weights)


def test_sample_weights_that_are_no_numbers_are_named():
    with pytest.raises(ValueError, match=r"sample_weight"):
        LinearSVC().fit(X, Y, sample_weight=["a", "b", "c", "d", "e", "f"])


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        (np.zeros(6, dtype=int), r"y holds one class only"),
        (np.array(["a"] * 6), r"y holds one class only \(.*a.*\): a classifier needs at least two"),
        (Y[:5], r"inconsistent numbers of samples: \[6, 5\]"),
        (np.linspace(0.1, 2.3, 6), r"Unknown label type: continuous"),
        (np.array([0, 0, np.nan, 1, 1, 1]), r"Input y contains NaN"),
        (np.array([0, 0, np.inf, 1, 1, 1]), r"Input y contains infinity"),
        (np.eye(6, 2, dtype=int), r"y should be a 1d array"),
        (None, r"requires y to be passed, but the target y is None"),
    ],
    ids=["one class", "one string class", "short", "continuous", "nan", "infinite", "two columns", "none"],
)
def test_labels(labels, text):
    with pytest.raises(ValueError, match=text):
        LinearSVC().fit(X, labels)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (with_value(np.nan), r"Input X contains NaN"),
        (with_value(np.inf), r"Input X contains infinity"),
        (with_value(-np.inf), r"Input X contains infinity"),
        (sp.csr_array(with_value(np.nan)), r"Input X contains NaN"),
        (sp.csr_array(with_value(np.inf)), r"Input X contains infinity"),
        (X[:, 0], r"Expected 2D array, got 1D array"),
        (X[None], r"Found array with dim 3"),
        (X[:0], r"Found array with 0 sample\(s\)"),
        (X[:, :0], r"Found array with 0 feature\(s\)"),
        (X + 1j, r"Complex data not supported"),
        (X.astype(str).astype(object) + "x", r"could not convert string to float"),
        (np.array([["a", "b"]] * 6), r"bytes/strings|could not convert string"),
        (None, r"Expected 2D array, got scalar array|NoneType"),
    ],
    ids=[
        "nan",
        "infinite",
        "minus infinity",
        "sparse nan",
        "sparse infinite",
        "1-D",
        "3-D",
        "no rows",
        "no columns",
        "complex",
        "object strings",
        "strings",
        "none",
    ],
)
def test_data(data, text):
    labels = Y[: len(data)] if isinstance(data, np.ndarray) else Y
    with pytest.raises(ValueError, match=text):
        LinearSVC().fit(data, labels)


@pytest.mark.parametrize("method", ["predict", "decision_function"])
class TestPrediction:
    def test_before_fit(self, method):
        with pytest.raises(NotFittedError, match=r"This LinearSVC instance is not fitted yet"):
            getattr(LinearSVC(), method)(X)

    @pytest.mark.parametrize("columns", [1, 3])
    @pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
    def test_wrong_number_of_features(self, method, columns, storage):
        model = LinearSVC().fit(X, Y)
        with pytest.raises(ValueError, match=rf"X has {columns} features, but LinearSVC is expecting 2 features"):
            getattr(model, method)(storage(np.ones((4, columns))))

    def test_not_a_number(self, method):
        model = LinearSVC().fit(X, Y)
        with pytest.raises(ValueError, match=r"Input X contains NaN"):
            getattr(model, method)(with_value(np.nan))

    def test_one_dimension(self, method):
        model = LinearSVC().fit(X, Y)
        with pytest.raises(ValueError, match=r"Expected 2D array, got 1D array"):
            getattr(model, method)(X[0])


def test_certify_before_fit():
    with pytest.raises(NotFittedError, match=r"not fitted yet"):
        certify(LinearSVC(), X, Y)


def test_a_failed_fit_leaves_an_earlier_model_alone():
    model = LinearSVC().fit(X, Y)
    before = model.coef_.copy()
    with pytest.raises(SoftmarginError, match="one class only"):
        model.fit(X, np.zeros(6))
    np.testing.assert_array_equal(model.coef_, before)
    np.testing.assert_array_equal(model.predict(X), Y)


class FailingSolver(OCAS):
    def step(self, problem, state):
        raise RuntimeError("the solver broke in its step")


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("labels", [Y, np.array([0, 0, 1, 1, 2, 2])], ids=["binary", "multi-class"])
def test_an_error_inside_a_solver_reaches_the_caller(labels, n_jobs):
    model = LinearSVC(solver=FailingSolver(), tol=1e-12, n_jobs=n_jobs)
    with pytest.raises(RuntimeError, match="the solver broke in its step"):
        model.fit(X, labels)
    assert LinearSVC(n_jobs=n_jobs).fit(X, labels).certificate_.relative_gap <= 1e-3
