"""What the exact judge says of one fit: refused, certified, or wrong, and why."""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from exact.objective import tasks_and_values
from exact.problems import Problem
from softmargin.core.errors import SoftmarginError
from softmargin.estimators.warnings import ConvergenceWarning

_STORED = ("coef_", "intercept_", "dual_coef_", "thresholds_")


@dataclass(frozen=True)
class Verdict:
    """How the fit of a problem ended (a status, or "REFUSED"), and what is wrong with it."""

    problem: Problem
    ending: str
    faults: tuple[str, ...] = ()

    @property
    def is_certified(self) -> bool:
        return self.ending == "OPTIMAL"

    def __str__(self) -> str:
        return "\n".join([*self.faults, f"# problem {self.problem.number} ({self.ending})", str(self.problem), ""])


def judge(problem: Problem, fit: Callable[[Problem], Any] = Problem.fit) -> Verdict:
    """Fit the problem, and hold the certificate against exact arithmetic. Any other warning than those
    of a fit that ends early, or of rows around the origin, is a fault.

    `fit` may take another road to the model; it returns the model, or the model and a certificate of all its parts.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "the optimum is w = 0", UserWarning)
        try:
            found = fit(problem)
        except SoftmarginError:
            return Verdict(problem, "REFUSED")
        except Exception as error:
            return Verdict(problem, "FAILED", (f"fit raised {type(error).__name__}: {error}",))
    model, *certificates = found if isinstance(found, tuple) else (found,)
    faults = [*faults_of(problem, model)]
    for certificate in certificates:
        faults += [f"another certificate: {fault}" for fault in _whole(certificate, problem, model)]
    return Verdict(problem, model.status_.name, tuple(faults))


def faults_of(problem: Problem, model: Any) -> Iterator[str]:
    """What is wrong with a fitted model: a value that is no number, or a certificate that is not true."""
    for name in _STORED:
        if name in vars(model) and not np.isfinite(getattr(model, name)).all():
            yield f"{name} holds values that are no finite numbers: {getattr(model, name)!r}"
            return
    for certificate in [*model.certificates_, model.certificate_]:
        if math.isnan(certificate.primal) or math.isnan(certificate.dual) or math.isnan(certificate.gap):
            yield f"the certificate holds NaN: {certificate}"
            return
    for certificate, (task, value) in zip(model.certificates_, tasks_and_values(problem, model), strict=True):
        yield from _violations(certificate, value.lower, task.optimum.upper)
        if task.optimum.upper - task.optimum.lower > Fraction(1, 10**25) * abs(task.optimum.upper):
            yield f"the exact judge found no optimum: {float(task.optimum.lower)!r} .. {float(task.optimum.upper)!r}"
    if len(model.certificates_) > 1:
        yield from _whole(model.certificate_, problem, model)
    claimed = "kkt_violation" if problem.parameters.get("stopping") == "kkt" else "relative_gap"
    if model.status_.name == "OPTIMAL" and not getattr(model.certificate_, claimed) <= model.tol:
        yield f"OPTIMAL, but {claimed}={getattr(model.certificate_, claimed)!r} exceeds tol={model.tol}"


def _whole(certificate: Any, problem: Problem, model: Any) -> Iterator[str]:
    """What is wrong with a certificate for all sub-problems together."""
    tasks = [*tasks_and_values(problem, model)]
    yield from _violations(
        certificate, sum(value.lower for _, value in tasks), sum(task.optimum.upper for task, _ in tasks)
    )


def _violations(certificate: Any, primal: Fraction, optimum: Fraction) -> Iterator[str]:
    """The primal value must not lie below the model's exact objective, nor the bound above the exact optimum."""
    if certificate.primal < primal:
        yield f"primal {certificate.primal!r} is below the exact objective {_shown(primal, certificate.primal)}"
    if certificate.dual > optimum:
        yield f"dual {certificate.dual!r} is above the exact optimum {_shown(optimum, certificate.dual)}"
    if certificate.gap < 0 or (math.isfinite(certificate.gap) and certificate.gap < primal - optimum):
        yield f"gap {certificate.gap!r} is below the exact gap {_shown(primal - optimum, certificate.gap)}"


def _shown(exact: Fraction, claimed: float) -> str:
    try:
        value = repr(float(exact))
    except OverflowError:
        value = "beyond the range of float64"
    if not math.isfinite(claimed) or exact == 0:
        return value
    share = abs(Fraction(claimed) - exact) / abs(exact)
    return f"{value} (relative error {float(share) if share < 10**300 else math.inf:.2g})"
