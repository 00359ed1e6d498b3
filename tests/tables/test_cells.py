"""A long table can be stopped anywhere, goes on where it was, and ends with the same rows."""

import argparse
import json
import os
import signal

import pytest
from benchmarks import cells, record, writing
from benchmarks.tables import _paper

NAMES = ("a", "b", "c")
COLUMNS = {"data": ("data", ""), "value": ("value", "d")}


def run(folder, *options, stop=None, values=None, settings=()):
    """The rows of a run of a small table; `stop` is called in the middle of cell b."""
    parser = record.options("A table.")
    parser.set_defaults(**{"max_seconds": 1.0, **dict(settings)})
    parser.add_argument("--render", action="store_true")
    parser.add_argument("--only", choices=NAMES)
    cells.add_options(parser)
    args = parser.parse_args([*options, "--out", str(folder)])
    table = record.Table("small", "Small", COLUMNS, "1", args)
    measured = []

    def fit(name):
        measured.append(name)
        return {"value": (values or {"a": 1, "b": 2, "c": 3})[name]}

    def measure(table):
        for name in table.cells.each((args.only,) if args.only else NAMES):
            table.add(data=name, **table.cells.part("first", fit, name))
            if stop is not None and name == "b":
                stop()
            table.add(data=name, **table.cells.part("second", fit, name))

    _paper.produce(table, measure, lambda rows: [f"{len(rows)} rows."])
    return [(row["data"], row["value"]) for row in table.rows], measured


def interrupt():
    raise KeyboardInterrupt


def content(folder, name="small.json"):
    return json.loads((folder / name).read_text())


@pytest.mark.parametrize(
    "stop", [interrupt, lambda: os.kill(os.getpid(), signal.SIGTERM), lambda: os.kill(os.getpid(), signal.SIGINT)]
)
def test_a_run_that_is_stopped_goes_on_with_the_same_rows(tmp_path, capsys, stop):
    rows, measured = run(tmp_path / "whole")
    assert measured == ["a", "a", "b", "b", "c", "c"]
    with pytest.raises(SystemExit) as ended:
        run(tmp_path / "parts", stop=stop)
    assert ended.value.code == cells.STOPPED
    assert "2 of 3 cells are missing; go on with --continue." in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "parts").iterdir()) == ["small.part.json"]
    again, measured = run(tmp_path / "parts", "--continue")
    assert measured == ["b", "c", "c"]  # one of the two parts of b was there
    assert again == rows
    assert sorted(path.name for path in (tmp_path / "parts").iterdir()) == ["small.json", "small.md"]
    assert [row["cell"] for row in content(tmp_path / "parts")["rows"]] == ["a", "a", "b", "b", "c", "c"]


def test_no_cell_begins_when_the_seconds_are_over(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        run(tmp_path, "--seconds", "0")
    assert ended.value.code == cells.STOPPED
    assert "3 of 3 cells are missing" in capsys.readouterr().out


def test_a_whole_table_has_nothing_to_measure(tmp_path):
    run(tmp_path)
    rows, measured = run(tmp_path, "--continue", values={})
    assert measured == []
    assert len(rows) == 6
    assert run(tmp_path, "--continue", "--since", "9999-01-01")[1] == ["a", "a", "b", "b", "c", "c"]


def test_cells_of_other_options_are_not_taken(tmp_path):
    run(tmp_path)
    assert len(run(tmp_path, "--continue", settings={"max_seconds": 2.0})[1]) == 6
    with pytest.raises(SystemExit):
        run(tmp_path, stop=interrupt)
    with pytest.raises(SystemExit, match="made with other options"):
        run(tmp_path, "--continue", settings={"max_seconds": 2.0})


def test_one_cell_alone_is_kept_for_the_whole(tmp_path):
    with pytest.raises(SystemExit):
        run(tmp_path, stop=interrupt)
    assert run(tmp_path, "--continue", "--only", "c")[1] == ["c", "c"]
    assert content(tmp_path, "small.part.json")["names"] == ["a", "b", "c"]
    assert run(tmp_path, "--continue")[1] == ["b"]


def test_a_row_keeps_the_commit_that_it_was_measured_with(tmp_path, monkeypatch):
    commits = iter(["one", "two"])
    monkeypatch.setattr(record.machine, "commit", lambda: next(commits))
    with pytest.raises(SystemExit):
        run(tmp_path, stop=interrupt)
    run(tmp_path, "--continue")
    found = content(tmp_path)
    assert {row["cell"]: row["commit"] for row in found["rows"]} == {"a": "one", "b": "one, two", "c": "two"}
    assert found["machine"]["commit"] == "one, two"


def test_a_cell_is_measured_on_one_machine(tmp_path, monkeypatch):
    with pytest.raises(SystemExit):
        run(tmp_path, stop=interrupt)
    monkeypatch.setattr(record.machine, "_cpu_model", lambda: "another")
    assert run(tmp_path, "--continue")[1] == ["b", "b", "c", "c"]
    assert content(tmp_path)["machine"]["cpu"].endswith(", another")
    took = {row["cell"]: row["took"] for row in content(tmp_path)["rows"]}
    assert cells.minutes(content(tmp_path)["rows"]) == pytest.approx(sum(took.values()) / 60.0)


def test_an_unfinished_run_can_be_shown(tmp_path):
    with pytest.raises(SystemExit):
        run(tmp_path, stop=interrupt)
    rows, measured = run(tmp_path, "--continue", "--render")
    assert (rows, measured) == ([("a", 1), ("a", 1)], [])
    assert content(tmp_path)["missing"] == ["b", "c"]
    assert "**Unfinished**; not measured yet: b, c." in (tmp_path / "small.md").read_text()
    run(tmp_path, "--render")
    assert content(tmp_path)["missing"] == ["b", "c"]
    assert run(tmp_path, "--continue")[1] == ["b", "c", "c"]
    assert "missing" not in content(tmp_path)


def test_a_file_is_written_whole_or_stays_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "file.json"
    writing.write_json(path, {"a": 1})
    monkeypatch.setattr(os, "replace", lambda *_: interrupt())
    with pytest.raises(KeyboardInterrupt):
        writing.write_json(path, {"a": 2})
    assert content(tmp_path, "file.json") == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_curves_keep_their_ends_and_extremes():
    x = list(range(5000))
    y = [1.0] * 5000
    y[1234], y[4321], y[17] = -5.0, 7.0, None
    row = writing.thinned({"name": "a", "curve_x": x, "curve_y": y, "curve_short": [1, 2], "all_seconds": x})
    assert len(row["curve_x"]) == len(row["curve_y"]) <= writing.MOST_POINTS
    assert row["curve_x"][0] == 0
    assert row["curve_x"][-1] == 4999
    assert {1234, 4321} <= set(row["curve_x"])
    assert all(y[k] == value for k, value in zip(row["curve_x"], row["curve_y"], strict=True))
    assert (row["name"], row["curve_short"], row["all_seconds"]) == ("a", [1, 2], x)


def test_the_options_are_told():
    parser = argparse.ArgumentParser()
    cells.add_options(parser)
    assert {"--continue", "--seconds", "--since"} <= set(parser.format_help().split())
