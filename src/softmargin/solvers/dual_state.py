"""Where a solver of the dual stands: the same for pairs, blocks and the active set, so that one continues what another
began.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import DualStart
from softmargin.problems.box_qp import BoxQP

# A sum of the variables that is off by less, as a share of them, is rounding.
_SUM_ROUNDING = 1e-12
_LAST_DIGITS = 2.0**-50
# Larger outputs are damage; up to here their squares are finite.
_LARGEST_OUTPUT = 1e150


@dataclass(frozen=True)
class DualState:
    """Feasible signed variables beta with f = K beta, and what it took to get there.

    `pair` is the last working set (-1: none yet), which the maximum-gain rules go on from. `scratch` are values that a
    solver may rebuild at any time; they are never saved. `iterations` are rounds of blocks, pair steps or pivots;
    `majors`, `refactorisations`, `degenerate` and `products` (with the matrix of conjugate gradients) are counts of the
    active set. `handed_over` says why one solver left the rest to another, in a sentence; empty if none did.
    """

    beta: np.ndarray
    f: np.ndarray
    iterations: int = 0
    unshrinkings: int = 0
    kernel_evaluations: int = 0
    hits: int = 0
    misses: int = 0
    pair: tuple[int, int] = (-1, -1)
    is_stalled: bool = False
    pair_steps: int = 0
    majors: int = 0
    refactorisations: int = 0
    degenerate: int = 0
    products: int = 0
    scratch: Any = field(default=None, repr=False, compare=False)
    handed_over: str = field(default="", repr=False, compare=False)

    def counts(self) -> dict[str, int]:
        return {
            "iterations": self.iterations,
            "kernel_evaluations": self.kernel_evaluations,
            "hits": self.hits,
            "misses": self.misses,
            "unshrinkings": self.unshrinkings,
            "pair_steps": self.pair_steps,
            "majors": self.majors,
            "refactorisations": self.refactorisations,
            "degenerate": self.degenerate,
            "products": self.products,
        }

    def counted(self, problem: BoxQP) -> "DualState":
        """The same, with what the kernel matrix has counted since the solve began."""
        K = problem.K
        return replace(self, kernel_evaluations=K.n_evaluations, hits=K.hits, misses=K.misses)


def first_state(problem: BoxQP, start: Any = None) -> DualState:
    """The start of the problem, an earlier state of the same problem, or given variables made feasible."""
    n = problem.p.size
    if isinstance(start, DualState):
        beta = repaired(_checked(start.beta, n), problem)
        if np.array_equal(beta, start.beta):
            _check_outputs(start)
            return replace(start, is_stalled=False, handed_over="")
        return DualState(beta, problem.K.product(beta), iterations=start.iterations).counted(problem)
    if isinstance(start, DualStart):
        beta = repaired(at_bounds(_checked(start.beta, n), problem.lo, problem.hi), problem)
        return DualState(beta, problem.K.product(beta)).counted(problem)
    beta, f = problem.start
    state = DualState(beta.copy(), f.copy())
    return state.counted(problem) if beta.any() else state


def at_bounds(beta: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """Variables of a solution, which are rounded so that their sum is exact, at the bounds where they were before."""
    rounding = _LAST_DIGITS * float(np.abs(beta).max(initial=0.0))
    beta = np.where(np.abs(beta - lo) <= rounding, lo, beta)
    return np.where(np.abs(beta - hi) <= rounding, hi, beta)


def _checked(beta: np.ndarray, n: int) -> np.ndarray:
    beta = np.asarray(beta, dtype=np.float64)
    if beta.shape != (n,):
        raise SoftmarginError(
            f"the dual variables to start from have the shape {beta.shape} for {n} rows: start from a fit of the same "
            "rows, in the same order."
        )
    if not np.isfinite(beta).all():
        raise SoftmarginError("the dual variables to start from contain NaN or infinity: start from zero instead.")
    return beta


def _check_outputs(state: DualState) -> None:
    """Whether f can be K beta, as far as that shows without K: a state may come from a file."""
    if state.f.shape != state.beta.shape or not (np.abs(state.f) <= _LARGEST_OUTPUT).all():
        raise SoftmarginError(
            "the training state does not fit these rows: it belongs to other data, or is damaged. Fit with "
            "warm_start=False."
        )


def repaired(beta: np.ndarray, problem: BoxQP) -> np.ndarray:
    """beta clipped to its box; the side that is too heavy is scaled down until the sum is right.

    Where scaling down does not suffice, because the sum is to be larger than it is, all variables with room rise, each
    in proportion to its room.
    """
    beta = np.clip(beta, problem.lo, problem.hi)
    up, down = float(beta[beta > 0].sum()), -float(beta[beta < 0].sum())
    is_up = up - down > problem.total
    heavy, weight = (beta > 0, up) if is_up else (beta < 0, down)
    wanted = max(0.0, down + problem.total if is_up else up - problem.total)
    if weight - wanted > _SUM_ROUNDING * weight:
        beta[heavy] *= wanted / weight
    missing = problem.total - float(beta.sum()) if problem.total else 0.0
    if missing > _SUM_ROUNDING * problem.total:
        room = problem.hi - beta
        beta = np.minimum(beta + room * min(1.0, missing / float(room.sum())), problem.hi)
    return beta
