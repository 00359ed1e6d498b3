"""The page in a real browser: no errors, charts that are drawn, tables that sort, keys that read values."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from softmargin import LinearSVC

PDFTOTEXT = shutil.which("pdftotext")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=3000",
    "--dump-dom",
]
# What the test asks of the page, from inside it.
QUESTIONS = """
<pre id="answers"></pre>
<script>
addEventListener("load", () => setTimeout(() => {
  const inked = [...document.querySelectorAll(".chart canvas")].map((canvas) => {
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const colours = new Set();
    for (let k = 0; k < data.length; k += 4) {
      if (data[k + 3] > 200) colours.add(data[k] << 16 | data[k + 1] << 8 | data[k + 2]);
    }
    return colours.size;
  });
  const table = document.querySelector("#weights table");
  const button = table.querySelectorAll("button")[1];
  const column = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[1].dataset.value));
  button.click(); const falling = column();
  button.click(); const rising = column();
  const chart = document.getElementById("chart-0");
  chart.focus();
  chart.dispatchEvent(new KeyboardEvent("keydown", { key: "End", bubbles: true }));
  document.getElementById("answers").textContent = JSON.stringify({
    inked, falling, rising, sort: button.closest("th").getAttribute("aria-sort"),
    reading: document.getElementById("reading-0").textContent,
    hasFocus: document.activeElement === chart,
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    paper: getComputedStyle(document.body).backgroundColor,
  });
}, 300));
</script>
</body>
"""


@pytest.fixture(scope="module")
def page():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = LinearSVC(solver="coordinate").fit(X[:200, :6], np.where(y[:200], "<b>", "</script>"))
    html = model.report(X[:200, :6], np.where(y[:200], "<b>", "</script>")).html
    return html.replace("</body>\n", QUESTIONS)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
@pytest.mark.parametrize(("width", "scheme", "paper"), [(1400, 1, "rgb(255, 255, 255)"), (500, 0, "rgb(18, 22, 28)")])
def test_in_a_browser(page, tmp_path, width, scheme, paper):
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    found = subprocess.run(
        [
            CHROMIUM,
            *OPTIONS,
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--window-size={width},900",
            f"--blink-settings=preferredColorScheme={scheme}",
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "CONSOLE" not in found.stderr
    answers = json.loads(re.search(r'<pre id="answers">(.*?)</pre>', found.stdout, re.DOTALL)[1])
    assert len(answers["inked"]) >= 5
    assert min(answers["inked"]) >= 3  # grid, text and a line
    assert answers["falling"] == sorted(answers["falling"], reverse=True)
    assert answers["rising"] == answers["falling"][::-1]
    assert answers["sort"] == "ascending"
    assert re.match(r"seconds .*: primal value .*; dual bound", answers["reading"])
    assert answers["hasFocus"]
    assert answers["wide"] <= 0
    assert answers["paper"] == paper


@pytest.mark.skipif(CHROMIUM is None or PDFTOTEXT is None, reason="there is no chromium, or no pdftotext")
def test_on_paper(tmp_path):
    """Every page of a long table has its heads, and what only a screen can show is left out."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    path, printed = tmp_path / "report.html", tmp_path / "report.pdf"
    LinearSVC(solver="coordinate").fit(X, y).report(X, y).save(path)
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    options = [option for option in OPTIONS if option != "--dump-dom"]
    command = [CHROMIUM, *options, profile, f"--print-to-pdf={printed}", path.as_uri()]
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    text = subprocess.run([PDFTOTEXT, "-layout", printed, "-"], capture_output=True, text=True, check=True).stdout
    pages = [page for page in text.split("\f") if re.search(r"^\s*feature \d+ .*\d", page, re.MULTILINE)]
    assert len(pages) >= 2
    for page in pages:
        assert re.search(r"feature +weight +pushes towards", page)
    assert "Values as a table" not in text
    assert "\u2195" not in text
