"""Solutions for a list of C, each started from the last."""

from collections.abc import Iterable
from typing import Any

from sklearn.base import clone

from softmargin.core.errors import SoftmarginError
from softmargin.estimators import validation
from softmargin.estimators.machines.keeping import keeps_training


def c_path(estimator: Any, X: Any, y: Any, Cs: Iterable[float], **fit_params: Any) -> list[Any]:
    """Fit copies of an estimator for each C, every one of them certified.

    From the second on a fit begins where the one before has ended, which takes a fraction of its steps if the values
    are close to each other: coordinate descent and kernel solvers keep their dual variables, scaled to the new range,
    and "ocas" and "cpa" their cutting planes. Solvers whose dual variables are bounded by C gain most where the list
    rises. To choose among the models by held-out rows see `LinearSVCCV` and `SVCCV`; to draw them,
    `RegularizationPathDisplay.from_path`.

    Parameters
    ----------
    estimator : SVC, SVR, LinearSVC, LinearSVR, RankSVM or OrdinalSVC
        Left as it is.
    X, y : as for its `fit`
    Cs : list of float
        In the order in which they are solved.
    **fit_params : as for its `fit`, for example sample_weight

    Returns
    -------
    list of fitted estimators, one for each C

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from softmargin import SVC, c_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> models = c_path(SVC(solver="active_set"), X, y, [0.1, 1.0, 10.0])
    >>> [model.C for model in models]
    [0.1, 1.0, 10.0]
    """
    values = [validation.positive_number(C, "C") for C in Cs]
    if not hasattr(estimator, "warm_start"):
        raise SoftmarginError(
            f"c_path starts each fit from the last, and {type(estimator).__name__} has no warm_start: pass an SVC, a "
            "LinearSVC or another estimator of this library, without a pipeline around it."
        )
    worker = clone(estimator).set_params(warm_start=True)
    models = []
    for C in values:
        worker.set_params(C=C).fit(X, y, **fit_params)
        models.append(_finished(worker, estimator))
    return models


def _finished(worker: Any, like: Any) -> Any:
    """A fitted copy with the parameters of `like` but for C; what the next fit continues from is not in it."""
    model = clone(like).set_params(C=worker.C)
    model.__dict__ |= {name: value for name, value in vars(worker).items() if name not in model.__dict__}
    if not like.warm_start and worker.status_.reached_goal:
        model.__dict__.pop("_state", None)
    if not like.warm_start and hasattr(model, "_training") and not keeps_training(like.solver):
        model._drop_training()
    return model
