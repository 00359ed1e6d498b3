"""Judging a fitted model again, also one that another library trained."""

from typing import Any

import numpy as np
from sklearn.svm import LinearSVC as SklearnLinearSVC
from sklearn.utils.validation import check_is_fitted, validate_data

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Certificate, Solution
from softmargin.core.stopping import Stop
from softmargin.core.threads import Workers, one_blas_thread
from softmargin.data.convert import as_rows
from softmargin.estimators import validation
from softmargin.estimators.build import LinearSetting, linear_solver, solve_all
from softmargin.estimators.linear_svc import LinearSVC, linear_setting

# A model without a dual vector gets one from a solve of our own, to this relative gap.
WITNESS_TOL = 1e-6
WITNESS_MAX_ITER = 5000


def certify(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """Primal value, dual bound and gap of a fitted model on its training data.

    Parameters
    ----------
    estimator : a fitted softmargin.LinearSVC, or scikit-learn's LinearSVC(loss="hinge")
    X, y, sample_weight
        What it was trained on, rows in the same order.

    Returns
    -------
    Certificate
        Computed from the data and the model's weights; for several sub-problems the sums and the worst relative gap.
        The dual vector is the model's own if it has one; for another library's model a solver finds one first (the
        bound is checked independently of it).
    """
    setting = _setting_of(estimator)
    check_is_fitted(estimator)
    X, y = validate_data(estimator, X, y, reset=False, accept_sparse="csr", dtype="numeric", accept_large_sparse=True)
    classes, codes = validation.class_labels(y)
    if not np.array_equal(classes, estimator.classes_):
        raise SoftmarginError(
            f"y has the classes {classes.tolist()}, the model {estimator.classes_.tolist()}: "
            "certify a model on the data it was trained on."
        )
    coef = np.atleast_2d(estimator.coef_)
    targets = validation.signed_weights(
        classes, codes, estimator.class_weight, sample_weight, rest_unweighted=isinstance(estimator, SklearnLinearSVC)
    )
    intercepts = np.broadcast_to(np.ravel(estimator.intercept_), (len(targets),))
    with one_blas_thread():
        workers = Workers(1)
        rows = as_rows(X, workers)
        alphas = _dual_vectors(estimator, setting, rows, targets)
        parts = [
            setting.judge(rows, v, workers)(Solution(w, float(b), alpha))
            for v, w, b, alpha in zip(targets, coef, intercepts, alphas, strict=True)
        ]
    return Certificate.combine(parts)


def _setting_of(estimator: Any) -> LinearSetting:
    if isinstance(estimator, LinearSVC):
        return linear_setting(estimator)
    if not isinstance(estimator, SklearnLinearSVC):
        raise SoftmarginError(
            f"certify() does not know {type(estimator).__name__}: it judges softmargin.LinearSVC and "
            "scikit-learn's LinearSVC(loss='hinge'). For a pipeline give its last step and the transformed X."
        )
    if estimator.loss != "hinge" or estimator.penalty != "l2" or estimator.multi_class != "ovr":
        raise SoftmarginError(
            f"this LinearSVC minimises another objective (loss={estimator.loss!r}, penalty={estimator.penalty!r}, "
            f"multi_class={estimator.multi_class!r}): only loss='hinge' with penalty='l2' and one-vs-rest is judged."
        )
    intercept = "penalised" if estimator.fit_intercept else "none"
    return LinearSetting(float(estimator.C), intercept, float(estimator.intercept_scaling))


def _dual_vectors(estimator: Any, setting: LinearSetting, rows: Any, targets: list) -> list[np.ndarray]:
    own = getattr(estimator, "dual_", None)
    if own is not None:
        columns = own[:, None] if own.ndim == 1 else own
        return list(columns.T)
    stop = Stop(tol=WITNESS_TOL, max_iter=WITNESS_MAX_ITER)
    results = solve_all(linear_solver("auto"), setting, rows, targets, stop, n_threads=1)
    return [result.solution.alpha for result in results]
