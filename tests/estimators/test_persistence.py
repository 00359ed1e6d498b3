"""Models to files and back: everything a fit leaves behind, bit for bit, and a fit that goes on where it stopped."""

import math
import pickle
import shutil
import subprocess
import sys
import warnings
from contextlib import suppress
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from softmargin import CPA, OCAS, SGD, LinearSVC, ModelFileError, Pegasos, SoftmarginError, certify, load
from softmargin.core.trace import Record, Trace
from softmargin.estimators.scoring import linear_scores
from softmargin.estimators.svc import SVC
from softmargin.io import model_file
from softmargin.io.model_file import read_model, write_model
from softmargin.io.record import ModelRecord
from softmargin.prediction.labels import labels_from_scores
from softmargin.solvers.smo.block import BlockSMO
from softmargin.solvers.smo.smo import SMO
from softmargin.tasks.layouts import TRACE

ARRAYS = ("coef_", "intercept_", "classes_", "dual_", "feature_names_in_")
VALUES = ("certificate_", "certificates_", "status_", "n_iter_", "seconds_", "n_features_in_")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model"


@pytest.fixture(autouse=True)
def quiet():
    """Fits here end early on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def saved_and_loaded(model, path, **options):
    model.save(path, **options)
    return load(path)


def assert_same(found, model):
    assert type(found) is type(model)
    assert found.get_params() == model.get_params()
    public = {name for name in vars(model) if not name.startswith("_")}
    assert {name for name in vars(found) if not name.startswith("_")} == public
    for name in ARRAYS:
        if hasattr(model, name):
            array, other = getattr(model, name), getattr(found, name)
            assert (other.dtype, other.shape) == (array.dtype, array.shape), name
            assert other.tolist() == array.tolist() if array.dtype == object else other.tobytes() == array.tobytes()
    for name in VALUES:
        assert getattr(found, name) == getattr(model, name), name
    traces = [trace if isinstance(trace, list) else [trace] for trace in (found.trace_, model.trace_)]
    assert [list(trace) for trace in traces[0]] == [list(trace) for trace in traces[1]]
    assert isinstance(found.trace_, list) == isinstance(model.trace_, list)


def assert_continues_alike(first, second, X, y):
    """Two models, fitted on, end with the same bits."""
    first.fit(X, y)
    second.fit(X, y)
    assert first.coef_.tobytes() == second.coef_.tobytes()
    assert first.intercept_.tobytes() == second.intercept_.tobytes()
    assert first.dual_.tobytes() == second.dual_.tobytes()
    assert first.certificates_ == second.certificates_
    assert (first.n_iter_, first.status_) == (second.n_iter_, second.status_)


class TestRoundTrip:
    @pytest.mark.parametrize(
        "names",
        [
            np.array([0, 1, 2]),
            np.array([-1, 5, 300], dtype=np.int16),
            np.array([1.0, 2.0, 3.0], dtype=np.float32),
            np.array(["a", "bb", "c"], dtype="<U7"),
            np.array(["low", "middle", "ü"], dtype=object),
            np.array([False, True, True]),
        ],
        ids=lambda names: str(names.dtype),
    )
    def test_labels_of_every_type(self, path, three_classes, names):
        X, y = three_classes
        model = LinearSVC().fit(X, names[y])
        found = saved_and_loaded(model, path)
        assert_same(found, model)
        np.testing.assert_array_equal(found.predict(X), model.predict(X))

    @pytest.mark.parametrize(
        "params",
        [
            {"C": np.float64(0.3), "tol": 1e-2, "max_iter": np.int64(50), "n_jobs": -1, "random_state": 7},
            {"C": 2, "class_weight": {0: 0.5, 1: 2}, "max_seconds": 100.0},
            {"class_weight": {np.int64(1): np.float32(0.5)}, "solver": "cpa", "tol": 1e-2},
            {"class_weight": "balanced", "intercept": "penalised", "verbose": False},
            {"fit_intercept": False, "solver": OCAS(mixing=0.2, stopping="epsilon")},
            {"solver": CPA(stopping="epsilon"), "tol": 0.1},
            {"solver": Pegasos(iterations=500, projection=False, seed=3)},
            {"solver": SGD(epochs=2, average=True), "random_state": 3},
            {"max_seconds": math.inf},
        ],
        ids=str,
    )
    def test_parameters(self, path, binary, params):
        model = LinearSVC(**params).fit(*binary)
        found = saved_and_loaded(model, path)
        assert_same(found, model)
        assert clone(found).get_params() == clone(model).get_params()

    def test_labels_that_are_keys(self, path, binary):
        X, y = binary
        weights = {"no": 1.0, "$yes": 2.5}
        model = LinearSVC(class_weight=weights).fit(X, np.array(list(weights))[y])
        assert_same(saved_and_loaded(model, path), model)

    def test_feature_names(self, path, binary):
        X, y = binary
        frame = pd.DataFrame(X, columns=[f"größe {j}" for j in range(X.shape[1])])
        model = LinearSVC().fit(frame, y)
        found = saved_and_loaded(model, path)
        assert_same(found, model)
        assert list(found.feature_names_in_) == list(frame.columns)
        with pytest.raises(ValueError, match="feature names"):
            found.predict(frame.rename(columns={"größe 0": "weight"}))

    def test_again_and_beside_pickle(self, path, three_classes):
        X, y = three_classes
        model = saved_and_loaded(LinearSVC().fit(X, y), path)
        raw = path.read_bytes()
        model.save(path)
        assert path.read_bytes() == raw
        assert_same(pickle.loads(pickle.dumps(model)), model)

    def test_the_certificate_can_be_checked_again(self, path, three_classes):
        X, y = three_classes
        model = LinearSVC(tol=1e-5).fit(X, y)
        assert certify(saved_and_loaded(model, path), X, y) == model.certificate_

    def test_nothing_of_the_training_state_by_default(self, path, binary):
        model = LinearSVC(warm_start=True).fit(*binary)
        assert not hasattr(saved_and_loaded(model, path), "_state")

    def test_the_file_knows_all_columns_of_a_trace(self):
        columns = {f"trace.{field.name}" for field in fields(Record)}
        assert columns == TRACE.keys() - {"trace.lengths"}


class TestSaving:
    def test_only_fitted_models(self, path):
        with pytest.raises(NotFittedError):
            LinearSVC().save(path)
        assert not path.exists()

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("random_state", np.random.RandomState(0)),
            ("solver", replace(OCAS(), mixing=0.3).step),
            ("class_weight", {0: [1, object()]}),
            ("verbose", np.ones(1)),
        ],
    )
    def test_a_parameter_that_cannot_be_saved_is_named(self, path, binary, name, value):
        model = LinearSVC().fit(*binary).set_params(**{name: value})
        with pytest.raises(SoftmarginError, match=f"{name}=.*set_params"):
            model.save(path)
        assert not path.exists()

    def test_foreign_solvers_and_derived_classes(self, path, binary):
        class Mine(OCAS):
            pass

        class MySVC(LinearSVC):
            pass

        with pytest.raises(SoftmarginError, match="solver="):
            LinearSVC(solver=Mine()).fit(*binary).save(path)
        with pytest.raises(SoftmarginError, match="MySVC"):
            MySVC().fit(*binary).save(path)

    def test_unknown_format(self, path, binary):
        with pytest.raises(SoftmarginError, match="'liblinear'"):
            LinearSVC().fit(*binary).save(path, format="onnx")

    def test_no_state_to_save(self, path, binary):
        with pytest.raises(SoftmarginError, match="warm_start=True"):
            LinearSVC().fit(*binary).save(path, include_training_state=True)
        with pytest.raises(SoftmarginError, match="no training state"):
            LinearSVC(warm_start=True).fit(*binary).save(path, include_training_state=True, format="liblinear")


class TestContinuing:
    @pytest.mark.parametrize("data", ["binary", "three_classes", "wide"])
    @pytest.mark.parametrize(
        ("solver", "intercept"),
        [
            *(("ocas", intercept) for intercept in ("free", "penalised", "none")),
            *((solver, "free") for solver in ("cpa", "pegasos", SGD(average=True))),
            ("sgd", "penalised"),
        ],
        ids=str,
    )
    def test_as_if_it_had_never_been_away(self, path, request, data, intercept, solver):
        X, y = request.getfixturevalue(data)
        options = {"fit_intercept": False} if intercept == "none" else {"intercept": intercept}
        model = LinearSVC(solver=solver, tol=1e-6, max_iter=6, warm_start=True, random_state=1, **options).fit(X, y)
        found = saved_and_loaded(model, path, include_training_state=True)
        assert_same(found, model)
        for max_iter in (3, 80):  # long enough for planes to be dropped
            model.set_params(max_iter=max_iter)
            found.set_params(max_iter=max_iter)
            assert_continues_alike(model, found, X, y)

    def test_with_another_C(self, path, binary):
        model = LinearSVC(max_iter=10, tol=1e-6, warm_start=True).fit(*binary)
        found = saved_and_loaded(model, path, include_training_state=True)
        assert_continues_alike(model.set_params(C=3.0), found.set_params(C=3.0), *binary)

    def test_after_it_was_continued_from_weights(self, path, binary, make_noisy):
        model = LinearSVC(solver=SGD(epochs=2), warm_start=True, random_state=1).fit(*make_noisy(seed=5))
        model.set_params(solver=SGD(epochs=4), max_iter=1).fit(*binary)  # starts from bare weights
        found = saved_and_loaded(model, path, include_training_state=True)
        assert_continues_alike(model, found, *binary)

    def test_from_a_file_without_the_state(self, path, binary):
        model = LinearSVC(max_iter=10, tol=1e-6, warm_start=True).fit(*binary)
        found = saved_and_loaded(model, path)
        found.fit(*binary)
        assert found.certificate_.primal <= model.certificate_.primal * (1 + 1e-12)

    @pytest.mark.parametrize("solver", ["ocas", "pegasos"])
    @pytest.mark.parametrize("fewer", ["rows", "columns"])
    @pytest.mark.filterwarnings("ignore::softmargin.ConvergenceWarning")
    def test_a_state_with_a_false_fingerprint_is_not_used(self, path, binary, fewer, solver):
        X, y = binary
        part, labels = (X[:-9], y[:-9]) if fewer == "rows" else (X[:, :-1], y)
        settings = {"solver": solver, "warm_start": True, "random_state": 0}
        other = LinearSVC(max_iter=2, **settings).fit(part, labels)
        model = LinearSVC(max_iter=2, **settings).fit(X, y)
        model._state = (model._state[0], other._state[1])
        if fewer == "rows":
            model.dual_ = other.dual_
        found = saved_and_loaded(model, path, include_training_state=True).set_params(max_iter=None).fit(X, y)
        anew = LinearSVC(**settings).fit(X, y)
        np.testing.assert_array_equal(found.coef_, anew.coef_)


def change_value(*keys, to):
    def apply(record):
        node = record.values
        for key in keys[:-1]:
            node = node[key]
        node[keys[-1]] = to

    return apply


def change_array(name, function):
    def apply(record):
        record.arrays[name] = function(record.arrays[name])

    return apply


def drop(name):
    def apply(record):
        (record.values if name in record.values else record.arrays).pop(name)

    return apply


FIRST = ("state", "problems", 0)
LIES = {
    "unknown status": change_value("status_", to="PERFECT"),
    "a list as status": change_value("status_", to=[]),
    "too few certificates": change_value("certificates_", to=[]),
    "a certificate without a bound": change_value("certificates_", 0, to={"primal": 1.0}),
    "a certificate in words": change_value("certificates_", 0, "dual", to="high"),
    "iterations in halves": change_value("n_iter_", to=1.5),
    "seconds in words": change_value("seconds_", "total", to="long"),
    "no status": drop("status_"),
    "no dual vector": drop("dual_"),
    "lengths of traces": change_array("trace.lengths", lambda a: a + 1),
    "negative lengths of traces": change_array("trace.lengths", lambda a: np.array([-1, a.sum() + 1, 0])),
    "no fingerprint": change_value("state", "fingerprint", to=None),
    "another state": change_value("state", "type", to="SubgradientState"),
    "an unknown state": change_value("state", "type", to="Oracle"),
    "a list as state": change_value("state", to=[]),
    "no state": drop("state"),
    "more in the state": change_value("state", "more", to=1),
    "too few states": change_value("state", "problems", to=[]),
    "numbers that are none": change_value(*FIRST, to=None),
    "a number in words": change_value(*FIRST, "C", to="1"),
    "no number": change_value(*FIRST, "primal", to=None),
    "an unknown number": change_value(*FIRST, "oracle", to=1),
    "an array that is not there": change_value(*FIRST, "gamma", to=None),
    "capacity without end": change_value(*FIRST, "planes.capacity", to=10**12),
    "no capacity": change_value(*FIRST, "planes.capacity", to=0),
    "a missing array": drop("state.0.gamma"),
    "an array too many": lambda record: record.arrays.update({"state.0.more": np.ones(1)}),
    "an array of no sub-problem": lambda record: record.arrays.update({"state.7.gamma": np.ones(1)}),
    "an array without a name": lambda record: record.arrays.update({"state.": np.ones(1)}),
    "text": change_array("state.0.gamma", lambda a: np.array(["x"] * a.size)),
    "another type": change_array("state.0.idle", lambda a: a.astype(np.int32)),
    "fewer weights of planes": change_array("state.0.gamma", lambda a: a[:-1]),
    "fewer rows": change_array("state.0.best.f", lambda a: a[:-1]),
    "fewer bits": change_array("state.0.planes.witness_bits", lambda a: a[:, :-1]),
    "a row beyond the end": change_array("state.0.planes.witness_row", lambda a: a + 10**6),
    "a row before the beginning": change_array("state.0.planes.witness_row", lambda a: a - 10**6),
    "a slope of another length": change_array("state.0.planes.latest.slope", lambda a: a[:-1]),
    "a Gram matrix that is not square": change_array("state.0.planes.gram", lambda a: a[:, :-1]),
    "all rows gone": lambda record: record.arrays.update(
        {name: array[:0] for name, array in record.arrays.items() if name.endswith(("dual_", "best.f", "latest.c"))}
    ),
}


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory, three_classes):
    """The record of a model of three classes with its training state."""
    folder = tmp_path_factory.mktemp("unfinished")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        LinearSVC(solver="ocas", max_iter=5, warm_start=True).fit(*three_classes).save(
            folder / "m", include_training_state=True
        )
    return folder / "m"


class TestLies:
    """Files whose checksum is right and whose content is not."""

    @pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
    def test_each_is_found(self, path, unfinished, monkeypatch, lie):
        record = read_model(unfinished)
        lie(record)
        with monkeypatch.context() as patch:
            patch.setattr(model_file, "check_layout", lambda *_: None)
            write_model(path, record)
        with pytest.raises(ModelFileError, match=str(path)):
            load(path)

    @pytest.mark.parametrize(
        ("params", "cause"),
        [
            ({"D": 1.0}, "'D'"),
            ({"C": "large"}, "C='large'"),
            ({"tol": [1]}, r"tol=\[1\]"),
            ({"solver": model_file.Named("os.system", {})}, "os.system"),
            ({"solver": model_file.Named("OCAS", {"code": "x"})}, "'code'"),
            ({"solver": model_file.Named("OCAS", {"mixing": 7.0})}, "mixing"),
        ],
    )
    def test_parameters(self, path, unfinished, params, cause):
        record = read_model(unfinished)
        write_model(path, replace(record, params=params))
        with pytest.raises(ModelFileError, match=cause):
            load(path)

    def test_parameters_that_a_file_leaves_out_have_their_defaults(self, path, unfinished):
        write_model(path, replace(read_model(unfinished), params={"C": 5.0}))
        assert load(path).get_params() == LinearSVC(C=5.0).get_params()

    @given(data=st.data())
    def test_anything_in_the_place_of_anything(self, unfinished, data):
        record = read_model(unfinished)
        record = replace(record, params=mutate(record.params, data), values=mutate(record.values, data))
        other = unfinished.with_name("mutant")
        if not isinstance(record.params, dict) or not isinstance(record.values, dict):
            return
        write_model(other, record)
        with suppress(ModelFileError):
            assert load(other).coef_.shape == (3, 8)


VALUE = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just([]) | st.just({"a": 1})


def mutate(node, data):
    """Somewhere in a tree of lists and dictionaries, perhaps something else."""
    keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
    choice = data.draw(st.integers(0, 5))
    if choice == 0 or not keys:
        return data.draw(VALUE)
    if choice == 1:
        return node
    key = data.draw(st.sampled_from(keys))
    copy = dict(node) if isinstance(node, dict) else list(node)
    copy[key] = mutate(node[key], data)
    return copy


class TestLiblinear:
    @pytest.mark.parametrize("params", [{}, {"intercept": "penalised"}, {"fit_intercept": False}], ids=str)
    @pytest.mark.parametrize("data", ["binary", "three_classes"])
    def test_there_and_back(self, path, request, data, params):
        X, y = request.getfixturevalue(data)
        model = LinearSVC(**params).fit(X, y)
        found = saved_and_loaded(model, path, format="liblinear")
        assert found.coef_.tobytes() == model.coef_.tobytes()
        assert found.intercept_.tobytes() == model.intercept_.tobytes()
        np.testing.assert_array_equal(found.classes_, model.classes_)
        assert found.decision_function(X).tobytes() == model.decision_function(X).tobytes()
        assert found.fit_intercept is model.fit_intercept

    def test_nothing_is_claimed_that_the_file_does_not_say(self, path, binary):
        X, y = binary
        model = LinearSVC(C=3.0, intercept="penalised", tol=1e-5).fit(X, y)
        found = saved_and_loaded(model, path, format="liblinear")
        assert np.isnan([found.certificate_.primal, found.certificate_.dual, found.certificate_.relative_gap]).all()
        assert not {"status_", "dual_", "trace_", "n_iter_", "seconds_"} & vars(found).keys()
        assert found.n_features_in_ == X.shape[1]
        again = saved_and_loaded(found, path)
        assert again.coef_.tobytes() == model.coef_.tobytes()
        assert math.isnan(again.certificate_.gap)
        assert certify(found.set_params(C=3.0), X, y).relative_gap <= 1.1e-5

    def test_words_as_labels(self, path, binary):
        X, y = binary
        model = LinearSVC().fit(X, np.array(["no", "yes"])[y])
        with pytest.raises(SoftmarginError, match="integers"):
            model.save(path, format="liblinear")


class TestScoring:
    @pytest.mark.parametrize("data", ["binary", "three_classes", "wide"])
    def test_the_same_bits_as_the_estimator(self, request, data):
        X, y = request.getfixturevalue(data)
        model = LinearSVC().fit(X, y)
        for other in (X, np.asfortranarray(X), X.astype(np.float32), sp.csr_matrix(X), sp.csr_array(X)):
            scores = linear_scores(other, model.coef_, model.intercept_)
            assert scores.tobytes() == model.decision_function(other).tobytes()
            labels = labels_from_scores(scores, model.classes_)
            np.testing.assert_array_equal(labels, model.predict(other))

    def test_another_number_of_features(self):
        with pytest.raises(SoftmarginError, match=r"2 features.*3"):
            linear_scores(np.ones((4, 2)), np.ones((1, 3)), np.zeros(1))

    def test_needs_neither_sklearn_nor_numba(self, path, binary):
        LinearSVC().fit(*binary).save(path)
        code = """
import sys
import numpy as np
from softmargin.estimators.scoring import linear_scores
from softmargin.io.model_file import read_model
from softmargin.prediction.labels import labels_from_scores
arrays = read_model(sys.argv[1]).arrays
scores = linear_scores(np.ones((2, 8)), arrays["coef_"], arrays["intercept_"])
assert labels_from_scores(scores, arrays["classes_"]).shape == (2,)
sys.exit("sklearn" in sys.modules or "numba" in sys.modules)
"""
        assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == 0


def test_a_missing_file_is_a_missing_file(path):
    with pytest.raises(FileNotFoundError):
        load(path)


def test_a_file_from_before_a_field_of_the_certificate_is_read(path, binary):
    model = LinearSVC().fit(*binary)
    assert saved_and_loaded(model, path).certificate_ == model.certificate_
    record = read_model(path)
    for certificate in record.values["certificates_"]:
        del certificate["rounding"]
    write_model(path, record)
    found = load(path).certificate_
    assert math.isnan(found.rounding)
    assert (found.primal, found.dual) == (model.certificate_.primal, model.certificate_.dual)


def test_a_record_of_weights_alone_is_a_model(path):
    arrays = {"coef_": np.ones((1, 2)), "intercept_": np.zeros(1), "classes_": np.array(["a", "b"])}
    write_model(path, ModelRecord("LinearSVC", {}, {}, arrays))
    assert load(str(path)).predict([[1.0, 1.0], [-1.0, 0.0]]).tolist() == ["b", "a"]


# --- SVC ----------------------------------------------------------------------------------------------------------

MATRICES = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "integers": lambda X: np.round(10 * X).astype(np.int16),
    "columns": np.asfortranarray,
    "CSR": sp.csr_matrix,
    "CSR float32": lambda X: sp.csr_array(X.astype(np.float32)),
}


def bits(value):
    """What must come back: the content of arrays and matrices bit for bit, and everything else as it is shown."""
    if sp.issparse(value):
        return value.shape, bits(value.data), bits(value.indices), bits(value.indptr)
    if isinstance(value, np.ndarray):
        content = value.tolist() if value.dtype == object else np.ascontiguousarray(value).tobytes()
        return value.dtype, value.shape, content
    traces = value if isinstance(value, list) else [value]
    return type(value), [list(trace) if isinstance(trace, Trace) else repr(trace) for trace in traces]


def assert_same_svc(found, model):
    assert type(found) is type(model)
    public = {name for name in vars(model) if not name.startswith("_")}
    assert {name for name in vars(found) if not name.startswith("_")} == public
    for name in public - {"class_weight"}:
        assert bits(getattr(found, name)) == bits(getattr(model, name)), name
    assert found.class_weight == model.class_weight


class TestSVC:
    @pytest.mark.parametrize("data", ["binary", "three_classes"])
    @pytest.mark.parametrize("make", MATRICES.values(), ids=MATRICES)
    def test_data_of_every_type(self, path, request, data, make):
        X, y = request.getfixturevalue(data)
        X = make(X)
        model = SVC(C=2.0).fit(X, y)
        found = saved_and_loaded(model, path)
        assert_same_svc(found, model)
        assert found.decision_function(X).tobytes() == model.decision_function(X).tobytes()
        raw = path.read_bytes()
        found.save(path)
        assert path.read_bytes() == raw

    @pytest.mark.parametrize(
        "names",
        [
            np.array([-1, 5, 300], dtype=np.int16),
            np.array(["a", "bb", "c"], dtype="<U7"),
            np.array(["low", "middle", "ü"], dtype=object),
            np.array([False, True, True]),
        ],
        ids=lambda names: str(names.dtype),
    )
    def test_labels(self, path, three_classes, names):
        X, y = three_classes
        model = SVC().fit(X, names[y])
        found = saved_and_loaded(model, path)
        assert_same_svc(found, model)
        np.testing.assert_array_equal(found.predict(X), model.predict(X))

    @pytest.mark.parametrize(
        "params",
        [
            {"kernel": "linear", "C": np.float64(0.3), "gamma": "auto"},
            {"kernel": "poly", "degree": np.int64(2), "coef0": 1, "gamma": 0.1},
            {"kernel": "laplacian", "class_weight": {0: 0.5, 1: 2}, "decision_function_shape": "ovo"},
            {"kernel": "sigmoid", "gamma": 0.01, "stopping": "kkt"},
            {"solver": "smo", "working_set": "hybrid_maximum_gain", "shrinking": False, "cache_bytes": 1e6},
            {"solver": SMO(rule="maximum_gain", eta=1e-7), "tol": 1e-2},
            {"solver": BlockSMO(size=32), "class_weight": "balanced", "max_seconds": math.inf},
            {"max_iter": 1, "tol": 1e-9},
        ],
        ids=str,
    )
    def test_parameters(self, path, three_classes, params):
        X, y = three_classes
        model = SVC(**params).fit(X, y)
        found = saved_and_loaded(model, path)
        assert found.get_params() == model.get_params()
        assert found.certificates_ == model.certificates_ or np.isnan(model.certificate_.dual)
        assert found.decision_function(X).tobytes() == model.decision_function(X).tobytes()

    def test_a_precomputed_kernel(self, path, three_classes):
        X, y = three_classes
        model = SVC(kernel="precomputed").fit(X @ X.T, y)
        found = saved_and_loaded(model, path)
        assert_same_svc(found, model)
        assert found.decision_function(X[:9] @ X.T).tobytes() == model.decision_function(X[:9] @ X.T).tobytes()

    def test_feature_names(self, path, binary):
        X, y = binary
        frame = pd.DataFrame(X, columns=[f"größe {j}" for j in range(X.shape[1])])
        model = SVC().fit(frame, y)
        assert_same_svc(saved_and_loaded(model, path), model)

    def test_no_support_vectors(self, path, binary):
        X, y = binary
        model = SVC(max_seconds=1e-9).fit(X, y)
        assert model.support_.size == 0
        assert_same_svc(saved_and_loaded(model, path), model)
        with pytest.raises(SoftmarginError, match="no support vectors"):
            model.save(path, format="libsvm")

    def test_what_cannot_be_saved(self, path, binary):
        X, y = binary

        class MySVC(SVC):
            pass

        class Mine(BlockSMO):
            pass

        for model, cause in (
            (SVC(kernel=lambda X, Z: X @ Z.T), "precomputed.*pickle"),
            (MySVC(), "MySVC"),
            (SVC(solver=Mine()), "solver="),
        ):
            with pytest.raises(SoftmarginError, match=cause):
                model.fit(X, y).save(path)
        with pytest.raises(SoftmarginError, match="not the kernel of the fit"):
            SVC().fit(X, y).set_params(kernel="precomputed").save(path)
        with pytest.raises(SoftmarginError, match="'libsvm'"):
            SVC().fit(X, y).save(path, format="liblinear")
        with pytest.raises(SoftmarginError, match="'liblinear'"):
            LinearSVC().fit(X, y).save(path, format="libsvm")
        with pytest.raises(SoftmarginError, match="no training state"):
            SVC(warm_start=True).fit(X, y).save(path, format="libsvm", include_training_state=True)
        assert not path.exists()


class TestContinuingSVC:
    @pytest.mark.parametrize("solver", ["block", "smo"])
    def test_the_state_comes_back(self, path, three_classes, solver):
        X, y = three_classes
        model = SVC(C=100.0, solver=solver, tol=1e-6, max_iter=2, warm_start=True).fit(X, y)
        found = saved_and_loaded(model, path, include_training_state=True)
        assert_same_svc(found, model)
        assert found._state[0] == model._state[0]
        for state, other in zip(model._state[1], found._state[1], strict=True):
            for field in fields(state):
                if field.compare:
                    assert bits(getattr(other, field.name)) == bits(getattr(state, field.name)), field.name
        found.set_params(max_iter=None).fit(X, y)
        assert found.status_.reached_goal
        assert found.certificate_.relative_gap <= 1e-6
        for k, trace in enumerate(found.trace_):  # it began where the other stood
            assert trace["dual"][0] >= model.trace_[k]["dual"][-1] * (1 - 1e-12)

    def test_a_pair_with_nothing_to_solve(self, path, three_classes):
        X, y = three_classes
        weights = (y != 2).astype(float)
        model = SVC(warm_start=True).fit(X, y, sample_weight=weights)
        found = saved_and_loaded(model, path, include_training_state=True)
        assert_same_svc(found, model)
        assert [state is None for state in found._state[1]] == [False, True, True]

    def test_from_a_file_without_the_state(self, path, binary):
        X, y = binary
        model = SVC(C=100.0, tol=1e-6, max_iter=2, warm_start=True).fit(X, y)
        found = saved_and_loaded(model, path)
        assert not hasattr(found, "_state")
        found.set_params(max_iter=None).fit(X, y)
        assert found.certificate_.relative_gap <= 1e-6


SVC_LIES = {
    "unknown status": change_value("status_", to="PERFECT"),
    "too few certificates": change_value("certificates_", to=[]),
    "counts in words": change_value("counts_", "iterations", to="many"),
    "a list of counts": change_value("counts_", to=[1]),
    "no counts": drop("counts_"),
    "no rows": drop("support_"),
    "no iterations": drop("n_iter_"),
    "a status of the fit in words": change_value("fit_status_", to="good"),
    "a shape with three lengths": change_value("shape_fit_", to=[200, 8, 1]),
    "a shape in words": change_value("shape_fit_", to=["200", 8]),
    "another number of features in the shape": change_value("shape_fit_", to=[200, 9]),
    "fewer rows than support vectors come from": change_value("shape_fit_", to=[1, 8]),
    "rows before the first": change_array("support_", lambda a: a - 10**6),
    "another number of features": change_value("n_features_in_", to=9),
    "features without end": change_value("n_features_in_", to=10**30),
    "features in halves": change_value("n_features_in_", to=8.0),
    "no number of features": drop("n_features_in_"),
    "gamma in words": change_value("gamma_", to="scale"),
    "no gamma": drop("gamma_"),
    "vectors of no class": change_array("n_support_", lambda a: a + 1),
    "less than no vectors": change_array("n_support_", lambda a: a - np.int32([10**6, -(10**6), 0])),
    "another type of indices": change_array("support_vectors_.indices", lambda a: a.astype(np.int16)),
    "an index beyond the end": change_array("support_vectors_.indices", lambda a: a + 8),
    "an index before the beginning": change_array("support_vectors_.indices", lambda a: a - 8),
    "bounds that fall": change_array("support_vectors_.indptr", lambda a: a[::-1]),
    "bounds that begin late": change_array("support_vectors_.indptr", lambda a: np.maximum(a, 3)),
    "bounds that end early": change_array("support_vectors_.indptr", lambda a: np.minimum(a, 3)),
    "bounds too few": change_array("support_vectors_.indptr", lambda a: a[:-1]),
    "fewer entries": change_array("support_vectors_.data", lambda a: a[:-1]),
    "text as entries": change_array("support_vectors_.data", lambda a: a.astype(str)),
    "half of a sparse matrix": drop("support_vectors_.indptr"),
    "dense vectors too": lambda record: record.arrays.update(
        support_vectors_=np.ones((record.arrays["dual_coef_"].shape[1], 8))
    ),
    "no vectors": lambda record: [drop(f"support_vectors_.{part}")(record) for part in ("data", "indices", "indptr")],
    "fewer coefficients": change_array("dual_coef_", lambda a: a[:, :-1]),
    "coefficients of more classes": change_array("dual_coef_", lambda a: np.vstack([a, a])),
    "more pairs": change_array("intercept_", lambda a: np.append(a, 0.0)),
    "the state of another solver": change_value("state", "type", to="PlaneState"),
    "a pair beyond the end": change_value(*FIRST, "pair", to=[0, 10**6]),
    "a pair before the beginning": change_value(*FIRST, "pair", to=[-2, 0]),
    "a pair of three": change_value(*FIRST, "pair", to=[0, 1, 2]),
    "a pair in words": change_value(*FIRST, "pair", to=["0", 1]),
    "no pair": change_value(*FIRST, "pair", to=None),
    "scratch": change_value(*FIRST, "block", to=None),
    "variables without outputs": change_array("state.0.f", lambda a: a[:-1]),
    "arrays without numbers": change_value(*FIRST, to=None),
    "numbers without arrays": lambda record: [drop(f"state.1.{part}")(record) for part in ("beta", "f")],
}


@pytest.fixture(scope="module")
def unfinished_svc(tmp_path_factory, three_classes):
    """The record of a model of three classes on CSR data with its training state."""
    folder = tmp_path_factory.mktemp("unfinished_svc")
    X, y = three_classes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        SVC(warm_start=True).fit(sp.csr_matrix(X), y).save(folder / "m", include_training_state=True)
    return folder / "m"


class TestLiesAboutSVC:
    @pytest.mark.parametrize("lie", SVC_LIES.values(), ids=SVC_LIES)
    def test_each_is_found(self, path, unfinished_svc, monkeypatch, lie):
        record = read_model(unfinished_svc)
        lie(record)
        with monkeypatch.context() as patch:
            patch.setattr(model_file, "check_layout", lambda *_: None)
            write_model(path, record)
        with pytest.raises(ModelFileError, match=str(path)):
            load(path)

    @pytest.mark.parametrize(
        ("params", "cause"),
        [
            ({"D": 1.0}, "'D'"),
            ({"kernel": "magic"}, "'magic' is unknown"),
            ({"kernel": ["rbf"]}, "rbf"),
            ({"kernel": "precomputed"}, "precomputed"),
            ({"kernel": "poly", "degree": "three"}, "degree='three'"),
            ({"kernel": "poly", "coef0": None}, "coef0=None"),
            ({"kernel": "poly", "degree": math.inf}, "degree=inf"),
            ({"kernel": "poly", "degree": 2**70}, "degree="),
            ({"solver": model_file.Named("SMO", {"rule": "best"})}, "best"),
            ({"solver": model_file.Named("SMO", {"block": "ten"})}, "SMO"),
            ({"solver": model_file.Named("BlockSMO", {"code": "x"})}, "'code'"),
        ],
    )
    def test_parameters(self, path, unfinished_svc, params, cause):
        write_model(path, replace(read_model(unfinished_svc), params=params))
        with pytest.raises(ModelFileError, match=cause):
            load(path)

    @given(data=st.data())
    def test_anything_in_the_place_of_anything(self, unfinished_svc, data):
        record = read_model(unfinished_svc)
        record = replace(record, params=mutate(record.params, data), values=mutate(record.values, data))
        other = unfinished_svc.with_name("mutant")
        if not isinstance(record.params, dict) or not isinstance(record.values, dict):
            return
        write_model(other, record)
        with suppress(ModelFileError):
            found = load(other).set_params(n_jobs=None)  # prediction looks at no other that could be wrong
            assert found.predict(np.ones((2, 8))).shape == (2,)


class TestLibsvm:
    @pytest.mark.parametrize(
        "params", [{}, {"kernel": "linear"}, {"kernel": "poly", "coef0": 1.0}, {"kernel": "sigmoid"}], ids=str
    )
    @pytest.mark.parametrize("data", ["binary", "three_classes"])
    def test_there_and_back(self, path, request, data, params):
        X, y = request.getfixturevalue(data)
        model = SVC(**params).fit(X, 3 * y - 2)
        found = saved_and_loaded(model, path, format="libsvm")
        for name in ("dual_coef_", "intercept_", "n_support_", "classes_", "support_vectors_", "gamma_"):
            assert bits(getattr(found, name)) == bits(getattr(model, name)), name
        assert found.decision_function(X).tobytes() == model.decision_function(X).tobytes()

    def test_nothing_is_claimed_that_the_file_does_not_say(self, path, three_classes):
        X, y = three_classes
        model = SVC(C=3.0).fit(sp.csr_matrix(X), y)
        found = saved_and_loaded(model, path, format="libsvm")
        assert len(found.certificates_) == 3
        assert np.isnan([found.certificate_.primal, found.certificate_.dual, found.certificate_.relative_gap]).all()
        absent = {"status_", "trace_", "n_iter_", "seconds_", "counts_", "fit_status_", "class_weight_"}
        assert not absent & vars(found).keys()
        assert found.support_.size == 0
        again = saved_and_loaded(found, path)
        assert_same_svc(again, found)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))

    @pytest.mark.skipif(not shutil.which("svm-predict"), reason="LIBSVM's programs are not installed")
    @pytest.mark.parametrize("data", ["binary", "three_classes"])
    def test_its_program_predicts_the_same(self, path, request, data, make_noisy):
        X, y = request.getfixturevalue(data)
        new = make_noisy(n=500, seed=7)[0]
        model = SVC(C=10.0).fit(X, y)
        model.save(path, format="libsvm")
        lines = ("0 " + " ".join(f"{j}:{value!r}" for j, value in enumerate(row, 1)) for row in new.tolist())
        path.with_name("data").write_text("\n".join(lines) + "\n")
        command = ["svm-predict", path.with_name("data"), path, path.with_name("out")]
        subprocess.run(command, check=True, capture_output=True)
        clear = np.ones(len(new), dtype=bool)
        if data == "three_classes":  # without three classes of one vote each
            clear = np.round(model.decision_function(new)).max(axis=1) == 2
        assert clear.mean() > 0.9
        theirs = np.loadtxt(path.with_name("out"), dtype=int)
        np.testing.assert_array_equal(theirs[clear], model.predict(new)[clear])

    def test_it_can_be_trained_again(self, path, binary):
        X, y = binary
        found = saved_and_loaded(SVC().fit(X, y), path, format="libsvm")
        found.set_params(warm_start=True).fit(X, y)
        assert found.certificate_.relative_gap <= 1e-3

    def test_words_as_labels_and_other_kernels(self, path, binary):
        X, y = binary
        with pytest.raises(SoftmarginError, match="integers"):
            SVC().fit(X, np.array(["no", "yes"])[y]).save(path, format="libsvm")
        with pytest.raises(SoftmarginError, match="laplacian"):
            SVC(kernel="laplacian").fit(X, y).save(path, format="libsvm")
        assert not path.exists()
