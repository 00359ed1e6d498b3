"""The examples run, print what they promise, and draw the pictures of the pages."""

import re
import runpy
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[2]
GALLERY = {
    "plot_01_first_fit": "The stop rule is met",
    "plot_02_certificate": "primal 147.36",
    "plot_03_stop_and_go_on": "same weights: True",
    "plot_04_choose_C": "165 fits",
    "plot_05_path": "26 models",
    "plot_06_kernel": "OPTIMAL: the relative gap is at most 1e-05: True",
    "plot_07_regression": "SVR: R2 0.9",
    "plot_08_novelty": "malignant tumours found novel   9",
    "plot_09_ranking": "13 models, all proven: True",
    "plot_10_ordinal": "OrdinalSVC off by 0.5",
    "plot_11_text": "OPTIMAL, accuracy on new texts 0.9",
    "plot_12_learn_and_unlearn": "fit on the window: primal 335.13",
    "plot_13_out_of_core": "OPTIMAL, accuracy 0.95",
    "plot_15_report": "# LinearSVC model",
    "plot_14_dask": "8 partitions: OPTIMAL",
}
PICTURES = runpy.run_path(str(ROOT / "examples" / "pictures.py"))["PICTURES"]


@pytest.fixture(autouse=True)
def no_window(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    plt.close("all")  # what other tests of this process have left
    yield
    plt.close("all")


@pytest.mark.parametrize("name", GALLERY)
def test_an_example_of_the_gallery_runs(name, tmp_path, capsys):
    runpy.run_path(str(ROOT / "examples" / "gallery" / f"{name}.py"))
    assert GALLERY[name] in capsys.readouterr().out
    [number] = plt.get_fignums()
    assert any(axes.has_data() for axes in plt.figure(number).axes)
    assert not list(tmp_path.iterdir())  # it leaves no files behind
    for picture, example in PICTURES.items():
        if example == name:
            plt.figure(number).savefig("drawn.png", dpi=90)
            committed = plt.imread(ROOT / "docs" / "pictures" / picture)
            assert plt.imread("drawn.png").shape == committed.shape  # the docs show what the example draws


def test_the_demo_runs(tmp_path, capsys):
    runpy.run_path(str(ROOT / "examples" / "demo.py"))["main"](tmp_path / "pictures")
    assert "test accuracy" in capsys.readouterr().out
    drawn = plt.imread(tmp_path / "pictures" / "convergence.png")
    assert drawn.shape == plt.imread(ROOT / "docs" / "pictures" / "convergence.png").shape


def test_every_example_is_run_and_every_picture_is_drawn_by_one():
    assert {path.stem for path in (ROOT / "examples" / "gallery").glob("*.py")} == set(GALLERY)
    assert {path.name for path in (ROOT / "docs" / "pictures").iterdir()} == {
        "convergence.png",
        "report.png",
        *PICTURES,
    }


@pytest.mark.parametrize("name", GALLERY)
def test_an_example_has_a_title_and_words_around_its_picture(name):
    code = (ROOT / "examples" / "gallery" / f"{name}.py").read_text(encoding="utf-8")
    opening = re.match(r'"""\n(.+)\n(=+)\n\n(.+?)\n"""', code, re.DOTALL)
    assert len(opening[1]) == len(opening[2])
    assert len(opening[3].split()) > 15
    assert "\n# %%\n# " in code
