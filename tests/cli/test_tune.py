"""`softmargin tune` and `train --cv`."""

import json

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_diabetes

import softmargin


@pytest.fixture
def queries(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    path = tmp_path / "queries.svm"
    dump_svmlight_file(20 * X, np.digitize(y, [100, 200]), str(path), zero_based=False, query_id=np.arange(len(y)) % 9)
    return path


def test_the_best_model_is_fitted_on_all_rows(run, cancer, tmp_path):
    path = tmp_path / "model"
    found = json.loads(run("tune", cancer, path, "--Cs", "0.01,0.1,1", "--widen", "0", "--json").stdout)
    assert [line["C"] for line in found["table"]] == [0.01, 0.1, 1.0]
    best = max(found["table"], key=lambda line: line["accuracy"])
    assert found["chosen"] == {"C": best["C"]}
    model = softmargin.load(path)
    assert best["C"] == model.C
    X, y = softmargin.load_svmlight(cancer)
    assert softmargin.LinearSVC(C=best["C"]).fit(X, y).certificate_ == model.certificate_


def test_a_table_for_people_and_a_picture(run, cancer, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "scores.png"
    shown = run(
        "tune", cancer, tmp_path / "m", "--kernel", "rbf", "--Cs", "1:10:2", "--gammas", "0.01,0.1", "--plot", picture
    ).stdout
    assert shown.splitlines()[0].split()[:3] == ["C", "gamma", "accuracy"]
    assert sum(line.endswith("*") for line in shown.splitlines()) == 1
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("task", ["rank", "ordinal", "regress"])
def test_other_tasks(run, queries, tmp_path, task):
    found = json.loads(
        run("tune", queries, tmp_path / "m", "--task", task, "--Cs", "0.1,1", "--cv", "3", "--json").stdout
    )
    assert found["chosen"]["C"] > 0
    assert found["chosen"]["C"] == softmargin.load(tmp_path / "m").C


def test_cross_validation_of_one_model(run, cancer, tmp_path):
    found = json.loads(run("train", cancer, tmp_path / "m", "-C", "0.1", "--cv", "4", "--json").stdout)
    assert found["folds"] == 4 == len(found["scores"])
    assert found["accuracy_of_held_out_rows"] == pytest.approx(np.mean(found["scores"]))
    assert found["status"] == "OPTIMAL"


@pytest.mark.parametrize(
    ("options", "words", "code"),
    [
        (("-C", "1"), "nothing to search", 1),
        (("-C", "1", "--Cs", "1,2"), "fixed and searched at once", 2),
        (("--gammas", "1"), "no gamma", 2),
        (("--Cs", "one"), "write numbers", 1),
        (("--Cs", "-1,1"), "write numbers", 1),
        (("--nus", "0.1"), "no nu", 2),
        (("--cv", "1"), "at least 2", 1),
    ],
)
def test_what_cannot_be_searched_is_told(run, cancer, tmp_path, options, words, code):
    assert words in run("tune", cancer, tmp_path / "m", *options, code=code).stderr
    assert not (tmp_path / "m").exists()
