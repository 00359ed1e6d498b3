"""Judging a fitted model again, also one that another library trained."""

from dataclasses import replace
from inspect import signature
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.svm import SVC as SklearnSVC
from sklearn.svm import LinearSVC as SklearnLinearSVC
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted, validate_data

from softmargin.core.errors import SoftmarginError
from softmargin.core.result import Certificate, PlaneSolution, Solution
from softmargin.core.stopping import Stop
from softmargin.core.threads import Workers, one_blas_thread, thread_count
from softmargin.data.convert import as_rows
from softmargin.data.rows import Rows
from softmargin.estimators import validation
from softmargin.estimators.build import linear_solver, plane_solver, solve_all
from softmargin.estimators.build_kernel import KernelSetting, Pair, pairs_of
from softmargin.estimators.kernel_choice import KERNELS, kernel_of
from softmargin.estimators.linear_svc import LinearSVC, linear_setting
from softmargin.estimators.ordinal_svc import OrdinalSVC, ordinal_setting, ordinal_target, ordinal_weights
from softmargin.estimators.rank_svm import RankSVM, rank_setting, rank_target
from softmargin.estimators.settings import LinearSetting, OrdinalSetting, RankSetting, Setting
from softmargin.estimators.svc import SVC, dual_variables
from softmargin.kernels.cached import CachedRows
from softmargin.kernels.matrix import DirectRows, KernelRows
from softmargin.kernels.precomputed import PrecomputedRows
from softmargin.problems.kernel_certificate import KernelJudge
from softmargin.problems.ordinal import OrdinalSolution
from softmargin.problems.ranking import Witness
from softmargin.solvers.cutting_plane.state import PlaneState

# A model without a dual vector gets one from a solve of our own, to this relative gap.
WITNESS_TOL = 1e-6
WITNESS_MAX_ITER = 5000
# Rows that differ by at most this share of their length are the same; text files round numbers.
_SAME_ROW = 1e-6


def certify(estimator: Any, X: Any, y: Any, sample_weight: Any = None, qid: Any = None) -> Certificate:
    """Primal value, dual bound and gap of a fitted model on its training data.

    Parameters
    ----------
    estimator : a fitted softmargin.LinearSVC, SVC, RankSVM or OrdinalSVC, or scikit-learn's LinearSVC(loss="hinge") or
        SVC
    X, y, sample_weight, qid
        What it was trained on, rows in the same order; for a precomputed kernel X is the kernel matrix. qid is for a
        RankSVM.

    Returns
    -------
    Certificate
        Computed from the data and the model's weights, or support vectors and their coefficients; for several
        sub-problems the sums and the worst relative gap. The dual vector is the model's own if it has one; for another
        library's linear model a solver finds one first (the bound is checked independently of it), and for a ranking
        that keeps no planes one that is as good as the model's certificate says. Where the kernel is indefinite there
        is no bound: dual and gap are nan.
    """
    if isinstance(estimator, RankSVM):
        return _certify_ranking(estimator, X, y, sample_weight, qid)
    if qid is not None:
        raise SoftmarginError(f"qid is for a RankSVM: a {type(estimator).__name__} is trained without queries.")
    if isinstance(estimator, OrdinalSVC):
        return _certify_ordinal(estimator, X, y, sample_weight)
    if isinstance(estimator, SVC | SklearnSVC):
        return _certify_kernel(estimator, X, y, sample_weight)
    return _certify_linear(estimator, X, y, sample_weight)


def _checked_rows(estimator: Any, X: Any, y: Any, accept_sparse: Any = "csr") -> tuple[Any, np.ndarray]:
    check_is_fitted(estimator)
    return validate_data(
        estimator, X, y, reset=False, accept_sparse=accept_sparse, dtype="numeric", accept_large_sparse=True
    )


def _checked(estimator: Any, X: Any, y: Any, accept_sparse: Any = "csr") -> tuple[Any, np.ndarray, np.ndarray]:
    """X, the classes, and for each row the position of its class."""
    X, y = _checked_rows(estimator, X, y, accept_sparse)
    classes, codes = validation.class_labels(y)
    if not np.array_equal(classes, estimator.classes_):
        raise SoftmarginError(
            f"y has the classes {classes.tolist()}, the model {estimator.classes_.tolist()}: "
            "certify a model on the data it was trained on."
        )
    return X, classes, codes


# --- linear models ------------------------------------------------------------------------------------------------


def _certify_linear(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Certificate:
    setting = _setting_of(estimator)
    X, classes, codes = _checked(estimator, X, y)
    coef = np.atleast_2d(estimator.coef_)
    class_weight = _class_weight_of(estimator, classes, codes)
    targets = validation.signed_weights(
        classes, codes, class_weight, sample_weight, rest_unweighted=isinstance(estimator, SklearnLinearSVC)
    )
    intercepts = np.broadcast_to(np.ravel(estimator.intercept_), (len(targets),))
    with one_blas_thread():
        workers = Workers(1)
        rows = as_rows(X, workers)
        alphas = _dual_vectors(estimator, setting, rows, targets)
        parts = [
            setting.judge(rows, v, workers, WITNESS_TOL)(Solution(w, float(b), alpha))
            for v, w, b, alpha in zip(targets, coef, intercepts, alphas, strict=True)
        ]
    return Certificate.combine(parts)


def _class_weight_of(estimator: Any, classes: np.ndarray, codes: np.ndarray) -> Any:
    """The class weights that the estimator was trained with.

    "balanced" counts the weights of the rows, except in scikit-learn's LinearSVC before version 1.7: that counts rows.
    """
    counts_rows = "sample_weight" not in signature(compute_class_weight).parameters
    is_balanced = isinstance(estimator.class_weight, str) and estimator.class_weight == "balanced"
    if isinstance(estimator, SklearnLinearSVC) and is_balanced and counts_rows:
        factors = compute_class_weight("balanced", classes=np.arange(classes.size), y=codes)
        return dict(zip(classes.tolist(), factors.tolist(), strict=True))
    return estimator.class_weight


def _setting_of(estimator: Any) -> LinearSetting:
    if isinstance(estimator, LinearSVC):
        return linear_setting(estimator)
    if not isinstance(estimator, SklearnLinearSVC):
        raise SoftmarginError(
            f"certify() does not know {type(estimator).__name__}: it judges softmargin's RankSVM, OrdinalSVC, "
            "LinearSVC and SVC, and scikit-learn's LinearSVC(loss='hinge') and SVC. For a pipeline give its last step "
            "and the transformed X."
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


# --- rankings and ordered classes ---------------------------------------------------------------------------------


def _certify_ranking(estimator: RankSVM, X: Any, y: Any, sample_weight: Any, qid: Any) -> Certificate:
    setting = rank_setting(estimator)
    X, y = _checked_rows(estimator, X, y)
    target = rank_target(setting, y, qid, sample_weight)
    return _certify_score(estimator, setting, target, X, np.zeros(0))


def _certify_ordinal(estimator: OrdinalSVC, X: Any, y: Any, sample_weight: Any) -> Certificate:
    setting = ordinal_setting(estimator)
    X, y = _checked_rows(estimator, X, y)
    classes, ranks = validation.ordered_classes(y, estimator.classes_)
    weights = ordinal_weights(estimator, classes, ranks, sample_weight)
    target, present = ordinal_target(setting, ranks, weights)
    return _certify_score(estimator, setting, target, X, estimator.thresholds_[present[:-1]])


def _certify_score(
    estimator: Any, setting: RankSetting | OrdinalSetting, target: Any, X: Any, thresholds: np.ndarray
) -> Certificate:
    with one_blas_thread():
        rows = as_rows(X, Workers(1))
        judge = setting.judge(rows, target, Workers(1), WITNESS_TOL)
        if isinstance(setting, RankSetting):
            model = _with_planes(estimator, setting, target, rows)
        else:
            own = getattr(estimator, "dual_", None)
            alpha = np.zeros((rows.n_rows, thresholds.size)) if own is None else own
            model = OrdinalSolution(estimator.coef_, thresholds, alpha)
        found = judge(model)
        if model.alpha.any():
            return found
        witness = _found(estimator, setting, target, rows, found.primal)
        return judge(replace(witness, w=model.w, b=model.b))


def _with_planes(estimator: Any, setting: RankSetting, target: Any, rows: Rows) -> Solution:
    """The model with the planes that it keeps to continue from, if there are any."""
    state = estimator._state[1][0] if hasattr(estimator, "_state") else None
    if not isinstance(state, PlaneState) or not isinstance(state.planes.witnesses[0], Witness):
        return PlaneSolution(estimator.coef_, 0.0, np.empty(0), ())
    problem = setting.problem(rows, target, Workers(1))
    return problem.solution(estimator.coef_, state.best.f, state.planes.witnesses, state.gamma)


def _found(estimator: Any, setting: Setting, target: Any, rows: Rows, primal: float) -> Solution:
    """A solution whose bound is as good for a model of this value as the model's own was, if that is known."""
    wanted = primal * (1.0 - estimator.certificate_.relative_gap)
    [result] = solve_all(
        plane_solver(estimator.solver),
        setting,
        rows,
        [target],
        Stop(tol=WITNESS_TOL, max_iter=WITNESS_MAX_ITER),
        n_threads=thread_count(estimator.n_jobs),
        observers=lambda k, candidate: [lambda record, state: record.dual >= wanted],
    )
    return result.solution


# --- kernel models ------------------------------------------------------------------------------------------------


def _certify_kernel(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Certificate:
    """One pair of classes after the other, with kernel values in double precision."""
    is_precomputed = isinstance(estimator.kernel, str) and estimator.kernel == "precomputed"
    X, classes, codes = _checked(estimator, X, y, accept_sparse=False if is_precomputed else "csr")
    model = _plain_model(estimator)
    base = validation.row_weights(sample_weight, codes.size)
    factors = getattr(estimator, "class_weight_", None)  # those of the fit; an imported model has none
    if factors is None:
        factors = validation.class_weights(estimator.class_weight, classes, codes, base)
    weights = base * factors[codes]
    validation.two_classes_left(codes, weights)
    with one_blas_thread():
        workers = Workers(thread_count(getattr(estimator, "n_jobs", None)))
        try:
            rows = as_rows(X, workers)
            if is_precomputed:
                validation.kernel_matrix(rows.native())
            model.support_ = _support_rows(estimator, model.dual_coef_, rows, codes, base)
            pairs = pairs_of(codes, classes.size, weights)
            setting = KernelSetting(float(estimator.C), kernel_of(model))
            is_convex = setting.looks_convex(rows)
            parts = [
                _judge(setting, rows, pair, workers, is_convex=is_convex)(Solution(np.empty(0), float(b), alpha))
                for pair, b, alpha in zip(pairs, estimator.intercept_, _alphas(model, pairs, codes.size), strict=True)
                if pair.index.size
            ]
        finally:
            workers.close()
    return Certificate.combine(parts)


def _plain_model(estimator: Any) -> SimpleNamespace:
    """Kernel and coefficients under the names that our own models have for them."""
    name = "gamma_" if isinstance(estimator, SVC) else "_gamma"
    if not hasattr(estimator, name):
        raise SoftmarginError(
            f"this {type(estimator).__name__} does not tell which gamma it was trained with (it has no {name!r}): "
            "certify() judges softmargin.SVC and scikit-learn's SVC."
        )
    if not callable(estimator.kernel):
        validation.one_of(estimator.kernel, "kernel", KERNELS)
    coefficients = as_rows(estimator.dual_coef_)  # scikit-learn keeps them sparse if X was
    return SimpleNamespace(
        kernel=estimator.kernel,
        gamma_=getattr(estimator, name),
        degree=estimator.degree,
        coef0=estimator.coef0,
        dual_coef_=coefficients.densified(np.arange(coefficients.n_rows), np.float64),
    )


def _support_rows(
    estimator: Any, coefficients: np.ndarray, rows: Rows, codes: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Where the support vectors stand among the rows."""
    found, owners = estimator.support_, np.repeat(np.arange(estimator.n_support_.size), estimator.n_support_)
    vectors = as_rows(estimator.support_vectors_)  # none if the kernel is precomputed
    if found.size < owners.size:  # an imported model does not tell
        return _matched(vectors, owners, rows, codes)
    n_trained = estimator.shape_fit_[0]
    if n_trained != rows.n_rows:
        raise SoftmarginError(
            f"the model was trained on {n_trained} rows, but X has {rows.n_rows}: certify a model on the rows it was "
            "trained on, in the same order."
        )
    orders = [owners]
    if len(coefficients) == 1:  # scikit-learn-intelex keeps the order of X, and signs tell two classes apart
        orders.append(coefficients[0] > 0)
    candidates = [found]
    kept = np.flatnonzero(weights)
    if vectors.n_rows and found.max(initial=-1) < kept.size:
        candidates.append(kept[found])  # LIBSVM within scikit-learn counts without the rows of weight zero
    for index in candidates:
        same_classes = any(np.array_equal(codes[index], expected) for expected in orders)
        if same_classes and (not vectors.n_rows or _are_same(rows.take(index), vectors)):
            return index
    raise SoftmarginError(
        "the support vectors of the model are not the rows that X and y have in their places: certify a model on the "
        "rows it was trained on, in the same order and with the same weights."
    )


def _probe(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """A number for each row, dense or sparse, and how far those of equal rows may be apart."""
    probe = np.random.default_rng(0).uniform(0.5, 1.5, rows.n_cols)
    return rows.dot(probe), _SAME_ROW * np.sqrt(rows.sq_norms() * (probe @ probe))


def _are_same(first: Rows, second: Rows) -> bool:
    (numbers, slack), (others, _) = _probe(first), _probe(second)
    return bool((np.abs(numbers - others) <= slack).all())


def _matched(vectors: Rows, owners: np.ndarray, rows: Rows, codes: np.ndarray) -> np.ndarray:
    """Rows that equal the support vectors and are of their classes, each of them once."""
    (wanted, slack), (numbers, _) = _probe(vectors), _probe(rows)
    index = np.empty(owners.size, dtype=np.int64)
    left = iter(np.lexsort((numbers, codes)).tolist())
    for k in np.lexsort((wanted, owners)).tolist():
        lowest = (owners[k], wanted[k] - slack[k])
        row = next((row for row in left if (codes[row], numbers[row]) >= lowest), None)
        if row is None or (codes[row], numbers[row]) > (owners[k], wanted[k] + slack[k]):
            raise SoftmarginError(
                "some support vectors of the model are not among the rows of their class: certify a model on the rows "
                "it was trained on, with as many digits."
            )
        index[k] = row
    return index


def _alphas(model: Any, pairs: list[Pair], n_rows: int) -> list[np.ndarray]:
    betas = dual_variables(model, n_rows, pairs)
    return [beta * np.sign(pair.signed_weights) for beta, pair in zip(betas, pairs, strict=True)]


def _judge(setting: KernelSetting, rows: Rows, pair: Pair, workers: Workers, *, is_convex: bool) -> KernelJudge:
    """The judge of a pair, over kernel rows that are computed block by block and not kept."""
    source: KernelRows
    if setting.kernel is None:
        source = PrecomputedRows(rows.native(), pair.index)
    else:
        source = DirectRows(rows.take(pair.index), setting.kernel, np.float64, workers)
    two_rows = 2.0 * source.n * source.dtype.itemsize
    return KernelJudge(CachedRows(source, two_rows, workers), pair.signed_weights, setting.C, is_convex, WITNESS_TOL)
