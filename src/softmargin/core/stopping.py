"""When to stop: tolerances and limits, and the rules of the papers by name."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from softmargin.core.errors import SoftmarginError

# Below this share of the problem's scale (for classification C * sum(s), the primal value at w = 0) the primal value
# counts as zero.
NEGLIGIBLE = 1e-12
# A dual variable this close to its bound, as a share of C s_i, counts as lying on it.
AT_BOUND = 1e-9
# A gain that is a smaller share of the terms of the objective cannot be told from rounding.
ROUNDING = 1e-16


@dataclass(frozen=True)
class Measure:
    """What a stop rule looks at.

    `primal` and `dual` are the solver's belief. `scale` is a typical size of the objective, which each problem tells:
    for classification C * sum(s), the primal value at w = 0. `violation` is SVM-perf's: by how much the newest
    constraint exceeds the slack, as mean risk. `kkt` is LIBSVM's: by how much the dual candidate violates its
    optimality conditions. `spent` says that the solver's own budget ends here, whatever was reached (Pegasos, SGD, and
    coordinate descent that hardly gets on).
    `step` is how long the step would be that a solver chose by its gain and did not make (HMG paper, Section 2.3): it
    is infinite as long as the solver goes on, and zero for solvers that choose otherwise. `is_short` says that the
    solve ends there, confirmed or not.
    Unless it is `settled` the solver has not come to the point that it would answer for, and its figures are no claim
    (active set: the partition of the variables is not final).
    """

    primal: float
    dual: float
    scale: float
    violation: float = math.inf
    kkt: float = math.inf
    step: float = 0.0
    is_short: bool = False
    spent: bool = False
    settled: bool = True

    @property
    def gap(self) -> float:
        return self.primal - self.dual


def is_at_bound(alpha: Any, upper: Any) -> Any:
    """Which dual variables, of either sign, are as large as their bound `upper` allows, up to a share AT_BOUND."""
    return abs(alpha) >= (1.0 - AT_BOUND) * upper


def relative_gap(primal: float, dual: float, scale: float) -> float:
    """(P - D) / max(|P|, 1e-12 scale). Where both are zero, because they underflow, any gap is too large."""
    size = max(abs(primal), NEGLIGIBLE * scale)
    if size == 0.0:
        return 0.0 if primal == dual else math.inf
    return (primal - dual) / size


def _relative_gap_rule(measure: Measure) -> float:
    return relative_gap(measure.primal, measure.dual, measure.scale)


def _epsilon_rule(measure: Measure) -> float:
    return measure.violation


def _kkt_rule(measure: Measure) -> float:
    return measure.kkt


def _gain_rule(measure: Measure) -> float:
    return max(measure.step, measure.kkt)


# "relative_gap": BMRM's rule and this library's. "epsilon": SVM-perf, Algorithm 1, line 9; also the rule of the
# tables in the OCAS paper, where (F - F_t) / C <= epsilon with C multiplying the mean risk. "kkt": LIBSVM's, for
# kernels (HMG paper, Section 1.3). "gain": the HMG paper's for steps that are chosen by their gain, confirmed by "kkt".
RULES: dict[str, Callable[[Measure], float]] = {
    "relative_gap": _relative_gap_rule,
    "epsilon": _epsilon_rule,
    "kkt": _kkt_rule,
    "gain": _gain_rule,
}
BY_KKT = ("kkt", "gain")  # rules that optimality conditions prove, without a bound


@dataclass(frozen=True)
class Stop:
    """Limits of one solve. `max_iter` counts the steps of this run; `target` is a primal value to reach."""

    tol: float = 1e-3
    max_iter: int | None = None
    max_seconds: float | None = None
    target: float = -math.inf
    rule: str = "relative_gap"

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise SoftmarginError(f"unknown stop rule {self.rule!r}: choose one of {sorted(RULES)}.")

    def value(self, measure: Measure) -> float:
        """The quantity that is compared with `tol`."""
        return RULES[self.rule](measure)
