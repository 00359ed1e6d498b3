"""The examples run, print what they promise, and draw the pictures of the pages."""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = {
    "demo": ("convergence.png", "test accuracy"),
    "regression": ("residuals.png", "SVR: R2 0.9"),
    "novelty": ("novelty.png", "malignant tumours found novel   9"),
    "choose_C": ("choose_C.png", "165 fits"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_runs(name, tmp_path, capsys):
    picture, words = EXAMPLES[name]
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"))["main"](tmp_path / "pictures")
    plt.close("all")
    assert words in capsys.readouterr().out
    drawn = plt.imread(tmp_path / "pictures" / picture)
    committed = plt.imread(ROOT / "docs" / "pictures" / picture)
    assert drawn.shape == committed.shape  # the size in the docs is the size that the example draws


def test_every_picture_of_the_docs_is_drawn_by_an_example():
    drawn = {picture for picture, _ in EXAMPLES.values()}
    assert {path.name for path in (ROOT / "docs" / "pictures").iterdir()} == drawn
