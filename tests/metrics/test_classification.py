"""Measures against their definitions and against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from softmargin.metrics import accuracy, prbep, roc_area


@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=2, max_size=30))
def test_roc_area_counts_pairs_and_agrees_with_scikit_learn(rows):
    positive, scores = np.array([p for p, _ in rows]), np.array([s for _, s in rows], dtype=float)
    if positive.all() or not positive.any():
        with pytest.raises(ValueError, match="one class"):
            roc_area(positive, scores)
        return
    diff = scores[positive][:, None] - scores[~positive]
    assert roc_area(positive, scores) == pytest.approx(np.mean((diff > 0) + 0.5 * (diff == 0)), rel=1e-12)
    assert roc_area(positive, scores) == pytest.approx(roc_auc_score(positive, scores), rel=1e-12)


def test_prbep_is_precision_and_recall_where_they_meet():
    positive = np.array([1, 1, 0, 1, 0, 0, 1], dtype=bool)
    assert prbep(positive, np.array([7.0, 6, 5, 4, 3, 2, 1])) == 0.75  # the first four hold three of four
    assert prbep(positive, positive.astype(float)) == 1.0
    assert prbep(positive, np.zeros(7)) == pytest.approx(4 / 7)  # ties: as good as drawing


def test_accuracy_and_bad_input():
    assert accuracy(["a", "b", "b"], ["a", "b", "a"]) == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="cannot be compared"):
        accuracy([1, 2], [1])
    with pytest.raises(ValueError, match="which rows are positive"):
        roc_area([1, 0], [0.5, 0.1])
    with pytest.raises(ValueError, match="not finite"):
        prbep(np.array([True, False]), [0.5, np.nan])
    with pytest.raises(ValueError, match="one of each"):
        prbep(np.array([True, False]), [0.5])
