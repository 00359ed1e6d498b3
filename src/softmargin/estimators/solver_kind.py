"""Whether a solver is one for the problem that an estimator makes."""

from typing import Any

from softmargin.core.errors import SoftmarginError
from softmargin.problems.base import RiskProblem, RowProblem
from softmargin.problems.box_qp import BoxQP

_WHAT_IT_DOES = {
    RiskProblem: "adds cutting planes to a linear problem, for LinearSVC, RankSVM and OrdinalSVC",
    RowProblem: "visits the rows of a linear problem one at a time, for LinearSVC",
    BoxQP: "solves the dual problem of a kernel machine, for SVC",
}


def check_kind(solver: Any, accepted: tuple[type, ...], choices: str) -> None:
    """Refuse a solver object for problems of another kind; one that does not say its kind is a linear one."""
    kind = getattr(solver, "problem_type", RiskProblem)
    if kind not in accepted:
        raise SoftmarginError(
            f"solver={solver!r} {_WHAT_IT_DOES[kind]}; it cannot solve the problem of this estimator: use {choices}."
        )
