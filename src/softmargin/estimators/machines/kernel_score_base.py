"""Kernel machines without classes, which have one expansion over their support vectors: regression and one-class."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from softmargin.core.result import Certificate, DualStart, Result, Solution
from softmargin.core.stopping import is_at_bound
from softmargin.data.rows import Rows
from softmargin.estimators import validation
from softmargin.estimators.kernel_targets import KernelTarget
from softmargin.estimators.machines.base import Job
from softmargin.estimators.machines.kernel_base import KernelMachine
from softmargin.estimators.support_rows import support_rows
from softmargin.solvers.dual_state import at_bounds


class KernelScoreMachine(KernelMachine):
    """A kernel estimator whose problem is one target over the rows of positive weight."""

    # _target(y, index, weights) -> KernelTarget: what is learned from the rows of `index`, which have these weights.
    _target: Callable[..., KernelTarget]

    def _checked(self, X: Any, y: Any, **options: Any) -> tuple[Any, Any]:
        """X and y, checked."""
        raise NotImplementedError

    def _told_apart_by(self, y: Any) -> np.ndarray | None:
        """Numbers that tell equal rows apart: the larger they are, the larger the dual variables. None if none do."""
        return None

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, solver: Any, copy: bool = False) -> Any:
        """What `fit` does with this solver, and the first `partial_fit`."""
        C, stop, n_threads, _ = self._limits()
        X, y = self._checked(X, y, copy=copy)
        base, target = self._posed(X, y, sample_weight)

        def keep(results: list[Result]) -> None:
            self._keep_solved(results, [target], C)
            self._remember_rows(X, y, base, solver)

        job = Job(
            stop,
            n_threads,
            titles=[type(self).__name__],
            known={"shape_fit_": X.shape},
            work=lambda rows, workers: self._work(rows, workers, [target], base, solver),
            found=lambda rows, solutions: self._expansion(rows, y, [target], solutions),
            keep=keep,
        )
        self._run(job, X, y, {"sample_weight": sample_weight})
        return self

    def _posed(self, X: Any, y: Any, sample_weight: Any) -> tuple[np.ndarray, KernelTarget]:
        """The weights of all rows, and what is learned from those of positive weight."""
        base = validation.row_weights(sample_weight, X.shape[0])
        [target] = self._targets_of(y, base)
        validation.finite_scale(validation.positive_number(self.C, "C"), [base])
        return base, target

    def _targets_of(self, y: Any, weights: np.ndarray) -> list[Any]:
        """The one problem of rows with these targets and weights."""
        index = np.flatnonzero(weights > 0)
        return [self._target(y, index, weights[index])]

    def _expansion(
        self,
        rows: Rows,
        y: Any,
        targets: Sequence[KernelTarget],
        solutions: Sequence[Solution | None],
        known: tuple[np.ndarray, Any] | None = None,
    ) -> dict[str, Any]:
        """The fitted attributes that describe the scores, in scikit-learn's shapes.

        `known` are support vectors of the same rows, with their positions.
        """
        [target], [solution] = targets, solutions
        beta = np.zeros(target.index.size) if solution is None else solution.alpha
        used = np.flatnonzero(beta)
        used = used[np.argsort(target.index[used])]
        support = target.index[used].astype(np.int32)
        return {
            "support_": support,
            "support_vectors_": self._support_vectors(rows, support, known),
            "n_support_": np.array([used.size], dtype=np.int32),
            "dual_coef_": beta[None, used],
            "intercept_": np.array([0.0 if solution is None else solution.b]),
        }

    def _keep_solved(self, results: Sequence[Result], targets: Sequence[KernelTarget], C: float) -> None:
        """How many variables are at a bound, and what was counted."""
        [result], [target] = results, targets
        self._keep_counts(results)
        self.n_iter_ = int(self.n_iter_[0])
        beta = result.solution.alpha
        bounded = is_at_bound(beta, C * target.weights)
        self.n_bounded_ = np.array([np.count_nonzero(bounded)], dtype=np.int32)
        self.n_free_ = np.array([np.count_nonzero(beta[~bounded])], dtype=np.int32)

    def _dual_variables(self, n_rows: int, targets: Sequence[KernelTarget]) -> list[np.ndarray]:
        """The dual variables from the fitted attributes, at the bounds where rounding has moved them off.

        Otherwise each of them would be a free variable of the active set, and take a pivot.
        """
        betas = (self._beta(target.index, self.support_, n_rows) for target in targets)
        losses = (target.loss(float(self.C)) for target in targets)
        return [at_bounds(beta, loss.lo, loss.hi) for beta, loss in zip(betas, losses, strict=True)]

    def _beta(self, index: np.ndarray, support: np.ndarray, n_rows: int) -> np.ndarray:
        """The dual variables of the rows of `index`, from the fitted attributes."""
        beta = np.zeros(n_rows)
        beta[support] = self.dual_coef_[0]
        return beta[index]

    def _model_starts(self, job: Job, work: Any, rows: Rows) -> list[Any] | None:
        if self.shape_fit_[0] != rows.n_rows:
            return None
        [target] = work.targets
        return work.at_bounds([DualStart(self._beta(target.index, self.support_, rows.n_rows))])

    def _certified(self, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
        """The certificate of the fitted model on its training data; see `certify`."""
        self._check_fitted()
        X, y = self._checked(X, y, reset=False)
        base, target = self._posed(X, y, sample_weight)
        nobody = np.zeros(X.shape[0], dtype=np.int64)  # all rows are of the same kind
        with self._judging(X) as (rows, judge):
            support = support_rows(self, self.dual_coef_, rows, nobody, base, self._told_apart_by(y))
            beta = self._beta(target.index, support, rows.n_rows)
            return judge(target)(Solution(np.empty(0), float(self.intercept_[0]), beta))

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, for the linear kernel: shape (1, n_features), read-only."""
        self._check_fitted()
        return self._linear_weights(self.dual_coef_.T)

    def _scores(self, X: Any) -> np.ndarray:
        """The expansion of new rows, plus the intercept."""
        return self._decisions(self._problem_scores(X))

    def _problem_scores(self, X: Any) -> np.ndarray:
        self._check_fitted()
        return self._expanded(X, np.ascontiguousarray(self.dual_coef_.T))

    def _decisions(self, scores: np.ndarray) -> np.ndarray:
        return scores.ravel()
