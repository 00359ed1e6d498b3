"""The example of a prediction service answers, and refuses rows whose features have other names."""

import ast
import runpy
from pathlib import Path

import pytest
from sklearn.datasets import load_breast_cancer

EXAMPLE = Path(__file__).parents[2] / "examples" / "service.py"


def test_it_imports_what_a_container_has():
    tree = ast.parse(EXAMPLE.read_text(encoding="utf-8"))
    top = {alias.name.split(".")[0] for node in tree.body if isinstance(node, ast.Import) for alias in node.names} | {
        node.module.split(".")[0] for node in tree.body if isinstance(node, ast.ImportFrom)
    }
    assert top == {"os", "pathlib", "fastapi", "softmargin"}


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
