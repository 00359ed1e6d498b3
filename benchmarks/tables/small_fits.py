"""Small data, which is most of what is fitted: SVC, SVR and LinearSVC on scikit-learn's data sets, beside its own.

Goal: at most 1.5 times scikit-learn's time, at an objective that is as good, with the defaults of both.
"""

import time
import warnings
from functools import partial
from math import nan
from statistics import median
from typing import Any

import numpy as np
from sklearn import datasets, svm
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks import record
from benchmarks.datasets.regression_problems import standardised
from benchmarks.family_objective import class_score, number_score
from benchmarks.objective import Score
from benchmarks.tables import _paper

FACTOR = 1.5
WORSE = 1e-6  # relative: a dual objective that is lower by more is not as good
SECONDS = 4.0  # for the fits of one line, but at least ROUNDS[0] and at most ROUNDS[1] of each
ROUNDS = (5, 300)
SETS = ("iris", "wine", "breast_cancer", "digits", "diabetes")
COLUMNS = {
    "machine": ("machine", ""),
    "data": ("data", ""),
    "n_rows": ("rows", ",d"),
    "n_features": ("features", "d"),
    "n_pairs": ("problems", "d"),
    "best_ms": ("softmargin best ms", ".2f"),
    "median_ms": ("median ms", ".2f"),
    "rival_best_ms": ("scikit-learn best ms", ".2f"),
    "rival_median_ms": ("median ms", ".2f"),
    "ratio": ("softmargin / scikit-learn, best", ".2f"),
    "median_ratio": ("median", ".2f"),
    "judge_ms": ("of it judging, ms", ".2f"),
    "dual": ("dual", ",.6f"),
    "dual_above": ("dual above scikit-learn's, relative", ".1e"),
    "primal_below": ("primal below scikit-learn's, relative", ".1e"),
    "met": ("goal met", ""),
}
REMARKS: tuple[str, ...] = (
    "LinearSVC on a few hundred rows: LIBLINEAR is one call for all classes. In a profile of iris the visits of rows "
    "are 6 % of our time, the judge 12 %, and most of the rest is Python between calls of a few microseconds, for each "
    "class and each look at the gap. What was tried is in docs/design/012, under the goals that were missed.",
)


def main() -> None:
    parser = record.options(__doc__)
    parser.add_argument("--only", metavar="NAME", choices=SETS, help="one data set; not written without --out")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for the fits of one line of the table")
    parser.add_argument("--render", action="store_true", help="measure nothing: write the last results again")
    args = parser.parse_args()
    title = "Small data: SVC, SVR and LinearSVC with their defaults, beside scikit-learn's"
    table = record.Table("small_fits", title, COLUMNS, "one, for all", args)
    with threadpool_limits(1):
        _paper.produce(table, _measure, _notes, REMARKS)


def _measure(table: record.Table) -> None:
    args = table.args
    if args.quick:
        args.seconds = 0.05
    for machine in ("SVC", "SVR", "LinearSVC"):
        for name in (args.only,) if args.only else SETS[:1] if args.quick else SETS:
            _add(table, machine, name)


def _data(machine: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Standardised features; classes as they are, or as numbers; diabetes standardised, or above its median or not."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    if name == "diabetes":
        y = standardised(y) if machine == "SVR" else (y > np.median(y)).astype(int)
    return standardised(X), y.astype(np.float64) if machine == "SVR" else y


def _add(table: record.Table, machine: str, name: str) -> None:
    import softmargin

    X, y = _data(machine, name)
    is_linear = machine == "LinearSVC"
    settings = {"loss": "hinge"} if is_linear else {}
    makers = {
        "softmargin": partial(getattr(softmargin, machine), **settings),
        "scikit-learn": partial(getattr(svm, machine), **settings),
    }
    models: dict[str, Any] = {}
    seconds: dict[str, list[float]] = {who: [] for who in makers}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # LIBLINEAR's limit of 1,000 iterations
        for make in makers.values():  # compiles, and takes memory from the system
            make().fit(X, y)
        began = time.perf_counter()
        while len(seconds["softmargin"]) < ROUNDS[1]:
            if time.perf_counter() - began > table.args.seconds and len(seconds["softmargin"]) >= ROUNDS[0]:
                break
            for who, make in makers.items():
                start = time.perf_counter()
                models[who] = make().fit(X, y)
                seconds[who].append(time.perf_counter() - start)
    ours, rival = models["softmargin"], models["scikit-learn"]
    scores = {who: _score(machine, X, y, model) for who, model in models.items()}
    ms = {who: (1e3 * min(times), 1e3 * median(times)) for who, times in seconds.items()}
    dual_above = _relative(scores["softmargin"].dual - scores["scikit-learn"].dual, scores["scikit-learn"].dual)
    ratio = ms["softmargin"][0] / ms["scikit-learn"][0]
    table.add(
        machine=machine,
        data=name.replace("_", " "),
        n_rows=len(X),
        n_features=X.shape[1],
        n_pairs=len(np.ravel(ours.intercept_)),
        best_ms=ms["softmargin"][0],
        median_ms=ms["softmargin"][1],
        rival_best_ms=ms["scikit-learn"][0],
        rival_median_ms=ms["scikit-learn"][1],
        ratio=ratio,
        median_ratio=ms["softmargin"][1] / ms["scikit-learn"][1],
        rounds=len(seconds["softmargin"]),
        judge_ms=1e3 * ours.seconds_["judge"],
        status=ours.status_.name,
        relative_gap=ours.certificate_.relative_gap,
        n_support=None if is_linear else len(ours.support_),
        rival_n_support=None if is_linear else len(rival.support_),
        primal=scores["softmargin"].primal,
        dual=scores["softmargin"].dual,
        rival_primal=scores["scikit-learn"].primal,
        rival_dual=scores["scikit-learn"].dual,
        dual_above=dual_above,
        primal_below=_relative(
            scores["scikit-learn"].primal - scores["softmargin"].primal, scores["softmargin"].primal
        ),
        met=bool(ratio <= FACTOR and (is_linear or dual_above >= -WORSE)),
    )


def _score(machine: str, X: np.ndarray, y: np.ndarray, model: Any) -> Score:
    if machine == "LinearSVC":  # scikit-learn penalises the intercept: its objective is another one
        return Score(nan, nan)
    gamma = 1.0 / (X.shape[1] * X.var())
    if machine == "SVC":
        return class_score(X, y, model.C, gamma, model)
    return number_score(X, y, model.C, model.epsilon, gamma, model)


def _relative(difference: float, size: float) -> float:
    return difference / abs(size)


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    missed = [f"{row['machine']} on {row['data']} ({row['ratio']:.2f})" for row in rows if row["ratio"] > FACTOR]
    worse = [f"{row['machine']} on {row['data']}" for row in rows if (row["dual_above"] or 0.0) < -WORSE]
    return [
        f"goal: at most {FACTOR:g} times scikit-learn's time: {'missed by ' + ', '.join(missed) if missed else 'met'}; "
        f"dual objective as good, to {WORSE:g}: {'not for ' + ', '.join(worse) if worse else 'everywhere'}.",
        "fits with the defaults of both (RBF kernel, gamma='scale', C = 1, epsilon = 0.1, tol = 1e-3), features "
        "standardised, in turn in one warm process, whole `fit`, judge included. scikit-learn's tol is for the KKT "
        "violation, softmargin's for the relative gap that it proves.",
        "SVR learns the numbers of the classes; the target of diabetes is standardised for SVR, and split at its "
        "median for SVC.",
        "LinearSVC: loss='hinge' for both. scikit-learn penalises the intercept and proves nothing; where it ends at "
        "its limit of 1,000 iterations it warns. softmargin's intercept is free, and its gap of 1e-3 is proven. So "
        "there are no objectives to compare.",
        "objectives: sums over all pairs of classes, recomputed in float64 by benchmarks/family_objective.py.",
    ]


if __name__ == "__main__":
    main()
