"""Every committed result can be written again from its JSON, whatever its script has learned since."""

import importlib
import shutil
import sys
from pathlib import Path

import pytest
from benchmarks import record

TABLES = Path(record.__file__).parent / "tables"
RENDERED = sorted(
    path.stem for path in record.RESULTS.glob("*.json") if "_paper." in (TABLES / f"{path.stem}.py").read_text("utf-8")
)


@pytest.mark.parametrize("name", RENDERED)
def test_render(name, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    shutil.copy(record.RESULTS / f"{name}.json", tmp_path)
    monkeypatch.setattr(record.machine, "keep_freed_memory", lambda: None)  # it would start pytest again
    monkeypatch.setattr(sys, "argv", [name, "--render", "--out", str(tmp_path)])
    importlib.import_module(f"benchmarks.tables.{name}").main()
    text = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert text.startswith("# ")
    if "_paper_" in name:  # the first line under the table
        first = text.rpartition(" |\n")[2].strip().partition("\n")[0].lower()
        assert "other conditions than the paper's" in first or "not in the paper" in first
