"""Data files: each format gives the same table, and a file that lies ends in DataFormatError without being believed."""

import bz2
import io
import sys
import tracemalloc
import zipfile
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from softmargin import DataFormatError, SoftmarginError
from softmargin.io.tables import load_table

X = np.array([[1.5, 0.0, -2.0], [0.0, 3.0, 0.25], [4.0, 0.0, 0.0], [0.0, 0.0, 7.0]])
Y = np.array([1, 2, 1, 2])
QID = np.array([1, 1, 2, 2])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


def npy(array, **header):
    """The bytes of a .npy file, whose header may claim something else."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    raw = buffer.getvalue()
    body = raw[10 + int.from_bytes(raw[8:10], "little") :]
    claimed = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape} | header
    text = repr(claimed).encode() + b"\n"
    return raw[:8] + len(text).to_bytes(2, "little") + text + body


def npz(path, compression=zipfile.ZIP_STORED, **members):
    """A .npz file of arrays, or of bytes as they are."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, member in members.items():
            archive.writestr(f"{name}.npy", member if isinstance(member, bytes) else npy(member))


def sparse_parts(**changes):
    matrix = sp.csr_matrix(X)
    parts = {name: getattr(matrix, name) for name in ("data", "indices", "indptr")}
    return {"format": np.array(b"csr"), "shape": np.array(X.shape), **parts} | changes


class TestEveryFormat:
    def write(self, folder, ending):
        path = folder / f"data{ending}"
        if ending == ".npz":
            np.savez(path, X=X, y=Y, qid=QID)
        elif ending == ".sparse.npz":
            np.savez_compressed(path, y=Y, qid=QID, **sparse_parts())
        elif ending in (".parquet", ".csv", ".csv.gz"):
            import pandas as pd

            frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(qid=QID)
            frame.insert(1, "label", Y)
            frame.to_parquet(path) if ending == ".parquet" else frame.to_csv(path, index=False)
        else:
            lines = (
                f"{label} qid:{q} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row) if v)
                for label, q, row in zip(Y, QID, X, strict=True)
            )
            path.write_text("\n".join(lines) + "\n")
        return path

    @pytest.mark.parametrize("ending", [".npz", ".sparse.npz", ".parquet", ".csv", ".csv.gz", ".txt", ""])
    def test_the_same_table(self, tmp_path, ending):
        table = load_table(self.write(tmp_path, ending), query_id=True)
        found = table.X if isinstance(table.X, np.ndarray) else table.X.toarray()
        np.testing.assert_array_equal(found, X)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(table.y, Y)
        np.testing.assert_array_equal(table.qid, QID)
        assert table.feature_names == (("a", "b", "c") if ending.startswith((".parquet", ".csv")) else None)

    @pytest.mark.parametrize("ending", [".npz", ".sparse.npz", ".parquet", ".csv", ".txt"])
    def test_type_and_width(self, tmp_path, ending):
        path = self.write(tmp_path, ending)
        extra = 1 if ending in (".parquet", ".csv") else 0  # without query_id the column qid is a feature
        assert load_table(path, dtype=np.float32, n_features=3 + extra).X.dtype == np.float32
        with pytest.raises(DataFormatError, match=r"data\..*2"):
            load_table(path, n_features=2)
        if ending in (".sparse.npz", ".txt"):
            assert load_table(path, n_features=9).X.shape == (4, 9)
        else:
            with pytest.raises(DataFormatError, match="9 are needed"):
                load_table(path, n_features=9)

    @pytest.mark.parametrize("ending", [".npy", ".npz", ".parquet", ".csv", ".txt"])
    def test_a_missing_file_is_a_missing_file(self, tmp_path, ending):
        with pytest.raises(FileNotFoundError):
            load_table(tmp_path / f"nothing{ending}")

    def test_svmlight_has_its_label_in_place(self, tmp_path):
        with pytest.raises(SoftmarginError, match="first in every line"):
            load_table(self.write(tmp_path, ".txt"), label="y")


class TestNpy:
    def test_mapped_and_read_only(self, tmp_path):
        np.save(tmp_path / "x.npy", X)
        table = load_table(tmp_path / "x.npy")
        assert isinstance(table.X, np.memmap)
        assert not table.X.flags.writeable
        assert table.y is None
        np.testing.assert_array_equal(table.X, X)

    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize("column", [0, 1, 3, -1, "2", "-4"])
    def test_label_column(self, tmp_path, column, order):
        np.save(tmp_path / "x.npy", np.asarray(np.insert(X, int(column) % 4, Y, axis=1), order=order))
        table = load_table(tmp_path / "x.npy", label=column)
        np.testing.assert_array_equal(table.X, X)
        np.testing.assert_array_equal(table.y, Y)

    @pytest.mark.parametrize("label", [3, -4, "y", "", "1.5"])
    def test_no_such_column(self, tmp_path, label):
        np.save(tmp_path / "x.npy", X)
        with pytest.raises(SoftmarginError, match="3 columns"):
            load_table(tmp_path / "x.npy", label=label)

    def test_no_queries(self, tmp_path):
        np.save(tmp_path / "x.npy", X)
        with pytest.raises(SoftmarginError, match="npz"):
            load_table(tmp_path / "x.npy", query_id=True)

    @pytest.mark.parametrize(
        "array", [X[0], X[None], np.array([["a"]]), X.astype(complex), X[:0], np.array([[1]], dtype="M8[s]")]
    )
    def test_only_matrices_of_numbers(self, tmp_path, array):
        np.save(tmp_path / "x.npy", array)
        with pytest.raises(DataFormatError, match=r"x\.npy"):
            load_table(tmp_path / "x.npy")

    def test_objects_are_not_unpickled(self, tmp_path):
        np.save(tmp_path / "x.npy", np.array([[{}]], dtype=object), allow_pickle=True)
        with pytest.raises(DataFormatError, match="never"):
            load_table(tmp_path / "x.npy")

    @pytest.mark.parametrize(
        "raw",
        [
            b"",
            b"\x93NUMPY",
            b"\x93NUMPY\x07\x00" + b" " * 99,
            npy(X, descr="<f4"),
            npy(X, descr=[("a", "<f8")]),
            npy(X, descr="<f3"),
            npy(X, descr="<U0"),
            npy(X, shape=(4, 4)),
            npy(X, shape=(-4, -3)),
            npy(X, shape=(10**6, 10**6)),
            npy(X, shape=(2**62, 4)),
            npy(X, shape=(2**64 + 4, 3)),
            npy(X)[:-1],
            npy(X) + b"x",
        ],
    )
    def test_lies(self, tmp_path, raw):
        (tmp_path / "x.npy").write_bytes(raw)
        tracemalloc.start()
        with pytest.raises(DataFormatError, match=r"x\.npy"):
            load_table(tmp_path / "x.npy")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**20


class TestNpz:
    def test_what_scipy_writes(self, tmp_path):
        for matrix in (sp.csr_matrix(X), sp.csr_array(X.astype(np.float32)), sp.csr_matrix((3, 4))):
            sp.save_npz(tmp_path / "x.npz", matrix)
            table = load_table(tmp_path / "x.npz")
            assert table.X.format == "csr"
            assert table.X.dtype == matrix.dtype
            assert table.y is None
            np.testing.assert_array_equal(table.X.toarray(), matrix.toarray())

    def test_labels_of_other_types_and_names(self, tmp_path):
        words = np.array(["a", "b", "a", "ü"])
        np.savez(tmp_path / "x.npz", X=X, truth=words, y=Y)
        np.testing.assert_array_equal(load_table(tmp_path / "x.npz", label="truth").y, words)
        np.testing.assert_array_equal(load_table(tmp_path / "x.npz").y, Y)

    @pytest.mark.parametrize(
        ("members", "cause"),
        [
            ({"y": Y}, "neither"),
            ({"X": X, "y": Y[:3]}, "y has shape"),
            ({"X": X, "y": Y[:, None]}, "y has shape"),
            ({"X": X, "y": np.array([b"a"] * 4)}, "y has shape"),
            ({"X": X[0]}, "matrix"),
            ({"X": np.array([["a"]])}, "matrix"),
            ({"X": npy(X, descr="|O")}, "never"),
            ({"X": npy(X, shape=(10**5, 10**5))}, "needs"),
            ({"X": npy(X)[:-8]}, "needs"),
            ({"X": X, "y": npy(np.array(["a", "b", "c", "d"]))[:-16] + b"\xff\xff\xff\x7f" * 4}, "Unicode"),
        ],
    )
    def test_what_is_refused(self, tmp_path, members, cause):
        npz(tmp_path / "x.npz", **members)
        with pytest.raises(DataFormatError, match=cause) as caught:
            load_table(tmp_path / "x.npz")
        assert "x.npz" in str(caught.value)

    def test_other_compressions(self, tmp_path):
        for compression in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
            npz(tmp_path / "x.npz", compression, X=X)
            with pytest.raises(DataFormatError, match="compressed"):
                load_table(tmp_path / "x.npz")

    def test_what_was_asked_for_and_is_not_there(self, tmp_path):
        np.savez(tmp_path / "x.npz", X=X)
        with pytest.raises(DataFormatError, match="'truth'"):
            load_table(tmp_path / "x.npz", label="truth")
        with pytest.raises(DataFormatError, match="'qid'"):
            load_table(tmp_path / "x.npz", query_id=True)

    @pytest.mark.parametrize(
        "changes",
        [
            {"format": np.array(b"csc")},
            {"format": np.array([1, 2])},
            {"shape": np.array([4])},
            {"shape": np.array([4.0, 3.0])},
            {"shape": np.array([5, 3])},
            {"shape": np.array([-1, 3])},
            {"shape": np.array([4, 2])},
            {"shape": np.array([4, 2**40])},
            {"indptr": np.array([0, 2, 4, 5, 7])},
            {"indptr": np.array([1, 2, 4, 5, 6])},
            {"indptr": np.array([0, 5, 4, 5, 6])},
            {"indptr": np.array([0, 2**62, -(2**62), 5, 6])},
            {"indptr": np.array([[0, 2, 4, 5, 6]])},
            {"indptr": np.array([0.0, 2.0, 4.0, 5.0, 6.0])},
            {"indptr": np.array([], dtype=np.int64)},
            {"indices": np.array([0, 2, 1, 2, 0, 3])},
            {"indices": np.array([0, 2, 1, 2, 0, -1])},
            {"indices": np.array([0, 2, 1, 2, 0, 2**63], dtype=np.uint64)},
            {"indices": np.array([0, 2, 1, 2, 0])},
            {"data": np.ones(5)},
            {"data": np.ones((6, 1))},
            {"data": np.array(list("abcdef"))},
        ],
        ids=str,
    )
    def test_sparse_arrays_that_contradict_each_other(self, tmp_path, changes):
        npz(tmp_path / "x.npz", **sparse_parts(**changes))
        with pytest.raises(DataFormatError, match=r"x\.npz"):
            load_table(tmp_path / "x.npz")

    @pytest.mark.parametrize("kind", [np.float16, ">f8", ">i2", np.bool_])
    def test_sparse_values_of_other_types(self, tmp_path, kind):
        parts = sparse_parts(data=np.ones(6).astype(kind), indices=sp.csr_matrix(X).indices.astype(np.uint8))
        npz(tmp_path / "x.npz", **parts)
        np.testing.assert_array_equal(load_table(tmp_path / "x.npz").X.toarray(), X != 0)

    def test_claims_are_not_allocated(self, tmp_path):
        path = tmp_path / "x.npz"
        claimed_rows = 2**27
        member = npy(X, shape=(claimed_rows, 3))
        npz(path, X=member)
        claimed_size = len(member) + 24 * (claimed_rows - 4)
        raw = path.read_bytes()
        assert raw.count(len(member).to_bytes(4, "little")) == 4  # as it is and compressed, in both directories
        path.write_bytes(raw.replace(len(member).to_bytes(4, "little"), claimed_size.to_bytes(4, "little")))
        with zipfile.ZipFile(path) as archive:
            assert archive.infolist()[0].file_size == claimed_size
        tracemalloc.start()
        with pytest.raises(DataFormatError, match=r"x\.npz"):
            load_table(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**23

    @pytest.mark.parametrize("raw", [b"", b"PK\x03\x04", b"PK\x05\x06" + b"\x00" * 18, b"x" * 100])
    def test_what_is_no_zip_file(self, tmp_path, raw):
        (tmp_path / "x.npz").write_bytes(raw)
        with pytest.raises(DataFormatError):
            load_table(tmp_path / "x.npz")


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
class TestColumns:
    def write(self, folder, ending, **columns):
        import pandas as pd

        frame = pd.DataFrame(columns)
        path = folder / f"data{ending}"
        frame.to_parquet(path) if ending == ".parquet" else frame.to_csv(path, index=False)
        return path

    @pytest.mark.parametrize("labels", [["no", "yes", "yes"], [1, 5, 1], [0.5, 1.5, 0.5], [True, False, True]])
    def test_labels(self, tmp_path, ending, labels):
        table = load_table(self.write(tmp_path, ending, a=[1, 2, 3], target=labels, b=[0.5, 1.5, 2.5]))
        assert table.y.tolist() == labels
        assert table.X.tolist() == [[1, 0.5], [2, 1.5], [3, 2.5]]
        assert table.feature_names == ("a", "b")

    def test_integers_stay_integers(self, tmp_path, ending):
        table = load_table(self.write(tmp_path, ending, a=[1, 2], b=[3, 2**60 + 1]))
        assert table.y is None
        assert table.X.tolist() == [[1, 3], [2, 2**60 + 1]]

    def test_a_named_label(self, tmp_path, ending):
        path = self.write(tmp_path, ending, a=[1, 2], label=[0, 1], y=[5, 6])
        with pytest.raises(DataFormatError, match="'label' and 'y'"):
            load_table(path)
        table = load_table(path, label="y")
        assert table.y.tolist() == [5, 6]
        assert table.feature_names == ("a", "label")
        with pytest.raises(DataFormatError, match=r"no column 'z'.*'label'"):
            load_table(path, label="z")

    def test_text_and_gaps_name_their_column(self, tmp_path, ending):
        with pytest.raises(DataFormatError, match="'city' holds"):
            load_table(self.write(tmp_path, ending, a=[1, 2], city=["x", "y"], y=[0, 1]))
        with pytest.raises(DataFormatError, match="'city' has 1 missing"):
            load_table(self.write(tmp_path, ending, a=[1, 2], city=[None, 1.0], y=[0, 1]))
        with pytest.raises(DataFormatError, match="'y' has 1 missing"):
            load_table(self.write(tmp_path, ending, a=[1, 2], y=[None, 1.0]))
        with pytest.raises(DataFormatError, match="no features"):
            load_table(self.write(tmp_path, ending, y=[0, 1]))
        with pytest.raises(DataFormatError, match="'qid'"):
            load_table(self.write(tmp_path, ending, a=[0, 1]), query_id=True)
        with pytest.raises(DataFormatError, match="integers"):
            load_table(self.write(tmp_path, ending, a=[0, 1], qid=[0.5, 1.0]), query_id=True)

    def test_many_columns(self, tmp_path, ending):
        columns = {f"x{j}": [j, j + 1] for j in range(500)} | {"z": [0.5, 1.5]}
        assert load_table(self.write(tmp_path, ending, **columns)).X.shape == (2, 501)

    def test_damage(self, tmp_path, ending):
        (tmp_path / f"x{ending}").write_bytes(b"a,b\n1,2\n3\n")
        with pytest.raises(DataFormatError, match="cannot be read"):
            load_table(tmp_path / f"x{ending}")

    def test_without_pyarrow(self, tmp_path, ending, monkeypatch):
        path = self.write(tmp_path, ending, a=[1, 2], y=[0, 1])
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(SoftmarginError, match=r'pip install "softmargin\[parquet\]"'):
            load_table(path)


def test_the_index_of_a_frame_is_not_a_feature(tmp_path):
    import pandas as pd

    pd.DataFrame({"a": [1, 2, 3], "y": [0, 1, 0]}).iloc[[0, 2]].to_parquet(tmp_path / "x.parquet")
    assert load_table(tmp_path / "x.parquet").feature_names == ("a",)


def test_categories_as_labels(tmp_path):
    import pandas as pd

    pd.DataFrame({"a": [1, 2], "y": pd.Categorical(["u", "v"])}).to_parquet(tmp_path / "x.parquet")
    assert load_table(tmp_path / "x.parquet").y.tolist() == ["u", "v"]


def test_two_columns_of_one_name(tmp_path):
    (tmp_path / "x.csv").write_text("a,b,a\n1,2,3\n")
    with pytest.raises(DataFormatError, match="two columns called 'a'"):
        load_table(tmp_path / "x.csv")


@pytest.mark.parametrize(
    "header", ["," * 100_000, "a" * (5 << 20), "a," + "b" * 200_000], ids=["empty", "long", "wide"]
)
def test_a_header_of_compressed_commas_is_refused_before_memory_is_taken_for_its_columns(tmp_path, header):
    (tmp_path / "x.csv.bz2").write_bytes(bz2.compress(f"{header}\n1,2\n".encode()))
    with pytest.raises(DataFormatError, match=r"two columns called ''|more than 4 MiB|cannot be read: field larger"):
        load_table(tmp_path / "x.csv.bz2")


def test_a_header_may_have_quotes_and_windows_line_ends(tmp_path):
    (tmp_path / "x.csv").write_bytes(b'"a, b",c,y\r\n1,2,0\r\n3,4,1\r\n')
    assert load_table(tmp_path / "x.csv").feature_names == ("a, b", "c")


@pytest.fixture(scope="module")
def good_files(folder):
    np.save(folder / "good.npy", X)
    np.savez_compressed(folder / "dense.npz", X=X, y=np.array(["a", "b", "a", "b"]))
    np.savez(folder / "sparse.npz", y=Y, **sparse_parts())
    return [(folder / name).read_bytes() for name in ("good.npy", "dense.npz", "sparse.npz")]


class TestFuzz:
    """Whatever the bytes: a table, or DataFormatError."""

    def load(self, folder, which, raw):
        path = folder / ("fuzz.npy" if which == 0 else "fuzz.npz")
        path.write_bytes(raw)
        with suppress(DataFormatError):
            table = load_table(path)
            assert table.X.shape[0] * table.X.shape[1] < 10**12
            table.X.sum()

    @given(which=st.integers(0, 2), at=st.integers(0, 10**6))
    def test_truncated(self, folder, good_files, which, at):
        self.load(folder, which, good_files[which][: at % len(good_files[which])])

    @given(which=st.integers(0, 2), bits=st.lists(st.integers(0, 10**6), min_size=1, max_size=3))
    def test_bits_flipped(self, folder, good_files, which, bits):
        raw = bytearray(good_files[which])
        for bit in bits:
            raw[bit // 8 % len(raw)] ^= 1 << bit % 8
        self.load(folder, which, bytes(raw))

    @given(which=st.integers(0, 2), at=st.integers(0, 10**6), cut=st.integers(0, 8), put=st.binary(max_size=8))
    def test_a_piece_replaced(self, folder, good_files, which, at, cut, put):
        raw = good_files[which]
        at %= len(raw)
        self.load(folder, which, raw[:at] + put + raw[at + cut :])

    @given(
        shape=st.lists(st.integers(-5, 2**65), max_size=4).map(tuple),
        kind=st.sampled_from(
            ["<f8", "|b1", "<U1", "<U999999999", "|O", "<i3", "|V8", "<c16", "a5", "f8,f8", "<f8" * 99]
        ),
        order=st.sampled_from([True, False, 1, "True"]),
    )
    def test_headers_with_a_right_checksum(self, folder, shape, kind, order):
        raw = npy(X, shape=shape, descr=kind, fortran_order=order)
        self.load(folder, 0, raw)
        npz(folder / "inner.npz", X=raw, y=raw)
        self.load(folder, 1, (folder / "inner.npz").read_bytes())


class TestWhatIsWrongIsNamed:
    @pytest.mark.parametrize("ending", [".svm", ".npy", ".npz", ".csv", ".parquet"])
    def test_an_empty_file(self, tmp_path, ending):
        (tmp_path / f"data{ending}").touch()
        with pytest.raises(DataFormatError, match="the file is empty"):
            load_table(tmp_path / f"data{ending}")

    def test_text_without_rows(self, tmp_path):
        (tmp_path / "data.svm").write_bytes(b"# nothing\n\n")
        with pytest.raises(DataFormatError, match="no rows"):
            load_table(tmp_path / "data.svm")

    @pytest.mark.parametrize(
        ("text", "words"),
        [("a;b;label\n1,5;2;0\n", "semicolons"), ("a;b\n1;2\n", "semicolons"), ("a\tb\n1\t2\n", "tabs")],
    )
    def test_other_separators(self, tmp_path, text, words):
        (tmp_path / "data.csv").write_text(text)
        with pytest.raises(DataFormatError, match=f"separated by {words}: write the file with commas"):
            load_table(tmp_path / "data.csv")

    def test_column_names_that_are_not_utf8(self, tmp_path):
        (tmp_path / "data.csv").write_bytes(b"gr\xf6\xdfe,label\n1,2\n")
        with pytest.raises(DataFormatError, match="not text in UTF-8: save the file as UTF-8"):
            load_table(tmp_path / "data.csv")

    def test_labels_that_are_not_utf8(self, tmp_path):
        import pyarrow as pa
        from pyarrow import parquet

        labels = pa.array([b"gr\xf6n", b"a"]).cast(pa.string(), safe=False)
        parquet.write_table(pa.table({"x": [1.0, 2.0], "label": labels}), tmp_path / "data.parquet")
        with pytest.raises(DataFormatError, match="UTF8"):
            load_table(tmp_path / "data.parquet")

    @pytest.mark.parametrize("n", [33, 65, 70])
    def test_arrays_of_more_dimensions_than_numpy_has(self, tmp_path, n):
        (tmp_path / "data.npy").write_bytes(npy(np.ones((1, 1)), shape=(1,) * n))
        with pytest.raises(DataFormatError, match="dimensions"):
            load_table(tmp_path / "data.npy")
