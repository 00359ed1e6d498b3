"""scikit-learn's own checks of an estimator, on the defaults and with tight tolerances. No failure is expected."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from softmargin import SVC, LinearSVC


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
        SVC(kernel="precomputed"),
        SVC(kernel="linear", tol=1e-6),
    ]
)
def test_estimator_check(estimator, check):
    check(estimator)
