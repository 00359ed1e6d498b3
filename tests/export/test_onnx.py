"""ONNX graphs say what the models say: the same labels, and scores to many digits."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, RobustScaler, StandardScaler
from sklearn.svm import SVC as SklearnSVC

from softmargin import (
    SVC,
    SVCCV,
    SVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    OneClassSVM,
    OrdinalSVC,
    RankSVM,
    SoftmarginError,
)
from softmargin.onnx import to_onnx

pytest.importorskip("onnx", reason="onnx is not installed")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

N_ROWS = 10_000
DIGITS = 1e-6  # of the largest score


def run(graph, X):
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found = [session.run(None, {"X": X[k : k + 1000]}) for k in range(0, len(X), 1000)]
    names = [output.name for output in session.get_outputs()]
    return {name: np.concatenate(parts) for name, parts in zip(names, zip(*found, strict=True), strict=True)}


def many_rows(X, seed=0):
    """10,000 rows between and beyond those of X, the rows themselves among them."""
    rng = np.random.default_rng(seed)
    some, other = X[rng.integers(len(X), size=(2, N_ROWS - len(X)))]
    share = rng.uniform(-0.5, 1.5, (len(some), 1))
    return np.vstack([X, share * some + (1.0 - share) * other])


def close(found, expected):
    expected = np.asarray(expected, dtype=np.float64)
    assert np.abs(found.reshape(expected.shape) - expected).max() <= DIGITS * np.abs(expected).max()


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


CLASSIFIERS = {
    "LinearSVC": LinearSVC(),
    "SVC": SVC(),
    "SVC poly": SVC(kernel="poly", coef0=1.0),
    "SVC sigmoid": SVC(kernel="sigmoid", gamma=0.1),
    "SVC laplacian": SVC(kernel="laplacian"),
    "SVC linear ovo": SVC(kernel="linear", decision_function_shape="ovo"),
    "OrdinalSVC": OrdinalSVC(),
}


@pytest.mark.filterwarnings("ignore:the kernel 'sigmoid' is indefinite")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("model", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_classifiers(iris, model, sparse, n_classes):
    X, y = iris[0][iris[1] < n_classes], iris[1][iris[1] < n_classes]
    X = np.hstack([np.where(X > 1.0, X, 0.0), np.zeros((len(X), 2))])
    model.fit(sp.csr_matrix(X) if sparse else X, y)
    rows = many_rows(X) + np.arange(6) * 0.1  # with values where no support vector has one
    found = run(to_onnx(model), rows)
    np.testing.assert_array_equal(found["label"], model.predict(rows))
    close(found["scores"], model.decision_function(rows))


@pytest.mark.parametrize("model", [LinearSVR(), SVR()], ids=["linear", "kernel"])
def test_regressions(model):
    X, y = load_diabetes(return_X_y=True)
    model.fit(X, y)
    rows = many_rows(X)
    close(run(to_onnx(model), rows)["prediction"], model.predict(rows))


@pytest.mark.parametrize("model", [LinearOneClassSVM(), OneClassSVM()], ids=["linear", "kernel"])
def test_one_class(iris, model):
    model.fit(iris[0])
    rows = many_rows(iris[0])
    found, expected = run(to_onnx(model), rows), model.decision_function(rows)
    close(found["scores"], expected)
    is_clear = np.abs(expected) > 1e-12 * np.abs(expected).max()  # free support vectors lie on the boundary
    np.testing.assert_array_equal(found["label"][is_clear], model.predict(rows)[is_clear])


def test_rankings(iris):
    X, y = iris
    model = RankSVM().fit(X, y, qid=np.arange(len(y)) % 5)
    rows = many_rows(X)
    close(run(to_onnx(model), rows)["prediction"], model.predict(rows))


def test_precomputed_kernels(iris):
    X, y = iris
    model = SVC(kernel="precomputed").fit(X @ X.T, y)
    K = many_rows(X) @ X.T
    found = run(to_onnx(model), K)
    np.testing.assert_array_equal(found["label"], model.predict(K))


SCALERS = {
    "standard": [StandardScaler()],
    "range": [MinMaxScaler((-1, 2), clip=True)],
    "largest": [MaxAbsScaler()],
    "robust": [RobustScaler()],
    "l1": [Normalizer("l1")],
    "l2": [Normalizer()],
    "several": [MinMaxScaler(), Normalizer("max"), StandardScaler()],
}


@pytest.mark.parametrize("steps", SCALERS.values(), ids=SCALERS)
def test_pipelines(cancer, steps):
    X, y = cancer
    model = make_pipeline(*steps, LinearSVC()).fit(X, y)
    rows = np.vstack([np.zeros(X.shape[1]), many_rows(X)])
    found = run(to_onnx(model), rows)
    np.testing.assert_array_equal(found["label"], model.predict(rows))
    close(found["scores"], model.decision_function(rows))


@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid"])
@pytest.mark.filterwarnings("ignore:the kernel 'sigmoid' is indefinite")
def test_no_number_becomes_float32(iris, kernel):
    """ONNX Runtime fuses products with single numbers into matrix products, and then holds them as float32."""
    X, y = iris[0][:, :1] * 1.1, (iris[1] > 0).astype(int)
    model = make_pipeline(MaxAbsScaler(), SVC(kernel=kernel, gamma=0.3)).fit(X, y)
    expected = model.decision_function(X)
    found = run(to_onnx(model), X)["scores"].ravel()
    assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("ensemble", [False, True], ids=["one model", "a model for each fold"])
@pytest.mark.parametrize("around", ["model", "pipeline"])
def test_calibrations(iris, method, ensemble, around, n_classes):
    X, y = iris[0][iris[1] < n_classes][:, :2], iris[1][iris[1] < n_classes]
    settings = {"method": method, "ensemble": ensemble, "cv": 3}
    if around == "model":
        model = make_pipeline(StandardScaler(), CalibratedClassifierCV(SVC(), **settings))
    else:
        model = CalibratedClassifierCV(make_pipeline(StandardScaler(), LinearSVC()), **settings)
    model.fit(X, y)
    rows = many_rows(X)
    found, expected = run(to_onnx(model), rows), model.predict_proba(rows)
    assert ("scores" in found) != ensemble
    np.testing.assert_allclose(found["probabilities"], expected, rtol=1e-9, atol=1e-12)
    largest = np.sort(expected, axis=1)
    is_clear = largest[:, -1] - largest[:, -2] > 1e-12  # isotonic curves are flat, and equal there
    np.testing.assert_array_equal(found["label"][is_clear], model.predict(rows)[is_clear])


@pytest.mark.parametrize(
    "labels",
    [np.array([-1, 7]), np.array(["no", "yes"]), np.array([1.0, 2.0]), np.array([False, True]),
     np.array(["a", "b"], dtype=object)],
    ids=["int", "str", "float", "bool", "object"],
)  # fmt: skip
def test_labels_of_every_type(cancer, labels):
    X, y = cancer
    model = make_pipeline(StandardScaler(), LinearSVC()).fit(X, labels[y])
    np.testing.assert_array_equal(run(to_onnx(model), X)["label"], model.predict(X))


def test_searches_stand_for_their_best_model(iris):
    X, y = iris
    for model in (
        LinearSVCCV(Cs=[0.1, 1.0], cv=2),
        make_pipeline(StandardScaler(), LinearSVCCV(Cs=[0.1, 1.0], cv=2)),
        GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1.0, 10.0]}, cv=2),
        CalibratedClassifierCV(LinearSVCCV(Cs=[0.1, 1.0], cv=2), ensemble=False, cv=2),
        CalibratedClassifierCV(make_pipeline(StandardScaler(), SVCCV(Cs=[0.1, 1.0], cv=2)), cv=2),
    ):
        model.fit(X, y)
        np.testing.assert_array_equal(run(to_onnx(model), X)["label"], model.predict(X))


def test_a_frozen_model(iris):
    model = make_pipeline(StandardScaler(), FrozenEstimator(LinearSVC().fit(*iris))).fit(*iris)
    np.testing.assert_array_equal(run(to_onnx(model), iris[0])["label"], model.predict(iris[0]))


def test_float32_rows(cancer):
    X, y = cancer
    model = make_pipeline(StandardScaler(), LinearSVC()).fit(X, y)
    rows = X.astype(np.float32)
    found = run(to_onnx(model, dtype=np.float32), rows)
    np.testing.assert_array_equal(found["label"], model.predict(rows.astype(np.float64)))


def test_what_a_graph_tells_of_its_model():
    frame, y = load_breast_cancer(return_X_y=True, as_frame=True)
    graph = to_onnx(make_pipeline(StandardScaler(), LinearSVC()).fit(frame, y))
    told = {entry.key: entry.value for entry in graph.metadata_props}
    assert told["estimator"] == "LinearSVC"
    assert json.loads(told["feature_names"]) == list(frame.columns)
    assert told["status"] == "OPTIMAL"
    assert json.loads(told["certificates"])[0]["relative_gap"] <= 1e-3


class TestRefused:
    def test_a_kernel_that_is_a_function(self, iris):
        model = SVC(kernel=lambda X, Z: X @ Z.T).fit(*iris)
        for given in (model, make_pipeline(StandardScaler(), model).fit(*iris)):
            with pytest.raises(SoftmarginError, match=r"is a function, and an ONNX graph holds no Python: train with"):
                to_onnx(given)

    def test_a_step_that_is_not_known(self, iris):
        with pytest.raises(SoftmarginError, match=r"'pca' is a PCA, .* skl2onnx, which knows other steps"):
            to_onnx(make_pipeline(PCA(2), LinearSVC()).fit(*iris))

    def test_a_model_of_others(self, iris):
        with pytest.raises(SoftmarginError, match=r"sklearn\.svm\._classes\.SVC is no estimator of softmargin"):
            to_onnx(make_pipeline(StandardScaler(), SklearnSVC()).fit(*iris))

    def test_a_type_of_the_input(self, iris):
        with pytest.raises(SoftmarginError, match="dtype=int64"):
            to_onnx(LinearSVC().fit(*iris), dtype=np.int64)

    def test_a_model_that_is_not_fitted(self):
        with pytest.raises(ValueError, match="not fitted"):
            to_onnx(LinearSVC())

    def test_vectors_that_no_graph_can_hold(self, monkeypatch, iris):
        monkeypatch.setattr("softmargin.export.formulas.MOST_BYTES", 1000)
        with pytest.raises(SoftmarginError, match="more than 2 GB"):
            to_onnx(SVC().fit(*iris))
