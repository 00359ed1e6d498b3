"""What a solve returns: the solution, how it ended, and the proof."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import fsum, inf, nan, nextafter
from typing import Any

import numpy as np

from softmargin.core.status import Status
from softmargin.core.trace import Trace


@dataclass(frozen=True)
class Solution:
    """A candidate for primal and dual at once: all that the judge needs beside the data."""

    w: np.ndarray
    b: float
    alpha: np.ndarray


@dataclass(frozen=True)
class PlaneSolution(Solution):
    """A candidate whose dual part is a set of weighted cutting planes: alpha has a weight for each, not for each row.

    `points` are the outputs at which the planes were made; what the planes are, the judge finds out from them.
    """

    points: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class WeightStart:
    """A weight vector to start from, when the state of the earlier fit does not apply."""

    w: np.ndarray


@dataclass(frozen=True)
class DualStart:
    """Signed dual variables to start a kernel fit from; they need not be feasible."""

    beta: np.ndarray


@dataclass(frozen=True)
class Certificate:
    """Primal value, dual bound and the gap between them, computed from the data by the judge.

    The optimum and the real objective of the model, without any rounding, lie in [dual, primal]: `gap` bounds how far
    the model is from optimal. `rounding` is the part of the gap that was added for rounding errors (nan if that was not
    recorded). `relative_gap` is ``gap / max(|primal|, 1e-12 C sum(s))``. `kkt_violation` is LIBSVM's stopping quantity
    for the dual candidate; for a ranking it is SVM-perf's.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    kkt_violation: float
    rounding: float = nan

    def __str__(self) -> str:
        return (
            f"primal {self.primal:.10g}, dual bound {self.dual:.10g}, gap {self.gap:.3g} "
            f"(relative {self.relative_gap:.3g}), KKT violation {self.kkt_violation:.3g}"
        )

    @staticmethod
    def combine(parts: "list[Certificate]") -> "Certificate":
        """Several sub-problems as one: sums, and the worst relative gap and KKT violation."""
        if len(parts) == 1:
            return parts[0]
        return Certificate(
            primal=nextafter(_sum(part.primal for part in parts), inf),
            dual=nextafter(_sum(part.dual for part in parts), -inf),
            gap=nextafter(_sum(part.gap for part in parts), inf),
            relative_gap=max(part.relative_gap for part in parts),
            kkt_violation=max(part.kkt_violation for part in parts),
            rounding=_sum(part.rounding for part in parts),
        )


def _sum(numbers: Iterable[float]) -> float:
    """Rounded once; infinite if it is too large, and nan if one of them is."""
    try:
        return fsum(numbers)
    except OverflowError:
        return inf


@dataclass(frozen=True)
class Result:
    """The outcome of `run()`. `state` continues the same solve; `counts` are machine-independent costs.

    `remark` is what the solver has to say about how it went, in a sentence; most have nothing to say.
    """

    solution: Solution
    status: Status
    certificate: Certificate
    counts: dict[str, int]
    trace: Trace
    state: Any = field(repr=False, default=None)
    seconds: dict[str, float] = field(default_factory=dict)
    remark: str = ""
