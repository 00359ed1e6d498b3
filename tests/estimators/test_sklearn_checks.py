"""scikit-learn's own checks of an estimator, on the defaults and with tight tolerances. No failure is expected."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from softmargin import LinearSVC


@parametrize_with_checks(
    [
        LinearSVC(),
        LinearSVC(tol=1e-8),
        LinearSVC(solver="cpa", tol=1e-8),
        LinearSVC(tol=1e-8, n_jobs=2, warm_start=True),
    ]
)
def test_estimator_check(estimator, check):
    check(estimator)
