"""Rankers: softmargin's RankSVM, dlib's svm_rank_trainer in its own interpreter, and LightGBM's LGBMRanker.

dlib is compiled for a quarter of an hour, so it need not be in this environment: SOFTMARGIN_DLIB_PYTHON names an
interpreter that can import it. It knows two levels of relevance only.
"""

import json
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import ConvergenceWarning

from benchmarks.datasets.ranking_problems import RankingProblem
from benchmarks.objective import Score
from benchmarks.pair_objective import pair_score

EPSILON = 1e-3  # SVM-perf's
DLIB_PYTHON = "SOFTMARGIN_DLIB_PYTHON"
SHORT = 5.0  # seconds: a fit that takes longer is not repeated


@dataclass(frozen=True)
class RankFit:
    """A trained ranker, the seconds of training, what it counts, what ended it, and what the judge says of it."""

    model: Any
    seconds: float
    iterations: int
    ended: str
    score: Score

    @property
    def was_cut(self) -> bool:
        return self.ended.startswith("cut")


def softmargin(
    problem: RankingProblem, C: float, limit: float, *, judge: bool = True, bound: bool = False, **parameters: Any
) -> RankFit:
    """Our RankSVM. A fit that ends early warns; here that is in the table instead.

    With `bound` the planes are kept, and the dual bound is recounted from their scores too.
    """
    from softmargin import RankSVM

    model = RankSVM(C=C, max_seconds=limit, warm_start=bound, **parameters)
    with _quiet():
        began = time.perf_counter()
        model.fit(problem.X, problem.y, qid=problem.qid)
        seconds = time.perf_counter() - began
    planes: tuple[Any, Any] = (None, ())
    if bound:
        [state] = model._state[1]  # no public attribute: the bound of a ranking belongs to no row
        used = state.gamma != 0.0
        scores = [witness.scores for witness, is_used in zip(state.planes.witnesses, used, strict=True) if is_used]
        planes = state.gamma[used], scores
    found = pair_score(problem.X, problem.y, problem.qid, C, model.coef_, *planes) if judge else Score(np.nan)
    endings = {"OPTIMAL": "tolerance", "MAX_SECONDS": f"cut at {limit:g} s"}
    name = model.status_.name
    return RankFit(model, seconds, model.n_iter_, endings.get(name, name.lower()), found)


def ocas(problem: RankingProblem, C: float, limit: float, tol: float = EPSILON, **parameters: Any) -> RankFit:
    from softmargin import OCAS

    return softmargin(problem, C, limit, solver=OCAS(stopping="epsilon"), tol=tol, **parameters)


def cpa(problem: RankingProblem, C: float, limit: float, tol: float = EPSILON, **parameters: Any) -> RankFit:
    from softmargin import CPA

    return softmargin(problem, C, limit, solver=CPA(stopping="epsilon"), tol=tol, **parameters)


def warm_up(problem: RankingProblem) -> None:
    """Compiles, so that no measured fit does."""
    for solver in ("ocas", "cpa"):
        softmargin(problem, 1.0, 60.0, judge=False, solver=solver, max_iter=3)


def dlib(problem: RankingProblem, C: float, epsilon: float = EPSILON) -> RankFit:
    """dlib's svm_rank_trainer on two levels and one query, C on the mean over the pairs; seconds of its `train`."""
    if problem.qid is not None or len(np.unique(problem.y)) != 2:
        raise ValueError("dlib's ranker takes relevant and other rows, no grades; queries are not handed over here")
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        dump_svmlight_file(problem.X, (problem.y > problem.y.min()).astype(int), str(data), zero_based=True)
        script = Path(__file__).with_name("_dlib_rank.py")
        command = [os.environ[DLIB_PYTHON], str(script), str(data), repr(float(C)), repr(float(epsilon))]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    answer = json.loads(done.stdout)
    w = np.zeros(problem.X.shape[1])
    w[answer["indices"]] = answer["values"]
    found = pair_score(problem.X, problem.y, None, C, w)
    return RankFit(w, answer["seconds"], 0, f"epsilon = {epsilon:g}", found)


def missing_dlib() -> str | None:
    """Why dlib cannot be measured, if it cannot."""
    python = os.environ.get(DLIB_PYTHON)
    if not python:
        return f"{DLIB_PYTHON} names no interpreter with dlib (pip install dlib compiles for a quarter of an hour)"
    try:
        done = subprocess.run([python, "-c", "import dlib; print(dlib.__version__)"], capture_output=True, text=True)
    except OSError:
        return f"what {DLIB_PYTHON} names cannot be run"
    return None if done.returncode == 0 else f"the interpreter that {DLIB_PYTHON} names cannot import dlib"


def note_dlib(machine: dict[str, Any]) -> None:
    """Its version, into the header of a table."""
    python = os.environ.get(DLIB_PYTHON)
    if python and not missing_dlib():
        command = [python, "-c", "import dlib; print(dlib.__version__)"]
        machine["versions"]["dlib"] = subprocess.run(command, capture_output=True, text=True).stdout.strip()


def lightgbm(problem: RankingProblem, n_jobs: int = 2) -> tuple[Any, float]:
    """LGBMRanker with default settings and a fixed seed, and its seconds; it needs the rows in order of query."""
    from lightgbm import LGBMRanker  # type: ignore[import-untyped]

    if problem.qid is None:
        raise ValueError("LGBMRanker needs queries")
    order = np.argsort(problem.qid, kind="stable")
    _, group = np.unique(problem.qid, return_counts=True)
    model = LGBMRanker(random_state=0, n_jobs=n_jobs, verbosity=-1)
    X, y = problem.X[order], problem.y[order].astype(int)
    began = time.perf_counter()
    model.fit(X, y, group=group)
    return model, time.perf_counter() - began


def missing_lightgbm() -> str | None:
    """Why LightGBM cannot be measured, if it cannot."""
    try:
        import lightgbm  # type: ignore[import-untyped]  # noqa: F401
    except (ImportError, OSError) as error:
        return f"LightGBM is not installed ({error}): pip install lightgbm"
    return None


def note_lightgbm(machine: dict[str, Any]) -> None:
    """Its version, into the header of a table."""
    with suppress(PackageNotFoundError):
        machine["versions"]["lightgbm"] = version("lightgbm")


def alternate(runs: Mapping[str, Callable[[], RankFit]], repeats: int) -> dict[str, list[RankFit]]:
    """Each of `runs` in turn, `repeats` times round; what took long the first time is left at that."""
    found: dict[str, list[RankFit]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            if not found[name] or found[name][0].seconds < SHORT:
                found[name].append(run())
    return found


def median_seconds(fits: list[RankFit]) -> float:
    return median(fit.seconds for fit in fits)


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
