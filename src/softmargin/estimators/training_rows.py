"""The rows that a model was trained on, kept to learn more of them or fewer."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class TrainingRows:
    """Data as the user gave them, and of each row what is learned from it, its sample weight and its id.

    `y` are positions of classes, or numbers for regression. Ids rise from row to row; `next_id` is that of the next row
    to come.
    """

    matrix: Any
    y: np.ndarray
    weights: np.ndarray
    ids: np.ndarray
    next_id: int

    def appended(self, matrix: Any, y: np.ndarray, weights: np.ndarray) -> "TrainingRows":
        """With more rows; `matrix` holds all of them."""
        next_id = self.next_id + y.size
        ids = np.append(self.ids, np.arange(self.next_id, next_id))
        return TrainingRows(matrix, np.append(self.y, y), np.append(self.weights, weights), ids, next_id)

    def without(self, matrix: Any, positions: np.ndarray) -> "TrainingRows":
        """Without the rows in these positions; `matrix` holds the others."""
        y, weights, ids = (np.delete(part, positions) for part in (self.y, self.weights, self.ids))
        return TrainingRows(matrix, y, weights, ids, self.next_id)
