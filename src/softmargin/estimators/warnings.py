"""The warning of a fit that ended before its goal."""

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning

from softmargin.core.result import Certificate
from softmargin.core.status import Status
from softmargin.core.stopping import BY_KKT, Stop


class ConvergenceWarning(SklearnConvergenceWarning):
    """A fit stopped before `tol`. The message says the gap reached, what it bounds, and what to change."""


def warn_unless_done(estimator: Any, stop: Stop, stacklevel: int) -> None:
    """Once, with what was reached, what it bounds, and what to change; `stacklevel` is the caller's."""
    if estimator.status_.reached_goal or estimator.status_ is Status.STOPPED:
        return
    limits = {
        Status.MAX_ITER: f"raise max_iter (now {stop.max_iter})",
        Status.MAX_SECONDS: f"raise max_seconds (now {stop.max_seconds:g})" if stop.max_seconds else "",
        Status.SMALL_STEP: "lower tol, or leave out strict=False, so that the KKT violation is at most tol",
        Status.BUDGET: "use solver='ocas', which is exact, or give the solver more passes (softmargin.SGD(epochs=100))",
    }
    if getattr(estimator, "solver_", "").startswith("Coordinate"):
        limits[Status.BUDGET] = (
            "scale the features, or lower C, because coordinate descent hardly gets on; solver='ocas' bears more, but "
            "takes no squared loss"
        )
    if estimator.status_ in limits:
        advice = (
            f"To get closer, {limits[estimator.status_]}; warm_start=True and another fit continue from here. Features "
            "on similar scales (StandardScaler, MaxAbsScaler) need fewer iterations."
        )
    else:
        lower = ", or lower C" if "C" in estimator.get_params(deep=False) else ""  # one-class estimators have none
        advice = (
            "Rounding in double precision allows no more: accept this by a larger tol, scale the features "
            f"(StandardScaler, MaxAbsScaler){lower}."
        )
    message = f"{estimator.status_} {_reached(estimator.certificate_, stop)} {advice}"
    warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel + 1)


def _reached(certificate: Certificate, stop: Stop) -> str:
    if stop.rule in BY_KKT:
        return f"The KKT violation is {certificate.kkt_violation:.2g} (tol={stop.tol:g})."
    gap = certificate.relative_gap
    goal = f"tol={stop.tol:g}" if stop.rule == "relative_gap" else f"tol={stop.tol:g} is for the rule {stop.rule!r}"
    return (
        f"The relative duality gap is {gap:.2g} ({goal}): the objective is at most {100 * max(gap, 0.0):.3g} % of its "
        "value above the optimum."
    )
