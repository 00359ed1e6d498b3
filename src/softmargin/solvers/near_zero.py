"""What to return where w = 0 is good enough: a model that still tells rows apart.

At small C, or with labels that X says nothing about, the value of w = 0 is often within `tol` of the optimum. But w = 0
says the same of every row, although solvers know a direction: the point that belongs to their dual variables. As much
of it as `tol` allows is returned instead. The objective is convex, so that its values between both are at most those on
a straight line.
"""

from typing import Any

import numpy as np

from softmargin.core.stopping import NEGLIGIBLE

# The share of what `tol` leaves that may be used; the rest is for rounding.
USED = 0.5


def share_allowed(
    problem: Any, primal: float, dual: float, tol: float, stopping: str, sq_norm: float, f: np.ndarray
) -> float:
    """How much of a point, given by |w|^2 and its outputs, may be returned in place of w = 0, whose value is `primal`.

    It is 0 where nothing is left of `tol`, or where the value of w = 0 is zero, as in one-class problems that have no
    other answer; and at most 1.
    """
    size = problem.scale if stopping == "epsilon" else abs(primal)
    room = USED * (tol * size - (primal - dual))
    if room <= 0.0 or abs(primal) <= NEGLIGIBLE * problem.scale:
        return 0.0
    rise = 0.5 * sq_norm + problem.C * problem.risk(f) - primal
    return min(1.0, room / rise) if rise > 0.0 else 1.0
