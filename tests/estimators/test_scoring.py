"""Scores and the labels made of them: in double precision whatever the data are, finite, and of one mind."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris

from softmargin import SVC, LinearSVC, OrdinalSVC, RankSVM, SoftmarginError


class TestSinglePrecisionData:
    """Data in float32 are the same numbers as in float64, so nothing about scores and labels may differ."""

    @pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
    @pytest.mark.parametrize(
        "params",
        [{"kernel": "linear"}, {"kernel": "poly", "gamma": 1e-4}, {"kernel": "rbf"}, {"kernel": "laplacian"}],
        ids=lambda params: params["kernel"],
    )
    def test_two_classes_of_features_on_very_different_scales(self, params, make):
        X, y = load_breast_cancer(return_X_y=True)
        X = X.astype(np.float32)
        model = SVC(solver="active_set", **params).fit(make(X), y)
        double = make(X.astype(np.float64))
        scores, expected = model.decision_function(make(X)), model.decision_function(double)
        assert scores.dtype == np.float64
        np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(model.predict(make(X)), model.predict(double))

    @pytest.mark.parametrize("shape", ["ovr", "ovo"])
    def test_many_classes(self, shape):
        X, y = load_digits(return_X_y=True)
        X = X[:500].astype(np.float32)
        model = SVC(decision_function_shape=shape).fit(X, y[:500])
        np.testing.assert_allclose(model.decision_function(X), model.decision_function(X.astype(float)), rtol=1e-12)

    def test_a_saved_model_scores_the_same(self, tmp_path):
        from softmargin.estimators.record_scoring import predictor_of
        from softmargin.io.model_file import read_model

        X, y = load_breast_cancer(return_X_y=True)
        X = X.astype(np.float32)
        model = SVC(kernel="linear").fit(X, y)
        model.save(tmp_path / "model")
        scores = predictor_of(read_model(tmp_path / "model")).scores(X, None)
        np.testing.assert_array_equal(scores, model.decision_function(X))


class TestScoresThatOverflow:
    """No label for a score that is no number."""

    @pytest.mark.parametrize(
        "model",
        [
            SVC(kernel="poly", gamma=1.0),
            SVC(kernel="linear"),
            SVC(gamma=1.0),
            LinearSVC(1e8),
            RankSVM(1e8),
            OrdinalSVC(1e8),
        ],
        ids=lambda model: f"{type(model).__name__} {getattr(model, 'kernel', '')}",
    )
    @pytest.mark.parametrize("method", ["predict", "decision_function"])
    def test_are_refused_with_the_row(self, model, method):
        X = np.array([[1.0, 2.0], [-1.0, 4.0], [2.0, 1.0], [-2.0, 2.0], [3.0, 3.0]])
        X *= 1e3 if isinstance(model, SVC) else 1e-3  # large products, or large weights
        model.fit(X, [1, 0, 1, 0, 1])
        getattr(model, method)(X)
        with pytest.raises(SoftmarginError, match=r"the score of row 2 overflows.*Scale X as in training"):
            getattr(model, method)(np.array([[1.0, 1.0], [2.0, 3.0], [1.7e308, -1.7e308]]))

    def test_of_several_classes(self):
        X, y = load_iris(return_X_y=True)
        model = SVC(kernel="poly", gamma=1.0).fit(X, y)
        with pytest.raises(SoftmarginError, match="the score of row 1 overflows"):
            model.predict([X[0], 1e200 * X[1]])
