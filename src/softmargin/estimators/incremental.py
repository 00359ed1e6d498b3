"""Learning and unlearning rows, and leaving each out: what `SVC` does by the active set from a trained state."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from softmargin.core.errors import Abandoned, SoftmarginError
from softmargin.core.result import Result
from softmargin.core.threads import Cancel, one_blas_thread
from softmargin.data.convert import as_rows
from softmargin.estimators import validation
from softmargin.estimators.base import warn_unless_done
from softmargin.estimators.kernel_choice import in_range, kernel_of
from softmargin.estimators.kernel_scoring import one_against_one
from softmargin.estimators.kernel_targets import Pair
from softmargin.estimators.kernel_work import KernelSetting, handed_over
from softmargin.estimators.live import Live, known_result
from softmargin.estimators.training_rows import Training
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


def _can_learn(estimator: Any) -> bool:
    if hasattr(estimator, "dual_coef_") and not hasattr(estimator, "_training"):
        raise AttributeError(_NO_ROWS)
    return _has_data(estimator)


def keeps_training(solver: Any) -> bool:
    """Whether a fit with this solver keeps its rows, to learn more."""
    return isinstance(solver, ActiveSet) or (isinstance(solver, str) and solver == "active_set")


class IncrementalMixin:
    """Adds `partial_fit`, `forget` and `leave_one_out` to `SVC`.

    `_training` are the rows that were learned from; `_live` is made of them when it is needed, and neither copied nor
    saved.
    """

    _training: Training
    _live: tuple[Any, Live] | None = None

    def __getstate__(self) -> dict[str, Any]:
        usual: Any = super().__getstate__()
        state = dict(usual)
        state.pop("_live", None)
        if getattr(self, "_is_precomputed", False):
            state.pop("_training", None)  # the kernel matrix, perhaps a memory map
        return state

    @available_if(_can_learn)
    def partial_fit(self: Any, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Learn more rows: the model is then that of a fit on all rows so far, at a fraction of its cost.

        The optimum is restored by pivots of the active set, whatever `solver` is, and judged as after `fit`. What `fit`
        takes from the data is that of the first call: `gamma_` ("scale") and `class_weight_` ("balanced").

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        classes : array-like of shape (n_classes,), default=None
            All classes there will be; needed in the first call if not all of them are in y. As long as only one of them
            has rows the model predicts that one.
        sample_weight : array-like of shape (n_rows,), default=None

        Returns
        -------
        self
            The new rows have ids of their own at the end of `row_ids_`. After Ctrl-C the model knows the new rows, with
            the best solution so far, and the interrupt is raised again; the next call goes on from there.
        """
        if not hasattr(self, "dual_coef_"):
            return self._fit(X, y, sample_weight, solver=self._active_set(), all_classes=classes, copy=True)
        training = self._known_training()
        self._same_classes(classes)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype="numeric", accept_large_sparse=True, reset=False)
        codes = codes_among(y, self.classes_)
        weights = _weights(sample_weight, codes.size)
        rows = as_rows(X)
        in_range(kernel_of(self), rows)
        return self._change(lambda live: live.add(rows, codes, weights), training)

    @available_if(_has_data)
    def forget(self: Any, rows: Any) -> Any:
        """Unlearn rows: the model is then that of a fit on the others, and nothing of these rows is kept.

        Their dual variables are driven to zero while the free ones stay level, then the optimum of the others is
        restored. `gamma_` and `class_weight_` stay as they are.

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
        weights = training.weights * self.class_weight_[training.codes]
        left = np.delete(np.arange(training.ids.size), positions)
        n_classes = self.classes_.size
        mass = [np.bincount(training.codes[part], weights[part] > 0, n_classes) for part in (slice(None), left)]
        lost = ((mass[0] > 0) & (mass[1] == 0)).nonzero()[0]
        if lost.size:
            raise SoftmarginError(
                f"class {self.classes_[lost].tolist()[0]!r} would be left without rows: keep one of them, or fit a "
                "model without this class."
            )
        if positions.size == 0:
            return self
        return self._change(lambda live: live.remove(positions), training, is_solved=True)

    def leave_one_out(self: Any) -> np.ndarray:
        """The decision value of each training row from the model that is trained on all others, exactly.

        Rows that are no support vectors have the value they have; each support vector is removed from the trained state
        by pivots, and the state put back.

        Returns
        -------
        array
            In the order of `row_ids_` and in the shape of `decision_function`; `gamma_` and `class_weight_` stay as
            they are. A row that is the only one of its class is decided against that class.
        """
        check_is_fitted(self)
        training = self._known_training()
        _, stop, _, _ = self._limits()
        weights = training.weights * self.class_weight_[training.codes]
        n_classes = self.classes_.size
        if n_classes == 2 and (weights > 0).all():
            scores = np.empty((weights.size, 1))
        else:
            scores = self._pair_scores(training.matrix)
        with self._working(training) as (live, cancel):
            live.wake()
            live.solve(stop, cancel)
            with live.workers.checking(cancel.check):
                for k, (positions, values) in enumerate(live.left_out()):
                    scores[positions, k] = values
        if n_classes == 2:
            return scores.ravel()
        return scores if self.decision_function_shape == "ovo" else one_against_one(scores, n_classes)

    def _change(self: Any, operation: Callable[[Live], None], training: Training, *, is_solved: bool = False) -> Any:
        """Change the rows and restore the optimum; the model is changed at the end, or not at all.

        An operation may need that the model `is_solved` before, with its working sets.
        """
        C, stop, _, _ = self._limits()
        with self._working(training) as (live, cancel):
            live.wake()
            if is_solved:
                live.solve(stop, cancel)
                cancel.check()
            with live.workers.checking(cancel.check):
                operation(live)
            live.solve(stop, cancel)
            if hasattr(self, "_state"):
                del self._state
            self._adopt(live.results(), live.index_pairs(), live.rows, live.training.codes, C, is_longer=not is_solved)
            self._keep_training(live.training)
        if cancel.is_set:
            raise KeyboardInterrupt
        for note in handed_over(live.results()):
            warnings.warn(note, UserWarning, stacklevel=3)
        warn_unless_done(self, stop, stacklevel=3)
        return self

    @contextmanager
    def _working(self: Any, training: Training) -> Iterator[tuple[Live, Cancel]]:
        """The live object for these rows; it stays if nothing goes wrong. Ctrl-C sets the switch."""
        C, _, n_threads, cache_bytes = self._limits()
        if isinstance(self.gamma, Real) and float(self.gamma) != self.gamma_ and self.gamma_ != 0.0:
            raise SoftmarginError(
                f"gamma={self.gamma!r}, but this model learned with {self.gamma_!r}: set it back, or fit anew."
            )
        key = (C, kernel_of(self), cache_bytes, self._active_set(), n_threads)
        cancel = Cancel()
        with cancel.on_interrupt(), one_blas_thread():
            before, self._live = self._live, None
            if before is not None and before[0] == key and before[1].training is training:
                live = before[1]
            else:
                rows = as_rows(training.matrix)
                setting = KernelSetting(C, in_range(kernel_of(self), rows), cache_bytes, needs_double=True)
                if not setting.looks_convex(rows):
                    raise SoftmarginError(
                        f"the kernel {self.kernel!r} is not positive semi-definite on these rows, and this needs the "
                        "active set, which needs that: use a kernel such as 'rbf'."
                    )
                live = Live(training, self.class_weight_, setting, self._active_set(), n_threads, self._known_results)
            try:
                yield live, cancel
            except Abandoned:
                raise KeyboardInterrupt from None
            finally:
                live.workers.close()
            self._live = (key, live)

    def _known_results(self: Any, pairs: list[Pair]) -> list[tuple[np.ndarray, Result]]:
        """Of each pair the dual variables and the outcome, from the fitted attributes."""
        traces = self.trace_ if isinstance(self.trace_, list) else [self.trace_]
        found = []
        for k, beta in enumerate(self._dual_variables(self.shape_fit_[0], pairs)):
            b, certificate = float(self.intercept_[k]), self.certificates_[k]
            found.append((beta, known_result(np.abs(beta), b, certificate, self.status_, traces[k])))
        return found

    def _active_set(self: Any) -> ActiveSet:
        return self.solver if isinstance(self.solver, ActiveSet) else ActiveSet()

    def _keep_training(self, training: Training) -> None:
        self._training = training
        self.row_ids_ = training.ids

    def _drop_training(self) -> None:
        for name in ("_training", "row_ids_", "_live"):
            self.__dict__.pop(name, None)

    def _known_training(self) -> Training:
        if not hasattr(self, "_training"):
            raise SoftmarginError(_NO_ROWS)
        return self._training

    def _same_classes(self: Any, classes: Any) -> None:
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise SoftmarginError(
                f"classes={classes!r} are not those of the first call, {self.classes_.tolist()}: leave them out, or "
                "fit a new model."
            )


def codes_among(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """For each label the position of its class."""
    codes = np.searchsorted(classes, y)
    strangers = y[classes[np.minimum(codes, classes.size - 1)] != y]
    if strangers.size:
        raise SoftmarginError(
            f"y holds {strangers.tolist()[0]!r}, which is not among the classes {classes.tolist()}: name all classes "
            "in the first call, partial_fit(X, y, classes=...)."
        )
    return codes


def given_classes(y: np.ndarray, classes: Any) -> tuple[np.ndarray, np.ndarray]:
    """The sorted classes as given, and for each row the position of its class."""
    check_classification_targets(y)
    found = np.unique(classes)
    if found.size < 2:
        raise SoftmarginError(f"classes={classes!r} must name at least two classes.")
    return found, codes_among(y, found)


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
