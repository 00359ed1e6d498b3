"""Shoot the picture of a report anew, for docs/report.md, with a headless Chromium: `report_picture.py FOLDER`."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from softmargin import LinearSVC

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--hide-scrollbars",
)
SIZE = (900, 1250)


def main(folder: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("There is no chromium on this machine: install it, for example by apt-get install chromium.")
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    report = LinearSVC().fit(X[::2], y[::2]).report(X[1::2], y[1::2])
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch) / "report.html"
        report.save(page)
        width, height = SIZE
        own = (f"--user-data-dir={scratch}/profile", f"--window-size={width},{height}", "--virtual-time-budget=3000")
        shot = f"--screenshot={folder.resolve() / 'report.png'}"
        subprocess.run([chromium, *OPTIONS, *own, shot, page.as_uri()], check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
