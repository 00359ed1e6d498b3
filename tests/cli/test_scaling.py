"""`train --scale` and `train --probability`: what stands around the model in its file."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_iris
from sklearn.isotonic import IsotonicRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

import softmargin
from softmargin.estimators.machines.calibrating import isotonic, sigmoid
from softmargin.estimators.machines.scaling import fitted_scaler, scaled

SCALERS = {"minmax": MinMaxScaler, "standard": StandardScaler, "maxabs": MaxAbsScaler, "unit": Normalizer}


@pytest.fixture
def raw(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    dump_svmlight_file(X, y, str(tmp_path / "raw.svm"), zero_based=False)
    np.savetxt(
        tmp_path / "raw.csv",
        np.column_stack([y, X]),
        delimiter=",",
        header="label," + ",".join(f"f{k}" for k in range(30)),
        comments="",
        fmt="%.17g",
    )
    return tmp_path / "raw.csv", tmp_path / "raw.svm"


@pytest.mark.parametrize("word", SCALERS)
def test_a_scaler_is_that_of_scikit_learn(word):
    X, _ = load_breast_cancer(return_X_y=True)
    X[:, 3] = 7.0
    step = fitted_scaler(word, X)
    theirs = SCALERS[word]().fit(X)
    np.testing.assert_allclose(scaled(X, (step,)), theirs.transform(X), rtol=1e-12, atol=1e-12)
    for name, array in step.arrays.items():
        np.testing.assert_allclose(array, getattr(theirs, name), rtol=1e-12)


@pytest.mark.parametrize("word", SCALERS)
def test_predictions_are_those_of_the_pipeline(run, raw, tmp_path, word):
    path, out = tmp_path / "m", tmp_path / "out"
    run("train", raw[0], path, "--label", "label", "--scale", word, "-q", "-j", "1")
    run("predict", path, raw[0], out, "--label", "label", "--scores")
    X, y = load_breast_cancer(return_X_y=True)
    X = pd.DataFrame(X, columns=[f"f{k}" for k in range(30)])
    model = softmargin.load(path)
    assert isinstance(model, Pipeline)
    np.testing.assert_allclose(np.loadtxt(out), model.decision_function(X), rtol=1e-9)
    theirs = Pipeline([("scaler", SCALERS[word]()), ("model", softmargin.LinearSVC())]).fit(X, y)
    assert np.mean(model.predict(X) == theirs.predict(X)) > 0.99
    assert json.loads(run("info", path, "--json").stdout)["scaling"] == [SCALERS[word].__name__]
    run("certify", path, raw[0], "--label", "label")


def test_sparse_rows_stay_sparse(run, raw, tmp_path):
    found = run("train", raw[1], tmp_path / "m", "--scale", "standard")
    assert "means are not subtracted" in found.stderr
    assert softmargin.load(tmp_path / "m")[0].with_mean is False
    error = run("train", raw[1], tmp_path / "n", "--scale", "minmax", code=1).stderr
    assert "--scale maxabs, which keeps zeros" in error
    assert not (tmp_path / "n").exists()


@pytest.mark.parametrize("options", [(), ("--task", "ordinal"), ("--task", "regress"), ("--task", "rank", "--no-qid")])
def test_a_folded_scaling_predicts_the_same(run, raw, tmp_path, options):
    data = (raw[0], "--label", "label")
    scores = []
    for k, more in enumerate(((), ("--fold-scaling",))):
        run(
            "train",
            data[0],
            tmp_path / f"{k}",
            *data[1:],
            "--scale",
            "standard",
            "-q",
            "--max-iter",
            "3",
            *options,
            *more,
            code=None,
        )
        run("predict", tmp_path / f"{k}", data[0], tmp_path / "out", *data[1:], "--scores", "--force")
        scores.append(np.loadtxt(tmp_path / "out"))
    shift = scores[1] - scores[0]
    np.testing.assert_allclose(shift, shift[0] if options[-1:] in (("ordinal",), ("--no-qid",)) else 0.0, atol=1e-8)
    assert "coef_" in vars(softmargin.load(tmp_path / "1"))


def test_a_folded_scaling_keeps_what_tune_found(run, raw, tmp_path):
    data, path = (raw[0], "--label", "label"), tmp_path / "m"
    folded = ("--scale", "standard", "--fold-scaling", "--Cs", "0.1,1", "--widen", "0", "--cv", "3", "-q")
    run("tune", data[0], path, *data[1:], *folded)
    assert json.loads(run("info", path, "--json").stdout)["search"]["points"] == 2
    assert "it is about scaled data" in run("certify", path, *data, code=1).stderr
    run("report", path, *data, "-o", tmp_path / "r.md")
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert "its scaling was folded into its weights" in text
    assert "The best mean over 3 folds is" in text


def test_a_stopped_fit_goes_on_with_its_scaling(run, raw, tmp_path):
    path = tmp_path / "m"
    data = (raw[0], path, "--label", "label", "-q")
    run("train", *data, "--scale", "standard", "--solver", "ocas", "--max-iter", "2", "--tol", "1e-6", code=3)
    run("train", *data, "--resume")
    assert softmargin.load(path)[-1].certificate_.relative_gap <= 1e-6
    assert "leave the other out" in run("train", *data, "--resume", "--scale", "unit", code=2).stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--fold-scaling",), "give --scale"),
        (("--fold-scaling", "--scale", "unit"), "unit scales rows"),
        (("--fold-scaling", "--scale", "maxabs", "--kernel", "rbf"), "kernel models have no weights"),
        (("--probability", "sigmoid", "--task", "rank"), "models that classify"),
    ],
)
def test_what_does_not_go_together_is_told(run, raw, tmp_path, options, words):
    assert words in run("train", raw[1], tmp_path / "m", *options, code=2).stderr


def test_the_sigmoid_and_the_curve_are_those_of_scikit_learn():
    from sklearn.calibration import _sigmoid_calibration

    rng = np.random.default_rng(0)
    scores = rng.standard_normal(300) * 3
    positive = rng.random(300) < 1 / (1 + np.exp(-scores))
    weights = rng.integers(1, 4, 300).astype(float)
    np.testing.assert_allclose(
        sigmoid(scores, positive, weights), _sigmoid_calibration(scores, positive, weights), rtol=1e-3
    )
    theirs = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(scores, positive, weights)
    x, y = isotonic(scores, positive, weights)
    at = np.linspace(-12, 12, 1000)
    np.testing.assert_allclose(np.interp(at, x, y), theirs.predict(at), atol=1e-9)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("options", [(), ("--kernel", "rbf", "--gamma", "0.1")])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities(run, tmp_path, method, options, n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y > 2 - n_classes], y[y > 2 - n_classes]
    data, path, out = tmp_path / "iris.svm", tmp_path / "m", tmp_path / "out"
    dump_svmlight_file(X, y, str(data), zero_based=False)
    run("train", data, path, "--probability", method, "-q", *options)
    run("predict", path, data, out, "--probability")
    found = np.loadtxt(out)
    assert found.shape == (len(y), n_classes)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    model = softmargin.load(path)
    assert isinstance(model, CalibratedClassifierCV)
    np.testing.assert_allclose(model.predict_proba(X), found, atol=1e-9)
    run("predict", path, data, out, "--force")
    np.testing.assert_array_equal(np.loadtxt(out), model.predict(X))
    assert np.mean(model.predict(X) == y) > 0.9


def test_a_model_without_probabilities_says_so(run, cancer, tmp_path):
    run("train", cancer, tmp_path / "m", "-q")
    error = run("predict", tmp_path / "m", cancer, tmp_path / "out", "--probability", code=1).stderr
    assert "train it with --probability" in error
