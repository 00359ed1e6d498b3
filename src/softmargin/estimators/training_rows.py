"""The rows that a model was trained on, kept to learn more of them or fewer."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Training:
    """Data as the user gave them, codes of the classes, sample weights, and ids, which rise."""

    matrix: Any
    codes: np.ndarray
    weights: np.ndarray
    ids: np.ndarray
    next_id: int

    def appended(self, matrix: Any, codes: np.ndarray, weights: np.ndarray) -> "Training":
        """With more rows; `matrix` holds all of them."""
        next_id = self.next_id + codes.size
        ids = np.append(self.ids, np.arange(self.next_id, next_id))
        return Training(matrix, np.append(self.codes, codes), np.append(self.weights, weights), ids, next_id)

    def without(self, matrix: Any, positions: np.ndarray) -> "Training":
        """Without the rows in these positions; `matrix` holds the others."""
        codes, weights, ids = (np.delete(part, positions) for part in (self.codes, self.weights, self.ids))
        return Training(matrix, codes, weights, ids, self.next_id)
