"""Keeping the training rows of a kernel machine, from which `partial_fit` and `forget` go on."""

from typing import Any

import numpy as np

from softmargin.estimators.training_rows import TrainingRows
from softmargin.solvers.active_set.active_set import ActiveSet


def keeps_training(solver: Any) -> bool:
    """Whether a fit with this solver keeps its rows, to learn more."""
    return isinstance(solver, ActiveSet) or (isinstance(solver, str) and solver == "active_set")


class KeepsTraining:
    """A machine whose training rows stay with it if they are needed again: as `_training`, with `row_ids_`."""

    warm_start: bool
    _training: TrainingRows

    def _remember_rows(self, X: Any, y: np.ndarray, weights: np.ndarray, solver: Any) -> None:
        """What a fit keeps of its training rows: all of them, if more are to be learned, or nothing."""
        self._drop_training()
        if keeps_training(solver) or self.warm_start:
            self._keep_training(TrainingRows(X, y, weights, np.arange(y.size), y.size))

    def _keep_training(self, training: TrainingRows) -> None:
        self._training = training
        self.row_ids_ = training.ids

    def _drop_training(self) -> None:
        for name in ("_training", "row_ids_", "_incremental"):
            self.__dict__.pop(name, None)

    def _loss_parameters(self) -> tuple:
        """Parameters of the loss, beside C, that may change between two calls."""
        return ()

    def _check_left_out(self, training: TrainingRows) -> None:
        """An error if the rows are too few to leave one out."""
