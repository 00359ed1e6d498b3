"""The command line as a person or a script uses it."""

import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

import softmargin


def test_from_a_file_to_a_model_and_back(run, cancer, tmp_path):
    model, out = tmp_path / "cancer.model", tmp_path / "out.txt"
    trained = json.loads(run("train", cancer, model, "-C", "0.5", "--tol", "1e-4", "--jobs", 1, "--json").stdout)
    assert trained["status"] == "OPTIMAL"
    assert trained["relative_gap"] <= 1e-4
    assert trained["classes"] == [-1, 1]

    predicted = run("predict", model, cancer, out)
    labels = out.read_text().split()
    assert set(labels) == {"-1", "1"}
    assert "accuracy" in predicted.stderr
    assert predicted.stdout == ""
    assert run("predict", model, cancer).stdout == out.read_text()

    estimator = softmargin.load(model)
    X, y = softmargin.load_svmlight(cancer)
    np.testing.assert_array_equal(estimator.predict(X), np.array(labels, dtype=int))
    scores = run("predict", model, cancer, "--scores").stdout.split()
    np.testing.assert_array_equal(np.array(scores, dtype=float), estimator.decision_function(X))

    summary = json.loads(run("predict", model, cancer, out, "--json").stdout)
    assert summary["correct"] == np.count_nonzero(estimator.predict(X) == y)
    found = json.loads(run("evaluate", model, cancer, "--json").stdout)
    assert found["rows"] == len(y)
    assert found["accuracy"] == pytest.approx(estimator.score(X, y))
    assert 0.9 < found["break_even"] <= found["roc_area"] <= 1.0

    judged = json.loads(run("certify", model, cancer, "--json").stdout)
    assert judged["primal"] == pytest.approx(trained["primal"], rel=1e-12)
    assert judged["relative_gap"] <= 1e-4


def test_several_classes_as_one_problem(run, tmp_path):
    X, y = load_iris(return_X_y=True)
    data, model, text = tmp_path / "iris.svm", tmp_path / "iris.model", tmp_path / "iris.txt"
    lines = (f"{label} {' '.join(f'{j}:{v}' for j, v in enumerate(x, 1))}" for x, label in zip(X, y, strict=True))
    data.write_text("\n".join(lines) + "\n")
    options = "--multi-class", "crammer_singer", "--penalised-intercept", "--json"
    trained = json.loads(run("train", data, model, *options).stdout)
    assert trained["status"] == "OPTIMAL"
    judged = json.loads(run("certify", model, data, "--json").stdout)
    assert judged["primal"] == pytest.approx(trained["primal"], rel=1e-12)
    predicted = run("predict", model, data).stdout
    softmargin.load(model).save(text, format="liblinear")
    assert text.read_text().startswith("solver_type MCSVM_CS\n")
    assert run("predict", text, data).stdout == predicted
    refused = run("train", data, model, "--multi-class", "crammer_singer", code=1)
    assert "set --penalised-intercept, or --no-intercept" in refused.stderr


def test_info_tells_what_is_in_the_file(run, cancer, tmp_path):
    model = tmp_path / "m"
    run("train", cancer, model, "--class-weight", "balanced", "--quiet")
    text = run("info", model).stdout
    for words in (
        "LinearSVC",
        "class weight       balanced",
        "auto: Coordinate descent, because",
        "-1 1",
        "relative gap",
        "OPTIMAL",
        "versions",
    ):
        assert words in text
    described = json.loads(run("info", model, "--json").stdout)
    assert described["bytes"] == model.stat().st_size
    assert described["certificate"]["relative_gap"] <= 1e-3
    assert described["can_be_resumed"] is False


def test_several_classes_and_names_as_labels(run, tmp_path):
    pytest.importorskip("pyarrow")
    import pandas as pd

    X, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["kind"] = np.array(["setosa", "versicolor", "virginica"])[y]
    frame.to_csv(tmp_path / "iris.csv", index=False)
    model = tmp_path / "m"
    run("train", tmp_path / "iris.csv", model, "--label", "kind")
    assert run("predict", model, tmp_path / "iris.csv", "--label", "kind").stdout.split()[:2] == ["setosa"] * 2
    rows = run("predict", model, tmp_path / "iris.csv", "--label", "kind", "--scores").stdout.splitlines()
    assert len(rows[0].split()) == 3
    found = json.loads(run("evaluate", model, tmp_path / "iris.csv", "--label", "kind", "--json").stdout)
    assert found["accuracy"] > 0.9
    assert "break_even" not in found
    assert set(found["confusion"]) == {"setosa", "versicolor", "virginica"}


def test_options_reach_the_estimator(run, cancer, tmp_path):
    model = tmp_path / "m"
    run("train", cancer, model, "-c", "2", "--solver", "cpa", "--no-intercept", "--class-weight", "+1=2,-1=0.5", "-q")
    estimator = softmargin.load(model)
    assert (estimator.C, estimator.solver, estimator.fit_intercept) == (2.0, "cpa", False)
    assert estimator.class_weight == {1: 2.0, -1: 0.5}
    run("train", cancer, model, "--penalised-intercept", "--dtype", "float32", "-q", "--n-features", 40)
    estimator = softmargin.load(model)
    assert estimator.intercept == "penalised"
    assert estimator.n_features_in_ == 40
    ended = run("train", cancer, model, "--solver", "sgd", "--seed", 3, code=3)
    assert "--solver ocas" in ended.stderr
    assert softmargin.load(model).random_state == 3


def test_a_fit_that_stops_early_is_saved_and_resumed_exactly(run, cancer, tmp_path):
    whole, part = tmp_path / "whole", tmp_path / "part"
    run("train", cancer, whole, "--tol", "1e-6", "-q")
    stopped = run("train", cancer, part, "--tol", "1e-6", "--max-iter", 5, code=3)
    assert "--resume" in stopped.stderr
    assert "relative gap" in stopped.stdout
    assert json.loads(run("info", part, "--json").stdout)["can_be_resumed"] is True
    run("train", cancer, part, "--resume", "-q")
    one, other = softmargin.load(whole), softmargin.load(part)
    assert one.coef_.tobytes() == other.coef_.tobytes()
    assert one.certificate_ == other.certificate_
    assert "nothing to resume" in run("train", cancer, part, "--resume", code=1).stderr
    run("train", cancer, part, "--tol", "1e-6", "--max-iter", 5, "--solver", "ocas", "-q", code=3)
    assert "leave the other out" in run("train", cancer, part, "--resume", "--solver", "cpa", code=1).stderr
    run("train", cancer, part, "--resume", "--solver", "ocas", "-q")
    run("train", cancer, whole, "--tol", "1e-6", "--solver", "ocas", "-q")
    assert softmargin.load(part).coef_.tobytes() == softmargin.load(whole).coef_.tobytes()


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        ("1 1:2\n-1 2:x\n", [], ":2:"),
        ("1 1:2\n1 2:3\n", [], "class"),
        ("1 1:2\n-1 2:3\n", ["-C", "-1"], "-C -1.0 must be"),
        ("1 1:2\n-1 2:3\n", ["--class-weight", "7=1"], "no label of the data"),
        ("1 1:2\n-1 2:3\n", ["--class-weight", "1=big"], "not a number"),
        ("1 1:2\n-1 2:3\n", ["--label", "y"], "label first in every line"),
        ("1 1:2\n-1 2:3\n", ["--n-features", "1"], "1"),
    ],
)
def test_bad_input_is_told_in_one_sentence(run, tmp_path, text, arguments, words):
    (tmp_path / "d").write_text(text)
    result = run("train", tmp_path / "d", tmp_path / "m", *arguments, code=1)
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith("softmargin: ")
    assert not (tmp_path / "m").exists()


def test_missing_files_wrong_models_and_wrong_usage(run, cancer, tmp_path):
    assert "No such file" in run("train", tmp_path / "none", tmp_path / "m", code=1).stderr
    assert "not a folder" in run("train", cancer, tmp_path / "none" / "m", code=1).stderr
    assert "cancer.svm" in run("predict", cancer, cancer, code=1).stderr
    assert run("train", cancer, code=2).stderr
    assert run("train", cancer, tmp_path / "m", "--solver", "magic", code=2).stderr
    assert "OUT" in run("predict", cancer, cancer, "--json", code=2).stderr
    model = tmp_path / "m"
    run("train", cancer, model, "-q")
    (tmp_path / "other").write_text("7 1:1\n8 2:1\n")
    assert "none of the labels" in run("evaluate", model, tmp_path / "other", code=1).stderr
    assert "has 2 rows, but" in run("certify", model, tmp_path / "other", code=1).stderr
    (tmp_path / "nan").write_text("1 1:1\n-1 1:nan\n")
    assert "row 2 has values that are not finite" in run("predict", model, tmp_path / "nan", code=1).stderr


def test_certify_ends_with_3_where_the_gap_is_too_large(run, cancer, tmp_path):
    model = tmp_path / "m"
    run("train", cancer, model, "--tol", "1e-6", "--max-iter", 3, "-q", code=3)
    run("certify", model, cancer, code=3)


def test_a_liblinear_model_is_judged_at_the_c_that_is_given(run, cancer, tmp_path):
    model, text = tmp_path / "m", tmp_path / "m.liblinear"
    run("train", cancer, model, "-C", "0.1", "--no-intercept", "-q")
    softmargin.load(model).save(text, format="liblinear")
    judged = json.loads(run("certify", text, cancer, "-C", "0.1", "--json").stdout)
    assert judged["primal"] == pytest.approx(softmargin.load(model).certificate_.primal, rel=1e-9)
    assert "leave -C out" in run("certify", model, cancer, "-C", "0.1", code=1).stderr


def test_a_reader_that_has_seen_enough_is_no_error(run, cancer, tmp_path):
    model = tmp_path / "m"
    run("train", cancer, model)
    code = "from softmargin.cli.main import main; main()"
    child = subprocess.Popen(
        [sys.executable, "-c", code, "info", str(model)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    child.stdout.close()
    assert child.wait(60) == 1
    assert child.stderr.read() == b""
    child.stderr.close()


def test_help_predict_and_info_import_little(run, cancer, tmp_path):
    run_it = (
        "import sys\nfrom softmargin.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "print([name for name in ('sklearn', 'numba', 'scipy', 'numpy') if name in sys.modules])"
    )

    def imported(*arguments):
        command = [sys.executable, "-c", run_it, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.splitlines()[-1]

    model = tmp_path / "m"
    run("train", cancer, model)
    assert imported("--help") == "[]"
    assert imported("info", model) in ("['scipy', 'numpy']", "['numpy']")
    (tmp_path / "few.svm").write_text("".join(cancer.read_text().splitlines(keepends=True)[:99]))
    assert imported("predict", model, tmp_path / "few.svm", tmp_path / "out") == "['scipy', 'numpy']"
    run("train", tmp_path / "few.svm", model, "--kernel", "rbf")
    assert imported("train", "--help") == "[]"
    assert imported("info", model) in ("['scipy', 'numpy']", "['numpy']")
    assert imported("predict", model, tmp_path / "few.svm", tmp_path / "out") == "['numba', 'scipy', 'numpy']"


def test_without_the_extra_the_program_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; from softmargin.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert 'pip install "softmargin[cli]"' in done.stderr


@pytest.mark.parametrize(("options", "loss"), [([], "hinge"), (["--loss", "squared_hinge"], "squared_hinge")])
def test_the_loss_is_kept_in_both_formats(run, cancer, tmp_path, options, loss):
    model, text = tmp_path / "m", tmp_path / "text"
    trained = json.loads(run("train", cancer, model, *options, "-C", "0.1", "--json").stdout)
    assert trained["status"] == "OPTIMAL"
    assert softmargin.load(model).loss == loss
    assert json.loads(run("certify", model, cancer, "--json").stdout)["relative_gap"] <= 1e-3
    softmargin.load(model).save(text, format="liblinear")
    assert softmargin.load(text).loss == loss


def test_a_loss_and_a_solver_that_do_not_go_together(run, cancer, tmp_path):
    refused = run("train", cancer, tmp_path / "m", "--loss", "squared_hinge", "--solver", "ocas", code=1)
    assert "--solver ocas cannot minimise --loss squared_hinge" in refused.stderr
    refused = run("train", cancer, tmp_path / "m", "--loss", "epsilon_insensitive", code=1)
    assert "choose one of 'hinge', 'squared_hinge'" in refused.stderr
    refused = run("train", cancer, tmp_path / "m", "--kernel", "rbf", "--loss", "squared_hinge", code=2)
    assert "it is for linear models that classify or regress" in refused.stderr
