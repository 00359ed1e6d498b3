"""How good scores are, by the measures of the papers. Light: neither scikit-learn nor Numba is imported."""

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.estimators.scoring import labels_from_scores
from softmargin.metrics import accuracy, prbep, roc_area


def measures(scores: np.ndarray, classes: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Accuracy; for two classes also ROC area and break-even point, if both occur among the labels."""
    strangers = np.setdiff1d(y, classes)
    if strangers.size == len(np.unique(y)):
        raise SoftmarginError(
            f"none of the labels {strangers[:5].tolist()} is a class of the model {classes[:5].tolist()}: "
            "is this the file the model is for?"
        )
    found = {"accuracy": accuracy(y, labels_from_scores(scores, classes))}
    positive = y == classes[1]
    if len(classes) == 2 and 0 < np.count_nonzero(positive) < len(y):
        found |= {"roc_area": roc_area(positive, scores), "break_even": prbep(positive, scores)}
    return found
