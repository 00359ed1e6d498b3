"""LIBSVM's model text: ours is read by its program, its by us, and what is neither ends in one kind of error."""

import shutil
import subprocess
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from softmargin import ModelFileError, SoftmarginError
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
NUMBERS = {"linear": "0", "poly": "1", "rbf": "2", "sigmoid": "3"}


def make_data(labels=(-1, 1), n=150, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.8, np.round(rng.standard_normal((n, d)), 3), 0.0) + 0.0
    scores = X @ rng.standard_normal((d, len(labels))) + 0.3 * rng.standard_normal((n, len(labels)))
    return X, np.array(labels)[scores.argmax(axis=1)]


def record_of(model):
    """A fitted SVC of scikit-learn as a record: its attributes have the shapes and signs of ours."""
    arrays = {name: getattr(model, name) for name in ("dual_coef_", "intercept_", "n_support_", "classes_")}
    if sp.issparse(model.dual_coef_):
        arrays["dual_coef_"] = model.dual_coef_.toarray()
    params = {name: getattr(model, name) for name in ("kernel", "degree", "coef0")}
    values = {"gamma_": float(model._gamma), "n_features_in_": model.n_features_in_}
    vectors = matrix_to_arrays("support_vectors_", model.support_vectors_)
    return ModelRecord("SVC", params, values, arrays | vectors)


def pair_scores(record, X):
    """The decision value of each pair of classes, as the definition says: positive for the first (for two: second)."""
    arrays, values = record.arrays, record.values
    kernel = record.params["kernel"]
    used = {name: record.params[name] for name in ("degree", "coef0") if name in KERNELS[kernel]}
    if kernel != "linear":
        used["gamma"] = values["gamma_"]
    vectors = matrix_from_arrays("support_vectors_", arrays, values["n_features_in_"])
    K = pairwise_kernels(X, vectors, metric=kernel, **used)
    owner = np.repeat(np.arange(len(arrays["classes_"])), arrays["n_support_"])
    columns = []
    for at, (i, j) in enumerate(combinations(range(len(arrays["classes_"])), 2)):
        coef = np.where(owner == i, arrays["dual_coef_"][j - 1], np.where(owner == j, arrays["dual_coef_"][i], 0.0))
        columns.append(K @ coef + arrays["intercept_"][at])
    return np.column_stack(columns)


def voted(record, X):
    """The label of each row, and whether it has more votes than every other."""
    classes, scores = record.arrays["classes_"], pair_scores(record, X)
    if len(classes) == 2:
        return classes[(scores[:, 0] > 0).astype(int)], np.ones(len(X), dtype=bool)
    votes = np.zeros((len(X), len(classes)), dtype=int)
    for at, (i, j) in enumerate(combinations(range(len(classes)), 2)):
        votes[:, i] += scores[:, at] > 0
        votes[:, j] += scores[:, at] <= 0
    return classes[votes.argmax(axis=1)], np.sum(votes == votes.max(axis=1, keepdims=True), axis=1) == 1


def assert_same_arrays(found, record):
    for name, array in record.arrays.items():
        assert found.arrays[name].tobytes() == array.astype(found.arrays[name].dtype).tobytes(), name


class TestExport:
    def test_the_text(self, tmp_path):
        arrays = {
            "dual_coef_": np.array([[-0.1, -0.5, 0.6]]),
            "intercept_": np.array([0.25]),
            "n_support_": np.array([2, 1], dtype=np.int32),
            "classes_": np.array([-1, 1]),
            "support_vectors_": np.array([[1.0, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, 0.0, -2.0]]),
        }
        record = ModelRecord("SVC", {"kernel": "rbf"}, {"gamma_": 0.5, "n_features_in_": 3}, arrays)
        write_libsvm(tmp_path / "m", record)
        assert (tmp_path / "m").read_text() == (
            "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 3\nrho 0.25\nlabel -1 1\nnr_sv 2 1\nSV\n"
            "0.10000000000000001 1:1 \n0.5 2:0.10000000000000001 \n-0.59999999999999998 3:-2 \n"
        )

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("labels", [(-1, 1), (0, 7), (1, 2, 5), (-3, 0, 2, 9)])
    @pytest.mark.parametrize("kernel", KERNELS)
    def test_round_trip_bit_for_bit(self, tmp_path, kernel, labels, dtype):
        X, y = make_data(labels)
        X = X.astype(dtype)
        record = record_of(SVC(kernel=kernel, **KERNELS[kernel]).fit(X, y))
        record.arrays["support_vectors_"] = record.arrays["support_vectors_"].astype(dtype)
        write_libsvm(tmp_path / "m", record)
        found = read_model(tmp_path / "m")
        assert_same_arrays(found, record)
        for name in KERNELS[kernel].keys() - {"gamma"}:
            assert found.params[name] == record.params[name]
        assert found.params.get("gamma", 0.0) == found.values["gamma_"]
        assert found.params["kernel"] == kernel
        if kernel != "linear":
            assert found.values == record.values

    def test_sparse_vectors_stay_sparse(self, tmp_path):
        X, y = make_data((1, 2, 3), d=20)
        X[np.random.default_rng(3).random(X.shape) < 0.8] = 0.0
        record = record_of(SVC().fit(sp.csr_matrix(X), y))
        write_libsvm(tmp_path / "m", record)
        assert_same_arrays(read_model(tmp_path / "m"), record)

    def test_indices_rise_and_occur_once(self, tmp_path):
        X, y = make_data(d=3)
        record = record_of(SVC(kernel="linear").fit(sp.csr_matrix(X), y))
        whole = matrix_from_arrays("support_vectors_", record.arrays, 3)
        parts = sp.csr_matrix(np.hstack([whole.toarray()[:, ::-1] * 0.5] * 2))
        parts.indices = (2 - parts.indices % 3).astype(np.int32)
        messy = replace(record, arrays=record.arrays | matrix_to_arrays("support_vectors_", parts))
        for name, each in (("tidy", record), ("messy", messy)):
            write_libsvm(tmp_path / name, each)
        assert (tmp_path / "messy").read_bytes() == (tmp_path / "tidy").read_bytes()

    @pytest.mark.parametrize("labels", [(-1, 1), (1, 2, 3)])
    def test_the_number_of_features_survives_empty_ones(self, tmp_path, labels):
        X, y = make_data(labels)
        X = np.hstack([X, np.zeros((len(X), 4))])
        X[SVC().fit(X, y).support_[0]] = 0.0
        for data in (X, sp.csr_matrix(X)):
            record = record_of(SVC().fit(data, y))
            write_libsvm(tmp_path / "m", record)
            found = read_model(tmp_path / "m")
            assert found.values["n_features_in_"] == 10
            np.testing.assert_allclose(pair_scores(found, X), pair_scores(record, X), atol=1e-12)

    def test_whole_floats_are_integers(self, tmp_path):
        X, y = make_data((-1.0, 1.0))
        write_libsvm(tmp_path / "m", record_of(SVC().fit(X, y)))
        assert read_model(tmp_path / "m").arrays["classes_"].tolist() == [-1, 1]

    @pytest.mark.parametrize("classes", [("a", "b"), (0.5, 1.0), (False, True), (0, 2**31)])
    def test_other_labels_are_refused_with_advice(self, tmp_path, classes):
        record = record_of(SVC().fit(*make_data()))
        record.arrays["classes_"] = np.array(classes)
        with pytest.raises(SoftmarginError, match=r"LIBSVM's labels.*LabelEncoder"):
            write_libsvm(tmp_path / "m", record)
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("change", "cause"),
        [
            ({"kernel": "laplacian"}, "'laplacian' has no place.*'softmargin'"),
            ({"kernel": "precomputed"}, "'precomputed' has no place"),
            ({"kernel": "poly", "degree": 2.5}, "degree=2.5"),
        ],
    )
    def test_kernels_that_it_does_not_know(self, tmp_path, change, cause):
        record = record_of(SVC().fit(*make_data()))
        with pytest.raises(SoftmarginError, match=cause):
            write_libsvm(tmp_path / "m", replace(record, params=record.params | change))
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("name", ["dual_coef_", "intercept_", "support_vectors_"])
    @pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
    def test_only_numbers(self, tmp_path, name, value):
        record = record_of(SVC().fit(*make_data()))
        damaged = record.arrays[name].copy()
        damaged[..., 0] = value
        with pytest.raises(SoftmarginError, match=f"{name} holds NaN"):
            write_libsvm(tmp_path / "m", replace(record, arrays=record.arrays | {name: damaged}))

    def test_a_model_without_support_vectors(self, tmp_path):
        record = record_of(SVC().fit(*make_data()))
        record.arrays["dual_coef_"] = np.empty((1, 0))
        with pytest.raises(SoftmarginError, match="no support vectors"):
            write_libsvm(tmp_path / "m", record)


def text_of(sv="1 1:0.5 2:1\n-1 1:-0.5\n", drop=(), **lines):
    """A model of two classes; a keyword replaces a line or adds one."""
    head = {
        "svm_type": "c_svc",
        "kernel_type": "rbf",
        "gamma": "0.5",
        "nr_class": "2",
        "total_sv": "2",
        "rho": "0.25",
        "label": "-1 1",
        "nr_sv": "1 1",
    } | lines
    return ("".join(f"{key} {value}\n" for key, value in head.items() if key not in drop) + "SV\n" + sv).encode()


THREE = text_of(
    nr_class="3",
    total_sv="4",
    rho="1 2 3",
    label="7 -2 5",
    nr_sv="1 2 1",
    sv="12 13 1:1 \n-12 23 1:2 \n-13 24 1:3\n-14 -25 2:4\n",
)


class TestImport:
    def test_two_classes(self):
        for label, sign in (("-1 1", -1.0), ("1 -1", 1.0)):  # positive for the first there, for the larger here
            arrays = parse(text_of(label=label)).arrays
            assert arrays["classes_"].tolist() == [-1, 1]
            order = slice(None) if sign < 0 else slice(None, None, -1)
            assert arrays["dual_coef_"].tolist() == [[sign, -sign][order]]
            assert arrays["intercept_"].tolist() == [-sign * 0.25]
            assert arrays["support_vectors_"].tolist() == [[0.5, 1.0], [-0.5, 0.0]][order]

    def test_three_classes_follow_their_labels(self):
        """In the file: classes 7, -2, 5 with pairs (7, -2), (7, 5), (-2, 5). Sorted, only (-2, 5) keeps its sign."""
        record = parse(THREE)
        arrays = record.arrays
        assert arrays["classes_"].tolist() == [-2, 5, 7]
        assert arrays["n_support_"].tolist() == [2, 1, 1]
        assert arrays["intercept_"].tolist() == [-3, 1, 2]  # minus rho of (-2, 5), (-2, 7), (5, 7)
        # Vectors of -2 against 5 and 7, of 5 against -2 and 7, of 7 against -2 and 5.
        assert arrays["dual_coef_"].T.tolist() == [[23, 12], [24, 13], [-25, 14], [-12, -13]]
        assert arrays["support_vectors_"].tolist() == [[2, 0], [3, 0], [0, 4], [1, 0]]
        assert record.values == {"gamma_": 0.5, "n_features_in_": 2}

    def test_kernels(self):
        found = parse(text_of(kernel_type="polynomial", degree="2", coef0="-1"))
        assert found.params == {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": -1.0}
        found = parse(text_of(kernel_type="sigmoid", coef0="-1"))
        assert found.params == {"kernel": "sigmoid", "gamma": 0.5, "coef0": -1.0}
        found = parse(text_of(kernel_type="linear", drop=["gamma"]))
        assert found.params == {"kernel": "linear"}
        assert found.values["gamma_"] == 0.0

    def test_nu_svc_and_estimates_of_probabilities(self):
        found = parse(text_of(svm_type="nu_svc", probA="-1.5", probB="0.1", prob_density_marks="1 2 3"))
        assert_same_arrays(found, parse(text_of()))
        assert found.params == {"kernel": "rbf", "gamma": 0.5}

    def test_vectors_without_features_and_other_line_ends(self):
        found = parse(text_of(sv="1 \n\n-1 2:1\n").replace(b"\n", b"\r\n"))
        assert found.arrays["support_vectors_.indptr"].tolist() == [0, 0, 1]
        empty = parse(text_of(sv="1\n-1"))
        assert empty.values["n_features_in_"] == 1

    def test_few_entries_are_sparse(self):
        found = parse(text_of(sv="1 1000000000:1\n-1 1:2\n"))
        assert found.arrays["support_vectors_.indices"].tolist() == [10**9 - 1, 0]
        assert found.values["n_features_in_"] == 10**9

    def test_a_long_file(self, tmp_path):
        """Beyond the size that the plain parser of svmlight reads."""
        X, y = make_data((1, 2, 3), n=900, d=40)
        record = record_of(SVC(gamma=1.0).fit(X, y))
        write_libsvm(tmp_path / "m", record)
        assert (tmp_path / "m").stat().st_size > 2**18
        assert_same_arrays(read_model(tmp_path / "m"), record)

    @pytest.mark.parametrize(
        ("text", "cause"),
        [
            (text_of(svm_type="svdd"), "line 1.*'svdd' is unknown.*one_class are read"),
            (text_of(svm_type="c_svc twice"), "line 1.*1 values"),
            (text_of(kernel_type="precomputed"), "line 2.*precomputed.*training data"),
            (text_of(kernel_type="laplacian"), "line 2.*laplacian"),
            (text_of(drop=["label"]), "'label' is missing"),
            (text_of(drop=["gamma"]), "'gamma' is missing"),
            (text_of(kernel_type="polynomial", degree="2"), "'coef0' is missing"),
            (text_of(gamma="0"), "line 3.*above 0"),
            (text_of(gamma="-1"), "above 0"),
            (text_of(gamma="nan"), "not a number"),
            (text_of(gamma="1e999"), "beyond"),
            (text_of(gamma="1_0"), "not a number"),
            (text_of(kernel_type="polynomial", coef0="0", degree="2.5"), "not an integer"),
            (text_of(kernel_type="polynomial", coef0="0", degree="1000000000"), "between 0 and"),
            (text_of(nr_class="1", label="1", rho="", nr_sv="2"), "line 4.*two classes"),
            (text_of(nr_class="-2"), "two classes"),
            (text_of(nr_class="3"), "3 values are needed, but there are 2"),
            (text_of(nr_class="9" * 18), "values are needed"),
            (text_of(nr_class="9" * 19), "not an integer"),
            (text_of(label="1 1"), "line 7.*twice"),
            (text_of(label="1 x"), "'x' is not an integer"),
            (text_of(label="1 0.5"), "not an integer"),
            (text_of(rho="1 2"), "line 6.*1 values"),
            (text_of(rho="inf"), "not a number"),
            (text_of(nr_sv="2 1"), "line 8.*add up"),
            (text_of(nr_sv="3 -1"), "not positive"),
            (text_of(total_sv="0", nr_sv="0 0", sv=""), "not positive"),
            (text_of(total_sv="9" * 15, nr_sv="9" * 15 + " 0"), "should have 9+ support vectors, but has 2"),
            (text_of(sv="1 1:0.5\n"), "should have 2 support vectors, but has 1"),
            (text_of(sv="1 1:1\n-1 1:1\n1 1:1\n"), "but has 3"),
            (text_of(sv="1 1:1\n1:1\n"), "line 11.*1 coefficient "),
            (text_of(sv="1e999 1:1\n1 1:1\n"), "line 10.*coefficient"),
            (text_of(sv="1 1:1\n1-1 1:1\n"), "line 11.*coefficient"),
            (THREE.replace(b"-13 24", b"-13"), "line 12.*2 coefficients"),
            (text_of(sv="1 1:1\n-1 0:1\n"), "line 11.*from 1"),
            (text_of(sv="1 1:1\n-1 -1:1\n"), "line 11.*negative"),
            (text_of(sv="1 2:1 1:1\n-1 1:1\n"), "line 10.*increase"),
            (text_of(sv="1 1:1 1:1\n-1 1:1\n"), "line 10.*twice"),
            (text_of(sv="1 1:1\n-1 1:\n"), "line 11.*no value"),
            (text_of(sv="1 1:1\n-1 1\n"), "line 11.*colon"),
            (text_of(sv="1 1:1e999\n-1 1:1\n"), "line 10.*beyond"),
            (text_of(sv="1 99999999999:1\n-1 1:1\n"), "line 10.*too large"),
            (text_of(sv="1 1:1 # x\n-1 1:1\n"), "line 10.*'#'"),
            (text_of(sv="1 1:1\n-1 qid:1\n"), "line 11.*'q'"),
            (text_of(sv="1 1:nan\n-1 1:1\n"), "'n'"),
            (text_of(sv="1 1:\xff\n-1 1:1\n"), "line 10"),
            (text_of(bias="3"), "line 9: 'bias 3' is unknown"),
            (text_of().replace(b"gamma", b"\ngamma"), "line 3: '' is unknown"),
            (text_of().replace(b"rho", b"gamma"), "line 6.*twice"),
            (text_of().replace(b"SV\n", b""), "'SV' is missing"),
            (b"svm_type", "'SV' is missing"),
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
            for text in (
                text_of(total_sv="9" * 15, nr_sv="9" * 15 + " 0"),
                text_of(nr_class="9" * 15),
                text_of(sv="1 2147483647:1\n-1 1:2\n"),
            ):
                with suppress(ModelFileError):
                    parse(text)
            assert tracemalloc.get_traced_memory()[1] < 2**29  # what svmlight text reserves, and does not touch
        finally:
            tracemalloc.stop()


class TestFuzz:
    @given(
        at=st.integers(0, len(THREE)),
        cut=st.integers(0, 20),
        put=st.binary(max_size=5)
        | st.text(max_size=8).map(str.encode)
        | st.sampled_from([b"9" * 19, b"1e309", b"-", b"SV\n", b":", b"1:1 "]),
    )
    def test_a_piece_replaced(self, at, cut, put):
        with suppress(ModelFileError):
            record = parse(THREE[:at] + put + THREE[at + cut :])
            arrays = record.arrays
            assert np.isfinite(arrays["dual_coef_"]).all()
            assert np.isfinite(arrays["intercept_"]).all()
            assert (np.diff(arrays["classes_"]) > 0).all()
            assert arrays["n_support_"].sum() == arrays["dual_coef_"].shape[1]
            matrix_from_arrays("support_vectors_", arrays, record.values["n_features_in_"])


def test_a_record_of_it_is_one_for_our_file(tmp_path):
    record = parse(THREE)
    write_model(tmp_path / "m", record)
    found = read_model(tmp_path / "m")
    assert_same_arrays(found, record)
    assert (found.params, found.values) == (record.params, record.values)


def svmlight_text(X, y):
    lines = (
        f"{label} " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row) if value)
        for label, row in zip(y.tolist(), X.tolist(), strict=True)
    )
    return "\n".join(lines) + "\n"


def run_predict(folder, X, y, model):
    (folder / "data").write_text(svmlight_text(X, y))
    subprocess.run([PREDICT, folder / "data", model, folder / "out"], check=True, capture_output=True)
    return np.loadtxt(folder / "out", dtype=int)


@needs_libsvm
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("labels", [(-1, 1), (4, 2), (3, 1, 7), (5, -1, 2, 0)])
class TestTheProgram:
    def test_it_predicts_with_our_models_as_we_do(self, tmp_path, labels, kernel):
        X, y = make_data(labels)
        new, _ = make_data(labels, n=400, seed=1)
        model = SVC(kernel=kernel, C=5.0, decision_function_shape="ovo", **KERNELS[kernel]).fit(X, y)
        record = record_of(model)
        scores = model.decision_function(new).reshape(len(new), -1)
        np.testing.assert_allclose(pair_scores(record, new), scores, atol=1e-9)
        write_libsvm(tmp_path / "model", record)
        np.testing.assert_array_equal(run_predict(tmp_path, new, new[:, 0], tmp_path / "model"), model.predict(new))

    @pytest.mark.parametrize("options", [[], ["-s", "1", "-n", "0.2"], ["-b", "1"]], ids=str)
    def test_we_predict_with_its_models_as_it_does(self, tmp_path, labels, kernel, options):
        X, y = make_data(labels)
        (tmp_path / "train").write_text(svmlight_text(X, y))
        numbers = [f"-{name[0] if name != 'coef0' else 'r'}" for name in KERNELS[kernel]]
        params = [word for pair in zip(numbers, map(str, KERNELS[kernel].values()), strict=True) for word in pair]
        command = [TRAIN, "-q", "-t", NUMBERS[kernel], *params, *options, tmp_path / "train", tmp_path / "model"]
        subprocess.run(command, check=True, capture_output=True)
        theirs = run_predict(tmp_path, X, y, tmp_path / "model")
        assert np.mean(theirs == y) > 0.5
        ours, is_clear = voted(read_model(tmp_path / "model"), X)
        assert is_clear.mean() > 0.9  # equal votes go by the order of the labels there
        np.testing.assert_array_equal(ours[is_clear], theirs[is_clear])
