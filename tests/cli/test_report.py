"""softmargin report: the page of a model file and a data file."""

import json
import textwrap

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import softmargin
from softmargin.io.model_file import read_model
from softmargin.report.measured import FACTS, FACTS_AT
from softmargin.report.search_path import path


@pytest.fixture
def graded(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 1.0, size=(90, 4))
    y = np.digitize(X[:, 0] + rng.normal(0.0, 0.5, size=90), [2.5, 3.5])
    path = tmp_path / "graded.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False, query_id=np.arange(90) // 15)
    return path


@pytest.mark.parametrize("task", ["classify", "regress", "oneclass", "rank", "ordinal"])
def test_the_measures_are_those_of_evaluate(run, graded, tmp_path, task):
    model, out = tmp_path / "model", tmp_path / "report.md"
    run("train", graded, model, "--task", task, "-q")
    found = json.loads(run("evaluate", model, graded, "--json").stdout)
    run("report", model, graded, "-o", out)
    lines = out.read_text(encoding="utf-8").splitlines()
    shown = [name for name in found if name.split("@")[0] in (*FACTS, *FACTS_AT)]
    assert len(shown) >= 1
    for name in shown:
        title, form, _ = FACTS.get(name) or (FACTS_AT[name[: name.index("@")]][0], "{:.4f}", "")
        title, value = title.format(name.partition("@")[2]), form.format(found[name])
        assert any(title in line and value in line for line in lines), (name, value)


def test_report(run, cancer, tmp_path):
    model, out = tmp_path / "model", tmp_path / "report.html"
    run("train", cancer, model, "--solver", "coordinate", "-q")
    printed = run("report", model, cancer, "-o", out).output
    assert "verdict" in printed
    text = out.read_text(encoding="utf-8")
    assert "free support vectors" in text
    assert f"softmargin report {model} {cancer} -o {out}" in text
    again = run("report", model, cancer, "-o", out, code=1).output
    assert "is there already" in again
    assert "--force" in again
    run("report", model, cancer, "-o", out, "--force")
    run("report", model, cancer, "-o", tmp_path / "report.md")
    assert (tmp_path / "report.md").read_text(encoding="utf-8").startswith("# LinearSVC model\n")
    assert run("report", model, cancer, "-o", "-").output.startswith("<!DOCTYPE html>")


def test_what_report_refuses(run, cancer, tmp_path):
    model, empty = tmp_path / "model", tmp_path / "empty.svm"
    run("train", cancer, model, "--solver", "coordinate", "-q")
    empty.write_text("")
    assert "the file is empty" in run("report", model, empty, "-o", tmp_path / "r.html", code=1).output
    assert "is a folder" in run("report", model, cancer, "-o", tmp_path, code=1).output
    assert not (tmp_path / "r.html").exists()
    other = tmp_path / "other.svm"
    other.write_text("7 1:1\n8 2:1\n")
    run("report", model, other, "-o", tmp_path / "r.html")
    assert "is a class of the model" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_model_with_scaling_and_calibration(run, cancer, tmp_path):
    model, out = tmp_path / "model", tmp_path / "report.html"
    run("train", cancer, model, "--solver", "coordinate", "--scale", "standard", "--probability", "sigmoid", "-q")
    run("report", model, cancer, "-o", out)
    text = out.read_text(encoding="utf-8")
    assert "free support vectors" in text
    assert "ROC curve" in text
    assert ">Calibration</h3>" in text


@pytest.mark.parametrize(
    ("options", "call"),
    [
        (("--task", "rank"), "model.fit(X, y, qid=qid)"),
        (("--task", "rank", "--scale", "maxabs"), "model.fit(X, y, ranksvm__qid=qid)"),
        (("--task", "oneclass"), "model.fit(X)"),
        (("--task", "regress", "--kernel", "rbf"), "model.fit(X, y)"),
    ],
)
def test_the_fit_takes_what_the_task_has(run, graded, tmp_path, options, call):
    model, out = tmp_path / "model", tmp_path / "report.md"
    run("train", graded, model, "-q", *options)
    run("report", model, graded, "-o", out)
    text = out.read_text(encoding="utf-8")
    assert f"    {call}\n" in text
    assert "on the right side of the boundary" not in text
    fitted = getattr(estimator := softmargin.load(model), "steps", [("", estimator)])[-1][1]
    if hasattr(fitted, "n_free_"):
        assert f"| Free | {fitted.n_free_[0]} |" in text
        assert f"| Bounded | {fitted.n_bounded_[0]} |" in text


def test_features_have_the_numbers_of_the_file(run, cancer, tmp_path):
    model, out = tmp_path / "model", tmp_path / "report.md"
    run("train", cancer, model, "--solver", "coordinate", "-q")
    found = json.loads(run("info", model, "--weights", "3", "--json").stdout)
    run("report", model, cancer, "-o", out)
    rows = [line.split(" | ")[0] for line in out.read_text(encoding="utf-8").splitlines() if "| feature " in line]
    assert rows[1:4] == [f"| feature {line['feature']}" for line in found["weights"]]
    assert "| feature 1" in rows
    assert "| feature 0" not in rows


EVIL = "<script>alert(1)</script>"


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    frame = pd.DataFrame(X, columns=["a", EVIL]).assign(label=np.where(X[:, 0] > 0, EVIL, "other"))
    frame.to_csv(tmp_path / "table.csv", index=False)
    return frame


def test_how_to_repeat_it(run, cancer, tmp_path):
    model, out = tmp_path / "model", tmp_path / "report.md"
    run("train", cancer, model, "--scale", "standard", "--probability", "sigmoid", "--index-base", "1", "-q")
    run("report", model, cancer, "--index-base", "1", "-o", out)
    text = out.read_text(encoding="utf-8")
    assert f"softmargin report {model} {cancer} --index-base 1 -o {out}" in text
    indented = text.partition("The fit in Python:")[2].partition("The command")[0]
    code = textwrap.dedent(indented)
    given = dict(zip("Xy", load_svmlight_file(str(cancer)), strict=True))
    exec(code, given)
    assert given["model"].score(given["X"], given["y"]) > 0.9


def test_names_and_labels_with_html_in_them(run, table, tmp_path):
    run("train", tmp_path / "table.csv", tmp_path / "model", "--label", "label", "-q")
    run("report", tmp_path / "model", tmp_path / "table.csv", "--label", "label", "-o", tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert EVIL not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_data_without_labels(run, table, tmp_path):
    run("train", tmp_path / "table.csv", tmp_path / "model", "--label", "label", "-q")
    table.drop(columns="label").to_csv(tmp_path / "plain.csv", index=False)
    told = run("report", tmp_path / "model", tmp_path / "plain.csv", "-o", tmp_path / "r.md").output
    assert "has no labels, so nothing is measured" in told
    assert "nothing can be measured" in (tmp_path / "r.md").read_text(encoding="utf-8")


def test_values_that_are_not_finite(run, cancer, tmp_path):
    run("train", cancer, tmp_path / "model", "--solver", "coordinate", "-q")
    holes = tmp_path / "holes.svm"
    holes.write_text("1 1:1\n-1 2:nan\n")
    told = run("report", tmp_path / "model", holes, "-o", tmp_path / "r.html", code=1).output
    assert "row 2 has values that are not finite" in told
    assert str(holes) in told
    assert not (tmp_path / "r.html").exists()


def test_a_label_that_the_model_does_not_know(run, cancer, tmp_path):
    run("train", cancer, tmp_path / "model", "--solver", "coordinate", "-q")
    other = tmp_path / "other.svm"
    other.write_text("7 1:1\n-1 2:1\n1 3:1\n")
    run("report", tmp_path / "model", other, "-o", tmp_path / "r.md")
    assert "1 of 3 rows have labels that the model does not know, such as 7" in (tmp_path / "r.md").read_text()


@pytest.mark.parametrize(
    ("options", "titles"),
    [
        (("--Cs", "0.01,0.1,1"), ["Score", "Support vectors"]),
        (
            ("--Cs", "0.1,1", "--kernel", "rbf", "--gammas", "0.01,0.1", "--scale", "standard"),
            ["Score", "Support vectors"],
        ),
        (("--task", "regress", "--Cs", "0.1,1", "--epsilons", "0,0.5"), ["Score"]),
        (("--task", "regress", "-C", "1", "--epsilons", "0,0.5"), ["Score"]),
    ],
)
def test_the_search_of_tune_is_in_the_file_and_on_the_page(run, cancer, tmp_path, options, titles):
    model = tmp_path / "model"
    found = json.loads(run("tune", cancer, model, "--cv", "3", "--widen", "0", "--json", *options).stdout)
    record = read_model(model)
    stored = record.values["search_"]
    assert sorted(stored["score"]) == sorted(line[stored["measure"]] for line in found["table"])
    assert set(stored["params"]) == set(found["chosen"])
    run("report", model, cancer, "-o", tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    for title in titles:
        assert f">{title}</h3>" in text
    last = getattr(estimator := softmargin.load(model), "steps", [("", estimator)])[-1][1]
    section = path(last, last)
    (charts,) = section.blocks
    assert [chart.title for chart in charts.charts] == titles
    x = charts.charts[0].x_name
    assert section.title == f"Score against {x}"
    assert charts.charts[0].x == sorted(set(stored["params"][x]))
    assert max(max(line.values) for line in charts.charts[0].lines) == pytest.approx(max(stored["score"]))
    told = json.loads(run("info", model, "--json").stdout)
    assert told["search"]["points"] == len(stored["score"])
    last.set_params(C=0.5).fit(*softmargin.load_svmlight(cancer))
    assert not hasattr(last, "search_")  # it did not choose these parameters


def test_a_model_that_is_stored_again_keeps_its_search(run, cancer, tmp_path):
    run("tune", cancer, tmp_path / "model", "--Cs", "0.01,0.1", "--cv", "3", "--widen", "0", "-q")
    softmargin.load(tmp_path / "model").save(tmp_path / "again")
    assert read_model(tmp_path / "again").values["search_"] == read_model(tmp_path / "model").values["search_"]
