"""Kernel SVMs: softmargin's, scikit-learn's (LIBSVM, one thread) and scikit-learn-intelex's (oneDAL, all cores).

All stop at a KKT violation of `TOL`. The last two are given `RIVAL_CACHE_MB` for kernel values. `libsvm_within` runs
LIBSVM in a process of its own, which is ended where it takes too long: LIBSVM cannot be interrupted otherwise.
"""

import logging
import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.datasets.kernel_problems import KernelProblem
from benchmarks.datasets.qp_problems import QPProblem
from benchmarks.kernel_objective import Judgement, dual_value, judge

TOL = 1e-3
RIVAL_CACHE_MB = 1000
MIB = 1 << 20
LIBSVM_LONG = 10.0  # seconds: a fit of LIBSVM that takes longer is not repeated, it is far behind
ACCELERATED = "running accelerated version"
_START_SECONDS = 120.0  # for a process to start and import


@dataclass(frozen=True)
class KernelFit:
    """A trained model (None if the fit was ended before), its problem, and the seconds of the whole `fit`."""

    problem: KernelProblem
    model: Any
    seconds: float
    warnings: tuple[str, ...] = ()

    @cached_property
    def dual(self) -> float:
        """The dual value, by the judge of the benchmarks."""
        p = self.problem
        return dual_value(p.X, p.y, p.C, p.gamma, self.model)

    @cached_property
    def judgement(self) -> Judgement:
        """The dual value and the KKT violation, for all kernels."""
        p = self.problem
        return judge(p.X, p.y, p.C, {"kernel": "rbf"} | _kernel_parameters(p), self.model)

    @property
    def n_support(self) -> int:
        return len(self.model.support_)

    @property
    def n_bounded(self) -> int:
        """Support vectors at C, to a millionth of it."""
        coefficients = abs(self.model.dual_coef_)
        return int((coefficients >= (1.0 - 1e-6) * self.problem.C).sum())


def softmargin(problem: KernelProblem, **parameters: Any) -> KernelFit:
    """Our SVC. A fit that ends early warns; here its status is in the table instead."""
    from softmargin import SVC

    settings: dict[str, Any] = {"stopping": "kkt", "tol": TOL, "n_jobs": 2} | parameters
    return timed(SVC(C=problem.C, **_kernel_parameters(problem), **settings), problem)


def libsvm(problem: KernelProblem, tol: float = TOL) -> KernelFit:
    from sklearn.svm import SVC

    return timed(SVC(C=problem.C, **_kernel_parameters(problem), tol=tol, cache_size=RIVAL_CACHE_MB), problem)


def libsvm_within(problem: KernelProblem, tol: float, max_seconds: float) -> KernelFit:
    """LIBSVM in another process, which touches the memory for its cache first; without a model if it was ended."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_libsvm_apart, args=(theirs, problem, tol), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(_START_SECONDS):
            raise RuntimeError(f"the process of LIBSVM did not start within {_START_SECONDS:g} s")
        ours.recv()
        if not ours.poll(max_seconds):
            return KernelFit(problem, None, max_seconds)
        model, seconds = ours.recv()
        return KernelFit(problem, model, seconds)
    finally:
        process.kill()
        process.join()
        ours.close()


def _libsvm_apart(connection: Any, problem: KernelProblem, tol: float) -> None:
    import sklearn.svm  # noqa: F401

    touch_memory(min(RIVAL_CACHE_MB * MIB, 4 * problem.n_rows**2))
    connection.send("ready")
    fit = libsvm(problem, tol)
    connection.send((fit.model, fit.seconds))


def touch_memory(n_bytes: float) -> None:
    """Take it from the system and free it: what is allocated later finds it in the process.

    If the allocator keeps freed memory (machine.keep_freed_memory).
    """
    np.ones(int(n_bytes), dtype=np.uint8)


def onedal(problem: KernelProblem) -> KernelFit:
    """It hands what it does not support to scikit-learn, which is an error here: that is not what is measured."""
    from sklearnex.svm import SVC  # type: ignore[import-untyped]

    with messages() as said:
        fit = timed(SVC(C=problem.C, gamma=problem.gamma, tol=TOL, cache_size=RIVAL_CACHE_MB), problem)
    check_accelerated(said, "fit")
    return fit


def missing_onedal() -> str | None:
    """Why scikit-learn-intelex cannot be measured, if it cannot."""
    try:
        import sklearnex.svm  # type: ignore[import-untyped]  # noqa: F401
    except ImportError as error:
        return f"scikit-learn-intelex is not installed ({error}): pip install scikit-learn-intelex"
    return None


def note_onedal(machine: dict[str, Any]) -> None:
    """Its version, into the header of a table."""
    name = "scikit-learn-intelex"
    with suppress(PackageNotFoundError):
        machine["versions"][name] = version(name)


RIVALS: dict[str, Callable[[KernelProblem], KernelFit]] = {"oneDAL": onedal, "LIBSVM": libsvm}


def decision_seconds(fit: KernelFit, X: Any) -> float:
    """Seconds of one `decision_function`."""
    with messages() as said:
        began = time.perf_counter()
        fit.model.decision_function(X)
        seconds = time.perf_counter() - began
    if type(fit.model).__module__.startswith("sklearnex"):
        check_accelerated(said, "decision_function")
    return seconds


def alternate(runs: Mapping[str, Callable[[], KernelFit]], rounds: int, long: float) -> dict[str, list[KernelFit]]:
    """Each of `runs` in turn, another one first in each round.

    What took `long` the first time is left at that, LIBSVM after `LIBSVM_LONG`.
    """
    found: dict[str, list[KernelFit]] = {name: [] for name in runs}
    names = list(runs)
    for turn in range(rounds):
        for k in range(len(names)):
            name = names[(turn + k) % len(names)]
            limit = min(long, LIBSVM_LONG) if name == "LIBSVM" else long
            if not found[name] or found[name][0].seconds < limit:
                found[name].append(runs[name]())
    return found


def best_seconds(fits: list[KernelFit]) -> float:
    return min(fit.seconds for fit in fits)


def median_seconds(fits: list[KernelFit]) -> float:
    return median(fit.seconds for fit in fits)


def _kernel_parameters(problem: KernelProblem) -> dict[str, Any]:
    return problem.kernel_parameters if isinstance(problem, QPProblem) else {"gamma": problem.gamma}


def timed(model: Any, problem: KernelProblem) -> KernelFit:
    """The model, fitted to the problem; a fit that ends early warns, and its status is in the table instead."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ConvergenceWarning)
        began = time.perf_counter()
        model.fit(problem.X, problem.y)
        seconds = time.perf_counter() - began
    return KernelFit(problem, model, seconds, tuple(str(one.message) for one in said))


class _Listener(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


@contextmanager
def messages() -> Iterator[list[str]]:
    """What scikit-learn-intelex writes to its log, which it then does not print."""
    logger, listener = logging.getLogger("sklearnex"), _Listener()
    before = logger.handlers, logger.level, logger.propagate
    logger.handlers, logger.propagate = [listener], False
    logger.setLevel(logging.INFO)
    try:
        yield listener.said
    finally:
        logger.handlers, logger.propagate = before[0], before[2]
        logger.setLevel(before[1])


def check_accelerated(said: list[str], method: str) -> None:
    if not any(f"{method}: {ACCELERATED}" in message for message in said):
        raise RuntimeError(f"scikit-learn-intelex did not run {method} itself, its log says: {said}")
