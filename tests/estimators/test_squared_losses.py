"""LinearSVC and LinearSVR with squared losses: the objective of scikit-learn, solved by coordinate descent."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import load_digits, make_classification, make_regression

from softmargin import (
    OCAS,
    SGD,
    ConvergenceWarning,
    CoordinateDescent,
    LinearSVC,
    LinearSVR,
    Newton,
    SoftmarginError,
    Status,
    c_path,
    certify,
    load,
)

INTERCEPTS = [{}, {"intercept": "penalised"}, {"intercept": "penalised", "intercept_scaling": 3.0}]
INTERCEPTS += [{"fit_intercept": False}]
SQUARED = {"LinearSVC": "squared_hinge", "LinearSVR": "squared_epsilon_insensitive"}


@pytest.fixture(scope="module")
def classes():
    return make_classification(150, 8, n_informative=5, flip_y=0.15, random_state=1)


@pytest.fixture(scope="module")
def numbers():
    X, y = make_regression(120, 6, noise=20.0, random_state=2)
    return X, y / y.std() + 2.0


def classifier(C=1.0, **options):
    return LinearSVC(C, **{"loss": "squared_hinge", "tol": 1e-7, **options})


def regression(C=1.0, **options):
    return LinearSVR(C, **{"loss": "squared_epsilon_insensitive", "epsilon": 0.2, "tol": 1e-7, **options})


def b_weight(model):
    """What the intercept adds to the objective."""
    return 0.5 * float(model.intercept_[0] / model.intercept_scaling) ** 2 if model.intercept == "penalised" else 0.0


def objective(model, X, y, weights=1.0):
    w, b = np.ravel(model.coef_), float(model.intercept_[0])
    f = X @ w + b
    if isinstance(model, LinearSVC):
        losses = np.maximum(0.0, 1.0 - np.where(y == model.classes_[1], 1.0, -1.0) * f)
    else:
        losses = np.maximum(0.0, np.abs(y - f) - model.epsilon)
    return 0.5 * w @ w + b_weight(model) + model.C * float(np.sum(weights * losses**2))


@pytest.mark.parametrize("options", INTERCEPTS, ids=str)
@pytest.mark.parametrize("C", [1e-4, 1.0, 30.0])
@pytest.mark.parametrize("make", [classifier, regression])
def test_the_certificate_is_about_the_squared_loss(classes, numbers, make, C, options):
    X, y = classes if make is classifier else numbers
    model = make(C, **options).fit(X, y)
    assert model.status_ is Status.OPTIMAL
    assert model.certificate_.primal == pytest.approx(objective(model, X, y), rel=1e-10)
    assert model.certificate_.relative_gap <= 1e-7
    # the dual value by its definition: no upper limit, and a price for each variable
    beta = model.dual_ if make is regression else model.dual_ * np.where(y == 1, 1.0, -1.0)
    linear = np.abs(beta).sum() if make is classifier else y @ beta - model.epsilon * np.abs(beta).sum()
    square = float(np.sum((X.T @ beta) ** 2))
    if "intercept" in options:
        square += (model.intercept_scaling * beta.sum()) ** 2
    dual = linear - 0.25 * float(beta @ beta) / C - 0.5 * square
    assert model.certificate_.dual == pytest.approx(dual, rel=1e-6)
    assert options or abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()


@pytest.mark.parametrize("options", INTERCEPTS[1:], ids=str)
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_as_good_as_scikit_learn(classes, numbers, C, options):
    """LIBLINEAR has the same objective, with a penalised intercept or none."""
    scaling = options.get("intercept_scaling", 1.0)
    same = {"C": C, "dual": False, "tol": 1e-10, "max_iter": 100_000, "intercept_scaling": scaling}
    same["fit_intercept"] = options.get("fit_intercept", True)
    pairs = [
        (classifier(C, **options), sklearn.svm.LinearSVC(**same), classes),
        (
            regression(C, **options),
            sklearn.svm.LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.2, **same),
            numbers,
        ),
    ]
    for ours, theirs, (X, y) in pairs:
        ours.fit(X, y)
        theirs.fit(X, y)
        np.testing.assert_allclose(np.ravel(theirs.coef_), np.ravel(ours.coef_), rtol=0, atol=2e-3)
        found = certify(theirs, X, y)
        assert found.relative_gap <= 1e-5
        assert found.primal == pytest.approx(ours.certificate_.primal, rel=1e-5)
        assert found.dual <= ours.certificate_.primal
        assert ours.certificate_.dual <= found.primal


@pytest.mark.parametrize("dual", [True, False], ids=["dual", "primal"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_certify_judges_the_default_of_scikit_learn(classes, dual, weighted):
    X, y = classes
    weights = np.random.default_rng(0).integers(0, 4, len(y)) if weighted else None
    model = sklearn.svm.LinearSVC(dual=dual, tol=1e-8, max_iter=100_000, random_state=0, class_weight={0: 2.0})
    found = certify(model.fit(X, y, sample_weight=weights), X, y, sample_weight=weights)
    assert found.relative_gap <= 1e-5
    model.coef_ = 1.5 * model.coef_
    assert certify(model, X, y, sample_weight=weights).relative_gap > 1e-3


def test_several_classes():
    X, y = load_digits(n_class=4, return_X_y=True)
    X = X[:200] / 16.0
    model = classifier(0.1, intercept="penalised", tol=1e-6).fit(X, y[:200])
    theirs = sklearn.svm.LinearSVC(C=0.1, dual=False, tol=1e-10).fit(X, y[:200])
    assert model.coef_.shape == (4, 64)
    assert len(model.certificates_) == 4
    np.testing.assert_allclose(model.decision_function(X), theirs.decision_function(X), atol=1e-2)
    assert (model.predict(X) == theirs.predict(X)).mean() > 0.99


@pytest.mark.parametrize("options", INTERCEPTS, ids=str)
@pytest.mark.parametrize("make", [classifier, regression])
def test_a_weight_of_two_is_the_row_twice_and_zero_leaves_it_out(classes, numbers, make, options):
    X, y = classes if make is classifier else numbers
    weights = np.random.default_rng(3).integers(0, 3, len(y))
    weighted = make(**options).fit(X, y, sample_weight=weights)
    repeated = make(**options).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=2e-7)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-3)
    assert not weighted.dual_[weights == 0].any()


def test_class_weights_are_sample_weights(classes):
    X, y = classes
    by_class = classifier(class_weight={0: 1.0, 1: 5.0}).fit(X, y)
    by_row = classifier().fit(X, y, sample_weight=np.where(y == 1, 5.0, 1.0))
    np.testing.assert_array_equal(by_class.coef_, by_row.coef_)


@pytest.mark.parametrize("make", [classifier, regression])
def test_every_storage_gives_the_same_model(classes, numbers, make):
    X, y = classes if make is classifier else numbers
    plain = make().fit(X, y)
    for stored in (np.asfortranarray(X), sp.csr_matrix(X), sp.csr_array(X)):
        other = make().fit(stored, y)
        np.testing.assert_allclose(other.coef_, plain.coef_, atol=1e-3)
        assert other.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2e-7)


def test_numbers_that_fit_into_the_tube_cost_nothing():
    X = np.array([[1.0], [2.0], [4.0]])
    model = regression(epsilon=5.0).fit(X, np.array([7.0, 8.0, 9.0]))
    assert model.certificate_.primal < 1e-300
    assert model.coef_[0] == 0.0
    assert model.status_ is Status.OPTIMAL


def test_one_row_has_a_solution_by_hand():
    """No intercept, x = 2, y = 3, epsilon = 1: 1/2 w^2 + C (2 - 2 w)^2 is least at w = 8 C / (1 + 8 C)."""
    for C in (0.125, 1.0):
        model = regression(C, epsilon=1.0, fit_intercept=False, tol=1e-12).fit([[2.0]], [3.0])
        assert model.coef_[0] == pytest.approx(8 * C / (1 + 8 * C), rel=1e-6)


class TestSolvers:
    @pytest.mark.parametrize("solver", ["ocas", "cpa", "sgd", "pegasos", OCAS(), SGD(seed=0)], ids=repr)
    def test_others_are_refused(self, classes, solver):
        X, y = classes
        with pytest.raises(
            SoftmarginError, match=r"cannot minimise loss='squared_hinge'.*'auto', 'coordinate' or 'newton'"
        ):
            classifier(solver=solver).fit(X, y)

    def test_others_are_refused_for_numbers(self, numbers):
        X, y = numbers
        with pytest.raises(SoftmarginError, match="cannot minimise loss='squared_epsilon_insensitive'"):
            regression(solver="ocas").fit(X, y)

    def test_unknown_ones_too(self, classes):
        with pytest.raises(SoftmarginError, match="solver='smo' is unknown: choose one of 'auto', 'coordinate'"):
            classifier(solver="smo").fit(*classes)

    @pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive", None])
    def test_unknown_losses(self, classes, loss):
        with pytest.raises(SoftmarginError, match=r"loss=.* is unknown: choose one of 'hinge', 'squared_hinge'"):
            classifier(loss=loss).fit(*classes)

    def test_auto_is_newton_and_names_are_objects(self, classes):
        X, y = classes
        for solvers in (("auto", "newton", Newton()), ("coordinate", CoordinateDescent())):
            found = [classifier(solver=solver).fit(X, y).coef_ for solver in solvers]
            for coef in found[1:]:
                np.testing.assert_array_equal(found[0], coef)

    def test_it_begins_with_another_seed(self, classes):
        one, two = (classifier(solver="coordinate", random_state=seed).fit(*classes) for seed in (1, 2))
        assert (one.coef_ != two.coef_).any()
        assert one.certificate_.primal == pytest.approx(two.certificate_.primal, rel=2e-7)


class TestGoingOn:
    def test_a_warm_start_is_of_one_loss_only(self, classes):
        X, y = classes
        model = classifier(solver="coordinate", warm_start=True, tol=1e-5).fit(X, y)
        n_before = model.n_iter_
        assert model.set_params(tol=1e-7).fit(X, y).n_iter_ > n_before
        squared = model._state[0]
        model.set_params(loss="hinge", solver="coordinate", tol=1e-3).fit(X, y)
        assert model._state[0] != squared
        fresh = LinearSVC(solver="coordinate", tol=1e-3).fit(X, y)
        assert model.certificate_.primal == pytest.approx(fresh.certificate_.primal, rel=2e-3)

    @pytest.mark.parametrize("make", [classifier, regression])
    def test_a_path(self, classes, numbers, make):
        X, y = classes if make is classifier else numbers
        for C, model in zip([0.1, 1.0], c_path(make(), X, y, [0.1, 1.0]), strict=True):
            assert model.status_ is Status.OPTIMAL
            assert model.certificate_.primal == pytest.approx(make(C).fit(X, y).certificate_.primal, rel=3e-7)

    @pytest.mark.parametrize("make", [classifier, regression])
    def test_a_file_keeps_loss_and_state(self, classes, numbers, make, tmp_path):
        X, y = classes if make is classifier else numbers
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = make(max_iter=1, tol=1e-9).fit(X, y)
        model.save(tmp_path / "model", include_training_state=True)
        again = load(tmp_path / "model")
        assert again.loss == SQUARED[type(model).__name__]
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        again.set_params(warm_start=True, max_iter=None, tol=1e-7).fit(X, y)
        assert again.status_ is Status.OPTIMAL
        assert certify(again, X, y).relative_gap <= 1e-7

    @pytest.mark.parametrize("make", [classifier, regression])
    def test_liblinear_text_tells_the_loss(self, classes, numbers, make, tmp_path):
        X, y = classes if make is classifier else numbers
        model = make(intercept="penalised").fit(X, y)
        model.save(tmp_path / "model", format="liblinear")
        kind = "SVC" if make is classifier else "SVR"
        assert f"solver_type L2R_L2LOSS_{kind}_DUAL\n" in (tmp_path / "model").read_text()
        again = load(tmp_path / "model")
        assert again.loss == model.loss
        if make is regression:
            again.epsilon = model.epsilon
        assert certify(again, X, y).relative_gap <= 1e-5
