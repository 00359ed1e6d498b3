"""Regressions and one-class models as LIBSVM's text: its program and we predict the same with the same file."""

import shutil
import subprocess
import tracemalloc
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import SVR, NuSVR, OneClassSVM

from softmargin import ModelFileError, SoftmarginError
from softmargin.estimators.record_scoring import predictor_of
from softmargin.io.libsvm import parse, write_libsvm
from softmargin.io.model_file import read_model, write_model
from softmargin.io.record import ModelRecord, matrix_from_arrays, matrix_to_arrays

TRAIN, PREDICT = shutil.which("svm-train"), shutil.which("svm-predict")
needs_libsvm = pytest.mark.skipif(not (TRAIN and PREDICT), reason="LIBSVM's programs are not installed")

KERNELS = {
    "linear": {},
    "poly": {"degree": 2, "coef0": 0.5, "gamma": 0.3},
    "rbf": {"gamma": 0.7},
    "sigmoid": {"coef0": -0.25, "gamma": 0.1},
}
OPTIONS = {
    "linear": ["-t", "0"],
    "poly": ["-t", "1", "-d", "2", "-r", "0.5", "-g", "0.3"],
    "rbf": ["-t", "2", "-g", "0.7"],
    "sigmoid": ["-t", "3", "-r", "-0.25", "-g", "0.1"],
}
MODELS = {"SVR": SVR(C=3.0, epsilon=0.2), "OneClassSVM": OneClassSVM(nu=0.3)}
THEIRS = {"SVR": "epsilon_svr", "OneClassSVM": "one_class"}


def make_data(n=120, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.8, np.round(rng.standard_normal((n, d)), 3), 0.0) + 0.0
    return X, np.round(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n), 3) + 2.0


def record_of(model, kind):
    """A fitted SVR or OneClassSVM of scikit-learn as a record: its attributes have the shapes and signs of ours."""
    coef = model.dual_coef_.toarray() if sp.issparse(model.dual_coef_) else model.dual_coef_
    n_support = np.array([model.support_.size], dtype=np.int32)  # scikit-learn leaves its own unset for sparse rows
    arrays = {"dual_coef_": coef, "intercept_": model.intercept_, "n_support_": n_support}
    params = {name: getattr(model, name) for name in ("kernel", "degree", "coef0")}
    values = {"gamma_": float(model._gamma), "n_features_in_": model.n_features_in_}
    return ModelRecord(kind, params, values, arrays | matrix_to_arrays("support_vectors_", model.support_vectors_))


def trained(kind, kernel="rbf", data=None):
    X, y = make_data() if data is None else data
    model = MODELS[kind].set_params(kernel=kernel, **KERNELS[kernel]).fit(X, y)
    return model, record_of(model, kind)


def assert_same_arrays(found, record):
    for name, array in record.arrays.items():
        assert found.arrays[name].tobytes() == array.astype(found.arrays[name].dtype).tobytes(), name


def text_of(sv="1 1:0.5 2:1\n-1 1:-0.5\n", drop=(), **lines):
    """A regression; a keyword replaces a line or adds one."""
    head = {
        "svm_type": "epsilon_svr",
        "kernel_type": "rbf",
        "gamma": "0.5",
        "nr_class": "2",
        "total_sv": "2",
        "rho": "0.25",
    } | lines
    return ("".join(f"{key} {value}\n" for key, value in head.items() if key not in drop) + "SV\n" + sv).encode()


class TestExport:
    @pytest.mark.parametrize("kind", MODELS)
    def test_the_text(self, tmp_path, kind):
        arrays = {
            "dual_coef_": np.array([[-0.1, 0.5]]),
            "intercept_": np.array([0.25]),
            "n_support_": np.array([2], dtype=np.int32),
            "support_vectors_": np.array([[1.0, 0.0, 0.0], [0.0, 0.1, -2.0]]),
        }
        write_libsvm(tmp_path / "m", ModelRecord(kind, {"kernel": "rbf"}, {"gamma_": 0.5, "n_features_in_": 3}, arrays))
        assert (tmp_path / "m").read_text() == (
            f"svm_type {THEIRS[kind]}\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho -0.25\nSV\n"
            "-0.10000000000000001 1:1 \n0.5 2:0.10000000000000001 3:-2 \n"
        )

    @pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
    @pytest.mark.parametrize("kernel", KERNELS)
    @pytest.mark.parametrize("kind", MODELS)
    def test_round_trip_bit_for_bit(self, tmp_path, kind, kernel, sparse):
        X, y = make_data()
        _, record = trained(kind, kernel, (sp.csr_matrix(np.where(X > 0.5, X, 0.0)), y) if sparse else (X, y))
        write_libsvm(tmp_path / "m", record)
        found = read_model(tmp_path / "m")
        assert found.kind == kind
        assert_same_arrays(found, record)
        assert found.values["n_features_in_"] == record.values["n_features_in_"]
        assert found.params == {"kernel": kernel, **KERNELS[kernel]}

    def test_a_regression_without_support_vectors(self, tmp_path):
        """A tube that is wide enough for all rows needs none; the number of features survives all the same."""
        X, y = make_data()
        record = record_of(SVR(epsilon=100.0).fit(X, y), "SVR")
        assert record.arrays["dual_coef_"].shape == (1, 0)
        write_libsvm(tmp_path / "m", record)
        found = read_model(tmp_path / "m")
        assert found.arrays["dual_coef_"].shape == (1, 0)
        assert found.values["n_features_in_"] == 6
        np.testing.assert_array_equal(predictor_of(found).scores(X, 1), np.full(len(X), record.arrays["intercept_"]))

    def test_the_number_of_features_survives_empty_ones(self, tmp_path):
        X, y = make_data()
        _, record = trained("SVR", data=(np.hstack([X, np.zeros((len(X), 4))]), y))
        write_libsvm(tmp_path / "m", record)
        assert read_model(tmp_path / "m").values["n_features_in_"] == 10

    @pytest.mark.parametrize("kernel", ["laplacian", "precomputed"])
    def test_kernels_that_it_does_not_know(self, tmp_path, kernel):
        _, record = trained("SVR")
        with pytest.raises(SoftmarginError, match=f"'{kernel}' has no place.*'softmargin'"):
            write_libsvm(tmp_path / "m", replace(record, params=record.params | {"kernel": kernel}))
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("name", ["dual_coef_", "intercept_", "support_vectors_"])
    @pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
    def test_only_numbers(self, tmp_path, name, value):
        _, record = trained("OneClassSVM")
        damaged = record.arrays[name].copy()
        damaged[..., 0] = value
        with pytest.raises(SoftmarginError, match=f"{name} holds NaN"):
            write_libsvm(tmp_path / "m", replace(record, arrays=record.arrays | {name: damaged}))


class TestImport:
    @pytest.mark.parametrize(
        ("theirs", "kind"), [("epsilon_svr", "SVR"), ("nu_svr", "SVR"), ("one_class", "OneClassSVM")]
    )
    def test_each_type(self, theirs, kind):
        record = parse(text_of(svm_type=theirs, probA="0.3", prob_density_marks="1 2"))
        assert record.kind == kind
        assert record.params == {"kernel": "rbf", "gamma": 0.5}
        assert record.values == {"gamma_": 0.5, "n_features_in_": 2}
        assert record.arrays["dual_coef_"].tolist() == [[1.0, -1.0]]
        assert record.arrays["intercept_"].tolist() == [-0.25]
        assert record.arrays["n_support_"].tolist() == [2]
        assert record.arrays["support_vectors_"].tolist() == [[0.5, 1.0], [-0.5, 0.0]]

    def test_vectors_that_count_for_nothing_are_left_out(self):
        record = parse(text_of(sv="0 1:0.5 2:1 3:0\n-1 1:-0.5\n"))
        assert record.arrays["dual_coef_"].tolist() == [[-1.0]]
        assert record.arrays["n_support_"].tolist() == [1]
        assert record.values["n_features_in_"] == 3

    def test_no_support_vectors(self):
        """svm-train writes this where all targets are equal."""
        record = parse(text_of(total_sv="0", rho="-3", sv=""))
        assert record.values["n_features_in_"] == 1
        assert predictor_of(record).scores(np.ones((2, 1)), 1).tolist() == [3.0, 3.0]

    @pytest.mark.parametrize(
        ("text", "cause"),
        [
            (text_of(label="1 2"), r"line 7 \(label\).*epsilon_svr has no classes"),
            (text_of(svm_type="one_class", nr_sv="1 1"), r"line 7 \(nr_sv\).*one_class has no classes"),
            (text_of(svm_type="EPSILON_SVR"), "line 1.*is unknown"),
            (text_of(drop=["rho"]), "'rho' is missing.*epsilon_svr"),
            (text_of(drop=["nr_class"]), "'nr_class' is missing"),
            (text_of(nr_class="3"), "line 4.*it is 2"),
            (text_of(nr_class="9" * 18), "line 4.*it is 2"),
            (text_of(rho="1 2"), "line 6.*1 values"),
            (text_of(rho="nan"), "not a number"),
            (text_of(rho="1e200"), "beyond"),
            (text_of(total_sv="-1"), "line 5.*negative"),
            (text_of(total_sv="0"), "should have 0 support vectors, but has 2"),
            (text_of(total_sv="9" * 15), "should have 9+ support vectors, but has 2"),
            (text_of(sv=""), "should have 2 support vectors, but has 0"),
            (text_of(sv="1 1:1\n1:1\n"), "line 9.*1 coefficient "),
            (text_of(sv="1 1 1:1\n1 1:1\n"), "line 8.*colon"),
            (text_of(sv="1e999 1:1\n1 1:1\n"), "line 8.*coefficient"),
            (text_of(sv="1 1:1\n-1 0:1\n"), "line 9.*from 1"),
            (text_of(sv="1 1:1e200\n-1 1:1\n"), "line 8.*beyond"),
            (text_of(kernel_type="precomputed"), "training data"),
            (text_of(gamma="-1"), "above 0"),
        ],
    )
    def test_what_is_refused(self, tmp_path, text, cause):
        (tmp_path / "m").write_bytes(text)
        with pytest.raises(ModelFileError, match=cause) as caught:
            read_model(tmp_path / "m")
        assert str(tmp_path / "m") in str(caught.value)

    def test_claims_are_not_allocated(self):
        parse(text_of())  # imports
        tracemalloc.start()
        try:
            for text in (text_of(total_sv="9" * 15), text_of(nr_class="9" * 15), text_of(total_sv="9" * 15, sv="")):
                with pytest.raises(ModelFileError):
                    parse(text)
            assert tracemalloc.get_traced_memory()[1] < 2**29  # what svmlight text reserves, and does not touch
        finally:
            tracemalloc.stop()

    @given(
        at=st.integers(0, 140),
        cut=st.integers(0, 20),
        put=st.binary(max_size=5)
        | st.text(max_size=8).map(str.encode)
        | st.sampled_from([b"9" * 19, b"1e309", b"-", b"SV\n", b":", b"1:1 ", b"one_class", b"c_svc"]),
    )
    def test_a_piece_replaced(self, at, cut, put):
        text = text_of()
        with suppress(ModelFileError):
            record = parse(text[:at] + put + text[at + cut :])
            arrays = record.arrays
            assert np.isfinite(arrays["dual_coef_"]).all()
            assert np.isfinite(arrays["intercept_"]).all()
            assert arrays["n_support_"].sum() == arrays["dual_coef_"].shape[1]
            vectors = matrix_from_arrays("support_vectors_", arrays, record.values["n_features_in_"])
            assert vectors.shape[0] == arrays["dual_coef_"].shape[1]


@pytest.mark.parametrize("theirs", ["epsilon_svr", "one_class"])
def test_a_record_of_it_is_one_for_our_file(tmp_path, theirs):
    record = parse(text_of(svm_type=theirs))
    write_model(tmp_path / "m", record)
    found = read_model(tmp_path / "m")
    assert_same_arrays(found, record)
    assert (found.kind, found.params, found.values) == (record.kind, record.params, record.values)


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


@needs_libsvm
@pytest.mark.parametrize("kernel", KERNELS)
class TestTheProgram:
    @pytest.mark.parametrize("kind", MODELS)
    def test_it_predicts_with_our_models_as_we_do(self, tmp_path, kind, kernel):
        model, record = trained(kind, kernel)
        new, y = make_data(n=300, seed=1)
        write_libsvm(tmp_path / "model", record)
        found = run_predict(tmp_path, new, y, tmp_path / "model")
        np.testing.assert_allclose(found, model.predict(new), rtol=1e-5)  # the program prints six digits
        np.testing.assert_allclose(found, ours(tmp_path / "model", new), rtol=1e-5)

    @pytest.mark.parametrize(
        "options", [["-s", "3"], ["-s", "3", "-b", "1"], ["-s", "4", "-n", "0.4"], ["-s", "2", "-n", "0.3"]], ids=str
    )
    def test_we_predict_with_its_models_as_it_does(self, tmp_path, kernel, options):
        X, y = make_data()
        (tmp_path / "train").write_text(svmlight_text(X, y))
        command = [TRAIN, "-q", *OPTIONS[kernel], *options, tmp_path / "train", tmp_path / "model"]
        subprocess.run(command, check=True, capture_output=True)
        theirs = run_predict(tmp_path, X, y, tmp_path / "model")
        assert len(set(theirs.tolist())) > 1
        predictor = predictor_of(read_model(tmp_path / "model"))
        scores = predictor.scores(X, 1)
        clear = np.abs(scores) > 1e-6 if options[1] == "2" else np.ones(len(X), dtype=bool)
        np.testing.assert_allclose(predictor.labels(scores)[clear], theirs[clear], rtol=1e-5, atol=1e-5)


@needs_libsvm
def test_it_predicts_with_a_regression_that_has_no_support_vectors(tmp_path):
    X, y = make_data()
    model = SVR(epsilon=100.0).fit(X, y)
    write_libsvm(tmp_path / "model", record_of(model, "SVR"))
    np.testing.assert_allclose(run_predict(tmp_path, X, y, tmp_path / "model"), model.predict(X), rtol=1e-5)
    (tmp_path / "train").write_text(svmlight_text(X, np.full(len(X), 3.0)))
    subprocess.run([TRAIN, "-q", "-s", "3", tmp_path / "train", tmp_path / "model"], check=True, capture_output=True)
    assert set(ours(tmp_path / "model", X[:, :1]).tolist()) == {3.0}


def test_nu_svr_of_scikit_learn_predicts_the_same_through_the_text(tmp_path):
    X, y = make_data()
    model = NuSVR().fit(X, y)
    write_libsvm(tmp_path / "m", record_of(model, "SVR"))
    text = (tmp_path / "m").read_bytes().replace(b"epsilon_svr", b"nu_svr")
    (tmp_path / "m").write_bytes(text)
    np.testing.assert_allclose(ours(tmp_path / "m", X), model.predict(X), rtol=1e-9)
