"""Stores: what is written is read, damage is told with its place, and nothing is left half-written."""

import itertools
import json
import os
import pickle
import resource
import shutil
import zlib
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from softmargin import DataFormatError, SoftmarginError, Store
from softmargin.core.threads import Workers
from softmargin.data.convert import as_rows
from softmargin.data.rows import Products, has_row_access

RNG = np.random.default_rng(5)
X = np.round(4 * RNG.standard_normal((60, 5))) * (RNG.random((60, 5)) < 0.6)
Y = np.where(X[:, 0] > 0, 1, -1)
FORMS = {
    "dense": lambda X: X,
    "Fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "uint8": lambda X: np.abs(X).astype(np.uint8),
    "csr": sp.csr_matrix,
    "csr uint8": lambda X: sp.csr_array(np.abs(X).astype(np.uint8)),
    "csc": sp.csc_array,
}


def dense(matrix):
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix)


def joined(store):
    return np.concatenate([dense(part.native()) for _, part in store.blocks()])


def in_batches(*parts, edges=(0, 7, 8, 40, 60)):
    for lo, hi in itertools.pairwise(edges):
        yield tuple(None if part is None else part[lo:hi] for part in parts)


def example(tmp_path, X=X, chunk_bytes=300, **more):
    return Store.write(tmp_path / "store", in_batches(X, Y), chunk_bytes=chunk_bytes, **more)


def rewritten(path, change):
    """Change a manifest that is otherwise good."""
    manifest = json.loads((path / "manifest.json").read_bytes())
    change(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest))


def forged(path, change, name="chunk-000001.bin"):
    """Change a chunk and its checksum."""
    data = bytearray((path / name).read_bytes())
    change(data)
    (path / name).write_bytes(data)
    rewritten(path, lambda manifest: manifest["chunks"][1].__setitem__(2, zlib.crc32(data)))


# --- writing and reading --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("chunk_bytes", [1, 300, 1 << 20])
def test_what_is_written_is_read(form, chunk_bytes, tmp_path):
    matrix = FORMS[form](X)
    weights, qid = RNG.random(60), np.repeat(np.arange(20), 3)
    store = Store.write(
        tmp_path / "store",
        in_batches(matrix.tocsr() if form == "csc" else matrix, Y, weights, qid),
        chunk_bytes=chunk_bytes,
        feature_names="abcde",
    )
    assert isinstance(store, Products)
    assert not has_row_access(store)
    assert store.shape == (60, 5)
    assert store.dtype == matrix.dtype
    np.testing.assert_array_equal(joined(store), dense(matrix))
    np.testing.assert_array_equal(store.y, Y)
    assert store.y.dtype == np.int64
    np.testing.assert_array_equal(store.sample_weight, weights)
    np.testing.assert_array_equal(store.qid, qid)
    assert store.feature_names == tuple("abcde")
    assert "60 rows, 5 columns" in repr(store)
    assert os.listdir(tmp_path) == ["store"]


@pytest.mark.parametrize("form", FORMS)
def test_products_of_a_store(form, tmp_path):
    matrix = FORMS[form](X)
    matrix = matrix.tocsr() if form == "csc" else matrix
    store, in_memory = example(tmp_path, matrix, chunk_bytes=100), as_rows(matrix)
    if form == "Fortran":
        in_memory = as_rows(X)
    assert len(list(store.blocks())) > 2
    w, v = RNG.standard_normal(5), RNG.standard_normal(60)
    for rows in (store, store.on(Workers(2)), Store(store.path, memory_bytes=1200)):
        np.testing.assert_array_equal(rows.dot(w), in_memory.dot(w))
        np.testing.assert_array_equal(rows.sq_norms(), in_memory.sq_norms())
        np.testing.assert_allclose(rows.t_dot(v), in_memory.t_dot(v), atol=1e-12)
        np.testing.assert_array_equal(rows.t_dot(v, Y), store.t_dot(v, Y))


def test_chunks_beyond_the_memory_are_mapped_anew(tmp_path):
    store = example(tmp_path)
    tight = Store(store.path, memory_bytes=1500)
    for _ in range(2):
        np.testing.assert_array_equal(joined(tight), X)
    assert 0 < len(tight._folder._kept) < len(list(store.blocks())) == len(store._folder._kept)
    with pytest.raises(SoftmarginError, match="memory_bytes=100 is too little: two chunks of"):
        Store(store.path, memory_bytes=100)
    with pytest.raises(SoftmarginError, match="memory_bytes='2G' is not a number of bytes"):
        Store(store.path, memory_bytes="2G")


def test_a_store_travels(tmp_path):
    store = example(tmp_path)
    for copy in (pickle.loads(pickle.dumps(store)), pickle.loads(pickle.dumps(store.on(Workers(2))))):
        np.testing.assert_array_equal(copy.dot(np.ones(5)), X.sum(axis=1))
    assert pickle.loads(pickle.dumps(store)).digest == store.digest


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (Y.astype(np.float64) / 2, np.float64),
        (Y > 0, np.bool_),
        (np.where(Y > 0, "spam", "é"), np.str_),
        (np.where(Y > 0, "spam", "ham").astype(object), np.str_),
        (Y.astype(np.int8), np.int64),
    ],
)
def test_labels_of_every_kind(y, kind, tmp_path):
    store = Store.write(tmp_path / "store", in_batches(X, y))
    assert issubclass(store.y.dtype.type, kind)
    assert store.y.tolist() == y.tolist()


def test_kinds_of_numbers_as_labels_may_be_mixed(tmp_path):
    store = Store.write(tmp_path / "store", [(X[:30], Y[:30]), (X[30:], Y[30:] / 2.0)])
    np.testing.assert_array_equal(store.y, np.append(Y[:30], Y[30:] / 2.0))


def test_which_targets_there_are_is_known_without_reading_them(tmp_path):
    X, y, weights = np.ones((4, 2)), np.arange(4), np.ones(4)
    store = Store.write(tmp_path / "store", [(X, y, weights)])
    assert store.target_names == ("y", "sample_weight")
    assert not {"y", "sample_weight", "qid"} & {*vars(store)}
    assert Store.write(tmp_path / "bare", [X]).target_names == ()


def test_rows_without_targets_and_memory_that_is_used_again(tmp_path):
    def batches():
        buffer = np.empty((10, 5))
        for lo in range(0, 60, 10):
            buffer[:] = X[lo : lo + 10]
            yield buffer

    store = Store.write(tmp_path / "store", batches())
    assert store.y is store.sample_weight is store.qid is None
    np.testing.assert_array_equal(joined(store), X)


def test_queries_stay_in_one_chunk_unless_they_fill_it(tmp_path):
    qid = np.repeat([3, 1, 3, 7], [20, 5, 5, 30])
    store = Store.write(tmp_path / "store", in_batches(X, Y, None, qid), chunk_bytes=24 * 40)
    assert [(where.start, where.stop) for where, _ in store.blocks()] == [(0, 20), (20, 30), (30, 54), (54, 60)]


def test_sparse_batches_may_grow(tmp_path):
    batches = [sp.csr_array(X[:30, :3]), sp.csr_array(X[30:])]
    store = Store.write(tmp_path / "store", batches, n_features="max")
    np.testing.assert_array_equal(joined(store), np.concatenate([np.pad(X[:30, :3], ((0, 0), (0, 2))), X[30:]]))
    with pytest.raises(SoftmarginError, match="batch 1 has 5 columns, but the store has 3"):
        Store.write(tmp_path / "other", batches)


def test_types(tmp_path):
    for given, stored in (("int16", "float32"), ("bool", "uint8"), ("int64", "float64"), ("float16", "float32")):
        batch = np.abs(X).astype(given)
        store = Store.write(tmp_path / given, [batch])
        assert store.dtype == stored
        np.testing.assert_array_equal(joined(store), batch)
    assert Store.write(tmp_path / "wider", [X, X.astype(np.float32)]).dtype == np.float64
    assert Store.write(tmp_path / "asked", [X], dtype=np.float32).dtype == np.float32
    wide = sp.csr_array((np.ones(1), np.array([2**33]), np.array([0, 1])), shape=(1, 2**34))
    store = Store.write(tmp_path / "wide", [wide])
    [(_, part)] = store.blocks()
    assert part.flat.indices.dtype == np.int64
    assert part.flat.indices.tolist() == [2**33]


# --- what cannot be written -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([], "there are no rows"),
        ([X[:0]], "there are no rows"),
        ([X[0]], "batch 0: X must be a matrix with two dimensions"),
        ([np.array([["a"]])], "batch 0: X has values of type <U1"),
        ([X, X[:, :4]], "batch 1 has 4 columns, but the store has 5"),
        ([np.empty((2, 0))], "batch 0 has no columns"),
        ([X, sp.csr_array(X)], "batch 1 is sparse, but those before are dense"),
        ([(X, Y), (X,)], "some batches have y and others have not: see batch 1"),
        ([(X, Y[:5])], r"batch 0: y has shape \(5,\), but there are 60 rows"),
        ([(X, Y, -np.ones(60))], r"batch 0, row 0: the weight .* is not a finite number of at least 0"),
        ([(X, Y, None, Y / 2)], "batch 0: qid holds float64: number the queries"),
        ([(X, Y, None, Y, Y)], "batch 0 has 5 parts"),
        ([X, np.where(np.arange(60)[:, None] == 3, np.nan, X)], r"batch 1, row 3 \(row 63 of the store\) holds nan"),
        ([sp.csr_array(np.diag([1.0, np.inf]))], "batch 0, row 1 .* holds inf"),
        ([(X, np.where(np.arange(60) == 9, np.nan, Y))], r"batch 0, row 9 .* has the label nan"),
        ([(X, np.full(60, 2**60))], "has the label 1152921504606846976: .* at most 2\\^53"),
        ([(X, Y), (X, Y.astype(str))], "batch 1: y holds text, but before it held int64"),
        ([(X, np.array(["a", 1] * 30, dtype=object))], "batch 0: y holds 1 among text"),
        ([X.astype(np.float32), X], "batch 1 has values of type float64, but the first rows made the store one of fl"),
    ],
)
def test_bad_batches_are_named_and_nothing_is_left(batches, message, tmp_path):
    with pytest.raises(SoftmarginError, match=message):
        Store.write(tmp_path / "store", batches, chunk_bytes=200)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int16"}, "dtype='int16' is not possible"),
        ({"dtype": "uint8"}, "batch 0 has values that are not whole numbers from 0 to 255"),
        ({"n_features": 0}, "n_features=0 must be a positive integer"),
        ({"n_features": 9}, "batch 0 has 5 columns, but the store has 9"),
        ({"chunk_bytes": 0}, "chunk_bytes=0 must be"),
        ({"feature_names": "abc"}, "there are 3 feature_names for 5 columns"),
    ],
)
def test_bad_options(options, message, tmp_path):
    with pytest.raises(SoftmarginError, match=message):
        Store.write(tmp_path / "store", [X], **options)
    assert os.listdir(tmp_path) == []


def test_a_full_disk_leaves_nothing(tmp_path):
    """The system refuses files beyond a limit, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
    try:
        with pytest.raises(OSError, match=r"nothing of it is left.*chunk-000000\.bin"):
            Store.write(tmp_path / "store", [np.tile(X, (100, 1))])
        with pytest.raises(OSError, match=r"nothing of it is left.*y\.bin"):
            Store.write(tmp_path / "store", ((X, Y) for _ in range(100)), chunk_bytes=3000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(tmp_path) == []


def test_an_interrupt_leaves_nothing_and_an_old_store_stays(tmp_path):
    store = example(tmp_path)

    def batches():
        yield X, Y
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Store.write(store.path, batches(), overwrite=True)
    assert os.listdir(tmp_path) == ["store"]
    np.testing.assert_array_equal(joined(Store(store.path)), X)


def test_what_is_there_is_replaced_only_if_it_is_a_store(tmp_path):
    example(tmp_path)
    with pytest.raises(SoftmarginError, match="is there already: name another folder, or replace it"):
        example(tmp_path)
    np.testing.assert_array_equal(joined(example(tmp_path, 2 * X, overwrite=True)), 2 * X)
    assert os.listdir(tmp_path) == ["store"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(SoftmarginError, match="is no store, so it is not replaced"):
        Store.write(tmp_path / "mine", [X], overwrite=True)
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_progress_is_shown_and_taken_away(tmp_path, monkeypatch):
    class Screen:
        said: ClassVar[list] = []

        def show(self, share, text):
            self.said.append(text)

        def close(self, sentences, *, keep):
            self.said.append(keep)

    monkeypatch.setattr("softmargin.io.store_writing.display_for", lambda stream: Screen())
    Store.write(tmp_path / "quiet", [X])
    assert Screen.said == []
    Store.write(tmp_path / "store", iter([X, X]), verbose=1)
    assert Screen.said == [f"writing {tmp_path / 'store'}: 60 rows", False]
    with pytest.raises(SoftmarginError, match="batch 1 has 4 columns"):
        Store.write(tmp_path / "other", iter([X, X[:, :4]]), verbose=1)
    assert Screen.said[-1] is False


def test_a_replacement_that_was_killed_is_refused(tmp_path):
    store = example(tmp_path)
    store.path.rename(tmp_path / "store.replaced")
    with pytest.raises(SoftmarginError, match=r"store\.replaced is there already.*Rename it to store"):
        Store.write(store.path, [X], overwrite=True)
    assert os.listdir(tmp_path) == ["store.replaced"]


def test_a_folder_that_is_missing(tmp_path):
    with pytest.raises(SoftmarginError, match=r"missing is not a folder: store could not be written there"):
        Store.write(tmp_path / "missing" / "store", [X])


def test_a_writing_that_was_killed_is_refused(tmp_path):
    store = example(tmp_path)
    unfinished = tmp_path / "store.unfinished"
    store.path.rename(unfinished)
    (unfinished / "manifest.json").unlink()
    with pytest.raises(DataFormatError, match="it is no store, or one whose writing was stopped"):
        Store(unfinished)
    with pytest.raises(SoftmarginError, match=r"store\.unfinished is there already: another program"):
        example(tmp_path)
    assert unfinished.is_dir()


# --- what cannot be read --------------------------------------------------------------------------------------------


def test_what_is_no_store(tmp_path):
    with pytest.raises(DataFormatError, match="there is no such store"):
        Store(tmp_path / "nothing")
    (tmp_path / "file").touch()
    with pytest.raises(DataFormatError, match="this is a file, but a store is a folder"):
        Store(tmp_path / "file")
    with pytest.raises(DataFormatError, match=r"the folder has no manifest\.json"):
        Store(tmp_path)


@pytest.mark.parametrize("name", ["chunk-000001.bin", "y.bin"])
def test_a_missing_or_truncated_file_is_found_at_once(name, tmp_path):
    path = example(tmp_path).path
    data = (path / name).read_bytes()
    (path / name).write_bytes(data[:-1])
    with pytest.raises(DataFormatError, match=f"{name}: the file has {len(data) - 1} bytes, but the manifest says"):
        Store(path)
    (path / name).unlink()
    with pytest.raises(DataFormatError, match=f"{name}: the file is missing"):
        Store(path)
    (path / name).mkdir()
    with pytest.raises(DataFormatError, match=f"{name}: this is not a regular file"):
        Store(path)


def test_a_swapped_or_damaged_chunk_is_found_when_it_is_read(tmp_path):
    path = example(tmp_path).path
    one, two = (path / f"chunk-{k:06d}.bin" for k in (1, 2))
    assert one.stat().st_size == two.stat().st_size
    one.rename(path / "other")
    two.rename(one)
    (path / "other").rename(two)
    store = Store(path)
    for act in (lambda: store.dot(np.ones(5)), lambda: store.t_dot(Y), store.sq_norms, lambda: list(store.blocks())):
        with pytest.raises(DataFormatError, match=r"chunk-000001\.bin: the checksum is not the one in the manifest"):
            act()
    (path / "y.bin").write_bytes(bytes(480))
    with pytest.raises(DataFormatError, match=r"y\.bin: the checksum"):
        _ = Store(path).y


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path):
    path = example(tmp_path).path
    (path / "chunk-000001.bin").chmod(0)
    with pytest.raises(PermissionError, match=r"chunk-000001\.bin"):
        Store(path).dot(np.ones(5))
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match="other"):
            Store.write(tmp_path / "other", [X])
    finally:
        tmp_path.chmod(0o700)


def test_a_chunk_that_changes_while_it_is_in_use_is_refused(tmp_path):
    path = example(tmp_path).path
    store = Store(path, memory_bytes=600)
    joined(store)
    last = path / "chunk-000008.bin"
    os.utime(last, ns=(0, 0))
    with pytest.raises(DataFormatError, match=r"chunk-000008\.bin: the file was changed while it was in use"):
        joined(store)
    last.write_bytes(last.read_bytes()[:-8])
    with pytest.raises(DataFormatError, match=r"chunk-000008\.bin: the file became shorter"):
        joined(store)


def put(dtype, offset, value):
    def change(data):
        data[offset : offset + np.dtype(dtype).itemsize] = np.array(value, dtype=dtype).tobytes()

    return change


def sixteen_values(tmp_path):
    """A store with chunks of four rows and columns: values, indices from byte 128 on, starts from byte 192 on."""
    return Store.write(tmp_path / "sparse", [sp.csr_array(np.ones((8, 4)))], chunk_bytes=4 * (12 * 4 + 4)).path


@pytest.mark.parametrize(
    ("form", "change", "message"),
    [
        ("dense", put("<f8", 8, np.nan), r"chunk-000001\.bin: row 7, column 1 holds nan"),
        ("csr", put("<f8", 0, -np.inf), r"chunk-000001\.bin: row \d+, column \d holds -inf"),
        ("csr", put("<i4", 128, 4), "there are column indices from 0 to 4, but 4 columns"),
        ("csr", put("<i4", 128, -1), "there are column indices from -1"),
        ("csr", put("<i4", 192, 1), "the starts of the rows contradict"),
        ("csr", put("<i4", 196, 9), "the starts of the rows contradict"),
        ("csr", put("<i4", 208, 17), "the starts of the rows contradict"),
    ],
)
def test_forged_chunks_with_good_checksums_are_refused(form, change, message, tmp_path):
    path = example(tmp_path).path if form == "dense" else sixteen_values(tmp_path)
    forged(path, change)
    with pytest.raises(DataFormatError, match=message):
        joined(Store(path))


def test_indices_that_do_not_ascend_are_refused(tmp_path):
    path = sixteen_values(tmp_path)
    good = np.tile(np.arange(4, dtype="<i4"), 4)
    for place, value in ((5, 0), (5, 2)):
        bad = good.copy()
        bad[place] = value
        forged(path, lambda data, bad=bad: data.__setitem__(slice(128, 192), bad.tobytes()))
        with pytest.raises(DataFormatError, match="row 5: the column indices do not ascend"):
            joined(Store(path))
    forged(path, lambda data: data.__setitem__(slice(128, 192), good.tobytes()))
    np.testing.assert_array_equal(joined(Store(path)), np.ones((8, 4)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(version=2), "the store has version 2, but this program reads version 1"),
        (lambda m: m.update(format="zip"), "this is not the manifest of a store"),
        (lambda m: m.pop("n_cols"), "it has other entries than"),
        (lambda m: m.update(code="import os"), "it has other entries than"),
        (lambda m: m.update(n_cols=True), "n_cols cannot be what it says"),
        (lambda m: m.update(n_cols=10**30), "n_cols cannot"),
        (lambda m: m.update(n_cols=6), "chunk 0 has 7 rows and 35 values of 6 columns"),
        (lambda m: m.update(value_type="object"), "value_type cannot"),
        (lambda m: m.update(index_type="int8"), "index_type cannot"),
        (lambda m: m.update(index_type="int32"), "the file has .* bytes, but the manifest says"),
        (lambda m: m.update(targets=["y"]), "targets cannot"),
        (lambda m: m.update(targets={"../y": 1}), "targets cannot"),
        (lambda m: m.update(targets={"y": "1"}), "targets cannot"),
        (lambda m: m.update(targets={"qid": 1}), r"qid\.bin: the file is missing"),
        (lambda m: m.update(label_kind="code"), "label_kind cannot"),
        (lambda m: m.update(labels=[1]), "labels cannot"),
        (lambda m: m.update(columns=["a"]), "columns cannot"),
        (lambda m: m.update(index_base=2), "index_base cannot"),
        (lambda m: m.update(chunks=[]), "chunks cannot"),
        (lambda m: m.update(chunks=[[1, 5]]), "chunks cannot"),
        (lambda m: m.update(chunks=[[1, 5, -1]]), "chunks cannot"),
        (lambda m: m["chunks"].insert(0, [0, 0, 0]), "chunk 0 has 0 rows"),
        (lambda m: m["chunks"].append([2**40, 5 * 2**40, 0]), r"chunk-000009\.bin: the file is missing"),
        (lambda m: m["chunks"].__setitem__(8, [2**40, 5 * 2**40, 0]), r"chunk-000008\.bin: the file has"),
    ],
)
def test_a_manifest_is_not_believed(change, message, tmp_path):
    path = example(tmp_path).path
    rewritten(path, change)
    with pytest.raises(DataFormatError, match=message):
        Store(path)


def test_a_manifest_that_is_no_json(tmp_path):
    path = example(tmp_path).path
    for text in (b"", b"{", b"\xff\xfe", b"[" * 100_000, b"[]"):
        (path / "manifest.json").write_bytes(text)
        with pytest.raises(DataFormatError, match="the manifest"):
            Store(path)


@pytest.mark.parametrize("kind", ["int64", "bool", "text"])
def test_labels_must_be_what_the_manifest_says(kind, tmp_path):
    path = Store.write(tmp_path / "store", [(X, Y / 2)]).path
    rewritten(path, lambda manifest: manifest.update(label_kind=kind))
    with pytest.raises(DataFormatError, match=r"y\.bin: row 0 has -?0\.5, which cannot be"):
        _ = Store(path).y


def test_a_store_is_no_array(tmp_path):
    with pytest.raises(SoftmarginError, match="a Store is not turned into an array"):
        np.asarray(example(tmp_path))


def test_a_copied_store_is_the_same(tmp_path):
    store = example(tmp_path)
    shutil.copytree(store.path, tmp_path / "copy")
    copy = Store(tmp_path / "copy")
    assert copy.digest == store.digest
    np.testing.assert_array_equal(joined(copy), X)


class TestMap:
    """What a function makes of the rows goes to a file, chunk by chunk, or not at all."""

    @pytest.mark.parametrize("form", ["dense", "csr"])
    def test_values_of_all_chunks_are_written_in_order(self, tmp_path, form):
        store = example(tmp_path, FORMS[form](X))
        assert store.n_chunks > 2
        sums = store.map(lambda rows: dense(rows).sum(axis=1), tmp_path / "sums.npy")
        assert isinstance(sums, np.memmap)
        np.testing.assert_array_equal(sums, X.sum(axis=1))
        np.testing.assert_array_equal(np.load(tmp_path / "sums.npy"), X.sum(axis=1))

    def test_entries_may_be_vectors_or_text(self, tmp_path):
        store = example(tmp_path)
        doubled = store.map(lambda rows: np.asfortranarray(2 * rows[:, :2]), tmp_path / "doubled.npy")
        np.testing.assert_array_equal(doubled, 2 * X[:, :2])
        signs = store.map(lambda rows: np.where(rows[:, 0] > 0, "plus", "minus"), tmp_path / "signs.npy")
        np.testing.assert_array_equal(signs, np.where(Y > 0, "plus", "minus"))

    def test_a_file_is_replaced_only_on_request(self, tmp_path):
        store, path = example(tmp_path), tmp_path / "first.npy"
        store.map(lambda rows: rows[:, 0], path)
        with pytest.raises(SoftmarginError, match="exists: choose another name, or overwrite=True"):
            store.map(lambda rows: rows[:, 1], path)
        np.testing.assert_array_equal(np.load(path), X[:, 0])
        np.testing.assert_array_equal(store.map(lambda rows: rows[:, 1], path, overwrite=True), X[:, 1])

    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (lambda rows: rows.sum(), r"entry for each row, but for \d+ rows it returned one of shape \(\)"),
            (lambda rows: rows[:-1, 0], r"entry for each row, but for (\d+) rows"),
            (lambda rows: rows[:, 0].astype(object), "Python objects"),
            (lambda rows: rows[:, : 1 + int(rows[0, 0] != X[0, 0])], "it must be the same for all"),
            (lambda rows: rows[:, 0].astype(np.uint8 if rows[0, 0] == X[0, 0] else float), "returned a float64 a row"),
        ],
    )
    def test_nothing_is_left_of_a_function_that_fails(self, tmp_path, function, message):
        store = example(tmp_path)
        with pytest.raises(SoftmarginError, match=message):
            store.map(function, tmp_path / "values.npy")
        assert [path.name for path in tmp_path.iterdir()] == ["store"]

    def test_a_full_disk_is_told_with_the_file_and_leaves_nothing(self, tmp_path):
        store = example(tmp_path)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
        try:
            with pytest.raises(OSError, match=r"nothing of it is left.*values\.npy"):
                store.map(lambda rows: np.ones((len(rows), 1000)), tmp_path / "values.npy")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert [path.name for path in tmp_path.iterdir()] == ["store"]

    def test_the_name_says_npy(self, tmp_path):
        with pytest.raises(SoftmarginError, match=r"must end in \.npy"):
            example(tmp_path).map(lambda rows: rows[:, 0], tmp_path / "labels.txt")
