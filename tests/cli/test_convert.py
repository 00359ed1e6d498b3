"""`softmargin convert`, and the other commands on a store."""

import gzip
import json
import os
import signal

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_breast_cancer
from sklearn.preprocessing import StandardScaler

import softmargin
from softmargin import Store
from softmargin.io import batches as reading

X, Y = load_breast_cancer(return_X_y=True)
X, Y = StandardScaler().fit_transform(X), np.where(Y, 1, -1)
N, D = X.shape
CUT = 300


def joined(path):
    parts = [part.native() for _, part in Store(path).blocks()]
    return np.concatenate([part.toarray() if sp.issparse(part) else part for part in parts])


def svmlight(path, where, **more):
    dump_svmlight_file(X[where], Y[where], str(path), zero_based=False, **more)


def csv(path, where):
    names = ",".join([*(f"f{k}" for k in range(D)), "y"])
    lines = (
        ",".join(map(repr, [*row, label])) for row, label in zip(X[where].tolist(), Y[where].tolist(), strict=True)
    )
    path.write_text("\n".join([names, *lines]) + "\n")


def parquet(path, where):
    import pandas

    pandas.DataFrame(X[where], columns=[f"f{k}" for k in range(D)]).assign(y=Y[where]).to_parquet(path)


def npy(path, where):
    np.save(path, np.column_stack([X[where], Y[where]]))


def npz(path, where):
    np.savez(path, X=X[where], y=Y[where])


def gz(path, where):
    plain = path.with_suffix("")
    svmlight(plain, where)
    path.write_bytes(gzip.compress(plain.read_bytes()))


WRITERS = {"svm": svmlight, "csv": csv, "parquet": parquet, "npy": npy, "npz": npz, "svm.gz": gz}


@pytest.fixture
def store(run, tmp_path):
    svmlight(tmp_path / "a.svm", slice(None))
    run("convert", tmp_path / "a.svm", tmp_path / "store", "--quiet")
    return tmp_path / "store"


@pytest.mark.parametrize("ending", WRITERS)
def test_files_of_every_format_in_small_pieces(ending, run, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BATCH_SHARE", 1e-3)
    monkeypatch.setattr(reading, "_SMALLEST_TEXT", 3000)
    monkeypatch.setattr(reading, "_LARGEST_TEXT", 20_000)
    paths = [tmp_path / f"{name}.{ending}" for name in "ab"]
    for path, where in zip(paths, (slice(0, CUT), slice(CUT, None)), strict=True):
        WRITERS[ending](path, where)
    label = ["--label", "-1"] if ending == "npy" else []
    told = json.loads(run("convert", *paths, tmp_path / "store", "--memory", "16M", "--json", *label).stdout)
    assert (told["rows"], told["features"], told["labels"], told["queries"]) == (N, D, True, False)
    found = Store(tmp_path / "store")
    np.testing.assert_allclose(joined(found.path), X, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(found.y, Y)
    assert found.y.dtype == np.int64
    assert found.feature_names == (tuple(f"f{k}" for k in range(D)) if ending in ("csv", "parquet") else None)
    assert found.index_base == (1 if "svm" in ending else None)


def test_from_a_store_to_a_model_and_back(run, store, tmp_path):
    model, out = tmp_path / "model", tmp_path / "out.txt"
    trained = json.loads(run("train", store, model, "-C", "0.5", "--tol", "1e-4", "--json").stdout)
    assert trained["status"] == "OPTIMAL"
    assert trained["classes"] == [-1, 1]
    assert (trained["rows"], trained["features"]) == (N, D)
    told = run("predict", model, store, out)
    assert "accuracy" in told.stderr
    assert out.read_text() == run("predict", model, tmp_path / "a.svm").stdout
    scores = [run("predict", model, each, "--scores").stdout.split() for each in (store, tmp_path / "a.svm")]
    np.testing.assert_allclose(*(np.array(each, dtype=float) for each in scores), atol=1e-9)
    for command in ("certify", "evaluate"):
        both = [json.loads(run(command, model, each, "--json").stdout) for each in (store, tmp_path / "a.svm")]
        plain = [{name: value for name, value in one.items() if not isinstance(value, dict)} for one in both]
        assert plain[0] == pytest.approx(plain[1], rel=1e-6)
    assert "OCAS" in run("info", model).stdout


def test_a_kernel_model_predicts_a_store_but_does_not_learn_from_it(run, store, tmp_path):
    run("train", tmp_path / "a.svm", tmp_path / "model", "--kernel", "rbf", "--quiet")
    text = run("predict", tmp_path / "model", store).stdout
    assert text == run("predict", tmp_path / "model", tmp_path / "a.svm").stdout
    refused = run("train", store, tmp_path / "other", "--kernel", "rbf", code=1)
    assert "from which linear models are trained: leave --kernel out" in refused.stderr


def test_a_stopped_fit_goes_on(run, store, tmp_path):
    model = tmp_path / "model"
    run("train", store, model, "--max-iter", "2", "--tol", "1e-6", "--quiet", code=3)
    resumed = json.loads(run("train", store, model, "--resume", "--tol", "1e-6", "--json").stdout)
    assert resumed["relative_gap"] <= 1e-6
    run("train", store, model, "--max-iter", "2", "--tol", "1e-6", "--quiet", code=3)
    refused = run("train", tmp_path / "a.svm", model, "--resume", code=1)
    assert "does not hold the rows and labels" in refused.stderr


def test_rankings(run, tmp_path):
    data, store = tmp_path / "r.svm", tmp_path / "store"
    qid = np.arange(N) // 10
    svmlight(data, slice(None), query_id=qid)
    assert json.loads(run("convert", data, store, "--json").stdout)["queries"]
    found = [
        json.loads(run("train", each, tmp_path / "m", "--task", "rank", "--json").stdout) for each in (store, data)
    ]
    for name in ("queries", "pairs", "primal"):
        assert found[0][name] == pytest.approx(found[1][name], rel=1e-3)
    one = json.loads(run("train", store, tmp_path / "m", "--task", "rank", "--no-qid", "--json").stdout)
    assert one["pairs"] == np.count_nonzero(Y > 0) * np.count_nonzero(Y < 0)
    run("convert", data, store, "--no-qid", "--force", "--quiet")
    assert Store(store).qid is None
    assert run("evaluate", tmp_path / "m", store).stdout


def test_types_and_words(run, tmp_path):
    data = tmp_path / "words.csv"
    data.write_text("a,b,label\n" + "1,2,yes\n3,4.5,no\n" * 30)
    run("convert", data, tmp_path / "store", "--dtype", "float32", "--quiet")
    found = Store(tmp_path / "store")
    assert found.dtype == np.float32
    assert found.y.tolist() == ["yes", "no"] * 30
    run("train", tmp_path / "store", tmp_path / "model", "--quiet")
    assert run("predict", tmp_path / "model", tmp_path / "store").stdout == "yes\nno\n" * 30
    assert softmargin.load(tmp_path / "model").feature_names_in_.tolist() == ["a", "b"]


def test_zero_is_the_first_feature_if_it_occurs_at_the_beginning(run, tmp_path):
    (tmp_path / "a").write_text("1 1:5\n-1 2:1\n")
    (tmp_path / "b").write_text("1 0:5\n-1 3:1 # 0:1\n")
    run("convert", tmp_path / "a", tmp_path / "b", tmp_path / "store", "--quiet")
    assert joined(tmp_path / "store").shape == (4, 4)
    assert Store(tmp_path / "store").index_base == 0
    refused = run("convert", tmp_path / "b", tmp_path / "other", "--index-base", "1", code=1)
    assert "b:1:3: the index '0' occurs" in refused.stderr
    run("convert", tmp_path / "a", tmp_path / "one", "--n-features", "9", "--quiet")
    assert joined(tmp_path / "one").shape == (2, 9)


def test_text_from_the_standard_input(run, tmp_path):
    svmlight(tmp_path / "a.svm", slice(None))
    run("convert", "-", tmp_path / "store", "--quiet", given=(tmp_path / "a.svm").read_bytes())
    np.testing.assert_allclose(joined(tmp_path / "store"), X, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ({"a": "1 1:2\n-1 1:x\n"}, [], "a:2:6:"),
        ({"a": "1 1:2\n", "b": "1 1:nan\n"}, [], r"b: batch 1, row 0 (row 1 of the store) holds nan"),
        ({"a": "# nothing\n"}, [], "there are no rows in DATA"),
        ({"a": ""}, [], "a: the file is empty"),
        ({"a": "1 1:2\n"}, ["--label", "y"], "svmlight text has the label first"),
        ({"a": "1 1:2\n"}, ["--dtype", "uint8", "--n-features", "0"], "must be a positive integer"),
        ({"a": "1 1:2.5\n"}, ["--dtype", "uint8"], "a: batch 0 has values that are not whole numbers from 0 to 255"),
        ({"a.csv": "p,y\n1,1\n", "b.csv": "q,y\n1,1\n"}, [], "b.csv: the columns are not those of"),
        ({"a.csv": "p,y\n1,1\n,1\n"}, [], "a.csv: the column 'p' has 1 missing values"),
        ({"a.csv": "p,y\n1,1\n", "b": "1 1:2\n"}, [], "b: the columns are not those of"),
        ({"a.npz": "no zip"}, [], "a.npz: this is no .npz file"),
        ({}, [], "No such file"),
        ({"a.parquet": "PAR1"}, [], "a.parquet: the file cannot be read"),
    ],
)
def test_bad_files_are_named_and_nothing_is_left(files, options, message, run, tmp_path):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    refused = run("convert", *(tmp_path / name for name in files or "a"), tmp_path / "store", *options, code=1)
    assert message in refused.stderr
    assert sorted(os.listdir(tmp_path)) == sorted(files)


def test_what_is_there_is_not_replaced_by_mistake(run, store, tmp_path):
    data = tmp_path / "a.svm"
    assert "replace it with --force" in run("convert", data, store, code=1).stderr
    assert "is there already" in run("convert", data, data, code=1).stderr
    assert "is no store" in run("convert", data, data, "--force", code=1).stderr
    assert data.is_file()
    run("convert", data, store, "--force", "--quiet")
    assert "is not a folder" in run("convert", data, tmp_path / "no" / "store", code=1).stderr
    run("convert", data, tmp_path / "s", "--memory", "1K", code=2)
    run("convert", data, "-", code=2)
    assert "no such store" not in run("train", store, tmp_path / "model").stderr


def test_a_pipe_is_refused(run, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "this is no regular file" in run("convert", tmp_path / "pipe", tmp_path / "store", code=1).stderr


def test_options_of_files_are_refused_for_a_store(run, store, tmp_path):
    for options in (["--label", "y"], ["--n-features", "3"], ["--dtype", "float32"], ["--index-base", "0"]):
        told = run("train", store, tmp_path / "model", *options, code=1).stderr
        assert "was decided when it was written: leave it out" in told
    assert "the folder has no manifest.json" in run("train", tmp_path, tmp_path / "model", code=1).stderr


def test_a_npz_file_that_is_too_large_for_the_memory(run, tmp_path):
    np.savez_compressed(tmp_path / "a.npz", X=np.zeros((1 << 20, 2)), y=np.zeros(1 << 20))
    refused = run("convert", tmp_path / "a.npz", tmp_path / "store", "--memory", "16M", code=1)
    assert "Save them as .npy files" in refused.stderr


PAUSING = (
    "import time; from softmargin.io import store_writing; add = store_writing._Writer.add; "
    "store_writing._Writer.add = lambda *given: (add(*given), print('begun', flush=True), time.sleep(60)); "
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_nothing_behind_or_what_is_refused(number, run, start, tmp_path):
    svmlight(tmp_path / "a.svm", slice(None))
    child = start("convert", tmp_path / "a.svm", tmp_path / "store", prelude=PAUSING)
    assert child.stdout.readline() == b"begun\n"
    assert sorted(os.listdir(tmp_path)) == ["a.svm", "store.unfinished"]
    child.send_signal(number)
    child.communicate(timeout=60)
    assert child.returncode != 0
    if number != signal.SIGKILL:
        assert os.listdir(tmp_path) == ["a.svm"]
        return
    assert "one was stopped before the end" in run("convert", tmp_path / "a.svm", tmp_path / "store", code=1).stderr
    assert "whose writing was stopped" in run("train", tmp_path / "store.unfinished", tmp_path / "m", code=1).stderr
