"""What the linear estimators have in common."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import WeightStart
from softmargin.core.stopping import Stop
from softmargin.core.threads import thread_count
from softmargin.data.rows import Rows
from softmargin.estimators import validation
from softmargin.estimators.base import Estimator, Job, Work
from softmargin.estimators.linear_work import LinearWork
from softmargin.estimators.settings import Setting
from softmargin.problems.intercepts import Intercept, intercept_named
from softmargin.solvers.base import Solver


class Limits(NamedTuple):
    """A solver, when it stops, and how many threads there are."""

    solver: Solver
    stop: Stop
    n_threads: int


class LinearEstimator(Estimator):
    """An estimator with weights of the features, `coef_`."""

    coef_: np.ndarray

    def _limits(self, solver: Solver) -> "Limits":
        """How it is solved and when it stops; checked."""
        rule = getattr(solver, "stopping", "relative_gap")
        stop = validation.stop_rule(self.tol, self.max_iter, self.max_seconds, rule)
        return Limits(solver, stop, thread_count(self.n_jobs))

    def _job(
        self,
        limits: "Limits",
        setting: Setting,
        targets: Sequence[Any],
        *,
        titles: Sequence[str],
        known: dict[str, Any],
        found: Callable[[Rows, list[Any]], dict[str, Any]],
    ) -> Job:
        """The job of these sub-problems."""
        solver, stop, n_threads = limits
        return Job(
            stop,
            n_threads,
            titles,
            known,
            work=lambda rows, workers: LinearWork(solver, setting, rows, targets, stop, n_threads),
            found=found,
        )

    def _model_starts(self, job: Job, work: Work, rows: Rows) -> list[WeightStart] | None:
        return [WeightStart(self.coef_)] if self.coef_.shape == (rows.n_cols,) else None


def chosen_intercept(estimator: Any) -> Intercept:
    """What `fit_intercept`, `intercept` and `intercept_scaling` ask for, checked."""
    if isinstance(estimator.intercept, str) and estimator.intercept == "none":
        raise SoftmarginError("intercept='none' is unknown: use fit_intercept=False for a model without intercept.")
    kind = validation.one_of(estimator.intercept, "intercept", ("free", "penalised"))
    scaling = validation.positive_number(estimator.intercept_scaling, "intercept_scaling")
    if not estimator.fit_intercept and kind == "penalised":
        raise SoftmarginError("fit_intercept=False and intercept='penalised' contradict each other: drop one of them.")
    if scaling != 1.0 and kind != "penalised":
        raise SoftmarginError(
            f"intercept_scaling={scaling:g} is the constant feature of a penalised intercept, which this model has "
            "not: set intercept='penalised', or leave it out."
        )
    return intercept_named(kind if estimator.fit_intercept else "none", scaling)
