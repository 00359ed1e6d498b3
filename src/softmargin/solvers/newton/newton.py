"""Newton's method for linear machines with squared losses, which are smooth: for few features.

    P(w, b) = 1/2 |w|^2 + C sum_i s_i loss_i(w.x_i + b)^2
    beta_i  = -C s_i d/du loss_i^2                          the dual variables that belong to (w, b)
    g       = w - X'beta,   and sum(beta) = 0 at the best b
    H       = I + X'D X,    D_i = 2 C s_i where row i has a loss, and 0 elsewhere

    repeat:
        (d, .) = the solution of H (d, .) = -(g, 0), with a row and column of H for b if that is free
        w += k d, with the k >= 0 that is best together with b

The duality gap of w and beta is 1/2 |g|^2. P is piecewise quadratic, so that the method ends after finitely many steps,
nearly always 5 to 20, once no row changes sides any more. H is kept: only rows that have changed sides are added to it
or taken off.

References: O. L. Mangasarian, A Finite Newton Method for Classification, Optimization Methods and Software 17, 2002.
S. S. Keerthi, D. DeCoste, A Modified Finite Newton Method for Fast Solution of Large Scale Linear SVMs, JMLR 6, 2005.
Departs from both: a matrix in place of least squares by conjugate gradients, and the exact best step.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from softmargin.core.kinds import SMOOTH
from softmargin.core.result import Solution, WeightStart
from softmargin.core.stopping import Measure
from softmargin.problems.base import SmoothProblem
from softmargin.solvers.near_zero import share_allowed

# Entries of the rows that are made dense at a time.
BLOCK_ENTRIES = 1 << 19
# Rows are sparse if they have less than this share of entries; then so many are taken at a time.
SPARSE, SPARSE_ROWS = 0.2, 1 << 14
# Blocks whose matrices are held at the same time.
BLOCKS_AT_ONCE = 8
# The solve has stalled if the objective did not fall by this share in so many steps in a row.
STALL_STEPS, LEAST_PROGRESS = 3, 1e-15


@dataclass(frozen=True)
class NewtonState:
    """A solve between two steps, at the weights w with their outputs f.

    `beta` are the dual variables of w, `slope` is w - X'beta. `matrix` is X'D X, with a last row and column for an
    intercept, and `curved` is D, as of the last step; both are empty before the first one.
    """

    w: np.ndarray
    f: np.ndarray
    beta: np.ndarray
    slope: np.ndarray
    primal: float
    dual: float
    C: float
    matrix: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    curved: np.ndarray = field(default_factory=lambda: np.zeros(0))
    iterations: int = 0
    passes: int = 0
    idle: int = 0

    def is_one_of(self, problem: SmoothProblem) -> bool:
        """Whether it can be a state of this problem: one from a file may say anything."""
        size = _size(problem)
        sizes = (self.w.size, self.slope.size, self.f.size, self.beta.size)
        if sizes != (problem.n_weights, problem.n_weights, problem.n_outputs, problem.n_rows):
            return False
        return (self.matrix.shape, self.curved.size) in (((size, size), problem.n_rows), ((0, 0), 0))


@dataclass(frozen=True)
class Newton:
    """Newton's method for squared losses and few features.

    Parameters
    ----------
    stopping : "relative_gap" or "epsilon"
        What `tol` is compared with: (P - D) / P, or (P - D) / (C sum(s)).
    tol : float
        What the loop is going to ask for. It only tells how much of a direction may be returned in place of w = 0.
    """

    stopping: str = "relative_gap"
    tol: float = 0.0
    needs: ClassVar[str] = SMOOTH
    state_type: ClassVar[type] = NewtonState

    def init(self, problem: SmoothProblem, start: Any = None) -> NewtonState:
        """Continues a state of the same C; other states and bare weights are first points."""
        if isinstance(start, NewtonState):
            if start.C == problem.C:
                return replace(start, idle=0)
            start = WeightStart(start.w)
        if isinstance(start, WeightStart):
            return _at(problem, start.w, problem.outputs(start.w), passes=1)
        return _at(problem, np.zeros(problem.n_weights), np.zeros(problem.n_outputs))

    def step(self, problem: SmoothProblem, state: NewtonState) -> NewtonState:
        matrix, curved = _matrix(problem, state)
        if not np.isfinite(matrix).all():  # features whose squares are no numbers
            return replace(state, iterations=state.iterations + 1, idle=STALL_STEPS)
        line = -_solved(matrix, state.slope)
        df = problem.outputs(line)
        k = problem.minimise_along(state.f, df, float(line @ line), float(state.w @ line)).k
        after = _at(problem, state.w + k * line, state.f + k * df, passes=state.passes + 3)
        has_moved = after.primal < state.primal - LEAST_PROGRESS * abs(state.primal)
        if not after.primal <= state.primal:
            after = replace(state, passes=after.passes)
        return replace(
            after,
            matrix=matrix,
            curved=curved,
            iterations=state.iterations + 1,
            idle=0 if has_moved else state.idle + 1,
        )

    def measure(self, problem: SmoothProblem, state: NewtonState) -> Measure:
        violation = (state.primal - state.dual) / problem.scale if problem.scale > 0 else 0.0
        return Measure(state.primal, state.dual, problem.scale, violation)

    def counts(self, state: NewtonState) -> dict[str, int]:
        return {"iterations": state.iterations, "passes": state.passes}

    def solution(self, problem: SmoothProblem, state: NewtonState) -> Solution:
        """The point, or as much of X'beta as `tol` allows if that is w = 0."""
        w, f = state.w, state.f
        if not w.any() and state.slope.any():
            outputs = problem.outputs(-state.slope)
            sq_norm = float(state.slope @ state.slope)
            share = share_allowed(problem, state.primal, state.dual, self.tol, self.stopping, sq_norm, outputs)
            w, f = -share * state.slope, share * outputs
        return problem.solution_of(w, f, state.beta)

    def is_stalled(self, state: NewtonState) -> bool:
        return state.idle >= STALL_STEPS or not np.isfinite(state.w).all()


def _at(problem: SmoothProblem, w: np.ndarray, f: np.ndarray, passes: int = 0) -> NewtonState:
    """The state at w: objective, dual variables and slope."""
    given = problem.coordinates
    u = f[: problem.n_rows] + problem.best_intercept(f)
    beta = np.where(given.hi > 0.0, np.maximum(given.target - given.epsilon - u, 0.0), 0.0)
    beta -= np.where(given.lo < 0.0, np.maximum(u - given.target - given.epsilon, 0.0), 0.0)
    beta /= given.ridge
    slope = w - problem.intercept.extended(problem.rows.t_dot(beta), float(beta.sum()))
    primal = 0.5 * float(w @ w) + problem.C * problem.risk(f)
    dual = primal - 0.5 * float(slope @ slope)
    return NewtonState(w, f, beta, slope, primal, dual, problem.C, passes=passes)


def _size(problem: SmoothProblem) -> int:
    """Of the matrix: the columns, and any intercept."""
    return problem.rows.n_cols + (1 if problem.intercept.is_free or problem.intercept.feature else 0)


def _matrix(problem: SmoothProblem, state: NewtonState) -> tuple[np.ndarray, np.ndarray]:
    """X'D X at the state, from that of the last step and the rows that have changed sides since, and D."""
    curved = np.where(state.beta != 0.0, 1.0 / problem.coordinates.ridge, 0.0)
    size = _size(problem)
    before, matrix = state.curved, state.matrix
    if before.size:
        n_changed = np.count_nonzero(curved != before)
    if not before.size or 2 * n_changed > np.count_nonzero(curved):
        before, matrix = np.zeros(curved.size), np.zeros((size, size))
    changed = np.flatnonzero(curved != before)
    factors, constant, flat = curved - before, problem.intercept.feature or 1.0, problem.rows.flat
    is_sparse = flat.indptr.size > 0 and flat.values.size < SPARSE * flat.n_rows * flat.n_cols

    def dense(index: np.ndarray) -> np.ndarray:
        rows = np.empty((index.size, size))
        rows[:, : flat.n_cols] = problem.rows.densified(index, np.float64)
        rows[:, flat.n_cols :] = constant
        return rows.T @ (rows * factors[index, None])

    def sparse(index: np.ndarray) -> np.ndarray:
        from softmargin.solvers.newton import _products

        lower = np.zeros((size, size))
        _products.add_products(flat, index, factors[index], constant, lower)
        return lower + np.tril(lower, -1).T

    n_rows = SPARSE_ROWS if is_sparse else max(1, BLOCK_ENTRIES // size)
    blocks = [(changed[begin : begin + n_rows],) for begin in range(0, changed.size, n_rows)]
    matrix = matrix.copy()
    for begin in range(0, len(blocks), BLOCKS_AT_ONCE):
        for part in problem.workers.map(sparse if is_sparse else dense, blocks[begin : begin + BLOCKS_AT_ONCE]):
            matrix += part
    return matrix, curved


def _solved(matrix: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """d of H (d, .) = (slope, 0), where H is the matrix and 1 on the diagonal of the weights."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    size = len(matrix)
    whole = matrix.copy()
    whole[np.arange(slope.size), np.arange(slope.size)] += 1.0
    diagonal = np.diagonal(whole).copy()
    diagonal[diagonal <= 0.0] = 1.0  # a free intercept, and no row with a loss
    scale = 1.0 / np.sqrt(diagonal)
    whole *= scale[:, None] * scale
    right = np.zeros(size)
    right[: slope.size] = slope
    ridge = 0.0
    while ridge < 1.0:
        whole[np.arange(size), np.arange(size)] = 1.0 + ridge
        try:
            return (scale * cho_solve(cho_factor(whole, lower=True), scale * right))[: slope.size]
        except LinAlgError:  # rounding: a little more than nothing on the diagonal
            ridge = max(4.0 * ridge, 1e-15 * size)
    return slope
