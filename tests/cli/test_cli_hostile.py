"""Files that are damaged, or made to do harm, on the command line."""

import bz2
import warnings

import numpy as np
import pytest

from softmargin import SVC, LinearSVC
from softmargin.io import svmlight

HOSTILE = ["\x1b[2Jred", "two\nlines", "plain"]


@pytest.fixture
def hostile_model(tmp_path):
    X = np.eye(3)[[0, 1, 2] * 4] + 0.01
    LinearSVC(C=100.0).fit(X, np.array(HOSTILE)[[0, 1, 2] * 4]).save(tmp_path / "model")
    np.savez(tmp_path / "rows.npz", X=X, y=np.array(HOSTILE)[[0, 1, 2] * 4])
    return tmp_path / "model"


def test_escape_sequences_in_labels_are_shown_escaped(run, hostile_model, tmp_path):
    rows = tmp_path / "rows.npz"
    trained = run("train", rows, tmp_path / "again")
    bad = run("train", rows, tmp_path / "again", "--class-weight", "\x1b[1m=2", code=1)
    for result in (run("info", hostile_model), run("predict", hostile_model, rows), trained, bad):
        assert "\x1b" not in result.output
        assert "\\x1b[" in result.output


def test_a_label_with_a_newline_takes_one_line_of_the_predictions(run, hostile_model, tmp_path):
    out = tmp_path / "out"
    run("predict", hostile_model, tmp_path / "rows.npz", out)
    lines = out.read_text().splitlines()
    assert len(lines) == 12
    assert lines[:3] == ["\\x1b[2Jred", "two\\nlines", "plain"]


def test_weights_of_classes_by_number_are_shown(run, tmp_path):
    LinearSVC(class_weight={0: 2.0, 1: 1.0}).fit(np.eye(2), [0, 1]).save(tmp_path / "m")
    assert "class weight" in run("info", tmp_path / "m").stdout


@pytest.mark.parametrize("task", ["rank", "classify"])
def test_a_line_without_end_is_refused_in_bounded_memory(run, tmp_path, monkeypatch, task):
    monkeypatch.setattr(svmlight, "LINE_BYTES", 2**22)
    asked = []
    whole_reads = svmlight.text_blocks

    def counted(read, block_bytes):
        def counting(n):
            asked.append(n)
            return read(n)

        return whole_reads(counting, block_bytes)

    monkeypatch.setattr(svmlight, "text_blocks", counted)
    monkeypatch.setattr("softmargin.cli.data.text_blocks", counted)
    (tmp_path / "rows.svm.bz2").write_bytes(bz2.compress(b"1" * 2**26))
    error = run("train", tmp_path / "rows.svm.bz2", tmp_path / "m", "--task", task, code=1).stderr
    assert "the line is longer than" in error
    assert sum(asked) <= 2**24


@pytest.mark.parametrize("name", ["counts_", "certificates_", "seconds_"])
def test_values_of_another_form_are_refused_by_every_command(run, tmp_path, monkeypatch, name):
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        SVC().fit(X, y).save(tmp_path / "m")
    from softmargin.io.model_file import read_model, write_model

    record = read_model(tmp_path / "m")
    record.values[name] = [7]
    write_model(tmp_path / "m", record)
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    for command in (("info",), ("predict", "rows.npz"), ("certify", "rows.npz"), ("evaluate", "rows.npz")):
        arguments = [tmp_path / argument for argument in command[1:]]
        assert "should be of type" in run(command[0], tmp_path / "m", *arguments, code=1).stderr


def test_a_large_index_is_told_before_the_work_begins(run, tmp_path, monkeypatch):
    monkeypatch.setattr("softmargin.cli.fitting.MANY_FEATURES", 2**15)
    (tmp_path / "rows.svm").write_text("1 1:1\n0 2:1\n1 1:2 40000:1\n")
    said = run("train", tmp_path / "rows.svm", tmp_path / "m").stderr
    assert "the largest index makes 40000 features of 4 values" in said
    assert "largest index" not in run("train", tmp_path / "rows.svm", tmp_path / "m", "--kernel", "rbf").stderr


def test_a_model_is_not_read_from_a_pipe_or_device(run, tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:1\n0 2:1\n")
    for command in (("info",), ("predict", tmp_path / "rows.svm")):
        assert "may be endless" in run(command[0], "/dev/zero", *command[1:], code=1).stderr
