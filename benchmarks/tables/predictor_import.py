"""What `softmargin.load_predictor` costs a process that has imported NumPy: its imports, loading a model, predicting.

Goal: imports of at most 0.1 s. Every measurement in a fresh process; scikit-learn, scipy and Numba must not be
imported. Seconds are those of the processor, which others on the same machine disturb less.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import machine, record
from benchmarks.tables import _paper

SECONDS = 0.1
COLUMNS = {
    "model": ("model", ""),
    "numpy_s": ("import numpy, median s", ".3f"),
    "import_s": ("import of load_predictor, median s", ".3f"),
    "best_import_s": ("best s", ".3f"),
    "load_s": ("loading the model, median s", ".4f"),
    "predict_s": ("first prediction of 100 rows, median s", ".4f"),
    "foreign": ("other packages imported", ""),
    "met": ("goal met", ""),
}
CHILD = """
import time
began = time.process_time()
import numpy
with_numpy = time.process_time()
import sys
before = set(sys.modules)
from softmargin import load_predictor
imported = time.process_time()
predictor = load_predictor(sys.argv[1])
loaded = time.process_time()
predictor.predict(numpy.zeros((100, predictor.n_features_in_)))
predicted = time.process_time()
import json
foreign = {name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
print(json.dumps({
    "numpy": with_numpy - began, "import": imported - with_numpy, "load": loaded - imported,
    "predict": predicted - loaded, "foreign": sorted(foreign - {"numpy", "softmargin"}),
}))
"""


def main() -> None:
    parser = record.options(__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--render", action="store_true", help="measure nothing: write the last results again")
    args = parser.parse_args()
    title = "Starting to predict with NumPy alone"
    _paper.produce(record.Table("predictor_import", title, COLUMNS, "1", args), _measure, _notes)


def _measure(table: record.Table) -> None:
    from sklearn.datasets import load_breast_cancer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import softmargin

    X, y = load_breast_cancer(return_X_y=True)
    with tempfile.TemporaryDirectory() as folder:
        for model in (softmargin.LinearSVC(), softmargin.SVC()):
            path = Path(folder) / "model"
            softmargin.save(make_pipeline(StandardScaler(), model).fit(X, y), path)
            _run(path)  # brings the files of the packages into the system's cache
            found = [_run(path) for _ in range(1 if table.args.quick else table.args.repeats)]
            seconds = {part: [each[part] for each in found] for part in ("numpy", "import", "load", "predict")}
            foreign = sorted({name for each in found for name in each["foreign"]})
            table.add(
                model=f"StandardScaler and {type(model).__name__}",
                **{f"{part}_s": median(times) for part, times in seconds.items()},
                best_import_s=min(seconds["import"]),
                all_s=seconds,
                foreign=", ".join(foreign) or "none",
                met=median(seconds["import"]) <= SECONDS and not foreign,
            )


def _run(path: Path) -> dict[str, Any]:
    command = [sys.executable, "-c", CHILD, str(path)]
    env = machine.as_installed()
    done = subprocess.run(command, cwd=machine.PROJECT, capture_output=True, text=True, check=True, env=env)
    return json.loads(done.stdout)


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    is_met = all(row["met"] for row in rows)
    return [
        f"goal: the import takes at most {SECONDS:g} s beyond NumPy's, and brings no other package: "
        + ("met." if is_met else "missed."),
        "the modules that read and compute are imported by `from softmargin import load_predictor`.",
    ]


if __name__ == "__main__":
    main()
