"""Compilation: caching, its fallback, and the clock that leaves it out."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

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


def test_everything_runs_as_plain_python():
    """The compiled files without compilation: how coverage and debugging work."""
    code = (
        TINY_FIT
        + """
import scipy.sparse as sp
for Z in (X, np.asfortranarray(X), sp.csr_array(X)):
    for solver in ("ocas", "cpa"):
        for kwargs in ({}, {"fit_intercept": False}, {"intercept": "penalised"}):
            model = LinearSVC(solver=solver, tol=1e-4, **kwargs).fit(Z, y)
            assert model.certificate_.relative_gap <= 1e-4
            assert certify(model, Z, y).relative_gap <= 1e-4
three = np.arange(len(X)) % 3
for Z in (X, sp.csr_array(X)):
    for solver in ("ocas", "coordinate"):
        model = LinearSVC(multi_class="crammer_singer", fit_intercept=False, solver=solver, tol=1e-2).fit(Z, three)
        assert certify(model, Z, three).relative_gap <= 1e-2
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


SOURCE = """
from softmargin.core.jit import compiled
@compiled
def product(x):
    return {factor} * x
"""
# No index of the module `index` can be written, and no machine code of the module `code`.
FULL_DISK = """
import builtins, errno, os
plain = open
def full(name, mode="r", *rest, **more):
    module = os.path.basename(str(name)).split(".")[0]
    if "w" in mode and {"index": ".nbi.tmp", "code": ".nbc.tmp"}.get(module, "none") in str(name):
        raise OSError(errno.ENOSPC, "No space left on device")
    return plain(name, mode, *rest, **more)
builtins.open = full
"""


def cache_hits(folder, modules, factor=2, before=""):
    """Compile a function of each module for two types in a new process; how many of them the cache in `folder` had."""
    code = "import sys\nsys.dont_write_bytecode = True\n" + f"sys.path.insert(0, {str(folder)!r})\n"
    for module in modules:
        source, text = folder / f"{module}.py", SOURCE.format(factor=factor)
        if not source.exists() or source.read_text() != text:  # older versions of Numba go by the time it was written
            source.write_text(text)
        code += f"""
from {module} import product
assert (product(4), product(2.5)) == ({4 * factor}, {2.5 * factor}), (product(4), product(2.5))
print(sum(product.stats.cache_hits.values()))
"""
    done = python(before + code, NUMBA_CACHE_DIR=str(folder / "cache"))
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.split()]


def test_a_damaged_file_in_the_cache_folder_is_not_an_error(tmp_path):
    """The function is compiled again, and the next process finds it again."""
    damages = {
        "cut_short": ("nbi", lambda raw: raw[: len(raw) // 2]),
        "empty": ("nbc", lambda raw: b""),
        "one_bit": ("nbc", lambda raw: raw[:2000] + bytes([raw[2000] ^ 1]) + raw[2001:]),
    }
    assert cache_hits(tmp_path, damages) == [0, 0, 0]
    assert cache_hits(tmp_path, damages) == [2, 2, 2]
    for module, (ending, damage) in damages.items():
        paths = list((tmp_path / "cache").rglob(f"{module}.*.{ending}"))
        assert len(paths) == {"nbi": 1, "nbc": 2}[ending]
        for path in paths:
            path.write_bytes(damage(path.read_bytes()))
    assert cache_hits(tmp_path, damages) == [0, 0, 0]
    assert cache_hits(tmp_path, damages) == [2, 2, 2]


def test_a_cache_of_another_version_with_other_argument_types_is_not_an_error(tmp_path):
    """A class that compiled code takes has a new name: what the old one was compiled for cannot even be read."""
    (tmp_path / "_first.py").write_text(
        "from softmargin.core.jit import compiled\n\n@compiled\ndef first(pair):\n    return pair[0]\n"
    )
    for name in ("Old", "New"):
        (tmp_path / "pairs.py").write_text(
            f"from typing import NamedTuple\n\nclass {name}(NamedTuple):\n    a: float\n    b: float\n"
        )
        code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        code += f"from pairs import {name}\nfrom _first import first\nassert first({name}(1.0, 2.0)) == 1.0\n"
        done = python(code, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
        assert done.returncode == 0, done.stderr


def test_a_full_disk_is_not_an_error_and_leaves_no_wrong_code(tmp_path):
    """The disk is full when the code of a changed source is to be saved: the old code is not found under its name."""
    modules = ["index", "code"]
    assert cache_hits(tmp_path, modules, factor=2) == [0, 0]
    assert cache_hits(tmp_path, modules, factor=33, before=FULL_DISK) == [0, 0]
    assert cache_hits(tmp_path, modules, factor=33) == [0, 0]
    assert cache_hits(tmp_path, modules, factor=33) == [2, 2]


LOADED = """
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, {folder!r})
import numpy as np
from _several import inner, outer
assert outer(np.full(3, 4.0)) == 2.0 + np.log1p(4.0) + 1.5 * 4.0**0.25
try:
    inner(np.zeros(0))
except ValueError as error:
    assert str(error) == "empty"
else:
    raise AssertionError("no error")
found = sum(outer.stats.cache_hits.values())
print(found, "numba.np.arraymath" in sys.modules)

from softmargin.core.jit import compiled
@compiled
def new(x):
    return outer(x) + np.sort(x)[0] + {{1: 2.0}}[1]
assert new(np.full(3, 4.0)) == outer(np.full(3, 4.0)) + 6.0
assert "numba.np.arraymath" in sys.modules
"""
SEVERAL = """
import math
import numpy as np
from softmargin.core.jit import compiled

@compiled
def inner(x):
    if len(x) == 0:
        raise ValueError("empty")
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = math.sqrt(x[i]) + np.log1p(x[i])
    return y

@compiled
def outer(x):
    return inner(x)[0] + 1.5 * x[1] ** 0.25
"""


def test_loading_imports_nothing_that_only_compiling_needs(tmp_path):
    """It allocates, calls other functions, raises, and is called by code that is compiled later."""
    (tmp_path / "_several.py").write_text(SEVERAL)
    told = []
    for _ in range(2):
        done = python(LOADED.format(folder=str(tmp_path)), NUMBA_CACHE_DIR=str(tmp_path / "cache"))
        assert done.returncode == 0, done.stderr
        told.append(done.stdout.split())
    assert told == [["0", "True"], ["1", "False"]]


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
