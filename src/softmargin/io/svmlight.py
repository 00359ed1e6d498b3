"""svmlight (LIBSVM) text to a CSR matrix.

The text streams in blocks that end at a newline. A block goes to the compiled parser (`_svmlight.py`) or, while the
file may be a small one, to the plain parser (`svmlight_lines.py`), which needs no compiler. The plain parser also
reads the lines that the compiled one hands back, and makes all messages: so the two agree.
"""

import operator
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from softmargin.core.errors import DataFormatError, SoftmarginError
from softmargin.core.threads import Workers, thread_count
from softmargin.io.compression import Read, Source, opened
from softmargin.io.svmlight_lines import BadLine, Lines, Rules, number, read_lines

_SMALL_BYTES = 2**18  # so much the plain parser reads in less time than it takes to import the compiler
_BLOCK_BYTES = 2**20
LINE_BYTES = 2**28  # a limit for memory, far above honest lines
_CHUNK = 2**23  # elements of an array that grows
_RARE_NUMBERS = 2**16  # that the compiled parser sets aside at a time
_FEW_NUMBERS = 1000  # that Python converts in less time than it takes to load another compiled function


def load_svmlight(
    path: Source,
    *,
    n_features: int | None = None,
    dtype: Any = np.float64,
    zero_based: bool | str = "auto",
    query_id: bool = False,
    n_jobs: int | None = None,
) -> tuple:
    """Read a file in svmlight (LIBSVM) format: plain, .gz, .bz2, .xz or .zst.

    Parameters
    ----------
    path : path, or file object in binary mode, which is read as it is from where it stands
    n_features : columns of X, by default what the file needs
    dtype : float32 or float64, the type of X
    zero_based : whether indices begin at 0; "auto": they do if index 0 occurs
    query_id : whether to return the integers behind `qid:`, which every line must have then
    n_jobs : number of threads; None is 1, -1 all

    Returns X (CSR matrix), y (float64) and, with `query_id`, the queries (int64). Raises DataFormatError, which names
    file, line and column, for what is not svmlight. Indices above 2^31 - 1 are refused, and lines above 256 MiB.
    """
    parts = read_svmlight(
        path, n_features=n_features, dtype=dtype, zero_based=zero_based, query_id=query_id, n_jobs=n_jobs
    )
    return parts[:3] if query_id else parts[:2]


class Svmlight(NamedTuple):
    """What a file holds; `index_base` is the number that its first feature has, 0 or 1."""

    X: Any
    y: np.ndarray
    qid: np.ndarray | None
    index_base: int


def read_svmlight(
    path: Source,
    *,
    n_features: int | None = None,
    dtype: Any = np.float64,
    zero_based: bool | str = "auto",
    query_id: bool = False,
    n_jobs: int | None = None,
) -> Svmlight:
    """As `load_svmlight`, and with it how the features are counted."""
    rules = Rules(_checked_base(zero_based), _checked_width(n_features), bool(query_id))
    try:
        return _load(path, rules, _checked_type(dtype), thread_count(n_jobs))
    except DataFormatError as error:
        failure = error.with_traceback(None)  # which would keep alive what was read so far
        failure.__context__ = failure.__cause__ = None
    raise failure


def _load(path: Source, rules: Rules, dtype: np.dtype, n_threads: int) -> Svmlight:
    labels, queries, ends = _Growing(np.float64), _Growing(np.int64), _Growing(np.int64)
    indices, values = _Growing(np.int32), _Growing(dtype)
    ends.append(np.zeros(1, np.int64))
    with opened(path) as (read, name):
        for block in _parsed_blocks(read, name, rules, _BLOCK_BYTES, n_threads):
            ends.append(block.ends + values.size)
            labels.append(block.labels)
            queries.append(block.queries)
            indices.append(block.indices)
            values.append(block.values)
    columns = indices.whole()
    index_base = rules.first if rules.zero_based is not None else int(columns.min(initial=1) > 0)
    columns -= index_base
    width = int(columns.max(initial=0)) + 1
    if rules.n_features is not None and width > rules.n_features:
        raise DataFormatError(
            f"index 0 occurs, and with it the file has {width} features, more than n_features={rules.n_features}. "
            "Pass a larger n_features, or none.",
            file=name,
        )
    X = _csr(values.whole(), columns, ends.whole(), rules.n_features or width)
    return Svmlight(X, labels.whole(), queries.whole() if rules.query_id else None, index_base)


def iter_svmlight(
    path: Source,
    *,
    n_features: int | None = None,
    dtype: Any = np.float64,
    zero_based: bool = False,
    query_id: bool = False,
    block_bytes: int = 4 * _BLOCK_BYTES,
    n_jobs: int | None = None,
) -> Iterator[tuple]:
    """Read a file as `load_svmlight` does, but block by block, in bounded memory.

    Yields what `load_svmlight` returns, for about `block_bytes` of text at a time. Without `n_features` a block is as
    wide as the largest index so far needs. Whether indices begin at 0 shows only at the end of a file, so it has to be
    said: one-based is the default, and index 0 is an error then. The file is opened when the first block is asked for.
    """
    if _checked_base(zero_based) is None:
        raise SoftmarginError(
            'zero_based="auto" is not possible block by block, because index 0 may occur in the last one. '
            "Use False for indices that begin at 1, True for 0."
        )
    rules = Rules(bool(zero_based), _checked_width(n_features), bool(query_id))
    n_bytes = _checked_count("block_bytes", block_bytes)
    return _stream(path, rules, _checked_type(dtype), n_bytes, thread_count(n_jobs))


def _stream(path: Source, rules: Rules, dtype: np.dtype, block_bytes: int, n_threads: int) -> Iterator[tuple]:
    width = 1
    with opened(path) as (read, name):
        for block in _parsed_blocks(read, name, rules, block_bytes, n_threads):
            if block.labels.size == 0:
                continue
            columns = block.indices - np.int32(rules.first)
            width = max(width, int(columns.max(initial=0)) + 1)
            with np.errstate(over="ignore"):
                values = block.values.astype(dtype)
            X = _csr(values, columns, np.concatenate([[0], block.ends]), rules.n_features or width)
            y = block.labels.copy()
            yield (X, y, block.queries.copy()) if rules.query_id else (X, y)


def _checked_base(zero_based: Any) -> bool | None:
    """None for "auto"."""
    if isinstance(zero_based, bool | np.bool_):
        return bool(zero_based)
    if zero_based != "auto":
        raise SoftmarginError(f'zero_based={zero_based!r} is none of True, False and "auto".')
    return None


def _checked_width(n_features: Any) -> int | None:
    return None if n_features is None else _checked_count("n_features", n_features)


def _checked_count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or not 1 <= value < 2**63:
        raise SoftmarginError(f"{name}={value!r} must be a positive integer.")
    return int(value)


def _checked_type(dtype: Any) -> np.dtype:
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise SoftmarginError(f"dtype={dtype!r} is not possible: use float32 or float64, and convert X afterwards.")
    return np.dtype(dtype)


def _csr(values: np.ndarray, indices: np.ndarray, indptr: np.ndarray, n_features: int) -> Any:
    """SciPy chooses the type of indices and indptr: 32 bits if shape and number of values allow, else 64."""
    X = sp.csr_matrix((values, indices, indptr), shape=(indptr.size - 1, n_features), copy=False)
    X.has_canonical_format = True
    return X


class _Growing:
    """An array to append to, in chunks, so that it is never there twice. What is reserved but not written is free."""

    def __init__(self, dtype: Any) -> None:
        self._chunks = [np.empty(_CHUNK, dtype)]
        self._n_last = 0

    @property
    def size(self) -> int:
        return (len(self._chunks) - 1) * _CHUNK + self._n_last

    def append(self, part: np.ndarray) -> None:
        with np.errstate(over="ignore"):  # what is too large for float32 is infinite
            while part.size:
                if self._n_last == _CHUNK:
                    self._chunks.append(np.empty_like(self._chunks[0]))
                    self._n_last = 0
                n = min(part.size, _CHUNK - self._n_last)
                self._chunks[-1][self._n_last : self._n_last + n] = part[:n]
                self._n_last += n
                part = part[n:]

    def whole(self) -> np.ndarray:
        """All of it, once; each chunk is let go as soon as it is copied."""
        self._chunks[-1].resize(self._n_last, refcheck=False)
        if len(self._chunks) == 1:
            return self._chunks[0]
        whole = np.empty(self.size, self._chunks[0].dtype)
        at = whole.size
        while self._chunks:
            chunk = self._chunks.pop()
            at -= chunk.size
            whole[at : at + chunk.size] = chunk
        return whole


class _Parsed(NamedTuple):
    """The rows of a block of text; row i ends before position ends[i] of the values."""

    labels: np.ndarray
    queries: np.ndarray
    ends: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    n_lines: int


def _parsed_blocks(read: Read, name: str, rules: Rules, block_bytes: int, n_threads: int) -> Iterator[_Parsed]:
    """Blocks in the order of the file, each valid until the next is asked for.

    As many as there are threads are parsed together, while the next ones are read. Errors keep their place in the
    order of the file, so that which one is raised does not depend on the number of threads.
    """
    workers = Workers(n_threads)
    parsers = [_Parser(rules) for _ in range(n_threads)]
    texts = text_blocks(read, block_bytes)
    n_bytes = n_lines = 0

    def read_ahead() -> list[bytes | Failure]:
        return list(islice(texts, n_threads))

    try:
        ahead = read_ahead()
        while ahead:
            tasks: list[tuple] = [(read_ahead,)]
            for parser, text in zip(parsers, ahead, strict=False):
                n_bytes += len(text) if isinstance(text, bytes) else 0
                tasks.append((partial(parser.attempt, text, n_bytes < _SMALL_BYTES),))
            ahead, *blocks = workers.map(operator.call, tasks)
            for block in blocks:
                if isinstance(block, Failure):
                    line = None if block.line is None else n_lines + block.line + 1
                    raise DataFormatError(block.message, file=name, line=line, column=block.column)
                yield block
                n_lines += block.n_lines
    finally:
        workers.close()


class Failure(NamedTuple):
    """Why the text ends here. Lines count from 0 at the beginning of the block.

    An exception would hold on to its frames, and with them to everything that was read.
    """

    message: str
    line: int | None = None
    column: int | None = None


def text_blocks(read: Read, block_bytes: int) -> Iterator[bytes | Failure]:
    """Whole lines, about `block_bytes` at a time, ending with a newline; a failure comes last, also of a long line."""
    pieces: list[bytes] = []  # of a line that has not ended
    n_bytes = 0
    failure = None
    try:
        while piece := read(block_bytes):
            cut = piece.rfind(b"\n") + 1
            if cut:
                yield b"".join([*pieces, memoryview(piece)[:cut]])
                pieces, n_bytes = [], 0
            pieces.append(piece[cut:])
            n_bytes += len(pieces[-1])
            if n_bytes > LINE_BYTES:
                yield Failure(f"the line is longer than {LINE_BYTES} bytes. Is this svmlight text?", 0, 1)
                return
    except DataFormatError as error:
        failure = Failure(error.message)
    if failure is not None:
        yield failure
    elif n_bytes:
        yield b"".join([*pieces, b"\n"])


class _Parser:
    """Parses one block after the other into the same memory."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._n_bytes = -1

    def attempt(self, text: bytes | Failure, is_small: bool) -> _Parsed | Failure:
        """The block, or what is wrong with it."""
        if isinstance(text, Failure):
            return text
        try:
            return self.parse_plainly(text) if is_small else self.parse(text)
        except BadLine as bad:
            return Failure(str(bad), bad.line, bad.column)

    def parse_plainly(self, text: bytes) -> _Parsed:
        lines = text.split(b"\n")
        rows = read_lines(lines, self._rules)
        return _Parsed(
            np.array(rows.labels, np.float64),
            np.array(rows.queries, np.int64),
            np.array(rows.ends, np.int64),
            np.array(rows.indices, np.int32),
            np.array(rows.values, np.float64),
            len(lines) - 1,
        )

    def parse(self, text: bytes) -> _Parsed:
        """By the compiled parser, with Python's `float` and the plain parser for what it does not know."""
        from softmargin.io import _svmlight

        self._reserve(len(text))
        labels, queries, ends, indices, values = self._arrays
        rules = self._rules
        codes = np.frombuffer(text, np.uint8)
        at = n_rows = n_values = n_lines = 0
        while at < len(text):
            at, n_rows, n_values, n_lines, n_rare = _svmlight.parse(
                codes,
                at,
                n_rows,
                n_values,
                n_lines,
                rules.first,
                rules.last,
                rules.query_id,
                *self._arrays,
                self._rare,
            )
            if n_rare:
                if n_rare > _FEW_NUMBERS:
                    n_rare = _svmlight.convert(codes, self._rare[:n_rare], labels, values)
                self._convert(text, self._rare[:n_rare])
            elif at < len(text):
                row, at = self._read_line(text, at, n_lines)
                labels[n_rows : n_rows + 1] = row.labels
                queries[n_rows : n_rows + 1] = row.queries
                indices[n_values : n_values + len(row.indices)] = row.indices
                values[n_values : n_values + len(row.values)] = row.values
                n_values += len(row.values)
                ends[n_rows] = n_values
                n_rows += 1
                n_lines += 1
        return _Parsed(labels[:n_rows], queries[:n_rows], ends[:n_rows], indices[:n_values], values[:n_values], n_lines)

    def _reserve(self, n_bytes: int) -> None:
        """Room for all that so many bytes can hold: a row takes two at least, a value four."""
        if n_bytes <= self._n_bytes:
            return
        self._n_bytes = n_bytes
        n_rows, n_values = n_bytes // 2 + 1, n_bytes // 4 + 1
        self._arrays = (
            np.empty(n_rows),
            np.empty(n_rows if self._rules.query_id else 0, np.int64),
            np.empty(n_rows, np.int64),
            np.empty(n_values, np.int32),
            np.empty(n_values),
        )
        self._rare = np.empty((_RARE_NUMBERS, 3), np.int64)

    def _read_line(self, text: bytes, begin: int, n_lines: int) -> tuple[Lines, int]:
        """By the plain parser; and where the next line begins."""
        end = text.index(b"\n", begin)
        return read_lines([text[begin:end]], self._rules, n_lines), end + 1

    def _convert(self, text: bytes, rare: np.ndarray) -> None:
        """The numbers that are left to Python."""
        labels, values = self._arrays[0], self._arrays[-1]
        for begin, end, target in rare.tolist():
            try:
                value = number(text[begin:end])
            except ValueError:
                line = text.rfind(b"\n", 0, begin) + 1
                self._read_line(text, line, text.count(b"\n", 0, line))
                raise
            if target < 0:
                labels[-1 - target] = value
            else:
                values[target] = value
