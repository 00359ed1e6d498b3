"""What makes an estimator of scikit-learn of a machine: checks of X and y, tags, callbacks, warnings, plain states."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from softmargin.core.errors import SoftmarginError
from softmargin.core.stopping import Stop
from softmargin.estimators.callbacks import FRAMES_TO_CALLER, CallbackBridge, CallbackSupportMixin
from softmargin.estimators.machines.base import NO_TARGETS, Job
from softmargin.estimators.plain_state import PlainStateMixin
from softmargin.estimators.reporting import ReportMixin
from softmargin.estimators.warnings import warn_unless_done


class Estimator(ReportMixin, PlainStateMixin, CallbackSupportMixin, BaseEstimator):
    """The surface of every estimator; it stands before the machine among the bases."""

    _frames_to_caller = FRAMES_TO_CALLER

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _matrix(
        self, X: Any, y: Any = NO_TARGETS, *, reset: bool = True, sparse: bool = True, copy: bool = False
    ) -> Any:
        """As in `Machine`, of whatever scikit-learn takes for rows and targets."""
        return validate_data(
            self,
            X,
            **({} if y is NO_TARGETS else {"y": y}),
            reset=reset,
            accept_sparse="csr" if sparse else False,
            accept_large_sparse=True,
            dtype="numeric",
            copy=copy,
        )

    def _checked_targets(self, y: Any, n_rows: int) -> np.ndarray:
        y = column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name="y"), warn=True)
        if y.size != n_rows:
            raise SoftmarginError(f"there are {y.size} targets for {n_rows} rows: give one for each row.")
        return y

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    def _bridge(self, X: Any, y: Any, metadata: dict[str, Any], job: Job) -> CallbackBridge | None:
        return CallbackBridge.of(self, X, y, metadata, len(job.titles), job.stop.max_iter)

    def _tell_shortfall(self, stop: Stop, stacklevel: int) -> None:
        warn_unless_done(self, stop, stacklevel + 1)


class KernelEstimator(Estimator):
    """The surface of estimators with a kernel, which may be a matrix of its values."""

    _is_precomputed: bool

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_precomputed
        tags.input_tags.pairwise = self._is_precomputed
        return tags
