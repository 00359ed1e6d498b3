"""`softmargin export`, `softmargin info --weights`, and completion."""

import csv
import json

import numpy as np
import pytest
from sklearn.datasets import load_iris

import softmargin


@pytest.fixture
def models(run, tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    X.assign(label=y).to_csv(tmp_path / "iris.csv", index=False)
    run("train", tmp_path / "iris.csv", tmp_path / "linear", "-q")
    run("train", tmp_path / "iris.csv", tmp_path / "kernel", "-q", "--kernel", "rbf")
    run("train", tmp_path / "iris.csv", tmp_path / "scaled", "-q", "--scale", "standard", "--probability", "sigmoid")
    return tmp_path, X


def test_weights_by_name(run, models):
    folder, X = models
    run("export", folder / "linear", folder / "w.csv", "--format", "csv")
    header, *lines = csv.reader((folder / "w.csv").read_text().splitlines())
    model = softmargin.load(folder / "linear")
    assert header == ["feature", "0", "1", "2"]
    assert [line[0] for line in lines] == [*X.columns, "(intercept)"]
    np.testing.assert_array_equal([list(map(float, line[1:])) for line in lines[:-1]], model.coef_.T)
    np.testing.assert_array_equal(list(map(float, lines[-1][1:])), model.intercept_)
    found = json.loads(run("info", folder / "linear", "--weights", "2", "--json").stdout)["weights"]
    largest = X.columns[np.argsort(-np.abs(model.coef_).max(axis=0))[:2]]
    assert [line["feature"] for line in found] == largest.tolist()
    shown = run("info", folder / "scaled", "--weights", "1")
    assert "scaled features" in shown.stderr
    assert len(shown.stdout.splitlines()) == 2


def test_numbers_that_predict(run, models):
    folder, X = models
    found = json.loads(run("export", folder / "scaled").stdout)
    step, calibration = found["transform"][0], found["calibration"]
    rows = (X.to_numpy() - step["arrays"]["mean_"]) / step["arrays"]["scale_"]
    scores = rows @ np.array(found["arrays"]["coef_"]).T + found["arrays"]["intercept_"]
    shares = 1 / (1 + np.exp(np.array(calibration["arrays"]["a"]) * scores + calibration["arrays"]["b"]))
    model = softmargin.load(folder / "scaled")
    np.testing.assert_allclose(shares / shares.sum(axis=1, keepdims=True), model.predict_proba(X))
    kernel = json.loads(run("export", folder / "kernel", "--format", "json").stdout)
    vectors = softmargin.load(folder / "kernel").support_vectors_
    np.testing.assert_array_equal(kernel["arrays"]["support_vectors_"], vectors)


@pytest.mark.parametrize(("name", "format"), [("linear", "liblinear"), ("kernel", "libsvm")])
def test_other_programs(run, models, name, format):
    folder, X = models
    run("export", folder / name, folder / "out", "--format", format)
    again = softmargin.load(folder / "out")
    np.testing.assert_array_equal(again.predict(X.to_numpy()), softmargin.load(folder / name).predict(X))


def test_onnx(run, models):
    onnx = pytest.importorskip("onnx")
    folder, _ = models
    for name in ("linear", "kernel", "scaled"):
        run("export", folder / name, folder / f"{name}.onnx", "--format", "onnx")
        onnx.checker.check_model(onnx.load(folder / f"{name}.onnx"))


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("linear", ("--format", "libsvm"), "no form in libsvm"),
        ("kernel", ("--format", "liblinear"), "no form in liblinear"),
        ("kernel", ("--format", "csv"), "no weights of features"),
        ("scaled", ("--format", "csv"), "no place for the scaling"),
        ("scaled", ("--format", "liblinear"), "holds no scaling"),
    ],
)
def test_what_a_format_has_no_place_for_is_told(run, models, name, options, words):
    folder, _ = models
    assert words in run("export", folder / name, folder / "out", *options, code=1).stderr
    assert not (folder / "out").exists()


def test_a_model_is_not_overwritten(run, models):
    folder, _ = models
    error = run("export", folder / "linear", folder / "kernel", "--format", "csv", code=1).stderr
    assert "is a model file" in error
    assert isinstance(softmargin.load(folder / "kernel"), softmargin.SVC)
    assert "which would be overwritten" in run("export", folder / "linear", folder / "linear", "--force", code=1).stderr


def test_completion_knows_the_commands(run):
    assert "--install-completion" in run("--help").stdout


@pytest.mark.parametrize("format", ["csv", "json"])
def test_a_file_that_is_there_is_kept(run, models, tmp_path, format):
    folder, _ = models
    out = tmp_path / "rows.svm"
    out.write_text("1 1:2\n")
    error = run("export", folder / "linear", out, "--format", format, code=1).stderr
    assert f"{out} is there already: name another file, or replace it with --force." in " ".join(error.split())
    assert out.read_text() == "1 1:2\n"
    run("export", folder / "linear", out, "--format", format, "--force")
    assert "1 1:2" not in out.read_text()
