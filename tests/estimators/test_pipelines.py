"""Pipelines and calibrated models through files: as scikit-learn's objects again, and as predictors in NumPy."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, RobustScaler, StandardScaler

import softmargin
from softmargin import (
    SVC,
    SVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    ModelFileError,
    OneClassSVM,
    OrdinalSVC,
    RankSVM,
    SoftmarginError,
    load,
    load_predictor,
    save,
)

SCALERS = {
    "standard": [StandardScaler()],
    "deviation": [StandardScaler(with_mean=False)],
    "mean": [StandardScaler(with_std=False)],
    "range": [MinMaxScaler((-1, 2), clip=True)],
    "largest": [MaxAbsScaler()],
    "robust": [RobustScaler(quantile_range=(10, 90))],
    "l1": [Normalizer("l1")],
    "several": [MinMaxScaler(), Normalizer("max"), StandardScaler()],
}


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * max(np.abs(expected).max(), 1e-9))


def there_and_back(model, path):
    save(model, path)
    return load(path), load_predictor(path)


class TestScalers:
    @pytest.mark.parametrize("steps", SCALERS.values(), ids=SCALERS)
    def test_each_comes_back_and_predicts_in_numpy(self, tmp_path, cancer, steps):
        X, y = cancer
        pipe = make_pipeline(*steps, LinearSVC()).fit(X, y)
        again, predictor = there_and_back(pipe, tmp_path / "m")
        np.testing.assert_array_equal(again.decision_function(X), pipe.decision_function(X))
        assert repr(again) == repr(pipe)
        assert again[-1].certificate_ == pipe[-1].certificate_
        for one, other in zip(again[:-1], pipe[:-1], strict=True):
            assert vars(one).keys() == vars(other).keys()
            for name, value in vars(other).items():
                np.testing.assert_array_equal(getattr(one, name), value)
        close(predictor.decision_function(X), pipe.decision_function(X))
        np.testing.assert_array_equal(predictor.predict(X), pipe.predict(X))

    @pytest.mark.parametrize("steps", SCALERS.values(), ids=SCALERS)
    def test_sparse_rows_are_as_dense_ones(self, tmp_path, steps):
        X, y = load_iris(return_X_y=True)
        X = np.where(X > 2.0, X, 0.0)
        save(make_pipeline(*steps, SVC()).fit(X, y), tmp_path / "m")
        predictor = load_predictor(tmp_path / "m")
        close(predictor.decision_function(sp.csr_matrix(X)), predictor.decision_function(X))
        close(predictor.decision_function(sp.csc_array(X)), predictor.decision_function(X))

    def test_a_loaded_scaler_learns_on(self, tmp_path, cancer):
        X, y = cancer
        pipe = make_pipeline(StandardScaler(), LinearSVC()).fit(X, y)
        again, _ = there_and_back(pipe, tmp_path / "m")
        again[0].partial_fit(2.0 * X)
        close(again[0].scale_, pipe[0].partial_fit(2.0 * X).scale_)

    def test_names_of_columns_and_steps(self, tmp_path):
        frame, y = load_breast_cancer(return_X_y=True, as_frame=True)
        pipe = Pipeline([("scale", StandardScaler()), ("skip", "passthrough"), ("clf", LinearSVC())]).fit(frame, y)
        again, predictor = there_and_back(pipe, tmp_path / "m")
        assert [name for name, _ in again.steps] == ["scale", "clf"]
        assert again.feature_names_in_.tolist() == predictor.feature_names_in_.tolist() == list(frame.columns)
        np.testing.assert_array_equal(again.predict(frame), pipe.predict(frame))
        np.testing.assert_array_equal(predictor.predict(frame), pipe.predict(frame))
        with pytest.raises(SoftmarginError, match="another order"):
            predictor.predict(frame[frame.columns[::-1]])
        with pytest.raises(SoftmarginError, match=r"lacks columns.*mean radius"):
            predictor.predict(frame.rename(columns={"mean radius": "radius"}))
        with pytest.raises(SoftmarginError, match=r"does not know.*more"):
            predictor.predict(frame.assign(more=1.0))


MODELS = {
    "LinearSVC": LinearSVC(),
    "LinearSVC joint": LinearSVC(multi_class="crammer_singer", intercept="penalised"),
    "SVC": SVC(),
    "SVC poly": SVC(kernel="poly", coef0=1.0),
    "SVC sigmoid": SVC(kernel="sigmoid", gamma=0.1),
    "SVC laplacian": SVC(kernel="laplacian"),
    "SVC linear ovo": SVC(kernel="linear", decision_function_shape="ovo"),
    "OrdinalSVC": OrdinalSVC(),
}


class TestPredictors:
    @pytest.mark.filterwarnings("ignore:the kernel 'sigmoid' is indefinite")
    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
    @pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
    def test_classes(self, tmp_path, iris, model, sparse, n_classes):
        X, y = iris[0][iris[1] < n_classes], iris[1][iris[1] < n_classes]
        X = np.hstack([np.where(X > 1.0, X, 0.0), np.zeros((len(X), 3))])
        rows = sp.csr_matrix(X) if sparse else X
        model.fit(rows, y)
        model.save(tmp_path / "m")
        predictor = load_predictor(tmp_path / "m")
        other = X + np.arange(7) * 0.1  # with values where no support vector has one
        for given in (other, sp.csr_matrix(other)):
            close(predictor.decision_function(given), model.decision_function(other))
            np.testing.assert_array_equal(predictor.predict(given), model.predict(other))

    @pytest.mark.parametrize("model", [LinearSVR(), SVR()], ids=["linear", "kernel"])
    def test_numbers(self, tmp_path, model):
        X, y = load_diabetes(return_X_y=True)
        model.fit(X, y).save(tmp_path / "m")
        predictor = load_predictor(tmp_path / "m")
        assert predictor.classes_ is None
        close(predictor.predict(X), model.predict(X))
        close(predictor.decision_function(X), model.predict(X))

    @pytest.mark.parametrize("model", [LinearOneClassSVM(), OneClassSVM()], ids=["linear", "kernel"])
    def test_one_class(self, tmp_path, iris, model):
        model.fit(iris[0]).save(tmp_path / "m")
        predictor = load_predictor(tmp_path / "m")
        close(predictor.decision_function(iris[0]), model.decision_function(iris[0]))
        np.testing.assert_array_equal(predictor.predict(iris[0]), model.predict(iris[0]))

    def test_a_ranking(self, tmp_path, iris):
        X, y = iris
        model = RankSVM().fit(X, y, qid=np.arange(len(y)) % 5)
        model.save(tmp_path / "m")
        close(load_predictor(tmp_path / "m").predict(X), model.predict(X))

    def test_a_precomputed_kernel(self, tmp_path, iris):
        X, y = iris
        K = X @ X.T
        model = SVC(kernel="precomputed").fit(K, y)
        model.save(tmp_path / "m")
        np.testing.assert_array_equal(load_predictor(tmp_path / "m").predict(K), model.predict(K))

    def test_texts_of_other_programs(self, tmp_path, iris):
        X, y = iris
        for model, form in ((LinearSVC(), "liblinear"), (SVC(), "libsvm")):
            model.fit(X, y).save(tmp_path / "m", format=form)
            np.testing.assert_array_equal(load_predictor(tmp_path / "m").predict(X), model.predict(X))

    def test_nothing_but_numpy_is_imported(self, tmp_path, iris):
        X, y = iris
        for k, model in enumerate((LinearSVC(), SVC(), SVC(kernel="laplacian"), OrdinalSVC())):
            save(make_pipeline(StandardScaler(), model).fit(X, y), tmp_path / str(k))
        save(SVC().fit(sp.csr_matrix(X), y), tmp_path / "4")
        save(CalibratedClassifierCV(LinearSVC(), ensemble=False).fit(X, y), tmp_path / "5")
        np.save(tmp_path / "X.npy", X)
        code = """
import sys
import numpy as np
before = set(sys.modules)
import softmargin
X = np.load("X.npy")
for k in range(6):
    predictor = softmargin.load_predictor(str(k))
    predictor.predict(X)
foreign = {name.split(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
assert foreign <= {"softmargin", "numpy"}, foreign
"""
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    @pytest.mark.parametrize("missing", ["sklearn", "scipy"])
    def test_load_leads_there_where_other_packages_are_missing(self, tmp_path, iris, missing):
        save(LinearSVC().fit(*iris), tmp_path / "m")
        code = f"""
import sys
sys.modules[{missing!r}] = None
import softmargin
try:
    softmargin.load("m")
except ImportError as error:
    print(error)
"""
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert f"needs the package {missing}" in done.stdout
        assert "softmargin.load_predictor, which needs NumPy alone" in done.stdout


class TestCalibration:
    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
    @pytest.mark.parametrize("around", ["model", "pipeline"])
    @pytest.mark.parametrize("model", [LinearSVC(), SVC()], ids=["linear", "kernel"])
    def test_it_comes_back_and_predicts_in_numpy(self, tmp_path, iris, model, around, method, n_classes):
        X, y = iris[0][iris[1] < n_classes][:, :2], iris[1][iris[1] < n_classes]
        scaler, settings = StandardScaler(), {"method": method, "ensemble": False, "cv": 3}
        if around == "model":
            given = make_pipeline(scaler, CalibratedClassifierCV(model, **settings))
        else:
            given = CalibratedClassifierCV(make_pipeline(scaler, model), **settings)
        given.fit(X, y)
        again, predictor = there_and_back(given, tmp_path / "m")
        assert type(again) is type(given)
        np.testing.assert_array_equal(again.predict_proba(X), given.predict_proba(X))
        close(predictor.predict_proba(X), given.predict_proba(X))
        np.testing.assert_array_equal(predictor.predict(X), given.predict(X))
        assert again.get_params().keys() == given.get_params().keys() or around == "model"

    def test_a_model_that_was_fitted_before(self, tmp_path, cancer):
        X, y = cancer
        frozen = FrozenEstimator(LinearSVC().fit(X[:300], y[:300]))
        given = CalibratedClassifierCV(frozen).fit(X[300:], y[300:])
        again, predictor = there_and_back(given, tmp_path / "m")
        np.testing.assert_array_equal(again.predict_proba(X), given.predict_proba(X))
        close(predictor.predict_proba(X), given.predict_proba(X))

    def test_one_probability_where_all_calibrators_say_zero(self):
        from softmargin.io.record import Calibration
        from softmargin.prediction.calibration import probabilities

        curves = {"lengths": np.ones(4, int), "x": np.zeros(4), "y": np.zeros(4)}
        found = probabilities(np.zeros((2, 4)), Calibration("isotonic", curves))
        np.testing.assert_array_equal(found, np.full((2, 4), 0.25))

    def test_scores_far_out_do_not_overflow(self):
        from softmargin.io.record import Calibration
        from softmargin.prediction.calibration import probabilities

        steep = Calibration("sigmoid", {"a": np.array([-1.0]), "b": np.zeros(1)})
        assert probabilities(np.array([-1e4, 0.0, 1e4]), steep)[:, 1].tolist() == [0.0, 0.5, 1.0]


class TestRefused:
    def refused(self, model, path, match):
        with pytest.raises(SoftmarginError, match=match):
            save(model, path)
        assert not path.exists()

    def test_a_step_that_is_no_scaler(self, tmp_path, iris):
        pipe = make_pipeline(PCA(2), LinearSVC()).fit(*iris)
        self.refused(pipe, tmp_path / "m", "'pca' is a PCA.*known are StandardScaler")

    def test_a_class_derived_from_a_scaler(self, tmp_path, iris):
        class Mine(StandardScaler):
            pass

        self.refused(make_pipeline(Mine(), LinearSVC()).fit(*iris), tmp_path / "m", "is a Mine")

    def test_models_of_several_folds(self, tmp_path, iris):
        given = CalibratedClassifierCV(LinearSVC(), ensemble=True).fit(*iris)
        self.refused(given, tmp_path / "m", "holds 5 models.*ensemble=False")

    def test_a_pipeline_in_a_pipeline(self, tmp_path, iris):
        pipe = make_pipeline(StandardScaler(), make_pipeline(Normalizer(), LinearSVC())).fit(*iris)
        self.refused(pipe, tmp_path / "m", "pipeline within a pipeline")

    def test_the_models_of_others(self, tmp_path, iris):
        from sklearn.svm import LinearSVC as Other

        self.refused(make_pipeline(StandardScaler(), Other()).fit(*iris), tmp_path / "m", "cannot be saved")

    def test_a_search_names_its_best_model(self, tmp_path, iris):
        search = LinearSVCCV(Cs=[0.1, 1.0], cv=2).fit(*iris)
        self.refused(search, tmp_path / "m", "best_estimator_")

    @pytest.mark.parametrize("form", ["liblinear", "csv"])
    def test_formats_without_scalers(self, tmp_path, iris, form):
        pipe = make_pipeline(StandardScaler(), LinearSVC()).fit(*iris)
        with pytest.raises(SoftmarginError, match=r"no scaling|format"):
            save(pipe, tmp_path / "m", format=form)

    def test_scalers_of_another_width(self, tmp_path, iris):
        from softmargin.io.model_file import write_model
        from softmargin.io.record import ModelRecord, Step

        save(SVC().fit(sp.csr_matrix(iris[0]), iris[1]), tmp_path / "m")  # its arrays do not say how many columns
        record = softmargin.io.model_file.read_model(tmp_path / "m")
        scaler = Step("s", "MaxAbsScaler", {}, {"scale_": np.ones(3)})
        write_model(
            tmp_path / "m", ModelRecord(record.kind, record.params, record.values, record.arrays, {}, (scaler,))
        )
        for read in (load, load_predictor):
            with pytest.raises(ModelFileError, match="has 3 values for 4 features"):
                read(tmp_path / "m")


class TestBadRows:
    @pytest.fixture
    def predictor(self, tmp_path, iris):
        save(make_pipeline(StandardScaler(), SVC()).fit(*iris), tmp_path / "m")
        return load_predictor(tmp_path / "m")

    @pytest.mark.parametrize(
        ("rows", "cause"),
        [
            ([[1.0, 2.0]], "2 features, but the model was trained on 4"),
            ([1.0, 2.0, 3.0, 4.0], "two dimensions"),
            ([[1.0, 2.0, 3.0, np.nan]], "NaN or infinity"),
            ([["a", "b", "c", "d"]], "something else than numbers"),
            ([[1.0], [1.0, 2.0]], "something else than numbers"),
            ([[1e308, -1e308, 1e308, 1e308]], "overflows"),
        ],
    )
    def test_each_is_named(self, predictor, rows, cause):
        with pytest.raises(SoftmarginError, match=cause):
            predictor.predict(rows)

    def test_no_rows(self, predictor):
        assert predictor.predict(np.empty((0, 4))).shape == (0,)

    def test_no_probabilities(self, predictor):
        assert not predictor.has_probabilities
        with pytest.raises(SoftmarginError, match="CalibratedClassifierCV"):
            predictor.predict_proba([[1.0, 2.0, 3.0, 4.0]])

    def test_repr(self, predictor):
        assert repr(predictor) == "<Predictor: StandardScaler -> SVC, 4 features>"
