"""Judging a fitted model again, also one that another library trained."""

from typing import Any

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Certificate
from softmargin.estimators.foreign import adopted
from softmargin.tasks.records import task_behind


def certify(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, qid: Any = None) -> Certificate:
    """Primal value, dual bound and gap of a fitted model on its training data.

    Parameters
    ----------
    estimator
        A fitted estimator of softmargin, or scikit-learn's SVC, SVR, OneClassSVM, LinearSVC with penalty="l2" or
        LinearSVR, with any of their losses; scikit-learn-intelex's classes are derived from these.
    X, y, sample_weight, qid
        What it was trained on, rows in the same order; for a precomputed kernel X is the kernel matrix. One-class
        models have no y. qid is for a RankSVM.

    Returns
    -------
    Certificate
        Computed from the data and the model's weights, or support vectors and their coefficients; for several
        sub-problems the sums and the worst relative gap. The dual vector is the model's own if it has one; for another
        library's linear model a solver finds one first (the bound is checked independently of it), and for a ranking
        that keeps no planes one that is as good as the model's certificate says. Where the kernel is indefinite there
        is no bound: dual and gap are nan.
    """
    model = adopted(estimator)
    task = task_behind(model)
    assert task is not None
    more = {"sample_weight": sample_weight}
    if task.target == "queries":
        more["qid"] = qid
    elif qid is not None:
        raise SoftmarginError(f"qid is for a RankSVM: a {type(estimator).__name__} is trained without queries.")
    return model._certified(X, y, **more)
