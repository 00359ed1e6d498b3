"""Learning and unlearning rows, and leaving each out, by the active set from a trained state: `SVC` and `SVR`."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from softmargin.core.errors import Abandoned, SoftmarginError
from softmargin.core.result import Result, Solution
from softmargin.core.threads import Cancel, one_blas_thread
from softmargin.data.convert import as_rows
from softmargin.estimators import validation
from softmargin.estimators.incremental_fit import IncrementalFit
from softmargin.estimators.kernel_choice import in_range, kernel_of
from softmargin.estimators.kernel_targets import ChangingTarget
from softmargin.estimators.kernel_work import KernelSetting, handed_over
from softmargin.estimators.machines.keeping import KeepsTraining
from softmargin.estimators.training_rows import TrainingRows
from softmargin.estimators.warnings import warn_unless_done
from softmargin.solvers.active_set.active_set import ActiveSet

_NO_ROWS = (
    "this model does not keep the rows it was trained on, which this needs: fit with solver='active_set' or "
    "warm_start=True, or begin with partial_fit; save with include_training_state=True."
)


def _has_data(estimator: Any) -> bool:
    if estimator._is_precomputed:
        raise AttributeError(
            "rows cannot be added or removed with kernel='precomputed', where data are not known: fit on the new "
            "kernel matrix with solver='active_set', or use another kernel."
        )
    return True


def can_learn(estimator: Any) -> bool:
    """Whether there is a `partial_fit`; if not, the error says why."""
    if hasattr(estimator, "dual_coef_") and not hasattr(estimator, "_training"):
        raise AttributeError(_NO_ROWS)
    return _has_data(estimator)


class IncrementalMixin(KeepsTraining):
    """Adds `forget` and `leave_one_out` to a kernel estimator, and all that its `partial_fit` needs.

    `_training` are the rows that were learned from. `_incremental` is what is kept ready to learn more of them or
    fewer; it is made when it is needed, and neither copied nor saved. An estimator says what its problems are:

    _targets_of(y, weights) : what is learned from rows with these y and sample weights
    _loss_parameters() : parameters of the loss, beside C, that may change between two calls
    _check_rows_left(training, left) : an error if the rows in the positions `left` cannot be learned from alone
    _dual_variables(n_rows, targets), _expansion(...), _keep_solved(...) : from and to the fitted attributes
    _problem_scores(X), _decisions(scores) : a score for each problem, and what the user gets of them
    """

    _incremental: tuple[Any, IncrementalFit] | None = None

    def __getstate__(self) -> dict[str, Any]:
        usual: Any = super().__getstate__()
        state = dict(usual)
        state.pop("_incremental", None)
        if getattr(self, "_is_precomputed", False):
            state.pop("_training", None)  # the kernel matrix, perhaps a memory map
        return state

    @available_if(_has_data)
    def forget(self: Any, rows: Any) -> Any:
        """Unlearn rows: the model is then that of a fit on the others, and nothing of these rows is kept.

        Their dual variables are driven to zero while the free ones stay level, then the optimum of the others is
        restored. What was taken from the data by the first fit, such as `gamma_`, stays as it is.

        Parameters
        ----------
        rows : int or array-like of int
            Ids from `row_ids_`. The ids of the other rows do not change; their order does not either.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        training = self._known_training()
        positions = positions_of(rows, training.ids)
        self._check_rows_left(training, np.delete(np.arange(training.ids.size), positions))
        if positions.size == 0:
            return self
        return self._change(lambda fit: fit.remove_rows(positions), training, is_solved=True)

    def leave_one_out(self: Any) -> np.ndarray:
        """The decision value of each training row from the model that is trained on all others, exactly.

        Rows that are no support vectors have the value they have; each support vector is removed from the trained state
        by pivots, and the state put back.

        Returns
        -------
        array
            In the order of `row_ids_`, and in the shape of `decision_function` (classes) or `predict` (numbers). What
            was taken from the data by the first fit, such as `gamma_`, stays as it is. A row that is the only one of
            its class is decided against that class.
        """
        check_is_fitted(self)
        training = self._known_training()
        self._check_left_out(training)
        _, stop, _, _ = self._limits()
        with self._working(training) as (fit, cancel):
            fit.prepare()
            fit.solve(stop, cancel)
            with fit.workers.checking(cancel.check):
                found = fit.left_out()
        if len(found) == 1 and found[0][0].size == training.ids.size:
            scores = np.empty((training.ids.size, 1))
        else:
            scores = self._problem_scores(training.matrix)  # also of rows that take no part in a problem
        for k, (positions, values) in enumerate(found):
            scores[positions, k] = values
        return self._decisions(scores)

    def _adding(self: Any, X: Any, y: np.ndarray, sample_weight: Any) -> Callable[[IncrementalFit], None]:
        """What adds these rows, for `_change`; X and y are checked."""
        weights = _weights(sample_weight, y.size)
        rows = as_rows(X)
        in_range(kernel_of(self), rows)
        return lambda fit: fit.add_rows(rows, y, weights)

    def _change(
        self: Any, operation: Callable[[IncrementalFit], None], training: TrainingRows, *, is_solved: bool = False
    ) -> Any:
        """Change the rows and restore the optimum; the model is changed at the end, or not at all.

        An operation may need that the model `is_solved` before, with its working sets.
        """
        C, stop, _, _ = self._limits()
        with self._working(training) as (fit, cancel):
            fit.prepare()
            if is_solved:
                fit.solve(stop, cancel)
                cancel.check()
            with fit.workers.checking(cancel.check):
                operation(fit)
            fit.solve(stop, cancel)
            if hasattr(self, "_state"):
                del self._state
            self._adopt(fit, C, is_longer=not is_solved)
        if cancel.is_set:
            raise KeyboardInterrupt
        for note in handed_over(fit.results()):
            warnings.warn(note, UserWarning, stacklevel=3)
        warn_unless_done(self, stop, stacklevel=3)
        return self

    def _adopt(self: Any, fit: IncrementalFit, C: float, *, is_longer: bool) -> None:
        """Become the model that was found.

        If the data are those of before and more rows behind them, support vectors that are the same are not copied.
        """
        known = (self.support_, self.support_vectors_) if is_longer else None
        results, targets, rows = fit.results(), fit.targets(), fit.rows
        self._set(self._expansion(rows, fit.training.y, targets, [result.solution for result in results], known))
        self.shape_fit_ = (rows.n_rows, rows.n_cols)
        self._keep_outcome(results)
        self._keep_solved(results, targets, C)
        self._keep_training(fit.training)

    @contextmanager
    def _working(self: Any, training: TrainingRows) -> Iterator[tuple[IncrementalFit, Cancel]]:
        """What is kept ready for these rows; it stays if nothing goes wrong. Ctrl-C sets the switch."""
        C, _, n_threads, cache_bytes = self._limits()
        if isinstance(self.gamma, Real) and float(self.gamma) != self.gamma_ and self.gamma_ != 0.0:
            raise SoftmarginError(
                f"gamma={self.gamma!r}, but this model learned with {self.gamma_!r}: set it back, or fit anew."
            )
        key = (C, self._loss_parameters(), kernel_of(self), cache_bytes, self._active_set(), n_threads)
        cancel = Cancel()
        with cancel.on_interrupt(), one_blas_thread():
            before, self._incremental = self._incremental, None
            if before is not None and before[0] == key and before[1].training is training:
                fit = before[1]
            else:
                rows = as_rows(training.matrix)
                setting = KernelSetting(C, in_range(kernel_of(self), rows), cache_bytes, needs_double=True)
                if not setting.looks_convex(rows):
                    raise SoftmarginError(
                        f"the kernel {self.kernel!r} is not positive semi-definite on these rows, and this needs the "
                        "active set, which needs that: use a kernel such as 'rbf'."
                    )
                fit = IncrementalFit(
                    training, self._targets_of, setting, self._active_set(), n_threads, self._solved_before
                )
            try:
                yield fit, cancel
            except Abandoned:
                raise KeyboardInterrupt from None
            finally:
                fit.workers.close()
            self._incremental = (key, fit)

    def _solved_before(self: Any, targets: Sequence[ChangingTarget]) -> list[tuple[np.ndarray, Result]]:
        """Of each problem the dual variables and the outcome of the last fit, from the fitted attributes."""
        traces = self.trace_ if isinstance(self.trace_, list) else [self.trace_]
        betas = self._dual_variables(self.shape_fit_[0], targets)
        seconds = {"total": 0.0, "judge": 0.0, "compile": 0.0}
        found = []
        for k, (target, beta) in enumerate(zip(targets, betas, strict=True)):
            solution = Solution(np.empty(0), float(self.intercept_[k]), target.loss(float(self.C)).held(beta))
            result = Result(solution, self.status_, self.certificates_[k], {}, traces[k], None, seconds)
            found.append((beta, result))
        return found

    def _active_set(self: Any) -> ActiveSet:
        return self.solver if isinstance(self.solver, ActiveSet) else ActiveSet()

    def _known_training(self) -> TrainingRows:
        if not hasattr(self, "_training"):
            raise SoftmarginError(_NO_ROWS)
        return self._training


def positions_of(rows: Any, ids: np.ndarray) -> np.ndarray:
    """The sorted positions of these ids, which must be there and differ from each other."""
    wanted = np.atleast_1d(np.asarray(rows))
    if wanted.size == 0:
        return np.empty(0, dtype=np.int64)
    if wanted.ndim != 1 or wanted.dtype.kind not in "iu":
        raise SoftmarginError(f"rows={rows!r} must be ids of rows: integers from row_ids_.")
    found, counts = np.unique(wanted, return_counts=True)
    if counts.max() > 1:
        raise SoftmarginError(f"the id {found[counts.argmax()]} is there {counts.max()} times: name each row once.")
    positions = np.searchsorted(ids, found)
    there = ids[np.minimum(positions, ids.size - 1)] == found
    if not there.all():
        raise SoftmarginError(
            f"there is no row with the id {found[~there][0]}: the ids of the {ids.size} rows are in row_ids_."
        )
    return positions


def _weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Of new rows all weights may be zero."""
    if sample_weight is not None and np.shape(sample_weight) == (n_rows,) and not np.any(sample_weight):
        return np.zeros(n_rows)
    return validation.row_weights(sample_weight, n_rows)
