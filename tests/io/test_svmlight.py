"""The svmlight reader: against scikit-learn's, compiled against plain, and on files that are wrong or absurd.

`python -m pytest tests/io/test_svmlight.py --hypothesis-profile=long` looks for disagreement for longer.
"""

import bz2
import gc
import gzip
import io
import lzma
import math
import subprocess
import sys
import time
import tracemalloc
from contextlib import ExitStack
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from softmargin import DataFormatError, SoftmarginError, load_svmlight
from softmargin.io import _svmlight, compression, svmlight
from softmargin.io.svmlight import iter_svmlight

COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
FUNCTIONS = ("parse", "convert", "_scaled")
PLAIN, COMPILED = 2**60, 0  # small_bytes that choose a parser


def reading(**limits):
    """Other limits of the reader for a while, such as `small_bytes`, which chooses the parser."""
    changes = ExitStack()
    for name, value in limits.items():
        constant = name.upper() if hasattr(svmlight, name.upper()) else f"_{name.upper()}"
        changes.enter_context(patch.object(svmlight, constant, value))
    return changes


@pytest.fixture(params=["plain", "compiled"])
def parser(request):
    with reading(small_bytes=PLAIN if request.param == "plain" else COMPILED, few_numbers=0):
        yield request.param


def parts(X, y, *qid):
    """Everything that a result holds, comparable bit by bit."""
    arrays = [X.data, X.indices, X.indptr, y, *qid]
    return X.shape, [(a.dtype.str, a.tobytes()) for a in arrays]


def load(text, **options):
    return load_svmlight(io.BytesIO(text), **options)


def example(n=300, d=40, seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.random(n, d, 0.2, "csr", random_state=rng, data_rvs=rng.standard_normal)
    X.data[::3] = np.round(X.data[::3], 2) + 3
    X.data[1::7] *= 1e-9
    return X, rng.integers(-3, 4, n), np.sort(rng.integers(0, 20, n))


def written(X, y, qid=None, zero_based=False):
    out = io.BytesIO()
    dump_svmlight_file(X, y, out, query_id=qid, zero_based=zero_based, comment="written by a test")
    return out.getvalue()


# ---- the same as scikit-learn


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("query_id", [False, True])
@pytest.mark.parametrize("zero_based", [False, True, "auto"])
def test_reads_what_scikit_learn_reads(parser, zero_based, query_id, dtype):
    X, y, qid = example()
    text = written(X, y, qid, zero_based is True)
    options = {"dtype": dtype, "query_id": query_id, "zero_based": zero_based}
    expected = load_svmlight_file(io.BytesIO(text), **options)
    with reading(block_bytes=1000):
        for n_jobs in (None, 3):
            found = load(text, n_jobs=n_jobs, **options)
            assert isinstance(found[0], sparse.csr_matrix)
            assert found[0].has_canonical_format
            assert found[0].indices.dtype == found[0].indptr.dtype == np.int32
            assert found[0].shape == expected[0].shape
            for name in ("data", "indices", "indptr"):
                np.testing.assert_array_equal(getattr(found[0], name), getattr(expected[0], name))
            assert [a.dtype for a in found[1:]] == [np.float64, np.int64][: len(found) - 1]
            for ours, theirs in zip(found[1:], expected[1:], strict=True):
                np.testing.assert_array_equal(ours, theirs)


FORMS = {
    "comments": b"# head\n1 2:3 # 4:5\n#\n \t \n-1 1:1#x\n",
    "returns": b"1 2:3\r\n\r\n+1 1:1 2:2\r\n",
    "no last newline": b"1 2:3\n2 1:1 4:4",
    "only labels": b"1\n2\n",
    "nothing": b"",
    "only comments": b"#\n\n# x",
    "blanks": b"  1 \t 2:3\x0b4:5\x0c \n",
    "queries": b"1 qid:7 2:3\n2 qid:-8 1:1\n3 qid:9\n",
    "numbers": b"1e1 1:+1 2:-0 3:.5 4:5. 5:1E-3 6:nan 7:-inf 8:1e999 9:12345678901234567890 10:1e23\n",
    "indices": b"0 +1:1 02:2 00000000000003:3 2147483647:4\n",
    "zeros": b"0 0:0 1:0.0\n",
    "index zero": b"1 0:1\n2 1:5\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_that_scikit_learn_reads(parser, form):
    text = FORMS[form]
    X, y = load(text)
    expected, labels = load_svmlight_file(io.BytesIO(text))
    assert X.shape == expected.shape
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(X, name), getattr(expected, name))
    assert y.tobytes() == labels.tobytes()


def test_every_line_needs_a_query_only_where_queries_are_asked_for(parser):
    text = b"1 qid:5 1:1\n2 1:1\n"
    assert load(text)[0].shape == (2, 1)
    with pytest.raises(DataFormatError, match="no qid"):
        load(text, query_id=True)
    assert load(b"1 qid:x 1:1\n2 qid: 1:1\n")[0].shape == (2, 1)  # not looked at


@pytest.mark.parametrize("qid", [2**53 + 1, 2**63 - 1, -(2**63)])
def test_queries_are_exact_integers(parser, qid):
    assert load(b"1 qid:%d 1:1\n" % qid, query_id=True)[2].tolist() == [qid]


def check_rounding(tokens):
    text = "\n".join(f"{token} 1:{token}" for token in tokens).encode()
    exact = np.array([float(token) for token in tokens])
    for limits in ({"small_bytes": PLAIN}, {"small_bytes": COMPILED}, {"small_bytes": COMPILED, "few_numbers": 0}):
        with reading(**limits):
            X, y = load(text)
        assert y.tobytes() == exact.tobytes()
        assert X.data.tobytes() == exact.tobytes()


@given(st.lists(st.floats(), max_size=30), st.sampled_from(["%r", "%.17g", "%.18e", "%.20e", "%.6g", "%f"]))
def test_numbers_are_rounded_correctly(numbers, form):
    check_rounding([form % number for number in numbers])


def test_awkward_numbers_are_rounded_correctly():
    odd = [2**53 + k for k in (1, 3, 5, 7)]
    halfway = [f"{n * 10**k}e-{k}" for n in odd for k in range(4)]
    large = [f"{n}e{k}" for n in odd for k in range(1, 25)]
    limits = [f"{n}e-{k}" for n in (2**63 - 1, 2**63, 2**64 - 1, 2**64, 92 * 10**17) for k in range(25)]
    check_rounding([*halfway, *large, *limits, "0e99999", "-0.0e-5", "1e22", "1e23", "1e-22", "1e-23", "4.9e-324"])


def test_few_numbers_are_left_to_python():
    rng = np.random.default_rng(0)
    numbers = [form % x for x in rng.standard_normal(2000) for form in ("%.17g", "%.17f", "%.6e", "%.18f")]
    numbers += [f"0.00{n}" for n in rng.integers(10**17, 10**18, 2000)]
    text = "\n".join(f"1 1:{number}" for number in numbers).encode()
    with reading(small_bytes=COMPILED), patch.object(svmlight, "number", wraps=svmlight.number) as python:
        load(text)
    assert python.call_count < len(numbers) / 100


@given(
    st.lists(
        st.tuples(st.floats(1e-3, 1e5), st.integers(12, 22), st.integers(-2, 2), st.sampled_from("+-")), max_size=30
    )
)
def test_numbers_close_to_the_middle_of_two_are_rounded_correctly(cases):
    tokens = []
    for number, power, step, sign in cases:
        middle = (Fraction(number) + Fraction(math.nextafter(number, math.inf))) / 2
        tokens.append(f"{sign}{int(middle * 10**power) + step}e-{power}")
    check_rounding(tokens)


# ---- options


def test_declared_features(parser):
    assert load(b"1 3:1\n", n_features=5)[0].shape == (1, 5)
    assert load(b"1 3:1\n", n_features=3)[0].shape == (1, 3)
    assert load(b"1 2:1\n", n_features=3, zero_based=True)[0].indices.tolist() == [2]
    with pytest.raises(DataFormatError, match=r"^1:3: the index '4' lies beyond n_features=3"):
        load(b"1 4:1\n", n_features=3)
    with pytest.raises(DataFormatError, match="lies beyond n_features=3"):
        load(b"1 3:1\n", n_features=3, zero_based=True)
    with pytest.raises(DataFormatError, match="has 4 features, more than n_features=3"):
        load(b"1 3:1\n1 0:1", n_features=3)


def test_indices_are_64_bits_wide_only_where_they_must_be():
    X, _ = load(b"1 3:1\n", n_features=2**40)
    assert X.shape == (1, 2**40)
    assert X.indices.dtype == X.indptr.dtype == np.int64
    assert load(b"1 3:1\n")[0].indices.dtype == np.int32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": 0}, "n_features=0 must be a positive integer"),
        ({"n_features": 2.5}, "n_features=2.5"),
        ({"n_features": 10**30}, "must be a positive integer"),
        ({"dtype": np.int32}, "use float32 or float64"),
        ({"zero_based": "yes"}, 'none of True, False and "auto"'),
        ({"n_jobs": 0}, "n_jobs=0"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(SoftmarginError, match=message):
        load(b"1 1:1\n", **options)


def test_float32_is_rounded_from_float64(parser):
    X, _ = load(b"1 1:0.1 2:1e39 3:16777217\n", dtype=np.float32)
    assert X.dtype == np.float32
    assert X.data.tolist() == [float(np.float32(0.1)), np.inf, 16777216.0]


# ---- what is wrong is named


WRONG = [
    (b"1 1:1\nx 1:1\n", 2, 1, "the label 'x' is not a number"),
    (b"1,2 1:1\n", 1, 1, "Files with several labels a line cannot be read"),
    (b"a,b,label\n1,2,3\n", 1, 1, "a name that ends in .csv"),
    (b"a;b;label\n1;2;3\n", 1, 1, "a name that ends in .csv"),
    (b"1 2,3,4\n", 1, 3, "a name that ends in .csv"),
    (b"cat 1:1\n", 1, 1, "Labels of svmlight text are numbers: write a number for each word"),
    (b"\xef\xbb\xbf1 1:1\n", 1, 1, "It begins with a byte order mark: save the file as UTF-8 without one"),
    (b"\xff\xfe1\x00 \x001\x00:\x00", 1, 1, "It begins with a byte order mark"),
    (b"PAR1\x15\x04", 1, 1, "This is a Parquet file: give it a name that ends in .parquet"),
    (b"1:1 2:2\n", 1, 1, "A line begins with its label"),
    (b"1 1:1 \xff2:2\n", 1, 7, r"the index '\xff2' is not an integer"),
    (b"# c\n\n1 1:1 22\n", 3, 7, "'22' is not a feature of the form index:value; the colon is missing"),
    (b"1 1:1 2:x\n", 1, 9, "the value 'x' is not a number"),
    (b"1 1:1 2:1_0\n", 1, 9, "the value '1_0' is not a number"),
    (b"1 1_0:1\n", 1, 3, "the index '1_0' is not an integer"),
    (b"1 1: 2\n", 1, 5, "the feature '1:' has no value. Is there a space"),
    (b"1 :2\n", 1, 3, "the index '' is not an integer"),
    (b"1 1:2:3\n", 1, 5, "the value '2:3' is not a number"),
    (b"1 1:1.2.3\n", 1, 5, "the value '1.2.3' is not a number"),
    (b"1 1:12.3.e1\n", 1, 5, "the value '12.3.e1' is not a number"),
    (b"1 1:1e5x\n", 1, 5, "the value '1e5x' is not a number"),
    (b"1 1:1e-\n", 1, 5, "the value '1e-' is not a number"),
    (b"1\t-3:1\r\n", 1, 3, "the index '-3' is negative"),
    (b"1 3:1 3:2\n", 1, 7, "the index '3' occurs twice"),
    (b"1 3:1 2:2 5:z\n", 1, 7, "the index '2' comes after 3"),
    (b"1 2147483648:1\n", 1, 3, "too large: 2147483647 is the largest"),
    (b"1 1000000000000000000:1\n", 1, 3, "too large"),
    (b"1 " + b"9" * 5000 + b":1\n", 1, 3, "the index '" + 40 * "9" + "'... is too large"),
    (b"1 1:1 qid:2\n", 1, 7, "qid must stand right behind the label"),
    (b"1 1:1\x002\n", 1, 5, r"the value '1\x002' is not a number"),
    (b"1 1:1 \x01 2:2\n", 1, 7, r"'\x01' is not a feature"),
    (b"1 1: 2: 3: 4: 5: 6: 7: 8: 9:\n", 1, 5, "the feature '1:' has no value"),  # more colons than values fit
]


@pytest.mark.parametrize(("text", "line", "column", "message"), WRONG)
def test_errors_name_line_column_and_cause(parser, text, line, column, message, tmp_path):
    path = tmp_path / "rows.txt"
    before = b"# first\n" + b"1 1:1 2:2\n" * 50
    path.write_bytes(before + text + b"also wrong\n")
    for n_jobs in (1, 2):
        with pytest.raises(DataFormatError) as caught, reading(block_bytes=64):
            load_svmlight(path, n_jobs=n_jobs)
        assert (caught.value.line, caught.value.column) == (51 + line, column)
        assert caught.value.file == str(path)
        assert message in str(caught.value)


@pytest.mark.parametrize("qid", [b"1.5", b"", b"x", b"1_0", b"9" * 19, b"1e3"])
def test_bad_queries(parser, qid):
    with pytest.raises(DataFormatError, match="is not an integer of 64 bits") as caught:
        load(b"1 qid:%s 1:1\n" % qid, query_id=True)
    assert caught.value.column == 7


def test_index_zero_in_a_one_based_file(parser):
    with pytest.raises(DataFormatError, match=r"^1:3: the index '0' occurs.* zero_based=True"):
        load(b"1 0:1\n", zero_based=False)


def test_wrong_sources(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_svmlight(tmp_path / "missing.txt")
    with pytest.raises(SoftmarginError, match="object of type int"):
        load_svmlight(3)
    with pytest.raises(SoftmarginError, match="open it in binary mode"):
        load_svmlight(io.StringIO("1 1:1\n"))


# ---- sources and compression


class Drops(io.BytesIO):
    """Gives a few bytes at a time, as a socket does."""

    def read(self, n=-1):
        return super().read(min(n, 7))


def test_sources(tmp_path):
    text = written(*example())
    path = tmp_path / "rows.txt"
    path.write_bytes(text)
    expected = parts(*load(text))
    assert parts(*load_svmlight(path)) == expected
    assert parts(*load_svmlight(str(path))) == expected
    assert parts(*load_svmlight(Drops(text))) == expected
    with path.open("rb") as file:
        assert parts(*load_svmlight(file)) == expected
        assert not file.closed


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed_files(suffix, tmp_path):
    text = written(*example())
    half = text.index(b"\n", len(text) // 2) + 1
    expected = parts(*load(text))
    packed = COMPRESS[suffix](text[:half]) + COMPRESS[suffix](text[half:])  # such files may be put together
    for name in (f"rows.txt{suffix}", f"rows{suffix.upper()}", "rows"):
        path = tmp_path / name
        path.write_bytes(packed)
        assert parts(*load_svmlight(path, n_jobs=2)) == expected


@pytest.mark.parametrize("suffix", COMPRESS)
def test_damaged_compression_is_named(suffix, tmp_path):
    path = tmp_path / f"rows{suffix}"
    packed = COMPRESS[suffix](written(*example()))
    path.write_bytes(packed[:-20])
    with pytest.raises(DataFormatError, match=f"rows{suffix}: the {suffix} data end too early: the file is cut short"):
        load_svmlight(path)
    middle = len(packed) // 2
    path.write_bytes(packed[:middle] + bytes(64) + packed[middle + 64 :])
    with pytest.raises(DataFormatError, match=f"the {suffix} data are damaged"):
        load_svmlight(path)
    path.write_bytes(b"1 1:1\n")
    with pytest.raises(DataFormatError, match=f"the {suffix} data are damaged"):
        load_svmlight(path)


def test_errors_of_the_disk_stay_what_they_are(tmp_path):
    class Broken(io.BytesIO):
        def read(self, n=-1):
            raise OSError(5, "Input/output error")

    read = compression._explained(Broken().read, (OSError,), ".bz2", "x")
    with pytest.raises(OSError, match="Input/output error"):
        read(1)


def test_zstandard_without_a_library_is_refused_with_advice(tmp_path):
    path = tmp_path / "rows.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd")
    missing = dict.fromkeys(("compression.zstd", "zstandard"))
    with patch.dict(sys.modules, missing), pytest.raises(SoftmarginError, match="pip install zstandard"):
        load_svmlight(path)


def test_frames_are_read_one_after_the_other():
    """With bzip2 in the part of `zstandard`, whose objects have the same methods."""
    texts = [b"a" * 5000, b"", bytes(range(256)) * 20]
    packed = b"".join(map(bz2.compress, texts))
    frames = compression._ZstdFrames(io.BytesIO(packed), bz2.BZ2Decompressor)
    read = compression._whole_reads(frames.read)
    assert read(10**6) == b"".join(texts)
    assert read(10) == b""
    cut = compression._ZstdFrames(io.BytesIO(packed[:-5]), bz2.BZ2Decompressor)
    with pytest.raises(EOFError):
        compression._whole_reads(cut.read)(10**6)


# ---- streaming


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("block_bytes", [1, 100, 5000, 10**7])
def test_blocks_together_are_the_file(parser, block_bytes, n_jobs):
    X, y, qid = example()
    text = written(X, y, qid)
    blocks = list(iter_svmlight(io.BytesIO(text), n_features=40, query_id=True, block_bytes=block_bytes, n_jobs=n_jobs))
    assert (len(blocks) == 1) == (block_bytes >= len(text))
    whole = (
        sparse.vstack([block[0] for block in blocks], "csr"),
        *(np.concatenate([block[k] for block in blocks]) for k in (1, 2)),
    )
    assert parts(*whole) == parts(*load(text, n_features=40, query_id=True))


def test_the_width_of_blocks_grows_where_it_is_not_declared():
    text = b"1 5:1\n" * 10 + b"1 2:1\n" * 10 + b"1 9:1\n" * 10
    widths = [X.shape[1] for X, _ in iter_svmlight(io.BytesIO(text), block_bytes=60)]
    assert widths[0] == 5
    assert widths[-1] == 9
    assert widths == sorted(widths)


def test_streaming_does_not_guess_the_base():
    with pytest.raises(SoftmarginError, match="not possible block by block"):
        iter_svmlight(io.BytesIO(b"1 1:1\n"), zero_based="auto")
    with pytest.raises(DataFormatError, match="zero_based=True"):
        list(iter_svmlight(io.BytesIO(b"1 0:1\n")))
    ((X, _),) = iter_svmlight(io.BytesIO(b"1 0:1 1:2\n"), zero_based=True)
    assert X.toarray().tolist() == [[1, 2]]
    with pytest.raises(SoftmarginError, match="block_bytes=0"):
        iter_svmlight(io.BytesIO(b""), block_bytes=0)


def test_good_blocks_come_before_the_error():
    blocks = iter_svmlight(io.BytesIO(b"1 1:1\n" * 100 + b"wrong\n"), block_bytes=60, n_jobs=2)
    assert [next(blocks)[0].shape[0] for _ in range(10)] == [10] * 10
    with pytest.raises(DataFormatError, match=r"^101:1: "):
        next(blocks)


def test_a_file_is_closed_when_the_reader_is_abandoned(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_bytes(b"1 1:1\n" * 100)
    with patch.object(compression, "open", lambda *args: files.append(open(*args)) or files[-1], create=True):
        files: list = []
        blocks = iter_svmlight(path, block_bytes=10)
        assert not files
        next(blocks)
        blocks.close()
    assert files[0].closed


class Endless:
    """A source of the same bytes without an end, which counts what was read."""

    def __init__(self, piece):
        self.piece, self.n_bytes = piece, 0

    def read(self, n):
        self.n_bytes += n
        return (self.piece * (n // len(self.piece) + 1))[:n]


@pytest.mark.parametrize("piece", [b"1 ", b"1", b"#", b" "])
def test_a_line_without_an_end_is_given_up(piece):
    source = Endless(piece)
    with reading(line_bytes=10_000), pytest.raises(DataFormatError, match=r"^1:1: the line is longer than 10000"):
        list(iter_svmlight(source, block_bytes=1000))
    assert source.n_bytes <= 12_000


def test_a_decompression_bomb_is_read_in_pieces(tmp_path):
    path = tmp_path / "rows.gz"
    path.write_bytes(gzip.compress(bytes(3 * 10**7)))
    tracemalloc.start()
    with reading(line_bytes=100_000), pytest.raises(DataFormatError, match="longer than"):
        list(iter_svmlight(path, block_bytes=10_000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**6


def test_blank_text_yields_no_blocks():
    source = io.BytesIO(b"\n# nothing\n" * 1000)
    assert list(iter_svmlight(source, block_bytes=50)) == []


def test_small_files_do_not_import_the_compiler(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_bytes(b"1 1:1\n" * 1000)
    code = f"import sys, softmargin; softmargin.load_svmlight({str(path)!r}); sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- inside


def test_arrays_grow_by_chunks():
    text = written(*example())
    expected = parts(*load(text))
    for chunk in (1, 7, 4096):
        with reading(chunk=chunk, block_bytes=500):
            assert parts(*load(text)) == expected


@pytest.mark.parametrize("rare_numbers", [1, 3, 1000])
def test_many_numbers_that_need_python(rare_numbers):
    text = b"".join(b"0.1000000000000000055 1:1e-300 2:2 3:%.30f 4:nan\n" % (k / 7) for k in range(50))
    expected = parts(*load(text))
    with reading(small_bytes=COMPILED, rare_numbers=rare_numbers):
        assert parts(*load(text)) == expected
        with pytest.raises(DataFormatError, match=r"^51:9: the value 'x' is not a number"):
            load(text + b"1 1:1 2:x 3:nan 4:inf\n")


def test_the_compiled_parser_runs_as_plain_python():
    plain = {name: getattr(f, "py_func", f) for name, f in vars(_svmlight).items() if name in FUNCTIONS}
    with reading(small_bytes=COMPILED, few_numbers=0), patch.multiple(_svmlight, **plain):
        for text in (*FORMS.values(), written(*example(20)), b"1 1:%s\n" % (b"7" * 400)):
            with reading(small_bytes=PLAIN):
                expected = parts(*load(text))
            assert parts(*load(text)) == expected
        for text, line, column, _ in WRONG:
            with pytest.raises(DataFormatError) as caught:
                load(text)
            assert (caught.value.line, caught.value.column) == (line, column)


# ---- the two parsers agree, whatever the bytes


# fmt: off
ODD_NUMBERS = ["nan", "-inf", "infinity", "1e5", "1E-7", ".5", "5.", ".", "-", "+", "1e", "1e+", "--1", "0x1", "1_0",
               "1e999", "1e-999", "9007199254740993", "0e99999"]
ODD_INDICES = ["0", "-1", "+5", "007", "00000000000009", "2147483647", "2147483648", "1000000000000000000", "qid", "x",
               "1.0", "1e1"]
# fmt: on
BLANKS = [" ", "  ", "\t", "\x0b", "\r"]
numbers = st.one_of(
    st.integers(-(10**6), 10**6).map(str),
    st.floats().map(repr),
    st.floats(-10, 10).map("{:.4f}".format),
    st.sampled_from(ODD_NUMBERS),
    st.text("0123456789.e+-_,:# ", max_size=25),
)


@st.composite
def lines(draw):
    """Mostly good: increasing indices, with now and then something odd or wrong."""
    tokens = [draw(st.one_of(st.sampled_from(["1", "-1", "+1", "0.5", "1,2", "#", "x", ""]), numbers))]
    if draw(st.booleans()):
        tokens.append("qid:" + draw(st.one_of(st.integers(-9, 10**20).map(str), numbers)))
    index = draw(st.integers(0, 2))
    for _ in range(draw(st.integers(0, 5))):
        name = draw(st.sampled_from(ODD_INDICES)) if draw(st.integers(0, 9)) == 9 else str(index)
        tokens.append(f"{name}{draw(st.sampled_from([':'] * 9 + ['']))}{draw(numbers)}")
        index += draw(st.integers(1, 4)) if draw(st.integers(0, 9)) else 0
    comment = draw(st.sampled_from(["", "", "#", " # 1:2"]))
    return draw(st.sampled_from(BLANKS)).join(tokens) + comment


good_lines = st.builds(
    lambda label, qid, values: " ".join(
        [str(label), f"qid:{qid}", *(f"{k}:{value}" for k, value in enumerate(values, 1))]
    ),
    st.integers(-2, 2),
    st.integers(0, 99),
    st.lists(st.floats(-100, 100).map(repr), max_size=6),
)
files = st.lists(st.one_of(lines(), good_lines, good_lines), max_size=8).map(
    lambda rows: "\n".join(rows).encode("utf-8")
)
options = st.fixed_dictionaries(
    {
        "query_id": st.booleans(),
        "zero_based": st.sampled_from([True, False, "auto"]),
        "n_features": st.sampled_from([None, None, 4, 2**31, 2**40]),
        "dtype": st.sampled_from([np.float32, np.float64]),
    }
)


@st.composite
def damaged(draw, contents):
    """Cut short, bits flipped, random bytes put in."""
    data = bytearray(draw(contents))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        kind = draw(st.sampled_from(["cut", "flip", "insert"]))
        if kind == "cut":
            del data[at:]
        elif kind == "insert":
            data[at:at] = draw(st.binary(max_size=10))
        elif at < len(data):
            data[at] ^= 1 << draw(st.integers(0, 7))
    return bytes(data)


def outcome(source, **options):
    """The result or the error, comparable; anything but a DataFormatError is a failure of the test."""
    try:
        return parts(*load_svmlight(source, **options))
    except DataFormatError as error:
        return str(error), error.line, error.column


def agree(data, options, block_bytes):
    """Both parsers, one block or many, one thread or two: one outcome."""
    outcomes = []
    for limits, n_jobs in [
        ({"small_bytes": PLAIN}, 1),
        ({"small_bytes": PLAIN, "block_bytes": block_bytes}, 1),
        ({"small_bytes": COMPILED, "few_numbers": 0}, 1),
        ({"small_bytes": COMPILED, "block_bytes": block_bytes, "rare_numbers": 4, "few_numbers": 2, "chunk": 5}, 2),
    ]:
        with reading(**limits):
            outcomes.append(outcome(io.BytesIO(data), n_jobs=n_jobs, **options))
    assert all(found == outcomes[0] for found in outcomes[1:])
    return outcomes[0]


@given(files, options, st.integers(1, 60))
def test_parsers_agree(data, options, block_bytes):
    agree(data, options, block_bytes)


@given(damaged(files), options, st.integers(1, 60))
def test_parsers_agree_on_damaged_files(data, options, block_bytes):
    agree(data, options, block_bytes)


@given(st.one_of(st.binary(max_size=100), st.text("0123456789.:e-+#q id,\n", max_size=60).map(str.encode)), options)
def test_parsers_agree_on_random_bytes(data, options):
    agree(data, options, 7)


@given(damaged(files), st.sampled_from([True, False, "auto"]))
def test_what_both_read_is_what_scikit_learn_reads(data, zero_based):
    """Refused here only: underscores in numbers, anything but `qid:` that begins with qid."""
    try:
        expected, labels = load_svmlight_file(io.BytesIO(data), zero_based=zero_based)
    except (ValueError, OverflowError):
        expected = None
    try:
        X, y = load(data, zero_based=zero_based)
    except DataFormatError:
        assert expected is None or b"_" in data or b"qid" in data
        return
    assert expected is not None
    assert X.shape == expected.shape
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(X, name), getattr(expected, name))
    assert y.tobytes() == labels.tobytes()


@given(st.data(), st.sampled_from([*COMPRESS]))
def test_damaged_compressed_files(data, suffix):
    """Refused, unless the damage does no harm (a date in the header, bytes behind the end) or nothing is left."""
    text = b"1 1:1 2:3.5\n-1 2:7\n" * 20
    packed = data.draw(damaged(st.just(COMPRESS[suffix](text))))
    with patch.object(compression, "open", lambda *_: io.BufferedReader(io.BytesIO(packed)), create=True):
        found = outcome(f"rows{suffix}")
    is_refused = isinstance(found[0], str) and f"the {suffix} data" in found[0]
    assert is_refused or found in (parts(*load(text)), parts(*load(b"")))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("is_cut", [True, False], ids=["cut", "wrong"])
def test_what_a_failed_load_has_read_is_freed_at_once(tmp_path, is_cut, n_jobs):
    """Also while the error is kept, as an interactive session keeps its last one, and without the garbage collector."""
    text = b"1 1:0.5 2:0.25\n" * 40_000
    raw = gzip.compress(text if is_cut else text + b"x 1:1\n", 1)
    (tmp_path / "rows.gz").write_bytes(raw[: len(raw) - 100 if is_cut else None])

    def fails():
        with pytest.raises(DataFormatError) as caught:
            load_svmlight(tmp_path / "rows.gz", n_jobs=n_jobs)
        return caught.value

    fails()  # modules are loaded and functions compiled
    gc.collect()
    gc.disable()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    try:
        error = fails()
        for _ in range(100):  # until the threads that read ahead have ended
            if tracemalloc.get_traced_memory()[0] - before < 2**18:
                break
            time.sleep(0.02)
        else:
            pytest.fail(f"{tracemalloc.get_traced_memory()[0] - before} bytes are still in use")
        assert error.__traceback__ is not None
    finally:
        tracemalloc.stop()
        gc.enable()
