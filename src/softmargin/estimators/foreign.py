"""Fitted models of scikit-learn, and of libraries that derive from it, as models of ours: so they can be judged."""

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from softmargin.core.errors import SoftmarginError
from softmargin.data.convert import as_rows
from softmargin.estimators import validation
from softmargin.estimators.kernel_choice import KERNELS
from softmargin.estimators.linear_svc import LinearSVC
from softmargin.estimators.linear_svr import LinearSVR
from softmargin.estimators.one_class_svm import OneClassSVM
from softmargin.estimators.svc import SVC
from softmargin.estimators.svr import SVR
from softmargin.tasks.records import task_behind

_JUDGED = "the estimators of softmargin, and scikit-learn's SVC, SVR, OneClassSVM, LinearSVC and LinearSVR"


def adopted(estimator: Any) -> Any:
    """A model of ours as it is; another library's as the model of ours that solves the same problem."""
    if task_behind(estimator) is not None:
        return estimator
    names = [f"{kind.__module__}.{kind.__qualname__}" for kind in type(estimator).__mro__]
    adopt = next((_ADOPT[name] for name in names if name in _ADOPT), None)
    if adopt is None:
        raise SoftmarginError(
            f"certify() does not know {type(estimator).__name__}: it judges {_JUDGED}. For a pipeline give its last "
            "step and the transformed X."
        )
    check_is_fitted(estimator)
    model = adopt(estimator)
    for name in ("n_features_in_", "feature_names_in_", "classes_", "class_weight_"):
        if hasattr(estimator, name):
            setattr(model, name, getattr(estimator, name))
    return model


def _linear_svc(estimator: Any) -> LinearSVC:
    is_joint = estimator.multi_class == "crammer_singer"  # LIBLINEAR then ignores loss and penalty
    if not is_joint and estimator.penalty != "l2":
        raise SoftmarginError(
            f"this LinearSVC minimises another objective (penalty={estimator.penalty!r}): only penalty='l2' is judged."
        )
    model = LinearSVC(
        estimator.C,
        loss="hinge" if is_joint else estimator.loss,
        multi_class=estimator.multi_class,
        class_weight=estimator.class_weight,
        **_intercept(estimator),
    )
    model.coef_, model.intercept_ = estimator.coef_, estimator.intercept_
    model._rest_unweighted = True
    model._balance_counts_rows = "sample_weight" not in signature(compute_class_weight).parameters
    return model


def _linear_svr(estimator: Any) -> LinearSVR:
    model = LinearSVR(estimator.C, epsilon=estimator.epsilon, loss=estimator.loss, **_intercept(estimator))
    model.coef_, model.intercept_ = estimator.coef_, np.atleast_1d(estimator.intercept_)
    return model


def _intercept(estimator: Any) -> dict[str, Any]:
    """LIBLINEAR penalises its intercept."""
    if not estimator.fit_intercept:
        return {"fit_intercept": False}
    return {"intercept": "penalised", "intercept_scaling": float(estimator.intercept_scaling)}


def _svc(estimator: Any) -> SVC:
    return _with_expansion(SVC(estimator.C, class_weight=estimator.class_weight), estimator)


def _svr(estimator: Any) -> SVR:
    return _with_expansion(SVR(estimator.C, epsilon=estimator.epsilon), estimator)


def _one_class_svm(estimator: Any) -> OneClassSVM:
    return _with_expansion(OneClassSVM(estimator.nu), estimator)


def _refuse_nu(estimator: Any) -> Any:
    raise SoftmarginError(
        f"certify() does not judge {type(estimator).__name__}: it minimises another objective, with nu in the place of "
        f"a C or an epsilon. What can be judged are {_JUDGED}."
    )


def _with_expansion(model: Any, estimator: Any) -> Any:
    """The model with kernel, coefficients and support vectors of a kernel machine."""
    if not hasattr(estimator, "_gamma"):
        raise SoftmarginError(
            f"this {type(estimator).__name__} does not tell which gamma it was trained with (it has no '_gamma'): "
            f"certify() judges {_JUDGED}."
        )
    if not callable(estimator.kernel):
        validation.one_of(estimator.kernel, "kernel", KERNELS)
    model.set_params(kernel=estimator.kernel, degree=estimator.degree, coef0=estimator.coef0)
    model.gamma_ = estimator._gamma
    coefficients = as_rows(estimator.dual_coef_)  # scikit-learn keeps them sparse if X was
    model.dual_coef_ = coefficients.densified(np.arange(coefficients.n_rows), np.float64)
    for name in ("support_", "support_vectors_", "n_support_", "intercept_", "shape_fit_"):
        setattr(model, name, getattr(estimator, name))
    if not hasattr(estimator, "classes_"):  # scikit-learn may leave this number unset where X is sparse
        model.n_support_ = np.array([len(model.support_)], dtype=np.int32)
    return model


_ADOPT: dict[str, Callable[[Any], Any]] = {
    "sklearn.svm._classes.LinearSVC": _linear_svc,
    "sklearn.svm._classes.LinearSVR": _linear_svr,
    "sklearn.svm._classes.SVC": _svc,
    "sklearn.svm._classes.SVR": _svr,
    "sklearn.svm._classes.OneClassSVM": _one_class_svm,
    "sklearn.svm._classes.NuSVC": _refuse_nu,
    "sklearn.svm._classes.NuSVR": _refuse_nu,
}
