"""How a solve can end: one member per way, each with its sentence."""

from collections.abc import Iterable
from enum import Enum


class Status(Enum):
    """The way a fit ended. `str(status)` is the sentence, `status.name` the short form."""

    OPTIMAL = "The stop rule is met, and the judge confirmed it from the data."
    TARGET = "The primal value reached the target that was asked for."
    MAX_ITER = "The limit on iterations was reached before tol."
    MAX_SECONDS = "The time limit was reached before tol."
    INTERRUPTED = "The fit was interrupted; the best solution so far was kept."
    STOPPED = "A callback asked the fit to stop; the best solution so far was kept."
    BUDGET = "The solver's own budget of passes over the data was used up before tol."
    SMALL_STEP = "The last step was shorter than tol, which proves nothing; the certificate is what was reached."
    STALLED = "The solver can get no further in double precision; the gap is what it reached."
    UNCONFIRMED = "The judge cannot confirm the stop rule in double precision; the certificate is what is proven."
    STATIONARY = "The point is stationary; the problem is not convex, so there is no dual bound."

    def __str__(self) -> str:
        return self.value

    @property
    def reached_goal(self) -> bool:
        """Whether the fit ended because it had nothing left to do."""
        return self in (Status.OPTIMAL, Status.TARGET, Status.STATIONARY)

    @staticmethod
    def worst(endings: "Iterable[Status]") -> "Status":
        """Of several endings the one that the user must hear of first."""
        return max(endings, key=_FROM_BEST_TO_WORST.index)


_FROM_BEST_TO_WORST = [
    Status.OPTIMAL,
    Status.TARGET,
    Status.STATIONARY,
    Status.STOPPED,
    Status.SMALL_STEP,
    Status.STALLED,
    Status.UNCONFIRMED,
    Status.BUDGET,
    Status.MAX_ITER,
    Status.MAX_SECONDS,
    Status.INTERRUPTED,
]
