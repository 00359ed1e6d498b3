"""scikit-learn's own checks of an estimator, on the defaults, with tight tolerances, and with every option.

Options that do not concern each other share an instance. Where a check fails, `expected_failures` says why.
"""

import pytest
from sklearn.base import OutlierMixin
from sklearn.utils.estimator_checks import parametrize_with_checks

from softmargin import (
    CPA,
    IPM,
    OCAS,
    SGD,
    SMO,
    SVC,
    SVCCV,
    SVR,
    ActiveSet,
    BlockSMO,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LowRankMap,
    OneClassSVM,
    OrdinalSVC,
    Pegasos,
    RankSVM,
)


class Products:
    """A kernel function whose name, which is that of tests, has no address in it."""

    def __call__(self, X, Z):
        return X @ Z.T

    def __repr__(self):
        return "products"


LINEAR = [
    LinearSVC(),
    LinearSVC(tol=1e-8),
    LinearSVC(solver="cpa", tol=1e-8),
    LinearSVC(tol=1e-8, n_jobs=2, warm_start=True),
    LinearSVC(tol=1e-8, fit_intercept=False),
    LinearSVC(tol=1e-8, intercept="penalised"),
    LinearSVC(tol=1e-8, solver="ocas"),
    LinearSVC(tol=1e-12, loss="squared_hinge"),
    LinearSVC(tol=1e-8, class_weight="balanced", solver=OCAS(mixing=0.5, stopping="epsilon")),
    LinearSVC(tol=1e-8, intercept="penalised", multi_class="crammer_singer", solver="ocas"),
    LinearSVC(solver=Pegasos(seed=0), max_iter=5),
    LinearSVC(solver=SGD(seed=0, average=True)),
]
KERNEL = [
    SVC(),
    SVC(tol=1e-8),
    SVC(tol=1e-8, stopping="kkt", n_jobs=2, warm_start=True),
    SVC(solver="active_set", tol=1e-8),
    SVC(kernel="precomputed"),
    SVC(kernel="linear", tol=1e-6),
    SVC(kernel="linear", solver="ipm", tol=1e-8),
    SVC(solver="ocas", tol=1e-8),
    SVC(kernel="poly", max_iter=20),  # far from the origin its optimum is out of reach, scikit-learn's as well
    SVC(kernel="sigmoid", max_iter=20),
    SVC(kernel=Products(), decision_function_shape="ovo"),
    SVC(kernel="laplacian", working_set="most_violating_pair", tol=1e-8),
    SVC(gamma="auto", working_set="second_order", shrinking=False, tol=1e-8),
    SVC(gamma=0.5, working_set="maximum_gain", tol=1e-8),
    SVC(working_set="hybrid_maximum_gain", cache_bytes=1e5, tol=1e-8),
    SVC(working_set="gain_one_row", class_weight="balanced", tol=1e-8),
    SVC(working_set="gain_all_cached", tol=1e-8),
    SVC(working_set="decomposition"),
]
MAPS = [LowRankMap(), LowRankMap(3, kernel="linear"), LowRankMap(5, kernel="laplacian", n_jobs=2)]
ORDERED = [
    RankSVM(),
    RankSVM(tol=1e-8, pairs="sum", n_jobs=2, warm_start=True),
    RankSVM(solver="cpa", query_weight="equal", tol=1e-6),
    OrdinalSVC(),
    OrdinalSVC(tol=1e-8, thresholds="all"),
    OrdinalSVC(tol=1e-8, thresholds="immediate", n_jobs=2, warm_start=True),
    OrdinalSVC(tol=1e-8, thresholds="all", class_weight="balanced"),
    # C is so small that no pair reaches its margin in the check of weights. Rows of such pairs have scores that are
    # equal but for rounding, and then rounding decides which of them a fitted threshold separates.
    OrdinalSVC(0.01, solver="cpa", cost="zero_one", class_weight="balanced", tol=1e-6),
]
# The default epsilon of 0.1 is larger than what some checks learn from, so that their optimum is zero.
REGRESSION = [
    LinearSVR(),
    LinearSVR(tol=1e-8),
    LinearSVR(tol=1e-8, solver="ocas"),
    LinearSVR(solver="cpa", epsilon=0.1, tol=1e-6),
    LinearSVR(tol=1e-8, epsilon=0.1, n_jobs=2, warm_start=True),
    LinearSVR(tol=1e-8, fit_intercept=False),
    LinearSVR(tol=1e-8, intercept="penalised", intercept_scaling=10.0),
    LinearSVR(tol=1e-12, loss="squared_epsilon_insensitive"),
    LinearSVR(tol=1e-8, solver=OCAS(mixing=0.5, stopping="epsilon")),
    LinearSVR(solver=CPA(), tol=1e-6),
    SVR(),
    SVR(tol=1e-8),
    SVR(tol=1e-10, epsilon=0.0, stopping="kkt", n_jobs=2, warm_start=True),
    SVR(solver="active_set", tol=1e-8),
    SVR(solver=ActiveSet("full", start="cold"), epsilon=0.0, tol=1e-8),
    SVR(kernel="precomputed"),
    SVR(kernel="linear", tol=1e-6),
    SVR(kernel="linear", solver="ipm", tol=1e-6),
    SVR(solver="ocas", tol=1e-8),
    SVR(solver=IPM(), epsilon=0.0, tol=1e-8),
    SVR(kernel="poly", max_iter=20),
    SVR(kernel="sigmoid", max_iter=20),
    SVR(kernel=Products()),
    SVR(solver=BlockSMO(size=8), epsilon=0.0, tol=1e-10),
    SVR(kernel="laplacian", working_set="most_violating_pair", tol=1e-8),
    SVR(gamma="auto", working_set="second_order", shrinking=False, tol=1e-8),
    SVR(gamma=0.5, working_set="maximum_gain", tol=1e-8),
    SVR(working_set="hybrid_maximum_gain", cache_bytes=1e5, tol=1e-8),
    SVR(working_set="gain_one_row", cache_size=1.0, tol=1e-8),
    SVR(working_set="gain_all_cached", tol=1e-8),
    SVR(working_set="decomposition"),
]
ONE_CLASS = [
    LinearOneClassSVM(),
    LinearOneClassSVM(tol=1e-8),
    LinearOneClassSVM(tol=1e-8, solver="ocas"),
    LinearOneClassSVM(0.1, solver="cpa", tol=1e-6),
    LinearOneClassSVM(0.9, tol=1e-8, n_jobs=2, warm_start=True),
    LinearOneClassSVM(tol=1e-8, solver=OCAS(mixing=0.5)),
    OneClassSVM(),
    OneClassSVM(tol=1e-8),
    OneClassSVM(1.0),
    OneClassSVM(0.01, tol=1e-8, stopping="kkt", n_jobs=2, warm_start=True),
    OneClassSVM(solver="active_set", tol=1e-8),
    OneClassSVM(0.1, solver=ActiveSet("full", start="cold"), tol=1e-8),
    OneClassSVM(kernel="precomputed"),
    OneClassSVM(kernel="linear", tol=1e-6),
    OneClassSVM(0.9, kernel="linear", solver="ipm", tol=1e-6),
    OneClassSVM(solver="ocas", tol=1e-8),
    OneClassSVM(0.1, kernel="poly", max_iter=20),
    OneClassSVM(0.1, kernel="sigmoid", max_iter=20),
    OneClassSVM(kernel=Products()),
    OneClassSVM(0.1, solver=BlockSMO(size=8), tol=1e-10),
    OneClassSVM(kernel="laplacian", working_set="most_violating_pair", tol=1e-8),
    OneClassSVM(gamma="auto", working_set="second_order", shrinking=False, tol=1e-8),
    OneClassSVM(0.1, gamma=0.5, solver=SMO("maximum_gain"), tol=1e-8),
    OneClassSVM(working_set="hybrid_maximum_gain", cache_bytes=1e5, tol=1e-8),
    OneClassSVM(working_set="gain_one_row", cache_size=1.0, tol=1e-10),
    OneClassSVM(0.9, working_set="gain_all_cached", tol=1e-8),
    OneClassSVM(0.1, working_set="decomposition"),
]
SEARCHES = [
    LinearSVCCV(),
    LinearSVCCV([0.1, 10.0], cv=3, tol=1e-8),
    LinearSVCCV([1.0, 0.1], cv=3, tol=1e-8, n_jobs=2, solver="ocas", scoring="balanced_accuracy"),
    LinearSVCCV([0.1, 10.0], cv=3, tol=1e-8, solver="coordinate", class_weight="balanced"),
    SVCCV([1.0, 10.0], gammas=["scale"]),
    SVCCV([0.1, 10.0], gammas=2, cv=3, tol=1e-8),
    SVCCV([0.1, 10.0], gammas=[0.1], cv=3, tol=1e-8, n_jobs=2, solver="active_set"),
    SVCCV([0.1, 1.0], cv=3, kernel="precomputed"),
]

# What a one-class estimator may fail a check with, and why that is no fault. The checks compare decision values before
# labels. Those of rows on the boundary are zero up to rounding, and their signs are what `predict` returns.
OF_ONE_CLASS = {
    ".predict revealed that fitting with": "rows on the boundary have no certain label; scikit-learn's fails too",
    "predict of OneClassSVM is not invariant": "rows on the boundary have no certain label",
    "`n_iter_` attribute should be greater": "the rows that the solver begins with are the optimum already",
}


# Coordinate descent visits a heavy row once and a row that is there twice two times, in another order. Both fits end
# within the same tolerance of the optimum, but rarely within 1e-7 of each other. With solver="ocas" they do.
NOT_EQUIVALENT = "fitting with `sample_weight` is not equivalent"
ANOTHER_ORDER = "coordinate descent visits rows in another order; scikit-learn expects its own LinearSVC to fail too"


def expected_failures(estimator):
    """The checks that fail, and why."""
    params = estimator.get_params()
    if isinstance(estimator, OrdinalSVC):
        return {"check_classifiers_classes": "labels are words, which have no order unless it is given"}
    if not params.get("fit_intercept", True):
        return {"check_class_weight_classifiers": "needs an intercept; scikit-learn's LinearSVC without one fails too"}
    if params.get("decision_function_shape") == "ovo":
        return {"check_classifiers_train": "expects a column a class; scikit-learn's SVC with this shape fails too"}
    if params.get("kernel") == "precomputed" and isinstance(estimator, OneClassSVM):
        return dict.fromkeys(("check_outliers_train", "check_outliers_fit_predict"), "gives rows for a kernel matrix")
    if params.get("kernel") == "sigmoid" and hasattr(estimator, "partial_fit"):
        return {
            "check_estimators_partial_fit_n_features": "partial_fit needs a kernel that is positive semi-definite",
            "check_regressors_train": "expects a good score; scikit-learn's SVR with this kernel fails too",
        }
    if isinstance(params.get("solver"), Pegasos | SGD):
        reason = "a row of weight 2 is visited once, with a step of twice the length: the same optimum, another path"
        checks = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
        return dict.fromkeys(checks, reason)
    return {}


# Some checks give any numbers as a kernel matrix, limits or budgets end some fits early, rows around the origin have no
# linear one-class model, and classes may have fewer rows than a search has folds.
@pytest.mark.filterwarnings("ignore:the kernel .* is indefinite:UserWarning")
@pytest.mark.filterwarnings("ignore:the optimum is w = 0:UserWarning")
@pytest.mark.filterwarnings("ignore::softmargin.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The least populated class in y has only:UserWarning")
@parametrize_with_checks(
    [*LINEAR, *KERNEL, *MAPS, *ORDERED, *REGRESSION, *ONE_CLASS, *SEARCHES], expected_failed_checks=expected_failures
)
def test_estimator_check(estimator, check):
    try:
        check(estimator)
    except AssertionError as error:
        text, reason = str(error), None
        if isinstance(estimator, OutlierMixin):
            reason = next((reason for words, reason in OF_ONE_CLASS.items() if words in text), None)
        if reason is None and NOT_EQUIVALENT in text and estimator.get_params()["solver"] in ("auto", "coordinate"):
            reason = ANOTHER_ORDER if type(estimator).__name__.startswith("Linear") else None
        if reason is None:
            raise
        pytest.xfail(reason)
