"""LinearSVC: what a fit leaves behind, intercepts, weights, storages, threads and the relations between fits."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from softmargin import CPA, OCAS, LinearSVC, OrdinalSVC, Status, certify
from softmargin import SVC as KernelSVC

TIGHT = 1e-7
INTERCEPTS = {
    "free": {},
    "penalised": {"intercept": "penalised"},
    "none": {"fit_intercept": False},
}
CERTIFICATE_FIELDS = ("primal", "dual", "gap", "relative_gap", "kkt_violation")


def assert_same_certificate(found, expected, rtol=1e-9):
    for name in CERTIFICATE_FIELDS:
        # Gap and violation are differences: they agree to rounding of the values they come from.
        room = rtol * max(1.0, abs(expected.primal))
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=rtol, abs=room), name


class TestFittedAttributes:
    def test_two_classes(self, binary):
        X, y = binary
        labels = np.array(["no", "yes"])[y]
        model = LinearSVC().fit(X, labels)
        n, d = X.shape
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.coef_.shape == (1, d)
        assert model.intercept_.shape == (1,)
        assert model.coef_.dtype == model.intercept_.dtype == np.float64
        assert model.dual_.shape == (n,)
        assert model.n_features_in_ == d
        assert not hasattr(model, "feature_names_in_")
        assert model.status_ is Status.OPTIMAL
        assert len(model.certificates_) == 1
        assert model.certificates_[0] == model.certificate_
        assert model.n_iter_ == model.trace_[-1].iteration >= 1
        scores = model.decision_function(X)
        assert scores.shape == (n,)
        np.testing.assert_allclose(scores, X @ model.coef_[0] + model.intercept_[0])
        np.testing.assert_array_equal(model.predict(X), np.where(scores > 0, "yes", "no"))

    def test_several_classes(self, three_classes):
        X, y = three_classes
        model = LinearSVC(tol=1e-4).fit(X, y + 5)
        n, d = X.shape
        assert model.classes_.tolist() == [5, 6, 7]
        assert model.coef_.shape == (3, d)
        assert model.intercept_.shape == (3,)
        assert model.dual_.shape == (n, 3)
        assert len(model.certificates_) == len(model.trace_) == 3
        assert model.n_iter_ == max(trace[-1].iteration for trace in model.trace_)
        scores = model.decision_function(X)
        assert scores.shape == (n, 3)
        np.testing.assert_allclose(scores, X @ model.coef_.T + model.intercept_)
        np.testing.assert_array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])

    def test_several_classes_are_one_against_the_rest(self, three_classes):
        X, y = three_classes
        model = LinearSVC().fit(X, y)
        for k in range(3):
            alone = LinearSVC().fit(X, y == k)
            np.testing.assert_array_equal(model.coef_[k], alone.coef_[0])
            np.testing.assert_array_equal(model.dual_[:, k], alone.dual_)
            assert model.certificates_[k] == alone.certificate_

    def test_the_certificate_of_several_classes_is_their_sum_and_the_worst_gap(self, three_classes):
        X, y = three_classes
        model = LinearSVC(tol=1e-2).fit(X, y)
        whole, parts = model.certificate_, model.certificates_
        assert whole.primal == pytest.approx(sum(part.primal for part in parts))
        assert whole.dual == pytest.approx(sum(part.dual for part in parts))
        assert whole.gap == pytest.approx(sum(part.gap for part in parts))
        assert whole.relative_gap == max(part.relative_gap for part in parts)
        assert whole.kkt_violation == max(part.kkt_violation for part in parts)
        assert len({part.relative_gap for part in parts}) == 3

    def test_the_trace_brackets_the_optimum_at_every_iteration(self, binary):
        X, y = binary
        model = LinearSVC(tol=1e-6).fit(X, y)
        trace, optimum = model.trace_, model.certificate_
        rounding = 1e-12 * trace["primal"][0]
        assert np.all(np.diff(trace["primal"]) <= rounding)
        assert np.all(trace["primal"] >= optimum.dual - rounding)
        assert np.all(trace["dual"] <= optimum.primal + rounding)
        assert np.all(np.diff(trace["seconds"]) >= 0)
        np.testing.assert_array_equal(trace["iteration"], np.arange(model.n_iter_ + 1))
        assert set(trace.columns) >= {"iteration", "seconds", "primal", "dual", "planes", "passes"}


@pytest.mark.parametrize("solver", ["auto", "ocas", "cpa", OCAS(mixing=0.3), CPA()], ids=str)
@pytest.mark.parametrize("intercept", INTERCEPTS)
class TestCertificate:
    def test_is_what_certify_finds_and_within_tol(self, binary, solver, intercept):
        X, y = binary
        model = LinearSVC(solver=solver, tol=1e-5, **INTERCEPTS[intercept]).fit(X, y)
        assert model.status_ is Status.OPTIMAL
        assert -1e-14 <= model.certificate_.relative_gap <= 1e-5
        assert model.certificate_.gap == pytest.approx(model.certificate_.primal - model.certificate_.dual)
        assert_same_certificate(certify(model, X, y), model.certificate_)

    def test_several_classes(self, three_classes, solver, intercept):
        X, y = three_classes
        model = LinearSVC(solver=solver, tol=1e-3, **INTERCEPTS[intercept]).fit(X, y)
        assert model.certificate_.relative_gap <= 1e-3
        assert_same_certificate(certify(model, X, y), model.certificate_)

    def test_the_dual_vector_is_feasible_and_gives_the_bound(self, binary, solver, intercept):
        X, y = binary
        weights = np.random.default_rng(3).uniform(0, 2, len(y))
        C = 0.7
        model = LinearSVC(C, solver=solver, tol=1e-5, **INTERCEPTS[intercept]).fit(X, y, weights)
        signs, alpha = np.where(y == 1, 1.0, -1.0), model.dual_
        assert np.all(alpha >= 0)
        assert np.all(alpha <= C * weights * (1 + 1e-9))
        imbalance = float(alpha @ signs)
        w_alpha = X.T @ (alpha * signs)
        bound = alpha.sum() - 0.5 * w_alpha @ w_alpha
        if intercept == "free":
            assert abs(imbalance) <= 1e-9 * alpha.sum()
        if intercept == "penalised":
            bound -= 0.5 * imbalance**2
        assert bound == pytest.approx(model.certificate_.dual, rel=1e-8)


class TestObjective:
    def test_primal_is_the_objective_worked_out_by_hand(self, binary, hinge_objective):
        X, y = binary
        weights = np.random.default_rng(0).integers(0, 3, len(y))
        for options in (INTERCEPTS["free"], INTERCEPTS["none"]):
            model = LinearSVC(0.3, **options).fit(X, y, weights)
            assert model.certificate_.primal == pytest.approx(hinge_objective(model, X, y, weights), rel=1e-12)
        model = LinearSVC(0.3, intercept="penalised").fit(X, y, weights)
        by_hand = hinge_objective(model, X, y, weights) + 0.5 * model.intercept_[0] ** 2
        assert model.certificate_.primal == pytest.approx(by_hand, rel=1e-12)

    @pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
    def test_is_not_above_that_of_scikit_learns_svc(self, binary, hinge_objective, C):
        X, y = binary
        ours = LinearSVC(C, tol=1e-8).fit(X, y)
        theirs = SVC(C=C, kernel="linear", tol=1e-8).fit(X, y)
        value = hinge_objective(theirs, X, y)
        assert ours.certificate_.dual <= value
        assert ours.certificate_.primal <= value * (1 + 1e-8)
        assert value == pytest.approx(ours.certificate_.primal, rel=1e-4)  # SVC's own precision
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-2, atol=1e-3)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))

    def test_two_points_have_the_answer_of_the_textbook(self):
        # x = -1 and x = 3: the widest margin is w = 1/2, b = -1/2, and alpha = w^2 = 1/8 + 1/8 in the dual.
        model = LinearSVC(10.0, tol=1e-10).fit([[-1.0], [3.0]], [0, 1])
        np.testing.assert_allclose(model.coef_, [[0.5]], rtol=1e-6)
        np.testing.assert_allclose(model.intercept_, [-0.5], rtol=1e-6)
        np.testing.assert_allclose(model.dual_, [0.125, 0.125], rtol=1e-6)
        assert model.certificate_.primal == pytest.approx(0.125, rel=1e-8)


class TestIntercept:
    def test_penalised_is_a_constant_column_without_intercept(self, binary, same_optimum):
        X, y = binary
        X = X + 1.5  # so that the intercept matters
        with_column = np.column_stack([X, np.ones(len(X))])
        model = LinearSVC(tol=TIGHT, intercept="penalised").fit(X, y)
        explicit = LinearSVC(tol=TIGHT, fit_intercept=False).fit(with_column, y)
        assert same_optimum(model.certificate_, explicit.certificate_)
        np.testing.assert_allclose(model.coef_[0], explicit.coef_[0, :-1], atol=1e-2)
        np.testing.assert_allclose(model.intercept_[0], explicit.coef_[0, -1], atol=1e-2)

    def test_none_is_zero(self, binary, three_classes):
        for (X, y), n_models in ((binary, 1), (three_classes, 3)):
            model = LinearSVC(fit_intercept=False).fit(X, y)
            np.testing.assert_array_equal(model.intercept_, np.zeros(n_models))

    def test_free_is_not_worse_than_the_others_and_ignores_a_shift(self, binary, same_optimum):
        X, y = binary
        free = LinearSVC(tol=TIGHT).fit(X, y)
        penalised = LinearSVC(tol=TIGHT, intercept="penalised").fit(X, y)
        none = LinearSVC(tol=TIGHT, fit_intercept=False).fit(X, y)
        assert free.certificate_.dual <= penalised.certificate_.primal
        assert penalised.certificate_.dual <= none.certificate_.primal
        shifted = LinearSVC(tol=TIGHT).fit(X + 3.0, y)
        assert same_optimum(free.certificate_, shifted.certificate_)

    def test_is_the_best_for_its_weights(self, binary, hinge_objective):
        X, y = binary
        model = LinearSVC().fit(X, y)
        best = hinge_objective(model, X, y)
        chosen = model.intercept_.copy()
        for step in (-1.0, -1e-3, 1e-3, 1.0):
            model.intercept_ = chosen + step
            assert hinge_objective(model, X, y) >= best - 1e-9 * best


class TestWeights:
    @pytest.mark.parametrize("intercept", INTERCEPTS)
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_a_weight_is_a_number_of_copies(self, make_noisy, same_optimum, n_classes, intercept):
        X, y = make_noisy(n_classes=n_classes, seed=4)
        copies = np.random.default_rng(5).integers(0, 4, len(y))
        options = {"tol": TIGHT, **INTERCEPTS[intercept]}
        weighted = LinearSVC(**options).fit(X, y, copies)
        repeated = LinearSVC(**options).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
        for first, second in zip(weighted.certificates_, repeated.certificates_, strict=True):
            assert same_optimum(first, second)
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-2)

    def test_rows_of_weight_zero_do_not_matter(self, binary, same_optimum):
        X, y = binary
        keep = np.arange(len(y)) % 3 > 0
        spoiled, labels = X.copy(), y.copy()
        spoiled[~keep] = 1e3
        labels[~keep] = 1 - labels[~keep]
        weighted = LinearSVC(tol=TIGHT).fit(spoiled, labels, keep.astype(float))
        absent = LinearSVC(tol=TIGHT).fit(X[keep], y[keep])
        assert same_optimum(weighted.certificate_, absent.certificate_)
        np.testing.assert_array_equal(weighted.dual_[~keep], 0.0)

    def test_a_scalar_weight_is_a_factor_of_C(self, binary, same_optimum):
        X, y = binary
        assert same_optimum(
            LinearSVC(0.5, tol=TIGHT).fit(X, y, sample_weight=3.0).certificate_,
            LinearSVC(1.5, tol=TIGHT).fit(X, y).certificate_,
        )

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_class_weights_multiply_sample_weights(self, make_noisy, n_classes):
        X, y = make_noisy(n_classes=n_classes, seed=6)
        weights = np.random.default_rng(7).uniform(0.5, 2, len(y))
        by_class = LinearSVC(class_weight={0: 2.0, 1: 0.25}).fit(X, y, weights)
        by_row = LinearSVC().fit(X, y, weights * np.array([2.0, 0.25, 1.0])[y])
        np.testing.assert_array_equal(by_class.coef_, by_row.coef_)
        assert by_class.certificate_ == by_row.certificate_

    def test_balanced_classes_have_the_same_total_weight(self, binary):
        X, y = binary
        keep = np.flatnonzero((y == 0) | (np.arange(len(y)) % 4 == 0))  # few of class 1
        X, y = X[keep], y[keep]
        counts = np.bincount(y)
        balanced = LinearSVC(class_weight="balanced").fit(X, y)
        by_row = LinearSVC().fit(X, y, len(y) / (2 * counts[y]))
        np.testing.assert_array_equal(balanced.coef_, by_row.coef_)

    @pytest.mark.parametrize("make", [LinearSVC, KernelSVC, OrdinalSVC], ids=lambda make: make.__name__)
    def test_class_weights_may_name_a_class_that_a_fold_lacks(self, three_classes, make):
        X, y = three_classes
        weights = {0: 1.0, 1: 2.0, 2: 3.0}
        there = y < 2
        found = make(class_weight=weights).fit(X[there], y[there])
        expected = make(class_weight={0: 1.0, 1: 2.0}).fit(X[there], y[there])
        np.testing.assert_array_equal(found.decision_function(X), expected.decision_function(X))

    def test_string_classes_in_a_class_weight(self, binary):
        X, y = binary
        names = np.array(["no", "yes"])[y]
        by_name = LinearSVC(class_weight={"yes": 3.0}).fit(X, names)
        by_number = LinearSVC(class_weight={1: 3.0}).fit(X, y)
        np.testing.assert_array_equal(by_name.coef_, by_number.coef_)


def small_integers():
    rng = np.random.default_rng(11)
    X = rng.integers(0, 2, (150, 10))
    y = (X @ rng.standard_normal(10) + 0.7 * rng.standard_normal(150) > 0).astype(int)
    return X, y


def _csr64(X):
    matrix = sp.csr_array(X.astype(np.float64))
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


def _read_only(X):
    X = X.astype(np.float64)
    X.flags.writeable = False
    return X


def _unsorted_csr(X):
    matrix = sp.csr_matrix(X.astype(np.float64))
    for k in range(X.shape[0]):
        part = slice(matrix.indptr[k], matrix.indptr[k + 1])
        matrix.indices[part] = matrix.indices[part][::-1].copy()
        matrix.data[part] = matrix.data[part][::-1].copy()
    matrix.has_sorted_indices = False
    return matrix


STORAGES = {
    "float64": lambda X: X.astype(np.float64),
    "float32": lambda X: X.astype(np.float32),
    "int64": lambda X: X.astype(np.int64),
    "bool": lambda X: X.astype(bool),
    "uint8": lambda X: X.astype(np.uint8),
    "fortran": lambda X: np.asfortranarray(X.astype(np.float64)),
    "strided": lambda X: np.repeat(np.repeat(X.astype(np.float64), 2, axis=0), 2, axis=1)[::2, ::2],
    "reversed": lambda X: X.astype(np.float64)[::-1].copy()[::-1],
    "list": lambda X: X.tolist(),
    "read only": _read_only,
    "csr_matrix": lambda X: sp.csr_matrix(X.astype(np.float64)),
    "csr_array": lambda X: sp.csr_array(X.astype(np.float64)),
    "csr int64": _csr64,
    "csr float32": lambda X: sp.csr_array(X.astype(np.float32)),
    "csr unsorted": _unsorted_csr,
    "csc": lambda X: sp.csc_array(X.astype(np.float64)),
    "coo": lambda X: sp.coo_matrix(X.astype(np.float64)),
}


def contents(X):
    return X.toarray() if sp.issparse(X) else np.array(X)


@pytest.fixture(scope="module")
def plain():
    X, y = small_integers()
    return LinearSVC(tol=TIGHT).fit(X.astype(np.float64), y)


class TestStorage:
    @pytest.mark.parametrize("storage", STORAGES)
    def test_same_optimum_and_untouched_data(self, plain, same_optimum, storage):
        X, y = small_integers()
        data = STORAGES[storage](X)
        before = contents(data).copy()
        model = LinearSVC(tol=TIGHT).fit(data, y)
        assert model.status_ is Status.OPTIMAL
        assert same_optimum(model.certificate_, plain.certificate_)
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=2e-3)
        np.testing.assert_allclose(model.decision_function(data), plain.decision_function(X), atol=1e-2)
        assert certify(model, data, y).relative_gap <= 2 * TIGHT
        np.testing.assert_array_equal(contents(data), before)
        assert contents(data).dtype == before.dtype

    @pytest.mark.parametrize("storage", ["float64", "fortran", "csr_array", "csr int64"])
    def test_the_callers_arrays_stay_as_they_were(self, storage):
        X, y = small_integers()
        data = STORAGES[storage](X)
        flags = None if sp.issparse(data) else data.flags.f_contiguous
        index_types = (data.indices.dtype, data.indptr.dtype) if sp.issparse(data) else None
        weights = np.linspace(0.5, 1.5, len(y))
        labels, weights_before = y.copy(), weights.copy()
        LinearSVC().fit(data, y, weights)
        np.testing.assert_array_equal(y, labels)
        np.testing.assert_array_equal(weights, weights_before)
        if sp.issparse(data):
            assert (data.indices.dtype, data.indptr.dtype) == index_types
        else:
            assert data.flags.f_contiguous == flags

    def test_read_only_memory_map(self, tmp_path, plain):
        X, y = small_integers()
        path = tmp_path / "rows.npy"
        np.save(path, X.astype(np.float64))
        mapped = np.load(path, mmap_mode="r")
        model = LinearSVC(tol=TIGHT).fit(mapped, y)
        np.testing.assert_array_equal(model.coef_, plain.coef_)
        assert not mapped.flags.writeable

    def test_float32_is_judged_on_its_own_values(self, binary):
        X, y = binary
        model = LinearSVC(tol=1e-6).fit(X.astype(np.float32), y)
        assert model.coef_.dtype == np.float64
        exact = LinearSVC(tol=1e-6).fit(X.astype(np.float32).astype(np.float64), y)
        assert model.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=2e-6)

    def test_explicit_zeros_and_empty_rows(self, same_optimum):
        X, y = small_integers()
        X = X.astype(np.float64)
        X[::7] = 0.0
        stored = sp.csr_array(X)
        stored.data[::5] = 0.0
        sparse = LinearSVC(tol=TIGHT).fit(stored, y)
        dense = LinearSVC(tol=TIGHT).fit(stored.toarray(), y)
        assert same_optimum(sparse.certificate_, dense.certificate_)


class TestThreads:
    """Rows in several blocks: every number of threads gives the same bits."""

    @staticmethod
    def large(kind):
        rng = np.random.default_rng(13)
        if kind == "dense":
            X = rng.standard_normal((40_000, 60))
        elif kind == "sparse":
            X = sp.random(60_000, 500, density=0.06, format="csr", random_state=rng)
        else:  # n < d, and one row has more values than a block
            X = rng.standard_normal((150, 8_000))
        scores = X @ rng.standard_normal((X.shape[1], 3)) + rng.standard_normal((X.shape[0], 3))
        return X, scores.argmax(axis=1)

    @pytest.mark.parametrize("intercept", ["free", "penalised"])
    @pytest.mark.parametrize("kind", ["dense", "sparse", "wide"])
    def test_two_classes(self, kind, intercept):
        X, y = self.large(kind)
        y = y > 0
        options = {"max_iter": 6, "tol": 0.0, **INTERCEPTS[intercept]}
        with pytest.warns(match="relative duality gap"):
            one = LinearSVC(n_jobs=1, **options).fit(X, y)
        for n_jobs in (2, 3, -1):
            with pytest.warns(match="relative duality gap"):
                other = LinearSVC(n_jobs=n_jobs, **options).fit(X, y)
            np.testing.assert_array_equal(other.coef_, one.coef_)
            np.testing.assert_array_equal(other.intercept_, one.intercept_)
            np.testing.assert_array_equal(other.dual_, one.dual_)
            assert other.certificate_ == one.certificate_

    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    def test_several_classes(self, kind):
        X, y = self.large(kind)
        options = {"max_iter": 4, "tol": 0.0}
        with pytest.warns(match="relative duality gap"):
            one = LinearSVC(n_jobs=1, **options).fit(X, y)
        for n_jobs in (2, 4, -1):
            with pytest.warns(match="relative duality gap"):
                other = LinearSVC(n_jobs=n_jobs, **options).fit(X, y)
            np.testing.assert_array_equal(other.coef_, one.coef_)
            np.testing.assert_array_equal(other.intercept_, one.intercept_)
            assert other.certificates_ == one.certificates_

    @pytest.mark.parametrize("intercept", INTERCEPTS)
    def test_the_bits_do_not_depend_on_where_arrays_lie_in_memory(self, binary, intercept):
        X, y = binary
        rng = np.random.default_rng(29)
        weights = rng.uniform(0.5, 2.0, len(y))
        model = LinearSVC(**INTERCEPTS[intercept])
        expected = model.fit(X, y, weights).coef_
        in_the_way = []
        for size in rng.integers(1, 3000, 40):
            in_the_way.append(np.empty(size))
            np.testing.assert_array_equal(model.fit(X, y, weights).coef_, expected)


BUNDLED = {
    "breast_cancer": load_breast_cancer,
    "iris": load_iris,
    "wine": load_wine,
    "digits": load_digits,
}


@pytest.mark.parametrize("scaled", [False, True], ids=["unscaled", "scaled"])
@pytest.mark.parametrize("name", BUNDLED)
def test_the_defaults_reach_their_goal_on_bundled_data_without_a_warning(name, scaled):
    X, y = BUNDLED[name](return_X_y=True)
    if scaled:
        X = StandardScaler().fit_transform(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LinearSVC().fit(X, y)
    assert model.status_ is Status.OPTIMAL
    assert model.certificate_.relative_gap <= 1e-3
    assert_same_certificate(certify(model, X, y), model.certificate_, rtol=1e-8)


@pytest.mark.parametrize("intercept", INTERCEPTS)
class TestRelations:
    """Changes of the data that leave the optimum where it was."""

    def fit(self, X, y, intercept, **options):
        return LinearSVC(tol=TIGHT, **INTERCEPTS[intercept], **options).fit(X, y)

    def test_permuted_rows(self, binary, same_optimum, intercept):
        X, y = binary
        order = np.random.default_rng(17).permutation(len(y))
        first, second = self.fit(X, y, intercept), self.fit(X[order], y[order], intercept)
        assert same_optimum(first.certificate_, second.certificate_)
        np.testing.assert_allclose(first.coef_, second.coef_, atol=5e-3)

    def test_flipped_labels(self, binary, same_optimum, intercept):
        X, y = binary
        first, second = self.fit(X, y, intercept), self.fit(X, 1 - y, intercept)
        assert same_optimum(first.certificate_, second.certificate_)
        np.testing.assert_allclose(first.coef_, -second.coef_, atol=5e-3)
        np.testing.assert_allclose(first.intercept_, -second.intercept_, atol=2e-2)

    def test_a_far_correct_row(self, binary, same_optimum, intercept):
        X, y = binary
        first = self.fit(X, y, intercept)
        far = 50.0 * first.coef_ / np.linalg.norm(first.coef_)
        assert first.decision_function(far)[0] > 10
        second = self.fit(np.vstack([X, far]), np.append(y, 1), intercept)
        assert same_optimum(first.certificate_, second.certificate_)
        assert second.dual_[-1] <= 1e-6

    def test_a_constant_zero_column(self, binary, same_optimum, intercept):
        X, y = binary
        first = self.fit(X, y, intercept)
        second = self.fit(np.column_stack([X, np.zeros(len(X))]), y, intercept)
        assert same_optimum(first.certificate_, second.certificate_)
        assert second.coef_[0, -1] == 0.0

    def test_scaled_data(self, binary, same_optimum, intercept):
        """X * a with C / a^2 has the weights w / a: the objective scales by 1 / a^2."""
        if intercept == "penalised":
            pytest.skip("the penalised intercept does not scale with X")
        X, y = binary
        first, second = self.fit(X, y, intercept), self.fit(4.0 * X, y, intercept, C=1 / 16)
        np.testing.assert_allclose(second.certificate_.primal * 16, first.certificate_.primal, rtol=3 * TIGHT)

    def test_both_solvers(self, wide, same_optimum, intercept):
        X, y = wide
        assert same_optimum(
            self.fit(X, y, intercept).certificate_, self.fit(X, y, intercept, solver="cpa").certificate_
        )


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
class TestHardData:
    """Each ends with a certificate, or says honestly that it did not get there."""

    def check(self, X, y, **options):
        model = LinearSVC(**options).fit(X, y)
        assert model.status_ is Status.OPTIMAL
        assert -1e-9 <= model.certificate_.relative_gap <= model.tol
        assert np.isfinite(model.coef_).all()
        return model

    def test_duplicates_with_opposite_labels(self, solver):
        X = np.repeat([[1.0, 2.0], [3.0, -1.0]], 2, axis=0)
        model = self.check(X, [0, 1, 0, 1], solver=solver)
        assert model.certificate_.primal == pytest.approx(4.0, rel=1e-3)  # nothing is better than w = 0

    def test_zero_rows(self, solver):
        model = self.check(np.zeros((6, 3)), [0, 1, 0, 1, 1, 1], solver=solver)
        np.testing.assert_array_equal(model.coef_, 0.0)
        assert model.certificate_.primal == pytest.approx(4.0)  # b = 1: two rows on the wrong side, hinge 2 each

    def test_one_row_a_class(self, solver):
        model = self.check([[0.0], [1.0]], [0, 1], solver=solver, C=100.0)
        assert model.predict([[0.0], [1.0]]).tolist() == [0, 1]

    def test_constant_features(self, binary, solver):
        X, y = binary
        self.check(np.column_stack([X, np.full(len(X), 7.0)]), y, solver=solver)

    @pytest.mark.parametrize("C", [1e-6, 1e-3, 1e3, 1e6])
    def test_extreme_C(self, solver, C, binary, wide):
        self.check(*wide, solver=solver, C=C)
        X, y = binary
        self.check(X[:60, :4], y[:60], solver=solver, C=C)

    def test_tall_data(self, solver, make_noisy):
        self.check(*make_noisy(n=5000, d=2, seed=19), solver=solver)
