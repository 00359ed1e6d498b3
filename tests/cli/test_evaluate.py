"""What `evaluate` measures, and which columns of a table are what."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics as theirs
from sklearn.datasets import load_diabetes, load_iris

import softmargin
from softmargin.metrics import pr_area, precision_by_query, reciprocal_rank_by_query, weighted_roc_area


@pytest.fixture
def iris(tmp_path):
    X, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    frame["kind"] = np.array(["setosa", "versicolor", "virginica"])[y]
    frame["w"] = np.arange(len(y)) % 3 + 1.0
    frame["site"] = np.where(np.arange(len(y)) % 2, "north", "south")
    frame.to_csv(tmp_path / "iris.csv", index=False)
    frame.to_csv(tmp_path / "iris.tsv", index=False, sep="\t")
    return tmp_path / "iris.csv", frame


def test_classes(run, iris, tmp_path):
    path, frame = iris
    options = ("--label", "kind", "--weight", "w", "--drop", "site")
    run("train", path, tmp_path / "m", "-q", *options)
    model = softmargin.load(tmp_path / "m")
    X, y, w = frame[["a", "b"]], frame["kind"].to_numpy(), frame["w"].to_numpy()
    again = softmargin.LinearSVC().fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    run("certify", tmp_path / "m", path, "--label", "kind", "--weight", "w")
    given = ("--label", "kind", "--weight", "w", "--by", "site", "--json")
    found = json.loads(run("evaluate", tmp_path / "m", path, *given).stdout)
    predicted, scores = model.predict(X), model.decision_function(X)
    assert found["accuracy"] == pytest.approx(theirs.accuracy_score(y, predicted, sample_weight=w))
    expected = theirs.precision_recall_fscore_support(y, predicted, sample_weight=w, zero_division=0)
    for k, label in enumerate(model.classes_):
        own = found["per_class"][label]
        np.testing.assert_allclose([own["precision"], own["recall"], own["f1"]], [part[k] for part in expected[:3]])
    confusion = theirs.confusion_matrix(y, predicted, sample_weight=w)
    np.testing.assert_allclose([list(row.values()) for row in found["confusion"].values()], confusion)
    areas = [theirs.roc_auc_score(y == label, scores[:, k], sample_weight=w) for k, label in enumerate(model.classes_)]
    assert found["roc_area"] == pytest.approx(np.mean(areas))
    areas = [
        theirs.average_precision_score(y == label, scores[:, k], sample_weight=w)
        for k, label in enumerate(model.classes_)
    ]
    assert found["pr_area"] == pytest.approx(np.mean(areas))
    south = frame["site"] == "south"
    assert found["by"]["south"]["rows"] == south.sum()
    assert found["by"]["south"]["accuracy"] == pytest.approx(np.average((predicted == y)[south], weights=w[south]))
    shown = run("evaluate", tmp_path / "m", path, "--label", "kind").stdout
    assert "true \\ predicted" in shown
    assert "precision" in shown


def test_tables_with_tabs_and_labels_by_number(run, iris, tmp_path):
    _, frame = iris
    frame[["a", "b", "kind"]].to_csv(tmp_path / "few.tsv", index=False, sep="\t")
    run("train", tmp_path / "few.tsv", tmp_path / "by number", "-q", "--label", "-1")
    run("train", iris[0], tmp_path / "by name", "-q", "--label", "kind", "--features", "a,b")
    first, second = (softmargin.load(tmp_path / f"by {what}") for what in ("number", "name"))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert first.feature_names_in_.tolist() == ["a", "b"]


def test_weights_from_a_file(run, cancer, tmp_path):
    X, y = softmargin.load_svmlight(cancer)
    weights = np.random.default_rng(0).integers(0, 3, y.size)
    np.savetxt(tmp_path / "weights", weights)
    run("train", cancer, tmp_path / "m", "-q", "--weight", tmp_path / "weights")
    again = softmargin.LinearSVC().fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(softmargin.load(tmp_path / "m").coef_, again.coef_)
    np.savetxt(tmp_path / "weights", weights[1:])
    error = run("train", cancer, tmp_path / "n", "--weight", tmp_path / "weights", code=1).stderr
    assert f"a number for each of the {y.size} rows" in error


def test_groups_stay_in_a_fold(run, iris, tmp_path):
    data = (iris[0], tmp_path / "m", "--label", "kind", "--drop", "w", "--group", "site")
    error = run("tune", *data, "--Cs", "1,2", code=1).stderr
    assert "2 groups or queries for 5 folds" in error
    run("tune", *data, "--Cs", "1,2", "--cv", "2", "-q")


def test_numbers(run, tmp_path):
    X, y = load_diabetes(return_X_y=True)
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(10)]).assign(label=y)
    frame.to_parquet(tmp_path / "d.parquet")
    run("train", tmp_path / "d.parquet", tmp_path / "m", "-q", "--task", "regress", "-C", "100")
    found = json.loads(run("evaluate", tmp_path / "m", tmp_path / "d.parquet", "--json").stdout)
    predicted = softmargin.load(tmp_path / "m").predict(frame.drop(columns="label"))
    assert found["r2"] == pytest.approx(theirs.r2_score(y, predicted))
    assert found["median_absolute_error"] == pytest.approx(theirs.median_absolute_error(y, predicted))
    assert found["largest_error"] == pytest.approx(theirs.max_error(y, predicted))
    assert found["mean_error"] == pytest.approx(np.mean(predicted - y))


def test_queries(run, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    lines = (
        f"{max(0, int(2 * x[0]))} qid:{k // 6} " + " ".join(f"{j}:{v}" for j, v in enumerate(x, 1))
        for k, x in enumerate(X)
    )
    (tmp_path / "q").write_text("\n".join(lines) + "\n")
    run("train", tmp_path / "q", tmp_path / "m", "-q", "--task", "rank")
    given = ("--ndcg-at", "1,3", "--per-query", "--json")
    found = json.loads(run("evaluate", tmp_path / "m", tmp_path / "q", *given).stdout)
    assert {"ndcg@1", "ndcg@3", "p@1", "p@3", "map", "mrr", "pairs_correct"} <= found.keys()
    assert len(found["per_query"]) == found["queries"] == 10
    own = [line["p@3"] for line in found["per_query"].values()]
    assert found["p@3"] == pytest.approx(np.mean(own))
    assert "is no list of places" in run("evaluate", tmp_path / "m", tmp_path / "q", "-k", "0", code=2).stderr


def test_ties_are_worth_the_mean_over_their_orders():
    from itertools import permutations

    y, scores = np.array([0, 1, 0, 1, 0]), np.array([2.0, 1.0, 1.0, 1.0, 1.0])
    orders = [[0, *rest] for rest in permutations(range(1, 5))]
    first = [1.0 / (1 + next(place for place, row in enumerate(order) if y[row])) for order in orders]
    top = [np.mean(y[order[:2]]) for order in orders]
    assert float(reciprocal_rank_by_query(y, scores)) == pytest.approx(np.mean(first))
    assert float(precision_by_query(y, scores, k=2)) == pytest.approx(np.mean(top))


def test_areas_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    scores, positive = rng.integers(0, 9, 80).astype(float), rng.random(80) < 0.4
    weights = rng.integers(0, 4, 80).astype(float)
    assert weighted_roc_area(positive, scores, weights) == pytest.approx(
        theirs.roc_auc_score(positive, scores, sample_weight=weights)
    )
    assert pr_area(positive, scores) == pytest.approx(theirs.average_precision_score(positive, scores))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--drop", "none"), "no column 'none'"),
        (("--weight", "site"), "a number for each"),
        (("--label", "9"), "no column '9'"),
        (("--features", "a,z"), "missing"),
    ],
)
def test_columns_that_are_not_there(run, iris, tmp_path, options, words):
    label = () if "--label" in options else ("--label", "kind")
    assert words in run("train", iris[0], tmp_path / "m", *label, *options, code=1).stderr
