"""skl2onnx with our converters: pipelines with steps of others, and its options."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softmargin import (
    SVC,
    SVCCV,
    SVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LowRankMap,
    OneClassSVM,
    OrdinalSVC,
    RankSVM,
    SoftmarginError,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


@pytest.fixture(autouse=True, scope="module")
def _registered():
    from softmargin.onnx import register

    register()
    register()  # a second time changes nothing


def run(model, X, dtype=np.float64, **options):
    rows = X.astype(dtype)
    settings = {"options": {id(model): options}} if options else {}
    graph = skl2onnx.to_onnx(model, rows[:1], **settings)
    session = runtime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: rows})


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", [LinearSVC(), SVC(), OrdinalSVC()], ids=lambda model: type(model).__name__)
def test_the_options_of_classifiers(iris, model, n_classes):
    X, y = iris[0][iris[1] < n_classes], iris[1][iris[1] < n_classes]
    names = np.array(["setosa", "versicolor", "virginica"])
    model.fit(X, y if isinstance(model, OrdinalSVC) else names[y])
    labels, scores = model.predict(X), model.decision_function(X)
    each = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores

    found = run(model, X, zipmap=False)
    np.testing.assert_array_equal(found[0], labels)
    assert found[1].dtype == np.float64
    np.testing.assert_allclose(found[1], each, rtol=1e-9, atol=1e-9)

    found = run(model, X, zipmap=False, raw_scores=True)
    np.testing.assert_allclose(found[1].reshape(scores.shape), scores, rtol=1e-9, atol=1e-9)

    found = run(model, X, zipmap=False, nocl=True)
    np.testing.assert_array_equal(found[0], np.searchsorted(model.classes_, labels))

    found = run(model, X)  # a dictionary for each row
    np.testing.assert_array_equal(found[0], labels)
    assert found[1][0].keys() == set(model.classes_.tolist())
    np.testing.assert_allclose([list(row.values()) for row in found[1]], each, rtol=1e-5, atol=1e-5)

    for raw in (False, True):  # an output for each class needs a score of each class
        found = run(model, X, zipmap="columns", raw_scores=raw)
        np.testing.assert_allclose(np.column_stack([part.ravel() for part in found[1:]]), each, rtol=1e-9, atol=1e-9)
    found = run(model, X, raw_scores=True)
    np.testing.assert_allclose([list(row.values()) for row in found[1]], each, rtol=1e-5, atol=1e-5)


def test_a_step_that_skl2onnx_knows():
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), PCA(5), SVC()).fit(X, y)
    found = run(model, X, zipmap=False)
    np.testing.assert_array_equal(found[0], model.predict(X))
    np.testing.assert_allclose(found[1][:, 1], model.decision_function(X), rtol=1e-6, atol=1e-9)


def test_float32_rows(iris):
    model = LinearSVC().fit(*iris)
    rows = iris[0].astype(np.float32)
    found = run(model, rows, np.float32, zipmap=False)
    np.testing.assert_array_equal(found[0], model.predict(rows.astype(np.float64)))
    np.testing.assert_allclose(found[1], model.decision_function(rows.astype(np.float64)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("model", [LinearSVR(), SVR()], ids=["linear", "kernel"])
def test_numbers(model):
    X, y = load_diabetes(return_X_y=True)
    model.fit(X, y)
    np.testing.assert_allclose(run(model, X)[0].ravel(), model.predict(X), rtol=1e-9)


def test_rankings(iris):
    X, y = iris
    model = RankSVM().fit(X, y, qid=np.arange(len(y)) % 5)
    np.testing.assert_allclose(run(model, X)[0].ravel(), model.predict(X), rtol=1e-9)


@pytest.mark.parametrize("model", [LinearOneClassSVM(), OneClassSVM()], ids=["linear", "kernel"])
def test_novelties(iris, model):
    model.fit(iris[0])
    rows = iris[0] + 0.1
    labels, scores = run(model, rows)
    np.testing.assert_array_equal(labels, model.predict(rows))
    assert scores.shape == (len(rows), 1)
    np.testing.assert_allclose(scores.ravel(), model.decision_function(rows), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "search", [LinearSVCCV(Cs=[0.1, 1.0], cv=2), SVCCV(Cs=[1.0, 10.0], cv=2)], ids=["linear", "kernel"]
)
def test_searches_stand_for_their_best_model(iris, search):
    model = make_pipeline(PCA(2), search).fit(*iris)
    found = run(model, iris[0], zipmap=False)
    np.testing.assert_array_equal(found[0], model.predict(iris[0]))
    calibrated = CalibratedClassifierCV(search, ensemble=False, cv=2).fit(*iris)
    found = run(calibrated, iris[0], zipmap=False)
    np.testing.assert_allclose(found[1], calibrated.predict_proba(iris[0]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_features_of_a_kernel(iris, kernel, sparse):
    X, y = iris[0] * (iris[0] > 1.0), iris[1]
    features = LowRankMap(20, kernel=kernel, gamma=0.5).fit(sp.csr_matrix(X) if sparse else X)
    model = make_pipeline(features, LinearSVC()).fit(X, y)
    model.steps[0] = ("features", features)
    expected = model.decision_function(X)
    found = run(model, X, zipmap=False)
    np.testing.assert_array_equal(found[0], model.predict(X))
    assert np.abs(found[1] - expected).max() <= 1e-6 * np.abs(expected).max()


def test_features_of_a_kernel_that_is_a_matrix(iris):
    K = iris[0] @ iris[0].T
    model = make_pipeline(LowRankMap(3, kernel="precomputed"), LinearSVC()).fit(K, iris[1])
    np.testing.assert_array_equal(run(model, K, zipmap=False)[0], model.predict(K))


def test_features_of_a_function(iris):
    model = make_pipeline(LowRankMap(3, kernel=lambda X, Z: X @ Z.T), LinearSVC()).fit(*iris)
    with pytest.raises(SoftmarginError, match="holds no Python"):
        run(model, iris[0])


@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid", "laplacian"])
@pytest.mark.filterwarnings("ignore:the kernel 'sigmoid' is indefinite")
def test_kernels(iris, kernel):
    model = SVC(kernel=kernel, gamma=0.1).fit(*iris)
    found = run(model, iris[0], zipmap=False)
    np.testing.assert_array_equal(found[0], model.predict(iris[0]))
    np.testing.assert_allclose(found[1], model.decision_function(iris[0]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibrations(iris, method, n_classes):
    X, y = iris[0][iris[1] < n_classes][:, :2], iris[1][iris[1] < n_classes]
    for ensemble in (False, True):
        calibrated = CalibratedClassifierCV(LinearSVC(), method=method, ensemble=ensemble, cv=3)
        model = make_pipeline(StandardScaler(), calibrated).fit(X, y)
        found = run(model, X, zipmap=False)
        np.testing.assert_allclose(found[1], model.predict_proba(X), rtol=1e-9, atol=1e-12)


def test_scores_of_a_calibrated_model(iris):
    calibrated = CalibratedClassifierCV(LinearSVC(), ensemble=False).fit(*iris)
    found = run(calibrated, iris[0], zipmap=False, raw_scores=True)
    expected = calibrated.calibrated_classifiers_[0].estimator.decision_function(iris[0])
    np.testing.assert_allclose(found[1], expected, rtol=1e-9, atol=1e-9)
    several = CalibratedClassifierCV(LinearSVC()).fit(*iris)
    with pytest.raises(SoftmarginError, match="ensemble=False"):
        run(several, iris[0], zipmap=False, raw_scores=True)


def test_calibrations_of_others_are_left_alone(iris):
    model = CalibratedClassifierCV(LogisticRegression(), ensemble=False).fit(*iris)
    np.testing.assert_allclose(run(model, iris[0], zipmap=False)[1], model.predict_proba(iris[0]), rtol=1e-6)


def test_a_model_that_was_frozen_before_it_was_calibrated(iris):
    model = CalibratedClassifierCV(FrozenEstimator(make_pipeline(StandardScaler(), LinearSVC()).fit(*iris))).fit(*iris)
    found = run(model, iris[0], zipmap=False)
    np.testing.assert_allclose(found[1], model.predict_proba(iris[0]), rtol=1e-9, atol=1e-12)


def test_a_calibration_around_a_step_of_others(iris):
    model = CalibratedClassifierCV(make_pipeline(PCA(2), LinearSVC()), ensemble=False).fit(*iris)
    with pytest.raises(SoftmarginError, match="a calibration must be the last step"):
        run(model, iris[0])


def test_a_kernel_that_is_a_function(iris):
    model = SVC(kernel=lambda X, Z: X @ Z.T).fit(*iris)
    with pytest.raises(SoftmarginError, match="holds no Python"):
        run(model, iris[0])


def test_an_old_target(iris):
    model = LinearSVC().fit(*iris)
    with pytest.raises(SoftmarginError, match="at least 13"):
        skl2onnx.to_onnx(model, iris[0][:1], target_opset=11)
