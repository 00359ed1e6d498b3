"""Compilation: caching, its fallback, and the clock that leaves it out."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

TINY_FIT = """
import numpy as np
from softmargin import LinearSVC, certify
rng = np.random.default_rng(0)
X = rng.standard_normal((12, 3)); y = (X[:, 0] > 0).astype(int)
"""


def python(code, **environment):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize("storage", ["X", "np.asfortranarray(X)", "sp.csr_array(X)"])
def test_everything_runs_as_plain_python(storage):
    """The compiled files without compilation: how coverage and debugging work."""
    code = (
        TINY_FIT
        + f"""
import scipy.sparse as sp
for solver in ("ocas", "cpa"):
    for kwargs in ({{}}, {{"fit_intercept": False}}, {{"intercept": "penalised"}}):
        model = LinearSVC(solver=solver, tol=1e-4, **kwargs).fit({storage}, y)
        assert model.certificate_.relative_gap <= 1e-4
        assert certify(model, {storage}, y).relative_gap <= 1e-4
wide = rng.standard_normal((8, 30))
assert LinearSVC().fit(wide, y[:8]).certificate_.relative_gap <= 1e-3
"""
    )
    done = python(code, NUMBA_DISABLE_JIT="1")
    assert done.returncode == 0, done.stderr


def test_no_writable_cache_folder_is_not_an_error(tmp_path):
    """A read-only installation without a home folder compiles in every process instead of failing."""
    code = """
    from numba.core import caching
    caching.CacheImpl._locator_classes = []
    from softmargin.core.jit import compiled, compile_seconds
    @compiled
    def twice(x):
        return 2 * x
    before = compile_seconds()
    assert twice(4) == 8
    assert compile_seconds() > before
    """
    done = python(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr


def test_compilation_is_outside_the_time_limit(tmp_path):
    """With an empty cache the first fit compiles for seconds, yet a limit of a second is not reached."""
    code = (
        TINY_FIT
        + """
model = LinearSVC(max_seconds=0.5).fit(X, y)
assert model.status_.name == "OPTIMAL", model.status_
assert model.seconds_["compile"] > 0.1
assert model.trace_["seconds"][-1] < 0.5
"""
    )
    done = python(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert list(Path(tmp_path).rglob("*.nbc"))
