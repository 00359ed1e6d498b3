"""The page of the four papers names everything, and says what the results say."""

import json
import re

import pytest
from benchmarks import cells, record
from benchmarks.tables import __main__ as command
from benchmarks.tables import _summary
from benchmarks.tables._summary import HEADLINE, NOT_YET, PAPERS, SCRIPTS

RESULTS = record.RESULTS
# Tables and figures of each paper, counted in its text.
COUNTS = {"OCAS": (5, 4), "SVM-perf": (1, 9), "SVM-QP": (6, 0), "HMG": (7, 7)}
MEASURED = [entry for entries in PAPERS.values() for entry in entries if entry.result]


def test_every_table_and_figure_is_listed_once():
    for paper, entries in PAPERS.items():
        tables, figures = COUNTS[paper.partition(":")[0]]
        named = [entry.what for entry in entries if entry.what.startswith(("Table", "Figure"))]
        wanted = [f"Table {k + 1}" for k in range(tables)] + [f"Figure {k + 1}" for k in range(figures)]
        assert sorted(named) == sorted(wanted)
    assert len(PAPERS) == len(COUNTS)


def test_every_script_of_the_papers_is_run_by_all():
    scripts = {path.stem for path in (RESULTS.parent / "tables").glob("[!_]*_paper_*.py")}
    assert {*SCRIPTS} == scripts - {HEADLINE}
    assert {entry.result for entry in MEASURED} <= scripts


@pytest.mark.skipif(not [*RESULTS.glob("*.json")], reason="a source package has no results")
def test_the_page_is_what_the_results_say():
    written = (RESULTS / "README.md").read_text(encoding="utf-8")
    assert written == _summary.page(RESULTS), "write it again: python -m benchmarks.tables --summary"
    for link in re.findall(r"\]\((.*?)\)", written):
        assert (RESULTS / link).exists()


def test_what_is_not_there_is_not_measured_yet(tmp_path):
    lines = [line for line in _summary.page(tmp_path).splitlines() if line.startswith("| ")]
    assert sum(f"| {NOT_YET} |" in line for line in lines) == len(MEASURED)
    assert all(entry.verdict is not None for entry in MEASURED)


@pytest.mark.parametrize("entry", MEASURED, ids=lambda entry: f"{entry.result}-{entry.what}")
def test_a_verdict_is_one_sentence_for_a_cell(entry):
    path = RESULTS / f"{entry.result}.json"
    if not path.exists():
        pytest.skip("not measured yet")
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    cells_of = {}  # an unfinished result may have one of them only
    for row in rows:
        cells_of.setdefault(row.get("data", row.get("problem")), []).append(row)
    for part in (rows, *cells_of.values()):
        found = _summary.verdict(entry, part)
        assert found.endswith(".") or found == NOT_YET
        assert "|" not in found
        assert not re.search(r"\bnan\b", found)


def test_a_verdict_follows_the_rows(tmp_path):
    def page(primal):
        cpa, ocas = ({"data": "a", "solver": name, "curve_dual": [0.1, 0.2, 0.3]} for name in ("CPA", "OCAS"))
        rows = [
            cpa | {"curve_primal": [4.0, 2.0, 3.0], "last": 3.0},
            ocas | {"curve_primal": primal, "last": primal[-1]},
        ]
        machine = {"date": "today", "commit": "abc", "cpu": "fast", "cores": 2}
        content = {"rows": rows, "machine": machine, "missing": ["mnist"]}
        (tmp_path / "ocas_paper_figure1.json").write_text(json.dumps(content))
        return _summary.page(tmp_path)

    said = page([4.0, 3.0, 2.0])
    assert "The objective of CPA rises at 50% to 50% of the steps" in said
    assert (
        "falls at 100% to 100%, and ends lower on 1 of 1 data sets; the lower bound rises at every step in 2 of 2"
        in said
    )
    assert "solves. Not measured yet: mnist." in said
    assert "| today | abc | fast, 2 cores |" in said
    assert "falls at 50% to 50%, and ends lower on 0 of 1 data sets" in page([4.0, 3.0, 3.0])


def test_the_list_tells_minutes_and_purpose(tmp_path):
    cell = {"cell": "a", "took": 12_000.0}
    (tmp_path / "ocas_paper_figure1.json").write_text(json.dumps({"rows": [cell, cell, cell | {"cell": "b"}]}))
    lines = _summary.listing(tmp_path).splitlines()
    assert len(lines) == len(SCRIPTS)
    assert "400 min  The OCAS paper's Figure 1" in next(line for line in lines if "ocas_paper_figure1" in line)
    assert lines[0].split()[1:4] == ["about", "15", "min"]


def test_all_goes_on_after_a_failure_and_lists_it(tmp_path, monkeypatch, capsys):
    ends = dict.fromkeys(SCRIPTS, (0, False)) | {"qp_paper_table3": (1, False)}
    ends |= {"ocas_paper_cov1": (cells.STOPPED, False)}
    ran = []

    def run(name, options):
        ran.append((name, options))
        return ends[name]

    monkeypatch.setattr(command, "_run", run)
    with pytest.raises(SystemExit, match="failed: qp_paper_table3"):
        command.all_papers(tmp_path, None, ["--out", "x"])
    assert [name for name, _ in ran] == _summary.by_length(tmp_path)
    assert ran[0][1] == ["--continue", "--out", "x"]
    assert "ocas_paper_cov1; the same command goes on" in capsys.readouterr().out
    assert (tmp_path / "README.md").read_text() == _summary.page(tmp_path)


def test_all_stops_when_it_is_interrupted_or_out_of_time(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "_run", lambda name, options: (cells.STOPPED, True))
    first = _summary.by_length(tmp_path)[0]
    for seconds in (None, 0.0):
        with pytest.raises(SystemExit) as ended:
            command.all_papers(tmp_path, seconds, [])
        assert ended.value.code == cells.STOPPED
        assert f"not looked at any more: {first}, " in capsys.readouterr().out
