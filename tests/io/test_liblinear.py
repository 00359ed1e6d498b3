"""LIBLINEAR's model text: ours is read by its program, its by us, and what is neither ends in one kind of error."""

import shutil
import subprocess
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmargin import ModelFileError, SoftmarginError
from softmargin.io.liblinear import CLASSIFIERS, parse, write_liblinear
from softmargin.io.model_file import read_model
from softmargin.io.record import ModelRecord

TRAIN, PREDICT = shutil.which("liblinear-train"), shutil.which("liblinear-predict")
needs_liblinear = pytest.mark.skipif(not (TRAIN and PREDICT), reason="LIBLINEAR's programs are not installed")


def make_record(classes=(-1, 1), fit_intercept=True, seed=0, n_features=6):
    rng = np.random.default_rng(seed)
    k = 1 if len(classes) == 2 else len(classes)
    arrays = {
        "coef_": rng.standard_normal((k, n_features)) * 10.0 ** rng.integers(-30, 30, (k, n_features)),
        "intercept_": rng.standard_normal(k) if fit_intercept else np.zeros(k),
        "classes_": np.asarray(classes),
    }
    return ModelRecord("LinearSVC", {"fit_intercept": fit_intercept}, {}, arrays)


def text_of(
    solver="L2R_L1LOSS_SVC_DUAL", nr_class="2", label="1 -1", nr_feature="2", bias="1", w="0.5 \n-1 \n0.25 \n", extra=""
):
    head = {"solver_type": solver, "nr_class": nr_class, "label": label, "nr_feature": nr_feature, "bias": bias}
    return ("".join(f"{key} {value}\n" for key, value in head.items()) + extra + "w\n" + w).encode()


class TestExport:
    def test_the_text(self, tmp_path):
        arrays = {"coef_": np.array([[0.1, -2.0]]), "intercept_": np.array([0.5]), "classes_": np.array([-1, 1])}
        write_liblinear(tmp_path / "m", ModelRecord("LinearSVC", {"fit_intercept": True}, {}, arrays))
        assert (tmp_path / "m").read_text() == (
            "solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias 1\nw\n"
            "0.10000000000000001 \n-2 \n0.5 \n"
        )

    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("classes", [(-1, 1), (0, 7), (1, 2, 5), (-3, 0, 2, 9)])
    def test_round_trip_bit_for_bit(self, tmp_path, classes, fit_intercept):
        record = make_record(classes, fit_intercept)
        write_liblinear(tmp_path / "m", record)
        found = read_model(tmp_path / "m")
        for name, array in record.arrays.items():
            np.testing.assert_array_equal(found.arrays[name], array)
            assert found.arrays[name].tobytes() == array.tobytes()
        assert found.params["fit_intercept"] is fit_intercept
        assert found.params.get("intercept") == ("penalised" if fit_intercept else None)

    def test_whole_floats_are_integers(self, tmp_path):
        write_liblinear(tmp_path / "m", make_record((-1.0, 1.0)))
        assert read_model(tmp_path / "m").arrays["classes_"].tolist() == [-1, 1]

    @pytest.mark.parametrize("classes", [("a", "b"), (0.5, 1.0), (False, True), (0, 2**31)])
    def test_other_labels_are_refused_with_advice(self, tmp_path, classes):
        with pytest.raises(SoftmarginError, match="LabelEncoder"):
            write_liblinear(tmp_path / "m", make_record(classes))
        assert not list(tmp_path.iterdir())

    def test_no_nan(self, tmp_path):
        record = make_record()
        record.arrays["coef_"][0, 0] = np.nan
        with pytest.raises(SoftmarginError, match="NaN"):
            write_liblinear(tmp_path / "m", record)


class TestImport:
    def test_first_label_is_the_positive_one(self):
        for label, sign in (("1 -1", 1.0), ("-1 1", -1.0)):
            arrays = parse(text_of(label=label)).arrays
            assert arrays["classes_"].tolist() == [-1, 1]
            assert arrays["coef_"].tolist() == [[sign * 0.5, -sign]]
            assert arrays["intercept_"].tolist() == [sign * 0.25]

    def test_bias_is_folded_in(self):
        assert parse(text_of(bias="2")).arrays["intercept_"].tolist() == [0.5]
        assert parse(text_of(bias="2")).params["intercept_scaling"] == 2.0
        for bias, w in (("-1", "1 2"), ("0", "1 2 3")):
            found = parse(text_of(bias=bias, w=w))
            assert found.arrays["intercept_"].tolist() == [0.0]
            assert found.params == {"fit_intercept": False}

    def test_columns_follow_their_labels(self):
        arrays = parse(text_of(nr_class="3", label="3 1 2", w="30 10 20\n31 11 21\n32 12 22\n")).arrays
        assert arrays["classes_"].tolist() == [1, 2, 3]
        assert arrays["coef_"].tolist() == [[10, 11], [20, 21], [30, 31]]
        assert arrays["intercept_"].tolist() == [12, 22, 32]

    def test_crammer_singer_with_two_classes_has_two_columns(self):
        arrays = parse(text_of("MCSVM_CS", label="1 2", bias="-1", w="1 -2\n0.5 3\n")).arrays
        assert arrays["coef_"].tolist() == [[-3, 2.5]]

    @pytest.mark.parametrize("solver", [name for name in CLASSIFIERS if name != "MCSVM_CS"])
    def test_every_classifier(self, solver):
        assert parse(text_of(solver)).arrays["coef_"].shape == (1, 2)

    @pytest.mark.parametrize(
        ("text", "cause"),
        [
            (text_of("L1R_L2LOSS_SVR"), "'L1R_L2LOSS_SVR' is unknown.*ONECLASS_SVM are read"),
            (text_of().replace(b"label 1 -1\n", b""), "'label' is missing"),
            (text_of("L2R_LR twice"), "one value"),
            (text_of(nr_class="1", label="1"), "two classes"),
            (text_of(nr_class="3"), "one label"),
            (text_of(label="1 1"), "one label"),
            (text_of(label="1 x"), "integer"),
            (text_of(label="1 1_0"), "integer"),
            (text_of(nr_feature="1e3"), "integer"),
            (text_of(nr_feature="0", w="1"), "features"),
            (text_of(nr_feature="-1"), "features"),
            (text_of(nr_feature="9" * 30), "integer"),
            (text_of(nr_feature="9" * 15), "weights"),
            (text_of(w="1 2"), "should have 3"),
            (text_of(w="1 2 3 4"), "should have 3"),
            (text_of(w="1 2 nan"), "nan"),
            (text_of(w="1 2 1e999"), "beyond"),
            (text_of(w="1 2 1-2"), "cannot be read"),
            (text_of(w="1 2 1_0"), "_"),
            (text_of(bias="inf"), "bias"),
            (text_of(bias="1e300"), "bias"),
            (text_of(bias=""), "one value"),
            (text_of(extra="rho 3\n"), "rho"),
            (text_of(extra="bias 1\n"), "twice"),
            (text_of(extra="\n"), "unknown"),
            (text_of(extra="\xff\n"), "unknown"),
            (text_of().replace(b"\nw\n", b"\n"), "'w'"),
            (b"solver_type", "'w'"),
        ],
    )
    def test_what_is_refused(self, tmp_path, text, cause):
        (tmp_path / "m").write_bytes(text)
        with pytest.raises(ModelFileError, match=cause) as caught:
            read_model(tmp_path / "m")
        assert str(tmp_path / "m") in str(caught.value)


class TestFuzz:
    @given(
        at=st.integers(0, 120),
        cut=st.integers(0, 20),
        put=st.binary(max_size=5)
        | st.text(max_size=8).map(str.encode)
        | st.sampled_from([b"9" * 19, b"1e309", b"-", b"w\n"]),
    )
    def test_a_piece_replaced(self, at, cut, put):
        text = text_of(nr_class="3", label="3 1 2", w="30 10 20\n31 11 21\n32 12 22\n")
        with suppress(ModelFileError):
            arrays = parse(text[:at] + put + text[at + cut :]).arrays
            assert np.isfinite(arrays["coef_"]).all()
            assert np.isfinite(arrays["intercept_"]).all()
            assert (np.diff(arrays["classes_"]) > 0).all()


def svmlight_text(X, y):
    lines = (
        f"{label} " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row) if value)
        for label, row in zip(y.tolist(), X.tolist(), strict=True)
    )
    return "\n".join(lines) + "\n"


def predictions(record, X):
    scores = X @ record.arrays["coef_"].T + record.arrays["intercept_"]
    codes = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
    return record.arrays["classes_"][codes]


def run_predict(folder, X, y, model):
    (folder / "data").write_text(svmlight_text(X, y))
    subprocess.run([PREDICT, folder / "data", model, folder / "out"], check=True, capture_output=True)
    return np.loadtxt(folder / "out", dtype=int)


@needs_liblinear
@pytest.mark.parametrize("labels", [(-1, 1), (4, 2), (3, 1, 7)])
class TestTheProgram:
    @pytest.fixture
    def data(self, labels):
        rng = np.random.default_rng(0)
        X = np.round(rng.standard_normal((300, 6)), 3) * (rng.random((300, 6)) < 0.7)
        scores = X @ rng.standard_normal((6, len(labels))) + 0.3 * rng.standard_normal(len(labels))
        return X, np.array(labels)[scores.argmax(axis=1)]

    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_it_predicts_with_our_models_as_we_do(self, tmp_path, data, labels, fit_intercept):
        X, y = data
        record = make_record(sorted(labels), fit_intercept)
        record.arrays["coef_"][:] = np.random.default_rng(1).standard_normal(record.arrays["coef_"].shape)
        write_liblinear(tmp_path / "model", record)
        ours = predictions(record, X)
        assert len(set(ours.tolist())) == len(labels)
        # Without an intercept an empty row has score 0: both take the second label then.
        np.testing.assert_array_equal(run_predict(tmp_path, X, y, tmp_path / "model"), ours)

    @pytest.mark.parametrize("bias", ["1", "2.5", "-1"])
    @pytest.mark.parametrize("solver", ["0", "1", "3", "4", "5"])
    def test_we_predict_with_its_models_as_it_does(self, tmp_path, data, labels, solver, bias):
        X, y = data
        (tmp_path / "train").write_text(svmlight_text(X, y))
        command = [TRAIN, "-q", "-s", solver, "-B", bias, tmp_path / "train", tmp_path / "model"]
        subprocess.run(command, check=True, capture_output=True)
        theirs = run_predict(tmp_path, X, y, tmp_path / "model")
        assert np.mean(theirs == y) > 0.7
        full = X.any(axis=1)  # the labels of rows with score 0 depend on the order of the labels
        np.testing.assert_array_equal(predictions(read_model(tmp_path / "model"), X)[full], theirs[full])
