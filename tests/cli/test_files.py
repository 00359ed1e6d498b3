"""Nothing is overwritten by mistake; `-` is standard input and output."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

import softmargin


@pytest.fixture
def model(run, cancer, tmp_path):
    path = tmp_path / "model"
    run("train", cancer, path, "-q")
    return path


class TestNothingIsOverwritten:
    def test_the_data_by_the_model(self, run, cancer, tmp_path):
        before = cancer.read_bytes()
        link, other = tmp_path / "link", tmp_path / "hard"
        link.symlink_to(cancer)
        os.link(cancer, other)
        for path in (cancer, link, other, tmp_path / "." / "cancer.svm"):
            for force in ([], ["--force"]):
                assert "is DATA, which would be overwritten" in run("train", cancer, path, *force, code=1).stderr
        assert cancer.read_bytes() == before

    def test_data_or_model_by_predictions(self, run, cancer, model, tmp_path):
        before = cancer.read_bytes(), model.read_bytes()
        link = tmp_path / "link"
        link.symlink_to(model)
        assert "is DATA" in run("predict", model, cancer, cancer, code=1).stderr
        for path in (model, link):
            assert "is MODEL" in run("predict", model, cancer, path, "--force", code=1).stderr
        other = tmp_path / "other"
        shutil.copy(model, other)
        assert "is a model file" in run("predict", model, cancer, other, code=1).stderr
        assert (cancer.read_bytes(), model.read_bytes()) == before
        run("predict", model, cancer, other, "--force")
        assert len(other.read_text().splitlines()) == 569
        run("predict", model, cancer, other)  # predictions are replaced

    def test_a_file_that_is_no_model_by_a_model(self, run, cancer, tmp_path):
        other = tmp_path / "notes.txt"
        other.write_text("my notes")
        assert "is no model file" in run("train", cancer, other, code=1).stderr
        assert other.read_text() == "my notes"
        run("train", cancer, other, "--force", "-q")
        run("train", cancer, other, "-C", 2, "-q")  # a model is replaced
        assert softmargin.load(other).C == 2.0
        other.write_text("")
        run("train", cancer, other, "-q")  # nothing is lost with an empty file

    def test_models_of_other_programs_are_models(self, run, cancer, tmp_path):
        text = tmp_path / "text"
        softmargin.LinearSVC().fit(*softmargin.load_svmlight(cancer)).save(text, format="liblinear")
        run("train", cancer, text, "-q")

    @pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that nobody can write to")
    def test_what_cannot_be_written_is_found_before_training(self, run, cancer, model, monkeypatch):
        monkeypatch.setattr("softmargin.LinearSVC.fit", lambda *args: pytest.fail("trained first"))
        assert "cannot be written" in run("train", cancer, "/proc/model", code=1).stderr
        assert "cannot be written" in run("predict", model, cancer, "/proc/out", code=1).stderr

    def test_folders(self, run, cancer, model, tmp_path):
        assert "is a folder" in run("train", cancer, tmp_path, code=1).stderr
        assert "is a folder" in run("predict", model, cancer, tmp_path, code=1).stderr
        assert "not a folder" in run("predict", model, cancer, tmp_path / "none" / "out", code=1).stderr

    def test_checking_leaves_nothing_behind(self, run, cancer, tmp_path):
        run("train", cancer, tmp_path / "m", "-C", "-1", code=1)
        assert [path.name for path in tmp_path.iterdir()] == ["cancer.svm"]


class TestResume:
    def test_other_data_are_refused(self, run, cancer, model, tmp_path):
        part, other = tmp_path / "part", tmp_path / "other.svm"
        run("train", cancer, part, "--tol", "1e-6", "--max-iter", 5, "-q", code=3)
        lines = cancer.read_text().splitlines(keepends=True)
        other.write_text("".join([*lines[1:], lines[0]]))  # the same rows in another order
        before = part.read_bytes()
        error = run("train", other, part, "--resume", code=1).stderr
        assert "does not hold the rows and labels" in error
        assert "--force, which begins from the weights" in error
        assert part.read_bytes() == before
        told = run("train", other, part, "--resume", "--force").stderr
        assert "the fit begins anew, from the weights of the model" in told
        assert softmargin.load(part).certificate_.relative_gap <= 1e-6

    @pytest.mark.parametrize("more", [[], ["--kernel", "rbf", "--solver", "smo"], ["--task", "rank"]], ids=str)
    def test_the_same_rows_in_another_file_are_the_same_data(self, run, cancer, tmp_path, more):
        part, packed = tmp_path / "part", tmp_path / "other.svm.gz"
        run("train", cancer, part, *more, "--tol", "1e-7", "--max-iter", 2, "-q", code=3)
        packed.write_bytes(gzip.compress(cancer.read_bytes()))
        assert run("train", packed, part, "--resume", "--tol", "1e-8", "-C", 2, "-q").stderr == ""

    def test_a_model_saved_in_python_says_what_it_does_not_know(self, run, cancer, tmp_path):
        X, y = softmargin.load_svmlight(cancer)
        estimator = softmargin.LinearSVC(warm_start=True).fit(X, y)
        estimator.save(tmp_path / "m", include_training_state=True)
        told = run("train", cancer, tmp_path / "m", "--resume", "--tol", "1e-6").stderr
        assert "does not say which rows it was trained on" in told


def formats(folder):
    """The rows of iris in files of every format."""
    pytest.importorskip("pyarrow")
    import pandas as pd
    from sklearn.datasets import dump_svmlight_file

    X, y = load_iris(return_X_y=True)
    y = y.astype(int)
    dump_svmlight_file(X, y, str(folder / "iris.svm"), zero_based=False)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=y)
    frame.to_csv(folder / "iris.csv", index=False)
    frame.to_parquet(folder / "iris.parquet")
    np.savez(folder / "iris.npz", X=X, y=y)
    np.save(folder / "iris.npy", np.column_stack([X, y]))
    for name in ("iris.svm", "iris.csv"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
    return sorted(folder.glob("iris.*"))


class TestStandardStreams:
    def test_every_format_may_come_from_the_standard_input(self, run, tmp_path):
        for path in formats(tmp_path):
            label = ["--label", "-1"] if path.suffix == ".npy" else []
            run("train", path, tmp_path / "named", *label, "-q")
            run("train", "-", tmp_path / "piped", *label, "-q", given=path.read_bytes())
            one, other = softmargin.load(tmp_path / "named"), softmargin.load(tmp_path / "piped")
            assert one.coef_.tobytes() == other.coef_.tobytes(), path
            for command in ("predict", "evaluate", "certify"):
                named = run(command, tmp_path / "named", path, *label)
                piped = run(command, tmp_path / "named", "-", *label, given=path.read_bytes())
                assert named.stdout == piped.stdout, (command, path)

    def test_a_model_may_come_from_the_standard_input(self, run, cancer, model):
        given = model.read_bytes()
        for command in (["info"], ["predict", cancer], ["evaluate", cancer], ["certify", cancer]):
            name, *data = command
            assert run(name, "-", *data, given=given).stdout == run(name, model, *data).stdout
        assert "both" in run("predict", "-", "-", code=2, given=given).stderr
        assert "the standard input: " in run("info", "-", code=1, given=b"nothing of the kind").stderr

    def test_rankings_keep_their_queries(self, run, tmp_path):
        text = "".join(f"{k % 3} qid:{k // 5} 1:{k % 7} 2:{k % 4}\n" for k in range(40))
        trained = run("train", "-", tmp_path / "m", "--task", "rank", "--json", given=text)
        assert json.loads(trained.stdout)["queries"] == 8

    def test_errors_name_the_standard_input(self, run, tmp_path):
        error = run("train", "-", tmp_path / "m", code=1, given="1 1:2\n-1 2:x\n").stderr
        assert error.startswith("softmargin: the standard input:2:6: ")
        error = run("train", "-", tmp_path / "m", code=1, given="a,b\n1,x\n").stderr
        assert error.startswith("softmargin: the standard input: ")
        assert "the standard input: the file is empty" in run("train", "-", tmp_path / "m", code=1, given="").stderr

    def test_an_endless_text_that_is_no_data_is_refused_at_once(self, model):
        script = f"yes | {sys.executable} -c 'from softmargin.cli.main import main; main()' predict {model} -"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert "the standard input:1:1: the label 'y' is not a number" in done.stderr

    @pytest.mark.parametrize("command", [["info", "-"], ["predict", "-", "rows.svm"]])
    def test_an_endless_input_that_is_no_model_is_refused_at_once(self, start, command):
        with Path("/dev/zero").open("rb") as zeros:
            told = start(*command, stdin=zeros).communicate(timeout=60)[1].decode()
        assert told == "softmargin: the standard input: this is no model file, as its first bytes show.\n"

    def test_an_endless_first_line_is_given_up(self, start, model):
        prelude = "from softmargin.io import svmlight; svmlight.LINE_BYTES = 2**22; "
        with Path("/dev/zero").open("rb") as zeros:
            child = start("predict", model, "-", prelude=prelude, stdin=zeros)
            told = child.communicate(timeout=60)[1].decode()
        assert told.startswith("softmargin: the standard input: the first line is longer than 4194304 bytes.")

    def test_a_copy_of_the_input_that_does_not_fit_on_the_disk_is_told(self, start, model, tmp_path):
        limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20)); "
        limit += "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        (tmp_path / "long.svm").write_bytes(b"1 1:1\n" * 2**19)
        with (tmp_path / "long.svm").open("rb") as rows:
            told = start("predict", model, "-", prelude=limit, stdin=rows).communicate(timeout=60)[1].decode()
        assert told.startswith("softmargin: the standard input could not be copied to ")
        assert "TMPDIR" in told

    def test_a_signal_leaves_no_copy_of_the_input_behind(self, start, model, tmp_path):
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        child = start("predict", model, "-", stdin=subprocess.PIPE, env=os.environ | {"TMPDIR": str(temporary)})
        child.stdin.write(b"1 1:1\n")
        child.stdin.flush()
        while not list(temporary.glob("softmargin-*/input")):
            time.sleep(0.01)
        child.send_signal(signal.SIGTERM)
        assert b"interrupted" in child.communicate(timeout=60)[1]
        assert not list(temporary.iterdir())

    @pytest.mark.parametrize("out", ["-", "/dev/stdout"])
    def test_models_and_predictions_may_go_to_the_standard_output(self, start, cancer, model, tmp_path, out):
        done = start("train", cancer, out)
        content, told = done.communicate(timeout=100)
        (tmp_path / "piped").write_bytes(content)
        assert softmargin.load(tmp_path / "piped").coef_.tobytes() == softmargin.load(model).coef_.tobytes()
        assert b"status        OPTIMAL" in told
        assert b"model " not in told
        predicted = start("predict", model, cancer, out).communicate(timeout=100)[0]
        assert len(predicted.splitlines()) == 569

    def test_standard_output_is_added_to_where_the_shell_says_so(self, start, cancer, model, tmp_path):
        """Replacing the file behind it would lose what is in it."""
        log = tmp_path / "log"
        log.write_text("first\n")
        with log.open("ab") as file:
            start("predict", model, cancer, "/dev/stdout", stdout=file).wait(timeout=100)
        assert log.read_text().startswith("first\n")
        assert len(log.read_text().splitlines()) == 570

    def test_pipes_and_devices_are_written_to(self, run, cancer, model, tmp_path):
        run("predict", model, cancer, "/dev/null")
        run("train", cancer, "/dev/null", "-q")
        os.mkfifo(tmp_path / "pipe")
        reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
        run("predict", model, cancer, tmp_path / "pipe")
        assert len(reader.communicate(timeout=30)[0].splitlines()) == 569

    @pytest.mark.parametrize("command", ["train", "predict"])
    def test_a_full_disk_is_told_with_the_name_of_the_file(self, run, cancer, model, command):
        arguments = (cancer, "/dev/full", "-q") if command == "train" else (model, cancer, "/dev/full")
        told = run(command, *arguments, code=1).stderr
        assert told == "softmargin: /dev/full could not be written: No space left on device.\n"

    def test_open_files_by_number_are_written_to_and_not_replaced(self, start, cancer, model, tmp_path):
        """`>(gzip)` of a shell is such a name; /dev/stderr may be a file that others go on writing to."""
        reader, writer = os.pipe()
        start("predict", model, cancer, f"/dev/fd/{writer}", pass_fds=[writer]).communicate()
        os.close(writer)
        with open(reader, encoding="utf-8") as pipe:
            predictions = pipe.read()
        assert len(predictions.splitlines()) == 569
        log = tmp_path / "log"
        with log.open("w") as file:
            file.write("begin\n")
            file.flush()
            start("predict", model, cancer, "/dev/stderr", stderr=file).communicate()
            file.write("end\n")
        assert log.read_text().startswith("begin\n" + predictions)
        assert log.read_text().endswith("end\n")

    def test_what_cannot_be_described_on_the_same_stream(self, run, cancer, model, tmp_path):
        assert "--json" in run("train", cancer, "-", "--json", code=2).stderr
        assert "--resume" in run("train", cancer, "-", "--resume", code=2).stderr
        assert "OUT" in run("predict", model, cancer, "/dev/stdout", "--json", code=2).stderr
