"""What makes a problem and its judge out of rows and a target: one setting for each kind of problem.

A target is what a sub-problem is to learn: signed weights, classes, ordered pairs, or ranks. The problems are imported
where they are made, because a fit has one kind of them, and importing all would take a good part of a short fit.
"""

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import WeightStart
from softmargin.core.threads import Workers
from softmargin.data.rows import Products
from softmargin.linalg.counting import Pairs
from softmargin.problems.base import Judge
from softmargin.problems.hinge_targets import HingeTarget
from softmargin.problems.intercepts import Intercept
from softmargin.solvers.cutting_plane.state import PlaneState

if TYPE_CHECKING:
    from softmargin.problems.certificate import HingeJudge
    from softmargin.problems.joint import Joint
    from softmargin.problems.joint_certificate import JointJudge
    from softmargin.problems.ordinal import Ordinal
    from softmargin.problems.ordinal_certificate import OrdinalJudge
    from softmargin.problems.ranking import Ranking
    from softmargin.problems.ranking_certificate import RankingJudge


@dataclass(frozen=True)
class LastStep:
    """What a model file keeps of a hint for the line search; the rest follows from the problem."""

    step: float

    @staticmethod
    def of(hint: Any) -> "LastStep":
        return LastStep(hint.step)


class Setting(Protocol):
    """All of a problem but its rows and its target."""

    @property
    def key(self) -> str:
        """Tells it from settings whose planes are others. C is not in it: planes are the same for every C."""
        ...

    def parts(self, target: Any) -> tuple[np.ndarray, ...]:
        """A target as arrays that tell it from others."""
        ...

    def problem(self, rows: Products, target: Any, workers: Workers) -> Any: ...

    def judge(self, rows: Products, target: Any, workers: Workers, tol: float) -> Judge:
        """The judge of a problem, for proofs of the relative gap `tol`."""
        ...

    def resumed(self, problem: Any, state: Any) -> Any:
        """A state of this problem with everything that a file does not keep."""
        ...


@dataclass(frozen=True)
class LinearSetting:
    """A hinge problem; the target says what is learned, or is the signed weights of two classes."""

    C: float
    intercept: Intercept

    @property
    def key(self) -> str:
        return self.intercept.key

    def parts(self, target: HingeTarget | np.ndarray) -> tuple[np.ndarray, ...]:
        if isinstance(target, np.ndarray):
            return (target,)
        return tuple(np.asarray(getattr(target, part.name)) for part in fields(target))  # type: ignore[arg-type]

    def problem(self, rows: Products, target: HingeTarget | np.ndarray, workers: Workers) -> Any:
        from softmargin.problems.hinge import Hinge

        return Hinge(rows.on(workers), target, self.C, self.intercept, workers)

    def judge(self, rows: Products, target: HingeTarget | np.ndarray, workers: Workers, tol: float) -> "HingeJudge":
        from softmargin.problems.certificate import HingeJudge

        return HingeJudge(rows.on(workers), target, self.C, self.intercept, tol)

    def resumed(self, problem: Any, state: Any) -> Any:
        return state

    def start_from(self, w: np.ndarray, b: float) -> WeightStart:
        """A start from weights alone."""
        return WeightStart(self.intercept.joined(w, b))


@dataclass(frozen=True)
class SquaredSetting(LinearSetting):
    """A problem with squared losses; its targets are those of `problems.squared_targets`."""

    @property
    def key(self) -> str:
        return f"squared {self.intercept.key}"

    def problem(self, rows: Products, target: HingeTarget | np.ndarray, workers: Workers) -> Any:
        from softmargin.problems.squared import Squared

        return Squared(rows.on(workers), target, self.C, self.intercept, workers)


@dataclass(frozen=True)
class JointTarget:
    """The numbers of the rows' classes, from 0 on, how many classes there are, and the weights of the rows."""

    codes: np.ndarray
    n_classes: int
    weights: np.ndarray


@dataclass(frozen=True)
class JointSetting:
    """A problem of several classes at once."""

    C: float
    intercept: Intercept

    @property
    def key(self) -> str:
        return f"joint {self.intercept.key}"

    def parts(self, target: JointTarget) -> tuple[np.ndarray, ...]:
        return target.codes, np.array([target.n_classes]), target.weights

    def problem(self, rows: Products, target: JointTarget, workers: Workers) -> "Joint":
        from softmargin.problems.joint import Joint

        given = target.codes, target.weights, target.n_classes, self.C, self.intercept
        return Joint(rows.on(workers), *given, workers)

    def judge(self, rows: Products, target: JointTarget, workers: Workers, tol: float) -> "JointJudge":
        from softmargin.problems.joint_certificate import JointJudge

        given = target.codes, target.weights, target.n_classes, self.C, self.intercept
        return JointJudge(rows.on(workers), *given, tol)

    def resumed(self, problem: "Joint", state: Any) -> Any:
        witnesses = state.planes.witnesses if isinstance(state, PlaneState) else ()
        if any(
            witness.classes.size != problem.n_rows or int(witness.classes.max(initial=0)) >= problem.n_classes
            for witness in witnesses
        ):
            raise SoftmarginError("the training state belongs to other classes: fit with warm_start=False.")
        return state

    def start_from(self, W: np.ndarray, b: np.ndarray) -> WeightStart:
        """A start from weights alone, with a row for each class."""
        return WeightStart(np.array([self.intercept.joined(w, float(b_k)) for w, b_k in zip(W, b, strict=True)]))


@dataclass(frozen=True)
class RankTarget:
    """What is to be put in order, and the pairs that follow from it."""

    y: np.ndarray
    queries: np.ndarray
    weights: np.ndarray
    pairs: Pairs


@dataclass(frozen=True)
class RankSetting:
    """A ranking problem: C multiplies the mean or the sum over the pairs; queries count by their pairs or equally."""

    C: float
    average: bool = True
    equal_queries: bool = False

    @property
    def key(self) -> str:
        return f"ranking {self.average} {self.equal_queries}"

    def target(self, y: np.ndarray, queries: np.ndarray, weights: np.ndarray) -> RankTarget:
        return RankTarget(y, queries, weights, Pairs(y, queries, weights, per_query=self.equal_queries))

    def parts(self, target: RankTarget) -> tuple[np.ndarray, ...]:
        return target.y, target.queries, target.weights

    def problem(self, rows: Products, target: RankTarget, workers: Workers) -> "Ranking":
        from softmargin.problems.ranking import Ranking

        return Ranking(rows.on(workers), target.pairs, self.C, self.average, workers)

    def judge(self, rows: Products, target: RankTarget, workers: Workers, tol: float) -> "RankingJudge":
        from softmargin.problems.ranking_certificate import RankingJudge

        return RankingJudge(rows.on(workers), target.pairs, self.C, self.average, workers, tol)

    def resumed(self, problem: "Ranking", state: Any) -> Any:
        step = _last_step(state)
        if step is None:
            return state
        from softmargin.problems.ranking import Known

        f = state.best.f
        net, _ = problem.pairs.count(problem.pairs.take(f), workers=problem.workers)
        return _with_hint(state, Known(problem.risk(f), net, step))


@dataclass(frozen=True)
class OrdinalTarget:
    """Ranks 0, 1, ... without gaps, and the weights of the rows."""

    ranks: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class OrdinalSetting:
    """A problem with thresholds."""

    C: float
    margins: str

    @property
    def key(self) -> str:
        return f"ordinal {self.margins}"

    def parts(self, target: OrdinalTarget) -> tuple[np.ndarray, ...]:
        return target.ranks, target.weights

    def problem(self, rows: Products, target: OrdinalTarget, workers: Workers) -> "Ordinal":
        from softmargin.problems.ordinal import Ordinal

        return Ordinal(rows.on(workers), target.ranks, target.weights, self.C, self.margins, workers)

    def judge(self, rows: Products, target: OrdinalTarget, workers: Workers, tol: float) -> "OrdinalJudge":
        from softmargin.problems.ordinal_certificate import OrdinalJudge

        return OrdinalJudge(rows.on(workers), target.ranks, target.weights, self.C, self.margins, tol)

    def resumed(self, problem: "Ordinal", state: Any) -> Any:
        witnesses = state.planes.witnesses if isinstance(state, PlaneState) else ()
        if any(witness.rows.size != problem.n_thresholds for witness in witnesses):
            raise SoftmarginError("the training state belongs to other classes: fit with warm_start=False.")
        step = _last_step(state)
        if step is None:
            return state
        return _with_hint(state, _OrdinalHint(problem.best_thresholds(state.best.f), step))


@dataclass(frozen=True)
class _OrdinalHint:
    """What the line search of `Ordinal` begins with."""

    theta: np.ndarray
    step: float


def _last_step(state: Any) -> float | None:
    """None if the state does not come from a file."""
    hint = state.best.hint if isinstance(state, PlaneState) else None
    return hint.step if isinstance(hint, LastStep) else None


def _with_hint(state: PlaneState, hint: Any) -> PlaneState:
    return replace(state, best=replace(state.best, hint=hint))
