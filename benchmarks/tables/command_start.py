"""The command line from its start to its end: `softmargin train` and `evaluate` beside the programs of others.

Every measurement is a new process that reads a text file, fits, writes the model and ends. LIBLINEAR's program
minimises the same objective with a penalised intercept (-s 3 -B 1); LIBSVM's has the free one, by its linear kernel
(-t 0), and is given up after a limit. `softmargin` must not import scikit-learn, which another row measures.
"""

import lzma
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks import machine, record
from benchmarks.datasets.files import data_folder

SECONDS = 1.0  # a9a, from the start of the process to its end
LONG = 5.0  # seconds: a program that takes longer is run once
LIMIT = 60.0  # of LIBSVM's program
FILES = {"a9a": "adult/a9a.xz", "w8a": "web/w8a.xz", "mushrooms": "mushrooms/mushrooms.xz"}
COLUMNS = {
    "data": ("data", ""),
    "what": ("what", ""),
    "median_s": ("median s", ".3f"),
    "best_s": ("best s", ".3f"),
    "worst_s": ("worst s", ".3f"),
    "target": ("target s", ".1f"),
    "met": ("met", ""),
}
PROGRAM = "from softmargin.cli.main import main; main()"
NUMPY, SKLEARN = "import numpy", "import sklearn.base, sklearn.utils.validation"
CHECK = f"""
import sys
try:
    {PROGRAM}
except SystemExit as end:
    sys.exit(end.code or int("sklearn" in sys.modules))
"""


def main() -> None:
    parser = record.options(__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    repeats = 1 if args.quick else args.repeats
    table = record.Table("command_start", "Commands from start to end", COLUMNS, "1", args)
    for what, code in (("python and numpy", NUMPY), ("python, numpy and scikit-learn", SKLEARN)):
        _add(table, "-", what, [sys.executable, "-c", code], repeats)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in _texts(Path(folder), args.quick).items():
            _rows(table, name, text, Path(folder) / "model", repeats, args.quick)
    table.finish(
        "Seconds on the wall of a whole process with warm caches of files and compiled code: read the text, fit, write "
        "the model. softmargin fits to a certified gap of 1e-3; the others to their own defaults. All with C = 1.",
        f"LIBSVM's program is given up after {LIMIT:g} s (inf).",
    )


def _texts(folder: Path, quick: bool) -> dict[str, Path]:
    """Plain text of each file; without the data a few rows that are made here."""
    found = {}
    for name, source in FILES.items():
        target = folder / name
        if quick:
            target.write_text("".join(f"{1 - 2 * (k % 2)} 1:{k % 7} 2:{(k * k) % 5 + k % 2}\n" for k in range(200)))
        else:
            with lzma.open(data_folder() / source) as packed, target.open("wb") as plain:
                shutil.copyfileobj(packed, plain)
        found[name] = target
        if quick:
            break
    return found


def _rows(table: record.Table, name: str, text: Path, model: Path, repeats: int, quick: bool) -> None:
    ours = [sys.executable, "-c", PROGRAM]
    files = [str(text), str(model)]
    first = [sys.executable, "-c", CHECK, "train", *files, "-q"]
    clean = subprocess.run(first, cwd=machine.PROJECT, stdout=subprocess.DEVNULL).returncode == 0
    table.add(data=name, what="train leaves scikit-learn alone", met=clean)
    target = SECONDS if name == "a9a" and not quick else None
    _add(table, name, "softmargin train", [*ours, "train", *files, "-q"], repeats, target)
    _add(table, name, "softmargin evaluate", [*ours, "evaluate", str(model), str(text)], repeats, target)
    for what, command in (
        ("liblinear-train -s 3 -B 1", ["liblinear-train", "-q", "-s", "3", "-B", "1", *files]),
        ("svm-train -t 0", ["svm-train", "-q", "-t", "0", *files]),
    ):
        if shutil.which(command[0]):
            _add(table, name, what, command, repeats)


def _add(
    table: record.Table, data: str, what: str, command: list[str], repeats: int, target: float | None = None
) -> None:
    seconds: list[float] = []
    for k in range(repeats + 1):
        began = time.perf_counter()
        try:
            env = machine.as_installed()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=machine.PROJECT, env=env, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            seconds = [float("inf")]
            break
        taken = time.perf_counter() - began
        if k > 0 or taken > LONG:  # the first one brings the files into the system's cache
            seconds.append(taken)
        if taken > LONG:
            break
    middle = median(seconds)
    table.add(
        data=data,
        what=what,
        median_s=middle,
        best_s=min(seconds),
        worst_s=max(seconds),
        all_s=seconds,
        target=target,
        met=None if target is None else middle <= target,
    )


if __name__ == "__main__":
    main()
