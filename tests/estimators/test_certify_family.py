"""certify() of scikit-learn's regressions and one-class models: judged for what they minimise, or refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVR, LinearSVR, NuSVC, NuSVR, OneClassSVM

import softmargin
from softmargin import SoftmarginError, certify


def products(X, Z):
    return np.asarray(X @ Z.T)


def regression(**options):
    return SVR(**{"tol": 1e-7, "epsilon": 0.2, **options})


def one_class(**options):
    return OneClassSVM(**{"tol": 1e-7, "nu": 0.3, **options})


def linear_regression(**options):
    """scikit-learn's LinearSVR, trained until it is quiet."""
    return LinearSVR(**{"tol": 1e-9, "max_iter": 300_000, "C": 0.05, "epsilon": 0.2, "random_state": 0, **options})


KERNELS = [
    {},
    {"kernel": "linear"},
    {"gamma": "auto"},
    {"kernel": "poly", "degree": 2, "gamma": 0.2, "coef0": 1.0},
    {"kernel": products},
]
WEIGHTS = {
    "plain": lambda n: None,
    "weighted": lambda n: np.random.default_rng(0).uniform(0.2, 2.0, n),
    "some zero": lambda n: np.where(np.arange(n) % 3 == 1, 0.0, np.random.default_rng(0).uniform(0.2, 2.0, n)),
}


def named(options):
    """Without the address of a function: all processes that share the tests must call them the same."""
    return str({name: getattr(value, "__name__", value) for name, value in options.items()})


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((90, 5)) + 1.0
    return X, X @ rng.standard_normal(5) + 0.3 * rng.standard_normal(90)


def kernel_values(model, X):
    if callable(model.kernel) or model.kernel == "linear":
        return X @ X.T
    if model.kernel == "poly":
        return (model._gamma * X @ X.T + model.coef0) ** model.degree
    return np.exp(-model._gamma * np.square(X[:, None] - X[None]).sum(axis=2))


@pytest.mark.parametrize("make", [regression, one_class])
class TestKernels:
    @pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
    @pytest.mark.parametrize("options", KERNELS[:4], ids=named)
    @pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
    def test_the_bound_meets_the_value(self, numbers, make, options, weights, storage):
        X, y = numbers
        X, weights = storage(X), weights(len(y))
        model = make(**options).fit(X, y, weights)
        certificate = certify(model, X, y, weights)
        assert -1e-9 <= certificate.relative_gap <= 1e-5
        assert certificate.kkt_violation <= 1e-3

    @pytest.mark.parametrize("options", [*KERNELS[4:], {"kernel": "precomputed"}], ids=named)
    @pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
    def test_kernel_values_that_are_given(self, numbers, make, options, weighted):
        X, y = numbers
        weights = WEIGHTS["weighted"](len(y)) if weighted else None
        data = X @ X.T if options["kernel"] == "precomputed" else X
        given = certify(make(**options).fit(data, y, weights), data, y, weights)
        computed = certify(make(kernel="linear").fit(X, y, weights), X, y, weights)
        assert given.primal == pytest.approx(computed.primal, rel=1e-5)
        assert -1e-9 <= given.relative_gap <= 1e-5

    @pytest.mark.parametrize("options", [*KERNELS[4:], {"kernel": "precomputed"}], ids=named)
    def test_given_kernel_values_and_weights_of_zero(self, numbers, make, options):
        """scikit-learn counts the support vectors without these rows, and predicts with the columns of others."""
        X, y = numbers
        weights = WEIGHTS["some zero"](len(y))
        data = X @ X.T if options["kernel"] == "precomputed" else X
        model = make(**options).fit(data, y, weights)
        with pytest.raises(SoftmarginError, match=r"rows of weight zero.*fit the model on the rows of positive weight"):
            certify(model, data, y, weights)

    @pytest.mark.parametrize("options", KERNELS, ids=named)
    def test_the_value_is_the_objective_by_hand(self, numbers, make, options):
        X, y = numbers
        model = make(**options).fit(X, y)
        beta = np.zeros(len(y))
        beta[model.support_] = model.dual_coef_[0]
        f = kernel_values(model, X) @ beta
        if make is regression:
            losses = model.C * np.maximum(0.0, np.abs(y - f - model.intercept_) - model.epsilon).sum()
        else:
            losses = np.maximum(0.0, model.offset_ - f).sum() - model.offset_[0] * model.nu * len(y)
        certificate = certify(model, X, y)
        assert certificate.primal == pytest.approx(0.5 * beta @ f + losses, rel=1e-9)

    def test_ours_has_the_same_optimum(self, numbers, make, same_optimum):
        X, y = numbers
        theirs = make().fit(X, y)
        name = {regression: "epsilon", one_class: "nu"}[make]
        ours = getattr(softmargin, type(theirs).__name__)(tol=1e-6, **{name: getattr(theirs, name)})
        assert same_optimum(certify(theirs, X, y), ours.fit(X, y).certificate_, slack=1e-6)

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("dual_coef_", lambda coef: 0.7 * coef),
            ("dual_coef_", lambda coef: np.full_like(coef, np.nan)),
            ("intercept_", lambda b: b + 0.3),
        ],
        ids=["shorter", "nan", "intercept"],
    )
    def test_what_is_changed_in_the_model_shows(self, numbers, make, name, change):
        X, y = numbers
        model = make().fit(X, y)
        good = certify(model, X, y)
        setattr(model, name, change(getattr(model, name)))
        poor = certify(model, X, y)
        assert not poor.primal <= good.primal
        assert not poor.dual > good.primal + 1e-9 * abs(good.primal)
        assert not poor.relative_gap <= 1e-3

    def test_other_rows(self, numbers, make):
        X, y = numbers
        model = make().fit(X, y)
        with pytest.raises(SoftmarginError, match="not the rows that X and y have in their places"):
            certify(model, X[::-1], y[::-1])
        with pytest.raises(SoftmarginError, match="trained on 90 rows, but X has 50"):
            certify(model, X[:50], y[:50])
        with pytest.raises(ValueError, match="X has 3 features"):
            certify(model, X[:, :3], y)

    def test_before_fit(self, numbers, make):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            certify(make(), *numbers)

    def test_float32(self, numbers, make):
        X, y = numbers
        X = X.astype(np.float32)
        assert certify(make().fit(X, y), X, y).relative_gap <= 1e-5


def test_a_one_class_model_needs_no_targets(numbers):
    X, _ = numbers
    assert certify(one_class().fit(X), X).relative_gap <= 1e-5


class TestLinear:
    @pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
    @pytest.mark.parametrize(
        "options", [{}, {"intercept_scaling": 4.0}, {"fit_intercept": False}, {"epsilon": 0.0}], ids=str
    )
    def test_it_is_judged_for_what_it_minimises(self, numbers, options, weights):
        X, y = numbers
        weights = weights(len(y))
        model = linear_regression(**options).fit(X, y, weights)
        assert -1e-9 <= certify(model, X, y, weights).relative_gap <= 1e-5

    def test_the_value_is_the_penalised_objective_by_hand(self, numbers):
        X, y = numbers
        model = linear_regression(intercept_scaling=3.0).fit(X, y)
        losses = np.maximum(0.0, np.abs(y - model.predict(X)) - model.epsilon)
        penalty = 0.5 * model.coef_ @ model.coef_ + 0.5 * (model.intercept_[0] / 3.0) ** 2
        assert certify(model, X, y).primal == pytest.approx(penalty + model.C * losses.sum(), rel=1e-12)

    def test_sparse_data(self, numbers):
        X, y = numbers
        X = sp.csr_matrix(np.where(X > 0.7, X, 0.0))
        assert certify(linear_regression().fit(X, y), X, y).relative_gap <= 1e-5

    def test_a_poor_model_is_told_so(self, numbers):
        X, y = numbers
        model = linear_regression().fit(X, y)
        good = certify(model, X, y)
        model.coef_ = 1.5 * model.coef_
        poor = certify(model, X, y)
        assert poor.primal > good.primal
        assert poor.relative_gap > 1e-3
        assert poor.dual <= good.primal * (1 + 1e-9)

    @pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "none"])
    @pytest.mark.parametrize("dual", [True, False], ids=["dual", "primal"])
    def test_the_squared_loss(self, numbers, dual, fit_intercept):
        X, y = numbers
        model = LinearSVR(
            loss="squared_epsilon_insensitive",
            epsilon=0.1,
            dual=dual,
            fit_intercept=fit_intercept,
            intercept_scaling=2.0,
            tol=1e-8,
            max_iter=100_000,
            random_state=0,
        ).fit(X, y)
        found = certify(model, X, y)
        w, b = model.coef_, float(np.ravel(model.intercept_)[0])
        losses = np.maximum(np.abs(y - X @ w - b) - 0.1, 0.0) ** 2
        assert found.primal == pytest.approx(0.5 * (w @ w + (b / 2.0) ** 2) + losses.sum(), rel=1e-9)
        assert found.relative_gap < 1e-5


@pytest.mark.parametrize("model", [NuSVC(), NuSVR()], ids=["NuSVC", "NuSVR"])
def test_nu_is_refused_and_what_can_be_judged_is_named(numbers, model):
    X, y = numbers
    y = np.arange(len(y)) % 2 if isinstance(model, NuSVC) else y
    name = type(model).__name__
    with pytest.raises(SoftmarginError, match=rf"does not judge {name}: .* nu .*SVC, SVR, OneClassSVM, LinearSVC.*"):
        certify(model.fit(X, y), X, y)


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("options", KERNELS[:4], ids=named)
def test_regressions_of_scikit_learn_intelex(numbers, options, weights):
    sklearnex = pytest.importorskip("sklearnex.svm", reason="scikit-learn-intelex is not installed")
    X, y = numbers
    weights = weights(len(y))
    model = sklearnex.SVR(tol=1e-6, **options).fit(X, y, weights)
    assert -1e-9 <= certify(model, X, y, weights).relative_gap <= 1e-4


def test_a_number_of_support_vectors_that_was_left_unset_is_not_believed():
    """Where X is sparse and there are no classes, some versions of scikit-learn leave it to chance."""
    rows = np.random.default_rng(0).standard_normal((40, 3))
    for model in (SVR(), OneClassSVM()):
        model.fit(sp.csr_matrix(rows), rows[:, 0])
        model._n_support = np.array([123_456], dtype=np.int32)
        assert certify(model, sp.csr_matrix(rows), rows[:, 0]).relative_gap < 1e-2
