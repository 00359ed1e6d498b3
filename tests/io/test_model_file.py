"""The model file: what goes in comes out, bit for bit, and whatever else a file may hold ends in one kind of error."""

import json
import math
import os
import re
import stat
import subprocess
import sys
import tracemalloc
import zlib
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from softmargin import ModelFileError, SoftmarginError
from softmargin.io import model_file
from softmargin.io.atomic import replacing
from softmargin.io.model_file import read_model, write_model
from softmargin.io.record import ModelRecord, Named


def make_record(classes=(3, 5, 8), **arrays):
    """A model with three sub-problems and four features, or as many as the classes ask for."""
    classes = np.asarray(classes)
    k = 1 if len(classes) == 2 else len(classes)
    base = {
        "coef_": np.arange(4.0 * k).reshape(k, 4) / 7,
        "intercept_": np.full(k, -0.0),
        "classes_": classes,
    }
    return ModelRecord("LinearSVC", {"C": 1.5}, {"status_": "OPTIMAL"}, base | arrays, {"softmargin": "1"})


def parts_of(raw):
    """(header, data) of a file, the header as Python objects with the model's JSON opened."""
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    header["__metadata__"]["model"] = json.loads(header["__metadata__"]["model"])
    return header, raw[8 + length :]


def sealed(header, data):
    """The file with this header, whose checksum is right if its arrays can be found."""
    header = json.loads(json.dumps(header))
    metadata = header["__metadata__"]
    if isinstance(metadata, dict) and "model" in metadata:
        metadata["model"] = json.dumps(metadata["model"])
        crc = zlib.crc32(metadata["model"].encode())
        for name in sorted(header.keys() - {"__metadata__"}):
            begin, end = header[name].get("data_offsets", (0, 0))
            crc = zlib.crc32(data[begin:end], crc)
        if "crc32" in metadata:
            metadata["crc32"] = f"{crc:08x}"
    raw = json.dumps(header).encode()
    return len(raw).to_bytes(8, "little") + raw + data


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.softmargin"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def good(folder):
    write_model(folder / "good", make_record())
    return (folder / "good").read_bytes()


def refused(path, raw):
    path.write_bytes(raw)
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


CERTIFICATE = {"primal": 1.0, "dual": 1.0, "gap": 0.0, "relative_gap": 0.0, "kkt_violation": 0.0}
SEARCH = {
    "measure": "accuracy",
    "n_folds": 2,
    "params": {"C": [1.0, 2.0]},
    "score": [0.5, 0.75],
    "standard_error": [0.0, 0.1],
    "support_vectors": [3.0, 4.0],
}
MANY_C = {"C": [1.0] * 4097}
LABELS = [
    *(np.array([1, 2, 200 % 128], dtype=kind) for kind in "bBhHiIqQ"),
    np.array([-1.0, 0.0, 1.0], dtype=np.float16),
    np.array([-1.0, 0.0, 1.0], dtype=np.float32),
    np.array([-1.0, 0.5, 1e300]),
    np.array([False, True]),
    np.array(["a", "bb", "Übergröße \N{GRINNING FACE}"]),
    np.array(["a", "b", "c"], dtype="<U20"),
    np.array(["", "b", "a longer one"], dtype=object),
]


class TestRoundTrip:
    def test_a_search(self, path):
        record = make_record()
        write_model(path, replace(record, values=record.values | {"search_": SEARCH}))
        assert read_model(path).values["search_"] == SEARCH

    @pytest.mark.parametrize("labels", LABELS, ids=lambda labels: str(labels.dtype))
    def test_labels_of_every_type(self, path, labels):
        write_model(path, make_record(labels))
        found = read_model(path).arrays["classes_"]
        assert found.dtype == labels.dtype
        assert found.tolist() == labels.tolist()

    def test_arrays_bit_for_bit(self, path):
        rng = np.random.default_rng(0)
        coef, dual = rng.standard_normal((3, 4)), rng.standard_normal((5, 3))
        dual[0] = np.nan, -np.inf, -0.0
        names = np.array(["x", "y", "", "z" * 300], dtype=object)
        record = make_record(coef_=coef, dual_=dual, feature_names_in_=names)
        write_model(path, record)
        found = read_model(path)
        assert (found.kind, found.params, found.values) == (record.kind, record.params, record.values)
        assert found.versions == record.versions
        assert found.arrays.keys() == record.arrays.keys()
        for name, array in record.arrays.items():
            assert found.arrays[name].dtype == array.dtype
            assert found.arrays[name].tolist() == array.tolist() or name == "dual_"
            assert found.arrays[name].flags.writeable
        assert found.arrays["dual_"].tobytes() == dual.tobytes()

    def test_other_memory_orders_and_byte_orders_are_written_in_ours(self, path):
        coef = np.arange(12.0).reshape(3, 4)
        record = make_record(np.array([1, 2, 3], dtype=">i4"), coef_=np.asfortranarray(coef))
        write_model(path, record)
        found = read_model(path).arrays
        np.testing.assert_array_equal(found["coef_"], coef)
        assert found["classes_"].dtype == np.dtype("<i4")
        assert found["classes_"].tolist() == [1, 2, 3]

    @pytest.mark.parametrize(
        "value",
        [
            None,
            True,
            0,
            -(10**30),
            0.1,
            -0.0,
            5e-324,
            math.inf,
            -math.inf,
            "",
            "ünï\ud800\x00",
            [1, [2.0, None]],
            {},
            {"a": 1.5, "$b": 2},
            {0: 1.0, 1: math.inf},
            {True: 1, 2.5: 2, "x": 3, None: 4},
            Named("OCAS", {"mixing": 0.2, "stopping": "epsilon"}),
        ],
        ids=repr,
    )
    def test_values(self, path, value):
        write_model(path, ModelRecord("LinearSVC", {"p": value}, {}, make_record().arrays))
        found = read_model(path).params["p"]
        assert found == value
        assert type(found) is type(value)
        assert repr(found) == repr(value)

    def test_nan_is_a_value(self, path):
        write_model(path, ModelRecord("LinearSVC", {"p": math.nan}, {}, make_record().arrays))
        assert math.isnan(read_model(path).params["p"])

    def test_numpy_scalars_become_plain(self, path):
        params = {"C": np.float64(0.1), "n": np.int32(3), "flag": np.True_, "map": {np.int64(7): np.float32(0.5)}}
        write_model(path, ModelRecord("LinearSVC", params, {}, make_record().arrays))
        assert read_model(path).params == {"C": 0.1, "n": 3, "flag": True, "map": {7: 0.5}}

    def test_same_record_same_bytes(self, tmp_path):
        for name in "ab":
            write_model(tmp_path / name, make_record())
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


class TestSafetensors:
    """The library of that format agrees with us, both ways."""

    def test_it_reads_ours(self, path):
        record = make_record(dual_=np.ones((5, 3)))
        write_model(path, record)
        found = safetensors.numpy.load_file(path)
        assert found.keys() == record.arrays.keys()
        for name, array in record.arrays.items():
            np.testing.assert_array_equal(found[name], array)
        with safetensors.safe_open(path, "np") as file:
            metadata = file.metadata()
        assert metadata["format"] == "softmargin"
        assert json.loads(metadata["model"])["params"] == {"C": 1.5}

    def test_we_read_its(self, path, good):
        header, _ = parts_of(good)
        metadata = header["__metadata__"]
        metadata["model"] = json.dumps(metadata["model"])
        safetensors.numpy.save_file(make_record().arrays, path, metadata)
        np.testing.assert_array_equal(read_model(path).arrays["coef_"], make_record().arrays["coef_"])

    def test_arrays_begin_at_multiples_of_their_item_size(self, path):
        write_model(path, make_record(np.array([1, 2, 3], dtype=np.int8), dual_=np.ones((5, 3))))
        header, data = parts_of(path.read_bytes())
        start = len(path.read_bytes()) - len(data)
        assert start % 8 == 0
        for name, entry in header.items():
            if name != "__metadata__":
                assert entry["data_offsets"][0] % (int(entry["dtype"][1:]) // 8) == 0


class TestWriting:
    @pytest.mark.parametrize(
        "value", [object(), np.random.RandomState(0), lambda: 0, np.zeros(2), {"a": {1, 2}}, (1, 2), 1j]
    )
    def test_what_cannot_be_saved_names_the_parameter_and_writes_nothing(self, path, value):
        with pytest.raises(SoftmarginError, match="mystery"):
            write_model(path, ModelRecord("LinearSVC", {"mystery": value}, {}, make_record().arrays))
        assert os.listdir(path.parent) == []

    @pytest.mark.parametrize(
        "labels",
        [
            np.array([1.0, 2.0], dtype=np.longdouble),
            np.array([1, "a"], dtype=object),
            np.array(["a\0", "b"], dtype=object),
            np.array([b"a", b"b"]),
        ],
        ids=["longdouble", "mixed", "nul", "bytes"],
    )
    def test_labels_that_a_file_cannot_hold(self, path, labels):
        with pytest.raises(SoftmarginError, match="classes_"):
            write_model(path, make_record(labels))

    def test_values_beyond_the_limit_of_the_header(self, path):
        with pytest.raises(SoftmarginError, match="at most"):
            write_model(path, ModelRecord("LinearSVC", {"p": "x" * 2**23}, {}, make_record().arrays))

    def test_a_failure_leaves_the_old_file_and_nothing_else(self, path, monkeypatch):
        path.write_bytes(b"old")

        class Full(np.ndarray):
            @property
            def data(self):
                raise OSError("no space left")

        original = model_file._as_tensor
        sizes = iter(range(100))

        def tensor(name, array):
            found = original(name, array)
            return found.view(Full) if next(sizes) == 2 else found

        monkeypatch.setattr(model_file, "_as_tensor", tensor)
        monkeypatch.setattr(model_file, "_checksum", lambda *_: "0" * 8)
        with pytest.raises(OSError, match="no space"):
            write_model(path, make_record())
        assert path.read_bytes() == b"old"
        assert os.listdir(path.parent) == [path.name]

    def test_permissions(self, path):
        umask = os.umask(0o027)
        try:
            write_model(path, make_record())
            assert stat.S_IMODE(path.stat().st_mode) == 0o640
            path.chmod(0o604)
            write_model(path, make_record())
            assert stat.S_IMODE(path.stat().st_mode) == 0o604
            os.umask(0)
            path.chmod(0o600)
            with replacing(path) as file:
                assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600  # nobody reads the draft of a secret
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        finally:
            os.umask(umask)

    def test_a_link_stays_a_link(self, path, tmp_path):
        path.symlink_to(tmp_path / "real")
        write_model(path, make_record())
        assert path.is_symlink()
        assert read_model(tmp_path / "real").kind == "LinearSVC"

    def test_missing_folder_and_special_files(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            write_model(tmp_path / "nowhere" / "model", make_record())
        with pytest.raises(OSError, match="regular file"):
            write_model(tmp_path, make_record())
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(OSError, match="regular file"):
            write_model(tmp_path / "pipe", make_record())


def change(*keys, to):
    """A change of the header: the entry under these keys becomes `to`, or is deleted."""

    def apply(header):
        node = header
        for key in keys[:-1]:
            node = node[key]
        if to is DELETED:
            del node[keys[-1]]
        else:
            node[keys[-1]] = to
        return header

    return apply


DELETED = object()
META, MODEL = "__metadata__", ("__metadata__", "model")

LIES = {
    "another format": (change(META, "format", to="pt"), "not a softmargin model"),
    "no metadata": (change(META, to=DELETED), "not a softmargin model"),
    "metadata that is a list": (change(META, to=[]), "not a softmargin model"),
    "a newer version": (change(META, "format_version", to="2"), "upgrade"),
    "version zero": (change(META, "format_version", to="0"), "metadata"),
    "a version in words": (change(META, "format_version", to="one"), "version"),
    "a number as version": (change(META, "format_version", to=1), "version"),
    "an unknown metadata key": (change(META, "extra", to="x"), "metadata"),
    "an unknown key": (change(*MODEL, "extra", to={}), "keys"),
    "a missing key": (change(*MODEL, "values", to=DELETED), "keys"),
    "a list as parameters": (change(*MODEL, "params", to=[]), "keys"),
    "versions that are no strings": (change(*MODEL, "versions", "numpy", to=2), "strings"),
    "an unknown estimator": (change(*MODEL, "estimator", to="Oracle"), "Oracle"),
    "an unknown value": (change(*MODEL, "values", "oracle_", to=1), "oracle_"),
    "a value of no known form": (change(*MODEL, "params", "C", to={"$code": "1"}), "no known form"),
    "a float of no known form": (change(*MODEL, "params", "C", to={"$float": "1"}), "no known form"),
    "a repeated key": (change(*MODEL, "params", "C", to={"$mapping": [[1, 1], [1, 2]]}), "twice"),
    "a list as key": (change(*MODEL, "params", "C", to={"$mapping": [[[1], 1]]}), "simple key"),
    "a triple": (change(*MODEL, "params", "C", to={"$mapping": [[1, 1, 1]]}), "simple key"),
    "a number of 400 digits": (change(*MODEL, "params", "C", to=int("9" * 400)), None),
    "text that is not": (change(*MODEL, "text", to={"coef_": "str"}), "text"),
    "text that is not there": (change(*MODEL, "text", to={"nothing": "str"}), "text"),
    "an unknown array": (change("extra", to={"dtype": "F64", "shape": [0], "data_offsets": [0, 0]}), "extra"),
    "an entry that is a number": (change("coef_", to=1), "coef_"),
    "an entry with more": (change("coef_", "more", to=1), "coef_"),
    "an unknown type": (change("coef_", "dtype", to="F8_E4M3"), "coef_"),
    "a wrong type": (change("coef_", "dtype", to="I64"), "coef_"),
    "a wrong shape": (change("coef_", "shape", to=[4, 3]), "rows|number of|lengths"),
    "another size": (change("coef_", "shape", to=[3, 5]), "does not fit"),
    "too many dimensions": (change("coef_", "shape", to=[1, 1, 3, 4]), "dimensions"),
    "a truth as length": (change("intercept_", "shape", to=[True, 3]), "intercept_"),
    "a negative length": (change("coef_", "shape", to=[-3, -4]), "coef_"),
    "an absurd length": (change("coef_", "shape", to=[10**12, 0]), "coef_"),
    "an offset beyond the end": (change("coef_", "data_offsets", to=[0, 10**15]), "coef_"),
    "offsets turned round": (change("coef_", "data_offsets", to=[96, 0]), "coef_"),
    "an overlap": (change("intercept_", "data_offsets", to=[0, 24]), "begin"),
}


class TestLies:
    @pytest.mark.parametrize(("lie", "cause"), LIES.values(), ids=LIES)
    def test_each_is_found(self, path, good, lie, cause):
        header, data = parts_of(good)
        raw = sealed_if_possible(lie(header), data)
        if cause is None:
            path.write_bytes(raw)
            assert read_model(path).params["C"] == int("9" * 400)
        else:
            assert re.search(cause, refused(path, raw))

    @pytest.mark.parametrize(
        ("classes", "arrays"),
        [
            ((3,), {}),
            ((3, 5), {"coef_": np.ones((2, 4)), "intercept_": np.ones(2)}),
            ((3, 5, 7), {"coef_": np.ones((1, 4)), "intercept_": np.ones(1)}),
            ((3, 5, 7), {"intercept_": np.ones(2)}),
            ((3, 5, 7), {"dual_": np.ones((9, 2))}),
            ((3, 5, 7), {"coef_": np.ones((3, 0))}),
            ((3, 5, 7), {"feature_names_in_": np.array(["a", "b"], dtype=object)}),
            ((3, 5, 7), {"feature_names_in_": np.arange(4)}),
            ((3, 5, 7), {"trace.lengths": np.array([1, 1, 1])}),
            ((3, 5, 7), {"coef_": np.ones((3, 4), dtype=np.float32)}),
            ((3, 5, 7), {"unheard_of": np.ones(3)}),
        ],
    )
    def test_arrays_that_contradict_each_other(self, path, monkeypatch, classes, arrays):
        record = make_record(classes, **arrays)
        with pytest.raises(ModelFileError):
            write_model(path, record)
        with monkeypatch.context() as patch:
            patch.setattr(model_file, "check_layout", lambda *_: None)
            write_model(path, record)
        refused(path, path.read_bytes())

    @pytest.mark.parametrize(
        "raw",
        [
            b"",
            b"\x00" * 7,
            b"\x00" * 8,
            b"\x80\x04\x95" + b"pickle" * 9,
            (2**63).to_bytes(8, "little") + b"{}",
            (3).to_bytes(8, "little") + b"{}",
            (2).to_bytes(8, "little") + b"[]",
            (2).to_bytes(8, "little") + b"{}",
            (4).to_bytes(8, "little") + b'"\xff"}',
            (9).to_bytes(8, "little") + b'{"a":NaN}',
            (13).to_bytes(8, "little") + b'{"a":1,"a":2}',
            (2 * 10**5).to_bytes(8, "little") + b"[" * 10**5 + b"]" * 10**5,
            (6 * 10**5 + 1).to_bytes(8, "little") + b'{"a":' * 10**5 + b"1" + b"}" * 10**5,
            (10**4).to_bytes(8, "little") + b"1" * 10**4,
        ],
        ids=[*"0123456789", "twice", "lists", "objects", "digits"],
    )
    def test_what_is_no_model_at_all(self, path, raw):
        refused(path, raw)

    def test_deep_nesting_inside_the_model(self, path, good):
        header, data = parts_of(good)
        value = 1.5
        for _ in range(400):
            value = {"$object": "x", "fields": {"a": value}}
        header[META]["model"]["params"]["C"] = value
        assert "nested" in refused(path, sealed(header, data))

    def test_brackets_in_strings_are_not_nesting(self, path):
        text = '[{"' * 100 + "\\"
        write_model(path, ModelRecord("LinearSVC", {"p": text}, {}, make_record().arrays))
        assert read_model(path).params["p"] == text

    def test_code_points_beyond_unicode(self, path):
        write_model(path, make_record(np.array(["a", "b", "c"])))
        header, data = parts_of(path.read_bytes())
        begin, end = header["classes_"]["data_offsets"]
        data = data[:begin] + b"\xff\xff\xff\x7f" * 3 + data[end:]
        assert "Unicode" in refused(path, sealed(header, data))

    def test_truths_that_are_neither(self, path):
        write_model(path, make_record(np.array([False, True])))
        header, data = parts_of(path.read_bytes())
        begin, end = header["classes_"]["data_offsets"]
        assert "true" in refused(path, sealed(header, data[:begin] + b"\x02\x03" + data[end:]))

    def test_claims_are_not_allocated(self, path, good):
        header, data = parts_of(good)
        huge = 2**40
        header["coef_"] |= {"shape": [3, huge], "data_offsets": [0, 24 * huge]}
        long_header = (2**62).to_bytes(8, "little") + good[8:]
        path.write_bytes(good)
        read_model(path)
        for raw in (sealed(header, data), long_header):
            tracemalloc.start()
            refused(path, raw)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 2**20

    @pytest.mark.parametrize("text", [b'{"a": "', b'{"', b'{"a": "\\'], ids=["open", "key", "backslash"])
    def test_an_unclosed_string_does_not_take_for_ever(self, path, text):
        """Every quote behind it could begin a string: looking for the end of each would take minutes."""
        raw = text + b'\\"' * 2**19 + b"\\"
        refused(path, len(raw).to_bytes(8, "little") + raw)

    @pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
    @pytest.mark.parametrize("name", ["coef_", "intercept_"])
    def test_weights_that_are_not_finite(self, path, good, name, number):
        array = make_record().arrays[name].copy()
        array.flat[-1] = number
        with pytest.raises(ModelFileError, match=f"{name}.*NaN or infinity"):
            write_model(path, make_record(**{name: array}))
        header, data = parts_of(good)
        begin, end = header[name]["data_offsets"]
        assert "NaN or infinity" in refused(path, sealed(header, data[:begin] + array.tobytes() + data[end:]))

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("status_", 7),
            ("n_iter_", 1.5),
            ("n_iter_", True),
            ("seconds_", 7),
            ("seconds_", {"total": "long"}),
            ("certificates_", 7),
            ("certificates_", [7]),
            ("certificates_", [{"primal": 1.0}]),
            ("certificates_", [CERTIFICATE | {"gap": "small"}]),
            ("certificates_", [CERTIFICATE | {"gap": None}]),
            ("certificates_", [CERTIFICATE | {"more": 1.0}]),
            ("state", [1]),
            ("search_", [1]),
            ("search_", {}),
            ("search_", SEARCH | {"more": 1.0}),
            ("search_", SEARCH | {"measure": 1}),
            ("search_", SEARCH | {"n_folds": 1}),
            ("search_", SEARCH | {"n_folds": 2.0}),
            ("search_", SEARCH | {"params": {}}),
            ("search_", SEARCH | {"params": {"tol": [1.0, 2.0]}}),
            ("search_", SEARCH | {"params": {"C": [1.0]}}),
            ("search_", SEARCH | {"params": {"C": [1.0, -2.0]}}),
            ("search_", SEARCH | {"score": []}),
            ("search_", SEARCH | {"score": [0.5, 1]}),
            ("search_", SEARCH | {"score": [0.5, {"$float": "nan"}]}),
            ("search_", SEARCH | {"standard_error": [0.0, {"$float": "inf"}]}),
            ("search_", SEARCH | {"support_vectors": [1.0, None]}),
            ("search_", {name: [0.5] * 4097 for name in SEARCH} | {"measure": "r2", "n_folds": 2, "params": MANY_C}),
        ],
        ids=lambda value: str(value)[:60],
    )
    def test_values_of_another_form(self, path, good, name, value):
        header, data = parts_of(good)
        header[META]["model"]["values"][name] = value
        assert "certificate" in (message := refused(path, sealed(header, data))) or name in message

    def test_a_missing_file_is_a_missing_file(self, path):
        with pytest.raises(FileNotFoundError):
            read_model(path)


def sealed_if_possible(header, data):
    try:
        return sealed(header, data)
    except (AttributeError, TypeError, KeyError, ValueError):
        metadata = header.get(META)
        if isinstance(metadata, dict):
            metadata["model"] = json.dumps(metadata.get("model"))
        raw = json.dumps(header).encode()
        return len(raw).to_bytes(8, "little") + raw + data


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5) | st.sampled_from(["$float", "$mapping"]), inner, max_size=3)
    ),
    max_leaves=5,
)


def mutate(node, data):
    """Somewhere in a tree of lists and dictionaries, something else."""
    keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
    if not keys or data.draw(st.integers(0, 3)) == 0:
        return data.draw(JSON)
    key = data.draw(st.sampled_from(keys))
    copy = dict(node) if isinstance(node, dict) else list(node)
    if data.draw(st.integers(0, 9)) == 0:
        del copy[key]
    else:
        copy[key] = mutate(node[key], data)
    return copy


class TestFuzz:
    @given(at=st.integers(0, 10**6))
    def test_truncated(self, folder, good, at):
        refused(folder / "cut", good[: at % len(good)])

    @given(bit=st.integers(0, 10**7))
    def test_one_bit_flipped(self, folder, good, bit):
        raw = bytearray(good)
        raw[bit // 8 % len(raw)] ^= 1 << bit % 8
        refused(folder / "flipped", bytes(raw))

    @given(raw=st.binary(max_size=300), keep=st.integers(0, 2000))
    def test_anything_behind_a_good_beginning(self, folder, good, raw, keep):
        (folder / "any").write_bytes(good[:keep] + raw)
        with suppress(ModelFileError):
            read_model(folder / "any")

    @given(data=st.data())
    def test_lies_with_a_right_checksum(self, folder, good, data):
        header, body = parts_of(good)
        header = mutate(header, data)
        if not isinstance(header, dict):
            return
        (folder / "lie").write_bytes(sealed_if_possible(header, body))
        try:
            record = read_model(folder / "lie")
        except ModelFileError:
            return
        assert record.arrays["coef_"].shape == (3, 4)


def test_reading_needs_numpy_only(path):
    write_model(path, make_record())
    code = (
        "import sys; from softmargin.io.model_file import read_model; read_model(sys.argv[1]); "
        "sys.exit(any(name in sys.modules for name in ('scipy', 'sklearn', 'numba', 'softmargin.data')))"
    )
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == 0
