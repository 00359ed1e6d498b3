"""`softmargin warmup`: small fits of every kind, so that the compiled code is in the cache before it is needed.

What is compiled depends on the types of the data (float32 or float64, dense or CSR), on the estimator, kernel and
solver, and in some places on the shape: many rows, rows of few columns, many columns, or more columns than rows.
"""

import io
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from softmargin.cli import output
from softmargin.core.errors import SoftmarginError
from softmargin.estimators.certify import certify
from softmargin.estimators.linear_svc import LinearSVC
from softmargin.estimators.ordinal_svc import OrdinalSVC
from softmargin.estimators.rank_svm import RankSVM
from softmargin.estimators.svc import SVC
from softmargin.io.svmlight import load_svmlight
from softmargin.tasks.solvers import SOLVER_NAMED

LINEAR: tuple[dict[str, Any], ...] = (
    {},
    {"intercept": "penalised"},
    {"loss": "squared_hinge"},
    {"solver": "cpa"},
    {"multi_class": "crammer_singer", "intercept": "penalised"},
    {"multi_class": "crammer_singer", "intercept": "penalised", "solver": "ocas"},
    {"solver": "sgd", "random_state": 0},
    {"solver": "pegasos", "random_state": 0},
)
KERNEL: tuple[dict[str, Any], ...] = (
    *({"kernel": kernel} for kernel in ("rbf", "linear", "poly", "sigmoid", "laplacian")),
    {"tol": 1e-6},
    {"solver": "smo"},
    {"solver": "smo", "tol": 1e-6},
    {"solver": "smo", "working_set": "hybrid_maximum_gain"},
    {"solver": "active_set"},
    {"solver": "ipm"},
    {"solver": "ocas"},
)
SHAPES = ((300, 6), (400, 120), (60, 900))
# From about a thousand rows on, kernel values are kept in float32 and solved in blocks; from two thousand on, several
# classes share parts of their rows. A few iterations of such fits reach all of their code.
_MANY_ROWS, _FEW_ITERATIONS = (2100, 6), 3
# Long enough for the compiled parser, which reads what the plain one leaves: text of this length, numbers of many
# digits.
_TEXT_ROWS = 3000


class Sample(NamedTuple):
    X: Any
    y: np.ndarray
    grades: np.ndarray
    qid: np.ndarray


def warmup(*, quiet: bool, as_json: bool) -> None:
    began = time.perf_counter()
    with output.showing("compiling what fits and predictions need"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in _steps():
            step()
    folders = cache_folders()
    if not folders:
        raise SoftmarginError(
            "no folder for compiled code can be written, so that nothing was kept: set NUMBA_CACHE_DIR to one that can."
        )
    if as_json or not quiet:
        found = {
            "functions": n_compiled(),
            "seconds": time.perf_counter() - began,
            "cache": os.path.commonpath(folders),
        }
        output.show(found, as_json)


def _steps() -> Iterator[Callable[[], None]]:
    yield _parse_text
    yield _rank_many
    for shape in SHAPES:
        for sample in _samples(*shape):
            yield partial(_fit_linear, sample)
            yield partial(_fit_kernel, sample)
    for sample in _samples(*_MANY_ROWS):
        yield partial(_fit_many_rows, sample)


def _samples(n_rows: int, n_columns: int) -> Iterator[Sample]:
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((n_rows, n_columns))
    score = dense[:, 0] + 0.5 * rng.standard_normal(n_rows)
    grades = np.digitize(score, [-0.7, 0.0, 0.7])
    thin = np.where(rng.random(dense.shape) < 0.2, dense, 0.0)
    for dtype in (np.float64, np.float32):
        for X in (dense, _as_csr(thin)):
            yield Sample(X.astype(dtype), np.where(score > 0, 1, -1), grades, np.arange(n_rows) % 7)


def _as_csr(dense: np.ndarray) -> Any:
    """By our reader, with 32-bit indices, as from a file."""
    lines = ("0 " + " ".join(f"{k + 1}:{row[k]!r}" for k in np.flatnonzero(row)) for row in dense.astype(object))
    return load_svmlight(io.BytesIO("\n".join(lines).encode()), n_features=dense.shape[1])[0]


def _parse_text() -> None:
    numbers = np.random.default_rng(0).standard_normal(_TEXT_ROWS * 5)
    rows = numbers.reshape(-1, 5).tolist()
    lines = (
        f"{k % 3} qid:{k // 9} " + " ".join(f"{j}:{v!r}" for j, v in enumerate(row, 1)) for k, row in enumerate(rows)
    )
    text = "\n".join(lines).encode()
    for query_id in (False, True):
        load_svmlight(io.BytesIO(text), query_id=query_id)


def _rank_many() -> None:
    """Equal targets are sorted in another way from about a thousand on."""
    X = np.random.default_rng(0).standard_normal((4000, 3))
    RankSVM(max_iter=3).fit(X, X[:, 0] > 0)


def _fit_linear(sample: Sample) -> None:
    X, y, grades, qid = sample
    for settings in LINEAR:
        model = LinearSVC(**settings).fit(X, y)
        model.predict(X)
    certify(model, X, y)
    for pairs in ("pairs", "equal"):
        ranker = RankSVM(query_weight=pairs).fit(X, grades, qid=qid)
        ranker.score(X, grades, qid=qid)
    for thresholds in ("fitted", "immediate", "all"):
        OrdinalSVC(thresholds=thresholds).fit(X, grades).predict(X)


def _fit_kernel(sample: Sample) -> None:
    X, y, grades, _ = sample
    for settings in KERNEL:
        model = SVC(**settings).fit(X, y)
        model.predict(X)
        certify(model, X, y)
    SVC().fit(X, grades).predict(X)


def _fit_many_rows(sample: Sample) -> None:
    X, y, grades, _ = sample
    for settings in KERNEL:
        if settings.get("solver") != "ipm":  # a matrix of so many rows has too high a rank for it
            SVC(max_iter=_FEW_ITERATIONS, **settings).fit(X, y)
    small_block = SOLVER_NAMED["BlockSMO"].home.load()(size=64)  # is soon full, and then its matrix is contiguous
    for tol in (1e-3, 1e-6):
        SVC(max_iter=_FEW_ITERATIONS, solver=small_block, tol=tol).fit(X, y)
    SVC(max_iter=_FEW_ITERATIONS).fit(X, grades)


def n_compiled() -> int:
    """Versions of compiled functions that this process has."""
    return sum(len(function.signatures) for function in compiled_functions())


def compiled_functions() -> list[Any]:
    """Those that are compiled, or loaded from the cache, in the modules that are imported."""
    found: dict[int, Any] = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("softmargin."):
            found |= {id(value): value for value in vars(module).values() if hasattr(value, "nopython_signatures")}
    return list(found.values())


def cache_folders() -> list[str]:
    """Where the machine code is kept."""
    return sorted({function.stats.cache_path for function in compiled_functions() if function.stats.cache_path})
