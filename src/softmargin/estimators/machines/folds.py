"""Folds of rows for cross-validation: classes spread and groups kept whole, the same for the same data and seed."""

from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.estimators import validation
from softmargin.estimators.machines.cells import Fold


def folds_of(
    n_rows: int, n_folds: int, seed: int, classes: np.ndarray | None = None, groups: Any = None, weights: Any = None
) -> list[Fold]:
    """As many folds as asked for, each row held out once.

    Rows of the same group (a query, a patient) stay together; else those of each class are spread evenly.
    """
    if isinstance(n_folds, bool) or not 2 <= n_folds <= n_rows:
        raise SoftmarginError(f"{n_folds} folds of {n_rows} rows: ask for at least 2, and for no more than rows.")
    rng = np.random.default_rng(seed)
    if groups is not None:
        fold_of = _of_groups(np.asarray(groups), n_folds, rng)
    else:
        order = rng.permutation(n_rows)
        if classes is not None:
            order = order[np.argsort(classes[order], kind="stable")]
        fold_of = np.empty(n_rows, dtype=np.int64)
        fold_of[order] = np.arange(n_rows) % n_folds
    base = validation.row_weights(weights, n_rows)
    found = [Fold(np.where(fold_of == k, 0.0, base), np.flatnonzero(fold_of == k)) for k in range(n_folds)]
    for k, fold in enumerate(found):
        if not fold.weights.any() or not base[fold.held_out].any():
            raise SoftmarginError(f"fold {k} would train or test on rows of weight 0 only: ask for fewer folds.")
        if classes is not None and np.unique(classes[fold.weights > 0]).size < 2:
            raise SoftmarginError(f"the training rows of fold {k} have one class only: ask for fewer folds.")
    return found


def _of_groups(groups: np.ndarray, n_folds: int, rng: np.random.Generator) -> np.ndarray:
    """The largest group first, each to the fold that has the fewest rows; among equal ones chance decides."""
    _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if sizes.size < n_folds:
        raise SoftmarginError(f"there are {sizes.size} groups or queries for {n_folds} folds: ask for fewer folds.")
    order = rng.permutation(sizes.size)
    order = order[np.argsort(-sizes[order], kind="stable")]
    of_group, n_rows = np.empty(sizes.size, dtype=np.int64), np.zeros(n_folds)
    for group in order:
        of_group[group] = np.argmin(n_rows)
        n_rows[of_group[group]] += sizes[group]
    return of_group[codes.ravel()]
