"""The kernel support vector classifier."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from softmargin.core.errors import SoftmarginError
from softmargin.estimators import validation
from softmargin.estimators.callbacks import with_callbacks
from softmargin.estimators.incremental import IncrementalMixin, can_learn
from softmargin.estimators.machines import svc as machine
from softmargin.estimators.surface import KernelEstimator


class SVC(IncrementalMixin, ClassifierMixin, KernelEstimator, machine.SVC):
    """Support vector classification with a kernel, exact and with a certificate.

    Minimises ``1/2 |w|^2 + C * sum_i s_i max(0, 1 - y_i (w.phi(x_i) + b))`` through its dual, where phi is the feature
    map of the kernel. More than two classes are trained one against one, over one cache of kernel values.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum of hinge losses; larger means less regularisation.
    kernel : {"rbf", "linear", "poly", "sigmoid", "laplacian", "precomputed"} or callable, default="rbf"
        A callable ``k(X, Z)`` is given two blocks of rows and returns their matrix. With "precomputed" X is the
        symmetric kernel matrix (an array or a memory map) when fitting, and K(new rows, training rows) when predicting.
    gamma : {"scale", "auto"} or float, default="scale"
        Of "rbf", "poly", "sigmoid" and "laplacian". "scale" is 1 / (n_features * X.var()), where rows count as often as
        their sample weight says; "auto" is 1 / n_features.
    degree : int, default=3
        Of "poly".
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".
    solver : {"auto", "block", "smo", "active_set", "ipm"} or solver object, default="auto"
        "block" works on blocks of variables, "smo" on pairs; "auto" is "block", unless the cache holds fewer than 128
        rows. "active_set" ends at the exact partition into free and bounded variables, whatever `tol`; its options are
        those of `softmargin.ActiveSet`. "ipm", an interior point method, is for kernel matrices of low rank, such as
        the linear kernel's with few features; it refuses others.
    working_set : {"auto", "most_violating_pair", "second_order", "maximum_gain", "hybrid_maximum_gain", \
"gain_one_row", "gain_all_cached", "gain_recent_rows", "greedy", "decomposition", "gain_sets"}, default="auto"
        How "smo" chooses its pair; any but "auto" implies ``solver="smo"``. "auto" is "second_order" where the cache
        holds a tenth of the kernel matrix, else "hybrid_maximum_gain".
    shrinking : bool, default=True
        Whether "smo" sets variables aside that seem to stay at a bound. "block" does not shrink.
    cache_bytes : float or None, default=None
        Memory for kernel values. None is a quarter of the memory that is free, at most the whole matrix. What "smo"
        keeps of the matrix while variables are set aside is in it.
    cache_size : float or None, default=None
        The same in MB (2^20 bytes), as scikit-learn has it. Give one of the two at most.
    tol : float, default=1e-3
        Stop when the relative duality gap, or the KKT violation, is at most this, confirmed by the judge. Below 1e-4
        kernel values are kept in double precision; for "active_set" and "ipm" they always are.
    stopping : {"gap", "kkt", "gain"}, default="gap"
        What `tol` is for: "gap" is (primal - dual) / primal, "kkt" LIBSVM's violation, "gain" the HMG paper's rule for
        pairs that are chosen by their gain, which implies ``solver="smo"``: such a step is shorter than `tol`, and
        LIBSVM's violation is at most `tol` too. A solver object with ``stopping="kkt"`` asks for the same;
        ``SMO(stopping="gain", strict=False)`` ends at the short step, as the paper does.
    class_weight : dict, "balanced" or None, default=None
        Factor on the weights of each class's rows.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Of the scores for more than two classes: a column a class, or a column a pair.
    max_iter : int or None, default=None
        Limit on the iterations of each pair of classes: rounds of "block", pair steps of "smo", pivots of "active_set"
        (the last two are looked at after slices of steps, so a few more are made). None or -1 is no limit.
    max_seconds : float or None, default=None
        Limit on the time of solving, all pairs of classes together.
    n_jobs : int or None, default=None
        Threads for kernel values and sums: None is one, -1 all. The result is the same, bit for bit.
    warm_start : bool, default=False
        Continue from the last fit: exactly, if data, weights, kernel and its precision (see `tol`) are the same; else
        from its dual variables, if there are as many rows.
    random_state : int, RandomState instance or None, default=None
        There for pipelines that set it; no solver of this class draws at random.
    verbose : int, default=0
        1 shows a progress line.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_ (linear kernel), classes_, class_weight_, \
fit_status_, shape_fit_, n_iter_, n_features_in_, feature_names_in_ : as in scikit-learn's SVC
    gamma_ : float
        The gamma that was used.
    certificate_ : Certificate
        `primal`, `dual`, `gap`, `relative_gap`, `kkt_violation`, as the judge found them; for several pairs the sums,
        and the worst relative gap. Without a bound (an indefinite kernel) dual and gap are nan.
    certificates_ : list of Certificate
        One for each pair of classes.
    status_ : Status
        How the fit ended (for several pairs: the worst of their endings).
    trace_ : Trace or list of Trace
        Primal, dual and kernel evaluations over iterations and seconds.
    row_ids_ : array of shape (n_rows,)
        Of the training rows, for `forget`: there if the model keeps them, that is with ``solver="active_set"``,
        ``warm_start=True`` or after `partial_fit`.
    n_free_, n_bounded_ : array of shape (n_pairs,)
        How many dual variables lie strictly between their bounds, and how many at the upper one.
    counts_ : dict
        `iterations`, `pair_steps`, `kernel_evaluations`, cache `hits` and `misses`, `unshrinkings`, over all pairs; of
        the active set also major iterations (`majors`), `refactorisations` and `degenerate` steps.
    seconds_ : dict
        Seconds on the wall in all ("total") and compiling ("compile"), and those of judging ("judge"), added up over
        the pairs of classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from softmargin import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(C=10).fit(X, y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    fit = with_callbacks(machine.SVC.fit)

    @available_if(can_learn)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> "SVC":
        """Learn more rows: the model is then that of a fit on all rows so far, at a fraction of its cost.

        The optimum is restored by pivots of the active set, whatever `solver` is, and judged as after `fit`. What `fit`
        takes from the data is that of the first call: `gamma_` ("scale") and `class_weight_` ("balanced").

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        classes : array-like of shape (n_classes,), default=None
            All classes there will be; needed in the first call if not all of them are in y. As long as only one of them
            has rows the model predicts that one.
        sample_weight : array-like of shape (n_rows,), default=None

        Returns
        -------
        self
            The new rows have ids of their own at the end of `row_ids_`. After Ctrl-C the model knows the new rows, with
            the best solution so far, and the interrupt is raised again; the next call goes on from there.
        """
        if not hasattr(self, "dual_coef_"):
            return self._fit(X, y, sample_weight, solver=self._active_set(), all_classes=classes, copy=True)
        training = self._known_training()
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise SoftmarginError(
                f"classes={classes!r} are not those of the first call, {self.classes_.tolist()}: leave them out, or "
                "fit a new model."
            )
        X, y = self._validated(X, y=y, reset=False)
        return self._change(self._adding(X, validation.codes_among(y, self.classes_), sample_weight), training)
