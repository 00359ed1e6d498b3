"""Regressions and one-class models as LIBLINEAR's text: its program and we predict the same with the same file."""

import shutil
import subprocess
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmargin import ModelFileError, SoftmarginError
from softmargin.estimators.record_scoring import predictor_of
from softmargin.io.liblinear import REGRESSIONS, parse, write_liblinear
from softmargin.io.model_file import read_model, write_model
from softmargin.io.record import ModelRecord

TRAIN, PREDICT = shutil.which("liblinear-train"), shutil.which("liblinear-predict")
needs_liblinear = pytest.mark.skipif(not (TRAIN and PREDICT), reason="LIBLINEAR's programs are not installed")
USAGE = subprocess.run([TRAIN], capture_output=True, text=True, check=False).stdout if TRAIN and PREDICT else ""
needs_one_class = pytest.mark.skipif(
    "one-class" not in USAGE, reason="LIBLINEAR's programs are not installed, or older than their one-class models"
)


def make_record(kind="LinearSVR", fit_intercept=True, seed=0, n_features=6, powers=0):
    rng = np.random.default_rng(seed)
    coef = rng.standard_normal(n_features) * 10.0 ** rng.integers(-powers, powers + 1, n_features)
    if kind == "LinearOneClassSVM":
        return ModelRecord(kind, {"nu": 0.5}, {}, {"coef_": coef[None], "intercept_": rng.standard_normal(1)})
    intercept = rng.standard_normal(1) if fit_intercept else np.zeros(1)
    return ModelRecord(kind, {"fit_intercept": fit_intercept}, {}, {"coef_": coef, "intercept_": intercept})


def text_of(solver="L2R_L1LOSS_SVR_DUAL", w="0.5 \n-1 \n0.25 \n", **lines):
    """A regression; a keyword replaces a line or adds one, and None drops it."""
    head = {"solver_type": solver, "nr_class": "2", "nr_feature": "2", "bias": "1"} | lines
    return ("".join(f"{key} {value}\n" for key, value in head.items() if value is not None) + "w\n" + w).encode()


def one_class(**lines):
    return text_of("ONECLASS_SVM", **{"bias": "-1", "rho": "0.75", "w": "0.5\n-1\n", **lines})


class TestExport:
    def test_the_text_of_a_regression(self, tmp_path):
        arrays = {"coef_": np.array([0.1, -2.0]), "intercept_": np.array([0.5])}
        write_liblinear(tmp_path / "m", ModelRecord("LinearSVR", {"fit_intercept": True}, {}, arrays))
        assert (tmp_path / "m").read_text() == (
            "solver_type L2R_L1LOSS_SVR_DUAL\nnr_class 2\nnr_feature 2\nbias 1\nw\n0.10000000000000001 \n-2 \n0.5 \n"
        )

    def test_the_text_of_a_one_class_model(self, tmp_path):
        """As version 2.50 of LIBLINEAR writes it."""
        arrays = {"coef_": np.array([[0.1, -2.0]]), "intercept_": np.array([-0.5])}
        write_liblinear(tmp_path / "m", ModelRecord("LinearOneClassSVM", {"nu": 0.5}, {}, arrays))
        assert (tmp_path / "m").read_text() == (
            "solver_type ONECLASS_SVM\nnr_class 2\nnr_feature 2\nbias -1\nrho 0.5\nw\n0.10000000000000001 \n-2 \n"
        )

    @pytest.mark.parametrize(
        "record",
        [make_record(powers=30), make_record(fit_intercept=False, powers=30), make_record("LinearOneClassSVM")],
        ids=["regression", "without intercept", "one class"],
    )
    def test_round_trip_bit_for_bit(self, tmp_path, record):
        write_liblinear(tmp_path / "m", record)
        found = read_model(tmp_path / "m")
        assert found.kind == record.kind
        assert found.arrays.keys() == record.arrays.keys()
        for name, array in record.arrays.items():
            assert found.arrays[name].shape == array.shape
            assert found.arrays[name].tobytes() == array.tobytes()
        assert found.params.get("fit_intercept") == record.params.get("fit_intercept")

    @pytest.mark.parametrize("kind", ["LinearSVR", "LinearOneClassSVM"])
    @pytest.mark.parametrize("name", ["coef_", "intercept_"])
    def test_no_nan(self, tmp_path, kind, name):
        record = make_record(kind)
        record.arrays[name][..., 0] = np.nan
        with pytest.raises(SoftmarginError, match="NaN"):
            write_liblinear(tmp_path / "m", record)
        assert not list(tmp_path.iterdir())


class TestImport:
    @pytest.mark.parametrize("solver", REGRESSIONS)
    def test_every_regression(self, solver):
        found = parse(text_of(solver))
        assert found.kind == "LinearSVR"
        assert found.arrays["coef_"].tolist() == [0.5, -1.0]
        assert found.arrays["intercept_"].tolist() == [0.25]
        loss = {} if solver == "L2R_L1LOSS_SVR_DUAL" else {"loss": "squared_epsilon_insensitive"}
        assert found.params == {"fit_intercept": True, "intercept": "penalised", "intercept_scaling": 1.0, **loss}

    def test_bias_is_folded_in(self):
        assert parse(text_of(bias="2")).arrays["intercept_"].tolist() == [0.5]
        found = parse(text_of(bias="-1", w="1 2"))
        assert found.arrays["intercept_"].tolist() == [0.0]
        assert found.params == {"fit_intercept": False}

    def test_one_class(self):
        found = parse(one_class())
        assert (found.kind, found.params) == ("LinearOneClassSVM", {})
        assert found.arrays["coef_"].tolist() == [[0.5, -1.0]]
        assert found.arrays["intercept_"].tolist() == [-0.75]
        assert parse(one_class(bias="2", w="1 2 3")).arrays["intercept_"].tolist() == [5.25]

    @pytest.mark.parametrize("text", [text_of(), one_class()], ids=["regression", "one class"])
    def test_a_record_of_it_is_one_for_our_file(self, tmp_path, text):
        record = parse(text)
        write_model(tmp_path / "m", record)
        found = read_model(tmp_path / "m")
        assert (found.kind, found.params) == (record.kind, record.params)

    @pytest.mark.parametrize(
        ("text", "cause"),
        [
            (text_of("L1R_L1LOSS_SVR"), "'L1R_L1LOSS_SVR' is unknown"),
            (text_of(label="1 -1"), "'label' has no place.*L2R_L1LOSS_SVR_DUAL"),
            (text_of(rho="1"), "'rho' has no place"),
            (text_of(nr_class=None), "'nr_class' is missing"),
            (text_of(nr_class="1"), "must be 2"),
            (text_of(nr_class="9" * 15), "must be 2"),
            (text_of(nr_feature="0"), "needs features"),
            (text_of(nr_feature="-1"), "needs features"),
            (text_of(nr_feature="9" * 15), "should have 10+ weights, but has 3"),
            (text_of(w="1 2"), "should have 3"),
            (text_of(w="1 2 nan"), "nan"),
            (text_of(w="1 2 1e999"), "beyond"),
            (text_of(bias="1e300"), "bias"),
            (one_class(rho=None), "'rho' is missing"),
            (one_class(rho="nan"), "rho"),
            (one_class(rho="1e300"), "rho.*beyond"),
            (one_class(rho="1 2"), "one value"),
            (one_class(rho=""), "one value"),
            (one_class(label="1 -1"), "'label' has no place"),
            (one_class(w="1"), "should have 2"),
        ],
    )
    def test_what_is_refused(self, tmp_path, text, cause):
        (tmp_path / "m").write_bytes(text)
        with pytest.raises(ModelFileError, match=cause) as caught:
            read_model(tmp_path / "m")
        assert str(tmp_path / "m") in str(caught.value)

    @given(
        text=st.sampled_from([text_of(), one_class()]),
        at=st.integers(0, 110),
        cut=st.integers(0, 20),
        put=st.binary(max_size=5)
        | st.text(max_size=8).map(str.encode)
        | st.sampled_from([b"9" * 19, b"1e309", b"-", b"w\n", b"rho 1\n"]),
    )
    def test_a_piece_replaced(self, text, at, cut, put):
        with suppress(ModelFileError):
            arrays = parse(text[:at] + put + text[at + cut :]).arrays
            assert np.isfinite(arrays["coef_"]).all()
            assert np.isfinite(arrays["intercept_"]).all()
            assert arrays["intercept_"].shape == (1,)


def svmlight_text(X, y):
    lines = (
        f"{label} " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row) if value)
        for label, row in zip(y.tolist(), X.tolist(), strict=True)
    )
    return "\n".join(lines) + "\n"


def run_predict(folder, X, y, model):
    (folder / "data").write_text(svmlight_text(X, y))
    subprocess.run([PREDICT, folder / "data", model, folder / "out"], check=True, capture_output=True)
    return np.loadtxt(folder / "out")


def ours(path, X):
    predictor = predictor_of(read_model(path))
    return predictor.labels(predictor.scores(X, 1))


@needs_liblinear
class TestTheProgram:
    @pytest.fixture
    def data(self):
        rng = np.random.default_rng(0)
        X = np.round(rng.standard_normal((300, 6)), 3) * (rng.random((300, 6)) < 0.7)
        return X, np.round(X @ rng.standard_normal(6) + 0.3 * rng.standard_normal(300) + 2.0, 3)

    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_it_predicts_with_our_models_as_we_do(self, tmp_path, data, fit_intercept):
        X, y = data
        record = make_record(fit_intercept=fit_intercept)
        write_liblinear(tmp_path / "model", record)
        by_hand = X @ record.arrays["coef_"] + record.arrays["intercept_"]
        found = run_predict(tmp_path, X, y, tmp_path / "model")
        np.testing.assert_allclose(found, by_hand, rtol=1e-5, atol=1e-12)  # the program prints six digits

    @pytest.mark.parametrize("bias", ["1", "2.5", "0", "-1"])
    @pytest.mark.parametrize("solver", ["11", "12", "13"])
    def test_we_predict_with_its_models_as_it_does(self, tmp_path, data, solver, bias):
        X, y = data
        (tmp_path / "train").write_text(svmlight_text(X, y))
        command = [TRAIN, "-q", "-s", solver, "-B", bias, tmp_path / "train", tmp_path / "model"]
        subprocess.run(command, check=True, capture_output=True)
        theirs = run_predict(tmp_path, X, y, tmp_path / "model")
        np.testing.assert_allclose(ours(tmp_path / "model", X), theirs, rtol=1e-5, atol=1e-12)

    @needs_one_class
    def test_one_class(self, tmp_path, data):
        X, y = data
        X = X + 1.0
        (tmp_path / "train").write_text(svmlight_text(X, y))
        command = [TRAIN, "-q", "-s", "21", "-n", "0.3", tmp_path / "train", tmp_path / "model"]
        subprocess.run(command, check=True, capture_output=True)
        theirs = run_predict(tmp_path, X, y, tmp_path / "model")
        assert set(theirs.tolist()) == {-1.0, 1.0}
        np.testing.assert_array_equal(ours(tmp_path / "model", X), theirs)
        write_liblinear(tmp_path / "again", read_model(tmp_path / "model"))
        np.testing.assert_array_equal(run_predict(tmp_path, X, y, tmp_path / "again"), theirs)
