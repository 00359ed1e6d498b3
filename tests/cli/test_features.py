"""Which feature is which: names of columns, the number of the first feature, and features that training never saw."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_iris
from sklearn.preprocessing import StandardScaler

import softmargin

ENDINGS = [".csv", ".parquet", ".csv.gz"]


@pytest.fixture
def write(tmp_path):
    """A function that writes a frame to a file."""
    pytest.importorskip("pyarrow")

    def write(frame, name):
        path = tmp_path / name
        frame.to_parquet(path) if name.endswith(".parquet") else frame.to_csv(path, index=False)
        return path

    return write


@pytest.fixture
def frame():
    import pandas as pd

    X, y = load_iris(return_X_y=True)
    return pd.DataFrame(X, columns=["sepal length", "sepal width", "petal length", "petal width"]).assign(label=y)


class TestNames:
    @pytest.mark.parametrize("ending", ENDINGS)
    @pytest.mark.parametrize("more", [[], ["--kernel", "rbf"], ["--task", "ordinal"]], ids=str)
    def test_columns_in_another_order_are_found_by_name(self, run, write, frame, tmp_path, ending, more):
        """A permuted file scored 39.5 % instead of 97.5 % without a word."""
        model = tmp_path / "m"
        run("train", write(frame, f"train{ending}"), model, *more, "-q")
        same = run("evaluate", model, tmp_path / f"train{ending}")
        permuted = write(frame[frame.columns[[3, 4, 1, 0, 2]]], f"permuted{ending}")
        for command in ("evaluate", "predict"):
            found = run(command, model, permuted)
            assert found.stdout == run(command, model, tmp_path / f"train{ending}").stdout
        assert float(same.stdout.split()[-1]) > 0.9
        assert same.stderr == ""
        run("certify", model, permuted)
        names = list(frame.columns[:4])
        assert softmargin.load(model).feature_names_in_.tolist() == names
        assert json.loads(run("info", model, "--json").stdout)["feature_names"] == names

    @pytest.mark.parametrize("command", ["predict", "evaluate", "certify"])
    def test_missing_columns_are_named_with_what_is_there_instead(self, run, write, frame, tmp_path, command):
        model = tmp_path / "m"
        run("train", write(frame, "train.csv"), model, "-q")
        renamed = write(frame.rename(columns={"sepal width": "Sepal width"}), "renamed.csv")
        error = run(command, model, renamed, code=1).stderr
        assert "1 of the 4 columns that are needed are missing: ['sepal width']" in error
        assert "instead: ['Sepal width']" in error
        fewer = write(frame.drop(columns=["sepal width", "petal width"]), "fewer.csv")
        assert "['sepal width', 'petal width']" in run(command, model, fewer, code=1).stderr

    @pytest.mark.parametrize("command", ["predict", "evaluate", "certify"])
    def test_other_columns_are_left_out_with_a_note(self, run, write, frame, tmp_path, command):
        """They may hold anything, text too."""
        model = tmp_path / "m"
        run("train", write(frame, "train.csv"), model, "-q")
        expected = run(command, model, tmp_path / "train.csv").stdout
        more = frame.copy()
        more.insert(0, "id", [f"plant {k}" for k in range(len(more))])
        found = run(command, model, write(more, "more.csv"))
        assert "left out: ['id']" in found.stderr
        assert found.stdout == expected

    def test_a_label_is_not_taken_from_the_features(self, run, write, frame, tmp_path):
        model = tmp_path / "m"
        named = frame.rename(columns={"label": "kind", "sepal width": "y"})
        run("train", write(named, "train.csv"), model, "--label", "kind", "-q")
        told = run("predict", model, tmp_path / "train.csv").stderr
        assert "left out: ['kind']" in told
        assert "missing" in run("predict", model, tmp_path / "train.csv", "--label", "y", code=1).stderr

    def test_names_on_one_side_only_are_told(self, run, write, frame, tmp_path):
        named, plain = tmp_path / "named", tmp_path / "plain"
        run("train", write(frame, "train.csv"), named, "-q")
        X, y = load_iris(return_X_y=True)
        np.savez(tmp_path / "train.npz", X=X, y=y)
        run("train", tmp_path / "train.npz", plain, "-q")
        told = run("evaluate", named, tmp_path / "train.npz")
        assert "has no names" in told.stderr
        assert "'sepal length', 'sepal width'" in told.stderr
        assert "in their order" in run("evaluate", plain, tmp_path / "train.csv").stderr
        dump_svmlight_file(X, y, str(tmp_path / "train.svm"), zero_based=False)
        assert "has no names" in run("evaluate", named, tmp_path / "train.svm").stderr

    def test_a_fit_that_goes_on_finds_its_columns(self, run, write, frame, tmp_path):
        whole, part = tmp_path / "whole", tmp_path / "part"
        settings = ("--solver", "ocas", "--tol", "1e-6", "-q")
        run("train", write(frame, "train.csv"), whole, *settings)
        run("train", tmp_path / "train.csv", part, *settings, "--max-iter", 3, code=3)
        run("train", write(frame[frame.columns[::-1]], "reversed.csv"), part, "--resume", "-q")
        one, other = softmargin.load(whole), softmargin.load(part)
        assert one.coef_.tobytes() == other.coef_.tobytes()
        assert one.feature_names_in_.tolist() == other.feature_names_in_.tolist()

    def test_queries_are_no_features_of_a_ranking_and_told_elsewhere(self, run, write, frame, tmp_path):
        model = tmp_path / "m"
        ranked = frame.assign(qid=np.arange(len(frame)) // 30)
        run("train", write(ranked, "ranked.csv"), model, "--task", "rank", "-q")
        assert "qid" not in softmargin.load(model).feature_names_in_
        run("evaluate", model, write(ranked[ranked.columns[::-1]], "reversed.csv"))
        without = run("predict", model, write(frame, "plain.csv"))
        assert without.stderr == ""
        assert "'qid' is a feature here" in run("train", tmp_path / "ranked.csv", model).stderr


class TestIndexBase:
    @pytest.fixture
    def zero_based(self, tmp_path):
        """Files that count from 0; in the second one feature 0 does not occur."""
        X, y = load_breast_cancer(return_X_y=True)
        X = StandardScaler().fit_transform(X)
        train, test = tmp_path / "train.svm", tmp_path / "test.svm"
        dump_svmlight_file(X, y, str(train), zero_based=True)
        X[:, 0] = 0.0
        dump_svmlight_file(csr_matrix(X), y, str(test), zero_based=True)
        return train, test, X, y

    @pytest.mark.parametrize("more", [[], ["--kernel", "linear"], ["--task", "rank"], ["--task", "ordinal"]], ids=str)
    def test_a_file_without_the_first_feature_is_counted_as_in_training(self, run, zero_based, tmp_path, more):
        """Such a file scored 0.596 instead of 0.980."""
        train, test, X, _ = zero_based
        model = tmp_path / "m"
        run("train", train, model, *more, "-q")
        estimator = softmargin.load(model)
        assert estimator.index_base_ == 0
        scores = np.array(run("predict", model, test, "--scores").stdout.split(), dtype=float)
        expected = estimator.predict(X) if "rank" in more else X @ estimator.coef_.ravel()
        np.testing.assert_allclose(scores - scores[0], expected - expected[0], atol=1e-8)
        assert json.loads(run("info", model, "--json").stdout)["index_base"] == 0
        refused = run("predict", model, test, "--index-base", 1)
        assert refused.stdout != run("predict", model, test).stdout

    def test_index_0_is_an_error_where_training_counted_from_1(self, run, cancer, zero_based, tmp_path):
        model = tmp_path / "m"
        run("train", cancer, model, "-q")
        assert softmargin.load(model).index_base_ == 1
        for command in ("predict", "evaluate", "certify"):
            error = run(command, model, zero_based[0], code=1).stderr
            assert "begin at 1" in error
            assert "--index-base 0" in error
            assert "zero_based" not in error
        assert float(run("evaluate", model, zero_based[0], "--index-base", 0).stdout.split()[1]) > 0

    def test_a_model_that_does_not_know_says_what_it_assumes(self, run, zero_based, tmp_path):
        train, _, X, y = zero_based
        softmargin.LinearSVC().fit(X, y).save(tmp_path / "m")
        assert "index 0 occurs" in run("predict", tmp_path / "m", train).stderr
        assert "index 0" not in run("predict", tmp_path / "m", train, "--index-base", 0).stderr

    def test_a_new_fit_in_python_forgets_the_file(self, run, cancer, tmp_path):
        run("train", cancer, tmp_path / "m", "--max-iter", 2, "-q", code=3)
        estimator = softmargin.load(tmp_path / "m")
        assert len(estimator.data_digest_) == 64
        estimator.set_params(max_iter=None).fit(*load_iris(return_X_y=True))
        assert not hasattr(estimator, "index_base_")
        assert not hasattr(estimator, "data_digest_")

    @pytest.mark.parametrize("value", [2, "1", None])
    def test_a_file_with_another_base_is_refused(self, run, cancer, tmp_path, value):
        from softmargin.io.model_file import read_model, write_model
        from softmargin.io.record import ModelRecord

        model = tmp_path / "m"
        run("train", cancer, model, "-q")
        record = read_model(model)
        values = record.values | {"index_base_": value}
        write_model(model, ModelRecord(record.kind, record.params, values, record.arrays))
        if value is not None:
            assert str(model) in run("predict", model, cancer, code=1).stderr


class TestUnseenFeatures:
    @pytest.mark.parametrize(
        "more",
        [
            *([], ["--task", "rank"], ["--task", "ordinal"]),
            *(["--kernel", kernel] for kernel in ("linear", "rbf", "laplacian", "poly", "sigmoid")),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("storage", ["dense", "sparse"])
    def test_scores_are_those_of_a_model_whose_rows_were_zero_there(self, run, tmp_path, more, storage):
        """Training with empty columns at the end gives the same model with a place for the new features."""
        rng = np.random.default_rng(0)
        X = rng.standard_normal((60, 5)) * (rng.random((60, 5)) < (1.0 if storage == "dense" else 0.3))
        y = np.where(X[:, 0] + 0.3 * rng.standard_normal(60) > 0, 1, -1)
        train, test = tmp_path / "train.svm", tmp_path / "test.svm"
        X[0, 4] = 1.0
        dump_svmlight_file(csr_matrix(X), y, str(train), zero_based=False)
        new = np.hstack([X, np.where(rng.random((60, 3)) < 0.3, 1.5, 0.0)])
        dump_svmlight_file(csr_matrix(new), y, str(test), zero_based=False)
        fixed = [*more, *(["--gamma", 0.2] if more[-1:] not in ([], ["rank"], ["ordinal"], ["linear"]) else [])]
        run("train", train, tmp_path / "narrow", *fixed, "-q")
        run("train", train, tmp_path / "wide", *fixed, "--n-features", 8, "-q")
        found = run("predict", tmp_path / "narrow", test, "--scores")
        scores, expected = (
            np.array(text.split(), dtype=float)
            for text in (found.stdout, run("predict", tmp_path / "wide", test, "--scores").stdout)
        )
        np.testing.assert_allclose(scores, expected, atol=1e-4)
        n_rows = np.count_nonzero(new[:, 5:].any(axis=1))
        assert f"features beyond 5, which training never saw, occur in {n_rows} of 60 rows" in found.stderr
        in_distances = {"rbf", "laplacian"} & set(more)
        assert ("count in the distances" if in_distances else "weight zero") in found.stderr
        run("evaluate", tmp_path / "narrow", test)
        assert "trained on features up to 5" in run("certify", tmp_path / "narrow", test, code=1).stderr

    def test_values_that_are_not_finite_are_refused_there_too(self, run, cancer, tmp_path):
        for kernel in ([], ["--kernel", "rbf"]):
            run("train", cancer, tmp_path / "m", *kernel, "-q")
            (tmp_path / "bad").write_text("1 1:1\n-1 99:inf\n")
            assert (
                "row 2 has values that are not finite"
                in run("predict", tmp_path / "m", tmp_path / "bad", code=1).stderr
            )

    def test_a_huge_index_takes_no_memory(self, run, cancer, tmp_path):
        run("train", cancer, tmp_path / "m", "--kernel", "rbf", "-q")
        (tmp_path / "wide").write_text("1 1:1 400000000:1\n")
        assert "features beyond 30" in run("predict", tmp_path / "m", tmp_path / "wide").stderr
