"""Where rows, linear problems, their judges and a solver meet: one sub-problem or many, over one copy of the rows."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from softmargin.core.errors import Abandoned, SoftmarginError
from softmargin.core.kinds import COORDINATES, PLANES, SINGLE_ROWS, SMOOTH
from softmargin.core.memory import LITTLE_BYTES, free_bytes
from softmargin.core.result import Result, Solution, WeightStart
from softmargin.core.status import Status
from softmargin.core.stopping import NEGLIGIBLE, Stop
from softmargin.core.threads import Cancel, Workers, limit_blas_of_this_thread
from softmargin.core.trace import Clock
from softmargin.data.columns import Columns, Occupied
from softmargin.data.rows import Products
from softmargin.estimators import validation
from softmargin.estimators.machines.base import Observers, fingerprint
from softmargin.estimators.problem_settings import JointTarget, Setting
from softmargin.estimators.solver_choice import named_solver
from softmargin.solvers.automatic import Automatic
from softmargin.solvers.base import Solver, run
from softmargin.solvers.coordinate.coordinate import CoordinateDescent, CoordinateState, n_held_weights
from softmargin.solvers.cutting_plane.cpa import CPA
from softmargin.solvers.cutting_plane.ocas import OCAS
from softmargin.solvers.cutting_plane.state import CuttingPlaneSolver, PlaneState
from softmargin.solvers.newton.newton import Newton, NewtonState
from softmargin.solvers.subgradient.state import SubgradientState
from softmargin.tasks.solvers import words_for

# A training state from a file says how good its best point is. If the rows say something that differs by more than this
# share, the state belongs to other data; rounding alone stays far below.
STATE_SLACK = 0.1


def linear_solver(solver: Any, needs: tuple[str, ...], random_state: Any = None) -> Solver:
    """A solver from its name, or a configured solver.

    "auto" is two solvers where both can solve the problem. One that draws at random without a seed is given one.
    """
    if {COORDINATES, PLANES} <= {*needs} and isinstance(solver, str) and solver == "auto":
        return Automatic(linear_solver("coordinate", needs, random_state), OCAS())
    found: Any = named_solver(solver, needs, auto="ocas" if PLANES in needs else "coordinate")
    if hasattr(found, "seed") and found.seed is None and random_state is not None:
        found = replace(found, seed=validation.seed(random_state))
    return found


def solver_of_squares(solver: Any, loss: str, random_state: Any = None) -> Solver:
    """The solver of squared losses: coordinate descent or Newton's method. Others are refused, and told the loss."""
    others = words_for((PLANES, SINGLE_ROWS))
    own = getattr(solver, "needs", None)
    if solver != "auto" and (own in (PLANES, SINGLE_ROWS) or (isinstance(solver, str) and solver in others)):
        raise SoftmarginError(
            f"solver={solver!r} cannot minimise loss={loss!r}, which is left to coordinate descent and Newton's "
            "method: use solver='auto', 'coordinate' or 'newton', or the loss that is not squared."
        )
    needs = (COORDINATES, SMOOTH)
    if isinstance(solver, str) and solver == "auto":
        return Automatic(linear_solver("coordinate", needs, random_state), Newton())
    return linear_solver(solver, needs, random_state)


def aimed(solver: Any, tol: float) -> Any:
    """The same solver, which knows the tolerance if it asks for it: to look at the gap in time, and to know how much of
    a direction it may return in place of w = 0. Solvers that others derived from ours are left as they are."""
    if isinstance(solver, Automatic):
        return replace(solver, coordinates=aimed(solver.coordinates, tol), planes=aimed(solver.planes, tol))
    return replace(solver, tol=tol) if type(solver) in (CoordinateDescent, OCAS, CPA, Newton) else solver


@dataclass(frozen=True)
class LinearWork:
    """A sub-problem for each of `targets`, which the setting makes problems of. See `base.Work`.

    States among the starts are of the columns that the solver sees, and so are those that results keep.
    """

    solver: Solver
    setting: Setting
    rows: Products
    targets: Sequence[Any]
    stop: Stop
    n_threads: int
    known: ClassVar[dict[str, Any]] = {}
    notes: ClassVar[tuple[str, ...]] = ()

    @property
    def state_type(self) -> type:
        return getattr(self.solver, "state_type", object)

    def fingerprint(self) -> str:
        return fingerprint(self.rows, self.setting.key, [self.setting.parts(target) for target in self.targets])

    def resumed(self, states: Sequence[Any]) -> Sequence[Any]:
        return states

    def solve(
        self,
        starts: Sequence[Any] | None = None,
        cancel: Cancel | None = None,
        observers: Observers = lambda k, candidate: (),
    ) -> list[Result]:
        """Threads go to sub-problems first, then to rows. `stop.max_seconds` is for all of them together. After an
        interrupt every sub-problem ends at its next row block with status INTERRUPTED; the caller raises it again.
        """
        return _solved(self, starts, cancel or Cancel(), observers)

    def remarks(self, results: Sequence[Result]) -> Sequence[str]:
        return ()


def _solved(work: LinearWork, starts: Sequence[Any] | None, cancel: Cancel, observers: Observers) -> list[Result]:
    setting, targets, stop, n_threads = work.setting, work.targets, work.stop, work.n_threads
    solver = aimed(work.solver, stop.tol)
    n_tasks = len(targets)
    n_outer = min(n_threads, n_tasks)
    clock = Clock()
    occupied = Occupied.of(work.rows)
    _check_memory(occupied, sum(target.n_classes if isinstance(target, JointTarget) else 1 for target in targets))
    columns = _columns(occupied.rows, isinstance(solver, CuttingPlaneSolver), stop, clock, cancel)

    def outer(solution: Solution) -> Solution:
        return replace(solution, w=_by_class(columns.outer, solution.w))

    def whole(solution: Solution) -> Solution:
        return replace(solution, w=_by_class(occupied.spread, solution.w))

    def resumed(problem: Any, start: Any) -> Any:
        if isinstance(start, WeightStart):
            return WeightStart(_by_class(lambda w: columns.start(occupied.gather(w)), start.w).ravel())
        if not _fits(problem, start):
            return None
        _check_state(problem, start)
        return setting.resumed(problem, start)

    def solve(k: int) -> Result:
        limit = stop
        if stop.max_seconds is not None:
            rounds = -(-(n_tasks - k) // n_outer)  # sub-problems begin in order
            limit = replace(stop, max_seconds=max(0.0, stop.max_seconds - clock.seconds) / rounds)
        workers = Workers(max(1, n_threads // n_outer))
        problem = setting.problem(columns.inner, targets[k], workers)
        judge = setting.judge(occupied.rows, targets[k], workers, stop.tol)
        try:
            result = run(
                solver,
                problem,
                limit,
                lambda solution: judge(outer(solution)),
                start=None if starts is None else resumed(problem, starts[k]),
                observers=observers(k, lambda state: whole(outer(solver.solution(problem, state)))),
                workers=workers,
                cancel=cancel,
            )
        except BaseException:
            cancel.set()
            raise
        finally:
            workers.close()
        if result.status is Status.INTERRUPTED:
            cancel.set()
        return replace(result, solution=whole(outer(result.solution)))

    if n_outer == 1:
        return [solve(k) for k in range(n_tasks)]
    with ThreadPoolExecutor(n_outer, "softmargin-class", initializer=limit_blas_of_this_thread) as pool:
        futures = [pool.submit(solve, k) for k in range(n_tasks)]
        try:
            return [future.result() for future in futures]
        except KeyboardInterrupt:
            cancel.set()
            return [future.result() for future in futures]


def _by_class(function: Callable[[np.ndarray], np.ndarray], w: np.ndarray) -> np.ndarray:
    """`function` of the weights; of those that have a row for each class, of every row."""
    return function(w) if w.ndim == 1 else np.array([function(own) for own in w])


def _check_memory(occupied: Occupied, n_vectors: int) -> None:
    """Whether there is room for the weights, of columns without entries, too: these are part of the model."""
    needed = n_vectors * occupied.n_cols * np.dtype(np.float64).itemsize
    if needed > LITTLE_BYTES and needed > free_bytes():
        n_used = occupied.n_cols if occupied.used is None else occupied.used.size
        raise SoftmarginError(
            f"the weights of {occupied.n_cols} features need {needed / 2**30:.1f} GiB, which is more than the memory "
            f"that is left, and {n_used} of the features occur. Is the largest index a mistake? If not, number the "
            "features that occur."
        )


def _columns(rows: Products, products_only: bool, stop: Stop, clock: Clock, cancel: Cancel) -> Columns:
    """What the solver sees of the rows; these themselves if a limit or an interrupt comes before that is known."""

    def check() -> None:
        cancel.check()
        if stop.max_seconds is not None and clock.seconds > stop.max_seconds:
            raise Abandoned

    try:
        return Columns.of(rows, products_only, check)
    except Abandoned:
        return Columns(rows, rows)


def _fits(problem: Any, state: Any) -> bool:
    """Whether a state can be one of this problem: one from a file may be of other data than its fingerprint says.

    A state of another kind is its solver's own affair, and no file has brought it.
    """
    match state:
        case PlaneState():
            return state.planes.shape == (problem.n_outputs, problem.n_weights)
        case CoordinateState():
            sizes = state.beta.size, state.best_f.size, state.best.size, state.sweep.w.size
            return sizes == (problem.n_variables, problem.n_outputs, problem.n_weights, n_held_weights(problem))
        case NewtonState():
            return state.is_one_of(problem)
        case SubgradientState():
            return (state.best_f.size, state.w.size) == (problem.n_outputs, problem.n_weights)
    return True


def _check_state(problem: Any, state: Any) -> None:
    """Whether the best point of a state has the outputs and the value that the state says.

    A file may say anything, and a solver believes its state. This costs one product with X.
    """
    share = 0.0  # of C, that the weights of the planes take
    match state:
        case PlaneState():
            w, f = state.planes.weights(problem, state.best), state.best.f
            share = float(np.abs(state.gamma).max(initial=0.0)) / state.C if state.C > 0.0 else math.inf
        case CoordinateState():
            w, f = state.best, state.best_f
            share = 0.0 if state.C > 0.0 and state.is_one_of(problem) else math.inf
        case NewtonState():
            w, f = state.w, state.f
        case SubgradientState():
            w, f = state.best, state.best_f
        case _:
            return
    with np.errstate(over="ignore", invalid="ignore"):
        outputs = problem.outputs(w) if np.isfinite(w).all() else np.full_like(f, np.nan)
        value = 0.5 * float(w @ w) + state.C * problem.risk(f)
        at_zero = state.C * problem.risk(np.zeros_like(f))
        good = (
            state.C > 0.0
            and share <= 1.0 + STATE_SLACK
            and np.abs(outputs - f).max(initial=0.0) <= STATE_SLACK * (1.0 + np.abs(f).max(initial=0.0))
            and abs(value - state.primal)
            <= STATE_SLACK * max(abs(value), abs(at_zero), NEGLIGIBLE * problem.scale)
            < math.inf
        )
    if not good:
        raise SoftmarginError(
            "the training state does not fit these rows: it belongs to other data, or is damaged. Fit with "
            "warm_start=False."
        )
