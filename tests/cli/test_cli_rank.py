"""Rankings and ordered labels on the command line."""

import gzip
import json
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_diabetes
from sklearn.metrics import mean_absolute_error, roc_auc_score

import softmargin
from softmargin.core.trace import Trace
from softmargin.metrics import mean_average_precision_by_query, ndcg_by_query, swapped_pairs


def grades(y):
    return np.digitize(y, [100, 150, 220])


def write_ranks(path, X, y, qid):
    """As SVM-rank's examples are: target, qid, features from 1 on, and something behind a #."""
    with path.open("w") as file:
        file.write("# a file of rankings\n")
        for row, (x, target, query) in enumerate(zip(X, y, qid, strict=True)):
            features = " ".join(f"{k}:{value!r}" for k, value in enumerate(x.tolist(), 1) if value != 0.0)
            file.write(f"{target} qid:{query} {features} # qid:0 document {row}\n")


class Rankings:
    """300 patients in 12 queries: as SVM-rank wants them, and in an order in which the queries are in pieces."""

    def __init__(self, folder):
        X, y = load_diabetes(return_X_y=True)
        self.X, self.y, self.qid = 20.0 * X[:300].round(4), grades(y[:300]), np.repeat(np.arange(1, 13), 25)
        self.path, self.pieces = folder / "ranks.dat", folder / "pieces.dat"
        self.order = np.random.default_rng(0).permutation(300)
        write_ranks(self.path, self.X, self.y, self.qid)
        write_ranks(self.pieces, self.X[self.order], self.y[self.order], self.qid[self.order])


@pytest.fixture
def ranks(tmp_path):
    return Rankings(tmp_path)


def numbers(text):
    return np.array(text.split(), dtype=float)


def test_from_a_file_of_svm_rank_to_scores_and_measures(run, ranks, tmp_path):
    model, out = tmp_path / "m", tmp_path / "out.txt"
    trained = json.loads(run("train", ranks.path, model, "--task", "rank", "-C", 10, "--jobs", 1, "--json").stdout)
    assert trained["status"] == "OPTIMAL"
    assert trained["relative_gap"] <= 1e-3
    assert (trained["rows"], trained["features"], trained["queries"]) == (300, 10, 12)
    expected = softmargin.RankSVM(C=10).fit(ranks.X, ranks.y, qid=ranks.qid)
    assert trained["pairs"] == expected.n_pairs_
    assert trained["primal"] == pytest.approx(expected.certificate_.primal, rel=1e-3)

    estimator = softmargin.load(model)
    scores = estimator.predict(ranks.X)
    predicted = run("predict", model, ranks.path, out)
    assert predicted.stdout == predicted.stderr == ""
    np.testing.assert_allclose(numbers(out.read_text()), scores, rtol=1e-12)
    assert len(out.read_text().splitlines()) == 300
    assert run("predict", model, ranks.path, "--scores").stdout == out.read_text()
    assert json.loads(run("predict", model, ranks.path, out, "--json").stdout) == {"rows": 300, "predictions": str(out)}

    found = json.loads(run("evaluate", model, ranks.path, "--ndcg-at", 5, "--json").stdout)
    assert (found["rows"], found["queries"]) == (300, 12)
    assert found["swapped_pairs"] == pytest.approx(swapped_pairs(ranks.y, scores, ranks.qid))
    assert found["pairs_correct"] == pytest.approx(estimator.score(ranks.X, ranks.y, qid=ranks.qid))
    assert found["ndcg@5"] == pytest.approx(ndcg_by_query(ranks.y, scores, ranks.qid, 5).mean)
    assert found["map"] == pytest.approx(mean_average_precision_by_query(ranks.y, scores, ranks.qid).mean)
    assert "roc_area" not in found
    assert "ndcg@10" in run("evaluate", model, ranks.path).stdout

    judged = json.loads(run("certify", model, ranks.path, "--json").stdout)
    assert judged["primal"] == pytest.approx(trained["primal"], rel=1e-9)
    assert judged["relative_gap"] <= 1e-3
    run("certify", model, ranks.path, "--no-qid", code=3)

    described = json.loads(run("info", model, "--json").stdout)
    assert described["estimator"] == "RankSVM"
    assert described["parameters"]["pairs"] == "mean"
    assert described["features"] == 10
    assert described["certificate"]["relative_gap"] <= 1e-3
    assert "classes" not in described
    assert "auto: OCAS, the one for such problems" in run("info", model).stdout


def test_queries_may_be_in_pieces(run, ranks, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    run("train", ranks.path, one, "--task", "rank", "--tol", "1e-7", "-q")
    run("train", ranks.pieces, other, "--task", "rank", "--tol", "1e-7", "-q")
    whole, parts = (numbers(run("predict", model, ranks.pieces).stdout) for model in (one, other))
    np.testing.assert_allclose(whole, parts, atol=1e-3)
    np.testing.assert_allclose(whole, numbers(run("predict", one, ranks.path).stdout)[ranks.order], rtol=1e-12)
    found = [json.loads(run("evaluate", one, path, "--json").stdout) for path in (ranks.path, ranks.pieces)]
    assert found[0] == pytest.approx(found[1])


def test_without_queries_all_rows_are_one(run, ranks, tmp_path):
    plain, model = tmp_path / "plain.svm", tmp_path / "m"
    dump_svmlight_file(ranks.X, ranks.y, str(plain), zero_based=False)
    told = run("train", plain, model, "--task", "rank")
    assert "plain.svm has no qid: all rows are one query." in told.stderr
    assert "queries       none" in told.stdout
    one = softmargin.load(model)
    assert one.n_pairs_ > 20_000
    told = json.loads(run("train", ranks.path, model, "--task", "rank", "--no-qid", "--json").stdout)
    assert told["queries"] is None
    np.testing.assert_allclose(softmargin.load(model).coef_, one.coef_, rtol=1e-12)
    found = [json.loads(run("evaluate", model, *path, "--json").stdout) for path in ([plain], [ranks.path, "--no-qid"])]
    assert found[0] == pytest.approx(found[1])
    assert found[0]["queries"] is None
    run("certify", model, plain)


def test_two_grades_have_a_roc_area(run, ranks, tmp_path):
    data, model = tmp_path / "two.svm", tmp_path / "m"
    positive = ranks.y > 1
    dump_svmlight_file(ranks.X, np.where(positive, 1, -1), str(data), zero_based=False)
    run("train", data, model, "--task", "rank", "-q")
    found = json.loads(run("evaluate", model, data, "--json").stdout)
    scores = softmargin.load(model).predict(ranks.X)
    assert found["roc_area"] == pytest.approx(roc_auc_score(positive, scores))
    assert found["pairs_correct"] == pytest.approx(found["roc_area"])
    assert found["ndcg@10"] == pytest.approx(ndcg_by_query(positive.astype(int), scores).mean)


def test_targets_that_are_no_grades_have_an_order_only(run, ranks, tmp_path):
    data, model = tmp_path / "real.svm", tmp_path / "m"
    dump_svmlight_file(ranks.X, load_diabetes().target[:300] + 0.5, str(data), zero_based=False, query_id=ranks.qid)
    run("train", data, model, "--task", "rank", "-q")
    assert json.loads(run("evaluate", model, data, "--json").stdout).keys() == {
        "rows",
        "queries",
        "pairs_correct",
        "swapped_pairs",
    }


@pytest.mark.parametrize("ending", [".npz", ".csv", ".parquet", ".dat.gz"])
def test_queries_in_other_files(run, ranks, tmp_path, ending):
    data, model, same = tmp_path / f"ranks{ending}", tmp_path / "m", tmp_path / "same"
    if ending == ".npz":
        np.savez(data, X=ranks.X, y=ranks.y, qid=ranks.qid)
    elif ending == ".dat.gz":
        data.write_bytes(gzip.compress(ranks.path.read_bytes()))
    else:
        pytest.importorskip("pyarrow")
        import pandas as pd

        frame = pd.DataFrame(ranks.X, columns=list("abcdefghij")).assign(label=ranks.y)
        frame.insert(3, "qid", ranks.qid)
        frame.to_csv(data, index=False) if ending == ".csv" else frame.to_parquet(data)
    told = json.loads(run("train", data, model, "--task", "rank", "--json").stdout)
    assert (told["queries"], told["features"]) == (12, 10)
    run("train", ranks.path, same, "--task", "rank", "-q")
    np.testing.assert_allclose(softmargin.load(model).coef_, softmargin.load(same).coef_, rtol=1e-6)
    np.testing.assert_allclose(
        numbers(run("predict", model, data).stdout), numbers(run("predict", model, ranks.path).stdout), rtol=1e-12
    )
    with_queries = json.loads(run("evaluate", model, data, "--json").stdout)
    without = json.loads(run("evaluate", model, data, "--no-qid", "--json").stdout)
    assert (with_queries["queries"], without["queries"]) == (12, None)


def test_options_reach_the_ranker(run, ranks, tmp_path):
    model = tmp_path / "m"
    run("train", ranks.path, model, "--task", "rank", "--pairs", "sum", "--query-weight", "equal", "-c", "2", "-q")
    estimator = softmargin.load(model)
    assert (estimator.C, estimator.pairs, estimator.query_weight) == (2.0, "sum", "equal")
    run("train", ranks.path, model, "--task", "rank", "--solver", "cpa", "--tol", "0.01", "-q")
    assert softmargin.load(model).solver == "cpa"


@pytest.mark.parametrize("task", [["rank"], ["ordinal", "--thresholds", "all"]], ids=["rank", "ordinal"])
def test_a_fit_that_stops_early_is_saved_and_resumed_exactly(run, ranks, tmp_path, task):
    whole, part = tmp_path / "whole", tmp_path / "part"
    run("train", ranks.path, whole, "--task", *task, "--tol", "1e-6", "-q")
    stopped = run("train", ranks.path, part, "--task", *task, "--tol", "1e-6", "--max-iter", 4, code=3)
    assert "--resume" in stopped.stderr
    assert json.loads(run("info", part, "--json").stdout)["can_be_resumed"] is True
    run("certify", part, ranks.path, code=3)
    assert "leave the other out" in run("train", ranks.path, part, "--resume", "--task", "classify", code=1).stderr
    run("train", ranks.path, part, "--resume", "--task", task[0], "-q")
    one, other = softmargin.load(whole), softmargin.load(part)
    assert one.coef_.tobytes() == other.coef_.tobytes()
    assert one.certificate_ == other.certificate_
    assert "nothing to resume" in run("train", ranks.path, part, "--resume", code=1).stderr


def test_an_interrupt_saves_the_best_model_so_far(run, ranks, tmp_path, monkeypatch):
    whole, part = tmp_path / "whole", tmp_path / "part"
    run("train", ranks.path, whole, "--task", "rank", "--tol", "1e-6", "-q")
    append = Trace.append

    def append_and_interrupt(trace, record):
        append(trace, record)
        if record.iteration == 3:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Trace, "append", append_and_interrupt)
        stopped = run("train", ranks.path, part, "--task", "rank", "--tol", "1e-6", code=3)
    assert "INTERRUPTED" in stopped.stdout
    assert "--resume" in stopped.stderr
    run("train", ranks.path, part, "--resume", "-q")
    assert softmargin.load(part).coef_.tobytes() == softmargin.load(whole).coef_.tobytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--task", "rank", "--kernel", "rbf"], "--kernel: models of --task rank are linear"),
        (["--task", "ordinal", "--kernel", "rbf"], "--kernel: models of --task ordinal are linear"),
        (["--task", "rank", "--no-intercept"], "--no-intercept: it is for linear models that classify"),
        (["--task", "rank", "--class-weight", "balanced"], "--class-weight: it is for classes"),
        (["--task", "rank", "--thresholds", "all"], "--thresholds: it is for ordered labels, which --task ordinal"),
        (["--thresholds", "all"], "--thresholds: it is for ordered labels"),
        (["--task", "rank", "--cost", "zero_one"], "--cost: it is for ordered labels"),
        (["--pairs", "sum"], "--pairs: it is for rankings, which --task rank"),
        (["--query-weight", "equal"], "--query-weight: it is for rankings"),
        (["--task", "ordinal", "--no-qid"], "--no-qid: it is for rankings"),
        (["--task", "rank", "--solver", "sgd"], "sgd is not for --task rank models: choose one of auto, ocas, cpa."),
        (["--task", "sort"], "sort"),
    ],
)
def test_options_that_do_not_go_together(run, ranks, tmp_path, arguments, words):
    error = run("train", ranks.path, tmp_path / "m", *arguments, code=2).stderr
    assert words in " ".join(error.replace("│", " ").split())
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 qid:1 1:2\n0 qid:1 1:3\n0 1:4\n", "d:3:2: the line has no qid"),
        ("1 1:2\n# qid:7\n0 qid:1 1:3\n", "d: some rows have a qid and others have none"),
        ("1 qid:1 1:2\n0 qid:x 1:3\n", "d:2:7: the qid 'x' is not an integer"),
        ("1 qid:1 1:2\n1 qid:1 1:3\n", "all targets are 1"),
        ("1 qid:1 1:2\n0 qid:2 1:3\n", "no pair of rows with different targets in any query"),
    ],
)
def test_bad_queries_are_told_in_one_sentence(run, tmp_path, text, words):
    data = tmp_path / "d"
    data.write_text(text)
    error = run("train", data, tmp_path / "m", "--task", "rank", code=1).stderr
    assert words in error
    assert error.startswith("softmargin: ")
    assert "Traceback" not in error
    assert not (tmp_path / "m").exists()
    if "qid:x" not in text and "all targets" not in words:
        run("train", data, tmp_path / "m", "--task", "rank", "--no-qid", "-q")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 1:nan\n0 1:3\n", "row 1 has values that are not finite"),
        ("nan 1:1\n0 1:3\n", "row 1 has a label that is not finite"),
        ("", "the file is empty"),
        ("# none\n", "no rows"),
    ],
)
def test_what_cannot_be_learned_from_is_told_in_one_sentence(run, ranks, tmp_path, text, words):
    data, model = write(tmp_path, text), tmp_path / "m"
    for task in ("rank", "ordinal", "classify"):
        error = run("train", data, model, "--task", task, "-q", code=1).stderr
        assert words in error
        assert error.startswith(f"softmargin: {data}: ")
        assert error.count("\n") == 1
    run("train", ranks.path, model, "--task", "rank", "-q")
    assert words in run("certify", model, data, code=1).stderr


def test_other_models_have_no_queries(run, ranks, tmp_path):
    model = tmp_path / "m"
    run("train", ranks.path, model, "-q")
    for command in ("evaluate", "certify"):
        assert "--no-qid: it is for rankings" in run(command, model, ranks.path, "--no-qid", code=2).stderr
    assert "none of the labels" in run("evaluate", model, write(tmp_path, "9 1:1\n8 1:2\n"), code=1).stderr


def write(folder, text):
    (folder / "other").write_text(text)
    return folder / "other"


@pytest.mark.parametrize("thresholds", ["fitted", "immediate", "all"])
def test_ordered_labels(run, ranks, tmp_path, thresholds):
    model, out = tmp_path / "m", tmp_path / "out.txt"
    trained = json.loads(
        run("train", ranks.path, model, "--task", "ordinal", "--thresholds", thresholds, "-C", 3, "--json").stdout
    )
    assert trained["status"] == "OPTIMAL"
    assert trained["classes"] == [0, 1, 2, 3]
    assert trained["thresholds"] == sorted(trained["thresholds"])
    assert len(trained["thresholds"]) == 3

    estimator = softmargin.load(model)
    assert estimator.thresholds == thresholds
    labels = estimator.predict(ranks.X)
    predicted = run("predict", model, ranks.path, out)
    np.testing.assert_array_equal(numbers(out.read_text()), labels)
    assert "accuracy" in predicted.stderr
    scores = numbers(run("predict", model, ranks.path, "--scores").stdout)
    np.testing.assert_allclose(scores, estimator.predict_score(ranks.X), rtol=1e-12)

    found = json.loads(run("evaluate", model, ranks.path, "--json").stdout)
    assert found.keys() == {"rows", "mean_absolute_error", "accuracy", "pairs_correct"}
    assert found["mean_absolute_error"] == pytest.approx(mean_absolute_error(ranks.y, labels))
    assert found["accuracy"] == pytest.approx(np.mean(ranks.y == labels))
    assert found["pairs_correct"] == pytest.approx(1.0 - swapped_pairs(ranks.y, scores))

    judged = json.loads(run("certify", model, ranks.path, "--json").stdout)
    assert judged["primal"] == pytest.approx(trained["primal"], rel=1e-9)
    described = json.loads(run("info", model, "--json").stdout)
    assert described["classes"] == [0, 1, 2, 3]
    assert described["thresholds"] == trained["thresholds"]
    assert described["parameters"]["thresholds"] == thresholds


def test_labels_whose_order_is_named(run, ranks, tmp_path):
    pytest.importorskip("pyarrow")
    import pandas as pd

    data, model = tmp_path / "words.csv", tmp_path / "m"
    words = np.array(["mild", "fair", "bad", "awful"])[ranks.y]
    pd.DataFrame(ranks.X, columns=list("abcdefghij")).assign(label=words).to_csv(data, index=False)
    assert "ascending order" in run("train", data, model, "--task", "ordinal", code=1).stderr
    run("train", data, model, "--task", "ordinal", "--classes", "mild,fair,bad,awful", "--cost", "zero_one", "-q")
    estimator = softmargin.load(model)
    assert (list(estimator.classes), estimator.cost) == (["mild", "fair", "bad", "awful"], "zero_one")
    predicted = run("predict", model, data).stdout.split()
    assert predicted == estimator.predict(pd.DataFrame(ranks.X, columns=list("abcdefghij"))).tolist()
    places = [["mild", "fair", "bad", "awful"].index(word) for word in predicted]
    found = json.loads(run("evaluate", model, data, "--json").stdout)
    assert found["mean_absolute_error"] == pytest.approx(np.abs(np.array(places) - ranks.y).mean())
    error = run("train", ranks.path, model, "--task", "ordinal", "--classes", "low,high", code=1).stderr
    assert "the labels of the data are numbers" in error
    run("train", ranks.path, model, "--task", "ordinal", "--classes", "3,2,1,0", "-q")
    assert softmargin.load(model).classes_.tolist() == [3, 2, 1, 0]


def test_the_program_itself(ranks, tmp_path):
    """In processes of their own, as from a shell; predictions go to a pipe."""

    def program(*arguments):
        command = [sys.executable, "-c", "from softmargin.cli.main import main; main()", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    model = tmp_path / "m"
    trained = program("train", ranks.path, model, "--task", "rank", "-C", "10")
    assert (trained.returncode, trained.stderr) == (0, "")
    assert "queries       12" in trained.stdout
    predicted = program("predict", model, ranks.path)
    np.testing.assert_allclose(numbers(predicted.stdout), softmargin.load(model).predict(ranks.X), rtol=1e-12)
