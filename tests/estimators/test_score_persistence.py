"""Regressions and one-class models in files: our own, and the model texts of LIBLINEAR and LIBSVM."""

import shutil
import subprocess
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from softmargin import (
    SVR,
    LinearOneClassSVM,
    LinearSVR,
    ModelFileError,
    OneClassSVM,
    SoftmarginError,
    certify,
    load,
)
from softmargin.estimators.record_scoring import predictor_of
from softmargin.io.model_file import read_model, write_model

LINEAR = [LinearSVR(epsilon=0.1), LinearOneClassSVM(nu=0.2)]
KERNEL = [SVR(C=3.0), OneClassSVM(nu=0.2)]
MODELS = [*LINEAR, *KERNEL]
FORMATS = [*((model, "liblinear") for model in LINEAR), *((model, "libsvm") for model in KERNEL)]
IDS = [type(model).__name__ for model in MODELS]
# What prediction needs: it comes back bit for bit.
KEPT = ("coef_", "intercept_", "dual_coef_", "n_support_", "support_vectors_", "gamma_", "n_features_in_")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m"


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((90, 5)) + 1.0
    return X, X @ rng.standard_normal(5) + 0.3 * rng.standard_normal(90)


def fitted(model, X, y, **params):
    from sklearn.base import clone

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits that are stopped early
        return clone(model).set_params(**params).fit(X, y)


def saved_and_loaded(model, path, **options):
    model.save(path, **options)
    return load(path)


def bits(value):
    parts = [value.data, value.indices, value.indptr] if sp.issparse(value) else [np.asarray(value)]
    return [(part.dtype, part.shape, part.tobytes()) for part in parts]


def as_svmlight(X, y, path):
    rows = zip(y.tolist(), X.tolist(), strict=True)
    lines = (f"{label} " + " ".join(f"{j}:{value!r}" for j, value in enumerate(row, 1)) for label, row in rows)
    path.write_text("\n".join(lines) + "\n")
    return path


def assert_same_model(found, model, X):
    assert type(found) is type(model)
    for name in KEPT:
        if name in vars(model):
            assert bits(getattr(found, name)) == bits(getattr(model, name)), name
    assert found.predict(X).tobytes() == model.predict(X).tobytes()
    if hasattr(model, "offset_"):
        assert found.offset_.tobytes() == model.offset_.tobytes()
        assert found.score_samples(X).tobytes() == model.score_samples(X).tobytes()


class TestOurFile:
    @pytest.mark.parametrize("model", MODELS, ids=IDS)
    @pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, np.float32], ids=["dense", "sparse", "float32"])
    def test_everything_comes_back(self, path, numbers, model, make):
        X, y = numbers
        X = make(np.where(X > 0.5, X, 0.0))
        model = fitted(model, X, y)
        found = saved_and_loaded(model, path)
        assert_same_model(found, model, X)
        assert vars(found).keys() == vars(model).keys()
        assert found.get_params() == model.get_params()
        for name in ("status_", "certificate_", "certificates_", "seconds_", "n_iter_"):
            assert getattr(found, name) == getattr(model, name), name
        assert list(found.trace_) == list(model.trace_)
        assert certify(found, X, y).primal == pytest.approx(model.certificate_.primal, rel=1e-9)
        path.unlink()
        found.save(path)
        assert_same_model(load(path), model, X)

    @pytest.mark.parametrize("model", MODELS, ids=IDS)
    def test_feature_names(self, path, numbers, model):
        X, y = numbers
        frame = pd.DataFrame(X, columns=[f"größe {j}" for j in range(X.shape[1])])
        found = saved_and_loaded(fitted(model, frame, y), path)
        assert list(found.feature_names_in_) == list(frame.columns)
        with pytest.raises(ValueError, match="feature names"):
            found.predict(frame.rename(columns={"größe 0": "weight"}))

    @pytest.mark.parametrize("model", KERNEL, ids=IDS[2:])
    def test_a_precomputed_kernel(self, path, numbers, model):
        X, y = numbers
        K = X @ X.T
        model = fitted(model, K, y, kernel="precomputed")
        found = saved_and_loaded(model, path)
        assert found.predict(K).tobytes() == model.predict(K).tobytes()
        assert certify(found, K, y) == certify(model, K, y)

    @pytest.mark.parametrize("model", MODELS, ids=IDS)
    def test_a_fit_goes_on(self, path, numbers, model):
        X, y = numbers
        if model in KERNEL:
            model = fitted(model, X, y, solver="smo")  # blocks of this size are solved at once
        else:
            model = fitted(model, X, y, solver="ocas")  # coordinate descent makes hundreds of epochs in a step
        stopped = fitted(model, X, y, max_iter=2, tol=1e-7)
        assert not stopped.status_.reached_goal
        resumed = saved_and_loaded(stopped, path, include_training_state=True)
        resumed.set_params(max_iter=None, warm_start=True).fit(X, y)
        whole = fitted(model, X, y, tol=1e-7)
        assert resumed.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-6)
        assert resumed.n_iter_ > stopped.n_iter_
        if hasattr(model, "epsilon") and not hasattr(model, "kernel"):
            np.testing.assert_array_equal(resumed.coef_, whole.coef_)

    @pytest.mark.parametrize("model", MODELS, ids=IDS)
    def test_a_state_of_another_kind_of_model_is_refused(self, path, numbers, model):
        """Its arrays are those of a state, but of one that this estimator's solvers do not know."""
        X, y = numbers
        fitted(model, X, y, warm_start=True).save(path, include_training_state=True)
        record = read_model(path)
        others = {"PlaneState": "DualState", "CoordinateState": "DualState", "DualState": "PlaneState"}
        state = record.values["state"] | {"type": others[record.values["state"]["type"]]}
        write_model(path, replace(record, values=record.values | {"state": state}))
        with pytest.raises(ModelFileError, match="state"):
            load(path)

    @pytest.mark.parametrize("model", MODELS, ids=IDS)
    @pytest.mark.parametrize(
        "lie",
        [
            lambda arrays: arrays.update(intercept_=np.zeros(2)),
            lambda arrays: arrays.update(intercept_=np.array([np.nan])),
            lambda arrays: arrays.pop("intercept_"),
            lambda arrays: arrays.update(classes_=np.array([0, 1])),
            lambda arrays: arrays.update({"trace.seconds": np.zeros(0)}),
        ],
        ids=["two intercepts", "nan", "no intercept", "classes", "a short trace"],
    )
    def test_lies(self, path, numbers, monkeypatch, model, lie):
        fitted(model, *numbers).save(path)
        record = read_model(path)
        lie(record.arrays)
        with monkeypatch.context() as patch:
            for name in ("check_layout", "check_numbers"):
                patch.setattr(f"softmargin.io.model_file.{name}", lambda *_: None)
            write_model(path, record)
        with pytest.raises(ModelFileError, match=str(path)):
            load(path)


@pytest.mark.parametrize(("model", "form"), FORMATS, ids=IDS)
class TestText:
    @pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
    def test_there_and_back(self, path, numbers, model, form, make):
        X, y = numbers
        X = make(np.where(X > 1.5, X, 0.0) if make is sp.csr_matrix else X)
        model = fitted(model, X, y)
        assert_same_model(saved_and_loaded(model, path, format=form), model, X)

    def test_nothing_is_claimed_that_the_file_does_not_say(self, path, numbers, model, form):
        X, y = numbers
        fit = fitted(model, X, y, tol=1e-5)
        found = saved_and_loaded(fit, path, format=form)
        assert np.isnan([found.certificate_.primal, found.certificate_.dual, found.certificate_.relative_gap]).all()
        absent = {"status_", "dual_", "trace_", "n_iter_", "seconds_", "counts_", "fit_status_"}
        assert not absent & vars(found).keys()
        again = saved_and_loaded(found, path)
        np.testing.assert_array_equal(again.predict(X), fit.predict(X))
        assert np.isnan(again.certificate_.gap)

    def test_it_is_judged_once_its_parameters_are_known(self, path, numbers, model, form):
        X, y = numbers
        params = {"tol": 1e-6} | ({"intercept": "penalised"} if isinstance(model, LinearSVR) else {})
        fit = fitted(model, X, y, **params)
        found = saved_and_loaded(fit, path, format=form)
        known = {name: value for name, value in fit.get_params().items() if name in ("C", "epsilon", "nu")}
        certificate = certify(found.set_params(**known), X, y)
        assert certificate.primal == pytest.approx(fit.certificate_.primal, rel=1e-9)
        assert -1e-9 <= certificate.relative_gap <= 1e-5

    def test_it_can_be_trained_again(self, path, numbers, model, form):
        X, y = numbers
        found = saved_and_loaded(fitted(model, X, y), path, format=form)
        found.set_params(warm_start=True).fit(X, y)
        assert found.certificate_.relative_gap <= 1e-3

    def test_the_other_program_has_no_such_model(self, path, numbers, model, form):
        other = {"liblinear": "libsvm", "libsvm": "liblinear"}[form]
        with pytest.raises(SoftmarginError, match=f"format='{other}' is unknown.*'{form}'"):
            fitted(model, *numbers).save(path, format=other)

    def test_it_holds_no_state(self, path, numbers, model, form):
        with pytest.raises(SoftmarginError, match="no training state"):
            fitted(model, *numbers, warm_start=True).save(path, format=form, include_training_state=True)


class TestImportsAreJudged:
    """Support vectors are looked up among the rows."""

    def test_weights_of_zero_leave_rows_out(self, path, numbers):
        X, y = numbers
        X, y = np.vstack([X, X]), np.append(y + 50.0, y)  # the rows of weight zero come first, and are equal
        weights = np.repeat([0.0, 1.0], len(y) // 2)
        model = SVR(tol=1e-6).fit(X, y, weights)
        found = saved_and_loaded(model, path, format="libsvm")
        assert certify(found, X, y, weights).relative_gap <= 1e-5

    @pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
    def test_equal_rows_with_other_targets(self, path, make):
        """Targets above the prediction have positive coefficients, those below it negative ones, the rest none."""
        rng = np.random.default_rng(0)
        X = make(rng.integers(0, 3, (300, 2)).astype(float))
        y = rng.standard_normal(300)
        model = SVR(tol=1e-6, C=0.3, epsilon=0.4).fit(X, y)
        assert 0 < model.support_.size < 300
        found = saved_and_loaded(model, path, format="libsvm").set_params(C=0.3, epsilon=0.4)
        assert certify(found, X, y).relative_gap <= 1e-5

    def test_a_tube_that_holds_all_rows(self, path, numbers):
        X, y = numbers
        model = SVR(epsilon=100.0).fit(X, y)
        assert model.support_.size == 0
        found = saved_and_loaded(model, path, format="libsvm")
        np.testing.assert_array_equal(found.predict(X), model.predict(X))
        assert certify(found.set_params(epsilon=100.0), X, y).primal <= 1e-9

    def test_other_rows(self, path, numbers):
        X, y = numbers
        found = saved_and_loaded(SVR().fit(X, y), path, format="libsvm")
        with pytest.raises(SoftmarginError, match="not among the rows"):
            certify(found, X + 1.0, y)

    @pytest.mark.skipif(not shutil.which("svm-train"), reason="LIBSVM's programs are not installed")
    @pytest.mark.parametrize(
        ("options", "params"),
        [
            (["-s", "3", "-p", "0.2", "-c", "2"], {"C": 2.0, "epsilon": 0.2}),
            (["-s", "2", "-n", "0.3"], {"nu": 0.3}),
        ],
        ids=["regression", "one class"],
    )
    def test_what_svm_train_wrote(self, path, numbers, options, params):
        X, y = numbers
        data = as_svmlight(X, y, path.with_name("data"))
        subprocess.run(["svm-train", "-q", "-e", "1e-6", *options, data, path], check=True, capture_output=True)
        assert certify(load(path).set_params(**params), X, y).relative_gap <= 1e-5

    @pytest.mark.skipif(not shutil.which("liblinear-train"), reason="LIBLINEAR's programs are not installed")
    @pytest.mark.parametrize("bias", ["1", "3", "-1"])
    def test_what_liblinear_train_wrote(self, path, numbers, bias):
        X, y = numbers
        data = as_svmlight(X, y, path.with_name("data"))
        command = ["liblinear-train", "-q", "-s", "13", "-p", "0.2", "-c", "0.02", "-e", "1e-9", "-B", bias, data, path]
        subprocess.run(command, check=True, capture_output=True)
        assert certify(load(path).set_params(C=0.02, epsilon=0.2), X, y).relative_gap <= 1e-5


@pytest.mark.parametrize("model", MODELS, ids=IDS)
def test_predictions_from_files_are_those_of_the_estimator(path, numbers, model):
    X, y = numbers
    model = fitted(model, X, y)
    for form in ("softmargin", "liblinear" if model.__class__.__name__.startswith("Linear") else "libsvm"):
        model.save(path, format=form)
        predictor = predictor_of(read_model(path))
        np.testing.assert_array_equal(predictor.labels(predictor.scores(X, 1)), model.predict(X))
