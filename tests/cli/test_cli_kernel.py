"""Kernel models on the command line."""

import json
import shutil
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris

import softmargin
from softmargin.cli import options
from softmargin.io.model_file import read_model, write_model
from softmargin.io.record import ModelRecord


@pytest.fixture
def iris(tmp_path):
    X, y = load_iris(return_X_y=True)
    path = tmp_path / "iris.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    return path


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid", "laplacian"])
def test_from_a_file_to_a_model_and_back(run, cancer, tmp_path, kernel):
    model, out = tmp_path / "m", tmp_path / "out.txt"
    more = [] if kernel == "linear" else ["--gamma", "0.001"]
    trained = json.loads(run("train", cancer, model, "--kernel", kernel, *more, "--jobs", 1, "--json").stdout)
    assert trained["status"] == ("STATIONARY" if kernel == "sigmoid" else "OPTIMAL")
    assert trained["kernel"] == kernel
    assert trained["classes"] == [-1, 1]

    estimator = softmargin.load(model)
    X, y = softmargin.load_svmlight(cancer)
    assert trained["support_vectors"] == estimator.support_.size > 0
    assert trained["kernel_evaluations"] == estimator.counts_["kernel_evaluations"] > 0
    assert trained["bounded"] == np.count_nonzero(np.abs(estimator.dual_coef_) > 1 - 1e-9)
    assert (trained["relative_gap"] is None) == (kernel == "sigmoid")

    predicted = run("predict", model, cancer, out)
    np.testing.assert_array_equal(np.loadtxt(out, dtype=int), estimator.predict(X))
    assert "accuracy" in predicted.stderr
    scores = run("predict", model, cancer, "--scores").stdout.split()
    np.testing.assert_allclose(np.array(scores, dtype=float), estimator.decision_function(X), rtol=1e-12)
    found = json.loads(run("evaluate", model, cancer, "--json").stdout)
    assert found["accuracy"] == pytest.approx(estimator.score(X, y))

    judged = json.loads(run("certify", model, cancer, "--json").stdout)
    assert judged["primal"] == pytest.approx(trained["primal"], rel=1e-9)
    assert judged["kkt_violation"] <= 1e-2


def test_several_classes(run, iris, tmp_path):
    model = tmp_path / "m"
    run("train", iris, model, "--kernel", "rbf", "-C", 10, "--class-weight", "1=2", "-q")
    estimator = softmargin.load(model)
    X, _ = softmargin.load_svmlight(iris)
    rows = [line.split() for line in run("predict", model, iris, "--scores").stdout.splitlines()]
    np.testing.assert_allclose(np.array(rows, dtype=float), estimator.decision_function(X))
    assert json.loads(run("evaluate", model, iris, "--json").stdout)["per_class"].keys() == {"0", "1", "2"}
    described = json.loads(run("info", model, "--json").stdout)
    assert list(described["certificates"]) == ["0 against 1", "0 against 2", "1 against 2"]
    assert described["of_each_class"] == estimator.n_support_.tolist()
    run("certify", model, iris)


def test_options_reach_the_estimator(run, cancer, tmp_path):
    model = tmp_path / "m"
    run(
        *("train", cancer, model, "-c", 2, "--kernel", "poly", "--gamma", "auto", "--degree", 2, "--coef0", 1.5),
        *("--solver", "smo", "--working-set", "hybrid_maximum_gain", "--no-shrinking", "--cache-bytes", "1.5M"),
        *("--stopping", "kkt", "--tol", 0.01, "-q"),
    )
    found = softmargin.load(model)
    assert (found.C, found.kernel, found.gamma, found.degree, found.coef0) == (2.0, "poly", "auto", 2, 1.5)
    assert (found.solver, found.working_set, found.shrinking) == ("smo", "hybrid_maximum_gain", False)
    assert (found.cache_bytes, found.stopping, found.tol) == (1.5 * 2**20, "kkt", 0.01)
    assert found.certificate_.kkt_violation <= 0.01
    run("certify", model, cancer)


def test_info_tells_what_is_in_the_file(run, cancer, tmp_path):
    model = tmp_path / "m"
    run("train", cancer, model, "--kernel", "rbf", "-q")
    text = run("info", model).stdout
    for words in ("SVC", "kernel                   rbf", "support vectors", "kernel evaluations", "relative gap"):
        assert words in text
    described = json.loads(run("info", model, "--json").stdout)
    assert described["gamma"] == softmargin.load(model).gamma_
    assert described["features"] == 30
    assert described["can_be_resumed"] is False


@pytest.mark.parametrize("data", ["cancer", "iris"])
def test_a_fit_that_stops_early_is_saved_and_goes_on(run, request, tmp_path, data):
    path, model = request.getfixturevalue(data), tmp_path / "m"
    few = ("--tol", "1e-8", "--solver", "smo", "--max-iter", 1)
    stopped = run("train", path, model, "--kernel", "rbf", "--gamma", 0.5, *few, code=3)
    assert "--resume" in stopped.stderr
    assert "relative gap of" in stopped.stderr
    assert json.loads(run("info", model, "--json").stdout)["can_be_resumed"] is True
    run("certify", model, path, code=3)
    assert "leave the other out" in run("train", path, model, "--resume", "--gamma", 0.1, code=1).stderr
    assert "linear models" in run("train", path, model, "--resume", "--no-intercept", code=2).stderr
    resumed = json.loads(run("train", path, model, "--resume", "--cache-bytes", "1M", "--json").stdout)
    assert resumed["relative_gap"] <= 1e-8
    run("certify", model, path)
    assert "nothing to resume" in run("train", path, model, "--resume", code=1).stderr


@pytest.mark.parametrize("name", ["intercept_", "dual_coef_"])
def test_a_model_that_is_not_finite_is_refused(run, cancer, tmp_path, monkeypatch, name):
    model = tmp_path / "m"
    run("train", cancer, model, "--kernel", "rbf", "--stopping", "kkt", "-q")
    estimator = softmargin.load(model)
    setattr(estimator, name, np.full_like(getattr(estimator, name), np.nan))
    with monkeypatch.context() as patch:
        patch.setattr("softmargin.io.model_file.check_numbers", lambda arrays: None)
        estimator.save(model)
    for command in ("certify", "predict", "evaluate"):
        assert "NaN or infinity" in run(command, model, cancer, code=1).stderr


def test_a_linear_model_is_not_resumed_with_a_kernel(run, cancer, tmp_path):
    model = tmp_path / "m"
    run("train", cancer, model, "--tol", "1e-6", "--max-iter", 3, "-q", code=3)
    assert "kernel models" in run("train", cancer, model, "--resume", "--kernel", "rbf", code=2).stderr


def test_stopped_on_the_kkt_violation(run, cancer, tmp_path):
    model = tmp_path / "m"
    few = ("--stopping", "kkt", "--tol", "1e-8", "--solver", "smo", "--max-iter", 1)
    assert "with a KKT violation of" in run("train", cancer, model, "--kernel", "rbf", *few, code=3).stderr
    run("certify", model, cancer, code=3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--gamma", "0.1"], "--gamma: it is for kernel models"),
        (["--stopping", "kkt"], "--stopping: it is for kernel models"),
        (["--no-shrinking"], "--no-shrinking: it is for kernel models"),
        (["--solver", "smo"], "smo is not for linear models: choose one of auto, ocas"),
        (["--kernel", "rbf", "--no-intercept"], "--no-intercept: it is for linear models"),
        (["--kernel", "rbf", "--penalised-intercept"], "--penalised-intercept: it is for linear models"),
        (["--kernel", "rbf", "--seed", "1"], "--seed: it is for linear models"),
        (["--kernel", "rbf", "--solver", "cpa"], "cpa is not for kernel models: choose one of auto, block, smo"),
        (["--kernel", "rbf", "--degree", "2"], "--degree: the kernel rbf has no such parameter"),
        (["--kernel", "linear", "--gamma", "2"], "--gamma: the kernel linear has no such parameter"),
        (["--kernel", "rbf", "--gamma", "wide"], "neither scale nor auto nor a number"),
        (["--kernel", "rbf", "--cache-bytes", "2X"], "not a number of bytes"),
        (["--kernel", "magic"], "magic"),
    ],
)
def test_options_that_do_not_apply_are_wrong_usage(run, cancer, tmp_path, arguments, words):
    shown = " ".join(run("train", cancer, tmp_path / "m", *arguments, code=2).stderr.split())
    assert words in shown
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--gamma", "-1"], "--gamma -1.0 must be a positive"),
        (["--cache-bytes", "1K"], "cannot hold two rows"),
        (["--solver", "block", "--working-set", "second_order"], "use --solver smo"),
    ],
)
def test_bad_values_are_told_in_one_sentence(run, cancer, tmp_path, arguments, words):
    result = run("train", cancer, tmp_path / "m", "--kernel", "rbf", *arguments, code=1)
    assert result.stderr.startswith("softmargin: ")
    assert words in result.stderr
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("text", "number"), [("4096", 4096), ("1e6", 1e6), ("500M", 500 << 20), ("2g", 2 << 30), ("0.5KB", 512)]
)
def test_bytes_as_people_write_them(text, number):
    assert options.n_bytes(text) == number


def test_what_the_estimator_has_to_say_is_a_note(run, cancer, tmp_path, monkeypatch):
    monkeypatch.setattr("softmargin.estimators.machines.kernel_base._MANY_ROWS", 100)
    trained = run("train", cancer, tmp_path / "m", "--kernel", "linear")
    assert trained.stderr.startswith("--kernel linear on 569 rows")
    assert "without --kernel" in trained.stderr
    assert run("train", cancer, tmp_path / "m", "--kernel", "linear", "--json").stderr == ""
    assert "indefinite" in run("train", cancer, tmp_path / "m", "--kernel", "sigmoid", "-q").stderr


def test_rows_that_do_not_fit(run, cancer, tmp_path):
    model = tmp_path / "m"
    run("train", cancer, model, "--kernel", "laplacian", "-q")
    for number in ("nan", "inf"):
        (tmp_path / "bad").write_text(f"1 1:1\n-1 1:{number}\n")
        assert "row 2 has values that are not finite" in run("predict", model, tmp_path / "bad", code=1).stderr


def test_a_libsvm_model_is_used_like_ours(run, iris, tmp_path):
    model, text = tmp_path / "m", tmp_path / "m.libsvm"
    run("train", iris, model, "--kernel", "rbf", "-C", 3, "-q")
    softmargin.load(model).save(text, format="libsvm")
    for command in ("predict", "evaluate"):
        assert run(command, text, iris).stdout == run(command, model, iris).stdout
    ours, theirs = (run("predict", path, iris, "--scores").stdout.split() for path in (model, text))
    np.testing.assert_allclose(np.array(theirs, dtype=float), np.array(ours, dtype=float), rtol=1e-12)
    described = json.loads(run("info", text, "--json").stdout)
    assert (described["estimator"], described["parameters"]["kernel"]) == ("SVC", "rbf")
    judged = json.loads(run("certify", text, iris, "-C", 3, "--json").stdout)
    assert judged["primal"] == pytest.approx(softmargin.load(model).certificate_.primal, rel=1e-9)
    assert "give -C" in run("certify", text, iris, code=1).stderr


@pytest.mark.skipif(shutil.which("svm-train") is None, reason="needs LIBSVM's programs")
def test_a_model_that_libsvm_trained(run, cancer, tmp_path):
    model, out = tmp_path / "m", tmp_path / "out"
    subprocess.run(["svm-train", "-q", "-c", "2", "-e", "1e-5", cancer, model], check=True, timeout=60)
    subprocess.run(["svm-predict", cancer, model, out], check=True, timeout=60, capture_output=True)
    assert run("predict", model, cancer).stdout == out.read_text()
    judged = json.loads(run("certify", model, cancer, "-C", 2, "--json").stdout)
    assert judged["relative_gap"] <= 1e-4


def test_a_precomputed_kernel_predicts_from_kernel_values(run, tmp_path):
    X, y = load_iris(return_X_y=True)
    estimator = softmargin.SVC(kernel="precomputed").fit(X @ X.T, y)
    estimator.save(tmp_path / "m")
    np.save(tmp_path / "K.npy", X[::7] @ X.T)
    labels = run("predict", tmp_path / "m", tmp_path / "K.npy").stdout.split()
    np.testing.assert_array_equal(np.array(labels, dtype=int), estimator.predict(X[::7] @ X.T))


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("params", {"kernel": "magic"}),
        ("params", {"kernel": ["rbf"]}),
        ("params", {"kernel": "precomputed"}),
        ("params", {"kernel": "poly", "degree": "three"}),
        ("values", {"gamma_": None}),
        ("values", {"n_features_in_": 10**12}),
        ("values", {"n_features_in_": 29}),
        ("arrays", {"n_support_": np.array([-1, 4], dtype=np.int32)}),
    ],
    ids=str,
)
def test_a_model_that_contradicts_itself_is_refused(run, cancer, tmp_path, part, change):
    model = tmp_path / "m"
    run("train", cancer, model, "--kernel", "rbf", "-q")
    record = read_model(model)
    parts = {"params": record.params, "values": record.values, "arrays": record.arrays}
    parts[part] |= change
    write_model(model, ModelRecord("SVC", **parts))
    refused = run("predict", model, cancer, code=1).stderr
    assert refused.startswith(f"softmargin: {model}: ")


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (softmargin.SVC(), False),
        (softmargin.SVC(stopping="kkt"), True),
        (softmargin.SVC(solver=softmargin.SMO(stopping="kkt")), True),
        (softmargin.LinearSVC(), False),
    ],
    ids=str,
)
def test_the_goal_of_certify_is_that_of_the_fit(model, expected):
    """A model whose solver object asked for LIBSVM's rule is judged by that, not by the gap."""
    assert options.goes_by_kkt(model, SimpleNamespace(dual=1.0)) is expected
