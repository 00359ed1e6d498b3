"""From the parameter `solver` to a solver object: one of the words of `tasks.solvers`, or a configured solver."""

from typing import Any

from softmargin.core.errors import SoftmarginError
from softmargin.core.kinds import PLANES, WHAT_IT_DOES
from softmargin.solvers.base import Solver
from softmargin.tasks.records import TASKS
from softmargin.tasks.solvers import SOLVERS, words_for

_METHODS = ("init", "step", "measure", "counts", "solution", "is_stalled")


def named_solver(solver: Any, needs: tuple[str, ...], auto: str) -> Solver:
    """The solver for problems that serve these needs; `auto` is the word that "auto" stands for."""
    words = words_for(needs)
    if isinstance(solver, str):
        if solver not in words:
            raise SoftmarginError(
                f"solver={solver!r} is unknown: choose one of {_shown(words)}, or give a solver object."
            )
        word = auto if solver == "auto" else solver
        return next(entry.home for entry in SOLVERS if entry.word == word and entry.needs in needs).load()()
    if isinstance(solver, type) or not all(callable(getattr(solver, name, None)) for name in _METHODS):
        raise SoftmarginError(
            f"solver={solver!r} is neither a name ({_shown(words)}) nor a solver object such as "
            f"softmargin.{next(entry.name for entry in SOLVERS if entry.word == auto and entry.needs in needs)}()."
        )
    check_kind(solver, needs)
    return solver


def check_kind(solver: Any, needs: tuple[str, ...]) -> None:
    """Refuse a solver object for problems of another kind; one that does not say its kind adds cutting planes."""
    own = getattr(solver, "needs", PLANES)
    if own not in needs:
        served = [task.name for task in TASKS if own in task.needs]
        estimators = " and ".join(filter(None, [", ".join(served[:-1]), served[-1]]))
        raise SoftmarginError(
            f"solver={solver!r} {WHAT_IT_DOES[own]}, for {estimators}; it cannot solve the problem of this estimator: "
            f"use {_shown(words_for(needs))}."
        )


def _shown(words: tuple[str, ...]) -> str:
    return ", ".join(map(repr, words))
