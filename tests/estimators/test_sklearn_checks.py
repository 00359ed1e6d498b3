"""scikit-learn's own checks of an estimator, on the defaults and with tight tolerances.

No failure is expected but where a check contradicts what ordered classes are.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from softmargin import SVC, LinearSVC, OrdinalSVC, RankSVM


def expected_failures(estimator):
    """The checks that fail, and why."""
    if not isinstance(estimator, OrdinalSVC):
        return {}
    reasons = {
        "check_classifiers_classes": "labels are words, which have no order unless it is given",
        "check_classifiers_train": "for three classes it expects a score for each: here they are parts of one score",
    }
    if estimator.thresholds == "fitted":
        reasons["check_class_weight_classifiers"] = (
            "it expects that a class of little weight is hardly ever predicted, but its rows beyond those of the heavy "
            "class are got right at no cost"
        )
    return reasons


# Some checks give any numbers as a kernel matrix.
@pytest.mark.filterwarnings("ignore:the kernel 'precomputed' is indefinite:UserWarning")
@parametrize_with_checks(
    [
        LinearSVC(),
        LinearSVC(tol=1e-8),
        LinearSVC(solver="cpa", tol=1e-8),
        LinearSVC(tol=1e-8, n_jobs=2, warm_start=True),
        SVC(),
        SVC(tol=1e-8),
        SVC(tol=1e-8, stopping="kkt", n_jobs=2, warm_start=True),
        SVC(solver="active_set", tol=1e-8),
        SVC(kernel="precomputed"),
        SVC(kernel="linear", tol=1e-6),
        RankSVM(),
        RankSVM(tol=1e-8, pairs="sum", n_jobs=2, warm_start=True),
        OrdinalSVC(),
        OrdinalSVC(tol=1e-8, thresholds="all"),
        OrdinalSVC(tol=1e-8, thresholds="immediate", n_jobs=2, warm_start=True),
    ],
    expected_failed_checks=expected_failures,
)
def test_estimator_check(estimator, check):
    check(estimator)
