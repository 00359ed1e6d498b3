"""Tuning any machine by cross-validation: a table of scores over C and one or two more parameters, and a choice.

    solve the grid: for each value of the other parameters all C from the smallest to the largest, each from the last
    while the best value lies at the edge of its grid: solve the next values beyond it
    choose the best mean score, or with the rule of one standard error the smoothest model that is as good

Classifiers are solved by the searches of `LinearSVCCV` and `SVCCV`, other machines with a kernel by `score_search`: in
both, folds share one copy of the rows and the kernel values. Linear machines without classes are fitted fold by fold,
with `warm_start` from one C to the next. After Ctrl-C the choice is made among what was found until then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.data.convert import as_rows
from softmargin.estimators import validation
from softmargin.estimators.kernel_choice import gamma_value
from softmargin.estimators.machines.cells import Budget, Cell, Fold, SearchInterrupted
from softmargin.estimators.machines.cells import Task as CellTask
from softmargin.estimators.machines.folds import folds_of
from softmargin.estimators.machines.kernel_search import copied, kernel_cells, takes_weight_zero
from softmargin.estimators.machines.linear_search import linear_cells
from softmargin.estimators.machines.score_search import ScoreTask, score_cells
from softmargin.io.record import MAX_POINTS
from softmargin.metrics import accuracy
from softmargin.metrics.measures import Case
from softmargin.prediction.labels import INSIDE_OR_OUTSIDE, inside_or_outside, labels_from_scores
from softmargin.tasks.records import TASK_NAMED

# Where the best value lies at the edge, so many more values beyond it are solved, a step of the grid apart.
WIDER_BY = 2
# The step up from a grid whose last value but one is 0, which has no ratio to the last one.
FROM_ZERO = 2.0

# A fit for which no time is left still gets as much, because a limit must be positive.
LEAST_SECONDS = 1e-3


@dataclass(frozen=True)
class Data:
    """What is learned from: rows, targets, and if there are some queries and weights of the rows."""

    X: Any
    y: Any
    qid: Any = None
    weights: Any = None


@dataclass
class Table:
    """Scores by the values of the parameters; one score for each fold in which it was found."""

    names: tuple[str, ...]
    n_folds: int
    measure: str
    scores: dict[tuple, list[float]] = field(default_factory=dict)
    gaps: dict[tuple, float] = field(default_factory=dict)
    n_support: dict[tuple, float] = field(default_factory=dict)

    def add(self, point: tuple, score: float, gap: float, n_support: int) -> None:
        self.scores.setdefault(point, []).append(score)
        self.gaps[point] = max(gap, self.gaps.get(point, gap))
        self.n_support[point] = max(n_support, self.n_support.get(point, 0))

    def mean(self, point: tuple) -> float:
        return float(np.mean(self.scores[point]))

    def error(self, point: tuple) -> float:
        """The standard error of the mean over the folds."""
        found = self.scores[point]
        return float(np.std(found, ddof=1) / np.sqrt(len(found))) if len(found) > 1 else 0.0

    def complete(self) -> list[tuple]:
        """Points with the most scores: of all folds, unless there was an interrupt. Smoother models come first."""
        most = max(map(len, self.scores.values()), default=0)
        points = [point for point, found in self.scores.items() if len(found) == most]
        return sorted(points, key=lambda point: _smoothness(dict(zip(self.names, point, strict=True))))

    def best(self) -> tuple:
        """The best mean; of several equally good ones the smoothest."""
        return max(self.complete(), key=self.mean)

    def chosen(self, one_standard_error: bool) -> tuple:
        """The best point, or the smoothest one whose mean is within one standard error of the best."""
        best = self.best()
        least = self.mean(best) - self.error(best) if one_standard_error else self.mean(best)
        return next(point for point in self.complete() if self.mean(point) >= least)

    def stored(self) -> dict[str, Any] | None:
        """The points in short, as a model file holds them; None if it cannot: after an interrupt in the first fold,
        or where they are too many.
        """
        points = self.complete()
        n_folds = len(self.scores[points[0]])
        if n_folds < 2 or len(points) > MAX_POINTS or not np.isfinite([self.mean(point) for point in points]).all():
            return None
        return {
            "measure": self.measure,
            "n_folds": n_folds,
            "params": {name: [float(point[k]) for point in points] for k, name in enumerate(self.names)},
            "score": [self.mean(point) for point in points],
            "standard_error": [self.error(point) for point in points],
            "support_vectors": [float(self.n_support[point]) for point in points],
        }

    def params(self, point: tuple) -> dict[str, float]:
        return dict(zip(self.names, point, strict=True))


def _smoothness(params: dict[str, float]) -> tuple[float, ...]:
    """Ascending: a small gamma, then a small C, then a wide tube make a smooth model."""
    return params.get("gamma", 0.0), params.get("C", 0.0), -params.get("epsilon", 0.0), params.get("nu", 0.0)


@dataclass
class Tuning:
    """A search with the machine `plain` over `grids`, the values of each parameter.

    Folds keep the rows of a query, or of one of the `groups`, together.
    """

    plain: Any
    data: Data
    grids: dict[str, Sequence[float]]
    n_folds: int
    seed: int
    n_rounds: int = 3
    one_standard_error: bool = False
    groups: Any = None

    def __post_init__(self) -> None:
        self.task = TASK_NAMED[type(self.plain).__name__]
        self.is_interrupted = False
        X, y = self.data.X, self.data.y
        self._classes = self._codes = None
        if self.task.word == "classify":
            self._classes, self._codes = validation.class_labels(y)
        elif self.task.target == "nothing" and (y is None or not np.array_equal(np.unique(y), [-1, 1])):
            raise SoftmarginError(
                "a one-class model can only be tuned with labels 1 (usual) and -1 (outlier) to score it by."
            )
        groups, n_rows = self.data.qid if self.groups is None else self.groups, X.shape[0]
        classes = y if self.task.target in ("classes", "nothing") else None
        codes = None if classes is None else np.unique(classes, return_inverse=True)[1].ravel()
        if self.task.target == "nothing":  # outliers are held out only: they are not what is to be learned
            self.folds = _novelty_folds(y, self.n_folds, self.seed, self.data.weights)
        else:
            self.folds = folds_of(n_rows, self.n_folds, self.seed, codes, groups, self.data.weights)
        self.grids = {name: sorted(values) for name, values in self.grids.items()}
        self.table = Table(tuple(self.grids), self.n_folds, MEASURES[self.task.word])

    def run(self) -> dict[str, float]:
        """Search, and return the parameters that were chosen; an interrupt ends the search and is remembered."""
        _, self._stop, *_ = self.plain._limits()
        self._time = Budget(self._stop, 1)
        try:
            self._solve(self.grids)
            for _ in range(self.n_rounds):
                wider = self._beyond_the_edge()
                if not wider or self._time.seconds_left == 0.0:
                    break
                for name, values in wider.items():
                    self._solve({**self.grids, name: values})
                    self.grids[name] = sorted({*self.grids[name], *values})
        except KeyboardInterrupt:
            if not self.table.scores:
                raise
            self.is_interrupted = True
        return self.table.params(self.table.chosen(self.one_standard_error))

    def _beyond_the_edge(self) -> dict[str, list[float]]:
        best = self.table.params(self.table.best())
        wider = {name: self._next_values(name, values, best[name]) for name, values in self.grids.items()}
        return {name: values for name, values in wider.items() if values}

    def _next_values(self, name: str, values: Sequence[float], best: float) -> list[float]:
        """Values beyond the edge of a grid if the best lies there, a step of the grid apart; as many as make sense."""
        if len(values) < 2 or best not in (values[0], values[-1]):
            return []
        if best == values[-1]:
            factor = values[-1] / values[-2] if values[-2] > 0.0 else FROM_ZERO
        else:
            factor = values[0] / values[1]  # 0 stays where it is
        low, high = self._range(name)
        found = {float(np.clip(best * factor**k, low, high)) for k in range(1, WIDER_BY + 1)}
        return sorted(value for value in found if not values[0] <= value <= values[-1])

    def _range(self, name: str) -> tuple[float, float]:
        """Between which values a parameter makes models of their own."""
        if name != "nu":
            return 0.0, np.inf
        # At most a share nu of the rows is left out: with less than one row, none is.
        return 1.0 / min(int(np.count_nonzero(fold.weights)) for fold in self.folds), 1.0

    def _solve(self, grids: Mapping[str, Sequence[float]]) -> None:
        """Every point of these grids, into the table."""
        if self._codes is not None:
            self._solve_cells(grids)
            return
        if self.task.has_kernel and takes_weight_zero(self.plain.solver):
            self._solve_scores(grids)
            return
        path: list[dict[str, float]] = [{"C": C} for C in sorted(grids["C"])] if "C" in grids else [{}]
        others = _combined(grids, ("C",))
        budget = self._budget(len(others) * len(self.folds) * len(path))
        for other in others:
            for fold in self.folds:
                model = copied(self.plain, warm_start=True, **other)
                for at in path:
                    seconds = budget.next()
                    model.set_params(**at, max_seconds=None if seconds is None else max(seconds, LEAST_SECONDS))
                    self._fit(model, fold)
                    n_support = getattr(model, "support_", np.empty(0)).size
                    score = self._score(model, fold.held_out)
                    self.table.add(self._point(other | at), score, model.certificate_.relative_gap, n_support)

    def _budget(self, n_solves: int) -> Budget:
        """The time that is left for so many solves: `max_seconds` is for the whole search."""
        return Budget(replace(self._stop, max_seconds=self._time.seconds_left), n_solves)

    def _point(self, params: Mapping[str, float]) -> tuple:
        return tuple(params[name] for name in self.table.names)

    def _fit(self, model: Any, fold: Fold) -> None:
        more = {} if self.data.qid is None else {"qid": self.data.qid}
        model.fit(self.data.X, self.data.y, sample_weight=fold.weights, **more)

    def _score(self, model: Any, held_out: np.ndarray) -> float:
        X, scores = self.data.X[held_out], None
        if self.task.target in ("classes", "nothing"):
            scores = model.predict_score(X) if hasattr(model, "predict_score") else model.decision_function(X)
        return self._measured(held_out, model.predict(X), scores, getattr(model, "classes_", None))

    def _measured(self, held_out: np.ndarray, predicted: np.ndarray, scores: Any, classes: Any = None) -> float:
        """As `softmargin evaluate` measures it, on rows that the model has not seen."""
        data, name = self.data, self.table.measure
        y = np.asarray(data.y)[held_out]
        qid, weights = (None if part is None else part[held_out] for part in (data.qid, data.weights))
        classes = INSIDE_OR_OUTSIDE if self.task.target == "nothing" else classes
        found = self.task.measures.load()(Case(y, predicted, scores, classes, qid, weights))
        if name not in found:
            raise SoftmarginError(f"the rows that a fold holds out are too few to measure {name}: take fewer folds.")
        return float(found[name])

    def _solve_scores(self, grids: Mapping[str, Sequence[float]]) -> None:
        """Kernel machines that learn numbers, or one class."""
        plain = copied(self.plain)
        X, y = plain._checked(self.data.X, self.data.y)
        weights = validation.row_weights(self.data.weights, X.shape[0])
        Cs = np.array(sorted(grids.get("C", (1.0,))))  # one class has no C, which is then 1
        gammas: Sequence[Any] = grids.get("gamma") or [plain.gamma]
        others = _combined(grids, ("C", "gamma"))
        n_solves = len(self.folds) * Cs.size * len(gammas) * len(others)
        task = ScoreTask(X, y, weights, self.folds, Cs, others, self._budget(n_solves))

        def keep(gamma: float, other: Mapping[str, float], fold: Fold, cells: Sequence[Cell]) -> None:
            for C, cell in zip(Cs.tolist(), cells, strict=False):  # after an interrupt there are fewer cells
                if self.task.target == "nothing":
                    score = self._measured(fold.held_out, inside_or_outside(cell.decisions), cell.decisions)
                else:
                    score = self._measured(fold.held_out, cell.decisions, None)
                point = self._point({"C": C, "gamma": gamma, **other})
                self.table.add(point, score, cell.certificates[0].relative_gap, cell.n_support)

        score_cells(task, plain, gammas, keep)

    def _solve_cells(self, grids: Mapping[str, Sequence[float]]) -> None:
        assert self._classes is not None
        assert self._codes is not None
        Cs = np.array(sorted(grids["C"]))
        X, y = self.data.X, self.data.y
        plain = copied(self.plain)
        checked, _ = self.plain._validated(X, y=y)
        weights = validation.row_weights(self.data.weights, len(y))
        gammas: list[Any] = list(grids.get("gamma", ())) or [getattr(plain, "gamma", None)]
        n_solves = len(self.folds) * Cs.size * len(gammas) * self._n_problems(self._classes.size)
        task = CellTask(checked, self._classes, self._codes, weights, self.folds, Cs, self._budget(n_solves))
        try:
            if self.task.has_kernel:
                cells, values, _ = kernel_cells(task, plain, gammas, 0)
            else:
                cells, values = linear_cells(task, plain, 0), [0.0]  # linear models have no gamma
        except SearchInterrupted as interrupt:
            self._take(interrupt.cells, interrupt.gammas, Cs)
            raise
        self._take(cells, values, Cs)

    def _n_problems(self, n_classes: int) -> int:
        """How many problems there are to solve for one model that tells classes apart."""
        if self.task.has_kernel:
            return n_classes * (n_classes - 1) // 2
        return 1 if n_classes == 2 or self.plain.multi_class != "ovr" else n_classes

    def _take(self, cells: Sequence[Sequence[Sequence[Cell]]], gammas: Sequence[Any], Cs: np.ndarray) -> None:
        assert self._classes is not None
        for fold, of_fold in zip(self.folds, cells, strict=True):
            truth = self.data.y[fold.held_out]
            counts = None if self.data.weights is None else self.data.weights[fold.held_out]
            for gamma, line in zip(gammas, of_fold, strict=False):
                for C, cell in zip(Cs.tolist(), line, strict=False):
                    score = accuracy(truth, labels_from_scores(cell.decisions, self._classes), counts)
                    point = self._point({"C": C, "gamma": gamma})
                    gap = max(part.relative_gap for part in cell.certificates)
                    self.table.add(point, score, gap, cell.n_support)


def _combined(grids: Mapping[str, Sequence[float]], without: Sequence[str]) -> list[dict[str, float]]:
    """All combinations of the values of the other parameters."""
    names = [name for name in grids if name not in without]
    return [dict(zip(names, values, strict=True)) for values in product(*(grids[name] for name in names))]


def scale_gamma(X: Any, weights: Any) -> float:
    """The gamma "scale" of these rows."""
    return gamma_value("scale", as_rows(X), validation.row_weights(weights, X.shape[0]))


def _novelty_folds(y: np.ndarray, n_folds: int, seed: int, weights: Any) -> list[Fold]:
    """Usual rows in training, and both kinds among those that are held out."""
    found = folds_of(y.size, n_folds, seed, (y == 1).astype(int), None, weights)
    return [Fold(np.where(y == 1, fold.weights, 0.0), fold.held_out) for fold in found]


# What is maximised for each kind of task, among its measures.
MEASURES = {
    "classify": "accuracy",
    "regress": "r2",
    "rank": "pairs_correct",
    "ordinal": "accuracy",
    "oneclass": "roc_area",
}
