"""Messages speak of options, not of Python's arguments, and name the cause."""

import json

import numpy as np
import pytest

import softmargin
from softmargin.cli.label_options import class_weights
from softmargin.cli.wording import in_options


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("C=-1.0 must be positive", "-C -1.0 must be positive"),
        ("use solver='auto' or solver='smo'.", "use --solver auto or --solver smo."),
        ("Pass a larger n_features, or none.", "Give a larger --n-features, or none."),
        ("Pass zero_based=True if they begin at 0.", "Give --index-base 0 if they begin at 0."),
        ("name it with label=.", "name it with --label."),
        ("leave label='y' out.", "leave --label y out."),
        ("fit_intercept=False and intercept='penalised'", "--no-intercept and --penalised-intercept"),
        ("raise max_iter (now 3)", "raise --max-iter (now 3)"),
        (
            "max_iter=0 must be positive or None (no limit).",
            "--max-iter 0 must be positive, or be left out (no limit).",
        ),
        ("data/n_features.svm: the label is wrong", "data/n_features.svm: the label is wrong"),
        ("/tmp/tol=3.svm: no such file", "/tmp/tol=3.svm: no such file"),
        ("the solver of the kernel has a label", "the solver of the kernel has a label"),
    ],
)
def test_arguments_become_options(message, words):
    assert in_options(message) == words


@pytest.mark.parametrize(
    "text", ["1=2,-1=0.5", "1:2,-1:0.5", "+1:2 -1:.5", "{1: 2, -1: 0.5}", "1=2;-1=0.5", " 1 = 2, -1 = 0.5"]
)
def test_class_weights_as_people_write_them(text):
    assert class_weights(text, np.array([1, -1])) == {1: 2.0, -1: 0.5}


@pytest.mark.parametrize(("text", "words"), [("1", "has no weight"), ("7:1", "no label"), ("1:x", "not a number")])
def test_class_weights_that_cannot_be_read_say_how_to_write_them(text, words):
    with pytest.raises(softmargin.SoftmarginError, match=f"{words}.*LABEL=WEIGHT"):
        class_weights(text, np.array([1, -1]))


def test_text_labels_with_weights():
    assert class_weights("cat:2,'dog'=3", np.array(["cat", "dog"])) == {"cat": 2.0, "dog": 3.0}


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--jobs", 0], ["--max-iter", 0], ["--max-seconds", -1], ["--tol", -1], ["-C", 0], ["--n-features", 3]),
        *(["--label", "y"], ["--solver", "sgd", "--seed", -1], ["--no-intercept", "--penalised-intercept"]),
        *(["--kernel", "rbf", "--gamma", 0], ["--kernel", "poly", "--degree", -1], ["--class-weight", "1"]),
        *(["--kernel", "rbf", "--cache-bytes", 1], ["--kernel", "sigmoid", "--solver", "active_set"]),
        ["--task", "ordinal", "--classes", "1"],
        ["--kernel", "rbf", "--solver", "block", "--working-set", "second_order"],
    ],
    ids=str,
)
def test_no_message_speaks_python(run, cancer, tmp_path, arguments):
    error = run("train", cancer, tmp_path / "m", *arguments, code=1).stderr
    assert error.startswith("softmargin: ")
    assert error.count("\n") == 1
    for known in (str(tmp_path), "active_set", "second_order", "gamma <= 0", "LABEL=WEIGHT"):
        error = error.replace(known, "")
    for word in ("=", "None", "_", "True", "False"):
        assert word not in error


class TestCertify:
    def test_a_foreign_model_needs_its_c(self, run, cancer, tmp_path):
        X, y = softmargin.load_svmlight(cancer)
        softmargin.LinearSVC(fit_intercept=False).fit(X, y).save(tmp_path / "m", format="liblinear")
        assert "does not say which C it was trained with" in run("certify", tmp_path / "m", cancer, code=1).stderr
        run("certify", tmp_path / "m", cancer, "-C", 1)

    @pytest.mark.parametrize("task", [[], ["--task", "ordinal", "--thresholds", "all"]], ids=str)
    def test_rows_in_another_order_are_told_from_other_rows(self, run, cancer, tmp_path, task):
        run("train", cancer, tmp_path / "m", *task, "-q")
        lines = cancer.read_text().splitlines(keepends=True)
        (tmp_path / "other").write_text("".join(lines[200:] + lines[:200]))
        assert "in another order" in run("certify", tmp_path / "m", tmp_path / "other", code=3).stderr
        flipped = [line[1:] if line.startswith("-") else f"-{line}" for line in lines[:50]]
        (tmp_path / "other").write_text("".join(flipped + lines[50:]))
        assert "other rows, labels or queries" in run("certify", tmp_path / "m", tmp_path / "other", code=3).stderr
        (tmp_path / "other").write_text("".join(lines[:-1]))
        assert (
            "568 rows, but the model was trained on 569"
            in run("certify", tmp_path / "m", tmp_path / "other", code=1).stderr
        )

    def test_rows_of_a_kernel_model_in_another_order(self, run, cancer, tmp_path):
        run("train", cancer, tmp_path / "m", "--kernel", "rbf", "-q")
        lines = cancer.read_text().splitlines(keepends=True)
        (tmp_path / "other").write_text("".join(lines[200:] + lines[:200]))
        told = run("certify", tmp_path / "m", tmp_path / "other", code=1).stderr
        assert "not the rows that DATA has in their places" in told
        assert "in the same order" in told


def test_swapped_arguments_are_noticed(run, cancer, tmp_path):
    run("train", cancer, tmp_path / "m", "-q")
    for command in ("predict", "evaluate", "certify"):
        assert "MODEL comes before DATA" in run(command, cancer, tmp_path / "m", code=1).stderr


def test_labels_that_the_model_does_not_know_are_told(run, cancer, tmp_path):
    run("train", cancer, tmp_path / "m", "-q")
    (tmp_path / "d").write_text("1 1:1\n2 1:2\n-1 1:3\n")
    for command in ("predict", "evaluate"):
        assert "[2], occur in 1 of 3 rows" in run(command, tmp_path / "m", tmp_path / "d").stderr


def test_a_column_too_many_may_be_the_label(run, tmp_path):
    X = np.random.default_rng(0).standard_normal((40, 3))
    np.save(tmp_path / "d.npy", np.column_stack([X, X[:, 0] > 0]))
    run("train", tmp_path / "d.npy", tmp_path / "m", "--label", -1, "-q")
    assert "--label -1" in run("predict", tmp_path / "m", tmp_path / "d.npy", code=1).stderr


def test_real_numbers_are_no_classes(run, tmp_path):
    (tmp_path / "d").write_text("0.5 1:1\n2.25 1:2\n-1.125 1:3\n")
    told = run("train", tmp_path / "d", tmp_path / "m", code=1).stderr
    assert "the labels, such as 0.5, are real numbers, not classes: learn their order with --task rank." in told


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        ("1 1:1\n1 1:2\n", [], "softmargin: DATA holds one class only (1): "),
        ("1 1:1\n1 1:2\n", ["--task", "rank", "-q"], "softmargin: all targets are 1: "),
        ("1 1:1\n-1 1:1e200\n", ["--kernel", "rbf"], "--gamma scale needs the variance of the features, "),
    ],
)
def test_rows_are_data_and_labels_are_not_y(run, tmp_path, text, arguments, words):
    (tmp_path / "d").write_text(text)
    assert words in run("train", tmp_path / "d", tmp_path / "m", *arguments, code=1).stderr


def test_svmlight_text_under_the_name_of_a_table_is_told(run, cancer, tmp_path):
    cancer.rename(tmp_path / "d.csv")
    told = run("train", tmp_path / "d.csv", tmp_path / "m", code=1).stderr
    assert "is svmlight text: give the file another ending" in told
    (tmp_path / "d.csv").write_text(f"{'name' * 50},label\nword,1\nword,2\n")
    assert len(run("train", tmp_path / "d.csv", tmp_path / "m", code=1).stderr) < len(str(tmp_path)) + 250


def test_seconds_are_those_on_the_wall(run, tmp_path):
    """Those of several classes that are trained side by side were added up."""
    import time

    X = np.random.default_rng(0).standard_normal((2000, 30))
    np.savez(tmp_path / "d.npz", X=X, y=np.argmax(X[:, :5], axis=1))
    began = time.perf_counter()
    told = json.loads(run("train", tmp_path / "d.npz", tmp_path / "m", "--jobs", 4, "--json").stdout)
    assert told["seconds"] <= time.perf_counter() - began
