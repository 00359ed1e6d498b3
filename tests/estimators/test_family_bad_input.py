"""What regression and one-class estimators say of input that they cannot use."""

import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning, NotFittedError

from softmargin import IPM, OCAS, SGD, SMO, SVR, LinearOneClassSVM, LinearSVR, OneClassSVM, SoftmarginError

X = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 0.5], [3.0, 1.0], [4.0, 2.5]])
Y = np.array([0.0, 1.5, 1.0, 2.0, 4.0])
REGRESSORS = [SVR, LinearSVR]
ONE_CLASS = [OneClassSVM, LinearOneClassSVM]
ALL = [*REGRESSORS, *ONE_CLASS]


@pytest.mark.parametrize("estimator", REGRESSORS)
class TestTargets:
    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_no_numbers(self, estimator, value):
        with pytest.raises(ValueError, match="Input y contains"):
            estimator().fit(X, np.where(np.arange(5) == 2, value, Y))

    def test_words(self, estimator):
        message = r"y holds entries that are not numbers, such as 'a': .* To predict classes use SVC or LinearSVC"
        with pytest.raises(SoftmarginError, match=message):
            estimator().fit(X, [*"abcde"])
        with pytest.raises(SoftmarginError, match=message):
            estimator().fit(X, np.array([0.0, 1.5, "a", 2.0, "b"], dtype=object))

    def test_dates(self, estimator):
        with pytest.raises(SoftmarginError, match=r"y holds dates or durations \(datetime64\[D\]\): make numbers of"):
            estimator().fit(X, np.arange(5).astype("datetime64[D]"))

    def test_targets_that_are_missing(self, estimator):
        with pytest.raises(SoftmarginError, match="y holds NaN or infinity: leave such rows out"):
            estimator().fit(X, np.array([0.0, 1.5, None, 2.0, 4.0], dtype=object))

    def test_words_that_are_numbers(self, estimator):
        given = np.array(["0", "1.5", "1", "2", "4"], dtype=object)
        np.testing.assert_array_equal(estimator().fit(X, given).predict(X), estimator().fit(X, Y).predict(X))

    def test_a_column_is_taken_with_a_warning(self, estimator):
        with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
            found = estimator().fit(X, Y[:, None])
        np.testing.assert_array_equal(found.predict(X), estimator().fit(X, Y).predict(X))

    def test_several_columns(self, estimator):
        with pytest.raises(ValueError, match="y should be a 1d array"):
            estimator().fit(X, np.column_stack([Y, Y]))

    def test_none(self, estimator):
        with pytest.raises(ValueError, match="requires y to be passed"):
            estimator().fit(X, None)

    def test_another_number_of_rows(self, estimator):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            estimator().fit(X, Y[:-1])

    def test_complex_numbers(self, estimator):
        with pytest.raises(ValueError, match="Complex data not supported"):
            estimator().fit(X, Y + 1j)

    def test_numbers_that_overflow(self, estimator):
        with pytest.raises(SoftmarginError, match="too large to be squared: scale y"):
            estimator().fit(X, Y * 1e200)

    @pytest.mark.parametrize("epsilon", [-1e-9, np.nan, np.inf, "0.1", None, [0.1]], ids=str)
    def test_epsilon(self, estimator, epsilon):
        with pytest.raises(SoftmarginError, match=r"epsilon=.* must be a finite number of at least 0"):
            estimator(epsilon=epsilon).fit(X, Y)

    @pytest.mark.parametrize("C", [0.0, -1.0, np.nan, np.inf, "1", None], ids=str)
    def test_C(self, estimator, C):
        with pytest.raises(SoftmarginError, match=r"C=.* must be a positive, finite number"):
            estimator(C=C).fit(X, Y)


@pytest.mark.parametrize("estimator", ONE_CLASS)
def test_a_gap_that_rounding_leaves_is_not_blamed_on_C(estimator):
    with pytest.warns(UserWarning, match=r"accept this by a larger tol, scale the features \([^)]*\)\.$"):
        estimator(tol=0.0).fit(X)


@pytest.mark.parametrize("estimator", ONE_CLASS)
@pytest.mark.parametrize("nu", [0.0, -0.1, 1.0 + 1e-12, np.nan, "0.5", None, [0.5]], ids=str)
def test_nu(estimator, nu):
    with pytest.raises(SoftmarginError, match=r"nu=.* must be a share of the rows: above 0, and at most 1"):
        estimator(nu=nu).fit(X)


@pytest.mark.parametrize("estimator", ALL)
class TestRows:
    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_no_numbers(self, estimator, value):
        with pytest.raises(ValueError, match="Input X contains"):
            estimator().fit(np.where(X == 2.5, value, X), Y)

    def test_no_rows_and_no_columns(self, estimator):
        with pytest.raises(ValueError, match="minimum of 1 is required"):
            estimator().fit(X[:0], Y[:0])
        with pytest.raises(ValueError, match="minimum of 1 is required"):
            estimator().fit(X[:, :0], Y)

    @pytest.mark.parametrize("weights", [[0] * 5, [1, 1, 1, 1, -1], [1, 2], [np.nan] * 5, ["a"] * 5], ids=str)
    def test_weights(self, estimator, weights):
        with pytest.raises(SoftmarginError, match="sample_weight"):
            estimator().fit(X, Y, sample_weight=weights)

    def test_one_row_of_positive_weight(self, estimator):
        found = estimator().fit(X, Y, sample_weight=[0, 0, 1, 0, 0])
        assert np.isfinite(found.predict(X)).all()

    @pytest.mark.parametrize("solver", ["simplex", 3, None, object()], ids=["word", "number", "none", "object"])
    def test_what_is_no_solver(self, estimator, solver):
        with pytest.raises(SoftmarginError, match="solver"):
            estimator(solver=solver).fit(X, Y)

    def test_solvers_of_other_problems(self, estimator):
        is_linear = estimator.__name__.startswith("Linear")
        for solver in [SMO(), IPM(), "smo", SGD(), "pegasos"] if is_linear else [OCAS(), SGD(), "cpa", "sgd"]:
            with pytest.raises(SoftmarginError, match="solver"):
                estimator(solver=solver).fit(X, Y)

    @pytest.mark.parametrize(
        "options",
        [{"tol": -1.0}, {"tol": np.nan}, {"max_iter": 0}, {"max_iter": 1.5}, {"max_seconds": 0}, {"n_jobs": 0}],
        ids=str,
    )
    def test_limits(self, estimator, options):
        [name] = options
        with pytest.raises(SoftmarginError, match=name):
            estimator(**options).fit(X, Y)

    def test_before_fit_and_wrong_columns(self, estimator):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            estimator().predict(X)
        with pytest.raises(ValueError, match="X has 3 features"):
            estimator().fit(X, Y).predict(np.ones((4, 3)))
        with pytest.raises(ValueError, match="Input X contains NaN"):
            estimator().fit(X, Y).predict(X * np.nan)

    def test_a_failed_fit_leaves_an_earlier_model_alone(self, estimator):
        model = estimator().fit(X, Y)
        before = model.predict(X)
        with pytest.raises(SoftmarginError):
            model.fit(X * 1e300, Y)
        np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("estimator", ONE_CLASS)
@pytest.mark.parametrize("name", ["offset_", "coef_"])
def test_what_is_not_there_before_fit(estimator, name):
    assert not hasattr(estimator(), name)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", None, 3], ids=str)
def test_loss(loss):
    choices = "'epsilon_insensitive', 'squared_epsilon_insensitive'"
    with pytest.raises(SoftmarginError, match=f"loss=.* is unknown: choose one of {choices}"):
        LinearSVR(loss=loss).fit(X, Y)


def test_intercepts():
    with pytest.raises(SoftmarginError, match="contradict each other"):
        LinearSVR(fit_intercept=False, intercept="penalised").fit(X, Y)
    with pytest.raises(SoftmarginError, match="intercept_scaling=10 is the constant feature"):
        LinearSVR(intercept_scaling=10.0).fit(X, Y)
    with pytest.raises(SoftmarginError, match="intercept_scaling"):
        LinearSVR(intercept="penalised", intercept_scaling=0.0).fit(X, Y)


@pytest.mark.parametrize("estimator", [SVR, OneClassSVM])
class TestKernels:
    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"kernel": "cubic"}, "kernel='cubic' is unknown"),
            ({"gamma": -1.0}, "gamma"),
            ({"kernel": "poly", "degree": -1}, "degree"),
            ({"kernel": "poly", "coef0": np.nan}, "coef0"),
            ({"working_set": "best"}, "working_set='best' is unknown"),
            ({"solver": "block", "working_set": "second_order"}, "works on blocks"),
            ({"stopping": "never"}, "stopping='never' is unknown"),
            ({"cache_bytes": 10, "cache_size": 10}, "set the same limit"),
        ],
        ids=str,
    )
    def test_parameters(self, estimator, options, text):
        with pytest.raises(SoftmarginError, match=text):
            estimator(**options).fit(X, Y)

    def test_a_kernel_matrix_that_is_none(self, estimator):
        with pytest.raises(SoftmarginError, match=r"must be the square matrix"):
            estimator(kernel="precomputed").fit(X, Y)
        with pytest.raises(SoftmarginError, match="not symmetric"):
            estimator(kernel="precomputed").fit(np.arange(25.0).reshape(5, 5), Y)

    def test_an_indefinite_kernel_is_warned_of_and_ends(self, estimator):
        with pytest.warns(UserWarning, match="is indefinite on these rows"):
            model = estimator(kernel=lambda left, right: -(left @ right.T)).fit(X, Y)
        assert np.isnan(model.certificate_.dual)
        assert np.isfinite(model.predict(X)).all()
        with pytest.raises(SoftmarginError, match="not positive semi-definite"):
            estimator(kernel=lambda left, right: -(left @ right.T), solver="active_set").fit(X, Y)
