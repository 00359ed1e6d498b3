"""certify(): judging models again, scikit-learn's among them, and what it refuses."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC as SklearnSVC
from sklearn.svm import LinearSVC as SklearnLinearSVC

from softmargin import SVC, Certificate, LinearSVC, SoftmarginError, certify, load


def liblinear(**options):
    """scikit-learn's LinearSVC with the hinge loss, trained until it is quiet."""
    return SklearnLinearSVC(**{"loss": "hinge", "tol": 1e-7, "max_iter": 200_000, "random_state": 0, **options})


class TestScikitLearn:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"C": 0.05},
            {"intercept_scaling": 4.0},
            {"intercept_scaling": 0.25},
            {"fit_intercept": False},
            {"class_weight": {0: 3.0, 1: 0.5}},
            {"class_weight": "balanced"},
        ],
        ids=str,
    )
    @pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
    def test_two_classes_are_judged_for_what_they_minimise(self, binary, options, weighted):
        X, y = binary
        weights = np.random.default_rng(0).uniform(0.2, 2, len(y)) if weighted else None
        model = liblinear(**options).fit(X + 0.5, y, weights)
        certificate = certify(model, X + 0.5, y, weights)
        assert isinstance(certificate, Certificate)
        assert -1e-9 <= certificate.relative_gap <= 1e-5

    def test_the_value_is_the_penalised_objective_by_hand(self, binary, hinge_objective):
        X, y = binary
        model = liblinear(intercept_scaling=3.0).fit(X, y)
        by_hand = hinge_objective(model, X, y) + 0.5 * (model.intercept_[0] / 3.0) ** 2
        assert certify(model, X, y).primal == pytest.approx(by_hand, rel=1e-12)

    def test_several_classes(self, three_classes):
        X, y = three_classes
        model = liblinear().fit(X, y)
        certificate = certify(model, X, y)
        assert -1e-9 <= certificate.relative_gap <= 1e-5
        ours = LinearSVC(tol=1e-6, intercept="penalised").fit(X, y).certificate_
        assert certificate.primal == pytest.approx(ours.primal, rel=1e-5)

    def test_several_classes_without_intercept(self, three_classes):
        X, y = three_classes
        assert certify(liblinear(fit_intercept=False).fit(X, y), X, y).relative_gap <= 1e-5

    @pytest.mark.parametrize("class_weight", [{0: 4.0, 2: 0.5}, "balanced"], ids=str)
    def test_several_classes_with_class_weights(self, three_classes, class_weight):
        """LIBLINEAR weighs the rows of the one class only, and the rest by 1: that is the objective to judge."""
        X, y = three_classes
        keep = np.flatnonzero((y != 0) | (np.arange(len(y)) % 3 == 0))  # so that "balanced" is not 1 everywhere
        X, y = X[keep], y[keep]
        model = liblinear(class_weight=class_weight).fit(X, y)
        assert certify(model, X, y).relative_gap <= 1e-5

    def test_sparse_data(self, binary):
        X, y = binary
        X = np.where(np.abs(X) > 0.7, X, 0.0)
        model = liblinear().fit(sp.csr_matrix(X), y)
        sparse, dense = certify(model, sp.csr_matrix(X), y), certify(model, X, y)
        assert sparse.primal == pytest.approx(dense.primal)
        assert sparse.relative_gap <= 1e-5

    def test_string_labels(self, binary):
        X, y = binary
        names = np.array(["ham", "spam"])[y]
        assert certify(liblinear().fit(X, names), X, names).relative_gap <= 1e-5

    def test_a_poor_model_is_told_so(self, binary):
        X, y = binary
        model = liblinear().fit(X, y)
        good = certify(model, X, y)
        model.coef_ = model.coef_ * 1.5
        poor = certify(model, X, y)
        assert poor.primal > good.primal
        assert poor.relative_gap > 1e-3
        assert poor.dual <= good.primal * (1 + 1e-9)


class TestRefusals:
    def test_another_penalty(self, binary):
        X, y = binary
        model = SklearnLinearSVC(penalty="l1").fit(X, y)
        with pytest.raises(SoftmarginError, match=r"another objective \(penalty='l1'.*only penalty='l2'"):
            certify(model, X, y)

    def test_the_crammer_singer_form(self, three_classes):
        X, y = three_classes
        model = liblinear(multi_class="crammer_singer").fit(X, y)
        found = certify(model, X, y)
        assert 0.0 < found.dual <= found.primal

    @pytest.mark.parametrize("other", [LogisticRegression(), object()], ids=lambda m: type(m).__name__)
    def test_other_estimators(self, binary, other):
        name = type(other).__name__
        with pytest.raises(SoftmarginError, match=rf"does not know {name}: it judges .*SVC, SVR, .*LinearSVR"):
            certify(other, *binary)

    @pytest.mark.parametrize("model", [LinearSVC(), liblinear()], ids=["softmargin", "scikit-learn"])
    def test_before_fit(self, binary, model):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            certify(model, *binary)

    @pytest.mark.parametrize("make", [LinearSVC, liblinear], ids=["softmargin", "scikit-learn"])
    def test_wrong_number_of_features(self, binary, make):
        X, y = binary
        model = make().fit(X, y)
        with pytest.raises(ValueError, match=r"X has 5 features, but LinearSVC is expecting 8"):
            certify(model, X[:, :5], y)

    def test_other_rows(self, binary):
        X, y = binary
        model = LinearSVC().fit(X, y)
        with pytest.raises(
            SoftmarginError, match=r"200 entries for 150 rows: certify a model on the rows it was trained"
        ):
            certify(model, X[:150], y[:150])

    def test_other_classes(self, binary):
        X, y = binary
        with pytest.raises(SoftmarginError, match=r"y has the classes \[3, 4\], the model \[0, 1\]"):
            certify(LinearSVC().fit(X, y), X, y + 3)

    def test_labels_of_another_length(self, binary):
        X, y = binary
        with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[200, 199\]"):
            certify(LinearSVC().fit(X, y), X, y[:-1])

    def test_not_a_number(self, binary):
        X, y = binary
        model = LinearSVC().fit(X, y)
        X = X.copy()
        X[0, 0] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            certify(model, X, y)

    @pytest.mark.parametrize("name", ["coef_", "intercept_"])
    def test_a_model_that_is_not_finite_is_no_good_certificate(self, binary, name):
        """NaN in the model gives a gap that no tolerance accepts, never a small one."""
        X, y = binary
        model = LinearSVC().fit(X, y)
        setattr(model, name, np.full_like(getattr(model, name), np.nan))
        assert not certify(model, X, y).relative_gap <= 1.0


class TestTampering:
    """The judge trusts the data alone: what is changed in the model shows in the certificate."""

    @pytest.fixture
    def optimum(self, binary):
        return LinearSVC(tol=1e-9).fit(*binary).certificate_

    @pytest.mark.parametrize("factor", [0.0, 0.9, 1.1, -1.0])
    def test_weights(self, binary, optimum, factor):
        X, y = binary
        model = LinearSVC(tol=1e-4).fit(X, y)
        model.coef_ = model.coef_ * factor
        found = certify(model, X, y)
        assert found.primal > model.certificate_.primal
        assert found.dual == pytest.approx(model.certificate_.dual)
        assert found.relative_gap > 1e-3

    def test_intercept(self, binary):
        X, y = binary
        model = LinearSVC(tol=1e-4).fit(X, y)
        model.intercept_ = model.intercept_ + 0.5
        assert certify(model, X, y).relative_gap > 1e-3

    @pytest.mark.parametrize(
        "change",
        [
            lambda alpha: alpha * 0.5,
            lambda alpha: alpha * 2.0,
            lambda alpha: alpha + 0.3,
            lambda alpha: -alpha,
            lambda alpha: np.full_like(alpha, 1e12),
            lambda alpha: np.full_like(alpha, np.nan),
            lambda alpha: np.full_like(alpha, np.inf),
            lambda alpha: np.where(np.arange(alpha.size) % 2 == 0, np.nan, alpha),
            lambda alpha: alpha[::-1],
            lambda alpha: np.where(alpha > 0, 1.0, 0.0),
        ],
        ids=[
            "half",
            "double",
            "shifted",
            "negative",
            "huge",
            "nan",
            "infinite",
            "half nan",
            "reversed",
            "at bound",
        ],
    )
    @pytest.mark.parametrize("options", [{}, {"intercept": "penalised"}, {"fit_intercept": False}], ids=str)
    def test_dual_vector_never_lifts_the_bound_above_the_optimum(self, binary, change, options):
        X, y = binary
        optimum = LinearSVC(tol=1e-9, **options).fit(X, y).certificate_
        model = LinearSVC(tol=1e-4, **options).fit(X, y)
        model.dual_ = change(model.dual_)
        found = certify(model, X, y)
        assert found.dual <= optimum.primal * (1 + 1e-12)
        assert found.dual < model.certificate_.dual
        assert found.primal == pytest.approx(model.certificate_.primal)
        assert found.relative_gap > model.certificate_.relative_gap

    def test_random_dual_vectors_never_pass_the_optimum(self, binary, optimum):
        X, y = binary
        model = LinearSVC().fit(X, y)
        good, rng = model.dual_, np.random.default_rng(31)
        for size in (1e-3, 1e-1, 1.0, 10.0):
            for _ in range(10):
                model.dual_ = good + size * rng.standard_normal(good.size)
                assert certify(model, X, y).dual <= optimum.primal * (1 + 1e-12)

    def test_other_data_or_weights(self, binary):
        X, y = binary
        model = LinearSVC(tol=1e-4).fit(X, y)
        assert certify(model, X[::-1].copy(), y[::-1].copy()).relative_gap > 1e-3
        assert certify(model, X, 1 - y).relative_gap > 1e-3
        assert certify(model, X, y, np.linspace(0.1, 3, len(y))).relative_gap > 1e-3

    def test_another_C(self, binary):
        X, y = binary
        model = LinearSVC(tol=1e-4).fit(X, y).set_params(C=5.0)
        assert certify(model, X, y).relative_gap > 1e-3


def test_a_certificate_reads_as_a_sentence(binary):
    certificate = LinearSVC().fit(*binary).certificate_
    text = str(certificate)
    for part in (
        f"{certificate.primal:.10g}",
        f"{certificate.dual:.10g}",
        f"{certificate.gap:.3g}",
        "relative",
        "KKT",
    ):
        assert part in text


def test_certify_does_not_change_the_model_or_the_data(binary):
    X, y = binary
    model = LinearSVC().fit(X, y)
    before = {name: np.copy(getattr(model, name)) for name in ("coef_", "intercept_", "dual_")}
    data = X.copy()
    certify(model, X, y)
    np.testing.assert_array_equal(X, data)
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(model, name), value)


# --- kernel models -------------------------------------------------------------------------------------------------


def products(X, Z):
    return np.asarray(X @ Z.T)


def libsvm(**options):
    """scikit-learn's SVC, trained until it is quiet."""
    return SklearnSVC(**{"tol": 1e-7, **options})


KERNELS = [
    {},
    {"kernel": "linear", "C": 0.3},
    {"gamma": "auto", "C": 5.0},
    {"kernel": "poly", "degree": 2, "gamma": 0.2, "coef0": 1.0},
    {"kernel": products},
    {"class_weight": {0: 3.0, 1: 0.5}},
    {"class_weight": "balanced"},
]


def kernel_values(model, X):
    """K(X, X) as the formula of the kernel says."""
    if callable(model.kernel) or model.kernel == "linear":
        return X @ X.T
    gamma = model.gamma_ if isinstance(model, SVC) else model._gamma
    if model.kernel == "poly":
        return (gamma * X @ X.T + model.coef0) ** model.degree
    return np.exp(-gamma * np.square(X[:, None] - X[None]).sum(axis=2))


def named(options):
    """Without the address of a function: all processes that share the tests must call them the same."""
    return str({name: getattr(value, "__name__", value) for name, value in options.items()})


@pytest.mark.parametrize("make", [SVC, libsvm], ids=["softmargin", "scikit-learn"])
class TestKernels:
    @pytest.mark.parametrize("options", KERNELS, ids=named)
    @pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
    @pytest.mark.parametrize("data", ["binary", "three_classes"])
    def test_the_bound_meets_the_value(self, request, make, data, options, weighted):
        X, y = request.getfixturevalue(data)
        weights = np.random.default_rng(0).uniform(0.2, 2, len(y)) if weighted else None
        model = make(**{"tol": 1e-6, **options}).fit(X, y, weights)
        certificate = certify(model, X, y, weights)
        assert -1e-9 <= certificate.relative_gap <= 1e-5
        assert certificate.kkt_violation <= 1e-3

    @pytest.mark.parametrize("options", KERNELS[:5], ids=named)
    def test_the_value_is_the_objective_by_hand(self, binary, make, options):
        X, y = binary
        model = make(**options).fit(X, y)
        beta = np.zeros(len(y))
        beta[model.support_] = model.dual_coef_[0]
        f = kernel_values(model, X) @ beta
        losses = np.maximum(0.0, 1.0 - np.where(y == 1, 1, -1) * (f + model.intercept_))
        certificate = certify(model, X, y)
        assert certificate.primal == pytest.approx(0.5 * beta @ f + model.C * losses.sum(), rel=1e-9)
        assert certificate.dual == pytest.approx(np.abs(beta).sum() - 0.5 * beta @ f, rel=1e-6)

    @pytest.mark.parametrize("data", ["binary", "three_classes"])
    def test_a_precomputed_kernel_is_the_same_problem(self, request, make, data):
        X, y = request.getfixturevalue(data)
        K = np.exp(-0.1 * np.square(X[:, None] - X[None]).sum(axis=2))
        looked_up = certify(make(kernel="precomputed").fit(K, y), K, y)
        computed = certify(make(gamma=0.1).fit(X, y), X, y)
        assert looked_up.primal == pytest.approx(computed.primal, rel=1e-3)
        assert looked_up.relative_gap <= 1e-3

    def test_sparse_and_single_precision_data(self, three_classes, make):
        X, y = three_classes
        X = np.where(np.abs(X) > 0.7, X, 0.0).astype(np.float32)
        model = make().fit(sp.csr_matrix(X), y)
        sparse, dense = certify(model, sp.csr_matrix(X), y), certify(model, X.astype(np.float64), y)
        assert sparse.primal == pytest.approx(dense.primal, rel=1e-9)
        assert sparse.relative_gap <= 1e-3

    @pytest.mark.parametrize("data", ["binary", "three_classes"])
    def test_rows_of_weight_zero(self, request, make, data):
        """scikit-learn's `support_` counts without them."""
        X, y = request.getfixturevalue(data)
        weights = np.where(np.arange(len(y)) % 3 == 1, 0.0, 1.5)
        whole = certify(make(gamma=0.1).fit(X, y, weights), X, y, weights)
        kept = weights > 0
        part = certify(make(gamma=0.1).fit(X[kept], y[kept], weights[kept]), X[kept], y[kept], weights[kept])
        assert whole.primal == pytest.approx(part.primal, rel=1e-3)
        assert whole.relative_gap <= 1e-3

    @pytest.mark.filterwarnings("ignore:the kernel 'sigmoid' is indefinite")
    def test_an_indefinite_kernel_has_no_bound(self, three_classes, make):
        X, y = three_classes
        certificate = certify(make(kernel="sigmoid", gamma=0.3, tol=1e-3).fit(X, y), X, y)
        assert np.isnan([certificate.dual, certificate.gap, certificate.relative_gap]).all()
        assert certificate.primal > 0
        assert certificate.kkt_violation <= 1e-2

    @pytest.mark.parametrize("data", ["binary", "three_classes"])
    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("dual_coef_", lambda coef: 0.7 * coef),
            ("dual_coef_", lambda coef: -coef),
            ("dual_coef_", lambda coef: np.full_like(coef, np.nan)),
            ("intercept_", lambda b: b + 0.3),
        ],
        ids=["shorter", "negative", "nan", "intercept"],
    )
    def test_what_is_changed_in_the_model_shows(self, request, make, data, name, change):
        X, y = request.getfixturevalue(data)
        model = make(tol=1e-6).fit(X, y)
        good = certify(model, X, y)
        setattr(model, name, change(getattr(model, name)))
        poor = certify(model, X, y)
        assert poor.primal > good.primal
        assert poor.dual <= good.primal * (1 + 1e-9)
        assert poor.relative_gap > 1e-3

    def test_rows_in_another_order(self, three_classes, make):
        X, y = three_classes
        model = make().fit(X, y)
        order = np.argsort(y, kind="stable")
        for other in ((X[order], y[order]), (X[::-1], y), (X, np.roll(y, 1)), (X + 0.1, y)):
            with pytest.raises(SoftmarginError, match=r"not the rows that X and y have in their places: .* same order"):
                certify(model, *other)
        K = products(X, X)
        with pytest.raises(SoftmarginError, match="same order"):
            certify(make(kernel="precomputed").fit(K, y), K, np.roll(y, 1))

    def test_another_number_of_rows(self, binary, make):
        X, y = binary
        with pytest.raises(SoftmarginError, match="trained on 200 rows, but X has 150: certify a model on the rows"):
            certify(make().fit(X, y), X[:150], y[:150])

    def test_other_classes_and_features(self, binary, make):
        X, y = binary
        model = make().fit(X, y)
        with pytest.raises(SoftmarginError, match=r"y has the classes \[3, 4\], the model \[0, 1\]"):
            certify(model, X, y + 3)
        with pytest.raises(ValueError, match=r"X has 5 features, but SVC is expecting 8"):
            certify(model, X[:, :5], y)

    def test_a_matrix_that_is_no_kernel(self, binary, make):
        X, y = binary
        K = products(X, X)
        model = make(kernel="precomputed").fit(K, y)
        with pytest.raises(SoftmarginError, match="not symmetric"):
            certify(model, K + np.arange(len(y)), y)

    def test_before_fit(self, binary, make):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            certify(make(), *binary)


def test_kernel_values_are_computed_anew_and_in_double_precision(binary):
    X, y = binary
    model = SVC(tol=1e-9, gamma=0.1).fit(X, y)
    assert certify(model, X, y).relative_gap <= 1e-9
    model.gamma_ = 0.11
    assert certify(model, X, y).relative_gap > 1e-4


def test_the_number_of_threads_does_not_matter(three_classes):
    X, y = three_classes
    model = SVC(n_jobs=2).fit(X, y)
    assert certify(model, X, y) == certify(model.set_params(n_jobs=1), X, y)


def test_a_class_without_weight_has_nothing_to_judge(three_classes):
    X, y = three_classes
    weights = np.where(y == 1, 0.0, 1.0)
    model = SVC().fit(X, y, weights)
    certificate = certify(model, X, y, weights)
    assert certificate.primal == pytest.approx(model.certificate_.primal)
    assert certificate.relative_gap <= 1e-3


def test_a_model_without_its_gamma_is_refused(binary):
    X, y = binary
    model = libsvm().fit(X, y)
    del model._gamma
    with pytest.raises(SoftmarginError, match="does not tell which gamma"):
        certify(model, X, y)


@pytest.mark.parametrize("data", ["binary", "three_classes"])
def test_the_rows_of_an_imported_model_are_found(tmp_path, request, data):
    X, y = request.getfixturevalue(data)
    X, y = np.concatenate([X, X[:40]]), np.concatenate([y, y[:40]])  # some of them twice
    model = SVC(C=3.0).fit(X, y)
    model.save(tmp_path / "m", format="libsvm")
    found = load(tmp_path / "m").set_params(C=3.0)
    order = np.random.default_rng(0).permutation(len(y))
    certificate = certify(found, X[order], y[order])
    assert certificate.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert certificate.dual == pytest.approx(model.certificate_.dual, rel=1e-9)
    for other in ((X[:-60], y[:-60]), (X + 0.1, y), (X, np.roll(y, 1))):
        with pytest.raises(SoftmarginError, match="not among the rows of their class"):
            certify(found, *other)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
@pytest.mark.parametrize("weighted", [False, True])
def test_support_vectors_of_two_classes_may_be_in_the_order_of_the_rows(binary, kernel, weighted):
    """As scikit-learn-intelex has them; for more classes it sorts them by class, as scikit-learn does."""
    X, y = binary
    X = products(X, X) if kernel == "precomputed" else X
    weights = np.where(np.arange(len(y)) < 5, 0.0, 1.0) if weighted and kernel == "rbf" else None
    model = SklearnSVC(kernel=kernel, tol=1e-6).fit(X, y, weights)
    expected = certify(model, X, y, weights)
    order = np.argsort(model.support_)
    assert (np.diff(y[model.support_[order]]) < 0).any()
    model.support_, model._dual_coef_ = model.support_[order], model._dual_coef_[:, order]
    model.dual_coef_ = model.dual_coef_[:, order]
    if kernel == "rbf":
        model.support_vectors_ = model.support_vectors_[order]
    found = certify(model, X, y, weights)
    assert found.primal == pytest.approx(expected.primal, rel=1e-12)
    assert found.dual == pytest.approx(expected.dual, rel=1e-12)
    with pytest.raises(SoftmarginError, match="same order"):
        certify(model, X, np.roll(y, 1), weights)


def test_models_of_scikit_learn_intelex():
    sklearnex = pytest.importorskip("sklearnex.svm", reason="scikit-learn-intelex is not installed")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 4))
    y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int) + (X[:, 2] > 0.5)
    assert certify(sklearnex.SVC(tol=1e-5).fit(X, y), X, y).relative_gap <= 1e-4
    assert certify(sklearnex.SVC(tol=1e-5).fit(X, y > 0), X, y > 0).relative_gap <= 1e-4
