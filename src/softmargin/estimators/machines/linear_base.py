"""What the linear machines have in common: from what they are to learn to a job, and to a certificate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Certificate, Result, Solution, WeightStart
from softmargin.core.stopping import Stop
from softmargin.core.threads import Workers, one_blas_thread, thread_count
from softmargin.data.convert import as_products, column_names, is_storage, with_targets
from softmargin.data.rows import Products
from softmargin.estimators import validation
from softmargin.estimators.linear_work import LinearWork
from softmargin.estimators.machines.base import Job, Machine, Work
from softmargin.estimators.problem_settings import Setting
from softmargin.problems.intercepts import Intercept, intercept_named
from softmargin.solvers.base import Solver

# A model of another library has no dual vector to prove a bound with. `certify` then solves the problem itself, to this
# relative gap and with this limit, and judges the model with the dual vector that it found.
WITNESS_TOL = 1e-6
WITNESS_MAX_ITER = 5000


class Limits(NamedTuple):
    """A solver, when it stops, and how many threads there are."""

    solver: Solver
    stop: Stop
    n_threads: int


@dataclass(frozen=True)
class Posed:
    """What is to be learned, as sub-problems: `setting` makes a problem and its judge of each of the `targets`.

    `found` turns solutions into fitted attributes (None stands for a solution that is not there yet), and `stored`
    turns the fitted attributes back into solutions, with zeros if the model has no dual vectors. `titles` and `known`
    are those of `base.Job`.
    """

    setting: Setting
    targets: Sequence[Any]
    titles: Sequence[str]
    known: dict[str, Any]
    found: Callable[[Products, list[Any]], dict[str, Any]]
    stored: Callable[[Products], list[Solution]]


class LinearMachine(Machine):
    """An estimator with weights of the features, `coef_`."""

    solver: Any
    coef_: np.ndarray
    intercept_: np.ndarray
    # _posed(setting, X, y, ...) -> Posed: the sub-problems of these rows and targets, with sample weights and whatever
    # else `fit` takes.
    _posed: Any

    def _solver(self) -> Solver:
        """What the parameter `solver` asks for, checked."""
        raise NotImplementedError

    def _setting(self) -> Setting:
        """C and whatever else the parameters say about the problem, checked."""
        raise NotImplementedError

    def _limits(self) -> Limits:
        """How it is solved and when it stops; checked."""
        solver = self._solver()
        rule = getattr(solver, "stopping", "relative_gap")
        stop = validation.stop_rule(self.tol, self.max_iter, self.max_seconds, rule)
        return Limits(solver, stop, thread_count(self.n_jobs))

    def _validated(self, X: Any, y: Any, **options: Any) -> Any:
        """X and y, checked as in scikit-learn; a storage of the user's own keeps its contract by itself."""
        if is_storage(X):
            return X, self._checked_beside(X, y, **options)
        return self._matrix(X, y, **options)

    def _checked_beside(self, rows: Products, y: Any, *, reset: bool = True) -> np.ndarray:
        """y, checked beside a storage, whose number of columns is that of the model from now on, or was before."""
        if reset:
            self.n_features_in_ = rows.n_cols
            self.__dict__.pop("feature_names_in_", None)
            if (names := column_names(rows)) is not None:
                self.feature_names_in_ = np.array(names, dtype=object)
        else:
            self._check_columns(rows)
        if y is None:
            raise SoftmarginError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None, and X does "
                "not bring it."
            )
        return self._checked_targets(y, rows.n_rows)

    def _check_columns(self, rows: Products) -> None:
        """Whether a storage has the columns of the model."""
        if rows.n_cols != self.n_features_in_:
            raise SoftmarginError(f"X has {rows.n_cols} features, but the model was trained on {self.n_features_in_}.")
        names, known = column_names(rows), getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and names != known.tolist():
            k = next(k for k, (name, own) in enumerate(zip(names, known, strict=True)) if name != own)
            raise SoftmarginError(
                f"column {k} of X is called {names[k]!r}, but the model was trained with {known[k]!r} there."
            )

    def _rows(self, X: Any, workers: Workers) -> Products:
        return as_products(X, workers)

    def _to_predict(self, X: Any) -> Any:
        if not is_storage(X):
            return super()._to_predict(X)
        self._check_fitted()
        self._check_columns(X)
        return X

    def _fit(self, X: Any, y: Any, metadata: dict[str, Any], **more: Any) -> Any:
        """What `fit` does: `metadata` is what it takes beside X and y."""
        setting = self._setting()
        solver, stop, n_threads = self._limits()
        y, metadata = with_targets(X, y, metadata)
        X, y = self._validated(X, y)
        posed = self._posed(setting, X, y, **metadata, **more)
        job = Job(
            stop,
            n_threads,
            posed.titles,
            posed.known,
            work=lambda rows, workers: LinearWork(solver, posed.setting, rows, posed.targets, stop, n_threads),
            found=posed.found,
            keep=lambda results: setattr(self, "solver_", told(self.solver, solver, results)),
        )
        self._run(job, X, y, metadata)
        return self

    def _model_starts(self, job: Job, work: Work, rows: Products) -> list[WeightStart] | None:
        return [WeightStart(self.coef_)] if self.coef_.shape == (rows.n_cols,) else None

    def _certified(self, X: Any, y: Any, **more: Any) -> Certificate:
        """The certificate of the fitted model on its training data; see `certify`."""
        self._check_fitted()
        y, more = with_targets(X, y, more)
        X, y = self._validated(X, y, reset=False)
        posed = self._posed(self._setting(), X, y, **more)
        check_same_classes(self, posed.known)
        with one_blas_thread():
            rows = as_products(X, Workers(1))
            judges = [posed.setting.judge(rows, target, Workers(1), WITNESS_TOL) for target in posed.targets]
            models = posed.stored(rows)
            found = [judge(model) for judge, model in zip(judges, models, strict=True)]
            if not any(np.any(model.alpha) for model in models):
                witnesses = self._witnesses(posed, rows, found)
                found = [
                    judge(replace(witness, w=model.w, b=model.b))
                    for judge, witness, model in zip(judges, witnesses, models, strict=True)
                ]
        return Certificate.combine(found)

    def _witnesses(self, posed: Posed, rows: Products, found: list[Certificate]) -> list[Solution]:
        """Solutions whose bounds are as good for models of these values as the models' own were, if that is known.

        The bounds are judged independently of how they were found.
        """
        before = getattr(self, "certificate_", None)
        gap = inf if before is None or not isfinite(before.relative_gap) else before.relative_gap
        wanted = [part.primal - gap * abs(part.primal) if isfinite(gap) else inf for part in found]
        stop = Stop(tol=WITNESS_TOL, max_iter=WITNESS_MAX_ITER)
        work = LinearWork(self._solver(), posed.setting, rows, posed.targets, stop, thread_count(self.n_jobs))
        results = work.solve(observers=lambda k, candidate: [lambda record, state: record.dual >= wanted[k]])
        return [result.solution for result in results]


def told(asked_for: Any, solver: Solver, results: Sequence[Result]) -> str:
    """Which solver it was, and why, in a sentence or more if sub-problems differ."""
    remarks = dict.fromkeys(result.remark for result in results if result.remark)
    reason = "the one for such problems" if isinstance(asked_for, str) and asked_for == "auto" else "as asked for"
    return " ".join(remarks) or f"{type(solver).__name__}, {reason}."


def check_same_classes(estimator: Any, known: dict[str, Any]) -> None:
    """Whether the data have the classes of the model, if there are classes."""
    classes = known.get("classes_")
    if classes is not None and not np.array_equal(classes, estimator.classes_):
        raise SoftmarginError(
            f"y has the classes {classes.tolist()}, the model {estimator.classes_.tolist()}: certify a model on the "
            "data it was trained on."
        )


def chosen_intercept(estimator: Any) -> Intercept:
    """What `fit_intercept`, `intercept` and `intercept_scaling` ask for, checked."""
    if isinstance(estimator.intercept, str) and estimator.intercept == "none":
        raise SoftmarginError("intercept='none' is unknown: use fit_intercept=False for a model without intercept.")
    kind = validation.one_of(estimator.intercept, "intercept", ("free", "penalised"))
    scaling = validation.positive_number(estimator.intercept_scaling, "intercept_scaling")
    if not estimator.fit_intercept and kind == "penalised":
        raise SoftmarginError("fit_intercept=False and intercept='penalised' contradict each other: drop one of them.")
    if scaling != 1.0 and kind != "penalised":
        raise SoftmarginError(
            f"intercept_scaling={scaling:g} is the constant feature of a penalised intercept, which this model has "
            "not: set intercept='penalised', or leave it out."
        )
    return intercept_named(kind if estimator.fit_intercept else "none", scaling)
