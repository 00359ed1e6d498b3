"""The example of a prediction service answers, and refuses rows whose features have other names."""

import ast
import runpy
from pathlib import Path

import pytest
from sklearn.datasets import load_breast_cancer

import softmargin

EXAMPLE = Path(__file__).parents[2] / "examples" / "service.py"


def test_it_imports_what_a_container_has():
    tree = ast.parse(EXAMPLE.read_text(encoding="utf-8"))
    top = {alias.name.split(".")[0] for node in tree.body if isinstance(node, ast.Import) for alias in node.names} | {
        node.module.split(".")[0] for node in tree.body if isinstance(node, ast.ImportFrom)
    }
    assert top == {"os", "pathlib", "reprlib", "fastapi", "softmargin"}


@pytest.mark.filterwarnings("ignore")
def test_it_answers(tmp_path):
    pytest.importorskip("fastapi", reason="fastapi is not installed")
    pytest.importorskip("httpx", reason="httpx is not installed")
    from fastapi.testclient import TestClient

    example = runpy.run_path(str(EXAMPLE))
    example["train"](tmp_path / "m")
    client = TestClient(example["service"](tmp_path / "m"))
    frame, y = load_breast_cancer(return_X_y=True, as_frame=True)
    rows = frame.head(5).to_dict("records")
    assert client.get("/model").json()["features"] == list(frame.columns)

    answer = client.post("/predict", json=rows)
    assert answer.status_code == 200
    assert answer.json()["labels"] == y.head(5).tolist()
    assert all(abs(sum(row) - 1.0) < 1e-9 for row in answer.json()["probabilities"])

    renamed = [{("radius" if name == "mean radius" else name): value for name, value in rows[0].items()}]
    refused = client.post("/predict", json=renamed)
    assert refused.status_code == 422
    assert "missing features ['mean radius'], unknown features ['radius']" in refused.json()["detail"]
    assert client.post("/predict", json=[]).status_code == 422
    many = client.post("/predict", json=[rows[0] | {f"x{k}": 0.0 for k in range(1000)}])
    assert "unknown features ['x0', 'x1', 'x10'" in many.json()["detail"]
    assert len(many.json()["detail"]) < 200
    for wrong in ("much", None, "NaN", "inf"):
        assert client.post("/predict", json=[rows[0] | {"mean radius": wrong}]).status_code == 422


def test_it_says_why_it_cannot_begin(tmp_path, monkeypatch):
    pytest.importorskip("fastapi", reason="fastapi is not installed")
    begin = runpy.run_path(str(EXAMPLE))["service"]
    monkeypatch.delenv("SOFTMARGIN_MODEL", raising=False)
    with pytest.raises(SystemExit, match="set SOFTMARGIN_MODEL"):
        begin()
    with pytest.raises(SystemExit, match=r"cannot be loaded: .*No such file"):
        begin(tmp_path / "nothing")
    (tmp_path / "text").write_text("not a model")
    with pytest.raises(SystemExit, match=r"cannot be loaded: .*no model file"):
        begin(tmp_path / "text")
    X, y = load_breast_cancer(return_X_y=True)
    softmargin.LinearSVC().fit(X, y).save(tmp_path / "nameless")
    with pytest.raises(SystemExit, match="train it on a data frame"):
        begin(tmp_path / "nameless")
